"""How much heads repeat each other, from a terminal and in a figure."""

import csv

import numpy as np
import pytest
import torch

import hgviz
from hgviz import tasks
from hgviz.core import HgvizError, finish
from hgviz.figures import Spec, points
from hgviz.figures.paper import style
from hgviz.figures.paper.page import Page
from hgviz.figures.pictures import DRAWINGS
from hgviz.models import open_model
from hgviz.models.formats import readers
from hgviz.models.formats.checkpoint import save
from tests.figures.flaws import flaws
from tests.models.building import write_transformer
from tests.models.folders import own_bert
from tests.models.test_collaborative import write_shared


def test_heads_that_are_the_same_are_found(tmp_path, facts, output):
    path = write_transformer(tmp_path / "own", n_heads=3, form="encoder", dtype=torch.float64,
                             goal="states")  # fmt: skip
    found = readers.read(path)
    tensors = dict(found.tensors)
    for side in "qk":
        name = f"middle.0.attn.{side}.weight"
        tensors[name] = tensors[name][:4].repeat(3, 1)
    save(path, found.config, tensors)
    told = facts("redundancy", path)
    assert told["kind"] == "weights"
    first, second = told["layers"]
    assert first["stacked"]["rank"] == 4 and first["stacked"]["of"] == 12
    assert first["over_heads"]["rank"] == 1 and first["mean"] == pytest.approx(1)
    np.testing.assert_allclose(first["cosines"], 1.0)
    assert second["stacked"]["rank"] == 12 and second["over_heads"]["rank"] == 3
    out = tmp_path / "pairs.csv"
    said = output("redundancy", path)
    assert "0.0 and 0.1" in said and "dimensions" in said
    output("redundancy", path, "-o", out)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    heads = [row for row in rows if row["shown"] == "heads"]
    assert len(heads) == 2 * 9 and heads[1]["x"] == "0" and float(heads[1]["value"]) == 1.0
    shared = write_shared(path, tmp_path / "shared")
    again = facts("redundancy", shared)["layers"]
    for one, other in zip(told["layers"], again, strict=True):
        np.testing.assert_allclose(one["cosines"], other["cosines"], atol=1e-9)
        assert one["stacked"]["rank_99"] == other["stacked"]["rank_99"]


def test_maps_of_captures_are_compared_over_all_their_texts(tmp_path, facts):
    told = facts("redundancy", "sample/first.h5")
    assert told["kind"] == "maps" and len(told["layers"]) == 13
    one = told["layers"][0]
    assert one["distances"][0][0] == 0 and 0 < one["mean"] < 1 and one["rows"] > 100
    twice = facts("redundancy", *["sample/first.h5"] * 2)
    np.testing.assert_allclose(twice["layers"][0]["distances"], one["distances"], rtol=1e-12)
    assert twice["layers"][0]["rows"] == 2 * one["rows"]


def test_what_cannot_be_compared_is_wrong_use_and_positions_left_out_are_said(
    tmp_path, refusal, output
):
    assert "before rotary positions turn them" in output("redundancy", "sample/softmax")
    path = own_bert(tmp_path / "own")
    refusal("redundancy", path, "sample/first.h5", code=2)
    refusal("redundancy", path, path, code=2)
    assert "there is no" in refusal("redundancy", tmp_path / "none").lower()


# --- the figure -----------------------------------------------------------------------------------


def repeating(path, heads=3, **keys):
    """How much the heads of a new model repeat each other."""
    write_transformer(path, form="encoder", goal="states", n_heads=heads, **keys)
    return finish(tasks.redundancy(path))


@pytest.mark.parametrize(("heads", "layers", "width"), [(1, 1, "icml"), (12, 3, "acl"),
                                                        (3, 14, "neurips")])  # fmt: skip
def test_the_figure_fits_whatever_the_model(tmp_path, heads, layers, width):
    found = repeating(tmp_path / "own", heads, n_layers=layers)
    panel = tasks.redundancy_panel(Spec("redundancy", width=width), found, [tmp_path / "own"])
    with style.dressed():
        page = Page(points(width))
        DRAWINGS["redundancy"].compose(page, panel.spec, panel.content)
        assert flaws(page) == []
    assert len(panel.content.grids.grids) == layers


def test_a_figure_holds_its_numbers_and_its_command(tmp_path, output):
    found = repeating(tmp_path / "own")
    out = tmp_path / "fig.svg"
    said = output("redundancy", tmp_path / "own", "-o", out, "--numbers")
    assert "2 layers" in said
    assert "hgviz redundancy own -o fig.svg" in out.read_text()
    rows = list(csv.DictReader((tmp_path / "fig.csv").read_text().splitlines()))
    cell = next(row for row in rows if (row["of"], row["x"], row["y"]) == ("Layer 1", "0", "2"))
    assert float(cell["value"]) == pytest.approx(found.layers[1].alike[0, 2], rel=1e-6)
    assert any(row["shown"] == "What the largest hold" for row in rows)


def test_a_notebook_shows_it(tmp_path):
    path = own_bert(tmp_path / "own")
    shown = hgviz.redundancy(str(path))
    assert "<svg" in shown._repr_svg_() and shown.facts["kind"] == "weights"
    assert shown.command == "hgviz redundancy own -o figure.pdf"
    assert hgviz.redundancy(open_model(path)).facts["layers"] == shown.facts["layers"]
    model = open_model(path)
    captures = [hgviz.capture(model, text) for text in ("the cat sat.", "un affable cat")]
    one, both = hgviz.redundancy(captures[0]), hgviz.redundancy(captures)
    assert one.facts["kind"] == both.facts["kind"] == "maps"
    assert both.facts["layers"][0]["rows"] > one.facts["layers"][0]["rows"]
    assert both.captures == tuple(captures)
    for wrong in ([captures[0], path], [path, path], []):
        with pytest.raises(HgvizError, match="cannot be taken together"):
            hgviz.redundancy(wrong)


def test_captures_of_two_models_are_refused(tmp_path):
    models = [open_model(own_bert(tmp_path / str(seed), seed=seed)) for seed in (0, 1)]
    with pytest.raises(HgvizError, match="are of several models"):
        finish(tasks.redundancy_of_captures([hgviz.capture(one, "the cat") for one in models]))
