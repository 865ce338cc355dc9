"""How the pictures put amounts into words: numbers, fractions, weights, lists."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hgviz.core import Level, ModelSpec
from hgviz.gui.language import tr
from hgviz.gui.views import words

if TYPE_CHECKING:
    pass

READ = {"text": "Text", "image": "Image", "audio": "Sound"}  # by what a model reads
NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
PARTS = {
    2: "a half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 8: "an eighth",
    9: "a ninth", 10: "a tenth", 16: "a sixteenth", 25: "a 25th", 36: "a 36th", 64: "a 64th",
}  # fmt: skip
VULGAR = {1: "1", 2: "½", 3: "⅓", 4: "¼", 5: "⅕", 6: "⅙", 8: "⅛", 9: "⅑", 10: "⅒"}


def number(count: int) -> str:
    """two, twelve, 32,768."""
    return tr(NUMBERS[count]) if 0 <= count < len(NUMBERS) else f"{count:,}"


def part(count: int) -> str:
    """a quarter, a sixteenth, 1/144."""
    return tr(PARTS[count]) if count in PARTS else f"1/{count:,}"


def fraction(count: int) -> str:
    """One over count as figures, small where every font has them: 1, ¼, 1/16."""
    return VULGAR.get(count, f"1/{count:,}")


def level(spec: ModelSpec, number: int) -> str:
    """What a level is called: 1:2; of models with two texts or slots, whose rows they are."""
    one = spec.levels[number]
    if len({level.sequence for level in spec.levels}) == 1:
        return one.label
    return tr("text" if one.sequence == "source" and not spec.two_texts else one.sequence)


def read(spec: ModelSpec) -> str:
    """What a model reads: Text, Image, Sound."""
    return tr(READ[spec.modality])


def coarseness(level: Level) -> float:
    """Tokens per position, for the order of resolutions: of unequal segments more than of any."""
    return level.stride or (math.inf if level.parts == 1 else sys.float_info.max / level.parts)


def ends(spec: ModelSpec, layer: int) -> str:
    """The levels of a layer: 1:2, 1:1 → 1:2, source → target; "" where there is but one."""
    if len(spec.levels) == 1:
        return ""
    one = spec.layers[layer]
    found = [level(spec, number) for number in (one.key_level, one.level)]
    return found[0] if found[0] == found[1] else " → ".join(found)


def counted(count: int, noun: str) -> str:
    """1 letter, 136 positions, 32,768 letters."""
    return tr(f"{{n:,}} {noun}" if count == 1 else f"{{n:,}} {noun}s", n=count)


def weight(value: float, digits: int = 2) -> str:
    """0.89; <0.01 for what is not quite nothing; 0 only where it is exactly that; a real minus."""
    if value == 0:
        return "0"
    least = 10.0**-digits
    if abs(value) < least:
        return f"<{least:.{digits}f}" if value > 0 else f"−<{least:.{digits}f}"
    return f"{value:.{digits}f}".replace("-", "−")


def with_sign(value: float, digits: int = 3) -> str:
    """+0.712, −0.281, 0."""
    return ("+" if value > 0 else "") + weight(value, digits)


def percent(number: str) -> str:
    """89 %: a number that is written already, with its sign."""
    return tr("{number} %", number=number)


def share(part: float) -> str:
    """52 %; 0 % and 100 % only where it is exactly that."""
    if 0 < part < 0.005:
        return percent("<1")
    return percent(">99" if 0.995 <= part < 1 else f"{100 * part:.0f}")


def layers(numbers: Sequence[int]) -> str:
    """layer 3, layers 0 and 1, layers 5 to 7, layers 2, 5 and 9."""
    if len(numbers) == 1:
        return tr("layer {number}", number=numbers[0])
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
        return tr("layers {first} to {last}", first=first, last=last)
    before = ", ".join(map(str, numbers[:-1]))
    return tr("layers {before} and {last}", before=before, last=last)


def measured(metric: str, value: float) -> str:
    """A metric as people read it: two decimals, a distance in whole letters; a dash for none."""
    if value != value:
        return "–"
    if metric == "offset":
        return f"{value:+,.0f}".replace("-", "−") if value else "0"
    if metric in ("distance", "centre", "width"):
        near = abs(value) < 10
        return (f"{value:.1f}" if near else f"{value:,.0f}").replace("-", "−")
    if metric == "variance":
        return f"{value:.2g}"
    return words.weight(value)
