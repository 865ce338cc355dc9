"""What can be taken back: one order for everything, the newest first, on every page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hgviz.study import Mask

if TYPE_CHECKING:
    from hgviz.session import Session

MAX_STEPS = 200  # that can be undone

Step = TypeVar("Step")


@dataclass(frozen=True, slots=True)
class History(Generic[Step]):
    """What can be undone, the newest last, and what was undone and can be done again."""

    past: tuple[Step, ...] = ()
    future: tuple[Step, ...] = ()

    def went(self, old: Step) -> History[Step]:
        """After leaving one for another."""
        return History((*self.past, old)[-MAX_STEPS:])

    def back(self, now: Step) -> tuple[Step, History[Step]]:
        """The one before, and the history there."""
        return self.past[-1], History(self.past[:-1], (now, *self.future))

    def forth(self, now: Step) -> tuple[Step, History[Step]]:
        """The one that was undone last, and the history there."""
        return self.future[0], History((*self.past, now), self.future[1:])


@dataclass(frozen=True, slots=True)
class Deed:
    """What was done, in words, and the fields of a session as they were before."""

    words: str
    was: tuple[tuple[str, Any], ...]

    def there(self, session: Session) -> Deed:
        """The same from the other side: the fields as they are now."""
        return replace(self, was=tuple((name, getattr(session, name)) for name, _ in self.was))


def do(session: Session, words: str, along: bool = False, **fields: Any) -> None:
    """Put fields so that it can be taken back. along: together with what was done before."""
    was = tuple((name, getattr(session, name)) for name in fields)
    history = session.history if along else session.history.went(Deed(words, was))
    session.put(history=replace(history, future=()), **fields)


def undo(session: Session) -> Deed:
    """Take back what was done last; there must be something."""
    deed = session.history.past[-1]
    _put(session, *session.history.back(deed.there(session)))
    return deed


def redo(session: Session) -> Deed:
    """Do again what was taken back last; there must be something."""
    deed = session.history.future[0]
    _put(session, *session.history.forth(deed.there(session)))
    return deed


def bare(masks: tuple[Mask, ...]) -> tuple[Mask, ...]:
    """Masks without what they scored."""
    return tuple(Mask(one.name, one.off) for one in masks)


def unscored(history: History[Deed]) -> History[Deed]:
    """The same, its masks without what they scored on other examples."""
    return History(*(tuple(map(_unscored, side)) for side in (history.past, history.future)))


def _unscored(deed: Deed) -> Deed:
    was = ((name, bare(value) if name == "masks" else value) for name, value in deed.was)
    return replace(deed, was=tuple(was))


def _put(session: Session, deed: Deed, history: History[Deed]) -> None:
    """Put what was there, masks with what is known of them by now."""
    fields = dict(deed.was)
    if "masks" in fields:
        known = {one.off: one for one in session.masks if one.score is not None}
        fields["masks"] = tuple(
            replace(known[one.off], name=one.name) if one.off in known else one
            for one in fields["masks"]
        )
    session.put(history=history, **fields)
