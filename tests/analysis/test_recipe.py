"""The choices of a composition, against whole matrices; what goes the long way."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.analysis.resolution import Rollout, rollout
from hgviz.analysis.together import reach
from hgviz.core import HeadId, HgvizError, RolloutOptions
from tests.analysis.planting import hourglass, letters, plant, translated
from tests.analysis.test_resolution import FORMS, TEXT, pool_matrix, rn, shift_matrix, spread_matrix

RECIPES = [
    RolloutOptions(residual=0.3),
    RolloutOptions(residual=0.0),
    RolloutOptions(residual=1.0),
    RolloutOptions(fuse="max"),
    RolloutOptions(fuse="min", residual=0.8),
    RolloutOptions(heads=(HeadId(0, 1), HeadId(2, 0))),
    RolloutOptions(nothing=True),
    RolloutOptions(nothing=True, residual=0.25, fuse="max"),
    RolloutOptions(signed=True),
]


def fused(capture, layer, recipe):
    maps = capture.maps[layer.index].weights.astype(np.float32).astype(np.float64)
    named = [h for h in layer.heads if (layer.index, h) in recipe.heads]
    maps = maps[named or list(layer.heads)]
    if recipe.signed:
        return maps.mean(0)
    even = np.stack([rn(np.abs(one)) for one in maps])
    if recipe.fuse == "mean":
        return even.mean(0)
    return rn(even.max(0) if recipe.fuse == "max" else even.min(0))


def dense(capture, recipe):
    """Every sum written out over whole matrices, by the names of the layers."""
    spec = capture.spec
    maps = {layer.name: fused(capture, layer, recipe) for layer in spec.layers}
    a, b = (1, 1) if recipe.signed else (recipe.residual, 1 - recipe.residual)
    norm = (lambda m: m) if recipe.signed or recipe.nothing else rn

    def product(stem, n):
        out = np.eye(n)
        for i in range(99):
            if (name := f"{stem}.{i}") in maps:
                out = (b * maps[name] + a * np.eye(n)) @ out
        return out

    def level(index, n):
        if index == len(spec.levels) - 1:
            return product("middle", n)
        k = spec.levels[index + 1].stride // spec.levels[index].stride
        padded = -(-n // k) * k
        e, s = np.eye(padded, n), shift_matrix(padded, spec.levels[index + 1].shift)
        p, u = pool_matrix(padded, k), spread_matrix(padded, k)
        before, after = product(f"pre.{index}", n), product(f"post.{index}", n)
        down, up = maps.get(f"down.{index}"), maps.get(f"up.{index}")
        short = norm(p @ s @ e) if down is None else norm((a * p + b * down) @ s @ e)
        mixed = level(index + 1, padded // k) @ short
        if spec.form == "windowed":
            x = norm(a * e @ before + b * norm(u @ mixed @ before))
            x = x if up is None else norm(a * x + b * norm(up @ mixed @ before))
            return after @ x[:n]
        if up is None:
            m = norm(u @ mixed)
        else:
            m = e if spec.upsampling == "none" else a * e + b * norm(u @ mixed)
            m = a * m + b * norm(up @ mixed)
        return after @ norm(b * m + a * e)[:n] @ before

    return level(0, len(capture.prompt))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda one: one.label)
@pytest.mark.parametrize("kind", FORMS[::3], ids=str)
def test_every_choice_equals_whole_matrices(kind, recipe):
    strides = (1, 3, 6)
    capture = hourglass(letters(TEXT[:20]), strides, **kind)
    wanted = dense(capture, recipe)
    found = rollout(capture, recipe=recipe)
    if recipe.nothing:
        np.testing.assert_allclose(found[:, -1], 1 - wanted.sum(1), atol=1e-6)
        np.testing.assert_allclose(found.sum(1, dtype=np.float64), 1, atol=1e-6)
        found = found[:, :-1]
    np.testing.assert_allclose(found, wanted, atol=1e-6 * max(1, np.abs(wanted).max()))
    if kind["causal"]:
        assert not np.triu(found, 1).any()
    if not (recipe.signed or recipe.nothing):
        np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)


def test_attention_alone_may_go_up_whatever_is_chosen():
    capture = hourglass(letters(TEXT[:20]), (1, 3, 6), upsampling="none")
    for recipe in RECIPES:
        found = rollout(capture, recipe=replace(recipe, nothing=False))
        wanted = dense(capture, replace(recipe, nothing=False))
        np.testing.assert_allclose(found, wanted, atol=1e-6 * max(1, np.abs(wanted).max()))


def test_a_signed_product_of_one_level_is_the_product_of_map_and_identity():
    random = np.random.default_rng(4)
    maps = [np.tril(random.normal(size=(3, 8, 8))) for _ in range(3)]
    wanted = np.eye(8)
    for one in maps:
        wanted = (one.astype(np.float32).mean(0, dtype=np.float64) + np.eye(8)) @ wanted
    capture = plant(letters(TEXT[:8]), maps, signed=True)
    found = rollout(capture, recipe=RolloutOptions(signed=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    assert (found < 0).any() and not np.triu(found, 1).any()


def test_a_decoder_is_composed_by_the_same_choices():
    capture = translated(letters(TEXT[:6]), letters(TEXT[:4]), signed=True)
    for recipe in (
        RolloutOptions(residual=0.2),
        RolloutOptions(fuse="max"),
        RolloutOptions(signed=True),
    ):
        a, b = recipe.keep, recipe.look
        source, target = np.eye(6, 10), np.eye(4, 10, k=6)
        for layer in capture.spec.layers:
            weights = fused(capture, layer, recipe)
            if layer.level == 0:
                source = b * weights @ source + a * source
            else:
                target = b * weights @ (source if layer.role == "cross" else target) + a * target
        found = Rollout(capture, recipe).composed()
        np.testing.assert_allclose(found.weights, target, atol=1e-6 * np.abs(target).max())
        if not recipe.signed:
            np.testing.assert_allclose(found.source, target[:, :6].sum(1), atol=1e-12)
            assert found.crossings == ()


# --- what goes the long way -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "recipe",
    [RolloutOptions(), RolloutOptions(residual=0.3), RolloutOptions(nothing=True)],
    ids=str,
)
@pytest.mark.parametrize("kind", FORMS, ids=str)
def test_what_goes_into_a_level_comes_back_from_it(kind, recipe):
    capture = hourglass(letters(TEXT[:23]), (1, 2, 6), **kind)
    outer, inner = Rollout(capture, recipe).composed().crossings
    for one in (outer, inner):
        down = one.pooled + one.looked_down
        np.testing.assert_allclose(one.through, down, atol=1e-12)
        assert kind["down"] or not one.looked_down.any()
        assert kind["up"] or not one.looked_up.any()
    assert (inner.through <= outer.through + 1e-12).all()
    assert (outer.through > 0).all() and (outer.through <= 1 + 1e-12).all()


def test_shares_of_two_levels_are_those_of_the_sums():
    # one shortening without resampling attention, nothing before or after: half of every sum
    for form, through in (("windowed", 0.5), ("official", 0.5)):
        capture = hourglass(
            letters(TEXT[:12]), (1, 3), form=form, down=False, up=False, counts=(0, 0)
        )
        (found,) = Rollout(capture).composed().crossings
        np.testing.assert_allclose(found.copied, through)
        (found,) = Rollout(capture, RolloutOptions(residual=0.9)).composed().crossings
        np.testing.assert_allclose(found.through, 0.1)


def test_what_stays_at_a_level_is_what_the_map_has_without_the_levels_below():
    # nothing goes the long way: the residual alone is left
    capture = hourglass(letters(TEXT[:12]), (1, 3))
    found = Rollout(capture, RolloutOptions(residual=1.0)).composed()
    np.testing.assert_array_equal(found.weights, np.eye(12, dtype=np.float32))
    assert not found.crossings[0].through.any()


@pytest.mark.parametrize(
    "recipe",
    [RolloutOptions(), RolloutOptions(residual=0.3), RolloutOptions(nothing=True)],
    ids=str,
)
@pytest.mark.parametrize("kind", FORMS[::3], ids=str)
def test_a_row_is_the_sum_of_what_went_no_further_than_each_level(kind, recipe):
    capture = hourglass(letters(TEXT[:23]), (1, 2, 6), **kind)
    found = Rollout(capture, recipe).one(17)
    outer, inner = found.crossings
    assert len(found.levels) == 3
    np.testing.assert_allclose(sum(found.levels), found.weights[0], atol=1e-7)
    shares = [1 - outer.through[0], outer.through[0] - inner.through[0], inner.through[0]]
    sums = [one.sum() for one in found.levels]
    np.testing.assert_allclose(sum(sums), 1 - found.nothing[0], atol=1e-6)
    if not recipe.nothing:
        np.testing.assert_allclose(sums, np.ravel(shares), atol=1e-6)


def test_what_stays_is_the_map_without_what_comes_from_below():
    # with the inner level seeing nothing, all that is left of a row is what stayed
    capture = hourglass(letters(TEXT[:12]), (1, 3), form="windowed", down=False, up=False)
    stays = Rollout(capture).one(8).levels[0]
    pre, post = (rn(capture.maps[i].weights.astype(np.float32).mean(0)) for i in (0, 2))
    eye = np.eye(12)
    wanted = (post + eye) / 2 @ (eye / 2) @ ((pre + eye) / 2)
    np.testing.assert_allclose(stays, wanted[8], atol=1e-6)
    far = np.abs(np.arange(12) - 8)
    (near, _) = reach(capture, (stays, np.zeros(12)), 8)
    assert near == pytest.approx(far @ stays / stays.sum())
    assert np.isnan(reach(capture, (np.zeros(12),), 8)[0])


# --- what cannot be chosen ------------------------------------------------------------------------


def test_choices_that_cannot_be_are_said_in_a_line():
    for wrong in ({"residual": 1.5}, {"residual": float("nan")}, {"fuse": "median"}):
        with pytest.raises(HgvizError):
            RolloutOptions(**wrong)
    for wrong in ({"fuse": "max"}, {"residual": 0.2}, {"nothing": True}):
        with pytest.raises(HgvizError, match="does not go with"):
            RolloutOptions(signed=True, **wrong)
    capture = hourglass(letters(TEXT[:12]), (1, 2))
    with pytest.raises(HgvizError, match=r"head 9\.0 cannot be counted"):
        rollout(capture, recipe=RolloutOptions(heads=(HeadId(9, 0),)))
    with pytest.raises(HgvizError, match="switched off"):
        off = replace(capture, off=frozenset({HeadId(0, 1)}))
        rollout(off, recipe=RolloutOptions(heads=(HeadId(0, 1),)))


def test_a_recipe_says_what_it_is():
    assert RolloutOptions().label == "mean of the heads, half residual"
    one = RolloutOptions(fuse="max", residual=0.3, nothing=True, heads=(HeadId(1, 2),))
    assert "largest" in one.label and "30 %" in one.label and "1.2" in one.label
    assert RolloutOptions(signed=True).label == "signed product, mean of the heads"
