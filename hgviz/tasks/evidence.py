"""Roles of heads in words: a sentence, the evidence, and what JSON and tables show."""

from __future__ import annotations

from typing import Any, NamedTuple

from hgviz.analysis.metrics import HEADS, metrics_for
from hgviz.analysis.roles import (
    DISTANCE_TEXTS,
    POSITIONAL,
    ROLES,
    CorpusRoles,
    HeadRole,
    RoleFit,
)
from hgviz.language import decimals, rounded_percent

OTHER_ROLES = 3  # that are named beside the clearest
STRONG = 0.3  # the share from which on a sentence says what a head does, not what it leans to


class RoleWords(NamedTuple):
    """A role that a head shows: its key in ROLES or METRICS or "", its label, the evidence, and its
    strength from 0 to 1."""

    name: str
    words: str
    evidence: str
    score: float


def role_sentence(head: HeadRole) -> str:
    """What a head does, as a sentence without a full stop."""
    if head.has_role:
        does = head.context.fill(ROLES[head.name].description)
        return does if head.share >= STRONG else f"Leans towards: {head.role}"
    where = "this text" if head.context.texts == 1 else "these texts"
    return {
        "uniform": "Spreads over everything it sees",
        "one token": f"Rests on “{head.most_text}”",
        "one key": "One key (trivial)" if head.signed else "One key, always 1 (trivial)",
        "none": f"No single role shows on {where}",
    }[head.name]


def role_evidence(head: HeadRole) -> str:
    """The numbers behind the role of a head."""
    if head.has_role:
        return _fit_evidence(head, RoleFit(head.name, head.share, head.chance, head.coverage, True))
    share, chance = rounded_percent(head.share), rounded_percent(head.chance)
    if head.name == "uniform":
        return f"its rows are {share} as even as they could be{_rest(head)}"
    if head.name == "one token":
        where = f"{share} of {_weight(head)}, over all rows, goes there"
        return f"{where}; by chance {chance}{_rest(head)}"
    if head.name == "one key":
        whose = "its windows hold" if head.context.is_windowed else "there is"
        return f"{whose} a single key, so there is nothing to choose"
    if head.closest:
        label = head.context.fill(ROLES[head.closest].label)
        closest = f"closest: {label}, {share} of {_weight(head)}"
        return f"{closest}; by chance {chance}{_rest(head)}"
    if head.most is not None and not head.context.is_ordered:
        most = rounded_percent(head.most_share)
        return f"most of {_weight(head)}, {most}, on “{head.most_text}”"
    return "too few rows to tell"


def role_words(head: HeadRole) -> tuple[RoleWords, ...]:
    """Everything that shows in a head: its role, then the clearest of the others, then whether it
    goes by position alone, and whether it is a convolution."""
    shown = []
    if head.role:
        name = head.name if head.has_role else ""
        shown.append(RoleWords(name, head.role, role_evidence(head), head.score))
    for fit in [fit for fit in head.fits if fit.name != head.name][:OTHER_ROLES]:
        label = head.context.fill(ROLES[fit.name].label)
        shown.append(RoleWords(fit.name, label, _fit_evidence(head, fit), fit.share))
    share, offset = (head.metrics.get(name, 0.0) for name in ("positional", "offset"))
    if share >= POSITIONAL:
        rows = f"{rounded_percent(share)} of its rows look most {_at(head, offset)}"
        shown.append(RoleWords("positional", "positional", f"{rows}{_sample(head)}", share))
    if (kernel := head.kernel) is not None and kernel.is_convolution:
        unit = head.context.unit if head.context.place == head.context.unit else "position"
        evidence = (
            f"{100 * kernel.score:.0f} % of what tells its rows apart is one kernel: "
            f"{decimals(kernel.centre, 1, signed=True)} {unit}s, ±{kernel.width:.1f}{_sample(head)}"
        )
        shown.append(RoleWords("convolution", "convolution-like", evidence, kernel.score))
    return tuple(shown)


def roles_to_dict(corpus: CorpusRoles) -> dict[str, Any]:
    """The roles of all heads as `hgviz heads --json` prints them."""
    metrics, spec = metrics_for(HEADS), corpus.spec
    return {
        "texts": corpus.texts,
        "tokens": corpus.tokens,
        "metrics": {name: metric.named("token") for name, metric in metrics.items()},
        "heads": [
            {
                "head": str(head.head),
                "layer": spec.layers[head.head.layer].name,
                "level": spec.levels[spec.layers[head.head.layer].level].label,
                "kind": head.kind,
                "role": head.role,
                "says": role_sentence(head),
                "evidence": role_evidence(head),
                "score": head.score,
                **{name: head.metrics.get(name) for name in metrics},
                "nearest_head": str(head.nearest) if head.nearest is not None else None,
                "named": [words._asdict() for words in role_words(head)],
                "examples": [example._asdict() for example in head.examples],
            }
            for _, head in sorted(corpus.heads.items())
        ],
        "notes": corpus_notes(corpus),
    }


def corpus_notes(corpus: CorpusRoles) -> list[str]:
    """What was not measured, as sentences without a capital and a full stop."""
    heads, missing = corpus.heads.values(), ", ".join(map(str, corpus.missing))
    notes = {
        f"layers {missing} are not captured": missing,
        "no word is rare: these texts use at most 500 different words":
            corpus.texts > 1 and corpus.rare_words == 0,
        f"heads are likened on {DISTANCE_TEXTS} texts, spread evenly over all":
            corpus.texts > DISTANCE_TEXTS,
        "of texts above 8,192 tokens rows spread evenly are measured":
            any(head.context.rows < head.context.all_rows for head in heads),
        "signed weights count by their size, every row divided by its sum":
            any(head.signed for head in heads),
    }  # fmt: skip
    return [note for note, applies in notes.items() if applies]


def sample_words(rows: int, all_rows: int, texts: int = 1) -> str:
    """What is added to evidence where only some rows were measured, or many texts."""
    if texts > 1:
        spread = ", on rows spread evenly over the long ones" if rows < all_rows else ""
        return f"; over {texts:,} texts{spread}"
    return f"; measured on {rows:,} of {all_rows:,} rows" if rows < all_rows else ""


def _fit_evidence(head: HeadRole, fit: RoleFit) -> str:
    covered = f" ({rounded_percent(fit.coverage)} of rows have one)"
    where = f"{rounded_percent(fit.share)} of {_weight(head)}, on average, goes there"
    rows = "" if fit.coverage > 0.9 else covered
    return f"{where}; by chance {rounded_percent(fit.chance)}{rows}{_rest(head)}"


def _at(head: HeadRole, offset: float) -> str:
    """Where a head looks by position."""
    unit = head.context.unit
    if not offset:
        return f"at the {unit} itself" if head.context.place == unit else "at themselves"
    way = "on" if offset > 0 else "back"
    return f"{abs(offset):.0f} {unit}{'' if abs(offset) == 1 else 's'} {way}"


def _sample(head: HeadRole) -> str:
    return sample_words(head.context.rows, head.context.all_rows, head.context.texts)


def _rest(head: HeadRole) -> str:
    """The two sums of signed rows, and how much was measured."""
    if not head.signed:
        return _sample(head)
    plus, minus = (head.metrics.get(name, 0.0) for name in ("positive", "negative"))
    sums = f"; a row adds up to {plus:.2f} above 0 and −{abs(minus):.2f} below"
    return f"{sums}{_sample(head)}"


def _weight(head: HeadRole) -> str:
    return "the size of its weights" if head.signed else "its weight"
