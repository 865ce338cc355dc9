"""Which positions of two captures stand for the same part of a text, and one grid for two heads.

Two tokenizations, or two levels, are compared by the finest pieces that both cut the text into:
where one has "unhappy" and the other "un" and "happy", these three make one piece. Tokens lie at
their characters; of two texts that differ only the words count that both have in the same order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from os.path import commonprefix

import numpy as np
from numpy.typing import NDArray

from hgviz.core import Capture, HeadId, Integers, Layer, Prompt, Role
from hgviz.maps import Axis

_WORDS = re.compile(r"\s?\w+|\W")  # with the space before, as most tokens have it
_LARGEST_PIECE = 64  # positions
_MAX_WORDS = 20_000  # that differ, between a common beginning and end: more take minutes to compare


# --- layers and heads -----------------------------------------------------------------------------


def paired_layers(a: Capture, b: Capture) -> list[tuple[Layer, Layer]]:
    """The layers that both captures hold: by name, or by number where no name is in both."""
    for by_name in (True, False):
        layers_a, layers_b = (_captured_layers(capture, by_name) for capture in (a, b))
        pairs = [(layer, layers_b[key]) for key, layer in layers_a.items() if key in layers_b]
        if pairs:
            return pairs
    return []


def _captured_layers(capture: Capture, by_name: bool) -> dict[tuple[str, Role, int], Layer]:
    """By name, role and how often both came before, as ALBERT runs one module in all its layers; or
    by role and number."""
    layers, repeats = {}, Counter[tuple[str, Role]]()
    for layer in capture.spec.layers:
        name = layer.name if by_name else "", layer.role
        if capture.maps[layer.index] is not None:
            layers[*name, repeats[name] if by_name else layer.index] = layer
        repeats[name] += 1
    return layers


def paired_heads(a: Capture, b: Capture, layer_a: Layer, layer_b: Layer) -> list[int]:
    """The numbers of the heads that are captured in both of two layers."""
    maps_a, maps_b = a.maps[layer_a.index], b.maps[layer_b.index]
    return sorted({*maps_a.heads} & {*maps_b.heads}) if maps_a and maps_b else []


def counterpart(
    a: Capture, b: Capture, head: HeadId, chosen: HeadId | None = None
) -> HeadId | None:
    """The head of B that a head of A is compared with; None where B has no capture of it.

    It is the chosen one, or the head of the same number in the layer paired with A's.
    """
    if chosen is None:
        layers = {layer_a.index: layer_b.index for layer_a, layer_b in paired_layers(a, b)}
        if head.layer not in layers:
            return None
        chosen = HeadId(layers[head.layer], head.head)
    maps = b.maps[chosen.layer] if 0 <= chosen.layer < len(b.maps) else None
    return chosen if maps is not None and chosen.head in maps.heads else None


# --- positions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SharedPieces:
    """The piece of each position of A (positions,) and of B, -1 for none.

    Pieces are numbered from 0 in the order of the text: numbers never fall along either side.
    """

    a: Integers
    b: Integers

    @property
    def count(self) -> int:
        """The number of pieces."""
        return int(self.a.max(initial=-1)) + 1

    @property
    def is_identity(self) -> bool:
        """Whether every position of A and of B is a piece of its own."""
        return len(self.a) == len(self.b) == self.count


@dataclass(frozen=True, slots=True)
class _TokenPlaces:
    """Where the tokens of one text lie, in characters.

    common (tokens, 2): in the text of A, for tokens of B as well; (-1, -1) for tokens whose
    characters are not all in both texts. own (tokens, 2): in their own text. special (tokens,):
    the number of a special token that both texts have, -1 for others.
    """

    common: Integers
    own: Integers
    special: Integers


class Alignment:
    """Two captures, and the pieces of text that positions of their layers share."""

    def __init__(self, a: Capture, b: Capture) -> None:
        self.a, self.b = a, b
        self._places: dict[tuple[str, str], tuple[_TokenPlaces, _TokenPlaces]] = {}

    @property
    def same_tokens(self) -> bool:
        """Whether the main texts of both captures have the same tokens."""
        return same_tokens(self.a.main, self.b.main)

    def tokens(self) -> SharedPieces:
        """The pieces of the tokens of the main texts."""
        prompts = self.a.main, self.b.main
        spans = (unit_spans(len(prompt)) for prompt in prompts)
        return _shared_pieces(self._token_places(("main", "main"), *prompts), *spans)

    def rows(self, layer_a: Layer, layer_b: Layer) -> SharedPieces:
        """The pieces of the queries of a layer of A and of one of B."""
        spans = self.a.query_spans(layer_a.index), self.b.query_spans(layer_b.index)
        return self._pieces(layer_a.level, layer_b.level, *spans)

    def columns(self, layer_a: Layer, layer_b: Layer) -> SharedPieces:
        """The pieces of the keys of a layer of A and of one of B."""
        spans = self.a.key_spans(layer_a.index), self.b.key_spans(layer_b.index)
        return self._pieces(layer_a.key_level, layer_b.key_level, *spans)

    def _pieces(
        self, level_a: int, level_b: int, spans_a: Integers, spans_b: Integers
    ) -> SharedPieces:
        sequences = self.a.spec.levels[level_a].sequence, self.b.spec.levels[level_b].sequence
        prompts = self.a.prompt_of(level_a), self.b.prompt_of(level_b)
        return _shared_pieces(self._token_places(sequences, *prompts), spans_a, spans_b)

    def _token_places(
        self, sequences: tuple[str, str], a: Prompt, b: Prompt
    ) -> tuple[_TokenPlaces, _TokenPlaces]:
        if sequences not in self._places:
            self._places[sequences] = _token_places(a, b)
        return self._places[sequences]


def same_tokens(a: Prompt, b: Prompt) -> bool:
    """Whether two prompts have the same tokens at the same characters."""
    return (
        np.array_equal(a.ids, b.ids) and np.array_equal(a.spans, b.spans) and a.pieces == b.pieces
    )


def _token_places(a: Prompt, b: Prompt) -> tuple[_TokenPlaces, _TokenPlaces]:
    """Where the tokens of two prompts lie on their common text."""
    special = [np.full(len(prompt), -1, np.int64) for prompt in (a, b)]
    if same_tokens(a, b):
        spans = unit_spans(len(a))
        places = _TokenPlaces(spans, spans, special[0])
        return places, places
    if a.signal is not None or b.signal is not None:
        # patches and frames have no characters: they are paired by their names, as if special
        special = _shared_special(a, b) if _same_positions(a, b) else special
        outside_a, outside_b = (np.full((len(prompt), 2), -1, np.int64) for prompt in (a, b))
        return (
            _TokenPlaces(outside_a, outside_a, special[0]),
            _TokenPlaces(outside_b, outside_b, special[1]),
        )
    if a.text and b.text:
        own_a, own_b = (_character_spans(prompt) for prompt in (a, b))
        in_a = _shared_characters(_WORDS.findall(a.text), _WORDS.findall(b.text), len)
        special = _shared_special(a, b)
    else:  # tokens without a text: each piece counts as one character
        own_a, own_b = unit_spans(len(a)), unit_spans(len(b))
        in_a = _shared_characters([*a.pieces], [*b.pieces], lambda piece: 1)
    common_a, common_b = own_a.copy(), own_b.copy()
    is_shared = np.zeros(int(own_a.max(initial=0)), bool)
    is_shared[in_a[(in_a >= 0) & (in_a < len(is_shared))]] = True
    lacking = np.concatenate([[0], np.cumsum(~is_shared)])
    common_a[lacking[own_a[:, 1]] != lacking[own_a[:, 0]]] = -1
    # a token of B is in A where its first and last character are, with nothing else in between
    is_real = own_b[:, 0] >= 0
    first, last = in_a[own_b[is_real, 0]], in_a[own_b[is_real, 1] - 1]
    is_whole = (first >= 0) & (last >= 0) & (last - first == np.diff(own_b[is_real])[:, 0] - 1)
    common_b[is_real] = np.where(is_whole[:, None], np.stack([first, last + 1], 1), -1)
    return _TokenPlaces(common_a, own_a, special[0]), _TokenPlaces(common_b, own_b, special[1])


def unit_spans(count: int) -> Integers:
    """[[0, 1], [1, 2], ...]"""
    numbers = np.arange(count, dtype=np.int64)
    return np.stack([numbers, numbers + 1], 1)


def _character_spans(prompt: Prompt) -> Integers:
    """The characters of every token (tokens, 2), (-1, -1) for special and empty ones."""
    spans = np.array(prompt.spans, np.int64).reshape(-1, 2)
    spans[spans[:, 0] >= spans[:, 1]] = -1
    return spans


def _same_positions(a: Prompt, b: Prompt) -> bool:
    """Whether positions of one name stand for the same part of two images or sounds: patches of
    one grid, frames of one length."""
    if a.signal is None or b.signal is None:
        return False
    if a.signal.grid or b.signal.grid:
        return a.signal.grid == b.signal.grid
    shorter = min(len(a), len(b))
    sounds = a.signal.seconds > 0 and b.signal.seconds > 0
    return a.pieces[:shorter] == b.pieces[:shorter] and (sounds or len(a) == len(b))


def _shared_characters(a: list[str], b: list[str], size_of: Callable[[str], int]) -> Integers:
    """For each character of the words of B the number of the same one in A, -1 for none.

    Words are the same where both have them in the same order; between a common beginning and end
    that holds for at most _MAX_WORDS.
    """
    head = len(commonprefix([a, b]))
    tail = len(commonprefix([a[head:][::-1], b[head:][::-1]]))
    runs = [(0, 0, head), (len(a) - tail, len(b) - tail, tail)]
    middle = a[head : len(a) - tail], b[head : len(b) - tail]
    if max(map(len, middle)) <= _MAX_WORDS:
        matcher = SequenceMatcher(None, *middle, autojunk=False)
        runs += [(head + i, head + j, count) for i, j, count in matcher.get_matching_blocks()]
    starts_a, starts_b = (np.cumsum([0, *map(size_of, words)]) for words in (a, b))
    characters = np.full(int(starts_b[-1]), -1, np.int64)
    for first_a, first_b, count in runs:
        begin, end = int(starts_b[first_b]), int(starts_b[first_b + count])
        characters[begin:end] = int(starts_a[first_a]) + np.arange(end - begin)
    return characters


def _shared_special(a: Prompt, b: Prompt) -> list[Integers]:
    """Numbers of the special tokens that both have: the first [SEP] of A and of B, the second ...

    (tokens,) of A and of B, -1 for other tokens.
    """
    places: list[dict[tuple[str, int], int]] = []
    for prompt in (a, b):
        repeats = Counter[str]()
        places.append({})
        for token in np.flatnonzero(prompt.spans[:, 0] < 0).tolist():
            piece = prompt.pieces[token]
            places[-1][piece, repeats[piece]] = token
            repeats[piece] += 1
    names = {name: number for number, name in enumerate(sorted({*places[0]} & {*places[1]}))}
    special = [np.full(len(prompt), -1, np.int64) for prompt in (a, b)]
    for numbers, tokens in zip(special, places, strict=True):
        for name, token in tokens.items():
            numbers[token] = names.get(name, -1)
    return special


def _shared_pieces(
    places: tuple[_TokenPlaces, _TokenPlaces], spans_a: Integers, spans_b: Integers
) -> SharedPieces:
    """The pieces of positions that stand for spans of tokens (positions, 2) of A and of B."""
    if places[0] is places[1] and np.array_equal(spans_a, spans_b):
        numbers = np.arange(len(spans_a), dtype=np.int64)  # shifts and padding are the same too
        return SharedPieces(numbers, numbers)
    sides = [
        _position_places(side, spans)
        for side, spans in zip(places, (spans_a, spans_b), strict=True)
    ]
    piece_at = _piece_of_characters([common for common, _ in sides])
    pieces = []
    for common, special in sides:
        by_character = np.where(common[:, 0] >= 0, piece_at[common[:, 0]], -1)
        numbers = np.where(special >= 0, len(piece_at) + special, by_character)
        # where levels cut at alternating tokens one piece would span the whole text
        names, inverse, count = np.unique(numbers, return_inverse=True, return_counts=True)
        pieces.append(np.where(count[inverse] > _LARGEST_PIECE, -1, names[inverse]))
    return common_pieces(*pieces)


def _position_places(places: _TokenPlaces, spans: Integers) -> tuple[Integers, Integers]:
    """The common characters of positions (positions, 2), and the special token of each or -1.

    A position has characters where all its tokens are in both texts without a gap.
    """
    count = len(places.special)
    numbers, is_common = np.arange(count), places.common[:, 0] >= 0
    # the first token of the common text at or after each, and the last at or before
    after = np.minimum.accumulate(np.where(is_common, numbers, count)[::-1])[::-1]
    before = np.maximum.accumulate(np.where(is_common, numbers, -1))
    characters = np.full((len(spans), 2), -1, np.int64)
    special = np.full(len(spans), -1, np.int64)
    is_real = (spans[:, 0] >= 0) & (spans[:, 1] > spans[:, 0])
    start, stop = spans[is_real].T
    first, last = after[start], before[stop - 1]
    has_tokens = first <= last
    first, last = np.where(has_tokens, first, 0), np.where(has_tokens, last, 0)
    common = np.stack([places.common[first, 0], places.common[last, 1]], 1)
    own = np.stack([places.own[first, 0], places.own[last, 1]], 1)
    missing = np.concatenate([[0], np.cumsum((places.own[:, 0] >= 0) & ~is_common)])
    is_whole = has_tokens & (missing[stop] == missing[start])
    is_whole &= (np.diff(common) == np.diff(own))[:, 0]
    characters[is_real] = np.where(is_whole[:, None], common, -1)
    is_single = is_real & (np.diff(spans)[:, 0] == 1)
    special[is_single] = places.special[spans[is_single, 0]]
    return characters, special


def _piece_of_characters(sides: list[Integers]) -> Integers:
    """For each character the number of its piece: a piece ends where no span runs across."""
    end = max(int(spans.max(initial=-1)) for spans in sides) + 2
    across = np.zeros(end + 1, np.int64)
    for spans in sides:
        start, stop = spans[spans[:, 0] >= 0].T
        np.add.at(across, start + 1, 1)
        np.add.at(across, stop, -1)
    return np.cumsum(np.cumsum(across) == 0)


def common_pieces(a: Integers, b: Integers) -> SharedPieces:
    """Keep the pieces that both sides have, renumbered from 0 in the order of A.

    a (positions,) and b hold numbers of pieces, -1 for none. A piece whose number would fall along
    a side is left out.
    """
    while True:
        both = np.intersect1d(a[a >= 0], b[b >= 0])
        names, first = np.unique(a[np.isin(a, both)], return_index=True)
        rank = np.argsort(np.argsort(first))
        sides = []
        for side in (a, b):
            numbers, is_shared = np.full(len(side), -1, np.int64), np.isin(side, both)
            numbers[is_shared] = rank[np.searchsorted(names, side[is_shared])]
            sides.append(numbers)
        falling = [side[(side >= 0) & (side < np.maximum.accumulate(side))] for side in sides]
        wrong = np.unique(np.concatenate(falling))
        if not len(wrong):
            return SharedPieces(sides[0], sides[1])
        a, b = (np.where(np.isin(side, wrong), -1, side) for side in sides)


# --- one grid for two heads -----------------------------------------------------------------------


@dataclass(frozen=True)
class GridAxis:
    """The rows, or the columns, of a grid that a map of A and one of B share.

    a, b: the positions of both maps in each cell. spans (cells, 2) of A and of B: the tokens of
    each cell; an empty span, before the next token, where the side has none. by_token: cells are
    tokens. is_identity: cells are the positions of both maps.
    """

    a: Axis
    b: Axis
    spans: tuple[Integers, Integers]
    by_token: bool = False
    is_identity: bool = False

    def __len__(self) -> int:
        return len(self.a)

    @cached_property
    def in_both(self) -> NDArray[np.bool_]:
        """(cells,): whether both maps have positions in a cell."""
        cells: NDArray[np.bool_] = self.a.there & self.b.there
        return cells

    def cell(self, token: int, position: int) -> int | None:
        """The cell of a token of A, whose position in the map is known; None for none."""
        if self.by_token:
            return token if token < len(self) else None
        cells = self.a.cells
        return int(cells[position]) if position < len(cells) and cells[position] >= 0 else None

    def token(self, cell: int) -> int | None:
        """The last token of A in a cell, None for none."""
        start, stop = (int(end) for end in self.spans[0][cell])
        return stop - 1 if stop > max(start, 0) and self.a.there[cell] else None


@dataclass(frozen=True)
class SharedGrid:
    """The cells on which a head of A and one of B are compared.

    Where both maps stand for the same positions these are the cells. Where they are levels of the
    same tokens the cells are tokens: a row is repeated for the tokens that it speaks for, a column
    shared out among those that it holds. Else the cells are the pieces of text that both share,
    and between them the positions that only one side has.
    """

    a: Capture
    b: Capture
    head_a: HeadId
    head_b: HeadId
    rows: GridAxis
    columns: GridAxis

    @classmethod
    def of(cls, alignment: Alignment, head_a: HeadId, head_b: HeadId) -> SharedGrid:
        """The grid of two captured heads; it has no cells where their texts share nothing."""
        a, b = alignment.a, alignment.b
        layers = a.spec.layers[head_a.layer], b.spec.layers[head_b.layer]
        sides = [(a, head_a.layer), (b, head_b.layer)]
        rows = _grid_axis(
            alignment.rows(*layers),
            [capture.query_prompt(layer) for capture, layer in sides],
            [capture.query_spans(layer) for capture, layer in sides],
            [_rows_of_tokens(capture, layer) for capture, layer in sides],
        )
        columns = _grid_axis(
            alignment.columns(*layers),
            [capture.key_prompt(layer) for capture, layer in sides],
            [capture.key_spans(layer) for capture, layer in sides],
            [_columns_of_tokens(capture.key_spans(layer)) for capture, layer in sides],
        )
        return cls(a, b, head_a, head_b, rows, columns)

    @property
    def is_identity(self) -> bool:
        """Whether the cells are those of both maps."""
        return self.rows.is_identity and self.columns.is_identity

    @property
    def heads_off(self) -> tuple[bool, bool]:
        """Whether the head of A is switched off there, and that of B."""
        return self.head_a in self.a.off, self.head_b in self.b.off

    @property
    def sides(self) -> tuple[tuple[Capture, HeadId], tuple[Capture, HeadId]]:
        """A with its head, B with its own."""
        return (self.a, self.head_a), (self.b, self.head_b)

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)"""
        return len(self.rows), len(self.columns)

    def cell(self, query: int | None, key: int | None) -> tuple[int | None, int | None]:
        """The row and the column of two tokens of A, None for none."""
        layer = self.head_a.layer
        row = None if query is None else self.rows.cell(query, self.a.row(layer, query))
        column = None if key is None else self.columns.cell(key, self.a.column(layer, key))
        return row, column

    def tokens(self, row: int, column: int) -> tuple[int | None, int | None]:
        """The query and the key of a cell as tokens of A, None for none."""
        return self.rows.token(row), self.columns.token(column)


def _grid_axis(
    shared: SharedPieces,
    prompts: list[Prompt],
    spans: list[Integers],
    positions: list[tuple[Integers, Integers]],
) -> GridAxis:
    """Cells by position, by token or by piece, whichever is the first that fits both sides.

    spans (positions, 2): tokens of the positions of A and of B; positions: pairs of a token and a
    position that stands for it.
    """
    if shared.is_identity:
        axis = Axis(np.arange(shared.count), np.arange(shared.count + 1))
        return GridAxis(axis, axis, (spans[0], spans[1]), is_identity=True)
    if same_tokens(*prompts):
        tokens = unit_spans(len(prompts[0]))
        a, b = (Axis.of(*pairs, len(tokens)) for pairs in positions)
        return GridAxis(a, b, (tokens, tokens), by_token=True)
    # the pieces of both, after each the positions that only A has, then those that only B has
    keys, is_placed = [], []
    for side, pieces in enumerate((shared.a, shared.b)):
        is_alone = pieces < 0
        piece_before = np.maximum.accumulate(np.append(-1, pieces))[1:]
        number = np.where(is_alone, np.arange(len(pieces)), 0)
        keys.append(np.stack([piece_before, np.where(is_alone, 1 + side, 0), number], 1))
        is_placed.append(~is_alone | (spans[side][:, 0] >= 0))
    placed = np.concatenate([key[chosen] for key, chosen in zip(keys, is_placed, strict=True)])
    names, cells = np.unique(placed, axis=0, return_inverse=True)
    cells_of = np.split(cells.reshape(-1), [int(is_placed[0].sum())])
    axes, ends = [], []
    for chosen, numbers, tokens in zip(is_placed, cells_of, spans, strict=True):
        order = np.argsort(numbers, kind="stable")
        axes.append(Axis.of(numbers[order], np.flatnonzero(chosen)[order], len(names)))
        ends.append(_cell_spans(axes[-1], tokens))
    return GridAxis(axes[0], axes[1], (ends[0], ends[1]))


def _rows_of_tokens(capture: Capture, layer: int) -> tuple[Integers, Integers]:
    """All tokens that a row of a layer speaks for, and their rows."""
    maps = capture.maps[layer]
    assert maps is not None
    tokens = np.arange(len(capture.query_prompt(layer)))
    level = capture.spec.levels[capture.spec.layers[layer].level]
    if level.stride is not None:
        rows = (tokens - level.apart) // level.stride + level.apart
    else:
        rows = np.array([capture.row(layer, int(token)) for token in tokens], np.int64)
    inside = rows < maps.shape[1]
    return tokens[inside], rows[inside]


def _columns_of_tokens(spans: Integers) -> tuple[Integers, Integers]:
    """The tokens (ascending) that columns with these spans (columns, 2) hold, and their columns."""
    sizes = np.where(spans[:, 0] >= 0, spans[:, 1] - spans[:, 0], 0)
    columns = np.repeat(np.arange(len(spans)), sizes)
    first = np.cumsum(sizes) - sizes
    tokens = np.arange(sizes.sum()) - np.repeat(first - spans[:, 0], sizes)
    order = np.argsort(tokens, kind="stable")
    return tokens[order], columns[order]


def _cell_spans(axis: Axis, spans: Integers) -> Integers:
    """The tokens of the positions in each cell (cells, 2), an empty span for none."""
    cells, filled = np.zeros((len(axis), 2), np.int64), axis.there
    cells[filled, 0] = spans[axis.positions[axis.offsets[:-1][filled]], 0]
    cells[filled, 1] = spans[axis.positions[axis.offsets[1:][filled] - 1], 1]
    cells = np.maximum(cells, 0)
    return np.where(filled[:, None], cells, np.maximum.accumulate(cells[:, 1])[:, None])
