"""The verbs: what the two faces ask for. Each is a generator of steps that returns its result.

Heavy packages are imported when a verb needs them, so that importing this package costs nothing.
"""

from hgviz.tasks.capturing import capture, save
from hgviz.tasks.corpus import capture_corpus
from hgviz.tasks.generating import generate
from hgviz.tasks.looking import figure, measure, rollout
from hgviz.tasks.opening import convert, heads_from, info, kind_of, load, prompt_from
from hgviz.tasks.scoring import evaluate, examples_from, train

__all__ = [
    "capture", "capture_corpus", "convert", "evaluate", "examples_from", "figure", "generate",
    "heads_from", "info", "kind_of", "load", "measure", "prompt_from", "rollout", "save", "train",
]  # fmt: skip
