"""Replays the visits in archives as if they were responses to a fetch, and writes their records to
segments.

    visit ─ wanted? ─ robots.txt → content only
                    ├ same content as another visit → deferred until all are known
                    └ response → interpreted by protocol-archive → crawl_fetch, content;
                                 the target of a redirect is linked

Every visit ends in one counter.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.decisions import RedirectRules, ending, redirect_datum
from minutch.cycle.fetch.results.closing import close_segment, stored_codec
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part
from minutch.cycle.fetch.results.recorder import FetchOutcome, Recorder
from minutch.cycle.fetch.settings import FetchSettings, RedirectSettings
from minutch.cycle.segment.places import place_together, segment_name
from minutch.cycle.segment.store import Segment
from minutch.errors import UrlError
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, Progress
from minutch.mediatypes import essence
from minutch.plugin.chains import SCOPE_FETCHER, URLFilters, URLNormalizers
from minutch.records import crawldatum as status
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import RESPONSE_CODE_KEY
from minutch.records.protocol import Content, ProtocolStatus
from minutch.urls.domains import choose_representative
from minutch.urls.parts import host_of, parse
from minutch.urls.robots import HOST_FILES
from minutch.warc.reading.archivefiles import (
    ArchiveFile,
    CdxjLine,
    IndexFile,
    OpenArchives,
    entries_of,
)
from minutch.warc.reading.archiveprotocol import Replays, content_limit, replays
from minutch.warc.reading.bytesource import RecordPosition
from minutch.warc.reading.recordreader import MOST_SAID
from minutch.warc.reading.visitindex import VisitIndex, resolved
from minutch.warc.reading.visits import Visit, VisitKind
from minutch.work.tables.install import NEW, make_directory, mark_success, remove, work_folder

# Writes visits to new segments: the first visit to each URL goes into the first segment, the
# second visit into the second segment, and so on.
#
# So a segment has each URL once, as after a fetch, and no visit is lost; `mergesegs` merges them
# into one, with the newest visits. Records go to a fetch log, which is sorted on disk at the end,
# as in a fetch. All segments of an import appear at once.

MOST: Final = 200
"""Maximum number of segments, all of which are open at the same time."""
_LOG: Final = "_fetch"
_PARTS: Final = (Part.FETCH, Part.CONTENT)


@dataclass(slots=True)
class NewSegment:
    """A segment that is being written."""

    segment: Segment
    recorder: Recorder
    log: FetchLog
    pages: int = 0

    def add(self, frame: Frame) -> None:
        """Adds the records of a visit."""
        self.log.append(frame)
        self.pages += 1


class NewSegments:
    """The segments that are being written, in a work folder beside their destination."""

    def __init__(self, work: Path, parent: Path, conf: Configuration, now: int) -> None:
        self.work, self._parent, self._conf, self._now = work, parent, conf, now
        settings = FetchSettings.of(conf, now)
        self._settings = replace(settings, parse=False, store_content=True)
        self._components = FetchComponents(conf)
        self._names = _free_names(parent, now)
        self._segments: list[NewSegment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def number(self, number: int) -> NewSegment | None:
        """Returns the segment of a number, which counts from 0; None if that is too high."""
        if number >= MOST:
            return None
        while len(self._segments) <= number:
            self._segments.append(self._make(next(self._names)))
        return self._segments[number]

    def _make(self, name: str) -> NewSegment:
        segment = Segment(self.work / name)
        (segment.path / _LOG).mkdir(parents=True)
        recorder = self._components.recorder(name, self._settings)
        codec = stored_codec(self._settings.form.compression)
        return NewSegment(segment, recorder, FetchLog(segment.path / _LOG / "log-0", codec))

    def finish(self, job: str, counters: Mapping[str, int]) -> list[Path]:
        """Closes all segments and moves them to their destination, recorded as the result of `job`;
        returns their paths in order.
        """
        for each in self._segments:
            each.log.close()
            close_segment(each.segment, [each.log.path], _PARTS, self._settings.form, 0)
            remove(each.segment.path / _LOG)
            mark_success(self._conf, each.segment.path)
        return place_together(self.work, self._parent, job, counters)

    def discard(self) -> None:
        """Closes open files; the work folder is removed with its contents."""
        for each in self._segments:
            each.log.close()


@contextmanager
def new_segments(parent: Path, conf: Configuration, now: int) -> Iterator[NewSegments]:
    """Opens new segments in `parent`, named after `now` (ms) and the following seconds. They remain
    only if `finish` is called.
    """
    make_directory(parent)
    with work_folder(parent, NEW) as work:
        segments = NewSegments(work, parent, conf, now)
        try:
            yield segments
        finally:
            segments.discard()


def _free_names(parent: Path, now: int) -> Iterator[str]:
    time = datetime.fromtimestamp(now / 1000)
    while True:
        name = segment_name(int(time.timestamp() * 1000))
        if not (parent / name).exists():
            yield name
        time += timedelta(seconds=1)


# Decides which visits of an archive are wanted: by host, media type, status and time. The only
# module that does. Pure: no I/O.
#
#     -host example.org       a host, or `*.example.org`: it and all hosts below it
#     -mime text/html         the media type that the response declares, or `text/*`
#     -status 200             a status, or `3xx`
#     -from, -to              times: 2012, 201201, 2012-01-31, 20120131120000,
#                             2012-01-31T12:00:00Z; -to includes all of the period
#
# Of each option that is given, one value must match.

EVER: Final = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class VisitFilter:
    """A filter of visits. Times are in ms, both ends are included."""

    hosts: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    first: int = -EVER
    last: int = EVER

    def matches_target(self, url: str, time: int) -> bool:
        """Returns whether a visit to `url` at `time` may be wanted."""
        if not self.first <= time <= self.last:
            return False
        return not self.hosts or any(_is_host(host_of(url) or "", wanted) for wanted in self.hosts)

    def matches_answer(self, status: int, media_type: str) -> bool:
        """Returns whether a response is wanted."""
        if self.statuses and not any(
            _is_status(f"{status:03}", wanted) for wanted in self.statuses
        ):
            return False
        declared = essence(media_type)
        return not self.types or any(
            declared.startswith(wanted[:-1]) if wanted.endswith("/*") else declared == wanted
            for wanted in self.types
        )

    def matches(self, visit: Visit) -> bool:
        """Returns whether a visit with a known response is wanted."""
        return self.matches_target(visit.url, visit.time) and self.matches_answer(
            visit.status, media_type(visit)
        )


def media_type(visit: Visit) -> str:
    """Returns the media type that a response declares."""
    for line in [] if visit.answer is None else visit.answer.head[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            return value.decode("latin-1").strip()
    return visit.media_type


def _is_host(host: str, wanted: str) -> bool:
    if wanted.startswith("*."):
        return host == wanted[2:] or host.endswith(wanted[1:])
    return host == wanted


def _is_status(status: str, wanted: str) -> bool:
    return all(w in ("x", c) for c, w in zip(status, wanted, strict=True))


log = logging.getLogger(__name__)

VISITS: Final = "visits"
_CODE: Final = Text(RESPONSE_CODE_KEY)
NOT_WANTED: Final = "not selected"
FILTERED: Final = "filtered"
OTHER_METHOD: Final = "responses to other requests than GET"
UNRESOLVED: Final = "revisits of missing visits"
TOO_MANY: Final = "more visits to a URL than segments"
NO_VISIT: Final = "records that are no pages (warcinfo, metadata)"
DAMAGED: Final = "damaged places"
UNDATED: Final = "records without a date"
BESIDE: Final = (NO_VISIT, DAMAGED, UNDATED)
"""Counters that are not results of visits."""
NOWHERE: Final = "index lines without a record"
_HEAD_ROOM: Final = 1 << 20
_MOST: Final = 0x7FFF_FFFF


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of imports of archives."""

    wanted: VisitFilter = field(default_factory=VisitFilter)
    """Filter of the visits to import."""
    normalize: bool = False
    """Apply URL normalizers."""
    filter: bool = False
    """Apply URL filters."""
    folders: tuple[Path, ...] = ()
    """Folders of the archives that CDXJ files refer to, besides their own."""


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """The configuration of a replay: its plugins and limits."""

    protocol: Replays
    normalizers: URLNormalizers
    filters: URLFilters
    redirects: RedirectRules
    interval: int
    """Fetch interval of pages, in seconds."""
    record_limit: int
    """Bytes of a record that are read."""

    @classmethod
    def from_conf(cls, conf: Configuration) -> ReplaySettings:
        """Reads the configuration, one of `as_archived`."""
        normalizers, filters = URLNormalizers(conf, SCOPE_FETCHER), URLFilters(conf)
        limit = content_limit(conf)
        return cls(
            replays(conf),
            normalizers,
            filters,
            RedirectRules(RedirectSettings.from_conf(conf), normalizers.normalize, filters.filter),
            conf.get_int("db.fetch.interval.default"),
            _MOST if limit < 0 else min(_MOST, limit + _HEAD_ROOM),
        )


class Replayer:
    """A writer of visits into segments, one for each import."""

    def __init__(
        self,
        segments: NewSegments,
        index: VisitIndex,
        settings: ReplaySettings,
        options: ImportOptions,
        describe: Callable[[Visit, Content], None] | None = None,
    ) -> None:
        """`describe` adds to the metadata of pages."""
        self._segments, self._index = segments, index
        self._settings, self._options, self._describe = settings, options, describe
        self.counters = Counters({VISITS: 0})

    def take(self, archives: Iterable[ArchiveFile | IndexFile], progress: Progress) -> None:
        """Replays all visits of all archives."""
        for archive in archives:
            log.info("reading %s", archive.path)
            if isinstance(archive, ArchiveFile):
                self._read(archive, progress)
            else:
                self._look_up(archive, progress)
        self._replay_deferred(progress)

    def _read(self, archive: ArchiveFile, progress: Progress) -> None:
        with closing(archive.open(self._settings.record_limit)) as opened:
            for found in opened.visits():
                if isinstance(found, Visit):
                    self._index.name(archive, found.place, found.names)
                    self._count(self._visit(archive, found), progress)
                else:
                    self.counters.add(NO_VISIT)
            if opened.reader.damages:
                self.counters.add(DAMAGED, opened.reader.damages)

    def _look_up(self, index: IndexFile, progress: Progress) -> None:
        """Replays the wanted visits of a CDXJ file, and reads only their records."""
        with closing(OpenArchives(self._settings.record_limit)) as archives:
            for found in entries_of(index):
                self._count(NOWHERE if found is None else self._line(archives, *found), progress)

    def _line(self, archives: OpenArchives, archive: ArchiveFile, entry: CdxjLine) -> str:
        """Replays the visit that a line refers to; reads its record only if it may be wanted."""
        wanted, position = self._options.wanted, RecordPosition(entry.offset)
        if entry.is_original:
            self._index.name(archive, position, [entry.digest])
        is_known = entry.is_original and bool(entry.status)
        if not wanted.matches_target(entry.url, entry.time) or (
            is_known and not wanted.matches_answer(entry.status, entry.mime)
        ):
            return NOT_WANTED
        if entry.method != "GET":
            return OTHER_METHOD
        visit = archives.visit_at(archive, position)
        if visit is None:
            return NOWHERE
        self._index.name(archive, position, visit.names)
        return self._visit(archive, visit)

    def _count(self, counter: str, progress: Progress) -> None:
        """Counts a visit; `counter` is empty for one that is deferred."""
        self.counters.add(VISITS)
        if counter:
            self.counters.add(counter)
            progress.advance()

    # -- one visit ---------------------------------------------------------------------------------

    def _visit(self, archive: ArchiveFile, visit: Visit) -> str:
        """Replays a visit; returns the name of the counter, empty if it is deferred."""
        wanted = self._options.wanted
        if not wanted.matches_target(visit.url, visit.time) or (
            visit.kind is not VisitKind.SAME and not wanted.matches(visit)
        ):
            return NOT_WANTED
        if visit.method != "GET":
            return OTHER_METHOD
        url = self._url(visit.url)
        if url is None:
            return FILTERED
        if not visit.is_dated:
            self._undated(archive, visit)
        visit.url = url
        number = self._index.add(archive, visit.place, url, visit.time)
        if visit.kind is not VisitKind.SAME:
            return self._record(visit, number)
        self._index.put_off(visit, number)
        return ""

    def _undated(self, archive: ArchiveFile, visit: Visit) -> None:
        """Counts a visit whose record has no date, and says so for the first ones."""
        self.counters.add(UNDATED)
        if self.counters[UNDATED] <= MOST_SAID:
            log.warning(
                "%s: the record at offset %s has no date; %s is imported as of %s",
                archive.path,
                visit.place,
                visit.url,
                f"its answer's Date, {date_time_to_string(visit.time)}" if visit.time else "1970",
            )

    def _replay_deferred(self, progress: Progress) -> None:
        """Replays the visits that refer to others, all of which are known now."""
        with closing(OpenArchives(self._settings.record_limit)) as archives:
            for found, visits in groupby(self._index.put_off_visits(), key=lambda row: row[2]):
                original = None if found is None else archives.visit_at(*found)
                for visit, number, _ in visits:
                    self.counters.add(self._resolved(visit, number, original))
                    progress.advance()

    def _resolved(self, visit: Visit, number: int, original: Visit | None) -> str:
        is_resolved = resolved(visit, original)
        if not self._options.wanted.matches(visit):
            return NOT_WANTED
        if not is_resolved:
            self._record(visit, number)
            return UNRESOLVED
        visit.kind = VisitKind.ANSWER
        return self._record(visit, number)

    def _url(self, url: str) -> str | None:
        try:
            settings, options = self._settings, self._options
            normal = settings.normalizers.normalize(url) if options.normalize else url
            return settings.filters.filter(normal) if options.filter and normal else normal
        except UrlError:
            return None

    def _record(self, visit: Visit, number: int) -> str:
        """Writes the records of a visit."""
        segment = self._segments.number(number)
        if segment is None:
            return TOO_MANY
        datum = CrawlDatum(status.STATUS_DB_FETCHED, self._settings.interval, 1.0)
        output = self._settings.protocol.replayed(visit.url, datum, visit)
        end = ending(output.status.code)
        content = output.content if end.keeps_content else None
        frame = Frame(end.outcome)
        if visit.url.endswith(HOST_FILES) and (file := parse(visit.url).file) in HOST_FILES:
            if output.content is not None:
                code = str(datum.metadata.get(_CODE, ""))
                output.content.metadata.set(RESPONSE_CODE_KEY, code)
                segment.recorder.host_files(frame, [output.content], visit.time)
            segment.add(frame)
            return file.rpartition("/")[2]
        if content is not None and self._describe is not None:
            self._describe(visit, content)
        segment.recorder.page(
            frame,
            FetchOutcome(visit.url, datum, end.fetch_status, visit.time, output.status, content),
        )
        if output.status.is_redirect:
            self._link(frame, visit, datum, output.status, segment.recorder)
        segment.add(frame)
        return end.outcome.label

    def _link(
        self,
        frame: Frame,
        visit: Visit,
        datum: CrawlDatum,
        answer: ProtocolStatus,
        recorder: Recorder,
    ) -> None:
        """Writes the target of a redirect, as a fetch does that does not follow it at once."""
        target = self._settings.redirects.target(visit.url, answer.message or "")
        if target is not None:
            temporary = answer.code == protocol.TEMP_MOVED
            representative = choose_representative(visit.url, target, temporary)
            linked = redirect_datum(datum, status.STATUS_LINKED, representative, visit.url, target)
            recorder.linked(frame, target, linked, visit.time)
