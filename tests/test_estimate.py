"""What a capture will take is known before it begins, and whoever waits can stop it at once."""

import time
from functools import partial
from threading import Event, Thread

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import Cancelled, HgvizError, cancelled_if, progress, raise_if_cancelled
from hgviz.jobs import Lane
from hgviz.maps.rule import Rule
from hgviz.maps.tiles import in_threads
from hgviz.models import attention, devices, layers, open_model
from hgviz.tasks import captures
from tests.closeness import scaled_error
from tests.models.building import write_checkpoint
from tests.models.running import captured_layer
from tests.progress import steps_of

SENTENCE = "the cat sat on the mat and the dog sat on the log. "


@pytest.fixture
def model(tmp_path):
    """A small Hourglass of bytes, which has positions for any text."""
    write_checkpoint(
        tmp_path / "model", vocab_size=256, hierarchy="1@1 1@2 1@1", dtype=torch.float32
    )
    return open_model(tmp_path / "model")


@pytest.fixture
def short(monkeypatch):
    """Texts of 200 tokens are long."""
    monkeypatch.setattr(captures, "QUICK", 200)
    monkeypatch.setattr(captures, "LENGTHS", (32, 128))


def text(length):
    return (SENTENCE * (length // len(SENTENCE) + 1))[:length]


def test_a_short_text_is_not_worth_an_estimate(model):
    steps = steps_of(tasks.estimate, model, text(captures.QUICK))
    assert steps == []
    assert tasks.estimate(model, text(50)) == tasks.Estimate(50)


@pytest.mark.parametrize("length", [201, 1000])
def test_what_is_kept_is_what_a_capture_keeps(model, short, length):
    found = tasks.estimate(model, text(length))
    maps = tasks.capture(model, model.tokenize(text(length))).maps
    held = sum(captures._map_bytes(one) for one in maps)
    assert found.kept == pytest.approx(held, rel=0.05)
    assert found.memory > found.kept and found.seconds > 0 and "about" in found.words


def test_a_text_beyond_the_memory_is_refused_with_what_fits(model, short, monkeypatch):
    for free in (10_000_000, 100_000_000):
        monkeypatch.setattr(devices, "free_memory", lambda free=free: free)
        most = tasks.estimate(model, text(201)).most
        assert tasks.estimate(model, text(most)).memory <= 0.91 * free
        with pytest.raises(HgvizError, match="does not fit this machine's memory") as caught:
            tasks.estimate(model, text(2 * most))
        assert f"{free / 1e6:,.0f} MB are free" in caught.value.what
        assert f"up to about {most // 1000 * 1000:,} tokens fit" in caught.value.do
    monkeypatch.setattr(devices, "free_memory", lambda: None)  # not known elsewhere than on Linux
    assert tasks.estimate(model, text(50_000)).most is None


def test_the_command_says_what_takes_long_or_does_not_fit(
    model, tmp_path, short, monkeypatch, run, refusal
):
    monkeypatch.setattr("hgviz.cli.captures.LONG", 0.0)
    words = ("capture", tmp_path / "model", "-o", tmp_path / "x.h5", "--text")
    code, _, said = run(*words, text(300))
    assert code == 0 and "5 layers, 300 tokens: about 1 s, " in said
    monkeypatch.setattr(devices, "free_memory", lambda: 1_000_000)
    assert "does not fit this machine's memory" in refusal(*words, text(5000), "--force")


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


def endless(begun, ended):
    """Work that never ends by itself."""
    try:
        progress(0, 1)
        begun.set()
        while True:
            raise_if_cancelled()
            time.sleep(0.001)
    finally:
        ended.set()


def test_a_step_that_takes_long_is_stopped_within_it():
    lane, begun, ended, said = Lane("lane"), Event(), Event(), []
    try:
        job = lane.submit(
            "a", "endless", partial(endless, begun, ended),
            on_done=said.append, on_error=said.append,
            on_end=lambda: said.append("let go"),
        )  # fmt: skip
        assert begun.wait(60) and not job.ended
        job.cancel()
        assert job.wait(60) and ended.is_set()
        lane.submit("b", "next", partial(progress, 0, 1)).wait(60)
        assert said == ["let go"]
    finally:
        lane.shutdown()


def test_threads_that_help_stop_with_it():
    done, stop = [], Event()

    def work(i):
        done.append(i)
        stop.set()

    with pytest.raises(Cancelled), cancelled_if(stop.is_set):
        in_threads(work, 1000)
    assert len(done) < 1000
    in_threads(work, 3)  # nobody asks outside


def test_what_is_unwanted_is_no_error_that_anybody_catches():
    with pytest.raises(Cancelled), cancelled_if(lambda: True):
        try:
            raise_if_cancelled()
        except Exception as error:  # as tasks do that go on after an error
            raise AssertionError from error
    raise_if_cancelled()


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


# --- in blocks of rows ----------------------------------------------------------------------------


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


def test_other_threads_ask_for_themselves():
    found = []

    def other():
        raise_if_cancelled()
        found.append(True)

    with cancelled_if(lambda: True):
        thread = Thread(target=other)
        thread.start()
        thread.join()
    assert found == [True]
