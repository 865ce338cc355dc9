"""Training files, tokenizers, and trainings of own models: what they learn, write and resume."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, trainers
from tokenizers.models import WordPiece

from hgviz.core import HgvizError
from hgviz.errors import HgvizWarning
from hgviz.files import held_folder, resource
from hgviz.models import open_model, training
from hgviz.models.config import parse_config, shapes_of
from hgviz.models.data import read_rows
from hgviz.models.text import Bytes, TokenizerPlan, train_tokenizer
from hgviz.models.training import begin, initialise, read_plan, train
from tests.models.trainings import KINDS, interrupt, log, plan, train_twice, write_data


@pytest.fixture
def folder(tmp_path):
    write_data(tmp_path)
    return tmp_path


# --- what is learned ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "metric", "low", "high"),
    [
        ("next", "bits_per_byte", 0, 5),
        ("masked", "masked_accuracy", 0.7, 1),
        ("classes", "accuracy", 0.95, 1),
        ("pairs", "token_accuracy", 0.75, 1),  # without the first text one word of four is right
    ],
)
def test_every_kind_learns_and_writes_a_checkpoint_that_opens(folder, kind, metric, low, high):
    report = train(plan(folder, KINDS[kind]), folder / "out")
    assert report.metric == metric and low < report.value <= high
    assert log(folder / "out")[-1][f"stored_{metric}"] == report.value
    assert not (folder / "out" / "state.pt").exists()
    model = open_model(folder / "out")
    if kind == "next":
        rows = log(folder / "out")
        assert rows[0]["loss"] > rows[-2]["loss"] and model.run([1, 2]).logits.shape == (2, 256)
    elif kind == "masked":
        prompt = model.tokenize("three three [MASK] three three three")
        guess = model.run(prompt.ids).logits[prompt.pieces.index("[MASK]")].argmax()
        assert model.from_ids([int(guess)]).pieces == ("three",)
    elif kind == "classes":
        rows = read_rows(folder / "dev.tsv")
        guesses = [model.run(model.tokenize(text).ids).logits.argmax() for text in rows.texts]
        right = [model.spec.labels[a] == b for a, b in zip(guesses, rows.labels, strict=True)]
        assert sum(right) / len(right) == report.value and model.spec.labels == ("ann", "bob")
    else:
        source, start = model.tokenize("three"), model.tokenize("drei")
        logits = model.run(source.ids, decoder_ids=start.ids[:1]).logits
        assert model.from_ids([int(logits[-1].argmax())]).pieces == ("drei",)


@pytest.mark.parametrize("boundaries", ["learned", "fixed", "whitespace", "entropy"])
def test_models_of_segments_learn(folder, boundaries):
    start = plan(folder, KINDS["segments"], model={"boundaries": boundaries})
    report, rows = train(start, folder / "out"), log(folder / "out")
    assert rows[1]["held_out"] < rows[0]["held_out"] < 8 and report.value < 4.5
    assert open_model(folder / "out").config.boundaries == boundaries


@pytest.mark.parametrize(
    "keys",
    [
        {"activations": ["softmax", "selu", "elu", "leaky_relu", "swish", "ymish"]},
        {"family": "yubert", "cls": 3, "slots": 6},
    ],
)
def test_every_family_of_classifier_can_be_trained(folder, keys):
    short = {"steps": 3, "evaluate_every": 2}
    train(plan(folder, KINDS["classes"], model=keys, recipe=short), folder / "out")
    model = open_model(folder / "out")
    pieces, cls = model.tokenize("ann and bob").pieces, model.config.cls
    assert pieces[:cls] == ("[CLS]", "[CLS2]", "[CLS3]")[:cls] and pieces[-1] == "[SEP]"


@pytest.mark.parametrize("kind", ["next", "masked"])
def test_windows_longer_than_the_positions_are_cut_to_them(folder, kind):
    model = {"family": "gpt2", "d_model": 16, "n_heads": 2, "n_layers": 1, "max_positions": 32}
    tables = {**KINDS["masked"], **({"model": model} if kind == "next" else {})}
    recipe = {"steps": 2, "evaluate_length": 1024}
    recipe["stages"] = [{"start": 0.0, "length": 60, "batch": 2}]
    assert math.isfinite(train(plan(folder, tables, recipe=recipe), folder / "out").value)


@pytest.mark.parametrize("fast", [True, False])
def test_a_processor_without_bfloat16_is_told_of(folder, monkeypatch, recwarn, fast):
    monkeypatch.setattr(training, "has_bfloat16", lambda device: fast)
    asked = plan(folder, KINDS["next"], recipe={"steps": 1, "autocast": True})
    (folder / "a.txt").unlink()  # it is told before anything is read
    with pytest.raises(HgvizError):
        train(asked, folder / "out")
    told = [str(one.message) for one in recwarn if one.category is HgvizWarning]
    assert told == ([] if fast else ["this processor computes bfloat16 many times as slowly as "
                                     "float32; leave autocast out"])  # fmt: skip


# --- stops ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_training_goes_on_to_the_same_weights(folder, kind):
    recipe = {"steps": 6, "dropout": 0.1, "save_every": 2}
    if kind == "classes":
        recipe |= {"token_dropout": 0.2, "label_smoothing": 0.1}
    whole, stopped = train_twice(plan(folder, KINDS[kind], recipe=recipe), folder, 3, 5)
    assert whole.figures == stopped.figures


def test_a_second_training_into_one_folder_is_refused(folder):
    (folder / "out").mkdir()
    with held_folder(folder / "out"), pytest.raises(HgvizError, match="out is being written by"):
        train(plan(folder, KINDS["next"]), folder / "out")


def test_a_training_is_continued_only_as_it_was_begun(folder):
    start, out = plan(folder, KINDS["next"], recipe={"steps": 4}), folder / "out"
    interrupt(start, out, 2)
    with pytest.raises(HgvizError, match="other settings"):
        train(plan(folder, KINDS["next"], recipe={"steps": 4, "rate": 1e-3}), out)
    train(start, out)
    with pytest.raises(HgvizError, match="already holds a trained model"):
        train(start, out)
    (out / "state.pt").write_bytes(b"not a snapshot")
    with pytest.raises(HgvizError, match=r"state\.pt is damaged.*Delete it") as caught:
        train(start, out)
    assert "\n" not in str(caught.value)


# --- training files -------------------------------------------------------------------------------

WRONG = [
    ("next", {"recipe": {"steps": 0}}, "either steps or minutes"),
    ("next", {"recipe": {"epochs": 1.0}}, "either steps or minutes or epochs"),
    ("next", {"date": {}}, "not a training file"),
    ("next", {"model": {"hierarchy": "1@1 1@2"}}, "hierarchy"),
    ("next", {"model": {"n_heads": 3}}, "3 heads do not divide"),
    ("next", {"data": {"train": ["none.txt"]}}, "cannot read"),
    ("next", {"data": {"train": []}}, "names no file"),
    ("next", {"data": {"weights": [1.0, 2.0]}}, "weights needs one per file"),
    ("next", {"recipe": {"stages": [{"start": 0, "length": 9999, "batch": 1}]}}, "is too short"),
    ("next", {"recipe": {"stages": [{"start": 0.5, "length": 9, "batch": 1}]}}, "begin at start 0"),
    ("next", {"model": {"vocab_size": 99}}, "no tokenizer for 99 ids"),
    ("masked", {"tokenizer": None}, r"needs a tokenizer with \[MASK\]"),
    ("pairs", {"model": {"form": "decoder", "cross": True}}, "cannot be trained by itself"),
    ("segments", {"model": {"boundaries": "unigram"}}, "cannot be learned"),
    ("classes", {"recipe": {"dropout": 1.5}}, r"< 1\.0 - at `\$\.recipe\.dropout`"),
    ("classes", {"recipe": {"rate": -1.0}}, r"> 0\.0 - at `\$\.recipe\.rate`"),
    ("classes", {"recipe": {"device": "abacus"}}, "no device 'abacus'"),
    ("classes", {"data": {"label_column": "mood"}}, "no column 'mood'"),
    ("classes", {"data": {"train": ["none.tsv"]}}, "could not be read"),
    ("classes", {"data": {"valid": "other.tsv"}}, "line 2, column label: the label 'cid' is unkn"),
    ("classes", {"tokenizer": {"file": "none.json"}}, "could not be read"),
    ("classes", {"tokenizer": {"size": 2}}, r">= 8 - at `\$\.tokenizer\.size`"),
    ("classes", {"model": {"vocab_size": 5}}, "ids and the model 5"),
    ("classes", {"model": {"labels": ["ann"]}}, "label 'bob' is unknown"),
    ("masked", {"data": {"valid": "binary.txt"}}, "is not a UTF-8 text"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), WRONG)
def test_a_wrong_training_file_is_one_clear_line(folder, kind, changes, message):
    (folder / "other.tsv").write_text("sentence\tlabel\ncid and ann\tcid\n")
    (folder / "binary.txt").write_bytes(b"one \xff")
    with pytest.raises(HgvizError, match=message) as caught:
        train(plan(folder, KINDS[kind], **changes), folder / "new" / "out")
    assert "\n" not in str(caught.value)
    assert kind == "segments" or not (folder / "new").exists()  # segments fail in the first step


def test_every_sample_says_how_it_was_trained():
    plans = sorted(resource("sample").glob("*/training.toml"))
    assert plans and all("d_model" in read_plan(path).model for path in plans)


def test_a_plan_may_name_a_sample_and_a_file_beside_it_comes_first(tmp_path):
    name, data = "sample/reviews.tsv", {"train": ["sample/reviews.tsv", "other.txt"]}
    tables = {"model": {}, "data": {**data, "valid": name}, "recipe": {"steps": 1}}
    found = plan(tmp_path, tables).data
    assert found.valid == found.train[0] == str(resource(name))
    assert found.train[1] == str(tmp_path / "other.txt")
    (tmp_path / "sample").mkdir()
    (tmp_path / name).touch()
    assert plan(tmp_path, tables).data.valid == str(tmp_path / name)


PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "train.md").read_text("utf-8")
SECTION = PAGE.partition("## The published Hourglasses\n")[2].partition("\n## ")[0]


def test_the_published_hourglasses_are_those_of_the_page(tmp_path):
    lines = [line.strip("|").split("|") for line in SECTION.splitlines() if line.startswith("| ")]
    rows = {name.strip(): [cell.strip() for cell in cells] for name, *cells in lines}
    (tmp_path / "plan.toml").write_text(re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)[0])
    found = read_plan(tmp_path / "plan.toml")
    kinds = ("hierarchy", "attention_downsampling", "attention_upsampling")
    stated = {"attention_downsampling": "average", **found.model}
    assert all(str(stated[name]) == rows[name][0] for name in (*kinds, "vocab_size"))
    recipe, stage = found.recipe, found.recipe.stages[0]
    rate = f"{recipe.rate:.1e}".replace("e-0", "e-")
    assert f"{rate}, {recipe.warmup}" == rows["rate, warmup"][0]
    assert [str(recipe.steps), str(recipe.dropout)] == [rows["steps"][0], rows["dropout"][0]]
    assert f"{stage.length}, {stage.batch}" == rows["length, batch"][0]
    for number, said in enumerate(rows["parameters"]):
        sizes = map(int, rows["d_model, d_ff, n_heads"][number].split(", "))
        keys = dict(zip(("d_model", "d_ff", "n_heads"), sizes, strict=True))
        keys |= {name: rows[name][number] for name in kinds}
        config = parse_config({"vocab_size": int(rows["vocab_size"][number]), **keys})
        assert f"{sum(map(math.prod, shapes_of(config).values())):,}" == said


# --- new weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("std", [0.02, 0.1])
def test_new_weights_have_the_spread_that_is_asked_for(std):
    keys = {"family": "bert", "vocab_size": 500, "d_model": 64, "n_heads": 4, "n_layers": 2}
    model = parse_config(keys).build()
    torch.manual_seed(0)
    initialise(model, std)
    weights = dict(model.named_parameters())
    assert weights["embed.token.weight"].std().item() == pytest.approx(std, rel=0.02)
    assert weights["middle.0.attn.q.weight"].std().item() == pytest.approx(std, rel=0.05)
    # what is added to the residual stream is smaller by the root of twice the layers
    assert weights["middle.0.attn.o.weight"].std().item() == pytest.approx(std / 2, rel=0.05)
    assert weights["middle.0.attn.q.bias"].abs().max() == 0


def test_an_lstm_keeps_the_scales_of_torch():
    model = parse_config({"family": "lstm", "vocab_size": 99, "d_model": 16, "n_layers": 1}).build()
    before = {name: one.clone() for name, one in model.named_parameters()}
    initialise(model, 0.02)
    assert all(torch.equal(one, before[name]) for name, one in model.named_parameters())


# --- tokenizers -----------------------------------------------------------------------------------

REVIEWS = resource("sample/reviews.tsv").read_text("utf-8").splitlines()
SCRIPT = """
import sys
from hgviz.files import resource
from hgviz.models.text import TokenizerPlan, train_tokenizer
texts = resource("sample/reviews.tsv").read_text("utf-8").splitlines()
sys.stdout.buffer.write(train_tokenizer(TokenizerPlan(size=300), texts, 1).json)
"""


def pieces_of(texts, **keys):
    """The vocabulary of a tokenizer of texts without special tokens, and the tokenizer."""
    tokenizer = train_tokenizer(
        TokenizerPlan(**{"size": 60, "least": 1, **keys}), texts, 1
    )._tokenizer
    return {one for one in tokenizer.get_vocab() if not one.startswith("[")}, tokenizer


def test_two_processes_make_the_same_bytes():
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    command = [sys.executable, "-c", SCRIPT]
    there = subprocess.run(command, capture_output=True, check=True, env=environment).stdout
    here = train_tokenizer(TokenizerPlan(size=300), REVIEWS, 1).json
    assert len(json.loads(here)["model"]["vocab"]) == 300 and there == here


@pytest.mark.parametrize("size", [200, 500])
def test_pieces_are_those_of_the_usual_trainer_but_for_ties(size):
    usual = Tokenizer(WordPiece(unk_token="[UNK]"))
    usual.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    usual.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, special_tokens=special, show_progress=False
    )
    usual.train_from_iterator(REVIEWS, trainer)
    ours = train_tokenizer(TokenizerPlan(size=size), REVIEWS, 1)._tokenizer.get_vocab()
    assert len(ours) == usual.get_vocab_size() == size
    assert [ours[one] for one in special] == [0, 1, 2, 3, 4]
    # in two runs of the usual trainer as many differ
    assert len(ours.keys() - usual.get_vocab().keys()) <= 0.1 * size


def test_pieces_within_words_say_so_and_put_words_together():
    pieces, tokenizer = pieces_of(["abab abab abc", "cab ab"] * 5)
    assert {"ab", "abab", "##ab", "a", "##b", "c"} <= pieces and "b" not in pieces
    assert tokenizer.encode("abab cab", add_special_tokens=False).tokens == ["abab", "cab"]
    assert sorted(tokenizer.get_vocab().values()) == list(range(tokenizer.get_vocab_size()))
    words = "나는 있다 中文 Ünï İst ß"
    assert "[UNK]" not in pieces_of([words] * 3, size=200)[1].encode(words).tokens
    assert not pieces_of([])[0] and not pieces_of(["", "  "])[0]


def test_several_cls_are_pieces_of_their_own():
    coder = train_tokenizer(TokenizerPlan(kind="words"), ["one two one two"], 3)
    encoding = coder._tokenizer.encode("one", "two")
    assert encoding.tokens == ["[CLS]", "[CLS2]", "[CLS3]", "one", "[SEP]", "two", "[SEP]"]
    assert encoding.type_ids == [0, 0, 0, 0, 0, 1, 1] and coder.frame() == ((2, 3, 4), (5,))


def test_a_stream_of_pieces_counts_the_bytes_after_the_first():
    coder = train_tokenizer(TokenizerPlan(kind="words"), ["añb cd añb cd"], 0)
    ids, size = coder.encode_stream("\nañb cd\nañb".encode(), Path("x"))
    assert len(ids) == 3 and size == len(" cd\nañb".encode())
    assert Bytes().encode_stream(b"abc", Path("x"))[1] == 2


@pytest.mark.parametrize(("kind", "label"), [("wordpiece", "or"), ("bpe", " or")])
def test_tokenizers_of_pieces_are_stored_with_the_model(folder, kind, label):
    tokenizer = {"kind": kind, "size": 300}
    start = plan(folder, KINDS["classes"], tokenizer=tokenizer, recipe={"steps": 2})
    words = begin(start, folder).tokenizer.json
    train(start, folder / "out")
    prompt = open_model(folder / "out").tokenize("ann or zoë")
    assert prompt.pieces[0] == "[CLS]" and [prompt.label(i) for i in (1, 2)] == ["ann", label]
    assert json.loads((folder / "out" / "tokenizer.json").read_text()) == json.loads(words)
