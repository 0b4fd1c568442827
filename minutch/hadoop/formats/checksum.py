"""The checksum siblings that Hadoop's local file system keeps (ChecksumFileSystem).

    .NAME.crc  :=  "crc\\0"  int(bytes per checksum)  int(CRC-32 of a chunk)*      one per started
               chunk of NAME

The CRC is zlib's (IEEE 802.3), numbers are big-endian, a chunk has 512 bytes
(`io.bytes.per.checksum`) unless the sibling's header says otherwise. An empty file has a sibling
with no sums. A file without a sibling is read unverified, as Hadoop does; where Hadoop ignores a
sibling of the wrong length, this is an error here: it tells of a cut-off file. Other file systems
of Hadoop (`minutch.paths`) have sums of their own, and no siblings.
"""

from __future__ import annotations

import os
import struct
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from zlib import crc32

from minutch.errors import ChecksumError, FormatError, naming
from minutch.paths import as_path, is_local

BYTES_PER_CHECKSUM = 512
MAGIC = b"crc\0"
HEADER_SIZE = 8

_FLUSH = 128 * BYTES_PER_CHECKSUM
_PIECE = 1 << 20


def crc_path(path: str | Path) -> Path:
    """Returns the sibling of a file: `dir/.NAME.crc`."""
    path = as_path(path)
    return path.with_name(f".{path.name}.crc")


def chunk_sums(data: bytes | bytearray | memoryview, chunk: int = BYTES_PER_CHECKSUM) -> bytes:
    """Returns the CRC of each started chunk of `data`, big-endian, one after the other.

    By a kernel, but not where NumPy would be loaded for this alone: that takes as long as the sums
    of 100 MB, and a look-up compares a few chunks.
    """
    if "numpy" not in sys.modules:
        starts = range(0, len(data), chunk)
        return b"".join(crc32(data[at : at + chunk]).to_bytes(4, "big") for at in starts)
    import numpy as np

    from minutch.kernels.clibrary import libdeflate
    from minutch.kernels.sequencefile import make_sums

    found = np.empty(-(-len(data) // chunk) * 4, np.uint8)
    make_sums(np.frombuffer(data, np.uint8), 0, len(data), chunk, found, libdeflate().crc32)
    return found.tobytes()


def new_sums(path: Path) -> IO[bytes]:
    """Opens the sibling of a new file and writes its header; for a file of a store, which has no
    sibling, opens the null device.
    """
    if not is_local(path):
        return Path(os.devnull).open("wb")
    sums = crc_path(path).open("wb")
    sums.write(MAGIC + BYTES_PER_CHECKSUM.to_bytes(4, "big"))
    return sums


def remove_sums(path: Path) -> None:
    """Removes the sibling of a file, if it has one."""
    if is_local(path):
        crc_path(path).unlink(missing_ok=True)


class WholeOrNothing(ABC):
    """A writer for a `with` block: closed at its end, discarded if it ends in an error."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Finishes what was written."""

    @abstractmethod
    def discard(self) -> None:
        """Removes what was written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class ChecksumWriter(WholeOrNothing):
    """A new file and its sibling, written front to back."""

    def __init__(self, path: str | Path) -> None:
        self.path = as_path(path)
        self._pending = bytearray()
        self._written = 0
        remove_sums(self.path)
        self._file = self.path.open("wb", buffering=0)
        self._sums = new_sums(self.path)

    @property
    def position(self) -> int:
        """Bytes given to `write` so far."""
        return self._written + len(self._pending)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._pending += data
        if len(self._pending) >= _FLUSH:
            self._put(len(self._pending) // BYTES_PER_CHECKSUM * BYTES_PER_CHECKSUM)

    def _put(self, size: int) -> None:
        """Moves `size` pending bytes, whole chunks or the rest, to the file. OSError names it."""
        # Both views have to be released before the buffer may shrink.
        with memoryview(self._pending) as view, view[:size] as part, naming(self.path):
            self._sums.write(chunk_sums(part))
            done = 0
            while done < size:  # an unbuffered file may take less than it is given
                done += self._file.write(part[done:])
        self._written += size
        del self._pending[:size]

    def close(self) -> None:
        """Writes the rest and closes both files; moving the directory brings them to disk."""
        if self._file.closed:
            return
        try:
            self._put(len(self._pending))
        finally:
            with naming(self.path):
                self._file.close()
                self._sums.close()

    def discard(self) -> None:
        """Closes and removes both files: the content is not complete."""
        self._file.close()
        self._sums.close()
        self.path.unlink(missing_ok=True)
        remove_sums(self.path)


class ChecksumReader:
    """A file to read anywhere in; every byte handed out was compared with its chunk's sum.

    Opening compares the number of sums with the file's size. `verify=False` ignores the sibling.
    """

    def __init__(self, path: str | Path, *, verify: bool = True) -> None:
        self.path = as_path(path)
        self._file = self.path.open("rb", buffering=0)
        self._sums = -1
        try:
            self._is_local = is_local(self.path)
            self.size = (
                os.fstat(self._file.fileno()).st_size
                if self._is_local
                else self._file.seek(0, os.SEEK_END)
            )
            self._pos = 0
            self._chunk = BYTES_PER_CHECKSUM
            sibling = crc_path(path)
            if verify and self._is_local and sibling.exists():
                self._sums = os.open(sibling, os.O_RDONLY)
                self._chunk = self._read_header(sibling)
        except BaseException:
            self.close()
            raise

    def _read_header(self, sibling: Path) -> int:
        """Checks the sibling's header and length; returns the bytes per checksum."""
        header = os.pread(self._sums, HEADER_SIZE, 0)
        chunk = struct.unpack(">i", header[4:])[0] if len(header) == HEADER_SIZE else 0
        if header[:4] != MAGIC or chunk <= 0:
            found = header.hex() or "nothing"
            raise ChecksumError(
                "not a checksum file",
                path=sibling,
                offset=0,
                expected="'crc\\0' and a size",
                found=found,
            )
        expected = HEADER_SIZE + 4 * -(-self.size // chunk)
        found_size = os.fstat(self._sums).st_size
        if found_size != expected:
            raise ChecksumError(
                f"{self.path.name} has {self.size} bytes, which does not fit the length of its"
                " checksums",
                path=sibling,
                offset=min(found_size, expected),
                expected=f"{expected} bytes",
                found=found_size,
            )
        return int(chunk)

    @property
    def verified(self) -> bool:
        """True if there is a sibling to compare with."""
        return self._sums >= 0

    def tell(self) -> int:
        return self._pos

    def seek(self, position: int) -> None:
        """Goes to a position, which may come from a file. Raises FormatError for none."""
        if position < 0:
            raise FormatError("a position before the beginning", path=self.path, found=position)
        self._pos = position

    def read(self, size: int) -> bytes:
        """Returns `size` bytes, fewer only at the end. Raises ChecksumError for a damaged chunk."""
        start = self._pos
        size = min(size, self.size - start)
        if size <= 0:
            return b""
        if not self._is_local:  # a store's files are compared by the store
            self._file.seek(start)
            data = self._file.read(size) or b""
        elif self._sums < 0:
            data = os.pread(self._file.fileno(), size, start)
        else:
            first = start - start % self._chunk
            # Whole chunks, as their sums are of whole chunks.
            last = min(self.size, -(-(start + size) // self._chunk) * self._chunk)
            whole = os.pread(self._file.fileno(), last - first, first)
            self._compare(whole, first)
            data = (
                whole
                if first == start and last == start + size
                else whole[start - first : start - first + size]
            )
        self._pos = start + len(data)
        return data

    def _compare(self, data: bytes, start: int) -> None:
        """Compares the chunks of `data`, whose first starts at offset `start`, with their sums."""
        found = chunk_sums(data, self._chunk)
        # pread: readers of several places share no position.
        expected = os.pread(self._sums, len(found), HEADER_SIZE + start // self._chunk * 4)
        if found == expected:
            return
        at = next(i for i in range(0, len(found), 4) if found[i : i + 4] != expected[i : i + 4])
        raise ChecksumError(
            "checksum error",
            path=self.path,
            offset=start + at // 4 * self._chunk,
            expected=f"CRC {expected[at : at + 4].hex()}",
            found=found[at : at + 4].hex(),
        )

    def pieces(self) -> Iterator[bytes]:
        """Yields the rest of the file in pieces of up to 1 MiB."""
        # Up to the end of a chunk: none is read twice.
        while piece := self.read(_PIECE - self._pos % self._chunk):
            yield piece

    def close(self) -> None:
        self._file.close()
        if self._sums >= 0:
            os.close(self._sums)
            self._sums = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def verify_file(path: str | Path) -> int:
    """Compares a whole file with its sibling and returns its size. Raises ChecksumError."""
    with ChecksumReader(path) as reader:
        return sum(len(piece) for piece in reader.pieces())


def write_file(path: str | Path, data: bytes) -> None:
    """Writes a whole file with its sibling."""
    with ChecksumWriter(path) as writer:
        writer.write(data)


def read_file(path: str | Path) -> bytes:
    """Reads a whole file, verified where it has a sibling."""
    with ChecksumReader(path) as reader:
        return b"".join(reader.pieces())
