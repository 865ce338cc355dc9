"""Hourglasses of other programs compute as they do there: hourglass-transformer-pytorch (maps and
masks included), dynamic-pooling, and trax; and files of strangers are one error, in a line."""

import argparse
import json
import re
import sys
import types
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.models import open_model
from hgviz.models.config import parse_config, shapes_of
from hgviz.models.foreign import BEGIN, read_trax
from tests.models import references
from tests.models.building import make_config
from tests.models.references import Official, run_segments
from tests.models.test_checkpoints import ARGUMENTS, GIVEN, configured, refusal
from tests.models.test_references import maps_of

# --- hourglass-transformer-pytorch ----------------------------------------------------------------

WIDTH = {"num_tokens": 29, "dim": 24, "max_seq_len": 320, "heads": 3, "dim_head": 8}
NESTED = [1, [1, 2, 1], 2]
PLAIN, LINEAR = {"attn_resampling": False}, {"updown_sample_type": "linear"}
CASES = {  # depth, shorten_factor, whether causal, other arguments, length, mask
    "flat, both ways, padded at the right": (3, None, False, {}, 11, "right"),
    "nested, padded at the left": (NESTED, [3, 2], True, {}, 20, "left"),
    "both ways, nested, holes in the mask": (NESTED, 2, False, {}, 15, "holes"),
    "three levels down, one factor for all": ([1, NESTED, 1], 2, True, LINEAR, 23, None),
    "longer than a tile": ([1, 1, 1], 3, True, {}, 301, None),
}


def tuples(value):
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def built(folder, arguments, **extra):
    """A model of the package, and its checkpoint."""
    model = references.build_package(**{name: tuples(value) for name, value in arguments.items()})
    return model, references.write_package(folder, model, arguments, **extra)


def mask_of(kind, length):
    mask = np.ones((2, length), bool)
    if kind == "holes":
        mask[1, 2:7] = mask[1, -2:] = mask[0, 0] = False
    elif kind is not None:
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
    expected = [references.maps_of_package(theirs, ids[row], None if mask is None else mask[row])
                for row in range(2)]  # fmt: skip
    for dtype, tolerance in (("float64", 1e-9), ("float32", 5e-5)):
        ours = open_model(folder, dtype=dtype)
        logits = ours.run(ids, attention_mask=mask).logits
        assert np.abs(logits - references.logits_of_package(theirs, ids, mask)).max() <= tolerance
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


@pytest.fixture(scope="module")
def lucidrains():
    return references.build_package(**ARGUMENTS)


def test_state_dicts_open_whatever_wrapped_them(tmp_path, lucidrains):
    theirs, digests = references.logits_of_package(lucidrains, np.arange(11)[None])[0], set()
    for name, prefix in (
        ("model.pt", ""), ("weights.pt", "net."), ("model.safetensors", "module."),
        ("model.safetensors", "module.net."),
    ):  # fmt: skip
        at = tmp_path / f"{name}{prefix}"
        folder = references.write_package(at, lucidrains, GIVEN, prefix, name)
        for path in (folder, folder / name):
            ours = open_model(path, dtype="float64")
            assert np.abs(ours.run(np.arange(11)).logits - theirs).max() < 1e-9
            digests.add(ours.spec.digest)
    model = references.build_package(seed=1, **ARGUMENTS)
    other = references.write_package(tmp_path / "other", model, GIVEN)
    assert len(digests) == 1 and open_model(other).spec.digest not in digests


WRONG = [  # changes of config.json, what is said
    ({"dim": 20}, "token_emb.weight is 23 × 16, and config.json says 23 × 20"),
    ({"heads": None, "dim_head": None, "causal": None}, "does not state heads and causal"),
    ({"depth": [1, [1, 10**9, 1], 1]}, "at most 1,000 layers"),
    ({"depth": json.loads("[1," * 40 + "1" + ",1]" * 40)}, "nested more than 16 levels deep"),
    ({"shorten_factor": [2]}, "shorten_factor [2] must be a number >= 2 for each of its 2 levels"),
    ({"masking": "loose"}, "masking: Invalid enum value 'loose'"),
]  # fmt: skip


def test_a_config_of_the_package_is_checked(tmp_path, lucidrains):
    for changes, words in WRONG:
        folder = references.write_package(tmp_path / "theirs", lucidrains, GIVEN)
        assert words in str(refusal(configured(folder, **changes)))


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
    ("whitespaces", "whitespace", (1, 1, 1)), ("none", "learned", (2,)),
])  # fmt: skip
def test_a_checkpoint_gives_the_logits_of_the_formulas(tmp_path, program, kind, own, layers):
    neutral, held = tensors_of(own, layers)
    model = open_model(write(tmp_path / kind, kind, layers, held=held), dtype="float64")
    assert (model.config.boundaries, model.config.shortens) == (own, kind != "none")
    config = {**OWN, "n_layers": layers, "boundaries": own}
    wanted, _, _ = run_segments(neutral, config, IDS)
    np.testing.assert_allclose(model.run(IDS).logits, wanted, atol=1e-9)
    prompt = model.tokenize('the "sea"\n')
    assert prompt.has_characters and prompt.spans[:, 0].tolist() == list(range(10))
    assert [SYMBOLS[one] for one in prompt.ids] == list('the "sea"\n')


class Evil:
    def __reduce__(self):
        return print, ("this must never run",)


def state(without="", **more):
    found = {**tensors_of()[1], **more}
    return {name: tensor for name, tensor in found.items() if name != without}


QUERY = "layers.1.0.dec_attn.r_net.weight"
BROKEN = {
    "code": ({"epoch": Evil()}, "contains more than tensors"),
    "no state": ({"model_state": None}, "no model_state"),
    "stride 0": ({"held": state(r_w_bias=torch.zeros(1).expand(2**40))}, "damaged"),
    "pre-norm": ({"model": {"pre_lnorm": True}}, "pre_lnorm"),
    "depth that is code": ({"model": {"model_config": "exec('a = 1')"}}, "model_config"),
    "endless depth": ({"model": {"model_config": "[" * 5000}}, "model_config"),
    "1e9 layers": ({"model": {"model_config": "[1, (1000000000,), 1]"}}, "n_layers"),
    "a missing array": ({"held": state(QUERY)}, f"{QUERY} is none"),
    "not a number": ({"held": state(r_w_bias=torch.full((2, 3), torch.nan))}, "NaN or infinite"),
    "no vocabulary": ({"kind": "whitespaces", "vocab": None}, "whitespace_id"),
}


def test_a_file_that_is_none_is_one_error(tmp_path, program, capsys):
    for case, (changes, words) in BROKEN.items():
        assert words in refusal(write(tmp_path / "m", **changes)).what, case
    assert "must never" not in capsys.readouterr().out


# --- trax -----------------------------------------------------------------------------------------


class Trax(Official):
    """The official Hourglass as trax runs it, whose texts begin with token 0."""

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
        random, weights = np.random.default_rng(0), {}
        for name, shape in shapes_of(config).items():
            weights[name] = random.normal(size=shape) * (0.3 if len(shape) == 1 else 0.6)
            weights[name] += name.endswith(("ln_out.weight", "ln_in.weight"))
        super().__init__(weights, counts, factors, 3, down=down, up=up)


ONE, TWO = ((1,), 2, (1,)), ((2, 1), 1, (1, 1))
MODELS = {  # how a model is made; what its weights do not show, as people say it
    "the defaults": ({"counts": ONE}, {}),
    "naive, as for enwik8": (
        {"counts": ONE, "up": (True, "repeat")},
        {"hierarchy": "2@3", "attention_upsampling": "repeat"},
    ),
    "nothing to begin with, nested": (
        {"counts": TWO, "factors": (2, 3), "up": (True, "none")},
        {"hierarchy": "2@1 1@2 1@6 1@2 1@1", "attention_upsampling": "none"},
    ),
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


def test_what_weights_do_not_show_is_asked_in_one_line(tmp_path):
    made = {"counts": TWO, "factors": (2, 2), "up": (True, "repeat")}
    file = export(tmp_path / "w.npz", Trax(**made))
    assert '--hierarchy "2@1 1@K1 1@K2 1@K1 1@1"' in refused(file)
    assert "--attention-upsampling" in refused(file, hierarchy="2@1 1@2 1@4 1@2 1@1")
    assert "do not show the shortening factors Run" in refused(file, attention_upsampling="none")
    file = export(tmp_path / "w.npz", Trax(ONE))
    assert "its weights have '1@1 2@3 1@1'" in refused(file, hierarchy="4@3")
    assert "is invalid" in refused(file, hierarchy="1@1 2@3")


def npy(header, data=b""):
    """A .npy file with a header that claims whatever it likes."""
    text = (repr(header) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def claims(shape, descr="<f8", data=b""):
    return npy({"descr": descr, "fortran_order": False, "shape": shape}, data)


NONE, SPOILT = "is damaged", np.full((11, 12), np.nan)
OTHER_KINDS = ("<i8", "<c16", [("a", "<f8")])
CHANGED = [  # arrays under neutral names
    ({"middle.1.ff.out.bias": None}, "middle.1.ff.out.bias is none"),
    ({"up.0.attn.q.weight": np.ones((12, 3))}, "up.0.attn.q.weight is 12 × 3"),
    ({"embed.token.weight": SPOILT}, "132 of 132 values of embed.token.weight"),
    ({"odd": np.array([print, "a"], dtype=object)}, "odd is Python objects"),
]
STRANGE = [  # entries of the archive, and how they are packed
    *((claims(shape, data=b"\0" * 8), 8, NONE)
      for shape in ((2**31, 2**31), (-1,), (1,) * 40)),
    (claims((2**22,), data=bytes(2**25)), 8, "bytes in a file of"),
    *((claims((1,), kind, bytes(16)), 8, "") for kind in OTHER_KINDS),
    *((data, 8, NONE) for data in (
        b"", b"\x93NUMPY\x09\x00" + bytes(20), npy("x"),
        b"\x93NUMPY\x01\x00\xff\xff((((((" + b"(" * 70000)),
    (claims((1,), data=bytes(8)), zipfile.ZIP_LZMA, "it is compressed in a way"),
]  # fmt: skip


def test_arrays_that_are_not_of_a_model_are_refused(tmp_path):
    at = tmp_path / "w.npz"
    for changes, line in CHANGED:
        assert line in refused(export(at, Trax(ONE), **changes))
    for data, packing, line in STRANGE:
        with zipfile.ZipFile(at, "w", packing) as archive:
            archive.writestr("arr_0.npy", data)
        assert re.search(line or "contains more than weights|is damaged", refused(at))
    with zipfile.ZipFile(at, "w") as archive:
        archive.writestr("a\nb.npy", claims((1,), data=bytes(8)))
    assert NONE in refused(at)
    zipfile.ZipFile(at, "w").close()
    assert "it contains no arrays" in refused(at)
