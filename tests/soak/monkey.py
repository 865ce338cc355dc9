"""Someone who tries everything in the window: every action, key, click and file.

A seed decides the order. Step n draws from numbers of its own, so that a step can be repeated
without those before; what it hits depends on what is on screen by then.
"""

import time
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDialog,
    QFileDialog,
    QLineEdit,
    QPlainTextEdit,
    QWidget,
)
from shiboken6 import isValid

from hgviz.files import resource
from hgviz.gui.actions import ACTIONS
from hgviz.gui.dialogs import Form
from hgviz.gui.program import Program
from hgviz.gui.window import Window
from tests.soak import damage, good

BUNDLED = ("sample/first.h5", "sample/hourglass", "sample/softmax", "sample/ymish", "sample/mixed")


@dataclass(frozen=True, slots=True)
class Larder:
    """Paths by what they are for. openable: all that anybody may open or drop, good or not."""

    captures: tuple[str, ...]
    openable: tuple[str, ...]
    texts: tuple[str, ...]
    ids: tuple[str, ...]
    folder: Path

    @classmethod
    def fill(cls, folder: Path, each: int = 3) -> Self:
        """Write the files; each: damaged ones of each kind of damage."""
        good.write_captures(folder / "captures")
        good.write_models(folder / "models")
        good.write_studies(folder / "studies")
        good.write_sweeps(folder / "sweeps")
        paths = sorted(folder.glob("*/*"))
        good.write_texts(folder / "plain")
        plain, canary = sorted((folder / "plain").iterdir()), folder / "canary"
        canary.mkdir()
        (canary / "secret.bin").write_bytes(bytes(range(256)))
        for kinds in damage.GROUPS.values():
            for number in range(each * len(kinds)):
                place = folder / "changed" / f"{next(iter(kinds))} {number}"
                paths.append(damage.damage([*kinds], number, 0, folder, place, canary))
        paths += [*map(resource, BUNDLED), *plain, folder / "nowhere.h5", folder / "plain"]
        texts = [path for path in plain if path.suffix in (".txt", ".tsv", ".jsonl")]
        return cls(
            tuple(map(str, sorted((folder / "captures").glob("*.h5")))),
            tuple(str(path) for path in paths if path is not None),
            tuple(map(str, texts)),
            tuple(str(path) for path in plain if path.suffix == ".json"),
            folder,
        )

    def find(self, end: str) -> str:
        """The path of something that can be opened, by its end."""
        return next(path for path in self.openable if path.endswith(end))


# --- the monkey -----------------------------------------------------------------------------------

KEYS = (
    "Tab", "Return", "Esc", "Space", "Left", "Right", "Up", "Down", "Home", "End", "PgUp",
    "PgDown", "Del", "F6", "F1", "+", "-", "/", "0", "1", "9", *"ABCDFHJKLNSTUWXZ",
)  # fmt: skip
HELD = ("", "", "", "", "Shift+", "Ctrl+", "Alt+", "Ctrl+Shift+")
TYPED = ("x", "hourglass", "12.5, 4.*", "", "0", "나는 \U0001f600", "<b>x</b>", "a" * 300, "1:2")
SIZES = ((1100, 700), (1280, 800), (1600, 1000), (1920, 1080), (2200, 700))
PATIENCE, ERRAND = 1.5, 20.0  # s: what still runs then is stopped, as a person would
LONGEST = 120.0  # s: whatever is stopped ends by then
# Chains that chance alone would hardly come upon: @ opens a file, = answers with one, "" presses
# the default button of what is open, - stops the score, $ chooses a cell of a study that is done;
# what ends in ! is not waited for.
ERRANDS = (
    ("@sample/softmax", "prune", "choose_data", "=plain/rows.tsv", "measure_heads", "",
     "trace_curve", "save_study", ""),
    ("@sample/ymish", "prune", "bundled_data", "measure_heads", "", "trace_curve", "save_study"),
    ("@sample/hourglass", "compare_with", "", "compare", "report_sides", "save_beside", "",
     "compare_nothing"),
    ("@sample/softmax", "switch_head", "keep_mask", "remove_heads", "", "undo", "redo", "all_on"),
    ("@sample/hourglass", "capture", "", "switch_head", "undo", "all_on"),
    ("@sample/hourglass", "attribute!", "stop_attributing", "write", "!", "stop"),
    ("@captures/many.h5", "find_text", "next_text", "last_text"),
    ("@captures/slots.h5", "tokens", "save", ""),
    ("@studies/classes.h5", ""),
    ("@sample/softmax", "prune", "bundled_data", "switch_head!", "-", "resume_score"),
    ("@sweeps/tiny.toml", "run_sweep", "sweep"),
    ("@sweeps/failed", "$", "open_cell", "close_sweep"),
)  # fmt: skip


class Monkey:
    """Steps at random in a window. log: the last ten; done: how often each action was."""

    def __init__(self, seed: int, larder: Larder, out: Path) -> None:
        self.seed, self.larder, self.out = seed, larder, out
        self.number = 0
        self.log: deque[str] = deque(maxlen=10)
        self.done: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.random = np.random.default_rng(seed)
        self.program: Program | None = None
        self.windows = 0
        self._errand: list[str] = []
        self._closed = self._hurry = False

    # --- a window ---------------------------------------------------------------------------------

    def begin(self) -> None:
        """Open a window, as the program does when it starts."""
        frame = Window()
        frame.resize(1600, 1000)
        frame.show()
        self.program, self.windows = Program(frame), self.windows + 1
        self.program.open_first([])
        self._closed = False
        frame.closing.connect(self._closes)

    def end(self) -> None:
        """Close the window, and let go of it."""
        program, self.program = self.program, None
        if program is not None:
            program.close()
            program.frame.close()
            program.frame.deleteLater()

    def _closes(self) -> None:
        self._closed = True

    # --- steps ------------------------------------------------------------------------------------

    def step(self) -> None:
        """Do something, and mostly wait for what comes of it."""
        self.number += 1
        self.random = np.random.default_rng([self.seed, self.number])
        if self.program is None:
            self.begin()
        self._hurry = self.random.random() < 0.2
        if self._errand:
            self._go_on()
        else:
            names = list(DEEDS)
            weights = np.array([weight for weight, _ in DEEDS.values()], float)
            if self._dialog() is not None:
                weights[names.index("answer")] = weights.sum()
            name = str(self.random.choice(names, p=weights / weights.sum()))
            self.kinds[name] += 1
            DEEDS[name][1](self)
        if self._closed:
            self.end()
        elif self._hurry:
            QApplication.processEvents()
        else:
            self.rest()

    def rest(self, patience: float = 0.0) -> None:
        """Turn the event loop until nothing is under way; stop what takes long."""
        patience = patience or (ERRAND if self._errand else PATIENCE)
        stop_at, began = time.monotonic() + patience, time.monotonic()
        while self.busy():
            QApplication.processEvents()
            if self._closed:
                return
            time.sleep(0.001)
            now = time.monotonic()
            if now - began > LONGEST:
                raise AssertionError(f"still at work: {self.program.session.work}")
            if now > stop_at:
                stop_at = now + patience
                for one in self.program.session.work:
                    if one.is_going:
                        self.say(f"stop {one.title}")
                        self.program.commands.drop(one.key)
        QApplication.processEvents()

    def busy(self) -> bool:
        """Whether a lane works, or a view is about to ask one."""
        lanes = self.program.lanes
        if any(one.jobs for one in (lanes.engine, lanes.files, lanes.map, lanes.facts)):
            return True
        return any(one._wait.isActive() for one in self.program.views if one.isVisible())

    # --- deeds ------------------------------------------------------------------------------------

    def act(self) -> None:
        """Do an action: most often one that was done least."""
        session = self.program.session
        can = [one for one in ACTIONS if not one.why_off(session)]
        if self.random.random() < 0.5:
            least = min(self.done[one.name] for one in can)
            can = [one for one in can if self.done[one.name] == least]
        elif self.random.random() < 0.2:
            can = list(ACTIONS)  # also those that cannot be done now
        self.fire(can[self.random.integers(len(can))].name)

    def fire(self, name: str) -> None:
        """Do an action by its name, its row in the menu, or its key."""
        action = next(one for one in ACTIONS if one.name == name)
        can = not action.why_off(self.program.session)
        how = int(self.random.integers(3))
        self.say(f"{name} ({('by name', 'from the menu', 'by key')[how]})")
        if how == 2 and action.keys and self._dialog() is None:
            self.program.frame.setFocus()
            QTest.keySequence(self.program.frame, QKeySequence(action.keys[0]))
        elif how == 1:
            self.program.frame.actions_by_name[name].trigger()
        else:
            self.program.commands.run(name)
        self.done[name] += can

    def errand(self) -> None:
        """Begin one of the longer ways."""
        at = int(self.random.integers(len(ERRANDS)))
        self._errand = list(ERRANDS[at])
        self._go_on()

    def _go_on(self) -> None:
        name = self._errand.pop(0)
        self._hurry = name.endswith("!")
        name, dialog = name.rstrip("!"), self._dialog()
        if name.startswith("@"):
            self.close_dialogs()
            self._open(self.larder.find(name[1:]))
        elif name.startswith("="):
            if isinstance(dialog, QFileDialog):
                self._tell(dialog, self.larder.find(name[1:]))
        elif name == "-":
            self.say("stop the score")
            self.program.commands.pruning.stop_trial()
        elif name == "$":
            sweep = self.program.session.sweep
            done = [one.cell.key for one in sweep.standings if one.state == "done"] if sweep else []
            self.program.session.put(cell=self._one_of(done) if done else "")
        elif name:
            self.fire(name)
        elif dialog is not None:
            self.answer(default=True)

    def open(self) -> None:
        """Open any file."""
        self._open(self._one_of(self.larder.openable))

    def _open(self, path: str) -> None:
        self.say(f"open {self._short(path)}")
        self.program.commands.open_path(path)

    def drop(self) -> None:
        """Drop one file or several on the window."""
        paths = [self._one_of(self.larder.openable) for _ in range(self.random.integers(1, 4))]
        self.say(f"drop {', '.join(map(self._short, paths))}")
        data, at = QMimeData(), QPointF(300, 300)
        data.setUrls([QUrl.fromLocalFile(one) for one in paths])
        how = Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton
        frame, none = self.program.frame, Qt.KeyboardModifier.NoModifier
        QApplication.sendEvent(frame, QDragEnterEvent(at.toPoint(), *how, none))
        QApplication.sendEvent(frame, QDropEvent(at, *how, none))

    def answer(self, default: bool = False) -> None:
        """Answer the dialog that is open: by its button, a button of it, a file, or not at all."""
        dialog = self._dialog()
        if dialog is None:
            return self.act()
        how = 0.0 if default else self.random.random()
        if isinstance(dialog, QFileDialog):
            self._answer_file(dialog, how < 0.8)
        elif how < 0.35 and dialog.default is not None:
            self.say(f"press the default of {name_of(dialog)}")
            dialog.default.click()
        elif how < 0.6:
            self.say(f"escape from {name_of(dialog)}")
            dialog.setFocus()
            QTest.keyClick(dialog, Qt.Key.Key_Escape)
            dialog.reject() if dialog.isVisible() else None
        elif how < 0.8:
            self.type()
        else:
            self.click()

    def _answer_file(self, dialog: QFileDialog, choose: bool) -> None:
        if choose:
            if dialog.acceptMode() == QFileDialog.AcceptMode.AcceptSave:
                end = dialog.defaultSuffix() or "out"
                path = str(self.out / f"{self.random.integers(4)}.{end}")
            elif dialog.fileMode() == QFileDialog.FileMode.Directory:
                path = self._one_of([one for one in self.larder.openable if Path(one).is_dir()])
            else:
                filters = dialog.nameFilters()[0]
                kinds = {"*.json)": self.larder.ids, "*.txt": self.larder.texts}
                path = self._one_of(next(
                    (some for end, some in kinds.items() if end in filters), self.larder.openable
                ))  # fmt: skip
            self._tell(dialog, path)
        else:
            self.say(f"cancel “{dialog.windowTitle()}”")
            dialog.reject()

    def _tell(self, dialog: QFileDialog, path: str) -> None:
        self.say(f"answer “{dialog.windowTitle()}” with {self._short(path)}")
        dialog.fileSelected.emit(path)
        dialog.reject()

    def restart(self) -> None:
        """Close the window; the next step opens another."""
        self.say("close the window")
        self.program.frame.close()

    def close_dialogs(self) -> None:
        """Leave every dialog and menu."""
        while (popup := QApplication.activePopupWidget()) is not None:
            popup.close()
        for one in self.program.frame.findChildren(QDialog):
            one.reject()

    def _short(self, path: str) -> str:
        with suppress(ValueError):
            return str(Path(path).relative_to(self.larder.folder))
        return Path(path).name

    # --- keys and the mouse -----------------------------------------------------------------------

    def say(self, words: str) -> None:
        """Note what is about to be done."""
        self.log.append(f"{self.number}: {words}")

    def key(self) -> None:
        """Press a key, or a few."""
        for _ in range(self.random.integers(1, 5)):
            target = self._typed_to()
            if target is None or isinstance(target.window(), QFileDialog):
                return
            keys = self._one_of(HELD) + self._one_of(KEYS)
            self.say(f"key {keys} to {name_of(target)}")
            QTest.keySequence(target, QKeySequence(keys))
            if self._closed:
                return

    def type(self) -> None:
        """Type something where something is typed."""
        fields = [one for one in self._inside() if isinstance(one, QLineEdit | QPlainTextEdit)]
        if not fields:
            return self.key()
        field, text = self._one_of(fields), self._one_of(TYPED)
        self.say(f"type {text[:12]!r} into {name_of(field)}")
        if field.isEnabled() and not field.isReadOnly():
            field.setFocus()
            field.selectAll()
            field.insert(text) if isinstance(field, QLineEdit) else field.insertPlainText(text)

    def click(self) -> None:
        """Click a widget, or drag over it, in its middle or anywhere."""
        one, at = self._place()
        if one is None:
            return
        right = self.random.random() < 0.15
        button = Qt.MouseButton.RightButton if right else Qt.MouseButton.LeftButton
        held = self._one_of((*[Qt.KeyboardModifier.NoModifier] * 4,
                             Qt.KeyboardModifier.ShiftModifier,
                             Qt.KeyboardModifier.ControlModifier))  # fmt: skip
        how = self.random.random()
        self.say(f"{'drag' if how < 0.2 else 'click'} {name_of(one)} at {at.x()}, {at.y()}")
        if how < 0.2:
            with suppress(RuntimeError):
                QTest.mousePress(one, button, held, at)
            for _ in range(3):
                with suppress(RuntimeError):  # what is dragged may have gone meanwhile
                    at = QPoint(*(int(self.random.integers(-9, max(1, side) + 9))
                                  for side in (one.width(), one.height())))  # fmt: skip
                    QTest.mouseMove(one, at)
            with suppress(RuntimeError):
                QTest.mouseRelease(one, button, held, at)
        else:
            with suppress(RuntimeError):
                press = QTest.mouseDClick if how < 0.3 else QTest.mouseClick
                press(one, button, held, at)

    def hover(self) -> None:
        """Move the pointer over something."""
        one, at = self._place()
        if one is not None:
            self.say(f"hover over {name_of(one)} at {at.x()}, {at.y()}")
            with suppress(RuntimeError):
                QTest.mouseMove(one, at)

    def wheel(self) -> None:
        """Turn the wheel over something, with Ctrl or without."""
        one, at = self._place()
        if one is None:
            return
        turn = QPoint(0, int(self._one_of((-360, -120, 120, 360))))
        held = self._one_of((Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier))
        self.say(f"wheel {turn.y()} over {name_of(one)} at {at.x()}, {at.y()}")
        with suppress(RuntimeError):
            event = QWheelEvent(
                QPointF(at), QPointF(one.mapToGlobal(at)), QPoint(), turn, Qt.MouseButton.NoButton,
                held, Qt.ScrollPhase.NoScrollPhase, False,
            )  # fmt: skip
            QApplication.sendEvent(one, event)

    def resize(self) -> None:
        """Give the window another size."""
        wide, high = self._one_of(SIZES)
        self.say(f"resize {wide} x {high}")
        self.program.frame.showNormal()
        self.program.frame.resize(wide, high)

    # --- what is there ----------------------------------------------------------------------------

    def _dialog(self) -> QFileDialog | Form | None:
        frame = self.program.frame
        asked = [one for one in frame.findChildren(QFileDialog) if one.isVisible()]
        shown = [one for one in frame.findChildren(Form) if one.isVisible()]
        return (asked or shown or [None])[-1]

    def _top(self) -> QWidget | None:
        """What takes the mouse; None while a file is asked for, whose buttons change the disk."""
        if isinstance(self._dialog(), QFileDialog):
            return None
        return QApplication.activePopupWidget() or self._dialog() or self.program.frame

    def _inside(self) -> list[QWidget]:
        top = self._top()
        return [one for one in top.findChildren(QWidget) if one.isVisible()] if top else []

    def _place(self) -> tuple[QWidget | None, QPoint]:
        """A widget that can be seen, and a point in it."""
        top = self._top()
        if top is None:
            return None, QPoint()
        if self.random.random() < 0.5:  # what something comes of
            wants = (QAbstractButton, QComboBox)
            some = [one for one in self._inside() if isinstance(one, wants) and one.isEnabled()]
            some = [one for one in some if not one.visibleRegion().isEmpty()]
            if some:
                one = self._one_of(some)
                return one, one.visibleRegion().boundingRect().center()
        at = QPoint(int(self.random.integers(top.width())), int(self.random.integers(top.height())))
        one = top.childAt(at)
        if one is None or not isValid(one):  # a list that is being deleted,
            one = top
        if not isValid(one):  # or what held it
            return None, QPoint()
        return one, one.mapFrom(top, at)

    def _typed_to(self) -> QWidget | None:
        popup = QApplication.activePopupWidget()
        return popup or QApplication.focusWidget() or self._top()

    def _one_of(self, some):
        return some[int(self.random.integers(len(some)))]


DEEDS = {  # how often, and what
    "act": (30, Monkey.act), "errand": (2, Monkey.errand), "open": (6, Monkey.open),
    "drop": (3, Monkey.drop), "key": (12, Monkey.key), "type": (4, Monkey.type),
    "click": (16, Monkey.click), "hover": (8, Monkey.hover), "wheel": (6, Monkey.wheel),
    "resize": (3, Monkey.resize), "answer": (6, Monkey.answer), "restart": (0.3, Monkey.restart),
}  # fmt: skip


def name_of(one: QWidget) -> str:
    """A widget as people would call it; some go between being found and being used."""
    if not isValid(one):
        return "what has gone"
    words = one.accessibleName() or (one.text() if isinstance(one, QAbstractButton) else "")
    return f"{type(one).__name__} {words[:24]!r}" if words else type(one).__name__
