"""Opens the local index on disk: a tantivy index, and a stamp with the version that has written it.

    crawl/index/current/              tantivy's files
    crawl/index/current/minutch.json  {"format": …, "tantivy": "0.27.0", "files": …, "ours": true}
    crawl/index/.locked               while somebody writes

tantivy reads what it has written itself and little else. An index of another version, or of other
fields, or a damaged one, is made again from the segments, with `minutch.index.local.rebuild` (see
`rebuild_command`). Files are checked before tantivy has them; `files` are those that need
no more of it. An index all of whose files were written by jobs of this user on this machine, since
it was made, is `ours`. Any other, such as a copy, is opened in a process of its own (`apart`).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Final

import tantivy

from minutch import strictjson
from minutch.errors import FormatError, MinutchError, StoreError
from minutch.inspect.search import fields
from minutch.inspect.search.fields import KEY
from minutch.kernels.clibrary import give_back_large
from minutch.processwide import command_line
from minutch.work.tables.database import Database

# Checks the files of a tantivy index before tantivy opens them: over damage it panics, or asks for
# terabytes, which ends the process.
#
#     meta.json       {"segments": [{"segment_id": UUID, "max_doc": documents, "deletes": null |
#                     {"num_deleted_docs": …, "opstamp": N}}, …], …}
#     .managed.json   names of files; tantivy deletes those that no segment has
#     ID.KIND         of each segment, its UUID without dashes: KINDS, and N.del; body, footer
#     footer          {…, "crc": CRC-32 of the body}, u32 its length, u32 1337
#     body of .fast   … u32 documents, u32 2, 02 71 77 42
#     body of .del    u32 documents, a bit for each that is left, to the end of a u64
#
# Numbers are little-endian. To read all of an index takes a second for 1 to 3 GB. So its writer
# remembers what the file system says of each file (`Known`), which is different for a copy and
# after every change, and only what is not as remembered is read.
#
# Source: tantivy's directory/footer.rs, index/index_meta.rs, fastfield/alive_bitset.rs.

META: Final = "meta.json"
MANAGED: Final = ".managed.json"
KINDS: Final = ("term", "idx", "pos", "fieldnorm", "fast", "store")
Known = dict[str, list[int]]
"""Names of files, with inode, size, and times of change: of the content, of the inode."""

_FOOTER_END: Final = 1337
_LONGEST_FOOTER: Final = 1000
_FAST_END: Final = bytes.fromhex("0200000002717742")
_AT_A_TIME: Final = 1 << 20
_MOST: Final = 1 << 31
"""Documents of a segment are fewer."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NAME: Final = re.compile(r"[0-9a-f]{32}\.[0-9a-z.]+|[\w-]+\.json")
STAMP: Final = "minutch.json"
FORMAT: Final = 3
"""Counts the changes of `fields` that older indexes can't be read with."""
REBUILD_PROPERTY: Final = "minutch.index.local.rebuild"
_TRIES: Final = 5
"""Commits that may take place while the files are checked."""


def check(folder: Path, known: Mapping[str, object] | None) -> Known:
    """Checks all files of an index, reading those that are not as `known` has them (None: none);
    returns them as they are.

    Raises FormatError (damage), FileNotFoundError (one is lost, or meta.json has changed
    meanwhile).
    """
    managed = _json(folder / MANAGED)
    if not isinstance(managed, list) or not all(
        isinstance(name, str) and _NAME.fullmatch(name) for name in managed
    ):
        # tantivy deletes what is listed here: `../../notes.txt`, too
        raise FormatError(
            "a list of files that are not all of an index", path=folder / MANAGED, expected=KINDS
        )
    found: Known = {}
    meta = _json(folder / META)
    try:
        segments = [_counts(segment) for segment in meta["segments"]]
    except (LookupError, TypeError, ValueError) as exc:
        raise FormatError(
            "segments that can't be", path=folder / META, expected="name and counts", found=exc
        ) from exc
    for name, documents, deleted, deletion in segments:
        for kind in (*KINDS, *([f"{deletion}.del"] if deleted else ())):
            path = folder / f"{name}.{kind}"
            about = path.stat()
            now = [about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns]
            with path.open("rb") as file:
                reads = known is not None and known.get(path.name) != now
                body = _body(file, path, about.st_size, reads=reads)
                if kind == "fast":
                    file.seek(max(0, body - 12))
                    _same(documents.to_bytes(4, "little") + _FAST_END, file.read(12), path)
                elif kind not in KINDS:
                    file.seek(0)
                    bits = int.from_bytes(file.read(body), "little")
                    _same((documents, documents - deleted), _deletions(bits, body), path)
            found[path.name] = now
    return found


def _json(path: Path) -> Any:
    try:
        return strictjson.loads(path.read_bytes())
    except ValueError as exc:
        raise FormatError(f"no JSON: {exc}", path=path) from exc


def _counts(segment: Any) -> tuple[str, int, int, int]:
    """Returns the name of a segment, its documents, how many of them are deleted, and by which
    operation. Raises LookupError, TypeError, ValueError.
    """
    name, deletes = segment["segment_id"], segment["deletes"] or {"num_deleted_docs": 0}
    counts = segment["max_doc"], deletes["num_deleted_docs"], deletes.get("opstamp", 0)
    if not _UUID.fullmatch(name) or not all(type(count) is int for count in counts):
        raise ValueError(f"{name} {counts}")
    documents, deleted, deletion = counts
    if not 0 <= deleted <= documents < _MOST:
        raise ValueError(f"{deleted} deleted of {documents}")
    return name.replace("-", ""), documents, deleted, deletion


def _body(file: BinaryIO, path: Path, size: int, *, reads: bool) -> int:
    """Returns the length of a file's body, which it `reads` to compare it with its checksum."""
    file.seek(max(0, size - 8))
    end = file.read(8)
    length, magic = int.from_bytes(end[:4], "little"), int.from_bytes(end[4:], "little")
    body = size - 8 - length
    if magic != _FOOTER_END or length > _LONGEST_FOOTER or body < 0:
        raise FormatError("no footer of a file of an index", path=path, offset=max(0, size - 8))
    if not reads:
        return body
    file.seek(body)
    try:
        expected = strictjson.loads(file.read(length))["crc"]
    except (ValueError, LookupError, TypeError) as exc:
        raise FormatError(f"a footer without checksum: {exc}", path=path, offset=body) from exc
    file.seek(0)
    found, left = 0, body
    while left and (piece := file.read(min(left, _AT_A_TIME))):
        found, left = zlib.crc32(piece, found), left - len(piece)
    _same(expected, found, path)
    return body


def _deletions(body: int, length: int) -> tuple[int, int] | None:
    """Returns the documents of a file of deletions, and how many are left, or None."""
    documents, left = body & 0xFFFFFFFF, body >> 32
    fits = length == 4 + -(-documents // 64) * 8 and left >> documents == 0
    return (documents, left.bit_count()) if fits else None


def _same(expected: object, found: object, path: Path) -> None:
    if expected != found:
        raise FormatError("a damaged file of an index", path=path, expected=expected, found=found)


class LocalIndex(Database):
    """The index at a path. StoreError if there is none, or another version's; FormatError."""

    def _made_by(self) -> str:
        """The version that has written the index."""
        found = self._stamp()
        return f"format {found.get('format')}, tantivy {found.get('tantivy')}"

    def _stamp(self) -> dict[str, object]:
        path = self.current / STAMP
        try:
            found = strictjson.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StoreError(
                f"{self.path} is not an index of indexer-local: it has no {path.name}"
            ) from None
        except (OSError, ValueError) as exc:
            raise FormatError(f"the stamp of an index can't be read: {exc}", path=path) from exc
        if not isinstance(found, dict):
            raise FormatError(
                "the stamp of an index has another form",
                path=path,
                expected="an object",
                found=found,
            )
        return found

    def require(self) -> bool:
        """Returns whether the index is ours. Raises StoreError if there is none, or one that this
        version can't use; FormatError (damage).
        """
        made = self._found()
        compatible, is_ours = made.get("format") == FORMAT, False
        if compatible:
            is_ours = self.check(made.get("files")) and made.get("ours") is not False
            with self.reading():
                owners = {path.stat().st_uid for path in (self.current, self.current / STAMP)}
                is_ours &= owners <= {os.getuid(), 0}
                compatible = not is_ours or tantivy.Index.is_compatible(str(self.current))
        if not compatible:
            raise StoreError(
                f"{self.path} was written by another version ({self._made_by()}; this one has"
                f" format {FORMAT}, tantivy {version('tantivy')})",
                hint=f"make it again from the segments: {self.rebuild_command()}",
            )
        return is_ours

    def _found(self) -> dict[str, object]:
        """Returns the stamp. Raises StoreError if there is no index, FormatError."""
        if not self.path.is_dir():
            raise StoreError(
                f"Input path does not exist: {self.path}",
                hint="an index, or the folder of a crawl that has one",
            )
        if not self.exists():
            crawl, words = shlex.quote(str(self.path)), "index"
            if (self.path / "crawldb").is_dir():
                words += f" {crawl}/crawldb -linkdb {crawl}/linkdb -dir {crawl}/segments"
            raise StoreError(f"{self.path} has no index", hint=f"`{command_line(words)}` makes one")
        return self._stamp()

    def rebuild_command(self) -> str:
        """The command that makes the index again."""
        crawl = self.path.parent
        return command_line(
            f"index -D {REBUILD_PROPERTY}=true {crawl / 'crawldb'} -linkdb"
            f" {crawl / 'linkdb'} -dir {crawl / 'segments'} -deleteGone"
        )

    def check(self, known: object = None) -> bool:
        """Reads all files of the index but those that are as `known` has them, and returns whether
        all are. Raises FormatError, with a hint.
        """
        with self.reading():
            for _ in range(_TRIES):
                before = self.state()
                try:
                    return check(self.current, known if isinstance(known, Mapping) else {}) == known
                except FileNotFoundError:
                    if self.state() == before:
                        raise
        raise StoreError(f"{self.path} is being written to right now", hint="try again")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Translates tantivy's errors and panics to FormatError, and says what to do about them."""
        try:
            try:
                yield
            except (ValueError, OSError) as exc:
                if isinstance(exc, MinutchError):
                    raise
                raise FormatError(f"the index can't be read: {exc}", path=self.current) from exc
            except BaseException as exc:
                if not is_panic(exc):
                    raise
                raise FormatError(f"the index can't be read: {exc}", path=self.current) from exc
        except FormatError as exc:
            exc.hint = f"make it again from the segments: {self.rebuild_command()}"
            raise

    def state(self) -> tuple[int, ...]:
        """Returns a value that is different after every commit, and when that is stamped."""
        try:
            found = [(self.current / name).stat() for name in (META, STAMP)]
        except OSError:
            self._found()
            raise StoreError(f"{self.path} has no index: {META} is not there") from None
        return tuple(n for one in found for n in (one.st_ino, one.st_mtime_ns, one.st_size))


def is_panic(error: BaseException) -> bool:
    """Returns True for a panic of tantivy's, whose class can't be imported and is no Exception."""
    return type(error).__name__ == "PanicException"


def opened(folder: Path) -> tantivy.Index:
    """Opens the tantivy index in a folder with checked files. Raises ValueError, FormatError."""
    index = tantivy.Index.open(str(folder))
    if index.schema != fields.schema():
        raise FormatError("other fields than those of an index of pages", path=folder / META)
    index.config_reader("manual")
    fields.register(index)
    return index


def create(folder: Path) -> None:
    """Creates an empty index in an empty folder."""
    tantivy.Index(fields.schema(), str(folder))
    stamp(folder, ours=True)


def stamp(folder: Path, *, ours: bool) -> None:
    """Writes the stamp of an index just written; `ours`: it was so before. FormatError."""
    made = {
        "format": FORMAT,
        "tantivy": version("tantivy"),
        "files": check(folder, None),
        "ours": ours,
    }
    new = folder / f"{STAMP}.new"
    with new.open("w", encoding="utf-8") as file:
        file.write(json.dumps(made) + "\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(folder / STAMP)


# Writes documents to an open index; indexer-local decides which process does.


class IndexWriting:
    """An index that is written to. Raises what tantivy does (`LocalIndex.reading`)."""

    def __init__(self, folder: Path, memory: int, threads: int) -> None:
        """`memory` is what documents may take that are not on disk yet, in bytes."""
        self._folder = folder
        index = opened(folder)
        give_back_large()  # tantivy's tables, which grew a long crawl by 5 MB a round
        self._before, self._last = index.searcher(), ""
        self._writer = index.writer(memory, threads)
        # Tantivy would stop at files of a killed job that it is to make again.
        self._writer.garbage_collect_files()
        for path in self._folder.glob(".tmp*"):
            path.unlink(missing_ok=True)

    def is_open(self) -> bool:
        """Returns True: what stops an index from being opened is raised before."""
        return True

    def write(self, actions: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, str]]:
        """Replaces documents by their JSON, or deletes them (None), by URL; returns those that the
        index does not take, and why.
        """
        refused = []
        for key, payload in actions:
            if self._may_have(key):
                self._writer.delete_documents_by_term(KEY, key)
            if payload is None:
                continue
            try:
                self._writer.add_json(payload.decode())
            except ValueError as exc:
                # of the document: "The field …", "The provided string …"
                if not str(exc).startswith("The "):
                    raise
                refused.append((key, str(exc)))
        return refused

    def _may_have(self, key: str) -> bool:
        """Returns False if the index has no document of this URL; a needless deletion costs as much
        as a document.

        Actions come in the order of the URLs: one that is not behind the last may have come before.
        """
        came, self._last = key <= self._last, max(key, self._last)
        return came or self._before.doc_freq(KEY, key) > 0

    def commit(self) -> bool:
        """Shows what was written, for good."""
        self._writer.commit()
        return True

    def end(self) -> bool:
        """Commits, and waits for the threads that merge."""
        self._writer.commit()
        self._writer.wait_merging_threads()
        return True

    def rollback(self) -> bool:
        """Drops what no commit has shown."""
        self._writer.rollback()
        return True
