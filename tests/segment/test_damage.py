"""Damage that no checksum tells of: every command ends in our own error, or reads what is there, and never crashes."""

from __future__ import annotations

import io
import random
from contextlib import suppress
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.errors import FormatError, StoreError
from minutch.job import JobContext
from minutch.segment import readseg
from minutch.segment import text as text_command
from minutch.segment.store import LAYOUTS, Segment
from tests.support.golden import GOLDEN, needs_golden
from tests.support.sequencefiles import copy_writable

pytestmark = needs_golden

SOURCES = sorted(GOLDEN.glob("crawl-small/run-default-r1/crawl/segments/*"))[:1] + sorted(
    GOLDEN.glob("nutch-testresources/test-segments/*")
)


def _context() -> JobContext:
    return JobContext(Configuration(), FakeClock(), out=io.StringIO(), err=io.StringIO())


@pytest.fixture(params=SOURCES, ids=lambda path: path.name)
def segment(request: pytest.FixtureRequest, tmp_path: Path) -> Segment:
    """A segment without checksums."""
    copy = copy_writable(request.param, tmp_path / request.param.name)
    for sibling in copy.rglob(".*.crc"):
        sibling.unlink()
    return Segment(copy)


def _damages(data: bytes, rounds: int) -> list[bytes]:
    chance = random.Random(len(data))
    flipped = []
    for _ in range(rounds):
        at = chance.randrange(len(data))
        flipped.append(data[:at] + bytes((chance.randrange(256),)) + data[at + 1 :])
        flipped.append(data[:at])
        flipped.append(data[:at] + chance.randbytes(8) + data[at + 8 :])
    return flipped


def test_reading_a_damaged_segment(segment: Segment) -> None:
    folders = [folder for folder in LAYOUTS if segment.has(folder)]
    url = next(segment.records(folders[0]))[0]
    for folder in folders:
        for path in segment.data_files(folder):
            whole = path.read_bytes()
            for damaged in _damages(whole, 12):
                path.write_bytes(damaged)
                with suppress(FormatError):
                    list(segment.records(folder))
                with suppress(FormatError):
                    segment.get(folder, url)
            path.write_bytes(whole)


def test_commands_on_a_damaged_segment(segment: Segment, tmp_path: Path) -> None:
    files = [path for folder in LAYOUTS if segment.has(folder) for path in segment.data_files(folder)]
    for path in files:
        whole = path.read_bytes()
        for damaged in _damages(whole, 2):
            path.write_bytes(damaged)
            for args in (["-dump", str(segment.path), str(tmp_path / "out")], ["-list", str(segment.path)]):
                with suppress(FormatError, StoreError):
                    assert readseg.run(args, _context()) == 0
            assert text_command.run([str(segment.path)], _context()) in (0, 1)
            assert text_command.run(["-json", str(path)], _context()) in (0, 1)
        path.write_bytes(whole)
    assert readseg.run(["-dump", str(segment.path), str(tmp_path / "out")], _context()) == 0


def test_damaged_index_is_our_error(segment: Segment) -> None:
    url = next(segment.records("crawl_fetch"))[0]
    expected = segment.get("crawl_fetch", url)
    for part in segment.parts("crawl_fetch"):
        index = part / "index"
        whole = index.read_bytes()
        for damaged in _damages(whole, 30):
            index.write_bytes(damaged)
            with suppress(FormatError):
                segment.get("crawl_fetch", url)
        index.write_bytes(whole)
    assert segment.get("crawl_fetch", url) == expected
