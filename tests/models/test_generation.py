"""What is written token by token has the rows and logits of a pass over the whole text."""

import numpy as np
import pytest

from hgviz.core import HeadId, HgvizError
from hgviz.maps import LazyMap
from hgviz.models.generation import Writing, chosen
from tests.models.building import make_config, make_hourglass, make_transformer
from tests.models.test_capturing import FAMILIES, WIDTHS, build, opened
from tests.models.test_causality import FORMS, NESTED, ONE

HOURGLASSES = {
    **FORMS,
    "windowed, rotary": {"hierarchy": NESTED, "form": "windowed", "positions": "rotary"},
    "windowed, linear up": {
        "hierarchy": NESTED, "form": "windowed", "positions": "none",
        "attention_upsampling": "linear",
    },
    "official, nothing": {"hierarchy": NESTED, "positions": "none"},
}  # fmt: skip
DECODER = {"family": "gpt2", "form": "decoder", "max_positions": 40}
PLAIN = {
    "learned": DECODER,
    "sinusoidal": {**DECODER, "positions": "sinusoidal"},
    "rotary": {**DECODER, "positions": "rotary"},
    "none": {**DECODER, "positions": "none"},
    "rows that need not sum to 1": {
        **DECODER,
        "n_heads": 3,
        "activations": ["softmax1", "softpick", "sigmoid"],
    },
    "quadratic": {**DECODER, "positions": "quadratic", "activations": ["softmax", "rbf"]},
    "quadratic alone": {**DECODER, "positions": "quadratic", "content": False},
    "without limit": {**DECODER, "positions": "rotary", "max_positions": None},
    "post-norm": {**DECODER, "norm_first": False, "embed_norm": True, "final_norm": False},
    "segments": {**DECODER, "segments": 2},
    "not tied": {**DECODER, "tied": False, "depth_scaled": True},
    "some heads": {**DECODER, "n_heads": 3, "kept": [[1, 2], []]},
    "both": {"family": "transformer", "n_layers": 1, "decoder_layers": 2},
    "both, rotary": {"family": "transformer", "positions": "rotary"},
    "cross": {"family": "transformer", "form": "decoder", "cross": True, "tied": False},
}
WRITERS = ("hourglass", "windowed", "compat", "decoder", "both", "cross")
CLOSE = {"float64": 1e-12, "float32": 1e-6}
DEEPER = 3.0  # queries and keys within, in models whose scores go up to 15


def texts(model, tokens=19):
    """Ids to go on with, and what stands before them: a model's other text, padding in it too."""
    random = np.random.default_rng(5)
    # no token twice: where positions are none, topk has to choose among equal scores
    ids = np.concatenate([random.permutation(23), random.integers(0, 23, tokens)])[:tokens]
    mask = np.arange(11) > 1
    if model.takes_states:
        return ids, model.from_states(random.normal(size=(11, model.spec.width)), mask)
    if model.spec.two_texts:
        return ids, model.from_ids(random.integers(0, 23, 11), mask)
    return ids, None


def written(model, ids, other, begin, off=frozenset()):
    """A text of which so many tokens were there and the rest was added; logits of every step."""
    given = model.from_ids(ids[:begin])
    writing = Writing(model, *((given, None) if other is None else (other, given)), off)
    for _ in writing.read():
        pass
    found = [writing.logits]
    for token in ids[begin:]:
        writing.add(int(token))
        found.append(writing.logits)
    return writing, np.stack(found)


def whole(model, ids, other, off=frozenset()):
    """Logits and factors of one pass."""
    tapped, given = {}, model.from_ids(ids)
    pair = (given, None) if other is None else (other, given)
    trace = model.trace(*pair, off=off, tap=tapped.__setitem__)
    while True:
        try:
            next(trace)
        except StopIteration as end:
            return end.value, tapped


def differ(one, two, scale=None):
    """The largest difference, beside the largest number."""
    if not two.size:
        return 0.0
    scale = np.abs(two).max() if scale is None else scale
    return np.abs(one.astype(np.float64) - two).max() / max(1.0, scale)


def agree(model, begin, off=frozenset(), tokens=19):
    """Every logit and every row are those of one pass over the text."""
    ids, other = texts(model, tokens)
    writing, logits = written(model, ids, other, begin, off)
    expected, tapped = whole(model, ids, other, off)
    close = CLOSE[model.dtype]
    assert differ(logits, expected[begin - 1 :]) <= close
    for layer in model.spec.layers:
        same_rows(writing.factors(layer.index), tapped[layer.index], layer, DEEPER * close)


def same_rows(found, expected, layer, close):
    rows, keys = found.q.shape[1], found.k.shape[1]
    # a pass pads the last group on the way up; these rows come when their tokens do
    assert rows <= expected.q.shape[1] < rows + max(layer.window or 1, 6)
    assert keys == expected.k.shape[1]
    assert differ(found.q, expected.q[:, :rows]) <= close
    assert differ(found.k[...], expected.k[...]) <= close  # heads may share keys
    for name in ("stat", "norm"):
        one, two = getattr(found, name), getattr(expected, name)
        assert (one is None) == (two is None)
        if one is not None:
            seen = np.isfinite(one)
            assert np.array_equal(seen, np.isfinite(two[:, :rows]))
            assert differ(one[seen], two[:, :rows][seen]) <= max(close, 1e-6)  # they are float32
    one, two = LazyMap(found, layer.heads), LazyMap(expected, layer.heads)
    assert one.verify_max_abs < 1e-4
    for head in layer.heads:
        assert differ(one.read(head), two.read(head, (0, rows)), 1.0) < 2e-5


# --- the matrix -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("changes", HOURGLASSES.values(), ids=HOURGLASSES.keys())
def test_an_hourglass_writes_as_it_reads(tmp_path, changes, dtype):
    model = opened(tmp_path, make_hourglass(make_config(**changes)), dtype)
    for begin in (1, 5, 12) if dtype == "float64" else (5,):
        agree(model, begin)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("keys", PLAIN.values(), ids=PLAIN.keys())
def test_a_decoder_writes_as_it_reads(tmp_path, keys, dtype):
    model = opened(tmp_path, make_transformer(**keys), dtype)
    for begin in (1, 7) if dtype == "float64" else (7,):
        agree(model, begin)


@pytest.mark.parametrize("activation", ["six", "unlike", "kernels", "by layer", "topk", "linear"])
@pytest.mark.parametrize("family", WRITERS)
def test_every_activation_writes_as_it_reads(tmp_path, family, activation):
    model = opened(tmp_path, build(family, activation), "float64")
    for begin in (1, 8):
        agree(model, begin)


@pytest.mark.parametrize("family", WRITERS)
def test_heads_switched_off_are_off_in_every_row(tmp_path, family):
    model = opened(tmp_path, build(family, "six"), "float64")
    agree(model, 6, frozenset({HeadId(0, 1), HeadId(len(model.spec.layers) - 1, 4)}))
    agree(model, 6, frozenset(model.spec.heads))


def test_many_tokens_outgrow_every_room(tmp_path):
    changes = {"hierarchy": ONE, "activations": ["softmax", "linear"]}
    agree(opened(tmp_path / "a", make_hourglass(make_config(**changes)), "float64"), 3, tokens=150)
    keys = {**DECODER, "positions": "rotary", "max_positions": None}
    agree(opened(tmp_path / "b", make_transformer(**keys), "float64"), 1, tokens=150)


def test_half_precision_writes(tmp_path):
    for family in ("hourglass", "decoder"):
        model = opened(tmp_path / family, build(family, "unlike"), "bfloat16")
        ids, other = texts(model)
        writing, logits = written(model, ids, other, 5)
        assert np.isfinite(logits).all()
        for layer in model.spec.layers:
            maps = LazyMap(writing.factors(layer.index), layer.heads)
            assert writing.factors(layer.index).dtype == "bfloat16"
            assert np.isfinite(maps.read(layer.heads[0])).all()


# --- what is shown while it writes ----------------------------------------------------------------


def test_rows_that_come_change_nothing_in_what_was_handed_out(tmp_path):
    model = opened(tmp_path, build("hourglass", "unlike"), "float64")
    ids, _ = texts(model, 40)
    writing = Writing(model, model.from_ids(ids[:3]))
    for _ in writing.read():
        pass
    kept = []
    for token in ids[3:]:
        found = [writing.factors(layer.index) for layer in model.spec.layers]
        kept.append((found, [(one.q.copy(), one.k.copy(), one.stat.copy()) for one in found]))
        writing.add(int(token))
    for found, copies in kept:
        for one, (q, k, stat) in zip(found, copies, strict=True):
            assert np.array_equal(one.q, q) and np.array_equal(one.k, k)
            assert np.array_equal(one.stat, stat)
            with pytest.raises(ValueError, match="read-only"):
                one.q[:] = 0


def test_a_level_gains_a_row_when_its_group_is_complete(tmp_path):
    model = opened(tmp_path, make_hourglass(make_config(hierarchy=NESTED)), "float64")
    ids, _ = texts(model)
    writing = Writing(model, model.from_ids(ids[:1]))
    for _ in writing.read():
        pass
    for n, token in enumerate(ids[1:], start=2):
        writing.add(int(token))
        spans = model.spans(writing.text)
        for layer in model.spec.layers:
            rows, stride = writing.factors(layer.index).q.shape[1], (1, 3, 6)[layer.level]
            # group g is the tokens up to g stride, since keys are shifted by stride - 1
            assert rows == (n - 1) // stride + 1 == len(spans[layer.level])


# --- choosing -------------------------------------------------------------------------------------


def test_the_likeliest_token_follows_or_one_is_drawn():
    logits = np.array([0.0, 2.0, 1.0, -np.inf], np.float32)
    assert chosen(logits, None, 1.0) == 1
    drawn = np.random.default_rng(0)
    counts = np.bincount([chosen(logits, drawn, 0.5) for _ in range(4000)], minlength=4) / 4000
    expected = np.exp(logits / 0.5) / np.exp(logits / 0.5).sum()
    assert np.abs(counts - expected).max() < 0.03 and counts[3] == 0
    cold = {chosen(logits, drawn, 1e-3) for _ in range(50)}
    assert cold == {1}
    for bad in (np.nan, np.inf):
        with pytest.raises(HgvizError, match="no numbers"):
            chosen(np.array([0.0, bad], np.float32), None, 1.0)


class Highest:
    """Draws the number below 1 that is nearest to it."""

    def random(self):
        return float(np.nextafter(1.0, 0.0))


def test_no_draw_is_a_token_that_cannot_be():
    logits = np.array([1.0, 0.5, -np.inf, -np.inf])
    assert chosen(logits, Highest(), 1.0) == 1


# --- what cannot be written -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"family": "bert", "goal": "classes", "labels": ["a", "b"]}, "classifier"),
        ({"family": "bert", "goal": "masked"}, "both ways"),
        ({"family": "bert", "goal": "states"}, "both ways"),
        ({**DECODER, "goal": "states"}, "hidden states"),
        (FAMILIES["slots"], "projected sequences cannot write"),
    ],
)
def test_a_model_that_says_no_next_token_cannot_write(tmp_path, keys, why):
    model = opened(tmp_path, make_transformer(**{**WIDTHS, **keys}))
    with pytest.raises(HgvizError, match=why):
        Writing(model, model.from_ids([1, 2, 3]))


def test_a_model_that_reads_both_ways_cannot_write(tmp_path):
    model = opened(tmp_path, build("bidirectional", "softmax"))
    with pytest.raises(HgvizError, match="both ways"):
        Writing(model, model.from_ids([1, 2, 3]))


def test_padding_cannot_be_gone_on_with(tmp_path):
    model = opened(tmp_path, build("decoder", "softmax"))
    with pytest.raises(HgvizError, match="2 of its tokens are masked"):
        Writing(model, model.from_ids([1, 2, 3], [0, 0, 1]))
