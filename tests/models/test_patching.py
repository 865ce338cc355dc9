"""Activation patching equals a loop over heads with hooks on the model in transformers."""

import numpy as np
import pytest
import torch
import transformers

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.models import open_model

CLEAN, CORRUPTED, ANSWER, WRONG = [3, 5, 7, 3, 5], [4, 5, 8, 3, 6], 7, 9
CONFIGS = {
    "gpt2": transformers.GPT2Config(
        vocab_size=20, n_embd=24, n_layer=2, n_head=3, n_positions=16, bos_token_id=1,
        eos_token_id=1,
    ),
    "llama": transformers.LlamaConfig(
        vocab_size=20, hidden_size=32, intermediate_size=48, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=16,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=CONFIGS)
def models(request, tmp_path_factory):
    """A model in transformers, in float64, and the same model open."""
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("patched") / request.param
    net = transformers.AutoModelForCausalLM.from_config(CONFIGS[request.param])
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    net.save_pretrained(folder)
    plain = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float64
    ).eval()
    return plain, open_model(folder, dtype="float64")


def difference(net, ids, layer=None, head=None, contexts=None):
    """The logit difference, with one head's part of the output projection's input exchanged."""
    outputs = [part for name, part in net.named_modules()
               if name.endswith(("self_attn.o_proj", "attn.c_proj"))]  # fmt: skip
    width = net.config.hidden_size // net.config.num_attention_heads
    found, hooks = {}, []

    def hook(index, part, args):
        x = args[0].clone()
        found[index] = args[0].clone()
        if index == layer:
            place = slice(head * width, (head + 1) * width)
            x[..., place] = contexts[index][..., place]
        return (x,)

    for index, part in enumerate(outputs):
        hooks.append(part.register_forward_pre_hook(lambda p, a, i=index: hook(i, p, a)))
    with torch.no_grad():
        logits = net(torch.tensor([ids])).logits[0, -1]
    for one in hooks:
        one.remove()
    return float(logits[ANSWER] - logits[WRONG]), found


def test_every_head_is_patched_as_by_hooks(models):
    net, model = models
    found = tasks.patching(model, model.from_ids(CLEAN), model.from_ids(CORRUPTED), ANSWER, WRONG)
    clean, clean_contexts = difference(net, CLEAN)
    corrupted, corrupted_contexts = difference(net, CORRUPTED)
    assert (found.clean, found.corrupted) == pytest.approx((clean, corrupted), abs=1e-6)
    for at, (layer, head) in enumerate(found.heads):
        back, _ = difference(net, CORRUPTED, layer, head, clean_contexts)
        lost, _ = difference(net, CLEAN, layer, head, corrupted_contexts)
        span = found.clean - found.corrupted  # in logits: transformers rotates in float32
        assert span * found.denoised[at] == pytest.approx(back - corrupted, abs=1e-6)
        assert span * found.noised[at] == pytest.approx(clean - lost, abs=1e-6)
    assert len(found.heads) == len(model.spec.heads) and np.ptp(found.denoised) > 0.01
    rows = found.to_rows()
    assert [row["denoised"] for row in rows] == sorted(found.denoised, reverse=True)


def test_what_cannot_be_patched_is_refused(models):
    _, model = models
    clean = model.from_ids(CLEAN)
    for other, said in ((CLEAN[:3], "differ in length: 5 and 3"), (CLEAN, "the same logit")):
        with pytest.raises(HgvizError, match=said):
            tasks.patching(model, clean, model.from_ids(other), ANSWER, WRONG)
