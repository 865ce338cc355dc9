"""Two texts, states, slots, classes; topk, linear attention and norms: kept, and not believed."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest

from hgviz.core import Capture, HgvizError, Layer, Level, ModelSpec, slot_prompt
from hgviz.maps import LazyMap, Rule, recompute_statistics
from hgviz.store import Writer, describe, open_capture, write_capture
from tests.making import byte_prompt
from tests.maps.test_lazy import make
from tests.store.damage import restate, swap
from tests.store.test_file import same

NAMES = ("topk", "linear", "softmax", "ymish")
NORMS = (None, None, "l2", "l2-literal")


def factors(queries, keys, causal=False, names=NAMES, norms=NORMS):
    """Settled factors of heads that are unlike."""
    rule = Rule(0.4, names, norms, causal=causal, top_k=3 if "topk" in names else None)
    found = make(rule, queries, keys, width=4)
    rows = np.array([0, queries - 1])
    return recompute_statistics(
        replace(found, proof_rows=rows, proof_values=np.zeros((4, 2, keys), "f4"))
    )


def capture_of(kind) -> Capture:
    """A cross-attending decoder, an encoder with slots, or a classifier."""
    prompt, target = byte_prompt("A source."), None
    heads = {"heads": (0, 1, 2, 3), "activations": NAMES, "causal": False}
    ends = np.arange(len(prompt))
    own = np.stack([ends, ends + 1], 1)
    spans, levels = [own], [Level(0)]
    layers = [Layer(0, "middle.0", "self", 0, 0, **heads)]
    goal, labels, logits = "next", (), np.zeros((len(prompt), 256), "f4")
    sizes = [(len(prompt),) * 2]
    if kind in ("both", "states"):
        target = byte_prompt("Its target is longer.")
        ends = np.arange(len(target))
        spans.append(np.stack([ends, ends + 1], 1))
        levels.append(Level(1, sequence="target"))
        layers.append(Layer(1, "middle.0.cross", "cross", 1, 0, **heads))
        sizes.append((len(target), len(prompt)))
        logits = np.ones((len(target), 256), "f4")
    if kind == "states":
        goal, logits = "states", np.ones((len(target), 8))
        mask = np.arange(len(prompt)) > 1
        states = np.random.default_rng(0).normal(size=(len(prompt), 8)).astype("f4")
        prompt = replace(slot_prompt(len(prompt)), states=states, attention_mask=mask)
    if kind == "slots":
        spans.append(np.stack([np.arange(4), np.arange(4) + 1], 1))
        levels.append(Level(1, sequence="slots"))
        layers = [Layer(0, "middle.0", "self", 0, 1, **heads)]
        sizes = [(len(prompt), 4)]
    if kind == "classes":
        goal, labels, logits = "classes", ("no", "yes", "✓"), np.array([0.1, 0.2, 0.3])
    spec = ModelSpec(
        "transformer", kind, tuple(levels), tuple(layers), 8, 256, goal=goal, labels=labels
    )
    maps = tuple(LazyMap(factors(*size), (0, 1, 2, 3)) for size in sizes)
    return Capture(spec, prompt, tuple(spans), maps, logits=logits, target=target)


KINDS = ["both", "states", "slots", "classes"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_capture_of_every_kind_comes_back_as_it_was(tmp_path, kind):
    capture = capture_of(kind)
    opened = open_capture(write_capture(tmp_path / "a.h5", capture))
    same(capture, opened)
    assert opened.logits.dtype == capture.logits.dtype
    assert (opened.target is None) == (capture.target is None)
    if capture.target is not None:
        assert opened.target.digest == capture.target.digest
        assert opened.target.text == capture.target.text
    if kind == "states":
        assert np.array_equal(opened.prompt.states, capture.prompt.states)
    for layer in range(len(capture.maps)):
        assert opened.query_prompt(layer).pieces == capture.query_prompt(layer).pieces
        assert opened.key_prompt(layer).pieces == capture.key_prompt(layer).pieces
    same(opened, open_capture(write_capture(tmp_path / "again.h5", opened)))


def test_what_it_says_fits_every_kind(tmp_path):
    found = {kind: describe(write_capture(tmp_path / kind, capture_of(kind))) for kind in KINDS}
    found = json.loads(json.dumps(found))
    sequences = {kind: [one["sequence"] for one in found[kind]["levels"]] for kind in KINDS}
    assert sequences["both"] == ["source", "target"] and sequences["slots"] == ["source", "slots"]
    assert [found[kind]["goal"] for kind in KINDS] == ["next", "states", "next", "classes"]
    assert found["classes"]["labels"] == ["no", "yes", "✓"]
    assert (found["both"]["tokens"], found["both"]["target_tokens"]) == (9, 21)
    assert found["classes"]["target_tokens"] is None
    cross = found["both"]["layers"][1]
    assert (cross["queries"], cross["keys"]) == (21, 9)


@pytest.mark.parametrize("other", ["target", "states"])
def test_another_target_and_other_states_are_another_capture(tmp_path, other):
    capture = capture_of("states")

    def start(one):
        return Writer(tmp_path / "a.h5", one)

    with pytest.raises(RuntimeError), start(capture) as writer:
        writer.add(0, capture.maps[0].factors)
        raise RuntimeError
    assert open_capture(tmp_path / "a.h5.part").target.text == capture.target.text
    assert start(capture).committed == {0}
    prompt = replace(capture.prompt, states=capture.prompt.states + 1)
    change = {"target": byte_prompt("Its target is Longer.")}
    changed = replace(capture, **(change if other == "target" else {"prompt": prompt}))
    with pytest.raises(HgvizError, match="another text"):
        start(changed)


# --- not believed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, name, change",
    [
        ("both", "target/ids", None),
        ("both", "target/ids", lambda old: old[:-1]),
        ("both", "target/spans", lambda old: old + 100),
        ("both", "levels/1/spans", lambda old: old + 1),
        ("both", "output/logits", lambda old: old[0]),
        ("states", "prompt/states", lambda old: old[:-1]),
        ("states", "prompt/states", lambda old: old.astype("f8")),
        ("slots", "levels/1/spans", lambda old: old + 1),
        ("classes", "output/logits", lambda old: old[:2]),
        ("classes", "output/logits", lambda old: old[None]),
        ("classes", "layers/000/norm", None),
        ("classes", "layers/000/threshold", None),
        ("classes", "layers/000/kept", None),
        ("classes", "layers/000/threshold", lambda old: old[:, :-1]),
        ("classes", "layers/000/kept", lambda old: np.zeros((3, 2), "i4")),
        ("classes", "layers/000/kept", lambda old: np.zeros((3, 3), "f4")),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, kind, name, change):
    path = write_capture(tmp_path / "a.h5", capture_of(kind))
    swap(path, name, change)
    with pytest.raises(HgvizError, match="cannot be read"):
        open_capture(path)


def test_a_second_text_that_is_not_there_or_not_asked_for_is_refused(tmp_path):
    for kind, change in (("both", lambda file: file.__delitem__("target")),
                         ("slots", lambda file: file.copy("prompt", "target"))):  # fmt: skip
        path = write_capture(tmp_path / f"{kind}.h5", capture_of(kind))
        with h5py.File(path, "r+") as file:
            change(file)
        with pytest.raises(HgvizError, match="its spec and its texts disagree"):
            open_capture(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.update(goal="win"),
        lambda s: s.update(goal=3),
        lambda s: s.update(labels="no yes"),
        lambda s: s.update(labels=[1, 2, 3]),
        lambda s: s["levels"][0].update(sequence="sideways"),
        lambda s: s["levels"][0].update(sequence=None),
        lambda s: s["layers"][0].update(activations=["exec"] * 4),
    ],
)
def test_a_spec_that_lies_is_refused(tmp_path, change):
    path = write_capture(tmp_path / "a.h5", capture_of("classes"))
    restate(path, "spec", change)
    with pytest.raises(HgvizError, match="cannot be read"):
        open_capture(path)


@pytest.mark.parametrize("top_k", [0, -1, 1 << 40])
def test_a_number_of_keys_that_lies_is_refused(tmp_path, top_k):
    path = write_capture(tmp_path / "a.h5", capture_of("classes"))
    with h5py.File(path, "r+") as file:
        file["layers/000"].attrs["top_k"] = top_k
    with pytest.raises(HgvizError, match="top_k"):
        open_capture(path)


def test_listed_cells_that_are_not_there_are_passed_over(tmp_path):
    path = write_capture(tmp_path / "a.h5", capture_of("classes"))
    wild = np.array([[9, 0, 0], [0, -1, 0], [0, 0, 10**6], [-(2**31), 2**31 - 1, 3]], "i4")
    swap(path, "layers/000/kept", wild)
    found = open_capture(path).maps[0].read(0)
    assert np.isfinite(found).all()


def test_a_changed_threshold_is_noticed(tmp_path):
    path = write_capture(tmp_path / "a.h5", capture_of("classes"))
    swap(path, "layers/000/threshold", lambda old: old + np.float32(1))
    with pytest.raises(HgvizError, match="not what was written"):
        open_capture(path).maps[0].read(0)
