"""generate: make segments with the lists of pages that are due, best first.

Every entry of the CrawlDb leaves through one counter: selected, or the reason why not. Where nothing is selected the
job says so, with the reasons, and exits with 1. Entries are read partition by partition; only those that are due stay
in memory. Decisions are made in `select`, orders in `arrange`, parts in `partitioner`.
Matched: org.apache.nutch.crawl.Generator.
"""

from __future__ import annotations

import logging
import random
import socket
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from minutch.arguments import Flag, parse
from minutch.conf import Configuration
from minutch.crawldb.filtering import EntryFilter, decode_keys
from minutch.crawldb.partitions import Entries, number_of_parts, rewrite
from minutch.crawldb.schedule import fetch_schedule
from minutch.crawldb.store import CrawlDb
from minutch.expressions import compile_expression
from minutch.fetchlist.arrange import selector_sizes, shuffle_order
from minutch.fetchlist.fetchlists import FetchListWriter, stamp
from minutch.fetchlist.hosts import domains_of, hosts_of
from minutch.fetchlist.partitioner import UrlPartitioner
from minutch.fetchlist.select import MALFORMED, OVER_LIMIT, Conditions, Due, Quota, due, sort_keys
from minutch.fetchlist.summary import describe
from minutch.formats.javahash import date_to_string
from minutch.job import Counters, JobContext
from minutch.plugin.chains import SCOPE_GENERATE_HOST_COUNT, ScoringFilters, URLFilters, URLNormalizers
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.tables.frame import CRAWLDB_SCHEMA, empty
from minutch.tables.parallel import for_each, memory_budget
from minutch.tables.shuffle import Shuffle

log = logging.getLogger(__name__)

USAGE: Final = """Generator <crawldb> <segments_dir> [-hostdb <hostdb>] [-force] [-topN N] [-numFetchers numFetchers] \
[-expr <expr>] [-adddays <numDays>] [-noFilter] [-noNorm] [-maxNumSegments <num>]
\t-force\tgo past another's lock on the CrawlDb
\t-topN N\tat most N pages in each segment, those with the highest scores
\t-numFetchers numFetchers\tparts of a fetch list; always one in local mode
\t-expr <expr>\tonly pages for which the expression is true, such as "score > 0.5 && status == 'db_unfetched'"
\t-adddays <numDays>\ttake the pages that will be due in so many days
\t-noFilter\tdon't apply URL filters
\t-noNorm\tdon't normalize URLs when counting the pages of a host
\t-maxNumSegments <num>\tmake up to so many segments"""

FLAGS: Final = (
    Flag("-hostdb", value="hostdb"),
    Flag("-force"),
    Flag("-topN", value="N", convert=int),
    Flag("-numFetchers", value="numFetchers", convert=int),
    Flag("-expr", value="expr"),
    Flag("-adddays", value="numDays", convert=int),
    Flag("-noFilter"),
    Flag("-noNorm"),
    Flag("-maxNumSegments", value="num", convert=int),
)

CURRENT_TIME_PROPERTY: Final = "generate.curTime"
UPDATE_PROPERTY: Final = "generate.update.crawldb"
SELECTED: Final = "selected_total"
NOT_IN_TOP: Final = "not_in_top_n_total"
_NO_LIMIT: Final = (1 << 63) - 1
_MS_PER_DAY: Final = 86_400_000
_BLOCK: Final = 50_000  # entries whose hosts are worked out at a time


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, 1 where nothing is due (no segment is made), 255 for an error."""
    given = parse(args, FLAGS, usage=USAGE, least=2, most=2)
    result = generate(
        Path(given.positional[0]),
        Path(given.positional[1]),
        context,
        top_n=given.get("-topN", _NO_LIMIT),
        add_days=given.get("-adddays", 0),
        filtering=not given["-noFilter"],
        normalize=not given["-noNorm"],
        force=given["-force"],
        max_segments=given.get("-maxNumSegments", 1),
        expression=given["-expr"],
        fetchers=given["-numFetchers"],
    )
    context.report("Generator", result.counters)
    return 0 if result.segments else 1


@dataclass(slots=True)
class Generated:
    """The segments that were made, and what became of all entries."""

    segments: list[Path] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)


def generate(
    crawldb: Path,
    segments: Path,
    context: JobContext,
    *,
    top_n: int = _NO_LIMIT,
    add_days: int = 0,
    filtering: bool = True,
    normalize: bool = True,
    force: bool = False,
    max_segments: int = 1,
    expression: str | None = None,
    fetchers: int | None = None,
) -> Generated:
    """Make up to `max_segments` segments in the directory `segments` from the entries of `crawldb` that are due.

    The properties `generate.curTime` (what is due) and `_ngt_` (the mark) stand in for the clock. With `generate.update.crawldb` the selected entries are marked in the
    CrawlDb. Raises StoreError (no CrawlDb), LockedError, ExpressionError, FormatError.
    """
    conf = context.conf
    now = conf.get_long(CURRENT_TIME_PROPERTY, context.clock.now())
    time = conf.get_long(GENERATE_TIME_KEY, now)
    compiled = None if expression is None else compile_expression(expression)
    conditions = Conditions.from_conf(conf, now + add_days * _MS_PER_DAY, compiled)
    db = CrawlDb(crawldb)
    _log_start(filtering, normalize, top_n, expression)
    result = Generated()
    with db.lock(force):
        found = _find_due(db, conf, conditions, context, filtering)
        for part in found:
            result.counters.merge(part.counters)
        selection = _Selection(conf, top_n, max_segments, normalize)
        chosen = selection.choose(found, result.counters)
        if not sum(map(len, chosen)):
            _log_why(result.counters, found)
            return result
        writer = FetchListWriter(segments, _fetchers(conf, fetchers), conf, _address_of, random.getrandbits(32))
        for number in range(1, max_segments + 1):
            lists = [stamp(table.filter(pl.col("segment") == number), time) for table in chosen]
            if any(map(len, lists)):
                result.segments.append(writer.write(lists, context.clock))
                log.info("Generator: segment: %s", result.segments[-1])
        if conf.get_boolean(UPDATE_PROPERTY, False):
            _mark(db, conf, pl.concat([table["key"] for table in chosen]), time, context)
    return result


def _log_start(filtering: bool, normalize: bool, top_n: int, expression: str | None) -> None:
    log.info("Generator: starting")
    log.info("Generator: selecting the best pages that are due")
    log.info("Generator: filtering: %s", str(filtering).lower())
    log.info("Generator: normalizing: %s", str(normalize).lower())
    if top_n != _NO_LIMIT:
        log.info("Generator: topN: %d", top_n)
    if expression is not None:
        log.info("Generator: expr: %s", expression)


def _fetchers(conf: Configuration, asked: int | None) -> int:
    """Parts of a fetch list. In local mode there is one, as one process fetches it."""
    if (conf.get("mapreduce.framework.name") or "local") == "local":
        return 1
    return asked if asked is not None and asked > 0 else max(1, conf.get_int("mapreduce.job.maps", 2))


@lru_cache(maxsize=100_000)
def _address_of(host: str) -> str | None:
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return None


def _find_due(
    db: CrawlDb, conf: Configuration, conditions: Conditions, context: JobContext, filtering: bool
) -> list[Due]:
    """What is due in each partition."""
    schedule, scoring = fetch_schedule(conf), ScoringFilters(conf)
    filters = URLFilters(conf) if filtering else None
    with context.progress("generate") as progress:

        def find(part: int) -> Due:
            pieces = []
            for frame in db.scan_part(part):
                pieces.append(due(frame, conditions, schedule, scoring, filters))
                progress.advance(len(frame))
            return _together(pieces)

        return for_each(find, range(len(db.require_parts())))


def _together(pieces: list[Due]) -> Due:
    counters = Counters()
    for piece in pieces:
        counters.merge(piece.counters)
    nothing = empty(CRAWLDB_SCHEMA).with_columns(sort=pl.lit(None, pl.Float32))
    entries = pl.concat([piece.entries for piece in pieces]) if pieces else nothing
    dates = [piece.next_due for piece in pieces if piece.next_due is not None]
    return Due(entries, counters, min(dates, default=None))


class _Selection:
    """Chooses from what is due as the reducers of Nutch's job do: each has its hosts and its share of the places."""

    def __init__(self, conf: Configuration, top_n: int, max_segments: int, normalize: bool) -> None:
        self.reducers = number_of_parts(conf)
        self.limit = top_n // self.reducers if top_n >= 0 else -(-top_n // self.reducers)
        self.max_segments = max_segments
        self.max_count = conf.get_int("generate.max.count", -1)
        self.by_domain = conf.get("generate.count.mode") == "domain"
        self._normalizers = URLNormalizers(conf, SCOPE_GENERATE_HOST_COUNT) if normalize else None
        self._conf = conf

    def choose(self, found: list[Due], counters: Counters) -> list[pl.DataFrame]:
        """The chosen entries of each reducer, in its order, with their `segment`; `counters` takes in the rest."""
        entries = pl.concat([part.entries for part in found])
        tasks = [len(part.entries) for part in found]
        order = shuffle_order(
            sort_keys(entries["sort"]), tasks, self._parts(entries), self.reducers, selector_sizes(entries)
        )
        chosen = [self._deal(entries, rows, counters) for rows in order]
        selected = sum(map(len, chosen))
        counters.add(NOT_IN_TOP, len(entries) - selected - counters.get(MALFORMED, 0) - counters.get(OVER_LIMIT, 0))
        counters.add(SELECTED, selected)
        return chosen

    def _parts(self, entries: pl.DataFrame) -> np.ndarray:
        """The reducer of each entry. It matters only where places are limited."""
        if self.max_count <= 0 and not 0 <= self.limit < len(entries):
            return np.zeros(len(entries), dtype=np.int64)
        partitioner = UrlPartitioner(self._conf, _address_of)
        return partitioner.parts_of(decode_keys(entries["key"]), self.reducers).to_numpy()

    def _deal(self, entries: pl.DataFrame, rows: np.ndarray, counters: Counters) -> pl.DataFrame:
        quota = Quota(self.limit, self.max_segments, self.max_count)
        blocks = []
        for start in range(0, len(rows), _BLOCK):
            if quota.is_full:
                break
            block = entries[rows[start : start + _BLOCK]]
            segments = pl.Series("segment", quota.deal(self._owners(decode_keys(block["key"]))))
            blocks.append(block.with_columns(segments).filter(segments > 0))
        counters.merge(quota.counters)
        return pl.concat(blocks) if blocks else entries.clear().with_columns(segment=pl.lit(0, pl.Int64))

    def _owners(self, urls: pl.Series) -> pl.Series:
        """The host or domain that each URL counts for, in lower case; null for what is no URL."""
        if self._normalizers is not None:
            urls = self._normalizers.normalize_column(urls)
        owners = hosts_of(urls)
        return (domains_of(owners) if self.by_domain else owners).str.to_lowercase()


def _log_why(counters: Counters, found: list[Due]) -> None:
    log.warning("Generator: 0 records selected for fetching, exiting ...")
    for reason in describe(counters):
        log.warning("Generator: %s", reason)
    dates = [part.next_due for part in found if part.next_due is not None]
    if dates:
        log.warning("Generator: the next page is due at %s", date_to_string(min(dates)))


def _mark(db: CrawlDb, conf: Configuration, selected: pl.Series, time: int, context: JobContext) -> None:
    """Put `_ngt_` into the CrawlDb's entries of the selected URLs, so that the next run leaves them out."""

    def step(frames: tuple[pl.DataFrame, ...]) -> tuple[pl.DataFrame, Counters]:
        entries, marked = frames
        mask = entries["key"].is_in(marked["key"].implode())
        stamped = stamp(entries.filter(mask), time)
        rows = mask.arg_true()
        metadata = entries["metadata"].clone().scatter(rows, stamped["metadata"]) if len(rows) else entries["metadata"]
        return entries.with_columns(metadata=metadata), Counters()

    schema = pl.Schema({"key": pl.Binary()})
    budget = memory_budget(conf) // 4
    with (
        Entries([db], conf, EntryFilter(conf.with_values(_KEEP_ALL))) as old,
        Shuffle(number_of_parts(conf), schema, budget=budget, spill=db.path) as marks,
        context.progress("generate: updating the CrawlDb") as progress,
    ):
        marks.add(selected.to_frame("key"))
        rewrite(db, conf, lambda part: [*old.streams(part), marks.sorted(part)], step, progress)


_KEEP_ALL: Final = {"db.update.purge.404": "false", "db.update.purge.orphans": "false"}
