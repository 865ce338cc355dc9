"""What a model writes token by token is what it says of the whole text."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from hgviz.core import HeadId, HgvizError
from hgviz.models.generation import Writing, choose_token
from hgviz.models.text import Bare, Bytes, Pieces, continue_prompt
from tests.models.building import FAMILIES, WIDTHS, build, make_transformer, opened
from tests.models.folders import byte_level, wordpiece

DECODER = {"family": "gpt2", "form": "decoder", "max_positions": 40}
OFF = frozenset({HeadId(0, 1)})


@pytest.mark.parametrize("family", ["hourglass", "windowed", "decoder", "both", "cross"])
def test_logits_are_those_of_a_pass_over_the_text_so_far(tmp_path, family):
    if family == "cross":
        keys = {"family": "transformer", "form": "decoder", "cross": True, "tied": False}
        model = opened(tmp_path, make_transformer(**{**WIDTHS, **keys}), "float64")
    else:
        model = opened(tmp_path, build(family, "softmax"), "float64")
    random = np.random.default_rng(5)
    ids, other = random.integers(0, 23, 12), None
    if model.takes_states:
        other = model.from_states(random.normal(size=(7, model.spec.width)))
    elif model.spec.two_texts:
        other = model.from_ids(random.integers(0, 23, 7))
    given = model.from_ids(ids[:5])
    writing = Writing(model, *((given, None) if other is None else (other, given)), OFF)
    for at in range(5, 12):
        text = model.from_ids(ids[:at])
        pair = (text, None) if other is None else (other, text)
        assert np.array_equal(writing.logits, model.trace(*pair, off=OFF)[-1])
        writing.add(int(ids[at]))
    assert writing.text.ids.tolist() == ids.tolist() and writing.added == ids[5:].tolist()


@pytest.mark.parametrize("family", ["decoder", "both"])
def test_the_end_token_that_a_tokenizer_adds_is_not_written_after(tmp_path, pieces, family):
    model = opened(tmp_path, build(family, "softmax", vocab_size=300))
    model.tokenizer, source = pieces["wordpiece"], pieces["wordpiece"].encode("a cat")
    text = pieces["wordpiece"].encode("the cat")
    given = (text,) if family == "decoder" else (source, text)
    assert Writing(model, *given).text.ids.tolist() == text.ids.tolist()
    model.ends = frozenset({int(text.ids[-1])})
    writing = Writing(model, *given)
    assert writing.text.ids.tolist() == text.ids[:-1].tolist() and writing.text.text == "the cat"


# --- choosing -------------------------------------------------------------------------------------


def test_the_likeliest_token_follows_or_one_is_drawn():
    logits = np.array([0.0, 2.0, 1.0, -np.inf], np.float32)
    assert choose_token(logits, None, 1.0) == 1
    drawn = np.random.default_rng(0)
    counts = (
        np.bincount([choose_token(logits, drawn, 0.5) for _ in range(4000)], minlength=4) / 4000
    )
    expected = np.exp(logits / 0.5) / np.exp(logits / 0.5).sum()
    assert np.abs(counts - expected).max() < 0.03 and counts[3] == 0
    cold = {choose_token(logits, drawn, 1e-3) for _ in range(50)}
    assert cold == {1}
    for bad in (np.nan, np.inf):
        with pytest.raises(HgvizError, match="no numbers"):
            choose_token(np.array([0.0, bad], np.float32), None, 1.0)


class Highest:
    """Draws the number below 1 that is nearest to it."""

    def random(self):
        return float(np.nextafter(1.0, 0.0))


def test_no_draw_is_a_token_that_cannot_be():
    logits = np.array([1.0, 0.5, -np.inf, -np.inf])
    assert choose_token(logits, Highest(), 1.0) == 1


# --- what cannot be written -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "mask", "why"),
    [
        ({"family": "bert", "goal": "classes", "labels": ["a", "b"]}, None, "classifier"),
        ({"family": "bert", "goal": "masked"}, None, "both ways"),
        ({"family": "bert", "goal": "states"}, None, "both ways"),
        ({**DECODER, "goal": "states"}, None, "hidden states"),
        (FAMILIES["slots"], None, "projected sequences cannot write"),
        ("bidirectional", None, "both ways"),
        ("decoder", [0, 0, 1], "2 of its tokens are masked"),
    ],
)
def test_what_cannot_be_continued_is_one_error(tmp_path, keys, mask, why):
    made = build(keys, "softmax") if isinstance(keys, str) else None
    model = opened(tmp_path, made or make_transformer(**{**WIDTHS, **keys}))
    with pytest.raises(HgvizError, match=why):
        Writing(model, model.from_ids([1, 2, 3], mask))


# --- going on with a text -------------------------------------------------------------------------


TEXTS = ("나는 😀 고양이", "naïve café ☕️ zur Straße", "a b  c\n\td", "👩‍👩‍👧 가각", "the cat")


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    """Tokenizers of every kind of decoder, from files."""
    folder = tmp_path_factory.mktemp("tokenizers")
    found = {"bytes": Bytes()}
    for name, made in (("byte-level", byte_level()), ("trained", trained()), ("fallback",
                       fallback()), ("wordpiece", wordpiece())):  # fmt: skip
        at = folder / name
        at.mkdir()
        made.save(str(at / "tokenizer.json"))
        found[name] = Pieces(at / "tokenizer.json", 5000)
    return found


def trained():
    """A byte-level BPE of these texts, with tokens of parts of characters and of several."""
    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    found.train_from_iterator(list(TEXTS) * 3, trainer)
    return found


def fallback():
    """As Llama's: spaces as a mark, and bytes for what is in no vocabulary."""
    words = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "▁the", "▁cat",
             "t", "h", "e", "c", "a", "나", "는", "▁a", "b"]  # fmt: skip
    merges = [("▁", "a")]
    found = Tokenizer(
        models.BPE(
            {token: i for i, token in enumerate(words)}, merges, unk_token="<unk>",
            byte_fallback=True,
        )
    )  # fmt: skip
    found.pre_tokenizer = pre_tokenizers.Metaspace()
    found.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)]
    )  # fmt: skip
    found.add_special_tokens(["</s>"])
    return found


def sound(prompt):
    """Spans lie in the text and follow each other; every character belongs to a token."""
    spans = prompt.spans[prompt.spans[:, 0] >= 0]
    assert (spans[:, 0] <= spans[:, 1]).all() and (np.diff(spans[:, 0]) >= 0).all()
    assert spans.max(initial=0) <= len(prompt.text)
    assert len(prompt.pieces) == len(prompt.ids) == len(prompt.spans)


@pytest.mark.parametrize("name", ["bytes", "byte-level", "trained", "fallback"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_text_cut_anywhere_comes_back_whole(pieces, name, text):
    tokenizer = pieces[name]
    whole = tokenizer.encode(text)
    ids = whole.ids
    for at in range(1, len(ids)):
        again = continue_prompt(tokenizer, tokenizer.decode(ids[:at]), ids[at:])
        sound(again)
        assert np.array_equal(again.ids, ids) and again.pieces == whole.pieces
        if name != "fallback":
            assert again.text == text and np.array_equal(again.spans, tokenizer.decode(ids).spans)
    if name == "fallback" and " " not in (text[0], text[-1]) and "\n" not in text:
        start = tokenizer.encode("the")
        tail = tokenizer.encode(text)
        after = continue_prompt(tokenizer, start, tail.ids)
        assert after.text == f"the {text}"


@pytest.mark.parametrize("name", ["bytes", "trained"])
def test_a_text_goes_on_from_where_it_was_given(pieces, name):
    tokenizer = pieces[name]
    prompt = tokenizer.encode("나는 ")
    more = tokenizer.encode("😀고")
    found = continue_prompt(tokenizer, prompt, more.ids)
    assert found.text == "나는 😀고"
    assert np.array_equal(found.spans[: len(prompt)], prompt.spans)
    assert found.words(len(prompt), len(found)) == "😀고"
    assert continue_prompt(tokenizer, prompt, []) is prompt


@pytest.mark.parametrize("name", ["bytes", "byte-level", "trained", "fallback"])
def test_bytes_that_make_no_character_yet_break_nothing(pieces, name):
    tokenizer = pieces[name]
    prompt = tokenizer.encode("b")
    face = tokenizer.encode("b😀")
    new = face.ids[len(prompt) :]
    for at in range(1, len(new)):
        part = continue_prompt(tokenizer, prompt, new[:at])
        sound(part)
        assert part.text.startswith("b") and set(part.text[1:]) <= {"\ufffd"}
    assert continue_prompt(tokenizer, prompt, new).text == "b😀"
    stray = continue_prompt(tokenizer, prompt, [*new[1:], *prompt.ids])
    sound(stray)
    assert stray.text.startswith("b") and stray.text.endswith("b")


def test_ids_are_the_truth_where_the_text_would_be_read_otherwise(pieces):
    tokenizer = pieces["byte-level"]
    prompt = tokenizer.encode("a")
    spelled = [tokenizer.id_of(one) for one in ("Ġ", "t", "h", "e")]
    found = continue_prompt(tokenizer, prompt, spelled)
    assert found.text == "a the" and list(found.ids[1:]) == spelled
    assert found.spans.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    assert len(tokenizer.encode("a the")) < len(found)


def test_pieces_of_words_join_and_special_tokens_have_no_characters(pieces):
    tokenizer = pieces["wordpiece"]
    prompt = tokenizer.encode("The cat")  # [CLS] the cat [SEP]
    ids = [tokenizer.id_of(one) for one in ("un", "##affable", "[SEP]", "cat", ",")]
    found = continue_prompt(tokenizer, prompt, ids)
    sound(found)
    assert found.text == "The cat unaffable cat,"
    assert [found.label(at) for at in range(len(prompt), len(found))] == [
        " un", "affable", "[SEP]", " cat", ",",
    ]  # fmt: skip


def test_an_end_token_has_no_characters(pieces):
    for name, token in (("trained", "<|endoftext|>"), ("fallback", "</s>")):
        tokenizer = pieces[name]
        prompt = tokenizer.encode("the")
        end = tokenizer.id_of(token)
        found = continue_prompt(tokenizer, prompt, [*prompt.ids, end])
        sound(found)
        assert found.label(len(found) - 1) == token and token not in found.text


def test_ids_without_a_tokenizer_have_no_text():
    prompt = Bare().decode(np.array([4, 5]))
    found = continue_prompt(Bare(), prompt, [6])
    assert (found.text, found.pieces, found.spans.tolist()) == ("", ("4", "5", "6"), [[-1, -1]] * 3)


def test_what_goes_with_tokens_goes_on():
    from dataclasses import replace

    prompt = replace(
        Bytes().encode("ab"), attention_mask=np.ones(2, bool), token_type_ids=np.array([0, 1])
    )
    found = continue_prompt(Bytes(), prompt, [99, 100])
    assert found.attention_mask.tolist() == [True] * 4
    assert found.token_type_ids.tolist() == [0, 1, 1, 1]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=24), st.integers(1, 24))
@settings(deadline=None)
def test_any_bytes_have_spans(values, at):
    at = min(at, len(values))
    prompt = Bytes().decode(np.array(values[:at]))
    found = continue_prompt(Bytes(), prompt, values[at:])
    sound(found)
    whole = Bytes().decode(np.array(values))
    assert found.text == whole.text and np.array_equal(found.spans, whole.spans)


@pytest.mark.parametrize("name", ["byte-level", "trained", "fallback", "wordpiece"])
def test_any_ids_have_spans(pieces, name):
    tokenizer, random = pieces[name], np.random.default_rng(0)
    count = tokenizer._tokenizer.get_vocab_size()
    for _ in range(40):
        prompt = tokenizer.encode("the cat")
        sound(continue_prompt(tokenizer, prompt, random.integers(0, count + 3, 12)))
