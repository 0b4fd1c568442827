"""Fetch lists on disk, and their index."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from minutch.cycle.fetch.frontier.listindex import DATUM, ListIndex
from minutch.cycle.fetch.frontier.queueitems import FetchItem, QueueNames, Share
from minutch.cycle.fetch.settings import BY_HOST
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.hadoop.formats.writables import Text
from minutch.records.crawldatum import CrawlDatum

Entry = str | tuple[str, CrawlDatum]


def write_list(path: Path, entries: Iterable[Entry], **options: Any) -> Path:
    """Writes a part file of a fetch list; URLs without a datum get a new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with SequenceFileWriter(path, TEXT, DATUM, **options) as writer:
        for entry in entries:
            url, datum = (entry, CrawlDatum(1)) if isinstance(entry, str) else entry
            writer.append(Text(url), datum)
    return path


def index_of(
    folder: Path, entries: Iterable[Entry], *, mode: str = BY_HOST, **options: Any
) -> ListIndex:
    """Returns the index of a fetch list of one part."""
    path = write_list(folder / "crawl_generate" / "part-r-00000", entries)
    return ListIndex([path], folder / "list", QueueNames(mode, str).of_host, **options)


class Alone:
    """The neighbours of a loop that has none."""

    share = Share()

    def hand_over(self, item: FetchItem) -> bool:
        return False

    def nothing_to_come(self) -> bool:
        return True
