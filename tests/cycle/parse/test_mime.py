"""Media types: the rule files' notation, Tika's own format, suffixes, magic bytes, XML roots,
text.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.parse.mime import (
    MimeUtil,
    file_name,
    looks_like_text,
    read_tika_rules,
    root_element,
)
from minutch.cycle.parse.mimerules import OCTET_STREAM, read_rules
from minutch.errors import ConfigError
from tests.support.examples import tabled

MIME = MimeUtil(Configuration.load([]))
SITE = "http://example.org/"

TIKA = """<?xml version="1.0"?>
<mime-info>
  <mime-type type="application/x-one">
    <alias type="application/x-uno"/>
    <glob pattern="*.one"/><glob pattern="ONE"/><glob pattern="*.o[nm]e"/>
    <magic priority="60"><match value="AB" type="string" offset="0:4">\
<match value="C" offset="6"/></match></magic>
  </mime-type>
  <mime-type type="application/x-two" interpreted="true">
    <sub-class-of type="application/x-one"/>
    <glob pattern="*.two"/>
    <root-XML localName="two" namespaceURI="urn:two"/>
    <magic><match value="0xCAFE" type="string"/><match value="0x0102" type="little16" offset="2"/>\
</magic>
    <magic priority="40"><match value="(?i)two+" type="regex" offset="0:9"/></magic>
    <magic priority="30"><match minShouldMatch="2"><match value="x" offset="1"/>\
<match value="y" offset="2"/>
      <match value="z" offset="3"/></match></magic>
    <magic priority="20"><match value="0x30805040" mask="0xFFF0FFFF"/><match value="A\\ B\\\\" \
offset="9"/></magic>
    <magic><match value="BAD..END" mask="0xFFFFFF0000FFFFFF"/><match value="no number" \
type="big32"/></magic>
  </mime-type>
  <mime-type type="application/x-two;v=3">
    <sub-class-of type="application/x-two; v=2"/><glob pattern="*.three"/>
  </mime-type>
</mime-info>"""


@tabled(
    ("header", "url", "data", "expected"),
    [
        (None, "a.html", b"", "text/html"),
        ("text/html", "a.pdf", b"%PDF-1.4", "application/pdf"),
        ("application/octet-stream", "a.txt", b"words", "text/plain"),
        ("text/plain", "a.csv", b"a,b", "text/csv"),
        ("text/html; charset=x", "", b"<p>x", "text/html"),
        ("application/x-own-type", "", b"\0\1", "application/x-own-type"),
        ("nonsense", "x", b"\0\1", OCTET_STREAM),
        (None, "feed", b'<?xml version="1.0"?><rss version="2.0">', "application/rss+xml"),
        (None, "q.php", b"<html>", "text/html"),
        (None, "a.docx", b"PK\x03\x04" + b"x" * 26 + b"[Content_Types].xml",
         "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("text/plain", "robots.txt", b"# hi\nUser-agent: *\nDisallow: /", "text/x-robots"),
        ("text/plain", "robots.txt", b"Sitemap: x\nsitemap: y", "text/x-robots"),
        ("text/plain", "robots.txt", b"# hi\nSitemap: x\nSitemap: y", "text/plain"),
        ("text/plain", "robots.txt", b"Disallow: /\nhello", "text/plain"),
        # XML that breaks its own rules before the root, by Tika 3.3.1
        (None, "x", b"<?xml version='1.0'?><html lang=en><p>a</p></html>", "text/html"),
        ("application/xhtml+xml", "x", b"<?xml version='1.0'?>\n<!DOCTYPE html>\n<p a=b>",
         "text/html"),
        ("application/xhtml+xml", "x", b"<?xml version='1.0'?><foo a=b>", "application/xhtml+xml"),
        (None, "x", b"<?xml version='1.0'?><foo a=b><c/></foo>", "text/plain"),
        (None, "x", b"#! /bin/sh\n", "text/plain"),
        (None, "x", b"#!/bin/sh\n", "application/x-sh"),
        (None, "server.crt", b"-----BEGIN CERTIFICATE-----\n",
         "application/x-x509-cert; format=pem"),
        ("application/zip", "a.zip", b"Rar!\x1a\x07\x01\x00",
         "application/x-rar-compressed; version=5"),
        (None, "Makefile", b"all:\n", "text/x-makefile"),
        ("image/jpeg", ".htaccess", b"\0\1\2", "text/plain"),
        (None, "a.zip", b"PK\x03\x04" + b"x" * 26 + b"[Content_Types].xml", "application/zip"),
    ],
)  # fmt: skip
def test_resolve(header: str | None, url: str, data: bytes, expected: str) -> None:
    assert MIME.resolve(header, SITE + url, data) == expected


def test_without_magic() -> None:
    plain = MimeUtil(Configuration.load([], overrides={"mime.type.magic": "false"}))
    assert plain.resolve("text/html", SITE + "a.pdf", b"%PDF-1.4") == "text/html"


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://h/a%20b.pdf?x=y.doc#z.txt", ("a b.pdf", True)),
        ("http://h", ("", True)),
        ("file:///d/e.txt", ("e.txt", False)),
        ("http://h/a b.pdf", ("http://h/a b.pdf", False)),
        ("plain.txt", ("plain.txt", False)),
    ],
)
def test_file_names(url: str, name: tuple[str, bool]) -> None:
    assert file_name(url) == name


@pytest.mark.parametrize(
    ("data", "is_text"),
    [
        (b"text\n", True),
        ("é".encode() * 9, True),
        (b"\xe9\xe9\xe9", False),
        (b"a\0b", False),
        (b"\xff\xfe", False),
    ],
)
def test_text(data: bytes, is_text: bool) -> None:
    assert looks_like_text(data) == is_text


@tabled(
    ("data", "root"),
    [
        (b"<a xmlns='urn:x'><b", ("urn:x", "a")),
        (b"<?xml version='1.0' encoding='gb2312'?><a/>", ("", "a")),
        (b"<?xml version='1.0' encoding='nonsense'?><a/>", None),
        (b"<!DOCTYPE a [<!ENTITY x 'y'>]><a>", ("", "a")),
        (b"<?xml version='1.0'?>\n<!DOCTYPE a>\n<a x='>' xmlns='urn:x'><b/>", ("urn:x", "a")),
        (b"<!DOCTYPE html>\n<html lang=en><b>", None),
        (b"no xml", None),
        (b"", None),
    ],
)
def test_root_elements(data: bytes, root: tuple[str, str] | None) -> None:
    assert root_element(data) == root


def test_tikas_own_format(tmp_path: Path) -> None:
    path = tmp_path / "tika-mimetypes.xml"
    path.write_text(TIKA, encoding="utf-8")
    mime = MimeUtil(Configuration.load([tmp_path]))
    assert mime.registry.canonical("Application/X-UNO; v=1") == "application/x-one"
    assert mime.by_url("file:///a.one") == mime.by_url("file:///ONE") == "application/x-one"
    assert (mime.by_url("http://h/a.two"), mime.by_url("file:///a.two")) == (
        OCTET_STREAM,
        "application/x-two",
    )
    by_magic = mime.registry.by_magic
    assert by_magic(b"..AB..C") == ["application/x-one"]
    assert by_magic(b"..AB...") == []
    for data in (
        b"\xca\xfe",
        b"..\x02\x01",
        b"~~~TWOO",
        b".xy",
        b".x.z",
        b"BAD12END",
        b"\x30\x8f\x50\x40",
        b"........ A\0 B\\",
    ):
        assert by_magic(data) == ["application/x-two"], data
    assert by_magic(b"........ A\0 B\\") == ["application/x-two"]
    for data in (b".x..", b"\x30\x70\x50\x40", b"........ A B\\"):
        assert by_magic(data) == [], data
    assert mime.by_url("file:///a.three") == "application/x-two; v=3"
    assert mime.registry.parent("application/x-two; v=3") == "application/x-two; v=2"
    assert mime.resolve(None, SITE, b"plain") == "text/plain"


def test_a_broken_file_of_tikas(tmp_path: Path) -> None:
    path = tmp_path / "rules.xml"
    path.write_text("<mime-info>")
    with pytest.raises(ConfigError, match=r"rules\.xml"):
        read_tika_rules(path)


@pytest.mark.parametrize(
    "text", ["nonsense\n", "a/b ?what\n", "%magic\nhigh a/b x\n", "%magic\n50 a/b \\q\n"]
)
def test_broken_rules_name_file_and_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"own\.txt:\d"):
        read_rules(text, "own.txt")


@tabled(
    ("rule", "page", "holds"),
    [
        (r"(?i)2:AbC", b"xxaBc", True),
        (r"(?i)2:AbC", b"xaBc", False),
        (r"(?i)2:AbC", b"xxab", False),
        (r"(?i)1-3:\nAb", b"x..\naB", True),
        (r"(?i)1-3:\nAb", b"x...\nab", False),
        (r"(?i)1-3:\nAb", b"\nabc", False),
        (r"(?i)0-2:A\?\xe9", b"..ax\xe9", True),
        (r"(?i)A\xe9", b"a\xc9", False),  # only letters of ASCII have a case
        (r"1-2:Ab", b"..Ab", True),
        (r"1-2:Ab", b"..ab", False),
    ],
)
def test_bytes_with_and_without_case(rule: str, page: bytes, holds: bool) -> None:
    assert (
        read_rules(f"%magic\n50 application/x-a {rule}", "rules").by_magic(page)
        == ["application/x-a"] * holds
    )


def test_special_cases() -> None:
    registry = MIME.registry
    assert registry.is_special_case("application/json", "text/plain")
    assert registry.is_special_case("application/x-own+xml", "text/plain")
    assert registry.is_special_case("image/png", OCTET_STREAM)
    assert not registry.is_special_case("text/plain", "text/html")


@given(st.one_of(st.none(), st.text(max_size=30)), st.text(max_size=40), st.binary(max_size=200))
def test_anything_has_a_type(header: str | None, url: str, data: bytes) -> None:
    assert MIME.resolve(header, url, data)
