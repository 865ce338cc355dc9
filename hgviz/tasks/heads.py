"""What heads do: roles measured over a text or a corpus, roles in words, and attention rollout."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hgviz.analysis import composition
from hgviz.analysis.composition import rollout as rollout
from hgviz.analysis.metrics import HEADS, metrics_for
from hgviz.analysis.roles import (
    DISTANCE_TEXTS,
    POSITIONAL,
    ROLES,
    CorpusRoles,
    HeadRole,
    RoleFit,
    corpus_roles,
    roles,
)
from hgviz.analysis.tokens import Lexicon
from hgviz.core import Capture, HeadId, HeadSet, Prompt, RolloutOptions, progress
from hgviz.language import decimals, rounded_percent
from hgviz.tasks.captures import capture as capture_text
from hgviz.tasks.captures import read_corpus

if TYPE_CHECKING:
    from hgviz.models.model import Model

CACHE_NUMBERS = 1 << 26  # of the captures that are kept for the second pass
CACHE_CAPTURES = 512
INDEX_CHARACTERS = 40  # a corpus file's index keeps at least this much of each text
OTHER_ROLES = 3  # that are named beside the strongest
STRONG = 0.3  # share of attention from which a sentence states a role without "Partly"


# --- measured -------------------------------------------------------------------------------------


def roles_of_capture(capture: Capture, alone: bool = False) -> CorpusRoles:
    """The roles of all heads over every text of a capture file; alone: over this text only."""
    if alone or len(capture.items) < 2:
        return corpus_roles(lambda number: capture, [capture.item])
    from hgviz.store import open_capture

    def open_text(number: int) -> Capture:
        # without the list of all texts, which would make memory grow with its square
        return replace(open_capture(capture.path, number), items=())

    progress(0, len(capture.items), "reading the texts")
    longest = max(len(item.text) for item in capture.items)
    lexicon = Lexicon(  # the index of a corpus file cuts long texts
        open_text(item.number).prompt.text
        if len(item.text) == longest >= INDEX_CHARACTERS
        else item.text
        for item in capture.items
    )
    numbers = [item.number for item in capture.items]
    return corpus_roles(CaptureCache(open_text), numbers, lexicon)


def roles_of_model(model: Model, corpus: str | Path, off: HeadSet = frozenset()) -> CorpusRoles:
    """The roles of all heads of a model over every text of a file; nothing is written.

    A second pass reads texts again that the cache does not hold. Raises HgvizError for a file or
    a text that cannot be read, naming its line.
    """
    from hgviz.models.prompts import corpus_prompts

    texts, lengths = read_corpus(model, corpus)

    def capture_number(number: int) -> Capture:
        prompt, target = corpus_prompts(model, texts, number)
        return capture_text(model, prompt, off=off, target=target, logits=False)

    lexicon = Lexicon(text.text for text in texts.texts) if len(lengths) > 1 else None
    return corpus_roles(CaptureCache(capture_number), range(len(lengths)), lexicon)


def roles_of_text(
    model: Model, prompt: Prompt, target: Prompt | None = None, off: HeadSet = frozenset()
) -> CorpusRoles:
    """The roles of all heads of a model on one text."""
    return roles_of_capture(capture_text(model, prompt, off=off, target=target, logits=False))


def layer_roles(capture: Capture, layers: Collection[int]) -> dict[HeadId, HeadRole]:
    """The roles of all heads of some layers: numbers of a head are rounded with its layer's."""
    maps = (one if index in layers else None for index, one in enumerate(capture.maps))
    return roles(replace(capture, maps=tuple(maps)))


class CaptureCache:
    """Captures by number: the first ones, up to 256 MB, are made once, later ones at each call."""

    def __init__(self, make: Callable[[int], Capture]) -> None:
        self._make, self._captures, self._room = make, dict[int, Capture](), CACHE_NUMBERS

    def __call__(self, number: int) -> Capture:
        if number not in self._captures:
            capture = self._make(number)
            layers = len(capture.spec.layers)
            # queries and keys of every layer
            self._room -= 2 * layers * capture.spec.width * max(map(len, capture.spans))
            if self._room < 0 or len(self._captures) >= CACHE_CAPTURES:
                return capture
            self._captures[number] = capture
        return self._captures[number]


# --- in words -------------------------------------------------------------------------------------


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
        return does if head.share >= STRONG else f"Partly: {head.role}"
    where = "this text" if head.context.texts == 1 else "these texts"
    return {
        "uniform": "Uniform attention",
        "one token": f"Mostly attends to “{head.most_text}”",
        "one key": "Single key (trivial)" if head.signed else "Single key, weight 1 (trivial)",
        "none": f"No single role on {where}",
    }[head.name]


def role_evidence(head: HeadRole) -> str:
    """The numbers behind the role of a head."""
    if head.has_role:
        return _fit_evidence(head, RoleFit(head.name, head.share, head.chance, head.coverage, True))
    share, chance = decimals(head.share), decimals(head.chance)
    rest = _rest(head)
    if head.name == "uniform":
        return f"entropy {rounded_percent(head.share)} of its maximum{rest}"
    if head.name == "one token":
        return f"{_weight(head)} {share} (chance {chance}){rest}"
    if head.name == "one key":
        return f"there is only one key{' in each window' if head.context.is_windowed else ''}"
    if head.closest:
        label = head.context.fill(ROLES[head.closest].label)
        return f"closest: {label}, {share} (chance {chance}){rest}"
    if head.most is not None and not head.context.is_ordered:
        return f"most attention, {decimals(head.most_share)}, on “{head.most_text}”"
    return "too few rows"


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
        rows = f"{rounded_percent(share)} of its rows attend most {_at(head, offset)}"
        shown.append(RoleWords("positional", "positional", f"{rows}{_sample(head)}", share))
    if (kernel := head.kernel) is not None and kernel.is_convolution:
        unit = head.context.unit if head.context.place == head.context.unit else "position"
        evidence = (
            f"one kernel explains {100 * kernel.score:.0f} % of the variance of its rows: "
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
        f"similarity of heads is measured on {DISTANCE_TEXTS} texts, spread evenly over all":
            corpus.texts > DISTANCE_TEXTS,
        "evenly spaced rows are measured of texts above 8,192 tokens":
            any(head.context.rows < head.context.all_rows for head in heads),
        "signed weights count by magnitude, each row divided by its sum":
            any(head.signed for head in heads),
    }  # fmt: skip
    return [note for note, applies in notes.items() if applies]


def sample_words(rows: int, all_rows: int, texts: int = 1) -> str:
    """What is added to evidence where only some rows were measured, or many texts."""
    if texts > 1:
        spread = ", evenly spaced rows of long ones" if rows < all_rows else ""
        return f"; over {texts:,} texts{spread}"
    return f"; measured on {rows:,} of {all_rows:,} rows" if rows < all_rows else ""


def _fit_evidence(head: HeadRole, fit: RoleFit) -> str:
    rows = "" if fit.coverage > 0.9 else f"; {rounded_percent(fit.coverage)} of queries"
    return (
        f"{_weight(head)} {decimals(fit.share)} (chance {decimals(fit.chance)}{rows}){_rest(head)}"
    )


def _at(head: HeadRole, offset: float) -> str:
    """Where a head attends by position."""
    unit = head.context.unit
    if not offset:
        return f"at the {unit} itself" if head.context.place == unit else "at themselves"
    way = "ahead" if offset > 0 else "back"
    return f"{abs(offset):.0f} {unit}{'' if abs(offset) == 1 else 's'} {way}"


def _sample(head: HeadRole) -> str:
    return sample_words(head.context.rows, head.context.all_rows, head.context.texts)


def _rest(head: HeadRole) -> str:
    """The two sums of signed rows, and how much was measured."""
    if not head.signed:
        return _sample(head)
    plus, minus = (head.metrics.get(name, 0.0) for name in ("positive", "negative"))
    sums = f"; row sum {plus:.2f} above 0, −{abs(minus):.2f} below"
    return f"{sums}{_sample(head)}"


# --- rollout --------------------------------------------------------------------------------------


def rollout_capture(
    capture: Capture, options: RolloutOptions | None = None, row: int | None = None
) -> Capture:
    """All maps composed, as a capture of one head.

    Its layer's name says how much of a row, or of all rows for None, went through each level.
    Raises HgvizError as rollout does, and for texts of more than 8,192 tokens.
    """
    composed = composition.Rollout(capture, options)
    rows = composed.all_rows()
    shares = composition.describe_shares(capture, rows if row is None else composed.row(row), row)
    return composition.rollout_capture(capture, rows.weights, composed.options, shares)


def tokens_or_slots(capture: Capture) -> Capture:
    """A capture of slots with tokens for keys, and the other way round.

    Raises HgvizError as analysis.composition.of_tokens does.
    """
    is_of_tokens = composition.is_of_tokens(capture)
    return (composition.of_slots if is_of_tokens else composition.of_tokens)(capture)


def _weight(head: HeadRole) -> str:
    return "mean |attention|" if head.signed else "mean attention"
