"""Heads removed for good: a folder without them, which proves itself before it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hgviz.core import HeadId, HeadSet, HgvizError, ModelSpec, progress
from hgviz.files import resource
from hgviz.study import SCORE
from hgviz.tasks.opening import Path_, heads_from
from hgviz.tasks.scoring import examples_from

if TYPE_CHECKING:
    from hgviz.examples import Examples
    from hgviz.models.layers import Tokens
    from hgviz.models.model import Model
    from hgviz.models.surgery.compensation import Compensation
    from hgviz.models.surgery.proof import Form, Latency, Proof, Read, Runner
    from hgviz.models.tensors import Checkpoint
    from hgviz.study import Study

PROOF_TOKENS = 1 << 18  # of the data, in their random order
COMPENSATION_TOKENS = 1 << 16
SAMPLED = 256  # texts of the sample, where there is no data
BEST = ("loo", SCORE, "shapley")  # the loss itself, and what foretells it best


def prune(
    path: Path_,
    off: HeadSet | str,
    out: Path_,
    form: Form = "smaller",
    compensate: Compensation = "none",
    data: Path_ | None = None,
    text_column: str = "",
    label_column: str = "",
    labels: Mapping[str, str] | None = None,
) -> Proof:
    """Write a checkpoint without these heads into a folder that does not exist yet, or is empty.

    off: heads, or their names such as "3.5,4.*". form: "smaller", hgviz's own folder, of models of
    transformers their own; "zeroed", all files as they are but for zeros in W_O.
    compensate: see models.compensation; it and the proof look at data, or at texts of the sample
    where none is given. Nothing is left behind where the export fails its proof. Errors:
    HgvizError.
    """
    progress(0, 1, "loading torch")
    from hgviz.models import checkpoints, open_model
    from hgviz.models.surgery import export

    with export.kept_if_proved(Path(out)) as fresh:
        model = open_model(path, "cpu")
        heads = heads_from(off, model.spec) if isinstance(off, str) else off
        found = checkpoints.read(path)
        export.require_some(found, heads)
        progress(0, 1, "reading texts")
        read = proof_texts(model, data, text_column, label_column, labels)
        changed = _compensated(found, model, heads, read.batches, compensate)
        progress(0, 1, f"writing {Path(out).name}")
        weights = export.written(changed, heads, form, fresh)
        return _proved(
                found, changed, model, heads, read, weights,
                {"form": form, "compensation": compensate, "path": Path(out)},
            )  # fmt: skip


def heads_of_study(study: Path_, model: Path_, keep: str, method: str = "") -> HeadSet:
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
    data: Path_ | None,
    text: str = "",
    label: str = "",
    labels: Mapping[str, str] | None = None,
) -> Read:
    """What a changed model is compared on: data, or texts of the sample where none is given; text
    and label name its columns, labels what the model calls its labels. Models of images and sounds
    are compared on random ones where no data is given."""
    from hgviz import examples
    from hgviz.models.texts.labelled import read_rows

    spec = model.spec
    if data is not None:
        found = examples_from(model, data, text, label, labels)
        return _read(found, spec, Path(data).name)
    if spec.modality != "text":
        from hgviz.models.huggingface import Transformers
        from hgviz.models.inputs import READS
        from hgviz.models.surgery.proof import DRAWN, Read

        some = cast(Transformers, model.module).drawn(DRAWN)
        return Read((some,), f"random {READS[spec.modality]}", "classes", DRAWN)
    if not spec.two_texts:
        rows = read_rows(resource("sample") / "reviews.tsv").texts[:SAMPLED]
        try:
            prompts = [model.tokenizer.encode(one) for one in rows]
        except HgvizError:  # a model whose tokens no text has
            return _drawn(spec)
        found = examples.classification_examples(prompts, [0] * len(rows), (), spec.max_positions)
        return _read(found, spec, "the sample's reviews")
    return _drawn(spec)


def _read(found: Examples, spec: ModelSpec, source: str) -> Read:
    from hgviz.models.surgery.proof import Read, texts_of

    batches = tuple(texts_of(found, spec, PROOF_TOKENS))
    return Read(batches, source, found.asked, len(found), found.texts)


def _drawn(spec: ModelSpec) -> Read:
    from hgviz.models.surgery.proof import DRAWN, Read, drawn

    return Read((drawn(spec, DRAWN),), "random tokens", "classes", DRAWN)


def last(parts: Iterable[Any], total: int, note: str) -> Any:
    """The last of some values, each of which is a step."""
    value = None
    for done, value in enumerate(parts, 1):
        progress(done, total, note, value)
    return value


# --- inside ---------------------------------------------------------------------------------------


def _least_needed(study: Study, method: str) -> Sequence[HeadId]:
    from hgviz.analysis.importance import METHODS, importance

    measured = [name for name in (*BEST, *METHODS) if METHODS[name].measured(study)]
    if not method and not measured:
        raise HgvizError(
            "the study has no score of its heads: it was stopped before it measured one",
            "Measure them with `hgviz importance`",
        )
    return importance(study, method or measured[0]).least


def _compensated(
    found: Checkpoint, model: Model, off: HeadSet, texts: Sequence[Any], how: Compensation
) -> Checkpoint:
    from hgviz.models.surgery import compensation, proof, removal

    if how == "none":
        return found
    read = list(accumulate(map(proof.tokens, texts)))
    some = texts[: 1 + sum(one < COMPENSATION_TOKENS for one in read)]
    given = model.module, model.spec, off, some
    if how == "mean":
        means = last(compensation.means(*given), len(some), "taking means")
        return removal.shifted(found, means or {})
    layers = len(model.spec.layers)
    gates = last(compensation.gates(*given), layers, "fitting gates")
    return removal.scaled(found, gates or {})


def _proved(
    found: Checkpoint,
    changed: Checkpoint,
    model: Model,
    off: HeadSet,
    read: Read,
    weights: Path,
    about: dict[str, Any],
) -> Proof:
    from hgviz.models import checkpoints
    from hgviz.models.surgery import export, proof, removal

    form, texts = about["form"], read.batches
    rough, dtype = None, ""
    after = export.opened(weights, "float32")
    for dtype in ("float32", "float64"):
        other = after if dtype == "float32" else export.opened(weights, dtype)
        parts = proof.differences(export.masked(changed, off, dtype), other, texts)
        agreed, largest = last(parts, len(texts), f"comparing logits in {dtype}")
        if agreed <= proof.MOST:
            break
        rough = rough or agreed  # sums in another order
    proof.require_close(agreed)
    left = found if form == "zeroed" else removal.without(found, off)
    sizes, times = _timed(found, left, model, form, after, texts[0])
    opens = export.opens(left) if form == "smaller" else ""
    same = opens or form == "zeroed"  # the original's own files
    left_out = checkpoints.files_beside(found, weights.parent)[1] if same else ()
    spec = model.spec
    gone = [one.index for one in spec.layers
            if all(HeadId(one.index, head) in off for head in one.heads)]  # fmt: skip
    made = proof.Proof(
        spec=spec, off=off, difference=agreed, largest=largest, dtype=dtype, rough=rough,
        texts=sum(map(proof.count, texts)),
        parameters=(export.parameters(found), export.parameters(left)),
        size=sizes, latency=times, read=read, source=read.source, empty=tuple(gone),
        opens=opens, left_out=tuple(map(str, left_out)), **about,
    )  # fmt: skip
    progress(1, 1, "keeping it")  # stopped here, it is not: the folder has no name yet
    return made


def _timed(
    found: Checkpoint, left: Checkpoint, model: Model, form: Form, after: Runner, text: Tokens
) -> tuple[tuple[int, int], tuple[Latency, ...]]:
    """Bytes of the whole model and of what is left of it, and how long passes of both take."""
    from hgviz.models.surgery import export, proof

    sizes, times = (export.size(found), export.size(left)), []
    if form == "zeroed":  # zeros are multiplied like other numbers
        return sizes, ()
    batches = [proof.timed(text, count) for count in proof.BATCHES]
    for time in proof.latencies(proof.runner(model.module), after, batches):
        times.append(time)
        progress(len(times), len(batches), "measuring how fast it is")
    return sizes, tuple(times)
