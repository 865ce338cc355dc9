"""Where the icons, the sample and the other files that come with hgviz lie."""

import os
from pathlib import Path

SAMPLE = "sample"  # the folder whose files people may name


def resource(name: str) -> Path:
    """The file or folder of that name, in a wheel, a frozen bundle or a checkout.

    Wheels and bundles carry hgviz/resources beside this module; a checkout keeps resources/ at
    its root.
    """
    inside = Path(__file__).with_suffix("")
    root = inside if inside.is_dir() else inside.parent.parent / "resources"
    return root / name


def bundled(path: str | os.PathLike[str]) -> Path:
    """The path itself where there is something; else what comes with hgviz under that name.

    So sample/hourglass names the bundled model in every folder that has no such file of its own.
    """
    given = Path(path)
    if given.parts[:1] != (SAMPLE,) or ".." in given.parts or os.path.lexists(given):
        return given
    found = resource(given.as_posix())
    return found if found.exists() else given
