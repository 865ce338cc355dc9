"""The looks for those who use the keyboard, and as tables of values."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from hgviz import tasks
from hgviz.analysis.heads import METRICS, measure
from hgviz.core import HeadId, Selection, finish
from hgviz.gui.across.view import AcrossView
from hgviz.gui.attribution.view import AttributionView
from hgviz.gui.heads.metrics import explained, named
from hgviz.gui.heads.table import FIXED, MEANT
from hgviz.gui.heads.view import HeadsView
from hgviz.gui.links.view import LinksView
from hgviz.gui.neurons.view import NeuronView
from tests.gui.showing import shown

LOOKS = (LinksView, NeuronView, AttributionView, AcrossView, HeadsView)
ENGLISH = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """Of a tiny hourglass: a session's fields with everything that the looks can show."""
    import torch

    from hgviz.models import open_model
    from hgviz.models.config import HourglassConfig
    from hgviz.models.families.hourglass import Hourglass
    from hgviz.models.formats.checkpoint import save
    from hgviz.models.hierarchy import parse_hierarchy

    torch.manual_seed(0)
    config = HourglassConfig(256, 16, 2, parse_hierarchy("1@1 1@2 1@1"), positions="rotary")
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save(folder, config, Hourglass(config).state_dict())
    model = open_model(folder)
    capture = finish(tasks.capture(model, model.tokenize("s1.s2.s1.s2.t3.t4.")))
    asked = tasks.question_of("next", capture.logits, capture.main, 12)
    question = replace(asked, steps=32)
    found = finish(tasks.explain(model, capture.prompt, question, layers=True))
    return {
        "model": model, "capture": capture, "explained": found, "checkpoint": "tiny",
        "question": question, "facts": finish(measure(capture)),
        "selection": Selection(0, 1, 12, 8),
    }  # fmt: skip


@pytest.mark.parametrize("kind", LOOKS)
def test_an_empty_look_offers_a_way_on(app, kind):
    with shown(kind) as (view, _):
        assert view.empty_actions


@pytest.mark.parametrize("kind", LOOKS)
def test_what_is_copied_is_a_table_of_whole_numbers(app, known, kind):
    with shown(kind, **known) as (view, _):
        titles, *rows = view.as_table()
        assert rows and all(len(row) == len(titles) for row in rows)
        assert all(float(row[-1]) == float(row[-1]) for row in rows if row[-1])


@pytest.mark.parametrize("kind", LOOKS)
def test_every_control_has_a_name_and_a_page_explains_the_look(app, known, kind):
    with shown(kind, **known) as (view, _):
        for one in view.findChildren(QWidget):
            if one.focusPolicy() & Qt.FocusPolicy.TabFocus and one.isVisible():
                text = one.text() if isinstance(one, QAbstractButton) else ""
                assert one.accessibleName() or text, one
        assert view.topic


def test_links_and_weights_agree(app, known):
    with shown(LinksView, **known) as (view, _):
        titles, *rows = view.as_table()
        weights = known["capture"].maps[0].read(1, (12, 13))[0]
        for row in rows:
            key, weight = int(row[titles.index("Key position")]), float(row[-1])
            assert weight == pytest.approx(weights[key])


def test_the_bars_of_an_answer_are_walked_and_told(app, known):
    with shown(AcrossView, **known) as (view, session):
        view.bars.setFocus()
        QTest.keyClick(view.bars, Qt.Key.Key_Right)
        assert session.selection.key == 9
        view._follow()
        assert view.bars.chosen == 9 and "rollout" in view.bars.accessibleDescription()
        titles, *rows = view.as_table()
        rollout = np.array([float(row[titles.index("Rollout")]) for row in rows])
        assert rollout == pytest.approx(view._across.row.weights[0])


def test_the_wall_of_heads_is_walked(app, known):
    with shown(AttributionView, **known) as (view, session):
        wall = view.wall
        assert "conducts" in wall.accessibleDescription()
        event = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier)
        QApplication.sendEvent(wall, event)
        assert session.selection.head_id == HeadId(0, 0)
        view.settle()
        assert wall.beside(0, 1).layer == 1 and wall.beside(0, -1) == HeadId(0, 0)
        assert wall.beside(-1, 0) == HeadId(0, 0) and wall.beside(0, 0) is None


def test_every_metric_says_what_it_is_its_formula_and_its_source():
    for name, one in METRICS.items():
        meaning, formula, source = explained(name, "token").split("\n")
        assert one.formula == formula and source.endswith(one.source)
        assert ENGLISH.search(meaning) and named(name, "token")
    assert set(MEANT) <= set(FIXED)
