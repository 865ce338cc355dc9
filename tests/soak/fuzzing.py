"""Thousands of changed files, opened in processes that may hang, crash or run out of memory."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.soak import captures, models, studies

LONGEST = 10.0  # seconds for one file
KINDS = (*captures.CHANGES, *models.CHANGES, *studies.CHANGES)


@dataclass
class Tally:
    """How many files opened and were refused, the worst of them, and what went wrong."""

    verdicts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest: str = ""
    peak: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, kind: str, line: dict[str, Any]) -> None:
        """Count one file."""
        self.verdicts[line["verdict"]] += 1
        if line.get("seconds", 0.0) > self.seconds:
            self.seconds, self.slowest = line["seconds"], f"{kind} {line['number']}"
        self.peak = max(self.peak, line.get("peak", 0))
        if line["verdict"] == "wrong" or line.get("seconds", 0) > LONGEST:
            self.wrong.append(
                f"{kind} {line['number']}: {line['why']} {line.get('seconds', 0):.1f}"
            )


def prepare(folder: Path) -> tuple[Path, Path]:
    """Good files of every kind, and a canary: files outside that nothing may open."""
    good, canary = folder / "good", folder / "canary"
    good.mkdir()
    canary.mkdir()
    captures.make(good / "captures")
    models.make(good / "models")
    studies.make(good / "studies")
    (canary / "secret.bin").write_bytes(bytes(range(256)) * 4096)
    with h5py.File(canary / "other.h5", "w") as file:
        file["x"] = np.arange(1 << 16, dtype="f4")
    (canary / "other.safetensors").write_bytes(
        (good / "models" / "bert" / "model.safetensors").read_bytes()
    )
    (canary / "libevil.so").write_bytes(b"\x7fELF")
    return good, canary


def open_many(good: Path, canary: Path, kind: str, seed: int, count: int, tally: Tally) -> None:
    """Open the first so many changed files of a kind, in as many processes as that takes."""
    first = 0
    while first < count:
        first = _batch(good, canary, kind, seed, first, count, tally)


def _batch(
    good: Path, canary: Path, kind: str, seed: int, first: int, end: int, tally: Tally
) -> int:
    """Until a file hangs or kills its process; returns the number of the file after it."""
    command = [sys.executable, "-m", "tests.soak.opening", good, canary, kind, seed, first, end]
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "HDF5_PLUGIN_PATH": str(canary),
        "HF_HUB_CACHE": str(canary.parent), "RUST_BACKTRACE": "0",
    }  # fmt: skip
    root = Path(__file__).parents[2]
    with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
        [*map(str, command)], stdout=subprocess.PIPE, stderr=errors, cwd=root, env=environment,
        text=True,
    ) as process:  # fmt: skip
        at, why = None, ""
        while line := _line(process, 60 if at is None else 2 * LONGEST):
            found = json.loads(line)
            at = found["number"]
            if "verdict" in found:
                tally.add(kind, found)
                first, at = at + 1, None
        if process.poll() is None and at is not None:
            process.send_signal(signal.SIGKILL)
            why = "it hung"
        code = process.wait()
        errors.seek(0)
        said = errors.read()[-600:]
    if at is not None:
        tally.add(kind, {"number": at, "verdict": "wrong", "why": why or f"died: {code} {said}"})
        return at + 1
    if code or first == 0:
        raise RuntimeError(f"{kind}: the process failed before its first file: {said}")
    return first


def _line(process: subprocess.Popen[str], limit: float) -> str:
    """The next line, the empty string at the end or after so many seconds."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(limit):
            return ""
    return process.stdout.readline()
