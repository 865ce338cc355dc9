"""Every verb that takes long: it returns its result when called, reports how far it is to whoever
listens, and ends where it is cancelled."""

import itertools
from types import SimpleNamespace

import msgspec
import pytest

from hgviz import tasks
from hgviz.core import Capture, HeadId, Selection
from hgviz.figures.spec import Spec
from hgviz.models import open_model
from tests.models.folders import own_bert, write_bert, write_gpt2
from tests.models.trainings import CLASSIFIER
from tests.progress import cancelled, with_steps

TEXT = "the hidden states of BERT"
SENTENCES = ("a film to see", "nothing to see", "the sand ran", "see it again")
OFF = frozenset({HeadId(0, 1)})
NEEDS = frozenset({"gradient"})
STUDY = """
asks = ["score"]
[[models]]
name = "bert"
checkpoint = "bert"
[[data]]
valid = "rows.tsv"
"""


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """A tiny classifier and a tiny language model, and what verbs make of them."""
    folder = tmp_path_factory.mktemp("verbs")
    bert, gpt2, data = write_bert(folder / "bert"), write_gpt2(folder / "gpt2"), folder / "rows.tsv"
    rows = [f"{text}\t{label}" for text in SENTENCES * 3 for label in ("against", "for")]
    data.write_text("\n".join(["sentence\tlabel", *rows]) + "\n")
    (folder / "texts.txt").write_text("\n".join(SENTENCES) + "\n")
    plan = {**CLASSIFIER, "recipe": {**CLASSIFIER["recipe"], "steps": 2}}
    (folder / "plan.toml").write_bytes(msgspec.toml.encode(plan))
    for name in ("train", "dev"):
        (folder / f"{name}.tsv").write_text(data.read_text())
    (folder / "study.toml").write_text(STUDY)
    model, writer = open_model(bert), open_model(gpt2)
    capture = tasks.capture(model, model.tokenize(TEXT))
    trials = tasks.trials_of(model, data)
    study = tasks.importance(trials, NEEDS, "rows.tsv")
    question = tasks.default_question(model.spec.goal, capture.logits, capture.prompt, None)
    sweep = folder / "sweep"
    tasks.run_sweep(folder / "study.toml", sweep)
    out = (folder / f"out{number}" for number in itertools.count())
    return SimpleNamespace(
        folder=folder, bert=bert, gpt2=gpt2, data=data, model=model, writer=writer, sweep=sweep,
        own=own_bert(folder / "own"),
        prompt=model.tokenize(TEXT), start=writer.tokenize("the"), capture=capture, trials=trials,
        study=study, question=question, out=lambda suffix="": next(out).with_suffix(suffix),
    )  # fmt: skip


def _stored(given):
    path = given.out(".h5")
    tasks.study(given.trials, NEEDS, path)
    return path


# of each verb: the call, made anew every time, since some write files
VERBS = {
    "capture": lambda it: (tasks.capture, it.model, it.prompt),
    "capture to a file": lambda it: (tasks.capture, it.model, it.prompt, it.out(".h5")),
    "capture_like": lambda it: (tasks.capture_like, it.model, it.capture, OFF),
    "capture_corpus": lambda it: (
        tasks.capture_corpus, it.model, it.folder / "texts.txt", it.out(".h5")
    ),
    "capture_written": lambda it: (tasks.capture_written, it.writer, it.start, 1),
    "compare": lambda it: (tasks.compare, it.capture, it.capture),
    "compare_answers": lambda it: (tasks.compare_answers, it.model, it.model, it.data),
    "compare_models": lambda it: (tasks.compare_models, it.model, it.model, it.data, TEXT),
    "convert": lambda it: (tasks.convert, it.bert, it.out()),
    "curve": lambda it: (tasks.curve, it.trials, it.study, "signed", 1),
    "draw": lambda it: (tasks.draw, tasks.panel(Spec("map"), it.capture), it.out(".svg")),
    "evaluate": lambda it: (tasks.evaluate, it.model, it.data),
    "attribute": lambda it: (tasks.attribute, it.model, it.prompt, it.question),
    "figure": lambda it: (tasks.figure, Spec("map", Selection()), it.capture, it.out(".svg")),
    "generate": lambda it: (tasks.generate, it.writer, it.start, 3),
    "roles_of_capture": lambda it: (tasks.roles_of_capture, it.capture),
    "roles_of_model": lambda it: (tasks.roles_of_model, it.model, it.folder / "texts.txt"),
    "roles_of_text": lambda it: (tasks.roles_of_text, it.model, it.prompt),
    "heads_of_study": lambda it: (tasks.heads_of_study, _stored(it), it.bert, "2", "signed"),
    "importance": lambda it: (tasks.importance, it.trials, NEEDS),
    "load": lambda it: (tasks.load, it.bert, "cpu"),
    "open_sweep": lambda it: (tasks.open_sweep, it.sweep),
    "panel": lambda it: (tasks.panel, Spec("profile"), it.capture),
    "pass_times": lambda it: (tasks.pass_times, [it.model], [4, 8], 1),
    "patching": lambda it: (
        tasks.patching, it.model, it.prompt, it.model.from_ids(it.prompt.ids[::-1]), 0, 1
    ),
    "preview": lambda it: (tasks.preview, tasks.panel(Spec("map"), it.capture), 72.0),
    "prune": lambda it: (tasks.prune, it.bert, "0.1", it.out()),
    "reach": lambda it: (tasks.reach, it.writer, it.start),
    "redundancy": lambda it: (tasks.redundancy, it.own),
    "redundancy_of_captures": lambda it: (tasks.redundancy_of_captures, [it.capture]),
    "rollout": lambda it: (tasks.rollout, it.capture),
    "rollout_capture": lambda it: (tasks.rollout_capture, it.capture),
    "run_sweep": lambda it: (tasks.run_sweep, it.folder / "study.toml", it.out()),
    "save": lambda it: (tasks.save, it.capture, it.out(".h5")),
    "study": lambda it: (tasks.study, it.trials, NEEDS, it.out(".h5")),
    "study_report": lambda it: (tasks.study_report, it.sweep, it.out(".html")),
    "train": lambda it: (tasks.train, it.folder / "plan.toml", it.out()),
    "trials_of": lambda it: (tasks.trials_of, it.model, it.data),
    "try_heads": lambda it: (tasks.try_heads, it.trials, OFF),
    "write": lambda it: (tasks.write, it.writer, it.start, 3),
}  # fmt: skip
# what asks nothing that takes long, or only wraps other verbs
IMMEDIATE = {
    "Estimate", "answer_number", "checkpoint_formats", "checkpoint_suffixes", "digest_of",
    "trials_on",
    "attribution_panel", "attribution_rows", "capture_at", "study_chart",
    "curve_times", "estimate", "examples_from", "prompt_options", "key_scores",
    "heads_to_remove", "info", "is_sweep_file", "keeping", "kept_study", "kind_of", "learned",
    "read_capture", "read_prompts", "default_question", "reach_facts", "reach_panel",
    "redundancy_panel", "token_name", "token_rows", "sources_of", "spec_from", "study_at",
    "read_results", "sweep_at", "sweep_chart", "text_of", "tokens_or_slots",
    "blocks_without_attention", "with_learned", "write_report",
}  # fmt: skip


def test_every_verb_is_here():
    assert {name.split()[0] for name in VERBS} | IMMEDIATE == set(tasks.__all__)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_returns_its_result_reports_and_can_be_cancelled(given, name):
    work, *arguments = VERBS[name](given)
    result = work(*arguments)
    assert result is not None and not hasattr(result, "send")
    work, *arguments = VERBS[name](given)
    heard, steps = with_steps(work, *arguments)
    assert type(heard) is type(result)
    assert steps and all(0 <= step.done <= step.total for step in steps)
    if isinstance(result, Capture):
        assert heard.complete and heard.main.digest == result.main.digest
    work, *arguments = VERBS[name](given)
    assert len(cancelled(work, *arguments)) == 1
