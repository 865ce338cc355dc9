"""Charts show the numbers they are of: curves, scores, profiles, neurons, links and answers."""

import csv
import html
import re
import shlex
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from hgviz import palettes, tasks
from hgviz.analysis import importance as analysed
from hgviz.analysis.roles import roles
from hgviz.core import HeadId, HgvizError, Selection
from hgviz.figures import Spec
from hgviz.figures.output import compose, draw
from hgviz.figures.spec import quoted
from hgviz.files import resource
from hgviz.maps import DenseMap
from hgviz.models import open_model
from hgviz.tasks.attribution import MOST_KEYS as MOST_SCORED
from hgviz.tasks.attribution import prompt_options
from hgviz.tasks.charts import (
    MOST_SIDE,
    neurons_chart,
    profile_chart,
    spectrum_chart,
)
from tests.analysis.planting import letters, plant
from tests.figures.flaws import texts
from tests.figures.making import (
    HOSTILE,
    answer_of,
    answer_panel,
    capture_of,
    plain,
    study_of,
)
from tests.making import make_capture
from tests.studying import make_study

approx = pytest.approx


def words(page):
    return [text.get_text() for text in page.axes.texts]


def table(panel, path):
    with open(draw(panel, path)) as file:
        return list(csv.DictReader(file))


# --- curves and scores ----------------------------------------------------------------------------


def test_the_numbers_of_curves_are_those_of_the_study(tmp_path):
    study = study_of(("loo",))
    curve, band = study.curves[0], analysed.random_band(study.curves[1:])
    rows = table(tasks.panel(Spec("curve"), study), tmp_path / "f.csv")
    drawn = [row for row in rows if row["line"] == "loo"]
    assert [float(row["Accuracy, %"]) for row in drawn] == approx(100 * curve.values)
    assert [float(row["low"]) for row in drawn] == approx(100 * curve.low)
    assert [float(row["Heads switched off"]) for row in drawn] == curve.removed.tolist()
    most, least = analysed.removable_heads(curve)
    assert [row["marked"] for row in drawn if row["marked"]] == [f"{most}, at least {least}"]
    randoms = [row for row in rows if row["line"] != "loo"]
    assert [float(row["high"]) for row in randoms] == approx(100 * band.high)


# --- spectra --------------------------------------------------------------------------------------


def with_map(weights):
    """A capture whose only head has these weights."""
    maps = DenseMap(weights[None].astype(np.float32), (0,))
    return replace(make_capture("the sea", (1,), heads=1), maps=(maps,))


def test_a_spectrum_holds_the_singular_values_of_a_head():
    even, diagonal = np.full((8, 8), 1 / 8), np.eye(8)
    given = [with_map(even), with_map(diagonal)]
    chart = spectrum_chart(given, HeadId(0, 0))
    lines = chart.plots[0].lines
    assert lines[0].y == pytest.approx(np.ones(8)) and lines[0].x.tolist() == [*range(1, 9)]
    assert lines[1].y == pytest.approx(np.arange(1, 9) / 8)
    assert [note.split(": ")[-1][:6] for note in chart.notes] == ["1 of 8", "8 of 8"]
    for capture, head, words in (
        (given[0], HeadId(0, 1), "head 0.1 is not in"), (given[0], HeadId(3, 0), "head 3.0 is not"),
        (with_map(np.zeros((MOST_SIDE + 1, 1))), HeadId(0, 0), "Capture a shorter text"),
    ):  # fmt: skip
        with pytest.raises(HgvizError, match=words):
            spectrum_chart([capture], head)


# --- profiles -------------------------------------------------------------------------------------

N = 24


def planted():
    """A layer whose heads are even and look back by one; one that looks at the first letter and at
    itself."""
    even, first, back = np.tril(np.ones((N, N))), np.zeros((N, N)), np.eye(N, k=-1)
    even /= even.sum(1, keepdims=True)
    first[:, 0] = back[0, 0] = 1
    text = letters("abcdefghijklmnopqrstuvwx")
    return plant(text, [np.stack([even, back]), np.stack([first, np.eye(N)])])


def test_what_is_drawn_is_what_the_heads_measure():
    capture = capture_of("sea")
    facts, chart = roles(capture), profile_chart([capture], ["entropy", "distance", "previous"])
    for metric in chart.metrics:
        for head, value in zip(chart.sides[0].heads, metric.values[0], strict=True):
            np.testing.assert_equal(value, facts[head].metrics[metric.name])


def test_a_profile_shows_what_says_something_and_says_what_is_missing(monkeypatch):
    names = [metric.name for metric in profile_chart([planted()]).metrics]
    assert names == ["entropy", "distance", "first", "previous", "same"]
    capture = capture_of("sea")
    maps = (*capture.maps[:4], *[None] * (len(capture.maps) - 4))
    chart = profile_chart([replace(capture, maps=maps)], ["entropy"])
    assert "Layers 4 to 12 are not captured." in chart.notes
    assert {head.layer for head in chart.sides[0].heads} == {0, 1, 2, 3}
    monkeypatch.setattr("hgviz.analysis.metrics.BLOCK_ROWS", 4)
    monkeypatch.setattr("hgviz.analysis.metrics.CELLS", 1)
    assert "Measured on 8 of 24 rows." in profile_chart([planted()], ["distance"]).notes


def study_chart(*methods, study=study_of, **more):
    return tasks.study_chart("curve", [study()], methods, **more)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: study_chart("signed", axis="time"), "has no times"),
        (lambda: study_chart("nonsense"), "nonsense"),
        (lambda: study_chart(study=lambda: replace(make_study(), curves=())), "no pruning curve"),
        (lambda: profile_chart([planted()], ["height"]), "unknown metric 'height'"),
        (lambda: profile_chart([planted()], ["negative"]), "has no values"),
        (lambda: profile_chart([replace(planted(), maps=(None, None))], ["entropy"]), "no heads"),
        (lambda: neurons_chart(capture_of("words"), Selection(0, 0, 3)), "holds only weights"),
        (lambda: neurons_chart(capture_of("sea"), Selection(99, 0)), "no layer 99"),
        (lambda: neurons_chart(capture_of("sea"), Selection(), "size"), "unknown order 'size'"),
    ],
)
def test_what_a_chart_cannot_show_is_said(make, error):
    with pytest.raises(HgvizError, match=error):
        make()


# --- answers --------------------------------------------------------------------------------------

REVIEW = "A dull plot, but she never bores."
SOFTMAX, HOURGLASS = (str(resource(f"sample/{name}")) for name in ("softmax", "hourglass"))


def page_of(panel):
    return compose(panel.spec, panel.content)


def test_bars_go_up_for_what_adds_and_down_for_what_takes_away():
    capture = plain(["good", "bad", "so", "so"], special=False)
    found = replace(answer_of(capture, classes=True), tokens=np.array([3.0, -1.5, 0.0, 1.5]))
    page = page_of(answer_panel(capture, "tokens", found=found))
    assert {"−3", "+3", "0"} <= set(words(page))  # the bar of colours is symmetric
    bars = []  # below and above; what adds nothing has no bar
    for at in (40, 215):
        colour = palettes.colours("blue-red")[at] / 255
        same = [patch for patch in page.axes.patches if patch.get_height() < 8.6
                and np.allclose(patch.get_facecolor()[:3], colour, atol=1e-6)]  # fmt: skip
        bars.append([(patch.get_y(), patch.get_height()) for patch in same])
    ((zero, length),), above = bars
    assert all(y + high == approx(zero) for y, high in above)  # y runs down the page
    assert [high for _, high in above] == approx([2 * length, length])


def test_completeness_what_is_not_heard_and_heads_that_are_off_are_said():
    sea = capture_of("sea")
    said = " ".join(words(page_of(answer_panel(sea, "tokens"))))
    assert "the output changes by +3.500" in said
    assert f"completeness error {100 * answer_of(sea).error:,.0f} %" in said
    off = replace(sea, off=frozenset({HeadId(0, 1)}))
    said = words(page_of(answer_panel(off, "heads", "neurips")))
    assert said.count("off") == 1 and "Switched off: 0.1." in said
    panel = answer_panel(sea, "attention")
    assert len(panel.content.keys.spans) == MOST_SCORED
    assert any(f"The {MOST_SCORED} most important keys of" in note for note in panel.content.notes)


def command_in(drawn):
    return shlex.split(
        html.unescape(re.search(r"command: (hgviz attribute .*? -o f\.svg)", drawn)[1])
    )


@pytest.mark.parametrize(
    "asked",
    [
        (SOFTMAX, "--text", REVIEW, "--method", "attention", "--head", "1.2", "--query", "0"),
        (HOURGLASS, "--text", 'The "sea" $HOME ', "--token", "3", "--says", "x"),
        (SOFTMAX, "--text", REVIEW, "--target-class", "positive", "--target-class", "negative"),
    ],
)
def test_the_command_in_a_figure_draws_it_again_to_the_byte(asked, tmp_path, output, monkeypatch):
    (tmp_path / "again").mkdir()
    steps = ("--steps", "8", "--baseline", "mean", "--width", "acl")
    output("attribute", *asked, *steps, "-o", tmp_path / "f.svg")
    drawn = (tmp_path / "f.svg").read_text()
    monkeypatch.chdir(tmp_path / "again")
    command = command_in(drawn)
    assert command[:2] == ["hgviz", "attribute"] and "/" not in command[2].removeprefix("sample/")
    output(*command[1:])
    assert (tmp_path / "again" / "f.svg").read_text() == drawn and str(tmp_path) not in drawn


def test_a_command_names_only_a_text_that_the_model_reads_the_same():
    model = open_model(HOURGLASS)
    seen = tasks.capture(model, model.tokenize("The sea"))
    assert prompt_options(model, seen) == ("--text", "The sea") and prompt_options(None, seen) == ()
    turned = replace(seen, prompt=replace(seen.prompt, ids=seen.prompt.ids[::-1].copy()))
    assert prompt_options(model, turned) == ()


def test_a_shell_reads_the_text_in_a_command_as_it_was():
    for text in ("two\nlines\tof 'it'", "\\n \u202e\u200b\x7f1 $HOME", HOSTILE):
        text = text.replace("\0", "")  # no command line can hold it
        word = quoted(text)
        assert word.isprintable()
        shell = ["bash", "-c", f"printf %s {word}"]
        run = subprocess.run(shell, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
        assert run.stdout.decode() == text


@pytest.mark.parametrize(
    ("asked", "code", "error"),
    [
        ("attribute softmax --text a -o f.gif", 2, "does not end in"),
        ("attribute softmax --text a -o f.json --numbers", 2, "--numbers requires a figure"),
        ("attribute softmax --text-file my.csv -o my.pdf --numbers", 2, "my.csv is also an input"),
        ("attribute softmax --text a --target-class positive --target-class negative", 2,
         "need --method tokens"),
        ("figure sample/first.h5 --kind attribution -o f.pdf", 2, "hgviz attribute MODEL --text T"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_clear_line(asked, code, error, refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.csv").write_text("The sea.")
    command = (SOFTMAX if word == "softmax" else word for word in asked.split())
    assert error in refusal(*command, code=code)
    assert (tmp_path / "my.csv").read_text() == "The sea." and len(list(tmp_path.iterdir())) == 1


def test_colours_of_elements_are_symmetric_and_no_number_lies_on_the_line_beside_it():
    chart = neurons_chart(capture_of("sea"), Selection(0, 1, 30))
    values = np.resize([-0.000113, 0.987, -6.29e-5], len(chart.spans))
    chart = replace(chart, stages=tuple(replace(one, values=values) for one in chart.stages))
    page = compose(Spec("neurons", width="icml2"), chart)
    boxes = [box for text, box in texts(page) if text in ("−0.000113", "0.987", "−6.29e−5")]
    paths = [path.vertices for lines in page.axes.collections for path in lines.get_paths()]
    zeros = {float(path[0, 0]) for path in paths if len(path) == 2 and np.ptp(path[:, 0]) == 0}
    assert len(zeros) == len(chart.stages) and len(boxes) == len(zeros) * len(values)
    assert not [box for box in boxes for x in zeros if box[0] < x + 1 < box[2] + 1]
    colours, products = palettes.colours("blue-red"), chart.products[0]
    rasters = [np.asarray(image.get_array()).astype(int) for image in page.axes.images[:3]]
    for values in (products.left[None], products.right, products.values):
        limit = np.abs(values).max()
        places = palettes.palette_coordinates(values, (-limit, limit), "sqrt", True)
        wanted = palettes.paint(places, colours)
        assert any(one.shape == wanted.shape and np.abs(one - wanted).max() <= 1 for one in rasters)
