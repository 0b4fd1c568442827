"""org.apache.nutch.crawl.Generator.SelectorEntry: one candidate between generate's two jobs.

text URL, CrawlDatum, int segment number
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.crawldatum import CrawlDatum


@dataclass(slots=True)
class SelectorEntry(Writable):
    """A URL selected for the segment with number `seg_num`, counted from 1."""

    class_name = "org.apache.nutch.crawl.Generator$SelectorEntry"
    url: str
    datum: CrawlDatum
    seg_num: int = 0

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_text(), CrawlDatum.read(data), data.read_int())

    def write(self, out: DataOutput) -> None:
        out.write_text(self.url)
        self.datum.write(out)
        out.write_int(self.seg_num)

    def __str__(self) -> str:
        return f"url={self.url}, datum={self.datum}, segnum={self.seg_num}"
