"""Whatever is done at the window, in whatever order, nothing breaks, stays behind or grows."""

import os
import subprocess
import sys

import pytest
from PySide6.QtGui import QDesktopServices

from hgviz.gui.actions import ACTIONS
from hgviz.gui.window import application
from tests.soak.monkey import Monkey, let_loose
from tests.soak.watching import Census, watched

SEED = int(os.environ.get("MONKEY_SEED", 1))  # that of a failure, to see it again
FEW, MANY, EACH = 60, int(os.environ.get("MONKEY_STEPS", 5000)), 500
OF_MODULE = 150  # objects that a module has which is imported late, and stays
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
def test_fifty_windows_with_charts_open_and_close_and_the_program_ends_well():
    code = (
        "import gc, sys, weakref\n"
        "from PySide6.QtCore import QCoreApplication, QEvent\n"
        "from PySide6.QtWidgets import QApplication\n"
        "from hgviz.gui.sources import FIRST\n"
        "from hgviz.gui.selftest import opened\n"
        "from hgviz.files import resource\n"
        "left = []\n"
        "for number in range(50):\n"
        "    with opened(resource(FIRST), dark=number % 2) as (program, frame):\n"
        "        program.session.put(look='heads')\n"
        "        program.settle()\n"
        "        assert frame.grab().width() and 'pyqtgraph' in sys.modules\n"
        "    del program, frame\n"
        "    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)\n"
        "    gc.collect()\n"
        "    left.append(len(QApplication.allWidgets()))\n"
        "print(left[1], left[-1])\n"
    )
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    first, last = map(int, done.stdout.split())
    assert last <= first


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
    warm, last = found[1], found[-1]
    more = last.objects - warm.objects - OF_MODULE * (last.modules - warm.modules)
    wrong = {
        "actions never done": [one.name for one in ACTIONS if not monkey.done[one.name]],
        "widgets left": [one.widgets for one in found if one.widgets],
        "threads more": max(0, last.threads - warm.threads),
        "files open": [one for one in last.files if one not in warm.files],
        "objects more": max(0, more - warm.objects // 50),
        "bytes more": max(0, last.memory - warm.memory - MOST),
        "files left": [*(home / "tmpdir").iterdir()],
    }
    assert not {name: one for name, one in wrong.items() if one}
