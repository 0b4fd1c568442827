"""Counts pages by media type, which `dump` and `commoncrawldump` select by and print. The type is
detected from the content alone.

Source: org.apache.nutch.util.DumpFileUtil.displayFileTypes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from minutch.cycle.parse.mime import MimeUtil
from minutch.hadoop.formats.javahash import names_order
from minutch.job import Counters


class MediaTypeCounts:
    """Numbers of pages by media type, in total and of the types to select."""

    def __init__(self, mime: MimeUtil, wanted: Collection[str] | None) -> None:
        """`wanted` are the types to select; None selects all."""
        self._mime = mime
        self._wanted = None if wanted is None else frozenset(wanted)
        self.total = Counters()
        self.selected = Counters()

    def add(self, content: bytes) -> bool:
        """Counts a page; returns whether its type is selected."""
        name = self._mime.by_content(content)
        self.total.add(name)
        if self._wanted is not None and name not in self._wanted:
            return False
        self.selected.add(name)
        return True

    def text(self, *, with_selected: bool = True) -> str:
        """Returns both tables, or the first one, in the order of Nutch's HashMap."""
        lines = [
            "",
            "TOTAL Stats:",
            *_table(self.total),
            f"Total count: {sum(self.total.values())}",
        ]
        if with_selected and self.selected:
            lines += ["", "FILTERED Stats:", *_table(self.selected)]
            lines.append(f"Total filtered count: {sum(self.selected.values())}")
        return "\n".join((*lines, ""))


def _table(counts: Counters) -> Iterator[str]:
    names = list(counts)
    yield "["
    for position in names_order(tuple(names)):
        yield f'    {{"mimeType":"{names[position]}","count":"{counts[names[position]]}"}}'
    yield "]"
