"""The verbs that prune: the importance of heads, pruning curves, and the removal of heads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    AblatedBy,
    Activation,
    AsJson,
    BatchSize,
    Checkpoint,
    Data,
    Device,
    Force,
    Group,
    Keep,
    Labelled,
    Limit,
    MaskOut,
    Off,
    OutFolder,
    data_file,
    hdf5,
    heads_of,
    one_of,
    open_model,
)
from hgviz.errors import HgvizError
from hgviz.language import counted, duration, join_words, number

if TYPE_CHECKING:
    from hgviz.analysis.importance import Importance
    from hgviz.core import Ablation
    from hgviz.models.model import Model
    from hgviz.models.pruning import Proof
    from hgviz.models.trials import Trials
    from hgviz.study import Study

LISTED_FILES = 8
POINTS = "what the share of right answers changes by; p: McNemar's, adjusted over all heads"


PATCHING = "patching"  # a method that compares two texts, not a score on data


def _known_method(name: str | None) -> str | None:
    """The name of a score. Raises BadParameter for one that METHODS does not have."""
    from hgviz.analysis.importance import METHODS

    return None if name is None else one_of(name, (*METHODS, PATCHING), "score")


@dataclass(frozen=True)
class DataIfAny(Labelled):
    """Data that heads are scored on; none for patching."""

    data: Annotated[
        Path | None,
        typer.Option(metavar="D|-", parser=data_file, help="Labelled rows, or a text."),
    ] = None


@dataclass(frozen=True)
class PatchedTexts(Group):
    """The two texts and the two answers of --method patching."""

    clean: Annotated[
        str | None, typer.Option(metavar="T", help="Of patching: the text with the answer.")
    ] = None
    corrupted: Annotated[
        str | None, typer.Option(metavar="T", help="Of patching: one of as many tokens, without.")
    ] = None
    answer: Annotated[
        str | None, typer.Option(metavar="T|ID", help="Of patching: the token or class of CLEAN.")
    ] = None
    wrong: Annotated[
        str | None, typer.Option(metavar="T|ID", help="Of patching: the one it is compared with.")
    ] = None


def importance(
    model: Checkpoint,
    data: DataIfAny,
    texts: PatchedTexts,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="OUT.h5", callback=hdf5, help="Output file."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="M",
            callback=_known_method,
            help="michel, the default: the sizes of slopes; signed: the loss change they predict; "
            "michel-token, bertology, fisher: other means of slopes; "
            "loo: the exact one; all-but-one: only this head in its layer; shapley: in random "
            "orders; gates: what trainings learned, by --gates; patching: what brings back the "
            "difference of two texts, by --clean, --corrupted, --answer and --wrong.",
        ),
    ] = None,
    gates: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="What hgviz train wrote about gates; once for each run."),
    ] = None,
    off: Off = "",
    ablation: AblatedBy = "zero",
    limit: Limit = None,
    batch_size: BatchSize = None,
    permutations: Annotated[
        int, typer.Option(metavar="N", min=1, help="Random orders of Shapley values.")
    ] = 20,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Of whatever is drawn.")] = 0,
    keep: Keep = "",
    mask: MaskOut = None,
    force: Force = False,
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure the importance of each head on --data, into a study -o.

    Scores have intervals of 95 % and are saved in a study file. Another --method on the same model
    and data adds to the study; what is there is not measured again. An interrupted study resumes.
    """
    from hgviz import tasks
    from hgviz.analysis.importance import METHODS
    from hgviz.analysis.importance import importance as scores_of
    from hgviz.maskfile import write_mask
    from hgviz.study import measured_together
    from hgviz.tasks.pruning import kept_count

    if method == PATCHING:
        others = {"--data": data.data, "-o": out, "--keep": keep, "--mask": mask,
                  "--ablation": ablation != "zero"}  # fmt: skip
        if given := [name for name, value in others.items() if value]:
            raise typer.BadParameter(f"--method patching compares two texts and takes no "
                                     f"{join_words(given)}.")  # fmt: skip
        _patch(open_model(model, device, activation=activation), texts, off, as_json)
        return
    if bool(keep) != (mask is not None):
        raise typer.BadParameter("--keep and --mask go together: how many heads stay, and where "
                                 "the others are written.")  # fmt: skip
    if data.data is None or out is None:
        raise typer.BadParameter("Give --data, what heads are scored on, and -o, a study.")
    loaded = open_model(model, device, activation=activation)
    score = METHODS[method or _default_score(loaded)]
    learned = tasks.learned(gates or [], loaded.spec)
    if score.learned and not learned and (force or not out.exists()):
        raise typer.BadParameter(f"{score.name} is what trainings learned: name them by --gates.")
    if keep:
        kept_count(keep, loaded.spec)
    trials = _trials(loaded, data, data.data, heads_of(off, loaded), limit, batch_size,
                     ablation, seed)  # fmt: skip
    needs = () if score.learned else measured_together(score.needs)

    def announce(seconds: float) -> None:
        terminal.remark(
            f"Measuring {join_words(need.replace('_', ' ') for need in needs)} of "
            f"{counted(len(trials.heads), 'head')} on {counted(len(trials.examples), 'example')}: "
            f"about {duration(max(1.0, seconds))}."
        )

    measure = partial(
        tasks.study, trials, needs, out, data.data.name, seed, permutations, force,
        announce if needs and not as_json else None,
    )  # fmt: skip
    work = measure
    if learned:
        work = partial(tasks.keeping, out, lambda: tasks.with_learned(measure(), learned))
    resume = f"What was measured is kept in {out}; the same command goes on from there"
    study = terminal.run(work, "Measuring heads", resume, out)
    scores = scores_of(study, score.name)
    if mask is not None:
        write_mask(mask, study.spec, tasks.heads_to_remove(study, keep, score.name))
    if as_json:
        print(json.dumps(scores.to_rows()))
        return
    terminal.show(_importance_table(study, scores))
    terminal.say(f"{out}: {counted(len(study.heads), 'head')} of {model.name}.")


def _patch(model: Model, texts: PatchedTexts, off: str, as_json: bool) -> None:
    """Print what patching every head between two texts does."""
    from hgviz import tasks

    missing = [name for name, value in texts.options().items() if value is None]
    if missing:
        raise typer.BadParameter(f"--method patching needs {join_words(missing)}.")
    clean, corrupted = (model.tokenize(text) for text in (texts.clean or "", texts.corrupted or ""))
    answer, wrong = (
        tasks.answer_number(model, name) for name in (texts.answer or "", texts.wrong or "")
    )
    work = partial(tasks.patching, model, clean, corrupted, answer, wrong, heads_of(off, model))
    found = terminal.run(work, "Patching heads")
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    terminal.show({"heads": [
        {name: value if isinstance(value, str) else f"{value:+.3f}" for name, value in row.items()}
        for row in found.to_rows()
    ]})  # fmt: skip
    terminal.say(
        f"Logit difference: {found.clean:.3f} of the clean text, {found.corrupted:.3f} of the "
        "corrupted one. Denoised: the share that comes back with a head's context from the clean "
        "text; noised: the share that is lost with that of the corrupted one."
    )


def curve(
    source: Annotated[Path, typer.Argument(metavar="STUDY", help="A study (.h5).")],
    model: Checkpoint,
    data: Data,
    method: Annotated[
        str, typer.Option(metavar="M", help="The score that orders the heads; default: michel.")
    ] = "",
    random: Annotated[
        int, typer.Option(metavar="N", min=20, help="Random orders to compare with.")
    ] = 20,
    least: Annotated[
        int, typer.Option(metavar="N", min=0, help="Heads that stay in every layer.")
    ] = 0,
    timed: Annotated[
        bool,
        typer.Option(
            "--time",
            help="Also time really smaller models along the order: a pass over 16 texts, one core.",
        ),
    ] = False,
    batch_size: BatchSize = None,
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure the score as heads are switched off.

    The same is measured for random orders. The order of the heads comes from one half of the
    study's examples and is measured on the other.
    """
    from hgviz import tasks
    from hgviz.store import open_study
    from hgviz.tasks.pruning import curve_facts, newest_curve

    stored = open_study(source)
    loaded = open_model(model, device, activation=activation)
    method = method or _default_score(loaded)
    trials = _trials(loaded, data, data.data, stored.off, len(stored), batch_size, stored.ablation,
                     stored.seed)  # fmt: skip
    measure = f"Measure this one first: hgviz importance {model} --data {data.data} -o OTHER.h5"
    study = tasks.kept_study(source, trials, do=measure)
    if study is None:
        raise HgvizError(f"{source} is gone: another program removed it")
    work = partial(tasks.curve, trials, study, method, random, least, timed=timed)
    resume = f"What was done is kept in {source}; the same command goes on from there"
    study = terminal.run(partial(tasks.keeping, source, work), "Switching heads off", resume)
    measured = newest_curve(study, method, least)
    facts = curve_facts(study, measured)
    if as_json:
        print(json.dumps(facts))
        return
    metric = measured.unit.replace("_", " ")
    terminal.show({"points": [
        {metric if name == "value" else name: value for name, value in point.items()}
        for point in facts["points"]
    ]})  # fmt: skip
    timing = "" if measured.times is None else (
        " ms: one pass of the model that really lacks the heads over 16 texts on one core, "
        "and of the whole model in turns with it; medians."
    )  # fmt: skip
    if study.asked == "next":
        names = [name for name in ("loss", "perplexity", "bits_per_byte")
                 if name in facts["points"][0]]  # fmt: skip
        whole, pruned = (
            ", ".join(f"{name.replace('_', ' ')} {point[name]:.3f}" for name in names)
            for point in (facts["points"][0], _point_at(facts, facts["k"]))
        )
        terminal.say(f"All heads on: {whole}. At k*: {pruned}.")
    terminal.say(
        f"k*: {facts['k']} of {len(measured.order)} heads go for at most one point of "
        f"{metric}, {facts['k_low']} where the interval's end has to stay "
        f"within it, on {study.amount(len(measured.rows))}. Mean {facts['area']:.3f} along the "
        f"curve; p {facts['p']:.3f} that a random order does as well, from {facts['randoms']} of "
        f"them.{timing}"
    )


def prune(
    model: Checkpoint,
    out: OutFolder,
    columns: Labelled,
    off: Off = "",
    study: Annotated[
        Path | None, typer.Option(metavar="STUDY.h5", help="What chooses the heads, with --keep.")
    ] = None,
    keep: Keep = "",
    mask: MaskOut = None,
    method: Annotated[
        str, typer.Option(metavar="M", help="Which score of the study; else the best it has.")
    ] = "",
    compensate: Annotated[
        Literal["none", "mean", "lsq"],
        typer.Option(
            help="mean: b_O takes over what the heads give on the mean; lsq: gates on the heads "
            "that stay, by least squares."
        ),
    ] = "none",
    form: Annotated[
        Literal["smaller", "zeroed"],
        typer.Option(
            help="smaller: hgviz's own folder without their weights, of models of transformers "
            "their own; zeroed: the original files and folders with zeros, for any program."
        ),
    ] = "smaller",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="D|-",
            parser=data_file,
            help="What the proof and --compensate look at: labelled rows, or a text. Else texts "
            "that come with hgviz.",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Remove heads, and prove that the outputs stay.

    The largest difference of logits from the masked model is at most 1e-5, or no folder is left;
    parameters, bytes and the time of a pass stand beside those of the whole model.
    """
    from hgviz import tasks

    if (study is None) == (not off):
        raise typer.BadParameter("Give the heads by --off, or by --study and --keep.")
    if (study is None) != (not keep) or (study is None and method):
        raise typer.BadParameter("--keep and --method go with --study, and --study needs --keep.")
    heads = (
        terminal.run(partial(tasks.heads_of_study, study, model, keep, method), "Choosing")
        if study
        else off
    )
    work = partial(
        tasks.prune, model, heads, out, form, compensate, data,
        columns.text_column, columns.label_column, columns.labels,
        None if as_json else terminal.remark, force, mask,
    )  # fmt: skip
    proof = terminal.run(work, "Pruning", f"Nothing was left in {out}")
    if as_json:
        print(json.dumps(proof.to_dict()))
        return
    for line in _describe(proof):
        terminal.say(line)


def _describe(proof: Proof) -> list[str]:
    """What was removed, how exact the result is, and what it saves."""
    heads, layers = len(proof.spec.heads), len(proof.spec.layers)
    lines = [f"{proof.path}: {counted(len(proof.off), 'head')} of {heads} removed."]
    if len(proof.empty) == layers:
        lines.append("No head is left, so nothing attends any more.")
    elif proof.empty:
        numbers = ", ".join(map(str, proof.empty))
        lines.append(f"Layers that have no head any more and only add their bias: {numbers}.")
    if proof.compensation != "none":
        lines.append(f"Made up for by {proof.compensation}, from {proof.source}.")
    in_float32 = f" ({proof.rough:.1e} in float32)" if proof.rough is not None else ""
    lines.append(
        f"Logits differ from the masked model's by at most {proof.difference:.1e} in {proof.dtype}"
        f"{in_float32}, the largest is {proof.largest:.1f}, on {proof.amount} from {proof.source}."
    )
    sizes = {"Parameters": proof.parameters, "Bytes of the tensors": proof.size}
    lines += [
        f"{name}: {before:,} before, {after:,} after ({after / before - 1:+.1%})."
        for name, (before, after) in sizes.items()
    ]
    lines += [
        f"Batch of {pair.batch}: {pair.before:.2f} ms before, {pair.after:.2f} ms after "
        f"({pair.ratio:.2f} times as fast), both in PyTorch in float32 on one core."
        for pair in proof.latency
    ]
    if proof.opens:
        lines.append(f"{proof.opens[0].upper()}{proof.opens[1:]}.")
    if proof.form == "zeroed":
        lines.append("A pass takes as long as before: zeros are computed like other numbers.")
    if proof.left_out:
        files = join_words(proof.left_out, LISTED_FILES)
        lines.append(f"Not copied (weights of the whole model, links): {files}.")
    return lines


def _default_score(model: Model) -> str:
    """The score for a model: hidden states have no loss and so no slopes."""
    from hgviz.study import SCORE

    return "loo" if model.spec.goal == "states" else SCORE


def _trials(
    model: Model, columns: Labelled, data: Path, off: Any, limit: int | None,
    batch_size: int | None, ablation: Ablation, seed: int,
) -> Trials:  # fmt: skip
    from hgviz import tasks

    work = partial(
        tasks.trials_of, model, data, columns.text_column, columns.label_column, off, limit,
        columns.labels, batch_size, ablation, seed,
    )  # fmt: skip
    return terminal.run(work, "Reading")


def _importance_table(study: Study, scores: Importance) -> dict[str, Any]:
    """A table of heads, the most needed first, with what is known of right and wrong."""
    from hgviz.analysis.importance import changes

    rows, change = [], changes(study)
    names = [str(head) for head in study.heads]
    for fact in scores.to_rows():
        at = names.index(fact["head"])
        layer = study.spec.layers[study.heads[at].layer]
        row = {
            "rank": fact["rank"], "head": fact["head"], "layer": layer.name,
            "level": study.spec.levels[layer.level].label,
            **{
                name: "" if fact[name] is None else number(fact[name])
                for name in ("score", "low", "high")
            },
        }  # fmt: skip
        if "change" in study.arrays:
            row["points"] = f"{100 * change.change[at]:+.2f}"
            row["p"] = "" if change.adjusted[at] is None else number(change.adjusted[at])
        rows.append(row)
    method = scores.method
    unit = f" ({method.unit})" if method.unit else ""
    stated = f", which depends on {method.stated}" if method.stated else ""
    return {
        "score": f"{method.label.lower()}{unit}: {method.formula}{stated}",
        "on": f"{study.amount(scores.rows)} of {study.data}",
        "ablation": "" if study.ablation == "zero" else study.ablation,
        "points": POINTS if "change" in study.arrays else "",
        "heads": rows,
    }


def _point_at(facts: dict[str, Any], off: int) -> dict[str, Any]:
    """The point of a curve with so many heads off."""
    point: dict[str, Any] = next(point for point in facts["points"] if point["off"] == off)
    return point
