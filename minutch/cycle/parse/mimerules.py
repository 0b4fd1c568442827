"""Reads the rules that recognise media types: names, suffixes, XML roots, magic bytes.

Two kinds of rule files fill a `TypeRegistry`: the shipped conf/mime-types.txt, whose notation its
own head explains, and a user's tika-mimetypes.xml in Tika's format (minutch.cycle.parse.mime).
The meaning of the rules is that of Tika 3 (org.apache.tika.mime.MimeTypes, MediaTypeRegistry,
Magic, MagicMatch): magic rules of the highest priority that holds count; a hint replaces a type
only if it is that type or a special case of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import NamedTuple

from minutch.errors import ConfigError

OCTET_STREAM = "application/octet-stream"
TEXT_PLAIN = "text/plain"
XML = "application/xml"
HTML = "text/html"
ZIP = "application/zip"

_REACH = 2048
"""Bytes after the last offset at which a match of a regular expression may begin that it may extend
over.
"""

Test = Callable[[bytes], bool]
"""A question about the first bytes of a page."""

_PART = re.compile(r"(\(\?i\))?(?:(\d+)(?:-(\d+))?:)?(.+)", re.DOTALL)
_FIRST = re.compile(r"(?:\\x[0-9a-fA-F]{2}|[A-Za-z0-9<%])(?![?*+{])")
"""A byte that a regular expression begins with."""
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {"n": b"\n", "r": b"\r", "t": b"\t", "s": b" ", "&": b"&", "\\": b"\\"}
_NAME = re.compile(
    r"\s*([^\x00-\x20\x7f()<>@,;:\\\"/\[\]?=]+)\s*/\s*([^\x00-\x20\x7f()<>@,;:\\\"/\[\]?=]+)\s*(?:$|;.*)",
    re.DOTALL,
)

Need = tuple[int, Sequence[frozenset[int]]]
"""An offset; the bytes of which one must stand there, and those of which one must follow, if
known.
"""


@dataclass(slots=True)
class Magic:
    """The bytes at the start of files of one type; `needs`, if known, tells most other files by two
    bytes.
    """

    priority: int
    name: str
    test: Test
    needs: Need | None = None


class _ByBeginning(NamedTuple):
    """Numbers of magic rules for files that begin with a byte: by the byte that follows, for others
    and for files of one byte. All rules for each page took 31 µs, these 22.
    """

    second: dict[int, list[int]]
    others: list[int]


@dataclass
class TypeRegistry:
    """All types and rules; `prepare` must be called when it is full."""

    parents: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    suffixes: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Whole file names, `README`."""
    roots: dict[tuple[str, str], str] = field(default_factory=dict)
    """Namespace and local name of a root element (either may be empty) → type."""
    interpreted: set[str] = field(default_factory=set)
    magics: list[Magic] = field(default_factory=list)
    _longest_suffix: int = 0
    """Characters: the tails of a name at all of 64,000 dots were 2 GB to hash."""
    _by_first: list[_ByBeginning] = field(default_factory=list)
    _by_later: list[tuple[int, list[list[int]]]] = field(default_factory=list)
    """Numbers of magic rules: by the first two bytes, those that need them or no byte at all; by a
    later one, the others.
    """

    def prepare(self) -> TypeRegistry:
        """Sorts the magic rules by priority (the order within one stays), and by the bytes that
        they need.
        """
        self.magics.sort(key=lambda magic: -magic.priority)
        bound: dict[int, list[list[int]]] = {0: [[] for _ in range(256)]}
        for number, magic in enumerate(self.magics):
            at, (values, *_) = magic.needs or (0, (range(256),))
            numbers = bound.setdefault(at, [[] for _ in range(256)])
            for value in values:
                # In the order of priority, which `by_magic` relies on.
                numbers[value].append(number)
        # Most rules look at the first byte: they are told apart by the second one too.
        self._by_first = [self._by_second(numbers) for numbers in bound.pop(0)]
        self._by_later = list(bound.items())
        self._longest_suffix = max(map(len, self.suffixes), default=0)
        return self

    def _by_second(self, numbers: Sequence[int]) -> _ByBeginning:
        needed = {number: self._second(number) for number in numbers}
        values = {value for needs in needed.values() if needs is not None for value in needs}
        return _ByBeginning(
            {
                value: [n for n, needs in needed.items() if needs is None or value in needs]
                for value in values
            },
            [number for number, needs in needed.items() if needs is None],
        )

    def _second(self, number: int) -> frozenset[int] | None:
        """The bytes of which one must be the second of a file; None if any may."""
        needs = self.magics[number].needs
        return needs[1][1] if needs is not None and needs[0] == 0 and len(needs[1]) > 1 else None

    def canonical(self, name: str) -> str | None:
        """Returns the type's name without parameters, aliases resolved; None if it is not a media
        type at all.
        """
        match = _NAME.match(name)
        if not match:
            return None
        name = f"{match[1]}/{match[2]}".lower()
        return self.aliases.get(name, name)

    def parent(self, name: str) -> str | None:
        """The type that `name` is a special case of; None for application/octet-stream."""
        known = self.parents.get(name)
        if known or name == OCTET_STREAM:
            return known
        base, parameters, _ = name.partition(";")
        if parameters:
            return base
        if base.endswith("+xml"):
            return XML
        if base.endswith("+zip"):
            return ZIP
        return TEXT_PLAIN if base.startswith("text/") and base != TEXT_PLAIN else OCTET_STREAM

    def is_special_case(self, name: str, of: str) -> bool:
        """Tells whether `of` is among the ancestors of `name`."""
        parent = self.parent(name)
        seen = 0
        # A user's file may have a cycle of parents.
        while parent is not None and parent != of and seen < 32:
            parent = self.parent(parent)
            seen += 1
        return parent == of

    def by_file_name(self, name: str) -> str:
        """Returns the type of a file name: by the whole name, else by its longest known suffix,
        then by both in lower case.
        """
        # `.C` is C++, `.c` is C: letters as they are go first (Tika's Patterns.matches).
        for candidate in (name, name.lower()):
            found = self.files.get(candidate) or self._by_suffix(candidate)
            if found:
                return found
        return OCTET_STREAM

    def _by_suffix(self, name: str) -> str | None:
        # The longest suffix begins at the first dot.
        dot = name.find(".", max(0, len(name) - self._longest_suffix))
        while dot >= 0:
            found = self.suffixes.get(name[dot:])
            if found:
                return found
            dot = name.find(".", dot + 1)
        return None

    def by_magic(self, data: bytes) -> list[str]:
        """The types whose magic holds, of the highest priority that any has; empty if none."""
        length = len(data)
        rules = self._by_first[data[0]]
        numbers = rules.second.get(data[1], rules.others) if length > 1 else rules.others
        more = [number for at, rules in self._by_later if at < length for number in rules[data[at]]]
        if more:
            # Numbers are in the order of priority.
            numbers = sorted(numbers + more)
        found: list[str] = []
        priority = -1
        for number in numbers:
            magic = self.magics[number]
            # Only equals of the first that held may still join.
            if magic.priority < priority:
                break
            if magic.name not in found and magic.test(data):
                found.append(magic.name)
                priority = magic.priority
        return found

    def holds(self, name: str, data: bytes) -> bool:
        """Tells whether a magic of a type holds, of whatever priority."""
        return any(magic.name == name and magic.test(data) for magic in self.magics)


def type_name(text: str) -> str:
    """Returns a type as Tika prints it: a blank before each parameter."""
    return "; ".join(part.strip() for part in text.split(";"))


def read_rules(text: str, path: str) -> TypeRegistry:
    """Returns the rules of conf/mime-types.txt. Raises ConfigError with file and line."""
    registry = TypeRegistry()
    reader = _add_type
    for number, line in _logical_lines(text):
        if line == "%magic":
            reader = _add_magic
            continue
        try:
            reader(registry, line.split())
        except (ValueError, LookupError, re.error) as error:
            raise ConfigError(
                f"{path}:{number}: not a rule for media types: {line!r} ({error})"
            ) from error
    return registry.prepare()


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    start, current = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        # An indented line goes on with the one before.
        if line[:1] in (" ", "\t") and current:
            current += " " + line.strip()
            continue
        if current:
            yield start, current
        start, current = number, "" if line.startswith("#") else line.strip()
    if current:
        yield start, current


def _add_type(registry: TypeRegistry, words: Sequence[str]) -> None:
    name = type_name(words[0])
    if "/" not in name:
        raise ValueError("a line begins with a type")
    registry.names.add(name)
    for word in words[1:]:
        mark, value = word[0], word[1:]
        if mark == "<":
            registry.parents[name] = type_name(value)
        elif mark == "=":
            registry.aliases[value] = name
        elif mark == ".":
            registry.suffixes.setdefault(word, name)
        elif mark == "/":
            registry.files[value] = name
        elif mark == "@":
            namespace, _, local = value[1:].partition("}")
            registry.roots[namespace, local] = name
        elif word == "interpreted":
            registry.interpreted.add(name)
        else:
            raise ValueError(f"unknown {word!r}")


def _add_magic(registry: TypeRegistry, words: Sequence[str]) -> None:
    priority, name, *rules = words
    name = type_name(name)
    for rule in rules:
        parts = [_part(part) for part in re.split(r"(?<!\\)&", rule)]
        tests, needs = zip(*parts, strict=True)
        # All parts must hold, so one may rule a page out; the earliest tells short pages as well.
        need = min(filter(None, needs), key=lambda need: need[0], default=None)
        registry.magics.append(Magic(int(priority), name, all_of(tests), need))


def _part(text: str) -> tuple[Test, Need | None]:
    match = _PART.fullmatch(text)
    if not match:
        raise ValueError(f"no bytes in {text!r}")
    start = int(match[2] or 0)
    end = int(match[3] or start)
    if match[4].startswith("~"):
        source, flags = match[4][1:], re.IGNORECASE if match[1] else re.NOFLAG
        first = _FIRST.match(source)
        # With alternatives another byte may come first.
        known = None if first is None or "|" in source else _unescape(first[0])[:1]
        need = needed_bytes(known or [], start, end, ignore_case=bool(match[1]))
        return regex_test(source.encode("latin-1"), start, end, flags=flags), need
    pattern, ignore_case = _unescape(match[4]), bool(match[1])
    test = bytes_test(pattern, start, end, ignore_case=ignore_case)
    return test, needed_bytes(pattern, start, end, ignore_case=ignore_case)


def _unescape(text: str) -> list[int | None]:
    """Byte values, None for any byte."""
    result: list[int | None] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        result += text[at : match.start()].encode("latin-1")
        if match[1] == "?":
            result.append(None)
        elif match[1][0] == "x" and len(match[1]) == 3:
            result.append(int(match[1][1:], 16))
        else:
            result += _ESCAPED[match[1]]
        at = match.end()
    return [*result, *text[at:].encode("latin-1")]


def needed_bytes(
    pattern: Sequence[int | None], start: int, end: int, *, ignore_case: bool = False
) -> Need | None:
    """Returns the first two bytes of a pattern, which a page must have; None if they may be in
    several places or are any bytes.
    """
    # Only a rule at a fixed place can be looked up by the byte that stands there.
    if start != end or not pattern or pattern[0] is None:
        return None
    known = takewhile(lambda byte: byte is not None, pattern[:2])
    letters = [bytes([byte]) for byte in known if byte is not None]
    return start, [
        frozenset(letter.lower() + letter.upper()) if ignore_case else frozenset(letter)
        for letter in letters
    ]


def bytes_test(
    pattern: Sequence[int | None], start: int, end: int, *, ignore_case: bool = False
) -> Test:
    """Returns a test for bytes (None: any) at an offset from `start` to `end`."""
    if None in pattern:
        source = b"".join(b"." if byte is None else re.escape(bytes([byte])) for byte in pattern)
        return regex_test(
            source, start, end, len(pattern), re.IGNORECASE if ignore_case else re.NOFLAG
        )
    literal = bytes(byte for byte in pattern if byte is not None)
    stop = end + len(literal)
    if ignore_case:
        lower = literal.lower()
        # The slice bounds the search, as `find` with its ends below.
        return lambda data: lower in data[start:stop].lower()
    if start == end:
        return lambda data: data.startswith(literal, start)
    return lambda data: data.find(literal, start, stop) >= 0


def regex_test(
    source: bytes, start: int, end: int, length: int | None = None, flags: re.RegexFlag = re.NOFLAG
) -> Test:
    """Returns a test for a regular expression that begins at an offset from `start` to `end`;
    `length` in bytes if fixed.
    """
    compiled = re.compile(source, flags | re.DOTALL)
    if start == end:
        return lambda data: compiled.match(data, start) is not None
    if length is not None:
        # A fixed length bounds the search to where a match may end.
        return lambda data: compiled.search(data, start, end + length) is not None
    return lambda data: (
        (match := compiled.search(data, start, end + _REACH)) is not None and match.start() <= end
    )


def all_of(tests: Sequence[Test]) -> Test:
    """Returns a test that holds if all of `tests` hold."""
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda data: first(data) and second(data)
    return lambda data: all(test(data) for test in tests)


def any_of(tests: Sequence[Test]) -> Test:
    """Returns a test that holds if one of `tests` holds."""
    if len(tests) == 1:
        return tests[0]
    return lambda data: any(test(data) for test in tests)
