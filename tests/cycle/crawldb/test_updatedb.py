"""updatedb: segments into the CrawlDb."""

import shutil
from pathlib import Path

import pytest

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.updatedb import UpdateOptions, updatedb
from minutch.errors import FormatError, LockedError, StoreError, UsageError
from minutch.records import crawldatum as codes
from minutch.records.crawldatum import CrawlDatum
from tests.support.commands import command
from tests.support.crawldbs import NOW, context, read_db, write_db, write_segment

run = command("updatedb").run

FETCHED = CrawlDatum(codes.STATUS_FETCH_SUCCESS, 60, 1.0, NOW - 5, signature=None)
GONE = CrawlDatum(codes.STATUS_FETCH_GONE, 60, 1.0, NOW - 5)
LINK = CrawlDatum(codes.STATUS_LINKED, 60, 0.5, NOW - 5)


def segment(tmp_path: Path, name: str, **fetched: CrawlDatum) -> Path:
    return write_segment(
        tmp_path / "segments" / name, [(f"http://{host}/", d) for host, d in fetched.items()]
    )


def statuses(path: Path) -> dict[str, str]:
    return {url: datum.status_name for url, datum in read_db(path).items()}


def test_a_crawldb_is_made_where_there_is_none(tmp_path: Path) -> None:
    given = write_segment(tmp_path / "s", [("http://a/", FETCHED)], [("http://b/", LINK)])
    counters = updatedb(tmp_path / "db", [given], context=context())
    assert statuses(tmp_path / "db") == {"http://a/": "db_fetched", "http://b/": "db_unfetched"}
    assert counters == {"db_unfetched": 1, "db_fetched": 1}


def test_several_segments_the_latest_fetch_counts(tmp_path: Path) -> None:
    later = FETCHED.copy()
    later.fetch_time += 1
    paths = [segment(tmp_path, "1", a=later), segment(tmp_path, "2", a=GONE, b=GONE)]
    updatedb(tmp_path / "db", paths, context=context())
    assert statuses(tmp_path / "db") == {"http://a/": "db_fetched", "http://b/": "db_gone"}


def test_a_segment_without_a_fetch_is_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_db(tmp_path / "db", [("http://a/", CrawlDatum(codes.STATUS_DB_FETCHED))])
    (tmp_path / "empty").mkdir()
    updatedb(tmp_path / "db", [tmp_path / "empty"], context=context())
    assert statuses(tmp_path / "db") == {"http://a/": "db_fetched"}
    assert "skipping" in caplog.text
    assert str(tmp_path / "empty") in caplog.text


def test_nothing_at_all(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nothing to update"):
        updatedb(tmp_path / "db", [tmp_path / "missing"], context=context())
    assert not (tmp_path / "db").exists()


def test_filtering_and_normalizing(tmp_path: Path) -> None:
    entry = CrawlDatum(codes.STATUS_DB_FETCHED, 60, 1.0, 5)
    write_db(
        tmp_path / "db",
        [("http://a/x.gif", entry), ("http://A/../y", entry), ("http://a/keep", entry)],
    )
    given = write_segment(tmp_path / "s", [("http://a/y", GONE)], [("http://a/z.gif", LINK)])
    job = context({"plugin.includes": "urlfilter-regex|urlnormalizer-basic"})
    counters = updatedb(
        tmp_path / "db", [given], UpdateOptions(normalize=True, filtering=True), context=job
    )
    assert statuses(tmp_path / "db") == {"http://a/keep": "db_fetched", "http://a/y": "db_gone"}
    assert counters["URLs rejected by filters"] == 2


def test_purging(tmp_path: Path) -> None:
    kinds = {"a": codes.STATUS_DB_GONE, "b": codes.STATUS_DB_ORPHAN, "c": codes.STATUS_DB_FETCHED}
    write_db(
        tmp_path / "db", [(f"http://{host}/", CrawlDatum(status)) for host, status in kinds.items()]
    )
    job = context({"db.update.purge.404": "true", "db.update.purge.orphans": "true"})
    counters = updatedb(tmp_path / "db", [segment(tmp_path, "1", d=GONE)], context=job)
    assert statuses(tmp_path / "db") == {"http://c/": "db_fetched", "http://d/": "db_gone"}
    assert (counters["gone entries removed"], counters["orphaned entries removed"]) == (1, 1)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 2)])
def test_the_number_of_parts_may_change(tmp_path: Path, before: int, after: int) -> None:
    urls = [f"http://a/{i}" for i in range(30)]
    write_db(
        tmp_path / "db", [(url, CrawlDatum(codes.STATUS_DB_FETCHED)) for url in urls], parts=before
    )
    given = write_segment(tmp_path / "s", [(url, GONE) for url in urls[::3]])
    updatedb(tmp_path / "db", [given], context=context({"mapreduce.job.reduces": str(after)}))
    db = CrawlDb(tmp_path / "db")
    assert len(db.parts()) == after
    gone = {url for url in urls if (entry := db.get(url)) and entry.status == codes.STATUS_DB_GONE}
    assert gone == set(urls[::3])


def test_parts_that_are_no_hash_partitions_are_partitioned_anew(tmp_path: Path) -> None:
    urls = [f"http://a/{i}" for i in range(30)]
    entries = [(url, CrawlDatum(codes.STATUS_DB_FETCHED)) for url in urls]
    write_db(tmp_path / "whole", entries)
    for part in ("part-r-00000", "part-r-00001"):  # the same entries twice
        shutil.copytree(tmp_path / "whole/current/part-r-00000", tmp_path / "db/current" / part)
    updatedb(
        tmp_path / "db",
        [segment(tmp_path, "1", b=GONE)],
        context=context({"mapreduce.job.reduces": "2"}),
    )
    assert len(read_db(tmp_path / "db")) == 31
    assert sum(len(CrawlDb(tmp_path / "db").read_part(i)) for i in range(2)) == 31


def test_a_backup_is_kept_unless_unwanted(tmp_path: Path) -> None:
    given = segment(tmp_path, "1", a=GONE)
    updatedb(tmp_path / "db", [given], context=context())
    updatedb(tmp_path / "db", [given], context=context())
    assert (tmp_path / "db/old").is_dir()
    updatedb(tmp_path / "db", [given], context=context({"db.preserve.backup": "false"}))
    assert not (tmp_path / "db/old").exists()


def test_a_locked_db(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", CrawlDatum(codes.STATUS_DB_FETCHED))])
    (tmp_path / "db/.locked").touch()
    with pytest.raises(LockedError):
        updatedb(tmp_path / "db", [segment(tmp_path, "1", b=GONE)], context=context())
    assert (
        updatedb(
            tmp_path / "db",
            [segment(tmp_path, "2", b=GONE)],
            UpdateOptions(force=True),
            context=context(),
        )["db_gone"]
        == 1
    )


def test_a_damaged_segment_leaves_the_db_as_it_was(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", CrawlDatum(codes.STATUS_DB_FETCHED))])
    given = segment(tmp_path, "1", b=GONE)
    data = given / "crawl_fetch/part-r-00000/data"
    data.write_bytes(data.read_bytes()[:-2])
    with pytest.raises(FormatError, match="crawl_fetch"):
        updatedb(tmp_path / "db", [given], context=context())
    assert statuses(tmp_path / "db") == {"http://a/": "db_fetched"}
    assert sorted(path.name for path in (tmp_path / "db").iterdir()) == ["current"]


def test_the_command(tmp_path: Path) -> None:
    db, given = str(tmp_path / "db"), segment(tmp_path, "1", a=FETCHED)
    segment(tmp_path, "2", b=GONE)
    assert run([db, "-dir", str(given.parent)], context()) == 0
    assert statuses(tmp_path / "db") == {"http://a/": "db_fetched", "http://b/": "db_gone"}
    later = write_segment(tmp_path / "s", [("http://a/", GONE)], [("http://c/", LINK)])
    assert run([db, str(later), "-noAdditions", "-force"], context()) == 0
    assert statuses(tmp_path / "db") == {"http://a/": "db_gone", "http://b/": "db_gone"}


@pytest.mark.parametrize("words", [[], ["-dir", "x"], ["db", "-what"], ["db", "-dir"]])
def test_wrong_command_lines(words: list[str]) -> None:
    with pytest.raises(UsageError, match="Usage: CrawlDb") as caught:
        run(words, context())
    assert caught.value.exit_code == 255


def test_a_folder_of_segments_needs_dir(tmp_path: Path) -> None:
    given = write_segment(tmp_path / "segments/20200101000000", [])
    with pytest.raises(StoreError, match=r"folder of segments .* -dir"):
        run([str(tmp_path / "db"), str(given.parent)], context())
    assert not (tmp_path / "db/current").exists()


def test_links_without_a_host_stay_outside(tmp_path: Path) -> None:
    """A segment of Nutch's has `http:/c` of `<a href="http://">` (RFC 9110, 4.2.1); an entry that
    is there already keeps its fetches.
    """
    entry = CrawlDatum(codes.STATUS_DB_UNFETCHED, 60, 1.0, 5)
    write_db(tmp_path / "db", [("http:/old", entry)])
    given = write_segment(
        tmp_path / "s", [("http:/old", GONE)], [("http:/c", LINK), ("http://b/", LINK)]
    )
    updatedb(tmp_path / "db", [given], context=context())
    assert statuses(tmp_path / "db") == {"http:/old": "db_gone", "http://b/": "db_unfetched"}
