"""Opening files, running models on texts and ids, generating."""

import functools
import json
import time
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from hgviz import tasks
from hgviz.core import Capture, HeadId, Selection, progress
from hgviz.gui import commands, sources
from hgviz.gui.actions import ACTIONS, CAPTURE
from hgviz.gui.dialogs import (
    ExchangeDialog,
    Question,
    WritingOptions,
    counted_tokens,
)
from hgviz.gui.sides import CompareDialog
from hgviz.session.document import SideB
from hgviz.store import open_capture
from hgviz.tasks import Estimate
from tests.gui.screen import busy, error_dialogs, errors
from tests.models.building import write_transformer


def slow(capture, go):
    """A capture that waits before its last layer until it may go on."""
    layers = len(capture.maps)
    for done in range(1, layers):
        part = replace(capture, maps=(*capture.maps[:done], *[None] * (layers - done)), logits=None)
        time.sleep(0.005)
        progress(done, layers, "", part)
    while not go.is_set():
        time.sleep(0.005)
        progress(done, layers, "", part)
    return sources.CaptureRequest("somewhere"), None, capture


@pytest.fixture
def capturing(opened, capture, monkeypatch, until):
    """A slow capture under way, some layers done; the last waits for `go`."""
    opened.go = Event()
    monkeypatch.setattr(sources, "capture_text", lambda *_: slow(capture, opened.go))
    opened.session.put(checkpoint="somewhere", capture=None, spec=None)
    opened.commands.run("capture")
    until(lambda: opened.session.capture is not None)
    return opened


def test_finished_layers_are_shown_before_the_rest(capturing, capture, until):
    assert not capturing.session.capture.complete
    assert capturing.frame.pages.currentWidget() is capturing.inspect
    until(lambda: "of 13" in capturing.session.work[-1].note)
    work = capturing.session.work[-1]
    assert work.keeps == f"keeps {work.done:.0f} finished layers"
    capturing.session.put(selection=Selection(0, 0, 5))
    assert capturing.inspect.tabbed.stack.currentWidget() is capturing.inspect.map
    capturing.session.put(selection=Selection(12, 0, 5))
    assert capturing.inspect.tabbed.stack.currentWidget() is capturing.inspect.capturing
    capturing.go.set()
    until(lambda: not busy(capturing))
    assert capturing.session.capture.complete
    assert capturing.inspect.tabbed.stack.currentWidget() is capturing.inspect.map


def test_stop_keeps_the_layers_that_are_done_and_closing_the_window_stops_too(capturing, until):
    capturing.inspect.capturing._stop.click()
    until(lambda: not capturing.lanes.engine.jobs)
    QApplication.processEvents()
    found: Capture = capturing.session.capture
    assert found.maps[0] is not None and not found.complete
    until(lambda: capturing.session.work[-1].state == "stopped")
    assert not capturing.frame.actions_by_name["save"].isEnabled()
    capturing.session.put(capture=None)
    capturing.commands.run("capture")
    until(lambda: capturing.session.capture is not None)
    capturing.close()
    assert not capturing.frame.isVisible() and not capturing.lanes.engine.jobs


def test_the_most_alike_head_of_b_is_put_beside_the_one_that_is_looked_at(opened, until):
    session = opened.session
    b = replace(session.capture)
    session.put(capture_b=b, comparison=SideB("model", path="b.h5"))
    session.put(selection=Selection(2, 1, 5, beside=HeadId(2, 0)))
    opened.commands.run("pair_alike")
    until(lambda: session.selection.beside == HeadId(2, 1))
    assert "distance 0" in opened.frame.chosen_words.full


# an action, where it asks for something, who acts on the answer, and the answer
LATE = (
    ("exchange", ExchangeDialog, "commands.choose_a", ("tanh",)),
    ("choose_data", QFileDialog, "commands.use_data", ("a.tsv",)),
    ("compare_with", CompareDialog, "commands.choose_side", (SideB("activation", "tanh"), None)),
    ("save_study", QFileDialog, "commands._save_study", ("a.h5",)),
)


def test_an_answer_acts_only_while_its_action_can_be_done_with_the_same_model(with_model):
    session, said = with_model.session, with_model.frame.chosen_words
    capture, checkpoint = session.capture, session.checkpoint
    always = {one.name: one._replace(needs=(CAPTURE,)) for one in ACTIONS}
    for name, kind, actor, answer in LATE:
        *path, last = actor.split(".")
        acted, owner = [], functools.reduce(getattr, path, with_model)
        study = SimpleNamespace(spec=session.spec, data_digest=session.spec.digest, known=None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(commands, "BY_NAME", always)
            patch.setattr(owner, last, lambda *got, acted=acted: acted.append(got))
            patch.setattr(session, "study", study if name == "save_study" else None)
            with_model.commands.run(name)
            dialog = with_model.frame.findChildren(kind)[-1]
            send = dialog.fileSelected.emit if kind is QFileDialog else dialog.then
            send(*answer)
            assert acted == [answer], name
            session.capture = None
            send(*answer)
            assert acted == [answer] and said.full == "Run a model on a text first", name
            session.capture, session.checkpoint = capture, "another"
            if name == "save_study":
                session.study = SimpleNamespace(spec=session.spec, data_digest="another")
            send(*answer)
            assert acted == [answer] and said.full.startswith("Cancelled: "), name
            session.checkpoint = checkpoint
            dialog.reject()
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Tiny models with random weights: with token types, with two texts, and without tokenizer."""
    base = tmp_path_factory.mktemp("kinds")
    keys = {"dtype": torch.float32, "vocab_size": 40, "n_layers": 1, "max_positions": 16}
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "film", "is", "not", "good", "der"]
    reader = Tokenizer(models.WordLevel({name: n for n, name in enumerate(names)}, "[UNK]"))
    reader.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    reader.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    for name, more in (
        ("bare", {"form": "decoder", "goal": "next"}),
        ("bert", {"family": "bert"}),
        ("both", {"goal": "next"}),
    ):
        write_transformer(base / name, **{**keys, **more})
        if name != "bare":
            reader.save(str(base / name / "tokenizer.json"))
    return base


# --- what a model reads ---------------------------------------------------------------------------


def test_texts_are_counted_in_the_models_own_tokens(folders):
    bert, both = (tasks.load(folders / name, "cpu") for name in ("bert", "both"))
    assert counted_tokens(bert, "the film", "") == ("4 of 16 tokens", True)
    assert counted_tokens(bert, "", "") == ("2 of 16 tokens", True)  # [CLS] and [SEP]
    assert counted_tokens(bert, "the film", "is not good") == ("8 of 16 tokens", True)
    said, fits = counted_tokens(bert, "the " * 20, "")
    assert said == "22 of 16 tokens: 6 too many" and not fits
    assert counted_tokens(both, "the film", "") == ("The target is empty", False)
    assert counted_tokens(both, "the", "der")[0] == "source 3 of 16 tokens, target 3 of 16 tokens"


# --- capturing ------------------------------------------------------------------------------------


def test_a_model_that_cannot_read_text_asks_for_ids_and_refused_ones_are_not_captured(
    program, folders, tmp_path, until
):
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
    assert not program.session.ids
    program.settle()
    error_dialogs(program)[0].reject()
    bad, before = tmp_path / "bad.json", program.session.capture
    bad.write_text("[")
    program.commands.prompting.capture_ids(str(bad))
    until(lambda: not busy(program) and errors(program))
    assert "bad.json" in errors(program)[-1].what
    assert program.session.capture is before and not program.session.ids


# --- opening --------------------------------------------------------------------------------------


def test_a_capture_that_takes_long_is_asked_about_first(program, checkpoint, monkeypatch, until):
    asked, model = [], sources.load(sources.CaptureRequest(str(checkpoint), device="cpu"))

    def estimate(one, text):
        asked.append(text)
        progress(0, 1)
        return Estimate(len(text), 61.0, 3_100_000_000)

    monkeypatch.setattr(sources.tasks, "estimate", estimate)
    program.session.put(checkpoint=str(checkpoint), model=model, text="a long text")
    for agreed in (False, True):
        program.commands.run("capture")
        until(lambda: program.frame.findChildren(Question))
        dialog = program.frame.findChildren(Question)[-1]
        assert asked.pop() == "a long text" and not program.lanes.engine.jobs
        said = " ".join(one.text() for one in dialog.findChildren(QLabel))
        assert "Running the model on 11 tokens takes about 61 s and 3.1 GB of memory." in said
        assert program.session.capture is None
        dialog.buttons[0].click() if agreed else dialog.reject()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    until(lambda: program.session.capture and program.session.capture.main.text == "a long text")


def test_a_model_writes_what_the_verb_gives_also_where_it_is_stopped_and_saved(
    with_model, until, tmp_path
):
    program, session = with_model, with_model.session
    text, given = session.text, len(session.capture.main)
    prompt = session.model.tokenize(text)
    again = tasks.generate(session.model, prompt, 12, seed=3, temperature=2.0)
    program.commands.prompting.write_so(WritingOptions(12, seed=3, temperature=2.0))
    until(lambda: not busy(program))
    assert session.written == given
    assert_equal(session.capture, again)
    program.settle()
    assert "Dotted: generated by the model." in program.inspect.strip.legend.full
    session.put(text=text)
    program.commands.prompting.write_so(WritingOptions(100_000, seed=1))
    until(lambda: session.work[-1].done > 20)
    program.commands.run("stop")
    until(lambda: not busy(program) and len(session.capture.main) > given)
    stopped = session.capture
    program.commands._save(stopped, str(tmp_path / "kept.h5"))
    until(lambda: not busy(program))
    assert_equal(stopped, open_capture(tmp_path / "kept.h5"))
    before = session.capture
    session.put(text="")
    program.commands.prompting.write_so(WritingOptions(9))
    until(lambda: errors(program))
    assert "empty" in str(errors(program)[0]).lower() and session.capture is before
    error_dialogs(program)[0].reject()


def assert_equal(one, other):
    """Check that two captures have the same tokens and the same weights."""
    assert one.prompt.digest == other.prompt.digest and one.complete and other.complete
    for mine, its in zip(one.maps, other.maps, strict=True):
        assert np.array_equal(mine.read(mine.heads[0]), its.read(its.heads[0]))
