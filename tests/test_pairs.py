"""Encoder-decoders are scored on the second texts of a table, each token after those before it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import tokenizers
import torch

from hgviz import tasks
from hgviz.analysis.statistics import bits_per_byte
from hgviz.core import HeadId, HgvizError
from hgviz.models import open_model, pruning
from hgviz.models.prompts import prompts_like
from hgviz.store import open_study
from tests.models.zoo import write

WORDS = ("[PAD]", "[UNK]", "</s>", "<s>", "the", "cat", "sat", "on", "a", "mat", "dog", "ran",
         "home", "it", "was", "late")  # fmt: skip
PAIRS = [
    ("the cat sat on a mat", "it was late"), ("the dog ran home", "the dog sat on a mat"),
    ("it was late", "the cat"), ("a cat ran", "home it was late"),
]  # fmt: skip
KINDS = [
    ("t5", "T5ForConditionalGeneration"), ("bart", "BartForConditionalGeneration"),
    ("marian", "MarianMTModel"), ("pegasus", "PegasusForConditionalGeneration"),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Writes a model with a tokenizer, once."""
    kept = {}

    def made(kind, name):
        if name not in kept:
            path = write(tmp_path_factory.mktemp(kind) / kind, kind, name, decoder_start_token_id=0)
            tokenizer().save(str(path / "tokenizer.json"))
            kept[name] = path
        return kept[name]

    return made


def tokenizer():
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({one: at for at, one in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 2)]
    )
    return made


@pytest.fixture
def table(tmp_path):
    lines = ["text\ttarget", *("\t".join(pair) for pair in PAIRS)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    return tmp_path / "pairs.tsv"


def surprise(path, name):
    """Nats of all second texts, and how many tokens they have, as transformers has them."""
    import transformers

    net = getattr(transformers, name).from_pretrained(path).eval()
    begins, nats, count = net.config.decoder_start_token_id, 0.0, 0
    for first, second in PAIRS:
        ids, wanted = (torch.tensor([tokenizer().encode(one).ids]) for one in (first, second))
        given = torch.cat([torch.tensor([[begins]]), wanted[:, :-1]], 1)
        with torch.no_grad():
            logits = net(input_ids=ids, decoder_input_ids=given).logits[0].double()
        nats += float(torch.nn.functional.cross_entropy(logits, wanted[0], reduction="sum"))
        count += wanted.shape[1]
    return nats, count


@pytest.mark.parametrize("kind, name", KINDS)
def test_a_score_is_that_of_transformers(folder, table, kind, name):
    path = folder(kind, name)
    found = tasks.evaluate(open_model(path), table)
    nats, count = surprise(path, name)
    facts = found.to_dict()
    size = sum(len(second) for _, second in PAIRS)
    assert (facts["metric"], facts["windows"]) == ("bits_per_byte", len(PAIRS))
    assert facts["value"] == pytest.approx(nats / np.log(2) / size, rel=1e-5)
    assert facts["loss"] == pytest.approx(nats / count, rel=1e-5)


@pytest.mark.parametrize("kind, name", KINDS)
def test_a_capture_is_of_the_run_that_is_scored(folder, tmp_path, kind, name):
    model, (first, second) = open_model(folder(kind, name)), PAIRS[1]
    source, target = tasks.read_prompts(model, first, target=second)
    captured = tasks.capture(model, source, target=target)
    (tmp_path / "one.tsv").write_text(f"text\ttarget\n{first}\t{second}\n")
    row = tasks.examples_from(model, tmp_path / "one.tsv").rows[0]
    assert captured.target.ids.tolist() == [0, *tokenizer().encode(second).ids]
    assert captured.target.ids.tolist() == [*row.ids, row.wanted[-1]]
    assert (captured.target.pieces[0], captured.target.label(0)) == ("[PAD]", "[PAD]")
    assert captured.target.text == second and captured.target.spans[0].tolist() == [-1, -1]
    score = tasks.evaluate(model, tmp_path / "one.tsv").to_dict()["value"]
    assert bits_per_byte(captured) == pytest.approx(score, rel=1e-5)
    again = prompts_like(model, captured)  # by itself, and from a text that it did not read
    assert again[1] is captured.target
    alone = replace(captured, target=None)
    assert prompts_like(model, alone)[1].ids.tolist() == [0, *captured.prompt.ids]


def test_every_head_of_encoder_and_decoder_is_scored_and_pruned(run, folder, table, tmp_path):
    path = folder(*KINDS[0])
    whole = tasks.evaluate(open_model(path), table).to_dict()["value"]
    for method in ("loo", "signed"):
        study = tmp_path / f"{method}.h5"
        words = ("importance", path, "--data", table, "-o", study, "--method", method)
        assert run(*words)[0] == 0
        assert open_study(study).spec.two_texts
    off = frozenset({HeadId(0, 1), HeadId(3, 2)})
    masked = tasks.evaluate(open_model(path), table, off=off).to_dict()["value"]
    assert masked != pytest.approx(whole, rel=1e-6)
    tasks.prune(path, off, tmp_path / "out", form="zeroed", data=table)
    pruned = tasks.evaluate(open_model(tmp_path / "out"), table).to_dict()["value"]
    assert pruned == pytest.approx(masked, rel=1e-6)
    words = ("curve", tmp_path / "loo.h5", path, "--data", table, "--method", "loo")
    assert run(*words)[0] == 0
    words = ("compare", path, tmp_path / "out", "--data", table)
    assert run(*words)[0] == 0


def test_states_are_scored_by_how_far_they_move(folder, table):
    model = open_model(folder("bart", "BartModel"))
    whole = tasks.evaluate(model, table).to_dict()
    assert (whole["metric"], whole["value"]) == ("cosine_distance", pytest.approx(0, abs=1e-6))
    for off in (HeadId(0, 1), HeadId(3, 2)):  # of the encoder, and of the decoder
        assert tasks.evaluate(model, table, off=frozenset({off})).to_dict()["value"] > 1e-5


@pytest.mark.parametrize("kind, name", [
    ("t5", "T5ForQuestionAnswering"), ("bart", "BartForQuestionAnswering"),
])  # fmt: skip
def test_answers_are_found_in_a_text_that_the_decoder_reads_again(folder, tmp_path, kind, name):
    import transformers

    path, right, rows = folder(kind, name), [], []
    net = getattr(transformers, name).from_pretrained(path).eval()
    for first, second in PAIRS:
        answers = {"text": [first.split()[1]], "answer_start": [first.index(" ") + 1]}
        rows.append({"question": second, "context": first, "answers": answers})
        ids = tokenizer().encode(second, first).ids
        with torch.no_grad():
            out = net(input_ids=torch.tensor([ids]))
        wanted = len(second.split()) + 1
        right += [int(one.argmax()) == wanted for one in (out.start_logits, out.end_logits)]
    data = tmp_path / "a.jsonl"
    data.write_text("\n".join(map(json.dumps, rows)))
    facts = tasks.evaluate(open_model(path), data).to_dict()
    assert (facts["metric"], facts["total"]) == ("end_accuracy", 2 * len(PAIRS))
    assert facts["value"] == pytest.approx(np.mean(right))


@pytest.mark.parametrize("kind, name", [
    (kind, f"{start}ForSequenceClassification") for kind, start in (
        ("bart", "Bart"), ("t5", "T5"), ("mbart", "MBart"), ("plbart", "PLBart"), ("mt5", "MT5"),
        ("umt5", "UMT5"), ("bigbird_pegasus", "BigBirdPegasus"),
    )
])  # fmt: skip
def test_classifiers_whose_decoder_reads_the_text_again_are_those_of_transformers(
    folder, tmp_path, kind, name
):
    import transformers

    path, model = folder(kind, name), open_model(folder(kind, name))
    net = getattr(transformers, name).from_pretrained(path, attn_implementation="eager").eval()
    assert model.spec.goal == "classes" and model.spec.reads_twice
    given = [tokenizer().encode(first).ids for first, _ in PAIRS]
    logits = []
    for (text, _), ids in zip(PAIRS, given, strict=True):
        with torch.no_grad():
            out = net(torch.tensor([ids]), output_attentions=True)
        logits.append(out.logits[0].numpy())
        prompt, target = tasks.read_prompts(model, text)
        capture = tasks.capture(model, prompt, target=target)
        assert np.abs(capture.logits - logits[-1]).max() < 1e-5
        assert capture.target.ids.tolist()[1:] == ids[:-1] and capture.target.spans[0, 0] == -1
        pairs = zip(out.decoder_attentions, out.cross_attentions, strict=True)
        maps = [*out.encoder_attentions, *(one for pair in pairs for one in pair)]
        for one, wanted in zip(capture.maps, maps, strict=True):
            found = np.stack([one.read(head) for head in one.heads])
            assert np.abs(found - wanted[0].numpy()).max() < 1e-5
    width = max(map(len, given))
    ids = np.array([one + [0] * (width - len(one)) for one in given])
    padded = model.run(ids, attention_mask=np.array([[1] * len(one) + [0] * (width - len(one))
                                                     for one in given])).logits  # fmt: skip
    assert np.abs(padded - np.array(logits)).max() < 1e-5
    # the premise and what it is to imply, with an end in the middle
    both = np.array([given[0] + given[1]])
    with torch.no_grad():
        assert np.abs(net(torch.tensor(both)).logits.numpy() - model.run(both).logits).max() < 1e-5
    with pytest.raises(HgvizError, match="no end that this classifier could answer at"):
        model.run(both[:, :3])

    rows = [f"{text}\tLABEL_{row % 2}" for row, (text, _) in enumerate(PAIRS)]
    data = tmp_path / "a.tsv"
    data.write_text("\n".join(["text\tlabel", *rows]) + "\n")
    facts = tasks.evaluate(model, data).to_dict()
    right = [int(one.argmax()) == row % 2 for row, one in enumerate(logits)]
    assert (facts["metric"], facts["value"]) == ("accuracy", pytest.approx(np.mean(right)))
    off = frozenset({HeadId(0, 1), HeadId(3, 2)})
    masked = model.run(given[0], off=off).logits
    assert np.abs(masked - logits[0]).max() > 1e-4
    form = "smaller" if model.config.uses_interface else "zeroed"
    tasks.prune(path, off, tmp_path / "out", form, data=data)
    assert np.abs(open_model(tmp_path / "out").run(given[0]).logits - masked).max() < 1e-5
    trials = tasks.trials_of(model, data)
    study = tasks.importance(trials, {"gradient", "loss_change"})
    assert study.arrays["gradient"].any() and study.arrays["loss_change"][:, 3].any()


@pytest.mark.parametrize("name", ["SequenceClassification", "TokenClassification"])
def test_classes_of_t5gemma_read_the_text_again(folder, name):
    import transformers

    path = folder("t5gemma", f"T5GemmaFor{name}")
    net = getattr(transformers, f"T5GemmaFor{name}").from_pretrained(path).eval()
    ids = np.array([[4, 5, 6, 7, 2]])
    with torch.no_grad():
        logits = net(torch.tensor(ids)).logits.numpy()
    assert np.abs(open_model(path).run(ids).logits - logits).max() < 1e-5 * np.abs(logits).max()


def test_experts_are_computed_in_float64_where_float32_rounds_too_much(tmp_path, monkeypatch):
    path = write(tmp_path / "m", "mixtral", "MixtralForCausalLM")
    run = pruning.largest_difference

    def rounded(first, second, texts, note):  # by how much depends on the processor
        difference, largest = run(first, second, texts, note)
        return difference + 1e-4 * note.endswith("float32"), largest

    monkeypatch.setattr(pruning, "largest_difference", rounded)
    proof = tasks.prune(path, "0.0,0.2,0.3,1.0", tmp_path / "out")
    assert proof.dtype == "float64" and proof.rough > 1e-5 > proof.difference
    model = open_model(path, dtype="float64")
    found = tasks.reach(model, model.from_ids(np.arange(5, 14)))
    assert np.isfinite(found.own).all()


def test_columns_may_have_other_names_and_tables_without_targets_are_one_line(
    folder, table, tmp_path
):
    model = open_model(folder(*KINDS[0]))
    wanted = tasks.evaluate(model, table).to_dict()["value"]
    rows = [{"question": first, "reply": second} for first, second in PAIRS]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = tasks.evaluate(model, tmp_path / "a.jsonl", "question", "reply")
    assert found.to_dict()["value"] == wanted
    (tmp_path / "b.tsv").write_text("text\tlabel\nthe cat\tgood\n")
    with pytest.raises(HgvizError, match="has no targets"):
        tasks.evaluate(model, tmp_path / "b.tsv")
    (tmp_path / "c.tsv").write_text("text\ttarget\nthe cat\t\n")
    with pytest.raises(HgvizError, match="line 2, column target is missing or empty"):
        tasks.evaluate(model, tmp_path / "c.tsv")
    (tmp_path / "d.tsv").write_text("")
    with pytest.raises(HgvizError):
        tasks.evaluate(model, tmp_path / "d.tsv")


def test_what_a_model_of_sound_writes_is_scored_beside_the_sound(tmp_path):
    import transformers

    sizes = {"max_source_positions": 50, "max_target_positions": 40, "num_mel_bins": 16}
    path = write(
        tmp_path / "m", "whisper", "WhisperForConditionalGeneration", decoder_start_token_id=3,
        **sizes,
    )  # fmt: skip
    tokenizer().save(str(path / "tokenizer.json"))
    rows = ["audio\ttarget"]
    sounds = np.random.default_rng(0).normal(size=(len(PAIRS), 16, 100)).astype(np.float32)
    for at, (_, second) in enumerate(PAIRS):
        np.save(tmp_path / f"{at}.npy", sounds[at])
        rows.append(f"{at}.npy\t{second}")
    (tmp_path / "a.tsv").write_text("\n".join(rows) + "\n")
    found = tasks.evaluate(open_model(path), tmp_path / "a.tsv")
    net = transformers.WhisperForConditionalGeneration.from_pretrained(path).eval()
    nats, count = 0.0, 0
    for sound, (_, second) in zip(sounds, PAIRS, strict=True):
        wanted = torch.tensor([tokenizer().encode(second).ids])
        given = torch.cat([torch.tensor([[3]]), wanted[:, :-1]], 1)
        with torch.no_grad():
            out = net(input_features=torch.tensor(sound)[None], decoder_input_ids=given)
        nats += float(torch.nn.functional.cross_entropy(out.logits[0], wanted[0], reduction="sum"))
        count += wanted.shape[1]
    assert found.to_dict()["loss"] == pytest.approx(nats / count, rel=1e-5)
