"""generate -hostdb: limits and pauses by expressions over what is known of hosts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from minutch.cycle.fetch.frontier.queueitems import VARIABLE_DELAY_KEY
from minutch.errors import ExpressionError, FormatError, StoreError
from minutch.hadoop.formats.writables import FloatWritable, LongWritable, MapWritable, Text
from minutch.job import JobContext
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.crawldatum_columns import records
from minutch.records.hostdatum import HostDatum
from minutch.urls.parts import host_of
from minutch.work.tables.recordfiles import read
from tests.cycle.hostdb.test_updatehostdb import context, write_hostdb
from tests.support.commands import generate
from tests.support.crawldbs import NOW, write_db

HOSTS = {
    "a.example": HostDatum(
        fetched=20, metadata=MapWritable({Text("pct95._rs_"): FloatWritable(2500.0)})
    ),
    "b.example": HostDatum(unfetched=3, gone=5),
    "other.example": HostDatum(fetched=1000),
}
PAGES = 6


def page(number: int) -> CrawlDatum:
    metadata = MapWritable({Text("k"): Text("v")}) if number % 2 else MapWritable()
    return CrawlDatum(STATUS_DB_UNFETCHED, 86_400, 1.0 + number % 3, NOW, metadata=metadata)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    names = (
        "http://a.example/{}",
        "https://A.example/x{}",
        "http://b.example/{}",
        "http://c.example/{}",
    )
    urls = [name.format(number) for name in names for number in range(PAGES)]
    write_db(tmp_path / "crawldb", [(url, page(number)) for number, url in enumerate(sorted(urls))])
    write_hostdb(tmp_path / "hostdb", HOSTS)
    return tmp_path


def run(
    base: Path, *arguments: str, job: JobContext | None = None, **settings: str
) -> dict[str, CrawlDatum]:
    """What is in the fetch list."""
    words = [
        str(base / "crawldb"),
        str(base / "segments"),
        "-hostdb",
        str(base / "hostdb"),
        *arguments,
    ]
    assert generate.run(words, job or context(**settings)) == 0
    found: dict[str, CrawlDatum] = {}
    for part in (base / "segments").glob("*/crawl_generate/part-*"):
        found |= dict(records(read(part)))
    return found


def by_host(found: dict[str, CrawlDatum]) -> dict[str, int]:
    return dict(Counter(host_of(url).lower() for url in found))


@pytest.mark.parametrize(
    ("expression", "a", "b"),
    [
        ("2", 2, 3),
        ("if (fetched > 10) { return 5; } return 1", 5, 1),
        ("if (fetched > 10) { return 4.5; } return 1.4", 5, 1),
        ("gone", 12, 5),
        ("gone - 100", 12, 6),
        ("pct95._rs_ / 500", 5, 3),
        ("conf.getInt('generate.max.count', 9) + 1", 4, 4),
        ("conf.getDouble('nosuch', 1.6)", 2, 2),
        ("nosuch", 3, 3),
        ("'many'", 3, 3),
        ("fetched > 1", 3, 3),
    ],
)
def test_limits(expression: str, a: int, b: int, base: Path) -> None:
    found = by_host(run(base, generate__max__count="3", generate__max__count__expr=expression))
    expected = {"a.example": a, "b.example": 2 if expression == "2" else b, "c.example": 3}
    assert found == expected


def test_without_an_expression_generate_max_count_holds(base: Path) -> None:
    assert by_host(run(base, generate__max__count="2")) == {
        "a.example": 2,
        "b.example": 2,
        "c.example": 2,
    }


def test_what_gives_no_number_is_reported(base: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(base, generate__max__count__expr="pct95._rs_ + 1")
    assert "generate.max.count.expr: no number for 1 host, such as b.example" in caplog.text


def test_limits_over_several_segments_and_parts(base: Path) -> None:
    job = context(generate__max__count__expr="2", mapreduce__job__reduces="2")
    found = by_host(run(base, "-maxNumSegments", "2", job=job))
    assert found == {"a.example": 4, "b.example": 4, "c.example": 6}
    counted = job.reports["Generator"]
    assert counted["selected_total"] + counted["urls_skipped_per_host_overflow_total"] == 4 * PAGES


def test_pauses(base: Path) -> None:
    found = run(
        base,
        generate__fetch__delay__expr="if (fetched > 10) { return pct95._rs_ * 2; } return 100.5",
    )
    delays = {
        host_of(url).lower(): datum.metadata.get(VARIABLE_DELAY_KEY) for url, datum in found.items()
    }
    assert delays == {
        "a.example": LongWritable(5000),
        "b.example": LongWritable(101),
        "c.example": None,
    }
    assert sum(Text("k") in datum.metadata for datum in found.values()) == 2 * PAGES
    assert all(Text("_ngt_") in datum.metadata for datum in found.values())


def test_the_hostdb_by_property(base: Path) -> None:
    settings = {"generate__hostdb": str(base / "hostdb"), "generate__max__count__expr": "1"}
    words = [str(base / "crawldb"), str(base / "segments")]
    job = context(**settings)
    assert generate.run(words, job) == 0
    assert job.reports["Generator"]["selected_total"] == 2 + PAGES


def test_without_a_hostdb_expressions_are_not_read(base: Path) -> None:
    job = context(generate__max__count__expr="1 +")
    assert generate.run([str(base / "crawldb"), str(base / "segments")], job) == 0
    assert job.reports["Generator"]["selected_total"] == 4 * PAGES


def test_what_goes_wrong(base: Path) -> None:
    with pytest.raises(ExpressionError, match=r"generate\.fetch\.delay\.expr: .*character"):
        run(base, generate__fetch__delay__expr="1 +")
    with pytest.raises(StoreError, match="nosuch/current"):
        run(base, "-hostdb", str(base / "nosuch"))
    with pytest.raises(FormatError, match="HostDatum"):
        run(base, "-hostdb", str(base / "crawldb"))
    assert not (base / "segments").exists()
