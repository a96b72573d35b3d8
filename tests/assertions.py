"""Comparisons that say where two things differ."""

import numpy as np


def assert_same(a, b, path=""):
    """Nested dicts and sequences of arrays are equal, bit by bit."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            assert_same(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{path}/{i}")
    else:
        np.testing.assert_array_equal(a, b, err_msg=path)
