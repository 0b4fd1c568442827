"""Puts leaves of Markdown below each other: the markers of lists, quotes and footnotes around
them, empty lines between them, the rows of tables.

No list, quote or note is nested deeper than MOST_NESTED, so that a line's markers have a bounded
length, and all lines are written in linear time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

MOST_NESTED: Final = 24
"""Containers in each other, lists and items counted: what is deeper has no marker of its own."""
_MOST_SPANNED: Final = 100
"""Columns of a table in which colspan and rowspan are looked at."""


@dataclass(eq=False, slots=True)
class Container:
    """What stands around leaves: a list (which has no marker), an item, a quote, a note."""

    kind: str
    marker: str = ""
    rest: str = ""
    """Before every line but the first."""
    ordered: bool = False
    sign: str = ""
    """Of a list: what its items' markers end with."""
    number: int = 1
    """Of a list: the next item's."""
    last: Container | None = None
    """Of a list: its last item; of a term: the list of its definitions."""
    is_term: bool = False
    is_used: bool = False


class Lines:
    """The lines written so far, and the containers that are open."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.open: list[Container] = []
        self._last: list[Container] = []
        """Those that were open when the last leaf was written."""
        self._last_kind = ""
        self._beyond = 0
        """Containers that are open, too, but not nested further."""

    def text(self) -> str:
        return "\n".join(self._lines) + "\n" if self._lines else ""

    def push(self, container: Container) -> None:
        if len(self.open) < MOST_NESTED:
            self.open.append(container)
        else:
            self._beyond += 1

    def pop(self) -> None:
        if self._beyond:
            self._beyond -= 1
        else:
            self.open.pop()

    def write(self, lines: Sequence[str], kind: str) -> int:
        """Writes a leaf, after an empty line where one is needed; returns its first line's number,
        from 0.
        """
        self._give_markers()
        if self._lines and not self._is_tight():
            self._lines.append("".join(one.rest for one in self.open if one.is_used).rstrip())
        first = "".join(one.rest if one.is_used else one.marker for one in self.open)
        rest = "".join(one.rest for one in self.open)
        at = len(self._lines)
        for number, line in enumerate(lines):
            prefix = rest if number else first
            self._lines.append(prefix + line if line else prefix.rstrip())
        for one in self.open:
            one.is_used = True
        self._last, self._last_kind = list(self.open), kind
        return at

    def _give_markers(self) -> None:
        """Markers are given when something is written: an item without anything has no number."""
        for place, one in enumerate(self.open):
            if one.is_used or one.kind != "item":
                continue
            owner = self.open[place - 1] if place else None
            if owner is None or owner.kind != "list":
                one.marker = "- "
            elif owner.ordered:
                owner.sign = owner.sign or self._sign(place - 1, ".", ")")
                one.marker = f"{min(owner.number, 999_999_999)}{owner.sign} "
                owner.number += 1
            else:
                owner.sign = owner.sign or self._sign(place - 1, "-", "*")
                one.marker = f"{owner.sign} "
            one.rest = " " * len(one.marker)

    def _sign(self, place: int, usual: str, other: str) -> str:
        """Returns the sign of a new list: not that of a list just before it, as both were one."""
        if len(self._last) > place and self._last[:place] == self.open[:place]:
            before = self._last[place]
            if before.kind == "list" and before.sign == usual:
                return other
        return usual

    def _is_tight(self) -> bool:
        """Returns True for an item after another one, and for a list after its item's first
        words; other numbers than 1 don't end a paragraph.
        """
        place = next((at for at, one in enumerate(self.open) if not one.is_used), None)
        if place is not None and self.open[place].kind == "list":
            place += 1
            if place < len(self.open) and self.open[place].kind == "item":
                outer = self.open[: place - 1]
                is_first = self._last_kind == "p" and outer and outer[-1].kind == "item"
                starts = not self.open[place - 1].ordered or self.open[place].marker[:-2] == "1"
                return bool(is_first and starts and self._last == outer)
            return False
        return (
            place is not None
            and len(self._last) > place > 0
            and self.open[place].kind == self._last[place].kind == "item"
            and self.open[place - 1].kind == "list"
            and self._last[:place] == self.open[:place]
        )


@dataclass(slots=True)
class TableRows:
    """A table whose rows are being read."""

    rows: list[list[str]] = field(default_factory=list)
    heads: set[int] = field(default_factory=set)
    """Addresses of its thead elements."""
    has_head: bool = False
    spans: dict[int, int] = field(default_factory=dict)
    """Column → rows that a cell reaches into, the one that is read included."""

    def add(self, cell: str, columns: int, rows: int) -> None:
        row = self.rows[-1]
        self._fill()
        at = len(row)
        row += [cell, *[""] * (min(columns, _MOST_SPANNED) - 1)]
        if rows > 1:
            for column in range(at, min(len(row), _MOST_SPANNED)):
                self.spans[column] = rows

    def _fill(self) -> None:
        row = self.rows[-1]
        while self.spans.get(len(row), 0) > 0:
            row.append("")

    def next_row(self) -> None:
        self.spans = {at: left - 1 for at, left in self.spans.items() if left > 1}
        self.rows.append([])

    def lines(self) -> list[str]:
        """Returns a table with a head, which GitHub's have to have; it is empty if the page's has
        none. Only the head is as wide as the table.
        """
        width = max(map(len, self.rows))
        rows = self.rows if self.has_head else [[], *self.rows]
        head, *body = rows
        head = head + [""] * (width - len(head))
        return [_row(head), _row(["---"] * width), *map(_row, body)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
