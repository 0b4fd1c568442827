"""No reader of the web takes time that grows faster than what it reads.

Some families of input here, of a length at which squares show; `bin/test --faults` takes all of
them, at the lengths that come from the web.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.faults.growth import too_slow
from tests.faults.readers import WEB, Reader
from tests.support.examples import every, tabled

SIZE, FAMILIES = 1 << 16, 24


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.slow
@tabled("name", sorted(WEB)[:: every(4)])
def test_time_grows_with_the_input(name: str) -> None:
    assert not [*too_slow(WEB[name], SIZE, FAMILIES)]


@pytest.mark.faults
@pytest.mark.parametrize("name", WEB)
def test_time_grows_with_much_input(name: str) -> None:
    assert not [*too_slow(WEB[name], 1 << 20, 10_000)]


@pytest.mark.slow
def test_a_square_is_found() -> None:
    """The measure itself: all that came before is looked through again and again."""

    def read(data: bytes) -> object:
        return [sum(data[:at]) for at in range(0, len(data), 40)]

    assert [*too_slow(Reader(read, lambda: [b"x"], "ab"), SIZE, 1)]
