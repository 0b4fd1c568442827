"""The table `changes`: one row for each visit of a page that found something else than the visit
before, and what it was.

    new         the page is there for the first time
    changed     its own text is another, by blocks that mean something (`cycle.owntext.revisions`)
    gone        404, 410, or it leads elsewhere for now (`to`)
    moved       it leads elsewhere for good, or is gone while a page that is new since has its text,
                or most of what only it said, and is there still (`to`); that page is no new one
    back        it was gone or moved, and is there again

Asked, but without an answer (robots.txt, errors), and 304 are no change. Where a compaction has
merged segments, the newest version of a page is left: what is there first is not told as new.

Visits of a URL stand side by side in a range of keys that is read from all segments, so memory is
bounded by such a range, and by what has changed. Ranges are read three times: fetches alone, to
choose pages of each site; these pages, to learn the sites' habits; what may have changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import polars as pl

from minutch.cycle.owntext import revisions, worddiff
from minutch.cycle.owntext.frames import MOST, SiteFrames
from minutch.cycle.owntext.parses import parses_between, parts_of
from minutch.cycle.owntext.texts import all_lines, frames_of
from minutch.cycle.segment.places import Replaces
from minutch.cycle.segment.store import CRAWL_FETCH, LAYOUTS, PARSE_DATA, PARSE_TEXT, Segment
from minutch.inspect.query.columns import TIME, statuses, times
from minutch.inspect.query.moves import standing, with_moves
from minutch.inspect.query.pages import FetchRows, is_fetch, outcome, was_asked
from minutch.inspect.query.skipping import Piece, PieceGroup
from minutch.inspect.query.table import Request, SqlColumn, Table
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys, empty
from minutch.work.tables.keyranges import KeyRange, SortedPart, cut

UNCHANGED: Final = "unchanged"
KINDS: Final = ("new", "changed", "gone", "moved", "back", UNCHANGED)
"""UNCHANGED: but for blocks that are muted."""
RANGE_SIZE: Final = 1 << 23
"""Bytes of all segments that are read at a time."""
HISTORY: Final = 8
"""Visits before the first that is asked for, from which habits are learned."""
_MOST_BLOCKS: Final = 500
"""Blocks of a visit that are shown."""
_SITE: Final = r"^([^/]*//[^/?#]*)"
BLOCK: Final = pl.Struct(
    {
        "removed": pl.String(),
        "added": pl.String(),
        "muted": pl.String(),
        "pieces": pl.List(pl.Struct({"op": pl.String(), "words": pl.String()})),
    }
)
"""A block as it was and is, why it is muted (""), and its pieces (`revisions`)."""
EVENTS: Final = pl.Schema(
    {
        "url": pl.String(),
        "host": pl.String(),
        "segment": pl.String(),
        "time": TIME,
        "kind": pl.Enum(KINDS),
        "before": pl.String(),
        "to": pl.String(),
        "words_added": pl.Int64(),
        "words_removed": pl.Int64(),
        "muted": pl.Int64(),
        "blocks": pl.List(BLOCK),
    }
)
_STATES: Final = pl.Enum(["there", "moved", "away", "gone"])
_VISITS: Final = pl.Schema(
    {
        "key": pl.Binary(),
        "of": pl.UInt32(),
        "time": pl.Int64(),
        "state": _STATES,
        "is_read": pl.Boolean(),
        "to": pl.String(),
    }
)


@dataclass(frozen=True)
class Since:
    """Which visits are asked for: those from a time (ms) on, or from a segment of this name on."""

    time: int | None = None
    segment: str = ""

    def mask(self, names: Sequence[str]) -> pl.Expr:
        """Returns whether visits are asked for, by `of` among these segments, and `time`."""
        first = sum(name < self.segment for name in names)
        late = pl.lit(value=True) if self.time is None else pl.col("time") >= self.time
        return (pl.col("of") >= first) & late


class Changes:
    """The changes in a crawl; with the blocks that are muted if these are wanted."""

    def __init__(
        self,
        crawl: Path,
        segments: Sequence[Segment],
        since: Since | None = None,
        *,
        with_muted: bool = False,
    ) -> None:
        self._with_muted = with_muted
        self._crawl = crawl
        self._segments = [one for one in segments if one.has(CRAWL_FETCH)]
        self._names = [segment.name for segment in self._segments]
        self._since = (since or Since()).mask(self._names)
        self._are_merged = pl.Series(
            [
                number
                for number, one in enumerate(self._segments)
                if Replaces.of(one.path) is not None
            ],
            dtype=pl.UInt32,
        )

    @cached_property
    def _fetches(self) -> list[list[SortedPart]]:
        value_class = LAYOUTS[CRAWL_FETCH].value_class
        return [
            [SortedPart(path, value_class) for path in one.parts(CRAWL_FETCH)]
            for one in self._segments
        ]

    @cached_property
    def _parses(self) -> list[tuple[list[SortedPart], list[SortedPart]]]:
        return [
            parts_of(one) if one.has(PARSE_DATA) and one.has(PARSE_TEXT) else ([], [])
            for one in self._segments
        ]

    @cached_property
    def _frames(self) -> SiteFrames:
        return frames_of(self._crawl, self._segments)

    def told(self, events: pl.DataFrame) -> pl.DataFrame:
        """Returns the events that people want to read: neither those that are muted, nor that all
        is new in the first segment.
        """
        first = self._names[0] if self._names else ""
        kind = pl.col("kind").cast(pl.String)
        return events.filter(kind != UNCHANGED, (kind != "new") | (pl.col("segment") != first))

    def events(self) -> pl.DataFrame:
        """Returns the changes, with EVENTS, by segment and URL. Raises FormatError."""
        every = [part for parts in self._fetches for part in parts]
        every += [part for pair in self._parses for parts in pair for part in parts]
        ranges = cut(every, RANGE_SIZE)
        sample, any_gone = self._sample(ranges)
        known = self._habits(ranges, sample)
        found, texts = [empty(EVENTS).drop("host")], []
        for keys in ranges:
            visits = self._visits(keys)
            events = _events(visits, self._since, self._are_merged)
            lines = self._lines(keys, self._wanted(visits, events, any_gone=any_gone))
            if any_gone:
                moving = events.filter(pl.col("kind").is_in(["new", "gone"]))["key"]
                of_moving = lines.filter(pl.col("key").is_in(moving.implode()))
                texts.append(standing(of_moving, known))
            diffs = self._diffs(lines, known, visits)
            found.append(self._told(events, diffs))
        every_event = pl.concat(found)
        every_event = every_event.with_columns(host_names(every_event["url"]).alias("host"))
        moved = with_moves(every_event, pl.concat(texts) if texts else None, self._names)
        return moved.select(pl.col(name).cast(kind) for name, kind in EVENTS.items())

    def _visits(self, keys: KeyRange) -> pl.DataFrame:
        """Returns the visits of a range that had an answer, with _VISITS, oldest first by key."""
        pieces = [
            Piece(segment, {CRAWL_FETCH: parts}, keys)
            for segment, parts in zip(self._segments, self._fetches, strict=True)
        ]
        if not pieces:
            return empty(_VISITS)
        rows = FetchRows.read(PieceGroup(pieces))
        found = rows.frame.select("key", "of", pl.col("fetch_time").alias("time")).with_columns(
            statuses(rows.frame["status"]).alias("status"),
            rows.protocol_status.alias("protocol_status"),
            rows.message(of_redirects=True).alias("to"),
        )
        found = found.filter(is_fetch() & was_asked()).with_columns(outcome().cast(pl.String))
        is_permanent = pl.col("status").cast(pl.String) == "fetch_redir_perm"
        # 401 is fetch_gone in Nutch, but the page may be there.
        refused = pl.col("protocol_status").cast(pl.String).eq_missing("access_denied")
        state = (
            pl.when(pl.col("outcome").is_in(["fetched", "unchanged"]))
            .then(pl.lit("there"))
            .when(pl.col("outcome") == "redirected")
            .then(pl.when(is_permanent).then(pl.lit("moved")).otherwise(pl.lit("away")))
            .when((pl.col("outcome") == "gone") & ~refused)
            .then(pl.lit("gone"))
        )
        found = found.with_columns(
            state=state.cast(_STATES), is_read=pl.col("outcome") == "fetched"
        )
        return found.drop_nulls("state").select(*_VISITS).sort("key", "of", "time")

    def _sample(self, ranges: Sequence[KeyRange]) -> tuple[pl.Series, bool]:
        """Returns the keys of MOST pages of each site that were read several times, whichever
        have the least hashes; and whether any page is gone.
        """
        chosen, any_gone = pl.DataFrame(schema={"key": pl.Binary, "site": pl.UInt64}), False
        for keys in ranges:
            visits = self._visits(keys)
            any_gone |= bool((visits["state"] == "gone").any())
            several = visits.filter("is_read").group_by("key").len().filter(pl.col("len") > 1)
            found = several.select("key", _sites(several["key"]))
            # By hashes: the same pages whatever the ranges are.
            order = pl.col("key").hash().rank("ordinal").over("site")
            chosen = pl.concat([chosen, found]).filter(order <= MOST)
        return chosen["key"], any_gone

    def _habits(self, ranges: Sequence[KeyRange], sample: pl.Series) -> pl.DataFrame:
        """Returns the habits of the sites, by some pages of each. The counts of a site are kept as
        long as ranges may have more of it: keys of a site follow one another.
        """
        counts, found = revisions.added([]), [empty(revisions.HABITS)]
        for keys in ranges if len(sample) else ():
            visits = self._visits(keys)
            visits = visits.filter(pl.col("key").is_in(sample.implode()), "is_read")
            lines = self._lines(keys, visits.select("key", "of", "time"))
            if not len(lines):
                continue
            counts = revisions.added([counts, revisions.counted(worddiff.sides(lines))])
            # The range may end within a site.
            is_last = pl.col("site") == lines["site"][-1]
            found.append(revisions.habits(counts.filter(~is_last)))
            counts = counts.filter(is_last)
        return pl.concat([*found, revisions.habits(counts)])

    def _wanted(
        self, visits: pl.DataFrame, events: pl.DataFrame, *, any_gone: bool
    ) -> pl.DataFrame:
        """Returns the visits whose texts are compared: `key`, `of`, `time`."""
        read = visits.filter("is_read").with_columns(late=self._since)
        read = read.with_columns(
            left=pl.col("late").sum().over("key") + HISTORY,
            nth=pl.int_range(pl.len()).reverse().over("key"),
            several=pl.len().over("key") > 1,
            some=pl.col("late").any().over("key"),
        )
        compared = pl.col("several") & pl.col("some") & (pl.col("nth") < pl.col("left"))
        if any_gone:
            moving = events.filter(pl.col("kind").is_in(["new", "gone"]))["key"]
            compared |= pl.col("key").is_in(moving.implode())
        return read.filter(compared).select("key", "of", "time")

    def _lines(self, keys: KeyRange, wanted: pl.DataFrame) -> pl.DataFrame:
        """Returns the lines of the visits `wanted`, as `worddiff.read` gives them, with `key`."""
        found = []
        for (of,), mine in wanted.group_by("of", maintain_order=True):
            data, texts = self._parses[int(of)]
            if not data:
                continue
            pages = parses_between(data, texts, keys, mine["key"].unique())
            pages = pages.drop_nulls("text").unique("key", keep="last", maintain_order=True)
            found.append(pages.with_columns(of=pl.lit(of, pl.UInt32)))
        pages = (
            pl.concat(found).sort("key", "of")
            if found
            else pl.DataFrame(
                schema={
                    "key": pl.Binary, "url": pl.String, "title": pl.String, "text": pl.String,
                    "marks": pl.Binary, "of": pl.UInt32,
                }
            )
        )  # fmt: skip
        lines = all_lines(self._frames, pages)
        # A segment may have a URL twice, fetched at two times.
        at = wanted.unique(["key", "of"], keep="last", maintain_order=True)
        pages = pages.join(at, on=["key", "of"], how="left", maintain_order="left")
        known = pages.select(
            "key",
            _sites(pages["key"]),
            pl.col("key").hash().alias("page"),
            pl.int_range(pl.len(), dtype=pl.UInt32).over("key").alias("visit"),
            segment="of",
            day=times(pages["time"]).dt.date(),
            title=pl.col("title").hash(),
            row=pl.int_range(pl.len(), dtype=pl.UInt32),
        )
        return worddiff.read(known.join(lines, on="row", maintain_order="left_right"))

    def _diffs(
        self, lines: pl.DataFrame, known: pl.DataFrame, visits: pl.DataFrame
    ) -> pl.DataFrame:
        """Returns what has changed of texts, by `key` and `of`: `blocks` and their numbers."""
        schema = {
            name: EVENTS[name] for name in ("words_added", "words_removed", "muted", "blocks")
        }
        rows: dict[tuple[bytes, int], dict[str, tuple[list[str], list[str]]]] = {}
        if len(lines):
            gone = revisions.judged(worddiff.sides(lines), known)
            late = visits.filter(self._since).select("key", segment="of")
            gone = gone.join(late, on=["key", "segment"], how="semi").sort("key", "segment", "row")
            for key, of, why, side, line in gone.select(
                "key", "segment", pl.col("muted").fill_null(""), "side", "line"
            ).iter_rows():
                rows.setdefault((key, of), {}).setdefault(why, ([], []))[side].append(line)
        found = [
            (key, of, *_blocks(mine, with_muted=self._with_muted))
            for (key, of), mine in rows.items()
        ]
        return pl.DataFrame(
            found, schema={"key": pl.Binary(), "of": pl.UInt32(), **schema}, orient="row"
        )

    def _told(self, events: pl.DataFrame, diffs: pl.DataFrame) -> pl.DataFrame:
        """Returns events with their diffs, and with the changes that have no event."""
        found = events.join(diffs, on=["key", "of"], how="left")
        is_changed = (pl.col("words_added") > 0) | (pl.col("words_removed") > 0)
        kind = (
            pl.when(is_changed)
            .then(pl.lit("changed"))
            .when(pl.col("muted") > 0)
            .then(pl.lit(UNCHANGED))
        )
        found = found.with_columns(kind=pl.coalesce("kind", kind)).drop_nulls("kind")
        names = pl.Series(self._names, dtype=pl.String)
        return found.select(
            decode_keys(found["key"]).alias("url"),
            names.gather(found["of"]).alias("segment"),
            times(found["time"]).alias("time"),
            pl.col("kind").cast(EVENTS["kind"]),
            names.gather(found["last"]).alias("before"),
            "to",
            *(pl.col(name).fill_null(0) for name in ("words_added", "words_removed", "muted")),
            pl.col("blocks").fill_null([]),
        ).sort("segment", "url")


def _sites(keys: pl.Series) -> pl.Series:
    return decode_keys(keys).str.extract(_SITE).fill_null("").hash().alias("site")


def _events(visits: pl.DataFrame, since: pl.Expr, merged: pl.Series) -> pl.DataFrame:
    """Returns the visits that are asked for, with `kind` by what the server said, null where only
    the text can tell; and `last`, the segment of the visit before.
    """
    there = pl.col("state") == "there"
    before = pl.col("of").shift().over("key")
    was, ever = there.shift().over("key"), there.cum_max().shift().over("key").fill_null(False)
    # The first version that a compaction has left is not the first that there was.
    is_known = before.is_null() & pl.col("of").is_in(merged.implode())
    is_moved = pl.col("state") == "moved"
    kind = (
        pl.when(there & ~ever & ~is_known).then(pl.lit("new"))
        .when(there & ever & ~was).then(pl.lit("back"))
        .when(~there & was & is_moved).then(pl.lit("moved"))
        .when(~there & was).then(pl.lit("gone"))
    )  # fmt: skip
    found = visits.with_columns(kind=kind, last=before)
    return found.filter(since).drop("state", "is_read")


def _blocks(
    lines: Mapping[str, tuple[list[str], list[str]]], *, with_muted: bool
) -> tuple[int, int, int, list[dict[str, Any]]]:
    """Returns numbers of words added and removed, how many blocks are muted, and all blocks, of
    the lines that one visit has taken away and brought, by why they are muted ("" if they aren't).
    """
    found: list[dict[str, Any]] = []
    more = less = muted = 0
    for why, (removed, added) in sorted(lines.items()):
        muted += max(len(removed), len(added)) if why else 0
        # Nearly all visits of a site with counters have muted blocks: those are only counted.
        if (why and not with_muted) or worddiff.says_the_same(removed, added):
            continue
        for block in worddiff.blocks(removed, added):
            if not why:
                more, less = more + block.counts[0], less + block.counts[1]
            if len(found) < _MOST_BLOCKS:
                pieces = [{"op": op, "words": words} for op, words in block.pieces]
                found.append(
                    {"removed": block.removed, "added": block.added, "muted": why, "pieces": pieces}
                )
    return more, less, muted, found


class ChangesTable(Table):
    """A table of the changes in a crawl."""

    name = "changes"
    is_derived = True
    columns: ClassVar = {
        **{
            name: SqlColumn(kind, lambda rows, name=name: rows[name])  # type: ignore[misc]
            for name, kind in EVENTS.items()
            if name != "blocks"
        },
        "diff": SqlColumn(pl.String(), lambda rows: _texts(rows["blocks"])),
    }

    def __init__(self, crawl: Path, segments: Sequence[Segment]) -> None:
        self._crawl, self._segments = crawl, segments

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        events = Changes(self._crawl, self._segments).events()
        yield self.make(events.filter(pl.col("kind") != UNCHANGED), request)


def _texts(blocks: pl.Series) -> pl.Series:
    """Returns what has changed as lines, `- …` and `+ …`."""
    found = (
        "\n".join(
            line
            for block in mine
            if not block["muted"]
            for line in worddiff.as_lines(
                [(piece["op"], piece["words"]) for piece in block["pieces"]]
            )
        )
        for mine in blocks
    )
    return pl.Series([text or None for text in found], dtype=pl.String)
