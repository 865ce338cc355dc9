"""The verbs about what heads share, from a terminal."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
import torch

from hgviz.cli import main
from hgviz.models import open_model
from tests.models.building import write_transformer
from tests.models.folders import write_bert, write_gpt2


def run(capsys, *words):
    """What a command says on standard output."""
    assert main([str(one) for one in words], None) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def fails(capsys, *words, code=1):
    assert main([str(one) for one in words], None) == code
    return capsys.readouterr().err


@pytest.mark.parametrize("write", [write_bert, write_gpt2], ids=["bert", "gpt2"])
def test_a_model_that_shares_all_is_the_model(tmp_path, capsys, write):
    path = write(tmp_path / "own")
    out = tmp_path / "shared"
    facts = json.loads(run(capsys, "collaborate", path, "-o", out, "--json"))
    assert facts["width"] == 24 and facts["difference"] < 1e-5
    assert [one["error"] for one in facts["layers"]] == [0.0, 0.0]
    own, new = (open_model(at).spec.parameters for at in (path, out))
    assert facts["parameters"] == [own, new] and new != own
    told = json.loads(run(capsys, "compare", path, out, "--text", "the cat sat", "--json"))
    assert all(one["largest"] < 1e-5 for one in told["heads"])
    text = run(capsys, "info", out)
    assert f"{new:,}" in text.replace("_", ",") or str(new) in text


def test_fewer_terms_cost_more(tmp_path, capsys):
    path = write_bert(tmp_path / "own")
    errors = []
    for width in (4, 12, 20, 24):
        out = tmp_path / str(width)
        facts = json.loads(run(capsys, "collaborate", path, "-o", out, "--width", width, "--json"))
        errors.append([one["error"] for one in facts["layers"]])
        assert open_model(out).config.shared_width == width
    assert all(a > b for one, two in zip(errors, errors[1:], strict=False)
               for a, b in zip(one, two, strict=True))  # fmt: skip
    assert errors[-1] == [0.0, 0.0]
    again = tmp_path / "again"
    run(capsys, "collaborate", path, "-o", again, "--width", 12)
    assert open_model(again).spec.digest == open_model(tmp_path / "12").spec.digest
    said = run(capsys, "collaborate", tmp_path / "24", "-o", tmp_path / "less", "--width", 12)
    assert "Products of queries and keys are off by" in said


def test_labelled_data_says_what_it_costs(tmp_path, capsys):
    rows = tmp_path / "rows.tsv"
    rows.write_text("text\tlabel\n" + "the cat sat\tfor\nun affable\tagainst\n" * 5)
    path = write_bert(tmp_path / "own")
    words = ("collaborate", path, "-o", tmp_path / "out", "--width", "6", "--data", rows)
    facts = json.loads(run(capsys, *words, "--json"))
    assert [one["metric"] for one in facts["scores"]] == ["accuracy", "accuracy"]
    assert facts["texts"] == 10 and facts["source"] == "rows.tsv" and facts["difference"] > 1e-5
    said = run(capsys, *words[:3], tmp_path / "two", *words[4:])
    assert "Before: accuracy" in said and "After: accuracy" in said


def test_what_cannot_be_shared_is_one_line_and_no_folder(tmp_path, capsys):
    out = tmp_path / "out"
    said = fails(capsys, "collaborate", "sample/softmax", "-o", out)
    assert "Rotary positions turn" in said and said.count("\n") == 1 and not out.exists()
    path = write_bert(tmp_path / "own")
    assert "With 24 its heads" in fails(capsys, "collaborate", path, "-o", out, "--width", 25)
    fails(capsys, "collaborate", path, "-o", out, "--width", 0, code=2)
    assert not out.exists()


# --- redundancy -----------------------------------------------------------------------------------


def test_heads_that_are_the_same_are_found(tmp_path, capsys):
    from hgviz.models import readers
    from hgviz.models.checkpoint import save

    path = write_transformer(tmp_path / "own", n_heads=3, form="encoder", dtype=torch.float64,
                             goal="states")  # fmt: skip
    found = readers.read(path)
    tensors = dict(found.tensors)
    for side in "qk":
        name = f"middle.0.attn.{side}.weight"
        tensors[name] = tensors[name][:4].repeat(3, 1)
    save(path, found.config, tensors)
    facts = json.loads(run(capsys, "redundancy", path, "--json"))
    assert facts["kind"] == "weights"
    first, second = facts["layers"]
    assert first["stacked"]["rank"] == 4 and first["stacked"]["of"] == 12
    assert first["over_heads"]["rank"] == 1 and first["mean"] == pytest.approx(1)
    np.testing.assert_allclose(first["cosines"], 1.0)
    assert second["stacked"]["rank"] == 12 and second["over_heads"]["rank"] == 3
    out = tmp_path / "pairs.csv"
    said = run(capsys, "redundancy", path, "-o", out)
    assert "0.0 and 0.1" in said and "dimensions" in said
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["head"] for row in rows[:3]] == ["0.0", "0.0", "0.1"] and len(rows) == 6
    shared = tmp_path / "shared"
    run(capsys, "collaborate", path, "-o", shared)
    again = json.loads(run(capsys, "redundancy", shared, "--json"))["layers"]
    for one, other in zip(facts["layers"], again, strict=True):
        np.testing.assert_allclose(one["cosines"], other["cosines"], atol=1e-9)
        assert one["stacked"]["rank_99"] == other["stacked"]["rank_99"]


def test_maps_of_captures_are_compared_over_all_their_texts(tmp_path, capsys):
    facts = json.loads(run(capsys, "redundancy", "sample/first.h5", "--json"))
    assert facts["kind"] == "maps" and len(facts["layers"]) == 13
    one = facts["layers"][0]
    assert one["distances"][0][0] == 0 and 0 < one["mean"] < 1 and one["rows"] > 100
    twice = json.loads(run(capsys, "redundancy", *["sample/first.h5"] * 2, "--json"))
    np.testing.assert_allclose(twice["layers"][0]["distances"], one["distances"], rtol=1e-12)
    assert twice["layers"][0]["rows"] == 2 * one["rows"]


def test_positions_that_weights_leave_out_are_said(tmp_path, capsys):
    assert "before rotary positions turn them" in run(capsys, "redundancy", "sample/softmax")


def test_what_cannot_be_compared_is_wrong_use(tmp_path, capsys):
    path = write_bert(tmp_path / "own")
    fails(capsys, "redundancy", path, "sample/first.h5", code=2)
    fails(capsys, "redundancy", path, path, code=2)
    assert "there is no" in fails(capsys, "redundancy", tmp_path / "none").lower()
