"""One function finds what comes with hgviz, wherever hgviz runs from."""

from pathlib import Path

from hgviz import resources


def test_a_checkout_keeps_resources_at_its_root():
    root = Path(resources.__file__).parents[1]
    assert resources.resource("icons") == root / "resources" / "icons"


def test_a_wheel_and_a_bundle_carry_them_inside_the_package(tmp_path, monkeypatch):
    inside = tmp_path / "hgviz" / "resources"
    inside.mkdir(parents=True)
    monkeypatch.setattr(resources, "__file__", str(tmp_path / "hgviz" / "resources.py"))
    assert resources.resource("icons/open.svg") == inside / "icons/open.svg"
