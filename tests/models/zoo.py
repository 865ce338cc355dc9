"""Models of the package transformers, tiny and random, as save_pretrained writes them."""

from __future__ import annotations

import warnings

import torch
from tqdm import tqdm

tqdm.monitor_interval = 0  # no thread of its own
SIZES = {  # of whatever configuration has such a key
    "vocab_size": 120, "hidden_size": 32, "d_model": 32, "n_embd": 32, "dim": 32, "embed_dim": 32,
    "embedding_size": 32, "word_embed_proj_dim": 32, "num_hidden_layers": 2, "n_layer": 2,
    "n_layers": 2, "num_layers": 2, "encoder_layers": 2, "decoder_layers": 2,
    "num_decoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 8, "d_kv": 8, "intermediate_size": 48, "ffn_dim": 48, "d_ff": 48, "hidden_dim": 48,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
    "n_positions": 64, "sliding_window": 5, "local_attention": 6, "num_local_experts": 4,
    "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "n_group": 1,
    "topk_group": 1, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "v_head_dim": 16, "n_shared_experts": 1, "first_k_dense_replace": 1,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
    "decoder_start_token_id": 0, "attention_dropout": 0.0, "num_labels": 3,
    "query_pre_attn_scalar": 8, "rotary_dim": 4, "forced_eos_token_id": None,
}  # fmt: skip
EVERY_HEAD = {"deepseek_v3": 4, "phi3": 2}  # heads that have keys of their own


def config_of(kind, **changes):
    """A configuration of a model type with small sizes."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    made = CONFIG_MAPPING[kind]
    known = made().to_dict()
    sizes = {key: value for key, value in SIZES.items() if key in known}
    if kind in EVERY_HEAD:
        sizes["num_key_value_heads"] = EVERY_HEAD[kind]
    for key in ("layer_types", "mlp_layer_types"):
        if isinstance(known.get(key), list):
            sizes[key] = list(dict.fromkeys(known[key]))[:2]
            sizes[key] = (sizes[key] * 2)[:2]
    return made(**{**sizes, **changes})


def model_of(kind, name, **changes):
    """A model of a class whose weights are neither tiny nor all alike."""
    import transformers

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(transformers, name)(config_of(kind, **changes)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                scale = 1.3 / max(1, parameter.shape[-1]) ** 0.5
                parameter.copy_(scale * torch.randn_like(parameter))
            else:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def write(folder, kind, name, **changes):
    """The folder of such a model."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model_of(kind, name, **changes).save_pretrained(folder)
    return folder
