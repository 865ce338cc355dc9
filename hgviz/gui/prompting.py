"""What the model is to read: a text, ids, a file of many texts, and what it writes itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog

from hgviz.core import ModelSpec
from hgviz.gui.asking import CAPTURES, READ, READABLE, TEXTS, ask_for, ask_where
from hgviz.gui.language import tr
from hgviz.gui.writing import WriteDialog, Writing

if TYPE_CHECKING:
    from hgviz.gui.sources import Capturing
    from hgviz.gui.window import Window
    from hgviz.session import Session

FILE = QFileDialog.FileMode.ExistingFile


class Prompting:
    """Asks what to capture, and has it captured. remember: keeps the folder of a path."""

    def __init__(
        self,
        window: Window,
        session: Session,
        capturing: Capturing,
        run: Callable[[str], None],
        answered: Callable[..., Callable[..., None]],
        remember: Callable[[str], None],
    ) -> None:
        self.window, self.session, self.capturing = window, session, capturing
        self.run, self.answered, self.remember = run, answered, remember
        self.writing = Writing()

    @property
    def _spec(self) -> ModelSpec | None:
        """Of the model, where one is open, else of the capture."""
        return self.session.model.spec if self.session.model else self.session.spec

    def edit(self) -> None:
        """Edit the text, or both; a model that reads none is asked for ids."""
        from hgviz.gui.composing import Reads, TextDialog

        session, spec = self.session, self._spec
        other = spec is not None and spec.modality != "text"
        if other or not Reads.of(session.model).text:
            self.ids()
            return
        dialog = TextDialog(self.window, session.text, spec, session.second, session.model)
        dialog.chosen.connect(self.capture_text)
        dialog.file_wanted.connect(self.ids)
        dialog.open()

    def capture_text(self, text: str, second: str = "") -> None:
        """Capture these texts."""
        self.session.put(text=text, second=second, ids="")
        self.run("capture")

    def ids(self) -> None:
        """Ask for a file of ids; of a model of images or sounds for one of these."""
        modality = "text" if self._spec is None else self._spec.modality
        title, kinds = READ[modality]
        endings = " ".join(f"*{one}" for one in READABLE.get(modality, ()))
        kinds = tr(kinds, endings=endings) if endings else tr(kinds)
        ask_for(self.window, tr(title), FILE, self.capture_ids, kinds)

    def capture_ids(self, path: str) -> None:
        """Capture what the ids of a file stand for, an image or a sound."""
        self.remember(path)
        self.session.put(ids=path)
        self.run("capture")

    def corpus(self) -> None:
        """Ask for a file of texts, then where to keep its capture."""
        chosen = self.answered("corpus", self.keep_corpus)
        ask_for(self.window, tr("Choose a file of texts"), FILE, chosen, tr(TEXTS))

    def keep_corpus(self, path: str) -> None:
        """Ask where to keep the capture of a file of texts."""
        self.remember(path)
        name = f"{Path(path).stem or 'texts'}.h5"
        chosen = self.answered("corpus", partial(self.capture_corpus, path))
        ask_where(self.window, tr("Keep the captures in"), tr(CAPTURES), name, chosen)

    def capture_corpus(self, path: str, out: str) -> None:
        """Capture every text of a file into one capture."""
        self.remember(out)
        self.capturing.start_corpus(path, out)

    def write(self) -> None:
        """Ask how much the model shall write, and how."""
        session = self.session
        capture = None if session.stale else session.capture
        unit = session.capture.main.unit if session.capture is not None else "token"
        most = session.spec.max_positions if session.spec is not None else None
        room = None if most is None or capture is None else max(0, most - len(capture.main))
        two = session.spec is not None and session.spec.two_texts
        text = session.second if two else session.text
        dialog = WriteDialog(self.window, text, unit, room, self.writing)
        dialog.chosen.connect(self.answered("write", self.write_so))
        dialog.open()

    def write_so(self, writing: Writing) -> None:
        """Have the model write."""
        self.writing = writing
        self.capturing.start_writing(writing)
