"""Hourglasses of other programs compute as they do there: hourglass-transformer-pytorch (maps and
masks included), dynamic-pooling, and trax; and files of strangers are one error, in a line."""

import argparse
import json
import re
import sys
import types
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.models import checkpoints, foreign, open_model
from hgviz.models.checkpoints import read
from hgviz.models.config import parse_config, shapes_of
from hgviz.models.foreign import BEGIN, read_trax
from hgviz.models.pruning import write_pruned
from tests.models import package
from tests.models.building import make_config
from tests.models.official import Official
from tests.models.segments import forward
from tests.models.test_checkpoints import ARGUMENTS, GIVEN, configured, refusal
from tests.models.test_references import maps_of
from tests.test_families import call

# --- hourglass-transformer-pytorch ----------------------------------------------------------------

WIDTH = {"num_tokens": 29, "dim": 24, "max_seq_len": 320, "heads": 3, "dim_head": 8}
NESTED = [1, [1, 2, 1], 2]
PLAIN, LINEAR = {"attn_resampling": False}, {"updown_sample_type": "linear"}
CASES = {  # depth, shorten_factor, whether causal, other arguments, length, mask
    "flat, causal": (2, None, True, {}, 13, None),
    "flat, both ways, padded at the right": (3, None, False, {}, 11, "right"),
    "average": ([1, 2, 1], 2, True, {}, 12, None),
    "ragged": ([1, 2, 1], 3, True, {}, 13, None),
    "ragged, a mask of ones": ([1, 2, 1], 3, True, {}, 13, "ones"),
    "linear, no attention": ([2, 1, 1], 4, True, PLAIN | LINEAR, 14, None),
    "average, no attention, padded at the left": ([1, 1, 1], 2, True, PLAIN, 9, "left"),
    "nested, ragged": (NESTED, [2, 3], True, {}, 17, None),
    "nested, linear, padded at the right": (NESTED, [3, 2], True, LINEAR, 17, "right"),
    "nested, padded at the left": (NESTED, [3, 2], True, {}, 20, "left"),
    "both ways, ragged, padded at the right": ([1, 1, 1], 3, False, {}, 14, "right"),
    "both ways, linear, padded at the left": ([1, 1, 1], 2, False, LINEAR, 13, "left"),
    "both ways, nested, holes in the mask": (NESTED, 2, False, {}, 15, "holes"),
    "three levels down, one factor for all": ([1, NESTED, 1], 2, True, LINEAR, 23, None),
    "no layers before": ([0, 2, 1], 2, True, {}, 10, None),
    "longer than a tile": ([1, 1, 1], 3, True, {}, 301, None),
}


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def built(folder, arguments, **extra):
    """A model of the package, and its checkpoint."""
    model = package.build(**{name: tuples(value) for name, value in arguments.items()})
    return model, package.write(folder, model, arguments, **extra)


def mask_of(kind, length):
    mask = np.ones((2, length), bool)
    if kind == "holes":
        mask[1, 2:7] = mask[1, -2:] = mask[0, 0] = False
    elif kind != "ones":
        mask[1, slice(length // 2, None) if kind == "right" else slice(length // 2)] = False
    return None if kind is None else mask


@pytest.mark.parametrize("case", CASES)
def test_logits_and_maps_are_the_packages(tmp_path, case):
    depth, factor, causal, more, length, kind = CASES[case]
    arguments = {**WIDTH, "depth": depth, "causal": causal, **more}
    if factor is not None:
        arguments = {"attn_resampling": True, "updown_sample_type": "naive",
                     "shorten_factor": factor, **arguments}  # fmt: skip
    theirs, folder = built(tmp_path / "checkpoint", arguments)
    ids, mask = np.random.default_rng(0).integers(0, 29, (2, length)), mask_of(kind, length)
    expected = [package.maps(theirs, ids[row], None if mask is None else mask[row])
                for row in range(2)]  # fmt: skip
    for dtype, tolerance in (("float64", 1e-9), ("float32", 5e-5)):
        ours = open_model(folder, dtype=dtype)
        logits = ours.run(ids, attention_mask=mask).logits
        assert np.abs(logits - package.logits(theirs, ids, mask)).max() <= tolerance
        for row in range(2):
            _, maps = maps_of(ours, ids[row], None if mask is None else mask[row])
            pairs = zip(maps, expected[row], strict=True)
            assert max(np.abs(one - other).max() for one, other in pairs) <= 1e-5


def test_strict_masking_lets_no_padding_through(tmp_path):
    arguments = {**WIDTH, "depth": [1, 1, 1], "shorten_factor": 2, "causal": False}
    _, folder = built(tmp_path / "both", arguments)
    mask, ids = np.arange(11) < 7, np.arange(11)
    difference = {}
    for masking in ("strict", "compat"):
        model = open_model(folder, dtype="float64", masking=masking)
        assert model.masking == masking
        one, two = (model.run(each, attention_mask=mask).logits[:7]
                    for each in (ids, np.where(mask, ids, 28)))  # fmt: skip
        difference[masking] = np.abs(one - two).max()
    assert difference["strict"] == 0 and difference["compat"] > 1e-3
    arguments = {**WIDTH, "depth": NESTED, "shorten_factor": [2, 3], "causal": True}
    _, folder = built(tmp_path / "nested", arguments, masking="strict")
    strict, ids = open_model(folder, dtype="float64"), np.random.default_rng(1).integers(0, 29, 13)
    padded = strict.run(np.append(ids, [3] * 5), attention_mask=np.arange(18) < 13).logits[:13]
    assert np.abs(padded - strict.run(ids).logits).max() < 1e-12


@pytest.fixture(scope="module")
def lucidrains():
    return package.build(**ARGUMENTS)


@pytest.mark.parametrize("name", ["model.pt", "weights.pt", "model.safetensors"])
def test_state_dicts_open_whatever_wrapped_them(tmp_path, lucidrains, name):
    digests = set()
    for prefix in ("", "net.", "module.", "module.net."):
        folder = package.write(tmp_path / f"theirs{prefix}", lucidrains, GIVEN, prefix, name)
        for path in (folder, folder / name):
            ours = open_model(path, dtype="float64")
            theirs = package.logits(lucidrains, np.arange(11)[None])[0]
            assert np.abs(ours.run(np.arange(11)).logits - theirs).max() < 1e-9
            digests.add(ours.spec.digest)
    other = package.write(tmp_path / "other", package.build(seed=1, **ARGUMENTS), GIVEN)
    assert len(digests) == 1 and open_model(other).spec.digest not in digests


@pytest.mark.parametrize("arguments", [
    {"depth": 2},
    {"depth": [0, 1, 2], "shorten_factor": 2},
    {"depth": [1, 2, 0], "shorten_factor": 3, "attn_resampling": False},
    {"depth": [1, [0, [1, 1, 2], 1], 2], "shorten_factor": [2, 3, 2]},
    {"depth": [1, [1, 1, 1], 1], "updown_sample_type": "linear", "shorten_factor": [3, 2]},
])  # fmt: skip
def test_what_weights_show_need_not_be_said(tmp_path, arguments):
    _, full = built(tmp_path / "full", {**WIDTH, "causal": True, **arguments})
    shown = "updown_sample_type" in arguments  # the factors, by linear maps
    factor = {} if shown else {key: arguments[key] for key in arguments if key.startswith("sho")}
    stated = read(full).config
    for said in ({"heads": 3}, {"dim_head": 8}):
        model = package.build(**{k: tuples(v) for k, v in {**WIDTH, **arguments}.items()})
        folder = package.write(tmp_path / "silent", model, {**said, "causal": True, **factor})
        assert read(folder).config == stated


@pytest.mark.parametrize("changes, words", [
    ({"dim": 20}, "does not fit its config.json: token_emb.weight is 23 × 16, and config.json says "
     "23 × 20. Correct config.json, or choose another file."),
    ({"heads": None, "dim_head": None, "causal": None},
     "theirs/config.json does not say heads and causal: the weights do not show them. "
     'Add "heads": 8 (or as many as there were), "causal": true or false.'),
    ({"heads": 3, "dim_head": None}, "heads 3 does not divide the width of the heads"),
    ({"heads": 0}, "heads: Expected int >= 1"),
    ({"heads": 10**9}, "heads: Expected int <="),
    ({"depth": [1, [1, 10**9, 1], 1]}, "all have at most 1,000"),
    ({"depth": [1, 2]}, "a depth is a number or (before, inner, after)"),
    ({"depth": "deep"}, "depth: Expected"),
    ({"depth": json.loads("[1," * 40 + "1" + ",1]" * 40)}, "nested more than 16 deep"),
    ({"shorten_factor": [2]}, "shorten_factor [2] is no number >= 2 for each of its 2 levels"),
    ({"shorten_factor": 10**9}, "shortens by more than 65,536"),
    ({"shorten_factor": [2, 3]}, "does not fit"),
    ({"depth": 4}, "gives a shorten_factor to a model that does not shorten"),
    ({"causal": "yes"}, "causal: Expected bool"),
    ({"heds": 3}, "hgviz knows no heds"),
    ({"masking": "loose"}, "masking: Invalid enum value 'loose'"),
])  # fmt: skip
def test_a_config_of_the_package_is_checked(tmp_path, lucidrains, changes, words):
    folder = package.write(tmp_path / "theirs", lucidrains, GIVEN)
    assert words in str(refusal(configured(folder, **changes)))


def test_factors_of_averages_are_asked_for(tmp_path):
    naive = package.build(**{**ARGUMENTS, "updown_sample_type": "naive"})
    folder = package.write(tmp_path / "naive", naive, {"heads": 2, "causal": True})
    assert "does not say shorten_factor" in str(refusal(folder))


def test_a_state_dict_of_another_model_is_named(tmp_path, lucidrains):
    folder = package.write(tmp_path / "theirs", lucidrains, {"heads": 2, "causal": True})
    for wrong in ("to_q", "to_kv"):  # a number in place of a matrix
        state = lucidrains.state_dict().items()
        torch.save({name: torch.tensor(1.0) if wrong in name else one for name, one in state},
                   folder / "model.pt")  # fmt: skip
        assert "theirs/" in str(refusal(folder))
    for state in ({"wte.weight": torch.zeros(3, 3)}, {"token_emb.weight": torch.zeros(3)},
                  {"token_emb.weight": torch.zeros(3, 0)}):  # fmt: skip
        torch.save(state, folder / "model.pt")
        assert re.search("weights are of another model|is damaged", str(refusal(folder)))
    (folder / "model.pt").unlink()
    save_file({}, folder / "model.safetensors")
    assert "these weights are of another model" in str(refusal(folder))


# --- dynamic-pooling ------------------------------------------------------------------------------

SYMBOLS = [" ", *"etaoinshr", "\n", '"']
SIZES = {"n_token": 12, "n_head": 2, "d_model": 8, "d_head": 3, "d_inner": 10}
OWN = {"vocab_size": 12, "n_heads": 2, "d_model": 8, "d_head": 3, "d_ff": 10, "family": "dynamic",
       "feed_forward": "gelu", "shorten_factor": 3, "whitespace_id": 0}  # fmt: skip
IDS = np.random.default_rng(1).integers(0, 12, 19)
PLACES = [  # names of that program
    ("embed.token", "word_emb"), ("lm_head", "final_cast"), ("down.0.ln", "down_ln"),
    ("rel.content_bias", "r_w_bias"), ("rel.position_bias", "r_r_bias"),
    ("down.0.null", "null_group"), ("down.0.boundary", "boundary_predictor.boundary_predictor"),
    ("boundary_predictor.in", "boundary_predictor.0"),
    ("boundary_predictor.out", "boundary_predictor.2"),
    ("pre.0.", "layers.0."), ("post.0.", "layers.2."), ("attn.r.", "dec_attn.r_net."),
    ("attn.o.", "dec_attn.o_net."), ("ln_attn", "dec_attn.layer_norm"),
    ("ff.in", "pos_ff.CoreNet.0"), ("ff.out", "pos_ff.CoreNet.3"),
    ("ln_ff", "pos_ff.layer_norm"),
]  # fmt: skip
VOCABULARY = types.ModuleType("utils.vocabulary")
VOCABULARY.Vocab = type("Vocab", (), {"__module__": "utils.vocabulary"})


@pytest.fixture
def program(monkeypatch):
    """The module of a class that only the program has, as its objects are pickled."""
    monkeypatch.setitem(sys.modules, "utils", types.ModuleType("utils"))
    monkeypatch.setitem(sys.modules, "utils.vocabulary", VOCABULARY)


def vocab(symbols=SYMBOLS):
    made = VOCABULARY.Vocab()
    made.counter, made.idx2sym = Counter(symbols), list(symbols)
    made.sym2idx = OrderedDict((one, at) for at, one in enumerate(symbols))
    return made


def tensors_of(own="learned", layers=(1, 2, 1)):
    """Random tensors by neutral names, and the same under that program's."""
    config = parse_config({**OWN, "boundaries": own, "n_layers": list(layers)})
    random, state, fused = torch.Generator().manual_seed(0), {}, {}
    neutral = {name: torch.randn(shape, generator=random) / 2
               for name, shape in shapes_of(config).items()}  # fmt: skip
    for name, tensor in neutral.items():
        theirs = name.replace("middle.", f"layers.{int(len(layers) > 1)}.")
        for ours, other in PLACES:
            theirs = theirs.replace(ours, other)
        if match := re.search(r"attn\.([qkv])\.", theirs):
            theirs = theirs.replace(match[0], "dec_attn.qkv_net.")
            fused.setdefault(theirs, {})[match[1]] = tensor
        else:
            state[theirs] = tensor[None, None] if theirs == "null_group" else tensor
    state |= {name: torch.cat([one[part] for part in "qkv"]) for name, one in fused.items()}
    return neutral, {**state, "pos_emb.inv_freq": torch.ones(4)}


def write(folder, kind="gumbel", layers=(1, 2, 1), name="checkpoint_last.pt", **changes):
    """A file as that program's training leaves it; changes: of its parts."""
    folder.mkdir(exist_ok=True)
    before, between, after = layers if len(layers) > 1 else (*layers, 0, 0)
    model = {**SIZES, "dropout": 0.1, "dropatt": 0.0, "pre_lnorm": False, "spikes_left": 2,
             "model_config": f"[{before}, ({between},), {after}]", "boundaries_type": kind,
             "activation_function": "gelu", "temp": 0.5, "prior": 0.2,
             **changes.pop("model", {})}  # fmt: skip
    args = argparse.Namespace(**model, fixed_sf=3, tokenizer_path="./spm", cuda=True, work_dir="x")
    held = changes.pop("held", None) or tensors_of(layers=layers)[1]
    parts = {"args": args, "model_config": model, "model_state": held, "vocab": vocab(),
             "optimizer_state": {"state": {0: {"step": 3}}, "param_groups": [{"lr": 1e-3}]},
             "scheduler_state": {"last_epoch": 3}, "scaler": {}, "epoch": 1}  # fmt: skip
    torch.save({**parts, **changes}, folder / name)
    return folder


@pytest.mark.parametrize("kind, own, layers", [
    ("gumbel", "learned", (1, 2, 1)), ("entropy", "entropy", (2, 1, 0)),
    ("unigram", "unigram", (0, 1, 1)), ("fixed", "fixed", (1, 1, 1)),
    ("whitespaces", "whitespace", (1, 1, 1)), ("none", "learned", (2,)),
])  # fmt: skip
def test_a_checkpoint_gives_the_logits_of_the_formulas(tmp_path, program, kind, own, layers):
    neutral, held = tensors_of(own, layers)
    model = open_model(write(tmp_path / kind, kind, layers, held=held), dtype="float64")
    assert (model.config.boundaries, model.config.shortens) == (own, kind != "none")
    config = {**OWN, "n_layers": layers, "boundaries": own}
    wanted, _, _ = forward(neutral, config, IDS)
    np.testing.assert_allclose(model.run(IDS).logits, wanted, atol=1e-9)
    prompt = model.tokenize('the "sea"\n')
    assert prompt.has_characters and prompt.spans[:, 0].tolist() == list(range(10))
    assert [SYMBOLS[one] for one in prompt.ids] == list('the "sea"\n')


def test_it_is_converted_captured_pruned_and_gone_on_with(tmp_path, program):
    folder, own, out = write(tmp_path / "m"), tmp_path / "own", tmp_path / "c.h5"
    assert call("convert", folder, "-o", own) == 0
    names = {one.name for one in own.iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json"}
    a, b = open_model(folder), open_model(own)
    np.testing.assert_array_equal(a.run(IDS).logits, b.run(IDS).logits)
    assert a.spec.digest == b.spec.digest
    assert call("capture", folder, "--text", "the rain", "--generate", 6, "-o", out) == 0
    assert call("rollout", out, "-o", tmp_path / "r.npy") == 0
    checkpoint, off = read(folder), frozenset({HeadId(1, 0)})
    smaller = write_pruned(checkpoint, off, "smaller", tmp_path / "small")
    assert open_model(smaller.parent).run(IDS).logits.shape == (19, 12)
    with pytest.raises(HgvizError, match="more than tensors"):
        write_pruned(checkpoint, off, "zeroed", tmp_path / "zeroed")
    assert checkpoints.tokenizer_json(checkpoint) == checkpoint.tokenizer
    with pytest.raises(HgvizError, match="could not read this text"):
        a.tokenize("Ω")
    words = open_model(write(tmp_path / "words", vocab=vocab(["the", *SYMBOLS[1:]])))
    with pytest.raises(HgvizError, match="cannot read text"):
        words.tokenize("the")
    wrapped = {f"module.{name}": one for name, one in tensors_of()[1].items()}
    write(tmp_path / "b", held=wrapped, name="checkpoint_10000.pt")
    other = open_model(tmp_path / "b" / "checkpoint_10000.pt")
    np.testing.assert_array_equal(other.run(IDS).logits, a.run(IDS).logits)


class Evil:
    def __reduce__(self):
        return print, ("this must never run",)


def state(without="", **more):
    found = {**tensors_of()[1], **more}
    return {name: tensor for name, tensor in found.items() if name != without}


QUERY = "layers.1.0.dec_attn.r_net.weight"
BROKEN = {
    "code": ({"epoch": Evil()}, "holds more than tensors"),
    "another class": ({"epoch": types.SimpleNamespace(a=1)}, "holds more than tensors"),
    "no state": ({"model_state": None}, "no model_state"),
    "nothing in it": ({"model_state": {}}, "no state dict"),
    "names": ({"model_state": {3: torch.zeros(1)}}, "no names"),
    "no tensors": ({"model_state": {"a": [1]}}, "no tensor"),
    "stride 0": ({"held": state(r_w_bias=torch.zeros(1).expand(2**40))}, "damaged"),
    "no kind": ({"model": {"boundaries_type": None}}, "boundaries_type"),
    "another kind": ({"model": {"boundaries_type": ["gumbel"]}}, "boundaries_type"),
    "pre-norm": ({"model": {"pre_lnorm": True}}, "pre_lnorm"),
    "no depth": ({"model": {"model_config": None}}, "model_config"),
    "depth that is code": ({"model": {"model_config": "exec('a = 1')"}}, "model_config"),
    "endless depth": ({"model": {"model_config": "[" * 5000}}, "model_config"),
    "endless number": ({"model": {"model_config": f"[1, ({'9' * 5000},), 1]"}}, "model_config"),
    "negative depth": ({"model": {"model_config": "[1, (-2,), 1]"}}, "model_config"),
    "1e9 layers": ({"model": {"model_config": "[1, (1000000000,), 1]"}}, "n_layers"),
    "many layers": ({"model": {"model_config": "[1, (1000,), 1]"}}, "1,002 layers"),
    "no width": ({"model": {"d_model": None}}, "d_model"),
    "a width that is none": ({"model": {"d_model": "8"}}, "d_model"),
    "a missing array": ({"held": state(QUERY)}, f"{QUERY} is none"),
    "an array too many": ({"held": state(extra=torch.zeros(3))}, "extra is 3"),
    "another shape": ({"held": state(null_group=torch.zeros(1, 8))}, "null_group is 1 × 8"),
    "not a number": ({"held": state(r_w_bias=torch.full((2, 3), torch.nan))}, "no numbers"),
    "no vocabulary": ({"kind": "whitespaces", "vocab": None}, "whitespace_id"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_is_none_is_one_error(tmp_path, program, capsys, case):
    changes, words = BROKEN[case]
    assert words in refusal(write(tmp_path / "m", **changes)).what
    assert "must never" not in capsys.readouterr().out


def test_files_that_look_like_one_are_one_error(tmp_path, program):
    file = write(tmp_path / "m") / "checkpoint_last.pt"
    data = file.read_bytes()
    for broken in (data[: len(data) // 2], b"", b"PK\x03\x04", data[:-30]):
        file.write_bytes(broken)
        refusal(file.parent)
    (file.parent / "config.json").write_text(json.dumps({"model_type": "strange"}))
    assert "cannot run" in str(refusal(file.parent))
    with zipfile.ZipFile(tmp_path / file.name, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", b"model_config model_state" + bytes(1 << 24))
    assert foreign.nawrot_file(tmp_path) is not None  # only its beginning is read
    assert "declares" in str(refusal(tmp_path))


# --- trax -----------------------------------------------------------------------------------------


class Weights(dict):
    """Weights by neutral names, in the order in which a program first reads them."""

    def __init__(self, shapes, random):
        super().__init__()
        self.shapes, self.random = shapes, random

    def __missing__(self, name):
        shape = self.shapes[name]
        self[name] = self.random.normal(size=shape) * (0.3 if len(shape) == 1 else 0.6)
        if name.endswith(("ln_out.weight", "ln_in.weight")):
            self[name] += 1
        return self[name]


class Trax(Official):
    """The official Hourglass as trax runs it, whose texts begin with token 0.

    flat: its weights in trax's order and layout, dense layers as (in, out).
    """

    def __init__(self, counts=((1,), 1, (1,)), factors=(3,), down=(True, "average"),
                 up=(True, "linear"), *, vocabulary=11):  # fmt: skip
        (pre, middle, post), totals = counts, np.cumprod(factors)
        rows = [*zip(pre, (1, *totals), strict=False), (middle, totals[-1]),
                *reversed([*zip(post, (1, *totals), strict=False)])]  # fmt: skip
        keys = {}
        for side, (attends, base) in (("down", down), ("up", up)):
            keys[f"{side}sampling"] = "attention" if attends else base
            keys |= {f"attention_{side}sampling": base} if attends else {}
        config = make_config(
            hierarchy=" ".join(f"{count}@{factor}" for count, factor in rows), n_heads=3,
            vocab_size=vocabulary, **keys,
        )  # fmt: skip
        weights = Weights(shapes_of(config), np.random.default_rng(0))
        super().__init__(weights, counts, factors, 3, down=down, up=up)
        self.logits(np.zeros(int(totals[-1]), int))  # draws all weights

    @property
    def flat(self):
        return [
            part[None, :, None] if name.startswith("rel.")
            else part.T if part.ndim == 2 and name != "embed.token.weight" else part
            for name, part in self.w.items()
        ]  # fmt: skip


ONE, TWO = ((1,), 2, (1,)), ((2, 1), 1, (1, 1))
MODELS = {  # how a model is made; what its weights do not show, as people say it
    "the defaults": ({"counts": ONE}, {}),
    "naive, as for enwik8": (
        {"counts": ONE, "up": (True, "repeat")},
        {"hierarchy": "2@3", "attention_upsampling": "repeat"},
    ),
    "linear, as for images": ({"counts": ONE, "down": (True, "linear")}, {}),
    "nothing to begin with, nested": (
        {"counts": TWO, "factors": (2, 3), "up": (True, "none")},
        {"hierarchy": "2@1 1@2 1@6 1@2 1@1", "attention_upsampling": "none"},
    ),
    "nested": ({"counts": TWO, "factors": (3, 2)}, {}),
    "linear both ways": ({"down": (False, "linear"), "up": (False, "linear")}, {}),
    "averages both ways": (
        {"down": (False, "average"), "up": (False, "repeat")}, {"hierarchy": "1@1 1@3 1@1"},
    ),
    "attention down alone": ({"up": (False, "repeat")}, {"hierarchy": "1@3"}),
    "attention up alone": ({"counts": TWO, "factors": (2, 2), "down": (False, "average")}, {}),
    "no layers outside": ({"counts": ((0,), 1, (0,))}, {}),
}  # fmt: skip
BEGUN = np.concatenate([[0], np.random.default_rng(5).integers(1, 11, 12)])


def export(at, model, **changes):
    """The .npz of its weights, some of them changed; None removes one."""
    arrays = {**model.w, **changes}
    np.savez(at, **{name: one for name, one in arrays.items() if one is not None})
    return at


def refused(path, **said):
    """The one line that refuses a file."""
    with pytest.raises(HgvizError) as caught:
        read_trax(path, **said)
    line = " ".join((caught.value.what, caught.value.do))
    assert "\n" not in line and len(line) < 400
    return line


@pytest.mark.parametrize("made, said", MODELS.values(), ids=MODELS.keys())
def test_what_is_converted_computes_as_trax_does(tmp_path, made, said):
    theirs = Trax(**made)
    spec = tasks.convert(export(tmp_path / "w.npz", theirs), tmp_path / "out", **said)
    ours, wanted = open_model(tmp_path / "out", dtype="float64"), theirs.logits(BEGUN[:12])
    for ids in (BEGUN[:12], BEGUN):  # 13 is no multiple of any factor
        assert np.abs(ours.run(ids).logits[:12] - wanted).max() < 1e-9
    assert len(spec.layers) == len(theirs.maps)
    for one, other in zip(maps_of(ours, BEGUN[:12])[1], theirs.maps, strict=True):
        assert one.shape == other.shape and np.abs(one - other).max() < 1e-5


def test_the_documented_export_names_the_flat_weights(tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs/reference/opens.md").read_text(encoding="utf-8")
    script = re.search(r"```python\nimport gin, numpy as np, trax\n(.*?)```", text, re.S)[1]
    theirs, trax = Trax(((5,), 24, (5,)), up=(True, "repeat"), vocabulary=256), MagicMock()
    trax.layers.base.flatten_weights_and_state.return_value = (theirs.flat, ())
    monkeypatch.chdir(tmp_path)
    exec(script, {"gin": MagicMock(), "np": np, "trax": trax})
    with np.load("enwik8.npz") as held:
        assert held.files == list(theirs.w)
        assert all((held[name] == one).all() for name, one in theirs.w.items())


def test_bytes_begin_with_a_token_of_their_own(tmp_path):
    theirs = Trax(vocabulary=256)
    tasks.convert(export(tmp_path / "w.npz", theirs), tmp_path / "out")
    ours = open_model(tmp_path / "out", dtype="float64")
    text = "a\0 나\r\n" + "".join(map(chr, range(1, 128))) + "[BOS"
    prompt = ours.tokenize(text)
    assert prompt.ids.tolist() == [0, *text.encode()] and prompt.text == text
    assert prompt.pieces[:2] == (BEGIN, "a")
    assert prompt.spans[:3].tolist() == [[-1, -1], [0, 1], [1, 2]]
    wanted = theirs.logits(prompt.ids[:12])
    assert np.abs(ours.run(prompt.ids[:12]).logits - wanted).max() < 1e-9


def words(at):
    """A tokenizer.json of words that ends texts with a token of its own."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocab = {"<pad>": 0, "</s>": 1, "a": 2, "b": 3, "<unk>": 4}
    tokenizer = Tokenizer(models.WordLevel(vocab, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("$A </s>", "$A </s> $B", [("</s>", 1)])
    tokenizer.save(str(at))
    return at


def test_a_tokenizer_is_made_to_begin_with_its_token_0(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for place in (words(other / "any.json"), words(other / "tokenizer.json").parent, None):
        file = export((tmp_path if place else other) / "w.npz", Trax())
        tasks.convert(file, tmp_path / "out", force=True, tokenizer=place)
        prompt = open_model(tmp_path / "out").tokenize("a b")
        assert prompt.ids.tolist() == [0, 2, 3]
        assert prompt.pieces == ("<pad>", "a", "b")
    file = export(tmp_path / "w.npz", Trax(vocabulary=4))
    (tmp_path / "bad.json").write_text("{}")
    for place, line in (
        (other / "any.json", "the model's ids end at 3"), (tmp_path, "has no tokenizer.json"),
        (tmp_path / "none.json", "No such file"), (tmp_path / "bad.json", "could not be read"),
    ):  # fmt: skip
        assert line in refused(file, tokenizer=place)


def test_what_weights_do_not_show_is_asked_in_one_line(tmp_path):
    made = {"counts": TWO, "factors": (2, 2), "up": (True, "repeat")}
    file = export(tmp_path / "w.npz", Trax(**made))
    line = refused(file)
    assert "how far it shortens and what attention on the way up begins with" in line
    assert '--hierarchy "2@1 1@K1 1@K2 1@K1 1@1"' in line
    assert "--attention-upsampling repeat (NaiveUpsampling) or none (NoUpsampling)" in line
    assert "--attention-upsampling" in refused(file, hierarchy="2@1 1@2 1@4 1@2 1@1")
    assert "do not tell how far it shortens Give" in refused(file, attention_upsampling="none")
    for up, reason in (((True, "linear"), "a linear map comes first there"),
                       ((False, "linear"), "nothing attends there")):  # fmt: skip
        file = export(tmp_path / "v.npz", Trax(up=up))
        assert reason in refused(file, attention_upsampling="none")
    file = export(tmp_path / "w.npz", Trax(ONE))
    for said in ("1@1 2@3 2@1", "1@1 1@3 1@1", "1@1 2@4 1@1", "4@3", "1@1 1@2 2@6 1@2 1@1"):
        assert "its weights are of '1@1 2@3 1@1'" in refused(file, hierarchy=said)
    for said in ("1@1 2@3", "", "2@1 3@1 2@1", "x"):
        assert "cannot be built" in refused(file, hierarchy=said)


def npy(header, data=b""):
    """A .npy file with a header that claims whatever it likes."""
    text = (repr(header) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def claims(shape, descr="<f8", data=b""):
    return npy({"descr": descr, "fortran_order": False, "shape": shape}, data)


NONE, SPOILT = "is damaged", np.full((11, 12), np.nan)
OTHER_KINDS = ("<i8", "|S4", "<c16", "<f16", [("a", "<f8")], "|V2")
CHANGED = [  # arrays under neutral names
    ({"middle.1.ff.out.bias": None}, "middle.1.ff.out.bias is none"),
    ({"up.0.attn.q.weight": np.ones((12, 3))}, "up.0.attn.q.weight is 12 × 3"),
    ({"surplus": np.ones(2)}, "surplus is 2"),
    ({"rel.content_bias": None}, "rel.content_bias is not there"),
    ({"embed.token.weight": np.ones(3)}, "embed.token.weight is 3"),
    ({"embed.token.weight": SPOILT}, "embed.token.weight has 132 NaN or infinite values"),
    ({"odd": np.array([print, "a"], dtype=object)}, "odd is Python objects"),
]
STRANGE = [  # entries of the archive, and how they are packed
    *((claims(shape, data=b"\0" * 8), 8, NONE)
      for shape in ((2**40,), (2**31, 2**31), (3,), (-1,), (0, 8), (1,) * 40)),
    (claims((2**22,), data=bytes(2**25)), 8, "bytes in a file of"),
    *((claims((1,), kind, bytes(16)), 8, "") for kind in OTHER_KINDS),
    *((data, 8, NONE) for data in (
        b"", b"\x93NUMPY", b"no array", b"\x93NUMPY\x09\x00" + bytes(20), npy("x"),
        npy({"shape": (1,)}), b"\x93NUMPY\x01\x00\xff\xff((((((" + b"(" * 70000)),
    (claims((1,), data=bytes(8)), zipfile.ZIP_LZMA, "it is packed as numpy packs nothing"),
]  # fmt: skip


def test_arrays_that_are_not_of_a_model_are_refused(tmp_path):
    at = tmp_path / "w.npz"
    for changes, line in CHANGED:
        assert line in refused(export(at, Trax(ONE), **changes))
    for data, packing, line in STRANGE:
        with zipfile.ZipFile(at, "w", packing) as archive:
            archive.writestr("arr_0.npy", data)
        assert re.search(line or "holds something else than weights|is damaged", refused(at))
    with zipfile.ZipFile(at, "w") as archive:
        archive.writestr("a\nb.npy", claims((1,), data=bytes(8)))
    assert NONE in refused(at)
    zipfile.ZipFile(at, "w").close()
    assert "it holds no arrays" in refused(at)


def test_a_broken_archive_is_refused_and_other_orders_of_bytes_change_nothing(tmp_path):
    at, model = tmp_path / "w.npz", Trax()
    data, digest = export(at, model).read_bytes(), read_trax(at).digest
    for cut in (0, 1, 30, len(data) // 2, len(data) - 1):
        at.write_bytes(data[:cut])
        assert NONE in refused(at)
    broken = bytearray(data)
    broken[200] ^= 255  # the checksum of its array no longer fits
    at.write_bytes(broken)
    assert NONE in refused(at)
    turned = {n: np.asfortranarray(one).astype(">f8") for n, one in model.w.items()}
    np.savez_compressed(at, **turned)
    assert read_trax(at).digest == digest


def test_the_command_asks_converts_and_tells(refusal, facts, output, tmp_path):
    made = Trax(ONE, up=(True, "repeat"), vocabulary=256)
    file, out = export(tmp_path / "w.npz", made), tmp_path / "out"
    refusal("convert", file, "-o", out)
    assert not out.exists()
    shape = ("--hierarchy", "2@3")
    said = output("convert", file, "-o", out, *shape, "--attention-upsampling", "repeat")
    assert said.splitlines()[1] == "Its texts begin with token 0, as trax puts one before them."
    told = facts("info", out)
    assert (told["family"], told["form"]) == ("hourglass", "official")
    refusal("convert", out, "-o", tmp_path / "b", *shape, code=2)
    other = export(tmp_path / "v.npz", Trax())
    assert "give --ids that begin with 0" in output("convert", other, "-o", tmp_path / "v")
    refusal("capture", other, "--text", "a", "-o", tmp_path / "a.h5")
    (tmp_path / "x.npz").mkdir()
    other.rename(tmp_path / "x.pt")
    for name in ("x.npz", "none.npz", "x.pt"):  # names say nothing of what is in a file
        refusal("convert", tmp_path / name, "-o", tmp_path / "c")
