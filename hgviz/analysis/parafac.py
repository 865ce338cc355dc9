"""The products W_QK of some heads in fewer terms: CP (PARAFAC) by alternating least squares.

A tensor here is never formed: it is factors already, T[:, h, :] = sum over r of M[h, r] a_r b_r^T,
and fewer of them are looked for (Harshman 1970; Kolda and Bader 2009, section 3.4). Shapes: H
heads, R terms, d and e the widths on either side. All in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FIRST, MOST = 25, 200  # rounds from each start, and from the best of them
LITTLE = 1e-5  # of the error: rounds that make it smaller by less end the search
RIDGE = 1e-12  # of the mean diagonal, where terms are the same


@dataclass(frozen=True, slots=True)
class Terms:
    """a (R, d), mix (H, R), b (R, e): H matrices a^T diag(mix_h) b.

    Of the heads of a layer a holds queries, b keys, and the matrices are W_QK^(h).
    """

    a: Array
    mix: Array
    b: Array

    @classmethod
    def none(cls, like: Terms, rank: int) -> Terms:
        """So many terms of zeros."""
        return _filled(cls(like.a[:0], like.mix[:, :0], like.b[:0]), rank)

    def inner(self, other: Terms) -> float:
        """The sum of products of all entries of two tensors."""
        parts = (x @ y.T for x, y in zip((self.a, self.mix.T, self.b),
                                         (other.a, other.mix.T, other.b), strict=True))  # fmt: skip
        return float(np.prod(list(parts), axis=0).sum())

    def grams(self) -> Array:
        """(H, H): the inner products of the matrices."""
        found: Array = self.mix @ ((self.a @ self.a.T) * (self.b @ self.b.T)) @ self.mix.T
        return found

    def stacked(self) -> tuple[Array, Array]:
        """The matrices one below the other, (H d, e): squares of singular values (p,) from the
        largest on, and right singular vectors (e, p), of which there are at most R."""
        right, core = np.linalg.qr(self.b.T)  # (e, p), (p, R)
        weights = (self.a @ self.a.T) * (self.mix.T @ self.mix)
        squares, vectors = np.linalg.eigh(core @ weights @ core.T)
        return np.maximum(squares[::-1], 0.0), right @ vectors[:, ::-1]

    @property
    def turned(self) -> Terms:
        """The transposed matrices."""
        return Terms(self.b, self.mix, self.a)


def apart(whole: Terms, found: Terms) -> float:
    """|T - found| / |T|, 0 of a tensor of zeros; down to 1e-8, where rounding ends it."""
    size = whole.inner(whole)
    error = size - 2 * whole.inner(found) + found.inner(found)
    return float(np.sqrt(max(0.0, error) / size)) if size > 0 else 0.0


def compressed(whole: Terms, rank: int) -> Iterator[tuple[Terms, float]]:
    """The best so many terms that are found, and how far they are off, after each round.

    The search begins at three decompositions that are known in closed form: the largest singular
    values of each head by itself, and those of all heads side by side, by their keys and by their
    queries; after some rounds the best of them goes on. Nothing is drawn at random: the same tensor
    gives the same terms.
    """
    found, error = Terms.none(whole, rank), 1.0
    starts = (_of_each(whole, rank), _together(whole, rank), _together(whole.turned, rank).turned)
    for start in starts:
        for one, off in islice(_rounds(whole, start), FIRST):
            if off < error:
                found, error = one, off
            yield found, error
    yield from islice(_rounds(whole, found), MOST)


def _rounds(whole: Terms, found: Terms) -> Iterator[tuple[Terms, float]]:
    """Terms and their error as they become better, those that are given first."""
    error = apart(whole, found)
    yield found, error
    gain = 1.0
    while gain > LITTLE:
        fresh = _round(whole, found)
        better = apart(whole, fresh)
        if not better < error:
            return
        gain, found, error = 1 - better / error, fresh, better
        yield found, error


def _round(whole: Terms, found: Terms) -> Terms:
    """Each of the three factors in turn as the other two want it."""
    a = _solved(whole.a, whole.mix.T, whole.b, found.mix.T, found.b)
    b = _solved(whole.b, whole.mix.T, whole.a, found.mix.T, a)
    mix = _solved(whole.mix.T, whole.a, whole.b, a, b).T
    scale = np.abs(mix).max(0, initial=0)  # each term of one size, its largest share in a head 1
    scale = np.where(scale > 0, scale, 1.0)
    sizes = [np.maximum(np.linalg.norm(one, axis=1), np.finfo(float).tiny) for one in (a, b)]
    even = np.sqrt(sizes[0] * sizes[1] * scale)
    return Terms(a * (even / sizes[0])[:, None], mix / scale, b * (even / sizes[1])[:, None])


def _solved(mine: Array, one: Array, two: Array, new_one: Array, new_two: Array) -> Array:
    """(R', n): the factor of a side that is nearest, given those of the others; first those of the
    whole, then the new ones."""
    wanted = ((new_one @ one.T) * (new_two @ two.T)) @ mine
    gram = (new_one @ new_one.T) * (new_two @ new_two.T)
    ridge = max(RIDGE * float(np.trace(gram)) / max(len(gram), 1), np.finfo(float).tiny)
    return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), wanted), np.float64)


# --- where it begins ------------------------------------------------------------------------------


def _of_each(whole: Terms, rank: int) -> Terms:
    """The largest singular values of all heads, each by itself."""
    parts = []
    for head, mix in enumerate(whole.mix):
        own = np.flatnonzero(mix)
        left, a = np.linalg.qr((whole.a[own] * mix[own, None]).T)  # (d, p), (p, R)
        right, b = np.linalg.qr(whole.b[own].T)
        u, size, v = np.linalg.svd(a @ b.T, full_matrices=False)
        parts.append((size, np.full(len(size), head), (left @ u).T, v @ right.T))
    sizes, heads, lefts, rights = map(np.concatenate, zip(*parts, strict=True))
    most = np.argsort(-sizes, kind="stable")[:rank]
    root = np.sqrt(sizes[most])[:, None]
    mix = np.eye(len(whole.mix))[:, heads[most]]
    return _filled(Terms(lefts[most] * root, mix, rights[most] * root), rank)


def _together(whole: Terms, rank: int) -> Terms:
    """The right singular vectors of all heads, one below the other, and what each head makes of
    them, as few products of a query and a share of heads."""
    rows = whole.stacked()[1].T  # (p, e)
    seen = whole.b @ rows.T  # (R, p): what each term makes of each vector
    left, wide = np.linalg.qr(whole.a.T)
    made = np.einsum("dr,hr,rp->pdh", wide, whole.mix, seen, optimize=True)  # (p, d, H)
    u, size, v = np.linalg.svd(made, full_matrices=False)  # (p, d, m), (p, m), (p, m, H)
    most = np.argsort(-size.ravel(), kind="stable")[:rank]
    vector, number = np.divmod(most, size.shape[1])
    root = np.sqrt(size[vector, number])[:, None]
    a = u[vector, :, number] @ left.T
    return _filled(Terms(a * root, v[vector, number].T, rows[vector] * root),
                   rank)  # fmt: skip


def _filled(found: Terms, rank: int) -> Terms:
    """Terms of zeros up to so many."""
    more = rank - len(found.a)
    rows = ((0, more), (0, 0))
    return Terms(np.pad(found.a, rows), np.pad(found.mix, rows[::-1]), np.pad(found.b, rows))
