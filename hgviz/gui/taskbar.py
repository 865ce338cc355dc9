"""How far work is, on the program's icon in the taskbar, where the platform lets Qt say so.

Under Linux the launcher's D-Bus interface of Unity, which KDE Plasma, Ubuntu's dock and Dash to
Dock read too: https://wiki.ubuntu.com/Unity/LauncherAPI#Low_level_DBus_API. Qt 6 has nothing for
the taskbar of Windows nor the dock of macOS.
"""

from __future__ import annotations

import sys

ENTRY = "application://hgviz.desktop"
PATH, INTERFACE = "/com/canonical/unity/launcherentry/1", "com.canonical.Unity.LauncherEntry"


class Taskbar:
    """Shows a part of 1 on the icon, or nothing."""

    def __init__(self) -> None:
        self._shown: int | None = None

    def show_part(self, part: float | None) -> None:
        """part in 0..1; None: nothing runs, or nobody knows how far it is. Says what changed only,
        in whole per cents."""
        now = None if part is None else round(100 * min(1.0, max(0.0, part)))
        if now == self._shown or sys.platform != "linux":
            return
        self._shown = now
        try:
            from PySide6.QtDBus import QDBusConnection, QDBusMessage
        except ImportError:  # a Qt without D-Bus
            return
        bus = QDBusConnection.sessionBus()
        if bus.isConnected():
            message = QDBusMessage.createSignal(PATH, INTERFACE, "Update")
            visible = {"progress": (now or 0) / 100, "progress-visible": now is not None}
            message.setArguments([ENTRY, visible])
            bus.send(message)


__all__ = ["Taskbar"]
