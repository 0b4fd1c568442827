"""How many pages have which media type, by their content alone: what `dump` and `commoncrawldump`
choose by and print.

Source: org.apache.nutch.util.DumpFileUtil.displayFileTypes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from minutch.conf import Configuration
from minutch.cycle.parse.mime import MimeUtil
from minutch.hadoop.formats.javahash import names_order
from minutch.job import Counters


class MediaTypes:
    """Counts pages by type. `wanted` are the types to choose; None takes every page."""

    def __init__(self, conf: Configuration, wanted: Collection[str] | None) -> None:
        self._mime = MimeUtil(conf)
        self._wanted = None if wanted is None else frozenset(wanted)
        self.total = Counters()
        self.chosen = Counters()

    def chooses(self, content: bytes) -> bool:
        """Count a page; whether it is one of those wanted."""
        name = self._mime.by_content(content)
        self.total.add(name)
        if self._wanted is not None and name not in self._wanted:
            return False
        self.chosen.add(name)
        return True

    def text(self, *, with_chosen: bool = True) -> str:
        """Both tables, or the first one, in the order of Nutch's HashMap."""
        lines = [
            "",
            "TOTAL Stats:",
            *_table(self.total),
            f"Total count: {sum(self.total.values())}",
        ]
        if with_chosen and self.chosen:
            lines += ["", "FILTERED Stats:", *_table(self.chosen)]
            lines.append(f"Total filtered count: {sum(self.chosen.values())}")
        return "\n".join((*lines, ""))


def _table(counts: Counters) -> Iterator[str]:
    names = list(counts)
    yield "["
    for position in names_order(tuple(names)):
        yield f'    {{"mimeType":"{names[position]}","count":"{counts[names[position]]}"}}'
    yield "]"
