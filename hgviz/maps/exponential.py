"""Exponentials of tiles, in the fastest way that numpy has on this machine."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BITS = np.float32(1 / np.log(2))


def exponential(logs: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
    """e to some powers, as powers of 2 where these are faster.

    The product with 1 / log 2 is rounded, by which a weight e^-x is off by x e^-x 2^-24 at most:
    all in all half of what numpy's own exp is off.
    """
    found: NDArray[Any]
    if logs.dtype == np.float32 and _has_fast_powers_of_2():
        found = np.multiply(logs, _BITS, out=out)
        np.exp2(found, out=found)
    else:
        found = np.exp(logs, out=out)
    return found


@cache
def _has_fast_powers_of_2() -> bool:
    """Whether numpy takes float32 exp2 from Intel's vector library, as its builds for Linux do with
    AVX-512: with the product, two thirds of the time of exp. Elsewhere exp2 goes one by one.
    """
    if sys.platform != "linux":
        return False
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # before numpy 2.2
        return False
    kinds = opt_func_info(func_name="^exp2$", signature="float32").get("exp2", {})
    return any(one["current"] in ("AVX512_SKX", "X86_V4") for one in kinds.values())
