"""The ties excuse what they say, and nothing else."""

from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_GONE, CrawlDatum
from tests.support import ties

ORDER = ("score", "fetchTime", "urlLength")


def page(score: float, signature: bytes = b"s", status: int = STATUS_DB_FETCHED) -> CrawlDatum:
    return CrawlDatum(status, 60, score, 5, signature=signature)


def test_undecided_pages() -> None:
    group = {
        "http://a/1": page(1),
        "http://a/2": page(1),
        "http://a/3": page(2),
        "http://a/4": page(2),
    }
    assert ties.undecided(group, ORDER) == {"http://a/1", "http://a/2"}
    assert ties.undecided({**group, "http://a/2": page(1.5)}, ORDER) == set()
    assert ties.undecided({**group, "http://a/2": page(1, b"other")}, ORDER) == set()
    assert ties.undecided({**group, "http://a/2": page(1, status=STATUS_DB_GONE)}, ORDER) == set()
    assert (
        ties.undecided(
            {"http://a/10": page(1), "http://a/2": page(1), "http://a/3": page(2)}, ORDER
        )
        == set()
    )


def test_lists_of_the_highest_scores() -> None:
    scores = {"a": "2.0", "b": "2.0", "c": "1.0", "d": "1.0"}
    assert ties.same_top(["2.0\ta", "2.0\tb", "1.0\tc"], ["2.0\tb", "2.0\ta", "1.0\td"], scores)
    assert not ties.same_top(["2.0\ta", "1.0\tc"], ["2.0\tb", "1.0\tc"], scores)
    assert not ties.same_top(["2.0\ta"], ["2.0\tc"], scores)
    assert not ties.same_top(["2.0\ta", "2.0\tb"], ["2.0\ta", "2.0\ta"], scores)
    assert not ties.same_top(["2.0\ta"], [], scores)


def test_sums_and_quantiles() -> None:
    assert ties.same_sum(1.0, 1.000001)
    assert not ties.same_sum(1.0, 1.00001)
    scores = [i / 1000 for i in range(1000)]
    low, high = ties.quantile_range(scores, 0.5)
    assert 0.3 < low < 0.5 < high < 0.7
    assert ties.quantile_range(scores, 0.001) == (0.0, 0.003)


def test_any_order() -> None:
    assert ties.in_any_order([{"a": "1", "b": "2"}, {"a": "1", "b": "3"}]) == {
        "a": {"1"},
        "b": {"2", "3"},
    }
