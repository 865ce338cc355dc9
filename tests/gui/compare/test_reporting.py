"""The report on A and B from the window: when there can be one, and that it is the same."""

from types import SimpleNamespace

import pytest

from hgviz import tasks
from hgviz.core import HeadId, HgvizError, finish
from hgviz.gui.compare.reporting import Asked, why_not
from hgviz.models import open_model
from hgviz.session import Session
from hgviz.session.other import Other
from hgviz.store import write_capture
from tests.test_evaluate import classifier, rows


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A small classifier over words, its data, and a capture of it."""
    folder = tmp_path_factory.mktemp("words")
    path = classifier(folder / "words")
    model = open_model(path)
    capture = finish(tasks.capture(model, model.tokenize("the cat sat")))
    return SimpleNamespace(path=str(path), data=str(rows(folder, 12)), model=model, capture=capture)


@pytest.fixture
def session(words):
    """A session that compares the classifier with itself by another activation."""
    found = Session()
    found.put(
        model=words.model, checkpoint=words.path, capture=words.capture, beside=words.capture,
        other=Other("activation", "ymish"), mode="compare",
    )  # fmt: skip
    return found


def test_a_report_of_the_window_is_that_of_its_command(words, session, tmp_path, capfd):
    from hgviz import cli

    assert why_not(session) == ""
    out = tmp_path / "report.html"
    asked = Asked.of(session, words.data, "cpu", str(out))
    assert finish(asked.task()) == str(out)
    from shlex import split

    first = out.read_bytes()
    assert cli.main(split(asked.command)[1:], cli.Window(None, None)) == 0
    capfd.readouterr()
    # the command line says its options in another order
    ours, theirs = (one.split(b"</header>")[1].split(b"<footer")[0] for one in
                    (first, out.read_bytes()))  # fmt: skip
    assert ours == theirs and b"ymish" in ours and b"the cat sat" in ours


def test_what_there_can_be_no_report_of_is_said(words, session):
    for change, word in (
        ({"other": Other("text", text="a dog")}, "another text"),
        ({"other": Other("head")}, "another head"),
        ({"off": frozenset({HeadId(0, 0)})}, "heads of A on"),
        ({"beside": None}, "Needs a B"),
    ):
        before = {name: getattr(session, name) for name in change}
        session.put(**change)
        assert word in why_not(session)
        session.put(**before)
    session.put(checkpoint="")
    assert "checkpoint" in why_not(session)


def test_heads_of_b_and_other_checkpoints_are_reported(words, session, tmp_path):
    off = frozenset({HeadId(0, 1)})
    session.put(other=Other("off", off=off))
    asked = Asked.of(session, words.data, "cpu", str(tmp_path / "off.pdf"))
    assert asked.off == off and "--off 0.1" in asked.command
    session.put(other=Other("model", path="elsewhere", activation="tanh"))
    asked = Asked.of(session, words.data, "cpu", str(tmp_path / "other.pdf"))
    assert asked.paths == (words.path, "elsewhere") and asked.activations == ("", "tanh")


def test_a_capture_answers_nothing(words, session, tmp_path):
    path = tmp_path / "b.h5"
    write_capture(path, words.capture)
    session.put(other=Other("model", path=str(path)))
    asked = Asked.of(session, words.data, "cpu", str(tmp_path / "report.html"))
    with pytest.raises(HgvizError, match="is a capture"):
        finish(asked.task())
    asked = Asked.of(session, words.data, "cpu", str(tmp_path / "nowhere" / "report.html"))
    with pytest.raises(HgvizError, match="no folder"):
        finish(asked.task())
