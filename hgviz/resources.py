"""Where the icons, the sample and the other files that come with hgviz lie."""

from pathlib import Path


def resource(name: str) -> Path:
    """The file or folder of that name, in a wheel, a frozen bundle or a checkout.

    Wheels and bundles carry hgviz/resources beside this module; a checkout keeps resources/ at
    its root.
    """
    inside = Path(__file__).with_suffix("")
    root = inside if inside.is_dir() else inside.parent.parent / "resources"
    return root / name
