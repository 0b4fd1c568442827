"""parse-tika on PDF: text, links, outline, notes, metadata; and on all that is wrong with them."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from minutch.cycle.parse.dispatch import ParseTimeout
from minutch.errors import ParseError
from minutch.plugin.points import Parse
from minutch.records.parsedata import FAILED, SUCCESS
from plugins.parse_tika import pdf as module
from plugins.parse_tika.package import Document
from plugins.parse_tika.pdf import read_pdf
from tests.support.examples import tabled
from tests.support.golden import PROJECT
from tests.support.pages import configuration, links, parse
from tests.support.pdffiles import (
    after,
    assembled,
    attachments,
    link,
    pdf,
    shown,
    stream,
)

TIKA = configuration("parse-tika")


def parsed(data: bytes) -> Parse:
    return parse(data, TIKA, "application/pdf")


def read(data: bytes) -> Document:
    found = Document()
    read_pdf(data, found)
    return found


def test_text_title_and_what_it_says_of_itself() -> None:
    info = "/Title(A PDF)/Author(A. Writer)/Producer(hand)/CreationDate(D:20240229133456+01'00')"
    found = parsed(pdf("Hello page", "the second", info=info, catalog="/Lang(en-GB)"))
    assert (found.text, found.data.title) == ("Hello page\nthe second", "A PDF")
    assert (found.data.status.major, found.data.status.args) == (SUCCESS, None)
    assert dict(found.data.parse_meta) == {
        "dc:title": ["A PDF"],
        "dc:creator": ["A. Writer"],
        "pdf:producer": ["hand"],
        "pdf:docinfo:producer": ["hand"],
        "dcterms:created": ["2024-02-29T12:34:56Z"],
        "dc:language": ["en-GB"],
        "pdf:PDFVersion": ["1.7"],
        "xmpTPg:NPages": ["2"],
        "Content-Type": ["application/pdf"],
    }


def test_a_reservation_of_rights() -> None:
    """TDM Reservation Protocol, in XMP: as elements or attributes, packed or not, not of pictures'
    other metadata.
    """
    rdf = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    ours = 'xmlns:tdm="http://www.w3.org/ns/tdmrep/"'
    policy = "<tdm:policy>p</tdm:policy>"
    elements = f"<rdf:D {ours}><tdm:reservation>1</tdm:reservation>{policy}</rdf:D>"
    attributes = f'<rdf:D {ours} tdm:reservation="1" tdm:policy="p"/>'
    resource = f'<rdf:D {ours} tdm:reservation="1"><tdm:policy rdf:resource="p"/></rdf:D>'
    nothing = elements.replace("ns/tdmrep", "ns/others")
    for said, wanted in ((elements, "1p"), (attributes, "1p"), (resource, "1p"), (nothing, "")):
        xmp = f'<?xpacket begin=""?><rdf:RDF {rdf}>{said}</rdf:RDF><?xpacket end="w"?>'.encode()
        for data, more in ((xmp, ""), (zlib.compress(xmp), "/Filter/FlateDecode")):
            head = f"<</Type/Metadata/Subtype/XML{more}/Length {len(data)}>>"
            metadata = head.encode() + b"stream\n" + data + b"\nendstream"
            found = read(pdf("x", more=[metadata], catalog=f"/Metadata {after(1)} 0 R"))
            values = (found.metadata.get(f"tdm:{name}", "") for name in ("reservation", "policy"))
            assert "".join(values) == wanted
    for broken in (b"stream\n", b"stream\nhttp://www.w3.org/ns/tdmrep/<\nendstream", b""):
        read(pdf("x", more=[b"<</Subtype/XML/Filter/FlateDecode>>" + broken]))


@tabled(
    ("written", "time"),
    [
        ("D:20240229133456Z", "2024-02-29T13:34:56Z"),
        ("D:20240229133456-00'00'", "2024-02-29T13:34:56Z"),
        ("D:20240229133456+0530", "2024-02-29T08:04:56Z"),
        ("20240229", "2024-02-29T00:00:00Z"),
        ("D:2024", "2024-01-01T00:00:00Z"),
        ("D:20240230000000Z", ""),
        ("D:00010101000000+23'59'", ""),
        ("yesterday", ""),
    ],
)
def test_dates(written: str, time: str) -> None:
    found = read(pdf("x", info=f"/ModDate({written})"))
    assert found.metadata.get("dcterms:modified", "") == time


def test_words_are_whole() -> None:
    names = "/Encoding<</Type/Encoding/Differences[33/fi/hyphen/ffl]>>"
    font = f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica{names}>>"
    line = stream(shown('!nd e#uent gram"', 'mar, Front"', "Cover"))
    data = pdf(line, more=[font], page=f"/Resources<</Font<</F1 {after(1)} 0 R>>>>")
    assert read(data).text == "find effluent grammar, Front-Cover"


@pytest.mark.skipif(sys.platform != "linux", reason="filters system calls")
def test_fonts_of_this_machine_do_not_count(tmp_path: Path) -> None:
    """A process that lists a folder is ended; one that looks for a font would."""
    font = "<</Type/Font/Subtype/TrueType/BaseFont/DejaVuSans/Encoding/WinAnsiEncoding>>"
    resources = f"/Resources<</Font<</F1 {after(1)} 0 R>>>>"
    (tmp_path / "a.pdf").write_bytes(pdf("two words", more=[font], page=resources))
    script = """
import pathlib, sys, seccompy
from plugins.parse_tika.package import Document
from plugins.parse_tika.pdf import read_pdf
data, found = pathlib.Path(sys.argv[1]).read_bytes(), Document()
calls = seccompy.Filter()
calls.kill("getdents64")
calls.load()
read_pdf(data, found)
print(found.text)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "a.pdf")]
    done = subprocess.run(command, check=False, cwd=PROJECT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "two words\n"), done.stderr


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (("a gram-", "mar, dpkg-", "source; grammar"), "a grammar, dpkgsource; grammar"),
        (("long-", "standing, dpkg-", "source, dpkg-source"), "long-standing, dpkg-source, "
         "dpkg-source"),
        (("a gram-", "mar, long-", "standing; grammar"), "a grammar, longstanding; grammar"),
        (("Front-", "Cover"), "Front-Cover"),
    ],
)  # fmt: skip
def test_hyphens_stay_where_the_text_has_them(lines: tuple[str, ...], text: str) -> None:
    """The second: of words that it has elsewhere most have the hyphen, as in the third none."""
    found = read(pdf(stream(shown(*lines))))
    assert found.text == text


@pytest.mark.parametrize("text", ["日本語", "a𝑥b", "שלום"])
def test_characters_are_those_of_the_font(text: str) -> None:
    """Right-to-left text is drawn from the left: its last letter comes first."""
    drawn = text[::-1] if text == "שלום" else text
    codes = "".join(
        f"<{at:02x}> <{letter.encode('utf-16-be').hex()}>\n" for at, letter in enumerate(drawn, 65)
    )
    table = f"1 begincodespacerange <00> <ff> endcodespacerange\n{len(drawn)} beginbfchar\n"
    table += f"{codes}endbfchar"
    font = f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode {after(1) + 1} 0 R>>"
    line = stream(shown("".join(chr(65 + at) for at in range(len(drawn)))))
    resources = f"/Resources<</Font<</F1 {after(1)} 0 R>>>>"
    assert read(pdf(line, more=[font, stream(table.encode())], page=resources)).text == text


def test_links_have_the_words_that_they_lie_over() -> None:
    areas = [("http://e.org/1", "18 176 44 192"), ("http://e.org/2", "18 162 60 178")]
    areas += [("http://e.org/2", "18 148 60 164"), ("http://e.org/%C3%A4", "150 0 160 10")]
    notes = "".join(link(target, area) for target, area in areas)
    data = pdf(stream(shown("Here", "goes on", "and on")), page=f"/Annots[{notes}]")
    assert links(parsed(data)) == [
        ("http://e.org/1", "Here"),
        ("http://e.org/2", "goes on and on"),
        ("http://e.org/%C3%A4", ""),
    ]


def test_notes_and_fields() -> None:
    notes = "<</Type/Annot/Subtype/Text/Rect[0 0 9 9]/T(Author)/Contents(a remark)>>"
    notes += "<</Type/Annot/Subtype/Popup/Rect[0 0 9 9]/Contents(again)>>"
    notes += "<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(a value)/Rect[0 0 9 9]>>"
    notes += "<</Type/Annot/Subtype/Widget/FT/Btn/T(box)/V/Yes/Rect[0 0 9 9]>>"
    assert read(pdf("page", page=f"/Annots[{notes}]")).text == "page\na remark\na value"


def test_the_outline_comes_last() -> None:
    n = after(1)
    entries = [
        f"<</Type/Outlines/First {n + 1} 0 R/Last {n + 2} 0 R/Count 2>>",
        f"<</Title(Chapter)/Parent {n} 0 R/Next {n + 2} 0 R/First {n + 3} 0 R/Last {n + 3} 0 R>>",
        f"<</Title(\376\377\0E\0n\0d)/Parent {n} 0 R/Prev {n + 1} 0 R/A<</S/URI/URI(http://e.org/)>>>>",
        f"<</Title(Section)/Parent {n + 1} 0 R>>",
    ]
    found = read(pdf("page", more=entries, catalog=f"/Outlines {n} 0 R"))
    assert found.text == "page\nChapter\nSection\nEnd"
    assert found.links == [("http://e.org/", "End")]


def test_an_outline_may_have_no_end() -> None:
    n = after(1)
    entries = [
        f"<</Type/Outlines/First {n + 1} 0 R/Last {n + 1} 0 R>>",
        f"<</Title(A)/Parent {n} 0 R/Next {n + 2} 0 R/First {n + 1} 0 R>>",
        f"<</Title(B)/Parent {n} 0 R/Next {n + 1} 0 R/First {n} 0 R>>",
    ]
    found = read(pdf("page", more=entries, catalog=f"/Outlines {n} 0 R"))
    assert found.texts[1:3] == ["A", "B"]
    assert len(found.texts) <= 5


BAD: list[str] = [
    "/Annots null",
    "/Annots 99 0 R",
    "/Annots 7",
    "/Annots(x)",
    "/Annots<<>>",
    "/Annots[null 99 0 R 7 (x) [] <<>>]",
    f"/Annots[{link('').replace('/A<<', '/B<<')}]",
    "/Annots[<</Subtype/Link/A null>>]",
    "/Annots[<</Subtype/Link/A 99 0 R>>]",
    "/Annots[<</Subtype/Link/A 7>>]",
    "/Annots[<</Subtype/Link/A<</S/URI/URI 7>>>>]",
    "/Annots[<</Subtype/Link/A<</S/URI>>/Rect[(x) null]>>]",
    "/Annots[4 0 R]",
    "/Annots[<</Subtype/Widget/FT/Tx/V 7/Parent 99 0 R>> <</Subtype/Text/Contents null>>]",
]


@tabled("bad", BAD)
def test_one_bad_annotation_costs_nothing_else(bad: str) -> None:
    found = parsed(pdf("first", "second", page=bad))
    assert (found.text, found.data.status.major) == ("first\nsecond", SUCCESS)


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (stream(b"x", "/Filter/Unknown"), "second"),
        (stream(b"junk", "/Filter/FlateDecode"), "second"),
        (stream(zlib.compress(shown("first"))[:-6], "/Filter/FlateDecode"), "first\nsecond"),
        (stream(shown("first") + b" BT <</ ]] (never closed"), "first\nsecond"),
        (b"null", "second"),
        (b"7", "second"),
        (b"[4 0 R 5 0 R 99 0 R]", "second"),
    ],
)
def test_one_bad_page_costs_nothing_else(bad: bytes, text: str) -> None:
    found = parsed(pdf(bad, "second"))
    assert (found.text, found.data.status.major) == (text, SUCCESS)


def test_a_page_that_is_not_there_is_told() -> None:
    data = pdf("first", "second").replace(b"/Kids[4 0 R 6 0 R]", b"/Kids[4 0 R 9 0 R]")
    found = parsed(data)
    assert (found.text, found.data.status.major) == ("first", SUCCESS)
    assert "page 2 can't be read" in str(found.data.status)


def test_a_file_that_is_cut_off_keeps_its_pages() -> None:
    """The cross references stand at its end."""
    data = pdf("first", "second", "third")
    for size in range(data.index(b"6 0 obj"), len(data), 7):
        assert parsed(data[:size]).text.startswith("first"), size
    assert parsed(data[: data.index(b"8 0 obj")]).text == "first\nsecond"


def test_a_file_that_is_cut_off_may_have_its_pages_in_streams() -> None:
    """As LaTeX writes them: pages in streams of objects, the catalog at the end."""
    page = "<</Type/Page/MediaBox[0 0 200 200]/Contents {} 0 R/Resources<</Font<</F1 9 0 R>>>>>>"
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    bodies = {3: page.format(1), 4: page.format(2), 9: font}
    places, body = [], ""
    for number, text in bodies.items():
        places += [number, len(body)]
        body += f"{text} "
    numbers = " ".join(map(str, places)) + " "
    packed = zlib.compress(f"{numbers}{body}".encode())
    entries = f"/Type/ObjStm/N 3/First {len(numbers)}/Filter/FlateDecode"
    objects = [stream(shown("first")), stream(shown("second")), stream(packed, entries)]
    data = b"%PDF-1.5\n" + b"".join(
        b"%d 0 obj\n%b\nendobj\n" % (number, text)
        for number, text in zip((1, 2, 5), objects, strict=True)
    )
    assert parsed(data + b"6 0 obj\n<</Type/Cata").text == "first\nsecond"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is damaged, or no PDF"),
        (b"%PDF-1.4\n", "it is damaged, or no PDF"),
        (b"%PDF-1.4\n1 0 obj<<>>endobj trailer<</Root 1 0 R>>", "it is damaged, or no PDF"),
        (
            assembled(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 0/Kids[]>>",
                       "<</Filter/Standard/V 1/R 2/O(" + "x" * 32 + ")/U(" + "x" * 32 + ")/P -1>>"],
                      trailer="/Encrypt 3 0 R/ID[(a)(b)]"),
            "a password is needed",
        ),
        (
            assembled(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 0/Kids[]>>",
                       "<</Filter/Other/V 9>>"], trailer="/Encrypt 3 0 R/ID[(a)(b)]"),
            "it is encrypted in a way that is not known",
        ),
    ],
)  # fmt: skip
def test_failures(data: bytes, reason: str) -> None:
    status = parsed(data).data.status
    assert (status.major, status.args) == (FAILED, [f"not a PDF that can be read: {reason}"])


def test_page_trees_may_be_circles() -> None:
    data = pdf("first").replace(b"/Kids[4 0 R]", b"/Kids[2 0 R]").replace(b"/Count 1", b"/Count 9")
    assert read(data).text == ""
    data = pdf("first").replace(b"/Count 1", b"/Count 2147483647")
    assert read(data).text == "first"


def test_forms_inside_of_themselves_and_bombs() -> None:
    """Forms that double at each level are for parser.timeout (tests/cycle/parse/test_parse.py)."""
    n = after(1)
    resources = f"/Resources<</Font<</F1 3 0 R>>/XObject<</X {n} 0 R>>>>"
    form = "/Type/XObject/Subtype/Form/BBox[0 0 200 200]"
    image = "/Type/XObject/Subtype/Image/Width 60000/Height 60000/BitsPerComponent 8"
    for inner in (
        stream(b"/X Do", f"{form}{resources}"),
        stream(b"x", f"{image}/ColorSpace/DeviceRGB"),
    ):
        page = stream(shown("first") + b" /X Do")
        assert read(pdf(page, more=[inner], page=resources)).text == "first"
    packed = stream(zlib.compress(b" " * (8 << 20)), "/Filter/FlateDecode")
    assert read(pdf(packed, "second")).text == "second"


def test_out_of_time_it_keeps_the_pages_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    load = module.pdfium.FPDF_LoadPage

    def late(document: object, number: int) -> object:
        if number == 2:
            raise ParseTimeout
        return load(document, number)

    monkeypatch.setattr(module.pdfium, "FPDF_LoadPage", late)
    found = parsed(pdf(*map(str, range(9)), info="/Title(t)"))
    assert (found.text, found.data.title, found.data.status.major) == ("0\n1", "t", SUCCESS)
    assert "pages from 3 of 9 on; the time for it was over (parser.timeout)" in str(
        found.data.status
    )
    monkeypatch.setattr(module.pdfium, "FPDF_LoadPage", lambda document, number: late(document, 2))
    with pytest.raises(ParseTimeout):
        parsed(pdf("x"))


def test_attachments_are_bounded() -> None:
    objects, catalog = attachments(b_txt=b"12345", a_txt=b"1")
    data = pdf("page", more=objects, catalog=catalog)
    assert list(module.attachments(data, 5)) == [("a.txt", b"1"), ("b.txt", b"12345")]
    assert list(module.attachments(data, 4)) == [("a.txt", b"1")]


def test_damage_anywhere_is_a_parse_error_or_nothing() -> None:
    objects, catalog = attachments(a_txt=b"1")
    whole = pdf("first", "second", more=objects, page=f"/Annots[{link('http://e.org/')}]",
                catalog=catalog, info="/Title(t)")  # fmt: skip
    for number in range(300):
        rng = random.Random(number)
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            list(module.attachments(bytes(data), 10))
            assert isinstance(read(bytes(data)).text, str)
        except ParseError:
            continue
