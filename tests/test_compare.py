"""hgviz compare: two models or captures on one text, on data of every goal, and their report."""

import csv
import json
import re
import shutil
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.figures.output import Document, Notes, Table, write_report
from hgviz.files import resource
from hgviz.models import open_model, pruning
from hgviz.models.prompts import prompts_like
from hgviz.store import open_capture, write_capture, write_study
from hgviz.tasks.comparison_report import report_page
from tests.gui.kinds import listener, translator
from tests.making import make_capture
from tests.models.building import write_checkpoint, write_transformer
from tests.models.test_data import texts, theirs, tokenizer
from tests.models.zoo import write
from tests.studying import classifier, make_study, rows

TEXT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """A small Hourglass on bytes, and another seed of it."""
    folder = tmp_path_factory.mktemp("letters")
    keys = {"vocab_size": 256, "dtype": torch.float32}
    return write_checkpoint(folder / "a", **keys), write_checkpoint(folder / "b", seed=1, **keys)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A small classifier over words, another seed of it, and labelled rows."""
    folder = tmp_path_factory.mktemp("words")
    return classifier(folder / "a"), classifier(folder / "b", seed=1), rows(folder)


def captured(path, text, out, **options):
    """Capture a text by a checkpoint into a file, which is returned."""
    model = open_model(path, **options)
    tasks.capture(model, model.tokenize(text), out)
    return out


# --- maps -----------------------------------------------------------------------------------------


def test_two_models_on_one_text_by_name_and_by_their_captures(run, facts, letters, tmp_path):
    found = facts("compare", *letters, "--text", TEXT, "-o", tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text()) == found
    assert found["kind"] == "maps" and found["a"]["tokens"] == len(TEXT)
    assert (found["a"]["model"], found["b"]["model"]) == ("a", "b")
    files = [captured(path, TEXT, tmp_path / f"{path.name}.h5") for path in letters]
    sides = [open_capture(file) for file in files]
    assert [one["head"] for one in found["heads"]] == [str(head) for head in sides[0].spec.heads]
    for one in found["heads"]:
        layer, head = map(int, one["head"].split("."))
        a, b = (side.maps[layer].read(head)[side.query_spans(layer)[:, 0] >= 0] for side in sides)
        assert one["largest"] == pytest.approx(np.abs(a - b).max(), abs=1e-6)
    logits = np.abs(sides[0].logits - sides[1].logits)
    assert found["logits"]["largest"] == pytest.approx(logits.max(), rel=1e-5)
    assert (found["only_a"], found["only_b"], found["notes"]) == ([], [], [])
    for pair in (files, (files[0], letters[1])):
        same = facts("compare", *pair)
        assert same["logits"] == pytest.approx(found["logits"], rel=1e-5)
        for one, other in zip(same["heads"], found["heads"], strict=True):
            numbers = {name: x for name, x in one.items() if isinstance(x, float)}
            assert numbers == pytest.approx({name: other[name] for name in numbers}, abs=1e-6)
    code, out, _ = run("compare", *files, "-o", tmp_path / "out.csv")
    assert code == 0 and out.endswith(f"out.csv: {len(found['heads'])} heads.\n")
    table = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [one["head"] for one in table] == [one["head"] for one in found["heads"]]
    code, out, err = run("compare", letters[0], letters[0], "--text", TEXT)
    assert (code, err) == (0, "") and "largest 0; relative 0; mean 0; JS 0; below 0 0 0" in out
    assert f"Logits at {len(TEXT)} of {len(TEXT)} positions: at most 0 apart" in out


def test_another_activation_heads_off_and_pruned_heads_change_b(
    run, facts, letters, tmp_path, monkeypatch
):
    monkeypatch.setattr(pruning, "ROUNDS", (1, 1))
    twice = "compare", letters[0], letters[0], "--text", TEXT
    first = facts(*twice, "--activation", "ymish")["heads"][0]
    assert (first["activation_a"], first["activation_b"]) == ("softmax", "ymish")
    assert first["negative_a"] == 0 < first["negative_b"]
    off = facts(*twice, "--off", "0.0")
    assert (off["a"]["off"], off["b"]["off"]) == ([], ["0.0"])
    assert off["heads"][0]["largest"] == 0 and off["logits"]["largest"] > 0
    tasks.prune(letters[0], "0.0,2.*", tmp_path / "less")
    pair = "compare", letters[0], tmp_path / "less", "--text", TEXT
    assert "Only in A: 3 heads, 0.0, 2.*." in run(*pair)[1]
    found = facts(*pair)
    assert found["only_a"] == ["0.0", "2.0", "2.1"] and found["only_b"] == []
    # a narrower product adds in another order on some processors: equal but for rounding
    assert found["heads"][0]["head"] == "0.1" and found["heads"][0]["largest"] < 1e-6


def test_other_texts_and_other_tokenizers_meet_where_they_can(facts, letters, words, tmp_path):
    found = facts(
        "compare", captured(letters[0], TEXT, tmp_path / "a.h5"),
        captured(letters[0], "the old cat sat", tmp_path / "b.h5"),
    )  # fmt: skip
    assert "texts differ: 11 shared tokens, of 22 in A and 15" in found["notes"][0]
    found = facts("compare", letters[0], words[0], "--text", TEXT)
    assert "tokens differ: 6 shared tokens, of 22 in A and 8" in found["notes"][0]
    assert found["logits"] is None and "different goals, next and classes" in found["notes"][-1]
    assert all(one["of"] <= 6 for one in found["heads"])


def test_weights_that_are_no_numbers_stay_json(run, facts, letters, tmp_path):
    shutil.copytree(letters[0], tmp_path / "broken")
    tensors = load_file(tmp_path / "broken" / "model.safetensors")
    for name, factor in (("q", 1e37), ("k", 1e3)):  # scores beyond float32
        tensors[f"middle.0.attn.{name}.weight"] *= factor
    save_file(tensors, tmp_path / "broken" / "model.safetensors")
    options = (letters[0], tmp_path / "broken", "--text", TEXT)
    found = facts("compare", *options)
    assert found["heads"][0]["largest"] == 0
    assert any(one["largest"] is None and one["broken"] for one in found["heads"])
    assert found["logits"] is None
    assert found["notes"][-1] == "logits contain NaN or infinite values"
    assert found["notes"][-2].startswith("rows with NaN or infinite weights are left out in ")
    code, out, _ = run("compare", *options)
    assert code == 0 and "nan" not in out


def test_a_text_of_two_is_read_again_beside_its_capture(run, facts, tmp_path):
    write_transformer(
        tmp_path / "both", form="encoder-decoder", vocab_size=256, dtype=torch.float32
    )
    options = ("--text", "the cat", "--target", "die Katze")
    assert run("capture", tmp_path / "both", *options, "-o", tmp_path / "a.h5")[0] == 0
    found = facts("compare", tmp_path / "a.h5", tmp_path / "both")
    assert found["a"]["text"] == found["b"]["text"] and found["logits"]["largest"] == 0
    assert {one["role"] for one in found["heads"]} == {"self", "cross"}
    models = facts("compare", tmp_path / "both", tmp_path / "both", *options)
    assert [one["head"] for one in found["heads"]] == [one["head"] for one in models["heads"]]
    assert all(one["largest"] < 1e-6 for one in found["heads"])  # a file keeps rounded sums


def test_a_model_reads_the_text_of_a_capture_in_its_own_way(letters):
    text = "The fish was not wonderful, but the evening was."
    hourglass, reviews = open_model(letters[0]), open_model(resource("sample/softmax"))
    a = tasks.capture(reviews, tasks.read_prompts(reviews, text)[0])
    same = tasks.capture_like(open_model(resource("sample/ymish")), a)
    assert same.prompt is a.prompt and same.spec.name != a.spec.name  # the very same tokens
    b = tasks.capture_like(hourglass, a)
    assert b.prompt.text == text and len(b.prompt) == len(text.encode())
    assert tasks.capture_like(reviews, b).prompt.pieces == a.prompt.pieces
    without = tasks.capture_like(hourglass, b, frozenset({HeadId(0, 0)}))
    assert np.array_equal(tasks.capture_like(hourglass, b).logits, b.logits)
    assert without.off == {HeadId(0, 0)} and not np.array_equal(without.logits, b.logits)
    for like in (translator(), listener()):  # the decoder's own text; states are no text
        prompt, target = prompts_like(hourglass, like)
        assert target is None and prompt.text == like.target.text
    ids = tasks.capture(hourglass, hourglass.from_ids(np.array([65, 66, 67])))
    assert prompts_like(hourglass, ids)[0] is ids.prompt
    long = tasks.capture(hourglass, hourglass.tokenize("good " * 400))
    with pytest.raises(HgvizError, match="too long"):
        prompts_like(reviews, long)


# --- answers --------------------------------------------------------------------------------------


def test_two_classifiers_on_labelled_rows(run, facts, words, tmp_path):
    *pair, data = words
    found = facts("compare", *pair, "--data", data, "-o", tmp_path / "all.json")
    alone = [tasks.evaluate(open_model(path), data) for path in pair]
    assert [found["score_a"], found["score_b"]] == [one.to_dict() for one in alone]
    right = np.array([one.right for one in alone])
    paired(found, *right)
    assert found["agreement"] == pytest.approx((right[0] == right[1]).mean())  # of two classes
    kept = json.loads((tmp_path / "all.json").read_text())
    assert len(kept["examples"]) == found["differing"] == int((right[0] != right[1]).sum())
    assert found["examples"] == kept["examples"][:20]
    lines = data.read_text().splitlines()[1:]
    for one in kept["examples"]:
        text, label = lines[one["example"]].split("\t")
        assert (one["text"], one["wanted"]) == (text, label)
        assert one["a"] != one["b"] and label in (one["a"], one["b"])
    code, out, _ = run("compare", *pair, "--data", data, "-o", tmp_path / "out.csv")
    assert code == 0 and "B minus A: " in out and "McNemar's p" in out and "examples" in out
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 1 + found["differing"]
    same = run("compare", pair[0], pair[0], "--data", data)[1]
    assert "B minus A: +0 points" in same and "100.0 %; 0 differ." in same


def test_two_language_models_in_bits(run, facts, letters, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT * 100)
    found = facts("compare", *letters, "--data", tmp_path / "text.txt")
    bits = found["score_b"]["value"] - found["score_a"]["value"]
    assert found["score_a"]["metric"] == "bits_per_byte"
    assert found["difference"]["value"] == pytest.approx(bits, abs=1e-5)
    assert found["difference"]["low"] < bits < found["difference"]["high"]
    code, out, _ = run("compare", *letters, "--data", tmp_path / "text.txt")
    assert code == 0 and " bits per byte (" in out and "' '" in out
    same = facts("compare", letters[0], letters[0], "--data", tmp_path / "text.txt", "--off", "0.*")
    whole = tasks.evaluate(open_model(letters[0]), tmp_path / "text.txt")
    assert same["score_a"] == whole.to_dict() and same["score_b"]["off"] == ["0.0", "0.1"]


LETTERS = [*"abcdefghijklmnopqrstuvwxyz?.", "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]


def spelt():
    """Letters between [CLS] and [SEP], pairs with token types."""
    ids = {one: at for at, one in enumerate(LETTERS)}
    made = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Split(Regex("."), "isolated"),
    ])  # fmt: skip
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(one, ids[one]) for one in ("[CLS]", "[SEP]")],
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model once, with a tokenizer of words or of letters, or a processor of images."""
    kept = {}

    def made(kind, name, reads=tokenizer, **changes):
        key = kind, name, str(reads), str(changes)
        if key not in kept:
            kept[key] = write(tmp_path_factory.mktemp("model") / kind, kind, name, **changes)
            if reads is not None:
                reads().save(str(kept[key] / "tokenizer.json"))
        return kept[key]

    return made


def paired(found, a, b):
    """What is said of answers, beside which of them are right by hand."""
    a, b = np.array(a), np.array(b)
    assert found["score_a"]["value"] == pytest.approx(a.mean())
    assert found["score_b"]["value"] == pytest.approx(b.mean())
    assert (found["a_only"], found["b_only"]) == (int((a & ~b).sum()), int((b & ~a).sum()))
    assert found["difference"]["value"] == pytest.approx(b.mean() - a.mean())
    assert found["difference"]["low"] < found["difference"]["value"] < found["difference"]["high"]
    assert 0 < found["p"] <= 1 and found["notes"] == []


def tagged(place, rows):
    data = place / "tags.jsonl"
    data.write_text("\n".join(
        json.dumps({"tokens": row, "ner_tags": [f"LABEL_{len(word) % 2}" for word in row]})
        for row in rows
    ))  # fmt: skip
    return data


def test_classes_of_tokens_meet_word_by_word_whatever_the_tokens_are(facts, folder, tmp_path):
    names = ("RobertaForTokenClassification", "BertForTokenClassification")
    a = folder("roberta", names[0])
    b = folder("bert", names[1], spelt, max_position_embeddings=96)
    rows = texts(30)
    found = facts("compare", a, b, "--data", tagged(tmp_path, rows))
    given = []
    for path, name, reads in ((a, names[0], tokenizer()), (b, names[1], spelt())):
        mine = []
        for row in rows:
            read = reads.encode(" ".join(row))
            with torch.no_grad():
                logits = theirs(path, name)(input_ids=torch.tensor([read.ids])).logits[0]
            starts = [sum(len(one) + 1 for one in row[:at]) for at in range(len(row))]
            first = [[start for start, _ in read.offsets].index(at, 1) for at in starts]
            mine += logits[first].argmax(-1).tolist()
        given.append(np.array(mine))
    wanted = np.array([len(word) % 2 for row in rows for word in row])
    paired(found, given[0] == wanted, given[1] == wanted)
    assert found["agreement"] == pytest.approx((given[0] == given[1]).mean())
    assert found["score_a"]["metric"] == "tag_accuracy"
    words = [word for row in rows for word in row]
    for one in found["examples"]:
        assert one["text"].split()[-1] in words and one["a"] != one["b"]
        assert one["wanted"] == f"LABEL_{len(one['text'].split()[-1]) % 2}"


def test_words_that_one_side_does_not_reach_are_not_paired(run, facts, folder, tmp_path):
    a = folder("roberta", "RobertaForTokenClassification")
    b = folder("bert", "BertForTokenClassification", spelt, max_position_embeddings=24)
    found = facts("compare", a, b, "--data", tagged(tmp_path, texts(20)))
    totals = [found[f"score_{side}"]["total"] for side in "ab"]
    read = [sum(len(word) for word in row) for row in texts(20)]
    assert totals[0] == sum(map(len, texts(20))) and found["score_b"]["cut"] == sum(
        letters + 2 > 24 for letters in read
    )
    begun = [sum(sum(map(len, row[:at])) < 22 for at in range(len(row))) for row in texts(20)]
    assert totals[1] == sum(begun)  # of 24 positions [CLS] and [SEP] take two
    assert found["notes"] == [
        "predictions are paired at "
        f"{totals[1]:,} shared positions, of {totals[0]:,} in A and {totals[1]:,} in B"
    ]
    assert (
        "Predictions are paired at"
        in run("compare", a, b, "--data", tagged(tmp_path, texts(20)))[1]
    )


def asked(place, rows):
    data = place / "questions.jsonl"
    with data.open("w") as file:
        for row in rows:
            context, start = " ".join(row), len(" ".join(row[:2])) + 1
            answers = {"text": [" ".join(row[2:4])], "answer_start": [start]}
            one = {"question": "who did it", "context": context, "answers": answers}
            file.write(json.dumps(one) + "\n")
    return data


def ends_by_hand(path, name, reads, rows):
    """Where answers begin and end in their texts by a model of transformers, and whether that is
    right: two of each question."""
    other, where, right = theirs(path, name), [], []
    for row in rows:
        context, start = " ".join(row), len(" ".join(row[:2])) + 1
        wanted = start, start + len(" ".join(row[2:4]))
        read = reads.encode("who did it", context)
        with torch.no_grad():
            out = other(input_ids=torch.tensor([read.ids]),
                        token_type_ids=torch.tensor([read.type_ids]))  # fmt: skip
        for end, logits in enumerate((out.start_logits[0], out.end_logits[0])):
            at = int(logits.argmax())
            special, second = read.special_tokens_mask[at], read.sequence_ids[at] == 1
            place = (-1 if at == 0 else -2) if special else read.offsets[at][end]
            where.append((second, place))
            right.append(second and not special and place == wanted[end])
    return where, right


def test_answers_meet_by_the_characters_they_begin_and_end_at(facts, folder, tmp_path):
    rows = texts(40)
    name = "ElectraForQuestionAnswering"
    a, b = folder("electra", name), folder("electra", name, spelt, max_position_embeddings=96)
    found = facts("compare", a, b, "--data", asked(tmp_path, rows))
    (one, right), (other, won) = (
        ends_by_hand(path, name, reads, rows) for path, reads in ((a, tokenizer()), (b, spelt()))
    )
    paired(found, right, won)
    assert found["score_a"]["metric"] == "end_accuracy" and found["score_a"]["total"] == 80
    assert found["agreement"] == pytest.approx(
        np.mean([x == y for x, y in zip(one, other, strict=True)])
    )
    for each in found["examples"]:
        assert each["wanted"].split()[0] == ("to" if each["place"] else "from")
    same = facts("compare", a, a, "--data", asked(tmp_path, rows))
    assert (same["agreement"], same["differing"]) == (1, 0)


def pooled(path, name, reads, rows):
    """(rows, width): the mean state of each text by a model of transformers."""
    model = theirs(path, name)
    ids = [torch.tensor([reads.encode(" ".join(row)).ids]) for row in rows]
    with torch.no_grad():
        return torch.stack([model(one).last_hidden_state[0].double().mean(0) for one in ids])


def test_states_of_two_encoders_are_compared_by_their_cosine(run, facts, folder, tmp_path):
    rows, data = texts(40), tmp_path / "a.txt"
    data.write_text("\n".join(map(" ".join, rows)))
    a, b = folder("distilbert", "DistilBertModel"), folder("bert", "BertModel", spelt)
    found = facts("compare", a, b, "--data", data)
    one = pooled(a, "DistilBertModel", tokenizer(), rows)
    other = pooled(b, "BertModel", spelt(), rows)
    moved = 1 - torch.nn.functional.cosine_similarity(one, other)
    assert found["score_b"]["metric"] == "cosine_distance_to_a"
    assert found["score_b"]["value"] == pytest.approx(float(moved.mean()), rel=1e-5)
    half = 1.96 * float(moved.std()) / len(rows) ** 0.5
    assert found["score_b"]["high"] == pytest.approx(float(moved.mean()) + half, rel=0.02)
    near = torch.nn.functional.normalize(other, dim=1) @ torch.nn.functional.normalize(one, dim=1).T
    own = (near.argmax(1) == torch.arange(40)).double().mean()
    assert found["agreement"] == pytest.approx(float(own)) and found["p"] is None
    code, out, _ = run("compare", a, b, "--data", data)
    assert code == 0 and "1 - cosine to A's states" in out and "on 40." in out
    # a model beside itself with heads off moves as evaluating it says
    found = facts("compare", a, a, "--data", data, "--off", "0.1,1.2", "--limit", 10)
    off = frozenset({HeadId(0, 1), HeadId(1, 2)})
    alone = tasks.evaluate(open_model(a), data, off=off, limit=10)
    assert found["score_b"]["value"] == pytest.approx(alone.score.value, rel=1e-4)
    assert found["score_b"]["off"] == ["0.1", "1.2"] and found["score_b"]["total"] == 10


# --- images and sounds ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A table of images of two classes in a folder beside it."""
    place, random = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    (place / "files").mkdir()
    lines = ["image,label"]
    for at in range(16):
        values = random.integers(0, 255, (40, 48, 3)).astype(np.uint8)
        Image.fromarray(values).save(place / "files" / f"{at}.png")
        lines.append(f"files/{at}.png,{'cat' if at % 2 else 'dog'}")
    (place / "a.csv").write_text("\n".join(lines))
    return place


NAMES = ("--labels", "cat=LABEL_1,dog=LABEL_0")
VIT = "ViTForImageClassification"


@pytest.fixture(scope="module")
def seers(folder):
    """Two ViTs of one grid, the second of another size and normalisation, and one of another."""

    def seeing(size, patch, **how):
        path = folder("vit", VIT, None, image_size=size, patch_size=patch)
        side = {"height": size, "width": size}
        transformers.ViTImageProcessor(size=side, **how).save_pretrained(path)
        return path

    other = {"image_mean": [0.2, 0.4, 0.6], "image_std": [0.3, 0.3, 0.3]}
    return seeing(32, 8), seeing(16, 4, **other), seeing(32, 16)


def test_images_are_read_by_both_models_each_at_its_own_size(refusal, facts, seers, pictures):
    found = facts("compare", *seers[:2], "--data", pictures / "a.csv", *NAMES)
    right, given = [], []
    for path in seers[:2]:
        other = transformers.ViTForImageClassification.from_pretrained(path).eval()
        processor = transformers.ViTImageProcessor.from_pretrained(path)
        answers = []
        for at in range(16):
            image = Image.open(pictures / "files" / f"{at}.png")
            with torch.no_grad():
                logits = other(**processor(images=image, return_tensors="pt")).logits
            answers.append(int(logits.argmax()))
        given.append(np.array(answers))
        right.append(given[-1] == np.arange(16) % 2)
    paired(found, *right)
    assert found["agreement"] == pytest.approx((given[0] == given[1]).mean())
    assert all(one["text"].endswith(".png") for one in found["examples"])
    assert "--labels" in refusal("compare", *seers[:2], "--data", pictures / "a.csv")


def test_maps_of_two_models_on_one_image(run, facts, seers, pictures, tmp_path):
    image = pictures / "files" / "3.png"
    found = facts("compare", *seers[:2], "--image", image)
    sides = []
    for path in seers[:2]:
        model = open_model(path)
        sides.append(tasks.capture(model, model.from_signal(image)))
    assert [one["head"] for one in found["heads"]] == [str(one) for one in sides[0].spec.heads]
    for one in found["heads"]:
        layer, head = map(int, one["head"].split("."))
        a, b = (side.maps[layer].read(head) for side in sides)
        assert one["largest"] == pytest.approx(np.abs(a - b).max(), abs=1e-6)
        assert one["rows"] == 17
    assert found["logits"]["largest"] == pytest.approx(
        np.abs(sides[0].logits - sides[1].logits).max(), rel=1e-5
    )
    assert found["notes"] == [] and found["a"]["tokens"] == 17
    assert "17 positions" in run("compare", *seers[:2], "--image", image)[1]
    # a checkpoint beside a capture reads what was seen there, and the file of it is not needed
    tasks.capture(open_model(seers[0]), sides[0].prompt, tmp_path / "a.h5")
    same = facts("compare", tmp_path / "a.h5", seers[0])
    assert same["logits"]["largest"] == 0 and same["notes"] == []
    smaller = facts("compare", tmp_path / "a.h5", seers[1])
    assert smaller["logits"]["largest"] == pytest.approx(found["logits"]["largest"], rel=0.2)


def test_other_images_are_said_and_other_grids_are_one_line(
    refusal, facts, seers, pictures, tmp_path
):
    files = pictures / "files"
    for name, path, image in (("a", seers[0], "0.png"), ("b", seers[0], "1.png")):
        model = open_model(path)
        tasks.capture(model, model.from_signal(files / image), tmp_path / f"{name}.h5")
    found = facts("compare", tmp_path / "a.h5", tmp_path / "b.h5")
    assert found["notes"] == ["A reads 0.png, B reads 1.png"] and found["heads"]
    (tmp_path / "0.png").write_bytes((files / "1.png").read_bytes())
    tasks.capture(model, model.from_signal(tmp_path / "0.png"), tmp_path / "c.h5")
    found = facts("compare", tmp_path / "a.h5", tmp_path / "c.h5")
    assert found["notes"] == ["both read 0.png, but the images differ"]
    write_capture(tmp_path / "text.h5", make_capture("0.png"))
    error = refusal("compare", tmp_path / "text.h5", tmp_path / "a.h5")
    assert "A reads a text, B reads an image in 4 x 4 patches" in error
    error = refusal("compare", seers[0], seers[2], "--image", files / "0.png")
    assert "A reads an image in 4 x 4 patches, B reads an image in 2 x 2 patches" in error


# --- reports --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(words):
    """Two classifiers, the second with another activation, and what is measured of them."""
    both = open_model(words[0]), open_model(words[1], activation="ymish")
    return both, tasks.compare_models(*both, words[2], texts=4)


class Page(HTMLParser):
    """All that a report names and says."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.ids, self.words = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]

    def handle_data(self, data):
        self.words.append(data)


def test_one_command_makes_the_report_which_needs_nothing_from_elsewhere(
    words, compared, facts, tmp_path
):
    out, again = tmp_path / "report.html", tmp_path / "again" / "report.html"
    options = ("--activation", "ymish", "--texts", "4", "-o", out)
    told = facts("compare", *words[:2], "--data", words[2], *options)
    command = "hgviz compare a b --data rows.tsv --activation ymish --texts 4 -o report.html"
    again.parent.mkdir()
    tasks.write_report(compared[1], again, command)
    assert out.read_bytes() == again.read_bytes() and b"pytest" not in again.read_bytes()
    assert told["kind"] == "report" and told["texts"] == 4
    assert {one["metric"] for one in told["metrics"]} == {one["metric"] for one in told["heads"]}
    text = out.read_text()
    page = Page(text)
    assert not {"script", "link"} & set(page.tags)
    assert all(one.startswith(("#", "data:image/png;base64,")) for one in page.links)
    assert len(page.ids) == len(set(page.ids))
    named = {one[1:] for one in page.links if one[0] == "#"} | {*re.findall(r"url\(#(.*?)\)", text)}
    assert named <= set(page.ids)
    drawings = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    assert len(drawings) == 4
    for one in drawings:
        ElementTree.fromstring(one)
        assert "aria-label" in one[:2000]


def test_numbers_of_heads_are_those_of_captures(compared, words):
    both, found = compared
    for model, side in zip(both, (found.a, found.b), strict=True):
        for number, row in enumerate(tasks.examples_from(model, words[2]).sample(4).rows):
            capture = tasks.capture(model, model.from_ids(row.ids))
            for at, head in enumerate(side.heads):
                weight = capture.maps[head.layer].read(head.head).astype(float)
                size = np.abs(weight)
                p = size / np.maximum(size.sum(1, keepdims=True), 1e-30)
                singular = np.linalg.svd(weight, compute_uv=False)
                q = singular / singular.sum()
                below = np.maximum(-weight, 0).sum(1) / np.maximum(size.sum(1), 1e-30)
                for name, value in (
                    ("entropy", -(p * np.log(np.maximum(p, 1e-300))).sum(1).mean()),
                    ("rank", np.exp(-(q * np.log(np.maximum(q, 1e-300))).sum()) / len(weight)),
                    ("negative_mass", below.mean()), ("row_sum", weight.sum(1).mean()),
                ):  # fmt: skip
                    measured = side.values[name][number, at]
                    assert measured == pytest.approx(value, abs=1e-5), (name, head)


def blocks(a, b, data, **more):
    """The blocks of the report of two models by their titles, without those that continue one."""
    page = report_page(tasks.compare_models(a, b, data, texts=2, **more))
    return {block.title: block for block in page.blocks if block.title}


def test_the_page_begins_with_both_scores_the_test_and_the_heads_that_differ_most(compared, words):
    (a, _), comparison = compared
    scores, test, heads = report_page(comparison).blocks[:3]
    for row, side in zip(scores.rows, (comparison.answers.a, comparison.answers.b), strict=False):
        ends = (side.score.value, side.score.low, side.score.high)
        assert row[1] == "{:.1f} % [{:.1f} %, {:.1f} %]".format(*(100 * end for end in ends))
    assert "McNemar" in test.columns[-1] and test.rows[0][-1].startswith(("0.", "1.", "<"))
    distances = [float(row[1]) for row in heads.rows]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] == pytest.approx(max(one.js for one in comparison.maps.heads), abs=1e-3)
    page = blocks(a, a, words[2])
    assert "Different predictions" not in page and page["Scores"].rows[2][1].startswith("0 [")
    assert all(row[3].startswith(("0 [0, 0]", "–")) for row in page["Metrics of heads"].rows)
    page = blocks(a, a, words[2], off=frozenset({HeadId(0, 1)}))
    assert page["Models"].rows[-1] == ("Heads off", "none", "0.1")


def test_models_of_bytes_are_reported_and_long_texts_are_cut(words, letters, tmp_path):
    keys = {
        "form": "encoder", "vocab_size": 256, "goal": "classes", "labels": ["no", "yes"],
        "max_positions": 16, "dtype": torch.float32,
    }  # fmt: skip
    other = open_model(write_transformer(tmp_path / "bytes", **keys | {"max_positions": 64}))
    page = blocks(open_model(words[0]), other, words[2])
    assert any("tokenize every text differently" in note for note in page["Method"].sentences)
    assert len(page["Distances between heads"].chart.grids) == 2
    short = open_model(write_transformer(tmp_path / "short", **keys))
    data = tmp_path / "data.tsv"
    data.write_text("sentence\tlabel\n" + "".join(f"{n} {'so long ' * 9}\tyes\n" for n in range(3)))
    found = tasks.compare_models(short, other, data, texts=2)
    assert len(found.captures[0].prompt) == 16
    assert any("is truncated to the maximum length of both" in one for one in found.notes)
    (tmp_path / "data.txt").write_text(f"{TEXT}, and so it went on. " * 12)
    page = blocks(*map(open_model, letters), tmp_path / "data.txt", text="the cat")
    assert page["Scores"].columns[1] == "Bits per byte"
    assert "“the cat”" in page["The head that differs most"].caption


def test_a_stranger_s_text_stays_text(words, tmp_path):
    evil = "<script>alert(1)</script> </svg> &amp; \u202e $x_1$ 'good' \x07"
    blocks = (Notes(evil, (evil,)), Table(evil, (evil, evil), ((evil, evil),) * 70))
    report = Document(evil, evil, blocks)
    write_report(report, tmp_path / "evil.html", f"hgviz compare {evil}")
    page = Page((tmp_path / "evil.html").read_text())
    assert "script" not in page.tags
    assert sum(evil in one for one in page.words) > 140


def test_reports_on_tokens_answers_and_images(facts, folder, seers, pictures, tmp_path):
    tags = folder("bert", "BertForTokenClassification", spelt, max_position_embeddings=96)
    pairs = folder("electra", "ElectraForQuestionAnswering")
    image = ("--image", pictures / "files" / "2.png")
    for sides, data, more in (
        ((folder("roberta", "RobertaForTokenClassification"), tags), tagged(tmp_path, texts(6)),
         ()),
        ((pairs, pairs), asked(tmp_path, texts(6)), ("--off", "0.1")),
        (seers[:2], pictures / "a.csv", (*NAMES, *image)),
    ):  # fmt: skip
        out = tmp_path / f"{sides[0].name}.html"
        found = facts("compare", *sides, "--data", data, "--texts", 3, "-o", out, *more)
        slopes = [one["value"] for one in found["heads"] if one["metric"] == "slope"]
        assert slopes and all(one > 0 for one in slopes if one is not None)
        assert found["maps"]["heads"] and "<html" in out.read_text()[:200]


@pytest.mark.parametrize("kind, name", [
    ("deberta-v2", "DebertaV2"), ("funnel", "Funnel"), ("longformer", "Longformer"),
])  # fmt: skip
def test_a_report_has_the_maps_of_layers_that_have_weights_alone(
    facts, folder, tmp_path, kind, name
):
    a = folder("bert", "BertForSequenceClassification", spelt)
    b = folder(kind, f"{name}ForSequenceClassification", spelt)
    rows = "\n".join(f"{' '.join(row)}\tLABEL_{at % 2}" for at, row in enumerate(texts(4)))
    (tmp_path / "rows.tsv").write_text(f"text\tlabel\n{rows}\n")
    out = tmp_path / "out.html"
    found = facts("compare", a, b, "--data", tmp_path / "rows.tsv", "-o", out)
    assert out.exists()
    values = {(one["side"], one["head"], one["metric"]): one["value"] for one in found["heads"]}
    model, entropies = open_model(b), []
    for row in texts(4):
        capture = tasks.capture(model, model.tokenize(" ".join(row)))
        weights = capture.maps[0].read(1).astype(float)
        p = np.divide(weights, weights.sum(1, keepdims=True))
        entropies.append(-(p * np.log(np.where(p > 0, p, 1))).sum(1).mean())
    assert values["b", "0.1", "entropy"] == pytest.approx(np.mean(entropies), abs=1e-4)
    assert values["a", "0.1", "slope"] > 0
    if kind != "longformer":
        assert values["b", "0.1", "slope"] is None
        assert "has no gradients" in "".join(found["notes"])
        assert "<td>–</td>" in out.read_text("utf-8")


# --- refusals -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def place(letters, words, folder, seers, pictures, tmp_path_factory):
    """A folder with a model of every kind, captures and damaged data, by the names below."""
    place = tmp_path_factory.mktemp("refused")
    for name, path in {
        "model": letters[0], "words": words[0], "rows.csv": words[2], "seer": seers[0],
        "states": folder("distilbert", "DistilBertModel"), "vit": seers[1],
        "wide": folder("bert", "BertModel", tokenizer, hidden_size=64),
        "tags": folder("roberta", "RobertaForTokenClassification"),
        "ends": folder("electra", "ElectraForQuestionAnswering"), "images": pictures / "files",
    }.items():  # fmt: skip
        (place / name).symlink_to(path)
    for name, content in {
        "empty.txt": "", "empty.jsonl": "", "empty.csv": "", "a.txt": "the sand ran\n",
        "gap.tsv": "sentence\tlabel\nthe cat\t\n", "gone.csv": "image,label\nno.png,LABEL_0\n",
        "tags.jsonl": '{"tokens": ["a"]}\n',
    }.items():  # fmt: skip
        (place / name).write_text(content)
    write_study(place / "study.h5", make_study())
    captured(letters[0], TEXT, place / "a.h5")
    captured(letters[0], "xyzzy", place / "alien.h5")
    return place


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("model model", 2, ""),
        ("model model --text a --data rows.csv", 2, ""),
        ("model model --text a -o out.npy", 2, ""),
        ("a.h5 a.h5 --text a", 2, ""),
        ("a.h5 model --data rows.csv", 2, ""),
        ("model a.h5 --activation ymish", 2, ""),
        ("model a.h5 --off 0.0", 2, ""),
        ("a.h5 model --target a", 2, ""),
        ("model model --data rows.csv -o rows.csv", 2, ""),
        ("model words --text film -o x.html", 2, "needs --data"),
        ("words words --data rows.csv --texts 3", 2, "for a report"),
        ("words words --data rows.csv -o x.docx", 2, "does not end in"),
        ("words words --data rows.csv --texts 0 -o x.html", 2, "--texts"),
        ("states states --image a.png --text a", 2, ""),
        ("states states --labels a=b", 2, ""),
        ("states states --data a.txt --labels cat=X,cat=Y", 2, "'cat' is mapped to two labels"),
        ("words words --data rows.csv -o nowhere/x.html", 1, "does not exist"),
        ("nowhere model --text a", 1, "nowhere"),
        ("model study.h5 --text a", 1, "is a study"),
        ("model model --text=", 1, "text"),
        ("model model --text-file empty.txt", 1, "is empty"),
        ("model words --data rows.csv", 1, "A outputs the next token, B a class"),
        ("words words --data gap.tsv", 1, "line 2, column label is missing or empty"),
        ("model model --text a --off 9.9", 1, "no head"),
        ("a.h5 alien.h5", 1, "no token in common"),
        ("states wide --data a.txt", 1, "their width is 32 in A and 64 in B"),
        ("states tags --data a.txt", 1, "A outputs hidden states, B classes of tokens"),
        ("tags ends --data a.txt", 1, "A outputs classes of tokens, B ends of answers"),
        ("seer tags --data a.txt", 1, "A reads images, B text"),
        ("states states --data empty.txt", 1, "is empty"),
        ("tags tags --data empty.jsonl", 1, "is empty"),
        ("tags tags --data a.txt", 1, "it needs a .jsonl"),
        ("ends ends --data a.txt", 1, "it needs a .jsonl"),
        ("ends ends --data tags.jsonl", 1, '"answer_start"'),
        ("seer vit --data empty.csv", 1, "is empty"),
        ("seer vit --data gone.csv", 1, "no.png"),
        ("seer vit --data a.txt", 1, "line 1 has one column"),
        ("seer vit --text a", 1, "this model reads images, not text"),
        ("states states --image images/0.png", 1, "this model does not read images"),
        ("seer vit --image a.txt", 1, "cannot be read as an image"),
        ("states states --data a.txt -o a.html", 1, "output hidden states"),
    ],
)
def test_what_cannot_be_compared_is_one_line(refusal, place, monkeypatch, line, code, message):
    monkeypatch.chdir(place)
    before = set(place.iterdir())
    error = refusal("compare", *line.split(), code=code)
    assert message.lower() in error.lower() and set(place.iterdir()) == before
    assert ("--help`." in error) == (code == 2)
