"""The verbs that write captures, and that read maps, logits and compositions out of them."""

from __future__ import annotations

import json
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    Activation,
    AsJson,
    CaptureFile,
    CaptureOrModel,
    Checkpoint,
    Corpus,
    Device,
    DrawSeed,
    Force,
    Generate,
    Head,
    Inputs,
    Item,
    Layer,
    Off,
    OutArray,
    OutHdf5,
    Recipe,
    Rows,
    StreamingHeads,
    Texts,
    TextsOrIds,
    ends_in,
    interval,
    layer_and_head,
    open_model,
    require_unread,
)
from hgviz.errors import HgvizError, require
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.core import Capture, Map, ModelSpec, Prompt

LONG = 30.0  # seconds: of captures that take longer an estimate is printed first


def capture(
    model: Checkpoint,
    out: OutHdf5,
    inputs: Inputs,
    stream: StreamingHeads,
    corpus: Corpus = None,
    generate: Generate = None,
    seed: DrawSeed = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Sampling temperature with --seed; default 1.")
    ] = None,
    boundaries: Annotated[
        str,
        typer.Option(
            metavar="B",
            help="Where segments end, in place of the model's own boundaries: fixed:K, whitespace, "
            "or a file with a 0 or 1 for each token.",
        ),
    ] = "",
    force: Force = False,
    off: Off = "",
    dense: Annotated[
        bool,
        typer.Option(
            "--dense", help="Store all attention weights, not queries and keys; for short texts."
        ),
    ] = False,
    masking: Annotated[
        Literal["compat", "strict"] | None,
        typer.Option(help="Masking as in the model's own package (compat), or strict."),
    ] = None,
    activation: Activation = None,
    device: Device = "auto",
    dtype: Annotated[
        Literal["float64", "float32", "bfloat16", "float16"],
        typer.Option(help="Precision of the computation."),
    ] = "float32",
    as_json: AsJson = False,
) -> None:
    """Record the attention of every head on a text, image or sound.

    Give a text by --text, --text-file or --ids, an image or a sound by --image or --audio, or many
    texts by --corpus. An interrupted capture leaves OUT.h5.part; run the same command to resume.
    With --generate the model first continues the text, and the capture is of the full text.
    """
    from hgviz import tasks

    if corpus is not None and (inputs.text_pair, inputs.target, generate) != (None, None, None):
        raise typer.BadParameter(
            "--text-pair, --target and --generate are for one text; rows of a corpus hold theirs."
        )
    if corpus is not None and boundaries:
        raise typer.BadParameter("--boundaries is for one text, not for --corpus.")
    inputs.require_one(corpus=corpus)
    if generate is None and (seed, temperature) != (None, None):
        raise typer.BadParameter("--seed and --temperature require --generate.")
    if temperature is not None and (seed is None or not 0 < temperature < inf):
        raise typer.BadParameter("--temperature must be above 0 and requires --seed.")
    files = [path for path in (*inputs.files, corpus) if path is not None and path.exists()]
    if out.exists() and any(path.samefile(out) for path in files):
        raise typer.BadParameter("-o is also an input, which --force would replace.")
    loaded = open_model(
        model, device, dtype=dtype, masking=masking, activation=activation, reads=inputs.modality
    )
    heads_off, streaming = stream.with_mask(off, loaded.spec)
    if generate is not None and streaming.heads:
        raise typer.BadParameter("--streaming cannot be combined with --generate.")
    part = Path(f"{out}.part")
    resume = f"Progress is saved in {part}; run the same command to resume"
    if corpus is not None:
        work = partial(
            tasks.capture_corpus, loaded, corpus, out, heads_off, force, dense, streaming
        )
        _report(out, terminal.run(work, "Capturing", resume, part), as_json)
        return
    inputs.require_read_by(loaded.spec)
    if inputs.ids is None and inputs.signal is None and loaded.spec.modality == "text":
        text = inputs.full_text()
        estimate = terminal.run(partial(tasks.estimate, loaded, text, into_file=True), "Reading")
        if estimate.seconds > LONG:
            layers = counted(len(loaded.spec.layers), "layer")
            terminal.remark(f"{layers}, {estimate.tokens:,} tokens: {estimate.words}.")
    prompt, target = inputs.read(loaded, boundaries, writes=generate is not None)
    if generate is None:
        work = partial(
            tasks.capture, loaded, prompt, out, heads_off, force, target,
            dense=dense, streaming=streaming,
        )  # fmt: skip
        _report(out, terminal.run(work, "Capturing", resume, part), as_json)
        return
    work = partial(
        tasks.generate, loaded, prompt, generate, out, heads_off, force, target, seed,
        temperature or 1.0, dense,
    )  # fmt: skip
    written = terminal.run(work, "Generating", "Run the same command to resume with the same text")
    start = written.first_generated or 0
    text = written.main.words(start, len(written.main)) or " ".join(written.main.pieces[start:])
    _report(out, written, as_json, text)


def _report(out: Path, capture: Capture, as_json: bool, text: str | None = None) -> None:
    """Print what was captured and, where there is one, the text that the model wrote."""
    if as_json:
        from hgviz.store import describe

        print(json.dumps(describe(out) | ({} if text is None else {"written": text})))
        return
    line = _describe(out, capture)
    if text is not None:
        terminal.quote(text)
        line = f"{line[:-1]}; generated: {capture.made.generated}."
    terminal.say(line)


def _describe(out: Path, capture: Capture) -> str:
    """What a capture holds."""
    heads = counted(len(capture.spec.heads), "head")
    layers = counted(len(capture.maps), "layer")
    if capture.items:
        tokens = counted(sum(item.tokens for item in capture.items), "token")
        texts = counted(len(capture.items), "text")
        return f"{out}: {heads} in {layers} on {texts}, {tokens} in total."
    is_states = capture.prompt.states is not None
    noun = "state" if is_states else "token" if capture.prompt.signal is None else "position"
    read = counted(len(capture.prompt), noun)
    if capture.target is not None:
        source = "an encoder" if is_states else "source"
        read += f" of {source} and {counted(len(capture.target), 'token')} of target"
    return f"{out}: {heads} in {layers} on {read}."


def map_(
    source: CaptureFile,
    head: Head,
    out: OutArray,
    layer: Layer = None,
    rows: Rows = None,
    columns: Annotated[
        range | None,
        typer.Option(parser=interval, metavar="START:END", help="Only these columns, as --rows."),
    ] = None,
    zoom: Annotated[
        int, typer.Option(min=0, metavar="Z", help="Each cell covers 2^Z x 2^Z weights.")
    ] = 0,
    reduce: Annotated[Literal["max", "mean"], typer.Option(help="Value of a cell.")] = "max",
    tokens: Annotated[
        bool, typer.Option("--tokens", help="Expand slots to the tokens behind them, signed.")
    ] = False,
    item: Item = 0,
) -> None:
    """Save the attention map of one head.

    float32; rows are queries, columns are keys.
    """
    from hgviz import tasks

    layer, number = layer_and_head(layer, head)
    if layer is None:
        raise typer.BadParameter(f"--head {head} needs its layer: --head LAYER.{head}.")
    from hgviz.analysis.composition import of_tokens

    opened = tasks.capture_at(source, item)
    opened = of_tokens(opened) if tokens else opened
    maps = _maps_of(opened, layer, number)
    for name, part, size in zip(("row", "column"), (rows, columns), maps.shape[1:], strict=True):
        if part is not None and part.stop > size:
            raise HgvizError(
                f"There is no {name} {part.stop - 1:,}: "
                f"this map has {size:,} {name}s, 0 to {size - 1:,}",
                f"End the range at {size:,} or below",
            )
    describe = partial(_describe_cells, opened, layer, number, rows, columns, zoom)
    terminal.write(out, maps.read(number, rows, columns, zoom, reduce), "map", describe)


def _describe_cells(
    capture: Capture, layer: int, head: int, rows: range | None, columns: range | None, zoom: int
) -> dict[str, Any]:
    """What identifies the cells of a map in a .npz: the head, and of each row and column of cells
    its first position and its text."""
    from hgviz.figures.cells import table_side

    facts: dict[str, Any] = {"head": f"{layer}.{head}"}
    sides = (
        ("rows", "tokens", rows, capture.query_prompt(layer), capture.query_spans(layer)),
        ("columns", "key_tokens", columns, capture.key_prompt(layer), capture.key_spans(layer)),
    )
    for positions, texts, part, prompt, spans in sides:
        cells = table_side(prompt, spans, zoom)
        if part is not None:
            cells = cells[part.start >> zoom : (part.stop - 1 >> zoom) + 1]
        facts |= {positions: [cell.first for cell in cells], texts: [cell.text for cell in cells]}
    return facts


def _maps_of(capture: Capture, layer: int, head: int) -> Map:
    """The maps of a layer. Raises HgvizError where the layer or the head is not in the capture."""
    list_layers = f"Run `hgviz info {capture.path}` to list all layers"
    last = len(capture.maps) - 1
    require(layer <= last, f"There is no layer {layer}: the layers are 0 to {last}", list_layers)
    maps = capture.maps[layer]
    if maps is None:
        raise HgvizError(
            f"Layer {layer} is not in {capture.path}: "
            "its capture was interrupted before this layer",
            "Run the same capture again to complete it",
        )
    heads = ", ".join(map(str, maps.heads)) or "none"
    require(
        head in maps.heads, f"Layer {layer} has no head {head}: its heads are {heads}", list_layers
    )
    return maps


def logits(
    source: CaptureOrModel,
    out: OutArray,
    inputs: Texts,
    generate: Generate = None,
    seed: DrawSeed = None,
    item: Item = 0,
    device: Device = "auto",
) -> None:
    """Save the logits of a model, or the last hidden states.

    Of a capture, or of any checkpoint on a text, also of a model without attention.
    """
    from hgviz import tasks

    if not inputs.any:
        if generate is not None or seed is not None or inputs.target is not None:
            raise typer.BadParameter("--generate, --seed and --target require a text.")
        if tasks.kind_of(source) == "checkpoint":
            raise typer.BadParameter(f"{source.name} is a checkpoint: add a text, --text T.")
        opened = tasks.capture_at(source, item)
        if opened.logits is None:
            raise HgvizError(
                f"{source} has no logits: its capture was interrupted before the end of the model",
                "Run the same capture again to complete it",
            )
        describe = partial(_describe_logits, opened.spec, opened.main)
        terminal.write(out, opened.logits, "logits", describe)
        return
    inputs.require_one()
    if tasks.kind_of(source) == "capture":
        raise typer.BadParameter(f"{source.name} is a capture with its own text: give none.")
    model = open_model(source, device)
    prompt, target = inputs.read(model)
    if generate is not None:
        work = partial(tasks.write, model, prompt, generate, target, seed)
        written, start, _ = terminal.run(work, "Generating")
        text = written.words(start, len(written))
        terminal.quote(text or " ".join(written.pieces[start:]), out == terminal.STDOUT)
        prompt, target = (written, None) if target is None else (prompt, written)
    answer = terminal.run(partial(model.trace, prompt, target), "Running the model")
    describe = partial(_describe_logits, model.spec, prompt if target is None else target)
    terminal.write(out, answer, "logits", describe)


def _describe_logits(spec: ModelSpec, prompt: Prompt) -> dict[str, Any]:
    """What identifies logits in a .npz: the tokens, and of a classifier its classes."""
    labels = {"labels": list(spec.labels)} if spec.labels else {}
    return {"tokens": prompt.labels(), **labels}


def rollout(
    source: CaptureFile, out: OutArray, recipe: Recipe, rows: Rows = None, item: Item = 0
) -> None:
    """Save the attention rollout of a capture.

    It estimates how much each input token contributes to each output token.
    """
    from hgviz import tasks

    opened = tasks.capture_at(source, item)
    limits = (rows.start, rows.stop) if rows else None
    work = partial(tasks.rollout, opened, limits, recipe.of(opened))

    def describe() -> dict[str, Any]:
        keys = opened.prompt.labels() + (opened.main.labels() if opened.target is not None else [])
        tokens = opened.main.labels()[slice(*limits) if limits else slice(None)]
        return {"tokens": tokens, "key_tokens": keys + [""] * recipe.nothing}

    terminal.write(out, terminal.run(work, "Computing rollout"), "rollout", describe)


def tokens(
    source: CaptureOrModel,
    inputs: TextsOrIds,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT.csv|-",
            callback=ends_in(".csv", or_stdout=True),
            help="Output file, a row for each token; -: CSV to standard output.",
        ),
    ] = None,
    item: Item = 0,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """List the tokens of a text.

    Each with its ID, its string in the vocabulary (piece) and its range of characters in the text,
    from start up to end, counted from 0; special tokens have none. For a model that shortens texts,
    level_1 is the token's row in the maps of level 1, as `hgviz map --rows` counts them.
    """
    from hgviz import tasks

    require_unread(out, source, *inputs.files)
    if tasks.kind_of(source) == "capture":
        if inputs.any or inputs.target is not None or inputs.text_pair is not None:
            raise typer.BadParameter(f"{source.name} is a capture with its own text: give none.")
        opened = tasks.capture_at(source, item)
    else:
        inputs.require_one()
        model = open_model(source, device)
        prompt, target = inputs.read(model)
        opened = terminal.run(partial(tasks.read_capture, model, prompt, target), "Reading")
    rows = tasks.token_rows(opened)
    if out is not None:
        terminal.write_facts(out, {}, rows)
    if as_json:
        text, target_text = opened.prompt.text, opened.target and opened.target.text
        facts = {"model": opened.spec.name, "text": text, "target": target_text, "tokens": rows}
        print(json.dumps(facts))
    elif out is None:
        terminal.show({"tokens": rows})
    elif out != terminal.STDOUT:
        terminal.say(f"{out}: {counted(len(rows), 'token')}.")
