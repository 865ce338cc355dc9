"""How far models reach, as a figure under a cell."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.files import find_sample
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.figures import Panel
    from hgviz.models.model import Model


def measured(
    models: Sequence[Model | Path_],
    text: str | None,
    target: str | None,
    tokens: int | None,
    lengths: Sequence[int] | None,
    width: str,
    title: str | None,
) -> tuple[Panel, dict[str, Any]]:
    """A figure made ready, and its numbers. Errors: HgvizError."""
    from hgviz.figures import Spec
    from hgviz.tasks import reaching

    if (text is None) == (tokens is None) or not models:
        raise HgvizError(
            "nothing says what the models read: it is a text, or so many tokens at random",
            "Give one or more models, and text= or tokens=",
        )
    opened = [_opened(one, "float64") for one in models]
    found = []
    for model in opened:
        if text is None:
            given = reaching.drawn_tokens(model, tokens or 0)
        else:
            second = target if model.spec.form == "encoder-decoder" else None
            given = tasks.prompt_from(model, text, target=second)
        found.append(tasks.reach(model, *given))
    seconds = None
    if lengths is not None:
        usual = [_opened(one, "float32") for one in models]
        seconds = tasks.pass_times(usual, lengths)
    asked = {"--text": text, "--target": target, "--tokens": tokens,
             "--lengths": None if lengths is None else ",".join(map(str, lengths))}  # fmt: skip
    words = [str(part) for pair in asked.items() if pair[1] is not None for part in pair]
    paths = [str(find_sample(one)) if isinstance(one, str | os.PathLike) else "" for one in models]
    spec = Spec("reach", width=width, title=title)
    panel = tasks.reach_panel(spec, found, seconds, words, paths)
    return panel, tasks.reach_facts(opened, found, seconds)


def _opened(given: Model | Path_, dtype: str) -> Model:
    """The model that is given, or lies at a path, there in a precision."""
    if isinstance(given, str | os.PathLike):
        return tasks.load(find_sample(given), "cpu", dtype)
    return given
