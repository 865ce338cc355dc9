"""What trainings of gates say of heads, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hgviz.core import Off
from hgviz.study import Study
from hgviz.tasks.opening import Path_


def with_gates(study: Study, gates: Sequence[Path_]) -> tuple[Study, Off]:
    """The study with what trainings gave its heads, and the heads that all of them close.

    gates: folders that hgviz train wrote, or their gates.json; one run each, in the place of what
    the study had of the same methods. Errors: HgvizError for gates of another model.
    """
    from hgviz.models.training.learned import read_learned

    learned, off = read_learned(gates, study.spec)
    new = {one.method for one in learned}
    kept = tuple(one for one in study.learned if one.method not in new)
    return replace(study, learned=(*kept, *learned)), off
