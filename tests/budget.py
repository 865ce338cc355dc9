"""How large the house is beside what it is to be: modules, lines, circles of imports, words.

A report of `make lint`, not a check: the limits are for the end of the rebuilding. With packages or
modules of hgviz as arguments it prints their public names and what their docstrings begin with, to
be read by somebody who did not write them; `make names` those of the top level.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
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


def public(body: list[ast.stmt], before: str = "") -> Iterator[str]:
    """A line for each public class, method and function."""
    for one in body:
        is_named = isinstance(one, ast.ClassDef | ast.FunctionDef)
        if not is_named or one.name.startswith("_"):
            continue
        arguments = ""
        if isinstance(one, ast.FunctionDef):
            names = [argument.arg for argument in (*one.args.posonlyargs, *one.args.args,
                     *one.args.kwonlyargs) if argument.arg != "self"]  # fmt: skip
            arguments = f"({', '.join(names)})"
        said = (ast.get_docstring(one) or "").partition("\n\n")[0].replace("\n", " ")
        yield f"  {before}{one.name}{arguments}: {said}"
        if isinstance(one, ast.ClassDef):
            yield from public(one.body, f"{one.name}.")


def print_names(part: str) -> None:
    """Print the public names of a package, of a module, or of "." for those at the top level."""
    place = ROOT / "hgviz" / part.replace(".", "/").strip("/")
    files = place.glob("*.py") if part == "." else place.rglob("*.py")
    for path in sorted(files) if place.is_dir() else [place.with_suffix(".py")]:
        tree = ast.parse(path.read_text("utf-8"))
        said = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
        print(f"{path.relative_to(ROOT)}: {said}", *public(tree.body), "", sep="\n")


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
    for part in sys.argv[1:]:
        print_names(part)
    if len(sys.argv) == 1:
        main()
