"""Mask files: what --off @FILE switches off in every command that takes it, and what is refused."""

import json

import pytest
import typer

import hgviz
from hgviz import cli, tasks
from hgviz.cli.options import command_words
from hgviz.core import HeadId
from hgviz.errors import HgvizWarning
from hgviz.files import find_sample
from hgviz.maskfile import read_heads, read_mask
from hgviz.models.training import read_plan
from hgviz.store import open_capture
from tests.models.folders import write_gpt2

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


@pytest.fixture(scope="module")
def digest():
    return tasks.digest_of(find_sample("sample/softmax"))


@pytest.fixture
def mask(tmp_path, monkeypatch, digest):
    """Write a mask of sample/softmax; returns what --off takes."""
    monkeypatch.chdir(tmp_path)

    def write(**fields):
        (tmp_path / "mask.json").write_text(json.dumps({"model": digest} | fields))
        return "@mask.json"

    return write


def test_these_are_all_commands_that_switch_heads_off():
    group = typer.main.get_command(cli.app)
    with group.make_context("hgviz", [], resilient_parsing=True) as context:
        commands = {name: group.get_command(context, name) for name in cli.verbs()}
    has_off = {
        name for name, one in commands.items() if "--off" in str([p.opts for p in one.params])
    }
    assert has_off == COMMANDS.keys()


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_command_refuses_the_mask_of_another_model(refusal, mask, tmp_path, verb):
    error = refusal(verb, *COMMANDS[verb], "--off", mask(heads=["0.1"], model="f" * 64))
    assert "mask.json is a mask of another model" in error and "ffffffffffff" in error
    assert [path.name for path in tmp_path.iterdir()] == ["mask.json"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"heads": ["99.0"]}', "no head 99.0"),
        ('{"streaming": ["99.0"]}', "no head 99.0"),
        ('{"heads": ["x"]}', "does not name a head"),
        ('{"heads": "0.1"}', "is no mask file: Expected `array`, got `str`"),
        ('{"heads": [1]}', "is no mask file: Expected `str`, got `int`"),
        ('{"head": []}', "unknown field `head`"),
        ("[]", "is not a JSON object"),
        ('{"heads": ["0.1"', "is not a JSON object"),
        ("\0\xff", "is not a JSON object"),
        (None, "no mask file has that name"),
    ],
)
def test_a_damaged_mask_is_one_line(refusal, tmp_path, content, said):
    path = tmp_path / "mask.json"
    if content is not None:
        path.write_text(content)
    assert said in refusal("evaluate", *COMMANDS["evaluate"], "--off", f"@{path}")


def test_masks_are_written_and_read_again(facts, refusal, mask, digest, tmp_path):
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
        (("--keep", "25%"), "--keep and --mask go together", 2),
        (("--keep", "25%", "--mask", "notes.json"), "is not a JSON object", 1),
        (("--keep", "99", "--mask", "x.json"), "24", 1),
        (("--keep", "25%", "--mask", "no/x.json"), "there is no folder", 1),
    ):
        assert said in refusal(*asked, *words, code=code)
    assert (tmp_path / "notes.json").read_text() == "{}\n[]"
    assert not (tmp_path / "x.json").exists()


def test_a_command_is_recorded_without_the_folder_of_a_mask():
    assert command_words({"--off": "@/home/a/mask.json"}) == ("--off", "@mask.json")
    assert command_words({"--off": "3.5,4.*", "--text": "@/a/b"}) == (
        "--off", "3.5,4.*", "--text", "@/a/b",
    )  # fmt: skip


def test_a_mask_switches_off_what_the_names_do(facts, mask):
    asked = ("evaluate", *COMMANDS["evaluate"], "--limit", 40)
    named = facts(*asked, "--off", "0.1,1.*")
    assert facts(*asked, "--off", mask(heads=["0.1", "1.*"])) == named != facts(*asked)
    found = hgviz.evaluate("sample/softmax", "sample/reviews.tsv", off="@mask.json", limit=40)
    assert found.to_dict() == named
    assert facts(*asked, "--off", mask()) == facts(*asked)
    folder = facts("prune", "sample/softmax", "-o", "out", "--off", mask(heads=["0.1"]))
    assert folder["off"] == ["0.1"]


def test_streaming_heads_of_a_mask_count_where_heads_can_stream(run, output, tmp_path):
    gpt2, path, out = write_gpt2(tmp_path / "gpt2"), tmp_path / "mask.json", tmp_path / "a.h5"
    fields = {"heads": ["0.1"], "streaming": ["1.0"], "model": tasks.digest_of(gpt2)}
    path.write_text(json.dumps(fields))
    asked = ("capture", gpt2, "--text", "the cat sat", "-o", out, "--off", f"@{path}")
    assert "--streaming goes with a text" in run(*asked, "--generate", 2)[2]
    output(*asked, "--streaming", "1.1", "--sink", 1, "--recent", 2)
    made = open_capture(out)
    assert made.off == {HeadId(0, 1)}
    assert (made.streaming.heads, made.streaming.window) == ({HeadId(1, 0), HeadId(1, 1)}, (1, 2))
    assert read_mask(f"@{path}", made.spec) == ({HeadId(0, 1)}, {HeadId(1, 0)})
    with pytest.warns(HgvizWarning, match="1 streaming head ignored"):
        assert read_heads(f"@{path}", made.spec) == {HeadId(0, 1)}
    code, _, error = run("heads", gpt2, "--text", "the cat", "--off", f"@{path}")
    assert (code, error.count("\n")) == (0, 1) and "1 streaming head ignored" in error
