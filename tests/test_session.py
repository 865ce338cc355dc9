"""What is open, chosen and shown, without any window, and the files that keep it; and long work:
lanes of jobs, and every task, which reports how far it is and ends where it is cancelled."""

import dataclasses
import itertools
import json
import math
import os
import threading
from collections import deque
from functools import partial
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.core import (
    Capture,
    Display,
    HeadId,
    HgvizError,
    Item,
    MetricEstimate,
    Selection,
    Step,
    progress,
    raise_if_cancelled,
)
from hgviz.figures.spec import Spec
from hgviz.files import resource
from hgviz.jobs import Lane
from hgviz.models import open_model, pruning
from hgviz.session import Session, document
from hgviz.session.document import (
    FORMAT,
    Document,
    SideB,
    is_session,
    read_document,
    write_document,
)
from hgviz.session.navigation import (
    clearest,
    step_head,
    step_layer,
    step_level,
    step_token,
    strongest_key,
)
from hgviz.study import Mask
from tests.making import make_capture
from tests.models.building import CLASSIFIER, own_bert, write_bert, write_gpt2
from tests.progress import cancelled, with_steps


@pytest.fixture
def session(capture):
    session = Session()
    session.put(capture=capture)
    return session


def test_a_change_is_said_once_for_each_field_after_all_are_set():
    session, said = Session(), []
    session.changed.connect(lambda name: said.append((name, session.dark, session.text)))
    session.put(dark=True, text="abc")
    session.put(selection=session.selection, mode=session.mode, dark=True)  # nothing changes
    assert said == [("text", True, "abc"), ("dark", True, "abc")]
    with pytest.raises(AttributeError, match="selektion"):
        session.put(selektion=None)


def test_a_new_capture_brings_spec_text_and_a_sensible_selection(session, capture):
    chosen = session.selection
    assert session.spec == capture.spec and session.text == capture.prompt.text
    assert capture.spec.layers[chosen.layer].role == "self"
    assert 0 < chosen.query < len(capture.prompt) - 1
    assert set(session.opened) == {level.index for level in capture.spec.levels}
    session.select(layer=6, head=3)
    assert session.opened[capture.spec.layers[6].level] == HeadId(6, 3)
    before = dict(session.opened)  # a resampling head is not the open head of a level
    session.select(layer=next(one.index for one in capture.spec.layers if one.role == "down"))
    assert session.opened == before
    assert not session.stale
    session.put(text="something else")
    assert session.stale
    partial = Session()  # an interrupted capture shows the last layer that it reached
    done = (*capture.maps[:2], *(None for _ in capture.maps[2:]))
    partial.put(capture=dataclasses.replace(capture, maps=done))
    assert partial.selection.layer == 1


def test_a_selection_outside_the_capture_is_brought_inside(session, capture):
    for wild in (-5, 10_000):
        session.put(selection=Selection(wild, wild, wild, wild))
        chosen = session.selection
        assert 0 <= chosen.layer < len(capture.spec.layers)
        assert chosen.head in capture.spec.layers[chosen.layer].heads
        assert 0 <= chosen.query < len(capture.prompt) > chosen.key >= 0


def test_another_capture_of_the_model_keeps_the_head_and_drops_what_was_of_the_text(
    session, capture
):
    last = Selection(len(capture.maps) - 1, 0, 9)
    session.put(hover=last, facts={HeadId(0, 0): "fact"})
    session.put(capture=dataclasses.replace(capture, path="a.h5"))
    assert session.hover == last
    session.select(layer=3, head=2, query=5)
    session.put(capture=dataclasses.replace(capture, maps=capture.maps[:4] + (None,) * 9))
    assert session.selection == Selection(3, 2, 5)
    session.select(key=1)
    session.put(capture=make_capture("Another text, shorter."))
    assert session.selection.head_id == HeadId(3, 2) and session.selection.key is None
    assert session.facts == {}
    session.put(capture=make_capture("Another text.", strides=(1,)))
    assert session.hover is None


@pytest.mark.parametrize(
    ("text", "number", "grew"),
    [("It was late and dark", None, True), ("It was", None, False), ("x", None, False),
     ("It was late and dark", 1, False)],
)  # fmt: skip
def test_only_a_text_that_is_gone_on_with_keeps_what_is_known(text, number, grew):
    """Cut short, changed, or another text of a corpus that begins alike is another text."""
    before, after = make_capture("It was late"), make_capture(text)
    if number is not None:
        before, after = corpus(before, 0), corpus(after, number)
    session = Session()
    session.put(capture=before, facts={HeadId(0, 0): "fact"})
    session.select(layer=3, head=2, query=2, key=1)
    session.put(capture=after, **({"written": 11} if grew else {}))
    assert session.grew == grew and session.selection.head_id == HeadId(3, 2)
    assert session.facts == ({HeadId(0, 0): "fact"} if grew else {})
    assert session.written == (11 if grew else None)
    assert session.text == text and not session.stale
    if grew:
        assert session.selection == Selection(3, 2, 2, 1)


def test_heads_stay_off_as_long_as_the_model_is_the_same(capture):
    off, session = frozenset({HeadId(0, 0), HeadId(3, 2)}), Session()
    session.put(capture=dataclasses.replace(capture, off=off))  # a first capture says which
    assert session.off == off
    renamed = dataclasses.replace(capture.spec, name="elsewhere")
    session.put(capture=dataclasses.replace(make_capture("Another text"), spec=renamed))
    assert session.off == off
    other = dataclasses.replace(capture.spec, digest="another")
    session.put(model=None, capture=None, spec=other)
    assert session.off == frozenset()


# --- navigation -----------------------------------------------------------------------------------


def test_heads_go_round_layers_stop_and_levels_go_to_the_head_last_opened(session, capture):
    heads = len(capture.spec.layers[0].heads)
    session.select(layer=6, head=4)
    session.select(layer=0, head=heads - 1)
    assert step_head(session, 1).head == 0 and step_head(session, -1).head == heads - 2
    assert step_layer(session, -1).layer == 0 and step_layer(session, 1).layer == 1
    session.put(selection=step_level(session, 1))
    assert session.selection.layer in (3, 9)
    assert step_level(session, 1).head_id == HeadId(6, 4)
    assert step_level(session, -1).head_id == HeadId(0, heads - 1)


def test_a_step_goes_by_the_stride_of_its_level_and_stops_at_the_ends(session, capture):
    last = len(capture.prompt) - 1
    for layer, query, by, wanted in (
        (6, 16, 1, 20), (6, 16, -1, 12), (0, 16, 1, 17), (0, 0, -1, 0), (0, last, 1, last),
    ):  # fmt: skip
        session.select(layer=layer, head=0, query=query)
        assert step_token(session, by, "query").query == wanted


def test_the_strongest_key_is_the_largest_weight_of_the_row(capture):
    row = capture.maps[0].read(0, rows=(50, 51))[0]
    assert strongest_key(capture, Selection(0, 0, 50)) == int(np.argmax(np.abs(row)))
    chosen = clearest(capture, [HeadId(0, 0)])
    assert chosen.head_id == HeadId(0, 0) and chosen.key == strongest_key(capture, chosen)
    assert clearest(capture, []) is None


def test_tiny_and_strange_texts_can_be_stepped_through_and_nothing_open_too():
    session = Session()
    assert step_head(session, 1) == step_layer(session, 1) == step_level(session, 1) == Selection()
    assert step_token(session, 1, "query") == Selection()
    for text in ("a", "שלום 👩‍👩‍👧 hello"):
        session.put(capture=make_capture(text))
        for layer in range(len(session.spec.layers)):
            session.select(layer=layer)
            for by in (1, -1, 1, 1, 1):
                session.put(selection=step_token(session, by, "query"))
                session.put(selection=step_token(session, by, "key"))
            assert clearest(session.capture, [session.selection.head_id]) is not None


def corpus(capture, item=1, numbers=(0, 1, 4)):
    items = tuple(Item(number, f"text {number}", 6) for number in numbers)
    return dataclasses.replace(capture, item=item, items=items)


def test_the_texts_of_a_corpus_follow_each_other_and_end(session, capture):
    assert session.item(1) is None and capture.place_in_corpus is None
    session.put(capture=corpus(capture))
    assert (session.item(-1), session.item(1)) == (0, 4)
    assert session.capture.place_in_corpus == (2, 3)
    session.put(capture=corpus(capture, item=4))
    assert session.item(1) is None
    session.put(capture=corpus(capture, item=7))
    assert session.item(1) is None and session.capture.place_in_corpus is None


# --- files ----------------------------------------------------------------------------------------


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
OFF = frozenset({HeadId(1, 0), HeadId(2, 1)})
HEAD = '{"format": "hgviz session", "version": 2'


def refused(path):
    with pytest.raises(HgvizError) as error:
        read_document(path)
    assert error.value.what.startswith(f"{path.name} cannot be opened as a session: ")
    assert "\n" not in error.value.what
    return error.value.what


def test_a_session_survives_the_round_trip(tmp_path):
    path = tmp_path / "deep" / "one.hgviz"
    score = MetricEstimate("accuracy", 0.5, 0.4, 0.6, 10, 20, OFF)
    document = Document(
        model=str(tmp_path / "models" / "tiny"),
        activation="ymish",
        text="a text\nof two lines",
        off=OFF,
        masks=(Mask("two off", OFF, score, (-0.1, -0.2, 0.0)),),
        comparison=SideB("model", path=str(resource("sample/ymish"))),
        selection=Selection(2, 1, 60, 29, HeadId(3, 1)),
        display=Display("magma", (0.0, 0.5)),
        mode="compare",
    )
    write_document(document, path)
    assert read_document(path) == document
    assert [one.name for one in path.parent.iterdir()] == ["one.hgviz"]
    assert is_session(path) and not is_session(tmp_path / "none.hgviz")


@given(names, names)
def test_any_text_survives(tmp_path_factory, text, second):
    path = tmp_path_factory.mktemp("sessions") / "one.hgviz"
    write_document(Document(text=text, second=second), path)
    assert read_document(path) == Document(text=text, second=second)


def test_scores_that_are_no_numbers_and_fields_of_newer_versions_are_left_out(session, tmp_path):
    score = MetricEstimate("loss", math.nan, 0.0, 1.0, 1, 2)
    session.put(masks=(Mask("a", OFF, score, (0.0, 0.0, 0.0)),))
    assert session.document.masks == (Mask("a", OFF),)
    path = tmp_path / "one.hgviz"
    path.write_text(HEAD + ', "open": {"future": {"a": [1]}}}')
    assert read_document(path) == Document()


def opening(place):
    return json.dumps({"format": FORMAT, "version": 2, "open": {"model": place}})


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "truncated"), ("\x89HDF", ""), ("[]", ""),
        ('{"format": "else", "version": 2}', "'else'"),
        ('{"format": "hgviz session", "version": 1, "text": "old"}', "version 1"),
        (HEAD + ', "open": {"item": -1}}', ""), (HEAD + ', "open": {"text": 3}}', "expected `str`"),
        (HEAD + ', "open": {"mode": "future"}}', "'future'"),
        (HEAD + ', "open": {"display": {"limits": [0, 1e999]}}}', "out of range"),
        (HEAD + ', "open": {"layout": {"size": [1, 99999999]}}}', ""),
        (HEAD + ', "future": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested"),
        *((opening(f"file:{path}"), "absolute") for path in ("/etc", "C:/x", "~/x", "//a/b")),
        (opening("file:\\\\host\\share"), "characters"), (opening("file:a\0b"), "characters"),
        (opening("file:"), "not a valid path"), (opening("/etc/passwd"), "not a valid path"),
        (opening("sample:../../etc"), "leads out"), (opening("cache:../x"), "leads out"),
    ],
)  # fmt: skip
def test_what_is_no_session_or_leads_anywhere_is_refused_in_one_line(tmp_path, content, why):
    path = tmp_path / "bad.hgviz"
    path.write_text(content)
    assert why in refused(path)


def test_a_file_that_is_too_large_or_no_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(document, "MAX_BYTES", 1 << 20)
    large = tmp_path / "large.hgviz"
    large.write_bytes(b" " * ((1 << 20) + 1))
    assert "larger than 1 MB" in refused(large)
    pipe = tmp_path / "pipe.hgviz"
    os.mkfifo(pipe)
    assert "not a regular file" in refused(pipe)  # and nobody waits for a writer


def test_paths_move_with_the_folder_and_names_of_models_stay(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "work").mkdir(parents=True)
    (here / "models").mkdir()
    (here / "models" / "weights.h5").write_bytes(b"weights")
    document = Document(
        capture=str(here / "models" / "weights.h5"),
        model=str(resource("sample/hourglass")),
        comparison=SideB("model", path="bert-base-uncased"),
    )
    assert document.missing.keys() == {"comparison"}  # nothing of that name in the cache
    write_document(document, here / "work" / "one.hgviz")
    here.rename(there)
    moved = read_document(there / "work" / "one.hgviz")
    assert moved.capture == str(there / "models" / "weights.h5")
    assert (moved.model, moved.comparison) == (document.model, document.comparison)
    assert document.missing.keys() == {"comparison", "capture"}
    assert moved.with_paths({"comparison": ""}).comparison is None


# --- work that takes long -------------------------------------------------------------------------


@pytest.fixture
def lane():
    runner = Lane("lane")
    yield runner
    runner.shutdown()


class Desk:
    """Keeps calls until somebody reads them, as an event loop does."""

    def __init__(self):
        self.calls = deque()

    def post(self, call):
        self.calls.append(call)

    def read(self):
        while self.calls:
            self.calls.popleft()()


@pytest.fixture
def posting():
    """A lane, and the desk on which its messages wait."""
    desk = Desk()
    runner = Lane("lane", desk.post)
    yield runner, desk
    runner.shutdown()


def counting(total, result="done"):
    for done in range(1, total + 1):
        progress(done, total)
    return result


def waiting(started, go, closed=None):
    try:
        started.set()
        assert go.wait(60)
        progress(1, 2)
        progress(2, 2)
        return "finished"
    finally:
        if closed is not None:
            closed.set()


def failing(error):
    progress(1, 2)
    raise error


def test_jobs_of_a_lane_run_one_after_the_other_in_one_thread_and_report(lane):
    seen, steps, results = [], [], []

    def task(name):
        for number in range(3):
            seen.append((name, threading.current_thread().name))
            progress(number, 3)
        return name

    jobs = [lane.submit(name, name, partial(task, name), steps.append, results.append)
            for name in "abc"]  # fmt: skip
    assert all(job.wait(60) for job in jobs)
    assert [name for name, _ in seen] == list("aaabbbccc") and results == [*"abc"]
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.current_thread().name
    assert [step.done for step in steps] == [0, 1, 2] * 3
    assert jobs[0].ended and not jobs[0].cancelled
    assert (jobs[0].step, jobs[0].title) == (Step(2, 3), "a")


def test_the_newest_job_of_a_key_wins_and_others_stay(lane):
    started, go, results = threading.Event(), threading.Event(), []
    running = lane.submit("map", "old", partial(waiting, started, go), on_done=results.append)
    assert started.wait(60)
    other = lane.submit("text", "other", partial(counting, 1, "other"), on_done=results.append)
    queued = lane.submit("map", "queued", partial(counting, 1, "queued"), on_done=results.append)
    newest = lane.submit("map", "new", partial(counting, 1, "new"), on_done=results.append)
    assert lane.jobs == (other, newest)
    go.set()
    assert newest.wait(60)
    assert results == ["other", "new"]
    assert running.cancelled and queued.cancelled and not newest.cancelled


def test_cancelling_stops_within_a_step_runs_the_finally_and_starts_nothing_queued(lane):
    started, closed, begun = (threading.Event() for _ in range(3))
    told = []

    def endless():
        try:
            progress(0, 1)
            started.set()
            while True:
                raise_if_cancelled()
        finally:
            closed.set()

    job = lane.submit("a", "a", endless, None, told.append, told.append)
    queued = lane.submit("b", "b", begun.set)
    assert started.wait(60) and not job.ended
    queued.cancel()
    lane.cancel("a")
    assert job.wait(60) and closed.is_set()
    lane.submit("c", "c", partial(counting, 1), on_end=partial(told.append, "let go")).wait(60)
    assert told == ["let go"] and not begun.is_set()


def test_a_cancelled_job_is_silent_even_if_its_message_is_on_the_way(posting):
    (lane, desk), told = posting, []
    for work in (partial(counting, 2), partial(failing, ValueError("no"))):
        job = lane.submit("a", "a", work, told.append, told.append, told.append)
        assert job.wait(60) and desk.calls
        job.cancel()
        desk.read()
        assert told == []


def test_a_job_that_is_done_is_silent_if_its_key_is_given_up_before_it_was_heard(posting):
    lane, desk = posting
    for new in ("", "new"):
        told = []
        assert lane.submit("a", "a", partial(counting, 1, "old"), on_done=told.append).wait(60)
        lane.submit("b", "b", partial(counting, 1)).wait(60)  # the lane is through with it
        if new:
            lane.submit("a", "a", partial(counting, 1, new), on_done=told.append).wait(60)
        else:
            lane.cancel("a")
        desk.read()
        assert told == [new] * bool(new)


class Panic(BaseException):
    """What a Rust library raises when it gives up."""


@pytest.mark.parametrize("error", [ValueError("no"), MemoryError(), Panic("gone")])
def test_errors_are_delivered_and_the_lane_goes_on(lane, error):
    errors, results = [], []
    lane.submit("a", "a", partial(failing, error), on_done=results.append, on_error=errors.append)
    assert lane.submit("b", "b", partial(counting, 1), on_done=results.append).wait(60)
    assert errors == [error]
    assert results == ["done"]


def test_an_error_nobody_listens_for_is_raised_where_post_leads(posting):
    lane, desk = posting
    lane.submit("a", "a", partial(failing, ValueError("no"))).wait(60)
    with pytest.raises(ValueError, match="no"):
        desk.read()


def test_at_most_one_step_is_on_its_way_the_newest_with_the_last_value(posting):
    def work():
        progress(1, 1000, value="first")
        progress(2, 1000, value="second")
        return counting(1000)

    (lane, desk), steps, results = posting, [], []
    job = lane.submit("a", "a", work, steps.append, results.append)
    assert job.wait(60) and len(desk.calls) == 2  # one step, one result
    desk.read()
    assert [(step.done, step.value) for step in steps] == [(1000, "second")]
    assert results == ["done"]


def test_shutdown_stops_the_running_job_drops_the_rest_and_joins():
    before = set(threading.enumerate())
    runner, told = Lane("short"), []
    started, go, closed = (threading.Event() for _ in range(3))
    running = runner.submit(
        "a", "a", partial(waiting, started, go, closed), told.append, told.append
    )
    queued = runner.submit("b", "b", partial(counting, 1), told.append, told.append)
    assert started.wait(60)
    threading.Timer(0.05, go.set).start()
    runner.shutdown()
    assert running.ended and queued.ended and closed.is_set()
    assert told == []
    assert runner.jobs == ()
    assert not {t for t in threading.enumerate() if t.name.startswith("short")} - before
    late = runner.submit("a", "a", partial(counting, 1), told.append, told.append, told.append)
    assert late.cancelled and late.ended and told == [] and runner.jobs == ()


# --- verbs ----------------------------------------------------------------------------------------


TEXT = "the hidden states of BERT"
SENTENCES = ("a film to see", "nothing to see", "the sand ran", "see it again")
HEADS_OFF = frozenset({HeadId(0, 1)})
NEEDS = frozenset({"gradient"})
STUDY = """
asks = ["score"]
[[models]]
name = "bert"
checkpoint = "bert"
[[data]]
valid = "rows.tsv"
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A tiny classifier and a tiny language model, and what verbs make of them."""
    folder = tmp_path_factory.mktemp("verbs")
    bert, gpt2, data = write_bert(folder / "bert"), write_gpt2(folder / "gpt2"), folder / "rows.tsv"
    rows = [f"{text}\t{label}" for text in SENTENCES * 3 for label in ("against", "for")]
    data.write_text("\n".join(["sentence\tlabel", *rows]) + "\n")
    (folder / "texts.txt").write_text("\n".join(SENTENCES) + "\n")
    plan = {**CLASSIFIER, "recipe": {**CLASSIFIER["recipe"], "steps": 2}}
    (folder / "plan.toml").write_bytes(msgspec.toml.encode(plan))
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text(data.read_text())
    (folder / "study.toml").write_text(STUDY)
    model, writer = open_model(bert), open_model(gpt2)
    capture = tasks.capture(model, model.tokenize(TEXT))
    trials = tasks.trials_of(model, data)
    study = tasks.importance(trials, NEEDS, "rows.tsv")
    question = tasks.default_question(model.spec.goal, capture.logits, capture.prompt, None)
    sweep = folder / "sweep"
    tasks.run_sweep(folder / "study.toml", sweep)
    out = (folder / f"out{number}" for number in itertools.count())
    return SimpleNamespace(
        folder=folder, bert=bert, gpt2=gpt2, data=data, model=model, writer=writer, sweep=sweep,
        own=own_bert(folder / "own"),
        prompt=model.tokenize(TEXT), start=writer.tokenize("the"), capture=capture, trials=trials,
        study=study, question=question, out=lambda suffix="": next(out).with_suffix(suffix),
    )  # fmt: skip


def _stored(inputs):
    path = inputs.out(".h5")
    tasks.importance(inputs.trials, NEEDS, out=path)
    return path


# of each verb: the call, made anew every time, since some write files
VERBS = {
    "capture": lambda it: (tasks.capture, it.model, it.prompt),
    "capture to a file": lambda it: (tasks.capture, it.model, it.prompt, it.out(".h5")),
    "capture_like": lambda it: (tasks.capture_like, it.model, it.capture, HEADS_OFF),
    "capture_corpus": lambda it: (
        tasks.capture_corpus, it.model, it.folder / "texts.txt", it.out(".h5")
    ),
    "capture_written": lambda it: (tasks.capture_written, it.writer, it.start, 1),
    "compare": lambda it: (tasks.compare, it.capture, it.capture),
    "compare_answers": lambda it: (tasks.compare_answers, it.model, it.model, it.data),
    "compare_models": lambda it: (tasks.compare_models, it.model, it.model, it.data, TEXT),
    "convert": lambda it: (tasks.convert, it.bert, it.out()),
    "curve": lambda it: (tasks.curve, it.trials, it.study, "signed", 1),
    "draw": lambda it: (tasks.draw, tasks.panel(Spec("map"), it.capture), it.out(".svg")),
    "evaluate": lambda it: (tasks.evaluate, it.model, it.data),
    "attribute": lambda it: (tasks.attribute, it.model, it.prompt, it.question),
    "generate": lambda it: (tasks.generate, it.writer, it.start, 3),
    "roles_of_capture": lambda it: (tasks.roles_of_capture, it.capture),
    "roles_of_model": lambda it: (tasks.roles_of_model, it.model, it.folder / "texts.txt"),
    "roles_of_text": lambda it: (tasks.roles_of_text, it.model, it.prompt),
    "heads_of_study": lambda it: (tasks.heads_of_study, _stored(it), it.bert, "2", "signed"),
    "importance": lambda it: (tasks.importance, it.trials, NEEDS),
    "load": lambda it: (tasks.load, it.bert, "cpu"),
    "open_sweep": lambda it: (tasks.open_sweep, it.sweep),
    "panel": lambda it: (tasks.panel, Spec("profile"), it.capture),
    "pass_times": lambda it: (tasks.pass_times, [it.model], [4, 8], 1),
    "patching": lambda it: (
        tasks.patching, it.model, it.prompt, it.model.from_ids(it.prompt.ids[::-1]), 0, 1
    ),
    "preview": lambda it: (tasks.preview, tasks.panel(Spec("map"), it.capture), 72.0),
    "prune": lambda it: (tasks.prune, it.bert, "0.1", it.out()),
    "reach": lambda it: (tasks.reach, it.writer, it.start),
    "redundancy": lambda it: (tasks.redundancy, it.own),
    "redundancy_of_captures": lambda it: (tasks.redundancy_of_captures, [it.capture]),
    "rollout": lambda it: (tasks.rollout, it.capture),
    "rollout_capture": lambda it: (tasks.rollout_capture, it.capture),
    "run_sweep": lambda it: (tasks.run_sweep, it.folder / "study.toml", it.out()),
    "save": lambda it: (tasks.save, it.capture, it.out(".h5")),
    "importance to a file": lambda it: (
        partial(tasks.importance, out=it.out(".h5")), it.trials, NEEDS
    ),
    "study_report": lambda it: (tasks.study_report, it.sweep, it.out(".html")),
    "train": lambda it: (tasks.train, it.folder / "plan.toml", it.out()),
    "trials_of": lambda it: (tasks.trials_of, it.model, it.data),
    "try_heads": lambda it: (tasks.try_heads, it.trials, HEADS_OFF),
    "write": lambda it: (tasks.write, it.writer, it.start, 3),
}  # fmt: skip
# what asks nothing that takes long, or only wraps other verbs
IMMEDIATE = {
    "Estimate", "answer_number", "checkpoint_formats", "checkpoint_suffixes", "digest_of",
    "trials_on",
    "attribution_panel", "attribution_rows", "capture_at", "study_chart",
    "curve_times", "estimate", "examples_from", "prompt_options", "key_scores",
    "heads_to_remove", "info", "is_sweep_file", "keeping", "kept_study", "kind_of",
    "read_capture", "read_prompts", "default_question", "reach_facts", "reach_panel",
    "redundancy_panel", "token_name", "token_rows", "sources_of", "study_at",
    "read_results", "sweep_at", "sweep_chart", "text_of", "tokens_or_slots",
    "blocks_without_attention", "with_learned", "write_report",
}  # fmt: skip


def test_every_verb_is_here():
    assert {name.split()[0] for name in VERBS} | IMMEDIATE == set(tasks.__all__)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_returns_its_result_reports_and_can_be_cancelled(inputs, name, monkeypatch):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    work, *arguments = VERBS[name](inputs)
    result, steps = with_steps(work, *arguments)
    assert result is not None and not hasattr(result, "send")
    assert steps and all(0 <= step.done <= step.total for step in steps)
    assert not isinstance(result, Capture) or result.complete
    work, *arguments = VERBS[name](inputs)
    assert len(cancelled(work, *arguments)) == 1
