"""Rows added to the tables of docs/how-to/extend.md from outside, and what reads them."""

from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hgviz import tasks
from hgviz.activations import ACTIVATIONS, Activation
from hgviz.analysis.importance import METHODS, Method
from hgviz.analysis.metrics import METRICS, Metric
from hgviz.analysis.roles import ROLES, Role, roles
from hgviz.core import HgvizError, Prompt, Selection
from hgviz.figures.cells import CaptureFigure, draw_bars, map_of
from hgviz.figures.spec import FIGURES, HEAD, Kind, Spec
from hgviz.models import open_model
from hgviz.models.layers import attention_modules
from hgviz.store import open_capture, open_study, schema, studies, write_capture, write_study
from hgviz.study import Study
from hgviz.tasks.heads import role_sentence
from tests.analysis.planting import letters, plant
from tests.making import make_capture
from tests.models.building import write_checkpoint
from tests.studying import classifier, make_study, rows


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


def _context_norms(trials, batch):
    norms = [np.linalg.norm(context, axis=-1) for context in trials.contexts(batch)]
    return np.concatenate([np.nanmean(norm, -1) for norm in norms], 1)


def test_a_score_with_an_array_of_its_own_is_one_row(tmp_path, monkeypatch, facts, output):
    """The mean norm of a head's context over the rows of a text: measured, kept, read, ordered."""
    row = Method(
        "norm", "Activation norm", "mean |c|", "", "context_norm", "", measure=_context_norms
    )
    monkeypatch.setitem(METHODS, row.name, row)
    model, data = classifier(tmp_path / "model"), rows(tmp_path, 40)
    out = tmp_path / "s.h5"
    command = ("importance", model, "--data", data, "-o", out, "--method", "norm")
    found = {head["head"]: head for head in facts(*command)}
    loaded = open_model(model)
    texts = [line.split("\t")[0] for line in data.read_text().splitlines()[1:]]
    layers = attention_modules(loaded.module)
    seen = []
    for layer in layers:
        layer.o.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0][0].numpy()))
    norms = []  # (texts, heads)
    for text in texts:
        seen.clear()
        loaded.run(loaded.tokenize(text).ids)
        contexts = [context.reshape(len(context), -1, layer.d_head)
                    for layer, context in zip(layers, seen, strict=True)]  # fmt: skip
        norms.append(np.concatenate([np.linalg.norm(c, axis=-1).mean(0) for c in contexts]))
    for head, expected in zip(loaded.spec.heads, np.mean(norms, axis=0), strict=True):
        assert found[str(head)]["score"] == pytest.approx(expected, rel=1e-4)
    assert "activation norm: mean |c|" in output(*command)
    assert open_study(out).measured()["context_norm"] == 1.0
    assert "norm" in tasks.info(out)["methods"]
    curve = facts("curve", out, model, "--data", data, "--method", "norm")
    assert len(curve["order"]) == len(loaded.spec.heads)


def test_a_metric_is_one_row(tmp_path, monkeypatch, facts):
    """Perplexity of rows: `hgviz heads` has it, between 1 and the number of keys."""
    row = Metric(
        "Perplexity", "", "How many keys a row spreads over, averaged over rows",
        "mean_i exp(−Σ_j p_ij ln p_ij)", "Clark et al. 2019", lambda sums: np.exp(sums.entropy),
    )  # fmt: skip
    monkeypatch.setitem(METRICS, "perplexity", row)
    text = "The sand ran down. The sand of the hourglass ran down again."
    folder = write_checkpoint(tmp_path / "mine", vocab_size=256, positions="rotary")
    found = facts("heads", folder, "--text", text)
    assert found["metrics"]["perplexity"] == "Perplexity"
    for head in found["heads"]:
        assert np.exp(head["entropy"]) <= head["perplexity"] * (1 + 1e-9) <= len(text)


def test_a_role_is_one_row(monkeypatch):
    """Every fourth key: a head that attends to them has the role, in numbers and in words."""
    weights = np.where(np.arange(60) % 4 == 1, 0.9, 0.01) * np.ones((60, 1))
    weights /= weights.sum(1, keepdims=True)
    capture = plant(letters("x" * 60), [weights[None]], causal=False)
    row = Role(
        "every fourth", "Attends to every fourth {place}",
        lambda block: np.broadcast_to(block.columns % 4 == 1, block.seen.shape),
    )  # fmt: skip
    monkeypatch.setitem(ROLES, "fourth", row)
    (head,) = roles(capture).values()
    assert (head.name, head.role) == ("fourth", "every fourth")
    assert head.share > 0.9 and head.chance == 0.25 and head.coverage == 1
    assert role_sentence(head) == "Attends to every fourth token"


class _Distances(CaptureFigure):
    """The mean weight of a head at each distance."""

    def rows(self, spec):
        head = spec.selection.head_id
        weights = map_of(self.capture, head).read(head.head)
        yield "distance", "weight"
        for distance in range(len(weights)):
            yield distance, float(np.diagonal(weights, -distance).mean())

    def draw(self, page, spec):
        top = page.heading(f"Head {spec.selection.head_id}")
        values = np.array([weight for _, weight in [*self.rows(spec)][1:]])
        draw_bars(page, values, 0, top, 10, page.width, page.width, None, 2)
        page.close(top + 10 * len(values) + 10)


def test_a_kind_of_figure_is_one_class(tmp_path, monkeypatch, output):
    """From a terminal: a picture with its numbers, which its own command draws again."""
    kind = Kind("distances", "Mean weight at each distance", "capture", HEAD, _Distances)
    monkeypatch.setitem(FIGURES, kind.name, kind)
    capture = make_capture("A text.", strides=(1,), heads=2)
    monkeypatch.chdir(tmp_path)
    path = write_capture(tmp_path / "a.h5", capture)
    words = "a.h5 --kind distances --layer 0 --head 1 -o f.svg"
    said = output("figure", *words.split(), "--numbers")
    assert "mean weight at each distance" in said
    drawn = (tmp_path / "f.svg").read_text()
    assert f"hgviz figure {words.replace(' --layer 0', '')}" in drawn
    weights = open_capture(path).maps[0].read(1)
    rows = (tmp_path / "f.csv").read_text().split()
    assert rows[0] == "distance,weight" and len(rows) == 1 + len(weights)
    assert float(rows[2].split(",")[1]) == pytest.approx(np.diagonal(weights, -1).mean(), rel=1e-6)
    spec = Spec("distances", Selection(9, 0))
    with pytest.raises(HgvizError, match="no layer 9"):
        tasks.draw(tasks.panel(spec, capture), tmp_path / "g.pdf")


@dataclass(frozen=True)
class _Prompt(Prompt):
    surprise: Any = None


def test_a_field_of_capture_files_is_one_row(tmp_path, monkeypatch):
    """The bits of each token: written, read back, and refused where they are of another text."""
    row = schema.Field("surprise", "tokens", "f4", "surprise", "bits of each token", False)
    monkeypatch.setitem(schema.CAPTURE_FIELDS, "/prompt", (*schema.CAPTURE_FIELDS["/prompt"], row))
    monkeypatch.setattr(schema, "Prompt", _Prompt)
    capture = make_capture("A text. ", strides=(1, 2), heads=1)
    values = {field.name: getattr(capture.prompt, field.name) for field in fields(Prompt)}
    for count in (0, 1):
        bits = np.arange(len(capture.prompt) + count, dtype=np.float32)
        path = tmp_path / f"{count}.h5"
        write_capture(path, replace(capture, prompt=_Prompt(**values, surprise=bits)))
        if not count:
            assert (open_capture(path).prompt.surprise == bits).all()
    with pytest.raises(HgvizError, match="surprise has the shape"):
        open_capture(path)


@dataclass(frozen=True, eq=False)
class _Study(Study):
    weights: Any = None


def test_a_field_of_study_files_is_one_row(tmp_path, monkeypatch):
    """How much each example counts: written, read back, refused where it is negative, listed."""
    row = schema.Field(
        "weights", "examples", "f4", "weights", "how much an example counts", False,
        allowed="0 or more",
    )  # fmt: skip
    monkeypatch.setitem(schema.STUDY_FIELDS, "/", (*schema.STUDY_FIELDS["/"], row))
    monkeypatch.setattr(studies, "Study", _Study)
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "docs")
    study = make_study(examples=9)
    values = {field.name: getattr(study, field.name) for field in fields(Study)}
    path = write_study(tmp_path / "a.h5", _Study(**values, weights=np.arange(9)))
    assert open_study(path).weights.tolist() == [*range(9)]
    write_study(path, _Study(**values, weights=np.arange(9) - 1), force=True)
    with pytest.raises(HgvizError, match="the numbers of /weights must be 0 or more"):
        open_study(path)
    assert open_study(write_study(path, study, force=True)).weights is None
    assert (
        "| `weights` | (examples) | float32 | optional, 0 or more |"
        in import_module("reference").fields()
    )
