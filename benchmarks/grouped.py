"""Captures of a model of transformers whose heads share keys, beside its own forward pass by sdpa.

A Llama with random weights: 8 layers of 8 heads in 2 groups, 512 wide, heads of 64, float32, one
thread. Processor time, taken in turn, medians of ROUNDS; largest resident memory of a process of
its own for each, over what it held when the model was loaded and had read a few tokens. From 65,536
tokens on two layers are measured, once. In the end the file is opened and panned in.

    python benchmarks/grouped.py                    8,192 tokens: some five minutes
    python benchmarks/grouped.py 65536              two layers: some eight minutes
    python benchmarks/grouped.py 32768 --window 1024
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from peers import held_from_now, peak
from table import heading, line

sys.path.insert(0, str(Path(__file__).parents[1]))

LENGTH, LONG = 8192, 65_536
SHORT = 64  # tokens that are read before memory counts
ROUNDS = 5
LAYERS, HEADS, GROUPS, WIDTH, INNER, VOCABULARY = 8, 8, 2, 64, 1024, 256
TIME, MEMORY, FILE = 1.6, 1.5, 1.15  # of what the forward pass, q and k take
MOST = "8000 MB"
VIEW, STEP = (800, 1000), 256  # cells that are looked at, and panned by


def main():
    """Print the lines of each length."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lengths", nargs="*", type=int, default=[LENGTH])
    parser.add_argument("--window", type=int, help="tokens that every layer sees back")
    parser.add_argument("--alone", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        return alone(*options.alone)
    for length in options.lengths:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), length, options.window)
            words = f", a window of {options.window:,}" if options.window else ""
            heading(f"{length:,} tokens, {layers_of(length)} layers{words}")
            if length < LONG:
                times(Path(folder), length)
            peaks(Path(folder), length)
            sizes(Path(folder) / "capture.h5")
            looks(Path(folder) / "capture.h5", length)


def layers_of(length):
    """How many layers a text of so many tokens is captured by."""
    return LAYERS if length < LONG else 2


def write(folder, length, window=None):
    """Such a model, as save_pretrained leaves it."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    sizes = {
        "vocab_size": VOCABULARY, "hidden_size": HEADS * WIDTH, "head_dim": WIDTH,
        "num_hidden_layers": layers_of(length), "num_attention_heads": HEADS,
        "num_key_value_heads": GROUPS, "intermediate_size": INNER,
        "max_position_embeddings": length,
    }  # fmt: skip
    if window:  # a Mistral is a Llama with windows
        config = transformers.MistralConfig(**sizes, sliding_window=window)
        transformers.MistralForCausalLM(config).save_pretrained(folder / "model")
    else:
        config = transformers.LlamaConfig(**sizes)
        transformers.LlamaForCausalLM(config).save_pretrained(folder / "model")


# --- what is measured -----------------------------------------------------------------------------


def times(folder, length):
    """Seconds of both, of the processor and of the clock."""
    runs = ready(folder, length, "forward"), ready(folder, length, "capture")
    found = [[seconds(run) for run in runs] for _ in range(ROUNDS + 1)][1:]
    for at, (words, limit) in enumerate((("", str(TIME)), (", by the clock", ""))):
        forward, capture = (statistics.median(one[run][at] for one in found) for run in (0, 1))
        line(f"forward pass{words}", f"{forward:.2f} s")
        line(f"capture / forward{words}", f"{capture / forward:.2f}", limit)


def seconds(run):
    """Of the processor, all threads, and of the clock."""
    start = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - start[0], time.perf_counter() - start[1]


def ready(folder, length, name):
    """What runs a forward pass or a capture of a random text, its model loaded and warm."""
    import numpy as np
    import torch

    torch.set_num_threads(1)
    ids = np.random.default_rng(0).integers(0, VOCABULARY, length)
    if name == "forward":
        import transformers

        kind = transformers.AutoModelForCausalLM
        net = kind.from_pretrained(folder / "model", attn_implementation="sdpa").eval()

        def forward(some=ids):
            with torch.inference_mode():
                return net(torch.tensor(some)[None], use_cache=False).logits

        forward(ids[:SHORT])
        return forward
    from hgviz import tasks
    from hgviz.models import open_model

    model = open_model(folder / "model")
    prompt = model.from_ids(ids)

    def capture(prompt=prompt):
        tasks.capture(model, prompt, folder / "capture.h5", force=True)

    capture(model.from_ids(ids[:SHORT]))
    return capture


def peaks(folder, length):
    """Resident memory of both, each in a process of its own, and what a long text took."""
    found = {name: in_its_own(folder, length, name) for name in ("forward", "capture")}
    (forward, slow, _), (capture, took, clock) = found["forward"], found["capture"]
    line("memory of the forward pass", f"{forward:.0f} MB")
    line("memory of the capture", f"{capture:.0f} MB", MOST if length >= LONG else "")
    line("memory, capture / forward", f"{capture / forward:.2f}", str(MEMORY))
    if length >= LONG:
        line("capture, once", f"{took:.0f} s")
        line("the same by the clock", f"{clock:.0f} s")
        line("capture / forward, once", f"{took / slow:.2f}")


def in_its_own(folder, length, name):
    """Megabytes of a new process, and its seconds, of the processor and of the clock."""
    command = [sys.executable, __file__, "--alone", str(folder), str(length), name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return [float(one) for one in done.stdout.split()[-3:]]


def alone(folder, length, name):
    """One run in this process; prints what its memory grew by at most, and seconds."""
    run = ready(Path(folder), int(length), name)
    before = held_from_now()
    took = seconds(run)
    print((peak() - before) / 1e6, *took)


def sizes(path):
    """Bytes of the file, and of each kind of dataset in it, over those of q and grouped k."""
    import h5py

    kinds, wide = {}, 0

    def add(name, one):
        nonlocal wide
        if not isinstance(one, h5py.Dataset):
            return
        kind = name.partition("/")[2].partition("/")[2] if name.startswith("layers") else name
        kinds[kind] = kinds.get(kind, 0) + one.id.get_storage_size()
        wide += 4 * one.size if kind in ("q", "k") else 0

    with h5py.File(path) as file:
        file.visititems(add)
        layers = len(file["layers"])
    size = path.stat().st_size
    line("file", f"{size / 1e6:.1f} MB")
    told = kinds["output/logits"]  # more than a tenth of two layers
    line("file / q and grouped k in float32", f"{size / wide:.3f}", str(FILE) if layers > 2 else "")
    line("the same without logits", f"{(size - told) / wide:.3f}", str(FILE))
    for kind, held in sorted(kinds.items(), key=lambda one: -one[1]):
        if held > wide / 1000:
            line(f"  {kind}", f"{held / wide:.4f}")
    line("  around them", f"{(size - sum(kinds.values())) / wide:.4f}")


def looks(path, length):
    """Milliseconds until a file is open, a head is there as a whole and at 1x, and was panned."""
    from hgviz.store import open_capture

    found = []
    zoom = max(0, (length // VIEW[0]).bit_length() - 1)
    for head in range(HEADS):
        start = time.perf_counter()
        maps = open_capture(path).maps[-1]
        opened = time.perf_counter()
        maps.summary(head)
        whole = maps.overview(head, zoom=zoom)
        seen = time.perf_counter()
        assert whole is not None, zoom
        corner(maps, head, length, 0)
        first = time.perf_counter()
        corner(maps, head, length, STEP)
        panned = time.perf_counter()
        found.append((opened - start, seen - opened, first - seen, panned - first))
    names = "opening it", f"all of a head, at {1 << zoom}x", "first viewport at 1x", "a pan of 256"
    for name, taken in zip(names, zip(*found[1:], strict=True), strict=True):
        line(name, f"{1000 * statistics.median(taken):.1f} ms")


def corner(maps, head, length, up):
    """A viewport at the lower left, so many rows up."""
    rows, columns = (min(one, length) for one in VIEW)
    maps.read(head, (length - rows - up, length - up), (0, columns))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    sys.exit(main())
