"""A segment on disk: the pages of one round, in six folders of part files.

    <segments>/yyyyMMddHHmmss/
        crawl_generate/part-r-NNNNN                 the fetch list: URL -> CrawlDatum, in the order
                                                    of fetching
        crawl_fetch/part-r-NNNNN/{data,index}       URL -> CrawlDatum, what became of the fetch
        content/part-r-NNNNN/{data,index}           URL -> Content
        crawl_parse/part-r-NNNNN                    URL -> CrawlDatum: outlinks, signatures and
                                                    scores, not sorted
        parse_data/part-r-NNNNN/{data,index}        URL -> ParseData
        parse_text/part-r-NNNNN/{data,index}        URL -> ParseText

Older Nutch names the parts part-NNNNN and, very long ago, has UTF8 for keys. The fetch list is not
compressed, a text always by record; the others as `mapreduce.output.fileoutputformat.compress.type`
says, by record unless set.

Source: org.apache.nutch.fetcher.FetcherOutputFormat, parse.ParseOutputFormat, crawl.Generator,
segment.SegmentChecker.
"""

from __future__ import annotations

import errno
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import minutch.records  # noqa: F401 - its classes are what `lookup` finds
from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.cycle.segment.places import Hold, place_segment, segments_of, visible, waiting
from minutch.cycle.segment.storedrecords import (
    RawRecord,
    decode,
    raw_records,
    text_key,
    url_decoder,
    value_codec,
    values_of,
)
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.hadoop.formats.mapfile import (
    DATA,
    RUN_BYTES,
    MapFileWriter,
    merge_records,
    sort_records,
)
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import NONE, RECORD, TEXT, SequenceFileWriter
from minutch.hadoop.formats.writables import Writable
from minutch.paths import Move, StorePath, as_path, copies, is_local
from minutch.work.tables.compression import compression_type
from minutch.work.tables.database import are_partitions, part_name, part_paths
from minutch.work.tables.install import (
    NEW,
    clear,
    discard,
    left_over,
    make_directory,
    make_folder,
    remove,
    sync_path,
    sync_tree,
)

log = logging.getLogger(__name__)

CRAWL_GENERATE = "crawl_generate"
CRAWL_FETCH = "crawl_fetch"
CONTENT = "content"
CRAWL_PARSE = "crawl_parse"
PARSE_DATA = "parse_data"
PARSE_TEXT = "parse_text"
WARC = "warc"
"""WARC files, which lie beside the folders of records (fetcher.warc)."""

FETCHING = "_fetch"
"""Work folder of a fetch: its logs (log-N), or of a fetch by tasks the finished lists."""
BEGUN = "begun"
"""The file in there that says how a fetch by tasks was begun."""

_NAME = re.compile(r".{14}(-\d+)?")
"""yyyyMMddHHmmss (SegmentChecker goes by length alone), with a number for slices."""

_CRAWL_DATUM = "org.apache.nutch.crawl.CrawlDatum"
FETCHED = (CONTENT, CRAWL_FETCH)
"""Folders that a fetch adds; the last one is moved in last."""
PARSED = (PARSE_DATA, PARSE_TEXT, CRAWL_PARSE)
"""Folders that a parse adds; the last one is moved in last."""
COMPLETE = (PARSE_DATA, PARSE_TEXT, CRAWL_PARSE, CRAWL_FETCH)
"""Folders that SegmentChecker requires for indexing."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a folder of a segment; `compression` is None if it is configured."""

    name: str
    value_class: str
    map_file: bool
    compression: str | None = None


LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        Layout(CRAWL_GENERATE, _CRAWL_DATUM, map_file=False, compression=NONE),
        Layout(CRAWL_FETCH, _CRAWL_DATUM, map_file=True),
        Layout(CONTENT, "org.apache.nutch.protocol.Content", map_file=True),
        Layout(CRAWL_PARSE, _CRAWL_DATUM, map_file=False),
        Layout(PARSE_DATA, "org.apache.nutch.parse.ParseData", map_file=True),
        Layout(PARSE_TEXT, "org.apache.nutch.parse.ParseText", map_file=True, compression=RECORD),
    )
}
"""The folders of a segment, in the order in which the rounds fill them."""


class Segment:
    """The segment at a path."""

    def __init__(self, path: Path, hold: Hold | None = None) -> None:
        """`hold` is that of a reader, which lives as long as this."""
        self.path = as_path(path)
        self.hold = hold

    def __repr__(self) -> str:
        return f"Segment({str(self.path)!r})"

    @property
    def name(self) -> str:
        """yyyyMMddHHmmss, as a rule."""
        return self.path.name

    def has(self, folder: str) -> bool:
        """Returns True if a folder exists."""
        return (self.path / folder).is_dir()

    def check(self) -> None:
        """Raises StoreError where the path is that of a folder of segments: commands take those
        with `-dir`.

        Also where a job was killed as it copied files into their places, until `finish` or another
        has done the rest.
        """
        if copies(self.path):
            self.path.require_no_moves("if it is gone, run the job again, on the same machine")
        if self.path.is_dir() and not any(map(self.has, LAYOUTS)):
            inside = [
                segment.name for segment in segments_in(self.path) if any(map(segment.has, LAYOUTS))
            ]
            if inside:
                raise StoreError(
                    f"{self.path} is no segment but a folder of segments ({inside[0]}, ...): "
                    "name a segment, or give the folder with -dir where the command takes it"
                )

    def is_half_fetched(self) -> bool:
        """Returns True if a fetch was stopped, so that the next one resumes it."""
        work = self.path / FETCHING
        return any(work.glob("log-*")) or (work / BEGUN).exists()

    def missing(self, folders: Sequence[str] = COMPLETE) -> list[str]:
        """Lists those of `folders` that do not exist."""
        return [folder for folder in folders if not self.has(folder)]

    def waits_for(self) -> str:
        """Returns the step that has yet to end in it: fetch or parse; empty if it has what rounds
        put into a segment, or is none of theirs.
        """
        is_fetched = self.has(CRAWL_FETCH)
        if (self.path / FETCHING).exists() or (self.has(CRAWL_GENERATE) and not is_fetched):
            return "fetch"
        return "parse" if is_fetched and not any(map(self.has, PARSED)) else ""

    def is_complete(self) -> bool:
        """Returns True if it is fetched, parsed and named like a segment; the log says why not."""
        if not _NAME.fullmatch(self.name):
            log.warning("%s is not a segment: skipped", self.path)
            return False
        missing = self.missing()
        if missing:
            log.warning("Segment %s is skipped: it has no %s", self.path, ", ".join(missing))
        return not missing

    def parts(self, folder: str) -> list[Path]:
        """Returns the part files or MapFiles of a folder; StoreError if the folder is not there."""
        self.check()
        directory = self.path / folder
        if not directory.is_dir():
            raise StoreError(f"Input path does not exist: {directory}")
        return part_paths(directory)

    def data_files(self, folder: str) -> list[Path]:
        """Returns the SequenceFiles that hold the records of a folder, one per part."""
        return [part / DATA if part.is_dir() else part for part in self.parts(folder)]

    def raw(self, folder: str) -> Iterator[RawRecord]:
        """Yields all records as they are stored, part by part."""
        for path in self.data_files(folder):
            yield from raw_records(path)

    def raw_sorted(self, folder: str, *, run_bytes: int = RUN_BYTES) -> Iterator[RawRecord]:
        """Yields all records by URL; files that are not sorted are first, perhaps on disk."""
        if LAYOUTS[folder].map_file:
            return merge_records(raw_records(path) for path in self.data_files(folder))
        return sort_records(self.raw(folder), run_bytes=run_bytes)

    def stored_sorted(
        self, folder: str, parts: range, of: int
    ) -> tuple[str | None, Iterator[RawRecord]]:
        """Returns the records of some partitions of `of` of a folder of MapFiles, by URL, values as
        they are stored.

        Also the codec that has compressed each value; None, and values decompressed, if the parts
        differ in that. Where the parts of the folder are other ones, all are read, and what belongs
        to other partitions is left out.
        """
        files = self.data_files(folder)
        is_all = len(parts) == of
        if not is_all and are_partitions(files, of):
            files, is_all = files[parts.start : parts.stop], True
        codecs = {value_codec(path) for path in files}
        stored = len(codecs) == 1 and None not in codecs
        records = merge_records(raw_records(path, stored=stored) for path in files)
        chosen = (
            records
            if is_all
            else (record for record in records if partition(record[0], of) in parts)
        )
        return codecs.pop() if stored else None, chosen

    def records(self, folder: str) -> Iterator[tuple[str, Writable]]:
        """Yields all records, part by part. Raises FormatError naming the file."""
        for path in self.data_files(folder):
            with SequenceFileReader(path) as reader:
                url_of, value_type = url_decoder(reader), reader.value_type
                at = reader.position
                for key, value in reader:
                    url = url_of(key)
                    yield decode_text(url), decode(value_type, value, reader.name, at, url)
                    at = reader.position

    def get(self, folder: str, url: str) -> list[Writable]:
        """Returns all values of a URL in a folder, by MapFiles' indexes or from flat files."""
        return [value for part in self.parts(folder) for value in values_of(part, encode_text(url))]

    def newest(self, folder: str, url: str) -> Writable | None:
        """Returns the last of these values; None if there is none, or no such folder."""
        return next(reversed(self.get(folder, url)), None) if self.has(folder) else None

    def finish(self) -> None:
        """Finishes the moves of a killed job, where files are copied one by one."""
        if copies(self.path):
            self.path.resume_moves(if_abandoned=True)

    def clear_left_overs(self) -> None:
        """Finishes, or removes, the work folders of jobs that were killed."""
        self.finish()
        clear(self.path, NEW)

    @contextmanager
    def writing(self, folders: Sequence[str], *, replace: bool = False) -> Iterator[Path]:
        """Yields a new directory, to write the parts of `folders` into `<directory>/<folder>`.

        They are moved into the segment when the block ends, all written to disk before, the last
        one last: a segment without it is not yet fetched (or parsed), and what a broken attempt
        left of the others is replaced. Raises StoreError if the last one exists, unless
        `replace`. An error in the block leaves nothing.
        """
        self.clear_left_overs()
        self._check_free(folders, replace)
        fresh = make_folder(self.path, NEW)
        try:
            for folder in folders:
                (fresh / folder).mkdir()
            yield fresh
            sync_tree(fresh)
            # Once more: another job may have made it while the block ran.
            self._check_free(folders, replace)
            if copies(self.path) and copies(fresh):
                self._copy_in(self.path, fresh, folders)
            else:
                self._move_in(fresh, folders)
        finally:
            discard(self.path, fresh)
        sync_path(self.path)

    def _check_free(self, folders: Sequence[str], replace: bool) -> None:
        if self.has(folders[-1]) and not replace:
            raise StoreError(f"Segment {self.path} already has {folders[-1]}")

    def _move_in(self, fresh: Path, folders: Sequence[str]) -> None:
        """Replaces the old folders by the new ones, by renames; the old ones end up in `fresh`."""
        replaced = fresh / "replaced"
        replaced.mkdir()
        # The last one goes first: without it the segment counts as not yet fetched (or parsed).
        for folder in (folders[-1], *folders[:-1]):
            if self.has(folder):
                (self.path / folder).rename(replaced / folder)
        for folder in folders[:-1]:
            self._place(fresh, folder)
        sync_path(self.path)
        # The last name says that all are there: it goes to disk after the others.
        self._place(fresh, folders[-1])
        sync_path(self.path)

    def _copy_in(self, path: StorePath, fresh: StorePath, folders: Sequence[str]) -> None:
        """The same for those that are in `fresh`, file by file, with a journal; the old ones go."""
        made = [folder for folder in folders if (fresh / folder).is_dir()]
        # The last one goes first, as in `_move_in`.
        moves: list[Move] = [(path / folder, None) for folder in reversed(made) if self.has(folder)]
        moves += [(fresh / folder, path / folder) for folder in made]
        if moves:
            path.begin_moves(moves)

    def place(self, directory: Path, folders: Sequence[str]) -> None:
        """Moves those of `folders` that are in `directory` into the segment, in this order,
        replacing existing ones.

        What is in `directory` has to be on disk. After a kill it is done again, and goes on.
        """
        if copies(self.path) and copies(directory):
            self._copy_in(self.path, directory, folders)
            return
        for folder in folders:
            if (directory / folder).is_dir():
                remove(self.path / folder)
                self._place(directory, folder)
                sync_path(self.path)

    def _place(self, fresh: Path, folder: str) -> None:
        try:
            (fresh / folder).rename(self.path / folder)
        except OSError as exc:
            # rename(2): a directory with entries.
            if exc.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                raise
            raise StoreError(
                f"Segment {self.path} already has {folder}: another job made it meanwhile"
            ) from exc


@contextmanager
def part_writer(
    directory: Path, folder: str, index: int, kind: str = RECORD
) -> Iterator[Callable[[str, Writable], None]]:
    """Yields a function that appends (URL, value) to part `index` of a folder below `directory`
    (see `Segment.writing`); `kind` is the compression type, where the folder has none of its own.

    MapFiles take URLs in ascending order of their bytes only: FormatError.
    """
    layout = LAYOUTS[folder]
    (directory / folder).mkdir(parents=True, exist_ok=True)
    path = directory / folder / part_name(index)
    file_class = MapFileWriter if layout.map_file else SequenceFileWriter
    with file_class(
        path, TEXT, layout.value_class, compression=layout.compression or kind
    ) as writer:

        def append(url: str, value: Writable) -> None:
            if value.class_name != layout.value_class:
                raise FormatError(
                    "wrong class", path=path, expected=layout.value_class, found=value.class_name
                )
            writer.append_raw(text_key(encode_text(url)), value.to_bytes())

        yield append


def compression_of(folder: str, conf: Configuration) -> str:
    """Returns the compression type of a folder: NONE, RECORD or BLOCK. Raises ConfigError."""
    return LAYOUTS[folder].compression or compression_type(conf)


@contextmanager
def new_segment(parent: Path, clock: Clock) -> Iterator[Segment]:
    """Yields a new segment in `parent`, whose fetch list is to be filled; it gets its place and
    name when the block ends.

    It appears whole or not at all, and no two get the same name: within a second that is taken, or
    behind it, the name is that of the next free second (Nutch waits for it).
    """
    make_directory(parent)
    if copies(parent) and left_over(parent, NEW):
        for path in parent.iterdir():
            Segment(path).finish()
    directory, is_whole = make_folder(parent, NEW), False
    try:
        (directory / CRAWL_GENERATE).mkdir()
        segment = Segment(directory)
        yield segment
        sync_tree(directory)
        is_whole = True
        segment.path = place_segment(directory, parent, clock.now())
        is_whole = False
        sync_path(parent)
    finally:
        if not (is_whole and copies(parent)):  # else it is on its way
            remove(directory)


def segments_in(directory: Path) -> list[Segment]:
    """Returns the directories in `directory`, in the order of their names; hidden ones are left
    out.

    Those that a killed import has finished are among them, although not yet in their places
    (`places`), and not those that others have replaced. All stay on the disk as long as one of them
    is in use (`replaced.Hold`).
    """
    if not directory.is_dir():
        raise StoreError(f"Input path does not exist: {directory}")
    entries = [
        entry
        for entry in directory.iterdir()
        # FileInputFormat.hiddenFileFilter.
        if entry.is_dir() and not entry.name.startswith((".", "_"))
    ]
    hold = None
    if is_local(directory):
        # Before it is decided which are seen: a compaction that ends in between removes nothing
        # held.
        hold = Hold(directory, [entry.name for entry in entries])
        entries = visible(entries)
    entries += [path for folder in waiting(directory) for path in segments_of(folder)]
    return [Segment(entry, hold) for entry in sorted(entries, key=lambda entry: entry.name)]


def segments_at(paths: Iterable[Path], folders: Iterable[Path] = ()) -> list[Segment]:
    """Returns the segments at these paths and in these folders, held as by `segments_in`: what
    whoever is given paths to read keeps until it has read them.
    """
    holds: dict[Path, Hold] = {}
    found = [as_path(path) for path in paths]
    for parent in {path.parent for path in found}:
        if is_local(parent):
            holds[parent] = Hold(parent, [path.name for path in found if path.parent == parent])
    segments = [Segment(path, holds.get(path.parent)) for path in found]
    return segments + [segment for folder in folders for segment in segments_in(as_path(folder))]
