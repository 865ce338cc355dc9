"""Where an answer comes from: integrated gradients to tokens and layers, conductance of heads.

The path (Sundararajan et al. 2017) leads from token embeddings that say nothing to those of the
text, positions and segments as they are. One walk along it gives the integrated gradients of the
embeddings and, of the same points, the conductance (Dhamdhere et al. 2018) of what every head
gives: captum's IntegratedGradients with n steps and its LayerConductance with n - 1, taken apart so
that one pass serves both and that it can be stopped between two passes. Shapes: B points of the
path, n tokens, d width, H heads, D head width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from captum._utils.gradient import compute_layer_gradients_and_eval
from captum.attr import LayerIntegratedGradients
from captum.attr._utils.approximation_methods import approximation_parameters
from numpy.typing import NDArray
from torch import Tensor, nn

from hgviz.core import HeadSet, HgvizError, Prompt, progress
from hgviz.errors import choose, require
from hgviz.models.layers import Attention, Network, Tokens
from hgviz.models.measures.variants import ExternalLayer, output_projections, repeat_tokens
from hgviz.models.model import Model
from hgviz.models.run import Run

BASELINES = ("mean", "blank", "zero")
BLANKS = ("[MASK]", "<mask>", "[PAD]", "<pad>", " ")  # what says least, the first that there is
METHOD = "gausslegendre"
MOST_TOKENS = 2048  # of all points of the path that go through the layers side by side

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Answer:
    """One number of what a model gives: the logit of a class, or of a token at a position."""

    number: int
    position: int | None = None

    def of(self, logits: Tensor) -> Tensor:
        """(B, classes) or (B, n, vocabulary) -> (B,)"""
        at = () if self.position is None else (self.position,)
        return logits[(slice(None), *at, self.number)]


@dataclass(frozen=True, slots=True)
class Walked:
    """What one walk found. value, baseline: the answer at the end of the path and at its beginning.

    tokens (n,): integrated gradients of the text that the model speaks about, summed over widths;
    source (m,): of the one that its decoder looks at. heads (heads,): conductance, in order of
    computation, summed over positions and widths.
    """

    value: float
    baseline: float
    tokens: Doubles
    source: Doubles | None
    heads: Doubles


class Path:
    """A text, the text that says nothing, and the answer between them.

    Errors: HgvizError for a model without answers, an answer or a baseline that is not there.
    """

    def __init__(
        self,
        model: Model,
        prompt: Prompt,
        answer: Answer,
        target: Prompt | None = None,
        baseline: str = "mean",
        off: HeadSet = frozenset(),
    ) -> None:
        require_answer(model, answer, len(prompt if target is None else target))
        self.model, self.answer, self.off = model, answer, off
        self._length = len(prompt if target is None else target)
        text, other = _read(model, prompt, target, answer)
        given = model.tokens(model.segmented(text, off), other)  # segments stay along the way
        self.passes = Embedded(model.module, given, answer, off)
        parts = [one for one in (given, given.source) if one is not None]
        texts = [target, prompt] if target is not None else [prompt]
        self.ends = tuple(_embedded(model.module, one) for one in parts)
        self.starts = tuple(
            _saying_nothing(model, end, text, baseline)
            for end, text in zip(self.ends, texts, strict=True)
        )
        self.layers = output_projections(model.module)

    @property
    def most(self) -> int:
        """How many points of the path go through the layers side by side."""
        return max(1, MOST_TOKENS // max(1, sum(end.shape[1] for end in self.ends)))

    def walk(self, steps: int = 128) -> Walked:
        """Integrated gradients of the tokens and conductance of the heads, a few points at a time.

        Errors: HgvizError for fewer than 2 steps.
        """
        _require_steps(steps)
        sizes_of, points_of = approximation_parameters(METHOD)
        sizes, points = sizes_of(steps), points_of(steps)
        sums = [torch.zeros_like(end, dtype=torch.float64) for end in self.ends]
        heads = Conductance(self.layers)
        with torch.no_grad():
            value, start = (float(self.passes(*ends)[0]) for ends in (self.ends, self.starts))
        for first in range(0, steps, self.most):
            part = slice(first, first + self.most)
            slopes, evals = self._at(points[part])
            for total, slope in zip(sums, slopes[: len(sums)], strict=True):
                weights = torch.tensor(sizes[part], dtype=torch.float64, device=slope.device)
                total += torch.einsum("b,bnd->nd", weights, slope.double())
            heads.add(slopes[len(sums) :], evals[len(sums) :])
            progress(min(first + self.most, steps), steps, "Walking from nothing to the text")
        tokens = [
            ((end - begun).double() * total).sum((0, 2)).cpu().numpy()
            for end, begun, total in zip(self.ends, self.starts, sums, strict=True)
        ]
        own = np.pad(tokens[0], (0, self._length - len(tokens[0])))  # what comes after: nothing
        source = tokens[1] if len(tokens) > 1 else None
        return Walked(value, start, own, source, heads.found())

    def each_layer(self, steps: int = 64) -> Doubles:
        """(layers,) Integrated gradients of what each layer with heads attends, by captum: from
        what it gives where the text says nothing to what it gives in the text, all else as in the
        text. It sums to what the answer loses when the one is put in place of the other.
        """
        _require_steps(steps)
        found = np.zeros(len(self.layers))
        for at, layer in enumerate(self.layers):
            whole = layer if isinstance(layer, Attention) else layer.o  # it gives the same
            method = LayerIntegratedGradients(self.passes, whole)
            one = method.attribute(
                self.ends, self.starts, n_steps=steps, method=METHOD, internal_batch_size=self.most
            )
            found[at] = float(one.double().sum())
            progress(at + 1, len(self.layers), f"Walking through layer {layer.layer.index}")
        return found

    def _at(self, points: list[float]) -> tuple[list[Tensor], list[Tensor]]:
        """Slopes and values, at some points, of the embeddings and of what heads give."""
        between = tuple(
            torch.cat([begun + point * (end - begun) for point in points]).requires_grad_()
            for end, begun in zip(self.ends, self.starts, strict=True)
        )
        slopes, evals = compute_layer_gradients_and_eval(
            self.passes,
            [*self.passes.places, *(one.o for one in self.layers)],
            between,
            attribute_to_layer_input=True,
            grad_kwargs={"allow_unused": True, "materialize_grads": True},
        )
        return [one[0] for one in slopes], [one[0].detach() for one in evals]


class Conductance:
    """Sums slope times step of what heads give, over points that come a few at a time."""

    def __init__(self, layers: Sequence[Attention | ExternalLayer]) -> None:
        self._layers = layers
        self._sums = [torch.zeros(len(one.layer.heads), dtype=torch.float64) for one in layers]
        self._last: list[tuple[Tensor, Tensor]] = []

    def add(self, slopes: list[Tensor], values: list[Tensor]) -> None:
        """More points: slopes and values (B, n, H * D) of every layer."""
        last = []
        for at, (layer, slope, value) in enumerate(zip(self._layers, slopes, values, strict=True)):
            if self._last:
                slope, value = (
                    torch.cat([before, now])
                    for before, now in zip(self._last[at], (slope, value), strict=True)
                )
            steps = (slope[:-1] * (value[1:] - value[:-1])).double()
            self._sums[at] += steps.unflatten(-1, (-1, layer.d_head)).sum((0, 1, 3)).cpu()
            last.append((slope[-1:], value[-1:]))
        self._last = last

    def found(self) -> Doubles:
        """(heads,) of all layers."""
        joined: Any = torch.cat(self._sums) if self._sums else torch.zeros(0, dtype=torch.float64)
        return joined.numpy()


class Embedded(nn.Module):
    """A pass that begins with token embeddings, of each text (B, n, d), and ends in an answer (B,).

    places: what every input goes through first, where captum looks at it.
    """

    def __init__(self, module: Network, given: Tokens, answer: Answer, off: HeadSet) -> None:
        super().__init__()
        self.module, self._given, self._answer, self._off = module, given, answer, off
        self.places = nn.ModuleList(
            nn.Identity() for one in (given, given.source) if one is not None
        )

    def forward(self, *embedded: Tensor) -> Tensor:
        """(B,)"""
        first, *others = (place(one) for place, one in zip(self.places, embedded, strict=True))
        tokens = repeat_tokens(self._given, len(first))
        if others and tokens.source is not None:
            name = "embedded" if tokens.source.ids is not None else "states"
            tokens = replace(tokens, source=replace(tokens.source, **{name: others[0]}))
        tokens = replace(tokens, embedded=first)
        return self._answer.of(self.module(tokens, Run(self._off)))


# --- what is given --------------------------------------------------------------------------------


def require_answer(model: Model, answer: Answer, length: int) -> None:
    """Errors: HgvizError for a model without answers, and an answer that is not there."""
    spec = model.spec
    require(
        spec.goal != "states",
        "this model gives hidden states, no answer: "
        "an attribution says where one number comes from",
        "Open the model with its classifier or its language model",
    )
    if spec.goal == "classes":
        count, noun = len(spec.labels), "class"
    else:
        count, noun = spec.vocabulary, "token"
        if answer.position is None or not 0 <= answer.position < length:
            raise HgvizError(
                f"there is no position {answer.position}: the text has {length:,} tokens",
                "Choose one of them, from 0",
            )
    if not 0 <= answer.number < count:
        raise HgvizError(f"there is no {noun} {answer.number}: there are {count:,}, from 0")


def _require_steps(steps: int) -> None:
    if steps < 2:
        raise HgvizError(f"a path of {steps} steps is none", "Take 2 or more")


def _read(
    model: Model, prompt: Prompt, target: Prompt | None, answer: Answer
) -> tuple[Prompt, Prompt | None]:
    """The texts as far as the answer hears of them: what comes later cannot reach it."""
    spec = model.spec
    causal = all(one.causal for one in spec.layers) and spec.goal == "next"
    if answer.position is None or target is not None or not causal:
        return prompt, target
    stop = answer.position + 1
    mask, kinds, places = prompt.attention_mask, prompt.token_type_ids, prompt.position_ids
    cut = replace(
        prompt,
        ids=prompt.ids[:stop],
        pieces=prompt.pieces[:stop],
        spans=prompt.spans[:stop],
        attention_mask=None if mask is None else mask[:stop],
        token_type_ids=None if kinds is None else kinds[:stop],
        position_ids=None if places is None else places[:stop],
        boundaries=None if prompt.boundaries is None else prompt.boundaries[:stop],
    )
    return cut, None


def _embedded(module: Network, given: Tokens) -> Tensor:
    """(1, n, d): the embeddings of a text, or the states that stand for one."""
    if given.states is not None:
        return given.states
    with torch.no_grad():
        found: Tensor = module.table(given.ids)
    return found


def _saying_nothing(model: Model, end: Tensor, text: Prompt, baseline: str) -> Tensor:
    """(1, n, d): where a path begins. mean: the average token at every place; blank: a mask, a
    padding or a space, special tokens as they are, mean where there is none; zero: nothing."""
    choose(baseline, BASELINES, "baseline")
    if baseline == "zero" or text.states is not None:
        return torch.zeros_like(end)
    table = model.module.table.weight.detach()
    number = _blank(model) if baseline == "blank" else None
    if number is None:
        return table.mean(0).expand_as(end).clone()
    found = table[number].expand_as(end).clone()
    special = torch.as_tensor(text.spans[: end.shape[1], 0] < 0, device=end.device)
    found[:, special] = end[:, special]
    return found


def _blank(model: Model) -> int | None:
    for name in BLANKS:
        try:
            named = model.tokenizer.encode(name)
        except HgvizError:
            continue
        for number, piece in zip(named.ids.tolist(), named.pieces, strict=True):
            if piece == name:
                return int(number)
    return None


__all__ = ["BASELINES", "Answer", "Embedded", "Path", "Walked", "require_answer"]
