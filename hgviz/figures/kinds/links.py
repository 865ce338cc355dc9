"""Token-to-token links: the queries on one side, the keys on the other, curves between them."""

from __future__ import annotations

from hgviz.core import Capture
from hgviz.figures.content import Facts, Looked
from hgviz.figures.kinds.strands import kinds_of
from hgviz.figures.kinds.two_columns import in_two_columns
from hgviz.figures.kinds.two_rows import in_two_rows
from hgviz.figures.paper.frame import (
    activation_of,
    footnotes,
    heading,
    level_name,
    map_of,
    together,
)
from hgviz.figures.paper.page import Page
from hgviz.figures.spec import Spec
from hgviz.maps.links import Links, find_links


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place the links of the chosen queries and heads on the page."""
    capture, facts = looked.capture, looked.facts
    map_of(capture, spec.selection.layer, spec.selection.head)
    links = find_links(capture, spec.selection, spec.links)
    top = _title(page, spec, capture, links, facts)
    kinds = kinds_of(links)
    place = in_two_rows if spec.links.across else in_two_columns
    bottom, missing = place(page, links, kinds, top)
    notes = [*spec.links.captions, *_missing(links, missing)]
    if links.signed:
        notes.append("dashed: below zero")
    off = [str(one) for one in links.heads if one in capture.off]
    if off:
        notes.insert(0, f"off: {', '.join(off)} {'is' if len(off) == 1 else 'are'} switched off")
    page.notes += notes
    page.close(footnotes(page, together(notes, page.width - 2), 0, bottom + 4) + 4)


def _title(page: Page, spec: Spec, capture: Capture, links: Links, facts: Facts) -> float:
    if spec.title is not None:
        return heading(page, spec.title, "")
    first = links.heads[0]
    parts = [level_name(capture, first.layer)]
    if len(links.heads) == 1:
        role = facts[first].role if first in facts else ""
        parts += [activation_of(capture, first), role]
        name = f"Head {first}"
    else:
        name = f"Heads {', '.join(map(str, links.heads))}"
        if len(links.heads) > 8:
            name = f"{len(links.heads)} heads, {first} to {links.heads[-1]}"
        name += "" if links.fuse == "each" else f": {links.fuse}"
    return heading(page, name, "  ·  ".join(filter(None, parts)))


def _missing(links: Links, missing: int) -> list[str]:
    """What is not to be seen."""
    strands = [one for many in links.strands.values() for one in many]
    hidden = sum(one.hidden for one in strands) / (sum(one.total for one in strands) or 1)
    notes = []
    if not links.strands:
        notes.append("the query is a special token, which are left out")
    if hidden > 0:
        notes.append(f"{100 * hidden:.0f} % of the weight lies on special tokens, left out")
    if missing:
        many = "1 link ends" if missing == 1 else f"{missing} links end"
        notes.append(f"{many} outside of what is shown")
    return notes
