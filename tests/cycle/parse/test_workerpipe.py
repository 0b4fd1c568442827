"""Messages over a pipe: any strings, of any size, and what comes of a pipe that breaks."""

from __future__ import annotations

import struct
import threading
from multiprocessing import Pipe

import pytest

from minutch.cycle.parse.workerprocess import WorkerChannel

LARGE = 5 << 20


@pytest.mark.parametrize(
    "strings",
    [[], [b""], [b"a", b"", b"bc"], [b"x" * LARGE, b"y"], [bytes([n]) for n in range(256)]],
)
def test_what_is_sent_comes(strings: list[bytes]) -> None:
    ours, theirs = map(WorkerChannel, Pipe())
    sending = threading.Thread(target=lambda: [ours.send(strings), ours.send([b"next"])])
    sending.start()
    first = theirs.receive(2 * LARGE)
    assert theirs.receive(100) == [b"next"]
    assert first == strings
    sending.join()


def test_a_message_is_read_as_it_comes() -> None:
    ours, theirs = Pipe()
    channel = WorkerChannel(theirs)
    whole = struct.pack(">I2Q", 2, 3, 1) + b"abcd"
    with open(ours.fileno(), "wb", buffering=0, closefd=False) as pipe:
        for byte in whole[:-1]:
            pipe.write(bytes([byte]))
            assert channel.arrived(100) is None
        pipe.write(whole[-1:] + struct.pack(">I", 0))
        assert channel.arrived(100) == [b"abc", b"d"]
        assert channel.receive(100) == []
        assert channel.arrived(100) is None


def test_a_message_that_is_too_large_is_not_read() -> None:
    ours, theirs = map(WorkerChannel, Pipe())
    ours.send([b"x" * 1000])
    with pytest.raises(OSError, match="1000 bytes, at most 999"):
        theirs.receive(999)


def test_a_pipe_that_ends() -> None:
    for sent in (b"", b"\0\0", struct.pack(">IQ", 1, 10) + b"half"):
        ours, theirs = Pipe()
        channel = WorkerChannel(theirs)
        WorkerChannel(ours)
        with open(ours.fileno(), "wb", closefd=False) as pipe:
            pipe.write(sent)
        ours.close()
        with pytest.raises(EOFError):
            channel.receive(100)


def test_nobody_reads() -> None:
    ours, theirs = Pipe()
    theirs.close()
    with pytest.raises(BrokenPipeError):
        WorkerChannel(ours).send([b"x"])
