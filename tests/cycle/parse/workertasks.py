"""Tasks of worker pools, in a module of their own: each worker loads it. A module of tests would
load pytest and Polars, a third of a second of CPU for a task of microseconds.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import pickle
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from minutch.conf import Configuration
from minutch.cycle.parse import workerprocess
from minutch.cycle.parse.pageparser import PageParser, ParsedPage, SegmentTask
from minutch.cycle.parse.pagerecords import PackedDocument
from minutch.cycle.parse.partwriters import PartSettings


@dataclass
class Upper:
    """Gives items back in capitals, but for a few that misbehave."""

    result_type = str

    def accepts(self, result: str) -> bool:
        return True

    def run(self, item: bytes) -> str:
        if item == b"crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if item == b"segfault":
            faulthandler.disable()
            ctypes.string_at(0)
        if item == b"spin":
            while True:
                pass
        if item == b"deaf":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            while True:
                time.sleep(60)
        if item == b"eat":
            return str(len([bytearray(1 << 24) for _ in range(1000)]))
        return item.decode()

    def finish(self, results: list[str]) -> list[str]:
        return [result.upper() for result in results]

    def fail(self, item: bytes, reason: str) -> str:
        return f"{item.decode()}: {reason}"


@dataclass
class Sorts(Upper):
    """Works with columns."""

    def finish(self, results: list[str]) -> list[str]:
        import polars as pl

        table = (
            pl.DataFrame({"a": results})
            .lazy()
            .select(pl.col("a").sort().str.to_uppercase())
            .collect()
        )
        return table["a"].to_list()


@dataclass
class Watches(Upper):
    """Says how many seconds are left until the alarm, at an item and after the batch."""

    def run(self, item: bytes) -> str:
        return str(signal.getitimer(signal.ITIMER_REAL)[0])

    def finish(self, results: list[str]) -> list[str]:
        return [*results[:-1], str(signal.getitimer(signal.ITIMER_REAL)[0])]


@dataclass
class EndsBadly(Upper):
    """Ends with some item, or hangs, when it has run through all of a batch."""

    def finish(self, results: list[str]) -> list[str]:
        if "last" in results:
            os.kill(os.getpid(), signal.SIGKILL)
        while "endless" in results:
            pass
        return super().finish(results)


@dataclass
class Dribbles(Upper):
    """Writes the beginning of a message, and then nothing."""

    def run(self, item: bytes) -> str:
        if item == b"dribble":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
            (pipe,) = _sockets()
            os.write(pipe, b"\0\0\0\1" + (1000).to_bytes(8, "big") + b"half")
            signal.pause()
        return super().run(item)


def _sockets() -> list[int]:
    """The sockets that this process has: in a worker, its end of the pipe."""
    files = [path for path in Path("/dev/fd").iterdir() if path.exists() and path.is_socket()]
    return [int(path.name) for path in files]


class Sizes(NamedTuple):
    """A result of several fields, of which `sizes` has no negative ones."""

    name: str
    sizes: Sequence[int] = ()
    data: bytes = b""


@dataclass
class Answers(Upper):
    """Answers for a batch with some item what the parent does not expect: a value, or bytes."""

    result_type = Sizes

    def accepts(self, result: Sizes) -> bool:  # type: ignore[override]
        return all(size >= 0 for size in result.sizes)

    def finish(self, results: list[str]) -> list[Sizes]:  # type: ignore[override]
        odd = next((result for result in results if result.startswith("!")), None)
        if odd is not None:
            forged = eval(odd[1:])
            message = [forged] if isinstance(forged, bytes) else [msgspec.msgpack.encode(forged)]
            workerprocess.send = lambda channel, _: channel.send(message)
        return [Sizes(result.upper(), [1], b"x") for result in results]

    def fail(self, item: bytes, reason: str) -> Sizes:  # type: ignore[override]
        return Sizes(reason)


class Bytes(Upper):
    """Answers byte strings."""

    result_type = bytes

    def finish(self, results: list[str]) -> list[bytes]:  # type: ignore[override]
        return [result.upper().encode() for result in results]

    def fail(self, item: bytes, reason: str) -> bytes:  # type: ignore[override]
        return f"{item.decode()}: {reason}".encode()


class Unpaired(Upper):
    """Answers text that UTF-8 has not."""

    def finish(self, results: list[str]) -> list[str]:
        return [f"{result}\ud800" for result in results]


def segment_task(conf: Configuration) -> SegmentTask:
    """The task of `minutch parse`."""
    parser = partial(PageParser, conf, PartSettings.from_conf(conf), "20260101000000")
    return SegmentTask(parser, 0)


class Forger:
    """A worker that was taken over: for some item, it answers a pickle, which sets an attribute of
    a class, as it could when answers were pickles.
    """

    result_type = ParsedPage

    def accepts(self, result: ParsedPage) -> bool:
        return result.is_usable

    def run(self, item: bytes) -> bytes:
        return item

    def finish(self, results: list[bytes]) -> list[ParsedPage]:
        if b"forge" in results:
            state = pickle.dumps((None, {"data": b"forged"}), 2)[2:-1]
            named = b"cminutch.cycle.parse.pagerecords\nPackedDocument\n"
            workerprocess.send = lambda channel, _: channel.send(
                [b"\x80\x02" + named + state + b"b0]."]
            )
        return [ParsedPage([], [PackedDocument(b"u", b"t", item, b"")]) for item in results]

    def fail(self, item: bytes, reason: str) -> ParsedPage:
        return ParsedPage([], [], reason)


class Breaks(Forger):
    """Its results can't be taken."""

    def run(self, item: bytes) -> bytes:
        raise MemoryError

    def fail(self, item: bytes, reason: str) -> ParsedPage:
        raise RuntimeError(reason)
