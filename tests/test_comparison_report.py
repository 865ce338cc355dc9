"""The report of two models: every number from a pass or a capture, the same twice to the byte."""

import csv
import json
import re
from contextlib import redirect_stdout
from html.parser import HTMLParser
from io import StringIO
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from hgviz import cli, tasks
from hgviz.core import HeadId
from hgviz.figures.output import Document, Notes, Table, write_report
from hgviz.models import open_model
from hgviz.models.attribution import example_gradients
from hgviz.models.layers import Tokens, attention_modules
from hgviz.models.run import Run
from hgviz.store import open_capture
from hgviz.tasks.comparison_report import report_page
from tests.models.building import write_checkpoint, write_transformer
from tests.test_evaluate import classifier, rows


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A small classifier over words, another seed of it that attends by ymish, and their data."""
    folder = tmp_path_factory.mktemp("words")
    return classifier(folder / "soft"), classifier(folder / "other", seed=1), rows(folder)


@pytest.fixture(scope="module")
def found(words):
    """What is measured of them."""
    a, b, data = words
    models = open_model(a), open_model(b, activation="ymish")
    return models, tasks.compare_models(*models, data, texts=4)


class Page(HTMLParser):
    """All that a report names and says."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids, self.words = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def written(words, tmp_path_factory):
    """The report that one command makes, and what it said."""
    a, b, data = words
    folder = tmp_path_factory.mktemp("written")
    out, said = folder / "report.html", StringIO()
    with redirect_stdout(said):
        code = cli.main(
            ["compare", str(a), str(b), "--activation", "ymish", "--data", str(data), "--texts",
             "4", "--json", "-o", str(out)],
            cli.Window(None, None),
        )  # fmt: skip
    assert code == 0
    return out, json.loads(said.getvalue())


def test_one_command_makes_the_report_the_same_again_to_the_byte(written, found, tmp_path):
    command = "hgviz compare soft other --data rows.tsv --activation ymish --texts 4 -o report.html"
    again = tmp_path / "report.html"
    tasks.write_report(found[1], again, command)
    assert written[0].read_bytes() == again.read_bytes()
    assert b"pytest" not in again.read_bytes()


def test_a_report_needs_nothing_from_elsewhere(written):
    text = written[0].read_text()
    page = Page(text)
    assert "script" not in page.tags and "link" not in page.tags
    assert all(one.startswith(("#", "data:image/png;base64,")) for one in page.links)
    assert len(page.ids) == len(set(page.ids))
    missing = {one[1:] for one in page.links if one[0] == "#"} - set(page.ids)
    missing |= set(re.findall(r"url\(#(.*?)\)", text)) - set(page.ids)
    assert not missing
    drawings = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    assert len(drawings) == 4
    for one in drawings:
        ElementTree.fromstring(one)
        assert "aria-label" in one[:2000]


def test_json_has_every_number(written):
    facts = written[1]
    assert facts["kind"] == "report" and facts["texts"] == 4
    assert {one["metric"] for one in facts["metrics"]} == {one["metric"] for one in facts["heads"]}


def test_every_score_is_that_of_evaluating_each_model(found, words):
    (a, b), one = found
    for model, side in ((a, one.answers.a), (b, one.answers.b)):
        score = tasks.evaluate(model, words[2]).score
        assert (score.value, score.low, score.high) == (
            side.score.value, side.score.low, side.score.high,
        )  # fmt: skip


def test_numbers_of_heads_are_those_of_captures(found, words):
    (a, b), one = found
    for model, bench in ((a, one.a), (b, one.b)):
        some = tasks.examples_from(model, words[2]).sample(4)
        for number, row in enumerate(some.rows):
            capture = tasks.capture(model, model.from_ids(row.ids))
            for at, head in enumerate(bench.heads):
                weight = capture.maps[head.layer].read(head.head).astype(float)
                size = np.abs(weight)
                p = size / np.maximum(size.sum(1, keepdims=True), 1e-30)
                entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(1).mean()
                singular = np.linalg.svd(weight, compute_uv=False)
                q = singular / singular.sum()
                rank = np.exp(-(q * np.log(np.maximum(q, 1e-300))).sum()) / len(weight)
                below = (np.maximum(-weight, 0).sum(1) / np.maximum(size.sum(1), 1e-30)).mean()
                for name, value in (
                    ("entropy", entropy), ("rank", rank), ("negative_mass", below),
                    ("row_sum", weight.sum(1).mean()),
                ):  # fmt: skip
                    measured = bench.values[name][number, at]
                    assert measured == pytest.approx(value, abs=1e-5), (name, head)


def test_slopes_vanish_and_pass_as_autograd_says(found, words):
    (_, b), one = found
    examples = tasks.examples_from(b, words[2]).sample(4)
    row = examples.rows[0]
    ids = torch.tensor(row.ids)[None]
    # the bias of a head's queries moves its scores: the slope of the log odds by both ways
    module, layer = b.module, 0
    part = attention_modules(module)[layer]
    original = part.q.bias.data
    part.q.bias = torch.nn.Parameter(original, requires_grad=True)
    logits = module(Tokens(ids), Run())[0]
    wanted = int(row.wanted[0])
    others = torch.logsumexp(logits[torch.arange(len(logits)) != wanted], 0)
    (slope,) = torch.autograd.grad(logits[wanted] - others, part.q.bias)
    part.q.bias = torch.nn.Parameter(original, requires_grad=False)
    found = example_gradients(b, examples.batch([0]))
    for at in range(len(part.layer.heads)):
        block = found.head(HeadId(layer, part.layer.heads[at]))
        k = found._calls[layer].k[0, at].numpy()
        expected = part.rule.scale_of(at) * np.einsum("qk,kd->d", block.at_scores[0], k)
        mine = slope[at * part.d_head : (at + 1) * part.d_head].numpy()
        assert np.abs(mine - expected).max() <= 1e-5 * (1 + np.abs(mine).max())


def blocks(a, b, data, **more):
    """The blocks of the report of two models by their titles, without those that continue one."""
    page = report_page(tasks.compare_models(a, b, data, texts=2, **more))
    return {block.title: block for block in page.blocks if block.title}


def test_the_page_begins_with_both_scores_the_test_and_the_heads_that_differ_most(found):
    comparison = found[1]
    scores, test, heads = report_page(comparison).blocks[:3]
    for row, side in zip(scores.rows, (comparison.answers.a, comparison.answers.b), strict=False):
        ends = (side.score.value, side.score.low, side.score.high)
        assert row[1] == "{:.1f} % [{:.1f} %, {:.1f} %]".format(*(100 * end for end in ends))
    assert "McNemar" in test.columns[-1] and test.rows[0][-1].startswith(("0.", "1.", "<"))
    distances = [float(row[1]) for row in heads.rows]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] == pytest.approx(max(one.js for one in comparison.maps.heads), abs=1e-3)


def test_a_model_beside_itself_differs_in_nothing(words):
    a = open_model(words[0])
    page = blocks(a, a, words[2])
    assert "Different answers" not in page
    assert page["Answers"].rows[2][1].startswith("0 [")
    assert all(row[3].startswith(("0 [0, 0]", "–")) for row in page["Metrics of heads"].rows)


def test_heads_that_are_off_in_b_are_named(words):
    a = open_model(words[0])
    page = blocks(a, a, words[2], off=frozenset({HeadId(0, 1)}))
    assert page["Models"].rows[-1] == ("Heads off", "none", "0.1")


def test_models_that_cut_texts_otherwise_are_put_side_by_side(words, tmp_path):
    other = write_transformer(
        tmp_path / "bytes", form="encoder", vocab_size=256, goal="classes",
        labels=["no", "yes"], max_positions=64, dtype=torch.float32, activations="ymish",
    )  # fmt: skip
    page = blocks(open_model(words[0]), open_model(other), words[2])
    assert any("tokenize every text differently" in note for note in page["Method"].sentences)
    assert len(page["Distances between heads"].chart.grids) == 2


def test_texts_longer_than_the_models_are_cut_as_rows_are(tmp_path):
    keys = {
        "form": "encoder", "vocab_size": 256, "goal": "classes", "labels": ["no", "yes"],
        "max_positions": 16, "dtype": torch.float32,
    }  # fmt: skip
    a = write_transformer(tmp_path / "a", **keys)
    b = write_transformer(tmp_path / "b", activations="ymish", **keys)
    data = tmp_path / "data.tsv"
    data.write_text("sentence\tlabel\n" + "".join(f"{n} {'so long ' * 9}\tyes\n" for n in range(3)))
    found = tasks.compare_models(open_model(a), open_model(b), data, texts=2)
    assert len(found.captures[0].prompt) == 16 and found.text.startswith(("0 so", "1 so", "2 so"))
    assert any("is cut to the positions of both models" in one for one in found.notes)


def test_language_models_are_put_side_by_side(tmp_path):
    keys = {"vocab_size": 256, "dtype": torch.float32}
    a = write_checkpoint(tmp_path / "a", **keys)
    b = write_checkpoint(tmp_path / "b", seed=1, activations="ymish", **keys)
    data = tmp_path / "data.txt"
    data.write_text("the cat sat on the mat, and so it went on. " * 12)
    page = blocks(open_model(a), open_model(b), data, text="the cat")
    assert page["Answers"].columns[1] == "Bits per byte"
    assert "“the cat”" in page["The head that differs most"].caption


def test_a_stranger_s_text_stays_text(words, tmp_path):
    evil = "<script>alert(1)</script> </svg> &amp; \u202e $x_1$ 'good' \x07"
    blocks = (Notes(evil, (evil,)), Table(evil, (evil, evil), ((evil, evil),) * 70))
    report = Document(evil, evil, blocks)
    write_report(report, tmp_path / "evil.html", f"hgviz compare {evil}")
    page = Page((tmp_path / "evil.html").read_text())
    assert "script" not in page.tags
    assert sum(evil in one for one in page.words) > 140


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("--text film -o x.html", 2, "needs --data"),
        ("--data DATA --texts 3", 2, "for a report"),
        ("--data DATA -o nowhere/x.html", 1, "no folder"),
        ("--data none.tsv -o x.html", 1, "none.tsv"),
        ("--data DATA -o x.docx", 2, "does not end in"),
        ("--data DATA --texts 0 -o x.html", 2, "--texts"),
    ],
)
def test_what_cannot_be_is_said(words, refusal, tmp_path, monkeypatch, line, code, message):
    monkeypatch.chdir(tmp_path)
    given = [words[2] if one == "DATA" else one for one in line.split()]
    assert message in refusal("compare", *words[:2], *given, code=code)
    assert not list(tmp_path.glob("*.html"))


# --- figures --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def captured(words, tmp_path_factory):
    """Captures of both on one text."""
    folder = tmp_path_factory.mktemp("captured")
    paths = []
    for name, one, how in (("a", words[0], None), ("b", words[1], "ymish")):
        model = open_model(one, activation=how)
        paths.append(folder / f"{name}.h5")
        tasks.capture(model, model.tokenize("a good film is good"), paths[-1])
    return paths


@pytest.mark.parametrize("ending", ["pdf", "svg", "png", "csv"])
def test_a_figure_of_two_captures_is_the_same_twice(captured, run, tmp_path, ending):
    files = []
    for _ in range(2):
        out = tmp_path / f"pair.{ending}"
        code, said, error = run("figure", *captured, "--kind", "compare", "--head", 1, "-o", out)
        assert (code, error) == (0, ""), error
        files.append(out.read_bytes())
    assert files[0] == files[1]
    if ending == "csv":
        maps = [open_capture(path).maps[0].read(1) for path in captured]
        for line in csv.DictReader(StringIO(files[0].decode(), newline="")):
            assert line["state"] == "seen"
            cell = int(line["row_first"]), int(line["column_first"])
            a, b, apart = (float(line[name]) for name in ("A", "B", "A - B"))
            assert a == pytest.approx(maps[0][cell], rel=1e-6)
            assert b == pytest.approx(maps[1][cell], rel=1e-6)
            assert apart == pytest.approx(maps[0][cell] - maps[1][cell], rel=1e-5, abs=1e-7)


def test_activations_of_captures_are_drawn(captured, run, tmp_path):
    out = tmp_path / "shapes.csv"
    code, _, error = run("figure", *captured, "--kind", "activation", "-o", out)
    assert (code, error) == (0, "")
    points = list(csv.reader(out.read_text().splitlines()[1:]))
    at = {(one[0], one[1].split(",")[0], float(one[2])): float(one[3]) for one in points}
    assert at["Weight", "softmax", 0.0] == 0.5
    assert at["Weight", "ymish", -2.0] == pytest.approx(-2 * np.tanh(2), rel=1e-6)
    steep = np.tanh(2) + 2 / np.cosh(2) ** 2
    assert at["Derivative", "ymish", 2.0] == pytest.approx(steep, rel=1e-6)
    assert at["Derivative", "softmax", 0.0] == pytest.approx(0.25)


def test_a_figure_of_a_pair_needs_two(captured, run, tmp_path):
    out = tmp_path / "pair.pdf"
    assert run("figure", captured[0], "--kind", "compare", "-o", out)[0] == 2
    assert run("figure", *captured, "--kind", "map", "-o", out)[0] == 2
    code, _, error = run("figure", *captured, "--kind", "compare", "--head", 9, "-o", out)
    assert code == 1 and error.count("\n") == 1 and not out.exists()
