"""The jobs that write web archives: export warc, cdxj, wacz, wat and wet.

All take the same options, and segments with content. What they write depends on these and on the
configuration alone, so `export cdxj` and `export warc` with equal options speak of equal files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.archives.web.cdxjindex import IndexWriter, write_index
from minutch.archives.web.companions import CompanionFiles
from minutch.archives.web.existingarchives import index_archives
from minutch.archives.web.repack import take_archives, titled_by
from minutch.archives.web.waczfile import PageList, WaczPackage
from minutch.archives.web.watfiles import WatFiles
from minutch.archives.web.webarchive import (
    RECORDS,
    ArchiveSpec,
    DiscardedOutput,
    time_of,
    write_archive,
)
from minutch.archives.web.wetfiles import WetFiles
from minutch.cycle.parse.charset import CharsetDetector
from minutch.cycle.segment.store import Segment
from minutch.job import Counters, JobContext
from minutch.warc.localhost import local_host
from minutch.warc.reading.archivefiles import ArchiveFile
from minutch.warc.warcfile import DEFAULT_LIMIT, SHA1, V1_0, V1_1, Output, level_of
from minutch.warc.warcinfo import CrawlerIdentity, crawler_info
from minutch.work.tables.textparts import output_file, output_folder

INDEX: Final = "index.cdxj"


@dataclass(frozen=True, slots=True)
class WebArchiveOptions:
    """Options of the jobs that write web archives."""

    prefix: str = ""
    """How file names begin; empty: `minutch-` and the name of the last segment."""
    limit: int = DEFAULT_LIMIT
    """Bytes after which the next file begins."""
    digest: str = SHA1
    """Hash of the digests: `sha1` or `sha256`."""
    index: bool = False
    """Write `index.cdxj` beside the WARC files (export warc alone)."""
    title: str = ""
    """Title of a WACZ; empty: that of the archives, or the prefix."""
    with_text: bool = False
    """Put the text of pages into the page list of a WACZ."""


def export_web_archive(
    segments: Sequence[Segment],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the captures of `segments` to WARC files in the new folder `out`.

    Raises StoreError if `out` exists, FormatError for damage.
    """
    spec = _spec(segments, options, context)
    with output_folder(out) as work, ExitStack() as stack:
        index = [stack.enter_context(IndexWriter(work))] if options.index else []

        def open_file(name: str) -> Output:
            return (work / name).open("wb", buffering=1 << 18)

        with context.progress("export", unit="pages") as progress:
            counters = write_archive(spec, open_file, index, progress)
        for each in index:
            write_index(work / INDEX, each.sorted())
    return counters


def export_cdxj(
    segments: Sequence[Segment],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the index of the files that `export_web_archive` makes to the new file `out`."""
    spec = _spec(segments, options, context)
    with output_file(out) as path, IndexWriter(path.parent) as index:
        with context.progress("export", unit="pages") as progress:
            counters = write_archive(spec, _discard, [index], progress)
        write_index(path, index.sorted())
    return counters


def index_existing(
    archives: Mapping[str, ArchiveFile], out: Path, *, context: JobContext
) -> Counters:
    """Writes the index of existing archives, by the names that it has for them, to `out`."""
    with output_file(out) as path, IndexWriter(path.parent) as index:
        with context.progress("export", unit="records") as progress:
            counters = index_archives(archives.items(), index.add, progress)
        write_index(path, index.sorted())
    return counters


def export_wacz(
    segments: Sequence[Segment],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    archives: Mapping[str, ArchiveFile] | None = None,
    context: JobContext,
) -> Counters:
    """Writes a WACZ of `segments`, or of existing `archives`, to the new file `out`."""
    spec = None if archives else _spec(segments, options, context)
    time, title = titled_by(archives or {}) if spec is None else (spec.time, spec.prefix)
    with (
        output_file(out) as path,
        WaczPackage(path, time) as package,
        IndexWriter(path.parent) as index,
        PageList(path.parent, options.with_text) as pages,
    ):
        if spec is None:
            counters = take_archives(archives or {}, package, index, pages, context)
        else:
            with context.progress("export", unit="pages") as progress:
                counters = write_archive(spec, package.open_archive, [index, pages], progress)
        package.add_index(index.sorted())
        package.add("pages/pages.jsonl", pages.chunks(), compress=True)
        package.finish(options.title or title, pages.first)
    return counters


def export_wat(
    segments: Sequence[Segment],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes metadata of each record of a web archive to WAT files in the new folder `out`."""
    charsets = CharsetDetector(context.conf)
    return _companions(
        segments, out, options, context, lambda spec, folder: WatFiles(spec, folder, charsets)
    )


def export_wet(
    segments: Sequence[Segment],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the text of pages to WET files in the new folder `out`."""
    return _companions(segments, out, options, context, WetFiles)


def _companions(
    segments: Sequence[Segment],
    out: Path,
    options: WebArchiveOptions,
    context: JobContext,
    make: Callable[[ArchiveSpec, Path], CompanionFiles],
) -> Counters:
    """Writes companion files alone: the WARC files beside which they belong are discarded."""
    spec = _spec(segments, options, context)
    with output_folder(out) as work, context.progress("export", unit="pages") as progress:
        companions = make(spec, work)
        try:
            counters = write_archive(spec, _discard, [companions], progress)
        finally:
            companions.files.close()
    counters[RECORDS] = companions.files.records
    return counters


def _discard(name: str) -> Output:
    return DiscardedOutput()


def _spec(
    segments: Sequence[Segment], options: WebArchiveOptions, context: JobContext
) -> ArchiveSpec:
    """Reads the configuration, once."""
    machine, crawler = local_host(), CrawlerIdentity.from_conf(context.conf)
    return ArchiveSpec(
        segments,
        options.prefix or f"minutch-{segments[-1].name}",
        options.limit,
        options.digest,
        max(map(time_of, segments)),
        level_of(context.conf),
        {version: crawler_info(crawler, *machine, version) for version in (V1_0, V1_1)},
    )
