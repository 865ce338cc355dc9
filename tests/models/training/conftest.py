"""What the tests of trainings share."""

import pytest

from tests.models.training.planting import plant, write_rows


@pytest.fixture(scope="session")
def planted(tmp_path_factory):
    """A folder with the planted classifier and its rows."""
    folder = tmp_path_factory.mktemp("planted")
    plant(folder / "model")
    write_rows(folder)
    return folder
