"""All maps composed: of models of one level and of several, and of a Byte Latent Transformer."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.analysis import composition, fusion, resolution
from hgviz.analysis.layout import Layout
from hgviz.analysis.resolution import Rollout, pool, rollout, spread
from hgviz.core import HeadId, HgvizError, RolloutOptions
from hgviz.figures.kinds.stages import stages_of
from hgviz.models import open_model
from tests.analysis.planting import Planted, hourglass, letters, plant, translated
from tests.closeness import scaled_error
from tests.models import patches as blt

TEXT = "The hourglass was used at sea. When the sand had run down, the bell was rung."


# --- a second implementation, by matrices ---------------------------------------------------------


def shift_matrix(n, s):
    return np.eye(n, k=-s)


def pool_matrix(n, k):
    return np.kron(np.eye(n // k), np.full((1, k), 1 / k))


def spread_matrix(n, k):
    return np.kron(np.eye(n // k), np.ones((k, 1)))


def rn(matrix):
    sums = matrix.sum(1, keepdims=True)
    return np.where(sums > 0, matrix / np.where(sums > 0, sums, 1), 0)


def reference(capture):
    """The whole map by full matrices; layers are found by their neutral names."""
    spec = capture.spec
    means = {
        layer.name: capture.maps[layer.index].weights.astype(np.float32).mean(0, dtype=np.float64)
        for layer in spec.layers
    }

    def product(stem, n):
        out = np.eye(n)
        for i in range(99):
            if (name := f"{stem}.{i}") in means:
                out = (means[name] + np.eye(n)) / 2 @ out
        return out

    def level(index, n):
        if index == len(spec.levels) - 1:
            return product("middle", n)
        k = spec.levels[index + 1].stride // spec.levels[index].stride
        padded = -(-n // k) * k
        e = np.eye(padded, n)
        s = shift_matrix(padded, spec.levels[index + 1].shift)
        p, u = pool_matrix(padded, k), spread_matrix(padded, k)
        before, after = product(f"pre.{index}", n), product(f"post.{index}", n)
        down, up = means.get(f"down.{index}"), means.get(f"up.{index}")
        short = rn(p @ s @ e) if down is None else rn((p @ s @ e + down @ s @ e) / 2)
        inner = level(index + 1, padded // k)
        if spec.form == "windowed":
            mixed = inner @ short @ before
            x = rn((e @ before + rn(u @ mixed)) / 2)
            if up is not None:
                x = rn((x + rn(up @ mixed)) / 2)
            return after @ x[:n]
        mixed = inner @ short
        if up is None:
            m = rn(u @ mixed)
        else:
            m = e if spec.upsampling == "none" else (e + rn(u @ mixed)) / 2
            m = (m + rn(up @ mixed)) / 2
        return after @ rn((m + e) / 2)[:n] @ before

    return level(0, len(capture.prompt))


FORMS = [
    {"form": form, "down": down, "up": up, "causal": causal}
    for form in ("official", "windowed")
    for down in (True, False)
    for up in (True, False)
    for causal in (True, False)
]


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("strides", [(1, 3), (1, 2, 4), (1, 2, 6)])
@pytest.mark.parametrize("tokens", [12, 23])
def test_all_levels_together_equal_the_matrices(kind, strides, tokens):
    capture = hourglass(letters(TEXT[:tokens]), strides, **kind)
    found = rollout(capture)
    assert found.dtype == np.float32 and not found.flags.writeable
    np.testing.assert_allclose(found, reference(capture), atol=2e-7)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    assert (found >= 0).all()
    if kind["causal"]:
        assert (np.triu(found, 1) == 0).all()
    rows = rollout(capture, (5, 8))
    np.testing.assert_allclose(rows, found[5:8], atol=1e-7)


@pytest.mark.parametrize("tokens", [1, 2, 3, 5])
@pytest.mark.parametrize("form", ["official", "windowed"])
def test_texts_shorter_than_a_group_compose(tokens, form):
    capture = hourglass(letters(TEXT[:tokens]), (1, 2, 4), form=form)
    np.testing.assert_allclose(rollout(capture), reference(capture), atol=2e-7)


@pytest.mark.parametrize("counts", [(0, 1), (2, 0), (2, 3)])
def test_any_number_of_layers_stands_before_and_after(counts):
    capture = hourglass(letters(TEXT[:17]), (1, 2, 4), counts=counts)
    np.testing.assert_allclose(rollout(capture), reference(capture), atol=2e-7)


@pytest.mark.parametrize("form", ["official", "windowed"])
def test_rows_of_padding_that_were_never_computed_change_nothing(form):
    capture = hourglass(letters(TEXT[:11]), (1, 3), form=form, down=True, up=True)
    at = next(one.index for one in capture.spec.layers if one.role == "up")
    short = Planted(capture.maps[at].weights[:, :11])
    written = replace(capture, maps=(*capture.maps[:at], short, *capture.maps[at + 1 :]))
    np.testing.assert_array_equal(rollout(written), rollout(capture))


def test_attention_alone_may_go_up():
    capture = hourglass(letters(TEXT[:17]), (1, 2, 4), upsampling="none")
    np.testing.assert_allclose(rollout(capture), reference(capture), atol=2e-7)


def test_what_was_captured_composes_as_the_matrices(capture):
    whole = replace(
        capture, maps=tuple(Planted(np.stack([m.read(h) for h in m.heads])) for m in capture.maps)
    )
    np.testing.assert_allclose(rollout(capture), reference(whole), atol=1e-6)


def test_blocks_and_held_maps_give_the_same(monkeypatch):
    capture = hourglass(letters(TEXT), (1, 2, 4))
    held = rollout(capture)
    monkeypatch.setattr(composition, "HELD", 0)
    monkeypatch.setattr(fusion, "ROWS", 7)
    np.testing.assert_allclose(rollout(capture), held, atol=1e-7)


def test_a_long_text_is_read_once_and_gives_the_same(capture, monkeypatch):
    whole = replace(
        capture, maps=tuple(Planted(np.stack([m.read(h) for h in m.heads])) for m in capture.maps)
    )
    monkeypatch.setattr(composition, "HELD", 0)
    monkeypatch.setattr(fusion, "ENDS", 4)
    monkeypatch.setattr(fusion, "ROWS", 16)
    found = rollout(capture)
    np.testing.assert_allclose(found, reference(whole), atol=1e-6)
    np.testing.assert_allclose(found.sum(1, dtype=np.float64), 1, atol=1e-6)


def test_a_plain_stack_is_the_product_of_half_map_half_identity():
    random = np.random.default_rng(1)
    maps = [random.dirichlet(np.ones(9), size=(3, 9)) for _ in range(4)]
    wanted = np.eye(9)
    for one in maps:
        wanted = (one.mean(0) + np.eye(9)) / 2 @ wanted
    capture = plant(letters(TEXT[:9]), maps, causal=False)
    np.testing.assert_allclose(rollout(capture), wanted, atol=1e-6)
    np.testing.assert_allclose(rollout(capture, slice(2, 4)), wanted[2:4], atol=1e-6)


def test_signed_maps_count_by_their_size():
    random = np.random.default_rng(2)
    raw = random.normal(size=(2, 6, 6))
    size = np.abs(raw) / np.abs(raw).sum(-1, keepdims=True)
    capture = plant(letters(TEXT[:6]), [raw], causal=False, signed=True)
    np.testing.assert_allclose(rollout(capture), (size.mean(0) + np.eye(6)) / 2, atol=1e-6)


def test_with_identity_maps_only_pooling_and_the_residual_are_left():
    for causal in (True, False):
        capture = hourglass(
            letters(TEXT[:11]), (1, 3), down=False, up=False, form="windowed", causal=causal,
            weights=lambda layer, seen: np.broadcast_to(np.eye(len(seen)), (2, *seen.shape)),
        )  # fmt: skip
        s = 2 if causal else 0
        e, p, u = np.eye(12, 11), pool_matrix(12, 3), spread_matrix(12, 3)
        closed = (e + rn(u @ p @ shift_matrix(12, s) @ e)) / 2
        np.testing.assert_allclose(rollout(capture), closed[:11], atol=1e-7)


def test_a_row_without_keys_keeps_only_its_residual():
    maps = np.tile(np.eye(5), (2, 1, 1))
    maps[:, 3] = 0
    found = rollout(plant(letters(TEXT[:5]), [maps]))
    np.testing.assert_array_equal(found[3], [0, 0, 0, 0.5, 0])


def test_heads_in_another_order_give_the_same():
    capture = hourglass(letters(TEXT[:20]), (1, 2, 4))
    turned = replace(capture, maps=tuple(Planted(m.weights[::-1]) for m in capture.maps))
    np.testing.assert_allclose(rollout(turned), rollout(capture), atol=1e-7)


def test_heads_that_are_off_do_not_count():
    capture = hourglass(letters(TEXT[:20]), (1, 2))
    first_only = replace(capture, maps=tuple(Planted(m.weights[:1]) for m in capture.maps))
    off = frozenset((layer.index, 1) for layer in capture.spec.layers)
    np.testing.assert_allclose(rollout(replace(capture, off=off)), rollout(first_only), atol=1e-7)
    everything = frozenset(capture.spec.heads)
    bare = hourglass(letters(TEXT[:20]), (1, 2), down=False, up=False, counts=(0, 0))
    silent = replace(capture, off=everything)
    gone = replace(bare, off=frozenset(bare.spec.heads))
    np.testing.assert_allclose(rollout(silent), rollout(gone), atol=1e-7)


# --- two texts ------------------------------------------------------------------------------------


def dense(capture):
    """Target rows over source, then target, from whole matrices, layer by layer."""
    n, m = len(capture.prompt), len(capture.target)
    source, target = np.eye(n, n + m), np.eye(m, n + m, k=n)
    for layer, found in zip(capture.spec.layers, capture.maps, strict=True):
        a = rn(np.abs(found.weights).astype(np.float32).astype(np.float64)[0])
        for one in found.weights[1:]:
            a = a + rn(np.abs(one).astype(np.float32).astype(np.float64))
        a /= len(found.weights)
        if layer.level == 0:
            source = (a @ source + source) / 2
        else:
            target = (a @ (source if layer.role == "cross" else target) + target) / 2
    return target


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("n", "m"), [(7, 4), (3, 9), (1, 1), (1, 5), (2, 1)])
@pytest.mark.parametrize("encoder", [2, 0])
def test_a_decoder_is_composed_with_its_encoder_as_whole_matrices_are(n, m, encoder, signed):
    capture = translated(letters(TEXT[:n]), letters(TEXT[:m]), encoder=encoder, signed=signed)
    found = rollout(capture)
    assert found.shape == (m, n + m)
    np.testing.assert_allclose(found, dense(capture), atol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)
    assert not np.triu(found[:, n:], 1).any()  # a decoder looks at none of its later tokens
    np.testing.assert_array_equal(rollout(capture, (m - 1, m)), found[m - 1 :])


def test_rows_of_a_decoder_count_the_tokens_of_its_own_text():
    capture = translated(letters(TEXT[:7]), letters(TEXT[:4]))
    with pytest.raises(HgvizError, match="it has 4 tokens"):
        rollout(capture, (0, 5))


# --- the operators --------------------------------------------------------------------------------


@given(st.integers(1, 5), st.integers(2, 5), st.integers(2, 4))
def test_pooling_and_spreading_are_the_matrices_of_the_design(groups, k1, k2):
    total = k1 * k2
    n = groups * total
    eye = np.eye(n)
    nested = pool(pool(eye, k1, k1 - 1), k2, k2 - 1)
    np.testing.assert_allclose(nested, pool(eye, total, total - 1), atol=1e-15)
    small = np.eye(groups)
    np.testing.assert_array_equal(spread(spread(small, k2), k1), spread(small, total))
    np.testing.assert_allclose(pool(spread(small, total), total), small, atol=1e-15)
    assert (spread(small, total).sum(1) == 1).all()
    assert (np.triu(spread(pool(eye, total, total - 1), total), 1) == 0).all()
    np.testing.assert_allclose(pool(eye, k1, 1), pool_matrix(n, k1) @ shift_matrix(n, 1))
    np.testing.assert_array_equal(spread(np.eye(n // k1), k1), spread_matrix(n, k1))


def test_powers_of_two_nest_without_any_rounding():
    nested = pool(pool(np.eye(32), 2, 1), 4, 3)
    np.testing.assert_array_equal(nested, pool(np.eye(32), 8, 7))


# --- what people may ask for and cannot have ------------------------------------------------------


def test_what_cannot_be_composed_is_said():
    capture = hourglass(letters(TEXT[:12]), (1, 2))
    with pytest.raises(HgvizError, match="layers 1 are not captured"):
        rollout(replace(capture, maps=(capture.maps[0], None, *capture.maps[2:])))
    with pytest.raises(HgvizError, match="it has 12 tokens"):
        rollout(capture, (4, 13))
    with pytest.raises(HgvizError, match="rows"):
        rollout(capture, (4, 4))
    with pytest.raises(HgvizError, match="levels of a strange model"):
        rollout(replace(capture, spec=replace(capture.spec, form="strange")))
    with pytest.raises(HgvizError, match="its maps are 12 x 12, the text 11 x 11"):
        spans = (capture.spans[0][:11], *capture.spans[1:])
        rollout(replace(capture, spans=spans))
    levels = (capture.spec.levels[0], replace(capture.spec.levels[1], sequence="slots"))
    with pytest.raises(HgvizError, match="does not say which tokens"):
        rollout(replace(capture, spec=replace(capture.spec, levels=levels)))


def test_a_very_long_text_is_composed_only_by_rows(monkeypatch):
    monkeypatch.setattr(resolution, "FULL_LIMIT", 10)
    capture = hourglass(letters(TEXT[:12]), (1, 2))
    with pytest.raises(HgvizError, match="Choose fewer rows"):
        rollout(capture)
    assert rollout(capture, (11, 12)).shape == (1, 12)


# --- the Byte Latent Transformer ------------------------------------------------------------------


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
        return tasks.capture(one, one.from_ids(blt.ids_of(length)), off=off)

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
    found = rollout(capture, recipe=RolloutOptions(residual=0.25))
    assert scaled_error(found, composed(capture, 0.25)) < 1e-6


@pytest.mark.parametrize("mode", ["one part", "two parts"])
def test_what_goes_through_patches_is_the_same_both_ways(made, mode):
    capture = made(mode, 33)
    found = Rollout(capture).composed()
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
