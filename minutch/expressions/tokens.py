"""The words of an expression: text -> tokens, each with its position.

    number   digits, 0x hex, 0 octal, decimals, exponents, with the suffixes l h (integers) and f d
             b (reals)
    string   '...' or "..." with backslash escapes
    name     letters, digits, _ and $; operators that are words (and, eq, ...) become operators here
    op       the longest match of OPERATORS

Blanks and comments (`// ...`, `## ...`, `/* ... */`) separate tokens.
Source: the lexical rules of Apache Commons JEXL 3, compared by running it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from minutch.errors import ExpressionError
from minutch.hadoop.formats.javahash import float32

MAX_LENGTH: Final = 65_536  # characters of an expression

WORD_OPERATORS: Final = {
    "and": "&&", "or": "||", "not": "!", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "div": "/", "mod": "%",
}  # fmt: skip
KEYWORDS: Final = frozenset((
    "if", "else", "for", "foreach", "while", "do", "new", "var", "let", "const", "return", "break",
    "continue", "try", "function", "catch", "throw", "switch", "case", "instanceof", "import",
    "pragma", "in",
))  # fmt: skip
OPERATORS: Final = (
    "===", "!==", ">>>", "...",
    "==", "!=", "<=", ">=", "=~", "!~", "=^", "!^", "=$", "!$", "&&", "||", "??", "?:", "?.", "<<",
    ">>", "..", "->", "=>", "+=", "-=", "*=", "/=", "++", "--",
    *"+-*/%<>!~&|^?:.,()[]{};=@#",
)  # fmt: skip

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z", re.ASCII)
_TOKEN = re.compile(
    r"""(?P<blank> \s+ | //[^\n]* | \#\#[^\n]* | /\*.*?\*/ )
      | (?P<real> \d+ (?: \.\d+ (?:[eE][+-]?\d+)? [fFdDbB]?
                       | [eE][+-]?\d+ [fFdDbB]?
                       | [fFdDbB] (?![\w$]) ) )
      | (?P<integer> (?: 0[xX][0-9a-fA-F]+ | \d+ ) [lLhH]? )
      | (?P<string> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )
      | (?P<name> [^\W\d][\w$]* | \$[\w$]* )
      | (?P<op> """
    + "|".join(re.escape(op) for op in OPERATORS)
    + r""" )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Token:
    """One word: `kind` is number, string, name, op or end; `text` as written (or as a symbol)."""

    kind: str
    text: str
    position: int
    value: int | float | str | None = None


def fail(text: str, position: int, problem: str) -> ExpressionError:
    """Returns the error for `problem` at `position` (0-based) of the expression `text`."""
    return ExpressionError(f"expression '{text}', character {position + 1}: {problem}")


def replace_dates(text: str) -> str:
    """`text` with each date replaced by its milliseconds since the epoch (UTC). Raises
    ExpressionError.

    JexlUtil.parseExpression does it for the first date, in the time zone of the machine.
    """

    def milliseconds(match: re.Match[str]) -> str:
        try:
            moment = datetime.strptime(match[0], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except ValueError as exc:
            raise fail(text, match.start(), f"'{match[0]}' is not a date") from exc
        return str(round(moment.timestamp()) * 1000)

    return _DATE.sub(milliseconds, text)


def tokenize(text: str) -> list[Token]:
    """Returns the tokens of `text`, the last one of kind `end`. Raises ExpressionError."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"expression of {len(text)} characters: at most {MAX_LENGTH} are allowed"
        )
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            unfinished = text[position] in "'\""
            raise fail(
                text,
                position,
                "string without an end" if unfinished else f"unexpected '{text[position]}'",
            )
        if match.lastgroup != "blank":
            tokens.append(_token(text, match))
        position = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def _token(text: str, match: re.Match[str]) -> Token:
    word, start = match[0], match.start()
    match match.lastgroup:
        case "real":
            return Token(
                "number",
                word,
                start,
                # Java's float: 0.1f is not 0.1. B is a BigDecimal, whose digits beyond a double are
                # lost here.
                float32(float(word[:-1])) if word[-1] in "fF" else float(word.rstrip("dDbB")),
            )
        case "integer":
            return Token("number", word, start, _integer(text, word, start))
        case "string":
            return Token("string", word, start, _string(word))
        case "name" if word in WORD_OPERATORS:
            return Token("op", WORD_OPERATORS[word], start)
        case "name":
            return Token("name", word, start)
    return Token("op", word, start)


def _integer(text: str, word: str, start: int) -> int:
    digits = word.rstrip("lLhH")
    try:
        if digits[:2] in ("0x", "0X"):
            return int(digits, 16)
        # As in Java.
        return int(digits, 8) if len(digits) > 1 and digits[0] == "0" else int(digits)
    except ValueError as exc:
        raise fail(text, start, f"'{word}' is not a number") from exc


def _string(word: str) -> str:
    """Returns the string in the quotes; a backslash before the other quote stays, as in JEXL."""
    quote = word[0]

    def unescape(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return quote if code == quote else _ESCAPES.get(code, match[0])

    return _ESCAPE.sub(unescape, word[1:-1])
