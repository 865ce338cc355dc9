"""Every kind of figure of all there is, at every width: nothing overlaps, nothing is cut."""

from dataclasses import replace

import pytest

from hgviz import tasks
from hgviz.figures import Looked, Spec, labels, points
from hgviz.figures.output import compose
from tests.figures import test_attribution as attributions
from tests.figures import test_charts as charts
from tests.figures.flaws import flaws
from tests.figures.pages import EVERY_WIDTH, TITLES, all_pages
from tests.figures.texts import MAKERS, capture_of

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]


def require(page, width, *what):
    assert page.width == pytest.approx(points(width), abs=0.01), (*what, width)
    assert flaws(page) == [], (*what, width)


@pytest.mark.parametrize("name", MAKERS)
def test_no_figure_at_any_width_has_a_flaw(name):
    for kind, width, page in all_pages(name):
        require(page, width, kind)


@pytest.mark.parametrize("name", charts.CASES)
def test_no_chart_at_any_width_has_a_flaw(name):
    kind, studies, more = charts.CASES[name]
    chart = tasks.chart(kind, studies, **more)
    for width in EVERY_WIDTH:
        for title in TITLES:
            with labels.figure_settings():
                require(compose(Spec(kind, width=width, title=title), chart), width, title)


@pytest.mark.parametrize("method", attributions.METHODS)
@pytest.mark.parametrize("name", MAKERS)
def test_no_attribution_at_any_width_has_a_flaw(name, method):
    for width in EVERY_WIDTH:
        panel = attributions.panel_of(capture_of(name), method, width)
        with labels.figure_settings():
            require(compose(panel.spec, panel.content), width, method)


def test_heads_that_are_off_have_no_flaw_either():
    for name in ("many heads", "many layers", "deep", "two texts"):
        capture = capture_of(name)
        off = frozenset(head for head in capture.spec.heads if (head.layer + head.head) % 2)
        for kind in ("map", "links", "wall", "levels"):
            for width in EVERY_WIDTH:
                head = min(off)
                spec = Spec(kind, width=width)
                chosen = replace(spec.selection, layer=head.layer, head=head.head)
                with labels.figure_settings():
                    content = Looked(replace(capture, off=off))
                    page = compose(replace(spec, selection=chosen), content)
                require(page, width, kind, name)
