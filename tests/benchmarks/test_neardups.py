"""The benchmark of near-duplicates runs, and its labels are right: edited pages are nearer than
others.
"""

import pytest

from tests.benchmarks import neardups
from tests.benchmarks.corpus import made_up_pages


def test_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    pages = neardups.texts(made_up_pages(20))
    assert len(pages) == 20
    neardups.show_signing(pages)
    neardups.show_speed([500])
    neardups.show_quality(pages)
    printed = capsys.readouterr().out
    assert "| 500 | 9" in printed, "nearly all of the hundred copies are found"
    assert printed.count("\n| 10 |") == 1


def test_a_small_change_is_nearer_than_a_large_one() -> None:
    pages = neardups.texts(made_up_pages(20))
    small, large = (
        sum(neardups.distances(pages, neardups.changed(share))) for share in (0.01, 0.3)
    )
    assert small < large
