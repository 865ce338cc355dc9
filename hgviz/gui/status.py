"""The status bar: what is chosen or pointed at, in words; how the capture was made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, QTimer

from hgviz.core import Capture, Display, Prompt, Selection, Step, Task, finish
from hgviz.gui.language import tr
from hgviz.gui.samples import name_of
from hgviz.gui.sentences import NULL, glyph, quoted
from hgviz.gui.views import verdict
from hgviz.gui.views.signs import signed
from hgviz.gui.views.words import counted, with_sign

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.compare_parts.texts import Reader
    from hgviz.gui.compare_parts.told import Told
    from hgviz.gui.widgets import StatusLine, Words
    from hgviz.session import Session
    from hgviz.study import Study

DOT = "   ·   "
DEVICES = {"cpu": "CPU", "cuda": "GPU", "mps": "GPU (mps)"}


class Status(QObject):
    """Keeps the two texts of the status bar in step with the session."""

    def __init__(self, left: StatusLine, right: Words, session: Session, lanes: Lanes) -> None:
        super().__init__(left)
        self._left, self._right = left, right
        self._session, self._lanes = session, lanes
        self._reader: Reader | None = None
        self._wait = QTimer(self, singleShot=True, interval=30)
        self._wait.timeout.connect(self._ask)
        session.changed.connect(self._heard)
        left.went_on.connect(self._wait.start)
        self._heard("capture")

    def close(self) -> None:
        """Stop listening."""
        self._session.changed.disconnect(self._heard)
        self._wait.stop()

    def settle(self) -> None:
        """Read and say it now, in this thread."""
        self._wait.stop()
        self._left.go_on()
        self._lanes.files.cancel("status")  # an earlier answer would come after this one
        if self._session.capture is not None and self._session.mode == "inspect":
            shown = self._session.hover or self._session.selection
            self._left.say(chosen_words(self._session.capture, shown))
        elif self._compares:
            self._left.say(finish(self._compared()))
        else:
            self._ask()

    def _heard(self, name: str) -> None:
        if name in ("capture", "study", "mode", "beside"):
            study, mode = self._session.study, self._session.mode
            opened = study is not None and study.path and mode == "prune"
            said = both_words(self._session) if self._compares else ""
            self._right.say(
                said or (study_words(study) if opened else made_words(self._session.capture))
            )
        if name == "models":
            self._left.say("")  # it was of another model
        if name == "hover":
            self._left.go_on()
        if name in ("capture", "model", "selection", "hover", "mode", "beside"):
            self._wait.start()

    def _ask(self) -> None:
        session = self._session
        self._lanes.files.cancel("status")
        if session.mode == "prune" and session.spec is not None:
            return  # the wall of heads tells of them
        if session.mode == "sweep" and session.sweep is not None:
            from hgviz.gui.runs import line_of
            from hgviz.gui.sweeps.commands import chosen as chosen_cell

            one = chosen_cell(session)
            self._left.say(line_of(one) if one is not None else "")
            return
        if session.capture is None:
            if session.model:
                self._left.say(tr("Capture a text to look inside"))
            else:
                self._left.say(tr("Open a checkpoint or a capture to look inside"))
            return
        chosen = session.hover or session.selection
        if session.mode == "follow":
            self._left.say(followed(session.capture, chosen))
            return
        self._lanes.files.submit(
            "status",
            "status",
            self._compared() if self._compares else _read(session.capture, chosen),
            on_done=self._left.say,
            on_error=_ignore,
            post=self._lanes.bridge.post,
        )

    @property
    def _compares(self) -> bool:
        session = self._session
        return session.mode == "compare" and None not in (session.capture, session.beside)

    def _compared(self) -> Task[str]:
        """The same cell of A and B; reads a row of each."""
        from hgviz.gui.compare_parts.texts import Reader
        from hgviz.gui.compare_parts.told import sides_of

        self._reader = self._reader or Reader()
        session = self._session
        a, b, looked = session.capture, session.beside, session.looked_at
        assert a is not None and b is not None
        chosen = replace(session.selection, query=looked.query, key=looked.key)
        return _both(self._reader, a, b, chosen, sides_of(session), session.display)


def _both(
    reader: Reader, a: Capture, b: Capture, chosen: Selection, told: Told, display: Display
) -> Task[str]:
    from hgviz.gui.compare_parts import saying

    found = yield from reader.read(a, b, chosen, told, display)
    none = tr("{side} has none", side=told.b)
    head = DOT.join([tr("Head {head}", head=chosen.head_id), none])
    return head if found.pair is None or found.alone else saying.status(found.pair, told)


def _ignore(error: BaseException) -> None:
    """The pane that shows the same cell says what is wrong with it."""


def _read(capture: Capture, chosen: Selection) -> Task[str]:
    yield Step(0, 1)
    return chosen_words(capture, chosen)


def chosen_words(capture: Capture, chosen: Selection) -> str:
    """Head 12.5 · query 60 “s” · key 29 “.” · weight 0.890 · row sum 1.000; reads one row."""
    parts = [tr("Head {head}", head=chosen.head_id)]
    layer = capture.maps[chosen.layer]
    if layer is None:
        return DOT.join([*parts, tr("not captured yet")])
    if chosen.head not in layer.heads:
        return tr("The model has no such head: all of this layer were removed")
    if chosen.query is not None:
        row = min(capture.row(chosen.layer, chosen.query), layer.shape[1] - 1)
        weights = layer.read(chosen.head, rows=(row, row + 1))[0]
        one = capture.spec.layers[chosen.layer]
        asking, answering = capture.query_prompt(chosen.layer), capture.key_prompt(chosen.layer)
        span = capture.query_spans(chosen.layer)[row]
        words = _quoted(asking, span, capture.null(one.level))
        parts.append(tr("query {number:,} {words}", number=row, words=words))
        if chosen.key is not None:
            column = min(capture.column(chosen.layer, chosen.key), layer.shape[2] - 1)
            spans = capture.key_spans(chosen.layer)
            words = _quoted(answering, spans[column], capture.null(one.key_level))
            parts.append(tr("key {number:,} {words}", number=column, words=words))
            parts.append(tr("weight {weight}", weight=_exact(float(weights[column]))))
        said = tr("row sum {total}", total=_exact(float(weights.sum(dtype=np.float64))))
        if signed(capture, chosen.head_id):
            sides = (np.maximum(weights, 0), np.minimum(weights, 0))
            plus, minus = (with_sign(float(one.sum(dtype=np.float64))) for one in sides)
            said += f" ({plus} {minus})" if "0" not in (plus, minus) else ""
        parts.append(said)
    return DOT.join(parts)


def followed(capture: Capture, chosen: Selection) -> str:
    """query 60 “s” · in position 30 of 1:2 (“ss”) · in position 15 of 1:4 (“lass”)."""
    if chosen.query is None:
        return ""
    asking = capture.query_prompt(chosen.layer)
    words = quoted(glyph(asking, chosen.query, chosen.query + 1))
    parts = [tr("query {number:,} {words}", number=chosen.query, words=words)]
    said = verdict.of_text(capture).sentence()
    if said:
        parts.append(said)
    for level in capture.spec.levels[1:]:
        if level.sequence == capture.spec.levels[0].sequence:
            at = capture.position(level.index, chosen.query)
            behind = capture.spans[level.index][at]
            words, label = _quoted(capture.prompt_of(level.index), behind), level.label
            if behind[0] >= 0:
                inside = "in position {number:,} of {level} ({words})"
                parts.append(tr(inside, number=at, level=label, words=words))
            else:
                parts.append(tr("in none of the {level} yet", level=label))
    return DOT.join(parts)


def made_words(capture: Capture | None) -> str:
    """136 bytes captured in 0.01 s · CPU, float32."""
    if capture is None:
        return ""
    made, tokens = capture.made, len(capture.main)
    what = counted(tokens, "byte" if capture.spec.vocabulary == 256 else capture.main.unit)
    if capture.target is not None:
        states = capture.prompt.states is not None
        source = "{tokens} from {source:,} states" if states else "{tokens} from {source:,}"
        what = tr(source, tokens=what, source=len(capture.prompt))
    if capture.items:
        what = tr("{tokens}, one of {count:,} texts", tokens=what, count=len(capture.items))
    if not capture.complete:
        done, layers = sum(one is not None for one in capture.maps), len(capture.maps)
        said = tr("{done} of {layers} layers of {tokens}", done=done, layers=layers, tokens=what)
    elif made.seconds:
        time = f"{made.seconds:.2f}" if made.seconds < 10 else f"{made.seconds:.0f}"
        said = tr("{tokens} captured in {time} s", tokens=what, time=time)
    else:
        said = tr("{tokens} captured", tokens=what)
    return DOT.join((said, _device(capture)))


def _device(capture: Capture) -> str:
    made = capture.made
    return f"{DEVICES.get(made.device.partition(':')[0], made.device)}, {made.dtype}"


def both_words(session: Session) -> str:
    """same text, 136 bytes · CPU, float32; of two captures."""
    from hgviz.gui.compare_parts import saying

    a, b = session.capture, session.beside
    assert a is not None and b is not None
    tokens, unit = len(a.main), "byte" if a.spec.vocabulary == 256 else a.main.unit
    made = [_device(one) for one in (a, b)]
    devices = made[0] if made[0] == made[1] else f"A {made[0]}, B {made[1]}"
    said = [tr(saying.same(a, b)), counted(tokens, unit)]
    if len(b.main) != tokens:
        said[1] = tr("{tokens} and {more:,}", tokens=said[1], more=len(b.main))
    return DOT.join((", ".join(said), devices))


def study_words(study: Study) -> str:
    """Study heads.h5 · softmax on reviews.tsv, 800 texts."""
    from hgviz.gui.prune_parts.shades import place_noun

    of = tr(
        "{model} on {data}",
        model=study.spec.name or tr("a model"),
        data=study.data or tr("some data"),
    )
    rows = counted(len(study.wanted), place_noun(study.asked, study.spec))
    return DOT.join((tr("Study {name}", name=name_of(study.path)), f"{of}, {rows}"))


def _quoted(prompt: Prompt, span: np.ndarray, null: bool = False) -> str:
    start, end = (int(one) for one in span)
    if start >= 0:
        return quoted(glyph(prompt, start, end))
    return f"({tr(NULL) if null else tr('padding')})"


def _exact(value: float) -> str:
    """Three decimals; 0 only if it is exactly that."""
    if value == 0:
        return "0"
    if abs(value) < 0.0005:
        return "<0.001" if value > 0 else "−<0.001"
    return f"{value:.3f}".replace("-", "−")
