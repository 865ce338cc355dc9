"""How soon a capture can be stopped in the window's engine lane, what memory comes back, and how
near its estimate is to what it takes.

    python benchmarks/stops.py
"""

import gc
import os
import time
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as the window leaves a core to itself

from table import heading, line

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.files import resource
from hgviz.gui.window import keep_memory
from hgviz.jobs import Lane
from hgviz.maps.tiles import release_memory

SENTENCE = "The hourglass reads letters, then pairs, then words. It thinks where little is. "
LENGTHS = (30_000, 300_000, 900_000)
AFTER = (1.0, 3.0, 6.0)  # s after which it is stopped


def text(length):
    return (SENTENCE * (length // len(SENTENCE) + 1))[:length]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def stopped(lane, model, length, after):
    """Seconds until the lane has let go of a capture that was stopped, and MB that stay."""
    gc.collect()
    before = resident()
    job = lane.submit("capture", "capture", partial(captured, model, length))
    time.sleep(after)
    start = time.perf_counter()
    job.cancel()
    job.wait()
    took = time.perf_counter() - start
    gc.collect()
    release_memory()
    return took, resident() - before


def captured(model, length):
    return tasks.capture(model, model.tokenize(text(length)))


def main():
    keep_memory()
    model = tasks.load(str(resource("sample/hourglass")), "cpu")
    heading("the bundled Hourglass, on one thread")
    try:
        start = time.perf_counter()
        tasks.estimate(model, text(9 << 20))
        line("9 MB refused", "no", "")
    except HgvizError:
        line("9 MB refused after, s", f"{time.perf_counter() - start:.1f}", "at most 5")
    estimate = tasks.estimate(model, text(LENGTHS[0]))
    start = time.perf_counter()
    captured(model, LENGTHS[0])
    took = time.perf_counter() - start
    line(f"estimate of {LENGTHS[0]:,} tokens / what they take", f"{estimate.seconds / took:.2f}")
    lane = Lane("engine")
    for length in LENGTHS:
        found = [stopped(lane, model, length, after) for after in AFTER]
        worst = max(one for one, _ in found)
        line(f"Stop of {length:,} tokens, slowest of {len(AFTER)}, s", f"{worst:.2f}", "at most 1")
        line("  memory that stays after the last, MB", f"{found[-1][1]:.0f}", "at most 200")
    lane.shutdown()


if __name__ == "__main__":
    main()
