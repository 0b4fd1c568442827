"""Reads the office documents of before 2007: .doc, .xls, .ppt, each a compound file with streams.

    WordDocument, 0Table or 1Table   text in pieces: the body, notes, headers, comments, text boxes
    Workbook, Book                   sheets in their order, as cells show them; read by xlrd
    PowerPoint Document              the texts of slides and notes, without those of masters
    \\5SummaryInformation             title, author, dates

Encrypted documents are not read. A damaged .xls may take all the memory that xlrd can get: the
worker's limit makes it that page's failure. Sources: [MS-DOC] 2.4.1, 2.8.35; [MS-PPT] 2.3.1, 2.9;
[MS-OLEPS] 2.21; Tika's OfficeParser.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import xlrd
from xlrd.compdoc import CompDoc, CompDocError

from minutch.charsets import lookup
from minutch.errors import ParseError

from .package import Document
from .sheets import CellFormats

_MOST_TEXT: Final = 16 << 20
"""Characters of a document."""
_MOST_PIECES: Final = 1 << 20
_DEEPEST: Final = 64
"""Containers, and fields, in each other."""
_IS_ENCRYPTED, _IS_TABLE_1 = 0x100, 0x200
_CONTROLS: Final = {
    **dict.fromkeys(range(32), None), 0x07: " ", 0x09: " ", 0x0A: "\n", 0x0B: "\n", 0x0C: "\n",
    0x0D: "\n", 0x1E: "-",
}  # fmt: skip
_FIELD: Final = re.compile("\x13([^\x13\x14\x15]*)(?:\x14([^\x13\x14\x15]*))?\x15")
_LINK: Final = re.compile(r'\s*HYPERLINK\s+(?:\\[a-z]\s+)*"([^"]{1,8192})"', re.IGNORECASE)
_MASTERS: Final = frozenset((0x03F8, 0x0FC9, 0x0FD9))
"""Main master, handout, header and footer: what stands on all slides."""
_CHARACTERS, _BYTES, _STRING, _HYPERLINK = 0x0FA0, 0x0FA8, 0x0FBA, 0x0FD7
_PROPERTIES: Final = {2: "dc:title", 3: "dc:subject", 4: "dc:creator", 5: "meta:keyword"}
_TIMES: Final = {12: "dcterms:created", 13: "dcterms:modified"}


def read_binary_office(data: bytes, found: Document) -> None:
    """Adds what a document has. Raises ParseError."""
    try:
        file = CompDoc(data, logfile=io.StringIO(), ignore_workbook_corruption=True)
        streams = {entry.name: entry.tot_size for entry in file.dirlist if entry.etype == 2}
        if "\5SummaryInformation" in streams:
            _summary(_stream(file, "\5SummaryInformation"), found)
        if "WordDocument" in streams:
            _word(file, found)
        elif streams.keys() & {"Workbook", "Book"}:
            _sheets(data, found)
        elif "PowerPoint Document" in streams:
            _slides(_stream(file, "PowerPoint Document"), 0, found)
        else:
            raise ParseError("not an office document of a kind that is known")
    except ParseError:
        raise
    except MemoryError as error:
        raise ParseError("the file asks for more memory than a worker has") from error
    except (
        CompDocError,
        xlrd.XLRDError,
        struct.error,
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:  # what xlrd raises on damaged files
        raise ParseError(f"the file is damaged: {type(error).__name__}: {error}") from error


def _stream(file: Any, name: str) -> bytes:
    data = file.get_named_stream(name)
    if data is None:
        raise ParseError(f"the file has no stream {name}")
    return bytes(data)


def _word(file: Any, found: Document) -> None:
    main = _stream(file, "WordDocument")
    flags, at, size = *struct.unpack_from("<H", main, 10), *struct.unpack_from("<II", main, 0x1A2)
    if flags & _IS_ENCRYPTED:
        raise ParseError("the document is encrypted")
    table = _stream(file, "1Table" if flags & _IS_TABLE_1 else "0Table")
    pieces = table[at : at + size]
    at = 0
    while pieces[at : at + 1] == b"\1":  # how characters look
        at += 3 + int.from_bytes(pieces[at + 1 : at + 3], "little")
    if pieces[at : at + 1] != b"\2":
        raise ParseError("the document has no table of its pieces")
    (size,) = struct.unpack_from("<I", pieces, at + 1)
    count = min((size - 4) // 12, _MOST_PIECES)
    places = struct.unpack_from(f"<{count + 1}I", pieces, at + 5)
    texts, left = [], _MOST_TEXT
    for number in range(count):
        (where,) = struct.unpack_from("<I", pieces, at + 5 + 4 * (count + 1) + 8 * number + 2)
        length = min(max(places[number + 1] - places[number], 0), left)
        left -= length
        if where & 0x40000000:
            start = (where & 0x3FFFFFFF) // 2
            charset = lookup("windows-1252")
            assert charset is not None
            texts.append(charset.decode(main[start : start + length]))
        else:
            texts.append(main[where : where + 2 * length].decode("utf-16-le", "replace"))
    text = "".join(texts)
    for _ in range(_DEEPEST):  # a field may stand in another: each time round, the innermost go
        text, count = _FIELD.subn(lambda match: _shown(match, found), text)
        if not count:
            break
    found.texts.append(text.replace("\7\7", "\n").translate(_CONTROLS))
    if not left:
        found.missing.append(f"what stands behind {_MOST_TEXT:,} characters")


def _shown(match: re.Match[str], found: Document) -> str:
    """Returns what a field shows, and keeps where it leads."""
    words = match[2] or ""
    if (link := _LINK.match(match[1])) and ":" in link[1]:
        found.links.append((link[1], words.translate(_CONTROLS)))
    return words


def _sheets(data: bytes, found: Document) -> None:
    book = xlrd.open_workbook(
        file_contents=data,
        logfile=io.StringIO(),
        formatting_info=True,
        on_demand=True,
        ragged_rows=True,  # else every row is as long as the longest: gigabytes, of made-up ones
        ignore_workbook_corruption=True,
    )
    patterns = [book.format_map[style.format_key].format_str for style in book.xf_list]
    formats = CellFormats(tuple(patterns), is_1904=bool(book.datemode))
    left = _MOST_TEXT
    for number, name in enumerate(book.sheet_names()):
        found.texts.append(name)
        sheet = book.sheet_by_index(number)
        for row in range(sheet.nrows):
            cells = [text for cell in sheet.row(row) if (text := _cell(cell, formats))]
            left -= sum(map(len, cells))
            if left < 0:
                raise ParseError(f"more than {_MOST_TEXT:,} characters")
            found.texts.append(" ".join(cells))
        for link in sheet.hyperlink_list:
            if link.url_or_path and ":" in (target := str(link.url_or_path)):
                place = (link.frowx, link.fcolx)
                is_there = place[0] < sheet.nrows and place[1] < sheet.row_len(place[0])
                words = _cell(sheet.cell(*place), formats) if is_there else ""
                found.links.append((target, words))
        found.texts += [" ".join(note.text.split()) for note in sheet.cell_note_map.values()]
        book.unload_sheet(number)


def _cell(cell: Any, formats: CellFormats) -> str:
    if cell.ctype in (xlrd.XL_CELL_NUMBER, xlrd.XL_CELL_DATE):
        return formats.shown(repr(float(cell.value)), str(cell.xf_index))
    if cell.ctype == xlrd.XL_CELL_BOOLEAN:
        return "TRUE" if cell.value else "FALSE"
    if cell.ctype == xlrd.XL_CELL_ERROR:
        return str(xlrd.error_text_from_code.get(cell.value, ""))
    return " ".join(str(cell.value).split())


def _records(data: bytes) -> Iterator[tuple[int, bool, bytes]]:
    """Yields kind, whether it has records inside, and content."""
    at = 0
    while at + 8 <= len(data):
        version, kind, size = struct.unpack_from("<HHI", data, at)
        yield kind, version & 15 == 15, data[at + 8 : at + 8 + size]
        at += 8 + size


def _slides(data: bytes, depth: int, found: Document) -> None:
    for kind, has_more, content in _records(data):
        if kind == _HYPERLINK:
            strings = [text for name, _, text in _records(content) if name == _STRING]
            targets = [text.decode("utf-16-le", "replace") for text in strings]
            if targets and ":" in targets[-1]:
                found.links.append((targets[-1], targets[0] if len(targets) > 1 else ""))
        elif kind in (_CHARACTERS, _BYTES):
            text = content.decode("utf-16-le" if kind == _CHARACTERS else "latin-1", "replace")
            if text != "*":  # stands for a number or a date
                found.texts.append(text.translate(_CONTROLS))
        elif has_more and kind not in _MASTERS and depth < _DEEPEST:
            _slides(content, depth + 1, found)


def _summary(data: bytes, found: Document) -> None:
    """Adds the properties of a document."""
    (start,) = struct.unpack_from("<I", data, 44)
    (count,) = struct.unpack_from("<I", data, start + 4)
    places = [struct.unpack_from("<II", data, start + 8 + 8 * n) for n in range(min(count, 100))]
    values: dict[int, bytes | int] = {}
    for name, at in places:
        (kind,) = struct.unpack_from("<I", data, start + at)
        if kind == 2:
            (values[name],) = struct.unpack_from("<H", data, start + at + 4)
        elif kind in (30, 31):
            (size,) = struct.unpack_from("<I", data, start + at + 4)
            size = size if kind == 30 else 2 * size
            values[name] = data[start + at + 8 : start + at + 8 + size]
        elif kind == 64:
            (values[name],) = struct.unpack_from("<Q", data, start + at + 4)
    page = values.get(1)
    charset = lookup("utf-8" if page == 65001 else f"windows-{page!r}") or lookup("windows-1252")
    assert charset is not None
    for name, value in values.items():
        if name in _PROPERTIES and isinstance(value, bytes):
            text = charset.decode(value).partition("\0")[0]
            found.describe(_PROPERTIES[name], text)
            if name == 2:
                found.title = " ".join(text.split())
        elif name in _TIMES and isinstance(value, int) and 0 < value < 1 << 60:
            time = datetime(1601, 1, 1, tzinfo=UTC) + timedelta(microseconds=value // 10)
            found.date(_TIMES[name], time.isoformat())
