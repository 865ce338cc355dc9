"""A token more, with the keys and values of those before it, beside a pass over the whole text.

A GPT-2 of 12 layers of 12 heads, width 768, an Hourglass of the same width, and a Llama of the
package transformers of 8 layers, width 512, with random weights, float32, one thread: processor
time taken in turn, medians of ROUNDS. A token also keeps what a capture needs of its rows.
"""

import statistics
import tempfile
import time

import numpy as np
import torch
from table import line

from hgviz.models import open_model
from hgviz.models.formats.checkpoint import build
from hgviz.models.formats.own import parse_config
from hgviz.models.generation import Writing, chosen
from hgviz.models.model import Model
from hgviz.models.texts.text import Bare

LENGTHS, ROUNDS, TOKENS = (512, 2048), 3, 8
BEGIN, WRITTEN = 32, 200  # of the text that a Llama writes
SHARED = {"vocab_size": 1000, "d_model": 768, "n_heads": 12}
MODELS = {
    "gpt2, 12 layers": {
        **SHARED, "family": "gpt2", "form": "decoder", "n_layers": 12, "max_positions": 4096,
    },
    "hourglass, 4@1 8@4 4@1": {**SHARED, "hierarchy": "4@1 8@4 4@1"},
}  # fmt: skip


def main():
    """Print a table."""
    torch.set_num_threads(1)
    models = {name: made(keys) for name, keys in MODELS.items()}
    models["llama of transformers, 8 layers"] = opened = llama()
    for name, model in models.items():
        for length in LENGTHS:
            token, whole = compared(model, length)
            line(f"{name}: a token after {length:,}", f"{token * 1000:.0f} ms")
            line(f"{name}: a pass over {length:,} beside it", f"{whole / token:.0f} x")
    rows, again = (seconds(lambda one=one: write(opened, one)) for one in (True, False))
    line(f"llama: {WRITTEN} tokens after {BEGIN}, row by row", f"{rows:.1f} s")
    line("llama: the same, the whole text read for every token", f"{again / rows:.1f} x")


def llama():
    """A Llama as the package transformers writes it."""
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=512, intermediate_size=1376, num_hidden_layers=8,
        num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=4096,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
        return open_model(folder)


def write(model, incremental):
    """Go on with a text, as models are that can or cannot go on by rows."""
    vars(model.module)["incremental"] = incremental
    writing = Writing(model, model.from_ids(range(5, 5 + BEGIN)))
    for _ in writing.read():
        pass
    for _ in range(WRITTEN):
        writing.add(chosen(writing.logits, None, 1.0))


def made(keys):
    """A model without files."""
    config = parse_config(keys)
    torch.manual_seed(0)
    module = build(config).requires_grad_(False).eval()
    return Model(module, config.spec("random", "", 0), Bare(), "cpu", "float32")


def compared(model, length):
    """Median seconds of a token more, and of a pass over so many."""
    ids = np.random.default_rng(0).integers(0, model.spec.vocabulary, length)
    writing = Writing(model, model.from_ids(ids))
    for _ in writing.read():
        pass
    tokens, passes = [], []
    for _ in range(ROUNDS):
        passes.append(seconds(lambda: model.run(ids)))
        # together, since an Hourglass computes more where a group is complete
        tokens.append(seconds(lambda: [writing.add(7) for _ in range(TOKENS)]) / TOKENS)
    return statistics.median(tokens), statistics.median(passes)


def seconds(work):
    """Processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
