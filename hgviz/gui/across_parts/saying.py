"""What is said of an answer and of where it comes from: sentences for people, as HTML."""

from __future__ import annotations

from string import Template

import numpy as np

from hgviz.analysis.together import reach, ways
from hgviz.gui import sentences, theme
from hgviz.gui.across_parts.composed import Across
from hgviz.gui.grid import Names
from hgviz.gui.language import tr
from hgviz.gui.views import sayings, words

SOURCES = 3  # named in a sentence
MARK = Template('<span style="font-family:$family;font-weight:600;color:$colour">$text</span>')
BOLD = Template("<b>$text</b>")
COMES = "{share} of the answer at {answer} comes from {token}."
COMES_ITSELF = "{share} of the answer at {answer} comes from {token}, itself."
COMES_BACK = "{share} of the answer at {answer} comes from {token}, {away} back."
COMES_AHEAD = "{share} of the answer at {answer} comes from {token}, {away} ahead."


def answer(across: Across, rows: Names, columns: Names) -> str:
    """Where the answer looked at comes from most, and which way."""
    if across.row is None or across.query is None:
        return tr("Point at a cell to read it; click to keep its answer.")
    weights = across.row.weights[0]
    order = np.argsort(-np.abs(weights), kind="stable")[:SOURCES]
    said = [
        f"{_cell(columns, int(at))} {amount(float(weights[at]), across)}"
        for at in order
        if weights[at]
    ]
    own = _cell(rows, across.query)
    if not said:
        return tr("The answer at {answer} comes from nothing.", answer=own)
    signed = "The answer at {answer} weighs most {tokens}."
    most = signed if across.recipe.signed else "The answer at {answer} comes most from {tokens}."
    told = tr(most, answer=own, tokens=", ".join(said))
    return f"{told} {sentences.marked_up(_way(across))}"


def cell(across: Across, rows: Names, columns: Names, row: int, column: int, value: float) -> str:
    """How much of one answer comes from one token."""
    ends = {"answer": _cell(rows, row), "token": _cell(columns, column)}
    if across.recipe.signed:
        adds = "{token} adds {amount} at the answer {answer}, all layers multiplied."
        takes = "{token} takes away {amount} at the answer {answer}, all layers multiplied."
        return tr(adds if value >= 0 else takes, amount=words.weight(abs(value), 3), **ends)
    ends["share"] = BOLD.substitute(text=sayings.share(value))
    if rows.prompt is not columns.prompt:
        return tr(COMES, **ends)
    far = row - column
    said = COMES_BACK if far > 0 else COMES_AHEAD if far else COMES_ITSELF
    return tr(said, away=words.counted(abs(far), rows.prompt.unit), **ends)


def amount(value: float, across: Across) -> str:
    """A share in per cent, or a signed weight."""
    return words.with_sign(value, 2) if across.recipe.signed else sayings.share(value)


def _way(across: Across) -> str:
    """How much of it went to each level, and from how far back; a decoder's other text."""
    assert across.row is not None
    if not across.row.levels or across.query is None:
        return tr(ways(across.of, across.row, across.query))
    spec, unit = across.of.spec, tr(across.of.main.unit)
    distances = reach(across.of, across.row.levels, across.query)
    parts: list[str] = []
    for level, weights, far in zip(spec.levels, across.row.levels, distances, strict=True):
        if far == far:  # NaN: no part of the answer has this level as its innermost
            stays = "{share} stayed at {level}, from {far:,.0f}"
            goes = "{share} went to {level}, from {far:,.0f}"
            share = sayings.share(round(float(weights.sum(dtype=float)), 6))
            said = tr(goes if level.index else stays, share=share, level=level.label, far=far)
            parts.append(
                said if parts else tr("{part} {unit}s back on average", part=said, unit=unit)
            )
    return "; ".join(parts) + "." if parts else ""


def _cell(names: Names, cell: int) -> str:
    return MARK.substitute(
        family=",".join(f"'{name}'" for name in theme.MONO),
        colour=theme.current().mark_text.name(),
        text=sentences.marked_up(names.glyph(cell)),
    )
