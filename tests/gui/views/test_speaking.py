"""What the views and docks say in Korean: whole sentences in its own order."""

from __future__ import annotations

import re

import pytest

from hgviz.gui import language
from hgviz.gui.panels import PANELS
from hgviz.gui.panels.heads import HeadPanel
from hgviz.gui.panels.jobs import keeps_words, layer_words
from hgviz.gui.views import naming, words
from hgviz.gui.views.follow import FollowView
from hgviz.gui.views.hourglass import HourglassView
from hgviz.gui.views.map import MapView
from hgviz.gui.views.text import TextStrip
from hgviz.resources import resource
from tests.gui.viewing import session_of, showing

pytestmark = pytest.mark.usefixtures("app", "korean")


@pytest.fixture
def session(capture, facts):
    session = session_of(capture)
    session.put(facts=dict(facts))
    return session


def test_nothing_on_screen_is_left_in_english(session):
    for kind in (HourglassView, MapView, TextStrip, FollowView, *PANELS):
        with showing(kind, session, 1000, 700) as view:
            view.grab()
            if view.drawn:
                view.as_table()
    cited = re.compile(r"\.md|et al\.")  # papers and pages are called the same
    assert {one for one in language.missed if not cited.search(one)} == set()


def test_a_cell_is_told_in_the_order_of_the_language(session, capture):
    with showing(MapView, session, 704, 713) as view:
        said = view.as_text()
        assert said.startswith("쿼리 ") and "행 전체의 합은 1.000입니다." in said
        view.canvas.pointed.emit((60, 29))
        assert re.search(r"→ 키 \S+ \(글자 31개 앞\): 가중치의 .*%\.", view.as_text())
        assert "쿼리" in view.canvas.card.text


def test_places_and_amounts_are_told_in_the_order_of_the_language(capture):
    prompt, spec = capture.prompt, capture.spec
    spans = naming.word_spans(prompt)
    assert naming.place(prompt, spans, 6, 7) == "단어 hourglass, 위치 6"
    assert naming.place(prompt, spans, 57, 61) == "글자 57–60"
    assert words.layers([5, 6, 7]) == "층 5–7" and words.layers([2, 5, 9]) == "층 2, 5, 9"
    assert words.part(16) == "1/16" and words.percent("89") == "89%"
    assert words.level(spec, 0) == "1:1" and words.counted(3, "segment") == "세그먼트 3개"
    assert layer_words(6, 13) == "층 6, 모두 13개 중 일곱째"
    assert keeps_words(2) == "끝난 층 2개는 남습니다"


def test_what_a_head_does_is_told_with_its_evidence(session):
    with showing(HeadPanel, session, 304, 400) as view:
        assert not re.search("[a-z]{3}", view.sentence.text() + view.evidence.text())


@pytest.mark.parametrize("kind", [HourglassView, MapView, TextStrip, FollowView, *PANELS])
def test_every_view_is_explained_in_both_languages(kind):
    for code in language.LANGUAGES:
        assert resource(f"help/{code}/{kind.topic}.md").read_text("utf-8").startswith("# ")


def test_heads_of_every_role_have_korean():
    from hgviz.analysis.finders import FINDERS

    for one in FINDERS.values():
        for unit in ("letter", "token"):
            for text in (one.name, one.sentence):
                said = text.format(unit=unit, place=unit, text="the text")
                assert not re.search("[a-zA-Z]", language.tr(said).replace("induction", "")), said
