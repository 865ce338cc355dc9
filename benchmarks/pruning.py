"""What it costs to switch heads off: each head alone, and the gradients of all gates.

Parts: classifiers, hourglass, llama. Leave-one-out takes turns with one whole masked pass per head;
times are by the clock.
"""

import tempfile

import torch
import torch.nn.functional as F
from table import heading, in_turn, line, run_parts

from hgviz.files import resource
from hgviz.models import open_model
from hgviz.models.config import parse_config
from hgviz.models.layers import Tokens
from hgviz.models.run import Run
from hgviz.models.trials import HeadAblation

BATCH, TEXT, SENTENCE = (4, 128), (1, 128), (1, 24)  # texts, tokens
ROUNDS = 3


def encoder(layers, heads, width):
    """The configuration of a BERT-like classifier."""
    torch.manual_seed(0)
    return parse_config({
        "family": "bert", "form": "encoder", "vocab_size": 1000, "d_model": width,
        "n_heads": heads, "d_ff": 4 * width, "n_layers": layers, "max_positions": 256,
        "goal": "classes", "labels": ["no", "yes"],
    })  # fmt: skip


def random_llama(folder):
    """A Llama of transformers with 8 layers of 8 heads in 2 key groups."""
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=256, num_hidden_layers=8, num_attention_heads=8,
        num_key_value_heads=2, intermediate_size=688, max_position_embeddings=256,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def random_text(shape, vocabulary=1000):
    """Random token ids."""
    return Tokens(torch.randint(0, vocabulary, shape, generator=torch.manual_seed(1)))


def classifiers():
    """BERT-like classifiers with random weights; the larger has the size of BERT-base."""
    for layers, heads, width in ((6, 8, 256), (12, 12, 768)):
        module = encoder(layers, heads, width).build().eval().requires_grad_(False)
        for shape, limit in ((BATCH, "at least 2.5"), (SENTENCE, "at least 4")):
            heading(f"{layers} x {heads} heads, {shape[0]} x {shape[1]} tokens")
            compare(module, random_text(shape), limit)


def hourglass(letters=1024):
    """The bundled Hourglass, which predicts at every position."""
    module = open_model(resource("sample/hourglass")).module
    heading(f"the bundled Hourglass, {letters:,} letters")
    compare(module, random_text((1, letters), 256), "at least 1.5")


def llama():
    """A Llama; whole blocks alone allow 8 x 8 / (1 + ... + 8) = 1.78."""
    with tempfile.TemporaryDirectory() as folder:
        module = open_model(random_llama(folder)).module
    for shape, limit in ((BATCH, ""), (TEXT, "at least 2.0"), (SENTENCE, "at least 2.0")):
        heading(f"a Llama of 8 x 8 heads, {shape[0]} x {shape[1]} tokens")
        compare(module, random_text(shape), limit, gates=False)


def compare(module, tokens, limit, gates=True):
    """Time of leave-one-out beside masked passes, and of the gradients of all gates."""
    seconds = in_turn(ways(module, tokens), ROUNDS)
    ratio = seconds["masked passes"] / seconds["leave-one-out"]
    line("masked passes / leave-one-out", f"{ratio:.2f}", limit)
    if gates:
        ablation = HeadAblation(module)
        works = {"pass": lambda: ablation.baseline(tokens),
                 "gates": lambda: ablation.gate_gradients(tokens, losses)}  # fmt: skip
        seconds = in_turn(works, ROUNDS)
        line("gradients of all gates / a pass", f"{seconds['gates'] / seconds['pass']:.2f}", "2.4")


def ways(module, tokens):
    """Functions that ablate all heads one by one, in two ways."""
    ablation = HeadAblation(module)

    def leave_one_out():
        for _ in ablation.ablate_each(ablation.baseline(tokens)[0]):
            pass

    @torch.inference_mode()
    def masked_passes():
        for head in ablation.heads:
            module(tokens, Run(frozenset({head})))

    return {"leave-one-out": leave_one_out, "masked passes": masked_passes}


def losses(logits):
    """(B,) The cross entropy of class or letter 1 everywhere."""
    flat = logits.flatten(0, -2)
    wanted = torch.ones(len(flat), dtype=torch.long, device=flat.device)
    return F.cross_entropy(flat, wanted, reduction="none").unflatten(0, (len(logits), -1)).sum(1)


if __name__ == "__main__":
    run_parts(classifiers=classifiers, hourglass=hourglass, llama=llama)
