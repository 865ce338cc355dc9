"""The folder of a study of many runs: tries, what is kept, and folders that others made."""

import json
import os
import socket
import time

import pytest

from hgviz.core import HgvizError
from hgviz.models import training
from hgviz.store import sweep as place
from hgviz.store.sweep import SweepFolder, is_sweep
from hgviz.store.tries import ALIVE
from hgviz.sweep import Cell
from tests.sweeping import cell, folder_of


@pytest.fixture
def one():
    return cell(1)


@pytest.fixture
def folder(tmp_path, one):
    return folder_of(tmp_path / "study", [one, cell(2, needs=(one,))])


def of_another(folder, one, **told):
    """What a try of another process said."""
    path = folder.result_at(one.key, ".running.json")
    said = {"tries": 1, "mark": "", "share": 0.5, "note": "", "line": "", "time": time.time()}
    path.write_text(json.dumps({**said, "host": "another machine", "pid": 1, **told}))
    return path


# --- tries ----------------------------------------------------------------------------------------


def test_a_plan_is_read_as_it_was_written(folder, one):
    cells = folder.cells()
    assert cells[0] == one and cells[1].needs == (one.key,) and is_sweep(folder.path)
    assert folder.cells() == cells and [one.state for one in folder.sweep().standings] == [
        "waiting", "waiting",
    ]  # fmt: skip


def test_only_one_process_takes_a_cell(folder, one):
    of_another(folder, one)
    assert folder.begin(one.key) == 0 and folder.sweep().standings[0].state == "running"


@pytest.mark.parametrize(
    ("told", "tries"),
    [({"time": time.time() - 2 * ALIVE}, 2), ({"line": "it failed"}, 2), ({"time": "soon"}, 2),
     ({"host": socket.gethostname(), "pid": 2**22 + 1}, 2), ({"tries": "x", "line": "x"}, 1),
     ({"host": socket.gethostname(), "pid": 2**22 + 1, "run": 2**22 + 1}, 2),
     ({"host": socket.gethostname(), "pid": 2**22 + 1, "run": os.getpid()}, 2),
     ({"host": socket.gethostname(), "pid": 2**22 + 1, "run": 2**22 + 2}, 1),
     ({"host": socket.gethostname(), "pid": 2**22 + 1, "run": 2**22 + 2, "line": "x"}, 2),
     ({"host": socket.gethostname(), "pid": 2**22 + 1, "run": 1, "tries": 0}, 1),
     ({"time": 0, "tries": 10**400}, 1), ({"time": 0, "tries": -5}, 1),
     ({"time": 0, "mark": 3}, 1)],
)  # fmt: skip
def test_a_cell_whose_try_is_over_is_taken(folder, one, told, tries):
    of_another(folder, one, **told)
    assert folder.sweep().standings[0].state == "waiting"
    assert folder.begin(one.key) == tries and folder.sweep().standings[0].state == "running"


def test_a_word_that_was_cut_off_holds_a_cell_for_a_while(folder, one):
    path = of_another(folder, one)
    path.write_text("")
    assert folder.begin(one.key) == 0
    os.utime(path, (1, 1))
    assert folder.begin(one.key) == 1


def test_tries_are_counted_and_one_that_was_stopped_is_not(folder, one):
    assert folder.begin(one.key) == 1
    folder.beat(one.key, 1, 0.3, "far", "it failed")
    assert folder.begin(one.key) == 2
    folder.release(one.key)
    assert folder.begin(one.key) == 2
    folder.beat(one.key, 2, 0.0, "", "it failed")
    assert folder.begin(one.key) == 3
    folder.keep(one.key, {"a": 1}, {"seconds": 2})
    assert folder.found(one.key) == {"a": 1} and folder.sweep().standings[0].seconds == 2
    assert not folder.result_at(one.key, ".running.json").exists()


def test_what_another_process_does_is_not_given_back(folder, one):
    path = of_another(folder, one)
    folder.release(one.key)
    assert path.exists()


def test_a_newer_snapshot_begins_the_count_again(folder, one):
    assert place.SNAPSHOT == training.STATE
    at = folder.model_at(one.key) / place.SNAPSHOT
    at.parent.mkdir(parents=True)
    assert folder.begin(one.key) == 1
    assert folder.begin(one.key) == 2
    at.write_bytes(b"one")
    assert folder.begin(one.key) == 1
    assert [folder.begin(one.key) for _ in range(3)] == [2, 3, 4]
    folder.keep(one.key, {}, {})
    assert not at.exists()


def test_given_up_cells_are_forgiven(folder, one):
    folder.begin(one.key)
    folder.fail(one.key, 3, "it cannot be", "Traceback")
    first, second = folder.sweep().standings
    assert (first.state, first.line, first.tries) == ("failed", "it cannot be", 3)
    assert (second.state, second.line) == ("blocked", "do: seed 1 failed")
    assert folder.forgive() == 1 and folder.sweep().counts == {"waiting": 2}


# --- disks ----------------------------------------------------------------------------------------


def test_a_full_disk_leaves_what_is_done_and_no_try_that_lasts(folder, one, monkeypatch):
    def full(*_, **more):
        raise OSError(28, "No space left on device")

    folder.keep(one.key, {"a": 1}, {})
    other = folder.cells()[1]
    monkeypatch.setattr(place, "word", full)
    with pytest.raises(HgvizError, match="disk is full.*what is done is kept"):
        folder.begin(other.key)
    monkeypatch.undo()
    assert folder.begin(other.key) == 1
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HgvizError, match="disk is full"):
        folder.keep(other.key, {}, {})
    with pytest.raises(HgvizError, match="disk is full"):
        folder.write_plan("", [])
    monkeypatch.undo()
    assert [one.state for one in folder.sweep().standings] == ["done", "running"]
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
        ({**HEAD, "cells": [{}]}, "damaged.*key"),
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
    monkeypatch.setattr(place, "MOST_PLAN", 100)
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
        assert 0 <= folder.sweep().standings[0].seconds <= 1 and folder.sweep().left is not None


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
