"""inject: seeds into the CrawlDb."""

from pathlib import Path

import pytest

from minutch.cycle.crawldb.inject import DUPLICATES, MERGED, NEW, REJECTED, InjectOptions, inject
from minutch.cycle.crawldb.store import CrawlDb
from minutch.errors import FormatError, LockedError, StoreError, UsageError
from minutch.hadoop.formats.writables import FloatWritable, Text
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
)
from tests.support.commands import command
from tests.support.crawldbs import NOW, context, metadata, read_db, write_db

run = command("inject").run

OLD = CrawlDatum(STATUS_DB_FETCHED, 100, 5.0, 7, 8, 1, b"sig", metadata(old="o"))


def seeds(tmp_path: Path, text: str) -> Path:
    folder = tmp_path / "seeds"
    folder.mkdir(exist_ok=True)
    (folder / "seeds.txt").write_text(text, encoding="utf-8")
    return folder


def test_new_urls(tmp_path: Path) -> None:
    given = seeds(
        tmp_path, "http://a/\nhttp://b/\tnutch.score=2.5\tnutch.fetchInterval.fixed=60\tk=v\n"
    )
    counters = inject(tmp_path / "db", given, context=context())
    fixed = metadata(k="v")
    fixed[Text("fixedInterval")] = FloatWritable(60.0)
    assert read_db(tmp_path / "db") == {
        "http://a/": CrawlDatum(STATUS_DB_UNFETCHED, 2592000, 1.0, NOW),
        "http://b/": CrawlDatum(STATUS_DB_UNFETCHED, 60, 2.5, NOW, metadata=fixed),
    }
    assert (counters[NEW], counters[MERGED], counters[DUPLICATES], counters[REJECTED]) == (
        2,
        0,
        0,
        0,
    )


def test_of_repeated_seeds_the_last_line_counts(tmp_path: Path) -> None:
    given = seeds(
        tmp_path, "http://a/\tnutch.score=1\nhttp://a/\tnutch.score=5\n"
    )  # seeds.txt comes last
    (given / "a.txt").write_text(
        "http://a/\tnutch.score=9\nhttp://a/\tnutch.score=2\n", encoding="utf-8"
    )
    counters = inject(tmp_path / "db", given, context=context())
    assert read_db(tmp_path / "db")["http://a/"].score == 5
    assert (counters[NEW], counters[DUPLICATES]) == (1, 3)


def test_the_time_of_injection_may_be_set(tmp_path: Path) -> None:
    inject(
        tmp_path / "db",
        seeds(tmp_path, "http://a/\n"),
        context=context({"injector.current.time": "42"}),
    )
    assert read_db(tmp_path / "db")["http://a/"].fetch_time == 42


def test_known_urls_stay_as_they_are(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", OLD)])
    counters = inject(
        tmp_path / "db", seeds(tmp_path, "http://a/\tnutch.score=9\n"), context=context()
    )
    assert read_db(tmp_path / "db") == {"http://a/": OLD}
    assert (counters[NEW], counters[MERGED]) == (0, 1)


def test_overwrite(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", OLD)])
    inject(
        tmp_path / "db",
        seeds(tmp_path, "http://a/\tk=v\n"),
        InjectOptions(overwrite=True, update=True),
        context=context(),
    )
    expected = CrawlDatum(STATUS_DB_UNFETCHED, 2592000, 1.0, NOW, metadata=metadata(k="v"))
    assert read_db(tmp_path / "db") == {"http://a/": expected}


def test_update(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", OLD), ("http://b/", OLD)])
    text = "http://a/\told=n\tk=v\tnutch.score=9\nhttp://b/\tnutch.fetchInterval=33\nhttp://c/\n"
    inject(tmp_path / "db", seeds(tmp_path, text), InjectOptions(update=True), context=context())
    found = read_db(tmp_path / "db")
    assert found["http://a/"] == CrawlDatum(
        STATUS_DB_FETCHED, 100, 9.0, 7, 8, 1, b"sig", metadata(old="n", k="v")
    )
    assert found["http://b/"] == CrawlDatum(
        STATUS_DB_FETCHED, 33, 5.0, 7, 8, 1, b"sig", metadata(old="o")
    )
    assert found["http://c/"].score == 1.0


def test_every_seed_leaves_through_one_counter(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", OLD)])
    text = "http://a/\nhttp://b/\nhttp://b/\n\n# no\nhttp://c/x.gif\nhttp://d/?q\n"
    job = context({"plugin.includes": "urlfilter-regex"})
    counters = inject(tmp_path / "db", seeds(tmp_path, text), context=job)
    assert (
        counters["seeds"]
        == 5
        == sum(counters[name] for name in (NEW, MERGED, DUPLICATES, REJECTED))
    )
    assert counters[REJECTED] == 2
    assert sorted(read_db(tmp_path / "db")) == ["http://a/", "http://b/"]


def test_rejected_lines_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = "http://a/\nbad url\n" + "".join(f"http://b/{i}.gif\n" for i in range(12))
    job = context({"plugin.includes": "urlfilter-regex|urlnormalizer-basic"})
    counters = inject(tmp_path / "db", seeds(tmp_path, text), context=job)
    assert counters[REJECTED] == 13
    assert "seeds.txt:2: rejected: bad url" in caplog.text
    assert "seeds.txt:11: rejected" in caplog.text
    assert "seeds.txt:12: rejected" not in caplog.text
    assert "and 3 more rejected" in caplog.text


def test_filters_for_all_entries(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/x.gif", OLD), ("http://a/y", OLD)])
    job = context({"plugin.includes": "urlfilter-regex"})
    counters = inject(
        tmp_path / "db",
        seeds(tmp_path, "http://b/\n"),
        InjectOptions(filter_normalize_all=True),
        context=job,
    )
    assert sorted(read_db(tmp_path / "db")) == ["http://a/y", "http://b/"]
    assert counters["entries rejected by filters"] == 1


def test_of_entries_with_one_normalized_url_the_last_one_stays(tmp_path: Path) -> None:
    entries = [
        (f"http://a/{x}", CrawlDatum(STATUS_DB_GONE, fetch_time=i))
        for i, x in enumerate(("", "./", "b/../"))
    ]
    write_db(tmp_path / "db", entries)
    job = context({"plugin.includes": "urlnormalizer-basic"})
    inject(
        tmp_path / "db",
        seeds(tmp_path, "http://b/\n"),
        InjectOptions(filter_normalize_all=True),
        context=job,
    )
    assert read_db(tmp_path / "db")["http://a/"].fetch_time == 2


def test_gone_entries_may_be_purged(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", CrawlDatum(STATUS_DB_GONE)), ("http://b/", OLD)])
    job = context({"db.update.purge.404": "true", "db.update.purge.orphans": "true"})
    counters = inject(tmp_path / "db", seeds(tmp_path, "http://c/\n"), context=job)
    assert sorted(read_db(tmp_path / "db")) == ["http://b/", "http://c/"]
    assert counters["gone entries removed"] == 1


def test_parts(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [(f"http://a/{i}", OLD) for i in range(40)])
    text = "".join(f"http://a/{i}\n" for i in range(20, 60))
    inject(tmp_path / "db", seeds(tmp_path, text), context=context({"mapreduce.job.reduces": "3"}))
    db = CrawlDb(tmp_path / "db")
    assert [path.name for path in db.parts()] == ["part-r-00000", "part-r-00001", "part-r-00002"]
    assert len(read_db(tmp_path / "db")) == 60
    assert all(db.get(f"http://a/{i}") is not None for i in range(60))


def test_the_command(tmp_path: Path) -> None:
    given = seeds(tmp_path, "http://a/\tk=v\n")
    assert run([str(tmp_path / "db"), str(given), "-NoFilter", "-nonormalize"], context()) == 0
    assert run([str(tmp_path / "db"), str(given), "-overwrite"], context(now=5)) == 0
    assert read_db(tmp_path / "db")["http://a/"].fetch_time == 5


@pytest.mark.parametrize("words", [[], ["db"], ["db", "seeds", "-what"], ["db", "seeds", "more"]])
def test_wrong_command_lines(words: list[str]) -> None:
    with pytest.raises(UsageError, match="Usage: Injector") as caught:
        run(words, context())
    assert caught.value.exit_code == 255


def test_no_seeds(tmp_path: Path) -> None:
    (tmp_path / "seeds").mkdir()
    with pytest.raises(StoreError, match="No seed files"):
        inject(tmp_path / "db", tmp_path / "seeds", context=context())
    assert not (tmp_path / "db").exists()


def test_a_locked_db_stays_as_it_was(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", OLD)])
    (tmp_path / "db/.locked").touch()
    with pytest.raises(LockedError, match=r"\.locked"):
        inject(tmp_path / "db", seeds(tmp_path, "http://b/\n"), context=context())
    assert read_db(tmp_path / "db") == {"http://a/": OLD}


def test_a_damaged_db_stays_as_it_was(tmp_path: Path) -> None:
    write_db(tmp_path / "db", [("http://a/", OLD)])
    data = tmp_path / "db/current/part-r-00000/data"
    damaged = data.read_bytes()[:-3]
    data.write_bytes(damaged)
    with pytest.raises(FormatError, match="data"):
        inject(tmp_path / "db", seeds(tmp_path, "http://b/\n"), context=context())
    assert data.read_bytes() == damaged
    assert sorted(path.name for path in (tmp_path / "db").iterdir()) == ["current"]


HOSTLESS = ["http:/c", "http:///c", "http://?q", "https://:80/", "HTTP:c", "http://u@/x", "ftp://"]


def test_urls_without_a_host_stay_outside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """RFC 9110, 4.2.1 and RFC 1738, 3.2: these schemes need one; RFC 8089, 2: file does not."""
    given = seeds(
        tmp_path, "\n".join([*HOSTLESS, "file:///c", "http://u:p@h:8/x", "http://[::1]/"])
    )
    options = InjectOptions(normalize=False, filtering=False)
    counters = inject(tmp_path / "db", given, options, context=context())
    assert sorted(read_db(tmp_path / "db")) == ["file:///c", "http://[::1]/", "http://u:p@h:8/x"]
    assert counters[REJECTED] == len(HOSTLESS)
    assert "no host: http:/c" in caplog.text
