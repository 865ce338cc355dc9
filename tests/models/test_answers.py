"""Scores by what each class of transformers answers, beside the same worked out by hand."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from hgviz import tasks
from hgviz.analysis.importance import importance
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model
from hgviz.models.data import Question, TaggedTexts, question_prompts, tagged_prompts
from hgviz.store import open_study
from tests.models.zoo import write

TEXT = "the sand ran down who where it she did go house red small of in . ?"
WORDS = [*TEXT.split(), "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
OFF = frozenset({HeadId(0, 1), HeadId(1, 2)})


def tokenizer():
    """Words by spaces, between [CLS] and [SEP], pairs with token types."""
    ids = {word: at for at, word in enumerate(WORDS)}
    made = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    made.add_special_tokens(WORDS[-5:])
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(one, ids[one]) for one in ("[CLS]", "[SEP]")],
    )  # fmt: skip
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model with that tokenizer once."""
    kept = {}

    def made(kind, name):
        if name not in kept:
            path = write(tmp_path_factory.mktemp("model") / kind, kind, name)
            tokenizer().save(str(path / "tokenizer.json"))
            kept[name] = path
        return kept[name]

    return made


def texts(count, seed=0):
    random = np.random.default_rng(seed)
    return [[WORDS[at] for at in random.integers(0, 15, random.integers(5, 12))]
            for _ in range(count)]  # fmt: skip


def theirs(path, name, off=()):
    """The model in transformers, columns of its output projections zero for heads that are off."""
    import transformers

    model = getattr(transformers, name).from_pretrained(path).eval()
    ends = ("attention.output.dense.weight", "attention.out_lin.weight")
    with torch.no_grad():
        for layer, head in off:
            (weight,) = (
                one for key, one in model.named_parameters()
                if f"layer.{layer}." in key and key.endswith(ends)
            )  # fmt: skip
            weight[:, 8 * head : 8 * head + 8] = 0
    return model


def test_classes_of_tokens_are_scored_by_the_first_token_of_each_word(folder, tmp_path):
    path = folder("roberta", "RobertaForTokenClassification")
    rows = texts(30)
    tags = [[f"LABEL_{len(word) % 2}" for word in row] for row in rows]
    data = tmp_path / "a.jsonl"
    data.write_text("\n".join(
        json.dumps({"tokens": row, "ner_tags": each}) for row, each in zip(rows, tags, strict=True)
    ))  # fmt: skip
    model = open_model(path)
    for off in (frozenset(), OFF):
        found = tasks.evaluate(model, data, off=off)
        other, right, loss = theirs(path, "RobertaForTokenClassification", off), [], []
        for row, each in zip(rows, tags, strict=True):
            ids = torch.tensor([tokenizer().encode(" ".join(row)).ids])
            with torch.no_grad():
                logits = other(input_ids=ids).logits[0, 1:-1].double()
            wanted = torch.tensor([int(tag[-1]) for tag in each])
            right += (logits.argmax(-1) == wanted).tolist()
            loss += torch.nn.functional.cross_entropy(logits, wanted, reduction="none").tolist()
        assert found.score.metric == "tag_accuracy" and found.score.total == len(right)
        assert found.score.value == pytest.approx(np.mean(right))
        assert found.loss == pytest.approx(np.mean(loss), rel=1e-5)


def test_words_in_several_pieces_and_numbers_of_tags():
    def encode(text):
        from hgviz.core import Prompt, readonly

        spans = np.array([[-1, -1], [0, 2], [2, 5], [5, 9], [-1, -1]])  # the third has its space
        return Prompt(text, readonly(np.arange(5)), tuple("abcde"), readonly(spans))

    tagged = TaggedTexts("a.jsonl", (("sandy", "red"),), (("1", "B"),), (1,))
    _, marked = tagged_prompts(tagged, ("O", "X"), encode, {"B": "O"})
    assert marked == [[-100, 1, -100, 0, -100]]
    with pytest.raises(HgvizError, match="line 1: the tag 'B' is unknown"):
        tagged_prompts(tagged, ("O", "X"), encode)


def test_questions_are_scored_by_where_answers_begin_and_end(folder, tmp_path):
    path = folder("electra", "ElectraForQuestionAnswering")
    rows, wanted, data = texts(30), [], tmp_path / "a.jsonl"
    with data.open("w") as file:
        for row in rows:
            context = " ".join(row)
            start = len(" ".join(row[:2])) + 1
            answer = " ".join(row[2:4])
            answers = {"text": [answer], "answer_start": [start]}
            one = {"question": "who did it ?", "context": context, "answers": answers}
            file.write(json.dumps(one) + "\n")
            wanted.append((6 + 2, 6 + 3))  # after [CLS], four words, [SEP] and two words
    model = open_model(path)
    for off in (frozenset(), OFF):
        found = tasks.evaluate(model, data, off=off)
        other, right = theirs(path, "ElectraForQuestionAnswering", off), []
        for row, ends in zip(rows, wanted, strict=True):
            read = tokenizer().encode("who did it ?", " ".join(row))
            with torch.no_grad():
                out = other(
                    input_ids=torch.tensor([read.ids]), token_type_ids=torch.tensor([read.type_ids])
                )
            right += [int(out.start_logits.argmax()) == ends[0]]
            right += [int(out.end_logits.argmax()) == ends[1]]
        assert found.score.metric == "end_accuracy" and found.score.total == 60
        assert found.score.value == pytest.approx(np.mean(right))


def test_a_question_without_an_answer_wants_the_first_token():
    from hgviz.models.text import Pieces

    file = Pieces(Path("a"), 100, tokenizer().to_str().encode())
    prompts, ends = question_prompts(
        [Question("who ?", "she did it", -1, -1), Question("who ?", "she did it", 4, 7)],
        file.encode,
    )
    assert ends[0] == (0, 0) and prompts[1].label(ends[1][0]) == "did"


def test_a_question_stands_beside_its_text_without_token_types_too(folder):
    # where GPT-2 is given some, it adds the words of these numbers
    prompt = open_model(folder("gpt2", "GPT2ForQuestionAnswering")).tokenize("who ?", "she did it")
    assert prompt.token_type_ids is None and len(prompt) == 8
    with pytest.raises(HgvizError, match="does not read pairs of texts"):
        open_model(folder("gpt2", "GPT2LMHeadModel")).tokenize("who ?", "she did it")


def test_hidden_states_are_scored_by_how_far_they_move(folder, tmp_path):
    path = folder("distilbert", "DistilBertModel")
    rows, data = texts(40), tmp_path / "a.txt"
    data.write_text("\n".join(map(" ".join, rows)))
    model = open_model(path)
    assert tasks.evaluate(model, data).score.value == pytest.approx(0, abs=1e-6)
    found = tasks.evaluate(model, data, off=OFF).score
    states = []
    for off in ((), OFF):
        other = theirs(path, "DistilBertModel", off)
        with torch.no_grad():
            states.append(torch.stack([
                other(torch.tensor([tokenizer().encode(" ".join(row)).ids]))
                .last_hidden_state[0].double().mean(0) for row in rows
            ]))  # fmt: skip
    moved = 1 - torch.nn.functional.cosine_similarity(*states)
    assert found.metric == "cosine_distance" and found.total == 40
    assert found.value == pytest.approx(float(moved.mean()), rel=1e-4)
    assert found.low < found.value < found.high

    trials = tasks.trials_of(model, data)
    study = tasks.importance(trials, {"loss_change", "change"})
    one = importance(study, "loo")
    assert one.method.unit == "1 - cosine" and (one.score > 0).all()
    near = (
        torch.nn.functional.normalize(states[1], dim=1)
        @ torch.nn.functional.normalize(states[0], dim=1).mT
    )
    given = trials.without(next(iter(trials.blocks[0])), OFF)[1]
    batch = next(iter(trials.blocks[0]))
    expected = near.argmax(1)[torch.tensor(batch.rows)]
    assert (given == expected.numpy()).mean() > 0.95
    curved = tasks.curve(trials, study, "loo", random=20)
    assert curved.curves[0].values[0] == 1.0 and curved.curves[0].unit == "retrieval_accuracy"
    some = tasks.trials_of(model, data, limit=10)
    kept = tasks.study(some, {"loss_change", "change"}, tmp_path / "s.h5")
    assert np.array_equal(open_study(tmp_path / "s.h5").wanted, kept.wanted) and len(kept) == 10
    assert np.array_equal(kept.given, kept.wanted)  # each is nearest to itself
    with pytest.raises(HgvizError, match="Choose --method loo"):
        tasks.importance(trials, {"gradient"})


def test_texts_whose_padding_would_be_read_are_scored_by_themselves(folder, tmp_path):
    name = "XLNetForSequenceClassification"
    path, rows = folder("xlnet", name), texts(30)
    lines = ["text\tlabel", *(f"{' '.join(row)}\t{at % 2}" for at, row in enumerate(rows))]
    (tmp_path / "a.tsv").write_text("\n".join(lines))
    other, losses = theirs(path, name), []
    for at, row in enumerate(rows):
        with torch.no_grad():
            logits = other(torch.tensor([tokenizer().encode(" ".join(row)).ids])).logits
        losses.append(torch.nn.functional.cross_entropy(logits.double(), torch.tensor([at % 2])))
    found = tasks.evaluate(open_model(path), tmp_path / "a.tsv")
    assert found.loss == pytest.approx(float(np.mean(losses)), rel=1e-5)


def test_images_are_scored_by_a_table_of_their_files(tmp_path):
    import transformers

    name = "ViTForImageClassification"
    path = write(tmp_path / "vit", "vit", name, image_size=32, patch_size=8)
    processor = transformers.ViTImageProcessor(size={"height": 32, "width": 32})
    processor.save_pretrained(path)
    random, right = np.random.default_rng(0), []
    other = transformers.ViTForImageClassification.from_pretrained(path).eval()
    lines = ["image,label"]
    for at in range(12):
        image = Image.fromarray(random.integers(0, 255, (40, 40, 3)).astype(np.uint8))
        image.save(tmp_path / f"{at}.png")
        lines.append(f"{at}.png,{'cat' if at % 2 else 'dog'}")
        with torch.no_grad():
            logits = other(**processor(images=image, return_tensors="pt")).logits
        right.append(int(logits.argmax()) == at % 2)
    data = tmp_path / "a.csv"
    data.write_text("\n".join(lines))
    model, names = open_model(path), {"cat": "LABEL_1", "dog": "LABEL_0"}
    found = tasks.evaluate(model, data, labels=names)
    assert found.score.value == pytest.approx(np.mean(right)) and found.score.total == 12
    trials = tasks.trials_of(model, data, labels=names)
    study = tasks.importance(trials, {"gradient", "loss_change", "change"})
    assert (importance(study, "michel").score > 0).all()
    with pytest.raises(HgvizError, match="--labels cat=CLASS,dog=CLASS"):
        tasks.evaluate(model, data)
    with pytest.raises(HgvizError, match="the model has no label 'LABEL_7'"):
        tasks.evaluate(model, data, labels={"dog": "LABEL_7"})
    proof = tasks.prune(path, OFF, tmp_path / "out", form="zeroed")
    assert proof.difference < 1e-5 and proof.source == "random images"


TAGS = ("roberta", "RobertaForTokenClassification")
QUESTIONS = ("electra", "ElectraForQuestionAnswering")


@pytest.mark.parametrize("model, row, words", [
    (TAGS, {"tokens": ["a"], "ner_tags": []}, "line 1.* no words with a tag each"),
    (TAGS, {"tokens": "a", "ner_tags": "b"}, "line 1.* no words with a tag each"),
    (TAGS, {"text": "a"}, "line 1.* no words with a tag each"),
    (TAGS, {"tokens": ["the"], "ner_tags": ["B-PER"]}, "line 1: the tag 'B-PER' is unknown"),
    (QUESTIONS, {"question": "who", "context": "she did",
                 "answers": {"text": ["he"], "answer_start": [0]}}, "line 1 is no question"),
    (QUESTIONS, {"question": "who", "context": "she did", "answers": "she"},
     "line 1 is no question"),
    (QUESTIONS, {"question": 1, "context": "she did", "answers": {"text": [], "answer_start": []}},
     "line 1 is no question"),
    (QUESTIONS, {"text": "she did"}, "line 1 is no question"),
    (QUESTIONS, None, "it needs a .jsonl"),
])  # fmt: skip
def test_rows_without_answers_are_one_clear_line(folder, tmp_path, model, row, words):
    data = tmp_path / ("a.txt" if row is None else "a.jsonl")
    data.write_text("she did\n" if row is None else json.dumps(row))
    with pytest.raises(HgvizError, match=words) as error:
        tasks.evaluate(open_model(folder(*model)), data)
    assert "\n" not in str(error.value)
