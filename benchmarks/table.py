"""Every measured line with its limit, of all scripts, in one table: what `make bench` prints.

A script says line(name, value, limit); it is printed at once, and kept where this program runs the
script. Value and limit are words whose first numbers are compared: "1.30" and "at most 1.5", "103"
and "at least 80"; a limit without such words is one to stay under.

    python benchmarks/table.py                 some twenty minutes; no script over 15
    python benchmarks/table.py --all           hours; no script over 40 minutes
    python benchmarks/table.py tiles lengths   these
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

SHORT = (
    "tiles", "fluid", "comparing", "lengths", "exactness", "completeness", "capture", "peers",
    "device", "startup", "pruning", "stops", "grouped", "activations",
)  # fmt: skip
LONG = (
    "lengths 131072", "grouped 65536", "peers --long", "kills", "responsiveness", "generation",
    "nearness", "hourglass", "sample", "classifiers", "sst2", "curves", "removal", "cluster", "zoo",
)  # fmt: skip
MINUTES = 15  # a script that takes longer is stopped, and said to be; 40 with --all
KEPT = "HGVIZ_BENCH_LINES"  # names the file that lines are added to
PACKAGES = ("torch", "numpy", "h5py", "PySide6_Essentials")
_under = ""


def heading(words):
    """Print what the lines from here on are about."""
    global _under
    _under = f"{words}: "
    print(words, flush=True)


def line(name, value, limit=""):
    """Print one line of a table: what, how much, and whether that keeps the limit."""
    found = holds(value, limit)
    verdict = "" if found is None else "yes" if found else "NO"
    print(f"  {name:52}{value:>14}   {limit:16} {verdict}".rstrip(), flush=True)
    if path := os.environ.get(KEPT):
        record = {"name": _under + name, "value": value, "limit": limit, "holds": found}
        with Path(path).open("a") as file:
            print(json.dumps(record), file=file)


def holds(value, limit):
    """True, False, or None where there is nothing to compare."""
    found, bound = number(value), number(limit)
    if found is None or bound is None:
        return None
    return found >= bound if "at least" in limit else found <= bound


def number(words):
    """The first number in some words, or None."""
    found = re.search(r"-?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", words)
    return float(found[0].replace(",", "")) if found else None


# --- all of them ----------------------------------------------------------------------------------


def main():
    """Run scripts one after the other; print the table of all their lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scripts", nargs="*", help="names, such as tiles; default: those of --all")
    parser.add_argument("--all", action="store_true", help="the long ones, too")
    parser.add_argument("--json", action="store_true", help="one JSON object in place of a table")
    options = parser.parse_args()
    calls = options.scripts or (SHORT + LONG if options.all else SHORT)
    found, failed = [], []
    for call in calls:
        lines, ended = collected(call, 60 * (40 if options.all else MINUTES), options.json)
        found += [{"script": call.split()[0], **one} for one in lines]
        failed += [f"{call} {ended}"] if ended else []
    if options.json:
        print(json.dumps({"machine": machine(), "lines": found, "failed": failed}))
    else:
        print("\n" + "\n".join(written(found, failed)))
    return 1 if failed else 0


def collected(call, limit, quiet=False):
    """The lines of one script, and how it ended where it did not end well."""
    name, *arguments = call.split()
    path = Path(__file__).with_name(f"{name}.py")
    print(f"== benchmarks/{path.name} {' '.join(arguments)}", file=sys.stderr, flush=True)
    if not path.exists():
        return [], "is not there"
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "lines"
        kept.touch()
        ended = ""
        child = subprocess.Popen(
            [sys.executable, str(path), *arguments],
            env={**os.environ, KEPT: str(kept)},
            stdout=sys.stderr if quiet else None,
            start_new_session=True,  # so that what it has started ends with it
        )
        try:
            code = child.wait(limit)
            ended = f"ended with code {code}" if code else ""
        except subprocess.TimeoutExpired:
            ended = f"was stopped after {limit // 60} minutes"
        finally:
            stop(child)
        return [json.loads(one) for one in kept.read_text().splitlines()], ended


def stop(child):
    """End a process and all that it started."""
    import contextlib
    import signal

    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    elif child.poll() is None:
        child.kill()
    child.wait()


def written(found, failed):
    """The table in Markdown, to be pasted into RESULTS.md."""
    yield machine()
    yield ""
    yield "| script | what | measured | limit | holds |"
    yield "|---|---|---|---|---|"
    for one in found:
        verdict = {True: "yes", False: "**NO**", None: ""}[one["holds"]]
        cells = one["script"], one["name"], one["value"], one["limit"], verdict
        yield "| " + " | ".join(cells) + " |"
    yield ""
    verdicts = [one["holds"] for one in found]
    yield f"{verdicts.count(True)} limits hold, {verdicts.count(False)} do not."
    for one in failed:
        yield f"Not measured: {one}."


def machine():
    """Date, processor, memory, system and versions, in one line."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    facts = [time.strftime(f"{date.today().day} %B %Y"), f"{cores} cores of {processor()}"]
    if hasattr(os, "sysconf"):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        facts.append(f"{memory / 1e9:.0f} GB")
    facts += [f"{platform.system()} {platform.machine()}", f"Python {platform.python_version()}"]
    facts += [f"{name} {version(name)}" for name in PACKAGES]
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return ", ".join(facts) + busy


def processor():
    """The processor's own name where the system tells it."""
    path = Path("/proc/cpuinfo")
    if path.exists():
        names = re.findall(r"^model name\s*: (.+)$", path.read_text(), re.MULTILINE)
        if names:
            return names[0].strip()
    return platform.processor() or "an unnamed processor"


if __name__ == "__main__":
    sys.exit(main())
