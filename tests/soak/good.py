"""Good files of every kind: captures, checkpoints, studies, folders of studies, texts."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from hgviz.core import Item
from hgviz.maps import DenseMap, overview
from hgviz.store import CorpusWriter, Writer, write_capture, write_study
from tests.making import make_capture
from tests.models import references
from tests.models.building import (
    byte_level,
    vocabulary,
    write_bert,
    write_checkpoint,
    write_gpt2,
    write_transformer,
)
from tests.store.samples import of_kind
from tests.studying import make_study, make_sweep, study_file, without, write

WORDS = "The hourglass reads letters, then pairs. Nobody liked the plot, but the end was great."
PACKAGE = {"num_tokens": 256, "dim": 16, "max_seq_len": 32, "depth": [1, 1, 1],
           "shorten_factor": 2, "heads": 2, "dim_head": 8, "attn_resampling": True,
           "updown_sample_type": "linear", "causal": True}  # fmt: skip
MODEL = """
[[models]]
name = "tiny"
family = "bert"
goal = "classes"
d_model = 16
n_heads = 2
n_layers = 2
max_positions = 32
segments = 0
"""
TINY = f"""
asks = ["score", "curve", "compare"]
activations = ["softmax", "ymish"]
methods = ["michel"]
{MODEL}[tokenizer]
kind = "wordpiece"
size = 400
[recipe]
steps = 4
batch = 8
[[data]]
name = "reviews"
train = ["sample/reviews.tsv"]
valid = "sample/reviews.tsv"
[curve]
limit = 40
points = 3
random = 2
[compare]
texts = 2
limit = 8
"""


def write_captures(folder: Path) -> None:
    """One capture of every kind; cut.h5 and few.h5 are interrupted: folders of parts."""
    folder.mkdir()
    captures = {kind: of_kind(kind) for kind in ("both", "states", "slots", "classes")}
    captures["lazy"] = lazy = make_capture("From a stranger. " * 3, (1, 2), 2, relative=True)
    captures["signed"] = make_capture("From a stranger. " * 3, (1, 2), 2, signed=True)
    weights = np.random.default_rng(0).random((2, 60, 60)).astype(np.float32)
    captures["dense"] = replace(
        lazy,
        spec=replace(lazy.spec, layers=lazy.spec.layers[:1], levels=lazy.spec.levels[:1]),
        maps=(DenseMap(weights, (0, 1)),), spans=lazy.spans[:1],
        logits=np.zeros((len(lazy.prompt), 256), np.float32),
    )  # fmt: skip
    for name, capture in captures.items():
        write_capture(folder / f"{name}.h5", capture)
    small, overview._SMALL = overview._SMALL, 16  # levels as of a long text, in a small file
    for signed in (False, True):
        text = make_capture("x. " * 367, (1,), 1, signed=signed, logits=False)
        write_capture(folder / f"levels-{signed}.h5", text)
    overview._SMALL = small
    items = tuple(Item(at, lazy.prompt.text, len(lazy.prompt), "a label") for at in range(3))
    for name, count in (("many", 3), ("few", 2)):
        corpus = CorpusWriter(folder / f"{name}.h5", replace(lazy, items=items), "0")
        for number in range(count):
            with corpus.item(number, lazy) as item:
                for index, maps in enumerate(lazy.maps):
                    item.add(index, maps.factors)
                item.finish(lazy.logits)
        if count == len(items):
            corpus.finish()
    writer = Writer(folder / "cut.h5", lazy)
    for index in (0, 1, 3):
        writer.add(index, lazy.maps[index].factors)


def write_models(folder: Path) -> None:
    """One checkpoint of every format, with every kind of tokenizer."""
    folder.mkdir()
    write_checkpoint(folder / "own", vocab_size=256)
    write_transformer(folder / "plain", vocab_size=256, n_layers=1)
    write_transformer(folder / "dynamic", family="dynamic", vocab_size=256, n_layers=[1, 1, 1])
    package = references.build_package(**{**PACKAGE, "depth": (1, 1, 1)})
    references.write_package(folder / "theirs", package, PACKAGE)
    write_bert(folder / "bert")
    write_gpt2(folder / "gpt2")
    words = write_bert(folder / "words", tokenizer=False)
    (words / "vocab.txt").write_text("\n".join(vocabulary()) + "\n", encoding="utf-8")
    settings = {
        "do_lower_case": True,
        "cls_token": {"content": "[CLS]", "__type": "AddedToken"},
        "added_tokens_decoder": {},
    }
    (words / "tokenizer_config.json").write_text(json.dumps(settings))
    merges = write_gpt2(folder / "merges", tokenizer=False)
    pieces = json.loads(byte_level().to_str())["model"]
    (merges / "vocab.json").write_text(json.dumps(pieces["vocab"]))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in pieces["merges"]), ""]
    (merges / "merges.txt").write_text("\n".join(lines), encoding="utf-8")
    added = {"<|endoftext|>": len(pieces["vocab"]) - 1}
    (merges / "added_tokens.json").write_text(json.dumps(added))
    tensors = load_file(folder / "bert" / "model.safetensors")
    for name in ("bin", "shards"):
        shutil.copytree(folder / "bert", folder / name)
        (folder / name / "model.safetensors").unlink()
    torch.save(tensors, folder / "bin" / "pytorch_model.bin")
    names, places = sorted(tensors), {}
    for number, part in enumerate((names[: len(names) // 2], names[len(names) // 2 :])):
        file = f"model-{number + 1:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / "shards" / file)
        places |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (folder / "shards" / "model.safetensors.index.json").write_text(json.dumps(index))


def write_studies(folder: Path) -> None:
    """Studies of heads of every kind, one of them stopped."""
    folder.mkdir()
    for asked in ("classes", "next", "masked"):
        write_study(folder / f"{asked}.h5", make_study(examples=40, asked=asked))
    write_study(folder / "few.h5", make_study(examples=40, done=0.4, off=((0, 1),)))
    write_study(folder / "large.h5", make_study(examples=4000, without=("alone", "shapley")))


def write_sweeps(folder: Path) -> None:
    """The file of a study of many runs, and the folder of one of which some runs failed."""
    folder.mkdir()
    (folder / "tiny.toml").write_text(TINY)
    size = {"activations": ("softmax",), "seeds": (1, 2), "methods": ("michel",)}
    whole = make_sweep(**size)
    first, second = (run.cell.key for run in whole.of("curve")[:2])
    part = without(whole, first, state="failed", line="the machine has too little memory")
    write(folder / "failed", study_file(**size), without(part, second).standings)


def write_texts(folder: Path) -> None:
    """Texts, tables and ids, some of them empty, broken or of another kind than their names."""
    folder.mkdir()
    lines = [f"{number} {WORDS}" for number in range(12)]
    rows = [f"{('negative', 'positive')[number % 2]}\t{WORDS}" for number in range(24)]
    files = {
        "many.txt": "\n".join(lines),
        "rows.tsv": "\n".join(["label\ttext", *rows]),
        "rows.jsonl": "\n".join(json.dumps({"text": line, "label": 0}) for line in lines),
        "ids.json": json.dumps({"input_ids": [0, 1, 2, 3, 4, 5]}),
        "wrong.json": json.dumps({"input_ids": [10**9, -1]}),
        "words.h5": "no capture at all", "config.json": "{}",
        "odd.txt": "a\0b \u202e나는 \U0001f600\n\n\t" * 9,
        **dict.fromkeys(("none.json", "none.txt", "none.h5", "none.safetensors"), ""),
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "bytes.txt").write_bytes(bytes(range(128, 256)))
    (folder / "empty folder").mkdir()
