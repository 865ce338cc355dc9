"""Figures of attributions: what is drawn is what was found, signs go both ways, nothing is cut."""

import csv
import html
import re
import shlex
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from hgviz import palettes, tasks
from hgviz.core import Display, HeadId, HgvizError
from hgviz.figures import Spec, labels
from hgviz.figures.attribution import Share
from hgviz.figures.output import compose, draw
from hgviz.figures.spec import quoted
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.tasks.attributing import MOST, attribution_panel, attribution_rows, given_words
from hgviz.tasks.explaining import Attribution, KeyScores, Question
from tests.figures.flaws import require_tidy, texts
from tests.figures.texts import HOSTILE, SEA, capture_of, plain
from tests.making import byte_prompt, make_capture

REVIEW = "A dull plot, but she never bores."
SOFTMAX, HOURGLASS = (str(resource(f"sample/{name}")) for name in ("softmax", "hourglass"))
METHODS = ("tokens", "heads", "layers", "attention")


def found_of(capture, *, classes=False, position=None, seed=0, **more):
    """What an attribution of a capture could be."""
    random = np.random.default_rng(seed)
    at = len(capture.main) - 1 if position is None else position
    question = Question(0, None) if classes else Question(65, at, 64)
    layers = {one.index: float(random.normal()) for one in capture.spec.layers if one.heads}
    source = random.normal(size=len(capture.prompt)) if capture.target is not None else None
    return Attribution(
        question, capture.prompt, capture.target, capture.off, 2.5, -1.0,
        random.normal(size=len(capture.main)), source,
        {head: float(random.normal()) for head in capture.spec.heads}, layers, **more,
    )  # fmt: skip


def beside_of(capture, head, keys=None):
    layer = head.layer
    count = capture.maps[layer].shape[2] if keys is None else keys
    random = np.random.default_rng(1)
    there = np.flatnonzero(capture.key_spans(layer)[:count, 0] >= 0)
    values = random.normal(size=(3, len(there)))
    return KeyScores(head, 0, there, np.abs(values[0]), values[1], values[2])


def panel_of(capture, method, width="acl", **more):
    beside = None
    if method == "attention":
        layer = next(one for one in capture.spec.layers if one.heads)
        beside = beside_of(capture, HeadId(layer.index, layer.heads[0]))
    spec = Spec("attribution", display=Display(scale="linear"), width=width)
    return attribution_panel(spec, found_of(capture, **more), capture, method, beside=beside,
                             says="e", given=("--text", "a"), model="sample/hourglass")  # fmt: skip


def page_of(panel):
    with labels.figure_settings():
        page = compose(panel.spec, panel.content)
        return page, texts(page)


# --- what is drawn --------------------------------------------------------------------------------


def test_bars_go_up_for_what_adds_and_down_for_what_takes_away():
    capture = plain(["good", "bad", "so", "so"], special=False)
    found = replace(found_of(capture, classes=True), tokens=np.array([2.0, -1.0, 0.0, 1.0]))
    spec = Spec("attribution", display=Display(scale="linear"), width="acl")
    page, _ = page_of(attribution_panel(spec, found, capture, "tokens"))
    table = palettes.colours("blue-red")
    colours = [tuple(float(one) / 255 for one in table[at]) for at in (40, 215)]
    bars = {at: [] for at in (0, 1)}
    for patch in page.axes.patches:
        face = patch.get_facecolor()[:3]
        for at, colour in enumerate(colours):
            if np.allclose(face, colour, atol=1e-6) and patch.get_height() < 8.6:
                bars[at].append((patch.get_y(), patch.get_height()))
    assert len(bars[0]) == 1 and len(bars[1]) == 2  # what adds nothing has no bar
    zero = bars[0][0][0]
    assert all(y + high == pytest.approx(zero) for y, high in bars[1])  # y runs down the page
    assert bars[1][0][1] == pytest.approx(2 * bars[0][0][1])
    assert bars[1][1][1] == pytest.approx(bars[0][0][1])


def test_the_bar_of_colours_is_symmetric_about_nothing():
    capture = plain(["good", "bad"], special=False)
    found = replace(found_of(capture, classes=True), tokens=np.array([3.0, 0.5]))
    _, said = page_of(attribution_panel(Spec("attribution", width="acl"), found, capture, "tokens"))
    words = [words for words, _ in said]
    assert "−3" in words and "+3" in words and "0" in words


def test_completeness_is_told():
    panel = panel_of(capture_of("sea"), "tokens")
    _, said = page_of(panel)
    found = found_of(capture_of("sea"))
    words = " ".join(words for words, _ in said)
    percent = f"{100 * found.error:,.0f} %"
    assert "the answer changes by +3.500" in words and f"{percent} is missing" in words


def test_letters_of_a_character_are_added_up_and_nothing_is_lost():
    capture = make_capture("모래시계는 a")
    found = found_of(capture)
    share = Share("", capture.prompt, found.tokens)
    for way in (Share.cells_by_token, Share.cells_by_word):
        assert sum(cell.value for cell in way(share)) == pytest.approx(found.tokens.sum())
    assert [cell.words for cell in share.cells_by_word()] == ["모래시계는", "a"]


def test_a_text_too_long_for_letters_has_words_and_one_too_long_for_words_has_stretches():
    page, said = page_of(panel_of(make_capture(SEA * 6), "tokens", "acl"))
    assert "hourglass" in [words for words, _ in said]
    assert page.notes == ["tokens are added up to words"]
    capture = replace(plain(["a"]), prompt=byte_prompt("word " * 820))  # 4,100 letters
    page, _ = page_of(panel_of(capture, "tokens", "acl"))
    assert page.height < 2 * page.width
    assert any("each bar is the sum of" in note for note in page.notes)


def test_what_comes_after_the_answer_is_not_drawn_as_nothing():
    panel = panel_of(capture_of("sea"), "tokens", position=20)
    assert len(panel.content.texts[0].values) == 21
    assert "does not hear of the rest" in " ".join(words for words, _ in page_of(panel)[1])


def test_heads_that_are_off_are_hatched_and_have_no_number():
    capture = replace(capture_of("sea"), off=frozenset({HeadId(0, 1)}))
    panel = panel_of(capture, "heads", "neurips")
    page, said = page_of(panel)
    words = [words for words, _ in said]
    assert words.count("off") == 1 and "Switched off: 0.1." in words
    numbers = [one for one in words if one[:1] in "+−" and "." in one or one == "0.00"]
    assert len(numbers) >= len(capture.spec.heads) - 1


def test_of_many_keys_those_that_count_are_drawn():
    panel = panel_of(make_capture(SEA), "attention")
    assert len(panel.content.keys.spans) == MOST
    assert any(f"The {MOST} keys that count most of" in note for note in panel.content.notes)


# --- layout ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["one letter", "hostile", "two texts", "long names", "ragged"])
def test_no_two_texts_overlap_and_none_leaves_the_page(name, method):
    for width in ("1.6in", "neurips") if len(name) % 2 else ("1.6in", "acl"):
        require_tidy(page_of(panel_of(capture_of(name), method, width))[0], width)


def test_many_heads_of_many_layers_and_the_label_of_a_stranger_fit():
    capture = plain(["a", "b"])
    spec = replace(capture.spec, goal="classes", labels=(HOSTILE, "other"))
    panel = panel_of(replace(capture, spec=spec), "tokens", classes=True)
    require_tidy(page_of(panel)[0], "acl")
    require_tidy(page_of(panel_of(capture_of("many layers"), "heads", "1.6in"))[0], "1.6in")
    require_tidy(page_of(panel_of(capture_of("many heads"), "heads", "icml"))[0], "icml")


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_the_table_has_every_number(method, tmp_path):
    capture = capture_of("sea")
    panel = panel_of(capture, method)
    path = draw(panel, tmp_path / "f.csv")
    with open(path) as file:
        rows = list(csv.DictReader(file))
    beside = beside_of(capture, HeadId(0, 0)) if method == "attention" else None
    wanted = attribution_rows(found_of(capture), capture, method, beside)
    assert len(rows) == len(wanted)
    for row, one in zip(rows, wanted, strict=True):
        for name, value in one.items():
            if isinstance(value, float):
                assert float(row[name]) == pytest.approx(value, rel=1e-6)


def command_in(drawn):
    return html.unescape(re.search(r"command: (hgviz attribute .*? -o f\.svg)", drawn)[1])


@pytest.mark.parametrize(
    "more",
    [
        (SOFTMAX, "--text", REVIEW, "--method", "heads", "--off", "1.2,3.*"),
        (SOFTMAX, "--text", REVIEW, "--method", "attention", "--head", "1.2", "--query", "0"),
        (HOURGLASS, "--text", 'The "sea" $HOME ', "--token", "3", "--says", "x"),
        (SOFTMAX, "--text", REVIEW, "--target-class", "positive", "--target-class", "negative"),
    ],
)
def test_the_command_in_a_figure_draws_it_again_to_the_byte(more, tmp_path, output, monkeypatch):
    first, again = tmp_path / "first", tmp_path / "again"
    for folder in (first, again):
        folder.mkdir()
    steps = ("--steps", "8", "--baseline", "mean", "--width", "acl")
    said = output("attribute", *more, *steps, "-o", first / "f.svg")
    assert "where the answer comes from" in said
    drawn = (first / "f.svg").read_text()
    command = command_in(drawn)
    monkeypatch.chdir(again)
    words = shlex.split(command)
    assert words[:2] == ["hgviz", "attribute"] and "/" not in words[2].removeprefix("sample/")
    output(*words[1:])
    assert (again / "f.svg").read_text() == drawn
    assert str(tmp_path) not in drawn


def test_the_words_that_give_a_text_are_checked_by_reading_it_again():
    model = open_model(SOFTMAX)
    seen = tasks.capture(model, model.tokenize(REVIEW))
    assert given_words(model, seen) == ("--text", REVIEW)
    other = replace(seen, prompt=replace(seen.prompt, ids=seen.prompt.ids[::-1].copy()))
    assert given_words(model, other) == () and given_words(None, seen) == ()
    panel = attribution_panel(Spec("attribution"), found_of(seen, classes=True), seen, "tokens")
    assert panel.content.asked[:2] == ("--ids", "IDS.json")


def test_what_a_program_found_and_what_the_command_finds_are_the_same_bytes(
    tmp_path, output, monkeypatch
):
    """As the window does it: one question, layers with it, drawn later."""
    model = open_model(HOURGLASS)
    seen = tasks.capture(model, model.tokenize("The sea"))
    question = tasks.question_of("next", seen.logits, seen.main, 4)
    found = tasks.explain(model, seen.prompt, replace(question, steps=4), layers=True)
    spec = Spec("attribution", display=Display(scale="linear"), width="acl")
    panel = attribution_panel(
        spec, found, seen, "layers", says=tasks.said_by(model, question.number),
        given=given_words(model, seen), model=HOURGLASS,
    )  # fmt: skip
    drawn = draw(panel, tmp_path / "f.svg").read_bytes()
    command = command_in(drawn.decode())
    (tmp_path / "again").mkdir()
    monkeypatch.chdir(tmp_path / "again")
    output(*shlex.split(command)[1:])
    assert (tmp_path / "again" / "f.svg").read_bytes() == drawn


@pytest.mark.parametrize("text", ["two\nlines\tof 'it'", "\\n \u202e\u200b\x7f1 $HOME", HOSTILE])
def test_a_shell_reads_the_text_in_a_command_as_it_was(text):
    if "\0" in text:
        text = text.replace("\0", "")  # no command line can hold it
    word = quoted(text)
    assert word.isprintable()
    shell = ["bash", "-c", f"printf %s {word}"]
    told = subprocess.run(shell, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    assert told.stdout.decode() == text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("attribute softmax --text a --width 9ft -o f.pdf", 1, "no width"),
        ("attribute softmax --text a -o f.gif", 2, "does not end in"),
        ("attribute softmax --text a -o nowhere/f.pdf", 1, "there is no folder"),
        ("attribute softmax --text a -o f.json --numbers", 2, "--numbers goes with a figure"),
        ("attribute softmax --text-file my.csv -o my.csv", 2, "my.csv is a file that is read"),
        ("attribute softmax --text-file my.csv -o my.pdf --numbers", 2, "my.csv is a file that is"),
        ("attribute softmax --text a --target-class positive --target-class negative", 2,
         "figure of tokens"),
        ("figure sample/first.h5 --kind attribution -o f.pdf", 2, "hgviz attribute MODEL --text T"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_clear_line(words, code, said, refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.csv").write_text("The sea.")
    given = (SOFTMAX if word == "softmax" else word for word in words.split())
    assert said in refusal(*given, code=code)
    assert (tmp_path / "my.csv").read_text() == "The sea." and len(list(tmp_path.iterdir())) == 1


def test_its_numbers_stand_beside_it_or_in_its_place(output, tmp_path):
    words = ("attribute", HOURGLASS, "--text", "=The sea", "--steps", "4")
    output(*words, "-o", tmp_path / "f.csv")
    output(*words, "--numbers", "-o", tmp_path / "g.svg")
    assert {one.name for one in tmp_path.iterdir()} == {"f.csv", "g.svg", "g.csv"}
    assert (tmp_path / "f.csv").read_bytes() == (tmp_path / "g.csv").read_bytes()
    rows = (tmp_path / "f.csv").read_text().splitlines()
    assert len(rows) == 9 and "attribution" in rows[0]


def test_several_answers_to_a_text_have_lines_of_their_own_and_share_one_scale():
    capture = plain(["good", "bad"], special=False)
    spec = replace(capture.spec, goal="classes", labels=("dark", "bright"))
    capture = replace(capture, spec=spec)
    one = replace(found_of(capture, classes=True), tokens=np.array([2.0, -1.0]))
    two = replace(one, question=Question(1), tokens=np.array([-4.0, 1.0]))
    panel = attribution_panel(Spec("attribution", width="acl"), one, capture, "tokens",
                              others=[(two, "")])  # fmt: skip
    require_tidy(page_of(panel)[0], "acl")
    words = [words for words, _ in page_of(panel)[1]]
    assert "What “dark” and “bright” come from" in words
    assert "“dark”" in words and "“bright”" in words and "+4" in words
    assert [row[0] for row in panel.content.rows()] == ["answer", *2 * ["dark"], *2 * ["bright"]]
    asked = " ".join(panel.content.asked)
    assert "--target-class dark --target-class bright" in asked
    same = attribution_panel(Spec("attribution"), one, capture, "tokens", others=[(one, "")])
    assert [share.name for share in same.content.texts] == ["“dark”", "“dark, 0”"]


def test_layers_that_nobody_walked_through_cannot_be_drawn():
    capture = capture_of("sea")
    found = replace(found_of(capture), layers=None)
    with pytest.raises(HgvizError, match="not walked through"):
        attribution_panel(Spec("attribution"), found, capture, "layers")
    with pytest.raises(HgvizError, match="no head was read"):
        attribution_panel(Spec("attribution"), found, capture, "attention")
