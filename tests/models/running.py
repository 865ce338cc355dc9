"""One layer that attends in a run of its own, and what a capture keeps of it."""

from hgviz.core import NO_STREAMING, HeadId, Streaming
from hgviz.models.run import CaptureRecorder, Run


def attended(q, k, v, rule, *, off=(), streaming=(), near=(1, 1), **options):
    """The context with heads at some places off, and others that stream."""
    streams = Streaming(_heads(streaming), *near) if streaming else NO_STREAMING
    return Run(_heads(off), streaming=streams).attend(0, q, k, v, rule, **options)


def captured_layer(q, k, v, rule, *, dense=False, streaming=(), near=(1, 1), **options):
    """The context, and the factors or weights that are kept."""
    found = []
    streams = Streaming(_heads(streaming), *near) if streaming else NO_STREAMING
    recorder = CaptureRecorder(lambda layer, one: found.append(one), dense)
    run = Run(streaming=streams, observers=(recorder,))
    return run.attend(0, q, k, v, rule, **options), found[0]


def _heads(places):
    return frozenset(HeadId(0, place) for place in places)
