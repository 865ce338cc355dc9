"""Tables of texts and labels, and scores by what classes of transformers answer, by hand."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.errors import LabelError
from hgviz.models import open_model
from hgviz.models.data import (
    LINE_LIMIT,
    read_corpus,
    read_rows,
)
from tests.models import zoo

REVIEWS = [("it 's good", "1"), ('it is "not" good', "0"), ("so, so", "0"), ("fine", "1")]


def tabs(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.fixture
def write_file(tmp_path):
    def write_file(name, data):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write_file


@pytest.fixture
def labelled(write_file):
    return lambda *labels: read_rows(
        write_file("a.tsv", tabs([("sentence", "label"), *(("a", label) for label in labels)]))
    )


TABLES = [  # name, content, columns, rows
    ("dev.tsv", "sentence\tlabel\n" + tabs(REVIEWS), (), REVIEWS),
    ("a.tsv", tabs(row[::-1] for row in REVIEWS), (), REVIEWS),
    ("a.csv", 'text,label\n"a, b",yes\n"two\nlines",no\n"a ""b""",yes\n', (),
     [("a, b", "yes"), ("two\nlines", "no"), ('a "b"', "yes")]),
    ("a.jsonl", '{"label": 1, "text": "a", "id": 7}\n{"text": "b", "label": 0}\n', (),
     [("a", "1"), ("b", "0")]),
    ("a.tsv", "\ufefftext\tlabel\r\n\r\na\t1\r\n", (), [("a", "1")]),
    ("a.tsv", "id\ta\tb\n1\tpos\tone\n", ("b", "a"), [("one", "pos")]),
]  # fmt: skip


def test_rows_are_read_whatever_their_columns_are_called(write_file):
    for name, data, columns, rows in TABLES:
        found = read_rows(write_file(name, data), *columns)
        assert [*zip(found.texts, found.labels, strict=True)] == rows


@given(st.lists(st.tuples(st.text("abc 'é,\"", min_size=1), st.sampled_from("xy")), min_size=1))
def test_what_was_written_is_read(tmp_path_factory, rows):
    rows = [(text.strip() or "a", label) for text, label in rows]
    path = tmp_path_factory.mktemp("rows") / "a.tsv"
    path.write_text("text\tlabel\n" + tabs(rows), "utf-8")
    found = read_rows(path)
    assert [*zip(found.texts, found.labels, strict=True)] == rows


NO_TABLES = [  # name, content, columns, what is said
    ("a.tsv", b"", (), "is empty"),
    ("a.tsv", b"sentence\tlabel\na\t1\nb\n", (), "line 3, column label is missing"),
    ("a.tsv", b"a\t1\nb\0\t1\n", (), "line 2 contains a NUL byte"),
    ("a.tsv", b"a\t1\n\xe9\t0\n", (), "line 2 is not UTF-8: its byte 0"),
    ("a.tsv", b"a\tb\tc\n1\t2\t3\n", (), "text and label columns"),
    ("a.tsv", b"one film\tgood\nanother\tbad\n", ("0", "mood"), "has no column 'mood'"),
    ("a.tsv", b"x" * (LINE_LIMIT + 1), (), "line 1 is too long"),
    ("a.csv", b'text,label\n"never closed,1\n', (), "line 2 cannot be read as CSV"),
    ("a.jsonl", b'{"text": "a", "label": 1}\n{"text"', (), "line 2 is not a JSON object"),
]


def test_what_cannot_be_read_is_one_clear_line(write_file):
    for name, data, columns, message in NO_TABLES:
        with pytest.raises(HgvizError) as caught:
            read_rows(write_file(name, data), *columns)
        assert message in str(caught.value) and "\n" not in str(caught.value)


POLES = ("negative", "positive")


LABELS = [  # labels of rows, classes of a model, their names, what rows are scored as
    (("1", "0", "0"), ("1", "0"), None, [0, 1, 1]),
    # whole numbers below the number of classes are their indices, unless they are named
    (("1", "0", "negative"), POLES, None, [1, 0, 0]),
    (("1", "0", "negative"), POLES, {"1": "negative", "0": "positive"}, [0, 1, 0]),
]


def test_labels_name_the_classes_of_a_model(labelled):
    for labels, classes, names, indices in LABELS:
        assert labelled(*labels).class_indices(classes, names) == indices
    with pytest.raises(LabelError):
        labelled("1", "0", "negative").class_indices(("1", "2", "negative"))


def test_unknown_labels_are_named_with_the_likeliest_classes(labelled):
    for labels, known, named in (
        ("12", POLES, "1=negative,2=positive"), (("Yes", "No"), ("no", "yes"), "No=no,Yes=yes"),
        (("good", "bad"), POLES, "bad=CLASS,good=CLASS"),
    ):  # fmt: skip
        message = f"line 2, column label: the label '{labels[0]}' is unknown.*--labels {named}"
        with pytest.raises(LabelError, match=message) as error:
            labelled(*labels).class_indices(known)
        assert error.value.labels == tuple(sorted(labels)) and error.value.classes == known


# --- corpora --------------------------------------------------------------------------------------

PAIR = '{"text": "A", "text_pair": "B", "target": "C"}\n'


TWO = {"two_texts": True}
COLUMNS = {**TWO, "text_column": "q", "target_column": "r"}
CORPORA = [  # name, content, options, (line, text, label, pair, target) of each text
    ("a.txt", "One.\n\n  Two. \n", {}, [(1, "One."), (3, "Two.")]),
    ("a.tsv", "label\ttext\npos\tOne.\n", {}, [(2, "One.", "pos")]),
    ("a.csv", 'text,class\n"One, two.",a\n', {}, [(2, "One, two.", "a")]),
    ("a.jsonl", '{"text": "One.", "label": 1}\n{"text": "Two."}\n', {},
     [(1, "One.", "1"), (2, "Two.")]),
    ("a.jsonl", PAIR, {}, [(1, "A", "C")]),
    ("a.jsonl", PAIR, {**TWO, "pairs": True}, [(1, "A", "", "B", "C")]),
    ("a.tsv", "Ein Satz\tA sentence\n", TWO, [(1, "Ein Satz", "", None, "A sentence")]),
    ("a.csv", "image,caption,text\n1.png,cat,x\n", {**TWO, "files": True},
     [(2, "1.png", "", None, "cat")]),
    ("a.tsv", "id\tq\tr\n1\tA\tB\n", COLUMNS, [(2, "A", "", None, "B")]),
]  # fmt: skip
NO_CORPORA = [  # name, content, options, what is said
    ("a.txt", " \n\n", {}, "a.txt is empty"),
    ("a.doc", "One.", {}, "supported are .txt"), ("a.txt", "a\0b", {}, "contains a NUL byte"),
    ("a.tsv", "text\tlabel\nx\ty\n\tz\n", {}, "line 3, column text is missing or empty"),
    ("a.jsonl", '{"text": [5, 6], "label": 1}\n', {}, "column text is a list, not a text"),
    ("a.txt", b"\xff\xfe\x00\x80", {}, "line 1"), ("a.txt", "One\n", TWO, "has no targets"),
    ("a.tsv", "text\ttarget\nSource\t\n", TWO, "line 2, column target is missing"),
    ("a.csv", "image\n1.png\n", {**TWO, "files": True}, "image or audio, and text"),
]  # fmt: skip


def test_texts_are_read_with_labels_pairs_and_targets(write_file):
    for name, content, options, texts in CORPORA:
        found = read_corpus(write_file(name, content), **options).texts
        rows = [(text.line, text.text, text.label, text.pair, text.target) for text in found]
        assert rows == [row + ("", None, None)[len(row) - 2 :] for row in texts]
    for name, content, options, message in NO_CORPORA:
        with pytest.raises(HgvizError) as error:
            read_corpus(write_file(name, content), **options)
        assert message in " ".join(error.value.lines) and "\n" not in str(error.value)


# --- scores by what each class of transformers answers --------------------------------------------

SENTENCE = "the sand ran down who where it she did go house red small of in . ?"
WORDS = [*SENTENCE.split(), "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
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
            path = zoo.write(tmp_path_factory.mktemp("model") / kind, kind, name)
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


TAGS = ("roberta", "RobertaForTokenClassification")
QUESTIONS = ("electra", "ElectraForQuestionAnswering")


@pytest.mark.parametrize("model, row, words", [
    (TAGS, {"tokens": ["a"], "ner_tags": []}, "line 1.* not a list of words"),
    (TAGS, {"tokens": ["the"], "ner_tags": ["B-PER"]}, "line 1: the tag 'B-PER' is unknown"),
    (QUESTIONS, {"question": "who", "context": "she did",
                 "answers": {"text": ["he"], "answer_start": [0]}}, "line 1 is not a question"),
    (QUESTIONS, {"text": "she did"}, "line 1 is not a question"),
    (QUESTIONS, None, "it needs a .jsonl"),
])  # fmt: skip
def test_rows_without_answers_are_one_clear_line(folder, tmp_path, model, row, words):
    data = tmp_path / ("a.txt" if row is None else "a.jsonl")
    data.write_text("she did\n" if row is None else json.dumps(row))
    with pytest.raises(HgvizError, match=words) as error:
        tasks.evaluate(open_model(folder(*model)), data)
    assert "\n" not in str(error.value)
