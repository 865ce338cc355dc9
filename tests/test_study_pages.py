"""The pages of the worked studies say what their kept results do."""

import functools
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from hgviz.analysis.replicates import spread
from hgviz.tasks.concluding import conclude

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import kept  # noqa: E402 - beside the pages

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
def findings(name):
    """What a kept study says."""
    return conclude(study(name))


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


def left_rows(name):
    """What methods leave at every budget, the mean of all models and seeds, and their ranks."""
    found = findings(name)
    for method in found.methods:
        some = [one for one in found.left if one.method == method]
        means = np.mean([[at.mean for at in one.at] for one in some], axis=0)
        rank = [found.ranks[method][at].mean for at in (1, 2)]
        words = "random orders" if method == "random" else method
        yield line(words, *map(percent, means), *(f"{one:.1f}" for one in rank))


def beside_rows(name, which, measures):
    """What methods leave more than michel, or than random orders."""
    rows = getattr(findings(name), which)
    for method in dict.fromkeys(one.method for one in rows):
        by = {one.budget: one for one in rows if one.method == method}
        yield line(method, *(points(by[at].difference, by[at].told) for at in measures))


def reached_rows(name):
    """What every model reaches, its seeds, and the difference from softmax."""
    found = findings(name)
    apart = {one.setting: one for one in found.apart}
    for one in found.reached:
        mean = f"{percent(one.score.mean)} ({percent(one.score.low)} to {percent(one.score.high)})"
        beside = apart.get(one.setting)
        more = ("", "") if beside is None else (
            points(beside.difference, beside.told), f"{beside.adjusted:.2g}",
        )  # fmt: skip
        yield line(one.setting[1], one.setting[2], *map(percent, one.score.values), mean, *more,
                   f"{one.loss.mean:.3f}", f"{one.parameters:,}")  # fmt: skip


TABLES = {
    "which-pruning-score.md": lambda: [
        *left_rows(SCORE),
        *beside_rows(SCORE, "beside", (0.5, 0.75)),
        *beside_rows(SCORE, "random", (0.25, 0.5, 0.75)),
    ],
    "which-activation-at-which-size.md": lambda: [
        *reached_rows(ACTIVATION),
        *reached_rows(HALF),
    ],
}


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


def test_models_that_two_studies_trained_apart_are_the_same():
    """The softmax of width 48 is the model of 2 layers of 6 heads, and answers each text alike."""
    one = study(SCORE).of("score", model="2x6")
    its = study(ACTIVATION).of("score", model="width 48", activation="softmax")
    assert [each.found for each in one] == [each.found for each in its]


def test_what_the_page_says_of_widths_is_so():
    """How much further behind softmax each activation is at width 96 than at 24."""
    found = findings(ACTIVATION)
    by = {one.setting[1:]: one.difference.values for one in found.apart}
    page = (DOCS / "which-activation-at-which-size.md").read_text("utf-8")
    for name in ("tanh", "ymish", "six"):
        assert points(spread(by["width 24", name] - by["width 96", name])) in page
    softmax = {one.setting[1]: one.score.values for one in found.reached if one.setting[2] == BASE}
    assert points(spread(softmax["width 96"] - softmax["width 24"])) in page
