"""Every kind of model in the window: encoders, decoders, slots, segments of any length, images."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from hgviz import palettes, tasks
from hgviz.analysis.composition import is_of_tokens
from hgviz.core import HeadId, Selection
from hgviz.gui import program as gui_program
from hgviz.gui import sources
from hgviz.gui.actions import BY_NAME
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.export import command_for, offers
from hgviz.gui.follow import FollowView
from hgviz.gui.links import LinksView
from hgviz.gui.map import MapView
from hgviz.gui.panels import TopKeysPanel
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT, TOP
from hgviz.gui.view import LOOKS, VIEWS
from hgviz.gui.view import view as view_of
from hgviz.maps import LazyMap
from hgviz.models import open_model, pruning
from hgviz.models.checkpoints import save
from tests.analysis.planting import funnel, segmented
from tests.gui import kinds
from tests.gui.kinds import KINDS
from tests.gui.screen import colour_at, errors, plain, shown, shows_no_error
from tests.making import make_capture, make_image_capture
from tests.models import zoo
from tests.models.building import make_transformer, write_transformer
from tests.models.zoo import write
from tests.test_evaluate import tokenizer

WIDE = (1600, 188)


def place(strip, row, token):
    top, height = strip.tops[row]
    x = (strip.ruler.x(token) + strip.ruler.x(token + 1)) / 2
    return QPoint(round(LEFT + x), TOP + top + height // 2)


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pair", "six", "yubert", "gpt2", "translator", "listener"])
def test_layers_of_every_kind_open_in_every_view(app, name):
    capture = KINDS[name]()
    for layer in {(one.role, one.level): one for one in capture.spec.layers}.values():
        chosen = Selection(layer.index, layer.heads[-1], 3, 2)
        with shown(MapView, capture=capture, selection=chosen) as (view, _):
            whole = capture.maps[layer.index].read(layer.heads[-1])
            assert view.canvas.panes[0].scene.source.shape == whole.shape
            assert plain(view.canvas.sentence.text())
        with shown(TextStrip, WIDE, capture=capture, selection=chosen) as (view, _):
            assert any(line.weights is not None for line in view._data.rows)
            assert view.legend.full
    for layer in (capture.spec.layers[0], capture.spec.layers[-1]):
        chosen = Selection(layer.index, 0, 3)
        for look in (FollowView, LinksView):
            with shown(look, (900, 500), capture=capture, selection=chosen) as (view, _):
                assert shows_no_error(view)


# --- slots ----------------------------------------------------------------------------------------


def test_slots_are_columns_and_a_row_of_their_own(app, qtbot):
    capture = KINDS["yubert"]()
    with shown(MapView, capture=capture, selection=Selection(1, 0, 5, 3)) as (view, _):
        assert view.canvas.panes[0].scene.source.shape == (18, 8)
        assert view.canvas.panes[0].scene.columns.glyph(3) == "slot 3"
        assert view.head.level.text() == "slots → text"
    chosen = Selection(1, 0, 5, 3)
    with shown(TextStrip, WIDE, capture=capture, selection=chosen) as (view, session):
        text, slots = view.strips
        assert text.rows[0].weights is None and text.rows[0].chosen == (5, 6)
        assert np.array_equal(slots.rows[0].weights, capture.maps[1].read(0)[5])
        qtbot.mouseClick(slots, Qt.MouseButton.LeftButton, pos=place(slots, 0, 6))
        assert session.selection == Selection(1, 0, 5, 6)


# --- the tokens behind slots ----------------------------------------------------------------------


def linformer():
    """A classifier of eight slots in heads of several activations, with what they are mixed of."""
    capture = kinds.yubert(activations=["softmax", "ymish", "tanh", "softmax"], n_heads=4)
    random, tokens = np.random.default_rng(0), len(capture.prompt)
    maps = tuple(
        LazyMap(replace(one.factors, mixture=random.normal(size=(1, 8, tokens)).astype("f4")),
                one.heads)
        for one in capture.maps
    )  # fmt: skip
    return replace(capture, maps=maps, path="/somewhere/lin.h5")


def test_slots_give_way_to_the_tokens_behind_them_and_come_back(program):
    session, capture = program.session, linformer()
    session.put(capture=capture, selection=Selection(1, 0, 5, 3), off=frozenset({HeadId(0, 1)}))
    program.settle()
    program.commands.run("tokens")
    program.settle()
    assert is_of_tokens(session.capture) and session.selection == Selection(1, 0, 5, None)
    assert session.off == {HeadId(0, 1)} and session.capture.path == capture.path
    for look in LOOKS:
        session.put(look=look)
        program.settle()
    found = {one.name: one for one in offers(session, ())}
    for name, is_said in (("map", True), ("levels", True), ("rollout", False)):
        command = command_for(found[name].of, found[name].spec, "f.pdf").words
        assert ("--tokens" in command) == is_said and "/somewhere/lin.h5" in command
    assert "Show slots first" in BY_NAME["save"].why_off(session)
    program.commands.run("tokens")
    program.settle()
    assert session.capture.spec == capture.spec and session.off == {HeadId(0, 1)}
    assert session.capture.maps[1] is capture.maps[1]
    assert not program.frame.findChildren(ErrorDialog)


# --- layers without heads -------------------------------------------------------------------------

STEPS = ("next_head", "next_layer", "last_head", "level_in", "strongest", "follow", "last_layer")


def test_a_pruned_hourglass_is_shown_and_walked_through(program, checkpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    session = program.session
    for which in ("0.*,2.*", "0.*,1.*,2.*,3.*,4.*"):  # some layers without heads, and all
        folder = tmp_path / str(len(which))
        tasks.prune(checkpoint, which, folder)
        model = open_model(folder)
        capture = tasks.capture(model, model.tokenize("Read in groups."))
        session.put(capture=capture, facts=sources.measure(capture).facts)
        program.settle()
        for name in STEPS:
            program.commands.run(name)
            QApplication.processEvents()
            program.settle()
        assert not capture.spec.heads or session.selection.head_id in capture.spec.heads


# --- segments of unequal length -------------------------------------------------------------------


def latent(folder):
    """A capture by a Byte Latent Transformer."""
    reader = open_model(zoo.write_blt(folder, "BltForCausalLM", **zoo.MODES["two parts"]))
    return tasks.capture(reader, reader.tokenize("The river broke its banks."))


# how a capture is made, a layer of it, whether it is shortened in the middle and can be composed
SEGMENTED = {
    "no segment": (lambda folder: segmented("none"), 3, True, True),
    "every token a segment": (lambda folder: segmented("every token"), 3, True, True),
    "funnel": (lambda folder: funnel((2, 2, 1)), 2, True, False),
    "funnel without decoder": (lambda folder: funnel((2, 2, 2), after=None), 2, False, False),
    "latent": (latent, 4, True, True),
}


@pytest.mark.parametrize("kind", SEGMENTED)
def test_views_show_any_segments(app, kind, tmp_path):
    make, layer, has_middle, is_composed = SEGMENTED[kind]
    capture = make(tmp_path / "model")
    chosen = Selection(layer, 0, len(capture.prompt) - 1)
    for name in VIEWS:
        with shown(view_of(name), (900, 500), capture=capture, selection=chosen) as (view, _):
            assert shows_no_error(view) is (name != "across" or is_composed), name
            if name == "hourglass":
                assert ("in the middle" in view.head.note.text()) is has_middle


# --- images ---------------------------------------------------------------------------------------


IMAGE = make_image_capture(rows=4, columns=6, heads=3)


def write_image(path, colour):
    Image.new("RGB", (50, 40), colour).save(path)
    return str(path)


def image_view(program):
    return next(one for one in program.inspect.looks if one.name == "image")


def test_the_row_of_the_query_lies_over_the_image_in_a_tab_of_its_own(program):
    session = program.session
    session.put(capture=IMAGE, mode="inspect")
    session.put(look="image")
    session.select(layer=1, head=2, query=9)
    program.settle()
    view = image_view(program)
    row = IMAGE.maps[1].read(2)[9]
    assert np.array_equal(view.overlay.row, row)
    placed = palettes.palette_coordinates(
        row[1:].reshape(4, 6), (0.0, float(row[1:].max())), session.display.scale
    )
    overlaid = palettes.paint(placed, palettes.colours("viridis"))
    wanted = palettes.overlay(IMAGE.prompt.signal.picture, overlaid)[20, 40]
    box = view.canvas.image_box()
    place = box.topLeft() + QPointF(40.5 * box.width() / 48, 20.5 * box.height() / 32)
    found = colour_at(view.canvas, place.x(), place.y())
    assert np.abs(np.array(found) - wanted).max() <= 2
    assert "(not a patch): " in view.as_text() and view.as_table()[10][0] == "1,2"
    assert view.figure(session).kind == "image"
    canvas = view.canvas
    place = canvas.patch_box(1 + 2 * 6 + 4).center().toPoint()
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
    assert session.selection.query == 1 + 2 * 6 + 4
    program.settle()
    for key, query in ((Qt.Key.Key_Up, 11), (Qt.Key.Key_Left, 10)):
        QTest.keyClick(canvas, key)
        assert session.selection.query == query
        program.settle()
    QTest.mouseMove(canvas, canvas.patch_box(20).center().toPoint())
    assert session.hover is not None and session.hover.key == 20
    program.settle()
    assert f"attends to {IMAGE.prompt.pieces[20]}:" in view.as_text()
    bar = program.inspect.tabbed.bar
    at = [*LOOKS].index("image")
    assert bar.isTabVisible(at)
    session.put(capture=make_capture("No image."))
    program.settle()
    assert not bar.isTabVisible(at) and session.look == "map"


def test_an_image_is_read_by_the_model_at_hand_and_the_next_model_reads_the_text(
    program, tmp_path, until
):
    session, commands = program.session, program.commands
    keys = {"dtype": torch.float32, "vocab_size": 256, "max_positions": 80}
    both = write_transformer(tmp_path / "both", form="encoder-decoder", **keys)
    short = write_transformer(tmp_path / "short", form="decoder", **keys | {"max_positions": 16})
    text = "The bell rang, and the sand ran down."

    def opens(folder, words=None):
        commands.open_path(str(folder))
        until(lambda: session.checkpoint == str(folder) and session.model is not None)
        if words:
            until(lambda: session.capture is not None and session.capture.main.text == words)
            assert not errors(program)

    session.put(text=text)
    size = {"height": 32, "width": 32}
    vit = write(tmp_path / "vit", "vit", "ViTForImageClassification", image_size=32, patch_size=8)
    transformers.ViTImageProcessor(size=size).save_pretrained(vit)
    opens(vit)
    assert session.capture is None
    for name, colour in (("a.png", (200, 30, 30)), ("b.png", (20, 30, 230))):
        commands.open_path(write_image(tmp_path / name, colour))
        until(lambda name=name: session.capture is not None and session.capture.main.text == name)
        picture = session.capture.prompt.signal.picture
        assert np.abs(picture[5, 5].astype(int) - colour).max() <= 1
    program.settle()
    assert session.look == "image" and image_view(program).drawn
    assert program.inspect.strip.edit.text() == "Choose image…"
    assert session.text == text and not session.stale
    opens(both, text)
    commands.prompting.capture_text(text, "Die Glocke.")
    until(lambda: session.capture.target.text == "Die Glocke.")
    opens(short, text[:16])
    assert "was truncated: this model reads at most 16 bytes" in program.frame.chosen_words.full
    assert (session.text, session.second) == (text[:16], "")


@cache
def made(name, **keys):
    return KINDS[name](**keys)


def test_the_question_of_a_pane_holds_the_capture_it_was_asked_of(program, capture, facts):
    """A lane comes to it when the session is further."""
    session, small = program.session, make_capture("ab", heads=1)
    session.put(capture=capture, facts=facts, selection=Selection(12, 5, 60, 3), capture_b=capture)
    program.complete()
    asked = {view: view.request(session) for view in program.views}
    asked = {view: work for view, work in asked.items() if callable(work)}
    assert len(asked) > 5
    session.put(capture=small, facts={}, selection=Selection(0, 0, 1, 0), capture_b=None)
    for view, work in asked.items():
        assert work() is not None, type(view).__name__


GLASS = "the glass has run and is turned now"


SPACES = frozenset(at for at, character in enumerate(GLASS) if character == " ")


KEYS = {"family": "dynamic", "n_layers": [1, 2, 1], "vocab_size": 256, "boundaries": "learned"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model with random weights that finds some ends and not others."""
    made = make_transformer(**KEYS)
    with torch.no_grad():
        scores = []
        made.down[0].boundary.register_forward_hook(lambda *found: scores.append(found[2]))
        made(torch.tensor([[*GLASS.encode()]]))
        made.down[0].boundary["out"].bias -= scores[0].quantile(0.7)
    path = tmp_path_factory.mktemp("segments") / "dynamic"
    save(path, made.config, made.state_dict())
    return open_model(path)


@pytest.fixture(scope="module")
def given(model):
    """One between words, whose last is in no segment."""
    ends = [at in SPACES for at in range(len(GLASS))]
    return tasks.capture(model, model.set_boundaries(model.tokenize(GLASS), ends))


def test_the_null_group_is_named_in_every_pane(app, given):
    chosen = Selection(1, 0, 1, 1)  # before any end
    assert "query 0 (null group)" in gui_program.selection_words(given, chosen)
    with shown(MapView, capture=given, selection=chosen) as (view, _):
        names = view.canvas.panes[0].scene.rows
        assert (names.glyph(0), names.place(0)) == ("∅", "null group: not part of the text")
        assert names.glyph(1) == "the·"
    with shown(TopKeysPanel, (304, 200), capture=given, selection=chosen) as (view, _):
        assert view.query.text() == "∅" and "null group" in view.where.full


def write_processor(folder, size=32):
    sides = {"height": size, "width": size}
    transformers.ViTImageProcessor(size=sides).save_pretrained(folder)


def test_a_folder_of_two_models_reads_texts_by_one_and_images_by_the_other(
    program, tmp_path, until
):
    folder, session = write(tmp_path / "clip", "clip", "CLIPModel"), program.session
    write_processor(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    session.put(text="the cat sat")
    program.commands.open_path(str(folder))
    until(lambda: session.model is not None and session.capture is not None)
    program.settle()
    assert session.capture.prompt.text == "the cat sat"
    program.commands.open_path(write_image(tmp_path / "a.png", "red"))
    until(lambda: session.capture.prompt.text == "a.png" and session.capture.complete)
    until(lambda: session.model is not None)
    assert session.model.spec.modality == "image"
