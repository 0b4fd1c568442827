"""Records print what Nutch's toString prints, and those of the oldest versions can be read."""

from __future__ import annotations

import gzip
import zlib

import pytest

from minutch.charsets import LABELS
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataOutput, decode_text
from minutch.hadoop.formats.writables import Text
from minutch.records import protocol
from minutch.records.crawldatum import NutchWritable
from minutch.records.metadata import CHAR_ENCODING_FOR_CONVERSION_KEY, Metadata
from minutch.records.parsedata import ParseData, ParseStatus, ParseText
from minutch.records.protocol import Content, ProtocolStatus
from minutch.records.webgraph import LinkDatum, Node
from tests.records.samples import DATA, DOCUMENT
from tests.support.examples import tabled


def test_statuses() -> None:
    assert (
        str(ProtocolStatus.of(protocol.NOTFOUND, "http://a/"))
        == "notfound(14), lastModified=0: http://a/"
    )
    assert str(ProtocolStatus(99)) == "null(99), lastModified=0"
    assert str(ParseStatus(2, 200, ["boom"])) == "failed(2,200): boom"
    assert (
        str(ParseStatus(1, 100, ["http://a/", None, "3"]))
        == "success(1,100), args[0]=http://a/, args[2]=3"
    )
    assert str(ParseStatus(7, 0)) == "UNKNOWN!(7,0)"


def test_parse_data_and_document() -> None:
    text = str(DATA)
    assert text.startswith(
        "Version: 5\nStatus: success(1,100), args[0]=http://a/, args[2]=3\nTitle: A"
        " title\nOutlinks: 2"
    )
    assert "  outlink: toUrl: http://a/2 anchor:  rel: next\n" in text
    assert text.endswith("Parse Metadata:\n  k = v\n")
    assert "\tmany:\t[x, true, 7, 1099511627776, 0.25, Fri Jan 02 03:04:05 UTC 2026]\n" in str(
        DOCUMENT
    )


def test_web_graph() -> None:
    assert (
        str(LinkDatum("u", "a", 0.5, 7, 1))
        == "url: u, anchor: a, score: 0.5, timestamp: 7, link type: inlink"
    )
    assert (
        str(Node(1, 3, 1.0))
        == "num inlinks: 1, num outlinks: 3, inlink score: 1.0, outlink score: 0.33333334,"
        " metadata: "
    )


def test_content_in_a_charset() -> None:
    content = Content("u", "b", b"gr\xfcn", "text/plain", Metadata.of({"k": "v"}))
    assert content.to_string(LABELS["latin1"]).endswith("metadata: k=v\nContent:\ngrün")
    assert str(content).endswith("Content:\ngr\ufffdn")
    url = decode_text(b"http://a/\xff")
    bytes_ = Content(url, url, b"", "text/plain", Metadata.of({"k": url}))
    assert str(bytes_).count("http://a/\ufffd") == 3


@tabled(
    ("label", "charset"),
    [
        ("windows-1251", "windows-1251"),
        # names that Nutch stores, which are no labels of the standard
        ("x-windows-949", "euc-kr"),
        ("tis-620", "windows-874"),
        ("no-charset", "utf-8"),
        ("x\x00y", "utf-8"),
        # codecs of Python that are no charsets
        *((name, "utf-8") for name in ("zlib", "hex", "rot13", "unicode_escape", "utf-7", "idna")),
    ],
)
def test_the_charset_of_a_parse_is_one(label: str, charset: str) -> None:
    meta = Metadata.of({CHAR_ENCODING_FOR_CONVERSION_KEY: label})
    assert ParseData(parse_meta=meta).charset.codec == charset


def compressed_strings(*values: str) -> bytes:
    out = DataOutput()
    out.write_int(len(values))
    for value in values:
        data = gzip.compress(value.encode())
        out.write_int(len(data))
        out.write_bytes(data)
    return out.getvalue()


def test_version_1_has_compressed_strings() -> None:
    status = ProtocolStatus.from_bytes(b"\x01\x0d" + bytes(8) + compressed_strings("http://grün/"))
    assert status == ProtocolStatus(protocol.TEMP_MOVED, ["http://grün/"])
    assert ParseStatus.from_bytes(b"\x01\x02\x00\xc8" + compressed_strings("a", "b")).args == [
        "a",
        "b",
    ]
    assert ParseText.from_bytes(b"\x01" + compressed_strings("text")[4:]).text == "text"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_content_of_old_nutch_is_one_zlib_stream(version: int) -> None:
    new = Content("http://a/", "http://b/", b"<p>", "text/html", Metadata.of({"k": ["v", "w"]}))
    stream = zlib.compress(bytes((version,)) + new.to_bytes()[4:])
    old = len(stream).to_bytes(4, "big") + stream
    assert Content.from_bytes(old) == new
    for size in range(len(old)):
        with pytest.raises(FormatError):
            Content.from_bytes(old[:size])


def test_a_damaged_stream_names_the_offset() -> None:
    stream = b"\x01" + (20).to_bytes(4, "big") + bytes(20)
    with pytest.raises(FormatError, match="damaged compressed string") as caught:
        ParseText.from_bytes(stream)
    assert caught.value.offset == 1


def test_nutch_writable_holds_only_its_types() -> None:
    assert NutchWritable(Text("x")).to_bytes() == b"\x08\x01x"
    with pytest.raises(FormatError, match="cannot hold"):
        NutchWritable(Node())
    with pytest.raises(FormatError, match="beyond the table"):
        NutchWritable.from_bytes(b"\xff")
