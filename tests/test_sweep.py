"""Study files, what is told of wrong ones, and cells."""

import pytest

from hgviz.core import HgvizError
from hgviz.sweep import Cell, Source, needed_first, read_study_file

MODEL = '[[models]]\nname = "a"\ncheckpoint = "sample/softmax"\n'
DATA = '[[data]]\nvalid = "rows.tsv"\n'


def read(tmp_path, content):
    path = tmp_path / "study.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_study_file(path)


def test_a_study_file_says_what_is_left_out(tmp_path):
    asked = read(tmp_path, MODEL + DATA)
    assert asked.asks == ("score",) and asked.seeds == (0,) and asked.activations == ("",)
    assert asked.data == (Source("rows.tsv"),) and asked.threads == 1 and not asked.title


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "models"), (b"\x89PNG\r\n\x1a\n\0\0", "is not a study file"), (MODEL, "data"),
        (DATA, "models"), ("models = []\n" + DATA, r"no \[\[models\]\]"),
        ("data = []\n" + MODEL, r"no \[\[data\]\]"), ("[[models", "is not a study file"),
        ("seed = 1\n" + MODEL + DATA, "seed"), (MODEL + DATA + 'file = "x"', "file"),
        (MODEL + "[[data]]\n", "valid"), ("models = 3\n" + DATA, "models"),
        ("[[models]]\ncheckpoint = 'x'\n" + DATA, "needs a name"),
        ("[[models]]\nname = ''\n" + DATA, "needs a name"),
        (MODEL + MODEL + DATA, r"two of \[\[models\]\] have one name"),
        (MODEL + DATA + DATA, r"two of \[\[data\]\] have one name"),
        ("asks = []\n" + MODEL + DATA, "asks is empty"),
        ("asks = ['guess']\n" + MODEL + DATA, "guess"),
        ("asks = ['curve']\n" + MODEL + DATA, "curves need methods"),
        ("asks = ['compare']\n" + MODEL + DATA, "at least two activations"),
        ("seeds = []\n" + MODEL + DATA, "seeds is empty"),
        ("seeds = [1, 1]\n" + MODEL + DATA, "a seed stands twice"),
        ("seeds = [-1]\n" + MODEL + DATA, "seeds are numbers from 0 on"),
        ("seeds = [1.5]\n" + MODEL + DATA, "seeds"),
        ("activations = []\n" + MODEL + DATA, "activations is empty"),
        ("activations = ['ymish', 'ymish']\n" + MODEL + DATA, "activation stands twice"),
        ("methods = ['loo', 'loo']\n" + MODEL + DATA, "a method stands twice"),
        ("threads = 0\n" + MODEL + DATA, "threads begin at 1"),
        (MODEL + DATA + "[curve]\npoints = 1\n", "too small a number"),
        (MODEL + DATA + "[curve]\nbudgets = [1.5]\n", "budgets are shares"),
        (MODEL + DATA + "[curve]\nbudgets = [nan]\n", "budgets are shares"),
        ("seeds = 3\n" + MODEL + DATA, "seeds: expected a list in brackets, got a whole number"),
        ("asks = ['scoer']\n" + MODEL + DATA, "asks cannot be 'scoer'. Choose among score, curve"),
        (MODEL + DATA + "[curve]\nstep = 1\n", r"\[curve\] has no key step. Its keys.*points"),
        ("device = 'cpu'\nmethod = []\n" + MODEL + DATA, "no key method. Its keys.*methods"),
        (b"\xff\xfe\0", "it is not text|It is not text"),
        ("a = " + "[" * 5000 + "]" * 5000, "is not a study file"),
        ("#" * (1 << 20) + "\n" + MODEL + DATA, "longer than 1 MB"),
    ],
)  # fmt: skip
def test_every_mistake_of_a_study_file_is_one_clear_line(tmp_path, content, why):
    with pytest.raises(HgvizError, match=why) as told:
        read(tmp_path, content)
    assert "\n" not in str(told.value)


def test_a_study_file_that_is_not_there_or_a_folder_is_told(tmp_path):
    with pytest.raises(HgvizError, match="No such file"):
        read_study_file(tmp_path / "no.toml")
    with pytest.raises(HgvizError, match="cannot read"):
        read_study_file(tmp_path)


def test_the_key_of_a_cell_is_of_what_decides_its_result():
    one = Cell("score", {"a": 1, "b": 2}, (), {"data": "/here"}, {"seed": "1"})
    assert one.key == Cell("score", {"b": 2, "a": 1}, (), {"data": "/there"}).key
    assert len({one.key, Cell("score", {"a": 1}).key, Cell("train", {"a": 1, "b": 2}).key}) == 3
    assert one.key != Cell("score", {"a": 1, "b": 2}, ("0" * 24,)).key
    assert one.label == "score: seed 1"
    with pytest.raises(ValueError, match="JSON"):
        Cell("score", {"a": float("nan")})


def test_cells_that_others_need_come_before_them_and_each_once():
    first = Cell("a", {})
    second = Cell("b", {}, (first.key,))
    third = Cell("c", {}, (second.key, first.key))
    assert needed_first([third, second, first, third]) == (first, second, third)


def test_too_many_cells_are_told(monkeypatch):
    monkeypatch.setattr("hgviz.sweep.MOST_CELLS", 2)
    with pytest.raises(HgvizError, match="has 3 cells.*at most 2"):
        needed_first([Cell("a", {"n": n}) for n in range(3)])
