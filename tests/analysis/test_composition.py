"""All maps composed, against whole matrices, for every form of model and every choice."""

import tempfile
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from hgviz import tasks
from hgviz.analysis import composition
from hgviz.analysis.composition import (
    Rollout,
    rollout,
    sums_of,
)
from hgviz.core import HeadId, HgvizError, RolloutOptions
from hgviz.models import open_model
from tests.analysis.planting import (
    SENTENCE,
    funnel,
    hourglass,
    letters,
    plant,
    segmented,
    translated,
)
from tests.making import make_capture
from tests.models import zoo
from tests.progress import cancelled, steps_of

TEXT = letters("The hourglass was used at sea. When")
OPTIONS = [
    RolloutOptions(),
    RolloutOptions(residual=0.3),
    RolloutOptions(residual=1.0),
    RolloutOptions(fuse="max"),
    RolloutOptions(fuse="min", residual=0.8),
    RolloutOptions(heads=(HeadId(0, 1), HeadId(2, 0))),
    RolloutOptions(nothing=True),
    RolloutOptions(nothing=True, residual=0.25, fuse="max"),
    RolloutOptions(signed=True),
]


def text(count):
    return replace(
        TEXT, text=TEXT.text[:count], ids=TEXT.ids[:count], pieces=TEXT.pieces[:count],
        spans=TEXT.spans[:count],
    )  # fmt: skip


# --- whole matrices -------------------------------------------------------------------------------


def rn(matrix):
    sums = matrix.sum(1, keepdims=True)
    return np.divide(matrix, sums, out=np.zeros(matrix.shape), where=sums > 0)


def fused(capture, layer, options):
    """The map of a layer as a whole matrix; None where no head is on."""
    heads = [head for head in layer.heads if (layer.index, head) not in capture.off]
    heads = [head for head in heads if (layer.index, head) in options.heads] or heads
    if layer.cuts or not heads:
        return None
    maps = np.stack([capture.maps[layer.index].read(head) for head in heads]).astype(float)
    if options.signed:
        return maps.mean(0)
    maps = np.stack([rn(np.abs(one)) for one in maps])
    return maps.mean(0) if options.fuse == "mean" else rn(getattr(maps, options.fuse)(0))


def dense(capture, options):
    """Every sum of a model written out over whole matrices, by the names and roles of layers."""
    maps = {one.name: fused(capture, one, options) for one in capture.spec.layers}
    maps = {name: one for name, one in maps.items() if one is not None}
    a, b = (1, 1) if options.signed else (options.residual, 1 - options.residual)
    norm = rn if options.divides else np.asarray
    if capture.target is not None:
        return _two_texts(capture, maps, a, b)
    if capture.spec.form == "patches":
        return _patches(capture, maps, a, b)
    return _level(capture, maps, a, b, norm, 0, len(capture.prompt))


def _stack(maps, a, b, stem, rows):
    for name, one in maps.items():
        rows = b * one @ rows + a * rows if name.startswith(stem) else rows
    return rows


def _level(capture, maps, a, b, norm, index, n):
    spec = capture.spec
    if index == len(spec.levels) - 1:
        return _stack(maps, a, b, "middle", np.eye(n))
    if spec.form == "dynamic":
        before, after = "pre", "post"
        e, s, p, u = np.eye(n), np.eye(n), *_segments(capture)
    else:
        before, after = f"pre.{index}.", f"post.{index}."
        k = spec.levels[index + 1].stride // spec.levels[index].stride
        groups = -(-n // k)
        e = np.eye(groups * k, n)
        s = np.eye(groups * k, k=-spec.levels[index + 1].shift)
        p, u = (np.kron(np.eye(groups), one) for one in (np.full((1, k), 1 / k), np.ones((k, 1))))
    down, up = maps.get(f"down.{index}"), maps.get(f"up.{index}")
    before = _stack(maps, a, b, before, np.eye(n))
    start = e if spec.form == "official" else e @ before  # what row sums are measured from
    short = norm(p @ s @ start) if down is None else norm((a * p + b * down) @ s @ start)
    inner = _level(capture, maps, a, b, norm, index + 1, len(p)) @ short
    out = norm(u @ inner)
    if spec.form != "official":
        out = norm(a * start + b * out)
        out = out if up is None else norm(a * out + b * norm(up @ inner))
        return _stack(maps, a, b, after, out[:n])
    if up is not None:
        out = start if spec.upsampling == "none" else a * start + b * out
        out = a * out + b * norm(up @ inner)
    return _stack(maps, a, b, after, norm(a * start + b * out)[:n] @ before)


def _segments(capture):
    ends = np.flatnonzero(capture.prompt.boundaries)
    n, start, mask = len(capture.prompt), 0, capture.prompt.attention_mask
    p, u = np.zeros((len(ends) + 1, n)), np.zeros((n, len(ends) + 1))
    for segment, end in enumerate(ends, 1):
        inside = [at for at in range(start, end + 1) if mask is None or mask[at]]
        p[segment, inside] = 1 / len(inside)
        start = end + 1
    for token in range(n):
        u[token, (ends <= token).sum()] = 1
    return p, u


def _two_texts(capture, maps, a, b):
    n, m = len(capture.prompt), len(capture.target)
    source = _stack(maps, a, b, "encoder", np.eye(n, n + m))
    target = np.eye(m, n + m, k=n)
    for name, one in maps.items():
        if name.startswith("decoder"):
            target = b * one @ (source if name.endswith("cross") else target) + a * target
    return target


def _patches(capture, maps, a, b):
    spans, parts = capture.spans[-1], capture.spec.levels[1].parts
    pool = np.zeros((len(spans), len(capture.prompt)))
    for row, (start, stop) in enumerate(spans):
        pool[row, start:stop] = 1 / (stop - start)
    pool, out, deep = pool.repeat(parts, 0), np.eye(len(capture.prompt)), None
    for layer in capture.spec.layers:
        one = maps.get(layer.name)
        if layer.role == "down":  # the last one counts
            short = (pool if one is None else b * one + a * pool) @ out
            deep = short.reshape(len(spans), parts, -1).mean(1)
        elif one is not None and layer.role == "up":
            out = a * out + b * one @ deep.repeat(parts, 0)
        elif one is not None and layer.level:
            deep = a * deep + b * one @ deep
        elif one is not None:
            out = a * out + b * one @ out
    return out


# --- every family ---------------------------------------------------------------------------------


def plain(signed=False, causal=True, holes=False):
    random = np.random.default_rng(1)
    maps = [random.normal(size=(3, 9, 9)) if signed else random.dirichlet(np.ones(9), (3, 9))
            for _ in range(3)]  # fmt: skip
    maps = [np.tril(one) if causal else one for one in maps]
    if holes:
        maps[1][:, 4] = 0
    capture = plant(text(9), maps, causal=causal, signed=signed)
    layers = [replace(layer, activations=("sigmoid",) * 3) for layer in capture.spec.layers]
    return replace(capture, spec=replace(capture.spec, layers=tuple(layers)))  # sums are not 1


@cache
def byte_model(mode):
    with tempfile.TemporaryDirectory() as folder:
        return open_model(zoo.write_blt(folder, **zoo.MODES[mode]), dtype="float64")


@cache
def patched(mode, length, off=frozenset()):
    model = byte_model(mode)
    return tasks.capture(model, model.from_ids(zoo.bytes_of(length)), off=off)


def switched_off(capture, *heads):
    return replace(capture, off=frozenset(HeadId(*head) for head in heads))


def masked():
    mask = np.ones(len(SENTENCE), bool)
    mask[[2, 3, 20]] = False
    return segmented("words", mask)


FAMILIES = {
    "causal": plain,
    "bidirectional": lambda: plain(causal=False),
    "a row without keys": lambda: plain(holes=True),
    "signed weights": lambda: plain(signed=True),
    "heads off": lambda: switched_off(plain(), (0, 1), *((1, head) for head in range(3))),
    "encoder-decoder": lambda: translated(text(3), text(9)),
    "signed encoder-decoder": lambda: translated(text(6), text(4), signed=True),
    "decoder over given states": lambda: translated(text(7), text(4), encoder=0),
    **{f"{form} {'down ' * down}{'up ' * up}{'causal' * causal}":
       lambda kind={"form": form, "down": down, "up": up, "causal": causal}:
       hourglass(text(23), (1, 2, 6), **kind)
       for form in ("official", "windowed") for down, up, causal in (
           (True, True, True), (False, False, False), (True, False, True), (False, True, False))},
    "one token": lambda: hourglass(text(1), (1, 3, 6)),
    "attention alone goes up": lambda: hourglass(text(17), (1, 3, 6), upsampling="none"),
    "hourglass, heads off": lambda: switched_off(
        hourglass(text(20), (1, 2)), (0, 0), (1, 0), (1, 1), (2, 1), (3, 0), (3, 1)),
    "hourglass, captured": lambda: make_capture(SENTENCE),
    **{f"segments: {name}": lambda name=name: segmented(name) for name in ("none", "of threes")},
    "segments, masked": masked,
    "segments, heads off": lambda: switched_off(segmented("words"), (2, 0), (3, 0), (3, 1)),
    **{f"patches: {mode} {n}": lambda mode=mode, n=n: patched(mode, n)
       for mode, n in (*((mode, 33) for mode in zoo.MODES), ("one part", 1))},
    "patches, heads off": lambda: patched("two parts", 12, frozenset(
        {HeadId(0, 2), HeadId(6, 1)} | {HeadId(at, h) for at in (4, 9) for h in range(4)})),
}  # fmt: skip


@pytest.mark.parametrize(("name", "in_blocks"), [
    *((name, False) for name in FAMILIES), *((name, True) for name in list(FAMILIES)[::3])
])  # fmt: skip
def test_every_family_equals_whole_matrices_for_every_choice(name, in_blocks, monkeypatch):
    if in_blocks:
        monkeypatch.setattr(composition, "CACHED_CELLS", 0)
        monkeypatch.setattr(composition, "BLOCK", 7)
        monkeypatch.setattr(composition, "ENDS", 4)
    capture = FAMILIES[name]()
    row = len(capture.main) - 1
    for options in OPTIONS[:: 3 if in_blocks else 1]:
        if options.heads and not set(options.heads) <= set(capture.spec.heads) - capture.off:
            continue
        wanted = dense(capture, options)
        close = {"atol": 1e-6 * max(1, np.abs(wanted).max())}
        composing = Rollout(capture, options)
        found, single = composing.rows(), composing.row(row)
        assert found.weights.dtype == np.float32 and not found.weights.flags.writeable
        np.testing.assert_allclose(found.weights, wanted, **close)
        for rows in (composing.rows((row, row + 1)), single):
            np.testing.assert_allclose(rows.weights, wanted[row:], **close)
        if all(one.causal or one.window for one in capture.spec.layers):
            assert not np.triu(found.weights, 1).any()
        if options.signed:
            assert not found.level_shares.size and not single.parts
            continue
        np.testing.assert_allclose(found.nothing, np.maximum(0, 1 - wanted.sum(1)), atol=1e-6)
        if options.nothing:
            column = rollout(capture, options=options)[:, -1]
            np.testing.assert_allclose(column, 1 - wanted.sum(1), atol=1e-6)
        if capture.target is not None:
            source = wanted[:, : len(capture.prompt)].sum(1)
            np.testing.assert_allclose(found.source, source, atol=1e-6)
        # a row is the sum of what went no further in than each level
        shares = single.level_shares[..., 0]
        np.testing.assert_allclose(shares, found.level_shares[..., row], atol=1e-9)
        if single.parts:
            np.testing.assert_allclose(sum(single.parts), single.weights[0], atol=1e-7)
        if single.parts and not options.nothing:  # what is lost further out counts as gone through
            sums = [part.sum(dtype=float) for part in single.parts]
            through = -np.diff([1 - single.nothing[0], *shares.sum(1), 0])
            np.testing.assert_allclose(sums, through, atol=1e-6)
    for node in sums_of(capture):
        rows = np.random.default_rng(0).random((2, node.length))
        for _, source, operator in node.terms:
            if operator is not None:  # both ways it is one matrix
                values = np.random.default_rng(1).random(source.length)
                right, left = operator @ values, rows @ operator
                assert right.shape == (node.length,) and left.shape == (2, source.length)
                np.testing.assert_allclose(left @ values, rows @ right, atol=1e-9)


# --- words, captures, and what cannot be ----------------------------------------------------------


def test_a_cancelled_rollout_goes_on_where_it_was(monkeypatch):
    monkeypatch.setattr(composition, "BLOCK", 4)
    composing = Rollout(hourglass(text(23), (1, 2)))
    cancelled(composing.all_rows, when=lambda step: step.done > 12)
    done = list(composing._blocks)
    assert 0 < len(done) < 6
    again = steps_of(composing.all_rows)
    assert again[0].done == 4 * len(done) and composing.all_rows() is composing.all_rows()
    np.testing.assert_array_equal(composing.all_rows().weights[:4], done[0].weights)
    np.testing.assert_allclose(composing.all_rows().weights, rollout(composing.capture), atol=1e-7)


SMALL = hourglass(text(12), (1, 2))


REFUSED = [
    (replace(SMALL, maps=(SMALL.maps[0], None, *SMALL.maps[2:])), {}, "layers 1 are not"),
    (SMALL, {"rows": (4, 13)}, "it has tokens 0 to 11"),
    (translated(text(7), text(4)), {"rows": (0, 5)}, "it has tokens 0 to 3"),
    (replace(SMALL, spec=replace(SMALL.spec, form="strange")), {}, "levels of a strange model"),
    (funnel((1, 1)), {}, "does not support the levels of a funnel model"),
    (replace(SMALL, spans=(SMALL.spans[0][:11], *SMALL.spans[1:])), {},
     "its maps are 12 x 12, not 11 x 11"),
    (SMALL, {"options": RolloutOptions(heads=(HeadId(9, 0),))}, r"cannot use head 9\.0"),
    (switched_off(SMALL, (0, 1)), {"options": RolloutOptions(heads=(HeadId(0, 1),))},
     "switched off"),
]  # fmt: skip


def test_what_cannot_be_composed_is_said():
    for capture, asked, message in REFUSED:
        with pytest.raises(HgvizError, match=message) as error:
            rollout(capture, **asked)
        assert error.value.do and "\n" not in str(error.value)


def test_options_that_cannot_be_are_said():
    for wrong, message in (
        ({"residual": 1.5}, "cannot be 1.5"), ({"residual": float("nan")}, "cannot be nan"),
        ({"fuse": "median"}, "median"), ({"signed": True, "fuse": "max"}, "cannot be combined"),
        ({"signed": True, "nothing": True}, "cannot be combined with"),
    ):  # fmt: skip
        with pytest.raises(HgvizError, match=message):
            RolloutOptions(**wrong)
