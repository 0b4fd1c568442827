"""Rewrites what people type as a query of tantivy's. Pure. There is no wrong query: what has no
meaning is searched as words.

    words of a page              all of them
    "words in a row"             "nearly in a row"~2, "words in a ro"*, begin*
    title:word host:example.org  in a field; any field of the documents can be named, as
                                 index-writers.xml has it
    -word, NOT word              without; +word, AND, OR and (groups)
    date:2024, date:2024-03..    dates in a year, a month or on a day, or from one to another:
                                 date:2023..2024-03-15, date:[2023 TO 2024-03-15], date:>=2023
    https://example.org/page     the page with this URL

`title` and `content` stand for the same field of every language that has a stemmer and occurs in
the index.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from minutch.inspect.search.fields import (
    DATES,
    EXACT,
    HAS_CJK,
    KNOWN,
    OTHER,
    STEMMED,
    TEXTS,
    paired,
)

LONGEST: Final = 1000
"""Characters of a query; the rest is cut off."""
MOST_WORDS: Final = 60
"""Words of a query; more are left out."""
BOOSTS: Final = {"title": 3.0, "anchor": 1.5, "url": 0.5}
"""Weights of the fields that words without a field are looked for in; 1 is that of content."""
_K1, _B = 1.2, 0.75
"""tantivy's parameters of BM25."""
_LEAST_SHARE: Final = 0.001

_PIECE: Final = re.compile(
    r"""(?P<sign>[+-]?)
        (?: (?P<close>\)) | (?:(?P<field>[^\W\d][\w.\-]*):)?
        (?: (?P<open>\()
          | (?P<phrase>"[^"]*"(?:~\d+|\*)?)
          | (?P<range>[\[{][^\]}]*\s+TO\s+[^\]}]*[\]}])
          | (?P<word>[^\s()"]+) ))""",
    re.VERBOSE,
)
AND, OR, NOT = "AND", "OR", "NOT"
ALL: Final = "*"
_OPERATORS: Final = frozenset((AND, OR, NOT))
_RANGE: Final = re.compile(r"[\[{]\s*(\S*)\s+TO\s+(\S*)\s*[\]}]")
_PERIOD: Final = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:T.*)?")
_ALONE: Final = re.compile(HAS_CJK)
_BEGINNING: Final = re.compile(r"\w{2,}\*")
_SPECIAL: Final = re.compile(r'["\\]')


def rewritten(text: str, languages: Collection[str] = ()) -> str:
    """Rewrites what somebody has typed; `languages` are those with a stemmer in the index."""
    pieces: list[str] = []
    groups: list[str | None] = [None]
    text = text[:LONGEST].encode("utf-8", "replace").decode()
    for found in list(_PIECE.finditer(text))[:MOST_WORDS]:
        name = found["field"] or groups[-1]
        if found["open"]:
            groups.append(name)
        elif found["close"] and len(groups) > 1:
            groups.pop()
        piece = found["close"] or (
            f"{found['sign']}(" if found["open"] else _piece(found, name, languages)
        )
        if piece and pieces and pieces[-1] == NOT and piece not in _OPERATORS and piece != ")":
            pieces[-1] = f"-{piece.lstrip('+-')}"
        elif piece:
            pieces.append(piece)
    kept = _balanced([piece for piece in pieces if piece != NOT])
    if kept and all(piece.startswith("-") for piece in _outermost(kept)):
        kept.insert(0, ALL)  # what is not wanted, of all documents
    return " ".join(kept)


def words_of(text: str) -> list[str]:
    """Returns the words and phrases of a query as they were typed; none if it has groups or
    operators.
    """
    found = list(_PIECE.finditer(text[:LONGEST]))
    if any(one["open"] or one["close"] or one[0] in _OPERATORS for one in found):
        return []
    return [one[0] for one in found]


def default_fields(languages: Collection[str]) -> list[str]:
    """Returns the fields in which words without a field are searched."""
    return [*TEXTS, *(f"{name}_{code}" for name in STEMMED for code in languages)]


def boosts(languages: Mapping[str, float]) -> dict[str, float]:
    """Returns the weights of these fields; `languages` has the share of all documents of each.

    BM25 takes the mean length of a field over all documents, so that a field which few have looks
    long wherever it is found. The weights of fields by language make up for that, for texts of the
    usual length.
    """
    shares = {"": max(1 - sum(languages.values()), _LEAST_SHARE), **languages}
    found = dict(BOOSTS)
    for name in STEMMED:
        for code, share in shares.items():
            weight = BOOSTS.get(name, 1.0) * (1 + _K1 * (1 - _B + _B / share)) / (1 + _K1)
            found[f"{name}_{code}" if code else name] = weight
    return found


def _piece(found: re.Match[str], name: str | None, languages: Collection[str]) -> str:
    """Rewrites one word, phrase or range in its field."""
    sign, word = found["sign"], found["word"] or ""
    if found["field"] is None and word.strip("+-!^~*:[]{}<>\\/") in _OPERATORS:
        return word if word in _OPERATORS else ""
    if name in ("http", "https", "ftp", "file"):
        return f"{sign}key:{_quoted(f'{name}:{word}')}"
    if name in DATES:
        return _dates(sign, name, found["phrase"] or found["range"] or word)
    if found["range"]:
        return _plain(sign, name, found["range"][1:-1], languages)
    if found["phrase"]:
        inner, _, suffix = found["phrase"][1:].rpartition('"')
        return (
            _in_field(sign, name, f"{_quoted(paired(inner))}{suffix}", languages)
            if inner.strip()
            else ""
        )
    return _plain(sign, name, word, languages)


def _plain(sign: str, name: str | None, word: str, languages: Collection[str]) -> str:
    """Rewrites a word; if punctuation splits it, its parts have to stand in a row."""
    if word == ALL and name is None:
        return ALL
    by_pattern = name is None or name in KNOWN
    if by_pattern and _ALONE.fullmatch(word):
        return sign + _matching(name, f"{word}.?|.{word}", languages)
    if by_pattern and _BEGINNING.fullmatch(word):
        return sign + _matching(name, f"{word[:-1].lower()}.*", languages)
    return _in_field(sign, name, _quoted(paired(word)), languages) if re.search(r"\w", word) else ""


def _quoted(word: str) -> str:
    return '"' + _SPECIAL.sub(" ", word) + '"'


def _matching(name: str | None, pattern: str, languages: Collection[str]) -> str:
    """Matches words of the index by a pattern. A character of a language without blanks is in the
    pairs on both its sides.
    """
    names = [name] if name else default_fields(languages)
    every = [one for field in names for one in _twins(field, languages)]
    return "(" + " OR ".join(f"{field}:/{pattern}/" for field in dict.fromkeys(every)) + ")"


def _twins(name: str, languages: Collection[str]) -> list[str]:
    """Returns the fields of the index that a field's name stands for."""
    if name in STEMMED:
        return [name, *(f"{name}_{code}" for code in languages)]
    if name in KNOWN or name.startswith(tuple(f"{field}_" for field in STEMMED)):
        return [name]
    return [f"{OTHER}.{name}"]


def _in_field(sign: str, name: str | None, value: str, languages: Collection[str]) -> str:
    if name is None:
        return sign + value
    if name in EXACT or name in ("id", "key"):
        value = value if value.startswith('"') else _quoted(value)
    fields = _twins(name, languages)
    return sign + (f"{fields[0]}:{value}" if len(fields) == 1 else _any(fields, value))


def _any(fields: Sequence[str], value: str) -> str:
    return "(" + " OR ".join(f"{field}:{value}" for field in fields) + ")"


def _dates(sign: str, name: str, text: str) -> str:
    """Rewrites a range of dates; empty if it can't be read."""
    text = text.strip('"')
    span = _RANGE.fullmatch(text)
    if span:
        first, last = span[1], span[2]
    elif ".." in text:
        first, _, last = text.partition("..")
    elif text.startswith(">"):
        first, last = text.lstrip(">="), ""
    elif text.startswith("<"):
        first, last = "", text.lstrip("<=")
    else:
        first = last = text
    begin, end = _period(first), _period(last)
    if begin is None and end is None:
        return ""
    lower = "1700-01-01T00:00:00Z" if begin is None else _written(begin[0])
    upper = "2262-01-01T00:00:00Z" if end is None else _written(end[1])
    return f"{sign}{name}:[{lower} TO {upper}}}"


def _period(text: str) -> tuple[datetime, datetime] | None:
    """Returns the beginning of a year, month or day, and that of the next one."""
    found = _PERIOD.fullmatch(text)
    if found is None:
        return None
    year, month, day = (None if part is None else int(part) for part in found.groups())
    try:
        begin = datetime(year or 0, month or 1, day or 1, tzinfo=UTC)
        if day:
            return begin, begin + timedelta(days=1)
        if month:
            return begin, begin.replace(year=begin.year + month // 12, month=month % 12 + 1)
        return begin, begin.replace(year=begin.year + 1)
    except (ValueError, OverflowError):
        return None


def _written(date: datetime) -> str:
    """Formats a date for tantivy, within its limits."""
    held = min(max(date, datetime(1700, 1, 1, tzinfo=UTC)), datetime(2262, 1, 1, tzinfo=UTC))
    return held.strftime("%Y-%m-%dT%H:%M:%SZ")


def _balanced(pieces: Sequence[str]) -> list[str]:
    """Drops brackets without a partner and operators without operands; AND NOT becomes `-`."""
    kept: list[str] = []
    depth = 0
    for piece in pieces:
        if piece in (AND, OR):
            if kept and kept[-1] not in (AND, OR) and not _opens(kept[-1]):
                kept.append(piece)
            continue
        if piece.startswith("-") and kept and kept[-1] == AND:
            kept.pop()  # all that is wanted and all that is not stand side by side
        if piece == ")":
            depth -= _close(kept) if depth else 0
            continue
        depth += _opens(piece)
        kept.append(piece)
    while depth:
        depth -= _close(kept)
    while kept and kept[-1] in (AND, OR):
        kept.pop()
    return kept


def _opens(piece: str) -> bool:
    return piece in ("(", "-(", "+(")


def _close(kept: list[str]) -> int:
    """Ends the last group, or removes it if it is empty."""
    while kept[-1] in (AND, OR):
        kept.pop()
    if _opens(kept[-1]):
        kept.pop()
    else:
        kept.append(")")
    return 1


def _outermost(pieces: Sequence[str]) -> Iterator[str]:
    """Yields the pieces outside all groups; a group is its first bracket."""
    depth = 0
    for piece in pieces:
        if piece == ")":
            depth -= 1
            continue
        if not depth:
            yield piece
        depth += _opens(piece)
