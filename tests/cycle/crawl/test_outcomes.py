"""What a round brought, in lines."""

from __future__ import annotations

from collections import Counter

from minutch.cycle.crawl.screen import Outcomes


def test_the_most_frequent_comes_first() -> None:
    reasons = {
        ("retry", "HTTP 403"): 3,
        ("gone", "HTTP 404"): 4,
        ("retry", "connection refused"): 2,
    }
    assert list(Outcomes(reasons=Counter(reasons)).lines()) == [
        "retry 5: 3 × HTTP 403, 2 × connection refused",
        "gone 4: 4 × HTTP 404",
    ]
