"""The dialogs that ask for a file, in the folder that was used last."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

from hgviz import settings
from hgviz.gui.language import tr
from hgviz.models.formats.readers import ARRAYS, IMAGES, INDEX, SOUNDS, SUFFIXES, VALUES
from hgviz.session.saved import SUFFIX

WEIGHTS = tuple(f"*{one}" for one in (*SUFFIXES, INDEX, ARRAYS))
ENDINGS = ("*.h5", "*.hdf5", f"*{SUFFIX}", "*.toml", "config.json", *WEIGHTS)
FILES = f"Checkpoints, captures, studies and sessions ({' '.join(ENDINGS)});;All files (*)"
CAPTURES = "Captures (*.h5)"
READABLE = {"image": (*IMAGES, VALUES), "audio": (*SOUNDS, VALUES)}  # files of what models read
READ = {  # by what a model reads: what is asked for where that is no text, and which files
    "text": ("Choose a file of ids", "Token ids (*.json);;All files (*)"),
    "image": ("Choose an image", "Images ({endings});;All files (*)"),
    "audio": ("Choose a sound", "Sounds ({endings});;All files (*)"),
}
TEXTS = "Texts (*.txt *.tsv *.csv *.jsonl);;All files (*)"


def ask_for(
    parent: QWidget,
    title: str,
    mode: QFileDialog.FileMode,
    chosen: Callable[[str], None],
    kinds: str = "",
) -> None:
    """Ask for a checkpoint or a capture, a file or a folder; kinds: what files are offered, ""
    for all that can be opened."""
    dialog = QFileDialog(parent, title, settings.load().folder, kinds or tr(FILES))
    dialog.setFileMode(mode)
    _open(dialog, chosen)


def ask_where(
    parent: QWidget, title: str, kinds: str, name: str, chosen: Callable[[str], None]
) -> None:
    """Ask where to write, from a suggested name whose ending is added where none is given."""
    dialog = QFileDialog(parent, title, settings.load().folder, kinds)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(name.rpartition(".")[2])
    dialog.selectFile("".join(one if one.isalnum() or one in "-_." else "-" for one in name))
    _open(dialog, chosen)


def _open(dialog: QFileDialog, chosen: Callable[[str], None]) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setLabelText(QFileDialog.DialogLabel.LookIn, tr("Look in:"))  # Qt lacks these two
    dialog.setLabelText(QFileDialog.DialogLabel.FileType, tr("Files of type:"))
    dialog.fileSelected.connect(chosen)
    # not every window manager gives the keyboard back to where it was
    dialog.finished.connect(dialog.parentWidget().activateWindow)
    dialog.open()
