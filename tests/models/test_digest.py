"""Checkpoints keep their digests: captures, studies and figures of them are found again."""

import pytest

from hgviz.models import open_model
from hgviz.resources import resource
from hgviz.store import open_capture

# of the bundled checkpoints as they were first published; keys of a configuration that come later
# stand in `later` of digest_of, with the values that say nothing
KNOWN = {"softmax": "b6adc29d6186dd60"}


@pytest.mark.parametrize("name", KNOWN)
def test_a_new_key_of_a_configuration_leaves_old_digests_alone(name):
    assert open_model(resource(f"sample/{name}")).spec.digest.startswith(KNOWN[name])


def test_the_bundled_capture_is_of_the_bundled_hourglass():
    capture = open_capture(resource("sample/first.h5"))
    assert open_model(resource("sample/hourglass")).spec.digest == capture.spec.digest
