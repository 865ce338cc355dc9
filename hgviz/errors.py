"""The one error people see: what went wrong, why, and what to do."""

from __future__ import annotations

_OPENINGS = (
    "a", "all", "an", "cannot", "layer", "learned", "no", "nothing", "only", "relative", "rotary",
    "several", "the", "there", "these", "this", "training", "unknown",
)  # fmt: skip


class HgvizError(Exception):
    """Something a person can act on: what went wrong, why, and what to do, one line each."""

    def __init__(self, what: str, why: str = "", do: str = "", details: str = "") -> None:
        super().__init__(what, why, do, details)
        self.what, self.why, self.do, self.details = what, why, do, details

    @property
    def lines(self) -> tuple[str, ...]:
        """What, why and do as sentences; those that there are."""
        # what went wrong often begins with the name of a file, which must stay as it is
        opening = self.what.split(maxsplit=1)[0]
        what = _sentence(self.what) if opening in _OPENINGS else _ended(self.what)
        return (what, *(_sentence(part) for part in (self.why, self.do) if part))

    def __str__(self) -> str:
        parts = (_ended(part) for part in (self.what, self.why, self.do) if part)
        return " ".join(" ".join(parts).split())


def _sentence(words: str) -> str:
    """With a full stop, and a capital unless a name such as config.json comes first."""
    first = words.split(maxsplit=1)[0]
    plain = first.isalpha() and first != "hgviz"
    return _ended(words[0].upper() + words[1:] if plain else words)


def _ended(words: str) -> str:
    words = words.rstrip(".")
    return words if words.endswith(("?", "!")) else words + "."


def explained(error: BaseException) -> HgvizError:
    """Any error as one that a person can act on."""
    if isinstance(error, HgvizError):
        return error
    if isinstance(error, MemoryError):
        return HgvizError("There is not enough memory", "", "Take a shorter text or fewer rows")
    if isinstance(error, OSError) and error.strerror:
        return HgvizError(f"Cannot use {error.filename or 'a file'}", error.strerror.lower())
    return HgvizError(
        "Something failed that nobody foresaw",
        f"{type(error).__name__}: {error}",
        "Run it again with --debug and report what it shows",
    )


def no_attention(family: str = "") -> HgvizError:
    """What is said where heads or maps are asked of a model that has none."""
    return HgvizError(
        "this model does not attend",
        f"no layer {f'of a model of the family {family} ' if family else ''}has heads or maps",
        "See what its answers depend on: hgviz reach MODEL --text T",
    )
