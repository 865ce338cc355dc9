r"""Figures as TikZ: what a page has, as \draw, \fill and \node that people can read and change.

Coordinates are points of 1/72 inch from the lower left corner of the page. Texts have the font of
the document; they stand where the page put them, by the same end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.path import Path as Outline
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D, Bbox

from hgviz.figures.files import latex, rasters
from hgviz.figures.files.latex import number
from hgviz.figures.spec import POINTS

ENDING = "tikz.tex"
ANCHORS = {"left": "base west", "center": "base", "right": "base east"}
LINE = 96  # columns of a line of code
# a unit is 1 bp, told so that TeX's rounding adds up to nothing
HEAD = r"\begin{tikzpicture}[x=1.00375pt, y=1.00375pt, inner sep=0pt, outer sep=0pt]"


def render(figure: Figure, path: Path, record: Mapping[str, str]) -> dict[str, bytes]:
    """The .tikz.tex of a figure and the .png files that it names."""
    width, height = (POINTS * one for one in figure.get_size_inches())
    drawn = Tikz(width, height, path, POINTS / figure.dpi)
    figure.draw(drawn)
    drawn.clip("")
    colours = [rf"\definecolor{{{name}}}{{HTML}}{{{name[2:]}}}" for name in sorted(drawn.colours)]
    fonts = [
        rf"\tikzset{{{name}/.style={{font={font}}}}}" for name, font in sorted(drawn.fonts.items())
    ]
    lines = [
        latex.head(record, "tikz") + HEAD,
        *colours, *fonts,
        # no clip: a text that the document's font makes wider stays whole
        rf"\path[use as bounding box] (0,0) rectangle {_at(width, height)};",
        *drawn.lines, r"\end{tikzpicture}\endgroup", "",
    ]  # fmt: skip
    return {**drawn.files, path.name: "\n".join(lines).encode()}


class Tikz(RendererBase):
    """Draws as lines of code; files: the rasters by name, colours: those it used."""

    def __init__(self, width: float, height: float, path: Path, scale: float) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.files: dict[str, bytes] = {}
        self.colours: set[str] = set()
        self.fonts: dict[str, str] = {}
        self._page = Bbox.from_bounds(0, 0, width, height)
        self._path = path
        self._to_points = Affine2D().scale(scale)
        self._clip = ""
        self._pen = ""  # how the last line is drawn, if others can join it
        self._outline: tuple[Any, Any, str] = (None, None, "")  # the last one that clipped

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:
        """An outline, filled or not; lines of one look share a command."""
        parts = self._subpaths(path, transform)
        ink, line = gc.get_rgb(), gc.get_linewidth()
        stroked = line > 0 and ink[3] > 0
        if not parts or not (stroked or rgbFace is not None):
            return
        options, solid = [], True
        if rgbFace is not None:
            part = gc.get_alpha() if gc.get_forced_alpha() else [*rgbFace, 1.0][3]
            options += [f"fill={self._colour(rgbFace)}", *_opacity("fill opacity", part)]
        if stroked:
            part = gc.get_alpha() if gc.get_forced_alpha() else ink[3]
            solid = part == 1
            options += [f"draw={self._colour(ink)}", f"line width={number(line)}bp"]
            options += [*_opacity("draw opacity", part), *_pen(gc, len(path.vertices))]
        self._within(gc, lambda: path.get_extents(transform + self._to_points).padded(line))
        verb = rf"\path[{', '.join(options)}]"
        if rgbFace is None and solid and verb == self._pen:  # it joins the lines before
            self.lines[-1] = self.lines[-1].removesuffix(";")
            self.lines.append(_folded(f"  {' '.join(parts)};"))
        else:
            self._add(f"{verb} {' '.join(parts)};")
            self._pen = verb if rgbFace is None and solid else ""

    def draw_image(self, gc: Any, x: float, y: float, im: Any, transform: Any = None) -> None:
        """A raster in a file of its own, over the rectangle that transform makes of a unit."""
        place = transform or Affine2D().scale(im.shape[1], im.shape[0])
        matrix = (place + Affine2D().translate(x, y) + self._to_points).get_matrix()
        (width, height), (left, low) = matrix.diagonal()[:2], matrix[:2, 2]
        name = latex.raster(self._path, ENDING, len(self.files))
        self.files[name] = rasters.png(im[::-1])
        box = Bbox.from_bounds(left, low, width, height)
        cut = Bbox.intersection(box, gc.get_clip_rectangle().transformed(self._to_points))
        # also where it ends: viewers draw whole dots of which a half is inside
        self.clip(_clip(cut or box))
        size = f"width={number(width)}bp, height={number(height)}bp"
        self._add(
            rf"\node[anchor=south west] at {_at(left, low)} "
            rf"{{\includegraphics[{size}]{{\hgvizfolder {name}}}}};"
        )

    def draw_text(
        self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float,
        ismath: Any = False, mtext: Any = None,
    ) -> None:  # fmt: skip
        """A line of text, from its beginning, its middle or its end."""
        across = "left"
        if mtext is not None and mtext.get_verticalalignment() == "baseline":
            x, y = mtext.get_transform().transform(mtext.get_unitless_position())
            across = mtext.get_horizontalalignment()
        x, y = self._to_points.transform((x, y))
        bold = prop.get_weight() == "bold"
        style = f"hg {number(prop.get_size_in_points())}{' bold' if bold else ''}"
        self.fonts[style] = latex.font(prop.get_size_in_points(), bold)
        options = [style, f"text={self._colour(gc.get_rgb())}", f"anchor={ANCHORS[across]}"]
        options += [f"rotate={number(angle)}"] if angle else []
        options += _opacity("opacity", gc.get_alpha())
        self.clip("")
        self._add(rf"\node[{', '.join(options)}] at {_at(x, y)} {{{latex.text(s)}}};")

    def clip(self, wanted: str) -> None:
        """Begin a scope of these clips, and end the one before."""
        if wanted == self._clip:
            return
        if self._clip:
            self._add(r"\end{scope}")
        if wanted:
            self._add(r"\begin{scope}")
            self.lines.append(wanted)
        self._clip = wanted

    def get_text_width_height_descent(
        self, s: str, prop: Any, ismath: Any
    ) -> tuple[float, float, float]:
        """In dots, as the other formats have it."""
        size = text_to_path.get_text_width_height_descent(s, prop, ismath=False)
        width, height, descent = (self.points_to_pixels(one) for one in size)
        return width, height, descent

    def get_canvas_width_height(self) -> tuple[float, float]:
        """In dots."""
        return self.points_to_pixels(self._page.width), self.points_to_pixels(self._page.height)

    def points_to_pixels(self, points: Any) -> Any:
        """Dots are those of the figure."""
        return points / self._to_points.get_matrix()[0, 0]

    def flipy(self) -> bool:
        """y runs up."""
        return False

    def option_image_nocomposite(self) -> bool:
        """Every raster stays one of its own."""
        return True

    def option_scale_image(self) -> bool:
        """Rasters keep their cells; TikZ makes them as large as they are."""
        return True

    def _add(self, line: str) -> None:
        self.lines.append(_folded(line) if line.startswith(r"\path") else line)
        self._pen = ""

    def _colour(self, rgb: Any) -> str:
        name = "hg" + to_hex(rgb[:3])[1:].upper()
        self.colours.add(name)
        return name

    def _within(self, gc: Any, extents: Callable[[], Bbox]) -> None:
        """Clip what would reach beyond its clip."""
        parts = []
        rectangle = gc.get_clip_rectangle()
        if rectangle is not None:
            around = rectangle.transformed(self._to_points)
            near = around.padded(0.01)
            if not _contains(near, self._page) and not _contains(near, extents()):
                parts.append(_clip(around))
        path, transform = gc.get_clip_path()
        if path is not None:  # all lines of a hatch have the same, and it is long
            if path is not self._outline[0] or transform != self._outline[1]:
                outline = _folded(rf"\clip {' '.join(self._subpaths(path, transform))};")
                self._outline = path, transform, outline
            parts.append(self._outline[2])
        self.clip("\n".join(parts))

    def _subpaths(self, path: Any, transform: Any) -> list[str]:
        """Every part of an outline as TikZ has it; a rectangle as one."""
        found: list[list[str]] = []
        corners: list[list[Any]] = []
        for points, code in path.iter_segments(transform + self._to_points, simplify=False):
            if code == Outline.CLOSEPOLY:
                found[-1].append("-- cycle")
                continue
            *controls, end = points.reshape(-1, 2)
            if code == Outline.MOVETO:
                found.append([_at(*end)])
                corners.append([end])
                continue
            if code == Outline.CURVE3:
                controls = [
                    start + 2 / 3 * (controls[0] - start) for start in (corners[-1][-1], end)
                ]
            via = " and ".join(_at(*one) for one in controls)
            found[-1].append(f".. controls {via} .. {_at(*end)}" if via else f"-- {_at(*end)}")
            corners[-1].append(end)
        return [_rectangle(*one) or " ".join(one[0]) for one in zip(found, corners, strict=True)]


def _rectangle(part: list[str], corners: list[Any]) -> str:
    """A part of an outline as a rectangle, "" where it is none."""
    if len(corners) != 4 or part[-1] != "-- cycle" or "controls" in " ".join(part):
        return ""
    (a, b, c, d) = corners
    near = 5e-4
    turned = abs(a - b)[0] < near
    sides = (b - a, c - b, d - c, a - d)
    level = [abs(one[(at + turned) % 2 ^ 1]) < near for at, one in enumerate(sides)]
    return f"{_at(*a)} rectangle {_at(*c)}" if all(level) else ""


def _pen(gc: Any, points: int) -> list[str]:
    """The options of a line that are not TikZ's own."""
    cap, join = gc.get_capstyle(), gc.get_joinstyle()
    options = [f"line cap={'rect' if cap == 'projecting' else cap}"] if cap != "butt" else []
    if join != "miter" and points > 2:
        options.append(f"line join={join}")
    start, dashes = gc.get_dashes()
    if dashes:
        pairs = zip(("on", "off") * (len(dashes) // 2), dashes, strict=True)
        options.append("dash pattern=" + " ".join(f"{on} {number(one)}bp" for on, one in pairs))
        options += [f"dash phase={number(start)}bp"] if start else []
    return options


def _contains(outer: Bbox, box: Bbox) -> bool:
    return bool(outer.contains(*box.min) and outer.contains(*box.max))


def _clip(box: Bbox) -> str:
    return rf"\clip {_at(*box.min)} rectangle {_at(*box.max)};"


def _opacity(name: str, part: float) -> list[str]:
    return [f"{name}={number(part)}"] if part != 1 else []


def _at(x: float, y: float) -> str:
    return f"({number(x)},{number(y)})"


def _folded(line: str) -> str:
    """A line of code in lines that a person and TeX can take."""
    if len(line) <= LINE:
        return line
    out, first = [""], True
    for word in line.split(" "):
        if not first and len(out[-1]) + 1 + len(word) > LINE:
            out.append(f"  {word}")
        else:
            out[-1] += word if first else f" {word}"
        first = False
    return "\n".join(out)
