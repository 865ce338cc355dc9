"""Every kind of figure of all there is, at every width: nothing overlaps, nothing is cut."""

from dataclasses import replace

import pytest

from hgviz import tasks
from hgviz.core import Selection
from hgviz.figures import Spec
from hgviz.figures.output import compose
from tests.figures.making import MAKERS, OF_CAPTURE, STUDIES, WAYS, answer_panel, capture_of
from tests.figures.test_layout import (
    DRAWN,
    EVERY_WIDTH,
    MEASURED,
    TITLES,
    page_of,
    require_sound,
)

pytestmark = [pytest.mark.soak, pytest.mark.timeout(0)]


@pytest.mark.parametrize("name", MAKERS)
def test_no_figure_at_any_width_has_a_flaw(name):
    for kind in (*DRAWN, *MEASURED):
        for at, width in enumerate(EVERY_WIDTH):
            for number in (at, at + 4):
                require_sound(page_of(kind, name, number, width), width, kind)


@pytest.mark.parametrize("name", STUDIES)
def test_no_chart_at_any_width_has_a_flaw(name):
    kind, studies, more = STUDIES[name]()
    chart = tasks.study_chart(kind, studies, **more)
    for width in EVERY_WIDTH:
        for title in TITLES:
            require_sound(compose(Spec(kind, width=width, title=title), chart), width, title)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", MAKERS)
def test_no_answer_at_any_width_has_a_flaw(name, way):
    for width in EVERY_WIDTH:
        panel = answer_panel(capture_of(name), way, width)
        require_sound(compose(panel.spec, panel.content), width, way)


def test_heads_that_are_off_have_no_flaw_either():
    for name in ("many heads", "many layers", "deep", "two texts"):
        capture = capture_of(name)
        off = frozenset(head for head in capture.spec.heads if (head.layer + head.head) % 2)
        for kind in OF_CAPTURE:
            for width in EVERY_WIDTH:
                spec = Spec(kind, Selection(*min(off)), width=width)
                require_sound(compose(spec, replace(capture, off=off)), width, kind, name)
