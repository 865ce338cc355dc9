"""Undo steps of a session, one order for all pages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hgviz.study import Mask

MAX_STEPS = 200


@dataclass(frozen=True, slots=True)
class UndoStep:
    """What was done, in words, and the fields of a session as they were before."""

    words: str
    fields: tuple[tuple[str, Any], ...]

    def at(self, session: object) -> UndoStep:
        """The same step with the fields as they are now."""
        return replace(
            self, fields=tuple((name, getattr(session, name)) for name, _ in self.fields)
        )


@dataclass(frozen=True, slots=True)
class History:
    """Steps that can be undone, the newest last, and steps that can be redone, the next first."""

    past: tuple[UndoStep, ...] = ()
    future: tuple[UndoStep, ...] = ()

    def add(self, step: UndoStep) -> History:
        """The history after another step; what was undone cannot be redone any more."""
        return History((*self.past, step)[-MAX_STEPS:])

    def undo(self, now: UndoStep) -> History:
        """The history after the newest step is undone. now: that step with the present fields."""
        return History(self.past[:-1], (now, *self.future))

    def redo(self, now: UndoStep) -> History:
        """The history after the next step is redone. now: that step with the present fields."""
        return History((*self.past, now), self.future[1:])

    def without_scores(self) -> History:
        """The history with masks that are not scored: for other examples."""

        def bare(step: UndoStep) -> UndoStep:
            fields = ((name, unscored(value) if name == "masks" else value)
                      for name, value in step.fields)  # fmt: skip
            return replace(step, fields=tuple(fields))

        return History(tuple(map(bare, self.past)), tuple(map(bare, self.future)))


def unscored(masks: tuple[Mask, ...]) -> tuple[Mask, ...]:
    """Masks without their scores."""
    return tuple(Mask(mask.name, mask.off) for mask in masks)
