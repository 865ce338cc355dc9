"""Texts that a model writes with its cache, token by token."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from hgviz.core import HeadId, HgvizError
from hgviz.maps import LazyMap
from hgviz.models.generation import Writing, chosen
from hgviz.models.texts.continuing import continued
from hgviz.models.texts.text import Bare, Bytes, Pieces
from tests.models.building import make_config, make_hourglass, make_transformer
from tests.models.folders import byte_level, wordpiece
from tests.models.test_capturing import FAMILIES, WIDTHS, build, opened
from tests.models.test_causality import FORMS, NESTED, ONE

HOURGLASSES = {
    **FORMS,
    "windowed, rotary": {"hierarchy": NESTED, "form": "windowed", "positions": "rotary"},
    "windowed, linear up": {
        "hierarchy": NESTED, "form": "windowed", "positions": "none",
        "attention_upsampling": "linear",
    },
    "official, nothing": {"hierarchy": NESTED, "positions": "none"},
}  # fmt: skip
DECODER = {"family": "gpt2", "form": "decoder", "max_positions": 40}
PLAIN = {
    "learned": DECODER,
    "sinusoidal": {**DECODER, "positions": "sinusoidal"},
    "rotary": {**DECODER, "positions": "rotary"},
    "none": {**DECODER, "positions": "none"},
    "rows that need not sum to 1": {
        **DECODER,
        "n_heads": 3,
        "activations": ["softmax1", "softpick", "sigmoid"],
    },
    "quadratic": {**DECODER, "positions": "quadratic", "activations": ["softmax", "rbf"]},
    "quadratic alone": {**DECODER, "positions": "quadratic", "content": False},
    "without limit": {**DECODER, "positions": "rotary", "max_positions": None},
    "post-norm": {**DECODER, "norm_first": False, "embed_norm": True, "final_norm": False},
    "segments": {**DECODER, "segments": 2},
    "not tied": {**DECODER, "tied": False, "depth_scaled": True},
    "some heads": {**DECODER, "n_heads": 3, "kept": [[1, 2], []]},
    "both": {"family": "transformer", "n_layers": 1, "decoder_layers": 2},
    "both, rotary": {"family": "transformer", "positions": "rotary"},
    "cross": {"family": "transformer", "form": "decoder", "cross": True, "tied": False},
}
WRITERS = ("hourglass", "windowed", "compat", "decoder", "both", "cross")
CLOSE = {"float64": 1e-12, "float32": 1e-6}
DEEPER = 3.0  # queries and keys within, in models whose scores go up to 15


def texts(model, tokens=19):
    """Ids to go on with, and what stands before them: a model's other text, padding in it too."""
    random = np.random.default_rng(5)
    # no token twice: where positions are none, topk has to choose among equal scores
    ids = np.concatenate([random.permutation(23), random.integers(0, 23, tokens)])[:tokens]
    mask = np.arange(11) > 1
    if model.takes_states:
        return ids, model.from_states(random.normal(size=(11, model.spec.width)), mask)
    if model.spec.two_texts:
        return ids, model.from_ids(random.integers(0, 23, 11), mask)
    return ids, None


def written(model, ids, other, begin, off=frozenset()):
    """A text of which so many tokens were there and the rest was added; logits of every step."""
    given = model.from_ids(ids[:begin])
    writing = Writing(model, *((given, None) if other is None else (other, given)), off)
    for _ in writing.read():
        pass
    found = [writing.logits]
    for token in ids[begin:]:
        writing.add(int(token))
        found.append(writing.logits)
    return writing, np.stack(found)


def whole(model, ids, other, off=frozenset()):
    """Logits and factors of one pass."""
    tapped, given = {}, model.from_ids(ids)
    pair = (given, None) if other is None else (other, given)
    trace = model.trace(*pair, off=off, tap=tapped.__setitem__)
    while True:
        try:
            next(trace)
        except StopIteration as end:
            return end.value, tapped


def differ(one, two, scale=None):
    """The largest difference, beside the largest number."""
    if not two.size:
        return 0.0
    scale = np.abs(two).max() if scale is None else scale
    return np.abs(one.astype(np.float64) - two).max() / max(1.0, scale)


def agree(model, begin, off=frozenset(), tokens=19):
    """Every logit and every row are those of one pass over the text."""
    ids, other = texts(model, tokens)
    writing, logits = written(model, ids, other, begin, off)
    expected, tapped = whole(model, ids, other, off)
    close = CLOSE[model.dtype]
    assert differ(logits, expected[begin - 1 :]) <= close
    for layer in model.spec.layers:
        same_rows(writing.factors(layer.index), tapped[layer.index], layer, DEEPER * close)


def same_rows(found, expected, layer, close):
    rows, keys = found.q.shape[1], found.k.shape[1]
    # a pass pads the last group on the way up; these rows come when their tokens do
    assert rows <= expected.q.shape[1] < rows + max(layer.window or 1, 6)
    assert keys == expected.k.shape[1]
    assert differ(found.q, expected.q[:, :rows]) <= close
    assert differ(found.k[...], expected.k[...]) <= close  # heads may share keys
    for name in ("stat", "norm"):
        one, two = getattr(found, name), getattr(expected, name)
        assert (one is None) == (two is None)
        if one is not None:
            seen = np.isfinite(one)
            assert np.array_equal(seen, np.isfinite(two[:, :rows]))
            assert differ(one[seen], two[:, :rows][seen]) <= max(close, 1e-6)  # they are float32
    one, two = LazyMap(found, layer.heads), LazyMap(expected, layer.heads)
    assert one.verify_max_abs < 1e-4
    for head in layer.heads:
        assert differ(one.read(head), two.read(head, (0, rows)), 1.0) < 2e-5


# --- the matrix -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("changes", HOURGLASSES.values(), ids=HOURGLASSES.keys())
def test_an_hourglass_writes_as_it_reads(tmp_path, changes, dtype):
    model = opened(tmp_path, make_hourglass(make_config(**changes)), dtype)
    for begin in (1, 5, 12) if dtype == "float64" else (5,):
        agree(model, begin)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("keys", PLAIN.values(), ids=PLAIN.keys())
def test_a_decoder_writes_as_it_reads(tmp_path, keys, dtype):
    model = opened(tmp_path, make_transformer(**keys), dtype)
    for begin in (1, 7) if dtype == "float64" else (7,):
        agree(model, begin)


@pytest.mark.parametrize("activation", ["six", "unlike", "kernels", "by layer", "topk", "linear"])
@pytest.mark.parametrize("family", WRITERS)
def test_every_activation_writes_as_it_reads(tmp_path, family, activation):
    model = opened(tmp_path, build(family, activation), "float64")
    for begin in (1, 8):
        agree(model, begin)


@pytest.mark.parametrize("family", WRITERS)
def test_heads_switched_off_are_off_in_every_row(tmp_path, family):
    model = opened(tmp_path, build(family, "six"), "float64")
    agree(model, 6, frozenset({HeadId(0, 1), HeadId(len(model.spec.layers) - 1, 4)}))
    agree(model, 6, frozenset(model.spec.heads))


def test_many_tokens_outgrow_every_room(tmp_path):
    changes = {"hierarchy": ONE, "activations": ["softmax", "linear"]}
    agree(opened(tmp_path / "a", make_hourglass(make_config(**changes)), "float64"), 3, tokens=150)
    keys = {**DECODER, "positions": "rotary", "max_positions": None}
    agree(opened(tmp_path / "b", make_transformer(**keys), "float64"), 1, tokens=150)


def test_half_precision_writes(tmp_path):
    for family in ("hourglass", "decoder"):
        model = opened(tmp_path / family, build(family, "unlike"), "bfloat16")
        ids, other = texts(model)
        writing, logits = written(model, ids, other, 5)
        assert np.isfinite(logits).all()
        for layer in model.spec.layers:
            maps = LazyMap(writing.factors(layer.index), layer.heads)
            assert writing.factors(layer.index).dtype == "bfloat16"
            assert np.isfinite(maps.read(layer.heads[0])).all()


# --- what is shown while it writes ----------------------------------------------------------------


def test_rows_that_come_change_nothing_in_what_was_handed_out(tmp_path):
    model = opened(tmp_path, build("hourglass", "unlike"), "float64")
    ids, _ = texts(model, 40)
    writing = Writing(model, model.from_ids(ids[:3]))
    for _ in writing.read():
        pass
    kept = []
    for token in ids[3:]:
        found = [writing.factors(layer.index) for layer in model.spec.layers]
        kept.append((found, [(one.q.copy(), one.k.copy(), one.stat.copy()) for one in found]))
        writing.add(int(token))
    for found, copies in kept:
        for one, (q, k, stat) in zip(found, copies, strict=True):
            assert np.array_equal(one.q, q) and np.array_equal(one.k, k)
            assert np.array_equal(one.stat, stat)
            with pytest.raises(ValueError, match="read-only"):
                one.q[:] = 0


def test_a_level_gains_a_row_when_its_group_is_complete(tmp_path):
    model = opened(tmp_path, make_hourglass(make_config(hierarchy=NESTED)), "float64")
    ids, _ = texts(model)
    writing = Writing(model, model.from_ids(ids[:1]))
    for _ in writing.read():
        pass
    for n, token in enumerate(ids[1:], start=2):
        writing.add(int(token))
        spans = model.spans(writing.text)
        for layer in model.spec.layers:
            rows, stride = writing.factors(layer.index).q.shape[1], (1, 3, 6)[layer.level]
            # group g is the tokens up to g stride, since keys are shifted by stride - 1
            assert rows == (n - 1) // stride + 1 == len(spans[layer.level])


# --- choosing -------------------------------------------------------------------------------------


def test_the_likeliest_token_follows_or_one_is_drawn():
    logits = np.array([0.0, 2.0, 1.0, -np.inf], np.float32)
    assert chosen(logits, None, 1.0) == 1
    drawn = np.random.default_rng(0)
    counts = np.bincount([chosen(logits, drawn, 0.5) for _ in range(4000)], minlength=4) / 4000
    expected = np.exp(logits / 0.5) / np.exp(logits / 0.5).sum()
    assert np.abs(counts - expected).max() < 0.03 and counts[3] == 0
    cold = {chosen(logits, drawn, 1e-3) for _ in range(50)}
    assert cold == {1}
    for bad in (np.nan, np.inf):
        with pytest.raises(HgvizError, match="no numbers"):
            chosen(np.array([0.0, bad], np.float32), None, 1.0)


class Highest:
    """Draws the number below 1 that is nearest to it."""

    def random(self):
        return float(np.nextafter(1.0, 0.0))


def test_no_draw_is_a_token_that_cannot_be():
    logits = np.array([1.0, 0.5, -np.inf, -np.inf])
    assert chosen(logits, Highest(), 1.0) == 1


# --- what cannot be written -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"family": "bert", "goal": "classes", "labels": ["a", "b"]}, "classifier"),
        ({"family": "bert", "goal": "masked"}, "both ways"),
        ({"family": "bert", "goal": "states"}, "both ways"),
        ({**DECODER, "goal": "states"}, "hidden states"),
        (FAMILIES["slots"], "projected sequences cannot write"),
    ],
)
def test_a_model_that_says_no_next_token_cannot_write(tmp_path, keys, why):
    model = opened(tmp_path, make_transformer(**{**WIDTHS, **keys}))
    with pytest.raises(HgvizError, match=why):
        Writing(model, model.from_ids([1, 2, 3]))


def test_a_model_that_reads_both_ways_cannot_write(tmp_path):
    model = opened(tmp_path, build("bidirectional", "softmax"))
    with pytest.raises(HgvizError, match="both ways"):
        Writing(model, model.from_ids([1, 2, 3]))


def test_padding_cannot_be_gone_on_with(tmp_path):
    model = opened(tmp_path, build("decoder", "softmax"))
    with pytest.raises(HgvizError, match="2 of its tokens are masked"):
        Writing(model, model.from_ids([1, 2, 3], [0, 0, 1]))


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
        again = continued(tokenizer, tokenizer.decode(ids[:at]), ids[at:])
        sound(again)
        assert np.array_equal(again.ids, ids) and again.pieces == whole.pieces
        if name != "fallback":
            assert again.text == text and np.array_equal(again.spans, tokenizer.decode(ids).spans)
    if name == "fallback" and " " not in (text[0], text[-1]) and "\n" not in text:
        start = tokenizer.encode("the")
        tail = tokenizer.encode(text)
        after = continued(tokenizer, start, tail.ids)
        assert after.text == f"the {text}"


@pytest.mark.parametrize("name", ["bytes", "trained"])
def test_a_text_goes_on_from_where_it_was_given(pieces, name):
    tokenizer = pieces[name]
    prompt = tokenizer.encode("나는 ")
    more = tokenizer.encode("😀고")
    found = continued(tokenizer, prompt, more.ids)
    assert found.text == "나는 😀고"
    assert np.array_equal(found.spans[: len(prompt)], prompt.spans)
    assert found.words(len(prompt), len(found)) == "😀고"
    assert continued(tokenizer, prompt, []) is prompt


@pytest.mark.parametrize("name", ["bytes", "byte-level", "trained", "fallback"])
def test_bytes_that_make_no_character_yet_break_nothing(pieces, name):
    tokenizer = pieces[name]
    prompt = tokenizer.encode("b")
    face = tokenizer.encode("b😀")
    new = face.ids[len(prompt) :]
    for at in range(1, len(new)):
        part = continued(tokenizer, prompt, new[:at])
        sound(part)
        assert part.text.startswith("b") and set(part.text[1:]) <= {"\ufffd"}
    assert continued(tokenizer, prompt, new).text == "b😀"
    stray = continued(tokenizer, prompt, [*new[1:], *prompt.ids])
    sound(stray)
    assert stray.text.startswith("b") and stray.text.endswith("b")


def test_ids_are_the_truth_where_the_text_would_be_read_otherwise(pieces):
    tokenizer = pieces["byte-level"]
    prompt = tokenizer.encode("a")
    spelled = [tokenizer.id_of(one) for one in ("Ġ", "t", "h", "e")]
    found = continued(tokenizer, prompt, spelled)
    assert found.text == "a the" and list(found.ids[1:]) == spelled
    assert found.spans.tolist() == [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]
    assert len(tokenizer.encode("a the")) < len(found)


def test_pieces_of_words_join_and_special_tokens_have_no_characters(pieces):
    tokenizer = pieces["wordpiece"]
    prompt = tokenizer.encode("The cat")  # [CLS] the cat [SEP]
    ids = [tokenizer.id_of(one) for one in ("un", "##affable", "[SEP]", "cat", ",")]
    found = continued(tokenizer, prompt, ids)
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
        found = continued(tokenizer, prompt, [*prompt.ids, end])
        sound(found)
        assert found.label(len(found) - 1) == token and token not in found.text


def test_ids_without_a_tokenizer_have_no_text():
    prompt = Bare().decode(np.array([4, 5]))
    found = continued(Bare(), prompt, [6])
    assert (found.text, found.pieces, found.spans.tolist()) == ("", ("4", "5", "6"), [[-1, -1]] * 3)


def test_what_goes_with_tokens_goes_on():
    from dataclasses import replace

    prompt = replace(
        Bytes().encode("ab"), attention_mask=np.ones(2, bool), token_type_ids=np.array([0, 1])
    )
    found = continued(Bytes(), prompt, [99, 100])
    assert found.attention_mask.tolist() == [True] * 4
    assert found.token_type_ids.tolist() == [0, 1, 1, 1]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=24), st.integers(1, 24))
@settings(deadline=None)
def test_any_bytes_have_spans(values, at):
    at = min(at, len(values))
    prompt = Bytes().decode(np.array(values[:at]))
    found = continued(Bytes(), prompt, values[at:])
    sound(found)
    whole = Bytes().decode(np.array(values))
    assert found.text == whole.text and np.array_equal(found.spans, whole.spans)


@pytest.mark.parametrize("name", ["byte-level", "trained", "fallback", "wordpiece"])
def test_any_ids_have_spans(pieces, name):
    tokenizer, random = pieces[name], np.random.default_rng(0)
    count = tokenizer._tokenizer.get_vocab_size()
    for _ in range(40):
        prompt = tokenizer.encode("the cat")
        sound(continued(tokenizer, prompt, random.integers(0, count + 3, 12)))
