"""No damaged file crashes, hangs, fills the memory, reads another file, or shows a traceback."""

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.soak.damage import GROUPS
from tests.soak.good import write_captures, write_models, write_studies

FEW, MANY = 100, int(os.environ.get("DAMAGED_FILES", 750))  # of a group, of each kind of damage
SEED = 4
LONGEST = 10.0  # seconds for one file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Good files, and a canary: files outside that nothing may open."""
    folder = tmp_path_factory.mktemp("strangers")
    good, canary = folder / "good", folder / "canary"
    good.mkdir()
    canary.mkdir()
    write_captures(good / "captures")
    write_models(good / "models")
    write_studies(good / "studies")
    (canary / "secret.bin").write_bytes(bytes(range(256)) * 4096)
    with h5py.File(canary / "other.h5", "w") as file:
        file["x"] = np.arange(1 << 16, dtype="f4")
    shutil.copy(good / "models/bert/model.safetensors", canary / "other.safetensors")
    (canary / "libevil.so").write_bytes(b"\x7fELF")
    return good, canary


def open_many(places, kind, count):
    """The verdicts on the first so many damaged files, and what went wrong with which."""
    verdicts, wrong, first = Counter(), [], 0
    while first < count:  # as many processes as it takes
        command = [sys.executable, "-m", "tests.soak.damage", *places, kind, SEED, first, count]
        environment = {
            **os.environ, "OMP_NUM_THREADS": "1", "HDF5_PLUGIN_PATH": str(places[1]),
            "HF_HUB_CACHE": str(places[1].parent), "RUST_BACKTRACE": "0",
        }  # fmt: skip
        with tempfile.TemporaryFile("w+") as errors, subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=errors, env=environment,
            text=True, cwd=Path(__file__).parents[2],
        ) as process:  # fmt: skip
            begun, at = first, None
            while line := next_line(process, 100 if at is None else 2 * LONGEST):
                found = json.loads(line)
                at = found["number"]
                if "verdict" in found:
                    first, at = at + 1, None
                    verdicts[found["verdict"]] += 1
                    if found["verdict"] == "wrong" or found["seconds"] > LONGEST:
                        wrong.append(f"{kind} {found}")
            if process.poll() is None and at is not None:
                process.send_signal(signal.SIGKILL)
            code = process.wait()
            errors.seek(0)
            words = errors.read()[-600:]
        if at is not None:
            wrong.append(f"{kind} {at}: hung or died, {code} {words}")
            first = at + 1
        elif first < count:
            assert first > begun, f"{kind}: failed before its first file, {code} {words}"
    return verdicts, wrong


def next_line(process, limit):
    """The next line, or nothing at the end and after so many seconds."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline() if selector.select(limit) else ""


@pytest.mark.parametrize("group", GROUPS)
def test_some_damaged_files_do_no_harm(places, group):
    verdicts, wrong = open_many(places, group, FEW)
    assert not wrong, "\n".join(wrong)
    assert verdicts["refused"] and verdicts["opened"]


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_ten_thousand_damaged_files_do_no_harm(places):
    kinds = [kind for group in GROUPS.values() for kind in group]
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        found = list(workers.map(lambda kind: open_many(places, kind, MANY), kinds))
    wrong = [line for _, lines in found for line in lines]
    assert not wrong, "\n".join(wrong)
    opened = sum((verdicts for verdicts, _ in found), Counter())
    assert opened["opened"] + opened["refused"] >= 2 / 3 * MANY * len(kinds)  # 10,000
