"""Office documents: OOXML, OpenDocument and EPUB in the smallest form that has text, a title and a
link.
"""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.errors import ParseError
from minutch.records.parsestatus import FAILED
from plugins.parse_tika import office
from plugins.parse_tika.office import read_office
from tests.support.pages import configuration, links, parse

OOXML = "application/vnd.openxmlformats-officedocument."
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
TITLE = (
    '<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title> The title'
    " </dc:title></cp:coreProperties>"
)
RELATIONS = (
    '<Relationships><Relationship Id="r1" TargetMode="External" Target="http://e.org/1"/>'
    '<Relationship Id="r2" Target="inside.xml"/></Relationships>'
)
SPACE = 'xmlns:o="o" xmlns:text="t" xmlns:xlink="x" xmlns:dc="d"'


def package(**members: str) -> bytes:
    """An archive; `__` stands for a slash and `_` for a dot in the names of members."""
    return archive(
        {name.replace("__", "/").replace("_", "."): text for name, text in members.items()}
    )


def archive(members: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return out.getvalue()


WORD = archive(
    {
        "docProps/core.xml": TITLE,
        "word/document.xml": (
            f"""<w:document {W} {R} {MC}><w:body>
            <w:p><w:r><w:t>One</w:t></w:r><w:r><w:tab/><w:t>  line</w:t></w:r></w:p> <w:p/>
            <w:p><w:hyperlink r:id="r1"><w:r><w:t>a link</w:t></w:r></w:hyperlink><w:r>\
<w:delText>gone</w:delText></w:r>
            <w:hyperlink r:id="r2"><w:r><w:t>, inside</w:t></w:r></w:hyperlink></w:p>
            <mc:AlternateContent><mc:Choice><w:p><w:r><w:t>box</w:t></w:r></w:p></mc:Choice>
            <mc:Fallback><w:p><w:r><w:t>box</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>
            </w:body></w:document>"""
        ),
        "word/_rels/document.xml.rels": RELATIONS,
        "word/footnotes.xml": (
            f"<w:footnotes {W}><w:p><w:r><w:t>a note</w:t></w:r></w:p></w:footnotes>"
        ),
    }
)


def slide(text: str) -> str:
    run = f'<a:r><a:rPr><a:hlinkClick r:id="r1"/></a:rPr><a:t>{text}</a:t></a:r>'
    return f'<p:sld xmlns:p="p" {A} {R}><a:p>{run}<a:r><a:t>!</a:t></a:r></a:p></p:sld>'


SLIDES = archive(
    {
        "ppt/presentation.xml": "<p/>",
        "ppt/slides/slide10.xml": slide("last"),
        "ppt/slides/slide2.xml": slide("first"),
        "ppt/slides/_rels/slide2.xml.rels": RELATIONS,
    }
)
SHEETS = archive(
    {
        "xl/workbook.xml": "<workbook/>",
        "xl/sharedStrings.xml": (
            "<sst><si><t>zero</t></si><si><r><t>o</t></r><r><t>ne</t></r></si></sst>"
        ),
        "xl/worksheets/sheet1.xml": (
            f"""<worksheet {R}><sheetData><row><c t="s"><v>1</v></c><c><v>2.5</v></c></row>
            <row><c t="inlineStr"><is><t>in line</t></is></c><c t="s"><v>7</v></c><c t="s">\
<v>x</v></c></row>
            </sheetData><hyperlinks><hyperlink r:id="r1" display="shown"/></hyperlinks>\
</worksheet>"""
        ),
        "xl/worksheets/_rels/sheet1.xml.rels": RELATIONS,
    }
)
OPEN = archive(
    {
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": (
            f"""<o:document {SPACE}><o:styles>no</o:styles><o:body><text:tracked-changes>\
<text:p>no</text:p>
            </text:tracked-changes><text:h>Head</text:h><text:p>two<text:s/>words \
<text:a xlink:href="http://e.org/1">a
            link</text:a> and <text:a xlink:href="#inside">more</text:a></text:p></o:body>\
</o:document>"""
        ),
        "meta.xml": f"<o:meta {SPACE}><dc:title>The title</dc:title></o:meta>",
    }
)
PAGE = (
    "<html xmlns='h'><head><title>no</title></head><body><h1>{0}</h1><p>to <a"
    " href='http://e.org/{0}'>it</a></p>"
)
BOOK = archive(
    {
        "META-INF/container.xml": (
            "<container><rootfiles><rootfile full-path='OPS/book.opf'/></rootfiles></container>"
        ),
        "OPS/book.opf": (
            f"""<package {SPACE}><metadata><dc:title>The title</dc:title></metadata><manifest>
            <item id="b" href="b.xhtml"/><item id="a" href="text/a%201.xhtml"/></manifest>
            <spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/></spine></package>"""
        ),
        "OPS/text/a 1.xhtml": PAGE.format("1") + "</body></html>",
        "OPS/b.xhtml": PAGE.format("2") + "</body></html>",
    }
)


@pytest.mark.parametrize(
    ("data", "content_type", "title", "text", "expected"),
    [
        (WORD, f"{OOXML}wordprocessingml.document", "The title",
         "One line\na link, inside\nbox\na note",
         [("http://e.org/1", "a link")]),
        (SLIDES, f"{OOXML}presentationml.presentation", "", "first!\nlast!",
         [("http://e.org/1", "first")]),
        (SHEETS, f"{OOXML}spreadsheetml.sheet", "", "one 2.5\nin line",
         [("http://e.org/1", "shown")]),
        (OPEN, "application/vnd.oasis.opendocument.text", "The title",
         "Head\ntwo words a link and more",
         [("http://e.org/1", "a link")]),
        (BOOK, "application/epub+zip", "The title", "1\nto it\n2\nto it",
         [("http://e.org/1", "it"), ("http://e.org/2", "it")]),
    ],
)  # fmt: skip
def test_documents(
    data: bytes, content_type: str, title: str, text: str, expected: list[tuple[str, str]]
) -> None:
    found = parse(data, configuration("parse-tika"), content_type)
    assert (found.data.title, found.text, links(found)) == (title, text, expected)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no zip", "can be read"),
        (package(a_txt="x"), "of a kind that is known"),
        (package(word__document_xml=""), "not XML"),
        (archive({"META-INF/container.xml": "<container/>"}), "no rootfile"),
        (
            WORD.replace(
                b"PK\x01\x02\x14\x03\x14\x00\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01\x00"
            ),
            "encrypted",
        ),
    ],
)
def test_failures(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError, match=reason):
        read_office(data)
    assert (
        parse(data, configuration("parse-tika"), "application/x-tika-ooxml").data.status.major
        == FAILED
    )


def test_unpacked_bytes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(office, "MOST_BYTES", 10_000)
    with pytest.raises(ParseError, match="10000 bytes"):
        read_office(package(word__document_xml=f"<d><p><t>{'x' * 10_000}</t></p></d>"))


def test_entities_are_not_resolved() -> None:
    bomb = '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><d><p><t>x&b;<!-- y -->z</t></p></d>'
    assert read_office(package(word__document_xml=bomb))[0] == "x&b;z"


@settings(max_examples=60)
@given(
    st.sampled_from([WORD, SLIDES, SHEETS, OPEN, BOOK]), st.integers(0, 4000), st.integers(0, 255)
)
def test_damage_is_a_parse_error_or_nothing(data: bytes, at: int, value: int) -> None:
    at %= len(data)
    for damaged in (data[:at] + bytes([value]) + data[at + 1 :], data[:at]):
        try:
            text, title, found = read_office(damaged)
        except ParseError:
            continue
        assert isinstance(text + title, str)
        assert isinstance(found, list)
