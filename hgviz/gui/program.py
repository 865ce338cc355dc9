"""The program behind the frame: session, lanes, pages and commands, put together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from msgspec import structs
from PySide6.QtCore import QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from hgviz import settings
from hgviz.analysis.texts import place
from hgviz.core import Display
from hgviz.gui import opening, theme
from hgviz.gui.actions import RECENT
from hgviz.gui.app import application, wants_dark
from hgviz.gui.bridge import Lanes
from hgviz.gui.commands import Commands
from hgviz.gui.compare.page import ComparePage
from hgviz.gui.jobchip import JobChip
from hgviz.gui.keeping.laying import Laying
from hgviz.gui.keeping.offering import RecentMenu
from hgviz.gui.keeping.sessions import last
from hgviz.gui.pages import EmptyPage, FollowPage, InspectPage
from hgviz.gui.prune.page import PrunePage
from hgviz.gui.status import Status
from hgviz.gui.sweeps.page import SweepPage
from hgviz.gui.sweeps.results import trained_as
from hgviz.gui.sweeps.running import RUN
from hgviz.gui.taskbar import Taskbar
from hgviz.gui.views.base import View
from hgviz.gui.window import Window
from hgviz.gui.working import GOING
from hgviz.resources import resource
from hgviz.session import Session

LONG = 1000  # ms: jobs shorter than this are not listed
IDLE = 1500  # ms after the first picture: torch's import holds the interpreter for a while


class Program:
    """One window at work. `keep` False: no settings are written when it closes."""

    def __init__(self, frame: Window, keep: bool = True) -> None:
        self.frame, self._keep, self._open = frame, keep, True
        self._lasting = False  # whether what is open is to come back
        self._app = application()
        kept = settings.load()
        self.session, self.lanes = Session(), Lanes()
        self.session.put(
            dark=theme.current().dark,
            text=opening.TEXT,
            display=Display(palette=kept.palette, scale=kept.scale),
        )
        self.commands = Commands(frame, self.session, self.lanes)
        with theme.undressed(self._app):
            self.empty, self.inspect, self.follow = EmptyPage(), InspectPage(), FollowPage()
            self.prune, self.compare, self.sweep = PrunePage(), ComparePage(), SweepPage()
            frame.furnish({
                "empty": self.empty, "inspect": self.inspect, "follow": self.follow,
                "prune": self.prune, "compare": self.compare, "sweep": self.sweep,
            })  # fmt: skip
        pages = (self.inspect, self.follow, self.prune, self.compare, self.sweep)
        self.views: tuple[View, ...] = tuple(view for page in pages for view in page.views)
        self.commands.views = self.views
        for view in self.views:
            view.bind(self.session, self.lanes)
            view.asked.connect(partial(self.commands.run_for, view))
        self.empty.asked.connect(self.commands.run)
        self.empty.recent.chosen.connect(self.commands.open_recent)
        self.empty.recent.removed.connect(self.commands.recent.remove)
        menu, look = frame.menus[RECENT], self.commands.recent.look
        self.recent = RecentMenu(menu, self.session, look, self.commands.open_recent)
        for jobs in (self.inspect.jobs, self.inspect.capturing):
            jobs.dropped.connect(self.commands.drop)
        self.prune.join(self.commands)
        self.compare.join(self.commands)
        self.sweep.join(self.commands)
        self.inspect.tabbed.chosen.connect(self._look)
        self.inspect.strip.cut.connect(self.commands.cut_at)
        self.inspect.texts.picked.connect(self.commands.open_item)
        self.inspect.heads.example.connect(self.commands.show_example)
        self.inspect.heads.found.connect(self.commands.take_habits)
        self.inspect.hourglass.shaded.connect(self.commands.shade)
        self.status = Status(frame.chosen_words, frame.made_words, self.session, self.lanes)
        self.chip, self.taskbar = JobChip(), Taskbar()
        frame.statusBar().insertWidget(1, self.chip)
        self.chip.hide()
        self.chip.dropped.connect(self.commands.drop)
        self.chip.pressed.connect(partial(self.commands.run, "jobs"))
        self._listing = QTimer(frame, singleShot=True, interval=LONG)
        self._listing.timeout.connect(self._list_jobs)
        frame.wanted.connect(self.commands.run)
        frame.dropped.connect(self.commands.take)
        frame.toolbar.models.picked.connect(self.commands.open_path)
        frame.resized.connect(self._resized)
        frame.closing.connect(self.close)
        frame.may_close = self._may_close
        self.session.changed.connect(self._heard)
        self._hints = QGuiApplication.styleHints()
        self._hints.colorSchemeChanged.connect(self._system_theme)
        self.laying = Laying(frame, self.inspect)
        self.laying.restore(kept)
        self.commands.lay(self.laying)
        self._resized(frame.width(), frame.height())
        self.empty.recent.show_files(self.session.recent, self.session.gone)
        self._show_state()
        self._show_model()
        frame.show_theme()

    def open_first(self, paths: Sequence[str], go_on: bool = True) -> None:
        """Open the paths of the command line; without any what was open last, and at first, or
        where nobody wants to go on with that, the capture that comes with hgviz."""
        self._lasting = self._keep
        for path in paths:
            self.commands.opened_before[path] = opening.name_of(path)
        if paths:
            self.commands.open_path(paths[0])
        elif go_on and settings.load().restore and last().exists():
            self.commands.sessions.open_last(self._open_sample)
        else:
            self._open_sample()
        QTimer.singleShot(IDLE, self._idle)

    def _open_sample(self) -> None:
        first = resource(opening.FIRST)
        if first.exists():
            self.commands.open_path(str(first))
        else:
            self.commands.open_sample()

    def close(self) -> None:
        """Stop what runs, wait for it, and keep where the window was."""
        if not self._open:
            return
        self._open = False
        if self._keep:
            self._keep_settings()
        if self._lasting:
            self.commands.sessions.keep_last()
        self.frame.hide()
        self._listing.stop()
        self.taskbar.show_part(None)
        self.session.changed.disconnect(self._heard)
        self._hints.colorSchemeChanged.disconnect(self._system_theme)
        self.status.close()
        self.commands.pruning.close()
        self.commands.watching.close()
        self.commands.comparing.close()
        for view in self.views:
            view.unbind()
        self.lanes.close()

    def settle(self) -> None:
        """Ask and draw everything that is on screen, here and now: for pictures and tests."""
        QApplication.processEvents()
        for view in self.views:
            if view.isVisible():
                view.settle()
        self.status.settle()
        QApplication.processEvents()

    # --- inside -----------------------------------------------------------------------------------

    def _heard(self, name: str) -> None:
        if name == "dark":
            theme.apply(self._app, self.session.dark)
            self.frame.show_theme()
        if name == "look":
            self.inspect.tabbed.show_look(self.session.look)
        if name in (
            "capture",
            "spec",
            "model",
            "mode",
            "work",
            "selection",
            "checkpoint",
            "activation",
            "off",
            "history",
            "trial",
            "study",
            "beside",
            "recent",
            "sweep",
            "cell",
        ):
            self._show_state()
        if name in ("recent", "gone"):
            self.recent.fill()
            self.empty.recent.show_files(self.session.recent, self.session.gone)
        if name in (
            "capture",
            "spec",
            "model",
            "checkpoint",
            "activation",
            "study",
            "sweep",
            "mode",
        ):
            self._show_model()

    def _show_state(self) -> None:
        """The right page, the right actions, progress where the map is not there yet."""
        session = self.session
        busy = any(one.state in GOING for one in session.work)
        capture = session.capture
        self.frame.offer_mode("sweep", session.sweep is not None)
        here = session.mode == "sweep" and session.sweep is not None
        nothing = capture is None and session.model is None and session.study is None
        opens = any(one.state in GOING and one.key != RUN for one in session.work)
        if nothing and not opens and not here:
            self.frame.show_mode("empty")
        else:
            self.frame.show_mode(session.mode if here or session.mode != "sweep" else "inspect")
        self.inspect.show_texts(capture is not None and bool(capture.items))
        missing = capture is None or capture.maps[session.selection.layer] is None
        self.inspect.tabbed.show_capturing(missing and session.at_work)
        if not busy:
            self._listing.stop()
            self.inspect.show_jobs(False)
        elif not self._listing.isActive() and not self.inspect.jobs_shown:
            self._listing.start()
        self._show_progress()
        self.frame.show_reasons(session)

    def _show_progress(self) -> None:
        """What runs for longer, in the status bar and the taskbar."""
        runs = [one for one in self.session.work if one.state == "running" and one.total]
        listed = self.inspect.jobs_shown
        if listed:
            self.chip.show_work(self.session.work)
        self.chip.setVisible(listed)
        self.taskbar.show_part(runs[-1].done / runs[-1].total if listed and runs else None)

    def _may_close(self) -> bool:
        return not self._open or self.commands.may_close(self._close_now)

    def _close_now(self) -> None:
        """Somebody was asked."""
        self.close()
        self.frame.close()

    def _look(self, name: str) -> None:
        self.session.put(look=name)

    def _list_jobs(self) -> None:
        self.inspect.show_jobs(True)
        self._show_progress()

    def _show_model(self) -> None:
        spec, sweep = self.session.spec, self.session.sweep
        name = spec.name if spec else "No model"
        name = trained_as(sweep, self.session.checkpoint) or name
        size = parameters(spec.parameters) if spec else ""
        if self.session.study and not (self.session.capture or self.session.checkpoint):
            size = "study"
        at = place(self.session.capture) if self.session.capture else None
        which = f"text {at[0]:,} of {at[1]:,}" if at else ""
        parts = (name, which, "hgviz") if spec else ("hgviz",)
        if sweep is not None and self.session.mode == "sweep":
            parts = (sweep.title, "hgviz")
        self.frame.setWindowTitle(" · ".join(filter(None, parts)))
        shown = self.session.capture or self.session.study
        here = self.session.checkpoint or (shown.path if shown else "")
        self.frame.toolbar.models.show_model(name, size, self.commands.opened_before, here)

    def _resized(self, width: int, height: int) -> None:
        self.inspect.respond(width, height)
        self.follow.respond(width, height)
        self.prune.respond(width, height)
        self.compare.respond(width, height)
        self.sweep.respond(width, height)

    def _system_theme(self) -> None:
        """The system went light or dark: so does the window, unless somebody chose otherwise."""
        if settings.load().theme == "auto":
            self.session.put(dark=wants_dark("auto"))

    def _idle(self) -> None:
        """Load torch once nothing else happens."""
        if not self._open:
            return
        if self.lanes.files.jobs or self.lanes.engine.jobs:
            QTimer.singleShot(IDLE, self._idle)
        else:
            self.commands.capturing.warm_up()

    def _keep_settings(self) -> None:
        kept = structs.replace(
            settings.load(),
            **self.laying.kept(),
            palette=self.session.display.palette,
            scale=self.session.display.scale,
        )
        with suppress(OSError):  # the window goes anyway; nobody is there to read about it
            settings.save(kept)


def parameters(count: int) -> str:
    """6.3 M, 110 M, 1.2 B, 48 k; nothing for a size nobody knows."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            found = count / size
            return f"{found:.1f} {letter}" if found < 100 else f"{found:.0f} {letter}"
    return ""
