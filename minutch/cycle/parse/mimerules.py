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
from enum import IntEnum
from itertools import accumulate, groupby
from typing import NamedTuple

import numpy as np

from minutch.errors import ConfigError
from minutch.kernels.clibrary import memmem
from minutch.kernels.languages import rules_that_may_hold
from minutch.kernels.native import U8, I64Rows

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
_CLASS = re.compile(r"\[[^\]]+\]")
"""A regular expression that is one byte of some."""
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {"n": b"\n", "r": b"\r", "t": b"\t", "s": b" ", "&": b"&", "\\": b"\\"}
_NAME = re.compile(
    r"\s*([^\x00-\x20\x7f()<>@,;:\\\"/\[\]?=]+)\s*/\s*([^\x00-\x20\x7f()<>@,;:\\\"/\[\]?=]+)\s*(?:$|;.*)",
    re.DOTALL,
)


class BytesKind(IntEnum):
    """How the bytes of a literal are meant, as `rules_that_may_hold` takes it."""

    AS_THEY_ARE = 0
    IN_ANY_CASE = 1
    """They are in lower case here."""
    ONE_OF_THEM = 2


class MagicBytes(NamedTuple):
    """Bytes that begin at an offset from `first` to `last`."""

    first: int
    last: int
    value: bytes
    kind: BytesKind = BytesKind.AS_THEY_ARE


@dataclass(slots=True)
class Magic:
    """The bytes at the start of files of one type: literals, all of which must be there, and what
    they don't say.
    """

    priority: int
    name: str
    literals: Sequence[MagicBytes] = ()
    test: Test | None = None


class _Table(NamedTuple):
    """The literals of all magic rules, as `rules_that_may_hold` takes them: 12 µs a page in place
    of 29, when each rule that the first two bytes did not rule out was a call in Python; of HTML
    these left 40.
    """

    rules: I64Rows
    literals: I64Rows
    letters: U8
    reach: int
    """Bytes at the beginning of a page that are folded."""

    @classmethod
    def of(cls, magics: Sequence[Magic]) -> _Table:
        literals = [literal for magic in magics for literal in magic.literals]
        sizes = [len(literal.value) for literal in literals]
        rows = np.zeros((len(literals), 5), np.int64)
        rows[:, 0] = [literal.first for literal in literals]
        rows[:, 1] = [literal.last for literal in literals]
        rows[:, 2], rows[:, 3] = [0, *accumulate(sizes)][:-1], sizes
        rows[:, 4] = [literal.kind for literal in literals]
        rules = np.zeros((len(magics), 4), np.int64)
        rules[:, 0] = [magic.priority for magic in magics]
        rules[:, 2] = [*accumulate(len(magic.literals) for magic in magics)]
        rules[1:, 1] = rules[:-1, 2]
        rules[:, 3] = [magic.test is None for magic in magics]
        folded = (one for one in literals if one.kind is BytesKind.IN_ANY_CASE)
        return cls(
            rules,
            rows,
            # A byte at least: NumPy makes no array of none.
            np.frombuffer(b"".join(literal.value for literal in literals) or b"\0", np.uint8),
            max((literal.last + len(literal.value) for literal in folded), default=1),
        )


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
    _table: _Table = field(default_factory=lambda: _Table.of(()))

    def prepare(self) -> TypeRegistry:
        """Sorts the magic rules by priority (the order within one stays)."""
        self.magics.sort(key=lambda magic: -magic.priority)
        self._table = _Table.of(self.magics)
        self._longest_suffix = max(map(len, self.suffixes), default=0)
        return self

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
        found: list[str] = []
        priority = -1
        for magic in self._may_hold(data, goes_on=False):
            # Only equals of the first that held may still join.
            if magic.priority < priority:
                break
            if magic.name not in found and (magic.test is None or magic.test(data)):
                found.append(magic.name)
                priority = magic.priority
        return found

    def holds(self, name: str, data: bytes) -> bool:
        """Tells whether a magic of a type holds, of whatever priority."""
        return any(
            magic.name == name and (magic.test is None or magic.test(data))
            for magic in self._may_hold(data, goes_on=True)
        )

    def _may_hold(self, data: bytes, *, goes_on: bool) -> Iterator[Magic]:
        """Yields the rules whose literals are there, in order; if it does not go on, some of those
        of a lower priority than one that holds are left out.
        """
        rules, literals, letters, reach = self._table
        found = np.empty(len(self.magics), np.int32)
        page, folded = np.frombuffer(data, np.uint8), np.frombuffer(data[:reach].lower(), np.uint8)
        count = rules_that_may_hold(
            page, folded, rules, literals, letters, memmem(), goes_on, found
        )
        return map(self.magics.__getitem__, found[:count].tolist())


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
        # Those at fixed places rule most pages out, and take less time.
        literals = [literal for literal, _ in parts if literal is not None]
        literals.sort(key=lambda literal: literal.last - literal.first)
        tests = [test for _, test in parts if test is not None]
        magic = Magic(int(priority), name, literals, all_of(tests) if tests else None)
        registry.magics.append(magic)


def _part(text: str) -> tuple[MagicBytes | None, Test | None]:
    match = _PART.fullmatch(text)
    if not match:
        raise ValueError(f"no bytes in {text!r}")
    start = int(match[2] or 0)
    end = int(match[3] or start)
    ignore_case = bool(match[1])
    if match[4].startswith("~"):
        source, flags = match[4][1:], re.IGNORECASE if ignore_case else re.NOFLAG
        if start == end and _CLASS.fullmatch(source):
            member = re.compile(source.encode("latin-1"), flags)
            members = [byte for byte in map(bytes, zip(range(256))) if member.match(byte)]
            return MagicBytes(start, start, b"".join(members), BytesKind.ONE_OF_THEM), None
        first = _FIRST.match(source)
        # With alternatives another byte may come first.
        known = None if first is None or "|" in source else _unescape(first[0])[:1]
        literal = literal_of(known or [], start, end, ignore_case=ignore_case)
        return literal, regex_test(source.encode("latin-1"), start, end, flags=flags)
    return bytes_rule(_unescape(match[4]), start, end, ignore_case=ignore_case)


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


def literal_of(
    pattern: Sequence[int | None], start: int, end: int, *, ignore_case: bool = False
) -> MagicBytes | None:
    """Returns the longest run of bytes that a pattern names (None: any byte), which is where the
    pattern holds; None if there is none.
    """
    runs = [
        (key, [place for place, _ in run])
        for key, run in groupby(enumerate(pattern), lambda pair: pair[1] is not None)
    ]
    places = max((run for named, run in runs if named), key=len, default=None)
    if places is None:
        return None
    value = bytes(byte for place in places if (byte := pattern[place]) is not None)
    first, last = start + places[0], end + places[0]
    if ignore_case and value.lower() != value.upper():
        return MagicBytes(first, last, value.lower(), BytesKind.IN_ANY_CASE)
    return MagicBytes(first, last, value)


def bytes_rule(
    pattern: Sequence[int | None], start: int, end: int, *, ignore_case: bool = False
) -> tuple[MagicBytes | None, Test | None]:
    """Returns what holds for bytes (None: any) at an offset from `start` to `end`: a literal, and a
    test where that does not say it all.
    """
    literal = literal_of(pattern, start, end, ignore_case=ignore_case)
    if literal is not None and None not in pattern:
        return literal, None
    return literal, bytes_test(pattern, start, end, ignore_case=ignore_case)


def bytes_test(
    pattern: Sequence[int | None], start: int, end: int, *, ignore_case: bool = False
) -> Test:
    """Returns a test for bytes (None: any) at an offset from `start` to `end`."""
    source = b"".join(b"." if byte is None else re.escape(bytes([byte])) for byte in pattern)
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    return regex_test(source, start, end, len(pattern), flags)


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
