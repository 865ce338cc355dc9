"""Models of the package transformers, tiny and random, as save_pretrained writes them."""

import re
import warnings
from inspect import signature
from math import prod

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

tqdm.monitor_interval = 0  # no thread of its own
SIZES = {  # of whatever configuration or part of one has such a key: the first that fits
    "type_vocab_size|modality_type_vocab_size|mamba_d_conv|num_mem_blocks": 2,
    "vocab_size|n_vocab|.*_vocab_size|vocab_size_.*|num_embeddings"
    "|encoder_hash_byte_group_vocab": 120,
    "codebook_size": 128,
    "v_head_dim|qk_head_dim|kv_lora_rank|q_lora_rank|mamba_d_state|ssm_state_size|state_size"
    "|mamba_d_head|mamba_head_dim|mamba_headdim": 16,
    "head_dim|d_kv|.*_head_dim|global_head_dim|kv_channels|d_head|attention_key_size"
    "|attention_head_size|dim_head|size_per_head": 8,
    "num_hidden_layers|n_layers?|num_layers|encoder_layers|decoder_layers|num_decoder_layers"
    "|num_encoder_layers|depth|.*_depth|num_(text|audio|vision)_layers|.*_num_hidden_layers"
    "|[lrx]_layers|num_blocks|layers|num_layers_per_stack|memory_attention_num_layers"
    "|num_self_attends_per_block|.*_num_layers|num_sparse_.*_layers": 2,
    "num_attention_heads|n_heads?|num_heads|attention_heads|.*_attention_heads|index_n_heads"
    "|.*_num_heads|.*_n_heads|n_mamba_heads|mamba_num_heads": 4,
    "num_key_value_heads|.*_num_key_value_heads|n_kv_heads|num_kv_heads|kv_n_heads|n_groups"
    "|multi_query_group_num|mamba_n_groups|num_dense_layers": 2,
    "moe_intermediate_size|expert_ffn_hidden_size|.*expert_intermediate_size": 16,
    "intermediate_size|ffn_dim|d_ff|hidden_dim|.*_ffn_dim|.*_intermediate_size|ffn_hidden_size"
    "|feed_forward_size|mlp_dim|d_inner|dim_ff|.*_ffn_hidden_size|.*_dim_feedforward": 48,
    "hidden_size|d_model|n_embd|dim|embed_dim|embedding_size|word_embed_proj_dim|emb_dim"
    "|projection_dim|out_hidden_size|lru_width|output_dim|.*_hidden_size|hidden_size_.*"
    "|projection_size|embedding_dim|d_latents|.*_embedding_size|codebook_dim|upsample_groups"
    "|.*_embed_dim|vision_output_dim|adapter_in_dim|adapter_out_dim|adapter_input_size|intra_bottleneck_size|condition_dim"
    "|vector_quantization_hidden_dimension|.*_hidden_dim": 32,
    "max_position_embeddings|n_positions|n_ctx|max_seq_len|max_sequence_length|max_text_len"
    "|max_source_positions|max_target_positions": 64,
    "sliding_window|attention_window_size|sliding_window_size": 5,
    "local_attention|window_size": 6,
    "num_local_experts|n_routed_experts|num_experts|moe_num_experts|num_moe_experts": 4,
    "num_experts_per_tok|num_experts_per_token|moe_topk|moe_k|top_k_experts|moe_top_k": 2,
    "n_group|topk_group|n_shared_experts|first_k_dense_replace|num_shared_experts"
    "|moe_num_shared_experts": 1,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2,
    "decoder_start_token_id": 0,
    "query_pre_attn_scalar": 8, "rotary_dim": 4,
    "patch_size": 8, "image_size|img_size": 32, "num_mel_bins": 16, "num_filters": 8,
    "base_channels": 32, "index_topk|indexer_topk": 6,
    "index_block_size|num_landmarks": 4, "index_topk_blocks": 2,
    "num_queries|num_query_tokens|num_latents": 6,
}  # fmt: skip
GIVEN = {"attention_dropout": 0.0, "forced_eos_token_id": None}
TYPES = ("layer_types", "mlp_layer_types", "layers_block_type", "block_types", "attn_layers")
LISTS = ("hidden_sizes", "embed_dims", "embed_dim", "embed_dim_per_stage", "backbone_channel_list")
DEPTHS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers", "depth")
SPECIAL = range(110, 120)  # tokens that stand for something else than a text
AXES = "glm|qwen|ernie|paddle|hunyuan|cosmos|compass"  # types whose angles are those of three axes
FIXES = {  # by type, of a model or a part, what fits no rule
    "bamba": {"attn_layer_indices": [1]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 4},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    "lilt": {"hidden_size": 48}, "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "mistral4": {"head_dim": 16}, "mamba2": {"head_dim": 16},
    "reformer": {
        "attn_layers": ["local", "lsh"], "is_decoder": True, "axial_pos_shape": [8, 8],
        "axial_pos_embds_dim": [16, 16], "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8,
        "num_buckets": 4,
    },
    # transformers sets its vector of padding to 0 when it loads it, whatever the file says
    "funnel": {"block_sizes": [1, 2, 1], "pad_token_id": None},
    "glm4v_moe_text": {"head_dim": 16}, "esmc": {"num_key_value_heads": 4},
    "glm5_next_text": {"num_key_value_heads": 4, "index_kpool": 2},
    "neomme": {"head_dim": 16}, "zaya": {"num_experts_per_tok": 1},
    "bailing_hybrid": {"num_expert_group": 1}, "xmod": {"default_language": "en_XX"},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_d_head": 16}, "beam": {"sliding_window": 5},
    "chameleon": {"vocabulary_map": {"<image>": 110}, "image_token_id": 110},
    "emu3": {"vocabulary_map": {"<image>": 110}, "image_token_id": 110},
    "cohere_compass_text": {"rope_parameters": {
        kind: {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
        for kind in ("full_attention", "sliding_attention")
    }},
    "zamba": {
        "num_hidden_layers": 4, "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "attention_hidden_size": 64, "attention_head_dim": 16, "mamba_dt_rank": 4,
        "num_key_value_heads": 4, "n_mamba_heads": 2,
    },
    "zamba2": {
        "num_hidden_layers": 4, "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "attention_hidden_size": 64, "attention_head_dim": 16, "num_key_value_heads": 4,
        "mamba_headdim": 16, "mamba_ngroups": 1,
    },
    "gemma3n_text": {
        "num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2, "intermediate_size": [48] * 4,
        "activation_sparsity_pattern": [0.95, 0.0, 0.0, 0.0],
    },
    "ernie4_5_vl_moe_text": {
        "moe_intermediate_size": [16, 16],
        "rope_parameters": {
            "rope_type": "default", "rope_theta": 10000.0, "mrope_section": [1, 1, 2]
        },
    },
    "molmo2_adapter": {"vision_feature_layer": [1, 0]},
    "molmo2_vision": {"image_size": [32, 32], "num_position_embeddings": 16},
    "dots3_note_text": {"per_layer_config": {2: {
        "num_attention_heads": 2, "num_key_value_heads": 2, "kv_lora_rank": 32,
        "qk_nope_head_dim": 16, "head_dim": 24,
    }}},
    "unlimited_ocr_text": {"num_key_value_heads": 4},
    "minimax_m3_vl_text": {"layer_types": ["full_attention", "minimax_m3_sparse"]},
    "muse_spark_audio": {"num_hidden_layers": 4}, "adaptor_config": {"intermediate_size": 8},
    "bros": {"hidden_size": 64},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 1e4}},
    "granite_speech5_encoder": {"context_size": 16}, "granite_speech5_ctc": {"context_size": 16},
    "autoformer": {"prediction_length": 4}, "informer": {"prediction_length": 4},
    "time_series_transformer": {"prediction_length": 4},
    "qwen4_exp_text": {
        "layer_types": ["linear_attention", "indexed_attention"], "indexer_kv_heads": 1,
        "indexer_budget": 8, "indexer_compress_ratio": 2, "hc_count": 2, "hc_lowrank": 8,
    },
}  # fmt: skip


def small(known, numbers, name=""):
    """What changes in a configuration: sizes by SIZES, its parts' too; numbers: of the special
    tokens so far, which are the same in all parts; name: of a part without a type."""
    found, kind = {}, known.get("model_type") or name
    for key, value in known.items():
        part = key.endswith("_config") and key != "per_layer_config"
        if isinstance(value, dict) and (part or "model_type" in value):
            found[key] = {**value, **small(value, numbers, key)}
            for name in ("transformers_version", "dtype", "id2label", "label2id", "stage_names",
                         "per_layer_config", "layer_rope_theta"):  # fmt: skip
                found[key].pop(name, None)
        size = next((size for keys, size in SIZES.items() if re.fullmatch(keys, key)), None)
        if size is not None and (type(value) is int and value > 0 or value is None):
            found[key] = size
        elif type(value) is int and value >= 100 and re.search("token_(id|index)|_id$", key):
            found[key] = SPECIAL[numbers.setdefault(key, len(numbers)) % len(SPECIAL)]
        elif isinstance(value, list) and value and all(type(one) is int for one in value):
            if key == "depths":
                found[key] = [min(2, one) for one in value]
            elif key in ("num_heads", "num_attention_heads") and value[0] > 1:
                found[key] = [4 * one // value[0] for one in value]
            elif key in LISTS and not any(one % 8 for one in value):
                found[key] = [one // 8 for one in value]
    found |= by_layer(known, found)
    if isinstance(stages := known.get("out_features"), list) and "num_hidden_layers" in found:
        count = max(2, len(stages))
        found |= {
            "num_hidden_layers": count, "out_indices": None,
            "out_features": [f"stage{at}" for at in range(1, count + 1)][-len(stages) :],
        }  # fmt: skip
    if "kv_lora_rank" in known:
        found["num_key_value_heads"] = 4
    fixes = FIXES.get(kind, {})
    width = fixes.get("head_dim", 8)
    if isinstance(rope := known.get("rope_parameters"), dict):
        found["rope_parameters"] = turned(rope, width, bool(re.search(AXES, kind)))
    return {**found, **fixes}


def by_layer(known, found):
    """Lists that say something of each layer, cut to layers of which no two are alike."""
    count = next((known[key] for key in DEPTHS if isinstance(known.get(key), int)), 0)
    lists = {
        key: value
        for key, value in known.items()
        if isinstance(value, list) and (key in TYPES or len(value) == count > 4)
    }
    if not any(lists.values()):
        return {}
    rows = list(zip(*(lists[key] for key in TYPES if lists.get(key)), strict=False))
    rows = rows or [(None,)] * count
    places = sorted({str(row): at for at, row in reversed(list(enumerate(rows)))}.values())[:4]
    places = (places * 2)[: max(2, len(places))]
    made = {key: [one[at] for at in places] for key, one in lists.items() if len(one) == len(rows)}
    for key, value in made.items():
        if key in found or isinstance(value[0], int) and value[0] > 256:
            made[key] = [48] * len(value)
    return {**made, **{key: len(places) for key in DEPTHS if key in found}}


def turned(rope, width, axes):
    """Rotary angles of heads so wide."""
    if any(isinstance(one, dict) for one in rope.values()):
        return {key: one and turned(one, width, axes) for key, one in rope.items()}
    if not rope or not axes and "mrope_section" not in rope:
        return rope
    pairs = int(width * (rope.get("partial_rotary_factor") or 1)) // 2
    return {**rope, "mrope_section": [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3]}


def config_of(kind, **changes):
    """A configuration of a model type with small sizes."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    made = CONFIG_MAPPING[kind]
    known = made().to_dict()
    given = {key: value for key, value in GIVEN.items() if key in known}
    return made(**{**small(known, {}), **given, **changes})


def model_of(kind, name, **changes):
    """A model of a class whose weights are neither tiny nor all alike."""
    import transformers

    if name.endswith("ForQuestionAnswering"):
        changes = {"num_labels": 2, **changes}  # a begin and an end
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


# --- BERT and GPT-2 -------------------------------------------------------------------------------

BERT = {
    "vocab_size": 43, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 40, "max_position_embeddings": 40,
}  # fmt: skip
CROSSED = {**BERT, "is_decoder": True, "add_cross_attention": True}
GPT2 = {
    "vocab_size": 300, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64,
    "bos_token_id": None, "eos_token_id": None,
}  # fmt: skip
# name: (class, configuration)
CASES = {
    "classes": ("BertForSequenceClassification", {**BERT, "id2label": {0: "a", 1: "b", 2: "c"}}),
    "masked": ("BertForMaskedLM", BERT),
    "pretraining": ("BertForPreTraining", BERT),
    "crossed": ("BertLMHeadModel", CROSSED),
    "gpt2": ("GPT2LMHeadModel", GPT2),
    "gpt2 crossed": ("GPT2LMHeadModel", {**GPT2, "add_cross_attention": True}),
}


def library():
    """transformers, which takes seconds to import; silent."""
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def make_theirs(name, options, seed=0, scale=0.15):
    """A float64 model with no parameter at its initial 0 or 1."""
    made = getattr(library(), name)
    torch.manual_seed(seed)
    model = made(made.config_class(**options, attn_implementation="eager")).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += scale * torch.randn_like(parameter)
    return model


def crossed(model):
    """Whether a model attends to the states of an encoder."""
    return bool(model.config.add_cross_attention)


@torch.no_grad()
def run_theirs(model, ids, mask=None, types=None, states=None, states_mask=None, maps=False):
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


# --- Byte Latent Transformers ---------------------------------------------------------------------

HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}
PART = {**HEADS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
THRESHOLD = 4.97  # nats that some bytes are less sure than of what follows
MODES = {  # ways to cut a text, and to look between bytes and patches
    "one part": {"cross_attn_k": 1},
    "two parts": {},
    "short patches": {"max_patch_length": 2},
    "bytes by themselves": {"patching_mode": "byte"},
    "all layers look down": {"down": True},
}


def build_blt(name="BltModel", seed=0, *, cross_attn_k=2, down=False, up=True, **changes):
    """A model with no parameter at its initial 0 or 1."""
    found = library()
    torch.manual_seed(seed)
    own = {**PART, "vocab_size": 256, "cross_attn_k": cross_attn_k, "hidden_size_global": 32}
    sizes = {
        "vocab_size": 256, "cross_attn_k": cross_attn_k, "encoder_hash_byte_group_vocab": 120,
        "encoder_hash_byte_group_size": [2, 3], "local_attention_window_len": 6,
        "patching_threshold": THRESHOLD,
        "patcher_config": {**PART, "vocab_size": 256, "sliding_window": 5},
        "encoder_config": {**own, "cross_attn_all_layers": down},
        "decoder_config": {**own, "cross_attn_all_layers": up}, "global_config": PART,
    }  # fmt: skip
    model = getattr(found, name)(found.BltConfig(**{**sizes, **changes})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model


def write_blt(folder, name="BltModel", **changes):
    """A folder of such a model."""
    build_blt(name, **changes).save_pretrained(folder)
    return folder


@torch.no_grad()
def run_blt(model, ids, lengths=None, keep=None):
    """What it gives (B, n, ...) in float64; with the masks of its eager code a patch of no byte
    would be NaN there."""
    model = model.double()
    model.set_attn_implementation("sdpa")
    more = {} if lengths is None else {"patch_lengths": torch.as_tensor(lengths)}
    if keep is not None:
        more["attention_mask"] = torch.as_tensor(keep).long()
    out = model(torch.as_tensor(ids), use_cache=False, **more)
    return (out.last_hidden_state if out.get("logits") is None else out.logits).numpy()


@torch.no_grad()
def maps_of_blt(model, ids, lengths=None):
    """The softmaxes (H, Q, K) of every layer of a text, in order of computation."""
    found = []

    def seen(module, given, out):
        found.append(out[1][0].numpy())

    hooks = [
        one.register_forward_hook(seen)
        for one in model.modules()
        if type(one).__name__ in ("BltSelfAttention", "BltCrossAttention")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_attn_implementation("eager")
        more = {} if lengths is None else {"patch_lengths": torch.as_tensor(lengths)[None]}
        model(torch.as_tensor(ids)[None], use_cache=False, **more)
    for one in hooks:
        one.remove()
    return found


def bytes_of(length, seed=0):
    return np.random.default_rng([length, seed]).integers(0, 256, length)
