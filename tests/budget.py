"""How large the house is beside what it is to be: modules, lines, circles of imports, words.

A report of `make lint`, not a check: the limits are for the end of the rebuilding.
"""

import re
import subprocess
from pathlib import Path

import grimp
import networkx

ROOT = Path(__file__).parents[1]
LARGEST = 1200  # lines of a module
GENERATED = ("commands", "fields", "keys", "models")  # pages of docs/reference


def lines(files: list[Path]) -> int:
    """Lines of some files."""
    return sum(len(one.read_text("utf-8").splitlines()) for one in files)


def is_counted(path: Path) -> bool:
    """Whether a file counts as a module: an __init__.py does from 41 lines on."""
    return path.name != "__init__.py" or lines([path]) > 40


def circles() -> int:
    """Circles of modules that import each other, also through functions."""
    graph = grimp.build_graph("hgviz")
    arrows = [(a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a)]
    knots = networkx.strongly_connected_components(networkx.DiGraph(arrows))
    return sum(len(one) > 1 for one in knots)


def main() -> None:
    """Print a row for each part: now, aim and limit."""
    every = [one for one in sorted((ROOT / "hgviz").rglob("*.py")) if is_counted(one)]
    window = [one for one in every if {"gui", "session"} & set(one.parts)]
    rest = [one for one in every if one not in window]
    tests = sorted((ROOT / "tests").rglob("*.py"))
    made = [ROOT / f"docs/reference/{name}.md" for name in GENERATED]
    pages = [one for one in (ROOT / "docs").rglob("*.md") if one not in made]
    prose = (re.sub(r"(?ms)^ *```.*?^ *```|^    .*?$", "", one.read_text("utf-8")) for one in pages)
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    rows = (
        ("modules outside gui and session", len(rest), 66, 72),
        ("their lines", lines(rest), 28_000, 32_500),
        ("modules of gui and session", len(window), 47, 52),
        ("their lines", lines(window), 24_000, 27_500),
        ("files of tests", len(tests), 75, 100),
        ("their lines", lines(tests), 18_000, 22_000),
        ("words of the guide", sum(len(one.split()) for one in prose), 25_000, 28_000),
        ("tracked files", len(tracked.splitlines()), 450, 600),
        ("circles of imports", circles(), 0, 0),
        (f"modules over {LARGEST:,} lines", sum(lines([one]) > LARGEST for one in every), 0, 0),
    )
    print(f"{'':32}{'now':>10}{'aim':>10}{'limit':>10}")
    for name, now, aim, limit in rows:
        print(f"{name:32}{now:10,}{aim:10,}{limit:10,}{'' if now <= limit else '   over'}")


if __name__ == "__main__":
    main()
