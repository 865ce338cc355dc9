"""What a notebook gives: captures, models, texts and paths, and which head of them is meant."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hgviz import tasks
from hgviz.core import Capture, HeadId, HgvizError, parse_heads
from hgviz.errors import choose
from hgviz.files import find_sample

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.study import Study

Head = int | str | tuple[int, int]
# what options are called here and on a command line, where --heads --fuse would be two things
OTHERWISE = {"methods": "method", "metrics": "metric"}
COMMON = "layer", "head", "query", "key", "width", "title"  # that every kind takes
OFTEN = "Other options of figure() are kind, text, layer, head, query, key, item, width and title"


# --- what is given --------------------------------------------------------------------------------


def captured(
    given: Any,
    text: str | None,
    pair: str | None,
    target: str | None,
    item: int,
    off: str,
    activation: str | None,
    device: str,
) -> Capture:
    """The capture that is given, lies at a path, or that a model makes of a text."""
    if is_capture(given):
        asked = {"text": text, "off": off, "activation": activation}
        if unlike := [name for name, value in asked.items() if value]:
            raise HgvizError(
                f"a capture takes no {unlike[0]}: it is of one text, as one model read it",
                "Give the model in its place, or leave it out",
            )
        if isinstance(given, Capture):
            return given
        from hgviz.store import open_capture

        return open_capture(find_sample(given), item)
    _require_model(given)  # before a text is missed
    if text is None:
        raise HgvizError(
            "a model needs a text: there is nothing to draw before it has read one",
            'Give one, such as text="The sand ran down."',
        )
    model = model_of(given, activation, device)
    prompt, second = tasks.prompt_from(model, text=text, pair=pair, target=target)
    heads = tasks.heads_from(off, model.spec)
    return tasks.capture(model, prompt, off=heads, target=second)


def captured_alike(
    given: Any, like: Capture, off: str, activation: str | None, device: str
) -> Capture:
    """The text of a capture, read by a model."""
    _require_model(given)
    model = model_of(given, activation, device)
    return tasks.capture_alike(model, like, tasks.heads_from(off, model.spec))


def model_of(given: Any, activation: str | None, device: str) -> Model:
    """The model that is given, or lies at a path."""
    if not isinstance(given, str | os.PathLike):
        if activation is not None:
            raise HgvizError(
                "the activation of a model that is open cannot be exchanged: "
                "its layers are built for the one it has",
                "Give its path in its place",
            )
        model: Model = given
        return model
    return tasks.load(os.fspath(given), device, activation=activation)


def _require_model(given: Any) -> None:
    """Errors: HgvizError for what is no model, and for a path that holds nothing."""
    if isinstance(given, str | os.PathLike):
        tasks.kind_of(os.fspath(given))
    elif not hasattr(given, "trace"):
        raise HgvizError(
            f"{given!r:.40} cannot be drawn: "
            "captures and models can, and paths of captures, checkpoints and studies",
            "Give one of these",
        )


def is_capture(given: Any) -> bool:
    """Whether it is a capture, or the path of one."""
    if isinstance(given, Capture):
        return True
    if not isinstance(given, str | os.PathLike) or not os.path.lexists(find_sample(given)):
        return False
    return tasks.kind_of(os.fspath(given)) == "capture"


def study_at(given: Any) -> Study | None:
    """The study at a path, None where there is none."""
    if not isinstance(given, str | os.PathLike) or not os.path.isfile(given):
        return None
    if tasks.kind_of(os.fspath(given)) != "study":
        return None
    from hgviz.store import open_study

    return open_study(os.fspath(given))


# --- what is chosen -------------------------------------------------------------------------------


def options_of(kind: str, kinds: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a kind by the names of the command line, those that are None left out.

    Errors: HgvizError for a kind that is not there, TypeError for options it does not have.
    """
    from hgviz.figures.spec import options_of as options_of_kind

    choose(kind, kinds, "kind of figure")
    otherwise = {**OTHERWISE, **({"fuse": "together"} if kind == "links" else {})}
    named = {otherwise.get(name, name): value for name, value in given.items()}
    if unknown := sorted(set(named) - set(options_of_kind(kind)) - set(COMMON)):
        raise TypeError(f"a figure of kind {kind} has no option {unknown[0]!r}. {OFTEN}.")
    return {name: value for name, value in named.items() if value is not None}


def chosen_of(capture: Capture, layer: int | None, head: Head | None) -> dict[str, int]:
    """The head that is meant as options; none where none is."""
    if layer is None and head is None:
        return {}
    found = head_of(capture, layer, head)
    return {"layer": found.layer, "head": found.head}


def head_of(capture: Capture, layer: int | None, head: Head | None) -> HeadId:
    """The head that is meant: a number in a layer, "12.5" or (12, 5); 0.0 where none is."""
    if isinstance(head, str) and "." in head:
        found = parse_heads(head, capture.spec.layers)
        if len(found) != 1:
            raise HgvizError(f"{head!r} names {len(found)} heads: one is drawn", "Name one")
        return next(iter(found))
    if isinstance(head, tuple):
        return HeadId(*head)
    if isinstance(head, str) and not head.isdecimal():
        raise HgvizError(f"{head!r} names no head: a head is 5, or 3.5 with its layer", "Name one")
    return HeadId(layer or 0, int(head or 0))
