"""What the actions of the Help menu do: one method for each row of ACTIONS, by the same name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from hgviz.gui import dialogs
from hgviz.gui.helping import log as logged
from hgviz.gui.helping.welcome import Band, Trying, Welcome
from hgviz.gui.language import tr

if TYPE_CHECKING:
    from hgviz.gui.capturing import Capturing
    from hgviz.gui.compare.comparing import Comparing
    from hgviz.gui.views.base import View
    from hgviz.gui.window import Window
    from hgviz.session import Session


class HelpCommands:
    """Says what is on screen, for a window."""

    window: Window
    session: Session
    capturing: Capturing
    comparing: Comparing
    say: Callable[[str], None]
    run: Callable[[str], None]
    open_path: Callable[[str], None]
    show_error: Callable[[BaseException], None]
    _keep: Callable[..., Any]
    _pane: Callable[[], View | None]

    def welcome(self) -> None:
        """The three things to try."""
        dialog = Welcome(self.window)
        dialog.chosen.connect(self.try_out)
        dialog.open()

    def greet(self) -> None:
        """Have the things to try above the pictures until they are put away."""
        band = Band()
        band.chosen.connect(self.try_out)
        band.dropped.connect(partial(self._greeted, band))
        self.window.put_above(band)
        band.show()

    def _greeted(self, band: Band) -> None:
        band.hide()
        band.deleteLater()
        self._keep(welcomed=True)

    def try_out(self, name: str) -> None:
        """Do one of the three things."""
        trying = Trying(
            self.session, self.capturing, self.comparing, self.run, self.open_path, self.show_error
        )
        trying.start(name)

    def explain(self) -> None:
        """What the pane at hand shows, and how to read it."""
        from hgviz.gui.helping.explaining import Explanation, find

        view = self._pane()
        topic = view.topic if view is not None else "welcome"
        if find(topic) is None:
            self.pages()
        else:
            Explanation(self.window, topic).open()

    def pages(self) -> None:
        """All pages of help."""
        from hgviz.gui.helping.explaining import Explanation, topics

        Explanation(self.window, topics()[0], listed=True).open()

    def guide(self) -> None:
        """The guide, which says everything from the start; without it the pages of help."""
        from hgviz.gui.helping.explaining import GUIDE, Explanation, find, topics

        there = find(GUIDE) is not None
        Explanation(self.window, GUIDE if there else topics()[0], listed=True).open()

    def shortcuts(self) -> None:
        """The sheet of keys."""
        from hgviz.gui.helping.keys import ShortcutSheet

        ShortcutSheet(self.window).open()

    def log(self) -> None:
        """Show the folder of the log, or say where it is."""
        folder = logged.file().parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
            shown = QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))
        except OSError:
            shown = False
        words = "The log is in {folder}" if shown else "Look for the log in {folder}"
        self.say(tr(words, folder=folder))

    def about(self) -> None:
        """What this is."""
        dialogs.About(self.window).open()
