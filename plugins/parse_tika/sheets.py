"""Reads the workbooks of Office Open XML: sheets in their order, each with its name, cells as they
are shown, headers and footers, comments, text boxes and charts.

    row          a line, its cells with a blank between them
    link         of a cell, or the function HYPERLINK in it, with the cell's text
    comment      its text, without who wrote it

A sheet is read row by row and not held. Sources: ECMA-376, part 1, 18; [MS-XLSX] for threaded
comments; Tika's XSSFExcelExtractorDecorator.
"""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from math import isfinite
from typing import Final, Self

from lxml import etree

from minutch.errors import ParseError

from ..lib_xml.reading import child, children, local_name, text_of
from .ooxml import inside, ordered, outside, read_part, relation_id
from .package import Document, Package

# Decides how a number in a cell is shown: as a date, a percentage, with digits and words. Pure: no
# I/O.
#
#     pattern    sections for positive and negative numbers, zero and text, with `;` between them
#     General    as many digits as a double has that people wrote
#     date       y m d h s AM/PM [h]; those that follow the country are ISO 8601
#     number     0 # ? , . % E+ and literals
#
# Colours, conditions and widths are left out, a fraction is a decimal. Source: ECMA-376, part 1,
# 18.8.30 and 18.8.31.

_BUILT_IN: Final = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm",
    21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)", 41: "#,##0", 42: "$#,##0",
    43: "#,##0.00", 44: "$#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0", 48: "##0.0E+0",
    **dict.fromkeys((14, *range(27, 32), *range(34, 37), *range(50, 59)), "yyyy-mm-dd"),
    **dict.fromkeys((32, 33), "h:mm:ss"),
}  # fmt: skip
"""Patterns of the numbers that need no definition."""
_LONGEST: Final = 255
"""Characters of a pattern, as in Excel."""
_TOKEN: Final = re.compile(
    r'"(?P<quoted>[^"]*)"?|\\(?P<escaped>.)|_.|\*.|\[\$(?P<currency>[^\]-]*)[^\]]*\]'
    r"|\[(?P<elapsed>h+|m+|s+)\]|\[[^\]]*\]|(?P<half>AM/PM|A/P)|(?P<general>General)"
    r"|(?P<power>E[+-][0#?]+)|(?P<date>y+|m+|d+|h+|s+(?:\.0+)?|e+|b+|g+)"
    r"|(?P<digits>[0#?][0#?,]*(?:\.[0#?]*)?|\.[0#?]+)|(?P<percent>%)|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_MONTHS: Final = tuple(month_name)[1:]
_DAYS: Final = tuple(day_name)
_PLAIN: Final = (("general", "General"),)

Tokens = tuple[tuple[str, str], ...]
"""The named groups of a pattern's tokens, with their texts."""
_HEADINGS: Final = (
    "oddHeader", "evenHeader", "firstHeader", "oddFooter", "evenFooter", "firstFooter",
)  # fmt: skip
_CODES: Final = re.compile(r'&(?:"[^"]*"|K[0-9A-F]{6}|[0-9]+|[A-Z&])')
"""Codes of headers and footers: places, fonts, fields."""
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")
_FUNCTION: Final = re.compile(r'\s*HYPERLINK\(\s*"([^"]+)"', re.IGNORECASE)
_TRUTH: Final = {"1": "TRUE", "0": "FALSE"}
MOST_TEXT = 16 << 20
"""Characters of a sheet: a shared string may be long, and stand in every cell."""
_MOST_KEPT: Final = 100_000
"""Cells whose text is kept for links to it."""


@dataclass(frozen=True, slots=True)
class CellFormats:
    """The formats of a workbook: the pattern of each style."""

    patterns: tuple[str, ...]
    is_1904: bool = False
    """Days are counted from 1904, as once on the Macintosh."""

    @classmethod
    def of(cls, styles: etree._Element | None, *, is_1904: bool = False) -> Self:
        """Reads them from xl/styles.xml."""
        if styles is None:
            return cls((), is_1904)
        defined, used = child(styles, "numFmts"), child(styles, "cellXfs")
        known = {str(number): pattern for number, pattern in _BUILT_IN.items()}
        for entry in defined if defined is not None else ():
            known[entry.get("numFmtId", "")] = entry.get("formatCode", "")
        entries = children(used, "xf") if used is not None else ()
        return cls(tuple(known.get(entry.get("numFmtId", ""), "") for entry in entries), is_1904)

    def shown(self, value: str, style: str) -> str:
        """Returns a number as a cell of a style shows it; what is no number, as it is."""
        try:
            number = float(value)
        except ValueError:
            return value
        if not isfinite(number):
            return value
        index = int(style) if style.isascii() and style.isdecimal() and len(style) < 7 else 0
        pattern = self.patterns[index] if index < len(self.patterns) else ""
        if not pattern or pattern == "General":
            return general(number)
        tokens, is_negated = _section(pattern, (number > 0) - (number < 0))
        if any(kind in ("date", "elapsed", "half") for kind, _ in tokens):
            return _date(number, tokens, self.is_1904)
        return _number(abs(number) if is_negated else number, tokens)


@lru_cache(maxsize=1024)
def _section(pattern: str, sign: int) -> tuple[Tokens, bool]:
    """Returns a pattern's part for numbers of a sign, and whether it says they are negative."""
    if len(pattern) > _LONGEST or pattern == "@":
        return _PLAIN, False
    sections: list[list[tuple[str, str]]] = [[]]
    for match in _TOKEN.finditer(pattern):
        kind = match.lastgroup or ""
        if kind == "other" and match[0] == ";":
            sections.append([])
        elif kind:
            sections[-1].append((kind, match[kind]))
    index = {1: 0, -1: 1, 0: 2}[sign]
    if sign and index < len(sections):
        return tuple(sections[index]), sign < 0
    if not sign and len(sections) > 2:
        return tuple(sections[2]), False
    return tuple(sections[0]), False


def _number(number: float, tokens: Tokens) -> str:
    digits = [text for kind, text in tokens if kind == "digits"]
    percent = sum(kind == "percent" for kind, _ in tokens)
    power = next((text for kind, text in tokens if kind == "power"), "")
    is_shown = False
    result = "-" if number < 0 else ""
    for kind, text in tokens:
        if kind == "general" or (kind == "other" and text == "@"):
            result += general(abs(number))
        elif kind == "digits" and not is_shown:
            is_shown = True
            result += _digits(abs(number), digits, percent, power)
        elif kind in ("digits", "power") or (digits and (kind, text) == ("other", "/")):
            continue  # the denominator of a fraction
        else:
            result += text
    return result.strip()


def _digits(number: float, digits: list[str], percent: int, power: str) -> str:
    pattern = digits[0]
    whole, _, behind = pattern.partition(".")
    try:
        value = Decimal(repr(number)) * 100**percent
        if power:
            shown, _, exponent = f"{value:.{len(behind)}E}".partition("E")
            return f"{shown}E{exponent[0]}{exponent[1:].rjust(len(power) - 2, '0')}"
        value /= 1000 ** (len(whole) - len(whole.rstrip(",")))
        if len(digits) > 1:
            return general(float(value))
        rounded = value.quantize(Decimal(1).scaleb(-len(behind)), ROUND_HALF_UP)
    except InvalidOperation:  # more digits than a decimal has
        return general(number)
    text = f"{rounded:,f}" if "," in whole.strip(",") else f"{rounded:f}"
    optional = len(behind) - len(behind.rstrip("#?"))
    before, _, after = text.partition(".")
    for _ in range(optional):
        after = after.removesuffix("0")
    needed = whole.count("0")
    before = before.rjust(needed, "0") if before != "0" or needed else ""
    return f"{before}.{after}" if after else before


def general(number: float) -> str:
    """Returns a number without a format: 15 digits, as Excel keeps them."""
    text = f"{number:.15g}"
    return text.replace("e", "E") if "e" in text else text


def _date(number: float, tokens: Tokens, is_1904: bool) -> str:
    start = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)
    if not is_1904 and number < 60:
        start += timedelta(days=1)  # Excel counts the 29th of February 1900, which never was
    is_fine = any(kind == "date" and ".0" in text for kind, text in tokens)
    seconds = round(number * 86400, 3) if is_fine else round(number * 86400)
    try:
        time = start + timedelta(seconds=seconds)
    except OverflowError:
        return general(number)
    is_half = any(kind == "half" for kind, _ in tokens)
    pieces: list[str] = []
    for at, (kind, text) in enumerate(tokens):
        if kind == "elapsed":
            pieces.append(str(int(seconds // {"h": 3600, "m": 60, "s": 1}[text[0].lower()])))
        elif kind == "half":
            pieces.append("AM" if time.hour < 12 else "PM")
        elif kind == "date":
            pieces.append(_field(time, text.lower(), _is_minute(tokens, at), is_half))
        else:
            pieces.append(text)
    return "".join(pieces).strip()


def _is_minute(tokens: Tokens, at: int) -> bool:
    """Tells whether an `m` behind hours or before seconds is one of minutes."""

    def near(places: range) -> str:
        fields = (tokens[place] for place in places)
        return next((text[0].lower() for kind, text in fields if kind in ("date", "elapsed")), "")

    return near(range(at - 1, -1, -1)) == "h" or near(range(at + 1, len(tokens))) == "s"


def _field(time: datetime, text: str, is_minute: bool, is_half: bool) -> str:
    kind, size = text[0], len(text)
    if kind == "s":
        part = f".{time.microsecond:06}"[: len(text.partition(".")[2]) + 1] if "." in text else ""
        return f"{time.second:0{len(text.partition('.')[0])}}{part}"
    if kind == "h":
        return f"{(time.hour - 1) % 12 + 1 if is_half else time.hour:0{min(size, 2)}}"
    if kind == "m" and is_minute:
        return f"{time.minute:0{min(size, 2)}}"
    if kind == "m":
        name = _MONTHS[time.month - 1]
        return {1: str(time.month), 2: f"{time.month:02}", 3: name[:3], 5: name[0]}.get(size, name)
    if kind == "d":
        name = _DAYS[time.weekday()]
        return {1: str(time.day), 2: f"{time.day:02}", 3: name[:3]}.get(size, name)
    return f"{time.year % 100:02}" if size < 3 and kind == "y" else f"{time.year:04}"


def read_sheets(package: Package, root: etree._Element, name: str, found: Document) -> None:
    """Adds a workbook."""
    relations = package.relations(name)
    sheets = [
        (entry.get("name", ""), target)
        for entry, target in ordered(root.iter("{*}sheet"), relations)
    ]
    if not sheets:
        sheets = [("", part) for part in inside(relations, "worksheet")]
    strings = [
        _string(entry)
        for part in inside(relations, "sharedStrings")
        for entry in package.elements(part, ["si"])
    ]
    styles = next((package.root(part) for part in inside(relations, "styles")), None)
    properties = child(root, "workbookPr")
    is_1904 = properties is not None and properties.get("date1904", "0") in ("1", "true", "on")
    formats = CellFormats.of(styles, is_1904=is_1904)
    for title, part in sheets:
        found.texts.append(title)
        _Sheet(strings, formats, found).read(package, part)


class _Sheet:
    def __init__(self, strings: list[str], formats: CellFormats, found: Document) -> None:
        self._strings, self._formats, self._found = strings, formats, found
        self._shown: dict[str, str] = {}
        self._left = MOST_TEXT

    def read(self, package: Package, name: str) -> None:
        relations = package.relations(name)
        targets = outside(relations)
        for element in package.elements(name, ["row", "hyperlink", *_HEADINGS]):
            tag = local_name(element)
            if tag == "row":
                self._found.texts.append(" ".join(self._cells(element, keep=bool(targets))))
            elif tag == "hyperlink":
                target = targets.get(relation_id(element))
                if target:
                    place = element.get("ref", "").partition(":")[0]
                    words = self._shown.get(place, "") or element.get("display", "")
                    self._found.links.append((target, words))
            else:
                self._found.texts.append(_CODES.sub(" ", element.text or ""))
        # A threaded comment has a plain one beside it that tells old programs to be upgraded.
        comments = inside(relations, "threadedComment") or inside(relations, "comments")
        for part in comments:
            for text in package.elements(part, ["text"]):
                self._found.texts.append(_string(text))
        for drawing in inside(relations, "drawing"):
            read_part(package, drawing, self._found)
            for chart in inside(package.relations(drawing), "chart"):
                read_part(package, chart, self._found)

    def _cells(self, row: etree._Element, *, keep: bool) -> Iterator[str]:
        for cell in row:
            text = self._cell(cell) if isinstance(cell.tag, str) else ""
            if not text:
                continue
            self._left -= len(text)
            if self._left < 0:
                raise ParseError(f"more than {MOST_TEXT} characters in a sheet")
            yield text
            if keep and len(self._shown) < _MOST_KEPT:
                self._shown[cell.get("r", "")] = text

    def _cell(self, cell: etree._Element) -> str:
        kind = cell.get("t", "n")
        value = ""
        for part in cell:
            if not isinstance(part.tag, str):
                continue  # the name of an entity
            tag = part.tag.rpartition("}")[2]
            if tag == "v":
                value = part.text or ""
            elif tag == "is":
                value = _string(part)
            elif tag == "f" and (match := _FUNCTION.match(part.text or "")):
                self._found.links.append((match[1], text_of(child(cell, "v"))))
        if kind == "s":
            return self._strings[int(value)] if _is_index(value, self._strings) else ""
        if kind == "b":
            return _TRUTH.get(value, value)
        if kind == "n":
            return self._formats.shown(value, cell.get("s", "0"))
        return _plain(value)


def _is_index(value: str, strings: list[str]) -> bool:
    return len(value) < 10 and value.isascii() and value.isdecimal() and int(value) < len(strings)


def _string(element: etree._Element) -> str:
    """Returns a string with its runs, without the readings that stand over it."""
    if not len(element):
        return _plain(element.text or "")
    texts = (
        text.text or ""
        for text in element.iter("{*}t")
        if (parent := text.getparent()) is None or local_name(parent) != "rPh"
    )
    return _plain("".join(texts))


def _plain(text: str) -> str:
    """Returns a string in one line, its escapes resolved."""
    if "_x" in text:
        text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return " ".join(text.split())
