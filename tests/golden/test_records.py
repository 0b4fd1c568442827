"""Every record that real Nutch wrote is read, and written back byte for byte."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.writables import lookup
from minutch.records.crawldatum import CUR_VERSION, CrawlDatum
from minutch.records.links import LAYOUT_METADATA, LAYOUT_PLAIN, Inlinks, layouts_of
from tests.support.golden import GOLDEN, needs_golden

pytestmark = needs_golden
CRAWLS = [
    "crawl-small",
    "crawl-small-adaptive",
    "nutch-1.20",
    "nutch-testresources",
    "nutch-trunk-edge-linkdb",
]

JAVA_7 = "nutch-testresources"
"""Written by a Java whose HashMap has another order."""


def data_files(crawl: str) -> Iterator[Path]:
    for path in sorted((GOLDEN / crawl).rglob("*")):
        if path.name == "data" or (path.name.startswith("part-") and path.is_file()):
            with path.open("rb") as file:
                if file.read(3) == b"SEQ":
                    yield path


def comes_back(value: bytes, class_name: str, *, same_order: bool) -> bool:
    """Returns whether a record, read and written again, has the same bytes (`same_order`) or at
    least the same content.

    Inlinks are left out here: their order depends on how large Nutch's hash set had once been.
    """
    if class_name == Inlinks.class_name:
        return True
    record = lookup(class_name).from_bytes(value)
    written = record.to_bytes()
    if not same_order or (isinstance(record, CrawlDatum) and value[0] != CUR_VERSION):
        return type(record).from_bytes(written) == record
    return written == value


@needs_golden("{crawl}")
@pytest.mark.parametrize("crawl", CRAWLS)
def test_every_record_comes_back(crawl: str) -> None:
    counts: Counter[str] = Counter()
    for path in data_files(crawl):
        with SequenceFileReader(path) as reader:
            for _, value in reader:
                assert comes_back(value, reader.value_class, same_order=crawl != JAVA_7), path
                counts[reader.value_class.rpartition(".")[2]] += 1
    assert counts["CrawlDatum"] > 0 or counts["Inlinks"] > 0


@needs_golden("{crawl}")
@pytest.mark.parametrize(
    ("crawl", "layout"),
    [
        ("crawl-small", LAYOUT_METADATA),
        ("crawl-small-adaptive", LAYOUT_METADATA),
        ("nutch-1.20/crawl", LAYOUT_PLAIN),
    ],
)
def test_inlinks_are_told_apart_by_exact_consumption(crawl: str, layout: str) -> None:
    checked = 0
    for path in data_files(crawl):
        with SequenceFileReader(path) as reader:
            if reader.value_class == Inlinks.class_name:
                for _, value in reader:
                    fitting = layouts_of(value)
                    assert layout in fitting, path
                    assert len(fitting) == 1 or value == bytes(4)
                    checked += 1
    assert checked > 50
