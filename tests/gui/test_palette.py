"""The palette."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from shiboken6 import isValid

from hgviz.core import HeadId
from hgviz.gui import dialogs, palette
from hgviz.gui.actions import ACTIONS
from hgviz.gui.palette import CommandPalette, Entry
from hgviz.gui.sentences import measured


@pytest.fixture
def finder(opened):
    one = CommandPalette(opened.frame, opened.session)
    one.open()
    yield one
    if isValid(one):
        one.close()


def shown(finder):
    return [entry for entry, _ in finder.found]


def test_every_action_head_and_setting_is_there(opened):
    found = palette.entries(opened.session)
    values = {kind: [one.value for one in found if one.kind == kind] for kind in
              ("action", "head", "setting")}  # fmt: skip
    assert set(values["action"]) == {one.name for one in ACTIONS} - {"find"}
    assert values["setting"] == [name for name, *_ in dialogs.offered()]
    assert set(values["head"]) == set(opened.session.spec.heads)


@pytest.mark.parametrize(
    ("query", "kind", "value"),
    [
        ("previous token", "metric", "previous"),
        ("induction", "metric", "induction"),
        ("attention sink", "metric", "first"),
        ("export pdf", "action", "export"),
        ("theme", "setting", "theme"),
        ("font size", "setting", "interface_scale"),
        ("ablate", "action", "switch_head"),
        ("rollout", "action", "look_across"),
    ],
)
def test_the_words_of_the_field_find_what_they_mean(finder, query, kind, value):
    finder.field.setText(query)
    assert (kind, value) in [(one.kind, one.value) for one in shown(finder)[:4]]
    assert finder.nothing.isHidden()


@pytest.mark.parametrize("metric", ["previous", "induction", "first"])
def test_a_behaviour_finds_the_head_that_does_most_of_it(opened, finder, metric):
    facts = opened.session.facts
    best = max(facts, key=lambda head: facts[head].metrics.get(metric, -1))
    finder.field.setText({"first": "sink"}.get(metric, metric))
    line = next(one for one in shown(finder) if one.words.startswith("Best at"))
    assert line.value == best
    assert line.words.endswith(f": {best}, {measured(metric, facts[best].metrics[metric])}")


@pytest.mark.parametrize(
    ("query", "near"), [("qqqqqqq", None), ("promps zzz", None), ("perplxity", "choose_data")]
)
def test_where_nothing_matches_it_says_so_and_offers_the_nearest(finder, query, near):
    finder.field.setText(query)
    assert query in finder.nothing.text() and not finder.nothing.isHidden()
    assert 0 < len(shown(finder)) <= palette.NEAREST
    assert near is None or near in [one.value for one in shown(finder)]
    finder.field.setText("")
    assert finder.nothing.isHidden()


def test_typing_narrows_and_return_goes_to_the_head(opened, finder):
    QTest.keyClicks(finder.field, "head 5.1")
    assert shown(finder)[0].words == "Go to head 5.1"
    gone = []
    finder.chosen.connect(gone.append)
    QTest.keyClick(finder.field, Qt.Key.Key_Return)
    assert [(one.kind, one.value) for one in gone] == [("head", HeadId(5, 1))]
    assert not finder.isVisible()


@pytest.mark.parametrize(
    ("entry", "field", "value"),
    [
        (Entry("", "", kind="head", value=HeadId(1, 1)), "selection.head_id", HeadId(1, 1)),
        (Entry("", "", kind="metric", value="entropy"), "shade", "entropy"),
        (Entry("", "", kind="action", value="look_links"), "look", "links"),
    ],
)
def test_an_entry_leads_to_what_it_names(opened, entry, field, value):
    opened.commands.run("find")
    (finder,) = opened.frame.findChildren(CommandPalette)
    finder.chosen.emit(entry)
    finder.close()
    at = opened.session
    for name in field.split("."):
        at = getattr(at, name)
    assert at == value


def test_what_cannot_be_done_says_why_and_does_nothing(finder):
    chosen = []
    finder.chosen.connect(chosen.append)
    for words, said in (("stop the model", "Nothing is running"), ("zoom in, zoom out", "Maps")):
        finder.field.setText(words)
        assert said in finder.list.item(0).text()
        QTest.keyClick(finder.field, Qt.Key.Key_Return)
    assert not chosen and finder.isVisible()
