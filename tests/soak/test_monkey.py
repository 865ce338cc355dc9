"""Whatever is done at the window, in whatever order, nothing breaks, stays behind or grows."""

from __future__ import annotations

import os
import sys

import pytest
from PySide6.QtGui import QDesktopServices

from hgviz.gui.actions import ACTIONS
from hgviz.gui.app import application
from tests.soak.monkey import Monkey, let_loose
from tests.soak.watching import Census, watched

SEED = int(os.environ.get("MONKEY_SEED", 1))  # that of a failure, to see it again
FEW, MANY, EACH = 60, int(os.environ.get("MONKEY_STEPS", 5000)), 500
MOST = 150 << 20  # bytes that may be held at the end over those held after a fifth

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts what Linux tells")


@pytest.fixture
def monkey(qapp, larder, home, monkeypatch):
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: True)  # nobody is there to see it
    application()  # with all that it sets, such as how memory is kept
    (home / "out").mkdir()
    return Monkey(SEED, larder, home / "out")


@pytest.mark.timeout(600)
def test_a_monkey_finds_nothing_that_breaks(monkey, home):
    before = Census.take()
    with watched() as wrong:
        (after,) = let_loose(monkey, FEW, wrong)
    assert after.widgets == before.widgets and sorted(after.files) == sorted(before.files)
    assert not [*(home / "tmpdir").iterdir()]


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_five_thousand_steps_break_nothing_and_leave_nothing(monkey, home, capsys):
    with watched() as wrong:
        found = let_loose(monkey, MANY, wrong, EACH)
    with capsys.disabled():
        print(f"\nseed {SEED}: {MANY:,} steps in {monkey.windows} windows")
        for number, one in enumerate(found):
            print(f"{(number + 1) * EACH:6,} steps: {one.told}")
        print(", ".join(f"{count} {name}" for name, count in monkey.kinds.most_common()))
    never = [one.name for one in ACTIONS if not monkey.done[one.name]]
    assert not never, f"never done: {', '.join(never)}"
    warm, last = found[1], found[-1]
    assert {one.widgets for one in found} == {0}
    assert last.threads <= warm.threads
    assert len(last.files) <= len(warm.files), sorted(last.files)
    assert last.objects < 1.02 * warm.objects
    assert last.memory - warm.memory < MOST
    assert not [*(home / "tmpdir").iterdir()]
