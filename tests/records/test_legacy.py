"""The records of Nutch before 0.8, field by field as Nutch's page on its formats gives them, by all
their names.
"""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

import minutch.records  # noqa: F401 - its names are what `lookup` knows
from minutch.annexes.legacy.oldsegment import OldArrayFileWriter
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.text import as_text
from minutch.hadoop.formats.writables import LongWritable, MD5Hash, lookup
from minutch.records.legacy import (
    LONGEST,
    FetcherContent,
    FetcherText,
    OldContent,
    OldLink,
    OldOutlink,
    OldPage,
    OldParseData,
    OldParseText,
    write_string,
)
from minutch.records.legacyfetch import FetcherOutput, FetchListEntry
from minutch.records.parsedata import ParseText as TodaysParseText
from tests.support.examples import tabled

MD5 = bytes(range(16))


def string(text: str) -> bytes:
    return struct.pack(">H", len(text.encode())) + text.encode()


def packed(content: bytes) -> bytes:
    data = gzip.compress(content)
    return struct.pack(">i", len(data)) + data


def page(*, counted: bool = True) -> bytes:
    """A Page; without the number of outlinks as Nutch's page on its formats has it."""
    number = struct.pack(">i", 7) if counted else b""
    return (
        b"\x04"
        + string("http://a/")
        + MD5
        + struct.pack(">qbb", 1_088_600_000_000, 2, 30)
        + number
        + struct.pack(">ff", 1.5, 0.25)
    )


def entry(*, counted: bool = True) -> bytes:
    return (
        b"\x02\x01" + page(counted=counted) + struct.pack(">i", 2) + string("one") + string("two")
    )


LINKS = struct.pack(">i", 2) + string("http://b/") + string("b") + string("http://c/") + string("")
PROPERTIES = struct.pack(">i", 1) + string("Server") + string("x")
DATE = struct.pack(">q", 1_088_600_000_123)


@pytest.mark.parametrize("counted", [True, False])
def test_fetch_list_entry(counted: bool) -> None:
    data = entry(counted=counted)
    found = FetchListEntry.from_bytes(data)
    expected = OldPage(
        "http://a/", MD5, 1_088_600_000_000, 2, 30, 7 if counted else None, 1.5, 0.25
    )
    assert found == FetchListEntry(True, expected, ["one", "two"])
    assert found.to_bytes() == data, "what was read in one layout is written in it"


@pytest.mark.parametrize("counted", [True, False])
def test_fetcher_output_of_nutch_04(counted: bool) -> None:
    data = b"\x03" + entry(counted=counted) + MD5[::-1] + b"\x01" + string("Title") + LINKS + DATE
    found = FetcherOutput.from_bytes(data)
    assert (found.md5, found.status, found.title, found.fetch_date) == (
        MD5[::-1],
        1,
        "Title",
        1_088_600_000_123,
    )
    assert found.outlinks == [OldOutlink("http://b/", "b"), OldOutlink("http://c/", "")]
    assert found.to_bytes() == data


@pytest.mark.parametrize("counted", [True, False])
def test_fetcher_output_of_nutch_05(counted: bool) -> None:
    data = b"\x04" + entry(counted=counted) + MD5 + b"\x02" + DATE
    found = FetcherOutput.from_bytes(data)
    assert (found.status, found.fetch_date, found.entry.anchors) == (
        2,
        1_088_600_000_123,
        ["one", "two"],
    )
    assert found.to_bytes() == data


def test_fetcher_output_of_older_versions() -> None:
    first = FetcherOutput.from_bytes(b"\x01" + entry() + MD5 + b"\x00" + string("Title") + LINKS)
    assert (first.title, first.fetch_date, first.version) == ("Title", 0, 3)
    second = FetcherOutput.from_bytes(
        b"\x02" + entry() + MD5 + b"\x00" + string("Title") + LINKS + DATE
    )
    assert (second.fetch_date, second.status) == (1_088_600_000_123, 0)


def test_contents_and_texts() -> None:
    old = (
        b"\x01"
        + string("http://a/")
        + string("http://b/")
        + packed(b"\0\xff")
        + string("text/html")
        + PROPERTIES
    )
    assert OldContent.from_bytes(old) == OldContent(
        "http://a/", "http://b/", b"\0\xff", "text/html", {"Server": "x"}
    )
    assert FetcherContent.from_bytes(b"\x01" + packed(b"<p>")) == FetcherContent(b"<p>")
    assert FetcherText.from_bytes(b"\x01" + packed("ü".encode())) == FetcherText("ü")
    assert OldParseText.from_bytes(b"\x01" + packed("ü".encode())) == OldParseText("ü")
    parsed = OldParseData.from_bytes(b"\x01" + string("Title") + LINKS + PROPERTIES)
    assert parsed == OldParseData(
        "Title", [OldOutlink("http://b/", "b"), OldOutlink("http://c/")], {"Server": "x"}
    )


def test_pages_and_links_of_older_versions() -> None:
    first = OldPage.from_bytes(b"\x01" + page()[1:36] + b"\x02\x1e")
    assert (first.url, first.retries, first.interval, first.outlinks, first.score) == (
        "http://a/",
        2,
        30,
        0,
        1.0,
    )
    third = OldPage.from_bytes(b"\x03" + page()[1:-4])
    assert (third.outlinks, third.score, third.next_score) == (7, 1.5, 1.0)
    link = OldLink.from_bytes(b"\x03" + MD5 + string("http://a/") + string("x"))
    assert link == OldLink(MD5, "http://a/", 0, "x", False)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x03" + entry()[1:], "version of FetchListEntry .* expected 1 to 2, found 3"),
        (b"\x02\x01\x05" + page()[1:], "version of Page"),
        (b"\x02\x01" + page() + struct.pack(">i", 1 << 30), "impossible number of anchors"),
        (b"\x02\x01" + page() + struct.pack(">i", -1), "impossible number of anchors"),
        (entry() + b"\0", "bytes left over"),
    ],
)
def test_what_no_nutch_wrote(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        FetchListEntry.from_bytes(data)


def test_long_strings_are_cut_off_as_nutch_did() -> None:
    out = DataOutput()
    write_string(out, "x" * 30_000)
    assert DataInput(out.buf).read_utf8() == "x" * LONGEST
    write_string(out, "€" * 30_000)
    assert len(out) == 2 + LONGEST + 2 + 3 * LONGEST


@tabled(
    ("name", "found"),
    [
        ("net.nutch.pagedb.FetchListEntry", FetchListEntry),
        ("pagedb.FetchListEntry", FetchListEntry),
        ("org.apache.nutch.pagedb.FetchListEntry", FetchListEntry),
        ("FetchListEntry", FetchListEntry),
        ("nutch.fetcher.FetcherOutput", FetcherOutput),
        ("net.nutch.protocol.Content", OldContent),
        ("Content", OldContent),
        ("ParseData", OldParseData),
        ("fetcher.FetcherText", FetcherText),
        ("net.nutch.parse.Outlink", OldOutlink),
        ("Page", OldPage),
        ("Link", OldLink),
        ("net.nutch.io.LongWritable", LongWritable),
        ("org.apache.nutch.io.MD5Hash", MD5Hash),
        ("org.apache.nutch.parse.ParseText", TodaysParseText),
    ],
)
def test_names(name: str, found: type) -> None:
    assert lookup(name) is found


def test_the_hex_dump_of_nutchs_page(tmp_path: Path) -> None:
    """The page shows a head and a pair of longs: "SEQ\\001\\000\\004long\\000\\004long"."""
    with OldArrayFileWriter(tmp_path / "a", "long") as writer:
        for number in range(0x281):
            writer.append_value(struct.pack(">q", 672411 if number == 0x280 else number))
    data = (tmp_path / "a/data").read_bytes()
    assert data.startswith(b"SEQ\001\000\004long\000\004long")
    assert data.endswith(bytes.fromhex("00000010 00000008 0000000000000280 00000000000a429b"))
    index = (tmp_path / "a/index").read_bytes()
    assert index.startswith(b"SEQ\001\000\004long\000\004long")
    assert len(index) == 16 + 6 * 24
    assert "".join(as_text(tmp_path / "a/data")).endswith("640\t672411\n")


def test_printing() -> None:
    lines = str(FetchListEntry.from_bytes(entry())).splitlines()
    assert lines[0:5] == [
        "version: 2",
        "fetch: true",
        "page: Version: 4",
        "URL: http://a/",
        f"ID: {MD5.hex()}",
    ]
    assert lines[6:11] == [
        "Retries since fetch: 2",
        "Retry interval: 30 days",
        "Num outlinks: 7",
        "Score: 1.5",
        "NextScore: 0.25",
    ]
    assert lines[-3:] == ["anchors: 2", "  anchor: one", "  anchor: two"]
    old = FetcherOutput.from_bytes(
        b"\x03" + entry() + MD5 + b"\x01" + string("Title") + LINKS + DATE
    )
    assert "Status: 1\nTitle: Title\nOutlinks: 2\n  outlink: toUrl: http://b/ anchor: b\n" in str(
        old
    )
    parsed = OldParseData("T", [], {"a": "b", "c": "d"})
    assert str(parsed) == "Title: T\nOutlinks: 0\nMetadata: {a=b, c=d}\n"
