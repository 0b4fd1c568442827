"""Counts the CrawlDb's entries for a report: statuses, hosts, due dates, fetch intervals. Pieces of
it in, facts out. Pure."""

from __future__ import annotations

from typing import Final

import polars as pl

from minutch.inspect.query.ids import ID
from minutch.inspect.report.groupcounts import ROWS, Aggregate, GroupCounts

NEEDED: Final = ("url", "host", "status", "fetch_time", "fetch_interval")
HOST_COUNTS: Final = {
    "fetched": ("db_fetched", "db_notmodified"),
    "unfetched": ("db_unfetched",),
    "gone": ("db_gone",),
    "redirects": ("db_redir_temp", "db_redir_perm"),
    "duplicates": ("db_duplicate",),
}
_HOUR: Final = 3_600_000
_DAY: Final = 24 * _HOUR
_STEPS: Final = (_HOUR, 6 * _HOUR, _DAY, 7 * _DAY, 30 * _DAY)
_MOST_STEPS: Final = 31
_NEARLY_ALL: Final = 0.99
_MOST_INTERVALS: Final = 20
_DUE: Final = -(1 << 62)
"""Stands for the hour of all that is due."""


class EntryCounts:
    """Counts of the entries of a CrawlDb at the time `now` (epoch ms)."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._ids: list[pl.DataFrame] = []
        status = pl.col("status").cast(pl.String)
        time = pl.col("fetch_time").to_physical()
        state = status.replace_strict({"db_unfetched": "new", "db_gone": "gone"}, default="again")
        hour = pl.when(time <= now).then(_DUE).otherwise(time // _HOUR * _HOUR)
        counts = {
            name: Aggregate(status.is_in(names).cast(pl.Int64))
            for name, names in HOST_COUNTS.items()
        }
        self._statuses = GroupCounts({"status": status}, urls=ROWS)
        self._hosts = GroupCounts({"host": pl.col("host")}, urls=ROWS, **counts)
        self._due = GroupCounts({"hour": hour, "state": state}, n=ROWS)
        self._intervals = GroupCounts(
            {"seconds": pl.col("fetch_interval").cast(pl.Int64)}, urls=ROWS
        )

    def add(self, frame: pl.DataFrame) -> None:
        """Counts the entries of a piece, which has the columns NEEDED."""
        for counts in (self._statuses, self._hosts, self._due, self._intervals):
            counts.add(frame)
        self._ids.append(frame.select(ID, "status"))

    def ids(self) -> pl.DataFrame:
        """Returns the entries by `id`, ascending, with their `status`."""
        return pl.concat(self._ids).sort("id")

    def hosts(self) -> pl.DataFrame:
        """Returns one row a host, those with most URLs first."""
        return self._hosts.result().sort("urls", "host", descending=[True, False])

    def statuses(self) -> pl.DataFrame:
        """Returns the number of entries by status."""
        return self._statuses.result().sort("status")

    def intervals(self) -> pl.DataFrame:
        """Returns the number of entries by fetch interval, rounded to one digit if there are
        many.
        """
        found = self._intervals.result()
        if found.height > _MOST_INTERVALS:
            rounded = pl.col("seconds").cast(pl.Float64).round_sig_figs(1).cast(pl.Int64)
            found = found.group_by(rounded).agg(pl.col("urls").sum())
        return found.sort("seconds")

    def due(self) -> pl.DataFrame:
        """Returns the number of entries by date of their next fetch: due, then steps of an hour to
        a month, then later.
        """
        found = self._due.result()
        step = self._step(found)
        first = self._now // step * step
        last = pl.col("hour") // step * step
        end = first + _MOST_STEPS * step
        place = (
            pl.when(pl.col("hour") == _DUE).then(_DUE).when(last >= end).then(end).otherwise(last)
        )
        sums = found.group_by(place.alias("place"), "state").agg(pl.col("n").sum())
        counts = {(at, state): n for at, state, n in sums.iter_rows()}
        latest = max((at for at, _ in counts if at != _DUE), default=first)
        places = [_DUE, *range(first, min(latest, end) + 1, step)]
        rows = [
            {
                "start": None if at == _DUE else at,
                "end": None if at in (_DUE, end) else at + step,
                **{state: counts.get((at, state), 0) for state in ("new", "again", "gone")},
            }
            for at in places
        ]
        return pl.DataFrame(rows, schema_overrides={"start": pl.Int64, "end": pl.Int64})

    def _step(self, found: pl.DataFrame) -> int:
        """Returns the least step with which nearly all that is not due fits into the plot."""
        later = found.filter(pl.col("hour") != _DUE).sort("hour")
        if later.is_empty():
            return _DAY
        reached = later.filter(pl.col("n").cum_sum() >= _NEARLY_ALL * pl.col("n").sum())["hour"][0]
        fits = (step for step in _STEPS if (reached - self._now) // step < _MOST_STEPS)
        return next(fits, _STEPS[-1])
