"""Where one query looks in its image: the image, and over it the weights of each head.

As in Caron et al. 2021 (DINO), but for the patches themselves: no weight is smoothed.
"""

from __future__ import annotations

from dataclasses import dataclass

from hgviz.core import Capture, Floats, HeadId, HgvizError, Signal
from hgviz.figures.content import Looked
from hgviz.figures.heatmap import HEAD_OFF
from hgviz.figures.paper import style
from hgviz.figures.paper.frame import footnotes, has_negative_weights, heading, map_of, token_in
from hgviz.figures.paper.labels import elide
from hgviz.figures.paper.page import Page
from hgviz.figures.paper.shades import level_bar, shades_of
from hgviz.figures.spec import Spec
from hgviz.palettes import LIGHT_PAGE, overlay

NARROWEST, LARGEST, BETWEEN, ABOVE = 70.0, 200.0, 8.0, 12.0  # points, of one picture


@dataclass(frozen=True, slots=True)
class PatchWeights:
    """The weights of a head over an image: grid (rows, columns) of patches, added (n,) of the
    positions before them, such as [CLS]."""

    head: HeadId
    grid: Floats
    added: Floats


def image_of(capture: Capture) -> Signal:
    """The image of a capture, with its patches. Raises HgvizError where there is none."""
    signal = capture.prompt.signal
    if signal is None or signal.grid is None or signal.picture is None:
        raise HgvizError(
            f"this capture is not of an image in patches: it has {len(capture.prompt):,} tokens",
            "Choose another kind, such as map",
        )
    return signal


def query_of(spec: Spec, capture: Capture) -> int | None:
    """The position whose weights are shown: the one asked for, else the first where the model adds
    one to the patches ([CLS]); None for the mean of all."""
    rows, columns = image_of(capture).grid or (0, 0)
    if spec.selection.query is not None:
        return token_in(capture.prompt, spec.selection.query)
    return 0 if len(capture.prompt) > rows * columns else None


def patch_weights(spec: Spec, capture: Capture) -> list[PatchWeights]:
    """The weights of each head that is shown. Raises HgvizError for heads that are not there."""
    rows, columns = image_of(capture).grid or (0, 0)
    query, heads = query_of(spec, capture), []
    for head in spec.heads or (spec.selection.head_id,):
        maps = map_of(capture, *head)
        if maps.shape[1:] != (len(capture.prompt),) * 2:
            raise HgvizError(
                f"layer {head.layer} does not look at the image from itself: "
                f"its maps are {maps.shape[1]:,} × {maps.shape[2]:,}",
                "Choose another layer",
            )
        if query is None:
            row = maps.read(head.head).mean(0)
        else:
            row = maps.read(head.head, rows=(query, query + 1))[0]
        added = len(row) - rows * columns
        heads.append(PatchWeights(head, row[added:].reshape(rows, columns), row[:added]))
    return heads


def compose(page: Page, spec: Spec, looked: Looked) -> None:
    """Place the image and the heads' weights over it, with one bar for all."""
    capture, signal = looked.capture, image_of(looked.capture)
    heads, query = patch_weights(spec, capture), query_of(spec, capture)
    is_signed = any(has_negative_weights(capture, *one.head) for one in heads)
    on = [one.grid for one in heads if one.head not in capture.off]
    shades = shades_of(spec.display, is_signed, on)
    picture = signal.picture
    assert picture is not None
    if spec.title is None:
        words = "all queries" if query is None else f"query {capture.prompt.pieces[query]}"
        top = heading(page, "Where the image is looked at", f"from {words}")
    else:
        top = heading(page, spec.title, "")
    count = len(heads) + 1
    columns = max(1, min(count, int((page.width + BETWEEN) // (NARROWEST + BETWEEN))))
    width = min((page.width - BETWEEN * (columns - 1)) / columns, LARGEST)
    height = width * picture.shape[0] / picture.shape[1]
    for number in range(count):
        row, column = divmod(number, columns)
        x, y = column * (width + BETWEEN), top + ABOVE + row * (height + ABOVE + 10)
        if not number:
            page.text(x, y - 3, "Image", size=style.SMALL)
            page.image(picture, x, y, width, height)
            if query is not None:
                patch = query - (len(capture.prompt) - len(heads[0].grid.ravel()))
                _draw_ring(page, signal, patch, x, y, width, height)
            continue
        one = heads[number - 1]
        is_off = one.head in capture.off
        role = looked.facts[one.head].role if one.head in looked.facts else ""
        name = f"Head {one.head}" + (f", {HEAD_OFF}" if is_off else f"  ·  {role}" if role else "")
        page.text(x, y - 3, elide(name, width, style.SMALL), size=style.SMALL)
        shown = picture if is_off else overlay(picture, shades.paint(one.grid))
        page.image(shown, x, y, width, height)
        page.box(x, y, width, height, edge=LIGHT_PAGE.line)
    end = top + ((count - 1) // columns + 1) * (height + ABOVE + 10)
    first = style.extent(shades.ticks(page.width / 2)[0][1], style.SMALL)
    end = level_bar(page, shades, max(3.0, first / 2 + 1), end, page.width / 2)
    page.close(footnotes(page, _notes(capture, heads), 0.0, end + 2) + 3)


def _draw_ring(
    page: Page, signal: Signal, patch: int, x: float, y: float, width: float, height: float
) -> None:
    """Mark a patch; what is added to the patches has no place."""
    if patch < 0:
        return
    rows, columns = signal.grid or (0, 0)
    row, column = divmod(patch, columns)
    wide, high = width / columns, height / rows
    for colour, line in ((LIGHT_PAGE.paper, 1.8), (LIGHT_PAGE.mark, 0.9)):
        page.box(x + column * wide, y + row * high, wide, high, edge=colour, line=line)


def _notes(capture: Capture, heads: list[PatchWeights]) -> list[str]:
    """What of each head's weights lies on no patch."""
    on = [one for one in heads if one.head not in capture.off and len(one.added)]
    if not on:
        return []
    parts = [f"{one.head} {100 * float(one.added.sum()):.0f} %" for one in on[:12]]
    more = f" and {len(on) - 12} more" if len(on) > 12 else ""
    names = ", ".join(capture.prompt.pieces[: len(on[0].added)][:2])
    return [f"on {names}{', …' if len(on[0].added) > 2 else ''}, which is no patch: "
            f"{', '.join(parts)}{more}"]  # fmt: skip
