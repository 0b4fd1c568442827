"""Writes runs of text as the inline Markdown of a leaf: escaped, so that it means what it says, and
marked as emphasis, code, links, images and references to footnotes.

Emphasis is written where CommonMark's rules of flanking (6.2) take it for that, and left out
elsewhere, as in `a**"b"**c`; blanks at its ends go outside. Runs of different emphasis that touch
have what they have in common.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby
from typing import Final, NamedTuple

EMPHASIS, STRONG, STRIKE, CODE = 1, 2, 4, 8
"""Marks of a run."""
_ESCAPED: Final = re.compile(
    r"[\\`*\[\]~]|(?<!\w)_++|_++(?!\w)|<(?=[A-Za-z/!?]|$)|&(?=#?\w+;|#?\w*$)", re.ASCII
)
_LINE: Final = re.compile(
    r"(?=#{1,6}(?:\s|$)|>|[-+](?:\s|$)|[-=|:+\s]+$)|(?P<number>\d{1,9}(?=[.)](?:\s|$))|\[\^\w+\](?=:))",
    re.ASCII,
)
_CLOSING: Final = re.compile(r"(?:^|(?<=\s))(?=#+\s*$)")
_TICKS: Final = re.compile("`+")
_NOT_IN_TARGET: Final = re.compile(r"[\x00-\x20<>\x7f]")
_ESCAPED_IN_TARGET: Final = re.compile(r"[\\()]|&(?=#?\w+;)")


class TextRun(NamedTuple):
    """Text with the same marks; a blank or a line end alone."""

    text: str
    marks: int
    link: str | None
    number: int
    """Of the link, as two may have the same target."""
    image: str | None = None
    """The URL of an image, whose text is its alternative."""
    is_note: bool = False

    @property
    def is_break(self) -> bool:
        return self.text == "\n"


def as_lines(runs: Sequence[TextRun], *, is_heading: bool = False) -> list[str]:
    """Returns the lines of a leaf; all but the last end with a hard break. A heading's (or a
    cell's) are to be joined, and have no line that could be taken for something else.
    """
    lines = []
    for is_break, group in groupby(runs, lambda run: run.is_break):
        if not is_break and (line := _line(list(group)).strip()):
            lines.append(line)
    if is_heading:
        return [_CLOSING.sub(r"\\", line) if line.endswith("#") else line for line in lines]
    lines = [
        _LINE.sub(_escaped_start, line, count=1) if _LINE.match(line) else line for line in lines
    ]
    return [line + "\\" for line in lines[:-1]] + lines[-1:]


def _escaped_start(match: re.Match[str]) -> str:
    return (match["number"] or "") + "\\"


def escaped(text: str) -> str:
    """Returns text in which nothing is taken for markup."""
    return _ESCAPED.sub(lambda found: "".join("\\" + sign for sign in found[0]), text)


def _line(runs: Sequence[TextRun]) -> str:
    """Returns one line; links are outermost."""
    groups = [
        (link, list(group))
        for link, group in groupby(
            runs, lambda run: (run.link, run.number) if run.link is not None else None
        )
    ]
    written: list[str] = []
    for number, (link, group) in enumerate(groups):
        before = written[-1][-1:] if written else ""
        after = "[" if number + 1 < len(groups) and link is None else ""
        if link is None:
            text = _emphasised(group, before, after)
            if after and text.endswith("!"):
                text = text[:-1] + "\\!"
        else:
            inner = _emphasised(group, "[", "]")
            text = f"[{inner}]({target_of(link[0])})"
        if text:
            written.append(text)
    return "".join(written)


def target_of(url: str) -> str:
    """Returns a URL as the target of a link."""
    url = _NOT_IN_TARGET.sub(lambda found: f"%{ord(found[0]):02X}", url)
    return _ESCAPED_IN_TARGET.sub(r"\\\g<0>", url)


def _emphasised(runs: Sequence[TextRun], before: str, after: str) -> str:
    """Returns runs of one link, or of none, between these characters."""
    pieces = list(_strengths(runs))
    written: list[str] = []
    for number, (strength, inner) in enumerate(pieces):
        last = written[-1][-1:] if written else before
        following = pieces[number + 1][1][:1] if number + 1 < len(pieces) else after
        if strength and inner:
            stars = "*" * (strength & (EMPHASIS | STRONG))
            tildes = "~~" if strength & STRIKE else ""
            start, end = ("*", "*") if tildes and stars else (inner[0], inner[-1])
            if _may_touch(last, start) and _may_touch(following, end):
                written.append(tildes + stars + inner + stars + tildes)
                continue
        if inner:
            written.append(inner)
    return "".join(written)


def _may_touch(outside: str, inside: str) -> bool:
    """Returns True if a delimiter between these characters opens or closes (left- or
    right-flanking).
    """
    if inside.isspace():
        return False
    category = unicodedata.category(inside)[0]
    if category not in "PS":
        return True
    return (
        not outside
        or outside.isspace()
        or outside in string.punctuation
        or unicodedata.category(outside)[0] == "P"
    )


def _strengths(runs: Sequence[TextRun]) -> Iterator[tuple[int, str]]:
    """Yields pieces of one emphasis, written, without blanks at their ends."""
    strengths = [run.marks & ~CODE for run in runs]
    _level(strengths, [run.marks & CODE and run.text != " " for run in runs])
    _level(strengths, [strengths[at] and run.text != " " for at, run in enumerate(runs)])
    for strength, group in groupby(range(len(runs)), strengths.__getitem__):
        numbers = list(group)
        text = "".join(_written(runs, numbers))
        inner = text.strip(" ")
        if not strength or not inner:
            yield 0, text
            continue
        at = text.index(inner)
        if at:
            yield 0, text[:at]
        yield strength, inner
        if at + len(inner) < len(text):
            yield 0, text[at + len(inner) :]


def _level(strengths: list[int], are_alike: Sequence[object]) -> None:
    """Gives runs that touch, and are alike, what their strengths have in common."""
    for is_alike, group in groupby(range(len(strengths)), lambda at: bool(are_alike[at])):
        if is_alike:
            places = list(group)
            common = reduce(int.__and__, (strengths[at] for at in places))
            for at in places:
                strengths[at] = common


def _written(runs: Sequence[TextRun], numbers: Sequence[int]) -> Iterator[str]:
    """Runs with their code, images and references; neighbours of a kind are one."""
    for kind, group in groupby(numbers, lambda number: _kind(runs[number])):
        mine = [runs[number] for number in group]
        if kind == "note":
            yield from (f"[^{run.text}]" for run in mine)
        elif kind == "image":
            yield from (f"![{escaped(run.text)}]({target_of(run.image or '')})" for run in mine)
        else:
            text = "".join(run.text for run in mine)
            yield _as_code(text) if kind == "code" else escaped(text)


def _kind(run: TextRun) -> str:
    if run.is_note:
        return "note"
    if run.image is not None:
        return "image"
    return "code" if run.marks & CODE else "text"


def _as_code(text: str) -> str:
    """Returns a span of code, with blanks at its ends outside."""
    inner = text.strip(" ")
    if not inner:
        return text
    lengths = {len(ticks) for ticks in _TICKS.findall(inner)}
    length = next(size for size in range(1, len(lengths) + 2) if size not in lengths)
    fence = "`" * length
    space = " " if inner[0] == "`" or inner[-1] == "`" else ""
    lead, tail = text[: text.index(inner)], text[text.index(inner) + len(inner) :]
    return f"{lead}{fence}{space}{inner}{space}{fence}{tail}"
