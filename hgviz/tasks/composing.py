"""Attention rollout, as an array and as a capture that figures read; slots read as tokens."""

from __future__ import annotations

from hgviz.core import Capture, Floats, RolloutOptions, progress


def rollout(
    capture: Capture, rows: tuple[int, int] | None = None, options: RolloutOptions | None = None
) -> Floats:
    """All maps composed into one. Shapes and errors: as analysis.composition.rollout."""
    from hgviz.analysis import composition

    progress(0, 1, composition.NOTE)
    return composition.rollout(capture, rows, options)


def rollout_capture(
    capture: Capture, options: RolloutOptions | None = None, row: int | None = None
) -> Capture:
    """All maps composed, as a capture of one head. The name of its layer says how much of a row,
    of all rows for None, went through each level. Errors: as rollout, and for texts of more than
    8,192 tokens."""
    from hgviz.analysis import composition

    composing = composition.Rollout(capture, options)
    whole = composing.all_rows()
    chosen = whole if row is None else composing.row(row)
    sentence = composition.describe_shares(capture, chosen, row)
    return composition.rollout_capture(capture, whole.weights, composing.options, sentence)


def of_tokens(capture: Capture) -> Capture:
    """A capture of slots with tokens for keys. Errors: as analysis.composition.of_tokens."""
    from hgviz.analysis import composition

    return composition.of_tokens(capture)


def tokens_or_slots(capture: Capture) -> Capture:
    """A capture of slots with tokens for keys, and the other way round. Errors: as of_tokens."""
    from hgviz.analysis import composition

    if composition.is_of_tokens(capture):
        return composition.of_slots(capture)
    return composition.of_tokens(capture)
