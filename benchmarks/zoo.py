"""Every model type that the package transformers knows, tiny and random: does hgviz open it, and
are its outputs and maps those of transformers?

    python benchmarks/zoo.py                 all of them, two at a time: some twenty minutes
    python benchmarks/zoo.py llama t5        these
    python benchmarks/zoo.py --write F.md    and write the table

A type is exact where outputs agree within 1e-4 of the largest, and every map within 1e-5 with those
that transformers gives with eager attention and output_attentions; "lazy" where maps are computed
from queries and keys, "dense" where weights are kept. Only classes that read token ids are tried.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

from table import line

sys.path[:0] = [str(Path(__file__).parents[1])]
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")

TOKENS, WRITTEN = 23, 17
PATIENCE = 60  # seconds for a type
TABLES = (
    "MODEL_FOR_CAUSAL_LM", "MODEL_FOR_MASKED_LM", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION", "MODEL",
)  # fmt: skip
SAID = {
    "lazy": "exact, lazy", "dense": "exact, dense", "outputs": "outputs equal, no maps to compare",
    "differs": "differs", "refused": "refused", "unbuilt": "not built so small here",
    "texts": "no class that reads texts", "slow": "not done in a minute",
}  # fmt: skip


def classes(kind):
    """The names of the classes of a type that read texts, the first one first."""
    from transformers.models.auto import modeling_auto

    found = []
    for table in TABLES:
        one = getattr(modeling_auto, f"{table}_MAPPING_NAMES").get(kind)
        found += [one] if isinstance(one, str) else list(one or ())
    return list(dict.fromkeys(found))


def tried(kind):
    """(type, class, status, what was said)"""
    warnings.simplefilter("ignore")
    import torch
    import transformers

    transformers.utils.logging.set_verbosity(50)
    torch.set_num_threads(1)
    names, said = classes(kind), ""
    if not names:
        return kind, "", "texts", ""
    from tests.models.zoo import write

    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            try:
                write(Path(folder) / "model", kind, name)
            except Exception as error:
                said = said or f"{type(error).__name__}: {error}".splitlines()[0][:100]
                continue
            try:
                return kind, name, *compared(Path(folder) / "model", name)
            except Exception as error:
                line = f"{type(error).__name__}: {error}".splitlines()[0][:140]
                return kind, name, "refused", line
    return kind, names[0], "unbuilt", said


def compared(path, name):
    """(status, what was said) of a model beside transformers."""
    import numpy as np
    import torch
    import transformers

    from hgviz import tasks
    from hgviz.core import finish
    from hgviz.maps import LazyMap
    from hgviz.models import open_model

    random = torch.Generator().manual_seed(1)
    ids, written = (torch.randint(5, 110, (1, n), generator=random) for n in (TOKENS, WRITTEN))
    other = getattr(transformers, name).from_pretrained(path, attn_implementation="eager").eval()
    model = open_model(path)
    both = model.spec.two_texts
    more = {"decoder_input_ids": written} if both else {}
    with torch.no_grad():
        out = other(input_ids=ids, output_attentions=True, **more)
    target = model.from_ids(written[0].numpy()) if both else None
    capture = finish(tasks.capture(model, model.from_ids(ids[0].numpy()), target=target))
    logits = out.last_hidden_state if getattr(out, "logits", None) is None else out.logits
    apart = np.abs(np.squeeze(capture.logits) - np.squeeze(logits.float().numpy())).max()
    if not apart <= 1e-4 * max(1.0, float(logits.abs().max())):
        return "differs", f"outputs by {apart:.1e}"
    if both:
        pairs = zip(out.decoder_attentions or (), out.cross_attentions or (), strict=False)
        theirs = [*(out.encoder_attentions or ()), *(one for pair in pairs for one in pair)]
    else:
        theirs = [one for one in getattr(out, "attentions", None) or () if one is not None]
    lazy = all(isinstance(one, LazyMap) for one in capture.maps)
    if len(theirs) != len(capture.maps):
        return "outputs", f"{len(capture.maps)} layers, {len(theirs)} maps of transformers"
    worst = 0.0
    for one, theirs_ in zip(capture.maps, theirs, strict=True):
        found = np.stack([one.read(head) for head in one.heads])
        if found.shape != theirs_[0].shape:
            return "outputs", f"maps are {found.shape}, those of transformers {theirs_[0].shape}"
        worst = max(worst, float(np.abs(found - theirs_[0].float().numpy()).max()))
    if worst > 1e-5:
        return "differs", f"maps by {worst:.1e}"
    return ("lazy" if lazy else "dense"), f"{len(capture.maps)} layers, maps within {worst:.0e}"


def child(kind, queue):
    queue.put(tried(kind))


context = multiprocessing.get_context("forkserver")  # which has no threads that hold a lock
context.set_forkserver_preload(["torch", "transformers", "hgviz.models.huggingface"])


def patiently(kind):
    """The same in a process of its own, which is ended where it takes too long."""
    queue = context.Queue()
    process = context.Process(target=child, args=(kind, queue))
    process.start()
    try:
        found = queue.get(timeout=PATIENCE)
    except Exception:
        found = kind, "", "slow", ""
    process.kill()
    process.join()
    return found


def main():
    """Try them; print a row for each and how many there are of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("types", nargs="*")
    parser.add_argument("--write", default="", help="the table, as Markdown")
    options = parser.parse_args()
    from concurrent.futures import ThreadPoolExecutor

    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    kinds = options.types or sorted(CONFIG_MAPPING_NAMES)
    rows = []
    with ThreadPoolExecutor(2) as pool:
        for row in pool.map(patiently, kinds):
            rows.append(row)
            print(f"{row[0]:30}{row[1]:42}{SAID[row[2]]:36}{row[3]}", flush=True)
    counts = Counter(row[2] for row in rows)
    print()
    for status, words in SAID.items():
        print(f"{counts[status]:5}  {words}")
    line(
        "types of transformers that are exact",
        f"{counts['lazy'] + counts['dense']}",
        "at least 380",
    )
    line("types whose outputs or maps differ", f"{counts['differs']}", "at most 0")
    if options.write:
        lines = ["| type | class | what was found |", "|---|---|---|"]
        lines += [f"| {kind} | {name} | {SAID[status]} |" for kind, name, status, _ in rows]
        head = f"transformers {transformers.__version__}: " + ", ".join(
            f"{counts[status]} {words}" for status, words in SAID.items() if counts[status]
        )
        Path(options.write).write_text("\n".join([head, "", *lines, ""]), "utf-8")


if __name__ == "__main__":
    main()
