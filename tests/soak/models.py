"""Checkpoints and tokenizers that something has happened to. Every change takes (random, good,
folder, canary) and returns what is to be opened."""

import json
import os
import shutil
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from tests.models import references
from tests.models.building import (
    byte_level,
    vocabulary,
    write_bert,
    write_checkpoint,
    write_gpt2,
    write_transformer,
)
from tests.soak.nonsense import TEXTS, Random, damaged, restated, value, written

PACKAGE = {"num_tokens": 256, "dim": 16, "max_seq_len": 32, "depth": [1, 1, 1],
           "shorten_factor": 2, "heads": 2, "dim_head": 8, "attn_resampling": True,
           "updown_sample_type": "linear", "causal": True}  # fmt: skip


def make(folder: Path) -> None:
    """One good checkpoint of every kind."""
    folder.mkdir()
    write_checkpoint(folder / "own", vocab_size=256)
    write_transformer(folder / "plain", vocab_size=256, n_layers=1)
    write_transformer(folder / "dynamic", family="dynamic", vocab_size=256, n_layers=[1, 1, 1])
    theirs = {**PACKAGE, "depth": (1, 1, 1)}
    references.write_package(folder / "theirs", references.build_package(**theirs), PACKAGE)
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
    found = json.loads(byte_level().to_str())["model"]
    (merges / "vocab.json").write_text(json.dumps(found["vocab"]))
    lines = [" ".join(pair) for pair in found["merges"]]
    (merges / "merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]), encoding="utf-8")
    (merges / "added_tokens.json").write_text(
        json.dumps({"<|endoftext|>": len(found["vocab"]) - 1})
    )
    tensors = load_file(folder / "bert" / "model.safetensors")
    torch.save(tensors, _without(folder, "bert", "bin") / "pytorch_model.bin")
    shards = _without(folder, "bert", "shards")
    names = sorted(tensors)
    halves = (names[: len(names) // 2], names[len(names) // 2 :])
    places = {}
    for i, part in enumerate(halves):
        file = f"model-{i + 1:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, shards / file)
        places |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": 1}, "weight_map": places}
    (shards / "model.safetensors.index.json").write_text(json.dumps(index))


def _without(folder: Path, name: str, copy: str) -> Path:
    """A copy of a checkpoint without its weights."""
    new = Path(shutil.copytree(folder / name, folder / copy))
    (new / "model.safetensors").unlink()
    return new


def _copied(random: Random, good: Path, folder: Path, *names: str) -> Path:
    return Path(shutil.copytree(good / names[random.integers(len(names))], folder / "model"))


def _one(random: Random, items: Any) -> Any:
    return items[random.integers(len(items))]


# --- weights --------------------------------------------------------------------------------------


def in_safetensors(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """Header and body of a safetensors file."""
    path = _copied(random, good, folder, "own", "plain", "dynamic", "bert", "gpt2")
    file = path / "model.safetensors"
    data = file.read_bytes()
    length = int.from_bytes(data[:8], "little")
    if random.integers(3) == 0:
        file.write_bytes(damaged(random, data, 8 + length))
        return path
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    head = written(random, header)
    if random.integers(8) == 0:
        body = damaged(random, body)
    said = len(head) if random.integers(8) else int(random.integers(0, 2**63))
    file.write_bytes(struct.pack("<Q", said) + head + body)
    return path


class _Evil:
    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def in_torch(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """The zip of torch and the pickle in it."""
    path = _copied(random, good, folder, "theirs", "bin")
    file = next(one for one in path.iterdir() if one.suffix in (".pt", ".bin"))
    chosen = int(random.integers(0, 8))
    if chosen < 2:
        file.write_bytes(damaged(random, file.read_bytes()))
    elif chosen == 2:
        state = torch.load(file, weights_only=True)
        name = _one(random, sorted(state))
        state[name] = _odd_tensor(random, state[name], canary)
        torch.save(state, file)
    else:
        _repack(random, file)
    return path


def _odd_tensor(random: Random, old: Any, canary: Path) -> Any:
    return _one(random, [
        torch.zeros(1).expand(2**40), torch.zeros(1).expand(old.shape), old.T, old.half(),
        torch.zeros(old.shape, dtype=torch.int8), torch.zeros(old.shape, device="meta"),
        torch.full(old.shape, torch.nan), old.to_sparse(), _Evil(canary / "made"), [old], None,
        torch.zeros(0, 2**40), old.reshape(-1), old.to(torch.complex64), torch.zeros(2**20),
        old.as_strided((2, 2**30), (0, 0)), torch.nn.Parameter(old), {"a": old}, 3,
    ])  # fmt: skip


def _repack(random: Random, file: Path) -> None:
    with zipfile.ZipFile(file) as opened:
        parts = [(name, opened.read(name)) for name in opened.namelist()]
    at = int(random.integers(len(parts)))
    if random.integers(2):  # most of what can go wrong is in the pickle
        at = next(i for i, (name, _) in enumerate(parts) if name.endswith("data.pkl"))
    name, data = parts[at]
    chosen = int(random.integers(0, 6))
    if chosen < 3:
        parts[at] = (name, damaged(random, data))
    elif chosen == 3:
        del parts[at]
    elif chosen == 4:
        parts[at] = (_one(random, [*TEXTS[1:8], "../../x", "/x", parts[0][0]]), data)
    else:
        parts[at] = (name, data + bytes(8_000_000))
    packing = zipfile.ZIP_DEFLATED if random.integers(3) == 0 else zipfile.ZIP_STORED
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", packing) as new:
        warnings.simplefilter("ignore")  # two parts of one name
        for name, data in parts:
            new.writestr(name.encode("utf-8", "replace").decode(), data)


def in_shards(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """The index of weights in several files, and these."""
    path = _copied(random, good, folder, "shards")
    index = path / "model.safetensors.index.json"
    document = json.loads(index.read_text())
    chosen = int(random.integers(0, 5))
    if chosen < 2:
        index.write_bytes(written(random, document))
    elif chosen == 2:
        names = sorted(document["weight_map"])
        places = [str(canary / "other.safetensors"), "../canary/other.safetensors", ".", "..", "",
                  "config.json", "model.safetensors.index.json", "a" * 300 + ".bin", "\0.bin",
                  "model-00001-of-00002.safetensors"]  # fmt: skip
        for name in names[: int(random.integers(1, len(names)))]:
            document["weight_map"][name] = _one(random, places)
        index.write_text(json.dumps(document))
    else:
        shard = _one(random, sorted(path.glob("*.safetensors")))
        shard.write_bytes(damaged(random, shard.read_bytes(), 4096))
    return path


# --- config.json ----------------------------------------------------------------------------------


def _config(random: Random, good: Path, folder: Path, *names: str) -> Path:
    path = _copied(random, good, folder, *names)
    file = path / "config.json"
    file.write_bytes(written(random, json.loads(file.read_text())))
    return path


def in_own_config(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """hgviz's own config.json, and the package's."""
    return _config(random, good, folder, "own", "plain", "dynamic", "theirs")


def in_other_config(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """The config.json of BERT and GPT-2."""
    return _config(random, good, folder, "bert", "gpt2")


# --- tokenizers -----------------------------------------------------------------------------------


def in_tokenizer(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """tokenizer.json."""
    path = _copied(random, good, folder, "bert", "gpt2")
    file = path / "tokenizer.json"
    document = json.loads(file.read_text())
    if random.integers(4) == 0:
        pattern = {"Regex": _one(random, TEXTS)}
        document["pre_tokenizer"] = {
            "type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False
        }  # fmt: skip
    elif random.integers(2):  # where the structure is, not the vocabulary
        parts = [key for key in document if key != "model"]
        key = _one(random, parts)
        part = document[key]
        document[key] = restated(random, part) if part else value(random)
    file.write_bytes(written(random, document))
    return path


def in_vocabulary(random: Random, good: Path, folder: Path, canary: Path) -> Path:
    """vocab.txt, vocab.json, merges.txt and what stands beside them."""
    path = _copied(random, good, folder, "words", "merges")
    names = ("vocab.txt", "vocab.json", "merges.txt", "tokenizer_config.json", "added_tokens.json")
    file = _one(random, [path / name for name in names if (path / name).exists()])
    if file.suffix == ".json":
        file.write_bytes(written(random, json.loads(file.read_text())))
        return path
    lines = file.read_text(encoding="utf-8").split("\n")
    for _ in range(int(random.integers(1, 4))):
        at = int(random.integers(len(lines)))
        chosen = int(random.integers(0, 4))
        if chosen == 0:
            lines[at] = _one(random, TEXTS)
        elif chosen == 1 and len(lines) > 1:
            del lines[at]
        elif chosen == 2:
            lines[at] = _one(random, lines)
        else:
            lines.insert(at, _one(random, TEXTS) + " " + _one(random, TEXTS))
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    file.write_bytes(damaged(random, data) if random.integers(4) == 0 else data)
    return path


CHANGES = {
    "safetensors": in_safetensors, "torch": in_torch, "shards": in_shards,
    "own config": in_own_config, "other config": in_other_config, "tokenizer": in_tokenizer,
    "vocabulary": in_vocabulary,
}  # fmt: skip
