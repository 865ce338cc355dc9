"""Nothing overlaps, nothing is clipped, whatever the text, the model and the width."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from hgviz.core import Display, Selection, replace
from hgviz.figures import Spec, composed, points, style
from tests.figures.texts import KINDS, MAKERS, capture_of


def texts(page):
    """(words, box in points, y up) of every text on a page."""
    page.figure.set_dpi(288)
    renderer = FigureCanvasAgg(page.figure).get_renderer()
    return [
        (one.get_text(), np.array(one.get_window_extent(renderer).extents) / 4)
        for one in page.axes.texts
    ]


def overlaps(found):
    """Pairs of texts whose boxes share more than a hair."""
    if not found:
        return []
    boxes = np.stack([box for _, box in found])
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    met = np.triu(((high - low) > 0.35).all(-1), 1)
    return [(found[i][0], found[j][0]) for i, j in np.argwhere(met)]


def selections(capture):
    """Width and selection: narrow and plain, then with everything that can be marked."""
    layers = [layer for layer in capture.spec.layers if layer.heads]

    def marked(layer):
        rows, keys = len(capture.query_prompt(layer.index)), len(capture.key_prompt(layer.index))
        return Selection(layer.index, layer.heads[-1], rows - 1, min(rows, keys) // 2)

    yield "1.6in", Selection(layers[0].index, layers[0].heads[0])
    yield "acl", marked(layers[-1])
    middle = marked(layers[len(layers) // 2])
    yield "neurips", replace(middle, query=middle.query // 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MAKERS)
def test_no_two_labels_overlap_and_none_leaves_the_page(name, kind):
    capture = capture_of(name)
    for width, selection in selections(capture):
        spec = Spec(kind, selection, Display(shared=width == "acl"), width)
        with style.dressed():
            page = composed(spec, capture)
            found = texts(page)
        assert page.width == pytest.approx(points(width))
        assert overlaps(found) == [], width
        for words, (left, low, right, high) in found:
            assert min(left, low) >= -0.3, (width, words)
            assert right <= page.width + 0.3, (width, words)
            assert high <= page.height + 0.3, (width, words)


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_room_for_every_artist(kind):
    with style.dressed():
        page = composed(Spec(kind, width="acl"), capture_of("sea"))
        renderer = FigureCanvasAgg(page.figure).get_renderer()
        for artist in (*page.axes.patches, *page.axes.collections, *page.axes.images):
            box = artist.get_tightbbox(renderer)
            if box is not None and box.width:
                assert box.x0 >= -0.5
                assert box.y0 >= -0.5
                assert box.x1 <= page.width + 0.5
                assert box.y1 <= page.height + 0.5


def test_the_colour_bar_is_as_tall_as_the_map():
    with style.dressed():
        page = composed(Spec("map", Selection(12, 2), width="acl"), capture_of("sea"))
    data, bar = page.axes.images
    assert data.get_extent()[2:] == bar.get_extent()[2:]
    left, right, bottom, top = data.get_extent()
    assert right - left == pytest.approx(bottom - top)  # square cells
