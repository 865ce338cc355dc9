"""Folders as the package transformers writes them, of small models with random weights."""

import json
from unicodedata import normalize

import torch
from safetensors.torch import load_file, save_file

from tests.models import reference
from tests.models.building import write_transformer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
# BERT's normalizer takes Hangul apart, so its vocabulary holds the parts
HANGUL = tuple(normalize("NFD", one) for one in ("나", "##는", "이")) + ("##\u11bb",)
WORDS = ("the", "cat", "sat", "un", "##ed", "##affable", ".", ",", *HANGUL)
SMALL_BERT = {
    "model_type": "bert", "architectures": ["BertForSequenceClassification"],
    "vocab_size": len(SPECIAL) + len(WORDS) + 26, "hidden_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 3, "intermediate_size": 40, "max_position_embeddings": 40,
    "id2label": {"0": "against", "1": "for"},
}  # fmt: skip
SMALL_GPT2 = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300, "n_embd": 24,
    "n_layer": 2, "n_head": 3, "n_positions": 64,
}  # fmt: skip


def write_bert(folder, seed=0, tokenizer=True, prefix="bert.", **changes):
    """A folder of BERT: config.json, model.safetensors and tokenizer.json; changes to config.json
    such as architectures=["BertForMaskedLM"]. prefix: what stands before the names of the model
    within one with a head."""
    data = {**SMALL_BERT, **changes}
    return _write(folder, data, seed, "bert.", prefix, tokenizer and wordpiece)


def write_gpt2(folder, seed=0, tokenizer=True, prefix="transformer.", **changes):
    """A folder of GPT-2, as write_bert."""
    data = {**SMALL_GPT2, **changes}
    return _write(folder, data, seed, "transformer.", prefix, tokenizer and byte_level)


def own_bert(folder, seed=0, goal="classes", **keys):
    """hgviz's own folder of such a BERT, with its tokenizer."""
    sizes = {"d_model": 24, "n_heads": 3, "d_ff": 40, "max_positions": 40}
    labels = ["against", "for"] if goal == "classes" else []
    write_transformer(
        folder, seed, torch.float32, family="bert", vocab_size=SMALL_BERT["vocab_size"], goal=goal,
        labels=labels, **sizes, **keys,
    )  # fmt: skip
    wordpiece().save(str(folder / "tokenizer.json"))
    return folder


def own_gpt2(folder, seed=0, **keys):
    """hgviz's own folder of such a GPT-2, with its tokenizer."""
    sizes = {"d_model": 24, "n_heads": 3, "d_ff": 96, "max_positions": 64, "vocab_size": 300}
    write_transformer(folder, seed, torch.float32, family="gpt2", **sizes, **keys)
    byte_level().save(str(folder / "tokenizer.json"))
    return folder


def _write(folder, data, seed, own, prefix, tokenizer):
    kind = getattr(reference.library(), data["architectures"][0])
    torch.manual_seed(seed)
    model = kind(kind.config_class(**data))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    held = load_file(folder / "model.safetensors")
    renamed = {prefix + name.removeprefix(own) if name.startswith(own) else name: one
               for name, one in held.items()}  # fmt: skip
    save_file(renamed, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(data))
    if tokenizer:
        tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def vocabulary():
    """Tokens of a small WordPiece vocabulary, in the order of their ids."""
    return [*SPECIAL, *WORDS, *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]


def wordpiece():
    """BERT's tokenizer over that vocabulary."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids = {token: i for i, token in enumerate(vocabulary())}
    found = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    found.add_special_tokens(list(SPECIAL))
    found.normalizer = normalizers.BertNormalizer()
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found.decoder = decoders.WordPiece()
    found.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return found


def byte_level(merges=(("Ġ", "t"), ("h", "e"), ("Ġt", "he"))):
    """GPT-2's tokenizer over the bytes and a few merges."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges)]
    tokens.append("<|endoftext|>")
    found = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)}, list(merges)))
    found.add_special_tokens(["<|endoftext|>"])
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    found.post_processor = processors.ByteLevel(trim_offsets=False)
    return found


def split(folder, name="model", ending=".safetensors", count=3):
    """Keep the weights of a folder in several files; the index of them."""
    path = folder / "model.safetensors"
    tensors, places = load_file(path), {}
    path.unlink()
    for i in range(count):
        shard = f"{name}-{i + 1:05}-of-{count:05}{ending}"
        part = dict(list(tensors.items())[i::count])
        places |= dict.fromkeys(part, shard)
        (save_file if ending == ".safetensors" else torch.save)(part, folder / shard)
    index = folder / f"{name}{ending}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return index
