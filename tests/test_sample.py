"""The sample: what its card says is so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis import heads
from hgviz.core import HeadId, finish
from hgviz.models.training import bits_per_byte
from hgviz.resources import resource
from hgviz.store import open_capture

HELD_OUT = Path(__file__).parents[2] / "shared/data/text/wikitext2-valid.txt"
NAMED = {  # head: its role and the least share of its weight there, as in the card
    HeadId(7, 1): ("previous position", 0.95),
    HeadId(11, 0): ("current word", 0.85),
    HeadId(11, 2): ("last comma or full stop", 0.45),
    HeadId(12, 1): ("previous letter", 0.45),
    HeadId(2, 1): ("spaces", 0.85),
}


@pytest.fixture(scope="module")
def model():
    return finish(tasks.load(resource("sample/hourglass"), "cpu"))


@pytest.fixture(scope="module")
def first():
    return open_capture(resource("sample/first.h5"))


def test_it_has_three_resolutions_and_attends_between_them(model):
    assert [level.stride for level in model.spec.levels] == [1, 2, 4]
    between = [layer for layer in model.spec.layers if layer.role in ("down", "up")]
    assert [layer.name for layer in between] == ["down.0", "down.1", "up.1", "up.0"]
    assert all(layer.window is None for layer in between)


def test_it_is_at_most_16_megabytes():
    size = (resource("sample/hourglass") / "model.safetensors").stat().st_size
    assert size <= 16e6


@pytest.mark.skipif(not HELD_OUT.exists(), reason="the held-out text is not on this machine")
def test_it_predicts_held_out_text(model):
    text = torch.frombuffer(bytearray(HELD_OUT.read_bytes()[:98_304]), dtype=torch.uint8)
    assert bits_per_byte(model.module, text, 1024) <= 1.95


@pytest.mark.skipif(not HELD_OUT.exists(), reason="the held-out text is not on this machine")
def test_it_reads_4096_bytes_as_well_as_short_texts(model):
    text = torch.frombuffer(bytearray(HELD_OUT.read_bytes()[: 4 * 4096 + 1]), dtype=torch.uint8)
    short, long = bits_per_byte(model.module, text, 512), bits_per_byte(model.module, text, 4096)
    assert long < short + 0.2


def test_the_first_capture_is_of_these_weights(model, first):
    assert first.spec.digest == model.spec.digest
    again = finish(tasks.capture(model, first.prompt))
    np.testing.assert_allclose(again.logits, first.logits, atol=1e-4)
    for layer in (0, 2, 7, 10, 12):
        here, there = again.maps[layer].read(3), first.maps[layer].read(3)
        np.testing.assert_allclose(here, there, atol=1e-5)


def test_the_first_capture_opens_without_torch():
    code = (
        "import sys; from hgviz.resources import resource; from hgviz.store import open_capture;"
        "open_capture(resource('sample/first.h5')).maps[0].read(0);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("head", NAMED, ids=str)
def test_a_head_of_the_card_does_what_the_card_says(first, head):
    role, least = NAMED[head]
    fact = finish(heads.measure(first))[head]
    assert (fact.role, fact.score >= least) == (role, True)
