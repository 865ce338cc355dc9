"""The window in Korean: on every page and in every dialog nothing is left in English but data."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QFileDialog

from hgviz.gui import app as starting
from hgviz.gui import language, opening
from hgviz.gui.actions import ACTIONS
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.looks import LOOKS
from hgviz.gui.overlay import Overlay
from hgviz.gui.panels.jobs import keeps_words, layer_words
from hgviz.gui.program import Program
from hgviz.gui.prune.commands import REVIEWS
from hgviz.gui.views.words import counted
from hgviz.gui.window import Window
from hgviz.resources import resource
from hgviz.session import Work
from hgviz.session.other import Other
from tests.gui.listening import Listening
from tests.studying import make_study
from tests.sweeps import make_sweep

# what leads away from what is open, asks the platform, or is done by the walk itself
LEFT_OUT = {
    "quit", "close_window", "open_sample", "clear_recent", "reset_layout", "full_screen", "theme",
    "capture", "stop", "docks", "guide", "log", "close_sweep", "compare_nothing", "bundled_data",
    "time_curve", "trace_curve", "attribute",
}  # fmt: skip
KEYS = "Ctrl|Shift|Alt|Return|Enter|Space|Esc|Tab|Home|End|PgUp|PgDown|Del|Backspace"
ARROWS = "Left|Right|Up|Down"
# formats, models, activations and methods are called the same in every language
NAMES = (
    "hgviz|[Hh]ourglass|BERT|GPT|Funnel|Hugging Face|bertology|TextPruner|Dynamic pooling|trax"
    "|LaTeX|Word|TikZ|PGF|JSON|CPU|GPU|CUDA|Apple|float32|NeurIPS|ICML|ACL|IEEE|MIT|CC BY-SA"
    "|Transformers|WikiText"
    "|softmax|tanh|selu|SELU|elu|ELU|leaky ReLU|leaky_relu|swish|ymish|rbf|log-sum"
    "|Integrated Gradients|Hard concrete|positive|negative"
)
# what is no English of the window: quotations, paths and commands, who a formula is of, names, keys
SAME = re.compile(
    r"“[^”]*”|^hgviz .*|\S*/\S+|[\w-]+\.[a-z][a-z0-9]{1,4}\b|--\S+|\w+=\S*|\b\w+_\w+\b"
    r"|(?:[A-Z][\w-]+,? (?:and |& )?)*[A-Z][\w-]+(?: et al\.)?,? (?:19|20)\d\d"
    rf"|\b(?:{NAMES})(?:-sample)?\b|\b(?:{KEYS}|{ARROWS})\b"
)
# two words or more, short ones among them
GAP = "[ ,;:'’()]+"
ENGLISH = re.compile(
    rf"[A-Za-z]{{3,}}(?:{GAP}[A-Za-z]{{1,2}}\b)*(?:{GAP}[A-Za-z]{{3,}})+(?:{GAP}[A-Za-z]+)*"
)


def at_work():
    """A capture on its way, and a job that waits for it."""
    words = f"Capturing {counted(20, 'letter')}", layer_words(3, 13), keeps_words(3)
    return (
        Work("capture", words[0], 3, 13, words[1], 12.0, words[2], "running"),
        Work("measure", "Measuring heads", state="waiting"),
    )


@pytest.fixture
def korean(app):
    """A program in a window that speaks Korean."""
    starting.speak(app, "ko")
    frame = Window()
    frame.resize(1600, 1000)
    frame.show()
    program = Program(frame, keep=False)
    QApplication.processEvents()
    yield program
    program.close()
    frame.close()
    frame.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    starting.speak(app, "en")


def quiet(program):
    return not any(one.state in ("waiting", "running") for one in program.session.work)


def see(program, ears, at=None):
    """Hear what stands there, and what is said of everything inside of a widget."""
    program.settle()
    if at is not None:
        ears.point(at)
    ears.look(program.frame)


def overlays(program, ears):
    """Do everything that can be done now, and close what it opens."""
    for one in ACTIONS:
        if one.name in LEFT_OUT or one.why_off(program.session):
            continue
        before = program.session.mode
        program.commands.run(one.name)
        QApplication.processEvents()
        for card in program.frame.findChildren(Overlay):
            if card.isVisible():
                ears.look(program.frame)
                card.finish()
        for dialog in program.frame.findChildren(QFileDialog):
            ears.look(dialog)
            dialog.reject()
        program.session.put(mode=before)


def left(ears, texts):
    """What is still English, by file; texts: what is read there is data."""
    known, data = language.catalogue("ko"), "\n".join(texts).lower()
    shown = set(re.findall("[a-z]+", f"{opening.TEXT} {opening.REVIEW}".lower()))  # as tokens

    def english(words):
        plain = SAME.sub("|", words)
        found = (one.lower() for one in ENGLISH.findall(plain))
        return any(one not in data and not set(re.findall("[a-z]+", one)) <= shown for one in found)

    found = defaultdict(set)
    for file, words in ears.heard:
        whole = words.strip(" :…·&")
        alone = known.get(whole, whole) != whole and whole.lower() not in shown
        if alone or english(words):
            found[file].add(words)
    for file, words in ears.missed:
        if english(words) or re.fullmatch("[A-Z][a-z]{2,}[…:]?", SAME.sub("|", words)):
            found[file].add(f"(no translation) {words}")
    return found


@pytest.mark.qt_log_ignore("This plugin does not support")  # of the platform off screen
def test_no_english_is_left(korean, until, monkeypatch, tmp_path):
    ears, session, commands = Listening(monkeypatch), korean.session, korean.commands
    see(korean, ears)  # nothing is open
    commands.open_path(str(resource(opening.FIRST)))
    until(lambda: session.capture is not None and session.facts and quiet(korean))
    for name in LOOKS:
        session.put(look=name)
        see(korean, ears, korean.inspect if name == "map" else korean.inspect.tabbed)
    for section in korean.inspect.column.sections.values():
        ears.menu("hgviz/gui/docks.py", section.menu())
    korean.frame.resize(900, 600)
    session.put(look="map", work=at_work())
    see(korean, ears, korean.inspect)
    session.put(mode="follow", work=())
    see(korean, ears, korean.follow)
    korean.frame.resize(1600, 1000)

    commands.open_path(str(resource("sample/softmax")))
    until(lambda: session.model is not None and session.facts and quiet(korean))
    session.put(mode="inspect")
    see(korean, ears)
    commands.run("attribute")
    session.put(look="attribution")
    until(lambda: session.explained is not None and quiet(korean))
    see(korean, ears, korean.inspect.tabbed)
    commands.run("bundled_data")
    until(lambda: session.trial is not None and quiet(korean))
    see(korean, ears, korean.prune)
    commands.run("switch_head")
    until(lambda: quiet(korean))
    see(korean, ears)
    commands.comparing.choose(Other("model", path=str(resource("sample/ymish"))))
    until(lambda: session.beside is not None and quiet(korean))
    see(korean, ears, korean.compare)
    overlays(korean, ears)

    folder = tmp_path / "many"
    make_sweep(seeds=(1, 2), methods=("michel",), folder=folder)
    commands.open_path(str(folder))
    until(lambda: session.sweep is not None and quiet(korean))
    see(korean, ears, korean.sweep)

    commands.close_sweep()
    korean.commands.sessions.clear()
    commands.show_study(make_study())
    session.put(mode="prune")
    see(korean, ears, korean.prune)
    commands.open_path(str(tmp_path / "none.h5"))
    until(lambda: korean.frame.findChildren(ErrorDialog) and quiet(korean))
    see(korean, ears)

    study = (folder / "study.toml").read_text("utf-8")
    reviews, made = (
        resource(REVIEWS).read_text("utf-8"),
        "made for tests, one window, none of layer 0",
    )
    found = left(ears, (opening.TEXT, opening.REVIEW, reviews, study, made))
    lines = [f"{file}\n    " + "\n    ".join(sorted(found[file])) for file in sorted(found)]
    assert not found, "still English:\n" + "\n".join(lines)
