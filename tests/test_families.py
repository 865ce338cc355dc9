"""Every command on every family, as a stranger would: small models with tokenizers of their own."""

import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from hgviz import cli
from hgviz.analysis.mixed import of_tokens
from hgviz.figures import FIGURES
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.store import open_capture
from tests.models.building import write_checkpoint, write_transformer

SEEN = ["the film was not bad", "그 영화는 나쁘지 않았다", "nobody was bored by the film"]
LEARNED = {"max_positions": 40, "vocab_size": 90}
SIX = ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]
STATES = [[(row * 7 + column * 3) % 11 / 5 - 1 for column in range(12)] for row in range(6)]

# family -> the keys of its config, what it is given, (queries, keys) of its last layer
FAMILIES = {
    "bert": ({"family": "bert", **LEARNED}, ("--text", "the film was bad"), (6, 6)),
    "pair": (
        {"family": "bert", **LEARNED},
        ("--text", "the film", "--text-pair", "nobody was bored"),
        (8, 8),
    ),
    "classifier": (
        {"family": "bert", "goal": "classes", "labels": ["bad", "good"], **LEARNED},
        ("--text", "the film was not bad"),
        (7, 7),
    ),
    "headless": (
        {"family": "bert", "goal": "states", "transform": False, **LEARNED},
        ("--text", "그 영화는"),
        (4, 4),
    ),
    "gpt2": ({"family": "gpt2", **LEARNED}, ("--text", "the film was bad"), (6, 6)),
    "ymish": (
        {"family": "yubert", "labels": ["bad", "good"], **LEARNED},
        ("--text", "the film was bad"),
        (6, 6),
    ),
    "six": (
        {"family": "yubert", "cls": 1, "labels": ["bad", "good"], "n_heads": 6, "d_model": 24,
         "activations": SIX, **LEARNED},
        ("--text", "the film was bad"),
        (6, 6),
    ),
    "slots": (
        {"family": "yubert", "slots": 5, "activations": "softmax", "labels": ["a", "b"], **LEARNED},
        ("--text", "the film was bad"),
        (6, 5),
    ),
    "linformer": (
        {"family": "bert", "goal": "classes", "labels": ["bad", "good"], "slots": 5,
         "slots_sharing": "none", "slots_bias": True, **LEARNED},
        ("--text", "the film was bad"),
        (6, 5),
    ),
    "synthesizer": (
        {"family": "gpt2", "scores": ["dense", "dot+random"], **LEARNED},
        ("--text", "the film was bad"),
        (6, 6),
    ),
    "places alone": (
        {"form": "decoder", "scores": ["fixed", "factorised"], "rank": 2, **LEARNED},
        ("--text", "the film was bad"),
        (6, 6),
    ),
    "kernels": (
        {"form": "decoder", "positions": "quadratic", "vocab_size": 90, "n_heads": 6,
         "activations": ["rbf", "poly2", "raw", "softmax", "topk", "rbf"], "top_k": 3},
        ("--text", "the film was bad"),
        (6, 6),
    ),
    "convolution": (
        {"form": "decoder", "positions": "quadratic", "content": False, "vocab_size": 90},
        ("--text", "the film was bad"),
        (6, 6),
    ),
    "both": (
        {"form": "encoder-decoder", "vocab_size": 90},
        ("--text", "그 영화는 나쁘지 않았다", "--target", "the film was bad"),
        (6, 6),
    ),
    "over states": (
        {"form": "decoder", "cross": True, "vocab_size": 90},
        {"input_ids": [2, 7, 8, 3], "encoder_hidden_states": STATES,
         "encoder_attention_mask": [1] * 5 + [0]},
        (4, 6),
    ),
    "one token": ({"form": "decoder", "vocab_size": 90}, {"input_ids": [4]}, (1, 1)),
    "hourglass": (None, ("--text", "the film was bad"), (16, 16)),
    "segments": (
        {"family": "dynamic", "n_layers": [1, 2, 1], "boundaries": "fixed", "shorten_factor": 3,
         "vocab_size": 90},
        ("--text", "the film was not bad"),
        (7, 7),
    ),
    "collaborative": (
        {"family": "bert", "shared_width": 7, **LEARNED},
        ("--text", "the film was bad"),
        (6, 6),
    ),
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


def nobody(*_):
    raise AssertionError("this verb needs no window")


def call(*arguments):
    return cli.main([str(one) for one in arguments], cli.Window(nobody, nobody))


@pytest.fixture
def run(capfd):
    """Run a command line; gives exit code, standard output and standard error."""

    def heard(*arguments):
        capfd.readouterr()  # what was said before
        return call(*arguments), *capfd.readouterr()

    return heard


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
def test_a_checkpoint_and_its_capture_say_what_they_are(made, run, family):
    folder, out, _ = made(family)
    whole, part = (json.loads(run("info", one, "--json")[1]) for one in (folder, out))
    assert (whole["kind"], part["kind"]) == ("checkpoint", "capture")
    assert (whole["levels"], whole["goal"]) == (part["levels"], part["goal"])
    keys = {"index", "name", "role", "level", "key_level", "heads", "queries", "keys"}
    for one, other in zip(whole["layers"], part["layers"], strict=True):
        assert keys | {"activations"} <= set(one) & set(other)
        assert [one[key] for key in ("name", "role", "level", "key_level", "heads")] == [
            other[key] for key in ("name", "role", "level", "key_level", "heads")
        ]
        assert (
            one["activations"] == other["activations"] and len(one["activations"]) == one["heads"]
        )
    assert (part["layers"][-1]["queries"], part["layers"][-1]["keys"]) == FAMILIES[family][2]
    assert whole["parameters"] > 0 and part["complete"] is True
    for one in (folder, out):
        code, said, error = run("info", one)
        assert (code, error) == (0, "") and f"family: {whole['family']}" in said
        assert all(name in said for name in whole["labels"])


def test_two_texts_are_told_in_the_levels_and_the_provenance(made, run):
    folder, out, _ = made("both")
    facts = json.loads(run("info", out, "--json")[1])
    assert [one["sequence"] for one in facts["levels"]] == ["source", "target"]
    assert facts["provenance"]["text"] != facts["provenance"]["target"]
    assert [one["role"] for one in facts["layers"]][-2:] == ["self", "cross"]
    code, said, _ = run("capture", folder, "--text", "the film", "--target", "그", "-o",
                        out.with_name("again.h5"))  # fmt: skip
    assert code == 0 and "4 tokens of source and 3 tokens of target" in said
    _, said, _ = run("capture", *made("over states")[0:1], *made("over states")[2], "-o",
                     out.with_name("over.h5"))  # fmt: skip
    assert "6 states of an encoder and 4 tokens of target" in said


def test_one_level_is_one_and_not_one_levels(made, run):
    assert "1 level: " in run("info", made("bert")[0])[1]


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_maps_and_rollouts_are_those_of_the_model(made, run, family, tmp_path):
    folder, out, _ = made(family)
    held = open_capture(out)
    assert all(isinstance(one, LazyMap) for one in held.maps)  # nothing kept that can be computed
    assert run("logits", out, "-o", tmp_path / "logits.npy")[::2] == (0, "")
    found, model = np.load(tmp_path / "logits.npy"), open_model(folder)
    length = len(held.main)
    shape = {
        "classes": (len(model.spec.labels),),
        "states": (length, model.spec.width),
    }.get(model.spec.goal, (length, model.spec.vocabulary))
    assert found.shape == shape
    steps = model.trace(held.prompt, held.target)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        np.testing.assert_allclose(found, end.value, atol=1e-5)

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


def test_a_pair_is_told_apart_by_its_token_types(made):
    held = open_capture(made("pair")[1])
    assert held.prompt.token_type_ids.tolist() == [0] * 4 + [1] * 4
    assert held.prompt.text == "the film\nnobody was bored"


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
    code, said, error = run("figure", *files, "--kind", kind, "--layer", last, "--head", 1,
                            "--query", 0, "--width", "acl", "-o", file)  # fmt: skip
    assert (code, error) == (0, "") and str(file) in said
    drawn = file.read_text()
    if family == "both" and kind == "map":
        assert all(f">{one}<" in drawn for one in ("film", "영화는", "Source →", "Target ↓"))
    if family in ("ymish", "six") and kind == "map":
        assert ">Row sum<" in drawn


@pytest.mark.parametrize("family", FAMILIES)
def test_a_capture_of_every_family_is_compared(made, run, family, tmp_path):
    _, out, _ = made(family)
    code, said, error = run("compare", out, out, "--json")
    assert (code, error) == (0, "")
    heads = json.loads(said)["heads"]
    assert len(heads) == sum(len(one.heads) for one in open_capture(out).maps)
    assert all(one["largest"] == 0 for one in heads)


@pytest.mark.parametrize("family", ["slots", "linformer"])
def test_the_tokens_behind_slots_are_written_and_drawn(made, run, family, tmp_path):
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
        code, _, error = run(verb, made("bert")[1], *more, *asked, "-o", tmp_path / file)
        assert code == 1 and "looks at tokens already" in error and len(error.splitlines()) == 1


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
def test_a_wrong_combination_is_one_line_that_says_what_is_needed(made, run, case, tmp_path):
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
    code, shown, error = run("capture", folder, *given, "-o", out)
    assert (code, shown, len(error.splitlines())) == (1, "", 1)
    assert said in error and "nobody foresaw" not in error
    assert not list(tmp_path.glob("out.h5*"))


def test_ids_hold_a_pair_and_a_target_themselves(made, run, tmp_path):
    (tmp_path / "ids.json").write_text('{"input_ids": [2]}')
    for option in ("--target", "--text-pair"):
        code, _, error = run("capture", made("both")[0], "--ids", tmp_path / "ids.json", option,
                             "a", "-o", tmp_path / "out.h5")  # fmt: skip
        assert code == 2 and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("map", "--layer", "3", "--head", "0", "--rows", "0:7", "-o", "x.npy"),
        ("map", "--layer", "3", "--head", "0", "--columns", "0:99", "-o", "x.npy"),
        ("rollout", "--rows", "0:7", "-o", "x.npy"),
        ("figure", "--kind", "map", "--layer", "3", "--query", "6", "-o", "x.pdf"),
        ("figure", "--kind", "levels", "--query", "6", "-o", "x.pdf"),
    ],
)
def test_what_lies_beyond_one_of_two_texts_is_said(made, run, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verb, *rest = arguments
    code, shown, error = run(verb, made("both")[1], *rest)
    assert (code, shown, len(error.splitlines())) == (1, "", 1)
    assert "nobody foresaw" not in error and not list(tmp_path.iterdir())


def test_an_interrupted_capture_of_two_texts_goes_on_and_of_others_is_refused(
    made, run, tmp_path, monkeypatch
):
    from hgviz.store import Writer

    folder, whole, given = made("both")
    out, add = tmp_path / "out.h5", Writer.add

    def failing(writer, index, layer, **options):
        if index == 3:
            raise OSError(28, "No space left on device", str(out))
        add(writer, index, layer, **options)

    monkeypatch.setattr(Writer, "add", failing)
    assert run("capture", folder, *given, "-o", out)[0] == 1
    part = out.with_name("out.h5.part")
    assert part.is_dir() and not json.loads(run("info", part, "--json")[1])["complete"]
    code, _, error = run("figure", part, "--kind", "wall", "-o", tmp_path / "x.pdf")
    assert code == 1 and len(error.splitlines()) == 1
    monkeypatch.undo()
    other = (*given[:2], "--target", "nobody")
    code, _, error = run("capture", folder, *other, "-o", out)
    assert code == 1 and len(error.splitlines()) == 1 and "another" in error
    assert run("capture", folder, *given, "-o", out)[0] == 0
    assert not part.exists()
    np.testing.assert_array_equal(open_capture(out).logits, open_capture(whole).logits)
