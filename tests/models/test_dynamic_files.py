"""What the program dynamic-pooling saves: read without running any of it, and refused in words."""

import argparse
import json
import sys
import types
import zipfile
from collections import Counter, OrderedDict

import numpy as np
import pytest
import torch

from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model
from hgviz.models.formats import conversion, readers
from hgviz.models.surgery.export import written
from tests.models.segments import forward
from tests.test_families import call

SYMBOLS = [" ", *"etaoinshr", "\n", '"']
SIZES = {"n_token": 12, "n_head": 2, "d_model": 8, "d_head": 3, "d_inner": 10}
IDS = np.random.default_rng(1).integers(0, 12, 19)

MODULE = types.ModuleType("utils.vocabulary")
MODULE.Vocab = type("Vocab", (), {"__module__": "utils.vocabulary"})


@pytest.fixture(autouse=True)
def _program(monkeypatch):
    monkeypatch.setitem(sys.modules, "utils", types.ModuleType("utils"))
    monkeypatch.setitem(sys.modules, "utils.vocabulary", MODULE)


def vocab(symbols=SYMBOLS):
    """An object of a class that only the program has, as it is pickled there."""
    made = MODULE.Vocab()
    made.counter, made.idx2sym = Counter(symbols), list(symbols)
    made.sym2idx = OrderedDict((one, at) for at, one in enumerate(symbols))
    return made


def state(layers, predictor, seed=0):
    """Tensors under that program's names, by layers (before, between, after) or (n,)."""
    d, inner = SIZES["d_model"], SIZES["d_inner"]
    wide = SIZES["n_head"] * SIZES["d_head"]
    shapes = {
        "word_emb.weight": (12, d), "r_w_bias": (2, 3), "r_r_bias": (2, 3),
        "final_cast.weight": (12, d), "final_cast.bias": (12,), "pos_emb.inv_freq": (d // 2,),
    }  # fmt: skip
    if len(layers) > 1:
        shapes |= {"null_group": (1, 1, d), "down_ln.weight": (d,), "down_ln.bias": (d,)}
    if predictor:
        name = "boundary_predictor.boundary_predictor"
        shapes |= {f"{name}.0.weight": (inner, d), f"{name}.0.bias": (inner,),
                   f"{name}.2.weight": (1, inner), f"{name}.2.bias": (1,)}  # fmt: skip
    for stack, count in enumerate(layers):
        for i in range(count):
            at = f"layers.{stack}.{i}"
            both = {"dec_attn.qkv_net": (3 * wide, d), "dec_attn.r_net": (wide, d),
                    "dec_attn.o_net": (d, wide), "pos_ff.CoreNet.0": (inner, d),
                    "pos_ff.CoreNet.3": (d, inner)}  # fmt: skip
            for name, shape in both.items():
                shapes |= {f"{at}.{name}.weight": shape, f"{at}.{name}.bias": shape[:1]}
            for name in ("dec_attn.layer_norm", "pos_ff.layer_norm"):
                shapes |= {f"{at}.{name}.weight": (d,), f"{at}.{name}.bias": (d,)}
    random = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=random) / 2 for name, shape in shapes.items()}


def neutral(held, layers):
    """The same under the names of models.md D, written out once more."""
    found = {
        "embed.token.weight": held["word_emb.weight"], "rel.content_bias": held["r_w_bias"],
        "rel.position_bias": held["r_r_bias"], "lm_head.weight": held["final_cast.weight"],
        "lm_head.bias": held["final_cast.bias"],
    }  # fmt: skip
    if len(layers) > 1:
        found["down.0.null"] = held["null_group"][0, 0]
    wide = SIZES["n_head"] * SIZES["d_head"]
    stacks = ["pre.0", "middle", "post.0"] if len(layers) > 1 else ["middle"]
    for kind in ("weight", "bias"):
        if len(layers) > 1:
            found[f"down.0.ln.{kind}"] = held[f"down_ln.{kind}"]
        for name, at in (("in", 0), ("out", 2)):
            theirs = f"boundary_predictor.boundary_predictor.{at}.{kind}"
            if theirs in held:
                found[f"down.0.boundary.{name}.{kind}"] = held[theirs]
        for number, (stack, count) in enumerate(zip(stacks, layers, strict=True)):
            for i in range(count):
                a, b = f"{stack}.{i}", f"layers.{number}.{i}"
                qkv = held[f"{b}.dec_attn.qkv_net.{kind}"]
                for third, part in enumerate("qkv"):
                    found[f"{a}.attn.{part}.{kind}"] = qkv[third * wide : (third + 1) * wide]
                found[f"{a}.attn.r.{kind}"] = held[f"{b}.dec_attn.r_net.{kind}"]
                found[f"{a}.attn.o.{kind}"] = held[f"{b}.dec_attn.o_net.{kind}"]
                found[f"{a}.ln_attn.{kind}"] = held[f"{b}.dec_attn.layer_norm.{kind}"]
                found[f"{a}.ff.in.{kind}"] = held[f"{b}.pos_ff.CoreNet.0.{kind}"]
                found[f"{a}.ff.out.{kind}"] = held[f"{b}.pos_ff.CoreNet.3.{kind}"]
                found[f"{a}.ln_ff.{kind}"] = held[f"{b}.pos_ff.layer_norm.{kind}"]
    return {name: one.numpy() for name, one in found.items()}


def write(folder, kind="gumbel", layers=(1, 2, 1), name="checkpoint_last.pt", **changes):
    """A file as that program's training leaves it; changes: of its parts."""
    folder.mkdir(exist_ok=True)
    text = (
        f"[{layers[0]}, ({layers[1]},), {layers[2]}]"
        if len(layers) > 1
        else f"[{layers[0]}, (0,), 0]"
    )
    model = {**SIZES, "dropout": 0.1, "dropatt": 0.0, "pre_lnorm": False, "model_config": text,
             "activation_function": "gelu", "boundaries_type": kind, "spikes_left": 2,
             "temp": 0.5, "prior": 0.2, **changes.pop("model", {})}  # fmt: skip
    args = argparse.Namespace(**model, fixed_sf=3, tokenizer_path="./spm", cuda=True, work_dir="x")
    held = changes.pop("held", state(layers, kind in ("gumbel", "entropy", "unigram")))
    parts = {"args": args, "model_config": model, "model_state": held,
             "optimizer_state": {"state": {0: {"step": 3}}, "param_groups": [{"lr": 1e-3}]},
             "scheduler_state": {"last_epoch": 3}, "scaler": {}, "vocab": vocab(), "epoch": 1,
             "batch": 2, "last_iter": 3, "train_step": 3}  # fmt: skip
    torch.save({**parts, **changes}, folder / name)
    return folder, held


KINDS = {
    "gumbel": ("learned", (1, 2, 1)), "entropy": ("entropy", (2, 1, 0)),
    "unigram": ("unigram", (0, 1, 1)), "fixed": ("fixed", (1, 1, 1)),
    "whitespaces": ("whitespace", (1, 1, 1)), "none": ("learned", (2,)),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_gives_the_logits_of_the_formulas(tmp_path, kind):
    own, layers = KINDS[kind]
    folder, held = write(tmp_path / kind, kind, layers)
    model = open_model(folder, dtype="float64")
    assert (model.config.boundaries, model.config.shortens) == (own, kind != "none")
    config = {"n_layers": layers, "n_heads": 2, "d_head": 3, "d_model": 8, "feed_forward": "gelu",
              "boundaries": own, "shorten_factor": 3, "whitespace_id": 0}  # fmt: skip
    wanted, _, _ = forward(neutral(held, layers), config, IDS)
    np.testing.assert_allclose(model.run(IDS).logits, wanted, atol=1e-9)
    assert model.tokenize("the rain\n").ids.tolist() == [2, 8, 1, 0, 9, 3, 5, 6, 10]


def test_its_vocabulary_is_its_tokenizer(tmp_path):
    folder, _ = write(tmp_path / "m")
    model = open_model(folder / "checkpoint_last.pt")
    prompt = model.tokenize('the "sea"\n')
    assert (prompt.unit, prompt.spans[:, 0].tolist()) == ("letter", list(range(10)))
    assert [SYMBOLS[one] for one in prompt.ids] == list('the "sea"\n')
    with pytest.raises(HgvizError, match="could not read this text"):
        model.tokenize("Ω")
    other, _ = write(tmp_path / "words", vocab=vocab(["the", *SYMBOLS[1:]]))
    with pytest.raises(HgvizError, match="cannot read text"):
        open_model(other).tokenize("the")
    assert open_model(other).run(IDS).logits.shape == (19, 12)


def test_it_is_converted_captured_and_gone_on_with(tmp_path):
    folder, _ = write(tmp_path / "m")
    assert call("convert", folder, "-o", tmp_path / "own") == 0
    names = {one.name for one in (tmp_path / "own").iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json"}
    a, b = open_model(folder), open_model(tmp_path / "own")
    np.testing.assert_array_equal(a.run(IDS).logits, b.run(IDS).logits)
    assert a.spec.digest == b.spec.digest
    out = tmp_path / "c.h5"
    code = call("capture", folder, "--text", "the rain", "--generate", 6, "-o", out)
    assert code == 0 and call("rollout", out, "-o", tmp_path / "r.npy") == 0
    found = readers.read(folder)
    smaller = written(found, frozenset({HeadId(1, 0)}), "smaller", tmp_path / "small")
    assert open_model(smaller.parent).run(IDS).logits.shape == (19, 12)
    with pytest.raises(HgvizError, match="more than tensors"):
        written(found, frozenset({HeadId(1, 0)}), "zeroed", tmp_path / "zeroed")
    assert conversion.tokenizer_json(found) == found.tokenizer


def test_a_model_of_several_devices_and_another_name_of_the_file(tmp_path):
    _, held = write(tmp_path / "a")
    wrapped = {f"module.{name}": one for name, one in held.items()}
    other, _ = write(tmp_path / "b", held=wrapped, name="checkpoint_10000.pt")
    found = open_model(other / "checkpoint_10000.pt").run(IDS).logits
    np.testing.assert_array_equal(found, open_model(tmp_path / "a").run(IDS).logits)


# --- files from strangers -------------------------------------------------------------------------


class Evil:
    def __reduce__(self):
        return print, ("this must never run",)


def without(name):
    found = state((1, 2, 1), True)
    del found[name]
    return found


BROKEN = {
    "code": ({"epoch": Evil()}, "holds more than tensors"),
    "another class": ({"epoch": types.SimpleNamespace(a=1)}, "holds more than tensors"),
    "no state": ({"model_state": None}, "no model_state"),
    "nothing in it": ({"model_state": {}}, "no state dict"),
    "names": ({"model_state": {3: torch.zeros(1)}}, "no names"),
    "no tensors": ({"model_state": {"a": [1]}}, "no tensor"),
    "stride 0": ({"held": {**state((1, 2, 1), True), "r_w_bias": torch.zeros(1).expand(2**40)}},
                 "damaged"),
    "no kind": ({"model": {"boundaries_type": None}}, "boundaries_type"),
    "another kind": ({"model": {"boundaries_type": ["gumbel"]}}, "boundaries_type"),
    "pre-norm": ({"model": {"pre_lnorm": True}}, "pre_lnorm"),
    "no depth": ({"model": {"model_config": None}}, "model_config"),
    "depth that is code": ({"model": {"model_config": "exec('a = 1')"}}, "model_config"),
    "endless depth": ({"model": {"model_config": "[" * 5000}}, "model_config"),
    "deep depth": ({"model": {"model_config": "(" * 90}}, "model_config"),
    "negative depth": ({"model": {"model_config": "[1, (-2,), 1]"}}, "model_config"),
    "1e9 layers": ({"model": {"model_config": "[1, (1000000000,), 1]"}}, "n_layers"),
    "many layers": ({"model": {"model_config": "[1, (1000,), 1]"}}, "1,002 layers"),
    "no width": ({"model": {"d_model": None}}, "d_model"),
    "a width that is none": ({"model": {"d_model": "8"}}, "d_model"),
    "a missing array": ({"held": without("layers.1.0.dec_attn.r_net.weight")},
                        "layers.1.0.dec_attn.r_net.weight is none"),
    "an array too many": ({"held": {**state((1, 2, 1), True), "extra": torch.zeros(3)}},
                          "extra is 3"),
    "another shape": ({"held": {**state((1, 2, 1), True), "null_group": torch.zeros(1, 8)}},
                      "null_group is 1 × 8"),
    "not a number": ({"held": {**state((1, 2, 1), True),
                               "r_w_bias": torch.full((2, 3), torch.nan)}}, "no numbers"),
    "no vocabulary": ({"kind": "whitespaces", "held": state((1, 2, 1), False), "vocab": None},
                      "whitespace_id"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_is_none_is_one_error(tmp_path, capsys, case):
    changes, said = BROKEN[case]
    folder, _ = write(tmp_path / "m", **changes)
    with pytest.raises(HgvizError) as error:
        open_model(folder)
    told = error.value.what
    assert (
        said in told and len(told.splitlines()) == 1 and "must never" not in capsys.readouterr().out
    )


def test_a_file_cut_short_or_no_file_is_one_error(tmp_path):
    folder, _ = write(tmp_path / "m")
    file = folder / "checkpoint_last.pt"
    whole = file.read_bytes()
    for data in (whole[: len(whole) // 2], b"", b"PK\x03\x04", whole[:-30]):
        file.write_bytes(data)
        with pytest.raises(HgvizError):
            open_model(folder)


def test_a_config_json_beside_it_says_how_it_is_read(tmp_path):
    folder, _ = write(tmp_path / "m")
    (folder / "config.json").write_text(json.dumps({"model_type": "strange"}))
    with pytest.raises(HgvizError, match="cannot run"):
        open_model(folder)


def test_only_the_beginning_of_a_pickle_is_looked_at(tmp_path):
    with zipfile.ZipFile(tmp_path / "checkpoint_last.pt", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a/data.pkl", b"model_config model_state" + bytes(1 << 24))
    assert readers.self_contained(tmp_path) is not None
    with pytest.raises(HgvizError, match="declares"):
        open_model(tmp_path)
