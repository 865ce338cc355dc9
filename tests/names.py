"""The public names of some modules with the first lines of their docstrings, to be read by somebody
who did not write them.

    make names                                    the modules at the top level
    .venv/bin/python -m tests.names maps models   others: packages or modules of hgviz
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "hgviz"


def modules(part: str) -> list[Path]:
    """The files of a package or module; of "" those at the top level."""
    if not part:
        return sorted(ROOT.glob("*.py"))
    folder = ROOT / part.replace(".", "/")
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def lines(body: list[ast.stmt], before: str = "") -> Iterator[str]:
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
            yield from lines(one.body, f"{one.name}.")


def main() -> None:
    """Print them, module by module."""
    for part in sys.argv[1:] or [""]:
        for path in modules(part):
            tree = ast.parse(path.read_text("utf-8"))
            said = (ast.get_docstring(tree) or "").partition("\n\n")[0].replace("\n", " ")
            print(f"{path.relative_to(ROOT)}: {said}", *lines(tree.body), "", sep="\n")


if __name__ == "__main__":
    main()
