"""An open model: numpy in and out, batches, dtypes, devices, and what it refuses."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.maps import LazyMap, recompute_statistics
from hgviz.models import model as models
from hgviz.models import open_model
from hgviz.models.run import CaptureRecorder
from hgviz.tasks import capture
from tests.closeness import scaled_error
from tests.models.building import write_checkpoint
from tests.models.folders import own_bert, write_gpt2

NESTED = {"hierarchy": "1@1 1@2 1@4 1@2 1@1", "positions": "rotary"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("model") / "small", **NESTED)


@pytest.fixture
def model(folder):
    return open_model(folder, dtype="float64")


def test_the_spec_says_what_the_model_is(model):
    spec = model.spec
    assert (spec.family, spec.form, spec.name) == ("hourglass", "official", "small")
    assert [level.stride for level in spec.levels] == [1, 2, 4]
    assert [level.shift for level in spec.levels] == [0, 1, 1]
    assert [(one.index, one.name, one.role, one.level, one.key_level) for one in spec.layers] == [
        (0, "pre.0.0", "self", 0, 0),
        (1, "down.0", "down", 1, 0),
        (2, "pre.1.0", "self", 1, 1),
        (3, "down.1", "down", 2, 1),
        (4, "middle.0", "self", 2, 2),
        (5, "up.1", "up", 1, 2),
        (6, "post.1.0", "self", 1, 1),
        (7, "up.0", "up", 0, 1),
        (8, "post.0.0", "self", 0, 0),
    ]
    assert len(spec.heads) == 18
    assert len(spec.digest) == 64
    assert spec.parameters == sum(one.numel() for one in model.module.parameters())


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


def test_a_trace_names_every_layer_and_gives_the_same_logits(model):
    ids, tapped, order = np.arange(13), {}, []

    def tap(index, factors):
        order.append(index)
        tapped[index] = factors

    logits = model.trace(model.from_ids(ids), observers=[CaptureRecorder(tap)])
    assert order == list(range(9))
    assert np.array_equal(logits, model.run(ids).logits)


@pytest.mark.parametrize("kind", ["hourglass", "classifier", "gpt2"])
def test_a_capture_without_logits_never_makes_them(folder, tmp_path, kind):
    if kind == "hourglass":
        path = folder
    elif kind == "classifier":
        path = own_bert(tmp_path / kind)
    else:
        path = write_gpt2(tmp_path / kind)
    model, outputs = open_model(path), []
    heads = {"hourglass": "lm_head", "classifier": "head", "gpt2": "net.lm_head"}
    model.module.get_submodule(heads[kind]).register_forward_hook(
        lambda *parts: outputs.append(parts)
    )
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
        seen = LazyMap(
            recompute_statistics(tapped[layer.index]), layer.heads
        )  # as captures keep them
        assert seen.read(1).sum(-1) == pytest.approx(1.0, abs=1e-5)
        assert seen.verify_max_abs < 1e-5
    logits = other.run(ids).logits
    assert logits.dtype == (np.float64 if dtype == "float64" else np.float32)
    assert np.abs(logits - model.run(ids).logits).max() <= tolerance


def test_the_callers_arrays_stay_theirs(model):
    ids = np.arange(13)
    model.run(ids)
    assert ids.flags.writeable
    logits = model.run(ids.tolist()).logits
    logits[0] = 0.0


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_shortest_texts_are_read(model, size):
    tapped = {}
    model.trace(model.from_ids(np.arange(size)), observers=[CaptureRecorder(tapped.__setitem__)])
    for layer in model.spec.layers:
        assert LazyMap(tapped[layer.index], layer.heads).read(0).sum(-1) == pytest.approx(1.0)


# --- prompts --------------------------------------------------------------------------------------


def test_a_byte_model_reads_texts_and_ids(tmp_path):
    model = open_model(write_checkpoint(tmp_path, vocab_size=256, max_positions=16))
    prompt = model.tokenize("héllo")
    assert prompt.ids.tolist() == list("héllo".encode())
    again = model.from_ids(prompt.ids, [1] * 5 + [0])
    assert (again.text, again.attention_mask.tolist()) == ("héllo", [True] * 5 + [False])
    with pytest.raises(HgvizError, match="the text is empty"):
        model.tokenize("")
    with pytest.raises(HgvizError, match="too long: 17 bytes: this model has positions for 16"):
        model.tokenize("a" * 17)
    with pytest.raises(HgvizError, match="too long: 17 tokens: this model has positions for 16"):
        model.run(np.zeros(17, int))


def test_a_model_without_tokenizer_asks_for_ids(model):
    with pytest.raises(HgvizError, match="give token ids with --ids"):
        model.tokenize("a")
    assert model.from_ids([3, 4]).pieces == ("3", "4")


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"ids": []}, "the text is empty"),
        ({"ids": [[], []]}, "the text is empty"),
        ({"ids": [1, 23]}, "there is no token 23: this model's ids go from 0 to 22"),
        ({"ids": [1, -1]}, "there is no token -1"),
        ({"ids": [1.0, 2.0]}, "the ids are no integers: they are float64"),
        ({"ids": ["a"]}, "the ids are no integers"),
        ({"ids": [10**30]}, "the ids are no integers"),
        ({"ids": 3}, "the ids are no sequence: they have 0 dimensions"),
        ({"ids": [[[1]]]}, "the ids are no sequence: they have 3 dimensions"),
        ({"ids": [[1, 2], [3]]}, "the ids are no array: their rows differ in length"),
        ({"ids": [1, 2], "attention_mask": [1]}, "the attention_mask does not fit the ids"),
        ({"ids": [1, 2], "attention_mask": [1, 2]}, "the attention_mask does not fit the ids"),
        ({"ids": [1], "token_type_ids": [0]}, "this model does not take token_type_ids"),
        ({"ids": [1], "decoder_ids": [0]}, "this model does not take decoder_ids"),
        ({"ids": [1], "encoder_states": [[0.0]]}, "this model does not take encoder_states"),
        ({"ids": [1], "encoder_mask": [1]}, "this model does not take encoder_mask"),
        ({"ids": [1], "off": [HeadId(9, 0)]}, "this model has no head 9.0"),
        ({"ids": [1], "off": [(0, 2)]}, "this model has no head 0.2"),
    ],
)
def test_what_cannot_be_run_is_one_error(model, arguments, words):
    with pytest.raises(HgvizError) as caught:
        model.run(**arguments)
    assert words in str(caught.value)


def test_one_text_is_traced_at_a_time(model):
    with pytest.raises(HgvizError, match="a prompt is one text"):
        model.from_ids([[1, 2]])


LACKING = (
    MemoryError(), RuntimeError("CUDA out of memory. Tried 3 GiB"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
)  # fmt: skip


@pytest.mark.parametrize("error", LACKING, ids=str)
def test_too_little_memory_is_one_error_with_a_way_out(model, monkeypatch, error):
    def fail(*given):
        raise error

    monkeypatch.setattr(model.module, "forward", fail)
    with pytest.raises(HgvizError, match="the cpu has too little memory: the text has 3 tokens"):
        model.run([1, 2, 3])


@pytest.mark.parametrize("words", ["a bug", "CUDA error: an illegal memory access was encountered"])
def test_other_faults_are_not_taken_for_memory(model, monkeypatch, words):
    def fail(*given):
        raise RuntimeError(words)

    monkeypatch.setattr(model.module, "forward", fail)
    with pytest.raises(RuntimeError, match=words):
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


@pytest.mark.parametrize(
    ("options", "variable", "message"),
    [
        ({"device": "tpu"}, "", "there is no device 'tpu': it is one of auto, cpu, cuda, mps."),
        ({"device": "cuda"}, "", "this machine has no cuda: torch "),
        ({"device": "mps"}, "", "this machine has no mps: torch "),
        ({"device": "auto"}, "gpu",
         "there is no HGVIZ_DEVICE 'gpu': it is one of auto, cpu, cuda, mps."),
        ({"dtype": "int8"}, "", "unknown dtype 'int8'. Choose from float64"),
        ({"masking": "loose"}, "", "unknown masking 'loose'. Choose from compat, strict"),
        ({"masking": "compat"}, "", "this model is always masked strictly"),
    ],
)  # fmt: skip
def test_devices_dtypes_and_maskings_that_are_not_there(
    folder, no_gpu, monkeypatch, options, variable, message
):
    if variable:
        monkeypatch.setenv("HGVIZ_DEVICE", variable)
    with pytest.raises(HgvizError) as caught:
        open_model(folder, **options)
    assert str(caught.value).startswith(message)


def test_mps_has_no_float64(folder, no_gpu, monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    with pytest.raises(HgvizError, match="mps has no float64"):
        open_model(folder, device="mps", dtype="float64")


def test_asking_for_models_does_not_load_torch_before_one_is_opened():
    code = "import sys, hgviz.models, hgviz.models.text; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=100).returncode == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
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
