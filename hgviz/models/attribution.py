"""Where an answer comes from, how far a model reaches, and what that costs.

Integrated gradients of tokens and layers (Sundararajan et al. 2017) and the conductance of heads
(Dhamdhere et al. 2018); the gradients of an answer by single scores and weights; the gradient of
every output by every token; and the work of mixing positions, counted from a configuration.

Shapes: B points of a path or copies of a text, n tokens, m tokens of the source, H heads,
Q queries, K keys, D head width, d model width.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hgviz.activations import ACTIVATIONS
from hgviz.core import HeadId, HeadSet, HgvizError, Layer, Level, Prompt, progress, progress_within
from hgviz.errors import choose, require
from hgviz.examples import IGNORE_INDEX
from hgviz.models.attention import HeadGroup, head_groups
from hgviz.models.baselines import LSTMConfig, WindowConfig
from hgviz.models.layers import (
    Attention,
    Configuration,
    Network,
    Tokens,
    attention_layers,
    output_projections,
    repeat_batch,
    require_attention,
)
from hgviz.models.model import Model
from hgviz.models.run import Observer, Run
from hgviz.models.trials import GateGradientRecorder

Array = NDArray[Any]
Doubles = NDArray[np.float64]
Quantity = Callable[[Tensor], Tensor]  # logits (B, ...) -> (B,)

BASELINES = ("mean", "blank", "zero")
BLANKS = ("[MASK]", "<mask>", "[PAD]", "<pad>", " ")  # the first that the tokenizer has
STEPS = (64, 128, 256, 512, 1024, 2048, 4096)  # points of a path, as many as it takes
COMPLETE = 1e-3  # share of the change of an answer that may be missing
POINTS_TOKENS = 2048  # of all points of a path that go through the layers together
MAX_REACH = 1024  # tokens: each is an output to follow back
REACH_NUMBERS = 1 << 25  # held at once, about: a quarter of a GB in float64
LAYER_NUMBERS = 24  # that a layer holds of every element it returns, about
REACH_SEED = 1
LSTM_PRODUCTS = 8  # of width x width for a token: four gates, of input and state each


# --- embeddings that gradients are taken by -------------------------------------------------------


def embeddings_of(module: Network, tokens: Tokens) -> tuple[Tensor, ...]:
    """The token embeddings (1, n, d) of a text and then of its source, before positions; of an
    encoder's states, the states."""
    with torch.no_grad():
        texts = [text for text in (tokens, tokens.source) if text is not None]
        return tuple(module.token_embedding(x.ids) if x.states is None else x.states for x in texts)


def with_embeddings(tokens: Tokens, embeddings: Sequence[Tensor]) -> Tokens:
    """Copies of a text that start from embeddings (B, n, d), and its source from others."""
    text, *rest = embeddings
    copies = tokens.map(partial(repeat_batch, times=len(text)))
    source = None if tokens.source is None else with_embeddings(tokens.source, rest)
    if tokens.states is not None:
        return replace(copies, states=text, source=source)
    return replace(copies, embedded=text, source=source)


# --- integrated gradients -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AnswerLogit:
    """One logit that a model answers with: of a class, or of a token at a position."""

    number: int
    position: int | None = None

    def __call__(self, logits: Tensor) -> Tensor:
        """(B, classes) or (B, n, vocabulary) -> (B,)"""
        position = () if self.position is None else (self.position,)
        return logits[(slice(None), *position, self.number)]

    def require_in(self, model: Model, length: int) -> None:
        """Raise HgvizError where a model gives no such logit for a text of this length."""
        spec = model.spec
        require(
            spec.goal != "states",
            "this model outputs hidden states, not predictions: attribution needs one number",
            "Open the model with its classifier or language model head",
        )
        count, noun = (
            (len(spec.labels), "class") if spec.goal == "classes" else (spec.vocabulary, "token")
        )
        require(
            spec.goal == "classes" or (self.position is not None and 0 <= self.position < length),
            f"there is no position {self.position}: the text has tokens 0 to {length - 1:,}",
            "Choose one of these",
        )
        require(
            0 <= self.number < count,
            f"there is no {noun} {self.number}: the last one is {count - 1:,}",
        )


@dataclass(frozen=True, slots=True)
class PathAttribution:
    """Attributions along one path. value, baseline: the answer at its end and at its beginning.

    tokens (n,): integrated gradients of the text that the answer is about, summed over widths;
    source (m,): of the text that its decoder reads beside it. heads (heads,): conductance, in order
    of computation, summed over positions and widths. steps: points of the path.
    """

    value: float
    baseline: float
    tokens: Doubles
    source: Doubles | None
    heads: Doubles
    steps: int

    @property
    def error(self) -> float:
        """How much of the change of the answer the tokens do not add up to (the axiom of
        completeness), as a share of it; 0 where there is none."""
        total = self.tokens.sum() + (0.0 if self.source is None else self.source.sum())
        return _share(float(total), self.value - self.baseline, self.value - self.baseline)


class AttributionPath:
    """The straight path from token embeddings without information to those of a text, positions and
    segments as they are.

    baseline: "mean", the average token at every place; "blank", a mask, padding or a space, special
    tokens as they are; "zero". Raises HgvizError for a model without answers, an answer or a
    baseline that is not there.
    """

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        answer: AnswerLogit,
        target: Prompt | None = None,
        baseline: str = "mean",
        off: HeadSet = frozenset(),
    ) -> None:
        self._length = len(prompt if target is None else target)
        answer.require_in(model, self._length)
        choose(baseline, BASELINES, "baseline")
        self.answer, self._run, self._module = answer, Run(off), model.module
        prompt = _read_by(model, prompt, target, answer)
        self._tokens = model.tokens(model.add_boundaries(prompt, off), target)
        self.ends = embeddings_of(model.module, self._tokens)
        texts = (prompt if target is None else target, prompt)
        self.starts = tuple(
            _baseline(model, end, text, baseline)
            for end, text in zip(self.ends, texts, strict=False)
        )
        self.layers = [part for part in output_projections(model.module) if part.layer.heads]
        known = {part.layer.index for part in self.layers}
        for layer in attention_layers(model.module):
            require(
                not layer.heads or layer.index in known,
                f"layer {layer.index} of this model cannot be attributed: "
                "hgviz did not find the output projection of its heads",
                "Choose another model",
            )
        self._points = max(1, POINTS_TOKENS // max(1, sum(end.shape[1] for end in self.ends)))

    def answers(self, *embeddings: Tensor) -> Tensor:
        """The answer (B,) at points of the path: embeddings (B, n, d) of the text, and of its
        source where there is one."""
        return self.answer(self._module(with_embeddings(self._tokens, embeddings), self._run))

    def integrate_until_complete(self) -> PathAttribution:
        """Integrate with the fewest of STEPS whose error is below COMPLETE, or with the most."""
        for number, steps in enumerate(STEPS):
            with progress_within(number, number + 1, len(STEPS)):
                found = self.integrate(steps)
            if found.error < COMPLETE:
                break
        return found

    def integrate(self, steps: int) -> PathAttribution:
        """Integrated gradients of tokens and conductance of heads, by Gauss-Legendre quadrature.

        One pass serves both, some points at a time: IntegratedGradients of captum with n steps and
        its LayerConductance with n - 1. Raises HgvizError for fewer than 2 steps.
        """
        from scipy.special import roots_legendre

        _require_steps(steps)
        points, weights = roots_legendre(steps)
        points, weights = (points + 1) / 2, weights / 2
        sums = [torch.zeros_like(end, dtype=torch.float64) for end in self.ends]
        heads = [torch.zeros(len(part.layer.heads), dtype=torch.float64) for part in self.layers]
        last: list[tuple[Tensor, Tensor]] = []
        for first in range(0, steps, self._points):
            part = slice(first, first + self._points)
            slopes, contexts = self._gradients_at(points[part].tolist())
            for total, slope in zip(sums, slopes[: len(sums)], strict=True):
                sizes = torch.tensor(weights[part], dtype=torch.float64, device=slope.device)
                total += torch.einsum("b,bnd->nd", sizes, slope.double())
            pairs = list(zip(slopes[len(sums) :], contexts, strict=True))
            if last:  # the step from the last point of the part before
                joined = zip(last, pairs, strict=True)
                pairs = [(torch.cat([s, t]), torch.cat([c, e])) for (s, c), (t, e) in joined]
            for total, layer, (slope, context) in zip(heads, self.layers, pairs, strict=True):
                steps_along = (slope[:-1] * context.diff(dim=0)).double()
                total += steps_along.unflatten(-1, (-1, layer.d_head)).sum((0, 1, 3)).cpu()
            last = [(slope[-1:], context[-1:]) for slope, context in pairs]
            progress(min(first + self._points, steps), steps, "integrating from the baseline")
        with torch.no_grad():
            value, baseline = (float(self.answers(*at)[0]) for at in (self.ends, self.starts))
        tokens, *source = (
            ((end - start).double() * total).sum((0, 2)).cpu().numpy()
            for end, start, total in zip(self.ends, self.starts, sums, strict=True)
        )
        later = self._length - len(tokens)  # tokens that the answer does not depend on
        return PathAttribution(
            value, baseline, np.pad(tokens, (0, later)), source[0] if source else None,
            torch.cat([*heads, torch.zeros(0, dtype=torch.float64)]).numpy(), steps,
        )  # fmt: skip

    def integrate_layers(self, steps: int = 0) -> Doubles:
        """(layers,) Integrated gradients of what each layer with heads adds, by captum's
        LayerIntegratedGradients: from what it adds at the baseline to what it adds in the text,
        all else as in the text.

        steps: 0 for the fewest of STEPS with which what is missing of a layer's part is below
        COMPLETE of the change of the answer. Raises HgvizError for a single step.
        """
        from captum.attr import LayerIntegratedGradients

        choices = (steps,) if steps else STEPS
        _require_steps(choices[0])
        sums = np.zeros(len(self.layers))
        with torch.no_grad():
            value, baseline = (float(self.answers(*at)[0]) for at in (self.ends, self.starts))
        for at, layer in enumerate(self.layers):
            module = layer if isinstance(layer, Attention) else layer.o
            method = LayerIntegratedGradients(self.answers, module)
            change = value - self._answer_without(module) if len(choices) > 1 else 0.0
            for count in choices:
                attributions = method.attribute(
                    self.ends, self.starts, n_steps=count, internal_batch_size=self._points
                )
                sums[at] = float(attributions.double().sum())
                if _share(sums[at], change, value - baseline) < COMPLETE:
                    break
            progress(at + 1, len(self.layers), f"integrating layer {layer.layer.index}")
        return sums

    def _answer_without(self, module: nn.Module) -> float:
        """The answer of the text where a module returns what it returns at the baseline."""
        outputs: list[Any] = []

        def record(_: nn.Module, values: Any, output: Any) -> None:
            outputs.append(output)

        def replace_output(_: nn.Module, values: Any, output: Any) -> Any:
            return outputs.pop(0)

        for hook, ends in ((record, self.starts), (replace_output, self.ends)):
            with module.register_forward_hook(hook), torch.no_grad():
                answer = float(self.answers(*ends)[0])
        return answer

    def _gradients_at(self, points: Sequence[float]) -> tuple[Sequence[Tensor], list[Tensor]]:
        """At some points: gradients of the answer by embeddings and then by the contexts
        (B, n, H * D) of each layer; and these contexts."""
        embeddings = [
            torch.cat([start + point * (end - start) for point in points]).requires_grad_()
            for end, start in zip(self.ends, self.starts, strict=True)
        ]
        inputs: dict[nn.Module, list[Tensor]] = {layer.o: [] for layer in self.layers}

        def record(projection: nn.Module, values: tuple[Tensor, ...]) -> None:
            inputs[projection].append(values[0])

        with ExitStack() as hooks, torch.enable_grad():
            for projection in inputs:
                hooks.enter_context(projection.register_forward_pre_hook(record))
            answers = self.answers(*embeddings)
        contexts = [inputs[layer.o].pop(0) for layer in self.layers]  # layers may share a product
        # a model that finds its segments by a network of its own reads them without gradients
        sources = [*embeddings, *contexts]
        followed = [source for source in sources if source.requires_grad]
        gradients = iter(
            torch.autograd.grad(answers.sum(), followed, allow_unused=True, materialize_grads=True)
        )
        slopes = [
            next(gradients) if source.requires_grad else torch.zeros_like(source)
            for source in sources
        ]
        return slopes, [context.detach() for context in contexts]


def _share(total: float, change: float, of: float) -> float:
    """|total - change| / |of|; 0 where nothing is missing."""
    missing = abs(total - change)
    return missing / abs(of) if of else math.inf if missing else 0.0


def _require_steps(steps: int) -> None:
    require(steps >= 2, f"{steps} steps are too few to integrate", "Use 2 or more")


def _read_by(model: Model, prompt: Prompt, target: Prompt | None, answer: AnswerLogit) -> Prompt:
    """The text as far as the answer depends on it: in a causal model, not on what comes later."""
    causal = all(layer.causal for layer in model.spec.layers) and model.spec.goal == "next"
    if answer.position is None or target is not None or not causal:
        return prompt
    return prompt.first(answer.position + 1)


def _baseline(model: Model, end: Tensor, text: Prompt, baseline: str) -> Tensor:
    """The embeddings (1, n, d) that a path begins with."""
    if baseline == "zero" or text.states is not None:
        return torch.zeros_like(end)
    table = model.module.token_embedding.weight.detach()
    number = _blank(model) if baseline == "blank" else None
    if number is None:
        return table.mean(0).expand_as(end).clone()
    start = table[number].expand_as(end).clone()
    special = torch.as_tensor(text.spans[: end.shape[1], 0] < 0, device=end.device)
    start[:, special] = end[:, special]
    return start


def _blank(model: Model) -> int | None:
    """The token of a tokenizer that says least."""
    for name in BLANKS:
        with suppress(HgvizError):
            prompt = model.tokenizer.encode(name)
            if name in prompt.pieces:
                return int(prompt.ids[prompt.pieces.index(name)])
    return None


# --- gradients of scores and weights --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Slopes:
    """Gradients by some rows of heads of a layer; all arrays (h, rows, K), 0 where not seen.

    heads: their numbers. scores: scaled, before mask, norm and activation; for linear attention
    phi(q) . phi(k). at_weights: dL/dA, at_scores: dL/dS. seen (rows, K): the cells that exist.
    """

    heads: tuple[int, ...]
    rows: range
    scores: Array
    weights: Array
    at_scores: Array
    at_weights: Array
    seen: NDArray[np.bool_]


def log_odds(wanted: Any) -> Quantity:
    """ln p / (1 - p) of a class, or summed of tokens (n,), -100 for none: of a batch of one.

    Its gradients do not vanish where the model is sure, as those of the loss do, which are 1 - p
    times these. Raises HgvizError where the model gives no such answers.
    """

    def quantity(logits: Tensor) -> Tensor:
        flat = logits.flatten(0, -2)  # (places, answers)
        labels = torch.as_tensor(np.atleast_1d(np.asarray(wanted, np.int64)), device=flat.device)
        require(
            len(flat) == len(labels),
            f"there are {len(labels):,} labels, but the model makes {len(flat):,} predictions",
            "Give one label for each",
        )
        noun, count = "class" if len(flat) == 1 else "token", flat.shape[-1]
        require(
            IGNORE_INDEX <= int(labels.max()) < count,
            f"there is no {noun} {int(labels.max())}: the last one is {count - 1:,}",
        )
        flat, labels = flat[labels != IGNORE_INDEX], labels[labels != IGNORE_INDEX][:, None]
        others = flat.scatter(1, labels, -torch.inf)
        return (flat.gather(1, labels)[:, 0] - others.logsumexp(1)).sum()

    return quantity


class ScoreGradients:
    """Gradients of a quantity by the scores and weights of every head: one pass and its way back.

    The pass gives dL/dc of each context c = A V. Of single cells, a few rows at a time and without
    a whole map, dL/dA = dL/dc V^T, and dL/dS follows through mask, norm and activation, which keep
    rows apart. Heads that are off have gradients of 0. value: the quantity.
    """

    def __init__(
        self, module: Network, tokens: Tokens, quantity: Quantity, off: HeadSet = frozenset()
    ) -> None:
        recorder = GateGradientRecorder()
        with torch.enable_grad():
            value = quantity(module(tokens, Run(off, observers=(recorder,)))).sum()
            contexts = list(recorder.contexts.values())  # (1, H, Q, D)
            slopes = torch.autograd.grad(
                value, contexts, allow_unused=True, materialize_grads=True
            ) if contexts else ()  # fmt: skip
        self.value = float(value.detach())
        self._calls = recorder.calls
        self._heads = {layer.index: layer.heads for layer in attention_layers(module)}
        self._slopes = dict(zip(recorder.contexts, slopes, strict=True))

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of the layers that have scores, in order of computation."""
        return tuple(sorted(self._calls))

    def shape(self, layer: int) -> tuple[int, int, int]:
        """Heads, queries and keys of a layer."""
        call = self._calls[layer]
        return call.q.shape[1], call.q.shape[2], call.k.shape[2]

    def rows(self, layer: int, rows: range) -> Slopes:
        """Some rows of all heads of a layer, in its order.

        Raises HgvizError for rows that are not there.
        """
        self._require_rows(layer, rows)
        groups = list(self._groups(layer))
        parts = [self._rows_of(layer, group, rows) for group in groups]
        order = np.argsort([place for group in groups for place in group.heads])
        scores, weights, at_scores, at_weights = (
            np.concatenate([getattr(part, name) for part in parts])[order]
            for name in ("scores", "weights", "at_scores", "at_weights")
        )
        heads = self._heads[layer]
        return Slopes(heads, rows, scores, weights, at_scores, at_weights, parts[0].seen)

    def head(self, head: HeadId, rows: range | None = None) -> Slopes:
        """Some rows of one head, or all. Raises HgvizError for a head or rows that are not there,
        and for a layer without scores."""
        require(
            head.layer in self._calls or head.layer not in self._slopes,
            f"there are no gradients for head {head}: "
            "the model adds values to its scores that are not a mask",
            "Choose a head of another layer",
        )
        heads = self._heads[head.layer] if head.layer in self._calls else ()
        if head.head not in heads:
            raise HgvizError(f"this model has no head {head}", "Run `hgviz info` on it")
        rows = range(self.shape(head.layer)[1]) if rows is None else rows
        self._require_rows(head.layer, rows)
        place = heads.index(head.head)
        group = next(group for group in self._groups(head.layer) if place in group.heads)
        alone = next(single for single in group.single_heads() if single.heads == (place,))
        return self._rows_of(head.layer, alone, rows)

    def _require_rows(self, layer: int, rows: range) -> None:
        queries = self.shape(layer)[1]
        if rows.step != 1 or rows.start < 0 or not rows.start < rows.stop <= queries:
            raise HgvizError(f"rows {rows.start}:{rows.stop} do not exist: there are 0:{queries}")

    def _groups(self, layer: int) -> Iterator[HeadGroup]:
        call = self._calls[layer]
        return head_groups(call.q.detach(), call.k.detach(), call.rule, call.relative)

    def _rows_of(self, layer: int, group: HeadGroup, rows: range) -> Slopes:
        call, slope = self._calls[layer], self._slopes[layer]
        at = torch.arange(rows.start, rows.stop, device=slope.device)
        with torch.no_grad():
            scores, seen = group.scores(at, call.keep)
            empty = ~seen.any(-1, keepdim=True)
            values = group.values(call.v.detach()).transpose(-1, -2)
            at_weights = torch.where(seen, group.of_layer(slope)[..., at, :] @ values, 0.0)
        with torch.enable_grad():
            leaf = scores.detach().clone().requires_grad_()
            weights = group.weigh(leaf, seen)
            (at_scores,) = torch.autograd.grad(weights, leaf, at_weights)
        at_scores = torch.where(seen & ~empty, at_scores, 0.0)
        heads = tuple(self._heads[layer][place] for place in group.heads)
        arrays = torch.where(seen, scores, 0.0), weights, at_scores, at_weights, seen[:, 0]
        return Slopes(heads, rows, *(_numpy(array[0]) for array in arrays))


# --- reach ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ReachMatrices:
    """own (n, n) and source (n, m): the length of the gradient of each output by each token; of:
    "logits" or "states"."""

    own: Doubles
    source: Doubles | None
    of: str


class _LastStates(Observer):
    """Records what the last block with a layer of attention returns, (B, n, d)."""

    states: Tensor

    def on_block(self, index: int, x: Any, output: Any) -> None:
        self.states = output[0] if isinstance(output, tuple) else output


def measure_reach(model: Model, prompt: Prompt, target: Prompt | None = None) -> ReachMatrices:
    """R[i, j] = |d (v . y_i) / d e_j|: y_i the logits at i, or the last states of a model that
    gives no logits of tokens; e_j the embedding of token j; v a normal vector, the same for all.

    On the mean over v its square is the sum of squares of all gradients of y_i's elements. Some
    outputs at a time, each in its own copy of the text, so that memory does not grow with the
    square of the text. Raises HgvizError as Model.trace, and for more than 1,024 tokens.
    """
    tokens = model.tokens(prompt, target)
    require(
        model.spec.form != "base",
        "reach needs one output per token: this model ends with positions of several tokens",
        "Choose a model that upsamples to all tokens, such as a Funnel with its decoder",
    )
    length = len(prompt if target is None else target)
    longest = max(length, len(prompt))
    require(
        longest <= MAX_REACH,
        f"the text has {longest:,} tokens: reach computes one backward pass per output and is "
        f"limited to {MAX_REACH:,}",
        "Use a shorter text, or --tokens",
    )
    spec = model.spec
    depth = len(spec.layers) or getattr(model.config, "n_layers", 1)
    numbers = longest * (LAYER_NUMBERS * depth * spec.width + spec.vocabulary)
    copies = int(min(max(1, REACH_NUMBERS // (numbers + len(spec.heads) * longest**2)), length))
    parts = []
    for start in range(0, length, copies):
        progress(start, length, f"output {start:,} of {length:,}")
        rows = torch.arange(start, min(start + copies, length), device=model.device)
        parts.append(_reach_rows(model, tokens, rows))
    own, *source = (torch.cat(matrix).double().cpu().numpy() for matrix in zip(*parts, strict=True))
    of = "states" if spec.goal == "classes" else "logits"
    return ReachMatrices(own, source[0] if source else None, of)


def _reach_rows(model: Model, tokens: Tokens, rows: Tensor) -> list[Tensor]:
    """Some rows (B, n) of the reach, and (B, m) by the source."""
    with torch.inference_mode(False), torch.enable_grad():
        leaves = [
            x.detach().expand(len(rows), -1, -1).clone().requires_grad_()
            for x in embeddings_of(model.module, tokens)
        ]
        last = _LastStates()
        outputs = model.module(with_embeddings(tokens, leaves), Run(observers=(last,)))
        if model.spec.goal == "classes":  # answers once for a whole text: states are of tokens
            outputs = last.states
        elif model.spec.goal == "ends":
            outputs = outputs.transpose(1, 2)  # (B, 2, n): two of each token
        chosen = outputs[torch.arange(len(rows), device=rows.device), rows]  # (B, V)
        generator = torch.Generator().manual_seed(REACH_SEED)
        v = torch.randn(chosen.shape[-1], generator=generator, dtype=torch.float64).to(chosen)
        slopes = torch.autograd.grad((chosen @ v).sum(), leaves)
    return [torch.linalg.vector_norm(slope, dim=-1) for slope in slopes]


# --- the cost of mixing positions -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MixingCost:
    """Layers that mix n positions in the same way, and what that costs.

    way, at: how, and at which resolution. layers: how many follow each other. path: over how many
    steps the first token comes to the last by such layers alone, steps of an LSTM's state else
    layers; sequential: how many operations of one layer wait for each other. order: how the work of
    a layer grows, as people write it; work: multiply-adds of all these layers; lag: how many of the
    newest tokens are not in yet. Both are None where the number of positions depends on the text.
    """

    way: str
    at: str
    layers: int
    path: int
    sequential: int
    order: str
    work: int | None
    lag: int | None = 0


def mixing_costs(config: Configuration, tokens: int, source: int = 0) -> tuple[MixingCost, ...]:
    """What it costs a model to bring the tokens of a text together, in order of computation.

    Counts the multiply-adds with which positions are mixed. Projections and feed-forwards, which
    every position goes through by itself, grow with n alone and are left out; the matrices of an
    LSTM are its mixing. source: the tokens of a second text, else as many.
    """
    apart = max(tokens - 1, 0)
    if isinstance(config, LSTMConfig):
        work = LSTM_PRODUCTS * config.n_layers * tokens * config.d_model**2
        return (MixingCost("LSTM", "1:1", config.n_layers, apart, tokens, "n d²", work),)
    if isinstance(config, WindowConfig):
        work = config.n_layers * tokens * config.window * config.d_model**2
        way, path = f"window of {config.window}", math.ceil(apart / config.radius)
        return (MixingCost(way, "1:1", config.n_layers, path, 1, "n w d²", work),)
    own, merged = require_attention(config), []
    rows = (row for layer in own.layers for row in _layer_costs(own, layer, tokens, source))
    for _, equal in groupby(rows, lambda row: (row.way, row.at, row.order)):
        same = list(equal)
        total = None if same[0].work is None else sum(row.work or 0 for row in same)
        merged.append(replace(same[0], layers=len(same), work=total))
    return tuple(merged)


def _layer_costs(config: Any, layer: Layer, tokens: int, source: int) -> Iterator[MixingCost]:
    """The cost of each way in which heads of a layer mix."""
    queries, keys = sides = config.levels[layer.level], config.levels[layer.key_level]
    two_texts = any(level.sequence == "target" for level in config.levels)
    lengths = {
        "source": source if two_texts and source else tokens,
        "target": tokens,
        "slots": getattr(config, "slots", 0),
    }
    n, m = (math.ceil(lengths[side.sequence] / (side.stride or 1)) for side in sides)
    names = [side.sequence if two_texts else side.label for side in (keys, queries)]
    at = f"{m:,} slots" if keys.sequence == "slots" else " → ".join(dict.fromkeys(names))
    lag = max((side.stride or 1) - 1 if side.shift else 0 for side in sides)
    ways = Counter(
        f"attention within {layer.window}" if layer.window is not None
        else "linear attention" if ACTIVATIONS[name].features else "attention"
        for name in layer.activations
    )  # fmt: skip
    for way, heads in ways.items():
        width = heads * config.d_head
        if way == "linear attention":  # keys times values, and queries times the result
            work, order = (n + m) * width * config.d_head, "n d_head d"
        elif layer.window is not None:
            work, order = 2 * max(n, m) * width, "n d"
        else:
            work, order = 2 * n * m * width, _order(layer, queries, keys)
        known = queries.stride is not None and keys.stride is not None
        yield MixingCost(
            way, at, 1, 1, 1, order, work if known else None, lag if known else None
        )  # fmt: skip


def _order(layer: Layer, queries: Level, keys: Level) -> str:
    """How the work of full attention grows."""
    if layer.role == "cross":
        return "n m d"
    if keys.sequence == "slots":
        return "n r d"
    if queries.stride is None or keys.stride is None:
        return "n s d" if queries.stride != keys.stride else "s² d"
    n, m = ("n" if side.stride == 1 else f"n/{side.stride}" for side in (queries, keys))
    if n != m:
        return f"{n} · {m} d"
    return "n² d" if n == "n" else f"({n})² d"


def _numpy(x: Tensor) -> Any:
    wide = x if x.dtype in (torch.float64, torch.bool) else x.float()
    return wide.detach().cpu().numpy()
