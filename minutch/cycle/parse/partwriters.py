"""Writes the part files of a parse, of packed documents (`pagerecords`).

The parts of parse_data, parse_text and crawl_parse go by the page's URL. Pages come in the order of
their URLs and go straight into the files. Pages found inside others come out of order: they are
kept apart, and in the end the part files are rewritten with them in their places (crawl_parse is in
no order and gets their records at its end). Of several pages with one URL the first stays, as
Nutch's reducer has it.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Self

from minutch.conf import Settings, made_by, prop
from minutch.cycle.parse.pagerecords import PackedDocument
from minutch.cycle.segment.store import CRAWL_PARSE, LAYOUTS, PARSE_DATA, PARSE_TEXT
from minutch.cycle.segment.storedrecords import text_key
from minutch.hadoop.formats.checksum import crc_path
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.mapfile import (
    DATA,
    MapFileReader,
    MapFileWriter,
    merge_records,
    sort_records,
)
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import RECORD, TEXT, SequenceFileWriter
from minutch.job import Counters
from minutch.work.tables.compression import compression_type
from minutch.work.tables.database import part_name
from minutch.work.tables.parallel import number_of_parts

REPEATED: Final = "left_out_same_url"
"""Counts documents of a URL that had one already (a page fetched twice, through redirects)."""
_EXTRA: Final = "extra-"


@dataclass(frozen=True, slots=True)
class PartSettings(Settings):
    """The form of a parse's part files."""

    count: int = made_by(number_of_parts)
    """Parts of each folder (mapreduce.job.reduces)."""
    compression: str = made_by(compression_type)
    """Compression of the folders that have none of their own."""
    stores_text: bool = prop("parser.store.text")
    """Whether there is parse_text."""
    first: int = 0
    """Number of the first of the parts."""

    def compression_of(self, folder: str) -> str:
        """Returns the compression of a folder."""
        return LAYOUTS[folder].compression or self.compression

    @property
    def parts(self) -> range:
        """Returns the numbers of the parts."""
        return range(self.first, self.first + self.count)

    def part_of(self, url: bytes) -> int:
        """Returns the part that a page belongs to."""
        return self.first + (partition(url, self.count) if self.count > 1 else 0)

    @property
    def map_folders(self) -> tuple[str, ...]:
        """The folders whose parts are MapFiles."""
        return (PARSE_DATA, PARSE_TEXT) if self.stores_text else (PARSE_DATA,)


class _Files:
    """The part files of a parse, below a directory."""

    def __init__(self, directory: Path, settings: PartSettings) -> None:
        self.directory = directory
        self.compressions = {
            folder: settings.compression_of(folder)
            for folder in (PARSE_DATA, PARSE_TEXT, CRAWL_PARSE)
        }
        self.map_folders = settings.map_folders
        self.parts = settings.parts
        self.part_of = settings.part_of

    def path(self, folder: str, part: int) -> Path:
        """Returns the path of a part, and makes its folder."""
        (self.directory / folder).mkdir(parents=True, exist_ok=True)
        return self.directory / folder / part_name(part)

    def map_file(self, folder: str, part: int) -> MapFileWriter:
        """Returns a new part."""
        value_class = LAYOUTS[folder].value_class
        return MapFileWriter(
            self.path(folder, part), TEXT, value_class, compression=self.compressions[folder]
        )

    def flat_file(self, folder: str, path: Path) -> SequenceFileWriter:
        """Returns a new file of records of a folder."""
        return SequenceFileWriter(
            path, TEXT, LAYOUTS[folder].value_class, compression=self.compressions[folder]
        )

    def append(
        self,
        writer: MapFileWriter | SequenceFileWriter,
        folder: str,
        key: bytes,
        document: PackedDocument,
    ) -> None:
        """Writes a document's value for `folder`; `key` is its URL as a Text."""
        value = (document.text or b"") if folder == PARSE_TEXT else document.data
        writer.append_raw(key, value, compressed=self.compressions[folder] == RECORD)


class PartWriters:
    """Writers of some parts, by default all, below a directory."""

    def __init__(
        self, directory: Path, settings: PartSettings, *, parts: range | None = None
    ) -> None:
        self._files = files = _Files(directory, settings)
        self._parts = files.parts if parts is None else parts
        self._maps = {
            (folder, part): files.map_file(folder, part)
            for folder in files.map_folders
            for part in self._parts
        }
        self._crawl = {
            part: files.flat_file(CRAWL_PARSE, files.path(CRAWL_PARSE, part))
            for part in self._parts
        }
        self._extra: SequenceFileWriter | None = None
        self._last = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as stack:
            for writer in (
                *self._maps.values(),
                *self._crawl.values(),
                *((self._extra,) if self._extra else ()),
            ):
                stack.callback(writer.close)

    def write(self, document: PackedDocument) -> bool:
        """Writes a page's records; pages must come in the order of their URLs. False if there was
        one of this URL.
        """
        # Equal URLs are neighbours, as pages come sorted.
        if document.url == self._last:
            return False
        self._last = document.url
        part, key = self._files.part_of(document.url), text_key(document.url)
        for folder in self._files.map_folders:
            self._files.append(self._maps[folder, part], folder, key, document)
        self._crawl[part].append_records(document.crawl)
        return True

    def keep(self, document: PackedDocument, page: bytes) -> None:
        """Keeps a document that was found inside a page for `merge_kept` to write."""
        if self._extra is None:
            # Only where a page has any, which few do: no file else.
            self._extra = SequenceFileWriter(
                self._files.directory / f"{_EXTRA}{self._parts.start}", "", ""
            )
        self._extra.append_raw(page, pickle.dumps(document))


def write_page(
    url: bytes,
    outcomes: Iterable[str],
    documents: Iterable[PackedDocument],
    writers: PartWriters,
    counters: Counters,
) -> None:
    """Writes and counts what the parse of a page has given: its own document, and those found
    inside it.
    """
    counters.add("pages")
    for outcome in outcomes:
        counters.add(outcome)
    for document in documents:
        if document.is_extra or document.url != url:
            # The latter comes from a worker that was taken over, or a Content of another URL than
            # its key: it may neither break the order of the file nor stand for that page.
            writers.keep(document, url)
        elif not writers.write(document):
            counters.add(REPEATED)


def merge_kept(directory: Path, settings: PartSettings) -> int:
    """Merges the kept documents into the part files, once all of these are written and closed.

    Returns the number of those left out because their URL has a document already.
    """
    # By the parts that their pages are in: the same order whoever has written them.
    kept = sorted(path for path in directory.glob(f"{_EXTRA}*"))
    if not kept:
        return 0
    files = _Files(directory, settings)
    folders = (*files.map_folders, CRAWL_PARSE)
    paths = {
        (folder, part): directory / f"new-{folder}-{part}"
        for folder in folders
        for part in files.parts
    }
    left_out = 0
    with ExitStack() as stack:
        found = {
            part: stack.enter_context(MapFileReader(files.path(PARSE_DATA, part)))
            for part in files.parts
        }
        writers = {
            key: stack.enter_context(files.flat_file(key[0], path)) for key, path in paths.items()
        }
        for document in _first_of_each(kept):
            part, key = files.part_of(document.url), text_key(document.url)
            # The page with this URL was fetched itself: its own parse stands.
            if found[part].get(key) is not None:
                left_out += 1
                continue
            for folder in files.map_folders:
                files.append(writers[folder, part], folder, key, document)
            writers[CRAWL_PARSE, part].append_records(document.crawl)
    # Only now: `found` reads parse_data, which this replaces.
    for (folder, part), path in paths.items():
        _merge(files, folder, part, path)
    for path in (*kept, *paths.values()):
        _remove(path)
    return left_out


def _first_of_each(kept: Iterable[Path]) -> Iterator[PackedDocument]:
    """Yields the pages that were kept, in the order of their URLs; of each URL the first, in the
    order of their pages.
    """
    packed = (value for _, value in merge_records(map(_raw, kept)))
    last = None
    for url, value in sort_records((pickle.loads(value).url, value) for value in packed):
        if url != last:
            yield pickle.loads(value)
        last = url


def _merge(files: _Files, folder: str, part: int, extra: Path) -> None:
    """Rewrites one part with the pages that were kept for it; crawl_parse is in no order, and gets
    them at its end.
    """
    path = files.path(folder, part)
    old = files.directory / f"old-{folder}-{part}"
    # The directory is not the segment's yet: who is killed here leaves nothing half done in it.
    path.rename(old)
    if folder == CRAWL_PARSE:
        crc_path(path).rename(crc_path(old))
        with files.flat_file(folder, path) as flat:
            for key, value in chain(_raw(old), _raw(extra)):
                flat.append_raw(key, value)
        _remove(old)
        return
    with files.map_file(folder, part) as writer:
        for url, value in merge_records((_urls_and_values(old / DATA), _urls_and_values(extra))):
            writer.append_raw(text_key(url), value)
    shutil.rmtree(old)


def _urls_and_values(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yields the records of a file with their URLs in UTF-8 for keys."""
    return ((DataInput(key).read_text_bytes(), value) for key, value in _raw(path))


def _raw(path: Path) -> Iterator[tuple[bytes, bytes]]:
    with SequenceFileReader(path) as reader:
        yield from reader


def _remove(path: Path) -> None:
    path.unlink()
    crc_path(path).unlink(missing_ok=True)
