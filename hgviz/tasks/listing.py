"""The lists at the end of a report: every head, one text, examples that differ, how it was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgviz.language import number, one_line
from hgviz.tasks.wording import picture

if TYPE_CHECKING:
    from hgviz.analysis.comparison import ModelMetrics
    from hgviz.figures.report import Block, Table
    from hgviz.tasks.contrasting import Laboratory

SHOWN = 12  # examples
HEADS = 200  # in the table of all heads, of each model
SHORT = {  # metrics and their headings in the table of all heads
    "entropy": "Entropy", "near_zero": "Near 0", "negative_mass": "Below 0", "row_sum": "Row sum",
    "rank": "Rank / n", "apart": "Distance", "slope": "|dM/dS|", "small": "Vanished",
    "passed": "Passed",
}  # fmt: skip


def every_head(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading

    blocks: list[Block] = [Heading("Every head")]
    for name, letter, side in zip(found.names, "AB", (found.a, found.b), strict=True):
        blocks.append(_table_of(f"{letter}, {name}", side, found.noun))
    return blocks


def _table_of(name: str, side: ModelMetrics, noun: str) -> Table:
    from hgviz.activations import ACTIVATIONS
    from hgviz.figures.report import Table

    values = [side.of_heads(one)[0] for one in SHORT]
    kinds = side.activations()
    mixed = len(set(kinds)) > 1
    rows = [
        (
            str(head),
            *([ACTIVATIONS[kinds[at]].name.replace("_", " ")] if mixed else []),
            *(number(float(one[at])) for one in values),
        )
        for at, head in enumerate(side.heads[:HEADS])
    ]
    more = f" The first {HEADS} of {len(side.heads)}." if len(side.heads) > HEADS else ""
    columns = ("Head", *(["Activation"] if mixed else []), *SHORT.values())
    return Table(columns, tuple(rows), frozenset({0, 1} if mixed else {0}),
                 f"{name}: means over {side.texts:,} {noun}s.{more}")  # fmt: skip


# --- texts ----------------------------------------------------------------------------------------


def one_text(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Words

    blocks: list[Block] = [
        Heading(f"One {found.noun}, head by head"),
        Words(f"“{one_line(found.text)}”"),
    ]
    if found.comparison is None:
        shared = "share no token of it" if found.noun == "text" else "do not cut it alike"
        return [*blocks, Words(f"A and B {shared}, so their maps are not compared.")]
    if logits := _logits(found):
        blocks.append(Words(logits))
    if found.chosen is not None:
        caption = "The head that differs the most from the one of the same number"
        blocks.append(picture("three", found.chosen, f"{caption}."))
    if found.nearest is not None:
        caption = f"The two heads that are most alike over all {found.noun}s, whatever their number"
        blocks.append(picture("three", found.nearest, f"{caption}."))
    return blocks


def _logits(found: Laboratory) -> str:
    one = found.comparison.logits if found.comparison else None
    if one is None:
        return ""
    return f"On this {found.noun} the logits of A and B are at most {number(one.largest)} apart."


def differing(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Table, Words

    examples = found.answers.differing
    head: Block = Heading("Where they answer differently")
    if found.answers.agreement is None:
        return [head, Words("Answers are not paired, so there are no such examples to list.")]
    if not examples:
        return [head, Words("Nowhere: both give the same answer everywhere.")]
    rows = tuple(
        (one_line(one.text), one.wanted, one.a, one.b, f"{one.loss_a:.3f}", f"{one.loss_b:.3f}")
        for one in examples[:SHOWN]
    )
    listed = f"{min(SHOWN, len(examples)):,} of {len(examples):,} are listed" if len(
        examples) > SHOWN else f"All {len(examples):,} are listed"  # fmt: skip
    columns = (found.noun.capitalize(), "Wanted", "A", "B", "Loss of A", "Loss of B")
    return [head, Table(columns, rows, frozenset({0, 1, 2, 3}), f"{listed}, those that one of "
                        "them gets right first. Losses in nats.")]  # fmt: skip


# --- how ------------------------------------------------------------------------------------------


def how(found: Laboratory) -> list[Block]:
    from hgviz.figures.report import Heading, Points

    one = f"{'an' if found.noun == 'image' else 'a'} {found.noun}"
    points = [
        f"Answers: all {found.answers.a.score.total:,} places. Heads: {found.a.texts:,} of "
        f"{found.amount}, drawn at random once and for all.",
        f"Weights, scores and slopes of {one} come from one pass over it and its way back; "
        f"maps of the {found.noun} above from captures of both models.",
        "Accuracy: Wilson's interval. Its difference: Bonett and Price's. Means over "
        f"{found.noun}s: the "
        "normal one. Effective rank: Roy and Vetterli (2007).",
        f"Whether a model was trained on any of {found.data} is not known here; a fair score needs "
        "data that neither has seen.",
        *(f"{note[0].upper()}{note[1:]}." for note in found.notes),
    ]  # fmt: skip
    return [Heading("How this was measured"), Points(tuple(points))]
