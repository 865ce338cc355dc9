"""How far tiles are from float64, beside what a float32 softmax of the same scores is off.

Random causal heads, 64 wide, whose scores spread by 1, 3 and 8; queries and keys in float32,
bfloat16 and float16. Heads of ymish, normalised, beside a float32 ymish: also with scores that
cancel, thirty times smaller than the lengths of query and key allow, where any float32 product is
that far off. Then, to the bit: zoomed-out reads against the pooled map, and the same pixels through
viewports that lie differently.
"""

from dataclasses import replace

import numpy as np
from table import line

from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.maps import TILE, Factors, LazyMap, Rule, pool, recompute_statistics

TOKENS, WIDTH = 1500, 64
SPREADS = 1, 3, 8
VIEWPORTS = 40
FLOOR = 5e-7  # where a float32 softmax happens to be nearer


def main():
    """Print a line for each number format and spread, and those of all."""
    random = np.random.default_rng(0)
    shares = []
    for dtype in ("float32", "bfloat16", "float16"):
        for spread in SPREADS:
            off, theirs, share = errors(LazyMap(head(random, dtype, spread), (0,)))
            limit = max(2 * theirs, FLOOR)
            line(f"tiles off float64, {dtype}, scores of {spread}", f"{off:.1e}", f"{limit:.1e}")
            shares.append(share)
    for name, smaller in (("", 1), (", scores that cancel", 30)):
        off, theirs, _ = errors(LazyMap(normalised(random, smaller), (0,)))
        line(f"tiles off float64, ymish{name}", f"{off:.1e}", f"{max(2 * theirs, FLOOR):.1e}")
    line("at most that, over 1e-5 or 1e-4 of a row's largest", f"{max(shares):.2f}", "1")
    maps = LazyMap(head(random, "float32", 3), (0,))
    line("cells of zoomed-out reads other than pooled", str(pooled(maps)), "0")
    line(f"pixels that differ in {VIEWPORTS} viewports", str(moved(maps, random)), "0")


def head(random, dtype, spread):
    """The factors of one head, with the statistic of a float32 softmax, settled as captures are."""
    q, k = (random.normal(size=(1, TOKENS, WIDTH)).astype(np.float32) for _ in range(2))
    q *= spread
    if dtype == "bfloat16":
        q, k = (rounded(one) for one in (q, k))
    elif dtype == "float16":
        q, k = (one.astype(np.float16) for one in (q, k))
    rule = Rule(scale=WIDTH**-0.5, activations=("softmax",), norms=(None,), causal=True)
    none = np.zeros(0, np.int64), np.zeros((1, 0, TOKENS), np.float32)
    blank = Factors(q, k, np.zeros((1, TOKENS)), rule, *none, dtype)
    scores, seen = scored(blank, 0, np.float32)
    top = np.where(seen, scores, -np.inf).max(-1)
    sums = np.where(seen, np.exp(scores - top[:, None]), 0).sum(-1)
    return recompute_statistics(Factors(q, k, (top + np.log(sums))[None], rule, *none, dtype))


def normalised(random, smaller):
    """The factors of a head of ymish, with the lengths of its rows as float32 gives them; queries
    are nearly at right angles to all keys where scores are to be smaller than by chance.
    """
    q, k = (random.normal(size=(1, TOKENS, WIDTH)).astype(np.float32) for _ in range(2))
    side = WIDTH // 2
    k[..., side:] = k[..., :side]
    q[..., side:] = q[..., side:] / np.float32(smaller) - q[..., :side] * np.float32(smaller > 1)
    rule = Rule(scale=WIDTH**-0.5, activations=("ymish",), norms=("l2",), causal=True)
    none = np.zeros(0, np.int64), np.zeros((1, 0, TOKENS), np.float32)
    blank = Factors(q, k, np.zeros((1, TOKENS)), rule, *none, "float32")
    return replace(blank, stat=length(blank, 0, np.float32)[None, :, 0])


def length(factors, place, kind):
    """(queries, 1) The lengths of the rows of scores."""
    scores, seen = scored(factors, place, kind)
    return np.sqrt((np.where(seen, scores, 0) ** 2).sum(-1, keepdims=True))


def rounded(values):
    """bfloat16 as its bits, to even."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def errors(maps):
    """(the tiles' largest difference from float64, a float32 softmax's, the tiles' as a share).

    The share is of 1e-5 or 1e-4 of the row's largest weight, whichever is more.
    """
    off = theirs = share = 0.0
    for place, name in enumerate(maps.heads):
        exact, single = (weights(maps.factors, place, kind) for kind in (np.float64, np.float32))
        scale = np.maximum(1e-5, 1e-4 * exact.max(-1, keepdims=True))
        here = np.abs(maps.read(name) - exact)
        off, theirs = max(off, here.max()), max(theirs, np.abs(single - exact).max())
        share = max(share, (here / scale).max())
    return off, theirs, share


def weights(factors, place, kind):
    """The map of a head of softmax or ymish (queries, keys), plainly in one kind of number."""
    scores, seen = scored(factors, place, kind)
    if factors.rule.activations[place] == "ymish":
        scores = np.where(seen, scores, 0) / (length(factors, place, kind) + kind(NORM_EPSILON))
        return ACTIVATIONS["ymish"].apply(scores, None, np)
    scores = np.where(seen, scores, -np.inf)
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def scored(factors, place, kind):
    """Scaled scores of a head in one kind of number, and which of them count."""
    q, k = (widened(one[place], factors.dtype).astype(kind) for one in (factors.q, factors.k))
    scores = q @ k.T * kind(factors.rule.scale)
    return scores, factors.rule.sees(*(np.arange(size) for size in scores.shape))


def widened(values, dtype):
    """The numbers that stored bits of bfloat16 stand for; others as they are."""
    if dtype != "bfloat16":
        return values
    return (values.astype(np.uint32) << 16).view(np.float32)


# --- to the bit -----------------------------------------------------------------------------------


def pooled(maps):
    """How many cells of reads at zoom 1 to 5 are not those of the whole map, pooled."""
    whole = maps.read(0)
    return sum(
        int((maps.read(0, zoom=zoom) != pool(whole, zoom, "max", False)).sum())
        for zoom in range(1, 6)
    )


def moved(maps, random):
    """How many pixels of viewports that lie anywhere are not those of the whole map."""
    wrong, side = 0, TILE + 77
    for zoom in range(3):
        whole = maps.read(0, zoom=zoom)
        for _ in range(VIEWPORTS // 3 + 1):
            top, left = (random.integers(0, (TOKENS >> zoom) - side, 2) << zoom).tolist()
            size = side << zoom
            fresh = LazyMap(maps.factors, (0,))
            part = fresh.read(0, (top, top + size), (left, left + size), zoom)
            there = whole[top >> zoom :, left >> zoom :][: part.shape[0], : part.shape[1]]
            wrong += int((part != there).sum())
    return wrong


if __name__ == "__main__":
    main()
