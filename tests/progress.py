"""What long work reports, and work that is cancelled on the way."""

from hgviz.core import Cancelled, listening


def with_steps(work, *args, **named):
    """What a call returns, and the steps that it reported."""
    steps = []
    with listening(steps.append):
        return work(*args, **named), steps


def steps_of(work, *args, **named):
    """The steps that a call reports."""
    return with_steps(work, *args, **named)[1]


def cancelled(work, *args, when=lambda step: True, **named):
    """Cancel a call at the first step that `when` holds of; the steps up to there."""
    steps = []

    def listener(step):
        steps.append(step)
        if when(step):
            raise Cancelled

    try:
        with listening(listener):
            work(*args, **named)
    except Cancelled:
        return steps
    raise AssertionError("it ended before it was cancelled")


def after(count):
    """Holds of the step of this number, from 1."""
    left = iter(range(count - 1, -1, -1))
    return lambda step: next(left) == 0
