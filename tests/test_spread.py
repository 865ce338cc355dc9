"""Verbs whose work is cut into cells: the same numbers, gone on with, refused in one line."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import h5py
import numpy as np
import pytest

from hgviz import cluster, tasks
from hgviz.core import HeadId, HgvizError, finish
from hgviz.models import devices, open_model
from hgviz.store import open_study
from hgviz.tasks import lending, portions, spreading
from tests.models.building import write_checkpoint
from tests.store.test_study import same
from tests.test_cluster import serve
from tests.test_evaluate import classifier, rows
from tests.test_evaluate import run as run

NEEDS = {"gradient", "token_gradient", "loss_change", "change", "alone", "shapley"}
HERE = cluster.HERE  # cells in this process: what they do is the same anywhere


@pytest.fixture(scope="module")
def there(tmp_path_factory):
    """A scheduler with two workers, in processes of their own."""
    process, address = serve(tmp_path_factory.mktemp("there"))
    yield address
    process.communicate("")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two classifiers, a, b, and rows.tsv."""
    path = tmp_path_factory.mktemp("verbs")
    for seed, name in enumerate("ab"):
        classifier(path / name, n_heads=2, n_layers=2, d_model=16, seed=seed)
    rows(path, 130)
    return path


@pytest.fixture(autouse=True)
def finely(monkeypatch):
    """Every piece of work is a cell, computed with one thread, as it is without a scheduler."""
    monkeypatch.setattr(spreading, "SECONDS", 0.0)
    with devices.threads(1):
        yield
    lending.forget()


def spread_of(place, out, scheduler=HERE, models="a", **keys):
    origins = tuple(tasks.Origin(place / name, "cpu") for name in models)
    return tasks.Spread(scheduler, out, origins, place / "rows.tsv", **keys)


def trials_of(place, name="a", **keys):
    return finish(tasks.trials_of(open_model(place / name), place / "rows.tsv", **keys))


def unmade(study):
    """But for when it was made, and where it lies."""
    return replace(study, made=replace(study.made, created=""), path="")


def tree(path):
    """All that is in an HDF5 file, but for when it was made."""
    found = {}

    def see(name, one):
        attributes = {key: np.asarray(value).tobytes() for key, value in one.attrs.items()}
        found[name] = attributes, None if isinstance(one, h5py.Group) else one[...].tobytes()

    with h5py.File(path) as file:
        file.visititems(see)
    found.pop("made")
    return found


# --- the same numbers -----------------------------------------------------------------------------


def test_scores_of_workers_are_those_of_one_process(place, tmp_path, there):
    trials = trials_of(place, off=frozenset({HeadId(0, 1)}), limit=90)
    known = finish(tasks.importance(trials, NEEDS, "rows.tsv", 3, 2))
    spread = spread_of(place, tmp_path / "s.h5", there, limit=90)
    found = finish(tasks.spread_study(trials, NEEDS, spread, "rows.tsv", 3, 2))
    same(unmade(found), unmade(known))
    same(unmade(open_study(tmp_path / "s.h5")), unmade(known))
    assert not (tmp_path / "s.h5.part").exists()


def test_curves_of_workers_are_those_of_one_process(place, tmp_path, there):
    trials = trials_of(place)
    study = finish(tasks.importance(trials, {"gradient"}, "rows.tsv"))
    spread = spread_of(place, tmp_path / "s.h5", there, limit=len(study))
    known = found = study
    for method, how in (("michel", "one-shot"), ("michel", "iterative"), ("loo", "greedy")):
        options = (method, "flops", how, 20, 0)
        known = finish(tasks.curve(trials, known, *options))
        found = finish(tasks.spread_curve(trials, found, spread, *options))
    same(unmade(found), unmade(known))
    same(unmade(open_study(tmp_path / "s.h5")), unmade(known))
    assert len(found.curves) == 23 and not (tmp_path / "s.h5.part").exists()


def test_a_capture_by_workers_is_that_of_one_process(tmp_path, there):
    keys = {"vocab_size": 256, "d_model": 8, "n_heads": 2, "d_ff": 8, "hierarchy": "1@1 1@2 1@1"}
    folder = write_checkpoint(tmp_path / "model", **keys)
    corpus = tmp_path / "a.txt"
    corpus.write_text("\n".join(f"Text {number}, said {number} times." for number in range(18)))
    model = open_model(folder)
    finish(tasks.capture_corpus(model, corpus, tmp_path / "one.h5"))
    spread = tasks.Spread(there, tmp_path / "two.h5", (tasks.Origin(folder, "cpu"),), corpus)
    finish(tasks.capture_corpus(model, corpus, tmp_path / "two.h5", spread=spread))
    assert tree(tmp_path / "two.h5") == tree(tmp_path / "one.h5")
    assert not (tmp_path / "two.h5.part").exists()


def test_a_report_by_workers_is_that_of_one_process(place, tmp_path, there):
    models = open_model(place / "a"), open_model(place / "b")
    off = frozenset(models[1].spec.heads[:1])
    options = (place / "rows.tsv", "", "", "", off, 60, 3)
    known = finish(tasks.laboratory(*models, *options))
    spread = spread_of(place, tmp_path / "r.html", there, "ab", limit=60)
    sides = finish(tasks.spread_sides(*models, spread, off, report=True, texts=3))
    found = finish(tasks.laboratory(*models, *options, sides))
    assert json.dumps(found.facts()) == json.dumps(known.facts())
    np.testing.assert_array_equal(found.across, known.across)
    np.testing.assert_array_equal(found.b.at_scores, known.b.at_scores)
    sides.finish()
    assert not (tmp_path / "r.html.part").exists()


# --- gone on with ---------------------------------------------------------------------------------


def test_what_was_stopped_goes_on_without_measuring_again(place, tmp_path, monkeypatch):
    trials, spread = trials_of(place), spread_of(place, tmp_path / "s.h5")
    computed = []
    for name, work in portions.PORTIONS.items():

        def counting(folder, cell, _work=work):
            computed.append(cell.key)
            return (yield from _work(folder, cell))

        monkeypatch.setitem(tasks.cells.WORK, name, counting)
    task = tasks.spread_study(trials, {"gradient", "shapley"}, spread, permutations=3)
    while len(computed) < 4:
        next(task)
    task.close()
    assert not (tmp_path / "s.h5").exists() and (tmp_path / "s.h5.part").is_dir()
    with pytest.raises(HgvizError, match="cannot be opened"):
        tasks.info(tmp_path / "s.h5.part")
    study = finish(tasks.spread_study(trials, {"gradient", "shapley"}, spread, permutations=3))
    assert len(computed) == 1 + len(set(computed))  # the one that was under way
    same(unmade(study), unmade(finish(tasks.importance(trials, {"gradient", "shapley"},
                                                       permutations=3))))  # fmt: skip
    more = finish(tasks.spread_study(trials, {"shapley"}, spread, permutations=4))
    assert len(set(computed)) == 9 and len(more.shapley) == 4


def test_results_that_were_damaged_are_measured_again(place, tmp_path):
    trials, spread = trials_of(place), spread_of(place, tmp_path / "s.h5")
    task = tasks.spread_study(trials, {"gradient"}, spread)
    while not (kept := list(tmp_path.glob("s.h5.part/cells/*/*.npz"))):
        next(task)
    next(task)
    task.close()
    kept[0].write_bytes(b"nothing of the kind")
    with pytest.raises(HgvizError, match="is damaged.*Run the same command again"):
        finish(tasks.spread_study(trials, {"gradient"}, spread))
    assert finish(tasks.spread_study(trials, {"gradient"}, spread)).answered.all()


def test_unfinished_work_of_something_else_is_not_mixed(place, tmp_path):
    out = tmp_path / "s.h5"
    task = tasks.spread_study(trials_of(place), {"gradient"}, spread_of(place, out))
    while not [one for one in tmp_path.glob("s.h5.part/cells/*/*.json") if "." not in one.stem]:
        next(task)
    task.close()
    with pytest.raises(HgvizError, match="unfinished work of another model"):
        other = trials_of(place, "b"), {"gradient"}, spread_of(place, out, models="b")
        finish(tasks.spread_study(*other))
    with pytest.raises(HgvizError, match="unfinished work of another set of heads"):
        off = frozenset(open_model(place / "a").spec.heads[:1])
        finish(tasks.spread_study(trials_of(place, off=off), {"gradient"}, spread_of(place, out)))
    anew = spread_of(place, out, models="b", force=True)
    found = finish(tasks.spread_study(trials_of(place, "b"), {"gradient"}, anew))
    assert found.spec.name == "b"


def test_a_cell_that_fails_three_times_says_why(place, tmp_path, monkeypatch):
    def fail(folder, cell):
        yield from ()
        raise HgvizError("the moon is full", "wolves howl", "Wait")

    monkeypatch.setitem(tasks.cells.WORK, "importance", fail)
    with pytest.raises(HgvizError) as error:
        finish(tasks.spread_study(trials_of(place), {"gradient"}, spread_of(place, tmp_path / "s")))
    said = " ".join(error.value.lines)
    assert "part 1 of" in said and "The moon is full. Wolves howl. Wait." in said
    monkeypatch.undo()
    found = finish(
        tasks.spread_study(trials_of(place), {"gradient"}, spread_of(place, tmp_path / "s"))
    )
    assert found.answered.all()


def test_a_model_that_changes_under_the_work_is_noticed(place, tmp_path):
    trials, spread = trials_of(place), spread_of(place, tmp_path / "s.h5")
    other = replace(spread, models=(tasks.Origin(place / "b", "cpu"),))
    with pytest.raises(HgvizError, match="has changed since the work began"):
        finish(tasks.spread_study(trials, {"gradient"}, other))


# --- one model, many cells ------------------------------------------------------------------------


def test_a_model_is_opened_once_for_many_cells(place, tmp_path, monkeypatch):
    import hgviz.models

    opened = []

    def counting(path, *how, _open=hgviz.models.open_model, **keys):
        opened.append(str(path))
        return _open(path, *how, **keys)

    trials = trials_of(place)
    monkeypatch.setattr(hgviz.models, "open_model", counting)
    finish(tasks.spread_study(trials, {"gradient"}, spread_of(place, tmp_path / "s.h5")))
    assert opened == [str(place / "a")]


def test_few_things_are_kept():
    made = []
    for key in (1, 2, 1, 3, 1, 2):
        lending.kept("number", 2, key, lambda key=key: made.append(key))
    assert made == [1, 2, 3, 2]


# --- refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments,said",
    [
        (("importance", "a", "--data", "none.tsv", "-o", "s.h5"), "none.tsv"),
        (("importance", "a", "--data", "rows.tsv", "-o", "s.h5", "--off", "*.*"), "head"),
        (("importance", "c", "--data", "rows.tsv", "-o", "s.h5"), "c"),
        (("curve", "s.h5", "a", "--data", "rows.tsv"), "s.h5"),
        (("compare", "a", "b", "--data", "none.tsv", "-o", "o.json"), "none.tsv"),
        (("compare", "a", "c", "--data", "rows.tsv", "-o", "o.json"), "c"),
        (("capture", "a", "--corpus", "none.txt", "-o", "o.h5"), "none.txt"),
        (("capture", "a", "--corpus", "rows.tsv", "-o", "o.h5", "--off", "9.9"), "9.9"),
    ],
)
def test_bad_input_is_one_line_before_a_cluster_is_asked(run, place, monkeypatch, arguments, said):
    monkeypatch.chdir(place)
    monkeypatch.setattr(cluster, "_client", None)  # a call of it would be a traceback
    plain = run(*arguments)
    code, out, err = run(*arguments, "--scheduler", "local:2")
    assert (code, out, err) == plain and code == 1 and err.count("\n") == 1 and said in err
    assert not list(place.glob("*.part"))


def test_what_is_no_scheduler_is_said_first(run, place, monkeypatch):
    monkeypatch.chdir(place)
    asked = ("importance", "none", "--data", "none", "-o", "s.h5", "--scheduler")
    for scheduler in ("nonsense", "local:0"):
        code, out, err = run(*asked, scheduler)
        assert code == 1 and not out and "there is no scheduler" in err.lower()
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run(*asked, "local:2")
    assert code == 1 and "pip install 'hgviz[cluster]'" in err


def test_a_scheduler_that_is_not_there_is_one_line(run, place, tmp_path):
    asked = ("importance", place / "a", "--data", place / "rows.tsv", "-o", tmp_path / "s.h5")
    code, out, err = run(*asked, "--scheduler", "tcp://127.0.0.1:9")
    assert code == 1 and not out and err.count("\n") == 1 and "tcp://127.0.0.1:9" in err
    assert not list(tmp_path.iterdir())


def test_a_scheduler_needs_many_texts_or_a_place_for_results(run, place):
    for arguments in (
        ("capture", place / "a", "--text", "A text.", "-o", place / "o.h5"),
        ("compare", place / "a", place / "b", "--data", place / "rows.tsv"),
        ("compare", place / "a", place / "b", "--text", "A text.", "-o", place / "o.json"),
    ):
        code, _, err = run(*arguments, "--scheduler", "local:2")
        assert code == 2 and "--scheduler goes with" in " ".join(err.split())
