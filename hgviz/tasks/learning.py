"""What trainings of gates say of heads, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hgviz.core import ModelSpec
from hgviz.study import LearnedImportance, Study


def learned(gates: Sequence[str | Path], spec: ModelSpec) -> tuple[LearnedImportance, ...]:
    """What trainings gave the heads of a model, a run each.

    gates: folders that hgviz train wrote, or their gates.json. Errors: HgvizError for files that
    are none, and for gates of another model.
    """
    if not gates:
        return ()
    from hgviz.models.training import read_learned

    return read_learned(gates, spec)


def with_learned(study: Study, found: Sequence[LearnedImportance]) -> Study:
    """The study with what was learned, in the place of what it had of the same methods."""
    new = {one.method for one in found}
    kept = tuple(one for one in study.learned if one.method not in new)
    return replace(study, learned=(*kept, *found))
