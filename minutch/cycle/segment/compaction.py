"""Merges segments in tiers, so that a crawl of years has few of them and copies each page only a
few times.

Segments that lie beside each other are merged as LSM trees do it (`next_merge`): four or more, each
at most twice as large as all newer ones together. So there are at most three for each doubling of
the crawl, and whenever a page is copied, what it is in gets half as large again. All are merged

- when half of what is stored is likely to be superseded, and at least a quarter has come since;
- when the CrawlDb was last asked as long ago as `crawl.compact.retention` says.

A merge that includes the oldest segment asks the CrawlDb, and leaves out what is gone for so long.
Only neighbours are merged, and the merged segment gets a name between theirs, so that the order of
names stays that of fetches: for readers here, and for Nutch. Segments that a round is at, that are
being fetched or parsed or are not in the CrawlDb yet, or have what does not belong there, stay, and
nothing is merged across them. `mergerules` says which records stay, `replaced` how segments take
the place of others.

Source: the tiers are those of RocksDB's universal compaction (options size_ratio, min_merge_width,
max_size_amplification_percent).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration, Settings, prop
from minutch.cycle.segment.mergerules import LAYERS, is_fetch
from minutch.cycle.segment.mergesegs import PAGES, Merging, fetch_times, merged_compression
from minutch.cycle.segment.places import (
    BEGAN,
    TIME_FORMAT,
    Replaces,
    began_with,
    place,
    retire,
    settle,
    time_of,
)
from minutch.cycle.segment.store import CRAWL_FETCH, LAYOUTS, WARC, Segment, segments_in
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.paths import is_local
from minutch.plugin.chains import SCOPE_DEFAULT
from minutch.plugin.urlrules import UrlRules
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import decode_packed
from minutch.terminal import counted
from minutch.work.engine import engine_of
from minutch.work.tables.database import record_estimate
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import NEW, clear, sync_tree, work_folder
from minutch.work.tables.lock import lock
from minutch.work.tables.spans import scan_all

log = logging.getLogger(__name__)

FAN: Final = 4
"""Segments that are merged at least."""
GROWTH: Final = 2
"""How many times as large as all newer ones a segment may be."""
DEAD_SHARE: Final = 0.5
"""What may be superseded, as a share of what is not."""
LEAST_NEW: Final = 0.25
"""What must have come since the oldest segment was made, as a share of that, to merge it."""
MERGED: Final = "segments merged"
MADE: Final = "segments made"
REMOVED: Final = "replaced segments removed"


@dataclass(frozen=True)
class KnownUrls:
    """What compaction needs to know of a CrawlDb."""

    parts: Sequence[Path]
    last_fetch: Callable[[pl.DataFrame], pl.Series]
    """Returns when the pages of entries were fetched last (ms)."""
    has_merged: Callable[[Segment], bool]
    """Tells whether it has a segment's results."""


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """Options of a compaction."""

    leave: Collection[str] = ()
    """Names of segments that others are at."""
    merged: Collection[str] = ()
    """Names of segments that are known to be in the CrawlDb."""
    pages: int | None = None
    """Pages that the CrawlDb has as fetched, where that is known."""


def _milliseconds(conf: Configuration, name: str) -> int:
    return max(0, conf.get_long(name)) * 1000


@dataclass(frozen=True, slots=True)
class CompactSettings(Settings):
    """Properties of a compaction, in milliseconds."""

    retention: int = prop("crawl.compact.retention", _milliseconds)
    grace: int = prop("crawl.compact.grace", _milliseconds)


def compact(
    folder: Path,
    known: KnownUrls | None = None,
    options: CompactOptions = CompactOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Merges the segments in `folder` until they are in tiers, and removes replaced ones; `known`
    is the CrawlDb, if there is one.

    Raises LockedError while another process does so, FormatError for damage, StoreError for a
    folder that is not on a local disk.
    """
    if not is_local(folder):
        raise StoreError(f"segments are merged in tiers on local disks only, not in {folder}")
    with lock(folder):
        settle(folder)
        clear(folder, NEW)
        return Compaction(folder, known, options, context).run()


@dataclass
class Compaction:
    """A compaction of a folder whose lock is held."""

    folder: Path
    known: KnownUrls | None
    options: CompactOptions
    context: JobContext

    def __post_init__(self) -> None:
        self.settings = CompactSettings.from_conf(self.context.conf)
        self.counters = Counters({MERGED: 0, MADE: 0, REMOVED: 0})
        self._has_asked = False

    def run(self) -> Counters:
        """Compacts; returns what was done."""
        self._retire()
        for number, run in enumerate(self._runs()):
            # Only the run with the oldest segment: what a later one drops an older one might still
            # have.
            known = self.known if number == 0 else None
            while (chosen := self._next(run, known)) is not None:
                chosen = range(self._with_room(run, chosen.start, chosen.stop), chosen.stop)
                names = self._names(run[chosen.start : chosen.stop])
                # No second is free between the neighbours: they stay as they are.
                if len(names) < LAYERS:
                    break
                asked = known if chosen.start == 0 else None
                self._has_asked |= asked is not None
                made = self._merge(run[chosen.start : chosen.stop], names, asked)
                run[chosen.start : chosen.stop] = made
        self._retire()
        return self.counters

    def _retire(self) -> None:
        gone = retire(self.folder, self.context.clock.now() - self.settings.grace)
        self.counters.add(REMOVED, len(gone))

    # -- what is merged ----------------------------------------------------------------------------

    def _runs(self) -> list[list[Segment]]:
        """Returns the segments that may be merged with each other, oldest first."""
        found: list[list[Segment]] = [[]]
        folders: set[str] = set()
        for segment in self._mine():
            if segment is None:
                found.append([])
                continue
            here = {name for name in LAYOUTS if segment.has(name)}
            # Neighbours with other folders, such as unparsed ones, would lose those that not all
            # have.
            if found[-1] and here != folders:
                found.append([])
            folders = here
            found[-1].append(segment)
        return found

    def _mine(self) -> Iterator[Segment | None]:
        """Yields the segments, oldest first; None for each that stays as it is."""
        segments = segments_in(self.folder)
        late: set[str] = set()
        if self.known is not None:  # what the CrawlDb has not got it can't judge
            # From the newest: updates come in order, so the first that is merged ends the search.
            for segment in reversed(segments):
                if self._is_closed(segment):
                    if segment.name in self.options.merged or self.known.has_merged(segment):
                        break
                    log.info("%s is left out: updatedb has not been run for it", segment.path)
                    late.add(segment.name)
        for segment in segments:
            yield segment if self._is_closed(segment) and segment.name not in late else None

    def _is_closed(self, segment: Segment) -> bool:
        if segment.name in self.options.leave or time_of(segment.name) is None:
            return False
        if segment.path.parent != self.folder or segment.waits_for() or segment.missing():
            return False
        return all(
            # Whatever else lies there would go with the segment.
            path.name.startswith(".") or path.name in (*LAYOUTS, WARC)
            for path in segment.path.iterdir()
        )

    def _next(self, run: Sequence[Segment], known: KnownUrls | None) -> range | None:
        if not run:
            return None
        sizes = [size_of(segment) for segment in run]
        record = Replaces.of(run[0].path) or Replaces()
        every = range(len(run))
        if known is not None and not self._has_asked:
            time = time_of(run[0].name)
            checked = (
                int(time.timestamp() * 1000) if time and not record.checked else record.checked
            )
            # The CrawlDb is asked with all of them, as a record that goes may be in any.
            if self.context.clock.now() - (checked or 0) >= self.settings.retention:
                return every
        records = [Replaces.of(segment.path) for segment in run[1:]]
        # Layers above have a record that names nothing.
        first = 1 + next((n for n, each in enumerate(records) if each != Replaces()), len(records))
        oldest, newer = sum(sizes[:first]), sum(sizes[first:])  # with the layers that are above it
        if newer >= LEAST_NEW * oldest:
            if self.options.pages is not None and record.pages:
                # Pages of the newer ones, by their size: to count them would be to read them.
                stored = record.pages * sum(sizes) / max(1, oldest)
                is_due = stored >= (1 + DEAD_SHARE) * self.options.pages
            else:
                is_due = newer >= DEAD_SHARE * oldest
            if is_due and len(run) >= FAN:
                return every
        return next_merge(sizes)

    def _with_room(self, run: Sequence[Segment], start: int, stop: int) -> int:
        """Returns where to begin so that there are names between the segments' own: further back,
        where there is a segment each second.
        """
        while start and len(self._names(run[start:stop])) < LAYERS:
            start -= 1
        return start

    def _names(self, members: Sequence[Segment]) -> list[str]:
        """Returns free names for what becomes of segments, ascending: greater than those of older
        segments, less than those of newer ones.
        """
        names = sorted(segment.name for segment in segments_in(self.folder))
        older = [name for name in names if name < members[0].name]
        newer = [name for name in names if name > members[-1].name]
        used = {path.name for path in self.folder.iterdir()}
        records = [Replaces.of(self.folder / name) for name in used]
        # A name in a record hides whatever gets it.
        used.update(chain.from_iterable(record.segments for record in records if record))
        time = time_of(newer[0] if newer else members[-1].name)
        found: list[str] = []
        while time is not None and len(found) < LAYERS:
            # Downwards from the next newer one: older names stay free for merges to come.
            time -= timedelta(seconds=1)
            name = time.strftime(TIME_FORMAT)
            if older and name <= older[-1]:
                break
            if name not in used:
                found.append(name)
        return found[::-1]

    # -- merging -----------------------------------------------------------------------------------

    def _merge(
        self, members: Sequence[Segment], names: Sequence[str], known: KnownUrls | None
    ) -> list[Segment]:
        """Replaces segments by one, and what is above it; returns these."""
        conf, engine = self.context.conf, engine_of(self.context.conf)
        now = self.context.clock.now()
        folders = [name for name in LAYOUTS if members[0].has(name)]
        work = Merging(
            segments=members,
            times=fetch_times(members),
            names=names,
            compressions={name: merged_compression(name, conf) for name in folders},
            rules=UrlRules(
                conf, normalize=False, filtering=False, scope=SCOPE_DEFAULT, keep_on_error=False
            ),
            filters=None,
            slice_size=0,
            of=engine.parts,
            memory=engine.memory,
            entries=known.parts if known else (),
            last_fetch=known.last_fetch if known else None,
            limit=now - self.settings.retention,
        )
        counters = Counters()

        def estimate() -> int:
            return sum(record_estimate(one.parts(name)) for one in members for name in folders)

        with (
            work_folder(self.folder, NEW) as directory,
            self.context.progress("mergesegs", estimate) as progress,
        ):
            written = engine.write(work.write, engine.parts, directory, counters, progress)
            made = work.complete(directory, chain.from_iterable(written))
            _link_archives(members, directory / made[0])
            if members[0].name == segments_in(self.folder)[0].name:
                _keep_beginning(members[0], directory / made[0])
            # On disk before the rename that hides the old segments.
            sync_tree(directory)
            record = Replaces(
                segments=[*self._replaced_by(members), *(one.name for one in members)],
                since=self.context.clock.now(),
                checked=now if known else None,
                pages=counters.get(PAGES, 0),
            )
            place(directory, self.folder, made[0], made[1:], record)
        log.info(
            "%s, %s to %s, merged to %s",
            counted(len(members), "segments"),
            members[0].name,
            members[-1].name,
            " and ".join(made),
        )
        self.counters.add(MERGED, len(members))
        self.counters.add(MADE, len(made))
        return [Segment(self.folder / name) for name in made]

    def _replaced_by(self, members: Sequence[Segment]) -> list[str]:
        """Returns the segments that these have replaced, and that are still there: hidden by
        records that are hidden themselves now.
        """
        records = (Replaces.of(segment.path) for segment in members)
        names = chain.from_iterable(record.segments for record in records if record)
        return [name for name in names if (self.folder / name).is_dir()]


def next_merge(sizes: Sequence[int]) -> range | None:
    """Returns which neighbours, oldest first, are to be merged by size; None if in tiers. Pure."""
    # The newest first: they are small, and copied for little.
    for newest in reversed(range(len(sizes))):
        first, total = newest, sizes[newest]
        while first and sizes[first - 1] <= GROWTH * total:
            first -= 1
            total += sizes[first]
        if newest - first + 1 >= FAN:
            return range(first, newest + 1)
    return None


def size_of(segment: Segment) -> int:
    """Returns the bytes of a segment's records."""
    return sum(
        path.stat().st_size
        for folder in LAYOUTS
        if segment.has(folder)
        for path in (segment.path / folder).rglob("*")
        if path.is_file()
    )


def _keep_beginning(first: Segment, target: Path) -> None:
    """Notes in a merged segment what the first segment of all has fetched, or has noted itself."""
    known = began_with(first.path)
    if known is None:
        tables = scan_all(first.parts(CRAWL_FETCH), CrawlDatum.class_name, decode_packed)
        keys = (decode_keys(table.filter(is_fetch())["key"]).to_list() for table in tables)
        known = list(dict.fromkeys(chain.from_iterable(keys)))
    (target / BEGAN).write_text("".join(f"{url}\n" for url in known), encoding="utf-8")


def _link_archives(members: Sequence[Segment], target: Path) -> None:
    """Gives a merged segment the WARC files of those that it is made of: no copies, the same."""
    files = [path for one in members for path in sorted((one.path / WARC).glob("*"))]
    for path in files:
        (target / WARC).mkdir(exist_ok=True)
        os.link(path, target / WARC / path.name)
