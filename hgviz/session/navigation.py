"""The next head, layer, level, token or text of a session, and the selection to begin with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from hgviz.core import Capture, HeadId, Layer, Selection
from hgviz.session import Session, nearest, within

ROWS = 512  # the most rows of a head that are read to find its first query


def step_head(session: Session, by: int) -> Selection:
    """The head `by` places along its layer, going round."""
    layer = _layer(session)
    if layer is None or not layer.heads:
        return session.selection
    at = layer.heads.index(nearest(session.selection.head, layer.heads))
    return session.at(HeadId(layer.index, layer.heads[(at + by) % len(layer.heads)]))


def step_layer(session: Session, by: int) -> Selection:
    """The same head, `by` layers on in order of computation, layers without heads left out."""
    layers = [one for one in (session.spec.layers if session.spec else ()) if one.heads]
    here = next((n for n, one in enumerate(layers) if one.index == session.selection.layer), 0)
    if not layers:
        return session.selection
    layer = layers[within(here + by, len(layers))].index
    return session.at(HeadId(layer, session.selection.head))


def step_level(session: Session, by: int) -> Selection:
    """The head last opened at the level `by` steps further in (1) or out (-1)."""
    layer = _layer(session)
    if layer is None or session.spec is None:
        return session.selection
    level = within(layer.level + by, len(session.spec.levels))
    head = session.opened.get(level)
    if level == layer.level or head is None:
        return session.selection
    return session.at(head)


def step_token(session: Session, by: int, field: Literal["query", "key"]) -> Selection:
    """The query or key `by` positions of its own level along, as a token.

    At a shortened level one step goes to the next position, which is several letters on.
    """
    capture, layer, chosen = session.capture, _layer(session), session.selection
    level = 0 if layer is None else layer.level if field == "query" else layer.key_level
    if capture is None or layer is None or not len(capture.prompt_of(level)):
        return chosen
    tokens = len(capture.prompt_of(level))
    now = getattr(chosen, field)
    if now is None:  # a key starts beside its query, where both are of one text
        sides = session.spec.levels if session.spec is not None else capture.spec.levels
        beside = sides[level].sequence == sides[layer.level].sequence
        now = chosen.query if chosen.query is not None and beside else tokens - 1
    spans = capture.spans[level]
    at = within(capture.position(level, now) + by, len(spans))
    token = int(spans[at, 1]) - 1
    if token < 0 or token >= tokens:
        return chosen
    return replace(chosen, query=token) if field == "query" else replace(chosen, key=token)


def strongest_key(capture: Capture, chosen: Selection) -> int | None:
    """The token the chosen query looks at most in the chosen head; reads one row."""
    layer = capture.maps[chosen.layer]
    if layer is None or chosen.query is None:
        return None
    row = capture.row(chosen.layer, chosen.query)
    weights = np.abs(layer.read(chosen.head, rows=(row, row + 1))[0])
    for column in np.argsort(-weights, kind="stable")[:2]:
        token = capture.column_token(chosen.layer, int(column))
        if token is not None:
            return token
    return None


def clearest(capture: Capture, heads: Sequence[HeadId]) -> Selection | None:
    """Which of these heads to show first, and at which query: where most weight goes furthest.

    Weight counts with the square root of how far it goes, as a part of the text; only rows of the
    middle half are looked at, which have something before them and something after.
    """
    best, told = None, -1.0
    for one in heads:
        found = capture.maps[one.layer]
        if found is None or not all(found.shape):
            continue
        _, queries, keys = found.shape
        first = queries // 4
        last = min(max(queries * 3 // 4, first + 1), first + ROWS)
        weights = np.abs(found.read(one.head, rows=(first, last)))
        away = np.arange(first, last)[:, None] / queries - np.arange(keys) / keys
        rows = (weights * np.sqrt(np.abs(away))).max(axis=1)
        query = capture.row_token(one.layer, first + int(rows.argmax()))
        known = query is not None and query < len(capture.query_prompt(one.layer))
        if known and rows.max() > told:
            best, told = Selection(one.layer, one.head, query), float(rows.max())
    return best and replace(best, key=strongest_key(capture, best))


def _layer(session: Session) -> Layer | None:
    if session.spec is None or not session.spec.layers:
        return None
    return session.spec.layers[session.selection.layer]
