"""Every place where a command line names a file, given what it cannot use: one line, exit code 1
or 2, nothing written."""

import itertools
import re

import pytest

from hgviz.store import write_capture
from tests.models.folders import write_bert, write_gpt2

# each with one place, BAD; CLASSIFIER, WRITER and ROWS are good
COMMANDS = {
    "info": "info BAD",
    "capture": "capture BAD --text a -o out.h5",
    "capture a text file": "capture WRITER --text-file BAD -o out.h5",
    "capture ids": "capture WRITER --ids BAD -o out.h5",
    "capture a corpus": "capture WRITER --corpus BAD -o out.h5",
    "capture an image": "capture WRITER --image BAD -o out.h5",
    "capture with boundaries": "capture WRITER --text a --boundaries BAD -o out.h5",
    "heads": "heads BAD",
    "heads of a corpus": "heads WRITER --corpus BAD",
    "attribute": "attribute BAD --text a",
    "attribute ids": "attribute WRITER --ids BAD",
    "figure of a capture": "figure BAD --kind map -o f.pdf",
    "figure of two captures": "figure BAD BAD --kind compare -o f.pdf",
    "figure of a study": "figure BAD --kind scores -o f.pdf",
    "figure of a folder": "figure BAD --kind seeds -o f.pdf",
    "evaluate": "evaluate BAD --data ROWS",
    "evaluate on data": "evaluate CLASSIFIER --data BAD",
    "reach": "reach BAD --text a",
    "redundancy": "redundancy BAD",
    "rollout": "rollout BAD -o r.npy",
    "importance": "importance BAD --data ROWS -o s.h5",
    "importance on data": "importance CLASSIFIER --data BAD -o s.h5",
    "importance of gates": "importance CLASSIFIER --data ROWS --method gates --gates BAD -o s.h5",
    "curve": "curve BAD CLASSIFIER --data ROWS",
    "prune": "prune BAD --off 0.1 -o out",
    "prune by a study": "prune CLASSIFIER --study BAD --keep 2 -o out",
    "compare": "compare BAD CLASSIFIER --text a",
    "compare with": "compare CLASSIFIER BAD --text a",
    "compare on data": "compare CLASSIFIER CLASSIFIER --data BAD",
    "study run": "study run BAD -o out",
    "study status": "study status BAD",
    "study report": "study report BAD -o r.html",
    "train": "train BAD -o out",
    "map": "map BAD --head 0.0 -o m.npy",
    "logits": "logits BAD --text a -o l.npy",
    "convert": "convert BAD -o out",
}
FILES = {
    "missing": None,
    "empty": b"",
    "noise": bytes(range(255, 0, -1)) * 9,
    "numbers": b"[1, 2",
    "damaged": b"",  # a capture that was cut
    "folder": {},
    "model": {"config.json": b'{"model_type": "gpt3"}'},
    "weights": {"config.json": b"{", "model.safetensors": b"\0" * 64},
}
NOT_REFUSED = {  # texts in UTF-8, whatever they say
    ("capture a text file", "numbers"), ("capture a corpus", "numbers"),
    ("heads of a corpus", "numbers"),
}  # fmt: skip
CASES = [case for case in itertools.product(COMMANDS, FILES) if case not in NOT_REFUSED]


@pytest.fixture(scope="module")
def good(tmp_path_factory, capture):
    """Two tiny models, rows that they read, and the bytes of a capture."""
    folder = tmp_path_factory.mktemp("good")
    rows = folder / "rows.tsv"
    rows.write_text("sentence\tlabel\n" + "the cat sat\tfor\nun cat\tagainst\n" * 4)
    write_capture(folder / "whole.h5", capture)
    return {
        "CLASSIFIER": write_bert(folder / "bert"), "WRITER": write_gpt2(folder / "gpt2"),
        "ROWS": rows, "WHOLE": (folder / "whole.h5").read_bytes(),
    }  # fmt: skip


def test_there_are_as_many_cases_as_promised():
    assert len(CASES) >= 260


@pytest.mark.parametrize(("command", "name"), CASES)
def test_what_cannot_be_used_is_one_line(run, good, command, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = good["WHOLE"][:3000] if name == "damaged" else FILES[name]
    if isinstance(content, dict):
        (tmp_path / "bad").mkdir()
        for file, data in content.items():
            (tmp_path / "bad" / file).write_bytes(data)
    elif content is not None:
        (tmp_path / "bad").write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    words = COMMANDS[command].replace("BAD", "bad").split()
    code, out, error = run(*(good.get(word, word) for word in words))
    assert code in (1, 2) and not out, (code, out)
    assert error.count("\n") == 1 and "nobody foresaw" not in error, error
    sentences = re.split(r"(?<=[.?!]) (?=[A-Z`])", error.strip())
    assert len(sentences) <= code + 1, error
    assert sorted(tmp_path.rglob("*")) == before
