"""What hgviz remembers between two runs: one frozen value, one TOML file."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
import platformdirs


class Settings(msgspec.Struct, frozen=True):
    """Every setting with its default; a field added here is read and written by itself.

    geometry and docks are what Qt saved of the window, in base 64; folder is the last one that a
    file was opened from or saved to; figure_width and figure_format are those of the last figure.
    Empty: nothing chosen yet.
    """

    theme: Literal["auto", "light", "dark"] = "auto"
    geometry: str = ""
    docks: str = ""
    folder: str = ""
    palette: str = "viridis"
    scale: Literal["linear", "sqrt", "log"] = "sqrt"
    device: str = "auto"
    figure_width: str = "neurips"
    figure_format: str = "pdf"


def location() -> Path:
    """Where the settings of this user lie."""
    return platformdirs.user_config_path("hgviz", appauthor=False) / "settings.toml"


def load(path: Path | None = None) -> Settings:
    """The settings; defaults where there is no file.

    A file that cannot be read is kept aside as settings.toml.broken, so nothing is lost and the
    program starts.
    """
    path = path or location()
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Settings)
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        with suppress(OSError):
            path.replace(path.with_name(path.name + ".broken"))
        return Settings()


def save(settings: Settings, path: Path | None = None) -> None:
    """Write the settings in one move, so that a kill leaves the old ones; raises OSError."""
    path = path or location()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_bytes(msgspec.toml.encode(settings))
    fresh.replace(path)
