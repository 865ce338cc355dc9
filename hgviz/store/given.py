"""Captures made of what any program has at hand: tokens, and queries and keys or weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.core import Capture, HgvizError, Layer, Level, Map, ModelSpec, Prompt, readonly
from hgviz.maps import DenseMap, Factors, LazyMap, Rule, with_statistics
from hgviz.maps.lazy import add_sinks
from hgviz.maps.rule import proof_rows

LONGEST_NAME = 200
DTYPES = "float16", "float32", "float64"
KNOWN = ("q", "k", "weights", "scale", "activation", "norm", "causal", "keep", "name")
LAZY = tuple(name for name in ACTIVATIONS if name != "topk")  # its choices are not in q and k


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
    Errors: HgvizError naming the layer that does not fit.
    """
    if not len(tokens) or not len(layers):
        raise HgvizError("there is nothing to keep: tokens or layers are empty", "Give some")
    prompt = _prompt(list(map(str, tokens)))
    given = None if logits is None else _logits(logits, len(tokens))
    read = [_layer(index, one, len(tokens)) for index, one in enumerate(layers)]
    widths = [len(q) * q.shape[2] for _, one in read if isinstance(one, LazyMap)
              for q in (one.factors.q,)]  # fmt: skip
    spec = ModelSpec(
        family="given", name=_name(name), levels=(Level(0),),
        layers=tuple(layer for layer, _ in read), width=max(widths, default=0),
        vocabulary=0 if given is None else given.shape[1],
    )  # fmt: skip
    numbers = np.arange(len(tokens), dtype=np.int64)
    spans = readonly(np.stack([numbers, numbers + 1], axis=1))
    return Capture(spec, prompt, (spans,), tuple(maps for _, maps in read), logits=given)


def _name(given: Any) -> str:
    """A name as it stands in a line."""
    return "".join(one if one.isprintable() else " " for one in str(given)[:LONGEST_NAME])


def _logits(logits: Any, tokens: int) -> NDArray[Any]:
    shape = np.shape(found := _numbers(logits))
    if len(shape) != 2 or len(found) != tokens or found.dtype.kind not in "fiu":
        why = f"they are {found.dtype} {shape}, for {tokens:,} tokens"
        raise HgvizError(f"the logits cannot be kept: {why}", "Give numbers, (tokens, vocabulary)")
    return found


def _prompt(tokens: list[str]) -> Prompt:
    """Tokens one after the other; with a space between where none brings its own."""
    between = "" if any(token != token.strip() for token in tokens) else " "
    ends = np.cumsum([len(token) + len(between) for token in tokens], dtype=np.int64)
    ends -= len(between)
    starts = ends - [len(token) for token in tokens]
    known = {token: number for number, token in enumerate(dict.fromkeys(tokens))}
    ids = np.array([known[token] for token in tokens], np.int64)
    spans = readonly(np.stack([starts, ends], axis=1))
    return Prompt(between.join(tokens), readonly(ids), tuple(tokens), spans)


def _layer(index: int, given: Mapping[str, Any], tokens: int) -> tuple[Layer, Map]:
    if not isinstance(given, Mapping):
        raise _wrong(index, f"it is a {type(given).__name__}", "Give a dict with q and k")
    if unknown := sorted(map(str, given.keys() - {*KNOWN})):
        raise _wrong(index, f"it has {unknown[0]!r}; what is known is {', '.join(KNOWN)}")
    causal, name = given.get("causal", False), _name(given.get("name", f"layer.{index}"))
    if not isinstance(causal, bool | np.bool_):
        raise _wrong(index, "causal is neither True nor False")
    causal = bool(causal)
    if "weights" in given:
        weights = _array(index, given, "weights")
        if weights.shape[1:] != (tokens, tokens):
            raise _wrong(index, f"weights are {weights.shape}, for {tokens:,} tokens")
        heads = tuple(range(len(weights)))
        signed = bool((weights < 0).any())
        layer = Layer(index, name, "self", 0, 0, heads, ("softmax",) * len(heads), causal)
        return layer, DenseMap(weights, heads, signed=signed, causal=causal)
    factors = _factors(index, given, tokens, causal)
    heads = tuple(range(len(factors.q)))
    layer = Layer(index, name, "self", 0, 0, heads, factors.rule.activations, causal)
    return layer, LazyMap(factors, heads)


def _factors(index: int, given: Mapping[str, Any], tokens: int, causal: bool) -> Factors:
    q, k = _array(index, given, "q"), _array(index, given, "k")
    if q.shape[1] != tokens or k.shape[1:] != q.shape[1:] or len(q) % max(1, len(k)):
        raise _wrong(index, f"q is {q.shape} and k {k.shape}, for {tokens:,} tokens")
    k = np.repeat(k, len(q) // len(k), axis=0)  # grouped heads share their keys
    activation = str(given.get("activation", "softmax"))
    if activation not in LAZY:
        why = f"{activation!r} is not computed from q and k alone; {', '.join(LAZY)} are"
        raise _wrong(index, why, "Give its weights in place of q and k")
    norm = given.get("norm", ACTIVATIONS[activation].norm)
    if norm not in (None, "l2", "l2-literal"):
        raise _wrong(index, f"there is no norm {norm!r}; there are l2 and l2-literal")
    keep = given.get("keep")
    if keep is not None and np.shape(keep) != (tokens,):
        raise _wrong(index, f"keep is {np.shape(keep)}, for {tokens:,} tokens")
    features = ACTIVATIONS[activation].features
    if features is not None:
        q, k = features(q, np), features(k, np)
    rule = Rule(
        scale=_scale(index, given, q, k),
        activations=(activation,) * len(q),
        norms=(norm,) * len(q),
        causal=causal,
        keep=None if keep is None else np.asarray(keep, bool),
    )
    proofs = proof_rows(tokens, tokens)
    proven = np.stack([_weighed(q, k, rule, place, proofs) for place in range(len(q))])
    stat = np.zeros(q.shape[:2])
    return with_statistics(Factors(q, k, stat, rule, proofs, proven, q.dtype.name))


def _scale(index: int, given: Mapping[str, Any], q: NDArray[Any], k: NDArray[Any]) -> float:
    """What multiplies the scores, none of which is too large for the tiles (Cauchy-Schwarz)."""
    scale = _numbers(given.get("scale", q.shape[2] ** -0.5))
    if scale.ndim or scale.dtype.kind not in "fiu" or not np.isfinite(scale):
        raise _wrong(index, "its scale is no finite number")
    longest = [np.linalg.norm(one.astype(np.float64), axis=2).max() for one in (q, k)]
    dtype = np.float64 if q.dtype == np.float64 else np.float32
    with np.errstate(over="ignore"):
        largest = longest[0] * longest[1] * max(1.0, abs(float(scale)))
    if not largest < np.finfo(dtype).max:
        raise _wrong(index, f"products of q and k are too large for {np.dtype(dtype)}")
    return float(scale)


def _weighed(
    q: NDArray[Any], k: NDArray[Any], rule: Rule, place: int, rows: NDArray[Any]
) -> NDArray[np.float32]:
    """The weights (rows, keys) of some rows, computed in float64."""
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


def _array(index: int, given: Mapping[str, Any], name: str) -> NDArray[Any]:
    if name not in given:
        raise _wrong(index, f"it lacks {name!r}: a layer has q and k, or weights")
    found = _numbers(given[name])
    if found.dtype == object:
        why = f"{name} is a {type(given[name]).__name__} that numpy cannot read"
        raise _wrong(index, why, "Give an array; of a tensor .detach().float().numpy()")
    if found.ndim != 3 or found.dtype.name not in DTYPES or not found.size:
        raise _wrong(index, f"{name} is {found.dtype} {found.shape}, not numbers by head and row")
    if not np.isfinite(found).all() or np.abs(found).max() > np.finfo(np.float32).max:
        raise _wrong(index, f"{name} holds numbers that are not finite in float32")
    return found


def _numbers(given: Any) -> NDArray[Any]:
    """What was given as an array, of the type object where numpy makes none of it."""
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError):
        return np.array(None)


def _wrong(index: int, why: str, do: str = "") -> HgvizError:
    return HgvizError(f"layer {index} cannot be kept: {why}", do)
