"""What it costs to bring tokens together, counted by hand."""

import pytest

from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from hgviz.models.formats.own import parse_config
from hgviz.models.measures.complexity import mixings
from hgviz.models.measures.timing import timed
from tests.models.building import PLAIN, make_config, write_unattending


def counted(n, **keys):
    """The rows of a model, but the fields that a test says nothing of."""
    rows = mixings(parse_config({"vocab_size": 23, "d_model": 12, **keys}), n)
    return [(one.at, one.layers, one.path, one.sequential, one.order, one.work) for one in rows]


def test_an_lstm_takes_a_step_for_each_token():
    assert counted(100, family="lstm", n_layers=2) == [
        ("1:1", 2, 99, 100, "n d²", 2 * 8 * 100 * 12 * 12)
    ]


@pytest.mark.parametrize(
    ("window", "causal", "needed"), [(5, True, 25), (5, False, 50), (100, True, 1), (2, True, 99)]
)
def test_windows_need_layers_to_come_across(window, causal, needed):
    rows = counted(100, family="window", n_layers=3, window=window, causal=causal)
    assert rows == [("1:1", 3, needed, 1, "n w d²", 3 * 100 * window * 12 * 12)]


def test_attention_takes_one_step_and_the_square():
    rows = counted(100, **{**PLAIN, "family": "gpt2"})
    assert rows == [("1:1", 2, 1, 1, "n² d", 2 * 2 * 100 * 100 * 12)]
    rows = counted(100, **{**PLAIN, "family": "gpt2", "activations": "linear"})
    assert rows == [("1:1", 2, 1, 1, "n d_head d", 2 * 200 * 12 * 6)]


def test_an_hourglass_pays_by_the_square_of_its_factor_and_lags():
    config = make_config(hierarchy="1@1 2@4 1@1", downsampling="average", upsampling="repeat")
    rows = mixings(config, 100)
    assert [(one.at, one.layers, one.order, one.work, one.lag) for one in rows] == [
        ("1:1", 1, "n² d", 2 * 100 * 100 * 12, 0),
        ("1:4", 2, "(n/4)² d", 2 * 2 * 25 * 25 * 12, 3),
        ("1:1", 1, "n² d", 2 * 100 * 100 * 12, 0),
    ]
    resampled = mixings(make_config(hierarchy="1@1 1@4 1@1"), 100)
    assert [(one.at, one.order) for one in resampled][1::2] == [
        ("1:1 → 1:4", "n/4 · n d"), ("1:4 → 1:1", "n · n/4 d"),
    ]  # fmt: skip
    both = mixings(make_config(hierarchy="1@1 1@4 1@1", causal=False), 100)
    assert not any(one.lag for one in both)
    within = mixings(make_config(hierarchy="1@1 1@4 1@1", form="windowed", positions="none"), 100)
    assert [(one.way, one.work) for one in within][1] == ("attention within 4", 2 * 100 * 12)


def test_other_texts_and_slots_have_their_own_sizes():
    rows = mixings(parse_config({**PLAIN, "family": "transformer"}), 10, 30)
    assert [(one.at, one.order, one.work) for one in rows] == [
        ("source", "n² d", 2 * 2 * 30 * 30 * 12),
        *[("target", "n² d", 2 * 10 * 10 * 12), ("source → target", "n m d", 2 * 10 * 30 * 12)] * 2,
    ]
    slotted = {**PLAIN, "family": "yubert", "labels": ["a", "b"], "slots": 4, "n_layers": 1}
    (row,) = mixings(parse_config(slotted), 100)
    assert (row.at, row.order, row.work) == ("4 slots", "n r d", 2 * 100 * 4 * 12)


def test_what_depends_on_the_text_is_not_counted():
    keys = {"family": "dynamic", "vocab_size": 256, "d_model": 12, "n_heads": 2}
    rows = mixings(parse_config({**keys, "n_layers": [1, 2, 1], "boundaries": "whitespace"}), 100)
    assert [one.facts()["work"] for one in rows] == [2 * 100 * 100 * 12, None, 2 * 100 * 100 * 12]
    assert [one.order for one in rows] == ["n² d", "s² d", "n² d"]


def test_models_take_turns_at_every_length(tmp_path):
    model = open_model(write_unattending(tmp_path, family="lstm", max_positions=8))
    found = finish(timed([model, model], [4, 8], turns=1))
    assert [len(row) for row in found] == [2, 2] and min(map(min, found)) > 0
    with pytest.raises(HgvizError, match="at most 8"):
        finish(timed([model], [4, 9]))
