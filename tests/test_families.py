"""Every command on every family, as a stranger would: small models with tokenizers of their own,
the Byte Latent Transformer, and models that do not attend, which can still be reached through."""

import csv
import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from hgviz import cli, tasks
from hgviz.figures import FIGURES, labels
from hgviz.figures.output import compose
from hgviz.figures.spec import Spec
from hgviz.models import open_model, pruning
from hgviz.store import open_study
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


KINDS = [one.name for one in FIGURES.values() if one.of in ("capture", "captures", "pair")]
KINDS.remove("image")  # which is of images alone


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
