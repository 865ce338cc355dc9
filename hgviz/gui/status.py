"""The status bar: what is chosen or pointed at, in words; how the capture was made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, QTimer

from hgviz.core import Capture, Display, Prompt, Selection, Step, Task, finish
from hgviz.gui.compare import saying
from hgviz.gui.compare.texts import Reader
from hgviz.gui.compare.told import Told, sides_of
from hgviz.gui.opening import name_of
from hgviz.gui.prune.shades import place_noun
from hgviz.gui.sweeps.about import line_of
from hgviz.gui.sweeps.commands import chosen as chosen_cell
from hgviz.gui.views import verdict
from hgviz.gui.views.naming import NULL, glyph, quoted
from hgviz.gui.views.signs import signed
from hgviz.gui.views.words import with_sign

if TYPE_CHECKING:
    from hgviz.gui.bridge import Lanes
    from hgviz.gui.controls import Words
    from hgviz.session import Session
    from hgviz.study import Study

DOT = "   ·   "
DEVICES = {"cpu": "CPU", "cuda": "GPU", "mps": "GPU (mps)"}


class Status(QObject):
    """Keeps the two texts of the status bar in step with the session."""

    def __init__(self, left: Words, right: Words, session: Session, lanes: Lanes) -> None:
        super().__init__(left)
        self._left, self._right = left, right
        self._session, self._lanes = session, lanes
        self._reader = Reader()
        self._wait = QTimer(self, singleShot=True, interval=30)
        self._wait.timeout.connect(self._ask)
        session.changed.connect(self._heard)
        self._heard("capture")

    def close(self) -> None:
        """Stop listening."""
        self._session.changed.disconnect(self._heard)
        self._wait.stop()

    def settle(self) -> None:
        """Read and say it now, in this thread."""
        self._wait.stop()
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
        if name in ("capture", "model", "selection", "hover", "mode", "beside"):
            self._wait.start()

    def _ask(self) -> None:
        session = self._session
        if session.mode == "prune" and session.spec is not None:
            return  # the wall of heads tells of them
        if session.mode == "sweep" and session.sweep is not None:
            one = chosen_cell(session)
            self._left.say(line_of(one) if one is not None else "")
            return
        if session.capture is None:
            what = "Capture a text" if session.model else "Open a checkpoint or a capture"
            self._left.say(f"{what} to look inside")
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
        session = self._session
        a, b, looked = session.capture, session.beside, session.looked_at
        assert a is not None and b is not None
        chosen = replace(session.selection, query=looked.query, key=looked.key)
        return _both(self._reader, a, b, chosen, sides_of(session), session.display)


def _both(
    reader: Reader, a: Capture, b: Capture, chosen: Selection, told: Told, display: Display
) -> Task[str]:
    found = yield from reader.read(a, b, chosen, told, display)
    head = DOT.join([f"Head {chosen.head_id}", f"{told.b} has none"])
    return head if found.pair is None or found.alone else saying.status(found.pair, told)


def _ignore(error: BaseException) -> None:
    """The pane that shows the same cell says what is wrong with it."""


def _read(capture: Capture, chosen: Selection) -> Task[str]:
    yield Step(0, 1)
    return chosen_words(capture, chosen)


def chosen_words(capture: Capture, chosen: Selection) -> str:
    """Head 12.5 · query 60 “s” · key 29 “.” · weight 0.890 · row sum 1.000; reads one row."""
    parts = [f"Head {chosen.head_id}"]
    layer = capture.maps[chosen.layer]
    if layer is None:
        return DOT.join([*parts, "not captured yet"])
    if chosen.head not in layer.heads:
        return "The model has no such head: all of this layer were removed"
    if chosen.query is not None:
        row = min(capture.row(chosen.layer, chosen.query), layer.shape[1] - 1)
        weights = layer.read(chosen.head, rows=(row, row + 1))[0]
        null = capture.spec.levels[capture.spec.layers[chosen.layer].key_level].stride is None
        asking, answering = capture.query_prompt(chosen.layer), capture.key_prompt(chosen.layer)
        parts.append(
            f"query {row:,} {_quoted(asking, capture.query_spans(chosen.layer)[row], null)}"
        )
        if chosen.key is not None:
            column = min(capture.column(chosen.layer, chosen.key), layer.shape[2] - 1)
            spans = capture.key_spans(chosen.layer)
            parts.append(f"key {column:,} {_quoted(answering, spans[column], null)}")
            parts.append(f"weight {_exact(float(weights[column]))}")
        said = f"row sum {_exact(float(weights.sum(dtype=np.float64)))}"
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
    parts = [f"query {chosen.query:,} {quoted(glyph(asking, chosen.query, chosen.query + 1))}"]
    said = verdict.of_text(capture).sentence()
    if said:
        parts.append(said)
    for level in capture.spec.levels[1:]:
        if level.sequence == capture.spec.levels[0].sequence:
            at = capture.position(level.index, chosen.query)
            behind = capture.spans[level.index][at]
            words = _quoted(capture.prompt_of(level.index), behind)
            inside = f"in position {at:,} of {level.label} ({words})"
            parts.append(inside if behind[0] >= 0 else f"in none of the {level.label} yet")
    return DOT.join(parts)


def made_words(capture: Capture | None) -> str:
    """136 bytes captured in 0.01 s · CPU, float32."""
    if capture is None:
        return ""
    made, tokens = capture.made, len(capture.main)
    noun = "bytes" if capture.spec.vocabulary == 256 else f"{capture.main.unit}s"
    other = ""
    if capture.target is not None:
        other = f" from {len(capture.prompt):,}"
        other += " states" if capture.prompt.states is not None else ""
    noun += other
    done = sum(one is not None for one in capture.maps)
    together = f", one of {len(capture.items):,} texts" if capture.items else ""
    parts = [f"{tokens:,} {noun if tokens != 1 or other else noun[:-1]}{together} captured"]
    if not capture.complete:
        parts = [f"{done} of {len(capture.maps)} layers of {tokens:,} {noun}"]
    elif made.seconds:
        parts[0] += (
            f" in {made.seconds:.2f} s" if made.seconds < 10 else f" in {made.seconds:.0f} s"
        )
    return DOT.join([*parts, _device(capture)])


def _device(capture: Capture) -> str:
    made = capture.made
    return f"{DEVICES.get(made.device.partition(':')[0], made.device)}, {made.dtype}"


def both_words(session: Session) -> str:
    """same text, 136 bytes · CPU, float32; of two captures."""
    a, b = session.capture, session.beside
    assert a is not None and b is not None
    tokens, unit = len(a.main), "byte" if a.spec.vocabulary == 256 else a.main.unit
    made = [_device(one) for one in (a, b)]
    devices = made[0] if made[0] == made[1] else f"A {made[0]}, B {made[1]}"
    said = f"{saying.same(a, b)}, {tokens:,} {unit}{'' if tokens == 1 else 's'}"
    if len(b.main) != tokens:
        said += f" and {len(b.main):,}"
    return DOT.join((said, devices))


def study_words(study: Study) -> str:
    """Study heads.h5 · softmax on reviews.tsv, 800 texts."""
    noun = place_noun(study.asked, study.spec)
    count = len(study.wanted)
    of = f"{study.spec.name or 'a model'} on {study.data or 'some data'}"
    said = f"{of}, {count:,} {noun}{'' if count == 1 else 's'}"
    return DOT.join((f"Study {name_of(study.path)}", said))


def _quoted(prompt: Prompt, span: np.ndarray, null: bool = False) -> str:
    start, end = (int(one) for one in span)
    return quoted(glyph(prompt, start, end)) if start >= 0 else f"({NULL if null else 'padding'})"


def _exact(value: float) -> str:
    """Three decimals; 0 only if it is exactly that."""
    if value == 0:
        return "0"
    if abs(value) < 0.0005:
        return "<0.001" if value > 0 else "−<0.001"
    return f"{value:.3f}".replace("-", "−")
