"""Every figure has its numbers: those that it shows, whole, and safe to open anywhere."""

import csv
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.core import HeadId, Selection
from hgviz.figures import FIGURES, CaptureFacts, Panel, Spec, cells, heatmap, output
from hgviz.figures.cells import seen_cells
from hgviz.figures.output import csv_table
from hgviz.figures.spec import kind_of
from hgviz.maps.links import LinkOptions
from tests.figures.making import SEA, capture_of, panel_of
from tests.making import make_capture


def read(panel):
    """The table of a figure as a program reads it: names of columns -> texts."""
    content, kind = panel.content, kind_of(panel.spec.kind)
    if isinstance(content, CaptureFacts):
        rows = kind.load()(content.capture, content.facts).rows(panel.spec)
    else:
        rows = content.rows()
    return list(csv.DictReader(StringIO(csv_table(rows).decode(), newline=""), strict=True))


def of(kind, capture, *selection, **more):
    return Panel(Spec(kind, Selection(*selection), **more), CaptureFacts(capture))


def first(name):
    """A capture, its first layer that has heads, and the last of these."""
    capture = capture_of(name)
    layer = next(row for row in capture.spec.layers if row.heads)
    return capture, HeadId(layer.index, layer.heads[-1])


def column(rows, name):
    return [row[name] for row in rows]


def seven(values):
    """As a table has them."""
    return [f"{value:.7g}" for value in np.asarray(values, np.float64).ravel()]


def plain_text(text):
    """A text without the apostrophe that keeps it from being a formula."""
    return text[1:] if text[:1] == "'" and text.lstrip("'")[:1] in output.FORMULA else text


@pytest.fixture
def small_walls(monkeypatch):
    monkeypatch.setattr(heatmap, "MOST_WALL_CELLS", 1 << 13)


@pytest.mark.parametrize("kind", FIGURES)
def test_every_kind_has_numbers_in_a_table_that_any_program_reads(kind, tmp_path, small_walls):
    content = output.draw(panel_of(kind), tmp_path / "f.csv").read_bytes()
    rows = list(csv.reader(StringIO(content.decode(), newline=""), strict=True))
    assert len(rows) > 1 and len(set(rows[0])) == len(rows[0])
    assert {len(row) for row in rows} == {len(rows[0])}
    assert content.endswith(b"\r\n") and b"nan" not in content.lower()
    assert output.write_numbers(panel_of(kind), tmp_path / "g.b.PDF").name == "g.b.csv"
    assert (tmp_path / "g.b.csv").read_bytes() == content


# --- kinds of a capture ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["windowed", "ragged", "states", "slots", "a shortened level"])
def test_the_numbers_of_a_map_are_its_weights_at_their_tokens(name):
    capture, head = first("sea" if name == "a shortened level" else name)
    if name == "a shortened level":
        head = HeadId(next(row.index for row in capture.spec.layers if row.role == "down"), 0)
    rows, maps, layer = read(of("map", capture, *head)), capture.maps[head.layer], head.layer
    assert column(rows, "weight") == seven(maps.read(head.head))
    seen = np.reshape([row["state"] == "seen" for row in rows], maps.shape[1:])
    np.testing.assert_array_equal(seen, seen_cells(capture, layer))
    sides = {
        "query": ("row", capture.query_spans(layer), capture.query_prompt(layer)),
        "key": ("column", capture.key_spans(layer), capture.key_prompt(layer)),
    }
    for row in rows[:: max(1, len(rows) // 50)]:
        assert row["head"] == str(head) and row["reduction"] == ""
        for side, (places, spans, prompt) in sides.items():
            start, end = spans[int(row[f"{places}_first"])]
            tokens = (str(max(start, 0)), str(end - 1)) if end > 0 else ("", "")
            assert (row[f"{side}_first"], row[f"{side}_last"]) == tokens
            if end > 0:
                text = prompt.words(max(start, 0), end) or prompt.pieces[end - 1]
                assert plain_text(row[f"{side}_text"]) == text


def test_a_table_never_has_more_cells_than_it_may(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 900)
    monkeypatch.setattr(heatmap, "MOST_WALL_CELLS", 9000)
    rows = read(of("map", capture_of("sea"), 12, 2))
    assert {*column(rows, "reduction")} == {"largest of 4 x 4"}
    assert column(rows, "weight") == seven(capture_of("sea").maps[12].read(2, zoom=2))
    assert len(read(of("wall", capture_of("sea")))) <= 9000


def test_a_head_that_is_off_has_a_line_that_says_so_and_no_weight(small_walls):
    capture = replace(capture_of("sea"), off=frozenset({HeadId(12, 2), HeadId(0, 0)}))
    (row,) = read(of("map", capture, 12, 2))
    assert (row["head"], row["state"], row["weight"]) == ("12.2", "off", "")
    wall = [row["head"] for row in read(of("wall", capture)) if row["state"] == "off"]
    assert wall == ["0.0", "12.2"]
    assert {*column(read(of("links", capture, 12, 2)), "state")} == {"off"}
    levels = [row for row in read(of("levels", capture, 12, 2)) if row["head"] == "12.2"]
    assert {(row["state"], row["weight"]) for row in levels} == {("off", "")}


def test_two_heads_are_compared_cell_by_cell_and_a_rollout_is_what_composing_gives():
    a, b = make_capture(SEA[:40]), make_capture(SEA[:40], seed=1)
    rows = read(tasks.panel(Spec("compare", Selection(12, 2)), [a, b]))
    both = [capture.maps[12].read(2) for capture in (a, b)]
    seen = seen_cells(a, 12).ravel()
    assert [row["state"] == "seen" for row in rows] == seen.tolist()
    for name, values in zip(("A", "B"), both, strict=True):
        assert [row[name] for row in rows if row[name]] == seven(values.ravel()[seen])
    found = [float(row["A - B"]) for row in rows if row["A - B"]]
    np.testing.assert_allclose(found, (both[0] - both[1]).ravel()[seen], atol=1e-6)
    assert rows[41]["query_text"] == SEA[1] and rows[41]["key_text"] == SEA[1]
    rows = read(tasks.panel(Spec("rollout"), a))
    found = [float(value) for value in column(rows, "weight")]
    np.testing.assert_allclose(found, tasks.rollout(a).ravel(), rtol=1e-5, atol=1e-7)
    assert {*column(rows, "head")} == {"all"}
    links = LinkOptions(heads=(HeadId(12, 1), HeadId(12, 2)), fuse="mean")
    rows = read(of("links", a, 12, 1, 30, links=links))
    assert {*column(rows, "head")} == {"mean of 12.1, 12.2"}


# --- texts that mean no good ----------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
@example(["'=1", "''+x", "'", "@"])
def test_any_text_survives_a_table_and_none_is_a_formula(texts):
    content = csv_table([tuple(texts), tuple(texts)]).decode()
    (row, again) = csv.reader(StringIO(content, newline=""), strict=True)
    assert row == again and [plain_text(text) for text in row] == texts
    assert not any(text[:1] in output.FORMULA for text in row)


def test_links_of_several_heads_say_which_and_how_they_are_put_together():
    capture, heads = capture_of("sea"), (HeadId(12, 1), HeadId(12, 2))
    each = read(of("links", capture, 12, 1, 60, links=LinkOptions(heads=heads, most=2)))
    assert column(each, "head") == ["12.1"] * 2 + ["12.2"] * 2
    links = LinkOptions(heads=heads, fuse="mean", words=True, most=2)
    mean = read(of("links", capture, 12, 1, 60, links=links))
    reduction = "the mean over heads; words: rows averaged, columns added"
    assert {(row["head"], row["reduction"]) for row in mean} == {("mean of 12.1, 12.2", reduction)}
    assert all(int(row["key_first"]) <= int(row["key_last"]) for row in mean)
