"""The tasks behind open and capture: what runs in a lane, and what it hands back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hgviz import tasks
from hgviz.core import (
    NO_STREAMING,
    Capture,
    HeadId,
    HgvizError,
    Modality,
    Off,
    Prompt,
    Selection,
    Step,
    Streaming,
    Task,
)
from hgviz.gui import log
from hgviz.gui.keeping.gathering import Checked, checking
from hgviz.gui.reasons import reads_pairs, reads_text
from hgviz.gui.samples import (
    CHOSEN,
    CLASSIFIERS,
    CLEAREST,
    FIRST,
    REVIEW,
    SAMPLE,
    TEXT,
)
from hgviz.models.formats.readers import IMAGES, SOUNDS
from hgviz.resources import resource
from hgviz.session import clearest
from hgviz.session.saved import is_session

if TYPE_CHECKING:
    from hgviz.analysis.heads import HeadFacts
    from hgviz.gui.writing import Writing
    from hgviz.models.model import Model
    from hgviz.study import Study
    from hgviz.sweep import Sweep
LONG = 60.0  # s that a capture takes before somebody is asked
AT_ONCE = 2048  # tokens: heads of shorter captures are measured before the first picture


@dataclass(frozen=True, slots=True)
class Found:
    """What a path held: a capture with what is known of it, a study of heads or of many runs, a
    session, or (none of them) a checkpoint."""

    path: str
    capture: Capture | None = None
    facts: Mapping[HeadId, HeadFacts] = field(default_factory=dict)
    selection: Selection | None = None
    opened: Mapping[int, HeadId] = field(default_factory=dict)
    study: Study | None = None
    checked: Checked | None = None
    sweep: Sweep | None = None


def look(path: str, item: int = 0) -> Task[Found]:
    """Open a study or a capture, of many texts the one of that number; read a session; see how many
    runs stand; or say that it is a checkpoint."""
    yield Step(0, 3, "looking at the file")
    if is_session(path):
        return Found(path, checked=(yield from checking(path)))
    if tasks.is_sweep_file(path):
        return Found(path, sweep=(yield from tasks.open_sweep(path)))
    kind = "capture" if item else tasks.kind_of(path)
    if kind == "checkpoint":
        return Found(path)
    if kind == "study":
        from hgviz.store import open_study

        return Found(path, study=open_study(path))
    from hgviz.store import open_capture

    capture = open_capture(path, item)
    if Path(path) == resource(FIRST):
        return Found(path, capture, selection=CHOSEN, opened=CLEAREST)
    yield Step(1, 3, "measuring heads")
    if not is_quick(capture) or not capture.complete:
        return Found(path, capture)
    return replace((yield from measure(capture)), path=path)


def is_quick(capture: Capture) -> bool:
    """Whether a capture is so short that all of it is a matter of a moment."""
    return max(map(len, capture.spans)) <= AT_ONCE


def measure(capture: Capture) -> Task[Found]:
    """What every head does, a selection that shows the clearest, and the clearest of each level."""
    from hgviz.analysis.heads import worth_a_look

    facts = yield from tasks.measure(capture)
    best = [one.head for one in worth_a_look(facts)]
    opened: dict[int, HeadId] = {}
    for level in capture.spec.levels:
        here = {
            head: fact
            for head, fact in facts.items()
            if fact.level == level.index and capture.spec.layers[head.layer].role == "self"
        }
        for one in worth_a_look(here, count=1):
            opened[level.index] = one.head
    return Found(capture.path, capture, facts, clearest(capture, best), opened)


@dataclass(frozen=True, slots=True)
class Wish:
    """What to capture: the checkpoint at path, a text or two or a file of ids.

    activation: what its attention is exchanged for, "" for its own.
    streaming: heads that stream in the other capture of a comparison.
    agreed: somebody was told that it takes long. fits: the texts are of a model that was open
    before, and are cut to what this one reads.
    """

    path: str
    text: str = ""
    second: str = ""
    ids: str = ""
    off: Off = frozenset()
    streaming: Streaming = NO_STREAMING
    device: str = "auto"
    activation: str = ""
    agreed: bool = False
    fits: bool = False

    @property
    def reads(self) -> Modality:
        """What is read: a text or ids, or an image or a sound by the name of its file."""
        ending = Path(self.ids).suffix.lower()
        return "image" if ending in IMAGES else "audio" if ending in SOUNDS else "text"


class UnreadError(HgvizError):
    """The model is open, but it cannot read what it was given."""

    def __init__(self, error: HgvizError, wish: Wish, model: Model) -> None:
        do = error.do
        if model.spec.modality != "text":
            do = "Choose an image" if model.spec.modality == "image" else "Choose a sound"
        elif not wish.ids and (model.takes_states or not reads_text(model)):  # no options here
            more = ' and "encoder_hidden_states"' if model.takes_states else ""
            do = f'Choose a JSON file with "input_ids"{more}'
        super().__init__(error.what, error.why, do, error.details)
        self.wish, self.model = wish, model

    @property
    def is_waiting(self) -> bool:
        """Whether a model of images or sounds was opened, and none was chosen yet."""
        return self.model.spec.modality != "text" and not self.wish.ids


class LongError(UnreadError):
    """What it was given takes so long that somebody has to agree first."""

    def __init__(self, estimate: tasks.Estimate, wish: Wish, model: Model) -> None:
        said = HgvizError(f"a capture of {estimate.tokens:,} tokens takes about {estimate.time}")
        super().__init__(said, wish, model)
        self.estimate = estimate


def capture_text(wish: Wish, model: Model | None) -> Task[tuple[Wish, Model, Capture]]:
    """Capture what is wished for; model None: it is loaded first. Errors: also UnreadError."""
    if model is None or (model.is_tower and wish.reads != model.spec.modality):
        model = yield from load(wish)
    yield Step(0, 1, "reading the text")
    wish = _fitted(wish, model) if wish.fits else wish
    prompt, target = yield from _read(wish, model)
    captured = yield from tasks.capture(
        model, prompt, off=wish.off, target=target, streaming=wish.streaming
    )
    return wish, model, captured


def _read(wish: Wish, model: Model) -> Task[tuple[Prompt, Prompt | None]]:
    """What the model reads of a wish, once it is known to fit, and not to take long unless somebody
    agreed. Errors: UnreadError."""
    try:
        if not wish.ids and not model.takes_states and reads_text(model):
            found = yield from tasks.estimate(model, wish.text)
            if found.seconds > LONG and not wish.agreed:
                raise LongError(found, wish, model)
        return _prompts(wish, model)
    except UnreadError:
        raise
    except HgvizError as error:
        raise UnreadError(error, wish, model) from None


def capture_corpus(
    wish: Wish, model: Model | None, corpus: str, out: str
) -> Task[tuple[Wish, Model, Capture]]:
    """Capture every text of a file in place of a text.

    A file at out goes, as the person who chose it was asked; what is left of another capture that
    was stopped does not.
    """
    if model is None:
        model = yield from load(wish)
    there = Path(out).is_file()
    captured = yield from tasks.capture_corpus(model, corpus, out, off=wish.off, force=there)
    return wish, model, captured


@dataclass(frozen=True, slots=True)
class Written:
    """A text with what the model has written so far, from the token first on."""

    capture: Capture
    first: int


def write_on(
    wish: Wish, model: Model | None, writing: Writing
) -> Task[tuple[Wish, Model, Written]]:
    """Have a model go on with what is wished for. Each step may carry what is Written so far."""
    if model is None:
        model = yield from load(wish)
    yield Step(0, writing.count, "reading the text")
    prompt, target = yield from _read(wish, model)
    first = len(prompt if target is None else target)
    task = tasks.generate(
        model, prompt, writing.count, off=wish.off, target=target,
        seed=writing.seed, temperature=writing.temperature,
    )  # fmt: skip
    with closing(task):
        while True:
            try:
                step = next(task)
            except StopIteration as end:
                return wish, model, Written(end.value, first)
            so_far = Written(step.value, first) if isinstance(step.value, Capture) else None
            yield replace(step, value=so_far)


def stopped(written: Written, writing: Writing) -> Written:
    """What was written before it was stopped; the capture says so, as those of tasks do."""
    capture = written.capture
    count = len(capture.main) - written.first
    how = "greedy" if writing.seed is None else f"seed {writing.seed}"
    how += "" if writing.seed is None else f", temperature {writing.temperature:g}"
    said = f"{count} tokens after {written.first}, {how}; stopped by hand"
    made = replace(capture.made, seed=writing.seed, generated=said)
    return replace(written, capture=replace(capture, made=made))


def load(wish: Wish) -> Task[Model]:
    """The checkpoint, its attention exchanged where that is wished for."""
    activation = wish.activation or None
    return (yield from tasks.load(wish.path, wish.device, activation=activation, reads=wish.reads))


def _prompts(wish: Wish, model: Model) -> tuple[Prompt, Prompt | None]:
    """What the model reads; a decoder that was given none of its own reads the source again."""
    if wish.ids and model.spec.modality != "text":
        target = wish.second or None
        return tasks.prompt_from(model, signal_file=wish.ids, target=target, writes=True)
    if wish.ids:
        return tasks.prompt_from(model, ids_file=wish.ids)
    both = model.spec.needs_target
    target = (wish.second or wish.text) if both and not model.takes_states else None
    pair = wish.second if wish.second and not both else None
    return tasks.prompt_from(model, wish.text, pair=pair, target=target)


def _fitted(wish: Wish, model: Model) -> Wish:
    """A wish for texts of another model, as this one reads them: of a pair the first where it reads
    no pairs, and as much as it has positions for."""
    most = model.spec.max_positions
    if wish.ids or model.takes_states or not reads_text(model):
        return wish
    two = model.spec.needs_target
    second = wish.second if two or reads_pairs(model) else ""
    if most is None:
        return replace(wish, second=second)
    if two:
        second = _beginning(model.encode_target, second, most)
        encode = model.encode if second else model.encode_target  # the decoder may read it, too
        return replace(wish, text=_beginning(encode, wish.text, most), second=second)
    second = _beginning(model.encode, second, most)
    text = _beginning(lambda one: model.encode(one, second or None), wish.text, most)
    if second and not text:  # no room beside the second
        return replace(wish, text=_beginning(model.encode, wish.text, most), second="")
    return replace(wish, text=text, second=second)


def _beginning(encode: Callable[[str], Prompt], text: str, most: int) -> str:
    """The longest beginning of a text that has at most so many tokens."""

    def fits(size: int) -> bool:
        try:
            return len(encode(text[:size])) <= most
        except HgvizError:  # such as no tokens at all
            return True

    fit, size = 0, min(len(text), most)
    while fits(size):
        if size == len(text):
            return text
        fit, size = size, min(len(text), 2 * size)
    while size - fit > 1:
        middle = (fit + size) // 2
        fit, size = (middle, size) if fits(middle) else (fit, middle)
    return text[:fit]


def whether(path: str) -> Task[str]:
    """The path, "" where there is nothing."""
    yield from ()
    return path if Path(path).exists() else ""


def strongest(capture: Capture, chosen: Selection) -> Task[int | None]:
    """The key that the chosen query looks at most."""
    from hgviz.session import strongest_key

    yield Step(0, 1, "reading a row")
    return strongest_key(capture, chosen)


def text_for(path: str, text: str) -> str:
    """What a checkpoint begins with: a bundled one its own text, while another's is untouched."""
    own = {str(resource(SAMPLE)): TEXT} | {str(resource(one)): REVIEW for one in CLASSIFIERS}
    return own.get(path, text) if text in own.values() else text


def shown_error(error: BaseException) -> HgvizError:
    """An error in three lines; one that nobody foresaw keeps its traceback as details, and the log
    has it."""
    if isinstance(error, HgvizError):
        return error
    import traceback

    log.record(error)
    return HgvizError(
        "Something went wrong inside hgviz",
        f"{type(error).__name__}: {error}",
        f"What is on screen is safe. Report the details, which are also in {log.file()}",
        "".join(traceback.format_exception(error)),
    )
