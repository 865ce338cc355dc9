"""Links in words and in numbers: the sentence beneath them, and the table that is copied."""

from __future__ import annotations

from hgviz.core import Capture
from hgviz.gui import sentences
from hgviz.gui.language import tr
from hgviz.gui.links_parts.scene import amount, label
from hgviz.gui.views import words
from hgviz.gui.views.sayings import share
from hgviz.maps.links import Linking, Links, Side

# by whether weights can be negative, and whether the strongest link is named
SAID = {
    (False, False): "{who}: {links} with {share} of the weight",
    (False, True): "{who}: {links} with {share} of the weight, most {key} {amount}",
    (True, False): "{who}: {links} with {share} of the magnitude",
    (True, True): "{who}: {links} with {share} of the magnitude, most {key} {amount}",
}


def told(links: Links, hot: Links | None, linking: Linking, capture: Capture) -> str:
    """Such as "“s”: 5 links with 93 % of the weight, most “.” 0.89"."""
    shown = hot or links
    strands = [one for many in shown.strands.values() for one in many]
    if not shown.strands:
        return tr("The query is a special token, and these are hidden: press Special to see it.")
    count = sum(len(one.keys) for one in strands)
    total = sum(one.total for one in strands)
    off = [str(one) for one in shown.heads if one in capture.off]
    if off and len(off) == len(shown.heads):
        if len(off) > 1:
            return tr("Heads {heads} are switched off.", heads=", ".join(off))
        return tr("Head {head} is switched off.", head=off[0])
    if not count:
        none = "No weight is large enough to be drawn." if total else "Nothing is looked at here."
        return tr(none)
    part = sum(one.part * one.total for one in strands) / total if total else 0.0
    single = len(shown.strands) == 1
    who = tr("{n:,} queries", n=len(shown.strands))
    if single:
        who = sentences.quoted(label(shown.queries, next(iter(shown.strands))))
    parts = {"who": who, "links": words.counted(count, "link"), "share": share(part)}
    top = strands[0] if single and shown.single and len(strands[0].keys) else None
    if top is not None:
        digits = 3 if shown.values else 2
        parts["key"] = sentences.quoted(label(shown.keys, int(top.keys[0])))
        parts["amount"] = amount(float(top.weights[0]), shown.signed, digits)
    said = [tr(SAID[shown.signed, top is not None], **parts)]
    hidden = sum(one.hidden for one in strands)
    if hidden > 0 and total:
        said.append(tr("{share} on special tokens, hidden", share=share(hidden / total)))
    if linking.values:
        said.append(tr("weight × |v·W_O|"))
    if shown.signed:
        said.append(tr("dashed: below zero"))
    return " · ".join(said)


def table_of(links: Links) -> list[list[str]]:
    """A row for every link: both ends, the head (or how heads are put together), the weight."""
    rows = [[tr("Query position"), tr("Query"), tr("Key position"), tr("Key"), tr("Head"),
             tr("Weight")]]  # fmt: skip
    heads = [tr(links.fuse)] if links.single and len(links.heads) > 1 else map(str, links.heads)
    named = tuple(heads)
    for place, many in links.strands.items():
        for head, strand in zip(named, many, strict=True):
            for key, weight in zip(strand.keys.tolist(), strand.weights.tolist(), strict=True):
                ends = *_end(links.queries, place), *_end(links.keys, key)
                rows.append([*ends, head, repr(float(weight))])
    return rows


def _end(side: Side, place: int) -> tuple[str, str]:
    """The token of a unit, as a number, and what is written for it."""
    token = side.token(place)
    return "" if token is None else str(token), label(side, place)
