"""What generate takes of a CrawlDb: the options it is given, and its two steps, put together in one place.

    find_due    the entries that may be fetched, partition by partition (`due`)
    selection   which of them get a place (`select`), with the limits that the HostDb gives
    choose      both, with no more entries in memory than may get a place (`window`)

Nothing is written. generate makes segments of it; explain asks the same about one URL, or about all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import polars as pl

from minutch.conf import Configuration
from minutch.crawldb.schedule import fetch_schedule
from minutch.crawldb.store import CrawlDb
from minutch.fetchlist import due, select
from minutch.fetchlist.hostlimits import Expressions, HostLimits, due_hosts
from minutch.fetchlist.lists import address_of
from minutch.fetchlist.window import LAST, Place, Window
from minutch.hostdb.store import HostDb
from minutch.job import Counters
from minutch.plugin.chains import ScoringFilters, URLFilters
from minutch.records.hostdatum_columns import HOSTDB_SCHEMA
from minutch.tables.crawldata import scan
from minutch.tables.frame import decode_keys, empty
from minutch.tables.parallel import for_each, memory_budget, number_of_parts

if TYPE_CHECKING:
    from minutch.expressions import Expression

CURRENT_TIME_PROPERTY: Final = "generate.curTime"
HOSTDB_PROPERTY: Final = "generate.hostdb"
_MS_PER_DAY: Final = 86_400_000


_ROOM: Final = 4
_MORE_ROOM: Final = 200_000
"""So many times the places there are, and some more, compete at a time, if memory does not allow for more: the shares
of reducers may differ much."""
_ROW_BYTES: Final = 150
"""What an entry that competes takes of memory, about; its strings lie in files."""

T = TypeVar("T")


class Look(NamedTuple):
    """What a stretch of the CrawlDb has: how many entries are due, why others are not, when the first of those is."""

    due: int
    counters: Counters
    next_due: int | None  # ms


class Chosen(NamedTuple):
    """The entries that get a place, with their `segment` (from 1); when the first of the others will be due (ms)."""

    entries: pl.DataFrame
    next_due: int | None


@dataclass(frozen=True, slots=True)
class Options:
    """What generate is asked for on its command line, as far as it decides which pages are taken."""

    top_n: int = select.NO_LIMIT
    add_days: int = 0
    filtering: bool = True
    normalize: bool = True
    max_segments: int = 1
    expression: str | None = None
    hostdb: Path | None = None


class Choice:
    """The choice of one run at `now` (ms), for which the property `generate.curTime` may stand.

    Raises StoreError (no HostDb), ExpressionError, ConfigError.
    """

    def __init__(self, conf: Configuration, options: Options, now: int) -> None:
        self.options = options
        self.now = conf.get_long(CURRENT_TIME_PROPERTY, now)
        at = self.now + options.add_days * _MS_PER_DAY
        self.conditions = due.Conditions.from_conf(conf, at, _compiled(options.expression))
        self._conf = conf
        self._hostdb = None if options.hostdb is None else HostDb(options.hostdb)
        if self._hostdb is not None:
            self._hostdb.require_parts()
        self._expressions = Expressions() if self._hostdb is None else Expressions.from_conf(conf)
        self.schedule, self.scoring = fetch_schedule(conf), ScoringFilters(conf)
        self.filters = URLFilters(conf) if options.filtering else None
        self.hosts: HostLimits | None = None
        """What the HostDb says of the hosts that have pages due; known once there is a `selection`."""

    def due_in(self, frame: pl.DataFrame, *, with_others: bool = False) -> due.Due:
        """What of `frame` may be fetched."""
        return due.due(frame, self.conditions, self.schedule, self.scoring, self.filters, with_others=with_others)

    def find_due(self, db: CrawlDb, look: Callable[[pl.DataFrame], due.Due] | None = None) -> list[due.Due]:
        """What is due in each stretch of the CrawlDb; `look` stands for `due_in`. Raises StoreError, FormatError."""
        find = look or self.due_in
        return self._each(db, lambda place, frame: find(frame))

    @staticmethod
    def _each(db: CrawlDb, look: Callable[[Place, pl.DataFrame], T]) -> list[T]:
        """`look` at each stretch of the CrawlDb, with its place in it."""

        def look_into(part: tuple[int, Path]) -> list[T]:
            return [look((part[0], number), frame) for number, frame in enumerate(scan(part[1]))]

        return list(chain.from_iterable(for_each(look_into, enumerate(db.require_parts()))))

    def choose(self, db: CrawlDb, counters: Counters, advance: Callable[[int], None]) -> Chosen:
        """The entries that get a place; `counters` has the number of all others, `advance` is told of entries read.

        Raises StoreError, FormatError.
        """
        window = Window(0, self._room())
        seen = self._each(db, partial(self._look, window, advance))
        tables, total = window.tables(), sum(look.due for look in seen)
        for look in seen:
            counters.merge(look.counters)
        selection = self.selection(tables)
        chosen, dealt = [selection.choose(tables, counters, total)], sum(map(len, tables))
        while window.last < LAST and not selection.is_full:
            window = Window(window.last + 1, self._room())
            self._each(db, partial(self._look, window, _nothing))
            tables = window.tables()
            chosen.append(selection.choose(tables, counters, total))
            dealt += sum(map(len, tables))
        counters.add(select.NOT_IN_TOP, total - dealt)
        return Chosen(
            pl.concat(chosen), min((look.next_due for look in seen if look.next_due is not None), default=None)
        )

    def _look(self, window: Window, advance: Callable[[int], None], place: Place, frame: pl.DataFrame) -> Look:
        found = self.due_in(frame)
        window.add(place, found.entries)
        advance(len(frame))
        return Look(len(found.entries), found.counters, found.next_due)

    def _room(self) -> int:
        """How many entries compete at a time: all, if each may get a place."""
        options = self.options
        if options.top_n < 0 or options.top_n == select.NO_LIMIT or self._hostdb is not None:
            return select.NO_LIMIT
        room = _ROOM * options.top_n * options.max_segments + _MORE_ROOM
        return max(room, memory_budget(self._conf) // 4 // _ROW_BYTES)

    def selection(self, found: Sequence[pl.DataFrame]) -> select.Selection:
        """Who gets a place among the entries that were found to be due."""
        self.hosts = None if self._hostdb is None else self._limits(self._hostdb, found)
        return select.Selection(
            self._conf,
            top_n=self.options.top_n,
            segments=self.options.max_segments,
            normalize=self.options.normalize,
            reducers=number_of_parts(self._conf),
            resolve=address_of,
            hosts=self.hosts,
        )

    @property
    def is_limited(self) -> bool:
        """Whether places are limited, so that it depends on the others whether a page gets one."""
        most = self._conf.get_int("generate.max.count", -1)
        return self.options.top_n != select.NO_LIMIT or most > 0 or self._expressions.max_count is not None

    def _limits(self, db: HostDb, found: Sequence[pl.DataFrame]) -> HostLimits:
        """What the HostDb says of the hosts that have pages due. Raises FormatError."""
        parts = range(len(db.require_parts()))
        names = [due_hosts(decode_keys(table["key"])).drop_nulls().unique() for table in found]
        wanted = pl.concat([pl.Series("host", [], pl.String), *names]).unique()
        frames: Iterator[pl.DataFrame] = chain([empty(HOSTDB_SCHEMA)], *(db.scan_part(part) for part in parts))
        return HostLimits.of(frames, self._expressions, wanted, self._conf)


def _nothing(rows: int) -> None:
    """Entries that are read again are not told of."""


def _compiled(expression: str | None) -> Expression | None:
    if expression is None:
        return None
    from minutch.expressions import compile_expression

    return compile_expression(expression)
