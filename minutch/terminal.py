"""Escapes text for terminals and logs: control characters of pages, URLs and headers become
visible.

    \\x1b, \\r, \\x9b, …      as `\\x1b`: terminals take them for commands (ECMA-48: C0, DEL, C1)
    U+2028, U+202E, …      as `\\u202e`: line ends, and marks that turn the direction of writing
                           (UAX #9)
    lone surrogates        as `\\x9b` or `\\ud83d`: bytes that were no UTF-8, which would be written
                           as they came

`guard` is put around stdout and stderr where they are terminals, once, by the CLI. What goes to
files and pipes stays exact. minutch's own cursor movements and colours go to `raw(stream)`.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable
from typing import Any, Final, TextIO, cast

_COMMANDS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff]"
)
"""All but tabs and line feeds."""
BOLD: Final = "\x1b[1m"
DIM: Final = "\x1b[2m"
RED: Final = "\x1b[31m"
GREEN: Final = "\x1b[32m"
YELLOW: Final = "\x1b[33m"
PLAIN: Final = "\x1b[0m"
"""Our own colours, for `raw` streams; the last ends the others."""
_PLURALS: Final = {"ies": "y", "ches": "ch", "s": ""}
"""Endings of words in the plural and in the singular."""
_VERBS: Final = {
    "are": "is", "were": "was", "have": "has", "come": "comes", "belong": "belongs",
    "lead": "leads", "redirect": "redirects",
}  # fmt: skip
"""Verbs in the plural and in the singular."""
_GOES_ON: Final = " \\"
_WORD: Final = re.compile(r"""(?:"[^"]*"|'[^']*'|\[[^]\s][^]]*\]|[^\s"'])+""")
"""A word of a command line."""
_SQL_WORD: Final = re.compile(r"(?:'[^']*'|[^\s'])+")
"""A word between double quotes: statements have strings between single ones."""
_FIRST_BYTE: Final = 0xDC80
_LAST_BYTE: Final = 0xDCFF


def visible(text: str) -> str:
    """Returns the text with every control character written out, but for tabs and line feeds."""
    return _COMMANDS.sub(_written_out, text)


def visible_line(text: str) -> str:
    """Returns the same for a single line: line feeds are written out, too."""
    return visible(text).replace("\n", "\\n")


def counted(count: int, plural: str) -> str:
    """`1 page`, `2,000 pages`, `1 fetch`, `1 entry`; words that don't end in s stay."""
    return f"{count:,} {agreeing(count, plural)}"


def agreeing(count: int, plural: str) -> str:
    """Returns the word for a count, noun or verb: `page` and `is` for 1, `pages` and `are`."""
    if count != 1:
        return plural
    if plural in _VERBS:
        return _VERBS[plural]
    end, instead = next((pair for pair in _PLURALS.items() if plural.endswith(pair[0])), ("", ""))
    return plural.removesuffix(end) + instead


def folded_command(command: str, width: int | None, indent: int = 0) -> str:
    """Returns a command line in lines of a width that a shell takes as one; as it is without one.
    It begins at the column `indent`; its other lines are further in.
    """
    if width is None or indent + len(command) <= width:
        return command
    lines, room = [""], width - indent - len(_GOES_ON)
    for word in _WORD.findall(command):
        parts = _SQL_WORD.findall(word) if word[0] == '"' and len(word) > room - 4 else [word]
        for number, part in enumerate(parts):
            if lines[-1] and len(lines[-1]) + 1 + len(part) > room:
                lines[-1] += "" if number else _GOES_ON  # between quotes a line end is a blank
                lines.append(" " * 4 + part)
            else:
                lines[-1] += f"{' ' if lines[-1] else ''}{part}"
    return f"\n{' ' * indent}".join(lines)


def width_of(stream: TextIO) -> int | None:
    """Returns the columns of a terminal; None for other streams, whose lines stay whole."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def folded(text: str, width: int | None, indent: int = 0) -> str:
    """Returns text in lines of a width, as it is without one. It begins at the column `indent`, and
    so do its other lines; what has no blank, such as a URL, is not broken.
    """
    if width is None:
        return text
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return "\n".join(lines).lstrip()


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    if _FIRST_BYTE <= code <= _LAST_BYTE:
        code -= 0xDC00  # a byte, by Python's `surrogateescape`
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class _Guarded:
    """A stream that writes control characters out. `raw` is the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self.raw = stream

    def write(self, text: str) -> int:
        self.raw.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def guard(stream: TextIO) -> TextIO:
    """Returns the stream for text from anywhere: guarded if it is a terminal."""
    if isinstance(stream, _Guarded) or not stream.isatty():
        return stream
    return cast(TextIO, _Guarded(stream))


def raw(stream: TextIO) -> TextIO:
    """Returns the stream for our own control sequences."""
    return stream.raw if isinstance(stream, _Guarded) else stream
