"""What captures cost and how exact they are: time, memory, bytes, viewports, rounding errors.

Parts: tiles, exactness, texts, grouped, longest. Models have random weights, float32, one
thread; times are processor time, medians, all sides of a ratio taking turns.
"""

import statistics
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
from hgviz.activations import ACTIVATIONS, NORM_EPSILON
from hgviz.maps import TILE, Factors, LazyMap, Rule, pool, recompute_statistics
from hgviz.maps.tiles import one_thread
from hgviz.models import open_model
from hgviz.models.checkpoints import save
from hgviz.models.config import parse_config
from hgviz.store import open_capture, write_capture

ROUNDS = 3
WIDTH = 64  # of a head
VOCABULARY = 256
WARM = 64  # tokens that are read before anything is measured
SHARP = 30  # factor on queries: scores of spread 10, so most rows attend to one or two keys


def random_factors(queries, keys, activation="softmax", norm=None, dtype="float32"):
    """The factors of one causal head with row statistics of 0."""
    rule = Rule(WIDTH**-0.5, (activation,), (norm,), causal=True)
    length = queries.shape[1]
    proof = np.zeros(0, np.int64), np.zeros((1, 0, length), np.float32)
    return Factors(queries, keys, np.zeros((1, length)), rule, *proof, dtype)


def draw(length, seed=0):
    """Random queries and keys (1, length, WIDTH)."""
    random = np.random.default_rng(seed)
    return [random.normal(size=(1, length, WIDTH)).astype(np.float32) for _ in range(2)]


# --- viewports ------------------------------------------------------------------------------------

ROWS, COLUMNS = 800, 1000  # of a viewport
LENGTHS = 8192, 32_768, 131_072
VIEWPORT_LIMITS = "4", "2", "2", "1.5"  # at 1x, 2x, 4x and 8x


def tiles():
    """Time of a viewport that was never read, over that of its matrix products; opening a head.

    The viewport lies in the lower left corner of a causal head.
    """
    heads = {}
    for length in LENGTHS:
        factors = random_factors(*draw(length))
        heads[length] = replace(factors, stat=np.full((1, length), 9.1))
    for zoom, limit in enumerate(VIEWPORT_LIMITS):
        works = {}
        for length, factors in heads.items():
            works[length, "viewport"] = partial(read_viewport, factors, zoom)
            works[length, "products"] = partial(multiply_tiles, factors, zoom)
        taken = in_turn(works, 3 * ROUNDS, time.thread_time)
        ratios = [taken[length, "viewport"] / taken[length, "products"] for length in heads]
        for length, ratio in zip(heads, ratios, strict=True):
            ms = 1000 * taken[length, "viewport"]
            name = f"viewport at {1 << zoom}x of {length:,} ({ms:.1f} ms) / its products"
            line(name, f"{ratio:.2f}", limit)
        line(f"slowest length / fastest, {1 << zoom}x", f"{max(ratios) / min(ratios):.2f}", "1.5")
    open_heads()


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


def open_heads(heads=3, length=LENGTHS[1]):
    """Processor time until a head of an open file is there as a whole."""
    with tempfile.TemporaryDirectory() as folder:
        q, k = (np.repeat(values, heads, 0) for values in draw(length))
        layer = {"q": q, "k": k, "causal": True}
        path = write_capture(Path(folder, "c.h5"), tokens=["a"] * length, layers=[layer])
        taken = []
        for head in range(heads):
            maps = open_capture(path).maps[0]
            start = time.thread_time()
            maps.summary(head)
            assert maps.overview(head, zoom=(length // COLUMNS).bit_length()) is not None
            taken.append(1000 * (time.thread_time() - start))
    line(f"opening a head of {length:,}", f"{statistics.median(taken):.1f} ms", "20")


# --- exactness ------------------------------------------------------------------------------------

TOKENS = 1500
FLOOR = 5e-7  # the least limit: a float32 softmax may happen to be nearer to float64
VIEWPORTS = 39


def exactness():
    """Tiles beside float64 and beside a float32 softmax of the same scores; then bit equality."""
    for dtype in ("float32", "bfloat16", "float16"):
        for spread in (1, 3, 8):
            off, limit = errors(LazyMap(settled(dtype, spread), (0,)))
            line(f"tiles off float64, {dtype}, scores of {spread}", f"{off:.1e}", f"{limit:.1e}")
    for name, smaller in (("", 1), (", scores that cancel", 30)):
        off, limit = errors(LazyMap(normalized(smaller), (0,)))
        line(f"tiles off float64, ymish{name}", f"{off:.1e}", f"{limit:.1e}")
    maps = LazyMap(settled("float32", 3), (0,))
    whole = maps.read(0)
    wrong = sum(
        int((maps.read(0, zoom=zoom) != pool(whole, zoom, "max", False)).sum())
        for zoom in range(1, 6)
    )
    line("cells of zoomed-out reads that are not those of the pooled map", f"{wrong}", "0")
    line(f"pixels that differ in {VIEWPORTS} viewports", f"{moved_pixels(maps)}", "0")


def settled(dtype, spread):
    """A softmax head with the statistic of a float32 softmax, recomputed as captures do."""
    q, k = draw(TOKENS)
    q *= spread
    if dtype == "float16":
        q, k = q.astype(np.float16), k.astype(np.float16)
    elif dtype == "bfloat16":
        q, k = (torch.from_numpy(x).bfloat16().view(torch.uint16).numpy() for x in (q, k))
    factors = random_factors(q, k, dtype=dtype)
    scores, visible = scores_of(factors, 0, np.float32)
    top = np.where(visible, scores, -np.inf).max(-1)
    sums = np.where(visible, np.exp(scores - top[:, None]), 0).sum(-1)
    return recompute_statistics(replace(factors, stat=(top + np.log(sums))[None]))


def normalized(smaller):
    """A head of ymish whose scores are so many times smaller than their queries and keys allow."""
    q, k = draw(TOKENS)
    half = WIDTH // 2
    k[..., half:] = k[..., :half]
    q[..., half:] = q[..., half:] / np.float32(smaller) - q[..., :half] * np.float32(smaller > 1)
    factors = random_factors(q, k, "ymish", "l2")
    return replace(factors, stat=row_norms(*scores_of(factors, 0, np.float32))[None, :, 0])


def errors(maps):
    """(the largest difference of any weight from float64, what it may be).

    The limit is twice the error of the same weights in float32.
    """
    off = single = 0.0
    for place, head in enumerate(maps.heads):
        exact, rounded = (dense(maps.factors, place, kind) for kind in (np.float64, np.float32))
        off = max(off, np.abs(maps.read(head) - exact).max())
        single = max(single, np.abs(rounded - exact).max())
    return off, max(2 * single, FLOOR)


def dense(factors, place, kind):
    """The map of a head of softmax or ymish (queries, keys), computed in one number format."""
    scores, visible = scores_of(factors, place, kind)
    if factors.rule.activations[place] == "ymish":
        norms = row_norms(scores, visible) + kind(NORM_EPSILON)
        return ACTIVATIONS["ymish"].apply(np.where(visible, scores, 0) / norms, None, np)
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def row_norms(scores, visible):
    """(queries, 1) The Euclidean lengths of rows of scores."""
    return np.sqrt((np.where(visible, scores, 0) ** 2).sum(-1, keepdims=True))


def scores_of(factors, place, kind):
    """Scaled scores of a head in one number format, and which of them are visible."""
    q, k = factors.q[place], factors.k[place]
    if factors.dtype == "bfloat16":
        q, k = ((bits.astype(np.uint32) << 16).view(np.float32) for bits in (q, k))
    scores = q.astype(kind) @ k.astype(kind).T * kind(factors.rule.scale)
    return scores, factors.rule.sees(*(np.arange(size) for size in scores.shape))


def moved_pixels(maps):
    """How many pixels of viewports at random places are not those of the whole map."""
    random, wrong, side = np.random.default_rng(0), 0, TILE + 77
    for zoom in range(3):
        whole = maps.read(0, zoom=zoom)
        for _ in range(VIEWPORTS // 3):
            top, left = random.integers(0, (TOKENS >> zoom) - side, 2).tolist()
            rows, columns = ((at << zoom, (at + side) << zoom) for at in (top, left))
            part = LazyMap(maps.factors, (0,)).read(0, rows, columns, zoom)
            wrong += int((part != whole[top:, left:][: part.shape[0], : part.shape[1]]).sum())
    return wrong


# --- long texts -----------------------------------------------------------------------------------


class Text(NamedTuple):
    """A long text and the random model that reads it.

    groups: key groups of a Llama of transformers, whose forward pass is sdpa; 0: the heads of
    hgviz's own decoder.
    """

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
    """All lines of one text."""
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
            write_decoder(folder, text, SHARP)
            compare_times(folder, text, forward, limits)


def compare_times(folder, text, forward, limits):
    """Captures in memory or to a file, over the forward pass."""
    works = {name: prepared(folder, text.length, name) for name in (forward, *limits)}
    taken = in_turn(works, text.rounds, time.process_time)
    line("forward pass", f"{taken[forward]:.2f} s")
    for name, limit in limits.items():
        line(f"capture ({name}) / forward", f"{taken[name] / taken[forward]:.2f}", limit)


def prepared(folder, length, name, device="cpu", dtype="float32", vocabulary=VOCABULARY):
    """A function that runs a forward pass or a capture of a random text, warmed up."""
    torch.set_num_threads(1)
    ids = np.random.default_rng(0).integers(0, vocabulary, length)
    if name == "sdpa":
        import transformers

        auto = transformers.AutoModelForCausalLM
        number = getattr(torch, dtype)
        net = auto.from_pretrained(folder / "model", attn_implementation="sdpa", dtype=number)
        net.to(device).eval()

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

    run(ids=ids[:WARM])
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
    size, parts, weights = bytes_of(path)
    size -= parts["output"]
    keys = text.groups or text.heads
    factors = 4 * text.layers * (text.heads + keys) * text.length * WIDTH
    pyramid = parts["max"] + parts["mean"]
    line("file without logits", f"{size / 1e6:.1f} MB")
    line("it / q and k", f"{size / factors:.3f}", "1.15" if text.groups else "")
    if not text.groups:
        long = text.length == LENGTHS[1]
        line("it without the pyramid / q and k", f"{(size - pyramid) / factors:.3f}", "1.4")
        line("float16 maps / it", f"{2 * weights / size:.0f}", "at least 80" if long else "")


def bytes_of(path):
    """(size of a file, {name of a dataset or group of a layer: stored bytes}, weights of all maps)

    The logits are under "output".
    """
    parts, weights = {"output": 0, "thumb": 0, "max": 0, "mean": 0}, 0

    def add(name, data):
        if isinstance(data, h5py.Dataset):
            names = name.split("/")
            part = names[2] if names[0] == "layers" else names[0]
            parts[part] = parts.get(part, 0) + data.id.get_storage_size()

    with h5py.File(path) as file:
        file.visititems(add)
        for layer in file["layers"].values():
            weights += layer["stat"].size * layer["k"].shape[1]
    return path.stat().st_size, parts, weights


if __name__ == "__main__":
    run_parts({
        "tiles": tiles, "exactness": exactness, "texts": texts, "grouped": grouped,
        "longest": longest,
    })  # fmt: skip
