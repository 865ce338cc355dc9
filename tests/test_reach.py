"""hgviz reach: what it says, writes and refuses, and models without attention in every command."""

import csv
import json
import shlex

import numpy as np
import pytest
from PIL import Image

from hgviz.figures import labels
from hgviz.figures.output import compose
from hgviz.figures.spec import Spec
from hgviz.models import open_model
from hgviz.tasks import reach, reach_panel
from hgviz.tasks.reachability import Reach, Times, random_prompts
from tests.figures.flaws import flaws
from tests.models.building import write_checkpoint, write_transformer, write_unattending

TEXT = "The sand runs down."
GLASS = {"hierarchy": "1@1 1@4 1@1", "vocab_size": 256}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A model of every kind, over bytes."""
    root = tmp_path_factory.mktemp("models")
    write_unattending(root / "lstm", family="lstm", vocab_size=256)
    (root / "lstm" / "text.txt").write_text(TEXT * 20)
    write_unattending(root / "window", family="window", window=3, vocab_size=256)
    write_transformer(root / "gpt", family="gpt2", max_positions=64, vocab_size=256)
    write_checkpoint(root / "glass", **GLASS)
    write_transformer(root / "two", form="encoder-decoder", vocab_size=256)
    return root


@pytest.fixture(autouse=True)
def here(folders, monkeypatch):
    """Commands run where the models lie."""
    monkeypatch.chdir(folders)


# --- numbers --------------------------------------------------------------------------------------


def made(matrix):
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
    found = made(OWN)
    np.testing.assert_allclose(found.profile, FADING)
    assert [found.fades(share) for share in (0.1, 0.01, 0.0)] == [4, 5, 5]
    assert (found.farthest, found.is_causal, found.is_full, found.lag) == (4, True, False, 0)
    assert made(OWN + OWN.T).profile[3] == pytest.approx(0.2)
    assert not made(OWN.T).is_causal and made(OWN.T).later == 0.5
    # the lag is what is not in yet; 0 where nothing before is heard at all
    assert [made(own).lag for own in (FIRST, np.eye(5), [[1.0]])] == [3, 0, 0]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (BAND, "and none on one more than 2 before it"),
        (BAND, "from 3 tokens on influence is exactly 0"),
        (np.maximum(BAND, BAND.T), "on a token more than 2 away"),
        (np.ones((3, 3)), "later tokens, too, each on all"),
        (STAIRCASE, "not each on all before it; up to 1 right before"),
    ],
)
def test_a_sentence_is_true_of_its_numbers(own, said):
    assert said in made(own).describe("a")


def test_the_growth_of_times_is_that_of_their_last_two():
    found = Times((10, 100, 200), ((1.0, 5.0, 20.0), (1.0, 2.0, 4.0)))
    assert [found.growth(at) for at in (0, 1)] == pytest.approx([2.0, 1.0])
    assert Times((10,), ((1.0,),)).growth(0) is None


# --- the command ----------------------------------------------------------------------------------


def test_every_kind_of_model_is_told_beside_what_it_costs(facts, output):
    told = facts("reach", "lstm", "window", "gpt", "glass", "--text", TEXT)
    assert [one["causal"] for one in told["reach"]] == [True] * 4
    assert [one["farthest"] for one in told["reach"]] == [18, 4, 18, 18]
    assert [one["zero_from"] for one in told["reach"]] == [None, 5, None, None]
    rows = {(one["model"], one["at"], one["order"]) for one in told["mixing"]}
    assert {("lstm", "1:1", "n d²"), ("window", "1:1", "n w d²"), ("gpt", "1:1", "n² d"),
            ("glass", "1:4", "(n/4)² d")} <= rows  # fmt: skip
    assert "milliseconds" not in told
    said = output("reach", "window", "--tokens", "9", "--lengths", "4,8")
    assert "none on one more than 4 before it" in said
    assert "grows as n to the" in said and "n w d²" in said


def test_what_is_written_is_what_was_measured(output, tmp_path):
    model = open_model("window", dtype="float64")
    found = reach(model, model.tokenize(TEXT))
    for ending in ("npy", "json", "csv"):
        output("reach", "window", "--text", TEXT, "-o", tmp_path / f"r.{ending}")
    np.testing.assert_array_equal(np.load(tmp_path / "r.npy"), found.own)
    assert json.loads((tmp_path / "r.json").read_text())["reach"][0]["later"] == 0.0
    names, *rows = csv.reader((tmp_path / "r.csv").read_text().splitlines())
    cells = [row for row in rows if row[1] == "output by input token"]
    assert names == ["model", "shown", "x", "y", "value"] and len(cells) == 19 * 19
    values = np.array([float(row[4]) for row in cells]).reshape(19, 19)
    np.testing.assert_allclose(values, found.own / found.own.max(), rtol=1e-6)


def test_a_figure_says_the_command_that_draws_it_again(output):
    words = ["reach", "lstm", "two", "--text", TEXT, "--target", "Sand", "--width", "icml",
             "--title", "Two", "-o", "r.png"]  # fmt: skip
    assert "2 models reach" in output(*words)
    with Image.open("r.png") as image:
        stored = image.info["Description"].rpartition("command: ")[2]
    assert shlex.split(stored) == ["hgviz", *words]


def test_a_text_of_states_and_of_two_sides_can_be_drawn_at_random(folders, tmp_path):
    write_transformer(tmp_path, form="decoder", cross=True)
    for path in (tmp_path, folders / "two", folders / "lstm"):
        model = open_model(path, dtype="float64")
        prompt, target = random_prompts(model, 5)
        assert len(prompt) == 5 and (target is not None) == model.spec.two_texts
        assert reach(model, prompt, target).own.shape == (5, 5)


@pytest.mark.parametrize("width", ["1.6in", "acl", "neurips", "icml2"])
@pytest.mark.parametrize(
    "names", [("lstm",), ("two", "window"), ("lstm", "window", "gpt", "glass")]
)
def test_no_figure_has_a_flaw(folders, names, width):
    found = []
    for name in names:
        model = open_model(folders / name, dtype="float64")
        found.append(reach(model, *random_prompts(model, 12)))
    rows = tuple((0.001 * 2**at, 0.003, 0.02) for at in range(len(names)))
    timed = Times((64, 256, 1024), rows)
    for seconds in (None, timed):
        panel = reach_panel(Spec("reach", width=width), found, seconds, (), names)
        with labels.figure_settings():
            page = compose(panel.spec, panel.content)
            assert flaws(page) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("reach lstm", 2, "exactly one of"),
        ("reach lstm --text a --tokens 3", 2, "exactly one of"),
        ("reach lstm --tokens 0", 2, "--tokens"),
        ("reach lstm --tokens 3 --target a", 2, "go with --text"),
        ("reach lstm --text a --lengths 4,x", 2, "no list of lengths"),
        ("reach lstm --text a -o r.doc", 2, "does not end in"),
        ("reach lstm gpt --text a -o r.npy", 2, "one model"),
        ("reach gpt --text a --lengths 4,99", 1, "at most 64"),
        ("reach lstm --tokens 2000", 1, "2,000 tokens"),
        ("reach two --text a", 1, "--target"),
        ("reach nothing --text a", 1, "no nothing"),
        ("reach lstm --text=", 1, "empty"),
        ("figure sample/first.h5 --kind reach -o r.pdf", 2, "hgviz reach MODEL --text T"),
        ("logits lstm --generate 5 -o l.npy", 2, "go with a text"),
        ("logits lstm -o l.npy", 2, "--text T"),
    ],
)
def test_wrong_use_is_one_clear_line(refusal, words, code, said):
    assert said in refusal(*words.split(), code=code)


# --- models without attention ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        "capture lstm --text Sand -o c.h5",
        "capture window --text Sand --generate 3 -o c.h5",
        "capture lstm --corpus sample/reviews.tsv -o c.h5",
        "capture lstm --text Sand --off 0.0 -o c.h5",
        "capture window --text Sand --activation ymish -o c.h5",
        "heads lstm --text Sand",
        "attribute window --text Sand",
        "importance lstm --data lstm/text.txt -o c.h5",
        "prune lstm --off 0.0 -o pruned",
        "compare gpt lstm --text Sand --json",
        "compare lstm gpt --data lstm/text.txt -o r.html",
    ],
)
def test_heads_and_maps_of_a_model_without_any_are_refused_in_one_line(refusal, folders, words):
    before = {path.name for path in folders.iterdir()}
    error = refusal(*words.split())
    assert "does not attend" in error and "hgviz reach MODEL --text T" in error
    assert {path.name for path in folders.iterdir()} == before


def test_all_else_works(facts, output, tmp_path):
    said, told = output("info", "lstm"), facts("info", "window")
    assert "family: lstm" in said and "This model does not attend: " in said
    assert told["layers"] == [] and told["parameters"] > 0
    for name in ("lstm", "window", "gpt", "glass"):
        out = tmp_path / f"{name}.npy"
        output("logits", name, "--text", "The", "--generate", 5, "--seed", 2, "-o", out)
        assert np.load(out).shape == (8, 256)
        if name in ("lstm", "window"):
            assert facts("evaluate", name, "--data", "lstm/text.txt")["loss"] > 0
            output("convert", name, "-o", tmp_path / name)
            output("logits", tmp_path / name, "--text", TEXT, "-o", out)
            wanted = open_model(name).run(list(TEXT.encode())).logits
            np.testing.assert_array_equal(np.load(out), wanted)


TRAINED = {
    "lstm": 'family = "lstm"\nd_model = 16\nn_layers = 1\nvocab_size = 256',
    "window": 'family = "window"\nwindow = 3\nd_model = 16\nn_layers = 2\nvocab_size = 256',
    "both": 'family = "window"\nwindow = 3\ncausal = false\nd_model = 16\nn_layers = 2',
}


@pytest.mark.parametrize("name", TRAINED)
def test_a_model_without_attention_is_trained_by_a_file(run, tmp_path, name):
    (tmp_path / "text.txt").write_text("the sand runs down and the glass is turned\n" * 60)
    words = '[tokenizer]\nkind = "words"\nsize = 40\n' if name == "both" else ""
    (tmp_path / "plan.toml").write_text(
        f"[model]\n{TRAINED[name]}\n{words}"
        '[data]\ntrain = ["text.txt"]\nvalid = "text.txt"\n'
        "[recipe]\nsteps = 60\nrate = 2e-2\nwarmup = 5\ninitial = 0.1\nevaluate_length = 32\n"
        "[[recipe.stages]]\nstart = 0.0\nlength = 32\nbatch = 8\n"
    )
    assert run("train", tmp_path / "plan.toml", "-o", tmp_path / "out")[0] == 0
    last = json.loads((tmp_path / "out" / "log.jsonl").read_text().splitlines()[-1])
    if name == "both":
        assert last["stored_masked_accuracy"] > 0.2
    else:
        assert last["stored_bits_per_byte"] < 4.0
