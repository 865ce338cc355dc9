"""The roles that heads are tried for: each says which keys a query would look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

from hgviz.analysis.tokens import Block, Bools, Layout, TokenReading

Find = Callable[[Block], Bools]
Members = Callable[[TokenReading], Bools]


@dataclass(frozen=True, slots=True)
class Finder:
    """A role: its name, what a head that has it does, and the keys that it means.

    {unit} is letter or token; {place} is that at full resolution, position where a level is
    shortened, group where one level looks at another; {text} is whose keys they are. members: the
    tokens that the role is about where they are fixed by the text; a head must look at several of
    them. only: the kind of layers it makes sense in, "" for all that look at their own text; over:
    also for those that look at another. ahead: it means later keys; letters: only of letters.
    """

    name: str
    sentence: str
    find: Find
    members: Members | None = None
    only: str = ""
    ahead: bool = False
    over: bool = False
    letters: bool = False


_space, _stop, _digit = attrgetter("is_space"), attrgetter("is_stop"), attrgetter("is_digit")
_capital, _vowel = attrgetter("is_capital"), attrgetter("is_vowel")
_word_start, _sentence_start = attrgetter("starts_word"), attrgetter("starts_sentence")


def _every(name: str, sentence: str, members: Members) -> Finder:
    """All tokens of a kind that the query sees."""
    find: Find = lambda block: block.with_member(members(block.key_tokens))  # noqa: E731
    return Finder(name, sentence, find, members, over=True)


def _last(name: str, sentence: str, members: Members) -> Finder:
    """The newest token of a kind, up to the query itself."""
    return Finder(
        name,
        sentence,
        lambda block: block.containing(block.key_tokens.newest(members(block.key_tokens))),
        members,
    )


FINDERS: dict[str, Finder] = {
    "previous": Finder("previous {place}", "Looks at the previous {place}", lambda b: b.before(1)),
    "two back": Finder("two {place}s back", "Looks two {place}s back", lambda b: b.before(2)),
    "three back": Finder("three {place}s back", "Looks three {place}s back", lambda b: b.before(3)),
    "near": Finder(
        "the last few {place}s", "Stays near: itself and the four {place}s before",
        lambda b: b.before(0, 4),
    ),
    "same": Finder("the {place} itself", "Looks at the {place} itself", lambda b: b.before(0)),
    "next": Finder(
        "next {place}", "Looks at the next {place}", lambda b: b.before(-1), ahead=True
    ),
    "around": Finder(
        "its neighbours", "Stays near: up to two {place}s to either side",
        lambda b: b.before(-2, 2), ahead=True,
    ),
    "newest": Finder(
        "newest of its group", "Looks at the newest position of its group",
        lambda b: b.newest_of_group(), only="down",
    ),
    "oldest": Finder(
        "oldest of its group", "Looks at the oldest position of its group",
        lambda b: b.oldest_of_group(), only="down",
    ),
    "first": Finder(
        "first {unit}", "Rests on the first {unit} of {text}",
        lambda b: b.with_member(b.key_tokens.index == 0), over=True,
    ),
    "final": Finder(
        "last {unit}", "Rests on the last {unit} of {text}",
        lambda b: b.with_member(b.key_tokens.index == b.key_tokens.end), ahead=True, over=True,
    ),
    "opening": Finder(
        "special tokens at the start", "Rests on the special tokens at the start",
        lambda b: b.with_member(b.key_tokens.opening), over=True,
    ),
    "separators": Finder(
        "separators", "Rests on the separators",
        lambda b: b.with_member(b.key_tokens.separator), over=True,
    ),
    "special": Finder(
        "special tokens", "Rests on the special tokens",
        lambda b: b.with_member(b.key_tokens.special), over=True,
    ),
    "alongside": Finder(
        "the same place", "Follows {text} in order",
        lambda b: b.same_place(), only="cross",
    ),
    "copies": Finder(
        "the same {unit} there", "Looks at the same {unit} of {text}",
        lambda b: b.same_token(), only="cross",
    ),
    "other text": Finder(
        "the other text", "Looks across to the other text", lambda b: b.other_text(), ahead=True
    ),
    "word start": Finder(
        "start of the word", "Looks back to the start of the word",
        lambda b: b.containing(b.key_tokens.word_first), _word_start,
    ),
    "word": Finder(
        "current word", "Looks within the current word",
        lambda b: b.within(b.key_tokens.word_first, b.key_tokens.word_end),
    ),
    "previous word": Finder(
        "previous word", "Looks at the previous word", lambda b: b.previous_word()
    ),
    "last space": _last("last space", "Looks back to the last space", _space),
    "last stop": _last(
        "last comma or full stop", "Looks back to the last comma or full stop", _stop
    ),
    "sentence start": _last(
        "start of the sentence", "Looks back to the start of the sentence", _sentence_start
    ),
    "capitals": _every("capital letters", "Looks at capital letters", _capital),
    "stops": _every("commas and full stops", "Looks at commas and full stops", _stop),
    "spaces": _every("spaces", "Looks at spaces", _space),
    "word starts": _every("starts of words", "Looks at the starts of words", _word_start),
    "digits": _every("digits", "Looks at digits", _digit),
    "vowels": replace(_every("vowels", "Looks at vowels", _vowel), letters=True),
    "last same": Finder(
        "the last same {unit}", "Looks back to the last same {unit}",
        lambda b: b.containing(b.key_tokens.same_before),
    ),
    "same earlier": Finder(
        "the same {unit} earlier", "Looks at the same {unit} wherever it stood before",
        lambda b: b.same_token() & b.earlier,
    ),
    "same elsewhere": Finder(
        "the same {unit} elsewhere", "Looks at the same {unit} wherever else it stands",
        lambda b: b.same_token() & ~b.before(0), ahead=True,
    ),
    "same word": Finder(
        "the same word earlier", "Looks at the same word where it stood before",
        lambda b: b.same_word(),
    ),
    "rare word": Finder(
        "the rarest word", "Looks at the rarest word of the sentence", lambda b: b.rarest_word()
    ),
    "after one": Finder(
        "induction, one {unit}",
        "Looks at what followed the same {unit} before (induction)",
        lambda b: b.after_same(1),
    ),
    "after two": Finder(
        "induction, two {unit}s",
        "Looks at what followed the same two {unit}s before (induction)",
        lambda b: b.after_same(2),
    ),
    "after three": Finder(
        "induction, three {unit}s",
        "Looks at what followed the same three {unit}s before (induction)",
        lambda b: b.after_same(3),
    ),
}  # fmt: skip


def finders_for(layout: Layout) -> dict[str, Finder]:
    """The roles that make sense in a layer: none in one that looks at slots, which are no text."""
    if layout.key_tokens.unit == "slot":
        return {}
    return {
        name: one
        for name, one in FINDERS.items()
        if (one.only == layout.role or (not one.only and (one.over or not layout.is_cross)))
        and not (one.ahead and layout.causal)
        and not (one.letters and layout.key_tokens.unit != "letter")
    }
