"""The verb that puts two models or captures beside each other."""

from __future__ import annotations

import json
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    Activation,
    AsJson,
    Audio,
    Device,
    Image,
    ItemNumber,
    LabelColumn,
    Labels,
    Off,
    Target,
    TextColumn,
    TextPair,
    ends_in,
    reads_of,
    renamed,
    require_read,
    require_unread,
)
from hgviz.files import find_sample
from hgviz.language import counted, decimals

if TYPE_CHECKING:
    from hgviz.analysis.comparison import Comparison, Disagreement, HeadDifference
    from hgviz.core import Capture, Modality
    from hgviz.models.model import Model

REPORT = ".html"
_TEXT = 60  # characters of an example on a terminal


def compare(
    a: Annotated[
        Path,
        typer.Argument(metavar="A", parser=find_sample, help="A checkpoint or a capture (.h5)."),
    ],
    b: Annotated[
        Path,
        typer.Argument(metavar="B", parser=find_sample, help="Another; or A again, changed below."),
    ],
    text: Annotated[str | None, typer.Option(metavar="T", help="What both read.")] = None,
    text_file: Annotated[Path | None, typer.Option(metavar="F", help="Text in UTF-8.")] = None,
    image: Image = None,
    audio: Audio = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="D",
            parser=find_sample,
            help="Compare answers, or hidden states: what evaluate takes for these models.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT.json|.csv|.html",
            callback=ends_in(".json", ".csv", REPORT),
            help="Everything; .csv: the table of heads, or of examples that differ; .html: a "
            "report of answers, heads, gradients and maps, with --data.",
        ),
    ] = None,
    text_pair: TextPair = None,
    target: Target = None,
    activation: Activation = None,
    off: Off = "",
    item: ItemNumber = 0,
    item_b: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Which text of B, where not the same.")
    ] = None,
    every_row: Annotated[
        bool, typer.Option("--every-row", help="Measure all rows of maps above 8,192 tokens, too.")
    ] = False,
    text_column: TextColumn = "",
    label_column: LabelColumn = "",
    labels: Labels = None,
    labels_b: Annotated[
        dict[str, str] | None,
        typer.Option(metavar="A=B,...", parser=renamed, help="What B calls them, where not as A."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only so many examples, drawn once.")
    ] = None,
    texts: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="A report looks into the heads of so many texts."),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Compare two models or two captures.

    On a text, an image or a sound, or as captured: every head that both have, in numbers, and the
    logits. On --data: which is better, how sure that is, and the examples where they differ; of
    models that give hidden states, how far those of B are from A's. With -o OUT.html
    all of this and more as one report, whose maps are of --text where it is given. --activation
    and --off change B. Captures bring their own texts; a checkpoint beside one reads the same.
    """
    from hgviz.store import is_capture

    captured = is_capture(a), is_capture(b)
    reported = out is not None and out.suffix.lower() == REPORT
    if reported and data is None:
        raise typer.BadParameter("A report needs --data, on which both answer.")
    if texts is not None and not reported:
        raise typer.BadParameter("--texts is for a report: -o OUT.html.")
    inputs = sum(one is not None for one in (text, text_file, image, audio))
    given = inputs + (data is not None)
    given -= reported and inputs == 1
    if reported and inputs > 1:
        raise typer.BadParameter("A report shows one text: give --text or --text-file, not both.")
    if given > 1 or not (given or any(captured)):
        raise typer.BadParameter(
            "Give exactly one of --text, --text-file, --image, --audio and --data."
        )
    if given and all(captured):
        raise typer.BadParameter("Captures have their own texts; --text and --data are for models.")
    if data is not None and any(captured):
        raise typer.BadParameter("--data is for two checkpoints: a capture cannot answer.")
    if captured[1] and (activation is not None or off):
        raise typer.BadParameter("--activation and --off change B, which is a capture here.")
    if text_pair is not None and text is None and text_file is None:
        raise typer.BadParameter("--text-pair goes with --text or --text-file.")
    if target is not None and not inputs:
        raise typer.BadParameter("--target goes with --text, --text-file, --image or --audio.")
    if (labels, labels_b) != (None, None) and data is None:
        raise typer.BadParameter("--labels goes with --data.")
    require_unread(out, text_file, image, audio, data, a, b)
    if out is not None and reported:
        from hgviz.figures.report import require

        require(out)
    if data is not None:
        reads = reads_of(image, audio)
        models = _load(a, "A", device, reads), _load(b, "B", device, reads, activation)
        names = labels, labels if labels_b is None else labels_b
        if reported:
            for model in models:
                require_read(model.spec, image, audio)
            options = {
                "--data": data, "--text": text, "--text-file": text_file, "--image": image,
                "--audio": audio, "--text-column": text_column, "--label-column": label_column,
                "--labels": labels, "--labels-b": labels_b, "--activation": activation,
                "--off": off, "--limit": limit, "--texts": texts, "-o": out,
            }  # fmt: skip
            _report(models, (a, b), names, options, as_json)
            return
        _answers(models, (data, text_column, label_column, off, limit, names), out, as_json)
        return
    words = (text, text_file, text_pair, target, image, audio)
    one = _open_text(a, item) if captured[0] else None
    other = _open_text(b, item if item_b is None else item_b) if captured[1] else None
    known = one or other
    reads = reads_of(image, audio) if known is None else known.spec.modality
    if one is None:
        one = _captured(_load(a, "A", device, reads), "A", words, other, "")
    if other is None:
        other = _captured(_load(b, "B", device, reads, activation), "B", words, one, off)
    _maps((one, other), (a, b), every_row, out, as_json)


def _open_text(path: Path, item: int) -> Capture:
    from hgviz.store import open_capture

    return open_capture(path, item)


def _load(
    path: Path, name: str, device: Any, reads: Modality, activation: str | None = None
) -> Model:
    from hgviz import tasks
    from hgviz.core import HgvizError

    if tasks.kind_of(path) == "study":
        raise HgvizError(f"{path} is a study: checkpoints and captures can be compared")
    return terminal.run(
        partial(tasks.load, path, device, activation=activation, reads=reads), f"Opening {name}"
    )


def _captured(model: Model, name: str, words: Any, beside: Capture | None, off: str) -> Capture:
    """What a model makes of what is given, or else of the text, the picture or the sound of the
    capture beside it."""
    from hgviz import tasks

    text, text_file, pair, target, image, audio = words
    heads = tasks.heads_from(off, model.spec)
    require_read(model.spec, image, audio)
    if (signal := image or audio) is None and text is None and text_file is None:
        assert beside is not None  # compare asks for a text where both are checkpoints
        if beside.prompt.signal is not None:
            return terminal.run(
                partial(tasks.capture_alike, model, beside, heads), f"Reading it with {name}"
            )
        text, second = beside.texts
        if second:
            pair, target = (None, second) if model.spec.needs_target else (second, None)
    prompt, other = tasks.prompt_from(
        model, text, text_file, None, pair, target, signal_file=signal
    )
    work = partial(tasks.capture, model, prompt, off=heads, target=other)
    return terminal.run(work, f"Reading the text with {name}")


# --- maps -----------------------------------------------------------------------------------------


def _maps(
    sides: tuple[Capture, Capture],
    paths: tuple[Path, Path],
    every: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    from hgviz import tasks

    found = terminal.run(partial(tasks.compare, *sides, every), "Comparing the maps")
    facts = {
        "kind": "maps",
        **{
            name: _side(*one)
            for name, one in zip("ab", zip(sides, paths, strict=True), strict=True)
        },
        **found.facts(),
    }
    if out is not None:
        terminal.write_facts(out, facts, facts["heads"])
    if as_json:
        print(json.dumps(facts, allow_nan=False))
        return
    terminal.show(_table(sides, found))
    for line in _said(found):
        terminal.say(line)
    if out is not None:
        terminal.say(f"{out}: {counted(len(found.heads), 'head')}.")


def _side(capture: Capture, path: Path) -> dict[str, Any]:
    """What identifies one side of a comparison."""
    return {
        "path": str(path), "model": capture.spec.name, "checkpoint": capture.spec.digest,
        "tokens": len(capture.main), "text": capture.main.digest, "item": capture.item,
        "off": [str(head) for head in sorted(capture.off)],
    }  # fmt: skip


def _table(sides: tuple[Capture, Capture], found: Comparison) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for name, one in zip("AB", sides, strict=True):
        off = f", {counted(len(one.off), 'head')} off" if one.off else ""
        noun = "token" if one.main.signal is None else "position"
        facts[name] = f"{one.spec.name}, {counted(len(one.main), noun)}{off}"
    facts["heads"] = [_row(one) for one in found.heads]
    return facts


def _row(one: HeadDifference) -> dict[str, Any]:
    """A line of the table; of pairs A's number stands first."""
    same = one.head == one.other
    return {
        "head": str(one.head) if same else f"{one.head}, {one.other}",
        "largest": decimals(one.largest),
        "relative": decimals(one.relative_largest),
        "mean": decimals(one.mean),
        "JS": decimals(one.js),
        "entropy": _both(one.entropy),
        "near 0": _both(one.near_zero),
        "below 0": _both(one.negative),
        "rank": _both(one.rank),
    }


def _both(pair: tuple[float, float]) -> str:
    return " ".join(map(decimals, pair))


def _said(found: Comparison) -> list[str]:
    """What the table does not say."""
    lines = []
    if found.heads:
        most = max(found.heads, key=lambda one: (one.largest == one.largest, one.largest))
        lines.append(f"The largest |A - B| is {most.largest:.3g}, of head {most.head}.")
    for name, only, shared in (
        ("A", found.only_a, {one.head.layer for one in found.heads}),
        ("B", found.only_b, {one.other.layer for one in found.heads}),
    ):
        if only:
            names = (f"{one.layer}.*" if one.layer not in shared else str(one) for one in only)
            heads = counted(len(only), "head")
            lines.append(f"Only in {name}: {heads}, {', '.join(dict.fromkeys(names))}.")
    if (one := found.logits) is not None:
        places = f" at {one.places:,} of {one.of:,} places" if one.of > 1 else ""
        same = ""
        if one.of > 1 and one.same == one.same:
            same = f"; the likeliest is the same at {100 * one.same:.1f} %"
        elif one.same == one.same:
            same = f", with {'the same' if one.same else 'another'} answer"
        what, apart = "Logits", f"at most {one.largest:.3g} apart{same}"
        if one.moved == one.moved:
            what, apart = "Hidden states", f"1 - cosine {one.moved:.4f} on the mean, {apart}"
        lines.append(f"{what}{places}: {apart}.")
    lines += [f"{note[0].upper()}{note[1:]}." for note in found.notes]
    return lines


# --- answers --------------------------------------------------------------------------------------


def _verdict(models: tuple[Model, Model], answers: Disagreement) -> list[str]:
    """Both scores, and which model is better by how much."""
    from hgviz.analysis.comparison import LISTED_EXAMPLES
    from hgviz.analysis.statistics import COSINE_TO_A, describe_score

    count = len(answers.differing)
    listed = f", of which {LISTED_EXAMPLES} are listed" if count > LISTED_EXAMPLES else ""
    if answers.a.score.metric == COSINE_TO_A:
        assert answers.agreement is not None  # compare_states counts it
        return [
            f"B, {models[1].spec.name}: {describe_score(answers.b.score)}.",
            f"Of A's states the nearest is that of the same example on "
            f"{100 * answers.agreement:.1f} %; {count:,} are nearer to another's{listed}.",
        ]
    lines = [
        f"{name}, {model.spec.name}: {describe_score(side.score)}{side.on}."
        for name, model, side in zip("AB", models, (answers.a, answers.b), strict=True)
    ]
    notes = [f"{note[0].upper()}{note[1:]}." for note in answers.notes]
    if answers.difference is None or answers.agreement is None or answers.p is None:
        return lines + notes
    value, low, high = answers.difference
    bits = answers.a.score.metric == "bits_per_byte"
    scale, unit = (1.0, " bits per byte") if bits else (100.0, " points")
    ends = f" ({scale * low:+.3g} to {scale * high:+.3g})" if abs(low) < 1e9 else ""
    p = "< 0.0001" if answers.p < 0.0001 else f"{answers.p:.3g}"
    return [
        *lines,
        f"B less A: {scale * value:+.3g}{unit}{ends}. Only A is right on {answers.a_only:,}, "
        f"only B on {answers.b_only:,} of {answers.pairs:,}: McNemar's p {p}.",
        f"The same answer on {100 * answers.agreement:.1f} %; {count:,} differ{listed}.",
        *notes,
    ]


def _report(
    models: tuple[Model, Model],
    paths: tuple[Path, Path],
    labels: tuple[Any, Any],
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Compare two models in everything that is measured, and write the page. options: of the
    command, by their names."""
    from hgviz import tasks
    from hgviz.analysis.metrics import METRICS
    from hgviz.models.prompts import read_text

    text_file, out = options["--text-file"], options["-o"]
    work = partial(
        tasks.compare_models, *models, options["--data"],
        read_text(text_file) if text_file else options["--text"] or "",
        options["--text-column"], options["--label-column"],
        tasks.heads_from(options["--off"], models[1].spec),
        options["--limit"], options["--texts"], labels, options["--image"] or options["--audio"],
    )  # fmt: skip
    comparison = terminal.run(work, "Measuring")
    words = ["hgviz", "compare", *map(str, paths)]
    for name, value in options.items():
        if isinstance(value, dict):
            value = ",".join(f"{theirs}={own}" for theirs, own in value.items())
        if value not in (None, ""):
            words += [name, str(value)]
    terminal.run(partial(tasks.write_report, comparison, out, shlex.join(words)), "Writing")
    if as_json:
        print(json.dumps(comparison.to_dict(), allow_nan=False))
        return
    for line in _verdict(models, comparison.answers):
        terminal.say(line)
    differ = ", ".join(METRICS[one.name].label for one in comparison.changes if one.differs)
    measured = counted(comparison.a.texts, comparison.noun)
    terminal.say(f"Heads differ, on {measured}, in: {differ or 'nothing'}.")
    terminal.say(f"{out}: the report.")


def _answers(models: tuple[Model, Model], asked: Any, out: Path | None, as_json: bool) -> None:
    from hgviz import tasks
    from hgviz.analysis.statistics import COSINE_TO_A

    data, text, label, off, limit, names = asked
    heads = tasks.heads_from(off, models[1].spec)
    work = partial(tasks.compare_answers, *models, data, text, label, heads, limit, names)
    found = terminal.run(work, "Scoring")
    kind = {
        "kind": "answers",
        "data": data.name,
        **{
            name: {"model": one.spec.name, "checkpoint": one.spec.digest}
            for name, one in zip("ab", models, strict=True)
        },
    }
    if out is not None:
        facts = kind | found.facts(None)
        terminal.write_facts(out, facts, facts["examples"])
    if as_json:
        print(json.dumps(kind | found.facts(), allow_nan=False))
        return
    for line in _verdict(models, found):
        terminal.say(line)
    facts = found.facts()
    states = found.a.score.metric == COSINE_TO_A
    rows = [
        {"example": one["example"], "text": _cut(one["text"]), "nearest": _cut(one["b"])}
        if states else
        {
            "example": one["example"], "text": _cut(one["text"]),
            **{name: _cut(_visible(one[name.lower()])) for name in ("wanted", "A", "B")},
        }
        for one in facts["examples"]
    ]  # fmt: skip
    if rows:
        terminal.show({"examples": rows})
    if out is not None:
        terminal.say(f"{out}: {counted(len(found.differing), 'example')} that differ.")


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"


def _visible(answer: str) -> str:
    """A token of spaces in quotation marks."""
    return answer if answer.strip() else repr(answer)
