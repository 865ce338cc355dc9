"""Reports as one HTML file: figures inside it, no script, light or dark as the reader has it."""

from __future__ import annotations

import re
from dataclasses import fields
from html import escape
from pathlib import Path

import hgviz
from hgviz.core import HgvizError
from hgviz.figures import provenance
from hgviz.figures.content import document
from hgviz.figures.content.document import Block, Document, Picture
from hgviz.figures.files import export
from hgviz.figures.paper import style
from hgviz.figures.paper.page import Page
from hgviz.figures.pictures import DRAWINGS
from hgviz.figures.spec import Spec
from hgviz.palettes import CATEGORICAL, CATEGORICAL_DARK, DARK_PAGE, LIGHT_PAGE, PageColours

WIDTH = 487.0  # of figures, in points

_STYLE = """
:root{color-scheme:light dark;%(light)s}
@media (prefers-color-scheme:dark){:root{%(dark)s}}
@media print{:root{%(light)s}h2{break-after:avoid}figure,tr{break-inside:avoid}main{padding:0}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--text);
font:16px/1.55 system-ui,"Segoe UI","DejaVu Sans",sans-serif}
main{max-width:54rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.75rem 0 .6rem}
p,ul{margin:.6rem 0;max-width:46rem}
ul{padding-left:1.2rem}
li{margin:.25rem 0}
.quiet,caption,figcaption{color:var(--secondary);font-size:.875rem}
figure{margin:1.4rem 0}
figure svg{display:block;width:100%%;height:auto}
figcaption{margin-top:.5rem;max-width:46rem}
.wide{overflow-x:auto;margin:1.2rem 0}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;width:100%%}
caption{caption-side:bottom;text-align:left;padding-top:.5rem}
th,td{padding:.3rem .7rem .3rem 0;text-align:right;vertical-align:top;
border-bottom:1px solid var(--line)}
th{color:var(--secondary);font-weight:600;vertical-align:bottom}
th.text,td.text{text-align:left;overflow-wrap:anywhere}
footer{margin-top:3rem;border-top:1px solid var(--line);padding-top:.8rem}
"""


def require(path: Path) -> None:
    """Require that a report of this name can be written, before it is made. Raises HgvizError."""
    if path.suffix.lower() != ".html":
        raise HgvizError(
            f"a report cannot be written as {path.suffix.lower() or path.name!r}: "
            "it is an HTML page",
            "Give the file a name that ends in .html",
        )
    export.require_folder(path)


def write(report: Document, path: Path, command: str) -> Path:
    """Write a report and return its path. The same report gives the same bytes, or no file at all.

    command: what makes it again; names of folders are left out of it. Raises HgvizError.
    """
    require(path)
    record = {
        "program": f"hgviz {hgviz.__version__}",
        "kind": "report",
        **report.about,
        "command": provenance.without_folders(command),
    }
    record = {name: provenance.plain(value) for name, value in record.items() if value}
    with style.dressed():
        content = _page(report, record)
    export.write(path, {path.name: content})
    return path


def _page(report: Document, record: dict[str, str]) -> bytes:
    """The file; record: what it says of where it comes from."""
    pairs = (("light", LIGHT_PAGE, CATEGORICAL), ("dark", DARK_PAGE, CATEGORICAL_DARK))
    inks = {name: _variables(ink, lines) for name, ink, lines in pairs}
    parts = [_block(block, number) for number, block in enumerate(report.blocks)]
    said = "".join(f'<meta name="hgviz:{escape(k)}" content="{escape(v)}">\n' for k, v in
                   record.items())  # fmt: skip
    page = (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f"<title>{escape(report.title)}</title>\n{said}"
        f"<style>{_STYLE % inks}</style>\n</head>\n<body>\n<main>\n<header>\n"
        f'<h1>{escape(report.title)}</h1>\n<p class="quiet">{escape(report.subtitle)}</p>\n'
        f"</header>\n{''.join(parts)}"
        f'<footer class="quiet">{escape(record["program"])} · {escape(record["command"])}</footer>'
        "\n</main>\n</body>\n</html>\n"
    )
    return page.encode()


def _variables(ink: PageColours, lines: tuple[str, ...]) -> str:
    return "".join(f"--{name}:{value};" for name, value in _colours(ink, lines).items())


def _colours(ink: PageColours, lines: tuple[str, ...]) -> dict[str, str]:
    """All that follows the page, by the names of its variables; of lines the last is plain ink."""
    names = (one.name for one in fields(ink) if one.name != "silhouette")
    found = {name.replace("_", "-"): getattr(ink, name) for name in names}
    return found | {f"line-{number}": one for number, one in enumerate(lines[:-1])}


def _block(block: Block, number: int) -> str:
    match block:
        case document.Heading(words):
            return f"<h2>{escape(words)}</h2>\n"
        case document.Words(words, quiet):
            kind = ' class="quiet"' if quiet else ""
            return f"<p{kind}>{escape(words)}</p>\n"
        case document.Points(points, quiet):
            items = "".join(f"<li>{escape(one)}</li>\n" for one in points)
            kind = ' class="quiet"' if quiet else ""
            return f"<ul{kind}>\n{items}</ul>\n"
        case document.Table():
            return _table(block)
        case document.Picture():
            return _figure(block, number)


def _table(table: document.Table) -> str:
    def row(cells: tuple[str, ...], tag: str) -> str:
        parts = []
        for at, one in enumerate(cells):
            kind = ' class="text"' if at in table.text else ""
            scope = ' scope="col"' if tag == "th" else ""
            parts.append(f"<{tag}{kind}{scope}>{escape(one)}</{tag}>")
        return f"<tr>{''.join(parts)}</tr>\n"

    caption = f"<caption>{escape(table.caption)}</caption>\n" if table.caption else ""
    body = "".join(row(one, "td") for one in table.rows)
    return (
        f'<div class="wide"><table>\n{caption}<thead>\n{row(table.columns, "th")}</thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>\n"
    )


def _figure(picture: Picture, number: int) -> str:
    caption = escape(picture.caption)
    return f"<figure>\n{_svg(picture, number)}\n<figcaption>{caption}</figcaption>\n</figure>\n"


def _svg(picture: Picture, number: int) -> str:
    """A figure whose ink follows the page and whose names are those of no other figure."""
    page = Page(WIDTH)
    DRAWINGS[picture.kind].compose(page, Spec(picture.kind), picture.chart)
    text = export.svg(page.figure)
    text = re.sub(r"^.*?(?=<svg )", "", text, flags=re.DOTALL)
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    mark = f"f{number}-"
    text = re.sub(r'\bid="', f'id="{mark}', text)
    text = re.sub(r'href="#', f'href="#{mark}', text)
    text = text.replace("url(#", f"url(#{mark}")
    for name, colour in _colours(LIGHT_PAGE, CATEGORICAL).items():
        text = re.sub(re.escape(colour), f"var(--{name})", text, flags=re.IGNORECASE)
    text = text.replace("<svg ", f'<svg role="img" aria-label="{escape(picture.caption)}" ', 1)
    return text.strip()
