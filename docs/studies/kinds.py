"""The small Llama, T5 and Byte Latent Transformer of the guide, trained on tasks that make their
attention easy to check.

    python docs/studies/kinds.py DIR [copy] [dates] [patches]

copy: a Llama whose texts are distinct letters in random order, repeated. dates: a T5 that writes
"4 March 1931" as "1931-03-04". patches: a BLT on the language reference that comes with Python.
Each is written to DIR with texts that it has not seen; training takes minutes of one core.
"""

from __future__ import annotations

import math
import re
import sys
from datetime import date, timedelta
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import tokenizers
import torch
import transformers
from torch.nn.functional import cross_entropy

LETTERS = "abcdefghijklmnopqrstuvwxyz"
COPY_LENGTH = 48
TEXT_LENGTH = 128
IGNORED = -100  # the label of a token that the loss leaves out


def train(model, make_loss, steps, rate, weights=None):
    """Train a model, or some of its weights, on the losses that make_loss returns."""
    chosen = list(model.parameters() if weights is None else weights)
    optimizer = torch.optim.AdamW(chosen, rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, steps)
    for step in range(steps):
        loss = make_loss()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(chosen, 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(step + 1, f"{float(loss.detach()):.4f}", flush=True)
    model.eval()


# --- copy -----------------------------------------------------------------------------------------


def repeated_letters(random):
    """Eight to 16 distinct letters in random order, repeated to COPY_LENGTH; and how many."""
    period = int(random.integers(8, 17))
    letters = random.permutation(list(LETTERS))[:period]
    return "".join(np.resize(letters, COPY_LENGTH)), period


def copy_batch(random, count):
    """Texts as bytes (count, COPY_LENGTH), and where each repeats what was there before."""
    texts, periods = zip(*(repeated_letters(random) for _ in range(count)), strict=True)
    ids = torch.tensor([list(text.encode()) for text in texts])
    return ids, torch.arange(COPY_LENGTH) >= torch.tensor(periods)[:, None]


def train_copy(out):
    """A Llama of two layers with 8 query heads over 2 key groups."""
    random = np.random.default_rng(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=8, num_key_value_heads=2, head_dim=16, max_position_embeddings=256,
        bos_token_id=None, eos_token_id=None,
    ))  # fmt: skip

    def loss():
        ids, _ = copy_batch(random, 64)
        return model(input_ids=ids, labels=ids).loss

    train(model, loss, 1000, 3e-3)
    ids, repeats = copy_batch(np.random.default_rng(1), 500)
    with torch.no_grad():
        guesses = model(input_ids=ids).logits[:, :-1].argmax(-1)
    right = (guesses == ids[:, 1:])[repeats[:, 1:]].float().mean()
    print(f"copy: {right:.4f} of the repeated letters of {len(ids)} new texts")
    model.save_pretrained(out / "copy")
    rows = [repeated_letters(np.random.default_rng(2 + at))[0] for at in range(200)]
    (out / "copy.tsv").write_text("\n".join(["text", *rows]) + "\n", "utf-8")


# --- dates ----------------------------------------------------------------------------------------

DATE_FORMS = ("{d} {m} {y}", "{m} {d}, {y}", "{w}, {d} {m} {y}", "{w} {m} {d} {y}")


def written_date(random):
    """A day between 1900 and 2099 as people write it, and as ISO 8601 does."""
    day = date(1900, 1, 1) + timedelta(int(random.integers(73_000)))
    form = DATE_FORMS[random.integers(len(DATE_FORMS))]
    text = form.format(d=day.day, m=day.strftime("%B"), y=day.year, w=day.strftime("%A"))
    return text, day.isoformat()


def character_tokenizer():
    """One token for each character of a date, and an end."""
    names = {char for random in range(2000)
             for text in written_date(np.random.default_rng(random)) for char in text}  # fmt: skip
    words = ["<pad>", "</s>", "<unk>", *sorted(names)]
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: at for at, word in enumerate(words)}, "<unk>")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("."), "isolated")
    made.decoder = tokenizers.decoders.Fuse()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def date_batch(tokenizer, random, count):
    """Dates as a T5 reads them, and the dates that it is to write."""
    texts, wanted = zip(*(written_date(random) for _ in range(count)), strict=True)
    read = tokenizer(list(texts), padding=True, return_tensors="pt")
    labels = tokenizer(list(wanted), padding=True, return_tensors="pt").input_ids
    inputs = {"input_ids": read.input_ids, "attention_mask": read.attention_mask}
    return inputs, labels.masked_fill(labels == 0, IGNORED)


def train_dates(out):
    """A T5 with an encoder and a decoder of two layers of 4 heads."""
    random, tokenizer = np.random.default_rng(0), character_tokenizer()
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=len(tokenizer), d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
        dropout_rate=0.0, decoder_start_token_id=0, tie_word_embeddings=False,
    ))  # fmt: skip

    def loss():
        inputs, labels = date_batch(tokenizer, random, 64)
        return model(**inputs, labels=labels).loss

    train(model, loss, 600, 3e-3)
    inputs, labels = date_batch(tokenizer, np.random.default_rng(1), 1000)
    with torch.no_grad():
        guesses = model(**inputs, labels=labels).logits.argmax(-1)
    right = (guesses == labels).all(-1).float().mean()
    print(f"dates: {right:.4f} of {len(labels)} new dates right in every character")
    model.save_pretrained(out / "dates")
    tokenizer.save_pretrained(out / "dates")
    rows = ["\t".join(written_date(np.random.default_rng(2 + at))) for at in range(200)]
    (out / "dates.tsv").write_text("\n".join(["text\ttarget", *rows]) + "\n", "utf-8")


# --- patches --------------------------------------------------------------------------------------


def reference_text():
    """The sentences of Python's language reference, each paragraph once: nine tenths to train on,
    and the rest."""
    parts = [part for _, topic in sorted(topics.items()) for part in re.split(r"\n\s*\n", topic)]
    lines = dict.fromkeys(" ".join(part.split()) for part in parts)
    lines = [line for line in lines if re.match(r"[A-Z].{60,}\.$", line)]
    held = len(lines) // 10
    return "\n".join(lines[:-held]), "\n".join(lines[-held:])


def text_batch(data, random, count):
    """Random stretches of a text (count, TEXT_LENGTH) as bytes."""
    starts = random.integers(0, len(data) - TEXT_LENGTH, count)
    return torch.stack([data[at : at + TEXT_LENGTH] for at in starts])


def next_byte_loss(logits, ids):
    """The mean loss in nats of every byte but the first."""
    return cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def train_patches(out):
    """A BLT of one layer that reads bytes, two of patches and two that write bytes."""
    random = np.random.default_rng(0)
    texts = [torch.tensor(list(text.encode())) for text in reference_text()]
    print(f"patches: {len(texts[0]):,} bytes to train on, {len(texts[1]):,} others")
    part = {"vocab_size": 256, "hidden_size": 64, "intermediate_size": 128,
            "num_attention_heads": 4, "max_position_embeddings": 512}  # fmt: skip
    local = {**part, "cross_attn_k": 1, "hidden_size_global": 64}
    model = transformers.BltForCausalLM(transformers.BltConfig(
        vocab_size=256, cross_attn_k=1, encoder_hash_byte_group_size=[3],
        encoder_hash_byte_group_vocab=1009, local_attention_window_len=16, patching_threshold=2.0,
        patcher_config={**part, "num_hidden_layers": 2, "sliding_window": 32},
        encoder_config={**local, "num_hidden_layers": 1},
        decoder_config={**local, "num_hidden_layers": 2},
        global_config={**part, "num_hidden_layers": 2},
    ))  # fmt: skip
    patcher = model.model.patcher
    patcher.requires_grad_(True)

    def patcher_loss():
        ids = text_batch(texts[0], random, 32)
        return next_byte_loss(patcher(ids, use_cache=False)[2], ids)

    train(patcher, patcher_loss, 500, 3e-3)
    patcher.requires_grad_(False)

    def loss():
        ids = text_batch(texts[0], random, 32)
        return next_byte_loss(model(input_ids=ids, use_cache=False).logits, ids)

    weights = [weight for weight in model.parameters() if weight.requires_grad]
    train(model, loss, 300, 3e-3, weights)
    ids = text_batch(texts[1], np.random.default_rng(1), 200)
    with torch.no_grad():
        lengths = patcher(ids, patch_size=4, threshold=2.0, use_cache=False)[1]
        bits = [
            float(next_byte_loss(logits, ids)) / math.log(2)
            for logits in (
                patcher(ids, use_cache=False)[2],
                model(input_ids=ids, use_cache=False).logits,
            )
        ]
    print(f"patches: {TEXT_LENGTH * len(ids) / int((lengths > 0).sum()):.2f} bytes a patch; bits "
          f"per byte of new text: {bits[1]:.3f}, of the patcher alone {bits[0]:.3f}")  # fmt: skip
    model.save_pretrained(out / "patches")
    (out / "reference.txt").write_text(reference_text()[1], "utf-8")


KINDS = {"copy": train_copy, "dates": train_dates, "patches": train_patches}


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in names or KINDS:
        torch.manual_seed(0)
        KINDS[name](Path(folder))
