"""Heads, one by one: their roles on one text and on many, how alike they are, and what an answer
owes to them, from a terminal, from Python and beside closed forms."""

import csv
import math
import shutil

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import hgviz
from hgviz import tasks
from hgviz.analysis.statistics import spearman
from hgviz.core import HeadId, HgvizError, Layer
from hgviz.figures import Spec, labels, points
from hgviz.figures.page import Page
from hgviz.models import checkpoints, open_model
from hgviz.models.attribution import COMPLETE, STEPS
from hgviz.store import open_capture, write_study
from hgviz.tasks.attribution import Attribution, KeyScores, Question
from hgviz.tasks.head_similarity import MAP_ROWS, redundancy_of_weights
from hgviz.tasks.heads import CaptureCache
from tests.analysis.planting import letters, plant
from tests.closeness import scaled_error
from tests.figures.flaws import flaws
from tests.making import make_capture
from tests.models.building import own_bert, write_checkpoint, write_shared, write_transformer
from tests.studying import make_study

BYTES = {"vocab_size": 256, "d_model": 8, "n_heads": 2, "d_ff": 8, "hierarchy": "1@1 1@2 1@1"}
TEXTS = ["Some words, and some more.", "It was late; the ship had gone.", "Words, words, words."]
REVIEW = "A dull plot, but she never bores."
SOFTMAX, HOURGLASS = "sample/softmax", "sample/hourglass"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An Hourglass, a file of texts and its capture, a study, an empty file and ids."""
    folder = tmp_path_factory.mktemp("heads")
    write_checkpoint(folder / "model", **BYTES)
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    (folder / "empty.txt").touch()
    (folder / "ids.json").write_text('{"input_ids": [2, 5, 3]}')
    write_study(folder / "study.h5", make_study())
    tasks.capture_corpus(open_model(folder / "model"), folder / "texts.txt", folder / "texts.h5")
    own_bert(folder / "own")
    return folder


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("heads model", 2, "exactly one of --text"),
        ("heads model --text a --corpus b.txt", 2, "exactly one of --text"),
        ("heads model --text a --item 0", 2, "--item is for"),
        ("heads model --corpus texts.txt --target b", 2, "need --text"),
        ("heads model --corpus texts.txt -o x.txt", 2, "does not end in"),
        ("heads texts.h5 --text a", 2, "has its own texts"),
        ("heads texts.h5 --item 7", 1, ""),
        ("heads study.h5", 1, "is a study"),
        ("redundancy own sample/first.h5", 2, ""),
        ("redundancy own own", 2, ""),
        ("attribute sample/softmax", 2, "exactly one of --text"),
        ("attribute sample/softmax --text a --ids x.json", 2, "exactly one of"),
        ("attribute sample/softmax --text a --target-class sad", 1, "no class 'sad'"),
        ("attribute sample/softmax --text a --token 1", 2, "use --target-class"),
        ("attribute sample/hourglass --text a --target-class 1", 2, "for classifiers"),
        ("attribute sample/hourglass --text abc --token 3", 2, "no token 3"),
        ("attribute sample/hourglass --text abc --says two", 1, "is 3 tokens"),
        ("attribute sample/softmax --text a --method attention --head 9.0", 1, "no head 9.0"),
        ("attribute sample/softmax --text a --method attention --head 1.*", 2, "one head"),
        ("attribute sample/softmax --text a --steps 1", 2, "steps"),
        ("attribute sample/softmax --text a --method attention --query 9", 2, "no token 9"),
        ("attribute sample/hourglass --text=", 1, "text"),
        ("attribute sample/softmax --ids ids.json -o ids.json", 2, "would be replaced"),
        ("attribute model --text a -o model/config.json", 2, "would be replaced"),
    ],
)
def test_wrong_use_is_one_line(folder, refusal, monkeypatch, words, code, message):
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert message in refusal(*words.split(), code=code)
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


# --- roles ----------------------------------------------------------------------------------------


def test_a_corpus_is_measured_alike_in_a_capture_and_by_its_model(folder, facts, run, tmp_path):
    captured = facts("heads", folder / "texts.h5")
    modelled = facts("heads", folder / "model", "--corpus", folder / "texts.txt")
    assert captured["texts"] == modelled["texts"] == 3
    assert captured["tokens"] == modelled["tokens"] == sum(map(len, TEXTS))
    for one, other in zip(captured["heads"], modelled["heads"], strict=True):
        assert (one["head"], one["role"]) == (other["head"], other["role"])
        for name in captured["metrics"]:
            assert one[name] == pytest.approx(other[name], abs=1e-5)
        assert {example["text"] for example in one["examples"]} <= {0, 1, 2}
    out = tmp_path / "heads.csv"
    code, said, _ = run("heads", folder / "texts.h5", "-o", out)
    assert code == 0 and "on 3 texts" in said and "No word is rare" in said
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    assert [row["head"] for row in rows] == [one["head"] for one in captured["heads"]]
    assert all("query" in row["examples"] for row in rows if row["role"] != "single key")


def test_one_text_of_many_is_what_it_is_alone(folder, facts):
    alone = facts("heads", folder / "texts.h5", "--item", 1)
    words = ("heads", folder / "model", "--text", TEXTS[1])
    other, off = facts(*words)["heads"], facts(*words, "--off", "0.*")["heads"]
    assert alone["texts"] == 1 and alone["tokens"] == len(TEXTS[1])
    for one, same in zip(alone["heads"], other, strict=True):
        assert one["focus"] == pytest.approx(same["focus"], abs=1e-6)
        assert one["variance"] is None  # nothing to compare it with
    assert other[0]["focus"] == off[0]["focus"] and other[-1]["focus"] != off[-1]["focus"]


def test_captures_that_do_not_fit_are_made_again(folder, monkeypatch):
    made, first = [], open_capture(folder / "texts.h5")
    monkeypatch.setattr("hgviz.tasks.heads.CACHE_NUMBERS", 2 * 5 * 8 * 40)
    cached = CaptureCache(lambda number: made.append(number) or first)
    for number in (0, 1, 2, 0, 1, 2):
        assert cached(number) is first
    assert made[:3] == [0, 1, 2] and 0 not in made[3:] and made[3:]


# --- how alike heads are --------------------------------------------------------------------------


def test_heads_with_the_same_projections_have_cosine_1_and_rank_1(tmp_path, facts, output):
    path = write_transformer(
        tmp_path / "own", n_heads=3, form="encoder", dtype=torch.float64, goal="states"
    )
    found = checkpoints.read(path)
    tensors = dict(found.tensors)
    for side in "qk":
        name = f"middle.0.attn.{side}.weight"
        tensors[name] = tensors[name][:4].repeat(3, 1)
    checkpoints.save(path, found.config, tensors)
    told = facts("redundancy", path)
    assert told["kind"] == "weights"
    first, second = told["layers"]
    assert (first["stacked"]["rank"], first["stacked"]["of"]) == (4, 12)
    assert first["over_heads"]["rank"] == 1 and first["mean"] == pytest.approx(1)
    np.testing.assert_allclose(first["cosines"], 1.0)
    assert second["stacked"]["rank"] == 12 and second["over_heads"]["rank"] == 3
    assert "0.0 and 0.1" in output("redundancy", path)
    shared = facts("redundancy", write_shared(path, tmp_path / "shared"))["layers"]
    for one, other in zip(told["layers"], shared, strict=True):
        np.testing.assert_allclose(one["cosines"], other["cosines"], atol=1e-9)
        assert one["stacked"]["rank_99"] == other["stacked"]["rank_99"]
    out = tmp_path / "fig.svg"
    assert "2 layers" in output("redundancy", path, "-o", out, "--numbers")
    assert "hgviz redundancy own -o fig.svg" in out.read_text()
    rows = list(csv.DictReader((tmp_path / "fig.csv").read_text().splitlines()))
    cell = next(row for row in rows if (row["of"], row["x"], row["y"]) == ("Layer 1", "0", "2"))
    assert float(cell["value"]) == pytest.approx(second["cosines"][0][2], rel=1e-6)
    assert any(row["shown"] == "Cumulative energy" for row in rows)


@pytest.mark.parametrize(
    ("heads", "layers", "width"), [(1, 1, "icml"), (12, 3, "acl"), (3, 14, "neurips")]
)
def test_the_figure_fits_whatever_the_model(tmp_path, heads, layers, width):
    path = tmp_path / "own"
    write_transformer(path, form="encoder", goal="states", n_heads=heads, n_layers=layers)
    panel = tasks.redundancy_panel(Spec("redundancy", width=width), tasks.redundancy(path), [path])
    with labels.figure_settings():
        page = Page(points(width))
        panel.content.draw(page, panel.spec)
        assert flaws(page) == []
    assert len(panel.content.grids.grids) == layers


def test_heads_of_models_and_captures_are_compared_from_python(folder):
    path = folder / "own"
    shown, model = hgviz.redundancy(str(path)), open_model(path)
    assert "<svg" in shown._repr_svg_() and shown.facts["kind"] == "weights"
    assert shown.command == "hgviz redundancy own -o figure.pdf"
    assert hgviz.redundancy(model).facts["layers"] == shown.facts["layers"]
    captures = [hgviz.capture(model, text) for text in ("the cat sat.", "un affable cat")]
    one, both = hgviz.redundancy(captures[0]), hgviz.redundancy(captures)
    assert one.facts["kind"] == both.facts["kind"] == "maps"
    assert both.facts["layers"][0]["rows"] > one.facts["layers"][0]["rows"]
    for wrong in ([captures[0], path], [path, path], []):
        with pytest.raises(HgvizError, match="cannot be combined"):
            hgviz.redundancy(wrong)
    other = hgviz.capture(open_model(own_bert(folder / "seed", seed=1)), "the cat")
    shutil.rmtree(folder / "seed")
    with pytest.raises(HgvizError, match="are of several models"):
        tasks.redundancy_of_captures([captures[0], other])


def of(q, k):
    """The redundancy of heads with queries and keys (H, D, d)."""
    heads, width, d = q.shape
    mix, names = np.repeat(np.eye(heads), width, axis=1), ("softmax",) * heads
    layer = Layer(0, "middle.0", "self", 0, 0, tuple(range(heads)), names, False)
    return redundancy_of_weights(layer, q.reshape(-1, d), mix, k.reshape(-1, d), heads * width)


def orthogonal(rows, d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, rows)))[0].T


def test_equal_orthogonal_turned_and_empty_heads():
    same = of(*(np.tile(orthogonal(4, 20, seed), (3, 1, 1)) for seed in (0, 1)))
    assert same.stacked.rank == 4 and same.stacked.ranks() == {0.9: 4, 0.95: 4, 0.99: 4}
    np.testing.assert_allclose(same.stacked.values[:4], np.sqrt(3), rtol=1e-9)
    assert (same.stacked.most, same.over_heads.rank, same.over_heads.ranks()[0.99]) == (12, 1, 1)
    np.testing.assert_allclose(same.alike, 1.0, rtol=1e-12)
    apart = of(*(orthogonal(12, 20, seed).reshape(3, 4, 20) for seed in (0, 1)))
    assert apart.stacked.rank == 12 and apart.stacked.ranks() == {0.9: 11, 0.95: 12, 0.99: 12}
    assert apart.over_heads.rank == 3 and apart.over_heads.ranks()[0.99] == 3
    np.testing.assert_allclose(apart.alike, np.eye(3), atol=1e-12)
    assert (same.mean, apart.mean) == pytest.approx((1, 0), abs=1e-12)
    q, k = np.random.default_rng(0).normal(size=(2, 1, 3, 8))
    turned = of(np.concatenate([q, -q]), np.concatenate([k, k]))
    assert turned.alike[0, 1] == pytest.approx(-1.0) and turned.mean == pytest.approx(1.0)
    empty = of(np.concatenate([q, 0 * q]), np.concatenate([k, k]))
    assert np.isnan(empty.alike[0, 1]) and empty.pairs == [] and np.isnan(empty.mean)
    assert empty.to_dict()["cosines"][0][1] is None and empty.to_dict()["mean"] is None


def test_numbers_are_those_of_the_matrices():
    q, k = np.random.default_rng(4).normal(size=(2, 3, 4, 10))
    found, matrices = of(q, k), q.transpose(0, 2, 1) @ k  # (H, d, d)
    stacked = np.linalg.svd(matrices.reshape(-1, 10), compute_uv=False)
    np.testing.assert_allclose(found.stacked.values, stacked, rtol=1e-8)
    vectors = matrices.reshape(3, -1)
    over_heads = np.linalg.svd(vectors, compute_uv=False)
    np.testing.assert_allclose(found.over_heads.values, over_heads, rtol=1e-9)
    sizes = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(found.alike, vectors @ vectors.T / np.outer(sizes, sizes))
    pairs = {(a.head, b.head): value for a, b, value in found.pairs}
    assert pairs[0, 2] == pytest.approx(found.alike[0, 2])
    assert [*map(abs, pairs.values())] == sorted(map(abs, pairs.values()))[::-1]


def of_maps(*texts):
    return tasks.redundancy_of_captures(
        [plant(letters("x" * maps[0].shape[1]), list(maps), causal=False) for maps in texts]
    ).layers


def test_the_distance_of_maps_is_scipys_over_all_rows_of_all_texts(monkeypatch):
    random = np.random.default_rng(1)
    texts = [[random.gamma(0.2, size=(3, n, n)) for _ in range(2)] for n in (40, 70)]
    layers = of_maps(*texts)
    for at, layer in enumerate(layers):
        assert layer.layer.index == at and layer.rows == 110 and not layer.cosines
        for i, j in np.ndindex(3, 3):
            rows = [jensenshannon(maps[at][i], maps[at][j], base=2, axis=1) for maps in texts]
            assert layer.alike[i, j] == pytest.approx(np.concatenate(rows).mean(), abs=1e-6)
    monkeypatch.setattr("hgviz.analysis.metrics.WEIGHTS_AT_ONCE", 1)
    np.testing.assert_allclose(of_maps(*texts)[0].alike, layers[0].alike, rtol=1e-12)


def test_equal_maps_are_0_apart_and_long_texts_have_rows_spread_over_them():
    eye = np.eye(MAP_ROWS + 100)
    (layer,) = of_maps([np.stack([eye, eye, eye[::-1]])])
    assert layer.rows == MAP_ROWS and layer.alike[0, 1] == 0
    assert layer.alike[0, 2] == pytest.approx(1) and layer.mean == pytest.approx(2 / 3)
    assert layer.pairs[0] == (HeadId(0, 0), HeadId(0, 1), 0.0)


# --- what an answer owes to them ------------------------------------------------------------------


@pytest.fixture(scope="module")
def review():
    """A classifier, its capture of a text, and where its answer comes from."""
    model = hgviz.open_model(SOFTMAX)
    capture = tasks.capture(model, model.tokenize(REVIEW))
    question = tasks.default_question("classes", capture.logits, capture.main, None)
    return model, capture, tasks.attribute(model, capture.prompt, question)


def test_it_is_complete_and_says_so(facts, review):
    _, capture, found = review
    told = facts("attribute", SOFTMAX, "--text", REVIEW)
    assert told["steps"] == found.steps in STEPS and told["error"] == found.error <= COMPLETE
    total = sum(row["attribution"] for row in told["tokens"])
    assert total == pytest.approx(told["sum"]) and len(told["tokens"]) == len(capture.main)
    assert abs(total - told["change"]) <= COMPLETE * abs(told["change"])
    assert told["answer"]["class"] == int(np.argmax(capture.logits))
    assert told["value"] == pytest.approx(float(np.max(capture.logits)), abs=1e-4)
    assert told["start"] == pytest.approx(found.start, abs=1e-5)


def test_heads_layers_and_one_head_are_told(facts, output, tmp_path):
    out = tmp_path / "heads.csv"
    words = ("attribute", SOFTMAX, "--text", REVIEW, "--steps", "16", "--method")
    assert "24 rows" in output(*words, "heads", "-o", out)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["head"] for row in rows][:7] == ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5", "1.0"]
    assert [row["layer"] for row in facts(*words, "layers")["layers"]] == [0, 1, 2, 3]
    told = facts(*words, "attention", "--head", "1.2", "--query", "0")
    sizes = [[abs(row[name]) for row in told["keys"]]
             for name in ("attention", "integrated_gradients")]  # fmt: skip
    assert told["agreement"]["attention_and_tokens"] == pytest.approx(spearman(*sizes))


def test_what_a_language_model_says_next(facts):
    words = "attribute", HOURGLASS, "--text", "The sea", "--steps", "4"
    follows = facts(*words, "--token", "3")["answer"]
    assert follows == {"at": 3, "after": " ", "token": ord("s"), "says": "s"}
    asked = facts(*words, "--token", "3", "--says", "x")
    assert asked["answer"]["token"] == ord("x")
    assert not any(row["attribution"] for row in asked["tokens"][4:])
    assert facts(*words)["answer"]["at"] == 6


@pytest.mark.parametrize("query", [0, 5, None])
def test_a_head_beside_its_attention_is_what_autograd_says(review, query):
    """The slope of a weight: the answer's slope with the context, times the value, by hand."""
    model, capture, found = review
    head = HeadId(1, 2)
    beside = tasks.key_scores(found, capture, head, query)
    weights = capture.maps[1].read(2)
    given = _slopes_by_hand(model, capture, head, found.question.number)
    rows = slice(None) if query is None else slice(query, query + 1)
    wanted = (weights * given)[rows].sum(0)
    assert np.abs(beside.slope - wanted).max() <= 1e-5 * max(1e-3, np.abs(wanted).max())
    assert scaled_error(beside.attention, weights[rows].mean(0)) <= 1e-6
    assert np.allclose(beside.tokens, found.tokens, rtol=0, atol=1e-12)
    assert beside.columns.tolist() == list(range(len(capture.main)))


def _slopes_by_hand(model, capture, head, number):
    """(queries, keys): dF / dA of one head, where the maps of its layer are leaves."""
    layer = model.module.middle[str(head.layer)].attn
    maps = [capture.maps[head.layer].read(one) for one in layer.layer.heads]
    leaf = torch.tensor(np.stack(maps))[None].requires_grad_()

    def replaced(_, given, out):
        return layer.o((leaf @ layer._split(layer.v(given[1]))).transpose(1, 2).flatten(2))

    hook = layer.register_forward_hook(replaced)
    try:
        logits = model.module(torch.tensor(capture.prompt.ids)[None])
    finally:
        hook.remove()
    (slope,) = torch.autograd.grad(logits[0, number], leaf)
    return slope[0, head.head].numpy()


def made(capture, tokens, **fields):
    given = {"value": 3.0, "start": 1.0, "source": None, "heads": {}}
    return Attribution(
        Question(0), capture.prompt, None, frozenset(), tokens=tokens, **given | fields
    )


@pytest.mark.parametrize(
    ("share", "start", "error"),
    [(0.2, 1.0, 0), (0.1, 1.0, 0.5), (0.0, 3.0, 0), (1.0, 3.0, math.inf)],
)
def test_completeness_is_what_is_missing_of_the_change(share, start, error):
    capture, other = make_capture(text="short text"), make_capture(text="other text")
    found = made(capture, np.full(10, share), start=start)
    assert found.error == pytest.approx(error, abs=1e-12)
    assert found.is_of(capture) and not found.is_of(other)  # only of its own text and mask


@pytest.mark.parametrize("layer", [0, 2, 6, 10, 12])
def test_a_column_stands_for_the_tokens_behind_it(layer):
    capture = make_capture(text="a text of some length that is no multiple of four")
    tokens = np.random.default_rng(0).normal(size=len(capture.prompt))
    found = made(capture, tokens).by_key(capture, layer)
    spans = capture.key_spans(layer)
    assert len(found) == capture.maps[layer].shape[2]
    for value, (start, end) in zip(found, spans.tolist(), strict=True):
        assert math.isnan(value) if start < 0 else value == pytest.approx(tokens[start:end].sum())


def test_agreement_is_of_sizes_and_says_where_there_is_none():
    three = np.array([0.1, 0.2, 0.7])
    one = KeyScores(HeadId(0, 0), 2, np.arange(3), three, -three, three[::-1])
    assert one.agreements == pytest.approx((1, -1, -1))
    none = KeyScores(HeadId(0, 0), 2, np.arange(3), three, three, None).agreements
    assert none[0] == pytest.approx(1) and all(map(math.isnan, none[1:]))
