"""Roles of heads: the keys that a head attends to, by share of weight against chance.

A head has a role when the mean share of a row's weight on the keys of the role is well above the
share that an even row would put there (after Voita et al. 2019, who name heads by what they do on
text). Results are numbers; hgviz.tasks.heads puts them into sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from hgviz.analysis.metrics import (
    BLOCK_COLUMNS,
    HEADS,
    METRICS,
    Array,
    Cells,
    HeadDistances,
    HeadMetrics,
    Kernel,
    Kernels,
    Keys,
    MetricMeans,
    RowSums,
    metrics_for,
    ratio,
    record,
    row_blocks,
    signed_heads,
)
from hgviz.analysis.tokens import Block, Bools, Layout, Lexicon, TokenReading
from hgviz.core import (
    Capture,
    HeadId,
    Layer,
    Map,
    ModelSpec,
    Prompt,
    Selection,
    Step,
    progress,
    progress_as,
    progress_within,
)

FEWEST_ROWS = 8  # in which a role must be seen, and
COVERAGE = 0.15  # of the rows that count
EXCESS = 0.1  # of what chance leaves: (share - chance) / (1 - chance)
CLEAR = 0.1  # nats a row
EVIDENCE = 7.5  # nats over all rows; chance alone reaches it in 1 of 10,000 tries
STEADY = 0.5  # each half of the rows shows at least this part of the excess
SPREAD = 0.25  # every second target shows at least this part of the lift over chance
POSITIONAL = 0.9  # of a head's rows look most at one distance (Voita et al. 2019)
UNIFORM = 0.9  # of the entropy of an even row
ONE_KEY = 0.5  # the share of all rows that a single key must have to be a role
ENOUGH_KEYS = 16  # from which on a row counts, or a quarter of the longest row's
SECOND = ", every second"  # added to the name of a role: the same about every second target
EXAMPLES = 8  # of a head
EXAMPLES_OF_TEXT = 2  # where there are many texts
DISTANCE_TEXTS = 64  # spread evenly over a corpus, on which heads are compared with each other
QUOTED = 24  # characters of a text on either side of an example
FIRST_PASS = 0.6  # of the time

Members = Callable[[TokenReading], Bools]

# --- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Role:
    """A set of keys that heads are tried for.

    Attributes:
        label: what it is called; {unit} is token or state, {place} that at full resolution,
            position where a level is shortened, group where one level looks at another.
        description: what a head of it does; {text} is whose keys they are.
        keys: the keys of each query in a block.
        members: the tokens it is about where the text fixes them; a head must look at several.
        layers: the role of the layers it makes sense in, "" for all that look at their own text;
            cross: also for those that look at another text.
        later: it means later keys; characters: only of texts read by the character.
    """

    label: str
    description: str
    keys: Keys
    members: Members | None = None
    layers: str = ""
    later: bool = False
    cross: bool = False
    characters: bool = False


def _every(label: str, members: Members, characters: bool = False) -> Role:
    """All tokens of a kind that the query sees."""
    keys: Keys = lambda block: block.with_member(members(block.key_tokens))  # noqa: E731
    return Role(label, f"Attends to {label}", keys, members, cross=True, characters=characters)


def _newest(label: str, members: Members) -> Role:
    """The newest token of a kind, up to the query itself."""
    keys: Keys = lambda b: b.has_token(b.key_tokens.newest(members(b.key_tokens)))  # noqa: E731
    return Role(label, f"Attends to the {label}", keys, members)


_word_start, _sentence_start = attrgetter("starts_word"), attrgetter("starts_sentence")

ROLES: dict[str, Role] = {
    "previous token": Role(
        "previous {place}", "Attends to the previous {place}", lambda b: b.before(1)
    ),
    "two back": Role("two {place}s back", "Attends two {place}s back", lambda b: b.before(2)),
    "three back": Role("three {place}s back", "Attends three {place}s back", lambda b: b.before(3)),
    "local": Role(
        "local", "Attends locally: the current {place} and the previous four",
        lambda b: b.before(0, 4),
    ),
    "current token": Role(
        "current {place}", "Attends to the current {place}", lambda b: b.before(0)
    ),
    "next token": Role(
        "next {place}", "Attends to the next {place}", lambda b: b.before(-1), later=True
    ),
    "neighbours": Role(
        "local, both sides", "Attends locally: up to two {place}s to either side",
        lambda b: b.before(-2, 2), later=True,
    ),
    "newest of group": Role(
        "last position in group", "Attends to the last position of its group",
        Block.newest_of_group, layers="down",
    ),
    "oldest of group": Role(
        "first position in group", "Attends to the first position of its group",
        Block.oldest_of_group, layers="down",
    ),
    "first token": Role(
        "first {unit}", "Attends to the first {unit} of {text}",
        lambda b: b.with_member(b.key_tokens.index == 0), cross=True,
    ),
    "last token": Role(
        "last {unit}", "Attends to the last {unit} of {text}",
        lambda b: b.with_member(b.key_tokens.index == b.key_tokens.end), later=True, cross=True,
    ),
    "opening": Role(
        "special tokens at the start", "Attends to the special tokens at the start",
        lambda b: b.with_member(b.key_tokens.opening), cross=True,
    ),
    "separator": Role(
        "separators", "Attends to separators",
        lambda b: b.with_member(b.key_tokens.separator), cross=True,
    ),
    "special": Role(
        "special tokens", "Attends to special tokens",
        lambda b: b.with_member(b.key_tokens.special), cross=True,
    ),
    "same place": Role(
        "diagonal", "Attends to {text} in order (diagonal)", Block.same_place, layers="cross",
    ),
    "same token": Role(
        "same {unit}", "Attends to the same {unit} of {text}",
        Block.same_token, layers="cross",
    ),
    "other text": Role(
        "other text", "Attends to the other text", Block.other_text, later=True
    ),
    "word start": Role(
        "start of the word", "Attends to the start of the word",
        lambda b: b.has_token(b.key_tokens.word_first), _word_start,
    ),
    "current word": Role(
        "current word", "Attends within the current word",
        lambda b: b.has_token_between(b.key_tokens.word_first, b.key_tokens.word_end),
    ),
    "previous word": Role("previous word", "Attends to the previous word", Block.previous_word),
    "last space": _newest("previous space", attrgetter("is_space")),
    "last punctuation": _newest("previous punctuation", attrgetter("is_stop")),
    "sentence start": _newest("start of the sentence", _sentence_start),
    "capitals": _every("capital letters", attrgetter("is_capital")),
    "punctuation": _every("punctuation", attrgetter("is_stop")),
    "spaces": _every("spaces", attrgetter("is_space")),
    "word starts": _every("word starts", _word_start),
    "digits": _every("digits", attrgetter("is_digit")),
    "vowels": _every("vowels", attrgetter("is_vowel"), characters=True),
    "last duplicate": Role(
        "previous same {unit}", "Attends to the previous occurrence of the same {unit}",
        lambda b: b.has_token(b.key_tokens.same_before),
    ),
    "duplicate token": Role(
        "duplicate {unit}", "Attends to earlier occurrences of the same {unit}",
        lambda b: b.same_token() & b.earlier,
    ),
    "same elsewhere": Role(
        "same {unit} elsewhere", "Attends to other occurrences of the same {unit}",
        lambda b: b.same_token() & ~b.before(0), later=True,
    ),
    "same word": Role(
        "duplicate word", "Attends to earlier occurrences of the same word", Block.same_word
    ),
    "rare word": Role(
        "rarest word", "Attends to the rarest word of the sentence", Block.rarest_word
    ),
    "induction": Role(
        "induction, one {unit}", "Attends to what followed the same {unit} earlier (induction)",
        lambda b: b.after_same(1),
    ),
    "induction 2": Role(
        "induction, two {unit}s",
        "Attends to what followed the same two {unit}s earlier (induction)",
        lambda b: b.after_same(2),
    ),
    "induction 3": Role(
        "induction, three {unit}s",
        "Attends to what followed the same three {unit}s earlier (induction)",
        lambda b: b.after_same(3),
    ),
}  # fmt: skip
SINGLE_PLACES = ("current token", "previous token", "two back", "three back")
COMMON_ROLES = (  # of any text
    "first token", "last token", "current token", "local", "neighbours", "opening", "separator",
    "special",
)  # fmt: skip


def key_sets_for(layout: Layout) -> dict[str, Keys]:
    """The keys of the roles that make sense in a layer, and SECOND, those of every second target:
    a head that attends to one token, which happens to be a capital letter, does not attend to
    capital letters in general."""
    roles = roles_for(layout)
    sets: dict[str, Keys] = {name: role.keys for name, role in roles.items()}
    for name, role in roles.items():
        if role.members is not None:
            sets[name + SECOND] = _every_second(role.keys, role.members)
    return sets


def _every_second(keys: Keys, members: Members) -> Keys:
    return lambda block: keys(block) & block.with_second_member(members)


def roles_for(layout: Layout) -> dict[str, Role]:
    """The roles that make sense in a layer: none in one that looks at slots, which are no text."""
    if layout.key_tokens.unit == "slot":
        return {}
    return {
        name: role
        for name, role in ROLES.items()
        if (role.layers == layout.role or (not role.layers and (role.cross or not layout.is_cross)))
        and not (role.later and layout.causal)
        and not (role.characters and not layout.key_tokens.has_characters)
    }


# --- share against chance -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoleFit:
    """How a role fits a head: share and chance are means over the rows that have such a key,
    coverage is how many of the rows that count do; is_clear: whether the head has the role."""

    name: str
    share: float
    chance: float
    coverage: float
    is_clear: bool

    @property
    def clarity(self) -> float:
        """Nats by which the share differs from chance, less where few rows have such a key."""
        return _nats(self.share, self.chance) * float(np.sqrt(self.coverage))


class _RoleSums:
    """Shares and chances of a role for all heads of a layer, over any number of texts.

    Two parts are added up apart: the first half of each text and the second, and the keys of every
    second target and of the others.
    """

    def __init__(self, heads: int) -> None:
        self._rows, self._chance, self._share = 0, 0.0, np.zeros(heads)
        self._halves = [(np.zeros(heads), np.zeros(2)) for _ in range(2)]
        self._targets: list[tuple[Array, Array]] = []

    def add(self, sums: RowSums, name: str, rows: Array) -> None:
        """Add the rows (by number) of a text."""
        share, chance = sums.share(name)[:, rows], ratio(sums.chance[name], sums.seen)[rows]
        self._rows += len(rows)
        self._chance += float(chance.sum())
        self._share += share.sum(1)
        middle = len(rows) // 2
        halves = slice(None, middle), slice(middle, None)
        for (shares, counts), half in zip(self._halves, halves, strict=True):
            shares += share[:, half].sum(1)
            counts += len(chance[half]), chance[half].sum()
        if name + SECOND not in sums.hits:
            return
        self._targets = self._targets or [(np.zeros(len(share)), np.zeros(1)) for _ in range(2)]
        second = sums.hits[name + SECOND][:, rows], sums.chance[name + SECOND][rows]
        others = sums.hits[name][:, rows] - second[0], sums.chance[name][rows] - second[1]
        for (shares, chances), (hits, keys) in zip(self._targets, (second, others), strict=True):
            has_key = keys > 0
            shares += ratio(hits, sums.mass[:, rows])[:, has_key].sum(1)
            chances += ratio(keys, sums.seen[rows])[has_key].sum()

    def fits(self, name: str, counted: int) -> list[RoleFit]:
        """The fit of each head, of so many rows that count; empty where too few have a key."""
        if self._rows < max(FEWEST_ROWS, COVERAGE * counted):
            return []
        shares, chance = self._share / self._rows, self._chance / self._rows
        excess = _excess(shares, chance)
        nats = np.array([_nats(float(share), chance) for share in shares])
        is_clear = (excess >= EXCESS) & (nats >= max(CLEAR, EVIDENCE / self._rows))
        for share, (rows, by_chance) in self._halves:
            if rows:
                is_clear &= _excess(share / rows, by_chance / rows) >= STEADY * excess
        for share, at_random in self._targets:
            lift = SPREAD * (shares / chance - 1)
            is_clear &= (share > 0) & (share - at_random >= lift * at_random)
        coverage = self._rows / counted
        return [
            RoleFit(name, float(share), chance, coverage, bool(clear))
            for share, clear in zip(shares, is_clear, strict=True)
        ]


def _excess(share: Array, chance: float) -> Array:
    """(heads,) what a share adds to chance, of what it could add."""
    return (share - chance) / (1 - chance)


def _nats(share: float, chance: float) -> float:
    """The divergence of a share from chance; 0 where the share is not larger."""
    if share <= chance:
        return 0.0
    rest = (1 - share) * np.log((1 - share) / (1 - chance)) if share < 1 else 0.0
    return float(share * np.log(share / chance) + rest)


def _clearest(fits: list[RoleFit]) -> RoleFit | None:
    """The clearest role; a single place that takes half of the weight comes before "local"."""
    clear = [fit for fit in fits if fit.is_clear]
    best = max(clear, key=lambda fit: fit.clarity, default=None)
    if best is not None and best.name == "local":
        single = [fit for fit in clear if fit.name in SINGLE_PLACES and fit.share >= 0.5]
        return max(single, key=lambda fit: fit.share, default=best)
    return best


# --- examples -------------------------------------------------------------------------------------

Passage = tuple[str, str, str]  # what stands before, it, what stands after


class HeadExample(NamedTuple):
    """A row in which a head has its role: the number of the text, query and key as tokens (key
    None: no token), the share of the row's weight on keys of the role; at and to: where query and
    key stand in the text."""

    text: int
    query: int
    key: int | None
    share: float
    at: Passage = ("", "", "")
    to: Passage = ("", "", "")


class _BestRows:
    """The rows with the largest values of each head, of all texts."""

    def __init__(self, heads: int) -> None:
        self._numbers = np.zeros((heads, 0, 5))  # value, share, text, query, key

    def add(
        self, sums: RowSums, rows: Array, values: Array, shares: Array, text: int, most: int
    ) -> None:
        """Add at most so many of these rows (by number) of a text, by values (heads, R)."""
        layout = sums.layout
        assert layout is not None
        order = np.argsort(-values[:, rows], axis=1, kind="stable")[:, :most]
        chosen = rows[order]
        column = np.take_along_axis(sums.peak_column, chosen, 1)
        key = np.where(column >= 0, layout.key[np.maximum(column, 0), 1] - 1, -1)
        value, share = (np.take_along_axis(part, chosen, 1) for part in (values, shares))
        texts = np.full(chosen.shape, text)
        fresh = np.stack([value, share, texts, layout.newest_token[chosen], key], -1)
        numbers = np.concatenate([self._numbers, fresh], 1)
        best = np.argsort(-numbers[..., 0], axis=1, kind="stable")[:, :EXAMPLES]
        self._numbers = np.take_along_axis(numbers, best[..., None], 1)

    def examples(self, head: int) -> tuple[HeadExample, ...]:
        """The examples of a head, the largest share first."""
        examples = [
            HeadExample(int(text), int(query), int(key) if key >= 0 else None, float(share))
            for value, share, text, query, key in self._numbers[head]
            if value > 0
        ]
        return tuple(sorted(examples, key=lambda example: -example.share))


# --- heads ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoleContext:
    """What a layer's heads were measured on: unit, place and text as in Role, the number of texts,
    how many of all rows were read, whether its windows hold a single key, whether rows see
    different keys each."""

    unit: str
    place: str
    text: str
    texts: int = 1
    rows: int = 0
    all_rows: int = 0
    is_windowed: bool = False
    is_ordered: bool = False

    def fill(self, words: str) -> str:
        """A label or description of a role for this layer."""
        return words.format(unit=self.unit, place=self.place, text=self.text)


@dataclass(frozen=True, slots=True)
class HeadRole:
    """What is known of a head, in numbers.

    role: what its clearest role is called, "" where none is; name: the key in ROLES, or "uniform",
    "one token", "one key", "none"; share, chance and coverage as in RoleFit, of "none" those of the
    role that comes nearest, closest. clarity: nats a row. fits: all clear roles, the
    clearest first. metrics: those of METRICS that say something of it. most: the key that all rows
    together look at most, most_share its part of their weight, most_text its name. nearest: the
    head most like it; kernel: its convolution.
    """

    head: HeadId
    metrics: HeadMetrics
    name: str
    role: str
    share: float
    chance: float
    coverage: float
    clarity: float
    context: RoleContext
    signed: bool
    level: int
    kind: str
    fits: tuple[RoleFit, ...] = ()
    closest: str = ""
    most: int | None = None
    most_share: float = 0.0
    most_text: str = ""
    examples: tuple[HeadExample, ...] = ()
    nearest: HeadId | None = None
    kernel: Kernel | None = None

    @property
    def score(self) -> float:
        """The share that its role takes, 0 without one."""
        return self.share if self.role else 0.0

    @property
    def has_role(self) -> bool:
        """Whether it has one of ROLES."""
        return self.name in ROLES


class LayerRoles:
    """Metrics, roles and examples of all heads of a layer, over any number of texts."""

    def __init__(self, capture: Capture, layer: Layer, maps: Map, layout: Layout) -> None:
        self.layer, self.heads = layer, maps.heads
        self.signed = signed_heads(layer, maps)
        count = len(self.heads)
        self._means = MetricMeans(count, metrics_for(HEADS), keep_empty=True)
        self._even = np.zeros(count)
        self._sums: dict[str, _RoleSums] = {}
        self._best: dict[str, _BestRows] = {}
        self._texts, self._longest = 0, 0.0
        self._columns: Array = np.zeros((count, 0))  # of one text only
        is_text = layout.key_tokens.unit != "slot"
        has_kernel = layer.role == "self" and not layout.is_cross and is_text
        self.kernels = Kernels(count) if has_kernel else None
        self._rows = self._all_rows = 0

    def add(
        self, capture: Capture, maps: Map, layout: Layout, text: int = 0, most: int = EXAMPLES
    ) -> None:
        """Add a text, of which each role has at most so many examples."""
        self._capture, self._layout = capture, layout
        sums = RowSums(maps.shape, self.signed, layout, key_sets_for(layout))
        blocks = row_blocks(*maps.shape[1:])
        self._rows += sum(block.stop - block.start for block in blocks)
        self._all_rows += maps.shape[1]

        def read(rows: slice, columns: slice) -> Cells | None:
            block = layout.block(rows, columns)
            # the zeros of the causal shift stand for no token, and yet take weight
            if columns.start and not block.seen.any():
                return None
            weights = np.stack([maps.read(head, rows, columns) for head in maps.heads])
            return Cells(rows, columns, weights, block.seen, block)

        record(read, blocks, maps.shape[2], BLOCK_COLUMNS, [sums])
        self._add_sums(sums, text, most)

    def _add_sums(self, sums: RowSums, text: int, most: int) -> None:
        longest = sums.seen.max(initial=0)
        is_counted = self._layout.real & (sums.seen >= max(1.0, min(ENOUGH_KEYS, longest / 4)))
        self._texts += 1
        self._longest = max(self._longest, float(longest))
        self._columns = sums.columns if self._texts == 1 else self._columns[:, :0]
        self._means.add(sums, is_counted)
        even = ratio(sums.entropy, np.log(np.maximum(sums.seen, 1)))
        self._even += even[:, is_counted].sum(1)
        focus = ratio(sums.peak, sums.mass)
        best = {"": (np.flatnonzero(is_counted & (sums.seen > 1)), focus, focus)}
        for name in sums.key_sets:
            chance = ratio(sums.chance[name], sums.seen)
            rows = np.flatnonzero(is_counted & (chance > 0) & (chance <= 0.5))
            if len(rows) and not name.endswith(SECOND):
                self._sums.setdefault(name, _RoleSums(len(self.heads))).add(sums, name, rows)
                share = sums.share(name)
                best[name] = rows, share - chance, share
        for name, (rows, values, shares) in best.items():
            if len(rows):
                rows_of_role = self._best.setdefault(name, _BestRows(len(self.heads)))
                rows_of_role.add(sums, rows, values, shares, text, most)

    def head_roles(self) -> Iterator[HeadRole]:
        """The role of each head over the texts so far."""
        by_role = [role.fits(name, self._means.rows) for name, role in self._sums.items()]
        kernels = self.kernels.kernels() if self.kernels else [None] * len(self.heads)
        metrics, context = self._means.metrics(), self._context()
        for number, head in enumerate(self.heads):
            fits = [fits[number] for fits in by_role if fits]
            columns = self._columns[number]
            mass = float(columns.sum())
            most = int(columns.argmax()) if mass else None
            most_share = float(columns[most]) / mass if most is not None else 0.0
            even = float(self._even[number]) / max(1, self._means.rows)
            name, best = self._role(fits, even, most_share)
            clear = sorted((fit for fit in fits if fit.is_clear), key=lambda fit: -fit.clarity)
            label = ROLES[name].label if name in ROLES else _OTHER_LABELS[name]
            best_rows = self._best.get(name if name in ROLES else "")
            values = metrics[number] | self._kernel_metrics(kernels[number])
            yield HeadRole(
                HeadId(self.layer.index, head),
                HeadMetrics((key, values[key]) for key in METRICS if key in values), name,
                context.fill(label), best.share, best.chance, best.coverage,
                best.clarity if name in ROLES else 0.0, context, self.signed[number],
                self.layer.level, self.layer.role, tuple(clear), best.name, most, most_share,
                self._key_text(most), best_rows.examples(number) if best_rows else (),
                kernel=kernels[number],
            )  # fmt: skip

    def _role(self, fits: list[RoleFit], even: float, most_share: float) -> tuple[str, RoleFit]:
        keys = self._columns.shape[1]
        if self._longest <= 1:
            return "one key", RoleFit("", 0.0, 0.0, 1.0, True)
        if best := _clearest(fits):
            return best.name, best
        if even >= UNIFORM:
            return "uniform", RoleFit("", even, 0.0, 1.0, True)
        # in a causal map the first keys gather weight only because more rows see them
        if not self._context().is_ordered and keys and most_share >= max(ONE_KEY, 2 / keys):
            return "one token", RoleFit("", most_share, 1 / keys, 1.0, True)
        none = RoleFit("", 0.0, 0.0, 0.0, False)
        return "none", max(fits, key=lambda fit: fit.clarity, default=none)

    def _context(self) -> RoleContext:
        layout, layer, spec = self._layout, self.layer, self._capture.spec
        unit = layout.key_tokens.unit
        place = unit if spec.levels[layer.level].stride == 1 else "position"
        return RoleContext(
            unit, "group" if layer.role in ("down", "up") else place,
            "the source" if layout.is_cross else "the text", self._texts, self._rows,
            self._all_rows, layout.window is not None, layout.causal or layout.step > 1,
        )  # fmt: skip

    def _key_text(self, key: int | None) -> str:
        prompt = self._capture.key_prompt(self.layer.index)
        label = prompt.label(key) if key is not None and key < len(prompt) else ""
        return label.strip() or label

    def _kernel_metrics(self, kernel: Kernel | None) -> dict[str, float]:
        """The metrics of a kernel, in tokens where positions are so many tokens each."""
        if kernel is None:
            return {}
        values = {"convolution": kernel.score, "variance": kernel.variance}
        if (stride := self._layout.stride) is not None:
            values |= {"centre": kernel.centre * stride, "width": kernel.width * stride}
        return {name: value for name, value in values.items() if value == value}


_OTHER_LABELS = {
    "uniform": "uniform", "one token": "single {unit}", "one key": "single key", "none": "",
}  # fmt: skip


def roles(capture: Capture) -> dict[HeadId, HeadRole]:
    """The role and the metrics of every head that is captured; metrics that take a second pass
    (kernels, nearest head) are left out.

    The progress carries the roles so far whenever a layer is done. Holds at most 256 rows by 512
    keys of a layer's maps. Of texts above 8,192 tokens rows spread evenly are read.
    """
    found: dict[HeadId, HeadRole] = {}
    readings: dict[str, TokenReading] = {}
    total = len(capture.spec.layers)
    for layer in capture.spec.layers:
        maps = capture.maps[layer.index]
        if maps is not None and maps.heads:
            layout = Layout(capture, layer.index, readings)
            heads = LayerRoles(capture, layer, maps, layout)
            heads.kernels = None
            with _part(layer.index, layer.index + 1, total, "measuring heads"):
                heads.add(capture, maps, layout)
            found.update((role.head, role) for role in heads.head_roles())
        progress(layer.index + 1, total, "measuring heads", dict(found))
    return found


def _part(start: float, stop: float, total: float, note: str) -> AbstractContextManager[None]:
    """Report the progress made inside as that from start to stop of the work, under one note."""

    def scaled(step: Step) -> Step:
        share = min(step.done / step.total, 1.0) if step.total else 0.0
        return Step(start + (stop - start) * share, total, note)

    return progress_as(scaled)


# --- corpora --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CorpusRoles:
    """The role of every head over some texts; tokens: of all of them; missing: layers that are not
    captured; rare_words: different ones, None where words are not counted."""

    spec: ModelSpec
    heads: Mapping[HeadId, HeadRole]
    texts: int
    tokens: int = 0
    missing: tuple[int, ...] = ()
    rare_words: int | None = None


def corpus_roles(
    opened: Callable[[int], Capture], numbers: Sequence[int], lexicon: Lexicon | None = None
) -> CorpusRoles:
    """The role of every head over the texts that opened(number) gives, of one model.

    Reads every map twice, in blocks of 256 rows; one of them is held at a time, of all heads of a
    layer by 512 keys, or of one head by all keys. After 1, 2, 4 ... texts the progress carries the
    CorpusRoles so far. lexicon: how often words are used in all texts; without it none is rare.
    """
    total = float(len(numbers))
    found = _Corpus(len(numbers) > 1, lexicon)
    step = max(1.0, len(numbers) / DISTANCE_TEXTS)
    compared = {numbers[int(at * step)] for at in range(min(len(numbers), DISTANCE_TEXTS))}

    def note(done: int) -> str:
        count = len(numbers)
        return f"text {done + 1:,} of {count:,}" if count > 1 else "measuring heads"

    for done, number in enumerate(numbers):
        with _part(FIRST_PASS * done, FIRST_PASS * (done + 1), total, note(done)):
            found.add(opened(number), number, number in compared)
        if done + 1 < len(numbers) and (done + 1) & done == 0:
            progress(FIRST_PASS * (done + 1), total, note(done), found.roles(done + 1))
    examples: dict[int, list[tuple[int, HeadExample]]] = {}
    for head in found.roles(1).heads.values():
        for example in head.examples:
            examples.setdefault(example.text, []).append((head.head.layer, example))
    for done, number in enumerate(numbers):
        capture = opened(number)
        found.quote(capture, examples.get(number, ()))
        start = FIRST_PASS * total + (1 - FIRST_PASS) * done
        with _part(start, start + 1 - FIRST_PASS, total, note(done)):
            found.compare(capture)
    return found.roles(len(numbers))


class _Corpus:
    """The heads of all layers, over the texts so far."""

    def __init__(self, is_many: bool, lexicon: Lexicon | None) -> None:
        self._most, self._lexicon = EXAMPLES_OF_TEXT if is_many else EXAMPLES, lexicon
        self._layers: dict[int, LayerRoles] = {}
        self._distances: dict[tuple[object, ...], HeadDistances] = {}
        self._spec: ModelSpec | None = None
        self._tokens = 0
        self._missing: dict[int, None] = {}
        self._quoted: dict[tuple[int, HeadExample], HeadExample] = {}

    def _layouts(self, capture: Capture) -> Iterator[tuple[Layer, Map, Layout]]:
        """The layers with maps; what is done with each is a part of the work."""
        levels, count = capture.spec.levels, len(capture.spec.layers)
        readings: dict[str, TokenReading] = {
            level.sequence: TokenReading(capture.prompt_of(level.index), self._lexicon)
            for level in levels
        }
        for layer in capture.spec.layers:
            maps = capture.maps[layer.index]
            if maps is None:
                self._missing[layer.index] = None
            elif maps.heads:
                with progress_within(layer.index, layer.index + 1, count):
                    yield layer, maps, Layout(capture, layer.index, readings)

    def add(self, capture: Capture, number: int, is_compared: bool) -> None:
        """The first pass over a text."""
        self._spec = capture.spec
        self._tokens += len(capture.main)
        groups: dict[tuple[object, ...], list[tuple[Map, Layout]]] = {}
        for layer, maps, layout in self._layouts(capture):
            fresh = LayerRoles(capture, layer, maps, layout)
            heads = self._layers.setdefault(layer.index, fresh)
            heads.add(capture, maps, layout, number, self._most)
            if heads.kernels:
                heads.kernels.add(maps, layout, row_blocks(*maps.shape[1:]))
            key = layer.role, layer.level, layer.key_level, layer.window
            groups.setdefault(key, []).append((maps, layout))
        for kind, group in groups.items() if is_compared else ():
            ids = [HeadId(layout.layer, head) for maps, layout in group for head in maps.heads]
            between = self._distances.setdefault(kind, HeadDistances(ids))
            if between.heads == tuple(ids) and len({maps.shape[1:] for maps, _ in group}) == 1:
                with progress_within(1, 1, 1):
                    between.add([maps for maps, _ in group], group[0][1])

    def compare(self, capture: Capture) -> None:
        """The second pass over a text."""
        for layer, maps, layout in self._layouts(capture):
            heads = self._layers.get(layer.index)
            if heads is not None and heads.kernels:
                heads.kernels.compare(maps, layout, row_blocks(*maps.shape[1:]))

    def quote(self, capture: Capture, examples: Iterable[tuple[int, HeadExample]]) -> None:
        """Remember where the examples of a text stand in it."""
        for layer, example in examples:
            row, prompt = capture.row(layer, example.query), capture.query_prompt(layer)
            at, to = _passage(prompt, *capture.query_spans(layer)[row]), ("", "", "")
            if example.key is not None:
                column = capture.column(layer, example.key)
                to = _passage(capture.key_prompt(layer), *capture.key_spans(layer)[column])
            self._quoted[layer, example] = example._replace(at=at, to=to)

    def roles(self, texts: int) -> CorpusRoles:
        """What was found so far."""
        assert self._spec is not None  # there is at least one text
        nearest = {
            head: pair
            for between in self._distances.values()
            for head, pair in between.nearest().items()
        }
        heads: dict[HeadId, HeadRole] = {}
        for index, layer in self._layers.items():
            for role in layer.head_roles():
                quoted = tuple(self._quoted.get((index, one), one) for one in role.examples)
                near, distance = nearest.get(role.head, (None, 0.0))
                metrics = role.metrics
                if near is not None:
                    metrics = HeadMetrics({**metrics, "nearest": distance})
                heads[role.head] = replace(role, examples=quoted, nearest=near, metrics=metrics)
        rare_words = None if self._lexicon is None else self._lexicon.rare
        return CorpusRoles(self._spec, heads, texts, self._tokens, tuple(self._missing), rare_words)


def _passage(prompt: Prompt, start: int, end: int) -> Passage:
    """Where tokens start..end-1 stand in the text; a special token by its name alone."""
    spans = prompt.spans[start:end]
    spans = spans[spans[:, 0] >= 0]
    if not len(spans):
        return "", prompt.label(start) if 0 <= start < len(prompt) else "", ""
    first, last = int(spans[:, 0].min()), int(spans[:, 1].max())
    text = prompt.text
    return text[max(0, first - QUOTED) : first], text[first:last], text[last : last + QUOTED]


# --- choosing among heads -------------------------------------------------------------------------


def notable_heads(heads: Mapping[HeadId, HeadRole], count: int = 4) -> list[HeadRole]:
    """The clearest heads of different roles, from different levels where possible.

    Self-attention comes first, and roles that say something of the text before those that any text
    would show; heads without a role are never among them.
    """
    left = [head for head in heads.values() if head.clarity > 0]
    chosen: list[HeadRole] = []
    while left and len(chosen) < count:
        levels = [head.level for head in chosen]
        best = max(
            left,
            key=lambda head: (
                head.kind == "self",
                head.name not in COMMON_ROLES,
                head.clarity / (1 + levels.count(head.level)),
            ),
        )
        chosen.append(best)
        left = [head for head in left if head.name != best.name]
    return chosen


class Rank(NamedTuple):
    """A head's rank by a metric, 1 for the largest, among how many heads; 0 of 0 for no number."""

    rank: int
    total: int


def heads_of_kind(head: HeadId, heads: Mapping[HeadId, HeadRole]) -> list[HeadRole]:
    """The heads that one is ranked among: all of cross-attention, or all of self-attention."""
    kind = "cross" if heads[head].kind == "cross" else "self"
    return [one for one in heads.values() if one.kind == kind]


def rank(metric: str, head: HeadId, heads: Mapping[HeadId, HeadRole]) -> Rank:
    """The rank of a head among those of its kind; itself counts, whatever its kind."""
    if metric not in heads[head].metrics:
        return Rank(0, 0)
    others = [one.metrics for one in heads_of_kind(head, heads) if one.head != head]
    values = [metrics[metric] for metrics in others if metric in metrics]
    own = heads[head].metrics[metric]
    return Rank(1 + sum(value > own for value in values), 1 + len(values))


def top_keys(
    capture: Capture, selection: Selection, count: int = 5
) -> list[tuple[int | None, int, float]]:
    """The keys of the selected query, or of the last token's: (token, column, weight), the largest
    size first.

    The token is the newest that a column stands for, None for the zeros of the causal shift. Keys
    without weight are left out.
    """
    maps, prompt = capture.maps[selection.layer], capture.query_prompt(selection.layer)
    if maps is None or not len(prompt):
        return []
    token = prompt.last if selection.query is None else selection.query
    row = capture.row(selection.layer, token)
    weights = maps.read(selection.head, (row, row + 1))[0]
    order = np.argsort(-np.abs(weights), kind="stable")[:count]
    return [
        (capture.column_token(selection.layer, int(column)), int(column), float(weights[column]))
        for column in order
        if weights[column] != 0
    ]
