"""Tables of texts and labels: which columns are meant, and one clear line for unreadable files."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.core import HgvizError
from hgviz.errors import LabelError
from hgviz.models.data import LINE_LIMIT, read_corpus, read_rows, read_texts, require_columns

REVIEWS = [("it 's good", "1"), ('it is "not" good', "0"), ("so, so", "0"), ("fine", "1")]


def tabs(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.fixture
def write(tmp_path):
    def write(name, data):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


@pytest.fixture
def labelled(write):
    return lambda *labels: read_rows(
        write("a.tsv", tabs([("sentence", "label"), *(("a", label) for label in labels)]))
    )


FILMS = "1\tgood film\n2\tbad film\n1\tfine film\n" * 3
THREE = "1\tx\tpos\tone\n2\ty\tneg\ttwo\n3\tz\tpos\tthree\n"


@pytest.mark.parametrize(
    ("name", "data", "columns", "rows"),
    [
        ("dev.tsv", "sentence\tlabel\n" + tabs(REVIEWS), (), REVIEWS),
        ("a.tsv", tabs(REVIEWS), (), REVIEWS),
        ("a.tsv", tabs(row[::-1] for row in REVIEWS), (), REVIEWS),
        ("a.tsv", "was\twie\n" + tabs(REVIEWS), (), REVIEWS),  # a header that nobody knows
        ("a.csv", 'text,label\n"a, b",yes\n"two\nlines",no\n"a ""b""",yes\n', (),
         [("a, b", "yes"), ("two\nlines", "no"), ('a "b"', "yes")]),
        ("a.jsonl", '{"label": 1, "text": "a", "id": 7}\n{"text": "b", "label": 0}\n', (),
         [("a", "1"), ("b", "0")]),
        ("a.txt", '{"label": 1, "text": "a"}\n', (), [("a", "1")]),  # by its first line
        ("a.tsv", "\ufefftext\tlabel\r\n\r\na\t1\r\n", (), [("a", "1")]),
        ("a.tsv", THREE, ("3", "2"), [("one", "pos"), ("two", "neg"), ("three", "pos")]),
        ("a.tsv", "id\ta\tb\n1\tpos\tone\n2\tneg\ttwo\n", ("b", "a"),
         [("one", "pos"), ("two", "neg")]),
        ("a.tsv", "id\ta\tb\n1\tpos\tone\n", ("b", "id"), [("one", "1")]),
        ("a.tsv", "text\ttext\tlabel\na\tb\t1\n", (), [("a", "1")]),  # the first of two
        ("a.tsv", "one film\tgood\na third\tbad\n", ("", "1"),
         [("one film", "good"), ("a third", "bad")]),
        ("a.tsv", "one film\tgood\na third\tbad\n", ("0", ""),
         [("one film", "good"), ("a third", "bad")]),
        ("a.tsv", "one film\tgood\na third\tbad\n", ("1", ""),
         [("good", "one film"), ("bad", "a third")]),
    ],
)  # fmt: skip
def test_rows_are_read_whatever_their_columns_are_called(write, name, data, columns, rows):
    found = read_rows(write(name, data), *columns)
    assert [*zip(found.texts, found.labels, strict=True)] == rows


def test_lines_and_columns_are_those_of_the_file(write):
    rows = read_rows(write("a.tsv", "sentence\tmood\n" + "\n" + tabs(REVIEWS)))
    assert (rows.lines, rows.label_column) == ((3, 4, 5, 6), "mood")


@pytest.mark.parametrize(("first", "is_row"), [
    ("0\tone film\n", True), ("1\tone film\n", True), ("7\tone film\n", True),
    ("stars\tphrase\n", False),  # a word where all others have numbers
    ("label\tsentence\n", False), ("y\ttext\n", False), ("0\t1\n", False),
])  # fmt: skip
def test_columns_by_number_mean_no_header_unless_the_first_row_is_none(write, first, is_row):
    path = write("a.tsv", first + FILMS)
    rows = read_rows(path, "1", "0")
    assert (len(rows), rows.texts[0]) == ((10, "one film") if is_row else (9, "good film"))
    assert len(read_texts(path, "1")) == len(rows)


def test_words_as_labels_may_occur_once(write):
    path = write("a.tsv", "spam\tone\n" + "ham\ttwo\nham\tthree\n" * 3)
    assert len(read_rows(path, "1", "0")) == 7 and len(read_texts(path, "1")) == 7
    path = write("b.tsv", "label\tid\tsentence\n" + "ham\t1\ttwo\n" * 3)
    assert len(read_rows(path, "2", "0")) == 3 == len(read_rows(path, "2"))


@given(st.lists(st.tuples(st.text("abc 'é,\"", min_size=1), st.sampled_from("xy")), min_size=1))
def test_what_was_written_is_read(tmp_path_factory, rows):
    rows = [(text.strip() or "a", label) for text, label in rows]
    path = tmp_path_factory.mktemp("rows") / "a.tsv"
    path.write_text("text\tlabel\n" + tabs(rows), "utf-8")
    found = read_rows(path)
    assert [*zip(found.texts, found.labels, strict=True)] == rows


@pytest.mark.parametrize(
    ("name", "data", "columns", "message"),
    [
        ("a.tsv", b"", (), "is empty"),
        ("a.tsv", b"\n \n", (), "is empty"),
        ("a.tsv", b"sentence\tlabel\n", (), "a header and no rows"),
        ("a.tsv", b"one text\n", (), "line 1 has one column"),
        ("a.tsv", b"sentence\tlabel\na\t1\nb\n", (), "line 3, column label is missing"),
        ("a.tsv", b"sentence\tlabel\na\t1\nb\t \n", (), "line 3, column label is missing"),
        ("a.tsv", b"sentence\tlabel\n\t1\n", (), "line 2, column sentence is missing"),
        ("a.tsv", b"a\t1\nb\t\n", ("0", "1"), "line 2, column 1 is missing"),
        ("a.tsv", b"a\t1\nb\0\t1\n", (), "line 2 holds a NUL byte"),
        ("a.tsv", b"a\t1\n\xe9\t0\n", (), "line 2 is not UTF-8: byte 0 of it"),
        ("a.tsv", b"a\tb\tc\n1\t2\t3\n", (), "does not say which columns"),
        ("a.tsv", b"a\tb\tc\n1\t2\t3\n", ("", "2"), "does not say which columns"),
        ("a.tsv", b"sentence\t\nfine\tpos\nbad\tneg\n", (), "does not say which columns"),
        ("a.tsv", b"one film\tgood\nanother\tbad\n", ("", "2"), "has no column '2'"),
        ("a.tsv", b"one film\tgood\nanother\tbad\n", ("0", "mood"), "has no column 'mood'"),
        ("a.tsv", b"sentence\tlabel\na\t1\n", ("", "mood"),
         "has no column 'mood': it has 'sentence', 'label'"),
        ("a.tsv", b"x" * (LINE_LIMIT + 1), (), "line 1 is too long"),
        ("a.csv", b'text,label\n"never closed,1\n', (), "line 2 cannot be read as CSV"),
        ("a.jsonl", b'{"text": "a", "label": 1}\n{"text"', (), "line 2 is no JSON object"),
        ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": "b"}\n', (),
         "line 2, column label is missing"),
        ("a.jsonl", b'{"text": "a", "label": null}\n', (), "line 1, column label is missing"),
        # keys that are missing come before values that are no texts
        ("a.jsonl", b'{"text": 1, "label": 1}\n{"text": "b"}\n', (),
         "line 2, column label is missing"),
        ("a.jsonl", b"[1, 2]\n", (), "line 1 is no JSON object"),
        ("none.tsv", None, (), "could not be read"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_clear_line(write, tmp_path, name, data, columns, message):
    with pytest.raises(HgvizError) as caught:
        read_rows(tmp_path / name if data is None else write(name, data), *columns)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_line_of_100_mb_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.tsv"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(HgvizError, match="line 1 is too long"):
        read_rows(path)


def test_columns_are_required_by_the_first_row_alone(write):
    path = write("a.csv", b"id,text\n" + b'1,"never closed\n')
    require_columns(path, "text", "0", "")
    with pytest.raises(HgvizError, match="has no column 'mood': it has 'id', 'text'"):
        require_columns(path, "mood")


@pytest.mark.parametrize(
    ("labels", "classes", "names", "indices"),
    [
        (("1", "0", "0", "1"), ("LABEL_0", "LABEL_1"), None, [1, 0, 0, 1]),
        (("1", "0", "0", "1"), ("1", "0"), None, [0, 1, 1, 0]),
        # whole numbers below the number of classes are their indices, unless they are named
        (("1", "0", "negative"), ("negative", "positive"), None, [1, 0, 0]),
        (("1", "0", "negative"), ("negative", "positive"), {"1": "negative", "0": "positive"},
         [0, 1, 0]),
        (("1", "0", "negative"), ("1", "2", "negative"), None, None),
        (("1", "0", "negative"), ("negative",), None, None),
    ],
)  # fmt: skip
def test_labels_name_the_classes_of_a_model(labelled, labels, classes, names, indices):
    rows = labelled(*labels)
    if indices is None:
        with pytest.raises(LabelError):
            rows.class_indices(classes, names)
    else:
        assert rows.class_indices(classes, names) == indices


def test_numeric_labels_are_those_that_no_name_explains(labelled):
    assert labelled("1", "0", "no").numeric_labels(("no", "yes")) == {"0": 0, "1": 1}


@pytest.mark.parametrize(("labels", "classes"), [
    (("10", "9", "9"), ("9", "10")), (("x", "B", "x"), ("B", "x")),
])  # fmt: skip
def test_classes_are_in_order_of_value_or_of_the_alphabet(labelled, labels, classes):
    assert labelled(*labels).classes == classes


@pytest.mark.parametrize("labels, known, named", [
    ("12", ("negative", "positive"), "1=negative,2=positive"),
    (("pos", "neg"), ("negative", "positive"), "neg=negative,pos=positive"),
    (("Yes", "No"), ("no", "yes"), "No=no,Yes=yes"),
    (("good", "bad"), ("negative", "positive"), "bad=CLASS,good=CLASS"),
    ("023", ("negative", "positive"), "0=CLASS,2=CLASS,3=CLASS"),
])  # fmt: skip
def test_unknown_labels_are_named_with_the_likeliest_classes(labelled, labels, known, named):
    message = f"line 2, column label: the label '{labels[0]}' is unknown.*--labels {named}"
    with pytest.raises(LabelError, match=message) as error:
        labelled(*labels).class_indices(known)
    assert error.value.labels == tuple(sorted(labels)) and error.value.classes == known


def test_one_class_is_too_few_to_learn(labelled):
    with pytest.raises(HgvizError, match="has only one class: all rows have '1'"):
        labelled("1", "1").require_classes()


# --- corpora --------------------------------------------------------------------------------------

PAIR = '{"text": "A", "text_pair": "B", "target": "C"}\n'


@pytest.mark.parametrize(
    ("name", "content", "options", "texts"),
    [
        ("a.txt", "One.\n\n  Two. \n", {}, [(1, "One."), (3, "Two.")]),
        ("a.tsv", "label\ttext\npos\tOne.\nneg\tTwo.\n", {},
         [(2, "One.", "pos"), (3, "Two.", "neg")]),
        ("a.tsv", "A.\t1\nB.\t0\nC.\t1\n", {}, [(1, "A.", "1"), (2, "B.", "0"), (3, "C.", "1")]),
        ("a.tsv", "One.\nTwo.\n", {}, [(1, "One."), (2, "Two.")]),
        ("a.tsv", "text\ttext\nOne.\tTwo.\n", {}, [(2, "Two.")]),  # the last of two
        ("a.csv", 'text,class\n"One, two.",a\n', {}, [(2, "One, two.", "a")]),
        ("a.jsonl", '{"text": "One.", "label": 1}\n{"text": "Two."}\n', {},
         [(1, "One.", "1"), (2, "Two.")]),
        ("a.jsonl", PAIR, {}, [(1, "A", "C")]),
        ("a.jsonl", PAIR, {"two_texts": True, "pairs": True}, [(1, "A", "", "B", "C")]),
        ("a.tsv", "Ein Satz\tA sentence\n", {"two_texts": True},
         [(1, "Ein Satz", "", None, "A sentence")]),
        ("a.csv", "image,caption,text\n1.png,cat,x\n", {"two_texts": True, "files": True},
         [(2, "1.png", "", None, "cat")]),
        ("a.tsv", "id\tq\tr\n1\tA\tB\n",
         {"two_texts": True, "text_column": "q", "target_column": "r"}, [(2, "A", "", None, "B")]),
    ],
)  # fmt: skip
def test_texts_are_read_with_labels_pairs_and_targets(write, name, content, options, texts):
    found = read_corpus(write(name, content), **options).texts
    rows = [(text.line, text.text, text.label, text.pair, text.target) for text in found]
    assert rows == [row + ("", None, None)[len(row) - 2 :] for row in texts]


TWO = {"two_texts": True}


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.txt", "", {}, "a.txt is empty"),
        ("a.txt", " \n\n", {}, "a.txt is empty"),
        ("a.tsv", "", {}, "a.tsv is empty"),
        ("a.tsv", "text\tlabel\n", {}, "a.tsv has a header and no rows"),
        ("a.doc", "One.", {}, "a corpus ends in .txt"),
        ("a.txt", "a\0b", {}, "line 1 holds a NUL byte"),
        ("a.tsv", "a\tb\tc\n", {}, "'a', 'b', 'c'"),
        ("a.tsv", "text\tlabel\nx\ty\n\tz\n", {}, "line 3, column text is missing or empty"),
        ("a.jsonl", '{"text": 5}\n', {}, "line 1, column text is missing"),
        ("a.jsonl", "nonsense\n", {}, "line 1 is no JSON object"),
        ("a.txt", b"\xff\xfe\x00\x80", {}, "line 1"),
        ("a.txt", "One\n", TWO, "has no targets"),
        ("a.tsv", "text\nOne\n", TWO, "Give a table with the columns text and target"),
        ("a.tsv", "text\ttarget\nSource\t\n", TWO, "line 2, column target is missing"),
        ("a.csv", "image\n1.png\n", {**TWO, "files": True}, "image or audio, and text"),
    ],
)  # fmt: skip
def test_what_is_no_corpus_is_one_clear_line(write, name, content, options, message):
    with pytest.raises(HgvizError) as error:
        read_corpus(write(name, content), **options)
    assert message in " ".join(error.value.lines) and "\n" not in str(error.value)


def test_rows_are_read_without_torch(write):
    path = write("a.tsv", tabs(REVIEWS))
    code = (
        "import sys; from hgviz.models.data import read_rows; "
        f"read_rows({str(path)!r}); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
