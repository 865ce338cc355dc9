"""Lanes: order, newest wins, cancelling, silence, errors and the end."""

import gc
import threading
import weakref
from collections import deque
from functools import partial

import pytest

from hgviz.core import Step, progress
from hgviz.jobs import Lane


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


def test_cancelling_stops_between_two_steps_and_runs_the_finally(lane):
    started, go, closed, told = *(threading.Event() for _ in range(3)), []
    job = lane.submit("a", "a", partial(waiting, started, go, closed), told.append, told.append)
    assert started.wait(60)
    lane.cancel("a")
    assert not closed.is_set()
    go.set()
    assert job.wait(60)
    assert closed.is_set()
    assert told == []


def test_a_job_cancelled_while_queued_never_starts(lane):
    started, go, begun = threading.Event(), threading.Event(), threading.Event()
    lane.submit("a", "a", partial(waiting, started, go))
    job = lane.submit("b", "b", partial(waiting, begun, go))
    job.cancel()
    go.set()
    assert job.wait(60)
    assert not begun.is_set()


def test_a_cancelled_job_is_silent_even_if_its_message_is_on_the_way(lane):
    desk, told = Desk(), []
    job = lane.submit(
        "a", "a", partial(counting, 2), told.append, told.append, told.append, desk.post
    )
    assert job.wait(60)
    assert desk.calls
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


def test_an_error_of_a_cancelled_job_is_silent(lane):
    desk, told = Desk(), []
    job = lane.submit(
        "a", "a", partial(failing, ValueError("no")), on_error=told.append, post=desk.post
    )
    assert job.wait(60)
    job.cancel()
    desk.read()
    assert told == []


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


def test_at_most_one_step_is_on_its_way_and_it_is_the_newest(lane):
    desk, steps, results = Desk(), [], []
    job = lane.submit(
        "a", "a", partial(counting, 1000), steps.append, results.append, None, desk.post
    )
    assert job.wait(60)
    assert len(desk.calls) == 2  # one step, one result
    desk.read()
    assert [step.done for step in steps] == [1000]
    assert results == ["done"]


def test_a_value_that_was_not_read_comes_with_the_newest_step(lane):
    def work():
        progress(1, 3, value="first")
        progress(2, 3, value="second")
        progress(3, 3)

    desk, steps = Desk(), []
    assert lane.submit("a", "a", work, steps.append, post=desk.post).wait(60)
    desk.read()
    assert [(step.done, step.value) for step in steps] == [(3, "second")]


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
