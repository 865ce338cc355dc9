"""Captures, models of transformers and trials of heads on a GPU.

Parts: maps, families, verbs, large; all need CUDA or MPS. Wall time, medians, both sides by turns.
"""

import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pruning
import torch
from capture import Text, draw, prepared, random_factors, write_decoder
from peers import compare_package
from table import heading, in_turn, line, run_parts

from hgviz import tasks
from hgviz.maps import LazyMap, with_statistics
from hgviz.maps.tiles import storage_request, survey
from hgviz.models import open_model
from hgviz.models.device_maps import blocks_on

ROUNDS = 5
LENGTHS = 2048, 8192  # of captures
SURVEYED = 512, 2048, 8192, 32_768  # tokens, which tell what device_maps.LEAST should be
DEVICE = next((name for name in ("cuda", "mps") if getattr(torch, name).is_available()), "cpu")


def wait():
    """Wait for what the device still has to do."""
    if DEVICE != "cpu":
        getattr(torch, DEVICE).synchronize()


def maps():
    """hgviz's own decoder, 2 layers of 12 heads: maps, times and surveys."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_decoder(folder, Text(max(LENGTHS), 2, 12))
        for dtype, finer in (("float32", "float64"), ("bfloat16", "float32")):
            compare_maps(folder, dtype, finer, min(LENGTHS))
            for length in LENGTHS:
                works = {kind: prepared(folder, length, kind, DEVICE, dtype)
                         for kind in ("forward", "memory", "file")}  # fmt: skip
                seconds = in_turn(works, ROUNDS, wait=wait)
                where = f"{dtype}, {length:,} tokens"
                line(f"{where}: forward pass", f"{1000 * seconds['forward']:.1f} ms")
                for kind in ("memory", "file"):
                    line(f"{where}: capture ({kind}) / forward",
                         f"{seconds[kind] / seconds['forward']:.2f}")  # fmt: skip
    for length in SURVEYED:
        for peaked in (False, True):
            compare_surveys(length, peaked)


def compare_maps(folder, dtype, finer, length):
    """Maps of the device beside the CPU's.

    They may differ by twice what the CPU's differ from those of the next finer format.
    """
    ids = np.random.default_rng(0).integers(0, 256, length)
    captures = []
    for device, kind in ((DEVICE, dtype), ("cpu", dtype), ("cpu", finer)):
        model = open_model(folder / "model", device, kind)
        maps = tasks.capture(model, model.from_ids(ids)).maps
        captures.append([layer.read(head) for layer in maps for head in layer.heads])
    ours, cpu, exact = captures
    limit = max(2 * apart(cpu, exact), 5e-7)  # the CPU may happen to be nearer
    line(f"{dtype}: maps off the CPU's", f"{apart(ours, cpu):.1e}", f"{limit:.1e}")


def compare_surveys(length, peaked):
    """What is stored of one head beside its factors, by torch and by numpy.

    peaked: every row has nearly all its weight on one key.
    """
    q, k = draw(length)
    head = LazyMap(with_statistics(random_factors(4 * k if peaked else q, k)), (0,))
    request, blocks = storage_request(head, (0, length // 2, length - 1)), blocks_on(DEVICE)
    works = {"torch": partial(survey, head, 0, request, blocks),
             "numpy": partial(survey, head, 0, request)}  # fmt: skip
    ours, numpy = (work() for work in works.values())
    off = max(
        float(np.abs(getattr(ours, name) - getattr(numpy, name)).max())
        for name in ("cells", "top", "rows")
    )
    seconds = in_turn(works, ROUNDS, wait=wait)
    where = f"{'peaked' if peaked else 'spread'} head, {length:,} tokens"
    line(f"{where}: survey by torch", f"{1000 * seconds['torch']:.1f} ms")
    line(f"{where}: by numpy / by torch", f"{seconds['numpy'] / seconds['torch']:.2f}")
    line(f"{where}: weights of torch off numpy's", f"{off:.1e}", "1e-5")


FAMILIES = (  # rules of each kind, biases, sinks, soft caps, images, and code of their own
    ("llama", "LlamaForCausalLM"), ("gemma2", "Gemma2ForCausalLM"),
    ("gpt_oss", "GptOssForCausalLM"), ("mistral", "MistralForCausalLM"),
    ("deepseek_v3", "DeepseekV3ForCausalLM"), ("modernbert", "ModernBertForMaskedLM"),
    ("t5", "T5ForConditionalGeneration"), ("bert", "BertForSequenceClassification"),
    ("gpt2", "GPT2LMHeadModel"), ("bloom", "BloomForCausalLM"),
    ("vit", "ViTForImageClassification"),
)  # fmt: skip
LENGTH_KEYS = {"bert": "max_position_embeddings", "gpt2": "n_positions"}


def families(tokens=512):
    """Outputs and maps beside eager code on the device.

    In bfloat16 they may differ by twice what eager code differs from its own float32.
    """
    import zoo

    heading(f"models of transformers, {tokens} tokens, compared with eager code")
    warnings.simplefilter("ignore")
    for kind, name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            longer = {LENGTH_KEYS[kind]: tokens} if kind in LENGTH_KEYS else {}
            path = zoo.write(Path(folder, kind), kind, name, **longer)
            exact = None
            for dtype in ("float32", "bfloat16"):
                model, capture, inputs = zoo.ours(path, tokens, DEVICE, dtype)
                outputs, weights, _ = zoo.eager(path, name, model, inputs, DEVICE, dtype)
                exact = exact or (outputs, weights)
                scale = max(1.0, np.abs(outputs).max())
                off = np.abs(np.squeeze(np.float32(capture.logits)) - outputs).max() / scale
                limit = 2 * np.abs(outputs - exact[0]).max() / scale
                line(f"{kind}, {dtype}: outputs", f"{off:.1e}", f"{max(limit, 1e-5):.1e}")
                off = apart(zoo.dense_maps(capture), weights)
                limit = 2 * apart(weights, exact[1])
                line(f"{kind}, {dtype}: maps", f"{off:.1e}", f"{max(limit, 1e-5):.1e}")


def apart(maps, others):
    """The largest difference of two lists of arrays."""
    return max(np.abs(a - b).max() for a, b in zip(maps, others, strict=True))


def verbs():
    """Leave-one-out and the Hourglass, beside plain PyTorch on the device."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        classifier = pruning.encoder(12, 12, 768).build().eval().requires_grad_(False)
        modules = {
            "a Llama of 8 x 8 heads": open_model(pruning.random_llama(folder), DEVICE).module,
            "a classifier of 12 x 12 heads": classifier.to(DEVICE),
        }
        for name, module in modules.items():
            for shape in (pruning.BATCH, pruning.TEXT):
                tokens = pruning.random_text(shape)
                tokens = type(tokens)(tokens.ids.to(DEVICE))
                seconds = in_turn(pruning.ways(module, tokens), 3, wait=wait)
                ratio = seconds["masked passes"] / seconds["leave-one-out"]
                words = f"{name}, {shape[0]} x {shape[1]}: masked passes / leave-one-out"
                line(words, f"{ratio:.2f}")
    compare_package(2048, DEVICE)


def large(length=32_768, layers=32):
    """Capture of a Llama of the shape of 8 billion parameters, and its forward pass by sdpa."""
    import transformers

    heading(f"a Llama of the shape of 8 billion parameters, {layers} layers, {length:,} tokens")
    config = transformers.LlamaConfig(
        hidden_size=4096, intermediate_size=14_336, num_attention_heads=32, num_key_value_heads=8,
        num_hidden_layers=layers, max_position_embeddings=length, vocab_size=32_000,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.manual_seed(0)
        with torch.device(DEVICE):
            net = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
        net.save_pretrained(folder / "model")
        del net
        for kind, limit in (("sdpa", ""), ("memory", "120"), ("file", "")):
            work = prepared(folder, length, kind, DEVICE, "bfloat16")
            seconds = in_turn({kind: work}, 1, wait=wait)[kind]
            line(
                "forward pass" if kind == "sdpa" else f"capture ({kind})", f"{seconds:.1f} s", limit
            )
            del work


def main():
    """Run the parts that the command line names, if there is a GPU."""
    if DEVICE == "cpu":
        print("skipped: torch finds no GPU here, neither CUDA nor MPS")
        return
    run_parts(maps=maps, families=families, verbs=verbs, large=large)


if __name__ == "__main__":
    main()
