"""Files of this version of the format, and the examples of its document."""

import gzip
import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from hgviz.core import HeadId
from hgviz.store import describe, open_capture, schema, write_capture, write_study
from tests.making import make_capture
from tests.studying import make_study

SAMPLES = sorted((Path(__file__).parent / "versions").glob("*.h5.gz"))
# of "Old files open." read by one small hourglass: row 5, column 2 of head 1 and the last row,
# column 0 of head 0, as the program that wrote the oldest file gave them
WEIGHTS = [
    (0.4336826205253601, 0.018167810514569283),
    (0.08381013572216034, 0.04164285212755203),
    (0.249759703874588, 0.09112736582756042),
    (0.7046197056770325, 0.08497990667819977),
    (0.09175395220518112, 0.0767684355378151),
]
LOGITS = [0.04331774, 1.2583278]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda one: one.name)
def test_a_file_opens_and_gives_the_weights_that_its_model_had(tmp_path, sample):
    assert sample.stat().st_size < 60_000
    path = tmp_path / sample.stem
    path.write_bytes(gzip.decompress(sample.read_bytes()))
    with h5py.File(path) as file:
        assert tuple(file.attrs["format_version"]) == schema.CAPTURE_VERSION
    opened = open_capture(path)
    assert opened.complete and opened.prompt.text == "Old files open."
    assert opened.off == {HeadId(0, 1)} and opened.spec.family == "hourglass"
    found = [(one.read(1)[5, 2], one.read(0)[-1, 0]) for one in opened.maps]
    np.testing.assert_allclose(found, WEIGHTS, rtol=1e-5)
    np.testing.assert_allclose(opened.logits[3, :2], LOGITS, rtol=1e-6)
    for one in opened.maps:
        summary = one.summary(1)
        assert summary.peak == pytest.approx(one.read(1).max(), rel=1e-5)
        assert 0 < summary.quantile(0.5) <= summary.quantile(1.0)
    assert describe(path)["complete"] is True


DOCUMENT = (Path(__file__).parents[2] / "docs" / "file-format.md").read_text("utf-8")


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
