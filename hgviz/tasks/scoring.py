"""Training models and scoring them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hgviz.analysis import statistics
from hgviz.core import (
    NO_STREAMING,
    Ablation,
    HeadId,
    HeadSet,
    Integers,
    Prompt,
    Streaming,
    progress,
)
from hgviz.errors import LISTED, HgvizWarning, require
from hgviz.examples import Batch, Examples
from hgviz.maps.rule import Grouped
from hgviz.models import data as tables
from hgviz.tasks.captures import require_causal

if TYPE_CHECKING:
    from hgviz.models.model import Model
    from hgviz.models.training import Report
    from hgviz.models.trials import Trials

MOST_SIGNALS = 4 << 30  # bytes of the images or sounds that a model is scored on


def train(config: str | Path, out: str | Path) -> Report:
    """Train a model as a TOML file says, into a folder, or resume its training."""
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
    ablation: Ablation = "zero",
) -> statistics.Evaluation:
    """Score a model on data; see examples_from for what each kind of model is scored on.

    The progress carries the score so far: examples come in one random order, so it is unbiased and
    its interval shrinks. streaming: heads that attend to the first and the latest keys. limit,
    batch_size: as in examples_from. ablation: what takes the place of heads that are off. Raises
    HgvizError for data that cannot be used, labels that the model does not have, and heads that
    cannot stream.
    """
    from hgviz.models.trials import Trials

    require_causal(model.spec, streaming)
    require(
        not (streaming.heads and model.spec.two_texts),
        "streaming heads cannot be scored in this model: "
        "it reads two texts, and what its caches keep of them is not known",
        "Leave out --streaming",
    )
    progress(0, 1, f"reading {Path(data).name}")
    examples = examples_from(model, data, text_column, label_column, labels, limit, batch_size)
    if model.spec.goal == "states":  # compared with the states of the whole model
        trials = Trials(model, examples, streaming=streaming, ablation=ablation)
        evaluation = statistics.evaluate(lambda batch: trials.without(batch, off), examples, off)
    else:
        trials = Trials(model, examples, off, cache_bytes=0, streaming=streaming, ablation=ablation)
        evaluation = statistics.evaluate(trials.baseline, examples, off)
    evaluation = replace(evaluation, ablation=ablation)
    if not streaming.heads:
        return evaluation
    longest = max((row.ids for row in examples.rows), key=len)
    share = _cached_share(model, longest, off, streaming)
    return replace(evaluation, streaming=streaming, longest=len(longest), cached=share)


def answers_of(trials: Trials, answer: Callable[[Batch], Any], note: str) -> statistics.Answers:
    """What a model answers at every place; answer: the losses and answers of a batch."""
    answers, batches = statistics.Answers.unasked(trials.examples), trials.batches
    for number, batch in enumerate(batches, 1):
        answers.put(trials.examples, batch, answer(batch))
        progress(number, len(batches), note)
    return answers


def _cached_share(model: Model, ids: Integers, off: HeadSet, streaming: Streaming) -> float:
    """The share of the keys and values of a text, over all layers, that heads with these windows
    need. Keys that heads share count as long as one of the heads needs them."""
    from hgviz.models.run import CaptureRecorder, DenseWeights

    needed, total = 0, 0

    def count(index: int, record: Any) -> None:
        nonlocal needed, total
        layer, band = model.spec.layers[index], None
        if isinstance(record, DenseWeights):
            groups, _, keys = record.values.shape
        else:
            k, band = record.k, record.rule.band
            groups, keys = (k.stored if isinstance(k, Grouped) else k).shape[:2]
        most = keys if band is None else min(keys, band[0] + 1)
        fewest, shared = min(most, sum(streaming.window)), len(layer.heads) // groups
        streams = streaming.places(layer.index, layer.heads)
        by_head = [
            0 if HeadId(layer.index, head) in off else fewest if place in streams else most
            for place, head in enumerate(layer.heads)
        ]
        starts = range(0, len(by_head), shared)
        needed += sum(max(by_head[start : start + shared]) for start in starts)
        total += groups * most

    model.observe(model.from_ids(ids), observers=(CaptureRecorder(count),))
    return needed / total


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
    examples = _read(model, data, (text_column, label_column), labels)
    if examples.note:
        warnings.warn(examples.note, HgvizWarning, stacklevel=2)
    is_even = getattr(model.config, "unpadded", False)
    examples = replace(examples, even=is_even, batch_size=batch_size)
    return examples if limit is None else examples.sample(limit)


def _read(
    model: Model, data: str | Path, columns: tuple[str, str], labels: Mapping[str, str] | None
) -> Examples:
    from hgviz import examples
    from hgviz.models.prompts import read_text

    spec, limit = model.spec, model.spec.max_positions
    require(
        spec.answers,
        "this model cannot be scored: it needs a second text",
        "Choose a classifier, a language model or a masked language model",
    )

    def encode_all(names: Sequence[str]) -> list[Prompt]:
        if spec.modality == "text":
            return model.encode_all(names)
        return _read_signals([Path(data).parent / name for name in names], model.from_signal)

    if spec.two_texts and spec.goal in ("next", "states"):
        is_file = spec.modality != "text"
        rows = tables.read_corpus(data, True, False, *columns, is_file).texts
        targets = [model.encode_target(row.target or "") for row in rows]
        sources = encode_all([row.text for row in rows])
        if spec.goal == "states":
            return examples.state_examples(targets, limit, sources)
        return examples.seq2seq_examples(sources, targets, limit)
    if spec.goal == "classes":
        table = tables.read_rows(data, *columns)
        wanted = table.class_indices(spec.labels, labels)
        prompts = encode_all(table.texts)
        scored = examples.classification_examples(prompts, wanted, spec.labels, limit)
        ids = [*table.numeric_labels(spec.labels, labels).items()][:LISTED]
        names = ", ".join(f"{label} = {spec.labels[number]}" for label, number in ids)
        scored = repeated_as_target(scored, model.shift_right) if spec.reads_twice else scored
        return replace(scored, note=f"Labels are class IDs: {names}." if ids else "")
    if spec.goal == "tags":
        tagged = tables.read_tagged(data, *columns)
        prompts, tags = tables.tagged_prompts(tagged, spec.labels, model.encode, labels)
        return examples.tagging_examples(prompts, tags, spec.labels, limit)
    if spec.goal == "ends":
        questions = tables.question_prompts(tables.read_questions(data), model.encode)
        scored = examples.question_examples(*questions, limit)
        return repeated_as_target(scored, model.shift_right) if spec.reads_twice else scored
    is_whole = spec.goal != "states" and not tables.is_table(data)
    texts = [read_text(data)] if is_whole else tables.read_texts(data, columns[0])
    if spec.goal == "states":
        return examples.state_examples(encode_all(texts), limit)
    prompts = model.encode_all(texts)
    if spec.goal == "next":  # rotary models read longer texts than they are made for, badly
        lengths = limit, getattr(model.config, "context_length", None)
        return examples.next_token_examples(prompts, min(filter(None, lengths), default=None))
    mask = model.tokenizer.encode("[MASK]")  # by whichever name the tokenizer has for it
    names_of_mask = ("[MASK]", "<mask>")
    ids_of_mask = [
        int(id_) for id_, piece in zip(mask.ids, mask.pieces, strict=True) if piece in names_of_mask
    ]
    require(ids_of_mask, "the tokenizer has no [MASK]", "Use the model's own tokenizer")
    return examples.masked_token_examples(prompts, ids_of_mask[0], limit)


def _read_signals(paths: Sequence[Path], read: Callable[[Path], Prompt]) -> list[Prompt]:
    """The prompts of images or sounds. Raises HgvizError where they do not fit memory."""
    prompts: list[Prompt] = []
    size = 0
    for path in paths:
        prompts.append(read(path))
        size += 0 if (signal := prompts[-1].signal) is None else signal.values.nbytes
        require(
            size <= MOST_SIGNALS,
            f"{len(paths):,} images or sounds do not fit in memory: "
            f"the first {len(prompts):,} take {size / 1e9:.1f} GB",
            "Use fewer",
        )
    return prompts


def repeated_as_target(scored: Examples, shifted: Callable[[Integers], Integers]) -> Examples:
    """Examples whose text the decoder reads as well, one token later, as BART and T5 classify.

    shifted: the ids that the decoder reads for those of a text.
    """
    rows = (replace(row, ids=shifted(row.ids), first=row) for row in scored.rows)
    return replace(scored, rows=tuple(rows))
