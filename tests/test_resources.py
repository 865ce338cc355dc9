"""One function finds what comes with hgviz, wherever hgviz runs from."""

from pathlib import Path

import pytest

from hgviz import resources


def test_a_checkout_keeps_resources_at_its_root():
    root = Path(resources.__file__).parents[1]
    assert resources.resource("icons") == root / "resources" / "icons"


def test_a_wheel_and_a_bundle_carry_them_inside_the_package(tmp_path, monkeypatch):
    inside = tmp_path / "hgviz" / "resources"
    inside.mkdir(parents=True)
    monkeypatch.setattr(resources, "__file__", str(tmp_path / "hgviz" / "resources.py"))
    assert resources.resource("icons/open.svg") == inside / "icons/open.svg"


@pytest.mark.parametrize("name", ["sample/hourglass", "sample/first.h5", "sample/reviews.tsv"])
def test_what_comes_with_hgviz_is_named_from_every_folder(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resources.bundled(name) == resources.resource(name)
    assert resources.bundled(Path(name)).exists()


def test_a_file_of_the_reader_goes_before_what_comes_with_hgviz(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").mkdir()
    (tmp_path / "sample/first.h5").symlink_to(
        tmp_path / "gone.h5"
    )  # also a link that leads nowhere
    assert resources.bundled("sample/first.h5") == Path("sample/first.h5")
    assert resources.bundled("sample/hourglass") == resources.resource("sample/hourglass")


@pytest.mark.parametrize(
    "name", ["sample/none", "sample/../icons", "icons/open.svg", "my.h5", "", "/sample/first.h5"]
)
def test_other_names_stay_what_they_are(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resources.bundled(name) == Path(name)


def test_every_door_knows_the_bundled_names(tmp_path, monkeypatch, capsys):
    import hgviz
    from hgviz.cli import Window, main

    monkeypatch.chdir(tmp_path)
    assert main(["info", "sample/first.h5"], Window(lambda path: 0, lambda: 0)) == 0
    assert main(["info", "sample/six"], Window(lambda path: 0, lambda: 0)) == 0
    assert "family: yubert" in capsys.readouterr().out
    assert len(hgviz.figure("sample/first.h5").capture.main) == 136
