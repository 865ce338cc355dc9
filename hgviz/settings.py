"""The settings that hgviz saves between sessions: one frozen value, one TOML file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
import platformdirs
from msgspec import Meta

from hgviz.files import write_atomic

InterfaceScale = Literal["100 %", "110 %", "125 %", "150 %", "175 %", "200 %"]
INTERFACE_SCALES: tuple[InterfaceScale, ...] = get_args(InterfaceScale)


class Settings(msgspec.Struct, frozen=True):
    """Every setting with its default; a field added here is read and written by itself.

    One with a title can be changed in the preferences, under it, with its description beneath;
    extra "from" names the table its values stand in, where the type does not say them. Of the rest,
    geometry and docks are what Qt saved of the window, in base 64; folder is the last one that a
    file was opened from or saved to; recent the files opened last and used the actions found last,
    the newest first. Empty: nothing chosen yet.
    """

    theme: Annotated[
        Literal["auto", "light", "dark"],
        Meta(title="Theme", description="Auto follows the system, also while hgviz is open."),
    ] = "auto"
    interface_scale: Annotated[
        InterfaceScale,
        Meta(
            title="Interface scale",
            description="Also Ctrl++ and Ctrl+-; hgviz restarts to apply it.",
        ),
    ] = "100 %"
    language: Annotated[
        Literal["auto", "en", "ko"],
        Meta(title="Language", description="Auto follows the system; hgviz restarts to apply it."),
    ] = "auto"
    palette: Annotated[str, Meta(title="Colour map", extra={"from": "palettes"})] = "viridis"
    scale: Annotated[
        Literal["linear", "sqrt", "log"],
        Meta(title="Colour scale", description="For weights in maps."),
    ] = "sqrt"
    device: Annotated[
        str,
        Meta(
            title="Device",
            description="Applies to models that are opened from now on.",
            extra={"from": "devices"},
        ),
    ] = "auto"
    figure_width: Annotated[str, Meta(title="Figure width", extra={"from": "widths"})] = "neurips"
    figure_format: Annotated[str, Meta(title="Figure format", extra={"from": "formats"})] = "pdf"
    restore: Annotated[
        bool,
        Meta(
            title="Restore last session",
            description="When hgviz starts without a file.",
        ),
    ] = True
    geometry: str = ""
    docks: str = ""
    folder: str = ""
    recent: tuple[str, ...] = ()
    used: tuple[str, ...] = ()


def settings_path() -> Path:
    """Path of this user's settings.toml."""
    return platformdirs.user_config_path("hgviz", appauthor=False) / "settings.toml"


def load(path: Path | None = None) -> Settings:
    """The settings; defaults where there is no file.

    A file that cannot be read is kept aside as settings.toml.broken, so nothing is lost and the
    program starts.
    """
    path = path or settings_path()
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Settings)
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError, msgspec.DecodeError):
        with suppress(OSError):
            path.replace(path.with_name(path.name + ".broken"))
        return Settings()


def save(settings: Settings, path: Path | None = None) -> None:
    """Write the settings whole or not at all. Raises OSError."""
    path = path or settings_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, msgspec.toml.encode(settings), lasting=False)
