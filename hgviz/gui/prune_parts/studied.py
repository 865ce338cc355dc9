"""A study that was opened, in words: what it is of, and what it lacks to try heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgviz.core import HgvizError, ModelSpec
from hgviz.gui.actions import by_name
from hgviz.gui.language import tr
from hgviz.gui.prune_parts.shades import place_noun
from hgviz.gui.samples import name_of
from hgviz.gui.views.words import counted
from hgviz.study import Study

if TYPE_CHECKING:
    from hgviz.session import Session

DATA = (("bundled_data", "Use the bundled reviews"), ("choose_data", "Choose data…"))

Words = tuple[tuple[str, str], tuple[tuple[str, str], ...]]  # title and text, actions


def about(study: Study) -> str:
    """heads.h5: softmax on reviews.tsv · 800 texts · 98.8 % right with all heads on."""
    seen = study.answered
    parts = [
        tr(
            "{file}: {model} on {data}",
            file=name_of(study.path), model=study.spec.name or tr("a model"), data=_data(study),
        ),
        counted(len(study.wanted), place_noun(study.asked, study.spec)),
    ]  # fmt: skip
    if seen.any():
        share = 100 * float(study.right[seen].mean())
        parts.append(
            tr("{share:.1f} % right with only {n:,} off", share=share, n=len(study.off))
            if study.off
            else tr("{share:.1f} % right with all heads on", share=share)
        )
    return " · ".join(parts)


def another_model(study: Study, spec: ModelSpec) -> HgvizError:
    """What is said where the study that is opened is not of the model that is open."""
    name, here = study.spec.name, spec.name
    if name and name == here:
        why = f"it measured another model named {name}, with other weights"
    elif name and here:
        why = f"it measured {name}, and {here} is open"
    else:
        why = "it measured another model than the one that is open"
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
        name = study.spec.name or tr("a model")
        title = tr("This study is of {name}, which is not open", name=name)
        text = tr("Open the model to switch its heads off and see what it scores.")
        return (title, f"{about(study)}\n{text}"), (("open_studied", "Open the model…"),)
    title = tr("Choose data to see what the model scores")
    text = tr(
        "With {data}, masks and curve go on where they were; other data is scored by itself.",
        data=_data(study),
    )
    return (title, f"{about(study)}\n{text}"), possible(session, *reversed(DATA))


def _data(study: Study) -> str:
    return study.data or tr("some data")


def possible(session: Session, *actions: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """Those of some actions, (name, words), that can be done now."""
    return tuple(one for one in actions if not by_name(one[0]).why_off(session))
