"""A study that is opened in the window says in a line what it is."""

from __future__ import annotations

import pytest

from hgviz.core import HgvizError, finish
from hgviz.gui import opening
from hgviz.store import write_study
from tests.studying import make_study


def test_a_study_says_what_it_is(tmp_path):
    path = write_study(tmp_path / "a.h5", make_study())
    with pytest.raises(HgvizError, match="a.h5 is a study of heads") as caught:
        finish(opening.look(str(path)))
    assert "made for tests is worth on rows.tsv" in caught.value.why


def test_a_damaged_study_says_that_it_cannot_be_read(tmp_path):
    path = write_study(tmp_path / "a.h5", make_study())
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(HgvizError, match="cannot be read"):
        finish(opening.look(str(path)))
