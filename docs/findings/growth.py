"""How what hgviz does grows with the length of a text and the number of heads; writes growth.csv.

    python growth.py         measures all, and draws: some 20 minutes of one core
    python growth.py draw    draws growth.csv again

Decoders with random weights: 2 layers, heads of width 64, one thread. Times are of the processor,
medians of rounds for what takes less than a second.
"""

import csv
import statistics
import sys
import time
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import numpy as np
import torch
from PIL import Image
from PIL.PngImagePlugin import PngInfo

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import capture as benchmark  # noqa: E402

import hgviz  # noqa: E402
from hgviz.figures.charts import Line, Plot, Plots  # noqa: E402
from hgviz.figures.output import preview  # noqa: E402
from hgviz.figures.spec import Panel, Spec  # noqa: E402
from hgviz.maps import LazyMap  # noqa: E402

TABLE, PICTURE, DOTS = HERE / "growth.csv", "growth.png", 200
LENGTHS, FEW = tuple(1024 << n for n in range(8)), 2  # tokens, and their heads
HEADS, MIDDLE = (1, 2, 4, 8, 16, 32), 4096  # heads, and their tokens
CELLS = 512  # of an overview, each way
WINDOW = 1024  # tokens that importance reads at once
ROUNDS, SHORT = 5, 1.0  # seconds up to which a task is repeated
TASKS = MappingProxyType({
    "forward": "forward pass",
    "capture": "capture into a file",
    "file": "size of the file",
    "open": "open, overview of a map",
    "pan": "read 800 × 1,000 weights",
    "rollout": "rollout of the last token",
    "importance": "importance (michel)",
})  # fmt: skip
DESCRIPTION = "drawn by docs/findings/growth.py"
FITTED = 4  # the largest sizes, which a slope is fitted to


def seconds(work):
    """Processor seconds of a function: the median of rounds if it takes less than a second."""
    times = []
    while len(times) < (1 if times and max(times) > SHORT else ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def open_map(file, tokens):
    """Open a capture and read a map of CELLS x CELLS cells."""
    zoom = max(0, (tokens // CELLS).bit_length() - 1)
    layer = hgviz.open_capture(file).maps[0]
    if layer.overview(0, zoom=zoom) is None:  # short texts have no stored levels
        layer.read(0, zoom=zoom)


def measure(tokens, heads):
    """The seconds of each task, and the megabytes of the file."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        text = benchmark.Text(tokens, 2, heads)
        benchmark.write_decoder(folder, text)
        file = folder / "c.h5"
        values = {
            "forward": seconds(benchmark.prepared(folder, tokens, "forward")),
            "capture": seconds(benchmark.prepared(folder, tokens, "file")),
            "file": file.stat().st_size / 1e6,
            "open": seconds(lambda: open_map(file, tokens)),
        }
        layer = hgviz.open_capture(file).maps[0]
        rows, columns = (tokens - benchmark.ROWS, tokens), (0, benchmark.COLUMNS)
        values["pan"] = seconds(lambda: LazyMap(layer.factors, layer.heads).read(0, rows, columns))
        last = tokens - 1, tokens
        values["rollout"] = seconds(
            lambda: hgviz.rollout(hgviz.open_capture(file), rows=last, progress=None)
        )
        benchmark.write_decoder(folder, text._replace(length=WINDOW))
        (folder / "text.txt").write_bytes(np.random.default_rng(0).integers(97, 123, tokens, "u1"))
        model = hgviz.open_model(folder / "model", device="cpu")
        values["importance"] = seconds(
            lambda: hgviz.importance(model, folder / "text.txt", progress=None)
        )
    return values


def read_rows():
    """The rows of the table: task, tokens, heads, value."""
    with TABLE.open(encoding="utf-8") as file:
        return [(row["task"], int(row["tokens"]), int(row["heads"]), float(row["value"]))
                for row in csv.DictReader(file)]  # fmt: skip


def curve(rows, task, by_heads):
    """Sizes and values of a task, by tokens or by heads."""
    points = [
        (heads if by_heads else tokens, value)
        for name, tokens, heads, value in rows
        if name == task and (tokens == MIDDLE if by_heads else heads == FEW)
    ]
    return np.array(sorted(points), float).T


def slope(rows, task, by_heads):
    """The exponent p of value ~ size^p, by least squares of logarithms of the largest sizes."""
    size, value = np.log(curve(rows, task, by_heads)[:, -FITTED:])
    return float(np.polyfit(size, value, 1)[0])


def chart(rows):
    """Times against tokens and against heads, on logarithmic scales."""
    plots = []
    for by_heads in (False, True):
        lines = [Line(words, *curve(rows, task, by_heads))
                 for task, words in TASKS.items() if task != "file"]  # fmt: skip
        title, across = (
            (f"{MIDDLE:,} tokens", "heads per layer") if by_heads else (f"{FEW} heads", "tokens")
        )
        xs = tuple((float(size), f"{size:,}" if by_heads else f"{size // 1024}k")
                   for size in (HEADS if by_heads else LENGTHS))  # fmt: skip
        plots.append(Plot(title, across, "seconds", tuple(lines), xs, log=(True, True)))
    return Plots(plots=tuple(plots))


def main():
    """Measure every size, unless asked to draw only; then draw."""
    if sys.argv[1:] != ["draw"]:
        torch.set_num_threads(1)
        sizes = dict.fromkeys([*((n, FEW) for n in LENGTHS), *((MIDDLE, n) for n in HEADS)])
        with TABLE.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(("task", "tokens", "heads", "value"))
            for tokens, heads in sizes:
                for task, value in measure(tokens, heads).items():
                    table.writerow([task, tokens, heads, f"{value:.5g}"])
                file.flush()
    spec = Spec("curve", width="17cm", title="")
    png = preview(Panel(spec, chart(read_rows())), DOTS).png
    about = PngInfo()
    about.add_text("Description", DESCRIPTION)
    Image.open(BytesIO(png)).save(ROOT / "docs/pictures" / PICTURE, optimize=True, pnginfo=about)


if __name__ == "__main__":
    main()
