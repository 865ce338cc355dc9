"""What captures of long texts hold and compute."""

import tracemalloc

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from hgviz import tasks
from hgviz.maps import TILE, LazyMap
from hgviz.models import open_model
from hgviz.models.attention import ROWS
from hgviz.models.huggingface import Transformers
from tests.models.zoo import write

KERNEL = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
TOKENS, HEADS, LAYERS, WINDOW = 8192, 4, 2, 300


class Watch(TorchDispatchMode):
    """Keeps the size of the largest tensor that any operation gives, and counts cells of maps."""

    def __init__(self):
        super().__init__()
        self.largest, self.cells = 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else (found,):
            # an expanded tensor is no larger than what it was expanded from
            if isinstance(one, torch.Tensor) and one.device.type == "cpu":
                self.largest = max(self.largest, one.untyped_storage().nbytes())
        if func is KERNEL:
            q, k = args[:2]
            self.cells += q.shape[:-1].numel() * k.shape[-2]
        return found


@pytest.fixture
def watch(monkeypatch):
    """A Watch that is on in every pass of a model of transformers, in whatever thread it runs."""
    seen, logits = Watch(), Transformers.compute

    def watched(self, tokens, running):
        with seen:
            return logits(self, tokens, running)

    monkeypatch.setattr(Transformers, "compute", watched)
    return seen


@pytest.fixture
def tiles(monkeypatch):
    """The tiles (place, i, j) of maps whose weights were asked for."""
    asked, logs = [], LazyMap.logs

    def counted(self, place, i, j):
        asked.append((place, i, j))
        return logs(self, place, i, j)

    monkeypatch.setattr(LazyMap, "logs", counted)
    return asked


def captured(tmp_path, watch, kind, name, **changes):
    """A capture to a file of a random text; also how many bytes numpy held at most."""
    sizes = {"max_position_embeddings": TOKENS, "head_dim": 8, "num_attention_heads": HEADS}
    model = open_model(write(tmp_path / "model", kind, name, **sizes, **changes))
    ids = np.random.default_rng(0).integers(0, 120, TOKENS)
    watch.largest = watch.cells = 0
    tracemalloc.start()
    try:
        found = tasks.capture(model, model.from_ids(ids), tmp_path / "a.h5")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return found, most


def test_no_part_of_a_capture_is_as_large_as_a_map(tmp_path, watch, tiles):
    found, most = captured(tmp_path, watch, "llama", "LlamaForCausalLM")
    factors = found.maps[0].factors
    assert factors.q.shape == (HEADS, TOKENS, 8) and factors.k.stored.shape[0] == 2
    one = TOKENS * TOKENS  # cells of one head
    assert 4 * TOKENS * 120 <= watch.largest < 4 * one // 50  # bytes: those of logits are seen
    assert most < 4 * one // 8  # all that numpy held at the same time
    # the kernel was asked for each head once, and every tile under the diagonal was looked at
    assert watch.cells == LAYERS * HEADS * one
    blocks = TOKENS // TILE
    assert len(tiles) == LAYERS * HEADS * blocks * (blocks + 1) // 2


def test_of_a_window_only_what_it_shows_is_computed(tmp_path, watch, tiles):
    found, _ = captured(
        tmp_path, watch, "mistral", "MistralForCausalLM", sliding_window=WINDOW,
    )  # fmt: skip
    assert found.maps[1].factors.rule.band == (WINDOW - 1, 0)
    assert 0 < watch.cells <= LAYERS * HEADS * TOKENS * (WINDOW + ROWS)
    assert watch.largest < 4 * TOKENS * TOKENS // 50
    across = -(-WINDOW // TILE) + 1  # tiles that the rows of one meet
    assert len(tiles) <= LAYERS * HEADS * TOKENS // TILE * across
    row = found.maps[1].read(3, (5000, 5001))[0]
    assert np.flatnonzero(row).tolist() == list(range(5001 - WINDOW, 5001))
    assert row.sum() == pytest.approx(1, abs=1e-6)
