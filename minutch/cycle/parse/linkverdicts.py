"""Decides about the links of many pages at once: kernels look verdicts up in a table and fill it.

An automaton decides about new links that are plain; the others reach normalizers and
filters, one by one where they are few, else as a column. A property test holds this together with
`outlinks.OutlinkRules.accept`, the rules for single links. Polars is loaded when a column is to be
judged, not before: a process that was copied while Polars has threads is not safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.kernels.outlinks import REJECTED, keep_links, settle, view_urls
from minutch.kernels.seeded import SEED
from minutch.kernels.sieve import ASK, UNKNOWN, sift
from minutch.records.links.outlinkrun import OutlinkRun

if TYPE_CHECKING:
    import polars as pl

    from minutch.urls.plainautomaton import PlainUrlAutomaton

_REMEMBERED: Final = 1 << 17
"""URLs whose verdicts are kept; when there are more, all are forgotten."""
_REMEMBERED_BYTES: Final = 64 << 20
_ROOM: Final = 1 << 16
_FEW: Final = 2048
"""URLs up to which asking one by one costs less than a column, which has a price of its own (some
10 ms).
"""
_LEARNT: Final = 16
"""URLs by which a automaton learns before all are tried again."""


class VerdictTable:
    """URLs and what they are stored as.

    `judge` gives a column of URLs as they are to be stored, null for those that are not.
    `judge_one` does so for one; it is asked where there are few, and about URLs that are not UTF-8.
    `automaton` decides about plain URLs.
    """

    def __init__(
        self,
        judge: Callable[[pl.Series], pl.Series],
        judge_one: Callable[[str], str | None],
        automaton: PlainUrlAutomaton | None = None,
    ) -> None:
        self._judge = judge
        self._judge_one = judge_one
        self._automaton = automaton
        self._clear(_REMEMBERED)

    def _clear(self, capacity: int) -> None:
        self._slots = np.zeros(2 * capacity, np.int32)
        self._hashes = np.empty(capacity, np.uint64)
        self._urls = np.empty((capacity, 2), np.int64)
        self._outs = np.empty((capacity, 2), np.int64)
        self._arena = np.empty(_ROOM, np.uint8)
        self._state = np.zeros(2, np.int64)

    def keep(
        self, pages: Sequence[tuple[str, OutlinkRun]], most: int, longest: int
    ) -> list[OutlinkRun]:
        """Returns the links kept of each page (URL and links): `most` at most, none longer than
        `longest` characters.
        """
        data, table, selves = _laid_out(pages)
        self._make_room(int(table[:, 1].sum()), len(data))
        counts, ends = np.zeros(len(pages), np.int64), np.zeros(len(pages), np.int64)
        kept = np.empty(len(data) + len(data) // 4 + _ROOM, np.uint8)
        settled = int(self._state[0])
        while True:
            columns = self._slots, self._hashes, self._urls, self._outs, self._arena, self._state
            pending = keep_links(
                data, table, selves, most, longest, SEED, *columns, kept, counts, ends
            )
            if not pending:
                break
            if pending < 0:
                kept = np.empty(2 * len(kept), np.uint8)
            if self._state[0] > settled:
                self._settle(settled)
                settled = int(self._state[0])
        return _cut(kept, counts.tolist(), ends.tolist())

    def _make_room(self, links: int, size: int) -> None:
        """Room for so many links and bytes more."""
        if self._state[0] + links > len(self._hashes) or self._state[1] + size > _REMEMBERED_BYTES:
            self._clear(max(_REMEMBERED, 1 << links.bit_length()))
        self._grow(size)

    def _grow(self, size: int) -> None:
        used = int(self._state[1])
        if used + size > len(self._arena):
            larger = np.empty(2 * (used + size), np.uint8)
            larger[:used] = self._arena[:used]
            self._arena = larger

    def _settle(self, first: int) -> None:
        """Finds the verdicts on the URLs from number `first` on."""
        rows = (
            np.arange(first, int(self._state[0]))
            if self._automaton is None
            else self._undecided(self._automaton, first)
        )
        if len(rows) < _FEW:
            self._settle_each(rows.tolist())
            return
        from minutch.kernels.arrow import from_series

        judged = self._judged(rows)
        strings = from_series(judged)
        self._grow(int(strings.views[:, 0].sum(dtype=np.int64)))
        rejected = judged.is_null().to_numpy()
        settle(
            strings.views,
            strings.addresses,
            rejected,
            rows,
            self._urls,
            self._outs,
            self._arena,
            self._state,
        )

    def _settle_each(self, numbers: Sequence[int]) -> None:
        """The same for a few URLs, one by one."""
        for number in numbers:
            judged = self._judged_alone(number)
            if judged is None:
                self._outs[number, 1] = REJECTED
                continue
            self._grow(len(judged))
            used = int(self._state[1])
            self._arena[used : used + len(judged)] = np.frombuffer(judged, np.uint8)
            self._outs[number] = used, len(judged)
            self._state[1] = used + len(judged)

    def _undecided(self, automaton: PlainUrlAutomaton, first: int) -> Any:
        """Returns the numbers of the URLs from `first` on that the automaton does not decide; the
        others are settled.
        """
        said = np.full(int(self._state[0]) - first, UNKNOWN, np.int64)
        rules = (
            automaton.table,
            automaton.verdicts,
            automaton.cuts,
            automaton.squeezes,
            automaton.no_loops,
        )
        while True:
            self._grow(int(self._urls[first : int(self._state[0]), 1].sum()))
            sift(self._arena, self._urls, self._outs, first, said, *rules, self._state)
            missing = np.flatnonzero(said == UNKNOWN)
            if not len(missing):
                return first + np.flatnonzero(said == ASK)
            for row in missing[:_LEARNT]:
                automaton.learn(self._string(self._outs[first + row]))

    def _string(self, place: Any) -> bytes:
        """Returns the string at a place (start and size) of the arena."""
        start, size = place
        data: bytes = self._arena[start : start + size].tobytes()
        return data

    def _judged(self, rows: Any) -> pl.Series:
        """Returns the stored forms of the URLs of these numbers, a Binary column with null for
        rejected ones.
        """
        import polars as pl

        from minutch.kernels.arrow import to_series

        places = self._urls[rows]
        arena = self._arena[places[0, 0] : places[-1].sum()]  # Polars reads all of what it is given
        places[:, 0] -= places[0, 0]
        views = np.empty((len(rows), 4), np.int32)
        view_urls(arena, places, views)
        column = _decoded(to_series("url", views, [arena]))
        judged = self._judge(column).cast(pl.Binary)
        odd = column.is_null().arg_true()
        if len(odd):
            judged = judged.scatter(
                odd, pl.Series([self._judged_alone(rows[row]) for row in odd], dtype=pl.Binary)
            )
        return judged

    def _judged_alone(self, number: int) -> bytes | None:
        result = self._judge_one(decode_text(self._string(self._urls[number])))
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


def _laid_out(pages: Sequence[tuple[str, OutlinkRun]]) -> tuple[Any, Any, Any]:
    """Returns the links of pages as `keep_links` takes them: data, the table of pages, their own
    URLs.
    """
    runs = [run.data for _, run in pages]
    own = [encode_text(url) for url, _ in pages]
    starts, own_starts = (accumulate(map(len, parts), initial=0) for parts in (runs, own))
    rows = zip(starts, [run.length for _, run in pages], own_starts, map(len, own), strict=False)
    table = np.array(list(rows), np.int64).reshape(-1, 4)
    return np.frombuffer(b"".join(runs), np.uint8), table, np.frombuffer(b"".join(own), np.uint8)


def _cut(kept: Any, counts: list[int], ends: list[int]) -> list[OutlinkRun]:
    """Returns the links of each page, of those that stand back to back in `kept`."""
    data = kept[: ends[-1] if ends else 0].tobytes()
    return [
        OutlinkRun(count, data[begin:end])
        for count, (begin, end) in zip(counts, pairwise([0, *ends]), strict=True)
    ]
