"""`hgviz` and `python -m hgviz`: starts the window or the command line.

Paths and no arguments at all open the window; everything else is a command. Neither is imported
before it is known which one is needed, so that a window does not wait for the command line's
libraries and a server needs none of the window's.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

COMPLETION = "_HGVIZ_COMPLETE"  # the variable that completion scripts of shells set
SYSTEM_LIBRARIES = "libglib2.0-0 libgl1 libxkbcommon0 libegl1 libfontconfig1 libdbus-1-3"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run hgviz and give its exit code: 128 and the signal's number where one stopped it."""
    from hgviz.jobs import interrupt_on_signals

    # where the home cannot be written, matplotlib warns that it uses a temporary folder
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    with interrupt_on_signals() as came:
        try:
            code = _run(sys.argv[1:] if arguments is None else arguments)
        except KeyboardInterrupt:  # while a face is being imported; later it sees to this itself
            code = _fail("Stopped.", 128 + signal.SIGINT)
        return 128 + came[0] if came and code else code


def _run(arguments: Sequence[str]) -> int:
    if getattr(sys, "frozen", False):
        import multiprocessing

        multiprocessing.freeze_support()
    if COMPLETION in os.environ:  # a shell asks for its completion script, or completes a line
        from hgviz import cli

        return cli.main(arguments, cli.Window(demo, selftest))
    if has_display() and (not arguments or all(map(_surely_a_path, arguments))):
        return window(arguments)
    if has_display() and arguments == ["demo"]:
        return demo()

    from hgviz import cli

    if arguments and arguments[0] not in cli.verbs() and all(map(_maybe_a_path, arguments)):
        return window(arguments)
    return cli.main(arguments or ["demo"], cli.Window(demo, selftest))


def window(paths: Sequence[str]) -> int:
    """The window on checkpoints and captures."""
    if not has_display():
        return _fail(
            "There is no display to open a window on. "
            f"`hgviz info {paths[0]}` and the other commands work without one."
        )
    from hgviz.files import find_sample

    for path in paths:
        if not _is_there(path):
            return _fail(f"There is no file or folder {path}. Check its name.")
    code: int = _app().window([find_sample(path) for path in paths])
    return code


def demo(headless: Path | None = None) -> int:
    """The window on the sample; its work off screen where a folder is given or no display is."""
    if headless is None and not has_display():
        headless = Path("hgviz-demo")
    code: int = _app().demo(headless)
    return code


def selftest() -> int:
    """Run the self-test that a bundle uses to verify that it works."""
    code: int = _app().selftest()
    return code


def has_display() -> bool:
    """Whether a window can be shown; benchmarks that ask for one frame count as a display."""
    if sys.platform in ("win32", "darwin") or "HGVIZ_EXIT_AFTER_PAINT" in os.environ:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _app() -> ModuleType:
    """The window's module, or one clear line where a library that Qt needs is not installed."""
    try:
        from hgviz.gui import app
    except ImportError as error:
        if ".so" not in str(error):
            raise
        missing = str(error).partition(":")[0]
        line = f"Qt needs {missing}, which is not installed. Run: apt-get install"
        raise SystemExit(_fail(f"{line} {SYSTEM_LIBRARIES}")) from None
    return app


def _surely_a_path(argument: str) -> bool:
    return not argument.startswith("-") and (os.sep in argument or "." in argument)


def _maybe_a_path(argument: str) -> bool:
    return _surely_a_path(argument) or _is_there(argument)


def _is_there(path: str) -> bool:
    """Whether there is such a file or folder, or a model of that name in Hugging Face's cache."""
    if path.startswith("-") or os.path.exists(path):  # also of names that no file system takes
        return os.path.exists(path)
    from hgviz.files import path_exists

    return path_exists(path)


def _fail(line: str, code: int = 1) -> int:
    print(line, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
