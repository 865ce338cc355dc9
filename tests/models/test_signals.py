"""Models that read pictures and sounds, beside what transformers makes of the same files."""

import json
import shutil
import struct
import wave
import zlib

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.signal import resample_poly

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, Signal
from hgviz.models import open_model
from hgviz.models.signals import picture_at, prompt_of_signal, samples_at, values_at
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.zoo import write

SMALL = {"image_size": 32, "patch_size": 8}
HEARD = {"max_source_positions": 50, "max_target_positions": 40, "num_mel_bins": 16}
IMAGES = [  # with how many positions there are before the patches
    ("vit", "ViTForImageClassification", SMALL, 1),
    ("deit", "DeiTForImageClassification", SMALL, 2),
    ("dinov2_with_registers", "Dinov2WithRegistersModel", SMALL, 5),
    ("siglip_vision_model", "SiglipVisionModel", SMALL, 0),
]  # fmt: skip
SOUNDS = [
    ("whisper", "WhisperForConditionalGeneration", HEARD),
    ("wav2vec2", "Wav2Vec2ForSequenceClassification", {}),
    ("audio-spectrogram-transformer", "ASTForAudioClassification",
     {"max_length": 64, "num_mel_bins": 32}),
]  # fmt: skip


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    """An image file of colours and squares, wider than high."""
    down, across = np.mgrid[:60, :90]
    squares = 255 * ((down // 10 + across // 10) % 2)
    pixels = np.stack([across * 255 / 90, down * 255 / 60, squares], -1).astype(np.uint8)
    file = tmp_path_factory.mktemp("picture") / "a.png"
    Image.fromarray(pixels).save(file)
    return file


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A second of a rising tone at 22,050 Hz."""
    file = tmp_path_factory.mktemp("sound") / "a.wav"
    return written(file, tone(22050), 22050)


def tone(count, rate=22050):
    at = np.arange(count) / rate
    return 0.5 * np.sin(2 * np.pi * 300 * at * (1 + at))


def written(file, samples, rate, width=2, channels=1):
    """A WAV file of samples between -1 and 1, the same in each channel."""
    whole = np.round(np.asarray(samples) * (2 ** (8 * width - 1) - 1)).astype(np.int64)
    whole = np.repeat(whole, channels) + (128 if width == 1 else 0)
    data = b"".join(int(one).to_bytes(width, "little", signed=width > 1) for one in whole)
    with wave.open(str(file), "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(width)
        out.setframerate(rate)
        out.writeframes(data)
    return file


def processor_of(kind):
    """The processor of a model, small, as it would be saved beside it."""
    if kind in ("dinov2", "dinov2_with_registers"):
        sides = {"shortest_edge": 36}
        return transformers.BitImageProcessor(size=sides, crop_size={"height": 32, "width": 32})
    if kind == "whisper":
        return transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
    if kind == "wav2vec2":
        return transformers.Wav2Vec2FeatureExtractor()
    return transformers.ViTImageProcessor(size={"height": 32, "width": 32})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model and its processor once."""
    kept = {}

    def made(kind, name, changes):
        if (kind, name) not in kept:
            path = write(tmp_path_factory.mktemp("model") / kind, kind, name, **changes)
            processor_of(kind).save_pretrained(path)
            kept[kind, name] = path
        return kept[kind, name]

    return made


def theirs(path, name, given):
    """Logits or states, and maps, as transformers gives them in its eager attention."""
    model = getattr(transformers, name).from_pretrained(path, attn_implementation="eager").eval()
    with torch.no_grad():
        out = model(**given, output_attentions=True)
    logits = out.last_hidden_state if getattr(out, "logits", None) is None else out.logits
    if hasattr(out, "encoder_attentions"):
        pairs = zip(out.decoder_attentions, out.cross_attentions, strict=True)
        maps = [*out.encoder_attentions, *(one for pair in pairs for one in pair)]
    else:
        maps = out.attentions
    return logits[0].numpy(), [one[0].numpy() for one in maps]


def same(capture, logits, maps):
    assert scaled_error(capture.logits, logits) < 1e-5
    assert len(capture.maps) == len(maps)
    for one, other in zip(capture.maps, maps, strict=True):
        found = np.stack([one.read(head) for head in one.heads])
        assert getattr(one, "verify_max_abs", 0) < 1e-5 and scaled_error(found, other) < 1e-5


@pytest.mark.parametrize(("kind", "name", "changes", "before"), IMAGES, ids=lambda one: str(one))
def test_a_picture_is_seen_as_by_transformers(
    folder, picture, tmp_path, kind, name, changes, before
):
    path = folder(kind, name, changes)
    model = open_model(path)
    prompt = model.from_signal(picture)
    wanted = processor_of(kind)(images=Image.open(picture), return_tensors="pt")
    assert np.array_equal(prompt.signal.values, wanted["pixel_values"][0].numpy())
    assert prompt.signal.grid == (4, 4) and len(prompt) == 16 + before and prompt.unit == "position"
    assert prompt.pieces[before:][:5] == ("0,0", "0,1", "0,2", "0,3", "1,0")
    made = tasks.capture(model, prompt, out=tmp_path / "a.h5")
    same(made, *theirs(path, name, wanted))
    stored = open_capture(tmp_path / "a.h5")
    assert stored.spec.modality == "image" and stored.prompt.digest == prompt.digest
    for part in ("values", "picture", "grid", "seconds"):
        assert np.array_equal(getattr(stored.prompt.signal, part), getattr(prompt.signal, part))


def test_the_picture_ends_where_the_pixels_end_that_patches_read(tmp_path):
    """Of a picture that is no multiple of the patch, the model reads no pixel beyond."""
    path = write(tmp_path / "m", "dinov2", "Dinov2Model", **SMALL)
    settings = {"image_processor_type": "BitImageProcessor", "do_rescale": True}
    settings |= dict.fromkeys(("do_resize", "do_center_crop", "do_normalize"), False)
    (path / "preprocessor_config.json").write_text(json.dumps(settings))
    pixels = np.random.default_rng(0).integers(0, 256, (29, 37, 3), np.uint8)  # patches of 8
    Image.fromarray(pixels).save(tmp_path / "a.png")
    model = open_model(path)
    prompt = model.from_signal(tmp_path / "a.png")
    values = torch.tensor(prompt.signal.values[None], requires_grad=True)
    model.module.net.embeddings(values)[:, 1:].square().sum().backward()
    down, across = (values.grad[0].abs().sum(axes) > 0 for axes in ((0, 2), (0, 1)))
    assert prompt.signal.grid == (3, 4)
    assert np.array_equal(prompt.signal.picture, pixels[: int(down.sum()), : int(across.sum())])
    assert prompt.signal.values.shape == (3, 29, 37)
    assert model.again(prompt).digest == prompt.digest


@pytest.mark.parametrize(("kind", "name", "changes"), SOUNDS, ids=lambda one: str(one))
def test_a_sound_is_heard_as_by_transformers(folder, sound, tmp_path, kind, name, changes):
    path = folder(kind, name, changes)
    model = open_model(path)
    if kind == "audio-spectrogram-transformer":  # its processor needs torchaudio
        values = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
        np.save(tmp_path / "a.npy", values)
        prompt, given = model.from_signal(tmp_path / "a.npy"), {"input_values": values}
    else:
        prompt = model.from_signal(sound)
        samples = resample_poly(np.round(tone(22050) * 32767) / 32768, 320, 441)
        given = processor_of(kind)(samples, sampling_rate=16000, return_tensors="np")
        given = {key: one[0] for key, one in given.items() if key != "attention_mask"}
        (values,) = given.values()
        # logarithms of samples that are rounded to float32
        assert scaled_error(prompt.signal.values, values) < 1e-4
    given = {key: torch.tensor(prompt.signal.values)[None] for key in given}
    target = None
    if model.spec.two_texts:
        target = model.from_ids([0, 7, 9, 4])
        given["decoder_input_ids"] = torch.tensor([[0, 7, 9, 4]])
        assert prompt.pieces[:3] == ("0.00s", "0.02s", "0.04s") and len(prompt) == 50
    made = tasks.capture(model, prompt, target=target, out=tmp_path / "a.h5")
    same(made, *theirs(path, name, given))
    assert open_capture(tmp_path / "a.h5").prompt.unit == "frame"


def test_heads_off_are_as_without_their_part_of_the_output_projection(folder, picture):
    path = folder("vit", "ViTForImageClassification", SMALL)
    model = open_model(path, dtype="float64")
    prompt, off = model.from_signal(picture), frozenset({HeadId(0, 1), HeadId(1, 3)})
    found = tasks.capture(model, prompt, off=off).logits
    other = transformers.ViTForImageClassification.from_pretrained(path, dtype=torch.float64)
    with torch.no_grad():
        for name, part in other.named_modules():
            if name.endswith("attention.o_proj"):
                head = 1 if ".0." in name else 3
                part.weight[:, 8 * head : 8 * head + 8] = 0
        pixels = torch.tensor(prompt.signal.values, dtype=torch.float64)[None]
        wanted = other.eval()(pixel_values=pixels).logits[0].numpy()
    assert np.abs(found - wanted).max() < 1e-12
    whole = tasks.capture(model, prompt).logits
    assert np.abs(found - whole).max() > 1e-4


# --- files ----------------------------------------------------------------------------------------


@given(
    samples=st.lists(st.floats(-1, 1), min_size=1, max_size=50),
    width=st.sampled_from([1, 2, 3, 4]),
    channels=st.sampled_from([1, 2, 5]),
)
def test_samples_of_every_width_are_what_was_written(tmp_path_factory, samples, width, channels):
    file = written(tmp_path_factory.mktemp("w") / "a.wav", samples, 8000, width, channels)
    found = samples_at(file, 8000)
    assert len(found) == len(samples)
    assert np.abs(found - samples).max() <= 2 / 2 ** (8 * width - 1) + 1e-7


def bomb(file):
    """A PNG that declares 60,000 x 60,000 pixels."""

    def part(name, data):
        whole = name + data
        return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    file.write_bytes(
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", b"") + part(b"IEND", b"")
    )
    return file


def test_files_that_are_nothing_of_the_kind_are_one_clear_line(tmp_path, picture, sound):
    cut, empty, array, words = (tmp_path / name for name in ("c.png", "e.wav", "a.npy", "b.npy"))
    cut.write_bytes(picture.read_bytes()[:200])
    empty.write_bytes(b"")
    silent = written(tmp_path / "silent.wav", [], 8000)
    np.save(array, np.array([1.0, np.nan]))
    np.save(words, np.array(["a"], object), allow_pickle=True)
    for read, file, said in [
        (picture_at, cut, "cannot be read as an image"), (picture_at, sound, "as an image"),
        (picture_at, bomb(tmp_path / "bomb.png"), "pixels|as an image"),
        (picture_at, tmp_path, "directory"), (picture_at, tmp_path / "no.png", "No such file"),
        (lambda one: samples_at(one, 8000), empty, "as a sound"),
        (lambda one: samples_at(one, 8000), picture, "as a sound"),
        (lambda one: samples_at(one, 8000), silent, "is empty"),
        (values_at, array, "not a valid model input"), (values_at, words, "as an array"),
        (values_at, picture, "as an array"),
    ]:  # fmt: skip
        with pytest.raises(HgvizError, match=said) as error:
            read(file)
        assert "\n" not in str(error.value)


def test_processors_that_are_missing_or_enormous_are_refused(folder, picture, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder("vit", "ViTForImageClassification", SMALL), copy)
    file = copy / "preprocessor_config.json"
    data = json.loads(file.read_text())
    for changes in ({"size": {"height": 10**6, "width": 32}}, {"crop_size": 10**6}):
        file.write_text(json.dumps({**data, **changes}))
        with pytest.raises(HgvizError, match="is not a valid processor"):
            open_model(copy).from_signal(picture)
    file.write_text(json.dumps({**data, "image_processor_type": "Nothing"}))
    with pytest.raises(HgvizError, match="cannot be used"):
        open_model(copy).from_signal(picture)
    file.write_text(json.dumps({**data, "size": {"height": 48, "width": 48}}))
    with pytest.raises(HgvizError, match="does not fit this model"):
        open_model(copy).from_signal(picture)
    file.unlink()
    with pytest.raises(HgvizError, match="has no preprocessor_config.json"):
        open_model(copy).from_signal(picture)


@pytest.mark.parametrize("kind, name, reads", [
    ("clip", "CLIP", "image"), ("clip", "CLIP", "text"), ("blip", "Blip", "text"),
])  # fmt: skip
def test_a_folder_with_two_models_opens_as_the_one_that_is_to_read(tmp_path, kind, name, reads):
    path = write(tmp_path / "m", kind, f"{name}Model")
    model = open_model(path, reads=reads)
    assert (model.spec.goal, model.spec.modality, model.is_tower) == ("states", reads, True)
    if reads == "image":
        signal = model.module.example(1, 1).signal
        prompt = prompt_of_signal(Signal(signal[0].numpy()), model.module.positions(signal))
        given = {"pixel_values": signal}
    else:
        ids = np.random.default_rng(1).integers(5, 110, 12)
        prompt, given = model.from_ids(ids), {"input_ids": torch.as_tensor(ids)[None]}
    found = tasks.capture(model, prompt)
    whole = getattr(transformers, f"{name}Model").from_pretrained(path, attn_implementation="eager")
    tower = whole.eval().vision_model if reads == "image" else whole.eval().text_model
    with torch.no_grad():
        out = tower(**given, output_attentions=True)
    same(found, out.last_hidden_state[0].numpy(), [one[0].numpy() for one in out.attentions])
    off = frozenset({HeadId(0, 1)})
    masked = tasks.capture(model, prompt, off=off).logits
    tasks.prune(path, off, tmp_path / "out", form="zeroed")
    if reads == "text":  # what prune and all others without an image open
        again = tasks.capture(open_model(tmp_path / "out"), prompt).logits
        assert scaled_error(again, masked) < 1e-5
