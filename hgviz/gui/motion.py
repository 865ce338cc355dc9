"""Whether anything moves: not where the system asks for less motion, nor where somebody said so."""

from __future__ import annotations

from PySide6.QtWidgets import QStyle, QWidget

_allowed = True


def allow(allowed: bool) -> None:
    """From now on let things move where the system does, or nothing at all."""
    global _allowed
    _allowed = allowed


def wanted(widget: QWidget) -> bool:
    """Whether a widget may move its picture; else it shows at once where the motion would end.

    The style knows what the system says: its animations last 0 ms where it asks for none.
    """
    hint = QStyle.StyleHint.SH_Widget_Animation_Duration
    return _allowed and widget.style().styleHint(hint, None, widget) > 0


__all__ = ["allow", "wanted"]
