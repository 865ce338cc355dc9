"""What it costs to try heads: each off by itself, slopes of all gates, a click.

Against one whole masked pass per head in the same process, and captum's FeatureAblation. Both sides
take turns head by head; time by the clock, with as many threads as torch takes. Random weights but
for the sample. Names of models to measure some only: 6x8 12x12 hourglass captum live.
"""

import statistics
import sys
import tempfile
import time
from copy import deepcopy

import torch
import torch.nn.functional as F
from table import heading, line

from hgviz.core import HeadId, listening
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.models.config import parse_config
from hgviz.models.layers import Tokens
from hgviz.models.run import Run
from hgviz.models.trials import HeadAblation

BATCH, SENTENCE = (4, 128), (1, 24)  # texts, tokens
ROUNDS = 5
LETTERS = 1024


def main():
    """The parts asked for, or all."""
    asked = sys.argv[1:]
    for name, part in PARTS.items():
        if not asked or name in asked:
            part()


def encoder(layers, heads, width):
    """A BERT-like classifier of random weights."""
    torch.manual_seed(0)
    return parse_config({
        "family": "bert", "form": "encoder", "vocab_size": 1000, "d_model": width,
        "n_heads": heads, "d_ff": 4 * width, "n_layers": layers, "max_positions": 256,
        "goal": "classes", "labels": ["no", "yes"],
    }).build().eval().requires_grad_(False)  # fmt: skip


def small():
    """6 layers of 8 heads."""
    one_by_one("6 x 8 heads", encoder(6, 8, 256))


def large():
    """12 layers of 12 heads, the size of BERT base."""
    one_by_one("12 x 12 heads", encoder(12, 12, 768))


def one_by_one(name, module):
    """Leave-one-out of all heads of a classifier, and the slopes of all gates."""
    for size, words, limit in (
        (BATCH, "4 x 128 tokens", "at least 2.5"),
        (SENTENCE, "one sentence of 24", "at least 4"),
    ):
        heading(f"{name}, {words}")
        tokens = text(*size, 1000)
        line("masked passes / leave-one-out", *compared(module, tokens, limit))
        line("slopes of all gates / a pass", slopes(module, tokens), "2.4")


def llama():
    """A Llama of 8 layers of 8 heads in 2 groups of keys, which runs through transformers.

    Of blocks alone whole passes take 8 x 8 / (1 + ... + 8) = 1.78 times as long; what goes beyond
    it comes from variants side by side, which large batches gain little by.
    """
    name = "a Llama of 8 x 8 heads"
    with tempfile.TemporaryDirectory() as folder:
        module = open_model(random_llama(folder)).module
    for size, words, limit in (
        (BATCH, "4 x 128 tokens", ""),
        ((1, 128), "a text of 128", "at least 2.0"),
        (SENTENCE, "one sentence of 24", "at least 2.0"),
    ):
        heading(f"{name}, {words}")
        line("masked passes / leave-one-out", *compared(module, text(*size, 1000), limit))


def random_llama(folder):
    """A folder as transformers writes it, of random weights."""
    import transformers

    torch.manual_seed(0)
    sizes = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=256, num_hidden_layers=8, num_attention_heads=8,
        num_key_value_heads=2, intermediate_size=688, max_position_embeddings=256,
    )  # fmt: skip
    transformers.LlamaForCausalLM(sizes).save_pretrained(folder)
    return folder


def hourglass():
    """The bundled sample, where every position is read out."""
    module = open_model(resource("sample/hourglass")).module
    heading(f"the sample Hourglass, {LETTERS:,} letters")
    tokens = text(1, LETTERS, 256)
    line("masked passes / leave-one-out", *compared(module, tokens, "at least 1.5"))
    line("the same, multiplications alone (its limit)", f"{work(module, LETTERS):.2f}")
    line("logits of a pass, from double precision", f"{rounding(module, tokens):.1e}")
    line("slopes of all gates / a pass", slopes(module, tokens), "2.4")


def text(texts, tokens, vocabulary):
    """Random ids."""
    return Tokens(torch.randint(0, vocabulary, (texts, tokens), generator=torch.manual_seed(1)))


def compared(module, tokens, limit):
    """Both ways for every head in turn; also says how far apart they are."""
    variants = HeadAblation(module)
    for _ in variants.ablate_each(variants.baseline(tokens)[0]):  # what is loaded once
        break
    start = time.perf_counter()
    whole, logits = variants.baseline(tokens)
    mine, naive, apart, changed = time.perf_counter() - start, 0.0, 0.0, 0
    steps = variants.ablate_each(whole)
    while True:
        start = time.perf_counter()
        found = next(steps, None)
        mine += time.perf_counter() - start
        if found is None:
            break
        for head, one in zip(*found, strict=True):
            start = time.perf_counter()
            expected = masked(module, tokens, head)
            naive += time.perf_counter() - start
            apart = max(apart, float((one - expected).abs().max()))
            changed += int((one.argmax(-1) != expected.argmax(-1)).sum())
    line("largest difference of logits", f"{apart:.1e}", "1e-5")
    line("predictions that differ", f"{changed}", "0")
    return f"{naive / mine:.2f}", limit


@torch.inference_mode()
def masked(module, tokens, head):
    """A whole pass without one head."""
    return module(tokens, Run(frozenset({head})))


def rounding(module, tokens):
    """How far off single precision itself puts logits, beside which a difference is to be seen."""
    head, exact = HeadId(0, 0), deepcopy(module).double()
    return float((masked(module, tokens, head) - masked(exact, tokens, head)).abs().max())


def slopes(module, tokens):
    """One pass and its way back over a plain pass."""
    variants = HeadAblation(module)
    ratios = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        variants.baseline(tokens)
        middle = time.perf_counter()
        variants.gate_gradients(tokens, losses)
        ratios.append((time.perf_counter() - middle) / (middle - start))
    return f"{statistics.median(ratios[1:]):.2f}"


def losses(logits):
    """(B,): the surprise of class or letter 1 everywhere."""
    flat = logits.flatten(0, -2)
    wanted = torch.ones(len(flat), dtype=torch.long)
    return F.cross_entropy(flat, wanted, reduction="none").unflatten(0, (len(logits), -1)).sum(1)


def work(module, tokens):
    """How many times fewer multiplications leave-one-out does than whole passes, at best.

    A layer of a level with n positions takes 12 d^2 n + 2 n^2 d, of which a variant spares what
    lies before its own feed-forward (8 d^2 n) and of that the first half, but for a product as
    narrow as a head; half a feed-forward for each text and a product of d rows are made for all.
    """
    config = module.config
    width, parts = config.d_model, []
    for layer in config.layers:
        n = -(-tokens // (config.levels[layer.level].stride or 1))
        m = -(-tokens // (config.levels[layer.key_level].stride or 1))
        attending = 2 * width**2 * (n + m) + 2 * n * m * width
        parts.append((len(layer.heads), attending, 4 * width**2 * n))
    read = tokens * width * config.vocab_size
    whole = sum(attending + 2 * half for _, attending, half in parts) + read
    mine, after = float(whole), read
    for heads, attending, half in reversed(parts):
        mine += half + 4 * width**3 + heads * (half + half * config.d_head / width + after)
        after += attending + 2 * half
    return sum(heads for heads, _, _ in parts) * whole / mine


def captum():
    """captum's FeatureAblation over a mask of heads, each a whole masked pass."""
    from captum.attr import FeatureAblation

    module = encoder(6, 8, 256)
    for size, words in ((BATCH, "4 x 128 tokens"), (SENTENCE, "one sentence of 24")):
        heading(f"captum, 6 x 8 heads, {words}")
        ratio = ablated(FeatureAblation, module, text(*size, 1000))
        line("FeatureAblation / leave-one-out", f"{ratio:.2f}", "at least 3")


def ablated(method, module, tokens):
    """How many times longer captum's method takes."""
    variants, ratios = HeadAblation(module), []
    heads = variants.heads

    def forward(mask):
        off = {head for head, gate in zip(heads, mask[0].tolist(), strict=True) if not gate}
        with torch.inference_mode():
            return losses(module(tokens, Run(frozenset(off))))[None]

    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in variants.ablate_each(variants.baseline(tokens)[0]):
            pass
        middle = time.perf_counter()
        method(forward).attribute(torch.ones(1, len(heads)))
        ratios.append((time.perf_counter() - middle) / (middle - start))
    return statistics.median(ratios)


def live():
    """A click on a head on the Prune page: the first score and the last."""
    from hgviz import tasks
    from hgviz.gui import trials as gui_trials

    for sample in ("softmax", "hourglass"):
        model = open_model(resource(f"sample/{sample}"))
        data = str(resource("sample/reviews.tsv"))
        trials = gui_trials.prepare(model, "", "cpu", data)
        heading(f"a click, the sample {sample}, {len(trials.examples):,} examples")
        gui_trials.evaluate(trials, frozenset())  # what is kept of the whole model
        first, last = [], []
        for head in trials.heads[:: max(1, len(trials.heads) // 8)]:
            start = time.perf_counter()
            tasks.try_heads(trials, frozenset(trials.heads))  # nothing to begin from
            whole = time.perf_counter() - start
            start = time.perf_counter()
            shown = []
            with listening(lambda step, shown=shown: shown.append(time.perf_counter())):
                gui_trials.evaluate(trials, frozenset({HeadId(*head)}))
            first.append((shown[0] - start) / whole)
            last.append((time.perf_counter() - start) / whole)
        line("first score / a full evaluation, worst head", f"{max(first):.3f}", "0.05")
        line("the same, median", f"{statistics.median(first):.3f}", "0.05")
        line("last score / a full evaluation, worst head", f"{max(last):.2f}", "1.1")


PARTS = {
    "6x8": small, "hourglass": hourglass, "llama": llama, "captum": captum, "live": live,
    "12x12": large,
}  # fmt: skip

if __name__ == "__main__":
    main()
