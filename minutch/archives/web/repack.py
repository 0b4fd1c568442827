"""Puts existing WARC files into a WACZ as they are; its index and list of pages are
made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

from minutch.archives.web.cdxjindex import IndexEntry
from minutch.archives.web.existingarchives import index_archives
from minutch.archives.web.watfiles import HTML, facts_of
from minutch.cycle.parse.charset import CharsetDetector
from minutch.errors import StoreError
from minutch.job import Counters, JobContext
from minutch.records.content import Content
from minutch.records.crawldatum import CrawlDatum
from minutch.warc.reading.archivefiles import ZSTD, ArchiveFile
from minutch.warc.reading.archiveprotocol import as_archived, replays
from minutch.warc.reading.recordreader import Record
from minutch.warc.reading.visits import Visit, VisitKind, target_of
from minutch.warc.reading.warcrecords import WARC

PAGES: Final = "HTML pages"
_OK: Final = 200
_PIECE: Final = 1 << 20


class Files(Protocol):
    """Takes files by their names, as a package does."""

    def add(self, path: str, chunks: Iterable[bytes], *, compress: bool = False) -> str: ...


class Lines(Protocol):
    """Takes entries, as an index does."""

    def add(self, entry: IndexEntry) -> None: ...


class Pages(Protocol):
    """Takes pages, as their list does."""

    def add(self, target: str, time: int, title: str, text: str | None) -> None: ...


def titled_by(archives: Mapping[str, ArchiveFile]) -> tuple[int, str]:
    """When a package of these archives was made (ms), by the newest of them, and its title, if none
    is given.
    """
    newest = max(archive.path.stat().st_mtime for archive in archives.values())
    return int(newest) * 1000, min(archives).partition(".")[0]


def take_archives(
    archives: Mapping[str, ArchiveFile],
    files: Files,
    index: Lines,
    pages: Pages,
    context: JobContext,
) -> Counters:
    """Put archives, their index and their HTML pages into a package. StoreError for what a WACZ
    can't hold.
    """
    for archive in archives.values():
        if archive.grammar is not WARC or archive.compression == ZSTD:
            raise StoreError(
                f"{archive.path}: a WACZ holds WARC files, plain or gzip: `import` and `export"
                " wacz` make one"
            )
    for name, archive in archives.items():
        files.add(f"archive/{name}", _chunks(archive.path))
    finder = _PageFinder(pages.add, context, [archive.path for archive in archives.values()])
    with context.progress("export", unit="records") as progress:
        counters = index_archives(archives.items(), index.add, progress, finder.seen)
    counters.add(PAGES, finder.count)
    return counters


def _chunks(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(_PIECE):
                yield chunk
    except OSError as exc:
        raise StoreError(f"{path}: can't be read: {exc.strerror}") from exc


class _PageFinder:
    """Finds HTML pages among what is in archives: their title, and their text where a record has
    it.
    """

    def __init__(
        self,
        add: Callable[[str, int, str, str | None], None],
        context: JobContext,
        files: Iterable[Path],
    ) -> None:
        conf = as_archived(context.conf, files)
        self._add, self._replays, self._charsets = add, replays(conf), CharsetDetector(conf)
        self._text: tuple[str, str] | None = None
        """URL and text of the last conversion record; it is seen before its page, which waits for
        what follows.
        """
        self.count = 0

    def seen(self, found: Visit | Record) -> None:
        """A visit, or a record that is none."""
        if isinstance(found, Visit):
            self._visit(found)
            self._text = None
        elif found.fields.get("warc-type") == "conversion":
            self._text = target_of(found), found.block.decode("utf-8", "replace")

    def _visit(self, visit: Visit) -> None:
        if visit.kind is not VisitKind.ANSWER or visit.status != _OK or visit.method != "GET":
            return
        content = self._replays.replayed(visit.url, CrawlDatum(), visit).content
        if content is not None and content.content_type.partition(";")[0].strip().lower() in HTML:
            text = self._text[1] if self._text is not None and self._text[0] == visit.url else None
            self._add(visit.url, visit.time, self._title(content), text)
            self.count += 1

    def _title(self, content: Content) -> str:
        head = facts_of(
            self._charsets, content.content, content.metadata.first("Content-Type")
        ).get("Head", {})
        return str(head.get("Title", ""))
