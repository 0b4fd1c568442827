"""Indexes existing archives, which an export takes instead of segments, and puts them into a WACZ.

    archive  ─ record, record, …  → an index entry for each that belongs there: offset and length
             └ visit, visit, …    → the request's method, which the entry has unless it is GET

An index entry addresses a gzip member: records that share one (a file that is a single gzip member)
have no entry, and are counted. An index names a file by its path relative to the index, or by its
name alone if it lies elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from minutch.archives.web.cdxjindex import IndexEntry, is_indexed, media_type
from minutch.archives.web.companions import HTML, facts_of
from minutch.cycle.parse.charset import CharsetDetector
from minutch.cycle.segment.store import LAYOUTS, Segment
from minutch.errors import StoreError
from minutch.job import Counters, Progress
from minutch.mediatypes import essence
from minutch.processwide import command_line
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content
from minutch.warc.pagewriter import status_of
from minutch.warc.reading.archivefiles import NAMES, ZSTD, ArchiveFile, IndexFile, find_archives
from minutch.warc.reading.archiveprotocol import Replays
from minutch.warc.reading.recordheads import ARC, WARC
from minutch.warc.reading.recordreader import Record, RecordReader
from minutch.warc.reading.visits import Visit, VisitKind, target_of
from minutch.warc.warcfile import PAYLOAD_DIGEST, sha1_digest

log = logging.getLogger(__name__)

INDEXED: Final = "records in the index"
NOT_INDEXED: Final = "records that are not indexed"
SHARED: Final = "records that share a gzip member or zstd frame"
DAMAGED: Final = "damaged places"
_GET: Final = "GET"
_HTTP: Final = b"HTTP/"
_LONGEST_HEAD: Final = 1 << 18
_BLANK: Final = b"\r\n\r\n"
PAGES: Final = "HTML pages"
_OK: Final = 200
_PIECE: Final = 1 << 20


def is_archive(path: Path) -> bool:
    """Returns whether a path is an archive, or a folder of archives rather than of segments."""
    if not path.is_dir():
        return path.is_file()
    inside = [path, *(entry for entry in path.iterdir() if entry.is_dir())]
    if (path / "segments").is_dir() or any(
        Segment(each).has(layout) for each in inside for layout in LAYOUTS
    ):
        return False
    return any(NAMES.search(file.name) for file in path.rglob("*"))


def archives_among(paths: Sequence[Path]) -> list[Path]:
    """Returns `paths` if they are archives, and nothing if they are segments.

    Raises StoreError for a mixture of both.
    """
    found = [path for path in paths if is_archive(path)]
    if found and len(found) < len(paths):
        segments = next(path for path in paths if path not in found)
        raise StoreError(f"archives and segments at once: {found[0]}, {segments}")
    return found


def named_archives(paths: Sequence[Path], root: Path | None = None) -> dict[str, ArchiveFile]:
    """Returns the archives at `paths` by the names that an index in `root`, or one in their own
    folder, has for them.

    Raises StoreError for two archives of the same name, for a WACZ, and if there is no archive.
    """
    found: dict[str, ArchiveFile] = {}
    for archive in find_archives(paths):
        if isinstance(archive, IndexFile):
            log.warning("%s: skipped: an index, not an archive", archive.path)
            continue
        if archive.entry:
            raise StoreError(
                f"{archive.path}: a WACZ has its own index, which"
                f" `{command_line('import wacz')}` uses"
            )
        name = archive.path.name if root is None else _name(archive.path, root)
        if name in found:
            raise StoreError(f"two files of the name {name}: {found[name].path} and {archive.path}")
        found[name] = archive
    if paths and not found:
        raise StoreError(f"no WARC or ARC file in {', '.join(map(str, paths))}")
    return found


def _name(path: Path, root: Path) -> str:
    path, root = path.resolve(), root.resolve()
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name


def index_archives(
    archives: Iterable[tuple[str, ArchiveFile]],
    add: Callable[[IndexEntry], None],
    progress: Progress,
    seen: Callable[[Visit | Record], None] = lambda found: None,
) -> Counters:
    """Calls `add` with the index entries of archives, given by name, and `seen` with each visit and
    each record that belongs to none.
    """
    counters = Counters(dict.fromkeys((INDEXED, NOT_INDEXED), 0))
    for name, archive in archives:
        log.info("reading %s", archive.path)
        with closing(archive.open()) as opened:
            indexing = _Indexing(opened.reader if archive.compression else None, name, add)
            for found in opened.visits(indexing.records):
                if isinstance(found, Visit):
                    indexing.complete(found)
                seen(found)
                progress.advance()
            indexing.close()
            for each, number in indexing.counters.items():
                counters.add(each, number)
            if SHARED in indexing.counters:
                log.warning(
                    "%s: %d %s: no index can lead to them",
                    archive.path,
                    indexing.counters[SHARED],
                    SHARED,
                )
            if opened.reader.damages:
                counters.add(DAMAGED, opened.reader.damages)
    return counters


class _Indexing:
    """A maker of the entries of a file's records, which pass through it; the entry of a response is
    made once the request is known.
    """

    def __init__(
        self, reader: RecordReader | None, name: str, add: Callable[[IndexEntry], None]
    ) -> None:
        """`reader` is that of a compressed file, and knows where members end."""
        self._reader, self._name, self._add = reader, name, add
        self._waiting: list[IndexEntry] = []
        self.counters = Counters()

    def records(self, records: Iterable[Record]) -> Iterator[Record]:
        """Passes the records on unchanged."""
        for record in records:
            length: int | None = len(record.head) + record.length
            if self._reader is not None:
                end = self._reader.end
                length = None if end is None or record.place.inner else end - record.place.offset
            if length is None:
                self.counters.add(SHARED)
            elif (entry := entry_of_existing(record, self._name, length)) is None:
                self.counters.add(NOT_INDEXED)
            else:
                self.counters.add(INDEXED)
                self._waiting.append(entry)
            yield record

    def complete(self, visit: Visit) -> None:
        """Adds the entry of a complete visit, and those before it."""
        while self._waiting and self._waiting[0].offset <= visit.place.offset:
            entry = self._waiting.pop(0)
            marked = entry.offset == visit.place.offset and visit.method != _GET
            self._add(replace(entry, method=visit.method) if marked else entry)

    def close(self) -> None:
        """Adds the remaining entries, which belong to no visit."""
        for entry in self._waiting:
            self._add(entry)


def entry_of_existing(record: Record, name: str, length: int) -> IndexEntry | None:
    """Returns the index entry of a record that takes `length` bytes of the file of this name; None
    for a kind of record that is not indexed.
    """
    fields = record.fields
    head = _http_head(record.block)
    if record.grammar is ARC:
        target, date, digest = fields["url"], fields["date"], None
        kind = "response" if target.startswith("http") else "resource"
        content_type: str | None = fields["type"]
        if target.startswith("filedesc:"):
            return None
        header = f"\r\nContent-Type: {content_type}\r\n".encode()
    else:
        kind, target, date = (
            fields.get("warc-type", ""),
            target_of(record),
            fields.get("warc-date", ""),
        )
        content_type, digest = fields.get("content-type"), fields.get(PAYLOAD_DIGEST.lower())
        header = record.head
    if not is_indexed(kind, content_type) or not target:
        return None
    if digest is None and kind != "revisit" and not record.is_cut:
        digest = sha1_digest(record.block[len(head) :])
    code = status_of(head[:64].decode("latin-1"))
    return IndexEntry(
        target.replace(" ", "%20"),
        date,
        media_type(kind, header, head),
        None if code is None else str(code),
        digest,
        length,
        record.place.offset,
        name,
    )


def _http_head(block: bytes) -> bytes:
    """Returns the head of the HTTP response in a block, with its empty line; or nothing."""
    if not block.startswith(_HTTP):
        return b""
    end = block.find(_BLANK, 0, _LONGEST_HEAD)
    return block[: end + len(_BLANK)] if end >= 0 else block[:_LONGEST_HEAD]


# Puts existing WARC files into a WACZ unchanged, and makes its index and page list from them.


class ArchivePackage(Protocol):
    """A package to which files are added by name."""

    def add(self, path: str, chunks: Iterable[bytes], *, compress: bool = False) -> str: ...


class Index(Protocol):
    """An index to which entries are added."""

    def add(self, entry: IndexEntry) -> None: ...


def title_and_time(archives: Mapping[str, ArchiveFile]) -> tuple[str, int]:
    """Returns the default title of a package of these archives, and its creation time (ms), which
    is that of the newest archive.
    """
    newest = max(archive.path.stat().st_mtime for archive in archives.values())
    return min(archives).partition(".")[0], int(newest) * 1000


def add_archives(
    archives: Mapping[str, ArchiveFile],
    package: ArchivePackage,
    index: Index,
    finder: HtmlPageFinder,
    progress: Progress,
) -> Counters:
    """Adds archives to a package, their records to its index and their HTML pages to its page list.

    Raises StoreError for archives that a WACZ can't hold.
    """
    for archive in archives.values():
        if archive.grammar is not WARC or archive.compression == ZSTD:
            raise StoreError(
                f"{archive.path}: a WACZ holds WARC files, plain or gzip; `import` and then `export"
                " wacz` convert others"
            )
    for name, archive in archives.items():
        package.add(f"archive/{name}", _chunks(archive.path))
    counters = index_archives(archives.items(), index.add, progress, finder.take)
    counters.add(PAGES, finder.count)
    return counters


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(_PIECE):
                yield chunk
    except OSError as exc:
        raise StoreError(f"{path}: can't be read: {exc.strerror}") from exc


class HtmlPageFinder:
    """A finder of the HTML pages in archives, with their titles, and their texts if recorded."""

    def __init__(
        self,
        add: Callable[[str, int, str, str | None], None],
        protocol: Replays,
        charsets: CharsetDetector,
    ) -> None:
        """`add` is called with URL, time, title and text of each page."""
        self._add, self._protocol, self._charsets = add, protocol, charsets
        self._text: tuple[str, str] | None = None
        """URL and text of the last conversion record. It is seen before its page, because a visit
        is complete only when the next one begins.
        """
        self.count = 0

    def take(self, found: Visit | Record) -> None:
        """Takes a visit, or a record that belongs to none."""
        if isinstance(found, Visit):
            self._visit(found)
            self._text = None
        elif found.fields.get("warc-type") == "conversion":
            self._text = target_of(found), found.block.decode("utf-8", "replace")

    def _visit(self, visit: Visit) -> None:
        if visit.kind is not VisitKind.ANSWER or visit.status != _OK or visit.method != "GET":
            return
        content = self._protocol.replayed(visit.url, CrawlDatum(), visit).content
        if content is not None and essence(content.content_type) in HTML:
            text = self._text[1] if self._text is not None and self._text[0] == visit.url else None
            self._add(visit.url, visit.time, self._title(content), text)
            self.count += 1

    def _title(self, content: Content) -> str:
        head = facts_of(
            self._charsets, content.content, content.metadata.field("Content-Type")
        ).get("Head", {})
        return str(head.get("Title", ""))
