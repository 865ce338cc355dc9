"""Captures: of every text of a corpus, of texts that a model goes on with, what they will take, and
that a stop ends them at once."""

import json
import weakref
from threading import Event, Thread

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import (
    Cancelled,
    HeadId,
    HgvizError,
    Prompt,
    cancelled_if,
    listening,
    raise_if_cancelled,
)
from hgviz.maps.rule import Rule
from hgviz.maps.tiles import in_threads
from hgviz.models import attention, devices, layers, open_model
from hgviz.store import captures as store
from hgviz.store import describe, open_capture
from hgviz.tasks import captures
from tests.closeness import scaled_error
from tests.models.building import (
    captured_layer,
    write_bert,
    write_checkpoint,
    write_gpt2,
    write_transformer,
)
from tests.progress import cancelled, steps_of, with_steps

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


@pytest.mark.parametrize("corpus", [False, True])
def test_of_all_layers_one_is_held_at_a_time(tmp_path, model, monkeypatch, corpus):
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
        if corpus:
            tasks.capture_corpus(model, tmp_path / "a.txt", tmp_path / "o.h5")
        else:
            tasks.capture(model, model.tokenize("One."), tmp_path / "o.h5")
    assert len(seen) == len(model.spec.layers) * (2 if corpus else 1)


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
    on_disk = "layer 1 saved"
    cancelled(tasks.generate, model, prompt, 8, out, seed=5, when=lambda s: s.note == on_disk)
    assert (tmp_path / "a.h5.part").is_dir()
    kept = generated(model, prompt, count=8, seed=5, out=out)
    same(kept, tasks.capture(model, whole.prompt, tmp_path / "b.h5"))
    assert not (tmp_path / "a.h5.part").exists()


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


def test_what_cannot_be_generated_is_one_error(tmp_path):
    model, prompt, target = made("decoder", tmp_path)
    both, source, _ = made("both", tmp_path)
    for arguments, options, said in (
        ((model, prompt), {"count": 0}, "cannot generate 0 tokens"),
        ((model, prompt), {"temperature": 0.0, "seed": 1}, "temperature cannot be 0"),
        ((model, prompt), {"temperature": float("nan"), "seed": 1}, "temperature cannot be nan"),
        ((model, prompt), {"seed": -1}, "seed cannot be -1"),
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
        ("--text a --generate x", "--generate"),
        ("--text a --seed 1", "require --generate"),
        ("--text a --temperature 1", "require --generate"),
        ("--text a --generate 2 --temperature 1", "requires --seed"),
        ("--text a --generate 2 --temperature 0 --seed 1", "above 0"),
        ("--text a --generate 2 --temperature nan --seed 1", "above 0"),
        ("--text a --generate 2 --seed -1", "--seed"),
        ("--corpus a --text x", "corpus"),
        ("--corpus a --target x", "corpus"),
        ("--corpus a --generate 3", "corpus"),
        ("--corpus a --force -o a", "is also an input"),
        ("--text-file a --force -o a", "is also an input"),
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("rows", "few"), [(64, 64), (200, 7), (193, 200)])
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


def test_a_stop_comes_between_two_blocks_of_rows(monkeypatch):
    monkeypatch.setattr(attention, "LONG_CELLS", 0)
    monkeypatch.setattr(attention, "LEAST_ROWS", 8)
    q = torch.randn(1, 2, 80, 4)
    rule = Rule(scale=0.5, activations=("softmax",) * 2, norms=(None,) * 2, causal=True)
    left = iter([True] * 3 + [False] * 9)
    with pytest.raises(Cancelled), torch.inference_mode(), cancelled_if(lambda: not next(left)):
        attention.attend(q, q, q, rule)
    assert len(list(left)) == 8
