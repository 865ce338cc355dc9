"""Captures of texts, of corpora and of texts that a model continues, what they will take and that
a stop ends them at once; and heads: their roles, how similar they are, and what an answer owes to
them."""

import csv
import json
import math
import shutil
import weakref
from threading import Event, Thread

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

import hgviz
from hgviz import tasks
from hgviz.analysis.statistics import spearman
from hgviz.core import (
    Cancelled,
    HeadId,
    HgvizError,
    Layer,
    cancelled_if,
    listening,
    raise_if_cancelled,
)
from hgviz.maps.rule import Rule
from hgviz.maps.tiles import in_threads
from hgviz.models import attention, checkpoints, devices, layers, open_model
from hgviz.models.attribution import COMPLETE, STEPS
from hgviz.store import captures as store
from hgviz.store import describe, open_capture, write_study
from hgviz.tasks import captures
from hgviz.tasks.attribution import Attribution, KeyScores, Question
from hgviz.tasks.head_similarity import MAP_ROWS, redundancy_of_weights
from hgviz.tasks.heads import CaptureCache
from tests.analysis.planting import letters, plant
from tests.closeness import scaled_error
from tests.making import make_capture
from tests.models.building import (
    captured_layer,
    own_bert,
    write_bert,
    write_checkpoint,
    write_gpt2,
    write_shared,
    write_transformer,
)
from tests.progress import steps_of, with_steps
from tests.studying import make_study

KEYS = {"vocab_size": 256, "d_model": 8, "n_heads": 2, "d_ff": 8, "hierarchy": "1@1 1@2 1@1"}
SENTENCE = "the cat sat on the mat and the dog sat on the log. "


def text(length):
    return (SENTENCE * (length // len(SENTENCE) + 1))[:length]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A small Hourglass of bytes, which has positions for any text."""
    folder = tmp_path_factory.mktemp("captures") / "model"
    return open_model(write_checkpoint(folder, dtype=torch.float32, **KEYS))


def same(one, two):
    """Every map, and the logits, bit for bit."""
    assert np.array_equal(one.logits, two.logits) and one.spec == two.spec
    assert one.main.digest == two.main.digest and one.main.text == two.main.text
    for a, b in zip(one.maps, two.maps, strict=True):
        assert a.shape == b.shape
        for head in a.heads:
            assert np.array_equal(a.read(head), b.read(head))


# --- a corpus -------------------------------------------------------------------------------------


def test_every_text_is_captured_as_if_it_were_alone(tmp_path, model):
    texts = ("A first text.", "Another!", "x")
    out, corpus = tmp_path / "o.h5", tmp_path / "a.txt"
    corpus.write_text("\n".join(texts))
    first, steps = with_steps(tasks.capture_corpus, model, corpus, out)
    assert "text 2 of 3" in [one.note for one in steps] and steps[-1].done == steps[-1].total
    assert [one.text for one in first.items] == list(texts) and first.prompt.text == texts[0]
    for number, content in enumerate(texts):
        alone = tasks.capture(model, model.tokenize(content), tmp_path / f"{number}.h5")
        found = open_capture(out, number)
        same(found, alone)
        assert [one.verify_max_abs for one in found.maps] == [
            one.verify_max_abs for one in alone.maps
        ]


def test_of_all_layers_one_is_held_at_a_time(tmp_path, model, monkeypatch):
    """What bounds the memory that a capture takes: a layer goes before the next is computed."""
    seen, write = [], store.write_layer

    def watched(group, layer, content, *more):
        seen.append(weakref.ref(content.q))
        return write(group, layer, content, *more)

    def check(step):
        assert all(one() is None for one in seen[:-1])  # the last is of the layer that attends

    monkeypatch.setattr(store, "write_layer", watched)
    (tmp_path / "a.txt").write_text("One.\nTwo.")
    with listening(check):
        tasks.capture_corpus(model, tmp_path / "a.txt", tmp_path / "o.h5")
    assert len(seen) == len(model.spec.layers) * 2


def test_a_text_too_long_for_the_model_is_named_by_its_line_before_anything_is_done(tmp_path):
    keys = {**KEYS, "positions": "learned", "max_positions": 16}
    model = open_model(write_checkpoint(tmp_path / "model", **keys))
    (tmp_path / "a.txt").write_text("Short.\n\n" + "long " * 9)
    with pytest.raises(HgvizError, match="a.txt, line 3: the text is too long"):
        tasks.capture_corpus(model, tmp_path / "a.txt", tmp_path / "o.h5")
    assert not list(tmp_path.glob("o.h5*"))


def test_the_command_captures_shows_and_says_so(tmp_path, monkeypatch, output, refusal, facts):
    monkeypatch.chdir(tmp_path)
    write_checkpoint(tmp_path / "model", **KEYS)
    (tmp_path / "a.tsv").write_text("text\tlabel\nOne text.\tpos\nAnother.\tneg\n")
    said = output("capture", "model", "--corpus", "a.tsv", "-o", "o.h5")
    assert said == "o.h5: 10 heads in 5 layers on 2 texts, 17 tokens in total.\n"
    told = facts("info", "o.h5")
    assert (told["items"], told["complete"]) == (2, True)
    at = ("--layer", 0, "--head", 0)
    for verb in (("map", *at), ("logits",), ("rollout",)):
        output(verb[0], "o.h5", *verb[1:], "--item", 1, "-o", f"{verb[0]}.npy")
    assert np.load("map.npy").shape == np.load("rollout.npy").shape == (8, 8)
    output("figure", "o.h5", "--kind", "map", *at, "--item", 1, "-o", "f.png")
    error = refusal("map", "o.h5", *at, "--item", 2, "-o", "m.npy")
    assert error.startswith("There is no text 2 in o.h5: it holds 2 texts")


# --- texts that a model goes on with --------------------------------------------------------------


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


@pytest.mark.parametrize("name", MAKERS)
def test_the_likeliest_token_of_whole_passes_follows_with_the_text_so_far(
    tmp_path, name, monkeypatch
):
    monkeypatch.setattr(captures, "SHOWN_EVERY", 0.0)
    model, prompt, target = made(name, tmp_path)
    ids = (prompt if target is None else target).ids
    begin = len(ids)
    for _ in range(12):
        given = {} if target is None else {"decoder_ids": ids}
        logits = model.run(ids if target is None else prompt.ids, **given).logits
        ids = np.append(ids, logits[-1].argmax())
    capture, steps = with_steps(tasks.generate, model, prompt, 12, target=target)
    assert np.array_equal(capture.main.ids, ids) and capture.made.seed is None
    assert capture.made.generated == f"12 tokens after {begin}, greedy"
    assert all(0 <= step.done <= step.total for step in steps)
    texts = [step.value for step in steps if step.value is not None]
    assert [len(one) for one in texts] == list(range(begin + 1, begin + 13))
    for one in texts:  # bytes may not make a character yet
        assert capture.main.text.startswith(one.text.rstrip("\ufffd"))
        assert one.ids.tolist() == ids[: len(one)].tolist()


@pytest.mark.parametrize("name", ["hourglass", "both"])
def test_it_is_an_ordinary_capture_of_the_text_that_came_out(tmp_path, name):
    model, prompt, target = made(name, tmp_path, "float32")
    off = frozenset([HeadId(0, 1)])
    how = {"seed": 3, "temperature": 0.8, "off": off}
    capture = generated(model, prompt, target, 7, **how)
    texts = {"prompt": capture.prompt, "target": capture.target}
    same(capture, tasks.capture(model, off=off, **texts))
    kept = generated(model, prompt, target, 7, **how, out=tmp_path / "a.h5")
    same(kept, tasks.capture(model, out=tmp_path / "b.h5", off=off, **texts))
    given = prompt if target is None else target
    said = f"7 tokens after {len(given)}, seed 3, temperature 0.8"
    assert kept.made.generated == capture.made.generated == said
    assert kept.made.seed == 3 and kept.off == off
    assert describe(tmp_path / "a.h5")["provenance"]["generated"] == said
    assert tasks.capture(model, prompt, target=target).made.generated == ""
    # what was written before a stop is a capture as well
    text, source = capture.main.ids[: len(given) + 3], None if target is None else prompt
    part = tasks.capture_written(model, model.from_ids(text), len(given), source, stopped="; so")
    assert part.made.generated == f"3 tokens after {len(given)}, greedy; so"
    assert part.complete and part.main.ids.tolist() == text.tolist()


def test_a_seed_draws_the_same_text_again_and_others_draw_others(tmp_path):
    model, prompt, _ = made("hourglass", tmp_path)
    texts = [generated(model, prompt, count=12, seed=seed).prompt for seed in (0, 0, 1, 2)]
    assert texts[0].digest == texts[1].digest
    assert len({one.digest for one in texts}) == 3
    cold = generated(model, prompt, count=12, seed=1, temperature=1e-6).prompt
    assert cold.digest == generated(model, prompt, count=12).prompt.digest


def test_it_ends_where_the_positions_end_and_says_so(tmp_path):
    model, prompt, _ = made("decoder", tmp_path)
    capture = generated(model, prompt, count=100)
    assert len(capture.prompt) == 64
    wrote = 64 - len(prompt)
    said = f"{wrote} tokens after {len(prompt)}, greedy; stopped at its maximum length of 64"
    assert capture.made.generated == said
    full = generated(model, capture.prompt, count=1)
    assert full.made.generated.startswith("0 tokens after 64, greedy; stopped at")
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
    assert capture.made.generated.endswith("; stopped at its end token")


def test_a_damaged_end_is_passed_over_and_a_damaged_tokenizer_is_one_error(tmp_path):
    folder = write_gpt2(tmp_path / "gpt2")
    (folder / "tokenizer_config.json").write_text('{"eos_token": 5}')
    for damaged in ("{", '{"eos_token_id": "x", "eos_token": 5}', "[]"):
        (folder / "generation_config.json").write_text(damaged)
        assert open_model(folder).ends == frozenset(), damaged
    (folder / "tokenizer_config.json").write_text("[]")
    with pytest.raises(HgvizError, match="tokenizer_config.json is not a JSON object"):
        open_model(folder)


def test_what_cannot_be_generated_is_one_error(tmp_path):
    model, prompt, target = made("decoder", tmp_path)
    both, source, _ = made("both", tmp_path)
    for arguments, options, said in (
        ((model, prompt), {"count": 0}, "cannot generate 0 tokens"),
        ((model, prompt), {"temperature": 0.0, "seed": 1}, "temperature cannot be 0"),
        ((model, prompt, source), {}, "reads one text"),
        ((both, source), {}, "needs a second text"),
    ):
        with pytest.raises(HgvizError, match=said):
            generated(*arguments, **options)
    out = tmp_path / "a.h5"
    out.write_text("mine")
    with pytest.raises(HgvizError, match="already exists"):
        generated(model, prompt, count=5, out=out)
    assert out.read_text() == "mine"
    assert generated(model, prompt, count=5, out=out, force=True).complete


def test_the_command_line_says_what_was_written(tmp_path, run, facts, refusal):
    folder, out = MAKERS["decoder"](tmp_path / "model"), tmp_path / "a.h5"
    asked = ("capture", folder, "--text", "the ", "-o", out, "--generate", 6)
    code, said, error = run(*asked)
    assert (code, error) == (0, "") and len(open_capture(out).prompt) == 10
    assert said.endswith("on 10 tokens; generated: 6 tokens after 4, greedy.\n")
    assert "\x1b" not in said and "\0" not in said
    code, said, _ = run(*asked, "--force", "--seed", 4, "--temperature", 0.5)
    assert code == 0 and "6 tokens after 4, seed 4, temperature 0.5.\n" in said
    assert facts("info", out)["provenance"]["seed"] == 4
    folder = write_gpt2(tmp_path / "ids", tokenizer=False)
    (tmp_path / "ids.json").write_text('{"input_ids": [5, 6, 7]}')
    asked = ("capture", folder, "--ids", tmp_path / "ids.json", "-o", out, "--force")
    code, said, error = run(*asked, "--generate", 4)
    prompt = open_capture(out).prompt
    assert (code, error, prompt.text) == (0, "", "")
    assert said.splitlines()[0] == " ".join(map(str, prompt.ids[3:]))
    folder = write_bert(tmp_path / "bert")
    words = ("--text", "the cat", "--generate", 3, "-o", tmp_path / "b.h5")
    assert "cannot generate text: it is a classifier" in refusal("capture", folder, *words)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--text a --generate 0", "--generate"),
        ("--text a --seed 1", "require --generate"),
        ("--text a --generate 2 --temperature 1", "requires --seed"),
        ("--text a --generate 2 --temperature nan --seed 1", "above 0"),
        ("--text a --generate 2 --seed -1", "--seed"),
        ("--corpus a --text x", "corpus"),
        ("--corpus a --generate 3", "corpus"),
        ("--corpus a --force -o a", "is also an input"),
        ("--ids a --force -o a", "is also an input"),
    ],
)
def test_wrong_use_is_one_line(tmp_path, monkeypatch, refusal, options, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("One text.\n")
    assert said in refusal("capture", "model", "-o", "o.h5", *options.split(), code=2)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["One text.\n"]


# --- what a capture will take ---------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch):
    """Texts of 200 tokens are long."""
    monkeypatch.setattr(captures, "QUICK", 200)
    monkeypatch.setattr(captures, "LENGTHS", (32, 128))


def test_what_is_kept_is_what_a_capture_keeps(model, short):
    for length in (201, 1000):
        found = tasks.estimate(model, text(length))
        maps = tasks.capture(model, model.tokenize(text(length))).maps
        assert found.kept == pytest.approx(sum(map(captures._map_bytes, maps)), rel=0.05)
        assert found.memory > found.kept and found.seconds > 0 and "about" in found.words
    assert steps_of(tasks.estimate, model, text(captures.QUICK)) == []
    assert tasks.estimate(model, text(50)) == tasks.Estimate(50)


def test_a_text_beyond_the_memory_is_refused_with_what_fits(model, short, monkeypatch):
    for free in (10_000_000, 100_000_000):
        monkeypatch.setattr(devices, "free_memory", lambda free=free: free)
        most = tasks.estimate(model, text(201)).most
        assert tasks.estimate(model, text(most)).memory <= 0.91 * free
        with pytest.raises(HgvizError, match="does not fit in memory") as caught:
            tasks.estimate(model, text(2 * most))
        assert f"{free / 1e6:,.0f} MB are free" in caught.value.what
        assert f"up to about {most // 1000 * 1000:,} tokens fit" in caught.value.do
    monkeypatch.setattr(devices, "free_memory", lambda: None)  # not known elsewhere than on Linux
    assert tasks.estimate(model, text(50_000)).most is None


def test_the_command_says_what_takes_long_or_does_not_fit(
    tmp_path, short, monkeypatch, run, refusal
):
    monkeypatch.setattr("hgviz.cli.captures.LONG", 0.0)
    write_checkpoint(tmp_path / "model", **BYTES)
    words = ("capture", tmp_path / "model", "-o", tmp_path / "x.h5", "--text")
    code, _, said = run(*words, text(300))
    assert code == 0 and "5 layers, 300 tokens: about " in said
    monkeypatch.setattr(devices, "free_memory", lambda: 1_000_000)
    assert "does not fit in memory" in refusal(*words, text(5000), "--force")


def test_tokens_of_a_long_text_are_counted_by_its_beginning(model, monkeypatch):
    monkeypatch.setattr(captures, "SAMPLE", 1000)
    assert captures.count_tokens(model, text(900)) == 900
    assert captures.count_tokens(model, text(123_456)) == 123_456
    assert captures.count_tokens(model, "ö" * 5000) == 10_000


def test_the_memory_of_a_control_group_is_the_end_of_the_machine(monkeypatch, tmp_path):
    kept = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 2000 kB\n"}

    class Files(type(tmp_path)):
        def read_text(self, *_):
            if str(self) not in kept:
                raise FileNotFoundError
            return kept[str(self)]

    monkeypatch.setattr(devices, "Path", Files)
    assert devices.free_memory() == 2_048_000
    kept |= {"/sys/fs/cgroup/memory.max": "max", "/sys/fs/cgroup/memory.current": "7"}
    assert devices.free_memory() == 2_048_000
    kept["/sys/fs/cgroup/memory.max"] = "1007"
    assert devices.free_memory() == 1000
    del kept["/proc/meminfo"]
    assert devices.free_memory() is None


# --- stopping -------------------------------------------------------------------------------------


def test_threads_that_help_stop_with_it():
    done, stop = [], Event()

    def work(i):
        done.append(i)
        stop.set()

    with pytest.raises(Cancelled), cancelled_if(stop.is_set):
        in_threads(work, 1000)
    assert len(done) < 1000
    in_threads(work, 3)  # nobody asks outside


def test_only_the_thread_that_asks_is_cancelled_and_no_handler_of_errors_catches_it():
    ended = []

    def work():
        raise_if_cancelled()
        ended.append(True)

    with pytest.raises(Cancelled), cancelled_if(lambda: True):
        thread = Thread(target=work)
        thread.start()
        thread.join()
        try:
            raise_if_cancelled()
        except Exception as error:  # as tasks do that go on after an error
            raise AssertionError from error
    work()
    assert ended == [True, True]


def test_a_capture_is_stopped_within_a_layer(model, monkeypatch):
    monkeypatch.setattr(layers, "CHUNK", 64)
    asked = []

    def is_cancelled():
        asked.append(None)
        return len(asked) == 5

    with pytest.raises(Cancelled), cancelled_if(is_cancelled):
        tasks.capture(model, model.tokenize(text(1000)))
    assert len(asked) == 5
    again = tasks.capture(model, model.tokenize(text(1000)))
    monkeypatch.setattr(layers, "CHUNK", 1 << 15)
    whole = tasks.capture(model, model.tokenize(text(1000)))
    assert scaled_error(again.logits, whole.logits) < 1e-5


@pytest.mark.parametrize(
    ("dtype", "causal", "rows", "few"),
    [(torch.float32, True, 200, 7), (torch.float64, False, 193, 200),
     (torch.float64, True, 64, 64), (torch.bfloat16, False, 200, 7)],
)  # fmt: skip
def test_fused_attention_by_rows_is_that_of_one_call(monkeypatch, dtype, causal, rows, few):
    made = torch.Generator().manual_seed(rows)
    q, k, v = (torch.randn(2, 3, rows, 8, generator=made, dtype=torch.float64) for _ in range(3))
    q, k, v = (one.to(dtype) for one in (3 * q, k, v))
    rule = Rule(scale=8**-0.5, activations=("softmax",) * 3, norms=(None,) * 3, causal=causal)
    with torch.inference_mode():
        whole = attention.attend(q, k, v, rule)
        one, kept = captured_layer(q[:1], k[:1], v[:1], rule)
        monkeypatch.setattr(attention, "LONG_CELLS", 0)
        monkeypatch.setattr(attention, "LEAST_ROWS", few)
        parts = attention.attend(q, k, v, rule)
        _, by_rows = captured_layer(q[:1], k[:1], v[:1], rule)
    limit = {torch.float32: 2e-6, torch.float64: 1e-14, torch.bfloat16: 2e-2}[dtype]
    assert parts.dtype == dtype and (parts - whole).abs().max() < limit
    assert (one - whole[:1]).abs().max() < limit
    sums, other = (np.asarray(one.stat) for one in (kept, by_rows))
    assert np.abs(sums - other).max() < max(limit, 1e-6)


# --- heads, one by one ----------------------------------------------------------------------------


SMALL = {"vocab_size": 256, "d_model": 8, "n_heads": 2, "d_ff": 8, "hierarchy": "1@1 1@2 1@1"}
TEXTS = ["Some words, and some more.", "It was late; the ship had gone.", "Words, words, words."]
REVIEW = "A dull plot, but she never bores."
SOFTMAX, HOURGLASS = "sample/softmax", "sample/hourglass"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An Hourglass, a file of texts and its capture, a study, an empty file and ids."""
    folder = tmp_path_factory.mktemp("heads")
    write_checkpoint(folder / "model", **SMALL)
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n", "utf-8")
    (folder / "empty.txt").touch()
    (folder / "ids.json").write_text('{"input_ids": [2, 5, 3]}')
    write_study(folder / "study.h5", make_study())
    tasks.capture_corpus(open_model(folder / "model"), folder / "texts.txt", folder / "texts.h5")
    own_bert(folder / "own")
    return folder


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("heads model", 2, "exactly one of --text"),
        ("heads model --corpus texts.txt --target b", 2, "need --text"),
        ("heads model --corpus texts.txt -o x.txt", 2, "does not end in"),
        ("heads texts.h5 --text a", 2, "has its own texts"),
        ("heads study.h5", 1, "is a study"),
        ("redundancy own sample/first.h5", 2, ""),
        ("attribute sample/softmax --text a --target-class sad", 1, "no class 'sad'"),
        ("attribute sample/softmax --text a --token 1", 2, "use --target-class"),
        ("attribute sample/hourglass --text a --target-class 1", 2, "for classifiers"),
        ("attribute sample/hourglass --text abc --token 3", 2, "no token 3"),
        ("attribute sample/hourglass --text abc --says two", 1, "is 3 tokens"),
        ("attribute sample/softmax --text a --method attention --head 1.*", 2, "one head"),
        ("attribute sample/softmax --text a --method attention --query 9", 2, "no token 9"),
        ("attribute sample/softmax --ids ids.json -o ids.json", 2, "would be replaced"),
    ],
)
def test_wrong_use_of_heads_is_one_line(folder, refusal, monkeypatch, words, code, message):
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert message in refusal(*words.split(), code=code)
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


# --- roles ----------------------------------------------------------------------------------------


def test_a_corpus_is_measured_alike_in_a_capture_and_by_its_model(folder, facts, run, tmp_path):
    captured = facts("heads", folder / "texts.h5")
    modelled = facts("heads", folder / "model", "--corpus", folder / "texts.txt")
    assert captured["texts"] == modelled["texts"] == 3
    assert captured["tokens"] == modelled["tokens"] == sum(map(len, TEXTS))
    for one, other in zip(captured["heads"], modelled["heads"], strict=True):
        assert (one["head"], one["role"]) == (other["head"], other["role"])
        for name in captured["metrics"]:
            assert one[name] == pytest.approx(other[name], abs=1e-5)
        assert {example["text"] for example in one["examples"]} <= {0, 1, 2}
    out = tmp_path / "heads.csv"
    code, said, _ = run("heads", folder / "texts.h5", "-o", out)
    assert code == 0 and "on 3 texts" in said and "No word is rare" in said
    rows = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    assert [row["head"] for row in rows] == [one["head"] for one in captured["heads"]]
    assert all("query" in row["examples"] for row in rows if row["role"] != "single key")


def test_captures_that_do_not_fit_are_made_again(folder, monkeypatch):
    attribution_of, first = [], open_capture(folder / "texts.h5")
    monkeypatch.setattr("hgviz.tasks.heads.CACHE_NUMBERS", 2 * 5 * 8 * 40)
    cached = CaptureCache(lambda number: attribution_of.append(number) or first)
    for number in (0, 1, 2, 0, 1, 2):
        assert cached(number) is first
    assert attribution_of[:3] == [0, 1, 2] and 0 not in attribution_of[3:] and attribution_of[3:]


# --- how alike heads are --------------------------------------------------------------------------


def test_heads_with_the_same_projections_have_cosine_1_and_rank_1(tmp_path, facts, output):
    path = write_transformer(
        tmp_path / "own", n_heads=3, form="encoder", dtype=torch.float64, goal="states"
    )
    found = checkpoints.read(path)
    tensors = dict(found.tensors)
    for side in "qk":
        name = f"middle.0.attn.{side}.weight"
        tensors[name] = tensors[name][:4].repeat(3, 1)
    checkpoints.save(path, found.config, tensors)
    told = facts("redundancy", path)
    assert told["kind"] == "weights"
    first, second = told["layers"]
    assert (first["stacked"]["rank"], first["stacked"]["of"]) == (4, 12)
    assert first["over_heads"]["rank"] == 1 and first["mean"] == pytest.approx(1)
    np.testing.assert_allclose(first["cosines"], 1.0)
    assert second["stacked"]["rank"] == 12 and second["over_heads"]["rank"] == 3
    assert "0.0 and 0.1" in output("redundancy", path)
    shared = facts("redundancy", write_shared(path, tmp_path / "shared"))["layers"]
    for one, other in zip(told["layers"], shared, strict=True):
        np.testing.assert_allclose(one["cosines"], other["cosines"], atol=1e-9)
        assert one["stacked"]["rank_99"] == other["stacked"]["rank_99"]
    out = tmp_path / "fig.svg"
    assert "2 layers" in output("redundancy", path, "-o", out, "--numbers")
    assert "hgviz redundancy own -o fig.svg" in out.read_text()
    rows = list(csv.DictReader((tmp_path / "fig.csv").read_text().splitlines()))
    cell = next(row for row in rows if (row["of"], row["x"], row["y"]) == ("Layer 1", "0", "2"))
    assert float(cell["value"]) == pytest.approx(second["cosines"][0][2], rel=1e-6)


def test_heads_of_models_and_captures_are_compared_from_python(folder):
    path = folder / "own"
    shown, model = hgviz.redundancy(str(path)), open_model(path)
    assert "<svg" in shown._repr_svg_() and shown.facts["kind"] == "weights"
    assert shown.command == "hgviz redundancy own -o figure.pdf"
    assert hgviz.redundancy(model).facts["layers"] == shown.facts["layers"]
    captures = [hgviz.capture(model, text) for text in ("the cat sat.", "un affable cat")]
    one, both = hgviz.redundancy(captures[0]), hgviz.redundancy(captures)
    assert one.facts["kind"] == both.facts["kind"] == "maps"
    assert both.facts["layers"][0]["rows"] > one.facts["layers"][0]["rows"]
    with pytest.raises(HgvizError, match="cannot be combined"):
        hgviz.redundancy([captures[0], path])
    other = hgviz.capture(open_model(own_bert(folder / "seed", seed=1)), "the cat")
    shutil.rmtree(folder / "seed")
    with pytest.raises(HgvizError, match="are of several models"):
        tasks.redundancy_of_captures([captures[0], other])


def of(q, k):
    """The redundancy of heads with queries and keys (H, D, d)."""
    heads, width, d = q.shape
    mix, names = np.repeat(np.eye(heads), width, axis=1), ("softmax",) * heads
    layer = Layer(0, "middle.0", "self", 0, 0, tuple(range(heads)), names, False)
    return redundancy_of_weights(layer, q.reshape(-1, d), mix, k.reshape(-1, d), heads * width)


def orthogonal(rows, d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, rows)))[0].T


def test_equal_orthogonal_turned_and_empty_heads():
    same = of(*(np.tile(orthogonal(4, 20, seed), (3, 1, 1)) for seed in (0, 1)))
    assert same.stacked.rank == 4 and same.stacked.ranks() == {0.9: 4, 0.95: 4, 0.99: 4}
    np.testing.assert_allclose(same.stacked.values[:4], np.sqrt(3), rtol=1e-9)
    assert (same.stacked.most, same.over_heads.rank, same.over_heads.ranks()[0.99]) == (12, 1, 1)
    np.testing.assert_allclose(same.alike, 1.0, rtol=1e-12)
    apart = of(*(orthogonal(12, 20, seed).reshape(3, 4, 20) for seed in (0, 1)))
    assert apart.stacked.rank == 12 and apart.stacked.ranks() == {0.9: 11, 0.95: 12, 0.99: 12}
    assert apart.over_heads.rank == 3 and apart.over_heads.ranks()[0.99] == 3
    np.testing.assert_allclose(apart.alike, np.eye(3), atol=1e-12)
    assert (same.mean, apart.mean) == pytest.approx((1, 0), abs=1e-12)
    q, k = np.random.default_rng(0).normal(size=(2, 1, 3, 8))
    turned = of(np.concatenate([q, -q]), np.concatenate([k, k]))
    assert turned.alike[0, 1] == pytest.approx(-1.0) and turned.mean == pytest.approx(1.0)
    empty = of(np.concatenate([q, 0 * q]), np.concatenate([k, k]))
    assert np.isnan(empty.alike[0, 1]) and empty.pairs == [] and np.isnan(empty.mean)
    assert empty.to_dict()["cosines"][0][1] is None and empty.to_dict()["mean"] is None


def test_numbers_are_those_of_the_matrices():
    q, k = np.random.default_rng(4).normal(size=(2, 3, 4, 10))
    found, matrices = of(q, k), q.transpose(0, 2, 1) @ k  # (H, d, d)
    stacked = np.linalg.svd(matrices.reshape(-1, 10), compute_uv=False)
    np.testing.assert_allclose(found.stacked.values, stacked, rtol=1e-8)
    vectors = matrices.reshape(3, -1)
    over_heads = np.linalg.svd(vectors, compute_uv=False)
    np.testing.assert_allclose(found.over_heads.values, over_heads, rtol=1e-9)
    sizes = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(found.alike, vectors @ vectors.T / np.outer(sizes, sizes))
    pairs = {(a.head, b.head): value for a, b, value in found.pairs}
    assert pairs[0, 2] == pytest.approx(found.alike[0, 2])
    assert [*map(abs, pairs.values())] == sorted(map(abs, pairs.values()))[::-1]


def of_maps(*texts):
    return tasks.redundancy_of_captures(
        [plant(letters("x" * maps[0].shape[1]), list(maps), causal=False) for maps in texts]
    ).layers


def test_the_distance_of_maps_is_scipys_over_all_rows_of_all_texts(monkeypatch):
    random = np.random.default_rng(1)
    texts = [[random.gamma(0.2, size=(3, n, n)) for _ in range(2)] for n in (40, 70)]
    layers = of_maps(*texts)
    for at, layer in enumerate(layers):
        assert layer.layer.index == at and layer.rows == 110 and not layer.cosines
        for i, j in np.ndindex(3, 3):
            rows = [jensenshannon(maps[at][i], maps[at][j], base=2, axis=1) for maps in texts]
            assert layer.alike[i, j] == pytest.approx(np.concatenate(rows).mean(), abs=1e-6)
    monkeypatch.setattr("hgviz.analysis.metrics.WEIGHTS_AT_ONCE", 1)
    np.testing.assert_allclose(of_maps(*texts)[0].alike, layers[0].alike, rtol=1e-12)


def test_equal_maps_are_0_apart_and_long_texts_have_rows_spread_over_them():
    eye = np.eye(MAP_ROWS + 100)
    (layer,) = of_maps([np.stack([eye, eye, eye[::-1]])])
    assert layer.rows == MAP_ROWS and layer.alike[0, 1] == 0
    assert layer.alike[0, 2] == pytest.approx(1) and layer.mean == pytest.approx(2 / 3)
    assert layer.pairs[0] == (HeadId(0, 0), HeadId(0, 1), 0.0)


# --- what an answer owes to them ------------------------------------------------------------------


@pytest.fixture(scope="module")
def review():
    """A classifier, its capture of a text, and where its answer comes from."""
    model = hgviz.open_model(SOFTMAX)
    capture = tasks.capture(model, model.tokenize(REVIEW))
    question = tasks.default_question("classes", capture.logits, capture.main, None)
    return model, capture, tasks.attribute(model, capture.prompt, question)


def test_it_is_complete_and_heads_layers_and_one_head_are_said(facts, output, review, tmp_path):
    _, capture, found = review
    told = facts("attribute", SOFTMAX, "--text", REVIEW)
    assert told["steps"] == found.steps in STEPS and told["error"] == found.error <= COMPLETE
    total = sum(row["attribution"] for row in told["tokens"])
    assert total == pytest.approx(told["sum"]) and len(told["tokens"]) == len(capture.main)
    assert abs(total - told["change"]) <= COMPLETE * abs(told["change"])
    assert told["answer"]["class"] == int(np.argmax(capture.logits))
    assert told["value"] == pytest.approx(float(np.max(capture.logits)), abs=1e-4)
    out = tmp_path / "heads.csv"
    words = ("attribute", SOFTMAX, "--text", REVIEW, "--steps", "4", "--method")
    assert "24 rows" in output(*words, "heads", "-o", out)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert [row["head"] for row in rows][4:8] == ["0.4", "0.5", "1.0", "1.1"]
    assert [row["layer"] for row in facts(*words, "layers")["layers"]] == [0, 1, 2, 3]
    told = facts(*words, "attention", "--head", "1.2", "--query", "0")
    sizes = [[abs(row[name]) for row in told["keys"]]
             for name in ("attention", "integrated_gradients")]  # fmt: skip
    assert told["agreement"]["attention_and_tokens"] == pytest.approx(spearman(*sizes))


def test_what_a_language_model_says_next(facts):
    words = "attribute", HOURGLASS, "--text", "The sea", "--steps", "4"
    follows = facts(*words, "--token", "3")["answer"]
    assert follows == {"at": 3, "after": " ", "token": ord("s"), "says": "s"}
    asked = facts(*words, "--token", "3", "--says", "x")
    assert asked["answer"]["token"] == ord("x")
    assert not any(row["attribution"] for row in asked["tokens"][4:])
    assert facts(*words)["answer"]["at"] == 6


@pytest.mark.parametrize("query", [5, None])
def test_a_head_beside_its_attention_is_what_autograd_says(review, query):
    """The slope of a weight: the answer's slope with the context, times the value, by hand."""
    model, capture, found = review
    head = HeadId(1, 2)
    beside = tasks.key_scores(found, capture, head, query)
    weights = capture.maps[1].read(2)
    given = _slopes_by_hand(model, capture, head, found.question.number)
    rows = slice(None) if query is None else slice(query, query + 1)
    wanted = (weights * given)[rows].sum(0)
    assert np.abs(beside.slope - wanted).max() <= 1e-5 * max(1e-3, np.abs(wanted).max())
    assert scaled_error(beside.attention, weights[rows].mean(0)) <= 1e-6
    assert np.allclose(beside.tokens, found.tokens, rtol=0, atol=1e-12)
    assert beside.columns.tolist() == list(range(len(capture.main)))


def _slopes_by_hand(model, capture, head, number):
    """(queries, keys): dF / dA of one head, where the maps of its layer are leaves."""
    layer = model.module.middle[str(head.layer)].attn
    maps = [capture.maps[head.layer].read(one) for one in layer.layer.heads]
    leaf = torch.tensor(np.stack(maps))[None].requires_grad_()

    def replaced(_, given, out):
        return layer.o((leaf @ layer._split(layer.v(given[1]))).transpose(1, 2).flatten(2))

    hook = layer.register_forward_hook(replaced)
    try:
        logits = model.module(torch.tensor(capture.prompt.ids)[None])
    finally:
        hook.remove()
    (slope,) = torch.autograd.grad(logits[0, number], leaf)
    return slope[0, head.head].numpy()


def attribution_of(capture, tokens, **fields):
    given = {"value": 3.0, "start": 1.0, "source": None, "heads": {}}
    return Attribution(
        Question(0), capture.prompt, None, frozenset(), tokens=tokens, **given | fields
    )


@pytest.mark.parametrize(
    ("share", "start", "error"),
    [(0.2, 1.0, 0), (0.1, 1.0, 0.5), (0.0, 3.0, 0), (1.0, 3.0, math.inf)],
)
def test_completeness_is_what_is_missing_of_the_change(share, start, error):
    capture, other = make_capture(text="short text"), make_capture(text="other text")
    found = attribution_of(capture, np.full(10, share), start=start)
    assert found.error == pytest.approx(error, abs=1e-12)
    assert found.is_of(capture) and not found.is_of(other)  # only of its own text and mask


@pytest.mark.parametrize("layer", [0, 2, 6, 10])
def test_a_column_stands_for_the_tokens_behind_it(layer):
    capture = make_capture(text="a text of some length that is no multiple of four")
    tokens = np.random.default_rng(0).normal(size=len(capture.prompt))
    found = attribution_of(capture, tokens).by_key(capture, layer)
    spans = capture.key_spans(layer)
    assert len(found) == capture.maps[layer].shape[2]
    for value, (start, end) in zip(found, spans.tolist(), strict=True):
        assert math.isnan(value) if start < 0 else value == pytest.approx(tokens[start:end].sum())


def test_agreement_is_of_sizes_and_says_where_there_is_none():
    three = np.array([0.1, 0.2, 0.7])
    one = KeyScores(HeadId(0, 0), 2, np.arange(3), three, -three, three[::-1])
    assert one.agreements == pytest.approx((1, -1, -1))
    none = KeyScores(HeadId(0, 0), 2, np.arange(3), three, three, None).agreements
    assert none[0] == pytest.approx(1) and all(map(math.isnan, none[1:]))
