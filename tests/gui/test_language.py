"""Both languages are complete, and a translation says what the code says."""

import tomllib
from pathlib import Path
from string import Formatter

import pytest

import hgviz
from hgviz.gui import language
from hgviz.gui.language import tr
from hgviz.resources import resource
from tests.gui.speaking import untranslated

ROOT = Path(hgviz.__file__).parent
KOREAN = language.catalogue("ko")


@pytest.fixture(autouse=True)
def english():
    """Leave English behind."""
    yield
    language.choose("en")


def test_every_phrase_of_the_window_has_a_translation():
    """No file of hgviz/gui says what the catalogue does not know."""
    assert untranslated(ROOT / "gui") == []


def names(text):
    """What is filled into a text."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("key", sorted(KOREAN))
def test_a_translation_fills_in_what_the_key_does(key):
    """Nothing is asked for that the key does not give, and the words can be filled in."""
    assert names(KOREAN[key]) <= names(key)


def test_entries_are_read_as_toml_reads_them():
    """Line by line, which is faster; what is written otherwise is left to tomllib."""
    for path in resource("languages/ko").glob("*.toml"):
        assert language._read(path.read_text("utf-8")) == tomllib.loads(path.read_text("utf-8"))
    for text in ('"a\\"b" = "\\n\\u00e9"\n', "'a' = 'c\\d'\n", '"a" = """b"""\n'):
        assert language._read(text) == tomllib.loads(text)


def test_a_message_is_matched_and_its_parts_kept():
    """{0} is taken over as it stands, {0:tr} translated; what nobody knows stays."""
    language._spoken.clear()
    language.choose("ko")
    language._shapes.insert(0, (": test", "{0:d} of {1}: test", "{1:tr} {0}"))
    assert tr("3 of Open: test") == "열기 3"
    assert tr("x of Open: test") == "x of Open: test"
    assert tr("Open") == "열기"
    language._spoken["nothing here"] = "아무것도 없습니다"
    assert tr("Nothing here.") == "아무것도 없습니다."  # a line of an error
    language.choose("en")
    assert tr("Open") == "Open"
    assert tr("{n} of {m}", n=1, m=2) == "1 of 2"
    assert tr("{not} filled") == "{not} filled"
