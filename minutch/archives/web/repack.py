"""Puts existing WARC files into a WACZ unchanged, and makes its index and page list from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

from minutch.archives.web.cdxjindex import IndexEntry
from minutch.archives.web.existingarchives import index_archives
from minutch.archives.web.watfiles import HTML, facts_of
from minutch.cycle.parse.charset import CharsetDetector
from minutch.errors import StoreError
from minutch.job import Counters, Progress
from minutch.mediatypes import essence
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content
from minutch.warc.reading.archivefiles import ZSTD, ArchiveFile
from minutch.warc.reading.archiveprotocol import Replays
from minutch.warc.reading.recordheads import WARC
from minutch.warc.reading.recordreader import Record
from minutch.warc.reading.visits import Visit, VisitKind, target_of

PAGES: Final = "HTML pages"
_OK: Final = 200
_PIECE: Final = 1 << 20


class Package(Protocol):
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
    package: Package,
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
