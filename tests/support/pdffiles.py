"""Makes PDFs, whole or broken, out of their objects."""

from __future__ import annotations

from collections.abc import Sequence

CATALOG, PAGES, FONT = 1, 2, 3
FIRST_PAGE = 4
"""Numbers of objects. A page and what it shows are two, then come the objects of the caller."""


def assembled(objects: Sequence[str | bytes], *, info: str = "", trailer: str = "") -> bytes:
    """A PDF of objects, numbered from 1: the first is the catalog."""
    bodies = [body.encode("latin-1") if isinstance(body, str) else body for body in objects]
    if info:
        bodies.append(f"<<{info}>>".encode("latin-1"))
        trailer += f"/Info {len(bodies)} 0 R"
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    entries = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(bodies) + 1
    out += f"xref\n0 {size}\n0000000000 65535 f \n{entries}".encode()
    out += f"trailer\n<</Size {size}/Root 1 0 R{trailer}>>\n".encode()
    return bytes(out) + f"startxref\n{start}\n%%EOF\n".encode()


def stream(data: bytes, entries: str = "") -> bytes:
    """An object with data."""
    return f"<</Length {len(data)}{entries}>>\nstream\n".encode() + data + b"\nendstream"


def shown(*lines: str) -> bytes:
    """What a page shows: lines of text, one below the other."""
    texts = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
    return f"BT /F1 12 Tf 20 180 Td {texts}ET".encode("latin-1")


def pdf(
    *pages: str | bytes,
    more: Sequence[str | bytes] = (),
    page: str = "",
    catalog: str = "",
    info: str = "",
) -> bytes:
    """A PDF whose pages show a line each, or are given as objects that show something.

    `page` is put into the first page, `catalog` into the catalog; `more` objects come behind those
    of the pages: the first has the number `after(len(pages))`.
    """
    kids = " ".join(f"{FIRST_PAGE + 2 * at} 0 R" for at in range(len(pages)))
    objects: list[str | bytes] = [
        f"<</Type/Catalog/Pages {PAGES} 0 R{catalog}>>",
        f"<</Type/Pages/Count {len(pages)}/Kids[{kids}]>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for at, content in enumerate(pages):
        number = FIRST_PAGE + 2 * at
        objects.append(
            f"<</Type/Page/Parent {PAGES} 0 R/MediaBox[0 0 200 200]/Contents {number + 1} 0 R"
            f"/Resources<</Font<</F1 {FONT} 0 R>>>>{page if not at else ''}>>"
        )
        objects.append(stream(shown(content)) if isinstance(content, str) else content)
    return assembled([*objects, *more], info=info)


def after(pages: int) -> int:
    """The number of the first object behind those of the pages."""
    return FIRST_PAGE + 2 * pages


def link(target: str, area: str = "0 0 10 10") -> str:
    """An annotation that leads to a URL."""
    return f"<</Type/Annot/Subtype/Link/Rect[{area}]/A<</S/URI/URI({target})>>>>"


def attachments(**files: bytes) -> tuple[list[str | bytes], str]:
    """Objects of files inside a PDF of one page, and the entry of the catalog for them; `_` stands
    for the dot of a name.
    """
    objects: list[str | bytes] = []
    names = []
    for name, data in files.items():
        number = after(1) + len(objects)
        shown_name = name.replace("_", ".")
        objects += [
            f"<</Type/Filespec/F({shown_name})/UF({shown_name})/EF<</F {number + 1} 0 R>>>>",
            stream(data, "/Type/EmbeddedFile"),
        ]
        names.append(f"({shown_name}) {number} 0 R")
    return objects, f"/Names<</EmbeddedFiles<</Names[{' '.join(names)}]>>>>"
