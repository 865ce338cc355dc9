"""What figures are drawn of: captures of many shapes and scripts, studies, answers, and panels."""

from dataclasses import replace
from functools import cache, partial

import numpy as np

from hgviz import tasks
from hgviz.core import (
    Capture,
    Display,
    HeadId,
    Level,
    Prompt,
    Selection,
    readonly,
    slot_prompt,
)
from hgviz.figures import FIGURES, CaptureFacts, Panel, Spec, output
from hgviz.maps import DenseMap
from hgviz.study import PruningCurve
from hgviz.tasks.attribution import Attribution, KeyScores, Question, attribution_panel
from tests.analysis.planting import even_rows, plant, planted, translated
from tests.making import level_spans, make_capture, make_image_capture
from tests.studying import make_study, make_sweep

SEA = "The hourglass was used at sea. When the sand of the hourglass had run down, the bell rang."
HOSTILE = (
    "$x^2$ {}\\input{/etc/passwd} <b>&amp;</b> %s\n\t\x00\x1b\u202eevil\u202c \u200b\ufeff "
    "모래시계 مرحبا שלום 👩\u200d👩\u200d👧 🏳️ é e\u0301 नमस्ते \U0001f9ff\U000e0041 €"
)

# --- captures -------------------------------------------------------------------------------------


def plain(
    words: list[str], layers: int = 3, heads: int = 4, special: bool = True, seed: int = 0
) -> Capture:
    """A one-level bidirectional model on word pieces, [CLS] and [SEP] around them."""
    text, spans, pieces = "", [], []
    for word in words:
        spans.append((len(text), len(text) + len(word)))
        pieces.append(word)
        text += word + ("" if word.endswith("-") else " ")
    if special:
        spans, pieces = [(-1, -1), *spans, (-1, -1)], ["[CLS]", *pieces, "[SEP]"]
    count, random = len(spans), np.random.default_rng(seed)
    prompt = Prompt(text, readonly(np.arange(count)), tuple(pieces), readonly(np.array(spans)))
    maps = [random.dirichlet(np.full(count, 0.3), (heads, count)) for _ in range(layers)]
    return plant(prompt, maps, causal=False)


def ragged() -> Capture:
    """Heads 1 and 3 of the middle layer are left, none of the last."""
    whole = plain(["one", "two", "three", "four"])
    left = ((0, 1, 2, 3), (1, 3), ())
    layers = tuple(
        replace(layer, heads=heads, activations=("softmax",) * len(heads))
        for layer, heads in zip(whole.spec.layers, left, strict=True)
    )
    maps = tuple(DenseMap(whole.maps[n].array[list(heads)], heads) for n, heads in enumerate(left))
    return replace(whole, spec=replace(whole.spec, layers=layers), maps=maps)


def states(count: int) -> Prompt:
    """What stands for an encoder's states, the last of them padding."""
    return replace(
        slot_prompt(count), pieces=tuple(f"state {n}" for n in range(count)),
        states=np.zeros((count, 8), np.float32), attention_mask=np.arange(count) < count - 1,
    )  # fmt: skip


def projected(words: list[str], count: int = 5) -> Capture:
    """A model whose keys are the rows of a projected sequence."""
    base = plain(words, layers=2)
    layers = tuple(replace(layer, key_level=1) for layer in base.spec.layers)
    levels = (Level(0), Level(1, sequence="slots"))
    shape = 4, len(base.prompt), count
    maps = [planted(even_rows(np.random.default_rng(at).random(shape) ** 3)) for at in range(2)]
    spec = replace(base.spec, levels=levels, layers=layers)
    spans = base.spans[0], level_spans(count, (1,), causal=False)[0]
    return replace(base, spec=spec, maps=tuple(maps), spans=spans)


def mixed(words: list[str]) -> Capture:
    """In each layer a head of softmax, and three whose weights can be negative."""
    base = plain(words, layers=2)
    kinds = ("softmax", "ymish", "tanh", "selu")
    layers = tuple(replace(layer, activations=kinds) for layer in base.spec.layers)
    random, count, maps = np.random.default_rng(2), len(base.prompt), []
    for dense in base.maps:
        weights = random.normal(size=(4, count, count)) * [[[0]], [[1]], [[1]], [[3]]]
        weights[0] = dense.array[0]
        maps.append(DenseMap(weights.astype("f4"), (0, 1, 2, 3), signed=True))
    return replace(base, spec=replace(base.spec, layers=layers), maps=tuple(maps))


TEXTS = {
    "one letter": "a",
    "sea": SEA,
    "hostile": HOSTILE,
    "no spaces": "x" * 90,
    "Hangul": "모래시계는 바다에서 쓰였다.",
    "Arabic": "كانت الساعة الرملية تستخدم في البحر",
    "lines": "a\n\n\nb\n" * 12,
}
KOREAN = ["이", "영화", "는", "정말", "재미있었", "다"]


def _of_two(first, second, special=(True, True), encoder=True):
    """Of two texts, made when asked for; a number: so many states."""
    prompts = [
        states(words) if isinstance(words, int) else plain(words, special=has).prompt
        for words, has in zip((first, second), special, strict=True)
    ]
    return translated(*prompts, encoder=int(encoder), heads=3)


MAKERS = {
    **{name: partial(make_capture, text) for name, text in TEXTS.items()},
    "signed": lambda: make_capture(SEA, signed=True),
    "windowed": lambda: make_capture(SEA, windowed=True),
    "relative": lambda: make_capture(SEA[:40], relative=True),
    "deep": lambda: make_capture(SEA, strides=(1, 2, 4, 8, 16), heads=2),
    "words": lambda: plain(SEA.split()),
    "long names": lambda: plain(["Donaudampfschiff" * 20, "b", "W" * 300, "c"]),
    "many layers": lambda: plain(["a", "b"], layers=24, heads=16),
    "ragged": ragged,
    "two texts": lambda: _of_two(KOREAN, SEA.split()),
    "many and one": lambda: _of_two(["a"], SEA.split(), (False, True)),
    "states": lambda: _of_two(9, KOREAN, encoder=False),
    "slots": lambda: projected(SEA.split()),
    "mixed": lambda: mixed(["internationalisation", "##s", "of", "b", "재미있었습니다"]),
    "one signed": lambda: mixed([]),
}


@cache
def capture_of(name: str) -> Capture:
    """One of every kind there is, made when a test first asks for it, not when tests are listed."""
    return MAKERS[name]()


# --- studies --------------------------------------------------------------------------------------

METHODS = ("signed", "michel", "loo", "fisher", "shapley")


def _curve(study, method, seed=0):
    """A curve that falls from 90 % to 50 %, sooner for some seeds."""
    order = tuple(np.random.default_rng(seed).permutation(np.array(study.heads)).tolist())
    heads = tuple(HeadId(*head) for head in order)
    removed = np.arange(len(heads) + 1)
    values = 0.9 - 0.4 * (removed / len(heads)) ** (1 + seed % 4)
    values = values.astype(np.float32)
    change = values - values[0]
    rows = np.arange(0, len(study), 2)
    return PruningCurve(
        method, heads, removed, values, values - 0.05, values + 0.05, 1 - values, change,
        change - 0.06, change + 0.06, rows, seed,
    )  # fmt: skip


def study_of(methods=METHODS, seed=0, randoms=20, **more):
    """A study with a curve of each method, and random ones."""
    study = make_study(seed, **more)
    curves = [_curve(study, name, number) for number, name in enumerate(methods)]
    curves += [_curve(study, "random", number + 100) for number in range(randoms)]
    return replace(study, curves=tuple(curves))


STUDIES = {
    "one curve": lambda: ("curve", [study_of(("loo",))], {}),
    "three together": lambda: ("curve", [study_of(METHODS[:3])], {}),
    "a panel each": lambda: ("curve", [study_of()], {}),
    "three studies": lambda: ("curve", [study_of(seed=seed) for seed in range(3)], {}),
    "a language model": lambda: ("curve", [study_of(("loo",), asked="next")], {}),
    "scores": lambda: ("scores", [study_of()], {"methods": ["shapley"]}),
}  # fmt: skip


# --- answers --------------------------------------------------------------------------------------

WAYS = ("tokens", "heads", "layers", "attention")


def answer_of(capture, *, classes=False, position=None):
    """What an attribution of a capture could be."""
    random = np.random.default_rng(0)
    at = len(capture.main) - 1 if position is None else position
    question = Question(0, None) if classes else Question(65, at, 64)
    layers = {row.index: float(random.normal()) for row in capture.spec.layers if row.heads}
    source = random.normal(size=len(capture.prompt)) if capture.target is not None else None
    return Attribution(
        question, capture.prompt, capture.target, capture.off, 2.5, -1.0,
        random.normal(size=len(capture.main)), source,
        {head: float(random.normal()) for head in capture.spec.heads}, layers,
    )  # fmt: skip


def keys_of(capture):
    """What the keys of the first head could add to an answer."""
    layer = next(row for row in capture.spec.layers if row.heads)
    places = np.flatnonzero(capture.key_spans(layer.index)[:, 0] >= 0)
    values = np.random.default_rng(1).normal(size=(3, len(places)))
    head = HeadId(layer.index, layer.heads[0])
    return KeyScores(head, 0, places, np.abs(values[0]), values[1], values[2])


def answer_panel(capture, way, width="acl", found=None, **more):
    """A figure of an answer."""
    spec = Spec("attribution", display=Display(scale="linear"), width=width)
    return attribution_panel(
        spec, [(found or answer_of(capture), "e")], capture, way, given=("--text", "a"),
        keys=keys_of(capture) if way == "attention" else None, model="sample/hourglass", **more,
    )  # fmt: skip


# --- panels ---------------------------------------------------------------------------------------

KINDS = tuple(FIGURES)
OF_CAPTURE = ("map", "links", "wall", "levels")  # kinds that are drawn of a capture as it is


@cache
def panel_of(kind: str, width: str = "acl", text: str = SEA[:40]) -> Panel:
    """A figure of this kind, of captures of a text or of studies."""
    of = FIGURES[kind].of
    if kind == "image":
        return tasks.panel(Spec(kind, Selection(1, 2, 7), width=width), make_image_capture())
    first, second = make_capture(text), make_capture(text, seed=1, signed=True)
    chosen = Selection(12, 2, 17, 9) if of in ("capture", "pair") else Selection()
    sources = {
        "capture": lambda: first,
        "pair": lambda: [first, second],
        "captures": lambda: [first, second],
        "study": lambda: study_of(("loo", "michel"), randoms=4),
        "studies": lambda: [study_of(("loo", "michel"), randoms=4)],
        "sweep": make_sweep,
    }[of]()
    return tasks.panel(Spec(kind, chosen, width=width), sources)


def draw(spec, capture, path):
    """Write a figure of a capture of which nothing is known but itself."""
    return output.draw(Panel(spec, CaptureFacts(capture), (capture.path,), capture.item), path)


def selections(capture):
    """What is chosen: the plainest, then everything that can be marked, near the end and before."""
    layers = [layer for layer in capture.spec.layers if layer.heads]

    def marked(layer):
        rows, keys = len(capture.query_prompt(layer.index)), len(capture.key_prompt(layer.index))
        return Selection(layer.index, layer.heads[-1], rows - 1, min(rows, keys) // 2)

    middle = marked(layers[len(layers) // 2])
    return (
        Selection(layers[0].index, layers[0].heads[0]),
        marked(layers[-1]),
        replace(middle, query=middle.query // 2),
    )
