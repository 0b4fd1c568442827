"""Office documents: text in its order, titles, links, dates, however their parts are named; and
what is left of those that are damaged.
"""

from __future__ import annotations

import io
import random
import zipfile

import pytest

from minutch.cycle.parse.dispatch import ParseTimeout
from minutch.errors import ParseError
from minutch.plugin.points import Parse
from minutch.records.parsedata import FAILED, SUCCESS
from plugins.parse_tika import package as packages
from plugins.parse_tika import sheets
from plugins.parse_tika.office import read_office
from plugins.parse_tika.package import Document, Package
from plugins.parse_tika.sheets import CellFormats
from tests.support.examples import tabled
from tests.support.officefiles import (
    MC,
    OOXML,
    OPEN,
    A,
    P,
    R,
    W,
    archive,
    book,
    opened,
    paragraph,
    relations,
    run,
    samples,
    sheet,
    slide,
    slides,
    word,
    workbook,
)
from tests.support.pages import configuration, links, parse

TIKA = configuration("parse-tika")
BOXED = f"<w:txbxContent>{paragraph('boxed')}</w:txbxContent>"


def parsed(data: bytes, content_type: str = "application/x-tika-ooxml") -> Parse:
    return parse(data, TIKA, content_type)


def read(data: bytes) -> Document:
    found = Document()
    read_office(data, found, lambda page: (page.decode("utf-8", "replace"), []))
    return found


def field(kind: str) -> str:
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


class TestWord:
    def test_all_parts_are_found_by_their_relationships(self) -> None:
        def part(name: str, text: str) -> str:
            return f"<w:{name} {W}>{paragraph(text)}</w:{name}>"

        data = word(
            paragraph("body"),
            {
                "word/h1.xml": part("hdr", "header"),
                "word/h2.xml": part("hdr", "header"),
                "word/f.xml": part("ftr", "footer"),
                "notes/n.xml": part("footnotes", "a note"),
                "word/c.xml": f'<w:comments {W}><w:comment w:author="Anne">{paragraph("remark")}'
                "</w:comment></w:comments>",
            },
            r1="header h1.xml", r2="header h2.xml", r3="footer f.xml", r4="comments c.xml",
            r5="footnotes ../notes/n.xml",
        )  # fmt: skip
        found = parsed(data, f"{OOXML}wordprocessingml.document")
        assert found.text == "header\nbody\na note\nremark\nfooter"
        assert found.data.title == "The title"
        assert found.data.parse_meta["dc:creator"] == ["A. Writer"]
        assert found.data.parse_meta["dcterms:created"] == ["2024-02-29T12:34:56Z"]

    def test_by_content_types_where_relationships_are_damaged(self) -> None:
        types = '<Types><Override PartName="/a/b.xml" ContentType="x.document.main+xml"/></Types>'
        root = f"<w:document {W}><w:body>{paragraph('text')}</w:body></w:document>"
        data = archive({"_rels/.rels": "damage", "[Content_Types].xml": types, "A/b.xml": root})
        assert read(data).text == "text"

    @tabled(
        ("inside", "text"),
        [
            (run("one") + "<w:r><w:tab/></w:r>" + run("two"), "one two"),
            (run("one") + "<w:r><w:br/></w:r>" + run("two"), "one two"),
            (run("well") + "<w:r><w:noBreakHyphen/></w:r>" + run("known"), "well-known"),
            (run("so") + "<w:r><w:softHyphen/></w:r>" + run("ft"), "soft"),
            ('<w:r><w:sym w:font="S" w:char="2192"/><w:sym w:char="F0B7"/></w:r>', "→"),
            ('<w:del><w:r><w:delText>x</w:delText></w:r></w:del>' + run("kept"), "kept"),
            (f"<w:moveFrom>{run('there')}</w:moveFrom><w:moveTo>{run('here')}</w:moveTo>", "here"),
            (f"{run('before')}<w:r><w:pict>{BOXED}</w:pict></w:r>{run(' after')}",
             "before after\nboxed"),
            (f'{run("text")}<mc:AlternateContent><mc:Choice Requires="wps">{BOXED}</mc:Choice>'
             f"<mc:Fallback>{BOXED}</mc:Fallback></mc:AlternateContent>", "text\nboxed"),
            (f'<mc:AlternateContent><mc:Choice Requires="new"/><mc:Fallback>{BOXED}</mc:Fallback>'
             "</mc:AlternateContent>", "boxed"),
            ("<w:sdt><w:sdtContent>" + run("chosen") + "</w:sdtContent></w:sdt>", "chosen"),
            ('<m:oMath xmlns:m="m"><m:r><m:t>x+1</m:t></m:r></m:oMath>', "x+1"),
        ],
    )  # fmt: skip
    def test_text_of_a_paragraph(self, inside: str, text: str) -> None:
        assert read(word(f"<w:p>{inside}</w:p>")).text == text

    def test_cells_are_apart(self) -> None:
        cells = "".join(f"<w:tc>{paragraph(f'cell{at}')}</w:tc>" for at in (1, 2))
        assert read(word(f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>")).text == "cell1\ncell2"

    def test_links(self) -> None:
        simple = f"<w:fldSimple w:instr=' hyperlink \"http://e.org/2\" '>{run('two')}</w:fldSimple>"
        told = [' HYPERLINK "http://e.org/', '3" \\o "tip" ']
        complex_ = field("begin") + "".join(
            f"<w:r><w:instrText>{t}</w:instrText></w:r>" for t in told
        )
        inner = field("begin") + "<w:r><w:instrText>PAGE</w:instrText></w:r>" + field("separate")
        shown = run("three ") + inner + run("3") + field("end")
        complex_ += f"{field('separate')}{shown}{field('end')}"
        local = (
            field("begin")
            + '<w:r><w:instrText>HYPERLINK \\l "x"</w:instrText></w:r>'
            + field("end")
        )
        picture = (
            '<w:r><w:drawing><wp:docPr xmlns:wp="wp"><a:hlinkClick r:id="r4"/></wp:docPr>'
            "</w:drawing></w:r>"
        )
        data = word(
            f'<w:p><w:hyperlink r:id="r1">{run("o")}{run("ne")}</w:hyperlink>{simple}</w:p>'
            f'<w:p>{complex_}{local}<w:hyperlink r:id="r2">{run("no")}</w:hyperlink>{picture}'
            '</w:p>',
            r1="hyperlink http://e.org/1", r2="hyperlink inside.xml", r4="hyperlink mailto:a@e.org",
        )  # fmt: skip
        assert sorted(read(data).links) == [
            ("http://e.org/1", "one"),
            ("http://e.org/2", "two"),
            ("http://e.org/3", "three 3"),
            ("mailto:a@e.org", ""),
        ]

    def test_charts_have_labels_and_diagrams_text(self) -> None:
        chart = f"""<c:chartSpace xmlns:c="c" {A}><c:title><a:p><a:r><a:t>Sales</a:t></a:r></a:p>\
</c:title><c:strCache><c:pt><c:v>North</c:v></c:pt><c:pt><c:v>South</c:v></c:pt></c:strCache>\
<c:numCache><c:pt><c:v>17</c:v></c:pt></c:numCache></c:chartSpace>"""
        point = (
            f'<d:dataModel xmlns:d="d" {A}><d:t><a:p><a:r><a:t>box</a:t></a:r></a:p></d:t>'
            "</d:dataModel>"
        )
        parts = {"word/c.xml": chart, "word/d.xml": point}
        data = word(paragraph("text"), parts, a="chart c.xml", b="diagramData d.xml")
        assert read(data).text == "text\nSales\nNorth South\nbox"


class TestSlides:
    def test_in_the_order_of_the_list_with_notes_and_comments(self) -> None:
        note = (
            f"<p:notes {P} {A}><p:sp><p:ph type='sldNum'/><a:p><a:r><a:t>7</a:t></a:r></a:p></p:sp>"
            "<p:sp><p:ph type='body'/><a:p><a:r><a:t>to say</a:t></a:r></a:p></p:sp></p:notes>"
        )
        remark = f"<p:cmLst {P}><p:cm authorId='1'><p:text>remark</p:text></p:cm></p:cmLst>"
        clicked = "<a:p><a:r><a:rPr><a:hlinkClick r:id='l'/></a:rPr><a:t>click</a:t></a:r></a:p>"
        data = slides(
            "r2 r1",
            {
                "ppt/slides/slide1.xml": slide("last"),
                "ppt/slides/intro.xml": slide("first", "line", inside=clicked),
                "ppt/slides/_rels/intro.xml.rels": relations(
                    n="notesSlide ../n.xml", c="comments ../c.xml", l="hyperlink http://e.org/1"
                ),
                "ppt/n.xml": note,
                "ppt/c.xml": remark,
            },
            r1="slide slides/slide1.xml", r2="slide slides/intro.xml",
        )  # fmt: skip
        found = parsed(data, f"{OOXML}presentationml.presentation")
        assert found.text == "first\nline\nclick\nto say\nremark\nlast"
        assert links(found) == [("http://e.org/1", "click")]


STYLES = (
    '<styleSheet><numFmts><numFmt numFmtId="170" formatCode="d\\.m\\.yyyy"/></numFmts><cellXfs>'
    '<xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="9"/><xf numFmtId="170"/></cellXfs>'
    "</styleSheet>"
)


class TestSheets:
    def test_cells_are_as_they_are_shown(self) -> None:
        strings = (
            "<sst><si><t>zero</t></si><si><r><t>o</t></r><r><t>ne</t></r><rPh><t>x</t></rPh>"
            "</si></sst>"
        )
        row = (
            '<c s="1"><v>45292</v></c><c><v>0.10000000000000001</v></c><c s="2"><v>0.5</v></c>'
            '<c t="b"><v>1</v></c><c t="s"><v>1</v></c><c s="3"><v>45292.75</v></c>'
            '<c t="s"><v>7</v></c><c t="s"><v>x</v></c><c t="e"><v>#N/A</v></c><c/>'
            '<c t="str"><f>A1</f><v>made_x000A_up</v></c>'
        )
        data = workbook(
            "Sheet=r1",
            {"xl/a.xml": sheet(row), "xl/b.xml": strings, "xl/c.xml": STYLES},
            r1="worksheet a.xml", r2="sharedStrings b.xml", r3="styles c.xml",
        )  # fmt: skip
        found = parsed(data, f"{OOXML}spreadsheetml.sheet")
        assert found.text == "Sheet\n2024-01-01 0.1 50% TRUE one 1.1.2024 #N/A made up"

    def test_in_their_order_with_names_comments_headers_and_links(self) -> None:
        behind = (
            '<hyperlinks><hyperlink ref="A1:B1" r:id="l"/></hyperlinks>'
            '<headerFooter><oddHeader>&amp;C&amp;"Arial,Bold"&amp;12Head&amp;P</oddHeader>'
            "</headerFooter>"
        )
        comments = (
            "<comments><authors><author>Anne</author></authors><commentList><comment><text><r>"
            "<t>re</t></r><r><t>mark</t></r></text></comment></commentList></comments>"
        )
        text = "<c r='A1' t='inlineStr'><is><t>linked</t></is></c>"
        function = '<c t="str"><f>HYPERLINK("http://e.org/2","shown")</f><v>shown</v></c>'
        drawn = (
            f"<xdr:wsDr xmlns:xdr='x' {A}><xdr:txBody><a:p><a:r><a:t>boxed</a:t></a:r></a:p>"
            "</xdr:txBody></xdr:wsDr>"
        )
        data = workbook(
            "Second=r2 First=r1",
            {
                "xl/worksheets/sheet1.xml": sheet("<c><v>1</v></c>"),
                "xl/worksheets/Data.xml": sheet(text + function, behind=behind),
                "xl/worksheets/_rels/Data.xml.rels": relations(
                    l="hyperlink http://e.org/1", c="comments ../c.xml", d="drawing ../d.xml"
                ),
                "xl/c.xml": comments,
                "xl/d.xml": drawn,
            },
            r1="worksheet worksheets/sheet1.xml", r2="worksheet worksheets/Data.xml",
        )  # fmt: skip
        found = parsed(data, f"{OOXML}spreadsheetml.sheet")
        assert found.text == "Second\nlinked shown\nHead\nremark\nboxed\nFirst\n1"
        assert sorted(links(found)) == [("http://e.org/1", "linked"), ("http://e.org/2", "shown")]

    @tabled(
        ("pattern", "value", "shown"),
        [
            ("General", "0.10000000000000001", "0.1"),
            ("General", "123456789012", "123456789012"),
            ("General", "1e300", "1E+300"),
            ("", "no number", "no number"),
            ("0", "nan", "nan"),
            ("0%", "0.5", "50%"),
            ("0.0%", "0.12345", "12.3%"),
            ("#,##0.00;(#,##0.00)", "-1234.5", "(1,234.50)"),
            ("[Red]-0;[Blue]0", "5", "-5"),
            ('0;-0;"zero"', "0", "zero"),
            ('0.0 "km"', "3.14", "3.1 km"),
            ("[$€-407] #,##0.00", "12.5", "€ 12.50"),
            ("0000", "42", "0042"),
            ("#,##0,", "1234567", "1,235"),
            ("0.##", "2.5", "2.5"),
            ("#.##", "0.25", ".25"),
            ("0.00E+00", "12345", "1.23E+04"),
            ("# ?/?", "0.5", "0.5"),
            ("yyyy-mm-dd", "45292", "2024-01-01"),
            ("d mmmm yyyy", "45292.99", "1 January 2024"),
            ("dd/mm/yy hh:mm", "45292.5", "01/01/24 12:00"),
            ("ddd, h:mm:ss AM/PM", "45292.75", "Mon, 6:00:00 PM"),
            ("[h]:mm:ss", "1.5", "36:00:00"),
            ("mm:ss.0", "0.0001", "00:08.6"),
            ("yyyy-mm-dd", "59", "1900-02-28"),
            ("yyyy", "1e9", "1000000000"),
            ("yyyy", "-1e300", "-1E+300"),
            ("0" * 256, "3", "3"),
            ("0.00", "1e300", "1E+300"),
        ],
    )
    def test_formats(self, pattern: str, value: str, shown: str) -> None:
        assert CellFormats((pattern,)).shown(value, "0") == shown
        assert CellFormats(()).shown("1.50", "99999999999999999999") == "1.5"

    def test_days_may_be_counted_from_1904(self) -> None:
        data = workbook(
            "S=r1", {"xl/a.xml": sheet('<c s="1"><v>0</v></c>'), "xl/c.xml": STYLES},
            '<workbookPr date1904="1"/>', r1="worksheet a.xml", r3="styles c.xml",
        )  # fmt: skip
        assert read(data).text == "S\n1904-01-01"


class TestOpenDocument:
    def test_text(self) -> None:
        note = (
            "<text:note><text:note-citation>1</text:note-citation><text:note-body>"
            "<text:p>a note</text:p></text:note-body></text:note>"
        )
        remark = (
            "<office:annotation><dc:creator>Anne</dc:creator><dc:date>2024</dc:date>"
            "<text:p>remark</text:p></office:annotation>"
        )
        box = "<draw:frame><draw:text-box><text:p>boxed</text:p></draw:text-box></draw:frame>"
        cells = "".join(
            f"<table:table-cell><text:p>cell{at}</text:p></table:table-cell>" for at in (1, 2)
        )
        styles = (
            f"<office:document-styles {OPEN}><style:master-page><style:header><text:p>Head</text:p>"
            "</style:header><style:footer><text:p>Foot</text:p></style:footer></style:master-page>"
            "</office:document-styles>"
        )
        data = opened(
            "<text:tracked-changes><text:p>no</text:p></text:tracked-changes><text:h>A head"
            "</text:h>"
            "<text:p>two<text:s text:c='3'/>wo<text:span>rds"
            f"</text:span>{note}{remark}{box} go on\n"
            "here<text:line-break/>end</text:p>"
            f"<table:table table:name='T'><table:table-row>{cells}</table:table-row></table:table>",
            styles=styles,
        )  # fmt: skip
        found = parsed(data, "application/vnd.oasis.opendocument.text")
        assert found.text == (
            "Head\nA head\ntwo words go on here end\na note\nremark\nboxed\ncell1\ncell2\nFoot"
        )
        assert found.data.title == "The title"
        assert found.data.parse_meta["dcterms:modified"] == ["2024-02-29T12:34:56Z"]

    def test_fields_are_text_descriptions_are_not(self) -> None:
        picture = "<draw:frame><svg:title>no</svg:title><svg:desc>no</svg:desc></draw:frame>"
        fields = "<text:title>A title</text:title> by <text:creator>Anne</text:creator>"
        assert read(opened(f"<text:p>{fields}{picture}</text:p>")).text == "A title by Anne"

    def test_what_it_says_of_itself(self) -> None:
        inner = (
            "<meta:initial-creator>First</meta:initial-creator><dc:creator>Last</dc:creator>"
            "<meta:creation-date>2024-02-29T12:34:56</meta:creation-date><meta:keyword>k"
            "</meta:keyword>"
            "<meta:document-statistic meta:page-count='7'/>"
        )
        meta = (
            f"<office:document-meta {OPEN}><office:meta>{inner}</office:meta>"
            "</office:document-meta>"
        )
        assert dict(read(opened("", meta=meta)).metadata) == {
            "dc:creator": ["First", "Last"],
            "dcterms:created": ["2024-02-29T12:34:56Z"],
            "meta:keyword": ["k"],
            "xmpTPg:NPages": ["7"],
        }

    def test_links(self) -> None:
        entries = (
            ("http://e.org/1", "one"),
            ("#inside", "no"),
            ("../beside.odt", "two"),
            ("a", "no"),
        )
        shown = "".join(
            f'<text:a xlink:href="{url}"><text:span>{words}</text:span></text:a>'
            for url, words in entries
        )
        assert links(parsed(opened(f"<text:p>{shown}</text:p>"))) == [
            ("http://e.org/1", "one"),
            ("http://example.org/dir/beside.odt", "two"),
        ]

    def test_a_spreadsheet_has_a_line_for_a_row(self) -> None:
        cell = "<table:table-cell><text:p>{}</text:p>{}</table:table-cell>"
        remark = "<office:annotation><text:p>remark</text:p></office:annotation>"
        row = f"<table:table-row>{cell.format(1, remark)}{cell.format('50%', '')}</table:table-row>"
        table = f'<table:table table:name="Sheet">{row}</table:table>'
        assert read(opened(table, "spreadsheet")).text == "Sheet\n1 50%\nremark"

    def test_slides_have_their_notes(self) -> None:
        frame = (
            '<draw:frame presentation:class="{}"><draw:text-box><text:p>{}</text:p>'
            "</draw:text-box></draw:frame>"
        )
        number, notes = frame.format("page-number", "7"), frame.format("notes", "to say")
        notes = f"<presentation:notes>{number}{notes}"
        page = (
            f"<draw:page>{frame.format('title', 'Title')}{notes}</presentation:notes></draw:page>"
        )
        assert read(opened(page, "presentation")).text == "Title\nto say"

    def test_it_may_be_one_file(self) -> None:
        flat = (
            f"<?xml version='1.0'?><office:document {OPEN}><office:meta><dc:title>T</dc:title>"
            "</office:meta>"
            "<office:body><office:text><text:p>text</text:p></office:text></office:body>"
            "</office:document>"
        )
        found = parsed(flat.encode(), "application/vnd.oasis.opendocument.text-flat-xml")
        assert (found.data.title, found.text) == ("T", "text")

    def test_objects_inside(self) -> None:
        inner = (
            f"<office:document-content {OPEN}><office:body><office:chart><text:p>axis</text:p>"
            "</office:chart></office:body></office:document-content>"
        )
        data = opened("<text:p>text</text:p>", **{"Object 1/content": inner})
        assert parsed(data).text == "text\naxis"


class TestBook:
    def test_pages_are_read_as_pages_of_the_web(self) -> None:
        first = "<h1>One</h1><p>to <a href='http://e.org/1'>it</a><a href='b.xhtml'>!</a></p>"
        found = parsed(
            book(b="<table><tr><td>cell1</td><td>cell2</td></tr></table>", a=first),
            "application/epub+zip",
        )
        assert found.text.split() == ["One", "to", "it", "!", "cell1", "cell2"]
        assert (found.data.title, links(found)) == ("The title", [("http://e.org/1", "it")])
        assert found.data.parse_meta["dc:language"] == ["en"]

    def test_a_reservation_of_rights(self) -> None:
        meta = "".join(
            f'<meta property="tdm:{n}">{v}</meta>' for n, v in (("reservation", 1), ("policy", "p"))
        )
        with zipfile.ZipFile(io.BytesIO(book(a="x"))) as whole:
            members = {name: whole.read(name) for name in whole.namelist()}
        opf = members["OPS/book.opf"].replace(b"</metadata>", f"{meta}</metadata>".encode())
        found = parsed(archive({**members, "OPS/book.opf": opf}), "application/epub+zip")
        said = [found.data.parse_meta[f"tdm:{name}"] for name in ("reservation", "policy")]
        assert said == [["1"], ["p"]]

    def test_a_chapter_that_is_not_there_costs_itself_alone(self) -> None:
        data = book(b="<p>second</p>", x="<p>gone</p>", a="<p>first</p>").replace(
            b"OPS/text/x.xhtml", b"OPS/text/y.xhtml"
        )
        found = parsed(data, "application/epub+zip")
        assert (found.text, found.data.status.major) == ("first\nsecond", SUCCESS)
        assert "OPS/text/x.xhtml: not in the archive" in str(found.data.status)

    def test_a_damaged_chapter_costs_what_is_damaged(self) -> None:
        words = " ".join(f"word{at * 7919 % 10007}" for at in range(9000))
        data = bytearray(book(b="<p>second</p>", x=f"<p>{words}</p>", a="<p>first</p>"))
        at = data.index(b"OPS/text/x.xhtml")
        data[at + 15_000 : at + 15_100] = bytes(100)
        found = parsed(bytes(data), "application/epub+zip")
        assert found.text.startswith("first\nword0 ") or "word0 " in found.text
        assert found.text.endswith("second")
        assert 2000 < len(found.text.split()) < 9002
        assert "OPS/text/x.xhtml: damaged" in str(found.data.status)

    def test_without_its_list_the_pages_come_as_they_lie(self) -> None:
        members = {"META-INF/container.xml": "<container/>", "b.xhtml": "<p>b", "a.html": "<p>a"}
        assert read(archive(members)).text == "<p>b\n<p>a"


class TestDamage:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"no zip", "neither zip nor XML"),
            (b"<doc/>", "can be read"),
            (b"PK\x03\x04 junk", "can be read"),
            (archive({"a.txt": "x"}), "of a kind that is known"),
            (archive({"content.xml": "junk"}), "content.xml can't be read"),
            (archive({"_rels/.rels": relations(a="officeDocument b.bin"), "b.bin": b"\0\1"}),
             "of a kind that is read: b.bin"),
            (archive({"_rels/.rels": relations(a="officeDocument b.xml"), "b.xml": "<svg/>"}),
             "of a kind that is read: b.xml"),
        ],
    )  # fmt: skip
    def test_failures(self, data: bytes, reason: str) -> None:
        with pytest.raises(ParseError, match=reason):
            read(data)
        assert parsed(data).data.status.major == FAILED

    @pytest.mark.parametrize("kind", samples())
    def test_a_file_that_is_cut_off_has_what_comes_before(self, kind: str) -> None:
        """Its directory stands at the end."""
        whole = samples()[kind]
        text = read(whole).text
        found = read(whole[: whole.rindex(b"PK\x01\x02", 0, whole.index(b"PK\x01\x02") + 4)])
        assert found.text == text
        assert "cut off" in found.loss

    def test_one_part_that_is_damaged_or_encrypted_costs_itself_alone(self) -> None:
        part = f"<w:hdr {W}>{paragraph('header')}</w:hdr>"
        data = word(paragraph("body"), {"word/h.xml": part}, r1="header h.xml")
        place = data.index(b"word/h.xml") - 30
        for at, value, reason in (
            (6, 1, "encrypted"),
            (8, 99, "packed by a method"),
            (30 + 10, 0xFF, "damaged"),
        ):
            spoilt = bytearray(data)
            spoilt[place + at] = value
            found = parsed(bytes(spoilt))
            assert (found.text, found.data.status.major) == ("body", SUCCESS)
            assert f"word/h.xml: {reason}" in str(found.data.status)

    def test_unpacked_bytes_are_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(packages, "MOST_BYTES", 10_000)
        parts = {"word/f.xml": f"<w:ftr {W}>{paragraph('x' * 20_000)}</w:ftr>"}
        found = read(word(paragraph("body"), parts, r1="footer f.xml"))
        assert found.text.startswith("body\nxxx")
        assert len(found.text) < 10_000
        assert "word/f.xml: more than" in found.loss

    def test_text_of_a_sheet_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sheets, "MOST_TEXT", 1000)
        strings = f"<sst><si><t>{'x' * 300}</t></si></sst>"
        rows = sheet(*['<c t="s"><v>0</v></c>&a;'] * 9)
        parts = {"xl/a.xml": f"<!DOCTYPE d [<!ENTITY a 'b'>]>{rows}", "xl/b.xml": strings}
        found = Document()
        with pytest.raises(ParseError, match="1000 characters"):
            data = workbook("S=r1", parts, r1="worksheet a.xml", r2="sharedStrings b.xml")
            read_office(data, found, lambda page: ("", []))
        assert len(found.text.split()) == 4

    def test_entities_are_not_resolved(self) -> None:
        bomb = (
            f"<!DOCTYPE d [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><w:document {W}><w:p><w:r>"
            "<w:t>x&b;<!-- y -->z</w:t></w:r></w:p></w:document>"
        )
        data = archive({"_rels/.rels": relations(a="officeDocument d.xml"), "d.xml": bomb})
        assert "haha" not in read(data).text

    def test_deep_trees(self) -> None:
        deep = "<w:p><w:r>" * 5_000 + "<w:t>x</w:t>"
        assert read(word(paragraph("first") + deep)).text == "first"
        assert isinstance(read(opened("<text:p><text:span>" * 5_000)).text, str)

    def test_relations_may_lead_around(self) -> None:
        root = f"<w:hdr {W} {R} {MC}>{paragraph('header')}</w:hdr>"
        loops = {"word/h.xml": root, "word/_rels/h.xml.rels": relations(a="header h.xml")}
        data = word(paragraph("body"), loops, a="header h.xml", b="header document2.xml")
        assert read(data).text == "header\nbody\nbody"
        assert read(slides("r1 r1", {"ppt/a.xml": slide("s")}, r1="slide a.xml")).text == "s\ns"

    def test_out_of_time_it_keeps_what_it_has(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = Package.root

        def late(self: Package, name: str) -> object:
            if name == "ppt/b.xml":
                raise ParseTimeout
            return whole(self, name)

        monkeypatch.setattr(Package, "root", late)
        parts = {"ppt/a.xml": slide("first"), "ppt/b.xml": slide("second")}
        found = Document()
        with pytest.raises(ParseTimeout):
            data = slides("r1 r2", parts, r1="slide a.xml", r2="slide b.xml")
            read_office(data, found, lambda page: ("", []))
        assert (found.text, found.title) == ("first", "The title")

    @pytest.mark.parametrize("kind", samples())
    def test_damage_anywhere_is_a_parse_error_or_nothing(self, kind: str) -> None:
        whole = samples()[kind]
        for number in range(120):
            rng = random.Random(f"{kind} {number}")
            data = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            for damaged in (bytes(data), whole[: rng.randrange(len(whole))]):
                try:
                    found = read(damaged)
                except ParseError:
                    continue
                assert isinstance(found.text + found.title + found.loss, str)
