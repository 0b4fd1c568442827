"""The jobs that write web archives: export warc, cdxj, wacz, wat and wet.

All take the same options, and the paths of segments that have content: segments, folders of them,
or crawls. The output depends on these and on the configuration alone, so `export cdxj` and
`export warc` with equal options describe the same files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from minutch.archives.captures import find_segments
from minutch.archives.web.cdxjindex import CdxjCollector, write_index
from minutch.archives.web.companions import CompanionFiles, WatFiles, WetFiles
from minutch.archives.web.existingarchives import (
    HtmlPageFinder,
    add_archives,
    archives_among,
    index_archives,
    named_archives,
    title_and_time,
)
from minutch.archives.web.waczfile import PageList, WaczPackage
from minutch.archives.web.webarchive import (
    RECORDS,
    ArchiveSpec,
    DiscardedOutput,
    write_archive,
)
from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector
from minutch.job import Counters, JobContext, Progress
from minutch.warc.reading.archiveprotocol import as_archived, replays
from minutch.warc.warcfile import DEFAULT_LIMIT, SHA1, Output
from minutch.work.tables.textparts import output_file, output_folder

INDEX: Final = "index.cdxj"


@dataclass(frozen=True, slots=True)
class WebArchiveOptions:
    """Options of the jobs that write web archives."""

    prefix: str = ""
    """Beginning of file names; empty: `minutch-` and the name of the last segment."""
    limit: int = DEFAULT_LIMIT
    """Size in bytes after which the next file begins."""
    digest: str = SHA1
    """Hash of the digests: `sha1` or `sha256`."""
    index: bool = False
    """Write `index.cdxj` beside the WARC files (export warc only)."""
    title: str = ""
    """Title of a WACZ; empty: that of the archives, or the prefix."""
    with_text: bool = False
    """Put the text of pages into the page list of a WACZ."""


def export_warc(
    paths: Sequence[Path],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the captures of the segments at `paths` to WARC files in the new folder `out`.

    Raises StoreError if there are no segments or `out` exists, FormatError for damage.
    """
    spec = _spec(context.conf, paths, options)
    with output_folder(out) as work, ExitStack() as stack:
        index = [stack.enter_context(CdxjCollector(work))] if options.index else []

        def open_file(name: str) -> Output:
            return (work / name).open("wb", buffering=1 << 18)

        with context.progress("export", unit="pages") as progress:
            counters = write_archive(spec, open_file, index, progress)
        for each in index:
            write_index(work / INDEX, each.sorted())
    return counters


def export_cdxj(
    paths: Sequence[Path],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes an index to the new file `out`: of the WARC and ARC files at `paths`, or, if these are
    segments, of the files that `export_warc` would write.

    The index names files by their paths relative to its own folder, or by their names alone if they
    lie elsewhere.
    """
    archives = named_archives(archives_among(paths), out.parent)
    if archives:
        with output_file(out) as path, CdxjCollector(path.parent) as index:
            with context.progress("export", unit="records") as progress:
                counters = index_archives(archives.items(), index.add, progress)
            write_index(path, index.sorted())
        return counters
    spec = _spec(context.conf, paths, options)
    with output_file(out) as path, CdxjCollector(path.parent) as index:
        with context.progress("export", unit="pages") as progress:
            counters = write_archive(spec, _discard, [index], progress)
        write_index(path, index.sorted())
    return counters


def export_wacz(
    paths: Sequence[Path],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes a WACZ of the segments, or of the WARC files, at `paths` to the new file `out`."""
    archives = named_archives(archives_among(paths))
    if archives:
        title, time = title_and_time(archives)
    else:
        spec = _spec(context.conf, paths, options)
        title, time = spec.prefix, spec.time
    with (
        output_file(out) as path,
        WaczPackage(path, time) as package,
        CdxjCollector(path.parent) as index,
        PageList(path.parent, options.with_text) as pages,
    ):
        if archives:
            conf = as_archived(context.conf, [archive.path for archive in archives.values()])
            finder = HtmlPageFinder(pages.add, replays(conf), CharsetDetector(conf))
            with context.progress("export", unit="records") as progress:
                counters = add_archives(archives, package, index, finder, progress)
        else:
            with context.progress("export", unit="pages") as progress:
                counters = write_archive(spec, package.open_archive, [index, pages], progress)
        package.add_index(index.sorted())
        package.add("pages/pages.jsonl", pages.chunks(), compress=True)
        package.finish(options.title or title, pages.first)
    return counters


def export_wat(
    paths: Sequence[Path],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes metadata of each record of a web archive to WAT files in the new folder `out`."""
    spec = _spec(context.conf, paths, options)
    charsets = CharsetDetector(context.conf)
    with context.progress("export", unit="pages") as progress:
        return _companions(spec, out, lambda folder: WatFiles(spec, folder, charsets), progress)


def export_wet(
    paths: Sequence[Path],
    out: Path,
    options: WebArchiveOptions = WebArchiveOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the text of pages to WET files in the new folder `out`."""
    spec = _spec(context.conf, paths, options)
    with context.progress("export", unit="pages") as progress:
        return _companions(spec, out, lambda folder: WetFiles(spec, folder), progress)


def _spec(conf: Configuration, paths: Sequence[Path], options: WebArchiveOptions) -> ArchiveSpec:
    segments = find_segments(paths)
    return ArchiveSpec.from_conf(conf, segments, options.prefix, options.limit, options.digest)


def _companions(
    spec: ArchiveSpec, out: Path, make: Callable[[Path], CompanionFiles], progress: Progress
) -> Counters:
    """Writes companion files alone; the WARC files that they accompany are discarded."""
    with output_folder(out) as work:
        companions = make(work)
        try:
            counters = write_archive(spec, _discard, [companions], progress)
        finally:
            companions.files.close()
    counters[RECORDS] = companions.files.records
    return counters


def _discard(name: str) -> Output:
    return DiscardedOutput()
