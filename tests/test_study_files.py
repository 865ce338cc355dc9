"""Study files: those of the pages can be planned, and what is misspelt shows before a training."""

from __future__ import annotations

from pathlib import Path

import pytest

from hgviz.core import HgvizError, finish
from hgviz.sweep import read_study_file
from hgviz.tasks.planning import plan

KEPT = Path(__file__).parents[1] / "docs" / "studies"
FILES = sorted(KEPT.glob("*.toml"))
ROWS = "sentence\tlabel\ngood\t1\nbad\t0\n"


@pytest.fixture
def beside(tmp_path):
    """A folder with the data that the study files ask for beside them."""
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_study_file_of_the_pages_can_be_planned(file, beside):
    asked = read_study_file(file)
    cells = finish(plan(asked, beside))
    trained = [one for one in cells if one.work == "train"]
    models = len(asked.models) * len(asked.seeds) * len(asked.activations) * len(asked.data)
    assert len(trained) == (0 if "checkpoint" in asked.models[0] else models)
    assert len({one.key for one in cells}) == len(cells)
    assert asked.title and asked.question


def test_a_study_of_gpus_can_be_planned_where_there_is_none(beside):
    text = (KEPT / "which-score.toml").read_text("utf-8")
    file = beside / "study.toml"
    file.write_text('device = "cuda"\n' + text)
    first, *_ = finish(plan(read_study_file(file), beside))
    assert first.given["plan"]["recipe"]["device"] == "cuda"
    file.write_text('device = "auto"\n' + text)
    with pytest.raises(HgvizError, match="device is one of cpu, cuda, mps"):
        read_study_file(file)


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("d_model", "d_modle", "2x6 of this study cannot be trained. Hgviz knows no d_modle"),
        ('"bert"', '"brt"', "family: it is 'brt'"),
        ("n_heads = 6", "n_heads = 5", "48 / 5 is not a whole number"),
        ("steps", "stepz", "unknown field `stepz` - at `$.recipe`"),
        ("points", "pionts", "unknown field `pionts` - at `$.curve`"),
        ('"michel"', '"mitchel"', "'mitchel' is no method"),
        ("train.tsv", "trian.tsv", "trian.tsv"),
    ],
)
def test_what_is_misspelt_shows_before_anything_is_trained(right, wrong, said, beside):
    file = beside / "study.toml"
    file.write_text((KEPT / "which-score.toml").read_text("utf-8").replace(right, wrong))
    with pytest.raises(HgvizError) as caught:
        finish(plan(read_study_file(file), beside))
    assert said in " ".join(caught.value.lines)
