"""A figure and its command are the same thing: what one says, the other draws, to the byte."""

import re
import shlex
from operator import attrgetter
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from PIL import Image

from hgviz import cli, tasks
from hgviz.core import Display, HeadId, HgvizError, RolloutOptions, Selection
from hgviz.figures import FIGURES, CaptureFacts, Panel, Spec
from hgviz.figures.output import command
from hgviz.figures.spec import (
    arguments,
    options_of,
    parse_tokens,
    set_options,
    spec_of,
)
from hgviz.maps.links import LinkOptions
from hgviz.store import write_capture, write_study
from tests.figures.making import study_of
from tests.making import make_capture, make_image_capture
from tests.store.samples import write_corpus
from tests.studying import make_sweep

TEXT = "Sand ran down."
A = make_capture(TEXT, strides=(1, 2), heads=3)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with two captures, a corpus, two studies and a sweep."""
    folder = tmp_path_factory.mktemp("sources")
    write_capture(folder / "my text.h5", A)
    write_capture(folder / "a picture.h5", make_image_capture(layers=9))
    write_capture(folder / "-b.h5", make_capture(TEXT, (1, 2), 3, seed=1, signed=True))
    texts = ["It ran.", "Sand!", "The sand ran."]
    write_corpus(folder / "many.h5", [make_capture(t, (1, 2), 3, relative=True) for t in texts])
    for seed, name in enumerate(("s.h5", "t's.h5")):
        write_study(folder / name, study_of(("loo", "signed"), seed, 3))
    make_sweep(methods=("loo", "signed"), folder=folder / "my runs")
    return folder


SOURCES = {
    "capture": [("my text.h5", 0)],
    "pair": [("my text.h5", 0), ("-b.h5", 0)],
    "captures": [("my text.h5", 0), ("-b.h5", 0)],
    "study": [("s.h5", 0)],
    "studies": [("s.h5", 0), ("t's.h5", 0)],
    "sweep": [("my runs", 0)],
}
EVERYTHING = {
    "selection": Selection(3, 1, 9, 4, HeadId(4, 2)),
    "display": Display("cividis", (0.0, 0.37), "log", shared=True),
    "width": "252.25pt",
    "title": 'It\'s a “title” of $5; --kind: 50 %\n"x" ' + "\u202e",
    "heads": (HeadId(4, 2), HeadId(0, 1), HeadId(8, 0)),
    "links": LinkOptions((HeadId(5, 1), HeadId(3, 0)), (9, 2, 3), "mean", 7, 0.1 + 0.2, 1e-7, True,
                     False, False, True),
    "recipe": RolloutOptions("max", (HeadId(3, 1), HeadId(0, 2)), 1 / 3, True),
    "methods": ("signed",),
    "axis": "flops",
    "metrics": ("entropy", "distance"),
    "order": "weight",
}  # fmt: skip


def command_in(path):
    """The command that a file says."""
    if path.suffix == ".png":
        with Image.open(path) as image:
            words = image.info["Description"]
    elif path.suffix == ".svg":
        nodes = ElementTree.parse(path).getroot().iter()
        words = next(node.text for node in nodes if node.tag.endswith("}description"))
    else:  # the keywords of a PDF, written as Latin-1 or UTF-16
        content = path.read_bytes()
        words = re.search(rb"/Keywords \((.*?(?<!\\)(?:\\\\)*)\)\s*(?:/|>>)", content, re.DOTALL)[1]
        signs = {b"n": b"\n", b"r": b"\r"}
        words = re.sub(rb"\\([\\()nrtbf])", lambda m: signs.get(m[1], m[1]), words)
        is_wide = words[:2] == b"\xfe\xff"
        words = words[2:].decode("utf-16-be") if is_wide else words.decode("latin-1")
    return words.rpartition("command: ")[2]


def twice(files, tmp_path, monkeypatch, spec, sources, suffix):
    """Draw a figure, and where its files are the command that it says; returns that command."""
    of = tasks.sources_of(spec.kind, [files / name for name, _ in sources],
                          [item for _, item in sources])  # fmt: skip
    first, again = (
        Path(tasks.draw(tasks.panel(spec, of), tmp_path / f"fig 1{suffix}")),
        tmp_path / "again",
    )
    again.mkdir()
    for name in {name for name, _ in sources}:
        (again / name).symlink_to(files / name)
    monkeypatch.chdir(again)
    words = command_in(first)
    assert "/" not in words.replace(" ./-", " ")
    assert cli.main(shlex.split(words)[1:], cli.Window(None, None)) == 0
    assert (again / first.name).read_bytes() == first.read_bytes(), words
    return words


@pytest.mark.parametrize("kind", FIGURES)
def test_the_command_in_a_figure_remakes_it_to_the_byte(kind, files, tmp_path, monkeypatch):
    """With every option set, in each format in turn."""
    suffix = (".pdf", ".svg", ".png")[list(FIGURES).index(kind) % 3]
    sources = [("a picture.h5", 0)] if kind == "image" else SOURCES[FIGURES[kind].of]
    twice(files, tmp_path, monkeypatch, Spec(kind, **EVERYTHING), sources, suffix)


@pytest.mark.parametrize(
    ("spec", "sources", "suffix", "words"),
    [
        (Spec("compare", Selection(4, 1, beside=HeadId(3, 2)), title="“é” — \\(x) 모래"),
         SOURCES["pair"], ".pdf", "hgviz figure 'my text.h5' ./-b.h5 --kind compare --layer 4 "
         "--head 1 --beside 3.2"),
        (Spec("compare", Selection(1, 2)), [("many.h5", 2), ("many.h5", 0)], ".svg", "--item 2,0"),
    ],
)  # fmt: skip
def test_titles_in_any_script_and_texts_of_a_corpus_are_said(
    spec, sources, suffix, words, files, tmp_path, monkeypatch
):
    assert words in twice(files, tmp_path, monkeypatch, spec, sources, suffix)


# --- the words and the keys -----------------------------------------------------------------------

heads = some.sampled_from([HeadId(layer, head) for layer in range(9) for head in range(3)])
several = some.lists(heads, max_size=4, unique=True).map(tuple)
shares = some.floats(0, 1, allow_subnormal=False)
tokens = some.none() | some.integers(0, 13)
limits = some.tuples(some.floats(-9, 9), some.floats(-9, 9)).filter(lambda one: one[0] < one[1])
places = some.sets(some.integers(0, 13), max_size=5).map(lambda found: tuple(sorted(found)))
links = some.builds(
    LinkOptions, several, places,
    some.sampled_from(["each", "mean", "sum", "max"]), some.integers(0, 20), shares,
    some.floats(0, 1e6), some.booleans(), some.booleans(), some.booleans(), some.booleans(),
)  # fmt: skip
fuses = some.sampled_from(["mean", "max", "min"])
signed = some.builds(RolloutOptions, heads=several, signed=some.just(True))
recipes = some.builds(RolloutOptions, fuses, several, shares, some.booleans()) | signed
specs = some.builds(
    Spec, some.sampled_from(list(FIGURES)),
    some.builds(Selection, some.integers(0, 8), some.integers(0, 2), tokens, tokens,
                some.none() | heads),
    some.builds(Display, some.sampled_from(["viridis", "magma", "blue-red"]),
                some.none() | limits, some.sampled_from(["linear", "sqrt", "log"]),
                some.booleans()),
    some.sampled_from(["neurips", "3.3in", "acl"]), some.sampled_from(["", "pdf"]),
    some.none() | some.text(max_size=8), several, links, recipes,
    some.lists(some.sampled_from(["loo", "signed"]), max_size=2, unique=True).map(tuple),
    some.sampled_from(["heads", "flops"]), some.sampled_from([(), ("distance", "entropy")]),
    some.sampled_from(["text", "weight"]),
)  # fmt: skip


def what_is_used(spec):
    """The parts of a Spec that its kind shows."""
    used = options_of(spec.kind).values()
    return arguments(spec), [attrgetter(option.at)(spec) for option in used]


@settings(max_examples=30, deadline=None)
@given(specs)
def test_nothing_of_a_figure_is_lost_in_its_options_and_on_a_command_line(spec):
    """As keyword arguments, and through the program that reads the words."""
    assert what_is_used(spec_of(spec.kind, set_options(spec), [A, A])) == what_is_used(spec)
    found = []

    words = ["figure", "a.h5", *(["b.h5"] if FIGURES[spec.kind].of == "pair" else [])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "panel", lambda asked, of: found.append(asked))
        patch.setattr(tasks, "draw", lambda panel, out, **beside: out)
        patch.setattr(tasks, "sources_of", lambda kind, files, items: [A] * len(files))
        words += [*arguments(spec), "-o", "f.pdf"]
        assert cli.main(words, cli.Window(None, None)) == 0
    assert what_is_used(found[0]) == what_is_used(spec)


def test_a_file_that_is_drawn_is_not_replaced_by_its_figure(files, tmp_path, refusal):
    mine = tmp_path / "mine.h5"
    mine.write_bytes((files / "my text.h5").read_bytes())
    error = refusal("figure", mine, "--kind", "map", "--format", "png", "-o", mine, code=2)
    assert "mine.h5 is also an input" in error
    error = refusal("figure", files / "s.h5", "--kind", "map", "-o", tmp_path / "x.pdf")
    assert "--kind scores" in error
    assert mine.read_bytes() == (files / "my text.h5").read_bytes()


def test_tokens_are_named_one_by_one_or_from_where_to_where():
    assert parse_tokens("3,5:8", 9) == (3, 5, 6, 7)
    assert parse_tokens("0:1000000000000", 9) == (999999999999,)  # at once, to be refused
    assert spec_of("links", {"queries": "all"}, [A]).links.queries == tuple(range(len(TEXT)))
    assert spec_of("links", {"queries": [2, 1]}, [A]).links.queries == (2, 1)
    for wrong in ("a", "3:", ":3", "5:5", "-1", "1.5"):
        with pytest.raises(HgvizError, match="is not a token"):
            parse_tokens(wrong, 9)


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        ("map", "layer", -1, "layer cannot be -1: it must be a whole number, 0 or more"),
        ("map", "scale", None, "one of linear, sqrt, log"),
        ("map", "limits", "0:1:2", "such as 0:0.5"),
        ("map", "limits", [1, 0], "limits cannot be 1:0"),
        ("wall", "shared", 1, "true or false"),
        ("links", "least", 10**400, "a number"),
        ("links", "heads", "3.0,3.*", "named twice"),
        ("links", "queries", 3, "or all"),
        ("links", "together", "both", "one of each, mean, sum, max"),
        ("compare", "beside", "3.*", "names 3 heads"),
        ("curve", "method", [1], "a list of texts"),
    ],
)
def test_what_an_option_does_not_take_is_said(kind, name, value, message):
    with pytest.raises(HgvizError) as error:
        spec_of(kind, {name: value}, [A])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("panel", "out", "words"),
    [
        (Panel(Spec("compare"), CaptureFacts(A), ("/a/x.h5", "/b/x.h5")), "f.pdf",
         "A.h5 B.h5 --kind compare -o f.pdf"),
        (Panel(Spec(), CaptureFacts(A), ("",)), "f.pdf", "CAPTURE.h5 --kind map -o f.pdf"),
        (Panel(Spec(format="svg"), CaptureFacts(A), ("a.h5",)), "f.dat",
         "a.h5 --kind map --format svg -o f.dat"),
    ],
)  # fmt: skip
def test_files_that_no_folder_could_hold_have_names_that_stand_for_them(panel, out, words):
    assert command(panel, Path(out)) == f"hgviz figure {words}"
