"""Damage that no checksum tells of: what lies before it is read as it was, and the rest ends in our
own error.

Without an error nothing may be missing: as many records come as were written, or, if the file was
cut off, those before the cut, which was then between two of them.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment.store import LAYOUTS, Segment
from minutch.errors import FormatError, StoreError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.writables import Writable
from minutch.job import JobContext
from tests.support.commands import readseg
from tests.support.commands import text as text_command
from tests.support.examples import every
from tests.support.golden import GOLDEN, needs_golden
from tests.support.sequencefiles import copy_writable

pytestmark = needs_golden

SOURCES = sorted(GOLDEN.glob("crawl-small/run-default-r1/crawl/segments/*"))[:1] + sorted(
    GOLDEN.glob("nutch-testresources/test-segments/*")
)

Records = list[tuple[str, Writable]]


def _context() -> JobContext:
    return JobContext(Configuration(), FakeClock(), out=io.StringIO(), err=io.StringIO())


@pytest.fixture(params=SOURCES, ids=lambda path: path.name)
def segment(request: pytest.FixtureRequest, tmp_path: Path) -> Segment:
    """A segment without checksums."""
    copy = copy_writable(request.param, tmp_path / request.param.name)
    for sibling in copy.rglob(".*.crc"):
        sibling.unlink()
    return Segment(copy)


@dataclass(frozen=True)
class Damage:
    """A file's bytes after damage, and the offset from which on they are not what they were."""

    data: bytes
    at: int
    cut: bool = False


def _damages(data: bytes, rounds: int, start: int = 0) -> Iterator[Damage]:
    chance = random.Random(len(data))
    for _ in range(rounds):
        at = chance.randrange(start, len(data))
        yield Damage(data[:at] + bytes((chance.randrange(256),)) + data[at + 1 :], at)
        yield Damage(data[:at], at, cut=True)
        yield Damage(data[:at] + chance.randbytes(8) + data[at + 8 :], at)


def _ends(path: Path) -> list[int]:
    """Returns the offset at which each record, or the block that it is in, ends."""
    with SequenceFileReader(path) as reader:
        return [reader.position for _ in reader]


def _read(segment: Segment, folder: str) -> tuple[Records, FormatError | None]:
    """The records up to an error, and the error."""
    found: Records = []
    try:
        for record in segment.records(folder):
            found.append(record)
    except FormatError as exc:
        return found, exc
    return found, None


def _files(segment: Segment) -> Iterator[tuple[str, Path, bytes]]:
    """Folder, path and bytes of each data file; the file is as it was after each turn."""
    for folder in LAYOUTS:
        if segment.has(folder):
            (path,) = segment.data_files(folder)
            whole = path.read_bytes()
            yield folder, path, whole
            path.write_bytes(whole)


def test_reading_a_damaged_segment(segment: Segment) -> None:
    errors = 0
    for folder, path, whole in _files(segment):
        expected, _ = _read(segment, folder)
        ends = _ends(path)
        url = expected[0][0]
        values = [value for name, value in expected if name == url]
        for damage in _damages(whole, 12 // every(3)):
            path.write_bytes(damage.data)
            unharmed = sum(end <= damage.at for end in ends)
            found, error = _read(segment, folder)
            assert found[:unharmed] == expected[:unharmed]
            if error is not None:
                assert error.path == str(path), error
                errors += 1
            else:
                assert len(found) == (unharmed if damage.cut else len(expected))
            with suppress(FormatError):
                got = segment.get(folder, url)
                assert got == values or unharmed < len(expected)
                assert got[: min(unharmed, 1)] == values[: min(unharmed, 1)]
    assert errors > 30


@pytest.mark.parametrize(
    "segment", SOURCES[:2], ids=lambda path: path.name, indirect=True
)  # the small ones
def test_commands_on_a_damaged_segment(segment: Segment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for folder, path, whole in _files(segment):
        with SequenceFileReader(path) as reader:
            header = reader.position
        for damage in _damages(
            whole, 2, header
        ):  # of a class that is not known, commands show the bytes
            path.write_bytes(damage.data)
            found, error = _read(segment, folder)
            for args in (["-dump", str(segment.path), str(out)], ["-list", str(segment.path)]):
                with suppress(FormatError, StoreError):
                    assert readseg.run(args, _context()) == 0
                    assert args[0] == "-list" or error is None
            context = _context()
            assert text_command.run(["-json", str(path)], context) == (error is not None)
            lines = context.out.getvalue().splitlines()  # type: ignore[attr-defined]
            assert [json.loads(line)["key"] for line in lines] == [url for url, _ in found]
            assert text_command.run([str(segment.path)], _context()) == (error is not None)
    assert readseg.run(["-dump", str(segment.path), str(out)], _context()) == 0


def test_damaged_index_is_our_error(segment: Segment) -> None:
    records, _ = _read(segment, "crawl_fetch")
    urls = {name: number for number, (name, _) in enumerate(records)}
    for part in segment.parts("crawl_fetch"):
        index = part / "index"
        whole = index.read_bytes()
        for damage in _damages(whole, 30):
            index.write_bytes(damage.data)
            for url in list(urls)[:: max(1, len(urls) // 5)]:
                with suppress(FormatError):
                    assert segment.get("crawl_fetch", url) in ([], [records[urls[url]][1]])
        index.write_bytes(whole)
    assert all(
        segment.get("crawl_fetch", url) == [records[number][1]] for url, number in urls.items()
    )
