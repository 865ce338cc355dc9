"""Graphs of heads that the fused kernel does not attend for: other activations, shared queries."""

from __future__ import annotations

import pytest
import tqdm

from hgviz.core import finish
from hgviz.resources import bundled
from hgviz.tasks import prune
from tests.models.test_removal import KINDS

pytestmark = pytest.mark.soak


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", ["shared", "ymish"])
def test_a_graph_gives_the_same_logits(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(
        tqdm.tqdm, "monitor_interval", 0
    )  # a bar of torch's exporter starts a thread
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    path = bundled("sample/ymish") if kind == "ymish" else KINDS[kind](tmp_path / "whole")
    found = finish(prune(path, "0.1", tmp_path / "out", form="onnx"))
    assert found.difference <= 1e-5 * max(1, found.largest)
