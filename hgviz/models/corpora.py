"""Corpora to capture: one text a line, or rows of a table with a label, a pair, a target."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hgviz.core import HgvizError, Prompt
from hgviz.files import path_errors, short_path
from hgviz.models.inputs import READS
from hgviz.models.labelled import (
    FILES,
    LABELS,
    TEXTS,
    Objects,
    found_among,
    guessed,
    label_words,
    listed,
    read_table,
    text_lines,
)
from hgviz.models.model import Model
from hgviz.models.prompts import from_text

ENDINGS = (".txt", ".tsv", ".csv", ".jsonl")
PAIRS = ("text_pair", "pair", "sentence2", "question2", "hypothesis")
TARGETS = ("target", "target_text", "translation", "summary", "answer")
BESIDE = (*TARGETS, "caption", *TEXTS)  # what a table calls the text beside a file


@dataclass(frozen=True, slots=True)
class Text:
    """One text of a corpus, the line it stands on, and what its row says besides."""

    line: int
    text: str
    label: str = ""
    pair: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """The texts of one file."""

    name: str
    texts: tuple[Text, ...]

    @property
    def digest(self) -> str:
        """A hash of all there is to read."""
        found = hashlib.sha256()
        for one in self.texts:
            found.update(repr((one.text, one.label, one.pair, one.target)).encode(errors="replace"))
        return found.hexdigest()

    def prompts(self, model: Model, number: int) -> tuple[Prompt, Prompt | None]:
        """What a model reads of a text. Errors: HgvizError naming the line."""
        one = self.texts[number]
        try:
            return from_text(model, one.text, one.pair, one.target)
        except HgvizError as error:
            what = f"{self.name}, line {one.line:,}: {error.what}"
            raise HgvizError(what, error.do) from None


def read_corpus(
    path: str | Path,
    two_texts: bool = False,
    pairs: bool = False,
    text_column: str = "",
    target_column: str = "",
    files: bool = False,
) -> Corpus:
    """The texts of a file: .txt one a line, .tsv, .csv and .jsonl rows as labelled.py finds them.

    two_texts: the model needs a target with each; pairs: it reads a second text where there is
    one. text_column, target_column: their names, where they are none of those that are known.
    files: texts are the names of files, and targets the texts beside them. A
    label may be missing. Errors: HgvizError for another ending, an empty or binary file,
    and a row without a text, naming its line.
    """
    path = Path(path)
    name = short_path(path)
    if path.suffix.lower() not in ENDINGS:
        raise HgvizError(
            f"{name} is not read as a corpus: "
            f"a corpus ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}",
            "Give one text a line in a .txt, or a table with a column of texts",
        )
    if path.suffix.lower() == ".txt":
        with path_errors(path), path.open("rb") as file:
            rows = [Text(line, text.strip()) for line, text in text_lines(file, name)]
    else:
        table = read_table(path)
        asked = name, two_texts, pairs, text_column, target_column, files
        rows = _objects(table, *asked) if isinstance(table, Objects) else _cells(table, *asked)
    if not rows:
        raise HgvizError(f"{name} is empty: it has no texts", "Give one text a line")
    if files and rows[0].target is None:
        raise HgvizError(
            f"{name} has no texts beside its files: this model needs one with each",
            "Give a table with the columns image or audio, and text",
        )
    if two_texts and rows[0].target is None:
        raise HgvizError(
            f"{name} has no targets: this model needs the decoder's text with every text",
            "Give a table with the columns text and target",
        )
    return Corpus(name, tuple(rows))


def corpus_for(model: Model, path: str | Path) -> Corpus:
    """The texts of a file as a model reads them. Errors: HgvizError as read_corpus, and for a model
    of images or sounds."""
    if (modality := model.spec.modality) != "text":
        beside = " --target TEXT" if model.spec.two_texts else ""
        raise HgvizError(
            f"this model reads {READS[modality]}, and no corpus of texts: "
            f"its family is {model.spec.family}",
            f"Use `hgviz capture` on one at a time, with --{modality} FILE{beside}",
        )
    return read_corpus(path, model.spec.needs_target, reads_pairs(model))


def reads_pairs(model: Model) -> bool:
    """Whether a model takes two texts as one input."""
    try:
        return not model.spec.needs_target and model.tokenize("a", "b") is not None
    except HgvizError:
        return False


@dataclass(frozen=True, slots=True)
class _Columns:
    """The names of the columns that are read, "" for those that are not there."""

    text: str
    label: str
    pair: str
    target: str

    @classmethod
    def among(
        cls,
        names: Sequence[str],
        two_texts: bool,
        pairs: bool,
        text: str = "",
        target: str = "",
        files: bool = False,
    ) -> _Columns:
        """text, target: those that are named."""
        text = text or (found_among(names, FILES) if files else "") or found_among(names, TEXTS)
        rest = [one for one in names if one != text]
        known = BESIDE if files else TARGETS
        target = target or (found_among(rest, known) if two_texts else "")
        rest = [one for one in names if one not in (text, target)]
        pair = found_among(rest, PAIRS) if pairs else ""
        return cls(text, found_among([one for one in rest if one != pair], LABELS), pair, target)


def _objects(table: Objects, name: str, two_texts: bool, pairs: bool, *named: Any) -> list[Text]:
    rows = []
    for line, row in table.rows:
        columns = _Columns.among(list(row), two_texts, pairs, *named)
        if not columns.text:
            raise _unclear(name, line, list(row))
        rows.append(_row(name, line, columns, row.get))
    return rows


def _cells(
    table: list[tuple[int, Sequence[str]]], name: str, two_texts: bool, pairs: bool, *named: Any
) -> list[Text]:
    head = [one.strip() for one in table[0][1]]
    columns, body = _Columns.among(head, two_texts, pairs, *named), table[1:]
    if not columns.text:
        if len(head) > 2:
            raise _unclear(name, table[0][0], head)
        body = table
        if len(head) == 1 or two_texts:
            head = ["text", "target"][: len(head)]
        else:
            body, (at, _) = guessed(table, name)
            head = ["label", "text"] if at else ["text", "label"]
        columns = _Columns.among(head, two_texts, pairs)
    return [
        _row(name, line, columns, dict(zip(head, cells, strict=False)).get) for line, cells in body
    ]


def _row(name: str, line: int, columns: _Columns, value: Callable[[str], Any]) -> Text:
    def text(column: str) -> str | None:
        found = value(column) if column else None
        if column and (not isinstance(found, str) or not found.strip()):
            raise HgvizError(
                f"{name}, line {line:,}, column {column} is missing or empty: "
                "every row needs a text",
                "Fill it in, or take the line out",
            )
        return found.strip() if found else None

    label = label_words(value(columns.label)) if columns.label else ""
    return Text(
        line,
        text(columns.text) or "",
        label.strip() if isinstance(label, str) else "",
        text(columns.pair),
        text(columns.target),
    )


def _unclear(name: str, line: int, names: Sequence[str]) -> HgvizError:
    return HgvizError(
        f"{name}, line {line:,} does not say which column is the text: "
        f"its columns are {listed(names)}",
        f"Name it {TEXTS[1]}, and that of the labels {LABELS[0]}",
    )
