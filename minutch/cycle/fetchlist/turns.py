"""Deals out places where hosts alone are limited, in two readings of what is due: the first holds
24 bytes of each entry, not the entry.

    add       takes in a table: of each entry its row, its rank and a hash of its owner, the host or
              domain that it counts for
    close     gives turns to the entries of each owner, best first; `select.of_turn` makes segments
              of these
    choose    returns the entries of a table with a place, when it comes again
    rest      returns those of equal rank whose place depends on the bytes of their URLs
    go_on     begins again with the next owners, where one reading could not hold those of all

Entries that are over the limit of their owner whatever comes are let go where they are too many;
where that does not suffice, half of the owners are, for another two readings. No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import numpy as np
import polars as pl

from minutch.cycle.fetchlist import select
from minutch.errors import PluginError
from minutch.job import Counters
from minutch.work.engine.interface import TableNumber

_ROW: Final = 96
"""Bytes of memory, about, for an entry while those that are held are sorted, with a share of the
tables that are being read meanwhile.
"""
_LAST: Final = (1 << 64) - 1
_FULL: Final = 0.75
"""The share of the room that may be taken when those over the limit are gone."""


@dataclass
class HostTurns:
    """The turns of all entries, by the owners and limits of `selection`; see above. Tables may be
    added by several threads, in any order; their numbers say which they are.
    """

    selection: select.ListSelection
    room: int
    """Entries that may be held."""
    _first: int = 1
    _last: int = _LAST
    """Owners of this reading."""
    _numbers: dict[TableNumber, int] = field(default_factory=dict)
    _lengths: list[int] = field(default_factory=list)
    _held: list[pl.DataFrame] = field(default_factory=list)
    _rows: int = 0
    _valid: int = 0
    _malformed: int = 0
    _selected: int = 0
    _chosen: dict[int, pl.DataFrame] = field(default_factory=dict)
    _undecided: pl.DataFrame = field(default_factory=pl.DataFrame)
    _open: list[pl.DataFrame] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def within(cls, memory: int, selection: select.ListSelection) -> HostTurns:
        """Holds as many entries as half of these bytes permit."""
        return cls(selection, memory // 2 // _ROW)

    def add(self, place: TableNumber, table: pl.DataFrame) -> None:
        """Takes in the entries of a table."""
        entrants = self.selection.entrants(table)
        is_url = entrants["owner"].is_not_null()
        own = pl.col("owner").is_between(self._first, self._last)
        rows = entrants.with_row_index("row").filter(own)
        with self._lock:
            number = self._numbers.setdefault(place, len(self._numbers))
            rows = rows.with_columns(table=pl.lit(number, pl.UInt32))
            # Counted in the first reading only: later ones have the same tables again.
            if self._first == 1:
                self._lengths.append(len(table))
                self._valid += int(is_url.sum())
                self._malformed += int((~is_url).sum())
            self._held.append(rows)
            self._rows += len(rows)
            if self._rows > self.room:
                self._let_go()

    def _let_go(self) -> None:
        """Drops what is out of reach, and half of the owners if too much is left."""
        rows = self._in_turn()
        # With limits by host within a domain, a turn among all may be beyond reach and yet count.
        if self.selection.is_even:
            turn, limit = pl.col("turn"), pl.col("limit")
            places = limit * self.selection.segments
            # Of the rank of the first one beyond, the bytes of the URLs decide: none may go yet.
            edge = pl.when(turn == places).then("rank").forward_fill()
            rows = rows.filter((limit <= 0) | (turn <= places) | (pl.col("rank") == edge))
        if len(rows) > _FULL * self.room:
            # Owners are hashes, in order: the median halves them.
            self._last = int(rows["owner"][len(rows) // 2])
            rows = rows.filter(pl.col("owner") <= self._last)
        self._held, self._rows = [rows.drop("limit", "turn")], len(rows)
        self.room = max(self.room, int(len(rows) / _FULL))  # where one owner may have as many

    def _in_turn(self) -> pl.DataFrame:
        """Returns what is held by owner, best first, with `limit` and `turn` (from 0)."""
        rows = pl.concat(self._held).filter(pl.col("owner") <= self._last).sort("owner", "rank")
        self._held = []
        owners = rows["owner"].to_numpy()
        starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])
        lengths = np.diff(np.append(starts, len(owners)))
        turns = np.arange(len(owners), dtype=np.uint32)
        turns -= np.repeat(starts.astype(np.uint32), lengths)
        return rows.with_columns(
            self.selection.limits_of(rows), turn=pl.Series(turns).cast(pl.Int64)
        )

    def close(self, counters: Counters) -> None:
        """Decides who gets a place. `counters` gets the owners that have too many entries."""
        if not self._held:  # nothing was added
            return
        rows = self._in_turn()
        if len(self.selection.listed):
            rows = rows.join(self.selection.listed, on="owner", how="left")
            rows = rows.with_columns(select.with_listed()).drop("listed")
        # those of equal rank may be in different segments, as the bytes of their URLs say
        same = [pl.col(name) == pl.col(name).shift() for name in ("owner", "rank")]
        # A number for each run of equal owner and rank.
        tie = pl.all_horizontal(same).not_().fill_null(True).cum_sum().cast(pl.UInt32)
        rows = rows.with_columns(tie=tie).drop("owner", "rank")
        segment, is_first = select.of_turn(self.selection.segments)
        overfull = int(rows.select(is_first.sum()).item())
        if overfull:
            counters.add(select.HOSTS_OVER_LIMIT, overfull)
        rows = rows.with_columns(segment.cast(pl.Int32).alias("segment"))
        ties = rows.filter(~(pl.col("tie").is_first_distinct() & pl.col("tie").is_last_distinct()))
        ties = ties.group_by("tie").agg(pl.col("segment").n_unique(), first=pl.col("turn").min())
        # Where all of a tie are in one segment, their order does not matter.
        ties = ties.filter(pl.col("segment") > 1).select("tie", "first")
        is_open = rows["tie"].is_in(ties["tie"].implode())
        self._undecided = rows.filter(is_open).select("table", "row", "tie", "limit")
        self._undecided = self._undecided.join(ties, on="tie")
        is_chosen = ~is_open & (rows["segment"] > select.NO_PLACE)
        rows = rows.filter(is_chosen).select("table", "row", "segment").sort("table", "row")
        for part in rows.partition_by("table"):
            self._chosen[part["table"][0]] = part.drop("table")

    def choose(self, place: TableNumber, table: pl.DataFrame) -> pl.DataFrame:
        """Returns the entries of a table that have a place, with their `segment`. Raises
        PluginError if it is not the one that was added.
        """
        number = self._numbers[place]
        if len(table) != self._lengths[number]:
            raise PluginError(
                "generate reads the CrawlDb twice, and found other pages due the second time: a URL"
                " filter, scoring filter or schedule does not always answer the same"
            )
        undecided = self._undecided.filter(pl.col("table") == number).sort("row")
        if len(undecided):
            found = table[undecided["row"]]
            self._open.append(found.hstack(undecided.select("first", "tie", "limit")))
        # Each table comes once more: memory falls as places are handed out.
        rows = self._chosen.pop(number, None)
        if rows is None:
            return table.clear().with_columns(segment=pl.lit(None, pl.Int64))
        self._selected += len(rows)
        return table[rows["row"]].with_columns(rows["segment"].cast(pl.Int64))

    def rest(self) -> pl.DataFrame | None:
        """Returns the entries of equal rank that have a place, by URL."""
        if not self._open:
            return None
        rows = pl.concat(self._open).sort("tie", "key")
        turn = pl.col("first") + pl.int_range(pl.len()).over("tie")
        segment, _ = select.of_turn(self.selection.segments)
        rows = rows.with_columns(turn=turn).with_columns(segment.alias("segment"))
        found = rows.filter(pl.col("segment") > select.NO_PLACE)
        self._selected += len(found)
        self._open = []
        return found.drop("first", "tie", "limit", "turn")

    def go_on(self, counters: Counters) -> bool:
        """Begins again, for the next owners; returns False if there are none, and counts what has a
        place and what has none.
        """
        if self._last < _LAST:
            self._first, self._last, self._rows = self._last + 1, _LAST, 0
            return True
        over = self._valid - self._selected
        for reason, count in ((select.MALFORMED, self._malformed), (select.OVER_LIMIT, over)):
            if count:
                counters.add(reason, count)
        counters.add(select.NOT_IN_TOP, 0)
        counters.add(select.SELECTED, self._selected)
        return False
