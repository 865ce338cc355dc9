"""Maps of a Byte Latent Transformer made one: down to patches, and back from every layer up."""

from functools import cache

import numpy as np
import pytest

from hgviz import tasks
from hgviz.analysis.layout import Layout
from hgviz.analysis.resolution import Rollout, rollout
from hgviz.core import HeadId, finish
from hgviz.figures.kinds.stages import stages_of
from hgviz.models import open_model
from hgviz.recipe import Recipe
from tests.closeness import scaled_error
from tests.models import patches as blt


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(mode, length, off) -> a capture."""

    @cache
    def model(mode):
        folder = blt.write(tmp_path_factory.mktemp("blt") / "m", **blt.MODES[mode])
        return open_model(folder, dtype="float64")

    @cache
    def find(mode, length=12, off=frozenset()):
        one = model(mode)
        return finish(tasks.capture(one, one.from_ids(blt.ids_of(length)), off=off))

    return find


def composed(capture, keep=0.5):
    """All maps multiplied as the model is built: the residual part of each is keep."""
    tokens, look = len(capture.prompt), 1 - keep
    spans, parts = capture.spans[-1], capture.spec.levels[1].parts
    pool = np.zeros((len(spans), tokens))
    for row, (start, stop) in enumerate(spans):
        pool[row, start:stop] = 1 / (stop - start)
    found, deep = np.eye(tokens), None
    for layer in capture.spec.layers:
        heads = [head for head in layer.heads if (layer.index, head) not in capture.off]
        if layer.cuts or (not heads and layer.role != "down"):
            continue
        if not heads:
            deep = pool @ found
            continue
        every = np.mean([capture.maps[layer.index].read(head) for head in heads], 0, float)
        if layer.role == "down":
            short = (look * every + keep * pool.repeat(parts, 0)) @ found
            deep = short.reshape(len(spans), parts, -1).mean(1)
        elif layer.role == "up":
            found = keep * found + look * every @ deep.repeat(parts, 0)
        elif layer.level:
            deep = keep * deep + look * every @ deep
        else:
            found = keep * found + look * every @ found
    return found


@pytest.mark.parametrize("mode", blt.MODES)
@pytest.mark.parametrize("length", [1, 2, 12, 33])
def test_rollout_is_the_product_of_all_maps(made, mode, length):
    capture = made(mode, length)
    found = rollout(capture)
    assert scaled_error(found, composed(capture)) < 1e-6
    assert scaled_error(found.sum(1), 1) < 1e-6
    some = rollout(capture, (length - 1, length))
    assert scaled_error(some, found[-1:]) < 1e-6


def test_heads_that_are_off_have_no_part_and_a_recipe_chooses_the_rest(made):
    off = frozenset(HeadId(layer, head) for layer in (4, 9) for head in range(4)) - {HeadId(9, 1)}
    capture = made("two parts", 12, off | {HeadId(0, 2), HeadId(6, 1)})
    assert np.abs(rollout(made("two parts")) - rollout(capture)).max() > 1e-3
    assert scaled_error(rollout(capture), composed(capture)) < 1e-6
    capture = made("two parts")
    found = rollout(capture, recipe=Recipe(residual=0.25))
    assert scaled_error(found, composed(capture, 0.25)) < 1e-6


@pytest.mark.parametrize("mode", ["one part", "two parts"])
def test_what_goes_through_patches_is_the_same_both_ways(made, mode):
    capture = made(mode, 33)
    found = finish(Rollout(capture).composed())
    assert len(found.crossings) == len(capture.spec.levels) - 1
    for one in found.crossings:
        np.testing.assert_allclose(one.through, 0.75, atol=1e-6)  # of two layers that look up
        np.testing.assert_allclose(one.pooled + one.looked_down, 0.75, atol=1e-6)
    assert not found.crossings[0].copied.any() and found.crossings[0].looked_up.all()


def test_the_stages_of_a_letter_are_bytes_patches_and_bytes(made):
    assert stages_of(made("two parts")) == [[2, 3], [5, 6], [8, 10]]
    assert stages_of(made("all layers look down"))[-2:] == [[6, 7], [9, 11]]


@pytest.mark.parametrize("mode", ["one part", "three parts"])
def test_a_layer_between_bytes_and_patches_sees_what_has_weight(made, mode):
    capture = made(mode, 33)
    for one in capture.spec.layers:
        if one.role not in ("down", "up"):
            continue
        layout, (_, rows, columns) = Layout(capture, one.index, {}), capture.maps[one.index].shape
        block = layout.block(slice(0, rows), slice(0, columns))
        assert np.array_equal(block.seen, capture.maps[one.index].read(0) > 0)
        if one.role == "down":
            ends = [np.flatnonzero(row) for row in block.seen]
            assert block.oldest().nonzero()[1].tolist() == [one[0] for one in ends]
            assert block.newest().nonzero()[1].tolist() == [one[-1] for one in ends]
