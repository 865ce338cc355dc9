"""The comparison of golden outputs notices a fault and lets rounding pass."""

import pytest

from hgviz.maps import LazyMap
from hgviz.store import write_capture
from tests.golden.run import describe_file, describe_text, differences

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


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ("entropy 0.12345678", "entropy 0.12345699", True),
        ("entropy 0.1234567", "entropy 0.1235567", False),
        ("0.831 of 12 tokens", "0.832 of 12 tokens", True),  # one unit of the last digit
        ("0.831 of 12 tokens", "0.831 of 13 tokens", False),
        ("0.831 of 12 tokens", "0.831 of 12 heads", False),
    ],
)
def test_numbers_of_texts_are_compared_by_their_digits(text, other, same):
    assert (not differences(describe_text(text), describe_text(other), TOLERANCE)) == same
