"""Counts the fetches of all segments for a report: rounds, answers, response times. Pieces of the
table in. Pure.

Response times are kept to two digits, so that their quantiles are near the true ones and take
little memory.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from minutch.cycle.fetch.decisions import reason
from minutch.inspect.query.outcomes import OUTCOMES, is_fetch, outcome
from minutch.inspect.report.groupcounts import ROWS, Aggregate, GroupCounts, bucketed, quantile
from minutch.records import protocol as codes
from minutch.records.protocol import CODE_NAMES, ProtocolStatus

NEEDED: Final = (
    "segment",
    "url",
    "host",
    "status",
    "fetch_time",
    "code",
    "protocol_status",
    "reason",
)
NEEDED_ALL: Final = (*NEEDED, "response_ms", "content_type", "size", "redirect_to", "digest")
HAD: Final = ("fetched", "unchanged", "redirected")
"""Outcomes that need no reason."""
TIME_BOUNDS: Final = tuple(step * 10**power for power in range(5) for step in (1, 2, 5))
"""Milliseconds, in equal steps of a logarithmic scale: 1, 2, 5, 10, … 50,000."""

_CODES: Final = {name: code for code, name in CODE_NAMES.items()}
_LAST: Final = 253_402_300_799_000
"""The end of the year 9999, in ms: what calendars hold."""
_URL: Final = r"\b[a-z][a-z0-9+.-]*://\S+"


def with_outcomes(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds `outcome`, and `why` and `answer` in words. Links that redirects found are left out."""
    protocol = pl.col("protocol_status").cast(pl.String)
    known = frame.filter(is_fetch())
    known = known.with_columns(outcome(), pl.col("reason").str.replace_all(_URL, "…"))
    answer = pl.coalesce(pl.col("code").cast(pl.String), protocol.str.replace_all("_", " "))
    said = ["code", "protocol_status", "reason"]
    kinds = known.filter(~pl.col("outcome").is_in(HAD)).select(said).unique()
    words = [
        reason(ProtocolStatus.of(_CODES.get(name or "", codes.FAILED), message), str(code or ""))
        for code, name, message in kinds.iter_rows()
    ]
    why = kinds.with_columns(pl.Series("why", words, pl.String))
    found = known.join(why, on=said, how="left", nulls_equal=True, maintain_order="left")
    had = pl.col("outcome").is_in(HAD)
    return found.with_columns(pl.when(~had).then("why").alias("why"), answer.alias("answer"))


class FetchCounts:
    """Counts of the fetches of all segments."""

    def __init__(self) -> None:
        rounded = pl.col("response_ms").cast(pl.Float64).round_sig_figs(2).cast(pl.Int64)
        outcome, url = pl.col("outcome").cast(pl.String), pl.col("url")
        sums = {name: Aggregate((outcome == name).cast(pl.Int64)) for name in ("failed", "denied")}
        size, time = (
            Aggregate(pl.col("size")),
            pl.when(pl.col("fetch_time").to_physical().is_between(0, _LAST)).then("fetch_time"),
        )
        spans = {"started": Aggregate(time, "min"), "ended": Aggregate(time, "max")}
        slowest = Aggregate(pl.col("response_ms").cast(pl.Int64), "max")
        counted = {name: Aggregate((outcome == name).cast(pl.Int64)) for name in OUTCOMES}
        self._rounds = GroupCounts(
            {"segment": pl.col("segment")}, bytes=size, slowest_ms=slowest, **spans, **counted
        )
        self._hosts = GroupCounts(
            {"host": pl.col("host")},
            requests=ROWS,
            bytes=size,
            slowest_ms=slowest,
            responses=Aggregate(pl.col("response_ms").is_not_null().cast(pl.Int64)),
            **sums,
        )
        self._codes = GroupCounts({"code": pl.col("answer")}, requests=ROWS)
        why = pl.col("why")
        self._reasons = GroupCounts(
            {"outcome": outcome, "reason": why}, requests=ROWS, example=Aggregate(url, "first")
        )
        refused = {"host": pl.when(outcome == "denied").then("host")}
        self._robots = GroupCounts(refused, urls=ROWS, example=Aggregate(url, "first"))
        self._times_of_hosts = GroupCounts({"host": pl.col("host"), "ms": rounded}, n=ROWS)
        self._times_of_rounds = GroupCounts({"segment": pl.col("segment"), "ms": rounded}, n=ROWS)
        self._times = GroupCounts({"ms": pl.col("response_ms").cast(pl.Int64)}, n=ROWS)
        self.every = (
            *(self._rounds, self._hosts, self._codes, self._reasons, self._robots),
            *(self._times_of_hosts, self._times_of_rounds, self._times),
        )

        self.is_empty = True

    def add(self, frame: pl.DataFrame) -> None:
        """Counts the fetches of a piece from `with_outcomes`."""
        self.is_empty = False
        for counts in self.every:
            counts.add(frame)

    def rounds(self) -> pl.DataFrame:
        """Returns one row a segment."""
        return _with_medians(self._rounds.result(), self._times_of_rounds.result(), "segment")

    def hosts(self) -> pl.DataFrame:
        """Returns one row a host."""
        return _with_medians(self._hosts.result(), self._times_of_hosts.result(), "host")

    def codes(self) -> pl.DataFrame:
        """Returns answers, the most frequent first."""
        return self._codes.result().sort("requests", "code", descending=[True, False])

    def reasons(self) -> pl.DataFrame:
        """Returns the reasons of failures, the most frequent first."""
        return self._reasons.result().sort("requests", "reason", descending=[True, False])

    def robots(self) -> pl.DataFrame:
        """Returns the hosts whose robots.txt refused something."""
        return self._robots.result().sort("urls", "host", descending=[True, False])

    def times(self) -> pl.DataFrame:
        """Returns response times, in buckets."""
        return bucketed(self._times.result(), "ms", TIME_BOUNDS).rename(
            {"below": "below_ms", "n": "requests"}
        )

    def quantiles(self) -> dict[str, int]:
        """Returns quantiles of response times, by their names in the totals; none if no time is
        known.
        """
        times = self._times.result()
        shares = {"median_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99} if times.height else {}
        return {
            name: int(quantile(times, [], "ms", share)["ms"][0]) for name, share in shares.items()
        }


def _with_medians(counts: pl.DataFrame, times: pl.DataFrame, by: str) -> pl.DataFrame:
    """Adds the median of response times, which are rounded: it is not above the `slowest_ms`."""
    medians = quantile(times, [by], "ms", 0.5).select(by, median_ms="ms")
    found = counts.join(medians, on=by, how="left", maintain_order="left")
    least = pl.min_horizontal("median_ms", "slowest_ms")
    return found.with_columns(
        pl.when(pl.col("median_ms").is_not_null()).then(least).alias("median_ms")
    )
