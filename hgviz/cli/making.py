"""The verbs that make something with a model: a capture, a checkpoint, a score."""

from __future__ import annotations

import json
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    Activation,
    AsJson,
    Audio,
    Checkpoint,
    Data,
    Device,
    Image,
    LabelColumn,
    Labels,
    Off,
    Recent,
    Sink,
    Streaming,
    Target,
    TextColumn,
    TextPair,
    no_other,
    reads_of,
    require_read,
)
from hgviz.files import find_sample
from hgviz.language import counted

if TYPE_CHECKING:
    from hgviz.core import Capture

LONG = 30.0  # s that a capture takes before it says how long it will


def capture(
    model: Checkpoint,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="OUT.h5", callback=no_other, help="Where to.")
    ],
    text: Annotated[str | None, typer.Option(metavar="T", help="The text itself.")] = None,
    text_pair: TextPair = None,
    target: Target = None,
    text_file: Annotated[Path | None, typer.Option(metavar="F", help="Text in UTF-8.")] = None,
    ids: Annotated[
        Path | None,
        typer.Option(
            metavar="F.json",
            help='{"input_ids": [...]}, and where they apply "attention_mask", "token_type_ids", '
            '"position_ids", "decoder_input_ids", "decoder_attention_mask", '
            '"encoder_hidden_states", "encoder_attention_mask", "boundaries".',
        ),
    ] = None,
    image: Image = None,
    audio: Audio = None,
    corpus: Annotated[
        Path | None,
        typer.Option(
            metavar="F.txt|.tsv|.csv|.jsonl",
            parser=find_sample,
            help="Many texts into one file: a text a line, or rows with a column of texts.",
        ),
    ] = None,
    generate: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Let the model go on for up to N tokens."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", min=0, help="Draw them; else the likeliest follow.")
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Divides the logits, with --seed; else 1.")
    ] = None,
    boundaries: Annotated[
        str,
        typer.Option(
            metavar="B",
            help="Where segments end, in place of what the model finds: fixed:K, whitespace, or a "
            "file of a 0 or 1 for each token.",
        ),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Replace OUT.h5.")] = False,
    off: Off = "",
    streaming: Streaming = "",
    sink: Sink = 4,
    recent: Recent = 256,
    dense: Annotated[
        bool,
        typer.Option(
            "--dense", help="Keep the weights themselves: every one of them, for short texts."
        ),
    ] = False,
    masking: Annotated[
        Literal["compat", "strict"] | None,
        typer.Option(help="Treat masks as the model's own package does, or strictly."),
    ] = None,
    activation: Activation = None,
    device: Device = "auto",
    dtype: Annotated[
        Literal["float64", "float32", "bfloat16", "float16"],
        typer.Option(help="What the model computes in."),
    ] = "float32",
) -> None:
    """Run a model on a text, a pair, an image or a sound, and save the attention of every head.

    Give the text by --text, --text-file or --ids, an --image or --audio to models that read these,
    or many texts by --corpus. An interrupted capture
    leaves OUT.h5.part; the same command goes on from there. With --generate the model writes first,
    and what is kept is of the whole text.
    """
    from hgviz import tasks
    from hgviz.core import Streaming as Few

    signal = image or audio
    inputs = (text, text_file, None if signal else ids, image, audio, corpus)
    if sum(one is not None for one in inputs) != 1:
        raise typer.BadParameter(
            "Give exactly one of --text, --text-file, --ids, --image, --audio and --corpus."
        )
    if corpus is not None and (text_pair, target, generate) != (None, None, None):
        raise typer.BadParameter(
            "--text-pair, --target and --generate go with one text; the rows of a corpus hold all."
        )
    if corpus is not None and boundaries:
        raise typer.BadParameter("--boundaries go with one text.")
    if ids is not None and (text_pair is not None or target is not None):
        raise typer.BadParameter("--text-pair and --target go with a text; --ids holds them all.")
    if generate is not None and streaming:
        raise typer.BadParameter("--streaming goes with a text as it is, not with --generate.")
    if generate is None and (seed, temperature) != (None, None):
        raise typer.BadParameter("--seed and --temperature go with --generate.")
    if temperature is not None and (seed is None or not 0 < temperature < inf):
        raise typer.BadParameter("--temperature is a number above 0, and goes with --seed.")
    read = [
        one for one in (text_file, ids, image, audio, corpus) if one is not None and one.exists()
    ]
    if out.exists() and any(one.samefile(out) for one in read):
        raise typer.BadParameter("-o names the file that is read; --force would replace it.")
    loaded = terminal.run(
        partial(tasks.load, model, device, dtype, masking, activation, reads_of(image, audio)),
        f"Opening {model.name}",
    )
    chosen = tasks.heads_from(off, loaded.spec)
    few = Few(tasks.heads_from(streaming, loaded.spec), sink, recent)
    part = Path(f"{out}.part")
    kept = f"What was done is kept in {part}; the same command goes on from there"
    if corpus is not None:
        many = partial(tasks.capture_corpus, loaded, corpus, out, chosen, force, dense, few)
        terminal.say(_closing(out, terminal.run(many, "Capturing", kept, part)))
        return
    require_read(loaded.spec, image, audio)
    if ids is None and signal is None and loaded.spec.modality == "text":
        from hgviz.models.prompts import read_text

        said = text or "" if text_file is None else read_text(text_file)
        told = terminal.run(partial(tasks.estimate, loaded, said, into_file=True), "Reading")
        if told.seconds > LONG:
            layers = counted(len(loaded.spec.layers), "layer")
            terminal.complain(f"{layers}, {told.tokens:,} tokens: {told.words}.")
    prompt, second = tasks.prompt_from(
        loaded, text, text_file, ids, text_pair, target, boundaries, signal, generate is not None
    )
    if generate is None:
        work = partial(
            tasks.capture, loaded, prompt, out, chosen, force, second, dense=dense, streaming=few
        )
        terminal.say(_closing(out, terminal.run(work, "Capturing", kept, part)))
        return
    work = partial(
        tasks.generate,
        loaded,
        prompt,
        generate,
        out,
        chosen,
        force,
        second,
        seed,
        temperature or 1.0,
        dense,
    )
    made = terminal.run(work, "Writing", "The same command writes the same text and goes on")
    given = len(prompt if second is None else second)
    words = made.main.words(given, len(made.main)) or " ".join(made.main.pieces[given:])
    terminal.quote(words)
    terminal.say(f"{_closing(out, made)[:-1]}; the model wrote {made.made.generated}.")


def _closing(out: Path, made: Capture) -> str:
    heads = counted(len(made.spec.heads), "head")
    layers = counted(len(made.maps), "layer")
    if made.items:
        tokens = counted(sum(one.tokens for one in made.items), "token")
        texts = counted(len(made.items), "text")
        return f"{out}: {heads} in {layers} on {texts}, {tokens} together."
    noun, whose = ("state", "an encoder") if made.prompt.states is not None else ("token", "source")
    noun = "position" if made.prompt.signal is not None else noun
    read = counted(len(made.prompt), noun)
    if made.target is not None:
        read += f" of {whose} and {counted(len(made.target), 'token')} of target"
    return f"{out}: {heads} in {layers} on {read}."


def train(
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="What to train on what.")],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The checkpoint.")],
) -> None:
    """Train a small model on texts or labelled rows; run it again to resume."""
    from hgviz import tasks

    kept = f"The last checkpoint is kept in {out}; the same command goes on from there"
    report = terminal.run(partial(tasks.train, config, out), "Training", kept, out)
    words = report.metric.replace("_", " ")
    before = ", ".join(f"{name} {one[report.metric]:.3f}" for name, one in report.before.items())
    came = f" ({before})" if before else ""
    terminal.say(
        f"{out}: {words} {report.value:.3f} on the held-out data{came} "
        f"after {report.steps:,} steps in {report.seconds / 60:.0f} minutes."
    )
    for role, heads in report.roles.items():
        named = ",".join(map(str, sorted(heads)))
        terminal.say(f"{counted(len(heads), 'head')} {role}{named and ': '}{named}")


def convert(
    model: Checkpoint,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="DIR", help="The new folder.")],
    force: Annotated[
        bool, typer.Option("--force", help="Write into a folder that is not empty.")
    ] = False,
    hierarchy: Annotated[
        str | None,
        typer.Option(metavar="H", help='Of trax\'s WEIGHTS.npz: "5@1 24@3 5@1", or "24@3".'),
    ] = None,
    attention_upsampling: Annotated[
        Literal["repeat", "none"] | None,
        typer.Option(help="Of trax's WEIGHTS.npz: what attention begins with on the way up."),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="F.json", help="Of trax's WEIGHTS.npz: its tokenizer.json."),
    ] = None,
) -> None:
    """Convert a checkpoint into one folder that gives the same logits, bit for bit.

    It is hgviz's own; of a model of transformers it is one that transformers opens too: one
    model.safetensors of shards, .bin files or old names, a tokenizer.json of vocabulary files, and
    the model's other files as they are.

    MODEL may also be weights that trax trained, exported to .npz; what they do not show is asked
    for by --hierarchy and --attention-upsampling. Texts of such a model begin with token 0.
    """
    from hgviz import tasks

    arrays = model.suffix == ".npz"
    said = (hierarchy, attention_upsampling, tokenizer)
    if not arrays and said != (None, None, None):
        raise typer.BadParameter(
            "--hierarchy, --attention-upsampling and --tokenizer go with WEIGHTS.npz of trax."
        )
    spec = terminal.run(partial(tasks.convert, model, out, force, *said), "Converting")
    terminal.say(f"{out}: {spec.family}, {spec.parameters:,} parameters.")
    if arrays and (out / "tokenizer.json").exists():
        terminal.say("Its texts begin with token 0, as trax puts one before them.")
    elif arrays:
        terminal.say("It has no tokenizer: give --ids that begin with 0, as trax puts one there.")


def evaluate(
    model: Checkpoint,
    data: Data,
    text_column: TextColumn = "",
    label_column: LabelColumn = "",
    labels: Labels = None,
    off: Off = "",
    streaming: Streaming = "",
    sink: Sink = 4,
    recent: Recent = 256,
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Score a model on labelled data or a text, with a 95 % confidence interval.

    A classifier: accuracy, F1 and Matthews correlation on labelled rows, of images or sounds on
    rows with the names of their files. A language model: bits per byte; a masked one: how many of
    the masked tokens it guesses; on a text, or on each text of a table (.tsv, .csv, .jsonl) by
    itself. A model of tokens' classes: the share that is right, on lists of words and tags
    (.jsonl); one that answers questions: of where answers begin and end, on rows as SQuAD's. A
    model of hidden states: how far they move when heads go off, as 1 - cosine.
    """
    from hgviz import tasks
    from hgviz.analysis.statistics import describe_score
    from hgviz.core import Streaming as Few

    opening = partial(tasks.load, model, device, activation=activation)
    loaded = terminal.run(opening, f"Opening {model.name}")
    heads = tasks.heads_from(off, loaded.spec)
    few = Few(tasks.heads_from(streaming, loaded.spec), sink, recent)
    work = partial(tasks.evaluate, loaded, data, text_column, label_column, heads, labels, few)
    found = terminal.run(work, "Scoring")
    facts = found.to_dict()
    if as_json:
        print(json.dumps(facts))
        return
    names = {"loss": "loss", "f1": "F1", "mcc": "Matthews", "perplexity": "perplexity"}
    extra = ", ".join(f"{words} {facts[key]:.3f}" for key, words in names.items() if key in facts)
    cut = f" Too long and cut to what it reads: {found.cut:,}." if found.cut else ""
    terminal.say(f"{model.name}: {describe_score(found.score)}{found.on}; {extra}.{cut}")
    if few.heads:
        terminal.say(
            f"Heads that stream: {len(few.heads):,}. Of {found.longest:,} tokens the cache keeps "
            f"{found.cached:.3f} of its keys and values."
        )
