"""The five tasks of the guide, by the keyboard alone, in a window that nobody sees."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))

import desk  # noqa: E402 - beside the pages
import tasks  # noqa: E402

pytestmark = pytest.mark.soak


@pytest.mark.timeout(600)
@pytest.mark.skipif(bool(desk.missing()), reason="make deps installs what a desk needs")
def test_every_task_is_done_by_the_keyboard_alone(tmp_path):
    with desk.Desk(tmp_path / "home") as here:
        for task in tasks.TASKS:
            assert tasks.do(here, task), task.name
