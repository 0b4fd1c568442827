"""robots.txt as written (RFC 9309, section 2.2), read as forgivingly as crawlers do; and its rules
in few bytes, with the one that decides about a path.

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

    plain       sorted, some in one string, each with the number of the longest one that it starts
                with: from the last one before a path that leads to all that the path starts with
    wildcards   strings, the most specific first, taken apart at their stars as they are compared

How often wildcards are compared with one path is bounded (`MOST_COMPARED`): a path that needs more
is not allowed, as rules that were not looked at may forbid it. A `$` that ends a rule is a
character like others: paths are looked up with one behind them.

Source: RFC 9309; SimpleRobotRulesParser of crawler-commons 1.6, which Nutch uses, where the RFC
leaves room (typing errors, HTML, which Crawl-delay counts); google/robotstxt for the line length
and a mutilated byte order mark.
"""

from __future__ import annotations

import re
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

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
    "content-usage": "content-usage",
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
_INDEX: Final = re.compile(r"index\.html?$")
_STARS: Final = re.compile(r"\*{2,}")
_NONE: Final = -1
_TYPES: Final = (("B", 1 << 8), ("H", 1 << 16), ("I", 1 << 32))
_BLOCK: Final = 8
"""Rules whose paths are one string."""
_END: Final = "\n"
"""Behind each path but the last of a block; less than any character of a path (`normal_rule`)."""
_BEHIND: Final = "$\v"
"""Behind a path that is looked up: what would be the end of a rule, and then more than a rule's."""
MOST_COMPARED: Final = 4_000_000
"""Characters, of a path and of the rules that are compared with it: 25,000 wildcards and a path of
100, or 1,000 and one of 4,000, which take 10 ms. 500 KB of rules without a bound took 150 ms a URL.
"""
TOO_MANY: Final = "(too many wildcards)"
"""In place of the rule that decides about a path that would take more."""
_TOO_MANY: Final = -2
_NO_NAMES: Final[Mapping[int, str]] = {}


class RuleLine(NamedTuple):
    """An Allow or Disallow with its path as written, and the number of its line, from 1."""

    path: str
    allow: bool
    line: int


class UseLine(NamedTuple):
    """A Content-Signal or Content-Usage (`key`, in lower case) as written, and its line, from 1."""

    key: str
    value: str
    line: int

    def signals(self) -> dict[str, str]:
        """Returns what a Content-Signal says: `search=yes, ai-train=no`; the last for a use."""
        parts = [part.partition("=") for part in self.value.lower().split(",")]
        return {name.strip(): answer.strip() for name, equals, answer in parts if equals}


@dataclass(slots=True)
class RobotsGroup:
    """Agents (lower case) and what holds for them; a delay (ms) has the number of those before."""

    agents: list[str] = field(default_factory=list)
    rules: list[RuleLine] = field(default_factory=list)
    delays: list[tuple[int, int | None]] = field(default_factory=list)
    uses: list[UseLine] = field(default_factory=list)
    closed: bool = False

    def delay_for(self, index: int) -> int | None:
        """Returns the first Crawl-delay (ms) after the agent at `index`; None if there is none."""
        return next((delay for count, delay in self.delays if count > index), None)


@dataclass(slots=True)
class RobotsFile:
    """A whole file; paths and sitemaps are as written. What stands above the first group has no
    agents, and of it only `uses` mean something.
    """

    groups: list[RobotsGroup] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    above: RobotsGroup = field(default_factory=RobotsGroup)


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
    text = _NOT_UTF8.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", _decode(content))  # U+DCxx
    is_html = essence(content_type) == "text/html" or _HTML.search(text) is not None
    if is_html and _AGENT_LINE.search(text) is None:
        return None
    result = RobotsFile()
    for number, line in enumerate(_LINE_END.split(text), 1):
        if line:
            _read_line(result, _TAG.sub("", line) if is_html else line, number)
    return result


def line_of(content: bytes, number: int) -> str:
    """Returns a line of a file (counted from 1) as its owner wrote it; empty if there is none."""
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
    line = line[:MAX_LINE].partition("#")[0].strip(_BLANK)  # cut first: the rest may be megabytes
    written, colon, value = line.partition(":")
    key = _KEYS.get(written.rstrip(" \t").lower()) if colon else None  # most lines
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
        # An agent after a rule begins a new group; other directives don't.
        name = value.lower()
        if not robots.groups or robots.groups[-1].closed:
            robots.groups.append(RobotsGroup())
        if name:
            robots.groups[-1].agents.append(name)
    else:
        _READERS[key](robots.groups[-1] if robots.groups else robots.above, value, number)


def _add_allow(group: RobotsGroup, path: str, line: int) -> None:
    group.closed = True
    if path:
        group.rules.append(RuleLine(path, True, line))


def _add_disallow(group: RobotsGroup, path: str, line: int) -> None:
    group.closed = True
    if path:
        group.rules.append(RuleLine(path, False, line))


def _add_delay(group: RobotsGroup, value: str, line: int) -> None:
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


def _add_signal(group: RobotsGroup, value: str, line: int) -> None:
    group.uses.append(UseLine("content-signal", value, line))


def _add_usage(group: RobotsGroup, value: str, line: int) -> None:
    group.closed = True  # it is a rule (draft-ietf-aipref-attach, 3)
    group.uses.append(UseLine("content-usage", value, line))


_READERS = {
    "allow": _add_allow,
    "disallow": _add_disallow,
    "crawl-delay": _add_delay,
    "content-signal": _add_signal,
    "content-usage": _add_usage,
}


@dataclass(frozen=True, slots=True)
class PathRule:
    """A rule with its path in normal form, and the line of the file that has it first (0: none)."""

    path: str
    allow: bool
    line: int = field(default=0, compare=False)


class _Rules:
    """What rules say, and where they stand; by number."""

    __slots__ = ("_lines", "_written", "allow", "sizes")

    def __init__(self, rules: Sequence[tuple[str, PathRule]], paths: Iterable[str]) -> None:
        """`rules` come by the path that counts, which need not be written so in `paths`."""
        self.allow = bytes(rule.allow for _, rule in rules)
        self.sizes = _numbers([len(path) for path, _ in rules])
        self._lines = _numbers([rule.line for _, rule in rules])
        self._written = {
            number: rule.path
            for number, (path, (_, rule)) in enumerate(zip(paths, rules, strict=True))
            if path != rule.path
        } or _NO_NAMES

    def rule(self, number: int, path: str) -> PathRule:
        """Returns a rule as the file has it."""
        written = self._written.get(number, path)
        return PathRule(written, bool(self.allow[number]), self._lines[number])

    @property
    def cost(self) -> int:
        names = self._written
        own = 0 if names is _NO_NAMES else _bytes_of(names, *names.values())
        return own + _bytes_of(self, self.allow, self.sizes, self._lines)


class _Plain(_Rules):
    """The rules without a star, in the order of their paths."""

    __slots__ = ("_above", "_blocks")

    def __init__(self, rules: Sequence[tuple[str, PathRule]]) -> None:
        paths = [path for path, _ in rules]
        super().__init__(rules, paths)
        self._blocks = tuple(
            _END.join(paths[start : start + _BLOCK]) for start in range(0, len(paths), _BLOCK)
        )
        self._above = _numbers(_longest_above(paths))
        """Of each the number of the longest one that it starts with, and 1; 0 if there is none."""

    def path(self, number: int) -> str:
        """Returns the path of a rule."""
        return self._blocks[number // _BLOCK].split(_END)[number % _BLOCK]

    def longest(self, path: str) -> int:
        """Returns the number of the longest rule that a path starts with; -1 if there is none."""
        text = path + _BEHIND
        block = bisect_right(self._blocks, text) - 1  # the last block that may begin the path
        if block < 0:
            return _NONE
        paths = self._blocks[block].split(_END)
        first = block * _BLOCK
        number = first + bisect_right(paths, text) - 1
        while number >= first:
            if text.startswith(paths[number - first]):
                return number
            number = self._above[number] - 1
        while number >= 0 and not text.startswith(self.path(number)):
            number = self._above[number] - 1
        return number

    @property
    def cost(self) -> int:
        return super().cost + _bytes_of(self._blocks, *self._blocks, self._above)


class _Wild(_Rules):
    """The rules with stars, the most specific first: what is before the first star, and behind."""

    __slots__ = ("_firsts", "_rests", "_simple")

    def __init__(self, rules: Sequence[tuple[str, PathRule]]) -> None:
        paths = [_STARS.sub("*", path) for path, _ in rules]
        super().__init__(rules, paths)
        parts = [path.partition("*") for path in paths]
        shared: dict[str, str] = {}
        self._firsts = tuple(shared.setdefault(first, first) for first, _, _ in parts)
        self._rests = tuple(rest for _, _, rest in parts)
        self._simple = bytes("*" not in rest and rest[-1:] != "$" for rest in self._rests)

    def path(self, number: int) -> str:
        """Returns the path of a rule."""
        return f"{self._firsts[number]}*{self._rests[number]}"

    def first(self, path: str, least: int) -> int:
        """Returns the number of the first rule of at least so many characters that a path matches;
        -1 if there is none, -2 if that is not found out by MOST_COMPARED.
        """
        sizes, simple, left = self.sizes, self._simple, MOST_COMPARED
        for number, (first, rest) in enumerate(zip(self._firsts, self._rests, strict=True)):
            if sizes[number] < least:
                break
            if path.startswith(first):
                left -= len(path) + len(rest)
                if left < 0:
                    return _TOO_MANY
                if rest in path[len(first) :] if simple[number] else _matches(first, rest, path):
                    return number
        return _NONE

    @property
    def cost(self) -> int:
        texts = *set(self._firsts), *self._rests
        return super().cost + _bytes_of(self._firsts, self._rests, self._simple, *texts)


class RuleTable:
    """The rules of one crawler on one host."""

    __slots__ = ("_plain", "_wild")

    def __init__(self, rules: Iterable[PathRule]) -> None:
        """Of two rules with the same path one that allows counts, else the one before."""
        plain: list[tuple[str, bool, int, PathRule]] = []
        wild: list[tuple[str, PathRule]] = []
        for path, rule in _with_folders(rules):
            if "*" in path:
                wild.append((path, rule))
            else:
                plain.append((path, rule.allow, -len(plain), rule))
        plain.sort(key=lambda entry: entry[:3])
        wild.sort(key=lambda entry: (-len(entry[0]), not entry[1].allow))
        self._plain = _Plain([(path, rule) for path, *_, rule in plain])
        self._wild = _Wild(wild) if wild else None

    def __iter__(self) -> Iterator[PathRule]:
        """All rules, each once, in no order that means anything."""
        rules = (
            part.rule(number, part.path(number))
            for part in (self._plain, self._wild)
            if part is not None
            for number in range(len(part.allow))
        )
        return iter(dict.fromkeys(rules))

    def allows(self, path: str) -> bool:
        """Returns whether the rule that decides about a path allows it; True if there is none."""
        plain, wild = self._plain, self._wild
        number = plain.longest(path)
        allowed = number < 0 or plain.allow[number] == 1
        if wild is None:
            return allowed
        least = 0 if number < 0 else plain.sizes[number] + allowed
        other = wild.first(path, least)
        return allowed if other == _NONE else other >= 0 and wild.allow[other] == 1

    def deciding(self, path: str) -> PathRule | None:
        """Returns the rule that decides about a path, None if there is none."""
        plain, wild = self._plain, self._wild
        number = plain.longest(path)
        found = None if number < 0 else plain.rule(number, plain.path(number))
        size = 0 if found is None else plain.sizes[number]
        other = _NONE if wild is None else wild.first(path, size)
        if other == _TOO_MANY:
            return PathRule(TOO_MANY, allow=False)
        if wild is None or other < 0:
            return found
        rule = wild.rule(other, wild.path(other))
        wins = found is None or wild.sizes[other] > size or rule.allow > found.allow
        return rule if wins else found

    @property
    def cost(self) -> int:
        """Bytes in memory."""
        parts = [part for part in (self._plain, self._wild) if part is not None]
        return sys.getsizeof(self) + sum(part.cost for part in parts)


def _with_folders(rules: Iterable[PathRule]) -> Iterator[tuple[str, PathRule]]:
    """Rules by their paths; an Allow of a folder's index page comes by that of the folder, too."""
    for rule in rules:
        yield rule.path, rule
        if rule.allow and _INDEX.search(rule.path) is not None:
            yield rule.path[: rule.path.index("index.htm")] + "$", rule


def _longest_above(paths: Sequence[str]) -> list[int]:
    """Of each path, in order, the number of the longest other one that it starts with, and 1."""
    above: list[int] = []
    open_ones: list[int] = []
    for number, path in enumerate(paths):
        while open_ones and not (
            path.startswith(paths[open_ones[-1]]) and path != paths[open_ones[-1]]
        ):
            open_ones.pop()
        above.append(open_ones[-1] + 1 if open_ones else 0)
        open_ones.append(number)
    return above


def _numbers(values: Sequence[int]) -> array[int]:
    """As few bytes for each number as the largest one needs."""
    largest = max(values, default=0)
    return array(next(code for code, above in _TYPES if largest < above), values)


def _matches(first: str, rest: str, path: str) -> bool:
    """Looks for each piece between stars at its first place behind the one before; one that has to
    end the path, there. `first` begins the path.
    """
    at = len(first)
    *middle, last = rest.split("*")
    for piece in middle:
        found = path.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    if last.endswith("$"):
        return path.endswith(last[:-1]) and len(path) - len(last) + 1 >= at
    return path.find(last, at) >= 0


def _bytes_of(*parts: object) -> int:
    return sum(map(sys.getsizeof, parts))
