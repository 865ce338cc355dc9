"""Errors and steps from outside the window are whole sentences of the window's language."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

import hgviz
from hgviz import tasks
from hgviz.core import HgvizError, finish, heads_named
from hgviz.gui import language
from hgviz.gui.language import tr
from hgviz.models import open_model
from hgviz.store import open_capture
from tests.gui.messages import messages, numbered, outside, untranslated

PACKAGE = Path(hgviz.__file__).parent
KOREAN = language.catalogue("ko")


def test_every_message_from_outside_the_window_has_a_translation():
    lacking = [one for part in outside(PACKAGE) for one in untranslated(part)]
    assert lacking == []


def test_messages_are_found_however_they_are_put_together(tmp_path):
    (tmp_path / "one.py").write_text(
        'WHY = "it is {0}"\n'
        'def _wrong(name, why):\n    return HgvizError(f"{name} fails", why)\n'
        'def f(n):\n    do = "Go on" if n else f"Take {n} of " + name\n'
        "    raise HgvizError(f\"{n} head{'s' * (n > 1)} fail\", WHY.format(n), do)\n"
        '    raise _wrong(n, "it is none")\n    yield Step(1, 2, "going")\n'
    )
    found = set(messages(tmp_path))
    assert found == {
        "{0} fails", "{0} head fail", "{0} heads fail", "it is {0}", "Go on", "Take {0} of {1}",
        "it is none", "going",
    }  # fmt: skip
    assert numbered("a \x00 {b}") == "a {0} {{b}}" and numbered("a {b}") == "a {b}"


def filled(key):
    """A message of a key, and what its translation says with the same in it."""
    parts = [how for _, name, how, _ in Formatter().parse(key) if name is not None]
    given = [f"{70 + at}" if how == "d" else f"x{at}.y" for at, how in enumerate(parts)]
    whole = re.sub(r"\{(\d+):d\}", r"{\1}", key).format(*given)
    return whole, re.sub(r"\{(\d+):tr\}", r"{\1}", KOREAN[key]).format(*given)


def test_no_message_is_taken_for_another(korean):
    told = {
        one: (tr(whole), said)
        for one in (key for key in KOREAN if "{0" in key)
        for whole, said in [filled(one)]
        if tr(whole) != said
    }
    # of two keys that fit one message the more telling is taken, which says the same of it
    assert not told


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: open_model("/nowhere/at-all"),
        lambda: open_capture("/nowhere/at-all.h5"),
        lambda: heads_named("a.b", ()),
        lambda: heads_named("9.9", ()),
        lambda: finish(tasks.load("/nowhere/at-all")),
    ],
)
def test_what_is_raised_is_said_in_korean(korean, wrong):
    with pytest.raises(HgvizError) as caught:
        wrong()
    said = [tr(one) for one in caught.value.lines]
    assert not korean and all(re.search("[가-힣]", one) for one in said)
    assert all(one.endswith(".") and not one.endswith("..") for one in said)
