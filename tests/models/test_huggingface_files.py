"""Folders of BERT and GPT-2 open however their files are kept, and say what is wrong with them."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from hgviz import tasks
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model
from hgviz.models.checkpoints import recognises
from hgviz.models.tensors import read_tensors
from tests.closeness import scaled_error
from tests.models import reference, zoo
from tests.models.folders import write_bert, write_gpt2
from tests.models.test_checkpoints import Evil, configured, refusal

IDS = np.array([2, 5, 6, 7, 3])
WRITERS = {"bert": write_bert, "gpt2": write_gpt2}
SAFE = "model.safetensors"


@pytest.fixture(params=["bert", "gpt2"])
def folder(tmp_path, request):
    return WRITERS[request.param](tmp_path / "theirs")


def weights(folder):
    return load_file(folder / SAFE)


def replaced(folder, change, name=SAFE):
    """The same folder with weights that are changed, in a file of that name."""
    tensors = change(weights(folder))
    (folder / SAFE).unlink()
    if name.endswith(".safetensors"):
        save_file(tensors, folder / name)
    else:
        torch.save(tensors, folder / name)
    return folder


def renamed(pattern, to):
    return lambda tensors: {name.replace(pattern, to): one for name, one in tensors.items()}


def split(folder, name="model", ending=".safetensors", count=3):
    """The weights of a folder in several files with an index."""
    tensors = weights(folder)
    (folder / SAFE).unlink()
    places = {}
    for i in range(count):
        shard = f"{name}-{i + 1:05}-of-{count:05}{ending}"
        part = dict(list(tensors.items())[i::count])
        places |= dict.fromkeys(part, shard)
        (save_file if ending == ".safetensors" else torch.save)(part, folder / shard)
    index = folder / f"{name}{ending}.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return index


# --- what opens -----------------------------------------------------------------------------------


def logits_of(path):
    found = open_model(path, dtype="float64").run(IDS).logits
    assert np.abs(found).max() > 0.1
    return found


def same(path, whole):
    return scaled_error(logits_of(path), whole) < 1e-6


def wrapped(tensors):
    return {f"module.{name}": one for name, one in tensors.items()}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_files_of_every_kind_hold_the_same_model(tmp_path, write):
    whole = logits_of(write(tmp_path / "whole"))
    assert same(write(tmp_path / "bare", prefix=""), whole)
    assert same(replaced(write(tmp_path / "bin"), dict, "pytorch_model.bin"), whole)
    assert same(replaced(write(tmp_path / "wrapped"), wrapped), whole)
    for name, ending in (("model", ".safetensors"), ("pytorch_model", ".bin")):
        index = split(write(tmp_path / name), name, ending)
        shard = next(one for one in index.parent.iterdir() if "-of-" in one.name)
        for path in (index.parent, index, index.parent / "config.json", shard):
            assert recognises(path)
            assert same(path, whole)


def test_safetensors_are_read_before_pickles(folder):
    (folder / "pytorch_model.bin").write_bytes(b"anything")
    (folder / "training_args.bin").write_bytes(b"anything")
    (folder / "tf_model.h5").write_bytes(b"anything")
    assert recognises(folder)
    assert open_model(folder).spec.parameters > 0
    assert "theirs/pytorch_model.bin could not be read" in str(
        refusal(folder / "pytorch_model.bin")
    )


def test_names_of_old_and_buffers_are_understood(tmp_path):
    whole = logits_of(write_bert(tmp_path / "new"))

    def old(tensors):
        found = renamed("LayerNorm.weight", "LayerNorm.gamma")(tensors)
        found = renamed("LayerNorm.bias", "LayerNorm.beta")(found)
        return {**found, "bert.embeddings.position_ids": torch.arange(40)[None]}

    for name in (SAFE, "pytorch_model.bin"):
        folder = replaced(write_bert(tmp_path / name), old, name)
        assert same(folder, whole)
    configured(folder, model_type=None)
    assert same(folder, whole)


def test_buffers_of_gpt2_are_no_weights(tmp_path):
    whole = logits_of(write_gpt2(tmp_path / "new"))
    buffers = {
        "transformer.h.0.attn.bias": torch.ones(1, 1, 64, 64, dtype=torch.uint8),
        "transformer.h.1.attn.bias": torch.ones(1, 1, 64, 64, dtype=torch.bool),
        "transformer.h.0.attn.masked_bias": torch.tensor(-torch.inf),
    }
    for name in (SAFE, "pytorch_model.bin"):
        folder = replaced(write_gpt2(tmp_path / name), lambda tensors: {**tensors, **buffers}, name)
        assert same(folder, whole)


@pytest.mark.parametrize(
    "write, head, inner, more",
    [
        (write_bert, "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight",
         {"architectures": ["BertForMaskedLM"]}),
        (write_gpt2, "lm_head.weight", "transformer.wte.weight", {}),
    ],
)  # fmt: skip
def test_a_repeated_embedding_is_tied_and_another_matrix_is_not(tmp_path, write, head, inner, more):
    plain = logits_of(write(tmp_path / "plain", **more))
    repeated = replaced(write(tmp_path / "a", **more), lambda t: {**t, head: t[inner].clone()})
    assert same(repeated, plain)
    other = replaced(write(tmp_path / "b", **more), lambda t: {**t, head: t[inner] + 1})
    states = tasks.capture(open_model(other), open_model(other).from_ids(IDS))
    assert not np.allclose(logits_of(other), plain)
    assert states.spec.parameters > open_model(write(tmp_path / "d", **more)).spec.parameters
    untied = configured(write(tmp_path / "c", **more), tie_word_embeddings=False)
    assert f"the file lacks {head.rpartition('.')[0]}" in refusal(untied).what


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "BertForPreTraining"])
def test_what_pretraining_leaves_behind_is_ignored(tmp_path, architecture):
    more = {"architectures": [architecture]}
    whole = logits_of(write_bert(tmp_path / "whole", **more))
    rest = {
        "bert.pooler.dense.weight": torch.zeros(24, 24), "bert.pooler.dense.bias": torch.zeros(24),
        "cls.seq_relationship.weight": torch.zeros(2, 24),
        "cls.seq_relationship.bias": torch.zeros(2),
    }  # fmt: skip
    assert same(replaced(write_bert(tmp_path / "b", **more), lambda t: {**t, **rest}), whole)


def test_the_bias_that_is_used_is_the_one_that_is_read(tmp_path):
    folder = write_bert(tmp_path, architectures=["BertForMaskedLM"])
    plain = logits_of(folder)
    used = torch.arange(43.0)
    key = "cls.predictions.bias"
    old = weights(folder)[key]
    replaced(folder, lambda tensors: {**tensors, "cls.predictions.decoder.bias": used})
    assert scaled_error(logits_of(folder) - plain, (used - old).numpy()) < 1e-5


@pytest.mark.parametrize(
    "architecture, decoder, goal, form",
    [
        ("BertModel", False, "states", "encoder"),
        ("BertModel", True, "states", "decoder"),
        ("BertForMaskedLM", False, "masked", "encoder"),
        ("BertLMHeadModel", True, "next", "decoder"),
        ("BertLMHeadModel", False, "masked", "encoder"),
        ("BertForSequenceClassification", False, "classes", "encoder"),
    ],
)
def test_the_architecture_says_what_a_model_is_for(tmp_path, architecture, decoder, goal, form):
    folder = write_bert(tmp_path, architectures=[architecture], is_decoder=decoder)
    spec = open_model(folder).spec
    assert (spec.goal, spec.form, spec.family) == (goal, form, "bert")
    silent = open_model(configured(folder, architectures=None)).spec
    assert (silent.goal, silent.form) == (goal, form)


def test_labels_have_the_names_that_config_json_gives_them(tmp_path):
    assert open_model(write_bert(tmp_path)).spec.labels == ("against", "for")
    assert open_model(configured(tmp_path, id2label=None)).spec.labels == ("LABEL_0", "LABEL_1")
    numbered = configured(tmp_path, id2label={"1": 5, "0": "a"})
    assert open_model(numbered).spec.labels == ("a", "5")


# --- pruned heads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pruned, left", [({0: [1], 1: [0, 2]}, [(0, 2), (1,)]), ({0: [0, 1, 2]}, [(), (0, 1, 2)])]
)
@pytest.mark.parametrize("name", ["masked", "crossed", "gpt2"])
def test_pruned_heads_are_gone_and_the_others_keep_their_numbers(tmp_path, name, pruned, left):
    """As transformers before 5 wrote them: the rows of their q, k, v and the columns of their o."""
    theirs = reference.make(*reference.CASES[name])
    theirs.save_pretrained(tmp_path)
    widths = 8
    tensors = weights(tmp_path)
    state = theirs.state_dict()
    for layer, heads in pruned.items():
        kept = [i for i in range(24) if i // widths not in heads]
        gone = [i for i in range(24) if i // widths in heads]
        if name == "gpt2":
            own = f"transformer.h.{layer}.attn"
            thirds = [third * 24 + i for third in range(3) for i in kept]
            tensors[f"{own}.c_attn.weight"] = tensors[f"{own}.c_attn.weight"][:, thirds]
            tensors[f"{own}.c_attn.bias"] = tensors[f"{own}.c_attn.bias"][thirds]
            tensors[f"{own}.c_proj.weight"] = tensors[f"{own}.c_proj.weight"][kept]
            state[f"{own}.c_proj.weight"][gone] = 0
        else:
            own = f"bert.encoder.layer.{layer}.attention"
            for part in ("query", "key", "value"):
                for kind in ("weight", "bias"):
                    one = f"{own}.self.{part}.{kind}"
                    tensors[one] = tensors[one][kept]
            out = f"{own}.output.dense.weight"
            tensors[out] = tensors[out][:, kept]
            state[out][:, gone] = 0
    save_file({n: one.contiguous() for n, one in tensors.items()}, tmp_path / SAFE)
    configured(tmp_path, pruned_heads={str(layer): heads for layer, heads in pruned.items()})
    model = open_model(tmp_path, dtype="float64")
    own = [layer.heads for layer in model.spec.layers if layer.role == "self"]
    assert own == left
    assert all(x.heads == (0, 1, 2) for x in model.spec.layers if x.role == "cross")
    states = np.random.default_rng(0).normal(size=(1, 5, 24)) if name == "crossed" else None
    wanted = reference.answer(theirs, IDS[None], states=states)[0]
    ours = model.run(IDS, encoder_states=None if states is None else states[0]).logits
    assert scaled_error(ours, wanted) < 1e-6
    assert HeadId(0, 1) not in model.spec.heads
    if name != "crossed":
        made = tasks.capture(model, model.from_ids(IDS))
        assert [one.shape for one in made.maps] == [(len(heads), 5, 5) for heads in left]


@pytest.mark.parametrize("given", [{"5": [0]}, {"0": [7]}, {"x": [0]}, {"0": [-1]}, {"0": 1}, [1]])
def test_heads_that_cannot_be_pruned_are_refused(folder, given):
    assert "pruned_heads" in str(refusal(configured(folder, pruned_heads=given)))


# --- what does not fit ----------------------------------------------------------------------------


def test_missing_left_over_and_unlike_tensors_are_named_as_the_file_names_them(folder):
    stack, one, lost = {
        True: ("bert.encoder.layer", "intermediate.dense.weight", "bert.embeddings.LayerNorm.bias"),
        False: ("transformer.h", "mlp.c_fc.weight", "transformer.ln_f.bias"),
    }["bert.pooler.dense.bias" in weights(folder)]
    whole = weights(folder)
    name, rows = f"{stack}.1.{one}", tuple(whole[f"{stack}.1.{one}"].shape)
    said = "theirs/model.safetensors does not fit its config.json: "
    for tensors, why in (
        ({**whole, name: torch.zeros(3, 5)}, f"{name} is 3 x 5 in it, and {rows[0]} x {rows[1]}"),
        ({key: one for key, one in whole.items() if key != lost}, f"the file lacks {lost}"),
        ({**whole, f"{stack}.1.extra.weight": torch.zeros(7)}, f"no use for {stack}.1.extra"),
        ({**whole, f"{stack}.2.{one}": torch.zeros(7)}, f"no use for {stack}.2.{one}"),
    ):
        save_file(tensors, folder / SAFE)
        error = refusal(folder)
        assert error.what.startswith(said) and why in error.what
    save_file({**whole, "head.of.another.task": torch.zeros(7)}, folder / SAFE)
    assert open_model(folder).spec.heads


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"architectures": ["BertForQuestionAnswering"]}, "the file lacks qa_outputs.bias"),
        ({"model_type": "roberta"}, "BertForSequenceClassification is of the type bert"),
        ({"model_type": "gpt2"}, "BertForSequenceClassification is of the type bert"),
        ({"hidden_act": "x" * 10**5}, "transformers says: 'xxx"),
        ({"hidden_act": "geluu"}, "hidden_act is 'geluu'; transformers says: 'geluu'. Correct hid"),
        ({"num_attention_heads": 0}, "Correct num_attention_heads in theirs/config.json"),
        ({"num_attention_heads": 7}, "Correct num_attention_heads in theirs/config.json"),
        ({"pad_token_id": 10**6}, "pad_token_id is 1000000; transformers says: Padding_idx must"),
        ({"hidden_size": 25}, "(25) is not a multiple of the number of attention heads (3)"),
        ({"hidden_size": 0}, "that can be built"),
        ({"hidden_size": -1}, "negative dimension -1"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1,000,000,000"),
        ({"num_attention_heads": "3"}, "'num_attention_heads' expected int"),
        ({"num_attention_heads": 0}, "that can be built"),
        ({"num_attention_heads": 2**31}, "num_attention_heads is 2,147,483,648"),
        ({"vocab_size": 2**40}, "word_embeddings.weight is 43 x 24 in it, and 1099511627776 x 24"),
        ({"vocab_size": 44}, "word_embeddings.weight is 43 x 24 in it, and 44 x 24"),
        ({"intermediate_size": 2**40}, "and 1099511627776"),
        ({"layer_norm_eps": "a"}, "layer_norm_eps"),
        ({"num_hidden_layers": 3}, "layer.2."),
        ({"num_hidden_layers": 1}, "layer.1."),
        ({"add_cross_attention": True}, "should be used as a decoder model"),
        ({"id2label": {}}, "classifier.bias is 2 in it, and 0"),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, "classifier.bias is 2 in it, and 3"),
        ({"num_labels": 5}, "classifier.bias is 2 in it, and 5"),
        ({"id2label": None, "num_labels": 10**9}, "num_labels is 1,000,000,000"),
        ({"pruned_heads": {"0": [1]}}, "0.attention.self has 3 heads"),
    ],
)
def test_a_config_of_bert_is_checked(tmp_path, changes, words):
    error = refusal(configured(write_bert(tmp_path / "theirs"), **changes))
    assert words in str(error)
    assert "download" not in error.do


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
    monkeypatch.setattr("hgviz.models.pretrained._outline", None)
    error = refusal(configured(tmp_path, **{field: 10**9}))
    assert f"{field} is 1,000,000,000" in error.what
    assert error.do == f"Correct {field} in {tmp_path.name}/config.json"


def test_each_type_of_model_refuses_positions_of_a_billion():
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from hgviz.models import pretrained

    def fields(part):
        for key, value in part.items():
            if isinstance(value, dict):
                yield from fields(value)
            elif type(value) is int and ("position" in str(key) or key == "n_ctx"):
                yield part, key

    tried = 0
    for kind in CONFIG_MAPPING:
        if kind in ("gemma4_assistant", "nougat"):  # which have no configuration of their own
            continue
        with pretrained.quiet():
            data = CONFIG_MAPPING[kind]().to_dict()
        known = {*pretrained._keys(data)}
        for part, key in [*fields(data)]:
            before, part[key] = part[key], 10**9
            with pytest.raises(HgvizError, match=f"{key} is 1,000,000,000"):
                pretrained._require_sizes(data, known, Path("m/config.json"))
            part[key], tried = before, tried + 1
        pretrained._require_sizes(data, known, Path("m/config.json"))  # as it is, it is read
    assert tried > 600


@pytest.mark.parametrize("name", ["RobertaModel", "RobertaForMaskedLM", "XLMRobertaModel"])
@pytest.mark.parametrize("architectures", [True, False])
def test_roberta_under_the_name_of_bert_is_refused(tmp_path, monkeypatch, name, architectures):
    """Its tensors have BERT's names, and its positions begin at 2: it must not open, and wrong."""
    import tqdm
    import transformers

    monkeypatch.setattr(tqdm.tqdm, "monitor_interval", 0)  # no thread is left behind
    config = getattr(transformers, name).config_class(
        vocab_size=43, hidden_size=24, num_hidden_layers=1, num_attention_heads=3,
        intermediate_size=12, max_position_embeddings=40, type_vocab_size=1,
    )  # fmt: skip
    getattr(transformers, name)(config).save_pretrained(tmp_path)
    assert open_model(tmp_path).spec.family == config.model_type
    configured(tmp_path, model_type="bert", architectures=["BertModel"] if architectures else None)
    error = refusal(tmp_path)
    assert "orrect" not in error.do
    if name != "RobertaForMaskedLM":  # whose tensors are named roberta
        assert "config.json that came with" in error.do
        assert "pad_token_id 1 and type_vocab_size 1 are RoBERTa's" in error.what
        configured(tmp_path, max_position_embeddings=514, type_vocab_size=2)
        assert "max_position_embeddings 514 and pad_token_id 1" in refusal(tmp_path).what


@pytest.mark.parametrize("changes", [{"pad_token_id": 1}, {"pad_token_id": None}])
def test_a_bert_with_another_token_for_padding_opens(tmp_path, changes):
    folder = write_bert(tmp_path / "theirs")
    configured(folder, **changes)
    assert open_model(folder).spec.family == "bert"


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"architectures": ["GPT2ForSequenceClassification"]}, "the file lacks score.weight"),
        ({"n_head": 5}, "must be divisible by num_heads"),
        ({"n_positions": 65}, "wpe.weight is 64 x 24 in it, and 65 x 24"),
        ({"n_inner": -1}, "negative dimension -1"),
        ({"activation_function": None}, "'activation_function' expected str"),
        ({"add_cross_attention": True}, "crossattention"),
    ],
)
def test_a_config_of_gpt2_is_checked(tmp_path, changes, words):
    if None in changes.values():
        folder = write_gpt2(tmp_path / "theirs")
        data = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**data, **changes}))
    else:
        folder = configured(write_gpt2(tmp_path / "theirs"), **changes)
    error = refusal(folder)
    assert words in str(error) + error.details


def test_one_tensor_under_two_names_is_refused(folder):
    inner = "wte.weight" if "gpt2" in (folder / "config.json").read_text() else "pooler.dense.bias"
    doubled = replaced(folder, lambda tensors: {**tensors, inner: torch.zeros(2)})
    assert "holds one tensor twice" in str(refusal(doubled))


def test_weights_that_are_no_numbers_are_refused_by_name(folder):
    def spoil(tensors):
        next(one for name, one in tensors.items() if name.endswith("bias"))[0] = float("nan")
        return tensors

    assert "holds weights that are no numbers" in str(refusal(replaced(folder, spoil)))


def test_no_code_in_a_pickle_is_run(tmp_path, folder):
    (folder / SAFE).unlink()
    torch.save({"a": Evil(tmp_path / "gotcha")}, folder / "pytorch_model.bin")
    assert "only tensors are loaded" in str(refusal(folder))
    torch.save(
        {"wte.weight": Evil(tmp_path / "gotcha")}, folder / "pytorch_model-00001-of-00001.bin"
    )
    index = {"weight_map": {"wte.weight": "pytorch_model-00001-of-00001.bin"}}
    (folder / "pytorch_model.bin").unlink()
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert "only tensors are loaded" in str(refusal(folder))
    assert not (tmp_path / "gotcha").exists()


def test_tied_tensors_of_a_pickle_count_once(tmp_path):
    tensor = torch.ones(1000)
    torch.save({f"{at}.weight": tensor for at in range(5)}, tmp_path / "a.bin")
    assert len(read_tensors(tmp_path / "a.bin")) == 5


def test_a_folder_without_weights_says_so(folder):
    (folder / SAFE).unlink()
    assert "theirs holds no weights" in str(refusal(folder))
    (folder / "tf_model.h5").write_bytes(b"")
    assert "it holds tf_model.h5, which hgviz does not read" in str(refusal(folder))
    os.symlink("nowhere", folder / SAFE)
    assert "theirs/model.safetensors could not be read" in str(refusal(folder))


# --- an index -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shard", ["../theirs/other.safetensors", "/etc/passwd", "a\\b.safetensors", "..", "", "x.pkl",
              ".hidden.bin", "a\0.bin", 3, None, ["a.bin"], "a" * 300 + ".bin", "c:x.bin"],
)  # fmt: skip
def test_a_shard_is_never_a_path(folder, shard):
    index = split(folder)
    data = json.loads(index.read_text())
    data["weight_map"][next(iter(data["weight_map"]))] = shard
    index.write_text(json.dumps(data))
    assert "which is no weights file beside it" in str(refusal(folder))


@pytest.mark.parametrize("data", [b"{}", b"[]", b"", b'{"weight_map": []}', b'{"weight_map": {}}'])
def test_an_index_that_is_none_is_refused(folder, data):
    split(folder).write_bytes(data)
    assert "model.safetensors.index.json is n" in str(refusal(folder))


def test_tensors_that_are_not_where_the_index_says_are_named(folder):
    index = split(folder)
    data = json.loads(index.read_text())
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


# --- what the families share ----------------------------------------------------------------------


def test_a_decoder_with_cross_attention_asks_for_states(tmp_path):
    folder = write_bert(
        tmp_path, architectures=["BertLMHeadModel"], is_decoder=True, add_cross_attention=True
    )
    with pytest.raises(HgvizError, match="states of an encoder"):
        open_model(folder).run(IDS)


def test_labels_of_a_stranger_are_short_and_of_one_line(tmp_path):
    names = {"0": "\x00\n\u202e<b>", "1": "x" * 10_000}
    folder = write_bert(tmp_path / "a", id2label=names)
    assert open_model(folder).spec.labels == ("\ufffd\ufffd\ufffd<b>", "x" * 200)


def test_what_no_output_depends_on_may_be_missing(tmp_path):
    """As the pooler of many sentence encoders is."""
    folder = write_bert(tmp_path, architectures=["BertModel"])
    whole = logits_of(folder)
    replaced(folder, lambda held: {name: one for name, one in held.items() if "pooler" not in name})
    assert same(folder, whole)
    model = open_model(folder)
    assert tasks.capture(model, model.from_ids(IDS)).maps
    replaced(
        folder,
        lambda held: {
            name: one for name, one in held.items() if ".0.attention.self.key" not in name
        },
    )
    lacks = r"the file lacks (bert\.)?encoder\.layer\.0\.attention\.self\.key\.bias"
    assert re.search(lacks, refusal(folder).what)
