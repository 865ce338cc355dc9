"""The verbs from a terminal: what they do, what they refuse, and in which words."""

import json
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import hgviz
from hgviz import cli, tasks
from hgviz.analysis import heads
from hgviz.core import HeadId, HgvizError, Selection, Step, finish
from hgviz.figures import FIGURES, Spec
from hgviz.store import write_capture, write_study
from hgviz.tasks import opening
from tests.figures.test_charts import study_of
from tests.making import make_capture
from tests.studying import make_study


def nobody(*_):
    raise AssertionError("this verb needs no window")


@pytest.fixture
def run(capfd):
    """Run a command line; gives exit code, standard output and standard error."""

    def call(*arguments):
        code = cli.main([str(one) for one in arguments], cli.Window(nobody, nobody))
        return code, *capfd.readouterr()

    return call


@pytest.fixture(scope="session")
def saved(capture, tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "saved.h5"
    write_capture(path, capture)
    return path


@pytest.fixture
def model(monkeypatch, capture):
    """Stands in for torch: notes what the tasks were asked for."""
    asked = SimpleNamespace(spec=capture.spec, takes_states=True)

    def load(path, device, dtype, masking, activation, reads):
        asked.load = (path, device, dtype, masking, activation)
        yield Step(1, 1)
        return asked

    def prompt_from(model, text, text_file, ids_file, *_):
        asked.prompt = (text, text_file, ids_file)
        return capture.prompt, None

    def capture_(model, prompt, out, off, force, target, dense, streaming):
        asked.capture = (out, off, force)
        yield Step(1, 1)
        return capture

    monkeypatch.setattr(tasks, "load", load)
    monkeypatch.setattr(tasks, "prompt_from", prompt_from)
    monkeypatch.setattr(tasks, "capture", capture_)
    return asked


def test_the_version_is_told(run):
    assert run("--version") == (0, f"hgviz {hgviz.__version__}\n", "")


def test_the_help_names_every_verb_and_none_of_the_future(run):
    code, out, _ = run("--help")
    assert code == 0
    shown = {
        line.split()[1] for line in out.splitlines() if line.startswith("│ ") and line[2] > " "
    }
    assert cli.verbs() <= shown
    assert cli.verbs() == {
        "demo", "info", "capture", "map", "logits", "rollout", "heads", "evaluate", "importance",
        "curve", "prune", "compare", "train", "convert", "figure", "selftest", "attribute",
        "reach", "redundancy", "study",
    }  # fmt: skip


def test_the_help_of_figure_names_every_kind(run):
    _, out, _ = run("figure", "--help")
    named = " ".join(out.split("--kind")[1].split("[required]")[0].replace("│", " ").split())
    assert all(kind in named for kind in FIGURES)


def test_verbs_of_the_window_are_handed_over(capfd):
    asked = []
    window = cli.Window(lambda folder: asked.append(folder) or 0, lambda: 7)
    assert cli.main(["demo", "--headless", "out"], window) == 0
    assert cli.main(["selftest"], window) == 7
    assert [str(one) for one in asked] == ["out"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("capture", "model"),
        ("capture", "model", "-o", "x.h5"),
        ("capture", "model", "-o", "x.h5", "--text", "a", "--text-file", "b"),
        ("capture", "model", "-o", "x.h5", "--text", "a", "--dtype", "int8"),
        ("capture", "model", "-o", "x.pdf", "--text", "a"),
        ("importance", "model", "--data", "x.tsv", "-o", "x.CSV"),
        ("map", "x.h5", "--layer", "0", "--head", "0", "-o", "x.txt"),
        ("map", "x.h5", "--layer", "-1", "--head", "0", "-o", "x.npy"),
        ("map", "x.h5", "--layer", "0", "--head", "0", "--rows", "5:2", "-o", "x.npy"),
        ("map", "x.h5", "--layer", "0", "--head", "0", "--rows", "a:b", "-o", "x.npy"),
        ("map", "x.h5", "--layer", "0", "--head", "0", "--reduce", "min", "-o", "x.npy"),
        ("logits", "x.h5", "-o", "x.csv"),
        ("figure", "x.h5", "--kind", "pie", "-o", "x.pdf"),
        ("info",),
        ("--wrong",),
        ("frobnicate",),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(run, arguments):
    code, out, error = run(*arguments)
    assert code == 2
    assert out == ""
    assert len(error.splitlines()) == 1 and "--help` shows what it takes." in error


def test_a_question_is_not_followed_by_a_full_stop(run):
    assert "Did you mean 'compare'? `hgviz --help`" in run("compar")[2]


def test_no_arguments_to_a_verb_never_print_a_traceback(run):
    for verb in cli.verbs() - {"demo", "selftest"}:
        assert run(verb)[0] == 2


def test_capture_passes_everything_on(run, model, monkeypatch, tmp_path):
    monkeypatch.setenv("HGVIZ_DEVICE", "cpu")
    out = tmp_path / "out.h5"
    code, said, error = run(
        "capture", "folder", "--text", "-a b", "-o", out, "--off", "3.5,4.*", "--force",
        "--masking", "strict", "--dtype", "float64", "--activation", "ymish",
    )  # fmt: skip
    assert (code, error) == (0, "")
    assert model.prompt == ("-a b", None, None)
    assert [str(one) for one in model.load] == ["folder", "cpu", "float64", "strict", "ymish"]
    path, off, force = model.capture
    assert (path, force) == (out, True)
    heads = model.spec.layers[4].heads
    assert off == {HeadId(3, 5), *(HeadId(4, head) for head in heads)}
    assert str(out) in said and "tokens" in said


def test_an_empty_text_is_a_text(run, model, tmp_path):
    run("capture", "folder", "--text", "", "-o", tmp_path / "out.h5")
    assert model.prompt == ("", None, None)


def test_a_head_that_does_not_exist_is_one_line(run, model, tmp_path):
    code, _, error = run("capture", "m", "--text", "a", "-o", tmp_path / "x.h5", "--off", "99.0")
    assert code == 1
    assert len(error.splitlines()) == 1 and "99.0" in error


def test_ctrl_c_says_in_one_line_what_is_kept(run, model, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        yield Step(1, 13)
        raise KeyboardInterrupt

    monkeypatch.setattr(tasks, "capture", interrupted)
    code, _, error = run("capture", "m", "--text", "a", "-o", tmp_path / "x.h5")
    assert (code, error) == (130, "Stopped. Nothing was left.\n")  # before the first layer
    (tmp_path / "x.h5.part").touch()
    code, _, error = run("capture", "m", "--text", "a", "-o", tmp_path / "x.h5")
    assert code == 130
    assert len(error.splitlines()) == 1
    assert error.startswith("Stopped.") and "x.h5.part" in error


def test_a_capture_is_not_given_a_text_again(run, saved, tmp_path):
    code, _, error = run("logits", saved, "--text", "a", "-o", tmp_path / "x.npy")
    assert code == 2 and "is a capture, which has its text" in error


def test_what_cannot_be_read_is_said_and_not_taken_for_another_kind(saved, monkeypatch):
    def closed(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(opening, "open", closed, raising=False)
    with pytest.raises(HgvizError) as caught:
        tasks.kind_of(saved)
    assert caught.value.why == "Permission denied" and "owner" in caught.value.do


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
        HgvizError("It broke", "for a reason", "Mend it"),
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
        yield Step(1, 1)
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


def test_a_text_becomes_a_capture_that_holds_what_the_model_computes(run, tmp_path):
    from hgviz.models import open_model
    from tests.models.building import write_checkpoint

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
    assert json.loads(run("info", out, "--json")[1])["off"] == ["0.1"]
    assert json.loads(run("info", folder, "--json")[1])["kind"] == "checkpoint"

    before = out.read_bytes()
    code, _, error = run("capture", folder, "--text", "Other", "-o", out)
    assert code == 1 and len(error.splitlines()) == 1 and "--force" in error
    assert out.read_bytes() == before
    assert run("capture", folder, "--text", "Other", "-o", out, "--force")[0] == 0
    assert out.read_bytes() != before


# --- on a capture ---------------------------------------------------------------------------------


def test_info_of_a_capture_for_programs_and_people(run, saved, capture):
    code, out, _ = run("info", saved, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["kind"] == "capture" and facts["complete"] is True
    assert [one["stride"] for one in facts["levels"]] == [1, 2, 4]
    assert [set(one) for one in facts["levels"]] == 3 * [
        {"index", "stride", "key_shift", "sequence"}
    ]
    assert len(facts["layers"]) == len(capture.maps)
    for layer, found in zip(facts["layers"], capture.maps, strict=True):
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


def test_logits_and_rollout_are_written(run, saved, capture, tmp_path):
    assert run("logits", saved, "-o", tmp_path / "logits.npy")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "logits.npy"), capture.logits)
    assert run("rollout", saved, "--rows", "4:6", "-o", tmp_path / "rollout.npy")[0] == 0
    assert np.load(tmp_path / "rollout.npy").shape == (2, len(capture.prompt))


OF_TEXTS = [k for k, row in FIGURES.items() if row.of == "capture" and k != "image"]


@pytest.mark.parametrize("kind", OF_TEXTS)
def test_every_kind_of_figure_of_a_capture_is_drawn(run, saved, tmp_path, kind):
    out = tmp_path / f"{kind}.pdf"
    code, said, error = run("figure", saved, "--kind", kind, "--width", "acl", "-o", out)
    assert (code, error) == (0, "")
    assert out.read_bytes().startswith(b"%PDF") and str(out) in said


def test_characters_that_no_font_has_are_named(run, tmp_path):
    write_capture(tmp_path / "c.h5", make_capture("a\U000f1234 \ue123b"))
    out = tmp_path / "f.pdf"
    code, _, error = run("figure", tmp_path / "c.h5", "--kind", "map", "-o", out)
    assert (code, error.count("\n")) == (0, 1)
    assert "f.pdf: no installed font has U+E123, U+F1234; printed as □." in error


@pytest.mark.parametrize("suffix", [".pdf", ".csv"])
@pytest.mark.parametrize("kind", ["curve", "scores"])
def test_every_kind_of_figure_of_a_study_is_drawn(run, tmp_path, kind, suffix):
    study, out = tmp_path / "study.h5", tmp_path / f"figure{suffix}"
    write_study(study, study_of(("loo", "signed")))
    options = ("--method", "loo", "--width", "acl", "--axis", "flops")
    code, said, error = run("figure", study, "--kind", kind, *options, "-o", out)
    assert (code, error) == (0, "")
    assert str(out) in said
    if suffix == ".pdf":
        axis = " --axis flops" * (kind == "curve")  # scores have none
        again = f"hgviz figure study.h5 --kind {kind} --method loo{axis} --width acl"
        assert again.encode() in out.read_bytes()
    else:
        assert len(out.read_text().splitlines()) > len(make_study().heads)


def test_curves_of_several_studies_are_one_figure_and_scores_are_of_one(run, tmp_path):
    files = [tmp_path / "a.h5", tmp_path / "b.h5"]
    for seed, file in enumerate(files):
        write_study(file, study_of(("loo",), seed))
    assert run("figure", *files, "--kind", "curve", "-o", tmp_path / "f.svg")[0] == 0
    code, _, error = run("figure", *files, "--kind", "scores", "-o", tmp_path / "g.svg")
    assert code == 2 and "one file" in error


@pytest.mark.parametrize("kind", ["curve", "scores"])
def test_a_capture_is_no_study(run, saved, tmp_path, kind):
    code, _, error = run("figure", saved, "--kind", kind, "-o", tmp_path / "f.pdf")
    assert code == 1 and "is no study" in error and len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("info", "no-such-file.h5"),
        ("map", "no-such-file.h5", "--layer", "0", "--head", "0", "-o", "x.npy"),
        ("map", "SAVED", "--layer", "99", "--head", "0", "-o", "x.npy"),
        ("map", "SAVED", "--layer", "0", "--head", "99", "-o", "x.npy"),
        ("map", "SAVED", "--layer", "0", "--head", "0", "--rows", "0:999999", "-o", "x.npy"),
        ("map", "SAVED", "--layer", "0", "--head", "0", "-o", "no/such/folder/x.npy"),
        ("rollout", "SAVED", "--rows", "0:999999", "-o", "x.npy"),
        ("figure", "SAVED", "--kind", "map", "--layer", "99", "-o", "x.pdf"),
        ("figure", "SAVED", "--kind", "map", "--head", "99", "-o", "x.pdf"),
        ("figure", "SAVED", "--kind", "map", "--query", "999999", "-o", "x.pdf"),
        ("figure", "SAVED", "--kind", "levels", "--query", "999999", "-o", "x.pdf"),
        ("figure", "SAVED", "--kind", "map", "-o", "x.docx"),
        ("figure", "SAVED", "--kind", "map", "--width", "wide", "-o", "x.pdf"),
        ("logits", __file__, "-o", "x.npy"),
        ("train", "no-such-file.toml", "-o", "x"),
    ],
)
def test_what_is_not_there_is_one_line_and_exit_code_1(
    run, saved, arguments, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, out, error = run(*(str(saved) if one == "SAVED" else one for one in arguments))
    assert (code, out) == (1, "")
    assert len(error.splitlines()) == 1
    assert "nobody foresaw" not in error
    assert not list(tmp_path.iterdir())


def test_it_works_as_a_module(saved):
    done = subprocess.run(
        [sys.executable, "-m", "hgviz", "info", saved, "--json"],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0
    assert json.loads(done.stdout)["kind"] == "capture"


def test_a_figure_measures_no_heads_that_are_known(tmp_path, capture, monkeypatch):
    facts = finish(tasks.measure(capture))
    monkeypatch.setattr(heads, "measure", None)
    spec = Spec("levels", Selection(0, 0, 5))
    assert finish(tasks.figure(spec, capture, tmp_path / "a.pdf", facts=facts))
