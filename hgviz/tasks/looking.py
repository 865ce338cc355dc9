"""What is made of a capture: measures, compositions and figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz.core import Capture, Floats, HeadId, Step, Task
from hgviz.tasks.opening import Path_

if TYPE_CHECKING:
    from hgviz.analysis.heads import HeadFacts
    from hgviz.figures import Spec


def measure(capture: Capture) -> Task[dict[HeadId, HeadFacts]]:
    """What every head does, in numbers and words."""
    from hgviz.analysis import heads

    return (yield from heads.measure(capture))


def rollout(capture: Capture, rows: tuple[int, int] | None = None) -> Task[Floats]:
    """All maps composed into one token-to-token map, models.md A.8."""
    from hgviz.analysis import resolution

    yield Step(0, 1, "composing all maps")
    return resolution.rollout(capture, rows)


def figure(
    spec: Spec,
    capture: Capture,
    path: Path_,
    command: str = "",
    facts: Mapping[HeadId, HeadFacts] | None = None,
) -> Task[str]:
    """Draw a figure for a paper; facts: what is known of the heads, measured where it is needed."""
    from hgviz import figures

    if not facts and spec.kind == "levels":
        facts = yield from measure(capture)
    yield Step(0, 1, f"drawing {Path(path).name}")
    return str(figures.draw(spec, capture, path, facts=facts, command=command))
