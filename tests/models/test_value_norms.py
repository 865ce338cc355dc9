"""Captures keep what every key has to give: the length of its value behind the output product."""

from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, finish
from hgviz.maps import DenseMap
from hgviz.models import open_model
from hgviz.models.blocks import Attention
from hgviz.models.generation import Writing
from hgviz.models.slots import Mixtures
from hgviz.models.tap import value_norms
from hgviz.store import open_capture, write_capture
from tests.making import make_capture
from tests.models.test_capturing import FAMILIES, build, opened, prompts


def plainly(model, prompt, target):
    """By layers: the norm of each value behind its head's rows of W_O, by hooks and numpy."""
    seen, hooks = {}, []
    for part in model.module.modules():
        if isinstance(part, Attention):

            def note(_, __, out, part=part):
                seen[part.layer.index] = (part, out[0].double().numpy())

            hooks.append(part.v.register_forward_hook(note))
    finish(tasks.capture(model, prompt, target=target))
    for one in hooks:
        one.remove()
    found = {}
    for index, (part, values) in seen.items():
        weight = part.o.weight.double().numpy()
        width, rows = part.d_head, []
        owners = [one for one in model.module.modules() if getattr(one, "attn", None) is part]
        mixtures = next((one.projection for one in owners if hasattr(one, "projection")), None)
        if isinstance(mixtures, Mixtures):  # values of slots, made of those of real tokens
            mix = mixtures.of_values
            real = (
                values if prompt.attention_mask is None else values * prompt.attention_mask[:, None]
            )
            heads = torch.tensor(real).unflatten(1, (-1, width)).transpose(0, 1)[None]
            values = mix.double()(heads)[0].transpose(0, 1).flatten(1).detach().numpy()
        for place in range(len(part.layer.heads)):
            columns = slice(place * width, (place + 1) * width)
            given = np.einsum("kd,ed->ke", values[:, columns], weight[:, columns])
            rows.append(np.sqrt((given**2).sum(-1)))
        found[index] = np.array(rows)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_every_layer_of_every_family_says_what_its_keys_give(family, tmp_path):
    model = opened(tmp_path, build(family, "softmax"))
    prompt, target = prompts(model)
    found = finish(tasks.capture(model, prompt, target=target))
    expected = plainly(model, prompt, target)
    assert sorted(expected) == [layer.index for layer in model.spec.layers]
    for index, one in enumerate(found.maps):
        assert one.value_norms.shape == (one.shape[0], one.shape[2])
        assert one.value_norms.dtype == np.float32
        np.testing.assert_allclose(one.value_norms, expected[index], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_they_are_numbers_of_float32_whatever_the_model_computes_in(dtype, tmp_path):
    model = opened(tmp_path, build("encoder", "softmax"), dtype)
    found = finish(tasks.capture(model, prompts(model)[0]))
    for one in found.maps:
        assert one.value_norms.dtype == np.float32 and (one.value_norms > 0).all()


SHAPES = ((2, 3, 7, 5), (3, 8, 4, 1), (3, 8, 4, 20), (1, 1, 1, 3), (0, 4, 6, 5), (2, 3, 7, 0))


def test_wide_and_narrow_heads_and_layers_without_any():
    random = torch.manual_seed(0)
    for heads, width, inner, keys in SHAPES:
        v = torch.randn(1, heads, keys, width, generator=random)
        out = torch.randn(inner, heads * width, generator=random)
        parts = out.view(inner, heads, width)
        expected = torch.einsum("hkd,ehd->hke", v[0], parts).norm(dim=-1)
        torch.testing.assert_close(value_norms(v, out), expected, rtol=1e-5, atol=1e-6)


def test_weights_kept_themselves_bring_them_too(tmp_path):
    model = opened(tmp_path / "m", build("decoder", "tanh"))
    prompt, _ = prompts(model)
    lazy = finish(tasks.capture(model, prompt))
    dense = finish(tasks.capture(model, prompt, tmp_path / "dense.h5", dense=True))
    for one, two in zip(lazy.maps, dense.maps, strict=True):
        assert isinstance(two, DenseMap)
        np.testing.assert_allclose(two.value_norms[...], one.value_norms, rtol=1e-5)


def test_a_pruned_layer_has_those_of_the_heads_it_kept(tmp_path):
    model = opened(tmp_path / "m", build("encoder", "softmax"))
    off = frozenset({HeadId(0, 1), HeadId(0, 4)})
    finish(tasks.prune(tmp_path / "m", off, tmp_path / "small"))
    small = open_model(tmp_path / "small")
    prompt, _ = prompts(model)
    whole = finish(tasks.capture(model, prompt)).maps[0]
    left = finish(tasks.capture(small, prompt)).maps[0]
    kept = [head for head in whole.heads if head not in (1, 4)]
    assert left.heads == tuple(kept)
    np.testing.assert_allclose(left.value_norms, whole.value_norms[kept], rtol=1e-5)


@pytest.mark.parametrize("family", ["decoder", "hourglass", "both"])
def test_a_text_that_grows_has_those_of_the_whole_text(family, tmp_path):
    model = opened(tmp_path, build(family, "softmax"))
    ids = np.random.default_rng(1).integers(0, 23, 13)
    first = model.from_ids(ids[:6])
    source = model.from_ids(ids[:9]) if model.spec.two_texts else None
    target = None if source is None else first
    writing = Writing(model, first if source is None else source, target)
    for _ in writing.read():
        pass
    for one in ids[6:]:
        writing.add(int(one))
    whole = model.from_ids(ids)
    finished = finish(
        tasks.capture(model, source or whole, target=None if source is None else whole)
    )
    for index, one in enumerate(finished.maps):
        found = writing.factors(index).value_norms
        np.testing.assert_allclose(found, one.value_norms, rtol=1e-4, atol=1e-6)


def test_they_come_back_from_a_file_bit_by_bit_and_are_checked(tmp_path):
    capture = make_capture("Some text. " * 9, strides=(1, 2), heads=2)
    norms = [
        np.random.default_rng(at).random((one.shape[0], one.shape[2]), np.float32)
        for at, one in enumerate(capture.maps)
    ]
    maps = tuple(
        type(one)(replace(one.factors, value_norms=given), one.heads)
        for one, given in zip(capture.maps, norms, strict=True)
    )
    path = write_capture(tmp_path / "a.h5", replace(capture, maps=maps))
    for one, given in zip(open_capture(path).maps, norms, strict=True):
        assert (one.value_norms[...] == given).all() and (one.value_norms[1] == given[1]).all()
    again = write_capture(tmp_path / "b.h5", open_capture(path))
    assert (open_capture(again).maps[2].value_norms[...] == norms[2]).all()
    copy = tmp_path / "c.h5"
    copy.write_bytes(path.read_bytes())
    with h5py.File(copy, "r+") as file:
        file["layers/000/value_norms"][0, 3] += 1
    damaged = open_capture(copy)
    assert (damaged.maps[0].read(0) == capture.maps[0].read(0)).all()
    with pytest.raises(HgvizError, match="not what was written"):
        damaged.maps[0].value_norms[0]


def test_captures_of_before_and_of_other_programs_have_none(tmp_path):
    capture = make_capture("Some text. ", strides=(1,), heads=1)
    path = write_capture(tmp_path / "a.h5", capture)
    assert all(one.value_norms is None for one in open_capture(path).maps)


def test_a_file_with_as_many_as_it_has_not_keys_is_refused(tmp_path):
    path = write_capture(tmp_path / "a.h5", make_capture("Some text. ", strides=(1,), heads=2))
    with h5py.File(path, "r+") as file:
        file["layers/000/value_norms"] = np.zeros((2, 5), "f4")
    with pytest.raises(HgvizError, match="instead of"):
        open_capture(path)
