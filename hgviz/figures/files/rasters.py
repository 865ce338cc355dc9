"""Rasters inside other files: a table of colours and one byte a dot, where 256 colours are enough.

A palette has no more, so that every map fits; the dots stay the same.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

INSIDE = re.compile(r"(data:image/png;base64,)\s*([A-Za-z0-9+/=\s]+)")


def png(dots: NDArray[np.uint8]) -> bytes:
    """A PNG of dots (rows, columns, 3 or 4)."""
    buffer = BytesIO()
    (_indexed(dots) or Image.fromarray(dots)).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def smaller(svg: str) -> str:
    """An SVG with its rasters written so."""
    return INSIDE.sub(lambda one: f"{one[1]}{_again(b64decode(one[2]))}", svg)


def _again(content: bytes) -> str:
    with Image.open(BytesIO(content)) as image:
        found = png(np.asarray(image))
    return b64encode(min(found, content, key=len)).decode()


def _indexed(dots: NDArray[np.uint8]) -> Image.Image | None:
    """Dots as places in a table of their colours, None where these are more than 256."""
    if dots.ndim != 3 or dots.shape[2] not in (3, 4) or (dots[..., 3:] != 255).any():
        return None
    packed = dots[..., :3].astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    there = np.zeros(1 << 24, bool)
    there[packed] = True
    colours = np.flatnonzero(there)
    if len(colours) > 256:
        return None
    places = np.zeros(1 << 24, np.uint8)
    places[colours] = np.arange(len(colours))
    image = Image.fromarray(places[packed], "P")
    table = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], 1).astype(np.uint8)
    image.putpalette(table.tobytes())
    return image
