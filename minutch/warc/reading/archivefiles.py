"""Finds archives on disk, recognizes their kind by their first bytes, and reads their visits.

WARC, ARC   plain; gzip or zstd: a member a record, or one for all
WACZ        a ZIP with WARC files in `archive/`, stored as they are
CDXJ        lines with the positions of records
a folder    all of these below it, in the order of their names

CDXJ and CDX are read here, lines by URL and time:

    CDXJ  :=  key " " time " " JSON
    JSON  :=  {"url": …, "mime": …, "status": …, "digest": …, "length": …, "offset": …,
               "filename": …}
    CDX   :=  " CDX " letters LF line*
    line  :=  a word for each letter: a URL, b time, m type, s status, k digest, V offset,
              g file name, S length

Source: the CDXJ format of pywb and OutbackCDX; the Internet Archive's CDX legend.
"""

from __future__ import annotations

import gzip
import logging
import re
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from minutch import strictjson
from minutch.errors import FormatError, StoreError
from minutch.warc.reading.bytesource import ByteSource, IsRecord, PlainSource, RecordPosition
from minutch.warc.reading.membersources import DICTIONARY, FRAME, GzipSource, ZstdSource
from minutch.warc.reading.recordheads import ARC, WARC, Grammar
from minutch.warc.reading.recordreader import MOST_BLOCK, Record, RecordReader
from minutch.warc.reading.visits import Visit, arc_time, arc_visits, warc_visits

CDXJ_LINE: Final = re.compile(rb"(?: CDX [A-Za-z ]+|[^\s]+ [0-9]{4,17} \{[^\n]*|!meta [^\n]*)")
LONGEST_LINE: Final = 1 << 16
_LETTERS: Final = {
    "a": "url", "m": "mime", "s": "status", "k": "digest", "V": "offset", "g": "filename",
    "b": "time",
}  # fmt: skip
_NUMBER: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class CdxjLine:
    """One line: a visit's record, and what it says of it. `time` in ms, `status` 0 if unknown."""

    url: str
    time: int
    mime: str
    status: int
    digest: str
    filename: str
    offset: int
    method: str = "GET"

    @property
    def is_original(self) -> bool:
        """True if the record holds the content that the digest is of."""
        return bool(self.digest) and self.mime != "warc/revisit"


def read_entries(path: Path) -> Iterator[tuple[int, CdxjLine | None]]:
    """Yields the lines of a file by number, None for those without meaning. Raises StoreError."""
    letters: list[str] = []
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            file: Any = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            number = 0
            # A file without line ends would come as one line of gigabytes.
            while line := file.readline(LONGEST_LINE):
                number += 1
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                if text.startswith(" CDX "):
                    letters = text.split()[1:]
                elif text and not text.startswith("!meta"):
                    yield number, _cdx(letters, text) if letters else _cdxj(text)
    except (OSError, EOFError) as exc:
        raise StoreError(f"{path}: can't be read: {exc}") from exc
    except gzip.zlib.error as exc:  # type: ignore[attr-defined]
        raise FormatError(f"bad gzip data ({exc})", path=path) from exc


def _cdxj(text: str) -> CdxjLine | None:
    _, _, rest = text.partition(" ")
    time, _, fields = rest.partition(" ")
    try:
        found = strictjson.loads(fields)
    except ValueError:
        return None
    return _entry({**found, "time": time}) if isinstance(found, dict) else None


def _cdx(letters: list[str], text: str) -> CdxjLine | None:
    words = text.split(" ")
    if len(words) != len(letters):
        return None
    return _entry(
        {
            _LETTERS[letter]: word
            for letter, word in zip(letters, words, strict=True)
            if letter in _LETTERS
        }
    )


def _entry(fields: dict[str, Any]) -> CdxjLine | None:
    text = {name: str(value) for name, value in fields.items()}
    offset, status = text.get("offset", ""), text.get("status", "")
    if not (_NUMBER.fullmatch(offset) and text.get("url") and text.get("filename")):
        return None
    digest = text.get("digest", "").lower()
    return CdxjLine(
        text["url"],
        arc_time(text.get("time", "")[:14]),
        text.get("mime", ""),
        int(status) if _NUMBER.fullmatch(status) else 0,
        # CDX has digests without the name of the algorithm.
        digest if ":" in digest or not digest else f"sha1:{digest}",
        text["filename"],
        int(offset),
        text.get("method", "GET"),
    )


def archive_of(index: Path, filename: str, folders: tuple[Path, ...] = ()) -> Path | None:
    """Returns the archive that a line names: beside its index, in one of `folders`, or in
    `../archive/` as a WACZ has it.

    None if it is not there. A name never leads out of these folders.
    """
    name = filename.replace("\\", "/")
    for folder in (index.parent, *folders, index.parent.parent / "archive"):
        for candidate in (folder / name, folder / name.rpartition("/")[2]):
            with suppress(OSError):  # a name that no file can have
                # `../../etc/passwd` in a line of somebody else's index.
                if candidate.is_file() and candidate.resolve().is_relative_to(folder.resolve()):
                    return candidate
    return None


log = logging.getLogger(__name__)

NAMES: Final = re.compile(r"(?i)\.(?:w?arc(?:\.gz|\.zst)?|wacz|cdxj?(?:\.gz)?)$")
"""How files end that are taken from a folder."""
_HEAD: Final = 1 << 14
_IN_WACZ: Final = re.compile(r"archive/.*\.w?arc(\.gz|\.zst)?$")
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
_LOCAL_HEAD: Final = 30
"""Bytes of an entry's head in a ZIP before its name; two, from 26 on, are that one's length."""
MOST_OPEN: Final = 16
GZIP: Final = "gzip"
ZSTD: Final = "zstd"
_VISITS: Final[dict[int, Callable[[Iterable[Record]], Iterator[Visit | Record]]]] = {
    id(WARC): warc_visits,
    id(ARC): arc_visits,
}


Through = Callable[[Iterable[Record]], Iterator[Record]]


def _plain(
    file: BinaryIO, is_record: IsRecord, start: int = 0, end: int | None = None
) -> PlainSource:
    return PlainSource(file, start, end)


COMPRESSIONS: Final[dict[str, Callable[[BinaryIO, IsRecord, int, int | None], ByteSource]]] = {
    "": _plain,
    GZIP: GzipSource,
    ZSTD: ZstdSource,
}
"""How the bytes of an archive are read that is compressed by one of these."""


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file of records, or a part of a file that is one: an entry of a WACZ."""

    path: Path
    grammar: Grammar
    compression: str = ""
    """The key of COMPRESSIONS."""
    start: int = 0
    end: int | None = None
    entry: str = ""

    @property
    def name(self) -> str:
        return f"{self.path}!{self.entry}" if self.entry else str(self.path)

    def open(self, most: int = MOST_BLOCK) -> OpenArchive:
        """Opens the archive; blocks end after `most` bytes. StoreError if it can't be opened."""
        return OpenArchive(self, most)


class OpenArchive:
    """The records and visits of an archive."""

    def __init__(self, archive: ArchiveFile, most: int) -> None:
        self.archive = archive
        try:
            file = archive.path.open("rb")
        except OSError as exc:
            raise StoreError(f"{archive.path}: can't be read: {exc.strerror}") from exc
        start = archive.grammar.start
        self._source = COMPRESSIONS[archive.compression](
            file, lambda data: bool(start.match(data)), archive.start, archive.end
        )
        self.reader = RecordReader(self._source, archive.grammar, archive.name, most=most)

    def visits(self, through: Through = iter) -> Iterator[Visit | Record]:
        """Yields all visits in order, and the records that belong to none. StoreError if the file
        can't be read on.

        The records pass `through` on their way.
        """
        try:
            yield from _VISITS[id(self.archive.grammar)](through(self.reader))
        except OSError as exc:
            raise StoreError(f"{self.archive.name}: can't be read: {exc.strerror}") from exc

    def visit_at(self, place: RecordPosition) -> Visit | None:
        """Returns the visit whose answer lies at `place`; None if there is none (any more)."""
        try:
            record = self.reader.at(place)
        except OSError as exc:
            raise StoreError(f"{self.archive.name}: can't be read: {exc.strerror}") from exc
        found = () if record is None else _VISITS[id(self.archive.grammar)]([record])
        return next((visit for visit in found if isinstance(visit, Visit)), None)

    def close(self) -> None:
        """Closes the file."""
        self._source.close()


class OpenArchives:
    """Archives that are read at single places; as many of them stay open as may be."""

    def __init__(self, most: int = MOST_BLOCK) -> None:
        self._most = most
        self._open: OrderedDict[ArchiveFile, OpenArchive] = OrderedDict()

    def visit_at(self, archive: ArchiveFile, place: RecordPosition) -> Visit | None:
        """Works as `OpenArchive.visit_at`."""
        # Taken out and put back: the one that was used last is last.
        found = self._open.pop(archive, None) or archive.open(self._most)
        self._open[archive] = found
        if len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)[1].close()
        return found.visit_at(place)

    def close(self) -> None:
        """Closes all."""
        while self._open:
            self._open.popitem()[1].close()


@dataclass(frozen=True, slots=True)
class IndexFile:
    """A file of CDXJ lines. Its archives may lie in `folders`, beside the file's own folder."""

    path: Path
    folders: tuple[Path, ...] = ()


def find_archives(paths: Iterable[Path]) -> Iterator[ArchiveFile | IndexFile]:
    """Yields the archives at `paths` and in folders there. StoreError, FormatError for others."""
    for path in paths:
        if path.is_dir():
            files = sorted(
                file for file in path.rglob("*") if file.is_file() and NAMES.search(file.name)
            )
            if not files:
                raise StoreError(
                    f"{path}: no archive in this folder (*.warc.gz, *.arc.gz, *.wacz, *.cdxj, …)"
                )
            yield from find_archives(files)
        else:
            yield from _archives_at(path)


def _archives_at(path: Path) -> Iterator[ArchiveFile | IndexFile]:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
            if head.startswith(_ZIP):
                yield from _in_wacz(path)
                return
            compression = _compression(head, path.name)
            first = _first_bytes(file, compression, 0, None)
    except OSError as exc:
        raise StoreError(f"{path}: can't be read: {exc.strerror}") from exc
    grammar = _kind(first, path.name) if head else None
    if grammar is not None:
        yield ArchiveFile(path, grammar, compression)
    elif CDXJ_LINE.match(first):
        yield IndexFile(path)
    elif head.strip():
        raise FormatError(
            "not an archive",
            path=path,
            offset=0,
            expected="WARC, ARC, WACZ or CDXJ",
            found=head[:16],
        )
    else:
        log.warning("%s: empty", path)


def _compression(head: bytes, name: str) -> str:
    """Recognizes a file's compression by its first bytes, or by its name if those are damaged."""
    if kind_of(head) is not None:
        return ""
    if head.startswith(_GZIP) or name.lower().endswith(".gz"):
        return GZIP
    return ZSTD if head.startswith((FRAME, DICTIONARY)) or name.lower().endswith(".zst") else ""


def _first_bytes(file: BinaryIO, compression: str, start: int, end: int | None) -> bytes:
    """Returns the first bytes of an archive, decompressed, as far as they are whole."""
    source = COMPRESSIONS[compression](file, lambda data: kind_of(data) is not None, start, end)
    source.more()
    return source.window


def _kind(first: bytes, name: str) -> Grammar | None:
    """Returns the kind of archive by its first bytes, by its name where those are damaged."""
    return kind_of(first) or (None if CDXJ_LINE.match(first) else _by_name(name))


def kind_of(data: bytes) -> Grammar | None:
    """Returns the kind of archive that begins with `data`."""
    return next(
        (grammar for grammar in (WARC, ARC) if grammar.start.match(data.lstrip(b"\r\n"))), None
    )


def _by_name(name: str) -> Grammar | None:
    """Returns the kind of a file whose beginning is damaged."""
    found = NAMES.search(name)
    kind = found[0].lower() if found else ""
    return WARC if kind.startswith(".warc") else ARC if kind.startswith(".arc") else None


def _in_wacz(path: Path) -> Iterator[ArchiveFile]:
    """Yields the WARC files of a WACZ at their places in the ZIP. Source: WACZ, section 5.2."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as wacz:
            entries = [entry for entry in wacz.infolist() if _IN_WACZ.match(entry.filename)]
            found = []
            for entry in entries:
                # A place in a deflated entry can't be gone to.
                if entry.compress_type != zipfile.ZIP_STORED:
                    raise StoreError(
                        f"{path}!{entry.filename}: compressed in the ZIP, where a WACZ has it"
                        " stored"
                    )
                # The lengths in the local header: extra fields may differ from those of the
                # directory.
                file.seek(entry.header_offset)
                head = file.read(_LOCAL_HEAD)
                start = (
                    entry.header_offset
                    + _LOCAL_HEAD
                    + sum(int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
                )
                found.append((entry, start))
            for entry, start in found:
                file.seek(start)
                end, name = start + entry.file_size, entry.filename
                compression = _compression(file.read(min(_HEAD, entry.file_size)), name)
                grammar = _kind(_first_bytes(file, compression, start, end), name)
                assert grammar is not None, "the pattern above is one of names that tell"
                yield ArchiveFile(path, grammar, compression, start, end, name)
    except (zipfile.BadZipFile, OSError, NotImplementedError) as exc:
        raise FormatError(f"not a WACZ ({exc})", path=path, expected="a ZIP") from exc
    if not entries:
        raise StoreError(f"{path}: no WARC file in this ZIP (archive/*.warc.gz)")


MOST_SAID: Final = 100
"""Lines that lead nowhere which the log names one by one."""


def entries_of(index: IndexFile) -> Iterator[tuple[ArchiveFile, CdxjLine] | None]:
    """Yields a file's lines with the archives they lead to; None, and a warning, if nowhere."""
    archives: dict[str, ArchiveFile | None] = {}
    said = 0
    for number, entry in read_entries(index.path):
        archive, why = None, "no CDXJ line"
        if entry is not None:
            # Thousands of lines name one archive.
            if entry.filename not in archives:
                archives[entry.filename] = _archive(index, entry.filename)
            archive, why = (
                archives[entry.filename],
                f"there is no archive {entry.filename} beside the index, nor where -archives says",
            )
        if entry is not None and archive is not None:
            yield archive, entry
            continue
        said += 1
        if said <= MOST_SAID:
            log.warning("%s, line %d: %s", index.path, number, why)
        yield None


def _archive(index: IndexFile, filename: str) -> ArchiveFile | None:
    path = archive_of(index.path, filename, index.folders)
    if path is None:
        return None
    try:
        found = next(find_archives([path]), None)
    except (FormatError, StoreError) as exc:
        log.warning("%s", exc)
        return None
    return found if isinstance(found, ArchiveFile) else None
