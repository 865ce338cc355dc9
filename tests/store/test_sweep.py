"""The folder of a study of many runs: what is kept, and folders that others made."""

import json
import os

import pytest

from hgviz.core import HgvizError
from hgviz.models import training
from hgviz.store import studies as place
from hgviz.store.studies import SweepFolder, is_sweep
from hgviz.study import Cell
from tests.sweeps import cell, folder_of


@pytest.fixture
def one():
    return cell(1)


@pytest.fixture
def folder(tmp_path, one):
    return folder_of(tmp_path / "study", [one, cell(2, needs=(one,))])


# --- what is kept ---------------------------------------------------------------------------------


def test_a_plan_is_read_as_it_was_written(folder, one):
    cells = folder.cells()
    assert cells[0] == one and cells[1].needs == (one.key,) and is_sweep(folder.path)
    assert folder.cells() == cells and [one.state for one in folder.sweep().standings] == [
        "waiting", "waiting",
    ]  # fmt: skip


def test_a_result_is_read_as_it_was_kept_and_ends_the_snapshot_of_a_training(folder, one):
    assert place.SNAPSHOT == training.STATE
    at = folder.model_at(one.key) / place.SNAPSHOT
    at.parent.mkdir(parents=True)
    at.write_bytes(b"one")
    folder.keep(one.key, {"a": 1}, {"seconds": 2})
    assert folder.found(one.key) == {"a": 1} and folder.sweep().standings[0].seconds == 2
    assert not at.exists()


def test_failed_cells_are_forgiven(folder, one):
    folder.fail(one.key, "it cannot be", "Traceback")
    first, second = folder.sweep().standings
    assert (first.state, first.line) == ("failed", "it cannot be")
    assert (second.state, second.line) == ("blocked", "do: seed 1 failed")
    assert folder.forgive() == 1 and folder.sweep().counts == {"waiting": 2}


# --- disks ----------------------------------------------------------------------------------------


def test_a_full_disk_leaves_what_is_done(folder, one, monkeypatch):
    def full(*_, **more):
        raise OSError(28, "No space left on device")

    folder.keep(one.key, {"a": 1}, {})
    other = folder.cells()[1]
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HgvizError, match="disk is full.*what is done is kept"):
        folder.keep(other.key, {}, {})
    with pytest.raises(HgvizError, match="disk is full"):
        folder.write_plan("", [])
    monkeypatch.undo()
    assert [one.state for one in folder.sweep().standings] == ["done", "waiting"]
    assert not list(folder.path.rglob("*.tmp"))


# --- strangers ------------------------------------------------------------------------------------

ROW = {"key": "a" * 24, "work": "w", "given": {}, "needs": [], "paths": {}, "place": {}}
HEAD = {"format": "hgviz-sweep", "format_version": [1, 0]}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "damaged"), (b"{", "damaged"), (b"\xff\xfe\x00", "damaged"), (b"[]", "damaged"),
        (b"{}", "no plan"), (b'{"format": 3}', "damaged"), (b"[" * 100_000, "damaged"),
        ({"format": "hgviz-sweep"}, "version 0"), ({**HEAD, "format_version": [2, 0]}, "version 2"),
        ({**HEAD, "format_version": "1"}, "damaged"), (HEAD, "damaged.*cells"),
        ({**HEAD, "cells": {}}, "damaged"), ({**HEAD, "cells": [3]}, "damaged"),
        ({**HEAD, "cells": [{}]}, "damaged.*work"),
        ({**HEAD, "cells": [ROW | {"key": "../../../../etc/passwd"}]}, "damaged.*key"),
        ({**HEAD, "cells": [ROW | {"key": "a" * 24 + "\n"}]}, "damaged.*key"),
        ({**HEAD, "cells": [ROW | {"key": 3}]}, "damaged.*key"),
        ({**HEAD, "cells": [ROW | {"needs": ["../x"]}]}, "damaged.*needs"),
        ({**HEAD, "cells": [ROW | {"place": {"seed": []}}]}, "damaged.*place"),
        ({**HEAD, "cells": [ROW | {"paths": 3}]}, "damaged.*paths"),
        ({**HEAD, "cells": [ROW, ROW]}, "damaged.*twice"),
        (b'{"format": "hgviz-sweep", "format_version": [1, 0], "cells": [], "x": NaN}', "damaged"),
    ],
)  # fmt: skip
def test_a_plan_of_a_stranger_is_told_in_one_line(tmp_path, content, why):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(HgvizError, match=f"(?s){why}") as told:
        SweepFolder(tmp_path).sweep()
    assert "\n" not in str(told.value)


def test_a_plan_that_is_endless_is_not_read(folder, monkeypatch):
    monkeypatch.setattr(place, "PLAN_LIMIT", 100)
    with pytest.raises(HgvizError, match="is larger than"):
        folder.sweep()
    with pytest.raises(HgvizError, match="the plan of 1 cells is larger"):
        folder.write_plan("", [Cell("w", {"x": "x" * 100})])


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"3", b"[]", b'{"found": 3}', b'{"found": {}, "made": 3}', b"[" * 99999],
)
def test_a_result_of_a_stranger_is_told_in_one_line(folder, one, content):
    folder.result_at(one.key).write_bytes(content)
    with pytest.raises(HgvizError, match=f"{one.key}.json is damaged.*run the study again") as told:
        folder.sweep()
    assert "\n" not in str(told.value)


def test_numbers_of_a_stranger_are_numbers(folder, one):
    for wrong in ('"x"', "NaN", "-1", "1e999", "[]", "9" * 4000, "null", "true"):
        content = f'{{"found": {{}}, "made": {{"seconds": {wrong}, "host": []}}}}'
        folder.result_at(one.key).write_text(content)
        assert 0 <= folder.sweep().standings[0].seconds <= 1


@pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX systems")
def test_nothing_outside_of_the_folder_is_read_and_nothing_is_waited_for(tmp_path, folder, one):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{one.key}.json").write_text('{"found": {"secret": 1}, "made": {}}')
    result = folder.result_at(one.key)
    result.symlink_to(outside / f"{one.key}.json")
    with pytest.raises(HgvizError, match="it is a link"):
        folder.sweep()
    result.unlink()
    os.mkfifo(result)
    with pytest.raises(HgvizError, match="it is no file"):
        folder.sweep()
    result.unlink()
    result.parent.rmdir()
    result.parent.symlink_to(outside)
    assert folder.sweep().counts == {"waiting": 2}
    for name in ("plan.json", "study.toml"):
        before = (folder.path / name).read_bytes()
        (folder.path / name).unlink()
        os.mkfifo(folder.path / name)
        with pytest.raises(HgvizError, match="it is no file"):
            folder.sweep()
        assert name == "study.toml" or not is_sweep(folder.path)
        (folder.path / name).unlink()
        (folder.path / name).symlink_to(outside / f"{one.key}.json")
        with pytest.raises(HgvizError, match="it is a link"):
            folder.sweep()
        (folder.path / name).unlink()
        (folder.path / name).write_bytes(before)


def test_a_folder_without_a_plan_is_none(tmp_path):
    with pytest.raises(HgvizError, match="is not the folder of a study.*no plan.json"):
        SweepFolder(tmp_path).sweep()
    with pytest.raises(HgvizError, match="is not the folder of a study"):
        SweepFolder(tmp_path / "nothing").sweep()
    assert not is_sweep(tmp_path) and not is_sweep(tmp_path / "nothing")
