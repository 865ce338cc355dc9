"""Captures of texts that models go on with: in memory, in files, from a terminal."""

import json

import numpy as np
import pytest

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Prompt
from hgviz.models import open_model
from hgviz.store import describe, open_capture
from hgviz.tasks import captures
from tests.models.building import write_checkpoint, write_transformer
from tests.models.folders import write_bert, write_gpt2
from tests.progress import cancelled, steps_of, with_steps

BYTES = {"vocab_size": 256, "hierarchy": "1@1 1@3 1@1"}
DECODER = {"family": "gpt2", "form": "decoder", "vocab_size": 256, "max_positions": 64}
MAKERS = {
    "hourglass": lambda at: write_checkpoint(at, **BYTES),
    "windowed": lambda at: write_checkpoint(at, form="windowed", positions="rotary", **BYTES),
    "decoder": lambda at: write_transformer(at, **DECODER),
    "gpt2": write_gpt2,
    "both": lambda at: write_transformer(at, family="transformer", vocab_size=256),
}


def made(name, folder, dtype="float64"):
    """A model and the texts that it is given: prompt, and target where it reads two."""
    model = open_model(MAKERS[name](folder / name), dtype=dtype)
    prompt = model.tokenize("the cat, 이")
    return model, prompt, (model.tokenize("so") if model.spec.two_texts else None)


def generated(model, prompt, target=None, count=20, **options):
    return tasks.generate(model, prompt, count, target=target, **options)


def same(one, two):
    """Every map, and the logits, bit for bit."""
    assert np.array_equal(one.logits, two.logits) and one.spec == two.spec
    assert one.main.digest == two.main.digest and one.main.text == two.main.text
    for a, b in zip(one.maps, two.maps, strict=True):
        assert a.shape == b.shape
        for head in a.heads:
            assert np.array_equal(a.read(head), b.read(head))


@pytest.mark.parametrize("name", MAKERS)
def test_the_likeliest_token_of_whole_passes_follows_twenty_times(tmp_path, name):
    model, prompt, target = made(name, tmp_path)
    ids = (prompt if target is None else target).ids
    begin = len(ids)
    for _ in range(20):
        given = {} if target is None else {"decoder_ids": ids}
        logits = model.run(ids if target is None else prompt.ids, **given).logits
        ids = np.append(ids, logits[-1].argmax())
    capture = generated(model, prompt, target)
    assert np.array_equal(capture.main.ids, ids)
    assert capture.made.generated == f"20 tokens after {begin}, greedy"
    assert capture.made.seed is None


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_an_ordinary_capture_of_the_text_that_came_out(tmp_path, name):
    model, prompt, target = made(name, tmp_path, "float32")
    off = frozenset([HeadId(0, 1)])
    out = tmp_path / "a.h5"
    capture = generated(model, prompt, target, 7, seed=3, temperature=0.8, off=off)
    texts = {"prompt": capture.prompt, "target": capture.target}
    same(capture, tasks.capture(model, off=off, **texts))
    kept = generated(model, prompt, target, 7, seed=3, temperature=0.8, off=off, out=out)
    same(kept, tasks.capture(model, out=tmp_path / "b.h5", off=off, **texts))
    begin = len(prompt if target is None else target)
    said = f"7 tokens after {begin}, seed 3, temperature 0.8"
    assert kept.made.generated == capture.made.generated == said
    assert kept.made.seed == 3 and kept.off == off
    assert describe(out)["provenance"]["generated"] == said
    assert tasks.capture(model, prompt, target=target).made.generated == ""


def test_a_seed_draws_the_same_text_again_and_others_draw_others(tmp_path):
    model, prompt, _ = made("hourglass", tmp_path)
    texts = [generated(model, prompt, count=12, seed=seed).prompt for seed in (0, 0, 1, 2)]
    assert texts[0].digest == texts[1].digest
    assert len({one.digest for one in texts}) == 3
    cold = generated(model, prompt, count=12, seed=1, temperature=1e-6).prompt
    assert cold.digest == generated(model, prompt, count=12).prompt.digest


@pytest.mark.parametrize("name", MAKERS)
def test_the_progress_carries_the_text_so_far(tmp_path, name, monkeypatch):
    monkeypatch.setattr(captures, "SHOWN_EVERY", 0.0)
    model, prompt, target = made(name, tmp_path)
    begin = len(prompt if target is None else target)
    final, steps = with_steps(tasks.generate, model, prompt, 9, target=target)
    assert all(0 <= step.done <= step.total for step in steps)
    texts = [step.value for step in steps if step.value is not None]
    assert [len(one) for one in texts] == list(range(begin + 1, begin + 10))
    for one in texts:  # bytes may not make a character yet
        assert final.main.text.startswith(one.text.rstrip("\ufffd"))
        assert one.ids.tolist() == final.main.ids[: len(one)].tolist()


def test_texts_under_way_are_no_more_than_can_be_seen(tmp_path, monkeypatch):
    model, prompt, _ = made("decoder", tmp_path)
    clock = iter(np.arange(0, 100, 0.03))
    monkeypatch.setattr(captures.time, "monotonic", lambda: float(next(clock)))
    steps = steps_of(tasks.generate, model, prompt, 40)
    texts = [step for step in steps if isinstance(step.value, Prompt)]
    assert 2 < len(texts) < 32 and len(steps) > 40


@pytest.mark.parametrize("name", MAKERS)
def test_what_was_written_before_a_stop_can_be_captured(tmp_path, name):
    model, prompt, target = made(name, tmp_path, "float32")
    whole = generated(model, prompt, target, count=6)
    given = prompt if target is None else target
    text = whole.main.ids[: len(given) + 3]
    source = None if target is None else prompt
    found = tasks.capture_written(model, model.from_ids(text), len(given), source, stopped="; so")
    assert found.made.generated == f"3 tokens after {len(given)}, greedy; so"
    assert found.complete and found.main.ids.tolist() == text.tolist()


def test_an_interrupted_one_goes_on_and_ends_alike(tmp_path):
    model, prompt, _ = made("hourglass", tmp_path, "float32")
    out = tmp_path / "a.h5"
    whole = generated(model, prompt, count=8, seed=5)
    on_disk = "layer 1 is on disk"
    cancelled(tasks.generate, model, prompt, 8, out, seed=5, when=lambda s: s.note == on_disk)
    assert (tmp_path / "a.h5.part").is_dir()
    kept = generated(model, prompt, count=8, seed=5, out=out)
    same(kept, tasks.capture(model, whole.prompt, tmp_path / "b.h5"))
    assert not (tmp_path / "a.h5.part").exists()


# --- where it ends --------------------------------------------------------------------------------


def test_it_ends_where_the_positions_end_and_says_so(tmp_path):
    model, prompt, _ = made("decoder", tmp_path)
    capture = generated(model, prompt, count=100)
    assert len(capture.prompt) == 64
    wrote = 64 - len(prompt)
    said = f"{wrote} tokens after {len(prompt)}, greedy; stopped where its 64 positions end"
    assert capture.made.generated == said
    full = generated(model, capture.prompt, count=1)
    assert full.made.generated.startswith("0 tokens after 64, greedy; stopped where")
    same(full, capture)
    exactly = generated(model, prompt, count=wrote)
    assert exactly.made.generated == f"{wrote} tokens after {len(prompt)}, greedy"


@pytest.mark.parametrize("where", ["config.json", "generation_config.json", "tokenizer"])
def test_it_ends_after_the_token_that_ends_a_text(tmp_path, where):
    folder = write_gpt2(tmp_path / "gpt2")
    model = open_model(folder)
    assert model.ends == frozenset()
    prompt = model.tokenize("the cat")
    ids = generated(model, prompt, count=12, seed=1).prompt.ids[len(prompt) :]
    place = next(at for at in range(3, 12) if ids[at] not in ids[:at])
    end = int(ids[place])
    if where == "tokenizer":
        token = model.tokenizer._tokenizer.id_to_token(end)
        data = {"eos_token": {"content": token}}
        (folder / "tokenizer_config.json").write_text(json.dumps(data))
    else:
        file = folder / where
        data = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**data, "eos_token_id": [end, 299] if data else end}))
    model = open_model(folder)
    assert end in model.ends
    capture = generated(model, prompt, count=12, seed=1)
    assert capture.prompt.ids[-1] == end and len(capture.prompt) == len(prompt) + place + 1
    assert capture.made.generated.endswith("; stopped after its end token")


@pytest.mark.parametrize("damaged", ["{", '{"eos_token_id": "x", "eos_token": 5}', "[]", ""])
def test_a_damaged_end_is_passed_over_and_a_damaged_tokenizer_is_one_error(tmp_path, damaged):
    folder = write_gpt2(tmp_path / "gpt2")
    (folder / "generation_config.json").write_text(damaged)
    (folder / "tokenizer_config.json").write_text('{"eos_token": 5}')
    assert open_model(folder).ends == frozenset()
    if len(damaged) < 3:
        (folder / "tokenizer_config.json").write_text(damaged)
        with pytest.raises(HgvizError, match="tokenizer_config.json is not a JSON object"):
            open_model(folder)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"count": 0}, "nothing to generate"),
        ({"count": -3}, "nothing to generate"),
        ({"temperature": 0.0, "seed": 1}, "no temperature 0"),
        ({"temperature": float("nan"), "seed": 1}, "no temperature nan"),
        ({"temperature": float("inf"), "seed": 1}, "no temperature inf"),
        ({"seed": -1}, "no seed -1"),
    ],
)
def test_what_cannot_be_asked_for_is_one_error(tmp_path, options, why):
    model, prompt, _ = made("decoder", tmp_path)
    with pytest.raises(HgvizError, match=why):
        generated(model, prompt, **options)


def test_a_file_that_is_there_is_refused_before_anything_is_written(tmp_path):
    model, prompt, _ = made("decoder", tmp_path)
    out = tmp_path / "a.h5"
    out.write_text("mine")
    with pytest.raises(HgvizError, match="exists already"):
        tasks.generate(model, prompt, 5, out)
    assert out.read_text() == "mine"
    assert generated(model, prompt, count=5, out=out, force=True).complete


def test_a_second_text_is_asked_for_as_by_any_capture(tmp_path):
    model, prompt, target = made("both", tmp_path)
    with pytest.raises(HgvizError, match="needs a second text"):
        generated(model, prompt)
    decoder, _, _ = made("decoder", tmp_path)
    with pytest.raises(HgvizError, match="reads one text"):
        generated(decoder, prompt, target)


# --- from a terminal ------------------------------------------------------------------------------


def test_the_command_line_says_what_was_written(tmp_path, run, facts):
    folder, out = MAKERS["decoder"](tmp_path / "model"), tmp_path / "a.h5"
    asked = ("capture", folder, "--text", "the ", "-o", out, "--generate", 6)
    code, said, error = run(*asked)
    capture = open_capture(out)
    assert (code, error) == (0, "") and len(capture.prompt) == 10
    closing = "a.h5: 4 heads in 2 layers on 10 tokens; the model wrote 6 tokens after 4, greedy.\n"
    assert said.endswith(closing)
    assert "\x1b" not in said and "\0" not in said
    code, said, _ = run(*asked, "--force", "--seed", 4, "--temperature", 0.5)
    assert code == 0 and "6 tokens after 4, seed 4, temperature 0.5.\n" in said
    assert facts("info", out)["provenance"]["seed"] == 4


def test_ids_without_a_tokenizer_go_on_as_ids(tmp_path, run):
    folder, out = write_gpt2(tmp_path / "model", tokenizer=False), tmp_path / "a.h5"
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps({"input_ids": [5, 6, 7]}))
    code, said, error = run("capture", folder, "--ids", ids, "--generate", 4, "-o", out)
    capture = open_capture(out)
    assert (code, error, capture.prompt.text) == (0, "", "")
    assert said.splitlines()[0] == " ".join(str(one) for one in capture.prompt.ids[3:])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--generate 0", "--generate"),
        ("--generate -1", "--generate"),
        ("--generate x", "--generate"),
        ("--seed 1", "go with --generate"),
        ("--temperature 1", "go with --generate"),
        ("--generate 2 --temperature 1", "goes with --seed"),
        *((f"--generate 2 --temperature {x} --seed 1", "above 0") for x in (0, -1, "nan", "inf")),
        ("--generate 2 --seed -1", "--seed"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(tmp_path, refusal, options, why):
    words = ("capture", "model", "--text", "a", "-o", tmp_path / "a.h5", *options.split())
    assert why in refusal(*words, code=2)
    assert not list(tmp_path.iterdir())


def test_a_model_that_cannot_write_says_why_in_one_line(tmp_path, refusal):
    folder = write_bert(tmp_path / "bert")
    words = ("--text", "the cat", "--generate", 3, "-o", tmp_path / "a.h5")
    assert refusal("capture", folder, *words) == (
        "This model cannot write: it is a classifier: it gives classes and no tokens. Choose a "
        "model that was trained to say the next token, such as GPT-2.\n"
    )
