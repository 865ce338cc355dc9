"""Small faults put into exact code one at a time, and the tests that notice each.

    make mutants                                           every line of mutants.tsv: some minutes
    .venv/bin/python -m tests.mutants.run --only maps/     those of files whose name has this
    .venv/bin/python -m tests.mutants.run --find           and name another test where one is gone

A line of mutants.tsv is, between tabs: file, line as it stands, line with the fault, test.
A line of code is found wherever in hgviz it stands now, so that it may move; a mutant whose line is
nowhere, or at two places, has to be written anew, and one that no test notices is a gap in the
tests.
"""

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("mutants.tsv")
PARTS = ("hgviz", "tests", "resources", "docs", "benchmarks", "pyproject.toml", "constraints.txt",
         "Makefile")  # fmt: skip
PATIENCE = 400  # seconds: a fault that goes round for ever is noticed too


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: where it was first, the line and what it becomes, the test that notices it."""

    file: str
    old: str
    new: str
    test: str


def read() -> list[Mutant]:
    """All of the table."""
    lines = [one for one in TABLE.read_text("utf-8").splitlines() if one and one[0] != "#"]
    return [Mutant(*one.split("\t")) for one in lines]


def place(mutant: Mutant, folder: Path) -> tuple[Path, int] | str:
    """The file and the number of its line; in words why there is none."""
    found = [
        (path, number)
        for path in sorted((folder / "hgviz").rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines())
        if line.strip() == mutant.old
    ]
    if len(found) > 1:  # where it was first, if it is there once
        found = [one for one in found if one[0] == folder / "hgviz" / mutant.file] or found
    return found[0] if len(found) == 1 else f"stands at {len(found)} places"


def tried(mutant: Mutant, folder: Path, tests: list[str]) -> str:
    """The first test that fails, "" for none; in a copy of the tree, which is as before then."""
    at = place(mutant, folder)
    if isinstance(at, str):
        return at
    path, number = at
    before = path.read_text("utf-8")
    lines = before.split("\n")
    indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
    lines[number] = indent + mutant.new
    path.write_text("\n".join(lines), "utf-8")
    call = [sys.executable, "-m", "pytest", "-xq", "--tb=no", "-p", "no:cacheprovider",
            "--timeout=100", *tests]  # fmt: skip
    try:
        done = subprocess.run(
            call, cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return tests[0]
    finally:
        path.write_text(before, "utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", done.stdout, re.MULTILINE)
    if failed:
        return failed[1]
    return "" if done.returncode == 0 else f"pytest ended with {done.returncode}"


def copy(folder: Path) -> Path:
    """What tests need of the tree."""
    skip = shutil.ignore_patterns("__pycache__", "pictures", "studies")
    for name in PARTS:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=skip)
        else:
            shutil.copy(source, folder / name)
    return folder


def main() -> int:
    """Try them two at a time; say what is not noticed any more."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="of files whose name has this")
    parser.add_argument("--find", action="store_true", help="look for another test, and keep it")
    options = parser.parse_args()
    every = read()
    chosen = [one for one in every if options.only in one.file]
    with tempfile.TemporaryDirectory(prefix="mutants-") as home:
        rooms: queue.Queue[Path] = queue.Queue()
        for name in "ab":
            (Path(home) / name).mkdir()
            rooms.put(copy(Path(home) / name))

        def one(mutant: Mutant) -> tuple[Mutant, str]:
            room = rooms.get()
            try:
                found = tried(mutant, room, [mutant.test])
                if options.find and "::" not in found and "places" not in found:
                    folder = mutant.test.partition("::")[0].rpartition("/")[0]
                    found = tried(mutant, room, [folder])
                return mutant, found
            finally:
                rooms.put(room)

        with ThreadPoolExecutor(2) as pool:
            found = dict(pool.map(one, chosen))
    lost = {mutant: why for mutant, why in found.items() if "::" not in why}
    for mutant, why in lost.items():
        print(f"{mutant.file}: {mutant.old}\n    {mutant.new}\n    {why or 'no test notices it'}")
    if options.find:
        text = TABLE.read_text("utf-8")
        for mutant, why in found.items():
            if "::" in why and why != mutant.test:
                old, new = ("\t".join(x) for x in (_row(mutant), _row(replace(mutant, test=why))))
                text = text.replace(old, new)
        TABLE.write_text(text, "utf-8")
    print(f"{len(chosen)} mutants, {len(chosen) - len(lost)} are noticed")
    return 1 if lost else 0


def _row(one: Mutant) -> tuple[str, str, str, str]:
    return one.file, one.old, one.new, one.test


if __name__ == "__main__":
    sys.exit(main())
