"""hgviz beside other programs: torch's fused softmax, a published Hourglass, HTML pages of maps.

Parts: activations, pages, package. Processor time, one thread, by turns.

    python benchmarks/peers.py --install   BertViz, inspectus and CircuitsVis into .venv/peers
    python benchmarks/peers.py pages       without them, hgviz alone

`pages` goes from the weights of 12 layers of 12 heads in memory to a page of HTML, or to hgviz's
file and the picture of its window; a browser has yet to paint the page. Memory is on top of the
weights; bytes are of the page or file, per weight.
"""

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from table import growth, heading, in_turn, line, run_parts

WIDTH, ROUNDS = 64, 3


LIMITS = {  # forward pass over that of softmax at 2,048 tokens
    "ymish": "2.0", "tanh": "2.0", "selu": "3.0", "elu": "3.0", "leaky_relu": "3.0",
    "swish": "3.0", "topk": "5.0", "linear": "",
}  # fmt: skip


def activations(lengths=(512, 2048), heads=8):
    """Attention by every activation over the fused softmax, forward."""
    from hgviz.activations import ACTIVATIONS
    from hgviz.maps import Rule
    from hgviz.models.attention import attend

    for length in lengths:
        for causal in (False, True):
            heading(f"{length:,} tokens, {'causal' if causal else 'all keys'}, forward / softmax")
            q, k, v = torch.randn(3, 1, heads, length, WIDTH, generator=torch.manual_seed(0))
            works = {}
            for name in ("softmax", *LIMITS):
                norms = (ACTIVATIONS[name].norm,) * heads
                rule = Rule(WIDTH**-0.5, (name,) * heads, norms, causal=causal, top_k=8)
                works[name] = lambda rule=rule, q=q, k=k, v=v: attend(q, k, v, rule)
            with torch.inference_mode():
                seconds = in_turn(works, 3 * ROUNDS)
            for name, limit in LIMITS.items():
                ratio = seconds[name] / seconds["softmax"]
                line(name, f"{ratio:.2f}", limit if length == 2048 else "")


PACKAGE = {
    "num_tokens": 256, "dim": 256, "max_seq_len": 2048, "heads": 8, "dim_head": 32,
    "depth": (2, 4, 2), "shorten_factor": 4, "attn_resampling": True, "causal": True,
    "updown_sample_type": "linear",
}  # fmt: skip


def package():
    """Forward pass over that of hourglass-transformer-pytorch 0.0.6 on the same weights."""
    for length in (512, 2048):
        compare_package(length, "cpu")


def compare_package(length, device):
    """Print the rows of one length on one device."""
    from hourglass_transformer_pytorch import hourglass_transformer_pytorch as published

    from hgviz.models import open_model
    from hgviz.models.layers import Tokens

    published.math = math  # version 0.0.6 forgets to import it
    torch.manual_seed(0)
    theirs = published.HourglassTransformerLM(**PACKAGE).eval()
    with tempfile.TemporaryDirectory() as folder:
        config = {"model_type": "hourglass-transformer-pytorch", **PACKAGE}
        Path(folder, "config.json").write_text(json.dumps(config))
        torch.save(theirs.state_dict(), Path(folder, "model.pt"))
        ours = open_model(folder, device).module
    ids = torch.randint(256, (1, length), device=device)
    theirs.to(device)
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    with torch.inference_mode():
        off = float((theirs(ids) - ours(Tokens(ids))).abs().max())
        works = {"theirs": lambda: theirs(ids), "ours": lambda: ours(Tokens(ids))}
        seconds = in_turn(works, 3 * ROUNDS, wait=wait)
    ratio = seconds["ours"] / seconds["theirs"]
    line(f"forward / hourglass-transformer-pytorch, {length:,} tokens", f"{ratio:.2f}", "1.00")
    line("  largest difference of logits", f"{off:.1e}")


HOME = Path(__file__).parents[1] / ".venv" / "peers"
NEEDS = "torch==2.13.0", "numpy==2.4.6", "ipython==9.18.1", "importlib_metadata==10.2.0"
PEERS = "bertviz==1.4.1", "inspectus==0.2.0", "circuitsvis==1.43.3"
THEIRS = "BertViz head_view", "BertViz model_view", "CircuitsVis attention_heads", "inspectus"
OURS = "hgviz, weights", "hgviz, q and k"
LENGTHS = 64, 128, 256, 512
LAYERS = HEADS = 12
LIMIT = 600  # seconds for one measurement


def install():
    """Make the environment of the three."""
    pip = [str(HOME / "bin/python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    for command in (
        [sys.executable, "-m", "venv", str(HOME)],
        [*pip, *NEEDS],  # what the three import to draw, and no more
        [*pip, "--no-deps", *PEERS],
    ):
        subprocess.run(command, check=True)


def pages():
    """Seconds, memory and bytes per weight of each way and length, medians."""
    theirs = THEIRS if (HOME / "bin/python").exists() else ()
    if not theirs:
        print("hgviz alone: run python benchmarks/peers.py --install for the three others")
    for length in LENGTHS:
        for name in (*theirs, *OURS):
            runs = [measure(name, length)]
            if runs[0] and runs[0][0] < 5:
                runs += [measure(name, length) for _ in range(ROUNDS - 1)]
            value = f"over {LIMIT} s, or failed"
            if all(runs):
                seconds, memory, size = map(statistics.median, zip(*runs, strict=True))
                value = f"{seconds:.2f} s, {memory / 1e6:,.0f} MB, {size:.3g} B"
            line(f"{name}, {length:,} tokens", value)


def measure(name, length):
    """(seconds, bytes of memory, bytes per weight) in a process of its own; None if it failed."""
    python = str(HOME / "bin/python") if name in THEIRS else sys.executable
    command = [python, __file__, "--alone", name, str(length)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        output = subprocess.check_output(command, text=True, timeout=LIMIT, env=env)
    except subprocess.SubprocessError:
        return None
    return json.loads(output.splitlines()[-1])


def measure_alone(name, length):
    """Print the same of this process, which is warmed up on 8 tokens."""
    prepare = their_page if name in THEIRS else our_picture
    with tempfile.TemporaryDirectory() as folder:
        prepare(name, 8, folder)()
        run, results = prepare(name, length, folder), []

        def work():
            begin = time.process_time()
            size = run()
            results.extend((time.process_time() - begin, size / (LAYERS * HEADS * length**2)))

        memory = growth(lambda: work)
    print(json.dumps([results[0], memory, results[1]]))


def their_page(name, length, folder):
    """A function that makes a page of random weights and returns its bytes."""
    import IPython.display

    torch.set_num_threads(1)
    weights = [torch.softmax(torch.randn(1, HEADS, length, length), -1) for _ in range(LAYERS)]
    tokens, parts = [f"w{number}" for number in range(length)], []
    IPython.display.display = lambda *pages, **_: parts.extend(pages)

    def work():
        if name.startswith("BertViz"):
            import bertviz

            view = getattr(bertviz, name.split()[1])
            page = view(weights, tokens, html_action="return").data
        elif name.startswith("CircuitsVis"):
            from circuitsvis.attention import attention_heads

            every = torch.cat([one[0] for one in weights])
            page = attention_heads(every, tokens, mask_upper_tri=False).local_src
        else:
            import inspectus

            inspectus.attention(weights, tokens)
            page = "".join(part.data for part in parts)
        return len(page.encode())

    return work


def our_picture(name, length, folder):
    """A function that writes random maps, draws the window's picture and returns bytes."""
    from hgviz.gui.selftest import window_picture
    from hgviz.store import write_capture

    random, contents = np.random.default_rng(0), []
    for _ in range(LAYERS):
        q, k = random.normal(size=(2, HEADS, length, WIDTH)).astype(np.float32)
        contents.append({"q": q, "k": k})
        if name == OURS[0]:
            weights = np.exp(q @ k.swapaxes(1, 2) / 8)
            contents[-1] = {"weights": weights / weights.sum(-1, keepdims=True)}
    path = Path(folder, f"{length}.h5")

    def work():
        write_capture(path, tokens=[f"w{number}" for number in range(length)], layers=contents)
        window_picture(path)
        return path.stat().st_size

    return work


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        measure_alone(sys.argv[2], int(sys.argv[3]))
    else:
        if "--install" in sys.argv:
            install()
            sys.argv[1:] = ["pages"]
        run_parts(activations=activations, pages=pages, package=package)
