"""Walking from head to head and from letter to letter: the actions of the menu Heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgviz.gui import opening
from hgviz.session import Session, step_head, step_layer, step_level, step_token

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.window import Window


class Stepping:
    """Moves the selection of a session."""

    window: Window
    session: Session
    lanes: Lanes

    def table(self) -> None:
        """List every number of every head, to sort."""
        self.look_heads()

    def look_map(self) -> None:
        """Show the map of the head."""
        self.session.put(mode="inspect", look="map")

    def look_links(self) -> None:
        """Show what tokens are linked with by the strongest weights."""
        self.session.put(mode="inspect", look="links")

    def look_neurons(self) -> None:
        """Show how the weights of one query come about."""
        self.session.put(mode="inspect", look="neurons")

    def look_attribution(self) -> None:
        """Show where the answer comes from."""
        self.session.put(mode="inspect", look="attribution")

    def look_across(self) -> None:
        """Show all levels composed."""
        self.session.put(look="across", mode="inspect")

    def look_heads(self) -> None:
        """All heads as points and in a table."""
        self.session.put(mode="inspect", look="heads")

    def next_head(self) -> None:
        """One head to the right."""
        self.session.put(selection=step_head(self.session, 1))

    def last_head(self) -> None:
        """One head to the left."""
        self.session.put(selection=step_head(self.session, -1))

    def next_layer(self) -> None:
        """One layer on."""
        self.session.put(selection=step_layer(self.session, 1))

    def last_layer(self) -> None:
        """One layer back."""
        self.session.put(selection=step_layer(self.session, -1))

    def level_in(self) -> None:
        """To the head last opened at the next coarser level."""
        self.session.put(selection=step_level(self.session, 1))

    def level_out(self) -> None:
        """To the head last opened at the next finer level."""
        self.session.put(selection=step_level(self.session, -1))

    def next_query(self) -> None:
        """One query on."""
        self.session.put(selection=step_token(self.session, 1, "query"))

    def last_query(self) -> None:
        """One query back."""
        self.session.put(selection=step_token(self.session, -1, "query"))

    def next_key(self) -> None:
        """One key on."""
        self.session.put(selection=step_token(self.session, 1, "key"))

    def last_key(self) -> None:
        """One key back."""
        self.session.put(selection=step_token(self.session, -1, "key"))

    def strongest(self) -> None:
        """The key this query looks at most."""
        self.lanes.files.submit(
            "strongest",
            "Reading a row",
            opening.strongest(self.session.capture, self.session.selection),
            on_done=self._choose_key,
            on_error=self.show_error,
            post=self.lanes.bridge.post,
        )

    def _choose_key(self, key: int | None) -> None:
        self.session.select(key=key)

    def show_error(self, error: BaseException) -> None:
        """What could not be read."""
        raise NotImplementedError
