"""A Funnel's maps made one: pooled level by level, and spread once over all tokens."""

import numpy as np
import pytest

from hgviz.analysis.resolution import Rollout, rollout
from hgviz.core import Capture, HeadId, HgvizError, Layer, RolloutOptions
from hgviz.maps import DenseMap
from hgviz.models.pretrained_config import Pooling, TransformersConfig
from tests.making import byte_prompt

TEXT = "pooled by two, and by two again"
N = len(TEXT)
CASES = {
    "separate_cls": {},
    "keys pooled": {"queries": False},
    "all alike": {"separate_cls": False},
    "nothing left out": {"truncated": False},
    "four levels": {"blocks": (1, 1, 2, 1)},
    "one level": {"blocks": (2,)},
}


def make(name, tokens=N, off=frozenset(), **more):
    """A capture of random maps."""
    pooling = Pooling(**{"blocks": (2, 2, 1), "after": 1, **CASES[name], **more})
    layers = tuple(
        Layer(at, f"layer {at}", "self" if level == keys else "down", level, keys, (0, 1),
              ("softmax",) * 2, causal=False)
        for at, (level, keys) in enumerate(pooling.places)
    )  # fmt: skip
    config = TransformersConfig(
        family="funnel", class_name="", data={}, d_model=4, vocab_size=256, max_positions=None,
        goal="states", form="base" if pooling.after is None else "funnel", own_layers=layers,
        pooling=pooling,
    )  # fmt: skip
    prompt, spans = byte_prompt(TEXT[:tokens]), config.spans(tokens)
    random, maps = np.random.default_rng(0), []
    for layer in config.layers:
        shape = 2, len(spans[layer.level]), len(spans[layer.key_level])
        weights = random.random(shape) ** 4 + 1e-3
        weights /= weights.sum(2, keepdims=True)
        maps.append(DenseMap(weights.astype(np.float32), layer.heads))
    return Capture(config.spec("m", "", 0), prompt, spans, tuple(maps), off), config


def rn(rows):
    sums = rows.sum(1, keepdims=True)
    return np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)


def dense(capture, config):
    """R by matrices of its own: P from the pooling as the paper has it, U from its repetition."""
    tokens = len(capture.prompt)

    def fused(one):
        on = [head for head in one.heads if HeadId(one.index, head) not in capture.off]
        return sum(capture.maps[one.index].read(h).astype(float) for h in on) / len(on)

    inner = sum(config.pooling.blocks)

    def layers(level, after):
        for one in capture.spec.layers:
            if (one.level, one.role, one.index >= inner) == (level, "self", after):
                yield one

    def stack(rows, level, after=False):
        for one in layers(level, after):
            if any(HeadId(one.index, head) not in capture.off for head in one.heads):
                rows = (fused(one) @ rows + rows) / 2
        return rows

    last, apart = len(capture.spec.levels) - 1, int(config.pooling.separate_cls)
    first = deep = stack(np.eye(tokens), 0)
    for level in range(1, last + 1):
        n = len(deep)
        cells = list(range(n))
        if n > 1 + apart and apart:
            cells = [0, 0, *cells[1:]]
            cells = cells[:-1] if config.pooling.truncated else cells
        groups = [cells[at : at + 2] for at in range(0, len(cells), 2)]
        groups = groups if n > 1 + apart else [[one] for one in cells]
        pooled = np.stack([deep[one].mean(0) for one in groups])
        down = [o for o in capture.spec.layers if o.role == "down" and o.level == level]
        for one in down:
            if any(HeadId(one.index, head) not in capture.off for head in one.heads):
                pooled = (fused(one) @ deep + pooled) / 2
        deep = stack(rn(pooled), level)
    stride, wide = 2**last, [*deep]
    if last:
        wide = [row for row in deep[apart:] for _ in range(stride)]
        wide = [*deep[:apart], *wide, *[np.zeros(tokens)] * stride][:tokens]
    return stack(rn(first / 2 + np.stack(wide) / 2), 0, after=True)


@pytest.mark.parametrize("tokens", [1, 2, 3, 6, 7, N])
@pytest.mark.parametrize("name", CASES)
def test_rollout_is_the_product_of_all_maps(name, tokens):
    capture, config = make(name, tokens)
    wanted = dense(capture, config)
    np.testing.assert_allclose(rollout(capture), wanted, atol=1e-6)
    np.testing.assert_allclose(rollout(capture, (0, 1)), wanted[:1], atol=1e-6)
    np.testing.assert_allclose(wanted.sum(1), 1)


def test_layers_that_are_off_look_nowhere():
    off = frozenset(HeadId(layer, head) for layer in (2, 3) for head in (0, 1)) | {HeadId(0, 1)}
    capture, config = make("separate_cls", off=off)
    np.testing.assert_allclose(rollout(capture), dense(capture, config), atol=1e-6)


def test_the_ways_into_each_level_are_told():
    capture, _ = make("separate_cls")
    found = Rollout(capture).composed()
    assert len(found.crossings) == 2
    for one in found.crossings:
        np.testing.assert_allclose(one.through, one.pooled + one.looked_down, atol=1e-12)
    outer, inner = found.crossings
    np.testing.assert_allclose(outer.through, inner.through, atol=1e-6)
    assert 0 < outer.through.min() < outer.through.max() < 1
    with_none = Rollout(capture, RolloutOptions(nothing=True)).rows()
    np.testing.assert_allclose(with_none.sum(1), 1, atol=1e-6)


def test_positions_of_many_tokens_are_not_composed():
    capture, _ = make("separate_cls", after=None)
    with pytest.raises(HgvizError, match="a base model cannot be composed"):
        rollout(capture)
