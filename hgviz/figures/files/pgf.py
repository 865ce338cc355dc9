"""Figures as PGF, by matplotlib's own way to it, but for texts and rasters."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

from hgviz.figures.files import latex, rasters
from hgviz.figures.spec import POINTS

ENDING = "pgf"


def render(figure: Figure, path: Path, record: Mapping[str, str]) -> dict[str, bytes]:
    """The .pgf of a figure and the .png files that it names."""
    width, height = figure.get_size_inches()
    file = StringIO()
    file.write(latex.head(record) + "\\makeatletter\\begin{pgfpicture}\n")
    file.write(
        rf"\pgfpathrectangle{{\pgfpointorigin}}{{\pgfqpoint{{{width:f}in}}{{{height:f}in}}}}"
    )
    file.write("\n\\pgfusepath{use as bounding box}\n")
    drawn = Pgf(figure, file, path)
    figure.draw(drawn)
    drawn.clip("")
    file.write("\\end{pgfpicture}\\endgroup\n")
    return {**drawn.files, path.name: file.getvalue().encode()}


class Pgf(RendererPgf):
    """Texts are escaped, and measured without asking LaTeX, which need not be installed."""

    def __init__(self, figure: Figure, file: StringIO, path: Path) -> None:
        super().__init__(figure, file)  # type: ignore[no-untyped-call]
        self.files: dict[str, bytes] = {}
        self._path = path
        self._clip = ""
        self._last: tuple[Any, ...] = ()  # what clipped before, and how it is said
        self._said = ""

    def draw_path(self, gc: Any, path: Any, transform: Any, rgbFace: Any = None) -> None:
        """An outline, filled or not."""
        self.clip(self._clip_of(gc))
        super().draw_path(gc, path, transform, rgbFace)  # type: ignore[no-untyped-call]

    def draw_markers(
        self, gc: Any, marker_path: Any, marker_trans: Any, path: Any, trans: Any,
        rgbFace: Any = None,
    ) -> None:  # fmt: skip
        """The same outline at many places."""
        self.clip(self._clip_of(gc))
        super().draw_markers(gc, marker_path, marker_trans, path, trans, rgbFace)  # type: ignore[no-untyped-call]

    def draw_text(
        self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float,
        ismath: Any = False, mtext: Any = None,
    ) -> None:  # fmt: skip
        """A line of text, from its beginning, its middle or its end."""
        across = "left"
        if mtext is not None and mtext.get_verticalalignment() == "baseline":
            x, y = mtext.get_transform().transform(mtext.get_unitless_position())
            across = mtext.get_horizontalalignment()
        options = ["base", f"x={x / self.dpi:f}in", f"y={y / self.dpi:f}in"]
        options += [across] if across != "center" else []
        options += [f"rotate={angle:g}"] if angle else []
        red, green, blue = gc.get_rgb()[:3]
        font = latex.font(prop.get_size_in_points(), prop.get_weight() == "bold")
        self.clip("")
        self.fh.write("\\begin{pgfscope}\n")
        self.fh.write(rf"\definecolor{{textcolor}}{{rgb}}{{{red:f},{green:f},{blue:f}}}" + "\n")
        self.fh.write(rf"\pgftext[{','.join(options)}]{{\color{{textcolor}}{font} ")
        self.fh.write(latex.text(s) + "}\n\\end{pgfscope}\n")

    def draw_image(self, gc: Any, x: float, y: float, im: Any, transform: Any = None) -> None:
        """A raster in a file beside this one, over the unit square that transform places."""
        place = transform or Affine2D().scale(im.shape[1], im.shape[0])
        a, b, c, d, e, f = (one / self.dpi for one in place.frozen().to_values())
        name = latex.raster(self._path, len(self.files))
        self.files[name] = rasters.png(im[::-1])
        self.clip(self._clip_of(gc))
        self.fh.write("\\begin{pgfscope}\n")
        e, f = e + x / self.dpi, f + y / self.dpi
        self.fh.write(
            rf"\pgfsys@transformcm{{{a:f}}}{{{b:f}}}{{{c:f}}}{{{d:f}}}{{{e:f}in}}{{{f:f}in}}"
        )
        size = "width=1in,height=1in"
        self.fh.write(rf"\pgftext[left,bottom]{{\includegraphics[{size}]{{\hgvizfolder {name}}}}}")
        self.fh.write("\n\\end{pgfscope}\n")

    def clip(self, wanted: str) -> None:
        """Begin a scope of these clips, and end the one before.

        Each line of a hatch has the same, and a large map's outline is long.
        """
        if wanted == self._clip:
            return
        self.fh.write("\\end{pgfscope}\n" if self._clip else "")
        self.fh.write(f"\\begin{{pgfscope}}\n{wanted}" if wanted else "")
        self._clip = wanted

    def _clip_of(self, gc: Any) -> str:
        box, (outline, transform) = gc.get_clip_rectangle(), gc.get_clip_path()
        clip = (box and box.bounds, outline, transform)
        if self._last and self._last[0] == clip[0] and self._last[1] is outline and (
            self._last[2] == transform
        ):  # fmt: skip
            return self._said
        file, self.fh = self.fh, StringIO()
        super()._print_pgf_clip(gc)  # type: ignore[no-untyped-call]
        self._last, self._said = clip, self.fh.getvalue()
        self.fh = file
        return self._said

    def _print_pgf_clip(self, gc: Any) -> None:
        """Nothing: the scope around it clips."""

    def get_text_width_height_descent(
        self, s: str, prop: Any, ismath: Any
    ) -> tuple[float, float, float]:
        """In dots, as the other formats have it."""
        size = text_to_path.get_text_width_height_descent(s, prop, ismath=False)
        width, height, descent = (one * self.dpi / POINTS for one in size)
        return width, height, descent
