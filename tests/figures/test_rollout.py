"""The figure of all maps composed: by every recipe, of one and of two texts, the same twice."""

import pytest

from hgviz import tasks
from hgviz.core import HgvizError, Selection, finish
from hgviz.figures import Spec
from hgviz.recipe import Recipe
from tests.analysis.planting import hourglass, letters, translated
from tests.figures.texts import draw

TEXT = "The hourglass was used at sea. When the sand had run down, the bell was rung."


def drawn(spec, capture, path):
    finish(tasks.figure(spec, capture, path))
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def whole():
    return hourglass(letters(TEXT[:22]), (1, 2, 6))


def test_it_says_how_maps_were_composed_and_which_way_answers_took(whole, tmp_path):
    said = drawn(Spec("rollout"), whole, tmp_path / "a.svg")
    for words in (
        "All maps composed",
        "mean of the heads, half residual",
        "Of an answer, on average",
    ):
        assert words in said
    assert "took the way through 1:2" in said and "comes after the query" in said
    recipe = Recipe(fuse="max", residual=0.3)
    said = drawn(Spec("rollout", Selection(0, 0, 9), recipe=recipe), whole, tmp_path / "b.svg")
    assert "largest of the heads, 30 % residual" in said and "Of the answer at letter 9" in said
    assert "--query 9 --fuse max --residual 0.3" in said


def test_a_signed_product_diverges_and_has_row_sums(tmp_path):
    capture = translated(letters(TEXT[:7]), letters(TEXT[:4]), signed=True)
    said = drawn(Spec("rollout", recipe=Recipe(signed=True)), capture, tmp_path / "s.svg")
    assert "signed product" in said and "Row sum" in said and "Source →" in said
    plain = drawn(Spec("rollout", Selection(1, 0, 2, 1)), capture, tmp_path / "p.svg")
    assert "comes from the source" in plain


def test_two_runs_give_the_same_bytes(whole, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    for form in ("pdf", "svg", "png"):
        (tmp_path / "1").mkdir(exist_ok=True)
        both = [tmp_path / f"a.{form}", tmp_path / "1" / f"a.{form}"]
        for path in both:
            finish(tasks.figure(Spec("rollout"), whole, path))
        assert both[0].read_bytes() == both[1].read_bytes()


def test_what_is_not_composed_or_not_there_is_said(whole, tmp_path):
    with pytest.raises(HgvizError, match="is not composed"):
        draw(Spec("rollout"), whole, tmp_path / "a.svg")
    with pytest.raises(HgvizError, match="no token 99"):
        finish(tasks.figure(Spec("rollout", Selection(0, 0, 99)), whole, tmp_path / "a.svg"))
