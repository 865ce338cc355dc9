"""The pages: their commands and pictures are those of the program, their tables of results."""

import csv
import functools
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import typer
from PIL import Image
from scipy.stats import ttest_1samp

from hgviz.analysis.statistics import student_interval
from hgviz.cli import app, verbs
from hgviz.figures import ANSWERS, FIGURES
from hgviz.tasks.study_results import StudyResults

DOCS = Path(__file__).parents[1] / "docs"
sys.path[:0] = [str(DOCS), str(DOCS / "findings")]

import growth  # noqa: E402 - beside the pages
import kept  # noqa: E402
import pictures  # noqa: E402
import reference  # noqa: E402

ROOT = DOCS.parent
PAGES = pictures.pages()
KINDS = (pictures.ALWAYS, pictures.ELSEWHERE)
PICTURES = sorted(one.name for one in pictures.PICTURES.iterdir() if one.is_file())
COMMANDS = typer.main.get_command(app)


def said(picture: str) -> str:
    """What a picture says of itself."""
    with Image.open(pictures.PICTURES / picture) as image:
        return str(image.info.get("Description", ""))


def makers(picture: str) -> list[list[str]]:
    """The commands of all pages that write this picture."""
    return [
        found[picture] for page in PAGES if picture in (found := pictures.written(page, *KINDS))
    ]


def asked(words: list[str]):
    """What a command asks for, defaults included."""
    with COMMANDS.make_context("hgviz", words[1:2], resilient_parsing=True) as whole:
        verb = COMMANDS.get_command(whole, words[1])
        with verb.make_context(words[1], words[2:], whole) as context:
            return context.params


def every_command(page: Path) -> list[list[str]]:
    """The commands of a page: of its blocks, and of lines that are set in by four blanks."""
    text = page.read_text("utf-8")
    shown = "\n".join(re.findall(r"^    (hgviz .*)$", text, re.MULTILINE))
    found = [
        *pictures.blocks(page),
        pictures.Block(pictures.ELSEWHERE, re.sub(r" {3,}\S.*$", "", shown, flags=re.MULTILINE)),
    ]
    return [
        words
        for block in found
        if block.kind in KINDS
        for words in block.commands()
        if words[0] == "hgviz" and len(words) > 1 and words[1] in verbs()
    ]


def test_every_picture_is_shown_by_a_page_and_every_page_shows_what_is_there():
    assert set().union(*map(pictures.shown, PAGES)) == set(PICTURES)


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_the_window_or_what_one_command_of_a_page_draws(picture):
    description = said(picture)
    if picture.endswith(("-light.png", "-dark.png")):
        assert description == "The window of hgviz, drawn by docs/pictures.py"
        return
    if picture == growth.PICTURE:
        assert description == growth.DESCRIPTION
        return
    (words,) = makers(picture)
    _, _, stored = description.rpartition("command: ")
    assert shlex.split(stored) == words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_is_one_of_the_program_and_no_other_is_run(page):
    for words in every_command(page):
        try:
            params = asked(words)
        except Exception as error:
            raise AssertionError(f"{page.name}: {shlex.join(words)}") from error
        assert words[1] != "figure" or params["kind"] in FIGURES, shlex.join(words)
    for block in pictures.blocks(page):
        assert not block.kind.startswith("sh ") or block.kind in KINDS
        if block.kind == pictures.ALWAYS:
            assert {words[0] for words in block.commands()} <= {"hgviz"}


def test_the_gallery_has_every_kind_of_figure():
    page = DOCS / "reference/figures.md"
    drawn = pictures.written(page, pictures.ALWAYS)
    kinds = {Path(name).stem for name in drawn}
    assert kinds == {*FIGURES, *ANSWERS}
    for name, words in drawn.items():
        assert asked(words).get("kind") in (None, Path(name).stem)
    assert pictures.shown(page) == set(drawn)
    headings = re.findall(r"^## (\w+)$", page.read_text("utf-8"), re.MULTILINE)
    assert {*headings} == {*FIGURES, *ANSWERS}


def test_a_page_makes_its_pictures_the_same_from_an_empty_folder(tmp_path, monkeypatch):
    """Of two pages, so that one shows what the other draws."""
    for name in ("DOCS", "PICTURES"):
        monkeypatch.setattr(
            pictures, name, tmp_path / "docs" / ("" if name == "DOCS" else "pictures")
        )
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs/one.md"
    figure = "hgviz figure sample/first.h5 --kind activation \\\n  -o a.png  # one chart"
    page.write_text(
        f"One.\n\n```sh\n{figure}\n```\n\n"
        "```sh elsewhere\nhgviz no such verb\n```\n\n```text\nhgviz neither\n```\n"
    )
    (tmp_path / "README.md").write_text("![Shown](docs/pictures/a.png)\n")
    assert pictures.make(tmp_path / "README.md") == []
    (made,) = pictures.make(page)
    assert made == tmp_path / "docs/pictures/a.png"
    first = made.read_bytes()
    assert said(made.name).endswith(
        "command: hgviz figure sample/first.h5 --kind activation -o a.png"
    )
    pictures.make(page)
    assert made.read_bytes() == first
    page.write_text(page.read_text().replace("sh elsewhere", "sh"))
    with pytest.raises(SystemExit, match="no such verb"):
        pictures.make(page)
    assert Path.cwd().is_dir() and made.read_bytes() == first


# --- pages that are made, links, the site ---------------------------------------------------------


@pytest.mark.parametrize("name", reference.PAGES)
def test_the_reference_is_what_the_code_says(name, monkeypatch):
    monkeypatch.delenv("HGVIZ_DEVICE", raising=False)
    written = (reference.REFERENCE / name).read_text("utf-8")
    assert written == reference.PAGES[name](), "python docs/reference.py writes it again"


def test_pages_say_how_many_models_open_as_the_table_does():
    for page in reference.SAYING:
        assert reference.counted() in page.read_text("utf-8"), "python docs/reference.py"


def test_no_model_of_the_table_is_shown_wrong():
    rows = reference.tried()[1]
    assert not [row["type"] for row in rows if row["found"] == "differs"]
    assert len({row["type"] for row in rows}) == len(rows)
    assert {row["found"] for row in rows} <= {*reference.MAPS, *reference.WHY, "part"}


def headings(page: Path) -> set[str]:
    """The names by which links lead to the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in found}


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=lambda page: page.stem
)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src(?:set)?="([^"]+)"', text)
    for link in links:
        path, _, heading = link.partition("#")
        if link.startswith(("http://", "https://")):
            continue
        file = page.parent / path if path else page
        assert file.exists(), link
        assert not heading or heading in headings(file), link


def test_the_first_page_leads_to_every_other():
    first = DOCS / "index.md"
    linked = re.findall(r"\]\(([^)#\s]+\.md)\)", first.read_text("utf-8"))
    assert {first.parent / one for one in linked} == {*PAGES} - {first, ROOT / "README.md"}


def test_the_pages_become_a_site_that_needs_no_network(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", tmp_path / "trees"]
    made = subprocess.run(
        [*command, DOCS, tmp_path / "site"], capture_output=True, text=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    files = list((tmp_path / "site").rglob("*.html"))
    assert len(files) >= len(PAGES)
    for file in files:
        text = file.read_text("utf-8")
        loaded = re.findall(r"<(?:script|link|img|source|iframe)\b[^>]*>", text)
        assert not [one for one in loaded if re.search(r'(?:src|href)="(?:https?:)?//', one)], file


# --- worked studies -------------------------------------------------------------------------------


KEPT = sorted(one.stem for one in kept.STUDIES.glob("*.csv"))
SCORE = "which-score"
ACTIVATION, HALF = "which-activation", "which-activation-half-rate"
BASE = "softmax"


@functools.cache
def study(name):
    """A study as its CSV has it."""
    with TemporaryDirectory() as folder:
        return kept.restore(name, Path(folder) / name)


@functools.cache
def results(name):
    """What a kept study says."""
    return StudyResults(study(name))


def points(one, told=False):
    """A difference in points with its interval, bold where it is more than chance."""
    text = f"{signed(one.mean)} ({signed(one.low)} to {signed(one.high)})"
    return f"**{text}**" if told else text


def signed(share):
    """+1.2 or −1.2, in points."""
    value = f"{100 * share:+.1f}"
    return ("0.0" if float(value) == 0 else value).replace("-", "−")


def percent(share):
    """A share of answers."""
    return f"{100 * share:.1f}"


def line(*cells):
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def pruning_rows(name):
    """Per cent right at each budget by method, and differences from random orders and michel."""
    found = results(name)
    apart = [
        {(row["method"], row["budget"]): row for row in rows}
        for rows in (found.random_differences, found.method_differences)
    ]
    for method in found.methods:
        rows = [row for row in found.pruning if row["method"] == method]
        means = np.mean([[at.mean for at in row["at"]] for row in rows], axis=0)[:3]
        pairs = [by.get((method, 0.75)) for by in apart]
        cells = [points(row["difference"], row["significant"]) if row else "" for row in pairs]
        yield line("random orders" if method == "random" else method, *map(percent, means), *cells)


def activation_rows(name, suffix=""):
    """Per cent right with softmax by model, and how far the other activations are from it."""
    found = results(name)
    for row in found.scores:
        if row["activation"] == BASE:
            pairs = [one for one in found.score_differences if one["model"] == row["model"]]
            cells = [points(one["difference"], one["significant"]) for one in pairs]
            yield line(row["model"] + suffix, percent(row["score"].mean), *cells)


def costs(what, length=""):
    """The rows of costs.csv about one thing, at one length, by name."""
    with (DOCS / "findings/costs.csv").open(encoding="utf-8") as file:
        return {row["name"]: row for row in csv.DictReader(file)
                if row["what"] == what and row["length"] == str(length)}  # fmt: skip


def bits(values):
    """Bits per byte."""
    return f"{values:.3f}"


def bits_apart(one):
    """A difference in bits per byte with its interval."""
    ends = " to ".join(f"{end:+.3f}" for end in (one.low, one.high))
    return f"{one.mean:+.3f} ({ends})".replace("-", "−")


def model_rows(name, timed=None, value=percent, apart=points):
    """Each model of a study: its score, how far it is from the first, parameters, time."""
    found, sizes = {}, {}
    for cell in study(name).of("score"):
        model = cell.cell.place["model"]
        found.setdefault(model, []).append(cell.found["value"])
        sizes[model] = cell.found["parameters"]
    first = next(iter(found))
    for model, scores in found.items():
        difference = student_interval(np.array(scores) - found[first])
        cells = [value(np.mean(scores)), "" if model == first else apart(difference)]
        cells += [f"{sizes[model]:,}"]
        if timed:
            ratio = float(timed[model]["gradient_ms"]) / float(timed[first]["gradient_ms"])
            cells += [f"{ratio:.2f}"]
        yield line(model, *cells)


def hourglass_rows(name):
    """The same of models of bytes that the study of that name compares."""
    return [*model_rows(name, costs(name, 512), bits, bits_apart)]


def way_rows():
    """How far each way to shorten is from average, and to upsample from repeat, with all others."""
    values = {}
    for cell in study("hourglass-resampling").of("score"):
        ways = tuple(cell.cell.place["model"].split(" / "))
        values[*ways, cell.cell.place["seed"]] = cell.found["value"]
    for part, (first, *others) in enumerate(
        (("average", "linear", "attention"), ("repeat", "linear", "attention"))
    ):
        for way in others:
            pairs = [
                value - values[*key[:part], first, *key[part + 1 :]]
                for key, value in values.items()
                if key[part] == way
            ]
            names = f"{way} {'upsampling' if part else 'shortening'}", first
            yield line(*names, str(len(pairs)), bits_apart(student_interval(np.array(pairs))))


def cost_rows():
    """Times of attention relative to softmax, at both lengths: forward, and with gradients."""
    both = [costs("activation", length) for length in (512, 2048)]
    for name in both[0]:
        cells = [f"{float(rows[name][key]) / float(rows['softmax'][key]):.1f}"
                 for rows in both for key in ("forward_ms", "gradient_ms")]  # fmt: skip
        yield line(name, *cells)


def projection_rows():
    """Parameters, times and memory of projected attention relative to none."""
    both = [costs("projection", length) for length in (512, 2048)]
    for name in both[0]:
        cells = [f"{int(rows[name]['parameters']):,}" for rows in both]
        for key in ("gradient_ms", "megabytes"):
            cells += [f"{float(rows[name][key]) / float(rows['no projection'][key]):.2f}"
                      for rows in both]  # fmt: skip
        yield line(name, *cells)


def growth_rows():
    """What each task takes at the least and the largest size of both curves, and its slopes."""
    rows = growth.read_rows()
    for task, words in growth.TASKS.items():
        cells, unit = [], "MB" if task == "file" else "s"
        for by_heads in (False, True):
            _, values = growth.curve(rows, task, by_heads)
            cells += [f"{value:.3g} {unit}" for value in (values[0], values[-1])]
            cells += [f"{growth.slope(rows, task, by_heads):.2f}".replace("-", "−")]
        yield line(words, *cells)


TABLES = {
    "findings/growth.md": lambda: [*growth_rows()],
    "findings/several-cls.md": lambda: [*model_rows("wider-cls", costs("wider-cls", 48))],
    "findings/pretraining.md": lambda: [*model_rows("pretrained-activation")],
    "findings/shortening.md": lambda: [
        *hourglass_rows("hourglass-resampling"), *way_rows(), *hourglass_rows("hourglass-shape"),
    ],
    "findings/costs.md": lambda: [*cost_rows(), *projection_rows()],
    "findings/pruning-scores.md": lambda: [*pruning_rows(SCORE)],
    "findings/activations.md": lambda: [
        *activation_rows(ACTIVATION), *activation_rows(HALF, ", half the rate"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("page", TABLES)
def test_the_tables_of_a_page_are_those_of_the_kept_results(page):
    there = (DOCS / page).read_text("utf-8").splitlines()
    missing = [row for row in TABLES[page]() if row not in there]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_study_has_every_score_and_curve_that_its_file_asks_for(name):
    sweep = study(name)
    asked = sweep.asked
    models = len(asked.data) * len(asked.models) * len(asked.activations) * len(asked.seeds)
    assert len(sweep.of("score")) == models
    assert len(sweep.of("curve")) == (models * (len(asked.methods) + 1) if asked.methods else 0)


def test_a_study_that_is_kept_again_is_the_same_file(tmp_path):
    for name in KEPT:
        kept.keep(study(name), tmp_path / "a.csv")
        assert (tmp_path / "a.csv").read_bytes() == (kept.STUDIES / f"{name}.csv").read_bytes()


def test_layers_are_what_the_page_says_of_the_first_half_that_goes():
    """michel-token takes the whole first layer of every model of two before any of the last."""
    first = []
    for cell in study(SCORE).of("curve", method="michel-token"):
        (curve,) = cell.found["curves"]
        order, half = curve["order"], len(curve["order"]) // 2
        last = max(one.split(".")[0] for one in order)
        first.append(not any(one.split(".")[0] == last for one in order[:half]))
    assert first == [True] * 15


def test_what_the_page_says_of_widths_is_so():
    """How much further behind softmax each activation is at width 96 than at 24."""
    found = results(ACTIVATION)
    by = {(row["model"], row["activation"]): row["difference"].values
          for row in found.score_differences}  # fmt: skip
    page = " ".join((DOCS / "findings/activations.md").read_text("utf-8").split())
    for name in ("tanh", "ymish", "per-head"):
        assert points(student_interval(by["width 24", name] - by["width 96", name])) in page
    softmax = {row["model"]: row["score"].values
               for row in found.scores if row["activation"] == BASE}  # fmt: skip
    assert points(student_interval(softmax["width 96"] - softmax["width 24"])) in page


def test_what_is_right_as_often_is_equal_though_shares_are_kept_as_float32():
    """Ties of the test of signs: a noise of 1e-8 would make its p too small."""
    known = study("which-score")

    def coarse(one):
        if one.cell.work != "curve":
            return one
        curves = [
            row | {"values": np.array(row["values"], np.float32).astype(float).tolist()}
            for row in one.found["curves"]
        ]
        return replace(one, found={**one.found, "curves": curves})

    noisy = replace(known, standings=tuple(map(coarse, known.standings)))
    pairs = zip(
        StudyResults(noisy).method_differences, StudyResults(known).method_differences, strict=True
    )
    assert all(one["p"] == other["p"] for one, other in pairs)


# --- findings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "other", "count"), [("background", "ymish", 8), ("six-activations", "mixed", 4)]
)
def test_tables_of_the_bundled_classifiers_are_those_of_their_csv(page, other, count):
    with (DOCS / "findings/classifiers.csv").open(encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    columns = {"absolute weights": "absolute", "weights × outputs": "output",
               "distance between heads": "distance"}  # fmt: skip
    text = (DOCS / f"findings/{page}.md").read_text("utf-8")
    lines = re.findall(r"^\| (\d) \| (\D+?) \| (.+) \|$", text, re.MULTILINE)
    assert len(lines) == count
    for layer, of, said in lines:
        softmax, changed = (
            np.array([float(row[columns[of]]) for row in rows
                      if (row["model"], row["layer"]) == (name, layer)])
            for name in ("softmax", other)
        )  # fmt: skip
        difference = changed - softmax
        interval = ttest_1samp(difference, 0).confidence_interval()
        values = softmax.mean(), changed.mean(), difference.mean(), *interval
        numbers = re.findall(r"[−+]?\d\.\d+", said)
        assert len(softmax) == 200 and len(numbers) == 5
        for number, value in zip(numbers, values, strict=True):
            assert float(number.replace("−", "-")) == pytest.approx(value, abs=0.0006)
