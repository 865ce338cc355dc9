"""All maps as one: the product, and it as a capture that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgviz.core import Capture, Floats, RolloutOptions, progress

if TYPE_CHECKING:
    from hgviz.analysis.together import Together


def rollout(
    capture: Capture, rows: tuple[int, int] | None = None, recipe: RolloutOptions | None = None
) -> Floats:
    """All maps composed into one token-to-token map."""
    from hgviz.analysis import resolution

    progress(0, 1, "composing all maps")
    composing = resolution.Rollout(capture, recipe)
    resolution.bounds(rows, composing.tokens)
    return composing.rows(rows)


def of_tokens(capture: Capture) -> Capture:
    """A capture of slots with the tokens in their place. Errors: as analysis.mixed.of_tokens."""
    from hgviz.analysis.mixed import of_tokens as laid

    return laid(capture)


def tokens_or_slots(capture: Capture) -> Capture:
    """A capture of slots with the tokens in their place, and the other way round. Errors: as
    of_tokens."""
    from hgviz.analysis.mixed import is_of_tokens, of_slots

    return of_slots(capture) if is_of_tokens(capture) else of_tokens(capture)


def together(capture: Capture, recipe: RolloutOptions | None = None) -> Together:
    """All maps composed, as a capture of one head, and what takes the long way."""
    from hgviz.analysis import together as composing

    return composing.together(capture, recipe)


def told(capture: Capture, recipe: RolloutOptions, row: int | None = None) -> Capture:
    """All maps composed, as a capture that says which way a row took, None for all rows."""
    from hgviz.analysis.together import Composer

    composer = Composer(capture, recipe)
    whole = composer.all()
    way = None if row is None else composer.row(row)
    return whole.told(row, way)
