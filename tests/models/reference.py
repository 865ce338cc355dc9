"""Small models of the package transformers with random weights, the independent reference."""

from inspect import signature

import numpy as np
import torch

BERT = {
    "vocab_size": 43, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 40, "max_position_embeddings": 40,
}  # fmt: skip
DECODER = {**BERT, "is_decoder": True}
CROSSED = {**DECODER, "add_cross_attention": True}
GPT2 = {
    "vocab_size": 300, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64,
    "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
# name: (class, configuration)
CASES = {
    "base": ("BertModel", BERT),
    "classes": ("BertForSequenceClassification", {**BERT, "id2label": {0: "a", 1: "b", 2: "c"}}),
    "masked": ("BertForMaskedLM", BERT),
    "pretraining": ("BertForPreTraining", BERT),
    "decoder": ("BertLMHeadModel", DECODER),
    "crossed": ("BertLMHeadModel", CROSSED),
    "crossed base": ("BertModel", CROSSED),
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "gpt2 base": ("GPT2Model", GPT2),
    "gpt2 crossed": ("GPT2LMHeadModel", {**GPT2, "add_cross_attention": True}),
}


def library():
    """transformers, which takes seconds to import; silent."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def make(name, options, seed=0, scale=0.15):
    """A float64 model with no parameter at its initial 0 or 1."""
    found = library()
    kind = found.GPT2Config if name.startswith("GPT2") else found.BertConfig
    config = kind(**options, attn_implementation="eager")
    torch.manual_seed(seed)
    model = getattr(found, name)(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += scale * torch.randn_like(parameter)
    return model


def crossed(model):
    """Whether a model attends to the states of an encoder."""
    return bool(model.config.add_cross_attention)


@torch.no_grad()
def answer(model, ids, mask=None, types=None, states=None, states_mask=None, maps=False):
    """What the model gives for arrays, in float64 or float32: logits, or last hidden states; and
    maps, a list (batch, heads, queries, keys) in order of computation."""
    kind = next(model.parameters()).dtype
    given = {
        "input_ids": ids, "attention_mask": mask, "token_type_ids": types,
        "encoder_attention_mask": states_mask,
    }  # fmt: skip
    given = {name: torch.as_tensor(one).long() for name, one in given.items() if one is not None}
    takes = signature(model.forward).parameters
    if mask is not None and "position_ids" in takes:  # as generate() counts: from the first token
        given["position_ids"] = (given["attention_mask"].cumsum(-1) - 1).clamp(min=0)
    if states is not None:
        given["encoder_hidden_states"] = torch.as_tensor(states).to(kind)
    out = model(**given, output_attentions=maps)
    names = ("logits", "prediction_logits", "last_hidden_state")
    said = next(out[name] for name in names if name in out).numpy()
    if not maps:
        return said
    found = [one.numpy() for one in out.attentions]
    if states is not None:
        both = zip(found, out.cross_attentions, strict=True)
        found = [part for own, cross in both for part in (own, cross.numpy())]
    return said, found


def padded(vocabulary, side, seed=0, lengths=(9, 5, 1), width=9):
    """A batch of ids with its mask, real tokens to the right or left of the padding."""
    random = np.random.default_rng(seed)
    ids = random.integers(0, vocabulary, (len(lengths), width))
    places = np.arange(width)
    mask = np.stack(
        [places < n if side == "right" else places >= width - n for n in lengths]
    )  # fmt: skip
    return ids, mask
