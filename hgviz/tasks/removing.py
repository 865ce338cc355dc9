"""Heads removed for good: a folder without them, which proves itself before it is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hgviz.core import HeadId, HeadSet, HgvizError, ModelSpec, parse_heads, progress
from hgviz.errors import require
from hgviz.files import resource, short_path
from hgviz.study import SCORE
from hgviz.tasks.scoring import examples_from

if TYPE_CHECKING:
    from hgviz.examples import Examples
    from hgviz.models.layers import Tokens
    from hgviz.models.model import Model
    from hgviz.models.pruning import Compensation, Form, Proof, ProofTexts
    from hgviz.study import Study

PROOF_TOKENS = 1 << 18  # of the data, in their random order
SAMPLED = 256  # texts of the sample, where there is no data
BEST = ("loo", SCORE, "shapley")  # the loss itself, and what foretells it best


def prune(
    path: str | Path,
    off: HeadSet | str,
    out: str | Path,
    form: Form = "smaller",
    compensate: Compensation = "none",
    data: str | Path | None = None,
    text_column: str = "",
    label_column: str = "",
    labels: Mapping[str, str] | None = None,
) -> Proof:
    """Write a checkpoint without these heads into a folder that does not exist yet, or is empty.

    off: heads, or their names such as "3.5,4.*". form: "smaller", hgviz's own folder, of models of
    transformers their own; "zeroed", all files as they are but for zeros in W_O.
    compensate: see pruning.compensate; it and the proof look at data, or at texts of the sample
    where none is given. Nothing is left behind where the export fails its proof. Errors:
    HgvizError.
    """
    progress(0, 1, "loading torch")
    from hgviz.models import checkpoints, open_model, pruning

    with pruning.staged_folder(Path(out)) as stage:
        model = open_model(path, "cpu")
        heads = parse_heads(off, model.spec.layers) if isinstance(off, str) else off
        found = checkpoints.read(path)
        require(
            heads,
            f"no head is named: {short_path(found.folder)} would only be copied",
            "Name heads by --off, such as 3.5,4.*",
        )
        progress(0, 1, "reading texts")
        read = proof_texts(model, data, text_column, label_column, labels)
        changed = pruning.compensate(found, model, heads, read.batches, compensate)
        progress(0, 1, f"writing {Path(out).name}")
        weights = pruning.write_pruned(changed, heads, form, stage)
        return pruning.prove(
            found, changed, weights, model, heads, read, form, compensate, Path(out)
        )


def heads_of_study(study: str | Path, model: str | Path, keep: str, method: str = "") -> HeadSet:
    """The heads that a study finds least needed, all but N or P % of them.

    method: one of analysis.importance; left out, the first that the study has measured of those
    that tell best. Errors: HgvizError for a study of another model, or one without any score.
    """
    progress(0, 1, f"reading {Path(study).name}")
    from hgviz.models import checkpoints
    from hgviz.store import open_study

    found = open_study(study)
    if found.spec.digest != checkpoints.read(model).digest:
        raise HgvizError(
            f"{Path(study).name} is about another model: it measured {found.spec.name}",
            "Choose the model it was made with, or measure this one with `hgviz importance`",
        )
    count = kept_count(keep, found.spec)
    order = _least_needed(found, method)
    going = len(found.spec.heads) - count - len(found.off)
    if going > len(order):
        raise HgvizError(
            f"{Path(study).name} tells of {len(order)} heads, and {going} are to go: "
            "it has not measured the others",
            "Let `hgviz importance` finish it, or keep more heads",
        )
    return found.off | frozenset(order[: max(0, going)])


def kept_count(keep: str, spec: ModelSpec) -> int:
    """How many heads "24" or "50%" leaves of a model. Errors: HgvizError."""
    number, percent, rest = keep.strip().partition("%")
    total = len(spec.heads)
    try:
        value = float(number) * total / 100 if percent else int(number)
    except ValueError:
        value = -1
    if rest or not 0 <= value <= total:
        raise HgvizError(
            f"{keep[:40]!r} does not say how many heads to keep: the model has {total}",
            f"Give a number up to {total}, or a share such as 50%",
        )
    return round(value)


def proof_texts(
    model: Model,
    data: str | Path | None,
    text: str = "",
    label: str = "",
    labels: Mapping[str, str] | None = None,
) -> ProofTexts:
    """What a changed model is compared on: data, or texts of the sample where none is given; text
    and label name its columns, labels what the model calls its labels. Models of images and sounds
    are compared on random ones where no data is given."""
    from hgviz.examples import classification_examples
    from hgviz.models import pruning
    from hgviz.models.data import read_rows

    spec = model.spec

    def texts_of(examples: Examples, source: str) -> ProofTexts:
        batches = tuple(pruning.example_batches(examples, spec, PROOF_TOKENS))
        return pruning.ProofTexts(batches, source, examples.asked, len(examples), examples.texts)

    def random_texts(batch: Tokens, noun: str) -> ProofTexts:
        return pruning.ProofTexts((batch,), f"random {noun}", "classes", pruning.RANDOM_TEXTS)

    if data is not None:
        return texts_of(examples_from(model, data, text, label, labels), Path(data).name)
    if spec.modality != "text":
        from hgviz.models.huggingface import Transformers
        from hgviz.models.model import READS

        signals = cast(Transformers, model.module).random_signals(pruning.RANDOM_TEXTS)
        return random_texts(signals, READS[spec.modality])
    if not spec.two_texts:
        rows = read_rows(resource("sample") / "reviews.tsv").texts[:SAMPLED]
        with suppress(HgvizError):  # a model whose tokens no text has
            prompts = [model.tokenizer.encode(row) for row in rows]
            sample = classification_examples(prompts, [0] * len(rows), (), spec.max_positions)
            return texts_of(sample, "the sample's reviews")
    return random_texts(pruning.random_batch(spec), "tokens")


# --- inside ---------------------------------------------------------------------------------------


def _least_needed(study: Study, method: str) -> Sequence[HeadId]:
    from hgviz.analysis.importance import METHODS, importance

    measured = [name for name in (*BEST, *METHODS) if METHODS[name].is_measured(study)]
    if not method and not measured:
        raise HgvizError(
            "the study has no score of its heads: it was stopped before it measured one",
            "Measure them with `hgviz importance`",
        )
    return importance(study, method or measured[0]).least_needed
