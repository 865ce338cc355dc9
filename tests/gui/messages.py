"""What comes from outside the window and is said in it: errors and the steps of jobs.

python -m tests.gui.messages hgviz/store    what has no Korean yet, line by line
"""

import ast
import re
import sys
from collections.abc import Iterator
from itertools import product
from math import prod
from pathlib import Path

from hgviz.gui import language
from tests.gui.speaking import bare

SAYING = {"HgvizError": (0, 1, 2), "Step": (2,)}  # which arguments are read by people
WORDS = {"what", "why", "do", "note"}
OUTSIDE = ("gui", "cli", "notebook")  # what these say is found elsewhere, or not said in the window
HOLE = "\x00"  # what is filled in
LETTERS = re.compile("[A-Za-z]{2}")
MOST = 24  # ways to put one message together


def messages(root: Path) -> dict[str, str]:
    """{template: "path:line"} of a folder or a file, "{0} cannot be opened"."""
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
    found: dict[str, str] = {}
    for path in files:
        text = path.read_text("utf-8")
        if not any(f"{name}(" in text for name in SAYING):
            continue
        for line, said in _Reading(ast.parse(text)).found():
            if LETTERS.search(said.replace(HOLE, "")):
                found.setdefault(numbered(said), f"{path}:{line}")
    return found


def numbered(said: str) -> str:
    """With a number for each thing that is filled in; braces of a message without stay as they
    are."""
    if HOLE not in said:
        return said
    parts = said.replace("{", "{{").replace("}", "}}").split(HOLE)
    return "".join(f"{{{at - 1}}}{part}" if at else part for at, part in enumerate(parts))


class _Reading:
    """One module: its constants, and the functions that pass words on to an error."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.constants = _assigned(tree.body)
        self.functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
        self.passing: dict[str, list[tuple[int, str]]] = {}
        for one in self.functions:
            names = [arg.arg for arg in one.args.args]
            used = {
                name.id
                for call in ast.walk(one)
                if isinstance(call, ast.Call) and _name(call.func) in SAYING
                for part in _words_of(call)
                for name in ast.walk(part)
                if isinstance(name, ast.Name)
            }
            if places := [(names.index(name), name) for name in names if name in used & WORDS]:
                self.passing[one.name] = places

    def found(self) -> Iterator[tuple[int, str]]:
        """(line, message) with holes."""
        yield from self._within(self.tree, dict(self.constants))

    def _within(self, node: ast.AST, known: dict[str, list[ast.expr]]) -> Iterator[tuple[int, str]]:
        for child in ast.iter_child_nodes(node):
            inner = known
            if isinstance(child, ast.FunctionDef):
                inner = known | _assigned(ast.walk(child))
            if isinstance(child, ast.Call):
                for part in self._said_by(child):
                    for one in ways(part, inner):
                        yield part.lineno, one
            yield from self._within(child, inner)

    def _said_by(self, call: ast.Call) -> Iterator[ast.expr]:
        name = _name(call.func)
        if name in SAYING:
            yield from _words_of(call)
        elif name in self.passing:
            for at, word in self.passing[name]:
                yield from (one.value for one in call.keywords if one.arg == word)
                if at < len(call.args):
                    yield call.args[at]


def ways(node: ast.expr, known: dict[str, list[ast.expr]], depth: int = 0) -> list[str]:
    """Every way in which a string can be put together, HOLE for what is not known."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else [HOLE]
    if isinstance(node, ast.JoinedStr):
        parts = [
            [str(one.value)] if isinstance(one, ast.Constant) else ways(one.value, {}, depth + 1)
            for one in node.values
        ]
        return ["".join(one) for one in _few(parts)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        both = [ways(node.left, known, depth), ways(node.right, known, depth)]
        return ["".join(one) for one in _few(both)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):  # "s" * (count > 1)
        said = node.left if isinstance(node.left, ast.Constant | ast.JoinedStr) else node.right
        return ["", *ways(said, known, depth)]
    if isinstance(node, ast.IfExp):
        return [*ways(node.body, known, depth), *ways(node.orelse, known, depth)]
    if isinstance(node, ast.BoolOp):
        return [way for one in node.values for way in ways(one, known, depth)]
    if isinstance(node, ast.Name) and node.id in known and depth < 4:
        found = [way for one in known[node.id] for way in ways(one, known, depth + 1)]
        return found if any(LETTERS.search(one) for one in found) else [HOLE]
    if isinstance(node, ast.Call) and _name(node.func) == "format" and depth < 4:
        assert isinstance(node.func, ast.Attribute)
        return [re.sub(r"\{[^}]*\}", HOLE, one) for one in ways(node.func.value, known, depth + 1)]
    return [HOLE]


def _few(parts: list[list[str]]) -> list[tuple[str, ...]]:
    """All combinations; where there would be too many, one of each part that varies most."""
    parts = [list(dict.fromkeys(one)) or [HOLE] for one in parts]
    while prod(map(len, parts)) > MOST:
        longest = max(range(len(parts)), key=lambda at: len(parts[at]))
        parts[longest] = [HOLE]
    return list(product(*parts))


def _words_of(call: ast.Call) -> Iterator[ast.expr]:
    for at in SAYING[_name(call.func)]:
        if at < len(call.args):
            yield call.args[at]
    yield from (one.value for one in call.keywords if one.arg in WORDS)


def _assigned(nodes: object) -> dict[str, list[ast.expr]]:
    """The strings that names stand for."""
    found: dict[str, list[ast.expr]] = {}
    for one in nodes:  # type: ignore[attr-defined]
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name):
            found.setdefault(one.targets[0].id, []).append(one.value)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.value:
            found.setdefault(one.target.id, []).append(one.value)
    return found


def _name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def outside(package: Path) -> list[Path]:
    """The parts of the package whose messages reach the window."""
    return [
        one
        for one in sorted(package.iterdir())
        if one.stem not in OUTSIDE and (one.suffix == ".py" or (one / "__init__.py").exists())
    ]


def untranslated(root: Path, code: str = "ko") -> list[str]:
    """Where something has no translation: "path:line: message"."""
    known = {bare(one) for one in language.catalogue(code)}
    return [f"{where}: {one}" for one, where in messages(root).items() if one not in known]


if __name__ == "__main__":
    for one in sys.argv[1:] or outside(Path("hgviz")):
        if lacking := untranslated(Path(one)):
            print("\n".join(lacking))
