"""The verbs that open a checkpoint, score it, train one, or convert it."""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

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
    Limit,
    Off,
    OutFolder,
    StreamingHeads,
    Window,
    open_model,
)
from hgviz.errors import HgvizError, no_attention_error, quote_name
from hgviz.files import find_sample, guide_pages
from hgviz.language import counted, duration


def demo(
    context: typer.Context,
    headless: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Run off screen and write the results to DIR."),
    ] = None,
) -> int:
    """Open the sample in the window.

    Without a display, write the results to ./hgviz-demo.
    """
    window: Window = context.obj
    return window.demo(headless)


def selftest(context: typer.Context) -> int:
    """Check this installation.

    It tests a model, a capture, a file, a figure and the window.
    """
    window: Window = context.obj
    return window.selftest()


def info(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", parser=find_sample, help="A checkpoint, a capture or a study."
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show the contents of a checkpoint, capture or study.

    Levels, layers and heads; of a study, its measurements.
    """
    from hgviz import tasks

    facts = tasks.info(path)
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    terminal.show(facts)
    if facts["kind"] == "checkpoint" and not facts["layers"]:
        terminal.say(" ".join(no_attention_error(facts["family"]).lines))


def docs(
    page: Annotated[
        str, typer.Argument(metavar="PAGE", help="Name of the page, such as how-to/prune or prune.")
    ] = "",
) -> None:
    """Show a page of the guide, as Markdown.

    Without PAGE, list all pages with their titles.
    """
    pages = guide_pages()
    if not page:
        for name, path in pages.items():
            title = path.read_text("utf-8").partition("\n")[0].lstrip("# ")
            terminal.say(f"{name}: {title}")
        return
    names = {name.rpartition("/")[2]: name for name in pages} | dict(zip(pages, pages, strict=True))
    asked = page.removesuffix(".md")
    if asked not in names:
        near = get_close_matches(asked, names, 1)
        do = f"Did you mean {names[near[0]]}?" if near else "`hgviz docs` lists all pages"
        raise HgvizError(f"there is no page {quote_name(page)} in the guide", do)
    print(pages[names[asked]].read_text("utf-8"), end="")


def evaluate(
    model: Checkpoint,
    data: Data,
    stream: StreamingHeads,
    off: Off = "",
    ablation: AblatedBy = "zero",
    limit: Limit = None,
    batch_size: BatchSize = None,
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Score a model on data, with a 95 % confidence interval.

    Classifiers: accuracy, F1 and Matthews correlation (MCC) on labelled rows; rows of images or
    sounds name their files. Language models: loss, perplexity, bits per byte and next-token
    accuracy; masked language models: accuracy on masked tokens; on a text, or on each text of a
    table (.tsv, .csv, .jsonl) by itself. Token classifiers: accuracy, on lists of words and tags
    (.jsonl). Question answering: accuracy of the start and end of answers, on rows like SQuAD's.
    Models of hidden states: how far these move with heads switched off, as 1 - cosine.
    """
    from hgviz import tasks
    from hgviz.analysis.statistics import describe_score

    loaded = open_model(model, device, activation=activation)
    heads_off, streaming = stream.with_mask(off, loaded.spec)
    work = partial(
        tasks.evaluate, loaded, data.data, data.text_column, data.label_column,
        heads_off, data.labels, streaming, limit, batch_size, ablation,
    )  # fmt: skip
    evaluation = terminal.run(work, "Scoring")
    facts = evaluation.to_dict()
    if as_json:
        print(json.dumps(facts))
        return
    name = loaded.spec.name if activation else model.name
    cut = f" Truncated to the model's maximum length: {evaluation.cut:,}." if evaluation.cut else ""
    score = describe_score(evaluation.score)
    if evaluation.accuracy is not None:
        terminal.say(
            f"{name}: loss {evaluation.loss:.3f}, perplexity {evaluation.perplexity:.3f}, "
            f"{score}; next-token accuracy {100 * evaluation.accuracy:.1f} %{evaluation.on}.{cut}"
        )
    else:
        names = {"loss": "loss", "f1": "F1", "mcc": "MCC"}
        values = (f"{label} {facts[key]:.3f}" for key, label in names.items() if key in facts)
        terminal.say(f"{name}: {score}{evaluation.on}; {', '.join(values)}.{cut}")
    if ablation != "zero" and heads_off:
        other = "mean over the data" if ablation == "mean" else "output for another example"
        terminal.say(f"The output of heads that are off is replaced by their {other}.")
    if streaming.heads:
        terminal.say(
            f"Streaming heads: {len(streaming.heads):,}. At {evaluation.longest:,} tokens the "
            f"cache keeps {evaluation.cached:.3f} of its keys and values."
        )


def train(
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="Training file.")],
    out: OutFolder,
    as_json: AsJson = False,
) -> None:
    """Train a small model, or resume its training.

    `hgviz docs how-to/train` has the keys of a training file.
    """
    from hgviz import tasks

    resume = f"The last checkpoint is saved in {out}; run the same command to resume"
    report = terminal.run(partial(tasks.train, config, out), "Training", resume, out)
    if as_json:
        print(json.dumps(report.to_dict()))
        return
    metric = report.metric.replace("_", " ")
    before = ", ".join(
        f"{name} {score[report.metric]:.3f}" for name, score in report.before.items()
    )
    terminal.say(
        f"{out}: {metric} {report.value:.3f} on the held-out data{before and f' ({before})'} "
        f"after {report.steps:,} steps in {duration(report.seconds)}."
    )
    for role, heads in report.roles.items():
        names = ",".join(map(str, sorted(heads)))
        terminal.say(f"{counted(len(heads), 'head')} {role}{names and ': '}{names}")


def convert(
    model: Checkpoint,
    out: OutFolder,
    force: Force = False,
    hierarchy: Annotated[
        str | None,
        typer.Option(metavar="H", help='WEIGHTS.npz of trax: "5@1 24@3 5@1", or "24@3".'),
    ] = None,
    attention_upsampling: Annotated[
        Literal["repeat", "none"] | None,
        typer.Option(help="WEIGHTS.npz of trax: how it makes queries when upsampling."),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        typer.Option(metavar="F.json", help="WEIGHTS.npz of trax: its tokenizer.json."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Convert a checkpoint; its logits stay the same, bit for bit.

    The output is a folder in the format of hgviz. For a model of transformers, transformers opens
    it too: shards, .bin files and old names become one model.safetensors, vocabulary files become
    a tokenizer.json, and other files are copied.

    MODEL may also be weights that were trained with trax and exported to .npz; what these do not
    contain is given by --hierarchy and --attention-upsampling. Texts of such a model begin with
    token 0.
    """
    from hgviz import tasks

    is_trax = model.suffix == ".npz"
    trax_options = (hierarchy, attention_upsampling, tokenizer)
    if not is_trax and trax_options != (None, None, None):
        raise typer.BadParameter(
            "--hierarchy, --attention-upsampling and --tokenizer are for WEIGHTS.npz of trax."
        )
    spec = terminal.run(partial(tasks.convert, model, out, force, *trax_options), "Converting")
    if as_json:
        facts = {"path": str(out), "family": spec.family, "parameters": spec.parameters}
        print(json.dumps(facts))
        return
    terminal.say(f"{out}: {spec.family}, {spec.parameters:,} parameters.")
    if is_trax and (out / "tokenizer.json").exists():
        terminal.say("Its texts begin with token 0, as in trax.")
    elif is_trax:
        terminal.say("It has no tokenizer: use --ids that begin with token 0, as in trax.")
