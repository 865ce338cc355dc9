"""The words of the window, in English or in the language of the settings.

Every text that people read in the window goes through `tr`. English is the source; translations are
edited in Qt Linguist (resources/translations/*.ts) and compiled by the build (*.qm). What the core
says, such as errors with the names of files, stays English.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hgviz.files import resource

if TYPE_CHECKING:
    from PySide6.QtCore import QTranslator

CONTEXT = "hgviz"  # of every message in the .ts files

_translator: QTranslator | None = None


def choose(language: str) -> None:
    """Let `tr` translate into a language of the settings; English where there is no translation."""
    global _translator
    from PySide6.QtCore import QLocale, QTranslator

    code = QLocale.system().name()[:2] if language == "auto" else language
    _translator = QTranslator()
    if not _translator.load(str(resource(f"translations/hgviz_{code}.qm"))):
        _translator = None


def tr(text: str, /, **parts: object) -> str:
    """The text in the chosen language, with parts filled into its {names}."""
    if _translator is not None:
        with suppress(UnicodeEncodeError):  # the name of a file that is not valid UTF-8
            text = _translator.translate(CONTEXT, text) or text
    return text.format(**parts) if parts else text
