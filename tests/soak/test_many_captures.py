"""A window that opens one capture after another holds no more than it did."""

import sys
import time

import pytest

from tests.soak.monkey import LONGEST, Monkey
from tests.soak.watching import Census, watched

MODES = ("inspect", "follow", "prune", "compare")
LOOKS = ("map", "links", "neurons", "attribution", "across", "heads")
MANY, EACH = 1000, 100
MOST = 50 << 20  # bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells")


def opened(monkey, wrong, turns):
    """Open the captures of the larder by turns, on every page and with every look."""
    session, paths = monkey.program.session, monkey.larder.captures
    for turn in turns:
        lap, at = divmod(turn, len(paths))
        monkey.program.commands.open_path(paths[at])
        monkey.rest(LONGEST)
        session.put(mode=MODES[lap % 4], look=LOOKS[lap // 4 % 6])
        monkey.rest(LONGEST)
        assert not wrong, f"{paths[at]}, {session.mode}, {session.look}: {wrong[0]}"
        assert session.capture.path == paths[at]


def assert_no_more(before, after):
    """A hidden pane may still hold the capture that it showed last, and what it said of it."""
    assert after.threads <= before.threads
    assert len(after.files) <= len(before.files) + 2, sorted(after.files)
    assert after.widgets <= before.widgets + 8


@pytest.fixture
def window(qapp, larder, home):
    one = Monkey(0, larder, home)
    one.begin()
    one.rest(LONGEST)
    yield one
    one.end()


@pytest.mark.timeout(600)
def test_captures_that_are_opened_leave_no_file_open_and_no_widget(window):
    laps = len(window.larder.captures)
    with watched() as wrong:
        opened(window, wrong, range(laps))
        window.program.recovery.keep()  # its thread begins with the first change that is kept
        window.rest(LONGEST)
        before = Census.take()
        opened(window, wrong, range(laps))
        after = Census.take()
    assert_no_more(before, after)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_thousand_captures_take_no_more_memory_than_the_first(window, capsys):
    warm = len(window.larder.captures) * len(MODES) * len(LOOKS)  # everything was shown once
    found = []
    with watched() as wrong:
        opened(window, wrong, range(warm))
        found.append(Census.take())
        began = time.monotonic()
        for first in range(0, MANY, EACH):
            opened(window, wrong, range(first, first + EACH))
            found.append(Census.take())
    with capsys.disabled():
        print(f"\n{MANY:,} captures opened in {time.monotonic() - began:.0f} s, after {warm}")
        for number, one in enumerate(found):
            print(f"{number * EACH:5,}: {one.told}")
    assert max(one.memory for one in found) - found[0].memory < MOST
    assert_no_more(found[0], found[-1])
