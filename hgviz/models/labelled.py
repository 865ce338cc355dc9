"""Rows of TSV, CSV or JSONL files: texts and their classes, or texts alone. Needs no torch.

A TSV has no quoting (a quotation mark is a letter, as in SST-2 and GLUE); a CSV has; a JSONL has
one object a line. Two columns need no names and no header.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hgviz.core import HgvizError, Prompt
from hgviz.errors import LabelError
from hgviz.examples import IGNORE_INDEX
from hgviz.files import first_line, path_errors, short_path

MOST_LINE = 2**20
TABLES = (".tsv", ".csv", ".jsonl")
TEXTS = (
    "sentence", "text", "review", "content", "comment", "document", "source", "sentence1",
    "question", "image", "audio", "file", "path",
)  # fmt: skip
FILES = ("image", "audio", "file", "path")
WORDS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "labels", "pos_tags", "chunk_tags")
LABELS = ("label", "labels", "class", "target", "category", "sentiment", "gold_label", "y")

Cells = tuple[int, Sequence[str]]  # the number of a line, from 1, and what it holds


@dataclass(frozen=True, slots=True)
class Rows:
    """The labelled rows of one file, and the lines they stand on."""

    name: str
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    lines: tuple[int, ...]
    text_column: str = ""
    label_column: str = ""

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels there are: by value where all are whole numbers, else by the alphabet."""
        return tuple(sorted(set(self.labels), key=_ordered(self.labels)))

    def numbers(self, known: Sequence[str], names: Mapping[str, str] | None = None) -> list[int]:
        """The number of each row's class among the known ones, as numbers_of or class_ids has it.

        Errors: LabelError for the first label that is unknown.
        """
        number = numbers_of(known, names) | self.class_ids(known, names)
        found = [number.get(label, -1) for label in self.labels]
        if -1 in found:
            row = found.index(-1)
            what = f"{self._at(row)} the label {_short(self.labels[row])} is unknown"
            raise unknown_label(what, self._unnamed(known, names), known)
        return found

    def class_ids(
        self, known: Sequence[str], names: Mapping[str, str] | None = None
    ) -> dict[str, int]:
        """The classes of labels that are whole numbers below the number of classes, where these
        have names that are no numbers; empty where another label has no class."""
        unnamed, ids = self._unnamed(known, names), {str(i): i for i in range(len(known))}
        if not unnamed or not ids.keys() >= {*unnamed} or any(one.isdecimal() for one in known):
            return {}
        return {label: ids[label] for label in unnamed}

    def _unnamed(self, known: Sequence[str], names: Mapping[str, str] | None) -> list[str]:
        number = numbers_of(known, names)
        return [label for label in self.classes if label not in number]

    def require_classes(self) -> None:
        """Errors: HgvizError where there is only one class to learn."""
        if len(self.classes) < 2:
            raise HgvizError(
                f"{self.name} has only one class, {_short(self.classes[0])}: "
                f"all {len(self):,} rows have it",
                "Choose another label column, or add rows of another class",
            )

    def _at(self, row: int) -> str:
        return f"{self.name}, line {self.lines[row]:,}, column {self.label_column or 'label'}:"


def numbers_of(known: Sequence[str], names: Mapping[str, str] | None = None) -> dict[str, int]:
    """The numbers of classes by all that may name them: their names, 0 to n - 1 where these are
    LABEL_0 to LABEL_n-1, and what names (the data's, to the model's) says. Errors: HgvizError for a
    class in names that the model does not know."""
    number = {name: i for i, name in enumerate(known)}
    if all(name == f"LABEL_{i}" for i, name in enumerate(known)):
        number |= {str(i): i for i in range(len(known))}
    for one, other in (names or {}).items():
        if other not in number:
            raise HgvizError(
                f"the model has no label {_short(other)}: it knows {listed(known)}",
                f"Say which of them {_short(one)} is",
            )
        number[one] = number[other]
    return number


def unknown_label(what: str, labels: Sequence[str], known: Sequence[str]) -> LabelError:
    """The error for labels that name no known class, with the likeliest class of each: the one
    whose name begins alike, or, of as many whole numbers as there are classes, in their order."""
    likely: dict[str, str] = {}
    for label in labels:
        alike = [one for one in known if _begin_alike(label.lower(), one.lower())]
        likely |= {label: alike[0]} if len(alike) == 1 else {}
    if len({*likely.values()}) < len(labels):
        ordered = all(label.lstrip("-").isdecimal() for label in labels)
        likely = dict(zip(labels, known, strict=False)) if ordered else {}
        likely = likely if len(labels) == len(known) else {}
    return LabelError(what, labels, known, likely)


def _begin_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


@dataclass(frozen=True, slots=True)
class Tagged:
    """Texts in words, each word with its tag, and the lines they stand on."""

    name: str
    words: tuple[tuple[str, ...], ...]
    tags: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]


def read_tagged(path: str | Path, words: str = "", tags: str = "") -> Tagged:
    """Rows of a JSONL with a list of words (tokens) and one of their tags (ner_tags), as token
    classification has them. Errors: HgvizError as of read_rows, and for lists of other lengths."""
    path = Path(path)
    name, keys = short_path(path), (words, tags)
    found = []
    for line, row in _json_rows(path, '{"tokens": ["A", "word"], "ner_tags": ["O", "O"]}'):
        one: Any
        other: Any
        one, other = (
            row.get(key or found_among(row, known))
            for key, known in zip(keys, (WORDS, TAGS), strict=True)
        )
        good = isinstance(one, list) and isinstance(other, list) and len(one) == len(other) > 0
        if not good or not all(isinstance(each, str) and each.strip() for each in one or ()):
            raise HgvizError(
                f"{name}, line {line:,} has no words with a tag each: it has {listed(list(row))}",
                "Write two lists of one length: tokens, and ner_tags or tags",
            )
        found.append((line, tuple(one), tuple(map(str, other))))
    return Tagged(
        name, tuple(one[1] for one in found), tuple(one[2] for one in found),
        tuple(one[0] for one in found),
    )  # fmt: skip


def tags_of(
    tagged: Tagged,
    known: Sequence[str],
    encode: Callable[[str], Prompt],
    names: Mapping[str, str] | None = None,
) -> tuple[list[Prompt], list[list[int]]]:
    """Prompts of texts, and for each token the number of its class: the first token of a word has
    that of its word, others have NOTHING. A tag may be the number of a class itself.

    Errors: LabelError for the first tag that is unknown.
    """
    number = {str(i): i for i in range(len(known))} | numbers_of(known, names)
    prompts, marked = [], []
    for line, words, tags in zip(tagged.lines, tagged.words, tagged.tags, strict=True):
        if unknown := [tag for tag in tags if tag not in number]:
            what = f"{tagged.name}, line {line:,}: the tag {_short(unknown[0])} is unknown"
            every = {tag for some in tagged.tags for tag in some if tag not in number}
            raise unknown_label(what, sorted(every), known)
        prompts.append(encode(" ".join(words)))
        starts, at = {}, 0
        for word, tag in zip(words, tags, strict=True):
            starts[at] = number[tag]
            at += len(word) + 1
        found = []
        for start, end in prompts[-1].spans.tolist():
            while 0 <= start < end and prompts[-1].text[start] == " ":
                start += 1  # some tokenizers have the space before a word within its token
            found.append(starts.pop(start, IGNORE_INDEX) if start >= 0 else IGNORE_INDEX)
        marked.append(found)
    return prompts, marked


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the text that it is asked about, and the characters there that answer it, from
    start to end; -1 where nothing does."""

    question: str
    context: str
    start: int
    end: int


def read_questions(path: str | Path) -> tuple[Question, ...]:
    """Rows of a JSONL with question, context and answers, as SQuAD has them: {"text": [...],
    "answer_start": [...]}, of which the first counts. Errors: HgvizError as of read_rows."""
    path = Path(path)
    like = (
        '{"question": "Who?", "context": "She did.", '
        '"answers": {"text": ["She"], "answer_start": [0]}}'
    )
    found = []
    for line, row in _json_rows(path, like):
        given: list[Any] = [row.get(one) for one in ("question", "context", "answers")]
        question, context, answers = given
        try:
            texts, starts = answers["text"], answers["answer_start"]
            start = int(starts[0]) if texts else -1
            end = start + len(texts[0]) if texts else -1
            good = isinstance(question, str) and isinstance(context, str)
            good = good and (not texts or context[start:end] == texts[0] != "")
        except (TypeError, KeyError, IndexError, ValueError):
            good = False
        if not good:
            raise HgvizError(
                f"{short_path(path)}, line {line:,} is no question with an answer in its context: "
                f"it has {listed(list(row))}",
                f"Write lines such as {like}",
            )
        found.append(Question(question, context, start, end))
    return tuple(found)


def ends_of(
    questions: Sequence[Question], encode: Callable[[str, str], Prompt]
) -> tuple[list[Prompt], list[tuple[int, int]]]:
    """Prompts of questions with their contexts, and the first and the last token of each answer,
    the first token of all where there is none."""
    prompts, ends = [], []
    for one in questions:
        prompt = encode(one.question, one.context)
        prompts.append(prompt)
        begin, end = (len(one.question) + 1 + at for at in (one.start, one.end))
        inside = (prompt.spans[:, 0] < end) & (prompt.spans[:, 1] > begin)
        inside &= prompt.spans[:, 0] > len(one.question)
        at = np.flatnonzero(inside) if one.start >= 0 else np.zeros(0, np.int64)
        ends.append((int(at[0]), int(at[-1])) if len(at) else (0, 0))
    return prompts, ends


def read_lines(path: str | Path) -> tuple[str, ...]:
    """The lines of a text that are not empty. Errors: HgvizError as of read_rows."""
    path = Path(path)
    with path_errors(path), path.open("rb") as file:
        found = tuple(line.strip() for _, line in text_lines(file, short_path(path)))
    if not found:
        raise HgvizError(f"{short_path(path)} is empty: it has no rows", "Choose a file of texts")
    return found


def _json_rows(path: Path, like: str) -> list[tuple[int, dict[str, Any]]]:
    table = read_table(path)
    if isinstance(table, Objects):
        return table.rows
    raise HgvizError(
        f"{short_path(path)} is not what this model is scored on: "
        "it needs a .jsonl, an object a line",
        f"Write lines such as {like}",
    )


def read_rows(path: str | Path, text_column: str = "", label_column: str = "") -> Rows:
    """The labelled rows of a file.

    Columns are named by their header, or by their number from 0; left out, they are found.
    Errors: HgvizError for a file that is empty, not UTF-8, has NUL bytes, a line above 1 MB, a
    row without a text or a label, or columns that cannot be told apart.
    """
    path = Path(path)
    table = read_table(path)
    if isinstance(table, Objects):
        return _from_objects(table.rows, short_path(path), text_column, label_column)
    return _from_cells(table, short_path(path), text_column, label_column)


def is_table(path: str | Path) -> bool:
    """Whether a file is read as rows, by its ending."""
    return Path(path).suffix.lower() in TABLES


def read_texts(path: str | Path, text_column: str = "") -> tuple[str, ...]:
    """One column of a table, whatever stands in the others.

    It is named by its header, or by its number from 0 where there is none; left out, it is the one
    with a name of TEXTS, or the only one. Errors: HgvizError as of read_rows.
    """
    path = Path(path)
    table, name = read_table(path), short_path(path)
    if isinstance(table, Objects):
        keys = list(table.rows[0][1])
        column = _text_column(keys, name, text_column)
        found = [(line, row.get(keys[column])) for line, row in table.rows]
    else:
        head = [one.strip() for one in table[0][1]]
        if _is_number(text_column, head):
            column = int(text_column)
            named = _names_columns(table, column)
        else:
            column = _text_column(head, name, text_column)
            named = bool(text_column or found_among(head, (*TEXTS, *LABELS)))
        rows = table[1:] if named else table
        if not rows:
            raise HgvizError(f"{name} has a header and no rows", "Choose a file with texts")
        found = [(line, cells[column] if column < len(cells) else "") for line, cells in rows]
    texts = []
    for line, text in found:
        texts.append(text.strip() if isinstance(text, str) else "")
        if not texts[-1]:
            raise HgvizError(
                f"{name}, line {line:,} has no text: column {column + 1} of it is missing or empty",
                "Fill it in, or take the line out",
            )
    return tuple(texts)


def _text_column(keys: Sequence[str], name: str, wanted: str) -> int:
    """Where the column of texts stands. Errors: HgvizError."""
    if wanted not in keys and _is_number(wanted, keys):
        return int(wanted)
    column = wanted or found_among(keys, TEXTS)
    if not column and len(keys) == 1:
        return 0
    if not column:
        raise HgvizError(
            f"{name} does not say which column is the text: its first row is {listed(keys)}",
            "Name it: --text-column 0 is the first; or give the columns a header with the name "
            "text",
        )
    if column not in keys:
        raise _no_column(name, wanted, keys)
    return keys.index(column)


def require_columns(path: str | Path, *columns: str) -> None:
    """Errors: HgvizError where a file has no column of one of these names or numbers, "" for none;
    only its first row is read."""
    path = Path(path)
    with path_errors(path), path.open("rb") as file:
        lines = text_lines(file, short_path(path))
        if (first := next(lines, None)) is None:
            raise HgvizError(
                f"{short_path(path)} is empty: it has no rows", "Choose a file of texts"
            )
        rows = {"jsonl": _objects, "tsv": _tabs, "csv": _commas}[_kind(path, first[1])]
        _, cells = next(iter(rows(chain([first], lines), short_path(path))))
    keys = [one.strip() for one in cells]
    for one in columns:
        if one and _by_number(one, keys) not in keys:
            raise _no_column(short_path(path), one, keys)


@dataclass(frozen=True, slots=True)
class Objects:
    """The rows of a JSONL file, by line."""

    rows: list[tuple[int, dict[str, Any]]]


def read_table(path: Path) -> list[Cells] | Objects:
    """All rows of a file as they stand, by its ending or else its first line; at least one."""
    with path_errors(path), path.open("rb") as file:
        lines = text_lines(file, short_path(path))
        first = next(lines, None)
        if first is None:
            raise HgvizError(
                f"{short_path(path)} is empty: it has no rows", "Choose a file of texts"
            )
        kind = _kind(path, first[1])
        every = chain([first], lines)
        if kind == "jsonl":
            return Objects(list(_objects(every, short_path(path))))
        return list((_tabs if kind == "tsv" else _commas)(every, short_path(path)))


# --- lines ----------------------------------------------------------------------------------------


def text_lines(file: Any, name: str) -> Iterator[tuple[int, str]]:
    """The lines that hold anything, without their ends."""
    number = 0
    while data := file.readline(MOST_LINE + 1):
        number += 1
        if len(data) > MOST_LINE:
            raise HgvizError(
                f"{name}, line {number:,} is too long: it has more than {MOST_LINE:,} bytes",
                "Give one text a line; is this the right file?",
            )
        if b"\0" in data:
            raise HgvizError(
                f"{name}, line {number:,} holds a NUL byte: "
                "a text has none: the file is binary, or UTF-16",
                "Save it as UTF-8",
            )
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise HgvizError(
                f"{name}, line {number:,} is not UTF-8: "
                f"byte {error.start:,} of it (0x{data[error.start]:02X}) cannot be decoded",
                "Save the file as UTF-8",
            ) from None
        if line.strip():
            yield number, line


def _kind(path: Path, first: str) -> str:
    if is_table(path):
        return path.suffix[1:].lower()
    if first.lstrip().startswith("{"):
        return "jsonl"
    return "tsv" if "\t" in first else "csv"


def _tabs(lines: Iterator[tuple[int, str]], name: str) -> Iterator[Cells]:
    for number, line in lines:
        yield number, line.split("\t")


def _commas(lines: Iterator[tuple[int, str]], name: str) -> Iterator[Cells]:
    number = start = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for one, line in lines:
            number = one
            yield line + "\n"

    reader = csv.reader(texts(), strict=True)
    while True:
        try:
            start = number + 1
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise HgvizError(
                f"{name}, line {start:,} cannot be read as CSV: "
                f"{error}; is a quotation mark never closed?",
                "Correct the line, or save the file as TSV",
            ) from None
        yield number, cells


def _objects(lines: Iterator[tuple[int, str]], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    for number, line in lines:
        try:
            yield number, decoder.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise HgvizError(
                f"{name}, line {number:,} is no JSON object: {first_line(error)}",
                'Write one a line, such as {"text": "...", "label": "..."}',
            ) from None


# --- columns --------------------------------------------------------------------------------------


def _from_objects(
    table: list[tuple[int, dict[str, Any]]], name: str, text: str, label: str
) -> Rows:
    keys = list(table[0][1])
    text, label = _chosen(keys, name, text, label, table[0][1])
    cells = []
    for number, one in table:
        for key in (text, label):
            if key not in one:
                raise _missing(name, number, key)
        cells.append((number, (one[text], label_words(one[label]))))
    return _rows(cells, name, 0, 1, (text, label))


def label_words(value: Any) -> Any:
    return str(value) if isinstance(value, int | float | bool) else value


def _from_cells(table: list[Cells], name: str, text: str, label: str) -> Rows:
    head = [one.strip() for one in table[0][1]]
    numbers = [int(one) for one in (text, label) if _is_number(one, head)]
    usual = bool(found_among(head, TEXTS) and found_among(head, LABELS))
    if numbers and len(numbers) == len([one for one in (text, label) if one]):
        named = (usual and len(numbers) == 1) or _names_columns(table, *numbers)
    else:
        named = usual or bool({text, label} & set(head))
    if len(head) < 2:
        raise HgvizError(
            f"{name}, line {table[0][0]:,} has one column: "
            "a labelled row has a text and a label, separated by a tab or a comma",
            "Choose a TSV, CSV or JSONL file",
        )
    if named:
        body = table[1:]
        text, label = _chosen(head, name, text, label, None)
        at = head.index(text), head.index(label)
    elif len(numbers) == 2:
        body, at = table, (numbers[0], numbers[1])
    elif text or label:
        body, at = table, _beside(head, name, text, label)
    elif len(head) == 2:
        body, at = guessed(table, name)
    else:
        raise _unclear(name, head)
    if not body:
        raise HgvizError(f"{name} has a header and no rows", "Choose a file with labelled rows")
    names = (head[at[0]], head[at[1]]) if named else (str(at[0]), str(at[1]))
    return _rows(body, name, *at, names)


def _chosen(
    keys: Sequence[str], name: str, text: str, label: str, sample: dict[str, Any] | None
) -> tuple[str, str]:
    """The names of the two columns: as given, as known, or the other one of two."""
    text, label = (_by_number(one, keys) for one in (text, label))
    for one in (text, label):
        if one and one not in keys:
            raise _no_column(name, one, keys)
    text, label = text or found_among(keys, TEXTS), label or found_among(keys, LABELS)
    if len(keys) == 2 and bool(text) != bool(label):
        other = next((one for one in keys if one not in (text, label)), "")
        text, label = text or other, label or other
    if not (text and label) or text == label:
        raise _unclear(name, keys)
    return text, label


def _beside(head: Sequence[str], name: str, text: str, label: str) -> tuple[int, int]:
    """Where text and label are in rows without names, one of them by its number: of two columns
    the other one is beside it.
    """
    given = [one for one in (text, label) if one]
    wrong = (one for one in given if not one.isdecimal() or int(one) >= len(head))
    if (one := next(wrong, None)) is not None:
        raise _no_column(name, one, head)
    if len(head) != 2:
        raise _unclear(name, head)
    at = int(given[0])
    return (at, 1 - at) if text else (1 - at, at)


def _by_number(column: str, keys: Sequence[str]) -> str:
    if column not in keys and column.isdecimal() and int(column) < len(keys):
        return keys[int(column)]
    return column


def found_among(keys: Iterable[str], known: Sequence[str]) -> str:
    named = {one.lower(): one for one in keys}
    return next((named[one] for one in known if one in named), "")


def guessed(table: list[Cells], name: str) -> tuple[list[Cells], tuple[int, int]]:
    """Of two columns, the label is the one with fewer different values."""
    columns = [[cells[i] for _, cells in table if len(cells) == 2] for i in (0, 1)]
    kinds = [len(set(column)) for column in columns]
    if kinds[0] == kinds[1]:
        longest = [sum(map(len, column)) for column in columns]
        label = int(longest[1] <= longest[0])
    else:
        label = int(kinds[1] < kinds[0])
    body = table[1:] if _is_header(table, label) else table
    return body, (1 - label, label)


def _is_number(column: str, head: Sequence[str]) -> bool:
    """Whether a column is given by its number, from 0."""
    return column.isdecimal() and int(column) < len(head)


def _names_columns(table: list[Cells], *columns: int) -> bool:
    """Whether the first row cannot be data: it counts its columns, or has a usual name in one of
    these which no other row has, or in any column a word where all others have whole numbers."""
    counts = [*table[0][1]] == [*map(str, range(len(table[0][1])))]
    for at in range(len(table[0][1])):
        cells = [row[at].strip() for _, row in table if at < len(row)]
        first, rest = "".join(cells[:1]), cells[1:]
        whole = [one.lstrip("-").isdecimal() for one in (first, *rest)]
        known = at in columns and (counts or first.lower() in (*TEXTS, *LABELS))
        if rest and first not in rest and (known or (all(whole[1:]) and not whole[0])):
            return True
    return False


def _is_header(table: list[Cells], label: int) -> bool:
    """Whether the first row's label is a word that stands nowhere else while others come again."""
    values = [cells[label] for _, cells in table if len(cells) > label]
    rest = values[1:]
    if not rest or values[0].strip().lstrip("-").isdecimal():
        return False
    return values[0] not in rest and 2 * len(set(rest)) <= len(rest)


def _rows(body: Sequence[Cells], name: str, text: int, label: int, names: Sequence[str]) -> Rows:
    texts, labels, lines = [], [], []
    for number, cells in body:
        for at, key in ((text, names[0]), (label, names[1])):
            if at >= len(cells) or not isinstance(cells[at], str) or not cells[at].strip():
                raise _missing(name, number, key, at, isinstance(cells, list))
        texts.append(cells[text].strip())
        labels.append(cells[label].strip())
        lines.append(number)
    return Rows(name, tuple(texts), tuple(labels), tuple(lines), *names)


# --- what is wrong --------------------------------------------------------------------------------


def _missing(name: str, line: int, key: str, at: int = 0, cells: bool = False) -> HgvizError:
    column = f"column {key}" if not key.isdecimal() else f"column {int(key) + 1}"
    return HgvizError(
        f"{name}, line {line:,}, {column} is missing or empty: every row needs a text and a label",
        "Fill it in, or take the line out",
    )


def _no_column(name: str, wanted: str, keys: Sequence[str]) -> HgvizError:
    return HgvizError(
        f"{name} has no column {_short(wanted)}: it has {listed(keys)}", "Choose one of them"
    )


def _unclear(name: str, keys: Sequence[str]) -> HgvizError:
    return HgvizError(
        f"{name} does not say which columns are the text and the label: "
        f"its columns are {listed(keys)}",
        "Name them: --text-column and --label-column, or text_column and label_column in [data]",
    )


def _ordered(labels: Sequence[str]) -> Any:
    whole = all(label.lstrip("-").isdecimal() for label in labels)
    return (lambda label: (int(label), label)) if whole else (lambda label: label)


def _short(words: str) -> str:
    return repr(words if len(words) <= 40 else f"{words[:39]}…")


def listed(names: Sequence[str]) -> str:
    few = ", ".join(_short(one) for one in names[:8])
    return f"{few} and {len(names) - 8:,} more" if len(names) > 8 else few
