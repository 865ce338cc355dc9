"""How large the house is beside what it is to be: modules, lines, circles of imports, words.

A report of `make lint`, not a check: the limits are for the end of the rebuilding.
"""

from __future__ import annotations

import re
from pathlib import Path

import grimp
import networkx

ROOT = Path(__file__).parents[1]
LARGEST = 1200  # lines of a module


def lines(files: list[Path]) -> int:
    """Lines of some files."""
    return sum(len(one.read_text("utf-8").splitlines()) for one in files)


def circles() -> int:
    """Circles of modules that import each other, also through functions."""
    graph = grimp.build_graph("hgviz")
    arrows = [(a, b) for a in graph.modules for b in graph.find_modules_directly_imported_by(a)]
    knots = networkx.strongly_connected_components(networkx.DiGraph(arrows))
    return sum(len(one) > 1 for one in knots)


def main() -> None:
    """Print a row for each part: now, aim and limit."""
    every = sorted((ROOT / "hgviz").rglob("*.py"))
    window = [one for one in every if "gui" in one.parts]
    rest = [one for one in every if "gui" not in one.parts]
    tests = sorted((ROOT / "tests").rglob("*.py"))
    pages = [one for one in (ROOT / "docs").rglob("*.md") if "reference" not in one.parts]
    words = sum(len(re.findall(r"\w+", one.read_text("utf-8"))) for one in pages)
    rows = (
        ("modules outside the window", len(rest), 65, 72),
        ("their lines", lines(rest), 26_000, 33_000),
        ("modules of the window", len(window), 48, 52),
        ("their lines", lines(window), 24_000, 28_000),
        ("files of tests", len(tests), 60, 80),
        ("their lines", lines(tests), 13_000, 18_000),
        ("words of the guide", words, 25_000, 28_000),
        ("circles of imports", circles(), 0, 0),
        (f"modules over {LARGEST:,} lines", sum(lines([one]) > LARGEST for one in every), 0, 0),
    )
    print(f"{'':32}{'now':>10}{'aim':>10}{'limit':>10}")
    for name, now, aim, limit in rows:
        print(f"{name:32}{now:10,}{aim:10,}{limit:10,}{'' if now <= limit else '   over'}")


if __name__ == "__main__":
    main()
