"""Counts the outcome of every URL of a fetch list, and checks that the sum adds up, or says what a
fetch that was interrupted has left.

generated = fetched + not modified + redirected + gone + retry + denied + deferred + skipped
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Self

from minutch.errors import MinutchError, StoreError
from minutch.job import Counters


class Outcome(IntEnum):
    """The end of one URL in this fetch. The numbers stand in the fetch log.

    `label` is its name in the table at the end, `reason` stands in the record of a URL that was not
    asked for, `event` is Nutch's counter of such URLs.
    """

    label: str
    reason: str
    event: str

    def __new__(cls, number: int, label: str, reason: str = "", event: str = "") -> Self:
        """Returns a row of the table below."""
        outcome = int.__new__(cls, number)
        outcome._value_ = number
        outcome.label, outcome.reason, outcome.event = label, reason, event
        return outcome

    FETCHED = 1, "fetched"
    NOTMODIFIED = 2, "not modified"
    REDIRECTED = 3, "redirected"
    GONE = 4, "gone"
    RETRY = 5, "retry"
    DENIED = 6, "denied"
    DEFERRED = 7, "deferred", "the host asked to come back later"
    SKIPPED_TIMELIMIT = (
        8,
        "skipped (time limit)",
        "the time limit was reached (fetcher.timelimit.mins)",
        "hit_by_timelimit_total",
    )
    SKIPPED_EXCEPTIONS = (
        9,
        "skipped (too many exceptions)",
        "its host failed too often (fetcher.max.exceptions.per.queue)",
        "above_exception_threshold_total",
    )
    SKIPPED_THROUGHPUT = (
        10,
        "skipped (too slow)",
        "the fetch was too slow (fetcher.throughput.threshold.pages)",
        "hit_by_throughput_threshold_total",
    )
    SKIPPED_TIMEOUT = (
        11,
        "skipped (nothing moved)",
        "nothing moved any more (mapreduce.task.timeout)",
        "hit_by_timeout_total",
    )
    SKIPPED_FILTERED = 12, "skipped (filtered)", "filtered", "filtered_total"
    SKIPPED_INVALID = 13, "skipped (no valid URL)", "no queue for this URL"
    SKIPPED_TAIL = 14, "left to the next round", "left to the next round: few hosts had pages left"
    SKIPPED_REFUSED = 16, "skipped (refused by this crawler)"
    SKIPPED_FOLLOWED = (
        17,
        "skipped (a redirect led to it)",
        "a redirect or link had led to it before it was listed",
        "followed_before_total",
    )
    FOLLOWED = 15, "followed links"
    """A link that was followed in the same fetch; no URL of the list."""

    @property
    def skipped(self) -> bool:
        """Never asked for."""
        return self.label.startswith("skipped") or self is Outcome.SKIPPED_TAIL


OUTCOMES: Final = {int(outcome): outcome for outcome in Outcome}
"""By number."""
STOPPED: Final = "stopped at once; run fetch on the same segment again to go on"


class Interrupted(MinutchError):
    """A signal ended the fetch early: the log is kept, and the next run resumes from it."""

    exit_code = 130

    @classmethod
    def leaving(cls, left: int, listed: int) -> Self:
        """Makes the one that says how many of the listed URLs are left."""
        return cls(
            f"interrupted: {left} of {listed} URLs are left, which the next fetch of this segment"
            " goes on with"
        )


class Ledger:
    """Counts the outcomes of listed URLs, and checks that they add up."""

    def __init__(self) -> None:
        self.generated = 0
        self.outcomes: Counter[Outcome] = Counter()

    def settle(self, outcome: Outcome, count: int = 1) -> None:
        """Counts `count` URLs with this outcome."""
        self.outcomes[outcome] += count

    @property
    def settled(self) -> int:
        """Listed URLs that have ended."""
        return sum(
            count for outcome, count in self.outcomes.items() if outcome is not Outcome.FOLLOWED
        )

    def check(self, where: str) -> None:
        """Raises StoreError unless every generated URL has exactly one outcome."""
        if self.settled != self.generated:
            raise StoreError(
                f"{where}: the ledger does not add up: {self.generated} URLs in the fetch list, "
                f"{self.settled} with an outcome ({self.counters()})"
            )

    def counters(self) -> Counters:
        """Returns the counts by label: generated first, the main outcomes always, the others when
        they occurred.
        """
        result = Counters(generated=self.generated)
        for outcome in Outcome:
            count = self.outcomes[outcome]
            if count or (outcome <= Outcome.DEFERRED and outcome is not Outcome.NOTMODIFIED):
                result[outcome.label] = count
        return result

    def merge(self, outcomes: Mapping[Outcome, int]) -> None:
        """Adds the counts of another process."""
        for outcome, count in outcomes.items():
            self.settle(outcome, count)
