"""What is open, chosen and shown: one value that everything in the window listens to.

Owned by the GUI thread. No Qt, no torch, no h5py: a test needs none of them to move a selection.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from numpy import array_equal
from psygnal import Signal

from hgviz.analysis.importance import MaskTrial
from hgviz.core import Capture, Display, HeadId, HeadSet, ModelSpec, Prompt, Selection, Side
from hgviz.session.document import Document, Mode, SideB

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hgviz.analysis.roles import CorpusRoles, HeadRole
    from hgviz.models.model import Model
    from hgviz.study import Mask, Standing, Study, Sweep
    from hgviz.tasks.attribution import Attribution, Question
    from hgviz.tasks.measurements import Patching

# what was found of one model, and goes when another is opened
OF_MODEL: dict[str, Any] = {
    "study": None, "trial": None, "masks": (), "data": "", "facts": {}, "roles": None,
    "opened": {}, "hover": None, "ids": "", "capture_b": None, "trial_b": None,
    "question": None, "explained": None, "patching": None,
}  # fmt: skip
NAMES_HEADS = ("off", "head")  # comparisons with heads of the model at hand
# what was measured of a model, and what is changed of it: both come back with it
MEASURED = ("study", "unsaved", "trial", "masks", "data", "score", "off")

MOST_RECENT = 12  # files that were opened last, and commands that were found last


@dataclass(frozen=True, slots=True)
class Work:
    """A job as the window shows it; keeps: what is kept when it is stopped, or ""."""

    key: str
    title: str
    done: float = 0.0
    total: float = 0.0
    note: str = ""
    left: float | None = None
    keeps: str = ""
    state: Literal["waiting", "running", "stopping", "done", "stopped", "failed"] = "waiting"

    @property
    def is_going(self) -> bool:
        """Whether it waits or runs."""
        return self.state in ("waiting", "running")

    @property
    def part(self) -> float:
        """How much of it is done, in 0..1; 0 while nobody knows."""
        return self.done / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class PatchedTexts:
    """Two texts, and the two answers (tokens or classes) whose logit difference is patched."""

    clean: str = ""
    corrupted: str = ""
    answer: str = ""
    wrong: str = ""


class Session:
    """The state of a window: what is open, selected and shown.

    Only `put` changes fields; `changed` then emits the name of each changed field, in this order.
    """

    changed = Signal(str)

    models: int = 0  # opened so far, to recognise results of an earlier one
    model: Model | None = None  # always the one of the capture
    spec: ModelSpec | None = None
    capture: Capture | None = None
    selection: Selection = Selection()
    hover: Selection | None = None  # under the pointer, shared by all panes
    opened: Mapping[int, HeadId] = {}  # the head last opened at each level, by level index
    facts: Mapping[HeadId, HeadRole] = {}
    display: Display = Display()
    off: HeadSet = frozenset()  # switched off in captures and trials of this model
    mode: Mode = "inspect"
    text: str = ""
    second: str = ""  # the second text of a pair, or the decoder's
    ids: str = ""  # the file of token IDs to capture instead of the text
    dark: bool = False
    work: tuple[Work, ...] = ()
    checkpoint: str = ""
    activation: str = ""  # replaces that of the checkpoint
    written: int | None = None  # the first generated token
    study: Study | None = None  # the head importance measured on the data
    trial: MaskTrial | None = None  # the evaluation with heads off, so far
    masks: tuple[Mask, ...] = ()  # those that were saved
    undo: str = ""  # the next step to undo, in words
    redo: str = ""
    data: str = ""  # the file that the model is evaluated on
    score: str = ""  # the importance method that colours heads
    look: str = "map"  # the one of LOOKS in the middle of Inspect
    capture_b: Capture | None = None  # B of a comparison
    trial_b: MaskTrial | None = None  # the evaluation of its model
    comparison: SideB | None = None  # how B is derived from A
    roles: CorpusRoles | None = None  # of all heads, in this text or in its corpus
    shade: str = ""  # the metric that colours heads instead of their maps
    question: Question | None = None
    explained: Attribution | None = None
    patching: Patching | None = None
    unsaved: bool = False  # whether the study differs from its file
    recent: tuple[str, ...] = ()  # paths opened last, newest first
    sweep: Sweep | None = None  # the runs of a study as last read
    sweep_file: str = ""  # its study file
    sweep_trouble: str = ""  # why its runs cannot be read now
    cell: str = ""  # the key of the chosen run

    def __init__(self) -> None:
        self.grew = False  # whether the capture extends the previous one
        self.stepped = False  # whether it is another text of the same corpus
        self.measured: dict[str, dict[str, Any]] = {}  # MEASURED of earlier models, by digest
        self._tokens: dict[tuple[Side, str], int] = {}  # the last query and key of each text
        self._cells: set[tuple[HeadId, str, int]] = set()  # what somebody chose, and in which head

    @property
    def document(self) -> Document:
        """Everything that a session file holds of it. A capture without a file is left to its model
        and text; scores that are no numbers are left out."""
        a, study = self.capture, self.study
        from_file = a is not None and bool(a.path) and not self.stale
        runs = self.sweep.path if self.sweep is not None else ""
        if runs and not os.path.isdir(runs):  # before it has a folder
            runs = self.sweep_file
        return Document(
            model=self.checkpoint,
            activation=self.activation,
            capture=a.path if a is not None else "",
            item=a.item if a is not None and a.path else 0,
            text="" if from_file else self.text,
            second="" if from_file else self.second,
            ids=self.ids,
            off=self.off,
            masks=tuple(map(_with_finite_score, self.masks)),
            comparison=self.comparison,
            study=study.path if study is not None else "",
            examples=self.trial.examples.digest if self.trial is not None else "",
            data=self.data,
            sweep=runs,
            cell=self.cell,
            score=self.score,
            selection=self.selection,
            display=self.display,
            mode=self.mode,
            look=self.look,
            shade=self.shade,
        )

    @property
    def model_spec(self) -> ModelSpec | None:
        """The spec of the model where one is open, else that of the capture."""
        return self.model.spec if self.model is not None else self.spec

    @property
    def unit(self) -> str:
        """What a position of the text on screen is called: token, byte, patch."""
        return self.capture.main.unit if self.capture is not None else "token"

    @property
    def stale(self) -> bool:
        """Whether the text was edited since the capture on screen."""
        return self.capture is not None and self._texts(self.capture) != (self.text, self.second)

    @property
    def at_work(self) -> bool:
        """Whether the model is: a job runs of which something is kept when it is stopped."""
        return any(one.keeps and one.is_going for one in self.work)

    def job(self, *keys: str) -> Work | None:
        """The first job of these keys that waits or runs; without keys of any."""
        going = (one for one in self.work if one.is_going)
        return next((one for one in going if one.key in keys or not keys), None)

    @property
    def run(self) -> Standing | None:
        """The chosen run of the study as it stands."""
        runs = self.sweep.standings if self.sweep is not None and self.cell else ()
        return next((one for one in runs if one.cell.key == self.cell), None)

    @property
    def outdated(self) -> bool:
        """Whether other heads are off than in the capture on screen, of a text that the checkpoint
        at hand can capture again: not between segments that were given."""
        a = self.capture
        if a is None or not self.checkpoint or not a.complete or a.items or self.stale:
            return False
        given = a.prompt.boundaries is not None
        return a.off != self.off and not given and self.written is None

    @property
    def looked_at(self) -> Selection:
        """The query and key under the pointer in any pane, else the chosen ones."""
        hover, chosen = self.hover, self.selection
        if hover is None or hover.query is None:
            return chosen
        if self._sides(hover.layer) != self._sides(chosen.layer):
            return chosen
        another = hover.head_id != chosen.head_id  # a head alone is pointed at
        return replace(hover, key=chosen.key) if another and hover.key is None else hover

    @property
    def marked(self) -> Selection:
        """The selection for a map on paper: without a query or key that nobody chose in this head.

        A capture that opens has a query for its sentence, and another head keeps the tokens of
        the one before: neither is a cell that a figure may point at.
        """
        chosen = self.selection
        query, key = (
            token if (chosen.head_id, field, token) in self._cells else None
            for field, token in (("query", chosen.query), ("key", chosen.key))
        )
        return replace(chosen, query=query, key=key)

    def put(self, *, chosen: bool = True, **fields: Any) -> None:
        """Set fields, bring the dependent ones in line, then say once each which ones changed.

        chosen: whether a selection among them is somebody's choice, which figures may mark.
        """
        unknown = set(fields) - set(FIELDS)
        if unknown:
            raise AttributeError(f"a session has no {', '.join(sorted(unknown))}")
        before = {name: getattr(self, name) for name in FIELDS}
        given = fields.get("selection") if chosen else None
        kept = Selection() if "capture" in fields or given is None else self.at(given.head_id)
        fields = self._fitting(fields)
        for name, value in fields.items():
            setattr(self, name, value)
        if "capture" in fields:
            self._take_capture(before["capture"], fields)
        if "study" in fields and "unsaved" not in fields:
            self.unsaved = False
        if self.capture is None and self.model is not None and "spec" not in fields:
            self.spec = self.model.spec
        old = before["spec"]
        another = old is not None and (self.spec is None or not _same_model(old, self.spec))
        if another:
            self._forget_model(before, fields)
        elif old is None and self.capture is not None and "off" not in fields:
            self.off = self.capture.off
        if another or old is None:
            self._restore_measured(fields)
        self.selection = self._clamped(self.selection)
        self._remember()
        if given is not None:
            self._choose(before["selection"], kept)
        if "opened" in fields or (old, before["selection"]) != (self.spec, self.selection):
            self._open()
        for name, was in before.items():
            new = getattr(self, name)
            if new is not was and (name in ("capture", "model", "capture_b") or new != was):
                self.changed.emit(name)

    def select(self, **fields: Any) -> None:
        """Change a part of the selection; another layer keeps the query as `at` does."""
        chosen = self.selection
        if "layer" in fields:
            chosen = self.at(HeadId(fields["layer"], fields.get("head", chosen.head)))
        self.put(selection=replace(chosen, **fields))

    def lies_at(self, saved: Capture | Study, path: str) -> None:
        """A capture or study was saved there: it knows its file from now on, and nothing else
        changes. One that has changed meanwhile is not what lies there."""
        places = [one for one in ("capture", "capture_b", "study") if getattr(self, one) is saved]
        if places:
            kept: dict[str, Any] = {"text": self.text, "second": self.second, "roles": self.roles}
            self.put(**kept | dict.fromkeys(places, replace(saved, path=path)))

    def at(self, head: HeadId) -> Selection:
        """The selection on another head: at the same query where it reads the same text, else at
        the one last looked at there; without a key, which was chosen for the weight in this head.
        """
        if head == self.selection.head_id:
            return self.selection
        now, then = self._sides(head.layer), self._sides(self.selection.layer)
        query = self.selection.query
        if now is not None and then is not None and now[0] != then[0] and query is not None:
            query = self._tokens.get((now[0], "query"), self._tokens.get((now[0], "key")))
            query = self._middle(head.layer) if query is None else query
        chosen = self.selection
        return replace(chosen, layer=head.layer, head=head.head, query=query, key=None)

    def last_token(self, level: int) -> int | None:
        """The query last chosen in the text of a level, else the key, else a middle one."""
        if self.capture is None or self.spec is None:
            return None
        side = self.spec.levels[level].sequence
        found = self._tokens.get((side, "query"), self._tokens.get((side, "key")))
        return _fresh_query(self.capture.prompt_of(level)) if found is None else found

    def heads(self, level: int) -> tuple[HeadId, ...]:
        """The self-attention heads of a level, in order of computation."""
        return tuple(
            HeadId(layer.index, head)
            for layer in (self.spec.layers if self.spec else ())
            if layer.role == "self" and layer.level == level
            for head in layer.heads
        )

    def item(self, by: int) -> int | None:
        """The number of the text `by` places along its corpus; None at the ends or without one."""
        numbers = [one.number for one in self.capture.items] if self.capture is not None else []
        if self.capture is None or self.capture.item not in numbers:
            return None
        at = numbers.index(self.capture.item) + by
        return numbers[at] if 0 <= at < len(numbers) else None

    def _texts(self, capture: Capture) -> tuple[str, str]:
        """The texts of a capture; beside an image or a sound, the last text that was read stays."""
        text, second = capture.texts
        return (text if capture.prompt.signal is None else self.text), second

    def _fitting(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields, and without the model or the capture at hand where one of another comes."""
        capture, model = fields.get("capture"), fields.get("model")
        if capture is not None and "model" not in fields:
            mine = self.model_spec
            if mine is not None and not _same_model(mine, capture.spec):
                return {"model": None, "checkpoint": "", "activation": "", **fields}
        left = self.capture if "capture" not in fields else None
        if model is not None and left is not None and not _same_model(left.spec, model.spec):
            return {"capture": None, **fields}
        return fields

    def _forget_model(self, before: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        """Another model: nothing that was found of the one before holds; what was measured of it is
        kept until it comes back."""
        self.models += 1
        if before["spec"].digest:
            kept = {name: before[name] for name in MEASURED}
            kept["name"] = before["spec"].name
            self.measured[before["spec"].digest] = kept
        blank = OF_MODEL | {"off": frozenset() if self.capture is None else self.capture.off}
        kind = self.comparison.kind if self.comparison is not None else ""
        has_same_heads = self.spec is not None and self.spec.heads == before["spec"].heads
        if kind in NAMES_HEADS or (kind == "model" and not has_same_heads):
            blank["comparison"] = None
        if self.capture is None:
            blank |= {"selection": Selection(), "written": None}
            self._tokens, self._cells = {}, set()
        for name, value in blank.items():
            if name not in fields:
                setattr(self, name, value)
        self.unsaved = fields.get("unsaved", False)

    def _restore_measured(self, fields: Mapping[str, Any]) -> None:
        """Bring back what was measured of a model that was open before. A capture with heads off
        says itself which are."""
        kept = self.measured.pop(self.spec.digest, {}) if self.spec is not None else {}
        own = {*fields, *(("unsaved", "trial") if "study" in fields else ())}
        if self.capture is not None and self.capture.off:
            own.add("off")
        for name in kept.keys() & {*MEASURED} - own:
            setattr(self, name, kept[name])

    def _take_capture(self, old: Capture | None, fields: Mapping[str, Any]) -> None:
        new = self.capture
        self.grew = self.stepped = False
        if old is not None and new is not None:
            self.grew = new.continues(old)
            same = (old.path, old.spec) == (new.path, new.spec)
            self.stepped = same and bool(new.items) and not self.grew
        if "roles" not in fields and not (self.stepped and self.roles and self.roles.texts > 1):
            self.roles = None
        if not self.grew and "written" not in fields:
            self.written = None if new is None else new.first_generated
        if new is None:
            self.hover = None
            self.facts = {} if "facts" not in fields else self.facts
            return
        if "spec" not in fields:
            self.spec = new.spec
        if "text" not in fields and "second" not in fields:
            self.text, self.second = self._texts(new)
        if "opened" not in fields and (old is None or old.spec != new.spec):
            self.opened = {}
        if self.grew:
            return
        if "facts" not in fields:
            self.facts = {}
        if old is None or old.spec != new.spec or not array_equal(old.prompt.ids, new.prompt.ids):
            self.hover = fields.get("hover")
            self._tokens, self._cells = {}, set()
            if "selection" not in fields:
                self.selection = self._fresh(old, new)

    def _fresh(self, old: Capture | None, new: Capture) -> Selection:
        """A first selection for a new capture: the head at hand where it exists, a middle letter.

        The middle: there is something before it to look back at, and something after it.
        """
        if old is not None and old.spec == new.spec:
            query = self._middle(self.selection.layer)
            return replace(self.selection, query=query, key=None)
        layers = [one for one in reversed(new.spec.layers) if one.role == "self" and one.heads]
        there = (one for one in layers if new.maps[one.index] is not None)
        layer = next(there, layers[0] if layers else None)
        if layer is None:
            return Selection(query=self._middle(0) if new.spec.layers else None)
        return Selection(layer.index, layer.heads[0], self._middle(layer.index))

    def _middle(self, layer: int) -> int | None:
        assert self.capture is not None
        return _fresh_query(self.capture.query_prompt(layer))

    def _sides(self, layer: int) -> tuple[Side, Side] | None:
        """Which texts the queries and the keys of a layer come from."""
        if self.spec is None or not 0 <= layer < len(self.spec.layers):
            return None
        one, levels = self.spec.layers[layer], self.spec.levels
        return levels[one.level].sequence, levels[one.key_level].sequence

    def _remember(self) -> None:
        sides, chosen = self._sides(self.selection.layer), self.selection
        if sides is None or self.capture is None:
            return
        tokens = {"query": chosen.query, "key": chosen.key}
        for side, (field, token) in zip(sides, tokens.items(), strict=True):
            if token is not None:
                self._tokens[side, field] = token

    def _choose(self, old: Selection, kept: Selection) -> None:
        """Note the cell that a selection chose: what it says anew, or again in the same head."""
        now = self.selection
        again = (now.head_id, now.beside) == (old.head_id, old.beside)
        for field, token, was in (("query", now.query, kept.query), ("key", now.key, kept.key)):
            if token is not None and (token != was or again):
                self._cells.add((now.head_id, field, token))

    def _clamped(self, chosen: Selection) -> Selection:
        if self.spec is None or not self.spec.layers:
            return chosen
        layer = self.spec.layers[within(chosen.layer, len(self.spec.layers))]
        head = nearest(chosen.head, layer.heads)
        query, key = chosen.query, chosen.key
        if self.capture is not None:
            query = _token(query, len(self.capture.query_prompt(layer.index)))
            key = _token(key, len(self.capture.key_prompt(layer.index)))
        return replace(chosen, layer=layer.index, head=head, query=query, key=key)

    def _open(self) -> None:
        """Record the chosen head at its level; every level has some head open."""
        if self.spec is None or not self.spec.layers:
            return
        opened = dict(self.opened)
        for level in self.spec.levels:
            heads = self.heads(level.index)
            if heads and opened.get(level.index) not in heads:
                opened[level.index] = heads[0]
        layer = self.spec.layers[self.selection.layer]
        if layer.role == "self" and layer.heads:
            opened[layer.level] = self.selection.head_id
        self.opened = opened


FIELDS = tuple(Session.__annotations__)


def _with_finite_score(mask: Mask) -> Mask:
    """A mask, without its score where that has no finite interval, which JSON has no number for."""
    score = mask.score
    if score is None or math.isfinite(score.value + score.low + score.high):
        return mask
    return replace(mask, score=None, change=None)


def _same_model(one: ModelSpec, other: ModelSpec) -> bool:
    """Whether two are of the same weights; without a digest, whether they are alike."""
    if one.digest or other.digest:
        return one.digest == other.digest
    return replace(one, name=other.name) == other


def _fresh_query(prompt: Prompt) -> int | None:
    return (prompt.last + 1) * 3 // 5 if len(prompt) else None


def _token(token: int | None, tokens: int) -> int | None:
    return None if token is None or not tokens else within(token, tokens)


def add_recent(kept: tuple[str, ...], newest: str) -> tuple[str, ...]:
    """The items with the newest first and not repeated, at most MOST_RECENT of them."""
    return (newest, *(item for item in kept if item != newest))[:MOST_RECENT]


def within(value: int, length: int) -> int:
    """The nearest number from 0 to length - 1."""
    return max(0, min(value, length - 1))


def nearest(head: int, heads: tuple[int, ...]) -> int:
    """The head with the nearest number, 0 where there is none."""
    return min(heads, key=lambda other: (abs(other - head), other)) if heads else 0
