"""The five tasks of the guide, done by the keyboard alone in a real window, and proved.

Run from a checkout: python docs/tasks.py. It takes a picture of every step for the page
docs/how-to/five-tasks.md, and writes that page, which says which keys were pressed. The names of
tasks, such as compare, do these alone; --page writes the page alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from desk import QUIET, Desk, missing  # noqa: E402 - beside this script

from hgviz.gui.actions import BY_NAME  # noqa: E402

PICTURES = HERE / "pictures" / "tasks"
PAGE = HERE / "how-to" / "five-tasks.md"
WIDTH = 1080  # px
LARGEST = 60_000  # bytes of a picture
MADE = "<!-- Written by docs/tasks.py, which does what it says: change it there. -->"

MINE = "A sailor turned the glass when the sand had run down."


@dataclass(frozen=True, slots=True)
class Do:
    """An action of the window, by the first of its keys."""

    name: str


@dataclass(frozen=True, slots=True)
class Type:
    """A text, typed letter by letter."""

    text: str


Key = Do | Type | str  # a str: any other key, in Qt's words


@dataclass(frozen=True, slots=True)
class Step:
    """What a person does, the keys for it, and what has to come of it.

    title: the end of that of the window with the keyboard; file: one that is there then; quiet: how
    many seconds nothing moves, more where work pauses on its way.
    """

    words: str
    keys: tuple[Key, ...]
    title: str = ""
    file: str = ""
    quiet: float = QUIET


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to get done. proof: raises AssertionError where it is not, else says what is true.

    start: what hgviz is started with; the window of the task before goes on without it.
    """

    name: str
    title: str
    before: str
    start: tuple[str, ...]
    steps: tuple[Step, ...]
    proof: Callable[[Desk], str]


# --- what is true afterwards ----------------------------------------------------------------------


def read_weight(desk: Desk) -> str:
    """What the window says of head 11.0 is what its queries and keys give."""
    from hgviz.files import resource
    from hgviz.store import open_capture

    row = open_capture(resource("sample/first.h5")).maps[11].read(0, (101, 102), (0, 136))[0]
    said = desk.clipboard
    assert f"{100 * row.max():.0f} % of its weight" in said, said
    assert f"{101 - row.argmax()} tokens back" in said, said
    return f"The clipboard says: {said.strip()}"


def found_again(desk: Desk) -> str:
    """The saved capture has the text that was typed, and the weight is one of head 3.4 on it."""
    from hgviz.store import open_capture

    capture = open_capture(desk.home / "mine.h5")
    assert capture.prompt.text == MINE
    assert capture.complete and len(capture.maps) == 13
    said = desk.clipboard
    rows = capture.maps[3].read(4, (0, 27), (0, 27))
    assert any(f"{100 * row.max():.0f} % of its weight" in said for row in rows), said
    return f"mine.h5 has all 13 layers of “{MINE}” The clipboard says: {said.strip()}"


def fewer_heads(desk: Desk) -> str:
    """The new model opens, and two heads are not in it."""
    words = [sys.executable, "-m", "hgviz", "info", "softmax-sample-without-2", "--json"]
    told = subprocess.run(words, cwd=desk.home, check=True, capture_output=True, text=True)
    heads = [layer["heads"] for layer in json.loads(told.stdout)["layers"]]
    assert sum(heads) == 22, heads
    return f"softmax-sample-without-2 opens, with {heads} heads in its layers: 22 of 24."


def both_sides(desk: Desk) -> str:
    """B is the same text, through the model that was trained with ymish."""
    from hgviz.gui.sources import REVIEW
    from hgviz.store import open_capture

    capture = open_capture(desk.home / "ymish.h5")
    used = {one for layer in capture.spec.layers for one in layer.activations}
    assert used == {"ymish"}, used
    assert capture.prompt.text == REVIEW
    return f"ymish.h5 has the same text, and every head of its {len(capture.maps)} layers by ymish."


def figure_for_paper(desk: Desk) -> str:
    """The PDF has its words as text, and the command that draws it again."""
    file = str(desk.home / "figure.pdf")
    asked = {"check": True, "capture_output": True, "text": True}
    words = subprocess.run(["pdftotext", file, "-"], **asked).stdout
    assert "Head 11.0" in words and "hourglass" in words, words
    said = subprocess.run(["pdfinfo", file], **asked).stdout
    assert "hgviz figure" in said, said
    (size,) = (line.split() for line in said.splitlines() if line.startswith("Page size"))
    wide = float(size[2]) / 72
    return f"figure.pdf is {wide:.2f} in wide; its words are text, and its command is inside."


# --- the tasks ------------------------------------------------------------------------------------

TASKS = (
    Task(
        "read",
        "Read the strongest weight of a head",
        "`hgviz`, started for the first time, opens the sample: a small Hourglass and a text.",
        (),
        (
            Step("Ask for a head by its number.", (Do("find"), Type("11.0"))),
            Step("Go there.", ("Return",)),
            Step("Choose the key that the chosen token looks at most. The sentence below the map "
                 "has the weight, and so has the status bar.", (Do("strongest"),)),
            Step("Copy the picture, and beside it the sentence.", (Do("copy"),)),
        ),
        read_weight,
    ),
    Task(
        "capture",
        "Capture a text of your own, and find it at another level",
        "In the same window.",
        (),
        (
            Step("Edit the text. All of it is selected, so that typing replaces it.",
                 (Do("edit_text"),)),
            Step("Write a sentence.", (Type(MINE),)),
            Step("Capture it. The map is that of the same head.", ("Ctrl+Return",)),
            Step("Go to the coarser level: two tokens for each position.", (Do("level_in"),)),
            Step("The next head there.", (Do("next_head"),)),
            Step("Copy what it looks at.", (Do("copy"),)),
            Step("Save the capture.", (Do("save"),), "Save capture"),
            Step("Give it a name.", (Type("mine.h5"), "Return"), "hgviz", "mine.h5"),
        ),
        found_again,
    ),
    Task(
        "prune",
        "Switch heads off while accuracy is watched, and save the smaller model",
        "`hgviz sample/softmax` opens a small classifier of reviews.",
        ("sample/softmax",),
        (
            Step("Go to the Prune page.", (Do("prune"),)),
            Step("Score the model on the reviews that come with it.", (Do("bundled_data"),),
                 quiet=3.0),
            Step("Switch this head off, and see what it costs.", (Do("switch_head"),)),
            Step("Take that back, go to the layer below, and switch two heads off there.",
                 (Do("undo"), Do("next_layer"), Do("switch_head"), Do("next_head"),
                  Do("switch_head"))),
            Step("Prune them.", (Do("remove_heads"),)),
            Step("Return takes the name that is offered. The new model is verified against the "
                 "one with two heads off.", ("Return",), "", "softmax-sample-without-2"),
            Step("Open it.", ("Return",), "softmax-sample-without-2 · hgviz"),
        ),
        fewer_heads,
    ),
    Task(
        "compare",
        "Compare softmax with ymish on the same text",
        "`hgviz sample/softmax` again.",
        ("sample/softmax",),
        (
            Step("Compare with… The model that was trained with ymish is chosen.",
                 (Do("compare_with"),)),
            Step("Compare: A, B and A − B, with one cursor.", ("Return",)),
            Step("The next head, on both sides.", (Do("next_head"),)),
            Step("Save B.", (Do("save_beside"),), "Save comparison capture"),
            Step("Give it a name.", (Type("ymish.h5"), "Return"), "hgviz", "ymish.h5"),
        ),
        both_sides,
    ),
    Task(
        "figure",
        "Export a figure for a paper",
        "`hgviz` once more.",
        ("sample/first.h5",),
        (
            Step("Go to a head, and to what it looks at most.",
                 (Do("find"), Type("11.0"), "Return", Do("strongest"))),
            Step("Export what the pane shows. The page is drawn as it will be printed.",
                 (Do("export"),), quiet=6.0),
            Step("Return writes it; say where to.", ("Return",), "Export figure"),
            Step("Give it a name.", (Type("figure.pdf"), "Return"), "hgviz", "figure.pdf"),
        ),
        figure_for_paper,
    ),
)  # fmt: skip


# --- doing them -----------------------------------------------------------------------------------


def do(desk: Desk, task: Task, seen: Callable[[int, Image.Image], None] | None = None) -> str:
    """Do a task, showing each step once the screen stands still; what is true afterwards."""
    if task.start or not desk.title:
        desk.start(*task.start)
    for number, step in enumerate(task.steps, 1):
        picture = follow(desk, step)
        if seen is not None:
            seen(number, picture)
    return task.proof(desk)


def follow(desk: Desk, step: Step) -> Image.Image:
    """Press the keys of a step, each once that before has done its work."""
    picture = desk.look()
    for key in step.keys:
        match key:
            case Do(name):
                desk.press(BY_NAME[name].keys[0])
            case Type(text):
                desk.type(text)
            case _:
                desk.press(key)
        picture = desk.still(picture, step.quiet)
    if step.title:
        desk.until(lambda: desk.title.endswith(step.title), f"a window “{step.title}”")
        picture = desk.still()
    if step.file:
        desk.until((desk.home / step.file).exists, f"a file {step.file}")
        picture = desk.still()
    return picture


def keep(path: Path, picture: Image.Image) -> None:
    """Write a picture of a step, as good as its size allows."""
    picture = picture.crop(picture.getbbox())  # where there is no window the screen is black
    wide, high = picture.size
    small = picture.resize((WIDTH, round(high * WIDTH / wide)), Image.Resampling.LANCZOS)
    path.parent.mkdir(parents=True, exist_ok=True)
    for quality in range(80, 20, -10):
        small.save(path, quality=quality, method=6)
        if path.stat().st_size <= LARGEST:
            break


# --- the page -------------------------------------------------------------------------------------


def page() -> str:
    """The page that says how the tasks are done, from what this script does."""
    lines = [
        "# Five tasks by the keyboard", "", MADE, "",
        "Each of these was done in a real window by pressing the keys that stand here, and no "
        "mouse: the pictures are of that. `make tasks` does it again, and checks what stands at "
        "the end of each.", "",
    ]  # fmt: skip
    for task in TASKS:
        lines += [f"## {task.title}", "", task.before, ""]
        for number, step in enumerate(task.steps, 1):
            keys = ", ".join(map(written, step.keys))
            lines += [f"{number}. {keys}: {step.words}", ""]
            lines += [
                f"   ![{task.title}: step {number}](../pictures/tasks/{name(task, number)})",
                "",
            ]
        lines += [f"What is checked: {(task.proof.__doc__ or '').strip()}", ""]
    return "\n".join(lines).rstrip() + "\n"


def name(task: Task, number: int) -> str:
    """The file of the picture of a step."""
    return f"{task.name}-{number}.webp"


def written(key: Key) -> str:
    """A key as the page says it."""
    match key:
        case Do(action):
            return f"`{BY_NAME[action].keys[0]}`"
        case Type(text):
            return f"type `{text}`"
    return f"`{key}`"


def main() -> None:
    """Do the tasks that are named, or all; write the page."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    names = [task.name for task in TASKS]
    parser.add_argument("task", nargs="*", help=", ".join(names))
    parser.add_argument("--page", action="store_true", help="write the page alone")
    asked = parser.parse_args()
    if unknown := set(asked.task) - set(names):
        parser.error(f"There is no task {unknown.pop()}; there are {', '.join(names)}.")
    PAGE.write_text(page(), "utf-8")
    if asked.page:
        return
    if lacking := missing():
        raise SystemExit(f"As root first: apt-get install {' '.join(lacking)}")
    with TemporaryDirectory() as folder, Desk(Path(folder) / "home") as desk:
        for task in TASKS:
            if task.name in (asked.task or names):
                print(task.title, flush=True)
                said = do(
                    desk, task, lambda at, one, task=task: keep(PICTURES / name(task, at), one)
                )
                print(f"  {said}", flush=True)


if __name__ == "__main__":
    main()
