"""Defines a request for libcurl (`Order`), its response (`Reply`), and the answer for a page
(`Answer`) with what it means for that (`status_of`).
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Final

from minutch.clock import http_time
from minutch.hadoop.formats import javahash
from minutch.records import protocol as codes
from minutch.records.metadata import Metadata
from minutch.records.protocol import ProtocolStatus
from minutch.urls.parts import Url
from minutch.urls.resolve import Resolver, WhatwgResolver, resolved_page

# Reads and writes HTTP dates as Nutch does (org.apache.nutch.net.protocols.HttpDateFormat).

_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip
_PATTERN: Final = re.compile(
    r"([A-Z][a-z]{2}), ([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r" ([A-Z]{1,4})"
    r"(?:([+-])([0-9]{1,2})(?::?([0-9]{2}))?)?"
)
_OBSOLETE: Final = re.compile(
    r"[A-Z][a-z]{5,8}, [0-9]{2}-[A-Z][a-z]{2}-[0-9]{2} "  # RFC 850
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9][0-9] "  # asctime
)
_ZONES: Final = {
    "GMT": 0, "UTC": 0, "UT": 0, "Z": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7,
    "MDT": -6, "PST": -8, "PDT": -7,
}  # fmt: skip
"""Hours from UTC."""


def format_date(milliseconds: int) -> str:
    """Formats a time such as `Sun, 06 Nov 1994 08:49:37 GMT`."""
    when = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return (
        f"{_DAYS[when.weekday()]}, {when.day:02} {_MONTHS[when.month - 1]} {when.year:04} "
        f"{when.hour:02}:{when.minute:02}:{when.second:02} GMT"
    )


@lru_cache(maxsize=1024)
def parse_date(text: str) -> int | None:
    """ms since the epoch, None if `text` is not a date of that form (a wrong day of the week
    included), nor of one of the two that servers may still send (RFC 9110, 5.6.7; Nutch reads none
    of them).
    """
    text = text.strip()
    if _OBSOLETE.match(text) is not None:
        return http_time(text)
    match = _PATTERN.fullmatch(text)
    if match is None or match[1] not in _DAYS or match[3] not in _MONTHS or match[8] not in _ZONES:
        return None
    year, month = int(match[4]), _MONTHS.index(match[3]) + 1
    hour, minute, second = int(match[5]), int(match[6]), int(match[7])
    day = int(match[2])
    if not (1 <= day <= 31 and year and hour < 24 and minute < 60 and second < 60):
        return None
    when = date(year, month, min(day, calendar.monthrange(year, month)[1]))
    if when.weekday() != _DAYS.index(match[1]):
        return None
    seconds = calendar.timegm((when.year, when.month, when.day, hour, minute, second)) - _offset(
        match
    )
    return seconds * 1000


def _offset(match: re.Match[str]) -> int:
    """Seconds east of UTC."""
    seconds = _ZONES[match[8]] * 3600
    if match[9]:
        own = int(match[10]) * 3600 + int(match[11] or 0) * 60
        seconds += own if match[9] == "+" else -own
    return seconds


_REDIRECTED: Final = range(300, 400)
_MOST_DIGITS: Final = 18
_UNSAFE: Final = re.compile(
    r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%]"  # RFC 3986, 3.3 and 3.4
)

_REDIRECTS: Final = {
    302: codes.TEMP_MOVED,
    303: codes.TEMP_MOVED,
    304: codes.NOTMODIFIED,
    307: codes.TEMP_MOVED,
}
"""The meaning of status codes from 300 to 399; the others are permanent redirects."""

_ERRORS: Final[Mapping[int, tuple[int, str]]] = {
    400: (codes.GONE, "{url}"),
    401: (codes.ACCESS_DENIED, "Authentication required: {text}"),
    404: (codes.NOTFOUND, "{url}"),
    410: (codes.GONE, "Http: {code} url={url}"),
}


Headers = Sequence[tuple[bytes, bytes]]
"""Names and values in the order in which they are sent."""


@dataclass(slots=True)
class Order:
    """A request: `host` is ASCII, IPv6 without brackets; `headers` are sent in their order."""

    scheme: str
    host: str
    port: int | None
    target: bytes
    headers: Headers
    limit: int = -1
    """Most bytes of content to take; negative for all."""
    proxy: str = ""
    method: str = "GET"
    content: bytes = b""


@dataclass(slots=True)
class Reply:
    """A response: `head` has the last answer's header lines as they came, status line first."""

    code: int
    head: list[bytes]
    body: bytes
    version: bytes = b"HTTP/1.1"
    error: Exception | None = None
    """The httpx exception that ended the content early."""
    truncated: str | None = None
    """Why the content is not whole: `length`, `time`."""
    address: tuple[str, int] | None = None
    """Address and port that answered, where known."""
    tls: tuple[str, str, bool] | None = None
    """Protocol, cipher and whether the certificate was checked, where that is recorded."""
    decoded: bool = False
    """True if the content is decoded already, regardless of its head."""
    damaged: bool = False
    """Its coding broke off, or was broken: the content is what came before."""

    def decode(self, decoded: tuple[bytes, bool]) -> None:
        """Takes what became of the content: data, and whether it is whole."""
        self.body, whole = decoded
        self.decoded, self.damaged = True, not whole


@dataclass(slots=True)
class Answer:
    """A response as it is stored: status code, decoded content and metadata."""

    code: int
    body: bytes
    metadata: Metadata
    whole: bool = True
    """Neither cut off nor damaged."""
    head: Sequence[bytes] = ()
    """The header lines as they came, status line first."""
    base: str | None = None
    """The document's URL, where it is not the one that was asked for."""
    moved: str | None = None
    """URL that the document itself goes to (by a script in a browser)."""

    def header(self, name: str) -> str | None:
        """Returns the value of a header, None if it is not there."""
        return self.metadata.get(name)

    @property
    def location(self) -> str:
        """The target of a redirect; of several Location headers the last counts, as in Nutch.

        Raw UTF-8 in it is read as such, as browsers do; other bytes are escaped one by one.
        """
        text = self.header("Location") or ""
        try:
            return text.encode("latin-1").decode("utf-8")
        except UnicodeError:
            return "".join(c if c.isascii() else f"%{ord(c):02X}" for c in text)


def is_shorter(body: bytes, length: str | None) -> bool:
    """Returns True if content is shorter than its Content-Length."""
    text = (length or "").strip()
    return text.isascii() and text.isdecimal() and int(text[:_MOST_DIGITS]) > len(body)


def request_target(file: str) -> str:
    """Returns a URL's path and query as they stand in a request line (RFC 9112, 3.2.1): characters
    that have no place there are escaped, in UTF-8. Others stay: the filters and normalizers have
    had their say, and a backslash that browsers take for a slash would lead past robots.txt.
    """
    target = file if file.startswith("/") else "/" + file
    return _UNSAFE.sub(_octets, target)


def _octets(found: re.Match[str]) -> str:
    try:
        octets = found[0].encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair
        octets = "\N{REPLACEMENT CHARACTER}".encode()
    return "".join(f"%{octet:02X}" for octet in octets)


def status_of(
    answer: Answer,
    resolver: Callable[[], Resolver | WhatwgResolver],
    url: Url,
    text: str,
    page_codes: frozenset[int],
) -> ProtocolStatus:
    """Returns the ProtocolStatus of an answer; those with one of `page_codes` are pages. Raises
    UrlError for a redirect to what is no URL.
    """
    code = answer.code
    if answer.moved is not None:
        return ProtocolStatus(codes.TEMP_MOVED, [resolved_page(resolver(), answer.moved)])
    if code in page_codes:
        modified = answer.header("Last-Modified")
        return ProtocolStatus(
            codes.SUCCESS, last_modified=(parse_date(modified) if modified else None) or 0
        )
    if code in _REDIRECTED:
        target = resolved_page(resolver(), answer.location)
        return ProtocolStatus(_REDIRECTS.get(code, codes.MOVED), [target])
    if code not in _ERRORS:
        return odd_code(code, url)
    status, template = _ERRORS[code]
    return ProtocolStatus(status, [template.format(code=code, url=url, text=text)])


def odd_code(code: int, url: Url) -> ProtocolStatus:
    """Returns the ProtocolStatus of an answer that says nothing of its page: a failure."""
    return ProtocolStatus(codes.EXCEPTION, [f"Http code={code}, url={url}"])


# Keeps response headers as Nutch does: names are case-insensitive, well-known names are corrected,
# the last value wins, but for lists.
#
# Source: org.apache.nutch.metadata.SpellCheckedMetadata, and the header loop of protocol-http's
# HttpResponse.

WELL_KNOWN: Final = (
    "Transfer-Encoding", "Client-Transfer-Encoding", "Content-Encoding", "Content-Language",
    "Content-Length", "Content-Location", "Content-Disposition", "Content-MD5", "Content-Type",
    "Last-Modified", "Location", "If-Modified-Since", "User-Agent",
)  # fmt: skip
"""org.apache.nutch.metadata.HttpHeaders: the names that misspelled ones are corrected to."""

LISTS: Final = frozenset(("cache-control", "link", "pragma", "vary", "x-robots-tag"))
"""Fields whose lines add up (RFC 9110, 5.3): each may tell something of its own."""

LONGEST_KEPT: Final = 512
"""Bytes of a line, and of all names of an answer, that are kept for the next answer; longer ones
are hardly alike.
"""
_OWN: Final = re.compile(r"_.*_|(?:minutch|nutch|robotstxt|http\.content)\..+", re.DOTALL)
"""Keys, in lower case, by which the crawler notes what it knows of an answer itself."""
_MAX_DISTANCE: Final = 3
_LETTERS_PER_ERROR: Final = 3


class SpellCheckedMetadata(Metadata):
    """Metadata with case-insensitive, spell-checked names; written in the order that Nutch's maps
    give.
    """

    __slots__ = ("_names",)

    def __init__(self) -> None:
        super().__init__()
        self._names: dict[str, str] = {}

    def _known(self, name: str) -> str:
        """Returns the name that is there already, else `name` spelled right."""
        spelled, folded = _kept_fold(name) if len(name) <= LONGEST_KEPT else _fold(name)
        return self._names.get(folded, spelled)

    def _own(self, name: str) -> str:
        """Returns `name` spelled right, by which what a server calls otherwise is found from now
        on: plain Metadata, which the answer is read back as, tell the crawler's keys by their case.
        """
        spelled, folded = _kept_fold(name) if len(name) <= LONGEST_KEPT else _fold(name)
        known = self._names.get(folded, spelled)
        self._names[folded] = spelled
        if known != spelled:
            self[spelled] = self.pop(known)
        return spelled

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        return super().get(self._known(name), default)

    def get_values(self, name: str) -> list[str]:
        return super().get_values(self._known(name))

    def add(self, name: str, value: str) -> None:
        self.setdefault(self._own(name), []).append(value)

    def set(self, name: str, value: str) -> None:
        self[self._own(name)] = [value]

    def put_lines(self, lines: Sequence[bytes], start: int = 0) -> None:
        """Sets the values of header lines from number `start` on; skips one without a colon, or one
        that would pass for a note of the crawler's own.

        Of a field in several lines the last one counts, as in Nutch, but all count of `LISTS`.
        """
        if any(line[:1] in (b" ", b"\t") for line in lines):
            lines = [line.encode("latin-1") for line in unfold(lines)]
        known = self._names.setdefault
        for line in lines[start:]:
            field = _kept_field(line) if len(line) <= LONGEST_KEPT else _field(line)
            if field is not None:
                spelled, folded, value = field
                name = known(folded, spelled)
                if folded in LISTS and name in self:
                    self[name].append(value)
                else:
                    self[name] = [value]

    def java_names(self) -> Iterator[str]:
        """Nutch's TreeMap orders names without case; after one more copy they stand in a
        HashMap.
        """
        names = tuple(self)
        usual = sum(map(len, names)) <= LONGEST_KEPT
        return iter(_kept_java_names(names) if usual else _java_names(names))


def _java_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names in the order of `java_names`."""
    ordered = tuple(sorted(names, key=str.lower))
    return tuple(ordered[i] for i in javahash.names_order(ordered))


_kept_java_names = lru_cache(maxsize=4096)(_java_names)


def _fold(name: str) -> tuple[str, str]:
    """Returns a name with its spelling corrected, and the key to look it up."""
    spelled = spell_check(name)
    return spelled, spelled.lower()


def _letters(name: str) -> str:
    return "".join(c.lower() for c in name if c.isalpha())


_BY_LETTERS: Final = {_letters(name): name for name in WELL_KNOWN}


def spell_check(name: str) -> str:
    """Returns the well-known name that `name` is or nearly is, else `name` itself
    (SpellCheckedMetadata.getNormalizedName).
    """
    letters = _letters(name)
    exact = _BY_LETTERS.get(letters)
    if exact is not None:
        return exact
    limit = min(_MAX_DISTANCE, len(letters) // _LETTERS_PER_ERROR)
    for candidate, known in _BY_LETTERS.items():
        if abs(len(candidate) - len(letters)) < limit and _distance(letters, candidate) < limit:
            return known
    return name


def _distance(first: str, second: str) -> int:
    """Levenshtein's distance."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]


def field_values(lines: Iterable[bytes], name: str) -> list[str]:
    """Returns the values of all header lines of a name (in lower case), in order."""
    start = f"{name}:"
    return [
        line[len(start) :].strip() for line in unfold(lines) if line[: len(start)].lower() == start
    ]


def unfold(lines: Iterable[bytes]) -> Iterator[str]:
    """Header lines with continuation lines joined to the one before, as text (each byte a
    character).
    """
    pending: str | None = None
    for line in lines:
        text = line.decode("latin-1").rstrip("\r\n")
        if pending is not None and text[:1] in (" ", "\t"):
            pending += text[1:]
            continue
        if pending is not None:
            yield pending
        pending = text
    if pending is not None:
        yield pending


def _field(line: bytes) -> tuple[str, str, str] | None:
    """Splits a header line: corrected name, key to look it up, and value; None for a line that is
    skipped.
    """
    name, colon, value = line.decode("latin-1").rstrip("\r\n").partition(":")
    spelled, folded = _fold(name)
    is_skipped = not colon or _OWN.fullmatch(folded) is not None
    return None if is_skipped else (spelled, folded, value.lstrip(" \t"))


_kept_fold = lru_cache(maxsize=4096)(_fold)
_kept_field = lru_cache(maxsize=1024)(_field)
"""A server's answers are much alike, but for lines that are a page's own, such as its ETag: these
fill it, and push out no line that recurs within a hundred answers.
"""
