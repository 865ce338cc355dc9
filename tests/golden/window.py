"""Draw twelve states of the window, light and dark, at two sizes, and compare two such folders.

    python -m tests.golden.window draw FOLDER            48 pictures; some two minutes
    python -m tests.golden.window draw FOLDER --only map,prune
    python -m tests.golden.window compare BEFORE AFTER   which pictures differ, how much, and where

Pictures are compared pixel by pixel, so both folders have to be drawn on one machine: before a
change, for instance in a worktree of the commit before it, and after. The study that one state
shows is run once, into FOLDER.inputs or the folder of --inputs; give both drawings the same one.
"""

import argparse
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.update(QT_QPA_PLATFORM="offscreen", OMP_NUM_THREADS="1", HGVIZ_DEVICE="cpu")

import numpy as np  # noqa: E402 - after the variables that it reads

SIZES = ((1600, 1000), (1100, 700))
QUERY = 101  # the letter of the sample whose row is read
HEADS_OFF = ((2, 0), (2, 3), (5, 1))  # layer, head
PATIENCE = 60.0  # s that a state may take to come to rest
STILL = 0.4  # s without a change of the picture or a job: the window is at rest


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    draw = verbs.add_parser("draw", help="draw the states")
    draw.add_argument("folder", type=Path)
    draw.add_argument("--inputs", type=Path, help="folder of the study that is shown")
    draw.add_argument("--only", default="", help="names of states, with commas")
    compare = verbs.add_parser("compare", help="compare two folders")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.verb == "compare":
        return compare_folders(options.before, options.after)
    inputs = options.inputs or options.folder.with_name(options.folder.name + ".inputs")
    write_inputs(inputs)
    draw_states(options.folder, inputs, options.only.split(",") if options.only else [*STATES])
    return 0


# --- states ---------------------------------------------------------------------------------------


def write_inputs(folder: Path) -> None:
    """Run the study that is shown, unless the folder has it."""
    if folder.exists():
        return
    from tests.soak.good import TINY

    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(TINY, "utf-8")
    (folder / "sample").symlink_to(Path(__file__).parents[2] / "resources" / "sample")
    command = [sys.executable, "-m", "hgviz", "study", "run", "study.toml", "-o", "study"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def empty(program: Any, inputs: Path) -> None:
    """The window as it is without a file."""


def look(name: str) -> Callable[[Any, Path], None]:
    """A state that shows the sample under one tab of the Inspect page."""

    def show(program: Any, inputs: Path) -> None:
        open_sample(program)
        program.session.put(look=name)
        program.session.select(query=QUERY, key=None)

    return show


def follow(program: Any, inputs: Path) -> None:
    open_sample(program)
    program.session.put(mode="follow")


def prune(program: Any, inputs: Path) -> None:
    """A classifier with three heads off, scored on a few reviews."""
    from hgviz import tasks
    from hgviz.core import HeadId
    from hgviz.files import resource

    folder = resource("sample/softmax")
    model = tasks.load(folder, "cpu")
    heads = [HeadId(layer, head) for layer, head in HEADS_OFF]
    heads = [head for head in heads if head in model.spec.heads] or model.spec.heads[:3]
    rows = resource("sample/reviews.tsv").read_text("utf-8").splitlines()[:81]
    data = inputs / "reviews.tsv"
    data.write_text("\n".join(rows) + "\n", "utf-8")
    program.session.put(model=model, checkpoint=str(folder), mode="prune")
    program.commands.use_data(str(data))
    wait_until(program, lambda: program.session.trial is not None and program.session.trial.done)
    program.commands.pruning.switch(frozenset(heads))
    wait_until(
        program,
        lambda: program.session.trial.done and program.session.trial.off == program.session.off,
    )


def compare(program: Any, inputs: Path) -> None:
    """The sample beside itself with ymish in place of softmax."""
    from hgviz import tasks
    from hgviz.files import resource

    open_sample(program)
    other = tasks.load(resource("sample/hourglass"), "cpu", activation="ymish")
    prompt, _ = tasks.read_prompts(other, program.session.capture.prompt.text)
    program.session.put(mode="compare", capture_b=tasks.capture(other, prompt))


def study(program: Any, inputs: Path) -> None:
    from hgviz import tasks

    open_sample(program)
    program.session.put(sweep=tasks.sweep_at(inputs / "study"), mode="sweep")


def export(program: Any, inputs: Path) -> None:
    """The dialog that writes a figure, its preview drawn."""
    from hgviz.gui.export import ExportDialog

    open_sample(program)
    program.settle()
    program.commands.run("export")
    preview = program.frame.findChild(ExportDialog).preview
    wait_until(program, lambda: preview.picture is not None)


STATES: dict[str, Callable[[Any, Path], None]] = {
    "empty": empty,
    "map": look("map"),
    "links": look("links"),
    "neurons": look("neurons"),
    "attribution": look("attribution"),
    "across": look("across"),
    "heads": look("heads"),
    "follow": follow,
    "prune": prune,
    "compare": compare,
    "study": study,
    "export": export,
}


def open_sample(program: Any) -> None:
    """Show the capture of the sample."""
    from hgviz.files import resource
    from hgviz.gui import sources
    from hgviz.gui.sources import FIRST

    program.commands.show_found(sources.look(str(resource(FIRST))))


def wait_until(program: Any, is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_done():
        program.settle()
        time.sleep(0.02)
        if time.monotonic() > end:
            raise TimeoutError("the window still works")


# --- drawing and comparing ------------------------------------------------------------------------


@contextmanager
def window(dark: bool, size: tuple[int, int]) -> Iterator[tuple[Any, Any]]:
    """A program and its window, off screen, that writes no settings."""
    from PySide6.QtCore import QCoreApplication, QEvent

    from hgviz.gui import theme
    from hgviz.gui.program import Program
    from hgviz.gui.window import Window, application

    theme.apply(application(), dark)
    frame = Window()
    frame.resize(*size)
    frame.show()
    program = Program(frame, keep=False)
    try:
        yield program, frame
    finally:
        program.close()
        frame.close()
        frame.deleteLater()  # now, or the next theme is applied to this window as well
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def picture_of(window: Any) -> Any:
    """A window (QImage) with the dialogs over it, as a screen would show them."""
    from PySide6.QtGui import QPainter
    from PySide6.QtWidgets import QDialog

    picture = window.grab()
    with QPainter(picture) as painter:
        for dialog in window.findChildren(QDialog):
            if dialog.isVisible():
                painter.drawPixmap(dialog.pos() - window.pos(), dialog.grab())
    return picture.toImage()


def picture_at_rest(program: Any, frame: Any) -> Any:
    """The window (QImage) once no job runs and its picture stays the same."""
    picture, since = None, time.monotonic()

    def is_still() -> bool:
        nonlocal picture, since
        frame.toolbar.fit()  # by its buttons in the font of the theme, which may have come late
        now = picture_of(frame)
        if now != picture or program.session.job():
            picture, since = now, time.monotonic()
        return time.monotonic() - since > STILL

    wait_until(program, is_still)
    return picture


def draw_states(folder: Path, inputs: Path, names: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, dark, size in itertools.product(names, (False, True), SIZES):
        with window(dark, size) as (program, frame):
            STATES[name](program, inputs)
            path = folder / f"{name}-{'dark' if dark else 'light'}-{size[0]}.png"
            picture_at_rest(program, frame).save(str(path))
            print(path.name, flush=True)


def compare_folders(before: Path, after: Path) -> int:
    """Print what differs; 1 if anything does."""
    from PIL import Image

    names = sorted({path.name for one in (before, after) for path in one.glob("*.png")})
    different = 0
    for name in names:
        if not ((before / name).exists() and (after / name).exists()):
            different += 1
            print(f"{name:28} only in {before if (before / name).exists() else after}")
            continue
        old, new = (np.asarray(Image.open(one / name).convert("RGB")) for one in (before, after))
        if old.shape != new.shape:
            different += 1
            print(f"{name:28} {old.shape[1]} x {old.shape[0]} and {new.shape[1]} x {new.shape[0]}")
        elif (changed := (old != new).any(axis=2)).any():
            different += 1
            rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
            print(
                f"{name:28} {100 * changed.mean():6.2f} % of the pixels, "
                f"x {columns[0]} to {columns[-1]}, y {rows[0]} to {rows[-1]}"
            )
    print(f"{len(names)} pictures, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
