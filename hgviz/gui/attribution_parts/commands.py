"""What the actions of the look Attribution do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hgviz.gui.attribution_parts.asking import Explaining
    from hgviz.session import Session


class AttributionCommands:
    """Asks where the answer comes from, and stops asking."""

    session: Session
    explaining: Explaining

    def attribute(self) -> None:
        """Ask where the answer comes from, and show it."""
        self.session.put(mode="inspect", look="attribution")
        self.explaining.start()

    def stop_attributing(self) -> None:
        """Stop asking; what is found so far stays."""
        self.explaining.stop()
