"""Maximum flow against networkx and scipy, on any graph and on whole models."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from hgviz.analysis import network
from hgviz.analysis.flow import Edges, Graph, flow
from hgviz.analysis.network import attention_flow
from hgviz.analysis.resolution import rollout
from hgviz.core import HgvizError, finish, replace
from hgviz.recipe import Recipe
from tests.analysis.planting import hourglass, letters, plant, translated
from tests.analysis.test_recipe import dense, fused
from tests.analysis.test_resolution import pool_matrix, rn, shift_matrix, spread_matrix

TEXT = "The hourglass was used at sea. When the sand had run down, the bell was rung."
FINE = 2.0**28  # capacities are made whole numbers of this


def drawn(random, layers, most):
    """A graph of layers, some edges missing, one that skips all layers."""
    sizes = [int(one) for one in random.integers(1, most, size=layers + 1)]
    edges = []
    for at in range(layers):
        raw = random.gamma(0.3, size=(sizes[at + 1], sizes[at]))
        edges.append(Edges(at + 1, at, raw * (random.random(raw.shape) < 0.6)))
    edges.append(Edges(layers, 0, 0.1 * random.random((sizes[-1], sizes[0]))))
    return Graph(tuple(sizes), tuple(edges))


def numbered(graph):
    """A square matrix of all capacities, and where each group begins in it."""
    starts = np.concatenate([[0], np.cumsum(graph.sizes)])
    whole = np.zeros((starts[-1], starts[-1]))
    for one in graph.edges:
        rows, columns = one.capacity.shape
        at = starts[one.start], starts[one.end]
        whole[at[0] : at[0] + rows, at[1] : at[1] + columns] += one.capacity
    return whole, starts


@pytest.mark.parametrize("seed", range(12))
def test_any_flow_is_that_of_scipy_and_obeys_the_cut(seed):
    random = np.random.default_rng(seed)
    layers = int(random.integers(1, 6))
    graph = drawn(random, layers, 9)
    whole, starts = numbered(graph)
    whole = np.round(whole * FINE)
    exact = Graph(graph.sizes, tuple(_whole(one) for one in graph.edges))
    for sink in range(graph.sizes[0]):
        wanted = maximum_flow(csr_array(whole.astype(np.int32)), int(starts[layers]), sink)
        found = flow(exact, (layers, 0), (0, sink))
        assert found == pytest.approx(wanted.flow_value / FINE, abs=1e-9)


def _whole(edges):
    return Edges(edges.start, edges.end, np.round(edges.capacity * FINE) / FINE)


def test_a_flow_has_to_give_way_to_be_largest():
    # greedy pushing fills b -> t first; the best way sends a's unit around it
    first = np.array([[1.0, 1.0]])  # s -> a, b
    second = np.array([[1.0, 0.0], [1.0, 1.0]])  # a -> c; b -> c, d
    third = np.array([[1.0], [1.0]])  # c, d -> t
    graph = Graph((1, 2, 2, 1), (Edges(3, 2, first), Edges(2, 1, second), Edges(1, 0, third)))
    assert flow(graph, (3, 0), (0, 0)) == pytest.approx(2.0)


def test_nothing_flows_where_there_is_no_way():
    graph = Graph((2, 1), (Edges(1, 0, np.array([[1.0, 0.0]])),))
    assert flow(graph, (1, 0), (0, 1)) == 0
    assert flow(graph, (1, 0), (0, 0)) == 1
    assert flow(graph, (1, 0), (1, 0)) == np.inf


# --- whole models ---------------------------------------------------------------------------------


def networkx_flow(graph, row, column):
    found = networkx.DiGraph()
    found.add_nodes_from([row, column])
    for (start, end), capacity in graph.items():
        for i, j in np.argwhere(capacity > 1e-9):
            found.add_edge((start, int(i)), (end, int(j)), capacity=round(capacity[i, j] * FINE))
    return networkx.maximum_flow_value(found, row, column) / FINE


def written_out(capture, recipe):
    """The graph of an Hourglass of two levels, sum by sum, by the names of its layers."""
    spec, n = capture.spec, len(capture.prompt)
    maps = {layer.name: fused(capture, layer, recipe) for layer in spec.layers}
    a, b, k = recipe.residual, 1 - recipe.residual, spec.levels[1].stride
    padded = -(-n // k) * k
    e, s = np.eye(padded, n), shift_matrix(padded, spec.levels[1].shift)
    p, u, eye = pool_matrix(padded, k), spread_matrix(padded, k), np.eye(n)
    down, up = maps.get("down.0"), maps.get("up.0")
    short = rn(p @ s @ e) if down is None else rn((a * p + b * down) @ s @ e)
    graph = {
        ("pre", "in"): b * maps["pre.0.0"] + a * eye,
        ("short", "pre"): short,
        ("mid", "short"): b * maps["middle.0"] + a * np.eye(padded // k),
        ("sum", "pre"): a * eye,
        ("sum", "mid"): b * u[:n],
    }
    last = "sum"
    if up is not None:
        graph |= {("up", "sum"): a * eye, ("up", "mid"): b * up[:n]}
        last = "up"
        if spec.form == "official":
            graph |= {("again", "up"): b * eye, ("again", "pre"): a * eye}
            last = "again"
    return graph | {("out", last): b * maps["post.0.0"] + a * eye}


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(residual=0.2, fuse="max")], ids=str)
@pytest.mark.parametrize("form", ["official", "windowed"])
@pytest.mark.parametrize(
    ("down", "up", "causal"), [(True, True, True), (False, False, True), (True, True, False)]
)
def test_the_flow_of_an_hourglass_is_that_of_its_graph(form, down, up, causal, recipe):
    n = 11
    capture = hourglass(letters(TEXT[:n]), (1, 3), form=form, down=down, up=up, causal=causal)
    graph, row = written_out(capture, recipe), 8
    found = finish(attention_flow(capture, (row, row + 1), recipe))[0]
    wanted = [networkx_flow(graph, ("out", row), ("in", column)) for column in range(n)]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert not causal or not found[row + 1 :].any()


def test_the_flow_of_a_plain_stack_is_that_of_its_layers():
    random = np.random.default_rng(3)
    maps = [random.dirichlet(np.full(7, 0.4), size=(2, 7)) for _ in range(3)]
    capture = plant(letters(TEXT[:7]), maps, causal=False)
    graph = {
        (at + 1, at): (one.astype(np.float32).mean(0) + np.eye(7)) / 2
        for at, one in enumerate(maps)
    }
    found = finish(attention_flow(capture, (2, 5)))
    for place, row in enumerate(range(2, 5)):
        wanted = [networkx_flow(graph, (3, row), (0, column)) for column in range(7)]
        np.testing.assert_allclose(found[place], wanted, atol=1e-6)


def test_a_decoder_flows_into_both_texts():
    capture = translated(letters(TEXT[:5]), letters(TEXT[:4]))
    found = finish(attention_flow(capture, (2, 3)))[0]
    graph = {}
    source, target = 0, "t0"
    for layer in capture.spec.layers:
        weights = fused(capture, layer, Recipe()) / 2
        if layer.level == 0:
            graph[source + 1, source] = weights + np.eye(5) / 2
            source += 1
            continue
        after = f"{target}+"
        if layer.role == "cross":
            graph[after, source] = weights
            graph[after, target] = np.eye(4) / 2
        else:
            graph[after, target] = weights + np.eye(4) / 2
        target = after
    wanted = [networkx_flow(graph, (target, 2), (0, j)) for j in range(5)]
    wanted += [networkx_flow(graph, (target, 2), ("t0", j)) for j in range(4)]
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_three_levels_flow_wherever_the_rollout_leads():
    capture = hourglass(letters(TEXT[:23]), (1, 2, 6))
    found = finish(attention_flow(capture, (20, 21)))[0]
    composed = rollout(capture, (20, 21))[0]
    assert ((found > 0) == (composed > 0)).all() and (found <= 1).all()
    # a sum of ways is at most what all of them take together
    assert (found >= composed - 1e-6).all()
    np.testing.assert_allclose(dense(capture, Recipe())[20], composed, atol=1e-6)


def test_what_comes_first_does_not_depend_on_what_comes_after():
    long = hourglass(letters(TEXT[:24]), (1, 2, 4))
    cut = replace(
        long, prompt=letters(TEXT[:12]), spans=tuple(one[: 12 // s] for one, s in
        zip(long.spans, (1, 2, 4), strict=True)),
        maps=tuple(replace(m, weights=m.weights[:, : m.shape[1] // 2, : m.shape[2] // 2])
                   for m in long.maps),
    )  # fmt: skip
    whole, part = (finish(attention_flow(one, (9, 10)))[0] for one in (long, cut))
    np.testing.assert_allclose(whole[:12], part, atol=1e-6)


def test_the_first_row_grows_and_what_is_not_known_yet_is_no_number():
    capture = hourglass(letters(TEXT[:8]), (1, 2))
    seen = [int(np.isfinite(one.value).sum()) for one in attention_flow(capture, (7, 8))]
    assert seen == list(range(8))


def test_flows_that_cannot_be_are_said_in_a_line(monkeypatch):
    capture = hourglass(letters(TEXT[:24]), (1, 2))
    with pytest.raises(HgvizError, match="signed product"):
        finish(attention_flow(capture, (0, 1), Recipe(signed=True)))
    with pytest.raises(HgvizError, match="rows"):
        finish(attention_flow(capture, (0, 99)))
    monkeypatch.setattr(network, "MOST", 10)
    with pytest.raises(HgvizError, match="Ask for an earlier token"):
        finish(attention_flow(capture, (20, 21)))
    assert finish(attention_flow(capture, (8, 9)))[0, 10:].sum() == 0
