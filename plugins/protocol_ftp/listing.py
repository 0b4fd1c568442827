"""Reads the entries of an FTP directory, and makes a page of links of them.

Names are bytes to FTP; here they are strings with a character for each byte (Latin-1). Servers that
know MLSD (RFC 3659) are asked in its words, with times in UTC; of others the output of LIST is
read, of Unix and of Windows. Source: FtpResponse.list2html, which takes names as they come; here
what would break a link is escaped, and names that no file can have (`../x`) are left out.
"""

from __future__ import annotations

import html
import re
import warnings
from calendar import timegm
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from ..lib_http.dates import format_date

_SAFE_IN_LINKS: Final = "/ !$()*+,-.:;=@[]^_`{|}~\\"
_NO_NAME: Final = re.compile(r"[/\x00-\x1f\x7f]")
_TIME: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})")
_FIELDS: Final = 4
"""Of a line in a list at least; a parser's refusal costs 5 µs."""
_LATEST: Final = 253_402_300_799
"""The last second that four digits of a year can tell."""


@dataclass(frozen=True, slots=True)
class FtpEntry:
    """A file or directory; `modified` in milliseconds since the epoch."""

    name: str
    is_dir: bool
    size: int
    modified: int


def parse_time(text: str) -> int | None:
    """Milliseconds since the epoch of RFC 3659's YYYYMMDDHHMMSS; None if it is none."""
    match = _TIME.match(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups())
    if not (
        year and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second <= 60
    ):
        return None
    return timegm((year, month, day, hour, minute, second)) * 1000


def facts(lines: Iterable[str]) -> Iterator[FtpEntry]:
    """Yields the entries in what MLSD gives: `type=file;size=12;modify=20260101120000; name`."""
    for line in lines:
        pairs, _, name = line.partition(" ")
        fact = dict(part.lower().partition("=")[::2] for part in pairs.split(";") if part)
        if fact.get("type") in ("file", "dir") and _is_name(name):
            size = fact.get("size", "0")
            number = int(size) if size.isascii() and size.isdecimal() and len(size) < 19 else 0
            yield FtpEntry(
                name, fact["type"] == "dir", number, parse_time(fact.get("modify", "")) or 0
            )


def listed(lines: Iterable[str]) -> Iterator[FtpEntry]:
    """Yields the entries in what LIST gives; lines that are none are skipped, links among them."""
    with warnings.catch_warnings(
        action="ignore"
    ):  # of a change of encodings that are not used here
        from ftputil.error import FTPIOError, ParserError
        from ftputil.stat import MSParser, UnixParser

    parsers = [UnixParser(), MSParser()]
    for line in lines:
        if len(line.split(None, _FIELDS)) < _FIELDS:
            continue
        for parser in parsers:
            try:
                found = parser.parse_line(line)
            except (ParserError, FTPIOError, ValueError, OverflowError, IndexError):
                continue
            kind = (found.st_mode or 0) & 0o170000
            name = found._st_name  # noqa: SLF001 - ftputil has no public name for it
            if kind in (0o100000, 0o040000) and _is_name(name):
                seconds = found.st_mtime or 0
                modified = int(seconds) * 1000 if 0 < seconds < _LATEST else 0
                yield FtpEntry(name, kind == 0o040000, found.st_size or 0, modified)
            break


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and _NO_NAME.search(name) is None


def page(path: str, entries: Iterable[FtpEntry]) -> bytes:
    """Returns the page of links of a directory; `path` and names with a character for each byte."""
    title = _shown(path)
    lines = [
        f"<html><head><title>Index of {title}</title></head>\n<body><h1>Index of"
        f" {title}</h1><pre>\n"
    ]
    if path != "/":
        lines.append("<a href='../'>../</a>\t-\t-\t-\n")
    for entry in entries:
        slash, size = ("/", "-") if entry.is_dir else ("", str(entry.size))
        link = quote(entry.name.encode("latin-1", "replace"), safe=_SAFE_IN_LINKS)
        if ":" in link:  # not to be read as a scheme
            link = f"./{link}"
        anchor = f"<a href='{link}{slash}'>{_shown(entry.name)}{slash}</a>"
        lines.append(f"{anchor}\t{format_date(entry.modified)}\t{size}\n")
    lines.append("</pre></body></html>\n")
    return "".join(lines).encode("utf-8")


def _shown(name: str) -> str:
    return html.escape(name.encode("latin-1", "replace").decode("utf-8", "replace"), quote=False)
