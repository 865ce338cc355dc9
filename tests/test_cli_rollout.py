"""hgviz rollout and hgviz figure --kind rollout with every option, and what cannot be."""

import numpy as np
import pytest

from hgviz import cli
from hgviz.analysis.resolution import rollout
from hgviz.core import HeadId
from hgviz.recipe import Recipe
from hgviz.store import write_capture


@pytest.fixture
def run(capfd):
    """Run a command line; gives exit code, standard output and standard error."""

    def call(*arguments):
        code = cli.main([str(one) for one in arguments], cli.Window(lambda _: 0, lambda: 0))
        return code, *capfd.readouterr()

    return call


@pytest.fixture(scope="module")
def saved(capture, tmp_path_factory):
    path = tmp_path_factory.mktemp("rollout") / "saved.h5"
    write_capture(path, capture)
    return path


@pytest.mark.parametrize(
    ("words", "recipe"),
    [
        ((), Recipe()),
        (("--fuse", "max", "--residual", "0.2"), Recipe("max", residual=0.2)),
        (("--heads", "0.1"), Recipe(heads=(HeadId(0, 1),))),
        (("--nothing",), Recipe(nothing=True)),
        (("--signed",), Recipe(signed=True)),
    ],
)
def test_options_are_those_of_the_composition(run, saved, capture, tmp_path, words, recipe):
    out = tmp_path / "r.npy"
    assert run("rollout", saved, *words, "-o", out)[0] == 0
    np.testing.assert_allclose(np.load(out), rollout(capture, recipe=recipe), atol=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--residual", "2"), 1, "It is a part of it"),
        (("--signed", "--fuse", "min"), 1, "does not go with"),
        (("--heads", "99.0"), 1, "no head 99.0"),
        (("--heads", "x"), 1, "does not name a head"),
    ],
)
def test_what_cannot_be_is_one_clear_line(run, saved, tmp_path, words, code, said):
    out = tmp_path / "r.npy"
    found, _, error = run("rollout", saved, *words, "-o", out)
    assert found == code and said in error and "Traceback" not in error and not out.exists()
    assert len(error.strip().splitlines()) == 1


def test_a_figure_takes_the_same_options(run, saved, tmp_path):
    out = tmp_path / "r.svg"
    words = ("--fuse", "min", "--residual", "0.9", "--query", "5")
    code, said, _ = run("figure", saved, "--kind", "rollout", *words, "-o", out)
    assert code == 0 and "all maps composed" in said
    assert "smallest of the heads, 90 % residual" in out.read_text("utf-8")
