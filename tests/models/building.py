"""Small models with random weights, folders of them, and small trainings."""

import json
import random
from unicodedata import normalize

import msgspec
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from hgviz.core import NO_STREAMING, HeadId, Streaming
from hgviz.models import open_model
from hgviz.models.checkpoints import read, save
from hgviz.models.config import outline, parse_config, shapes_of
from hgviz.models.layers import Attention
from hgviz.models.run import CaptureRecorder, Run
from hgviz.models.training import read_plan, train
from tests.models import zoo
from tests.progress import cancelled

SMALL = {"vocab_size": 23, "d_model": 12, "n_heads": 2, "d_ff": 20, "hierarchy": "1@1 1@2 1@1"}
PLAIN = {"vocab_size": 23, "d_model": 12, "n_heads": 2, "d_ff": 20, "n_layers": 2}


def make_config(**changes):
    """The configuration of an Hourglass, SMALL with changes."""
    return parse_config({**SMALL, **changes})


def make_hourglass(config, seed=0):
    """A float64 Hourglass with no parameter at its initial 0 or 1."""
    return _made(config, seed)


def make_transformer(seed=0, **keys):
    """A float64 Transformer with no parameter at its initial 0 or 1; keys as config.json's."""
    return _made(parse_config({**PLAIN, "family": "transformer", **keys}), seed)


def make_unattending(seed=0, **keys):
    """A float64 model of the family "lstm" or "window", as make_transformer."""
    return _made(parse_config({"vocab_size": 23, "d_model": 12, "n_layers": 2, **keys}), seed)


def _made(config, seed):
    torch.manual_seed(seed)
    model = config.build().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model


def write_checkpoint(folder, seed=0, dtype=torch.float64, **changes):
    """hgviz's own folder with an Hourglass."""
    return write_module(folder, make_hourglass(make_config(**changes), seed), dtype)


def write_transformer(folder, seed=0, dtype=torch.float64, **keys):
    """hgviz's own folder with such a model; family "transformer" unless keys say another."""
    return write_module(folder, make_transformer(seed, **keys), dtype)


def write_unattending(folder, seed=0, dtype=torch.float64, **keys):
    """hgviz's own folder with such a model."""
    return write_module(folder, make_unattending(seed, **keys), dtype)


def write_module(folder, module, dtype=torch.float64):
    """hgviz's own folder with a model."""
    tensors = {name: tensor.to(dtype) for name, tensor in module.state_dict().items()}
    save(folder, module.config, tensors)
    return folder


def opened(folder, module, dtype="float32"):
    """The same model from a file."""
    return open_model(write_module(folder, module, getattr(torch, dtype)), dtype=dtype)


# --- one of each kind, with six heads of four columns ---------------------------------------------

WIDTHS = {"d_model": 24, "n_heads": 6, "d_ff": 20, "vocab_size": 23}
NESTED = {"hierarchy": "1@1 1@2 1@4 1@2 1@1"}
WINDOWED = {"hierarchy": "1@1 1@2 1@1", "form": "windowed", "positions": "rotary"}
SLOTS = {"slots": 5, "max_positions": 40}
FAMILIES = {
    "hourglass": {**NESTED, "positions": "relative"},
    "bidirectional": {**NESTED, "positions": "rotary", "causal": False},
    "windowed": WINDOWED,
    "compat": {**WINDOWED, "masking": "compat", "positions": "none"},
    "encoder": {"family": "bert", "goal": "classes", "labels": ["no", "yes"]},
    "decoder": {"family": "gpt2"},
    "both": {"family": "transformer", "n_layers": 1},
    "cross": {"family": "transformer", "form": "decoder", "cross": True},
    "slots": {"family": "yubert", "labels": ["no", "yes"], **SLOTS},
    "linformer": {
        "family": "bert", "goal": "states", "transform": False, **SLOTS, "slots_bias": True,
        "slots_sharing": "headwise",
    },
    "quadratic": {"family": "transformer", "positions": "quadratic", "n_layers": 1},
    "places": {"family": "gpt2", "positions": "quadratic", "content": False},
    "synthesizer": {
        "family": "transformer", "form": "decoder", "max_positions": 40, "rank": 3,
        "scores": ["dense+random", "dot+factorised+fixed"],
    },
    "shared": {"family": "gpt2", "shared_width": 7},
    "segments": {"family": "dynamic", "n_layers": [1, 1, 1], "boundaries": "learned"},
}  # fmt: skip


def build(name, activations, **changes):
    """A float64 model of FAMILIES whose heads have such activations."""
    keys = {**WIDTHS, **FAMILIES[name], "activations": activations, "top_k": 3, **changes}
    if "hierarchy" in keys:
        return make_hourglass(make_config(**keys))
    return make_transformer(**{"n_layers": 2, **keys})


def write_shared(path, out):
    """The checkpoint at a path in float64 with heads that share queries and keys, each mixing its
    own part of those of all heads: its scores stay what they were (Cordonnier et al. 2020,
    section 4)."""
    whole = read(path)
    tensors = {name: part.double() for name, part in whole.tensors.items()}
    for name, part in outline(whole.config).named_modules():
        if not isinstance(part, Attention):
            continue
        split = len(part.layer.heads), part.d_head
        q, k = (tensors[f"{name}.{side}.weight"].unflatten(0, split) for side in "qk")
        b_q, b_k = (
            tensors.pop(f"{name}.{side}.bias", torch.zeros(split).double()).view(split)
            for side in "qk"
        )
        tensors[f"{name}.key_bias.weight"] = torch.einsum("hk,hkd->hd", b_q, k)
        tensors[f"{name}.query_bias.weight"] = torch.einsum("hk,hkd->hd", b_k, q)
        tensors[f"{name}.query_bias.bias"] = (b_q * b_k).sum(1)
        tensors[f"{name}.mix"] = torch.eye(split[0]).double().repeat_interleave(split[1], 1)
    config = whole.config.replace(shared_width=whole.config.d_model)
    assert {name: tuple(part.shape) for name, part in tensors.items()} == shapes_of(config)
    save(out, config, tensors)
    return out


def texts_for(model):
    """What Model.run takes for two texts, one of them with padding."""
    ids = np.random.default_rng(0).integers(0, 20, (2, 11))
    mask = np.arange(11) < np.array([[11], [6]])
    if model.takes_states:
        states = np.random.default_rng(1).normal(size=(2, 7, model.spec.width))
        return {"ids": ids, "attention_mask": mask, "encoder_states": states}
    both = {"decoder_ids": ids[:, :5]} if model.spec.form == "encoder-decoder" else {}
    return {"ids": ids, "attention_mask": mask, **both}


# --- folders as the package transformers writes them, with random weights -------------------------

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
    return _write_folder(folder, data, seed, "bert.", prefix, tokenizer and wordpiece)


def write_gpt2(folder, seed=0, tokenizer=True, prefix="transformer.", **changes):
    """A folder of GPT-2, as write_bert."""
    data = {**SMALL_GPT2, **changes}
    return _write_folder(folder, data, seed, "transformer.", prefix, tokenizer and byte_level)


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


def _write_folder(folder, data, seed, own, prefix, tokenizer):
    kind = getattr(zoo.library(), data["architectures"][0])
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


# --- training files of every kind, and trainings that are stopped ---------------------------------

WINDOWS = [{"start": 0.0, "length": 16, "batch": 2}, {"start": 0.5, "length": 24, "batch": 1}]
CLASSIFIER = {
    "model": {
        "family": "bert", "goal": "classes", "d_model": 24, "d_ff": 32, "n_heads": 6, "n_layers": 1,
        "max_positions": 16, "segments": 0, "activations": "softmax",
    },
    "tokenizer": {"kind": "words", "size": 40},
    "data": {"train": ["train.tsv"], "valid": "dev.tsv"},
    "recipe": {"steps": 60, "batch": 16, "rate": 1e-2, "warmup": 5, "seed": 3, "save_every": 2,
               "evaluate_every": 30},
}  # fmt: skip
KINDS = {
    "next": {
        "model": {"hierarchy": "1@1 1@2 1@1", "vocab_size": 256, "d_model": 16, "n_heads": 2,
                  "positions": "rotary"},
        "data": {"train": ["a.txt"], "valid": "b.txt"},
        "recipe": {"steps": 60, "warmup": 2, "rate": 1e-2, "save_every": 2, "evaluate_every": 3,
                   "evaluate_length": 32, "stages": WINDOWS},
    },
    "masked": {
        "model": {**CLASSIFIER["model"], "goal": "masked", "max_positions": 20},
        "tokenizer": {"kind": "words", "size": 30},
        "data": {"train": ["words.txt"], "valid": "words.txt"},
        "recipe": {"steps": 80, "warmup": 5, "rate": 2e-2, "save_every": 2, "evaluate_every": 40,
                   "evaluate_length": 16, "stages": [{"start": 0.0, "length": 12, "batch": 8}]},
    },
    "classes": CLASSIFIER,
    "pairs": {
        "model": {"family": "transformer", "d_model": 32, "d_ff": 64, "n_heads": 4, "n_layers": 1,
                  "norm_first": True, "final_norm": True, "positions": "learned",
                  "max_positions": 8, "activations": ["softmax", "ymish"]},
        "tokenizer": {"kind": "words", "size": 20},
        "data": {"train": ["pairs.tsv"], "valid": "pairs.tsv"},
        "recipe": {"steps": 40, "batch": 16, "rate": 1e-2, "warmup": 5, "save_every": 3,
                   "evaluate_every": 20},
    },
    "segments": {
        "model": {"family": "dynamic", "vocab_size": 256, "d_model": 16, "d_ff": 24, "n_heads": 2,
                  "n_layers": [1, 1, 1], "boundaries": "learned"},
        "data": {"train": ["a.txt"], "valid": "b.txt"},
        "recipe": {"steps": 40, "warmup": 4, "rate": 1e-2, "initial": 0.2, "save_every": 20,
                   "evaluate_every": 20, "evaluate_length": 48,
                   "stages": [{"start": 0.0, "length": 40, "batch": 4}]},
    },
}  # fmt: skip
ENGLISH, GERMAN = ("one", "two", "three", "four"), ("eins", "zwei", "drei", "vier")


def write_data(folder):
    """The files of all KINDS. Of two names the first is the class: no bag of words can tell."""
    (folder / "a.txt").write_text("the cat sat on the mat and the dog sat on the log. " * 20)
    (folder / "b.txt").write_text("the dog sat on the mat. " * 20)
    # the same word over and over: whoever looks at any other token knows it
    lines = [" ".join([word] * 60) for word in ("one", "two", "three", "four", "five") * 2]
    (folder / "words.txt").write_text("\n".join(lines))
    for name, count in (("train", 300), ("dev", 60)):
        dice, rows = random.Random(count), ["sentence\tlabel"]
        for _ in range(count):
            names = dice.sample(["ann", "bob"], 2)
            middle = " ".join(dice.choices(["and", "or", "so"], k=dice.randrange(4)))
            rows.append(f"{names[0]} {middle} {names[1]}\t{names[0]}")
        (folder / f"{name}.tsv").write_text("\n".join(rows) + "\n")
    dice, rows = random.Random(0), ["source\ttarget"]
    for _ in range(200):
        words = [dice.randrange(4)] * dice.randrange(1, 4)
        rows.append("\t".join(" ".join(names[i] for i in words) for names in (ENGLISH, GERMAN)))
    (folder / "pairs.tsv").write_text("\n".join(rows) + "\n")


def plan(folder, tables, **changes):
    """The plan of tables in a folder, with other keys in some of them; None: without a table."""
    tables = dict(tables)
    for name, keys in changes.items():
        tables[name] = None if keys is None else {**tables.get(name, {}), **keys}
    tables = {name: keys for name, keys in tables.items() if keys is not None}
    (folder / "plan.toml").write_bytes(msgspec.toml.encode(tables))
    return read_plan(folder / "plan.toml")


def log(folder):
    """The rows of a training's log."""
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def interrupt(plan, folder, number):
    """Train until a step of this number is done, and end there."""
    cancelled(train, plan, folder, when=lambda step: step.value["step"] >= number)


def train_twice(plan, folder, *steps, files=("model.safetensors",)):
    """Train in one go, and again with a stop after each of some steps: the files are the same.

    Returns both reports.
    """
    whole = train(plan, folder / "whole")
    for step in steps:
        interrupt(plan, folder / "stopped", step)
        assert (folder / "stopped" / "state.pt").exists()
    stopped = train(plan, folder / "stopped")
    assert not (folder / "stopped" / "state.pt").exists()
    for name in files:
        assert (folder / "whole" / name).read_bytes() == (folder / "stopped" / name).read_bytes()
    return whole, stopped


# --- one layer that attends -----------------------------------------------------------------------


def attended(q, k, v, rule, *, off, **options):
    """The context with heads at some places off."""
    return Run(_heads(off)).attend(0, q, k, v, rule, **options)


def captured_layer(q, k, v, rule, *, dense=False, streaming=(), near=(1, 1), **options):
    """The context, and the factors or weights that are kept."""
    found = []
    streams = Streaming(_heads(streaming), *near) if streaming else NO_STREAMING
    recorder = CaptureRecorder(lambda layer, one: found.append(one), dense)
    run = Run(streaming=streams, observers=(recorder,))
    return run.attend(0, q, k, v, rule, **options), found[0]


def _heads(places):
    return frozenset(HeadId(0, place) for place in places)
