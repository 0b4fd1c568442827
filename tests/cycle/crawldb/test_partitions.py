"""The entries of CrawlDbs on their way through a job."""

from pathlib import Path

import pytest

from minutch.cycle.crawldb.partitions import EntryFilter, EntrySources
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import FormatError
from minutch.job import Counters
from minutch.plugin.urlrules import FILTERED, MALFORMED
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.work.engine import engine_of
from tests.support.crawldbs import context, write_db

PLUGINS = {"plugin.includes": "urlfilter-regex|urlnormalizer-basic"}


def test_entries_go_on_under_their_new_names() -> None:
    frame = crawldatum_columns.to_frame(
        [
            ("http://A/", CrawlDatum(1)),
            ("http://a/x.gif", CrawlDatum(2)),
            ("http://b/", CrawlDatum(3)),
        ]
    )
    counters = Counters()
    conf = context({**PLUGINS, "db.update.purge.404": "true"}).conf
    found = EntryFilter.from_conf(conf, normalize=True, filtering=True).apply(frame, counters)
    assert found["key"].to_list() == [b"http://a/"]
    assert counters == {"gone entries removed": 1, MALFORMED: 0, FILTERED: 1}


def test_settings_for_all_jobs() -> None:
    conf = context({**PLUGINS, "crawldb.url.filters": "true"}).conf
    found = EntryFilter.from_conf(conf)
    assert found.filters
    assert not found.normalizes
    neutral = EntryFilter.from_conf(context().conf)
    assert not neutral.filters
    assert not neutral.normalizes


def test_equal_keys_keep_the_order_of_the_input(tmp_path: Path) -> None:
    dbs = [
        write_db(
            tmp_path / name,
            [(f"http://a/{i}", CrawlDatum(score=number)) for i in range(9)],
            parts=parts,
        )
        for number, (name, parts) in enumerate((("b", 2), ("a", 1), ("c", 3)))
    ]
    conf = context({"mapreduce.job.reduces": "2", "minutch.memory": "100"}).conf
    with EntrySources(dbs, engine_of(conf), EntryFilter(), spill=tmp_path) as entries:
        partitions = [source.open(part) for part in range(2) for source in entries.sources]
        scores = [
            frame["score"].to_list() for partition in partitions for frame in partition.sorted()
        ]
    assert [score for table in scores for score in table] == [0, 1, 2] * 9


def test_nothing_stays_on_disk_after_damage(tmp_path: Path) -> None:
    for name in ("good", "damaged"):
        write_db(tmp_path / name, [(f"http://a/{i}", CrawlDatum()) for i in range(9)], parts=1)
    data = tmp_path / "damaged/current/part-r-00000/data"
    data.write_bytes(data.read_bytes()[:-2])
    conf = context({"mapreduce.job.reduces": "2", "minutch.memory": "100"}).conf
    dbs = [CrawlDb(tmp_path / name) for name in ("good", "damaged")]
    with (
        pytest.raises(FormatError),
        EntrySources(dbs, engine_of(conf), EntryFilter(), spill=tmp_path),
    ):
        pytest.fail("not reached")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "good"]
