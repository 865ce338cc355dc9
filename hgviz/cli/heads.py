"""The verbs that measure heads: roles, attribution, reach and redundancy."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hgviz.cli import terminal
from hgviz.cli.options import (
    FIGURE_FILES,
    Activation,
    AsJson,
    CaptureOrModel,
    Checkpoint,
    Corpus,
    Device,
    Group,
    Off,
    Page,
    Texts,
    TextsOrIds,
    command_words,
    ends_in,
    heads_of,
    open_model,
    require_unread,
)
from hgviz.errors import require
from hgviz.files import find_sample
from hgviz.language import counted, sentence

if TYPE_CHECKING:
    from hgviz.analysis.roles import CorpusRoles
    from hgviz.core import Capture, HeadId
    from hgviz.models.model import Model
    from hgviz.tasks.attribution import Question
    from hgviz.tasks.head_similarity import Redundancy

# --- roles ----------------------------------------------------------------------------------------


def heads(
    source: CaptureOrModel,
    inputs: Texts,
    corpus: Corpus = None,
    item: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Use only this text of a corpus, from 0."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="OUT.json|.csv",
            callback=ends_in(".json", ".csv"),
            help="All results; .csv: a row for each head.",
        ),
    ] = None,
    off: Off = "",
    activation: Activation = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Report the role and the metrics of each head; with --out or --json, its best examples too.

    Over all texts of a capture or of a corpus, or on one text. All rows are used of texts of up to
    8,192 tokens, evenly spaced rows of longer ones.
    """
    from hgviz import tasks

    kind = tasks.kind_of(source)
    require(
        kind != "study",
        f"{source} is a study: it holds the importance of heads, not their attention",
        "Give a capture, or the checkpoint with --corpus or --text",
    )
    if kind == "capture":
        if inputs.any or corpus is not None or off or activation is not None:
            raise typer.BadParameter(
                "A capture has its own texts, heads and activations: give none."
            )
        inputs.require_first()
    else:
        inputs.require_one(corpus=corpus)
        if item is not None:
            raise typer.BadParameter("--item is for a capture of a corpus.")
    require_unread(out, source, corpus, *inputs.files)
    if kind == "capture":
        work = partial(
            tasks.roles_of_capture, tasks.capture_at(source, item or 0), alone=item is not None
        )
    else:
        model = open_model(source, device, activation=activation)
        heads_off = heads_of(off, model)
        if corpus is not None:
            work = partial(tasks.roles_of_model, model, corpus, heads_off)
        else:
            work = partial(tasks.roles_of_text, model, *inputs.read(model), heads_off)
    _show_roles(terminal.run(work, "Measuring heads"), out, as_json)


def _show_roles(roles: CorpusRoles, out: Path | None, as_json: bool) -> None:
    from hgviz.tasks.heads import roles_to_dict

    facts = roles_to_dict(roles)
    if out is not None:
        terminal.write_facts(out, facts, [_role_row(head) for head in facts["heads"]])
    if as_json:
        print(json.dumps(facts, indent=1, allow_nan=False))
        return
    texts, tokens = counted(roles.texts, "text"), counted(roles.tokens, "token")
    terminal.say(f"{counted(len(roles.heads), 'head')} on {texts}, {tokens} in total.")
    columns = ("head", "level", "role", "score", "focus", "positional", "offset", "convolution")
    rows = [
        {name: head[name] for name in columns}
        | {"score": head["score"] or None, "nearest": head["nearest_head"]}
        for head in facts["heads"]
    ]
    if rows:
        terminal.show({"heads": rows})
    for note in facts["notes"]:
        terminal.say(sentence(note))
    if out is not None:
        terminal.say(f"All results are in {out}.")


def _role_row(head: dict[str, Any]) -> dict[str, Any]:
    """A row of the CSV: lists become words."""
    named = "; ".join(f"{role['words']}: {role['evidence']}" for role in head["named"])
    examples = "; ".join(
        f"text {place['text']}, query {place['query']}, key {place['key']}: {place['share']:.3f}"
        for place in head["examples"]
    )
    return head | {"named": named, "examples": examples}


# --- attribution ----------------------------------------------------------------------------------

ROWS = {"tokens": "tokens", "layers": "layers", "heads": "heads", "attention": "keys"}


@dataclass(frozen=True)
class QuestionOptions(Group):
    """Which output of a model is attributed, and how."""

    target_class: Annotated[
        list[str] | None,
        typer.Option(
            metavar="C",
            help="Classifier: name or number of the class (default: the predicted one).",
        ),
    ] = None
    token: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Language model: its prediction at this token; default: last."
        ),
    ] = None
    says: Annotated[
        list[str] | None,
        typer.Option(
            metavar="T|ID",
            help="Language model: the token to attribute (default: the next token of the text, or "
            "the predicted one at its end).",
        ),
    ] = None
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="S",
            min=2,
            help="Integration steps; default: for an error below 0.1 %, at most 4,096.",
        ),
    ] = None
    baseline: Annotated[
        Literal["mean", "blank", "zero"],
        typer.Option(help="Baseline: the mean embedding, blank tokens (mask or space), or zeros."),
    ] = "blank"

    def questions(self, model: Model, capture: Capture) -> list[Question]:
        """A question for each class or token that is named, or the one about the predicted one.

        Raises BadParameter for an answer that the model does not have, HgvizError for a model
        that gives hidden states.
        """
        from hgviz import tasks

        goal, is_classifier = model.spec.goal, model.spec.goal == "classes"
        require(
            goal != "states",
            "this model outputs hidden states: an attribution is of the logit of a class or token",
            "Open the model with its classifier or language-model layer",
        )
        if is_classifier and (self.token is not None or self.says):
            raise typer.BadParameter(
                "--token and --says are for language models; use --target-class."
            )
        if not is_classifier and self.target_class:
            raise typer.BadParameter("--target-class is for classifiers; use --token and --says.")
        _require_token(self.token, len(capture.main))
        question = tasks.default_question(goal, capture.logits, capture.main, self.token)
        assert question is not None
        question = replace(question, steps=self.steps or 0, baseline=self.baseline)
        names = dict.fromkeys(self.target_class or self.says or ())
        numbers = [tasks.answer_number(model, name) for name in names]
        return [replace(question, number=number) for number in numbers] or [question]


def attribute(
    model: Checkpoint,
    inputs: TextsOrIds,
    options: QuestionOptions,
    page: Page,
    method: Annotated[
        Literal["tokens", "layers", "heads", "attention"],
        typer.Option(
            help="tokens, layers: integrated gradients; heads: conductance; attention: one head's "
            "weights next to gradient x attention."
        ),
    ] = "tokens",
    head: Annotated[str, typer.Option(metavar="3.5", help="Head for --method attention.")] = "0.0",
    query: Annotated[
        int | None,
        typer.Option(metavar="Q", min=0, help="Its query token; default: --token, or all."),
    ] = None,
    off: Off = "",
    activation: Activation = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf|.json",
            callback=ends_in(".json", *FIGURE_FILES),
            help="A figure (.pdf, .svg, .png, .pgf), its numbers (.csv), or all results (.json).",
        ),
    ] = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Attribute an output to tokens, layers or heads.

    Computed by Captum. Attributions add up to the change of the output from the baseline to this
    text, up to the completeness error that is printed.
    """
    from hgviz import tasks
    from hgviz.core import Display

    inputs.require_one()
    is_figure = page.require(out, model, *inputs.files)
    answers = dict.fromkeys([*(options.target_class or ()), *(options.says or ())])
    if len(answers) > 1 and not (is_figure and method == "tokens"):
        raise typer.BadParameter("Several outputs need --method tokens and -o FIG.pdf.")
    loaded = open_model(model, device, activation=activation)
    heads_off = heads_of(off, loaded)
    chosen = _one_head(head, loaded) if method == "attention" else None
    prompt, target = inputs.read(loaded)
    capture = terminal.run(
        partial(tasks.capture, loaded, prompt, off=heads_off, target=target), "Reading"
    )
    questions = options.questions(loaded, capture)
    at = query if query is not None else questions[0].position
    if chosen is not None:
        _require_token(at, len(capture.query_prompt(chosen.layer)))
    attributions = [
        terminal.run(
            partial(
                tasks.attribute, loaded, prompt, question, target, heads_off,
                layers=method == "layers",
            ),
            "Attributing",
        )
        for question in questions
    ]  # fmt: skip
    first, question = attributions[0], questions[0]
    if question.position is None:
        answer: dict[str, Any] = {
            "class": question.number,
            "label": loaded.spec.labels[question.number],
        }
    else:
        answer = {
            "at": question.position, "after": capture.main.label(question.position),
            "token": question.number, "says": tasks.token_name(loaded, question.number),
        }  # fmt: skip
    facts: dict[str, Any] = {
        "model": model.name, "method": method, "answer": answer, "steps": first.steps,
        "baseline": question.baseline, "value": first.value, "start": first.start,
        "change": first.change, "sum": first.total,
        "error": None if math.isinf(first.error) else first.error,
    }  # fmt: skip
    keys = None
    if chosen is not None:
        keys = terminal.run(
            partial(tasks.key_scores, first, capture, chosen, at), "Reading the head"
        )
        pairs = "attention_and_gradient", "attention_and_tokens", "gradient_and_tokens"
        agreements = (None if math.isnan(value) else value for value in keys.agreements)
        agreement = dict(zip(pairs, agreements, strict=True))
        facts |= {"head": str(chosen), "query": at, "agreement": agreement}
    facts[ROWS[method]] = rows = tasks.attribution_rows(first, capture, method, keys)
    if is_figure and out is not None:
        is_classifier = loaded.spec.goal == "classes"
        panel = tasks.attribution_panel(
            page.spec("attribution", display=Display(scale="linear")),
            [
                (found, "" if is_classifier else tasks.token_name(loaded, found.question.number))
                for found in attributions
            ],
            capture, method, keys=keys, query=at, model=str(model),
            given=command_words(inputs.options() | {"--activation": activation}),
        )  # fmt: skip
        page.draw(panel, out)
    elif out is not None:
        terminal.write_facts(out, facts, rows)
    if as_json:
        print(json.dumps(facts))
    elif out is None:
        terminal.show(facts)
    else:
        size = counted(len(attributions) * len(rows), "row")
        is_table = out.name.lower().endswith((".json", ".csv"))
        terminal.say(f"{out}: {size if is_table else 'attribution'}.")


def _require_token(place: int | None, count: int) -> None:
    if place is not None and place >= count:
        raise typer.BadParameter(
            f"There is no token {place}: the text has tokens 0 to {count - 1:,}."
        )


def _one_head(name: str, model: Model) -> HeadId:
    chosen = heads_of(name, model)
    if len(chosen) != 1:
        raise typer.BadParameter("--head must name one head, such as 3.5.")
    return next(iter(chosen))


# --- reach and redundancy -------------------------------------------------------------------------

REACH_COLUMNS = (
    "model", "tokens", "causal", "farthest", "below_10_percent", "below_1_percent", "zero_from",
    "lag",
)  # fmt: skip


def _lengths(text: str) -> list[int]:
    """The numbers of 64,128,256. Raises BadParameter."""
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise typer.BadParameter(f"{text!r} is not a list of lengths, such as 64,128,256.")
    return sorted({int(part) for part in parts})


def reach(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...",
            parser=find_sample,
            help="One or more checkpoints, of any architecture.",
        ),
    ],
    inputs: TextsOrIds,
    page: Page,
    tokens: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Use N random tokens in place of a text."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="S", min=0, help="Random seed of --tokens; default 0.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(metavar="64,128,…", help="Also time forward passes of these lengths."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf|.json|.npy",
            callback=ends_in(".json", ".npy", *FIGURE_FILES),
            help="A figure (.pdf, .svg, .png, .pgf), its numbers (.csv), all results (.json), "
            "or the matrix of one model (.npy).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure which tokens each output depends on.

    By gradients, also for models without attention: whether any output depends on a later token
    (exactly), how far back outputs depend on tokens, where this dependence has faded, and costs
    from the model's configuration: steps between the ends of the text, sequential operations,
    multiply-adds. One backward pass for each output, in float64 on the CPU.
    """
    from hgviz import tasks
    from hgviz.tasks import reachability

    inputs.require_one(tokens=tokens)
    if seed is not None and tokens is None:
        raise typer.BadParameter("--seed requires --tokens, which are drawn at random.")
    times = None if lengths is None else _lengths(lengths)
    is_figure = page.require(out, *models, *inputs.files)
    is_matrix = out is not None and out.name.lower().endswith(".npy")
    if is_matrix and len(models) > 1:
        raise typer.BadParameter("A .npy file holds the matrix of one model.")
    opened, reaches = [], []
    for path in models:
        model = open_model(path, "cpu", dtype="float64")
        if tokens is not None:
            prompts = reachability.random_prompts(model, tokens, seed or 0)
        else:
            has_target = model.spec.form == "encoder-decoder"
            own = inputs if has_target else replace(inputs, target=None)
            prompts = own.read(model)
        reaches.append(
            terminal.run(partial(tasks.reach, model, *prompts), f"Measuring {path.name}")
        )
        opened.append(model)
    seconds = None
    if times is not None:  # in the precision that models are used in
        usual = [open_model(path, "cpu") for path in models]
        seconds = terminal.run(partial(tasks.pass_times, usual, times), "Timing")
    facts = tasks.reach_facts(opened, reaches, seconds)
    if is_figure and out is not None:
        words = command_words(
            inputs.options() | {"--tokens": tokens, "--seed": seed, "--lengths": lengths}
        )
        page.draw(tasks.reach_panel(page.spec("reach"), reaches, seconds, words, models), out)
    elif is_matrix and out is not None:
        terminal.write(out, reaches[0].matrix)
    elif out is not None:
        terminal.write_facts(out, facts, [])
    if as_json:
        print(json.dumps(facts))
    elif out is None:
        rows = [{key: row[key] for key in REACH_COLUMNS} for row in facts["reach"]]
        terminal.show({**facts, "reach": rows})
        for name, measured in zip(reachability.names_of(reaches), reaches, strict=True):
            terminal.say(measured.describe(name))
    elif not is_matrix:
        terminal.say(f"{out}: reach of {counted(len(reaches), 'model')}.")


def redundancy(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            parser=find_sample,
            help="One checkpoint, to compare weights, or captures (.h5), to compare maps.",
        ),
    ],
    page: Page,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="FIG.pdf|.json|.csv",
            callback=ends_in(".json", *FIGURE_FILES),
            help="A figure (.pdf, .svg, .png, .pgf), its numbers (.csv), or all results (.json).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure how similar the heads of each layer are.

    Of a checkpoint: how many dimensions hold 90, 95 and 99 % of the energy of W_QK = W_Q^T W_K, out
    of all that the heads have, and the cosine similarity of W_QK between heads. Of captures: the
    mean Jensen-Shannon distance between maps, from 0 (identical) to 1 (nothing in common).
    """
    from hgviz import tasks

    kinds = [tasks.kind_of(path) for path in sources]
    if kinds != ["checkpoint"] and set(kinds) != {"capture"}:
        raise typer.BadParameter("Give one checkpoint, or one or more captures.")
    is_figure = page.require(out, *sources)
    if kinds == ["checkpoint"]:
        work = partial(tasks.redundancy, sources[0])
    else:
        work = partial(tasks.redundancy_of_captures, [tasks.capture_at(path) for path in sources])
    similarity = terminal.run(work, "Comparing heads")
    if is_figure and out is not None:
        page.draw(tasks.redundancy_panel(page.spec("redundancy"), similarity, sources), out)
    elif out is not None:
        terminal.write_facts(out, similarity.to_dict(), [])
    if as_json:
        print(json.dumps(similarity.to_dict(), allow_nan=False))
    elif out is None:
        terminal.show({"layers": [_redundancy_row(layer) for layer in similarity.layers]})
        for note in similarity.notes:
            terminal.say(note)
    else:
        terminal.say(f"{out}: {counted(len(similarity.layers), 'layer')}.")


def _redundancy_row(layer: Redundancy) -> dict[str, Any]:
    """A layer: dimensions and cosines of a checkpoint, rows and distances of captures."""
    row: dict[str, Any] = {"layer": layer.layer.index, "heads": len(layer.heads)}
    if layer.stacked is not None and layer.over_heads is not None:
        row["dimensions"] = layer.stacked.most
        row |= {f"{100 * share:.0f} %": rank for share, rank in layer.stacked.ranks().items()}
        ranks = layer.over_heads.ranks()
        row["heads for 99 %"] = ranks[max(ranks)]
    else:
        row["rows"] = layer.rows
    measure, mean = ("cosine", "mean |cosine|") if layer.cosines else ("distance", "mean distance")
    a, b, value = layer.pairs[0] if layer.pairs else ("", "", None)
    return row | {mean: layer.mean, "most similar": a and f"{a} and {b}", measure: value}
