"""A model as an ONNX graph, for texts of any length and number; needs the extra "onnx".

Inputs input_ids (batch, tokens) and attention_mask (batch, tokens), int64, 1 where real, as the
package transformers names them; output logits. Rows of the logits at padding mean nothing.
"""

from __future__ import annotations

import importlib.util
import logging
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from hgviz.core import HgvizError
from hgviz.models import ONNX, longformer
from hgviz.models.blocks import NON_LINEARITIES, FeedForward, Network, Tokens, finish_steps
from hgviz.models.formats.checkpoint import Checkpoint
from hgviz.models.formats.conversion import tokenizer_json
from hgviz.models.formats.readers import line_of
from hgviz.models.huggingface import Transformers
from hgviz.models.model import module_of
from hgviz.models.surgery.proof import Runner
from hgviz.models.texts.text import TOKENIZER

FILE = "model.onnx"
INPUTS = ("input_ids", "attention_mask")
LENGTH = 16  # of the texts that the graph is traced with
ANY = 1 << 20  # tokens of the longest text of a model that does not say it


class _Graph(nn.Module):
    def __init__(self, module: Network) -> None:
        super().__init__()
        self.module = module

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return finish_steps(self.module.steps(Tokens(input_ids, attention_mask.bool())))


class _Named(nn.Module):
    """A feed-forward whose parts have names that Python code can say, which "in" is not."""

    def __init__(self, part: FeedForward) -> None:
        super().__init__()
        self.inner, self.outer, self.kind = part["in"], part["out"], part.kind

    def forward(self, x: Tensor, hidden: None = None) -> Tensor:
        return self.outer(NON_LINEARITIES[self.kind](self.inner(x)))


def write(found: Checkpoint, out: Path) -> Path:
    """Write model.onnx and, where there is one, tokenizer.json into a folder; gives the first.

    Errors: HgvizError where packages are missing, or where the model is no such graph.
    """
    require_packages()
    config = found.config
    if getattr(config, "two_texts", False):
        raise _no_graph("it reads two texts, and the graph has one")
    if getattr(config, "modality", "text") != "text":
        raise _no_graph("it reads no texts, and the graph does")
    if getattr(config, "pooling", None) is not None:
        raise _no_graph("how often a text is pooled depends on its length, and a graph is fixed")
    if config.family == longformer.FAMILY:
        raise _no_graph("it pads a text to whole windows, and a graph is fixed")
    if config.form in ("dynamic", "patches"):
        raise _no_graph("it has as many segments as the text asks for, and a graph is fixed")
    module = module_of(config, found.tensors, "cpu", torch.float32)
    if isinstance(module, Transformers):
        module.net.set_experts_implementation("batched_mm")  # type: ignore[operator]
    for part in list(module.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, FeedForward):
                setattr(part, name, _Named(child))
    longest = getattr(config, "max_positions", None)
    length = min(LENGTH, longest or LENGTH)
    ids, mask = torch.zeros(2, length, dtype=torch.int64), torch.ones(2, length, dtype=torch.int64)
    mask[1, length // 2 :] = 0
    any_ = torch.export.Dim.DYNAMIC
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it lists what is not installed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = torch.onnx.export(
                _Graph(module).eval(), (ids, mask), dynamo=True, verbose=False, optimize=False,
                dynamic_shapes=({0: any_, 1: any_},) * 2,
                input_names=INPUTS, output_names=("logits",),
            )  # fmt: skip
            assert made is not None and made.exported_program is not None
            for sizes in made.exported_program.range_constraints.values():
                if sizes.lower > 1 or sizes.upper < (longest or ANY):
                    few, many = sizes.lower, sizes.upper
                    raise RuntimeError(f"torch makes it for {few} to {many} tokens or texts alone")
            for node in made.model.graph.all_nodes():  # where the code lies that made it
                node.metadata_props.clear()
                for value in node.outputs:
                    value.metadata_props.clear()
            made.save(str(out / FILE))
    except Exception as error:  # of every kind, from four packages
        raise _no_graph(line_of(error.__cause__ or error)[:200]) from error
    tokenizer = tokenizer_json(found)
    if tokenizer is not None:
        (out / TOKENIZER).write_bytes(tokenizer)
    return out / FILE


def size(path: Path) -> int:
    """Bytes of a graph, with the file beside it where a large one keeps its weights."""
    return sum(one.stat().st_size for one in path.parent.glob(f"{FILE}*"))


def opened(path: Path) -> Runner:
    """The graph in a file, on one thread of the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(text: Tokens) -> Tensor:
        assert text.ids is not None
        keep = torch.ones_like(text.ids) if text.keep is None else text.keep.long()
        given = dict(zip(INPUTS, (text.ids.numpy(), keep.numpy()), strict=True))
        return torch.from_numpy(np.asarray(session.run(None, given)[0]))

    return run


def require_packages() -> None:
    """Errors: HgvizError naming the packages that are not installed."""
    missing = [one for one in ONNX if importlib.util.find_spec(one) is None]
    if missing:
        raise HgvizError(
            f"ONNX needs {', '.join(missing)}",
            "they are not installed with hgviz itself",
            "Run `pip install 'hgviz[onnx]'`, or choose --form smaller",
        )


def _no_graph(why: str) -> HgvizError:
    return HgvizError(
        "this model does not become an ONNX graph", why, "Choose --form smaller or --form zeroed"
    )
