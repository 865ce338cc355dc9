"""How much heads repeat each other, as a figure under a cell."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hgviz import tasks
from hgviz.core import Capture, HgvizError
from hgviz.files import find_sample
from hgviz.notebook.given import captured, is_capture
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.figures import Panel
    from hgviz.models.model import Model


def repeated(
    given: Model | Capture | Path_ | Sequence[Capture | Path_], width: str, title: str | None
) -> tuple[Panel, dict[str, Any], tuple[Capture, ...]]:
    """A figure made ready, its numbers, and the captures it is of. Errors: HgvizError."""
    from hgviz.figures import Spec

    many = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    captures = [captured(one, None, None, None, 0, "", None, "cpu") for one in many
                if is_capture(one)]  # fmt: skip
    if len(captures) not in (0, len(many)) or (len(many) != 1 and not captures):
        raise HgvizError(
            "these cannot be taken together: "
            "heads are compared by the weights of one model, or by the maps of captures",
            "Give one model, or captures alone",
        )
    one = many[0]
    if isinstance(one, Capture) or captures:
        found = tasks.redundancy_of_captures(captures)
    else:
        found = tasks.redundancy(find_sample(one) if isinstance(one, str) else one)
    sources = [os.fspath(each) if isinstance(each, str | os.PathLike)
               else getattr(each, "path", "") for each in many]  # fmt: skip
    panel = tasks.redundancy_panel(Spec("redundancy", width=width, title=title), found, sources)
    return panel, found.to_dict(), tuple(captures)
