"""What the code of the window says: every phrase in it, found by reading it.

python -m tests.gui.speaking hgviz/gui/prune    what has no Korean yet, line by line
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from hgviz.gui import language

PHRASE = re.compile(r"[A-Za-z]{2,}[,:;.…]? [A-Za-z(]|^[A-Z][a-z]+[…:.?]?$")
# whose words nobody sees
UNSEEN = {
    "setProperty", "setObjectName", "setStyleSheet", "property", "getattr", "setattr", "Signal",
    "KeyError", "ValueError", "TypeError", "RuntimeError", "AssertionError", "NotImplementedError",
    "Cited", "TypeVar", "QKeySequence", "findChild", "resource", "Template", "cast", "partition",
    "strftime", "print", "setStyle", "createSignal", "_theme",
}  # fmt: skip
# what is assigned to these is data: what a module gives away, the texts of samples, fonts
DATA = {"__all__", "TEXT", "REVIEW", "MONO"}
OFF_SCREEN = {"proof.py"}  # files whose words go to a terminal


def phrases(path: Path) -> Iterator[tuple[int, str]]:
    """(line, phrase) of one file; of an f-string its template, "{0} heads"."""
    yield from _under(ast.parse(path.read_text("utf-8")))


def _under(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.Call) and _name(node.func) in UNSEEN:
        return
    if isinstance(node, ast.Assign) and _name(node.targets[0]) in DATA:
        return
    if isinstance(node, ast.Subscript) and _name(node.value) == "Callable":
        return
    if isinstance(node, ast.Compare) and _name(node.left) == "__name__":
        return
    if isinstance(node, ast.JoinedStr):
        if PHRASE.search(_template(node)):
            yield node.lineno, _template(node)
        for one in node.values:  # what is said inside of it
            if isinstance(one, ast.FormattedValue):
                yield from _under(one.value)
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and PHRASE.search(node.value):
            yield node.lineno, node.value
        return
    if isinstance(node, ast.Call) and _name(node.func) == "tr":
        first = node.args[0]
        if isinstance(first, ast.Constant):
            yield first.lineno, str(first.value)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        if isinstance(child, ast.arg | ast.AnnAssign) and not isinstance(child, ast.AnnAssign):
            continue  # annotations
        if isinstance(child, ast.AnnAssign):
            if child.value is not None:
                yield from _under(child.value)
            continue
        if isinstance(child, ast.ImportFrom | ast.Import):
            continue
        yield from _under(child)


def _name(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _template(node: ast.JoinedStr) -> str:
    out, number = "", 0
    for one in node.values:
        if isinstance(one, ast.FormattedValue):
            out += f"{{{number}}}"
            number += 1
        else:
            out += str(one.value).replace("{", "{{").replace("}", "}}")
    return out


def bare(key: str) -> str:
    """A key without what its numbers must look like: {0:d} is {0}."""
    return re.sub(r"\{(\d+):d\}", r"{\1}", key)


def untranslated(root: Path, code: str = "ko") -> list[str]:
    """Where something has no translation: "path:line: phrase"."""
    known = {bare(one) for one in language.catalogue(code)}
    files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
    return [
        f"{path}:{line}: {phrase}"
        for path in files
        if path.name not in OFF_SCREEN
        for line, phrase in phrases(path)
        if phrase not in known
    ]


if __name__ == "__main__":
    for one in sys.argv[1:] or ["hgviz/gui"]:
        print("\n".join(untranslated(Path(one))))
