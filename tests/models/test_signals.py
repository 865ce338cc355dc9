"""Models that read pictures and sounds, and texts that are cut into patches of bytes or segments,
beside what transformers makes of the same input."""

import json
import shutil
import struct
import wave
import zlib
from functools import cache

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.signal import resample_poly

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model, prompts
from hgviz.models.signals import picture_at, samples_at, values_at
from hgviz.models.text import Bare
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models import zoo
from tests.models.building import write_checkpoint, write_transformer
from tests.models.zoo import MODES, bytes_of, write

SMALL = {"image_size": 32, "patch_size": 8}
HEARD = {"max_source_positions": 50, "max_target_positions": 40, "num_mel_bins": 16}
IMAGES = [  # with how many positions there are before the patches
    ("vit", "ViTForImageClassification", SMALL, 1),
    ("siglip_vision_model", "SiglipVisionModel", SMALL, 0),
    ("dinov2_with_registers", "Dinov2WithRegistersModel", SMALL, 5),
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
    pixels = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8).repeat(10, 0)
    file = tmp_path_factory.mktemp("picture") / "a.png"
    Image.fromarray(pixels.repeat(10, 1)).save(file)
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
    assert model.reread(prompt).digest == prompt.digest


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


# --- Byte Latent Transformers: outputs and maps ---------------------------------------------------
LENGTHS = (1, 33)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """mode -> (what makes the reference, folder), each written when it is first asked for."""

    @cache
    def find(mode, name="BltModel"):
        path = zoo.write_blt(tmp_path_factory.mktemp("blt") / "m", name, **MODES[mode])
        return lambda: zoo.build_blt(name, **MODES[mode]), path

    return find


@pytest.mark.parametrize("mode", [
    "one part", "short patches", "bytes by themselves", "all layers look down",
])  # fmt: skip
def test_byte_latent_outputs_and_maps_are_those_of_transformers(models, mode):
    theirs, folder = models(mode)
    ours, exact, single = open_model(folder, dtype="float64"), theirs(), theirs()
    for length in LENGTHS:
        ids = bytes_of(length)
        made = tasks.capture(ours, ours.from_ids(ids))
        wanted = zoo.run_blt(exact, ids[None])[0]
        assert np.abs(made.logits - wanted).max() < 1e-9
        sizes, maps = [len(one) for one in made.spans], zoo.maps_of_blt(single, ids)
        for layer, one, other in zip(made.spec.layers, made.maps, maps, strict=True):
            rows, columns = sizes[layer.level], sizes[layer.key_level]
            assert one.shape == (4, rows, columns)
            found = np.stack([one.read(head) for head in layer.heads])
            assert scaled_error(found, other[:, :rows, :columns]) < 1e-5
            assert scaled_error(found.sum(2), 1) < 1e-5  # nothing is left out that it looks at


@pytest.mark.parametrize("mode", ["two parts", "short patches"])
def test_texts_side_by_side_are_read_as_each_alone(models, mode):
    theirs, folder = models(mode)
    ours, counts = open_model(folder, dtype="float64"), [17, 9, 1, 16]
    ids = np.stack([bytes_of(17, seed) for seed in range(4)])
    keep = np.arange(17) < np.array(counts)[:, None]
    found = ours.run(ids, keep).logits
    for row, count in enumerate(counts):
        alone = ours.run(ids[row, :count]).logits
        assert np.abs(found[row, :count] - alone).max() < 1e-9
    if mode != "short patches":  # transformers reads the last byte of a text otherwise in a batch
        wanted = zoo.run_blt(theirs(), ids, keep=keep)
        assert np.abs(found - wanted)[keep].max() < 1e-9


@pytest.mark.parametrize("given", [None, np.arange(12) % 5 == 0])
def test_a_text_goes_on_between_the_ends_that_the_model_finds(models, given):
    ours = open_model(models("two parts", "BltForCausalLM")[1], dtype="float64")
    prompt = ours.from_ids(bytes_of(12), boundaries=given)
    off = frozenset({HeadId(0, 1), HeadId(7, 0)})
    found = tasks.generate(ours, prompt, 9, off=off)
    ids = found.prompt.ids
    own = ours.add_boundaries(ours.from_ids(ids), off).boundaries
    wanted = own if given is None else np.concatenate([given, own[12:]])
    assert found.spans[-1][:, 1].tolist() == (np.flatnonzero(wanted) + 1).tolist()
    for stop in range(12, 21):
        said = ours.run(ids[:stop], boundaries=wanted[:stop], off=off).logits[-1]
        assert said.argmax() == ids[stop]
    assert (found.prompt.boundaries is None) is (given is None)
    for layer, one in zip(found.spec.layers, found.maps, strict=True):
        assert one.shape[1:] == (len(found.spans[layer.level]), len(found.spans[layer.key_level]))


# --- segments of a text ---------------------------------------------------------------------------

TEXT = "two words, and more words: 강 흐르다 ends"
COUNT = len(TEXT.encode())
SEGMENTS = {"family": "dynamic", "vocab_size": 256, "n_layers": [2, 2, 1], "dtype": torch.float32}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("dynamic")
    return {
        kind: write_transformer(root / kind, boundaries=kind, shorten_factor=4, **SEGMENTS)
        for kind in ("learned", "whitespace")
    }


@pytest.fixture(scope="module")
def dynamic(folders):
    return open_model(folders["learned"])


def ends(prompt):
    return np.flatnonzero(prompt.boundaries).tolist()


def test_boundaries_are_given_in_words_and_files(dynamic, folders, tmp_path):
    prompt = dynamic.tokenize(TEXT)
    assert ends(prompts.with_boundaries(dynamic, prompt, "fixed:7")) == [*range(0, COUNT, 7)]
    spaces = [at for at, one in enumerate(TEXT.encode()) if one == 32]
    assert ends(prompts.with_boundaries(dynamic, prompt, "whitespace")) == spaces
    assert ends(open_model(folders["whitespace"]).add_boundaries(prompt)) == spaces
    (tmp_path / "a.json").write_text(json.dumps([1, 0] * (COUNT // 2) + [1] * (COUNT % 2)))
    (tmp_path / "a.txt").write_text("10" * (COUNT // 2) + "1\n" * (COUNT % 2))
    for name in ("a.json", "a.txt"):
        file = str(tmp_path / name)
        assert ends(prompts.with_boundaries(dynamic, prompt, file)) == [*range(0, COUNT, 2)]


BAD_FILES = [b"[1, 2]", b"01x1", b"", b"\xff\x00", b"{}"]
BAD_WORDS = {"fixed:0": "at least 1", "words": "whitespace"}


def test_what_says_no_boundaries_is_one_error(dynamic, tmp_path):
    rows = [
        *BAD_WORDS.items(),
        *((str(tmp_path / f"{at}"), "boundaries") for at in range(len(BAD_FILES))),
    ]
    for at, data in enumerate(BAD_FILES):
        (tmp_path / f"{at}").write_bytes(data)
    for how, words in rows:
        with pytest.raises(HgvizError, match=words):
            prompts.with_boundaries(dynamic, dynamic.tokenize(TEXT), how)
    with pytest.raises(HgvizError, match="need text"):
        prompts.with_boundaries(dynamic, Bare().decode(np.arange(3)), "whitespace")
    prompt = dynamic.tokenize(TEXT)
    for wrong in ([1, 0], np.full(COUNT, 2), np.ones(COUNT) / 2):
        with pytest.raises(HgvizError, match="boundaries"):
            dynamic.run(prompt.ids, boundaries=wrong)
    other = open_model(write_checkpoint(tmp_path / "a"))
    for run in (lambda: other.run([1, 2], boundaries=[0, 1]),
                lambda: other.set_boundaries(other.from_ids([1, 2]), [0, 1])):  # fmt: skip
        with pytest.raises(HgvizError, match="does not accept boundaries"):
            run()
