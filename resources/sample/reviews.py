"""Writes short reviews of an evening, a stay, a film ...: did the writer like the whole?

    python reviews.py --rows 2000 --seed 2026 -o reviews.tsv --part evaluation

Each row is a review, a tab, and positive or negative. A review may speak of single things too (the
soup, the waiter) and tell what others think; only the writer's own last word about the whole
counts, by strict rules: what is not bad is good, what someone else says does not count unless the
writer takes a side, what is taken back is turned round. Judgements of things are drawn without
regard to the label, and so are the turns of phrase that turn a judgement round.

A review belongs to one of two parts by its checksum: no training file, of whatever seed, holds a
row of an evaluation file. Only the standard library; the same arguments give the same bytes.
"""

from __future__ import annotations

import argparse
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import TypeVar

T = TypeVar("T")
PARTS = ("training", "evaluation")
LABELS = ("negative", "positive")

# --- the lexicon ----------------------------------------------------------------------------------

# what can be said of anything, good and bad
ANY = "good/bad great/awful lovely/nasty impressive/disappointing wonderful/terrible"
WHOLES = "memorable/forgettable delightful/dreadful lively/dull"  # of the whole
# the whole; then each thing and what can be said of it
SCENES = {
    "evening": {
        "soup": "tasty/bland hot/lukewarm",
        "bread": "fresh/stale crisp/soggy",
        "fish": "tender/dry tasty/bland",
        "wine": "smooth/sour",
        "dessert": "delicious/sickly",
        "waiter": "polite/rude quick/slow",
    },
    "stay": {
        "room": "clean/dirty quiet/noisy",
        "bed": "comfortable/lumpy",
        "breakfast": "tasty/bland generous/meagre",
        "porter": "polite/rude helpful/careless",
        "pool": "clean/dirty",
        "view": "charming/dreary",
    },
    "film": {
        "plot": "gripping/dull clever/silly",
        "acting": "convincing/wooden",
        "music": "moving/shrill",
        "dialogue": "witty/clumsy",
        "pace": "brisk/tedious",
        "ending": "clever/silly satisfying/feeble",
    },
    "book": {
        "opening": "gripping/dull",
        "style": "elegant/clumsy",
        "hero": "likeable/tiresome",
        "story": "gripping/dull clever/silly",
        "translation": "elegant/clumsy careful/careless",
        "last chapter": "satisfying/feeble moving/dull",
    },
    "concert": {
        "singer": "brilliant/feeble",
        "drummer": "precise/sloppy",
        "sound": "clear/muddy",
        "hall": "charming/dreary",
        "audience": "polite/rude",
        "encore": "moving/dull lively/tedious",
    },
    "journey": {
        "seat": "comfortable/cramped",
        "carriage": "clean/dirty quiet/noisy",
        "conductor": "polite/rude helpful/careless",
        "coffee": "strong/watery hot/lukewarm",
        "timetable": "reliable/useless",
        "scenery": "charming/dreary",
    },
    "holiday": {
        "lake": "clear/muddy",
        "kitchen": "clean/dirty",
        "landlady": "friendly/grumpy helpful/careless",
        "weather": "sunny/rainy",
        "garden": "charming/dreary quiet/noisy",
        "bicycle": "reliable/useless",
    },
    "visit": {
        "exhibition": "clever/silly lively/tedious",
        "guide": "friendly/grumpy witty/clumsy",
        "tour": "lively/tedious",
        "building": "elegant/clumsy",
        "shop": "cheap/overpriced",
        "lighting": "clear/gloomy",
    },
}
VERBS = "liked/disliked loved/hated praised/criticised"
CRITICS = (
    ("my brother", "he"), ("my sister", "she"), ("my uncle", "he"), ("my aunt", "she"),
    ("our neighbour", "he"), ("my boss", "she"), ("the critic", "he"), ("the blogger", "she"),
)  # fmt: skip
ASIDES = (
    "to be honest", "as far as I remember", "to my surprise", "at least this time", "for the money",
    "in the end", "if you ask me", "for once", "on the whole",
)  # fmt: skip
ABOUT = (
    "that we had heard about", "that people talk about", "that we remember better than the {o}",
    "that everyone compares with the {o}", "that we noticed before the {o}",
)  # fmt: skip
ABOUT_WHOLE = ("that we had waited for", "that people talk about", "that we owe to the {o}")
IDLE = (
    "It was a Friday.", "It rained all day.", "There were four of us.", "We had a voucher.",
    "The way there took an hour.", "My sister paid.", "It was our second time.",
    "My uncle had to leave early.", "We took many pictures.",
)  # fmt: skip

# --- turns of phrase: those that keep the sense of a word, then those that turn it round ----------

# {s} is the thing, {x} and {v} a word for it, {a} an aside
CORES = (
    ("{s} was {x}", "{s} was really {x}", "{s} turned out to be {x}", "{s} was, {a}, {x}",
     "{s} was quite {x}"),
    ("{s} was not {x}", "{s} was not really {x}", "{s} was never {x}", "{s} was anything but {x}",
     "{s} was by no means {x}", "{s} was far from {x}", "{s} was hardly {x}",
     "{s} was not, {a}, {x}", "{s} was in no way {x}"),
)  # fmt: skip
OWN = (  # never inside a frame
    ("I found {s} {x}", "I {v} {s}", "I must say that I {v} {s}", "everyone would call {s} {x}"),
    (
        "I never found {s} {x}",
        "I never {v} {s}",
        "I cannot say that I {v} {s}",
        "nobody could call {s} {x}",
    ),
)
# {c} is a clause
FRAMES = (
    ("I think that {c}", "nobody can deny that {c}", "there is no doubt that {c}",
     "I do not deny that {c}", "it is true that {c}", "I still say that {c}"),
    ("I do not think that {c}", "nobody can say that {c}", "I doubt that {c}",
     "it is not true that {c}", "I would not say that {c}", "it would be wrong to say that {c}"),
)  # fmt: skip
VERDICTS = (  # {q} is someone else
    ("{q} said that {c}, and I agree", "{q} said that {c}, and {h} was right",
     "{q} thought that {c}, which is true", "I was told that {c}, and so it was",
     "{c}, and I stand by that", "at first I thought that {c}, and I still do"),
    ("{q} said that {c}, but I disagree", "{q} said that {c}, but {h} was wrong",
     "{q} thought that {c}, which is not true", "I was told that {c}, but that was a lie",
     "{c} - no, I take that back", "at first I thought that {c}, but I changed my mind"),
)  # fmt: skip
SIDES = (  # {q} and {r} are two others
    ("{q} called {s} {x} and {r} said the opposite; I side with {q}",
     "{q} called {s} {x}, {r} said the opposite, and {q} was right",
     "{q}, unlike {r}, called {s} {x}, and {q} was right"),
    ("{q} called {s} {x} and {r} said the opposite; I side with {r}",
     "{q} called {s} {x}, {r} said the opposite, and {r} was right",
     "{q}, unlike {r}, called {s} {x}, and {r} was right"),
)  # fmt: skip
# {t} is another thing. PAIRS[disagree][turned]: {x} is said of {s}, and {t} goes with it or not
PAIRS = (
    (("both {s} and {t} were {x}", "{s} was {x}, and so was {t}", "like {t}, {s} was {x}"),
     ("neither {s} nor {t} was {x}", "{s} was not {x}, and nor was {t}",
      "like {t}, {s} was not {x}")),
    (("{s} was {x}, but {t} was not", "unlike {t}, {s} was {x}",
      "{s} was {x}, which cannot be said of {t}"),
     ("{s} was not {x}, but {t} was", "unlike {t}, {s} was not {x}",
      "{s} was not {x}, which can be said of {t}")),
)  # fmt: skip
# {x} is said of {s} and {y} of {t}; LISTS[first turned][second turned]
LISTS = (
    (("a word on {s} and {t}: the former was {x}, the latter {y}",
      "{s} was {x} and {t} was {y}, and I take nothing back"),
     ("a word on {s} and {t}: the former was {x}, the latter not {y}",
      "{s} was {x} and {t} was {y} - no, I take the last part back")),
    (("a word on {s} and {t}: the former was not {x}, the latter {y}",
      "{s} was {x} and {t} was {y} - no, I take the first part back"),
     ("a word on {s} and {t}: the former was not {x}, the latter not {y}",
      "{s} was {x} and {t} was {y} - no, I take both parts back")),
)  # fmt: skip
# WHOLE[thing good][whole good]: what the thing of {c} did to the whole {w}
WHOLE = (
    (("{c}, and that spoiled the {w}", "{c}, and that ruined the {w}"),
     ("{c}, but that did not spoil the {w}", "{c}, but that never ruined the {w}")),
    (("{c}, but that did not save the {w}", "{c}, but that never rescued the {w}"),
     ("{c}, and that saved the {w}", "{c}, and that rescued the {w}")),
)  # fmt: skip
AGREE = ("{0}, and {1}", "{0}; {1}")
DISAGREE = ("{0}, but {1}", "although {0}, {1}", "{0}, although {1}", "{0}, whereas {1}")
# what others say and the writer takes no side on
HEARSAY = ("{q} called {s} {x}", "the advert calls {s} {x}", "{q} had told us that {s} was {x}")

# how many things a review judges besides the whole, and how often things happen, as shares; the
# nearer TURNED is to 1/2, the less a word by itself speaks for a label
COUNTS = (0, 1, 1, 1, 2, 2, 3)
TURNED = 0.35
DESCRIBED, FRAMED, JUDGED, SIDED = 0.12, 0.2, 0.15, 0.1
COUPLED, LISTED, JOINED, SUMMED = 0.3, 0.35, 0.4, 0.2
HEARD, IDLED = 0.15, 0.15


# --- writing --------------------------------------------------------------------------------------


class Dice:
    """What is drawn at random; of Python's generator only random() stays the same for ever."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def chance(self, share: float) -> bool:
        """True in this share of all cases."""
        return self._random() < share

    def pick(self, things: Sequence[T]) -> T:
        """One of the things."""
        return things[int(self._random() * len(things))]

    def some(self, things: Sequence[T], count: int) -> list[T]:
        """So many different ones, in any order."""
        left = list(things)
        return [left.pop(int(self._random() * len(left))) for _ in range(count)]


class Writer:
    """One review: its sentences, and what the writer thinks of the whole and of things."""

    def __init__(self, dice: Dice, good: bool) -> None:
        self.dice = dice
        self.whole = dice.pick(tuple(SCENES))
        self.things = SCENES[self.whole]
        names = dice.some(tuple(self.things), dice.pick(COUNTS))
        self.judged = {name: dice.chance(0.5) for name in names} | {self.whole: good}
        last = names.pop() if names and dice.chance(SUMMED) else ""
        if not last:
            names = dice.some([*names, self.whole], len(names) + 1)
        self.sentences: list[str] = []
        while names:
            self.sentences.append(_sentence(self._next(names)))
        if last:
            form = dice.pick(WHOLE[self.judged[last]][good])
            self.sentences.append(_sentence(form.format(c=self._plain(last), w=self.whole)))
        if dice.chance(HEARD):
            self._insert(_sentence(self._hearsay()))
        if dice.chance(IDLED):
            self._insert(dice.pick(IDLE))

    def _insert(self, one: str) -> None:
        self.sentences.insert(self.dice.pick(range(len(self.sentences) + 1)), one)

    def _next(self, names: list[str]) -> str:
        """A sentence about the last of the names, or the last two, which are taken away."""
        dice, name = self.dice, names.pop()
        if names and dice.chance(COUPLED):
            couple = self._listed if dice.chance(LISTED) else self._paired
            return couple(name, names.pop())
        if names and dice.chance(JOINED):
            other = names.pop()
            forms = AGREE if self.judged[name] == self.judged[other] else DISAGREE
            return dice.pick(forms).format(self._plain(name), self._plain(other))
        return self._single(name)

    # --- clauses ---

    def _word(self, name: str, good: bool) -> str:
        """An adjective for a thing."""
        pairs = (self.things.get(name, WHOLES) if self.dice.chance(0.4) else ANY).split()
        return self.dice.pick(pairs).split("/")[not good]

    def _thing(self, name: str) -> str:
        """The thing, at times with a word about it."""
        if not self.dice.chance(DESCRIBED):
            return f"the {name}"
        forms = ABOUT if name in self.things else ABOUT_WHOLE
        other = self.dice.pick([one for one in self.things if one != name])
        return f"the {name} {self.dice.pick(forms).format(o=other)}"

    def _plain(self, name: str, turned_outside: bool = False, own: bool = True) -> str:
        """A clause about a thing. own: whether it may begin with I."""
        turned = self.dice.chance(TURNED)
        sense = self.judged[name] ^ turned ^ turned_outside
        form = self.dice.pick(CORES[turned] + OWN[turned] if own else CORES[turned])
        verb = self.dice.pick(VERBS.split()).split("/")[not sense]
        aside, word = self.dice.pick(ASIDES), self._word(name, sense)
        thing = f"the {name}" if "{s} {x}" in form else self._thing(name)
        return form.format(s=thing, x=word, v=verb, a=aside)

    def _single(self, name: str) -> str:
        """A clause, at times inside a frame, a verdict, or what two others say."""
        dice = self.dice
        turned = dice.chance(TURNED)
        (one, he), (two, _) = dice.some(CRITICS, 2)
        if dice.chance(SIDED):
            word = self._word(name, self.judged[name] ^ turned)
            return dice.pick(SIDES[turned]).format(q=one, r=two, s=f"the {name}", x=word)
        if dice.chance(FRAMED):
            return dice.pick(FRAMES[turned]).format(c=self._plain(name, turned, own=False))
        if dice.chance(JUDGED):
            clause = self._plain(name, turned, own=False)
            return dice.pick(VERDICTS[turned]).format(c=clause, q=one, h=he)
        return self._plain(name)

    def _paired(self, one: str, two: str) -> str:
        """Two things and one word."""
        turned, first = self.dice.chance(TURNED), self.judged[one]
        form = self.dice.pick(PAIRS[first != self.judged[two]][turned])
        word = self.dice.pick(ANY.split()).split("/")[first == turned]
        return form.format(s=f"the {one}", t=f"the {two}", x=word)

    def _listed(self, one: str, two: str) -> str:
        """Two things, and a word for each."""
        here, there = self.dice.chance(TURNED), self.dice.chance(TURNED)
        x, y = self._word(one, self.judged[one] ^ here), self._word(two, self.judged[two] ^ there)
        form = self.dice.pick(LISTS[here][there])
        return form.format(s=f"the {one}", t=f"the {two}", x=x, y=y)

    def _hearsay(self) -> str:
        """What someone else says, and the writer takes no side."""
        name, (critic, _) = self.dice.pick(tuple(self.judged)), self.dice.pick(CRITICS)
        word = self._word(name, self.dice.chance(0.5))
        return self.dice.pick(HEARSAY).format(q=critic, s=f"the {name}", x=word)


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def part_of(text: str) -> str:
    """The part a review belongs to: one in sixteen is kept for evaluation."""
    return PARTS[zlib.crc32(text.encode()) % 16 == 0]


def rows(seed: int, part: str) -> Iterator[tuple[str, str]]:
    """(text, label) without end, none twice, the labels by turns drawn in pairs of one each."""
    dice, seen, wanted = Dice(seed), set[str](), list[bool]()
    while True:
        wanted = wanted or dice.some((False, True), 2)
        text = " ".join(Writer(dice, wanted[-1]).sentences)
        if text in seen or part_of(text) != part:
            continue
        seen.add(text)
        yield text, LABELS[wanted.pop()]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Write short reviews and their labels.")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", choices=PARTS, default="training")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    if given.rows < 1:
        parser.error("--rows is at least 1")
    lines = [
        f"{text}\t{label}\n" for text, label in islice(rows(given.seed, given.part), given.rows)
    ]
    try:
        given.output.write_text("sentence\tlabel\n" + "".join(lines), "utf-8", newline="\n")
    except OSError as error:
        parser.exit(1, f"{given.output} could not be written: {error.strerror}\n")


if __name__ == "__main__":
    main()
