"""What can be wrong with how a page is laid out, found on the boxes of what is drawn."""

from dataclasses import dataclass

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.path import Path
from matplotlib.transforms import Bbox

from hgviz.figures import labels
from hgviz.figures.labels import JOINERS

HAIR = 0.35  # points that do not count
LEAST = 5.0  # points: the smallest text that can be read in print


@dataclass
class Seen:
    """What is drawn, in points from the bottom left of the page.

    words (texts,) with boxes (texts, 4) left, low, right, high; segments (n, 2, 2) of lines with
    half (n,) their width, and depth (n,); fills: boxes of what is filled, whether they are all of
    it, and depth; pictures: boxes of rasters.
    """

    texts: list
    boxes: np.ndarray
    segments: np.ndarray
    half: np.ndarray
    depth: np.ndarray
    fills: list[tuple[np.ndarray, Path | None, float]]
    pictures: list[np.ndarray]


@labels.figure_settings()
def seen(page) -> Seen:
    """Everything on a page."""
    figure = page.figure
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts, boxes, fills, pictures = [], [], [], []
    segments, half, depth = [np.zeros((0, 2, 2))], [np.zeros(0)], [np.zeros(0)]

    def lines(found, width, z):
        segments.append(found)
        half.append(np.full(len(found), width / 2))
        depth.append(np.full(len(found), z))

    for axes in figure.axes:
        for one in axes.texts:
            if one.get_text().strip():
                texts.append(one)
                boxes.append(one.get_window_extent(renderer).extents)
        for one in axes.patches:
            path = one.get_transform().transform_path(one.get_path())
            box, z = path.get_extents().extents, one.get_zorder()
            if one.get_facecolor()[3] == 1:
                corners = path.vertices.reshape(-1, 2)
                square = all(min(abs(c - box[[0, 2]])) < 1e-6 for c in corners[:, 0])
                fills.append((box, None if square else path, z))
            if one.get_linewidth() and one.get_edgecolor()[3]:
                lines(_segments(path), one.get_linewidth(), z)
        for one in axes.lines:
            places = one.get_transform().transform(one.get_xydata())
            if one.get_linestyle() not in ("None", "none", ""):
                both = np.stack([places[:-1], places[1:]], 1)
                lines(both, one.get_linewidth(), one.get_zorder())
            if one.get_marker() not in ("None", "", None):
                size = one.get_markersize() + one.get_markeredgewidth()
                lines(np.stack([places, places], 1), size, one.get_zorder())
        for one in axes.collections:
            found = [axes.transData.transform(part) for part in one.get_segments()]
            both = [np.stack([part[:-1], part[1:]], 1) for part in found]
            if both and to_rgba(one.get_colors()[0])[3]:
                lines(np.concatenate(both), one.get_linewidths()[0], one.get_zorder())
        for one in axes.images:
            left, right, bottom, top = one.get_extent()
            corners = axes.transData.transform([(left, bottom), (right, top)])
            box = np.concatenate([corners.min(0), corners.max(0)])
            if one.get_clip_path() is not None:
                path, change = one.get_clip_path().get_transformed_path_and_affine()
                cut = change.transform_path(path).get_extents().extents
                box = np.concatenate([np.maximum(box[:2], cut[:2]), np.minimum(box[2:], cut[2:])])
            pictures.append(box)
    return Seen(
        texts, np.array(boxes).reshape(-1, 4), np.concatenate(segments), np.concatenate(half),
        np.concatenate(depth), fills, pictures,
    )  # fmt: skip


def _segments(path):
    """Straight parts of an outline or a curve."""
    parts = [np.asarray(part) for part in path.to_polygons(closed_only=False)]
    return np.concatenate([np.stack([part[:-1], part[1:]], 1) for part in parts])


def texts(page):
    """(words, box in points, y up) of every text on a page."""
    found = seen(page)
    return [(one.get_text(), box) for one, box in zip(found.texts, found.boxes, strict=True)]


def overlaps(found):
    """Pairs of texts, as texts gives them, whose boxes share more than a hair."""
    if not found:
        return []
    boxes = np.stack([box for _, box in found])
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    met = np.triu(((high - low) > HAIR).all(-1), 1)
    return [(found[i][0], found[j][0]) for i, j in np.argwhere(met)]


def flaws(page) -> list[str]:
    """What is wrong with a page, in words: nothing, if all is well."""
    all_ = seen(page)
    words = [one.get_text() for one in all_.texts]
    wrong = [f"{a!r} lies over {b!r}" for a, b in overlaps([*zip(words, all_.boxes, strict=True)])]
    wrong += _outside(page, all_, words)
    wrong += _covered(all_, words)
    wrong += _unread(page, all_, words)
    return wrong


def _outside(page, all_: Seen, words) -> list[str]:
    """What reaches beyond the page."""
    size = page.figure.get_size_inches() * 72
    wrong = []
    if not np.allclose(size, (page.width, page.height), atol=1e-6):
        wrong.append(f"the page is {size}, not {(page.width, page.height)}")
    along = np.diff(all_.segments, axis=1)[:, 0]
    long = np.linalg.norm(along, axis=1, keepdims=True)
    aside = np.where(long > 0, np.abs(along[:, ::-1]) / np.where(long > 0, long, 1), 1)
    low = all_.segments.min(1) - aside * all_.half[:, None]  # lines end where they end
    high = all_.segments.max(1) + aside * all_.half[:, None]
    named = [
        *zip(words, all_.boxes, strict=True),
        *(("a fill", box) for box, _, _ in all_.fills),
        *(("a raster", box) for box in all_.pictures),
        *(("a line", box) for box in np.concatenate([low, high], 1)),
    ]
    for name, (left, bottom, right, top) in named:
        beyond = max(-left, -bottom, right - size[0], top - size[1])
        if beyond > HAIR:
            wrong.append(f"{name!r} is {beyond:.2f} points outside of the page")
    return wrong


def _covered(all_: Seen, words) -> list[str]:
    """Texts that lie over something else than the one ground they stand on."""
    wrong = []
    inner = all_.boxes + np.array([1, 1, -1, -1]) * HAIR
    fills = np.array([fill for fill, _, _ in all_.fills]).reshape(-1, 4)
    for one, name, box in zip(all_.texts, words, inner, strict=True):
        if "Mono" in one.get_fontfamily()[0]:
            continue  # letters in the cells of a strip
        shared = np.minimum(fills[:, 2:], box[2:]) - np.maximum(fills[:, :2], box[:2])
        met = [all_.fills[at] for at in np.flatnonzero((shared > HAIR).all(1))]
        corners = [(x, y) for x in box[[0, 2]] for y in box[[1, 3]]]
        ground = -np.inf
        for fill, path, z in met:
            within = (fill[:2] <= box[:2] + 1).all() and (fill[2:] >= box[2:] - 1).all()
            # a point of slack on either side, whichever way round the outline runs
            if within and (path is None or any(path.contains_points(corners, radius=radius).all()
                                               for radius in (-1, 1))):  # fmt: skip
                ground = max(ground, z)
        for _, path, z in met:
            if z > ground and (path is None or path.intersects_bbox(Bbox.from_extents(*box))):
                wrong.append(f"{name!r} lies over a fill")
        if any((np.minimum(p[2:], box[2:]) - np.maximum(p[:2], box[:2]) > HAIR).all()
               for p in all_.pictures):  # fmt: skip
            wrong.append(f"{name!r} lies over a raster")
        if (_crosses(all_.segments, all_.half, box) & (all_.depth > ground)).any():
            wrong.append(f"{name!r} is crossed by a line")
    return wrong


def _crosses(segments, half, box):
    """bool (n,): whether lines of a width meet a box (Liang and Barsky 1984)."""
    low, high = box[:2] + HAIR - half[:, None], box[2:] - HAIR + half[:, None]
    start, step = segments[:, 0], segments[:, 1] - segments[:, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = (low - start) / step, (high - start) / step
    enter, leave = np.minimum(a, b), np.maximum(a, b)
    still = step == 0
    within = (low <= start) & (start <= high)
    enter = np.where(still, np.where(within, -np.inf, np.inf), enter)
    leave = np.where(still, np.where(within, np.inf, -np.inf), leave)
    return np.maximum(enter.max(1), 0) <= np.minimum(leave.min(1), 1)


def _unread(page, all_: Seen, words) -> list[str]:
    """Characters without a sign, and texts too small for print."""
    wrong = [
        f"no font has {character!r} of {name!r}"
        for name in set(words)
        for character in set(name) - set(JOINERS)
        if not labels.has_glyph(character)
    ]
    smallest = min((one.get_fontsize() for one in all_.texts), default=None)
    if smallest != page.smallest:
        wrong.append(f"the smallest text is of {smallest}, not {page.smallest}")
    if smallest is not None and smallest < LEAST:
        wrong.append(f"there is text of {smallest} points")
    return wrong
