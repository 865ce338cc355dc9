"""How near hgviz is to transformers: BERT-base, GPT-2-small, Funnel-small, random weights, CPU.

Two texts of 64 and 23 tokens, padded to 64 at the right and at the left; largest differences of
logits and maps over the rows of real tokens. The reference is transformers in the same number
format, with eager attention.
"""

import os
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
from table import line

TEXTS, WIDTH = (64, 23), 64
MODELS = {
    "BERT-base, masked": ("BertConfig", "BertForMaskedLM", {}),
    "BERT-base, classes": ("BertConfig", "BertForSequenceClassification", {}),
    "GPT-2-small": ("GPT2Config", "GPT2LMHeadModel", {}),
    "Funnel-small, masked": ("FunnelConfig", "FunnelForMaskedLM", {"initializer_std": 0.02}),
}
LIMITS = {
    "logits": {"float64": "1e-6", "float32": "5e-5"},
    "maps": {"float64": "1e-5", "float32": "1e-5"},
}


def main():
    """Print a line for each model, number format, and logits or maps."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    for name, (config, kind, more) in MODELS.items():
        torch.manual_seed(0)
        settings = getattr(transformers, config)(attn_implementation="eager", **more)
        theirs = getattr(transformers, kind)(settings).eval()
        with tempfile.TemporaryDirectory() as folder:
            theirs.save_pretrained(folder)
            for dtype in ("float64", "float32"):
                compared(name, theirs.to(getattr(torch, dtype)), Path(folder), dtype)


def compared(name, theirs, folder, dtype):
    """The largest differences of one model in one number format."""
    import torch

    from hgviz import tasks
    from hgviz.models import open_model

    ours = open_model(folder, dtype=dtype)
    logits = maps = most = 0.0
    for side in ("right", "left"):
        ids, mask = padded(theirs.config.vocab_size, side)
        exact = torch.Tensor.double if dtype == "float64" else torch.Tensor.float
        # of a float64 Funnel it would else round the scores to float32
        with torch.inference_mode(), mock.patch.object(torch.Tensor, "float", exact):
            wanted = theirs(
                torch.tensor(ids), attention_mask=torch.tensor(mask), output_attentions=True
            )
        their_logits = wanted.logits.numpy()
        real = mask.astype(bool) if their_logits.ndim == 3 else slice(None)
        found = ours.run(ids, mask).logits
        logits = max(logits, float(np.abs(found - their_logits)[real].max()))
        most = max(most, float(np.abs(their_logits[real]).max()))
        for at, one in enumerate(mask):
            made = tasks.capture(ours, ours.from_ids(ids[at], one))
            for layer, weights in zip(made.maps, wanted.attentions, strict=True):
                for head in layer.heads:
                    off = np.abs(layer.read(head) - weights[at, head].numpy())
                    rows = one.astype(bool) if len(off) == len(one) else slice(None)  # or pooled
                    maps = max(maps, float(off[rows].max()))
    where = f"{name}, {dtype}"
    line(f"{where}: logits, up to {most:.1f}", f"{logits:.1e}", LIMITS["logits"][dtype])
    line(f"{where}: maps", f"{maps:.1e}", LIMITS["maps"][dtype])


def padded(vocabulary, side):
    """ids and mask (texts, WIDTH), the texts at one side."""
    random = np.random.default_rng(0)
    ids, mask = (np.zeros((len(TEXTS), WIDTH), np.int64) for _ in range(2))
    for at, length in enumerate(TEXTS):
        part = slice(length) if side == "right" else slice(WIDTH - length, WIDTH)
        ids[at, part], mask[at, part] = random.integers(0, vocabulary, length), 1
    return ids, mask


if __name__ == "__main__":
    os.environ["HF_HUB_OFFLINE"] = "1"
    main()
