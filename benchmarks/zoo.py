"""Every model type that the package transformers knows, tiny and random: does hgviz open it, and
are its outputs and maps those of transformers?

    python benchmarks/zoo.py                 all of them, two at a time: some twenty minutes
    python benchmarks/zoo.py llama t5        these

Rows are written to docs/reference/models.tsv as they are found, in place of those before; docs/
reference.py makes a page of them.

A type counts by its best class that hgviz opens. It is exact where outputs agree within 1e-4 of the
largest, and every map within 1e-5 with those that transformers gives with eager attention and
output_attentions; where it gives none or others, with the softmaxes (B, H, Q, K) of its eager code,
in order. "lazy" where maps are computed from queries and keys, "dense" where weights are kept,
"both" where each is found.
"""

from __future__ import annotations

import argparse
import csv
import inspect
import multiprocessing
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

from table import line

HERE = Path(__file__).parents[1]
sys.path[:0] = [str(HERE)]
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")

TABLE = HERE / "docs" / "reference" / "models.tsv"
COLUMNS = ("type", "class", "found", "maps", "without", "why", "others")
FORMS = ("SEQ_TO_SEQ_CAUSAL_LM", "CAUSAL_LM", "MASKED_LM", "SEQUENCE_CLASSIFICATION",
         "TOKEN_CLASSIFICATION", "QUESTION_ANSWERING", "IMAGE_CLASSIFICATION",
         "AUDIO_CLASSIFICATION")  # fmt: skip
TOKENS, WRITTEN = 23, 17
PATIENCE = 120  # seconds for a type
OUTPUTS, MAPS = 1e-4, 1e-5
MAPPINGS = (
    "SEQ_TO_SEQ_CAUSAL_LM", "CAUSAL_LM", "MASKED_LM", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM",
    "SEQUENCE_CLASSIFICATION", "TOKEN_CLASSIFICATION", "QUESTION_ANSWERING",
    "IMAGE_CLASSIFICATION", "AUDIO_CLASSIFICATION", "SPEECH_SEQ_2_SEQ", "CTC",
)  # fmt: skip
SAID = {  # the best first
    "lazy": "exact, lazy", "both": "exact, lazy or dense", "dense": "exact, dense",
    "outputs": "outputs equal, no maps to compare", "differs": "differs", "refused": "refused",
    "unbuilt": "not built so small here", "part": "part of a model, without a class of its own",
    "slow": "not done in time",
}  # fmt: skip
EXACT = ("lazy", "both", "dense")


def classes(kind, tables=()):
    """The names of the classes of a type, the first to try first; of some tables alone."""
    from transformers.models.auto import modeling_auto

    found = []
    first = [*(f"MODEL_FOR_{one}_MAPPING_NAMES" for one in MAPPINGS), "MODEL_MAPPING_NAMES"]
    rest = [one for one in dir(modeling_auto) if re.fullmatch("MODEL_.*_NAMES", one)]
    for table in tables or (*first, *rest):
        one = getattr(modeling_auto, table).get(kind)
        found += [one] if isinstance(one, str) else list(one or ())
    return list(dict.fromkeys(found))


def tried(kind):
    """(type, class, status, maps, layers without maps, what was said) of its best class, and what
    others says of a type that opens."""
    warnings.simplefilter("ignore")
    import torch
    import transformers

    transformers.utils.logging.set_verbosity(50)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    from tests.models.zoo import write

    best = (kind, "", "part", "", "", "")
    for name in classes(kind):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            try:
                write(path, kind, name)
            except Exception as error:
                row = kind, name, "unbuilt", "", "", in_a_line(error)
            else:
                try:
                    row = kind, name, *compared(path, name)
                except Exception as error:
                    row = kind, name, "refused", "", "", in_a_line(error)
        order = list(SAID)
        if best[2] == "part" or order.index(row[2]) < order.index(best[2]):
            best = row
        if row[2] in EXACT:
            break
    return *best, others(kind, best[1]) if best[2] in EXACT else ""


def others(kind, name):
    """How many of the other classes of a type, as people save them, open, and which do not: base
    models, language models, classifiers, and those that answer from a text. Those that transformers
    cannot build of a configuration of this type are none."""
    from hgviz.models import open_model
    from tests.models.zoo import write

    tables = ("MODEL_MAPPING_NAMES", *(f"MODEL_FOR_{one}_MAPPING_NAMES" for one in FORMS))
    opened, shut = 0, []
    for one in classes(kind, tables):
        if one == name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = write(Path(folder) / "model", kind, one)
            except Exception:
                continue
            try:
                open_model(path)
                opened += 1
            except Exception:
                shut.append(one)
    return "; ".join([f"{opened}", *shut])


def in_a_line(error):
    """What an error says: why, of those of hgviz."""
    from hgviz.core import HgvizError

    if isinstance(error, HgvizError):
        return error.what.partition(": ")[2] or error.what
    words = " ".join(str(error).split())
    if needed := re.search(r"requires the (\w+) library", words):
        return f"Needs the package {needed[1]}, which is not installed."
    return f"{type(error).__name__}: {words}"[:200]


def softmaxes():
    """A mode that keeps what softmaxes (B, H, Q, K) or (B * H, Q, K) give of one text."""
    import torch.nn.functional as F
    from torch import Tensor, softmax
    from torch.overrides import TorchFunctionMode

    class Softmaxes(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.found = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            made = func(*args, **(kwargs or {}))
            if func in (F.softmax, softmax, Tensor.softmax) and made.dim() in (3, 4):
                one = made.detach().float().numpy()
                self.found.append((one[0] if made.dim() == 4 else one).copy())
            return made

    return Softmaxes()


def compared(path, name):
    """(status, maps, layers without maps, what was said) of a model beside transformers."""
    import numpy as np
    import torch
    import transformers

    from hgviz import tasks
    from hgviz.core import Signal
    from hgviz.maps import LazyMap
    from hgviz.models import open_model
    from hgviz.models.signals import prompt_of_signal

    random = torch.Generator().manual_seed(1)
    ids, written = (torch.randint(5, 110, (1, n), generator=random) for n in (TOKENS, WRITTEN))
    model = open_model(path)
    both = model.spec.two_texts
    ids[0, -1] = getattr(model.module.net.config, "eos_token_id", None) or ids[0, -1]
    target = model.from_ids(written[0].numpy()) if model.spec.needs_target else None
    if model.spec.modality == "text":
        read, source = {"input_ids": ids}, model.from_ids(ids[0].numpy())
    else:
        sample = model.module.example(1, 1)
        signal = (sample if sample.source is None else sample.source).signal
        source = prompt_of_signal(Signal(signal[0].numpy()), model.module.positions(signal))
        read = {model.module.signal: signal}
    capture = tasks.capture(model, source, target=target)
    other = getattr(transformers, name).from_pretrained(path, attn_implementation="eager").eval()
    if model.config.class_name != name:  # of a folder such as CLIP's, the model that reads texts
        other = other.text_model
    takes = inspect.signature(other.forward).parameters
    given = {**read, **({"decoder_input_ids": written} if model.spec.needs_target else {})}
    if "use_cache" in takes:
        given["use_cache"] = False
    if "bbox" in takes:
        given["bbox"] = torch.zeros(1, TOKENS, 4, dtype=torch.long)
    seen = softmaxes()
    with torch.no_grad():
        out = other(**given)
        with seen:
            other(**given)
        try:
            told = subtracted(other, given_by(other(**given, output_attentions=True), both))
        except Exception:
            told = []
    logits = main_output(out)
    found, logits = np.squeeze(capture.logits), np.squeeze(logits.float().numpy())
    without = "; ".join(f"{one}: {why}" for one, why in getattr(model.config, "unattending", ()))
    if found.shape != logits.shape:
        return "refused", "", without, f"outputs are {found.shape}, those wanted {logits.shape}"
    apart = np.abs(found - logits).max()
    if not apart <= OUTPUTS * max(1.0, float(np.abs(logits).max())):
        return "differs", "", without, f"outputs by {apart:.1e}"
    ours = [np.stack([one.read(head) for head in one.heads]) for one in capture.maps]
    lazy = sum(isinstance(one, LazyMap) for one in capture.maps)
    status = "lazy" if lazy == len(ours) else "both" if lazy else "dense"
    for theirs, whose in ((told, ""), (seen.found, "beside the softmaxes of its eager code")):
        rest = left(ours, theirs)
        if rest is not None and not (rest and not whose):
            more = f", {rest} others of which are not seen" if rest else ""
            return status, f"{len(ours)}", without, whose + more
    shapes = dict(Counter(one.shape for one in seen.found))
    said = f"{len(ours)} maps, not all of which are among those of transformers: {shapes}"
    return "outputs", f"{len(ours)}", without, said


def left(ours, theirs):
    """How many of their maps are none of ours, which have to be among them in order; else None."""
    at = 0
    for one in ours:
        while at < len(theirs) and distance(one, theirs[at]) > MAPS:
            at += 1
        at += 1
    return len(theirs) - len(ours) if at <= len(theirs) else None


def main_output(out):
    """What hgviz takes as the output of a model that gives several things."""
    import torch

    for pair in (("start_logits", "end_logits"), ("image_embeds", "text_embeds")):
        if all(getattr(out, name, None) is not None for name in pair):
            return torch.stack([getattr(out, name) for name in pair], 1)
    for name in ("logits", "prediction_logits", "last_hidden_state"):
        if getattr(out, name, None) is not None:
            return getattr(out, name)
    return out[0]


def given_by(out, both):
    """The maps that transformers gives, in order of computation."""
    if both:
        pairs = zip(out.get("decoder_attentions") or (), out.get("cross_attentions") or (),
                    strict=False)  # fmt: skip
        found = [*(out.get("encoder_attentions") or ()), *(one for pair in pairs for one in pair)]
    else:
        found = out.get("attentions") or ()
    return [one.float().numpy()[0] for one in found if hasattr(one, "dim") and one.dim() == 4]


def subtracted(net, maps):
    """The maps of a model; of differential attention what is left of the first half of each layer's
    softmaxes when the second is subtracted."""
    parts = [one for one in net.modules() if type(one).__name__ == "DiffLlamaAttention"]
    for layer, one in enumerate(parts):
        plus, minus = maps[layer][: len(maps[layer]) // 2], maps[layer][len(maps[layer]) // 2 :]
        pairs = (one.lambda_q1, one.lambda_k1), (one.lambda_q2, one.lambda_k2)
        first, second = ((q * k).sum().exp().item() for q, k in pairs)
        maps[layer] = plus - (first - second + one.lambda_init) * minus
    return maps


def distance(one, other):
    """How far two maps (H, Q, K) are apart; infinite where they are of other shapes. What sinks
    take is a column more in the second, or taken from its rows only after they are given. Rows and
    columns at its end that the others do not look at are no part of it."""
    import numpy as np

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


def child(kind, queue):
    queue.put(tried(kind))


context = multiprocessing.get_context("forkserver")  # which has no threads that hold a lock
context.set_forkserver_preload([
    "torch", "transformers", "transformers.modeling_utils", "transformers.generation",
    "transformers.models.auto.modeling_auto", "transformers.models.clip.modeling_clip",
    "transformers.models.llama.modeling_llama", "transformers.models.bert.modeling_bert",
    "hgviz.models.pretrained", "hgviz.models.model", "hgviz.tasks", "hgviz.maps",
    "hgviz.models.trials", "tests.models.zoo",
])  # fmt: skip


def patiently(kind):
    """The same in a process of its own, which is ended where it takes too long."""
    queue = context.Queue()
    process = context.Process(target=child, args=(kind, queue))
    process.start()
    try:
        found = queue.get(timeout=PATIENCE)
    except Exception:
        found = kind, "", "slow", "", "", "", ""
    process.kill()
    process.join()
    return found


def rows_of(path):
    """The rows of a table by their types."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    return {row[0]: row for row in rows[2:]}


def written(path, rows):
    """Write a table, by type; its first line says of which version of transformers it is."""
    import transformers

    with path.open("w", encoding="utf-8", newline="") as file:
        made = csv.writer(file, delimiter="\t", lineterminator="\n")
        made.writerow(["transformers", transformers.__version__])
        made.writerows([COLUMNS, *(rows[kind] for kind in sorted(rows))])


def main():
    """Try them; print a row for each and how many there are of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("types", nargs="*")
    parser.add_argument("--out", type=Path, default=TABLE, help="the table")
    options = parser.parse_args()
    from concurrent.futures import ThreadPoolExecutor

    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    kinds = options.types or sorted(CONFIG_MAPPING_NAMES)
    rows = rows_of(options.out) if options.types and options.out.exists() else {}
    with ThreadPoolExecutor(2) as pool:
        for row in pool.map(patiently, kinds):
            rows[row[0]] = row
            print(f"{row[0]:30}{row[1]:42}{SAID[row[2]]:24}{'  '.join(row[3:])}", flush=True)
            written(options.out, rows)
    counts = Counter(row[2] for row in rows.values())
    print()
    for status, words in SAID.items():
        print(f"{counts[status]:5}  {words}")
    exact = sum(counts[one] for one in EXACT)
    line("types of transformers that are exact", f"{exact}", "at least 380")
    line("types whose outputs or maps differ", f"{counts['differs']}", "at most 0")


if __name__ == "__main__":
    main()
