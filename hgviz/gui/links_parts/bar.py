"""The controls of links: which heads, how they are put together, which of their links."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QMargins, Qt, Signal
from PySide6.QtWidgets import QLineEdit, QSizePolicy, QToolButton

from hgviz.core import Capture, HeadId, HgvizError, Selection, heads_named, replace
from hgviz.gui.heads_parts.metrics import Cited, explanation
from hgviz.gui.language import tr
from hgviz.gui.links_parts.flow import Flow
from hgviz.gui.views import words
from hgviz.gui.widgets import Picker
from hgviz.maps.links import Linking, alike

HERE, LAYER, LEVEL, NAMED = "here", "layer", "level", "named"
FUSES = (
    ("each", "Each head", "Every head has links of its own colour"),
    ("mean", "Mean of heads", "The mean over these heads"),
)
CAP = 200  # links of a query and head, however they are chosen
DRAWN = "Which links of each query and head are drawn, {most} at most"
LIMITS = (
    ("The strongest", {"most": 1}), ("5 strongest", {"most": 5}), ("20 strongest", {"most": 20}),
    ("80 % of the weight", {"most": CAP, "mass": 0.8}),
)  # fmt: skip
USUAL = 1
VALUED = "Weigh by what a key has to give: weight × |v·W_O|"
NORM = Cited("‖a_ij v_j W_O‖", "Kobayashi et al. 2020")
TOGGLES = (
    ("words", "Words", "Merge pieces into words: rows averaged, columns added"),
    ("special", "Special", "Show special tokens, padding and the zeros of a shift"),
    ("values", "Values", VALUED),
)
NO_NORMS = "This capture has no norms of values: capture the text again to weigh by them"


class Bar(Flow):
    """Makes a Linking of what people choose; `changed` says so."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__(QMargins(16, 2, 16, 6))
        self.heads, self.fuse, self.limit = Picker(), Picker(), Picker()
        self.named = QLineEdit()
        self.named.setPlaceholderText("12.5, 11.*")
        self.named.setFixedWidth(120)
        self.named.setToolTip(tr("Heads by their numbers, such as 12.5, 11.*"))
        self.named.setAccessibleName(tr("Heads by their numbers"))
        self.named.hide()
        for name in (HERE, LAYER, LEVEL, NAMED):
            self.heads.addItem(name, name)
        for at, (name, said, why) in enumerate(FUSES):
            self.fuse.addItem(tr(said), name)
            self.fuse.setItemData(at, tr(why), Qt.ItemDataRole.ToolTipRole)
        for said, limits in LIMITS:
            self.limit.addItem(tr(said), limits)
        self.limit.setCurrentIndex(USUAL)
        self.fuse.hide()
        for box, name, tip in (
            (self.heads, tr("Heads"), tr("Which heads have links")),
            (self.fuse, tr("Heads together"), tr("How several heads are put together")),
            (self.limit, tr("Links"), tr(DRAWN, most=CAP)),
        ):
            box.setAccessibleName(name)
            box.setToolTip(tip)
            box.setSizeAdjustPolicy(Picker.SizeAdjustPolicy.AdjustToContents)
            box.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
            box.currentIndexChanged.connect(self._changed)
        self.named.editingFinished.connect(self._changed)
        for one in (self.heads, self.named, self.fuse, self.limit):
            self.add(one)
        self.toggles: dict[str, QToolButton] = {}
        for name, said, tip in TOGGLES:
            button = QToolButton()
            button.setText(tr(said))
            button.setToolTip(tr(tip))
            button.setCheckable(True)
            button.setFixedHeight(28)
            button.setChecked(name == "special")
            button.toggled.connect(self._changed)
            self.add(button)
            self.toggles[name] = button
        self._last = self._state()

    def linking(self, capture: Capture, chosen: Selection) -> Linking:
        """What is chosen. Errors: HgvizError for heads by numbers that there are not."""
        toggles: dict[str, Any] = {
            name: button.isChecked() for name, button in self.toggles.items()
        }
        heads = self._heads(capture, chosen)
        fuse: Any = self.fuse.currentData() if len(heads) > 1 else "each"
        return replace(
            Linking(most=0, heads=heads, fuse=fuse, **toggles), **self.limit.currentData()
        )

    def fit(self, capture: Capture, chosen: Selection) -> None:
        """Name the heads there are, and allow what this capture can give."""
        level = words.ends(capture.spec, chosen.layer)
        layers = alike(capture, chosen.layer)
        named = {
            HERE: tr("Head {head}", head=chosen.head_id),
            LAYER: tr("Layer {layer}: all heads", layer=chosen.layer),
            LEVEL: tr("All heads at {level}", level=level) if level else tr("All heads"),
            NAMED: tr("Heads by number…"),
        }
        self.heads.blockSignals(True)
        for at, said in enumerate(named.values()):
            self.heads.setItemText(at, said)
        self.heads.blockSignals(False)
        kept = all(getattr(capture.maps[one], "value_norms", None) is not None for one in layers)
        values = self.toggles["values"]
        values.setEnabled(kept)
        values.setToolTip(explanation(tr(VALUED), NORM) if kept else tr(NO_NORMS))
        self.fuse.setVisible(len(self._several(capture, chosen)) > 1)

    def _several(self, capture: Capture, chosen: Selection) -> tuple[HeadId, ...]:
        try:
            return self._heads(capture, chosen)
        except HgvizError:
            return ()

    def _heads(self, capture: Capture, chosen: Selection) -> tuple[HeadId, ...]:
        kind = self.heads.currentData()
        if kind == NAMED and self.named.text().strip():
            return tuple(sorted(heads_named(self.named.text(), capture.spec.layers)))
        if kind in (HERE, NAMED):
            return (chosen.head_id,)
        layers = alike(capture, chosen.layer) if kind == LEVEL else (chosen.layer,)
        return tuple(HeadId(at, head) for at in layers for head in capture.spec.layers[at].heads)

    def _state(self) -> tuple[object, ...]:
        boxes = (self.heads, self.fuse, self.limit)
        buttons = (one.isChecked() for one in self.toggles.values())
        return (*(one.currentIndex() for one in boxes), self.named.text(), *buttons)

    def _changed(self) -> None:
        self.named.setVisible(self.heads.currentData() == NAMED)
        if self.named.isVisible() and self.sender() is self.heads:
            self.named.setFocus()
        if (now := self._state()) != self._last:
            self._last = now
            self.changed.emit()
