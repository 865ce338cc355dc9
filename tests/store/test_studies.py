"""Studies on disk, and folders of studies of many runs: what was written is read, or refused."""

import errno
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgviz.core import HeadId, HgvizError
from hgviz.models import training
from hgviz.store import is_capture, is_study, open_study, schema, studies, write_study
from hgviz.store.studies import SweepFolder, is_sweep
from hgviz.study import Cell
from tests.store.samples import same
from tests.studying import OPTIONAL, cell, folder_of, make_study

STUDIES = Path(__file__).parent / "studies"
TIMES = [[1.730953, 1.049186], [1.919801, 1.558168], [1.401688, 1.147349], [1.392633, 1.254712]]


# --- round trips ----------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    examples=st.integers(1, 40),
    asked=st.sampled_from(["classes", "next", "masked"]),
    done=st.floats(0, 1),
    without=st.sets(st.sampled_from(OPTIONAL)),
    off=st.sets(st.sampled_from([(0, 0), (3, 1)])),
    curves=st.integers(0, 3),
)
def test_what_was_written_is_read(tmp_path_factory, **keys):
    path = tmp_path_factory.mktemp("study") / "a.h5"
    one = make_study(**keys)
    write_study(path, one)
    same(one, open_study(path))
    assert is_study(path) and not is_capture(path)


def test_what_is_infinite_is_not_measured(tmp_path):
    one = make_study()
    gradient, loss = one.arrays["gradient"].copy(), one.loss.copy()
    gradient[2, 1] = loss[3] = np.inf
    written = replace(one, arrays={**one.arrays, "gradient": gradient}, loss=loss)
    opened = open_study(write_study(tmp_path / "a.h5", written))
    assert (
        np.isnan(opened.arrays["gradient"][2, 1]) and np.isnan(opened.arrays["gradient"]).sum() == 1
    )
    assert list(opened.answered) == [at != 3 for at in range(len(loss))]


def full(*_, **options):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_file_that_is_there_is_touched_only_by_force_and_only_where_there_is_room(
    tmp_path, monkeypatch
):
    path = write_study(tmp_path / "a.h5", make_study())
    before = path.read_bytes()
    with pytest.raises(HgvizError, match="already exists"):
        write_study(path, make_study(1))
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(HgvizError, match="disk is full"):
            write_study(path, make_study(1), force=True)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    write_study(path, make_study(1), force=True)
    same(make_study(1), open_study(path))
    with pytest.raises(HgvizError, match="is a folder"):
        write_study(tmp_path, make_study(1), force=True)


def test_a_study_of_every_version_opens_and_says_what_it_said(tmp_path):
    major, minor = schema.STUDY_VERSION
    found = []
    for number in range(minor + 1):
        path = tmp_path / f"{number}.h5"
        path.write_bytes(gzip.decompress((STUDIES / f"{major}.{number}.h5.gz").read_bytes()))
        found.append(open_study(path))
    opened = found[0]
    assert list(opened.places) == [0, 3, 3, 6, 8, 10, 13, 16] and opened.asked == "next"
    assert opened.measured()["gradient"] == 5 / 7 and opened.off == {HeadId(0, 1)}
    assert np.nansum(opened.arrays["loss_change"]) == pytest.approx(-8.537521, rel=1e-5)
    assert np.nansum(opened.arrays["gradient"]) == pytest.approx(2.3058913, rel=1e-5)
    assert list(opened.given[:4]) == [60, 250, 66, 213]
    one = opened.curves[0]
    assert one.order[:2] == (HeadId(4, 1), HeadId(4, 0)) and one.seed == 7
    np.testing.assert_allclose(one.values, [0.87975883, 0.62339, 0.06349824, 0.5509554], rtol=1e-6)
    assert opened.masks[2].score.high == np.inf and opened.learned[0].method == "gates"
    assert [one.change for one in found[1].masks] == [None, (0.1, -0.05, 0.2), None]
    timed = [one.times for one in found[2].curves]
    assert [one is None for one in timed] == [False, True]
    np.testing.assert_allclose(timed[0], TIMES, rtol=1e-6)
    assert found[2].texts == 0 and (found[3].texts, found[3].amount()) == (3, "7 examples")
    assert found[4].saved_flops.shape == (18, 3)
    assert [one.ablation for one in found] == ["zero"] * 5 + ["mean"]


# --- the folder of a study of many runs -----------------------------------------------------------


@pytest.fixture
def one():
    return cell(1)


@pytest.fixture
def folder(tmp_path, one):
    return folder_of(tmp_path / "study", [one, cell(2, needs=(one,))])


def test_what_was_planned_and_kept_is_read(folder, one):
    cells = folder.plan().cells
    assert cells[0] == one and cells[1].needs == (one.key,) and is_sweep(folder.path)
    assert folder.sweep().counts == {"waiting": 2}
    folder.fail(one.key, "it cannot be", "Traceback")
    first, second = folder.sweep().standings
    assert (first.state, first.line) == ("failed", "it cannot be")
    assert (second.state, second.line) == ("blocked", "do: seed 1 failed")
    assert folder.forgive() == 1 and folder.sweep().counts == {"waiting": 2}
    assert studies.SNAPSHOT == training.STATE
    at = folder.model_at(one.key) / studies.SNAPSHOT
    at.parent.mkdir(parents=True)
    at.write_bytes(b"one")
    folder.keep(one.key, {"a": 1, "b": float("nan")}, {"seconds": 2})
    assert folder.found(one.key)["a"] == 1 and folder.sweep().standings[0].seconds == 2
    assert not at.exists()


def test_a_full_disk_leaves_what_is_done(folder, one, monkeypatch):
    folder.keep(one.key, {"a": 1}, {})
    other = folder.plan().cells[1]
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HgvizError, match="disk is full.*finished runs are saved"):
        folder.keep(other.key, {}, {})
    with pytest.raises(HgvizError, match="disk is full"):
        folder.write_plan("", [])
    monkeypatch.undo()
    assert [one.state for one in folder.sweep().standings] == ["done", "waiting"]
    assert not list(folder.path.rglob("*.tmp"))


# --- strangers ------------------------------------------------------------------------------------

ROW = {"key": "a" * 24, "work": "w", "given": {}, "needs": [], "paths": {}, "place": {}}
HEAD = {"format": "hgviz-sweep", "format_version": [1, 0]}


@pytest.mark.parametrize(("content", "why"), [
    (b"", "damaged"), (b"\xff\xfe\x00", "damaged"), (b"{}", "not the plan"),
    (b'{"format": 3}', "damaged"), (b"[" * 100_000, "damaged"),
    ({"format": "hgviz-sweep"}, "version 0"), ({**HEAD, "format_version": [2, 0]}, "version 2"),
    (HEAD, "damaged.*cells"), ({**HEAD, "cells": [{}]}, "damaged.*work"),
    ({**HEAD, "cells": [ROW | {"key": "../../../../etc/passwd"}]}, "damaged.*key"),
    ({**HEAD, "cells": [ROW | {"key": "a" * 24 + "\n"}]}, "damaged.*key"),
    ({**HEAD, "cells": [ROW | {"needs": ["../x"]}]}, "damaged.*needs"),
    ({**HEAD, "cells": [ROW | {"place": {"seed": []}}]}, "damaged.*place"),
    ({**HEAD, "cells": [ROW, ROW]}, "damaged.*twice"),
    (b'{"format": "hgviz-sweep", "format_version": [1, 0], "cells": [], "x": NaN}', "damaged"),
])  # fmt: skip
def test_a_plan_of_a_stranger_is_told_in_one_line(tmp_path, content, why):
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(HgvizError, match=f"(?s){why}") as told:
        SweepFolder(tmp_path).sweep()
    assert "\n" not in str(told.value)


def test_a_plan_that_is_endless_is_not_read(folder, monkeypatch):
    plan = replace(studies.FOLDER["plan.json"], limit=100)
    monkeypatch.setitem(studies.FOLDER, "plan.json", plan)
    with pytest.raises(HgvizError, match="is larger than"):
        folder.sweep()
    with pytest.raises(HgvizError, match="the plan of 1 runs is too large"):
        folder.write_plan("", [Cell("w", {"x": "x" * 100})])


@pytest.mark.parametrize("content", [
    b"", b"\xff", b"3", b'{"found": 3}', b'{"found": {}, "made": 3}', b"[" * 99999,
])  # fmt: skip
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
    with pytest.raises(HgvizError, match="it is not a regular file"):
        folder.sweep()
    result.unlink()
    result.parent.rmdir()
    result.parent.symlink_to(outside)
    assert folder.sweep().counts == {"waiting": 2}
    makes = {"not a regular file": os.mkfifo, "a link": lambda path: path.symlink_to(outside)}
    for name in ("plan.json", "study.toml"):
        path = folder.path / name
        before = path.read_bytes()
        for why, make in makes.items():
            path.unlink()
            make(path)
            with pytest.raises(HgvizError, match=f"it is {why}"):
                folder.sweep()
            assert name == "study.toml" or not is_sweep(folder.path)
        path.unlink()
        path.write_bytes(before)
