"""Names of models, looked for in the local Hugging Face cache and never downloaded; no torch.

The cache keeps models--ORG--NAME/refs/main, the commit that was fetched last, and under
snapshots/COMMIT the files, as links into blobs. A name is never a path.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hgviz.core import HgvizError
from hgviz.files import find_sample

MOST_REF = 200  # bytes of refs/main
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
_NAME = re.compile(rf"{_PART}(?:/{_PART})?")
_COMMIT = re.compile(r"[A-Za-z0-9_-]{1,64}")


def settled(path: str | Path) -> Path:
    """The path itself where there is something; else what comes with hgviz under that name, else
    the folder of the cache that bears it.

    Errors: HgvizError where neither is there, or the cache holds the model in part.
    """
    here = find_sample(path)
    if os.path.lexists(here) or not is_name(path):
        return here
    return _snapshot(here.as_posix())


def is_there(path: str | Path) -> bool:
    """Whether settled would find something."""
    try:
        return settled(path).exists()
    except (HgvizError, OSError):
        return False


def is_name(path: str | Path) -> bool:
    """Whether a path could be the name of a model, such as bert-base-uncased or org/name."""
    text = Path(path).as_posix()
    plain = _NAME.fullmatch(text) and ".." not in text and "--" not in text
    return bool(plain) and len(text) <= 96 and not Path(path).is_absolute()


def called(folder: Path) -> str:
    """What people call the model in a folder: its name in the cache, else the folder's."""
    whole = folder.absolute()
    store = whole.parent.parent.name
    if whole.parent.name == "snapshots" and store.startswith("models--"):
        return store.removeprefix("models--").replace("--", "/")
    return folder.resolve().name


def place() -> Path:
    """Where the cache lies, by the variables that huggingface_hub reads, in its order."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if given := os.environ.get(name):
            return Path(given).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    above = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(above).expanduser() / "huggingface" / "hub"


# --- inside ---------------------------------------------------------------------------------------


def _snapshot(name: str) -> Path:
    cache = place()
    try:
        store = _store(cache, name)
        commit = _commit(store) if store else ""
        found = store / "snapshots" / commit if store and commit else None
        there = found is not None and found.is_dir()
    except OSError as error:
        raise HgvizError(
            f"the Hugging Face cache could not be read for {name}: "
            f"{error.strerror or type(error).__name__}",
            f"Look at {_short(cache)}",
        ) from None
    if found is not None and there:
        return found
    if store:
        raise HgvizError(
            f"{name} is in the Hugging Face cache only in part: "
            f"{store.name} holds no snapshot that its refs/main names",
            f"Fetch it again with `hf download {name}`",
        )
    if name.endswith((".h5", ".part")):  # nobody calls a model so
        raise HgvizError(f"there is no {name}: no file or folder has that name", "Check the path")
    raise HgvizError(
        f"there is no {name}: "
        "no file or folder has that name, and the Hugging Face cache "
        f"({_short(cache)}) holds no such model",
        f"Check the name, or fetch the model with `hf download {name}`: hgviz downloads nothing",
    )


def _store(cache: Path, name: str) -> Path | None:
    """The folder of a model; one without an organisation may have moved into one."""
    exact = cache / f"models--{name.replace('/', '--')}"
    if exact.is_dir():
        return exact
    if "/" in name or not cache.is_dir():
        return None
    moved = sorted(one for one in cache.glob(f"models--*--{name}") if one.is_dir())
    if len(moved) > 1:
        full = " and ".join(one.name.removeprefix("models--").replace("--", "/") for one in moved)
        raise HgvizError(
            f"several models are called {name}: the cache holds {full}", "Give the whole name"
        )
    return moved[0] if moved else None


def _commit(store: Path) -> str:
    """The commit that refs/main names; without it, the only one there is."""
    ref = store / "refs" / "main"
    if ref.is_file():
        with ref.open("rb") as file:
            text = file.read(MOST_REF).decode(errors="replace").strip()
        return text if _COMMIT.fullmatch(text) else ""
    snapshots = store / "snapshots"
    found = [one.name for one in snapshots.iterdir()] if snapshots.is_dir() else []
    return found[0] if len(found) == 1 else ""


def _short(path: Path) -> str:
    home = str(Path.home())
    text = str(path)
    return "~" + text.removeprefix(home) if text.startswith(home + os.sep) else text
