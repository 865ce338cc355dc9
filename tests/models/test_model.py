"""An open model: arrays in and out, dtypes, devices, what it refuses; surveys on a device."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.maps import LazyMap, Quadratic, Relative, Rule, overview, recompute_statistics
from hgviz.maps.lazy import corrected_statistic
from hgviz.maps.tiles import SurveyRequest, survey
from hgviz.models import device_maps, open_model
from hgviz.models import model as models
from hgviz.models.device_maps import DeviceHead, blocks_on
from hgviz.models.run import CaptureRecorder
from hgviz.tasks import capture
from tests.closeness import scaled_error
from tests.maps.reference import scores, statistic, visible, whole_map
from tests.maps.test_lazy import layers, make
from tests.models.building import own_bert, write_checkpoint, write_gpt2, write_transformer

NESTED = {"hierarchy": "1@1 1@2 1@4 1@2 1@1", "positions": "rotary"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("model") / "small", **NESTED)


@pytest.fixture
def model(folder):
    return open_model(folder, dtype="float64")


def test_a_batch_reads_like_its_rows(model):
    ids = np.random.default_rng(0).integers(0, 23, (3, 13))
    mask = np.arange(13) < np.array([[13], [9], [5]])
    for keep in (None, mask):
        batch = model.run(ids, attention_mask=keep).logits
        assert batch.shape == (3, 13, 23)
        for row in range(3):
            one = model.run(ids[row], attention_mask=None if keep is None else keep[row]).logits
            assert one.shape == (13, 23)
            assert np.abs(one - batch[row]).max() < 1e-12


@pytest.mark.parametrize("write, head", [
    (write_checkpoint, "lm_head"), (own_bert, "head"), (write_gpt2, "net.lm_head"),
])  # fmt: skip
def test_a_capture_without_logits_never_makes_them(tmp_path, write, head):
    model, outputs = open_model(write(tmp_path / "model")), []
    model.module.get_submodule(head).register_forward_hook(lambda *parts: outputs.append(parts))
    prompt = model.from_ids(np.arange(2, 9))
    without = capture(model, prompt, logits=False)
    assert without.logits is None and not outputs
    found = capture(model, prompt)
    assert found.logits is not None and len(outputs) == 1
    for one, other in zip(found.maps, without.maps, strict=True):
        assert all((one.read(head) == other.read(head)).all() for head in one.heads)
    assert tasks.roles_of_text(model, prompt) and len(outputs) == 1


@pytest.mark.parametrize(
    "dtype, tolerance", [("float64", 0), ("float32", 1e-4), ("bfloat16", 0.5), ("float16", 0.1)]
)
def test_every_dtype_gives_numpy_logits_and_exact_maps(folder, model, dtype, tolerance):
    other = open_model(folder, dtype=dtype)
    ids, tapped = np.arange(13), {}
    other.trace(other.from_ids(ids), observers=[CaptureRecorder(tapped.__setitem__)])
    assert {one.dtype for one in tapped.values()} == {dtype}
    for layer in model.spec.layers:
        factors = recompute_statistics(tapped[layer.index])  # as captures keep them
        seen = LazyMap(factors, layer.heads)
        assert seen.read(1).sum(-1) == pytest.approx(1.0, abs=1e-5)
        assert seen.verify_max_abs < 1e-5
    logits = other.run(ids).logits
    assert logits.dtype == (np.float64 if dtype == "float64" else np.float32)
    assert np.abs(logits - model.run(ids).logits).max() <= tolerance


def test_a_byte_model_reads_texts_and_ids(tmp_path):
    model = open_model(write_checkpoint(tmp_path, vocab_size=256, max_positions=16))
    prompt = model.tokenize("héllo")
    assert prompt.ids.tolist() == list("héllo".encode())
    again = model.from_ids(prompt.ids, [1] * 5 + [0])
    assert (again.text, again.attention_mask.tolist()) == ("héllo", [True] * 5 + [False])
    with pytest.raises(HgvizError, match="the text is empty"):
        model.tokenize("")
    with pytest.raises(HgvizError, match="too long: 17 bytes, and the maximum is 16"):
        model.tokenize("a" * 17)
    with pytest.raises(HgvizError, match="too long: 17 tokens, and the maximum is 16"):
        model.run(np.zeros(17, int))


REFUSED = [
    ({"ids": []}, "the text is empty"),
    ({"ids": [1, 23]}, "there is no token 23: the ids of this model are 0 to 22"),
    ({"ids": [1.0, 2.0]}, "the ids must be integers, not float64"),
    ({"ids": [10**30]}, "the ids must be integers"),
    ({"ids": 3}, "the ids must have 1 or 2 dimensions, not 0"),
    ({"ids": [[1, 2], [3]]}, "the ids are not an array: their rows differ in length"),
    ({"ids": [1, 2], "attention_mask": [1]}, "the attention_mask does not fit the ids"),
    ({"ids": [1, 2], "attention_mask": [1, 2]}, "the attention_mask does not fit the ids"),
    ({"ids": [1], "token_type_ids": [0]}, "this model does not accept token_type_ids"),
    ({"ids": [1], "off": [HeadId(9, 0)]}, "this model has no head 9.0"),
]


def test_what_cannot_be_run_is_one_error(model):
    for arguments, words in REFUSED:
        with pytest.raises(HgvizError) as caught:
            model.run(**arguments)
        assert words in str(caught.value)


LACKING = (
    MemoryError(), RuntimeError("CUDA out of memory. Tried 3 GiB"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
)  # fmt: skip


def test_too_little_memory_is_one_error_with_a_way_out_and_other_faults_are_not(model, monkeypatch):
    for error, raised, words in (
        *((error, HgvizError, "out of memory on cpu: the text has 3 tokens")
          for error in LACKING),
        (RuntimeError("a bug"), RuntimeError, "a bug"),
    ):  # fmt: skip
        monkeypatch.setattr(model.module, "forward", Mock(side_effect=error))
        with pytest.raises(raised, match=words):
            model.run([1, 2, 3])


# --- devices --------------------------------------------------------------------------------------


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.delenv("HGVIZ_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


def test_auto_takes_the_best_device_there_is(no_gpu, monkeypatch):
    assert models.device_of("auto") == "cpu"
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert models.device_of("auto") == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert models.device_of("auto") == "cuda"
    monkeypatch.setenv("HGVIZ_DEVICE", "cpu")
    assert models.device_of("auto") == "cpu"
    assert models.device_of("cuda") == "cuda"


ABSENT = [  # options, HGVIZ_DEVICE, what is said
    ({"device": "tpu"}, "", "unknown device 'tpu'. Choose from auto, cpu, cuda, mps."),
    ({"device": "cuda"}, "", "cuda is not available: torch "),
    ({"device": "auto"}, "gpu", "unknown HGVIZ_DEVICE 'gpu'. Choose from auto, cpu"),
    ({"dtype": "int8"}, "", "unknown dtype 'int8'. Choose from float64"),
    ({"masking": "loose"}, "", "unknown masking 'loose'. Choose from compat, strict"),
    ({"masking": "compat"}, "", "this model only supports strict masking"),
]


def test_devices_dtypes_and_maskings_that_are_not_there(folder, no_gpu, monkeypatch):
    for options, variable, message in ABSENT:
        monkeypatch.setenv("HGVIZ_DEVICE", variable)
        with pytest.raises(HgvizError) as caught:
            open_model(folder, **options)
        assert str(caught.value).startswith(message)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("form", ["official", "windowed"])
def test_cuda_computes_what_the_cpu_does(tmp_path, form):
    """Logits and tiles within 1e-4 in float32, TF32 off."""
    torch.backends.cuda.matmul.allow_tf32 = False
    folder = write_checkpoint(tmp_path, form=form, **NESTED)
    ids, found = np.random.default_rng(0).integers(0, 23, 301), {}
    for device in ("cpu", "cuda"):
        tapped = {}
        model = open_model(folder, device=device)
        model.trace(model.from_ids(ids), observers=[CaptureRecorder(tapped.__setitem__)])
        tiles = [LazyMap(one, (0, 1)).read(1) for one in tapped.values()]
        found[device] = [model.run(ids).logits, *tiles]
    for one, other in zip(found["cpu"], found["cuda"], strict=True):
        assert scaled_error(one, other) <= 1e-4


# --- surveys of maps on a device ------------------------------------------------------------------

BY_TORCH = "cpu:0"  # the CPU under a name that numpy does not answer to
NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
DEVICES = [BY_TORCH, pytest.param("cuda", marks=NO_CUDA)]


@pytest.fixture(autouse=True, scope="module")
def small_maps_too():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_maps, "LEAST", 0)
        yield


FINDINGS = "total", "top", "entropy", "cells", "sums", "rows"


def head(rule, queries, keys, spread=1.0, **options):
    """A softmax whose scores spread by so much, with the statistics of a model in float32."""
    factors = make(rule, queries, keys, width=64, **options)
    if spread != 1:
        factors = replace(factors, q=np.float32(spread) * factors.q)
        model = scores(factors.q[0], factors.k[0], rule, 0, np.float32)
        stat = statistic(model, visible(rule, queries, keys), "softmax", None)
        factors = replace(factors, stat=stat[None].astype(np.float32))
    return factors


def softmax(scale=0.125, **options):
    return Rule(scale, ("softmax",), (None,), **options)


def agree(one, other, tolerance=2e-5):
    """Two surveys within the rounding of float32; entropies are sums of many."""
    for name in FINDINGS:
        a, b = getattr(one, name), getattr(other, name)
        assert a.shape == b.shape and a.dtype == b.dtype, name
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=tolerance, err_msg=name)


def distances(unit=1):
    """Relative positions of one head."""
    random = np.random.default_rng(0)
    shapes = (1, 64, 12), (1, 64), (1, 64), (1, 64)
    return Relative(*(0.5 * random.normal(size=one).astype(np.float32) for one in shapes), unit)


KEEP, KERNEL = np.arange(600) > 270, (("rbf",), (None,))
KINDS = [  # a rule, queries, keys
    (softmax(), 700, 300), (softmax(causal=True, keep=KEEP), 600, 600),
    (softmax(causal=True).with_streaming((0,), (4, 90)), 700, 700),
    (softmax(causal=True, keep=KEEP).with_streaming((0,), (4, 90)), 600, 600),
    (softmax(0.3, keep=np.arange(300) % 7 > 2), 520, 300),
    (softmax(causal=True, stride_q=4), 150, 600), (softmax(causal=True, stride_k=4), 600, 150),
    (softmax(causal=True, stride_q=4, windowed=True), 150, 600),
    (softmax(stride_k=3, windowed=True), 600, 200),
    (softmax(relative=Quadratic(np.array([[0.02, -5]], np.float32))), 600, 500),
    (Rule(0.125, *KERNEL, causal=True), 600, 600),
    (Rule(0.125, *KERNEL, causal=True, relative=distances()), 600, 600),
    (softmax(causal=True, stride_q=3, relative=distances(3)), 200, 600),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("rule, queries, keys", KINDS)
def test_a_softmax_is_surveyed_as_by_numpy(device, rule, queries, keys, dtype, monkeypatch):
    monkeypatch.setattr(device_maps, "CELLS", 1)  # a tile's rows in each part
    maps = LazyMap(head(rule, queries, keys, dtype=dtype), (0,))
    rows = 0, queries // 2, queries - 1
    for wanted in (SurveyRequest(3, 4, rows), SurveyRequest(8), SurveyRequest(0, 1)):
        agree(survey(maps, 0, wanted, blocks_on(device)), survey(maps, 0, wanted))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(layers())
def test_a_map_of_any_rule_is_surveyed_by_torch_or_numpy(factors):
    maps = LazyMap(factors, tuple(range(len(factors.q))))
    wanted = SurveyRequest(2, 3, (0, maps.shape[1] - 1))
    for place in range(len(maps.heads)):
        one, other = survey(maps, place, wanted, blocks_on(BY_TORCH)), survey(maps, place, wanted)
        size = np.abs(other.top).max()
        agree(one, other, 1e-5 * max(1, size))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("spread", [0.3, 3, 40])
@pytest.mark.parametrize("relative", [None, distances()])
def test_statistics_settled_by_a_device_leave_numpys_tiles_exact(device, spread, relative):
    factors = head(softmax(causal=True, relative=relative), 700, 700, spread)
    maps = LazyMap(factors, (0,))
    exact = whole_map(factors.q[0], factors.k[0], factors.rule, 0)
    total = survey(maps, 0, SurveyRequest(3), blocks_on(device)).total
    found = replace(factors, stat=corrected_statistic(factors, 0, total)[None])
    errors = [
        np.abs(LazyMap(one, (0,)).read(0) - exact).max()
        for one in (found, recompute_statistics(factors))
    ]
    assert errors[0] <= max(1.2 * errors[1], 5e-7)


@pytest.mark.parametrize("error", [
    torch.cuda.OutOfMemoryError("CUDA out of memory."), RuntimeError("MPS backend out of memory"),
])  # fmt: skip
def test_a_device_out_of_memory_leaves_the_head_to_numpy(error, monkeypatch):
    monkeypatch.setattr(device_maps, "CELLS", 1)
    weights, calls = DeviceHead.weights, []

    def full(self, rows, columns):
        calls.append(columns)
        if len(calls) == 2:  # with a part of it found already
            raise error
        return weights(self, rows, columns)

    monkeypatch.setattr(DeviceHead, "weights", full)
    maps, wanted = LazyMap(head(softmax(), 600, 300), (0,)), SurveyRequest(3, 4, (599,))
    one, other = survey(maps, 0, wanted, blocks_on(BY_TORCH)), survey(maps, 0, wanted)
    assert len(calls) == 2
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in FINDINGS)


def test_products_are_taken_without_tf32_which_is_then_as_it_was(monkeypatch):
    matmul, during = torch.backends.cuda.matmul, []
    weights = DeviceHead.weights

    def watched(self, rows, columns):
        during.append(matmul.fp32_precision)
        return weights(self, rows, columns)

    monkeypatch.setattr(DeviceHead, "weights", watched)
    before, matmul.fp32_precision = matmul.fp32_precision, "tf32"
    try:
        survey(LazyMap(head(softmax(), 30, 30), (0,)), 0, SurveyRequest(2), blocks_on(BY_TORCH))
        assert during == ["ieee"] and matmul.fp32_precision == "tf32"
    finally:
        matmul.fp32_precision = before


@pytest.fixture
def asked(monkeypatch):
    """The devices that weights of a head were computed on."""
    devices = []

    class Watched(DeviceHead):
        def __init__(self, maps, place, device):
            devices.append(device)
            super().__init__(maps, place, device)

    monkeypatch.setattr(device_maps, "DeviceHead", Watched)
    return devices


@pytest.mark.parametrize("device", DEVICES)
def test_a_capture_is_surveyed_on_the_device_of_its_model(tmp_path, device, asked, monkeypatch):
    keys = {"dtype": torch.float32, "form": "decoder", "vocab_size": 256}
    decoder = write_transformer(tmp_path / "model", **keys)
    monkeypatch.setattr(overview, "_SMALL", 64)  # levels of a text that is soon captured
    ids = np.random.default_rng(0).integers(0, 256, 1100)
    captures = []
    for name in ("cpu", device):
        model = open_model(decoder, device="cpu" if name == BY_TORCH else name)
        model.device, out = name, tmp_path / f"{len(captures)}.h5"
        captures.append(tasks.capture(model, model.from_ids(ids), out))
    assert asked == 4 * [device]
    for one, other in zip(captures[0].maps, captures[1].maps, strict=True):
        assert other.verify_max_abs <= max(1.5 * one.verify_max_abs, 5e-7)
        for head in one.heads:
            np.testing.assert_allclose(other.read(head), one.read(head), rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(other.read(head).sum(1), 1, atol=1e-6)
            for zoom, reduce in ((3, "max"), (4, "mean")):
                a, b = (maps.overview(head, zoom=zoom, reduce=reduce) for maps in (one, other))
                np.testing.assert_allclose(b, a, rtol=0.06, atol=1e-6)
            a, b = one.summary(head), other.summary(head)
            np.testing.assert_allclose(b.thumb, a.thumb, rtol=2e-3, atol=1e-5)
            np.testing.assert_allclose(b.rowmax, a.rowmax, rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(b.entropy, a.entropy, rtol=1e-4, atol=1e-5)
