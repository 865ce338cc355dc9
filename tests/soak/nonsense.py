"""What a stranger may put in place of something: bytes, values and JSON documents gone wrong."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

Random = np.random.Generator

NUMBERS = (
    0, -1, 1, 2, 3, 7, 255, 65536, 10**6, 10**9, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1,
    2**63, 2**64, 10**30, -(2**31), -(2**63), 0.5, 1e-30, 1e30, -0.0,
)  # fmt: skip
TEXTS = (
    "", " ", "\0", "a\0b", "../../x", "/etc/passwd", "http://example.org/x", "<b>x</b>", "$x$",
    "\u202eabc", "\ud800", "\n\r\t", "{}", "None", "nan", "softmax", "x" * 5000, "é한\U0001f600",
    "__reduce__", "%s%n", "a" * 70, "((a+)+)+$", r"(a|aa)+$", r"a*a*a*\d\b", "float16",
)  # fmt: skip
OTHERS = (None, True, False, [], {}, [[]], [None], {"": {}}, [0] * 5000, [[0, 0]] * 300)


def value(random: Random) -> Any:
    """Anything JSON can say."""
    chosen = int(random.integers(0, 10))
    if chosen < 5:
        return NUMBERS[random.integers(len(NUMBERS))]
    if chosen < 8:
        return TEXTS[random.integers(len(TEXTS))]
    if chosen < 9:
        return OTHERS[random.integers(len(OTHERS))]
    deep: Any = 1
    for _ in range(int(random.integers(1, 400))):
        deep = [deep] if random.integers(2) else {"a": deep}
    return deep


# --- bytes ----------------------------------------------------------------------------------------


def damaged(random: Random, data: bytes, near: int | None = None) -> bytes:
    """Bytes with something changed, cut, put in or repeated; near: mostly within the first so many.

    Nothing of it is much longer than it was.
    """
    out = bytearray(data)
    for _ in range(int(random.choice([1, 1, 2, 4, 16]))):
        size = max(1, min(len(out), near) if near and random.integers(4) else len(out))
        at = int(random.integers(0, size))
        chosen = int(random.integers(0, 8))
        if chosen == 0:
            out[at : at + 1] = bytes([int(random.integers(256))])
        elif chosen == 1 and len(out) > at:
            out[at] ^= 1 << int(random.integers(8))
        elif chosen == 2:
            number = int(random.choice([0, 1, 2**8 - 1, 2**31 - 1, 2**32 - 1, 2**62, 2**63 - 1]))
            width = int(random.choice([1, 2, 4, 8]))
            out[at : at + width] = (number % (1 << 8 * width)).to_bytes(width, "little")
        elif chosen == 3:
            out[at : at + int(random.integers(1, 65))] = b""
        elif chosen == 4:
            length = int(random.integers(1, 65))
            out[at:at] = out[at : at + length]
        elif chosen == 5:
            length = int(random.integers(1, 65))
            out[at : at + length] = bytes(len(out[at : at + length]))
        elif chosen == 6:
            other = int(random.integers(0, size))
            length = int(random.integers(1, 65))
            out[at : at + length] = out[other : other + length]
        elif random.integers(4) == 0:
            del out[at:]
    return bytes(out)


# --- JSON -----------------------------------------------------------------------------------------


def restated(random: Random, document: Any) -> Any:
    """A JSON document in which some things are said otherwise."""
    document = json.loads(json.dumps(document))
    for _ in range(int(random.choice([1, 1, 1, 2, 5]))):
        places = list(_places(document))
        if not places:
            return value(random)
        holder, key = places[random.integers(len(places))]
        _restate(random, holder, key, places)
    return document


def _restate(random: Random, holder: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
    chosen = int(random.integers(0, 8))
    if chosen < 4:
        holder[key] = value(random)
    elif chosen == 4:
        del holder[key]
    elif chosen == 5:
        other, name = places[random.integers(len(places))]
        holder[key] = json.loads(json.dumps(other[name]))
    elif chosen == 6 and isinstance(holder, dict):
        holder[TEXTS[random.integers(len(TEXTS))]] = holder.pop(key)
    elif chosen == 6:
        holder.extend(holder[:50])
    elif isinstance(holder[key], int | float):
        holder[key] = -holder[key] if random.integers(2) else holder[key] + 1


def _places(document: Any) -> Any:
    pairs: Any = ()
    if isinstance(document, dict):
        pairs = list(document.items())
    elif isinstance(document, list):
        pairs = list(enumerate(document))
    for key, inner in pairs:
        yield document, key
        yield from _places(inner)


def written(random: Random, document: Any) -> bytes:
    """A document restated, as bytes; sometimes they are damaged instead, or it is no document."""
    chosen = int(random.integers(0, 10))
    if chosen == 0:
        return damaged(random, json.dumps(document).encode())
    if chosen == 1:
        return json.dumps(value(random)).encode()
    text = json.dumps(restated(random, document))
    if chosen == 2:  # what JSON does not know, and Python writes
        text = text.replace("0", str(random.choice(["NaN", "Infinity", "1e999", "-0"])), 1)
    return text.encode("utf-8", "surrogatepass")


Change = Callable[[Random, Any], None]
