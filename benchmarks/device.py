"""Captures, models of transformers and trials of heads on a GPU.

Parts: maps, families, verbs, large; all run where torch finds CUDA or MPS, and anywhere
with --cpu. Wall time, medians, both sides of a ratio by turns.
"""

import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pruning
import torch
from capture import FLOOR, Text, draw, errors, prepared, random_factors, write_decoder
from peers import compare_package
from table import heading, in_turn, largest, line, run_parts

from hgviz import tasks
from hgviz.maps import LazyMap, with_statistics
from hgviz.maps.tiles import storage_request, survey
from hgviz.models import open_model
from hgviz.models.device_maps import blocks_on
from hgviz.tasks.scoring import examples_from

ROUNDS = 5
LENGTHS = 2048, 8192  # of captures
SURVEYED = 512, 2048, 8192, 32_768  # tokens, which tell what device_maps.LEAST should be


def find_device():
    """The device that torch has beside the CPU, or None."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


DEVICE = find_device() or "cpu"


def wait():
    """Wait for what the device still has to do."""
    if DEVICE != "cpu":
        getattr(torch, DEVICE).synchronize()


# --- maps -----------------------------------------------------------------------------------------


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
                taken = in_turn(works, ROUNDS, wait=wait)
                where = f"{dtype}, {length:,} tokens"
                line(f"{where}: forward pass", f"{1000 * taken['forward']:.1f} ms")
                for kind in ("memory", "file"):
                    line(f"{where}: capture ({kind}) / forward",
                         f"{taken[kind] / taken['forward']:.2f}")  # fmt: skip
    for length in SURVEYED:
        for peaked in (False, True):
            compare_surveys(length, peaked)


def compare_maps(folder, dtype, finer, length):
    """Maps of the device beside float64 of their own operands, and beside the CPU's maps.

    They may differ from the CPU's by twice what those differ from the next finer format's.
    """
    ids = np.random.default_rng(0).integers(0, 256, length)
    captures = []
    for device, kind in ((DEVICE, dtype), ("cpu", dtype), ("cpu", finer)):
        model = open_model(folder / "model", device, kind)
        captures.append(tasks.capture(model, model.from_ids(ids)).maps)
    ours, cpu, exact = captures
    off, limit = map(max, zip(*map(errors, ours), strict=True))
    line(f"{dtype}: tiles off float64", f"{off:.1e}", f"{limit:.1e}")
    limit = max(2 * map_difference(cpu, exact), FLOOR)
    line(f"{dtype}: maps off the CPU's", f"{map_difference(ours, cpu):.1e}", f"{limit:.1e}")


def map_difference(maps, others):
    """The largest difference of any weight."""
    return max(
        float(np.abs(one.read(head) - other.read(head)).max())
        for one, other in zip(maps, others, strict=True)
        for head in one.heads
    )


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
    taken = in_turn(works, ROUNDS, wait=wait)
    where = f"{'peaked' if peaked else 'spread'} head, {length:,} tokens"
    line(f"{where}: survey by torch", f"{1000 * taken['torch']:.1f} ms")
    line(f"{where}: by numpy / by torch", f"{taken['numpy'] / taken['torch']:.2f}")
    line(f"{where}: weights of torch off numpy's", f"{off:.1e}", "1e-5")


# --- models of transformers -----------------------------------------------------------------------

FAMILIES = (  # rules of each kind, biases, sinks, soft caps, images, and code of their own
    ("llama", "LlamaForCausalLM"), ("gemma2", "Gemma2ForCausalLM"),
    ("gpt_oss", "GptOssForCausalLM"), ("mistral", "MistralForCausalLM"),
    ("deepseek_v3", "DeepseekV3ForCausalLM"), ("modernbert", "ModernBertForMaskedLM"),
    ("t5", "T5ForConditionalGeneration"), ("bert", "BertForSequenceClassification"),
    ("gpt2", "GPT2LMHeadModel"), ("bloom", "BloomForCausalLM"),
    ("vit", "ViTForImageClassification"),
)  # fmt: skip
LONGER = {"bert": "max_position_embeddings", "gpt2": "n_positions"}  # which else end too early


def families(tokens=512, written=96):
    """Outputs and maps beside eager code on the device.

    In bfloat16 they may differ by twice what eager code differs from its own float32.
    """
    import zoo

    heading(f"models of transformers, {tokens} tokens, beside eager code")
    warnings.simplefilter("ignore")
    for kind, name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            longer = {LONGER[kind]: tokens} if kind in LONGER else {}
            path = zoo.write(Path(folder, kind), kind, name, **longer)
            exact = None
            for dtype in ("float32", "bfloat16"):
                model, capture, inputs = zoo.ours(path, tokens, written, DEVICE, dtype)
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
    return max(np.abs(one - other).max() for one, other in zip(maps, others, strict=True))


# --- verbs ----------------------------------------------------------------------------------------


def verbs():
    """Leave-one-out, an evaluation and the Hourglass, beside plain PyTorch on the device."""
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
                taken = in_turn(pruning.ways(module, tokens), 3, wait=wait)
                ratio = taken["masked passes"] / taken["leave-one-out"]
                words = f"{name}, {shape[0]} x {shape[1]}: masked passes / leave-one-out"
                line(words, f"{ratio:.2f}")
        write_decoder(folder / "decoder", Text(1024, 2, 12))
        compare_evaluation(folder / "decoder")
    compare_package(2048, DEVICE)


def compare_evaluation(folder):
    """hgviz evaluate beside a loop over the same windows."""
    model = open_model(folder / "model", DEVICE)
    text = folder / "text.txt"
    text.write_bytes(np.random.default_rng(0).integers(32, 127, 1 << 18).astype(np.uint8).tobytes())
    rows = [torch.as_tensor(row.ids)[None].to(DEVICE) for row in examples_from(model, text).rows]

    @torch.inference_mode()
    def plain():
        for ids in rows:
            logits = model.module(ids)[0, :-1]
            torch.nn.functional.cross_entropy(logits, ids[0, 1:]).item()

    taken = in_turn({"plain": plain, "evaluate": lambda: tasks.evaluate(model, text)}, 3)
    name = f"evaluation of {len(rows)} windows / a loop, one window at a time"
    line(name, f"{taken['evaluate'] / taken['plain']:.2f}")


SHAPE = {
    "hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 32_000, "rope_theta": 500_000.0,
}  # fmt: skip


def large(length=32_768, layers=8, shape=SHAPE):
    """Capture beside the forward pass by sdpa, of a Llama of the shape of 8 billion parameters."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    heading(f"a Llama of the shape of 8 billion parameters, {layers} layers, {length:,} tokens")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            **shape, num_hidden_layers=layers, max_position_embeddings=length, dtype="bfloat16"
        )
        with torch.device(DEVICE):
            net = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
        net.save_pretrained(folder / "model")
        del net
        for kind in ("sdpa", "memory", "file"):
            work = prepared(folder, length, kind, DEVICE, "bfloat16", shape["vocab_size"])
            if DEVICE == "cuda":
                torch.cuda.reset_peak_memory_stats()
            name = {"sdpa": "forward pass by sdpa"}.get(kind, f"capture ({kind})")
            line(name, f"{in_turn({kind: work}, 1, wait=wait)[kind]:.2f} s")
            if DEVICE == "cuda":
                line("  memory on the device", f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB")
            del work
        line("largest memory of the process", f"{largest() / 1e9:.1f} GB")
        line("file", f"{(folder / 'c.h5').stat().st_size / 1e9:.2f} GB")


def main():
    """Run the parts that the command line names, if there is a GPU."""
    if "--cpu" in sys.argv:
        sys.argv.remove("--cpu")
    elif find_device() is None:
        print("skipped: torch finds no GPU here, neither CUDA nor MPS")
        return
    print(DEVICE, torch.cuda.get_device_name() if DEVICE == "cuda" else "")
    run_parts(PARTS)


PARTS = {"maps": maps, "families": families, "verbs": verbs, "large": large}

if __name__ == "__main__":
    main()
