"""Every figure has its numbers: those that it shows, whole, and safe to open anywhere."""

import csv
from dataclasses import replace
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Selection
from hgviz.figures import FIGURES, Looked, Panel, Spec, cells, heatmap, labels, output
from hgviz.figures.cells import seen_cells
from hgviz.figures.levels import stages_of
from hgviz.figures.output import compose, write_numbers
from hgviz.figures.spec import kind_of
from hgviz.maps.links import LinkOptions
from hgviz.store import write_capture
from tests.figures.every import panel_of
from tests.figures.texts import HOSTILE, SEA, Dense, capture_of, plain
from tests.making import make_capture

SOME = "sea", "signed", "windowed", "words", "ragged", "two texts", "states", "slots", "mixed"


def plain_text(text):
    """A text of a table without the apostrophe that keeps it from being a formula."""
    return text[1:] if text[:1] == "'" and text.lstrip("'")[:1] in output.FORMULA else text


def rows_of(panel):
    content = panel.content
    if isinstance(content, Looked):
        drawing = kind_of(panel.spec.kind).load()
        return drawing(content.capture, content.facts).rows(panel.spec)
    return content.rows()


def read(panel):
    """The table of a figure as a program reads it: names of columns -> texts."""
    text = output.csv_table(rows_of(panel)).decode()
    return list(csv.DictReader(StringIO(text, newline=""), strict=True))


def of(kind, capture, *selection, **more):
    return Panel(Spec(kind, Selection(*selection), **more), Looked(capture))


def first(name):
    """A capture, its first layer that has heads, and the last of these."""
    capture = capture_of(name)
    layer = next(one for one in capture.spec.layers if one.heads)
    return capture, HeadId(layer.index, layer.heads[-1])


def seven(values):
    """As a table has them."""
    return [f"{one:.7g}" for one in np.asarray(values, np.float64).ravel()]


# --- all kinds ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FIGURES)
def test_every_kind_has_numbers_in_a_table_that_any_program_reads(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(heatmap, "MOST_WALL_CELLS", 1 << 13)
    path = output.draw(panel_of(kind), tmp_path / "f.csv")
    content = path.read_bytes()
    rows = list(csv.reader(StringIO(content.decode(), newline=""), strict=True))
    assert len(rows) > 1 and len(set(rows[0])) == len(rows[0])
    assert {len(one) for one in rows} == {len(rows[0])}
    assert content.endswith(b"\r\n") and b"nan" not in content.lower()
    assert output.draw(panel_of(kind), tmp_path / "g.csv").read_bytes() == content


# --- kinds of a capture ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", SOME)
def test_the_numbers_of_a_map_are_its_weights_at_their_tokens(name):
    capture, head = first(name)
    rows = read(of("map", capture, *head))
    one, layer = capture.maps[head.layer], head.layer
    assert len(rows) == one.shape[1] * one.shape[2]
    assert [row["weight"] for row in rows] == seven(one.read(head.head))
    seen = [row["state"] == "seen" for row in rows]
    np.testing.assert_array_equal(np.reshape(seen, one.shape[1:]), seen_cells(capture, layer))
    for row in rows[:: max(1, len(rows) // 50)]:
        i, j = int(row["row_first"]), int(row["column_first"])
        tokens = capture.row_token(layer, i), capture.column_token(layer, j)
        for side, token in zip(("query", "key"), tokens, strict=True):
            said = row[f"{side}_last"]
            assert said == ("" if token is None else str(token))
        if tokens[0] is not None and row["query_first"] == row["query_last"]:
            text = plain_text(row["query_text"])
            assert text == capture.query_prompt(layer).label(tokens[0])
        assert row["head"] == str(head) and row["reduction"] == ""


def test_a_shortened_level_says_the_tokens_of_every_position():
    capture = capture_of("sea")
    layer = next(one.index for one in capture.spec.layers if one.role == "down")
    rows = read(of("map", capture, layer, 0))
    spans = capture.query_spans(layer)
    for row in rows[:: capture.maps[layer].shape[2]]:
        start, end = spans[int(row["row_first"])]
        assert (row["query_first"], row["query_last"]) == (str(start), str(end - 1))
        assert plain_text(row["query_text"]) == SEA[start:end]


def test_a_reduced_map_has_the_cells_that_are_drawn():
    capture = plain(["word"] * 467, layers=1, heads=1)
    panel = of("map", capture, 0, 0, width="1.5in")
    with labels.figure_settings():
        page = compose(panel.spec, capture)
    side = int(page.notes[0].split()[-2])  # each cell is the largest of 2 × 2 weights
    rows = read(panel)
    found = capture.maps[0].read(0, zoom=side.bit_length() - 1)
    assert side > 1 and page.axes.images[0].get_array().shape[:2] == found.shape
    assert [row["weight"] for row in rows] == seven(found)
    assert {row["reduction"] for row in rows} == {f"largest of {side} x {side}"}
    last = rows[-1]
    assert (last["row_first"], last["row_last"]) == (str(468 // side * side), "468")
    assert (rows[0]["key_first"], rows[0]["key_last"]) == ("0", str(side - 1))
    assert rows[0]["key_text"] == " ".join(["word"] * (side - 1))  # [CLS] has no characters


def test_a_table_never_has_more_cells_than_it_may(monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 900)
    monkeypatch.setattr(heatmap, "MOST_WALL_CELLS", 9000)
    capture = capture_of("sea")
    rows = read(of("map", capture, 12, 2))
    assert len(rows) == 23 * 23 and {row["reduction"] for row in rows} == {"largest of 4 x 4"}
    assert [row["weight"] for row in rows] == seven(capture.maps[12].read(2, zoom=2))
    assert len(read(of("wall", capture))) <= 9000


def test_a_long_text_is_read_in_cells_and_never_whole(monkeypatch):
    sizes = []

    class Watched(Dense):
        def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
            found = super().read(head, rows, columns, zoom, reduce)
            sizes.append(found.size)
            return found

    monkeypatch.setattr(cells, "MOST_CELLS", 1 << 12)
    base = plain(["w"] * 1798, layers=1, heads=1)
    capture = replace(base, maps=(Watched(base.maps[0].weights, (0,)),))
    panel = of("map", capture, 0, 0, 7)
    assert len(read(panel)) == 57 * 57
    assert max(sizes) <= 256 * 1800 < 1800 * 1800


@pytest.mark.parametrize("name", ["sea", "ragged", "two texts"])
def test_the_numbers_of_a_wall_are_those_of_every_head(name, monkeypatch):
    monkeypatch.setattr(heatmap, "MOST_WALL_CELLS", 1 << 14)
    capture = capture_of(name)
    rows = read(of("wall", capture))
    zoom = len(rows[0]["reduction"]) and int(rows[0]["reduction"].split()[-1]).bit_length() - 1
    heads = [HeadId(one.index, head) for one in capture.spec.layers for head in one.heads]
    assert list(dict.fromkeys(row["head"] for row in rows)) == list(map(str, heads))
    for head in (heads[0], heads[-1]):
        mine = [row["weight"] for row in rows if row["head"] == str(head)]
        assert mine == seven(capture.maps[head.layer].read(head.head, zoom=zoom))


def test_a_head_that_is_off_has_a_line_that_says_so_and_no_weight(monkeypatch):
    monkeypatch.setattr(heatmap, "MOST_WALL_CELLS", 1 << 12)
    off = frozenset({HeadId(12, 2), HeadId(0, 0)})
    capture = replace(capture_of("sea"), off=off)
    (row,) = read(of("map", capture, 12, 2))
    assert (row["head"], row["state"], row["weight"]) == ("12.2", "off", "")
    wall = [row for row in read(of("wall", capture)) if row["state"] == "off"]
    assert [row["head"] for row in wall] == ["0.0", "12.2"]
    assert {row["state"] for row in read(of("links", capture, 12, 2))} == {"off"}
    levels = read(of("levels", capture, 12, 2))
    assert {row["state"] for row in levels if row["head"] == "12.2"} == {"off"}
    assert not any(row["weight"] for row in levels if row["head"] == "12.2")


@pytest.mark.parametrize("name", ["sea", "signed", "words", "two texts", "slots"])
def test_the_numbers_of_all_levels_are_one_row_of_each_stage(name):
    capture = capture_of(name)
    query = len(capture.main) // 2
    rows = read(Panel(Spec("levels", Selection(query=query)), Looked(capture)))
    stages = list(dict.fromkeys(row["stage"] for row in rows))
    assert stages == [str(at + 1) for at in range(len(stages_of(capture)))]
    for stage in stages:
        mine = [row for row in rows if row["stage"] == stage]
        layer, head = map(int, mine[0]["head"].split("."))
        at = capture.row(layer, query)
        weights = capture.maps[layer].read(head, (at, at + 1))[0]
        assert len(mine) == len(weights) and {row["row_first"] for row in mine} == {str(at)}
        for row, weight in zip(mine, seven(weights), strict=True):
            assert row["weight"] == (weight if row["state"] == "seen" else "")
        assert any(row["state"] == "seen" for row in mine)


@pytest.mark.parametrize("name", ["sea", "signed", "words", "two texts"])
def test_the_numbers_of_links_are_the_strongest_weights_of_the_row(name):
    capture, head = first(name)
    query = len(capture.query_prompt(head.layer)) - 1
    rows = read(of("links", capture, *head, query, links=LinkOptions(most=4)))
    at = capture.row(head.layer, query)
    weights = capture.maps[head.layer].read(head.head, (at, at + 1))[0]
    order = np.argsort(-np.abs(weights), kind="stable")[:4]
    order = [at for at in order if weights[at]]
    assert [int(row["key_last"]) for row in rows] == order
    assert [row["weight"] for row in rows] == seven(weights[order])
    assert {row["query_last"] for row in rows} == {str(query)}
    assert {row["head"] for row in rows} == {str(head)}


def test_links_of_several_heads_say_which_and_how_they_are_put_together():
    capture, heads = capture_of("sea"), (HeadId(12, 1), HeadId(12, 2))
    each = read(of("links", capture, 12, 1, 60, links=LinkOptions(heads=heads, most=2)))
    assert [row["head"] for row in each] == ["12.1"] * 2 + ["12.2"] * 2
    links = LinkOptions(heads=heads, fuse="mean", words=True, most=2)
    mean = read(of("links", capture, 12, 1, 60, links=links))
    assert {row["head"] for row in mean} == {"mean of 12.1, 12.2"}
    assert {row["reduction"] for row in mean} == {
        "the mean over heads; words: rows averaged, columns added"
    }
    assert all(int(row["key_first"]) <= int(row["key_last"]) for row in mean)


def test_the_numbers_of_all_maps_composed_are_what_composing_gives():
    capture = make_capture(SEA[:40])
    panel = tasks.panel(Spec("rollout"), capture)
    rows = read(panel)
    expected = tasks.rollout(capture)
    np.testing.assert_allclose(
        [float(row["weight"]) for row in rows], expected.ravel(), rtol=1e-5, atol=1e-7
    )
    assert {row["head"] for row in rows} == {"all"}


def test_two_heads_are_compared_cell_by_cell():
    a, b = make_capture(SEA[:40]), make_capture(SEA[:40], seed=1)
    rows = read(tasks.panel(Spec("compare", Selection(12, 2)), [a, b]))
    both = [one.maps[12].read(2) for one in (a, b)]
    seen = seen_cells(a, 12).ravel()
    assert [row["state"] == "seen" for row in rows] == seen.tolist()
    for name, values in zip(("A", "B"), both, strict=True):
        assert [row[name] for row in rows if row[name]] == seven(values.ravel()[seen])
    found = [float(row["A - B"]) for row in rows if row["A - B"]]
    np.testing.assert_allclose(found, (both[0] - both[1]).ravel()[seen], atol=1e-6)
    assert rows[41]["query_text"] == SEA[1] and rows[41]["key_text"] == SEA[1]


# --- texts that mean no good ----------------------------------------------------------------------


def test_hostile_tokens_come_back_as_they_were():
    text = '"a",b\r\n\n\r=1+1\t\x00\x1b\u202e;é모\'@x-y'
    capture = make_capture(text)
    rows = read(of("map", capture, 12, 0))[: len(capture.prompt)]
    said = [plain_text(row["key_text"]) for row in rows]
    assert said == [capture.prompt.label(at) for at in range(len(capture.prompt))]
    for row in rows:
        assert row["key_text"][:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_any_text_survives_a_table_and_none_is_a_formula(texts):
    content = output.csv_table([tuple(texts), tuple(texts)]).decode()
    (row, again) = csv.reader(StringIO(content, newline=""), strict=True)
    assert row == again and [plain_text(one) for one in row] == texts
    assert not any(one[:1] in output.FORMULA for one in row)


@pytest.mark.parametrize("text", ["'s", "''", "it's", "'", "a=b", "1-2", ""])
def test_texts_that_are_no_formula_stay_as_they_are(text):
    assert output.csv_cell(text) == text and plain_text(text) == text


@pytest.mark.parametrize(
    ("value", "said"),
    [(1, "1"), (12345678, "12345678"), (0.1, "0.1"), (np.float32(1 / 3), "0.3333333"),
     (-1e-9, "-1e-09"), (float("nan"), ""), (-np.inf, ""), (np.int64(7), "7"), (0.0, "0")],
)  # fmt: skip
def test_numbers_have_seven_digits_and_what_is_none_is_empty(value, said):
    assert output.csv_cell(value) == said


def test_half_a_character_does_not_stop_a_table():
    assert output.csv_table([("a\ud800",)]) == b"a\\ud800\r\n"


@pytest.mark.parametrize("name", ["hostile", "one letter", "lines", "one signed", "long names"])
def test_any_text_has_numbers_of_every_kind(name, monkeypatch):
    monkeypatch.setattr(cells, "MOST_CELLS", 1 << 12)
    monkeypatch.setattr(heatmap, "MOST_WALL_CELLS", 1 << 12)
    capture, head = first(name)
    for kind in ("map", "wall", "levels", "links"):
        assert read(of(kind, capture, *head))


def test_what_cannot_be_drawn_has_no_numbers_either(tmp_path):
    capture = capture_of("sea")
    for spec, said in (
        (Spec("map", Selection(99, 0)), "no layer 99"),
        (Spec("map", Selection(0, 0, 10_000)), "no token 10000"),
        (Spec("levels", Selection(0, 0, 10_000)), "no token 10000"),
        (Spec("pie"), "unknown kind of figure"),
    ):
        with pytest.raises(HgvizError, match=said):
            output.draw(Panel(spec, Looked(capture)), tmp_path / "f.csv")
    assert not list(tmp_path.iterdir())


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"), [("f.pdf", "f"), ("a.b.svg", "a.b"), ("F.PDF", "F"), ("f.csv", "f")]
)
def test_the_numbers_beside_a_figure_have_its_name(name, expected, tmp_path):
    written = output.write_numbers(panel_of("scores"), tmp_path / name)
    assert written == tmp_path / f"{expected}.csv" and list(tmp_path.iterdir()) == [written]


def test_numbers_are_written_beside_the_picture_or_in_its_place(tmp_path, output):
    path = write_capture(tmp_path / "a.h5", make_capture("Sand runs.", strides=(1, 2), heads=1))
    output("figure", path, "--kind", "map", "-o", tmp_path / "f.svg", "--numbers")
    output("figure", path, "--kind", "map", "-o", tmp_path / "alone.csv")
    names = {"a.h5", "f.svg", "f.csv", "alone.csv"}
    assert {one.name for one in tmp_path.iterdir()} == names
    assert (tmp_path / "f.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()
    with pytest.raises(HgvizError, match="no folder"):
        write_numbers(panel_of("scores"), tmp_path / "no" / "f.pdf")


def test_charts_keep_their_lines_in_order():
    rows = read(panel_of("curve"))
    first = [float(row["Heads switched off"]) for row in rows if row["line"] == rows[0]["line"]]
    assert all(a <= b for a, b in pairwise(first))


def test_the_hostile_text_of_a_title_stays_out_of_the_numbers():
    one = panel_of("map", text=HOSTILE[:30])
    titled = replace(one, spec=replace(one.spec, title="=x"))
    assert read(one) == read(titled)
