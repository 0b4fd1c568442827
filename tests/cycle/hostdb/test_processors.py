"""Processors: rows and columns give the same, and what they hand over is what a host gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from minutch.conf import Configuration
from minutch.cycle.hostdb.statistics import CrawlDatumProcessor, FetchOverdueProcessor
from minutch.hadoop.formats.writables import FloatWritable, Writable
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_UNFETCHED, CrawlDatum
from tests.cycle.hostdb.test_updatehostdb import PAGES, context, described, update
from tests.support.crawldbs import NOW

DAY = 86_400_000


@pytest.mark.parametrize("limit", ["", "0", str(DAY)])
def test_overdue_by_rows_and_by_columns(limit: str) -> None:
    random, settings = (
        Random(1),
        {"crawl__datum__processor__overdue__time__limit": limit} if limit else {},
    )
    processor = FetchOverdueProcessor(context(**settings).conf)
    entries = [
        (f"http://a/{number}", CrawlDatum(status, 0, 1.0, NOW - random.randrange(5 * DAY)))
        for number, status in enumerate([STATUS_DB_UNFETCHED, STATUS_DB_FETCHED] * 50)
    ]
    frame = crawldatum_columns.to_frame(entries)
    by_rows = CrawlDatumProcessor.count_columns(processor, frame)
    assert processor.count_columns(frame).equals(by_rows)
    assert 0 < by_rows["num.overdue"].sum() < 50 or limit == "0"


class MeanScore(CrawlDatumProcessor):
    """A number of its own, made of two sums."""

    names = ("scores", "pages")

    def __init__(self, conf: Configuration) -> None:
        super().__init__(conf)
        self.factor = conf.get_int("test.factor", 1)

    def count(self, url: str, datum: CrawlDatum) -> Sequence[int]:
        return round(datum.score), 1

    def finalize(self, sums: Mapping[str, int]) -> Mapping[str, Writable]:
        return {"mean.score": FloatWritable(self.factor * sums["scores"] / sums["pages"])}


def test_what_finalize_gives_is_stored(tmp_path: Path) -> None:
    named = {
        "hostdb__crawldatum__processors": "tests.cycle.hostdb.test_processors:MeanScore",
        "test__factor": "3",
    }
    found = update(tmp_path, PAGES, job=context(**named))
    assert {host: described(datum) for host, datum in found.items()} == {
        host: {"mean.score": "3.0"} for host in ("a", "b")
    }
