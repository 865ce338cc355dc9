"""Train small models on one machine, resumable: language models, masked ones and classifiers."""

from hgviz.models.training.batches import draw, row_batches
from hgviz.models.training.loop import STATE, Report, schedule, train
from hgviz.models.training.objectives import bits_per_byte, masked
from hgviz.models.training.plan import Data, Plan, Recipe, Stage, Vocabulary, read_plan
from hgviz.models.training.start import initialise

__all__ = [
    "STATE", "Data", "Plan", "Recipe", "Report", "Stage", "Vocabulary", "bits_per_byte", "draw",
    "initialise", "masked", "read_plan", "row_batches", "schedule", "train",
]  # fmt: skip
