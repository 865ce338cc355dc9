"""Similarity of heads: as numbers, from a terminal and in a figure."""

import csv

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import hgviz
from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Layer
from hgviz.figures import Spec, labels, points
from hgviz.figures.page import Page
from hgviz.models import checkpoints, open_model
from hgviz.models.checkpoints import save
from hgviz.tasks.head_similarity import MAP_ROWS, Spectrum, redundancy_of_weights
from tests.analysis.planting import letters, plant
from tests.figures.flaws import flaws
from tests.models.building import write_shared, write_transformer
from tests.models.folders import own_bert


def test_heads_that_are_the_same_are_found(tmp_path, facts, output):
    path = write_transformer(tmp_path / "own", n_heads=3, form="encoder", dtype=torch.float64,
                             goal="states")  # fmt: skip
    found = checkpoints.read(path)
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
    return tasks.redundancy(path)


@pytest.mark.parametrize(("heads", "layers", "width"), [(1, 1, "icml"), (12, 3, "acl"),
                                                        (3, 14, "neurips")])  # fmt: skip
def test_the_figure_fits_whatever_the_model(tmp_path, heads, layers, width):
    found = repeating(tmp_path / "own", heads, n_layers=layers)
    panel = tasks.redundancy_panel(Spec("redundancy", width=width), found, [tmp_path / "own"])
    with labels.figure_settings():
        page = Page(points(width))
        panel.content.draw(page, panel.spec)
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
        tasks.redundancy_of_captures([hgviz.capture(one, "the cat") for one in models])


# --- as numbers -----------------------------------------------------------------------------------


def of(q, k):
    """The redundancy of heads with queries and keys (H, D, d)."""
    heads, width, d = q.shape
    mix, names = np.repeat(np.eye(heads), width, axis=1), ("softmax",) * heads
    layer = Layer(0, "middle.0", "self", 0, 0, tuple(range(heads)), names, False)
    return redundancy_of_weights(layer, q.reshape(-1, d), mix, k.reshape(-1, d), heads * width)


def orthogonal(rows, d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, rows)))[0].T


def test_equal_orthogonal_turned_and_empty_heads():
    same = of(*(np.tile(orthogonal(4, 20, seed), (3, 1, 1)) for seed in (0, 1)))
    assert same.stacked.rank == 4 and same.stacked.ranks() == {0.9: 4, 0.95: 4, 0.99: 4}
    np.testing.assert_allclose(same.stacked.values[:4], np.sqrt(3), rtol=1e-9)
    assert (same.stacked.most, same.over_heads.rank, same.over_heads.ranks()[0.99]) == (12, 1, 1)
    np.testing.assert_allclose(same.alike, 1.0, rtol=1e-12)
    apart = of(*(orthogonal(12, 20, seed).reshape(3, 4, 20) for seed in (0, 1)))
    assert apart.stacked.rank == 12 and apart.stacked.ranks() == {0.9: 11, 0.95: 12, 0.99: 12}
    assert apart.over_heads.rank == 3 and apart.over_heads.ranks()[0.99] == 3
    np.testing.assert_allclose(apart.alike, np.eye(3), atol=1e-12)
    assert (same.mean, apart.mean) == pytest.approx((1, 0), abs=1e-12)
    q, k = np.random.default_rng(0).normal(size=(2, 1, 3, 8))
    turned = of(np.concatenate([q, -q]), np.concatenate([k, k]))
    assert turned.alike[0, 1] == pytest.approx(-1.0) and turned.mean == pytest.approx(1.0)
    empty = of(np.concatenate([q, 0 * q]), np.concatenate([k, k]))
    assert np.isnan(empty.alike[0, 1]) and empty.pairs == [] and np.isnan(empty.mean)
    assert empty.to_dict()["cosines"][0][1] is None and empty.to_dict()["mean"] is None
    none = Spectrum(np.zeros(3), 3)
    assert none.rank == 0 and set(none.ranks().values()) == {0}


def test_numbers_are_those_of_the_matrices():
    q, k = np.random.default_rng(4).normal(size=(2, 3, 4, 10))
    found, matrices = of(q, k), q.transpose(0, 2, 1) @ k  # (H, d, d)
    stacked = np.linalg.svd(matrices.reshape(-1, 10), compute_uv=False)
    np.testing.assert_allclose(found.stacked.values, stacked, rtol=1e-8)
    vectors = matrices.reshape(3, -1)
    over_heads = np.linalg.svd(vectors, compute_uv=False)
    np.testing.assert_allclose(found.over_heads.values, over_heads, rtol=1e-9)
    sizes = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(found.alike, vectors @ vectors.T / np.outer(sizes, sizes))
    pairs = {(a.head, b.head): value for a, b, value in found.pairs}
    assert pairs[0, 2] == pytest.approx(found.alike[0, 2])
    assert [*map(abs, pairs.values())] == sorted(map(abs, pairs.values()))[::-1]


def of_maps(*texts):
    return tasks.redundancy_of_captures(
        [plant(letters("x" * maps[0].shape[1]), list(maps), causal=False) for maps in texts]
    ).layers


def test_the_distance_of_maps_is_scipys_over_all_rows_of_all_texts(monkeypatch):
    random = np.random.default_rng(1)
    texts = [[random.gamma(0.2, size=(3, n, n)) for _ in range(2)] for n in (40, 70)]
    layers = of_maps(*texts)
    for at, layer in enumerate(layers):
        assert layer.layer.index == at and layer.rows == 110 and not layer.cosines
        for i, j in np.ndindex(3, 3):
            rows = [jensenshannon(maps[at][i], maps[at][j], base=2, axis=1) for maps in texts]
            assert layer.alike[i, j] == pytest.approx(np.concatenate(rows).mean(), abs=1e-6)
    monkeypatch.setattr("hgviz.analysis.metrics.WEIGHTS_AT_ONCE", 1)
    np.testing.assert_allclose(of_maps(*texts)[0].alike, layers[0].alike, rtol=1e-12)


def test_equal_maps_are_0_apart_and_long_texts_have_rows_spread_over_them():
    eye = np.eye(MAP_ROWS + 100)
    (layer,) = of_maps([np.stack([eye, eye, eye[::-1]])])
    assert layer.rows == MAP_ROWS and layer.alike[0, 1] == 0
    assert layer.alike[0, 2] == pytest.approx(1) and layer.mean == pytest.approx(2 / 3)
    assert layer.pairs[0] == (HeadId(0, 0), HeadId(0, 1), 0.0)
