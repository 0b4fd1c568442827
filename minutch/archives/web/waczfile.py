"""`export wacz`: a web archive with its index and a list of its pages in one file, which a browser
can replay.

    archive/<prefix>-NNNNN.warc.gz    the files of `export warc`, or those that were given, stored
                                      as they are
    indexes/index.cdx.gz, index.idx   CDXJ in gzip members of 300 lines, and where each of them
                                      begins
    pages/pages.jsonl                 the HTML pages: URL, time, title, with -text their text
    datapackage.json                  size and SHA-256 digest of each of these
    datapackage-digest.json           the digest of datapackage.json

Source: WACZ 1.1.1, and the ZipNum index of pywb.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from hashlib import blake2b, sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Any, Final, Self

from isal import isal_zlib

from minutch.archives.captures import Capture
from minutch.archives.web.webarchive import ArchiveListener
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS
from minutch.version import __version__
from minutch.warc.jsontext import valid
from minutch.warc.warcfile import V1_1, Output, warc_date

VERSION: Final = "1.1.1"
HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_LINES: Final = 300
"""Lines of the index in a gzip member."""
_PIECE: Final = 1 << 20
_EARLIEST: Final = 315_532_800_000
"""The first time that a ZIP file can name: 1980."""


class WaczPackage:
    """The ZIP file, and what is in it so far."""

    def __init__(self, path: Path, time: int) -> None:
        """`time` (ms) is when it was made, by its own account."""
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
        """A WARC file to be written."""
        return _PackageFile(self, f"archive/{name}", compress=False)

    def opened(self, path: str, *, compress: bool) -> IO[bytes]:
        """An entry to be written."""
        date = time.gmtime(max(self._time, _EARLIEST) / 1000)
        entry = zipfile.ZipInfo(path, date[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
        entry.external_attr = 0o644 << 16
        return self._zip.open(entry, "w", force_zip64=True)

    def add(self, path: str, chunks: Iterable[bytes], *, compress: bool = False) -> str:
        """Write an entry whole; returns its digest."""
        file = _PackageFile(self, path, compress=compress)
        for chunk in chunks:
            file.write(chunk)
        return file.close()

    def written(self, path: str, size: int, digest: str) -> None:
        """Note an entry for the description of the package."""
        self._resources.append(
            {"name": path.rpartition("/")[2], "path": path, "hash": digest, "bytes": size}
        )

    def add_index(self, lines: Iterator[bytes]) -> None:
        """The index in blocks, and the index of the blocks."""
        meta = {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
        blocks = [f"!meta 0 {json.dumps(meta)}\n".encode()]
        file = _PackageFile(self, "indexes/index.cdx.gz", compress=False)
        at = 0
        while block := list(islice(lines, _LINES)):
            member = isal_zlib.compress(b"".join(block), 3, wbits=31)
            place = {
                "offset": at,
                "length": len(member),
                "digest": _digest(member),
                "filename": "index.cdx.gz",
            }
            blocks.append(
                b" ".join((*block[0].split(b" ", 2)[:2], json.dumps(place).encode())) + b"\n"
            )
            file.write(member)
            at += len(member)
        file.close()
        self.add("indexes/index.idx", blocks)

    def finish(self, title: str, first: tuple[str, str] | None) -> None:
        """Describe what was written. `first`: URL and time of the page that is shown first."""
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
    """A file in a package."""

    def __init__(self, package: WaczPackage, path: str, *, compress: bool) -> None:
        self._package, self._path = package, path
        self._file = package.opened(path, compress=compress)
        self._hash = sha256(usedforsecurity=False)
        self._size = 0

    def write(self, data: bytes, /) -> None:
        self._file.write(data)
        self._hash.update(data)
        self._size += len(data)

    def close(self) -> str:
        """End the file; returns its digest."""
        self._file.close()
        digest = f"sha256:{self._hash.hexdigest()}"
        self._package.written(self._path, self._size, digest)
        return digest


def _digest(data: bytes) -> str:
    return f"sha256:{sha256(data, usedforsecurity=False).hexdigest()}"


class PageList(ArchiveListener):
    """The list of HTML pages, in a temporary file as long as the archive is written."""

    def __init__(self, folder: Path, with_text: bool) -> None:
        self._file = TemporaryFile(dir=folder, buffering=1 << 18)  # noqa: SIM115 - closed by __exit__
        self._with_text = with_text
        self.first: tuple[str, str] | None = None
        """URL and time of the first page that was fetched."""
        head: dict[str, object] = {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
        self._write(head | ({"hasText": True} if with_text else {}))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
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
        """Take up a page; `text` is None where it is not known."""
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
        """The list's bytes."""
        self._file.seek(0)
        while chunk := self._file.read(_PIECE):
            yield chunk
