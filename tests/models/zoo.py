"""Models of the package transformers, tiny and random, as save_pretrained writes them."""

from __future__ import annotations

import re
import warnings
from math import prod

import torch
from torch import nn
from tqdm import tqdm

tqdm.monitor_interval = 0  # no thread of its own
SIZES = {  # of whatever configuration or part of one has such a key: the first that fits
    "vocab_size|n_vocab|.*_vocab_size|vocab_size_.*": 120,
    "type_vocab_size|modality_type_vocab_size": 2,
    "hidden_size|d_model|n_embd|dim|embed_dim|embedding_size|word_embed_proj_dim|emb_dim"
    "|projection_dim|out_hidden_size|lru_width|output_dim|.*_hidden_size|hidden_size_.*"
    "|projection_size|embedding_dim": 32,
    "num_hidden_layers|n_layers?|num_layers|encoder_layers|decoder_layers|num_decoder_layers"
    "|num_encoder_layers|depth|.*_depth|num_(text|audio|vision)_layers|.*_num_hidden_layers|[lrx]_layers"
    "|num_blocks|layers|num_layers_per_stack|num_hidden_groups|memory_attention_num_layers": 2,
    "num_attention_heads|n_heads?|num_heads|attention_heads|.*_attention_heads|index_n_heads"
    "|.*_num_heads|.*_n_heads": 4,
    "num_key_value_heads|.*_num_key_value_heads|n_kv_heads|num_kv_heads|multi_query_group_num": 2,
    "head_dim|d_kv|.*_head_dim|qk_rope_head_dim|qk_nope_head_dim|kv_channels|d_head"
    "|attention_key_size|attention_head_size|dim_head|size_per_head|mamba_headdim": 8,
    "v_head_dim|qk_head_dim|kv_lora_rank|q_lora_rank": 16,
    "intermediate_size|ffn_dim|d_ff|hidden_dim|.*_ffn_dim|.*_intermediate_size|ffn_hidden_size"
    "|feed_forward_size|mlp_dim|d_inner|dim_ff|.*_ffn_hidden_size|.*_dim_feedforward": 48,
    "max_position_embeddings|n_positions|n_ctx|max_seq_len|max_sequence_length|max_text_len"
    "|max_source_positions|max_target_positions": 64,
    "sliding_window|attention_window_size|sliding_window_size": 5,
    "local_attention": 6,
    "num_local_experts|n_routed_experts|num_experts|moe_num_experts|num_moe_experts": 4,
    "num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|top_k_experts|moe_top_k": 2,
    "moe_intermediate_size|expert_ffn_hidden_size|mamba_.*_size|ssm_state_size|mamba_d_state": 16,
    "n_group|topk_group|n_shared_experts|first_k_dense_replace|num_shared_experts"
    "|moe_num_shared_experts": 1,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
    "decoder_start_token_id": 0,
    "query_pre_attn_scalar": 8, "rotary_dim": 4, "num_labels": 3,
    "patch_size": 8, "num_mel_bins": 16, "num_queries|num_query_tokens|num_latents": 6,
}  # fmt: skip
GIVEN = {"num_labels": 3, "attention_dropout": 0.0, "forced_eos_token_id": None}
LISTS = ("layer_types", "mlp_layer_types", "layers_block_type", "block_types", "attn_layers")
SPECIAL = range(110, 120)  # tokens that stand for something else than a text
FIXES = {  # what fits no rule
    "deepseek_v3": {"num_key_value_heads": 4},
}


def small(known, numbers):
    """What changes in a configuration: sizes by SIZES, its parts' too; numbers: of the special
    tokens so far, which are the same in all parts."""
    found = {}
    for key, value in known.items():
        if isinstance(value, dict) and (key.endswith("_config") or "model_type" in value):
            found[key] = {**value, **small(value, numbers)}
            for name in ("transformers_version", "dtype", "id2label", "label2id"):
                found[key].pop(name, None)
        size = next((size for keys, size in SIZES.items() if re.fullmatch(keys, key)), None)
        if size is not None and (type(value) is int and value != 0 or value is None):
            found[key] = size
        elif type(value) is int and value >= 100 and re.search("token_(id|index)|_id$", key):
            found[key] = SPECIAL[numbers.setdefault(key, len(numbers)) % len(SPECIAL)]
    kinds = [list(dict.fromkeys(known[key])) for key in LISTS if isinstance(known.get(key), list)]
    if kinds:
        count = max(2, *map(len, kinds)) if len(kinds) > 1 else max(2, len(kinds[0]))
        lists = [key for key in LISTS if isinstance(known.get(key), list)]
        for key, one in zip(lists, kinds, strict=True):
            found[key] = (one * count)[:count] if one else []
        for key in ("num_hidden_layers", "n_layers", "num_layers"):
            if key in found:
                found[key] = count
    return found


def config_of(kind, **changes):
    """A configuration of a model type with small sizes."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    made = CONFIG_MAPPING[kind]
    known = made().to_dict()
    given = {key: value for key, value in GIVEN.items() if key in known or key == "num_labels"}
    return made(**{**small(known, {}), **given, **FIXES.get(kind, {}), **changes})


def model_of(kind, name, **changes):
    """A model of a class whose weights are neither tiny nor all alike."""
    import transformers

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = getattr(transformers, name)(config_of(kind, **changes)).eval()
    kernels = {
        one.weight for one in model.modules() if isinstance(one, nn.modules.conv._ConvNd)
    }  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                width = prod(parameter.shape[1:]) if parameter in kernels else parameter.shape[-1]
                scale = 1.3 / max(1, width) ** 0.5
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
