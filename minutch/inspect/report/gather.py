"""Gathers the facts of a report from a crawl's files: table by table, each piece by piece.

crawldb      statuses, hosts, due dates; of each URL a number and its status stay in memory
pages        rounds, answers, times; histories of URLs, as many at a time as fit into memory
parses       languages, charsets; which parse of a page is its newest
links        depths, broken links
duplicates   the largest groups
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from typing import Final

import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.store import CRAWL_FETCH, PARSE_DATA
from minutch.errors import StoreError
from minutch.inspect.audit.findings import Rule, audit
from minutch.inspect.query.columns import ID, of_keys
from minutch.inspect.query.crawl import CRAWLDB, CrawlFolder
from minutch.inspect.query.pages import OUTCOMES, PagesTable, came_of
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.reach import Reach, longest
from minutch.inspect.query.table import Request, Table
from minutch.inspect.report import counts
from minutch.inspect.report.counts import (
    Aggregate,
    BrokenLinks,
    EntryCounts,
    FetchCounts,
    GroupCounts,
    batched,
    with_outcomes,
)
from minutch.inspect.report.facts import TABLES, Facts, shaped
from minutch.inspect.report.urlhistory import ROW_BYTES, UrlHistories
from minutch.job import Progress
from minutch.urls.urlkeys import url_keys

MOST: Final = 100
"""Rows of a list in the facts."""
MOST_HOSTS: Final = 200
_MOST_OTHERS: Final = 5
_RESPONSES, _HOSTS = 3, 10
"""If this many hosts have this many answers, hosts with fewer answers are not called slow."""
_PARSED: Final = {
    "id": pl.UInt64,
    "number": pl.Int32,
    "charset": pl.Categorical,
    "lang": pl.Categorical,
    "to": pl.UInt64,
}
_ROWS: Final = 1 << 16
"""Rows that are counted at a time: counting ten takes as long as counting thousands."""
_URL_BYTES: Final = 1000
"""Bytes of memory that a URL takes in an audit."""
_STORED: Final = 20
"""Bytes of a fetch on disk, at least."""


class FactsGatherer:
    """A gatherer of a crawl's facts at the time `now` (epoch ms) within `memory` bytes.

    `progress(name)` shows how far it is. `tables` and `totals` are those of `facts.TABLES` and
    `facts.TOTALS`.
    """

    def __init__(
        self,
        crawl: CrawlFolder,
        rules: Collection[Rule],
        now: int,
        memory: int,
        progress: Callable[[str], Progress],
    ) -> None:
        self.crawl, self.now = crawl, now
        self._rules = rules
        self._memory, self._progress = memory, progress
        self.tables: dict[str, pl.DataFrame] = {}
        self.totals: dict[str, int] = {}
        self.segments = [
            one for one in crawl.segments if one.has(CRAWL_FETCH) or one.has(PARSE_DATA)
        ]
        self._entries: pl.DataFrame | None = None

    def facts(self, name: str) -> Facts:
        """Returns all facts, of a crawl of this name. Raises FormatError (damage)."""
        self._count_entries()
        histories = self._count_fetches()
        refreshes = self._count_parses()
        redirects = histories.redirects()
        known = histories.seen() if self._entries is None else self._entries
        names = self._spelled_otherwise(
            [
                (PagesTable(self.segments), "redirect_to", redirects["to"]),
                (ParsesTable(self.segments), "refresh_to", refreshes["to"]),
            ],
            known["id"],
        )
        renamed = pl.col("to").replace(names["to"], names["id"])
        ways = [redirects.with_columns(renamed), refreshes.with_columns(renamed)]
        if "rounds" in self.tables:
            self._find_chains(ways[0], histories)
        self._follow_links(histories, pl.concat(ways))
        self._count_duplicates()
        self._audit()
        self.tables["totals"] = pl.DataFrame(
            {"name": list(self.totals), "value": list(self.totals.values())}
        )
        kept = {table: shaped(table, frame) for table, frame in self.tables.items() if frame.width}
        return Facts(name, self.now, kept)

    def _pieces(self, table: Table, columns: tuple[str, ...]) -> Iterator[pl.DataFrame]:
        with self._progress(f"report: {table.name}") as progress:
            for frame in batched(table.frames(Request(columns)), _ROWS):
                yield frame.select(columns)
                progress.advance(len(frame))

    def _count_entries(self) -> None:
        if not CrawlDb(self.crawl.path / CRAWLDB).exists():
            return
        counted = EntryCounts(self.now)
        for frame in self._pieces(self.crawl.crawldb, counts.OF_ENTRIES):
            counted.add(frame)
        self._entries = counted.ids()
        self.tables["hosts"] = hosts = counted.hosts()
        self.tables["statuses"] = statuses = counted.statuses()
        self.tables["due"] = due = counted.due()
        self.tables["intervals"] = counted.intervals()
        count = dict(statuses.iter_rows())
        self.totals |= {
            "urls": sum(count.values()),
            "fetched": count.get("db_fetched", 0) + count.get("db_notmodified", 0),
            "waiting": count.get("db_unfetched", 0),
            "gone": count.get("db_gone", 0),
            "duplicates": count.get("db_duplicate", 0),
            "hosts": hosts.height,
            "due": sum(due.row(0)[2:]),
        }

    def _count_fetches(self) -> UrlHistories:
        histories = UrlHistories(
            {segment.name: number for number, segment in enumerate(self.segments)}, self.now
        )
        counted = FetchCounts()
        parts = self._parts()
        for part in range(parts):
            for frame in self._pieces(PagesTable(self.segments), counts.ALL_OF_FETCHES):
                known = with_outcomes(frame)
                if part == 0:
                    counted.add(known)
                histories.add(known, part, parts)
            histories.count()
        self.totals["rounds"] = len(self.segments)
        if not counted.is_empty:
            self.tables |= {
                "rounds": counted.rounds(),
                "codes": counted.codes(),
                "reasons": counted.reasons().head(MOST),
                "robots": counted.robots().head(MOST),
                "times": counted.times(),
                "history": histories.levels(),
                "changes": (changes := histories.changes()),
                "ages": histories.ages(),
                "types": histories.types().head(MOST),
                "sizes": histories.sizes(),
            }
            rounds = self.tables["rounds"]
            self.totals |= {
                "requests": int(rounds.select(pl.sum_horizontal(*OUTCOMES).sum()).item() or 0),
                "bytes": int(rounds["bytes"].sum() or 0),
                "denied": int(rounds["denied"].sum() or 0),
                "changed": int(changes["changed"].sum() or 0),
                "refetched": int((changes["changed"] + changes["same"]).sum() or 0),
            } | counted.quantiles()
            self.tables["hosts"] = _chosen(self.tables.get("hosts"), counted.hosts())
        return histories

    def _parts(self) -> int:
        """Returns the number of parts into which URLs are split so that the fetches of a part fit
        into memory.
        """
        fetched = [segment for segment in self.segments if segment.has(CRAWL_FETCH)]
        stored = sum(
            path.stat().st_size for segment in fetched for path in segment.data_files(CRAWL_FETCH)
        )
        return max(1, -(-stored // _STORED * ROW_BYTES // self._memory))

    def _count_parses(self) -> pl.DataFrame:
        """Counts parses, and returns the refreshes: `id`, `to`, the `number` of the segment, and if
        it `is_newest`, of the newest parse of its page.
        """
        numbers = {segment.name: number for number, segment in enumerate(self.segments)}
        status = pl.col("status").cast(pl.String) == "success"
        ended = GroupCounts(
            {"segment": pl.col("segment")},
            parsed=Aggregate(status.cast(pl.Int64)),
            unparsed=Aggregate((~status).cast(pl.Int64)),
        )
        last = [pl.DataFrame(schema=_PARSED)]
        to = pl.when(pl.col("refresh_to").is_not_null()).then(pl.col("refresh_to").hash())
        for frame in self._pieces(
            ParsesTable(self.segments),
            ("segment", "url", "status", "charset", "lang", "refresh_to"),
        ):
            ended.add(frame)
            number = pl.col("segment").replace_strict(numbers, return_dtype=pl.Int32)
            good = frame.filter(status)
            words = pl.col("charset", "lang").cast(pl.Categorical)
            last.append(good.select(ID, number.alias("number"), words, to.alias("to")))
        every = pl.concat(last).with_columns(is_newest=pl.col("id").is_last_distinct())
        parsed = every.filter("is_newest")
        if "rounds" in self.tables and (found := ended.result()).width:
            self.tables["rounds"] = self.tables["rounds"].join(
                found, on="segment", how="left", maintain_order="left"
            )
        for table, column in (("languages", "lang"), ("charsets", "charset")):
            counts = (
                parsed.drop_nulls(column)
                .group_by(pl.col(column).cast(pl.String))
                .agg(pl.len().alias("pages"))
            )
            self.tables[table] = counts.sort("pages", column, descending=[True, False]).head(MOST)
        return every.select("id", "to", "number", "is_newest").drop_nulls("to")

    def _known(self) -> Iterator[pl.DataFrame]:
        """Yields the URLs of the CrawlDb, or where there is none, of those that were fetched."""
        fetched = PagesTable(self.segments)
        return self._pieces(fetched if self._entries is None else self.crawl.crawldb, ("url",))

    def _spelled_otherwise(
        self, ways: Sequence[tuple[Table, str, pl.Series]], known: pl.Series
    ) -> pl.DataFrame:
        """Returns the targets of redirects that the crawl spells otherwise: `to`, and the `id` of
        the URL that is meant. `ways` are tables, the columns with the targets, and their ids;
        `known` are the ids of the crawl's URLs.
        """
        keys = pl.col("url").map_batches(url_keys).hash()
        targets = [pl.DataFrame(schema={"to": pl.UInt64, "key": pl.UInt64})]
        for table, column, ids in ways:
            strange = ids.filter(~ids.is_in(known.implode())).unique()
            for frame in self._pieces(table, (column,)) if len(strange) else ():
                named = frame.select(url=column).drop_nulls().unique().with_columns(ID)
                named = named.filter(pl.col("id").is_in(strange.implode()))
                targets.append(named.select(to="id", key=keys))
        found = pl.concat(targets).unique("to")
        here = [pl.DataFrame(schema={"id": pl.UInt64, "key": pl.UInt64})]
        for frame in self._known() if len(found) else ():
            mine = frame.select(ID, key=keys)
            here.append(mine.filter(pl.col("key").is_in(found["key"].implode())))
        return found.join(of_keys(pl.concat(here)), on="key").select("to", "id")

    def _find_chains(self, redirects: pl.DataFrame, histories: UrlHistories) -> None:
        count, found = longest(redirects.filter("is_newest"), MOST)
        self.totals["chains"] = count
        wanted = pl.Series([one for chain in found for one in chain], dtype=pl.UInt64).unique()
        names = self._names(wanted) if len(wanted) else {}
        outcome = dict(
            histories.seen()
            .filter(pl.col("id").is_in(wanted.implode()))
            .select("id", "outcome")
            .iter_rows()
        )
        rows = [
            {
                "hops": len(chain) - 1,
                "addresses": [names.get(one, "") for one in chain],
                "end": "a circle"
                if chain[-1] in chain[:-1]
                else outcome.get(chain[-1], "not asked for"),
            }
            for chain in found
        ]
        self.tables["chains"] = pl.DataFrame(rows, schema=dict(TABLES["chains"]))

    def _names(self, wanted: pl.Series) -> dict[int, str]:
        """Returns the URLs of ids, of those that are known or redirected to."""
        names: dict[int, str] = {}
        redirects = self._pieces(PagesTable(self.segments), ("redirect_to",))
        for frame in (*redirects, *self._known()):
            every = frame.select(frame.to_series().alias("url")).drop_nulls().with_columns(ID)
            mine = every.filter(pl.col("id").is_in(wanted.implode()))
            names |= {one: url for url, one in mine.iter_rows()}
        return names

    def _follow_links(self, histories: UrlHistories, ways: pl.DataFrame) -> None:
        """Finds depths and broken links."""
        if self._entries is None:
            return
        seen = histories.seen()
        came = self._entries.join(seen, on="id", how="left", maintain_order="left")
        came = came.with_columns(came_of())
        broken = BrokenLinks(came.filter(pl.col("outcome").is_in(["gone", "failed"]))["id"])
        reach = Reach.of(self.crawl.tables, self.segments, self._entries, seen)
        reach.add_ways(ways)
        with self._progress("report: links") as progress, suppress(StoreError):  # without any
            for frame in self.crawl.links.every(self.segments):
                reach.add_links(frame)
                broken.add(frame.filter("is_newest"))
                progress.advance(len(frame))
        self.tables["broken"] = broken.table(histories.whys(), MOST)
        self.totals |= {"links": broken.links, "broken": broken.addresses}
        if reach.is_whole and "history" in self.tables:
            held = ["db_fetched", "db_notmodified", "db_duplicate"]
            fetched = self._entries.select(
                "id", fetched=pl.col("status").cast(pl.String).is_in(held)
            )
            found = reach.table().join(fetched, on="id").group_by("depth")
            counts = found.agg(pl.len().alias("urls"), pl.col("fetched").sum())
            self.tables["depth"] = counts.sort("depth", nulls_last=True)
            waiting = pl.Series("waiting", reach.waiting(len(self.segments)), pl.Int64)
            self.tables["history"] = self.tables["history"].with_columns(waiting)

    def _audit(self) -> None:
        """Asks the rules of an audit, whose table of the site is in memory."""
        if not self.segments or self.totals.get("urls", 0) * _URL_BYTES > self._memory:
            return
        found = []
        with self._progress("report: audit") as progress:
            for finding in audit(self.crawl, self._rules, self.now):
                found.append(
                    {
                        "rule": finding.rule.id,
                        "severity": finding.rule.severity,
                        "says": finding.rule.says,
                        "findings": None if finding.rows is None else finding.count,
                        "example": next(iter(finding.urls(1)), None),
                    }
                )
                progress.advance()
        self.tables["audit"] = pl.DataFrame(found, schema=dict(TABLES["audit"]))

    def _count_duplicates(self) -> None:
        if self._entries is None:
            return
        groups = (
            self.crawl.tables["duplicates"]
            .scan()
            .sort("signature", "kept", "url", descending=[False, True, False])
            .group_by("signature", maintain_order=True)
            .agg(
                pl.len().alias("urls"),
                pl.col("url").first().alias("kept"),
                pl.col("url").slice(1, _MOST_OTHERS).alias("others"),
            )
            .collect()
        )
        self.totals["duplicate_groups"] = groups.height
        self.tables["duplicates"] = groups.sort("urls", "kept", descending=[True, False]).head(MOST)


def _chosen(known: pl.DataFrame | None, asked: pl.DataFrame) -> pl.DataFrame:
    """Returns the hosts with the most URLs, the slowest, and those that fail most."""
    every = (
        asked
        if known is None
        else known.join(asked, on="host", how="full", coalesce=True, maintain_order="left_right")
    )
    well_known = every.filter(pl.col("responses") >= _RESPONSES)
    answering = well_known if well_known.height >= _HOSTS else every
    biggest = (
        every.head(MOST_HOSTS)
        if known is not None
        else every.sort("requests", descending=True).head(MOST_HOSTS)
    )
    slow = (
        answering.sort("median_ms", descending=True, nulls_last=True)
        .head(MOST)
        .select("host", is_slow=pl.lit(True))
    )
    failing = every.filter(pl.col("failed") > 0).sort("failed", descending=True).head(MOST)
    chosen = pl.concat([biggest["host"], slow["host"], failing["host"]]).unique()
    found = every.filter(pl.col("host").is_in(chosen.implode())).join(
        slow, on="host", how="left", maintain_order="left"
    )
    return found.with_columns(pl.when("is_slow").then("median_ms").alias("median_ms"))
