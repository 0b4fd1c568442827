"""robots.txt as written: lines, directives and groups (RFC 9309, section 2.2), read as forgivingly
as crawlers do.

    file   = *( group | sitemap | anything else )
    group  = 1*( "user-agent" ":" name ) *( ( "allow" | "disallow" ) ":" path | "crawl-delay" ":"
           seconds | … )
    line   = key ( [ blanks ] ":" [ blanks ] | blanks ) value [ "#" comment ]

Keys are read without case and with the usual misspellings; a colon may be missing. Lines end at CR,
LF, NEL, LS or PS. Bytes are UTF-8 unless a byte order mark says UTF-16; others stand for their
escapes, as URLs have them. Those after a limit don't count, nor does the line that it cuts (half a
path would forbid more than its owner wrote), nor the rest of a line that is longer than 16,663
characters. An HTML page in place of the file is recognized; if it contains `User-agent:`, its lines
are read without tags.

Source: RFC 9309; SimpleRobotRulesParser of crawler-commons 1.6, which Nutch uses, where the RFC
leaves room (typing errors, HTML, which Crawl-delay counts); google/robotstxt for the line length
and a mutilated byte order mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from minutch.mediatypes import essence

MAX_BYTES = 500 * 1024
"""The least that a crawler has to read by RFC 9309, section 2.5."""
MAX_LINE = 2083 * 8 - 1

_SPELLINGS = {
    "user-agent": "user-agent useragent useg-agent ser-agent users-agent user-agnet user-agents",
    "disallow": (
        "disallow disallows desallow dissallow dissalow disalow "
        "dssalow dsallow diasllow disallaw diallow disllow"
    ),
    "allow": "allow",
    "crawl-delay": "crawl-delay clawl-delay craw-delay crawl-deley",
    "sitemap": "sitemap sitemaps site-map",
    "content-signal": "content-signal content-signals",
    "http": "http https",
}
_KEYS = {spelling: key for key, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_KEYS |= {"user agent": "user-agent", "crawl delay": "crawl-delay"}
_LINE = re.compile(
    rf"({'|'.join(sorted(map(re.escape, _KEYS), key=len, reverse=True))})(?:[ \t]*:|[ \t]+)["
    r" \t]*(.*)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_BLANK = "".join(map(chr, range(0x21)))
_TAG = re.compile("<[^>]+>")
_HTML = re.compile(r"<(?:html|head|body)\s*>", re.IGNORECASE | re.ASCII)
_AGENT_LINE = re.compile("user-agent:", re.IGNORECASE | re.ASCII)
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_WHOLE_SECONDS = re.compile(r"[+-]?[0-9]+")
_SECONDS = re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_MAX_INT = 0x7FFFFFFF
_MOST_DIGITS = 4000
"""Of a number, fewer than Python reads at once; more don't make it shorter than any limit."""


class RuleLine(NamedTuple):
    """An Allow or Disallow with its path as written, and the number of its line, from 1."""

    path: str
    allow: bool
    line: int


@dataclass(slots=True)
class Group:
    """Agents (in lower case) and what holds for them; a delay (ms) is kept with the number of
    agents before it.
    """

    agents: list[str] = field(default_factory=list)
    rules: list[RuleLine] = field(default_factory=list)
    delays: list[tuple[int, int | None]] = field(default_factory=list)
    signals: dict[str, str] = field(default_factory=dict)
    closed: bool = False

    def delay_for(self, index: int) -> int | None:
        """Returns the first Crawl-delay after the agent at `index`, in milliseconds; None if there
        is none.
        """
        return next((delay for count, delay in self.delays if count > index), None)


@dataclass(slots=True)
class RobotsFile:
    """A whole file; paths and sitemaps are as written."""

    groups: list[Group] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)


def whole_lines(content: bytes) -> bytes:
    """Returns a file that was cut off, without its last line, which may be half of one."""
    return content[: max(content.rfind(b"\n"), content.rfind(b"\r")) + 1]


def read_robots(
    content: bytes, content_type: str = "", limit: int = MAX_BYTES
) -> RobotsFile | None:
    """Parses up to `limit` bytes of a file; None if it is empty or an HTML page without rules."""
    if len(content) > limit:
        content = whole_lines(content[:limit])
    if not content:
        return None
    text = _NOT_UTF8.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", _decode(content))
    is_html = essence(content_type) == "text/html" or _HTML.search(text) is not None
    if is_html and _AGENT_LINE.search(text) is None:
        return None
    result = RobotsFile()
    for number, line in enumerate(_LINE_END.split(text), 1):
        if line:
            _read_line(result, _TAG.sub("", line) if is_html else line, number)
    return result


def line_of(content: bytes, number: int) -> str:
    """Returns a line of a file as its owner wrote it; empty where there is none of that number
    (from 1).
    """
    lines = _LINE_END.split(_NOT_UTF8.sub("\ufffd", _decode(content)))
    return lines[number - 1].strip(_BLANK) if 0 < number <= len(lines) else ""


def _decode(content: bytes) -> str:
    """Returns the text of a file; bytes that are not UTF-8 are surrogates."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            errors = "surrogateescape" if encoding == "utf-8" else "replace"
            return content[len(mark) :].decode(encoding, errors)
    partial = next((n for n in (2, 1) if content.startswith(_MARKS[0][0][:n])), 0)
    return content[partial:].decode("utf-8", "surrogateescape")


def _read_line(robots: RobotsFile, line: str, number: int) -> None:
    line = line[:MAX_LINE].partition("#")[0].strip(_BLANK)
    written, colon, value = line.partition(":")
    key = _KEYS.get(written.rstrip(" \t").lower()) if colon else None
    if key is None:
        match = _LINE.match(line)
        if match is None:
            return
        written, value = match.groups()
        key = _KEYS[written.lower()]
    value = value.strip(_BLANK)
    if key == "http":
        if "sitemap" in value:
            robots.sitemaps.append(f"{written.lower()}:{value}")
    elif key == "sitemap":
        robots.sitemaps.append(value)
    elif key == "user-agent":
        _add_agent(robots, value.lower())
    elif robots.groups:
        _READERS[key](robots.groups[-1], value, number)


def _add_agent(robots: RobotsFile, name: str) -> None:
    """An agent after a rule begins a new group; other directives don't."""
    if not robots.groups or robots.groups[-1].closed:
        robots.groups.append(Group())
    if name:
        robots.groups[-1].agents.append(name)


def _add_allow(group: Group, path: str, line: int) -> None:
    group.closed = True
    if path:
        group.rules.append(RuleLine(path, True, line))


def _add_disallow(group: Group, path: str, line: int) -> None:
    group.closed = True
    if path:
        group.rules.append(RuleLine(path, False, line))


def _add_delay(group: Group, value: str, line: int) -> None:
    group.delays.append((len(group.agents), _milliseconds(value)))


def _milliseconds(text: str) -> int | None:
    """Whole seconds, or a decimal fraction, no more than an int of Java's; None for anything else
    and for negative numbers.
    """
    if _WHOLE_SECONDS.fullmatch(text) is not None:
        seconds: float = int(text[:_MOST_DIGITS])
    elif _SECONDS.fullmatch(text) is not None:
        seconds = float(text.rstrip("fFdD"))
    else:
        return None
    return int(min(seconds, _MAX_INT) * 1000 + 0.5) if seconds >= 0 else None


def _add_signal(group: Group, value: str, line: int) -> None:
    """`search=yes, ai-train=no`: the last value for each use counts."""
    for part in value.split(","):
        name, equals, answer = part.partition("=")
        if equals:
            group.signals[name.strip().lower()] = answer.strip().lower()


_READERS = {
    "allow": _add_allow,
    "disallow": _add_disallow,
    "crawl-delay": _add_delay,
    "content-signal": _add_signal,
}
