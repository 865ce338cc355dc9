"""The demo and the selftest, off screen."""

import pytest

from hgviz.gui import selftest as proof
from hgviz.gui.samples import FIRST, SAMPLE
from hgviz.resources import resource

needs_sample = pytest.mark.skipif(
    not resource(FIRST).exists() or not resource(SAMPLE).exists(),
    reason="the sample is not there",
)


@needs_sample
def test_the_demo_leaves_its_work_and_says_what_it_did(app, tmp_path, capsys):
    assert proof.demo(tmp_path / "new" / "demo") == 0
    found = {path.name for path in (tmp_path / "new" / "demo").iterdir()}
    assert found == {"demo.h5", "window.png", "map.pdf", "levels.pdf"}
    said = capsys.readouterr().out
    assert "1:1, 1:2, 1:4" in said and "clearest head" in said


@needs_sample
def test_the_demo_can_be_done_twice_into_the_same_folder(app, tmp_path):
    assert proof.demo(tmp_path) == proof.demo(tmp_path) == 0


@pytest.mark.parametrize("kind", ["file", "below a file"])
def test_a_folder_that_cannot_be_written_is_one_line(tmp_path, capsys, kind):
    path = tmp_path / "taken"
    path.write_text("not a folder")
    assert proof.demo(path if kind == "file" else path / "demo") == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "taken" in said


@needs_sample
def test_the_selftest_passes(app, capsys):
    assert proof.selftest() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "Everything works"
    assert all(line.startswith("ok") for line in lines[:-1])


def test_the_selftest_goes_on_after_a_failure_and_says_so(monkeypatch, capsys):
    def broken():
        raise FileNotFoundError("icons")

    monkeypatch.setattr(proof, "_checks", lambda folder: [("one", broken), ("two", lambda: "fine")])
    assert proof.selftest() == 1
    assert capsys.readouterr().out.splitlines() == [
        "FAILED  one: FileNotFoundError: icons",
        "ok      two: fine",
        "1 failed",
    ]


@needs_sample
@pytest.mark.parametrize("mode", ["inspect", "follow", "prune"])
@pytest.mark.parametrize("dark", [False, True])
def test_the_first_picture_needs_no_model_in_any_mode_and_theme(app, mode, dark):
    image = proof.window_picture(resource(FIRST), dark, mode)
    ground = image.pixelColor(image.width() - 6, image.height() - 200).lightness()
    assert (ground < 80) == dark
