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
from hgviz.gui.follow import FollowOptions, FollowView, follow, lay_out
from hgviz.gui.layouts import stages
from hgviz.gui.links import LinksView
from hgviz.gui.map import MapView
from hgviz.gui.panels import TopKeysPanel
from hgviz.gui.text import TextStrip
from hgviz.gui.textrows import LEFT, TOP, CellTexts
from hgviz.gui.view import LOOKS, VIEWS
from hgviz.gui.view import view as view_of
from hgviz.maps import LazyMap
from hgviz.models import open_model, pruning
from hgviz.models.checkpoints import save
from tests.analysis.planting import funnel as make_funnel
from tests.analysis.planting import segmented as make_segmented
from tests.gui import kinds
from tests.gui.kinds import ENGLISH, GERMAN, KINDS
from tests.gui.screen import colour_at, errors, plain, shown, shows_no_error
from tests.making import make_capture, make_image_capture
from tests.models import zoo
from tests.models.building import make_transformer, write_transformer
from tests.models.zoo import write
from tests.test_evaluate import tokenizer

CROSS = Selection(4, 1, 6, 3)  # of the translator: target gut, source is
WIDE = (1600, 188)


@cache
def made(name, **keys):
    return KINDS[name](**keys)


def place(strip, row, token):
    top, height = strip.tops[row]
    x = (strip.ruler.x(token) + strip.ruler.x(token + 1)) / 2
    return QPoint(round(LEFT + x), TOP + top + height // 2)


# --- all of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pair", "six", "yubert", "gpt2", "translator", "listener"])
def test_layers_of_every_kind_open_in_every_view(app, name):
    capture = made(name)
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


# --- two texts ------------------------------------------------------------------------------------


def test_a_map_between_two_texts_names_both(app):
    capture = made("translator")
    with shown(MapView, capture=capture, selection=CROSS) as (view, _):
        scene = view.canvas.panes[0].scene
        assert scene.source.shape == (len(capture.target), len(capture.prompt))
        assert scene.titles == ("Source", "Target")
        assert view.head.level.text() == "decoder 0 cross"
        assert scene.rows.glyph(6) == "gut" and scene.columns.glyph(3) == "is"
        said = plain(view.canvas.sentence.text())
        assert said.startswith("gut puts") and "of its weight on is." in said  # no distance
        view.canvas.pointed.emit((6, 4))
        card = plain(view.canvas.panes[0].card.text())
        assert "gut" in card and "position 4" in card


def test_the_text_strip_shows_both_and_a_click_means_query_or_key(app, qtbot):
    capture = made("translator")
    with shown(TextStrip, WIDE, capture=capture, selection=CROSS) as (view, session):
        source, target = view.strips
        assert source.isVisible() and target.isVisible()
        assert tuple(one.rows[0].texts.prompt.text for one in view.strips) == (ENGLISH, GERMAN)
        (line,) = source.rows
        assert line.head == HeadId(4, 1)
        assert np.array_equal(line.weights, capture.maps[4].read(1)[6])
        assert (line.key, line.chosen) == ((3, 4), None)
        assert target.rows[0].chosen == (6, 7)
        qtbot.mouseClick(source, Qt.MouseButton.LeftButton, pos=place(source, 0, 9))
        assert session.selection == replace(CROSS, key=9)
        qtbot.mouseClick(target, Qt.MouseButton.LeftButton, pos=place(target, 0, 2))
        assert session.selection == replace(CROSS, key=9, query=2)


# --- slots ----------------------------------------------------------------------------------------


def test_slots_are_columns_and_a_row_of_their_own(app, qtbot):
    capture = made("yubert")
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


# --- signs ----------------------------------------------------------------------------------------


def test_signed_maps_are_symmetric_about_zero_and_their_sentences_say_the_sign(app):
    capture = made("ymish")
    weights = capture.maps[0].read(4)
    row, column = (int(one) for one in np.unravel_index(weights.argmin(), weights.shape))
    chosen = Selection(0, 4, row, column)
    with shown(MapView, capture=capture, selection=chosen) as (view, session):
        low, high = view.canvas.panes[0].scene.limits
        assert -low == high == pytest.approx(float(np.abs(weights).max()))
        said = plain(view.canvas.sentence.text())
        total, plus = float(weights[row].sum()), float(np.maximum(weights[row], 0).sum())
        assert f"subtracts {-weights[row, column]:.3f} of" in said
        assert f"sums to {total:+.3f}: +{plus:.3f} −".replace("-", "−") in said
        session.select(key=int(weights[row].argmax()))
        assert "adds" in plain(view.canvas.sentence.text())
        view.canvas.pointed.emit((row, column))
        assert "subtracted" in plain(view.canvas.panes[0].card.text())


# --- following two texts --------------------------------------------------------------------------


def test_a_target_token_is_followed_by_turns_into_the_source(app):
    capture = made("translator")
    with shown(FollowView, (1600, 900), capture=capture, selection=CROSS) as (view, session):
        story = view.canvas.scene
        assert [one.kind for one in story.trace.way] == ["own", "cross"] * 3
        assert [one.level for one in story.trace.way] == [1, 0] * 3
        assert [one is None for one in story.layout.own] == [False, True] * 3
        assert view.token.text() == "gut"
        assert "through the decoder" in view.head.note.full
        assert "the source" in story.trace.sentence
        row = capture.maps[4].read(1)[6]
        assert np.array_equal(story.trace.rows[1].weights, row)
        QTest.keyClick(view.canvas, Qt.Key.Key_Right)
        assert session.selection.query == 7


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
    for name in ("map", "links", "wall", "levels"):
        command = command_for(found[name].of, found[name].spec, "f.pdf").words
        assert " --tokens " in command and "/somewhere/lin.h5" in command
    assert "--tokens" not in command_for(found["rollout"].of, found["rollout"].spec, "f.pdf").words
    assert "Show slots first" in BY_NAME["save"].why_off(session)
    program.commands.run("tokens")
    program.settle()
    assert session.capture.spec == capture.spec and session.off == {HeadId(0, 1)}
    assert np.array_equal(session.capture.spans[1], capture.spans[1])
    assert session.capture.maps[1] is capture.maps[1]
    assert not BY_NAME["save"].why_off(session)
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
        for name in STEPS * 2:
            program.commands.run(name)
            QApplication.processEvents()
            program.settle()
        assert not capture.spec.heads or session.selection.head_id in capture.spec.heads


# --- segments of unequal length -------------------------------------------------------------------


GLASS = "the glass has run and is turned now"
SPACES = frozenset(at for at, character in enumerate(GLASS) if character == " ")
KEYS = {"family": "dynamic", "n_layers": [1, 2, 1], "vocab_size": 256, "boundaries": "learned"}
SIZES = (2, 2, 2)
RIVER = "The river broke its banks."

funnel = cache(make_funnel)


@cache
def segmented(name="words"):
    return make_segmented(name)


def lay(capture, token):
    texts = [CellTexts.of_tokens(capture.prompt_of(one.index), 12) for one in capture.spec.levels]
    return lay_out(capture, stages(capture.spec), token, texts, (1200, 800))


def chips(capture, token):
    options = FollowOptions(Selection(0, 0, token), {}, {})
    return follow(capture, stages(capture.spec), token, options).chips


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
def own(model):
    """A capture between the segments that the model finds."""
    return tasks.capture(model, model.tokenize(GLASS))


@pytest.fixture(scope="module")
def given(model):
    """One between words, whose last is in no segment."""
    ends = [at in SPACES for at in range(len(GLASS))]
    return tasks.capture(model, model.set_boundaries(model.tokenize(GLASS), ends))


# --- every view -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def capture_of(model, tmp_path_factory):
    """(kind) -> a capture of segments, of a Funnel or of a Byte Latent Transformer."""

    @cache
    def find(kind):
        if kind.startswith("cut"):
            ends = {"cut nowhere": (), "cut everywhere": range(35)}[kind]
            bits = [at in ends for at in range(len(GLASS))]
            return tasks.capture(model, model.set_boundaries(model.tokenize(GLASS), bits))
        if kind.startswith("funnel"):
            return make_funnel((2, 2, 1) if kind == "funnel without stay" else SIZES,
                               **({"after": None} if kind == "funnel base" else {}))  # fmt: skip
        folder = zoo.write_blt(
            tmp_path_factory.mktemp("blt") / "m", "BltForCausalLM", **zoo.MODES[kind]
        )
        reader = open_model(folder)
        return tasks.capture(reader, reader.tokenize("a" if kind == "no patcher" else RIVER))

    return find


@pytest.mark.parametrize(
    ("kind", "layer"),
    [
        ("cut nowhere", 3), ("cut everywhere", 3), ("funnel base", 2), ("funnel without stay", 2),
        ("two parts", 4), ("no patcher", 2),
    ],
)  # fmt: skip
def test_views_show_any_segments(app, capture_of, kind, layer):
    capture = capture_of(kind)
    chosen = Selection(layer, 0, len(capture.prompt) - 1)
    for name in VIEWS:
        refused = name == "across" and kind.startswith("funnel")  # its levels are not composed
        with shown(view_of(name), (900, 500), capture=capture, selection=chosen) as (view, _):
            assert shows_no_error(view) is not refused, name
            if name == "hourglass":
                assert ("in the middle" in view.head.note.text()) is (kind != "funnel base")


# --- the null group has a name --------------------------------------------------------------------


def test_the_null_group_is_named_in_every_pane(app, given):
    chosen = Selection(1, 0, 1, 1)  # before any end
    assert "query 0 (null group)" in gui_program.selection_words(given, chosen)
    with shown(MapView, capture=given, selection=chosen) as (view, _):
        names = view.canvas.panes[0].scene.rows
        assert (names.glyph(0), names.place(0)) == ("∅", "null group: not part of the text")
        assert names.glyph(1) == "the·"
    with shown(TopKeysPanel, (304, 200), capture=given, selection=chosen) as (view, _):
        assert view.query.text() == "∅" and "null group" in view.where.full


# --- a token on its way ---------------------------------------------------------------------------


def test_tokens_that_are_in_no_group_say_so(given, capture_of):
    assert "“w” is not in a segment yet" in chips(given, 34)[0]
    assert "“r” is pooled" in chips(given, 14)[0]
    for token, back in ((0, True), (28, True), (29, False), (30, False)):
        left_out = "was left out" in chips(funnel(SIZES), token)[-1]
        thread = lay(funnel(SIZES), token).gaps[-1].thread
        assert (thread is not None) is back is not left_out
    capture = capture_of("two parts")
    way = stages(capture.spec)
    assert [(one.level, one.layers) for one in way] == [(0, (2, 3)), (2, (5, 6)), (0, (8, 10))]
    last = len(capture.prompt) - 1
    words = chips(capture, last)
    assert ("not in a segment yet" in words[0]) is (int(capture.spans[2][-1, 1]) <= last)
    assert "attends most to" in words[1]


# --- images ---------------------------------------------------------------------------------------


IMAGE = make_image_capture(rows=4, columns=6, heads=3)


def write_vit(folder, size=32, patch=8):
    """A checkpoint that reads images of size x size pixels, in patches."""
    write(folder, "vit", "ViTForImageClassification", image_size=size, patch_size=patch)
    write_processor(folder, size)
    return str(folder)


def write_processor(folder, size=32):
    sides = {"height": size, "width": size}
    transformers.ViTImageProcessor(size=sides).save_pretrained(folder)


def write_image(path, colour=(200, 30, 30)):
    Image.new("RGB", (50, 40), colour).save(path)
    return str(path)


@pytest.fixture
def seen(program):
    """A program that shows an image."""
    program.session.put(capture=IMAGE, mode="inspect")
    program.session.put(look="image")
    program.settle()
    return program


def image_view(program):
    return next(one for one in program.inspect.looks if one.name == "image")


def test_the_row_of_the_query_lies_over_the_image_in_a_tab_of_its_own(seen):
    view = image_view(seen)
    seen.session.select(layer=1, head=2, query=9)
    seen.settle()
    row = IMAGE.maps[1].read(2)[9]
    assert np.array_equal(view.overlay.row, row)
    placed = palettes.palette_coordinates(
        row[1:].reshape(4, 6), (0.0, float(row[1:].max())), seen.session.display.scale
    )
    overlaid = palettes.paint(placed, palettes.colours("viridis"))
    wanted = palettes.overlay(IMAGE.prompt.signal.picture, overlaid)[20, 40]
    box = view.canvas.image_box()
    place = box.topLeft() + QPointF(40.5 * box.width() / 48, 20.5 * box.height() / 32)
    found = colour_at(view.canvas, place.x(), place.y())
    assert np.abs(np.array(found) - wanted).max() <= 2
    assert "(not a patch): " in view.as_text() and view.as_table()[10][0] == "1,2"
    assert view.figure(seen.session).kind == "image"
    canvas = view.canvas
    place = canvas.patch_box(1 + 2 * 6 + 4).center().toPoint()
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=place)
    assert seen.session.selection.query == 1 + 2 * 6 + 4
    seen.settle()
    for key, query in ((Qt.Key.Key_Up, 11), (Qt.Key.Key_Left, 10), (Qt.Key.Key_Down, 16)):
        QTest.keyClick(canvas, key)
        assert seen.session.selection.query == query
        seen.settle()
    seen.session.select(query=1)
    seen.settle()
    QTest.keyClick(canvas, Qt.Key.Key_Left)  # at the edge it stays
    assert seen.session.selection.query == 1
    QTest.mouseMove(canvas, canvas.patch_box(20).center().toPoint())
    assert seen.session.hover is not None and seen.session.hover.key == 20
    seen.settle()
    assert f"attends to {IMAGE.prompt.pieces[20]}:" in view.as_text()
    bar = seen.inspect.tabbed.bar
    at = [*LOOKS].index("image")
    assert bar.isTabVisible(at)
    seen.session.put(capture=make_capture("No image."))
    seen.settle()
    assert not bar.isTabVisible(at) and seen.session.look == "map"


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
    opens(write_vit(tmp_path / "vit"))
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
    program.commands.open_path(write_image(tmp_path / "a.png"))
    until(lambda: session.capture.prompt.text == "a.png" and session.capture.complete)
    until(lambda: session.model is not None)
    assert session.model.spec.modality == "image"
