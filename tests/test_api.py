"""hgviz from Python and in a notebook: functions give what the tasks and commands give, figures
show themselves as SVG with their numbers and their command, and errors are one line."""

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
from hgviz.core import HgvizError, Step, parse_heads
from hgviz.files import resource
from hgviz.models import open_model, pruning
from hgviz.models.trials import Trials
from hgviz.store import write_capture, write_study
from hgviz.tasks.pruning import newest_curve
from tests.making import make_capture
from tests.studying import make_study
from tests.test_architecture import loaded_after, run

TEXT = "The soup was not good."
SOFTMAX, YMISH, REVIEWS = "sample/softmax", "sample/ymish", "sample/reviews.tsv"
IDS = [3, 5, 7, 9, 2]


@pytest.fixture(scope="module")
def model():
    return hgviz.open_model(SOFTMAX)


@pytest.fixture(scope="module")
def small():
    return make_capture("Sand runs down. ", strides=(1, 2), heads=2)


@pytest.fixture(scope="module")
def gpt():
    """A GPT-2 of transformers, and its own attention weights of some ids."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=32, bos_token_id=1,
        eos_token_id=1, attn_implementation="eager",
    )  # fmt: skip
    gpt = transformers.GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        return gpt, gpt(torch.tensor([IDS]), output_attentions=True).attentions


def test_importing_hgviz_costs_nothing_drawing_needs_no_qt_and_functions_are_described():
    heavy = {"numpy", "torch", "matplotlib", "h5py", "tqdm"}
    assert not loaded_after("import hgviz") & heavy
    run(
        "-c",
        "import sys; sys.modules['PySide6'] = None; import hgviz\n"
        "from tests.making import make_capture\n"
        "found = hgviz.figure(make_capture('Sand. ', strides=(1,), heads=1), 'links')\n"
        "assert '<svg' in found._repr_svg_() and 'torch' not in sys.modules",
    )
    for name in hgviz.MODULES.keys() - {"HgvizError", "Observer", "Run"}:
        said = inspect.getdoc(getattr(hgviz, name))
        assert "HgvizError" in said and len(said) > 100, name
    assert {"figure", "compare", "capture"} <= set(dir(hgviz))
    with pytest.raises(AttributeError):
        hgviz.chart  # noqa: B018


# --- captures -------------------------------------------------------------------------------------


def test_models_of_hgviz_and_of_transformers_are_captured(model, gpt, tmp_path):
    plain = tasks.capture(model, model.tokenize(TEXT))
    found = hgviz.capture(model, TEXT, off=["1.2"], out=tmp_path / "c.h5")
    assert [*map(str, found.off)] == ["1.2"]
    np.testing.assert_array_equal(found.maps[0].read(1), plain.maps[0].read(1))
    again = hgviz.open_capture(tmp_path / "c.h5")
    np.testing.assert_allclose(again.maps[1].read(0), found.maps[1].read(0), atol=1e-6)
    theirs, attentions = gpt
    (tmp_path / "ids.json").write_text(json.dumps({"input_ids": IDS}))
    found = hgviz.capture(theirs, ids=tmp_path / "ids.json")
    assert found.spec.name == "GPT2LMHeadModel"
    for layer, weights in enumerate(attentions):
        mine = np.stack([found.maps[layer].read(head) for head in range(4)])
        np.testing.assert_allclose(mine, weights[0], atol=1e-6)


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
        ({"head_width": 0}, "head_width is missing"), ({"k": "blocks.0.k"}, "equally many modules"),
    ):  # fmt: skip
        with pytest.raises(HgvizError, match=said):
            hgviz.capture(Net(), x, **names | wrong)


def test_tensors_and_attentions_are_written_as_they_are(gpt, tmp_path):
    attentions = gpt[1]
    path = hgviz.write_capture(
        tmp_path / "a.h5", tokens=list("abcde"), attentions=attentions, causal=True
    )
    found = hgviz.open_capture(path)
    np.testing.assert_allclose(found.maps[1].read(2), attentions[1][0, 2])
    q, k = torch.randn(2, 5, 4, requires_grad=True), torch.randn(2, 5, 4).bfloat16()
    path = hgviz.write_capture(
        tmp_path / "q.h5", tokens=list("abcde"), layers=[{"q": q.float(), "k": k.float()}]
    )
    expected = (q @ k.float().mT / 2).softmax(-1)[1].detach().numpy()
    np.testing.assert_allclose(hgviz.open_capture(path).maps[0].read(1), expected, atol=1e-6)
    with pytest.raises(HgvizError, match="not \\(1, heads, n, n\\)"):
        two = [weights.expand(2, -1, -1, -1) for weights in attentions]
        hgviz.write_capture(tmp_path / "b.h5", tokens=list("abcde"), attentions=two)


# --- heads ----------------------------------------------------------------------------------------


def test_heads_are_scored_ordered_and_removed(model, tmp_path, monkeypatch):
    steps = []
    scored = hgviz.evaluate(model, REVIEWS, off="1.*", limit=8, progress=steps.append)
    direct = tasks.evaluate(model, resource(REVIEWS), off=scored.score.off, limit=8)
    assert scored.to_dict() == direct.to_dict() and len(scored.score.off) == 6
    assert steps and all(isinstance(one, Step) for one in steps)
    scores = hgviz.importance(model, REVIEWS, limit=8, progress=None)
    assert [row["rank"] for row in scores] == list(range(1, len(model.spec.heads) + 1))
    kept = hgviz.importance(model, REVIEWS, limit=8, out=tmp_path / "s.h5")
    assert kept[0] == scores[0]
    points = hgviz.curve(tmp_path / "s.h5", model, REVIEWS, random=1)
    assert points[0]["off"] == 0 and points[-1]["off"] == len(scores)
    assert tasks.study_at(tmp_path / "s.h5").curves
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    proof = hgviz.prune(SOFTMAX, tmp_path / "half", study=scores, keep="50%")
    assert "tensor(" not in repr(proof)
    needed = {row["head"] for row in scores[: len(scores) // 2]}
    assert not needed & set(map(str, proof.off)) and proof.difference < 1e-5
    assert len(open_model(tmp_path / "half").spec.heads) == len(needed)
    with pytest.raises(HgvizError, match="not given, or given twice"):
        hgviz.prune(SOFTMAX, tmp_path / "none")


def test_scores_are_of_the_ablation_that_is_asked_for_and_so_is_their_curve(model, tmp_path):
    scores = hgviz.importance(model, REVIEWS, method="loo", limit=8, ablation="resample", seed=3)
    other = hgviz.importance(model, REVIEWS, method="loo", limit=8, ablation="resample", seed=4)
    assert scores.of.ablation == "resample" and [*scores] != [*other]
    points = hgviz.curve(scores, model, REVIEWS, method="loo", random=1)
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
    with pytest.raises(HgvizError, match="two texts and two answers"):
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


def test_roles_and_rollout_are_those_of_the_tasks_and_tables_become_frames(model):
    pandas = pytest.importorskip("pandas")
    found = hgviz.capture(model, TEXT)
    rows = hgviz.roles(found)
    assert [row["head"] for row in rows] == [str(head) for head in sorted(found.spec.heads)]
    assert hgviz.roles(model, TEXT)[5]["role"] == rows[5]["role"]
    whole = hgviz.rollout(found)
    np.testing.assert_allclose(whole.sum(1), 1, atol=1e-5)
    np.testing.assert_array_equal(hgviz.rollout(model, TEXT, rows=(1, 3)), whole[1:3])
    frame = rows.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["head"]) == [row["head"] for row in rows]


def test_the_window_is_opened_on_what_is_in_memory_and_on_paths(model, monkeypatch):
    asked = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: asked.append(words))
    hgviz.show(hgviz.capture(model, TEXT), SOFTMAX)
    (words,) = asked
    assert words[1:3] == ["-m", "hgviz"] and words[4] == str(resource(SOFTMAX))
    assert hgviz.open_capture(words[3]).prompt.text == TEXT
    with pytest.raises(HgvizError, match="cannot be shown in the window"):
        hgviz.show(SimpleNamespace())


# --- figures --------------------------------------------------------------------------------------


def test_a_model_reads_the_text_and_its_capture_is_there_for_more(model):
    found = hgviz.figure(SOFTMAX, "links", text=TEXT, head="1.2", query=3, most=2)
    row = tasks.capture(model, model.tokenize(TEXT)).maps[1].read(2, rows=(3, 4))[0]
    told, best = found.facts["links"], np.argsort(-row)[:2]
    assert [one["key"] for one in told] == best.tolist()
    np.testing.assert_allclose([one["weight"] for one in told], row[best], rtol=1e-6)
    assert {one["from"] for one in told} == {"was"} and {one["head"] for one in told} == {"1.2"}


def test_two_models_are_compared_on_data_on_a_text_or_on_that_of_a_capture(model, tmp_path):
    found = hgviz.compare(SOFTMAX, YMISH, data=REVIEWS, limit=8, off="1.*")
    models = model, hgviz.open_model(YMISH)
    off = parse_heads("1.*", models[1].spec.layers)
    direct = tasks.compare_answers(*models, resource(REVIEWS), off=off, limit=8)
    assert found.to_dict() == direct.to_dict()
    both = hgviz.compare(SOFTMAX, YMISH, TEXT, head="1.2")
    assert "<svg" in both._repr_svg_() and both.save(tmp_path / "c.svg").exists()
    heads = {one["head"]: one for one in both.facts["heads"]}
    assert heads["1.2"]["activation_b"] == "ymish" and heads["1.2"]["largest"] > 0
    one = hgviz.capture(SOFTMAX, TEXT)
    assert all(row["largest"] < 1e-6 for row in hgviz.compare(one, SOFTMAX).facts["heads"])
    off = hgviz.compare(one, SOFTMAX, off="0.*")
    assert max(row["largest"] for row in off.facts["heads"]) > 1e-3
    other = hgviz.compare(one, SOFTMAX, activation="tanh")
    assert {row["activation_b"] for row in other.facts["heads"]} == {"tanh"}


def test_a_figure_says_the_command_that_draws_it(small, tmp_path):
    path = write_capture(tmp_path / "c d.h5", small)
    assert hgviz.figure(path).capture.prompt.text == small.prompt.text
    found = hgviz.figure(path, "links", heads=["1.1", (0, 0)], queries=[3, 4], fuse="mean", most=4)
    start = "hgviz figure 'c d.h5' --kind links --heads 1.1,0.0 --queries 3:5 --together mean"
    assert found.command == f"{start} --most 4 -o figure.pdf"
    found.save(tmp_path / "two.svg")
    assert found.command.endswith("-o two.svg")
    assert found.command in (tmp_path / "two.svg").read_text("utf-8").replace("&#x27;", "'")
    both = hgviz.compare(path, path, head="1.1", beside="0.1", limits=(0, 0.5))
    assert both.command == (
        "hgviz figure 'c d.h5' 'c d.h5' --kind compare --layer 1 --head 1 --beside 0.1 "
        "--limits 0:0.5 -o figure.pdf"
    )
    scores = hgviz.figure(
        write_study(tmp_path / "s.h5", make_study()), "scores", methods=["signed"]
    )
    assert scores.command == "hgviz figure s.h5 --kind scores --method signed -o figure.pdf"
    assert "<svg" in scores._repr_svg_() and scores.facts["rows"][0]["head"]
    with pytest.raises(HgvizError, match="not of a capture"):
        scores.capture  # noqa: B018


def test_the_reach_of_models_is_shown_with_its_numbers_and_its_command(tmp_path):
    shown = hgviz.reach("sample/softmax", "sample/ymish", text=TEXT, width="acl")
    assert "<svg" in shown._repr_svg_()
    assert [one["model"] for one in shown.facts["reach"]] == ["softmax", "ymish"]
    assert json.dumps(shown.facts)
    shown.save(tmp_path / "r.pdf")
    assert shown.command == (
        f"hgviz reach sample/softmax sample/ymish --text '{TEXT}' --width acl -o r.pdf"
    )
    model = hgviz.open_model(SOFTMAX, dtype="float64")
    drawn = hgviz.reach(model, tokens=4, lengths=[2, 4])
    assert drawn.facts["reach"][0]["tokens"] == 4 and len(drawn.facts["milliseconds"][0]) == 4
    assert drawn.command == "hgviz reach MODEL --tokens 4 --lengths 2,4 -o figure.pdf"
    with pytest.raises(HgvizError, match="the input is missing"):
        hgviz.reach(model, text=TEXT, tokens=3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda one: hgviz.figure(SOFTMAX), "needs a text"),
        (lambda one: hgviz.figure(None), "None cannot be drawn"),
        (lambda one: hgviz.figure(one, head="first"), "'first' does not name a head"),
        (lambda one: hgviz.figure(one, "links", queries=3), "queries cannot be 3"),
        (lambda one: hgviz.figure(one, text="b"), "takes no text"),
        (lambda one: hgviz.figure(one, "pie"), "unknown kind of figure 'pie'"),
        (lambda one: hgviz.figure(one, head="0.*"), "names 2 heads"),
        (lambda one: hgviz.figure(one, scale="wide"), "scale cannot be 'wide'"),
        (lambda one: hgviz.figure(one).save("/nowhere/at/all.pdf"), "does not exist"),
        (lambda one: hgviz.compare(SOFTMAX, YMISH), "needs a text"),
        (lambda one: hgviz.compare(SOFTMAX, YMISH, TEXT, data=REVIEWS), "data without a text"),
        (lambda one: hgviz.capture(7, TEXT), "not a model that hgviz can open"),
        (lambda one: hgviz.importance(SOFTMAX, REVIEWS, method="best"), "unknown score 'best'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(small, call, said):
    with pytest.raises(HgvizError, match=said) as caught:
        call(small)
    assert caught.value._render_traceback_() == [str(caught.value)]
    with pytest.raises(TypeError, match="no option 'colour'"):
        hgviz.figure(small, colour="red")
