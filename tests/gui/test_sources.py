"""Texts and ids that models of every kind read, and models with another activation."""

import json

import pytest
import torch
from PySide6.QtWidgets import QLabel
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from hgviz.core import progress
from hgviz.gui import sources
from hgviz.gui.dialogs import (
    ErrorDialog,
    Question,
    counted_tokens,
)
from hgviz.tasks import Estimate
from tests.gui.screen import busy, errors
from tests.models.building import write_transformer

WORDS = ["the", "film", "is", "not", "very", "good", "bad", "der", "nicht", "gut", "actors", "were"]
FRAMED = ["bert", "both"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny models with random weights: with token types, with two texts, and without tokenizer."""
    base = tmp_path_factory.mktemp("kinds")
    keys = {"dtype": torch.float32, "vocab_size": 40, "n_layers": 1, "max_positions": 16}
    made = {
        "bert": {"family": "bert"},
        "both": {"goal": "next"},
        "bare": {"form": "decoder", "goal": "next"},
        "listener": {"form": "decoder", "cross": True, "goal": "next"},
    }
    for name, more in made.items():
        write_transformer(base / name, **{**keys, **more})
        if name in FRAMED:
            tokenizer(base / name / "tokenizer.json")
    return base


def tokenizer(file):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    one = Tokenizer(models.WordLevel({name: n for n, name in enumerate(names)}, "[UNK]"))
    one.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    one.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    one.save(str(file))


@pytest.fixture
def model(folders):
    def opened(name, activation=""):
        wish = sources.CaptureRequest(str(folders / name), device="cpu", activation=activation)
        return sources.load(wish)

    return opened


# --- what a model reads ---------------------------------------------------------------------------


def test_texts_are_counted_in_the_models_own_tokens(model):
    bert = model("bert")
    assert counted_tokens(bert, "the film", "") == ("4 of 16 tokens", True)
    assert counted_tokens(bert, "", "") == ("2 of 16 tokens", True)  # [CLS] and [SEP]
    assert counted_tokens(bert, "the film", "is not good") == ("8 of 16 tokens", True)
    said, fits = counted_tokens(bert, "the " * 20, "")
    assert said == "22 of 16 tokens: 6 too many" and not fits
    both = model("both")
    assert counted_tokens(both, "the film", "") == ("The target is empty", False)
    assert counted_tokens(both, "the", "der")[0] == "source 3 of 16 tokens, target 3 of 16 tokens"


# --- capturing ------------------------------------------------------------------------------------


def test_a_pair_a_target_and_an_empty_text_are_captured(model):
    def captured(name, text, second=""):
        one = model(name)
        _, _, found = sources.capture_text(sources.CaptureRequest("", text, second), one)
        return found

    pair = captured("bert", "the film", "is good")
    assert pair.prompt.token_type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert len(captured("bert", "").prompt) == 2
    both = captured("both", "the film", "der")
    assert (both.prompt.text, both.target.text) == ("the film", "der")
    assert captured("both", "the film").target.text == "the film"  # read again


def test_a_model_that_cannot_read_text_is_open_and_asks_for_ids(program, folders, tmp_path, until):
    program.session.put(text="some text")
    program.commands.open_path(str(folders / "bare"))
    until(lambda: errors(program))
    assert program.session.model is not None and program.session.capture is None
    (error,) = errors(program)
    assert "--ids" not in " ".join(error.lines) and "input_ids" in error.do
    assert program.frame.pages.currentWidget() is program.inspect
    file = tmp_path / "ids.json"
    file.write_text(json.dumps({"input_ids": [3, 1, 4, 1, 5]}))
    program.commands.prompting.capture_ids(str(file))
    until(lambda: program.session.capture is not None and not busy(program))
    assert program.session.capture.prompt.ids.tolist() == [3, 1, 4, 1, 5]
    assert not program.session.stale
    program.commands.choose_a("tanh")
    until(lambda: program.session.activation == "tanh" and not busy(program))
    assert program.session.capture.spec.layers[0].activations[0] == "tanh"
    assert program.session.capture.prompt.ids.tolist() == [3, 1, 4, 1, 5]
    program.commands.open_path(str(folders / "bert"))
    until(lambda: program.session.checkpoint.endswith("bert") and not busy(program))
    assert not program.session.ids and len(program.session.capture.prompt) == 2  # [CLS] [SEP]
    program.settle()


def test_a_file_of_ids_that_is_refused_is_not_captured_next(program, folders, tmp_path, until):
    program.session.put(text="the film")
    program.commands.open_path(str(folders / "bert"))
    until(lambda: program.session.capture is not None and not busy(program))
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_text("[")
    good.write_text(json.dumps({"input_ids": [3, 1, 4]}))
    for path, ids in ((bad, ""), (good, str(good)), (bad, str(good))):
        program.commands.prompting.capture_ids(str(path))
        until(lambda: not busy(program))
        assert program.session.ids == ids
    dialogs = program.frame.findChildren(ErrorDialog)  # one waits for the other
    assert ["bad.json" in dialog.error.what for dialog in dialogs] == [True, True]
    assert program.session.capture.prompt.ids.tolist() == [3, 1, 4]


# --- opening --------------------------------------------------------------------------------------


@pytest.mark.parametrize("agreed", [True, False])
def test_a_capture_that_takes_long_is_asked_about_first(
    program, checkpoint, monkeypatch, until, agreed
):
    asked, model = [], sources.load(sources.CaptureRequest(str(checkpoint), device="cpu"))

    def estimate(one, text):
        asked.append(text)
        progress(0, 1)
        return Estimate(len(text), 61.0, 3_100_000_000)

    monkeypatch.setattr(sources.tasks, "estimate", estimate)
    program.session.put(checkpoint=str(checkpoint), model=model, text="a long text")
    program.commands.run("capture")
    until(lambda: program.frame.findChildren(Question))
    (dialog,) = program.frame.findChildren(Question)
    assert asked == ["a long text"] and not program.lanes.engine.jobs
    said = [one.text() for one in dialog.findChildren(QLabel)]
    assert any("Capturing 11 tokens takes about 61 s and 3.1 GB of memory." in one for one in said)
    if not agreed:
        dialog.reject()
        assert program.session.capture is None or program.session.capture.main.text != "a long text"
        return
    dialog.buttons[0].click()
    until(lambda: program.session.capture and program.session.capture.main.text == "a long text")
