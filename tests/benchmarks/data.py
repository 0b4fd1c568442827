"""Made-up databases, the same at every run: what a crawl of many millions of pages looks like to
the jobs.

    CrawlDb   URLs of about 70 bytes on 100,000 hosts, the k-th host with a share of 1/k; three in
              five not fetched yet; a fifth of the signatures shared by pages; metadata on a tenth
              of the entries
    segment   pages of that CrawlDb with 50 outlinks each, of which 45 are in crawl_parse; popular
              pages are linked to most, and half of the targets are new
    validated the segment again, without parse_data, with validators of each page
    webgraph  of all links of the segment
    linkdb    of all links of the segment
    seeds     the CrawlDb's URLs and as many others in no order; metadata on a tenth

    python -m tests.benchmarks.data FOLDER URLS PAGES [NAME …]   makes what is not there: all, or
                                                                 some and what they are made of

Rows are made a million at a time, and what has to be sorted is sorted on disk.

Numbers come from a generator seeded with the URL's number, so a database of ten million begins with
one of a million.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from math import gcd
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.linkdb.invertlinks import InvertOptions, invertlinks
from minutch.cycle.webgraph.build import webgraph
from minutch.hadoop.formats.batch import string_column
from minutch.hadoop.formats.javaio import encode_vlong
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencewriter import TEXT
from minutch.hadoop.formats.writables import MapWritable
from minutch.job import JobContext
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_REDIR_TEMP,
    STATUS_DB_UNFETCHED,
    STATUS_FETCH_SUCCESS,
    STATUS_LINKED,
    STATUS_PARSE_META,
    STATUS_SIGNATURE,
)
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.parsedata import ParseData
from minutch.records.validators import VALIDATORS_KEY, Validators
from minutch.work.tables import recordfiles
from minutch.work.tables.database import part_name
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.parallel import memory_budget
from minutch.work.tables.recordfiles import CrawlDataWriter
from minutch.work.tables.shuffle import Shuffle, split

NOW = 1_763_700_000_000
"""The time of the made-up crawl, in ms."""
DAY = 86_400_000
HOSTS = 100_000
INTERVAL = 2_592_000
LINKS_PER_PAGE = 50
PARSED_LINKS_PER_PAGE = 45
PARTS = 2
SEGMENT = "segments/20261121000000"
VALIDATED = "validated/20261121000000"
ALL_LINKS = {
    "link.ignore.internal.host": "false",
    "link.ignore.internal.domain": "false",
    "link.ignore.limit.page": "false",
    "link.ignore.limit.domain": "false",
}
"""All links of the segment are links of the webgraph."""

_CHUNK = 1_000_000
_TLDS = ("com", "org", "net", "de", "co.uk", "fr")
_SECTIONS = (
    "news",
    "articles",
    "products",
    "blog/archive",
    "community/forum",
    "research/papers",
    "docs",
    "en/topics",
)
_STATUSES = (
    (STATUS_DB_UNFETCHED, 60),
    (STATUS_DB_FETCHED, 25),
    (STATUS_DB_NOTMODIFIED, 5),
    (STATUS_DB_REDIR_TEMP, 5),
    (STATUS_DB_GONE, 5),
)
_METADATA = b"".join(
    (
        b"\0\0\0\0\x02",  # no classes of its own, two entries
        b"\x8c\x0cContent-Type\x8c\x09text/html",
        b"\x8c\x04_rs_\x85\0\0\x01\x2c",
    )
)

Numbers = npt.NDArray[np.uint64]


def _mix(numbers: Numbers, salt: int) -> Numbers:
    """Evenly spread 64 bits for each number (splitmix64)."""
    z = (numbers + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _fraction(numbers: Numbers, salt: int) -> npt.NDArray[np.float64]:
    return _mix(numbers, salt) / np.float64(2**64)


def urls(numbers: Numbers) -> pl.Series:
    """The URL of each number, as String; different for different numbers."""
    host = np.power(HOSTS, _fraction(numbers, 1)).astype(
        np.int64
    )  # the k-th with a share of about 1/k
    tlds, sections = pl.Series(_TLDS), pl.Series(_SECTIONS)
    frame = pl.DataFrame(
        {
            "host": host,
            "tld": tlds.gather(host % len(_TLDS)),
            "section": sections.gather(
                (_mix(numbers, 2) % np.uint64(len(_SECTIONS))).astype(np.int64)
            ),
            "year": 2005 + (_mix(numbers, 3) % np.uint64(20)).astype(np.int64),
            "slug": _mix(numbers, 4),
            "number": numbers,
            "secure": _fraction(numbers, 5) < 0.7,
        }
    )
    return frame.select(
        pl.concat_str(
            pl.when("secure").then(pl.lit("https://www.site")).otherwise(pl.lit("http://www.site")),
            "host",
            pl.lit("-example."),
            "tld",
            pl.lit("/"),
            "section",
            pl.lit("/"),
            "year",
            pl.lit("/"),
            pl.col("slug") % 10_000_000_000_000,
            pl.lit("-"),
            "number",
            pl.lit(".html"),
        ).alias("url")
    )["url"]


def _signatures(numbers: Numbers, total: int, present: npt.NDArray[np.bool_]) -> pl.Series:
    """16 bytes where `present`; a fifth of the pages share theirs with about ten others."""
    shared = _fraction(numbers, 11) < 0.2
    source = np.where(
        shared, _mix(numbers, 12) % np.uint64(total // 50 + 1), numbers + np.uint64(1 << 40)
    )
    data = np.stack([_mix(source, 13), _mix(source, 14)], axis=1).view(np.uint8).ravel()
    at = np.arange(0, len(data), 16)
    return string_column("signature", data, at, np.where(present, 16, 0).astype(np.int32), least=1)


def crawldb_rows(first: int, count: int, total: int) -> pl.DataFrame:
    """Entries of the CrawlDb by the numbers of their URLs, not sorted."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    codes = np.repeat([code for code, _ in _STATUSES], [share for _, share in _STATUSES]).astype(
        np.uint8
    )
    status = codes[(_mix(numbers, 6) % np.uint64(100)).astype(np.int64)]
    fetched = (status == STATUS_DB_FETCHED) | (status == STATUS_DB_NOTMODIFIED)
    due = NOW + ((_fraction(numbers, 7) - 0.8) * 30 * DAY).astype(np.int64)
    some = pl.Series(_fraction(numbers, 9) < 0.1)
    return pl.DataFrame(
        {
            "key": urls(numbers).cast(pl.Binary),
            "status": status,
            "fetch_time": due,
            "modified_time": np.where(fetched, due - 30 * DAY, 0),
            "retries": (_fraction(numbers, 8) < 0.03).astype(np.int8),
            "fetch_interval": np.full(count, INTERVAL, np.int32),
            "score": np.round(_fraction(numbers, 10) ** 8 * 10, 4).astype(np.float32),
            "signature": _signatures(numbers, total, fetched),
            "metadata": pl.select(
                pl.when(some).then(pl.lit(_METADATA)).otherwise(None)
            ).to_series(),
        },
        schema=CRAWLDB_SCHEMA,
    )


def write_crawldb(path: Path, total: int, parts: int = PARTS) -> None:
    """Write a CrawlDb of `total` entries in `parts` partitions, sorted on disk if it is large."""
    path.mkdir(parents=True, exist_ok=True)
    with Shuffle(parts, CRAWLDB_SCHEMA, budget=memory_budget(), spill=path) as rows:
        for first in range(0, total, _CHUNK):
            rows.add(crawldb_rows(first, min(_CHUNK, total - first), total))
        for part in range(parts):
            with CrawlDataWriter(path / "current" / part_name(part)) as writer:
                for table in rows.sorted(part):
                    writer.write(table)


def write_seeds(path: Path, total: int) -> None:
    """Write `total` seeds to a file: half of them URLs of the CrawlDb, in no order that their
    numbers show.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    step = next(step for step in range(total * 5 // 8, 2 * total) if gcd(step, total) == 1)
    with path.open("wb") as file:
        for first in range(0, total, _CHUNK):
            places = np.arange(first, min(first + _CHUNK, total), dtype=np.uint64)
            some = np.uint64(total // 2) + places * np.uint64(step) % np.uint64(total)
            metadata = pl.Series(_fraction(some, 21) < 0.1)
            line = pl.DataFrame({"url": urls(some), "some": metadata}).select(
                pl.col("url")
                + pl.when("some")
                .then(pl.lit("\tnutch.score=2.5\tkind=seed\n"))
                .otherwise(pl.lit("\n"))
            )
            file.write("".join(line["url"]).encode())


def _targets(pages: Numbers, total: int) -> Numbers:
    """The numbers of the URLs that `pages` link to: LINKS_PER_PAGE for each, popular ones most."""
    links = (np.repeat(pages, LINKS_PER_PAGE) << np.uint64(8)) + np.tile(
        np.arange(LINKS_PER_PAGE, dtype=np.uint64), len(pages)
    )
    known = _fraction(links, 30) < 0.5
    popular = (total * _fraction(links, 31) ** 3).astype(np.uint64)
    new = np.uint64(total) + _mix(links, 32) % np.uint64(max(total // 2, 1))
    return np.where(known, popular, new)


def write_segment(path: Path, pages: int, total: int, parts: int = PARTS) -> None:
    """Write crawl_fetch, crawl_parse and parse_data of `pages` pages of a CrawlDb of `total`
    entries.
    """
    numbers = np.arange(pages, dtype=np.uint64) * np.uint64(max(total // pages, 1))
    keys = urls(numbers).cast(pl.Binary)
    fetched = _fetched(keys)
    with CrawlDataWriter(path / "crawl_fetch" / part_name(0), compression="RECORD") as writer:
        writer.write(sort_by_key(fetched))
    (path / "crawl_parse").mkdir(parents=True, exist_ok=True)
    order = pl.DataFrame({"key": keys, "number": numbers})
    for part, frame in enumerate(split(order, parts)):
        _write_parsed(path, part_name(part), sort_by_key(frame)["number"].to_numpy(), total)


def _fetched(keys: pl.Series) -> pl.DataFrame:
    count = len(keys)
    return pl.DataFrame(
        {
            "key": keys,
            "status": np.full(count, STATUS_FETCH_SUCCESS, np.uint8),
            "fetch_time": NOW + np.arange(count, dtype=np.int64) * 10,
            "modified_time": np.zeros(count, np.int64),
            "retries": np.zeros(count, np.int8),
            "fetch_interval": np.full(count, INTERVAL, np.int32),
            "score": np.ones(count, np.float32),
            "signature": pl.Series([None], dtype=pl.Binary).new_from_index(0, count),
            "metadata": pl.Series([_METADATA], dtype=pl.Binary).new_from_index(0, count),
        },
        schema=CRAWLDB_SCHEMA,
    )


def _write_parsed(path: Path, name: str, numbers: Numbers, total: int) -> None:
    """One part of crawl_parse and parse_data, page by page."""
    data = MapFileWriter(
        path / "parse_data" / name, TEXT, ParseData.class_name, compression="RECORD"
    )
    with (
        data,
        CrawlDataWriter(path / "crawl_parse" / name, mapfile=False, compression="RECORD") as parsed,
    ):
        for first in range(0, len(numbers), _CHUNK // LINKS_PER_PAGE):
            pages = numbers[first : first + _CHUNK // LINKS_PER_PAGE]
            targets = urls(_targets(pages, total))
            parsed.write(_parse_rows(pages, targets, total))
            for page, record in zip(urls(pages), _parse_data(pages, targets), strict=True):
                data.append_raw(encode_vlong(len(page)) + page.encode(), record)


def _parse_rows(pages: Numbers, targets: pl.Series, total: int) -> pl.DataFrame:
    """Returns the rows that parse writes into crawl_parse: for each page the links that are kept,
    then its signature.
    """
    place = np.tile(np.arange(LINKS_PER_PAGE), len(pages))
    kept = pl.Series(place < PARSED_LINKS_PER_PAGE)
    page = np.repeat(np.arange(len(pages)), LINKS_PER_PAGE)
    links = pl.DataFrame({"page": page, "key": targets.cast(pl.Binary), "place": place}).filter(
        kept
    )
    own = pl.DataFrame(
        {
            "page": np.arange(len(pages)),
            "key": urls(pages).cast(pl.Binary),
            "place": LINKS_PER_PAGE,
        },
        schema=links.schema,
    )
    links = links.with_columns(
        status=pl.lit(STATUS_LINKED, pl.UInt8), signature=pl.lit(None, pl.Binary)
    )
    own = own.with_columns(
        status=pl.lit(STATUS_SIGNATURE, pl.UInt8),
        signature=_signatures(pages, total, np.ones(len(pages), np.bool_)),
    )
    linked = pl.col("status") == STATUS_LINKED
    return (
        pl.concat([links, own])
        .sort("page", "place")
        .select(
            "key",
            "status",
            fetch_time=pl.lit(NOW, pl.Int64),
            modified_time=pl.lit(0, pl.Int64),
            retries=pl.lit(0, pl.Int8),
            fetch_interval=pl.when(linked).then(INTERVAL).otherwise(0).cast(pl.Int32),
            score=pl.when(linked).then(1 / PARSED_LINKS_PER_PAGE).otherwise(1.0).cast(pl.Float32),
            signature="signature",
            metadata=pl.lit(None, pl.Binary),
        )
    )


def _parse_data(pages: Numbers, targets: pl.Series) -> Iterator[bytes]:
    """Serialized ParseData of each page: title, links with anchors, a little metadata. All of it is
    ASCII.
    """
    place = pl.Series(np.tile(np.arange(LINKS_PER_PAGE), len(pages)))
    anchors = "link text " + (place * 7919).cast(pl.String)
    links = pl.DataFrame(
        {
            "page": np.repeat(np.arange(len(pages)), LINKS_PER_PAGE),
            "url": targets,
            "anchor": anchors,
        }
    )
    text = pl.concat_str(_prefixed("url"), _prefixed("anchor"), pl.lit("\0"))
    joined = links.group_by("page", maintain_order=True).agg(text.str.join("")).to_series(1)
    status = b"\x02\x01\0\0\xff\xff\xff\xff"  # success, no arguments
    metadata = b"\0\0\0\x01\x0cContent-Type\0\0\0\x01\x09text/html" + b"\0\0\0\0"
    for number, body in zip(pages.tolist(), joined, strict=True):
        title = b"Page number %d of the made-up web" % number
        head = b"\x05" + status + bytes((len(title),)) + title + LINKS_PER_PAGE.to_bytes(4, "big")
        yield head + body.encode() + metadata


def _prefixed(column: str) -> pl.Expr:
    """A string of at most 127 bytes as a Text: its length as one character, then itself."""
    letters = pl.Series([chr(i) for i in range(128)])
    return pl.concat_str(pl.lit(letters).gather(pl.col(column).str.len_bytes()), pl.col(column))


def write_validated(path: Path, segment: Path) -> None:
    """Write crawl_fetch and crawl_parse of a segment, the latter with validators of each page."""
    shutil.copytree(segment / "crawl_fetch", path / "crawl_fetch")
    (path / "crawl_parse").mkdir()
    copy = Validators('"5f2a-63b1c8d40"', "Wed, 01 Oct 2025 00:00:09 GMT", NOW // 1000)
    for part in sorted(segment.glob("crawl_parse/part-*")):
        rows = recordfiles.read(part)
        pages = rows.filter(pl.col("status") == STATUS_SIGNATURE)
        metadata = [
            MapWritable({VALIDATORS_KEY: copy.stored(url.decode(), signature)}).to_bytes()
            for url, signature in zip(pages["key"], pages["signature"], strict=True)
        ]
        pages = pages.with_columns(
            status=pl.lit(STATUS_PARSE_META, pl.UInt8),
            signature=pl.lit(None, pl.Binary),
            metadata=pl.Series(metadata, dtype=pl.Binary),
        )
        target = path / "crawl_parse" / part.name
        with CrawlDataWriter(target, mapfile=False, compression="RECORD") as writer:
            writer.write(pl.concat([rows, pages]))


def write_webgraph(path: Path, segment: Path, parts: int = PARTS) -> None:
    """Write the webgraph of a segment."""
    conf = Configuration.load([], overrides={**ALL_LINKS, "mapreduce.job.reduces": str(parts)})
    webgraph(path, [segment], context=JobContext(conf, FakeClock(NOW)))


def write_linkdb(path: Path, segment: Path, parts: int = PARTS) -> None:
    """Write the LinkDb of all links of a segment, those within a host, too."""
    own = {"linkdb.ignore.internal.links": "false", "mapreduce.job.reduces": str(parts)}
    context = JobContext(Configuration.load([], overrides=own), FakeClock(NOW))
    invertlinks(path, [segment], InvertOptions(normalize=False, filtering=False), context=context)


_NAME = Path(SEGMENT).name
MADE_OF = {"validated": "segments", "webgraphdb": "segments", "linkdb": "segments"}
"""What is made of another one."""
_MAKERS: dict[str, Callable[[Path, int, int], None]] = {
    "crawldb": lambda at, total, _: write_crawldb(at, total),
    "seeds": lambda at, total, _: write_seeds(at / "seeds.txt", total),
    "segments": lambda at, total, pages: write_segment(at / _NAME, pages, total),
    "validated": lambda at, *_: write_validated(at / _NAME, at.parent / SEGMENT),
    "webgraphdb": lambda at, *_: write_webgraph(at, at.parent / SEGMENT),
    "linkdb": lambda at, *_: write_linkdb(at, at.parent / SEGMENT),
}
NAMES = tuple(_MAKERS)


def main(folder: Path, total: int, pages: int, names: Sequence[str] = NAMES) -> None:
    """Make what `folder` lacks of `names`, and what that is made of."""
    for name in names:
        if (folder / name).exists():
            continue
        if name in MADE_OF:
            main(folder, total, pages, [MADE_OF[name]])
        unfinished = folder / f"{name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        _MAKERS[name](unfinished, total, pages)
        unfinished.rename(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:] or NAMES)
