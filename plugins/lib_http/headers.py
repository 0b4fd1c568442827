"""Keeps response headers as Nutch does: names are case-insensitive, well-known names are corrected,
the last value wins, but for lists.

Source: org.apache.nutch.metadata.SpellCheckedMetadata, and the header loop of protocol-http's
HttpResponse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from minutch.hadoop.formats import javahash
from minutch.records.metadata import Metadata

WELL_KNOWN: Final = (
    "Transfer-Encoding",
    "Client-Transfer-Encoding",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Location",
    "Content-Disposition",
    "Content-MD5",
    "Content-Type",
    "Last-Modified",
    "Location",
    "If-Modified-Since",
    "User-Agent",
)
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
