"""What the actions do that keep something between two runs: captures, sessions, opened files."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz import settings, tasks
from hgviz.core import Capture, HeadId, HgvizError, replace
from hgviz.gui import opening
from hgviz.gui.asking import CAPTURES, ask_where
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.keeping.dropping import IDS, TEXTS, planned, sorted_out
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.gui.theme import wants_dark
from hgviz.session.saved import SUFFIX

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.jobs import Working
    from hgviz.gui.keeping.recent import Recent
    from hgviz.gui.prompting import Prompting
    from hgviz.gui.sessions import Sessions
    from hgviz.gui.trials import Pruning
    from hgviz.gui.window import Window
    from hgviz.session import Session


class KeepingCommands:
    """Finds what was done and opened before, for a window."""

    window: Window
    session: Session
    lanes: Lanes
    working: Working
    recent: Recent
    opened_before: dict[str, str]
    sessions: Sessions
    laying: Any
    pruning: Pruning
    prompting: Prompting
    run: Callable[[str], None]
    drop: Callable[[str], None]
    say: Callable[[str], None]
    open_path: Callable[[str], None]
    use_data: Callable[[str], None]
    _keep: Callable[..., None]
    _remember: Callable[[str], None]
    _looked: Callable[[Any], None]
    _not_opened: Callable[[BaseException], None]

    # --- the palette ------------------------------------------------------------------------------

    def find(self) -> None:
        """The command palette."""
        from hgviz.gui.palette import Finder

        self.recent.look()
        finder = Finder(self.window, self.session, settings.load().used)
        finder.chosen.connect(self._run_found)
        finder.head_chosen.connect(self._go_to)
        finder.path_chosen.connect(self.open_recent)
        finder.open()

    def _run_found(self, name: str) -> None:
        self._keep(used=settings.newest(settings.load().used, name))
        self.run(name)

    def _go_to(self, head: HeadId) -> None:
        self.session.put(mode="inspect")
        self.session.select(layer=head.layer, head=head.head)

    # --- files that were opened last --------------------------------------------------------------

    def open_recent(self, path: str) -> None:
        """Open a file of those opened last; one that has gone can be taken off the list."""
        title = f"Opening {name_of(path)}"
        failed = partial(self._not_there, path)
        task = opening.look(path)
        self.working.start(self.lanes.files, "open", title, task, self._looked, failed)

    def clear_recent(self) -> None:
        """Forget which files were opened."""
        self.recent.clear()

    def _not_there(self, path: str, error: BaseException) -> None:
        self.recent.look()
        if not isinstance(error, HgvizError) or os.path.lexists(path):
            self._not_opened(error)
            return
        said = HgvizError(
            f"{name_of(path)} is not there any more",
            f"It was at {path}, and was moved or deleted, or its disk is not connected",
            "Remove it from the files opened last, or open it where it is now",
        )
        dialog = ErrorDialog(self.window, said, ("remove", tr("Remove from the list")))
        dialog.asked.connect(partial(self._forget, path))
        dialog.open()

    def _forget(self, path: str, _: str = "") -> None:
        self.recent.remove(path)

    # --- preferences ------------------------------------------------------------------------------

    def preferences(self) -> None:
        """What is kept of how hgviz looks and works; a change acts at once."""
        from hgviz.gui.keeping.preferences import Preferences

        dialog = Preferences(self.window)
        dialog.changed.connect(self._prefer)
        dialog.open()

    def _prefer(self, name: str, value: Any) -> None:
        self._keep(**{name: value})
        if name == "theme":
            self.session.put(dark=wants_dark(value))
        elif name == "side":
            self.laying.page.put_docks(str(value))
        elif name in ("palette", "scale"):
            self.session.put(display=replace(self.session.display, **{name: value}))

    # --- jobs, and closing ------------------------------------------------------------------------

    def jobs(self) -> None:
        """List all jobs over the status bar."""
        from hgviz.gui.jobchip import JobsPopup

        popup = JobsPopup(self.window)
        popup.dropped.connect(self.drop)

        def show(name: str) -> None:
            if name == "work":
                popup.show_work(self.session.work)

        self.session.changed.connect(show)
        popup.finished.connect(lambda: self.session.changed.disconnect(show))
        show("work")
        popup.show()

    def may_close(self, closing: Callable[[], None]) -> bool:
        """Whether the window may close at once; else somebody is asked, and closing does it."""
        from hgviz.gui.keeping.closing import ClosingDialog, losses

        session = self.session
        lost = losses(session, self.working, settings.load().restore)
        if lost:
            unsaved = session.study is not None and session.unsaved and bool(session.score)
            dialog = ClosingDialog(self.window, lost, unsaved)
            dialog.confirmed.connect(closing)
            dialog.save_wanted.connect(partial(self.run, "save_study"))
            dialog.open()
        return not lost

    # --- the layout -------------------------------------------------------------------------------

    def lay(self, laying: Any) -> None:
        """From now on, lay out through this."""
        self.laying = laying
        self.sessions.layout, self.sessions.lay_out = laying.layout, laying.lay_out

    def docks(self) -> None:
        """Hide the docks, or show them again."""
        self._keep(side=self.laying.turn())

    def show_docks(self) -> None:
        """Show the docks where they are hidden."""
        if self.laying.page.side == "hidden":
            self.docks()

    def reset_layout(self) -> None:
        """All panes and docks where they were at first."""
        self.laying.reset()
        self._keep(side=self.laying.page.side)

    # --- files that are dropped -------------------------------------------------------------------

    def take(self, paths: list[str]) -> None:
        """See what was dropped, and do what it means."""
        if len(paths) == 1 and not paths[0].lower().endswith((*TEXTS, IDS)):
            self.open_path(paths[0])
            return
        title = f"Looking at {name_of(paths[0])}"
        self.working.start(self.lanes.files, "open", title, sorted_out(paths), self._sorted_out)

    def _sorted_out(self, found: list[Any]) -> None:
        plan = planned(found, bool(self.session.checkpoint), self.session.mode)
        file = plan.paths.get("file", "")
        if plan.deed == "together":
            self.sessions.open_together(plan.paths, plan.page)
        elif plan.deed == "open":
            self.open_path(file)
        elif plan.deed == "data":
            self.use_data(file)
        elif plan.deed == "corpus":
            self.prompting.keep_corpus(file)
        elif plan.deed == "ids":
            self.prompting.capture_ids(file)
        if plan.said:
            self.say(plan.said)

    # --- sessions ---------------------------------------------------------------------------------

    def save(self) -> None:
        """Ask where, and write the capture."""
        name = f"{self.session.capture.spec.name or 'capture'}.h5"
        ask_where(self.window, tr("Save capture"), tr(CAPTURES), name,
                  partial(self._save, self.session.capture))  # fmt: skip

    def save_beside(self) -> None:
        """Ask where, and write B."""
        name = f"{self.session.beside.spec.name or 'capture'}-B.h5"
        where = partial(self._save, self.session.beside)  # it may go meanwhile
        ask_where(self.window, tr("Save B"), tr(CAPTURES), name, where)

    def _save(self, capture: Capture, path: str) -> None:
        self._remember(path)
        task = tasks.save(capture, path, force=True)
        title = f"Saving {Path(path).name}"
        self.working.start(
            self.lanes.files, f"save {path}", title, task, partial(self._saved, capture),
            lasting=True,
        )  # fmt: skip

    def _saved(self, capture: Capture, path: str) -> None:
        if not capture.items:  # of many texts one was written: the others stay where they are
            self.session.lies_at(capture, path)
        self.opened_before[path] = name_of(path)
        self.say(tr("Saved {path}", path=path))

    def save_session(self) -> None:
        """Write what is open to the file of the session at hand; ask where there is none."""
        if self.sessions.file:
            self.sessions.save(self.sessions.file)
        else:
            self.save_session_as()

    def save_session_as(self) -> None:
        """Ask where, and write what is open as a session."""
        name = Path(self.sessions.file).name
        spec = self.session.spec
        name = name or f"{(spec.name if spec else '') or 'session'}{SUFFIX}"
        kinds = tr("Sessions (*{ending})", ending=SUFFIX)
        ask_where(self.window, tr("Save session"), kinds, name, self._save_session)

    def _save_session(self, path: str) -> None:
        self._remember(path)
        self.sessions.save(path)


__all__ = ["KeepingCommands"]
