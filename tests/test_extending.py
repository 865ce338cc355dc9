"""Rows that a test adds from outside to the tables of docs/extending.md, and what reads them."""

import numpy as np

from hgviz import tasks
from hgviz.activations import ACTIVATIONS, Activation
from hgviz.models import open_model
from tests.models.building import write_checkpoint


def _relu(scores, stat, xp):
    return xp.where(scores > 0, scores, 0 * scores)


def test_an_activation_is_one_row(tmp_path, monkeypatch):
    """ReLU: models, tiles and captures have it, equal to its formula."""
    row = Activation("relu", "ReLU", False, "max", "none", _relu)
    monkeypatch.setitem(ACTIVATIONS, row.name, row)
    model = open_model(
        write_checkpoint(tmp_path / "mine", activations=["relu", "softmax"], positions="rotary")
    )
    prompt = model.from_ids(np.arange(20) % 23)
    capture = tasks.capture(model, prompt, tmp_path / "out.h5")
    layer = capture.maps[0]
    q, k = (np.asarray(part[0], np.float64) for part in (layer.factors.q, layer.factors.k))
    scores = q @ k.T * layer.factors.rule.scale
    seen = layer.factors.rule.sees(np.arange(20), np.arange(20))
    expected = np.where(seen, _relu(scores, None, np), 0)
    np.testing.assert_allclose(layer.read(0), expected, atol=1e-6)
    assert capture.spec.layers[0].activations == ("relu", "softmax")
    assert layer.verify_max_abs < 1e-6
    exchanged = open_model(tmp_path / "mine", activation="relu")
    assert {*exchanged.spec.layers[0].activations} == {"relu"}
