"""Every command on a Byte Latent Transformer, as a stranger would."""

import json

import numpy as np
import pytest

from hgviz import cli
from hgviz.core import HeadId
from hgviz.models import open_model
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models import patches as blt

TEXT = "The river broke its banks."
ROWS = (
    "The river broke its banks in the night.",
    "Hi",
    "A cat sat on the mat.",
    "Nobody knew.",
) * 4


def nobody(*_):
    raise AssertionError("this verb needs no window")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A model of two parts, one of one part, and rows of texts."""
    root = tmp_path_factory.mktemp("blt")
    blt.write(root / "two", "BltForCausalLM")
    blt.write(root / "one", "BltForCausalLM", cross_attn_k=1, patch_in_forward=False)
    (root / "rows.tsv").write_text("text\n" + "\n".join(ROWS) + "\n")
    return root


@pytest.fixture
def run(capfd):
    """Run a command line that works; gives what it says."""

    def heard(*arguments, code=0):
        capfd.readouterr()
        found = cli.main([str(one) for one in arguments], cli.Window(nobody, nobody))
        said, error = capfd.readouterr()
        assert found == code and (code or not error), error
        return error if code else said

    return heard


@pytest.fixture
def captured(run, root):
    """(model, text) -> a capture, made by the command."""

    def find(model="two", text=TEXT, *more):
        out = root / f"{model}-{len(text)}{''.join(map(str, more))}.h5"
        if not out.exists():
            run("capture", root / model, "--text", text, "-o", out, *more)
        return out

    return find


def test_info_names_levels_and_layers(run, root, captured):
    whole = json.loads(run("info", root / "two", "--json"))
    assert [one["stride"] for one in whole["levels"]] == [1, None, None]
    assert [one["parts"] for one in whole["levels"]] == [1, 2, 1]
    part = json.loads(run("info", captured(), "--json"))
    assert part["levels"] == whole["levels"] and part["complete"] is True
    assert [one["role"] for one in part["layers"]] == [
        "self", "self", "self", "self", "down", "self", "self", "up", "self", "up", "self",
    ]  # fmt: skip
    assert "unattending" not in run("info", root / "two")
    assert "boundaries: found by the model" in run("info", captured())
    assert "boundaries: given" in run("info", captured("two", TEXT, "--boundaries", "whitespace"))


@pytest.mark.parametrize("model", ["two", "one"])
@pytest.mark.parametrize("text", [TEXT, "a", "ab"])
def test_what_is_written_of_a_capture_is_the_capture(run, captured, model, text, tmp_path):
    file, count = captured(model, text), len(text)
    held = open_capture(file)
    for layer in (one.index for one in held.spec.layers if one.role != "self"):
        run("map", file, "--layer", layer, "--head", 1, "-o", tmp_path / "m.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), held.maps[layer].read(1))
    run("rollout", file, "-o", tmp_path / "r.npy")
    rolled = np.load(tmp_path / "r.npy")
    assert rolled.shape == (count, count) and np.allclose(rolled.sum(1), 1, atol=1e-5)
    assert "4.1" in run("heads", file)
    for kind in ("levels", "map", "wall", "rollout"):
        run("figure", file, "--kind", kind, "-o", tmp_path / f"{kind}.svg")
    assert "segments" in (tmp_path / "levels.svg").read_text()


def test_an_empty_text_is_refused_in_a_line(run, root, tmp_path):
    said = run("capture", root / "two", "--text", "", "-o", tmp_path / "e.h5", code=1)
    assert said.startswith("The text is empty.")


def test_heads_are_scored_switched_off_and_taken_away(run, root, tmp_path):
    model, rows, study = root / "two", root / "rows.tsv", tmp_path / "s.h5"
    whole = run("evaluate", model, "--data", rows, "--json")
    few = run("evaluate", model, "--data", rows, "--off", "4.*,7.1,0.0", "--json")
    assert json.loads(whole) != json.loads(few)
    said = run("importance", model, "--data", rows, "-o", study, "--json")
    assert json.loads(said)
    assert run("curve", study, model, "--data", rows)
    said = run("prune", model, "--off", "0.1,2.0,4.1,5.3,7.2", "-o", tmp_path / "small")
    assert "5 heads of 44 removed" in said
    ids, off = blt.ids_of(20), {(0, 1), (2, 0), (4, 1), (5, 3), (7, 2)}
    wanted = open_model(model).run(ids, off=off).logits
    assert scaled_error(open_model(tmp_path / "small").run(ids).logits, wanted) < 1e-5


def test_two_are_compared_and_an_answer_is_traced_back(run, root, captured):
    assert "Logits at 26 of 26 places" in run(
        "compare", captured(), captured("two", TEXT, "--boundaries", "whitespace")
    )
    assert "26" in run("compare", captured(), captured("one"))
    assert "." in run("attribute", root / "two", "--text", "The river.")
    assert "no output depends on a later token" in run("reach", root / "two", "--text", TEXT)


def test_a_layer_between_levels_that_has_lost_all_heads_is_written_and_opens(run, root, tmp_path):
    run("prune", root / "two", "--off", "7.*", "-o", tmp_path / "out")
    ids = np.frombuffer(TEXT.encode(), np.uint8).astype(np.int64)
    whole, left = open_model(root / "two"), open_model(tmp_path / "out")
    off = frozenset(HeadId(7, head) for head in range(4))
    given = whole.tokenize(TEXT).ids
    assert len(given) == len(ids)
    assert scaled_error(left.run(given).logits, whole.run(given, off=off).logits) < 1e-5
    assert "11 layers" in run("capture", tmp_path / "out", "--text", TEXT, "-o", tmp_path / "c.h5")
