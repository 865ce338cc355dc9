"""A monkey at the window: every action, key, click and file, in an order that a seed decides.

Step n of a seed draws from numbers of its own, so that a step can be told again without those
before; what it hits depends on what is on screen by then.
"""

import time
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path

import numpy as np
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog

from hgviz.gui.actions import ACTIONS
from hgviz.gui.jobs import GOING
from hgviz.gui.program import Program
from hgviz.gui.window import Window
from tests.soak.hands import Hands, name_of
from tests.soak.larder import Larder
from tests.soak.watching import Census

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


class Monkey(Hands):
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
                    if one.state in GOING:
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
            self.program.commands.choose_cell(self._one_of(done) if done else "")
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


DEEDS = {  # how often, and what
    "act": (30, Monkey.act), "errand": (2, Monkey.errand), "open": (6, Monkey.open),
    "drop": (3, Monkey.drop), "key": (12, Monkey.key), "type": (4, Monkey.type),
    "click": (16, Monkey.click), "hover": (8, Monkey.hover), "wheel": (6, Monkey.wheel),
    "resize": (3, Monkey.resize), "answer": (6, Monkey.answer), "restart": (0.3, Monkey.restart),
}  # fmt: skip


def let_loose(monkey: Monkey, steps: int, wrong: list[str], each: int = 0) -> list[Census]:
    """Take so many steps; after each so many, and at the end, the window is closed and counted.

    wrong: what `watched` found. Errors: AssertionError with the seed, the step and the last ten.
    """
    found = []
    try:
        for at in range(1, steps + 1):
            monkey.step()
            assert not wrong, wrong[0]
            if at == steps or each and at % each == 0:
                monkey.end()
                found.append(Census.take())
                assert not wrong, wrong[0]
    except Exception as error:
        last = "\n  ".join(monkey.log)
        told = f"seed {monkey.seed}, step {monkey.number}, after\n  {last}\n{error}"
        raise AssertionError(told) from error
    finally:
        monkey.end()
    return found
