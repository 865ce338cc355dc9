"""Profiles: what the heads of every layer do, in numbers, made ready to be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np

from hgviz.core import Capture, HeadId, HgvizError, progress_within
from hgviz.errors import choose

if TYPE_CHECKING:
    from hgviz.analysis.roles import HeadRole
    from hgviz.figures.charts import Measured, Place, Profile, ProfileSide

Facts = Mapping[HeadId, "HeadRole"]

ALWAYS = ("entropy", "distance", "positive", "negative")  # where they say something
MASS = ("first", "previous", "same", "next", "last", "separators", "diagonal")
TELLING = 0.25  # of its weight that some head puts there, for a place to be worth a look
MOST = 6  # metrics that nobody asked for
RARER = ("rare", "convolution", "centre", "width", "variance", "nearest")  # take another pass


def profile_chart(
    captures: Sequence[Capture], metrics: Sequence[str] = (), facts: Facts | None = None
) -> Profile:
    """Metrics of all heads over the layers of some captures, those of METRICS that are named.

    None named: entropy, distance and, of signed heads, the sums of either sign; then the places
    where some head puts a quarter of its weight, the most telling first, six metrics in all.
    facts: of the one capture, if they are known. Errors: HgvizError for a metric that is not there
    or says nothing of any head, and for captures without heads.
    """
    from hgviz.analysis.metrics import HEADS, metrics_for
    from hgviz.figures.charts import Measured, Profile

    for name in metrics:
        choose(name, metrics_for(HEADS), "metric")
    rarer = any(name in RARER for name in metrics)
    known = []
    for number, capture in enumerate(captures):
        if facts and len(captures) == 1 and not rarer and _whole(capture, facts):
            known.append(facts)
        else:
            known.append(_known(capture, rarer, number, len(captures)))
    sides = _sides(captures)
    if not any(len(side.heads) for side in sides):
        raise HgvizError("there are no heads to profile: none is captured, or all were removed")
    unit = captures[0].main.unit
    found = {
        name: Measured(
            name, one.named("token" if unit in ("slot", "state") else unit),
            tuple(
                np.array([each[head].metrics[name] for head in side.heads], np.float64)
                for side, each in zip(sides, known, strict=True)
            ),
        )
        for name, one in metrics_for(HEADS).items()
    }  # fmt: skip
    chosen = tuple(dict.fromkeys(metrics)) or _telling(found, sides)
    for name in metrics:
        if not _says(found[name]):
            there = ", ".join(each for each in found if _says(found[each]))
            raise HgvizError(
                f"the metric {name!r} says nothing of these heads: those that do are {there}",
                "Choose one of these",
            )
    return Profile(
        sides, tuple(found[name] for name in chosen), title=_title(sides),
        more=_more(captures, sides),
        notes=tuple(_notes(captures, sides, [found[name] for name in chosen])),
        about=_about(captures, metrics),
    )  # fmt: skip


def _known(capture: Capture, rarer: bool, number: int, total: int) -> Facts:
    from hgviz.analysis.roles import corpus_roles, roles

    with progress_within(number, number + 1, total):
        return corpus_roles(lambda _: capture, [0]).heads if rarer else roles(capture)


def _whole(capture: Capture, facts: Facts) -> bool:
    """Whether all that is captured is measured."""
    maps = enumerate(capture.maps)
    return all(HeadId(at, head) in facts for at, one in maps if one is not None
               for head in one.heads)  # fmt: skip


# --- which metrics --------------------------------------------------------------------------------


def _says(metric: Measured) -> bool:
    return any(bool(np.isfinite(one).any()) for one in metric.values)


def _telling(found: Mapping[str, Measured], sides: Sequence[ProfileSide]) -> tuple[str, ...]:
    """Those that say something of these heads, in the order of METRICS' first."""
    chosen = [name for name in ALWAYS if _says(found[name])]
    most = {name: _largest(found[name], sides) for name in MASS}
    places = sorted((name for name in MASS if most[name] >= TELLING), key=lambda one: -most[one])
    kept = set(places[: max(0, MOST - len(chosen))])
    return (*chosen, *(name for name in MASS if name in kept))


def _largest(metric: Measured, sides: Sequence[ProfileSide]) -> float:
    """What the head that does it most does, of those that are on."""
    on = [values[~side.off] for side, values in zip(sides, metric.values, strict=True)]
    some = np.concatenate(on)
    return float(some[np.isfinite(some)].max(initial=0.0))


# --- whose ----------------------------------------------------------------------------------------


def _sides(captures: Sequence[Capture]) -> tuple[ProfileSide, ...]:
    from hgviz.figures.charts import ProfileSide

    names = _names(captures)
    sides = []
    for name, capture in zip(names, captures, strict=True):
        heads = tuple(
            HeadId(at, head)
            for at, one in enumerate(capture.maps) if one is not None
            for head in one.heads
        )  # fmt: skip
        off = np.array([head in capture.off for head in heads], bool)
        sides.append(ProfileSide(name, tuple(places_of(capture)), heads, off))
    return tuple(sides)


def _names(captures: Sequence[Capture]) -> list[str]:
    """A and what A is called, as far as that tells them apart."""
    from hgviz.figures.spec import bare_name

    if len(captures) == 1:
        return [bare_name(captures[0].spec.name)]
    letters = [
        ascii_uppercase[at] if at < len(ascii_uppercase) else str(at + 1)
        for at in range(len(captures))
    ]
    for names in (
        [bare_name(one.spec.name) for one in captures], [bare_name(one.path) for one in captures]
    ):  # fmt: skip
        if all(names) and len(set(names)) == len(names):
            return [f"{letter}  {name}" for letter, name in zip(letters, names, strict=True)]
    return [
        f"{letter}  {len(one.off):,} switched off" if one.off else letter
        for letter, one in zip(letters, captures, strict=True)
    ]


def places_of(capture: Capture) -> list[Place]:
    """The layers of a model as figures name them."""
    from hgviz.figures.charts import Place

    levels = capture.spec.levels
    ranks: dict[int, int] = {}
    for one in levels:
        same = [each for each in levels if each.sequence == one.sequence]
        ranks[one.index] = same.index(one)

    def named(level: int) -> str:
        if capture.spec.two_texts:
            return {"source": "encoder", "target": "decoder"}.get(levels[level].sequence, "")
        return levels[level].label

    return [
        Place(
            one.index, one.name, one.role, named(one.level), ranks[one.level],
            ranks[one.key_level], levels[one.level].sequence,
            capture.maps[one.index] is not None,
        )
        for one in capture.spec.layers
    ]  # fmt: skip


# --- in words -------------------------------------------------------------------------------------


def _title(sides: Sequence[ProfileSide]) -> str:
    if len(sides) == 1:
        return "Layer by layer"
    return f"{', '.join(one.name[:1] for one in sides[:-1])} and {sides[-1].name[:1]}"


def _more(captures: Sequence[Capture], sides: Sequence[ProfileSide]) -> str:
    if len(sides) > 1:
        return "layer by layer"
    layers, heads = len(sides[0].layers), len(sides[0].heads)
    return f"{sides[0].name}  ·  {layers:,} layers, {heads:,} heads"


def _notes(
    captures: Sequence[Capture], sides: Sequence[ProfileSide], shown: Sequence[Measured]
) -> list[str]:
    from hgviz.analysis.metrics import row_blocks, signed_heads
    from hgviz.tasks.heads import sample_words

    notes = ["A mark is a head; a line is the mean of the heads of a layer."]
    if any(side.off.any() for side in sides):
        count = sum(int(side.off.sum()) for side in sides)
        heads = f"{count:,} head{'s' if count != 1 else ''}"
        notes.append(f"Hollow: {heads} switched off, not in the mean.")
    for capture, side in zip(captures, sides, strict=True):
        missing = [str(one.index) for one in side.layers if not one.known]
        of = f" of {side.name[:1]}" if len(sides) > 1 else ""
        if missing:
            many = len(missing) > 1
            named = (
                f"Layers {missing[0]} to {missing[-1]} are" if many else f"Layer {missing[0]} is"
            )
            notes.append(f"{named} not captured{of}.")
        rows = max((one.shape[1:] for one in capture.maps if one is not None), default=(0, 0))
        read = sum(block.stop - block.start for block in row_blocks(*rows))
        if more := sample_words(read, rows[0]):
            notes.append(f"{more.removeprefix('; ').capitalize()}{of}.")
    weighing = [one.name for one in shown if one.name not in ("positive", "negative")]
    if weighing and any(
        any(signed_heads(layer, one))
        for capture in captures
        for layer, one in zip(capture.spec.layers, capture.maps, strict=True)
        if one is not None
    ):
        notes.append("Signed weights count by their size, every row over its sum of sizes, but in "
                     "the sums of either sign.")  # fmt: skip
    return notes


def _about(captures: Sequence[Capture], metrics: Sequence[str]) -> dict[str, str]:
    def of(values: Sequence[str]) -> str:
        return ", ".join(dict.fromkeys(filter(None, values)))

    from hgviz.figures.spec import bare_name

    return {
        "model": of([bare_name(one.spec.name) for one in captures]),
        "checkpoint": of([one.spec.digest for one in captures]),
        "metrics": ", ".join(metrics),
        "text": of([one.prompt.digest for one in captures]),
        "target": of([one.target.digest for one in captures if one.target is not None]),
        "off": "; ".join(", ".join(map(str, sorted(one.off))) for one in captures if one.off),
    }


__all__ = ["places_of", "profile_chart"]
