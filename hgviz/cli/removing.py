"""The verb that removes heads for good."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import AsJson, Checkpoint, LabelColumn, Labels, Off, TextColumn
from hgviz.files import find_sample
from hgviz.language import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hgviz.models.pruning import Proof

SHOWN = 8  # files of a line


def prune(
    model: Checkpoint,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The new folder.")],
    off: Off = "",
    study: Annotated[
        Path | None, typer.Option(metavar="STUDY.h5", help="What chooses the heads, with --keep.")
    ] = None,
    keep: Annotated[
        str, typer.Option(metavar="N|P%", help="How many heads stay: the most needed ones.")
    ] = "",
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
            metavar="D",
            parser=find_sample,
            help="What the proof and --compensate look at: labelled rows, or a text. Else texts "
            "that come with hgviz.",
        ),
    ] = None,
    text_column: TextColumn = "",
    label_column: LabelColumn = "",
    labels: Labels = None,
    as_json: AsJson = False,
) -> None:
    """Remove heads from a model and check that its outputs are those of the masked model.

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
    columns = text_column, label_column, labels
    work = partial(tasks.prune, model, heads, out, form, compensate, data, *columns)
    found = terminal.run(work, "Pruning", f"Nothing was left in {out}")
    if as_json:
        print(json.dumps(found.to_dict()))
        return
    for line in told(found):
        terminal.say(line)


def told(found: Proof) -> list[str]:
    """A proof in words."""
    heads, layers = len(found.spec.heads), len(found.spec.layers)
    lines = [f"{found.path}: {counted(len(found.off), 'head')} of {heads} removed."]
    if len(found.empty) == layers:
        lines.append("No head is left, so nothing attends any more.")
    elif found.empty:
        numbers = ", ".join(map(str, found.empty))
        lines.append(f"Layers that have no head any more and only add their bias: {numbers}.")
    if found.compensation != "none":
        lines.append(f"Made up for by {found.compensation}, from {found.source}.")
    rough = f" ({found.rough:.1e} in float32)" if found.rough is not None else ""
    lines.append(
        f"Logits differ from the masked model's by at most {found.difference:.1e} in {found.dtype}"
        f"{rough}, the largest is {found.largest:.1f}, on {found.amount} from {found.source}."
    )
    lines += [
        f"{words}: {before:,} before, {after:,} after ({after / before - 1:+.1%})."
        for words, (before, after) in (
            ("Parameters", found.parameters),
            ("Bytes of the tensors", found.size),
        )
    ]
    lines += [
        f"Batch of {one.batch}: {one.before:.2f} ms before, {one.after:.2f} ms after "
        f"({one.ratio:.2f} times as fast), both in PyTorch in float32 on one core."
        for one in found.latency
    ]
    if found.opens:
        lines.append(f"{found.opens[0].upper()}{found.opens[1:]}.")
    if found.form == "zeroed":
        lines.append("A pass takes as long as before: zeros are computed like other numbers.")
    if found.left_out:
        lines.append(f"Not copied (weights of the whole model, links): {_few(found.left_out)}.")
    return lines


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"
