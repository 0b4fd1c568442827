"""Makes what rows work on: a CrawlDb's columns, its file, a segment's pages, HTML pages."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.hadoop.formats.batch import Batch
from minutch.records import crawldatum_columns as crawldata
from minutch.records.links_columns import decode_outlinks
from minutch.work.tables.database import data_file
from minutch.work.tables.frame import sort_by_key
from minutch.work.tables.recordfiles import CrawlDataWriter
from minutch.work.tables.spannedfile import SpannedFile
from tests.benchmarks import data
from tests.benchmarks.htmlpages import corpus

URLS_PER_PAGE = 50
"""URLs of the CrawlDb for each page of the segment, which has as many links."""


def records_of(path: Path, *, stored: bool) -> Batch:
    """Returns the records of a part; `stored` values as the file has them."""
    file = SpannedFile(data_file(path), stored=stored)
    batches = [batch for span in file.spans() for batch in file.batches(span)]
    keys = [batch.key(row) for batch in batches for row in range(batch.size)]
    return Batch.of(keys, [batch.value(row) for batch in batches for row in range(batch.size)])


class Made:
    """Data of `count` URLs and at most `pages` HTML pages, made when it is first asked for, below
    a folder.
    """

    def __init__(self, folder: Path, count: int, pages: int) -> None:
        self.folder, self.count, self._pages = folder, count, pages

    @cached_property
    def rows(self) -> pl.DataFrame:
        """The entries of a CrawlDb, in no order."""
        return data.crawldb_rows(0, self.count, self.count)

    @cached_property
    def keys(self) -> pl.Series:
        """Its URLs (Binary)."""
        return self.rows["key"]

    @cached_property
    def urls(self) -> pl.Series:
        """Its URLs (String)."""
        return self.keys.cast(pl.String)

    @cached_property
    def ordered(self) -> pl.Series:
        """Its URLs (Binary), sorted."""
        return self.keys.sort()

    @cached_property
    def some(self) -> pl.Series:
        """Half of its URLs, sorted."""
        return self.keys.sample(fraction=0.5, seed=2).sort()

    @cached_property
    def numbered(self) -> pl.DataFrame:
        """Its URLs with numbers."""
        return self.rows.select("key", row=pl.int_range(pl.len(), dtype=pl.Int64))

    @cached_property
    def batch(self) -> Batch:
        """Its records."""
        values, at, length = crawldata.encode(self.rows)
        keys = Batch.of(self.keys.to_list(), [])
        return keys._replace(values=values, value_at=at, value_len=length)

    @cached_property
    def records(self) -> list[bytes]:
        """Its CrawlDatums, serialized."""
        return [self.batch.value(row) for row in range(self.count)]

    @cached_property
    def crawldb(self) -> Path:
        """Its MapFile."""
        path = self.folder / "crawldb"
        with CrawlDataWriter(path) as writer:
            writer.write(sort_by_key(self.rows))
        return path

    @cached_property
    def pages(self) -> int:
        """The number of pages of a segment."""
        return max(self.count // URLS_PER_PAGE, 2)

    @cached_property
    def segment(self) -> Path:
        """A segment of these pages, one part of each folder."""
        path = self.folder / data.SEGMENT
        data.write_segment(path, self.pages, self.count, 1)
        return path

    @property
    def _parsed(self) -> Path:
        return self.segment / "parse_data" / "part-r-00000"

    @cached_property
    def parse_data(self) -> Batch:
        """The segment's ParseData."""
        return records_of(self._parsed, stored=False)

    @cached_property
    def stored_parse_data(self) -> Batch:
        """The segment's ParseData as the file has them, compressed one by one."""
        return records_of(self._parsed, stored=True)

    @cached_property
    def links(self) -> pl.DataFrame:
        """The segment's links: `key` (target), `from_url`, `anchor`, as they stand in the pages."""
        links = decode_outlinks(self.parse_data)
        return links.select(key="to_url", from_url="key", anchor="anchor").rechunk()

    @cached_property
    def html(self) -> list[bytes]:
        """HTML pages of 2 to 200 KB, in UTF-8."""
        found = corpus(self._pages).pages
        return [page.decode("utf-8", "replace").encode() for page in found]

    @cached_property
    def words(self) -> Any:
        """As many SimHashes as there are pages of a crawl: half of them near another one."""
        random = np.random.default_rng(1)
        words = random.integers(0, 1 << 63, self.count // 2, np.uint64) << np.uint64(1)
        near = words.copy()
        for _ in range(3):
            near ^= np.uint64(1) << random.integers(0, 64, len(near), np.uint64)
        return np.concatenate((words, near))

    @cached_property
    def conf(self) -> Configuration:
        """The default configuration, with the plugins that decide about URLs."""
        plugins = "urlfilter-regex|urlnormalizer-(pass|regex|basic)"
        return Configuration.load([], overrides={"plugin.includes": plugins})
