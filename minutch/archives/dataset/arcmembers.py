"""Finds the positions of pages in the ARC files of 2012, for `archiveInfo` in their metadata.

    <segment>/<millis>_<n>.arc.gz   a gzip member for each record, which begins with
                                    URL " " address " " date " " type " " length LF

Only the first line of each member is kept.
"""

from __future__ import annotations

import json
import logging
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from minutch.errors import FormatError, StoreError

log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"([0-9]{1,18})_([0-9]{1,9})\.arc\.gz")
_PIECE: Final = 1 << 16
_LONGEST_HEAD: Final = 1 << 14
_DESCRIPTION: Final = b"filedesc:"


class Member(NamedTuple):
    """A member of a gzip file: its first line, offset and length."""

    head: bytes
    offset: int
    size: int


def archive_info_in(folder: Path, segment: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields URL and archiveInfo (JSON) of the records of the ARC files in `folder`.

    Their segment is the name of the folder if that is a number, else `segment`. Raises
    StoreError (no such folder), FormatError (damage).
    """
    if not folder.is_dir():
        raise StoreError(f"{folder} is no folder with ARC files")
    return _archive_info(folder, segment)


def _archive_info(folder: Path, segment: int) -> Iterator[tuple[bytes, bytes]]:
    segment = int(folder.name) if folder.name.isascii() and folder.name.isdecimal() else segment
    for path in sorted(folder.iterdir()):
        name = _NAME.fullmatch(path.name)
        if name is None:
            continue
        info = {
            "arcSourceSegmentId": segment,
            "arcFileDate": int(name[1]),
            "arcFileParition": int(name[2]),
        }
        with path.open("rb") as file:
            for member in members(file, path):
                url = member.head.partition(b" ")[0]
                if url and not url.startswith(_DESCRIPTION):
                    position = {"arcFileOffset": member.offset, "compressedSize": member.size}
                    yield url, json.dumps(info | position).encode()


def members(file: BinaryIO, path: Path) -> Iterator[Member]:
    """Yields the members of a gzip file, in bounded memory. Raises FormatError for damage or a
    truncated member.
    """
    offset, rest = 0, file.read(_PIECE)
    while rest:
        stream, head, taken = zlib.decompressobj(31), b"", 0
        try:
            while not stream.eof:
                if not rest:
                    raise FormatError("a gzip member without its end", path=path, offset=offset)
                taken += len(rest)
                out = stream.decompress(rest, _PIECE)
                while True:
                    if len(head) < _LONGEST_HEAD:
                        head += out[: _LONGEST_HEAD - len(head)]
                    if stream.eof or not stream.unconsumed_tail:
                        break
                    out = stream.decompress(stream.unconsumed_tail, _PIECE)
                rest = stream.unused_data if stream.eof else file.read(_PIECE)
        except zlib.error as error:
            raise FormatError(f"not a gzip member ({error})", path=path, offset=offset) from error
        size = taken - len(rest)
        yield Member(head.partition(b"\n")[0], offset, size)
        offset += size
        rest = rest or file.read(_PIECE)
