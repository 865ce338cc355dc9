"""A plan for training a checkpoint for a while longer, with another activation, on one file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hgviz.core import HgvizError
from hgviz.models.config import Config
from hgviz.models.devices import device_of
from hgviz.models.formats.checkpoint import Checkpoint
from hgviz.models.formats.readers import read
from hgviz.models.surgery.replacement import with_activation
from hgviz.models.texts.labelled import is_table, read_rows, read_texts
from hgviz.models.texts.text import read_text
from hgviz.models.training.data import work_of_config
from hgviz.models.training.plan import Data, Plan, Recipe, Stage

SHARE = 10  # a tenth is held out,
MOST_ROWS, MOST_BYTES = 1000, 1 << 16  # but no more than this
SEED = 0  # of which rows these are
LEAST = 20  # rows that are enough to learn from and to measure on
WINDOW, BATCH = 256, 8  # tokens of a text at once
MEASURED, WARMUP = 20, 20  # steps between two measures, and until the rate is reached


def plan_of(
    checkpoint: str | Path,
    data: str | Path,
    out: Path,
    activation: str = "",
    minutes: float = 2.0,
    steps: int = 0,
    rate: float = 3e-4,
    device: str = "auto",
) -> Plan:
    """The plan of a short training, for so many steps, or minutes where steps are 0.

    data: a file of labelled rows, or of text, of which a tenth is held out; what is learnt from and
    what is held out is written into the folder out. activation: as replacement.with_activation
    reads it, "" for the checkpoint's own. Errors: HgvizError for data and checkpoints that cannot
    be used.
    """
    found = read(checkpoint)
    work = work_of_config(found.config)
    if work not in ("next", "masked", "classes"):
        raise HgvizError(
            "this model cannot be trained for a while",
            "it reads two texts" if work == "pairs" else "it answers nothing that could be wrong",
            "Choose a classifier, a language model or a masked language model",
        )
    model = {"from": str(Path(found.folder).resolve()), **exchange(found, activation)}
    split = _rows if work == "classes" else _text
    files, length = split(data, out, found.config)
    recipe = Recipe(
        steps=steps, minutes=0.0 if steps else minutes, rate=rate, warmup=WARMUP, decay=0.05,
        seed=SEED, stages=(Stage(0.0, length, BATCH),), device=device_of(device),
        save_every=1000, evaluate_every=MEASURED, evaluate_bytes=MOST_BYTES // 4,
        evaluate_length=length,
    )  # fmt: skip
    return Plan(model, files, recipe)


def exchange(found: Checkpoint, activation: str) -> dict[str, object]:
    """The keys of [model] that give a checkpoint another activation; none for its own."""
    if not activation:
        return {}
    config = with_activation(found.config, activation)
    keys: dict[str, object] = {"activations": list(config.activations), "norms": dict(config.norms)}
    return keys | ({} if config.top_k is None else {"top_k": config.top_k})


def _rows(path: str | Path, out: Path, config: Config) -> tuple[Data, int]:
    rows = read_rows(path)
    if len(rows) < LEAST:
        raise HgvizError(
            f"{rows.name} has only {len(rows):,} rows",
            f"some are learnt from and some held out: that takes {LEAST} at least",
            "Choose a larger file",
        )
    rows.require_classes()
    rows.numbers(getattr(config, "labels", ()))  # labels it never learnt are refused here
    order = np.random.default_rng(SEED).permutation(len(rows))
    count = min(MOST_ROWS, max(1, len(rows) // SHARE))
    files = {"train": order[count:], "held-out": order[:count]}
    for name, numbers in files.items():
        lines = (
            json.dumps({"text": rows.texts[at], "label": rows.labels[at]}, ensure_ascii=False)
            for at in sorted(numbers.tolist())
        )
        _write(out / f"{name}.jsonl", "".join(f"{line}\n" for line in lines))
    places = (str((out / f"{name}.jsonl").resolve()) for name in files)
    train, valid = places
    return Data([train], valid, text_column="text", label_column="label"), WINDOW


def _text(path: str | Path, out: Path, config: Config) -> tuple[Data, int]:
    text = "\n".join(read_texts(path)) if is_table(path) else read_text(path)
    count = min(MOST_BYTES, len(text) // SHARE)
    cut = text.rfind("\n", 0, len(text) - count)
    cut = cut + 1 if cut > len(text) // 2 else len(text) - count
    # a token may be several bytes, and a window must fit into what is held out
    length = max(2, min(WINDOW, config.max_positions or WINDOW, count // 16))
    for name, part in (("train", text[:cut]), ("held-out", text[cut:])):
        _write(out / f"{name}.txt", part)
    places = (str((out / f"{name}.txt").resolve()) for name in ("train", "held-out"))
    train, valid = places
    return Data([train], valid), length


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HgvizError(
            f"cannot write {path}", error.strerror or str(error), "Choose another folder"
        ) from None


__all__ = ["exchange", "plan_of"]
