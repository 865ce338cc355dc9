"""From attention weights in memory to a picture: BertViz, inspectus, CircuitsVis and hgviz.

12 layers of 12 heads, as BERT-base has, random, 64 to 512 tokens; hgviz alone beyond. What each
makes of them:

  BertViz head_view, model_view   a page of HTML with all heads' weights as JSON
  CircuitsVis attention_heads     the same
  inspectus attention             the same, weights as base64; its page draws sums over heads
  hgviz, weights                  a file of the weights, then the window's picture of all heads and
                                  of one head's map, off screen
  hgviz, q and k                  the same from queries and keys, which is how it captures models

A page has yet to be painted by a browser, which is not measured and takes longer than making it.
Processor time on one thread; memory is the peak of a new process over what it held before, weights
and libraries; bytes are those of the page or the file. Each is warmed up on 8 tokens, and stopped
after 60 seconds. Medians of three where one takes under 5 seconds, taken in turn.

    python benchmarks/peers.py --install    the three into .venv/peers, 1.1 GB with their torch
    python benchmarks/peers.py              without them hgviz alone
    python benchmarks/peers.py --long       1,024 tokens for all, 32k and 131k for hgviz
"""

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import line

HOME = Path(__file__).parents[1] / ".venv" / "peers"
COMMAND = "python benchmarks/peers.py --install"
NEEDS = "torch==2.13.0", "numpy==2.4.6", "ipython==9.18.1", "importlib_metadata==10.2.0"
PEERS = "bertviz==1.4.1", "inspectus==0.2.0", "circuitsvis==1.43.3"
THEIRS = {
    "BertViz head_view": "bertviz",
    "BertViz model_view": "bertviz",
    "CircuitsVis attention_heads": "circuitsvis",
    "inspectus attention": "inspectus",
}
OURS = "hgviz, weights", "hgviz, q and k"
BERT = 12, 12
LENGTHS = 64, 128, 256, 512
ALONE = {1024: BERT, 4096: (2, 12), 8192: (1, 8)}  # (layers, heads)
LONG = {32_768: (1, 2), 131_072: (1, 1)}
WIDTH, PIXELS = 64, 1024
LIMIT = 60  # seconds of processor time that a peer may take
ROUNDS, QUICK = 3, 5


def main():
    """Print a line for each way and length, then all in one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true", help="install the peers, then measure")
    parser.add_argument("--long", action="store_true", help="the long lengths only: half an hour")
    parser.add_argument("--alone", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        name, *shape = options.alone
        print(json.dumps(alone(name, *map(int, shape))))
        return 0
    if options.install and not install():
        return 1
    theirs = tuple(THEIRS) if interpreter().exists() else ()
    if not theirs:
        print(f"BertViz, inspectus and CircuitsVis are not here; `{COMMAND}` gets them")
    plan = [] if options.long else [(length, BERT, theirs + OURS) for length in LENGTHS]
    for length, shape in (LONG if options.long else ALONE).items():
        plan.append((length, shape, OURS[1:]))  # weights would be 0.6 GB at 1,024 and 17 at 131k
    if options.long and theirs:
        plan.append((1024, BERT, theirs))
    rows = {}
    for length, shape, names in plan:
        for name, found in turns(names, length, shape).items():
            rows.setdefault(name, {})[length] = found
            tell(name, length, shape, found)
    print()
    for text in table(rows):
        print(text)
    return 0


def turns(names, length, shape):
    """{name: what one way took and gave, or words on why it did not}, in turn, medians."""
    found = {name: [measured(name, length, shape)] for name in names}
    quick = [name for name in names if is_quick(found[name][0])]
    for _ in range(ROUNDS - 1):
        for name in quick:
            found[name].append(measured(name, length, shape))
    return {name: median(ones) for name, ones in found.items()}


def is_quick(found):
    """Whether there is time for more than one measurement."""
    return isinstance(found, dict) and found["seconds"] < QUICK


def median(ones):
    """Every figure's median; the words of the first that failed, if one did."""
    for one in ones:
        if isinstance(one, str):
            return one
    return {key: statistics.median(one[key] for one in ones) for key in ones[0]}


def measured(name, length, shape):
    """One measurement in a process of its own."""
    python = interpreter() if name in THEIRS else sys.executable
    command = [str(python), __file__, "--alone", name, str(length), *map(str, shape)]
    settings = {"OMP_NUM_THREADS": "1", "QT_QPA_PLATFORM": "offscreen"}
    root = str(Path(__file__).parents[1])
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=3600,
            env={**os.environ, **settings, "PYTHONPATH": root},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "over an hour"
    if done.returncode == -24:  # SIGXCPU
        return f"over {LIMIT} s"
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        return f"died ({said[:60]})"
    return json.loads(done.stdout.splitlines()[-1])


def tell(name, length, shape, found):
    """The line of one way at one length."""
    heads = "" if shape == BERT else f", {shape[0] * shape[1]} heads"
    line(f"{name}, {length:,} tokens{heads}", said(found))
    if isinstance(found, dict) and "file" in found:
        parts = (f"{part} {found[part]:.2f}" for part in ("file", "head", "window"))
        print(f"      of it {', '.join(parts)} s")


def said(found):
    """What one way took and gave, in a few words."""
    if isinstance(found, str):
        return found
    memory = f"{found['memory'] / 1e6:,.0f} MB"
    return f"{found['seconds']:.2f} s, {memory}, {found['bytes']:.3g} B"


def table(rows):
    """Seconds, memory and bytes a weight, in Markdown."""
    lengths = sorted({length for one in rows.values() for length in one})
    yield "| | " + " | ".join(f"{length:,} tokens" for length in lengths) + " |"
    yield "|" + "---|" * (len(lengths) + 1)
    for name, one in rows.items():
        cells = [said(one[length]) if length in one else "" for length in lengths]
        yield f"| {name} | " + " | ".join(cells) + " |"


# --- the environment of the peers -----------------------------------------------------------------


def interpreter():
    """The Python that has the peers."""
    return HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install():
    """Make the environment of the peers; whether that worked."""
    pip = [str(interpreter()), "-m", "pip", "install", "--disable-pip-version-check"]
    print(f"installing {', '.join(PEERS)} into {HOME}", flush=True)
    for command in (
        [sys.executable, "-m", "venv", str(HOME)],
        [*pip, "-q", *NEEDS],  # what the three import to draw, and no more
        [*pip, "-q", "--no-deps", *PEERS],
    ):
        if subprocess.run(command).returncode:
            print(f"The peers could not be installed: {' '.join(command[:4])} failed.")
            return False
    return True


# --- one measurement ------------------------------------------------------------------------------


def alone(name, length, layers, heads):
    """What one way takes and gives, in this process."""
    make = theirs if name in THEIRS else ours
    with tempfile.TemporaryDirectory() as folder:
        warm = make(name, 8, 1, heads, Path(folder))
        warm()
        work = make(name, length, layers, heads, Path(folder))
        limited(LIMIT if name in THEIRS else 3600)
        before = held_from_now()
        start = time.process_time()
        found = work()
        seconds = found.pop("seconds", None) or time.process_time() - start
        size = found.pop("bytes") / (layers * heads * length**2)
        return {"seconds": seconds, "memory": peak() - before, "bytes": size, **found}


def theirs(name, length, layers, heads, folder):
    """The work of a peer on random weights; one thread, no notebook."""
    import IPython.display
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    weights = [torch.softmax(torch.randn(1, heads, length, length), -1) for _ in range(layers)]
    tokens = [f"w{number}" for number in range(length)]
    shown = []
    IPython.display.display = lambda *pages, **_: shown.extend(pages)
    module = importlib.import_module(THEIRS[name])

    def work():
        if name.startswith("BertViz"):
            page = getattr(module, name.split()[1])(weights, tokens, html_action="return").data
        elif name.startswith("CircuitsVis"):
            attention = importlib.import_module("circuitsvis.attention")
            all_heads = torch.cat([one[0] for one in weights])
            page = attention.attention_heads(all_heads, tokens, mask_upper_tri=False).local_src
        else:
            module.attention(weights, tokens)
            page = "".join(one.data for one in shown)
        return {"bytes": len(page.encode())}

    return work


def ours(name, length, layers, heads, folder):
    """The work of hgviz on random weights, or on random queries and keys."""
    import numpy as np

    from hgviz.gui.selftest import window_picture
    from hgviz.store import write_capture

    random = np.random.default_rng(0)

    def draw():
        return random.normal(size=(heads, length, WIDTH)).astype(np.float32)

    given = [{"q": draw(), "k": draw()} for _ in range(layers)]
    if name == "hgviz, weights":
        given = [{"weights": softmax(one["q"] @ one["k"].swapaxes(1, 2) / 8)} for one in given]
    tokens = [f"w{number}" for number in range(length)]
    out = folder / f"{length}.h5"

    def work():
        times = [time.process_time()]
        write_capture(out, tokens=tokens, layers=given)
        times.append(time.process_time())
        head(out)
        times.append(time.process_time())
        window_picture(out)
        times.append(time.process_time())
        file, one, window = (b - a for a, b in zip(times, times[1:], strict=False))
        parts = {"file": file, "head": one, "window": window}
        return {"seconds": file + window, "bytes": out.stat().st_size, **parts}

    return work


def head(path):
    """The first picture of one head: the file opened, its map fitted into PIXELS, coloured."""
    from hgviz import palettes
    from hgviz.store import open_capture

    one = open_capture(path).maps[0]
    _, queries, keys = one.shape
    zoom = max(0, -(-max(queries, keys) // PIXELS) - 1).bit_length()
    values = one.overview(0, (0, queries), (0, keys), zoom, "max")
    if values is None:
        values = one.read(0, zoom=zoom)
    limits = palettes.limits_of(0.0, float(values.max()), False)
    return palettes.paint(palettes.palette_coordinates(values, limits), palettes.colours("viridis"))


def softmax(scores):
    """Rows that add up to 1."""
    import numpy as np

    raised = np.exp(scores)
    return raised / raised.sum(-1, keepdims=True)


def limited(seconds):
    """So much processor time from now on, and no more memory than the machine has free."""
    try:
        import resource
    except ImportError:
        return  # Windows
    until = int(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until, until + 10))
    rows = Path("/proc/meminfo")
    if rows.exists():
        facts = dict(one.split(":") for one in rows.read_text().splitlines())
        free = int(facts["MemAvailable"].split()[0]) * 1024
        most = free + of_this_process("VmSize")
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def held_from_now():
    """Bytes this process holds; its peak counts from here on, where the system can do that."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):  # what is free would be used unseen
        ctypes.CDLL(None).malloc_trim(0)
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak():
    """Bytes this process took at most."""
    if Path("/proc/self/status").exists():
        return of_this_process("VmHWM")
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def of_this_process(name):
    """Bytes, as Linux counts them."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return int(next(one for one in rows if one.startswith(f"{name}:")).split()[1]) * 1024


if __name__ == "__main__":
    sys.exit(main())
