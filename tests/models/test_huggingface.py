"""BERT and GPT-2 give what the package transformers gives, from every file it writes."""

import numpy as np
import pytest

from hgviz import tasks
from hgviz.core import HgvizError
from hgviz.models import open_model
from tests.closeness import scaled_error
from tests.models import reference
from tests.models.folders import byte_level, wordpiece

TOLERANCE = {"float64": 1e-6, "float32": 5e-5}
TEXTS = ("the cat sat.", "나는 이, 있.", "The unaffables 나는 sat", "1 😀 ?")
STATES = 7  # positions of an encoder


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """name -> (reference, folder), each built when it is first asked for."""
    known = {}

    def find(name):
        if name not in known:
            model = reference.make(*reference.CASES[name])
            folder = tmp_path_factory.mktemp("models") / name.replace(" ", "-")
            model.save_pretrained(folder)
            tokenizer = byte_level() if name.startswith("gpt2") else wordpiece()
            tokenizer.save(str(folder / "tokenizer.json"))
            known[name] = model, folder
        return known[name]

    return find


def given_states(model, batch, seed=1):
    """States of an encoder and their mask for a batch; nothing for a model that takes none."""
    if not reference.crossed(model):
        return {}
    random = np.random.default_rng(seed)
    states = random.normal(size=(batch, STATES, model.config.hidden_size))
    lengths = random.integers(1, STATES + 1, batch)
    return {"states": states, "states_mask": np.arange(STATES) < lengths[:, None]}


def ran(model, ids, mask=None, types=None, states=None, states_mask=None):
    """The same question to hgviz."""
    return model.run(ids, mask, types, encoder_states=states, encoder_mask=states_mask).logits


def types_for(name, ids):
    return None if name.startswith("gpt2") else np.random.default_rng(2).integers(0, 2, ids.shape)


# --- logits and maps ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", reference.CASES)
def test_logits_of_padded_batches_are_those_of_transformers(models, name, side, dtype):
    theirs, folder = models(name)
    ids, mask = reference.padded(theirs.config.vocab_size, side)
    rest = {"types": types_for(name, ids), **given_states(theirs, len(ids))}
    try:
        wanted = reference.answer(theirs.to(getattr(reference.torch, dtype)), ids, mask, **rest)
    finally:
        theirs.double()
    ours = ran(open_model(folder, dtype=dtype), ids, mask, **rest)
    assert ours.shape == wanted.shape
    assert ours.dtype == dtype
    # a classifier reads the first token, padded or not: what it looks at is never padding
    real = mask if ours.ndim == 3 else slice(None)
    assert np.abs(ours[real] - wanted[real]).max() < TOLERANCE[dtype]


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("name", reference.CASES)
def test_maps_are_those_of_transformers(models, name, side):
    theirs, folder = models(name)
    ids, mask = reference.padded(theirs.config.vocab_size, side, lengths=(6,), width=8)
    rest = {"types": types_for(name, ids), **given_states(theirs, 1)}
    _, wanted = reference.answer(theirs, ids, mask, **rest, maps=True)
    ours = open_model(folder, dtype="float64")
    types = None if rest["types"] is None else rest["types"][0]
    prompt, target = ours.from_ids(ids[0], mask[0], types), None
    if reference.crossed(theirs):
        target, prompt = prompt, ours.from_states(rest["states"][0], rest["states_mask"][0])
    made = tasks.capture(ours, prompt, target=target)
    assert len(made.maps) == len(wanted) == len(made.spec.layers)
    for found, one in zip(made.maps, wanted, strict=True):
        for head in range(3):
            difference = found.read(head) - one[0, head]
            assert np.abs(difference[mask[0]]).max() < 1e-5


# --- texts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [*TEXTS, ""])
@pytest.mark.parametrize("pair", [None, "sat 있"])
@pytest.mark.parametrize("name", ["classes", "masked"])
def test_texts_and_pairs_are_read_as_transformers_reads_them(models, name, text, pair):
    theirs, folder = models(name)
    tokenizer = reference.library().PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json")
    )
    found = tokenizer(text, pair, return_token_type_ids=True)
    ours = open_model(folder, dtype="float64")
    prompt = ours.tokenize(text, pair)
    assert prompt.ids.tolist() == found["input_ids"]
    types = np.array([found["token_type_ids"]])
    wanted = reference.answer(theirs, [found["input_ids"]], types=types)[0]
    logits = tasks.capture(ours, prompt).logits
    assert scaled_error(logits, wanted) < 1e-6


def test_hangul_in_parts_is_labelled_by_what_each_part_reads(models):
    prompt = open_model(models("base")[1]).tokenize("나는 있.", "이")
    assert [prompt.label(i) for i in range(len(prompt))] == [
        "[CLS]", "나", "는", "이", "\u11bb", ".", "[SEP]", "이", "[SEP]",
    ]  # fmt: skip
    assert prompt.text == "나는 있.\n이"
    assert prompt.token_type_ids.tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("text", [*TEXTS, " the the", "\n\t"])
def test_bytes_of_texts_are_read_as_transformers_reads_them(models, text):
    theirs, folder = models("gpt2")
    tokenizer = reference.library().PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json")
    )
    found = tokenizer(text)["input_ids"]
    ours = open_model(folder, dtype="float64")
    prompt = ours.tokenize(text)
    assert prompt.ids.tolist() == found
    assert prompt.words(0, len(prompt)) == text
    wanted = reference.answer(theirs, [found])[0]
    assert scaled_error(tasks.capture(ours, prompt).logits, wanted) < 1e-6


def test_parts_of_characters_are_shown_by_their_bytes(models):
    prompt = open_model(models("gpt2")[1]).tokenize("a the 나")
    assert prompt.pieces == ("a", "␣the", "␣", "<EB>", "<82>", "<98>")
    assert [prompt.label(i) for i in range(6)] == ["a", " the", " ", "<EB>", "<82>", "<98>"]


def test_no_text_at_all_is_one_error_where_it_has_no_tokens(models):
    with pytest.raises(HgvizError, match="the text is empty"):
        open_model(models("gpt2")[1]).tokenize("")


# --- variants of the configuration ----------------------------------------------------------------


@pytest.mark.parametrize(
    "name, changes",
    [
        *(("BertForMaskedLM", {"hidden_act": act})
          for act in ("gelu_new", "gelu_pytorch_tanh", "relu", "silu", "gelu_fast")),
        ("BertModel", {"layer_norm_eps": 1e-2, "type_vocab_size": 1}),
        ("BertForMaskedLM", {"tie_word_embeddings": False}),
        ("BertLMHeadModel", {"is_decoder": False}),
        ("BertForMaskedLM", {"is_decoder": True}),
        ("GPT2LMHeadModel", {"scale_attn_weights": False}),
        ("GPT2LMHeadModel", {"scale_attn_by_inverse_layer_idx": True, "n_layer": 3}),
        ("GPT2LMHeadModel", {"n_inner": 31, "layer_norm_epsilon": 1e-2}),
        ("GPT2LMHeadModel", {"activation_function": "relu", "tie_word_embeddings": False}),
        ("GPT2LMHeadModel", {"reorder_and_upcast_attn": False, "n_positions": 9}),
    ],
)  # fmt: skip
def test_every_setting_computes_as_transformers_does(tmp_path, name, changes):
    options = reference.GPT2 if name.startswith("GPT2") else reference.BERT
    theirs = reference.make(name, {**options, **changes})
    theirs.save_pretrained(tmp_path)
    ids, _ = reference.padded(theirs.config.vocab_size, "right")
    model = open_model(tmp_path, dtype="float64")
    assert scaled_error(model.run(ids).logits, reference.answer(theirs, ids)) < 1e-6
    assert model.spec.family == ("gpt2" if name.startswith("GPT2") else "bert")
