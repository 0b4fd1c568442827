"""Counts by group, piece by piece, for a report: entries of the CrawlDb, fetches of all segments,
broken links. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import polars as pl

from minutch.cycle.fetch.decisions import reason
from minutch.inspect.query.columns import ID
from minutch.inspect.query.pages import OUTCOMES, is_fetch, outcome
from minutch.inspect.query.reach import IS_ROOT
from minutch.records import protocol as codes
from minutch.records.protocol import CODE_NAMES, ProtocolStatus
from minutch.work.tables.frame import decode_keys

_MANY: Final = 32
"""Pieces that are added up at a time."""


class Aggregate(NamedTuple):
    """The aggregate of a group: sum, least, greatest or first value of an expression; null counts
    nothing.
    """

    of: pl.Expr
    how: Literal["sum", "min", "max", "first"] = "sum"

    def over(self, name: str) -> pl.Expr:
        """Returns the aggregate of values that are such aggregates."""
        column = pl.col(name)
        return column.drop_nulls().first() if self.how == "first" else getattr(column, self.how)()


ROWS: Final = Aggregate(pl.lit(1, pl.Int64))


def with_own_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Copies the texts of a frame: rows chosen from a larger frame keep all of its texts in
    memory.
    """
    return frame.with_columns(pl.col(pl.String) + "")


class GroupCounts:
    """Counts by group. `by`: name → expression of the group; rows with a null there belong to
    none.
    """

    def __init__(self, by: Mapping[str, pl.Expr], **counts: Aggregate) -> None:
        self._by, self._counts = by, counts
        self._parts: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        """Counts the rows of a piece."""
        values = {name: count.of for name, count in self._counts.items()}
        self._parts.append(
            with_own_texts(
                self._summed(frame.select(**self._by, **values).drop_nulls(list(self._by)))
            )
        )
        if len(self._parts) >= _MANY:
            self._parts = [self._summed(pl.concat(self._parts))]

    def _summed(self, frame: pl.DataFrame) -> pl.DataFrame:
        sums = [count.over(name).alias(name) for name, count in self._counts.items()]
        return frame.group_by(list(self._by), maintain_order=True).agg(sums)

    def result(self) -> pl.DataFrame:
        """Returns one row a group, in the order of their first rows; an empty table without columns
        if there was no piece.
        """
        return self._summed(pl.concat(self._parts)) if self._parts else pl.DataFrame()


def bucketed(counts: pl.DataFrame, name: str, bounds: Sequence[int]) -> pl.DataFrame:
    """Turns counts by value (`name`, `n`) into `below` and `n`: every bucket from the first to the
    last that is not empty.
    """
    if counts.is_empty():
        return pl.DataFrame(schema={"below": pl.Int64, "n": pl.Int64})
    place = pl.lit(0)
    for bound in bounds:
        place = place + (pl.col(name) >= bound).cast(pl.Int32)
    found = dict(counts.group_by(place.alias("place")).agg(pl.col("n").sum()).iter_rows())
    shown = range(min(found), max(found) + 1)
    ends = [*bounds, None]
    return pl.DataFrame(
        {"below": [ends[at] for at in shown], "n": [found.get(at, 0) for at in shown]},
        schema={"below": pl.Int64, "n": pl.Int64},
    )


def quantile(counts: pl.DataFrame, by: Sequence[str], share: float) -> pl.DataFrame:
    """Returns the quantile of `ms`, which came `n` times in a row, for each group of `by`."""
    ordered = counts.sort(*by, "ms")
    groups: list[str] = list(by)
    cumulated = pl.col("n").cum_sum().over(groups) if groups else pl.col("n").cum_sum()
    total = pl.col("n").sum().over(groups) if groups else pl.col("n").sum()
    reached = ordered.filter(cumulated >= share * total)
    return reached.unique(groups, keep="first", maintain_order=True) if groups else reached.head(1)


def batched(pieces: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Joins pieces of a table until they have so many rows."""
    held: list[pl.DataFrame] = []
    for piece in pieces:
        held.append(piece)
        if sum(map(len, held)) >= rows:
            yield pl.concat(held)
            held = []
    if held:
        yield pl.concat(held)


# Counts the CrawlDb's entries for a report: statuses, hosts, due dates, fetch intervals. Pieces of
# it in, facts out. Pure.

OF_ENTRIES: Final = ("url", "host", "status", "fetch_time", "fetch_interval")
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
        self._ids.append(frame.select(ID, "status", IS_ROOT))

    def ids(self) -> pl.DataFrame:
        """Returns the entries by `id`, ascending, with `status` and `is_root`."""
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


# Counts the fetches of all segments for a report: rounds, answers, response times. Pieces of the
# table in. Pure.
#
# Response times are kept to two digits, so that their quantiles are near the true ones and take
# little memory.

OF_FETCHES: Final = (
    "segment", "url", "host", "status", "fetch_time", "code", "protocol_status", "reason",
)  # fmt: skip
ALL_OF_FETCHES: Final = (
    *OF_FETCHES, "response_ms", "content_type", "size", "redirect_to", "digest",
)  # fmt: skip
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
        return {name: int(quantile(times, [], share)["ms"][0]) for name, share in shares.items()}


def _with_medians(counts: pl.DataFrame, times: pl.DataFrame, by: str) -> pl.DataFrame:
    """Adds the median of response times, which are rounded: it is not above the `slowest_ms`."""
    medians = quantile(times, [by], 0.5).select(by, median_ms="ms")
    found = counts.join(medians, on=by, how="left", maintain_order="left")
    least = pl.min_horizontal("median_ms", "slowest_ms")
    return found.with_columns(
        pl.when(pl.col("median_ms").is_not_null()).then(least).alias("median_ms")
    )


# Finds links to pages that are gone or fail, and the pages that they are on. Pure: pieces of links
# in, facts out.

MOST_PLACES: Final = 5
"""Pages that are kept of those that link to an address."""
_LINKED: Final = {
    "id": pl.UInt64, "url": pl.String, "from_url": pl.String, "anchor": pl.String, "n": pl.Int64,
}  # fmt: skip


class BrokenLinks:
    """A counter of links to addresses that are `broken`, by their ids."""

    def __init__(self, broken: pl.Series) -> None:
        self._broken = broken.implode()
        self._counts = [pl.DataFrame(schema={"id": pl.UInt64, "n": pl.Int64})]
        self._samples = [
            pl.DataFrame(schema={name: kind for name, kind in _LINKED.items() if name != "n"})
        ]
        self.links = 0

    def add(self, links: pl.DataFrame) -> None:
        """Counts links: `id` (of their targets), `url`, `from_url`, `anchor` (Binary)."""
        self.links += links.height
        mine = links.filter(pl.col("id").is_in(self._broken))
        self._counts.append(mine.group_by("id").agg(pl.len().cast(pl.Int64).alias("n")))
        texts = [decode_keys(mine[name]).alias(name) for name in ("url", "from_url", "anchor")]
        self._samples.append(with_own_texts(_first(mine.select("id").with_columns(texts))))
        if len(self._counts) > _MANY:
            self._counts = [self._counted()]
            self._samples = [_first(pl.concat(self._samples))]

    def _counted(self) -> pl.DataFrame:
        return pl.concat(self._counts).group_by("id").agg(pl.col("n").sum())

    @property
    def addresses(self) -> int:
        """Number of addresses that are broken and linked to."""
        return self._counted().height

    def table(self, whys: pl.DataFrame, most: int) -> pl.DataFrame:
        """Returns the addresses with the most links; `whys` has the known reasons."""
        top = self._counted().sort("n", "id", descending=[True, False]).head(most)
        samples = _first(
            pl.concat(self._samples).join(top, on="id", how="semi", maintain_order="left")
        )
        places = samples.group_by("id").agg(
            pl.col("url").first(),
            pl.col("from_url").alias("pages"),
            pl.col("anchor").alias("anchors"),
        )
        found = top.join(places, on="id").join(
            whys.select("id", "why").unique("id", keep="last"), on="id", how="left"
        )
        return found.rename({"n": "links"}).sort("links", "url", descending=[True, False])


def _first(links: pl.DataFrame) -> pl.DataFrame:
    """Returns the first links to each address, one a page."""
    return (
        links.unique(["id", "from_url"], keep="first", maintain_order=True)
        .group_by("id", maintain_order=True)
        .head(MOST_PLACES)
    )
