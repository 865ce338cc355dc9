"""The window: menus, toolbar, and the place for the pages; the application it belongs to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QFrame,
    QGridLayout,
    QLineEdit,
    QMainWindow,
    QMenu,
    QPlainTextEdit,
    QSizePolicy,
    QStackedWidget,
    QWidget,
)

from hgviz import __version__
from hgviz.gui import theme, widgets
from hgviz.gui.actions import ACTIONS, MENU_ACTIONS, Action
from hgviz.gui.language import tr
from hgviz.gui.widgets import Button, IconButton, PaneHead, Segments, Words, hbox, vbox

if TYPE_CHECKING:
    from hgviz.session import Session

# Alt and the letter opens the menu
LETTERS = {"File": "F", "Edit": "E", "View": "V", "Heads": "D", "Analyse": "A", "Help": "H"}
ROLES = {
    "about": QAction.MenuRole.AboutRole, "quit": QAction.MenuRole.QuitRole,
    "preferences": QAction.MenuRole.PreferencesRole,
}  # fmt: skip
Standard = QKeySequence.StandardKey
STANDARD = {
    "open": Standard.Open, "save": Standard.Save, "close_window": Standard.Close,
    "quit": Standard.Quit, "undo": Standard.Undo, "redo": Standard.Redo, "copy": Standard.Copy,
    "find_text": Standard.Find, "preferences": Standard.Preferences,
    "full_screen": Standard.FullScreen, "find": Standard.HelpContents,
    "explain": Standard.WhatsThis,
}  # fmt: skip
TAKEN = {QKeySequence(key).toString() for one in ACTIONS for key in one.keys}


def fill(
    window: QMainWindow, wanted: Callable[[str], None]
) -> tuple[dict[str, QAction], dict[str, QMenu]]:
    """Fill the menu bar: the actions by name, and the menus inside others by their words. wanted:
    is called with the name of an action."""
    actions: dict[str, QAction] = {}
    inside: dict[str, QMenu] = {}
    bar = window.menuBar()
    for name, rows in MENU_ACTIONS.items():
        menu = QMenu(lettered(tr(name), LETTERS[name]), window, toolTipsVisible=True)
        bar.addMenu(menu)
        for number, one in enumerate(rows):
            if number and one.group != rows[number - 1].group:
                menu.addSeparator()
            if one.submenu and one.submenu not in inside:
                inside[one.submenu] = menu.addMenu(tr(one.submenu))
                inside[one.submenu].setToolTipsVisible(True)
            role = ROLES.get(one.name, QAction.MenuRole.NoRole)
            action = actions[one.name] = widgets.make(  # no icon: a column of them is loud
                QAction, tr(one.words), window, objectName=one.name, menuRole=role,
                triggered=partial(wanted, one.name),
            )  # fmt: skip
            action.setShortcuts(keys_of(one))
            window.addAction(action)
            (inside[one.submenu] if one.submenu else menu).addAction(action)
    return actions, inside


def lettered(words: str, letter: str) -> str:
    """Words of a menu with the letter that opens it marked; added where they do not have it."""
    at = words.lower().find(letter.lower())
    return f"{words}(&{letter})" if at < 0 else f"{words[:at]}&{words[at:]}"


def keys_of(one: Action) -> list[QKeySequence]:
    """The keys of an action, first its own, then what the platform has for it."""
    keys = [QKeySequence(key) for key in one.keys]
    if one.name in STANDARD:
        bound = QKeySequence.keyBindings(STANDARD[one.name])
        keys += [key for key in bound if key.toString() not in TAKEN]
    return keys


TYPING = (
    QLineEdit, QPlainTextEdit, QComboBox, QAbstractSpinBox, QAbstractItemView, QAbstractSlider,
)  # fmt: skip
SIZE, SMALLEST = QSize(1600, 1000), QSize(1100, 700)
MODES = (
    ("inspect", "Inspect", "eye"), ("follow", "Follow", "follow"), ("prune", "Prune", "prune"),
    ("compare", "Compare", "compare"), ("sweep", "Study", "table"),
)  # fmt: skip
FIND = "Search commands and heads"


class Window(QMainWindow):
    """The window. It knows no view: pages come after the first paint, actions go to `run`."""

    painted = Signal()  # once, when the first frame is on screen
    closing = Signal()
    dropped = Signal(list)  # of paths
    wanted = Signal(str)  # the name of an action
    resized = Signal(int, int)

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("hgviz")
        self.setWindowIcon(theme.icon("hgviz"))
        self.setMinimumSize(SMALLEST)
        self.setAcceptDrops(True)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.NoContextMenu)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # so that no button starts with a ring
        self.setFocus()
        self.may_close: Callable[[], bool] = lambda: True  # the program knows what would be lost
        self.restarts = False  # whether another window comes when this one is closed
        self._painted = False
        self._scrim = Scrim(self)
        self.menuBar().setFixedHeight(28)
        self.actions_by_name, self.menus = fill(self, self.wanted.emit)
        self.toolbar = Toolbar()
        self.toolbar.wanted.connect(self.wanted)
        self.pages = QStackedWidget()
        self.pages.addWidget(_blank())
        self._pages: dict[str, QWidget] = {}  # by mode
        middle = QWidget()
        vbox(middle, self.toolbar, (self.pages, 1))
        self.setCentralWidget(middle)
        self.chosen_words = widgets.StatusLine(factor=0.92, kind="secondary")
        self.made_words = Words(factor=0.92, kind="secondary")
        self.made_words.setAlignment(theme.TO_RIGHT)
        bar = self.statusBar()
        bar.setFixedHeight(26)
        bar.setSizeGripEnabled(False)
        bar.setContentsMargins(10, 0, 10, 0)
        bar.addWidget(self.chosen_words, 3)
        bar.addWidget(self.made_words, 2)

    def furnish(self, pages: Mapping[str, QWidget]) -> None:
        """Put pages in, under the names of their modes, the first in place of the bare frame."""
        for page in pages.values():
            self.pages.addWidget(page)
        if not self._pages:
            bare = self.pages.widget(0)
            self.pages.removeWidget(bare)
            bare.deleteLater()
        self._pages |= pages

    def show_mode(self, mode: str) -> None:
        if mode in self.toolbar.modes.names:
            self.toolbar.modes.choose(mode)
        if self.pages.currentWidget() is not self._pages[mode]:
            here = QApplication.focusWidget()
            self.pages.setCurrentWidget(self._pages[mode])
            if here is None or here is self or self.pages.isAncestorOf(here):
                page = self._pages[mode]  # the keyboard goes there, but never from a dialog
                getattr(page, "take_focus", page.setFocus)()

    def offer_mode(self, mode: str, there: bool) -> None:
        """Have a mode among the others, or not."""
        self.toolbar.modes.offer(mode, there)
        self.toolbar.fit()

    def show_reasons(self, session: Session) -> None:
        """Grey out what cannot be done now; the tooltip says why."""
        for one in ACTIONS:
            reason = one.why_off(session)
            action = self.actions_by_name[one.name]
            action.setEnabled(not reason)
            action.setToolTip(tr(reason or one.words))

    def show_theme(self) -> None:
        dark = theme.current().dark
        words = tr("Light theme") if dark else tr("Dark theme")
        self.toolbar.theme.wear("sun" if dark else "moon", words)

    def event(self, event: QEvent) -> bool:
        """Dim the window under a dialog; leave plain keys to what has the keyboard, where they mean
        something there."""
        if event.type() in (QEvent.Type.WindowBlocked, QEvent.Type.WindowUnblocked):
            self._scrim.cover(event.type() == QEvent.Type.WindowBlocked)
        shortcut = event.type() == QEvent.Type.ShortcutOverride
        if isinstance(event, QKeyEvent) and shortcut and _is_of_focus(event):
            event.accept()
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Say once when the first frame is painted: that is, when this round of events is over."""
        super().paintEvent(event)
        if not self._painted:
            self._painted = True
            QTimer.singleShot(0, self.painted.emit)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._scrim.resize(self.size())
        self.resized.emit(self.width(), self.height())

    def closeEvent(self, event: QCloseEvent) -> None:
        """Say it before it happens: jobs are stopped and settings kept."""
        if not self.may_close():
            event.ignore()
            return
        self.closing.emit()
        super().closeEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if any(url.isLocalFile() for url in event.mimeData().urls()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        paths = [url.toLocalFile() for url in event.mimeData().urls() if url.isLocalFile()]
        event.acceptProposedAction()
        self.dropped.emit(paths)


class Scrim(QWidget):
    """What dims the window while a dialog is open."""

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self.hide()

    def cover(self, is_blocked: bool) -> None:
        self.resize(self.parentWidget().size())
        self.setVisible(is_blocked)
        self.raise_()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.fillRect(self.rect(), theme.current().scrim)


def _is_of_focus(event: QKeyEvent) -> bool:
    """Whether a key, alone or with Shift, is typed into a field or one of a pane's `own_keys`."""
    shift, keypad = Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.KeypadModifier
    if event.modifiers() & ~(shift | keypad):
        return False
    here = QApplication.focusWidget()
    function_key = Qt.Key.Key_F1 <= event.key() <= Qt.Key.Key_F35
    own = getattr(here, "own_keys", ())
    return event.key() in own if own else isinstance(here, TYPING) and not function_key


class Toolbar(QFrame):
    """44 px: Open, the checkpoint, the modes in the middle, the search field, the theme."""

    wanted = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "toolbar")
        self.setFixedHeight(44)
        about = tr("Open a checkpoint, a capture or a study (Ctrl+O)")
        self.open = Button(tr("Open"), "open", toolTip=about)
        self.models = Chooser()
        self.modes = Segments([(name, tr(words), icon) for name, words, icon in MODES], wide=104)
        self.modes.setAccessibleName(tr("Pages"))
        self.modes.offer("sweep", False)  # until a study of many runs is open
        self.finder = Button(tr(FIND), "search", kind="find")
        self.finder.setFont(theme.font())
        self.keys = keys = Words("Ctrl+Shift+P", factor=0.85, kind="secondary")
        keys.setAlignment(theme.TO_RIGHT)
        keys.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        hbox(self.finder, keys, margins=(0, 0, 10, 0), spacing=-1)
        self.theme = IconButton("moon", tr("Dark theme"))
        self.modes.chosen.connect(self.wanted)
        buttons = {"open": self.open, "find": self.finder, "theme": self.theme}
        for action, button in buttons.items():
            button.setProperty("action", action)
            button.clicked.connect(partial(self.wanted.emit, action))
        grid = widgets.make(QGridLayout, self, horizontalSpacing=8)
        grid.setContentsMargins(12, 0, 12, 0)
        grid.addLayout(hbox(None, self.open, self.models, 1, spacing=8), 0, 0)
        grid.addWidget(self.modes, 0, 1)
        grid.addLayout(hbox(None, 1, self.finder, self.theme, spacing=8), 0, 2)
        grid.setColumnStretch(0, 1)
        grid.setColumnStretch(2, 1)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.fit()
        super().resizeEvent(event)

    def fit(self) -> None:
        """Give the fields the room that the modes in the middle leave."""
        side = (self.width() - self.modes.sizeHint().width()) // 2 - 32
        self.models.setFixedWidth(max(64, min(250, side - self.open.sizeHint().width() - 8)))
        self.finder.setFixedWidth(max(40, min(300, side - 36)))
        self.keys.setVisible(self.finder.width() >= 180)
        self.finder.setText(tr(FIND))
        if self.finder.sizeHint().width() + self.keys.sizeHint().width() > self.finder.width():
            self.finder.setText(tr("Search"))


class Chooser(Button):
    """The model at hand, its size, and a menu of what else was opened."""

    picked = Signal(str)  # a path

    def __init__(self) -> None:
        super().__init__("", "hourglass", weight=600)
        self.name = Words(tr("No model"), weight=600)
        self.size_words = Words("", factor=0.92, kind="secondary")
        self.arrow = IconButton("chevron", tr("Recent"))
        self.arrow.setFixedSize(16, 16)
        for one in (self.name, self.size_words):
            one.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        hbox(self, self.name, self.size_words, 1, self.arrow, margins=(34, 0, 8, 0), spacing=6)
        for one in (self.name, self.size_words, self.arrow):
            one.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.arrow.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(tr("Model"))
        self.setToolTip(tr("Current model and recent files"))
        self.setStyleSheet("text-align: left;")
        self._shown: object = None
        self._menu = widgets.make(QMenu, self, toolTipsVisible=True, triggered=self._pick)
        self.clicked.connect(self._drop)

    def show_model(self, name: str, size: str, more: Mapping[str, str], now: str) -> None:
        """Say the model and its size; offer paths by name."""
        shown = (name, size, dict(more), now)
        if shown == self._shown:  # a menu that is open stays as it is
            return
        self._shown = shown
        self.name.say(name)
        self.size_words.say(size)
        self._fit()
        self._menu.clear()
        for path, words in more.items():
            action = QAction(words, self._menu, toolTip=widgets.tip(path), checkable=True)
            action.setData(path)
            action.setChecked(path == now)
            self._menu.addAction(action)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit()
        super().resizeEvent(event)

    def _fit(self) -> None:
        """Say the size only where the name has its room."""
        around = self.contentsRect().width() - 34 - 8 - 2 * 6 - self.arrow.width()
        wanted = self.name.sizeHint().width() + self.size_words.sizeHint().width()
        self.size_words.setVisible(wanted <= around)

    def _drop(self) -> None:
        self._menu.setMinimumWidth(self.width())
        self._menu.popup(self.mapToGlobal(self.rect().bottomLeft()))

    def _pick(self, action: QAction) -> None:
        if action.data():
            self.picked.emit(action.data())


def _blank() -> QWidget:
    """The first frame's page: the panes without their pictures."""
    out = QWidget()
    grid = widgets.make(QGridLayout, out, spacing=0)
    grid.setContentsMargins(0, 0, 0, 0)
    for column, (title, room) in enumerate((("Hourglass", 592), ("Head", 704), ("", 304))):
        grid.addWidget(_pane(title), 0, 2 * column)
        grid.setColumnStretch(2 * column, room)
        if column:
            grid.addWidget(widgets.line(vertical=True), 0, 2 * column - 1)
    grid.addWidget(widgets.line(), 1, 0, 1, 5)
    strip = _pane("Text")
    strip.setFixedHeight(188)
    grid.addWidget(strip, 2, 0, 1, 5)
    return out


def _pane(title: str) -> QWidget:
    out = QWidget()
    out.setProperty("kind", "pane")
    out.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
    vbox(out, *([PaneHead(tr(title))] if title else ()), 1, spacing=-1)
    return out


# --- the application ------------------------------------------------------------------------------

RESTORE = "HGVIZ_RESTORE"  # in the environment: open what was open, whatever the settings say

# s that work in another thread keeps the interpreter when the window wants it. With Python's 5 ms a
# picture that asks for it several times came late while heads were tried.
TURN = 0.0005


def application() -> QApplication:
    """The one QApplication."""
    read_no_sources()
    spare_a_core()
    keep_memory()
    sys.setswitchinterval(TURN)
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(["hgviz"])
    app.setApplicationName("hgviz")
    app.setApplicationVersion(__version__)
    app.setDesktopFileName("hgviz")
    return app


def read_no_sources() -> None:
    """Have PySide6 import modules without a look into their source.

    It reads the file of every module that is imported, of torch's two thousand as well, to see
    whether `from __feature__ import ...` could matter in it; hgviz never says that. A fifth of what
    importing the program takes, and of what torch takes in it, went there.
    """
    feature: Any = sys.modules.get("shibokensupport.feature")
    if hasattr(feature, "_mod_uses_pyside"):  # no public way; another release may have none
        feature._mod_uses_pyside = frozenset().__contains__  # of no module


def spare_a_core() -> None:
    """Leave a core to the window, and let idle threads of torch and numpy sleep.

    Read by their thread pools when they are loaded, which is after this. With every core taken,
    threads that spin while they wait hold up the window, and each other: on two busy cores a
    capture of 136 bytes took 4 s with two threads and 0.2 s with one.
    """
    spare = max(1, (os.cpu_count() or 2) - 1)
    os.environ.setdefault("OMP_NUM_THREADS", str(spare))
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def keep_memory() -> None:
    """Have glibc hold on to what is freed, up to 128 MB, and keep it in one place.

    What a picture is put together in is freed after every frame. Handing it to the system and
    asking for it again, page by page, took longer than the picture itself: 12 ms against 4. Heaps
    of their own for each of the many threads keep gaps that no other thread fills: 200 MB after
    5,000 deeds in 50 windows.
    """
    if sys.platform == "linux":
        import ctypes

        # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX
        trim, own_pages, arenas = -1, -3, -8
        with suppress(OSError, AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(trim, 128 << 20)
            mallopt(own_pages, 32 << 20)
            mallopt(arenas, 2)
