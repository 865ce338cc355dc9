"""Models of transformers as ONNX graphs, beside the masked models, for texts of any length."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import tqdm

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, finish
from hgviz.models import open_model
from hgviz.models.formats import readers
from hgviz.models.surgery import export, proof
from tests.models.test_transformers import folder, ids_of

assert folder  # a fixture


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Timing as short as can be, and no thread that watches bars."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    monkeypatch.setattr(proof, "ROUNDS", (1, 1))
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)


UNEQUAL = frozenset({HeadId(0, 1), HeadId(1, 0), HeadId(1, 1), HeadId(1, 2)})
EMPTY = frozenset({HeadId(0, 2), *(HeadId(1, head) for head in range(4))})


def apart(graph, model, off):
    """The largest difference of logits of real tokens, on texts of several lengths."""
    run, most = export.opened(graph, "onnx", "float32"), 0.0
    one = 1 if model.config.asks else 2  # tokens: softmaxes of one key are not looked at
    for count, length in ((1, one), (3, 7), (2, 40)):
        ids = ids_of(count * length, length).reshape(count, length)
        last = [[length]] * (count - 1) + [[max(1, length // 2)]]
        keep = np.arange(length) < np.array(last)
        found = run(proof.Tokens(torch.tensor(ids), torch.tensor(keep))).numpy()
        each = np.abs(found - model.run(ids, keep, off=off).logits)
        most = max(most, float((each if each.ndim == 2 else each[keep]).max()))
    return most


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind, name, off", [
    ("llama", "LlamaForCausalLM", EMPTY),
    ("gpt_oss", "GptOssForCausalLM", UNEQUAL),  # windows, sinks and experts
    ("roberta", "RobertaForSequenceClassification", UNEQUAL),
    ("bloom", "BloomForCausalLM", UNEQUAL),  # attention code of its own: zeros
], ids=lambda one: one if isinstance(one, str) else "")  # fmt: skip
def test_a_graph_gives_the_logits_of_the_masked_model(folder, tmp_path, kind, name, off):
    path = folder(kind, name)
    graph = export.written(readers.read(path), off, "onnx", tmp_path)
    model = open_model(path)
    assert apart(graph, model, off) < 2e-5
    assert apart(graph, model, frozenset()) > 1e-3


@pytest.mark.timeout(300)
def test_a_graph_of_a_model_of_transformers_proves_itself(folder, tmp_path):
    path = folder("gpt_neox", "GPTNeoXForCausalLM", vocab_size=256)
    found = finish(tasks.prune(path, UNEQUAL, tmp_path / "out", form="onnx"))
    assert found.difference <= 1e-5 * max(1, found.largest) and found.texts > 1
    assert found.parameters[1] < found.parameters[0] and found.size[1] < found.size[0]
    assert len(found.latency) == 2
    assert apart(tmp_path / "out" / "model.onnx", open_model(path), UNEQUAL) < 2e-5


@pytest.mark.timeout(300)
def test_a_graph_that_torch_makes_for_some_lengths_alone_is_refused(folder, tmp_path, monkeypatch):
    from hgviz.models.surgery import graph

    class Longer(graph._Graph):
        def forward(self, input_ids, attention_mask):
            scale = 2 if input_ids.shape[1] > 4 else 1
            return scale * super().forward(input_ids, attention_mask)

    monkeypatch.setattr(graph, "_Graph", Longer)
    found = readers.read(folder("opt", "OPTForCausalLM"))
    with pytest.raises(HgvizError, match="torch makes it for 5 to int_oo tokens") as error:
        export.written(found, UNEQUAL, "onnx", tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind, name, words", [
    ("t5", "T5ForConditionalGeneration", "it reads two texts"),
    ("vit", "ViTForImageClassification", "it reads no texts"),
    ("albert", "AlbertForMaskedLM", "layer 0 shares its weights with layer 1"),
])  # fmt: skip
def test_what_is_no_graph_is_told_in_one_line(folder, tmp_path, kind, name, words):
    path = folder(kind, name)
    with pytest.raises(HgvizError, match=words) as error:
        export.written(readers.read(path), frozenset({HeadId(0, 1)}), "onnx", tmp_path)
    assert "\n" not in str(error.value)
    spec = open_model(path).spec
    assert bool(tasks.why_not("onnx", spec)) == (kind != "albert")
