"""What a training lowers: next tokens, masked tokens, classes, or the second texts of pairs.

Every batch depends on the seed and the step alone, so trainings that differ only in an activation
read the same batches, and a stopped training continues as if it had not stopped. Any objective can
be trained with heads off, and with hard-concrete gates of the heads that are on.
Shapes: B texts, n tokens, V vocabulary, H heads that are on, in order of computation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from msgspec import Meta, structs
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hgviz.core import HeadId, HeadSet, HgvizError, Layer
from hgviz.errors import file_error, quote_name, require
from hgviz.models.data import LabelledTexts, is_table, read_rows, read_texts
from hgviz.models.layers import Configuration, Network, Tokens
from hgviz.models.run import Run
from hgviz.models.text import MASK, UNKNOWN, Bytes, Pieces

Figures = dict[str, float]
Texts = tuple[Tensor, ...]  # ids (n,) of each text

FINITE = 1e300
Positive = Annotated[float, Meta(gt=0, le=FINITE)]
NotNegative = Annotated[float, Meta(ge=0, le=FINITE)]
Share = Annotated[float, Meta(ge=0, lt=1)]
PositiveShare = Annotated[float, Meta(gt=0, lt=1)]
Count = Annotated[int, Meta(ge=0)]
PositiveCount = Annotated[int, Meta(ge=1)]

IGNORED = -100  # a target without a loss, the default of torch's cross_entropy
MASK_SEED = 12_345  # of the masks of held-out texts, which are the same in every training
MEASURED_TOKENS = 16_384  # in a batch of masked texts that is only measured
POOL = 50  # batches whose rows are sorted by length together
WINDOWS, MASKS, DROPPED, ORDER, GATES = range(5)  # streams of random numbers


class Stage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From this share of the training on, `batch` windows of `length` tokens are read a step."""

    start: float
    length: Annotated[int, Meta(ge=2)]
    batch: PositiveCount


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long and how fast to train. Exactly one of steps, epochs and minutes is above 0.

    batch, length: rows a step and tokens that they are cut to (0: what the model reads), where
    rows are learned; windows of whole texts have stages. label_smoothing: share of the target
    given to all classes; token_dropout: share of tokens replaced by the unknown one while a
    classifier learns; mask: share of tokens that a masked language model guesses. level_dropout: by
    level, the share of texts that are read without its self-attention, so that others learn to do
    its work (as DropHead, Zhou et al. 2020, arXiv:2004.13342, by levels). initial:
    standard deviation of new weights; 0.02 suits widths of some hundreds, narrow models need more.
    evaluate_bytes: how much held-out text is measured while training; at the end all is.
    """

    steps: Count = 0
    epochs: NotNegative = 0.0
    minutes: NotNegative = 0.0
    rate: Positive = 1e-3
    floor: NotNegative = 0.02
    warmup: int = 100
    decay: NotNegative = 0.1
    clip: Positive = 1.0
    dropout: Share = 0.0
    level_dropout: tuple[Share, ...] = ()
    label_smoothing: Share = 0.0
    token_dropout: Share = 0.0
    mask: PositiveShare = 0.15
    initial: PositiveShare = 0.02
    seed: int = 0
    batch: PositiveCount = 32
    length: Count = 0
    stages: tuple[Stage, ...] = (Stage(0.0, 256, 16),)
    autocast: bool = False
    threads: Count = 0
    device: str = "cpu"
    save_every: PositiveCount = 200
    evaluate_every: PositiveCount = 200
    evaluate_bytes: int = 65_536
    evaluate_length: PositiveCount = 1024
    store: Literal["float32", "bfloat16"] = "float32"


class Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text files, or labelled rows for a classifier and pairs.

    weights: how often a window is drawn from each text file. text_column, label_column: of rows;
    found by themselves where there are two columns.
    """

    train: list[str]
    valid: str
    weights: list[float] = []
    text_column: str = ""
    label_column: str = ""


@dataclass(frozen=True)
class Objective(ABC):
    """What a training lowers, and what it is measured by. metric: the figure that counts."""

    recipe: Recipe
    metric: ClassVar[str]

    @property
    @abstractmethod
    def steps_per_epoch(self) -> float:
        """Steps of one pass over the training data."""

    @abstractmethod
    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        """The loss of one step's batch after a share of the training, and its value for the log."""

    @abstractmethod
    def measure(self, model: Network, everything: bool) -> Figures:
        """Figures on all held-out data, or on its beginning."""


# --- batches --------------------------------------------------------------------------------------


def step_generator(seed: int, step: int, stream: int = WINDOWS) -> torch.Generator:
    """The random numbers of one step for one purpose."""
    return torch.Generator().manual_seed((seed * 1_000_003 + step) + stream * 1_000_000_007)


def row_batches(lengths: Sequence[int], batch: int, seed: int, epoch: int) -> list[list[int]]:
    """The rows of each batch of an epoch: every row once, in batches of similar length.

    Rows are shuffled, then sorted by length within pools of 50 batches, so that little is padding;
    the batches are shuffled again, so that no length comes first.
    """
    generator = step_generator(seed, epoch, ORDER)
    order = torch.randperm(len(lengths), generator=generator).tolist()
    batches = []
    for start in range(0, len(order), POOL * batch):
        pool = sorted(order[start : start + POOL * batch], key=lengths.__getitem__)
        batches += [pool[at : at + batch] for at in range(0, len(pool), batch)]
    return [batches[at] for at in torch.randperm(len(batches), generator=generator).tolist()]


def pad_texts(texts: list[Tensor], pad: int) -> tuple[Tensor, Tensor]:
    """ids (B, n) and which of them are real, bool (B, n)"""
    lengths = torch.tensor([len(text) for text in texts])
    ids = pad_sequence(texts, batch_first=True, padding_value=pad).long()
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


def autocast(recipe: Recipe) -> torch.autocast:
    """Half-precision matrix products, where the recipe wants them."""
    kind = torch.device(recipe.device).type
    return torch.autocast(kind, torch.bfloat16, enabled=recipe.autocast)


def accuracy_and_loss(metric: str, batches: Iterable[tuple[Tensor, Tensor]]) -> Figures:
    """The share of right guesses and nats per guess, of logits (N, V) and targets (N,)."""
    right, count, nats = 0, 0, 0.0
    for logits, targets in batches:
        right += int((logits.argmax(-1) == targets).sum())
        nats += F.cross_entropy(logits, targets, reduction="sum").item()
        count += len(targets)
    return {metric: right / max(count, 1), "loss": nats / max(count, 1)}


# --- whole texts ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowObjective(Objective):
    """An objective that reads windows of whole texts. weights: how often each text is drawn."""

    texts: list[Tensor]
    weights: list[float]
    valid: Tensor

    @property
    def steps_per_epoch(self) -> float:
        stage = self.recipe.stages[0]
        return sum(map(len, self.texts)) / (stage.length * stage.batch)

    def windows(self, step: int, done: float) -> Tensor:
        """The windows (batch, length + 1) of a step; texts are drawn by weights, else by length."""
        stage = [stage for stage in self.recipe.stages if stage.start <= done][-1]
        generator = step_generator(self.recipe.seed, step)
        odds = torch.tensor(self.weights or [float(len(text)) for text in self.texts])
        rows = []
        for index in torch.multinomial(odds, stage.batch, replacement=True, generator=generator):
            text = self.texts[int(index)]
            start = int(torch.randint(0, len(text) - stage.length, (1,), generator=generator))
            rows.append(text[start : start + stage.length + 1])
        return torch.stack(rows).long()


@dataclass(frozen=True)
class NextToken(WindowObjective):
    """A language model: every token of a window from those before it.

    The loss is in nats per token, in the log in bits; it is measured in bits per byte of UTF-8.
    valid_bytes: bytes of the held-out text after its first token.
    """

    valid_bytes: int
    metric = "bits_per_byte"

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        ids = self.windows(step, done).to(self.recipe.device)
        with autocast(self.recipe):
            logits, auxiliary = model.learn(ids[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
        return loss + auxiliary, loss.item() / math.log(2)

    def measure(self, model: Network, everything: bool) -> Figures:
        text = self.valid if everything else self.valid[: self.recipe.evaluate_bytes]
        bits = bits_per_byte(model, text, self.recipe.evaluate_length)
        return {self.metric: bits / (self.valid_bytes / max(len(self.valid) - 1, 1))}


@torch.inference_mode()
def bits_per_byte(model: Network, text: Tensor, length: int, batch_bytes: int = 8192) -> float:
    """Mean of -log2 p of every byte but the first, in windows side by side.

    text (bytes,) uint8; each window of `length` + 1 bytes shares one byte with the next, so every
    byte of the text but the very first is predicted exactly once, from at most `length` before it.
    Of a tokenizer's ids it is bits per token.
    """
    device = next(model.parameters()).device
    end = max(len(text) - 1, 0) // length * length
    whole = text[: end + 1].unfold(0, length + 1, length) if end else text.new_empty(0, 0)
    bits, count = 0.0, 0
    for windows in (*whole.split(max(1, batch_bytes // length)), text[None, end:]):
        ids = windows.long().to(device)
        if ids[:, 1:].numel():
            logits = model(ids[:, :-1]).float()
            nats = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum")
            bits += nats.item() / math.log(2)
            count += ids[:, 1:].numel()
    return bits / max(count, 1)


@dataclass(frozen=True)
class MaskedTokens(WindowObjective):
    """Masked tokens of a window from all others (Devlin et al. 2019, 3.1).

    The loss is in nats per masked token; the masks that are measured on are always the same.
    specials: ids that are never masked; frame: those of them before and after every window.
    """

    mask_id: int
    vocabulary: int
    specials: tuple[int, ...]
    frame: tuple[tuple[int, ...], tuple[int, ...]]
    metric = "masked_accuracy"

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        generator = step_generator(self.recipe.seed, step, MASKS)
        with autocast(self.recipe):
            logits, targets = self._guesses(model, self.windows(step, done)[:, :-1], generator)
        loss = F.cross_entropy(logits.float(), targets.to(logits.device))
        return loss, loss.item()

    @torch.inference_mode()
    def measure(self, model: Network, everything: bool) -> Figures:
        length = min(self.recipe.evaluate_length, self.recipe.stages[-1].length)
        end = len(self.valid) if everything else max(self.recipe.evaluate_bytes // 4, length)
        windows = self.valid[:end].long()
        windows = windows[: len(windows) // length * length].view(-1, length)
        generator = step_generator(MASK_SEED, 0)
        batches = windows.split(max(1, MEASURED_TOKENS // length))
        guesses = (self._guesses(model, batch, generator) for batch in batches)
        return accuracy_and_loss(self.metric, ((x.float().cpu(), y) for x, y in guesses))

    def _guesses(
        self, model: Network, windows: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Logits (N, V) and targets (N,) of the tokens of windows (B, n) that are masked."""
        sides = (torch.tensor(ids, dtype=torch.long) for ids in self.frame)
        first, last = (side.expand(len(windows), -1) for side in sides)
        ids, targets = mask_tokens(
            torch.cat([first, windows, last], 1), self.mask_id, self.vocabulary, self.specials,
            self.recipe.mask, generator,
        )  # fmt: skip
        masked = targets != IGNORED
        ids, at = ids.to(self.recipe.device), masked.to(self.recipe.device)
        if not getattr(model.config, "transform", False):
            return model(ids)[at], targets[masked]
        # the vocabulary is most of the work: only the masked states go through its matrix
        head = model.get_submodule("head.mlm")
        with head.register_forward_pre_hook(lambda _, x: (x[0][at], *x[1:])):
            return model(ids), targets[masked]


def mask_tokens(
    ids: Tensor, mask_id: int, vocabulary: int, specials: tuple[int, ...], share: float,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Ids (B, n) to read, and targets (B, n), IGNORED where no token is asked for.

    A share of the tokens that are not special, at least one, is asked for: 80 % of them read the
    mask, 10 % a random token, 10 % themselves (Devlin et al. 2019, 3.1).
    """
    dice = torch.rand(ids.shape, generator=generator)
    ordinary = ~torch.isin(ids, torch.tensor(specials, dtype=ids.dtype))
    asked = (dice < share) & ordinary
    if not asked.any():
        asked.view(-1)[torch.where(ordinary, dice, 2.0).argmin()] = True
    how = torch.rand(ids.shape, generator=generator)
    others = torch.randint(0, vocabulary, ids.shape, generator=generator)
    read = torch.where(asked & (how < 0.8), mask_id, ids)
    read = torch.where(asked & (how >= 0.9), others, read)
    return read, ids.masked_fill(~asked, IGNORED)


# --- rows -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RowObjective(Objective):
    """An objective that reads rows, each once an epoch.

    train, valid: the ids of each row's text, and all classes or the ids of each second text.
    pad: the id that texts are padded with.
    """

    train: tuple[Texts, Any]
    valid: tuple[Texts, Any]
    pad: int
    measured_rows: ClassVar[int] = 0  # in a batch that is only measured; 0: as in training

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(len(self.train[0]) / self.recipe.batch)

    @cached_property
    def batches(self) -> Callable[[int], list[list[int]]]:
        """batches(epoch): the training rows of each batch; the latest epoch is cached."""
        recipe = self.recipe
        return lru_cache(1)(partial(row_batches, self.lengths, recipe.batch, recipe.seed))

    @property
    def lengths(self) -> list[int]:
        """What training rows are sorted by."""
        return [len(text) for text in self.train[0]]

    def loss(self, model: Network, step: int, done: float) -> tuple[Tensor, float]:
        epoch, number = divmod(step, self.steps_per_epoch)
        logits, targets = self.guesses(model, self.train, self.batches(epoch)[number], step)
        loss = F.cross_entropy(logits, targets, label_smoothing=self.recipe.label_smoothing)
        return loss, loss.item()

    @torch.inference_mode()
    def measure(self, model: Network, everything: bool) -> Figures:
        texts, size = self.valid[0], self.measured_rows or self.recipe.batch
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        batches = (order[start : start + size] for start in range(0, len(order), size))
        guesses = (self.guesses(model, self.valid, rows) for rows in batches)
        return accuracy_and_loss(self.metric, guesses)

    @abstractmethod
    def guesses(
        self, model: Network, data: tuple[Texts, Any], rows: list[int], step: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """Logits (N, V) and targets (N,) of some rows; step: of a training, None to measure."""


@dataclass(frozen=True)
class Classes(RowObjective):
    """The class of a text, in nats per text.

    unknown: the token that takes the place of dropped ones; specials: ids that are not dropped.
    """

    unknown: int | None
    specials: tuple[int, ...]
    metric = "accuracy"
    measured_rows = 64

    def guesses(
        self, model: Network, data: tuple[Texts, Any], rows: list[int], step: int | None = None
    ) -> tuple[Tensor, Tensor]:
        share, device = self.recipe.token_dropout, self.recipe.device
        ids, real = pad_texts([data[0][row] for row in rows], self.pad)
        if step is not None and share and self.unknown is not None:
            dice = torch.rand(ids.shape, generator=step_generator(self.recipe.seed, step, DROPPED))
            ordinary = ~torch.isin(ids, torch.tensor(self.specials, dtype=ids.dtype))
            ids = ids.masked_fill((dice < share) & ordinary, self.unknown)
        tokens = Tokens(ids.to(device), None if real.all() else real.to(device))
        with autocast(self.recipe):
            logits = model(tokens)
        return logits.float(), data[1][rows].to(logits.device)


class Pairs(RowObjective):
    """Every token of a second text from those before it and the first text, in nats per token
    (Vaswani et al. 2017)."""

    metric = "token_accuracy"

    @property
    def lengths(self) -> list[int]:
        return [len(first) + len(second) for first, second in zip(*self.train, strict=True)]

    def guesses(
        self, model: Network, data: tuple[Texts, Any], rows: list[int], step: int | None = None
    ) -> tuple[Tensor, Tensor]:
        device = self.recipe.device
        (source, source_real), (ids, real) = (
            pad_texts([texts[row] for row in rows], self.pad) for texts in data
        )
        encoded = Tokens(source.to(device), source_real.to(device))
        with autocast(self.recipe):  # a decoder is causal: what pads its text needs no mask
            logits = model(Tokens(ids[:, :-1].to(device), source=encoded))
        real = real[:, 1:].to(device)
        return logits.float()[real], ids[:, 1:].to(device)[real]


# --- heads off, and gates -------------------------------------------------------------------------


class HardConcrete(nn.Module):
    """Gates of heads, often drawn as exactly 0 or 1, and a penalty that closes them.

    Louizos et al. 2018; of heads, Voita et al. 2019. Computed in float64 from log_a (H,), which
    begins nearly open. cost: nats that an open gate costs.
    """

    BETA = 0.33  # temperature of the concrete distribution
    LOW, HIGH = -0.1, 1.1  # it is stretched to these and clipped to 0 and 1

    def __init__(self, heads: int, cost: float) -> None:
        super().__init__()
        self.cost = cost
        self.log_a = nn.Parameter(torch.full((heads,), 2.0))

    def draw(self, u: Tensor) -> Tensor:
        """Gates (B, H) of 0 to 1, by u (B, H) uniform in (0, 1)."""
        noise = u.log() - torch.log1p(-u)
        return self._stretch(torch.sigmoid((noise + self.log_a.double()) / self.BETA))

    def final(self) -> Tensor:
        """Gates (H,) at test time: 0 where log_a <= -ln 11 = -2.398, 1 where it is >= ln 11."""
        return self._stretch(torch.sigmoid(self.log_a.detach().double()))

    def penalty(self) -> Tensor:
        """The cost times the probability that each gate is not 0, sigmoid(log_a + 0.7913)."""
        shift = -self.BETA * math.log(-self.LOW / self.HIGH)
        return self.cost * torch.sigmoid(self.log_a.double() + shift).sum()

    def _stretch(self, s: Tensor) -> Tensor:
        return ((self.HIGH - self.LOW) * s + self.LOW).clamp(0, 1)


@dataclass(frozen=True)
class TrainedHeads:
    """The heads of a model in training: which are off, and gates of the others where they learn."""

    layers: tuple[Layer, ...]
    off: HeadSet = frozenset()
    gates: HardConcrete | None = None

    @cached_property
    def ids(self) -> list[HeadId]:
        """All heads, in order of computation."""
        return [HeadId(layer.index, head) for layer in self.layers for head in layer.heads]

    @cached_property
    def on(self) -> list[HeadId]:
        """The heads that are on, in the order of the gates."""
        return [head for head in self.ids if head not in self.off]

    def loss(
        self, objective: Objective, model: Network, step: int, done: float
    ) -> tuple[Tensor, float]:
        """The loss under gates drawn for every text, and their penalty; without it for the log."""
        gates, recipe = self.gates, objective.recipe
        level_of = {layer.index: layer.level for layer in self.layers if layer.role == "self"}
        levels = [level_of.get(head.layer, len(recipe.level_dropout)) for head in self.on]
        odds = torch.tensor([*recipe.level_dropout, *[0.0] * (len(self.layers) + 1)])

        def draw(texts: int) -> Tensor:
            generator = step_generator(recipe.seed, step, GATES)
            if gates is None:  # one number for all heads of a level
                u = torch.rand((texts, len(odds)), generator=generator, dtype=torch.float64)
                return (u >= odds).double()[:, levels]
            shape = (texts, len(self.on))
            u = torch.rand(shape, generator=generator, dtype=torch.float64)
            return gates.draw(u.clamp(min=torch.finfo(u.dtype).tiny))  # 0 has no logarithm

        with self.apply(model, draw if gates is not None or any(recipe.level_dropout) else None):
            loss, value = objective.loss(model, step, done)
        return loss if gates is None else gates.penalty().to(loss) + loss, value

    def measure(self, objective: Objective, model: Network, everything: bool) -> Figures:
        """Figures with gates as at test time, and how many heads they leave open."""
        final = None if self.gates is None else self.gates.final()
        gates = None if final is None else lambda texts: final.expand(texts, -1)
        with self.apply(model, gates):
            figures = objective.measure(model, everything)
        return figures if final is None else {**figures, "heads": float((final > 0).sum())}

    @contextmanager
    def apply(self, model: Network, gates: Callable[[int], Tensor] | None = None) -> Iterator[None]:
        """Have every pass of the model run with heads off and, of B texts, with gates(B) (B, H)."""
        on = torch.tensor([head not in self.off for head in self.ids])

        def add_run(_: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
            by_layer = {}
            if gates is not None:
                ids: Any = args[0].ids if isinstance(args[0], Tokens) else args[0]
                drawn = gates(len(ids))
                values = drawn.new_ones(len(drawn), len(on))
                values = values.index_copy(1, on.nonzero()[:, 0], drawn)
                values = values.to(next(model.parameters()))
                parts = values.split([len(layer.heads) for layer in self.layers], 1)
                by_layer = {layer.index: x for layer, x in zip(self.layers, parts, strict=True)}
            return args, {**options, "run": Run(self.off, gates=by_layer)}

        with model.register_forward_pre_hook(add_run, with_kwargs=True):
            yield

    def factors(self) -> dict[HeadId, float]:
        """What heads are multiplied by at test time: those that are off, and those with gates."""
        gates = [] if self.gates is None else self.gates.final().tolist()
        return {**dict.fromkeys(self.off, 0.0), **dict(zip(self.on, gates, strict=False))}

    def roles(self) -> dict[str, HeadSet]:
        """The heads whose gates are open and closed, where gates are learned."""
        if self.gates is None:
            return {}
        closed = frozenset(head for head, gate in self.factors().items() if gate == 0) - self.off
        return {"open": frozenset(self.on) - closed, "closed": closed}


# --- data -----------------------------------------------------------------------------------------


def read_data(data: Data, goal: str) -> list[Any]:
    """The training and the held-out data: two LabelledTexts where classes or pairs are learned (of
    pairs the labels are second texts), else bytes of each file, the last held out.

    Raises HgvizError for what cannot be read, and where there is one class only.
    """
    paths = (*data.train, data.valid)
    if goal not in ("classes", "pairs"):
        return [_read_bytes(path, data.text_column) for path in paths]
    columns = data.text_column, data.label_column
    if goal == "pairs":  # the first two columns, unless they are named
        columns = columns[0] or "0", columns[1] or "1"
    *parts, valid = (read_rows(path, *columns) for path in paths)
    train = LabelledTexts(
        " and ".join(part.name for part in parts),
        tuple(chain.from_iterable(part.texts for part in parts)),
        tuple(chain.from_iterable(part.labels for part in parts)),
        tuple(chain.from_iterable(part.lines for part in parts)),
        parts[0].label_column,
    )  # fmt: skip
    if goal == "classes":
        what = f"{train.name} has only one class: all rows have {quote_name(train.classes[0])}"
        do = "Choose another label column, or add rows of another class"
        require(len(train.classes) > 1, what, do)
    return [train, valid]


def _read_bytes(path: str, text_column: str) -> bytes:
    """A file as one text; of a table its texts, a line each."""
    if is_table(path):
        return "\n".join(read_texts(path, text_column)).encode()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise file_error(f"cannot read {path}", error) from error


def make_objective(
    recipe: Recipe, data: Data, goal: str, contents: list[Any], config: Configuration,
    tokenizer: Bytes | Pieces, pad: int | None,
) -> Objective:  # fmt: skip
    """What a model of this configuration learns from what read_data gave. Raises HgvizError."""
    weights = data.weights
    limits = [limit for limit in (recipe.length, config.max_positions) if limit]
    longest = min(limits, default=None)

    def encode(texts: Sequence[str], start: Sequence[int] = ()) -> Texts:
        rows = tokenizer.encode_rows(texts, longest)
        return tuple(torch.tensor([*start, *row][:longest], dtype=torch.int32) for row in rows)

    if goal == "pairs":
        token = getattr(config, "data", {}).get("decoder_start_token_id")
        start = [token] if isinstance(token, int) else []
        sides = [(encode(rows.texts), encode(rows.labels, start)) for rows in contents]
        for rows, (_, targets) in zip(contents, sides, strict=True):
            short = [line for line, ids in zip(rows.lines, targets, strict=True) if len(ids) < 2]
            require(
                not short,
                f"{rows.name}, line {(*short, 0)[0]:,}: the second text is too short: "
                "it needs a token after the first",
                "Use a tokenizer that adds special tokens at both ends",
            )
        return Pairs(recipe, sides[0], sides[1], pad or 0)
    if goal == "classes":
        labels, unknown = getattr(config, "labels", ()), tokenizer.id_of(UNKNOWN)
        train, valid = (
            (encode(rows.texts), torch.tensor(rows.class_indices(labels))) for rows in contents
        )
        return Classes(recipe, train, valid, pad or 0, unknown, tokenizer.specials)
    require(
        goal != "states" and not getattr(config, "two_texts", False),
        "this model cannot be trained alone: "
        "it needs the states of an encoder, or makes no predictions",
        'Choose form = "encoder-decoder", or the goal next, masked or classes',
    )
    frame = tokenizer.frame() if goal == "masked" else ((), ())
    if config.max_positions is not None:
        most = max(1, config.max_positions - len(frame[0]) - len(frame[1]))
        stages = [structs.replace(x, length=min(x.length, most)) for x in recipe.stages]
        length = min(recipe.evaluate_length, most)
        recipe = structs.replace(recipe, stages=tuple(stages), evaluate_length=length)
    window = max(stage.length for stage in recipe.stages)
    unit = f"{tokenizer.unit}s"
    streams = []
    for text, path in zip(contents, (*data.train, data.valid), strict=True):
        ids, size = tokenizer.encode_stream(text, Path(path)) if text else (np.empty(0), 0)
        require(
            len(ids) > window + 1,
            f"{path} is too short to train on: "
            f"it has {len(ids):,} {unit}, and the longest window is {window:,}",
            "Use a longer text or a shorter window",
        )
        streams.append(torch.from_numpy(ids))
    if goal != "masked":
        return NextToken(recipe, streams[:-1], weights, streams[-1], size)
    mask = tokenizer.id_of(MASK)
    if mask is None:
        raise HgvizError(
            f"a masked language model needs a tokenizer with {MASK}: bytes have no such token",
            "Add the table [tokenizer]",
        )
    return MaskedTokens(
        recipe, streams[:-1], weights, streams[-1], mask, tokenizer.size, tokenizer.specials, frame
    )
