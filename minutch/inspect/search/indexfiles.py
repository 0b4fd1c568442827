"""Checks the files of a tantivy index before tantivy opens them: over damage it panics, or asks for
terabytes, which ends the process.

    meta.json       {"segments": [{"segment_id": UUID, "max_doc": documents, "deletes": null |
                    {"num_deleted_docs": …, "opstamp": N}}, …], …}
    .managed.json   names of files; tantivy deletes those that no segment has
    ID.KIND         of each segment, its UUID without dashes: KINDS, and N.del; body, footer
    footer          {…, "crc": CRC-32 of the body}, u32 its length, u32 1337
    body of .fast   … u32 documents, u32 2, 02 71 77 42
    body of .del    u32 documents, a bit for each that is left, to the end of a u64

Numbers are little-endian. To read all of an index takes a second for 1 to 3 GB. So its writer
remembers what the file system says of each file (`Known`), which is different for a copy and after
every change, and only what is not as remembered is read.

Source: tantivy's directory/footer.rs, index/index_meta.rs, fastfield/alive_bitset.rs.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from minutch import strictjson
from minutch.errors import FormatError

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
    """Returns the documents that a file of deletions is for, and how many are left. None if its
    length does not fit.
    """
    documents, left = body & 0xFFFFFFFF, body >> 32
    fits = length == 4 + -(-documents // 64) * 8 and left >> documents == 0
    return (documents, left.bit_count()) if fits else None


def _same(expected: object, found: object, path: Path) -> None:
    if expected != found:
        raise FormatError("a damaged file of an index", path=path, expected=expected, found=found)
