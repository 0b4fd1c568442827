"""SQL as text: where its statements end, and what may stand in them. Pure: no I/O.

Questions about the tables of a crawl are all that is allowed: no statement that changes anything,
no function that reads a file. What is asked of the clock is put in as a literal, in UTC as all
times are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from minutch.errors import QueryError

QUESTIONS: Final = ("select", "with", "from", "values", "show", "explain", "describe", "(")
"""What a statement may begin with."""

_TOKEN: Final = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z)|\#[^\n]*)
      | (?P<string>[eEbBxXnN]?'(?:[^'\\]|\\.|'')*(?:'|\Z))
      | (?P<name>"(?:[^"]|"")*(?:"|\Z)|`[^`]*(?:`|\Z)|[A-Za-z_][A-Za-z0-9_$]*)
      | (?P<space>\s+)
      | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_READER: Final = re.compile(r"(read|scan)_\w+", re.IGNORECASE)
"""Functions that read files."""
_NOW: Final = {"now", "current_timestamp", "localtimestamp"}
_TODAY: Final = {"current_date", "today"}

Tokens = list[tuple[str, str]]


def tokens(text: str) -> Tokens:
    """The words of a text by kind: comment, string, name, space, other."""
    return [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(text)]


def statements(text: str) -> Iterator[str]:
    """The statements of a text, which end in semicolons; those with nothing in them are left
    out.
    """
    current: Tokens = []
    for token in [*tokens(text), ("other", ";")]:
        if token != ("other", ";"):
            current.append(token)
            continue
        if any(kind not in ("space", "comment") for kind, _ in current):
            yield "".join(word for _, word in current).strip()
        current = []


def is_complete(text: str) -> bool:
    """Whether the last statement of a text has ended, as a prompt needs to know."""
    found = [token for token in tokens(text) if token[0] not in ("space", "comment")]
    return not found or found[-1] == ("other", ";")


def allowed(statement: str, now: int) -> str:
    """The statement, with the time `now` (ms) for the clock. Raises QueryError where it is no
    question.
    """
    words = [token for token in tokens(statement) if token[0] != "comment"]
    solid = [place for place, (kind, _) in enumerate(words) if kind != "space"]
    if not solid:
        raise QueryError("there is no statement")
    first = words[solid[0]][1].lower()
    if first not in QUESTIONS:
        raise QueryError(
            f"{first.upper()} is not possible: SQL here asks questions, the files of the crawl stay"
            " as they are",
            hint=(
                "did you mean"
                f" {''.join(get_close_matches(first, QUESTIONS, 1)).upper() or 'SELECT'}?"
            ),
        )
    time = datetime.fromtimestamp(now / 1000, UTC)
    moment, day = f"timestamp '{time:%Y-%m-%d %H:%M:%S.%f}'", f"date '{time:%Y-%m-%d}'"
    for here, place in enumerate(solid):
        kind, word = words[place]
        if kind != "name":
            continue
        called = here + 1 < len(solid) and words[solid[here + 1]][1] == "("
        name = word.strip('"`').lower()
        if called and _READER.fullmatch(name):
            raise QueryError(
                f"{name} is not possible: a query reads the tables of the crawl and no other files"
            )
        literal = moment if name in _NOW else day if name in _TODAY else ""
        if literal and word[0] not in '"`' and (called or name.startswith(("current", "local"))):
            words[place] = ("other", literal)
            if called:
                _drop_parentheses(words, solid, here + 1)
    return "".join(word for _, word in words)


def _drop_parentheses(words: Tokens, solid: list[int], at: int) -> None:
    """Empty the `(` at number `at` of the solid words, and the `)` behind it, if that is next."""
    if at + 1 < len(solid) and words[solid[at + 1]][1] == ")":
        words[solid[at]] = words[solid[at + 1]] = ("space", "")
