"""Labelled rows: which columns are meant, and one clear line for every file that cannot be read."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgviz.core import HgvizError
from hgviz.errors import LabelError
from hgviz.models.labelled import MOST_LINE, read_rows, read_texts

PAIRS = [("it 's good", "1"), ('it is "not" good', "0"), ("so, so", "0"), ("fine", "1")]


def write(folder, name, data):
    path = folder / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def pairs(rows):
    return list(zip(rows.texts, rows.labels, strict=True))


def tabs(rows):
    return "".join(f"{text}\t{label}\n" for text, label in rows)


def test_a_glue_file_is_read_as_it_is(tmp_path):
    rows = read_rows(write(tmp_path, "dev.tsv", "sentence\tlabel\n" + tabs(PAIRS)))
    assert pairs(rows) == PAIRS
    assert rows.lines == (2, 3, 4, 5)
    assert (rows.text_column, rows.label_column) == ("sentence", "label")
    assert rows.classes == ("0", "1")


def test_two_columns_need_no_header_and_may_stand_in_either_order(tmp_path):
    assert pairs(read_rows(write(tmp_path, "a.tsv", tabs(PAIRS)))) == PAIRS
    turned = [(label, text) for text, label in PAIRS]
    assert pairs(read_rows(write(tmp_path, "b.tsv", tabs(turned)))) == PAIRS


def test_a_header_with_names_nobody_knows_is_found(tmp_path):
    rows = read_rows(write(tmp_path, "a.tsv", "was\twie\n" + tabs(PAIRS)))
    assert pairs(rows) == PAIRS


def test_a_csv_may_quote_and_break_lines(tmp_path):
    text = 'text,label\n"a, b",yes\n"two\nlines",no\n"a ""b""",yes\n'
    rows = read_rows(write(tmp_path, "a.csv", text))
    assert pairs(rows) == [("a, b", "yes"), ("two\nlines", "no"), ('a "b"', "yes")]


def test_json_lines_name_their_columns(tmp_path):
    text = '{"label": 1, "text": "a", "id": 7}\n{"text": "b", "label": 0}\n'
    assert pairs(read_rows(write(tmp_path, "a.jsonl", text))) == [("a", "1"), ("b", "0")]


def test_columns_can_be_named_or_counted(tmp_path):
    path = write(tmp_path, "a.tsv", "1\tx\tpos\tone\n2\ty\tneg\ttwo\n3\tz\tpos\tthree\n")
    assert pairs(read_rows(path, "3", "2"))[1] == ("two", "neg")
    path = write(tmp_path, "b.tsv", "id\ta\tb\n1\tpos\tone\n2\tneg\ttwo\n")
    assert pairs(read_rows(path, "b", "a")) == [("one", "pos"), ("two", "neg")]
    assert pairs(read_rows(path, "b", "id"))[0] == ("one", "1")


@pytest.mark.parametrize(("first", "kept"), [
    ("0\tone film\n", True), ("1\tone film\n", True), ("7\tone film\n", True),  # a row by itself
    ("stars\tphrase\n", False),  # a word where all others have numbers
    ("label\tsentence\n", False), ("y\ttext\n", False), ("0\t1\n", False),
])  # fmt: skip
def test_columns_by_number_mean_no_header_unless_the_first_row_is_none(tmp_path, first, kept):
    path = write(tmp_path, "a.tsv", first + "1\tgood film\n2\tbad film\n1\tfine film\n" * 3)
    rows = read_rows(path, "1", "0")
    assert (len(rows), rows.texts[0]) == ((10, "one film") if kept else (9, "good film"))
    assert len(read_texts(path, "1")) == len(rows)


def test_words_as_labels_may_stand_once(tmp_path):
    path = write(tmp_path, "a.tsv", "spam\tone\n" + "ham\ttwo\nham\tthree\n" * 3)
    assert len(read_rows(path, "1", "0")) == 7 and len(read_texts(path, "1")) == 7
    path = write(tmp_path, "b.tsv", "label\tid\tsentence\n" + "ham\t1\ttwo\n" * 3)
    assert len(read_rows(path, "2", "0")) == 3 == len(read_rows(path, "2"))


def test_of_two_columns_without_names_one_may_be_counted(tmp_path):
    path = write(tmp_path, "a.tsv", "one film\tgood\nanother\tbad\na third\tgood\n")
    assert pairs(read_rows(path, "", "1"))[0] == ("one film", "good")
    assert pairs(read_rows(path, "0", ""))[0] == ("one film", "good")
    assert pairs(read_rows(path, "1", ""))[0] == ("good", "one film")
    with pytest.raises(HgvizError, match="has no column '2'"):
        read_rows(path, "", "2")
    with pytest.raises(HgvizError, match="has no column 'mood'"):
        read_rows(path, "0", "mood")
    three = write(tmp_path, "b.tsv", "1\tx\tpos\n2\ty\tneg\n")
    with pytest.raises(HgvizError, match="does not say which"):
        read_rows(three, "", "2")


def test_classes_are_in_order_of_value_or_of_the_alphabet(tmp_path):
    numbers = read_rows(write(tmp_path, "a.tsv", tabs([("a", "10"), ("b", "9"), ("c", "9")])))
    assert numbers.classes == ("9", "10")
    words = read_rows(write(tmp_path, "b.tsv", tabs([("a", "x"), ("bb", "B"), ("c", "x")])))
    assert words.classes == ("B", "x")


def test_numbers_stand_for_classes_without_names(tmp_path):
    rows = read_rows(write(tmp_path, "a.tsv", tabs(PAIRS)))
    assert rows.numbers(("LABEL_0", "LABEL_1")) == [1, 0, 0, 1]
    assert rows.numbers(("1", "0")) == [0, 1, 1, 0]


@given(st.lists(st.tuples(st.text("abc 'é,\"", min_size=1), st.sampled_from("xy")), min_size=1))
def test_what_was_written_is_read(tmp_path_factory, found):
    kept = [(text.strip() or "a", label) for text, label in found]
    path = tmp_path_factory.mktemp("rows") / "a.tsv"
    path.write_text("text\tlabel\n" + tabs(kept), "utf-8")
    assert pairs(read_rows(path)) == kept


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.tsv", b"", "is empty"),
        ("a.tsv", b"\n \n", "is empty"),
        ("a.tsv", b"sentence\tlabel\n", "a header and no rows"),
        ("a.tsv", b"one text\n", "line 1 has one column"),
        ("a.tsv", b"sentence\tlabel\na\t1\nb\n", "line 3, column label is missing"),
        ("a.tsv", b"sentence\tlabel\na\t1\nb\t \n", "line 3, column label is missing"),
        ("a.tsv", b"sentence\tlabel\n\t1\n", "line 2, column sentence is missing"),
        ("a.tsv", b"a\t1\nb\0\t1\n", "line 2 holds a NUL byte"),
        ("a.tsv", b"a\t1\n\xe9\t0\n", "line 2 is not UTF-8: byte 0 of it"),
        ("a.tsv", b"a\tb\tc\n1\t2\t3\n", "does not say which columns"),
        ("a.tsv", b"sentence\t\nfine\tpos\nbad\tneg\n", "does not say which columns"),
        ("a.tsv", b"x" * (MOST_LINE + 1), "line 1 is too long"),
        ("a.csv", b'text,label\n"never closed,1\n', "line 2 cannot be read as CSV"),
        ("a.jsonl", b'{"text": "a", "label": 1}\n{"text"', "line 2 is no JSON object"),
        ("a.jsonl", b'{"text": "a", "label": 1}\n{"text": "b"}\n', "line 2, column label is miss"),
        ("a.jsonl", b'{"text": "a", "label": null}\n', "line 1, column label is missing"),
        ("a.jsonl", b"[1, 2]\n", "line 1 is no JSON object"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(tmp_path, name, data, message):
    with pytest.raises(HgvizError) as caught:
        read_rows(write(tmp_path, name, data))
    assert message.lower() in str(caught.value).lower()
    assert "\n" not in str(caught.value)


def test_a_line_of_100_mb_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.tsv"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(HgvizError, match="line 1 is too long"):
        read_rows(path)


def test_no_such_file_and_no_such_column_are_said(tmp_path):
    with pytest.raises(HgvizError, match="could not be read"):
        read_rows(tmp_path / "none.tsv")
    with pytest.raises(HgvizError, match="has no column 'mood': it has 'sentence', 'label'"):
        read_rows(write(tmp_path, "a.tsv", "sentence\tlabel\na\t1\n"), "", "mood")


def test_a_label_the_model_never_learnt_is_named_with_its_place(tmp_path):
    rows = read_rows(write(tmp_path, "a.tsv", "sentence\tlabel\na\t1\nb\tmaybe\n"))
    with pytest.raises(HgvizError, match="line 3, column label: the label 'maybe' is unknown"):
        rows.numbers(("0", "1"))


def test_whole_numbers_below_the_number_of_classes_are_their_ids(tmp_path):
    rows = read_rows(write(tmp_path, "a.tsv", "sentence\tlabel\na\t1\nb\t0\nc\tnegative\n"))
    assert rows.numbers(("negative", "positive")) == [1, 0, 0]
    assert rows.class_ids(("negative", "positive")) == {"0": 0, "1": 1}
    assert rows.numbers(("negative", "positive"), {"1": "negative", "0": "positive"}) == [0, 1, 0]
    for known in (("1", "2", "negative"), ("negative",)):  # names that are numbers, and too few
        with pytest.raises(LabelError):
            rows.numbers(known)


@pytest.mark.parametrize("labels, known, named", [
    ("12", ("negative", "positive"), "1=negative,2=positive"),
    (("pos", "neg"), ("negative", "positive"), "neg=negative,pos=positive"),
    (("Yes", "No"), ("no", "yes"), "No=no,Yes=yes"),
    (("good", "bad"), ("negative", "positive"), "bad=CLASS,good=CLASS"),
    ("023", ("negative", "positive"), "0=CLASS,2=CLASS,3=CLASS"),
])  # fmt: skip
def test_unknown_labels_are_assigned_the_right_way_round(tmp_path, labels, known, named):
    lines = "".join(f"a\t{one}\n" for one in labels)
    rows = read_rows(write(tmp_path, "a.tsv", f"sentence\tlabel\n{lines}"))
    with pytest.raises(LabelError, match=f"--labels {named}") as error:
        rows.numbers(known)
    assert error.value.labels == tuple(sorted(labels)) and error.value.classes == known


def test_one_class_is_too_few_to_learn(tmp_path):
    rows = read_rows(write(tmp_path, "a.tsv", "sentence\tlabel\na\t1\nb\t1\n"))
    with pytest.raises(HgvizError, match="has only one class, '1'"):
        rows.require_classes()


def test_rows_are_read_without_torch(tmp_path):
    path = write(tmp_path, "a.tsv", tabs(PAIRS))
    code = (
        "import sys; from hgviz.models.labelled import read_rows; "
        f"read_rows({str(path)!r}); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
