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
from hgviz.language import counted, duration, join_words, number, sentence

if TYPE_CHECKING:
    from hgviz.analysis.importance import Importance
    from hgviz.core import Ablation
    from hgviz.models.model import Model
    from hgviz.models.pruning import Proof
    from hgviz.models.trials import Trials
    from hgviz.study import LearnedImportance, Study

LISTED_FILES, LISTED_HEADS = 8, 16
POINTS = "change of accuracy in percentage points; p: McNemar's test, adjusted over all heads"


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
        typer.Option(metavar="D|-", parser=data_file, help="Labelled rows, or a text file."),
    ] = None


@dataclass(frozen=True)
class PatchedTexts(Group):
    """The two texts and the two answers of --method patching."""

    clean: Annotated[str | None, typer.Option(metavar="T", help="Patching: the clean text.")] = None
    corrupted: Annotated[
        str | None, typer.Option(metavar="T", help="Patching: the corrupted text, as many tokens.")
    ] = None
    answer: Annotated[
        str | None, typer.Option(metavar="T|ID", help="Patching: answer (token or class) to CLEAN.")
    ] = None
    wrong: Annotated[
        str | None, typer.Option(metavar="T|ID", help="Patching: wrong answer, to compare with.")
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
            help="michel (default): mean size of gradients; signed: loss change they predict; "
            "michel-token, bertology, fisher: other averages of gradients; loo: leave-one-out, the "
            "exact change; all-but-one: only this head in its layer; shapley: over random orders; "
            "gates: learned in training, by --gates; patching: from the difference between two "
            "texts, by --clean, --corrupted, --answer and --wrong.",
        ),
    ] = None,
    gates: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Output folder of hgviz train with gates; repeatable."),
    ] = None,
    off: Off = "",
    ablation: AblatedBy = "zero",
    limit: Limit = None,
    batch_size: BatchSize = None,
    permutations: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of random orders for shapley.")
    ] = 20,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Random seed.")] = 0,
    keep: Keep = "",
    mask: MaskOut = None,
    force: Force = False,
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure the importance of each head and save it in a study.

    Scores have 95 % confidence intervals. Another --method on the same model and data adds to the
    study; existing measurements are not repeated. After an interruption, run the same command to
    resume.
    """
    from hgviz import tasks
    from hgviz.analysis.importance import METHODS
    from hgviz.analysis.importance import importance as scores_of
    from hgviz.maskfile import write_mask
    from hgviz.study import default_score, measured_together
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
        raise typer.BadParameter("--keep and --mask require each other: how many heads to keep, "
                                 "and the mask file of the others.")  # fmt: skip
    if data.data is None or out is None:
        raise typer.BadParameter("Give --data, to score heads on, and -o, a study file.")
    loaded = open_model(model, device, activation=activation)
    score = METHODS[method or default_score(loaded.spec)]
    learned: tuple[LearnedImportance, ...] = ()
    if gates:
        from hgviz.models.training import read_learned

        learned = read_learned(gates, loaded.spec)
    if score.learned and not learned and (force or not out.exists()):
        raise typer.BadParameter(f"{score.name} come from training: name folders by --gates.")
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
        tasks.importance, trials, needs, data.data.name, seed, permutations,
        announce=announce if needs and not as_json else None, out=out, force=force,
    )  # fmt: skip
    work = measure
    if learned:
        work = partial(tasks.keeping, out, lambda: tasks.with_learned(measure(), learned))
    resume = f"Progress is saved in {out}; run the same command to resume"
    study = terminal.run(work, "Measuring heads", resume, out)
    scores = scores_of(study, score.name)
    if mask is not None:
        write_mask(mask, study.spec, tasks.heads_to_remove(study, keep, score.name))
    if as_json:
        print(json.dumps(scores.to_rows()))
        return
    terminal.show(_importance_table(study, scores))
    terminal.say(f"{out}: importance of {counted(len(study.heads), 'head')} of {model.name}.")


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
        f"Logit difference: {found.clean:.3f} for the clean text, {found.corrupted:.3f} for the "
        "corrupted one. Denoised: the share recovered with the head's output from the clean text; "
        "noised: the share lost with its output from the corrupted one."
    )


def curve(
    source: Annotated[Path, typer.Argument(metavar="STUDY", help="A study (.h5).")],
    model: Checkpoint,
    data: Data,
    method: Annotated[
        str, typer.Option(metavar="M", help="Score that orders the heads (default: michel).")
    ] = "",
    random: Annotated[
        int, typer.Option(metavar="N", min=20, help="Number of random orders to compare with.")
    ] = 20,
    least: Annotated[
        int, typer.Option(metavar="N", min=0, help="Minimum number of heads in each layer.")
    ] = 0,
    timed: Annotated[
        bool,
        typer.Option(
            "--time",
            help="Also time the pruned models along the order: a pass over 16 texts on one core.",
        ),
    ] = False,
    batch_size: BatchSize = None,
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure the pruning curve: the score as heads are switched off.

    Random orders are measured for comparison. The order of heads comes from one half of the study's
    examples and the curve from the other half.
    """
    from hgviz import tasks
    from hgviz.store import open_study
    from hgviz.study import default_score
    from hgviz.tasks.pruning import curve_facts, newest_curve

    stored = open_study(source)
    loaded = open_model(model, device, activation=activation)
    method = method or default_score(loaded.spec)
    trials = _trials(loaded, data, data.data, stored.off, len(stored), batch_size, stored.ablation,
                     stored.seed)  # fmt: skip
    measure = f"Measure them first: hgviz importance {model} --data {data.data} -o OTHER.h5"
    study = tasks.kept_study(source, trials, do=measure)
    if study is None:
        raise HgvizError(f"{source} is gone: another program removed it")
    work = partial(tasks.curve, trials, study, method, random, least, timed=timed)
    resume = f"Progress is saved in {source}; run the same command to resume"
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
        " ms: median time of a pass of the pruned model over 16 texts on one core, and of the "
        "full model, measured in turns."
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
        f"k*: {facts['k']} of {len(measured.order)} heads can be removed for at most one point of "
        f"{metric}, {facts['k_low']} by the end of its interval, on "
        f"{study.amount(len(measured.rows))}. Mean {facts['area']:.3f} along the curve; "
        f"p = {facts['p']:.3f} that a random order does as well, from {facts['randoms']} random "
        f"orders.{timing}"
    )


def prune(
    model: Checkpoint,
    out: OutFolder,
    columns: Labelled,
    off: Off = "",
    study: Annotated[
        Path | None, typer.Option(metavar="STUDY.h5", help="Study that selects heads, with --keep.")
    ] = None,
    keep: Keep = "",
    mask: MaskOut = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="M", help="Score of the study (default: its first of loo, michel, shapley)."
        ),
    ] = "",
    compensate: Annotated[
        Literal["none", "mean", "lsq"],
        typer.Option(
            help="mean: add the mean output of the removed heads to b_O; lsq: scale the remaining "
            "heads, by least squares."
        ),
    ] = "none",
    form: Annotated[
        Literal["smaller", "zeroed"],
        typer.Option(
            help="smaller: a folder without their weights, in the format of hgviz, or of "
            "transformers for its models; zeroed: the original files with zeros, for any program."
        ),
    ] = "smaller",
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="D|-",
            parser=data_file,
            help="Data for the verification and --compensate: labelled rows, or a text (default: "
            "texts that come with hgviz).",
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Remove heads, and verify the outputs of the pruned model.

    Logits differ from those of the masked model by at most 1e-5, or nothing is saved. Parameters,
    bytes and the time of a pass are compared with those of the full model.
    """
    from hgviz import tasks

    if (study is None) == (not off):
        raise typer.BadParameter("Name the heads by --off, or by --study and --keep.")
    if (study is None) != (not keep) or (study is None and method):
        raise typer.BadParameter("--keep and --method require --study, which requires --keep.")
    if compensate != "none" and data is None:
        raise typer.BadParameter("--compensate requires --data, on which it is computed.")
    heads = (
        terminal.run(partial(tasks.heads_of_study, study, model, keep, method), "Selecting heads")
        if study
        else off
    )
    work = partial(
        tasks.prune, model, heads, out, form, compensate, data,
        columns.text_column, columns.label_column, columns.labels,
        None if as_json else terminal.remark, force, mask,
    )  # fmt: skip
    proof = terminal.run(work, "Pruning", f"Nothing was saved in {out}")
    if as_json:
        print(json.dumps(proof.to_dict()))
        return
    for line in _describe(proof):
        terminal.say(line)


def _describe(proof: Proof) -> list[str]:
    """What was removed, how exact the result is, and what it saves."""
    heads, layers = len(proof.spec.heads), len(proof.spec.layers)
    named = join_words(map(str, sorted(proof.off)), LISTED_HEADS)
    lines = [f"{proof.path}: {counted(len(proof.off), 'head')} of {heads} removed: {named}."]
    if len(proof.empty) == layers:
        lines.append("No head is left: the model has no attention.")
    elif proof.empty:
        numbers = ", ".join(map(str, proof.empty))
        lines.append(f"Layers without heads, which only add their bias: {numbers}.")
    if proof.compensation != "none":
        lines.append(f"Compensation: {proof.compensation}, computed on {proof.read.source}.")
    in_float32 = f" ({proof.rough:.1e} in float32)" if proof.rough is not None else ""
    lines.append(
        f"Logits differ from the masked model's by at most {proof.difference:.1e} in {proof.dtype}"
        f"{in_float32}; the largest is {proof.largest:.1f}, on {proof.read.amount} "
        f"from {proof.read.source}."
    )
    sizes = {"Parameters": proof.parameters, "Bytes of the tensors": proof.size}
    lines += [
        f"{name}: {before:,} before, {after:,} after ({after / before - 1:+.1%})."
        for name, (before, after) in sizes.items()
    ]
    lines += [
        f"Batch of {pair.batch}: {pair.before:.2f} ms before, {pair.after:.2f} ms after "
        f"({pair.ratio:.2f}x as fast), both in PyTorch in float32 on one core."
        for pair in proof.latency
    ]
    if proof.opens:
        other = " For transformers, use --form zeroed." if "only" in proof.opens else ""
        lines.append(f"{sentence(proof.opens)}{other}")
    if proof.form == "zeroed":
        lines.append("A pass takes as long as before: zeros are computed like other weights.")
    if proof.left_out:
        files = join_words(proof.left_out, LISTED_FILES)
        lines.append(f"Not copied (weights of the full model, links): {files}.")
    return lines


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
    """A table of heads, most important first, with the change of accuracy where it is known."""
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
