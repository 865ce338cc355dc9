"""Work off the GUI thread: one lane, one job at a time, the newest of a key wins.

A lane calls functions that report their progress (see hgviz.core) and tells what becomes of them
through its `post`, which carries a call to the thread that owns the widgets.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from threading import Event, Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from hgviz.core import Step

Post = Callable[[Callable[[], None]], Any]


def call_directly(call: Callable[[], None]) -> None:
    """Call it at once, in the current thread: the default for `post`."""
    call()


class Job:
    """One call in a lane: its title, how far it is, and a way to stop it.

    step is the newest step its listener was told; it is read by the thread that `post` leads to.
    lasting: what it writes is waited for when its lane closes. on_end: told when the lane has let
    go of it, however it ended.
    """

    def __init__(
        self,
        title: str,
        work: Callable[[], Any],
        on_step: Callable[[Step], None] | None = None,
        on_done: Callable[[Any], None] | None = None,
        on_error: Callable[[BaseException], None] | None = None,
        post: Post = call_directly,
        lasting: bool = False,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self.title, self.lasting = title, lasting
        self.step: Step | None = None
        self.begun = False
        self._work, self._post = work, post
        self._on_step, self._on_done, self._on_error = on_step, on_done, on_error
        self._on_end = on_end
        self._cancelled, self._ended, self._lock = Event(), Event(), Lock()
        self._unread: Step | None = None

    @property
    def cancelled(self) -> bool:
        """Whether nobody waits for it any more."""
        return self._cancelled.is_set()

    @property
    def ended(self) -> bool:
        """Whether the lane is through with it."""
        return self._ended.is_set()

    def cancel(self) -> None:
        """Stop at the next report of progress, or block of rows; from now on it is silent."""
        self._cancelled.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the lane is through with it; False after timeout seconds."""
        return self._ended.wait(timeout)

    def run(self) -> None:
        """Call the function in the lane's thread and tell what became of it."""
        # numpy comes with it, which a window that opens does not wait for
        from hgviz.core import Cancelled, cancelled_if, listening, raise_if_cancelled

        self.begun = True
        try:
            with cancelled_if(self._cancelled.is_set), listening(self._tell_step):
                raise_if_cancelled()
                result = self._work()
        except Cancelled:
            pass
        except BaseException as error:  # a panic in a Rust library is no Exception
            self._tell(self._on_error or _raise, error)
        else:
            self._tell(self._on_done, result)
        finally:
            self._ended.set()
            if self._on_end is not None:
                self._post(self._on_end)

    def _tell(self, listener: Callable[[Any], None] | None, value: Any) -> None:
        if listener is not None and not self.cancelled:
            # cancelled is asked again on arrival: the message may have been on its way
            self._post(lambda: None if self.cancelled else listener(value))

    def _tell_step(self, step: Step) -> None:
        """Post the step, or put it in place of one that has not been read yet, whose value it keeps
        if it brings none.

        So at most one step of a job is on its way, however fast they come.
        """
        with self._lock:
            unread = self._unread
            if unread is not None and step.value is None:
                step = replace(step, value=unread.value)
            self._unread = step
        if unread is None:
            self._post(self._read_step)

    def _read_step(self) -> None:
        with self._lock:
            step, self._unread = self._unread, None
        if step is not None and not self.cancelled:
            self.step = step
            if self._on_step is not None:
                self._on_step(step)


class Lane:
    """Runs jobs one after the other in a thread of its own; a new job cancels those of its key."""

    def __init__(self, name: str, post: Post = call_directly) -> None:
        self._post = post
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock, self._closed = Lock(), False
        self._jobs: dict[Job, Hashable] = {}
        # those that are done, while what became of them is on its way
        self._done: WeakKeyDictionary[Job, Hashable] = WeakKeyDictionary()

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs that run or wait and are still wanted, oldest first."""
        with self._lock:
            return tuple(job for job in self._jobs if not job.cancelled)

    def submit(
        self,
        key: Hashable,
        title: str,
        work: Callable[[], Any],
        on_step: Callable[[Step], None] | None = None,
        on_done: Callable[[Any], None] | None = None,
        on_error: Callable[[BaseException], None] | None = None,
        lasting: bool = False,
        on_end: Callable[[], None] | None = None,
    ) -> Job:
        """Queue a call; it takes the place of every earlier job of the same key.

        on_step may skip steps when they come faster than they are read; the newest step and the
        newest value are never skipped. An error that nobody listens for is raised where `post`
        leads. After a shutdown the job is cancelled at once: a timer may fire once more while its
        window is going.
        """
        job = Job(title, work, on_step, on_done, on_error, self._post, lasting, on_end)
        self.cancel(key)
        with self._lock:
            if not self._closed:
                self._jobs[job] = key
                self._pool.submit(self._run, job)
                return job
        job.cancel()
        job.run()  # which only ends it
        return job

    def cancel(self, key: Hashable) -> None:
        """Cancel the jobs of a key; what one said that is done, unheard as yet, is dropped."""
        with self._lock:
            for job, its_key in chain(self._jobs.items(), self._done.items()):
                if its_key == key:
                    job.cancel()

    def shutdown(self) -> None:
        """Cancel everything but what lasts, and wait for that and the current step; the lane takes
        no more jobs."""
        with self._lock:
            self._closed = True
        for job in self.jobs:
            if not job.lasting:
                job.cancel()
        self._pool.shutdown(wait=True)

    def _run(self, job: Job) -> None:
        try:
            job.run()
        finally:
            with self._lock:
                self._done[job] = self._jobs.pop(job)


def _raise(error: BaseException) -> None:
    raise error


# --- signals --------------------------------------------------------------------------------------


signals_received: list[int] = []  # numbers of those that asked for a stop


@contextmanager
def interrupt_on_signals() -> Iterator[list[int]]:
    """Ctrl+C, `kill` and a terminal that closes raise KeyboardInterrupt in here; gives the numbers
    of the signals that came. Python loses what is raised while an object is being deleted: work
    looks at signals_received as well.

    SIGINT is listened to also where it was inherited as ignored, as a job is that a script put into
    the background; SIGHUP is not, which is what nohup asks for.
    """

    def stop(number: int, _: object) -> None:
        signals_received.append(number)
        raise KeyboardInterrupt

    def lose(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            hook(lost)

    before, hook = {}, sys.unraisablehook
    sys.unraisablehook = lose
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            ignored = number is not None and signal.getsignal(number) == signal.SIG_IGN
            if number is not None and not (ignored and name == "SIGHUP"):
                before[number] = signal.signal(number, stop)
    try:
        yield signals_received
    finally:
        signals_received.clear()
        sys.unraisablehook = hook
        for number, one in before.items():
            signal.signal(number, signal.SIG_DFL if one is None else one)
