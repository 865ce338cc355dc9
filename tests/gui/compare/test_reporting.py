"""The command of a report on A and B: when there is one, and what it says."""

import shlex
from types import SimpleNamespace

import pytest
from PySide6.QtGui import QGuiApplication

from hgviz.core import HeadId
from hgviz.gui.actions import by_name
from hgviz.gui.commands import report_command
from hgviz.session import Session
from hgviz.session.other import Other


@pytest.fixture
def session(capture):
    """A session that compares a checkpoint with itself by another activation."""
    found = Session()
    found.put(
        checkpoint="a", capture=capture, beside=capture, data="d.tsv",
        other=Other("activation", "ymish"), mode="compare",
    )  # fmt: skip
    return found


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"other": Other("text", text="a dog")}, "another text"),
        ({"other": Other("head")}, "another head"),
        ({"off": frozenset({HeadId(0, 0)})}, "heads of A on"),
        ({"activation": "tanh"}, "exchanged"),
        ({"beside": None}, "Needs a B"),
        ({"data": ""}, "Needs data"),
        ({"checkpoint": ""}, "checkpoint of A"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused(session, change, word):
    why_off = by_name("report_sides").why_off
    assert why_off(session) == ""
    for name, value in change.items():
        setattr(session, name, value)
    assert word in why_off(session)


def test_a_report_on_a_capture_file_is_refused(session):
    session.other = Other("model", path="b.h5")
    session.beside = SimpleNamespace(path="b.h5")
    assert "B is a capture" in by_name("report_sides").why_off(session)


def test_the_command_names_both_models(session):
    text = session.capture.main.text
    words = shlex.split(report_command(session))
    assert words[:6] == ["hgviz", "compare", "a", "a", "--data", "d.tsv"]
    assert words[6:10] == ["--activation", "ymish", "--text", text]
    assert words[-2] == "-o" and words[-1].endswith(".html")
    session.other = Other("off", off=frozenset({HeadId(0, 1)}))
    assert "--off 0.1" in report_command(session)
    session.other = Other("model", path="elsewhere", activation="tanh")
    assert report_command(session).startswith("hgviz compare a elsewhere --data d.tsv --act")


def test_the_command_is_copied(program, session):
    state = program.session
    state.put(
        checkpoint="a", capture=session.capture, beside=session.capture, data="d.tsv",
        other=Other("model", path="b"),
    )  # fmt: skip
    program.commands.report_sides()
    assert QGuiApplication.clipboard().text() == report_command(state)
