"""The error that users see: what is wrong and what to do about it."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TypeVar

Name = TypeVar("Name", bound=str)

LISTED = 8  # names that an error lists
_OPENINGS = (
    "a", "all", "an", "cannot", "layer", "learned", "no", "nothing", "only", "relative", "rotary",
    "several", "the", "there", "these", "this", "training", "unknown",
)  # fmt: skip


class HgvizError(Exception):
    """An error that a user can act on: what is wrong, and what to do about it, a sentence each.

    details: more than a sentence, for a text box or a log.
    """

    def __init__(self, what: str, do: str = "", details: str = "") -> None:
        super().__init__(what, do, details)
        self.what, self.do, self.details = what, do, details

    @property
    def lines(self) -> tuple[str, ...]:
        """What is wrong and what to do, as sentences; those that there are."""
        # what is wrong often begins with the name of a file, which must stay as it is
        opening = self.what.split(maxsplit=1)[0]
        what = _sentence(self.what) if opening in _OPENINGS else _ended(self.what)
        return (what, *(_sentence(part) for part in (self.do,) if part))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback."""
        return [str(self)]

    def __str__(self) -> str:
        parts = (_ended(part) for part in (self.what, self.do) if part)
        return " ".join(" ".join(parts).split())


def require(condition: object, what: str, do: str = "") -> None:
    """Raise HgvizError(what, do) unless a condition holds."""
    if not condition:
        raise HgvizError(what, do)


def choose(name: str, known: Iterable[Name], noun: str) -> Name:
    """Return the known name that was given. Raises HgvizError for any other, with the nearest
    spelling or all that are known."""
    names = list(known)
    for one in names:
        if one == name:
            return one
    near = get_close_matches(name, names, 1, 0.7)
    do = f"Did you mean {near[0]!r}?" if near else f"Choose from {', '.join(names)}"
    raise HgvizError(f"unknown {noun} {name[:40]!r}", do)


def quote_name(name: str) -> str:
    """A name from a file or a person, as an error shows it: quoted, at most 40 characters."""
    return repr(name if len(name) <= 40 else f"{name[:39]}…")


def list_names(names: Iterable[str]) -> str:
    """Quoted names with commas; of more than LISTED, how many more there are."""
    quoted = [*map(quote_name, names)]
    more = f" and {len(quoted) - LISTED:,} more" if len(quoted) > LISTED else ""
    return ", ".join(quoted[:LISTED]) + more


class LabelError(HgvizError):
    """Labels of data that name no class of a model.

    labels: as the data has them; classes: as the model calls them; likely: the class of each label
    where names or order suggest one, else empty.
    """

    def __init__(
        self, what: str, labels: Sequence[str], classes: Sequence[str], likely: Mapping[str, str]
    ) -> None:
        named = ",".join(f"{one[:20]}={likely.get(one, 'CLASS')}" for one in labels[:LISTED])
        do = f"Say which class each label is: --labels {named}"
        super().__init__(f"{what}: the classes of the model are {list_names(classes)}", do)
        self.labels, self.classes, self.likely = tuple(labels), tuple(classes), dict(likely)


class HgvizWarning(UserWarning):
    """Something to know about a result that is given all the same; the command line prints it."""


def _sentence(words: str) -> str:
    """With a full stop, and a capital unless a name such as config.json comes first."""
    first = words.split(maxsplit=1)[0]
    plain = first.isalpha() and first != "hgviz"
    return _ended(words[0].upper() + words[1:] if plain else words)


def _ended(words: str) -> str:
    words = words.rstrip(".")
    return words if words.endswith(("?", "!")) else words + "."


# what to do where the system says why a file cannot be used
_WAYS = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "Check the path"),
    errno.EISDIR: "Choose a file",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "Choose another one, or ask its owner for access"),
    errno.EROFS: "Choose another folder",
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "Free some space"),
    errno.EFBIG: "Choose another disk, or raise the size limit",
    errno.ENAMETOOLONG: "Choose a shorter name",
}


def file_error(what: str, error: OSError) -> HgvizError:
    """The HgvizError for a failed file operation: what, the reason the system gives, what to do."""
    why = error.strerror or str(error)
    return HgvizError(f"{what}: {why}", _WAYS.get(error.errno or 0, "Choose another one"))


def to_hgviz_error(error: BaseException) -> HgvizError:
    """Any exception as an HgvizError with advice; an HgvizError is returned unchanged."""
    if isinstance(error, HgvizError):
        return error
    if isinstance(error, MemoryError):
        return HgvizError("There is not enough memory", "Use a shorter text or fewer rows")
    if isinstance(error, OSError) and error.strerror:
        return file_error(f"Cannot use {error.filename or 'a file'}", error)
    return HgvizError(
        f"Unexpected error: {type(error).__name__}: {error}",
        "Run it again with --debug and report the output",
    )


def no_attention_error(family: str = "") -> HgvizError:
    """The error for heads or maps of a model without attention."""
    return HgvizError(
        "this model has no attention: "
        f"{f'models of the family {family} have' if family else 'it has'} no heads or maps",
        "Measure what its outputs depend on: hgviz reach MODEL --text T",
    )
