"""The verbs from a terminal: what they do, what they refuse, and in which words."""

import shlex
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import hgviz
from hgviz import cli, tasks
from hgviz.analysis.composition import rollout
from hgviz.analysis.roles import roles
from hgviz.core import HeadId, HgvizError, RolloutOptions, Selection, progress
from hgviz.figures import Spec
from hgviz.models import open_model
from hgviz.store import open_capture, write_capture
from hgviz.tasks import files
from tests.making import make_capture
from tests.models.building import write_checkpoint
from tests.models.folders import write_bert, write_gpt2
from tests.models.test_checkpoints import cached
from tests.models.zoo import write


@pytest.fixture(scope="session")
def saved(capture, tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "saved.h5"
    write_capture(path, capture)
    return path


@pytest.fixture
def spy(monkeypatch, capture):
    """Stands in for torch: notes what the tasks were asked for."""
    asked = SimpleNamespace(spec=capture.spec, takes_states=True)

    def load(path, device, dtype, masking, activation, reads):
        asked.load = (path, device, dtype, masking, activation)
        progress(1, 1)
        return asked

    def read_prompts(model, text, text_file, ids_file, **_):
        asked.prompt = (text, text_file, ids_file)
        return capture.prompt, None

    def capture_(model, prompt, out, off, force, target, dense, streaming):
        asked.capture = (out, off, force)
        progress(1, 1)
        return capture

    monkeypatch.setattr(tasks, "load", load)
    monkeypatch.setattr(tasks, "read_prompts", read_prompts)
    monkeypatch.setattr(tasks, "capture", capture_)
    return asked


def test_the_version_is_told(run):
    assert run("--version") == (0, f"hgviz {hgviz.__version__}\n", "")


def test_the_help_names_every_verb(run):
    code, out, _ = run("--help")
    assert code == 0
    shown = {
        line.split()[1] for line in out.splitlines() if line.startswith("│ ") and line[2] > " "
    }
    assert cli.verbs() <= shown and len(cli.verbs()) == 22


@pytest.mark.parametrize("verb", sorted(cli.verbs() - {"demo", "docs", "selftest"}))
def test_a_verb_without_arguments_is_refused_in_one_line(refusal, verb):
    refusal(verb, code=2)


def test_workers_are_those_of_a_local_scheduler(run, monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(tasks, "run_sweep", lambda *given: seen.append(given[2]) or exit(7))
    for options in ((), ("--workers", 3), ("--scheduler", "local:2")):
        with pytest.raises(SystemExit):
            run("study", "run", tmp_path / "s.toml", "-o", tmp_path / "out", *options)
    assert seen == ["", "local:3", "local:2"]


def test_every_help_has_an_example_and_those_of_the_sample_work(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    needs_more = {"demo", "selftest", "train", "study run", "study status", "study report"}
    for name, example in cli.EXAMPLES.items():
        code, text, _ = run(*name.split(), "--help")
        assert code == 0 and f"Example: hgviz {name}" in " ".join(text.replace("│", " ").split())
        if name not in needs_more:
            assert run(*shlex.split(example), "--quiet")[0] == 0, example
            assert "-o" not in example or (tmp_path / example.split()[-1]).exists()
    for name in cli.verbs() - {"study"}:
        assert name in cli.EXAMPLES


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("capture model -o x.h5", ""),
        ("capture model -o x.h5 --text a --text-file b", ""),
        ("capture model -o x.h5 --text a --dtype int8", "'--dtype': 'int8' is not one of"),
        ("capture model -o x.pdf --text a", ""),
        ("importance model --data x.tsv -o x.CSV", ""),
        ("map x.h5 --layer 0 --head 0 -o x.txt", ""),
        ("map x.h5 --layer -1 --head 0 -o x.npy", "equal to 0. `hgviz map --help`"),
        ("map x.h5 --layer 0 --head 0 --rows 5:2 -o x.npy", ""),
        ("map x.h5 --layer 0 --head 0 --rows a:b -o x.npy", ""),
        ("map x.h5 --layer 0 --head 0 --reduce min -o x.npy", ""),
        ("logits x.h5 -o x-", "does not end in .npy or .csv or .npz"),
        ("logits SAVED --text a -o x.npy", "is a capture, which has its text"),
        ("convert model", ""),
        ("map x.h5 --head 2 -o x.npy", "needs its layer: --head LAYER.2"),
        ("map x.h5 --layer 3 --head 1.2 -o x.npy", "is of layer 1, and --layer is 3"),
        ("map x.h5 --head g1 -o x.npy", "it is 2, or 11.2 with its layer"),
        ("figure x.h5 --kind pie -o x.pdf", ""),
        ("figure x.h5 --kind scroes -o x.pdf", "Did you mean 'scores'?"),
        ("importance model --data d.tsv -o x.h5 --method lo", "Did you mean 'loo'?"),
        ("evaluate model --data d.tsv --limt 2", "Did you mean --limit?"),
        ("evaluate model --data d.tsv --batch-size 0", "greater than or equal to 1"),
        ("reach sample/softmax --text a --seed 1", "--seed goes with --tokens"),
        ("figure x.h5 --kind map --metric entropy -o x.pdf", "takes no --metric"),
        ("figure x.h5 --kind scores --head 1.2 -o x.pdf", "takes no --head"),
        ("figure x.h5 y.h5 --kind scores -o g.svg", "one file"),
        ("--wrong", ""),
        ("frobnicate", ""),
        ("study run s.toml -o out --workers 2 --scheduler local:2", "give one"),
        ("study run s.toml -o out --workers 0", "greater than or equal to 1"),
        ("compar", "Did you mean 'compare'? `hgviz --help`"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(refusal, saved, words, said):
    error = refusal(*({"SAVED": saved}.get(word, word) for word in words.split()), code=2)
    assert said in error and "--help` shows what it takes." in error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("info no-such-file.h5", ""),
        ("info sample/sofmax", "Did you mean sample/softmax?"),
        ("evaluate sample/softmax --data sample/review.tsv", "Did you mean sample/reviews.tsv?"),
        ("map no-such-file.h5 --layer 0 --head 0 -o x.npy", ""),
        ("info NEAR", "Did you mean "),
        ("map NEAR --layer 0 --head 0 -o x.npy", "Did you mean "),
        ("evaluate sample/softmax --data NEAR", "Did you mean "),
        ("map SAVED --layer 99 --head 0 -o x.npy", ""),
        ("map SAVED --layer 0 --head 99 -o x.npy", ""),
        ("map SAVED --layer 0 --head 0 --rows 0:999999 -o x.npy", ""),
        ("map SAVED --layer 0 --head 0 -o no/such/folder/x.npy", ""),
        ("rollout SAVED --rows 0:999999 -o x.npy", ""),
        ("rollout SAVED --residual 2 -o x.npy", "it is a part of it"),
        ("rollout SAVED --signed --fuse min -o x.npy", "does not go with"),
        ("rollout SAVED --heads 99.0 -o x.npy", "no head 99.0"),
        ("rollout SAVED --heads x -o x.npy", "does not name a head"),
        ("rollout SAVED --heads pre.9.0.1 -o x.npy", "does not name a head"),
        ("figure SAVED --kind map --layer 99 -o x.pdf", ""),
        ("figure SAVED --kind map --head 99 -o x.pdf", ""),
        ("figure SAVED --kind map --query 999999 -o x.pdf", ""),
        ("figure SAVED --kind levels --query 999999 -o x.pdf", ""),
        ("figure SAVED --kind map -o x.docx", ""),
        ("figure SAVED --kind map --width wide -o x.pdf", ""),
        ("figure SAVED --kind curve -o x.pdf", "is no study"),
        ("figure SAVED --kind scores -o x.pdf", "is no study"),
        ("logits SOURCE -o x.npy", ""),
        ("train no-such-file.toml -o x", ""),
    ],
)
def test_what_is_not_there_is_one_line_and_exit_code_1(
    refusal, saved, words, said, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    paths = {"SAVED": saved, "SOURCE": __file__, "NEAR": saved.with_suffix("")}
    assert said in refusal(*(paths.get(word, word) for word in words.split()))
    assert not list(tmp_path.iterdir())


def test_capture_passes_everything_on(run, spy, tmp_path):
    out = tmp_path / "out.h5"
    code, said, error = run(
        "capture", "folder", "--text", "-a b", "-o", out, "--off", "3.5,4.*", "--force",
        "--masking", "strict", "--dtype", "float64", "--activation", "ymish",
    )  # fmt: skip
    assert (code, error) == (0, "")
    assert spy.prompt == ("-a b", None, None)
    assert [str(one) for one in spy.load] == ["folder", "cpu", "float64", "strict", "ymish"]
    path, off, force = spy.capture
    assert (path, force) == (out, True)
    heads = spy.spec.layers[4].heads
    assert off == {HeadId(3, 5), *(HeadId(4, head) for head in heads)}
    assert str(out) in said and "tokens" in said


def test_an_empty_text_is_a_text(run, spy, tmp_path):
    run("capture", "folder", "--text", "", "-o", tmp_path / "out.h5")
    assert spy.prompt == ("", None, None)


def test_ctrl_c_says_in_one_line_what_is_kept(run, spy, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        progress(1, 13)
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "capture", interrupted)
    code, _, error = run("capture", "m", "--text", "a", "-o", tmp_path / "x.h5")
    assert (code, error) == (130, "Stopped. Nothing was left.\n")  # before the first layer
    (tmp_path / "x.h5.part").touch()
    code, _, error = run("capture", "m", "--text", "a", "-o", tmp_path / "x.h5")
    assert code == 130
    assert len(error.splitlines()) == 1
    assert error.startswith("Stopped.") and "x.h5.part" in error


def test_what_cannot_be_read_is_said_and_not_taken_for_another_kind(saved, monkeypatch):
    def closed(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "open", closed, raising=False)
    with pytest.raises(HgvizError) as caught:
        tasks.kind_of(saved)
    assert caught.value.what.endswith("Permission denied") and "owner" in caught.value.do


def test_ctrl_c_outside_a_task_is_one_line(run, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "info", interrupted)
    code, _, error = run("info", "x")
    assert (code, error.strip()) == (130, "Stopped.")


class Panic(BaseException):
    """What a Rust library raises when it gives up."""


@pytest.mark.parametrize(
    "error",
    [
        HgvizError("It broke", "Mend it"),
        OSError(28, "No space left on device", "x.h5"),
        MemoryError(),
        ValueError("odd\nand long"),
        Panic("gone"),
    ],
)
def test_every_error_is_one_line_and_a_traceback_only_with_debug(run, monkeypatch, error):
    def failing(_):
        raise error

    monkeypatch.setattr(tasks, "info", failing)
    code, out, said = run("info", "x")
    assert (code, out, len(said.splitlines())) == (1, "", 1)
    for arguments in (("--debug", "info", "x"), ("info", "x", "--debug")):
        code, _, said = run(*arguments)
        assert code == 1
        assert "Traceback" in said and "failing" in said


def test_train_says_what_came_out(run, monkeypatch, tmp_path):
    def train(config, out):
        progress(1, 1)
        metric = "bits_per_byte"
        before = {"original": {metric: 2.1}}
        roles = {"open": frozenset({HeadId(0, 1)}), "closed": frozenset()}
        return SimpleNamespace(
            metric=metric, value=1.9, before=before, steps=1200, seconds=90.0, roles=roles
        )

    monkeypatch.setattr(tasks, "train", train)
    code, said, _ = run("train", "plan.toml", "-o", tmp_path / "out")
    assert code == 0
    assert "bits per byte 1.900" in said and "(original 2.100" in said and "1,200 steps" in said
    assert said.splitlines()[1:] == ["1 head open: 0.1", "0 heads closed"]


def test_a_text_becomes_a_capture_that_holds_what_the_model_computes(run, facts, refusal, tmp_path):
    folder, out = tmp_path / "model", tmp_path / "out.h5"
    write_checkpoint(folder, vocab_size=256)
    code, said, error = run(
        "capture", folder, "--text", "Hello, world.", "-o", out, "--device", "cpu",
        "--off", "0.1", "--dtype", "float64",
    )  # fmt: skip
    assert (code, error) == (0, "") and "13 tokens" in said
    assert run("logits", out, "-o", tmp_path / "logits.npy")[0] == 0
    ids = np.frombuffer(b"Hello, world.", np.uint8).astype(np.int64)
    result = open_model(folder, dtype="float64").run(ids, off=frozenset({HeadId(0, 1)}))
    np.testing.assert_allclose(np.load(tmp_path / "logits.npy"), result.logits, atol=1e-5)
    assert facts("info", out)["off"] == ["0.1"]
    assert facts("info", folder)["kind"] == "checkpoint"

    before = out.read_bytes()
    assert "--force" in refusal("capture", folder, "--text", "Other", "-o", out)
    assert "no head 99.0" in refusal(
        "capture", folder, "--text", "a", "-o", "x.h5", "--off", "99.0"
    )
    assert out.read_bytes() == before
    assert run("capture", folder, "--text", "Other", "-o", out, "--force")[0] == 0
    assert out.read_bytes() != before


def test_logits_and_rollouts_are_written(run, saved, capture, tmp_path):
    out = tmp_path / "a.npy"
    assert run("logits", saved, "-o", out)[0] == 0
    np.testing.assert_array_equal(np.load(out), capture.logits)
    for words, recipe in (
        ("", RolloutOptions()),
        ("--fuse max --residual 0.2", RolloutOptions("max", residual=0.2)),
        ("--heads 0.1", RolloutOptions(heads=(HeadId(0, 1),))),
        ("--nothing", RolloutOptions(nothing=True)),
        ("--signed", RolloutOptions(signed=True)),
    ):
        assert run("rollout", saved, *words.split(), "-o", out)[0] == 0
        np.testing.assert_allclose(np.load(out), rollout(capture, options=recipe), atol=1e-6)
    assert run("rollout", saved, "--rows", "4:6", "-o", out)[0] == 0
    assert np.load(out).shape == (2, len(capture.prompt))
    figure = ("--kind", "rollout", "--fuse", "min", "--residual", "0.9", "--query", "5")
    code, said, _ = run("figure", saved, *figure, "-o", tmp_path / "r.svg")
    assert code == 0 and "attention rollout" in said
    assert "smallest of the heads, 90 % residual" in (tmp_path / "r.svg").read_text("utf-8")


def test_info_of_a_capture_for_programs_and_people(run, facts, saved, capture):
    told = facts("info", saved)
    assert told["kind"] == "capture" and told["complete"] is True
    assert [one["stride"] for one in told["levels"]] == [1, 2, 4]
    for layer, found in zip(told["layers"], capture.maps, strict=True):
        assert (layer["heads"], layer["queries"], layer["keys"]) == found.shape
    code, out, _ = run("info", saved)
    assert code == 0 and "kind: capture" in out and "pre.0.0" in out


@pytest.mark.parametrize(
    ("options", "reading"),
    [
        ((), {}),
        (("--rows", "3:9", "--columns", "2:20"), {"rows": (3, 9), "columns": (2, 20)}),
        (("--zoom", "2", "--reduce", "mean"), {"zoom": 2, "reduce": "mean"}),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".csv"])
def test_map_writes_what_the_capture_reads(run, saved, capture, tmp_path, options, reading, suffix):
    out = tmp_path / f"map{suffix}"
    code, _, error = run("map", saved, "--layer", 2, "--head", 1, *options, "-o", out)
    assert (code, error) == (0, "")
    found = np.load(out) if suffix == ".npy" else np.loadtxt(out, np.float32, delimiter=",")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, capture.maps[2].read(1, **reading))
    assert run("map", saved, "--head", "2.1", *options, "-o", out)[0] == 0
    again = np.load(out) if suffix == ".npy" else np.loadtxt(out, np.float32, delimiter=",")
    np.testing.assert_array_equal(again, found)


def test_characters_that_no_font_has_are_named(run, tmp_path):
    write_capture(tmp_path / "c.h5", make_capture("a\U000f1234 \ue123b"))
    out = tmp_path / "f.pdf"
    code, _, error = run("figure", tmp_path / "c.h5", "--kind", "map", "-o", out)
    assert (code, error.count("\n")) == (0, 1)
    assert "f.pdf: no installed font has U+E123, U+F1234; printed as □." in error


def test_a_figure_measures_no_heads_that_are_known(tmp_path, capture, monkeypatch):
    facts = roles(capture)
    monkeypatch.setattr("hgviz.analysis.roles.roles", None)
    spec = Spec("levels", Selection(0, 0, 5))
    assert tasks.figure(spec, capture, tmp_path / "a.pdf", facts=facts)


# --- models of other people -----------------------------------------------------------------------


def test_a_model_is_named_in_place_of_a_path(run, refusal, facts, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    cached(tmp_path / "hub", "org/small")
    told = facts("info", "org/small")
    assert (told["name"], told["family"]) == ("org/small", "bert")
    assert run("capture", "small", "--text", "the 나", "-o", "a.h5")[0] == 0
    assert open_capture("a.h5").spec.name == "org/small"
    assert run("convert", "org/small", "-o", "out") == (0, "out: bert, 11,698 parameters.\n", "")
    error = refusal("capture", "org/other", "--text", "a", "-o", "b.h5")
    assert error.startswith("There is no org/other: no file or folder has that name, and")


def test_info_names_adapters_value_heads_and_other_weights_that_are_not_read(
    run, refusal, facts, tmp_path
):
    folder = write_gpt2(tmp_path / "gpt2")
    assert "not_read" not in facts("info", folder)
    weights = load_file(folder / "model.safetensors")
    (folder / "pytorch_model.bin").write_bytes(b"")
    save_file(weights | {"v_head.summary.bias": torch.ones(1)}, folder / "model.safetensors")
    save_file({"lora_A.weight": torch.ones(1)}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "org/base"}')
    assert facts("info", folder)["not_read"] == [
        "v_head (1 tensor)", "adapter_config.json", "adapter_model.safetensors (an adapter)",
        "pytorch_model.bin",
    ]  # fmt: skip
    assert "\nnot read: v_head (1 tensor), adapter_config.json" in run("info", folder)[1]
    for name in ("model.safetensors", "pytorch_model.bin"):
        (folder / name).unlink()
    assert "is an adapter of PEFT" in refusal("info", folder)
    (folder / "config.json").unlink()
    assert "its base model is 'org/base'. Merge" in refusal("info", folder)


def test_a_capture_with_another_activation_shows_it(run, refusal, facts, tmp_path):
    folder = write_bert(tmp_path / "bert")
    out = tmp_path / "a.h5"
    asked = ("capture", folder, "--text", "the cat", "-o", out)
    assert run(*asked, "--activation", "softmax,ymish,tanh")[0] == 0
    told = facts("info", out)
    assert told["name"] == "bert with softmax,ymish,tanh"
    assert told["layers"][0]["activations"] == ["softmax", "ymish", "tanh"]
    assert "there is no activation 'relu'" in refusal(
        *asked, "--force", "--activation", "relu"
    ).replace("There", "there")
    assert "divides the 3 heads" in refusal(*asked, "--force", "--activation", "tanh,ymish")


def test_what_is_converted_gives_the_same_logits(run, refusal, tmp_path):
    folder, out = write_gpt2(tmp_path / "gpt2"), tmp_path / "out"
    assert run("convert", folder, "-o", out)[0] == 0
    ids = np.arange(9)
    assert np.array_equal(open_model(folder).run(ids).logits, open_model(out).run(ids).logits)
    assert "is there and not empty" in refusal("convert", folder, "-o", out)
    assert run("convert", folder, "-o", out, "--force")[0] == 0


def test_a_model_of_transformers_is_converted_to_one_of_its_folders(run, refusal, tmp_path):
    folder = write(tmp_path / "roberta", "roberta", "RobertaForMaskedLM")
    out = tmp_path / "out"
    code, said, error = run("convert", folder, "-o", out)
    assert (code, error) == (0, "") and said.startswith(f"{out}: roberta, ")
    ids = np.arange(3, 9)
    assert np.array_equal(open_model(folder).run(ids).logits, open_model(out).run(ids).logits)
    assert "is the model itself" in refusal("convert", out, "-o", out, "--force")


def test_no_tokens_are_one_line_and_special_ones_are_enough(run, refusal, tmp_path):
    bert, gpt2 = write_bert(tmp_path / "bert"), write_gpt2(tmp_path / "gpt2")
    out = tmp_path / "a.h5"
    assert run("capture", bert, "--text", "", "-o", out)[0] == 0
    assert open_capture(out).prompt.pieces == ("[CLS]", "[SEP]")
    assert refusal("capture", gpt2, "--text", "", "-o", out, "--force") == (
        "The text is empty: it has no tokens. Give some text.\n"
    )


def test_a_folder_is_no_capture(refusal, tmp_path):
    folder = write_bert(tmp_path / "bert")
    for verb in (("map", "--layer", 0, "--head", 0), ("rollout",)):
        error = refusal(verb[0], folder, *verb[1:], "-o", tmp_path / "a.npy")
        assert error.startswith(f"{folder} is no capture: it is a folder, and a capture is a file")
