"""Every command on every family, as a stranger would: small models with tokenizers of their own,
the Byte Latent Transformer, and models that do not attend, which can still be reached through."""

import csv
import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from hgviz import cli, tasks
from hgviz.analysis.composition import of_tokens
from hgviz.figures import FIGURES, labels
from hgviz.figures.output import compose
from hgviz.figures.spec import Spec, options_of
from hgviz.maps import LazyMap
from hgviz.models import open_model, pruning
from hgviz.store import open_capture, open_study
from hgviz.tasks import reach, reach_panel
from hgviz.tasks.reachability import Reach, Times, random_prompts
from tests.closeness import scaled_error
from tests.figures.flaws import flaws
from tests.models import zoo
from tests.models.building import write_checkpoint, write_transformer, write_unattending

SEEN = ["the film was not bad", "그 영화는 나쁘지 않았다", "nobody was bored by the film"]
LEARNED = {"max_positions": 40, "vocab_size": 90}
SIX = ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]
STATES = [[(row * 7 + column * 3) % 11 / 5 - 1 for column in range(12)] for row in range(6)]
FILM, NOT_BAD = ("--text", "the film was bad"), ("--text", "the film was not bad")
LABELS = {"labels": ["bad", "good"], **LEARNED}
BERT, DECODER = {"family": "bert"}, {"form": "decoder", "vocab_size": 90}
# family -> the keys of its config, what it is given, (queries, keys) of its last layer
FAMILIES = {
    "bert": (BERT | LEARNED, FILM, (6, 6)),
    "pair": (BERT | LEARNED, ("--text", "the film", "--text-pair", "nobody was bored"), (8, 8)),
    "classifier": (BERT | {"goal": "classes"} | LABELS, NOT_BAD, (7, 7)),
    "headless": (BERT | {"goal": "states", "transform": False} | LEARNED, ("--text", "그 영화는"),
                 (4, 4)),
    "gpt2": ({"family": "gpt2"} | LEARNED, FILM, (6, 6)),
    "six": ({"family": "yubert", "cls": 1, "n_heads": 6, "d_model": 24} | LABELS
            | {"activations": SIX}, FILM, (6, 6)),
    "slots": ({"family": "yubert", "slots": 5, "activations": "softmax"} | LABELS, FILM, (6, 5)),
    "synthesizer": ({"family": "gpt2", "scores": ["dense", "dot+random"]} | LEARNED, FILM, (6, 6)),
    "kernels": (DECODER | {"positions": "quadratic", "n_heads": 6, "top_k": 3, "activations":
                           ["rbf", "poly2", "raw", "softmax", "topk", "rbf"]}, FILM, (6, 6)),
    "both": ({"form": "encoder-decoder", "vocab_size": 90},
             ("--text", "그 영화는 나쁘지 않았다", "--target", "the film was bad"), (6, 6)),
    "over states": (DECODER | {"cross": True},
                    {"input_ids": [2, 7, 8, 3], "encoder_hidden_states": STATES,
                     "encoder_attention_mask": [1] * 5 + [0]}, (4, 6)),
    "one token": (DECODER, {"input_ids": [4]}, (1, 1)),
    "hourglass": (None, FILM, (16, 16)),
    "segments": ({"family": "dynamic", "n_layers": [1, 2, 1], "boundaries": "fixed",
                  "shorten_factor": 3, "vocab_size": 90}, NOT_BAD, (7, 7)),
    "collaborative": (BERT | {"shared_width": 7} | LEARNED, FILM, (6, 6)),
}  # fmt: skip


def write_pieces(folder):
    """A WordPiece tokenizer with [CLS] and [SEP], trained on the few words there are."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False)
    made.train_from_iterator(SEEN, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    made.save(str(folder / "tokenizer.json"))


def call(*arguments):
    """Run a command line; returns its exit code."""
    return cli.main([str(one) for one in arguments], cli.Window(None, None))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """made(family): its folder, its capture and the options that its text came by."""
    root, done = tmp_path_factory.mktemp("families"), {}

    def make(name):
        if name in done:
            return done[name]
        keys, given, _ = FAMILIES[name]
        folder, out = root / name, root / f"{name}.h5"
        if keys is None:
            write_checkpoint(folder, vocab_size=256, dtype=torch.float32)
        else:
            write_transformer(folder, dtype=torch.float32, **keys)
            write_pieces(folder)
        if isinstance(given, dict):
            file = root / f"{name}.json"
            file.write_text(json.dumps(given))
            given = ("--ids", file)
        assert call("capture", folder, *given, "-o", out, "--device", "cpu") == 0
        done[name] = folder, out, given
        return done[name]

    return make


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in ("bert", "gpt2")])
def test_commands_write_what_the_model_computes(made, output, facts, family, tmp_path):
    folder, out, _ = made(family)
    whole, part, held = facts("info", folder), facts("info", out), open_capture(out)
    model, last, length = open_model(folder), len(held.maps) - 1, len(held.main)
    assert (whole["kind"], part["kind"], part["complete"]) == ("checkpoint", "capture", True)
    assert (whole["levels"], whole["goal"]) == (part["levels"], part["goal"])
    for one, other in zip(whole["layers"], part["layers"], strict=True):
        for key in ("name", "role", "level", "key_level", "heads", "activations"):
            assert one[key] == other[key]
    assert (part["layers"][-1]["queries"], part["layers"][-1]["keys"]) == FAMILIES[family][2]
    assert all(isinstance(one, LazyMap) for one in held.maps)  # nothing kept that can be computed
    sizes = {"classes": (len(model.spec.labels),), "states": (length, model.spec.width)}
    output("logits", out, "-o", tmp_path / "logits.npy")
    logits = np.load(tmp_path / "logits.npy")
    assert logits.shape == sizes.get(model.spec.goal, (length, model.spec.vocabulary))
    np.testing.assert_allclose(logits, model.trace(held.prompt, held.target), atol=1e-5)
    output("map", out, "--layer", last, "--head", 1, "-o", tmp_path / "m.npy")
    assert np.load(tmp_path / "m.npy").shape == FAMILIES[family][2]
    np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), held.maps[last].read(1))
    output("rollout", out, "-o", tmp_path / "r.npy")
    rolled = np.load(tmp_path / "r.npy")
    columns = length + len(held.prompt) * (held.target is not None)
    assert rolled.shape == (length, columns) and (rolled >= 0).all()
    np.testing.assert_allclose(rolled.sum(1), 1, atol=1e-5)
    output("rollout", out, "--rows", f"{length - 1}:{length}", "-o", tmp_path / "r.npy")
    np.testing.assert_allclose(np.load(tmp_path / "r.npy"), rolled[-1:], atol=1e-6)
    heads = facts("compare", out, out)["heads"]
    assert len(heads) == sum(len(one.heads) for one in held.maps)
    assert all(one["largest"] == 0 for one in heads)


def test_two_texts_are_told_and_may_be_given_as_ids(made, facts, output, tmp_path):
    folder, out, _ = made("both")
    told, held = facts("info", out), open_capture(out)
    assert [one["sequence"] for one in told["levels"]] == ["source", "target"]
    assert told["provenance"]["text"] != told["provenance"]["target"]
    assert [one["role"] for one in told["layers"]][-2:] == ["self", "cross"]
    words = ("--text", "the film", "--target", "그", "-o", tmp_path / "again.h5")
    assert "4 tokens of source and 3 tokens of target" in output("capture", folder, *words)
    model, _, given = made("over states")
    said = output("capture", model, *given, "-o", tmp_path / "over.h5")
    assert "6 states of an encoder and 4 tokens of target" in said
    prompt = open_capture(made("pair")[1]).prompt
    assert prompt.token_type_ids.tolist() == [0] * 4 + [1] * 4
    assert prompt.text == "the film\nnobody was bored"
    ids = {
        "input_ids": held.prompt.ids.tolist(), "attention_mask": [1] * len(held.prompt),
        "decoder_input_ids": held.target.ids.tolist(),
        "decoder_attention_mask": [1] * len(held.target),
    }  # fmt: skip
    (tmp_path / "ids.json").write_text(json.dumps(ids))
    output("capture", folder, "--ids", tmp_path / "ids.json", "-o", tmp_path / "ids.h5")
    np.testing.assert_allclose(open_capture(tmp_path / "ids.h5").logits, held.logits, atol=1e-4)


KINDS = [one.name for one in FIGURES.values() if one.of in ("capture", "captures", "pair")]
KINDS.remove("image")  # which is of images alone


@pytest.mark.parametrize("family", ["both", "six", "slots", "one token"])
def test_every_kind_of_figure_is_drawn_of_maps_of_every_shape(made, output, family, tmp_path):
    _, out, _ = made(family)
    values = {"layer": len(open_capture(out).maps) - 1, "head": 1, "query": 0, "width": "acl"}
    for kind in KINDS:
        file = tmp_path / f"{kind}.svg"
        files = (out, out) if FIGURES[kind].of == "pair" else (out,)
        words = [word for name in options_of(kind) if name in values
                 for word in (f"--{name}", values[name])]  # fmt: skip
        assert str(file) in output("figure", *files, "--kind", kind, *words, "-o", file), kind
    drawn = (tmp_path / "map.svg").read_text()
    shown = {"both": ("film", "영화는", "Source →", "Target ↓"), "six": ("Row sum",)}
    assert all(f">{one}<" in drawn for one in shown.get(family, ()))


def test_the_tokens_behind_slots_are_written_and_drawn(made, output, refusal, tmp_path):
    _, out, _ = made("slots")
    asked = ("--tokens", "--layer", 1, "--head", 1)
    output("map", out, *asked, "-o", tmp_path / "m.npy")
    found = np.load(tmp_path / "m.npy")
    assert np.array_equal(found, of_tokens(open_capture(out)).maps[1].read(1))
    output("figure", out, "--kind", "map", *asked, "-o", tmp_path / "m.svg")
    drawn = (tmp_path / "m.svg").read_text()
    assert "--kind map --layer 1 --head 1 --tokens" in drawn and ">film<" in drawn
    error = refusal("map", made("bert")[1], *asked, "-o", tmp_path / "n.npy")
    assert "keys of this model are tokens" in error


def test_a_float64_capture_reads_the_states_of_an_encoder_as_they_are_written(output, tmp_path):
    write_transformer(tmp_path / "m", form="decoder", cross=True, vocab_size=90)
    states = np.random.default_rng(0).normal(size=(1, 12))
    given = {"input_ids": [2, 7], "encoder_hidden_states": states.tolist()}
    (tmp_path / "f.json").write_text(json.dumps(given))
    asked = ("--ids", tmp_path / "f.json", "--dtype", "float64", "-o", tmp_path / "c.h5")
    shown = output("capture", tmp_path / "m", *asked)
    assert shown.endswith("on 1 state of an encoder and 2 tokens of target.\n")
    output("logits", tmp_path / "c.h5", "-o", tmp_path / "l.npy")
    wanted = open_model(tmp_path / "m", dtype="float64").run([2, 7], encoder_states=states).logits
    assert abs(np.load(tmp_path / "l.npy") - wanted).max() <= 1e-12


# --- what cannot be -------------------------------------------------------------------------------

WRONG = [  # family, what it is given, what is said
    ("both", ("--text", "a"), "--target"),
    ("both", ("--text", "a", "--target", "b", "--off", "6.0"), "no head 6.0"),
    ("over states", {"input_ids": [2], "encoder_hidden_states": [[1.0, 2.0]]}, "encoder states"),
    ("over states", {"input_ids": [2], "encoder_hidden_states": [[1], []]}, "not a matrix"),
    ("over states", ("--text", "a"), "--ids"),
    ("bert", {"input_ids": [2], "encoder_hidden_states": STATES}, "does not accept"),
    ("gpt2", {"input_ids": [2], "decoder_input_ids": [2]}, "does not accept"),
    ("gpt2", ("--text", "a", "--text-pair", "b"), "token types"),
    ("bert", {"input_ids": [2], "token_type_ids": [7]}, "token_type_ids"),
    ("bert", {"input_ids": [2], "decoder_attention_mask": [1]}, "decoder_input_ids"),
    ("bert", {"input_ids": [2], "boundaries": [1]}, "boundaries"),
    ("bert", {"input_ids": []}, "empty"),
    ("bert", {"input_ids": [90]}, "0 to 89"),
    ("bert", {"input_ids": [2], "ids": [1]}, "unknown field"),
    ("bert", ("--text", "the film " * 40), "40 tokens"),
]


def test_a_wrong_combination_is_one_line_that_says_what_is_needed(made, refusal, tmp_path):
    for family, given, said in WRONG:
        if isinstance(given, dict):
            (tmp_path / "ids.json").write_text(json.dumps(given))
            given = ("--ids", tmp_path / "ids.json")
        assert said in refusal("capture", made(family)[0], *given, "-o", tmp_path / "out.h5"), given
        assert not list(tmp_path.glob("out.h5*"))
    write_transformer(tmp_path / "m", form="encoder-decoder", vocab_size=256)
    words = ("--text", "a", "--target", "", "-o", tmp_path / "out.h5")
    assert "empty" in refusal("capture", tmp_path / "m", *words)


# --- the Byte Latent Transformer ------------------------------------------------------------------


RIVER = "The river broke its banks."
ROWS = (f"{RIVER[:-1]} in the night.", "Hi", "A cat sat on the mat.", "Nobody knew.") * 2


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A model of two parts, one of one part, and rows of texts."""
    root = tmp_path_factory.mktemp("blt")
    zoo.write_blt(root / "two", "BltForCausalLM")
    zoo.write_blt(root / "one", "BltForCausalLM", cross_attn_k=1, patch_in_forward=False)
    (root / "rows.tsv").write_text("text\n" + "\n".join(ROWS) + "\n")
    return root


@pytest.fixture
def captured(output, root):
    """(model, text) -> a capture, made by the command."""

    def find(model="two", text=RIVER, *more):
        out = root / f"{model}-{len(text)}{''.join(map(str, more))}.h5"
        if not out.exists():
            output("capture", root / model, "--text", text, "-o", out, *more)
        return out

    return find


def test_segments_are_named_written_and_drawn(facts, output, root, captured, tmp_path):
    whole, part = facts("info", root / "two"), facts("info", captured())
    assert [one["stride"] for one in whole["levels"]] == [1, None, None]
    assert [one["parts"] for one in whole["levels"]] == [1, 2, 1]
    assert part["levels"] == whole["levels"] and part["complete"] is True
    assert [one["role"] for one in part["layers"]] == [
        "self", "self", "self", "self", "down", "self", "self", "up", "self", "up", "self",
    ]  # fmt: skip
    assert "boundaries: found by the model" in output("info", captured())
    split = captured("two", RIVER, "--boundaries", "whitespace")
    assert "boundaries: given" in output("info", split)
    for file in (captured(), captured("one", "a")):
        held = open_capture(file)
        for layer in (one.index for one in held.spec.layers if one.role != "self"):
            output("map", file, "--layer", layer, "--head", 1, "-o", tmp_path / "m.npy")
            np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), held.maps[layer].read(1))
        output("rollout", file, "-o", tmp_path / "r.npy")
        rolled = np.load(tmp_path / "r.npy")
        assert rolled.shape == (len(held.prompt),) * 2 and np.allclose(rolled.sum(1), 1, atol=1e-5)
        assert "4.1" in output("heads", file)
        output("figure", file, "--kind", "levels", "-o", tmp_path / "levels.svg")
        assert "segments" in (tmp_path / "levels.svg").read_text()


def test_heads_are_scored_switched_off_taken_away_compared_and_traced_back(
    refusal, facts, output, root, captured, tmp_path, monkeypatch
):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    model, rows, study = root / "two", root / "rows.tsv", tmp_path / "s.h5"
    refusal("capture", model, "--text", "", "-o", tmp_path / "e.h5")
    whole = facts("evaluate", model, "--data", rows)
    assert whole != facts("evaluate", model, "--data", rows, "--off", "4.*,7.1,0.0")
    assert facts("importance", model, "--data", rows, "-o", study)
    measured, trials = open_study(study), tasks.trials_of(open_model(model), rows)
    assert len(tasks.curve(trials, measured, random=1, most=3).curves) == 2
    ids, out = zoo.bytes_of(20), tmp_path / "out"
    # none of the heads of a layer between levels is left
    off = {(0, 1), (2, 0), (4, 1), (5, 3), *((7, head) for head in range(4))}
    words = ("--off", "0.1,2.0,4.1,5.3,7.*", "--data", rows, "-o", out)
    assert "8 heads of 44 removed" in output("prune", model, *words)
    wanted = open_model(model).run(ids, off=off).logits
    assert scaled_error(open_model(out).run(ids).logits, wanted) < 1e-5
    assert "11 layers" in output("capture", out, "--text", RIVER, "-o", tmp_path / "c.h5")
    pair = captured(), captured("two", RIVER, "--boundaries", "whitespace")
    assert "Logits at 26 of 26 positions" in output("compare", *pair)
    assert "." in output("attribute", model, "--text", "The river.", "--steps", 4)
    assert "no output depends on a later token" in output("reach", model, "--text", RIVER)


# --- how far models reach, with and without attention ---------------------------------------------


TEXT = "The sand runs down."
GLASS = {"hierarchy": "1@1 1@4 1@1", "vocab_size": 256}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    """A model of every kind, over bytes."""
    root = tmp_path_factory.mktemp("models")
    write_unattending(root / "lstm", family="lstm", vocab_size=256)
    (root / "lstm" / "text.txt").write_text(TEXT * 20)
    write_unattending(root / "window", family="window", window=3, vocab_size=256)
    write_transformer(root / "gpt", family="gpt2", max_positions=64, vocab_size=256)
    write_checkpoint(root / "glass", **GLASS)
    write_transformer(root / "two", form="encoder-decoder", vocab_size=256)
    write_transformer(root / "states", form="decoder", cross=True)
    return root


@pytest.fixture
def folders(kinds, monkeypatch):
    """Commands run where the models lie."""
    monkeypatch.chdir(kinds)
    return kinds


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


def test_every_kind_of_model_is_told_beside_what_it_costs(folders, facts, output):
    told = facts("reach", "lstm", "window", "gpt", "glass", "--text", TEXT)
    assert [one["causal"] for one in told["reach"]] == [True] * 4
    assert [one["farthest"] for one in told["reach"]] == [18, 4, 18, 18]
    assert [one["zero_from"] for one in told["reach"]] == [None, 5, None, None]
    rows = {(one["model"], one["at"], one["order"]) for one in told["mixing"]}
    assert {("lstm", "1:1", "n d²"), ("window", "1:1", "n w d²"), ("gpt", "1:1", "n² d"),
            ("glass", "1:4", "(n/4)² d")} <= rows  # fmt: skip
    assert "milliseconds" not in told
    said = output("reach", "window", "--tokens", "9", "--lengths", "4,8")
    assert "or on one more than 4 back" in said
    assert "grows as n to the" in said and "n w d²" in said


def test_what_is_written_is_what_was_measured(folders, output, tmp_path):
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


@pytest.mark.parametrize(
    ("names", "width"),
    [(("states",), "1.6in"), (("two", "window"), "acl"),
     (("lstm", "window", "gpt", "glass"), "icml2")],
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


def test_all_else_works(folders, facts, output, tmp_path):
    said, told = output("info", "lstm"), facts("info", "window")
    assert "family: lstm" in said and "This model has no attention: " in said
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
    "lstm": ('family = "lstm"\nn_layers = 1\nvocab_size = 256', "bits_per_byte", 0, 4.0),
    "window": (
        'family = "window"\nwindow = 3\ncausal = false\nn_layers = 2\n'
        '[tokenizer]\nkind = "words"\nsize = 40', "masked_accuracy", 0.2, 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "metric", "low", "high"), TRAINED.values(), ids=TRAINED)
def test_a_model_without_attention_is_trained_by_a_file(run, tmp_path, model, metric, low, high):
    (tmp_path / "text.txt").write_text("the sand runs down and the glass is turned\n" * 60)
    (tmp_path / "plan.toml").write_text(
        f'[model]\nd_model = 16\n{model}\n[data]\ntrain = ["text.txt"]\nvalid = "text.txt"\n'
        "[recipe]\nsteps = 60\nrate = 2e-2\nwarmup = 5\ninitial = 0.1\nevaluate_length = 32\n"
        "[[recipe.stages]]\nstart = 0.0\nlength = 32\nbatch = 8\n"
    )
    code, said, _ = run("train", tmp_path / "plan.toml", "-o", tmp_path / "out")
    assert code == 0 and metric.replace("_", " ") in said and "60 steps" in said
    last = json.loads((tmp_path / "out" / "log.jsonl").read_text().splitlines()[-1])
    assert low < last[f"stored_{metric}"] < high
