"""Between tokens and the cells of a picture of one layer, which may be a band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hgviz.core import Capture, HeadId, Integers, Layer, Map, Prompt
from hgviz.gui import sentences
from hgviz.gui.grid import Names, Places
from hgviz.gui.language import tr
from hgviz.gui.views import words
from hgviz.gui.views.band import Band
from hgviz.gui.views.sight import rule_of
from hgviz.maps import Rule

WIDE = 6  # how many times wider than high the cells of a band may be


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """One layer of a capture as rows and columns of cells, and what these stand for.

    queries and keys name the rows and columns of the whole map, rows and columns those on screen.
    """

    capture: Capture
    layer: int
    map: Map
    queries: Names
    keys: Names
    rows: Names
    columns: Names | Places

    @classmethod
    def of(cls, capture: Capture, layer: int, whole: bool, texts: Words) -> Grid:
        """The picture of a layer; windowed resampling is a band unless the whole is asked for."""
        found = capture.maps[layer]
        assert found is not None
        facts = capture.spec.layers[layer]
        queries, keys = (
            texts.names(capture, level, spans)
            for level, spans in (
                (facts.level, capture.query_spans(layer)),
                (facts.key_level, capture.key_spans(layer)),
            )
        )
        if whole or not banded(facts):
            return cls(capture, layer, found, queries, keys, queries, keys)
        assert facts.window is not None
        band = Band(found, facts.window, facts.role == "down")
        rows = queries if band.down else keys
        return cls(capture, layer, band, queries, keys, rows, Places(facts.window))

    def rule_of(self, head: int) -> Rule:
        """Which cells of the picture of a head exist: all of a band, which holds nothing but
        windows."""
        rule = rule_of(self.capture, HeadId(self.layer, head))
        return rule if self.band is None else Rule(rule.scale, rule.activations, rule.norms)

    @property
    def band(self) -> Band | None:
        """The band, where it is one."""
        return self.map if isinstance(self.map, Band) else None

    @property
    def wide(self) -> int:
        """How many times wider than high a cell may be."""
        return WIDE if self.band else 1

    @property
    def sides(self) -> tuple[str, str]:
        """What the columns and the rows are: of two texts, which."""
        spec = self.capture.spec
        one = spec.layers[self.layer]
        if spec.levels[one.level].sequence == spec.levels[one.key_level].sequence:
            return tr("Key"), tr("Query")
        across, down = (words.level(spec, number) for number in (one.key_level, one.level))
        return across.capitalize(), down.capitalize()

    def cell(self, query: int | None, key: int | None) -> tuple[int | None, int | None]:
        """The row and column of tokens; None where there is none."""
        row = None if query is None else self.capture.row(self.layer, query)
        column = None if key is None else self.capture.column(self.layer, key)
        if self.band is not None:
            row, column = self._in_band(self.band, row, column)
        rows, columns = self.map.shape[1:]
        return (
            row if row is not None and row < rows else None,
            column if column is not None and column < columns else None,
        )

    def whole(self, row: int, column: int) -> tuple[int, int] | None:
        """The cell of the whole map that one on screen shows; None past the end of a band."""
        if self.band is not None:
            row, column = self.band.cell(row, column)
        inside = row < len(self.queries) and column < len(self.keys)
        return (row, column) if inside else None

    def tokens(self, row: int, column: int) -> tuple[int | None, int | None]:
        """The query and the key of a cell on screen, None for padding."""
        whole = self.whole(row, column)
        if whole is None:
            return None, None
        return (
            self.capture.row_token(self.layer, whole[0]),
            self.capture.column_token(self.layer, whole[1]),
        )

    def _in_band(
        self, band: Band, row: int | None, column: int | None
    ) -> tuple[int | None, int | None]:
        """Going down a query is a row; going up it is a place, and its row follows from it."""
        if row is None:
            return None, None
        if not band.down:
            return row // band.window, row % band.window
        inside = column is not None and column // band.window == row
        return row, column % band.window if inside and column is not None else None


def banded(layer: Layer) -> bool:
    """Whether a layer is drawn as a band."""
    return layer.window is not None and layer.role in ("down", "up")


class Words:
    """The texts of a capture, their words and the names of their tokens, each found once."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Prompt, Integers]] = {}
        self._names: dict[str, list[Names]] = {}

    def of(self, capture: Capture, level: int) -> tuple[Prompt, Integers]:
        """The text whose tokens a level counts, and its words in tokens."""
        side = capture.spec.levels[level].sequence
        if side not in self._known:
            prompt = capture.prompt_of(level)
            self._known[side] = prompt, sentences.word_spans(prompt)
        return self._known[side]

    def names(self, capture: Capture, level: int, spans: Integers) -> Names:
        """What cells of such spans are called in the text of a level."""
        known = self._names.setdefault(capture.spec.levels[level].sequence, [])
        for one in known:  # most layers have the same
            if np.array_equal(one.spans, spans):
                return one
        known.append(Names(*self.of(capture, level), spans, capture.null(level)))
        return known[-1]
