"""A corpus is captured from the command line: every text as if it were captured alone."""

import weakref
from pathlib import Path

import numpy as np
import pytest

from hgviz.core import HgvizError, listening
from hgviz.models import open_model
from hgviz.store import captures, open_capture
from hgviz.tasks import capture, capture_corpus
from tests.models.building import write_checkpoint
from tests.progress import with_steps

KEYS = {"vocab_size": 256, "d_model": 8, "n_heads": 2, "d_ff": 8, "hierarchy": "1@1 1@2 1@1"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return open_model(write_checkpoint(tmp_path_factory.mktemp("corpus") / "model", **KEYS))


def given(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, "utf-8")
    return path


def test_every_text_is_captured_as_if_it_were_alone(tmp_path, model):
    texts = ("A first text.", "Another!", "x")
    out = tmp_path / "o.h5"
    corpus = given(tmp_path, "a.txt", "\n".join(texts))
    first, steps = with_steps(capture_corpus, model, corpus, out)
    assert "text 2 of 3" in [one.note for one in steps] and steps[-1].done == steps[-1].total
    assert [one.text for one in first.items] == list(texts) and first.prompt.text == texts[0]
    for number, text in enumerate(texts):
        found = open_capture(out, number)
        alone = capture(model, model.tokenize(text), tmp_path / f"{number}.h5")
        assert (found.logits == alone.logits).all()
        for one, other in zip(found.maps, alone.maps, strict=True):
            assert all((one.read(head) == other.read(head)).all() for head in one.heads)
            assert one.verify_max_abs == other.verify_max_abs


@pytest.mark.parametrize("corpus", [False, True])
def test_of_all_layers_one_is_held_at_a_time(tmp_path, model, monkeypatch, corpus):
    """What bounds the memory that a capture takes: a layer goes before the next is computed."""
    seen, write = [], captures.write_layer

    def watched(group, layer, content, *more):
        seen.append(weakref.ref(content.q))
        return write(group, layer, content, *more)

    monkeypatch.setattr(captures, "write_layer", watched)

    def held(step):
        assert all(one() is None for one in seen[:-1])  # the last is of the layer that attends

    with listening(held):
        if corpus:
            capture_corpus(model, given(tmp_path, "a.txt", "One.\nTwo."), tmp_path / "o.h5")
        else:
            capture(model, model.tokenize("One."), tmp_path / "o.h5")
    assert len(seen) == len(model.spec.layers) * (2 if corpus else 1)


def test_a_text_that_the_model_cannot_read_is_named_by_its_line_before_anything_is_done(tmp_path):
    keys = {**KEYS, "positions": "learned", "max_positions": 16}
    model = open_model(write_checkpoint(tmp_path / "model", **keys))
    path = given(tmp_path, "a.txt", "Short.\n\n" + "long " * 9)
    with pytest.raises(HgvizError, match="a.txt, line 3: the text is too long"):
        capture_corpus(model, path, tmp_path / "o.h5")
    assert not list(tmp_path.glob("o.h5*"))


def test_the_command_captures_shows_and_says_so(tmp_path, monkeypatch, output, refusal, facts):
    monkeypatch.chdir(tmp_path)
    write_checkpoint(tmp_path / "model", **KEYS)
    given(tmp_path, "a.tsv", "text\tlabel\nOne text.\tpos\nAnother.\tneg\n")
    said = output("capture", "model", "--corpus", "a.tsv", "-o", "o.h5")
    assert said == "o.h5: 10 heads in 5 layers on 2 texts, 17 tokens together.\n"
    told = facts("info", "o.h5")
    assert (told["items"], told["complete"]) == (2, True)
    at = ("--layer", 0, "--head", 0)
    for verb in (("map", *at), ("logits",), ("rollout",)):
        output(verb[0], "o.h5", *verb[1:], "--item", 1, "-o", f"{verb[0]}.npy")
    assert np.load("map.npy").shape == np.load("rollout.npy").shape == (8, 8)
    output("figure", "o.h5", "--kind", "map", *at, "--item", 1, "-o", "f.png")
    error = refusal("map", "o.h5", *at, "--item", 2, "-o", "m.npy")
    assert error.startswith("There is no text 2 in o.h5: it holds 2 texts")


@pytest.mark.parametrize("more", [("--text", "x"), ("--target", "x"), ("--generate", "3")])
def test_a_corpus_goes_with_no_other_text(refusal, more):
    words = ("capture", "model", "--corpus", "a.txt", *more, "-o", "o.h5")
    assert "corpus" in refusal(*words, code=2)


@pytest.mark.parametrize("option", ["--corpus", "--text-file", "--ids"])
def test_what_is_read_is_never_replaced(tmp_path, refusal, option):
    path = given(tmp_path, "a", "One text.\n")
    error = refusal("capture", "model", option, path, "-o", path, "--force", code=2)
    assert "names the file that is read" in error
    assert path.read_text() == "One text.\n"
