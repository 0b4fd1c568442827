"""The benchmark of near-duplicates runs, and its labels are right: edited pages are nearer than
others.
"""

import pytest

from tests.benchmarks import neardups
from tests.benchmarks.htmlpages import made_up_pages


def test_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    pages = neardups.texts(made_up_pages(20))
    assert len(pages) == 20
    neardups.show_signing(pages)
    neardups.show_speed([500])
    neardups.show_quality(pages)
    neardups.show_numbers(2)
    printed = capsys.readouterr().out
    assert "| 500 | 9" in printed, "nearly all of the hundred copies are found"
    assert printed.count("\n| 10 |") == printed.count("\n| texts |") == 1


@pytest.mark.parametrize("bits", [8, None])
def test_a_small_change_is_nearer_than_a_large_one(bits: int | None) -> None:
    pages = neardups.texts(made_up_pages(20))
    own = neardups.Measured.of([" ".join(page) for page in pages])
    small, large = (
        own.near(neardups.Measured.of(neardups.edited(pages, neardups.changed(share))), bits).sum()
        for share in (0.01, 0.5)
    )
    assert small > large
    assert own.near(own, bits).all()


def test_lists_of_other_numbers_are_no_twins_dates_part_none() -> None:
    found = {kind: neardups.pairs_near(kind, 30) for kind in neardups.NUMBERS}
    others = [share for kind, share in found.items() if kind[0] == "a" and "2 numb" not in kind]
    twins = [share for kind, share in found.items() if kind[0] == "t"]
    assert max(others) < 0.4
    assert min(twins) > 0.7
