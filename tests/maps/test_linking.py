"""Links: the strongest weights between tokens or words, against whole maps and loops in Python."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.core import HeadId, HgvizError, Selection
from hgviz.maps import DenseMap, LazyMap
from hgviz.maps.links import (
    LinkOptions,
    find_links,
    link_sides,
    words_of,
)
from tests.figures.making import plain
from tests.making import make_capture

TEXT = "The sand doesn't stop; it runs, and runs. "
ALL = LinkOptions(most=0)


@pytest.fixture(scope="module")
def capture():
    return make_capture(TEXT, strides=(1, 2), heads=3)


def links_of(capture, chosen, linking):
    return find_links(capture, chosen, linking)


def pieces():
    """Word pieces with special tokens around them: [CLS] un der stand _it [SEP]."""
    one = plain(["un", "der", "stand", "it"])
    spans = np.array([(-1, -1), (0, 2), (2, 5), (5, 10), (10, 13), (-1, -1)])
    prompt = replace(one.prompt, text="understand it", spans=spans)
    return replace(one, prompt=prompt)


def words(text):
    """The words that a text is cut into."""
    numbers = words_of(text).tolist()
    out = []
    for at, number in enumerate(numbers):
        if at and numbers[at - 1] == number:
            out[-1] += text[at]
        else:
            out.append(text[at])
    return out


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a cat sat.", ["a", " cat", " sat", "."]),
        ("don't l’été", ["don't", " l’été"]),
        ("3.14, 2,000.", ["3.14", ",", " 2,000", "."]),
        ("well-known (x)", ["well", "-", "known", " (", "x", ")"]),
        ("글자를 읽는다.", ["글자를", " 읽는다", "."]),
        ("沙漏读字", ["沙", "漏", "读", "字"]),
        ("हिन्दी भाषा", ["हिन्दी", " भाषा"]),
        ("a \n b", ["a", " \n b"]),
        ("", []),
        ("🙂🙂", ["🙂", "🙂"]),
    ],
)
def test_words_are_what_one_would_underline(text, found):
    got = words(text)
    assert got == found


# --- links ----------------------------------------------------------------------------------------


def test_the_strongest_links_are_those_of_the_row(capture):
    for layer in (0, 2, 3):
        query = 20
        row = capture.maps[layer].read(1)[capture.row(layer, query)]
        found = links_of(capture, Selection(layer, 1, query), LinkOptions(most=4))
        (strand,) = next(iter(found.strands.values()))
        best = np.argsort(-row, kind="stable")[:4]
        assert strand.keys.tolist() == best.tolist()
        assert (strand.weights == row[best]).all()
        assert strand.total == pytest.approx(row.sum(), abs=1e-5) and strand.hidden == 0
        assert (found.joint[0] == row).all()


@pytest.mark.parametrize("mass", [0.1, 0.9, 1.0])
def test_a_share_of_the_weight_takes_as_few_links_as_have_it(capture, mass):
    found = links_of(capture, Selection(0, 2, 30), LinkOptions(most=0, mass=mass))
    (strand,) = found.strands[30]
    size = np.abs(strand.weights).astype(np.float64)
    assert size.sum() >= mass * strand.total - 1e-6
    assert size[:-1].sum() < mass * strand.total
    assert strand.part == pytest.approx(size.sum() / strand.total)


def test_words_average_rows_and_add_columns(capture):
    linking = replace(ALL, words=True)
    queries, keys = link_sides(capture, 0, linking)
    whole = capture.maps[0].read(2).astype(np.float64)
    found = links_of(capture, Selection(0, 2, 12), linking)
    place = queries.place(12)
    (first, stop), row = queries.rows(place), []
    assert stop - first > 1 and list(found.strands) == [place]
    for key in range(len(keys)):
        a, b = keys.rows(key)
        row.append(np.mean([whole[at, a:b].sum() for at in range(first, stop)]))
    np.testing.assert_allclose(found.joint[0], row, atol=1e-6)
    assert found.joint[0].sum() == pytest.approx(1, abs=1e-5)


def test_what_lies_on_special_tokens_is_said_where_they_are_hidden():
    one = pieces()
    whole = links_of(one, Selection(0, 0, 2), ALL)
    less = links_of(one, Selection(0, 0, 2), replace(ALL, special=False))
    row = one.maps[0].read(0)[2]
    (strand,) = less.strands[1]
    assert strand.hidden == pytest.approx(float(abs(row[0]) + abs(row[5])), abs=1e-6)
    assert strand.total == pytest.approx(whole.strands[2][0].total, abs=1e-6)
    assert not links_of(one, Selection(0, 0, 0), replace(ALL, special=False)).strands


@pytest.mark.parametrize("fuse", ["mean", "sum", "max"])
def test_heads_of_several_layers_are_put_together(fuse):
    capture = make_capture(TEXT, strides=(1,), heads=3)
    random = np.random.default_rng(0)
    maps = tuple(
        DenseMap(random.normal(size=one.shape).astype(np.float32), one.heads, signed=True)
        for one in capture.maps
    )
    capture = replace(capture, maps=maps)
    heads = (HeadId(0, 1), HeadId(2, 0), HeadId(1, 2))
    rows = np.stack([capture.maps[one.layer].read(one.head)[22] for one in heads])
    expected = {
        "mean": rows.mean(0), "sum": rows.sum(0),
        "max": rows[np.abs(rows).argmax(0), np.arange(rows.shape[1])],
    }[fuse]  # fmt: skip
    found = links_of(capture, Selection(0, 0, 22), LinkOptions(heads=heads, fuse=fuse, most=6))
    assert found.single and found.signed
    np.testing.assert_allclose(found.joint[0], expected, atol=1e-6)
    (strand,) = found.strands[22]
    assert (np.diff(np.abs(strand.weights)) <= 0).all() and (rows < 0).any()


def test_a_head_that_is_off_has_no_links_and_no_part_in_a_mean(capture):
    off = replace(capture, off=frozenset({HeadId(0, 1)}))
    heads = (HeadId(0, 0), HeadId(0, 1))
    each = links_of(off, Selection(0, 0, 22), LinkOptions(heads=heads))
    assert len(each.strands[22][0].keys) and not len(each.strands[22][1].keys)
    mean = links_of(off, Selection(0, 0, 22), LinkOptions(heads=heads, fuse="mean"))
    assert (mean.joint[0] == off.maps[0].read(0)[22]).all()


def test_values_multiply_weights_before_words_are_merged(capture):
    norms = np.random.default_rng(0).random((3, len(TEXT)), np.float32)
    maps = tuple(
        LazyMap(replace(one.factors, value_norms=norms), one.heads) if at == 0 else one
        for at, one in enumerate(capture.maps)
    )
    other = replace(capture, maps=maps)
    linking = replace(ALL, values=True, words=True)
    found = links_of(other, Selection(0, 2, 30), linking)
    queries, keys = link_sides(other, 0, linking)
    first, stop = queries.rows(queries.place(30))
    row = (capture.maps[0].read(2)[first:stop] * norms[2]).mean(0)
    expected = [row[slice(*keys.rows(key))].sum() for key in range(len(keys))]
    np.testing.assert_allclose(found.joint[0], expected, rtol=1e-5, atol=1e-7)
    assert found.values


def test_values_nobody_kept_and_damaged_ones_are_said(capture):
    with pytest.raises(HgvizError, match="no norms of values"):
        links_of(capture, Selection(0, 0, 3), LinkOptions(values=True))
    bad = np.full((3, len(TEXT)), np.nan, np.float32)
    one = LazyMap(replace(capture.maps[0].factors, value_norms=bad), capture.maps[0].heads)
    with pytest.raises(HgvizError, match="are invalid"):
        links_of(
            replace(capture, maps=(one, *capture.maps[1:])), Selection(0, 0, 3),
            LinkOptions(values=True),
        )  # fmt: skip


REFUSED = [
    (Selection(0, 0, 3), LinkOptions(heads=(HeadId(3, 0),)), "cannot be drawn together"),
    (Selection(0, 0, 3), LinkOptions(heads=(HeadId(0, 7),)), "no head 0.7"),
    (Selection(0, 0, 3), LinkOptions(queries=(-1,)), "no token -1"),
    (Selection(0, 0, 3), LinkOptions(most=-1), "the number of links"),
    (Selection(0, 0, 3), LinkOptions(mass=1.5), "the share"),
    (Selection(0, 0, 3), LinkOptions(least=float("nan")), "the minimum weight"),
    (Selection(0, 0, 3), LinkOptions(fuse="median"), "combined by"),
    (Selection(77, 0, 3), LinkOptions(), "no head 77.0"),
]


def test_what_is_not_there_is_said(capture):
    for chosen, linking, said in REFUSED:
        with pytest.raises(HgvizError, match=said):
            links_of(capture, chosen, linking)
    partial = replace(capture, maps=(None, *capture.maps[1:]))
    with pytest.raises(HgvizError, match="is not captured"):
        links_of(partial, Selection(0, 0, 3), LinkOptions())
