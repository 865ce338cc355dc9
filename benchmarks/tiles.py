"""How long a viewport of 1000 x 800 cells takes that nobody looked at before, at 1x to 8x.

Beside the matrix products it cannot do without: the same 256 x 256 tiles and nothing else. One BLAS
thread, processor time, taken in turn, medians. The head is causal, the viewport under its diagonal.
Then what is looked at of a head in a file: its summary and its overview, one row, one cell.
"""

import statistics
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
from table import line

from hgviz.maps import TILE, Factors, LazyMap, Relative, Rule
from hgviz.maps.tiles import one_thread
from hgviz.store import open_capture, write_capture

ROWS, COLUMNS = 800, 1000
POSITIONS = 16_384
LENGTHS = 8192, 32_768, 131_072
LIMITS = 4, 2, 2, 1.5
ROUNDS = 9
HEADS = 2  # of the capture whose heads are opened
FITTED = 5  # the zoom at which all of 32,768 positions fit 1000 cells


def main():
    """Print what has a limit, then a table of other heads."""
    long()
    with tempfile.TemporaryDirectory() as folder:
        openings(captured(Path(folder) / "c.h5"))
    one_row()
    print(f"\n{'':36}{'viewport':>11}{'products':>11}{'ratio':>7}{'a tile':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for width in (32, 64):
            for kind in ("softmax", "tanh", "relative"):
                for zoom in range(4):
                    row(f"{kind}, {width} wide, {1 << zoom}x", factors(width, kind), zoom)
        stored = on_disk(factors(32, "softmax"), Path(folder) / "q.h5")
        for zoom in range(4):
            row(f"softmax, 32 wide, {1 << zoom}x, from a file", stored, zoom)


def long():
    """The same 64 wide at three lengths, side by side, with the limits of what is promised."""
    layers = {length: factors(64, "softmax", length) for length in LENGTHS}
    for zoom, limit in enumerate(LIMITS):
        found = {length: [] for length in LENGTHS}
        for _ in range(ROUNDS + 1):
            for length, layer in layers.items():
                found[length].append((viewport(layer, zoom), products(layer, zoom)))
        ratios = []
        for length, both in found.items():
            mine, bare = (1000 * statistics.median(one) for one in zip(*both[1:], strict=True))
            ratios.append(mine / bare)
            name = f"viewport, {1 << zoom}x of {length:,}, {mine:.1f} ms, over its products"
            line(name, f"{mine / bare:.2f}", f"at most {limit}")
        # by ratio: at 8x the viewport into 8,192 positions reaches over the diagonal
        most = max(ratios) / min(ratios)
        line(f"viewport, {1 << zoom}x, slowest length / fastest", f"{most:.2f}", "at most 1.5")


def captured(path):
    """A file of some heads of 32,768 positions, with stored levels."""
    random = np.random.default_rng(0)
    q, k = (random.normal(size=(HEADS, LENGTHS[1], 64)).astype(np.float32) for _ in range(2))
    layer = {"q": q, "k": k, "causal": True}
    return write_capture(path, tokens=["a"] * LENGTHS[1], layers=[layer])


def openings(path):
    """What a head takes that was not looked at since its file was opened; the process was warm."""
    found = []
    for head in (0, *range(HEADS)):
        start = time.thread_time()
        maps = open_capture(path).maps[0]
        opened = time.thread_time()
        maps.summary(head)
        assert maps.overview(head, zoom=FITTED) is not None
        looked = time.thread_time()
        maps.read(head, (LENGTHS[1] - 1, LENGTHS[1]), (0, 1))  # its layer's checksum, once
        checked = time.thread_time()
        maps.read(head, (0, 1), (0, 1))
        found.append((opened - start, looked - opened, time.thread_time() - checked))
    file, head, cell = (1000 * statistics.median(one) for one in zip(*found[1:], strict=True))
    line("opening a capture of 32,768 tokens", f"{file:.1f} ms")
    line("opening a head of it: summary, overview", f"{head:.1f} ms", "at most 20 ms")
    line("one cell of it", f"{cell:.2f} ms")


def one_row():
    """The last row of 131,072 keys, of a map that has read nothing yet."""
    layer, times = factors(64, "softmax", LENGTHS[2]), []
    for _ in range(ROUNDS + 1):
        maps, start = LazyMap(layer, (0,)), time.thread_time()
        maps.read(0, (LENGTHS[2] - 1, LENGTHS[2]))
        times.append(time.thread_time() - start)
    line("a row of 131,072 keys", f"{1000 * statistics.median(times[1:]):.1f} ms")


def row(name, layer, zoom):
    """One line of the table."""
    both = [(viewport(layer, zoom), products(layer, zoom)) for _ in range(ROUNDS + 1)][1:]
    mine, bare = (1000 * statistics.median(times) for times in zip(*both, strict=True))
    tiles = -(-(ROWS << zoom) // TILE) * -(-(COLUMNS << zoom) // TILE)
    print(f"{name:36}{mine:9.2f}ms{bare:9.2f}ms{mine / bare:7.2f}{mine / tiles:8.3f}ms")


def factors(width, kind, positions=POSITIONS):
    """One random head."""
    random = np.random.default_rng(0)

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32)

    terms = draw(1, width, 6 * width), draw(1, width), draw(1, width), draw(1, width)
    rule = Rule(
        scale=width**-0.5,
        activations=("tanh" if kind == "tanh" else "softmax",),
        norms=(None,),
        causal=True,
        relative=Relative(*terms) if kind == "relative" else None,
    )
    none = np.zeros(0, np.int64), np.zeros((1, 0, positions), np.float32)
    stat = np.full((1, positions), 9.1)  # as settled: not a float32
    return Factors(draw(1, positions, width), draw(1, positions, width), stat, rule, *none)


def on_disk(layer, path):
    """The same head in chunks of a file."""
    with h5py.File(path, "w") as file:
        for name in ("q", "k"):
            values = getattr(layer, name)
            file.create_dataset(name, data=values, chunks=(1, 512, 32), fletcher32=True)
        file.create_dataset("stat", data=layer.stat, chunks=(1, POSITIONS), fletcher32=True)
    opened = h5py.File(path, "r")
    parts = opened["q"], opened["k"], opened["stat"]
    return Factors(*parts, layer.rule, layer.proof_rows, layer.proof_values)


def viewport(layer, zoom):
    """Seconds for the lower left corner, read by a map that has read nothing yet."""
    maps, positions = LazyMap(layer, (0,)), layer.q.shape[1]
    start = time.thread_time()
    maps.read(0, (positions - (ROWS << zoom), positions), (0, COLUMNS << zoom), zoom)
    return time.thread_time() - start


def products(layer, zoom):
    """Seconds for the products of the same tiles."""
    q, k, positions = layer.q[0], layer.k[0], layer.q.shape[1]
    top = (positions - (ROWS << zoom)) // TILE * TILE
    start = time.thread_time()
    with one_thread():
        for row in range(top, positions, TILE):
            for column in range(0, min(COLUMNS << zoom, row + TILE), TILE):
                q[row : row + TILE] @ k[column : column + TILE].T
    return time.thread_time() - start


if __name__ == "__main__":
    main()
