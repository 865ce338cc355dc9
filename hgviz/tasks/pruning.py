"""Pruning: trials and curves with heads off, learned importance, and the removal of heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hgviz.analysis.importance import (
    METHODS,
    POINTS,
    Limits,
    MaskTrial,
    bits_per_byte,
    curve_points,
    importance,
    mean_along,
    order_by_need,
    pruning_curve,
    random_band,
    random_chance,
    random_curves_beside,
    random_order,
    removable_heads,
    split_examples,
    try_mask,
)
from hgviz.analysis.statistics import Answers
from hgviz.core import (
    Ablation,
    HeadId,
    HeadSet,
    HgvizError,
    ModelSpec,
    progress,
    progress_within,
)
from hgviz.errors import require
from hgviz.examples import Examples, classification_examples
from hgviz.files import find_path, resource, short_path
from hgviz.maskfile import read_heads, write_mask
from hgviz.models import checkpoints, open_model
from hgviz.models.data import read_rows
from hgviz.study import SCORE, LearnedImportance, PruningCurve, Study
from hgviz.tasks.scoring import answers_of, examples_from

if TYPE_CHECKING:
    from hgviz.models.layers import Tokens
    from hgviz.models.model import Model
    from hgviz.models.pruning import Compensation, Form, Proof, ProofTexts
    from hgviz.models.trials import Trials

BAND = 13  # points along a random order, of which there are many
TIMED = 16  # texts of a pass that is timed


def trials_of(
    model: Model,
    data: str | Path,
    text_column: str = "",
    label_column: str = "",
    off: HeadSet = frozenset(),
    limit: int | None = None,
    labels: Mapping[str, str] | None = None,
    batch_size: int | None = None,
    ablation: Ablation = "zero",
    seed: int = 0,
) -> Trials:
    """A model and data, for passes with other heads off; ablation, seed: as in Trials.

    The other arguments and errors are those of examples_from. Also raises HgvizError where
    switching off a whole layer changes nothing.
    """
    progress(0, 1, f"reading {Path(data).name}")
    examples = examples_from(model, data, text_column, label_column, labels, limit, batch_size)
    return trials_on(model, examples, off, ablation=ablation, seed=seed)


def trials_on(
    model: Model,
    examples: Examples,
    off: HeadSet = frozenset(),
    sizes: Sequence[int] = (),
    ablation: Ablation = "zero",
    seed: int = 0,
) -> Trials:
    """A model and examples, for passes with other heads off; sizes: as in Examples.blocks.

    Raises HgvizError where switching off a whole layer changes nothing.
    """
    from hgviz.models.trials import Trials

    trials = Trials(model, examples, off, sizes=sizes, ablation=ablation, seed=seed)
    trials.require_effect()
    return trials


def try_heads(trials: Trials, off: HeadSet) -> MaskTrial:
    """What the model answers with heads off, beside the baseline; see analysis.importance."""
    trial = MaskTrial(off, trials.examples, head_costs=trials.head_costs)
    return try_mask(trial, trials.blocks, trials.baseline, partial(trials.without, off=off))


def curve(
    trials: Trials,
    study: Study,
    method: str = SCORE,
    random: int = 20,
    least: int = 0,
    most: int | None = None,
    timed: bool = False,
) -> Study:
    """A score along an order of the study's heads, beside so many random orders, in the study.

    The order is made from one half of the examples and measured on the other; method "random": the
    random orders alone. least: heads that stay in every layer. most: points along the curve; random
    ones have fewer. timed: with the times of the order's points, see curve_times. The progress
    carries the study so far; curves that it has are not measured again. Raises HgvizError for a
    method that was not measured.
    """
    limits = Limits(study.heads, least, off=study.off)
    seeds = range(study.seed + 1, study.seed + 1 + random)
    lines: list[Along] = [("random", seed, random_order(limits, seed)) for seed in seeds]
    if method != "random":
        rows, _ = split_examples(len(study), study.seed)
        order = order_by_need(importance(study, method, rows=rows).need, limits)
        lines.insert(0, (method, study.seed, order))
    study = _along(trials, study, lines, least, most)
    return curve_times(trials, study, newest_curve(study, method, least)) if timed else study


def curve_times(trials: Trials, study: Study, one: PruningCurve) -> Study:
    """The study with the times of one of its curves, see Curve.times; one that has them is left.

    At each point a model is built that really lacks the heads, and takes turns with the whole one
    on the examples' first texts, over and over where they are few, cut to TIMED_TOKENS: with all
    points or not at all, so that all are of one machine. Errors: HgvizError for a study of
    another model, and for a model that cannot be made smaller.
    """
    require(
        study.spec.digest == trials.model.spec.digest,
        f"the study is of another model: it measured {study.spec.name}",
        "Open the model of the study",
    )
    if one.times is not None:
        return study
    progress(0, len(one.removed), "full model")
    from hgviz.models import pruning

    text = pruning.example_batches(trials.examples, trials.model.spec, 1)[0]
    text, times = pruning.timed_batch(text, TIMED), []
    whole = pruning.runner_without(trials.model, frozenset())
    for at, count in enumerate(one.removed.tolist()):
        smaller = pruning.runner_without(trials.model, study.off | one.off(count))
        note = f"{count} of {len(one.order)} heads off"
        with progress_within(at, at + 1, len(one.removed)):
            latency = pruning.measure_latency(whole, smaller, text, note)
        times.append((latency.before, latency.after))
    timed = replace(one, times=np.array(times, np.float32))
    return replace(study, curves=tuple(timed if each is one else each for each in study.curves))


Along = tuple[str, int, tuple[HeadId, ...]]  # method, seed, order: what a curve is along


def _along(
    trials: Trials, study: Study, lines: Sequence[Along], least: int, most: int | None
) -> Study:
    """The study with a score along each of some orders, but for those that it has."""
    _, rows = split_examples(len(study), study.seed)
    require(
        len(rows),
        "one example is too few for a curve: its order needs other examples",
        "Use more data",
    )
    require(
        all(order for *_, order in lines),
        f"no head can be removed: at least {least} stay in each layer",
        "Choose a lower minimum",
    )
    trials, known = trials.part(rows), study.curves
    ends: dict[HeadSet, Answers] = {}  # with no head off and with all, which all orders share
    for number, (method, seed, order) in enumerate(lines):
        removed = curve_points(len(order), most or POINTS)
        if method == "random":
            removed = removed[curve_points(len(removed) - 1, BAND)]
        if any(
            (one.method, one.order) == (method, order)
            and np.array_equal(one.rows, rows)
            and np.array_equal(one.removed, removed)
            for one in known
        ):
            continue
        note = f"{method} order {number}" if method == "random" else f"{method} order"
        kind = (method, seed, len(order))
        others = [one for one in study.curves if (one.method, one.seed, len(one.order)) != kind]
        answers: list[Answers] = []
        for at, count in enumerate(removed.tolist(), 1):
            off, done = frozenset(order[:count]), number + at / len(removed)
            with progress_within(done - 1 / len(removed), done, len(lines)):
                answers.append(
                    ends.get(off) or answers_of(trials, partial(trials.without, off=off), note)
                )
            if count in (0, len(order)):
                ends[off] = answers[-1]
            losses, given = (np.stack([getattr(answer, name) for answer in answers])
                             for name in ("loss", "predictions"))  # fmt: skip
            points = removed[:at].tolist()
            one = pruning_curve(study, order, points, losses, given, rows, method, seed)
            study = replace(study, curves=(*others, one))
            progress(done, len(lines), note, study)
    return study


def newest_curve(study: Study, method: str, least: int = 0) -> PruningCurve:
    """The curve of a method that was measured last, where so many heads stay in every layer."""
    layers = Counter(head.layer for head in study.heads if head not in study.off)
    length = sum(max(0, count - least) for count in layers.values())
    return next(
        curve for curve in reversed(study.curves)
        if (curve.method, len(curve.order)) == (method, length)
    )  # fmt: skip


def curve_facts(study: Study, curve: PruningCurve) -> dict[str, Any]:
    """As `hgviz curve --json` prints it; of language models the loss comes first."""
    randoms = random_curves_beside(study, curve)
    band = random_band(randoms)
    places = {int(count): at for at, count in enumerate(band.removed)}
    columns: dict[str, Any] = {"off": curve.removed}
    if study.asked == "next":
        columns |= {"loss": curve.loss, "perplexity": np.exp(curve.loss.astype(float))}
    if (bits := bits_per_byte(study, curve)) is not None:
        columns["bits_per_byte"] = bits
    columns |= {"value": curve.values, "low": curve.low, "high": curve.high, "loss": curve.loss}
    points = []
    for at, count in enumerate(curve.removed.tolist()):
        point = {name: values[at].item() for name, values in columns.items()}
        for name in ("low", "middle", "high"):
            place = places.get(count)
            point[f"random_{name}"] = None if place is None else float(getattr(band, name)[place])
        whole, smaller = (None, None) if curve.times is None else map(float, curve.times[at])
        points.append(point | {"ms": smaller, "whole_ms": whole})
    k, k_low = removable_heads(curve)
    return {
        "method": curve.method, "metric": curve.unit, "examples": len(curve.rows),
        "k": k, "k_low": k_low, "area": mean_along(curve.removed, curve.values),
        "p": random_chance(curve, randoms), "randoms": len(randoms),
        "order": [str(head) for head in curve.order], "points": points,
    }  # fmt: skip


def with_learned(study: Study, learned: Sequence[LearnedImportance]) -> Study:
    """The study with learned importance, in place of what it had of the same methods."""
    methods = {importance.method for importance in learned}
    others = (importance for importance in study.learned if importance.method not in methods)
    return replace(study, learned=(*others, *learned))


# --- removal --------------------------------------------------------------------------------------

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
    announce: Callable[[str], None] | None = None,
    force: bool = False,
    mask: str | Path | None = None,
) -> Proof:
    """Write a checkpoint without these heads into a folder that is new or empty.

    Args:
        off: heads, or their names such as "3.5,4.*", or "@FILE" for a mask file.
        form: "smaller", a folder of hgviz, of a model of transformers its own, with fewer weights;
            "zeroed", the original files with zeros in W_O.
        compensate: as in pruning.compensate; it and the proof read data, or texts of the sample.
        announce: called, before anything is written, with a sentence that says what will open the
            folder and which texts the proof reads.
        force: replace a checkpoint that the folder holds.
        mask: a mask file that is written with the heads.

    Raises HgvizError; a folder that fails its proof is not left behind.
    """
    progress(0, 1, "loading torch")
    from hgviz.models import pruning

    require(
        not (force and Path(out).exists() and Path(out).samefile(find_path(path))),
        f"{short_path(Path(out))} is the model itself, which would be replaced",
        "Choose another folder",
    )
    with pruning.staged_folder(Path(out), force) as stage:
        model = open_model(path, "cpu")
        heads = read_heads(off, model.spec) if isinstance(off, str) else off
        checkpoint = checkpoints.read(path)
        require(
            heads,
            f"no head is named: {short_path(checkpoint.folder)} would only be copied",
            "Name heads by --off, such as 3.5,4.*",
        )
        progress(0, 1, "reading texts")
        read = _proof_texts(model, data, (text_column, label_column), labels)
        if announce is not None:
            opens = "opens in any program that opens the original"
            if form == "smaller":
                opens = pruning.opened_by(pruning.remove_heads(checkpoint, heads))
                opens = opens or "opens in hgviz"
            announce(
                f"Verifying with {read.amount} of {read.source}. "
                f"Once saved, {Path(out).name} {opens}."
            )
        changed = pruning.compensate(checkpoint, model, heads, read.batches, compensate)
        progress(0, 1, f"writing {Path(out).name}")
        weights = pruning.write_pruned(changed, heads, form, stage)
        proof = pruning.prove(
            checkpoint, changed, weights, model, heads, read, form, compensate, Path(out)
        )
        if mask is not None:
            write_mask(mask, model.spec, heads)
        return proof


def heads_of_study(
    study: Study | str | Path, model: str | Path, keep: str, method: str = ""
) -> HeadSet:
    """The least important heads of a study, all but N or P % of them.

    method: one of analysis.importance; left out, the first that the study has measured of those
    that tell best. Errors: HgvizError for a study of another model, or one without any score.
    """
    from hgviz.store import open_study

    name = "the study" if isinstance(study, Study) else Path(study).name
    progress(0, 1, f"reading {name}")
    stored = study if isinstance(study, Study) else open_study(study)
    require(
        stored.spec.digest == checkpoints.read(model).digest,
        f"{name} is about another model: it measured {stored.spec.name}",
        "Choose the model of the study, or measure this one with `hgviz importance`",
    )
    return heads_to_remove(stored, keep, method)


def heads_to_remove(study: Study, keep: str, method: str = "") -> HeadSet:
    """All heads of a study but the N or P % most important ones, see heads_of_study."""
    count = kept_count(keep, study.spec)
    measured = [name for name in (*BEST, *METHODS) if METHODS[name].is_measured(study)]
    require(
        method or measured,
        "the study has no scores: it was stopped before it measured any",
        "Measure them with `hgviz importance`",
    )
    order = importance(study, method or measured[0]).least_needed
    going = len(study.spec.heads) - count - len(study.off)
    require(
        going <= len(order),
        f"{Path(study.path).name or 'the study'} has scores of {len(order)} heads: "
        f"{going} are to be removed",
        "Complete it with `hgviz importance`, or keep more heads",
    )
    return study.off | frozenset(order[: max(0, going)])


def kept_count(keep: str, spec: ModelSpec) -> int:
    """How many heads "24" or "50%" leaves of a model. Errors: HgvizError."""
    number, percent, rest = keep.strip().partition("%")
    total = len(spec.heads)
    try:
        value = float(number) * total / 100 if percent else int(number)
    except ValueError:
        value = -1
    require(
        not rest and 0 <= value <= total,
        f"{keep[:40]!r} is neither a whole number nor a percentage of the {total} heads",
        f"Give a whole number up to {total}, or a share such as 50%",
    )
    return round(value)


def _proof_texts(
    model: Model,
    data: str | Path | None,
    columns: tuple[str, str],
    labels: Mapping[str, str] | None,
) -> ProofTexts:
    """What a changed model is compared on: data; without it texts of the sample, or random images
    or sounds."""
    from hgviz.models import pruning

    spec = model.spec

    def texts_of(examples: Examples, source: str) -> ProofTexts:
        batches = tuple(pruning.example_batches(examples, spec, PROOF_TOKENS))
        return pruning.ProofTexts(batches, source, examples.asked, len(examples), examples.texts)

    def random_texts(batch: Tokens, noun: str) -> ProofTexts:
        return pruning.ProofTexts((batch,), f"random {noun}", "classes", pruning.RANDOM_TEXTS)

    if data is not None:
        return texts_of(examples_from(model, data, *columns, labels), Path(data).name)
    if spec.modality != "text":
        from hgviz.models.huggingface import Transformers
        from hgviz.models.model import READS

        signals = cast(Transformers, model.module).random_signals(pruning.RANDOM_TEXTS)
        return random_texts(signals, READS[spec.modality])
    if not spec.two_texts:
        rows = read_rows(resource("sample") / "reviews.tsv").texts[:SAMPLED]
        with suppress(HgvizError):  # a model whose tokens no text has
            prompts = model.encode_all(rows)
            sample = classification_examples(prompts, [0] * len(rows), (), spec.max_positions)
            return texts_of(sample, "the sample reviews")
    return random_texts(pruning.random_batch(spec), "tokens")
