"""Captures and studies of every kind, what makes two equal, and what a stranger does to a file."""

import json
from dataclasses import fields, is_dataclass, replace

import h5py
import numpy as np
import pytest

from hgviz.core import (
    Capture,
    HeadId,
    HgvizError,
    Item,
    Layer,
    Level,
    ModelSpec,
    Signal,
    Streaming,
    slot_prompt,
)
from hgviz.maps import DenseMap, Diagonals, Grouped, LazyMap, Quadratic, Rule, recompute_statistics
from hgviz.store import CorpusWriter, open_capture, open_study, write_capture, write_study
from tests.making import byte_prompt, make_capture
from tests.maps.test_lazy import bits, make
from tests.studying import make_study

# --- samples --------------------------------------------------------------------------------------

NAMES = ("topk", "linear", "softmax", "ymish")
NORMS = (None, None, "l2", "l2-literal")
TOKENS = 4100  # of a large map
RANDOM = np.random.default_rng(0)
TEXTS = ("A first text. ", "Another one. ", "The third, which is longer than others. ")


def small(text="A small text, captured. ", heads=2, **options):
    return make_capture(text, strides=(1, 2), heads=heads, **options)


def factors(queries, keys, names=NAMES, norms=NORMS, proof=(0, -1)):
    """Factors of heads that are unlike, with their statistics."""
    rule = Rule(0.4, names, norms, causal=False, top_k=3 if "topk" in names else None)
    rows = np.arange(queries)[list(proof)]
    values = np.zeros((len(names), len(rows), keys), "f4")
    made = make(rule, queries, keys, width=4)
    return replace(made, proof_rows=rows, proof_values=values)


def slots(count):
    return np.stack([np.arange(count), np.arange(count) + 1], 1)


def of_kind(kind):
    """A cross-attending decoder, an encoder with slots, or a classifier."""
    prompt, target = byte_prompt("A source."), None
    heads = {"heads": (0, 1, 2, 3), "activations": NAMES, "causal": False}
    spans, levels, sizes = [slots(len(prompt))], [Level(0)], [(len(prompt), len(prompt))]
    layers = [Layer(0, "middle.0", "self", 0, 0, **heads)]
    goal, labels, logits = "next", (), np.zeros((len(prompt), 256), "f4")
    if kind in ("both", "states"):
        target = byte_prompt("Its target is longer.")
        spans.append(slots(len(target)))
        levels.append(Level(1, sequence="target"))
        layers.append(Layer(1, "middle.0.cross", "cross", 1, 0, **heads))
        sizes.append((len(target), len(prompt)))
        logits = np.ones((len(target), 256), "f4")
    if kind == "states":
        goal, logits = "states", np.ones((len(target), 8))
        states = RANDOM.normal(size=(len(prompt), 8)).astype("f4")
        mask = np.arange(len(prompt)) > 1
        prompt = replace(slot_prompt(len(prompt)), states=states, attention_mask=mask)
    if kind == "slots":
        spans.append(slots(4))
        levels.append(Level(1, sequence="slots"))
        layers, sizes = [Layer(0, "middle.0", "self", 0, 1, **heads)], [(len(prompt), 4)]
    if kind == "classes":
        goal, labels, logits = "classes", ("no", "yes", "✓"), np.array([0.1, 0.2, 0.3])
    spec = ModelSpec(
        "transformer", kind, tuple(levels), tuple(layers), 8, 256, goal=goal, labels=labels
    )
    maps = tuple(LazyMap(recompute_statistics(factors(*size)), (0, 1, 2, 3)) for size in sizes)
    return Capture(spec, prompt, tuple(spans), maps, logits=logits, target=target)


def large(names=("softmax", "linear", "topk"), norms=(None, None, None)):
    """One layer of a long text; its keys are slots, so that the maps are quickly made."""
    heads = tuple(range(len(names)))
    layer = Layer(0, "middle.0", "self", 0, 1, heads=heads, activations=names, causal=False)
    levels = (Level(0), Level(1, sequence="slots"))
    spec = ModelSpec("yubert", "large", levels, (layer,), 8, 256, goal="next")
    maps = LazyMap(factors(TOKENS, 70, names, norms, (0, 300, -1)), heads)
    return Capture(spec, byte_prompt("a" * TOKENS), (slots(TOKENS), slots(70)), (maps,))


def dense(form="float32", size=600):
    """Weights that are kept themselves, where causal with numbers that nobody may read."""
    array = np.random.default_rng(0).random((2, size, size)).astype(np.float32)
    array = bits(array) if form == "bits" else array.astype(form)
    whole = small()
    spec = replace(whole.spec, layers=whole.spec.layers[:1], levels=whole.spec.levels[:1])
    return replace(whole, spec=spec, maps=(DenseMap(array, (0, 1), causal=True),),
                   spans=whole.spans[:1])  # fmt: skip


def in_dtype(dtype):
    """Queries and keys in another number format."""
    whole = small()
    cast = bits if dtype == "bfloat16" else lambda values: values.astype(dtype)
    maps = [replace(one.factors, q=cast(one.factors.q), k=cast(one.factors.k), dtype=dtype)
            for one in whole.maps]  # fmt: skip
    return replace(whole, maps=tuple(LazyMap(one, (0, 1)) for one in maps))


def with_rule(streams=False, keys_are_shared=False, **changes):
    """Another rule in the first layer; streams: in all of one level, whose first heads stream."""
    whole = small()
    own = [layer.index for layer in whole.spec.layers if layer.role == "self"]
    maps = list(whole.maps)
    for index in own if streams else own[:1]:
        old = maps[index].factors
        keys = Grouped(old.k[:1], len(old.q)) if keys_are_shared else old.k
        changed = replace(old, k=keys, rule=replace(old.rule, **changes))
        changed = recompute_statistics(changed)
        maps[index] = LazyMap(changed, maps[index].heads)
    heads = frozenset(HeadId(index, 0) for index in own)
    streaming = Streaming(heads, 2, 4) if streams else whole.streaming
    return replace(whole, maps=tuple(maps), streaming=streaming)


def with_prompt(**changes):
    whole = small()
    return replace(whole, prompt=replace(whole.prompt, **changes))


def described():
    """All that a tokenizer and a machine say."""
    places = np.arange(24)
    whole = with_prompt(
        attention_mask=places > 2, token_type_ids=places, position_ids=places,
        boundaries=places % 3 == 0, pieces=("\ud800\0",) * 24,
    )  # fmt: skip
    made = replace(whole.made, versions=(("torch", "2.13"),), seed=None, masking="compat")
    return replace(whole, off=frozenset([HeadId(1, 0), HeadId(0, 1)]), made=made)


def without_heads():
    """Heads that were removed leave their layer and the numbers of the others."""
    whole = small()
    first, second, *others = whole.spec.layers
    layers = (replace(first, heads=(3, 7)), replace(second, heads=(), activations=()), *others)
    full = whole.maps[1].factors
    rule = replace(full.rule, activations=(), norms=())
    parts = {name: getattr(full, name)[:0] for name in ("q", "k", "stat", "proof_values")}
    none = LazyMap(replace(full, **parts, rule=rule), ())
    maps = (LazyMap(whole.maps[0].factors, (3, 7)), none, *whole.maps[2:])
    return replace(whole, spec=replace(whole.spec, layers=layers), maps=maps)


PICTURE = Signal(np.ones((3, 8, 8), "f4"), np.zeros((8, 8, 3), "u1"), (2, 3))
SAMPLES = {
    "small": small,
    **{name: lambda name=name: small("Hourglasses. " * 4, **{name: name != "logits"})
       for name in ("signed", "windowed", "relative", "logits")},
    **{kind: lambda kind=kind: of_kind(kind) for kind in ("both", "states", "slots", "classes")},
    **{dtype: lambda dtype=dtype: in_dtype(dtype) for dtype in ("float16", "bfloat16", "float64")},
    **{f"dense {form}": lambda form=form: dense(form) for form in ("float32", "float16", "bits")},
    "described": described,
    "without heads": without_heads,
    "picture": lambda: with_prompt(signal=PICTURE),
    "sound": lambda: with_prompt(signal=Signal(np.zeros(7, "f4"), seconds=2.5)),
    "streaming": lambda: with_rule(streams=True, streaming=((2, 4), None)),
    "diagonals": lambda: with_rule(
        relative=Diagonals(RANDOM.normal(size=(2, 47)).astype("f4"), lowest=-23)),
    "quadratic": lambda: with_rule(relative=Quadratic(np.ones((2, 2), "f4"))),
    "bounded": lambda: with_rule(
        softcap=5.0, band=(4, 0), chunk=8, sinks=np.ones(2, "f4"), keys_are_shared=True),
    "large": large,
}  # fmt: skip


def make_corpus(relative=True):
    """Captures of some texts by one model."""
    return [small(text, relative=relative) for text in TEXTS]


def start_corpus(path, texts, digest="a", force=False):
    """A writer for some captures of one model."""
    items = tuple(
        Item(number, text.prompt.text, len(text.prompt), f"kind {number % 2}")
        for number, text in enumerate(texts)
    )
    return CorpusWriter(path, replace(texts[0], items=items), digest, force)


def add_text(writer, number, text, layers=None):
    """Write one text, or some of its layers before an interruption."""
    with writer.item(number, text) as one:
        for index, maps in enumerate(text.maps[:layers]):
            if index not in one.committed:
                one.add(index, maps.factors)
        if layers is not None:
            raise KeyboardInterrupt
        one.finish(text.logits)


def write_corpus(path, texts, **options):
    """A file of them all."""
    with start_corpus(path, texts, **options) as writer:
        for number, text in enumerate(texts):
            if number not in writer.committed:
                add_text(writer, number, text)
        return writer.finish()


def write_sample(path, name):
    """A file of a sample, a corpus or a study."""
    if name == "corpus":
        return write_corpus(path, make_corpus())
    if name == "study":
        study = make_study(examples=30)
        arrays = {**study.arrays, "context_norm": study.arrays["gradient"]}
        return write_study(path, replace(study, arrays=arrays))
    return write_capture(path, SAMPLES[name]())


# --- equal ----------------------------------------------------------------------------------------


def same(one, other, passed_over=("path", "item", "items")):
    """Field by field, arrays with their types, NaN equal to NaN, maps to the last bit."""
    np.testing.assert_equal(_plain(one, passed_over), _plain(other, passed_over))


def _plain(value, passed_over):
    if isinstance(value, LazyMap | DenseMap):
        lazy = isinstance(value, LazyMap)
        more = (value.verify_max_abs, str(value.factors.q.dtype)) if lazy else ()
        heads = [(value.read(head), value.read(head, zoom=2, reduce="mean"),
                  _plain(replace(value.summary(head), hist=None), ()))
                 for head in value.heads]  # fmt: skip
        return [type(value), value.shape, value.heads, value.signed, more, heads]
    if is_dataclass(value):
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        if "thumb" in parts:  # kept in half precision
            parts["thumb"] = parts["thumb"].astype(np.float16)
        return {name: _plain(part, passed_over) for name, part in parts.items()
                if name not in passed_over} | {"type": type(value)}  # fmt: skip
    if isinstance(value, dict):
        return {name: _plain(part, passed_over) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part, passed_over) for part in value]
    return (str(value.dtype), value) if isinstance(value, np.ndarray) else value


def contents(path):
    """Everything in a file, by name: of datasets type, shape, filters and bytes."""
    found = {}

    def keep(name, one):
        if isinstance(one, h5py.Dataset):
            how = (one.dtype, one.shape, one.chunks, one.compression, one.fletcher32)
            found[name] = (*map(str, how), one[...].tobytes())
        found.update({f"{name}@{key}": str(value) for key, value in one.attrs.items()})

    with h5py.File(path) as file:
        file.visititems(keep)
    return found


# --- damage ---------------------------------------------------------------------------------------


def damage(path, name, change):
    """Put something else in the place of a dataset, group, or attribute ("group@name").

    change: an array, a link, the keywords of create_dataset, None for nothing, or a function of the
    array that was there, which returns one of these. Of no name: a function of the open file.
    """
    with h5py.File(path, "r+") as file:
        if not name:
            change(file)
            return
        place, _, attribute = name.partition("@")
        if attribute:
            file[place or "/"].attrs[attribute] = change
            return
        old = file[name][...] if isinstance(file.get(name), h5py.Dataset) else None
        file.pop(name, None)
        value = change(old) if callable(change) else change
        if isinstance(value, dict):
            file.create_dataset(name, **value)
        elif value is not None:
            file[name] = value


def put(value, at=0):
    """A change of one number."""

    def change(old):
        old[at] = value
        return old

    return change


def said(change):
    """A change of a JSON document: what change(document) returns, or leaves in it; or its keys."""

    def changed(old):
        document = json.loads(bytes(old))
        if isinstance(change, dict) and isinstance(document, dict):
            document |= change
        elif callable(change):
            document = change(document) or document
        else:
            document = change
        return np.frombuffer(json.dumps(document).encode(), "u1")

    return changed


def refused(path, sentence="", item=0, study=False):
    """Opening and reading everything ends in one clear line; return the error."""
    with pytest.raises(HgvizError) as caught:
        if study:
            open_study(path)
        opened = open_capture(path, item)
        for maps in opened.maps:
            for head in maps.heads:
                maps.read(head), maps.summary(head)
    error = caught.value
    assert str(path) in error.what and error.do
    assert "\n" not in str(error) and len(str(error)) < 400 + len(str(path))
    assert sentence in error.what, error.what
    return error
