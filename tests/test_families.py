"""Every command on every family, as a stranger would: small models with tokenizers of their own."""

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from hgviz import cli
from hgviz.analysis.composition import of_tokens
from hgviz.core import HeadId
from hgviz.figures import FIGURES
from hgviz.figures.spec import options_of
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.store import Writer, open_capture
from tests.closeness import scaled_error
from tests.models import patches as blt
from tests.models.building import write_checkpoint, write_transformer

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
    "ymish": ({"family": "yubert"} | LABELS, FILM, (6, 6)),
    "six": ({"family": "yubert", "cls": 1, "n_heads": 6, "d_model": 24} | LABELS
            | {"activations": SIX}, FILM, (6, 6)),
    "slots": ({"family": "yubert", "slots": 5, "activations": "softmax"} | LABELS, FILM, (6, 5)),
    "linformer": (BERT | {"goal": "classes", "slots": 5, "slots_sharing": "none",
                          "slots_bias": True} | LABELS, FILM, (6, 5)),
    "synthesizer": ({"family": "gpt2", "scores": ["dense", "dot+random"]} | LEARNED, FILM, (6, 6)),
    "places alone": ({"form": "decoder", "scores": ["fixed", "factorised"], "rank": 2} | LEARNED,
                     FILM, (6, 6)),
    "kernels": (DECODER | {"positions": "quadratic", "n_heads": 6, "top_k": 3, "activations":
                           ["rbf", "poly2", "raw", "softmax", "topk", "rbf"]}, FILM, (6, 6)),
    "convolution": (DECODER | {"positions": "quadratic", "content": False}, FILM, (6, 6)),
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


# --- what there is --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoint_and_its_capture_say_what_they_are(made, run, facts, family):
    folder, out, _ = made(family)
    whole, part = facts("info", folder), facts("info", out)
    assert (whole["kind"], part["kind"]) == ("checkpoint", "capture")
    assert (whole["levels"], whole["goal"]) == (part["levels"], part["goal"])
    keys = {"index", "name", "role", "level", "key_level", "heads", "queries", "keys"}
    for one, other in zip(whole["layers"], part["layers"], strict=True):
        assert keys | {"activations"} <= set(one) & set(other)
        for key in ("name", "role", "level", "key_level", "heads", "activations"):
            assert one[key] == other[key]
        assert len(one["activations"]) == one["heads"]
    assert (part["layers"][-1]["queries"], part["layers"][-1]["keys"]) == FAMILIES[family][2]
    assert whole["parameters"] > 0 and part["complete"] is True
    for one in (folder, out):
        code, said, error = run("info", one)
        assert (code, error) == (0, "") and f"family: {whole['family']}" in said
        assert all(name in said for name in whole["labels"])
    if family == "bert":
        assert "1 level: " in run("info", folder)[1]
    if family == "pair":
        prompt = open_capture(out).prompt
        assert prompt.token_type_ids.tolist() == [0] * 4 + [1] * 4
        assert prompt.text == "the film\nnobody was bored"


def test_two_texts_are_told_in_the_levels_and_the_provenance(made, run, facts):
    folder, out, _ = made("both")
    told = facts("info", out)
    assert [one["sequence"] for one in told["levels"]] == ["source", "target"]
    assert told["provenance"]["text"] != told["provenance"]["target"]
    assert [one["role"] for one in told["layers"]][-2:] == ["self", "cross"]
    code, said, _ = run("capture", folder, "--text", "the film", "--target", "그", "-o",
                        out.with_name("again.h5"))  # fmt: skip
    assert code == 0 and "4 tokens of source and 3 tokens of target" in said
    _, said, _ = run("capture", *made("over states")[0:1], *made("over states")[2], "-o",
                     out.with_name("over.h5"))  # fmt: skip
    assert "6 states of an encoder and 4 tokens of target" in said


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_maps_and_rollouts_are_those_of_the_model(made, run, family, tmp_path):
    folder, out, _ = made(family)
    held = open_capture(out)
    assert all(isinstance(one, LazyMap) for one in held.maps)  # nothing kept that can be computed
    assert run("logits", out, "-o", tmp_path / "logits.npy")[::2] == (0, "")
    found, model = np.load(tmp_path / "logits.npy"), open_model(folder)
    length = len(held.main)
    shape = {"classes": (len(model.spec.labels),), "states": (length, model.spec.width)}.get(
        model.spec.goal, (length, model.spec.vocabulary)
    )
    assert found.shape == shape
    np.testing.assert_allclose(found, model.trace(held.prompt, held.target), atol=1e-5)

    last = len(held.maps) - 1
    assert run("map", out, "--layer", last, "--head", 1, "-o", tmp_path / "m.csv")[::2] == (0, "")
    weights = np.loadtxt(tmp_path / "m.csv", np.float32, delimiter=",", ndmin=2)
    assert weights.shape == FAMILIES[family][2]
    np.testing.assert_array_equal(weights, held.maps[last].read(1))

    code, _, error = run("rollout", out, "-o", tmp_path / "r.npy")
    assert (code, error) == (0, "")
    columns = length + len(held.prompt) * (held.target is not None)
    rolled = np.load(tmp_path / "r.npy")
    assert rolled.shape == (length, columns) and (rolled >= 0).all()
    np.testing.assert_allclose(rolled.sum(1), 1, atol=1e-5)
    assert run("rollout", out, "--rows", f"{length - 1}:{length}", "-o", tmp_path / "r.npy")[0] == 0
    np.testing.assert_allclose(np.load(tmp_path / "r.npy"), rolled[-1:], atol=1e-6)


def test_ids_in_a_file_are_the_same_as_the_text_they_stand_for(made, run, tmp_path):
    folder, out, _ = made("both")
    held = open_capture(out)
    file = tmp_path / "ids.json"
    file.write_text(
        json.dumps({
            "input_ids": held.prompt.ids.tolist(), "attention_mask": [1] * len(held.prompt),
            "decoder_input_ids": held.target.ids.tolist(),
            "decoder_attention_mask": [1] * len(held.target),
        })
    )  # fmt: skip
    assert run("capture", folder, "--ids", file, "-o", tmp_path / "ids.h5")[0] == 0
    np.testing.assert_allclose(open_capture(tmp_path / "ids.h5").logits, held.logits, atol=1e-4)


# --- figures --------------------------------------------------------------------------------------


SHOWN = [one.name for one in FIGURES.values() if one.of in ("capture", "captures", "pair")]
SHOWN.remove("image")  # which is of images alone


@pytest.mark.parametrize("kind", SHOWN)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_kind_of_figure_is_drawn_of_every_family(made, run, family, kind, tmp_path):
    _, out, _ = made(family)
    last = len(open_capture(out).maps) - 1
    file = tmp_path / "figure.svg"
    files = (out, out) if FIGURES[kind].of == "pair" else (out,)
    options = {"layer": last, "head": 1, "query": 0, "width": "acl"}
    words = [word for name in options_of(kind) if name in options
             for word in (f"--{name}", options[name])]  # fmt: skip
    code, said, error = run("figure", *files, "--kind", kind, *words, "-o", file)
    assert (code, error) == (0, "") and str(file) in said
    drawn = file.read_text()
    if family == "both" and kind == "map":
        assert all(f">{one}<" in drawn for one in ("film", "영화는", "Source →", "Target ↓"))
    if family in ("ymish", "six") and kind == "map":
        assert ">Row sum<" in drawn


@pytest.mark.parametrize("family", FAMILIES)
def test_a_capture_of_every_family_is_compared(made, facts, family):
    _, out, _ = made(family)
    heads = facts("compare", out, out)["heads"]
    assert len(heads) == sum(len(one.heads) for one in open_capture(out).maps)
    assert all(one["largest"] == 0 for one in heads)


@pytest.mark.parametrize("family", ["slots", "linformer"])
def test_the_tokens_behind_slots_are_written_and_drawn(made, run, refusal, family, tmp_path):
    _, out, _ = made(family)
    asked = ("--tokens", "--layer", 1, "--head", 1)
    assert run("map", out, *asked, "-o", tmp_path / "m.npy")[::2] == (0, "")
    found = np.load(tmp_path / "m.npy")
    assert np.array_equal(found, of_tokens(open_capture(out)).maps[1].read(1))
    code, _, error = run("figure", out, "--kind", "map", *asked, "-o", tmp_path / "m.svg")
    assert (code, error) == (0, "")
    drawn = (tmp_path / "m.svg").read_text()
    assert "--kind map --layer 1 --head 1 --tokens" in drawn and ">film<" in drawn
    for verb, file in (("map", "n.npy"), ("figure", "n.svg")):
        more = ("--kind", "map") if verb == "figure" else ()
        error = refusal(verb, made("bert")[1], *more, *asked, "-o", tmp_path / file)
        assert "looks at tokens already" in error


def test_a_float64_capture_reads_the_states_of_an_encoder_as_they_are_written(run, tmp_path):
    write_transformer(tmp_path / "m", form="decoder", cross=True, vocab_size=90)
    states = np.random.default_rng(0).normal(size=(1, 12))
    given = {"input_ids": [2, 7], "encoder_hidden_states": states.tolist()}
    (tmp_path / "f.json").write_text(json.dumps(given))
    out, found = tmp_path / "c.h5", tmp_path / "l.npy"
    asked = ("--ids", tmp_path / "f.json", "--dtype", "float64", "--device", "cpu")
    code, shown, _ = run("capture", tmp_path / "m", *asked, "-o", out)
    assert (code, run("logits", out, "-o", found)[0]) == (0, 0)
    assert shown.endswith("on 1 state of an encoder and 2 tokens of target.\n")
    model = open_model(tmp_path / "m", dtype="float64")
    assert abs(np.load(found) - model.run([2, 7], encoder_states=states).logits).max() <= 1e-12


# --- what cannot be -------------------------------------------------------------------------------

WRONG = {
    "a target is needed": ("both", ("--text", "a"), "--target"),
    "an encoder-decoder needs both ids": ("both", {"input_ids": [2]}, "decoder_input_ids"),
    "the target is empty": ("gpt2 pair", ("--text", "a", "--target", ""), "empty"),
    "no state fits": ("over states", {"input_ids": [2], "encoder_hidden_states": [[1.0, 2.0]]},
                      "encoder states"),
    "rows of states differ": ("over states", {"input_ids": [2], "encoder_hidden_states": [[1], []]},
                              "no matrix"),
    "states are needed": ("over states", {"input_ids": [2]}, "encoder_hidden_states"),
    "no text gives states": ("over states", ("--text", "a"), "--ids"),
    "states are for others": ("bert", {"input_ids": [2], "encoder_hidden_states": STATES},
                              "does not take"),
    "a target is for others": ("bert", ("--text", "a", "--target", "b"), "--target"),
    "decoder ids are for others": ("gpt2", {"input_ids": [2], "decoder_input_ids": [2]},
                                   "does not take"),
    "no token types": ("gpt2", ("--text", "a", "--text-pair", "b"), "token types"),
    "no such type": ("bert", {"input_ids": [2], "token_type_ids": [7]}, "token_type_ids"),
    "too few types": ("bert", {"input_ids": [2, 3], "token_type_ids": [0]}, "token_type_ids"),
    "a mask of nothing": ("bert", {"input_ids": [2], "decoder_attention_mask": [1]},
                          "decoder_input_ids"),
    "boundaries are of segments": ("bert", {"input_ids": [2], "boundaries": [1]}, "boundaries"),
    "no ids": ("bert", {"input_ids": []}, "empty"),
    "an id too many": ("bert", {"input_ids": [90]}, "0 to 89"),
    "a key that nobody knows": ("bert", {"input_ids": [2], "ids": [1]}, "unknown field"),
    "too long": ("bert", ("--text", "the film " * 40), "40 tokens"),
    "no such head": ("both", ("--text", "a", "--target", "b", "--off", "6.0"), "no head 6.0"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_combination_is_one_line_that_says_what_is_needed(made, refusal, case, tmp_path):
    family, given, said = WRONG[case]
    folder = made("both" if family == "gpt2 pair" else family)[0]
    if family == "gpt2 pair":
        (tmp_path / "m").mkdir()
        write_transformer(tmp_path / "m", form="encoder-decoder", vocab_size=256)
        folder = tmp_path / "m"
    if isinstance(given, dict):
        (tmp_path / "ids.json").write_text(json.dumps(given))
        given = ("--ids", tmp_path / "ids.json")
    out = tmp_path / "out.h5"
    assert said in refusal("capture", folder, *given, "-o", out)
    assert not list(tmp_path.glob("out.h5*"))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("map OUT --layer 3 --head 0 --rows 0:7 -o x.npy", 1),
        ("map OUT --layer 3 --head 0 --columns 0:99 -o x.npy", 1),
        ("rollout OUT --rows 0:7 -o x.npy", 1),
        ("figure OUT --kind map --layer 3 --query 6 -o x.pdf", 1),
        ("figure OUT --kind levels --query 6 -o x.pdf", 1),
        ("capture MODEL --ids ids.json --target a -o x.h5", 2),
        ("capture MODEL --ids ids.json --text-pair a -o x.h5", 2),
    ],
)
def test_what_two_texts_do_not_have_is_said(made, refusal, words, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = dict(zip(("MODEL", "OUT"), made("both"), strict=False))
    refusal(*(paths.get(word, word) for word in words.split()), code=code)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_capture_of_two_texts_goes_on_and_of_others_is_refused(
    made, run, refusal, facts, tmp_path, monkeypatch
):
    folder, whole, given = made("both")
    out, add = tmp_path / "out.h5", Writer.add

    def failing(writer, index, layer, **options):
        if index == 3:
            raise OSError(28, "No space left on device", str(out))
        add(writer, index, layer, **options)

    monkeypatch.setattr(Writer, "add", failing)
    assert run("capture", folder, *given, "-o", out)[0] == 1
    part = out.with_name("out.h5.part")
    assert part.is_dir() and not facts("info", part)["complete"]
    refusal("figure", part, "--kind", "wall", "-o", tmp_path / "x.pdf")
    monkeypatch.setattr(Writer, "add", add)
    other = (*given[:2], "--target", "nobody")
    assert "another" in refusal("capture", folder, *other, "-o", out)
    assert run("capture", folder, *given, "-o", out)[0] == 0
    assert not part.exists()
    np.testing.assert_array_equal(open_capture(out).logits, open_capture(whole).logits)


# --- the Byte Latent Transformer ------------------------------------------------------------------


RIVER = "The river broke its banks."
ROWS = (f"{RIVER[:-1]} in the night.", "Hi", "A cat sat on the mat.", "Nobody knew.") * 4


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A model of two parts, one of one part, and rows of texts."""
    root = tmp_path_factory.mktemp("blt")
    blt.write(root / "two", "BltForCausalLM")
    blt.write(root / "one", "BltForCausalLM", cross_attn_k=1, patch_in_forward=False)
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


def test_info_names_levels_and_layers(facts, output, root, captured):
    whole = facts("info", root / "two")
    assert [one["stride"] for one in whole["levels"]] == [1, None, None]
    assert [one["parts"] for one in whole["levels"]] == [1, 2, 1]
    part = facts("info", captured())
    assert part["levels"] == whole["levels"] and part["complete"] is True
    assert [one["role"] for one in part["layers"]] == [
        "self", "self", "self", "self", "down", "self", "self", "up", "self", "up", "self",
    ]  # fmt: skip
    assert "unattending" not in output("info", root / "two")
    assert "boundaries: found by the model" in output("info", captured())
    assert "boundaries: given" in output(
        "info", captured("two", RIVER, "--boundaries", "whitespace")
    )


@pytest.mark.parametrize("model", ["two", "one"])
@pytest.mark.parametrize("text", [RIVER, "a", "ab"])
def test_what_is_written_of_a_capture_is_the_capture(output, captured, model, text, tmp_path):
    file, count = captured(model, text), len(text)
    held = open_capture(file)
    for layer in (one.index for one in held.spec.layers if one.role != "self"):
        output("map", file, "--layer", layer, "--head", 1, "-o", tmp_path / "m.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "m.npy"), held.maps[layer].read(1))
    output("rollout", file, "-o", tmp_path / "r.npy")
    rolled = np.load(tmp_path / "r.npy")
    assert rolled.shape == (count, count) and np.allclose(rolled.sum(1), 1, atol=1e-5)
    assert "4.1" in output("heads", file)
    for kind in ("levels", "map", "wall", "rollout"):
        output("figure", file, "--kind", kind, "-o", tmp_path / f"{kind}.svg")
    assert "segments" in (tmp_path / "levels.svg").read_text()


def test_heads_are_scored_switched_off_and_taken_away(refusal, facts, output, root, tmp_path):
    refusal("capture", root / "two", "--text", "", "-o", tmp_path / "e.h5")
    model, rows, study = root / "two", root / "rows.tsv", tmp_path / "s.h5"
    whole = facts("evaluate", model, "--data", rows)
    assert whole != facts("evaluate", model, "--data", rows, "--off", "4.*,7.1,0.0")
    assert facts("importance", model, "--data", rows, "-o", study)
    assert output("curve", study, model, "--data", rows)
    said = output("prune", model, "--off", "0.1,2.0,4.1,5.3,7.2", "-o", tmp_path / "small")
    assert "5 heads of 44 removed" in said
    ids, off = blt.ids_of(20), {(0, 1), (2, 0), (4, 1), (5, 3), (7, 2)}
    wanted = open_model(model).run(ids, off=off).logits
    assert scaled_error(open_model(tmp_path / "small").run(ids).logits, wanted) < 1e-5


def test_two_are_compared_and_an_answer_is_traced_back(output, root, captured):
    assert "Logits at 26 of 26 places" in output(
        "compare", captured(), captured("two", RIVER, "--boundaries", "whitespace")
    )
    assert "26" in output("compare", captured(), captured("one"))
    assert "." in output("attribute", root / "two", "--text", "The river.")
    assert "no output depends on a later token" in output("reach", root / "two", "--text", RIVER)


def test_a_layer_between_levels_that_has_lost_all_heads_is_written_and_opens(
    output, root, tmp_path
):
    output("prune", root / "two", "--off", "7.*", "-o", tmp_path / "out")
    ids = np.frombuffer(RIVER.encode(), np.uint8).astype(np.int64)
    whole, left = open_model(root / "two"), open_model(tmp_path / "out")
    off = frozenset(HeadId(7, head) for head in range(4))
    given = whole.tokenize(RIVER).ids
    assert len(given) == len(ids)
    assert scaled_error(left.run(given).logits, whole.run(given, off=off).logits) < 1e-5
    assert "11 layers" in output(
        "capture", tmp_path / "out", "--text", RIVER, "-o", tmp_path / "c.h5"
    )
