"""The sentence beneath links: how much of the weight they have, and what is not drawn."""

from __future__ import annotations

from hgviz.core import Capture
from hgviz.gui.links.scene import amount, label
from hgviz.gui.views import naming, words
from hgviz.gui.views.sayings import share
from hgviz.maps.linking import Linking, Links


def told(links: Links, hot: Links | None, linking: Linking, capture: Capture) -> str:
    """Such as "“s”: 5 links with 93 % of the weight, most “.” 0.89"."""
    shown = hot or links
    strands = [one for many in shown.strands.values() for one in many]
    if not shown.strands:
        return "The query is a special token, and these are hidden: press Special to see it."
    count = sum(len(one.keys) for one in strands)
    total = sum(one.total for one in strands)
    off = [str(one) for one in shown.heads if one in capture.off]
    if off and len(off) == len(shown.heads):
        many = len(off) > 1
        return f"Head{'s' * many} {', '.join(off)} {'are' if many else 'is'} switched off."
    if not count:
        return "No weight is large enough to be drawn." if total else "Nothing is looked at here."
    part = sum(one.part * one.total for one in strands) / total if total else 0.0
    single = len(shown.strands) == 1
    who = f"{len(shown.strands):,} queries"
    if single:
        who = naming.quoted(label(shown.queries, next(iter(shown.strands))))
    size = "magnitude" if shown.signed else "weight"
    said = f"{who}: {words.counted(count, 'link')} with {share(part)} of the {size}"
    if single and shown.single and len(strands[0].keys):
        top = strands[0]
        most = naming.quoted(label(shown.keys, int(top.keys[0])))
        digits = 3 if shown.values else 2
        said += f", most {most} {amount(float(top.weights[0]), shown.signed, digits)}"
    hidden = sum(one.hidden for one in strands)
    if hidden > 0 and total:
        said += f" · {share(hidden / total)} on special tokens, hidden"
    if linking.values:
        said += " · weight × |v·W_O|"
    if shown.signed:
        said += " · dashed: below zero"
    return said
