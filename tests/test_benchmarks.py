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


def test_a_part_gives_its_rows_and_a_failing_or_slow_part_is_named(table, tmp_path):
    (tmp_path / "shown.py").write_text(
        f"import sys, time; sys.path.insert(0, {str(FOLDER)!r})\n"
        "from table import line\n"
        "line('a ratio', '1.50', '1.3')\n"
        "time.sleep(60) if sys.argv[1] == 'slow' else sys.exit(3)\n"
    )
    run_part = table["run_part"]
    run_part.__globals__["__file__"] = str(tmp_path / "table.py")
    row = "| a ratio | 1.50 | 1.3 | **NO** |\n"
    assert run_part("shown", "wrong", 60) == (row, "wrong ended with code 3")
    assert run_part("shown", "slow", 2) == (row, "slow was stopped after 0 minutes")


def test_the_table_counts_the_limits_and_names_what_was_not_measured(table, capsys, monkeypatch):
    results = {
        "tiles": ("| a | 2 | 1 | **NO** |\n| b | 1 | 2 | yes |\n", ""),
        "texts": ("", "it ended"),
    }
    monkeypatch.setitem(table["main"].__globals__, "run_part", lambda _, part, __: results[part])
    monkeypatch.setattr(sys, "argv", ["table.py", *results])
    assert table["main"]() == 1
    text = capsys.readouterr().out
    assert "| a | 2 | 1 | **NO** |" in text
    assert text.endswith("\n1 limits hold, 1 do not.\nNot measured: it ended.\n")


def test_every_part_of_the_table_is_in_its_script(table):
    for script, (short, long) in table["PARTS"].items():
        text = (FOLDER / f"{script}.py").read_text()
        for part in short + long:
            assert f"{part}={part}" in text or part == "types", (script, part)
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts == {*table["PARTS"], "table"}


@pytest.fixture
def device(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", ["device.py"])
    found = runpy.run_path(str(FOLDER / "device.py"))
    found["main"].__globals__.update(ROUNDS=1, DEVICE="cpu")
    return found


def test_without_a_gpu_its_figures_are_left_out_in_one_line(device, capsys):
    device["main"]()
    assert capsys.readouterr().out.startswith("skipped: ")


@pytest.mark.parametrize("peaked", [False, True])
def test_a_survey_by_torch_is_near_numpys(device, capsys, peaked):
    device["compare_surveys"](600, peaked)
    lines = capsys.readouterr().out.splitlines()
    name, value = lines[-1].split("|")[1:3]
    assert len(lines) == 3 and "weights of torch off numpy's" in name
    # scores of a peaked head are large, and so is what products round differently of them
    assert float(value) < (1e-4 if peaked else 1e-5)


def test_maps_of_a_device_differ_no_more_than_a_finer_format_does(device, capsys, tmp_path):
    device["write_decoder"](tmp_path, device["Text"](48, 1, 1))
    for dtype, finer in (("float32", "float64"), ("bfloat16", "float32")):
        device["compare_maps"](tmp_path, dtype, finer, 48)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert all(line.endswith("| yes |") for line in lines)


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
