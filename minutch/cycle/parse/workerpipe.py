"""Messages of many byte strings over the pipe to a worker, none of which is copied into one first.

    message  :=  u32 number of strings   u64 length of each   the strings, one after the other

A pipe's own messages (pickles) are copied three times on their way, which costs more than the way
itself. Either end may read a message as a whole (`receive`) or as it comes (`arrived`), which never
waits: whoever writes the beginning of a message may never write its end.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Generator, Sequence
from io import FileIO
from itertools import accumulate, islice
from multiprocessing.connection import Connection
from typing import Final

_COUNT: Final = struct.Struct(">I")
_MOST: Final = 1 << 16
"""Strings of a message; batches have fewer."""
_AT_ONCE: Final = 512
"""Strings that one system call is given; systems take 1,024 at least."""


class Channel:
    """One end of a pipe; the memory that messages are read into is used again."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._input = FileIO(connection.fileno(), "r", closefd=False)
        self._memory = bytearray()
        self._coming: Generator[None, None, list[bytes]] | None = None

    def send(self, strings: Sequence[bytes]) -> None:
        """Writes a message. Raises OSError if nobody reads any more."""
        lengths = struct.pack(f">{len(strings)}Q", *map(len, strings))
        parts = iter([_COUNT.pack(len(strings)) + lengths, *strings])
        while some := list(islice(parts, _AT_ONCE)):
            self._write(some)

    def _write(self, strings: list[bytes]) -> None:
        """Writes some strings by as few system calls as there may be: each of them may wake the
        reader.
        """
        descriptor = self.connection.fileno()
        left: Sequence[bytes | memoryview] = strings
        while left:
            done = os.writev(descriptor, left)
            ends = [*accumulate(map(len, left))]
            first = bisect_right(ends, done)
            left = (
                [memoryview(left[first])[done - ends[first] :], *left[first + 1 :]]
                if first < len(left)
                else []
            )

    def receive(self, most: int) -> list[bytes]:
        """Returns the next message, if it has at most `most` bytes; waits for it. Raises EOFError
        at the end of the pipe, OSError else.
        """
        while (message := self._next_piece(most)) is None:
            pass
        return message

    def arrived(self, most: int) -> list[bytes] | None:
        """Returns the same, None if the message is not there as a whole yet: the next call goes on
        where this one ended.
        """
        while self.connection.poll():
            if (message := self._next_piece(most)) is not None:
                return message
        return None

    def _next_piece(self, most: int) -> list[bytes] | None:
        """Reads once; returns the message if that was its end."""
        if self._coming is None:
            self._coming = self._message(most)
            next(self._coming)
        try:
            next(self._coming)
        except StopIteration as end:
            self._coming = None
            message: list[bytes] = end.value
            return message
        return None

    def _message(self, most: int) -> Generator[None, None, list[bytes]]:
        """Reads a message; before each read, which may have to wait, it yields."""
        (count,) = _COUNT.unpack((yield from self._read(_COUNT.size, most)))
        if count > _MOST:
            raise OSError(f"a message of {count} strings, at most {_MOST} expected")
        lengths = struct.unpack(f">{count}Q", (yield from self._read(8 * count, most)))
        data = yield from self._read(sum(lengths), most)
        strings, at = [], 0
        for length in lengths:
            strings.append(bytes(data[at : at + length]))
            at += length
        return strings

    def _read(self, size: int, most: int) -> Generator[None, None, memoryview]:
        """Returns the next `size` bytes, valid until the next call."""
        if size > most:
            raise OSError(f"a message of {size} bytes, at most {most} expected")
        if size > len(self._memory):
            self._memory = bytearray(size)
        data = memoryview(self._memory)[:size]
        done = 0
        while done < size:
            yield
            got = self._input.readinto(data[done:])
            if not got:
                raise EOFError
            done += got
        return data
