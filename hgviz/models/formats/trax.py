"""Weights of the official Hourglass, exported to .npz under hgviz's names.

trax keeps them in a pickle, which is never opened here; docs/models.md says how they are exported.
What weights do not show (how far averages shorten, what attention grows from) has to be said.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from hgviz.core import HgvizError
from hgviz.files import short_path
from hgviz.models.config import Config
from hgviz.models.formats.checkpoint import Checkpoint, digest_of, require_depth, shapes_of
from hgviz.models.formats.files import Shapes, dims, read_tensors, require_finite, require_fit
from hgviz.models.formats.own import parse_config
from hgviz.models.hierarchy import parse_hierarchy
from hgviz.models.texts.spelling import ALPHABET
from hgviz.models.texts.text import MOST_TOKENIZER, TOKENIZER, Pieces, read_regular, tokenizer_file

Grown = Literal["repeat", "none"]

BEGIN = "[BOS]"  # what token 0 is called where texts are bytes
NEEDED = {"embed.token.weight": 2, "rel.content_bias": 2, "pre.0.ln_out.weight": 1}


def read_trax(
    path: Path,
    hierarchy: str | None = None,
    attention_upsampling: Grown | None = None,
    tokenizer: Path | None = None,
) -> Checkpoint:
    """An exported .npz. hierarchy: "5@1 24@3 5@1", or as trax has it "24@3"; attention_upsampling:
    what attention on the way up begins with where that is no linear map.

    trax shifts ids by one, with 0 before them: here every text begins with token 0 instead.
    tokenizer: a tokenizer.json or its folder; else what lies beside the file, or bytes for 256 ids.
    Errors: HgvizError for what is damaged, does not fit, or is not said.
    """
    held = read_tensors(path)
    require_finite(path, held)
    shapes = {name: tuple(one.shape) for name, one in held.items()}
    config = _config(path, shapes, hierarchy, attention_upsampling)
    require_depth(path, config, held)
    again = "Export it again as docs/models.md says"
    require_fit(path, shapes_of(config), shapes, do=again, said="the model of its names")
    text = _tokenizer(path.parent, tokenizer, config.vocab_size)
    # no sources: such a file is not written again as it is
    return Checkpoint(config, held, digest_of(config, held), path, {}, text)


# --- what names and shapes say --------------------------------------------------------------------


def _config(path: Path, shapes: Shapes, said: str | None, grown: Grown | None) -> Config:
    for name, axes in NEEDED.items():
        if len(shapes.get(name, ())) != axes:
            raise HgvizError(
                f"{short_path(path)} holds no Hourglass of trax: "
                f"{name} is {dims(shapes[name]) if name in shapes else 'not there'}",
                "Export the weights under the names of docs/models.md",
            )
    vocabulary, width = shapes["embed.token.weight"]
    heads, d_head = shapes["rel.content_bias"]
    down, base_down = _kinds("down.0", shapes, "average")
    up, base_up = _kinds("up.0", shapes, "repeat")
    asked = up == "attention" and base_up == "repeat"
    if grown and not asked:
        raise HgvizError(
            f"{short_path(path)} does not fit --attention-upsampling {grown}: "
            + ("a linear map comes first there" if up == "attention" else "nothing attends there"),
            "Leave it out",
        )
    hierarchy, known = _hierarchy(path, shapes, width, said)
    unknown = (
        []
        if known
        else [("how far it shortens", f'--hierarchy "{hierarchy}" with a number for each K')]
    )
    if asked and not grown:
        both = "--attention-upsampling repeat (NaiveUpsampling) or none (NoUpsampling)"
        unknown.append(("what attention on the way up begins with", both))
    if unknown:
        whys, options = zip(*unknown, strict=True)
        raise HgvizError(
            f"{short_path(path)} does not show all of its model: "
            f"its weights do not tell {' and '.join(whys)}",
            f"Give hgviz convert {' and '.join(options)}",
        )
    inner = next((one[0] for name, one in shapes.items() if name.endswith(".ff.in.weight")), 0)
    keys = {
        "vocab_size": vocabulary, "d_model": width, "n_heads": heads, "d_head": d_head,
        "d_ff": inner, "hierarchy": hierarchy, "downsampling": down, "upsampling": up,
        "attention_downsampling": base_down, "attention_upsampling": grown or base_up,
    }  # fmt: skip
    return parse_config(keys, short_path(path))


def _kinds(stage: str, shapes: Shapes, plain: str) -> tuple[str, str]:
    """How a stage resamples, and what its attention begins with (its default where none is)."""
    base = "linear" if f"{stage}.proj.weight" in shapes else plain
    if f"{stage}.attn.q.weight" in shapes:
        return "attention", base
    return base, "linear" if stage.startswith("up") else "average"


def _hierarchy(path: Path, shapes: Shapes, width: int, said: str | None) -> tuple[str, bool]:
    """The hierarchy, and whether all of it is known; factors that are not stand there as K."""
    levels = range(
        next(i for i in range(len(shapes) + 1) if f"pre.{i}.ln_out.weight" not in shapes)
    )
    pre, post = (
        tuple(_count(f"{one}.{i}.{{}}.ln_attn", shapes) for i in levels) for one in ("pre", "post")
    )
    middle, seen = _count("middle.{}.ln_attn", shapes), [_factor(i, shapes, width) for i in levels]
    strides: list[str] = ["1"]
    for i, factor in enumerate(seen):
        whole = factor and strides[-1].isdecimal()
        strides.append(str(int(strides[-1]) * factor) if whole else f"K{i + 1}")
    counts = zip([*pre, middle, *reversed(post)], [*strides, *strides[-2::-1]], strict=True)
    found = " ".join(f"{count}@{stride}" for count, stride in counts)
    if said is None:
        return found, "K" not in found
    outer = re.match(r"\s*\d+@1(\s|$)", said)  # trax leaves out the full-resolution layers
    given = parse_hierarchy(said, None if outer else (pre[0], post[0]))
    factors = zip(seen, given.factors, strict=False)
    if (given.pre, given.middle, given.post) != (pre, middle, post) or any(
        one not in (0, two) for one, two in factors
    ):
        raise HgvizError(
            f"{short_path(path)} does not fit the hierarchy {str(given)!r}: "
            f"its weights are of {found!r}",
            "Correct --hierarchy",
        )
    return str(given), True


def _count(norm: str, shapes: Shapes) -> int:
    """How many norms of such a name there are, one after the other."""
    return next(i for i in range(len(shapes) + 1) if f"{norm.format(i)}.weight" not in shapes)


def _factor(level: int, shapes: Shapes, width: int) -> int:
    """How far a linear map shortens or lengthens, 0 where there is none."""
    down, up = (shapes.get(f"{one}.{level}.proj.weight", ()) for one in ("down", "up"))
    return (down[-1] if down else up[0] if up else 0) // width


# --- texts that begin with token 0 ----------------------------------------------------------------


def _tokenizer(beside: Path, asked: Path | None, vocabulary: int) -> bytes | None:
    """A tokenizer.json whose texts begin with token 0, and have no other special tokens; None
    where there is no tokenizer."""
    place = asked or beside
    file = tokenizer_file(place) if place.is_dir() else place
    if file is None and asked:
        why = "there is none in the folder"
        raise HgvizError(f"{short_path(asked)} has no {TOKENIZER}: {why}", "Name the file")
    if file is None:
        return _begun(_BYTES, BEGIN) if vocabulary == 256 else None
    # a file that is asked for may be called anything
    data = read_regular(file, MOST_TOKENIZER) if file == asked else None
    from tokenizers import Tokenizer

    pieces = Pieces(file, vocabulary, data)
    pieces.require_fit()
    found = Tokenizer.from_buffer(pieces.json)
    first = found.id_to_token(0)
    if first is None:
        raise HgvizError(
            f"{short_path(file)} has no token 0: texts of trax begin with it",
            "Choose the model's own",
        )
    return _begun(json.loads(found.to_str()), first)


def _begun(tokenizer: dict[str, Any], name: str) -> bytes:
    begin = {"SpecialToken": {"id": name, "type_id": 0}}
    first, second = ({"Sequence": {"id": one, "type_id": 0}} for one in "AB")
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [begin, first],
        "pair": [begin, first, second],
        "special_tokens": {name: {"id": name, "ids": [0], "tokens": [name]}},
    }
    return json.dumps(tokenizer, ensure_ascii=False).encode()


_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
# one token for each byte; the byte 0 is the token that every text begins with, as in trax
_BYTES: dict[str, Any] = {
    "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
    "added_tokens": [{
        "id": 0, "content": BEGIN, "special": True, "single_word": False, "lstrip": False,
        "rstrip": False, "normalized": False,
    }],
    "pre_tokenizer": _LEVEL, "decoder": _LEVEL,
    "model": {
        "type": "BPE", "unk_token": BEGIN, "fuse_unk": False, "merges": [],
        "vocab": {BEGIN: 0} | {char: byte for char, byte in ALPHABET.items() if byte},
    },
}  # fmt: skip
