"""Heads removed for good: what is written opens anywhere it should and proves itself; and mask
files, which switch the same heads off in every command that takes --off."""

import json
import math
import warnings

import numpy as np
import pytest
import torch
import tqdm
import transformers
import typer
from safetensors.torch import load_file, save_file

import hgviz
from hgviz import cli, tasks
from hgviz.analysis.importance import importance
from hgviz.cli.options import command_words
from hgviz.core import HeadId, HgvizError
from hgviz.errors import HgvizWarning
from hgviz.files import find_sample, resource
from hgviz.maskfile import read_heads, read_mask
from hgviz.models import open_model, pruning
from hgviz.models.layers import Tokens
from hgviz.models.tensors import read_tensors
from hgviz.models.training import read_plan
from hgviz.store import open_capture, open_study
from hgviz.tasks.pruning import kept_count
from tests.closeness import scaled_error
from tests.models import references
from tests.models.building import split, write_bert, write_checkpoint, write_gpt2, write_transformer
from tests.models.test_checkpoints import ARGUMENTS, GIVEN
from tests.models.test_heads_off import KINDS, chosen, logits
from tests.progress import cancelled


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Timing as short as can be, and no thread that watches bars."""
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)


# --- every form of every family -------------------------------------------------------------------


@pytest.mark.parametrize("form", ["smaller", "zeroed"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_the_masked_model(tmp_path, kind, form):
    path = KINDS[kind](tmp_path / "whole")
    before = open_model(path).spec
    off = chosen(before)
    found = tasks.prune(path, off, tmp_path / "out", form=form)
    assert found.difference <= 1e-5
    assert np.abs(logits(tmp_path / "out") - logits(path, off)).max() < 1e-12
    assert scaled_error(logits(tmp_path / "out", dtype="float32"), logits(path, off)) < 1e-5
    after = open_model(tmp_path / "out").spec
    assert (before.parameters, after.parameters) == found.parameters
    weights = [load_file(whole / "model.safetensors") for whole in (path, tmp_path / "out")]
    assert tuple(sum(one.nbytes for one in held.values()) for held in weights) == found.size
    assert [one.batch for one in found.latency] == ([1, 16] if form == "smaller" else [])
    empty = [one.index for one in after.layers if not one.heads]
    assert list(found.empty) == [
        one.index for one in before.layers
        if all(HeadId(one.index, head) in off for head in one.heads)
    ]  # fmt: skip
    assert empty == (list(found.empty) if form == "smaller" else [])
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("how", ["mean", "lsq"])
@pytest.mark.parametrize("form", ["smaller", "zeroed"])
@pytest.mark.parametrize("kind", ["classifier", "hourglass"])
def test_compensated_models_prove_themselves_too(tmp_path, kind, form, how):
    path = KINDS[kind](tmp_path / "whole")
    off = chosen(open_model(path).spec, empty=False)
    found = tasks.prune(path, off, tmp_path / "out", form=form, compensate=how)
    assert found.difference <= 1e-5 and found.compensation == how
    assert np.abs(logits(tmp_path / "out") - logits(path, off)).max() > 1e-6


# --- what opens it --------------------------------------------------------------------------------


def test_a_smaller_model_is_captured_and_shown_like_any_other(tmp_path):
    path = write_checkpoint(tmp_path / "whole", vocab_size=256, hierarchy="1@1 1@2 1@4 1@2 1@1")
    found = tasks.prune(path, "0.1,2.*,4.0", tmp_path / "out")
    heads = tasks.info(tmp_path / "out")["layers"]
    assert [one["heads"] for one in heads] == [1, 2, 0, 2, 1, 2, 2, 2, 2]
    model = open_model(tmp_path / "out")
    tasks.capture(model, model.tokenize("Some words."), tmp_path / "c.h5")
    opened = open_capture(tmp_path / "c.h5")
    assert opened.maps[2].shape[0] == 0
    whole = open_model(path)
    off = found.off
    seen = tasks.capture(whole, whole.tokenize("Some words."), off=off)
    for one, other in zip(opened.maps, seen.maps, strict=True):
        for head in one.heads:
            assert scaled_error(one.read(head), other.read(head)) < 1e-5
    tasks.generate(model, model.tokenize("So"), 4)


@pytest.mark.parametrize(
    ("write", "kind"),
    [(write_bert, "BertForSequenceClassification"), (write_gpt2, "GPT2LMHeadModel")],
)
def test_transformers_opens_the_zeroed_folder(tmp_path, write, kind):
    path, out = write(tmp_path / "whole"), tmp_path / "out"
    (path / "notes.md").write_text("of the whole model")
    (path / "optimizer.pt").write_bytes(b"0")
    held = load_file(path / "model.safetensors")
    save_file(held, path / "model.safetensors", {"format": "pt"})
    tasks.prune(path, "0.1,1.*", out, form="zeroed")
    names = sorted(one.name for one in out.iterdir())
    assert names == ["config.json", "model.safetensors", "notes.md", "tokenizer.json"]
    assert (out / "config.json").read_bytes() == (path / "config.json").read_bytes()
    ids = torch.arange(18).reshape(2, 9) % 20
    off = {HeadId(0, 1), *(HeadId(1, head) for head in range(3))}
    masked = open_model(path).run(ids.numpy(), off=off).logits
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        whole, zeroed = (
            getattr(transformers, kind).from_pretrained(folder).eval()(input_ids=ids).logits
            for folder in (path, out)
        )
    assert scaled_error(zeroed, masked) < 1e-5
    assert np.abs(whole.numpy() - masked).max() > 1e-3


def sentence_transformer(folder):
    """A sentence encoder as sentence-transformers keeps it: transformers' BERT and its parts."""
    config = transformers.BertConfig(
        vocab_size=43, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=12, max_position_embeddings=40,
    )  # fmt: skip
    transformers.BertModel(config).eval().save_pretrained(folder)
    kind = "sentence_transformers.models"
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{kind}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{kind}.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Dense", "type": f"{kind}.Dense"},
    ]
    files = {
        "modules.json": json.dumps(modules).encode(),
        "1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}',
        "2_Dense/config.json": b"{}", "2_Dense/model.safetensors": b"weights of the dense part",
        "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n",
        "sentencepiece.bpe.model": b"pieces", "README.md": b"what it is",
        "modeling.py": b"raise SystemExit", ".gitattributes": b"*.bin filter=lfs",
        "pytorch_model.bin": b"the whole model", "onnx/model.onnx": b"the whole model",
        "onnx/config.json": b"{}", "openvino/openvino_model.bin": b"the whole model",
        "checkpoint-5/model.safetensors": b"the whole model, earlier",
        ".git/config": b"secret", ".cache/x": b"",
    }  # fmt: skip
    for name, held in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(held)
    return folder


def below(folder):
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def test_a_zeroed_sentence_encoder_opens_where_the_original_did(run, tmp_path):
    """With its pooling, and without other files in which the heads would be on."""
    path, out = sentence_transformer(tmp_path / "whole"), tmp_path / "out"
    whole = {
        "onnx/model.onnx", "openvino/openvino_model.bin", "pytorch_model.bin",
        "checkpoint-5/model.safetensors",
    }  # fmt: skip
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "card.md").write_text("a blob, as in a cache")
    (path / "card.md").symlink_to(tmp_path / "shared" / "card.md")
    (path / "nowhere.md").symlink_to(tmp_path / "gone")
    (path / "around").symlink_to(path)
    code, said, err = run("prune", path, "--off", "0.1", "--form", "zeroed", "-o", out, "--json")
    assert code == 0, err
    links = {"nowhere.md", "around"}
    assert set(json.loads(said)["left_out"]) == whole | links
    hidden = {".git/config", ".cache/x"}
    assert below(out) == below(path) - whole - hidden
    assert not (out / "card.md").is_symlink()
    for one in below(out) - {"model.safetensors"}:
        assert (out / one).read_bytes() == (path / one).read_bytes()
    for part in json.loads((out / "modules.json").read_text()):
        assert (out / part["path"] / "config.json").exists()
    ids = np.arange(18).reshape(2, 9) % 20
    with torch.no_grad():
        theirs = transformers.AutoModel.from_pretrained(out).eval()(torch.tensor(ids))
    masked = open_model(path).run(ids, off=frozenset({HeadId(0, 1)})).logits
    assert scaled_error(theirs.last_hidden_state.numpy(), masked) < 1e-5
    code, said, _ = run("prune", path, "--off", "0.1", "--form", "zeroed", "-o", tmp_path / "two")
    assert "Not copied (weights of the full model, links): around, checkpoint-5/model" in said
    assert "x as fast" not in said and "takes as long as before" in said


def test_a_zeroed_model_may_be_written_into_its_own_folder_which_has_to_be_its_own(
    tmp_path, monkeypatch
):
    path = sentence_transformer(tmp_path / "whole")
    tasks.prune(path, "0.1", path / "half", form="zeroed")
    assert not [one for one in below(path / "half") if "half" in one]
    again = tasks.prune(path, "0.1", path / "other", form="zeroed")
    assert "half/model.safetensors" in again.left_out
    monkeypatch.setattr("hgviz.models.checkpoints.COPY_LIMIT", 5)
    with pytest.raises(HgvizError, match="contains more than a model"):
        tasks.prune(path, "0.1", tmp_path / "out", form="zeroed")
    assert not (tmp_path / "out").exists()


def test_shards_stay_shards(tmp_path):
    path, out = write_gpt2(tmp_path / "whole"), tmp_path / "out"
    split(path)
    found = tasks.prune(path, "0.1,1.2", out, form="zeroed")
    assert {one.name for one in out.iterdir()} == {one.name for one in path.iterdir()}
    assert found.size[0] == found.size[1]


@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_state_dicts_of_the_package_keep_their_names(tmp_path, suffix):
    path = references.write_package(
        tmp_path / "whole", references.build_package(**ARGUMENTS), GIVEN
    )
    (weights,) = (one for one in path.iterdir() if one.suffix in (".pt", ".safetensors"))
    held = read_tensors(weights)
    weights.unlink()
    renamed = {f"module.{name}": one.contiguous().clone() for name, one in held.items()}
    if suffix == "pt":
        torch.save(renamed, path / "trained.pt")
    else:
        save_file(renamed, path / "trained.safetensors")
    tasks.prune(path, "0.1,1.*", tmp_path / "out", form="zeroed")
    after = read_tensors(tmp_path / "out" / f"trained.{suffix}")
    assert after.keys() == renamed.keys()
    changed = [name for name in after if not torch.equal(after[name], renamed[name])]
    assert len(changed) == 2 and all("to_out.weight" in name for name in changed)
    small = tasks.prune(path, "0.1,1.*", tmp_path / "small")
    assert small.parameters[1] < small.parameters[0]


# --- proofs that fail, and bad input --------------------------------------------------------------


def test_an_export_that_gives_other_logits_leaves_nothing_behind(tmp_path, monkeypatch):
    path = write_bert(tmp_path / "whole")
    slice_ = pruning.remove_heads
    more = {HeadId(1, 2)}
    monkeypatch.setattr(pruning, "remove_heads", lambda found, off: slice_(found, off | more))
    with pytest.raises(HgvizError, match=r"differ from the masked model by \d"):
        tasks.prune(path, "0.1", tmp_path / "deep" / "out")
    assert [one.name for one in tmp_path.iterdir()] == ["whole"]


def test_a_prune_that_is_stopped_leaves_nothing_behind(tmp_path):
    path, out = write_bert(tmp_path / "whole"), tmp_path / "out"
    cancelled(tasks.prune, path, "0.1", out, when=lambda step: step.note.startswith("comparing"))
    assert [one.name for one in tmp_path.iterdir()] == ["whole"]


def test_logits_that_are_no_numbers_prove_nothing():
    nan = torch.full((1, 2), torch.nan)
    difference, _ = pruning.largest_difference(lambda text: nan, lambda text: nan, [Tokens(nan)])
    assert math.isinf(difference)


def test_large_logits_are_compared_in_float64(tmp_path, monkeypatch):
    runner = pruning.runner

    def rounding(module, off=frozenset()):
        """A machine on which float32 products of another size come out otherwise."""
        run = runner(module, off)
        exact = off or next(module.parameters()).dtype == torch.float64
        return run if exact else lambda text: run(text) * (1 + 1e-6)

    monkeypatch.setattr(pruning, "runner", rounding)
    path = write_transformer(tmp_path / "whole", dtype=torch.float32, form="decoder")
    held = load_file(path / "model.safetensors")
    held["embed.token.weight"] *= 1e4
    save_file(held, path / "model.safetensors")
    found = tasks.prune(path, "0.1", tmp_path / "out")
    assert found.dtype == "float64" and found.rough > 1e-5 >= found.difference


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("--off 5.1", 1, "this model has no head 5.1"),
        ("--off 0.1,0.1", 1, "head 0.1 is named twice"),
        ("--off 0.1,0.*", 1, "head 0.1 is named twice"),
        ("--off first", 1, "'first' does not name a head"),
        ("", 2, ""),
        ("--keep 3", 2, ""),
        ("--off 0.1 --keep 3", 2, ""),
        ("--study s.h5", 2, ""),
        ("--off 0.1 --method loo", 2, ""),
    ],
)
def test_what_cannot_be_pruned_is_one_line(tmp_path, refusal, words, code, message):
    path, out = write_bert(tmp_path / "whole"), tmp_path / "out"
    error = refusal("prune", path, *words.split(), "-o", out, code=code)
    assert message.lower() in error.lower() and not out.exists()


def test_no_folder_is_replaced_and_all_heads_may_go(tmp_path, run):
    path, out = write_bert(tmp_path / "whole"), tmp_path / "out"
    out.mkdir()
    (out / "mine").touch()
    for off, where, force, message in (
        ("0.1", out, False, "out is not empty"),
        ("0.1", path, False, "whole is not empty"),
        ("0.1", path, True, "is the model itself"),
        ("0.1", tmp_path, True, "is not empty"),
        ("", tmp_path / "none", False, "no head is named"),
    ):
        with pytest.raises(HgvizError, match=message):
            tasks.prune(path, off, where, force=force)
    (out / "mine").unlink()
    code, said, error = run("prune", path, "--off", "0.*,1.*", "-o", out)
    assert code == 0 and "No head is left: the model has no attention." in said
    assert error.startswith("Verifying with 256 examples of ") and "saved, out opens in " in error
    tasks.prune(path, "0.1,1.0", out, force=True)
    assert len(open_model(out).spec.heads) == 4
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", "whole"]


def test_a_study_chooses_the_least_needed_heads(tmp_path, refusal, facts):
    model, data, study = write_bert(tmp_path / "m"), tmp_path / "rows.tsv", tmp_path / "study.h5"
    data.write_text("the cat sat\tfor\nun cat\tagainst\nthe the\tfor\nsat\tagainst\n")
    tasks.study(tasks.trials_of(open_model(model), data), {"gradient"}, study, "rows.tsv")
    off = tasks.heads_of_study(study, model, "50%")
    assert off == frozenset(importance(open_study(study), "michel").least_needed[:3])
    told = facts("prune", model, "--study", study, "--keep", "50%", "-o", tmp_path / "out")
    assert told["off"] == sorted(map(str, off)) and told["heads"] == 3
    assert told["difference"] <= 1e-5 and len(told["latency"]) == 2
    other = write_bert(tmp_path / "other", seed=1)
    error = refusal("prune", other, "--study", study, "--keep", "3", "-o", tmp_path / "no")
    assert error.startswith("study.h5 is about another model: ")


def test_keep_is_a_number_or_a_share():
    spec = open_model(resource("sample/softmax")).spec
    assert [kept_count(one, spec) for one in ("0", "7", "24", "50%", "33.3 %")] == [0, 7, 24, 12, 8]
    for wrong in ("", "-1", "25", "101%", "half", "50%%", "nan%", "3.5"):
        with pytest.raises(HgvizError, match="not a number or share of heads"):
            kept_count(wrong, spec)


# --- mask files -----------------------------------------------------------------------------------


DATA = ("--data", "sample/reviews.tsv")
COMMANDS = {  # all that take --off, without it
    "attribute": ("sample/softmax", "--text", "a"),
    "capture": ("sample/softmax", "--text", "a", "-o", "x.h5"),
    "compare": ("sample/softmax", "sample/softmax", "--text", "a"),
    "evaluate": ("sample/softmax", *DATA),
    "heads": ("sample/softmax", "--text", "a"),
    "importance": ("sample/softmax", *DATA, "-o", "x.h5"),
    "prune": ("sample/softmax", "-o", "x"),
}


@pytest.fixture
def mask(tmp_path, monkeypatch):
    """Write a mask of sample/softmax; returns what --off takes."""
    monkeypatch.chdir(tmp_path)
    digest = tasks.digest_of(find_sample("sample/softmax"))

    def write(**fields):
        (tmp_path / "mask.json").write_text(json.dumps({"model": digest} | fields))
        return "@mask.json"

    return write


def test_every_command_refuses_the_mask_of_another_model(refusal, mask, tmp_path):
    group = typer.main.get_command(cli.app)
    with group.make_context("hgviz", [], resilient_parsing=True) as context:
        commands = {name: group.get_command(context, name) for name in cli.verbs()}
    options = {name: str([one.opts for one in verb.params]) for name, verb in commands.items()}
    assert {name for name, opts in options.items() if "--off" in opts} == COMMANDS.keys()
    off = mask(heads=["0.1"], model="f" * 64)
    for verb, words in COMMANDS.items():
        error = refusal(verb, *words, "--off", off)
        assert "mask.json is a mask of another model" in error and "ffffffffffff" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mask.json"]


def test_a_damaged_mask_is_one_line(refusal, tmp_path):
    path = tmp_path / "mask.json"
    for content, said in (
        (None, "no mask file has that name"),
        ('{"heads": ["99.0"]}', "no head 99.0"),
        ('{"streaming": ["99.0"]}', "no head 99.0"),
        ('{"heads": ["x"]}', "does not name a head"),
        ('{"heads": "0.1"}', "is not a mask file: Expected `array`, got `str`"),
        ('{"head": []}', "unknown field `head`"),
        ("[]", "is not a JSON object"),
        ('{"heads": ["0.1"', "is not a JSON object"),
        ("\0\xff", "is not a JSON object"),
    ):
        if content is not None:
            path.write_text(content)
        assert said in refusal("evaluate", *COMMANDS["evaluate"], "--off", f"@{path}"), content


def test_masks_are_written_and_read_again(facts, refusal, mask, tmp_path):
    digest = tasks.digest_of(find_sample("sample/softmax"))
    asked = ("importance", "sample/softmax", *DATA, "--limit", 8, "--method", "loo", "-o", "s.h5")
    rows = facts(*asked, "--keep", "25%", "--mask", "kept.json")
    going = {row["head"] for row in rows[6:]}
    written = json.loads((tmp_path / "kept.json").read_text())
    assert written == {"heads": sorted(going), "streaming": [], "model": digest}
    proof = facts("prune", "sample/softmax", "--off", "@kept.json", "-o", "p", "--mask", "m.json")
    assert proof["off"] == written["heads"]
    assert (tmp_path / "m.json").read_bytes() == (tmp_path / "kept.json").read_bytes()
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'[model]\nfrom = "{find_sample("sample/softmax")}"\noff = "@kept.json"\n'
        '[data]\ntrain = ["a"]\nvalid = "a"\n[recipe]\nsteps = 1\n'
    )
    assert read_plan(plan).model["off"].split(",") == written["heads"]
    (tmp_path / "notes.json").write_text("{}\n[]")
    for words, said, code in (
        (("--keep", "25%"), "--keep and --mask require each other", 2),
        (("--keep", "25%", "--mask", "notes.json"), "is not a JSON object", 1),
        (("--keep", "99", "--mask", "x.json"), "24", 1),
        (("--keep", "25%", "--mask", "no/x.json"), "does not exist", 1),
    ):
        assert said in refusal(*asked, *words, code=code)
    assert (tmp_path / "notes.json").read_text() == "{}\n[]"
    assert not (tmp_path / "x.json").exists()


def test_a_mask_switches_off_what_the_names_do(facts, mask):
    asked = ("evaluate", *COMMANDS["evaluate"], "--limit", 40)
    named = facts(*asked, "--off", "0.1,1.*")
    assert facts(*asked, "--off", mask(heads=["0.1", "1.*"])) == named != facts(*asked)
    found = hgviz.evaluate("sample/softmax", "sample/reviews.tsv", off="@mask.json", limit=40)
    assert found.to_dict() == named
    assert facts(*asked, "--off", mask()) == facts(*asked)
    # a command is recorded without the folder of its mask
    assert command_words({"--off": "@/home/a/mask.json"}) == ("--off", "@mask.json")
    words = {"--off": "3.5,4.*", "--text": "@/a/b"}
    assert command_words(words) == ("--off", "3.5,4.*", "--text", "@/a/b")


def test_streaming_heads_of_a_mask_count_where_heads_can_stream(run, output, tmp_path):
    gpt2, path, out = write_gpt2(tmp_path / "gpt2"), tmp_path / "mask.json", tmp_path / "a.h5"
    fields = {"heads": ["0.1"], "streaming": ["1.0"], "model": tasks.digest_of(gpt2)}
    path.write_text(json.dumps(fields))
    asked = ("capture", gpt2, "--text", "the cat sat", "-o", out, "--off", f"@{path}")
    assert "--streaming cannot be combined" in run(*asked, "--generate", 2)[2]
    output(*asked, "--streaming", "1.1", "--sink", 1, "--recent", 2)
    made = open_capture(out)
    assert made.off == {HeadId(0, 1)}
    assert (made.streaming.heads, made.streaming.window) == ({HeadId(1, 0), HeadId(1, 1)}, (1, 2))
    assert read_mask(f"@{path}", made.spec) == ({HeadId(0, 1)}, {HeadId(1, 0)})
    with pytest.warns(HgvizWarning, match="1 streaming head ignored"):
        assert read_heads(f"@{path}", made.spec) == {HeadId(0, 1)}
    code, _, error = run("heads", gpt2, "--text", "the cat", "--off", f"@{path}")
    assert (code, error.count("\n")) == (0, 1) and "1 streaming head ignored" in error
