"""What a training reads: labelled rows, pairs of texts, or whole texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from hgviz.errors import file_error
from hgviz.models.config import PRESETS, Config, TransformerConfig, TransformersConfig
from hgviz.models.texts.labelled import Rows, is_table, read_rows, read_texts
from hgviz.models.training.plan import Plan

FIRST, SECOND = "0", "1"  # the columns of pairs, unless they are named


@dataclass(frozen=True, slots=True)
class Material:
    """Rows, of which a pair's second text is the label; or whole texts."""

    train: Rows | None = None
    valid: Rows | None = None
    texts: tuple[bytes, ...] = ()
    held_out: bytes = b""
    pairs: bool = False

    def lines(self) -> Iterator[str]:
        """What a tokenizer is trained on."""
        rows = () if self.train is None else self.train.texts
        others = self.train.labels if self.train is not None and self.pairs else ()
        decoded = (text.decode("utf-8", "replace").splitlines() for text in self.texts)
        return chain(rows, others, *decoded)


def work_of(model: Mapping[str, Any]) -> str:
    """What a model of these keys of [model] learns: next, masked, classes, states or pairs."""
    family = model.get("family", "hourglass")
    if family not in PRESETS:
        both_ways = family == "window" and model.get("causal") is False
        return "masked" if both_ways else "next"
    keys = {**PRESETS[family], **model}
    both = keys.get("form", "encoder-decoder") == "encoder-decoder"
    return "pairs" if both else str(keys.get("goal", "next"))


def work_of_config(config: Config, goal: str | None = None) -> str:
    """What a model learns, with another goal if one is given."""
    if not isinstance(config, TransformerConfig | TransformersConfig):
        return getattr(config, "goal", "next")
    return "pairs" if config.form == "encoder-decoder" else goal or config.goal


def read_material(plan: Plan, work: str) -> Material:
    """The files of a plan. Errors: HgvizError for what cannot be read, and for one class only."""
    data = plan.data
    if work in ("classes", "pairs"):
        columns = data.text_column, data.label_column
        if work == "pairs":
            columns = columns[0] or FIRST, columns[1] or SECOND
        found = [read_rows(path, *columns) for path in (*data.train, data.valid)]
        train = _joined(found[:-1])
        if work == "classes":
            train.require_classes()
        return Material(train, found[-1], pairs=work == "pairs")
    texts = tuple(_bytes(path, data.text_column) for path in data.train)
    return Material(texts=texts, held_out=_bytes(data.valid, data.text_column))


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    return replace(
        parts[0],
        name=" and ".join(one.name for one in parts),
        texts=tuple(text for one in parts for text in one.texts),
        labels=tuple(label for one in parts for label in one.labels),
        lines=tuple(line for one in parts for line in one.lines),
    )


def _bytes(path: str, text_column: str) -> bytes:
    """A file as one text; of a table its texts, a line each."""
    if is_table(path):
        return "\n".join(read_texts(path, text_column)).encode()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise file_error(f"cannot read {path}", error) from error
