"""Models of transformers, opened by hgviz: are outputs and maps those of transformers?

    python benchmarks/zoo.py            every type, tiny and random: some twenty minutes
    python benchmarks/zoo.py llama t5   these types

Rows of types go to docs/reference/models.tsv, from which docs/reference.py makes a page. A type
counts by its best class that hgviz opens. It is exact where outputs agree within 1e-4 of the
largest, and every map within 1e-5 with those of eager attention; where transformers returns none,
with the softmaxes of its eager code, in order.
"""

import csv
import inspect
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from table import line
from torch.overrides import TorchFunctionMode
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from hgviz import tasks
from hgviz.core import HgvizError, Signal
from hgviz.maps import LazyMap
from hgviz.models import open_model
from hgviz.models.signals import prompt_of_signal
from tests.models.zoo import write

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")

TABLE = Path(__file__).parents[1] / "docs" / "reference" / "models.tsv"
TEXT_HEADS = (
    "SEQ_TO_SEQ_CAUSAL_LM", "CAUSAL_LM", "MASKED_LM", "SEQUENCE_CLASSIFICATION",
    "TOKEN_CLASSIFICATION", "QUESTION_ANSWERING", "IMAGE_CLASSIFICATION", "AUDIO_CLASSIFICATION",
)  # fmt: skip
HEADS = (
    *TEXT_HEADS[:3], "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", *TEXT_HEADS[3:], "SPEECH_SEQ_2_SEQ",
    "CTC",
)  # fmt: skip
PATIENCE = 120  # seconds for a type
OUTPUTS, MAPS = 1e-4, 1e-5
STATUS = (  # the best first
    "lazy",  # exact, all maps computed from queries and keys
    "both",  # exact, some maps computed and some stored
    "dense",  # exact, all maps stored
    "outputs",  # equal outputs, and no maps to compare
    "differs", "refused",
    "unbuilt",  # transformers does not build it so small here
    "part",  # of a model, without a class of its own
    "slow",  # not done in time
)  # fmt: skip
EXACT = ("lazy", "both", "dense")


def classes(kind, heads=HEADS, rest=True):
    """Names of the classes of a type, those of the first heads first."""
    names = [*(f"MODEL_FOR_{head}_MAPPING_NAMES" for head in heads), "MODEL_MAPPING_NAMES"]
    if rest:
        names += [name for name in dir(modeling_auto) if re.fullmatch("MODEL_.*_NAMES", name)]
    found = (getattr(modeling_auto, name).get(kind) or () for name in names)
    return list(
        dict.fromkeys(name for one in found for name in ([one] if type(one) is str else one))
    )


def try_type(kind):
    """The row of a type: its best class, and how many of its other classes open."""
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity(50)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    best = (kind, "", "part", "", "", "")
    for name in classes(kind):
        with tempfile.TemporaryDirectory() as folder:
            status = "unbuilt"
            try:
                path = write(Path(folder) / "model", kind, name)
                status = "refused"
                row = kind, name, *compare(path, name)
            except Exception as error:
                row = kind, name, status, "", "", message(error)
        if best[2] == "part" or STATUS.index(row[2]) < STATUS.index(best[2]):
            best = row
        if row[2] in EXACT:
            return *best, other_classes(kind, name)
    return *best, ""


def other_classes(kind, name):
    """How many other classes of a type open, and the names of those that do not.

    Classes that transformers cannot build from a configuration of this type do not count.
    """
    opened, refused = 0, []
    for other in set(classes(kind, TEXT_HEADS, rest=False)) - {name}:
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = write(Path(folder) / "model", kind, other)
            except Exception:
                continue
            try:
                open_model(path)
                opened += 1
            except Exception:
                refused.append(other)
    return "; ".join([f"{opened}", *sorted(refused)])


def message(error):
    """What an error says, in one line."""
    if isinstance(error, HgvizError):
        return error.what.partition(": ")[2] or error.what
    words = " ".join(str(error).split())
    if needed := re.search(r"requires the (\w+) library", words):
        return f"Needs the package {needed[1]}, which is not installed."
    return f"{type(error).__name__}: {words}"[:200]


def ours(path, tokens=23, device="cpu", dtype="float32"):
    """hgviz's model and capture of random inputs, and the same inputs for transformers."""
    model = open_model(path, device, dtype)
    random = torch.Generator().manual_seed(1)
    ids, target = (torch.randint(5, 110, (1, n), generator=random) for n in (tokens, 17))
    ids[0, -1] = getattr(model.module.net.config, "eos_token_id", None) or ids[0, -1]
    inputs = {"input_ids": ids}
    if model.spec.modality == "text":
        source = model.from_ids(ids[0].numpy())
    else:
        sample = model.module.example(1, 1)
        signal = (sample if sample.source is None else sample.source).signal
        source = prompt_of_signal(Signal(signal[0].cpu().numpy()), model.module.positions(signal))
        inputs = {model.module.signal: signal}
    if model.spec.needs_target:
        inputs["decoder_input_ids"] = target
    second = model.from_ids(target[0].numpy()) if model.spec.needs_target else None
    return model, tasks.capture(model, source, target=second), inputs


def eager(path, name, model, inputs, device="cpu", dtype="float32"):
    """(outputs, maps that transformers returns, softmaxes of its code) of eager attention."""
    kind = getattr(transformers, name)
    net = kind.from_pretrained(path, attn_implementation="eager", dtype=getattr(torch, dtype))
    net = net.to(device).eval()
    if model.config.class_name != name:  # of a folder such as CLIP's, the model that reads texts
        net = net.text_model
    takes = inspect.signature(net.forward).parameters
    inputs = {key: value.to(device, net.dtype if value.is_floating_point() else None)
              for key, value in inputs.items()}  # fmt: skip
    if "use_cache" in takes:
        inputs["use_cache"] = False
    if "bbox" in takes:
        inputs["bbox"] = torch.zeros(1, inputs["input_ids"].shape[1], 4, dtype=torch.long)
    with torch.inference_mode():
        output = net(**inputs)
        with Softmaxes() as softmaxes:
            net(**inputs)
        try:
            returned = net(**inputs, output_attentions=True)
            maps = subtract(net, returned_maps(returned, model.spec.two_texts))
        except Exception:
            maps = []
    return np.squeeze(main_output(output).float().cpu().numpy()), maps, softmaxes.maps


def compare(path, name):
    """(status, number of maps, layers without maps, explanation) beside transformers."""
    model, capture, inputs = ours(path)
    outputs, returned, softmaxes = eager(path, name, model, inputs)
    without = "; ".join(f"{one}: {why}" for one, why in getattr(model.config, "unattending", ()))
    found = np.squeeze(capture.logits)
    if found.shape != outputs.shape:
        return "refused", "", without, f"outputs are {found.shape}, those wanted {outputs.shape}"
    apart = np.abs(found - outputs).max()
    if not apart <= OUTPUTS * max(1.0, float(np.abs(outputs).max())):
        return "differs", "", without, f"outputs by {apart:.1e}"
    maps = dense_maps(capture)
    lazy = sum(isinstance(one, LazyMap) for one in capture.maps)
    status = "lazy" if lazy == len(maps) else "both" if lazy else "dense"
    if unmatched(maps, returned) == 0:
        return status, f"{len(maps)}", without, ""
    if (rest := unmatched(maps, softmaxes)) is not None:
        more = f", {rest} others of which are not seen" if rest else ""
        said = f"beside the softmaxes of its eager code{more}"
        return status, f"{len(maps)}", without, said
    shapes = dict(Counter(one.shape for one in softmaxes))
    said = f"{len(maps)} maps, not all of which are among those of transformers: {shapes}"
    return "outputs", f"{len(maps)}", without, said


def dense_maps(capture):
    """(heads, queries, keys) of every layer."""
    return [np.stack([one.read(head) for head in one.heads]) for one in capture.maps]


class Softmaxes(TorchFunctionMode):
    """Keeps what softmaxes (B, H, Q, K) or (B * H, Q, K) give for one text."""

    def __init__(self):
        super().__init__()
        self.maps = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        output = func(*args, **(kwargs or {}))
        if func in (F.softmax, torch.softmax, torch.Tensor.softmax) and output.dim() in (3, 4):
            values = output.detach().float().cpu().numpy()
            self.maps.append((values[0] if output.dim() == 4 else values).copy())
        return output


def main_output(output):
    """What hgviz takes as the output of a model that gives several things."""
    for pair in (("start_logits", "end_logits"), ("image_embeds", "text_embeds")):
        if all(getattr(output, name, None) is not None for name in pair):
            return torch.stack([getattr(output, name) for name in pair], 1)
    for name in ("logits", "prediction_logits", "last_hidden_state"):
        if getattr(output, name, None) is not None:
            return getattr(output, name)
    return output[0]


def returned_maps(output, two_texts):
    """The maps of an output of transformers, in order of computation."""
    maps = output.get("attentions") or ()
    if two_texts:
        pairs = zip(output.get("decoder_attentions") or (), output.get("cross_attentions") or (),
                    strict=False)  # fmt: skip
        maps = [*(output.get("encoder_attentions") or ()), *(one for pair in pairs for one in pair)]
    return [one.float().cpu().numpy()[0] for one in maps if hasattr(one, "dim") and one.dim() == 4]


def subtract(net, maps):
    """The maps of a model; of differential attention, the first half minus the second."""
    parts = [part for part in net.modules() if type(part).__name__ == "DiffLlamaAttention"]
    for layer, part in enumerate(parts):
        plus, minus = np.split(maps[layer], 2)
        pairs = (part.lambda_q1, part.lambda_k1), (part.lambda_q2, part.lambda_k2)
        first, second = ((q * k).sum().exp().item() for q, k in pairs)
        maps[layer] = plus - (first - second + part.lambda_init) * minus
    return maps


def unmatched(maps, theirs):
    """How many of their maps are none of ours, which must be among them in order; else None."""
    at = 0
    for one in maps:
        while at < len(theirs) and distance(one, theirs[at]) > MAPS:
            at += 1
        at += 1
    return len(theirs) - len(maps) if at <= len(theirs) else None


def distance(one, other):
    """The largest difference of two maps (H, Q, K); infinite where their shapes differ.

    Sinks are a column more in the second, or are taken from its rows afterwards. Unused rows and
    columns at its end do not count.
    """
    if other.shape == (*one.shape[:2], one.shape[2] + 1):
        other = other[..., :-1]
    rows, columns = one.shape[1:]
    if not other[:, :rows, columns:].any():
        other = other[:, :rows, :columns]
    if one.shape != other.shape:
        return np.inf
    apart = float(np.abs(one - other).max())
    sums = one.sum(-1, keepdims=True)
    if apart > MAPS and sums.min() > 0 and sums.max() <= 1 + MAPS and np.allclose(other.sum(-1), 1):
        apart = float(np.abs(one / sums - other).max())
    return apart


PRELOADED = ["hgviz.models.pretrained", "hgviz.tasks", "hgviz.models.trials", "tests.models.zoo"]


def types(kinds=()):
    """Try types, two at a time, each in a process that ends when it takes too long."""
    rows = {}
    if kinds:
        with TABLE.open(encoding="utf-8", newline="") as file:
            rows = {row[0]: row for row in list(csv.reader(file, delimiter="\t"))[2:]}
    with ThreadPoolExecutor(2) as pool:
        for row in pool.map(try_type_in_time, kinds or sorted(CONFIG_MAPPING_NAMES)):
            rows[row[0]] = row
            line(row[0], "  ".join(row[1:]))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["transformers", transformers.__version__])
        writer.writerow(("type", "class", "found", "maps", "without", "why", "others"))
        writer.writerows(rows[kind] for kind in sorted(rows))
    counts = Counter(row[2] for row in rows.values())
    exact = sum(counts[status] for status in EXACT)
    line("types of transformers that are exact", f"{exact}", "at least 380")
    line("types whose outputs or maps differ", f"{counts['differs']}", "0")


def try_type_in_time(kind):
    """The row of a type, tried in a process that is stopped after PATIENCE seconds."""
    context = get_context("forkserver")  # whose processes have no threads that hold a lock
    context.set_forkserver_preload(PRELOADED)
    queue = context.Queue()
    process = context.Process(target=put_row, args=(kind, queue))
    process.start()
    try:
        return queue.get(timeout=PATIENCE)
    except Exception:
        return kind, "", "slow", "", "", "", ""
    finally:
        process.kill()
        process.join()


def put_row(kind, queue):
    """Put the row of a type into a queue."""
    queue.put(try_type(kind))


if __name__ == "__main__":
    types([name for name in sys.argv[1:] if name != "types"])
