"""Numbers, tokens and heads in words."""

from __future__ import annotations

import html
import math
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hgviz import tasks
from hgviz.analysis.importance import METHODS
from hgviz.analysis.metrics import METRICS
from hgviz.core import (
    Capture,
    HeadId,
    HeadSet,
    Integers,
    Layer,
    Level,
    MetricEstimate,
    ModelSpec,
    Prompt,
)
from hgviz.gui.language import tr

if TYPE_CHECKING:
    from hgviz.models.model import Model

# --- words ----------------------------------------------------------------------------------------

READ = {"text": "Text", "image": "Image", "audio": "Sound"}  # by what a model reads
NUMBERS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve",
)  # fmt: skip
PARTS = {
    2: "a half", 3: "a third", 4: "a quarter", 5: "a fifth", 6: "a sixth", 8: "an eighth",
    9: "a ninth", 10: "a tenth", 16: "a sixteenth", 25: "a 25th", 36: "a 36th", 64: "a 64th",
}  # fmt: skip
VULGAR = {1: "1", 2: "½", 3: "⅓", 4: "¼", 5: "⅕", 6: "⅙", 8: "⅛", 9: "⅑", 10: "⅒"}


def number(count: int) -> str:
    """two, twelve, 32,768."""
    return tr(NUMBERS[count]) if 0 <= count < len(NUMBERS) else f"{count:,}"


def part(count: int) -> str:
    """a quarter, a sixteenth, 1/144."""
    return tr(PARTS[count]) if count in PARTS else f"1/{count:,}"


def fraction(count: int) -> str:
    """One over count as figures, small where every font has them: 1, ¼, 1/16."""
    return VULGAR.get(count, f"1/{count:,}")


def level(spec: ModelSpec, number: int) -> str:
    """What a level is called: 1:2; of models with two texts or slots, whose rows they are."""
    sequence = spec.levels[number].sequence
    if len({level.sequence for level in spec.levels}) == 1:
        return spec.levels[number].label
    return tr("text" if sequence == "source" and not spec.two_texts else sequence)


def read(spec: ModelSpec) -> str:
    """What a model reads: Text, Image, Sound."""
    return tr(READ[spec.modality])


def coarseness(level: Level) -> float:
    """Tokens per position, for the order of resolutions: of unequal segments more than of any."""
    return level.stride or (math.inf if level.parts == 1 else sys.float_info.max / level.parts)


def layer_name(spec: ModelSpec, layer: int) -> str:
    """What the model calls a layer that it does not number as hgviz does: encoder 3, decoder 2
    cross, layers.6; "" where both numbers are one."""
    spec_layer = spec.layers[layer]
    if not spec.two_texts:
        return spec_layer.own_name if len(spec.levels) == 1 else ""
    side = "decoder" if spec.levels[spec_layer.level].sequence == "target" else "encoder"
    number = next((part for part in spec_layer.name.split(".") if part.isdecimal()), "")
    side = f"{side} {{number}} cross" if spec_layer.role == "cross" else f"{side} {{number}}"
    return tr(side, number=number)


def ends(spec: ModelSpec, layer: int) -> str:
    """The levels of a layer, 1:2 or 1:1 → 1:2, or its name in a model that has but one or two
    texts; "" where there is nothing to say."""
    if len(spec.levels) == 1 or spec.two_texts:
        return layer_name(spec, layer)
    spec_layer = spec.layers[layer]
    names = [level(spec, number) for number in (spec_layer.key_level, spec_layer.level)]
    return names[0] if names[0] == names[1] else " → ".join(names)


def title_and_reason(words: str) -> tuple[str, str]:
    """What is wrong as a title, and the reason behind its colon as a sentence; "" without one."""
    title, _, reason = words.partition(": ")
    if not reason or len(title.split()) < 3:  # such as the name of a file
        return words.rstrip("."), ""
    is_word = reason.split()[0].isalpha()
    return title, reason[0].upper() + reason[1:] if is_word else reason


def counted(count: int, noun: str) -> str:
    """1 token, 136 positions, 32,768 tokens."""
    return tr(f"{{n:,}} {noun}" if count == 1 else f"{{n:,}} {noun}s", n=count)


def weight(value: float, digits: int = 2) -> str:
    """0.89; <0.01 for what is not quite nothing; 0 only where it is exactly that; a real minus."""
    if value == 0:
        return "0"
    least = 10.0**-digits
    if abs(value) < least:
        return f"<{least:.{digits}f}" if value > 0 else f"−<{least:.{digits}f}"
    return f"{value:.{digits}f}".replace("-", "−")


def with_sign(value: float, digits: int = 3) -> str:
    """+0.712, −0.281, 0."""
    return ("+" if value > 0 else "") + weight(value, digits)


def percent(number: str) -> str:
    """89 %: a number that is written already, with its sign."""
    return tr("{number} %", number=number)


def share(part: float) -> str:
    """89 %, 0.4 %, <0.1 %; 0 % and 100 % only where it is exactly that."""
    shown = 100 * part
    if 0 < shown < 0.1:
        return percent("<0.1")
    return percent(">99" if 99.5 <= shown < 100 else f"{shown:.{int(0 < shown < 1)}f}")


def layers(numbers: Sequence[int]) -> str:
    """layer 3, layers 0 and 1, layers 5 to 7, layers 2, 5 and 9."""
    if len(numbers) == 1:
        return tr("layer {number}", number=numbers[0])
    first, last = numbers[0], numbers[-1]
    if len(numbers) > 2 and list(numbers) == list(range(first, last + 1)):
        return tr("layers {first} to {last}", first=first, last=last)
    before = ", ".join(map(str, numbers[:-1]))
    return tr("layers {before} and {last}", before=before, last=last)


def measured(metric: str, value: float) -> str:
    """A metric as people read it: two decimals, a distance in whole tokens; a dash for none."""
    if value != value:
        return "–"
    if metric == "offset":
        return f"{value:+,.0f}".replace("-", "−") if value else "0"
    if metric in ("distance", "centre", "width"):
        near = abs(value) < 10
        return (f"{value:.1f}" if near else f"{value:,.0f}").replace("-", "−")
    if metric == "variance":
        return f"{value:.2g}"
    return weight(value)


def time_left(seconds: float | None, short: bool = False) -> str:
    """Such as "about 20 s left", short "20 s"; or nothing while nobody can know."""
    if seconds is None:
        return ""
    if seconds < 90:
        amount = tr("{n} s", n=max(1, round(seconds)))
    else:
        amount = tr("{n} min", n=round(seconds / 60))
    return amount if short else tr("about {time} left", time=amount)


# --- sentences ------------------------------------------------------------------------------------

SPACE = "·"
SIGNS = {" ": SPACE, "\n": "↵", "\r": "↵", "\t": "⇥", "\u00a0": "⍽", "\u3000": SPACE}
JOINER, LINE_ENDS = "\u200d", "\x85\u2028\u2029"
NULL = "null group"  # what is read of segments before any ends
LIMIT = 40  # characters of a text that stand in one sentence


def shown(text: str, limit: int = LIMIT) -> str:
    """A text with everything in it visible and nothing that could move other text, elided.

    Control and format characters (right-to-left marks among them) become signs or U+FFFD.
    """
    return "".join(_sign(char) for char in elided(text, limit))


def elided(text: str, limit: int) -> str:
    """The first characters of a text that is longer than a limit, and an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def marked_up(text: str) -> str:
    """Shown text for a label that reads HTML, isolated so that right-to-left text moves nothing."""
    return f"\u2068{html.escape(text)}\u2069"


def quoted(text: str) -> str:
    """“text” for a sentence, which it cannot turn around where it is read from right to left, not
    even as its first words."""
    is_right_to_left = any(unicodedata.bidirectional(char) in ("R", "AL") for char in text)
    return f"\u200e“\u2068{text}\u2069”" if is_right_to_left else f"“{text}”"


def word_spans(prompt: Prompt) -> Integers:
    """(words, 2): the tokens of every word, half-open; white space parts words, tokens it is in
    belong to the word they end in. A special token is a word of its own.
    """
    spans, text = prompt.spans, prompt.text
    if not len(spans):
        return np.zeros((0, 2), np.int64)
    solid = np.array([not char.isspace() for char in text] + [False])
    number = np.cumsum(solid & ~np.concatenate([[False], solid[:-1]]))
    places = np.where(solid, np.arange(len(solid)), len(text))
    following = np.minimum.accumulate(places[::-1])[::-1]  # the next character that is no space
    start, end = spans[:, 0], spans[:, 1]
    first = following[np.clip(start, 0, len(text))]
    of = np.where((start >= 0) & (first < end), number[first], 0)
    special = start < 0
    of = np.where(special, -1 - np.arange(len(spans)), of)
    edges = np.flatnonzero(np.diff(of)) + 1
    bounds = np.concatenate([[0], edges, [len(of)]])
    runs = np.stack([bounds[:-1], bounds[1:]], axis=1)
    return runs[of[runs[:, 0]] != 0]


def word_at(spans: Integers, token: int) -> tuple[int, int] | None:
    """The tokens of the word a token is in; None between words."""
    at = int(np.searchsorted(spans[:, 0], token, side="right")) - 1
    if at < 0 or token >= spans[at, 1]:
        return None
    return int(spans[at, 0]), int(spans[at, 1])


def glyph(prompt: Prompt, start: int, end: int) -> str:
    """What stands for tokens start..end-1, everything in it visible."""
    if end - start == 1:
        return name(prompt, start)
    return shown(prompt.words(start, end)) or "∅"


def name(prompt: Prompt, token: int) -> str:
    """A token as one sees it; the space in the name of a slot is none of the text."""
    if prompt.spans[token, 0] >= 0:
        return shown(prompt.label(token))
    return " ".join(shown(part) for part in prompt.pieces[token].split(" "))


def place(prompt: Prompt, spans: Integers, start: int, end: int) -> str:
    """Where tokens start..end-1 are: "in hourglass, position 60", "tokens 57 to 60"."""
    if end - start > 1:
        unit = tr(f"{prompt.unit}s")
        return tr("{unit} {first:,} to {last:,}", unit=unit, first=start, last=end - 1)
    position = tr("position {number:,}", number=start)
    return ", ".join(filter(None, (region(prompt, spans, start), position)))


def region(prompt: Prompt, spans: Integers, token: int) -> str:
    """The word a token is in or comes after, and that it is of the second text of a pair: "in
    hourglass", "after sea, second text"; nothing of a token that is the word itself."""
    relation, word = word_relation(prompt, spans, token)
    around = tr(f"{relation} {{word}}", word=word) if word else tr(relation)
    kinds = prompt.token_type_ids
    text = tr("second text") if kinds is not None and kinds[token] == 1 else ""
    return ", ".join(filter(None, (around, text)))


def word_relation(prompt: Prompt, spans: Integers, token: int) -> tuple[str, str]:
    """("in", word) or ("after", word) of a token, ("special", "") and ("", "") without a word."""
    if prompt.spans[token, 0] < 0:
        # beside a text; of slots, states and bare ids none is more special than another
        return ("special" if prompt.text and prompt.signal is None else ""), ""
    at = int(np.searchsorted(spans[:, 0], token, side="right")) - 1
    if at < 0:
        return "", ""
    start, end = spans[at].tolist()
    text = prompt.words(start, end).strip()
    label = prompt.label(token).strip()
    if token >= end or not any(char.isalnum() for char in label):
        before = prompt.words(start, min(token, end)).strip().rstrip(_PUNCTUATION)
        return ("after", shown(before)) if before else ("", "")
    core = text.strip(_PUNCTUATION)
    return ("", "") if core == label else ("in", shown(core))


_PUNCTUATION = ".,;:!?…\"'()[]{}«»“”‘’-–—"


def _sign(char: str) -> str:
    if char in SIGNS:
        return SIGNS[char]
    if char.isprintable() or char == JOINER:
        return char
    if char < " ":
        return chr(0x2400 + ord(char))
    if char == "\x7f":
        return "␡"
    return SPACE if char.isspace() and char not in LINE_ENDS else "\ufffd"


def named(off: HeadSet, layers: Iterable[Layer]) -> str:
    """Heads as `--off` takes them, a whole layer in one: "3.5,4.*"."""
    words: list[str] = []
    for layer in layers:
        gone = [head for head in layer.heads if HeadId(layer.index, head) in off]
        whole = len(gone) == len(layer.heads) > 1
        words += [f"{layer.index}.*"] if whole else [f"{layer.index}.{head}" for head in gone]
    return ",".join(words)


# --- verdict --------------------------------------------------------------------------------------

MOST = 4  # answers that are listed
COMPARED = 8  # tokens of a capture that a tokenizer has to read in the same way
BLANKS = {" ": "space", "\n": "newline", "\t": "tab"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The likeliest answers, with their shares, and what they answer; goal as ModelSpec's."""

    goal: str
    answers: tuple[tuple[str, float], ...] = ()

    def sentence(self) -> str:
        """Such as "positive 97 %"; "" where there is nothing to say."""
        return f"{self.answers[0][0]} {share(self.answers[0][1])}" if self.answers else ""

    def question(self, noun: str) -> str:
        """What the answers answer, before a list of them."""
        if self.goal == "classes":
            return tr("Prediction:")
        if self.goal == "tags":
            return tr("Label of this {unit}:", unit=tr(noun))
        if self.goal == "masked":
            return tr("Prediction for this {unit}:", unit=tr(noun))
        return tr("Next-{unit} prediction:", unit=tr(noun))


def of_text(capture: Capture) -> Verdict:
    """The classes of a classifier, the likeliest first; nothing for other models."""
    goal = capture.spec.goal
    if goal != "classes" or capture.logits is None or np.ndim(capture.logits) != 1:
        return Verdict(goal)
    labels = capture.spec.labels
    odds = shares(capture.logits)
    best = np.argsort(-odds, kind="stable")[:MOST]
    named = (labels[at] if at < len(labels) else tr("class {number}", number=at) for at in best)
    return Verdict(goal, tuple(zip(named, map(float, odds[best]), strict=True)))


def of_token(capture: Capture, token: int, name_of: Callable[[int], str]) -> Verdict:
    """What is expected after a token, or in its place; of a classifier, its classes."""
    goal, logits = capture.spec.goal, capture.logits
    if goal == "classes":
        return of_text(capture)
    if goal in ("states", "ends") or logits is None or np.ndim(logits) != 2 or token >= len(logits):
        return Verdict(goal)
    odds = shares(logits[token])
    best = np.argsort(-odds, kind="stable")[:MOST]
    labels = capture.spec.labels
    if goal == "tags" and len(labels) == len(odds):
        name_of = labels.__getitem__
    return Verdict(goal, tuple((name_of(int(answer)), float(odds[answer])) for answer in best))


def shares(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    """Softmax of some logits, in float64."""
    scores = np.asarray(logits, np.float64)
    odds = np.exp(scores - scores.max())
    found: NDArray[np.float64] = odds / odds.sum()
    return found


def namer(capture: Capture, model: Model | None = None) -> Callable[[int], str]:
    """How a token of the vocabulary is called: as the text has it, as a byte, or as the tokenizer
    of its model has it."""
    prompts = [prompt for prompt in (capture.prompt, capture.target) if prompt is not None]
    names = {int(i): p.label(n) for p in prompts if p.states is None for n, i in enumerate(p.ids)}
    by_byte = capture.spec.vocabulary <= 256 and _of_bytes(capture.main)

    def name_of(token: int) -> str:
        text = names.get(token, chr(token) if by_byte and token < 128 else "")
        text = text or ("" if by_byte else spoken(capture, model, token))
        if text in BLANKS:
            return tr(BLANKS[text])
        byte = tr("byte {number}", number=token) if by_byte else f"#{token}"
        return shown(text, 12) or byte

    return name_of


def spoken(capture: Capture, model: Model | None, token: int) -> str:
    """What a token reads by the tokenizer of a model, "" without one that reads as the capture
    does."""
    ids = capture.main.ids[:COMPARED]
    if model is None or model.tokenizer.decode(ids).pieces != capture.main.pieces[:COMPARED]:
        return ""
    text = tasks.token_name(model, token)
    return "" if text == str(token) else text


def _of_bytes(prompt: Prompt) -> bool:
    """Whether the ids of a text are its bytes: another small vocabulary counts otherwise."""
    ascii_ids = ((n, int(byte)) for n, byte in enumerate(prompt.ids) if byte < 128)
    return prompt.has_characters and all(prompt.label(n) == chr(byte) for n, byte in ascii_ids)


# --- metrics --------------------------------------------------------------------------------------


class Citation(NamedTuple):
    """A formula, and the paper or page that it is from."""

    formula: str
    source: str


def metric_name(metric: str, unit: str) -> str:
    """What a metric of METRICS is called, in a text of such units."""
    return tr(METRICS[metric].words, unit=tr(unit))


def explained(metric: str, unit: str) -> str:
    """What a metric means, its formula, and where it comes from: a line each."""
    row = METRICS[metric]
    meaning = tr(row.description, unit=tr(unit))
    return explanation(meaning, Citation(row.formula, row.source))


def explanation(meaning: str, formula: Citation | str, source: str = "") -> str:
    """A number in three lines."""
    cited = formula if isinstance(formula, Citation) else Citation(formula, source)
    return "\n".join([meaning, cited.formula, tr("Source: {source}", source=cited.source)])


# --- explanations ---------------------------------------------------------------------------------

# Of every score of METHODS, which has the source: what it says, its formula.
SCORES = {
    "signed": (
        "Estimated loss increase with the head off, from its gradient; on texts like the training "
        "data gradients cancel, and the rest is mostly noise",
        "−Σ G / n,  G = ∂L/∂x,  x: 1 on, 0 off"),
    "michel": (
        "How much the loss of each text depends on the head, in either direction: absolute "
        "gradients do not cancel",
        "Σ |G| / n,  G = ∂L/∂x,  x: 1 on, 0 off"),
    "michel-token": (
        "Absolute gradient times head output, per token (per text in the last layer of a "
        "classifier)",
        "Σ |c · ∂L/∂c| / n,  c: head output"),
    "bertology": (
        "How much the loss of batches of 32 texts depends on the head; the number depends on the "
        "batch size",
        "Σ |Σ G|,  the inner sum over a batch"),
    "fisher": (
        "Mean squared gradient of the loss: an estimate of its curvature",
        "Σ G² / N,  N texts"),
    "loo": ("Measured loss increase with only this head off (leave-one-out)", "Σ (L₋ₕ − L) / n"),
    "all-but-one": (
        "Measured loss increase with only this head on in its layer; low for an important head, "
        "so the colours reverse its sign",
        "Σ (Lₕ − L) / n,  Lₕ: alone in its layer"),
    "shapley": (
        "Mean change of the loss when the head is added, over random orders (Shapley value); low "
        "for an important head, so the colours reverse its sign",
        "φₕ = mean (L(S ∪ h) − L(S)),  Σ φₕ = L(all) − L(none)"),
    "gates": (
        "Gate of the head after training with a penalty on open gates, 0 to 1",
        "clip(1.2 σ(ln α) − 0.1, 0, 1)"),
}  # fmt: skip

# Of every other number of the page: what it says, its formula, its source.
NUMBER_WORDS = {
    "right": (
        "Accuracy with these heads off, with its 95 % interval (Agresti and Coull)",
        "p̃ ± z √(p̃ (1 − p̃) / ñ),  ñ = n + z²,  p̃ = (k + z²/2) / ñ,  z = 1.96",
        "Agresti, Coull 1998; statistics.md"),
    "loss_per_token": (
        "Mean loss per token with these heads off, with its 95 % interval over windows",
        "−(1/n) Σ ln p(token | previous tokens)", "Cochran 1977, 2.11; statistics.md"),
    "perplexity": (
        "Perplexity: exp of the loss per token and of its 95 % interval",
        "exp(−(1/n) Σ ln p(token | previous tokens))", "Jelinek et al. 1977; statistics.md"),
    "early": (
        "The interval holds for a number of texts fixed in advance: it is not corrected for early "
        "stopping",
        "P(p in the interval) ≈ 95 %", "statistics.md"),
    "whole": ("Accuracy of the full model on the same examples", "k / n", "statistics.md"),
    "difference": (
        "Change of the accuracy, in points, with Bonett and Price's interval for pairs; not "
        "significant where it includes 0",
        "(c − b) / n;  d ± t √((b′ + c′) − (b′ − c′)² / n′) / n′,  d = (c′ − b′) / n′,  "
        "b′ = b + 1, c′ = c + 1, n′ = n + 2", "Bonett, Price 2012; statistics.md"),
    "changed": (
        "Predictions newly wrong (b) and newly right (c); p: McNemar's exact test",
        "p = min(1, 2 P(X ≤ min(b, c))),  X ~ B(b + c, ½)", "McNemar 1947, exact; statistics.md"),
    "saved": (
        "Parameters removed with the heads: queries and output of each head, keys and values of "
        "key groups whose heads are all off",
        "Σ heads |W_Q, W_O| + Σ groups |W_K, W_V|", "sixteen-heads.md"),
    "more": (
        "Bits of loss added at this position with the heads off; higher is worse",
        "(L₋ − L) / ln 2", "statistics.md"),
    "loss": (
        "Loss in bits, of the full model and with the heads off",
        "−log₂ p(target)", "Shannon 1948; statistics.md"),
    "change": (
        "Change of the slice with the heads off, in points of accuracy or bits of loss",
        "(c − b) / n,  or the mean of (L₋ − L) / ln 2", "statistics.md"),
    "ends": (
        "95 % interval of that change; not significant where it includes 0. Not adjusted for the "
        "number of slices",
        "Bonett, Price 2012 (points); Cochran 1977, 2.11 (bits)", "statistics.md"),
    "allowed": (
        "k*: the largest number of heads off up to which every measured score is at most 1 point "
        "below the full model; with 95 % confidence: the same for the lower end of the interval",
        "k* = max {k : value(j) ≥ value(0) − 0.01 for all j ≤ k}",
        "sixteen-heads.md; statistics.md"),
    "heads": ("Number of heads switched off", "k", "sixteen-heads.md"),
    "parameters": (
        "Share of the parameters of all heads removed with the heads that are off",
        "Σ heads |W_Q, W_O| + Σ groups |W_K, W_V|", "statistics.md"),
    "flops": (
        "Share of the FLOPs of all heads removed with the heads that are off, for a text of mean "
        "length",
        "Σ heads (2 |W_Q, W_O| Tq + 4 pairs dₕ) + Σ groups 2 |W_K, W_V| Tk", "statistics.md"),
}  # fmt: skip


def method_explained(method: str) -> str:
    """A score of METHODS in words, with its formula and its source."""
    row = METHODS[method]
    meaning, formula = SCORES.get(method, (row.label, row.formula))
    return explanation(tr(meaning), tr(formula), tr(row.source))


def explained_all(arrays: tuple[str, ...]) -> str:
    """Every score that some arrays of a study give, under its name."""
    methods = (method for method in METHODS.values() if method.needs in arrays)
    return "\n\n".join(f"{tr(method.label)}\n{method_explained(method.name)}" for method in methods)


def term_explained(term: str) -> str:
    """A number of the Prune page: its meaning, formula and source."""
    meaning, formula, source = NUMBER_WORDS[term]
    return explanation(tr(meaning), tr(formula), tr(source))


# --- scores ---------------------------------------------------------------------------------------


def number_words(metric: str, value: float) -> str:
    """A loss in nats as 3.412, a share in per cent as 57.8."""
    return f"{value:.3f}" if metric == "loss" else f"{100 * value:.1f}"


def unit_words(metric: str) -> str:
    """nats, %."""
    return tr("nats") if metric == "loss" else "%"


def score_words(score: MetricEstimate) -> str:
    """57.8 % (57.1 to 58.5); 3.412 nats (3.380 to 3.444)."""
    value, low, high = (
        number_words(score.metric, number) for number in (score.value, score.low, score.high)
    )
    words = f"{value} {unit_words(score.metric)}"
    if not math.isfinite(score.high):  # of one window
        return words
    return tr("{score} ({low} to {high})", score=words, low=low, high=high)
