"""What is said of an answer and of where it comes from: sentences for people, as HTML."""

from __future__ import annotations

import numpy as np

from hgviz.analysis.together import reach, ways
from hgviz.gui import theme
from hgviz.gui.across.composed import Across
from hgviz.gui.views import naming, sayings, words
from hgviz.gui.views.axes import Names

SOURCES = 3  # named in a sentence


def answer(across: Across, rows: Names, columns: Names) -> str:
    """Where the answer looked at comes from most, and which way."""
    if across.row is None or across.query is None:
        return "Point at a cell to read it; click to keep its answer."
    weights = across.row.weights[0]
    order = np.argsort(-np.abs(weights), kind="stable")[:SOURCES]
    said = [
        f"{_cell(columns, int(at))} {amount(float(weights[at]), across)}"
        for at in order
        if weights[at]
    ]
    verb = "weighs most" if across.recipe.signed else "comes most from"
    if not said:
        return f"The answer at {_cell(rows, across.query)} comes from nothing."
    told = f"The answer at {_cell(rows, across.query)} {verb} {', '.join(said)}."
    return f"{told} {naming.marked_up(_way(across))}"


def cell(across: Across, rows: Names, columns: Names, row: int, column: int, value: float) -> str:
    """How much of one answer comes from one token."""
    if across.recipe.signed:
        verb = "adds" if value >= 0 else "takes away"
        size = words.weight(abs(value), 3)
        return (
            f"{_cell(columns, column)} {verb} {size} at the answer {_cell(rows, row)}, all layers "
            "multiplied."
        )
    share = f"<b>{sayings.share(value)}</b>"
    told = f"{share} of the answer at {_cell(rows, row)} comes from {_cell(columns, column)}"
    return f"{told}{_away(rows, columns, row, column)}."


def amount(value: float, across: Across) -> str:
    """A share in per cent, or a signed weight."""
    return words.with_sign(value, 2) if across.recipe.signed else sayings.share(value)


def _way(across: Across) -> str:
    """How far back the parts of it come from that went to each level; a decoder's other text."""
    assert across.row is not None
    if not across.row.levels or across.query is None:
        return ways(across.of, across.row, across.query)
    labels, unit = [one.label for one in across.of.spec.levels], across.of.main.unit
    parts: list[str] = []
    for label, far in zip(labels, reach(across.of, across.row.levels, across.query), strict=True):
        if far == far:  # not where there is no such part
            parts.append(f"what {'went to' if parts else 'stayed at'} {label} from {far:,.0f}")
    return f"On average, in {unit}s back, {', '.join(parts)}." if parts else ""


def _cell(names: Names, cell: int) -> str:
    family = ",".join(f"'{name}'" for name in theme.MONO)
    style = f"font-family:{family};font-weight:600;color:{theme.current().mark_text.name()}"
    return f'<span style="{style}">{naming.marked_up(names.glyph(cell))}</span>'


def _away(rows: Names, columns: Names, row: int, column: int) -> str:
    if rows.prompt is not columns.prompt:
        return ""
    far = row - column
    if not far:
        return ", itself"
    way = "back" if far > 0 else "ahead"
    return f", {words.counted(abs(far), rows.prompt.unit)} {way}"
