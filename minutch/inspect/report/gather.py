"""Gathers the facts of a report from a crawl's files: table by table, each piece by piece.

crawldb      statuses, hosts, due dates; of each URL a number and its status stay in memory
pages        rounds, answers, times; histories of URLs, as many at a time as fit into memory
parses       languages, charsets; which parse of a page is its newest
links        depths, broken links
duplicates   the largest groups
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.places import Replaces
from minutch.cycle.segment.store import CRAWL_FETCH, PARSE_DATA
from minutch.inspect.audit.findings import Rule, audit
from minutch.inspect.query.crawl import CRAWLDB, LINKDB, CrawlFolder
from minutch.inspect.query.ids import ID, places_of_runs
from minutch.inspect.query.pages import OUTCOMES, PagesTable
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.table import Request, Table
from minutch.inspect.report import counts, linkfacts
from minutch.inspect.report.counts import (
    Aggregate,
    EntryCounts,
    FetchCounts,
    GroupCounts,
    batched,
    with_outcomes,
)
from minutch.inspect.report.facts import TABLES, Facts, shaped
from minutch.inspect.report.linkfacts import BrokenLinks, Depths
from minutch.inspect.report.urlhistory import ROW_BYTES, UrlHistories
from minutch.job import Progress
from minutch.urls.urlkeys import url_keys
from minutch.work.tables.recordfiles import scan_all_outlinks

MOST: Final = 100
"""Rows of a list in the facts."""
MOST_HOSTS: Final = 200
_MOST_OTHERS: Final = 5
_RESPONSES, _HOSTS = 3, 10
"""If this many hosts have this many answers, hosts with fewer answers are not called slow."""
_PARSED: Final = {
    "id": pl.UInt64,
    "segment": pl.Int32,
    "charset": pl.Categorical,
    "lang": pl.Categorical,
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
        parsed = self._count_parses()
        self._follow_links(histories, parsed)
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
            self._take_fetches(counted, histories)
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

    def _take_fetches(self, counted: FetchCounts, histories: UrlHistories) -> None:
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
        histories.name_targets(self._spelled_otherwise(histories))
        self._find_chains(histories)

    def _count_parses(self) -> pl.DataFrame:
        """Counts parses, and returns the last one of each URL: `id`, `segment`."""
        numbers = {segment.name: number for number, segment in enumerate(self.segments)}
        status = pl.col("status").cast(pl.String) == "success"
        ended = GroupCounts(
            {"segment": pl.col("segment")},
            parsed=Aggregate(status.cast(pl.Int64)),
            unparsed=Aggregate((~status).cast(pl.Int64)),
        )
        last = [pl.DataFrame(schema=_PARSED)]
        for frame in self._pieces(
            ParsesTable(self.segments), ("segment", "url", "status", "charset", "lang")
        ):
            ended.add(frame)
            number = pl.col("segment").replace_strict(numbers, return_dtype=pl.Int32)
            last.append(
                frame.filter(status).select(
                    ID, number, pl.col("charset", "lang").cast(pl.Categorical)
                )
            )
        parsed = pl.concat(last).unique("id", keep="last", maintain_order=True)
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
        return parsed.select("id", "segment")

    def _spelled_otherwise(self, histories: UrlHistories) -> pl.DataFrame:
        """Returns the targets of redirects that fetched URLs spell otherwise: `to`, and the `id` of
        such a URL.
        """
        seen = histories.seen()["id"].implode()
        strange = histories.redirects().filter(~pl.col("to").is_in(seen))
        wanted, keys = strange["to"].unique().implode(), pl.col("url").map_batches(url_keys).hash()
        targets = [pl.DataFrame(schema={"to": pl.UInt64, "key": pl.UInt64})]
        if len(strange):
            for frame in self._pieces(PagesTable(self.segments), ("redirect_to",)):
                named = frame.select(url="redirect_to").drop_nulls().unique().with_columns(ID)
                named = named.filter(pl.col("id").is_in(wanted))
                targets.append(named.select(to="id", key=keys))
        found = pl.concat(targets).unique("to")
        here = [pl.DataFrame(schema={"id": pl.UInt64, "key": pl.UInt64})]
        if len(found):
            for frame in self._pieces(PagesTable(self.segments), ("url",)):
                known = frame.select(ID, key=keys)
                here.append(known.filter(pl.col("key").is_in(found["key"].implode())))
        known = pl.concat(here).sort("id").unique("key", keep="first")
        return found.join(known, on="key").select("to", "id")

    def _find_chains(self, histories: UrlHistories) -> None:
        redirects = histories.redirects().filter("is_last")
        count, found = linkfacts.longest(redirects, MOST)
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
        """Returns the URLs of ids, of those that were fetched or are redirected to."""
        names: dict[int, str] = {}
        for frame in self._pieces(PagesTable(self.segments), ("url", "redirect_to")):
            urls = pl.concat([frame["url"], frame["redirect_to"].drop_nulls().alias("url")])
            every = urls.to_frame().with_columns(ID)
            names |= {
                one: url
                for url, one in every.filter(pl.col("id").is_in(wanted.implode())).iter_rows()
            }
        return names

    def _follow_links(self, histories: UrlHistories, parsed: pl.DataFrame) -> None:
        """Finds depths and broken links by the links in pages, or, if no segment has them, in the
        LinkDb.
        """
        if self._entries is None:
            return
        seen, whys = histories.seen(), histories.whys()
        denied = seen.filter(pl.col("outcome") == "denied").select("id")
        status = pl.col("status").cast(pl.String)
        gone = self._entries.filter(status == "db_gone").join(
            denied, on="id", how="anti", maintain_order="left"
        )
        failed = whys.filter("is_failed")
        broken = BrokenLinks(pl.concat([gone["id"], failed["id"]]).unique())
        merged = [number for number, one in enumerate(self.segments) if Replaces.of(one.path)]
        began = PagesTable(self.segments).first_asked() if merged else pl.Series(dtype=pl.String)
        depths = Depths(self._entries, seen, began.hash(), merged)
        latest = parsed.select("id", "segment").sort("id")
        ids, newest = latest["id"].to_numpy(), latest["segment"].to_numpy()
        for links in self._links():
            if "number" not in links.columns:
                broken.add(links)
                continue
            if depths.is_whole:
                depths.add_links(links["from"], links["id"], links["number"])
            at, is_latest = places_of_runs(ids, links["from"].to_numpy())
            is_latest[is_latest] = newest[at[is_latest]] == links["number"].to_numpy()[is_latest]
            broken.add(links.filter(pl.Series(is_latest)))
        self.tables["broken"] = broken.table(whys, MOST)
        self.totals |= {"links": broken.links, "broken": broken.addresses}
        if depths.is_whole and "history" in self.tables:
            depths.add_redirects(histories.redirects())
            fetched = self._entries.select(
                status.is_in(["db_fetched", "db_notmodified", "db_duplicate"])
            ).to_series()
            self.tables["depth"] = depths.table(fetched.to_numpy())
            waiting = pl.Series("waiting", depths.waiting(len(self.segments)), pl.Int64)
            self.tables["history"] = self.tables["history"].with_columns(waiting)

    def _links(self) -> Iterator[pl.DataFrame]:
        """Yields links as `from`, `id`, `url`, `from_url`, `anchor`, with the `number` of their
        segment where they come from segments.
        """
        parts = [
            (number, path)
            for number, segment in enumerate(self.segments)
            if segment.has(PARSE_DATA)
            for path in segment.parts(PARSE_DATA)
        ]
        with self._progress("report: links") as progress:
            for frame in self._outlinks(parts) if parts else self._inlinks():
                yield frame.with_columns(
                    pl.col("url").hash().alias("id"), pl.col("from_url").hash().alias("from")
                )
                progress.advance(len(frame))

    def _outlinks(self, parts: Sequence[tuple[int, Path]]) -> Iterator[pl.DataFrame]:
        numbers = pl.Series([number for number, _ in parts], dtype=pl.UInt32)
        for frame in scan_all_outlinks([path for _, path in parts]):
            number = numbers.gather(frame["of"]).alias("number")
            yield frame.select("anchor", number, from_url="key", url="to_url")

    def _inlinks(self) -> Iterator[pl.DataFrame]:
        if LinkDb(self.crawl.path / LINKDB).exists():
            for frame in self.crawl.tables["links"].frames(Request(("url", "from_url", "anchor"))):
                yield frame.with_columns(pl.all().cast(pl.Binary))

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
