"""Work that takes long: lanes of jobs, of which the newest wins and cancelled ones are silent, and
every verb, which reports how far it is and ends where it is cancelled."""

import gc
import itertools
import threading
import weakref
from collections import deque
from functools import partial
from types import SimpleNamespace

import msgspec
import pytest

from hgviz import tasks
from hgviz.core import Capture, HeadId, Selection, Step, progress, raise_if_cancelled
from hgviz.figures.spec import Spec
from hgviz.jobs import Lane
from hgviz.models import open_model
from tests.models.building import CLASSIFIER, own_bert, write_bert, write_gpt2
from tests.progress import cancelled, with_steps


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


def test_a_job_tells_its_steps_and_its_result(lane):
    steps, results = [], []
    job = lane.submit("a", "count", partial(counting, 3), steps.append, results.append)
    assert job.wait(60)
    assert [step.done for step in steps] == [1, 2, 3]
    assert results == ["done"]
    assert job.ended and not job.cancelled
    assert job.step == Step(3, 3)
    assert job.title == "count"


def test_jobs_of_a_lane_run_one_after_the_other_in_one_thread(lane):
    seen = []

    def task(name):
        for _ in range(3):
            seen.append((name, threading.current_thread().name))
            progress(0, 0)

    jobs = [lane.submit(name, name, partial(task, name)) for name in "abc"]
    assert all(job.wait(60) for job in jobs)
    assert [name for name, _ in seen] == list("aaabbbccc")
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.current_thread().name


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


def test_a_cancelled_job_is_silent_even_if_its_message_is_on_the_way(lane):
    desk, told = Desk(), []
    for work in (partial(counting, 2), partial(failing, ValueError("no"))):
        job = lane.submit("a", "a", work, told.append, told.append, told.append, desk.post)
        assert job.wait(60) and desk.calls
        job.cancel()
        desk.read()
        assert told == []


@pytest.mark.parametrize("give_up", ["cancel", "submit"])
def test_a_job_that_is_done_is_silent_if_its_key_is_given_up_before_it_was_heard(lane, give_up):
    desk, told = Desk(), []
    job = lane.submit("a", "a", partial(counting, 1, "old"), on_done=told.append, post=desk.post)
    assert job.wait(60)
    lane.submit("b", "b", partial(counting, 1)).wait(60)  # the lane is through with it
    if give_up == "cancel":
        lane.cancel("a")
    else:
        lane.submit(
            "a", "a", partial(counting, 1, "new"), on_done=told.append, post=desk.post
        ).wait(60)
    desk.read()
    assert told == (["new"] if give_up == "submit" else [])


def test_a_lane_keeps_nothing_of_jobs_that_were_heard(lane):
    desk = Desk()
    job = weakref.ref(lane.submit("a", "a", partial(counting, 1), print, post=desk.post))
    lane.submit("b", "b", partial(counting, 1)).wait(60)
    desk.read()
    gc.collect()
    assert job() is None


class Panic(BaseException):
    """What a Rust library raises when it gives up."""


@pytest.mark.parametrize("error", [ValueError("no"), MemoryError(), Panic("gone")])
def test_errors_are_delivered_and_the_lane_goes_on(lane, error):
    errors, results = [], []
    lane.submit("a", "a", partial(failing, error), on_done=results.append, on_error=errors.append)
    assert lane.submit("b", "b", partial(counting, 1), on_done=results.append).wait(60)
    assert errors == [error]
    assert results == ["done"]


def test_an_error_nobody_listens_for_is_raised_where_post_leads(lane):
    desk = Desk()
    lane.submit("a", "a", partial(failing, ValueError("no")), post=desk.post).wait(60)
    with pytest.raises(ValueError, match="no"):
        desk.read()


def test_at_most_one_step_is_on_its_way_the_newest_with_the_last_value(lane):
    def work():
        progress(1, 1000, value="first")
        progress(2, 1000, value="second")
        return counting(1000)

    desk, steps, results = Desk(), [], []
    job = lane.submit("a", "a", work, steps.append, results.append, None, desk.post)
    assert job.wait(60) and len(desk.calls) == 2  # one step, one result
    desk.read()
    assert [(step.done, step.value) for step in steps] == [(1000, "second")]
    assert results == ["done"]


def test_steps_come_again_once_the_last_one_was_read(lane):
    desk, steps = Desk(), []
    gates = [threading.Event() for _ in range(2)]
    reached = [threading.Event() for _ in range(2)]

    def task():
        for number in range(2):
            progress(number, 2)
            reached[number].set()
            assert gates[number].wait(60)

    job = lane.submit("a", "a", task, steps.append, post=desk.post)
    for number in range(2):
        assert reached[number].wait(60)
        desk.read()
        assert steps[-1].done == number
        gates[number].set()
    assert job.wait(60)


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


def test_lanes_do_not_wait_for_each_other(lane):
    other = Lane("other")
    started, go = threading.Event(), threading.Event()
    try:
        slow = lane.submit("a", "a", partial(waiting, started, go))
        assert started.wait(60)
        assert other.submit("a", "a", partial(counting, 1)).wait(60)
        assert not slow.ended
    finally:
        go.set()
        other.shutdown()


# --- verbs ----------------------------------------------------------------------------------------


TEXT = "the hidden states of BERT"
SENTENCES = ("a film to see", "nothing to see", "the sand ran", "see it again")
OFF = frozenset({HeadId(0, 1)})
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
def given(tmp_path_factory):
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


def _stored(given):
    path = given.out(".h5")
    tasks.study(given.trials, NEEDS, path)
    return path


# of each verb: the call, made anew every time, since some write files


# of each verb: the call, made anew every time, since some write files
VERBS = {
    "capture": lambda it: (tasks.capture, it.model, it.prompt),
    "capture to a file": lambda it: (tasks.capture, it.model, it.prompt, it.out(".h5")),
    "capture_like": lambda it: (tasks.capture_like, it.model, it.capture, OFF),
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
    "figure": lambda it: (tasks.figure, Spec("map", Selection()), it.capture, it.out(".svg")),
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
    "study": lambda it: (tasks.study, it.trials, NEEDS, it.out(".h5")),
    "study_report": lambda it: (tasks.study_report, it.sweep, it.out(".html")),
    "train": lambda it: (tasks.train, it.folder / "plan.toml", it.out()),
    "trials_of": lambda it: (tasks.trials_of, it.model, it.data),
    "try_heads": lambda it: (tasks.try_heads, it.trials, OFF),
    "write": lambda it: (tasks.write, it.writer, it.start, 3),
}  # fmt: skip
# what asks nothing that takes long, or only wraps other verbs
IMMEDIATE = {
    "Estimate", "answer_number", "checkpoint_formats", "checkpoint_suffixes", "digest_of",
    "trials_on",
    "attribution_panel", "attribution_rows", "capture_at", "study_chart",
    "curve_times", "estimate", "examples_from", "prompt_options", "key_scores",
    "heads_to_remove", "info", "is_sweep_file", "keeping", "kept_study", "kind_of", "learned",
    "read_capture", "read_prompts", "default_question", "reach_facts", "reach_panel",
    "redundancy_panel", "token_name", "token_rows", "sources_of", "spec_from", "study_at",
    "read_results", "sweep_at", "sweep_chart", "text_of", "tokens_or_slots",
    "blocks_without_attention", "with_learned", "write_report",
}  # fmt: skip


def test_every_verb_is_here():
    assert {name.split()[0] for name in VERBS} | IMMEDIATE == set(tasks.__all__)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_returns_its_result_reports_and_can_be_cancelled(given, name):
    work, *arguments = VERBS[name](given)
    result = work(*arguments)
    assert result is not None and not hasattr(result, "send")
    work, *arguments = VERBS[name](given)
    heard, steps = with_steps(work, *arguments)
    assert type(heard) is type(result)
    assert steps and all(0 <= step.done <= step.total for step in steps)
    if isinstance(result, Capture):
        assert heard.complete and heard.main.digest == result.main.digest
    work, *arguments = VERBS[name](given)
    assert len(cancelled(work, *arguments)) == 1
