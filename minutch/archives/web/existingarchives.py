"""Indexes existing archives, which an export takes instead of segments: an entry for each
record.

    archive  ─ record, record, …  → an entry for each that an index has, with its offset and length
             └ visit, visit, …    → who asked how: an answer to another request than GET is marked

An index leads to members of their own: records that share one (a file that is one gzip member) are
counted, and have no entry. In an index a file is named as it lies below the index, else by its name
alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

from minutch.archives.web.cdxjindex import IndexEntry, is_indexed, media_type
from minutch.cycle.segment.store import LAYOUTS, Segment
from minutch.errors import StoreError
from minutch.job import Counters, Progress
from minutch.warc.httpheaders import status_of
from minutch.warc.reading.archivefiles import NAMES, ArchiveFile, IndexFile, find_archives
from minutch.warc.reading.arcrecords import ARC
from minutch.warc.reading.recordreader import Record, RecordReader
from minutch.warc.reading.visits import Visit, target_of
from minutch.warc.warcfile import PAYLOAD_DIGEST, sha1_digest

log = logging.getLogger(__name__)

INDEXED: Final = "records in the index"
NOT_INDEXED: Final = "records that no index has"
SHARED: Final = "records that share a gzip member or zstd frame"
DAMAGED: Final = "damaged places"
_GET: Final = "GET"
_HTTP: Final = b"HTTP/"
_LONGEST_HEAD: Final = 1 << 18
_BLANK: Final = b"\r\n\r\n"


def is_archive(path: Path) -> bool:
    if not path.is_dir():
        return path.is_file()
    inside = [path, *(entry for entry in path.iterdir() if entry.is_dir())]
    if (path / "segments").is_dir() or any(
        Segment(each).has(layout) for each in inside for layout in LAYOUTS
    ):
        return False
    return any(NAMES.search(file.name) for file in path.rglob("*"))


def named_archives(paths: Sequence[Path], root: Path | None = None) -> dict[str, ArchiveFile]:
    """The archives at `paths` by the names that an index in `root`, or one that lies with them, has
    for them.

    StoreError for two of one name, for a WACZ, and if there are none.
    """
    found: dict[str, ArchiveFile] = {}
    for archive in find_archives(paths):
        if isinstance(archive, IndexFile):
            log.warning("%s: an index, no archive: passed over", archive.path)
            continue
        if archive.entry:
            raise StoreError(
                f"{archive.path}: a WACZ, which has its own index: `minutch import wacz` reads it"
                " by that"
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
    """`add` the entries of archives that stand in an index under these names; `seen` is told what
    else is in them.
    """
    counters = Counters(dict.fromkeys((INDEXED, NOT_INDEXED), 0))
    for name, archive in archives:
        log.info("reading %s", archive.path)
        with closing(archive.open()) as opened:
            indexing = _Indexing(opened.reader if archive.compression else None, name, add)
            for found in opened.visits(indexing.records):
                if isinstance(found, Visit):
                    indexing.asked_by(found)
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
    """Makes the entries of a file's records as they pass by; that of an answer when it is known
    what was asked.
    """

    def __init__(
        self, reader: RecordReader | None, name: str, add: Callable[[IndexEntry], None]
    ) -> None:
        """`reader` is that of a compressed file, of which it says where members end."""
        self._reader, self._name, self._add = reader, name, add
        self._waiting: list[IndexEntry] = []
        self.counters = Counters()

    def records(self, records: Iterable[Record]) -> Iterator[Record]:
        """The records, unchanged."""
        for record in records:
            length: int | None = len(record.head) + record.length
            if self._reader is not None:
                end = self._reader.end
                length = None if end is None or record.place.inner else end - record.place.offset
            if length is None:
                self.counters.add(SHARED)
            elif (entry := entry_of(record, self._name, length)) is None:
                self.counters.add(NOT_INDEXED)
            else:
                self.counters.add(INDEXED)
                self._waiting.append(entry)
            yield record

    def asked_by(self, visit: Visit) -> None:
        """A visit is whole: its entry, and those before it."""
        while self._waiting and self._waiting[0].offset <= visit.place.offset:
            entry = self._waiting.pop(0)
            is_it = entry.offset == visit.place.offset and visit.method != _GET
            self._add(replace(entry, method=visit.method) if is_it else entry)

    def close(self) -> None:
        """The entries of what is no visit."""
        for entry in self._waiting:
            self._add(entry)


def entry_of(record: Record, name: str, length: int) -> IndexEntry | None:
    """The entry of a record in the file of this name, `length` bytes long there; None for one that
    no index has.
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
    """The head of the HTTP answer in a block, empty line and all; empty if there is none."""
    if not block.startswith(_HTTP):
        return b""
    end = block.find(_BLANK, 0, _LONGEST_HEAD)
    return block[: end + len(_BLANK)] if end >= 0 else block[:_LONGEST_HEAD]
