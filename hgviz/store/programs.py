"""Captures from any program: made of tokens, and of queries and keys or weights as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.core import Capture, Layer, Level, Map, ModelSpec, Prompt, readonly
from hgviz.errors import require
from hgviz.maps import DenseMap, Factors, LazyMap, Rule, with_statistics
from hgviz.maps.lazy import add_sinks
from hgviz.maps.rule import proof_rows
from hgviz.store.captures import refuse_existing, save_capture

NAME_LENGTH = 200
DTYPES = ("float16", "float32", "float64")
KEYS = ("q", "k", "weights", "scale", "activation", "norm", "causal", "keep", "name")
NORMS = (None, "l2", "l2-literal")
FROM_SCORES = tuple(name for name in ACTIVATIONS if name != "topk")  # whose choices are its own


def write_capture(
    path: str | Path,
    capture: Capture | None = None,
    force: bool = False,
    *,
    tokens: Sequence[str] = (),
    layers: Sequence[Mapping[str, Any]] = (),
    name: str = "model",
    logits: Any = None,
) -> Path:
    """Write a capture to one file: a complete one, or the arrays of any program (see capture_of).

    Raises HgvizError, also for a capture that is not complete.
    """
    if capture is None:
        refuse_existing(Path(path), force)  # before anything is computed
        capture = capture_of(tokens, layers, name, logits)
    return save_capture(path, capture, force)


def capture_of(
    tokens: Sequence[str],
    layers: Sequence[Mapping[str, Any]],
    name: str = "model",
    logits: Any = None,
) -> Capture:
    """A capture of one text from any program.

    tokens: what each position reads, with its spaces where it has some. layers: one dict each, in
    order of computation, with either "q" (heads, n, d_head) and "k" (heads or fewer, n, d_head),
    the operands of the product after rotation, or "weights" (heads, n, n). Beside q and k: "scale"
    (1 / sqrt(d_head)), "activation" (softmax), "norm" (l2 for ymish, else none), "causal" (False)
    and "keep" (n,), False for padded keys; "name" for either. logits (n, vocabulary) or None.
    Raises HgvizError naming the layer that does not fit.
    """
    count = len(tokens)
    require(count and len(layers), "there is nothing to keep: tokens or layers are empty",
            "Give some")  # fmt: skip
    prompt = _prompt([*map(str, tokens)])
    answers = None if logits is None else _array(logits)
    if answers is not None:
        good = answers.ndim == 2 and len(answers) == count and answers.dtype.kind in "fiu"
        why = f"they are {answers.dtype} {np.shape(answers)}, for {count:,} tokens"
        require(good, f"the logits cannot be kept: {why}", "Give numbers, (tokens, vocabulary)")
    made = [_layer(index, layer, count) for index, layer in enumerate(layers)]
    shapes = [maps.factors.q.shape for _, maps in made if isinstance(maps, LazyMap)]
    spec = ModelSpec(
        family="given", name=_one_line(name), levels=(Level(0),),
        layers=tuple(layer for layer, _ in made),
        width=max((heads * width for heads, _, width in shapes), default=0),
        vocabulary=0 if answers is None else answers.shape[1],
    )  # fmt: skip
    positions = np.arange(count, dtype=np.int64)
    spans = readonly(np.stack([positions, positions + 1], axis=1))
    return Capture(spec, prompt, (spans,), tuple(maps for _, maps in made), logits=answers)


def _one_line(name: Any) -> str:
    return "".join(char if char.isprintable() else " " for char in str(name)[:NAME_LENGTH])


def _prompt(tokens: list[str]) -> Prompt:
    """Tokens one after the other; with a space between where none brings its own."""
    between = "" if any(token != token.strip() for token in tokens) else " "
    ends = np.cumsum([len(token) + len(between) for token in tokens], dtype=np.int64)
    ends -= len(between)
    starts = ends - [len(token) for token in tokens]
    vocabulary = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    ids = np.array([vocabulary[token] for token in tokens], np.int64)
    spans = readonly(np.stack([starts, ends], axis=1))
    return Prompt(between.join(tokens), readonly(ids), tuple(tokens), spans)


def _require(index: int, condition: object, why: str, do: str = "") -> None:
    """Raise HgvizError that names a layer unless a condition holds."""
    require(condition, f"layer {index} cannot be kept: {why}", do)


def _layer(index: int, arrays: Mapping[str, Any], tokens: int) -> tuple[Layer, Map]:
    is_dict = isinstance(arrays, Mapping)
    _require(index, is_dict, f"it is a {type(arrays).__name__}", "Give a dict with q and k")
    unknown = sorted(map(str, arrays.keys() - {*KEYS}))
    _require(index, not unknown, f"it has {unknown[:1]}; what is known is {', '.join(KEYS)}")
    causal = arrays.get("causal", False)
    is_flag = isinstance(causal, bool | np.bool_)
    _require(index, is_flag, "causal is neither True nor False")
    maps: LazyMap | DenseMap
    if "weights" in arrays:
        weights = _heads(index, arrays, "weights")
        fits = weights.shape[1:] == (tokens, tokens)
        _require(index, fits, f"weights are {weights.shape}, for {tokens:,} tokens")
        heads, signed = tuple(range(len(weights))), bool((weights < 0).any())
        maps = DenseMap(weights, heads, signed=signed, causal=bool(causal))
        activations = ("softmax",) * len(heads)
    else:
        factors = _factors(index, arrays, tokens, bool(causal))
        heads, activations = tuple(range(len(factors.q))), factors.rule.activations
        maps = LazyMap(factors, heads)
    name = _one_line(arrays.get("name", f"layer.{index}"))
    return Layer(index, name, "self", 0, 0, heads, activations, bool(causal)), maps


def _factors(index: int, arrays: Mapping[str, Any], tokens: int, causal: bool) -> Factors:
    q, k = _heads(index, arrays, "q"), _heads(index, arrays, "k")
    fits = q.shape[1] == tokens and k.shape[1:] == q.shape[1:] and len(q) % max(1, len(k)) == 0
    _require(index, fits, f"q is {q.shape} and k {k.shape}, for {tokens:,} tokens")
    k = np.repeat(k, len(q) // len(k), axis=0)  # grouped heads share their keys
    activation = str(arrays.get("activation", "softmax"))
    _require(
        index, activation in FROM_SCORES,
        f"{activation!r} is not computed from q and k alone; {', '.join(FROM_SCORES)} are",
        "Give its weights in place of q and k",
    )  # fmt: skip
    norm = arrays.get("norm", ACTIVATIONS[activation].norm)
    _require(index, norm in NORMS, f"there is no norm {norm!r}; there are l2 and l2-literal")
    keep = arrays.get("keep")
    if keep is not None:
        shape = np.shape(keep)
        _require(index, shape == (tokens,), f"keep is {shape}, for {tokens:,} tokens")
    features = ACTIVATIONS[activation].features
    if features is not None:
        q, k = features(q, np), features(k, np)
    scale = _array(arrays.get("scale", q.shape[2] ** -0.5))
    finite = scale.ndim == 0 and scale.dtype.kind in "fiu" and np.isfinite(scale)
    _require(index, finite, "its scale is no finite number")
    longest = [np.linalg.norm(part.astype(np.float64), axis=2).max() for part in (q, k)]
    dtype = np.float64 if q.dtype == np.float64 else np.float32
    with np.errstate(over="ignore"):  # no score is larger than this (Cauchy-Schwarz)
        largest = longest[0] * longest[1] * max(1.0, abs(float(scale)))
    fits = largest < np.finfo(dtype).max
    _require(index, fits, f"products of q and k are too large for {np.dtype(dtype)}")
    rule = Rule(
        scale=float(scale),
        activations=(activation,) * len(q),
        norms=(norm,) * len(q),
        causal=causal,
        keep=None if keep is None else np.asarray(keep, bool),
    )
    rows = proof_rows(tokens, tokens)
    proof = np.stack([_exact_rows(q, k, rule, place, rows) for place in range(len(q))])
    stat = np.zeros(q.shape[:2])
    return with_statistics(Factors(q, k, stat, rule, rows, proof, q.dtype.name))


def _exact_rows(
    q: NDArray[Any], k: NDArray[Any], rule: Rule, place: int, rows: NDArray[Any]
) -> NDArray[np.float32]:
    """The weights (rows, keys) of rows of one head, computed in float64."""
    act, norm = ACTIVATIONS[rule.activations[place]], rule.norms[place]
    keys = k[place].astype(np.float64)
    scores = q[place, rows].astype(np.float64) @ keys.T
    if act.of_keys is not None:
        scores = scores + act.of_keys(keys, np)
    seen = rule.sees(rows, np.arange(k.shape[1]))
    scores = np.where(seen, scores * rule.scale_of(place), 0.0)
    length = np.linalg.norm(scores, axis=1, keepdims=True)
    if norm == "l2":
        scores = scores / (length + NORM_EPSILON)
    elif norm == "l2-literal":
        scores = scores / np.where(length > 0, length, 1.0) + NORM_EPSILON
    if act.statistic == "lse":
        scores, terms = act.split(scores, np)
        top = np.where(seen, terms, -np.inf).max(1, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0.0)
        sums = np.where(seen, np.exp(terms - top), 0.0).sum(1, keepdims=True)
        with np.errstate(divide="ignore"):
            stat = np.where(sums > 0, top + np.log(sums), np.inf)
        stat = add_sinks(stat, rule, place)
    elif act.statistic == "sum":
        stat = (np.where(seen, scores, 0.0) ** act.power).sum(1, keepdims=True)
    else:
        stat = length if norm else np.zeros_like(length)
    return np.where(seen, act.apply(scores, stat, np), 0.0).astype(np.float32)


def _heads(index: int, arrays: Mapping[str, Any], name: str) -> NDArray[Any]:
    """An array (heads, n, n or d_head) of finite floats. Raises HgvizError."""
    _require(index, name in arrays, f"it lacks {name!r}: a layer has q and k, or weights")
    found = _array(arrays[name])
    why = f"{name} is a {type(arrays[name]).__name__} that numpy cannot read"
    _require(index, found.dtype != object, why,
             "Give an array; of a tensor .detach().float().numpy()")  # fmt: skip
    good = found.ndim == 3 and found.dtype.name in DTYPES and found.size
    why = f"{name} is {found.dtype} {found.shape}, not numbers by head and row"
    _require(index, good, why)
    finite = np.isfinite(found).all() and np.abs(found).max() <= np.finfo(np.float32).max
    _require(index, finite, f"{name} holds numbers that are not finite in float32")
    return found


def _array(value: Any) -> NDArray[Any]:
    """A value as an array, of the type object where numpy makes none of it."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return np.array(None)
