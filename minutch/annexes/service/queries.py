"""Reads databases, segments and files for clients.

Source: CrawlDbReader.query, and SequenceReader, LinkReader, NodeReader of
org.apache.nutch.service.impl.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from minutch import strictjson
from minutch.annexes.service.requestchecks import RequestRefused
from minutch.cycle.crawldb.stats import CrawlDbStatistics
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.store import Segment
from minutch.hadoop.formats import javahash
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.writables import Writable
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.parsedata import ParseData
from minutch.records.protocol import ProtocolStatus
from minutch.records.webgraph import LinkDatum, Node

PIECE: Final = 1 << 16
"""Size of the chunks of a file, in bytes."""

Row = Callable[[Writable, Writable], Any]


# -- /db/crawldb -----------------------------------------------------------------------------------


def statistics(db: CrawlDb, *, hosts: bool) -> dict[str, object]:
    """Returns the counts of `readdb -stats`."""
    found = CrawlDbStatistics(hosts=hosts)
    for part in range(len(db.require_parts())):
        for frame in db.scan_part(part):
            found.add(frame)
    return found.facts()


def entry(db: CrawlDb, url: str) -> dict[str, object] | None:
    """Returns an entry, with times in ms; None if it does not exist."""
    db.require_parts()
    datum = db.get(url)
    if datum is None:
        return None
    return {
        "status": datum.status,
        "fetchTime": datum.fetch_time,
        "modifiedTime": datum.modified_time,
        "retriesSinceFetch": datum.retries,
        "retryInterval": datum.fetch_interval,
        "score": float(javahash.float_to_string(datum.score)),
        "signature": None if datum.signature is None else datum.signature.hex(),
        "metadata": {str(name): str(value) for name, value in datum.metadata.items()},
    }


def parts_of(folder: Path) -> Iterator[bytes]:
    """Yields the contents of the part files of a dump."""
    for path in sorted(folder.glob("part-*")):
        with path.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece


# -- /db/fetchdb -----------------------------------------------------------------------------------


def fetched(segment: Segment, first: int, last: int) -> list[dict[str, object]]:
    """Returns the pages `first` to `last` of a segment with their links, counted from 1; 0 is the
    end.

    Nutch's service keeps this in memory, for pages that were parsed while fetching.
    """
    pages = []
    stop = last if last > 0 else None
    for url, datum in itertools.islice(segment.records("crawl_fetch"), max(first - 1, 0), stop):
        assert isinstance(datum, CrawlDatum)
        parsed = (
            next(iter(segment.get("parse_data", url)), None) if segment.has("parse_data") else None
        )
        links = parsed.outlinks if isinstance(parsed, ParseData) else ()
        status = next((v for k, v in datum.metadata.items() if str(k) == PROTO_STATUS_KEY), None)
        children = [{"childUrl": link.to_url, "anchorText": link.anchor} for link in links]
        pages.append(
            {
                "url": url,
                "status": status.code if isinstance(status, ProtocolStatus) else 0,
                "numOfOutlinks": len(children),
                "children": children,
            }
        )
    return pages


# -- /reader ---------------------------------------------------------------------------------------


def _plain(key: Writable, value: Writable) -> list[str]:
    return [str(key), str(value)]


def _link(key: Writable, value: Writable) -> dict[str, str]:
    if not isinstance(value, LinkDatum):
        raise RequestRefused(f"expected LinkDatum records, found {type(value).__name__}")
    return {
        "key_url": str(key),
        "url": value.url,
        "anchor": value.anchor,
        "score": javahash.float_to_string(value.score),
        "timestamp": str(value.timestamp),
        "linktype": str(value.link_type),
    }


def _node(key: Writable, value: Writable) -> dict[str, str]:
    if not isinstance(value, Node):
        raise RequestRefused(f"expected Node records, found {type(value).__name__}")
    return {
        "key_url": str(key),
        "num_inlinks": str(value.num_inlinks),
        "num_outlinks": str(value.num_outlinks),
        "inlink_score": javahash.float_to_string(value.inlink_score),
        "outlink_score": javahash.float_to_string(value.outlink_score),
        "metadata": str(value.metadata),
    }


READERS: Final[dict[str, Row]] = {"sequence": _plain, "link": _link, "node": _node}
SCHEMAS: Final = {
    "link": {
        "key_url": "string",
        "timestamp": "int",
        "score": "float",
        "anchor": "string",
        "linktype": "string",
        "url": "string",
    },
    "node": {
        "key_url": "string",
        "num_inlinks": "int",
        "num_outlinks": "int",
        "inlink_score": "float",
        "outlink_score": "float",
        "metadata": "string",
    },
}


def count(path: Path) -> int:
    """Returns the number of records in a SequenceFile."""
    with SequenceFileReader(path) as reader:
        return sum(1 for _ in reader)


def rows(kind: str, path: Path, *, start: int, end: int, most: int) -> Iterator[str]:
    """Returns a JSON array of a file's records in pieces: those from `start` to before `end`, or
    the first `most`, or all.

    The first record is read before anything is sent, so that errors can be reported.
    """
    row = READERS[kind]
    first, stop = (start, end) if start > -1 and end > 0 else (0, most if most > -1 else None)
    pieces = _pieces(row, path, first, stop)
    return itertools.chain([next(pieces)], pieces)


def _pieces(row: Row, path: Path, start: int, stop: int | None) -> Iterator[str]:
    before = "["
    with SequenceFileReader(path) as reader:
        for key, value in itertools.islice(reader.records(), start, stop):
            yield before + strictjson.dumps(row(key, value))
            before = ","
    yield "[]" if before == "[" else "]"
