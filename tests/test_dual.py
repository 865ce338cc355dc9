"""Dual encoders as a whole, such as CLIP: an image beside a text."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from hgviz.cli import app
from tests.models.zoo import write
from tests.test_pairs import tokenizer

TEXT = "the cat sat on a mat"


def whole(folder, kind="clip", name="CLIPModel"):
    """The folder of a model with its tokenizer and its processor."""
    import transformers

    write(folder, kind, name)
    size = {"height": 32, "width": 32}
    transformers.ViTImageProcessor(size=size).save_pretrained(folder)
    tokenizer().save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model once; seed: of what its weights are changed by."""
    import transformers

    kept, place = {}, tmp_path_factory.mktemp("dual")

    def made(kind="clip", name="CLIPModel", seed=0):
        if (kind, seed) not in kept:
            path = whole(place / f"{kind}{seed}", kind, name)
            if seed:
                net = getattr(transformers, name).from_pretrained(path)
                torch.manual_seed(seed)
                with torch.no_grad():
                    for one in net.parameters():
                        one.add_(0.05 * torch.randn_like(one))
                net.save_pretrained(path)
            kept[kind, seed] = path
        return kept[kind, seed]

    return made


@pytest.fixture(scope="module")
def picture(tmp_path_factory):
    file = tmp_path_factory.mktemp("picture") / "a.png"
    pixels = np.random.default_rng(0).integers(0, 255, (40, 50, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(file)
    return file


def said(*words):
    """What a command prints, and what it ends with."""
    out = CliRunner().invoke(app, [*map(str, words)])
    return out.output + str(out.exception or "")


def states(path, picture):
    """(2, d) What transformers makes of an image and a text."""
    import transformers

    size = {"height": 32, "width": 32}
    processor = transformers.ViTImageProcessor(size=size)
    pixels = processor(images=Image.open(picture), return_tensors="pt")
    ids = torch.tensor([tokenizer().encode(TEXT).ids])
    with torch.no_grad():
        out = transformers.CLIPModel.from_pretrained(path).eval()(input_ids=ids, **pixels)
    return torch.stack([out.image_embeds, out.text_embeds], 1)[0].double().numpy()


def test_two_are_compared_by_how_far_their_states_are_apart(folder, picture):
    paths = folder(), folder(seed=1)
    both = [states(path, picture) for path in paths]
    lengths = np.prod([np.linalg.norm(one, axis=1) for one in both], 0)
    wanted = (1 - (both[0] * both[1]).sum(1) / lengths).mean()
    words = ("compare", *paths, "--image", picture, "--target", TEXT)
    found = json.loads(said(*words, "--json"))
    assert found["logits"]["moved"] == pytest.approx(wanted, abs=1e-6) and wanted > 0.01
    assert (found["logits"]["places"], found["notes"]) == (2, [])
    assert f"Hidden states at 2 of 2 places: 1 - cosine {wanted:.4f}" in said(*words)


def test_what_it_does_not_take_is_one_line_with_what_to_do(folder, picture, tmp_path):
    path, out = folder(), ("-o", tmp_path / "a.h5")
    (tmp_path / "ids.json").write_text('{"input_ids": [4, 5, 6]}')
    (tmp_path / "a.tsv").write_text(f"image\ttext\n{picture}\t{TEXT}\n")
    both = "Give both to `hgviz capture` or `hgviz compare`: --image FILE --target TEXT"
    for verb, *words in (
        ("capture", path, "--ids", tmp_path / "ids.json", *out), ("attribute", path, "--text", "a"),
        ("reach", path, "--text", "a"), ("logits", path, "--text", "a", "-o", tmp_path / "a.npy"),
    ):  # fmt: skip
        assert both in said(verb, *words)
    alone = "Use `hgviz capture` on one at a time, with --image FILE --target TEXT"
    for verb, *words in (("capture", path, *out), ("heads", path)):
        assert alone in said(verb, *words, "--corpus", tmp_path / "a.tsv")
    cut = ("--image", picture, "--target", TEXT, "--boundaries", "fixed:2")
    assert "does not take boundaries" in said("capture", path, *cut, *out)
    given = ("--image", picture, "--ids", tmp_path / "ids.json")
    assert "3 tokens of target" in said("capture", path, *given, *out)
