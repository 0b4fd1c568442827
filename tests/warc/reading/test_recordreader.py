"""Records of archives: every container is read alike, and damage costs the records that it hits,
and no others.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import logging
import random
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from minutch.warc.reading.archivefiles import ArchiveFile, find_archives
from minutch.warc.reading.bytesource import RecordPosition
from minutch.warc.reading.recordheads import ARC, WARC, Grammar
from minutch.warc.reading.recordreader import MOST_SAID, Record
from tests.support.examples import tabled
from tests.warc.reading.files import (
    CONTAINERS,
    Container,
    answer,
    arc_record,
    compression_of,
    gzip_each,
    gzip_whole,
    plain,
    read,
    reader,
    skippable,
    warc_record,
    zstd_each,
    zstd_frame,
    zstd_shared,
    zstd_whole,
)

EACH = (plain, gzip_each, zstd_each)
"""A record, and what it is compressed to, stands by itself."""


def blocks(count: int, seed: int = 1) -> list[bytes]:
    """Blocks of any bytes, lines and blank lines among them."""
    random_ = random.Random(seed)
    return [
        bytes(random_.choices(b"abc <>\r\n\0\xff", k=random_.randrange(3000))) for _ in range(count)
    ]


def identified(records: list[Record]) -> dict[str, bytes]:
    return {record.fields.get("warc-record-id", ""): record.block for record in records}


@tabled("container", CONTAINERS)
def test_a_file_is_read_however_it_is_compressed(container: Container) -> None:
    wanted = blocks(60)
    data = container([warc_record(number, block) for number, block in enumerate(wanted)])
    records, damages = read(data)
    assert [record.block for record in records] == wanted
    assert damages == 0
    again = reader(data)
    for record in random.Random(2).sample(records, 20):
        found = again.at(record.place)
        assert found is not None
        assert (found.block, found.place) == (record.block, record.place)


def test_other_libraries_read_the_same() -> None:
    data = gzip_each(warc_record(number, answer(block)) for number, block in enumerate(blocks(40)))
    mine, _ = read(data)
    warcio = [
        record.raw_stream.read()
        for record in ArchiveIterator(io.BytesIO(data), no_record_parse=True)
    ]
    fast = [record.reader.read() for record in FastIterator(io.BytesIO(data), parse_http=False)]
    assert [record.block for record in mine] == warcio == fast


def test_heads_may_be_folded_and_end_in_line_feeds_alone() -> None:
    data = (
        b"WARC/0.18\nwarc-type: resource\nWARC-Target-URI: http://h/\n  long\nContent-Length:"
        b" 2\n\nab\n\n"
    )
    records, damages = read(data)
    assert records[0].fields["warc-target-uri"] == "http://h/ long"
    assert (records[0].block, damages) == (b"ab", 0)


# -- damage ----------------------------------------------------------------------------------------


def damage(data: bytes, how: str, at: int, size: int, seed: int) -> bytes:
    junk = random.Random(seed).randbytes(size)
    return {
        "flip": data[:at] + bytes([data[at] ^ 1 << seed % 8]) + data[at + 1 :],
        "overwrite": data[:at] + junk + data[at + size :],
        "cut": data[:at],
        "insert": data[:at] + junk + data[at:],
        "remove": data[:at] + data[at + size :],
    }[how]


def is_touched(start: int, end: int, how: str, at: int, size: int) -> bool:
    """Tells whether damage hits the bytes from `start` to `end`."""
    if how == "cut":
        return end > at
    if how == "insert":
        return start <= at <= end
    return start < at + (1 if how == "flip" else size) and end > at


@given(
    seed=st.integers(0, 1 << 16),
    how=st.sampled_from(["flip", "overwrite", "cut", "insert", "remove"]),
    place=st.floats(0, 1, exclude_max=True),
    size=st.sampled_from([1, 2, 40, 900, 5000]),
    container=st.sampled_from(CONTAINERS),
)
def test_damage_costs_what_it_hits_and_nothing_else(
    seed: int, how: str, place: float, size: int, container: Container
) -> None:
    wanted = blocks(12, seed)
    stored = [warc_record(number, block) for number, block in enumerate(wanted)]
    data = container(stored)
    at = int(place * len(data))
    bad = damage(data, how, at, size, seed)
    records, damages = read(bad, compression=compression_of(data))
    found = identified(records)
    ends = [0]
    for number, record in enumerate(stored):
        ends.append(ends[-1] + len(container([record])))
        if container in EACH and not is_touched(ends[-2], ends[-1], how, at, size):
            assert found.get(f"<urn:test:{number}>") == wanted[number]
    is_at_end = how == "cut" and (
        not at or at in ends
    )  # of a record: nothing tells that more is to come
    if container is not plain and bad != data and len(records) < len(stored) and not is_at_end:
        assert damages
    if container is gzip_each:
        assert all(block in wanted for block in found.values())


@given(
    data=st.binary(max_size=3000),
    container=st.sampled_from(CONTAINERS),
    grammar=st.sampled_from([WARC, ARC]),
)
def test_no_bytes_break_the_reader(data: bytes, container: Container, grammar: Grammar) -> None:
    good = warc_record(1, b"good") if grammar is WARC else arc_record("http://h/", b"good")
    records, _ = read(container([good, data, good]) if data else b"", grammar)
    assert not data or records[0].block == b"good"


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(
    "length", [b"0", b"7", b"250", b"99999", b"900000000000000000", b"-1", b"x", b""]
)
def test_wrong_lengths(
    container: Container, length: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The records around it are read, and the log names the offset."""
    stored = [warc_record(number, b"x" * 200) for number in range(5)]
    stored[2] = stored[2].replace(b"Content-Length: 200", b"Content-Length: " + length)
    records, damages = read(container(stored))
    found = identified(records)
    assert [number for number in range(5) if found.get(f"<urn:test:{number}>") == b"x" * 200] == [
        0,
        1,
        3,
        4,
    ]
    assert damages >= 1
    offset = len(container(stored[:2])) if container in (*EACH, zstd_shared) else 0
    assert f"test.warc: damaged at offset {offset}" in caplog.messages[0]


@tabled("container", CONTAINERS)
@tabled("length", [b"5", b"99999", b"2"])
def test_an_answer_that_says_its_length_mends_a_wrong_one(
    container: Container, length: bytes
) -> None:
    block = answer(b"y" * 300, "Content-Length: 300")
    stored = [warc_record(number, block) for number in range(4)]
    stored[1] = stored[1].replace(
        b"\r\nContent-Length: %d\r\n\r\nHTTP" % len(block),
        b"\r\nContent-Length: %s\r\n\r\nHTTP" % length,
    )
    records, damages = read(container(stored))
    assert [record.block for record in records] == [block] * 4
    assert damages == 1


@tabled("container", CONTAINERS)
@tabled("tail", [b"", b"\r\n", b"\n", b"\r\n\r\n\r\n\r\n"])
def test_blank_lines_that_are_missing_or_too_many(container: Container, tail: bytes) -> None:
    stored = [warc_record(number, b"abc").removesuffix(b"\r\n\r\n") + tail for number in range(5)]
    records, damages = read(container(stored))
    assert [record.block for record in records] == [b"abc"] * 5
    assert damages == 0


def test_a_record_with_its_digest_is_kept_whatever_follows() -> None:
    block = b"whole"
    digest = base64.b32encode(hashlib.sha1(block).digest()).decode()
    named = {
        "sha1": f"sha1:{digest}",
        "sha256": f"sha-256:{hashlib.sha256(block).hexdigest()}",
        "wrong": f"sha1:{digest[::-1]}",
    }
    for name, text in named.items():
        stored = (
            warc_record(1, block, WARC_Block_Digest=text).removesuffix(b"\r\n\r\n")
            + b"junk"
            + warc_record(2, b"next")
        )
        records, damages = read(stored)
        assert [record.block for record in records] == (
            [b"next"] if name == "wrong" else [block, b"next"]
        )
        assert damages >= 1


def test_gzip_data_that_is_damaged_in_the_middle(caplog: pytest.LogCaptureFixture) -> None:
    """Everything before the damage is read from a file of one member; a wrong checksum costs one
    record where each has its own.
    """
    stored = [warc_record(number, random.Random(number).randbytes(800)) for number in range(50)]
    data = bytearray(gzip_whole(stored))
    data[len(data) // 2 : len(data) // 2 + 300] = bytes(300)
    records, damages = read(bytes(data) + gzip_each(stored[:3]))
    found = identified(records)
    assert all(f"<urn:test:{number}>" in found for number in range(20))
    assert [record.fields["warc-record-id"] for record in records[-3:]] == [
        f"<urn:test:{n}>" for n in range(3)
    ]
    assert damages >= 1
    members = [bytearray(gzip.compress(record)) for record in stored[:3]]
    members[1][-7] ^= 1
    caplog.clear()
    records, damages = read(b"".join(members))
    assert [record.fields["warc-record-id"] for record in records] == [
        "<urn:test:0>",
        "<urn:test:2>",
    ]
    assert caplog.messages == [
        f"test.warc: damaged at offset {len(members[0])}: bad gzip data (incorrect data check)"
    ]
    assert damages == 1


def test_what_looks_like_a_member_is_none() -> None:
    """The head of a gzip file inside a damaged record is found, but holds no record."""
    stored = [
        warc_record(0, b"a"),
        warc_record(1, gzip.compress(b"page " * 50, 0)),
        warc_record(2, b"b"),
    ]
    data = bytearray(b"".join(gzip.compress(record, 0) for record in stored))
    data[len(gzip.compress(stored[0], 0)) + 12] ^= 0xFF
    records, _ = read(bytes(data))
    assert [record.block for record in records] == [b"a", b"b"]


def test_zstd_data_that_is_damaged_in_the_middle(caplog: pytest.LogCaptureFixture) -> None:
    """Whole blocks before the damage are read from a file of one frame; a wrong checksum costs its
    own record.
    """
    stored = [warc_record(number, random.Random(number).randbytes(20_000)) for number in range(50)]
    data = bytearray(zstd_whole(stored))
    data[len(data) // 2] ^= 1
    data[len(data) * 3 // 4 : len(data) * 3 // 4 + 300] = bytes(300)
    records, damages = read(bytes(data) + zstd_each(stored[:3]))
    found = identified(records)
    assert all(f"<urn:test:{number}>" in found for number in range(15))
    assert [record.fields["warc-record-id"] for record in records[-3:]] == [
        f"<urn:test:{n}>" for n in range(3)
    ]
    assert damages >= 1
    frames = [bytearray(zstd_frame(record)) for record in stored[:3]]
    frames[1][-1] ^= 1
    caplog.clear()
    records, damages = read(b"".join(frames))
    assert [record.fields["warc-record-id"] for record in records] == [
        "<urn:test:0>",
        "<urn:test:2>",
    ]
    assert f"test.warc: damaged at offset {len(frames[0])}: bad zstd data" in caplog.messages[0]
    assert damages == 1


@pytest.mark.parametrize("packed", [True, False])
def test_a_dictionary_is_for_all_frames(packed: bool) -> None:
    stored = [warc_record(number, b"x%d" % number) for number in range(5)]
    data = zstd_shared(stored, packed=packed)
    assert [record.block for record in read(data)[0]] == [b"x%d" % number for number in range(5)]
    frames = data[data.index(zstd_frame(b"")[:4], 8 + 4) :]
    records, damages = read(frames)
    assert (records, damages > 0) == ([], True)  # it is missing


@pytest.mark.parametrize(
    "dictionary", [b"", b"short", b"\x28\xb5\x2f\xfd nothing", b"\x37\xa4\x30\xec nothing"]
)
def test_a_bad_dictionary_is_damage(dictionary: bytes, caplog: pytest.LogCaptureFixture) -> None:
    records, damages = read(skippable(13, dictionary) + zstd_each([warc_record(1, b"alone")]))
    assert [record.block for record in records] == [b"alone"]
    assert damages == 1
    assert "test.warc: damaged at offset 0: bad dictionary" in caplog.messages[0]


def test_zeros_at_the_end_are_no_damage() -> None:
    for container in EACH:
        assert read(container([warc_record(1, b"a")]) + bytes(70_000))[1] == 0


@tabled("container", CONTAINERS)
def test_a_flood_of_headers(container: Container) -> None:
    flood = b"WARC/1.0\r\n" + b"X-Flood: yes\r\n" * 60_000 + b"Content-Length: 2\r\n\r\nab\r\n\r\n"
    records, damages = read(container([warc_record(1, b"a"), flood, warc_record(2, b"b")]))
    assert [record.block for record in records] == [b"a", b"b"]
    assert damages == 1


def test_many_damaged_places_are_counted_and_the_first_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stored = [
        warc_record(number, b"abc") + b"junk that is no record\n"
        for number in range(MOST_SAID + 50)
    ]
    records, damages = read(plain(stored))
    assert len(records) == damages == MOST_SAID + 50
    assert len(caplog.messages) == MOST_SAID + 1
    assert caplog.messages[-1] == "test.warc: 50 more damaged places"


def test_a_record_of_ten_gigabytes_costs_no_memory(tmp_path: Path) -> None:
    """A sparse file; what is beyond the limit is passed over, and the next record read."""
    path = tmp_path / "large.warc"
    size = 10 << 30
    with path.open("wb") as file:
        file.write(
            warc_record(1, b"")[:-8].replace(b"Content-Length: 0", b"Content-Length: %d" % size)
            + b"\r\n\r\n"
        )
        head = file.tell()
        file.seek(head + size)
        file.write(b"\r\n\r\n" + warc_record(2, b"next"))
    (archive,) = find_archives([path])
    assert isinstance(archive, ArchiveFile)
    tracemalloc.start()
    opened = archive.open(1 << 20)
    records = list(opened.reader)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    opened.close()
    assert [(record.length, len(record.block), record.is_cut) for record in records] == [
        (size, 1 << 20, True),
        (4, 4, False),
    ]
    assert opened.reader.damages == 0
    assert peak < 8 << 20


def gzip_bomb(head: bytes, size: int) -> bytes:
    compressor = zlib.compressobj(wbits=31)
    pieces = [compressor.compress(head)]
    pieces += [compressor.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return b"".join((*pieces, compressor.compress(b"\r\n\r\n"), compressor.flush()))


def zstd_bomb(head: bytes, size: int) -> bytes:
    return zstd_frame(head + bytes(size) + b"\r\n\r\n")


@pytest.mark.parametrize(("bomb", "container"), [(gzip_bomb, gzip_each), (zstd_bomb, zstd_each)])
def test_a_record_that_inflates_to_much_costs_no_memory(
    bomb: Callable[[bytes, int], bytes], container: Container
) -> None:
    head = (
        warc_record(1, b"")
        .removesuffix(b"\r\n\r\n")
        .replace(b"Length: 0", b"Length: %d" % (100 << 20))
    )
    opened = reader(bomb(head, 100 << 20) + container([warc_record(2, b"next")]), most=1000)
    tracemalloc.start()
    records = list(opened)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(record.block) for record in records] == [1000, 4]
    assert opened.damages == 0
    assert peak < 64 << 20


# -- ARC -------------------------------------------------------------------------------------------


@tabled("container", CONTAINERS)
def test_arc_records(container: Container) -> None:
    description = b"1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n"
    stored = [arc_record("filedesc://x.arc", description, "text/plain")]
    wanted = blocks(30, 5)
    stored += [
        arc_record(f"http://h/{number} with blanks", block) for number, block in enumerate(wanted)
    ]
    records, damages = read(container(stored), ARC)
    assert damages == 0
    assert [record.block for record in records] == [description, *wanted]
    assert records[3].fields == {
        "url": "http://h/2 with blanks", "ip": "10.0.0.1", "date": "20120109000001",
        "type": "text/html",
    }  # fmt: skip


def test_arc_version_2() -> None:
    line = b"http://h/ 10.0.0.1 20120109000001 text/html 200 abc - 512 x.arc.gz 4\nbody\n"
    (record,), damages = read(line, ARC)
    assert (record.fields["type"], record.block, damages) == ("text/html", b"body", 0)


def test_an_arc_url_of_other_bytes_than_utf8_is_escaped() -> None:
    records, _ = read(b"http://h/caf\xe9/\xc3\xa4 10.0.0.1 20120109000001 text/html 4\nbody\n", ARC)
    assert [record.fields["url"] for record in records] == ["http://h/caf%E9/ä"]


@pytest.mark.parametrize("length", [b"1", b"77777"])
def test_an_arc_record_with_a_wrong_length(length: bytes, caplog: pytest.LogCaptureFixture) -> None:
    stored = [
        arc_record(f"http://h/{number}", answer(b"z" * 50, "Content-Length: 50"))
        for number in range(4)
    ]
    stored[1] = stored[1].replace(
        b" %d\n" % len(answer(b"z" * 50, "Content-Length: 50")), b" " + length + b"\n"
    )
    records, damages = read(plain(stored), ARC)
    assert [record.fields["url"] for record in records] == [
        f"http://h/{number}" for number in range(4)
    ]
    assert {record.block for record in records} == {answer(b"z" * 50, "Content-Length: 50")}
    assert damages == 1


def test_places_are_in_order_and_print_as_offsets() -> None:
    assert RecordPosition(5) < RecordPosition(5, 1) < RecordPosition(6)
    assert f"{RecordPosition(5)} {RecordPosition(5, 7)}" == "5 5 + 7 decompressed"


@pytest.fixture(autouse=True)
def warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)


@tabled("container", [plain, gzip_each, gzip_whole, zstd_each, zstd_whole])
@tabled("wrong_by", [-20, -3, -2, 6, 20])
def test_a_length_that_is_off_by_a_few_bytes_costs_no_record(
    container: Container, wrong_by: int
) -> None:
    """As in ClueWeb, whose heads say lengths that do not fit, with every next record in its place.
    The answers have no Content-Length that would tell (ISO 28500:2017, 5.5, wants the block's).
    """
    bodies = [answer(b"<p>page %d of several, all of which are here</p>" % n) for n in range(6)]
    records = [
        warc_record(number, body).replace(
            b"\r\nContent-Length: %d\r\n" % len(body),
            b"\r\nContent-Length: %d\r\n" % (len(body) + wrong_by),
        )
        for number, body in enumerate(bodies)
    ]
    found, damages = read(container(records))
    assert [record.block for record in found] == bodies
    assert damages == len(bodies)


def test_a_length_that_is_far_off_is_no_length() -> None:
    """What is between may be the rest of the block as well as another damaged record."""
    body = answer(b"x" * 500)
    lied = warc_record(1, body).replace(b"Content-Length: %d" % len(body), b"Content-Length: 300")
    records, damages = read(lied + warc_record(2, b"next"))
    assert [record.block for record in records] == [b"next"] and damages == 1
