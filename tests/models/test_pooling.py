"""The norms of linear pooling, against numpy, and their part in a composition."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from hgviz.models.config import HourglassConfig
from hgviz.models.families.hourglass import Hourglass
from hgviz.models.formats.checkpoint import save
from hgviz.models.hierarchy import parse_hierarchy
from hgviz.models.measures.pooling import pooling_norms
from hgviz.recipe import Recipe


def made(folder, **kind):
    torch.manual_seed(1)
    config = HourglassConfig(256, 16, 2, parse_hierarchy("1@1 1@3 1@1"), positions="rotary", **kind)
    save(folder, config, Hourglass(config).state_dict())
    return folder


def test_norms_are_those_of_the_blocks_of_the_weight(tmp_path):
    model = open_model(made(tmp_path / "a", attention_downsampling="linear"))
    weight = model.module.down[0].proj.weight.detach().numpy().astype(np.float64)
    blocks = [np.linalg.norm(weight[:, t * 16 : (t + 1) * 16]) for t in range(3)]
    (found,) = pooling_norms(model)
    np.testing.assert_allclose(found, np.array(blocks) / sum(blocks), rtol=1e-6)
    prompt, _ = tasks.prompt_from(model, "The bell was rung.")
    capture = finish(tasks.capture(model, prompt))
    recipe = finish(tasks.with_norms(Recipe(), capture, tmp_path / "a"))
    assert recipe.pooling == (found,)
    weighed = finish(tasks.rollout(capture, None, recipe))
    np.testing.assert_allclose(weighed.sum(1), 1, atol=1e-6)
    assert not np.allclose(weighed, finish(tasks.rollout(capture)), atol=1e-6)


def test_other_models_are_refused(tmp_path):
    mean = made(tmp_path / "mean")
    model = open_model(mean)
    prompt, _ = tasks.prompt_from(model, "The bell")
    capture = finish(tasks.capture(model, prompt))
    assert pooling_norms(model) == (None,)
    with pytest.raises(HgvizError, match="no linear map"):
        finish(tasks.with_norms(Recipe(), capture, mean))
    with pytest.raises(HgvizError, match="not the model of this capture"):
        other = made(tmp_path / "other", attention_downsampling="linear")
        finish(tasks.with_norms(Recipe(), capture, other))
