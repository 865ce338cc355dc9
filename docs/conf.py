"""How Sphinx makes the pages of docs/ into HTML that is read without a network: `make guide`."""

import re

from sphinx.application import Sphinx

from hgviz import __version__

project = "hgviz"
author = "the hgviz authors"
copyright = author  # noqa: A001 - the name is Sphinx's
version = release = __version__

extensions = ["myst_parser"]
exclude_patterns = ["studies", "pictures"]
highlight_language = "none"
myst_heading_anchors = 4
nitpicky = True
html_theme = "furo"
html_title = f"hgviz {version}"
html_logo = "../resources/icons/hgviz.svg"
html_copy_source = False
html_show_sphinx = False


def contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Make the lists of the first page the table of contents at the side, so that it is written
    once, and a page that it leaves out is an error."""
    if name != "index":
        return
    for part in source[0].split("\n## ")[1:]:
        pages = "\n".join(re.findall(r"\]\(([\w/-]+)\.md\)", part))
        caption = part.partition("\n")[0]
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    """What is not a setting."""
    app.connect("source-read", contents)
