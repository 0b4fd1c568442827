"""Rewrites what people type as a query of tantivy's. Pure. There is no wrong query: what has no
meaning is searched as words.

    words of a page              most of them (`least`), but for stop words
    "words in a row"             "nearly in a row"~2, "words in a ro"*, begin*
    title:word host:example.org  in a field; any field of the documents can be named, as
                                 index-writers.xml has it
    -word, NOT word              without; +word, AND, OR and (groups)
    date:2024, date:2024-03..    dates in a year, a month or on a day, or from one to another:
                                 date:2023..2024-03-15, date:[2023 TO 2024-03-15], date:>=2023
    https://example.org/page     the page with this URL

`title`, `content`, `anchor` and `url` stand for the same field of every language that has a stemmer
and occurs in the index. A word without a field is looked for in all of them, each with its weight,
and in what of a page belongs to its site (`frame`), where that is in the index; words that stand
near each other count more. Where no document has a field of a name, `x:y` is words, as in
`std::vector`. In a query with brackets or operators, all words are needed that it does not say
otherwise of.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from minutch.inspect.search.fields import (
    DATES,
    FRAME,
    HAS_CJK,
    KNOWN,
    OTHER,
    TEXTS,
    paired,
    twins,
    unpaired,
)

LONGEST: Final = 1000
"""Characters of a query; the rest is cut off."""
MOST_WORDS: Final = 60
"""Words of a query; more are left out."""
Weigh = Callable[[str, str], float]
"""Field, text → weight; 0 if no document has the text there."""

_PIECE: Final = re.compile(
    r"""(?P<sign>[+-]?)
        (?: (?P<close>\)) | (?:(?P<field>[^\W\d][\w.\-]*):(?!:))?
        (?: (?P<open>\()
          | (?P<phrase>"[^"]*"(?:~\d+|\*)?)
          | (?P<range>[\[{][^\]}]*\s+TO\s+[^\]}]*[\]}])
          | (?P<word>[^\s()"]+) ))""",
    re.VERBOSE,
)
_WORD: Final = re.compile(
    r"""(?P<sign>[+-]?)(?P<word>[^\s()"]+)(?P<field>)(?P<open>)(?P<close>)(?P<phrase>)(?P<range>)"""
)
"""A piece whose name is that of no field."""
_SCHEMES: Final = frozenset(("http", "https", "ftp", "file"))
_ALWAYS: Final = frozenset((*_SCHEMES, *TEXTS, "id", "key", "has"))
"""Names that may stand before a colon whatever documents have."""
_NEAR: Final = 3
"""Words that may stand between two that are near each other."""
AND, OR, NOT = "AND", "OR", "NOT"
ALL: Final = "*"
_OPERATORS: Final = frozenset((AND, OR, NOT))
_RANGE: Final = re.compile(r"[\[{]\s*(\S*)\s+TO\s+(\S*)\s*[\]}]")
_PERIOD: Final = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:T.*)?")
_ALONE: Final = re.compile(HAS_CJK)
_BEGINNING: Final = re.compile(r"\w{2,}\*")
_SPECIAL: Final = re.compile(r'["\\]')
_PARTS: Final = re.compile(r"\s[-\u2014\u2013|·:»]\s|:\s")
"""What stands between the parts of a title, one of them often the site's name."""
LONGEST_NAME: Final = 200
"""Characters of a name."""
MOST: Final = 1000
"""Names of a page that are looked at."""


@dataclass(frozen=True)
class Vocabulary:
    """What an index has, by which queries are rewritten."""

    languages: Collection[str] = ()
    """Those with a stemmer."""
    names: Collection[str] = ()
    """Fields that documents have."""
    weigh: Weigh = lambda _field, _text: 1.0
    stop_words: Callable[[Sequence[str]], Collection[str]] = lambda _words: ()
    """Words → those that say nothing beside the others."""

    def has(self, name: str) -> bool:
        """Returns True if `name:` asks for a field."""
        return name in KNOWN or name in _SCHEMES or name in self.names


_PLAIN: Final = Vocabulary()


@dataclass(frozen=True)
class Rewritten:
    """A query in tantivy's language."""

    needed: str
    """What documents have to match; may be empty."""
    words: Sequence[str]
    """Of these, documents have to match `least(len(words))`."""
    near: str
    """Makes documents better hits: neighbouring words near each other. Empty if there are none."""
    plain: Sequence[str]
    """The words without sign, field and operators, but for stop words, as they were typed."""


def least(count: int) -> int:
    """Returns how many of so many words a document must have: all of two, two of three, four of
    six. Who types a sentence does not know which of its words the page has that answers.
    """
    return count - count // 3


def rewritten(text: str, vocabulary: Vocabulary = _PLAIN) -> Rewritten:
    """Rewrites what somebody has typed."""
    every = list(_found(text, vocabulary))
    typed = [found["word"] for found in every if _is_plain(found)]
    stop = frozenset(vocabulary.stop_words(typed))
    runs: list[list[str]] = [[]]
    for found in every:
        if not _is_plain(found):
            runs.append([])
        elif found["word"] not in stop:
            runs[-1].append(found["word"])
    plain = list(dict.fromkeys(word for run in runs for word in run))
    if not words_of(text):
        return Rewritten(_joined(every, vocabulary), (), _nearby(runs, vocabulary), plain)
    needed = [found for found in every if not _is_plain(found)]
    words = [_plain("", None, word, vocabulary) for word in plain]
    return Rewritten(_joined(needed, vocabulary), words, _nearby(runs, vocabulary), plain)


def _is_plain(found: re.Match[str]) -> bool:
    """Returns True for a word without sign and field."""
    word = found["word"] or ""
    return not (found["sign"] or found["field"] or word in _OPERATORS) and bool(
        re.search(r"\w", word)
    )


def _joined(every: Sequence[re.Match[str]], vocabulary: Vocabulary) -> str:
    """Rewrites pieces one by one, and makes a query of them."""
    pieces: list[str] = []
    groups: list[str | None] = [None]
    for found in every:
        name = found["field"] or groups[-1]
        if found["open"]:
            groups.append(name)
        elif found["close"] and len(groups) > 1:
            groups.pop()
        piece = found["close"] or (
            f"{found['sign']}(" if found["open"] else _piece(found, name, vocabulary)
        )
        if piece and pieces and pieces[-1] == NOT and piece not in _OPERATORS and piece != ")":
            pieces[-1] = f"-{piece.lstrip('+-')}"
        elif piece:
            pieces.append(piece)
    kept = _balanced([piece for piece in pieces if piece != NOT])
    if kept and all(piece.startswith("-") for piece in _outermost(kept)):
        kept.insert(0, ALL)  # what is not wanted, of all documents
    return " ".join(kept)


def _nearby(runs: Sequence[Sequence[str]], vocabulary: Vocabulary) -> str:
    """Matches neighbouring words near each other; a run of words may be empty."""
    paired_runs = [[paired(word) for word in run] for run in runs]
    wanted = [f"{one} {two}" for run in paired_runs for one, two in pairwise(run)]
    wanted += [" ".join(run) for run in paired_runs if len(run) > 2]
    return " OR ".join(
        _any(TEXTS, words, vocabulary, f"~{_NEAR}") for words in dict.fromkeys(wanted)
    )


def strange_fields(text: str, vocabulary: Vocabulary) -> list[str]:
    """Returns the names before a colon that no document has as a field."""
    named = [found["field"] for found in _PIECE.finditer(text[:LONGEST]) if found["field"]]
    return [
        name
        for name in dict.fromkeys(named)
        if name not in vocabulary.names and name not in _ALWAYS
    ]


def words_of(text: str) -> list[str]:
    """Returns the words and phrases of a query as typed; none if it has groups or operators."""
    found = list(_PIECE.finditer(text[:LONGEST]))
    if any(one["open"] or one["close"] or one[0] in _OPERATORS for one in found):
        return []
    return [one[0] for one in found]


def _found(text: str, vocabulary: Vocabulary) -> Iterator[re.Match[str]]:
    """Yields the pieces of a query."""
    text = text[:LONGEST].encode("utf-8", "replace").decode()
    at = 0
    for _ in range(MOST_WORDS):
        found = _PIECE.search(text, at)
        if found is None:
            return
        if found["field"] and not vocabulary.has(found["field"]):
            found = _WORD.match(text, found.start()) or found
        yield found
        at = found.end()


def _piece(found: re.Match[str], name: str | None, vocabulary: Vocabulary) -> str:
    """Rewrites one word, phrase or range in its field."""
    sign, word = found["sign"], found["word"] or ""
    if found["field"] is None and word.strip("+-!^~*:[]{}<>\\/") in _OPERATORS:
        return word if word in _OPERATORS else ""
    if name in _SCHEMES:
        return f"{sign}key:{_quoted(f'{name}:{word}')}"
    if name in DATES:
        return _dates(sign, name, found["phrase"] or found["range"] or word)
    if found["range"]:
        return _plain(sign, name, found["range"][1:-1], vocabulary)
    if found["phrase"]:
        inner, _, suffix = found["phrase"][1:].rpartition('"')
        return _in_field(sign, name, paired(inner), vocabulary, suffix) if inner.strip() else ""
    return _plain(sign, name, word, vocabulary)


def _plain(sign: str, name: str | None, word: str, vocabulary: Vocabulary) -> str:
    """Rewrites a word; if punctuation splits it, its parts have to stand in a row."""
    if word == ALL and name is None:
        return ALL
    by_pattern = name is None or name in KNOWN
    if by_pattern and _ALONE.fullmatch(word):
        return sign + _matching(name, f"{word}.?|.{word}", vocabulary)
    if by_pattern and _BEGINNING.fullmatch(word):
        return sign + _matching(name, f"{word[:-1].lower()}.*", vocabulary)
    return _in_field(sign, name, paired(word), vocabulary) if re.search(r"\w", word) else ""


def _quoted(word: str) -> str:
    return '"' + _SPECIAL.sub(" ", word) + '"'


def _matching(name: str | None, pattern: str, vocabulary: Vocabulary) -> str:
    """Matches words of the index by a pattern. A character of a language without blanks is in the
    pairs on both its sides.
    """
    every = twins([name] if name else TEXTS, vocabulary.languages if name in (None, *TEXTS) else ())
    return "(" + " OR ".join(f"{field}:/{pattern}/" for field in every) + ")"


def _in_field(
    sign: str, name: str | None, words: str, vocabulary: Vocabulary, suffix: str = ""
) -> str:
    if name is None or name in TEXTS:
        every = [name] if name else [*TEXTS, FRAME] if FRAME in vocabulary.names else TEXTS
        return sign + _any(every, words, vocabulary, suffix)
    return f"{sign}{name if name in KNOWN else f'{OTHER}.{name}'}:{_quoted(words)}{suffix}"


def _any(names: Collection[str], words: str, vocabulary: Vocabulary, suffix: str) -> str:
    """Matches words in a row in any of these fields, each with its weight."""
    whole = words if suffix != "*" else " ".join(words.split()[:-1])
    fields = [*twins((name for name in names if name != FRAME), vocabulary.languages)]
    fields += [FRAME] * (FRAME in names)
    every = {field: vocabulary.weigh(field, whole) for field in fields}
    there = {field: weight for field, weight in every.items() if weight} or {TEXTS[-1]: 1.0}
    value = f"{_quoted(words)}{suffix}"
    return "(" + " OR ".join(f"{name}:{value}^{there[name]:.4f}" for name in there) + ")"


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


# Compares what people type with what pages are called: by their title, a part of it, the words of
# a link, the end of the URL. Pure.
#
# BM25 adds up words wherever they stand. That a page has a link whose words are just those of the
# query, and not these words among a thousand links, it does not see.


def names_of(stored: Mapping[str, list[Any]]) -> Iterator[str]:
    """Yields the names of a stored document."""
    for field, values in stored.items():
        base = field.partition("_")[0]
        for value in values if base in ("title", "anchor", "url") else ():
            text = unpaired(str(value))
            if base == "title":
                yield from (text, *_PARTS.split(text))
            elif base == "anchor":
                yield from text.split("\n")
            else:
                yield text.rstrip("/").rpartition("/")[2].partition(".")[0].replace("_", " ")


def likeness(
    wanted: Collection[str], names: Iterable[Collection[str]], rarity: Callable[[str], float]
) -> float:
    """Returns how much of the best of some names a query is, and the name of it: 0 to 1, the
    harmonic mean of both shares (F1), where words weigh as much as they are rare.
    """
    whole = sum(map(rarity, wanted))
    best = 0.0
    for name in names:
        both = sum(rarity(word) for word in wanted if word in name)
        if both:
            best = max(best, 2 * both / (whole + sum(map(rarity, name))))
    return best
