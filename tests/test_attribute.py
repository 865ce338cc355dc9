"""hgviz attribute, and one head beside its own attention, against autograd done plainly."""

import csv
import math

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis.statistics import spearman
from hgviz.core import HeadId
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.models.attribution import COMPLETE, STEPS
from hgviz.tasks.attribution import Attribution, KeyScores, Question
from tests.closeness import scaled_error
from tests.making import make_capture

REVIEW = "A dull plot, but she never bores."
SOFTMAX, HOURGLASS = (str(resource(f"sample/{name}")) for name in ("softmax", "hourglass"))


@pytest.fixture(scope="module")
def review():
    """A classifier, its capture of a text, and where its answer comes from."""
    model = open_model(SOFTMAX)
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


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("softmax", 2, "exactly one of --text"),
        ("softmax --text a --ids x.json", 2, "exactly one of"),
        ("softmax --text a --target-class sad", 1, "no class 'sad'"),
        ("softmax --text a --token 1", 2, "use --target-class"),
        ("hourglass --text a --target-class 1", 2, "for classifiers"),
        ("hourglass --text abc --token 3", 2, "no token 3"),
        ("hourglass --text abc --says two", 1, "is 3 tokens"),
        ("softmax --text a --method attention --head 9.0", 1, "no head 9.0"),
        ("softmax --text a --method attention --head 1.*", 2, "one head"),
        ("softmax --text a --steps 1", 2, "steps"),
        ("softmax --text a --method attention --query 9", 2, "no token 9"),
        ("hourglass --text=", 1, "text"),
        ("softmax --text a -o /nowhere/out.csv", 1, "there is no folder /nowhere"),
    ],
)
def test_wrong_use_is_one_clear_line(refusal, words, code, said):
    assert said in refusal("attribute", *f"sample/{words}".split(), code=code)


def test_what_is_read_is_never_written_over(refusal, tmp_path):
    ids = tmp_path / "ids.json"
    ids.write_text('{"input_ids": [2, 5, 3]}')
    (tmp_path / "config.json").touch()  # a checkpoint as far as names go
    for words in ((SOFTMAX, "--ids", ids, "-o", ids),
                  (tmp_path, "--text", "a", "-o", tmp_path / "config.json")):  # fmt: skip
        assert "it would be replaced" in refusal("attribute", *words, code=2)
    assert ids.read_text() == '{"input_ids": [2, 5, 3]}'


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


# --- as numbers -----------------------------------------------------------------------------------


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


@pytest.mark.parametrize("layer", [0, 2, 3, 4, 6, 8, 10, 12])
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
