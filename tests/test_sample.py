"""The samples: what their cards say is so."""

import json
import re
import runpy
import subprocess
import sys
import tomllib
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.analysis.roles import roles
from hgviz.core import HeadId
from hgviz.files import resource
from hgviz.models.data import read_rows
from hgviz.models.objectives import bits_per_byte
from hgviz.store import open_capture

HELD_OUT = Path(__file__).parents[2] / "shared/data/text/wikitext2-valid.txt"
NAMED = {  # head: its role and the least share of its weight there, as in the card
    HeadId(2, 2): ("previous position", 0.5),
    HeadId(3, 3): ("last position in group", 0.95),
    HeadId(3, 5): ("first position in group", 0.95),
    HeadId(5, 4): ("previous position", 0.85),
    HeadId(12, 1): ("previous punctuation", 0.3),
}


@pytest.fixture(scope="module")
def model():
    return tasks.load(resource("sample/hourglass"), "cpu")


@pytest.fixture(scope="module")
def first():
    return open_capture(resource("sample/first.h5"))


def test_it_has_three_resolutions_and_attends_between_them(model):
    assert [level.stride for level in model.spec.levels] == [1, 2, 4]
    between = [layer for layer in model.spec.layers if layer.role in ("down", "up")]
    assert [layer.name for layer in between] == ["down.0", "down.1", "up.1", "up.0"]
    assert all(layer.window == 2 for layer in between)


@pytest.mark.skipif(not HELD_OUT.exists(), reason="the held-out text is not on this machine")
def test_its_shortened_levels_are_worth_what_the_card_says(model, tmp_path):
    """On an eighth of the card's text, where the numbers are within some hundredths of these."""
    (tmp_path / "some.txt").write_bytes(HELD_OUT.read_bytes()[:16_384])
    whole = tasks.evaluate(model, tmp_path / "some.txt").score.value
    rows = re.findall(r"\(layers ([\d, andto]+)\) \| (\d+) \| ([\d.]+) \|", card("hourglass"))
    assert len(rows) == 4
    for layers, count, lost in rows:
        parts = [part.split(" to ") for part in re.split(", | and ", layers)]
        named = [layer for part in parts for layer in range(int(part[0]), int(part[-1]) + 1)]
        off = frozenset(HeadId(layer, head) for layer in named for head in range(6))
        without = tasks.evaluate(model, tmp_path / "some.txt", off=off).score.value
        assert len(off) == int(count)
        assert without - whole == pytest.approx(float(lost), abs=0.03)


@pytest.mark.skipif(not HELD_OUT.exists(), reason="the held-out text is not on this machine")
def test_it_predicts_held_out_text(model):
    text = torch.frombuffer(bytearray(HELD_OUT.read_bytes()[:32_768]), dtype=torch.uint8)
    assert bits_per_byte(model.module, text, 1024) <= 1.9


def test_the_first_capture_is_of_these_weights(model, first):
    assert first.spec.digest == model.spec.digest
    again = tasks.capture(model, first.prompt)
    np.testing.assert_allclose(again.logits, first.logits, atol=1e-4)
    for layer in (0, 2, 5, 10, 12):
        here, there = again.maps[layer].read(3), first.maps[layer].read(3)
        np.testing.assert_allclose(here, there, atol=1e-5)


def test_the_first_capture_opens_without_torch():
    code = (
        "import sys; from hgviz.files import resource; from hgviz.store import open_capture;"
        "open_capture(resource('sample/first.h5')).maps[0].read(0);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


@pytest.mark.parametrize("head", NAMED, ids=str)
def test_a_head_of_the_card_does_what_the_card_says(first, head):
    role, least = NAMED[head]
    fact = roles(first)[head]
    assert (fact.role, fact.score >= least) == (role, True)


# --- the three classifiers ------------------------------------------------------------------------

CLASSIFIERS = ("softmax", "ymish", "mixed")
REVIEWS = resource("sample/reviews.tsv")


@pytest.fixture(scope="module")
def reviews():
    """The generator, as a module."""
    # no __pycache__ among the resources
    return SimpleNamespace(**runpy.run_path(str(resource("sample/reviews.py"))))


@pytest.fixture(scope="module")
def classifiers():
    return {name: tasks.load(resource(f"sample/{name}"), "cpu") for name in CLASSIFIERS}


def card(name):
    return (resource(f"sample/{name}") / "README.md").read_text("utf-8")


def recipe(name):
    return tomllib.loads((resource(f"sample/{name}") / "training.toml").read_text("utf-8"))


def test_the_classifiers_differ_in_their_activations_only():
    configs = [
        json.loads((resource(f"sample/{name}") / "config.json").read_text("utf-8"))
        for name in CLASSIFIERS
    ]
    recipes = [recipe(name) for name in CLASSIFIERS]
    activations = [config.pop("activations") for config in configs]
    named = [one["model"].pop("activations") for one in recipes]
    assert [[one] if isinstance(one, str) else one for one in named] == activations
    assert len({str(one) for one in activations}) == 3
    assert configs[0] == configs[1] == configs[2]
    assert recipes[0] == recipes[1] == recipes[2]
    words = {(resource(f"sample/{name}") / "tokenizer.json").read_bytes() for name in CLASSIFIERS}
    assert len(words) == 1


def test_the_evaluation_set_is_the_generators_to_the_byte(reviews, tmp_path, monkeypatch):
    given = ["--rows", "2000", "--seed", "2026", "--part", "evaluation", "-o"]
    monkeypatch.setattr(sys, "argv", ["reviews.py", *given, str(tmp_path / "again.tsv")])
    reviews.main()
    assert (tmp_path / "again.tsv").read_bytes() == REVIEWS.read_bytes()


def test_every_label_follows_from_the_review(reviews):
    """On the plain forms, where a second, independent reading is short."""
    pairs = f"{reviews.ANY} {reviews.WHOLES}".split()
    good, bad = ({pair.split("/")[i] for pair in pairs} for i in (0, 1))
    form = re.compile(r"The \w+ was (not |never |hardly |far from |)(?:really )?(\w+)\.")
    checked = 0
    for text, label in islice(reviews.rows(3, "training"), 8000):
        if found := form.fullmatch(text):
            assert found[2] in good | bad
            assert (label == "positive") == ((found[2] in good) != bool(found[1]))
            checked += 1
    assert checked > 50


def test_what_is_taken_back_is_turned_round(reviews):
    pairs = f"{reviews.ANY} {reviews.WHOLES}".split()
    good = {pair.split("/")[0] for pair in pairs}
    form = re.compile(
        r"The ([\w ]+) was (\w+) and the ([\w ]+) was (\w+)"
        r" - no, I take the (first|last) part back\."
    )
    checked = 0
    for text, label in islice(reviews.rows(4, "training"), 20_000):
        if found := form.fullmatch(text):
            at = 0 if found[1] in reviews.SCENES else 1
            turned = found[5] == ("first", "last")[at]
            assert (label == "positive") == ((found[2 + 2 * at] in good) != turned)
            checked += 1
    assert checked > 20


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_answers_as_often_right_as_its_card_says(classifiers, name):
    score = tasks.evaluate(classifiers[name], REVIEWS).score
    said = re.search(r"\*\*([\d.]+) %\*\* \(([\d.]+) to ([\d.]+)", card(name))
    found = (score.value, score.low, score.high)
    assert score.total == 2000
    assert 0.9 <= score.value <= 0.99
    np.testing.assert_allclose([float(one) / 100 for one in said.groups()], found, atol=2.1e-3)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_loses_with_a_layer_what_its_card_says(classifiers, name):
    model = classifiers[name]
    said = re.findall(r"\| layer (\d) \| ([\d.]+) \|", card(name))
    number, worst = min(said, key=lambda row: float(row[1]))
    off = frozenset(HeadId(int(number), head) for head in range(6))
    score = tasks.evaluate(model, REVIEWS, off=off).score
    assert len(said) == 4
    np.testing.assert_allclose(float(worst) / 100, score.value, atol=3e-3)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_classifier_can_be_captured(classifiers, name):
    model = classifiers[name]
    text = "The soup was not bad, but I never liked the evening."
    capture = tasks.capture(model, model.tokenize(text))
    assert capture.spec.labels == ("negative", "positive")
    assert capture.logits.shape == (2,)
    pieces = [one.lower() for one in capture.prompt.pieces]
    assert pieces[:3] == ["[cls]", "the", "soup"] and "[unk]" not in pieces
    assert [one.shape[1:] for one in capture.maps] == [(len(pieces), len(pieces))] * 4


def test_the_softmax_classifier_looks_from_its_first_token_to_what_turns_a_sense(classifiers):
    """Head 0.5 puts half of [CLS]'s weight there, as the card says."""
    turning = {"not", "never", "hardly", "nobody", "neither", "nor", "unlike", "anything", "doubt",
               "deny", "wrong", "disagree", "cannot", "lie", "opposite", "changed",
               "back"}  # fmt: skip
    model, shares = classifiers["softmax"], []
    for text in read_rows(REVIEWS).texts[:40]:
        capture = tasks.capture(model, model.tokenize(text))
        keys = [i for i, one in enumerate(capture.prompt.pieces) if one.lower() in turning]
        if keys:
            shares.append(capture.maps[0].read(5)[0, keys].sum())
    assert len(shares) > 20 and np.mean(shares) > 0.45
