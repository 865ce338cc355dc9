"""No changed file crashes, hangs, fills the memory, reads another file, or shows a traceback."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.soak.fuzzing import KINDS, LONGEST, Tally, open_many, prepare

FEW, MANY = 100, 750  # of all kinds together, of each kind
SEED = 4

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("strangers"))


@pytest.mark.parametrize("group", ["captures", "models", "studies"])
def test_some_changed_files_do_no_harm(places, group):
    tally = Tally()
    open_many(*places, group, SEED, FEW, tally)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.verdicts["refused"] and tally.verdicts["opened"]


def opened(places, kind):
    tally = Tally()
    open_many(*places, kind, SEED, MANY, tally)
    return tally


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_ten_thousand_changed_files_do_no_harm(places, capsys):
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        found = list(workers.map(lambda kind: opened(places, kind), KINDS))
    total = Tally()
    for kind, tally in zip(KINDS, found, strict=True):
        total.verdicts += tally.verdicts
        with capsys.disabled():
            print(
                f"\n{kind:20} {tally.verdicts['opened']:5} opened {tally.verdicts['refused']:5}"
                f" refused, at most {tally.seconds:4.1f} s and {tally.peak} MB",
                end="",
            )
    wrong = [line for tally in found for line in tally.wrong]
    assert not wrong, "\n".join(wrong)
    assert total.verdicts["opened"] + total.verdicts["refused"] >= 10_000
    assert max(tally.seconds for tally in found) <= LONGEST
