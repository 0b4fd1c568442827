"""Reads PDF by PDFium, the library of Chromium: text, title, links, outline, form fields, notes,
attachments.

    pages         a line for a line, in the order in which the page draws them
    words         those hyphenated at the end of a line are joined, ligatures are letters
    annotations   targets of links with the words that they lie over; the contents of notes and
                  comments, the values of fields, behind the page's text
    outline       its titles, at the end, as Tika has them
    metadata      the document's, under Tika's names; of its XMP what TDMRep puts there

On PDFs of Debian's packages PDFium takes a tenth of pypdf's time and half of its memory, breaks and
glues no words where pypdf glued every second of some manuals, and has more of the words of the same
books in HTML than Tika (`python -m tests.benchmarks.documents`). It needs no system call that a
worker is refused. It is C++: a file that brings it down, or holds it up for longer than a page may
take, is a failed parse as a whole (`minutch.cycle.parse.workerpool`). Sources: ISO 32000-2; Tika's
PDFParser.
"""

from __future__ import annotations

import ctypes
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, Final

import pypdfium2.raw as pdfium

from minutch.cycle.parse.dispatch import ParseTimeout
from minutch.errors import ParseError

from ..lib_xml.reading import local_name, namespace, parse_xml, text_of
from .package import RESERVATION, Document

# Gives a PDF that was cut off a new end: PDFium finds objects without their cross references, but
# not where the document begins.
#
#     objects in streams     as objects of their own
#     a catalog, its pages   if both are there; else pages in the order of the file, under a new one
#     trailer                names the catalog
#
# Pure: no I/O. Sources: ISO 32000-2, 7.5.7 and 7.7; PDFBox's BruteForceParser.

_OBJECT: Final = re.compile(rb"(?<!\d)(\d{1,8})[ \r\n\t]+\d{1,5}[ \r\n\t]+obj\b")
_STREAM: Final = re.compile(rb"stream\r?\n")
_PACKED: Final = re.compile(rb"/Type\s*/ObjStm\b")
_FIRST: Final = re.compile(rb"/First\s+(\d{1,8})\b")
_PAGE: Final = re.compile(rb"/Type\s*/Page\b")
_PAGES: Final = re.compile(rb"/Pages\s+(\d{1,8})\s+\d{1,5}\s+R\b")
_CATALOG: Final = re.compile(rb"/Type\s*/Catalog\b")
_HEAD: Final = 4096
"""Bytes of an object that are looked at."""
_MOST_OBJECTS: Final = 200_000
_MOST_INFLATED: Final = 32 << 20
"""Unpacked bytes of streams of objects."""
_MOST_PAGES: Final = 20_000
_MOST_LINKS: Final = 20_000
_MOST_ENTRIES: Final = 10_000
"""Of an outline, which may have no end."""
_XMP: Final = re.compile(rb"/Subtype\s*/XML\b")
_TDM: Final = "http://www.w3.org/ns/tdmrep/"
_RESOURCE: Final = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}resource"
_MOST_NOTES: Final = 1_000
"""Annotations of a page that are looked at."""
_MOST_XMP: Final = 100
"""Streams of XMP: pictures have their own."""
_MOST_BYTES: Final = 1 << 22
"""Of a single string of PDFium's."""
_FAILURES: Final = {
    3: "it is damaged, or no PDF",
    4: "a password is needed",
    5: "it is encrypted in a way that is not known",
}
_INFO: Final = {
    "Title": ("dc:title",),
    "Author": ("dc:creator",),
    "Subject": ("dc:subject",),
    "Keywords": ("meta:keyword",),
    "Creator": ("xmp:CreatorTool",),
    "Producer": ("pdf:producer", "pdf:docinfo:producer"),
}
_DATES: Final = {"CreationDate": "dcterms:created", "ModDate": "dcterms:modified"}
_BREAK: Final = re.compile("(\\w*)\ufffe(\\w*)")
"""PDFium's mark for a hyphen at the end of a line, which it has joined with the next."""
_WORD: Final = re.compile(r"\w+")
_COMPOUND: Final = re.compile(r"(?<!\w)(?=(\w+-\w+))")
_LETTERS: Final = {
    **{code: None for code in range(32) if chr(code) not in "\t\n\r\f"},
    0xAD: None,
    0xFFFF: None,
    **dict(zip(range(0xFB00, 0xFB07), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)),
}
"""Glyphs of unknown meaning go, ligatures are what they stand for."""


def repaired(data: bytes) -> bytes | None:
    """Returns the file with a new end; None if it has no page."""
    heads: dict[int, bytes] = {}
    unpacked: dict[int, bytes] = {}
    left = _MOST_INFLATED
    for match in _OBJECT.finditer(data):
        if len(heads) >= _MOST_OBJECTS:
            break
        head = data[match.end() : match.end() + _HEAD].partition(b"endobj")[0]
        heads[int(match[1])] = head.partition(b"stream")[0]
        if left > 0 and _PACKED.search(heads[int(match[1])]):
            for number, body in _packed(data, match.end(), head, left):
                left -= len(body)
                heads[number] = body[:_HEAD]
                unpacked[number] = body
    added = [b"\n%d 0 obj\n%b\nendobj" % entry for entry in unpacked.items()]
    pages = [number for number, head in heads.items() if _PAGE.search(head)]
    if not pages:
        return None
    root = _catalog(heads)
    if not root:
        root = max(heads) + 1
        kids = b" ".join(b"%d 0 R" % number for number in pages)
        added += [
            b"\n%d 0 obj\n<</Type/Catalog/Pages %d 0 R>>\nendobj" % (root, root + 1),
            b"\n%d 0 obj\n<</Type/Pages/Count %d/Kids[%b]>>\nendobj" % (root + 1, len(pages), kids),
        ]
    size = max(heads) + 3
    return b"%b%b\ntrailer\n<</Root %d 0 R/Size %d>>\nstartxref\n0\n%%%%EOF\n" % (
        _closed(data),
        b"".join(added),
        root,
        size,
    )


def _closed(data: bytes) -> bytes:
    """Returns the file with its last object closed if that is a stream, else without it."""
    whole = data.rfind(b"endobj") + len(b"endobj")
    last = _OBJECT.search(data, whole)
    if last is None:
        return data[:whole]
    head = data[last.end() : last.end() + _HEAD]
    if _STREAM.search(head) and not _PACKED.search(head):
        return data + b"\nendstream\nendobj"
    return data[:whole]


def _packed(data: bytes, at: int, head: bytes, most: int) -> Iterator[tuple[int, bytes]]:
    """Yields numbers and bodies of the objects in a stream, as far as it goes."""
    start, first = _STREAM.search(data, at, at + _HEAD), _FIRST.search(head)
    if start is None or first is None or b"/FlateDecode" not in head:
        return
    end = data.find(b"endstream", start.end())
    unpacker, body = zlib.decompressobj(), b""
    with suppress(zlib.error):
        body = unpacker.decompress(data[start.end() : end if end >= 0 else None], most)
    offset = int(first[1])
    numbers = [int(word) for word in body[:offset].split() if word.isdigit() and len(word) < 9]
    pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
    ends = [place for _, place in pairs[1:]]
    if unpacker.eof:
        ends.append(len(body) - offset)  # else the last is cut off, too
    for (number, place), until in zip(pairs, ends, strict=False):
        part = body[offset + place : offset + until]
        if len(part) == until - place:
            yield number, part


def _catalog(heads: dict[int, bytes]) -> int:
    """Returns the number of the last catalog whose pages are there; 0 if there is none."""
    for number, head in reversed(heads.items()):
        pages = _PAGES.search(head) if _CATALOG.search(head) else None
        if pages and b"/Kids" in heads.get(int(pages[1]), b""):
            return number
    return 0


# PDFium takes the measures of a font that a PDF names but does not carry from this machine's fonts:
# the text would have other blanks where other fonts are installed. An empty list: there are none.
_NO_FONTS: Final = (ctypes.POINTER(ctypes.c_char) * 1)()
pdfium.FPDF_DestroyLibrary()
pdfium.FPDF_InitLibraryWithConfig(pdfium.FPDF_LIBRARY_CONFIG(version=2, m_pUserFontPaths=_NO_FONTS))


def read_pdf(data: bytes, found: Document) -> None:
    """Adds what a PDF has. Raises ParseError if it can't be opened."""
    with _opened(data) as document:
        for tag, names in _INFO.items():
            value = _wide(pdfium.FPDF_GetMetaText, document, tag.encode())
            for name in names:
                found.describe(name, value)
        for tag, name in _DATES.items():
            found.date(name, _wide(pdfium.FPDF_GetMetaText, document, tag.encode()))
        found.title = found.metadata.get("dc:title") or ""
        found.describe("dc:language", _wide(pdfium.FPDFCatalog_GetLanguage, document))
        version = ctypes.c_int()
        if pdfium.FPDF_GetFileVersion(document, ctypes.byref(version)):
            found.describe("pdf:PDFVersion", f"{version.value // 10}.{version.value % 10}")
        count = pdfium.FPDF_GetPageCount(document)
        found.describe("xmpTPg:NPages", str(count))
        if count > _MOST_PAGES:
            found.missing.append(f"more than {_MOST_PAGES} of {count} pages")
        number = 0
        try:
            for number in range(min(count, _MOST_PAGES)):
                _page(document, number, found)
        except ParseTimeout:
            found.missing.append(f"pages from {number + 1} of {count} on")
            raise
        finally:
            found.texts[:] = [_joined("\n".join(found.texts))]
        found.texts += _outline(document, found)
    _reserve(data, found)


def _reserve(data: bytes, found: Document) -> None:
    """Adds what XMP says by the TDM Reservation Protocol; PDFium does not read XMP."""
    for match in islice(_XMP.finditer(data), _MOST_XMP):
        start = _STREAM.search(data, match.end(), match.end() + _HEAD)
        end = data.find(b"endstream", match.end())
        if start is None or end < start.end():
            continue
        body = data[start.end() : end]
        if b"/FlateDecode" in data[data.rfind(b"obj", 0, match.start()) + 1 : start.start()]:
            with suppress(zlib.error):
                body = zlib.decompressobj().decompress(body, _MOST_BYTES)
        if _TDM.encode() not in body or len(body) > _MOST_BYTES:
            continue
        with suppress(ParseError):
            root = parse_xml(body)
            values = {
                f"{namespace(one)} {local_name(one)}": text_of(one) or one.get(_RESOURCE, "")
                for one in root.iter("*")
            }
            for one in root.iter("*"):
                values |= {str(name)[1:].replace("}", " "): str(x) for name, x in one.items()}
            for name in RESERVATION:
                found.describe(name, values.get(f"{_TDM} {name.removeprefix('tdm:')}", ""))


def attachments(data: bytes, most: int) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files that a PDF carries, by name; larger ones than `most` bytes
    are left out. Raises ParseError if it can't be opened.
    """
    with _opened(data) as document:
        count = min(pdfium.FPDFDoc_GetAttachmentCount(document), _MOST_ENTRIES)
        files = [pdfium.FPDFDoc_GetAttachment(document, number) for number in range(count)]
        named = [(_wide(pdfium.FPDFAttachment_GetName, file), file) for file in files if file]
        for name, file in sorted(named, key=lambda entry: entry[0]):
            size = ctypes.c_ulong()
            known = pdfium.FPDFAttachment_GetFile(file, None, 0, ctypes.byref(size))
            if known and size.value <= most:
                buffer = ctypes.create_string_buffer(size.value)
                if pdfium.FPDFAttachment_GetFile(file, buffer, size.value, ctypes.byref(size)):
                    yield name, buffer.raw


@contextmanager
def _opened(data: bytes) -> Iterator[Any]:
    document = pdfium.FPDF_LoadMemDocument64(data, len(data), None)
    code = 0 if document else pdfium.FPDF_GetLastError()
    if code == pdfium.FPDF_ERR_FORMAT and (mended := repaired(data)):
        data = mended
        document = pdfium.FPDF_LoadMemDocument64(data, len(data), None)
    if not document:
        reason = _FAILURES.get(code, "it can't be opened")
        raise ParseError(f"not a PDF that can be read: {reason}")
    try:
        yield document
    finally:
        pdfium.FPDF_CloseDocument(document)


def _page(document: Any, number: int, found: Document) -> None:
    page = pdfium.FPDF_LoadPage(document, number)
    if not page:
        found.missing.append(f"page {number + 1} can't be read")
        return
    text = None
    try:
        text = pdfium.FPDFText_LoadPage(page)
        size = pdfium.FPDFText_CountChars(text) if text else 0
        if size > 0:
            # Twice: a character beyond the first 65,536 takes two.
            buffer = (ctypes.c_ushort * (2 * size + 1))()
            pdfium.FPDFText_GetText(text, 0, 2 * size, buffer)
            found.texts.append(_words(bytes(buffer).decode("utf-16-le", "ignore")))
        if text:
            _links(document, page, text, found)
        found.texts += _notes(page)
    finally:
        if text:
            pdfium.FPDFText_ClosePage(text)
        pdfium.FPDF_ClosePage(page)


def _words(text: str) -> str:
    """Returns a string without what is no letter; hyphens at line ends are still marked."""
    return text.partition("\0")[0].translate(_LETTERS)


def _joined(text: str) -> str:
    """Joins words that are hyphenated at the end of a line: with the hyphen if the text has them so
    elsewhere (dpkg-source) or no small letter follows, without it if the text has the word so. Of
    others decides what most words of the text do: not all documents are hyphenated.
    """
    breaks = {(match[1], match[2]) for match in _BREAK.finditer(text)}
    if not breaks:
        return text
    words, compounds = set(_WORD.findall(text)), set(_COMPOUND.findall(text))
    kept = {(left, right) for left, right in breaks if f"{left}-{right}" in compounds}
    dropped = {(left, right) for left, right in breaks - kept if left + right in words}
    usual = "-" if len(kept) > len(dropped) else ""

    def join(match: re.Match[str]) -> str:
        left, right = parts = match.groups()
        if parts in dropped:
            return left + right
        hyphen = "-" if parts in kept or not right[:1].islower() else usual
        return left + hyphen + right

    return _BREAK.sub(join, text)


def _links(document: Any, page: Any, text: Any, found: Document) -> None:
    """Adds the links of a page. Two annotations for a link that is on two lines are one."""
    at, link, last = ctypes.c_int(), pdfium.FPDF_LINK(), ""
    while pdfium.FPDFLink_Enumerate(page, ctypes.byref(at), ctypes.byref(link)):
        if len(found.links) >= _MOST_LINKS:
            return
        action = pdfium.FPDFLink_GetAction(link)
        target = _narrow(pdfium.FPDFAction_GetURIPath, document, action) if action else ""
        area = pdfium.FS_RECTF()
        anchor = ""
        if target and pdfium.FPDFLink_GetAnnotRect(link, ctypes.byref(area)):
            # Not its edge: a `g` of the line above, which reaches into it, is not of the link. A
            # quarter was tried: it lost `_`, `:` and `-`.
            margin = (area.top - area.bottom) / 10
            edges = (area.left, area.top - margin, area.right, area.bottom + margin)
            size = pdfium.FPDFText_GetBoundedText(text, *edges, None, 0)
            buffer = (ctypes.c_ushort * max(0, min(size, _MOST_BYTES)))()
            pdfium.FPDFText_GetBoundedText(text, *edges, buffer, len(buffer))
            # In a part of the text PDFium marks a hyphen otherwise.
            words = bytes(buffer).decode("utf-16-le", "ignore").replace("\2", "\ufffe")
            anchor = _joined(_words(words))
        if target and target == last:
            anchor = f"{found.links.pop()[1]} {anchor}"
        if target:
            found.links.append((target, " ".join(anchor.split())))
        last = target


def _notes(page: Any) -> Iterator[str]:
    """Yields what annotations say: the contents of notes, the values of fields."""
    silent = (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP, pdfium.FPDF_ANNOT_UNKNOWN)
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), _MOST_NOTES)):
        note = pdfium.FPDFPage_GetAnnot(page, number)
        if not note:
            continue
        try:
            kind = pdfium.FPDFAnnot_GetSubtype(note)
            if kind == pdfium.FPDF_ANNOT_WIDGET:
                if _wide(pdfium.FPDFAnnot_GetStringValue, note, b"FT") != "Btn":
                    yield _words(_wide(pdfium.FPDFAnnot_GetStringValue, note, b"V"))
            elif kind not in silent:
                yield _words(_wide(pdfium.FPDFAnnot_GetStringValue, note, b"Contents"))
        finally:
            pdfium.FPDFPage_CloseAnnot(note)


def _outline(document: Any, found: Document) -> Iterator[str]:
    """Yields the titles of the outline, and adds its links; one that leads back ends there."""
    seen: set[int | None] = {None}
    waiting = [pdfium.FPDFBookmark_GetFirstChild(document, None)]
    while waiting and len(seen) <= _MOST_ENTRIES:
        entry = waiting.pop()
        place = ctypes.cast(entry, ctypes.c_void_p).value
        if place in seen:
            continue
        seen.add(place)
        title = _words(_wide(pdfium.FPDFBookmark_GetTitle, entry))
        yield " ".join(title.split())
        action = pdfium.FPDFBookmark_GetAction(entry)
        if action and (target := _narrow(pdfium.FPDFAction_GetURIPath, document, action)):
            found.links.append((target, title))
        waiting.append(pdfium.FPDFBookmark_GetNextSibling(document, entry))
        waiting.append(pdfium.FPDFBookmark_GetFirstChild(document, entry))


def _wide(call: Callable[..., int], *args: Any) -> str:
    """Returns a string of UTF-16 that PDFium writes into a buffer."""
    return _bytes(call, *args).decode("utf-16-le", "ignore").partition("\0")[0]


def _narrow(call: Callable[..., int], *args: Any) -> str:
    """Returns a string of bytes that PDFium writes into a buffer."""
    value = _bytes(call, *args).partition(b"\0")[0]
    try:
        return value.decode().strip()
    except UnicodeDecodeError:
        return value.decode("latin-1").strip()


def _bytes(call: Callable[..., int], *args: Any) -> bytes:
    size = call(*args, None, 0)
    if not 0 < size <= _MOST_BYTES:
        return b""
    buffer = ctypes.create_string_buffer(size)
    # FPDFAnnot_GetStringValue and its like are typed as pointers to UTF-16 units.
    wanted = (call.argtypes or [None])[len(args)]  # type: ignore[attr-defined]
    call(*args, ctypes.cast(buffer, wanted) if wanted else buffer, size)
    return buffer.raw
