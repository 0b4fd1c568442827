"""Runs a task in a worker process: batches of items in, an answer for each out, within limits.

The worker notes the item that it is at in memory that it shares with the parent. An alarm
interrupts Python code after `timeout` seconds. `memory` bytes are what the worker may take on top
of what it begins with. What else it may not do is decided in `sandbox`, and holds from before its
first item.

Messages are many byte strings, none of which is copied into one first:

    message  :=  u32 number of strings   u64 length of each   the strings, one after the other
    answer   :=  [[result, ""] or [nil, reason], ...]         one for each item
    result   :=  a NamedTuple as an array, a dataclass as a map

A pipe's own messages (pickles) are copied three times on their way, which costs more than the way
itself. Either end may read a message as a whole (`receive`) or as it comes (`arrived`), which never
waits: whoever writes the beginning of a message may never write its end.

An answer is data: whoever has taken the worker over, nothing of the parent is named, called or set
by it. It is MessagePack, which holds numbers, texts, byte strings, lists and maps alone. It is read
as what the task declares (`WorkerTask.result_type`: NamedTuples, dataclasses and Python's own
types), and held to these types on the way; what the task can't use of that, such as records that
are none, it does not accept. (Pickles of listed classes, as before, could set attributes of a
class, and so forge all later pages.)
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import signal
import struct
import sys
from bisect import bisect_right
from collections.abc import Callable, Generator, Sequence
from io import FileIO
from itertools import accumulate, islice
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import msgspec

from minutch.cycle.parse.dispatch import ParseTimeout
from minutch.kernels import library

if TYPE_CHECKING:
    from minutch.cycle.parse.workerpool import PoolSettings


_COUNT: Final = struct.Struct(">I")
_MOST: Final = 1 << 16
"""Strings of a message; batches have fewer."""
_AT_ONCE: Final = 512
"""Strings that one system call is given; systems take 1,024 at least."""


class WorkerChannel:
    """One end of a pipe; the memory that messages are read into is used again."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        # Unbuffered: a buffer would hide bytes from `poll`, which asks the descriptor.
        self._input = FileIO(connection.fileno(), "r", closefd=False)
        self._memory = bytearray()
        self._coming: Generator[None, None, list[bytes]] | None = None

    def send(self, strings: Sequence[bytes]) -> None:
        """Writes a message. Raises OSError if nobody reads it any more."""
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
            # May be fewer bytes than given: a signal, or a full pipe.
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
        """Returns the next message; None if not all of it is there yet: the next call goes on where
        this one ended.
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
        # Before there is memory for what the count, or below a length, claims.
        if count > _MOST:
            raise OSError(f"a message of {count} strings, at most {_MOST} expected")
        lengths = struct.unpack(f">{count}Q", (yield from self._read(8 * count, most)))
        data = yield from self._read(sum(lengths), most)
        strings, at = [], 0
        for length in lengths:
            # A copy, since the memory is used again for the next message.
            strings.append(bytes(data[at : at + length]))
            at += length
        return strings

    def _read(self, size: int, most: int) -> Generator[None, None, memoryview]:
        """Returns the next `size` bytes, valid until the next call."""
        # A page could have the worker claim terabytes.
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


Answer = list[tuple[Any, str]]

LARGEST: Final = 1 << 28
"""Bytes of a batch's answer that are read at most; a batch with a larger one is halved."""


def send(channel: WorkerChannel, answer: Answer) -> None:
    """Sends an answer."""
    try:
        data = msgspec.msgpack.encode(answer)
    except UnicodeEncodeError:  # unpaired surrogates, which UTF-8 has not
        plain = msgspec.to_builtins(answer, builtin_types=(bytes,))
        data = msgspec.msgpack.encode(_in_utf8(plain))
    channel.send([data])


def _in_utf8(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_in_utf8(item) for item in value]
    if isinstance(value, dict):
        return {_in_utf8(name): _in_utf8(item) for name, item in value.items()}
    return value


class AnswerReader:
    """Reads answers of one type of results."""

    def __init__(self, result_type: Any, accepts: Callable[[Any], bool]) -> None:
        """`accepts` tells whether a result, of the type, can be used."""
        self._decoder = msgspec.msgpack.Decoder(list[tuple[result_type | None, str]])
        self._accepts = accepts

    def arrived(self, channel: WorkerChannel, count: int) -> Answer | None:
        """Returns a worker's answer for so many items; None if not all of it is there yet.

        Raises EOFError, OSError if it is none, or too large.
        """
        message = channel.arrived(LARGEST)
        if message is None:
            return None
        try:
            answer: Answer = self._decoder.decode(b"".join(message))
        except (ValueError, RecursionError) as error:  # msgspec's, and of texts that are no UTF-8
            raise OSError(f"not an answer: {error}") from error
        # Fewer results would shift those of all later items by one.
        if len(answer) != count:
            raise OSError(f"not an answer: {len(answer)} results for {count} items")
        for result, reason in answer:
            # A result or a reason, never both and never neither.
            if (result is None) != bool(reason) or not (reason or self._accepts(result)):
                raise OSError("not an answer: a result that can't be used")
        return answer


NOT_BEGUN: Final = -1
FINISHING: Final = -2
"""In place of the number of an item: none yet, all of the batch."""
_OBJECTS: Final = 250_000
"""Objects by which those of a batch may grow before a worker looks for cycles among them, which it
does between batches otherwise: few pages need as many.
"""
_BATCHES: Final = 64
"""Batches after which cycles are looked for among all that has been made, not only in the last
one.
"""

R = TypeVar("R")


class WorkerTask(Protocol[R]):
    """The task of workers. `run` and `finish` work in a worker, `fail` in the parent."""

    @property
    def result_type(self) -> Any:
        """The type of a result: of NamedTuples, dataclasses and Python's own (`AnswerReader`)."""

    def accepts(self, result: R) -> bool:
        """Tells whether a result of this type can be used, though the worker may have been taken
        over.
        """

    def run(self, item: bytes) -> Any:
        """Reads an item within the limits; may raise ParseTimeout (from the alarm) and
        MemoryError.
        """

    def finish(self, results: Any) -> list[R]:
        """Returns the results, made of what `run` has returned for the items of a batch."""

    def fail(self, item: bytes, reason: str) -> R:
        """Returns the result for an item that the task could not finish."""


def serve(
    connection: Connection, make_task: Callable[[], WorkerTask[R]], at: Any, settings: PoolSettings
) -> None:
    """Runs the worker's side: batches in, lists of (result, reason for failure) out, until the
    parent hangs up.
    """
    settings.sandbox.part()
    signal.signal(signal.SIGALRM, _alarm)
    limit_memory(settings.memory)
    task = make_task()
    library.load()
    settings.sandbox.close([connection.fileno()])
    # Batches are made of objects that live and die together: cycles are looked for when one is
    # gone.
    # Modules and the task live as long as the process: no search walks over them again.
    gc.freeze()
    gc.set_threshold(_OBJECTS, 20, 50)
    channel = WorkerChannel(connection)
    batches = 0
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while (items := _next_batch(channel)) is not None:
            found = []
            for number, item in enumerate(items):
                # Before the item is touched: if the process dies, this is whom the parent blames.
                at.value = number
                found.append(_attempt(task, item, settings.timeout))
            at.value = FINISHING
            # Links are judged for the whole batch at once, so an end here has no item to blame.
            results = iter(task.finish([result for result, reason in found if not reason]))
            send(
                channel, [(None, reason) if reason else (next(results), "") for _, reason in found]
            )
            del items, found, results
            batches += 1
            gc.collect(0 if batches % _BATCHES else 2)


def _next_batch(channel: WorkerChannel) -> list[bytes] | None:
    """Returns the next items; None if the parent has hung up, be it in the middle of a batch."""
    try:
        # No limit: the parent is trusted, the worker is not.
        return channel.receive(sys.maxsize)
    except (EOFError, OSError):
        return None


def _attempt(task: WorkerTask[Any], item: bytes, timeout: float) -> tuple[Any, str]:
    """Runs the task on an item; no alarm outlives it: between two items it would end the worker."""
    try:
        try:
            _set_alarm(timeout)
            return task.run(item), ""
        finally:
            # In the inner finally, so that an alarm which goes off right here is still caught
            # below.
            _set_alarm(0)
    except ParseTimeout:
        return None, too_long(timeout)
    except MemoryError:
        # RLIMIT_DATA made malloc fail: the worker itself is well and goes on.
        return None, "out of memory"


def _set_alarm(seconds: float) -> None:
    """Lets the alarm go off in so many seconds, never for 0 or less."""
    signal.setitimer(signal.ITIMER_REAL, max(0.0, seconds))


def _alarm(number: int, frame: FrameType | None) -> None:
    raise ParseTimeout


def too_long(timeout: float) -> str:
    """Returns the reason for a failure by timeout."""
    return f"not done within {timeout:g} s (parser.timeout)"


def limit_memory(memory: int) -> None:
    """Allows `memory` bytes more than are in use; where the system does not know such limits there
    is none.
    """
    if memory <= 0:
        return
    with contextlib.suppress(OSError, ValueError, IndexError):
        used = (
            int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
            * resource.getpagesize()
        )
        # Soft only: `Sandbox.close` makes it one for good.
        resource.setrlimit(resource.RLIMIT_DATA, (used + memory, resource.RLIM_INFINITY))
