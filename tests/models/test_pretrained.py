"""Folders of save_pretrained open however their files are kept, and say what is wrong with them."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.models import devices, open_model, pretrained, tensors
from hgviz.models.checkpoints import recognises
from hgviz.models.tensors import read_tensors
from tests.closeness import scaled_error
from tests.models import reference, zoo
from tests.models.folders import split, write_bert, write_gpt2
from tests.models.test_checkpoints import Evil, configured, refusal

IDS = np.array([2, 5, 6, 7, 3])
WRITERS = {"bert": write_bert, "gpt2": write_gpt2}
SAFE = "model.safetensors"


@pytest.fixture(params=WRITERS)
def folder(tmp_path, request):
    return WRITERS[request.param](tmp_path / "theirs")


def weights(folder):
    return load_file(folder / SAFE)


def replaced(folder, change, name=SAFE):
    """The same folder with weights that are changed, in a file of that name."""
    held = change(weights(folder))
    (folder / SAFE).unlink()
    (save_file if name.endswith(".safetensors") else torch.save)(held, folder / name)
    return folder


def logits_of(path):
    logits = open_model(path, dtype="float64").run(IDS).logits
    assert np.abs(logits).max() > 0.1
    return logits


def same(path, expected):
    return scaled_error(logits_of(path), expected) < 1e-6


# --- what opens -----------------------------------------------------------------------------------


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_files_of_every_kind_hold_the_same_model(tmp_path, write):
    expected = logits_of(write(tmp_path / "whole"))

    def wrapped(held):
        return {f"module.{name}": one for name, one in held.items()}

    assert same(write(tmp_path / "bare", prefix=""), expected)
    assert same(replaced(write(tmp_path / "bin"), dict, "pytorch_model.bin"), expected)
    assert same(replaced(write(tmp_path / "wrapped"), wrapped), expected)
    for name, ending in (("model", ".safetensors"), ("pytorch_model", ".bin")):
        index = split(write(tmp_path / name), name, ending)
        shard = next(one for one in index.parent.iterdir() if "-of-" in one.name)
        for path in (index.parent, index, index.parent / "config.json", shard):
            assert recognises(path) and same(path, expected)


def test_safetensors_are_read_before_pickles(folder):
    for name in ("pytorch_model.bin", "training_args.bin", "tf_model.h5"):
        (folder / name).write_bytes(b"anything")
    assert recognises(folder) and open_model(folder).spec.parameters > 0
    said = str(refusal(folder / "pytorch_model.bin"))
    assert "theirs/pytorch_model.bin could not be read" in said


def old_names(held):
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): one
        for name, one in held.items()
    }
    return {**renamed, "bert.embeddings.position_ids": torch.arange(40)[None]}


def masks_of_gpt2(held):
    masks = {
        "transformer.h.0.attn.bias": torch.ones(1, 1, 64, 64, dtype=torch.uint8),
        "transformer.h.1.attn.bias": torch.ones(1, 1, 64, 64, dtype=torch.bool),
        "transformer.h.0.attn.masked_bias": torch.tensor(-torch.inf),
    }
    return {**held, **masks}


@pytest.mark.parametrize(
    ("write", "change"), [(write_bert, old_names), (write_gpt2, masks_of_gpt2)]
)
@pytest.mark.parametrize("name", [SAFE, "pytorch_model.bin"])
def test_names_of_old_and_buffers_are_understood(tmp_path, write, change, name):
    expected = logits_of(write(tmp_path / "new"))
    folder = replaced(write(tmp_path / "old"), change, name)
    assert same(folder, expected)
    if write is write_bert:
        assert same(configured(folder, model_type=None), expected)


def test_masks_and_frequencies_that_older_files_keep_are_no_weights(tmp_path):
    path = zoo.write(tmp_path / "m", "gpt_neo", "GPTNeoForCausalLM")
    held, expected, place = weights(path), open_model(path).run(IDS).logits, "transformer.h"
    old = {
        f"{place}.0.attn.attention.bias": torch.ones(1, 1, 64, 64, dtype=torch.uint8),
        f"{place}.0.attn.attention.masked_bias": torch.tensor(-1e9),
        f"{place}.1.attn.attention.rotary.inv_freq": torch.ones(4),
    }
    save_file({**held, **old}, path / SAFE)
    assert np.array_equal(open_model(path).run(IDS).logits, expected)
    save_file({**held, f"{place}.1.attn.attention.gate.weight": torch.ones(4, 4)}, path / SAFE)
    assert f"has no use for {place}.1.attn.attention.gate" in refusal(path).what


@pytest.mark.parametrize(("write", "head", "inner", "more"), [
    (write_bert, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight",
     {"architectures": ["BertForMaskedLM"]}),
    (write_gpt2, "lm_head.weight", "transformer.wte.weight", {}),
])  # fmt: skip
def test_a_repeated_embedding_is_tied_and_another_matrix_is_not(tmp_path, write, head, inner, more):
    plain = write(tmp_path / "plain", **more)
    expected, parameters = logits_of(plain), open_model(plain).spec.parameters
    repeated = replaced(write(tmp_path / "a", **more), lambda t: {**t, head: t[inner].clone()})
    assert same(repeated, expected)
    other = replaced(write(tmp_path / "b", **more), lambda t: {**t, head: t[inner] + 1})
    assert not np.allclose(logits_of(other), expected)
    assert open_model(other).spec.parameters > parameters
    untied = configured(write(tmp_path / "c", **more), tie_word_embeddings=False)
    assert f"the file lacks {head.rpartition('.')[0]}" in refusal(untied).what


def test_what_no_output_depends_on_may_be_missing_or_left_over(tmp_path):
    """As the pooler of many sentence encoders is, and heads of pre-training."""
    for architecture in ("BertForMaskedLM", "BertForPreTraining"):
        more = {"architectures": [architecture]}
        rest = {
            "bert.pooler.dense.weight": torch.zeros(24, 24),
            "bert.pooler.dense.bias": torch.zeros(24),
            "cls.seq_relationship.weight": torch.zeros(2, 24),
            "cls.seq_relationship.bias": torch.zeros(2),
        }  # fmt: skip
        expected = logits_of(write_bert(tmp_path / architecture, **more))
        assert same(replaced(tmp_path / architecture, lambda t, rest=rest: {**t, **rest}), expected)
    folder = write_bert(tmp_path / "states", architectures=["BertModel"])
    expected = logits_of(folder)
    replaced(folder, lambda held: {name: x for name, x in held.items() if "pooler" not in name})
    assert same(folder, expected)
    lost = ".0.attention.self.key"
    replaced(folder, lambda held: {name: x for name, x in held.items() if lost not in name})
    assert "the file lacks " in refusal(folder).what and f"layer{lost}.bias" in refusal(folder).what


def test_the_bias_that_is_used_is_the_one_that_is_read(tmp_path):
    folder = write_bert(tmp_path, architectures=["BertForMaskedLM"])
    plain, used = logits_of(folder), torch.arange(43.0)
    old = weights(folder)["cls.predictions.bias"]
    replaced(folder, lambda held: {**held, "cls.predictions.decoder.bias": used})
    assert scaled_error(logits_of(folder) - plain, (used - old).numpy()) < 1e-5


@pytest.mark.parametrize(("architecture", "decoder", "goal", "form"), [
    ("BertModel", False, "states", "encoder"), ("BertModel", True, "states", "decoder"),
    ("BertForMaskedLM", False, "masked", "encoder"), ("BertLMHeadModel", True, "next", "decoder"),
    ("BertLMHeadModel", False, "masked", "encoder"),
    ("BertForSequenceClassification", False, "classes", "encoder"),
])  # fmt: skip
def test_the_architecture_says_what_a_model_is_for(tmp_path, architecture, decoder, goal, form):
    folder = write_bert(tmp_path, architectures=[architecture], is_decoder=decoder)
    spec = open_model(folder).spec
    assert (spec.goal, spec.form, spec.family) == (goal, form, "bert")
    silent = open_model(configured(folder, architectures=None)).spec
    assert (silent.goal, silent.form) == (goal, form)


def test_labels_have_the_names_that_config_json_gives_them(tmp_path):
    assert open_model(write_bert(tmp_path)).spec.labels == ("against", "for")
    for given, labels in (
        (None, ("LABEL_0", "LABEL_1")), ({"1": 5, "0": "a"}, ("a", "5")),
        ({"0": "\x00\n\u202e<b>", "1": "x" * 10_000}, ("\ufffd\ufffd\ufffd<b>", "x" * 200)),
    ):  # fmt: skip
        assert open_model(configured(tmp_path, id2label=given)).spec.labels == labels


# --- heads that are pruned ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pruned", "left"), [({0: [1], 1: [0, 2]}, [(0, 2), (1,)]), ({0: [0, 1, 2]}, [(), (0, 1, 2)])]
)
@pytest.mark.parametrize("name", ["masked", "crossed", "gpt2"])
def test_pruned_heads_are_gone_and_the_others_keep_their_numbers(tmp_path, name, pruned, left):
    """As transformers before 5 wrote them: the rows of their q, k, v and the columns of their o."""
    net = reference.make(*reference.CASES[name])
    net.save_pretrained(tmp_path)
    held, state = weights(tmp_path), net.state_dict()
    for layer, heads in pruned.items():
        kept = [i for i in range(24) if i // 8 not in heads]
        gone = [i for i in range(24) if i // 8 in heads]
        if name == "gpt2":
            own = f"transformer.h.{layer}.attn"
            thirds = [third * 24 + i for third in range(3) for i in kept]
            held[f"{own}.c_attn.weight"] = held[f"{own}.c_attn.weight"][:, thirds]
            held[f"{own}.c_attn.bias"] = held[f"{own}.c_attn.bias"][thirds]
            held[f"{own}.c_proj.weight"] = held[f"{own}.c_proj.weight"][kept]
            state[f"{own}.c_proj.weight"][gone] = 0
        else:
            own = f"bert.encoder.layer.{layer}.attention"
            for part in ("query", "key", "value"):
                for kind in ("weight", "bias"):
                    held[f"{own}.self.{part}.{kind}"] = held[f"{own}.self.{part}.{kind}"][kept]
            held[f"{own}.output.dense.weight"] = held[f"{own}.output.dense.weight"][:, kept]
            state[f"{own}.output.dense.weight"][:, gone] = 0
    save_file({key: one.contiguous() for key, one in held.items()}, tmp_path / SAFE)
    configured(tmp_path, pruned_heads={str(layer): heads for layer, heads in pruned.items()})
    model = open_model(tmp_path, dtype="float64")
    assert [x.heads for x in model.spec.layers if x.role == "self"] == left
    assert all(x.heads == (0, 1, 2) for x in model.spec.layers if x.role == "cross")
    states = np.random.default_rng(0).normal(size=(1, 5, 24)) if name == "crossed" else None
    wanted = reference.answer(net, IDS[None], states=states)[0]
    ours = model.run(IDS, encoder_states=None if states is None else states[0]).logits
    assert scaled_error(ours, wanted) < 1e-6 and HeadId(0, 1) not in model.spec.heads
    if name != "crossed":
        capture = tasks.capture(model, model.from_ids(IDS))
        assert [one.shape for one in capture.maps] == [(len(heads), 5, 5) for heads in left]


# --- what does not fit ----------------------------------------------------------------------------


REFUSED = [  # kind, changes of config.json, what is said
    *(("bert", {"pruned_heads": x}, "pruned_heads")
      for x in ({"5": [0]}, {"0": [7]}, {"x": [0]}, {"0": [-1]}, {"0": 1}, [1])),
    ("bert", {"pruned_heads": {"0": [1]}}, "0.attention.self has 3 heads"),
    ("bert", {"architectures": ["BertForQuestionAnswering"]}, "the file lacks qa_outputs.bias"),
    ("bert", {"model_type": "roberta"}, "BertForSequenceClassification is of the type bert"),
    ("bert", {"model_type": "gpt2"}, "BertForSequenceClassification is of the type bert"),
    ("bert", {"hidden_act": "x" * 10**5}, "transformers says: 'xxx"),
    ("bert", {"hidden_act": "geluu"}, "is 'geluu'; transformers says: 'geluu'. Correct hidden_act"),
    ("bert", {"num_attention_heads": 0}, "Correct num_attention_heads in theirs/config.json"),
    ("bert", {"num_attention_heads": 7}, "Correct num_attention_heads in theirs/config.json"),
    ("bert", {"num_attention_heads": "3"}, "'num_attention_heads' expected int"),
    ("bert", {"num_attention_heads": 2**31}, "num_attention_heads is 2,147,483,648"),
    ("bert", {"pad_token_id": 10**6}, "is 1000000; transformers says: Padding_idx must"),
    ("bert", {"hidden_size": 25}, "(25) is not a multiple of the number of attention heads (3)"),
    ("bert", {"hidden_size": 0}, "that can be built"),
    ("bert", {"hidden_size": -1}, "negative dimension -1"),
    ("bert", {"num_hidden_layers": 10**9}, "num_hidden_layers is 1,000,000,000"),
    ("bert", {"num_hidden_layers": 3}, "layer.2."), ("bert", {"num_hidden_layers": 1}, "layer.1."),
    ("bert", {"vocab_size": 2**40}, "ings.weight is 43 x 24 in it, and 1099511627776 x 24"),
    ("bert", {"vocab_size": 44}, "word_embeddings.weight is 43 x 24 in it, and 44 x 24"),
    ("bert", {"intermediate_size": 2**40}, "and 1099511627776"),
    ("bert", {"layer_norm_eps": "a"}, "layer_norm_eps"),
    ("bert", {"add_cross_attention": True}, "should be used as a decoder model"),
    ("bert", {"id2label": {}}, "classifier.bias is 2 in it, and 0"),
    ("bert", {"id2label": {"0": "a", "1": "b", "2": "c"}}, "classifier.bias is 2 in it, and 3"),
    ("bert", {"num_labels": 5}, "classifier.bias is 2 in it, and 5"),
    ("bert", {"id2label": None, "num_labels": 10**9}, "num_labels is 1,000,000,000"),
    ("bert", {"auto_map": {"AutoModel": "code.Model"}}, "asks for code of its own"),
    ("bert", {"model_type": "bret"}, "Did you mean 'bert'?"),
    ("bert", {"model_type": "nothing like it"}, "does not know"),
    ("gpt2", {"architectures": ["GPT2ForSequenceClassification"]}, "the file lacks score.weight"),
    ("gpt2", {"n_head": 5}, "must be divisible by num_heads"),
    ("gpt2", {"n_positions": 65}, "wpe.weight is 64 x 24 in it, and 65 x 24"),
    ("gpt2", {"n_inner": -1}, "negative dimension -1"),
    ("gpt2", {"activation_function": 1}, "'activation_function' expected str"),
    ("gpt2", {"add_cross_attention": True}, "crossattention"),
    ("llama", {"num_attention_heads": -1}, ""), ("llama", {"hidden_act": "nothing"}, "be built"),
    ("funnel", {"pooling_type": "min"}, "pooling_type"),
    ("funnel", {"d_model": 15}, "does not fit"),
    ("funnel", {"attention_type": "other"}, "attention_type"),
    ("funnel", {"block_sizes": [0, 1]}, "block_sizes"),
    ("llama", {"rope_parameters": 7}, "be built"), ("llama", {"num_hidden_layers": 3}, "layers.2"),
]  # fmt: skip


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    home = tmp_path_factory.mktemp("folders")
    zoo.write(home / "llama", "llama", "LlamaForCausalLM")
    zoo.write(home / "funnel", "funnel", "FunnelForMaskedLM")
    for kind, write in WRITERS.items():
        write(home / kind)
    return home


@pytest.mark.parametrize(("kind", "changes", "words"), REFUSED)
def test_a_config_that_does_not_fit_is_one_clear_line(untouched, tmp_path, kind, changes, words):
    folder = shutil.copytree(untouched / kind, tmp_path / "theirs")
    error = refusal(configured(folder, **changes))
    assert words in str(error) + error.details and "download" not in error.do


def test_missing_left_over_and_unlike_tensors_are_named_as_the_file_names_them(folder):
    held = weights(folder)
    stack, one, lost = {
        True: ("bert.encoder.layer", "intermediate.dense.weight", "bert.embeddings.LayerNorm.bias"),
        False: ("transformer.h", "mlp.c_fc.weight", "transformer.ln_f.bias"),
    }["bert.pooler.dense.bias" in held]
    name = f"{stack}.1.{one}"
    rows = tuple(held[name].shape)
    for changed, why in (
        ({**held, name: torch.zeros(3, 5)}, f"{name} is 3 x 5 in it, and {rows[0]} x {rows[1]}"),
        ({key: one for key, one in held.items() if key != lost}, f"the file lacks {lost}"),
        ({**held, f"{stack}.1.extra.weight": torch.zeros(7)}, f"no use for {stack}.1.extra"),
        ({**held, f"{stack}.2.{one}": torch.zeros(7)}, f"no use for {stack}.2.{one}"),
    ):
        save_file(changed, folder / SAFE)
        error = refusal(folder)
        assert error.what.startswith("theirs/model.safetensors does not fit its config.json: ")
        assert why in error.what
    save_file({**held, "head.of.another.task": torch.zeros(7)}, folder / SAFE)
    assert open_model(folder).spec.heads
    inner = "wte.weight" if "transformer.wte.weight" in held else "pooler.dense.bias"
    save_file({**held, inner: torch.zeros(2)}, folder / SAFE)
    assert "holds one tensor twice" in str(refusal(folder))
    next(one for name, one in held.items() if name.endswith("bias"))[0] = float("nan")
    save_file(held, folder / SAFE)
    assert "holds weights that are no numbers" in str(refusal(folder))


@pytest.mark.parametrize(("kind", "name", "field"), [
    ("gpt2", "GPT2LMHeadModel", "n_positions"), ("gptj", "GPTJForCausalLM", "n_positions"),
    ("llama", "LlamaForCausalLM", "max_position_embeddings"),
    ("m2m_100", "M2M100ForConditionalGeneration", "max_position_embeddings"),
    ("whisper", "WhisperForConditionalGeneration", "max_source_positions"),
    ("canine", "CanineModel", "max_position_embeddings"),
    ("distilbert", "DistilBertModel", "max_position_embeddings"),
    ("albert", "AlbertModel", "num_hidden_groups"), ("longformer", "LongformerModel", "n_ctx"),
])  # fmt: skip
def test_sizes_that_no_tensor_shows_are_refused_before_anything_is_made(
    tmp_path, monkeypatch, kind, name, field
):
    zoo.write(tmp_path, kind, name)
    monkeypatch.setattr("hgviz.models.pretrained.outline", None)
    error = refusal(configured(tmp_path, **{field: 10**9}))
    assert f"{field} is 1,000,000,000" in error.what
    assert error.do == f"Correct {field} in {tmp_path.name}/config.json"


def test_each_type_of_model_refuses_positions_of_a_billion():
    def positions(part):
        for key, value in part.items():
            if isinstance(value, dict):
                yield from positions(value)
            elif type(value) is int and ("position" in str(key) or key == "n_ctx"):
                yield part, key

    def check(data, known):
        pretrained.require_sizes(data, known, Path("m/config.json"))

    tried = 0
    for kind in CONFIG_MAPPING:
        if kind in ("gemma4_assistant", "nougat"):  # which have no configuration of their own
            continue
        with pretrained.quiet():
            data = CONFIG_MAPPING[kind]().to_dict()
        known = {key.rpartition(".")[2] for key, _ in pretrained._fields(data)}
        for part, key in [*positions(data)]:
            before, part[key] = part[key], 10**9
            with pytest.raises(HgvizError, match=f"{key} is 1,000,000,000"):
                check(data, known)
            part[key], tried = before, tried + 1
        check(data, known)  # as it is, it is read
    assert tried > 600


@pytest.mark.parametrize("name", ["RobertaModel", "RobertaForMaskedLM", "XLMRobertaModel"])
@pytest.mark.parametrize("architectures", [True, False])
def test_roberta_under_the_name_of_bert_is_refused(tmp_path, name, architectures):
    """Its tensors have BERT's names, and its positions begin at 2: it must not open, and wrong."""
    net_class = getattr(reference.library(), name)
    config = net_class.config_class(
        vocab_size=43, hidden_size=24, num_hidden_layers=1, num_attention_heads=3,
        intermediate_size=12, max_position_embeddings=40, type_vocab_size=1,
    )  # fmt: skip
    net_class(config).save_pretrained(tmp_path)
    assert open_model(tmp_path).spec.family == config.model_type
    configured(tmp_path, model_type="bert", architectures=["BertModel"] if architectures else None)
    error = refusal(tmp_path)
    assert "orrect" not in error.do
    if name != "RobertaForMaskedLM":  # whose tensors are named roberta
        assert "config.json that came with" in error.do
        assert "pad_token_id 1 and type_vocab_size 1 are RoBERTa's" in error.what
        configured(tmp_path, max_position_embeddings=514, type_vocab_size=2)
        assert "max_position_embeddings 514 and pad_token_id 1" in refusal(tmp_path).what
    for pad in (1, None):
        folder = configured(write_bert(tmp_path / f"bert{pad}"), pad_token_id=pad)
        assert open_model(folder).spec.family == "bert"


def test_a_decoder_with_cross_attention_asks_for_states(tmp_path):
    more = {"architectures": ["BertLMHeadModel"], "is_decoder": True, "add_cross_attention": True}
    with pytest.raises(HgvizError, match="states of an encoder"):
        open_model(write_bert(tmp_path, **more)).run(IDS)


@pytest.mark.parametrize("free", [1000, 50_000])
def test_a_model_that_does_not_fit_is_refused_before_it_is_read(untouched, monkeypatch, free):
    monkeypatch.setattr(devices, "free_memory", lambda: free)
    monkeypatch.setattr(tensors, "read_tensors", lambda *_: pytest.fail("it was read"))
    assert "does not fit the memory: it takes" in refusal(untouched / "llama").what


# --- files ----------------------------------------------------------------------------------------


def test_no_code_in_a_pickle_is_run(tmp_path, folder):
    (folder / SAFE).unlink()
    torch.save({"a": Evil(tmp_path / "gotcha")}, folder / "pytorch_model.bin")
    assert "only tensors are loaded" in str(refusal(folder))
    (folder / "pytorch_model.bin").unlink()
    shard = "pytorch_model-00001-of-00001.bin"
    torch.save({"wte.weight": Evil(tmp_path / "gotcha")}, folder / shard)
    index = {"weight_map": {"wte.weight": shard}}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert "only tensors are loaded" in str(refusal(folder))
    assert not (tmp_path / "gotcha").exists()


def test_tied_tensors_of_a_pickle_count_once(tmp_path):
    torch.save(
        {f"{at}.weight": x for at, x in enumerate([torch.ones(1000)] * 5)}, tmp_path / "a.bin"
    )
    assert len(read_tensors(tmp_path / "a.bin")) == 5


def test_a_folder_without_sound_weights_says_so(folder):
    held = (folder / SAFE).read_bytes()
    (folder / SAFE).write_bytes(held[: len(held) // 2])
    refusal(folder)
    (folder / SAFE).unlink()
    assert "theirs holds no weights" in str(refusal(folder))
    (folder / "tf_model.h5").write_bytes(b"")
    assert "it holds tf_model.h5, which hgviz does not read" in str(refusal(folder))
    os.symlink("nowhere", folder / SAFE)
    assert "theirs/model.safetensors could not be read" in str(refusal(folder))


@pytest.mark.parametrize(
    "shard", ["../theirs/other.safetensors", "/etc/passwd", "a\\b.safetensors", "..", "", "x.pkl",
              ".hidden.bin", "a\0.bin", 3, None, ["a.bin"], "a" * 300 + ".bin", "c:x.bin"],
)  # fmt: skip
def test_a_shard_is_never_a_path(tmp_path, shard):
    index = split(write_gpt2(tmp_path / "theirs"))
    data = json.loads(index.read_text())
    data["weight_map"][next(iter(data["weight_map"]))] = shard
    index.write_text(json.dumps(data))
    assert "which is no weights file beside it" in str(refusal(index.parent))


@pytest.mark.parametrize("data", [b"{}", b"[]", b"", b'{"weight_map": []}', b'{"weight_map": {}}'])
def test_an_index_that_is_none_is_refused(tmp_path, data):
    index = split(write_bert(tmp_path / "theirs"))
    index.write_bytes(data)
    assert "model.safetensors.index.json is n" in str(refusal(index.parent))


def test_tensors_that_are_not_where_the_index_says_are_named(tmp_path):
    index = split(write_bert(tmp_path / "theirs"))
    data, folder = json.loads(index.read_text()), index.parent
    places = data["weight_map"]
    name, shard = next(iter(places.items()))
    other = next(one for one in places.values() if one != shard)
    for changed in ({**places, name: other}, {k: v for k, v in places.items() if k != name}):
        index.write_text(json.dumps({"weight_map": changed}))
        assert f"{shard} holds {name}, which it places in" in str(refusal(folder))
    index.write_text(json.dumps({"weight_map": {**places, "ghost": shard}}))
    assert f"places ghost in {shard}, which lacks it" in str(refusal(folder))
    (folder / other).unlink()
    index.write_text(json.dumps(data))
    assert f"theirs/{other} is missing" in str(refusal(folder))
