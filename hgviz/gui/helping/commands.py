"""What the actions of the Help menu do: one method for each row of ACTIONS, by the same name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from hgviz.gui import dialogs, opening
from hgviz.gui import log as logged
from hgviz.gui.language import tr
from hgviz.gui.samples import FIRST, SAMPLE
from hgviz.resources import resource
from hgviz.session.other import Other

if TYPE_CHECKING:
    from hgviz.gui.compare_parts.comparing import Comparing
    from hgviz.gui.sources import Capturing
    from hgviz.gui.view import View
    from hgviz.gui.window import Window
    from hgviz.session import Session

SOFTMAX, YMISH = "sample/softmax", "sample/ymish"


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
    _pane: Callable[[], View | None]

    def open_example(self, name: str) -> None:
        """Open one of the examples that come with hgviz: inspect, prune or compare."""
        if name == "inspect":
            first = resource(FIRST)
            self.session.put(mode="inspect")
            self.open_path(str(first if first.exists() else resource(SAMPLE)))
            return
        then = partial(self.run, "bundled_data") if name == "prune" else self._compare_classifiers
        path = str(resource(SOFTMAX))
        self.session.put(text=opening.text_for(path, self.session.text), second="")
        self.capturing.start_again(path, then, self.show_error)

    def _compare_classifiers(self) -> None:
        self.comparing.choose(Other("model", path=str(resource(YMISH))))
        self.session.put(mode="compare")

    def explain(self) -> None:
        """What the pane at hand shows, and how to read it."""
        from hgviz.gui.help import Explanation, find

        view = self._pane()
        topic = view.topic if view is not None else "welcome"
        if find(topic) is None:
            self.pages()
        else:
            Explanation(self.window, topic).open()

    def pages(self) -> None:
        """All pages of help."""
        from hgviz.gui.help import Explanation, topics

        Explanation(self.window, topics()[0], listed=True).open()

    def guide(self) -> None:
        """The guide, which says everything from the start; without it the pages of help."""
        from hgviz.gui.help import GUIDE, Explanation, find, topics

        there = find(GUIDE) is not None
        Explanation(self.window, GUIDE if there else topics()[0], listed=True).open()

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
