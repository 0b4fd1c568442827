""".doc, .xls, .ppt and RTF, as LibreOffice writes them (`documents/`), and RTF by hand."""

from __future__ import annotations

import contextlib
import gzip
import random
from pathlib import Path

import pytest

from minutch.errors import ParseError
from minutch.records.parsedata import FAILED, SUCCESS
from plugins.parse_tika.binaryoffice import read_binary_office
from plugins.parse_tika.package import Document
from plugins.parse_tika.richtext import read_rich_text
from tests.support.pages import configuration, links, parse

TIKA = configuration("parse-tika")
FILES = Path(__file__).parent / "documents"
TITLE = "Annual report of the harbour"
LINK = "http://harbour.example/lighthouse"
TYPES = {
    "word.doc": "application/msword",
    "word.rtf": "application/rtf",
    "tides.xls": "application/vnd.ms-excel",
    "slides.ppt": "application/vnd.ms-powerpoint",
}


def stored(name: str) -> bytes:
    return gzip.decompress((FILES / f"{name}.gz").read_bytes())


def rich(body: str) -> Document:
    found = Document()
    read_rich_text(f"{{\\rtf1\\ansi\\ansicpg1252 {body}}}".encode("latin-1"), found)
    return found


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "word.doc",
            [
                "Žluťoučký kůň úpěl ďábelské ódy; Größe, naïveté, smørrebrød, İstanbul and Łódź are"
                " names.",
                "See the lighthouse keeper",
                "Quay Depth Vessels",
                "Eastern 12 fourteen",
                "Northern headline",
                "Reviewers remark",
            ],
        ),
        ("word.rtf", ["See the lighthouse keeper", "Eastern 12 fourteen", "Reviewers remark"]),
        (
            "tides.xls",
            [
                "Tides",
                "2024-01-01 0.1 50% TRUE 1,234.50 harbour",
                "Moorings",
                "Eastern 12 fourteen",
            ],
        ),
        ("slides.ppt", ["Moorings", "first mooring", "lighthouse keeper", "Footnoted explanation"]),
    ],
)
def test_text_title_links_and_dates(name: str, lines: list[str]) -> None:
    found = parse(stored(name), TIKA, TYPES[name])
    at = [found.text.split("\n").index(line) for line in lines]
    assert at == sorted(at)
    assert found.data.title == TITLE
    assert [target for target, _ in links(found)] == [LINK]
    assert (found.data.parse_meta.get("dcterms:created") or "").startswith("2024-02-29T12:34:")
    assert found.data.status.major == SUCCESS and not found.data.status.args


def test_the_type_of_a_server_does_not_matter() -> None:
    assert "lighthouse" in parse(stored("word.rtf"), TIKA, "application/msword").text


@pytest.mark.parametrize("name", ["word.doc", "slides.ppt"])
def test_damage_raises_no_other_error(name: str) -> None:
    whole, chance = stored(name), random.Random(5)
    for _ in range(150):
        data = bytearray(
            whole[: chance.randrange(1, len(whole))] if chance.random() < 0.3 else whole
        )
        for _ in range(chance.randrange(8)):
            at = chance.randrange(min(len(data), 1 << 16))
            data[at : at + 4] = chance.choice(
                [b"\xff\xff\xff\xff", b"\0\0\0\0", chance.randbytes(4)]
            )
        with contextlib.suppress(ParseError):
            read_binary_office(bytes(data), Document())


def test_what_is_no_document() -> None:
    assert parse(
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", TIKA, "application/msword"
    ).data.status.major == (FAILED)


class TestRichText:
    def test_characters(self) -> None:
        found = rich(r"caf\'e9 \u8364?\u-10179?\u-8704? \uc2\u233\'82\'e9\uc1 a\~b\emdash c\par d")
        assert found.text == "café €😀 éa b—c\nd"

    def test_fonts_have_code_pages(self) -> None:
        fonts = r"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset128 C;}}"
        assert rich(fonts + r"{\f1 \'ea\'e8\'f2} {\f2 \'93\'fa}\f0 \'e9").text == "кит 日é"

    def test_hidden_text_and_destinations_are_left_out(self) -> None:
        found = rich(r"a{\v hidden}{\*\unknown b}{\pict 0102}{\listtext 1.}{\colortbl;}\bin3 {{{c")
        assert found.text == "ac"
        assert found.missing == []

    def test_headers_and_notes_stand_behind_the_text_once(self) -> None:
        found = rich(r"{\headerl top\par}{\headerr top\par}one{\footnote note} two")
        assert found.text == "one two\ntop\nnote"

    def test_links(self) -> None:
        link = r'{\field{\*\fldinst{HYPERLINK "http://a.org/"}}{\fldrslt{\b the} place}}'
        page = r"{\field{\*\fldinst PAGE}{\fldrslt 7}}"
        found = rich(link + page)
        assert found.links == [("http://a.org/", "the place")]
        assert found.text == "the place7"

    def test_what_is_cut_off_or_too_deep(self) -> None:
        found = Document()
        read_rich_text(rb"{\rtf1 {\b some text", found)
        assert (found.text, len(found.missing)) == ("some text", 1)
        with pytest.raises(ParseError, match="groups in each other"):
            rich("{" * 100_000)
