"""hgviz compare on models of every goal, beside the same worked out by transformers and by hand."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

from hgviz import tasks
from hgviz.core import parse_heads
from hgviz.models import open_model
from hgviz.store import write_capture
from tests.making import make_capture
from tests.models.test_answers import texts, theirs, tokenizer
from tests.models.zoo import write

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


def seeing(path, size=32, **how):
    """That folder with a processor of images."""
    import transformers

    processor = transformers.ViTImageProcessor(size={"height": size, "width": size}, **how)
    processor.save_pretrained(path)
    return path


def paired(found, a, b):
    """What is said of answers, beside which of them are right by hand."""
    a, b = np.array(a), np.array(b)
    assert found["score_a"]["value"] == pytest.approx(a.mean())
    assert found["score_b"]["value"] == pytest.approx(b.mean())
    assert (found["a_only"], found["b_only"]) == (int((a & ~b).sum()), int((b & ~a).sum()))
    assert found["difference"]["value"] == pytest.approx(b.mean() - a.mean())
    assert found["difference"]["low"] < found["difference"]["value"] < found["difference"]["high"]
    assert 0 < found["p"] <= 1 and found["notes"] == []


# --- classes of tokens ----------------------------------------------------------------------------


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
        f"answers are paired at {totals[1]:,} places that both read, of {totals[0]:,} of A and "
        f"{totals[1]:,} of B"
    ]
    assert "Answers are paired at" in run("compare", a, b, "--data", tagged(tmp_path, texts(20)))[1]


# --- answers to questions -------------------------------------------------------------------------


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


def test_questions_that_one_side_does_not_reach_are_left_out_of_both(
    refusal, facts, folder, tmp_path
):
    name = "ElectraForQuestionAnswering"
    a = folder("electra", name)
    b = folder("electra", name, spelt, max_position_embeddings=24)
    rows = [row[:4] for row in texts(12)]
    found = facts("compare", a, b, "--data", asked(tmp_path, rows), "--limit", 5)
    assert found["score_a"]["total"] == found["score_b"]["total"] <= 10
    assert found["notes"] == [] and found["p"] is not None
    rows = [["electric"] * 3 + row for row in rows]
    assert "lie beyond" in refusal("compare", a, b, "--data", asked(tmp_path, rows))


# --- hidden states --------------------------------------------------------------------------------


def pooled(path, name, reads, rows):
    other = theirs(path, name)
    with torch.no_grad():
        return torch.stack([
            other(torch.tensor([reads.encode(" ".join(row)).ids])).last_hidden_state[0].double()
            .mean(0) for row in rows
        ])  # fmt: skip


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
    assert found["difference"]["value"] == found["score_b"]["value"]
    half = 1.96 * float(moved.std()) / len(rows) ** 0.5
    assert found["score_b"]["high"] == pytest.approx(float(moved.mean()) + half, rel=0.02)
    near = torch.nn.functional.normalize(other, dim=1) @ torch.nn.functional.normalize(one, dim=1).T
    own = (near.argmax(1) == torch.arange(40)).double().mean()
    assert found["agreement"] == pytest.approx(float(own)) and found["p"] is None
    code, out, _ = run("compare", a, b, "--data", data, "-o", tmp_path / "a.csv")
    assert code == 0 and "1 - cosine to A's states" in out and "on 40." in out
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1 + found["differing"]


def test_a_model_beside_itself_with_heads_off_moves_as_evaluate_says(facts, folder, tmp_path):
    data = tmp_path / "a.txt"
    data.write_text("\n".join(map(" ".join, texts(20))))
    path = folder("distilbert", "DistilBertModel")
    assert facts("compare", path, path, "--data", data)["score_b"]["value"] == pytest.approx(
        0, abs=1e-9
    )
    found = facts("compare", path, path, "--data", data, "--off", "0.1,1.2", "--limit", 10)
    model = open_model(path)
    off = parse_heads("0.1,1.2", model.spec.layers)
    trials = tasks.trials_of(model, data, limit=10)
    alone = np.concatenate([
        trials.without(batch, off)[0] for block in trials.blocks for batch in block
    ])  # fmt: skip
    assert found["score_b"]["value"] == pytest.approx(alone.mean(), rel=1e-4)
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
    other = {"image_mean": [0.2, 0.4, 0.6], "image_std": [0.3, 0.3, 0.3]}
    return (
        seeing(folder("vit", VIT, None, image_size=32, patch_size=8)),
        seeing(folder("vit", VIT, None, image_size=16, patch_size=4), 16, **other),
        seeing(folder("vit", VIT, None, image_size=32, patch_size=16)),
    )


def test_images_are_read_by_both_models_each_at_its_own_size(refusal, facts, seers, pictures):
    import transformers

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
    assert found["notes"] == ["A reads 0.png and B 1.png"] and found["heads"]
    (tmp_path / "0.png").write_bytes((files / "1.png").read_bytes())
    tasks.capture(model, model.from_signal(tmp_path / "0.png"), tmp_path / "c.h5")
    found = facts("compare", tmp_path / "a.h5", tmp_path / "c.h5")
    assert found["notes"] == ["both read 0.png, and these are not the same image"]
    write_capture(tmp_path / "text.h5", make_capture("0.png"))
    error = refusal("compare", tmp_path / "text.h5", tmp_path / "a.h5")
    assert "A reads a text and B an image in 4 x 4 patches" in error
    error = refusal("compare", seers[0], seers[2], "--image", files / "0.png")
    assert "A reads an image in 4 x 4 patches and B an image in 2 x 2 patches" in error


def test_maps_of_one_sound_meet_by_time(facts, folder, tmp_path):
    import wave

    import transformers

    path = folder("wav2vec2", "Wav2Vec2ForSequenceClassification", None)
    transformers.Wav2Vec2FeatureExtractor(feature_size=1, sampling_rate=16000).save_pretrained(path)
    sound = (3000 * np.sin(np.arange(8000) / 9)).astype("<i2")
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1), file.setsampwidth(2), file.setframerate(16000)
        file.writeframes(sound.tobytes())
    found = facts("compare", path, path, "--audio", tmp_path / "a.wav", "--off", "0.0")
    assert found["heads"][0]["largest"] == 0 and found["logits"]["largest"] > 0
    (tmp_path / "a.csv").write_text("audio,label\na.wav,LABEL_0\na.wav,LABEL_1\n")
    scored = facts("compare", path, path, "--data", tmp_path / "a.csv")
    assert scored["score_a"]["value"] == 0.5 and scored["agreement"] == 1


# --- reports --------------------------------------------------------------------------------------


def test_reports_on_tokens_answers_and_images(facts, folder, seers, pictures, tmp_path):
    rows = texts(6)
    tags = folder("bert", "BertForTokenClassification", spelt, max_position_embeddings=96)
    pairs = folder("electra", "ElectraForQuestionAnswering")
    for models_, data, more in (
        ((folder("roberta", "RobertaForTokenClassification"), tags), tagged(tmp_path, rows), ()),
        ((pairs, pairs), asked(tmp_path, rows), ("--off", "0.1")),
        (seers[:2], pictures / "a.csv", NAMES),
        (seers[:2], pictures / "a.csv", (*NAMES, "--image", pictures / "files" / "2.png")),
    ):
        out = tmp_path / "report.html"
        out.unlink(missing_ok=True)
        found = facts("compare", *models_, "--data", data, "--texts", 3, "-o", out, *more)
        slopes = [one["value"] for one in found["heads"] if one["metric"] == "slope"]
        assert slopes and all(one > 0 for one in slopes if one is not None)
        assert found["maps"]["heads"] and "<html" in out.read_text()[:200]


# --- refusals -------------------------------------------------------------------------------------


def test_what_cannot_be_compared_is_one_line(refusal, folder, seers, pictures, tmp_path):
    words = folder("distilbert", "DistilBertModel")
    wide = folder("bert", "BertModel", tokenizer, hidden_size=64)
    tags = folder("roberta", "RobertaForTokenClassification")
    ends = folder("electra", "ElectraForQuestionAnswering")
    text, empty = tmp_path / "a.txt", tmp_path / "empty.jsonl"
    text.write_text("the sand ran\n")
    empty.touch()
    (tmp_path / "empty.txt").touch()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "gone.csv").write_text("image,label\nnowhere.png,LABEL_0\n")
    for arguments, message in (
        ((words, wide, "--data", text), "those of A have 32 numbers and those of B 64"),
        ((words, tags, "--data", text), "A gives hidden states and B classes of tokens"),
        ((tags, ends, "--data", text), "A gives classes of tokens and B ends of answers"),
        ((seers[0], tags, "--data", text), "A reads images and B text"),
        ((words, words, "--data", tmp_path / "empty.txt"), "is empty"),
        ((tags, tags, "--data", empty), "is empty"),
        ((tags, tags, "--data", text), "it needs a .jsonl"),
        ((ends, ends, "--data", empty), "is empty"),
        ((ends, ends, "--data", text), "it needs a .jsonl"),
        ((seers[0], seers[1], "--data", tmp_path / "empty.csv"), "is empty"),
        ((seers[0], seers[1], "--data", tmp_path / "gone.csv"), "nowhere.png"),
        ((seers[0], seers[1], "--data", text), "line 1 has one column"),
        ((seers[0], seers[1], "--text", "a"), "this model reads images and no text"),
        ((words, words, "--image", pictures / "files" / "0.png"), "this model reads no images"),
        ((seers[0], seers[1], "--image", text), "cannot be read as an image"),
        ((words, words, "--data", text, "-o", tmp_path / "a.html"), "give hidden states"),
    ):
        assert message.lower() in refusal("compare", *arguments).lower(), arguments
    for more, message in (
        (("--image", "a.png", "--text", "a"), ""), (("--labels", "a=b"), ""),
        (("--target", "a"), ""),
        (("--data", text, "--labels", "cat=LABEL_0,cat=LABEL_1"), "'cat' is said to be two labels"),
    ):  # fmt: skip
        assert message in refusal("compare", words, words, *more, code=2)
    (tmp_path / "rows.jsonl").write_text('{"tokens": ["a"]}\n')
    error = refusal("compare", ends, ends, "--data", tmp_path / "rows.jsonl")
    example = json.loads(error[error.index("{") : error.rindex("}") + 1])
    assert example["answers"] == {"text": ["She"], "answer_start": [0]}


@pytest.mark.parametrize("kind, name", [
    ("deberta-v2", "DebertaV2"), ("xlnet", "XLNet"), ("funnel", "Funnel"),
    ("longformer", "Longformer"),
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
        assert "has no slopes" in "".join(found["notes"])
        assert "<td>–</td>" in out.read_text("utf-8")
