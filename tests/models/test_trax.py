"""Weights of trax: what they do not show, texts that begin with 0, and bad files."""

import json
import re
import zipfile
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest

from hgviz import tasks
from hgviz.analysis.resolution import rollout
from hgviz.core import HgvizError
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.models.formats.trax import BEGIN, read_trax
from hgviz.models.run import CaptureRecorder
from tests.analysis.test_resolution import pool_matrix, rn, shift_matrix, spread_matrix
from tests.closeness import scaled_error
from tests.models.trax import Trax

ONE, NESTED = ((1,), 2, (1,)), ((2, 1), 1, (1, 1))
# how a model is made, what its weights do not show, and how people say it
CASES = {
    "the defaults": ({"counts": ONE}, {}),
    "naive, as for enwik8": (
        {"counts": ONE, "up": (True, "repeat")},
        {"hierarchy": "2@3", "attention_upsampling": "repeat"},
    ),
    "linear, as for images": ({"counts": ONE, "down": (True, "linear")}, {}),
    "nothing to begin with, nested": (
        {"counts": NESTED, "factors": (2, 3), "up": (True, "none")},
        {"hierarchy": "2@1 1@2 1@6 1@2 1@1", "attention_upsampling": "none"},
    ),
    "nested": ({"counts": NESTED, "factors": (3, 2)}, {}),
    "linear both ways": ({"down": (False, "linear"), "up": (False, "linear")}, {}),
    "averages both ways": (
        {"down": (False, "average"), "up": (False, "repeat")}, {"hierarchy": "1@1 1@3 1@1"},
    ),
    "attention down alone": ({"up": (False, "repeat")}, {"hierarchy": "1@3"}),
    "attention up alone": ({"counts": NESTED, "factors": (2, 2), "down": (False, "average")}, {}),
    "no layers outside": ({"counts": ((0,), 1, (0,))}, {}),
}  # fmt: skip
IDS = np.random.default_rng(5).integers(1, 11, 12)
BEGUN = np.concatenate([[0], IDS[:-1]])


def export(at, model, **changes):
    """The .npz of its weights, some of them changed."""
    np.savez(at, **model.neutral() | changes)
    return at


def refused(path, **said):
    """The one line that refuses a file."""
    with pytest.raises(HgvizError) as caught:
        read_trax(path, **said)
    line = " ".join((caught.value.what, caught.value.do))
    assert "\n" not in line and len(line) < 400
    return line


# --- the same model -------------------------------------------------------------------------------


@pytest.mark.parametrize("made, said", CASES.values(), ids=CASES.keys())
def test_what_is_converted_computes_as_trax_does(tmp_path, made, said):
    theirs = Trax(**made)
    file = export(tmp_path / "w.npz", theirs)
    spec = tasks.convert(file, tmp_path / "out", **said)
    ours = open_model(tmp_path / "out", dtype="float64")
    wanted, tapped = theirs.logits(IDS), {}
    ours.trace(ours.from_ids(BEGUN), observers=[CaptureRecorder(tapped.__setitem__)])
    assert np.abs(ours.run(BEGUN).logits - wanted).max() < 1e-9
    longer = ours.run(np.concatenate([BEGUN, IDS[-1:]])).logits  # no multiple of any factor
    assert np.abs(longer[:-1] - wanted).max() < 1e-9
    assert len(tapped) == len(theirs.maps) == len(spec.layers)
    for layer, expected in zip(spec.layers, theirs.maps, strict=True):
        found = LazyMap(tapped[layer.index], layer.heads)
        assert found.shape == expected.shape
        assert max(np.abs(found.read(h) - expected[h]).max() for h in layer.heads) < 1e-5


def test_the_documented_export_names_the_flat_weights(tmp_path, monkeypatch):
    text = (Path(__file__).parents[2] / "docs/models.md").read_text(encoding="utf-8")
    script = re.search(r"```python\nimport gin, numpy as np, trax\n(.*?)```", text, re.S)[1]
    theirs, trax = Trax(((5,), 24, (5,)), up=(True, "repeat"), vocabulary=256), MagicMock()
    trax.layers.base.flatten_weights_and_state.return_value = (theirs.flat, ())
    monkeypatch.chdir(tmp_path)
    exec(script, {"gin": MagicMock(), "np": np, "trax": trax})
    with np.load("enwik8.npz") as held:
        wanted = theirs.neutral()
        assert held.files == list(wanted)
        assert all((held[name] == one).all() for name, one in wanted.items())


def test_all_maps_composed_follow_the_rule_of_the_official_form(tmp_path):
    theirs = Trax(NESTED, (3, 2))
    tasks.convert(export(tmp_path / "w.npz", theirs), tmp_path / "out")
    model = open_model(tmp_path / "out", dtype="float64")
    capture = tasks.capture(model, model.from_ids(BEGUN), tmp_path / "a.h5")
    theirs.logits(IDS)
    layers = {one.name: theirs.maps[one.index].mean(0) for one in model.spec.layers}

    def stack(name, n):
        out = np.eye(n)
        for key in sorted(one for one in layers if one.startswith(name)):
            out = (layers[key] + np.eye(n)) / 2 @ out
        return out

    def level(i, n):
        if i == 2:
            return stack("middle", n)
        k = theirs.factors[i]
        short = rn((pool_matrix(n, k) + layers[f"down.{i}"]) / 2 @ shift_matrix(n, k - 1))
        mixed = level(i + 1, n // k) @ short
        grown = (np.eye(n) + rn(spread_matrix(n, k) @ mixed)) / 2
        grown = (grown + rn(layers[f"up.{i}"] @ mixed)) / 2
        return stack(f"post.{i}", n) @ rn((grown + np.eye(n)) / 2) @ stack(f"pre.{i}", n)

    assert scaled_error(rollout(capture), level(0, 12)) < 1e-6


# --- texts begin with 0 ---------------------------------------------------------------------------


def test_bytes_begin_with_a_token_of_their_own(tmp_path):
    model = Trax(vocabulary=256)
    tasks.convert(export(tmp_path / "w.npz", model), tmp_path / "out")
    ours = open_model(tmp_path / "out", dtype="float64")
    text = "a\0 나\r\n" + "".join(map(chr, range(1, 128))) + "[BOS"
    prompt = ours.tokenize(text)
    assert prompt.ids.tolist() == [0, *text.encode()]
    assert prompt.pieces[:2] == (BEGIN, "a")
    assert prompt.spans[:3].tolist() == [[-1, -1], [0, 1], [1, 2]]
    assert prompt.text == text
    data = list(text.encode())[:12]
    whole = ours.run(prompt.ids[:12]).logits
    assert np.abs(whole - model.logits(np.array(data))).max() < 1e-9
    capture = tasks.capture(ours, ours.tokenize("glass"), tmp_path / "a.h5")
    assert capture.prompt.pieces == (BEGIN, *"glass")


def words(at, *, first="<pad>"):
    """A tokenizer.json of words that ends texts with a token of its own."""
    vocab = {first: 0, "</s>": 1, "a": 2, "b": 3, "<unk>": 4}
    end = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    at.write_text(
        json.dumps({
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": {"type": "Whitespace"}, "decoder": None,
            "post_processor": {
                "type": "TemplateProcessing", "single": end, "pair": [
                    *end, {"Sequence": {"id": "B", "type_id": 0}}
                ],
                "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}},
            },
            "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
        })
    )  # fmt: skip
    return at


@pytest.mark.parametrize("where", ["asked", "folder", "beside"])
def test_a_tokenizer_is_made_to_begin_with_its_token_0(tmp_path, where):
    file = export(tmp_path / "w.npz", Trax())
    (tmp_path / "other").mkdir()
    beside = tmp_path / ("tokenizer.json" if where == "beside" else "other/tokenizer.json")
    words(beside)
    given = {"asked": beside, "folder": beside.parent, "beside": None}[where]
    tasks.convert(file, tmp_path / "out", tokenizer=given)
    prompt = open_model(tmp_path / "out").tokenize("a b")
    assert prompt.ids.tolist() == [0, 2, 3]
    assert prompt.pieces == ("<pad>", "a", "b")


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    file = export(tmp_path / "w.npz", Trax(vocabulary=4))
    assert "the model's ids end at 3" in refused(file, tokenizer=words(tmp_path / "t.json"))
    assert "has no tokenizer.json" in refused(file, tokenizer=tmp_path)
    assert "No such file" in refused(file, tokenizer=tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{}")
    assert "could not be read" in refused(file, tokenizer=tmp_path / "bad.json")


# --- what weights do not show ---------------------------------------------------------------------


def test_what_weights_do_not_show_is_asked_in_one_line(tmp_path):
    made = {"counts": NESTED, "factors": (2, 2), "up": (True, "repeat")}
    file = export(tmp_path / "w.npz", Trax(**made))
    line = refused(file)
    assert "how far it shortens and what attention on the way up begins with" in line
    assert '--hierarchy "2@1 1@K1 1@K2 1@K1 1@1"' in line
    assert "--attention-upsampling repeat (NaiveUpsampling) or none (NoUpsampling)" in line
    assert "--attention-upsampling" in refused(file, hierarchy="2@1 1@2 1@4 1@2 1@1")
    assert "do not tell how far it shortens Give" in refused(file, attention_upsampling="none")
    line = refused(export(tmp_path / "w.npz", Trax()), attention_upsampling="none")
    assert "a linear map comes first there" in line


@pytest.mark.parametrize("said", [
    "1@1 2@3 2@1", "1@1 1@3 1@1", "1@1 2@4 1@1", "4@3", "1@1 1@2 2@6 1@2 1@1",
])  # fmt: skip
def test_another_hierarchy_is_refused(tmp_path, said):
    file = export(tmp_path / "w.npz", Trax(ONE))
    assert "its weights are of '1@1 2@3 1@1'" in refused(file, hierarchy=said)


@pytest.mark.parametrize("said", ["1@1 2@3", "", "2@1 3@1 2@1", "x"])
def test_what_is_no_hierarchy_is_refused(tmp_path, said):
    assert "cannot be built" in refused(export(tmp_path / "w.npz", Trax(ONE)), hierarchy=said)


# --- names that do not fit ------------------------------------------------------------------------


def test_names_that_do_not_fit_are_named(tmp_path):
    file, held = tmp_path / "w.npz", Trax(ONE).neutral()
    np.savez(file, **{name: one for name, one in held.items() if name != "middle.1.ff.out.bias"})
    assert "middle.1.ff.out.bias is none" in refused(file)
    np.savez(file, **(held | {"up.0.attn.q.weight": np.ones((12, 3))}))
    assert "up.0.attn.q.weight is 12 × 3" in refused(file)
    np.savez(file, **(held | {"surplus": np.ones(2)}))
    assert "surplus is 2" in refused(file)
    np.savez(file, **{name: one for name, one in held.items() if name != "rel.content_bias"})
    assert "rel.content_bias is not there" in refused(file)
    np.savez(file, **(held | {"embed.token.weight": np.ones(3)}))
    assert "embed.token.weight is 3" in refused(file)
    np.savez(file, weights=np.ones(3))
    assert "embed.token.weight is not there" in refused(file)


# --- files from strangers -------------------------------------------------------------------------


def packed(at, **entries):
    with zipfile.ZipFile(at, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries.items():
            file.writestr(f"{name}.npy", data)
    return at


def npy(header, data=b""):
    """A .npy file with a header that claims whatever it likes."""
    text = (repr(header) + "\n").encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def claims(shape, descr="<f8", data=b""):
    return npy({"descr": descr, "fortran_order": False, "shape": shape}, data)


def test_no_array_is_made_before_its_size_is_known(tmp_path):
    at = tmp_path / "w.npz"
    for shape in ((2**40,), (2**31, 2**31), (3,), (-1,), (0, 8), (1,) * 40):
        assert "is damaged" in refused(packed(at, arr_0=claims(shape, data=b"\0" * 8)))
    bomb = refused(packed(at, arr_0=claims((2**22,), data=bytes(2**25))))
    assert f"in a file of {at.stat().st_size:,}" in bomb


def test_nothing_of_a_stranger_runs_or_breaks(tmp_path):
    at = tmp_path / "w.npz"
    np.savez(at, arr_0=np.array([print, "a"], dtype=object))
    assert "arr_0 is Python objects" in refused(at)
    for descr in ("<i8", "|S4", "<c16", "<f16", [("a", "<f8")], "|V2"):
        line = refused(packed(at, arr_0=claims((1,), descr, bytes(16))))
        assert "holds something else than weights" in line or "is damaged" in line
    for data in (
        b"",
        b"\x93NUMPY",
        b"no array",
        b"\x93NUMPY\x09\x00" + bytes(20),
        npy("x"),
        npy({"shape": (1,)}),
        b"\x93NUMPY\x01\x00\xff\xff((((((" + b"(" * 70000,
    ):
        assert "is damaged" in refused(packed(at, arr_0=data))
    whole = export(at, Trax()).read_bytes()
    for cut in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        at.write_bytes(whole[:cut])
        assert "is damaged" in refused(at)
    broken = bytearray(whole)
    broken[200] ^= 255  # the checksum of its array no longer fits
    at.write_bytes(broken)
    assert "is damaged" in refused(at)
    packed(at)
    assert "it holds no arrays" in refused(at)
    with zipfile.ZipFile(at, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("arr_0.npy", claims((1,), data=bytes(8)))
    assert "it is packed as numpy packs nothing" in refused(at)
    packed(at, **{"a\nb": claims((1,), data=bytes(8))})
    assert "is damaged" in refused(at)


def test_numbers_that_are_none_are_refused(tmp_path):
    spoilt = np.full((11, 12), np.nan)
    line = refused(export(tmp_path / "w.npz", Trax(), **{"embed.token.weight": spoilt}))
    assert "embed.token.weight has 132 NaN or infinite values" in line


def test_other_orders_of_bytes_and_packing_change_nothing(tmp_path):
    model = Trax()
    wanted = read_trax(export(tmp_path / "w.npz", model)).digest
    turned = {n: np.asfortranarray(one).astype(">f8") for n, one in model.neutral().items()}
    np.savez_compressed(tmp_path / "w.npz", **turned)
    assert read_trax(tmp_path / "w.npz").digest == wanted


# --- the command ----------------------------------------------------------------------------------


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


def test_what_a_file_is_called_says_nothing_of_what_it_holds(refusal, tmp_path):
    (tmp_path / "w.npz").mkdir()
    np.savez(tmp_path / "v.npz", a=np.ones(1))
    (tmp_path / "v.npz").rename(tmp_path / "w.pt")
    for name in ("w.npz", "none.npz", "w.pt"):
        refusal("convert", tmp_path / name, "-o", tmp_path / "out")
