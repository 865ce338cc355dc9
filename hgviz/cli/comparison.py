"""The verb that compares two models or two captures."""

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
    BatchSize,
    Device,
    Item,
    Labelled,
    Limit,
    Off,
    TextsOrSignals,
    command_words,
    data_file,
    ends_in,
    heads_of,
    label_names,
    require_unread,
)
from hgviz.errors import require
from hgviz.files import find_sample
from hgviz.language import counted, decimals, sentence

if TYPE_CHECKING:
    from hgviz.analysis.comparison import Comparison, Disagreement, HeadDifference
    from hgviz.core import Capture, HeadSet
    from hgviz.models.model import Model

REPORT = ".html"
LONGEST_CELL = 60  # characters of an example on a terminal


def compare(
    a: Annotated[
        Path,
        typer.Argument(metavar="A", parser=find_sample, help="A checkpoint or a capture (.h5)."),
    ],
    b: Annotated[
        Path,
        typer.Argument(metavar="B", parser=find_sample, help="The second, or A again with --off."),
    ],
    inputs: TextsOrSignals,
    columns: Labelled,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="D|-",
            parser=data_file,
            help="Data for predictions or hidden states, in a format of evaluate.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT.json|.csv|.html",
            callback=ends_in(".json", ".csv", REPORT),
            help="All results; .csv: the table of heads, or of examples that differ; .html: a "
            "report of predictions, heads, gradients and maps, with --data.",
        ),
    ] = None,
    activation: Activation = None,
    off: Off = "",
    item: Item = 0,
    item_b: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Index of the text of B, if not --item.")
    ] = None,
    every_row: Annotated[
        bool, typer.Option("--every-row", help="Measure all rows, also above 8,192 tokens.")
    ] = False,
    labels_b: Annotated[
        dict[str, str] | None,
        typer.Option(
            metavar="A=B,...", parser=label_names, help="Classes of B, if not as --labels."
        ),
    ] = None,
    limit: Limit = None,
    batch_size: BatchSize = None,
    texts: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of texts on which a report measures heads."),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Compare two models or two captures.

    On a text, an image or a sound, or of two captures: differences of the logits and of every head
    that both have. On --data: which model is better, with a confidence interval, and the examples
    where they differ; for models that output hidden states, the distance of B's from A's. With -o
    OUT.html all of this and more in one report, with maps of --text if it is given. --activation
    and --off change B. A checkpoint that is compared with a capture reads the capture's text.
    """
    from hgviz.store import is_capture

    captured = is_capture(a), is_capture(b)
    is_report = out is not None and out.suffix.lower() == REPORT
    if is_report and data is None:
        raise typer.BadParameter("A report needs --data, on which both models are scored.")
    if texts is not None and not is_report:
        raise typer.BadParameter("--texts is for a report: -o OUT.html.")
    if all(captured) and (inputs.any or data is not None):
        raise typer.BadParameter("Captures have their own texts; --text and --data are for models.")
    if data is not None and any(captured):
        raise typer.BadParameter("--data is for two checkpoints: a capture cannot be scored.")
    if captured[1] and (activation is not None or off):
        raise typer.BadParameter("--activation and --off change B, but B is a capture.")
    if (columns.labels, labels_b) != (None, None) and data is None:
        raise typer.BadParameter("--labels requires --data.")
    if inputs.any or not (data is not None or any(captured)):
        inputs.require_one(**({} if is_report else {"data": data}))
    elif (inputs.text_pair, inputs.target) != (None, None):
        inputs.require_first()
    require_unread(out, *inputs.files, data, a, b)
    models_of = {"reads": inputs.modality, "device": device}
    if data is None:
        sides = _captures((a, b), captured, inputs, (item, item_b), off, models_of, activation)
        _compare_maps(sides, (a, b), every_row, out, as_json)
        return
    from hgviz import tasks
    from hgviz.analysis.metrics import METRICS
    from hgviz.figures.output import require_page

    if is_report:
        assert out is not None
        require_page(out)
    models = _open(a, "A", **models_of), _open(b, "B", activation=activation, **models_of)
    names = columns.labels, columns.labels if labels_b is None else labels_b
    data_columns = columns.text_column, columns.label_column
    heads_off = heads_of(off, models[1])
    if not is_report:
        work = partial(tasks.compare_answers, *models, data, *data_columns, heads_off, limit, names,
                       batch_size)  # fmt: skip
        _show_answers(models, terminal.run(work, "Scoring"), data, out, as_json)
        return
    assert out is not None
    for model in models:
        inputs.require_read_by(model.spec)
    measure = partial(
        tasks.compare_models, *models, data, inputs.full_text(), *data_columns, heads_off, limit,
        texts, names, inputs.signal, batch_size,
    )  # fmt: skip
    comparison = terminal.run(measure, "Measuring")
    options = {
        "--data": data, **inputs.options(), **columns.options(), "--labels-b": labels_b,
        "--activation": activation, "--off": off, "--limit": limit, "--texts": texts, "-o": out,
    }  # fmt: skip
    command = shlex.join(["hgviz", "compare", str(a), str(b), *command_words(options)])
    terminal.run(partial(tasks.write_report, comparison, out, command), "Drawing")
    if as_json:
        print(json.dumps(comparison.to_dict(), allow_nan=False))
        return
    for line in _verdict(models, comparison.answers):
        terminal.say(line)
    differ = [METRICS[change.name].label for change in comparison.changes if change.differs]
    measured = counted(comparison.a.texts, comparison.noun)
    terminal.say(f"Metrics of heads that differ, on {measured}: {', '.join(differ) or 'none'}.")
    terminal.say(f"{out}: report.")


# --- maps -----------------------------------------------------------------------------------------


def _open(path: Path, name: str, **more: Any) -> Model:
    from hgviz import tasks

    require(
        tasks.kind_of(path) != "study",
        f"{path} is a study: only checkpoints and captures can be compared",
        "Choose checkpoints or captures",
    )
    return terminal.run(partial(tasks.load, path, **more), f"Opening {name}")


def _captures(
    paths: tuple[Path, Path],
    captured: tuple[bool, bool],
    inputs: TextsOrSignals,
    items: tuple[int, int | None],
    off: str,
    models_of: dict[str, Any],
    activation: str | None,
) -> tuple[Capture, Capture]:
    """Both sides as captures; a checkpoint reads the inputs, or the text of the other capture.

    off and activation change B.
    """
    from hgviz import tasks

    opened: list[Capture | None] = [None, None]
    numbers = items[0], items[0] if items[1] is None else items[1]
    for side in (0, 1):
        if captured[side]:
            opened[side] = tasks.capture_at(paths[side], numbers[side])
    for side, name in enumerate("AB"):
        if captured[side]:
            continue
        other = opened[1 - side]
        if other is not None and not inputs.any:
            models_of = models_of | {"reads": other.spec.modality}
        model = _open(paths[side], name, **models_of, activation=activation if side else None)
        heads_off = heads_of(off, model) if side else frozenset()
        if inputs.any:
            prompt, target = inputs.read(model)
            work = partial(tasks.capture, model, prompt, off=heads_off, target=target)
        else:
            assert other is not None  # one input is required unless a side is captured
            work = partial(_capture_again, model, other, inputs, heads_off)
        opened[side] = terminal.run(work, f"Reading the text with {name}")
    a, b = opened
    assert a is not None and b is not None
    return a, b


def _capture_again(model: Model, other: Capture, inputs: TextsOrSignals, off: HeadSet) -> Capture:
    """Run a model on the text, image or sound of a capture."""
    from hgviz import tasks

    if other.prompt.signal is not None:
        return tasks.capture_like(model, other, off)
    text, second = other.texts
    pair, target = inputs.text_pair, inputs.target
    if second:
        pair, target = (None, second) if model.spec.needs_target else (second, None)
    prompt, second_prompt = tasks.read_prompts(model, text, pair=pair, target=target)
    return tasks.capture(model, prompt, off=off, target=second_prompt)


def _compare_maps(
    sides: tuple[Capture, Capture],
    paths: tuple[Path, Path],
    every_row: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    from hgviz import tasks

    comparison = terminal.run(partial(tasks.compare, *sides, every_row), "Comparing the maps")
    facts: dict[str, Any] = {"kind": "maps"}
    for name, side, path in zip("ab", sides, paths, strict=True):
        facts[name] = {
            "path": str(path), "model": side.spec.name, "checkpoint": side.spec.digest,
            "tokens": len(side.main), "text": side.main.digest, "item": side.item,
            "off": [str(head) for head in sorted(side.off)],
        }  # fmt: skip
    facts |= comparison.to_dict()
    if out is not None:
        terminal.write_facts(out, facts, facts["heads"])
    if as_json:
        print(json.dumps(facts, allow_nan=False))
        return
    table: dict[str, Any] = {}
    for name, side in zip("AB", sides, strict=True):
        off = f", {counted(len(side.off), 'head')} off" if side.off else ""
        noun = "token" if side.main.signal is None else "position"
        table[name] = f"{side.spec.name}, {counted(len(side.main), noun)}{off}"
    terminal.show({**table, "heads": [_row(head) for head in comparison.heads]})
    for line in _describe(comparison):
        terminal.say(line)
    if out is not None:
        terminal.say(f"{out}: {counted(len(comparison.heads), 'head')}.")


def _row(head: HeadDifference) -> dict[str, Any]:
    """A row of the table of heads; of pairs of numbers A's is first."""

    def both(pair: tuple[float, float]) -> str:
        return " ".join(map(decimals, pair))

    name = str(head.head) if head.head == head.other else f"{head.head}, {head.other}"
    return {
        "head": name, "largest": decimals(head.largest),
        "relative": decimals(head.relative_largest), "mean": decimals(head.mean),
        "JS": decimals(head.js), "entropy": both(head.entropy), "near 0": both(head.near_zero),
        "below 0": both(head.negative), "rank": both(head.rank),
    }  # fmt: skip


def _describe(comparison: Comparison) -> list[str]:
    """The largest difference, heads that only one side has, and the logits."""
    lines = []
    if heads := comparison.heads:
        most = max(heads, key=lambda head: (head.largest == head.largest, head.largest))
        lines.append(f"The largest |A - B| is {most.largest:.3g}, in head {most.head}.")
    for name, missing, layers in (
        ("A", comparison.only_a, {head.head.layer for head in heads}),
        ("B", comparison.only_b, {head.other.layer for head in heads}),
    ):
        if missing:
            names = (f"{one.layer}.*" if one.layer not in layers else str(one) for one in missing)
            lines.append(
                f"Only in {name}: {counted(len(missing), 'head')}, "
                f"{', '.join(dict.fromkeys(names))}."
            )
    if (logits := comparison.logits) is not None:
        same = ""
        if logits.of > 1 and logits.same == logits.same:
            same = f"; the top prediction is the same at {100 * logits.same:.1f} %"
        elif logits.same == logits.same:
            same = f", with {'the same' if logits.same else 'another'} prediction"
        name, distance = "Logits", f"at most {logits.largest:.3g} apart{same}"
        if logits.moved == logits.moved:
            name = "Hidden states"
            distance = f"mean 1 - cosine {logits.moved:.4f}, {distance}"
        places = f" at {logits.places:,} of {logits.of:,} positions" if logits.of > 1 else ""
        lines.append(f"{name}{places}: {distance}.")
    return lines + [sentence(note) for note in comparison.notes]


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
            f"The state of A nearest to B's is that of the same example for "
            f"{100 * answers.agreement:.1f} %; {count:,} are nearer to another one{listed}.",
        ]
    lines = [
        f"{name}, {model.spec.name}: {describe_score(side.score)}{side.on}."
        for name, model, side in zip("AB", models, (answers.a, answers.b), strict=True)
    ]
    notes = [sentence(note) for note in answers.notes]
    if answers.difference is None or answers.agreement is None or answers.p is None:
        return lines + notes
    value, low, high = answers.difference
    bits = answers.a.score.metric == "bits_per_byte"
    scale, unit = (1.0, " bits per byte") if bits else (100.0, " points")
    ends = f" ({scale * low:+.3g} to {scale * high:+.3g})" if abs(low) < 1e9 else ""
    p = "< 0.0001" if answers.p < 0.0001 else f"= {answers.p:.3g}"
    return [
        *lines,
        f"B minus A: {scale * value:+.3g}{unit}{ends}. Only A is right on {answers.a_only:,}, "
        f"only B on {answers.b_only:,} of {answers.pairs:,}: McNemar's p {p}.",
        f"The same prediction on {100 * answers.agreement:.1f} %; {count:,} differ{listed}.",
        *notes,
    ]


def _show_answers(
    models: tuple[Model, Model], answers: Disagreement, data: Path, out: Path | None, as_json: bool
) -> None:
    from hgviz.analysis.statistics import COSINE_TO_A

    kind: dict[str, Any] = {"kind": "answers", "data": data.name}
    for name, model in zip("ab", models, strict=True):
        kind[name] = {"model": model.spec.name, "checkpoint": model.spec.digest}
    if out is not None:
        facts = kind | answers.to_dict(None)
        terminal.write_facts(out, facts, facts["examples"])
    facts = answers.to_dict()
    if as_json:
        print(json.dumps(kind | facts, allow_nan=False))
        return
    for line in _verdict(models, answers):
        terminal.say(line)
    cells = (
        {"nearest": "b"}
        if answers.a.score.metric == COSINE_TO_A
        else {"expected": "wanted", "A": "a", "B": "b"}
    )
    rows = [
        {"example": example["example"], "text": _cell(example["text"])}
        | {name: _cell(example[field]) for name, field in cells.items()}
        for example in facts["examples"]
    ]
    if rows:
        terminal.show({"examples": rows})
    if out is not None:
        terminal.say(f"{out}: {counted(len(answers.differing), 'example')} that differ.")


def _cell(text: str) -> str:
    """A text cut to a cell; a token of spaces in quotation marks."""
    text = text if text.strip() else repr(text)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
