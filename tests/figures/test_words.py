"""What is said of a figure is true of its numbers, whoever adds them up, and stands in its file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import hgviz
from hgviz import figures, tasks
from hgviz.core import HeadId, Selection, finish, replace
from hgviz.figures import FIGURES, Looked, Panel, Sheet, Spec
from hgviz.figures.content.answers import Answer, Beside, Share
from hgviz.figures.content.charts import Line, Scores
from hgviz.figures.content.document import Document, Picture
from hgviz.figures.content.laboratory import Grid, Grids, Plot, Plots, Strip, Strips
from hgviz.figures.content.unseen import seen_cells
from hgviz.figures.files import accessible
from hgviz.figures.pictures import DRAWINGS
from hgviz.figures.report import write
from hgviz.figures.words import peaks, spoken
from hgviz.maps.links import Linking
from tests.figures.every import EVERY, SHEET, draw, panel_of
from tests.figures.texts import HOSTILE, MAKERS, SEA, Dense, capture_of, plain
from tests.making import make_capture

NUMBER = r"(−?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e−\d+)?)"
PLACE = r"(\d[\d,]*)(?: to (\d[\d,]*))?(?: “[^”]*”)?"
LARGEST = re.compile(
    rf"The largest weight(?: of the ([\d,]+) queries that see two keys or more)? is {NUMBER}, from "
    rf"query (?:{PLACE}|none \(padding\)) to key (?:{PLACE}|none \(padding\))"
)
LEAST = re.compile(rf"the least is {NUMBER}, from query {PLACE} to key {PLACE}")
GETS = re.compile(rf"Key (?:{PLACE}|none \(padding\)) gets most, {NUMBER} % of all their weight")
SLOW = 24  # positions up to which weights are gone through one by one


def value(words):
    return float(words.replace("−", "-").replace(",", ""))


def whole(words):
    return int(words.replace(",", ""))


def about(words, number):
    """Whether what is said is a number rounded to three digits."""
    return value(words) == pytest.approx(number, rel=6e-3, abs=1e-12)


def said(kind, capture, *selection, facts=None, **more):
    spec = Spec(kind, Selection(*selection), **more)
    return figures.alt(Panel(spec, Looked(capture, facts or {})))


def first(name):
    capture = capture_of(name)
    layer = next(one for one in capture.spec.layers if one.heads)
    return capture, HeadId(layer.index, layer.heads[-1])


def brightest(capture, head):
    """Rows that see two keys or more, and over these (weight, row, column), gone through one by one
    in plain Python; of all rows where none sees two."""
    weights = capture.maps[head.layer].read(head.head).tolist()
    seen = seen_cells(capture, head.layer).tolist()
    rows = [i for i, row in enumerate(seen) if sum(row) >= 2]
    rows = rows or [i for i, row in enumerate(seen) if sum(row) >= 1]
    return rows, [(weights[i][j], i, j) for i in rows for j in range(len(seen[i])) if seen[i][j]]


# --- maps -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [one for one in MAKERS if one != "long"])
def test_the_brightest_cell_of_a_map_is_the_one_that_is_named(name):
    capture, head = first(name)
    rows, cells = brightest(capture, head)
    words = said("map", capture, *head)
    found = LARGEST.search(words)
    top = max(cells, key=lambda one: one[0])  # the first of equals
    assert found and about(found[2], top[0]), words
    assert found[1] is None or whole(found[1]) == len(rows)
    for token, place in ((found[3], capture.query_spans(head.layer)[top[1]]),
                         (found[5], capture.key_spans(head.layer)[top[2]])):  # fmt: skip
        assert (token is None) == (place[1] <= 0)
        assert token is None or whole(token) == max(place[0], 0)
    least = min(cells, key=lambda one: one[0])
    below = LEAST.search(words)
    assert bool(below) == (least[0] < 0), words
    if below:
        assert about(below[1], least[0])
        assert whole(below[2]) == capture.query_spans(head.layer)[least[1]][0]
        assert whole(below[4]) == capture.key_spans(head.layer)[least[2]][0]
    else:
        sums = {}
        for weight, _, j in cells:
            sums[j] = sums.get(j, 0.0) + weight
        gets = GETS.search(words)
        start, end = capture.key_spans(head.layer)[max(sums, key=sums.__getitem__)]
        assert gets and about(gets[3], 100 * max(sums.values()) / sum(sums.values()))
        assert (gets[1] is None) == (end <= 0)
        assert end <= 0 or whole(gets[1]) == max(start, 0)


def test_words_of_a_map_name_head_model_text_role_and_what_is_marked():
    class Fact:
        role, score = "previous letter", 1.0

    capture = replace(capture_of("sea"), off=frozenset({HeadId(0, 1), HeadId(3, 3)}))
    words = said("map", capture, 12, 2, 60, facts={HeadId(12, 2): Fact()}, title="Mine <b>\n")
    for part in ("Mine <b>↵. Attention map of head 12.2 of made for tests (level 1:1; ",
                 "role: previous letter", "over 90 letters, “The hourglass was used at sea. W",
                 "2 of 78 heads are switched off"):  # fmt: skip
        assert part in words
    row = capture.maps[12].read(2, (60, 61))[0]
    at = int(np.argmax(row))
    marked = re.search(rf"Marked: query {PLACE}, which gives most to key {PLACE}, {NUMBER}", words)
    assert whole(marked[1]) == 60 and whole(marked[3]) == at and about(marked[5], row[at])


def test_a_head_that_is_off_is_said_to_be_so_without_a_number():
    capture = replace(capture_of("sea"), off=frozenset({HeadId(12, 2)}))
    words = said("map", capture, 12, 2)
    assert "It is switched off, so that no weight is shown." in words
    assert "largest" not in words and "1 of 78 heads is switched off" in words
    assert "head 12.2: switched off" in said("levels", capture, 12, 2)
    assert "Switched off, without a link: 12.2" in said("links", capture, 12, 2)
    assert "Switched off: 12.2" in said("wall", capture)


def test_a_reduced_map_says_how_and_still_names_the_exact_cell():
    capture = plain(["word"] * 467, layers=1, heads=1)
    words = said("map", capture, 0, 0, width="1.5in")
    assert re.search(r"Each cell is the largest of (\d+) × \1 weights", words)
    weights = capture.maps[0].weights[0]
    i, j = np.unravel_index(weights.argmax(), weights.shape)
    found = LARGEST.search(words)
    assert (whole(found[3]), whole(found[5])) == (i, j)


@pytest.mark.parametrize("signed", [False, True])
def test_of_a_very_large_map_the_largest_weight_is_found_without_reading_all(signed, monkeypatch):
    monkeypatch.setattr(peaks, "WHOLE", 1000)
    monkeypatch.setattr(peaks, "SIDE", 16)
    sizes = []

    class Watched(Dense):
        def read(self, head, rows=None, columns=None, zoom=0, reduce="max"):
            found = self.weights[self.heads.index(head)]
            found = np.abs(found) if zoom else found
            found = Dense(found[None], (head,)).read(head, rows, columns, zoom, reduce)
            sizes.append(found.size)
            return found

    base = plain(["w"] * 298, layers=1, heads=1)
    random = np.random.default_rng(3)
    weights = random.normal(size=(1, 300, 300)).astype("f4")
    weights = weights if signed else np.abs(weights)
    capture = replace(base, maps=(Watched(weights, (0,), signed),))
    words = said("map", capture, 0, 0, width="20in")
    i, j = np.unravel_index(np.abs(weights[0]).argmax(), (300, 300))
    name = "weight of largest magnitude" if signed else "largest weight"
    found = re.search(rf"The {name} is {NUMBER}, from query {PLACE} to key {PLACE}", words)
    assert about(found[1], weights[0, i, j])
    assert (whole(found[2]), whole(found[4])) == (i, j)
    assert sum(sizes) < 300 * 300 / 2


# --- the other kinds of a capture -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["sea", "signed", "ragged", "two texts", "many heads"])
def test_a_wall_counts_its_heads_and_names_the_sharpest(name):
    capture = capture_of(name)
    heads = [HeadId(one.index, head) for one in capture.spec.layers for head in one.heads]
    means = {
        head: np.abs(capture.maps[head.layer].read(head.head)).max(1).mean(dtype=float)
        for head in heads
    }
    words = said("wall", capture)
    layers = sum(bool(one.heads) for one in capture.spec.layers)
    assert f"all {len(heads)} heads in {layers} layers" in words
    found = re.search(
        rf"Head (\S+) looks most sharply: its queries' largest weight is {NUMBER} in the mean; "
        rf"head (\S+) least, {NUMBER}", words,
    )  # fmt: skip
    top, low = max(heads, key=means.__getitem__), min(heads, key=means.__getitem__)
    assert (found[1], found[3]) == (str(top), str(low))
    assert about(found[2], means[top]) and about(found[4], means[low])
    signed = sum(capture.maps[head.layer].signed for head in heads)
    assert (f"The weights of {signed} of them can be below 0" in words) == bool(signed)


def test_the_sharpest_head_is_not_looked_for_where_that_takes_long(monkeypatch):
    monkeypatch.setattr(peaks, "LARGE", 100)
    monkeypatch.setattr("hgviz.figures.words.telling.LARGE", 100)
    assert "sharply" not in said("wall", capture_of("sea"))


@pytest.mark.parametrize("name", ["sea", "signed", "words", "two texts", "slots"])
def test_of_all_levels_the_strongest_key_of_every_stage_is_named(name):
    capture = capture_of(name)
    query = len(capture.main) - 1
    words = said("levels", capture, 0, 0, query)
    stages = re.findall(rf"head (\d+)\.(\d+)(?: \([^)]*\))?: most at {PLACE}, {NUMBER}", words)
    assert len(stages) == int(re.search(r"looks in (\d+) stages?", words)[1])
    for layer, head, start, _, weight in stages:
        at = capture.row(int(layer), query)
        row = capture.maps[int(layer)].read(int(head), (at, at + 1))[0]
        spans = capture.key_spans(int(layer))
        seen = seen_cells(capture, int(layer))[at] & (spans[:, 1] > 0)
        best = max((abs(row[j]), -j) for j in range(len(row)) if seen[j])
        assert whole(start) == spans[-best[1]][0]
        assert about(weight, row[-best[1]])


@pytest.mark.parametrize("name", ["sea", "signed", "words", "two texts"])
def test_of_links_their_number_the_strongest_and_their_share_are_said(name):
    capture, head = first(name)
    query = len(capture.query_prompt(head.layer)) - 1
    words = said("links", capture, *head, query, links=Linking(most=3))
    row = capture.maps[head.layer].read(head.head, (query, query + 1))[0].astype(float)
    order = np.argsort(-np.abs(row), kind="stable")[:3]
    found = re.search(
        rf"(\d+) links from query {PLACE} to ([\d,]+) keys; the strongest goes to key {PLACE}, "
        rf"{NUMBER}; together they have {NUMBER} %", words,
    )  # fmt: skip
    assert found, words
    assert int(found[1]) == np.count_nonzero(row[order]) and whole(found[2]) == query
    assert whole(found[4]) == len(row) and whole(found[5]) == order[0]
    assert about(found[7], row[order[0]])
    assert about(found[8], 100 * np.abs(row[order]).sum() / np.abs(row).sum())


def test_of_several_queries_and_heads_the_strongest_link_is_told_with_both():
    capture, heads = capture_of("sea"), (HeadId(12, 1), HeadId(12, 2))
    links = Linking(heads=heads, queries=(20, 30, 40, 50), most=2)
    words = said("links", capture, 12, 1, links=links)
    best = max(
        (float(capture.maps[12].read(head.head)[q].max()), head, q)
        for head in heads for q in links.queries
    )  # fmt: skip
    found = re.search(rf"strongest goes by head (\S+) from {PLACE} to key {PLACE}, {NUMBER}", words)
    assert found[1] == str(best[1]) and whole(found[2]) == best[2] and about(found[6], best[0])
    assert "Links of 2 heads" in words and "and 2 more" in words and "16 links" in words


def test_of_all_maps_composed_it_is_said_where_an_answer_comes_from():
    capture = make_capture(SEA[:40])
    panel = finish(tasks.panel(Spec("rollout", Selection(query=30)), capture))
    words = figures.alt(panel)
    rows = finish(tasks.rollout(capture))
    at = int(rows[30].argmax())
    assert words.startswith("All maps of made for tests composed to one (mean of the heads")
    marked = re.search(rf"Marked: query {PLACE}, which gives most to key {PLACE}, {NUMBER}", words)
    assert whole(marked[1]) == 30 and whole(marked[3]) == at
    assert about(marked[5], rows[30, at])
    assert "took the way through" in words


# --- charts ---------------------------------------------------------------------------------------


def test_two_heads_differ_most_where_it_is_said():
    a, b = make_capture(SEA[:40]), make_capture(SEA[:40], seed=1)
    words = figures.alt(finish(tasks.panel(Spec("compare", Selection(12, 2)), [a, b])))
    one, two = (each.maps[12].read(2).astype(float) for each in (a, b))
    apart = one - two
    for name, sign in (("A", 1), ("B", -1)):
        i, j = np.unravel_index((sign * apart).argmax(), apart.shape)
        found = re.search(
            rf"{name} weighs most more, {NUMBER}, from query {PLACE} to key {PLACE} "
            rf"\({NUMBER} against {NUMBER}\)", words,
        )  # fmt: skip
        assert (whole(found[2]), whole(found[4])) == (i, j)
        assert about(found[1], abs(apart[i, j]))
        assert about(found[6], one[i, j]) and about(found[7], two[i, j])
    same = figures.alt(finish(tasks.panel(Spec("compare"), [a, a])))
    assert "the same wherever both have a weight" in same and "more" not in same


def test_lines_are_told_by_their_ends_and_marks():
    panel = panel_of("curve")
    words = figures.alt(panel)
    for line in panel.content.panels[0].lines:
        found = re.search(
            rf"{line.label} goes from {NUMBER} at {NUMBER} to {NUMBER} at {NUMBER}, k\* (\d+)",
            words,
        )
        ends = line.y[0], line.x[0], line.y[-1], line.x[-1]
        assert all(about(one, other) for one, other in zip(found.groups()[:4], ends, strict=True))
        assert int(found[5]) == line.x[line.mark]
    band = panel.content.panels[0].band
    found = re.search(rf"ends between {NUMBER} and {NUMBER}, its middle at {NUMBER}", words)
    expected = band.low[-1], band.high[-1], band.middle[-1]
    assert all(about(one, other) for one, other in zip(found.groups(), expected, strict=True))


def test_the_most_and_the_least_needed_heads_have_their_intervals():
    panel = panel_of("scores")
    words, chart = figures.alt(panel), panel.content
    head = rf"(\d+\.\d+), {NUMBER} \({NUMBER} to {NUMBER}\)"
    most, least = (
        re.findall(head, re.search(rf"{end} needed: (.*?\))\.", words)[1])
        for end in ("Most", "Least")
    )
    assert [one[0] for one in most] == list(chart.names[:3])
    assert [one[0] for one in least] == list(chart.names[:-4:-1])
    for at, one in [
        *enumerate(most),
        *((len(chart.names) - 1 - n, e) for n, e in enumerate(least)),
    ]:
        for text, numbers in zip(one[1:], (chart.value, chart.low, chart.high), strict=True):
            assert about(text, numbers[at])
    zero = sum(a <= 0 <= b for a, b in zip(chart.low, chart.high, strict=True))
    assert f"The intervals of {zero} of {len(chart.names)} heads include 0" in words


def test_metrics_of_heads_are_largest_and_smallest_where_it_is_said():
    panel = panel_of("profile")
    words, chart = figures.alt(panel), panel.content
    metric = chart.metrics[0]
    found = re.search(
        rf"{re.escape(chart.sides[0].name)}: most in head (\S+), {NUMBER}, least in head (\S+), "
        rf"{NUMBER}; its mean is largest in layer (\d+), {NUMBER}", words,
    )  # fmt: skip
    values = dict(zip(chart.sides[0].heads, metric.values[0], strict=True))
    values = {head: one for head, one in values.items() if np.isfinite(one)}
    top, low = max(values, key=values.get), min(values, key=values.get)
    assert (found[1], found[3]) == (str(top), str(low))
    assert about(found[2], values[top]) and about(found[4], values[low])
    layers = {head.layer for head in values}
    means = {n: np.mean([v for h, v in values.items() if h.layer == n]) for n in layers}
    layer = max(means, key=means.get)
    assert int(found[5]) == layer and about(found[6], means[layer])


def test_of_neurons_the_strongest_key_and_element_are_said():
    panel = panel_of("neurons")
    words, chart = figures.alt(panel), panel.content
    weights = chart.stages[-1].values
    at = int(np.nanargmax(np.abs(weights)))
    found = re.search(rf"The largest weight is {NUMBER}, on key {PLACE}", words)
    assert about(found[1], weights[at]) and whole(found[2]) == chart.spans[at][0]
    products = chart.products[0].values[chart.marked]
    found = re.search(rf"element (\d+) is the largest, {NUMBER}", words)
    assert int(found[1]) == products.argmax() and about(found[2], products.max())
    assert about(re.search(rf"their sum {NUMBER}", words)[1], products.sum())


def test_charts_of_reports_are_told_by_their_largest_numbers():
    x = np.arange(4.0)
    nothing = np.full(4, np.nan)
    ticks = ((0.0, "0"), (3.0, "¼"))
    plots = Plots((Plot("Two", "x", "y", (Line("a", x, x),), ticks),))
    words = DRAWINGS["plots"].words(Spec("plots"), plots)
    assert words == "Two (y over x): a goes from 0 at 0 to 3 at ¼."
    plots = Plots((Plot("One", "x", "y", (Line("a", x, x**2), Line("b", x, nothing))),), "T")
    words = DRAWINGS["plots"].words(Spec("plots"), plots)
    assert words == "T. One (y over x): a goes from 0 at 0 to 9 at 3; b has no point."
    strips = Strips((Strip("Entropy", "nats", (x, x), ((1, 0.5, 2), (3, np.nan, np.nan))),),
                    ("m", "n"))  # fmt: skip
    words = DRAWINGS["strips"].words(Spec("strips"), strips)
    assert words.endswith("A is m, B n. Entropy (nats): A 1 (0.5 to 2), B 3.")
    values = np.array([[0, 0.4], [0.7, 0]])
    grid = Grid("Within A", values, ("0.0", "0.1"), ("0.0", "0.1"), "Head", "Head")
    words = DRAWINGS["grids"].words(Spec("grids"), Grids((grid,), "Distance"))
    assert "Within A: from 0.4 at 0.0 and 0.1 to 0.7 at 0.1 and 0.0." in words
    none = Scores((), x[:0], x[:0], x[:0], (), (), "Score", "Title")
    assert DRAWINGS["scores"].words(Spec("scores"), none) == "Title. No head."


# --- what all words have in common ----------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_words_of_any_text_are_short_printable_and_name_no_folder(name):
    capture, head = first(name)
    capture = replace(capture, spec=replace(capture.spec, name="/home/ann/secret/model\n\u202e"))
    for kind in ("map", "levels", "links"):
        words = said(kind, capture, *head)
        assert 40 < len(words) <= spoken.LONGEST
        assert all(one.isprintable() or one in "\u200c\u200d" for one in words)
        assert "ann" not in words.replace("change", "") and "\u202e" not in words
        assert words == said(kind, capture, *head)


@pytest.mark.parametrize(
    ("text", "shown"),
    [(" ", "·"), ("\n", "↵"), ("\t", "⇥"), ("\x00", "\\x00"), ("", ""), (" the", "the"),
     ("모래", "모래"), ("\u0301", "◌\u0301"), ("\u202e", "□"), ("\ud800", "□"), ("   ", "·"),
     ("a" * 30, "a" * 23 + "…")],
)  # fmt: skip
def test_texts_are_made_visible_the_same_on_every_machine(text, shown):
    assert spoken.quoted(text) == f"“{shown}”"


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0"), (0.12345, "0.123"), (-0.5, "−0.5"), (1.2e-7, "1.2e−7"), (1234.5, "1,234"),
     (1, "1"), (-0.0, "0"), (float("nan"), "no number"), (999.96, "1,000"), (99.95, "100")],
)  # fmt: skip
def test_numbers_are_said_with_three_digits(number, words):
    assert spoken.said(number) == words


# --- in the files ---------------------------------------------------------------------------------


def alt_of(kind):
    if kind != SHEET:
        return figures.alt(panel_of(kind))
    return figures.alt_of_sheet(Sheet(), [panel_of(one) for one in ("map", "activation", "levels")])


@pytest.mark.parametrize("kind", EVERY)
def test_an_svg_is_one_picture_with_a_title_and_its_words(kind, tmp_path):
    root = ElementTree.parse(draw(kind, tmp_path / "f.svg")).getroot()
    named = root.get("aria-labelledby").split()
    assert root.get("role") == "img" and len(named) == 2
    found = {one.get("id"): one for one in root.iter() if one.get("id")}
    title, desc = (found[one] for one in named)
    assert title.tag.endswith("title") and title.text and desc.tag.endswith("desc")
    assert desc.text == alt_of(kind)
    ids = [one.get("id") for one in root.iter() if one.get("id")]
    assert len(ids) == len(set(ids))
    assert [one for one in root.iter() if one.tag.endswith("}RDF")]


@pytest.mark.parametrize("kind", ["map", "curve", "links", SHEET])
def test_a_pdf_is_tagged_as_a_figure_with_its_words(kind, tmp_path):
    content = draw(kind, tmp_path / "f.pdf").read_bytes()
    found = re.search(rb"/S /Figure .*?/Alt <FEFF([0-9A-F]+)>", content)
    assert bytes.fromhex(found[1].decode()).decode("utf-16-be") == alt_of(kind)
    assert content.count(b"/StructTreeRoot") >= 2 and b"/Marked true" in content
    # every object lies where the last tables say, the newest of each number first
    places, start = {}, int(content.split(b"startxref")[-1].split()[0])
    while start is not None:
        table = content[start:]
        table = table[: table.index(b"startxref")]
        at = 0
        for line in table.split(b"trailer")[0].splitlines()[1:]:
            parts = line.split()
            if len(parts) == 2:
                at = int(parts[0])
            else:
                places.setdefault(at, int(parts[0]) if parts[2] == b"n" else None)
                at += 1
        before = re.search(rb"/Prev (\d+)", table)
        start = int(before[1]) if before else None
    for number, place in places.items():
        assert place is None or content[place:].startswith(b"%d 0 obj" % number)


@pytest.mark.skipif(not shutil.which("pdfinfo"), reason="poppler is not here")
def test_readers_of_pdf_find_the_figure_and_draw_it_as_before(tmp_path):
    path = draw("map", tmp_path / "f.pdf")
    told = subprocess.run(
        ["pdfinfo", "-struct", path], capture_output=True, text=True, check=True, timeout=100
    )
    assert not told.stderr and re.search(r"Document\s+Figure", told.stdout)
    told = subprocess.run(
        ["pdfinfo", path], capture_output=True, text=True, check=True, timeout=100
    )
    assert re.search(r"Tagged:\s+yes", told.stdout) and alt_of("map")[:60] in told.stdout


def test_a_pdf_of_another_make_stays_as_it_is():
    for content in (
        b"",
        b"%PDF-1.7 nothing",
        b"%PDF\ntrailer\n<< /Root 1 0 R >>\nstartxref\n0\n%%EOF\n",
    ):
        assert accessible.pdf(content, "words") == content


def test_a_png_and_what_latex_takes_say_the_words(tmp_path):
    words = alt_of("map")
    with Image.open(draw("map", tmp_path / "f.png")) as image:
        assert image.info["Description"].startswith(f"{words}\n")
    assert f"% alt: {words}\n" in draw("map", tmp_path / "f.pgf").read_text()
    assert figures.draw(panel_of("map"), tmp_path / "f.txt").read_text() == f"{words}\n"


def test_hostile_words_break_no_file(tmp_path):
    capture = make_capture(HOSTILE[:12], strides=(1, 2), heads=1)
    panel = Panel(Spec("map", title="]]></desc>--><script>\x00\ud800"), Looked(capture))
    root = ElementTree.parse(figures.draw(panel, tmp_path / "f.svg")).getroot()
    (desc,) = (one for one in root if one.tag.endswith("desc"))
    assert desc.text == figures.alt(panel) and "</desc>--><script>\\x00□" in desc.text
    for form in ("pdf", "pgf"):
        assert figures.draw(panel, tmp_path / f"f.{form}").exists()


def test_every_picture_of_a_page_says_its_words(tmp_path):
    chart = panel_of("activation").content
    report = Document("T", "t", (Picture("plots", chart, "One & two."),) * 2)
    page = write(report, tmp_path / "r.html", "hgviz compare").read_text()
    words = DRAWINGS["plots"].words(Spec("plots"), chart)
    drawings = re.findall(r"<svg .*?</svg>", page, re.DOTALL)
    assert len(drawings) == 2
    for one in drawings:
        root = ElementTree.fromstring(one)
        assert root.get("role") == "img" and root.get("aria-label") == words


def test_a_notebook_has_the_words_of_its_figure():
    capture = make_capture("Sand runs.", strides=(1, 2), heads=2)
    found = hgviz.figure(capture, "map", query=5)
    assert found.alt.startswith("Attention map of head") and found.alt is found.alt
    assert 'role="img"' in found._repr_svg_() and "aria-labelledby" in found._repr_svg_()


def test_the_words_of_every_kind_are_there():
    for kind in FIGURES:
        words = alt_of(kind)
        assert len(words) > 60 and words[0].isupper() and words[-1] in ".…", words
        assert str(Path.home()) not in words


def test_of_an_answer_the_tokens_heads_and_keys_that_count_most_are_said():
    base = plain(["one", "two", "three"])
    values = np.array([0.1, -0.5, 2.0, 0.0, np.nan])
    keys = Beside(base.prompt, base.spans[0], (("Attention", np.arange(5.0)),))
    chart = Answer(
        (Share("", base.prompt, values),), {HeadId(0, 1): 0.25, HeadId(1, 0): -0.75}, {2: 1.0},
        keys, title="Why “yes”",
    )  # fmt: skip
    words = DRAWINGS["attribution"].words(Spec("attribution"), chart)
    assert words == (
        "Why “yes”. Most from token 2 “two”, 2; token 0 “[CLS]”, 0.1; most "
        "against from token 1 “one”, −0.5; their sum is 1.6. Most from head 0.1, 0.25; most "
        "against from head 1.0, −0.75; their sum is −0.5. Most from layer 2, 1; their "
        "sum is 1. Attention: most from key 4 “[SEP]”, 4; key 3 “three”, 3; key 2 “two”, 2; their "
        "sum is 10."
    )
    assert len(spoken.joined([words] * 30)) <= spoken.LONGEST
