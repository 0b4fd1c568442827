"""The jobs that write web archives: export warc, cdxj, wacz, wat and wet.

All take the same options, and the paths of segments that have content: segments, folders of them,
or crawls. The output depends on these and on the configuration alone, so `export cdxj` and
`export warc` with equal options describe the same files.

A WACZ is a web archive, its index and a list of its pages in one file, which browsers can replay:

    archive/<prefix>-NNNNN.warc.gz    the files of `export warc`, or existing ones, unchanged
    indexes/index.cdx.gz              CDXJ in gzip members of 300 lines
    indexes/index.idx                 the offset of each member
    pages/pages.jsonl                 the HTML pages: URL, time, title, with -text their text
    datapackage.json                  size and SHA-256 digest of each of these files
    datapackage-digest.json           the digest of datapackage.json

Source: WACZ 1.1.1, and the ZipNum index of pywb.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Any, Final, Self

from isal import isal_zlib

from minutch.archives.captures import Capture, find_segments
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
from minutch.archives.web.webarchive import (
    RECORDS,
    ArchiveListener,
    ArchiveSpec,
    DiscardedOutput,
    write_archive,
)
from minutch.conf import Configuration
from minutch.cycle.parse.charset import CharsetDetector
from minutch.job import Counters, JobContext, Progress
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS
from minutch.version import __version__
from minutch.warc.jsontext import valid
from minutch.warc.reading.archiveprotocol import as_archived, replays
from minutch.warc.warcfile import DEFAULT_LIMIT, SHA1, V1_1, Output, warc_date
from minutch.work.tables.textparts import output_file, output_folder

VERSION: Final = "1.1.1"
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_LINES: Final = 300
"""Number of index lines in a gzip member."""
_PIECE: Final = 1 << 20
_EARLIEST: Final = 315_532_800_000
"""Earliest time that a ZIP file can represent (ms): 1980."""


class WaczPackage:
    """A writer of a WACZ file."""

    def __init__(self, path: Path, time: int) -> None:
        """`time` (ms) is the creation time that the file states."""
        self._zip = zipfile.ZipFile(path, "w", allowZip64=True)
        self._time = time
        self._resources: list[dict[str, object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        with (
            suppress(ValueError) if error is not None else nullcontext()
        ):  # an entry may still be open
            self._zip.close()

    def open_archive(self, name: str) -> Output:
        """Opens a WARC file in the package for writing."""
        return _PackageFile(self, f"archive/{name}", compress=False)

    def open_entry(self, path: str, *, compress: bool) -> IO[bytes]:
        """Opens an entry of the ZIP file for writing."""
        date = time.gmtime(max(self._time, _EARLIEST) / 1000)
        entry = zipfile.ZipInfo(path, date[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
        entry.external_attr = 0o644 << 16
        return self._zip.open(entry, "w", force_zip64=True)

    def add(self, path: str, chunks: Iterable[bytes], *, compress: bool = False) -> str:
        """Writes a whole entry; returns its digest."""
        file = _PackageFile(self, path, compress=compress)
        for chunk in chunks:
            file.write(chunk)
        return file.close()

    def describe(self, path: str, size: int, digest: str) -> None:
        """Adds an entry to the package's description."""
        self._resources.append(
            {"name": path.rpartition("/")[2], "path": path, "hash": digest, "bytes": size}
        )

    def add_index(self, lines: Iterator[bytes]) -> None:
        """Writes the index in blocks, and the index of the blocks."""
        meta = {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
        blocks = [f"!meta 0 {json.dumps(meta)}\n".encode()]
        file = _PackageFile(self, "indexes/index.cdx.gz", compress=False)
        at = 0
        while block := list(islice(lines, _LINES)):
            member = isal_zlib.compress(b"".join(block), 3, wbits=31)
            position = {
                "offset": at,
                "length": len(member),
                "digest": f"sha256:{sha256(member, usedforsecurity=False).hexdigest()}",
                "filename": "index.cdx.gz",
            }
            blocks.append(
                b" ".join((*block[0].split(b" ", 2)[:2], json.dumps(position).encode())) + b"\n"
            )
            file.write(member)
            at += len(member)
        file.close()
        self.add("indexes/index.idx", blocks)

    def finish(self, title: str, first: tuple[str, str] | None) -> None:
        """Writes the package's description. `first` is URL and time of its main page."""
        described: dict[str, Any] = {
            "profile": "data-package",
            "wacz_version": VERSION,
            "title": title,
            "software": f"minutch/{__version__}",
            "created": warc_date(self._time, V1_1),
            "resources": list(self._resources),
        }
        if first is not None:
            described |= {"mainPageUrl": first[0], "mainPageDate": first[1]}
        digest = self.add(
            "datapackage.json",
            [json.dumps(described, indent=2, ensure_ascii=False).encode()],
            compress=True,
        )
        named = {"path": "datapackage.json", "hash": digest}
        self.add("datapackage-digest.json", [json.dumps(named, indent=2).encode()], compress=True)


class _PackageFile:
    """A file in a package, opened for writing."""

    def __init__(self, package: WaczPackage, path: str, *, compress: bool) -> None:
        self._package, self._path = package, path
        self._file = package.open_entry(path, compress=compress)
        self._hash = sha256(usedforsecurity=False)
        self._size = 0

    def write(self, data: bytes, /) -> None:
        self._file.write(data)
        self._hash.update(data)
        self._size += len(data)

    def close(self) -> str:
        """Closes the file; returns its digest."""
        self._file.close()
        digest = f"sha256:{self._hash.hexdigest()}"
        self._package.describe(self._path, self._size, digest)
        return digest


class PageList(ArchiveListener):
    """A collector of the list of HTML pages, in a temporary file while the archive is written."""

    def __init__(self, folder: Path, with_text: bool) -> None:
        self._file = TemporaryFile(dir=folder, buffering=1 << 18)  # noqa: SIM115 - closed by __exit__
        self._with_text = with_text
        self.first: tuple[str, str] | None = None
        """URL and time of the page that was fetched first."""
        head: dict[str, object] = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
        self._write(head | ({"hasText": True} if with_text else {}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _write(self, line: dict[str, object]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")

    def capture(self, capture: Capture, target: str, time: int) -> None:
        content, datum = capture.content, capture.datum
        if (
            content is None
            or datum is None
            or datum.status != STATUS_FETCH_SUCCESS
            or content.content_type not in HTML
        ):
            return
        title = "" if capture.parse_data is None else capture.parse_data.title
        self.add(
            target, time, title, None if capture.parse_text is None else capture.parse_text.text
        )

    def add(self, target: str, time: int, title: str, text: str | None) -> None:
        """Adds a page; `text` is None if it is unknown."""
        date = warc_date(time, V1_1)
        code = blake2b(f"{date} {target}".encode(), digest_size=12).hexdigest()
        line: dict[str, object] = {
            "id": code,
            "url": target,
            "ts": date,
            "title": valid(title) or target,
        }
        if self._with_text and text is not None:
            line["text"] = valid(text)
        self._write(line)
        if self.first is None or date < self.first[1]:
            self.first = target, date

    def chunks(self) -> Iterator[bytes]:
        """Returns the list's bytes in chunks."""
        self._file.seek(0)
        while chunk := self._file.read(_PIECE):
            yield chunk


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
