"""Floats printed in bulk, as one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from minutch.hadoop.formats.javafloats import float_texts
from minutch.hadoop.formats.javahash import float_to_string


def one_by_one(values: np.ndarray) -> list[str]:
    return [float_to_string(float(value)) for value in values]


@given(arrays.arrays(np.uint32, st.integers(0, 50)))
def test_any_bits(bits: np.ndarray) -> None:
    values = bits.view(np.float32)
    assert float_texts(values) == one_by_one(values)


@given(arrays.arrays(np.float32, st.integers(0, 50), elements=st.floats(0, 1e8, width=32)))
def test_scores(values: np.ndarray) -> None:
    assert float_texts(values) == one_by_one(values)


def test_many_of_every_size() -> None:
    random = np.random.default_rng(1)
    values = (random.random(4000) * 10.0 ** random.integers(-9, 12, 4000)).astype(np.float32)
    assert float_texts(values) == one_by_one(values)
