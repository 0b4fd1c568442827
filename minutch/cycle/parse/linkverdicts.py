"""Decides about the links of many pages at once: kernels look verdicts up in a table that is filled
as they go.

An automaton decides about new links that are plain; the others reach normalizers and
filters, one by one where they are few, else as a column. A property test holds this together with
`outlinks.OutlinkRules.accept`, the rules for single links. Polars is loaded when a column is to be
judged, not before: a process that was copied while Polars has threads is not safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minutch.errors import UrlError
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.kernels.hash import SEED
from minutch.kernels.outlinks import (
    NAMELESS,
    REJECTED,
    Kept,
    PageRuns,
    VerdictTable,
    keep_links,
    settle,
    view_urls,
)
from minutch.kernels.sieve import ASK, UNKNOWN, sift
from minutch.records.links import OutlinkRun

if TYPE_CHECKING:
    import polars as pl

    from minutch.urls.plainautomaton import PlainUrlAutomaton

_REMEMBERED: Final = 1 << 17
"""URLs whose verdicts are kept; when there are more, all are forgotten."""
_REMEMBERED_BYTES: Final = 64 << 20
_ROOM: Final = 1 << 16
_ALONE: Final = 512
"""URLs that are judged one by one before there is an automaton: to build it, and its first steps,
cost some 25 ms, as much as these.
"""
_FEW: Final = 2048
"""URLs up to which asking one by one costs less than a column, which has a price of its own (some
10 ms).
"""
_LEARNT: Final = 16
"""URLs by which an automaton learns before all are tried again."""


class UrlTable:
    """URLs, by their numbers, in a table that kernels look at and add to."""

    def __init__(self) -> None:
        self._clear(_REMEMBERED)

    def _clear(self, capacity: int) -> None:
        self.table = VerdictTable(
            # At most half full, so that runs of taken slots stay short.
            slots=np.zeros(2 * capacity, np.int32),
            hashes=np.empty(capacity, np.uint64),
            urls=np.empty((capacity, 2), np.int64),
            outs=np.empty((capacity, 2), np.int64),
            arena=np.empty(_ROOM, np.uint8),
            state=np.zeros(2, np.int64),
        )

    def __len__(self) -> int:
        return int(self.table.state[0])

    def make_room(self, urls: int, size: int) -> None:
        """Makes room for so many more URLs and bytes; existing ones may be forgotten."""
        if (
            len(self) + urls > len(self.table.hashes)
            or self.table.state[1] + size > _REMEMBERED_BYTES
        ):
            # A batch with more links than the table is given one that holds them.
            self._clear(max(_REMEMBERED, 1 << urls.bit_length()))
        self.grow(size)

    def grow(self, size: int) -> None:
        """Makes room for so many more bytes in the arena."""
        used = int(self.table.state[1])
        if used + size > len(self.table.arena):
            # Doubled: growing by what is missing would copy the arena for each batch.
            larger = np.empty(2 * (used + size), np.uint8)
            larger[:used] = self.table.arena[:used]
            self.table = self.table._replace(arena=larger)

    def string(self, place: Any) -> bytes:
        """Returns the string at a place (start and size) of the arena."""
        start, size = place
        data: bytes = self.table.arena[start : start + size].tobytes()
        return data

    def url(self, number: int) -> str:
        """Returns a URL."""
        return decode_text(self.string(self.table.urls[number]))


class SiteVerdicts(UrlTable):
    """URLs up to the end of the host, and the numbers of their sites."""

    def __init__(self, ignored: int, site_of: Callable[[str], str]) -> None:
        """`ignored` are flags of the links that go (`kernels.outlinks`); `site_of` raises UrlError
        for what is no URL.
        """
        super().__init__()
        self.ignored = ignored
        self._site_of = site_of

    def _clear(self, capacity: int) -> None:
        super()._clear(capacity)
        # Numbers of sites stand in the table that is cleared: they begin anew together.
        self._numbers, self._settled = {"": NAMELESS}, 0

    def settle(self) -> None:
        """Finds the sites of the URLs that are new."""
        for number in range(self._settled, len(self)):
            try:
                site = self._site_of(self.url(number))
            except UrlError:
                self.table.outs[number, 1] = REJECTED
            else:
                self.table.outs[number, 1] = self._numbers.setdefault(site, len(self._numbers))
        self._settled = len(self)


class LinkVerdicts(UrlTable):
    """URLs, and the form in which each is stored.

    `judge` gives a column of URLs as they are to be stored, null for those that are not.
    `judge_one` does so for one; it is asked where there are few, and about URLs that are not UTF-8.
    What `make_automaton` makes decides about plain URLs, once there were more than a few. `sites`
    are for rules about two URLs.
    """

    def __init__(
        self,
        judge: Callable[[pl.Series], pl.Series],
        judge_one: Callable[[str], str | None],
        make_automaton: Callable[[], PlainUrlAutomaton | None] = lambda: None,
        sites: SiteVerdicts | None = None,
    ) -> None:
        super().__init__()
        self._judge = judge
        self._judge_one = judge_one
        self._make_automaton = make_automaton
        self._has_automaton = False
        self._sites = sites

    def keep(
        self, pages: Sequence[tuple[str, OutlinkRun]], most: int, longest: int
    ) -> list[tuple[OutlinkRun, int, int]]:
        """Returns the links kept of each page (URL and links), `most` at most, none longer than
        `longest` characters, and the numbers of those that were not looked at, and that were left
        out since they leave the site.
        """
        laid_out = _laid_out(pages)
        size, links = len(laid_out.data), int(laid_out.rows[:, 1].sum())
        # Once, up front: a table cleared while kernels go through the links would lose their
        # numbers.
        self.make_room(links, size)
        sites = self._sites
        if sites is not None:
            sites.make_room(links + len(pages), size + len(laid_out.selves))
        counts, ends, unread, external = np.zeros((4, len(pages)), np.int64)
        # Normalizers may make links longer; a quarter more is hardly ever too little.
        kept = Kept(np.empty(size + size // 4 + _ROOM, np.uint8), counts, ends, unread, external)
        settled = len(self)
        # The kernel puts down all URLs without a verdict; they are judged together, then it
        # begins anew.
        while True:
            rule = (0, self.table) if sites is None else (sites.ignored, sites.table)
            pending = keep_links(laid_out, most, longest, rule[0], SEED, self.table, rule[1], kept)
            if not pending:
                break
            # The room for what is kept was too small.
            if pending < 0:
                kept = kept._replace(data=np.empty(2 * len(kept.data), np.uint8))
            if sites is not None:
                sites.settle()
            if len(self) > settled:
                self._settle(settled)
                settled = len(self)
        runs = _cut(kept.data, counts.tolist(), ends.tolist())
        return list(zip(runs, unread.tolist(), external.tolist(), strict=True))

    @cached_property
    def _automaton(self) -> PlainUrlAutomaton | None:
        return self._make_automaton()

    def _settle(self, first: int) -> None:
        """Finds the verdicts on the URLs from number `first` on."""
        # Once built it stays, though the table is cleared.
        self._has_automaton |= len(self) > _ALONE
        automaton = self._automaton if self._has_automaton else None
        rows = (
            np.arange(first, len(self)) if automaton is None else self._undecided(automaton, first)
        )
        if len(rows) < _FEW:
            self._settle_each(rows.tolist())
            return
        from minutch.kernels.arrow import from_series

        judged = self._judged(rows)
        strings = from_series(judged)
        self.grow(int(strings.views[:, 0].sum(dtype=np.int64)))
        rejected = judged.is_null().to_numpy()
        settle(strings.column, rejected, rows, self.table)

    def _settle_each(self, numbers: Sequence[int]) -> None:
        """The same for a few URLs, one by one."""
        for number in numbers:
            judged = self._judged_alone(number)
            if judged is None:
                self.table.outs[number, 1] = REJECTED
                continue
            self.grow(len(judged))
            used = int(self.table.state[1])
            self.table.arena[used : used + len(judged)] = np.frombuffer(judged, np.uint8)
            self.table.outs[number] = used, len(judged)
            self.table.state[1] = used + len(judged)

    def _undecided(self, automaton: PlainUrlAutomaton, first: int) -> Any:
        """Returns the numbers of the URLs from `first` on that the automaton does not decide; the
        others are settled.
        """
        said = np.full(len(self) - first, UNKNOWN, np.int64)
        while True:
            # What the automaton accepts is stored as it came, so it has that size.
            self.grow(int(self.table.urls[first : len(self), 1].sum()))
            sift(first, said, automaton.rules, self.table)
            missing = np.flatnonzero(said == UNKNOWN)
            if not len(missing):
                return first + np.flatnonzero(said == ASK)
            # The steps that a few links need decide most of the others.
            for row in missing[:_LEARNT]:
                automaton.learn(self.string(self.table.outs[first + row]))

    def _judged(self, rows: Any) -> pl.Series:
        """Returns the stored forms of the URLs of these numbers, a Binary column with null for
        rejected ones.
        """
        import polars as pl

        from minutch.kernels.arrow import to_series

        places = self.table.urls[rows]
        arena = self.table.arena[
            places[0, 0] : places[-1].sum()
        ]  # Polars reads all of what it is given
        places[:, 0] -= places[0, 0]
        views = np.empty((len(rows), 4), np.int32)
        view_urls(arena, places, views)
        column = _decoded(to_series("url", views, [arena]))
        judged = self._judge(column).cast(pl.Binary)
        # URLs that are not UTF-8 have no place in a column of strings.
        odd = column.is_null().arg_true()
        if len(odd):
            judged = judged.scatter(
                odd, pl.Series([self._judged_alone(rows[row]) for row in odd], dtype=pl.Binary)
            )
        return judged

    def _judged_alone(self, number: int) -> bytes | None:
        result = self._judge_one(self.url(number))
        return None if result is None else encode_text(result)


def _decoded(urls: pl.Series) -> pl.Series:
    """Returns a Binary column as strings, null for what is not UTF-8."""
    import polars as pl

    try:
        return urls.cast(pl.String)
    except pl.exceptions.ComputeError:
        return pl.Series(urls.name, [_utf8(url) for url in urls], dtype=pl.String)


def _utf8(url: bytes) -> str | None:
    try:
        return url.decode()
    except UnicodeDecodeError:
        return None


def _laid_out(pages: Sequence[tuple[str, OutlinkRun]]) -> PageRuns:
    """Returns the links of pages as `keep_links` takes them."""
    runs = [run.data for _, run in pages]
    own = [encode_text(url) for url, _ in pages]
    starts, own_starts = (accumulate(map(len, parts), initial=0) for parts in (runs, own))
    rows = zip(starts, [run.length for _, run in pages], own_starts, map(len, own), strict=False)
    table = np.array(list(rows), np.int64).reshape(-1, 4)
    data, selves = (np.frombuffer(b"".join(parts), np.uint8) for parts in (runs, own))
    return PageRuns(data, table, selves)


def _cut(kept: Any, counts: list[int], ends: list[int]) -> list[OutlinkRun]:
    """Returns the links of each page, of those that stand back to back in `kept`."""
    data = kept[: ends[-1] if ends else 0].tobytes()
    return [
        OutlinkRun(count, data[begin:end])
        for count, (begin, end) in zip(counts, pairwise([0, *ends]), strict=True)
    ]
