"""A model that is open: numpy in, numpy out, on any device."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from contextlib import suppress
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
from hgviz.errors import HgvizWarning, choose, require
from hgviz.files import model_name, printable
from hgviz.models.checkpoints import read
from hgviz.models.config import outline, require_activations
from hgviz.models.devices import device_of, dtype_of, room
from hgviz.models.dynamic import DynamicConfig
from hgviz.models.layers import Configuration, Network, Tokens, require_attention
from hgviz.models.pretrained_config import TransformersConfig
from hgviz.models.run import LastLayer, Observer, PassEnded, Run
from hgviz.models.tensors import digest_of, unread_files
from hgviz.models.text import Bare, Pieces, Tokenizer, end_tokens, require_room, tokenizer_of

if TYPE_CHECKING:  # transformers takes seconds to load
    from hgviz.examples import Batch, Example
    from hgviz.models.dynamic import Dynamic
    from hgviz.models.huggingface import Transformers
    from hgviz.models.signals import Processor

MASKINGS = ("compat", "strict")
READS = {"text": "text", "image": "images", "audio": "sound"}
TAKEN = "Use `hgviz capture` or `hgviz compare` with --{0} FILE"


@dataclass(frozen=True, slots=True)
class Result:
    """logits (n, vocabulary), or (batch, n, vocabulary) for a batch: float64 from a float64
    model, else float32."""

    logits: NDArray[Any]


@dataclass(eq=False, repr=False)
class Model:
    """A checkpoint with its tokenizer, on a device; made by open_model.

    ends: the tokens that end a text. unread: parts of its weights, and weights beside them, that it
    does not use.
    """

    module: Network
    spec: ModelSpec
    tokenizer: Tokenizer
    device: str
    dtype: str
    ends: frozenset[int] = frozenset()
    processor: Processor | None = None
    unread: tuple[str, ...] = ()

    # --- what it reads ---

    @property
    def config(self) -> Configuration:
        """What the model is built from."""
        return self.module.config

    @property
    def _kinds(self) -> int:
        return getattr(self.config, "segments", 0)  # token types

    @property
    def masking(self) -> str:
        """strict, or compat: masks as the package computes them that the model comes from."""
        return getattr(self.config, "masking", "strict")

    @property
    def shortens(self) -> bool:
        """Whether it reads segments of unequal length, whose boundaries may be set."""
        config = self.config
        return isinstance(config, DynamicConfig | TransformersConfig) and config.shortens

    @property
    def is_tower(self) -> bool:
        """Whether it is one of the two models of a folder such as CLIP's."""
        return self.spec.family.endswith(("_text_model", "_vision_model", "_audio_model"))

    @property
    def takes_states(self) -> bool:
        """Whether it is a decoder alone, which attends to states of an encoder that it reads."""
        return bool(getattr(self.config, "cross", False))

    @property
    def reads_pairs(self) -> bool:
        """Whether it reads two texts as one input."""
        try:
            return not self.spec.needs_target and self.tokenize("a", "b") is not None
        except HgvizError:
            return False

    @property
    def decoder_start(self) -> int | None:
        """The token that the decoder of an encoder-decoder starts with, None where there is none or
        its configuration does not name one."""
        start = getattr(self.config, "data", {}).get("decoder_start_token_id")
        return start if type(start) is int and self.spec.form == "encoder-decoder" else None

    # --- prompts ---

    def encode(self, text: str, pair: str | None = None) -> Prompt:
        """What the tokenizer makes of a text, or of two, with token types where the model has some.

        Raises HgvizError where it has no tokens.
        """
        prompt = self.tokenizer.encode(text, pair)
        return prompt if self._kinds else replace(prompt, token_type_ids=None)

    def encode_all(self, texts: Sequence[str]) -> list[Prompt]:
        """What the tokenizer makes of each text."""
        tokenizer = self.tokenizer
        if isinstance(tokenizer, Pieces):
            return tokenizer.encode_all(texts)
        return [*map(tokenizer.encode, texts)]

    def tokenize(self, text: str, pair: str | None = None) -> Prompt:
        """The prompt of a text, or of two that belong together.

        Raises HgvizError where it has no tokens, too many, or the model neither has token types
        nor answers questions.
        """
        require(
            pair is None or self._kinds or self.spec.goal == "ends" or self.spec.reads_twice,
            "this model does not read text pairs: it has no token types",
            "Give one text",
        )
        return self._require_room(self.encode(text, pair))

    def encode_target(self, text: str) -> Prompt:
        """What the decoder of an encoder-decoder reads of a text. Raises HgvizError as encode."""
        return self.with_decoder_start(self.encode(text))

    def tokenize_target(self, text: str) -> Prompt:
        """As encode_target, of a text that fits. Raises HgvizError where it has too many tokens."""
        return self._require_room(self.encode_target(text))

    def _require_room(self, prompt: Prompt) -> Prompt:
        require_room(len(prompt), self.spec.max_positions, self.tokenizer.unit)
        return prompt

    def with_decoder_start(self, prompt: Prompt) -> Prompt:
        """A decoder's text after the token that the decoder starts with, as the model is trained
        and used; the prompt itself where it starts so already, or no such token is known."""
        start = self.decoder_start
        if start is None or prompt.ids[:1].tolist() == [start]:
            return prompt
        return self._after_start(prompt, np.append(start, prompt.ids))

    def decoder_prompt(self, prompt: Prompt) -> Prompt:
        """What the decoder reads of a text that its model reads twice. Raises as shift_right."""
        return self._after_start(prompt, self.shift_right(prompt.ids))

    def _after_start(self, prompt: Prompt, ids: Integers) -> Prompt:
        """The prompt of these ids, a special token and all or all but the last tokens of a text."""
        count, mask = len(ids) - 1, prompt.attention_mask
        return replace(
            prompt,
            ids=readonly(ids),
            pieces=(*self.from_ids(ids[:1]).pieces, *prompt.pieces[:count]),
            spans=readonly(np.concatenate([[[-1, -1]], prompt.spans[:count]])),
            attention_mask=None if mask is None else readonly(np.append(True, mask[:count])),
        )

    def shift_right(self, ids: Integers) -> Integers:
        """The ids (n,) that the decoder of a model that reads its text twice reads: those of the
        text, one token later. Raises HgvizError for a text without the token that such a
        classifier answers at."""
        module = cast("Transformers", self.module)
        return module.shift_right(self._tensor(ids))[0].cpu().numpy().astype(np.int64)

    def beginning(self) -> Prompt:
        """The token that the decoder of an encoder-decoder begins with, by its configuration.

        Raises HgvizError where that does not say it.
        """
        require(
            self.decoder_start is not None,
            "the decoder has no start token: config.json has no decoder_start_token_id",
            "Give a target with --target",
        )
        return self.from_ids([self.decoder_start])

    def from_ids(
        self,
        ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        boundaries: Any = None,
        position_ids: Any = None,
    ) -> Prompt:
        """The prompt of ids (n,), with as much text as they stand for. Raises HgvizError as run.

        Warns where they begin with padding and the model has learned positions.
        """
        values, mask, kinds = self._arrays(ids, attention_mask, token_type_ids)
        what = f"a prompt must be one text: these ids have the shape {values.shape}"
        require(values.ndim == 1, what)
        if position_ids is not None:
            limit = getattr(self.module, "most_positions", None)
            require_none({} if limit else {"position_ids": position_ids}, self.spec.family)
            places = _align(position_ids, "position_ids", values.shape, limit or 0)
            position_ids = readonly(places)
        elif mask is not None and mask.any() and not mask[0]:
            self._warn_of_padding()
        prompt = replace(
            self.tokenizer.decode(values),
            attention_mask=None if mask is None else readonly(mask),
            token_type_ids=None if kinds is None else readonly(kinds),
            position_ids=position_ids,
        )
        return prompt if boundaries is None else self.set_boundaries(prompt, boundaries)

    def _warn_of_padding(self) -> None:
        """Say where positions count from in a text that begins with padding."""
        if getattr(self.module, "first_position", None) is not None:
            words = (
                "Positions count from the first real token, as transformers' generate() does; "
                'give "position_ids" to change this.'
            )
        elif getattr(self.module, "counts_padding", False) or (
            getattr(self.config, "positions", "none") in ("learned", "sinusoidal")
        ):
            words = (
                "Positions count from the first token, including padding; remove the padding to "
                "count from the first real token."
            )
        else:
            return
        warnings.warn(words, HgvizWarning, stacklevel=3)

    def set_boundaries(self, prompt: Prompt, boundaries: Any) -> Prompt:
        """A prompt whose segments end where boundaries (n,) are 1, whatever the model predicts.

        Raises HgvizError where they do not fit, and for models that read no segments.
        """
        if not self.shortens:
            require_none({"boundaries": boundaries}, self.spec.family)
        ends = _bits(boundaries, "boundaries", prompt.ids.shape)
        if prompt.attention_mask is not None:
            ends = ends & prompt.attention_mask
        ends[:1] |= isinstance(self.config, TransformersConfig)  # as Patches has it
        return replace(prompt, boundaries=readonly(ends))

    def add_boundaries(
        self,
        prompt: Prompt,
        off: Collection[HeadId] = frozenset(),
        streaming: Streaming = NO_STREAMING,
    ) -> Prompt:
        """A prompt with the boundaries between which this model reads it, with heads of `off` off:
        its own where it has none yet. Of models that read no segments, the prompt itself."""
        if not self.shortens or prompt.boundaries is not None:
            return prompt
        module = cast("Dynamic | Transformers", self.module)
        with torch.inference_mode(), room(self.device, f"the text has {len(prompt):,} tokens"):
            run = Run(self._heads(off), streaming=streaming)
            ends = module.boundaries(self.tokens(prompt), run)
        return replace(prompt, boundaries=readonly(ends[0].cpu().numpy()))

    def from_signal(self, path: str | Path) -> Prompt:
        """The prompt of a picture or a sound: an image file, a .wav, or a .npy of what the model's
        processor makes. Raises HgvizError, also for a model that reads text."""
        return self._reader(Path(path))

    def reread(self, prompt: Prompt) -> Prompt:
        """The prompt of a picture or a sound that another model read. Raises as from_signal."""
        return self._reader.reread(prompt)

    def of_example(self, row: Example) -> Prompt:
        """The prompt of an example that the model is scored on. Raises HgvizError as run."""
        if row.signal is not None:
            return self._reader.of_values(row.signal, Path(row.text))
        prompt = self.from_ids(row.ids, token_type_ids=row.kinds if self._kinds else None)
        return replace(prompt, text=row.text, spans=readonly(row.spans))

    @property
    def _reader(self) -> Processor:
        if self.processor is None:
            raise HgvizError("this model reads text, not images or sound", "Use --text")
        return self.processor

    def from_states(self, states: Any, attention_mask: Any = None) -> Prompt:
        """A prompt of an encoder's states (n, width). Raises HgvizError as run."""
        values = self._states(states)
        what = f"only one text can be captured at a time: the states have {values.ndim} axes"
        require(values.ndim == 2, what)
        mask = None
        if attention_mask is not None:
            mask = readonly(_bits(attention_mask, "attention_mask", values.shape[:1]))
        pieces = tuple(f"state {i}" for i in range(len(values)))
        blank = slot_prompt(len(values))
        return replace(blank, pieces=pieces, attention_mask=mask, states=readonly(values))

    def spans(self, prompt: Prompt, target: Prompt | None = None) -> tuple[Integers, ...]:
        """The tokens behind every position of every level; boundaries as of add_boundaries."""
        if self.shortens:
            assert isinstance(self.config, DynamicConfig | TransformersConfig)
            return self.config.spans(len(prompt), boundaries=self.add_boundaries(prompt).boundaries)
        return self.config.spans(len(prompt), 0 if target is None else len(target))

    # --- passes ---

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
        of the layer's output is zero. Raises HgvizError for ids outside the vocabulary, a text
        too long, unknown heads, and arguments this family does not have.
        """
        has_encoder = self.spec.form == "encoder-decoder"
        foreign = {
            "token_type_ids": None if self._kinds else token_type_ids,
            "decoder_ids": None if has_encoder else decoder_ids,
            "decoder_mask": None if has_encoder else decoder_mask,
            "encoder_states": None if self.takes_states else encoder_states,
            "encoder_mask": None if self.takes_states else encoder_mask,
            "boundaries": None if self.shortens else boundaries,
        }
        require_none(foreign, self.spec.family)
        tokens = self._tokens(ids, attention_mask, token_type_ids, boundaries)
        if has_encoder and decoder_ids is not None:
            tokens = replace(self._tokens(decoder_ids, decoder_mask), source=tokens)
        elif self.spec.reads_twice:
            keep, module = tokens.keep, cast("Transformers", self.module)
            if keep is not None:
                keep = torch.cat([torch.ones_like(keep[:, :1]), keep[:, :-1]], 1)
            assert tokens.ids is not None
            tokens = Tokens(module.shift_right(tokens.ids), keep, source=tokens)
        elif has_encoder:
            what = "this model has an encoder and a decoder, and decoder_ids are missing"
            raise HgvizError(what, "Give ids and decoder_ids")
        elif self.takes_states and encoder_states is not None:
            tokens = replace(tokens, source=self._state_tokens(encoder_states, encoder_mask))
        if tokens.source is not None:
            counts = tokens.source.shape[0], tokens.shape[0]
            require(
                counts[0] == counts[1],
                "the batch sizes differ: "
                f"{counts[0]} for the encoder and {counts[1]} for the decoder",
            )
        logits = self.logits(tokens, Run(self._heads(off)))
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
        few keys, of causal layers. Raises HgvizError as run.
        """
        tokens = self.tokens(prompt, target)
        self._heads(streaming.heads)
        run = Run(self._heads(off), streaming=streaming, observers=observers)
        logits: NDArray[Any] = self.logits(tokens, run)[0]
        return logits

    def observe(
        self,
        prompt: Prompt,
        target: Prompt | None = None,
        *,
        observers: Sequence[Observer] = (),
        **options: Any,
    ) -> None:
        """As trace, for the observers of attention alone: no logits are made.

        The pass ends as soon as every layer has attended.
        """
        last = LastLayer({layer.index for layer in self.spec.layers})
        with suppress(PassEnded):
            self.trace(prompt, target, observers=(*observers, last), **options)

    def logits(self, tokens: Tokens, run: Run) -> NDArray[Any]:
        """What a pass over a batch gives, without gradients; float64 of a float64 model, else
        float32."""
        texts = [part.ids for part in (tokens, tokens.source) if part and part.ids is not None]
        longest = max(ids.shape[-1] for ids in texts)
        with room(self.device, f"the text has {longest:,} tokens"), torch.inference_mode():
            logits: Tensor = self.module(tokens, run)
        wide = logits.dtype if logits.dtype == torch.float64 else torch.float32
        values: NDArray[Any] = logits.to("cpu", wide).numpy()
        return values

    # --- tensors of what is read ---

    def tokens(self, prompt: Prompt, target: Prompt | None = None) -> Tokens:
        """A text, or two, as a batch of one that the module reads. Raises HgvizError as run."""
        if target is None and self.spec.reads_twice:
            target = self.decoder_prompt(prompt)
        need = "needs a second text for its decoder" if target is None else "reads one text"
        what = f"this model {need}: its form is {self.spec.form}"
        require(self.spec.two_texts == (target is not None), what)
        tokens = self._prompt_tokens(prompt, self.processor is not None)
        return tokens if target is None else replace(self._prompt_tokens(target), source=tokens)

    def _prompt_tokens(self, prompt: Prompt, is_signal: bool = False) -> Tokens:
        if prompt.states is not None:
            return self._state_tokens(prompt.states, prompt.attention_mask)
        require(
            (prompt.signal is not None) == is_signal,
            f"this model reads {READS[self.spec.modality]}, but the input is "
            f"{'text' if prompt.signal is None else 'something else'}",
            f"Use {READS[self.spec.modality]}",
        )
        if prompt.signal is not None:
            values = torch.tensor(prompt.signal.values, device=self.device, dtype=self._float)
            return Tokens(self._tensor(prompt.ids), signal=values[None])
        ends = prompt.boundaries if self.shortens else None  # those of a text of another model
        tokens = self._tokens(prompt.ids, prompt.attention_mask, prompt.token_type_ids, ends)
        if prompt.position_ids is None or not hasattr(self.module, "most_positions"):
            return tokens
        return replace(tokens, positions=self._tensor(prompt.position_ids))

    def _tokens(
        self,
        ids: Any,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        boundaries: Any = None,
    ) -> Tokens:
        values, mask, kinds = self._arrays(ids, attention_mask, token_type_ids)
        ends = None if boundaries is None else _bits(boundaries, "boundaries", values.shape)
        keep, segments, closing = (
            None if array is None else self._tensor(array) for array in (mask, kinds, ends)
        )
        return Tokens(self._tensor(values), keep, segments, boundaries=closing)

    def _state_tokens(self, states: Any, mask: Any) -> Tokens:
        values, keep = self._states(states), None
        if mask is not None:
            keep = self._tensor(_bits(mask, "attention_mask", values.shape[:-1]))
        batch = values if values.ndim == 3 else values[None]
        return Tokens(keep=keep, states=torch.tensor(batch, device=self.device, dtype=self._float))

    def _tensor(self, values: NDArray[Any]) -> Tensor:
        return torch.tensor(np.atleast_2d(values), device=self.device)

    @property
    def _float(self) -> torch.dtype:
        return next(self.module.parameters()).dtype

    # --- checks of what comes in ---

    def _arrays(
        self, ids: Any, attention_mask: Any, token_type_ids: Any
    ) -> tuple[Integers, NDArray[np.bool_] | None, Integers | None]:
        """Ids, mask and token types as arrays of the same shape, (n,) or (batch, n)."""
        spec, values = self.spec, _integers(ids, "ids")
        require_room(values.shape[-1] if values.size else 0, spec.max_positions)
        require(
            spec.vocabulary,
            f"this model reads {READS[spec.modality]}, not token ids: its family is {spec.family}",
            TAKEN.format(spec.modality),
        )
        low, high = int(values.min()), int(values.max())
        require(
            low >= 0 and high < spec.vocabulary,
            f"there is no token {low if low < 0 else high}: "
            f"the ids of this model are 0 to {spec.vocabulary - 1:,}",
            "Use the tokenizer the model was trained with",
        )
        mask, kinds = None, None
        if attention_mask is not None:
            mask = _bits(attention_mask, "attention_mask", values.shape)
        if token_type_ids is not None:
            require_none({} if self._kinds else {"token_type_ids": 1}, spec.family)
            kinds = _align(token_type_ids, "token_type_ids", values.shape, self._kinds)
        return readonly(values), mask, kinds

    def _states(self, states: Any) -> NDArray[Any]:
        """States (m, width) or (batch, m, width), finite. Raises HgvizError."""
        values, width = np.asarray(states), self.spec.width
        is_good = values.ndim in (2, 3) and values.dtype.kind == "f" and values.shape[-1] == width
        with np.errstate(over="ignore"):  # captures keep them in float32
            is_good = is_good and values.size > 0
            is_good = is_good and bool(np.isfinite(values.astype(np.float32)).all())
        require(
            is_good,
            "the encoder states do not fit this model: "
            f"they must be finite numbers of shape (positions, {width}), "
            f"not {values.dtype} {values.shape}",
        )
        return values

    def _heads(self, off: Collection[HeadId]) -> HeadSet:
        heads = frozenset(HeadId(*head) for head in off)
        unknown = sorted(heads.difference(self.spec.heads))[:1]
        require(
            not unknown,
            f"this model has no head {''.join(map(str, unknown))}: "
            f"its layers are 0 to {len(self.spec.layers) - 1}",
            "Run `hgviz info` on it to see every layer",
        )
        return heads


def require_none(arguments: dict[str, Any], family: str) -> None:
    """Raise HgvizError for the first argument that is not None: the model does not take it."""
    for name, value in arguments.items():
        what = f"this model does not accept {name}: its family is {family}"
        require(value is None, what, f"Leave {name} out")


def _bits(values: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    return _align(values, name, shape, 2).astype(bool)


def _align(values: Any, name: str, shape: tuple[int, ...], limit: int) -> Integers:
    """Integers from 0 to below a limit, of the ids' shape. Raises HgvizError for others."""
    array = _integers(values, name)
    require(
        array.shape == shape and (not array.size or 0 <= array.min() <= array.max() < limit),
        f"the {name} {'do' if name.endswith('s') else 'does'} not fit the ids: "
        f"each id needs a value from 0 to {limit - 1:,}: ids {shape}, {name} {array.shape}",
    )
    return array


def _integers(values: Any, name: str) -> Integers:
    try:
        array = np.asarray(values)
    except ValueError:
        raise HgvizError(f"the {name} are not an array: their rows differ in length") from None
    is_integer = not array.size or array.dtype.kind in "iub"
    require(is_integer, f"the {name} must be integers, not {array.dtype}")
    require(array.ndim in (1, 2), f"the {name} must have 1 or 2 dimensions, not {array.ndim}")
    return array.astype(np.int64)


def batch_tokens(batch: Batch, device: str, dtype: torch.dtype = torch.float32) -> Tokens:
    """A batch of examples as a model reads it; dtype: of pictures and sounds."""

    def tensor(values: Any, kind: torch.dtype | None = None) -> Tensor | None:
        return None if values is None else torch.tensor(values, device=device, dtype=kind)

    return Tokens(
        tensor(batch.ids),
        None if batch.mask.all() else tensor(batch.mask),
        tensor(batch.kinds),
        source=None if batch.first is None else batch_tokens(batch.first, device, dtype),
        signal=tensor(batch.signals, dtype),
    )


# --- opening --------------------------------------------------------------------------------------


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
    has another name and digest. reads: which model of a folder such as CLIP's. Raises HgvizError.
    """
    place, kind = device_of(device), dtype_of(dtype)
    is_possible = place != "mps" or kind != torch.float64
    require(is_possible, "mps does not support float64", "Use --dtype float32, or --device cpu")
    checkpoint, name = read(path, reads), ""
    if activation is not None:
        changed = with_activation(checkpoint.config, activation)
        digest = digest_of(changed, checkpoint.tensors)
        checkpoint, name = replace(checkpoint, config=changed, digest=digest), f" with {activation}"
    config, folder = _with_masking(checkpoint.config, masking), checkpoint.folder
    module = module_of(config, checkpoint.tensors, place, kind, checkpoint.network)
    parameters = sum(tensor.numel() for tensor in checkpoint.tensors.values())
    spec = config.spec(printable(model_name(folder) + name), checkpoint.digest, parameters)
    spec = replace(spec, labels=tuple(map(printable, spec.labels)))
    tokenizer: Tokenizer = Bare()
    if config.vocab_size:
        tokenizer = tokenizer_of(folder, config.vocab_size, checkpoint.tokenizer)
    processor = None
    if spec.modality != "text":
        from hgviz.models.huggingface import Transformers
        from hgviz.models.signals import Processor

        processor = Processor(folder, cast(Transformers, module))
    unread = (*checkpoint.unused, *unread_files(checkpoint.weights))
    ends = end_tokens(folder, tokenizer)
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

    def move(tensor: Tensor) -> Tensor:
        """The same numbers where torch itself would put them: else products have other bits."""
        tensor = tensor.to(device, dtype)
        is_aligned = tensor.data_ptr() % 64 == 0 and tensor.is_contiguous()
        return tensor if is_aligned else tensor.clone()

    module = outline(config)
    with room(device, f"the model has {sum(t.numel() for t in tensors.values()):,} parameters"):
        state = {name: move(tensor) for name, tensor in tensors.items()}
    module.load_state_dict(state, assign=True)
    return module.requires_grad_(False).eval()


def _with_masking(config: Any, masking: str | None) -> Any:
    masking = masking or str(getattr(config, "masking", "strict"))
    choose(masking, MASKINGS, "masking")
    require(
        masking == "strict" or config.form == "windowed",
        "this model only supports strict masking: "
        "compat masking is that of hourglass-transformer-pytorch",
        "Leave masking out",
    )
    return config.replace(masking=masking) if config.form == "windowed" else config
