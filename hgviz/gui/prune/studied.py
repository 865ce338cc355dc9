"""A study that was opened, in words: what it is of, and what it lacks to try heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgviz.core import HgvizError, ModelSpec
from hgviz.gui.actions import by_name
from hgviz.gui.opening import name_of
from hgviz.gui.prune.shades import place_noun
from hgviz.study import Study

if TYPE_CHECKING:
    from hgviz.session import Session

Words = tuple[tuple[str, str], tuple[tuple[str, str], ...]]  # title and text, actions


def about(study: Study) -> str:
    """heads.h5: all heads of softmax on reviews.tsv, 800 texts, 98.8 % right with all heads on."""
    seen = study.answered
    noun = place_noun(study.asked, study.spec)
    places = f"{len(study.wanted):,} {noun}{'' if len(study.wanted) == 1 else 's'}"
    right = (
        f", {100 * study.right[seen].mean():.1f} % right with all heads on" if seen.any() else ""
    )
    if study.off:
        right = right.replace("all heads on", f"only {len(study.off)} off")
    of = study.spec.name or "a model"
    return f"{name_of(study.path)}: {of} on {study.data or 'some data'}, {places}{right}"


def another_model(study: Study, spec: ModelSpec) -> HgvizError:
    """What is said where the study that is opened is not of the model that is open."""
    name, here = study.spec.name or "a model", spec.name or "the model that is open"
    if name == here:
        name, here = "another of that name", f"{here}, which is open"
        why = f"it measured {name}, with other weights than {here}"
    else:
        why = f"it measured {name}, and {here} is open"
    return HgvizError(
        f"{name_of(study.path)} is a study of another model",
        why,
        "Show the study by itself, which closes the model, or open the model it measured first",
    )


def wanting(session: Session) -> Words | None:
    """What a study that was opened still lacks to try heads; None where none was opened."""
    study = session.study
    if study is None or not study.path:
        return None
    if session.model is None and not session.checkpoint:
        title = f"This study is of {study.spec.name or 'a model'}, which is not open"
        text = f"{about(study)}.\nOpen the model to switch its heads off and see what it scores."
        return (title, text), (("open_studied", "Open the model…"),)
    data = study.data or "some data"
    title = "Choose data to see what the model scores"
    text = (
        f"{about(study)}.\nWith {data}, masks and curve go on where they were; other data is "
        "scored by itself."
    )
    actions = (("choose_data", "Choose data…"), ("bundled_data", "Use the bundled reviews"))
    can = tuple(one for one in actions if not by_name(one[0]).why_off(session))
    return (title, text), can


__all__ = ["about", "another_model", "wanting"]
