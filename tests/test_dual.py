"""Dual encoders as a whole, such as CLIP: an image beside a text."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

from hgviz import tasks
from hgviz.analysis.importance import importance
from hgviz.cli import app
from hgviz.core import HeadId, finish
from hgviz.models import open_model
from hgviz.store import open_study
from hgviz.tasks.scoring import examples_from
from tests.models.zoo import write
from tests.test_pairs import WORDS, tokenizer

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


# --- scores ---------------------------------------------------------------------------------------


TEXTS = ("the cat sat on a mat", "the dog ran home", "it was late", "a cat ran", "home", "a dog")
KINDS = [
    ("clip", "CLIPModel"), ("siglip", "SiglipModel"), ("altclip", "AltCLIPModel"),
    ("chinese_clip", "ChineseCLIPModel"), ("blip", "BlipModel"),
    ("metaclip_2", "MetaClip2Model"), ("owlvit", "OwlViTModel"),
]  # fmt: skip


def pairs(folder, texts=TEXTS, columns=("image", "text")):
    """A table of images of noise with texts."""
    random, rows = np.random.default_rng(0), ["\t".join(columns)]
    for at, text in enumerate(texts):
        pixels = random.integers(0, 255, (32, 32, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{at}.png")
        rows.append(f"{at}.png\t{text}")
    (folder / "a.tsv").write_text("\n".join(rows) + "\n")
    return folder / "a.tsv"


def given(table, model):
    """What transformers reads of a table, padded as models of a kind are trained."""
    import transformers

    rows = [row.split("\t") for row in table.read_text().splitlines()[1:]]
    ids = [tokenizer().encode(text).ids for _, text in rows]
    padded = "siglip" in model.config.model_type
    most = 64 if padded else max(map(len, ids))
    fill = model.config.text_config.pad_token_id if padded else 0
    tokens = torch.tensor([one + [fill] * (most - len(one)) for one in ids])
    mask = None if padded else torch.tensor([[1] * len(one) + [0] * (most - len(one))
                                             for one in ids])  # fmt: skip
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    images = [Image.open(table.parent / name) for name, _ in rows]
    pixels = processor(images=images, return_tensors="pt")["pixel_values"]
    return {"input_ids": tokens, "attention_mask": mask, "pixel_values": pixels}


@pytest.mark.parametrize("kind, name", KINDS)
def test_a_score_is_the_loss_that_transformers_returns(folder, tmp_path, kind, name):
    import transformers

    path, table = folder(kind, name), pairs(tmp_path)
    found = finish(tasks.evaluate(open_model(path), table)).facts()
    net = getattr(transformers, name).from_pretrained(path).eval()
    with torch.no_grad():
        out = net(**given(table, net), return_loss=True)
    assert found["loss"] == pytest.approx(float(out.loss), abs=1e-5)
    right = (out.logits_per_text.argmax(1) == torch.arange(len(TEXTS))).float().mean()
    assert (found["metric"], found["value"]) == ("pair_accuracy", pytest.approx(float(right)))


def test_heads_are_scored_and_go_and_models_are_compared(folder, tmp_path):
    path, table, off = folder(), pairs(tmp_path), frozenset({HeadId(0, 1), HeadId(3, 2)})
    model = open_model(path, dtype="float64")

    def loss(*heads):
        return finish(tasks.evaluate(model, table, off=frozenset(heads))).loss

    out = tmp_path / "a.h5"
    for method in ("loo", "signed"):
        said("importance", path, "--data", table, "-o", out, "--method", method)
    study = open_study(out)
    scores = importance(study, "loo").score
    for head in off:
        wanted = loss(head) - loss()
        assert scores[study.heads.index(head)] == pytest.approx(wanted, abs=1e-5)
    slope = importance(study, "signed").score[study.heads.index(HeadId(0, 1))]
    assert slope == pytest.approx(-_slope(path, table), abs=1e-5)
    masked = loss(*off)
    finish(tasks.prune(path, off, tmp_path / "out", form="zeroed", data=table))
    pruned = finish(tasks.evaluate(open_model(tmp_path / "out"), table)).loss
    assert pruned == pytest.approx(masked, abs=1e-5)
    assert "of pair accuracy" in said("curve", out, path, "--data", table, "--method", "loo")
    both = json.loads(said("compare", path, folder(seed=1), "--data", table, "--json"))
    assert both["score_a"]["loss"] == pytest.approx(loss(), abs=1e-5)
    assert {one["wanted"] for one in both["examples"]} <= {f"{at}.png" for at in range(6)}


def _slope(path, table):
    """d loss / d gate of head 0.1 at 1, by transformers: the product after it made larger and
    smaller."""
    import transformers

    net = transformers.CLIPModel.from_pretrained(path, dtype=torch.float64).eval()
    read = given(table, net)
    read["pixel_values"] = read["pixel_values"].double()
    weight, found = net.vision_model.encoder.layers[0].self_attn.out_proj.weight, []
    with torch.no_grad():
        part = weight[:, 8:16].clone()
        for gate in (1 + 1e-4, 1 - 1e-4):
            weight[:, 8:16] = gate * part
            found.append(float(net(**read, return_loss=True).loss))
    return (found[0] - found[1]) / 2e-4


def test_pairs_are_told_from_others_of_batches_of_one_size(folder, tmp_path):
    table = pairs(tmp_path, [f"the {WORDS[4 + at % 12]}" for at in range(33)], ("file", "caption"))
    examples = examples_from(open_model(folder()), table)
    assert sorted(len(one.rows) for block in examples.blocks((32, 64)) for one in block) == [16, 17]
    (tmp_path / "b.tsv").write_text("image\tlabel\n0.png\tgood\n")
    assert "has no texts beside its files" in said(
        "evaluate", folder(), "--data", tmp_path / "b.tsv"
    )
