"""The Follow page: one letter on its way down to the waist and back up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from hgviz.core import Capture, HeadId, Task
from hgviz.gui.language import tr
from hgviz.gui.sentences import region, shown, word_spans
from hgviz.gui.view import View
from hgviz.gui.views import verdict
from hgviz.gui.views.choosing import CAPTURE
from hgviz.gui.views.stages import stages
from hgviz.gui.views.strips import of_story
from hgviz.gui.views.trace import Trace, Wish, follow
from hgviz.gui.views.walk import Trail
from hgviz.gui.views.words import counted
from hgviz.gui.widgets import IconButton, PaneHead, label

if TYPE_CHECKING:
    from hgviz.figures import Spec
    from hgviz.session import Session


class FollowView(View):
    """One letter through all levels: what it looks at, how it is pooled and spread again."""

    title = "Follow"
    topic = "follow"
    icon = "follow"
    needs = ("capture", "selection", "opened", "facts", "display", "dark")
    empty = (
        "Capture a text to follow a letter",
        "Follow shows one letter on its way through the model, layer by layer.",
    )
    empty_actions = CAPTURE

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._followed: Capture | None = None
        self.head = PaneHead(tr(self.title))
        self._letter = label(factor=1.08, weight=600, kind="mark")
        self.head.add_beside_title(self._letter)
        self.export = IconButton("export", tr("Export figure… (Ctrl+E)"))
        self.head.add(self.export)
        self.trail = Trail()
        self.start_at(self.trail)
        column = QVBoxLayout(self.content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.trail, 1)
        self.export.clicked.connect(self._export)
        self.trail.picked.connect(self._pick)
        self.trail.head_picked.connect(self._pick_head)

    # --- the view ---------------------------------------------------------------------------------

    def request(self, session: Session) -> Task[Trace] | None:
        """One row of every stage's head, and all levels composed for this letter."""
        capture = session.capture
        if capture is None or not len(capture.main):
            return None
        self._followed = capture
        level = capture.spec.layers[session.selection.layer].level
        token, prompt = session.selection.query, capture.prompt_of(level)
        token = prompt.last if token is None else token
        wish = Wish(session.selection, session.opened, session.facts)
        name_of = verdict.namer(capture, session.model)
        return follow(capture, stages(capture.spec, level), token, wish, name_of)

    def draw(self, result: Trace) -> None:
        """Lay it out and paint it."""
        session, capture = self.session, self._followed  # the session may be at the next by now
        if session is None or capture is None:
            return
        prompt = capture.prompt_of(result.level)
        if result.token >= len(prompt):
            return
        label_, noun = prompt.label(result.token), prompt.unit
        self._letter.setText(shown(label_, 12))
        at = tr("({unit} {number:,})", unit=tr(noun), number=result.token)
        where = [region(prompt, word_spans(prompt), result.token), at, _way(capture, result.level)]
        said = " ".join(filter(None, where))
        if capture.off:
            said += "; " + tr("without {heads}", heads=counted(len(capture.off), "head"))
        self.head.note.say(said)
        self.trail.show_trace(capture, stages(capture.spec, result.level), result, session)

    def figure(self, session: Session) -> Spec | None:
        """All levels, with the heads on show."""
        if session.capture is None:
            return None
        from hgviz.figures import Spec

        heads = tuple(one.head for one in self.trail.looks if one.head is not None)
        return Spec("levels", session.selection, session.display, heads=heads)

    def as_text(self) -> str:
        """Where the answer comes from, all maps together."""
        return self.trail.story.trace.sentence if self.trail.story is not None else ""

    def as_table(self) -> list[list[str]] | None:
        """One row for each stage, with the strongest keys and their weights."""
        return of_story(self.trail.story) if self.trail.story is not None else None

    # --- inside -----------------------------------------------------------------------------------

    def _export(self) -> None:
        self.asked.emit("export")

    def _pick(self, token: int) -> None:
        if self.session is not None:
            self.session.select(query=token, key=None)

    def _pick_head(self, head: HeadId) -> None:
        if self.session is not None:
            self.session.select(layer=head.layer, head=head.head)


def _way(capture: Capture, level: int) -> str:
    if any(one.stride != 1 for one in capture.spec.levels):
        return tr("down to the waist and back up")
    if not capture.spec.two_texts:
        return tr("through the layers")
    return tr("through the encoder") if level == 0 else tr("through the decoder")
