"""A function in several processes: what it raises says where."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minutch.errors import StoreError
from minutch.work.engine.pool import mapped


def fail_at_two() -> Callable[[int], int]:
    def function(number: int) -> int:
        if number == 2:
            raise KeyError(number)
        return number

    return function


def refuse() -> Callable[[int], int]:
    raise StoreError("no such folder: crawl")


def test_a_fault_comes_with_the_way_to_it() -> None:
    with pytest.raises(KeyError) as raised:
        list(mapped(fail_at_two, range(9), processes=2))
    assert "in function\n    raise KeyError(number)" in raised.value.__notes__[0]


def test_an_error_for_people_comes_without() -> None:
    with pytest.raises(StoreError, match="no such folder: crawl") as raised:
        next(mapped(refuse, range(9), processes=2))
    assert not hasattr(raised.value, "__notes__")
