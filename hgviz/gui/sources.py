"""Opening files and capturing texts."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QFileDialog

from hgviz import core, settings, tasks
from hgviz.analysis.roles import notable_heads, roles
from hgviz.core import Capture, HeadId, HeadSet, HgvizError, Prompt, Selection, Step, progress
from hgviz.files import IMAGE_SUFFIXES, SOUND_SUFFIXES, resource
from hgviz.gui import dialogs, log
from hgviz.gui.actions import reads_text
from hgviz.gui.jobs import OnError, Runner
from hgviz.gui.language import tr
from hgviz.gui.sentences import counted
from hgviz.gui.studyruns import trained_as
from hgviz.session.document import Document, is_session, read_document
from hgviz.session.navigation import clearest

if TYPE_CHECKING:
    from hgviz.analysis.roles import HeadRole
    from hgviz.models.model import Model
    from hgviz.study import Study, Sweep

# --- samples --------------------------------------------------------------------------------------

SAMPLE = "sample/hourglass"
FIRST = "sample/first.h5"
# what measuring finds clearest in it, known beforehand: the first picture of all need not wait
CHOSEN = Selection(layer=12, head=1, query=64, key=29)
CLEAREST = {0: HeadId(12, 1), 1: HeadId(2, 2), 2: HeadId(5, 4)}
TEXT = (
    "The hourglass was used at sea. When the sand of the hourglass had run down, the sailor on "
    "watch turned the hourglass, and rang the bell."
)
CLASSIFIERS = ("sample/softmax", "sample/ymish", "sample/mixed")
PARTNERS = {"softmax": "sample/ymish", "ymish": "sample/softmax", "mixed": "sample/softmax"}
REVIEW = (
    "The fish was not wonderful, but the evening was. Nobody can deny that the bread was great."
)


def name_of(path: str) -> str:
    """What people call a checkpoint or capture: the sample's name, or the file's."""
    if any(Path(path) == resource(one) for one in (SAMPLE, *CLASSIFIERS)):
        return f"{Path(path).name}-sample"
    return Path(path).name or path


def partner(path: str) -> str:
    """The sample that another one is compared with: trained on the same texts; "" for none."""
    name = Path(path).name
    is_sample = name in PARTNERS and Path(path) == resource(f"sample/{name}")
    return str(resource(PARTNERS[name])) if is_sample else ""


def samples() -> dict[str, str]:
    """The checkpoints that come with hgviz: path and name."""
    paths = [resource(one) for one in (SAMPLE, *CLASSIFIERS)]
    there = (str(one) for one in paths if one.exists() or one == paths[0])
    return {path: name_of(path) for path in there}


# --- files ----------------------------------------------------------------------------------------

LONG = 60.0  # s that a capture takes before somebody is asked
AT_ONCE = 2048  # tokens: heads of shorter captures are measured before the first picture


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """What a path held: a capture with what is known of it, a study of heads or of many runs, a
    session, a text ("" for a table of labelled texts), or, with none of them, a checkpoint."""

    path: str
    capture: Capture | None = None
    facts: Mapping[HeadId, HeadRole] = field(default_factory=dict)
    selection: Selection | None = None
    opened: Mapping[int, HeadId] = field(default_factory=dict)
    study: Study | None = None
    document: Document | None = None
    sweep: Sweep | None = None
    text: str | None = None


def look(path: str, item: int = 0) -> OpenedFile:
    """Read what a path holds, of a capture of many texts the one of that number. A checkpoint is
    only recognised."""
    progress(0, 3, "reading the file")
    if is_session(path):
        return OpenedFile(path, document=read_document(path))
    if tasks.is_sweep_file(path):
        return OpenedFile(path, sweep=tasks.open_sweep(path))
    if Path(path).suffix.lower() in dialogs.TEXT_SUFFIXES and os.path.isfile(path):
        return OpenedFile(path, text=tasks.text_of(path))
    kind = "capture" if item else tasks.kind_of(path)
    if kind == "checkpoint":
        return OpenedFile(path)
    if kind == "study":
        return OpenedFile(path, study=tasks.study_at(path))
    capture = tasks.capture_at(path, item)
    if Path(path) == resource(FIRST):
        return OpenedFile(path, capture, selection=CHOSEN, opened=CLEAREST)
    progress(1, 3, "measuring heads")
    if not is_quick(capture) or not capture.complete:
        return OpenedFile(path, capture)
    return replace(measure(capture), path=path)


def is_quick(capture: Capture) -> bool:
    """Whether a capture is so short that all of it is a matter of a moment."""
    return max(map(len, capture.spans)) <= AT_ONCE


def measure(capture: Capture) -> OpenedFile:
    """What every head does, a selection that shows the clearest, and the clearest of each level."""
    facts, layers = roles(capture), capture.spec.layers
    best = [one.head for one in notable_heads(facts)]
    opened: dict[int, HeadId] = {}
    own = {head: fact for head, fact in facts.items() if layers[head.layer].role == "self"}
    for level in capture.spec.levels:
        here = {head: fact for head, fact in own.items() if fact.level == level.index}
        for one in notable_heads(here, count=1):
            opened[level.index] = one.head
    return OpenedFile(capture.path, capture, facts, clearest(capture, best), opened)


@dataclass(frozen=True, slots=True)
class CaptureRequest:
    """What to capture: the checkpoint at path, a text or two or a file of ids."""

    path: str
    text: str = ""
    second: str = ""
    ids: str = ""
    off: HeadSet = frozenset()
    streaming: core.Streaming = (
        core.NO_STREAMING
    )  # heads that stream in the other capture of a comparison
    device: str = "auto"
    activation: str = ""  # what its attention is exchanged for, "" for its own
    agreed: bool = False  # somebody was told that it takes long
    fits: bool = False  # the texts are of another model, and are cut to what this one reads

    @property
    def reads(self) -> core.Modality:
        """What is read: a text or ids, or an image or a sound by the name of its file."""
        ending = Path(self.ids).suffix.lower()
        if ending in IMAGE_SUFFIXES:
            return "image"
        return "audio" if ending in SOUND_SUFFIXES else "text"


class UnreadError(HgvizError):
    """The model is open, but it cannot read what it was given."""

    def __init__(self, error: HgvizError, wish: CaptureRequest, model: Model) -> None:
        do = error.do
        if model.spec.modality != "text":
            do = "Choose an image" if model.spec.modality == "image" else "Choose a sound"
        elif not wish.ids and (model.takes_states or not reads_text(model)):  # no options here
            more = ' and "encoder_hidden_states"' if model.takes_states else ""
            do = f'Choose a JSON file with "input_ids"{more}'
        super().__init__(error.what, do, error.details)
        self.wish, self.model = wish, model


class LongError(UnreadError):
    """What it was given takes so long that somebody has to agree first."""

    def __init__(self, estimate: tasks.Estimate, wish: CaptureRequest, model: Model) -> None:
        said = HgvizError(f"a capture of {estimate.tokens:,} tokens takes about {estimate.time}")
        super().__init__(said, wish, model)
        self.estimate = estimate


def capture_text(
    wish: CaptureRequest, model: Model | None
) -> tuple[CaptureRequest, Model, Capture]:
    """Capture what is wished for; model None: it is loaded first. Errors: also UnreadError."""
    if model is None or (model.is_tower and wish.reads != model.spec.modality):
        model = load(wish)
    progress(0, 1, "reading the text")
    wish = _fitted(wish, model) if wish.fits else wish
    prompt, target = _read(wish, model)
    captured = tasks.capture(model, prompt, off=wish.off, target=target, streaming=wish.streaming)
    return wish, model, captured


def _read(wish: CaptureRequest, model: Model) -> tuple[Prompt, Prompt | None]:
    """What the model reads of a wish, once it is known to fit, and not to take long unless somebody
    agreed. Errors: UnreadError."""
    try:
        if not wish.ids and not model.takes_states and reads_text(model):
            found = tasks.estimate(model, wish.text)
            if found.seconds > LONG and not wish.agreed:
                raise LongError(found, wish, model)
        return _prompts(wish, model)
    except UnreadError:
        raise
    except HgvizError as error:
        raise UnreadError(error, wish, model) from None


def capture_corpus(
    wish: CaptureRequest, model: Model | None, corpus: str, out: str
) -> tuple[CaptureRequest, Model, Capture]:
    """Capture every text of a file in place of a text.

    A file at out goes, as the person who chose it was asked; what is left of another capture that
    was stopped does not.
    """
    if model is None:
        model = load(wish)
    there = Path(out).is_file()
    captured = tasks.capture_corpus(model, corpus, out, off=wish.off, force=there)
    return wish, model, captured


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text that a model wrote, before it is captured."""

    wish: CaptureRequest
    model: Model
    text: Prompt
    first: int  # the first token that it wrote
    source: Prompt | None = None  # what an encoder-decoder read


def write_on(
    wish: CaptureRequest, model: Model | None, writing: dialogs.WritingOptions
) -> tuple[WrittenText, Capture]:
    """Generate text after that of a request; the progress carries the WrittenText so far."""
    if model is None:
        model = load(wish)
    prompt, target = _read(wish, model)
    first = len(prompt if target is None else target)
    so_far = WrittenText(wish, model, prompt, first, None if target is None else prompt)

    def written(step: Step) -> Step:
        if not isinstance(step.value, Prompt):
            return replace(step, value=None)
        # an end token that the text had is no longer part of it
        first = len(step.value) - int(step.done)
        return replace(step, value=replace(so_far, text=step.value, first=first))

    with core.progress_as(written):
        capture = tasks.generate(
            model, prompt, writing.count, off=wish.off, target=target,
            seed=writing.seed, temperature=writing.temperature,
        )  # fmt: skip
    return so_far, capture


def load(wish: CaptureRequest) -> Model:
    """The checkpoint, its attention exchanged where that is wished for."""
    activation = wish.activation or None
    return tasks.load(wish.path, wish.device, activation=activation, reads=wish.reads)


def _prompts(wish: CaptureRequest, model: Model) -> tuple[Prompt, Prompt | None]:
    """What the model reads; a decoder that was given none of its own reads the source again."""
    if wish.ids and model.spec.modality != "text":
        target = wish.second or None
        return tasks.read_prompts(model, signal_file=wish.ids, target=target, writes=True)
    if wish.ids:
        return tasks.read_prompts(model, ids_file=wish.ids)
    both = model.spec.needs_target
    target = (wish.second or wish.text) if both and not model.takes_states else None
    pair = wish.second if wish.second and not both else None
    return tasks.read_prompts(model, wish.text, pair=pair, target=target)


def _fitted(wish: CaptureRequest, model: Model) -> CaptureRequest:
    """A wish for texts of another model, as this one reads them: of a pair the first where it reads
    no pairs, and as much as it has positions for."""
    most = model.spec.max_positions
    if wish.ids or model.takes_states or not reads_text(model):
        return wish
    two = model.spec.needs_target
    second = wish.second if two or model.reads_pairs else ""
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


def text_for(path: str, text: str) -> str:
    """What a checkpoint begins with: a bundled one its own text, while another's is untouched."""
    own = {str(resource(SAMPLE)): TEXT} | {str(resource(one)): REVIEW for one in CLASSIFIERS}
    return own.get(path, text) if text in own.values() else text


def shown_error(error: BaseException) -> HgvizError:
    """Any error as a HgvizError; an unforeseen one is logged, with its traceback as details."""
    if isinstance(error, HgvizError):
        return error
    log.record(error)
    what = f"Unexpected error in hgviz: {type(error).__name__}: {error}"
    do = f"Your session is still open. Report the details, which are also in {log.file()}"
    return HgvizError(what, do, details="".join(traceback.format_exception(error)))


# --- captures -------------------------------------------------------------------------------------

KEEPS_TEXTS = "keeps the texts already captured"
RUNNING, WRITING = "Running model", "Generating text"  # titles of jobs


def keeps_words(layers: int) -> str:
    """What Stop keeps."""
    if not layers:
        return tr("keeps nothing yet")
    return tr("keeps {layers}", layers=counted(layers, "finished layer"))


QUIET = 0.2  # s: a capture shorter than this shows no layers on their way

NEWEST = 40  # characters at the end of a text under way that are shown while it is written
SOON = 0.2  # s that a picture has to itself
PART = ".part"  # what the folder of an unfinished capture ends in


def _nothing() -> None:
    """Nothing follows."""


class CaptureRunner(Runner):
    """Puts captures of session.text into the session, layer by layer."""

    def __init__(self, commands: Any) -> None:
        super().__init__(commands)
        self._given: Selection | None = None
        self._stopped: Callable[[], None] | None = None  # what is done when a job was stopped
        self._newest: WrittenText | None = None
        self._first: int | None = None  # the first token that was written before
        self._ids = ""  # what was captured last, where that was a file of them

    def start(self, path: str) -> None:
        """Capture the text with the checkpoint at hand, as it is pruned and exchanged."""
        self._start(self._wish_at_hand(path), self.session.model, RUNNING)

    def start_fresh(self, path: str, on_error: OnError, activation: str = "") -> None:
        """Open a checkpoint and capture the text with the whole of it.

        Ids are of what the checkpoint at hand reads, and go with no other; neither does the text
        beside an image or a sound.
        """
        session, title = self.session, f"Opening {name_of(path)}"
        wish = self._wish(path, activation=activation, fits=True)
        if path != session.checkpoint:
            beside = session.spec is not None and session.spec.modality != "text"
            second = "" if beside else wish.second
            wish = replace(wish, second=second, ids="")
        self._start(wish, None, title, on_error)

    def start_again(
        self, path: str, then: Callable[[], None], on_error: OnError, **fields: Any
    ) -> None:
        """Open a checkpoint and capture the text as it was once captured; then: what follows.

        fields: those of a CaptureRequest, such as off.
        """
        wish = replace(self._wish(path, fits=True), **fields)
        self._start(wish, None, f"Opening {name_of(path)}", on_error, then)

    def settle_on(self, chosen: Selection) -> None:
        """Select what somebody chose once: nothing better takes its place."""
        self._given = None
        self.session.put(selection=chosen)

    def start_corpus(self, corpus: str, out: str) -> None:
        """Capture every text of a file into another file, which is opened then."""
        self._stopped = partial(self._open_part, out)
        work = partial(capture_corpus, self._wish_at_hand(), self.session.model, corpus, out)
        self._run(
            f"{RUNNING} on {Path(corpus).name}", work, self._corpus_done,
            on_step=self._counted, keeps=KEEPS_TEXTS, bound=False,
        )  # fmt: skip

    def start_writing(
        self, writing: dialogs.WritingOptions, wish: CaptureRequest | None = None
    ) -> None:
        """Generate text after the current text, or as was wished before."""
        session, wish = self.session, wish or self._wish_at_hand()
        self._newest, self._first = None, None if session.stale else session.written
        self._stopped = partial(self._keep_written, writing)
        again = partial(self.start_writing, writing)
        self._run(
            WRITING, partial(write_on, wish, session.model, writing),
            lambda result: self._written(*result), on_step=self._wrote,
            on_error=partial(self._failed, self.working.on_error, again),
            keeps="keeps the generated text",
        )  # fmt: skip

    def stop(self) -> None:
        """What is done stays: layers, texts of a file, words that were written."""
        self.working.stop("capture")
        if self._stopped is not None:
            self._stopped()

    def measure(self) -> None:
        """Measure the heads of the capture on screen, after its picture: side by side they would
        have half of the interpreter each."""
        capture = self.session.capture

        def work() -> OpenedFile:
            progress(0, 1)
            time.sleep(SOON)
            return measure(capture)

        title, done = "Measuring heads", self._measured
        self.working.start(self.lanes.facts, "measure", title, work, done, bound=True)

    def warm_up(self) -> None:
        """Load torch and the checkpoint at hand while nothing else happens."""
        if self.session.checkpoint and self.session.model is None:
            self.lanes.engine.submit(
                "warm_up", "Loading torch",
                partial(tasks.load, self.session.checkpoint, settings.load().device),
                on_done=self._warmed,
                on_error=lambda _: None,  # the next capture reports it
            )  # fmt: skip

    def _run(self, title: str, work: Callable[[], Any], on_done: Callable[[Any], None],
             **how: Any) -> None:  # fmt: skip
        """Start a capture in place of the one before; see Jobs.start."""
        how = {"bound": True, **how}
        self.working.start(self.lanes.engine, "capture", title, work, on_done, **how)

    def _wish_at_hand(self, path: str = "") -> CaptureRequest:
        """A capture by the model that is open, as it is pruned and exchanged."""
        session = self.session
        path = path or session.checkpoint
        return self._wish(path, off=session.off, activation=session.activation)

    def _wish(self, path: str, **fields: Any) -> CaptureRequest:
        session, device = self.session, settings.load().device
        texts = session.text, session.second, session.ids
        return CaptureRequest(path, *texts, device=device, **fields)

    def _start(
        self,
        wish: CaptureRequest,
        model: Model | None,
        title: str,
        on_error: OnError | None = None,
        then: Callable[[], None] = _nothing,
    ) -> None:
        self._stopped = None

        def again(agreed: CaptureRequest) -> None:
            self._start(agreed, self.session.model, RUNNING, on_error, then)

        def failed(error: BaseException) -> None:
            if wish.ids != self._ids and self.session.ids == wish.ids:
                self.session.put(ids=self._ids)  # what was not captured is not captured next
            self._failed(on_error or self.working.on_error, again, error, then)

        self._run(
            title, partial(capture_text, wish, model), partial(self._done, wish, then),
            on_step=partial(self._part, wish), on_error=failed, keeps=keeps_words(0),
        )  # fmt: skip

    def _failed(
        self,
        on_error: OnError,
        again: Callable[[CaptureRequest], None],
        error: BaseException,
        refused: Callable[[], None] = _nothing,
    ) -> None:
        """Keep a model open that cannot read the text, so that the text can be changed.
        refused: what is done where nobody wants what takes long."""
        if isinstance(error, UnreadError):
            self._open(error.wish, error.model)
            if error.model.spec.modality != "text" and not error.wish.ids:
                return  # no image or sound was chosen yet: the panes say what it reads
        if isinstance(error, LongError):
            agreed = partial(again, replace(error.wish, agreed=True))
            self.commands.ask_for_time(error.estimate, agreed, refused)
        else:
            on_error(error)

    def _open(self, wish: CaptureRequest, model: Model) -> None:
        """A model that showed no capture: one of another goes."""
        self.session.put(model=model, text=wish.text, second=wish.second, **self._opened(wish))

    def _opened(self, wish: CaptureRequest) -> dict[str, Any]:
        """What a session says of the checkpoint of a wish; ids are of the one before."""
        if wish.path != self.session.checkpoint:
            self.commands.recent.open(wish.path, trained_as(self.session.sweep, wish.path))
            self._ids = ""
        ids = self.session.ids if wish.path == self.session.checkpoint else ""
        return {"checkpoint": wish.path, "activation": wish.activation, "ids": ids}

    def _part(self, wish: CaptureRequest, step: Step) -> None:
        """Show the layers that are done, unless all of them will be in a moment. The last one comes
        with what the model says, or when its capture is stopped."""
        if isinstance(step.value, Capture) and self.working.age("capture") > QUIET:
            done, total, prompt = int(step.done), int(step.total), step.value.main
            title = f"{RUNNING} on {counted(len(prompt), prompt.unit)}"
            words = "Layer {layer} ({number} of {total})" if done < total else "Finishing"
            note = tr(words, layer=done, number=done + 1, total=total)
            self.working.tell("capture", title=title, note=note, keeps=keeps_words(done))
            show = partial(self._take, step.value, **self._opened(wish))
            if done < total:
                show()
            else:
                self._stopped = show

    def _done(
        self,
        asked: CaptureRequest,
        then: Callable[[], None],
        result: tuple[CaptureRequest, Model, Capture],
    ) -> None:
        wish, model, capture = result
        self._stopped = None
        self._take(capture, model=model, **self._opened(wish))
        self._ids = wish.ids
        if asked.fits and len(wish.text) < len(asked.text):
            most = counted(model.spec.max_positions or 0, model.tokenizer.unit)
            words = "The text was truncated: this model reads at most {most}"
            self.commands.say(tr(words, most=most))
        elif asked.fits and (wish.text, wish.second) != (asked.text, asked.second):
            words = "The second text was left out or truncated to fit this model"
            self.commands.say(tr(words))
        self.measure()
        then()

    def _counted(self, step: Step) -> None:
        if step.note:
            self.working.tell("capture", note=step.note)

    def _corpus_done(self, result: tuple[CaptureRequest, Model, Capture]) -> None:
        wish, model, capture = result
        self._open(wish, model)
        self.commands.open_path(capture.path)

    def _open_part(self, out: str) -> None:
        """Open what an interrupted capture leaves, once the lane has let go of it."""
        self.lanes.engine.submit(
            "open_part", "Opening the finished part", Path(out + PART).exists,
            on_done=lambda there: self.commands.open_path(out + PART) if there else None,
        )  # fmt: skip

    def _wrote(self, step: Step) -> None:
        if isinstance(step.value, WrittenText):
            self._newest = step.value
            words = " ".join(step.value.text.text.split())[-NEWEST:]
            self.working.tell("capture", note=f"{step.note}: …{words}")

    def _keep_written(self, writing: dialogs.WritingOptions) -> None:
        """Capture what was written before somebody stopped it."""
        if (newest := self._newest) is not None:
            work = partial(
                tasks.capture_written, newest.model, newest.text, newest.first, newest.source,
                writing.seed, writing.temperature, "; stopped by hand", off=newest.wish.off,
            )  # fmt: skip
            done = partial(self._written, newest)
            self._run(f"{RUNNING} on the generated text", work, done)

    def _written(self, written: WrittenText, capture: Capture) -> None:
        first = written.first if self._first is None else self._first
        self._take(capture, written=first, model=written.model, **self._opened(written.wish))
        self.measure()

    def _take(self, capture: Capture, **fields: Any) -> None:
        old = self.session.capture
        self.session.put(capture=capture, **fields)
        if old is None or old.spec != capture.spec:
            self._given = self.session.selection

    def _measured(self, found: OpenedFile) -> None:
        now = self.session.capture
        if now is None or found.capture.maps is not now.maps:
            return  # of a text that has gone
        fields: dict[str, Any] = {"facts": found.facts}
        # Only a selection nobody has touched gives way to a better one.
        if found.selection is not None and self._given == self.session.selection:
            fields |= {"selection": found.selection, "opened": found.opened}
        self._given = None
        self.session.put(chosen=False, **fields)

    def _warmed(self, model: Model) -> None:
        capture = self.session.capture
        if self.session.model is None and capture and capture.spec.digest == model.spec.digest:
            self.session.put(model=model)


# --- prompts --------------------------------------------------------------------------------------

FILE, FOLDER = QFileDialog.FileMode.ExistingFile, QFileDialog.FileMode.Directory


class PromptChooser(Runner):
    """Asks what to capture, and has it captured."""

    writing = dialogs.WritingOptions()  # what was asked last

    def edit(self) -> None:
        """Edit the text, or both; a model that reads none is asked for ids."""
        session, spec = self.session, self.session.model_spec
        other = spec is not None and spec.modality != "text"
        if other or not dialogs.ModelInputs.of(session.model).text:
            self.ids()
            return
        texts = session.text, spec, session.second, session.model
        dialogs.TextDialog(self.window, *texts, self.ids).ask(self.capture_text)

    def capture_text(self, text: str, second: str = "") -> None:
        self.session.put(text=text, second=second, ids="")
        self.commands.run("capture")

    def ids(self) -> None:
        """Ask for a file of ids; of a model of images or sounds for one of these."""
        spec = self.session.model_spec
        modality = "text" if spec is None else spec.modality
        title, kinds = dialogs.READ[modality]
        endings = " ".join(f"*{one}" for one in dialogs.READABLE.get(modality, ()))
        kinds = tr(kinds, endings=endings) if endings else tr(kinds)
        dialogs.ask_for(self.window, tr(title), FILE, self.capture_ids, kinds)

    def capture_ids(self, path: str) -> None:
        """Capture what the ids of a file stand for, an image or a sound."""
        self.commands.remember(path)
        self.session.put(ids=path)
        self.commands.run("capture")

    def corpus(self) -> None:
        """Ask for a file of texts, then where to keep its capture."""
        chosen = self.commands.answered("corpus", self.keep_corpus)
        dialogs.ask_for(self.window, tr("Choose a text file"), FILE, chosen, tr(dialogs.TEXTS))

    def keep_corpus(self, path: str) -> None:
        """Ask where to keep the capture of a file of texts."""
        self.commands.remember(path)
        name = f"{Path(path).stem or 'texts'}.h5"
        chosen = self.commands.answered("corpus", partial(self.capture_corpus, path))
        dialogs.ask_where(self.window, tr("Save captures as"), tr(dialogs.CAPTURES), name, chosen)

    def capture_corpus(self, path: str, out: str) -> None:
        """Capture every text of a file into one capture."""
        self.commands.remember(out)
        self.commands.capturing.start_corpus(path, out)

    def write(self) -> None:
        """Ask how much text to generate, and how."""
        session = self.session
        capture = None if session.stale else session.capture
        most = session.spec.max_positions if session.spec is not None else None
        room = None if most is None or capture is None else max(0, most - len(capture.main))
        two = session.spec is not None and session.spec.two_texts
        text = session.second if two else session.text
        chosen = self.commands.answered("write", self.write_so)
        dialogs.WriteDialog(self.window, text, session.unit, room, self.writing).ask(chosen)

    def write_so(self, writing: dialogs.WritingOptions) -> None:
        self.writing = writing
        self.commands.capturing.start_writing(writing)
