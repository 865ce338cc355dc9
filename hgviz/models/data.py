"""Texts, labels and answers from TSV, CSV, JSONL and text files. Needs no torch.

A TSV has no quoting (a quotation mark is a letter, as in SST-2 and GLUE), a CSV has; a JSONL file
has one object a line. Columns are named by a header or by the keys of the objects, or counted from
0. Every reader raises HgvizError for a file that is empty, not UTF-8, has NUL bytes or a line of
more than LINE_LIMIT bytes, and for a row without what it reads, naming its line.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hgviz.core import HgvizError, Prompt
from hgviz.errors import LabelError, list_names, quote_name, require
from hgviz.examples import IGNORE_INDEX
from hgviz.files import first_line, path_errors, short_path

LINE_LIMIT = 2**20  # bytes
TABLES = (".tsv", ".csv", ".jsonl")
LabelNames = Mapping[str, str] | None  # what a model calls the labels of the data

# usual names of columns, the likeliest first
TEXTS = (
    "sentence", "text", "review", "content", "comment", "document", "source", "sentence1",
    "question", "image", "audio", "file", "path",
)  # fmt: skip
FILES = ("image", "audio", "file", "path")
LABELS = ("label", "labels", "class", "target", "category", "sentiment", "gold_label", "y")
PAIRS = ("text_pair", "pair", "sentence2", "question2", "hypothesis")
TARGETS = ("target", "target_text", "translation", "summary", "answer")
FILE_TEXTS = (*TARGETS, "caption", *TEXTS)  # of the text that belongs to an image or a sound
WORDS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "labels", "pos_tags", "chunk_tags")

TAGGED_ROW = '{"tokens": ["A", "word"], "ner_tags": ["O", "O"]}'
QUESTION_ROW = (
    '{"question": "Who?", "context": "She did.", "answers": {"text": ["She"], "answer_start": [0]}}'
)


# --- tables ---------------------------------------------------------------------------------------


class Table:
    """The rows of a file by their lines, at least one: lists of cells, or objects of a JSONL file.

    columns: the keys of the first row, or its cells, whether they are a header or not.
    """

    def __init__(self, name: str, rows: Iterable[tuple[int, Any]]) -> None:
        self.name, self.rows = name, list(rows)
        first = self.rows[0][1]
        self.is_json = isinstance(first, dict)
        self.columns = [*first] if self.is_json else [cell.strip() for cell in first]

    def value(self, row: Any, column: int) -> Any:
        """The value of a row in a column, None where it has none."""
        if self.is_json:
            return row.get(self.columns[column])
        return row[column] if column < len(row) else None

    def require_column(self, name: str, by_name: bool = True) -> str:
        """The column of a name, or else of a number from 0. Raises HgvizError where it lacks it."""
        if by_name and name in self.columns:
            return name
        if _is_index(name, self.columns):
            return self.columns[int(name)]
        raise HgvizError(
            f"{self.name} has no column {quote_name(name)}: it has {list_names(self.columns)}",
            "Choose one of them",
        )

    def below(self, has_header: bool, needed: str = "texts") -> list[tuple[int, Any]]:
        """The rows below the header, if there is one. Raises HgvizError where there are none."""
        rows = self.rows[1:] if has_header else self.rows
        require(rows, f"{self.name} has a header but no rows", f"Choose a file with {needed}")
        return rows


def is_table(path: str | Path) -> bool:
    """Whether a file is read as rows, by its ending."""
    return Path(path).suffix.lower() in TABLES


def read_table(path: Path) -> Table:
    """Read all rows of a file: by its ending, else its first line says what it is."""
    with path_errors(path):
        return Table(short_path(path), _read_rows(path))


def require_columns(path: str | Path, *columns: str) -> None:
    """Raise HgvizError where a table lacks a column of one of these names or numbers.

    "" is ignored. Only the first row is read.
    """
    table = Table(short_path(Path(path)), [next(_read_rows(Path(path)))])
    for name in filter(None, columns):
        table.require_column(name)


def _read_rows(path: Path) -> Iterator[tuple[int, Any]]:
    name, kind, lines = short_path(path), path.suffix.lower(), _text_lines(path)
    first = next(lines)
    if kind not in TABLES:
        is_json, has_tab = first[1].lstrip().startswith("{"), "\t" in first[1]
        kind = ".jsonl" if is_json else ".tsv" if has_tab else ".csv"
    lines = chain([first], lines)
    if kind == ".tsv":
        return ((line, text.split("\t")) for line, text in lines)
    return _csv_rows(lines, name) if kind == ".csv" else _json_rows(lines, name)


def _csv_rows(lines: Iterator[tuple[int, str]], name: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV, with the line on which each ends."""
    number = start = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for number, text in lines:  # noqa: B007
            yield text + "\n"

    try:
        for cells in csv.reader(texts(), strict=True):
            yield number, cells
            start = number
    except csv.Error as error:
        raise HgvizError(
            f"{name}, line {start + 1:,} cannot be read as CSV: "
            f"{error}; a quotation mark may not be closed",
            "Correct the line, or save the file as TSV",
        ) from None


def _json_rows(lines: Iterator[tuple[int, str]], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    for line, text in lines:
        try:
            yield line, decoder.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise HgvizError(
                f"{name}, line {line:,} is not a JSON object: {first_line(error)}",
                'Write one per line, such as {"text": "...", "label": "..."}',
            ) from None


def _text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file that hold more than white space, by number, at least one."""
    name, number, is_empty = short_path(path), 0, True
    with path_errors(path), path.open("rb") as file:
        while data := file.readline(LINE_LIMIT + 1):
            number += 1
            place = f"{name}, line {number:,}"
            if len(data) > LINE_LIMIT:
                what = f"{place} is too long: it has more than {LINE_LIMIT:,} bytes"
                raise HgvizError(what, "Write one text per line, or choose another file")
            if b"\0" in data:
                what = f"{place} contains a NUL byte: the file is binary, or UTF-16"
                raise HgvizError(what, "Save it as UTF-8")
            try:
                line = data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                byte = f"its byte {error.start:,} (0x{data[error.start]:02X})"
                what = f"{place} is not UTF-8: {byte} cannot be decoded"
                raise HgvizError(what, "Save the file as UTF-8") from None
            if line.strip():
                is_empty = False
                yield number, line
    require(not is_empty, f"{name} is empty: it has no rows", "Choose a file of texts")


def _text(value: Any, name: str, line: int, column: str) -> str:
    """A value without white space around it. Raises HgvizError where it is no text, or empty."""
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, list | dict):
        what = f"{name}, line {line:,}, column {column} is a {type(value).__name__}, not a text"
        raise HgvizError(what, "Name the column of texts with --text-column")
    what = f"{name}, line {line:,}, column {column} is missing or empty: every row needs one"
    raise HgvizError(what, "Fill it in, or delete the line")


def _label_text(value: Any) -> Any:
    """A label as text where it is a number in a JSONL file."""
    return str(value) if isinstance(value, int | float) else value


def _find_name(names: Iterable[str], known: Sequence[str]) -> str:
    """The name that is the first of those known, in upper or lower case; "" for none."""
    by_lower = {name.lower(): name for name in names}
    return next((by_lower[name] for name in known if name in by_lower), "")


def _is_index(column: str, columns: Sequence[str]) -> bool:
    return column.isdecimal() and int(column) < len(columns)


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdecimal()


# --- texts with labels ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """The texts of a file with one label each, and the lines that they stand on."""

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    label_column: str = ""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels that occur: by value if all are whole numbers, else in alphabetical order."""
        labels = sorted(set(self.labels))
        return tuple(sorted(labels, key=int) if all(map(_is_whole, labels)) else labels)

    def class_indices(self, classes: Sequence[str], names: LabelNames = None) -> list[int]:
        """The index of each label among the classes of a model, by label_indices or numeric_labels.

        Raises LabelError for the first label that names no class.
        """
        indices = label_indices(classes, names) | self.numeric_labels(classes, names)
        for line, label in zip(self.lines, self.labels, strict=True):
            if label not in indices:
                column = self.label_column or "label"
                what = f"{self.name}, line {line:,}, column {column}: the label {quote_name(label)}"
                unknown = [name for name in self.classes if name not in indices]
                raise _label_error(f"{what} is unknown", unknown, classes)
        return [indices[label] for label in self.labels]

    def numeric_labels(self, classes: Sequence[str], names: LabelNames = None) -> dict[str, int]:
        """Labels that are the index of a class, where no class is named by a number.

        Empty unless every label without a class of its name is such an index.
        """
        named, indices = label_indices(classes, names), _by_index(classes)
        numeric = {label for label in self.classes if label not in named}
        if not numeric <= indices.keys() or any(name.isdecimal() for name in classes):
            return {}
        return {label: indices[label] for label in self.classes if label in numeric}


def read_rows(path: str | Path, text_column: str = "", label_column: str = "") -> LabelledTexts:
    """Read the labelled texts of a table.

    Columns that are not named are those with usual names; of two columns without such names the
    label is the one with fewer different values. Raises HgvizError where neither tells them apart.
    """
    table = read_table(Path(path))
    text, label, has_header = _label_columns(table, text_column, label_column)
    is_named = table.is_json or has_header
    names = [table.columns[at] if is_named else str(at) for at in (text, label)]
    rows = table.below(has_header, "labelled rows")
    for line, row in rows if table.is_json else ():
        for name in names:
            if name not in row:  # reported before any value that is no text
                _text(None, table.name, line, name)
    texts, labels = [], []
    for line, row in rows:
        texts.append(_text(table.value(row, text), table.name, line, names[0]))
        value = _label_text(table.value(row, label))
        labels.append(_text(value, table.name, line, names[1]))
    lines = tuple(line for line, _ in rows)
    return LabelledTexts(table.name, tuple(texts), tuple(labels), lines, names[1])


def _label_columns(table: Table, text: str, label: str) -> tuple[int, int, bool]:
    """Where text and label stand, and whether the first row is a header."""
    columns, named = table.columns, [name for name in (text, label) if name]
    if table.is_json:
        return *_named_columns(table, text, label), False
    what = f"{table.name}, line {table.rows[0][0]:,} has one column"
    do = "Separate text and label with a tab in a .tsv, or a comma in a .csv"
    require(len(columns) > 1, what, do)
    numbers = [int(name) for name in named if _is_index(name, columns)]
    is_usual = bool(_find_name(columns, TEXTS) and _find_name(columns, LABELS))
    if numbers and len(numbers) == len(named):
        has_header = (is_usual and len(numbers) == 1) or _has_header(table, *numbers)
    else:
        has_header = is_usual or bool({text, label} & {*columns})
    if has_header:
        return *_named_columns(table, text, label), True
    if len(numbers) == 2:
        return numbers[0], numbers[1], False
    if not named and len(columns) == 2:
        return _guess_columns(table)
    for name in named:
        table.require_column(name, by_name=False)
    if not named or len(columns) != 2:
        raise _unclear_columns(table)
    column = int(named[0])
    return (column, 1 - column, False) if text else (1 - column, column, False)


def _named_columns(table: Table, text: str, label: str) -> tuple[int, int]:
    """Where the columns stand that are named, or have usual names, or are the other one of two."""
    columns = table.columns
    text, label = (name and table.require_column(name) for name in (text, label))
    text, label = text or _find_name(columns, TEXTS), label or _find_name(columns, LABELS)
    if len(columns) == 2 and bool(text) != bool(label):
        remaining = next((name for name in columns if name not in (text, label)), "")
        text, label = text or remaining, label or remaining
    if not (text and label) or text == label:
        raise _unclear_columns(table)
    return columns.index(text), columns.index(label)


def _unclear_columns(table: Table) -> HgvizError:
    return HgvizError(
        f"the text and label columns of {table.name} are unclear: "
        f"its columns are {list_names(table.columns)}",
        "Name them with --text-column and --label-column, or text_column and label_column in "
        "[data]",
    )


def _guess_columns(table: Table) -> tuple[int, int, bool]:
    """Which of two columns are text and label, and whether the first row is a header.

    The label is the column with fewer different values, else the one with fewer characters. A
    header has a word for it that no other row has, while those come again.
    """
    columns = zip(*(row for _, row in table.rows if len(row) == 2), strict=True)
    sizes = [(len({*column}), sum(map(len, column))) for column in columns]
    label = int(sizes[1] <= sizes[0])
    first, *others = (row[label] for _, row in table.rows if len(row) > label)
    is_name = not _is_whole(first.strip()) and first not in others
    return 1 - label, label, is_name and 0 < 2 * len({*others}) <= len(others)


def _has_header(table: Table, *named: int) -> bool:
    """Whether the first row of cells cannot be data.

    It counts its columns, or has a usual name in a column that is named by its number, and no
    other row has that; or it has a word in a column where all others have whole numbers.
    """
    is_counting = table.rows[0][1] == [*map(str, range(len(table.columns)))]
    for at in range(len(table.columns)):
        first, *others = (row[at].strip() for _, row in table.rows if at < len(row))
        is_name = at in named and (is_counting or first.lower() in (*TEXTS, *LABELS))
        is_word = not _is_whole(first) and all(map(_is_whole, others))
        if others and first not in others and (is_name or is_word):
            return True
    return False


def label_indices(classes: Sequence[str], names: LabelNames = None) -> dict[str, int]:
    """The index of a class by its name, its label in the data, and by n where it is LABEL_n.

    Raises HgvizError for a class in `names` that the model does not have.
    """
    indices = {name: index for index, name in enumerate(classes)}
    if all(name == f"LABEL_{index}" for index, name in enumerate(classes)):
        indices |= _by_index(classes)
    for label, name in (names or {}).items():
        what = f"the model has no label {quote_name(name)}: its labels are {list_names(classes)}"
        require(name in indices, what, f"Map {quote_name(label)} to one of these")
        indices[label] = indices[name]
    return indices


def _by_index(classes: Sequence[str]) -> dict[str, int]:
    return {str(index): index for index in range(len(classes))}


def _label_error(what: str, labels: Sequence[str], classes: Sequence[str]) -> LabelError:
    """The error for labels that name no class, with the likeliest class of each.

    That is the one class whose name begins alike; or, of as many whole numbers as there are
    classes, the class in the same place.
    """
    likely: dict[str, str] = {}
    for label in labels:
        pairs = ((name, name.lower(), label.lower()) for name in classes)
        near = [name for name, a, b in pairs if a.startswith(b) or b.startswith(a)]
        likely |= {label: near[0]} if len(near) == 1 else {}
    if len({*likely.values()}) < len(labels):
        in_order = len(labels) == len(classes) and all(map(_is_whole, labels))
        likely = dict(zip(labels, classes, strict=True)) if in_order else {}
    return LabelError(what, labels, classes, likely)


# --- words with tags, questions with answers ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaggedTexts:
    """Texts split into words with one tag each, and the lines that they stand on."""

    name: str
    words: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]


def read_tagged(path: str | Path, word_column: str = "", tag_column: str = "") -> TaggedTexts:
    """Read the rows of a JSONL file with a list of words and one of their tags, of one length."""
    table, words, tags = _read_objects(Path(path), TAGGED_ROW), [], []
    for line, row in table.rows:
        tokens: Any = row.get(word_column or _find_name(row, WORDS))
        marks: Any = row.get(tag_column or _find_name(row, TAGS))
        is_good = isinstance(tokens, list) and isinstance(marks, list)
        is_good = is_good and len(tokens) == len(marks) > 0
        if not is_good or not all(isinstance(token, str) and token.strip() for token in tokens):
            what = f"{table.name}, line {line:,} is not a list of words with one tag each"
            do = "Write two lists of equal length: tokens, and ner_tags or tags"
            raise HgvizError(f"{what}: it has {list_names(row)}", do)
        words.append(tuple(tokens))
        tags.append(tuple(map(str, marks)))
    return TaggedTexts(table.name, tuple(words), tuple(tags), tuple(line for line, _ in table.rows))


def tagged_prompts(
    tagged: TaggedTexts,
    classes: Sequence[str],
    encode: Callable[[str], Prompt],
    names: LabelNames = None,
) -> tuple[list[Prompt], list[list[int]]]:
    """Prompts of tagged texts, and for every token the index of its class.

    The first token of a word has the class of the word, all others IGNORE_INDEX. A tag may also be
    the index itself. Raises LabelError for the first unknown tag.
    """
    indices = _by_index(classes) | label_indices(classes, names)
    prompts, targets = [], []
    for line, words, tags in zip(tagged.lines, tagged.words, tagged.tags, strict=True):
        if unknown := [tag for tag in tags if tag not in indices]:
            what = f"{tagged.name}, line {line:,}: the tag {quote_name(unknown[0])} is unknown"
            raise _label_error(what, sorted({*chain(*tagged.tags)} - {*indices}), classes)
        prompt, class_at, begin = encode(" ".join(words)), {}, 0
        for word, tag in zip(words, tags, strict=True):
            class_at[begin] = indices[tag]
            begin += len(word) + 1
        target = []
        for start, end in prompt.spans.tolist():
            while 0 <= start < end and prompt.text[start] == " ":
                start += 1  # some tokenizers have the space before a word within its token
            target.append(class_at.pop(start, IGNORE_INDEX))
        prompts.append(prompt)
        targets.append(target)
    return prompts, targets


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a text, and where the text answers it: characters start to end, or -1."""

    question: str
    context: str
    start: int
    end: int


def read_questions(path: str | Path) -> tuple[Question, ...]:
    """Read the rows of a JSONL file with question, context and answers, as SQuAD has them.

    The first answer counts.
    """
    table, questions = _read_objects(Path(path), QUESTION_ROW), []
    for line, row in table.rows:
        question, context, answers = (row.get(key) for key in ("question", "context", "answers"))
        try:
            texts, starts = answers["text"], answers["answer_start"]
            start = int(starts[0]) if texts else -1
            end = start + len(texts[0]) if texts else -1
            is_good = isinstance(question, str) and isinstance(context, str)
            is_good = is_good and (not texts or context[start:end] == texts[0] != "")
        except (TypeError, KeyError, IndexError, ValueError):
            is_good = False
        if not is_good:
            what = f"{table.name}, line {line:,} is not a question with an answer in its context"
            do = f"Write lines such as {QUESTION_ROW}"
            raise HgvizError(f"{what}: it has {list_names(row)}", do)
        questions.append(Question(question, context, start, end))
    return tuple(questions)


def _read_objects(path: Path, example: str) -> Table:
    """Read a JSONL file. Raises HgvizError with an example of a row for other tables."""
    table = read_table(path)
    what = f"{table.name} cannot be used for this model: it needs a .jsonl, one object per line"
    require(table.is_json, what, f"Write lines such as {example}")
    return table


def question_prompts(
    questions: Sequence[Question], encode: Callable[[str, str], Prompt]
) -> tuple[list[Prompt], list[tuple[int, int]]]:
    """Prompts of questions with their texts, and the first and the last token of each answer.

    Both are 0, the first token of all, where the text does not answer.
    """
    prompts, ends = [], []
    for question in questions:
        prompt = encode(question.question, question.context)
        offset = len(question.question) + 1
        first, last = prompt.spans.T
        is_answer = (first < offset + question.end) & (last > offset + question.start)
        tokens = np.flatnonzero(is_answer & (first >= offset) & (question.start >= 0))
        prompts.append(prompt)
        ends.append((int(tokens[0]), int(tokens[-1])) if len(tokens) else (0, 0))
    return prompts, ends


# --- texts alone ----------------------------------------------------------------------------------


def read_texts(path: str | Path, text_column: str = "") -> tuple[str, ...]:
    """Read one column of a table, or the lines of any other file that are not empty.

    The column is the one that is named, has a usual name or is the only one.
    """
    if not is_table(path):
        return tuple(line.strip() for _, line in _text_lines(Path(path)))
    table = read_table(Path(path))
    columns = table.columns
    if _is_index(text_column, columns) and not (table.is_json and text_column in columns):
        column = int(text_column)
        has_header = not table.is_json and _has_header(table, column)
    else:
        name = text_column and table.require_column(text_column) or _find_name(columns, TEXTS)
        require(
            name or len(columns) == 1,
            f"the text column of {table.name} is unclear: its first row is {list_names(columns)}",
            "Use --text-column (0 is the first), or add a header with `text`",
        )
        column = columns.index(name) if name else 0
        has_header = bool(text_column or _find_name(columns, (*TEXTS, *LABELS)))
    shown = columns[column] if has_header or table.is_json else str(column + 1)
    return tuple(
        _text(table.value(row, column), table.name, line, shown)
        for line, row in table.below(has_header and not table.is_json)
    )


@dataclass(frozen=True, slots=True)
class CorpusText:
    """A text of a corpus with its line, and the label, second text and target of its row."""

    line: int
    text: str
    label: str = ""
    pair: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """The texts of a file."""

    name: str
    texts: tuple[CorpusText, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of the content of all texts, as hexadecimal digits."""
        digest = hashlib.sha256()
        for text in self.texts:
            content = (text.text, text.label, text.pair, text.target)
            digest.update(repr(content).encode(errors="replace"))
        return digest.hexdigest()


def read_corpus(
    path: str | Path,
    two_texts: bool = False,
    pairs: bool = False,
    text_column: str = "",
    target_column: str = "",
    files: bool = False,
) -> Corpus:
    """Read the texts of a file: the lines of a .txt, or the rows of a table.

    two_texts: every text needs a target. pairs: a second text is read where there is a column of
    them. files: texts are names of images or sounds, and targets belong to them. A label may be
    missing. Raises HgvizError also for a file with another ending.
    """

    targets = (FILE_TEXTS if files else TARGETS) if two_texts else ()
    usual = ((*FILES, *TEXTS) if files else TEXTS, targets, PAIRS if pairs else (), LABELS)

    @cache
    def find(columns: tuple[str, ...]) -> list[str]:
        names: list[str] = []
        for name, known in zip((text_column, target_column, "", ""), usual, strict=True):
            names.append(name or _find_name([c for c in columns if c not in names], known))
        return names

    path = Path(path)
    name, kind = short_path(path), path.suffix.lower()
    what = f"{name} cannot be read as a corpus: supported are .txt, .tsv, .csv and .jsonl"
    do, texts = "Use a .txt with one text per line, or a table with a text column", []
    require(kind in (".txt", *TABLES), what, do)
    if kind == ".txt":
        texts = [CorpusText(line, text.strip()) for line, text in _text_lines(path)]
    else:
        for line, row, columns in _corpus_rows(read_table(path), find, two_texts):
            if not columns[0]:
                what = f"the text column of {name}, line {line:,}, is unclear"
                do = f"Name it {TEXTS[1]}, and the label column {LABELS[0]}"
                raise HgvizError(f"{what}: its columns are {list_names(row)}", do)
            text, target, pair = (
                _text(row.get(column), name, line, column) if column else None
                for column in columns[:3]
            )
            label = _label_text(row.get(columns[3])) if columns[3] else ""
            label = label.strip() if isinstance(label, str) else ""
            texts.append(CorpusText(line, text or "", label, pair, target))
    if (files or two_texts) and texts[0].target is None:
        needed = "image or audio, and text" if files else "text and target"
        what = f"{name} has no targets: this model needs a decoder text in every row"
        raise HgvizError(what, f"Use a table with the columns {needed}")
    return Corpus(name, tuple(texts))


def _corpus_rows(
    table: Table, find: Callable[[tuple[str, ...]], list[str]], two_texts: bool
) -> Iterator[tuple[int, dict[str, Any], list[str]]]:
    """Lines, rows and their columns of text, target, pair and label, "" for those missing.

    Where no column has a usual name for texts, one or two columns are known by their places.
    """
    if table.is_json:
        yield from ((line, row, find((*row,))) for line, row in table.rows)
        return
    header, rows = table.columns, table.rows
    columns = find((*header,))
    if columns[0]:
        rows = table.below(has_header=True)
    elif len(header) == 1 or len(header) == 2 and two_texts:
        header = ["text", "target"][: len(header)]
        columns = [*header, "", "", ""]
    elif len(header) == 2:
        text, _, has_header = _guess_columns(table)
        header, rows = ["label", "text"] if text else ["text", "label"], rows[has_header:]
        columns = ["text", "", "", "label"]
    yield from ((line, dict(zip(header, row, strict=False)), columns) for line, row in rows)
