"""Training models and scoring them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.core import (
    NO_STREAMING,
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    Prompt,
    Streaming,
    progress,
)
from hgviz.errors import LISTED, HgvizWarning, require
from hgviz.maps.rule import Grouped
from hgviz.tasks.captures import require_causal

if TYPE_CHECKING:
    from hgviz.analysis.statistics import Evaluation
    from hgviz.examples import Examples
    from hgviz.models.model import Model
    from hgviz.models.training import Report

MOST_SIGNALS = 4 << 30  # bytes of the images or sounds that are scored on


def train(config: str | Path, out: str | Path) -> Report:
    """Train a model from a TOML file into a folder; started again, it goes on where it was."""
    progress(0, 1, "loading torch")
    from hgviz.models import training

    return training.train(training.read_plan(config), out)


def evaluate(
    model: Model,
    data: str | Path,
    text_column: str = "",
    label_column: str = "",
    off: HeadSet = frozenset(),
    labels: Mapping[str, str] | None = None,
    streaming: Streaming = NO_STREAMING,
    limit: int | None = None,
    batch_size: int | None = None,
) -> Evaluation:
    """Score a model on data; see examples_from for what each kind of model is scored on.

    The progress carries the score so far: examples come in one random order, so it is unbiased and
    its interval shrinks. streaming: heads that attend to the first and the latest keys. limit,
    batch_size: as in examples_from. Raises HgvizError for data that cannot be used, labels that
    the model does not have, and heads that cannot stream.
    """
    from hgviz.analysis.statistics import evaluate as evaluate_answers
    from hgviz.models.trials import Trials

    require_causal(model.spec, streaming)
    require(
        not (streaming.heads and model.spec.two_texts),
        "heads of this model do not stream while it is scored: "
        "it reads two texts, and what of both stays in its caches is not known",
        "Leave --streaming out",
    )
    progress(0, 1, f"reading {Path(data).name}")
    examples = examples_from(model, data, text_column, label_column, labels, limit, batch_size)
    if model.spec.goal == "states":  # from what it gives with all heads on
        trials = Trials(model, examples, streaming=streaming)
        return evaluate_answers(lambda batch: trials.without(batch, off), examples, off)
    trials = Trials(model, examples, off, cache_bytes=0, streaming=streaming)
    found = evaluate_answers(trials.baseline, examples, off)
    if not streaming.heads:
        return found
    longest = max((row.ids for row in examples.rows), key=len)
    kept = _cached(model, longest, off, streaming)
    return replace(found, streaming=streaming, longest=len(longest), cached=kept)


def _cached(model: Model, ids: Integers, off: HeadSet, streaming: Streaming) -> float:
    """Of the keys (and values) that a text leaves in the caches of all layers, the part that is
    needed; those that heads share as long as one of them needs them."""
    from hgviz.models.run import CaptureRecorder, DenseWeights

    needed, every = 0, 0

    def count(index: int, found: Any) -> None:
        nonlocal needed, every
        layer, band = model.spec.layers[index], None
        if isinstance(found, DenseWeights):
            groups, _, keys = found.values.shape
        else:
            k, band = found.k, found.rule.band
            groups, keys = (k.stored if isinstance(k, Grouped) else k).shape[:2]
        most = keys if band is None else min(keys, band[0] + 1)
        few, shared = min(most, sum(streaming.window)), len(layer.heads) // groups
        streams = streaming.places(layer.index, layer.heads)
        each = [0 if HeadId(layer.index, head) in off else few if at in streams else most
                for at, head in enumerate(layer.heads)]  # fmt: skip
        needed += sum(max(each[at : at + shared]) for at in range(0, len(each), shared))
        every += groups * most

    model.observe(model.from_ids(ids), observers=(CaptureRecorder(count),))
    return needed / every


def examples_from(
    model: Model,
    data: str | Path,
    text_column: str = "",
    label_column: str = "",
    labels: Mapping[str, str] | None = None,
    limit: int | None = None,
    batch_size: int | None = None,
) -> Examples:
    """What a model is scored on.

    Labelled rows for a classifier, words with tags for a model of tokens, questions for one that
    answers them, the texts of a table or the lines of a file for one of hidden states, the second
    texts of a table, each after its first, for an encoder-decoder; for language models the tokens
    of a text, or of each text of a table. Tables of images and sounds name their files, relative
    to their own folder.

    Args:
        labels: the model's names of the labels of the data.
        limit: the most examples, drawn at random, the same ones each time.
        batch_size: the most examples of a batch, None for the usual number.

    Raises HgvizError for data that cannot be used, and for a model that needs a second text.
    """
    examples = _read(model, data, text_column, label_column, labels)
    if examples.note:
        warnings.warn(examples.note, HgvizWarning, stacklevel=2)
    is_even = getattr(model.config, "unpadded", False)
    examples = replace(examples, even=is_even, batch_size=batch_size)
    return examples if limit is None else examples.sample(limit)


def _read(
    model: Model,
    data: str | Path,
    text_column: str,
    label_column: str,
    labels: Mapping[str, str] | None,
) -> Examples:
    from hgviz import examples
    from hgviz.models import data as tables
    from hgviz.models.prompts import read_text

    spec, limit = model.spec, model.spec.max_positions
    require(
        spec.answers,
        "this model cannot be scored: it needs a second text",
        "Choose a classifier, a language model or a masked language model",
    )

    def encode(text: str) -> Prompt:
        if spec.modality == "text":
            return model.encode(text)
        return model.from_signal(Path(data).parent / text)

    if spec.two_texts and spec.goal in ("next", "states"):
        files = spec.modality != "text"
        pairs = tables.read_corpus(data, True, False, text_column, label_column, files).texts
        targets = [model.encode_target(one.target or "") for one in pairs]
        firsts = _all([one.text for one in pairs], encode)
        if spec.goal == "states":
            return examples.state_examples(targets, limit, firsts)
        return examples.seq2seq_examples(firsts, targets, limit)
    if spec.goal == "classes":
        rows = tables.read_rows(data, text_column, label_column)
        wanted = rows.class_indices(spec.labels, labels)
        scored = examples.classification_examples(
            _all(rows.texts, encode), wanted, spec.labels, limit
        )
        ids = rows.numeric_labels(spec.labels, labels).items()
        said = ", ".join(f"{label} is {spec.labels[number]}" for label, number in [*ids][:LISTED])
        scored = repeated_as_target(scored, model.shifted) if spec.reads_twice else scored
        return replace(scored, note=f"Labels are class ids: {said}." if ids else "")
    if spec.goal == "tags":
        tagged = tables.read_tagged(data, text_column, label_column)
        prompts, marked = tables.tagged_prompts(tagged, spec.labels, encode, labels)
        return examples.tagging_examples(prompts, marked, spec.labels, limit)
    if spec.goal == "ends":
        questions = tables.read_questions(data)
        asked = examples.question_examples(*tables.question_prompts(questions, model.encode), limit)
        return repeated_as_target(asked, model.shifted) if spec.reads_twice else asked
    is_whole = spec.goal != "states" and not tables.is_table(data)
    content = [read_text(data)] if is_whole else tables.read_texts(data, text_column)
    if spec.goal == "states":
        return examples.state_examples(_all(content, encode), limit)
    prompts = [encode(text) for text in content]
    if spec.goal == "next":
        return examples.next_token_examples(prompts, limit)
    named = model.tokenizer.encode(
        "[MASK]"
    )  # what stands for a hidden token, by the tokenizer's own name
    masks = [int(one) for one, piece in zip(named.ids, named.pieces, strict=True)
             if piece in ("[MASK]", "<mask>")]  # fmt: skip
    require(masks, "the tokenizer has no [MASK]", "Use the model's own tokenizer")
    return examples.masked_token_examples(prompts, masks[0], limit)


def _all(names: Sequence[str], read: Callable[[str], Prompt]) -> list[Prompt]:
    """The prompts of some texts, or of some files. Errors: HgvizError where there is no room."""
    found: list[Prompt] = []
    held = 0
    for name in names:
        found.append(read(name))
        held += 0 if (signal := found[-1].signal) is None else signal.values.nbytes
        if held > MOST_SIGNALS:
            raise HgvizError(
                f"{len(names):,} images or sounds do not fit: "
                f"the first {len(found):,} take {held / 1e9:.1f} GB as the model reads them",
                "Take fewer",
            )
    return found


def repeated_as_target(found: Examples, shifted: Callable[[Integers], Integers]) -> Examples:
    """Examples that the decoder of an encoder-decoder reads too, one token later, as BART and T5 do
    where they answer about a text. shifted: the ids that it reads of those of a text."""
    rows = (replace(row, ids=shifted(row.ids), first=row) for row in found.rows)
    return replace(found, rows=tuple(rows))
