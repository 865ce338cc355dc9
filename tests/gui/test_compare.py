"""A, B and their difference: maps, rows of text, metrics of both heads; how B is chosen."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from hgviz import palettes, tasks
from hgviz.core import HeadId, Selection
from hgviz.gui import compare, sides
from hgviz.gui.compare import CompareView, NumbersView, TextsView, read_pair
from hgviz.gui.ink import channels
from hgviz.gui.jobs import Jobs, Lanes
from hgviz.gui.opened import PairOpener
from hgviz.gui.sides import CompareDialog, SideBar, SideNames, Sides
from hgviz.gui.tiles import Tiles
from hgviz.models import open_model
from hgviz.session import Session
from hgviz.session.document import SideB
from hgviz.store import write_capture
from tests.gui import kinds
from tests.gui.screen import busy, choose, plain, showing, shown, shows_no_error
from tests.making import make_capture

pytestmark = pytest.mark.usefixtures("app")

TEXT = "The hourglass was used at sea. When the sand had run down, it was turned."
LONG = "The hourglass was used at sea. When the sand of the hourglass had run down, it was turned."
TOLD = SideNames("softmax", "ymish")
FIRST = HeadId(0, 0)
A, A_SIGNED = make_capture(TEXT), make_capture(TEXT, seed=1, signed=True)
B, FEW_HEADS = make_capture(TEXT, seed=1), make_capture(TEXT, heads=3)
PART = replace(A, maps=(None, *A.maps[1:]))


@contextmanager
def comparing(a=A, b=B, head=(0, 0), size=(1600, 610), **chosen):
    """The maps of two heads: the view, its session, canvas and panes."""
    selection = Selection(*head, **chosen)
    with shown(CompareView, size, capture=a, capture_b=b, selection=selection) as (view, session):
        yield view, session, view.canvas, view.canvas.panes


def compared(a, b, head=FIRST, query=40):
    """A session that compares two captures."""
    session = Session()
    session.put(capture=a, mode="compare")
    session.put(capture_b=b, comparison=SideB("model"))
    session.put(selection=Selection(head.layer, head.head, query))
    return session


def three(a, b, layer=0, head=0):
    """The weights of A, of B and of A − B."""
    weights = [capture.maps[layer].read(head) for capture in (a, b)]
    return *weights, weights[0] - weights[1]


# --- the maps -------------------------------------------------------------------------------------


def test_every_cell_of_the_three_has_the_colour_of_its_weight():
    with comparing(A, A_SIGNED) as (view, _, canvas, panes):
        step, seen = int(canvas.view.down.scale), np.tri(len(TEXT), dtype=bool)
        weights = three(A, A_SIGNED)
        peak = max(np.abs(weights[0]).max(), np.abs(weights[1]).max())
        for pane, values in zip(panes, weights, strict=True):
            cells = channels(pane.picture.pixels)[step // 2 :: step, step // 2 :: step]
            table = palettes.colours(palettes.matching_palette("", signed=True), dark=False)
            expected = palettes.paint(pane.scene.coordinates(values), table)
            assert np.array_equal(cells[seen][:, :3], expected[seen])
            assert not cells[~seen].any()
            masses = [np.minimum(values, 0).sum(1), np.maximum(values, 0).sum(1)]
            np.testing.assert_allclose(pane.scene.mass, np.stack(masses, 1), atol=1e-5)
            assert pane.scene.signed and pane.scene.limits == (-peak, peak)  # as B is
        header, *rows = view.as_table()
        assert header == ["Query", "Query text", "Key", "Key text", "A", "B", "A − B"]
        assert len(rows) == seen.sum()
        for query, asks, key, answers, *copied in (rows[0], rows[700], rows[-1]):
            cell = int(query), int(key)
            assert (asks, answers) == tuple(TEXT[place].replace(" ", "·") for place in cell)
            assert [*map(float, copied)] == pytest.approx([float(one[cell]) for one in weights])


@pytest.mark.parametrize("kind", [CompareView, TextsView, NumbersView])
def test_what_is_missing_is_said_and_no_error(kind):
    for a, b, title in (
        (A, None, "Choose a second model"), (PART, B, "Layer 0 is not"), (PART, PART, ""),
    ):  # fmt: skip
        with showing(kind, compared(a, b), 900, 190) as view:
            assert shows_no_error(view)
            if kind is CompareView and title:
                assert view._notice.content[0][0].startswith(title) and view.as_table() is None


WINDOWED = make_capture(TEXT, windowed=True, signed=True)
PAIRS = (
    (A, make_capture("a")), (WINDOWED, A), (kinds.translator(), kinds.yubert()),
    (kinds.yubert(), WINDOWED),
)  # fmt: skip


def test_any_head_stands_beside_any_of_any_model():
    """A − B is what A weighs less what B weighs where both stand for something, else nothing."""
    for a, b in PAIRS:
        with comparing(a, b, size=(1100, 500)) as (view, session, canvas, _):
            for layer in (0, len(a.spec.layers) - 1):
                other = HeadId(len(b.spec.layers) - 1 - layer % len(b.spec.layers), 1)
                session.put(selection=Selection(layer, 1, 4, 2, other))
                view.settle()
                found = view._opened
                assert found.grid.head_b == other and found.masses and canvas.is_exact
                mine, its, difference = (one.map.read(one.head) for one in found.sources)
                both = np.ix_(found.grid.rows.in_both, found.grid.columns.in_both)
                expected = np.zeros_like(difference)
                expected[both] = (mine - its)[both]
                assert np.array_equal(difference, expected)


def test_a_head_that_is_off_has_no_weight_in_the_card_nor_in_the_difference():
    off, key = replace(A_SIGNED, off=frozenset({FIRST})), int(three(A, A)[0][30].argmax())
    with comparing(A, off, query=30, key=key) as (_, _, _, panes):
        a, b, difference = (plain(pane.card.text()) for pane in panes)
        assert b.split() == ["0", "off"] and float(difference) == pytest.approx(float(a))


@pytest.mark.parametrize("moves", [False, True])
def test_blinking_swaps_a_and_b_in_one_place(moves, monkeypatch):
    with comparing() as (view, _, canvas, (a, b, difference)):
        monkeypatch.setattr(type(canvas.style()), "styleHint", lambda *args: 200 * moves)
        view.way.chosen.emit("blink")
        assert canvas._blinking.isActive() == moves
        assert a.visible and not b.visible and difference.visible and a.rect == b.rect
        view.way.chosen.emit("blink")  # pressed once more
        assert b.visible and not a.visible
        view.way.chosen.emit("beside")
        assert a.visible and b.visible and a.rect.x() < b.rect.x()
        assert not canvas._blinking.isActive()


# --- rows of text ---------------------------------------------------------------------------------


def test_the_sentence_describes_concentrated_and_spread_rows():
    a, b = make_capture(LONG), make_capture(LONG, seed=3, signed=True)
    pair = read_pair(PairOpener(Tiles()).pair(a, b, FIRST, FIRST), 60, None)
    stop = np.zeros(len(LONG), np.float32)
    stop[29], stop[58] = 0.89, 0.11
    sides = np.where(np.arange(len(LONG)) < 31, [(-1) ** n for n in range(len(LONG))], 0)
    pair = replace(pair, weights=(stop, (sides / 31).astype(np.float32), None))
    assert compare.sentence(pair, TOLD) == (
        "“s” with softmax: 89 % of the weight on “.” after “sea”. With ymish: spread over about 31 "
        "tokens, 3 % on “T” in “The”, 48 % of the mass negative; −0.032 on “.”."
    )
    nothing = replace(pair, weights=(stop, 0 * stop, None))
    assert "With ymish: no weight." in compare.sentence(nothing, TOLD)


def test_the_rows_of_text_take_clicks_and_give_their_values():
    session = compared(A, A_SIGNED)
    with showing(TextsView, session, 1600, 190) as view:
        weights = A.maps[0].read(0, (40, 41))[0]
        row = view.rows.rows[0]
        assert row.weights[:41].tolist() == pytest.approx(weights[:41].tolist())
        assert row.seen.sum() == 41  # none after query 40
        rows = view.rows
        x = 122 + (rows.ruler.x(50) + rows.ruler.x(51)) / 2
        place = QPointF(x, rows.bands[1].center().y()).toPoint()
        for modifier in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.AltModifier):
            QTest.mouseClick(rows, Qt.MouseButton.LeftButton, modifier, place)
        assert (session.selection.query, session.selection.key) == (50, 50)
        view.settle()
        assert [(row.chosen, row.key) for row in rows.rows] == [((50, 51), (50, 51))] * 3
        assert view.words.text() == view.as_text() and "“u” with softmax: " in view.as_text()
        rows.pointed.emit(3)
        assert session.hover.key == 3


def test_rows_that_b_lacks_are_said():
    old, new = make_capture("The old sea was wide."), make_capture("The sea was wide.")
    for a, b, head, words, note, messages in (
        (A, FEW_HEADS, HeadId(0, 5), "B has no such head", "",
         ["there is no such head", "nothing to subtract"]),
        (old, new, FIRST, "B has no such row", "hatched: in one only",
         ["", "only one side has this row"]),
    ):  # fmt: skip
        with showing(TextsView, compared(a, b, head, query=5), 900, 190) as view:
            assert words in view.words.text() and note in view.head.note.full
            assert [row.message for row in view.rows.rows[1:]] == messages
            assert view.rows.rows[1].weights is None and view.pair.weights[0].sum() > 0.99


# --- metrics of both heads ------------------------------------------------------------------------


def test_metrics_of_both_heads_stand_among_those_of_all():
    session = compared(A, A_SIGNED, HeadId(1, 1))
    with showing(NumbersView, session, 1600, 108) as view:
        negative, entropy = view.pairs["negative_mass"], view.pairs["entropy"]
        assert negative.lines["A"][1].text() == "0 %" != negative.lines["B"][1].text()
        assert len(entropy.lines["A"][0]._values) == 54
        assert "A, head 1.1" in entropy.toolTip()
        focus = view.pairs["focus"]
        value = focus.lines["A"][0]._mine
        assert f"A, head 1.1: {value:.2f}, rank " in focus.words and " of 54" in focus.words
        assert focus.lines["A"][0]._ends == focus.lines["B"][0]._ends  # one axis for both
        session.put(selection=Selection(0, 3, 40))  # known: drawn without being asked for
        assert "A, head 0.3" in entropy.words and entropy.lines["A"][1].text() != "–"
        session.put(capture_b=FEW_HEADS, selection=Selection(0, 5))
        view.settle()
        assert "B has no such head" in view.pairs["focus"].toolTip()


# --- B --------------------------------------------------------------------------------------------


SEA = "The hourglass was used at sea, and on the sea."


@pytest.fixture
def bench(app, checkpoint, until):
    """The Compare page of a session with a capture of SEA, without a window: what brings B, and
    the labels of both sides."""
    session, lanes, errors, view = Session(), Lanes(), [], SideBar()
    model = open_model(checkpoint)
    capture = tasks.capture(model, model.tokenize(SEA))
    session.put(model=model, checkpoint=str(checkpoint), capture=capture, mode="compare")
    brings = Sides(session, lanes, Jobs(session, lanes, errors.append), errors.append)
    view.bind(session, lanes)
    bench = SimpleNamespace(session=session, lanes=lanes, sides=brings, errors=errors, view=view)

    def choose(kind, *args, head=None, **fields):
        """Have another B, and wait for all of it."""
        brings.choose(SideB(kind, *args, **fields), head)
        until(lambda: not busy(bench))
        view.settle()
        return session.capture_b

    bench.choose = choose
    yield bench
    view.unbind()
    lanes.close()
    for widget in (view, view.a, view.b):
        widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_the_same_checkpoint_stands_beside_itself_with_another_activation(bench):
    a, said = bench.session.capture, []
    bench.view.explained.connect(said.append)
    b = bench.choose("activation", "ymish")
    assert b.prompt is a.prompt and b.spec.layers[0].activations[0] == "ymish"
    assert bench.session.capture is a and bench.session.activation == ""
    alone = open_model(bench.session.checkpoint, activation="ymish")
    assert np.array_equal(tasks.capture(alone, a.prompt).logits, b.logits)
    assert (bench.view.a.name.text(), bench.view.b.name.text()) == ("softmax", "ymish")
    assert "softmax replaced by ymish" in said[-1]


def test_the_sides_are_named_by_what_differs(bench):
    said = []
    bench.view.explained.connect(said.append)
    bench.session.put(selection=Selection(0, 0, 5))
    for other, head, names, words, note in (
        ({"kind": "off", "off": frozenset({HeadId(0, 1)})}, None,
         ("with all heads", "without head 0.1"), "without 1 head", "head 0.1 off in B only"),
        ({"kind": "head"}, HeadId(2, 0), ("head 0.0", "head 2.0"), "", "Two levels of one model"),
        ({"kind": "text", "text": "At sea."}, None, ("this text", "the other text"),
         "on “At·sea.”", "One model on two texts."),
    ):  # fmt: skip
        bench.choose(head=head, **other)
        assert (bench.view.a.name.text(), bench.view.b.name.text()) == names
        assert words in bench.view.b.words.full and note in said[-1]


def test_a_capture_file_becomes_b_and_a_missing_one_leaves_b(bench, tmp_path):
    path = tmp_path / "other.h5"
    write_capture(path, make_capture("The hourglass was used."))
    kept = bench.choose("model", path=str(path))
    assert kept.path == str(path) and bench.view.b.name.text() != bench.view.a.name.text()
    before = bench.session.comparison
    assert bench.choose("model", path=str(tmp_path / "nothing.h5")) is kept
    assert len(bench.errors) == 1 and bench.session.comparison == before
    b = bench.choose("model", "tanh", path=bench.session.checkpoint)
    assert b.spec.layers[0].activations[0] == "tanh" and b.main.text == SEA


def test_the_dialog_returns_the_chosen_b_and_says_what_is_wrong(bench, program):
    off, answers = frozenset(map(HeadId, (0, 2, 2), (1, 0, 1))), []
    for kind, words, wrong, answer in (
        ("activation", "7.3", "", (SideB("activation", "elu"), HeadId(7, 3))),  # of another model
        ("off", "0.9", "no head 0.9", None), ("off", "", "off in A.", None),
        ("off", "0.1, 2.*", "", (SideB("off", off=off), None)),
        ("head", "", "Enter the head", None), ("head", "9.9", "has no", None),
        ("head", "2.0", "", (SideB("head"), HeadId(2, 0))),
        ("text", "", "empty", None), ("text", "Ah.", "", (SideB("text", text="Ah."), None)),
    ):  # fmt: skip
        form = CompareDialog(program.frame, bench.session, {"/some/model": "model"}, kind)
        form.then = lambda *answer: answers.append(answer)
        choose(form.activations, "elu")
        field = {"off": form.heads, "text": form.texts[0]}.get(kind, form.head)
        (field.setText if kind != "text" else field.setPlainText)(words)
        form.check()
        assert wrong in form.wrong.text() and form.default.isEnabled() == (answer is not None)
        if answer is not None:
            form.default.click()
            assert answers.pop() == answer


def test_what_only_one_text_has_lies_under_a_hatching_in_the_other():
    a, b = make_capture("one two four"), make_capture("one two three four")
    with comparing(a, b) as (view, _, canvas, panes):
        gone = int(np.flatnonzero(~panes[0].there[0])[0])
        assert panes[1].there[0].all() and panes[0].has_words and panes[1].has_words
        step = int(canvas.view.down.scale)
        hidden = [not pane.picture.pixels[gone * step + 1, 1].any() for pane in panes]
        assert hidden == [True, False, True]
        canvas.pointed.emit((gone, 1))
        view._opened.read_row(gone)
        view._follow()
        words = "not in A", "0.", "nothing to compare"
        assert all(word in pane.card.text() for word, pane in zip(words, panes, strict=True))


def test_the_pointer_over_one_map_gives_the_weight_in_each_and_a_click_keeps_it(qtbot):
    with comparing(A, A_SIGNED, query=30) as (view, session, canvas, panes):
        canvas.pointed.emit((30, 12))
        view.settle()
        assert (session.hover.query, session.hover.key) == (30, 12)
        assert {(pane.cross.row, pane.cross.column) for pane in panes} == {(30, 12)}
        for pane, values in zip(panes, three(A, A_SIGNED), strict=True):
            value = abs(values[30, 12])
            assert (f"{value:.3f}" if value >= 0.001 else "&lt;0.001") in pane.card.text()
        canvas.pointed.emit((30, 31))
        assert "masked" in panes[0].card.text() and "nothing to compare" in panes[2].card.text()
        canvas.pointed.emit(None)
        assert session.hover is None
        place = canvas.cell_rect(44, 21, 2).center().toPoint()
        qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
        qtbot.keyClick(canvas, Qt.Key.Key_Down)
        assert (session.selection.query, session.selection.key) == (45, 21)
        qtbot.keyClick(canvas, Qt.Key.Key_Escape)
        assert session.selection.query is None


@pytest.fixture(scope="module")
def model(checkpoint):
    """The tiny checkpoint, open."""
    return open_model(checkpoint)


@pytest.fixture
def dialog(bench):
    """Open the dialog that asks for B over a window; what it answers is in bench.answers."""
    window = QWidget()
    window.resize(900, 600)
    window.show()
    bench.answers = []

    def ask(kind=""):
        dialog = CompareDialog(window, bench.session, {"/some/model": "model"}, kind)
        dialog.then = lambda *answer: bench.answers.append(answer)
        return dialog

    yield ask
    window.close()
    window.deleteLater()


def test_without_a_checkpoint_b_can_be_a_file_or_another_head_only(bench, dialog):
    bench.session.put(checkpoint="", model=None)
    bench.sides.choose(SideB("activation", "ymish"))
    assert "checkpoint" in str(bench.errors[0]) and bench.session.comparison is None
    form = dialog("activation")
    assert not form.default.isEnabled() and "checkpoint" in form.wrong.text()
    form.kinds._group.button(4).click()
    form.head.setText("0.1")
    assert form.default.isEnabled()


def test_a_b_on_its_way_is_shown_once_it_has_the_head_and_when_it_is_whole(bench, monkeypatch):
    monkeypatch.setattr(sides, "QUIET", -1.0)
    seen, session = [], bench.session
    session.changed.connect(lambda name: name == "capture_b" and seen.append(session.capture_b))
    session.put(selection=Selection(0, 0, 5))
    bench.choose("activation", "tanh")
    assert 1 <= len(seen) <= 2 and seen[-1].complete
    assert all(one.maps[0] is not None for one in seen)
