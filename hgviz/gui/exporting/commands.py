"""What the actions about pictures do: one method for each row of ACTIONS, by the same name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from hgviz import settings
from hgviz.core import replace
from hgviz.gui.asking import ask_where
from hgviz.gui.language import tr

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.export import ExportDialog, Wish
    from hgviz.gui.jobs import Working
    from hgviz.gui.view import View
    from hgviz.gui.window import Window
    from hgviz.session import Session


OTHERS = "What else is on screen and open can be drawn:"


class ExportCommands:
    """Exports and copies what the pane at hand shows, for a window."""

    window: Window
    session: Session
    lanes: Lanes
    working: Working
    views: tuple[View, ...]
    at_hand: View | None
    say: Callable[[str], None]
    _keep: Callable[..., None]
    _remember: Callable[[str], None]

    def export(self) -> None:
        """Show the figure of the pane at hand before it is written, and ask where to."""
        from hgviz.gui.export import ExportDialog

        view = self._pane()
        others = [one for one in self._visible if one is not view]
        shown = [one.figure(self.session) for one in (*([view] if view else []), *others)]
        kept = settings.load()
        said = ""
        if view is not None and shown[0] is None:
            said = f"{_lacking(view)} {tr(OTHERS)}"
        elif view is not None and view.zoomed:
            words = "{name} is zoomed in on screen; its figure shows all of it."
            said = tr(words, name=tr(view.title))
        dialog = ExportDialog(
            self.window, self.session, self.lanes, [one for one in shown if one], said,
            (kept.figure_width, kept.figure_format),
        )  # fmt: skip
        dialog.chosen.connect(partial(self._export, dialog))
        dialog.kept.connect(self._keep_figure)
        dialog.open()

    def copy(self) -> None:
        """Copy the pane at hand as a picture."""
        view = self._pane()
        if view is not None:
            view.copy()
            self.say(tr("Copied a picture: {title}", title=tr(view.title)))

    def copy_table(self) -> None:
        """Copy the values of the pane at hand, cells apart by tabs: spreadsheets take that."""
        view = self._pane()
        table = view.as_table() if view is not None and view.drawn else None
        if view is None or table is None:
            self.say(tr("This pane has no values to copy as a table"))
            return
        QGuiApplication.clipboard().setText("\n".join("\t".join(row) for row in table))
        self.say(tr("Copied a table of {rows:,} rows: {title}", rows=len(table) - 1,
                    title=tr(view.title)))  # fmt: skip

    def copy_command(self) -> None:
        """Copy the command that draws the figure of the pane at hand."""
        from hgviz.gui.exporting import saying
        from hgviz.gui.exporting.offers import command_for, file_name, offer_of

        view = self._pane()
        found = view.figure(self.session) if view is not None else None
        if view is None or found is None:
            self.say(_lacking(view) if view is not None else tr("Nothing to draw is on screen"))
            return
        kept = settings.load()
        width = "neurips" if saying.wrong_width(kept.figure_width) else kept.figure_width
        spec = replace(found, width=width, format=kept.figure_format)
        offer = offer_of(self.session, spec)
        command = command_for(offer.of, spec, file_name(self.session, spec))
        QGuiApplication.clipboard().setText(command.words)
        self.say(
            saying.copied(command)
            if command.lacks
            else tr("Copied: {command}", command=command.words)
        )

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _visible(self) -> list[View]:
        """The panes on screen; the picture in the middle of a page comes first."""
        found = [one for one in self.views if one.isVisible()]
        return sorted(found, key=lambda one: not one.name)

    def _pane(self) -> View | None:
        """The pane at hand: the one that asks, or has the keyboard, or stands in the middle."""
        visible = self._visible
        if self.at_hand is not None:
            return self.at_hand
        here = QApplication.focusWidget()
        inside = (one for one in visible if here and (one is here or one.isAncestorOf(here)))
        return next(inside, visible[0] if visible else None)

    def _export(self, dialog: ExportDialog, wish: Wish) -> None:
        """Ask where to; the dialog goes once that is known, and is there as it was until then."""

        def chosen(path: str) -> None:
            dialog.finish()
            self._export_to(wish, path)

        kinds = tr("Figures (*.{ending})", ending=wish.spec.format)
        ask_where(self.window, tr("Export figure"), kinds, wish.name, chosen)

    def _export_to(self, wish: Wish, typed: str) -> None:
        from hgviz.gui.exporting.places import with_ending

        self._remember(typed)
        path, form = with_ending(typed, wish.spec.format)
        spec = replace(wish.spec, format=form)
        task = wish.drafts.export(spec, wish.of, path, wish.numbers, path != typed)
        self.working.start(
            self.lanes.files, f"export {path}", tr("Export {name}", name=Path(path).name), task,
            partial(self._exported, wish.numbers), lasting=True,
        )  # fmt: skip

    def _exported(self, numbers: bool, path: str) -> None:
        from hgviz.gui.exporting import saying

        self.say(saying.written(path, numbers))

    def _keep_figure(self, width: str, form: str) -> None:
        self._keep(figure_width=width, figure_format=form)


def _lacking(view: View) -> str:
    """What is said where the pane at hand cannot be drawn, never another one in its place."""
    title = tr(view.title or "This pane")
    said = tr("{title} has no figure of its own.", title=title)
    return f"{said} {tr(view.figureless)}." if view.figureless else said


__all__ = ["ExportCommands"]
