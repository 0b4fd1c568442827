"""Where every URL of a fetch list ends: exactly one outcome each, and the sum that proves it.

generated = fetched + not modified + redirected + gone + retry + denied + deferred + skipped
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import IntEnum

from minutch.errors import StoreError
from minutch.job import Counters


class Outcome(IntEnum):
    """The end of one URL in this fetch. The numbers stand in the fetch log."""

    FETCHED = 1
    NOTMODIFIED = 2
    REDIRECTED = 3
    GONE = 4
    RETRY = 5
    DENIED = 6
    DEFERRED = 7
    SKIPPED_TIMELIMIT = 8
    SKIPPED_EXCEPTIONS = 9
    SKIPPED_THROUGHPUT = 10
    SKIPPED_TIMEOUT = 11
    SKIPPED_FILTERED = 12
    SKIPPED_INVALID = 13
    SKIPPED_INTERRUPTED = 14
    FOLLOWED = 15
    """A link that was followed in the same fetch; no URL of the list."""

    @property
    def label(self) -> str:
        """As the table at the end names it."""
        return _LABELS[self]

    @property
    def skipped(self) -> bool:
        """Never asked for."""
        return _LABELS[self].startswith("skipped")


_LABELS = {
    Outcome.FETCHED: "fetched",
    Outcome.NOTMODIFIED: "not modified",
    Outcome.REDIRECTED: "redirected",
    Outcome.GONE: "gone",
    Outcome.RETRY: "retry",
    Outcome.DENIED: "denied",
    Outcome.DEFERRED: "deferred",
    Outcome.SKIPPED_TIMELIMIT: "skipped (time limit)",
    Outcome.SKIPPED_EXCEPTIONS: "skipped (too many exceptions)",
    Outcome.SKIPPED_THROUGHPUT: "skipped (too slow)",
    Outcome.SKIPPED_TIMEOUT: "skipped (nothing moved)",
    Outcome.SKIPPED_FILTERED: "skipped (filtered)",
    Outcome.SKIPPED_INVALID: "skipped (no valid URL)",
    Outcome.SKIPPED_INTERRUPTED: "skipped (interrupted)",
    Outcome.FOLLOWED: "followed links",
}


class Ledger:
    """Counts outcomes of listed URLs and checks that they add up."""

    def __init__(self) -> None:
        self.generated = 0
        self.outcomes: Counter[Outcome] = Counter()

    def settle(self, outcome: Outcome, count: int = 1) -> None:
        """`count` URLs ended so."""
        self.outcomes[outcome] += count

    @property
    def settled(self) -> int:
        """Listed URLs that have ended."""
        return sum(count for outcome, count in self.outcomes.items() if outcome is not Outcome.FOLLOWED)

    def check(self, where: str) -> None:
        """Raise StoreError unless every generated URL has exactly one outcome."""
        if self.settled != self.generated:
            raise StoreError(
                f"{where}: the ledger does not add up: {self.generated} URLs in the fetch list, "
                f"{self.settled} with an outcome ({self.counters()})"
            )

    def counters(self) -> Counters:
        """The counts by label: generated first, the main outcomes always, the others when they occurred."""
        result = Counters(generated=self.generated)
        for outcome in Outcome:
            count = self.outcomes[outcome]
            if count or (outcome <= Outcome.DEFERRED and outcome is not Outcome.NOTMODIFIED):
                result[outcome.label] = count
        return result

    def merge(self, outcomes: Mapping[int, int]) -> None:
        """Add the counts of another process."""
        for outcome, count in outcomes.items():
            self.settle(Outcome(outcome), count)
