"""Captures killed at random moments, two hundred of them: how many open, how many are gone on with.

What is tried, and what counts as wrong, is in tests/soak/killing.py.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from table import line

COUNT = 200


def main():
    """Print what became of them."""
    if not hasattr(os, "fork"):
        print("skipped: processes fork on POSIX systems")
        return
    count = int(sys.argv[1]) if sys.argv[1:] else COUNT
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "tests.soak.killing", folder, "1", str(count)],
            check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    tally, wrong = found["tally"], found["wrong"]
    opened = sum(tally.get(one, 0) for one in ("whole", "in part", "nothing yet"))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    line(f"opened of {count} killed captures", str(opened), f"at least {count}")
    line("layers lost, or files other than uninterrupted ones", str(len(wrong)), "0")


if __name__ == "__main__":
    main()
