"""Measure what hgviz promises and print one table: this is what `make bench` runs.

    python benchmarks/table.py                 the promised lines: some twenty minutes
    python benchmarks/table.py --all           every part: hours
    python benchmarks/table.py tiles window    one part, and all parts of one script
    python benchmarks/capture.py tiles         one part without the table

A script has named parts. A part calls line(name, value, limit), whose first numbers are compared:
"1.30" and "1.5", "103" and "at least 80". This file also holds what all scripts share: timing that
takes turns, and the memory of a new process.
"""

import argparse
import contextlib
import ctypes
import gc
import json
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

PARTS = {  # the parts of `make bench`, and those of `make bench-all` alone
    "capture": (("tiles", "exactness", "texts", "grouped"), ("longest",)),
    "window": (("moving", "comparing", "startup"), ()),
    "pruning": (("classifiers", "hourglass", "llama", "captum"), ()),
    "sample": (("completeness",), ("rollout", "bytes", "reviews")),
    "peers": (("activations", "pages"), ("package", "shortening")),
    "device": (("maps", "families", "verbs", "large"), ()),
    "zoo": ((), ("types",)),
}
MINUTES = {False: 15, True: 40}  # a part of `make bench`, of `make bench-all`, is stopped after
LINES = "HGVIZ_BENCH_LINES"  # names the file that lines are added to
PACKAGES = ("torch", "numpy", "h5py", "PySide6_Essentials")
_heading = ""


def heading(words):
    """Print what the lines from here on are about."""
    global _heading
    _heading = f"{words}: "
    print(words, flush=True)


def line(name, value, limit=""):
    """Print one line of the table: what is measured, how much, and whether it keeps the limit."""
    verdict = holds(value, limit)
    words = {True: "yes", False: "NO", None: ""}[verdict]
    print(f"  {name:62}{value:>12}   {limit:14} {words}".rstrip(), flush=True)
    if path := os.environ.get(LINES):
        record = {"name": _heading + name, "value": value, "limit": limit, "holds": verdict}
        with Path(path).open("a") as file:
            print(json.dumps(record), file=file)


def holds(value, limit):
    """Whether a value keeps its limit; None where there is no limit or no number."""
    numbers = [
        re.search(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", words.replace(",", ""))
        for words in (value, limit)
    ]
    if None in numbers:
        return None
    measured, bound = (float(number[0]) for number in numbers)
    return measured >= bound if "at least" in limit else measured <= bound


# --- timing and memory ----------------------------------------------------------------------------


def in_turn(works, rounds, clock=time.perf_counter, wait=lambda: None):
    """Median seconds of each function {name: seconds}, all once in every round.

    One round more comes first and is not counted where there are several.
    """
    taken = {name: [] for name in works}
    for _ in range(rounds + (rounds > 1)):
        for name, work in works.items():
            start = clock()
            work()
            wait()
            taken[name].append(clock() - start)
    return {name: statistics.median(times[-rounds:]) for name, times in taken.items()}


def in_new_process(function, *arguments):
    """Return what a function of a script gives in a fresh process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def memory_of(prepare, *arguments):
    """Bytes by which a fresh process grows at most while it runs prepare(*arguments)()."""
    return in_new_process(growth, prepare, *arguments)


def growth(prepare, *arguments):
    """The same in this process, where the system can reset its count of the largest size."""
    work = prepare(*arguments)
    before = held_now()
    work()
    return largest() - before


def held_now():
    """Bytes that this process holds; the largest size counts from here on."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)  # free memory would be used again, unnoticed
        Path("/proc/self/clear_refs").write_text("5")
    return largest()


def largest():
    """The largest resident size of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss counts the process that started this one as well
        rows = dict(row.split(":", 1) for row in status.read_text().splitlines())
        return int(rows["VmHWM"].split()[0]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


# --- running parts --------------------------------------------------------------------------------


def run_parts(parts):
    """Run the parts of a script that the command line names, or all; files are left to them."""
    names = [name for name in sys.argv[1:] if not Path(name).is_file()] or list(parts)
    if unknown := [name for name in names if name not in parts]:
        sys.exit(f"unknown: {', '.join(unknown)}. There are {', '.join(parts)}")
    for name in names:
        parts[name]()


def main():
    """Run parts one after the other and print the table of their lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts or scripts, such as tiles or window")
    parser.add_argument("--all", action="store_true", help="the long parts as well")
    options = parser.parse_args()
    everything = options.all or bool(options.names)
    calls = [
        (script, part)
        for script, (short, long) in PARTS.items()
        for part in short + (long if everything else ())
        if not options.names or {script, part} & set(options.names)
    ]
    known = set(PARTS) | {part for _, part in calls}
    if unknown := set(options.names) - known:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}. There are {PARTS}")
    rows, failures = [], []
    for script, part in calls:
        lines, failure = collect(script, part, 60 * MINUTES[everything])
        rows += [(part, line["name"], line["value"], line["limit"], line["holds"])
                 for line in lines]  # fmt: skip
        failures += [f"{part} {failure}"] if failure else []
    print("\n" + "\n".join(markdown(rows, failures)))
    return 1 if failures else 0


def collect(script, part, limit):
    """The lines of one part, and how it ended if it did not end well."""
    path = Path(__file__).with_name(f"{script}.py")
    print(f"== benchmarks/{path.name} {part}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines")
        file.touch()
        process = subprocess.Popen(
            [sys.executable, str(path), *part.split()],
            env={**os.environ, LINES: str(file)},
            start_new_session=True,  # so that everything it starts can be stopped with it
        )
        try:
            code = process.wait(limit)
            failure = f"ended with code {code}" if code else ""
        except subprocess.TimeoutExpired:
            failure = f"was stopped after {limit // 60} minutes"
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return [json.loads(row) for row in file.read_text().splitlines()], failure


def markdown(rows, failures):
    """The table of (part, name, value, limit, verdict), to be pasted into RESULTS.md."""
    yield machine()
    yield "\n| part | what | measured | limit | holds |\n|---|---|---|---|---|"
    for *cells, verdict in rows:
        yield f"| {' | '.join(cells)} | {({True: 'yes', False: '**NO**'}).get(verdict, '')} |"
    verdicts = [row[-1] for row in rows]
    yield f"\n{verdicts.count(True)} limits hold, {verdicts.count(False)} do not."
    yield from (f"Not measured: {failure}." for failure in failures)


def machine():
    """Date, processor, system, versions and load in one line."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.+)", info.read_text()) if info.exists() else []
    facts = [time.strftime("%d %B %Y"), f"{os.cpu_count()} cores of {(names or ['unknown'])[0]}",
             platform.system(), f"Python {platform.python_version()}"]  # fmt: skip
    facts += [f"{name} {version(name)}" for name in PACKAGES]
    return ", ".join(facts + [f"load {os.getloadavg()[0]:.1f}"])


if __name__ == "__main__":
    sys.exit(main())
