"""Study files: those of the pages can be planned, and what is misspelt shows before a training."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hgviz.cli import Window, main
from hgviz.core import HgvizError, finish
from hgviz.resources import resource
from hgviz.store.sweep import SweepFolder
from hgviz.sweep import read_study_file
from hgviz.tasks.cells import WORK
from hgviz.tasks.concluding import conclude
from hgviz.tasks.planning import plan
from tests.test_study_pages import study

KEPT = Path(__file__).parents[1] / "docs" / "studies"
FILES = sorted(KEPT.glob("*.toml"))
ROWS = "sentence\tlabel\ngood\t1\nbad\t0\n"


def hgviz(*words):
    """What a command says at its end."""
    return main([str(one) for one in words], Window(lambda path: 1, lambda: 1))


def numbers_of(text):
    """All numbers of a text."""
    return [float(one) for one in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)]


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


def test_the_files_that_the_page_shows_can_be_planned(beside):
    page = (KEPT.parent / "studies.md").read_text("utf-8")
    shown = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    file, counts = beside / "study.toml", []
    for text in shown:
        file.write_text(text)
        counts.append(len(finish(plan(read_study_file(file), beside))))
    # two models: a score, which no seed changes; three seeds of each: two measurements, two curves
    # and random orders. One that is trained: three seeds of two activations, and their comparison
    assert counts == [2 + 2 * 3 * 5, 3 * (2 * 2 + 1)]


def test_a_model_may_have_a_recipe_of_its_own(beside):
    text = (KEPT / "which-activation.toml").read_text("utf-8")
    file = beside / "study.toml"
    own = "segments = 0\n[models.recipe]\nrate = 5e-4\n"
    file.write_text(text.replace("segments = 0\n", own, 1))
    cells = finish(plan(read_study_file(file), beside))
    rates = {one.place["model"]: one.given["plan"]["recipe"]["rate"]
             for one in cells if one.work == "train"}  # fmt: skip
    assert rates == {"width 24": 5e-4, "width 48": 2e-3, "width 96": 2e-3}


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
        ("d_model", "d_modle", "2x6 of this study cannot be trained. hgviz knows no d_modle"),
        ('"bert"', '"brt"', "family: it is 'brt'"),
        ("n_heads = 6", "n_heads = 5", "48 / 5 is not a whole number"),
        ("steps", "stepz", "unknown field `stepz` - at `$.recipe`"),
        ("points", "pionts", "[curve] has no key pionts"),
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


def test_what_is_right_as_often_is_equal_though_shares_are_kept_as_float32():
    """Ties of the test of signs: a noise of 1e-8 would make its p too small."""
    known = study("which-score")

    def coarse(one):
        if one.cell.work != "curve":
            return one
        curves = [
            row | {"values": np.array(row["values"], np.float32).astype(float).tolist()}
            for row in one.found["curves"]
        ]
        return replace(one, found={**one.found, "curves": curves})

    noisy = replace(known, standings=tuple(map(coarse, known.standings)))
    pairs = zip(conclude(noisy).beside, conclude(known).beside, strict=True)
    assert all(one.p == other.p for one, other in pairs)


OF_A_SAMPLE = """
[[models]]
name = "small"
checkpoint = "{checkpoint}"
[[data]]
valid = "rows.tsv"
{more}
"""


def asked_of(folder, checkpoint="sample/softmax", more=""):
    """A study file of a checkpoint, with rows beside it, planned."""
    (folder / "rows.tsv").write_text(ROWS)
    file = folder / "study.toml"
    file.write_text(OF_A_SAMPLE.format(checkpoint=checkpoint, more=more))
    return finish(plan(read_study_file(file), folder))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("[recipe]\nstepz = 3", "[recipe] of this study cannot be used. .*unknown field `stepz`"),
        ("[recipe]\nsteps = 3\nrate = -1.0", "recipe.rate and recipe.clip are numbers above 0"),
        ("[recipe]\nminutes = 3", "does not train for minutes"),
        ('[tokenizer]\nkind = "letters"', r"\[tokenizer\] of this study cannot be used"),
    ],
)
def test_what_nobody_trains_by_is_checked_all_the_same(more, said, tmp_path):
    with pytest.raises(HgvizError) as caught:
        asked_of(tmp_path, more=more)
    assert re.search(said.replace("[recipe]", r"\[recipe\]"), " ".join(caught.value.lines))
    assert len(asked_of(tmp_path, more="[recipe]\nsteps = 3")) == 1


@pytest.mark.parametrize("name", ["label_column", "text_column"])
def test_a_column_that_is_not_there_is_said_before_anything_runs(name, tmp_path):
    with pytest.raises(HgvizError, match="rows.tsv has no column 'lable'") as caught:
        asked_of(tmp_path, more=f'{name} = "lable"')
    assert "\n" not in str(caught.value)
    for column in ("label", "1"):
        assert len(asked_of(tmp_path, more=f'label_column = "{column}"\ntext_column = "0"')) == 1


def test_columns_of_what_models_are_trained_on_are_looked_for_too(beside):
    text = (KEPT / "which-score.toml").read_text("utf-8")
    file = beside / "study.toml"
    (beside / "dev.tsv").write_text(ROWS.replace("label", "mood"))
    file.write_text(text.replace("[[data]]", '[[data]]\nlabel_column = "mood"'))
    with pytest.raises(HgvizError, match="train.tsv has no column 'mood'"):
        finish(plan(read_study_file(file), beside))


def test_models_that_differ_in_their_tokenizer_alone_share_no_cell(tmp_path):
    for name in ("one", "other"):
        shutil.copytree(resource("sample/softmax"), tmp_path / name)
    keys = [asked_of(tmp_path, one)[0].key for one in ("sample/softmax", "one", "other")]
    assert len(set(keys)) == 1  # the same model, wherever it lies
    words = tmp_path / "other" / "tokenizer.json"
    told = json.loads(words.read_text("utf-8"))
    told["normalizer"] = None if told["normalizer"] else {"type": "Lowercase"}
    words.write_text(json.dumps(told))
    (changed,) = asked_of(tmp_path, "other")
    assert changed.key != keys[0]
    folder = SweepFolder(tmp_path / "out")
    folder.write_plan((tmp_path / "study.toml").read_text("utf-8"), [changed])
    shutil.copy(tmp_path / "one" / "tokenizer.json", words)  # it is another one by then
    with pytest.raises(HgvizError, match="has changed since the study was planned"):
        finish(WORK["score"](folder, changed))
