"""A model that is open: numpy in, numpy out, on any device."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hgviz.activations import parse_activations
from hgviz.core import (
    NO_STREAMING,
    HeadId,
    HeadSet,
    HgvizError,
    Integers,
    Modality,
    ModelSpec,
    Prompt,
    Streaming,
    readonly,
    slot_prompt,
)
from hgviz.errors import HgvizWarning, choose
from hgviz.files import model_name, printable
from hgviz.models.checkpoints import read
from hgviz.models.config import outline, require_activations
from hgviz.models.devices import device_of, dtype_of, room
from hgviz.models.dynamic import DynamicConfig
from hgviz.models.inputs import (
    READS,
    boundaries_of,
    encoder_states,
    ids_and_mask,
    mask_of,
    positions_of,
    require_none,
    token_types,
)
from hgviz.models.layers import Configuration, Network, Tokens, require_attention
from hgviz.models.pretrained_config import TransformersConfig
from hgviz.models.run import Observer, Run
from hgviz.models.tensors import digest_of, unread_files
from hgviz.models.text import Bare, Tokenizer, end_tokens, require_room, tokenizer_of

if TYPE_CHECKING:
    from hgviz.examples import Example
    from hgviz.models.dynamic import Dynamic
    from hgviz.models.huggingface import Transformers
    from hgviz.models.signals import Processor

MASKINGS = ("compat", "strict")


@dataclass(frozen=True, slots=True)
class Result:
    """logits (n, vocabulary), or (batch, n, vocabulary) for a batch: float64 from a float64
    model, else float32."""

    logits: NDArray[Any]


class Model:
    """A checkpoint with its tokenizer, on a device; made by open_model."""

    def __init__(
        self,
        module: Network,
        spec: ModelSpec,
        tokenizer: Tokenizer,
        device: str,
        dtype: str,
        ends: frozenset[int] = frozenset(),
        processor: Processor | None = None,
        unread: tuple[str, ...] = (),
    ) -> None:
        self.module, self.spec, self.tokenizer = module, spec, tokenizer
        self.device, self.dtype, self.ends, self.processor = device, dtype, ends, processor
        self.unread = unread  # parts of its weights, and weights beside them, that it does not use

    @property
    def config(self) -> Configuration:
        """What the model is built from."""
        return self.module.config

    @property
    def masking(self) -> str:
        """strict, or compat: masks as the package computes them that the model comes from."""
        return getattr(self.config, "masking", "strict")

    @property
    def shortens(self) -> bool:
        """Whether it reads segments of unequal length, and can be told where they end."""
        config = self.config
        return isinstance(config, DynamicConfig | TransformersConfig) and config.shortens

    @property
    def is_tower(self) -> bool:
        """Whether it is one of the two models of a folder such as CLIP's."""
        return self.spec.family.endswith(("_text_model", "_vision_model", "_audio_model"))

    @property
    def takes_states(self) -> bool:
        """Whether it is a decoder alone, which attends to given states of an encoder."""
        return bool(getattr(self.config, "cross", False))

    @property
    def reads_pairs(self) -> bool:
        """Whether it reads two texts as one input."""
        try:
            return not self.spec.needs_target and self.tokenize("a", "b") is not None
        except HgvizError:
            return False

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """What the tokenizer makes of a text, or of two, with token types where the model has some.

        Errors: HgvizError where it has no tokens.
        """
        found = self.tokenizer.encode(text, pair)
        return found if self._segments else replace(found, token_type_ids=None)

    def tokenize(self, text: str, pair: str | None = None) -> Prompt:
        """The prompt of a text, or of two that belong together.

        Errors: HgvizError where it has no tokens, too many, or the model neither has token types
        nor answers questions.
        """
        answers = self.spec.goal == "ends" or self.spec.reads_twice
        if pair is not None and not self._segments and not answers:
            raise HgvizError(
                "this model does not read pairs of texts: it has no token types to tell them apart",
                "Give one text",
            )
        prompt = self.encode(text, pair)
        require_room(len(prompt), self.spec.max_positions, self.tokenizer.unit)
        return prompt

    @property
    def decoder_start(self) -> int | None:
        """The token that the decoder of an encoder-decoder starts with, None where there is none or
        its configuration does not name one."""
        start = getattr(self.config, "data", {}).get("decoder_start_token_id")
        return start if type(start) is int and self.spec.form == "encoder-decoder" else None

    def with_decoder_start(self, prompt: Prompt) -> Prompt:
        """A decoder's text after the token that the decoder starts with, as the model is trained
        and used; the prompt itself where it starts so already, or no such token is known."""
        start = self.decoder_start
        if start is None or prompt.ids[:1].tolist() == [start]:
            return prompt
        first, mask = self.from_ids([start]), prompt.attention_mask
        return replace(
            prompt,
            ids=readonly(np.append(start, prompt.ids)),
            pieces=(*first.pieces, *prompt.pieces),
            spans=readonly(np.concatenate([[[-1, -1]], prompt.spans])),
            attention_mask=None if mask is None else readonly(np.append(True, mask)),
        )

    def shifted(self, ids: Integers) -> Integers:
        """The ids (n,) that the decoder of a model that reads its text twice reads: those of the
        text, one token later. Errors: HgvizError for a text without the token that such a
        classifier answers at."""
        module = cast("Transformers", self.module)
        return module.shifted(self._tensor(ids))[0].cpu().numpy().astype(np.int64)

    def twice(self, prompt: Prompt) -> Prompt:
        """What the decoder of a model that reads its text twice reads of it. Errors as shifted."""
        ids = self.shifted(prompt.ids)
        mask, spans = prompt.attention_mask, np.concatenate([[[-1, -1]], prompt.spans[:-1]])
        return replace(
            prompt,
            ids=readonly(ids),
            pieces=(*self.from_ids(ids[:1]).pieces, *prompt.pieces[:-1]),
            spans=readonly(spans),
            attention_mask=None if mask is None else readonly(np.append(True, mask[:-1])),
        )

    def encode_target(self, text: str) -> Prompt:
        """What the decoder of an encoder-decoder reads of a text. Errors as encode."""
        return self.with_decoder_start(self.encode(text))

    def tokenize_target(self, text: str) -> Prompt:
        """The same, for a text that fits. Errors: HgvizError where it has too many tokens."""
        prompt = self.encode_target(text)
        require_room(len(prompt), self.spec.max_positions, self.tokenizer.unit)
        return prompt

    def from_ids(
        self,
        ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        boundaries: Any = None,
        position_ids: Any = None,
    ) -> Prompt:
        """The prompt of ids (n,), with as much text as they stand for. Errors as run.

        Warns where they begin with padding and the model has learned positions.
        """
        found, mask = ids_and_mask(self.spec, ids, attention_mask)
        if found.ndim != 1:
            raise HgvizError(f"a prompt is one text: these ids have the shape {found.shape}")
        kinds = token_types(self.spec, self._segments, token_type_ids, found.shape)
        if position_ids is not None:
            limit = getattr(self.module, "most_positions", None)
            position_ids = readonly(positions_of(self.spec, position_ids, found.shape, limit))
        elif mask is not None and mask.any() and not mask[0]:
            self._warn_of_padding()
        prompt = replace(
            self.tokenizer.decode(found),
            attention_mask=None if mask is None else readonly(mask),
            token_type_ids=None if kinds is None else readonly(kinds),
            position_ids=position_ids,
        )
        return prompt if boundaries is None else self.cut(prompt, boundaries)

    def _warn_of_padding(self) -> None:
        """Say where positions count from in a text that begins with padding."""
        if getattr(self.module, "first_position", None) is not None:
            warnings.warn(
                "Positions count from the first real token, as transformers' generate() does; "
                'give "position_ids" to count otherwise.', HgvizWarning, stacklevel=3,
            )  # fmt: skip
        elif getattr(self.module, "counts_padding", False) or (
            getattr(self.config, "positions", "none") in ("learned", "sinusoidal")
        ):
            warnings.warn(
                "Positions count from the first token, padding included; leave the padding out to "
                "count from the first real token.", HgvizWarning, stacklevel=3,
            )  # fmt: skip

    def cut(self, prompt: Prompt, boundaries: Any) -> Prompt:
        """A prompt whose segments end where boundaries (n,) are 1, whatever the model thinks.

        Errors: HgvizError where they do not fit, and for models that read no segments.
        """
        if not self.shortens:
            require_none({"boundaries": boundaries}, self.spec.family)
        ends = boundaries_of(boundaries, prompt.ids.shape)
        if prompt.attention_mask is not None:
            ends = ends & prompt.attention_mask
        ends[:1] |= isinstance(self.config, TransformersConfig)  # as Patches has it
        return replace(prompt, boundaries=readonly(ends))

    def segmented(
        self,
        prompt: Prompt,
        off: Collection[HeadId] = frozenset(),
        streaming: Streaming = NO_STREAMING,
    ) -> Prompt:
        """A prompt with the boundaries between which this model reads it, heads of off off: its
        own where it has none yet. Of models that read no segments, the prompt itself."""
        if not self.shortens or prompt.boundaries is not None:
            return prompt
        module = cast("Dynamic | Transformers", self.module)
        with torch.inference_mode(), room(self.device, f"the text has {len(prompt):,} tokens"):
            run = Run(self._off(off), streaming=streaming)
            found = module.boundaries(self.tokens(prompt), run)
        return replace(prompt, boundaries=readonly(found[0].cpu().numpy()))

    def from_signal(self, path: str | Path) -> Prompt:
        """The prompt of a picture or a sound: an image file, a .wav, or a .npy of what the model's
        processor makes. Errors: HgvizError, also for a model that reads text."""
        return self._reader(Path(path))

    def again(self, prompt: Prompt) -> Prompt:
        """The prompt of a picture or a sound that another model read. Errors as from_signal."""
        return self._reader.again(prompt)

    def of_example(self, row: Example) -> Prompt:
        """The prompt of an example that the model is scored on. Errors as run."""
        if row.signal is not None:
            return self._reader.of_values(row.signal, row.text)
        kinds = row.kinds if self._segments else None
        found = self.from_ids(row.ids, token_type_ids=kinds)
        return replace(found, text=row.text, spans=readonly(row.spans))

    @property
    def _reader(self) -> Processor:
        if self.processor is None:
            raise HgvizError("this model reads text: it takes no image or sound", "Give --text T")
        return self.processor

    def beginning(self) -> Prompt:
        """The token that the decoder of an encoder-decoder begins with, by its configuration.
        Errors: HgvizError where that does not say it."""
        if self.decoder_start is None:
            raise HgvizError(
                "this model needs a beginning for its decoder: "
                "its config.json has no decoder_start_token_id",
                "Give it with --target",
            )
        return self.from_ids([self.decoder_start])

    def from_states(self, states: Any, attention_mask: Any = None) -> Prompt:
        """What stands for the text behind an encoder's states (n, width). Errors as run."""
        found = encoder_states(self.spec, states)
        if found.ndim != 2:
            raise HgvizError(f"one text is captured at a time: states have {found.ndim} axes")
        mask = None if attention_mask is None else mask_of(attention_mask, found.shape[:1])
        blank = slot_prompt(len(found))
        pieces = tuple(f"state {i}" for i in range(len(found)))
        kept = None if mask is None else readonly(mask)
        return replace(blank, pieces=pieces, attention_mask=kept, states=readonly(found))

    def spans(self, prompt: Prompt, target: Prompt | None = None) -> tuple[Integers, ...]:
        """The tokens behind every position of every level; boundaries as segmented has them."""
        if self.shortens:
            assert isinstance(self.config, DynamicConfig | TransformersConfig)
            return self.config.spans(len(prompt), boundaries=self.segmented(prompt).boundaries)
        return self.config.spans(len(prompt), 0 if target is None else len(target))

    def run(
        self,
        ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        decoder_ids: Any = None,
        encoder_states: Any = None,
        encoder_mask: Any = None,
        off: Collection[HeadId] = frozenset(),
        decoder_mask: Any = None,
        boundaries: Any = None,
    ) -> Result:
        """Logits of ids (n,) or (batch, n); attention_mask of the same shape, True where real.

        boundaries, of the same shape: 1 where a token closes a segment, None for the model's own.

        decoder_ids, decoder_mask: the second text of an encoder-decoder. encoder_states (m, width)
        or (batch, m, width), encoder_mask: what a decoder alone attends to. off: heads whose part
        of the layer's output is zero. Errors: HgvizError for ids outside the vocabulary, a text
        too long, unknown heads, and arguments this family does not have.
        """
        both = self.spec.form == "encoder-decoder"
        foreign = {
            "token_type_ids": None if self._segments else token_type_ids,
            "decoder_ids": None if both else decoder_ids,
            "decoder_mask": None if both else decoder_mask,
            "encoder_states": None if self.takes_states else encoder_states,
            "encoder_mask": None if self.takes_states else encoder_mask,
            "boundaries": None if self.shortens else boundaries,
        }
        require_none(foreign, self.spec.family)
        given = self._tokens(ids, attention_mask, token_type_ids, boundaries)
        if both and decoder_ids is not None:
            given = replace(self._tokens(decoder_ids, decoder_mask, None), source=given)
        elif self.spec.reads_twice:
            keep, module = given.keep, cast("Transformers", self.module)
            if keep is not None:
                keep = torch.cat([torch.ones_like(keep[:, :1]), keep[:, :-1]], 1)
            assert given.ids is not None
            given = Tokens(module.shifted(given.ids), keep, source=given)
        elif both:
            raise HgvizError(
                "this model needs decoder_ids: it reads one text and writes another", "Give both"
            )
        elif self.takes_states and encoder_states is not None:
            source = self._given_states(encoder_states, encoder_mask)
            given = replace(given, source=source)
        require_one_batch(given)
        logits = self.logits(given, Run(self._off(off)))
        return Result(logits if np.ndim(ids) == 2 else logits[0])

    def trace(
        self,
        prompt: Prompt,
        target: Prompt | None = None,
        *,
        off: Collection[HeadId] = frozenset(),
        observers: Sequence[Observer] = (),
        streaming: Streaming = NO_STREAMING,
    ) -> NDArray[Any]:
        """What the model gives for one text: logits (n, vocabulary) or (classes,), or states.

        target: the decoder's text, where there are two; prompt is then the encoder's, or its
        states. observers see each layer and block while the pass goes on. streaming: heads that see
        few keys, of causal layers. Errors as run.
        """
        given = self.tokens(prompt, target)
        self._off(streaming.heads)
        run = Run(self._off(off), streaming=streaming, observers=observers)
        found: NDArray[Any] = self.logits(given, run)[0]
        return found

    def logits(self, given: Tokens, run: Run) -> NDArray[Any]:
        """What a pass over a batch gives, without gradients; float64 of a float64 model, else
        float32."""
        texts = [
            part.ids.shape[-1] for part in (given, given.source) if part and part.ids is not None
        ]
        with room(self.device, f"the text has {max(texts):,} tokens"), torch.inference_mode():
            logits = self.module(given, run)
        wide = logits.dtype if logits.dtype == torch.float64 else torch.float32
        found: NDArray[Any] = logits.to("cpu", wide).numpy()
        return found

    # --- what is given ----------------------------------------------------------------------------

    def tokens(self, prompt: Prompt, target: Prompt | None = None) -> Tokens:
        """A text, or two, as a batch of one that the module reads. Errors as run."""
        if target is None and self.spec.reads_twice:
            target = self.twice(prompt)
        if self.spec.two_texts != (target is not None):
            what = "needs a second text for its decoder" if target is None else "reads one text"
            raise HgvizError(f"this model {what}: its form is {self.spec.form}")
        given = self._of(prompt, self.processor is not None)
        return given if target is None else replace(self._of(target), source=given)

    def _of(self, prompt: Prompt, signal: bool = False) -> Tokens:
        if prompt.states is not None:
            return self._given_states(prompt.states, prompt.attention_mask)
        if (prompt.signal is not None) != signal:
            raise HgvizError(
                f"this model reads {READS[self.spec.modality]}: "
                f"and it was given {'a text' if prompt.signal is None else 'something else'}",
                "Give what it reads",
            )
        if prompt.signal is not None:
            values = torch.tensor(prompt.signal.values, device=self.device, dtype=self._float)
            return Tokens(self._tensor(prompt.ids), signal=values[None])
        ends = prompt.boundaries if self.shortens else None  # those of a text of another model
        found = self._tokens(prompt.ids, prompt.attention_mask, prompt.token_type_ids, ends)
        if prompt.position_ids is None or not hasattr(self.module, "most_positions"):
            return found
        return replace(found, positions=self._tensor(prompt.position_ids))

    def _tokens(
        self, ids: Any, attention_mask: Any, token_type_ids: Any, boundaries: Any = None
    ) -> Tokens:
        found, mask = ids_and_mask(self.spec, ids, attention_mask)
        kinds = token_types(self.spec, self._segments, token_type_ids, found.shape)
        keep = None if mask is None else self._tensor(mask)
        segments = None if kinds is None else self._tensor(kinds)
        ends = None
        if boundaries is not None:
            ends = self._tensor(boundaries_of(boundaries, found.shape))
        return Tokens(self._tensor(found), keep, segments, boundaries=ends)

    def _given_states(self, states: Any, mask: Any) -> Tokens:
        found = encoder_states(self.spec, states)
        keep = None if mask is None else self._tensor(mask_of(mask, found.shape[:-1]))
        batch = found if found.ndim == 3 else found[None]
        return Tokens(keep=keep, states=torch.tensor(batch, device=self.device, dtype=self._float))

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.tensor(np.atleast_2d(values), device=self.device)

    @property
    def _float(self) -> torch.dtype:
        return next(self.module.parameters()).dtype

    @property
    def _segments(self) -> int:
        return getattr(self.config, "segments", 0)

    def _off(self, off: Collection[HeadId]) -> HeadSet:
        chosen = frozenset(HeadId(*one) for one in off)
        if unknown := sorted(chosen.difference(self.spec.heads)):
            raise HgvizError(
                f"this model has no head {unknown[0]}: "
                f"its layers are 0 to {len(self.spec.layers) - 1}",
                "Run `hgviz info` on it to see every layer",
            )
        return chosen


def open_model(
    path: str | Path,
    device: str = "cpu",
    dtype: str = "float32",
    masking: str | None = None,
    activation: str | None = None,
    reads: Modality = "text",
) -> Model:
    """Open a checkpoint: a folder, the weights file or the config.json within it, or the name of
    a model in the local Hugging Face cache.

    device: auto (HGVIZ_DEVICE, else cuda, mps, cpu), cpu, cuda or mps. dtype: float64, float32,
    bfloat16 or float16. masking: compat, strict, or None for what the checkpoint says.
    activation: another one for all heads, as with_activation reads it; the spec then
    has another name and digest. reads: which model of a folder such as CLIP's. Errors: HgvizError.
    """
    place, kind = device_of(device), dtype_of(dtype)
    if place == "mps" and kind == torch.float64:
        raise HgvizError("mps has no float64", "Use --dtype float32, or --device cpu")
    found, name = read(path, reads), ""
    if activation is not None:
        changed = with_activation(found.config, activation)
        digest = digest_of(changed, found.tensors)
        found, name = replace(found, config=changed, digest=digest), f" with {activation}"
    config = _masked(found.config, masking)
    module = module_of(config, found.tensors, place, kind, found.network)
    parameters = sum(tensor.numel() for tensor in found.tensors.values())
    spec = config.spec(printable(model_name(found.folder) + name), found.digest, parameters)
    spec = replace(spec, labels=tuple(map(printable, spec.labels)))
    if config.vocab_size:
        tokenizer = tokenizer_of(found.folder, config.vocab_size, found.tokenizer)
    else:  # a model of images or sounds
        tokenizer = Bare()
    ends, processor = end_tokens(found.folder, tokenizer), None
    if spec.modality != "text":
        from hgviz.models.huggingface import Transformers
        from hgviz.models.signals import Processor

        processor = Processor(found.folder, cast(Transformers, module))
    unread = (*found.unused, *unread_files(found.weights))
    return Model(module, spec, tokenizer, place, dtype, ends, processor, unread)


def with_activation(config: Configuration, activation: str) -> Configuration:
    """A configuration with the activations that a text names (see parse_activations), for all heads
    of all layers. Raises HgvizError for what the model cannot have."""
    names, norms, top_k = parse_activations(activation)
    changed = require_attention(config).replace(activations=names, norms=norms, top_k=top_k)
    require_activations(changed, f"{activation[:80]!r}")
    return changed


def module_of(
    config: Configuration,
    tensors: dict[str, Tensor],
    device: str,
    dtype: torch.dtype,
    network: Network | None = None,
) -> Network:
    """The module of a configuration with these tensors, which are changed to a dtype and moved.

    network: a model of transformers that has them already, in float32.
    """
    if isinstance(config, TransformersConfig):
        from hgviz.models import pretrained

        return pretrained.build(config, tensors, device, dtype, network)
    module = outline(config)
    with room(device, f"the model has {sum(t.numel() for t in tensors.values()):,} parameters"):
        moved = {name: _aligned(tensor.to(device, dtype)) for name, tensor in tensors.items()}
    module.load_state_dict(moved, assign=True)
    return module.requires_grad_(False).eval()


# --- inside ---------------------------------------------------------------------------------------


def _aligned(tensor: Tensor) -> Tensor:
    """The same numbers where torch itself would put them: elsewhere products have other bits."""
    return tensor.clone() if tensor.data_ptr() % 64 or not tensor.is_contiguous() else tensor


def _masked(config: Any, masking: str | None) -> Any:
    chosen: Any = masking or getattr(config, "masking", "strict")
    choose(chosen, MASKINGS, "masking")
    if chosen == "compat" and config.form != "windowed":
        raise HgvizError(
            "this model is always masked strictly: "
            "compat masking repeats what hourglass-transformer-pytorch does",
            "Leave masking out",
        )
    return config.replace(masking=chosen) if config.form == "windowed" else config


def require_one_batch(given: Tokens) -> None:
    if given.source is None or given.ids is None:
        return
    held = given.source.ids if given.source.states is None else given.source.states
    if held is not None and len(held) != len(given.ids):
        raise HgvizError(
            "the two texts differ in number: "
            f"there are {len(held)} on the encoder's side and {len(given.ids)} on the decoder's"
        )
