"""A capture that is killed, whenever that is, opens and is gone on with to the same file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FEW, MANY = 4, 200

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes fork on POSIX systems")


def killed(folder, count, seed, kind):
    """What became of so many captures; see tests/soak/killing.py."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak.killing", str(folder), str(seed), str(count), kind],
        capture_output=True, text=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("kind", ["text", "corpus"])
def test_some_killed_captures_lose_nothing(tmp_path, kind):
    found = killed(tmp_path, FEW, 0, kind)
    assert not found["wrong"], "\n".join(found["wrong"])


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", ["text", "corpus"])
def test_two_hundred_killed_captures_lose_nothing(tmp_path, capsys, kind):
    found = killed(tmp_path, MANY, 1, kind)
    with capsys.disabled():
        print(f"\n{found['tally']}")
    assert not found["wrong"], "\n".join(found["wrong"])
    tally = found["tally"]
    assert sum(tally.get(one, 0) for one in ("whole", "in part", "nothing yet")) == MANY
