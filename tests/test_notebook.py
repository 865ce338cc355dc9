"""What a notebook shows: SVG in place, files on request, numbers behind both; without Qt."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

import hgviz
from hgviz import tasks
from hgviz.core import Capture, HgvizError, parse_heads
from hgviz.files import resource
from hgviz.models import open_model
from hgviz.store import write_capture, write_study
from tests.making import make_capture
from tests.studying import make_study
from tests.test_architecture import loaded_after, run

TEXT = "The soup was not good."
SOFTMAX, YMISH = (str(resource(f"sample/{name}")) for name in ("softmax", "ymish"))


@pytest.fixture(scope="module")
def small() -> Capture:
    return make_capture("Sand runs down. ", strides=(1, 2), heads=2)


def test_importing_hgviz_costs_nothing_and_drawing_needs_no_qt():
    assert not loaded_after("import hgviz") & {"numpy", "torch", "matplotlib", "h5py"}
    run(
        "-c",
        "import sys; sys.modules['PySide6'] = None; import hgviz\n"
        "from tests.making import make_capture\n"
        "found = hgviz.figure(make_capture('Sand. ', strides=(1,), heads=1), 'links')\n"
        "assert '<svg' in found._repr_svg_() and 'torch' not in sys.modules",
    )


@pytest.mark.parametrize("kind", [
    "map", "links", "wall", "levels", "rollout", "neurons", "profile", "activation",
])  # fmt: skip
def test_every_kind_is_shown_as_svg_and_written_in_any_format(small, kind, tmp_path):
    found = hgviz.figure(small, kind, query=5)
    assert ElementTree.fromstring(found._repr_svg_()).tag.endswith("svg")
    assert found._repr_svg_() is found._repr_svg_()
    path = found.save(tmp_path / "one.pdf")
    assert path.read_bytes().startswith(b"%PDF") and found.capture is small
    assert json.loads(json.dumps(found.facts))["kind"] == kind


def test_a_model_reads_the_text_and_its_capture_is_there_for_more():
    found = hgviz.figure(SOFTMAX, "links", text=TEXT, head="1.2", query=3, most=2)
    model = open_model(SOFTMAX)
    plain = tasks.capture(model, model.tokenize(TEXT))
    row = plain.maps[1].read(2, rows=(3, 4))[0]
    told = found.facts["links"]
    best = np.argsort(-row)[:2]
    assert [one["key"] for one in told] == best.tolist()
    np.testing.assert_allclose([one["weight"] for one in told], row[best], rtol=1e-6)
    assert {one["from"] for one in told} == {"was"} and {one["head"] for one in told} == {"1.2"}
    again = hgviz.figure(found.capture, layer=1, head=2)
    assert again.facts["metrics"].keys() == found.facts["metrics"].keys()


def test_a_path_may_be_of_a_capture_a_checkpoint_or_a_study(small, tmp_path):
    path = write_capture(tmp_path / "c.h5", small)
    assert hgviz.figure(path).capture.prompt.text == small.prompt.text
    study = write_study(tmp_path / "s.h5", make_study())
    found = hgviz.figure(study, "scores", methods=["signed"])
    assert "<svg" in found._repr_svg_() and found.facts["rows"][0]["head"]
    with pytest.raises(HgvizError, match="shows no capture"):
        found.capture  # noqa: B018


def test_two_models_answer_the_same_data():
    data = "sample/reviews.tsv"
    found = hgviz.compare(SOFTMAX, YMISH, data=data, limit=20, off="1.*")
    models = [hgviz.open_model(name) for name in (SOFTMAX, YMISH)]
    off = parse_heads("1.*", models[1].spec.layers)
    direct = tasks.compare_answers(*models, resource(data), off=off, limit=20)
    assert found.to_dict() == direct.to_dict()
    with pytest.raises(HgvizError, match="data without a text"):
        hgviz.compare(SOFTMAX, YMISH, TEXT, data=data)


def test_two_models_are_compared_on_a_text_or_on_that_of_a_capture(tmp_path):
    both = hgviz.compare(SOFTMAX, YMISH, TEXT, head="1.2")
    assert "<svg" in both._repr_svg_() and both.save(tmp_path / "c.svg").exists()
    heads = {one["head"]: one for one in both.facts["heads"]}
    assert heads["1.2"]["activation_b"] == "ymish" and heads["1.2"]["largest"] > 0
    assert len(both.captures) == 2
    one = hgviz.capture(SOFTMAX, TEXT)
    same = hgviz.compare(one, SOFTMAX)
    assert all(row["largest"] < 1e-6 for row in same.facts["heads"])
    off = hgviz.compare(one, SOFTMAX, off="0.*")
    assert max(row["largest"] for row in off.facts["heads"]) > 1e-3
    other = hgviz.compare(one, SOFTMAX, activation="tanh")
    assert {row["activation_b"] for row in other.facts["heads"]} == {"tanh"}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda one: hgviz.figure(SOFTMAX), "needs a text"),
        (lambda one: hgviz.figure("nowhere"), "there is no nowhere"),
        (lambda one: hgviz.figure(None), "None cannot be drawn"),
        (lambda one: hgviz.figure(one, head="first"), "'first' names no head"),
        (lambda one: hgviz.figure(one, "links", queries="3:x"), "'3:x' names no tokens"),
        (lambda one: hgviz.figure(one, "links", queries=3), "queries cannot be 3"),
        (lambda one: hgviz.compare(one, 7), "7 cannot be drawn"),
        (lambda one: hgviz.figure("nowhere.h5", text="a"), "there is no nowhere.h5"),
        (lambda one: hgviz.figure(one, text="b"), "takes no text"),
        (lambda one: hgviz.figure(7, text="b"), "7 cannot be drawn"),
        (lambda one: hgviz.figure(one, "pie"), "unknown kind of figure 'pie'"),
        (lambda one: hgviz.figure(one, layer=99), "no layer 99"),
        (lambda one: hgviz.figure(one, head="0.9"), "no head 0.9"),
        (lambda one: hgviz.figure(one, head="0.*"), "names 2 heads"),
        (lambda one: hgviz.figure(one, scale="wide"), "scale cannot be 'wide'"),
        (lambda one: hgviz.figure(one, palette="jet"), "palette cannot be 'jet'"),
        (lambda one: hgviz.figure(one, "links", queries=[999]).facts, "no token 999"),
        (lambda one: hgviz.figure(one, width="far")._repr_svg_(), "no width"),
        (lambda one: hgviz.figure(one).save("/nowhere/at/all.pdf"), "no folder"),
        (lambda one: hgviz.compare(SOFTMAX, YMISH), "needs a text"),
    ],
)
def test_what_cannot_be_is_said(small, call, said):
    with pytest.raises(HgvizError, match=said):
        call(small)


def test_a_figure_says_the_command_that_draws_it(small, tmp_path):
    path = write_capture(tmp_path / "c d.h5", small)
    found = hgviz.figure(path, "links", heads=["1.1", (0, 0)], queries=[3, 4], fuse="mean", most=4)
    start = "hgviz figure 'c d.h5' --kind links --heads 1.1,0.0 --queries 3:5 --together mean"
    assert found.command == f"{start} --most 4 -o figure.pdf"
    found.save(tmp_path / "two.svg")
    assert found.command.endswith("-o two.svg")
    assert found.command in (tmp_path / "two.svg").read_text("utf-8").replace("&#x27;", "'")
    both = hgviz.compare(path, path, head="1.1", beside="0.1", limits=(0, 0.5))
    assert both.command == (
        "hgviz figure 'c d.h5' 'c d.h5' --kind compare --layer 1 --head 1 --beside 0.1 "
        "--limits 0:0.5 -o figure.pdf"
    )
    study = write_study(tmp_path / "s.h5", make_study())
    told = hgviz.figure(study, "scores", methods=["signed"]).command
    assert told == "hgviz figure s.h5 --kind scores --method signed -o figure.pdf"


def test_an_option_that_no_figure_has_is_a_type_error(small):
    with pytest.raises(TypeError, match="no option 'colour'"):
        hgviz.figure(small, colour="red")
    with pytest.raises(AttributeError):
        hgviz.chart  # noqa: B018
    assert {"figure", "compare", "capture"} <= set(dir(hgviz))


def test_a_text_for_two_captures_is_refused(small):
    with pytest.raises(HgvizError, match="takes no text"):
        hgviz.compare(small, small, "more")


# --- how far models reach -------------------------------------------------------------------------


def test_the_reach_of_models_is_shown_with_its_numbers_and_its_command(tmp_path):
    shown = hgviz.reach("sample/softmax", "sample/ymish", text=TEXT, width="acl")
    assert "<svg" in shown._repr_svg_()
    assert [one["model"] for one in shown.facts["reach"]] == ["softmax", "ymish"]
    assert json.dumps(shown.facts)
    shown.save(tmp_path / "r.pdf")
    assert shown.command == (
        f"hgviz reach sample/softmax sample/ymish --text '{TEXT}' --width acl -o r.pdf"
    )
    model = open_model(SOFTMAX, dtype="float64")
    drawn = hgviz.reach(model, tokens=4, lengths=[2, 4])
    assert drawn.facts["reach"][0]["tokens"] == 4 and len(drawn.facts["milliseconds"][0]) == 4
    assert drawn.command == "hgviz reach MODEL --tokens 4 --lengths 2,4 -o figure.pdf"
    for wrong in ({}, {"text": TEXT, "tokens": 3}):
        with pytest.raises(HgvizError, match="what the models read"):
            hgviz.reach(model, **wrong)
