"""What captures cost: time, memory, bytes, and the time to read viewports.

Parts: tiles, texts, grouped, longest. Models have random weights, float32, one thread; times are
processor time, medians, all sides of a ratio taking turns.
"""

import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import torch
from table import heading, in_turn, line, memory_of, run_parts

from hgviz import tasks
from hgviz.maps import TILE, Factors, LazyMap, Rule
from hgviz.maps.tiles import one_thread
from hgviz.models import open_model
from hgviz.models.checkpoints import save
from hgviz.models.config import parse_config

ROUNDS = 3
WIDTH = 64  # of a head
VOCABULARY = 256


def random_factors(queries, keys):
    """The factors of one causal softmax head with row statistics of 0."""
    rule = Rule(WIDTH**-0.5, ("softmax",), (None,), causal=True)
    length = queries.shape[1]
    proof = np.zeros(0, np.int64), np.zeros((1, 0, length), np.float32)
    return Factors(queries, keys, np.zeros((1, length)), rule, *proof, "float32")


def draw(length):
    """Random queries and keys (1, length, WIDTH)."""
    random = np.random.default_rng(0)
    return [random.normal(size=(1, length, WIDTH)).astype(np.float32) for _ in range(2)]


ROWS, COLUMNS = 800, 1000  # of a viewport
LENGTHS = 8192, 32_768, 131_072
VIEWPORT_LIMITS = "4", "2", "2", "1.5"  # at 1x, 2x, 4x and 8x


def tiles():
    """Time to read a viewport at the lower left of a causal head, over that of its products."""
    heads = {}
    for length in LENGTHS:
        factors = random_factors(*draw(length))
        heads[length] = replace(factors, stat=np.full((1, length), 9.1))
    for zoom, limit in enumerate(VIEWPORT_LIMITS):
        works = {}
        for length, factors in heads.items():
            works[length, "viewport"] = partial(read_viewport, factors, zoom)
            works[length, "products"] = partial(multiply_tiles, factors, zoom)
        seconds = in_turn(works, 3 * ROUNDS, time.thread_time)
        ratios = [seconds[length, "viewport"] / seconds[length, "products"] for length in heads]
        for length, ratio in zip(heads, ratios, strict=True):
            ms = 1000 * seconds[length, "viewport"]
            name = f"viewport at {1 << zoom}x of {length:,} ({ms:.1f} ms) / its products"
            line(name, f"{ratio:.2f}", limit)
        line(f"slowest length / fastest, {1 << zoom}x", f"{max(ratios) / min(ratios):.2f}", "1.5")


def read_viewport(factors, zoom):
    """Read the lower left corner of a map that has read nothing yet."""
    length = factors.q.shape[1]
    rows = (length - (ROWS << zoom), length)
    LazyMap(factors, (0,)).read(0, rows, (0, COLUMNS << zoom), zoom)


def multiply_tiles(factors, zoom):
    """Compute the products of the same tiles and nothing else."""
    q, k, length = factors.q[0], factors.k[0], factors.q.shape[1]
    with one_thread():
        for row in range((length - (ROWS << zoom)) // TILE * TILE, length, TILE):
            for column in range(0, min(COLUMNS << zoom, row + TILE), TILE):
                q[row : row + TILE] @ k[column : column + TILE].T


class Text(NamedTuple):
    """The size of a text and of its random model: a Llama with key groups, or hgviz's decoder."""

    length: int
    layers: int
    heads: int
    groups: int = 0
    rounds: int = ROUNDS


def texts():
    """Time, memory and bytes of captures against the forward pass, for hgviz's own decoder."""
    for length in LENGTHS[:2]:
        measure_text(Text(length, 2, 4))


def grouped():
    """The same for a Llama of transformers whose heads share keys."""
    measure_text(Text(8192, 8, 8, 2))


def longest():
    """The same, once, at the lengths for which the limits of memory are promised."""
    measure_text(Text(131_072, 1, 2, rounds=1))
    measure_text(Text(65_536, 2, 8, 2, rounds=1))


def measure_text(text):
    """Print the rows of one text."""
    kind = f"Llama, {text.groups} key groups, {text.layers} layers" if text.groups else "decoder"
    heading(f"{text.length:,} tokens, {kind}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (write_llama if text.groups else write_decoder)(folder, text)
        forward = "sdpa" if text.groups else "forward"
        limits = {"file": "1.6"} if text.groups else {"memory": "1.3", "file": "2"}
        compare_times(folder, text, forward, limits)
        plain, captured = (
            memory_of(prepared, folder, text.length, name) / 1e6 for name in (forward, "file")
        )
        factors = 2 * text.heads * text.length * WIDTH * 4 / 1e6
        limit = 1.5 * plain if text.groups else plain + factors + 200
        if text.groups and text.length > LENGTHS[1]:
            limit = 8000
        line("memory of the forward pass", f"{plain:.0f} MB")
        line("memory of the capture", f"{captured:.0f} MB", f"{limit:.0f} MB")
        compare_sizes(folder / "c.h5", text)
        if not text.groups and text.rounds > 1:
            heading(f"{text.length:,} tokens, sharp heads")
            write_decoder(folder, text, 30)  # most rows attend to one or two keys
            compare_times(folder, text, forward, limits)


def compare_times(folder, text, forward, limits):
    """Captures in memory or to a file, over the forward pass."""
    works = {name: prepared(folder, text.length, name) for name in (forward, *limits)}
    seconds = in_turn(works, text.rounds, time.process_time)
    line("forward pass", f"{seconds[forward]:.2f} s")
    for name, limit in limits.items():
        line(f"capture ({name}) / forward", f"{seconds[name] / seconds[forward]:.2f}", limit)


def prepared(folder, length, name, device="cpu", dtype="float32"):
    """A function that runs a forward pass or a capture of a random text, warmed up."""
    torch.set_num_threads(1)
    ids = np.random.default_rng(0).integers(0, VOCABULARY, length)
    if name == "sdpa":
        import transformers

        net = (
            transformers.AutoModelForCausalLM.from_pretrained(
                folder / "model", attn_implementation="sdpa", dtype=getattr(torch, dtype)
            )
            .eval()
            .to(device)
        )

        @torch.inference_mode()
        def run(ids=ids):
            net(torch.tensor(ids, device=device)[None], use_cache=False)
    else:
        model = open_model(folder / "model", device, dtype)
        out = folder / "c.h5" if name == "file" else None

        def run(ids=ids):
            if name == "forward":
                model.run(ids)
            else:
                tasks.capture(model, model.from_ids(ids), out, force=True)

    run(ids=ids[:64])  # warms up
    return run


def write_decoder(folder, text, sharper=1):
    """A checkpoint of hgviz's decoder, with queries so many times larger."""
    width = text.heads * WIDTH
    config = parse_config({
        "family": "transformer", "form": "decoder", "vocab_size": VOCABULARY, "d_model": width,
        "n_heads": text.heads, "d_ff": 4 * width, "n_layers": text.layers,
        "max_positions": text.length,
    })  # fmt: skip
    torch.manual_seed(0)
    weights = config.build().state_dict()
    for name, values in weights.items():
        values *= sharper if ".attn.q." in name else 1
    save(folder / "model", config, weights)


def write_llama(folder, text):
    """A Llama as save_pretrained leaves it."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=text.heads * WIDTH, num_hidden_layers=text.layers,
        num_attention_heads=text.heads, num_key_value_heads=text.groups,
        intermediate_size=2 * text.heads * WIDTH, max_position_embeddings=text.length,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder / "model")


def compare_sizes(path, text):
    """Bytes of the file without logits, against q and k and against maps in float16."""
    with h5py.File(path) as file:
        layers = file["layers"].values()
        size = path.stat().st_size - stored_bytes(file["output"])
        groups = [layer[name] for layer in layers for name in ("max", "mean") if name in layer]
        pyramid = sum(map(stored_bytes, groups))
    heads = text.heads + (text.groups or text.heads)
    factors = 4 * text.layers * heads * text.length * WIDTH
    line("file without logits", f"{size / 1e6:.1f} MB")
    line("it / q and k", f"{size / factors:.3f}", "1.15" if text.groups else "")
    if not text.groups:
        maps = 2 * text.layers * text.heads * text.length**2
        limit = "at least 80" if text.length == LENGTHS[1] else ""
        line("it without the pyramid / q and k", f"{(size - pyramid) / factors:.3f}", "1.4")
        line("float16 maps / it", f"{maps / size:.0f}", limit)


def stored_bytes(group):
    """Bytes that the datasets of a group take in the file."""
    sizes = []
    group.visititems(lambda _, item: sizes.append(item.id.get_storage_size())
                     if isinstance(item, h5py.Dataset) else None)  # fmt: skip
    return sum(sizes)


if __name__ == "__main__":
    run_parts(tiles=tiles, texts=texts, grouped=grouped, longest=longest)
