"""A model opens with another activation in place of its own, and says so."""

import numpy as np
import pytest

from hgviz import tasks
from hgviz.core import HgvizError, finish
from hgviz.models import open_model
from hgviz.models.surgery.replacement import with_activation
from hgviz.store import open_capture
from tests.closeness import scaled_error
from tests.models.building import make_config, write_checkpoint
from tests.models.folders import write_bert, write_gpt2


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bert(tmp_path_factory.mktemp("models") / "bert", num_attention_heads=4)


def activations(model):
    return [layer.activations for layer in model.spec.layers]


# --- what is written and what it means ------------------------------------------------------------


@pytest.mark.parametrize(
    "text, names, norms, top_k",
    [
        ("ymish", ("ymish",), {}, None),
        ("ymish:l2-literal", ("ymish",), {"ymish": "l2-literal"}, None),
        ("ymish:none", ("ymish",), {"ymish": "none"}, None),
        ("tanh:l2", ("tanh",), {"tanh": "l2"}, None),
        ("topk:8", ("topk",), {}, 8),
        ("softmax,ymish", ("softmax", "ymish"), {}, None),
        (" softmax , topk:3,ymish:l2-literal,ymish:l2-literal",
         ("softmax", "topk", "ymish", "ymish"), {"ymish": "l2-literal"}, 3),
    ],
)  # fmt: skip
def test_a_text_names_activations_norms_and_keys(text, names, norms, top_k):
    config = with_activation(make_config(n_heads=4), text)
    assert (config.activations, dict(config.norms), config.top_k) == (names, norms, top_k)


@pytest.mark.parametrize(
    "text, words",
    [
        ("relu", "there is no activation 'relu'; there are softmax"),
        ("", "there is no activation ''"),
        ("softmax,", "there is no activation ''"),
        ("topk", "needs a number of keys"),
        ("topk:0", "needs a number of keys"),
        ("topk:-1", "needs a number of keys"),
        ("topk:1e9", "needs a number of keys"),
        ("topk:9999999999", "needs a number of keys"),
        ("ymish:l3", "the norms are none, l2, l2-literal, and there is no 'l3'"),
        ("ymish:", "there is no ''"),
        ("topk:2,topk:3,tanh,tanh", "topk stands there in two ways"),
        ("ymish,ymish:none", "ymish stands there in two ways"),
        ("tanh,ymish,elu", "a number of names that divides the 4 heads"),
        ("x" * 10_000, "there is no activation 'xxx"),
    ],
)
def test_what_cannot_be_read_is_one_error(text, words):
    with pytest.raises(HgvizError) as caught:
        with_activation(make_config(n_heads=4), text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


# --- models ---------------------------------------------------------------------------------------


def test_a_list_goes_over_the_heads_in_equal_blocks(folder):
    model = open_model(folder, activation="softmax,ymish")
    assert activations(model) == [("softmax", "softmax", "ymish", "ymish")] * 2
    four = open_model(folder, activation="tanh,elu,topk:2,ymish")
    assert activations(four) == [("tanh", "elu", "topk", "ymish")] * 2


def test_the_model_is_another_one_and_says_so(folder):
    plain, other = open_model(folder), open_model(folder, activation="ymish")
    assert other.spec.name == "bert with ymish"
    assert other.spec.digest != plain.spec.digest
    ids = np.array([2, 5, 6, 3])
    assert np.abs(other.run(ids).logits - plain.run(ids).logits).max() > 1e-3


def test_what_a_model_has_already_changes_nothing_but_its_name(folder):
    plain, same = open_model(folder), open_model(folder, activation="softmax")
    assert same.spec.digest == plain.spec.digest
    ids = np.array([2, 5, 6, 3])
    assert np.array_equal(same.run(ids).logits, plain.run(ids).logits)


def test_norms_make_different_models(folder):
    digests = {
        open_model(folder, activation=text).spec.digest
        for text in ("ymish", "ymish:none", "ymish:l2-literal", "topk:2", "topk:3")
    }
    assert len(digests) == 5


def test_other_families_take_one_too(tmp_path):
    gpt2 = open_model(write_gpt2(tmp_path / "gpt2"), activation="ymish,softmax,tanh")
    assert activations(gpt2) == [("ymish", "softmax", "tanh")] * 2
    hourglass = open_model(write_checkpoint(tmp_path / "own"), activation="tanh")
    assert {name for one in activations(hourglass) for name in one} == {"tanh"}


def test_heads_that_were_pruned_keep_the_activation_of_their_number(tmp_path):
    from hgviz.models.families import build
    from hgviz.models.formats.checkpoint import save
    from hgviz.models.formats.own import parse_config

    kept = [[1, 3], [0, 1, 2, 3]]
    config = parse_config(
        {"vocab_size": 9, "d_model": 8, "n_heads": 4, "n_layers": 2, "family": "gpt2", "kept": kept}
    )
    save(tmp_path, config, build(config).state_dict())
    model = open_model(tmp_path, activation="softmax,tanh,elu,ymish")
    assert activations(model)[0] == ("tanh", "ymish")


def test_captures_show_it(folder, tmp_path):
    model = finish(tasks.load(folder, "cpu", activation="softmax,ymish"))
    path = tmp_path / "a.h5"
    finish(tasks.capture(model, model.tokenize("the cat sat."), path))
    opened = open_capture(path)
    assert opened.spec.name == "bert with softmax,ymish"
    assert opened.spec.layers[0].activations == ("softmax", "softmax", "ymish", "ymish")
    assert opened.spec.digest == model.spec.digest
    assert scaled_error(opened.maps[0].read(0).sum(-1), 1) < 1e-5
    total = np.abs(opened.maps[0].read(3)).sum(-1)
    assert ((total > np.tanh(1) - 1e-5) & (total < 1 + 1e-5)).all()
