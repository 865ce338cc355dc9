"""Brings the second side of a comparison into the session, and keeps it true to the first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hgviz import settings
from hgviz.analysis.pairing import counterpart
from hgviz.core import Capture, HeadId, HgvizError, Step
from hgviz.gui.compare_parts import others
from hgviz.gui.compare_parts.others import Brought, Source
from hgviz.gui.samples import name_of
from hgviz.session import Session
from hgviz.session.other import Other

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.jobs import OnError, Working
    from hgviz.models.model import Model

BESIDE = "beside"
QUIET = 0.2  # s: a B that is there sooner shows no layers on their way
NEEDS_CHECKPOINT = HgvizError(
    "B needs the checkpoint that made A",
    "what is on screen was opened from a file, and a file of maps answers nothing new",
    "Open the checkpoint, or choose another checkpoint or capture for B",
)


class Comparing:
    """Makes session.beside what session.other says, for every new capture of A."""

    def __init__(self, session: Session, lanes: Lanes, working: Working, on_error: OnError) -> None:
        self.session, self.lanes, self.working, self.on_error = session, lanes, working, on_error
        self._shown: Other | None = None  # what session.beside is of
        self._model: Model | None = None  # the one that made B, and what it was opened from
        self._opened: others.Opened = ("", "")
        self._partial = False  # whether session.beside is what there is so far of a new B
        self._due = False  # whether A is another one than B was made beside
        self._maps: object = None  # those of A
        session.changed.connect(self._heard)

    def close(self) -> None:
        """Listen no more."""
        self.session.changed.disconnect(self._heard)

    # --- what people ask for ----------------------------------------------------------------------

    def choose(self, other: Other, head: HeadId | None = None) -> None:
        """Have another B. head: that of B which stands beside A's, None for the same one."""
        session = self.session
        chosen = replace(session.selection, beside=head)
        session.put(chosen=False, mode="compare", other=other, selection=chosen)
        self._due = session.at_work  # then A is about to be another one
        if not self._due:
            self._start()

    def stop(self) -> None:
        """Stop bringing B; what was there before stays."""
        self.working.stop(BESIDE)
        self._due = False
        self.session.put(other=self._shown)

    def forget(self) -> None:
        """Have no B."""
        self.working.stop(BESIDE)
        self._due, self._shown, self._model = False, None, None
        chosen = replace(self.session.selection, beside=None)
        self.session.put(chosen=False, other=None, beside=None, selection=chosen)

    # --- following A ------------------------------------------------------------------------------

    def _heard(self, name: str) -> None:
        if name == "capture":
            maps = self.session.capture.maps if self.session.capture is not None else None
            self._due |= self.session.other is not None and maps is not self._maps
            self._maps = maps  # one that was only saved is the same
        if name in ("capture", "mode", "work") and self._due:
            self._follow()

    def _follow(self) -> None:
        """Bring B anew once all of A is there and somebody looks."""
        session = self.session
        a, other = session.capture, session.other
        if other is None or session.mode != "compare" or session.at_work:
            return
        if a is None:
            self.forget()
        elif other.kind == "head" or a.complete:
            if self._lost(a, other):
                self.forget()
            else:
                self._start()

    def _lost(self, a: Capture, other: Other) -> bool:
        """Whether there is no such B beside this A."""
        if other.kind in ("activation", "text", "off") and not self.session.checkpoint:
            return True
        return other.kind == "off" and not other.off <= set(a.spec.heads)

    # --- bringing B -------------------------------------------------------------------------------

    def _start(self) -> None:
        session, self._due = self.session, False
        a, other = session.capture, session.other
        self.working.stop(BESIDE)
        if a is None or other is None:
            return
        if other.kind == "head":
            self._take(Brought(other, a))
        elif other.kind == "model":
            self.working.start(
                self.lanes.files, BESIDE, f"Opening {name_of(other.path)} as B",
                others.looked(other, a), self._looked, self._failed, bound=True,
            )  # fmt: skip
        elif not session.checkpoint:
            self._failed(NEEDS_CHECKPOINT)
        else:
            self._capture(a, other)

    def _looked(self, found: Brought | None) -> None:
        a, other = self.session.capture, self.session.other
        if found is not None:
            self._take(found)
        elif a is not None and other is not None:
            self._capture(a, other)

    def _capture(self, a: Capture, other: Other) -> None:
        session = self.session
        path = other.path if other.kind == "model" else session.checkpoint
        own = other.kind in ("activation", "model")
        activation = other.activation if own else session.activation
        model = None
        if (path, activation) == (session.checkpoint, session.activation):
            model = session.model
        elif (path, activation) == self._opened:
            model = self._model
        source = Source(other, path, activation, model, settings.load().device)
        self._partial = False
        self.working.start(
            self.lanes.engine, BESIDE, "Capturing B", others.bring(source, a),
            self._take, self._failed, self._stepped, bound=True,
        )  # fmt: skip

    def _stepped(self, step: Step) -> None:
        """Show B once it has the head that is looked at, unless all of it will be there in a
        moment: each new B is compared from the start."""
        if not isinstance(step.value, Brought) or self.working.age(BESIDE) <= QUIET:
            return
        part, now = step.value.capture, self.session.beside
        if self._has(part) and not (self._partial and now is not None and self._has(now)):
            self._partial, self._shown = True, step.value.other
            self.session.put(beside=part)

    def _has(self, b: Capture) -> bool:
        """Whether a B has what stands beside the selected head."""
        a, chosen = self.session.capture, self.session.selection
        return a is not None and counterpart(a, b, chosen.head_id, chosen.beside) is not None

    def _take(self, found: Brought) -> None:
        if found.model is not None:
            self._model, self._opened = found.model, found.opened
        self._shown = found.other
        self.session.put(beside=found.capture, other=found.other)

    def _failed(self, error: BaseException) -> None:
        """What was there before stays, if it is of this A."""
        stale = self._shown == self.session.other
        if stale:
            self.forget()
        else:
            self.session.put(other=self._shown)
        self.on_error(error)
