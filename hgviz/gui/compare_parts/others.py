"""The tasks that bring the second side of a comparison: what runs in a lane, what it gives."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hgviz import tasks
from hgviz.core import NO_STREAMING, Capture, HgvizError, Step, Task
from hgviz.gui import opening
from hgviz.gui.samples import name_of

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.session.other import Other

Opened = tuple[str, str]  # the path of a checkpoint and the activation it is opened with


@dataclass(frozen=True, slots=True)
class Source:
    """What B is made of. path, activation: the checkpoint to open where model is None; A's are
    those of the checkpoint at hand, device what it runs on."""

    other: Other
    path: str
    activation: str
    model: Model | None
    device: str

    @property
    def opened(self) -> Opened:
        """What the model is, for the next time."""
        return self.path, self.activation


@dataclass(frozen=True, slots=True)
class Brought:
    """B, and the model that made it; None where it was a file."""

    other: Other
    capture: Capture
    model: Model | None = None
    opened: Opened = ("", "")


def looked(other: Other, a: Capture) -> Task[Brought | None]:
    """The capture that lies at a path, of many texts the one that A is of; None for a checkpoint.

    Errors: HgvizError for what is neither.
    """
    yield Step(0, 1, "looking at the file")
    kind = tasks.kind_of(other.path)
    if kind == "checkpoint":
        return None
    if kind == "study":
        raise HgvizError(
            f"{name_of(other.path)} is a study",
            "it says what heads are worth, and has no maps to compare",
            "Choose a checkpoint or a capture",
        )
    from hgviz.store import open_capture

    capture = open_capture(other.path)
    if capture.items:
        same = [one.number for one in capture.items if one.text == a.main.text]
        numbers = [one.number for one in capture.items]
        number = same[0] if same else a.item if a.item in numbers else capture.item
        capture = capture if number == capture.item else open_capture(other.path, number)
    return Brought(other, capture)


def bring(source: Source, a: Capture) -> Task[Brought]:
    """Capture B; each Step may carry what is Brought so far."""
    other, model = source.other, source.model
    wish = opening.Wish(
        source.path, other.text, other.second, device=source.device, activation=source.activation
    )
    if model is None:
        model = yield from opening.load(wish)
    if other.kind == "text":
        task = _another_text(replace(wish, off=a.off, streaming=a.streaming), model)
    else:
        off = {"off": other.off, "activation": a.off}.get(other.kind, frozenset())
        # with some heads off the others are as in A, and with none it is the whole model
        few = a.streaming if other.kind == "activation" or off else NO_STREAMING
        task = tasks.capture_alike(model, a, off, few)
    with closing(task):
        while True:
            try:
                step = next(task)
            except StopIteration as end:
                return Brought(other, end.value, model, source.opened)
            yield replace(step, value=_so_far(source, step.value))


def _so_far(source: Source, value: Any) -> Brought | None:
    return Brought(source.other, value) if isinstance(value, Capture) else None


def _another_text(wish: opening.Wish, model: Model) -> Generator[Step, None, Capture]:
    try:
        _, _, found = yield from opening.capture_text(wish, model)
    except opening.UnreadError as error:
        raise HgvizError(error.what, error.why, "Write another text for B") from None
    return found
