"""Captures to a file that are killed at random moments, and what is there afterwards.

Run as a process of its own, which has no other threads and so may fork: FOLDER SEED COUNT KIND, of
one "text" or of a "corpus". Half of the moments lie anywhere in a capture, half within its merge.
"""

import json
import os
import select
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

TEXT = "A capture that somebody kills. " * 8
TEXTS = ("Short. ", "Another one. " * 3, TEXT, "The last of them. ")
LONG = 100  # tokens: the third of the texts is kept layer by layer


def capture(path: Path, model: Any, say: int | None = None, force: bool = False) -> None:
    """Capture to a file, as `hgviz capture` does; every stage is said on a pipe."""
    from hgviz import store, tasks

    if not isinstance(model, tuple):
        if say is not None:
            _tell(store.Writer, say)
        tasks.capture(model, model.tokenize(TEXT), path, force=force)
        return
    if say is not None:
        _tell(store.CorpusWriter, say)
    store.captures.LONG_TEXT = LONG
    tasks.capture_corpus(*model, path, force=force)


def _tell(writer: Any, say: int) -> None:
    merge = writer.finish

    def told_merge(self: Any, *values: Any, **more: Any) -> Any:
        os.write(say, b"merging 0\n")
        path = merge(self, *values, **more)
        os.write(say, b"finished 0\n")
        return path

    writer.finish = told_merge
    if hasattr(writer, "item"):
        writer.item = _told_item(writer.item, say)
    else:
        writer.add = _told_add(writer.add, say)


def _told_add(add: Any, say: int) -> Any:
    def told(self: Any, index: int, *values: Any, **more: Any) -> None:
        add(self, index, *values, **more)
        os.write(say, f"layer {index}\n".encode())

    return told


def _told_item(item: Any, say: int) -> Any:
    @contextmanager
    def told(self: Any, number: int, *values: Any, **more: Any) -> Any:
        with item(self, number, *values, **more) as one:
            yield one
        os.write(say, f"text {number}\n".encode())

    return told


def started(path: Path, model: Any, force: bool = False) -> tuple[int, int]:
    """A process that captures, and where it says how far it is."""
    ears, mouth = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ears)
        code = 1
        try:
            os.write(mouth, b"begun 0\n")
            capture(path, model, mouth, force)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(mouth)
    return child, ears


class Heard:
    """What a capture said, and when."""

    def __init__(self, ears: int) -> None:
        self.ears, self.rest = ears, b""
        self.said: list[tuple[str, int]] = []
        self.when: dict[str, float] = {}

    def listen(self, until: str = "", limit: float = 60.0) -> bool:
        """Go on until a stage is said (true), or the end."""
        while not (until and until in self.when):
            if not select.select([self.ears], [], [], limit)[0]:
                return False
            data = os.read(self.ears, 4096)
            if not data:
                return False
            *lines, self.rest = (self.rest + data).split(b"\n")
            for line in lines:
                stage, index = line.decode().split()
                self.said.append((stage, int(index)))
                self.when.setdefault(stage, time.monotonic())
        return True


def contents(path: Path) -> dict[str, Any]:
    """Everything in a capture that does not say when it was made."""
    found: dict[str, Any] = {}
    with h5py.File(path, "r") as file:
        names = ["/"]
        file.visit(names.append)
        for name in names:
            one = file[name]
            for key, value in one.attrs.items():
                found[f"{name}@{key}"] = _bits(value)
            if isinstance(one, h5py.Dataset):
                found[name] = _bits(one[...])
        made = json.loads(bytes(file["made"][...]))
    found["made"] = {k: v for k, v in made.items() if k not in ("created", "seconds")}
    found.pop("made@crc32", None)
    return found


def _bits(value: Any) -> tuple[str, tuple[int, ...], bytes]:
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


def main(folder: str, seed: str, count: str, kind: str = "text") -> None:
    """Prints what was found as JSON."""
    import torch

    torch.set_num_threads(1)
    from hgviz.models import open_model
    from tests.models.building import write_checkpoint

    root = Path(folder)
    keys = {"vocab_size": 256, "d_model": 32, "n_heads": 4, "d_ff": 32}
    model: Any = open_model(write_checkpoint(root / "model", hierarchy="2@1 4@2 2@1", **keys))
    if kind == "corpus":
        (root / "corpus.txt").write_text("\n".join(TEXTS))
        model = model, root / "corpus.txt"
    reference = root / "reference.h5"
    capture(reference, model)
    expected = contents(reference)
    random = np.random.default_rng(int(seed))
    whole, merge = _durations(root, model)
    tally: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(int(count)):
        path = root / f"{number}.h5"
        during = "merge" if number % 2 else "capture"
        delay = random.uniform(0, 1.02 * (merge if number % 2 else whole))
        child, ears = started(path, model)
        heard = Heard(ears)
        heard.listen("merging" if number % 2 else "begun")
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        heard.listen()
        os.close(ears)
        try:
            tally[_check(path, heard, expected, reference)] += 1
            tally[f"killed in {during}"] += 1
            part = path.with_name(path.name + ".part")
            if path.exists() and part.exists():  # killed while the parts were removed
                tally["parts left beside a whole file"] += 1
            there = path.exists()
            if not there or part.exists():
                child, ears = started(path, model, force=there)
                again = Heard(ears)
                again.listen()
                os.close(ears)
                assert os.waitpid(child, 0)[1] == 0, "going on failed"
                twice = {*heard.said} & {*again.said} - {("begun", 0), ("merging", 0)}
                assert there or not twice, f"committed again: {twice}"
                tally["gone on with"] += 1
            assert contents(path) == expected, "another content"
            left = [one.name for one in root.glob(f"{path.name}*") if one != path]
            assert not left, left
            path.unlink()
        except Exception as error:
            wrong.append(f"{number} {during} {delay:.4f}: {type(error).__name__}: {error}")
    print(json.dumps({"tally": tally, "wrong": wrong, "whole": whole, "merge": merge}))


def _durations(root: Path, model: Any) -> tuple[float, float]:
    """Seconds of a capture and of its merge; the medians of five."""
    spent = []
    for _ in range(5):
        path = root / "timed.h5"
        child, ears = started(path, model)
        heard = Heard(ears)
        heard.listen()
        os.close(ears)
        assert os.waitpid(child, 0)[1] == 0
        when = heard.when
        spent.append((when["finished"] - when["begun"], when["finished"] - when["merging"]))
        path.unlink()
    whole, merge = np.median(np.array(spent), axis=0)
    return float(whole), float(merge)


def _check(path: Path, heard: Heard, expected: dict[str, Any], reference: Path) -> str:
    """What is there opens, and holds every layer that was said to be committed."""
    from hgviz.store import open_capture

    committed = {index for stage, index in heard.said if stage in ("layer", "text")}
    part = path.with_name(path.name + ".part")
    if path.exists():
        assert open_capture(path).complete
        assert contents(path) == expected, "another content"
        return "whole"
    assert "finished" not in heard.when, "it was finished and is not there"
    if not part.exists():
        assert not committed, "nothing is there"
        return "nothing yet"
    opened, good = open_capture(part), open_capture(reference)
    if good.items:
        assert committed <= {one.number for one in opened.items}, "a text is lost"
        for number in committed:
            _alike(open_capture(part, number), open_capture(reference, number), None)
        return "in part"
    _alike(opened, good, committed)
    return "in part"


def _alike(opened: Any, good: Any, committed: set[int] | None) -> None:
    """The maps of some layers, or of all, are those of the uninterrupted capture."""
    for index in range(len(good.maps)) if committed is None else committed:
        one = opened.maps[index]
        assert one is not None, f"layer {index} is lost"
        for head in one.heads:
            assert np.array_equal(one.read(head), good.maps[index].read(head)), f"layer {index}"


if __name__ == "__main__":
    main(*sys.argv[1:])
