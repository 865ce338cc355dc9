"""Every kind of figure, made ready to be drawn of something small."""

from functools import cache

from hgviz import tasks
from hgviz.core import Selection
from hgviz.figures import FIGURES, Panel, Spec, output
from tests.figures.test_charts import study_of
from tests.figures.texts import SEA
from tests.making import make_capture
from tests.pictures import make_image_capture
from tests.sweeps import make_sweep

KINDS = tuple(FIGURES)
METHODS = ("loo", "michel")


@cache
def panel_of(kind: str, width: str = "acl", text: str = SEA[:40]) -> Panel:
    """A figure of this kind, of captures of a text or of studies."""
    of = FIGURES[kind].of
    if kind == "image":
        spec = Spec(kind, Selection(1, 2, 7), width=width)
        return tasks.panel(spec, make_image_capture())
    chosen = Selection(12, 2, 17, 9) if of in ("capture", "pair") else Selection()
    return tasks.panel(Spec(kind, chosen, width=width), _of(of, text))


def draw(kind, path, width="acl", text=SEA[:40]):
    """Write a figure of this kind."""
    return output.draw(panel_of(kind, width, text), path)


@cache
def _of(of, text):
    first, second = make_capture(text), make_capture(text, seed=1, signed=True)
    return {
        "capture": lambda: first,
        "pair": lambda: [first, second],
        "captures": lambda: [first, second],
        "study": lambda: study_of(METHODS, randoms=4),
        "studies": lambda: [study_of(METHODS, randoms=4)],
        "sweep": make_sweep,
    }[of]()
