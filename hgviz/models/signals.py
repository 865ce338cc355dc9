"""Pictures and sounds: from their files to what a model of transformers reads.

Its processor makes pixels and frames, as preprocessor_config.json says. Files come from strangers:
what they declare is looked at before anything of that size is made.
"""

from __future__ import annotations

import contextlib
import warnings
import wave
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from math import ceil, gcd, log10
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hgviz.core import Floats, HgvizError, Prompt, Signal, textless_prompt
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
from hgviz.models.huggingface import Transformers, library, quiet, stated_of

MOST_PIXELS = 100_000_000
MOST_SECONDS = 3600
MOST_VALUES = 1 << 28  # bytes of a .npy
ROUNDED = 0.02  # of normalised pixels: what is lost where they become bytes
MOST_ADDED = 64  # positions before the patches of a picture
SIDES = ("size", "crop_size", "height", "width", "shortest_edge", "longest_edge")
MOST_SIDE, MOST_COUNT = 1 << 14, 1 << 27  # of what a processor makes
LEVELS = {1: 128.0, 2: 32768.0, 3: 8388608.0, 4: 2147483648.0}  # full scale, by bytes of a sample


class Processor:
    """From the file of a picture or a sound to what a model reads, as the preprocessor_config.json
    in its folder says."""

    def __init__(self, folder: Path, network: Transformers) -> None:
        self.folder, self.network = folder, network

    def __call__(self, path: Path) -> Prompt:
        """The prompt of an image file, a .wav, or a .npy of what a processor gave elsewhere.

        Errors: HgvizError for files that cannot be read, and a folder without a processor.
        """
        modality, file = self.network.config.modality, path.suffix.lower()
        if file == VALUES_SUFFIX:
            signal = self._to_signal(values_at(path))
        elif modality == "image":
            signal = self._to_signal(self._of(images=picture_at(path)))
        else:
            rate = int(getattr(self._processor, "sampling_rate", 16000))
            sound = samples_at(path, rate)
            values = self._of(raw_speech=sound, sampling_rate=rate)
            hop = 1 if values.ndim == 1 else int(getattr(self._processor, "hop_length", 160))
            bins = getattr(self._processor, "feature_size", None)
            frames = next((one for one in values.shape[::-1] if one != bins), values.shape[-1])
            signal = Signal(values, seconds=frames * hop / rate)
        return self._name_prompt(signal, path)

    def of_values(self, values: Floats, name: str, seconds: float = 0.0) -> Prompt:
        """The prompt of what the processor made of a file of that name. Errors as of a call."""
        return self._name_prompt(replace(self._to_signal(values), seconds=seconds), Path(name))

    def again(self, prompt: Prompt) -> Prompt:
        """The prompt of what another model read: its own where this processor makes the same of
        it, a picture as it was seen otherwise, a sound as it was given. Errors as of a call."""
        signal = prompt.signal
        assert signal is not None  # a text is no picture
        values = signal.values
        if signal.picture is not None:
            with contextlib.suppress(HgvizError):  # without a processor as it is
                values = self._of_picture(signal.picture)
                # the picture lacks pixels that no patch read; the values have them
                resized = getattr(self._processor, "do_resize", False)
                read = signal.values[:, : values.shape[1], : values.shape[2]]
                same = values.shape == (signal.values if resized else read).shape
                if same and float(np.abs(values - read).max()) <= ROUNDED:
                    values = signal.values
        return self.of_values(values, prompt.text, signal.seconds)

    def _of_picture(self, picture: NDArray[np.uint8]) -> Floats:
        """What is made of a picture, which is not cut again where it has the size already."""
        values = self._of(images=picture)
        if values.shape[1:] != picture.shape[:2]:
            return values
        ways = [one for one in ("do_resize", "do_center_crop") if hasattr(self._processor, one)]
        return self._of(images=picture, **dict.fromkeys(ways, False))

    def _name_prompt(self, signal: Signal, path: Path) -> Prompt:
        with _fits(path, self.network.config.family):
            positions = self.network.positions(torch.tensor(signal.values)[None])
        signal = self._in_patches(signal, positions)
        return replace(prompt_of_signal(signal, positions), text=path.name)

    @cached_property
    def _processor(self) -> Any:
        names = ("preprocessor_config.json", "processor_config.json")
        file = next((self.folder / one for one in names if (self.folder / one).exists()), None)
        image = self.network.config.modality == "image"
        if file is None:
            raise HgvizError(
                f"{model_name(self.folder)} has no {names[0]}, "
                f"which is needed to process {'an image' if image else 'a sound'}",
                "Save the model's processor to its folder, or give its output as .npy",
            )
        _require_bounded(read_object(file), short_path(file))
        made = library()
        auto = made.AutoImageProcessor if image else made.AutoFeatureExtractor
        try:
            with quiet():
                return auto.from_pretrained(str(self.folder), local_files_only=True)
        except Exception as error:  # transformers raises whatever its parts do
            raise _processor_error(file, error) from None

    def _of(self, **given: Any) -> Floats:
        try:
            with quiet():
                found = self._processor(**given, return_tensors="np")[self.network.signal]
        except HgvizError:
            raise
        except Exception as error:
            raise _processor_error(self.folder / "preprocessor_config.json", error) from None
        return np.asarray(found[0], np.float32)

    def _to_signal(self, values: Floats) -> Signal:
        """A picture with what is to be seen of it: normalised pixels as they were before."""
        if self.network.config.modality != "image":
            return Signal(values)
        normal, mean, std = False, 0.0, 1.0
        with contextlib.suppress(HgvizError):
            normal = bool(getattr(self._processor, "do_normalize", False))
            mean, std = self._processor.image_mean, self._processor.image_std
        if normal:
            whole = values * np.reshape(std, (-1, 1, 1)) + np.reshape(mean, (-1, 1, 1))
        else:
            low, high = float(values.min()), float(values.max())
            whole = (values - low) / ((high - low) or 1.0)
        coloured = whole[:3] if len(whole) >= 3 else np.repeat(whole[:1], 3, 0)
        picture = np.clip(255 * coloured + 0.5, 0, 255).astype(np.uint8)
        return Signal(values, np.ascontiguousarray(picture.transpose(1, 2, 0)))

    def _in_patches(self, signal: Signal, positions: int) -> Signal:
        """The signal with its grid of patches, and the picture cut to the pixels that they read;
        the same signal where the last positions are no grid of patches."""
        side = stated_of(self.network.net.config, "patch_size")
        if self.network.config.modality != "image" or side is None:
            return signal
        tall, wide = map(int, (side, side) if isinstance(side, int) else tuple(side)[-2:])
        rows, columns = signal.values.shape[1] // tall, signal.values.shape[2] // wide
        if not 0 <= positions - rows * columns <= MOST_ADDED:
            return signal
        picture = signal.picture
        if picture is not None:
            picture = np.ascontiguousarray(picture[: rows * tall, : columns * wide])
        return replace(signal, grid=(rows, columns), picture=picture)


def _require_bounded(data: Mapping[str, Any], where: str) -> None:
    """Errors: HgvizError for a processor that would make something enormous."""
    for key, value in data.items():
        if isinstance(value, dict):
            _require_bounded(value, where)
        elif isinstance(value, int) and abs(value) > (MOST_SIDE if key in SIDES else MOST_COUNT):
            raise HgvizError(
                f"{where} is not a valid processor: {printable(key)} is {value:,}",
                f"Correct {printable(key)} in {where}",
            )


@contextlib.contextmanager
def _fits(path: Path, family: str) -> Iterator[None]:
    """Turn what a model says of a picture or sound of another shape into one error."""
    try:
        yield
    except HgvizError:
        raise
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise HgvizError(
            f"{short_path(path)} does not fit this model: {family} says: {first_line(error)}",
            "Use the output of the model's own processor",
        ) from None


def _processor_error(file: Path, error: Exception) -> HgvizError:
    return HgvizError(
        f"{short_path(file)} cannot be used: transformers says: {first_line(error)}",
        "Save the model's processor again, or give its output as .npy",
    )


# --- files ----------------------------------------------------------------------------------------


def picture_at(path: Path) -> NDArray[np.uint8]:
    """(height, width, 3) An image file, on white where it is transparent, turned as its EXIF says.

    Errors: HgvizError for a file that is no image, is damaged or has over 100 million pixels.
    """
    from PIL import Image, ImageOps

    with path_errors(path), warnings.catch_warnings():
        warnings.simplefilter("error")  # Pillow only warns of images that explode
        try:
            with Image.open(path) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise HgvizError(
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
        except (OSError, HgvizError) as error:
            if isinstance(error, HgvizError) or error.errno is not None:
                raise
            raise _no_image(path, error) from None
        except Exception as error:  # Pillow raises whatever its decoders do
            raise _no_image(path, error) from None


def _no_image(path: Path, error: Exception) -> HgvizError:
    return HgvizError(
        f"{short_path(path)} cannot be read as an image: {first_line(error)}",
        f"Use a {', '.join(one[1:].upper() for one in IMAGE_SUFFIXES[:4])} file",
    )


def samples_at(path: Path, rate: int) -> Floats:
    """(samples,) between -1 and 1 of a WAV file, its channels mixed, at another rate (Hz) if its
    own is different: by a windowed sinc, as of scipy.signal.resample_poly.

    Errors: HgvizError for a file that is no PCM, is empty, damaged or over an hour long.
    """
    with path_errors(path):
        try:
            with wave.open(str(path), "rb") as file:
                width, channels, own = (
                    file.getsampwidth(), file.getnchannels(), file.getframerate(),
                )  # fmt: skip
                count = file.getnframes()
                if own <= 0 or channels <= 0 or width not in LEVELS:
                    raise wave.Error(f"{channels} channels of {8 * width} bits at {own} Hz")
                if count / own > MOST_SECONDS:
                    raise HgvizError(
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
    mono = _samples(data[: len(data) // (width * channels) * width * channels], width, channels)
    if not len(mono):
        raise HgvizError(f"{short_path(path)} is empty: it has no samples", "Choose another sound")
    return mono if own == rate else _resample(mono, own, rate)


def _samples(data: bytes, width: int, channels: int) -> Floats:
    raw = np.frombuffer(data, np.uint8)
    if width == 1:
        whole = raw.astype(np.float64) - 128
    else:  # the bytes of a sample become the highest of four
        wide = np.zeros((len(raw) // width, 4), np.uint8)
        wide[:, 4 - width :] = raw.reshape(-1, width)
        whole = (wide.view("<i4")[:, 0] >> 8 * (4 - width)).astype(np.float64)
    mixed = whole.reshape(-1, channels).mean(1) / LEVELS[width]
    return mixed.astype(np.float32)


def _resample(samples: Floats, own: int, rate: int) -> Floats:
    from scipy.signal import resample_poly

    shared = gcd(own, rate)
    return np.asarray(resample_poly(samples, rate // shared, own // shared), np.float32)


def values_at(path: Path) -> Floats:
    """An array (.npy) of what a processor gave elsewhere, with 1 to 3 axes, or one more of 1.

    Errors: HgvizError for anything else, and for numbers that are not finite.
    """
    with path_errors(path):
        if path.stat().st_size > MOST_VALUES:
            raise HgvizError(f"{short_path(path)} is too large: the limit is {MOST_VALUES:,} bytes")
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise HgvizError(
                f"{short_path(path)} cannot be read as an array: {first_line(error)}",
                "Save it with numpy.save",
            ) from None
    good = isinstance(found, np.ndarray) and found.dtype.kind == "f" and found.size > 0
    if good and found.ndim > 1 and found.shape[0] == 1:
        found = found[0]
    if not good or not 1 <= found.ndim <= 3 or not np.isfinite(found).all():
        raise HgvizError(
            f"{short_path(path)} is not a valid model input: "
            "it must contain finite pixels (channels, height, width), frames (mel bins, frames) "
            "or samples (samples,)",
            "Save the output of the model's processor",
        )
    return np.array(found, np.float32)


def prompt_of_signal(signal: Signal, positions: int) -> Prompt:
    """A picture or a sound of so many positions: patches by row and column, from 0, after those
    that the model adds; frames by the second that they begin at."""
    rows, columns = signal.grid or (0, 0)
    if not signal.grid:
        step = signal.seconds / positions
        digits = max(0, ceil(-log10(step))) if step else 0
        names = (f"{at * step:.{digits}f}s" if step else str(at) for at in range(positions))
        return replace(textless_prompt(tuple(names)), signal=signal)
    added = positions - rows * columns
    pieces = [f"special {at}" if at else "[CLS]" for at in range(added)]
    pieces += [f"{row},{column}" for row in range(rows) for column in range(columns)]
    return replace(textless_prompt(tuple(pieces)), signal=signal)
