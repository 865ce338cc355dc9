"""Runs a study in a process of its own: the window stays free, and Stop is immediate."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from hgviz.core import HgvizError, Step, Task
from hgviz.gui.language import tr
from hgviz.gui.working import GOING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hgviz.gui.bridge import Lanes
    from hgviz.gui.working import OnError, Working
    from hgviz.session import Session
    from hgviz.sweep import Sweep

RUN = "run study"  # the key of the job
LOOK = 0.1  # s between two looks at the process
PATIENCE = 8.0  # s that it has to put its things away once it is stopped
ASIDE = ("Given up:",)  # lines about cells, which their files tell, too
MOST = 4000  # characters of what it said


class Running:
    """Starts and stops the study at hand; it goes with the window."""

    def __init__(
        self, session: Session, lanes: Lanes, working: Working, on_error: OnError,
        look: Callable[[], None],
    ) -> None:  # fmt: skip
        self.session, self.lanes, self.working, self.on_error = session, lanes, working, on_error
        self._look = look

    @property
    def going(self) -> bool:
        """Whether it runs from here."""
        return any(one.key == RUN and one.state in GOING for one in self.session.work)

    def start(self, file: str, out: str, scheduler: str = "", again: bool = False) -> None:
        """Compute what is missing. again: also cells that were given up."""
        sweep = self.session.sweep
        name = sweep.title if sweep is not None else os.path.basename(file)
        title = tr("Running {name}", name=name)
        task = apart(command(file, out, scheduler, again), self._share)
        self.working.start(
            self.lanes.runs, RUN, title, task, self._ended, partial(self._failed),
            on_step=self._stepped,
        )  # fmt: skip
        self._look()

    def stop(self) -> None:
        """Stop it; what is done is kept."""
        self.working.stop(RUN)

    def _share(self) -> tuple[float, float]:
        """How many cells are done and how many there are; the parts of those that run count."""
        sweep = self.session.sweep
        if sweep is None:
            return 0.0, 0.0
        return share_of(sweep)

    def _stepped(self, step: Step) -> None:
        if self.session.sweep is not None:
            self.working.tell(RUN, left=self.session.sweep.left)

    def _ended(self, _: Any) -> None:
        self._look()

    def _failed(self, error: BaseException) -> None:
        self._look()
        self.on_error(error)


def share_of(sweep: Sweep) -> tuple[float, float]:
    """How much of it is done, in cells, and of how many."""
    part = sum(1.0 if one.state == "done" else one.share for one in sweep.standings)
    return part, float(len(sweep.standings))


def command(file: str, out: str, scheduler: str = "", again: bool = False) -> list[str]:
    """The words after hgviz that run a study, as anybody could type them."""
    words = ["study", "run", file, "-o", out]
    words += ["--scheduler", scheduler] if scheduler else []
    return [*words, "--again"] if again else words


def apart(words: Sequence[str], share: Callable[[], tuple[float, float]]) -> Task[None]:
    """hgviz with these words as a process of its own, until it ends; stopped, it is interrupted.

    Errors: HgvizError with what it said, where it did not end well for another reason than cells
    that failed.
    """
    with tempfile.TemporaryFile() as said:
        process = _begun(words, said)
        try:
            while process.poll() is None:
                time.sleep(LOOK)
                yield Step(*share())
        finally:
            _end(process)
        if process.returncode:
            _complain(said, process.returncode)


def program() -> list[str]:
    """What starts hgviz, from a bundle and from a Python."""
    return [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "hgviz"]


def _begun(words: Sequence[str], said: IO[bytes]) -> subprocess.Popen[bytes]:
    group: dict[str, Any] = (
        {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
        if sys.platform == "win32"
        else {"start_new_session": True}
    )
    try:
        return subprocess.Popen(
            [*program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
            **group,
        )  # fmt: skip
    except OSError as error:
        raise HgvizError(
            "the study could not be started", (error.strerror or str(error)).lower(),
            "Close other programs, and run it again",
        ) from error  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asked to, which no parent can have it ignore, and then for good; its workers go with it."""
    for tell in (_ask, _kill):
        if process.poll() is not None:
            return
        with suppress(OSError):
            tell(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)


def _ask(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.send_signal(signal.CTRL_BREAK_EVENT)
    else:
        process.terminate()


def _kill(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)


def _complain(said: IO[bytes], code: int) -> None:
    """Errors: HgvizError with the last lines, unless they only tell of cells that failed."""
    said.seek(0)
    words = said.read().decode(errors="replace")[-MOST:].strip()
    lines = [one for one in words.splitlines() if one.strip() and not one.startswith(ASIDE)]
    if not lines and code == 1:
        return
    why = lines[-1] if lines else f"its process ended with {code}"
    raise HgvizError("The study stopped", why, "What was done is kept; run it again", words)


__all__ = ["RUN", "Running", "apart", "command", "share_of"]
