"""Exponentials by either way."""

import numpy as np
import pytest

from hgviz.maps import tiles as module
from hgviz.maps.tiles import exponential


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("dtype,error", [("float32", 1.3e-7), ("float64", 3e-16)])
def test_weights_are_as_exact_as_their_numbers(monkeypatch, fast, dtype, error):
    monkeypatch.setattr(module, "_has_fast_powers_of_2", lambda: fast)
    logs = -np.linspace(0, 90, 100_003).astype(dtype)
    exact = np.exp(logs.astype(np.longdouble))
    found = exponential(logs)
    assert found.dtype == dtype and np.abs(found - exact).max() < error
    seen = exact > 1e-30
    assert (np.abs(found / exact - 1)[seen] < 40 * error).all()


@pytest.mark.parametrize("fast", [False, True])
def test_bits_do_not_depend_on_where_a_number_lies(monkeypatch, fast):
    monkeypatch.setattr(module, "_has_fast_powers_of_2", lambda: fast)
    logs = -np.random.default_rng(0).random((64, 256)).astype(np.float32) * 20
    whole, room = exponential(logs), np.empty((64, 700), np.float32)
    assert (exponential(logs, out=room[:, 3:259]) == whole).all()
    assert (np.array([exponential(one) for one in logs[:, 5:18]]) == whole[:, 5:18]).all()
    assert (whole == exponential(logs.T.copy()).T).all() and exponential(logs, out=logs) is logs


@pytest.mark.parametrize("fast", [False, True])
def test_ends_are_those_of_exp(monkeypatch, fast):
    monkeypatch.setattr(module, "_has_fast_powers_of_2", lambda: fast)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = exponential(np.array([-np.inf, -200, 0, np.inf, np.nan], np.float32))
    np.testing.assert_array_equal(found, [0, 0, 1, np.inf, np.nan])
