"""Links on paper: every link and number where it belongs, long texts with what is left out said."""

from dataclasses import replace

import numpy as np
import pytest

from hgviz.core import HeadId, Selection
from hgviz.figures import Spec, labels
from hgviz.figures.links import Item, choose_items
from hgviz.figures.output import compose
from hgviz.language import decimals
from hgviz.maps import DenseMap
from hgviz.maps.links import LinkOptions, find_links
from hgviz.store import write_capture
from tests.figures.flaws import overlaps, texts
from tests.gui import kinds
from tests.making import make_capture

WORDS = kinds.bert()
CHOSEN = Selection(0, 1, 4)
LONG = make_capture("The sand runs down and then it stops. " * 12, strides=(1, 2), heads=3)


def page_of(capture, linking, chosen=CHOSEN, width="acl2"):
    with labels.figure_settings():
        page = compose(Spec("links", chosen, width=width, links=linking), capture)
        return page, texts(page)


def said(page):
    return [one.get_text() for one in page.axes.texts]


CASES = {
    "one": LinkOptions(most=4),
    "several": LinkOptions(queries=(2, 4, 9), heads=(HeadId(0, 1), HeadId(1, 2)), most=3),
    "all heads": LinkOptions(heads=tuple(HeadId(1, n) for n in range(6)), most=2),
    "words": LinkOptions(words=True, special=False, mass=0.7, most=0),
    "mean": LinkOptions(heads=(HeadId(0, 1), HeadId(2, 2)), fuse="mean"),
    "every query": LinkOptions(queries=tuple(range(12)), most=2),
}


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_no_word_lies_on_another_and_none_beyond_the_page(name, across):
    page, boxes = page_of(WORDS, replace(CASES[name], across=across))
    assert not overlaps(boxes), overlaps(boxes)
    assert all(0 <= one.get_position()[0] <= page.width for one in page.axes.texts)
    assert all(0 <= one.get_position()[1] <= page.height for one in page.axes.texts)


def test_as_many_curves_as_links_and_the_numbers_of_the_row():
    page, _ = page_of(WORDS, LinkOptions(most=4))
    row = WORDS.maps[0].read(1)[4]
    best = np.sort(row)[::-1][:4]
    assert len(page.axes.patches) == 4
    for weight in best:
        assert decimals(float(weight)) in said(page)
    widths = sorted(one.get_linewidth() for one in page.axes.patches)
    part = np.sort(best) / best[0]
    np.testing.assert_allclose(widths, 0.3 + 2.3 * part, rtol=1e-5)


def test_weights_below_zero_are_dashed():
    weights = np.random.default_rng(0).normal(size=WORDS.maps[0].shape).astype(np.float32)
    one = DenseMap(weights, WORDS.maps[0].heads, signed=True)
    signed = replace(WORDS, maps=(one, *WORDS.maps[1:]))
    page, _ = page_of(signed, LinkOptions(most=0))
    below = int((weights[1, 4] < 0).sum())
    dashed = [one for one in page.axes.patches if one.get_linestyle() not in ("-", "solid")]
    assert below and len(dashed) == below < len(page.axes.patches)
    assert any("dashed: below zero" in one for one in said(page))


@pytest.mark.parametrize("width", ["acl2", "neurips"])
def test_every_head_is_named_and_their_numbers_stay_apart(width):
    weights = np.random.default_rng(0).normal(0, 0.01, WORDS.maps[0].shape).astype(np.float32)
    signed = replace(WORDS, maps=(*(DenseMap(weights, one.heads, True) for one in WORDS.maps),))
    heads = tuple(HeadId(layer, n) for layer in range(2) for n in range(4))
    page, boxes = page_of(signed, LinkOptions(queries=(3, 4), heads=heads, most=4), width=width)
    assert {str(one) for one in heads} <= set(said(page))
    assert len(boxes) and not overlaps(boxes), overlaps(boxes)


def test_a_head_that_the_title_names_is_not_named_again_below():
    page, _ = page_of(WORDS, CASES["one"], width="1.5in")
    assert "0.1" not in said(page) and "Head 0.1" in said(page)


def test_a_long_text_has_the_ends_of_its_links_and_says_what_is_left_out():
    for across in (False, True):
        page, _ = page_of(LONG, LinkOptions(most=3, across=across), Selection(0, 1, 400), "acl")
        gaps = [one for one in said(page) if one.startswith("⋯")]
        assert gaps and len(page.axes.patches) == 3
        assert all(int(one[2:].replace(",", "")) > 1 for one in gaps)


def test_links_that_find_no_room_are_counted():
    linking = LinkOptions(queries=tuple(range(0, 440, 4)), most=2)
    page, _ = page_of(LONG, linking, Selection(0, 1, 0))
    drawn = len(page.axes.patches)
    missing = next(one for one in page.notes if "end outside" in one)
    links = find_links(LONG, Selection(0, 1, 0), linking)
    total = sum(len(strand.keys) for many in links.strands.values() for strand in many)
    assert drawn + int(missing.split()[0]) == total


def test_both_sides_show_the_same_where_they_are_the_same_text():
    links = find_links(LONG, Selection(0, 1, 400), LinkOptions(most=3))
    left, right = choose_items(links, lambda items, _: len(items) <= 20)
    assert left == right and len(left) <= 20
    assert {int(key) for key in links.strands[400][0].keys} | {400} <= {one.place for one in left}
    count = sum(one.left_out or 1 for one in left)
    assert count == len(links.keys)
    assert Item(None, 1) not in left


def test_two_texts_stand_beside_each_other():
    crossing = kinds.translator()
    layer = next(one.index for one in crossing.spec.layers if one.role == "cross")
    for across in (False, True):
        page, _ = page_of(crossing, LinkOptions(across=across), Selection(layer, 0, 3))
        assert {"Der", "The"} <= set(said(page))


def test_a_number_is_zero_only_where_it_is():
    assert [decimals(one, signed=False) for one in (0.0, 0.001, 0.456, 1.0, 123.4)] == [
        "0", "<0.01", "0.46", "1.00", "123",
    ]  # fmt: skip
    assert [decimals(one, signed=True) for one in (-0.001, -0.5, 0.5)] == [
        "−<0.01",
        "−0.50",
        "+0.50",
    ]


@pytest.mark.parametrize(
    ("words", "code"), [("queries x", 1), ("queries 9999", 1), ("heads 0.0,3.0", 1), ("values", 1)]
)
def test_what_has_no_links_is_one_clear_line(words, code, tmp_path, refusal):
    write_capture(tmp_path / "c.h5", LONG)
    given = ("--kind", "links", *f"--{words}".split(), "-o", tmp_path / "two.svg")
    refusal("figure", tmp_path / "c.h5", *given, code=code)
    assert not (tmp_path / "two.svg").exists()
