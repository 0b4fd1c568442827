"""The fetch log: what is written comes back, whatever happens to its end."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from minutch.cycle.fetch.ledger import Ledger, Outcome
from minutch.cycle.fetch.results.fetchlog import (
    FetchLog,
    Frame,
    LogEntry,
    Part,
    frames,
    log_codec,
    positions,
)
from minutch.cycle.fetch.results.fetchresults import resume
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.compress import DEFAULT_CODEC, codec

MAGIC = b"mnfetch\x06"


def settled(path: Path) -> Iterator[tuple[Outcome, list[str]]]:
    return ((frame.outcome, frame.listed) for frame in frames(path))


def frame(url: str, outcome: Outcome = Outcome.FETCHED, *, size: int = 20) -> Frame:
    result = Frame(outcome, [url])
    result.add(Part.FETCH, url, b"datum of " + url.encode())
    result.add(Part.CONTENT, url, b"x" * size)
    return result


def written(path: Path, *urls: str, name: str = DEFAULT_CODEC) -> list[int]:
    """A log with a frame for each URL; where each frame ends."""
    ends = []
    with closing(FetchLog(path, name)) as log:
        for url in urls:
            log.append(frame(url))
            ends.append(log.size)
    return ends


def test_frames_come_back(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, "http://a/", "http://ü/", name="")
    found = list(frames(path))
    assert [f.listed for f in found] == [["http://a/"], ["http://ü/"]]
    assert found[1].entries[0] == LogEntry(
        Part.FETCH, "http://ü/".encode(), "datum of http://ü/".encode()
    )
    assert [outcome for outcome, _ in settled(path)] == [Outcome.FETCHED] * 2


def test_values_are_compressed_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, "http://a/")
    assert log_codec(path) == DEFAULT_CODEC
    entry = next(frames(path)).entries[1]
    assert codec(DEFAULT_CODEC).decompress(entry.value) == b"x" * 20


def test_places_point_at_the_values(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, "http://a/", "http://b/", name="")
    data = path.read_bytes()
    found = [
        (p.part, p.key, data[p.offset : p.offset + p.length])
        for _, found, _ in positions(path)
        for p in found
    ]
    assert found == [
        (Part.FETCH, b"http://a/", b"datum of http://a/"),
        (Part.CONTENT, b"http://a/", b"x" * 20),
        (Part.FETCH, b"http://b/", b"datum of http://b/"),
        (Part.CONTENT, b"http://b/", b"x" * 20),
    ]


def test_cut_off_anywhere_it_goes_on_after_the_last_whole_frame(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ends = written(path, "http://a/", "http://b/")
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with closing(FetchLog(path, DEFAULT_CODEC)) as log:
            log.append(frame("http://c/"))
        kept = [
            url for url, end in zip(("http://a/", "http://b/"), ends, strict=True) if length >= end
        ]
        assert [url for _, urls in settled(path) for url in urls] == [*kept, "http://c/"]


def test_a_torn_end_is_passed_over_when_reading(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, "http://a/", "http://b/")
    path.write_bytes(path.read_bytes()[:-3])
    assert [urls for _, urls in settled(path)] == [["http://a/"]]


URLS = [f"http://h{n}/" for n in range(100)]


def found_in(path: Path) -> list[str]:
    return [url for _, urls in settled(path) for url in urls]


@pytest.mark.parametrize("zeros", [1, 8, 10, 11, 4096, 200_000])
def test_zeros_at_the_end_are_cut_off(tmp_path: Path, zeros: int) -> None:
    """What a file system leaves after a power cut; eight of them were a good frame once."""
    path = tmp_path / "log"
    ends = written(path, *URLS[:5])
    path.write_bytes(path.read_bytes() + bytes(zeros))
    assert found_in(path) == URLS[:5]
    with closing(FetchLog(path, DEFAULT_CODEC)) as log:
        assert log.size == ends[-1] == path.stat().st_size
        log.append(frame("http://after/"))
    assert found_in(path) == [*URLS[:5], "http://after/"]


@pytest.mark.parametrize("value", [0, 1, 0x7F, 0xFF])
@pytest.mark.parametrize("byte", range(13))
def test_a_changed_byte_costs_one_frame(
    tmp_path: Path, byte: int, value: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Every byte of a frame's head, the first two of its payload; the log keeps what it has, and
    goes on behind it.
    """
    path = tmp_path / "log"
    ends = written(path, *URLS)
    data = bytearray(path.read_bytes())
    at = ends[9] + byte
    data[at] = value if data[at] != value else value ^ 0x55
    path.write_bytes(data)
    rest = [*URLS[:10], *URLS[11:]]
    assert found_in(path) == rest
    assert f"damaged: no frame at offset {ends[9]}; {ends[10] - ends[9]} bytes" in caplog.text
    with closing(FetchLog(path, DEFAULT_CODEC)) as log:
        log.append(frame(URLS[10]))
    assert path.read_bytes()[: len(data)] == data
    assert found_in(path) == [*rest, URLS[10]]
    assert sum(count for count, _, _ in positions(path)) == 100


def test_damage_over_several_frames_and_in_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "log"
    ends = written(path, *URLS)
    data = bytearray(path.read_bytes())
    data[ends[9] + 3 : ends[14] + 3] = bytes(ends[14] - ends[9])
    data[-1] ^= 1
    path.write_bytes(data)
    assert found_in(path) == [*URLS[:10], *URLS[16:99]]
    with closing(FetchLog(path, DEFAULT_CODEC)) as log:
        assert log.size == len(data)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_log_of_an_earlier_version_says_what_to_do(tmp_path: Path, version: int) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"mnfetch" + bytes([version]) + bytes(40))
    with pytest.raises(
        FormatError, match=f"finish it with that one, or remove {tmp_path} and fetch"
    ):
        FetchLog(path, "")


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"something else entirely")
    with pytest.raises(FormatError, match="not a fetch log"):
        FetchLog(path, "")


def test_another_codec_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, "http://a/", name="")
    with pytest.raises(FormatError, match="compressed in another way"):
        FetchLog(path, DEFAULT_CODEC)


def test_a_log_in_which_nothing_is_takes_any_codec(tmp_path: Path) -> None:
    path = tmp_path / "log"
    written(path, name="")
    written(path, "http://a/")
    assert log_codec(path) == DEFAULT_CODEC
    assert len(list(frames(path))) == 1


class FullDisk:
    """A file on a disk that has room for `room` more bytes."""

    def __init__(self, path: Path, room: int) -> None:
        self.file = path.open("r+b", buffering=0)
        self.file.seek(0, os.SEEK_END)
        self.room = room

    def write(self, data: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = self.file.write(data[: self.room])
        self.room -= count
        return count

    def __getattr__(self, name: str) -> object:
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 1, 9, 40])
def test_a_full_disk_is_a_clear_error_and_loses_nothing(tmp_path: Path, room: int) -> None:
    path = tmp_path / "log"
    written(path, "http://a/")
    log = FetchLog(path, DEFAULT_CODEC)
    log._file = FullDisk(path, room)  # type: ignore[assignment]
    with pytest.raises(StoreError, match=r"log.*No space left on device.*same command again"):
        log.append(frame("http://b/", size=5000))
    log.close()
    with closing(FetchLog(path, DEFAULT_CODEC)) as again:
        again.append(frame("http://b/"))
    assert [urls for _, urls in settled(path)] == [["http://a/"], ["http://b/"]]


def test_an_empty_or_headless_log_is_begun_anew(tmp_path: Path) -> None:
    for content in (b"", MAGIC[:3], MAGIC, MAGIC + b"\0\0", bytes(4096)):
        path = tmp_path / f"log{len(content)}"
        path.write_bytes(content)
        written(path, "http://a/")
        assert [urls for _, urls in settled(path)] == [["http://a/"]]


def test_resume_counts_what_is_done_and_what_is_still_to_follow(tmp_path: Path) -> None:
    path = tmp_path / "log-0"
    with closing(FetchLog(path, DEFAULT_CODEC)) as log:
        first = frame("http://a/")
        first.add(Part.FOLLOW, "http://a/1", b"one")
        first.add(Part.FOLLOW, "http://a/2", b"two")
        log.append(first)
        done = Frame(Outcome.FOLLOWED)
        done.add(Part.FETCH, "http://a/1", b"datum")
        log.append(done)
        log.append(frame("http://b/", Outcome.GONE))
    found = resume([path])
    assert dict(found.settled) == {"http://a/": 1, "http://b/": 1}
    assert found.ledger.outcomes == {Outcome.FETCHED: 1, Outcome.GONE: 1}
    assert found.follow == {"http://a/2": b"two"}
    assert not resume([]).settled


def test_ledger_adds_up_or_says_what_is_missing() -> None:
    ledger = Ledger()
    ledger.generated = 3
    ledger.settle(Outcome.FETCHED, 2)
    ledger.settle(Outcome.FOLLOWED, 7)
    with pytest.raises(StoreError, match="3 URLs in the fetch list, 2 with an outcome"):
        ledger.check("segment")
    ledger.settle(Outcome.SKIPPED_TIMELIMIT)
    ledger.check("segment")
    counters = ledger.counters()
    assert counters["generated"] == 3 and counters["skipped (time limit)"] == 1
    assert list(counters)[:7] == [
        "generated",
        "fetched",
        "redirected",
        "gone",
        "retry",
        "denied",
        "deferred",
    ]


def test_every_outcome_has_a_label() -> None:
    labels = [outcome.label for outcome in Outcome]
    assert len(set(labels)) == len(Outcome)
    assert [o for o in Outcome if o.skipped] == [o for o in Outcome if o.name.startswith("SKIPPED")]
