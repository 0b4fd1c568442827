"""Pushing down columns, conditions and slices to the files does not change results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minutch
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.segment.store import Segment
from minutch.inspect.query import skipping
from minutch.inspect.query.crawl import CrawlFolder
from minutch.inspect.query.crawldb import CrawlDbTable, EntryRows
from minutch.inspect.query.predicates import EVERYWHERE, Pruning, intersection, pruning_of, union
from minutch.inspect.query.session import Session
from minutch.inspect.query.table import Request
from minutch.records.crawldatum import CrawlDatum
from minutch.records.crawldatum_columns import CrawlDatumFields
from minutch.work.tables.keyranges import KeyRange
from tests.support.crawldbs import NOW, metadata, write_db
from tests.support.examples import examples
from tests.support.golden import GOLDEN, needs_golden

HOSTS = ("a.org", "b.org:8080", "user@c.org", "d-é.org", "A.ORG")
NAMES = ("a", "index.html", "é", "z/z?q", "\ufffd")
SCHEMES = ("http://", "https://", "ftp://", "")

crawl_columns = ["url", "host", "status", "fetch_time", "retries", "score", "signature", "metadata"]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> CrawlFolder:
    """A crawl of a few thousand URLs, some of them odd, in two partitions."""
    folder = tmp_path_factory.mktemp("crawl")
    urls = [
        f"{scheme}{host}/{name}{number}"
        for scheme in SCHEMES
        for host in HOSTS
        for name in NAMES
        for number in range(100)
    ]
    entries = [
        (
            url,
            CrawlDatum(
                1 + number % 3,
                60,
                number % 7,
                NOW + number,
                0,
                number % 4,
                None,
                metadata(n=str(number % 5)),
            ),
        )
        for number, url in enumerate(urls)
    ]
    write_db(folder / "crawldb", entries, parts=2)
    return minutch.open(folder)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipping, "RANGE_SIZE", 20_000)


def conditions() -> st.SearchStrategy[pl.Expr]:
    """Conditions on URLs, hosts and others, joined by and, or and not."""
    texts = st.sampled_from(
        [
            "http://a.org/",
            "https://b",
            "ftp://user@c.org/z",
            "http://a.org/é1",
            "a",
            "http://a.org/index.html7",
            "zz",
            "",
        ]
    )
    url, host = pl.col("url"), pl.col("host")
    simple = st.one_of(
        texts.map(url.str.starts_with),
        texts.map(lambda text: url == text),
        texts.map(lambda text: pl.lit(text) < url),
        texts.map(lambda text: url <= text),
        texts.map(lambda text: url != text),
        st.lists(texts, max_size=3).map(url.is_in),
        st.tuples(texts, texts).map(lambda pair: url.is_between(*map(pl.lit, pair))),
        st.sampled_from(["a.org", "c.org", "none"]).map(lambda name: host == name),
        st.just(host.is_null()),
        st.just(host.str.ends_with("ORG")),
        st.lists(st.sampled_from(["a.org", "b.org"]), max_size=2).map(host.is_in),
        st.just(pl.col("retries") > 1),
        st.just(pl.col("status") == "db_gone"),
        st.just(pl.col("score").cast(pl.Int32) == pl.col("retries")),
        st.just(pl.col("signature") == "x"),
    )
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]),
            inner.map(lambda one: ~one),
        ),
        max_leaves=4,
    )


@settings(max_examples=examples(30))
@given(
    data=st.data(),
    columns=st.lists(st.sampled_from(crawl_columns), min_size=1, unique=True),
    condition=st.none() | conditions(),
)
def test_a_query_gives_what_filtering_all_rows_gives(
    crawl: CrawlFolder, data: st.DataObject, columns: list[str], condition: pl.Expr | None
) -> None:
    lazy, eager = crawl.crawldb.scan(), crawl.crawldb.scan().collect().lazy()
    offset, length = data.draw(st.integers(0, 50)), data.draw(st.none() | st.integers(0, 3000))
    first = data.draw(st.booleans())

    def ask(table: pl.LazyFrame) -> pl.DataFrame:
        if first and length is not None:
            table = table.head(length)
        if condition is not None:
            table = table.filter(condition)
        return table.select(columns).slice(offset, None if first else length).collect()

    assert ask(lazy).equals(ask(eager))


def test_blocks_of_other_hosts_and_urls_are_not_read(
    crawl: CrawlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    make = EntryRows.__init__

    def counting(self: EntryRows, fields: CrawlDatumFields) -> None:
        seen.append(fields.size)
        make(self, fields)

    monkeypatch.setattr(EntryRows, "__init__", counting)
    table = crawl.crawldb

    def read(condition: pl.Expr) -> int:
        seen.clear()
        assert len(table.scan().filter(condition).select("score").collect()) > 0
        return sum(seen)

    assert read(pl.col("url").str.starts_with("ftp://b.org")) < 3000
    assert read(pl.col("url") == "http://a.org/a1") < 600
    assert read(pl.col("host").str.starts_with("b.o")) < len(table) * 0.9
    assert (
        read(pl.col("host") == "c.org") < len(table) * 0.5
    )  # it may follow a user's name anywhere
    assert read(pl.col("host").is_in(["c.org", "A.ORG"])) < len(table) * 0.8
    assert read(pl.col("score") > 3) >= len(table)


def test_sql_is_read_as_well(crawl: CrawlFolder) -> None:
    asked: list[Pruning] = []

    class Listening(CrawlDbTable):
        def frames(self, request: Request) -> Iterator[pl.DataFrame]:
            asked.append(request.pruning)
            return super().frames(request)

    session = Session(crawl, NOW, {"crawldb": Listening(CrawlDb(crawl.path / "crawldb"))})

    def pruning(condition: str) -> Pruning:
        session.query(f"select c.score from crawldb c where {condition}").collect()
        return asked.pop()

    for condition, urls in (
        ("url = 'b'", (KeyRange(b"b", b"b\0"),)),
        ("url in ('b', 'd')", (KeyRange(b"b", b"b\0"), KeyRange(b"d", b"d\0"))),
        ("url like 'b%'", (KeyRange(b"b", b"c"),)),
        ("starts_with(url, 'b%')", (KeyRange(b"b%", b"b&"),)),
        ("c.url like 'b/_%' and not c.url like '%x'", (KeyRange(b"b/", b"b0"),)),
        ("url between 'b' and 'c' and status = 'db_gone'", (KeyRange(b"b", b"c\0"),)),
        ("lower(url) = 'b'", EVERYWHERE),
    ):
        assert pruning(condition).urls == urls
    assert pruning("host in ('a.org', 'c.org')").words == (b"a.org", b"c.org")


def test_what_a_condition_says_of_urls() -> None:
    url = pl.col("url")
    assert pruning_of(url.str.starts_with("a")).urls == (KeyRange(b"a", b"b"),)
    assert pruning_of((url == "a") | (url == "c")).urls == (
        KeyRange(b"a", b"a\0"),
        KeyRange(b"c", b"c\0"),
    )
    assert pruning_of((url >= "b") & (pl.col("n") > 1)).urls == (KeyRange(b"b", None),)
    assert pruning_of(url.is_in(["b", "a"])).urls == (
        KeyRange(b"a", b"a\0"),
        KeyRange(b"b", b"b\0"),
    )
    assert pruning_of((url == "a") & (url == "b")).urls == ()
    assert pruning_of(url == "é").urls == (KeyRange("é".encode(), "é\0".encode()),)
    for unknown in (
        url > "é",
        url == "\ufffd",
        url != "a",
        ~url.str.starts_with("a"),
        url.str.len_chars() > 3,
        url == pl.col("n"),
        url == pl.Series(["a", "b"]),
        url.is_in(["a", None]),
        url.str.to_lowercase() == "a",
    ):
        assert pruning_of(unknown).urls == EVERYWHERE
    assert pruning_of((url == "a") | (pl.col("n") == 1)).keeps_everything
    named = (url > "b") & pl.col("host").is_in(["a.b", "c-d"])
    assert pruning_of(named).words == (b"a.b", b"c-d")
    assert pruning_of((pl.lit("x") == pl.col("host")) & (url > "b")).words == (b"x",)
    assert pruning_of((pl.col("host") == "x") | (url > "b")).words == ()
    assert pruning_of(pl.col("host") == "é").words == ()
    hosts = pruning_of((pl.col("host") == "a") & (url > "b")).hosts
    assert hosts is not None and hosts.meta.root_names() == ["host"]


ranges = st.lists(st.tuples(st.binary(max_size=2), st.binary(max_size=2)), max_size=4)


@given(first=ranges, second=ranges, key=st.binary(max_size=3))
def test_unions_and_intersections_hold_what_they_should(
    first: list[tuple[bytes, bytes]], second: list[tuple[bytes, bytes]], key: bytes
) -> None:
    def made(pairs: list[tuple[bytes, bytes]]) -> tuple[KeyRange, ...]:
        return union(
            [KeyRange(low or None, high or None) for low, high in pairs if not high or low < high]
        )

    def holds(found: tuple[KeyRange, ...]) -> bool:
        return any((low or b"") <= key and (high is None or key < high) for low, high in found)

    a, b = made(first), made(second)
    assert holds(intersection(a, b)) == (holds(a) and holds(b))
    assert holds(union([*a, *b])) == (holds(a) or holds(b))


@needs_golden("crawl-small/run-rich-r2/crawl")
@pytest.mark.parametrize("name", ["links", "linkdb", "pages", "parses", "hosts", "duplicates"])
def test_other_tables_are_filtered_as_well(name: str) -> None:
    table = minutch.open(GOLDEN / "crawl-small/run-rich-r2/crawl").tables[name]
    everything = table.scan().collect()
    url = "host" if name == "hosts" else "url"
    for condition in (
        pl.col(url).str.contains("a"),
        pl.col(url) == everything[url][2],
        pl.col(url).str.starts_with("http://127.0.0.2"),
        pl.col(url).is_null(),
    ):
        for columns in (everything.columns, everything.columns[-1:], everything.columns[:2]):
            found = table.scan().filter(condition).select(columns).collect()
            assert found.equals(everything.filter(condition).select(columns))
    assert table.scan().head(2).collect().equals(everything.head(2))


def test_a_segment_without_its_parse_has_pages_and_no_parses(tmp_path: Path) -> None:
    (tmp_path / "segments/20260101000000").mkdir(parents=True)
    crawl = minutch.open(tmp_path)
    assert [segment.name for segment in crawl.segments] == ["20260101000000"]
    assert isinstance(crawl.segments[0], Segment)
    assert (len(crawl.tables["pages"]), len(crawl.tables["parses"])) == (0, 0)
    assert (
        crawl.tables["pages"].scan().filter(pl.col("code") == 200).collect().schema
        == crawl.tables["pages"].schema
    )
