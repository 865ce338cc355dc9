"""The frame of the benchmarks and of golden outputs: limits, failures, noticed faults."""

import runpy
import sys
from pathlib import Path

import pytest

from hgviz.maps import LazyMap
from hgviz.store import write_capture
from tests.golden.run import describe_file, describe_text, differences

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def table():
    return runpy.run_path(str(FOLDER / "table.py"))


def test_a_limit_is_compared_with_the_first_number(table):
    for value, limit, expected in (
        ("1.29", "1.3", True), ("1.31", "at most 1.3", False), ("103", "at least 80 at 32k", True),
        ("79.9", "at least 80", False), ("1,003 MB", "968 MB", False), ("2.4e-06", "5e-7", False),
        ("1.29 s", "", None), ("died (Killed)", "2", None),
    ):  # fmt: skip
        assert table["holds"](value, limit) is expected, value


def test_lines_of_a_script_come_into_the_table_and_a_failed_one_is_named(table, tmp_path):
    shown = tmp_path / "shown.py"
    shown.write_text(
        f"import sys; sys.path.insert(0, {str(FOLDER)!r})\n"
        "from table import line\n"
        "line('a ratio', '1.50', '1.3')\n"
        "raise SystemExit(3)\n"
    )
    collected = table["collected"]
    collected.__globals__["__file__"] = str(tmp_path / "table.py")
    lines, ended = collected("shown", 60)
    assert lines == [{"name": "a ratio", "value": "1.50", "limit": "1.3", "holds": False}]
    assert ended == "ended with code 3"
    assert collected("absent", 60) == ([], "is not there")
    (tmp_path / "slow.py").write_text(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    )
    assert collected("slow", 1) == ([], "was stopped after 0 minutes")  # with all it started
    said = "\n".join(table["written"]([{"script": "shown", **lines[0]}], ["shown ended"]))
    assert "| shown | a ratio | 1.50 | 1.3 | **NO** |" in said
    assert "0 limits hold, 1 do not." in said
    assert "Not measured: shown ended." in said


def test_without_a_gpu_the_column_is_left_out_in_one_line(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(FOLDER))
    device = runpy.run_path(str(FOLDER / "device.py"))
    device["main"].__globals__["found"] = lambda: None
    monkeypatch.setattr(sys, "argv", ["device.py"])
    device["main"]()
    assert capsys.readouterr().out.startswith("skipped: ")


@pytest.mark.parametrize("peaked", [False, True])
def test_a_survey_by_torch_is_timed_beside_numpys(monkeypatch, capsys, peaked):
    monkeypatch.syspath_prepend(str(FOLDER))
    device = runpy.run_path(str(FOLDER / "device.py"))
    device["main"].__globals__.update(ROUNDS=1)
    device["surveys"]("cpu", 600, peaked)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "weights of torch off numpy's" in lines[-1]
    # scores of a peaked head are large, and so is what products round differently of them
    assert float(lines[-1].split()[-3]) < (1e-4 if peaked else 1e-5)


def test_maps_of_one_device_are_no_further_from_another_than_finer_numbers_are(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.syspath_prepend(str(FOLDER))
    device = runpy.run_path(str(FOLDER / "device.py"))
    device["main"].__globals__.update(HEADS=1, COMPARED=48)
    device["write"](tmp_path / "model", 48)
    for dtype in ("float32", "bfloat16"):
        device["compared"](tmp_path, "cpu", dtype)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(line.endswith("yes") for line in lines)


# --- golden outputs -------------------------------------------------------------------------------


TOLERANCE = 1e-5


@pytest.mark.parametrize(
    ("factor", "noticed"), [(1 + 1e-4, True), (1 - 1e-4, True), (1 + 1e-7, False)]
)
def test_a_change_of_one_head_is_noticed_and_rounding_is_not(
    capture, tmp_path, monkeypatch, factor, noticed
):
    path, read = tmp_path / "a.h5", LazyMap.read
    write_capture(path, capture)
    before = describe_file(path)

    def changed(self, head, *rest, **more):
        found = read(self, head, *rest, **more)
        return found * factor if head == 2 else found

    monkeypatch.setattr(LazyMap, "read", changed)
    assert bool(differences(before, describe_file(path), TOLERANCE)) == noticed


def test_numbers_of_texts_are_compared_by_their_digits():
    for text, other, same in (
        ("entropy 0.12345678", "entropy 0.12345699", True),
        ("entropy 0.1234567", "entropy 0.1235567", False),
        ("0.831 of 12 tokens", "0.832 of 12 tokens", True),  # one unit of the last digit
        ("0.831 of 12 tokens", "0.831 of 13 tokens", False),
        ("0.831 of 12 tokens", "0.831 of 12 heads", False),
    ):
        found = differences(describe_text(text), describe_text(other), TOLERANCE)
        assert (not found) == same, text
