"""Fewer terms of products: against the matrices themselves, formed here."""

from __future__ import annotations

import numpy as np
import pytest

from hgviz.analysis.parafac import Terms, apart, compressed


def heads(count, width, d, seed=0):
    """Of heads that share nothing."""
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, count * width, d))
    return Terms(a, np.repeat(np.eye(count), width, axis=1), b)


def dense(terms):
    """(H, d, e): the matrices."""
    return np.einsum("rd,hr,re->hde", terms.a, terms.mix, terms.b)


def found(whole, rank):
    *_, last = compressed(whole, rank)
    return last


def test_inner_products_are_those_of_the_matrices():
    whole, other = heads(3, 4, 10), heads(3, 2, 10, seed=1)
    one, two = dense(whole), dense(other)
    assert whole.inner(other) == pytest.approx((one * two).sum(), rel=1e-12)
    np.testing.assert_allclose(whole.grams(), np.einsum("gij,hij->gh", one, one), rtol=1e-10)
    distance = np.linalg.norm(one - two) / np.linalg.norm(one)
    assert apart(whole, other) == pytest.approx(distance, rel=1e-12)


def test_singular_values_are_those_of_the_stack():
    whole = heads(3, 4, 10)
    squares, vectors = whole.stacked()
    stack = dense(whole).reshape(-1, 10)
    np.testing.assert_allclose(squares, np.linalg.svd(stack)[1] ** 2, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(stack @ vectors, axis=0) ** 2, squares, rtol=1e-9)


def test_the_error_that_is_told_is_that_of_the_matrices_and_falls_round_by_round():
    whole = heads(3, 4, 16)
    errors = []
    for terms, error in compressed(whole, 7):
        assert terms.a.shape == (7, 16) and terms.mix.shape == (3, 7)
        wanted = np.linalg.norm(dense(whole) - dense(terms)) / np.linalg.norm(dense(whole))
        assert error == pytest.approx(wanted, rel=1e-6)
        errors.append(error)
    assert errors[-1] == min(errors)


def test_more_terms_are_nearer():
    whole = heads(4, 4, 20, seed=2)
    errors = [found(whole, rank)[1] for rank in (2, 5, 8, 12, 15)]
    assert errors == sorted(errors, reverse=True) and errors[0] > 0.5 > errors[-1]


def test_a_start_is_at_least_as_good_as_the_largest_singular_values_of_each_head():
    whole = heads(3, 5, 15, seed=3)
    sizes = np.linalg.svd(dense(whole))[1].ravel()
    left = np.sort(sizes**2)[:-6].sum() / (sizes**2).sum()
    assert found(whole, 6)[1] <= np.sqrt(left) + 1e-9


def test_heads_that_are_the_same_need_the_terms_of_one():
    one = heads(1, 4, 12)
    whole = Terms(np.tile(one.a, (3, 1)), np.repeat(np.eye(3), 4, axis=1), np.tile(one.b, (3, 1)))
    assert found(whole, 4)[1] < 1e-7


def test_terms_that_were_planted_are_found():
    random = np.random.default_rng(0)
    a, b, mix = random.normal(size=(8, 32)), random.normal(size=(8, 32)), random.normal(size=(4, 8))
    rows = (mix[:, :, None] * a).reshape(-1, 32)
    whole = Terms(rows, np.repeat(np.eye(4), 8, axis=1), np.tile(b, (4, 1)))
    assert found(whole, 8)[1] < 1e-6


def test_the_same_tensor_gives_the_same_terms():
    one, two = (found(heads(3, 4, 16), 5)[0] for _ in range(2))
    for x, y in zip((one.a, one.mix, one.b), (two.a, two.mix, two.b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_heads_without_weights_are_nothing():
    whole = Terms(np.zeros((4, 6)), np.repeat(np.eye(2), 2, axis=1), np.zeros((4, 6)))
    terms, error = found(whole, 3)
    assert error == 0 and not dense(terms).any()
