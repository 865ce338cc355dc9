"""Writing a figure: the same bytes every time, whole or not at all."""

from __future__ import annotations

import csv
import errno
import os
import tempfile
from collections.abc import Sequence
from io import BytesIO, StringIO
from math import isfinite
from pathlib import Path
from typing import Any, TextIO

from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_pgf import FigureCanvasPgf, RendererPgf
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D
from PIL import Image

from hgviz.core import HgvizError
from hgviz.figures import provenance, style
from hgviz.figures.spec import POINTS

TEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "^": r"\^{}", "~": r"\textasciitilde{}",
    "→": r"\ensuremath{\rightarrow}", "↓": r"\ensuremath{\downarrow}", "×": r"\ensuremath{\times}",
    "·": r"\textperiodcentered{}",
    "…": r"\ldots{}", "□": r"\fbox{\phantom{i}}",
}  # fmt: skip


def render(figure: Figure, form: str, path: Path, record: dict[str, str]) -> dict[str, bytes]:
    """The files of a figure, name -> content: one, or for PGF also its rasters."""
    if form == "pgf":
        return _pgf(figure, path, record)
    buffer = BytesIO()
    figure.savefig(
        buffer,
        format=form,
        dpi=style.DOTS,
        bbox_inches=None,
        metadata=provenance.metadata(form, record),
    )
    return {path.name: buffer.getvalue()}


def svg(figure: Figure) -> str:
    """A figure as the SVG that a page holds inside."""
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", dpi=style.DOTS, bbox_inches=None, metadata={"Date": None})
    return buffer.getvalue().decode()


def table(rows: Sequence[tuple[Any, ...]]) -> bytes:
    """Rows as CSV; what is no number is empty."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in rows:
        writer.writerow([_cell(one) for one in row])
    return buffer.getvalue().encode()


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.7g}" if isfinite(value) else ""


def require_folder(path: Path) -> None:
    """Errors: HgvizError where a file of this name cannot be."""
    if path.is_dir():
        raise HgvizError(f"{path.name} is a folder", "", "Give the figure another name")
    if not path.absolute().parent.is_dir():
        raise HgvizError(
            f"there is no folder {path.parent}",
            "a figure is written into a folder that exists",
            "Make it first, or choose another",
        )


def write(path: Path, files: dict[str, bytes]) -> None:
    """Write files beside each other, the one named path last. Errors: HgvizError."""
    for name in sorted(files, key=lambda one: one == path.name):
        _replace(path.with_name(name), files[name])


def _replace(path: Path, content: bytes) -> None:
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.absolute().parent, prefix=".hgviz-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        temporary = ""
    except OSError as error:
        raise _said(path, error) from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def _said(path: Path, error: OSError) -> HgvizError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return HgvizError(
            f"{path.name} could not be written", "the disk is full", "Make room and try again"
        )
    return HgvizError(
        f"{path.name} could not be written",
        f"{path.parent}: {error.strerror or error}",
        "Choose a folder you may write to",
    )


def _umask() -> int:
    """The rights a new file gets; mkstemp gives it none for others."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _pgf(figure: Figure, path: Path, record: dict[str, str]) -> dict[str, bytes]:
    """A .pgf and the .png files it names, drawn in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / path.name
        with target.open("w", encoding="utf-8") as file:
            for name, value in record.items():
                file.write(f"% {name}: {value}\n")
            _Canvas(figure).write(file)
        return {one.name: one.read_bytes() for one in sorted(Path(folder).iterdir())}


class _Renderer(RendererPgf):
    """Texts are escaped, and measured without asking LaTeX, which need not be installed."""

    def draw_text(self, gc: Any, x: float, y: float, s: str, *rest: Any, **more: Any) -> None:
        """The text, nothing in which is a command."""
        escaped = "".join(TEX.get(character, character) for character in s)
        super().draw_text(gc, x, y, escaped, *rest, **more)  # type: ignore[no-untyped-call]

    def draw_image(self, gc: Any, x: float, y: float, im: Any, transform: Any = None) -> None:
        """A raster in a file beside this one, over the unit square that transform places."""
        place = transform or Affine2D().scale(im.shape[1], im.shape[0])
        a, b, c, d, e, f = (one / self.dpi for one in place.frozen().to_values())
        name = f"{Path(self.fh.name).stem}-img{self.image_counter}.png"
        self.image_counter += 1
        Image.fromarray(im[::-1]).save(Path(self.fh.name).with_name(name))
        self.fh.write("\\begin{pgfscope}\n")
        self._print_pgf_clip(gc)  # type: ignore[no-untyped-call]
        e, f = e + x / self.dpi, f + y / self.dpi
        self.fh.write(
            rf"\pgfsys@transformcm{{{a:f}}}{{{b:f}}}{{{c:f}}}{{{d:f}}}{{{e:f}in}}{{{f:f}in}}"
        )
        self.fh.write(rf"\pgftext[left,bottom]{{\includegraphics[width=1in,height=1in]{{{name}}}}}")
        self.fh.write("\n\\end{pgfscope}\n")

    def get_text_width_height_descent(
        self, s: str, prop: Any, ismath: Any
    ) -> tuple[float, float, float]:
        """In dots, as the other formats have it."""
        size = text_to_path.get_text_width_height_descent(s, prop, ismath=False)
        width, height, descent = (one * self.dpi / POINTS for one in size)
        return width, height, descent


class _Canvas(FigureCanvasPgf):
    def write(self, file: TextIO) -> None:
        """The picture alone."""
        width, height = self.figure.get_size_inches()
        mixed: Any = MixedModeRenderer
        pgf: Any = _Renderer
        size = rf"\pgfqpoint{{{width:f}in}}{{{height:f}in}}"
        file.write("\\begingroup\\makeatletter\\begin{pgfpicture}\n")
        file.write(rf"\pgfpathrectangle{{\pgfpointorigin}}{{{size}}}" + "\n")
        file.write("\\pgfusepath{use as bounding box, clip}\n")
        self.figure.draw(mixed(self.figure, width, height, self.figure.dpi, pgf(self.figure, file)))
        file.write("\\end{pgfpicture}\\makeatother\\endgroup\n")
