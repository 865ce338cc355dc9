"""Files written completely or not at all, names of paths and models, and untrusted files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, BinaryIO

from hgviz.errors import HgvizError, file_error

SAMPLE = "sample"  # the folder whose files people may name
TEMPORARY = ".tmp"  # what the name of a file that is being written ends in
CONFIG = "config.json"  # what says how a model of transformers or hgviz computes
WEIGHT_SUFFIXES, INDEX_SUFFIX = (".safetensors", ".pt", ".bin"), ".index.json"  # index: of shards
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
SOUND_SUFFIXES, VALUES_SUFFIX = (".wav",), ".npy"  # values: an array that a processor made
JSON_LIMIT = 2**20  # bytes
QUOTE_LIMIT = 200  # characters of a file that an error repeats

# --- writing --------------------------------------------------------------------------------------


@contextmanager
def open_atomic(path: Path, lasting: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of path at the end.

    After an error path is as it was, and nothing is left beside it. Several threads and processes
    may write the same path. lasting: what was written survives a loss of power. Raises OSError.
    """
    fresh = path.with_name(f".{os.urandom(6).hex()}{TEMPORARY}")
    try:
        with fresh.open("wb") as file:
            yield file
            file.flush()
            if lasting:
                os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    if lasting:
        sync_folder(path.parent)


def write_atomic(path: Path, content: bytes | str, lasting: bool = True) -> None:
    """Write a file whole or not at all, text in UTF-8; see replacing."""
    with open_atomic(path, lasting) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder survive a loss of power, where the system knows how."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Lock a file, which need not exist yet, as folder_lock does, by a file PATH.lock."""
    lock = path.with_name(f"{path.name}.lock")
    lock.touch()
    with folder_lock(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes that write into it. Raises HgvizError if one does.

    The lock of a killed process is gone. Windows and disks without locks lock nothing.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            name = short_path(folder).removesuffix(".lock")
            what = f"{name} is being written by another hgviz process"
            raise HgvizError(what, "Wait until it is done, or choose another name") from None
        except OSError:  # some network disks have no locks
            pass
        yield
    finally:
        os.close(handle)


# --- what comes with hgviz ------------------------------------------------------------------------


def resource(name: str) -> Path:
    """The file or folder of that name, in a wheel, a frozen bundle or a checkout.

    Wheels and bundles carry hgviz/resources beside this module; a checkout keeps resources/ at
    its root.
    """
    inside = Path(__file__).with_name("resources")
    root = inside if inside.is_dir() else inside.parent.parent / "resources"
    return root / name


def guide_pages() -> dict[str, Path]:
    """The files of the guide by the names of their pages, such as how-to/prune."""
    bundled = resource("guide")
    # a checkout has no copy of the guide, only what is written
    folder = bundled if bundled.is_dir() else Path(__file__).parent.parent / "docs"
    files = [*sorted(folder.glob("*.md")), *sorted(folder.glob("*/*.md"))]
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in files}


def find_sample(path: str | os.PathLike[str]) -> Path:
    """The path, or the bundled file of that name if path begins with sample/ and is not there.

    So sample/hourglass names the bundled model in every folder that has no such file of its own.
    Raises HgvizError for a name that is nearly that of a bundled file.
    """
    given = Path(path)
    if given.parts[:1] != (SAMPLE,) or ".." in given.parts or os.path.lexists(given):
        return given
    bundled = resource(given.as_posix())
    if bundled.exists():
        return bundled
    names = [f"{SAMPLE}/{one.name}" for one in resource(SAMPLE).iterdir()]
    if near := get_close_matches(given.as_posix(), names, 1, 0.85):
        raise HgvizError(f"there is no {given.as_posix()}", f"Did you mean {near[0]}?")
    return given


# --- names of paths and models --------------------------------------------------------------------


def require_there(path: str | os.PathLike[str], noun: str = "file or folder") -> None:
    """Raise HgvizError, with the nearest name in the same folder, where a path names nothing."""
    if not os.path.lexists(path):
        what = f"there is no {os.fspath(path)}: no {noun} has that name"
        raise HgvizError(what, nearest_name(path) or "Check the path")


def nearest_name(path: str | os.PathLike[str], others: Iterable[str] = ()) -> str:
    """The question whether a similar name was meant, of the same folder or of others; or "".

    A name without its last ending is similar, too.
    """
    place, names = Path(path), list[str]()
    with suppress(OSError):
        names = os.listdir(place.parent)
    siblings = {Path(name).stem: str(place.parent / name) for name in names}
    near = [siblings[stem] for stem in get_close_matches(place.stem, siblings, 1, 0.75)]
    near = near or get_close_matches(str(place), list(others), 1, 0.75)
    return f"Did you mean {near[0]}?" if near else ""


def find_path(path: str | os.PathLike[str]) -> Path:
    """The path where something is there, else the bundled sample or the folder in the local
    Hugging Face cache that has this name.

    A path that can be no name of a model is returned as it is. Nothing is downloaded. Raises
    HgvizError for a name that the cache does not hold.
    """
    place = find_sample(path)
    if os.path.lexists(place) or not is_model_name(place):
        return place
    from huggingface_hub import constants, try_to_load_from_cache

    name, cache = place.as_posix(), Path(constants.HF_HUB_CACHE)
    with path_errors(cache):
        moved = [] if "/" in name else list(cache.glob(f"models--*--{name}"))
        for candidate in (name, *(map(_repository, moved) if len(moved) == 1 else ())):
            config = try_to_load_from_cache(candidate, CONFIG, cache)
            if isinstance(config, str):
                return Path(config).parent
    cached = [_repository(folder) for folder in cache.glob("models--*")]
    home = str(Path.home())
    shown = str(cache).replace(home, "~", 1) if cache.is_relative_to(home) else cache
    raise HgvizError(
        f"there is no {name}: no file or folder has that name, and the Hugging Face cache "
        f"({shown}) has no {CONFIG} of such a model",
        nearest_name(place, cached)
        or f"Check the name, or run `hf download {name}`: hgviz itself downloads nothing",
    )


def path_exists(path: str | os.PathLike[str]) -> bool:
    """Whether find_path finds something that is there."""
    try:
        return find_path(path).exists()
    except (HgvizError, OSError):
        return False


def is_model_name(path: str | os.PathLike[str]) -> bool:
    """Whether a path could be a name on the Hugging Face Hub, such as gpt2 or org/name."""
    if Path(path).suffix in (".h5", ".part"):  # captures and studies
        return False
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(Path(path).as_posix())
    except HFValidationError:
        return False
    return True


def model_name(folder: Path) -> str:
    """The name of the model in a folder: that of its repository in the cache, else the folder's."""
    snapshots = folder.absolute().parent
    if snapshots.name == "snapshots" and snapshots.parent.name.startswith("models--"):
        return _repository(snapshots.parent)
    return folder.resolve().name


def _repository(folder: Path) -> str:
    return folder.name.removeprefix("models--").replace("--", "/")


# --- files of strangers ---------------------------------------------------------------------------


def short_path(path: Path) -> str:
    """A path as errors name it: its last two parts, or the name of a cached model and the file."""
    path = path.absolute()
    if path.parent.parent.name == "snapshots":
        return f"{model_name(path.parent)}/{path.name}"
    return "/".join(path.parts[-2:])


@contextmanager
def path_errors(path: Path, what: str = "could not be read") -> Iterator[None]:
    """Raise what the system says of a file, or of too little memory for it, as HgvizError."""
    try:
        yield
    except OSError as error:
        wrong = file_error(f"{short_path(path)} {what}", error)
        if isinstance(error, FileNotFoundError):
            wrong = HgvizError(wrong.what, nearest_name(path) or wrong.do)
        raise wrong from None
    except (MemoryError, OverflowError):
        raise HgvizError(f"{short_path(path)} {what}: it does not fit in memory") from None


def read_object(path: Path, limit: int = JSON_LIMIT) -> dict[str, Any]:
    """The object in a JSON file of at most `limit` bytes. Raises HgvizError for anything else."""
    import msgspec

    with path_errors(path):
        if not path.is_file():  # opening a pipe would wait for its writer
            what = f"{short_path(path)} could not be read: there is no such file"
            raise HgvizError(what, "Check the path")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    if len(data) > limit:
        raise HgvizError(f"{short_path(path)} is too large: the limit is {limit:,} bytes")
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        what = f"{short_path(path)} is not a JSON object: {first_line(error)}"
        raise HgvizError(what) from None


def printable(text: str) -> str:
    """The beginning of a text from a file, with U+FFFD in place of what would break a line."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text[:QUOTE_LIMIT])


def quoted(value: Any) -> str:
    """A value from a file within an error: its repr on one line, or "missing" for None."""
    return "missing" if value is None else printable(repr(value))[:40]


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type where it says nothing."""
    return printable((str(error).splitlines() or [type(error).__name__])[0])
