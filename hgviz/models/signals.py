"""Images and sounds: from their files to what a model of transformers reads.

Its processor makes pixels and frames, as preprocessor_config.json says. Files come from strangers:
what they declare is checked before anything of that size is made.
"""

from __future__ import annotations

import contextlib
import warnings
import wave
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from math import ceil, gcd, log10
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hgviz.core import Floats, HgvizError, Prompt, Signal, textless_prompt
from hgviz.errors import require
from hgviz.files import (
    IMAGE_SUFFIXES,
    VALUES_SUFFIX,
    first_line,
    model_name,
    path_errors,
    printable,
    read_object,
    short_path,
)
from hgviz.models.huggingface import Transformers, library, library_errors, quiet, stated_of

MOST_PIXELS = 100_000_000
MOST_SECONDS = 3600
MOST_VALUES = 1 << 28  # bytes of a .npy
ROUNDED = 0.02  # of normalised pixels: what is lost where they become bytes
MOST_ADDED = 64  # positions before the patches of an image
PROCESSOR_ADVICE = "Save the model's processor again, or give its output as .npy"
CONFIGS = ("preprocessor_config.json", "processor_config.json")
SIDES = ("size", "crop_size", "height", "width", "shortest_edge", "longest_edge")
MOST_SIDE, MOST_COUNT = 1 << 14, 1 << 27  # of what a processor makes


class Processor:
    """From the file of an image or a sound to what a model reads, as the preprocessor_config.json
    in its folder says."""

    def __init__(self, folder: Path, network: Transformers) -> None:
        self.folder, self.network = folder, network
        self.reads_images = network.config.modality == "image"

    def __call__(self, path: Path) -> Prompt:
        """The prompt of an image file, a .wav, or a .npy of what a processor gave elsewhere.

        Raises HgvizError for files that cannot be read, and for a folder without a processor.
        """
        if path.suffix.lower() == VALUES_SUFFIX:
            return self.of_values(values_at(path), path)
        if self.reads_images:
            return self.of_values(self._process(images=picture_at(path)), path)
        rate = int(getattr(self._processor, "sampling_rate", 16000))
        values = self._process(raw_speech=samples_at(path, rate), sampling_rate=rate)
        hop = 1 if values.ndim == 1 else int(getattr(self._processor, "hop_length", 160))
        bins = getattr(self._processor, "feature_size", None)
        frames = next((size for size in values.shape[::-1] if size != bins), values.shape[-1])
        return self.of_values(values, path, frames * hop / rate)

    def reread(self, prompt: Prompt) -> Prompt:
        """The prompt of what another model read: its own where this processor makes the same of
        it, an image as it was seen otherwise, a sound as it was given. Raises as a call."""
        signal = prompt.signal
        assert signal is not None  # a text is no image
        values = signal.values
        if signal.picture is not None:
            with contextlib.suppress(HgvizError):  # without a processor as it is
                values = self._process_as_shown(signal.picture)
                # the picture lacks pixels that no patch read; the values have them
                resized = getattr(self._processor, "do_resize", False)
                read = signal.values[:, : values.shape[1], : values.shape[2]]
                same = values.shape == (signal.values if resized else read).shape
                if same and float(np.abs(values - read).max()) <= ROUNDED:
                    values = signal.values
        return self.of_values(values, Path(prompt.text), signal.seconds)

    def _process_as_shown(self, picture: NDArray[np.uint8]) -> Floats:
        """What is made of a picture, which is not cut again where it has the size already."""
        values = self._process(images=picture)
        if values.shape[1:] == picture.shape[:2]:
            steps = ("do_resize", "do_center_crop")
            off = {step: False for step in steps if hasattr(self._processor, step)}
            values = self._process(images=picture, **off)
        return values

    def _process(self, **arguments: Any) -> Floats:
        unusable = f"{short_path(self.folder / CONFIGS[0])} cannot be used"
        with library_errors(unusable, PROCESSOR_ADVICE), quiet():
            values = self._processor(**arguments, return_tensors="np")[self.network.signal]
        return np.asarray(values[0], np.float32)

    @cached_property
    def _processor(self) -> Any:
        files = (self.folder / name for name in CONFIGS)
        file = next((file for file in files if file.exists()), None)
        if file is None:
            raise HgvizError(
                f"{model_name(self.folder)} has no {CONFIGS[0]}, which is needed to process "
                f"{'an image' if self.reads_images else 'a sound'}",
                "Save the model's processor to its folder, or give its output as .npy",
            )
        _require_bounded(read_object(file), short_path(file))
        auto = "AutoImageProcessor" if self.reads_images else "AutoFeatureExtractor"
        with library_errors(f"{short_path(file)} cannot be used", PROCESSOR_ADVICE), quiet():
            return getattr(library(), auto).from_pretrained(str(self.folder), local_files_only=True)

    def of_values(self, values: Floats, path: Path, seconds: float = 0.0) -> Prompt:
        """The prompt of what the processor made of a file. Raises as a call."""
        picture = self._picture(values) if self.reads_images else None
        family = self.network.config.family
        try:
            positions = self.network.positions(torch.tensor(values)[None])
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            raise HgvizError(
                f"{short_path(path)} does not fit this model: {family} says: {first_line(error)}",
                "Use the output of the model's own processor",
            ) from None
        signal, side = Signal(values, picture, seconds=seconds), None
        if picture is not None:
            side = stated_of(self.network.net.config, "patch_size")
        if picture is not None and side is not None:
            tall, wide = map(int, (side, side) if isinstance(side, int) else tuple(side)[-2:])
            rows, columns = values.shape[1] // tall, values.shape[2] // wide
            if 0 <= positions - rows * columns <= MOST_ADDED:  # the last positions are its patches
                read = np.ascontiguousarray(picture[: rows * tall, : columns * wide])
                signal = replace(signal, grid=(rows, columns), picture=read)
        return replace(prompt_of_signal(signal, positions), text=path.name)

    def _picture(self, values: Floats) -> NDArray[np.uint8]:
        """(height, width, 3) What is seen of pixels: normalised ones as they were before."""
        normal, mean, std = False, 0.0, 1.0
        with contextlib.suppress(HgvizError):
            normal = bool(getattr(self._processor, "do_normalize", False))
            mean, std = self._processor.image_mean, self._processor.image_std
        if normal:
            pixels = values * np.reshape(std, (-1, 1, 1)) + np.reshape(mean, (-1, 1, 1))
        else:
            low, high = float(values.min()), float(values.max())
            pixels = (values - low) / ((high - low) or 1.0)
        coloured = pixels[:3] if len(pixels) >= 3 else np.repeat(pixels[:1], 3, 0)
        picture = np.clip(255 * coloured + 0.5, 0, 255).astype(np.uint8)
        return np.ascontiguousarray(picture.transpose(1, 2, 0))


def _require_bounded(data: Mapping[str, Any], where: str) -> None:
    """Raise HgvizError for a processor that would make something enormous."""
    for key, value in data.items():
        if isinstance(value, dict):
            _require_bounded(value, where)
        elif isinstance(value, int):
            require(
                abs(value) <= (MOST_SIDE if key in SIDES else MOST_COUNT),
                f"{where} is not a valid processor: {printable(key)} is {value:,}",
                f"Correct {printable(key)} in {where}",
            )


# --- files ----------------------------------------------------------------------------------------


def picture_at(path: Path) -> NDArray[np.uint8]:
    """(height, width, 3) An image file, on white where it is transparent, turned as its EXIF says.

    Raises HgvizError for a file that is no image, is damaged or has over 100 million pixels.
    """
    from PIL import Image, ImageOps

    with path_errors(path), warnings.catch_warnings():
        warnings.simplefilter("error")  # Pillow only warns of images that explode
        try:
            with Image.open(path) as image:
                require(
                    image.width * image.height <= MOST_PIXELS,
                    f"{short_path(path)} is too large: "
                    f"it has {image.width:,} x {image.height:,} pixels",
                    "Resize it first",
                )
                turned = ImageOps.exif_transpose(image)
                if turned.has_transparency_data:
                    turned = turned.convert("RGBA")
                    white = Image.new("RGBA", turned.size, "white")
                    turned = Image.alpha_composite(white, turned)
                return np.asarray(turned.convert("RGB"))
        except Exception as error:  # Pillow raises whatever its decoders do
            if isinstance(error, HgvizError) or getattr(error, "errno", None) is not None:
                raise
            kinds = ", ".join(suffix[1:].upper() for suffix in IMAGE_SUFFIXES[:4])
            raise HgvizError(
                f"{short_path(path)} cannot be read as an image: {first_line(error)}",
                f"Use a {kinds} file",
            ) from None


def samples_at(path: Path, rate: int) -> Floats:
    """(samples,) between -1 and 1 of a WAV file, its channels mixed, at another rate (Hz) if its
    own is different: by a windowed sinc, as of scipy.signal.resample_poly.

    Raises HgvizError for a file that is no PCM, is empty, damaged or over an hour long.
    """
    from scipy.signal import resample_poly

    with path_errors(path):
        try:
            with wave.open(str(path), "rb") as file:
                channels, width, own, count, *_ = file.getparams()
                if own <= 0 or channels <= 0 or not 1 <= width <= 4:
                    raise wave.Error(f"{channels} channels of {8 * width} bits at {own} Hz")
                require(
                    count / own <= MOST_SECONDS,
                    f"{short_path(path)} is too long: {count / own:,.0f} seconds",
                    f"Cut it to {MOST_SECONDS:,} seconds",
                )
                data = file.readframes(count)
        except (wave.Error, EOFError) as error:
            raise HgvizError(
                f"{short_path(path)} cannot be read as a sound: "
                + (first_line(error) if str(error) else "it ends too early"),
                "Save it as a PCM WAV file of 8 to 32 bits",
            ) from None
    size = width * channels
    raw = np.frombuffer(data[: len(data) // size * size], np.uint8).reshape(-1, width)
    require(len(raw), f"{short_path(path)} is empty: it has no samples", "Choose another sound")
    wide = np.zeros((len(raw), 4), np.uint8)  # the bytes of a sample become the highest of four
    wide[:, 4 - width :] = raw ^ 128 if width == 1 else raw  # single bytes are unsigned
    levels = (wide.view("<i4")[:, 0] >> 8 * (4 - width)).astype(np.float64)
    mono = (levels.reshape(-1, channels).mean(1) / 2 ** (8 * width - 1)).astype(np.float32)
    if own == rate:
        return mono
    shared = gcd(own, rate)
    return np.asarray(resample_poly(mono, rate // shared, own // shared), np.float32)


def values_at(path: Path) -> Floats:
    """An array (.npy) of what a processor gave elsewhere, with 1 to 3 axes, or one more of 1.

    Raises HgvizError for anything else, and for numbers that are not finite.
    """
    with path_errors(path):
        require(
            path.stat().st_size <= MOST_VALUES,
            f"{short_path(path)} is too large: the limit is {MOST_VALUES:,} bytes",
        )
        try:
            values = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise HgvizError(
                f"{short_path(path)} cannot be read as an array: {first_line(error)}",
                "Save it with numpy.save",
            ) from None
    is_array = isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.size > 0
    if is_array and values.ndim > 1 and values.shape[0] == 1:
        values = values[0]
    require(
        is_array and 1 <= values.ndim <= 3 and np.isfinite(values).all(),
        f"{short_path(path)} is not a valid model input: "
        "it must contain finite pixels (channels, height, width), frames (mel bins, frames) "
        "or samples (samples,)",
        "Save the output of the model's processor",
    )
    return np.array(values, np.float32)


def prompt_of_signal(signal: Signal, positions: int) -> Prompt:
    """An image or a sound of so many positions: patches by row and column, from 0, after those
    that the model adds; frames by the second that they begin at."""
    if signal.grid is not None:
        rows, columns = signal.grid
        added = range(positions - rows * columns)
        pieces = [f"special {at}" if at else "[CLS]" for at in added]
        pieces += [f"{row},{column}" for row in range(rows) for column in range(columns)]
    else:
        step = signal.seconds / positions
        digits = max(0, ceil(-log10(step))) if step else 0
        pieces = [f"{at * step:.{digits}f}s" if step else str(at) for at in range(positions)]
    return replace(textless_prompt(tuple(pieces)), signal=signal)
