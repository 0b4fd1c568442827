"""updatehostdb as a command: what is counted, summed up, looked up, kept, and what goes wrong."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.hostdb.statistics import CrawlDatumProcessor
from minutch.cycle.hostdb.store import HostDb
from minutch.errors import ConfigError, FormatError, LockedError, StoreError, UsageError
from minutch.hadoop.formats.writables import (
    FloatWritable,
    IntWritable,
    LongWritable,
    MapWritable,
    Text,
    Writable,
)
from minutch.job import JobContext
from minutch.records.crawldatum import (
    STATUS_DB_DUPLICATE,
    STATUS_DB_FETCHED,
    STATUS_DB_GONE,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_REDIR_PERM,
    STATUS_DB_REDIR_TEMP,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
)
from minutch.records.hostdatum import HostDatum
from minutch.records.protocol import MOVED, ProtocolStatus
from tests.support.commands import updatehostdb
from tests.support.crawldbs import NOW, write_db
from tests.support.examples import few
from tests.support.nameserver import NameServer

PLAIN = {"plugin.includes": "nutch-extensionpoints"}
DAY = 86_400_000


def context(now: int = NOW, **settings: str) -> JobContext:
    given = {name.replace("__", "."): value for name, value in settings.items()}
    conf = Configuration.load([], overrides={**PLAIN, **given})
    return JobContext(conf, clock=FakeClock(now), out=io.StringIO(), err=io.StringIO())


def page(status: int, retries: int = 0, **metadata: Writable) -> CrawlDatum:
    named = MapWritable(
        {
            Text(name.replace("Content_Type", "Content-Type")): value
            for name, value in metadata.items()
        }
    )
    return CrawlDatum(status, 0, 1.0, NOW, retries=retries, metadata=named)


def update(
    tmp_path: Path,
    pages: Mapping[str, CrawlDatum] | None,
    *arguments: str | Path,
    job: JobContext | None = None,
) -> dict[str, HostDatum]:
    """Returns the HostDb after a run on a CrawlDb of `pages`."""
    words = ["-hostdb", str(tmp_path / "hostdb"), *map(str, arguments)]
    if pages is not None:
        write_db(tmp_path / "crawldb", pages.items())
        words += ["-crawldb", str(tmp_path / "crawldb")]
    assert updatehostdb.run(words, job or context()) == 0
    assert not (tmp_path / "hostdb/.locked").exists()
    return dict(HostDb(tmp_path / "hostdb").items())


def described(datum: HostDatum) -> dict[str, str]:
    return {str(key): str(value) for key, value in datum.metadata.items()}


PAGES = {
    "http://a/1": page(STATUS_DB_FETCHED),
    "http://a/2": page(STATUS_DB_NOTMODIFIED, 1),
    "http://a/3": page(STATUS_DB_DUPLICATE),
    "http://a/4": page(STATUS_DB_REDIR_TEMP),
    "http://a:8080/5": page(STATUS_DB_REDIR_PERM, 3),
    "https://A/6": page(STATUS_DB_GONE),
    "https://b/": page(STATUS_DB_UNFETCHED),
    "no url": page(STATUS_DB_UNFETCHED),
}


def test_counts(tmp_path: Path) -> None:
    job = context()
    found = update(tmp_path, PAGES, job=job)
    a = HostDatum(
        unfetched=0,
        fetched=1,
        not_modified=1,
        redir_temp=1,
        redir_perm=1,
        gone=1,
        connection_failures=2,
    )
    assert found == {"a": a, "b": HostDatum(unfetched=1)}
    counted = job.reports["UpdateHostDb"]
    assert counted == {
        "malformed_urls_total": 1,
        "filtered_records_total": 0,
        "counted_urls_total": 7,
        "total_hosts_total": 2,
    }


def test_a_second_run_counts_anew_and_keeps_the_rest(tmp_path: Path) -> None:
    first = update(tmp_path, PAGES)
    assert update(tmp_path, PAGES) == first
    assert update(tmp_path, None) == first
    found = update(tmp_path, {"http://c/": page(STATUS_DB_FETCHED)})
    assert found["a"] == HostDatum()
    assert found["c"] == HostDatum(fetched=1, homepage_url="http://c/")
    assert dict(HostDb(tmp_path / "hostdb").items()) != first
    assert (tmp_path / "hostdb/old").is_dir()
    update(tmp_path, None, job=context(db__preserve__backup="false"))
    assert not (tmp_path / "hostdb/old").exists()


def moved(target: str | None) -> CrawlDatum:
    return page(STATUS_DB_REDIR_PERM, _pst_=ProtocolStatus.of(MOVED, target))


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (
            {"http://a/": page(STATUS_DB_FETCHED), "http://a/x": page(STATUS_DB_FETCHED)},
            "http://a/",
        ),
        ({"http://a/": page(STATUS_DB_UNFETCHED)}, ""),
        ({"http://a/": page(STATUS_DB_FETCHED), "https://a/": page(STATUS_DB_GONE)}, "http://a/"),
        (
            {"http://a/": page(STATUS_DB_FETCHED), "https://a/": page(STATUS_DB_NOTMODIFIED)},
            "https://a/",
        ),
        (
            {"http://a/": moved("https://www.a/"), "https://a/": page(STATUS_DB_GONE)},
            "https://www.a/",
        ),
        ({"http://a/": moved(None)}, ""),
        ({"http://a/": page(STATUS_DB_REDIR_TEMP)}, ""),
        ({"http://a:8080/": page(STATUS_DB_FETCHED), "http://a/?q": page(STATUS_DB_FETCHED)}, ""),
        ({"http://me@a/": page(STATUS_DB_FETCHED)}, ""),
        ({"HTTP://a/": page(STATUS_DB_FETCHED)}, "http://a/"),
    ],
)
def test_home_pages(pages: dict[str, CrawlDatum], expected: str, tmp_path: Path) -> None:
    assert update(tmp_path, pages)["a"].homepage_url == expected


def test_a_home_page_stays_until_there_is_another(tmp_path: Path) -> None:
    update(tmp_path, {"http://a/": page(STATUS_DB_FETCHED)})
    assert (
        update(tmp_path, {"http://a/x": page(STATUS_DB_FETCHED)})["a"].homepage_url == "http://a/"
    )
    assert update(tmp_path, {"https://a/": page(STATUS_DB_GONE)})["a"].homepage_url == "https://a/"


# -- fields ----------------------------------------------------------------------------------------


def test_fields(tmp_path: Path) -> None:
    values: Sequence[Writable] = [
        *map(IntWritable, (1, 2, 3, 40)),
        Text("8.5"),
        Text("x"),
        FloatWritable(float("nan")),
    ]
    pages = {
        f"http://a/{i}": page(STATUS_DB_FETCHED, n=value, kind=Text("t"))
        for i, value in enumerate(values)
    }
    pages |= {"http://a/u": page(STATUS_DB_GONE, n=IntWritable(99), kind=Text("u"))}
    pages |= {"http://a/v": page(STATUS_DB_NOTMODIFIED, kind=LongWritable(-7))}
    settings = {
        "hostdb__numeric__fields": "n,none",
        "hostdb__string__fields": "kind",
        "hostdb__percentiles": "0,50,75,100",
    }
    found = update(tmp_path, pages, job=context(**settings))["a"]
    assert described(found) == {
        "kind.t": "7",
        "kind.-7": "1",
        "min.n": "1.0",
        "max.n": "40.0",
        "avg.n": "10.9",
        "pct0.n": "1.0",
        "pct50.n": "3.0",
        "pct75.n": "8.5",
        "pct100.n": "40.0",
    }


def test_values_that_no_page_has_any_more_go_and_foreign_metadata_stays(tmp_path: Path) -> None:
    types = {
        "http://a/1": page(STATUS_DB_FETCHED, Content_Type=Text("text/html"), _rs_=IntWritable(4))
    }
    datum = HostDatum(
        metadata=MapWritable({Text("mine"): Text("x"), Text("pct33._rs_"): FloatWritable(1.0)})
    )
    write_hostdb(tmp_path / "hostdb", {"a": datum})
    first = described(update(tmp_path, types)["a"])
    assert first.keys() == {
        "mine",
        "Content-Type.text/html",
        "min._rs_",
        "max._rs_",
        "avg._rs_",
    } | {f"pct{n}._rs_" for n in (50, 75, 95, 99)}
    other = {"http://a/1": page(STATUS_DB_FETCHED, Content_Type=Text("image/png"))}
    assert described(update(tmp_path, other)["a"]) == {"mine": "x", "Content-Type.image/png": "1"}
    assert described(update(tmp_path, None)["a"]) == {"mine": "x", "Content-Type.image/png": "1"}


def test_metadata_of_other_classes_stays(tmp_path: Path) -> None:
    status = ProtocolStatus.of(MOVED, "http://a/")
    old = MapWritable(
        {
            Text("status"): status,
            Text("Content-Type.x"): LongWritable(1),
            LongWritable(3): Text("y"),
        }
    )
    write_hostdb(tmp_path / "hostdb", {"a": HostDatum(metadata=old), "b": HostDatum()})
    pages = {
        "http://a/1": page(STATUS_DB_FETCHED, Content_Type=Text("text/html")),
        "http://b/": page(STATUS_DB_GONE),
    }
    found = update(tmp_path, pages)["a"].metadata
    assert found == {
        Text("status"): status,
        LongWritable(3): Text("y"),
        Text("Content-Type.text/html"): LongWritable(1),
    }


def write_hostdb(path: Path, hosts: Mapping[str, HostDatum]) -> None:
    from minutch.hadoop.formats.sequencewriter import SequenceFileWriter

    (path / "current").mkdir(parents=True)
    with SequenceFileWriter(
        path / "current/part-r-00000", Text.class_name, HostDatum.class_name
    ) as writer:
        for host, datum in hosts.items():
            writer.append(Text(host), datum)


@pytest.mark.parametrize("value", ["50,x", "101", "-1", "99.9"])
def test_bad_percentiles(value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"hostdb\.percentiles.*0 to 100"):
        update(tmp_path, PAGES, job=context(hostdb__percentiles=value))


# -- processors ------------------------------------------------------------------------------------


class Retries(CrawlDatumProcessor):
    names = ("num.retries", "num.pages")

    def count(self, url: str, datum: CrawlDatum) -> Sequence[int]:
        return (datum.retries, 1)


OVERDUE = "org.apache.nutch.hostdb.FetchOverdueCrawlDatumProcessor"


def test_processors(tmp_path: Path) -> None:
    late, soon = page(STATUS_DB_UNFETCHED), page(STATUS_DB_UNFETCHED)
    late.fetch_time = NOW - 2 * DAY - 1
    pages = {**PAGES, "http://b/1": late, "http://b/2": soon, "http://c/3": late}
    named = f"{OVERDUE}, tests.cycle.hostdb.test_updatehostdb.Retries"
    found = update(tmp_path, pages, job=context(hostdb__crawldatum__processors=named))
    assert described(found["a"]) == {"num.overdue": "0", "num.retries": "4", "num.pages": "6"}
    assert described(found["b"])["num.overdue"] == described(found["c"])["num.overdue"] == "1"
    settings = {
        "hostdb__crawldatum__processors": OVERDUE,
        "crawl__datum__processor__overdue__time__limit": "-1",
    }
    assert described(update(tmp_path, pages, job=context(**settings))["b"])["num.overdue"] == "3"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nosuch.Class", "or module:Class"),
        ("minutch.cycle.hostdb.store.HostDb", "a class below .*:CrawlDatumProcessor"),
    ],
)
def test_bad_processors(name: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=rf"hostdb\.crawldatum\.processors .*: expected .*{problem}, found '{name}'",
    ):
        update(tmp_path, PAGES, job=context(hostdb__crawldatum__processors=name))
    assert not (tmp_path / "hostdb").exists()


# -- filters, limits, scores -----------------------------------------------------------------------


@pytest.mark.parametrize("by_property", [False, True])
def test_filters_and_normalizers_are_asked_about_the_host(
    by_property: bool, tmp_path: Path
) -> None:
    settings = {
        "plugin.includes": "urlfilter-prefix|urlnormalizer-host",
        "urlfilter.prefix.rules": "http://www.b/",
        "urlnormalizer.hosts.rules": "b www.b",
    }
    settings |= {"hostdb.url.filter": "true", "hostdb.url.normalize": "true"} if by_property else {}
    job = context(**{name.replace(".", "__"): value for name, value in settings.items()})
    write_hostdb(tmp_path / "hostdb", {"a": HostDatum(score=2.0), "b": HostDatum(score=3.0)})
    found = update(tmp_path, PAGES, *(() if by_property else ("-filter", "-normalize")), job=job)
    assert found == {"www.b": HostDatum(score=3.0, unfetched=1)}
    assert job.reports["UpdateHostDb"]["filtered_records_total"] == 7


@pytest.mark.parametrize(
    ("arguments", "settings"), [(["-urlLimit", "2"], {}), ([], {"hostdb__url__limit": "2"})]
)
def test_url_limit(arguments: list[str], settings: dict[str, str], tmp_path: Path) -> None:
    job = context(**settings)
    assert list(update(tmp_path, PAGES, *arguments, job=job)) == ["a"]
    assert job.reports["UpdateHostDb"]["url_limit_not_reached_total"] == 1


def test_scores_of_hosts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "scores").mkdir()
    (tmp_path / "scores/b.txt").write_text("a\t9\nd\t-1\ne\tNaN\n")
    lines = "a\t2.5\r\nb\t 1e1 \n\x1b[31m\tx\x1b[0m\nno score\n\nhttp://C/x\t3f\nb\t4\n"
    (tmp_path / "scores/a.txt").write_bytes(lines.encode())
    (tmp_path / "scores/_hidden").write_text("z\t1")
    job = context()
    found = update(tmp_path, PAGES, "-tophosts", tmp_path / "scores", job=job)
    assert {host: datum.score for host, datum in found.items()} == {
        "a": 2.5,
        "b": 10.0,
        "c": 3.0,
        "d": 0.0,
    }
    assert job.reports["UpdateHostDb"]["scores_that_are_no_numbers_total"] == 3
    assert "a.txt, line 4: expected <host> TAB <score>, found nothing" in caplog.text
    assert "\x1b" not in caplog.text
    update(tmp_path, None)
    assert HostDb(tmp_path / "hostdb")["b"].score == 10.0


# -- look-ups --------------------------------------------------------------------------------------


@pytest.fixture
def server() -> NameServer:
    return NameServer({"a": (60, ["192.0.2.1"]), "xn--bcher-kva.example": (60, ["192.0.2.2"])})


def lookups(server: NameServer, now: int = NOW, **settings: str) -> JobContext:
    includes = "protocol-http|nutch-extensionpoints"
    known = {
        "http__dns__servers": server.address,
        "http__agent__name": "x",
        "plugin__includes": includes,
    }
    return context(now, **{**known, **settings})


def test_hosts_are_looked_up(tmp_path: Path, server: NameServer) -> None:
    pages = {
        **PAGES,
        "http://bücher.example/": page(STATUS_DB_GONE),
        "http://192.0.2.9/": page(STATUS_DB_GONE),
        "http:///x": page(STATUS_DB_GONE),
    }
    with server:
        job = lookups(server)
        found = update(tmp_path, pages, "-checkNew", job=job)
        failures = {"": 0, "192.0.2.9": 0, "a": 0, "b": 1, "bücher.example": 0}
        assert {host: datum.dns_failures for host, datum in found.items()} == failures
        assert {datum.last_check for datum in found.values()} == {NOW}
        counted = job.reports["UpdateHostDb"]
        names = ("checked_hosts_total", "new_known_host_total", "new_unknown_host_total")
        assert [counted[name] for name in names] == [5, 4, 1]
        asked = server.questions.total()
        job = lookups(server, NOW + 1)
        update(tmp_path, None, "-checkAll", job=job)  # nobody is due
        assert server.questions.total() == asked
        assert job.reports["UpdateHostDb"]["skipped_not_eligible_total"] == 5


def test_hosts_that_fail_too_often_are_dropped(tmp_path: Path, server: NameServer) -> None:
    with server:
        found = []
        for day in range(0, 12, 3):
            job = lookups(server, NOW + day * DAY, hostdb__purge__failed__hosts__threshold="2")
            found.append(update(tmp_path, None if day else PAGES, "-checkAll", job=job))
        assert [datum["b"].dns_failures if "b" in datum else None for datum in found] == [
            1,
            2,
            None,
            None,
        ]
        server.names["b"] = (60, ["192.0.2.3"])
        job = lookups(server, NOW)
        assert update(tmp_path, PAGES, "-checkAll", "-force", job=job)["b"].dns_failures == 0


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({}, False),
        ({"hostdb__check__new": "true"}, True),
        ({"hostdb__check__known": "true", "hostdb__check__failed": "true"}, False),
    ],
)
def test_properties_act_where_they_are_set(
    settings: dict[str, str], asked: bool, tmp_path: Path, server: NameServer
) -> None:
    with server:
        update(tmp_path, PAGES, job=lookups(server, **settings))
        assert bool(server.questions) is asked


@pytest.mark.parametrize(
    ("settings", "due"),
    [
        ({"hostdb__recheck__interval": "1000"}, True),
        ({"hostdb__recheck__interval": "3000"}, False),
        ({"hostdb__recheck__interval": "3000", "hostdb__force__check": "true"}, True),
    ],
)
def test_when_a_host_is_looked_up_again(
    settings: dict[str, str], due: bool, tmp_path: Path, server: NameServer
) -> None:
    with server:
        update(tmp_path, PAGES, "-checkAll", job=lookups(server))
        later = update(tmp_path, PAGES, "-checkKnown", job=lookups(server, NOW + 2000, **settings))
    assert later["a"].last_check == (NOW + 2000 if due else NOW)
    assert later["b"].last_check == NOW


# -- parts, memory, errors -------------------------------------------------------------------------


@pytest.mark.parametrize(("parts", "memory"), few([("3", "0"), ("1", "100"), ("3", "100")]))
def test_parts_and_memory_change_nothing(parts: str, memory: str, tmp_path: Path) -> None:
    kinds = [Text(f"type/{number % 7}") for number in range(400)]
    pages = {
        f"http://h{number % 37}.example/{number}": page(
            STATUS_DB_FETCHED, Content_Type=kind, _rs_=IntWritable(number * 7919 % 401)
        )
        for number, kind in enumerate(kinds)
    }
    expected = update(tmp_path / "one", pages)
    settings = {"mapreduce__job__reduces": parts, "minutch__engine__memory": memory}
    for _ in range(2):
        found = update(tmp_path / "other", pages, job=context(**settings))
        assert found == expected
    assert len(HostDb(tmp_path / "other/hostdb").parts()) == int(parts)
    assert [
        path.name
        for path in (tmp_path / "other/hostdb").iterdir()
        if path.name.startswith((".", "_"))
    ] == []


def test_bad_command_lines(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="missing: -hostdb"):
        updatehostdb.run(["-crawldb", str(tmp_path)], context())
    with pytest.raises(UsageError, match="urlLimit"):
        updatehostdb.run(["-hostdb", str(tmp_path), "-urlLimit", "x"], context())
    with pytest.raises(ConfigError, match="threshold"):
        updatehostdb.run(
            ["-hostdb", str(tmp_path)], context(hostdb__purge__failed__hosts__threshold="-2")
        )


def test_bad_sources_leave_the_hostdb_as_it_is(tmp_path: Path) -> None:
    before = update(tmp_path, PAGES)
    (tmp_path / "empty").mkdir()
    for words, error in (
        (["-crawldb", "nosuch"], StoreError),
        (["-crawldb", "empty"], StoreError),
        (["-crawldb", "hostdb"], FormatError),
        (["-tophosts", "nosuch"], StoreError),
        (["-tophosts", "empty"], StoreError),
    ):
        with pytest.raises(error):
            update(tmp_path, None, words[0], tmp_path / words[1])
    data = tmp_path / "crawldb/current/part-r-00000/data"
    content = bytearray(data.read_bytes())
    content[-20] ^= 0xFF
    data.write_bytes(content)
    with pytest.raises(FormatError, match="part-r-00000/data"):
        update(tmp_path, None, "-crawldb", tmp_path / "crawldb")
    assert dict(HostDb(tmp_path / "hostdb").items()) == before
    assert sorted(path.name for path in (tmp_path / "hostdb").iterdir()) == ["current"]


def test_another_database_in_its_place(tmp_path: Path) -> None:
    write_db(tmp_path / "hostdb", PAGES.items())
    with pytest.raises(FormatError, match=r"expected <.*HostDatum>, found <.*CrawlDatum>"):
        update(tmp_path, None)


def test_a_lock_is_respected(tmp_path: Path) -> None:
    db = HostDb(tmp_path / "hostdb")
    with db.lock(), pytest.raises(LockedError):
        update(tmp_path, None)
