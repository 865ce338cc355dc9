"""Every kind of figure of everything there is to draw one of, composed."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from hgviz import tasks
from hgviz.core import Display, HgvizError, Selection
from hgviz.figures import WIDTHS, Looked, Spec, labels
from hgviz.figures.output import compose
from hgviz.figures.page import Page
from hgviz.maps.links import LinkOptions
from tests.figures.texts import MAKERS, capture_of

EVERY_WIDTH = ("1.6in", *WIDTHS, "12in")
TITLES = (
    None,
    "",
    "What a head of the last layer that reads whole words does with $x^2$ and モデル",
)
DRAWN = ("map", "links", "wall", "levels", "rollout", "compare")  # of any capture
MEASURED = ("profile", "neurons")  # of those whose heads can be measured


def selections(capture):
    """What is chosen: the plainest, then everything that can be marked, near the end and before."""
    layers = [layer for layer in capture.spec.layers if layer.heads]

    def marked(layer):
        rows, keys = len(capture.query_prompt(layer.index)), len(capture.key_prompt(layer.index))
        return Selection(layer.index, layer.heads[-1], rows - 1, min(rows, keys) // 2)

    middle = marked(layers[len(layers) // 2])
    return (
        Selection(layers[0].index, layers[0].heads[0]),
        marked(layers[-1]),
        replace(middle, query=middle.query // 2),
    )


@cache
def content_of(kind, name, chosen):
    """What a figure of one of MAKERS is drawn of."""
    capture = capture_of(name)
    if kind in ("map", "links", "wall", "levels"):
        return Looked(capture)
    if kind == "compare":
        return tasks.panel(Spec(kind, replace(chosen, query=None)), [capture] * 2).content
    chosen = chosen if kind == "neurons" else Selection(0, 0, chosen.query)
    return tasks.panel(Spec(kind, chosen), capture).content


def page_of(kind, name, number, width):
    """A page; number: which of the selections, titles and ways to draw it has."""
    capture = capture_of(name)
    chosen = selections(capture)[number % 3]
    content = content_of(kind, name, chosen)
    if kind == "rollout":
        chosen = Selection(0, 0, chosen.query)
    across = LinkOptions(across=number % 2 == 0)
    spec = Spec(kind, chosen, Display(shared=number % 2 == 1), width, links=across,
                title=TITLES[number // 2 % 3])  # fmt: skip
    with labels.figure_settings():
        return compose(spec, content)


def some_pages(name) -> Iterator[tuple[str, str, Page]]:
    """Kind, width and page: each kind at one of the widths, a different one for each name."""
    for at, kind in enumerate(DRAWN):
        number = 5 * list(MAKERS).index(name) + 2 * at
        yield from _made(kind, name, number // 2, EVERY_WIDTH[number % len(EVERY_WIDTH)])


def all_pages(name) -> Iterator[tuple[str, str, Page]]:
    """Every kind at every width, twice: with another title, selection and way to be drawn."""
    for kind in (*DRAWN, *MEASURED):
        for at, width in enumerate(EVERY_WIDTH):
            for number in (at, at + 4):
                yield from _made(kind, name, number, width)


def _made(kind, name, number, width) -> Iterator[tuple[str, str, Page]]:
    """One, or none where there cannot be one."""
    try:
        yield kind, width, page_of(kind, name, number, width)
    except HgvizError:
        assert kind in ("rollout", *MEASURED)  # of slots and of dense maps there is none
