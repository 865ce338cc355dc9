"""Writing with a model of transformers, beside transformers' own generate().

A Llama of 8 layers, width 512, with random weights, float32, one thread: processor time of 200
tokens after 32, taken in turn, medians of ROUNDS. Both keep keys and values of the tokens before.
"""

import statistics
import tempfile
import time

import torch
import transformers
from table import line

from hgviz.models import open_model
from hgviz.models.generation import Writing, choose_token

BEGIN, WRITTEN, ROUNDS = 32, 200, 3


def main():
    """Print a table."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=1000, hidden_size=512, intermediate_size=1376, num_hidden_layers=8,
        num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=4096,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        theirs = transformers.LlamaForCausalLM(config).eval()
        theirs.save_pretrained(folder)
        ours = open_model(folder)
    taken: dict[str, list[float]] = {"hgviz": [], "transformers": []}
    for _ in range(ROUNDS):
        taken["hgviz"].append(seconds(lambda: write(ours)))
        taken["transformers"].append(seconds(lambda: generate(theirs)))
    mine, other = (statistics.median(taken[name]) for name in ("hgviz", "transformers"))
    line(f"{WRITTEN} tokens after {BEGIN}, hgviz", f"{mine:.2f} s")
    line("the same beside transformers' generate()", f"{mine / other:.2f} x")


def write(model):
    """The likeliest tokens, by hgviz."""
    writing = Writing(model, model.from_ids(range(5, 5 + BEGIN)))
    for _ in range(WRITTEN):
        writing.add(choose_token(writing.logits, None, 1.0))


def generate(model):
    """The same by transformers."""
    ids = torch.arange(5, 5 + BEGIN)[None]
    with torch.no_grad():
        model.generate(
            ids, attention_mask=torch.ones_like(ids), min_new_tokens=WRITTEN,
            max_new_tokens=WRITTEN, do_sample=False, pad_token_id=0,
        )  # fmt: skip


def seconds(work):
    """Processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    main()
