"""Captures on a GPU, where torch finds one (CUDA or MPS), against the same on the CPU.

A causal model with random weights, 2 layers of 12 heads of width 64, in float32 and bfloat16: time
of the forward pass and of captures, and how far the maps are from those of the CPU's capture. Then
surveys of one head by torch and by numpy, whose time tells what hgviz.models.device_maps.LEAST
should be, for weights that are spread and for a head with one large weight in every row, whose
tile numpy is asked for. Wall time, taken in turn, medians. `--device cpu` tries the script where
there is no GPU.
"""

import argparse
import gc
import statistics
import sys
import tempfile
import time
import warnings
from collections import deque
from pathlib import Path

import numpy as np
from capture import FLOOR, errors
from peers import peak
from table import heading, line

sys.path.insert(0, str(Path(__file__).parents[1]))

LENGTHS = 2048, 8192
COMPARED = 2048  # tokens at which whole maps are compared
SURVEYED = 512, 1024, 2048, 8192, 32768
LAYERS, HEADS, WIDTH = 2, 12, 64
ROUNDS = 5
FAMILIES = (  # rules of each kind, biases, sinks, soft caps, images, and code of their own
    ("llama", "LlamaForCausalLM"), ("gemma2", "Gemma2ForCausalLM"),
    ("gpt_oss", "GptOssForCausalLM"), ("mistral", "MistralForCausalLM"),
    ("deepseek_v3", "DeepseekV3ForCausalLM"),
    ("modernbert", "ModernBertForMaskedLM"), ("t5", "T5ForConditionalGeneration"),
    ("bert", "BertForSequenceClassification"), ("gpt2", "GPT2LMHeadModel"),
    ("bloom", "BloomForCausalLM"), ("vit", "ViTForImageClassification"),
)  # fmt: skip
TOKENS, WRITTEN = 512, 96  # of a text, and of what a decoder writes
LONG, LARGE = 32_768, 8  # tokens and layers of the large Llama
SHAPE = {
    "hidden_size": 4096, "intermediate_size": 14_336, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 32_000, "rope_theta": 500_000.0,
}  # fmt: skip


def main():
    """Print a line for each figure, or say that there is no GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="|".join(PARTS))
    parser.add_argument("--long", type=int, default=LONG, help="tokens for the large Llama")
    parser.add_argument("--device", choices=("cuda", "mps", "cpu"))
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    parser.add_argument("--surveyed", type=int, nargs="+", default=SURVEYED)
    options = parser.parse_args()
    device = options.device or found()
    if device is None:
        print("skipped: torch finds no GPU here, neither CUDA nor MPS")
        return
    print(f"{device}: {described(device)}")
    for name in options.parts or PARTS:
        PARTS[name](device, options)


def own(device, options):
    """A model of hgviz's own: maps, captures and surveys."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        write(path / "model", max(*options.lengths, COMPARED))
        for dtype in ("float32", "bfloat16"):
            compared(path, device, dtype)
            for length in options.lengths:
                times(path, device, dtype, length)
    for length in options.surveyed:
        for peaked in (False, True):
            surveys(device, length, peaked)


def found():
    """The device that torch has beside the CPU, or None."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else None


def described(device):
    """What the device calls itself."""
    import torch

    if device == "cuda":
        return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    return "as torch counts it"


def write(folder, length):
    """A checkpoint of random weights."""
    import torch

    from hgviz.models.checkpoints import save
    from hgviz.models.config import parse_config

    width = HEADS * WIDTH
    config = parse_config({
        "family": "transformer", "form": "decoder", "vocab_size": 256, "d_model": width,
        "n_heads": HEADS, "d_ff": 4 * width, "n_layers": LAYERS, "max_positions": length,
    })  # fmt: skip
    torch.manual_seed(0)
    state = config.build().state_dict()
    for name, values in state.items():
        if name.endswith(("attn.q.weight", "attn.k.weight")):
            values *= 3  # scores that spread by 3 or so, as those of trained models
    save(folder, config, state)


def opened(path, device, dtype, length):
    """The model, and a random text."""
    from hgviz.models import open_model

    model = open_model(path / "model", device, dtype)
    return model, model.from_ids(np.random.default_rng(0).integers(0, 256, length))


# --- how near -------------------------------------------------------------------------------------


def compared(path, device, dtype):
    """Maps of the device against float64 of its own operands, and against the CPU's maps.

    Two devices round differently, and so do two formats: what the device's maps may differ from
    the CPU's is twice what those differ from the CPU's in the next finer format.
    """
    mine = captured(path, device, dtype)
    cpu = captured(path, "cpu", dtype)
    finer = captured(path, "cpu", "float64" if dtype == "float32" else "float32")
    off, limit = map(max, zip(*(errors(one) for one in mine.maps), strict=True))
    line(f"{device}, {dtype}: tiles off float64", f"{off:.1e}", f"{limit:.1e}")
    limit = max(2 * difference(cpu, finer), FLOOR)
    line(f"{device}, {dtype}: maps off the CPU's", f"{difference(mine, cpu):.1e}", f"{limit:.1e}")


def captured(path, device, dtype):
    """A capture in memory."""
    from hgviz import tasks

    return tasks.capture(*opened(path, device, dtype, COMPARED))


def difference(one, other):
    """The largest difference of any weight of two captures."""
    pairs = zip(one.maps, other.maps, strict=True)
    return max(
        float(np.abs(mine.read(head) - theirs.read(head)).max())
        for mine, theirs in pairs
        for head in mine.heads
    )


# --- how fast -------------------------------------------------------------------------------------


def times(path, device, dtype, length):
    """Forward pass, capture in memory and to a file."""
    from hgviz import tasks

    model, prompt = opened(path, device, dtype, length)
    works = {
        "forward": lambda: model.run(prompt.ids),
        "without the pyramid": lambda: tasks.capture(model, prompt),
        "with the pyramid": lambda: tasks.capture(model, prompt, path / "c.h5", force=True),
    }
    taken = {name: [] for name in works}
    for _ in range(ROUNDS + 1):
        for name, work in works.items():
            taken[name].append(seconds(work, device))
    # the first of each warms up
    medians = {name: statistics.median(ones[1:]) for name, ones in taken.items()}
    where = f"{device}, {dtype}, {length:,} tokens"
    line(f"{where}: forward pass", f"{1000 * medians['forward']:.1f} ms")
    for name in list(works)[1:]:
        line(f"{where}: capture {name} / forward", f"{medians[name] / medians['forward']:.2f}")


def surveys(device, length, peaked):
    """What is stored of one head's map beside its factors, by torch and by numpy."""
    from hgviz.maps.tiles import storage_request, survey
    from hgviz.models.device_maps import blocks_on

    maps = one_head(length, peaked)
    wanted = storage_request(maps, (0, length // 2, length - 1))
    where = f"{device}, a {'peaked' if peaked else 'spread'} head, {length:,} tokens"
    blocks = blocks_on(device)
    mine, theirs = survey(maps, 0, wanted, blocks), survey(maps, 0, wanted)
    taken = {"torch": [], "numpy": []}
    for _ in range(ROUNDS):
        taken["torch"].append(seconds(lambda: survey(maps, 0, wanted, blocks), device))
        taken["numpy"].append(seconds(lambda: survey(maps, 0, wanted), device))
    torch, numpy = (statistics.median(taken[name]) for name in ("torch", "numpy"))
    line(f"{where}: survey by torch", f"{1000 * torch:.1f} ms")
    line(f"{where}: the same by numpy / by torch", f"{numpy / torch:.2f}")
    off = max(float(np.abs(getattr(mine, one) - getattr(theirs, one)).max())
              for one in ("cells", "top", "rows"))  # fmt: skip
    line(f"{where}: weights of torch off numpy's", f"{off:.1e}", "1e-5")


def one_head(length, peaked):
    """The map of a causal head; peaked: every row has nearly all its weight on one key."""
    from hgviz.maps import Factors, LazyMap, Rule, with_statistics

    q, k = np.random.default_rng(0).normal(size=(2, 1, length, WIDTH)).astype(np.float32)
    rule = Rule(WIDTH**-0.5, ("softmax",), (None,), causal=True)
    rows, proof = np.zeros(0, np.int64), np.zeros((1, 0, length), np.float32)
    stat = np.zeros((1, length), np.float32)
    return LazyMap(
        with_statistics(Factors(4 * k if peaked else q, k, stat, rule, rows, proof)), (0,)
    )


# --- models of transformers -----------------------------------------------------------------------


def families(device, options):
    """Outputs and maps of each beside those of its eager code there; in bfloat16, beside twice what
    eager code is off its own float32."""
    from tests.models.zoo import write as written

    heading(f"models of transformers, {TOKENS:,} tokens, beside eager code on the {device}")
    for kind, name in FAMILIES:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = written(Path(folder, kind), kind, name, **lengthened(kind))
            exact = eager(path, name, device, "float32")
            for dtype in ("float32", "bfloat16"):
                theirs = exact if dtype == "float32" else eager(path, name, device, dtype)
                for what, off, limit in apart(mine(path, device, dtype), theirs, exact):
                    line(f"{kind}, {dtype}: {what}", f"{off:.1e}", f"{max(limit, 1e-5):.1e}")


def lengthened(kind):
    """What lets a tiny model read so many tokens."""
    names = {"bert": "max_position_embeddings", "gpt2": "n_positions"}
    return {names[kind]: TOKENS} if kind in names else {}


def eager(path, name, device, dtype):
    """Logits and maps of transformers."""
    import torch
    import transformers

    made = getattr(transformers, name)
    net = made.from_pretrained(path, attn_implementation="eager", dtype=getattr(torch, dtype))
    net = net.to(device).eval()
    ids, some, image = inputs(net.config)
    if net.main_input_name == "pixel_values":
        asked = {"pixel_values": torch.tensor(image)[None].to(net.dtype)}
    else:
        asked = {"input_ids": torch.tensor(ids)[None]}
        if net.config.is_encoder_decoder:
            asked["decoder_input_ids"] = torch.tensor(some)[None]
    with torch.inference_mode():
        out = net(**{key: one.to(device) for key, one in asked.items()}, output_attentions=True)
    if net.config.is_encoder_decoder:
        both = zip(out.decoder_attentions, out.cross_attentions, strict=True)
        maps = [*out.encoder_attentions, *(one for pair in both for one in pair)]
    else:
        maps = out.attentions
    return out.logits[0].float().cpu().numpy(), [one[0].float().cpu().numpy() for one in maps]


def inputs(config):
    """Ids, those that a decoder writes, and an image, at random."""
    random, size = np.random.default_rng(1), getattr(config, "image_size", 1)
    ids, some = random.integers(5, 110, TOKENS), random.integers(5, 110, WRITTEN)
    return ids, some, random.normal(size=(3, size, size)).astype(np.float32)


def mine(path, device, dtype):
    """The same by hgviz."""
    from hgviz import tasks
    from hgviz.core import Signal
    from hgviz.models import open_model
    from hgviz.models.signals import prompt_of_signal

    model = open_model(path, device, dtype)
    ids, some, image = inputs(model.module.net.config)
    target = model.from_ids(some) if model.spec.two_texts else None
    if model.spec.modality == "image":
        import torch

        positions = model.module.positions(torch.tensor(image)[None])
        source = prompt_of_signal(Signal(image), positions)
    else:
        source = model.from_ids(ids)
    found = tasks.capture(model, source, target=target)
    logits = np.asarray(found.logits, np.float32)
    return logits, [np.stack([one.read(head) for head in one.heads]) for one in found.maps]


def apart(ours, theirs, exact):
    """What is how far off, and by what it may be: ("outputs", ...), of their largest where that is
    above 1, and ("maps", ...)."""
    (logits, maps), (expected, wanted), (finest, finer) = ours, theirs, exact
    assert len(maps) == len(wanted)
    limit = 2 * np.abs(expected - finest).max()
    most = max(1.0, np.abs(expected).max())
    yield "outputs", np.abs(logits.reshape(expected.shape) - expected).max() / most, limit / most
    pairs = list(zip(maps, wanted, finer, strict=True))
    limit = 2 * max(np.abs(one - other).max() for _, one, other in pairs)
    yield "maps", max(np.abs(one - other).max() for one, other, _ in pairs), limit


# --- beside plain PyTorch -------------------------------------------------------------------------


def verbs(device, options):
    """Leave-one-out of heads beside whole masked passes, and the Hourglass beside the package."""
    import pruning
    import torch

    from hgviz.models import open_model
    from hgviz.models.trials import HeadAblation

    with tempfile.TemporaryDirectory() as folder:
        modules = {
            "a Llama of 8 x 8 heads": open_model(pruning.random_llama(folder), device).module,
            "a classifier of 12 x 12 heads": pruning.encoder(12, 12, 768).build().eval().to(device),
        }
    for name, module in modules.items():
        for size in (pruning.BATCH, (1, 128)):
            tokens = pruning.random_text(size)
            tokens = type(tokens)(tokens.ids.to(device))
            variants = HeadAblation(module)

            def ours(variants=variants, tokens=tokens):
                deque(variants.ablate_each(variants.baseline(tokens)[0]), maxlen=0)

            def naive(module=module, tokens=tokens, heads=variants.heads):
                deque((pruning.masked(module, tokens, one) for one in heads), maxlen=0)

            taken = in_turn({"ours": ours, "naive": naive}, device, 3)
            words = f"{name}, {size[0]} x {size[1]} tokens"
            line(f"{words}: leave-one-out", f"{1000 * taken['ours']:.0f} ms")
            line(f"{words}: masked passes / it", f"{taken['naive'] / taken['ours']:.2f}")
    scored(device)
    with torch.inference_mode():
        hourglass(device)


def scored(device):
    """Evaluation of a text beside a plain loop over the same windows."""
    import torch
    import torch.nn.functional as F

    from hgviz import tasks
    from hgviz.models import open_model
    from hgviz.tasks.scoring import examples_from

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        write(path / "model", 1024)
        model = open_model(path / "model", device)
        data = np.random.default_rng(0).integers(32, 127, 1 << 18).astype(np.uint8).tobytes()
        (path / "text.txt").write_bytes(data)
        net, examples = model.module, examples_from(model, path / "text.txt")
        rows = [torch.as_tensor(row.ids)[None].to(device) for row in examples.rows]

        def plain():
            with torch.inference_mode():
                for ids in rows:
                    F.cross_entropy(net(ids)[0, :-1], ids[0, 1:]).item()

        works = {
            "plain": plain,
            "evaluate": lambda: tasks.evaluate(model, path / "text.txt"),
        }
        taken = in_turn(works, device, 3)
    words = f"evaluation of {len(rows)} windows"
    line(f"{words}: time", f"{taken['evaluate']:.2f} s")
    line(f"{words}: it / a plain loop, one window at a time",
         f"{taken['evaluate'] / taken['plain']:.2f}")  # fmt: skip


def hourglass(device):
    """Forward pass beside the published package, on the same weights."""
    import torch
    from hourglass import pair

    theirs, ours = (one.to(device) for one in pair())
    for length in (2048,):
        ids = torch.randint(256, (1, length), device=device)
        works = {"theirs": lambda ids=ids: theirs(ids), "ours": lambda ids=ids: ours(ids)}
        taken, off = in_turn(works, device, 9), (theirs(ids) - ours(ids)).abs().max()
        words = f"Hourglass, {length:,} tokens"
        line(
            f"{words}: forward / the published package",
            f"{taken['ours'] / taken['theirs']:.2f}",
            "1.00",
        )
        line(f"{words}: largest difference of logits", f"{off:.1e}")


def in_turn(works, device, rounds):
    """Median seconds of each, one after the other in every round; the first warms up."""
    taken = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            taken[name].append(seconds(work, device))
    return {name: statistics.median(ones[1:]) for name, ones in taken.items()}


# --- a large Llama --------------------------------------------------------------------------------


def large(device, options):
    """Capture of a long text in bfloat16 beside the forward pass by sdpa: time and memory."""
    import torch
    import transformers

    from hgviz import tasks
    from hgviz.models import open_model

    transformers.utils.logging.disable_progress_bar()
    length = options.long
    heading(
        f"a Llama of the shape of 8 billion parameters, {LARGE} layers, {length:,} tokens, bfloat16"
    )
    ids = np.random.default_rng(0).integers(0, SHAPE["vocab_size"], length)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            **SHAPE, num_hidden_layers=LARGE, max_position_embeddings=length, dtype="bfloat16"
        )
        expected, taken, most = by_sdpa(config, path / "model", ids, device)
        gc.collect()
        start = time.perf_counter()
        model = open_model(path / "model", device, "bfloat16")
        line("opening", f"{time.perf_counter() - start:.0f} s")
        found = {}

        def capture(some=ids):
            prompt = model.from_ids(some)
            found["one"] = tasks.capture(model, prompt, path / "c.h5", force=True)

        capture(ids[:1024])
        mine, most_ = measured(capture, device, 1)
        line("capture, into a file", f"{mine:.2f} s")
        line("capture / forward", f"{mine / taken:.2f}")
        line("its memory on the device", f"{most_ / 1e9:.1f} GB")
        line("largest memory of the process beside it", f"{peak() / 1e9:.1f} GB")
        line("file", f"{(path / 'c.h5').stat().st_size / 1e9:.2f} GB")
        line("its logits, in float32", f"{4 * length * SHAPE['vocab_size'] / 1e9:.2f} GB")
        line("memory on the device, capture / forward", f"{most_ / most:.2f}")
        width = SHAPE["hidden_size"] // SHAPE["num_attention_heads"]
        heads = SHAPE["num_attention_heads"] + SHAPE["num_key_value_heads"]
        each = 2 * length * LARGE * width * heads
        left = (path / "c.h5").stat().st_size - 4 * length * SHAPE["vocab_size"]
        line("file without logits / q and grouped k in bfloat16", f"{left / each:.3f}")
        one = found["one"]
        line("logits of the last token off those of sdpa",
             f"{np.abs(np.asarray(one.logits[-1], np.float32) - expected).max():.1e}")  # fmt: skip
        line("largest weight", f"{np.abs(expected).max():.1f}")
        line("maps off their proof", f"{max(each.verify_max_abs for each in one.maps):.1e}", "1e-5")


def by_sdpa(config, path, ids, device):
    """Random weights into a folder; logits of the last token, seconds and bytes of a pass."""
    import torch
    import transformers

    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        net = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(torch.float32)
    net.save_pretrained(path)
    net.set_attn_implementation("sdpa")
    given = torch.tensor(ids, device=device)[None]

    def forward():
        with torch.inference_mode():
            return net(given, use_cache=False).logits

    forward()
    taken, most = measured(forward, device, 3)
    line("forward pass by sdpa", f"{taken:.2f} s")
    line("its memory on the device", f"{most / 1e9:.1f} GB")
    return forward()[0, -1].float().cpu().numpy(), taken, most


def measured(work, device, rounds):
    """Median seconds of so many runs, and bytes that the device held at most."""
    import torch

    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    taken = statistics.median(seconds(work, device) for _ in range(rounds))
    return taken, torch.cuda.max_memory_allocated() if device == "cuda" else float("nan")


def seconds(work, device):
    """Wall time, with what the device still has to do."""
    import torch

    wait = {"cuda": torch.cuda.synchronize, "mps": torch.mps.synchronize}.get(device, lambda: None)
    wait()
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


PARTS = {"own": own, "families": families, "verbs": verbs, "large": large}

if __name__ == "__main__":
    main()
