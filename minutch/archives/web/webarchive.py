"""Writes the captures of segments as records of WARC files, and tells listeners of each record.

    <prefix>-NNNNN.warc.gz     for each capture: response or revisit, request, metadata, conversion

Captures of one URL are written together, in the order of their segments, so a revisit comes after
the record it refers to, and memory does not grow with the crawl. A page that is in two segments
with the same time and the same bytes (mergesegs made one of the other) is one capture. The files
depend on segments and configuration alone: a listener (index, WAT, WET) describes the same files
whether or not they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from minutch.archives.captures import Capture, captures
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, Segment
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, Progress
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import RESPONSE_CODE_KEY
from minutch.records.protocol import Content
from minutch.warc.pagewriter import (
    IDENTICAL,
    NOT_MODIFIED,
    Original,
    fetch_time,
    write_fetch_data,
    write_page,
    write_parse_text,
    write_request,
    write_revisit,
)
from minutch.warc.warcfile import (
    NO_URI,
    V1_0,
    V1_1,
    CrawlerIdentity,
    Output,
    WarcFiles,
    WrittenRecord,
    crawler_info,
    level_of,
    local_host,
    uri_of,
)

# Converts language codes from ISO 639-1, which detectors report, to ISO 639-3, which archives use.
# Pure: no I/O.

_CODES: Final = dict(
    pair.split(":")
    for pair in """
af:afr am:amh an:arg ar:ara as:asm az:aze be:bel bg:bul bn:ben br:bre bs:bos ca:cat cs:ces cy:cym
da:dan de:deu dz:dzo el:ell en:eng eo:epo es:spa et:est eu:eus fa:fas fi:fin fo:fao fr:fra ga:gle
gl:glg gu:guj he:heb hi:hin hr:hrv ht:hat hu:hun hy:hye id:ind is:isl it:ita ja:jpn jv:jav ka:kat
kk:kaz km:khm kn:kan ko:kor ku:kur ky:kir la:lat lb:ltz lo:lao lt:lit lv:lav mg:mlg mk:mkd ml:mal
mn:mon mr:mar ms:msa mt:mlt nb:nob ne:nep nl:nld nn:nno no:nor oc:oci or:ori pa:pan pl:pol ps:pus
pt:por qu:que ro:ron ru:rus rw:kin se:sme si:sin sk:slk sl:slv sq:sqi sr:srp sv:swe sw:swa ta:tam
te:tel th:tha tl:tgl tr:tur ug:uig uk:ukr ur:urd vi:vie vo:vol wa:wln xh:xho zh:zho zu:zul
""".split()  # noqa: SIM905
)
PAGES: Final = "pages written"
UNCHANGED: Final = "revisits: not modified"
SAME: Final = "revisits: same content"
TWICE: Final = "pages written before"
NO_CONTENT: Final = "URLs without content"
RECORDS: Final = "WARC records"

_LANGUAGE: Final = "lang"
"""Metadata key that language-identifier sets."""
_BY_STATUS: Final = {status.STATUS_FETCH_REDIR_PERM: 301, status.STATUS_FETCH_REDIR_TEMP: 302}
_OK: Final = 200
_CODE: Final = Text(RESPONSE_CODE_KEY)


def three_letters(code: str | None) -> str | None:
    """Returns the three-letter code of a two-letter code (region or not); None if unknown."""
    return _CODES.get((code or "").strip().lower()[:3].rstrip("-_"))


@dataclass(frozen=True, slots=True)
class ArchiveSpec:
    """The segments to archive, and the form of the files."""

    segments: Sequence[Segment]
    prefix: str
    limit: int
    digest: str
    time: int
    """Creation time that the files state (ms): that of the last segment."""
    level: int
    """Compression level of ISA-L, 0 to 3."""
    crawler: Mapping[str, Mapping[str, str]]
    """Fields of the warcinfo record, by WARC version."""

    @classmethod
    def from_conf(
        cls, conf: Configuration, segments: Sequence[Segment], prefix: str, limit: int, digest: str
    ) -> ArchiveSpec:
        """Reads compression level and crawler from the configuration."""
        machine = local_host()
        return cls(
            segments,
            prefix or f"minutch-{segments[-1].name}",
            limit,
            digest,
            max(map(time_of, segments)),
            level_of(conf),
            {
                version: crawler_info(CrawlerIdentity.from_conf(conf), *machine, version)
                for version in (V1_0, V1_1)
            },
        )


def time_of(segment: Segment) -> int:
    """Creation time of a segment (ms), by its name, else by the time of its content folder."""
    with suppress(ValueError, OverflowError):
        return int(datetime.strptime(segment.name[:14], "%Y%m%d%H%M%S").timestamp()) * 1000
    return int((segment.path / CONTENT).stat().st_mtime) * 1000


class ArchiveListener:
    """A receiver of events while an archive is written."""

    def begin(self, name: str) -> None:
        """Is called when a file begins."""

    def record(self, record: WrittenRecord) -> None:
        """Is called when a record was written."""

    def capture(self, capture: Capture, target: str, time: int) -> None:
        """Is called before the records of a whole page."""


class DiscardedOutput:
    """A file that is not kept; only the offsets of its records are of interest."""

    def write(self, data: bytes, /) -> None:
        """Discards the data."""

    def close(self) -> None:
        """Does nothing."""


def write_archive(
    spec: ArchiveSpec,
    open_file: Callable[[str], Output],
    listeners: Sequence[ArchiveListener],
    progress: Progress,
) -> Counters:
    """Writes the captures of the segments to files, which `open_file` opens by name."""
    counters = Counters(dict.fromkeys((PAGES, UNCHANGED, SAME, TWICE, NO_CONTENT, NO_URI), 0))
    info = spec.crawler[V1_1]

    def opened(number: int) -> tuple[str, Output]:
        name = f"{spec.prefix}-{number:05}.warc.gz"
        file = open_file(name)
        for each in listeners:
            each.begin(name)
        return name, file

    def written(record: WrittenRecord) -> None:
        for each in listeners:
            each.record(record)

    files = WarcFiles(
        opened,
        compress=True,
        limit=spec.limit,
        version=V1_1,
        info=lambda: (spec.time, info),
        digest=spec.digest,
        written=written if listeners else None,
        level=spec.level,
    )
    with files:
        writer = CaptureWriter(files, listeners)
        for capture in captures(
            spec.segments, [CONTENT], if_there=[CRAWL_FETCH, PARSE_DATA, PARSE_TEXT]
        ):
            counters.add(writer.write(capture))
            progress.advance()
        counters.add(RECORDS, files.records)
    return counters


@dataclass
class CaptureWriter:
    """A writer of captures as records; captures of one URL come in succession."""

    files: WarcFiles
    listeners: Sequence[ArchiveListener] = ()
    _url: str = ""
    _seen: set[tuple[int, str]] = field(default_factory=set)
    """Times and digests of the captures of the URL."""
    _original: Original | None = None
    """Last whole page of the URL."""

    def write(self, capture: Capture) -> str:
        """Writes the records of a capture; returns the name of the counter."""
        if capture.url != self._url:
            self._url, self._original = capture.url, None
            self._seen.clear()
        content, datum = capture.content, capture.datum
        unchanged = datum is not None and datum.status == status.STATUS_FETCH_NOTMODIFIED
        time = _time_of(capture)
        if time is None or (content is None and not unchanged):
            return NO_CONTENT
        target = uri_of(capture.url)
        if target is None:
            return NO_URI
        digest = "" if content is None or unchanged else self.files.digest(content.content)
        if (time, digest) in self._seen:
            return TWICE
        self._seen.add((time, digest))
        self.files.begin_page()
        if unchanged:
            self._revisit(capture, target, time, content or Content(), NOT_MODIFIED)
            return UNCHANGED
        assert content is not None
        before = self._original
        if (
            before is not None
            and digest == before.digest
            and before.time <= time
            and content.content
        ):
            self._revisit(capture, target, time, content, IDENTICAL)
            return SAME
        self._page(capture, target, time, content, digest)
        return PAGES

    def _revisit(
        self, capture: Capture, target: str, time: int, content: Content, profile: str
    ) -> None:
        before = (
            self._original if self._original is not None and self._original.time <= time else None
        )
        code = _code(capture, target)
        page = write_revisit(self.files, time, target, content, before, profile=profile, code=code)
        write_request(self.files, time, target, content, page)
        answer = content if profile == NOT_MODIFIED else None
        write_fetch_data(self.files, time, target, capture.datum, None, page, answer=answer)

    def _page(
        self, capture: Capture, target: str, time: int, content: Content, digest: str
    ) -> None:
        for each in self.listeners:
            each.capture(capture, target, time)
        page = write_page(
            self.files, time, target, content, code=_code(capture, target), digest=digest
        )
        self._original = Original(time, digest, page)
        write_request(self.files, time, target, content, page)
        write_fetch_data(self.files, time, target, capture.datum, capture.parse_data, page)
        if capture.parse_text is not None:
            language = (
                None
                if capture.parse_data is None
                else three_letters(capture.parse_data.meta(_LANGUAGE))
            )
            write_parse_text(self.files, time, target, capture.parse_text, page, language=language)


def _time_of(capture: Capture) -> int | None:
    """Time of the fetch: from its record, or, for a robots.txt, from the page's metadata."""
    if capture.datum is not None:
        return capture.datum.fetch_time
    return None if capture.content is None else fetch_time(capture.content)


def _code(capture: Capture, target: str) -> int | None:
    """HTTP status of a page; None if it was not fetched by HTTP."""
    if not target.startswith(("http:", "https:")):
        return None
    datum = capture.datum or CrawlDatum()
    text = str(datum.metadata.get(_CODE, ""))
    if len(text) == 3 and text.isascii() and text.isdigit():
        return int(text)
    return _BY_STATUS.get(datum.status, _OK)
