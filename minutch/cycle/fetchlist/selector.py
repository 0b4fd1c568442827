"""Selects entries of a CrawlDb for generate: its options, and its two decisions in one place.

    find_due    the entries that may be fetched, partition by partition (`due`)
    selection   which of them get a place (`select`), with the limits that the HostDb gives
    choose      both, by an engine (`Engine.select`): here, with no more entries in memory than may
                get a place, and without limits with none but those at hand

Nothing is written. generate makes segments of it; explain asks the same about one URL, or about
all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.schedule import AbstractFetchSchedule, fetch_schedule
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.results.fetchresults import followed, logs_in
from minutch.cycle.fetchlist import budget, due, select
from minutch.cycle.fetchlist.allowances import NO_DOUBTS
from minutch.cycle.fetchlist.budget import PatternBudget
from minutch.cycle.fetchlist.hostlimits import Expressions, HostLimits
from minutch.cycle.fetchlist.lists import address_of, keys_in
from minutch.cycle.fetchlist.partition import UrlPartitioner
from minutch.cycle.fetchlist.turns import HostTurns
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import FETCHING, Segment
from minutch.job import Counters, Progress
from minutch.plugin.chains import (
    SCOPE_GENERATE_HOST_COUNT,
    ScoringFilters,
    URLFilters,
    URLNormalizers,
)
from minutch.urls.patterns import Doubts
from minutch.work.engine import Engine, Task
from minutch.work.engine.selection import Ranks
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.parallel import for_each, memory_budget
from minutch.work.tables.recordfiles import scan
from minutch.work.tables.spans import InputSplit

if TYPE_CHECKING:
    from minutch.expressions import Expression

CURRENT_TIME_PROPERTY: Final = "generate.curTime"
HOSTDB_PROPERTY: Final = "generate.hostdb"
LINKDB: Final = "linkdb"
"""The folder beside a CrawlDb that tells who links to its URLs."""
_MS_PER_DAY: Final = 86_400_000


def _no_keys() -> pl.Series:
    return pl.Series("key", [], pl.Binary)


@dataclass(frozen=True, slots=True)
class OpenList:
    """The keys of a segment that is being fetched."""

    listed: pl.Series = field(default_factory=_no_keys)
    """Of its list; they count to the limits of hosts."""
    taken: pl.Series = field(default_factory=_no_keys)
    """These, and what redirects and links have led to."""

    @classmethod
    def of(cls, segment: Segment) -> OpenList:
        """Reads the list and the logs of a fetch, which may be running. Raises FormatError."""
        listed = pl.concat([_no_keys(), *keys_in([segment])])
        # Pages that the fetch was led to are in no list, but asked for all the same.
        found = pl.Series("key", list(followed(logs_in(segment.path / FETCHING))), pl.Binary)
        return cls(listed, pl.concat([listed, found]).unique())


class SelectedEntries(NamedTuple):
    """The entries that get a place, with their `segment` (from 1), in tables that are made as they
    are taken; where there is none, when the next list can be made (ms).
    """

    tables: Iterable[pl.DataFrame]
    next_due: int | None


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """The options of generate."""

    top_n: int = select.NO_LIMIT
    """Pages in each segment, at most."""
    add_days: int = 0
    """Days that pages may be due later than now."""
    filtering: bool = True
    """Whether the URL filters apply."""
    normalize: bool = True
    """Whether URLs are normalized where the pages of a host are counted."""
    max_segments: int = 1
    """Segments that are made, at most."""
    expression: str | None = None
    """Jexl, true for the pages that may be taken; None: all of them."""
    hostdb: Path | None = None
    """The HostDb for generate.max.count.expr and generate.fetch.delay.expr."""
    force: bool = False
    """Whether another process's lock is passed over."""
    busy_hosts: Mapping[str, int] = field(default_factory=dict)
    """Hosts whose pages are left out, since they asked not to be called before so many ms."""
    fetchers: int | None = None
    """Parts of a fetch list, where it is not one process that fetches."""
    into: Path | None = None
    """A segment that is being fetched, to whose list parts are added: of pages that it lacks."""
    least: int = 0
    """Pages that are worth a list: fewer wait until there are so many, or until one of them is late
    by the share `late` of its interval. Pages that were never asked for wait for nothing.
    """
    late: float = 0.0


@dataclass
class Selector:
    """Selects the entries of one run of generate."""

    options: GenerateOptions
    now: int
    """Time (ms) of the run."""
    conditions: due.Conditions
    schedule: AbstractFetchSchedule
    scoring: ScoringFilters
    filters: URLFilters | None
    hostdb: HostDb | None
    expressions: Expressions
    limits: select.SelectionSettings
    explore: int = -1
    """URLs of a new pattern that are tried (`budget`); less than 1: all."""
    doubts: Doubts = NO_DOUBTS
    """Names that seldom lead to new pages."""
    memory: int = 0
    """Bytes that it may take to count them."""
    is_surveyed: bool = False
    hosts: HostLimits | None = None
    """Numbers of the hosts whose pages got a place; known once there are such."""

    @classmethod
    def from_conf(cls, conf: Configuration, options: GenerateOptions, now: int) -> Selector:
        """Reads the properties of generate; `generate.curTime` is used instead of `now`, if set.

        Raises StoreError (no HostDb), ExpressionError, ConfigError.
        """
        now = conf.get_long(CURRENT_TIME_PROPERTY, now)
        # `-adddays`: only what is due is asked as of then.
        at = now + options.add_days * _MS_PER_DAY
        expression = _compiled(options.expression)
        open_list = OpenList() if options.into is None else OpenList.of(Segment(options.into))
        conditions = due.Conditions.from_conf(
            conf,
            now=at,
            expression=expression,
            busy_hosts=options.busy_hosts or {},
            taken=open_list.taken,
            least=options.least,
            late=options.late,
        )
        hostdb = None if options.hostdb is None else HostDb(options.hostdb)
        if hostdb is not None:
            # Before minutes of reading, if there is none.
            hostdb.require_parts()
        return cls(
            options=options,
            now=now,
            conditions=conditions,
            schedule=fetch_schedule(conf),
            scoring=ScoringFilters(conf),
            filters=URLFilters(conf) if options.filtering else None,
            hostdb=hostdb,
            expressions=Expressions() if hostdb is None else Expressions.from_conf(conf),
            limits=select.SelectionSettings.from_conf(
                conf,
                top_n=options.top_n,
                segments=options.max_segments,
                normalizers=URLNormalizers(conf, SCOPE_GENERATE_HOST_COUNT)
                if options.normalize
                else None,
                partitioner=UrlPartitioner.from_conf(conf, address_of),
                listed=open_list.listed,
            ),
            explore=conf.get_int(budget.PROPERTY),
            doubts=Doubts.of(conf),
            memory=memory_budget(conf),
        )

    def survey(self, db: CrawlDb) -> None:
        """Looks at all entries, once, before anything is selected: lets the schedule see them, and
        counts what each pattern has given, if that limits it; who led there says the LinkDb beside
        the CrawlDb. Raises StoreError, FormatError.
        """

        def tables() -> Iterator[pl.DataFrame]:
            return (table for part in db.require_parts() for table in scan(part))

        def links() -> Iterator[pl.DataFrame]:
            linkdb = LinkDb(db.path.parent / LINKDB)
            if linkdb.exists():
                yield from chain.from_iterable(map(linkdb.scan_part, range(len(linkdb.parts()))))

        if self.is_surveyed:
            return
        self.is_surveyed = True
        self.schedule = self.schedule.surveyed(tables, self.conditions.now)
        if self.explore > 0:
            patterns = PatternBudget.of(
                tables,
                db.estimate(),
                self.explore,
                due=lambda table: self.due_in(table).entries,
                pending=lambda table: due.awaits_update(table, self.conditions),
                memory=self.memory,
                links=links,
                doubts=self.doubts,
            )
            self.conditions = replace(self.conditions, patterns=patterns)

    def due_in(self, frame: pl.DataFrame, *, with_others: bool = False) -> due.Due:
        """Returns the entries of `frame` that may be fetched."""
        return due.due(
            frame,
            self.conditions,
            self.schedule,
            self.scoring,
            self.filters,
            with_others=with_others,
        )

    def find_due(
        self, db: CrawlDb, look: Callable[[pl.DataFrame], due.Due] | None = None
    ) -> list[due.Due]:
        """Finds the entries that are due in each stretch of the CrawlDb; `look` is called instead
        of `due_in`. Raises StoreError, FormatError.
        """
        find = look or self.due_in
        self.survey(db)

        def look_into(part: Path) -> list[due.Due]:
            return [find(frame) for frame in scan(part)]

        return list(chain.from_iterable(for_each(look_into, db.require_parts())))

    def choose(
        self, db: CrawlDb, engine: Engine, counters: Counters, progress: Progress
    ) -> SelectedEntries:
        """Returns the entries that get a place; `counters` counts all others, when all are taken.

        Raises StoreError, FormatError.
        """
        self.survey(db)
        pieces = engine.splits(db.require_parts())
        selected = engine.select(self._find, pieces, self, due.SCHEMA, counters, progress)
        # What the engine never read is left out by whichever limit there is.
        counters.add(select.NOT_IN_TOP if self.limit else select.OVER_LIMIT, selected.left)
        tables = (table for table in selected.tables if len(table))
        some, count, least = list[pl.DataFrame](), 0, max(1, self.options.least)
        # Only until it is known that the list is worth it: the rest is taken as it is written.
        while count < least and (table := next(tables, None)) is not None:
            some.append(table)
            count += len(table)
        if count < least:
            # A second reading, in the rare case that it is not.
            later = engine.map(self._later, pieces, Counters(), progress)
            when = due.worth_it_at(some, due.Later.together(later, least), least, self.options.late)
            if when is None or when > self.conditions.now:
                counters.add(due.FEW, count)
                return SelectedEntries([], when)
        if self.hostdb is not None:
            self.hosts = self._limits(self.hostdb)
            return SelectedEntries(_noted(chain(some, tables), self.hosts), None)
        return SelectedEntries(chain(some, tables), None)

    def _find(self, task: Task, piece: InputSplit) -> Iterator[pl.DataFrame]:
        for frame in scan(piece):
            found = self.due_in(frame)
            task.counters.merge(found.counters)
            task.advance(len(frame))
            yield found.entries

    def _later(self, task: Task, piece: InputSplit) -> due.Later:
        """Returns when entries of a place will be due that are not due yet."""
        found = (self.due_in(frame).later for frame in scan(piece))
        return due.Later.together(found, self.options.least)

    # -- the rules by which entries compete for places: `engine.interface.SelectionRules` --

    @property
    def groups(self) -> int:
        """Number of reducers; each deals out its share of the places."""
        return self.limits.reducers

    @property
    def is_open(self) -> bool:
        """True if everything that is due gets a place: there is no topN and no limit per host."""
        return not self.is_limited

    @property
    def limit(self) -> int | None:
        """The places of all segments; None if they have no limit."""
        options = self.options
        if options.top_n < 0 or options.top_n == select.NO_LIMIT:
            return None
        return options.top_n * options.max_segments

    def ranks_in(self, table: pl.DataFrame) -> Ranks:
        """Best first."""
        return select.ranks_in(table)

    def groups_of(self, table: pl.DataFrame) -> pl.Series:
        """Returns the reducer of each entry; all entries of a host have the same."""
        return self.limits.partitioner.parts_of(decode_keys(table["key"]), self.groups)

    def selection(
        self, tables: Sequence[pl.DataFrame], parts: range | None = None
    ) -> select.ListSelection:
        """Starts a selection of some reducers, or of all."""
        hosts = None if self.hostdb is None else self._limits(self.hostdb)
        return select.ListSelection(self.limits, hosts, parts)

    def turns(self, memory: int) -> HostTurns | None:
        """Returns what deals out places by turns where hosts alone are limited."""
        is_endless = self.is_limited and self.options.top_n == select.NO_LIMIT
        return HostTurns.within(memory, self.selection(())) if is_endless else None

    @property
    def is_limited(self) -> bool:
        """True if places are limited, so that a page's place depends on the others."""
        return (
            self.options.top_n != select.NO_LIMIT
            or self.limits.max_count > 0
            or self.expressions.max_count is not None
        )

    def _limits(self, db: HostDb) -> HostLimits:
        parts = range(len(db.require_parts()))
        return HostLimits(lambda: chain.from_iterable(map(db.scan_part, parts)), self.expressions)


def _noted(tables: Iterable[pl.DataFrame], hosts: HostLimits) -> Iterator[pl.DataFrame]:
    """Yields the tables; when all were taken, the numbers of their hosts are read."""
    for table in tables:
        hosts.learn([table])
        yield table
    hosts.read()


def _compiled(expression: str | None) -> Expression | None:
    if expression is None:
        return None
    from minutch.expressions import compile_expression

    return compile_expression(expression)
