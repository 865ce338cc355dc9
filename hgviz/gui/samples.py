"""The bundled samples, and what people call a file."""

from __future__ import annotations

from pathlib import Path

from hgviz.core import HeadId, Selection
from hgviz.files import resource

SAMPLE = "sample/hourglass"
FIRST = "sample/first.h5"
# what measuring finds clearest in it, known beforehand: the first picture of all need not wait
CHOSEN = Selection(layer=11, head=2, query=101, key=74)
CLEAREST = {0: HeadId(11, 0), 1: HeadId(3, 3), 2: HeadId(7, 1)}
TEXT = (
    "The hourglass was used at sea. When the sand of the hourglass had run down, the sailor on "
    "watch turned the hourglass, and rang the bell."
)
CLASSIFIERS = ("sample/softmax", "sample/ymish", "sample/mixed")
PARTNERS = {"softmax": "sample/ymish", "ymish": "sample/softmax", "mixed": "sample/softmax"}
REVIEW = (
    "The fish was not wonderful, but the evening was. Nobody can deny that the bread was great."
)


def name_of(path: str) -> str:
    """What people call a checkpoint or capture: the sample's name, or the file's."""
    if any(Path(path) == resource(one) for one in (SAMPLE, *CLASSIFIERS)):
        return f"{Path(path).name}-sample"
    return Path(path).name or path


def partner(path: str) -> str:
    """The sample that another one is compared with: trained on the same texts; "" for none."""
    name = Path(path).name
    is_sample = name in PARTNERS and Path(path) == resource(f"sample/{name}")
    return str(resource(PARTNERS[name])) if is_sample else ""


def samples() -> dict[str, str]:
    """The checkpoints that come with hgviz: path and name."""
    paths = (resource(one) for one in (SAMPLE, *CLASSIFIERS))
    return {
        str(path): name_of(str(path)) for path in paths if path.exists() or path.name == "hourglass"
    }
