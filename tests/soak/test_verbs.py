"""Every verb on what save_pretrained writes, of each family in the classes that people save."""

import csv
import json
import re
import warnings
import xml.etree.ElementTree
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from tokenizers import processors

from hgviz.models import open_model
from hgviz.tasks.scoring import examples_from
from tests.models.test_data import texts, tokenizer
from tests.models.test_signals import HEARD, processor_of, tone, written
from tests.models.zoo import write

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

FAMILIES = (
    "llama qwen2 qwen3 mistral mixtral gemma2 gemma3_text phi3 gpt_oss olmo2 cohere2 granite "
    "smollm3 glm4 deepseek_v3 gpt_neox gptj gpt2 opt bloom falcon bert roberta distilbert albert "
    "electra deberta-v2 modernbert xlm-roberta mpnet t5 bart marian pegasus whisper vit dinov2 "
    "clip_text_model clip_vision_model siglip siglip_text_model siglip_vision_model funnel xlnet "
    "longformer blt qwen3_next diffllama"
)
KINDS = {  # lists of classes in transformers: what those of one are scored on, and by what
    "": ("texts.tsv", "cosine_distance"),
    "_FOR_CAUSAL_LM": ("texts.tsv", "bits_per_byte"),
    "_FOR_MASKED_LM": ("texts.tsv", "masked_accuracy"),
    "_FOR_SEQUENCE_CLASSIFICATION": ("classes.tsv", "accuracy"),
    "_FOR_TOKEN_CLASSIFICATION": ("tags.jsonl", "tag_accuracy"),
    "_FOR_QUESTION_ANSWERING": ("questions.jsonl", "end_accuracy"),
    "_FOR_SEQ_TO_SEQ_CAUSAL_LM": ("pairs.tsv", "bits_per_byte"),
    "_FOR_SPEECH_SEQ_2_SEQ": ("pairs.tsv", "bits_per_byte"),
    "_FOR_IMAGE_CLASSIFICATION": ("classes.tsv", "accuracy"),
    "_FOR_AUDIO_CLASSIFICATION": ("classes.tsv", "accuracy"),
}
OTHERS = {  # in no such list, or in one that says something else of them
    ("t5", "T5EncoderModel"): "", ("siglip_text_model", "SiglipTextModel"): "",
    ("xlnet", "XLNetLMHeadModel"): "",  # it sees the token that it says, unless a mask hides it
}  # fmt: skip
WHOLE = ("SiglipModel",)  # two encoders beside each other
READS = {  # what else than text
    "vit": ".png", "dinov2": ".png", "clip_vision_model": ".png", "siglip": ".png",
    "siglip_vision_model": ".png", "whisper": ".wav",
}  # fmt: skip
END = tokenizer().token_to_id("[SEP]")
THREE = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] [SEP] $B [SEP]",
    special_tokens=[("[CLS]", END - 1), ("[SEP]", END)],
)  # fmt: skip
CHANGES = {  # of a configuration
    "whisper": HEARD, "t5": {"decoder_start_token_id": 0},
    "longformer": {"sep_token_id": END},
    **{(family, "_FOR_CAUSAL_LM"): {"is_decoder": True}
       for family in ("bert", "roberta", "xlm-roberta", "electra")},
    **{(family, "_FOR_SEQUENCE_CLASSIFICATION"): {"eos_token_id": END, "decoder_start_token_id": 0}
       for family in ("bart", "t5")},
}  # fmt: skip
REFUSED = [  # families or classes, what they do not do, and how that is said
    # levels that are not composed
    ("funnel", "rollout", "Inspect its layers one by one"),
    # its heads are put together by numbers of its own, not by a linear layer
    ("xlnet", "smaller|zeroed", "Leave its heads on"),
    # attention code of their own, of which the sizes are not known
    ("gptj|bloom|falcon|deberta-v2|mpnet|funnel", "smaller", "Choose --form zeroed"),
    # one module attends in all layers; norms over all heads; other names in the file than computed
    ("albert|olmo2|vit|dinov2", "smaller", "Choose --form zeroed"),
]
LABELS = ("--labels", "good=LABEL_1,bad=LABEL_0")
TEXT, TARGET, ASKED = "the sand ran down where she did go", "it did go down", "who did it ?"
ROWS = [" ".join(row) for row in texts(12)]


def cases():
    from transformers.models.auto import modeling_auto

    found = {}
    for family in FAMILIES.split():
        for kind in KINDS:
            named = getattr(modeling_auto, f"MODEL{kind}_MAPPING_NAMES").get(family, ())
            names = (named,) if isinstance(named, str) else named
            found |= {(family, name): kind for name in names if name not in WHOLE}
    return [(*key, kind) for key, kind in (found | OTHERS).items()]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of what models are scored on, for texts, images (.png) and sounds (.wav)."""
    folder, random = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for at in range(len(ROWS)):
        pixels = random.integers(0, 255, (40, 40, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{at}.png")
        written(folder / f"{at}.wav", tone(4000 + 500 * at), 8000)
    labels = ["good" if at % 2 else "bad" for at in range(len(ROWS))]
    for end in ("", ".png", ".wav"):
        rows = [f"{at}{end}" for at in range(len(ROWS))] if end else ROWS
        table(folder / f"texts{end}.tsv", "text", rows)
        table(folder / f"classes{end}.tsv", "text\tlabel", rows, labels)
        table(folder / f"pairs{end}.tsv", "text\ttarget", rows, ROWS[::-1])
    tags, asked = [], []
    for row in ROWS:
        words = row.split()
        answer = " ".join(words[2:4])
        answers = {"text": [answer], "answer_start": [row.index(answer, len(words[0]))]}
        tags.append({"tokens": words, "tags": [len(one) % 2 for one in words]})
        asked.append({"question": ASKED, "context": row, "answers": answers})
    (folder / "tags.jsonl").write_text("\n".join(map(json.dumps, tags)))
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)))
    return folder


def table(path, head, *columns):
    path.write_text("\n".join([head, *map("\t".join, zip(*columns, strict=True))]) + "\n")


class Refused(AssertionError):
    """What a verb said in place of doing it."""


class Verbs:
    """All verbs on one model; what one writes another reads."""

    def __init__(self, run, data, folder, family, name, kind):  # noqa: F811
        file, self.metric = KINDS[kind]
        self.run, self.folder, self.family, self.name, self.kind = run, folder, family, name, kind
        self.signal = READS.get(family, "") if kind != "_FOR_CAUSAL_LM" else ""
        changes = CHANGES.get((family, kind), CHANGES.get(family, {}))
        self.path = write(folder / "model", family, name, **changes)
        self.tokenizer = tokenizer()
        if family == "longformer":  # which looks for a question before the first of three
            self.tokenizer.post_processor = THREE
        self.tokenizer.save(str(self.path / "tokenizer.json"))
        if self.signal:
            processor_of(family).save_pretrained(self.path)
        self.data = data / file.replace(".", f"{self.signal}.", 1)
        self.labels = LABELS if self.metric == "accuracy" else ()
        option = {"": "--text", ".png": "--image", ".wav": "--audio"}[self.signal]
        self.read = (option, data / f"0{self.signal}" if self.signal else TEXT)
        if self.metric == "end_accuracy":
            self.read = ("--text", ASKED, "--text-pair", TEXT)
        self.capture_, self.study = folder / "a.h5", folder / "s.h5"

    def done(self, *words):
        """What a verb printed. Errors: Refused where it did not do it, and said why in one line."""
        code, said, error = self.run(*words)
        if code:
            assert code in (1, 2) and error.count("\n") == 1 and error.endswith((".\n", "?\n"))
            assert "Unexpected error" not in error and "Traceback" not in error, error
            raise Refused(f"{words[0]} {' '.join(map(str, words[2:]))}: {error}")
        assert not error
        return json.loads(said) if "--json" in words else said

    def refused(self, verb):
        """How it is said that this model does not do it, None where it does."""
        for names, verbs, words in REFUSED:
            of = re.fullmatch(names, self.family) or re.fullmatch(names, self.name)
            if of and re.fullmatch(verbs, verb):
                return words
        return None

    def tried(self, verb, work):
        """Do it, or see that it is refused as REFUSED says."""
        if (words := self.refused(verb)) is None:
            work()
        else:
            with pytest.raises(Refused, match=re.escape(words)):
                work()

    def scored(self, verb, *words, labels=True):
        """A verb that looks at data."""
        given = ("--data", self.data, *(self.labels if labels else ()))
        return self.done(verb, *words, *given, "--json")

    def info(self):
        facts = self.done("info", self.path, "--json")
        self.layers = [one["index"] for one in facts["layers"]]
        self.heads = [
            f"{one['index']}.{at}" for one in facts["layers"] for at in range(one["heads"])
        ]
        self.off = list(dict.fromkeys(f"{at}.1" for at in (self.layers[0], self.layers[-1])))
        self.two = facts["form"] == "encoder-decoder"
        if self.two:
            if self.kind != "_FOR_SEQUENCE_CLASSIFICATION":  # its decoder reads the text again
                self.read = (*self.read, "--target", TARGET)
            if self.metric == "cosine_distance":
                self.data = self.data.with_name(self.data.name.replace("texts", "pairs"))
        assert facts["family"] == self.family

    def capture(self):
        self.done("capture", self.path, *self.read, "-o", self.capture_)
        layers = self.done("info", self.capture_, "--json")["layers"]
        assert [one["index"] for one in layers] == self.layers
        assert all((one["verify_max_abs"] or 0) < 1e-5 for one in layers)

    def map(self):
        for layer in self.layers:
            out = self.folder / "m.npy"
            self.done("map", self.capture_, "--layer", layer, "--head", 1, "-o", out)
            sums = np.load(out).sum(axis=1)
            assert (sums > 0).all() and (sums < 1 + 1e-5).all()
            others = ("gpt_oss", "diffllama")  # whose rows have sinks, or are differences
            assert self.family in others or np.allclose(sums, 1, atol=1e-5)

    def figure(self):
        out, of = self.folder / "f.svg", ("--layer", self.layers[-1], "--head", 1)
        self.done("figure", self.capture_, "--kind", "map", *of, "-o", out, "--numbers")
        xml.etree.ElementTree.parse(out)
        rows = csv.DictReader((self.folder / "f.csv").read_text().splitlines())
        assert [float(one["weight"]) for one in rows] == pytest.approx(
            np.load(self.folder / "m.npy").ravel(), abs=1e-5
        )

    def heads_(self):
        found = self.done("heads", self.capture_, "--json")["heads"]
        assert sorted(one["head"] for one in found) == sorted(self.heads)
        assert all(0 < one["focus"] <= 1 for one in found)

    def rollout(self):
        out = self.folder / "r.npy"
        self.done("rollout", self.capture_, "-o", out)
        found = np.load(out)
        assert np.allclose(found.sum(axis=1), 1, atol=1e-5) and (found >= 0).all()

    def evaluate(self):
        found = self.whole = self.scored("evaluate", self.path)
        assert found["metric"] == self.metric
        assert found["value"] == pytest.approx(theirs(self), abs=1e-5)
        self.without = self.scored("evaluate", self.path, "--off", ",".join(self.off))

    def importance(self):
        for method in ("loo", "michel"):
            if method == "michel" and self.metric == "cosine_distance":
                continue  # where nothing has moved yet there is no slope
            words = ("importance", self.path, "-o", self.study, "--method", method)
            scores = {one["head"]: one["score"] for one in self.scored(*words)}
            assert sorted(scores) == sorted(self.heads) and np.isfinite([*scores.values()]).all()
            if method == "loo":
                less = self.scored("evaluate", self.path, "--off", self.heads[1])
                key = "value" if self.metric == "cosine_distance" else "loss"
                moved = less[key] - self.whole[key]
                assert scores[self.heads[1]] == pytest.approx(moved, abs=1e-4)

    def curve(self):
        found = self.scored("curve", self.study, self.path)
        assert sorted(found["order"]) == sorted(self.heads) and found["randoms"] == 20
        assert [found["points"][at]["off"] for at in (0, -1)] == [0, len(self.heads)]

    def prune(self):
        for form in ("smaller", "zeroed"):
            self.tried(form, partial(self.pruned, form))

    def pruned(self, form):
        out = self.folder / form
        words = ("prune", self.path, "--off", ",".join(self.off), "--form", form, "-o", out)
        assert self.scored(*words)["difference"] < 1e-5
        if self.metric == "cosine_distance":
            found = self.scored("compare", self.path, out)["score_b"]
        else:
            found = self.scored("evaluate", out)
        assert found["value"] == pytest.approx(self.without["value"], abs=1e-5)

    def compare(self):
        found = self.done("compare", self.path, self.path, *self.read, "--json")
        assert [one["head"] for one in found["heads"]] == self.heads
        assert all(one["largest"] == 0 for one in found["heads"])
        found = self.scored("compare", self.path, self.path)
        assert found["differing"] == 0 and found["agreement"] == 1


def theirs(one):
    """The score of what transformers itself answers to each example alone."""
    import transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = getattr(transformers, one.name).from_pretrained(one.path).eval()
    net.config.use_cache = False  # that of a BLT has no room
    model, read, right, nats, size = open_model(one.path), one.tokenizer, [], 0.0, 0

    def answered(ids, file="", **more):
        given = {"input_ids": torch.tensor([list(ids)])} if not file else {
            net.main_input_name: torch.tensor(model.from_signal(file).signal.values)[None]
        }  # fmt: skip
        with torch.no_grad():
            return net(**given, **{key: torch.tensor([list(one)]) for key, one in more.items()})

    def surprise(logits, wanted):
        return float(F.cross_entropy(logits[0].double(), torch.tensor(wanted), reduction="sum"))

    if one.metric == "cosine_distance":
        return 0
    if one.metric == "masked_accuracy":  # which tokens are hidden hgviz has drawn
        for row in examples_from(model, one.data).rows:
            said = answered(row.ids).logits[0].argmax(-1).numpy()
            right += (said == row.wanted)[row.wanted >= 0].tolist()
        return np.mean(right)
    for at, row in enumerate(ROWS):
        ids, words = read.encode(row).ids, row.split()
        file = one.signal and one.data.parent / f"{at}{one.signal}"
        if one.metric == "accuracy":
            right.append(int(answered(ids, file).logits.argmax()) == at % 2)
        elif one.metric == "tag_accuracy":
            said = answered(ids).logits[0, 1:-1].argmax(-1).tolist()
            right += [tag == len(word) % 2 for tag, word in zip(said, words, strict=True)]
        elif one.metric == "end_accuracy":
            both = read.encode(ASKED, row)
            kinds = {"token_type_ids": both.type_ids} if model.config.segments else {}
            said = answered(both.ids, **kinds)
            start = len(both.ids) - len(words) + 1
            right += [int(said.start_logits.argmax()) == start]
            right += [int(said.end_logits.argmax()) == start + 1]
        elif one.two:
            wanted = read.encode(ROWS[-1 - at]).ids
            begun = [net.config.decoder_start_token_id, *wanted[:-1]]
            nats += surprise(answered(ids, file, decoder_input_ids=begun).logits, wanted)
            size += len(ROWS[-1 - at])
        else:
            nats += surprise(answered(ids[1:-2]).logits, ids[2:-1])
            size += len(row) - len(words[0])
    return nats / np.log(2) / size if size else np.mean(right)


VERBS = ("info", "capture", "map", "figure", "heads_", "rollout", "evaluate", "importance",
         "curve", "prune", "compare")  # fmt: skip


@pytest.mark.parametrize(("family", "name", "kind"), cases())
def test_every_verb_works(run, data, tmp_path, family, name, kind, subtests):  # noqa: F811
    verbs = Verbs(run, data, tmp_path, family, name, kind)
    for verb in VERBS:
        with subtests.test(verb.rstrip("_")):
            verbs.tried(verb, getattr(verbs, verb))
        if verb == "info" and verbs.refused(verb):
            return  # it does not open
