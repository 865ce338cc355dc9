"""A Spec as options: words of a command line, arguments of a notebook.

What is written here is read here: a figure says how to draw it again, and nothing of it is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hgviz.core import HEAD_FUSIONS, Capture, HgvizError
from hgviz.figures.forms import (
    FLAG,
    HEAD,
    HEADS,
    LIMITS,
    NUMBER,
    TEXT,
    TEXTS,
    TOKENS,
    WHOLE,
    Form,
    Unfit,
    Value,
    number_words,
    one_of,
)
from hgviz.figures.spec import Spec, kind_of
from hgviz.maps.links import FUSES as TOGETHER
from hgviz.palettes import PALETTES, SCALES

AXES = ("heads", "parameters", "flops", "time")
Items = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its name, where it stands in a Spec, what it takes, and which kinds of figures
    use it; kinds "": all of them.

    Options stand in the order in which they are read: what one is depends on those before it.
    """

    name: str
    at: str
    form: Form
    kinds: str = ""

    def of(self, kind: str) -> bool:
        """Whether a kind of figures uses it."""
        return not self.kinds or kind in self.kinds.split()


_HEADS = "map image links levels compare neurons"
_MAPS = "map image wall levels rollout compare"
OPTIONS: tuple[Option, ...] = (
    Option("heads", "links.heads", HEADS, "links"),
    Option("heads", "recipe.heads", HEADS, "rollout"),
    Option("layer", "selection.layer", WHOLE, _HEADS),
    Option("head", "selection.head", WHOLE, _HEADS),
    Option("beside", "selection.beside", HEAD, "compare"),
    Option("query", "selection.query", WHOLE, "map image links levels rollout neurons"),
    Option("key", "selection.key", WHOLE, "map rollout neurons"),
    Option("heads", "heads", HEADS, "image levels"),
    Option("queries", "links.queries", TOKENS, "links"),
    Option("together", "links.fuse", one_of(TOGETHER), "links"),
    Option("mass", "links.mass", NUMBER, "links"),
    Option("least", "links.least", NUMBER, "links"),
    Option("most", "links.most", WHOLE, "links"),
    Option("words", "links.words", FLAG, "links"),
    Option("special", "links.special", FLAG, "links"),
    Option("values", "links.values", FLAG, "links"),
    Option("across", "links.across", FLAG, "links"),
    Option("fuse", "recipe.fuse", one_of(HEAD_FUSIONS), "rollout"),
    Option("residual", "recipe.residual", NUMBER, "rollout"),
    Option("nothing", "recipe.nothing", FLAG, "rollout"),
    Option("signed", "recipe.signed", FLAG, "rollout"),
    Option("method", "methods", TEXTS, "curve scores budgets"),
    Option("axis", "axis", one_of(AXES), "curve"),
    Option("tokens", "tokens", FLAG, "map links wall levels compare profile"),
    Option("order", "order", one_of(("text", "weight")), "neurons"),
    Option("metric", "metrics", TEXTS, "profile"),
    Option("palette", "display.palette", one_of(PALETTES), f"{_MAPS} neurons"),
    Option("scale", "display.scale", one_of(SCALES), f"{_MAPS} neurons"),
    Option("limits", "display.limits", LIMITS, f"{_MAPS} activation curve scores seeds budgets"),
    Option("shared", "display.shared", FLAG, "wall"),
    Option("title", "title", TEXT),
    Option("width", "width", TEXT),
    Option("format", "format", TEXT),
)


def used(kind: str) -> dict[str, Option]:
    """The options that a kind of figures uses, by name."""
    return {one.name: one for one in OPTIONS if one.of(kind)}


def arguments(spec: Spec, item: Items = 0) -> list[str]:
    """What follows the files of `hgviz figure`; item: which text of all of them, or of each."""
    out = ["--kind", spec.kind]
    for name, value in values(spec, item).items():
        if isinstance(value, bool):
            out.append(f"--{name}" if value else f"--no-{name}")
        else:
            many = value if isinstance(value, list) else [value]
            out += [word for one in many for word in (f"--{name}", _word(one))]
    return out


def values(spec: Spec, item: Items = 0) -> dict[str, Value]:
    """What a figure is other than usual, by the names of options; the kind is not among them."""
    found: dict[str, Value] = {}
    for name, option in used(spec.kind).items():
        value = _get(spec, option.at)
        if value != _usual(option, spec):
            found[name] = option.form.write(value)
    if isinstance(item, tuple):
        item = item[0] if len(set(item)) == 1 else item
    if item:
        found["item"] = item if isinstance(item, int) else ",".join(map(str, item))
    return found


def spec_of(kind: str, options: Mapping[str, Any], captures: Sequence[Capture] = ()) -> Spec:
    """The figure that some options ask for, of some captures; those it does not use are ignored.

    Errors: HgvizError for a kind that is not there, and for values that an option does not take.
    """
    spec = Spec(kind_of(kind).name)
    for name, option in used(kind).items():
        if name not in options:
            value = _usual(option, spec)
        else:
            try:
                value = option.form.read(options[name], spec, captures)
            except Unfit:
                raise HgvizError(f"{name} cannot be {options[name]!r}: "
f"it takes {option.form.takes}",
"Choose another") from None  # fmt: skip
        spec = _put(spec, option.at, value)
    return spec


def _usual(option: Option, spec: Spec) -> Any:
    """What an option is where nothing is said: of links, the first of the heads named, and all of
    the links where a limit of weight is named."""
    if spec.kind == "links":
        if option.name in ("layer", "head") and spec.links.heads:
            return getattr(spec.links.heads[0], option.name)
        if option.name == "most" and (spec.links.mass or spec.links.least):
            return 0
    return _get(Spec(), option.at)


def _get(spec: Spec, at: str) -> Any:
    found: Any = spec
    for name in at.split("."):
        found = getattr(found, name)
    return found


def _put(spec: Spec, at: str, value: Any) -> Spec:
    part, _, name = at.rpartition(".")
    if part:
        name, value = part, replace(getattr(spec, part), **{name: value})
    return replace(spec, **{name: value})


def _word(value: Any) -> str:
    return number_words(value) if isinstance(value, float) else str(value)
