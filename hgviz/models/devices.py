"""Where a model computes, and in what numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch

from hgviz.core import HgvizError
from hgviz.errors import choose

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


# what is said where memory lacks, and not where it was misused ("illegal memory access")
LACKS = ("out of memory", "not enough memory", "allocate memory", "alloc_failed")


def device_of(name: str) -> str:
    """The device that a name stands for here. Errors: HgvizError for none, or one not there."""
    asked = os.environ.get("HGVIZ_DEVICE", "auto") if name == "auto" else name
    source = "HGVIZ_DEVICE" if name == "auto" else "device"
    if asked not in DEVICES:
        raise HgvizError(f"there is no {source} {asked!r}: it is one of {', '.join(DEVICES)}")
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if asked == "auto":
        return next((one for one, there in here.items() if there), "cpu")
    if not here.get(asked, True):
        raise HgvizError(
            f"this machine has no {asked}: torch {torch.__version__} finds none", "Use cpu"
        )
    return asked


def dtype_of(name: str) -> torch.dtype:
    """The numbers of a name. Errors: HgvizError for an unknown one."""
    return DTYPES[choose(name, DTYPES, "dtype")]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads for torch: sums over another number of them end in other bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def room(device: str, why: str) -> Iterator[None]:
    """Turn each library's way of running out of memory into one error."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        do = "Shorten the text" if device == "cpu" else "Shorten the text, or use --device cpu"
        raise HgvizError(f"the {device} has too little memory: {why}", do) from None


def out_of_memory(error: BaseException) -> bool:
    """Whether memory is what lacks: not every library and device has a class of its own for it."""
    known, said = (MemoryError, torch.OutOfMemoryError), str(error).lower()
    return isinstance(error, known) or any(one in said for one in LACKS)


def require_room(what: str, needed: int, do: str) -> None:
    """Errors: HgvizError where so many bytes are more than this machine has free, as far as that is
    known: Linux grants them all the same, and ends whoever then uses them."""
    free = free_memory()
    if free is not None and needed > free:
        raise HgvizError(
            f"{what} does not fit the memory: "
            f"it takes {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free",
            do,
        )


def free_memory() -> int | None:
    """Bytes that this process may still take; None where that is not known, as it is on Linux
    alone. A limit of the control group counts as the end of the machine."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found = {name: rest.split()[0] for name, rest in (line.split(":", 1) for line in lines)}
        free = int(found["MemAvailable"]) * 1024
    except (OSError, ValueError, KeyError):
        return None
    group = Path("/sys/fs/cgroup")
    with suppress(OSError, ValueError):  # "max" is no number
        most = int((group / "memory.max").read_text())
        free = min(free, most - int((group / "memory.current").read_text()))
    return max(free, 0)
