"""Makes office documents, whole or broken, out of their parts: Office Open XML, OpenDocument,
EPUB.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

OOXML = "application/vnd.openxmlformats-officedocument."
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
R = f'xmlns:r="{RELATIONS}"'
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
OPEN = (
    'xmlns:office="o" xmlns:text="t" xmlns:table="b" xmlns:draw="w" xmlns:xlink="x" xmlns:dc="d"'
    ' xmlns:meta="m" xmlns:style="s" xmlns:presentation="p" xmlns:svg="svg"'
)
CORE = (
    '<cp:coreProperties xmlns:cp="c" xmlns:dc="d" xmlns:dcterms="t"><dc:title> The title</dc:title>'
    "<dc:creator>A. Writer</dc:creator><dcterms:created>2024-02-29T13:34:56+01:00</dcterms:created>"
    "</cp:coreProperties>"
)


def archive(members: Mapping[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of members in this order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return out.getvalue()


def relations(**targets: str) -> str:
    """A part of relationships: id → `kind target`; URLs lead outside."""
    entries = []
    for name, value in targets.items():
        kind, target = value.split(" ")
        mode = ' TargetMode="External"' if ":" in target else ""
        entries.append(
            f'<Relationship Id="{name}" Type="{RELATIONS}/{kind}" Target="{target}"{mode}/>'
        )
    return f"<Relationships>{''.join(entries)}</Relationships>"


def office(
    main: str, root: str, parts: Mapping[str, str | bytes] | None = None, **targets: str
) -> bytes:
    """A package of Office Open XML, whose main part of this name has these relationships."""
    folder, _, file = main.rpartition("/")
    members = {
        "_rels/.rels": relations(a=f"officeDocument {main}", b="core-properties about/it.xml"),
        "about/it.xml": CORE,
        main: root,
        f"{folder}/_rels/{file}.rels": relations(**targets),
    }
    return archive(members | dict(parts or {}))


def word(body: str, parts: Mapping[str, str | bytes] | None = None, **targets: str) -> bytes:
    """A document of Word's."""
    root = f"<w:document {W} {R} {A} {MC}><w:body>{body}</w:body></w:document>"
    return office("word/document2.xml", root, parts, **targets)


def run(text: str) -> str:
    """A run of WordprocessingML."""
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*texts: str) -> str:
    """A paragraph of WordprocessingML."""
    return f"<w:p>{''.join(map(run, texts))}</w:p>"


def slide(*lines: str, inside: str = "") -> str:
    """A slide with a paragraph for each line."""
    texts = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
    return f"<p:sld {P} {A} {R}><p:sp><p:txBody>{texts}{inside}</p:txBody></p:sp></p:sld>"


def slides(order: str, parts: Mapping[str, str | bytes], **targets: str) -> bytes:
    """A presentation whose slides come in the order of these ids."""
    listed = "".join(f'<p:sldId id="256" r:id="{name}"/>' for name in order.split())
    root = f"<p:presentation {P} {R}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>"
    return office("ppt/intro.xml", root, parts, **targets)


def sheet(*rows: str, behind: str = "") -> str:
    """A sheet, whose rows are cells."""
    lines = "".join(f"<row>{row}</row>" for row in rows)
    return f"<worksheet {R}><sheetData>{lines}</sheetData>{behind}</worksheet>"


def workbook(
    named: str, parts: Mapping[str, str | bytes], inside: str = "", **targets: str
) -> bytes:
    """A workbook with sheets, `NAME=ID` each, in this order."""
    entries = (entry.split("=") for entry in named.split())
    listed = "".join(f'<sheet name="{name}" r:id="{id_}"/>' for name, id_ in entries)
    root = f"<workbook {R}>{inside}<sheets>{listed}</sheets></workbook>"
    return office("xl/book.xml", root, parts, **targets)


def opened(body: str, kind: str = "text", **members: str) -> bytes:
    """An OpenDocument; members by the names of their files without `.xml`."""
    content = f"<office:document-content {OPEN}><office:body><office:{kind}>{body}"
    parts = {f"{name}.xml": data for name, data in members.items()}
    content += f"</office:{kind}></office:body></office:document-content>"
    meta = (
        f"<office:document-meta {OPEN}><office:meta><dc:title>The title</dc:title><dc:date>"
        "2024-02-29T12:34:56.789</dc:date></office:meta></office:document-meta>"
    )
    media_type = f"application/vnd.oasis.opendocument.{kind}"
    return archive({"mimetype": media_type, "content.xml": content, "meta.xml": meta} | parts)


def book(**pages: str) -> bytes:
    """An EPUB of pages; their names stand for `text/NAME.xhtml`."""
    items = "".join(f'<item id="{name}" href="text/{name}.xhtml"/>' for name in pages)
    spine = "".join(f'<itemref idref="{name}"/>' for name in reversed(pages))
    described = "<dc:title>The title</dc:title><dc:language>en</dc:language>"
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": (
            '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
        ),
        "OPS/book.opf": (
            f'<package xmlns:dc="d"><metadata>{described}</metadata>'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
        ),
    }
    for name, body in pages.items():
        page = (
            f"<html xmlns='http://www.w3.org/1999/xhtml'><head><title>no</title></head><body>{body}"
        )
        members[f"OPS/text/{name}.xhtml"] = f"<?xml version='1.0'?>{page}</body></html>"
    return archive(members)


def samples() -> dict[str, bytes]:
    """A small document of each kind."""
    return {
        "docx": word(paragraph("One", " line") + paragraph("another")),
        "pptx": slides("r1", {"ppt/a.xml": slide("a slide")}, r1="slide a.xml"),
        "xlsx": workbook(
            "First=r1",
            {"xl/a.xml": sheet('<c t="inlineStr"><is><t>a cell</t></is></c><c><v>2.5</v></c>')},
            r1="worksheet a.xml",
        ),
        "odt": opened("<text:h>Head</text:h><text:p>a line</text:p>"),
        "epub": book(a="<p>a page</p>", b="<p>another</p>"),
    }
