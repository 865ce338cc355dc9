"""hgviz from Python: what the functions return is what the tasks and commands give."""

import inspect
import json
import subprocess
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import transformers

import hgviz
from hgviz import tasks
from hgviz.core import Capture, HgvizError, Step
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.models.trials import Trials
from hgviz.tasks.pruning import newest_curve
from tests.test_architecture import loaded_after

TEXT = "The soup was not good."
SOFTMAX, REVIEWS = "sample/softmax", "sample/reviews.tsv"
IDS = [3, 5, 7, 9, 2]


@pytest.fixture(scope="module")
def model():
    return hgviz.open_model(SOFTMAX)


@pytest.fixture(scope="module")
def gpt():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=32, bos_token_id=1,
        eos_token_id=1, attn_implementation="eager",
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture(scope="module")
def attentions(gpt):
    return gpt(torch.tensor([IDS]), output_attentions=True).attentions


def test_importing_hgviz_costs_nothing_and_every_function_says_what_it_takes_and_returns():
    assert not loaded_after("import hgviz") & {"numpy", "torch", "matplotlib", "h5py", "tqdm"}
    for name in hgviz.MODULES.keys() - {"HgvizError", "Observer", "Run"}:
        said = inspect.getdoc(getattr(hgviz, name))
        assert "HgvizError" in said and len(said) > 100, name


def test_a_model_is_captured_as_the_task_does_it(model, tmp_path):
    plain = tasks.capture(model, model.tokenize(TEXT))
    found = hgviz.capture(model, TEXT, off=["1.2"], out=tmp_path / "c.h5")
    assert found.off == {head for head in found.off if str(head) == "1.2"} and len(found.off) == 1
    np.testing.assert_array_equal(found.maps[0].read(1), plain.maps[0].read(1))
    again = hgviz.open_capture(tmp_path / "c.h5")
    np.testing.assert_allclose(again.maps[1].read(0), found.maps[1].read(0), atol=1e-6)


def test_a_model_of_transformers_in_memory_gives_its_own_weights(gpt, attentions, tmp_path):
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps({"input_ids": IDS}))
    found = hgviz.capture(gpt, ids=ids)
    for layer, weights in enumerate(attentions):
        for head in range(4):
            np.testing.assert_allclose(
                found.maps[layer].read(head), weights[0, head].detach().numpy(), atol=1e-6
            )
    assert found.spec.name == "GPT2LMHeadModel"


def test_any_module_is_captured_by_the_names_of_its_projections():
    torch.manual_seed(1)
    blocks = torch.nn.ModuleList(
        torch.nn.ModuleDict({"q": torch.nn.Linear(8, 8), "k": torch.nn.Linear(8, 4)})
        for _ in range(2)
    )

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = blocks

        def forward(self, x):
            return [(block["k"](x), block["q"](x)) for block in self.blocks]

    x = torch.randn(1, 3, 8)
    names = {"q": "blocks.*.q", "k": "blocks.*.k", "head_width": 4}
    found = hgviz.capture(Net(), x, tokens=["a", "b", "c"], causal=True, **names)
    q, k = blocks[1]["q"](x)[0, :, 4:], blocks[1]["k"](x)[0]
    scores = (q @ k.T / 2).masked_fill(torch.ones(3, 3).triu(1) > 0, -torch.inf)
    expected = scores.softmax(-1).detach().numpy()
    np.testing.assert_allclose(found.maps[1].read(1), expected, atol=1e-6)
    assert found.prompt.pieces == ("a", "b", "c")
    for wrong, said in (
        ({"q": "layers.*.q"}, "no module named 'layers"), ({"head_width": 3}, r"heads \* 3"),
        ({"head_width": 0}, "how wide a head is"), ({"k": "blocks.0.k"}, "not of the same layers"),
    ):  # fmt: skip
        with pytest.raises(HgvizError, match=said):
            hgviz.capture(Net(), x, **names | wrong)


def test_tensors_and_attentions_are_written_as_they_are(attentions, tmp_path):
    path = hgviz.write_capture(
        tmp_path / "a.h5", tokens=list("abcde"), attentions=attentions, causal=True
    )
    found = hgviz.open_capture(path)
    np.testing.assert_allclose(found.maps[1].read(2), attentions[1][0, 2].detach().numpy())
    q, k = torch.randn(2, 5, 4, requires_grad=True), torch.randn(2, 5, 4).bfloat16()
    path = hgviz.write_capture(
        tmp_path / "q.h5", tokens=list("abcde"), layers=[{"q": q.float(), "k": k.float()}]
    )
    expected = (q @ k.float().mT / 2).softmax(-1)[1].detach().numpy()
    np.testing.assert_allclose(hgviz.open_capture(path).maps[0].read(1), expected, atol=1e-6)
    with pytest.raises(HgvizError, match="not \\(1, heads, n, n\\)"):
        two = [weights.expand(2, -1, -1, -1) for weights in attentions]
        hgviz.write_capture(tmp_path / "b.h5", tokens=list("abcde"), attentions=two)


def test_heads_are_scored_ordered_and_removed(model, tmp_path):
    steps = []
    scored = hgviz.evaluate(model, REVIEWS, off="1.*", limit=16, progress=steps.append)
    direct = tasks.evaluate(model, resource(REVIEWS), off=scored.score.off, limit=16)
    assert scored.to_dict() == direct.to_dict() and len(scored.score.off) == 6
    assert steps and all(isinstance(one, Step) for one in steps)
    scores = hgviz.importance(model, REVIEWS, limit=8, progress=None)
    assert [row["rank"] for row in scores] == list(range(1, len(model.spec.heads) + 1))
    kept = hgviz.importance(model, REVIEWS, limit=8, out=tmp_path / "s.h5")
    assert kept[0] == scores[0]
    points = hgviz.curve(tmp_path / "s.h5", model, REVIEWS)
    assert points[0]["off"] == 0 and points[-1]["off"] == len(scores)
    assert tasks.study_at(tmp_path / "s.h5").curves
    proof = hgviz.prune(SOFTMAX, tmp_path / "half", study=scores, keep="50%")
    assert "tensor(" not in repr(proof)
    needed = {row["head"] for row in scores[: len(scores) // 2]}
    assert not needed & set(map(str, proof.off)) and proof.difference < 1e-5
    assert len(open_model(tmp_path / "half").spec.heads) == len(needed)
    with pytest.raises(HgvizError, match="by off, or by study"):
        hgviz.prune(SOFTMAX, tmp_path / "none")


def test_pruning_that_makes_up_by_the_mean_is_ablation_by_the_mean(model, tmp_path):
    data, folder = tmp_path / "few.tsv", tmp_path / "pruned"
    data.write_text("".join(resource(REVIEWS).read_text("utf-8").splitlines(True)[:41]))
    hgviz.prune(SOFTMAX, folder, off="1.2,3.*", compensate="mean", data=data)
    ablated = hgviz.evaluate(model, data, off="1.2,3.*", ablation="mean")
    pruned = hgviz.evaluate(folder, data)  # whose weights are kept in float16
    assert ablated.loss == pytest.approx(pruned.loss, abs=1e-4)
    assert ablated.to_dict()["ablation"] == "mean"
    assert abs(ablated.loss - hgviz.evaluate(model, data, off="1.2,3.*").loss) > 0.01


def test_scores_are_of_the_ablation_that_is_asked_for_and_so_is_their_curve(model, tmp_path):
    scores = hgviz.importance(model, REVIEWS, method="loo", limit=8, ablation="resample", seed=3)
    other = hgviz.importance(model, REVIEWS, method="loo", limit=8, ablation="resample", seed=4)
    assert scores.of.ablation == "resample" and scores.rows != other.rows
    points = hgviz.curve(scores, model, REVIEWS, method="loo")
    measured = newest_curve(points.of, "loo")
    examples = tasks.examples_from(model, resource(REVIEWS), limit=8).part(measured.rows)
    trials = Trials(model, examples, ablation="resample", seed=3)
    off = frozenset(measured.order[: points[3]["off"]])
    losses = [trials.without(batch, off)[0] for block in trials.blocks for batch in block]
    assert points[3]["loss"] == pytest.approx(np.concatenate(losses).mean(), abs=1e-5)


def test_heads_are_patched_between_two_texts(model):
    texts = {"clean": "The soup was good.", "corrupted": "The soup was bad."}
    rows = hgviz.importance(model, method="patching", **texts, answer="positive", wrong="negative")
    direct = tasks.patching(model, *map(model.tokenize, texts.values()), 1, 0)
    assert {model.spec.labels[1]: 1, model.spec.labels[0]: 0} == {"positive": 1, "negative": 0}
    assert [*rows] == direct.to_rows() and rows.of.clean > rows.of.corrupted
    with pytest.raises(HgvizError, match="what heads are scored on"):
        hgviz.importance(model)
    with pytest.raises(HgvizError, match="two texts by two answers"):
        hgviz.importance(model, method="patching", clean="a film")
    with pytest.raises(HgvizError, match="takes no data"):
        hgviz.importance(
            model, REVIEWS, method="patching", **texts, answer="positive", wrong="negative"
        )


def test_an_observer_of_ones_own_sees_and_replaces_what_a_layer_attends(model):
    class Uniform(hgviz.Observer):
        needs_row_sums = True

        def on_attention(self, call, context):
            assert call.q.shape[1] == context.shape[1] and call.row_sums is not None
            seen.append((call.layer, call.rule.scale_of(0)))
            if call.layer == 1:
                return call.v.mean(2, keepdim=True).expand_as(context)

    seen, prompt = [], model.tokenize(TEXT)
    plain = model.trace(prompt)
    changed = model.trace(prompt, observers=[Uniform()])
    assert [layer for layer, _ in seen] == [layer.index for layer in model.spec.layers]
    assert np.abs(plain - changed).max() > 1e-3
    assert isinstance(hgviz.Run(observers=[Uniform()]).observers[0], hgviz.Observer)


def test_roles_and_rollout_are_those_of_the_tasks(model):
    found = hgviz.capture(model, TEXT)
    rows = hgviz.roles(found)
    assert [row["head"] for row in rows] == [str(head) for head in sorted(found.spec.heads)]
    again = hgviz.roles(model, TEXT)
    assert again[5]["role"] == rows[5]["role"]
    np.testing.assert_allclose(hgviz.rollout(found).sum(1), 1, atol=1e-5)
    np.testing.assert_array_equal(
        hgviz.rollout(model, TEXT, rows=(1, 3)), hgviz.rollout(found)[1:3]
    )


def test_a_table_becomes_a_frame_of_pandas(model):
    pandas = pytest.importorskip("pandas")
    rows = hgviz.roles(model, TEXT)
    frame = rows.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame["head"]) == [
        row["head"] for row in rows
    ]


def test_the_window_is_opened_on_what_is_in_memory_and_on_paths(model, monkeypatch):
    asked = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: asked.append(words))
    hgviz.show(hgviz.capture(model, TEXT), SOFTMAX)
    (words,) = asked
    assert words[1:3] == ["-m", "hgviz"] and words[4] == str(resource(SOFTMAX))
    assert hgviz.open_capture(words[3]).prompt.text == TEXT
    with pytest.raises(HgvizError, match="nothing that the window shows"):
        hgviz.show(SimpleNamespace())


def test_errors_are_one_line_in_a_notebook():
    with pytest.raises(hgviz.HgvizError) as caught:
        hgviz.open_model("nothing")
    assert caught.value._render_traceback_() == [str(caught.value)]
    for call, said in (
        (lambda: hgviz.capture(7, TEXT), "no model that hgviz opens"),
        (lambda: hgviz.roles(SOFTMAX), "needs a text"),
        (lambda: hgviz.capture(SOFTMAX), "needs a text"),
        (lambda: hgviz.importance(SOFTMAX, REVIEWS, method="best"), "unknown score 'best'"),
    ):
        with pytest.raises(HgvizError, match=said):
            call()
    assert isinstance(hgviz.capture(SOFTMAX, TEXT), Capture)
