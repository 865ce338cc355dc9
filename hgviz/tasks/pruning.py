"""Pruning: trials and curves with heads off, learned importance, and the removal of heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
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
from hgviz.core import (
    Ablation,
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    ModelSpec,
    progress,
    progress_within,
)
from hgviz.errors import require
from hgviz.files import find_path, resource, short_path
from hgviz.maskfile import read_heads, write_mask
from hgviz.study import SCORE, LearnedImportance, PruningCurve, Study
from hgviz.tasks.scoring import examples_from

if TYPE_CHECKING:
    from hgviz.examples import Batch, Examples
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
    return trials_on(
        model,
        examples_from(model, data, text_column, label_column, labels, limit, batch_size),
        off,
        ablation=ablation,
        seed=seed,
    )


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

    def without(batch: Batch) -> Any:
        return trials.without(batch, off)

    trial = MaskTrial(off, trials.examples, head_costs=trials.head_costs)
    return try_mask(trial, trials.blocks, trials.baseline, without)


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

    The order is made from one half of the examples and measured on the other. least: heads that
    stay in every layer. most: points along the curve; random ones have fewer. timed: with the times
    of the order's points, see curve_times. The progress carries the study
    so far; curves that it has are not measured again. Errors: HgvizError for a method that was not
    measured.
    """
    limits = Limits(study.heads, least, off=study.off)
    own = (method, study.seed, order_of(study, limits, method))
    lines = [own, *at_random(study, limits, random)]
    study = _along(trials, study, lines, least, most or POINTS)
    if timed:
        study = timed_along(trials, study, own, most or POINTS)
    return study


def timed_along(trials: Trials, study: Study, line: Along, most: int) -> Study:
    """The study with the times of the curve along one of its orders."""
    _, rows = split_examples(len(study), study.seed)
    removed = curve_points(len(line[-1]), most)
    one = next(one for one in study.curves if _is(one, line, rows, removed))
    return curve_times(trials, study, one)


def random_curves(
    trials: Trials, study: Study, count: int, least: int = 0, most: int | None = None
) -> Study:
    """The study with a score along so many random orders, as curve measures them."""
    limits = Limits(study.heads, least, off=study.off)
    lines = at_random(study, limits, count)
    return _along(trials, study, lines, least, most or POINTS)


def curve_times(trials: Trials, study: Study, one: PruningCurve) -> Study:
    """The study with the times of one of its curves, see Curve.times; one that has them is left.

    At each point a model is built that really lacks the heads, and takes turns with the whole one
    on the examples' first texts, over and over where they are few, cut to TIMED_TOKENS: with all
    points or not at all, so that all are of one machine. Errors: HgvizError for a study of
    another model, and for a model that cannot be made smaller.
    """
    if study.spec.digest != trials.model.spec.digest:
        raise HgvizError(
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


# method, seed, order: what a curve is along
Along = tuple[str, int, tuple[HeadId, ...]]


def at_random(study: Study, limits: Limits, count: int) -> list[Along]:
    """So many random orders, each of its own seed."""
    seeds = range(study.seed + 1, study.seed + 1 + count)
    return [("random", seed, random_order(limits, seed)) for seed in seeds]


def _along(trials: Trials, study: Study, lines: Sequence[Along], least: int, most: int) -> Study:
    """The study with a score along each of some orders, but for those that it has."""
    rows, wanted = points_of(study, lines, least, most)
    answers = _Answers(trials.part(rows))
    places = len(answers.trials.examples.wanted)
    for number, removed in wanted:
        name, order = lines[number][0], lines[number][-1]
        words = f"{name} order {number}" if name == "random" else f"{name} order"
        losses = np.zeros((len(removed), places), np.float32)
        given = np.zeros((len(removed), places), np.int64)
        so_far = study
        for at, count in enumerate(removed, 1):
            done = number + at / len(removed)
            with progress_within(done - 1 / len(removed), done, len(lines)):
                losses[at - 1], given[at - 1] = answers.without(order, count, words)
            points = removed[:at], losses[:at], given[:at]
            so_far = with_curve(study, lines[number], *points, rows)
            progress(done, len(lines), words, so_far)
        study = so_far
    return study


def points_of(
    study: Study, lines: Sequence[Along], least: int, most: int
) -> tuple[Integers, list[tuple[int, Integers]]]:
    """The examples that curves are measured on, and of each line that the study has no curve of its
    number and how many heads are off at each point. Errors: HgvizError where there can be none."""
    _, rows = split_examples(len(study), study.seed)
    require(
        len(rows),
        "one example is too few for a curve: its order needs other examples",
        "Use more data",
    )
    if not all(line[-1] for line in lines):
        raise HgvizError(
            f"no head can be removed: at least {least} stay in each layer", "Choose a lower minimum"
        )
    wanted = []
    for number, line in enumerate(lines):
        removed = curve_points(len(line[-1]), most)
        if line[0] == "random":
            removed = removed[curve_points(len(removed) - 1, BAND)]
        if not any(_is(one, line, rows, removed) for one in study.curves):
            wanted.append((number, removed))
    return rows, wanted


def with_curve(
    study: Study, line: Along, removed: Integers, losses: Any, given: Any, rows: Integers
) -> Study:
    """The study with what was answered along a line, in place of an earlier one of its kind."""
    name, seed, order = line
    one = pruning_curve(study, order, removed.tolist(), losses, given, rows, name, seed)
    return _with(study, one)


def order_of(study: Study, limits: Limits, method: str) -> tuple[HeadId, ...]:
    """The order of heads by a score on one half of the examples.

    Raises HgvizError where the study does not have the score.
    """
    rows, _ = split_examples(len(study), study.seed)
    return order_by_need(importance(study, method, rows=rows).need, limits)


class _Answers:
    """What a model answers along orders of heads; those that all orders share are kept."""

    def __init__(self, trials: Trials) -> None:
        self.trials = trials
        self._kept: dict[HeadSet, tuple[Any, Any]] = {}

    def without(self, order: Sequence[HeadId], count: int, note: str) -> tuple[Any, Any]:
        """Losses and answers (places,) without the first heads of an order."""
        off = frozenset(order[:count])
        if off in self._kept:
            return self._kept[off]
        examples = self.trials.examples
        losses = np.zeros(len(examples.wanted), np.float32)
        given = np.zeros(len(examples.wanted), np.int64)
        batches = [batch for block in self.trials.blocks for batch in block]
        for number, batch in enumerate(batches, 1):
            at = examples.where(batch)
            losses[at], given[at] = self.trials.without(batch, off)
            progress(number, len(batches), note)
        if count in (0, len(order)):
            self._kept[off] = losses, given
        return losses, given


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


def _is(one: PruningCurve, line: Along, rows: Integers, removed: Integers) -> bool:
    """Whether a curve is along this line, on these rows and at these points."""
    same = (one.method, one.order) == (line[0], line[-1])
    return same and np.array_equal(one.rows, rows) and np.array_equal(one.removed, removed)


def _with(study: Study, one: PruningCurve) -> Study:
    """The study with a curve in place of an earlier one of the same kind and seed."""

    def kind(curve: PruningCurve) -> Any:
        return curve.method, curve.seed, len(curve.order)

    others = (other for other in study.curves if kind(other) != kind(one))
    return replace(study, curves=(*others, one))


def learned(gates: Sequence[str | Path], spec: ModelSpec) -> tuple[LearnedImportance, ...]:
    """The importance that trainings with gates gave the heads of a model, one for each training.

    gates: folders that hgviz train wrote, or their gates.json. Raises HgvizError for other files,
    and for gates of another model.
    """
    if not gates:
        return ()
    from hgviz.models.training import read_learned

    return read_learned(gates, spec)


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
    from hgviz.models import checkpoints, open_model, pruning

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
        read = proof_texts(model, data, text_column, label_column, labels)
        if announce is not None:
            opens = "opens in any program that opens the original"
            if form == "smaller":
                opens = (
                    pruning.opened_by(pruning.remove_heads(checkpoint, heads)) or "opens in hgviz"
                )
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
    from hgviz.models import checkpoints
    from hgviz.store import open_study

    name = "the study" if isinstance(study, Study) else Path(study).name
    progress(0, 1, f"reading {name}")
    stored = study if isinstance(study, Study) else open_study(study)
    if stored.spec.digest != checkpoints.read(model).digest:
        raise HgvizError(
            f"{name} is about another model: it measured {stored.spec.name}",
            "Choose the model of the study, or measure this one with `hgviz importance`",
        )
    return heads_to_remove(stored, keep, method)


def heads_to_remove(study: Study, keep: str, method: str = "") -> HeadSet:
    """All heads of a study but the N or P % most important ones, see heads_of_study."""
    count = kept_count(keep, study.spec)
    order = _least_needed(study, method)
    going = len(study.spec.heads) - count - len(study.off)
    if going > len(order):
        raise HgvizError(
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
    if rest or not 0 <= value <= total:
        raise HgvizError(
            f"{keep[:40]!r} is neither a whole number nor a percentage of the {total} heads",
            f"Give a whole number up to {total}, or a share such as 50%",
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
            return texts_of(sample, "the sample reviews")
    return random_texts(pruning.random_batch(spec), "tokens")


def _least_needed(study: Study, method: str) -> Sequence[HeadId]:
    measured = [name for name in (*BEST, *METHODS) if METHODS[name].is_measured(study)]
    if not method and not measured:
        raise HgvizError(
            "the study has no scores: it was stopped before it measured any",
            "Measure them with `hgviz importance`",
        )
    return importance(study, method or measured[0]).least_needed
