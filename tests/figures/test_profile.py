"""Profiles: every number is that of the heads, a mark each, and nothing of the text overlaps."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from hgviz import tasks
from hgviz.analysis.roles import roles
from hgviz.core import HeadId, HgvizError, parse_heads
from hgviz.figures import Spec, labels
from hgviz.figures.output import compose
from hgviz.tasks.profiling import profile_chart
from tests.analysis.planting import letters, plant
from tests.figures.flaws import require_tidy, texts
from tests.figures.texts import HOSTILE, SEA, capture_of, plain
from tests.making import make_capture

N = 24


def planted():
    """A layer whose heads are even and look back by one; one that looks at the first letter and at
    itself."""
    even = np.tril(np.ones((N, N)))
    even /= even.sum(1, keepdims=True)
    back = np.eye(N, k=-1)
    back[0, 0] = 1
    first = np.zeros((N, N))
    first[:, 0] = 1
    return plant(letters("abcdefghijklmnopqrstuvwx"), [
        np.stack([even, back]), np.stack([first, np.eye(N)])
    ])  # fmt: skip


def values_of(chart, name, side=0):
    metric = next(one for one in chart.metrics if one.name == name)
    return dict(zip(chart.sides[side].heads, metric.values[side], strict=True))


def test_rows_that_are_even_have_the_entropy_of_their_keys_and_single_keys_none():
    found = values_of(profile_chart([planted()], ["entropy"]), "entropy")
    even, back = found[HeadId(0, 0)], found[HeadId(0, 1)]
    # rows with few keys do not count: what does lies between the even rows of some and of all keys
    assert np.log(4) < even < np.log(N)
    np.testing.assert_allclose([back, found[HeadId(1, 1)]], 0, atol=1e-6)


def test_what_is_drawn_is_what_the_heads_measure():
    capture = capture_of("sea")
    facts = roles(capture)
    chart = profile_chart([capture], ["entropy", "distance", "offset"])
    for metric in chart.metrics:
        for head, value in zip(chart.sides[0].heads, metric.values[0], strict=True):
            np.testing.assert_equal(value, facts[head].metrics[metric.name])


def test_a_head_that_looks_back_by_one_is_one_letter_away():
    chart = profile_chart([planted()], ["distance", "previous", "same", "first"])
    assert values_of(chart, "distance")[HeadId(0, 1)] == pytest.approx(1, abs=1e-6)
    assert values_of(chart, "distance")[HeadId(1, 1)] == pytest.approx(0, abs=1e-6)
    assert values_of(chart, "previous")[HeadId(0, 1)] == pytest.approx(1, abs=1e-6)
    assert values_of(chart, "same")[HeadId(1, 1)] == pytest.approx(1, abs=1e-6)
    assert values_of(chart, "first")[HeadId(1, 0)] == pytest.approx(1, abs=1e-6)


def test_distances_of_coarse_levels_are_in_letters():
    """A head that looks back by one position at a level of four letters looks four letters back."""
    capture = capture_of("sea")
    chart = profile_chart([capture], ["previous", "distance"])
    spec = capture.spec
    previous, distance = (values_of(chart, name) for name in ("previous", "distance"))
    strides = {one.index: spec.levels[one.level].stride for one in spec.layers
               if one.role == "self"}  # fmt: skip
    checked = 0
    for head, share in previous.items():
        if share > 0.9 and head.layer in strides:
            assert distance[head] == pytest.approx(strides[head.layer], rel=0.35)
            checked += 1
    assert checked > 2


def test_heads_that_are_off_are_kept_out_of_the_mean_and_are_never_zero():
    off = HeadId(0, 0)
    chart = profile_chart([replace(planted(), off=frozenset({off}))], ["entropy"])
    side, values = chart.sides[0], chart.metrics[0].values[0]
    assert values[list(side.heads).index(off)] > 1
    assert side.mean(values, 0) == pytest.approx(0, abs=1e-6)
    assert any("1 head switched off" in note for note in chart.notes)
    rows = {(row[2], row[6]): row for row in chart.rows()}
    assert rows["0", "0.0"][7] == "yes" and rows["0", "0.1"][7] == ""


def test_nobody_asks_and_what_says_something_is_shown():
    names = [one.name for one in profile_chart([planted()]).metrics]
    assert names == ["entropy", "distance", "first", "previous", "same"]
    signed = [one.name for one in profile_chart([capture_of("signed")]).metrics]
    assert {"positive", "negative"} <= set(signed) and len(signed) <= 6


def page_of(chart, width="acl"):
    with labels.figure_settings():
        return compose(Spec("profile", width=width), chart)


def test_the_two_attentions_of_a_decoder_have_lines_of_their_own():
    page = page_of(profile_chart([capture_of("two texts")]))
    words = [words for words, _ in texts(page)]
    assert "self-attention" in words and "cross-attention" in words and "decoder" in words


def test_layers_that_are_not_captured_are_told_and_leave_a_gap():
    capture = capture_of("sea")
    maps = tuple(one if at < 4 else None for at, one in enumerate(capture.maps))
    chart = profile_chart([replace(capture, maps=maps)], ["entropy"])
    assert "Layers 4 to 12 are not captured." in chart.notes
    assert {head.layer for head in chart.sides[0].heads} == {0, 1, 2, 3}


def marks(page):
    return [one for one in page.axes.lines if one.get_linestyle() == "None"]


def test_every_head_is_a_mark_where_its_number_is():
    chart = profile_chart([planted()], ["previous"])
    drawn = np.concatenate([one.get_xydata() for one in marks(page_of(chart))])
    assert len(drawn) == 4
    value = np.array([values_of(chart, "previous")[head] for head in chart.sides[0].heads])
    order = np.argsort(value, kind="stable")
    np.testing.assert_allclose(  # y runs down the page, in proportion
        np.interp(value[order], value[order][[0, -1]], drawn[order][[0, -1], 1]),
        drawn[order][:, 1], atol=1e-6,
    )  # fmt: skip


def test_heads_that_are_off_are_hollow():
    one = replace(planted(), off=frozenset({HeadId(0, 0)}))
    drawn = marks(page_of(profile_chart([one], ["entropy"])))
    hollow = [one for one in drawn if one.get_markerfacecolor() != one.get_markeredgecolor()]
    assert [len(one.get_xydata()) for one in hollow] == [1]


SHAPES = (
    "one letter", "short", "deep", "many heads", "words", "many layers", "ragged", "two texts",
    "states", "slots", "mixed", "one signed",
)  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_no_two_texts_of_a_profile_overlap_and_none_leaves_the_page(name):
    chart = profile_chart([capture_of(name)])
    for width in ("1.6in", "acl") if len(name) % 2 else ("1.6in", "neurips"):
        require_tidy(page_of(chart, width), width)


PAIRS = {
    "one model, some heads off": lambda: [
        capture_of("sea"),
        replace(capture_of("sea"), off=parse_heads("3.1,4.*", capture_of("sea").spec.layers)),
    ],
    "two shapes": lambda: [capture_of("sea"), make_capture(SEA, strides=(1, 2), heads=3)],
    "plain and hourglass": lambda: [capture_of("words"), capture_of("sea")],
    "hostile names": lambda: [
        replace(one, spec=replace(one.spec, name=f"{HOSTILE}{at}"))
        for at, one in enumerate((plain(HOSTILE.split()), plain(["a"]), plain(["b"] * 40)))
    ],
}


@pytest.mark.parametrize("name", PAIRS)
def test_captures_beside_each_other_do_not_overlap(name):
    chart = profile_chart(PAIRS[name]())
    for width in ("1.6in", "acl"):
        require_tidy(page_of(chart, width), width)


def test_the_numbers_are_in_the_table(tmp_path):
    spec = Spec("profile", metrics=("previous",))
    path = tasks.figure(spec, planted(), tmp_path / "f.csv")
    with open(path) as file:
        rows = list(csv.DictReader(file))
    assert [row["head"] for row in rows] == ["0.0", "0.1", "mean", "1.0", "1.1", "mean"]
    assert float(rows[1]["value"]) == pytest.approx(1, abs=1e-6)
    mean = (float(rows[0]["value"]) + float(rows[1]["value"])) / 2
    assert float(rows[2]["value"]) == pytest.approx(mean, rel=1e-5)


def test_kernels_take_another_pass_and_a_long_text_is_measured_on_some_rows(monkeypatch):
    chart = profile_chart([planted()], ["convolution"])
    assert values_of(chart, "convolution")[HeadId(0, 1)] == pytest.approx(1, abs=1e-2)
    with pytest.raises(HgvizError, match="says nothing of these heads"):
        profile_chart([planted()], ["variance"])
    monkeypatch.setattr("hgviz.analysis.metrics.BLOCK_ROWS", 4)
    monkeypatch.setattr("hgviz.analysis.metrics.CELLS", 1)
    chart = profile_chart([planted()], ["distance"])
    assert "Measured on 8 of 24 rows." in chart.notes


@pytest.mark.parametrize(
    ("metrics", "said"), [(["height"], "unknown metric 'height'"), (["negative"], "says nothing")]
)
def test_what_cannot_be_shown_is_told(metrics, said):
    with pytest.raises(HgvizError, match=said):
        profile_chart([planted()], metrics)
    with pytest.raises(HgvizError, match="no heads"):
        profile_chart([replace(planted(), maps=(None, None))])
