"""What the tests of models share."""

import pytest
import torch

from tests.models import zoo


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Models this small only wait for the second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """folder(kind, class, **changes): the folder of a model of transformers, written once."""

    def make(kind, name, **changes):
        key = (kind, name, repr(changes))
        if key not in written:
            written[key] = zoo.write(tmp_path_factory.mktemp(kind) / kind, kind, name, **changes)
        return written[key]

    written = {}
    return make
