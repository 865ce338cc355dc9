"""hgviz from Python: the commands as functions.

They take models, captures and studies, or paths of them, and the options of the command of the same
name. progress="auto" shows a bar for long work, None shows nothing, and a function is called with
each hgviz.core.Step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Literal

from hgviz import tasks
from hgviz.analysis.importance import METHODS
from hgviz.analysis.importance import importance as scores_of
from hgviz.core import (
    Ablation,
    Capture,
    HeadId,
    HeadSet,
    HgvizError,
    Modality,
    RolloutOptions,
    Step,
    current_listener,
    listening,
)
from hgviz.errors import choose, require
from hgviz.files import find_sample
from hgviz.maskfile import read_heads, write_mask
from hgviz.notebook import as_capture, as_model, is_capture, require_input
from hgviz.study import Study, default_score, measured_together
from hgviz.tasks.heads import roles_to_dict
from hgviz.tasks.pruning import curve_facts, newest_curve

if TYPE_CHECKING:
    from subprocess import Popen

    from hgviz.analysis.statistics import Evaluation
    from hgviz.core import Floats
    from hgviz.models.model import Model
    from hgviz.models.pruning import Proof

Heads = str | Iterable[HeadId | str]  # "3.5,4.*", "@FILE" (a mask file), or heads one by one
Progress = Literal["auto"] | None | Callable[[Step], Any]

# --- tables and progress --------------------------------------------------------------------------


class Table(list[dict[str, Any]]):
    """Rows with the same names; of: the study, roles or curve that they come from."""

    def __init__(self, rows: Iterable[dict[str, Any]], of: Any) -> None:
        super().__init__(rows)
        self.of = of

    def to_pandas(self) -> Any:
        """Return the rows as a pandas.DataFrame. Raises HgvizError where there is no pandas."""
        try:
            import pandas
        except ImportError:
            raise HgvizError("pandas is not installed", "Run: pip install pandas") from None
        return pandas.DataFrame([*self])

    def __repr__(self) -> str:
        names = ", ".join(self[0]) if self else "no rows"
        return f"<hgviz table, {len(self)} rows: {names}>"


@contextmanager
def _progress_bar(progress: Progress, title: str) -> Iterator[None]:
    """Show the progress of the work inside; an earlier listener still receives it."""
    outer = current_listener()
    if progress != "auto" or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
        with listening(progress if callable(progress) else outer):
            yield
        return
    from tqdm.auto import tqdm

    with tqdm(total=1.0, delay=1.0, miniters=0, leave=False, bar_format=BAR) as bar:

        def show(step: Step) -> None:
            outer(step)
            bar.n = bar.last_print_n = step.done / step.total if step.total else 0.0
            bar.set_description(f"{title}: {step.note}" if step.note else title, refresh=False)
            bar.update(0)

        with listening(show):
            yield


BAR = "{desc} {percentage:3.0f}% |{bar}| {remaining}"

# --- models and captures --------------------------------------------------------------------------


def open_model(
    path: str | Path,
    *,
    device: str = "auto",
    dtype: str = "float32",
    activation: str | None = None,
    reads: Modality = "text",
    progress: Progress = "auto",
) -> Model:
    """Open a checkpoint: a folder, a weights file, a name in the Hugging Face cache or a sample.

    Args:
        device: auto, cpu, cuda or mps.
        dtype: float64, float32, bfloat16 or float16.
        activation: replaces the activation of all heads, such as "ymish".
        reads: text, image or audio: which model of a folder such as CLIP's.

    Raises HgvizError.

        model = hgviz.open_model("sample/softmax")
    """
    with _progress_bar(progress, f"Opening {os.path.basename(path)}"):
        return tasks.load(find_sample(path), device, dtype, activation=activation, reads=reads)


def capture(
    model: Any,
    text: Any = None,
    *,
    pair: str | None = None,
    target: str | None = None,
    ids: str | Path | None = None,
    image: str | Path | None = None,
    audio: str | Path | None = None,
    tokenizer: Any = None,
    q: str = "",
    k: str = "",
    tokens: Sequence[str] = (),
    head_width: int = 0,
    causal: bool = False,
    out: str | Path | None = None,
    off: Heads = "",
    activation: str | None = None,
    device: str = "auto",
    dtype: str = "float32",
    force: bool = False,
    progress: Progress = "auto",
) -> Capture:
    """Run a model on a text, image or sound and return the queries and keys of every head.

    Args:
        model: an open model or the path of one, a model of transformers in memory, or any torch
            module, with `q` and `k`.
        text, pair, target: what the model reads. ids: a JSON file with input_ids.
        image, audio: a file, for models that read these.
        tokenizer: for a model in memory.
        q, k: of a torch module, the names of its projections with * for the layer, such as
            "blocks.*.attn.q"; what they return is (1, n, heads * head_width), ready for the product
            (after a rotation, where there is one). text is then what the module is called with: a
            tensor or a dict of tensors. tokens: (n,) words for its positions. causal: whether
            later keys are masked.
        out: a new .h5 file to write the capture to; without it, the capture stays in memory.
        off: heads to switch off, such as "3.5,4.*". activation, device, dtype: as in open_model.

    Returns:
        A Capture: `maps[layer].read(head)` gives (queries, keys) attention weights.

    Raises HgvizError.

        found = hgviz.capture("sample/softmax", "The soup was not good.")
        found.maps[1].read(2)
    """
    if q or k:
        from hgviz.models.modules import layers_of_module
        from hgviz.store import capture_of

        layers = layers_of_module(model, text, q, k, head_width, causal)
        words = tokens or [*map(str, range(layers[0]["q"].shape[1]))]
        made = capture_of(words, layers, type(model).__name__)
        return made if out is None else open_capture(write_capture(out, made, force=force))
    with _progress_bar(progress, "Capturing"):
        reads: Modality = "image" if image else "audio" if audio else "text"
        opened = as_model(model, device, dtype, activation, reads, tokenizer)
        signal = image or audio
        require_input(text, ids, signal)
        prompt, second = tasks.read_prompts(
            opened, text=text, pair=pair, target=target,
            ids_file=None if ids is None else Path(ids),
            signal_file=None if signal is None else Path(signal),
        )  # fmt: skip
        return tasks.capture(opened, prompt, out, _heads(off, opened), force, second)


def open_capture(path: str | Path, item: int = 0) -> Capture:
    """Open a capture; item: index of the text in a corpus. Raises HgvizError.

    hgviz.open_capture("my.h5").maps[3].read(5, rows=(0, 10))
    """
    return tasks.capture_at(find_sample(path), item)


def write_capture(
    path: str | Path,
    capture: Capture | None = None,
    *,
    tokens: Sequence[str] = (),
    layers: Sequence[Mapping[str, Any]] = (),
    attentions: Sequence[Any] = (),
    causal: bool = False,
    name: str = "model",
    logits: Any = None,
    force: bool = False,
) -> Path:
    """Write a capture, or the arrays or tensors of any program, to a new .h5 file.

    Args:
        capture: a complete capture.
        tokens: (n,) words, one for each position.
        layers: for each layer a dict with "q" (heads, n, d_head) and "k" (heads or fewer, n,
            d_head), or with "weights" (heads, n, n); see docs/how-to/capture.md for the others.
        attentions: in place of layers, what a model of transformers returns with
            output_attentions=True: a tensor (1, heads, n, n) for each layer. causal: whether it
            masks later keys.
        logits: (n, vocabulary) or None. force: replace the file.

    Raises HgvizError.

        answer = model(**inputs, output_attentions=True)
        hgviz.write_capture("my.h5", tokens=words, attentions=answer.attentions)
    """
    from hgviz.store import write_capture as write

    for weights in attentions:
        require(
            getattr(weights, "ndim", 0) == 4 and len(weights) == 1,
            f"attentions have the shape {tuple(getattr(weights, 'shape', ()))}, "
            "not (1, heads, n, n)",
            "Run the model on one text",
        )
    if attentions:
        layers = [{"weights": weights[0], "causal": causal} for weights in attentions]
    return write(path, capture, force, tokens=tokens, layers=layers, name=name, logits=logits)


def roles(
    source: Any,
    text: str | None = None,
    *,
    corpus: str | Path | None = None,
    pair: str | None = None,
    target: str | None = None,
    off: Heads = "",
    activation: str | None = None,
    device: str = "auto",
    progress: Progress = "auto",
) -> Table:
    """Roles of heads: a row for each head with its role, metrics and examples.

    source: a capture, or a model with a text or a corpus of texts. The rows are those that
    `hgviz heads --json` prints: shares of attention from 0 to 1, offsets in tokens. Raises
    HgvizError.

        hgviz.roles("sample/softmax", "The soup was not good.").to_pandas()
    """
    with _progress_bar(progress, "Measuring heads"):
        if is_capture(source):
            require(text is None and corpus is None, "a capture has its own text", "Give no text")
            measured = tasks.roles_of_capture(as_capture(source))
        else:
            model = as_model(source, device, activation=activation)
            if corpus is not None:
                measured = tasks.roles_of_model(model, corpus, _heads(off, model))
            else:
                require_input(text)
                prompts = tasks.read_prompts(model, text=text, pair=pair, target=target)
                measured = tasks.roles_of_text(model, *prompts, _heads(off, model))
        return Table(roles_to_dict(measured)["heads"], measured)


def rollout(
    source: Any,
    text: str | None = None,
    *,
    rows: tuple[int, int] | None = None,
    residual: float = 0.5,
    device: str = "auto",
    progress: Progress = "auto",
) -> Floats:
    """Attention rollout: how much each input token contributes to each output token.

    source: a capture, or a model with a text. residual: the weight of the residual connection
    in every layer. rows: (start, end) of the output tokens. Returns (output tokens, input tokens);
    rows sum to 1 unless weights are signed (Abnar and Zuidema 2020). Raises HgvizError.

        hgviz.rollout("sample/hourglass", "The sand runs down.")
    """
    found = (
        as_capture(source)
        if is_capture(source)
        else capture(source, text, device=device, progress=progress)
    )
    with _progress_bar(progress, "Computing rollout"):
        return tasks.rollout(found, rows, RolloutOptions(residual=residual))


# --- scores and pruning ---------------------------------------------------------------------------


def evaluate(
    model: Any,
    data: str | Path,
    *,
    text_column: str = "",
    label_column: str = "",
    labels: Mapping[str, str] | None = None,
    off: Heads = "",
    ablation: Ablation = "zero",
    limit: int | None = None,
    batch_size: int | None = None,
    activation: str | None = None,
    device: str = "auto",
    progress: Progress = "auto",
) -> Evaluation:
    """Score a model on data, with a 95 % confidence interval.

    Args:
        data: a table (.tsv, .csv, .jsonl) with labels, or a text for language models.
        labels: maps labels of the data to classes of the model.
        off: heads to switch off. limit: use a random sample of this many examples.
        ablation: what replaces the output of a head that is off: "zero"; "mean", its mean over the
            data; "resample", its output for another example at the same position.

    Returns:
        An Evaluation: `score.value`, `score.low` and `score.high` (shares from 0 to 1, or bits
        per byte), `loss` in nats, and `to_dict()`.

    Raises HgvizError.

        hgviz.evaluate("sample/softmax", "sample/reviews.tsv", off="1.2").score.value
    """
    with _progress_bar(progress, "Scoring"):
        opened = as_model(model, device, activation=activation)
        return tasks.evaluate(
            opened, find_sample(data), text_column, label_column, _heads(off, opened), labels,
            limit=limit, batch_size=batch_size, ablation=ablation,
        )  # fmt: skip


def importance(
    model: Any,
    data: str | Path = "",
    *,
    method: str = "",
    clean: str = "",
    corrupted: str = "",
    answer: str = "",
    wrong: str = "",
    out: str | Path | None = None,
    text_column: str = "",
    label_column: str = "",
    labels: Mapping[str, str] | None = None,
    off: Heads = "",
    ablation: Ablation = "zero",
    limit: int | None = None,
    batch_size: int | None = None,
    permutations: int = 20,
    seed: int = 0,
    keep: str = "",
    mask: str | Path | None = None,
    force: bool = False,
    activation: str | None = None,
    device: str = "auto",
    progress: Progress = "auto",
) -> Table:
    """The importance of every head, most important first, with 95 % confidence intervals.

    Args:
        method: michel (the default), signed, loo (the default for hidden states), all-but-one,
            shapley and others of `hgviz importance --help`. patching: without data, from two texts
            of as many tokens, `clean` and `corrupted`, and two answers (tokens or classes): shares
            of the logit difference that a head's output recovers (denoised) or removes (noised).
        ablation: as in evaluate().
        out: a study (.h5) to write or resume; without it, the study stays in memory.
        keep, mask: keep the most important heads, such as "50%" or "24"; write the others to mask.

    Returns:
        A table with head, score, low, high and rank; `of` is the Study, which curve() and prune()
        take. For patching, a table with head, denoised and noised.

    Raises HgvizError.

        scores = hgviz.importance("sample/softmax", "sample/reviews.tsv", method="loo", limit=100)
    """
    with _progress_bar(progress, "Measuring heads"):
        opened = as_model(model, device, activation=activation)
        if method == "patching":
            require(
                clean and corrupted and answer and wrong,
                "patching needs two texts and two answers",
                "Give clean, corrupted, answer and wrong",
            )
            require(
                not (data or out or keep or mask or ablation != "zero"),
                "patching compares two texts: it takes no data, out, keep, mask or ablation",
                "Leave them out, or choose another method",
            )
            found = tasks.patching(
                opened, opened.tokenize(clean), opened.tokenize(corrupted),
                tasks.answer_number(opened, answer), tasks.answer_number(opened, wrong),
                _heads(off, opened),
            )  # fmt: skip
            return Table(found.to_rows(), found)
        require(data, "no data to score heads on", "Give data, a table or a text file")
        name = method or default_score(opened.spec)
        needs = measured_together(METHODS[choose(name, METHODS, "score")].needs)
        trials = tasks.trials_of(
            opened, find_sample(data), text_column, label_column, _heads(off, opened), limit,
            labels, batch_size, ablation, seed,
        )  # fmt: skip
        file = os.path.basename(data)
        study = tasks.importance(trials, needs, file, seed, permutations, out=out, force=force)
        if mask is not None:
            write_mask(mask, study.spec, tasks.heads_to_remove(study, keep, name))
        return Table(scores_of(study, name).to_rows(), study)


def curve(
    study: Any,
    model: Any,
    data: str | Path,
    *,
    method: str = "",
    random: int = 20,
    least: int = 0,
    text_column: str = "",
    label_column: str = "",
    labels: Mapping[str, str] | None = None,
    batch_size: int | None = None,
    activation: str | None = None,
    device: str = "auto",
    progress: Progress = "auto",
) -> Table:
    """The pruning curve: the score as heads are switched off, least important first.

    Args:
        study: the result of importance(), a Study, or the path of one, to which the curve is added.
        method: the score that orders the heads. random: number of random orders, 20 or more.
        least: minimum number of heads in each layer.

    Returns:
        A table with a row for each number of heads off: value, low and high (95 %), loss, and the
        band of random orders; `of` is the Study with the curve.

    Raises HgvizError.

        hgviz.curve(scores, "sample/softmax", "sample/reviews.tsv").to_pandas()
    """
    stored: Study = study.of if isinstance(study, Table) else study
    path = study if isinstance(study, str | os.PathLike) else ""
    with _progress_bar(progress, "Switching heads off"):
        if path:
            stored = tasks.study_at(Path(path))
        opened = as_model(model, device, activation=activation)
        name = method or default_score(opened.spec)
        trials = tasks.trials_of(
            opened, find_sample(data), text_column, label_column, stored.off, len(stored), labels,
            batch_size, stored.ablation, stored.seed,
        )  # fmt: skip
        work = partial(tasks.curve, trials, stored, name, random, least)
        found = tasks.keeping(Path(path), work) if path else work()
        facts = curve_facts(found, newest_curve(found, name, least))
        return Table(facts["points"], found)


def prune(
    model: str | Path,
    out: str | Path,
    *,
    off: Heads = "",
    study: Any = None,
    keep: str = "",
    method: str = "",
    mask: str | Path | None = None,
    form: Literal["smaller", "zeroed"] = "smaller",
    compensate: Literal["none", "mean", "lsq"] = "none",
    data: str | Path | None = None,
    text_column: str = "",
    label_column: str = "",
    labels: Mapping[str, str] | None = None,
    force: bool = False,
    progress: Progress = "auto",
) -> Proof:
    """Write a model without some heads into a new folder, and verify its outputs.

    Args:
        model: the path of a checkpoint.
        off: heads to remove; or study and keep: keep the most important, such as "50%" or "24".
        mask: a mask file to write the heads to.
        form: smaller, a model with fewer weights; zeroed, the same files with zeros.
        compensate: add the mean of the heads to the bias, or scale the others by least squares.
        data: data for the verification; default: texts that come with hgviz.

    Returns:
        A Proof: `difference` is the largest of logits between the masked and the pruned model, at
        most 1e-5; `parameters` before and after.

    Raises HgvizError; nothing is saved if the verification fails.

        hgviz.prune("sample/softmax", "smaller", off="1.2,3.*")
    """
    require(
        bool(off) != (study is not None) and (study is None) == (not keep),
        "the heads to remove are not given, or given twice",
        "Give off, or study and keep",
    )
    path = find_sample(model)
    with _progress_bar(progress, "Pruning"):
        if study is not None:
            source = study.of if isinstance(study, Table) else study
            off = tasks.heads_of_study(source, path, keep, method)
        return tasks.prune(
            path, off if isinstance(off, str) else _head_names(off), out, form, compensate, data,
            text_column, label_column, labels, force=force, mask=mask,
        )  # fmt: skip


# --- the window -----------------------------------------------------------------------------------


def show(*sources: Any) -> Popen[bytes]:
    """Open the window on a capture, a study, or paths of captures, checkpoints and studies.

    It runs in a separate process, so that a notebook can continue; objects in memory are written to
    a temporary file first. Returns the process. Raises HgvizError.

        hgviz.show(hgviz.capture("sample/softmax", "The soup was not good."))
    """
    from subprocess import Popen

    paths = [str(_file_of(one)) for one in sources]
    return Popen([sys.executable, "-m", "hgviz", *paths], start_new_session=True)


def _file_of(source: Any) -> Path:
    """The path of what the window opens, written first where it has none."""
    source = source.of if isinstance(source, Table) else source
    if isinstance(source, str | os.PathLike):
        path = find_sample(source)
        tasks.kind_of(path)
        return path
    if known := getattr(source, "path", ""):
        return Path(known)
    require(hasattr(source, "spec"), f"{source!r:.40} cannot be shown in the window")
    return Path(tasks.save(source, Path(mkdtemp(prefix="hgviz-")) / "shown.h5"))


# --- inside ---------------------------------------------------------------------------------------


def _heads(off: Heads, model: Model) -> HeadSet:
    return read_heads(off if isinstance(off, str) else _head_names(off), model.spec)


def _head_names(heads: Iterable[HeadId | str]) -> str:
    return ",".join(map(str, heads))
