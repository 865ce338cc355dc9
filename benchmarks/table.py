"""Measure what hgviz promises and print one table: this is what `make bench` runs.

    python benchmarks/table.py                 the promised rows: some twenty minutes
    python benchmarks/table.py --all           every part: hours
    python benchmarks/table.py tiles window    one part, and all parts of one script
    python benchmarks/capture.py tiles         one part without the table

The parts of a script print rows of a Markdown table. This file also holds what all scripts share:
timing by turns, and the memory of a new process.
"""

import argparse
import contextlib
import ctypes
import gc
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

PARTS = {  # the parts of `make bench`, and those of `make bench-all` alone
    "capture": (("tiles", "texts", "grouped"), ("longest",)),
    "window": (("moving", "comparing", "startup"), ()),
    "pruning": (("classifiers", "hourglass", "llama"), ()),
    "sample": (("completeness",), ("rollout", "bytes", "reviews")),
    "peers": (("activations", "pages"), ("package",)),
    "device": (("maps", "families", "verbs"), ("large",)),
    "zoo": ((), ("types",)),
}


def heading(words):
    """Print what the rows from here on are about."""
    print(f"| **{words}** | | | |", flush=True)


def line(name, value, limit=""):
    """Print one row of the table: what is measured, the value, its limit and whether it holds."""
    verdict = {True: "yes", False: "**NO**", None: ""}[holds(value, limit)]
    print(f"| {name} | {value} | {limit} | {verdict} |", flush=True)


def holds(value, limit):
    """Whether the first number of a value is within that of its limit; None without a number."""
    numbers = [
        re.search(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", words.replace(",", ""))
        for words in (value, limit)
    ]
    if None in numbers:
        return None
    measured, bound = (float(number[0]) for number in numbers)
    return measured >= bound if "at least" in limit else measured <= bound


def in_turn(works, rounds, clock=time.perf_counter, wait=lambda: None):
    """Median seconds of each function {name: seconds}, all once in every round.

    If there are several rounds, one more comes first and is not counted.
    """
    seconds = {name: [] for name in works}
    for _ in range(rounds + (rounds > 1)):
        for name, work in works.items():
            start = clock()
            work()
            wait()
            seconds[name].append(clock() - start)
    return {name: statistics.median(times[-rounds:]) for name, times in seconds.items()}


def memory_of(prepare, *arguments):
    """Bytes by which a new process grows at most while it runs prepare(*arguments)()."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(growth, prepare, *arguments).result()


def growth(prepare, *arguments):
    """Bytes by which this process grows at most while it runs prepare(*arguments)()."""
    work = prepare(*arguments)
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)  # reuse of freed memory would not be counted
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    before = peak_memory()
    work()
    return peak_memory() - before


def peak_memory():
    """The largest resident size of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss counts the process that started this one as well
        return int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def run_parts(**parts):
    """Run the parts of a script that the command line names, or all; ignores names of files."""
    names = [name for name in sys.argv[1:] if not Path(name).is_file()] or list(parts)
    for name in names:
        if name not in parts:
            sys.exit(f"unknown part {name}: choose from {', '.join(parts)}")
        parts[name]()


def run_part(script, part, seconds):
    """Run one part in a process. Returns its rows, and how it failed or an empty string."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name(f"{script}.py"), part],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    failure = ""
    try:
        output, _ = process.communicate(timeout=seconds)
        if process.returncode:
            failure = f"{part} ended with code {process.returncode}"
    except subprocess.TimeoutExpired:
        failure = f"{part} was stopped after {seconds // 60} minutes"
        os.killpg(process.pid, signal.SIGKILL)  # and the processes that it started
        output, _ = process.communicate()
    return output, failure


def main():
    """Run parts one after the other and print the table of their rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts or scripts, such as tiles or window")
    parser.add_argument("--all", action="store_true", help="the long parts as well")
    options = parser.parse_args()
    with_long = options.all or bool(options.names)
    parts = [
        (script, part)
        for script, (short, long) in PARTS.items()
        for part in short + (long if with_long else ())
        if not options.names or {script, part} & set(options.names)
    ]
    if unknown := set(options.names) - {name for names in parts for name in names}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}. There are {PARTS}")
    print(f"{machine()}\n\n| what | measured | limit | holds |\n|---|---|---|---|", flush=True)
    outputs, failures = [], []
    for script, part in parts:
        output, failure = run_part(script, part, 60 * (40 if with_long else 15))
        print(f"| **benchmarks/{script}.py {part}** | | | |\n{output}", end="", flush=True)
        outputs.append(output)
        failures += [failure] * bool(failure)
    rows = "".join(outputs)
    print(f"\n{rows.count('| yes |')} limits hold, {rows.count('| **NO** |')} do not.")
    print("".join(f"Not measured: {failure}.\n" for failure in failures), end="")
    return 1 if failures else 0


def machine():
    """Date, processor, system and versions in one line."""
    info = Path("/proc/cpuinfo")
    processor = re.search(r"model name\s*: (.+)", info.read_text()) if info.exists() else None
    words = (
        time.strftime("%d %B %Y"), f"{os.cpu_count()} cores", processor[1] if processor else "",
        platform.platform(), f"Python {platform.python_version()}", f"torch {version('torch')}",
    )  # fmt: skip
    return ", ".join(filter(None, words))


if __name__ == "__main__":
    sys.exit(main())
