"""Commands on models that read other things than one text, or that have no attention, and how far
models reach."""

import csv
import json

import numpy as np
import pytest

from hgviz.figures import labels
from hgviz.figures.output import compose
from hgviz.figures.spec import Spec
from hgviz.models import open_model
from hgviz.tasks import reach, reach_panel
from hgviz.tasks.reachability import Reach, Times, random_prompts
from tests.figures.flaws import flaws
from tests.models.building import write_checkpoint, write_transformer, write_unattending

TEXT = "The sand runs down."
STATES = [[(row * 7 + column * 3) % 11 / 5 - 1 for column in range(12)] for row in range(6)]


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """A model of every kind, over bytes."""
    root = tmp_path_factory.mktemp("models")
    write_unattending(root / "lstm", family="lstm", vocab_size=256)
    (root / "lstm" / "text.txt").write_text(TEXT * 20)
    write_unattending(root / "window", family="window", window=3, vocab_size=256)
    write_transformer(root / "gpt", family="gpt2", max_positions=64, vocab_size=256)
    write_transformer(root / "bert", family="bert", max_positions=64, vocab_size=256)
    write_checkpoint(root / "glass", hierarchy="1@1 1@4 1@1", vocab_size=256)
    write_transformer(root / "two", form="encoder-decoder", vocab_size=256)
    write_transformer(root / "states", form="decoder", cross=True)
    return root


@pytest.fixture
def folders(kinds, monkeypatch):
    """Commands run where the models lie."""
    monkeypatch.chdir(kinds)
    return kinds


# --- texts that a model does not read -------------------------------------------------------------

WRONG = [  # model, what it is given, what is said
    ("two", ("--text", "a"), "--target"),
    ("two", ("--text", "a", "--target", ""), "empty"),
    ("two", ("--text", "a", "--target", "b", "--off", "6.0"), "no head 6.0"),
    ("states", {"input_ids": [2], "encoder_hidden_states": [[1.0, 2.0]]}, "encoder states"),
    ("states", {"input_ids": [2], "encoder_hidden_states": [[1], []]}, "not a matrix"),
    ("states", ("--text", "a"), "--ids"),
    ("bert", {"input_ids": [2], "encoder_hidden_states": STATES}, "does not accept"),
    ("gpt", {"input_ids": [2], "decoder_input_ids": [2]}, "does not accept"),
    ("gpt", ("--text", "a", "--text-pair", "b"), "text pairs"),
    ("bert", {"input_ids": [2], "token_type_ids": [7]}, "token_type_ids"),
    ("bert", {"input_ids": [2], "decoder_attention_mask": [1]}, "decoder_input_ids"),
    ("bert", {"input_ids": [2], "boundaries": [1]}, "boundaries"),
    ("bert", {"input_ids": []}, "empty"),
    ("bert", {"input_ids": [256]}, "0 to 255"),
    ("bert", {"input_ids": [2], "ids": [1]}, "unknown field"),
    ("bert", ("--text", "the film " * 40), "the maximum is 64"),
]


def test_a_wrong_combination_is_one_line_that_says_what_is_needed(folders, refusal, tmp_path):
    for name, given, said in WRONG:
        if isinstance(given, dict):
            (tmp_path / "ids.json").write_text(json.dumps(given))
            given = ("--ids", tmp_path / "ids.json")
        assert said in refusal("capture", name, *given, "-o", tmp_path / "out.h5"), given
        assert not list(tmp_path.glob("out.h5*"))


# --- how far models reach, with and without attention ---------------------------------------------


def measured(matrix):
    """What would be measured of a model whose matrix this is."""
    return Reach(None, None, np.asarray(matrix, float))


FADING = [1.0, 0.5, 0.001, 0.2, 0.02, 0.0]
OWN = sum(np.diag(np.full(6 - at, one), -at) for at, one in enumerate(FADING))
BAND = np.tril(np.ones((6, 6))) - np.tril(np.ones((6, 6)), -3)
STAIRCASE = np.tril(np.ones((6, 6)))
STAIRCASE[4, 3] = 0.0
FIRST = np.eye(5)
FIRST[:, 0] = 1.0


def test_where_influence_fades_is_where_it_stays_small():
    found = measured(OWN)
    np.testing.assert_allclose(found.profile, FADING)
    assert [found.fades(share) for share in (0.1, 0.01, 0.0)] == [4, 5, 5]
    assert (found.farthest, found.is_causal, found.is_full, found.lag) == (4, True, False, 0)
    assert measured(OWN + OWN.T).profile[3] == pytest.approx(0.2)
    assert not measured(OWN.T).is_causal and measured(OWN.T).later == 0.5
    # the lag is what is not in yet; 0 where nothing before is heard at all
    assert [measured(own).lag for own in (FIRST, np.eye(5), [[1.0]])] == [3, 0, 0]
    for own, said in (
        (BAND, "or on one more than 2 back"),
        (BAND, "influence is exactly 0 from 3 tokens apart"),
        (np.maximum(BAND, BAND.T), "on a token more than 2 away"),
        (np.ones((3, 3)), "later tokens, each on all"),
        (STAIRCASE, "not each on all earlier tokens; outputs do not depend on up to 1"),
    ):
        assert said in measured(own).describe("a")
    times = Times((10, 100, 200), ((1.0, 5.0, 20.0), (1.0, 2.0, 4.0)))
    assert [times.growth(at) for at in (0, 1)] == pytest.approx([2.0, 1.0])  # of the last two
    assert Times((10,), ((1.0,),)).growth(0) is None


def test_what_is_written_is_what_was_measured(folders, output, tmp_path):
    model = open_model("window", dtype="float64")
    found = reach(model, model.tokenize(TEXT))
    assert "This model has no attention: " in output("info", "window")
    for ending in ("npy", "json", "csv"):
        output("reach", "window", "--text", TEXT, "-o", tmp_path / f"r.{ending}")
    np.testing.assert_array_equal(np.load(tmp_path / "r.npy"), found.own)
    assert json.loads((tmp_path / "r.json").read_text())["reach"][0]["later"] == 0.0
    names, *rows = csv.reader((tmp_path / "r.csv").read_text().splitlines())
    cells = [row for row in rows if row[1] == "output by input token"]
    assert names == ["model", "shown", "x", "y", "value"] and len(cells) == 19 * 19
    values = np.array([float(row[4]) for row in cells]).reshape(19, 19)
    np.testing.assert_allclose(values, found.own / found.own.max(), rtol=1e-6)


@pytest.mark.parametrize(
    ("names", "width"),
    [(("states",), "1.6in"), (("two", "window"), "acl"), (("lstm", "gpt", "glass"), "icml2")],
)  # fmt: skip
def test_no_figure_has_a_flaw(folders, names, width):
    found = []
    for name in names:
        model = open_model(folders / name, dtype="float64")
        prompt, target = random_prompts(model, 12)
        assert len(prompt) == 12 and (target is not None) == model.spec.two_texts
        found.append(reach(model, prompt, target))
        assert found[-1].own.shape == (12, 12)
    rows = tuple((0.001 * 2**at, 0.003, 0.02) for at in range(len(names)))
    for seconds in (None, Times((64, 256, 1024), rows)):
        panel = reach_panel(Spec("reach", width=width), found, seconds, (), names)
        with labels.figure_settings():
            assert flaws(compose(panel.spec, panel.content)) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("reach lstm", 2, "exactly one of"),
        ("reach lstm --tokens 3 --target a", 2, "need --text"),
        ("reach lstm --text a --lengths 4,x", 2, "not a list of lengths"),
        ("reach lstm gpt --text a -o r.npy", 2, "one model"),
        ("reach gpt --text a --lengths 4,99", 1, "at most 64"),
        ("reach lstm --tokens 2000", 1, "2,000 tokens"),
        ("reach two --text a", 1, "--target"),
        ("figure sample/first.h5 --kind reach -o r.pdf", 2, "hgviz reach MODEL --text T"),
        ("logits lstm --generate 5 -o l.npy", 2, "require a text"),
        *((words, 1, "has no attention") for words in (
            "capture lstm --text Sand -o c.h5",
            "heads lstm --text Sand",
            "importance lstm --data lstm/text.txt -o c.h5",
            "prune lstm --off 0.0 -o pruned",
            "compare lstm gpt --data lstm/text.txt -o r.html",
        )),
    ],
)  # fmt: skip
def test_wrong_use_is_one_clear_line(folders, refusal, words, code, said):
    before = {path.name for path in folders.iterdir()}
    error = refusal(*words.split(), code=code)
    assert said in error and {path.name for path in folders.iterdir()} == before
    assert said != "has no attention" or "hgviz reach MODEL --text T" in error
