"""mergedb: several CrawlDbs into one."""

import random
from pathlib import Path

import pytest

from minutch.cycle.crawldb.mergedb import ENTRIES, MERGED, MergeOptions, mergedb
from minutch.errors import LockedError, StoreError, UsageError
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_UNFETCHED, CrawlDatum
from tests.support.commands import command
from tests.support.crawldbs import context, metadata, read_db, write_db

run = command("mergedb").run

HOUR = 3_600_000
URL = "http://a/"


def fetched(last: int, **entries: str) -> CrawlDatum:
    """An entry that was last fetched at `last`."""
    return CrawlDatum(STATUS_DB_FETCHED, 3600, 1.0, last + HOUR, metadata=metadata(**entries))


def merge(tmp_path: Path, *entries: CrawlDatum) -> CrawlDatum:
    dbs = [write_db(tmp_path / f"db{i}", [(URL, datum)]).path for i, datum in enumerate(entries)]
    counters = mergedb(tmp_path / "out", dbs, context=context())
    assert counters == {ENTRIES: 1, MERGED: len(entries) - 1} if len(entries) > 1 else {ENTRIES: 1}
    return read_db(tmp_path / "out")[URL]


def test_the_entry_fetched_last_stays(tmp_path: Path) -> None:
    found = merge(tmp_path, fetched(5), fetched(9), fetched(7))
    assert found.fetch_time == 9 + HOUR


def test_a_fetched_page_goes_before_one_that_never_was(tmp_path: Path) -> None:
    never = CrawlDatum(STATUS_DB_UNFETCHED, 3600, 1.0, 10**15)
    assert merge(tmp_path, fetched(5), never).status == STATUS_DB_FETCHED


def test_of_pages_never_fetched_the_later_time_stays(tmp_path: Path) -> None:
    earlier, later = (
        CrawlDatum(STATUS_DB_UNFETCHED, 60, score, int(score)) for score in (5.0, 6.0)
    )
    assert merge(tmp_path, earlier, later).score == 6.0


def test_metadata_is_merged_newer_over_older(tmp_path: Path) -> None:
    found = merge(
        tmp_path,
        fetched(5, a="old", b="old"),
        fetched(9, a="new", c="new"),
        fetched(7, c="mid", d="mid"),
    )
    assert found.metadata == metadata(a="new", b="old", c="new", d="mid")


def test_of_older_entries_the_first_counts(tmp_path: Path) -> None:
    entries = [fetched(9, a="newest"), fetched(5, b="5", c="a longer value"), fetched(7, b="7")]
    assert merge(tmp_path, *entries).metadata == metadata(a="newest", b="5", c="a longer value")


def test_many_urls_at_once_are_as_each_alone(tmp_path: Path) -> None:
    chance = random.Random(6)
    urls = [f"http://a/{number}" for number in range(60)]

    def some() -> CrawlDatum:
        held = chance.choice([{}, {"a": "1"}, {"a": "1"}, {"a": "2"}, {"b": "3", "c": "4"}])
        return fetched(chance.randrange(3), **held)

    entries = [
        [(url, some()) for url in chance.sample(urls, chance.randrange(20, 60))] for _ in range(4)
    ]
    dbs = [write_db(tmp_path / f"db{i}", sorted(held)).path for i, held in enumerate(entries)]
    mergedb(tmp_path / "all", dbs, context=context())
    together = read_db(tmp_path / "all")
    for number, url in enumerate(urls):
        mine = [datum for held in entries for name, datum in held if name == url]
        assert together.get(url) == (merge(tmp_path / f"{number}", *mine) if mine else None), url


def test_of_equally_new_entries_the_first_stays(tmp_path: Path) -> None:
    entries = [fetched(5, a=name) for name in ("first", "second", "third")]
    for entry, score in zip(entries, (1.0, 9.0, 5.0), strict=True):
        entry.score = score
    found = merge(tmp_path, *entries)
    assert (found.score, found.metadata) == (1.0, metadata(a="first"))


def test_an_entry_from_before_1970_is_not_lost(tmp_path: Path) -> None:
    assert merge(tmp_path, CrawlDatum(STATUS_DB_FETCHED, 3600, 1.0, 5)).status == STATUS_DB_FETCHED


def test_different_urls_and_parts(tmp_path: Path) -> None:
    first = write_db(
        tmp_path / "1", [(f"http://a/{i}", fetched(i)) for i in range(20)], parts=2
    ).path
    second = write_db(
        tmp_path / "2", [(f"http://a/{i}", fetched(i + 1)) for i in range(10, 30)], parts=3
    ).path
    counters = mergedb(
        tmp_path / "out", [first, second], context=context({"mapreduce.job.reduces": "2"})
    )
    found = read_db(tmp_path / "out")
    assert {int(url[9:]): datum.fetch_time - HOUR for url, datum in found.items()} == {
        i: i + (i >= 10) for i in range(30)
    }
    assert counters == {ENTRIES: 30, MERGED: 10}


def test_filters_and_normalizers(tmp_path: Path) -> None:
    db = write_db(
        tmp_path / "db", [("http://a/x.gif", fetched(1)), ("http://A/b/../c", fetched(2))]
    ).path
    job = context({"plugin.includes": "urlfilter-regex|urlnormalizer-basic"})
    counters = mergedb(
        tmp_path / "out", [db], MergeOptions(normalize=True, filtering=True), context=job
    )
    assert list(read_db(tmp_path / "out")) == ["http://a/c"]
    assert counters["URLs rejected by filters"] == 1


def test_the_command(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    db = str(write_db(tmp_path / "db", [(URL, fetched(1))]).path)
    assert run([str(tmp_path / "out"), db, str(tmp_path / "none"), "-filter"], context()) == 0
    assert list(read_db(tmp_path / "out")) == [URL]
    assert "which does not exist" in caplog.text


@pytest.mark.parametrize("words", [[], ["out"], ["out", "db", "-what"]])
def test_wrong_command_lines(words: list[str]) -> None:
    with pytest.raises(UsageError, match="Usage: CrawlDbMerger") as caught:
        run(words, context())
    assert caught.value.exit_code == 255


def test_nothing_to_merge(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no CrawlDb to merge"):
        mergedb(tmp_path / "out", [tmp_path / "none"], context=context())
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="does not exist"):
        mergedb(tmp_path / "out", [tmp_path / "empty"], context=context())


def test_a_locked_output(tmp_path: Path) -> None:
    db = write_db(tmp_path / "db", [(URL, fetched(1))]).path
    (tmp_path / "out").mkdir()
    (tmp_path / "out/.locked").touch()
    with pytest.raises(LockedError):
        mergedb(tmp_path / "out", [db], context=context())
