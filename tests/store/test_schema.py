"""The document of the format is the schema's own, and its examples work without hgviz."""

import re
from pathlib import Path

import numpy as np

from hgviz.store import schema, write_capture, write_study
from tests.making import make_capture
from tests.studying import make_study

DOCUMENT = (Path(__file__).parents[2] / "docs" / "file-format.md").read_text("utf-8")


def test_the_document_says_what_the_schema_says():
    assert schema.__doc__.strip() in DOCUMENT


def test_every_name_of_the_schema_is_in_its_document():
    for table in (schema.PROMPT, schema.SIGNAL, schema.LAZY, schema.RELATIVE, schema.DENSE):
        for name in table:
            assert name.split("/")[-1] in schema.__doc__


def test_the_examples_read_the_same_map_and_scores(tmp_path, monkeypatch):
    capture = make_capture("An example. " * 9, strides=(1, 2), heads=1)
    write_capture(tmp_path / "capture.h5", capture)
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path / "study.h5", make_study())
    without, through, scores = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    names = {}
    exec(without, names)
    np.testing.assert_allclose(names["weights"], capture.maps[0].read(0), atol=1e-5)
    exec(through, names)
    assert (names["weights"] == capture.maps[0].read(0, (0, 512), (0, 512), zoom=1)).all()
    exec(scores, names)
    assert [one["rank"] for one in names["scores"]] == list(range(1, 19))
