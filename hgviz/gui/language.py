"""The language of the window: English, as it stands in the code, or another from a catalogue.

A catalogue is a folder resources/languages/<code> of TOML files: "what the code says" = "what is
said instead". The code says `tr("Head {head} of {name}", head=..., name=...)`; the translation puts
the same names in its own order. Messages from outside the window (errors, the steps of jobs) are
whole when they get here: their keys have numbers, "{0} cannot be opened", and are matched; {0} in a
translation takes over what stood there, {0:tr} translates that, too. What an error says stands in
them as the code has it, without the capital and the full stop of its line.

Only the standard library: the menus are there before numpy is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from string import Formatter

from hgviz.resources import resource

LANGUAGES = {"en": "English", "ko": "한국어"}

_code = "en"
_spoken: dict[str, str] = {}  # empty for English
# of whole messages: words in all of them, the key, the translation; the most telling first
_shapes: list[tuple[str, str, str]] = []
missed: set[str] | None = None  # a set here collects what has no translation: for tests


def choose(code: str) -> None:
    """Speak a language of LANGUAGES from now on; what is on screen stays as it is."""
    global _code
    _code = code
    _spoken.clear()
    _shapes.clear()
    _matched.cache_clear()
    if code != "en":
        _spoken.update(catalogue(code))
        shaped = sorted((one for one in _spoken if "{0" in one), key=_telling, reverse=True)
        _shapes.extend((max(_words(one), key=len), one, _spoken[one]) for one in shaped)


def code() -> str:
    """The language spoken now."""
    return _code


def catalogue(code: str) -> dict[str, str]:
    """What there is of a language; of a key that stands in two files the last in order."""
    found: dict[str, str] = {}
    for path in sorted(resource(f"languages/{code}").glob("*.toml")):
        found |= _read(path.read_text("utf-8"))
    return found


def _read(text: str) -> dict[str, str]:
    """The entries of one file. The first paint waits for them: lines that hold an entry each are
    read here, in a tenth of the time that tomllib takes."""
    found = {}
    for line in text.split("\n"):
        if entry := _ENTRY.fullmatch(line):
            key, said = (
                json.loads(one) if "\\" in one and one[0] == '"' else one[1:-1]
                for one in entry.groups()
            )
            found[key] = said
        elif line.strip() and not line.startswith("#"):
            import tomllib

            return tomllib.loads(text)
    return found


_STRING = r"""("[^"\\]*(?:\\.[^"\\]*)*"|'[^']*')"""
_ENTRY = re.compile(f"{_STRING} = {_STRING}")


def tr(text: str, /, **parts: object) -> str:
    """The text in the language of the window, {names} in it filled in from parts.

    Without parts nothing is filled in: braces of a whole message are its own.
    """
    if _spoken and text:
        text = _spoken.get(text) or (_missing(text) if parts else _matched(text))
    return text.format(**parts) if parts else text


@lru_cache(4096)
def _matched(text: str) -> str:
    forms = [*_bare(text), (text, "")]
    for one, end in forms:
        if one in _spoken:
            return _spoken[one] + end
    for words, key, said in _shapes:
        for one, end in forms:
            if words in one and (found := _pattern(key).fullmatch(one)):
                return said.format(*map(_Part, found.groups())) + end
    return _missing(text)


def _bare(text: str) -> Iterator[tuple[str, str]]:
    """What the code says of which a line of an error was made: without the full stop, and with a
    small letter."""
    if text.endswith("."):
        words = text[:-1]
        yield words, "."
        yield words[:1].lower() + words[1:], "."


def _missing(text: str) -> str:
    if missed is not None and re.search("[A-Za-z]{2}", text):
        missed.add(text)
    return text


class _Part(str):
    """What stood in a message: {0} is itself, {0:tr} its translation."""

    __slots__ = ()

    def __format__(self, how: str) -> str:
        return tr(str(self)) if how == "tr" else str(self)


@cache
def _pattern(key: str) -> re.Pattern[str]:
    """What a whole message of a key looks like; {0:d} in a key stands for a number alone."""
    parts = []
    for words, name, how, _ in Formatter().parse(key):
        parts.append(re.escape(words))
        if name is not None:
            parts.append(r"([-+−<>]?\d[\d,.]*)" if how == "d" else "(.*?)")
    return re.compile("".join(parts), re.DOTALL)


def _words(key: str) -> list[str]:
    """What stands in every message of a key."""
    return [words for words, *_ in Formatter().parse(key)]


def _telling(key: str) -> int:
    """How many letters of a key stand there in every message of it."""
    return sum(map(len, _words(key)))


__all__ = ["LANGUAGES", "catalogue", "choose", "code", "tr"]
