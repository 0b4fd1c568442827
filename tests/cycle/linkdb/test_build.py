"""Links become records: each link once, in input order, cut at the limit; whatever the memory,
cores and parts.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.conf import Configuration
from minutch.cycle.linkdb import dump as readlinkdb
from minutch.cycle.linkdb import invertlinks
from minutch.cycle.linkdb.invertlinks import merged
from minutch.cycle.linkdb.rules import LINKS_SCHEMA, REJECTED
from minutch.cycle.linkdb.store import LinkDb
from minutch.job import JobContext
from minutch.work.tables import cacheranges, parallel
from minutch.work.tables.frame import key_order
from minutch.work.tables.shuffle import Shuffle
from tests.cycle.linkdb.test_jobs import Pages, segment
from tests.support.commands import invertlinks as invertlinks_command
from tests.support.examples import examples, few

Row = tuple[str, str, str]
"""URL, where the link is, its anchor."""
Records = dict[str, list[tuple[str, str]]]


def table(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(
        [tuple(text.encode() for text in row) for row in rows], schema=LINKS_SCHEMA, orient="row"
    )


def records_of(tables: list[pl.DataFrame]) -> Records:
    """The records in tables in which the rows of a key lie together; a key must not come twice."""
    found: Records = {}
    last = None
    for key, url, anchor in (
        row for one in tables for row in one.select(LINKS_SCHEMA.names()).iter_rows()
    ):
        assert key == last or key.decode() not in found
        found.setdefault(key.decode(), []).append((url.decode(), anchor.decode()))
        last = key
    return found


def expected_records(rows: list[Row], limit: int) -> Records:
    """Returns the expected records, made in plain Python."""
    found: Records = {}
    for key, url, anchor in rows:
        links = found.setdefault(key, [])
        if (url, anchor) not in links and len(links) < limit:
            links.append((url, anchor))
    return {key: found[key] for key in sorted(found, key=str.encode) if found[key]}


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["k", "m", "http://a.example/long/enough", "ü"]),
        st.integers(0, 9).map(lambda n: f"http://from.example/{'x' * n}{n}"),
        st.sampled_from(["", "anchor", "ein längerer Anker"]),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(ROWS, st.integers(0, 8))
def test_each_link_once_in_input_order(rows: list[Row], limit: int) -> None:
    links = table(rows)
    sets = merged(links, key_order(links, np.arange(len(links), dtype=np.uint32)), limit)
    expected = expected_records(rows, limit)
    assert (sets.records, len(sets)) == (len(expected), sum(map(len, expected.values())))
    assert list(records_of([sets.table()]).items()) == list(expected.items())


def test_large_records() -> None:
    rows = [("k", f"http://h/{i % 700}", "same") for i in range(1400)]
    links = table(rows)
    sets = merged(links, np.arange(len(links), dtype=np.uint32), 10_000)
    assert records_of([sets.table()]) == expected_records(rows, 10_000)
    assert len(sets) == 700


def some_links(random: Random, pages: int) -> Pages:
    def link() -> tuple[str, str]:
        return f"http://to{random.randrange(12)}/", random.choice(("", "one", "two"))

    return {
        f"http://from{random.randrange(40)}/": [link() for _ in range(random.randrange(9))]
        for _ in range(pages)
    }


def rows_of(links: Pages) -> list[Row]:
    """The links the other way round, in the order of a segment of one part."""
    return [(to, url, anchor) for url in sorted(links) for to, anchor in links[url]]


def stored(path: Path) -> Records:
    """The records of a LinkDb, sorted by URL."""
    db = LinkDb(path)
    found = records_of(
        [frame for part in range(len(db.require_parts())) for frame in db.scan_part(part)]
    )
    return dict(sorted(found.items(), key=lambda item: item[0].encode()))


def context(**properties: str) -> JobContext:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    base = {"plugin.includes": "nutch-extensionpoints", "linkdb.ignore.internal.links": "false"}
    return JobContext(Configuration.load([], overrides=base | named))


WAYS = (
    {"mapreduce_job_reduces": "1"},
    {"mapreduce_job_reduces": "3"},
    {"mapreduce_job_reduces": "1", "minutch_memory": "2000"},
    {"mapreduce_job_reduces": "4", "minutch_memory": "300"},
)
"""Configurations under which the same comes out: partitions, and memory that spills."""


@pytest.fixture(params=few([3, 1]), ids=["three cores", "one core"])
def _cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "workers", lambda: request.param)
    monkeypatch.setattr(cacheranges, "RANGE_ROWS", 7)


@pytest.mark.usefixtures("_cores")
@pytest.mark.parametrize("limit", few([4, 10_000]))
def test_stored_links_come_first_then_new_ones_in_input_order(limit: int, tmp_path: Path) -> None:
    random = Random(limit)
    for number in range(examples(3)):
        links = [some_links(random, 20) for _ in range(3)]
        for way, properties in enumerate(WAYS):
            job = context(linkdb_max_inlinks=str(limit), **properties)
            folder = tmp_path / f"{number}-{way}"
            segments = [segment(folder / f"segment{i}", pages) for i, pages in enumerate(links)]
            invertlinks.invertlinks(folder / "db", segments[:2], context=job)
            rows = rows_of(links[0]) + rows_of(links[1])
            assert stored(folder / "db") == expected_records(rows, limit)
            invertlinks.invertlinks(folder / "db", segments[2:], context=job)
            assert stored(folder / "db") == expected_records(rows + rows_of(links[2]), limit)


@pytest.mark.usefixtures("_cores")
def test_linkdbs_are_merged_in_their_order(tmp_path: Path) -> None:
    random = Random(5)
    links = [some_links(random, 25) for _ in range(2)]
    for number, pages in enumerate(links):
        one = segment(tmp_path / f"segment{number}", pages)
        invertlinks.invertlinks(tmp_path / f"db{number}", [one], context=context(**WAYS[number]))
    for way, properties in enumerate(WAYS):
        for order in ((0, 1), (1, 0)):
            output = tmp_path / f"merged-{way}-{order[0]}"
            sources = [tmp_path / f"db{number}" for number in order]
            invertlinks.mergelinkdb(
                output, sources, context=context(linkdb_max_inlinks="6", **properties)
            )
            rows = [row for number in order for row in rows_of(links[number])]
            assert stored(output) == expected_records(rows, 6)


@pytest.mark.usefixtures("_cores")
def test_a_dump_shows_records_as_they_are_stored(tmp_path: Path) -> None:
    links = some_links(Random(6), 30)
    one = segment(tmp_path / "segment", links)
    expected = "".join(
        f"{key}\tInlinks:\n"
        + "".join(f" fromUrl: {url} anchor: {anchor} metadata: \n" for url, anchor in record)
        + "\n"
        for key, record in expected_records(rows_of(links), 10_000).items()
    )
    for way, properties in enumerate(WAYS):
        db, out = tmp_path / f"db{way}", tmp_path / f"dump{way}"
        invertlinks.invertlinks(db, [one], context=context(**properties))
        readlinkdb.readlinkdb_dump(
            db, out, context=context(**properties | {"mapreduce_job_reduces": "1"})
        )
        assert (out / "part-r-00000").read_text(encoding="utf-8") == expected


def test_part_files_are_read_by_name(tmp_path: Path) -> None:
    links = {f"http://from{n}/": [("http://to/", str(n))] for n in range(6)}
    invertlinks.invertlinks(
        tmp_path / "db", [segment(tmp_path / "segment", links, parts=2)], context=context()
    )
    assert [anchor for _, anchor in stored(tmp_path / "db")["http://to/"]] == list("024135")


def test_pages_without_links_have_no_record(tmp_path: Path) -> None:
    links: Pages = {"http://a/": [("http://b/", "x")], "http://c/": []}
    one = segment(tmp_path / "segment", links)
    invertlinks.invertlinks(tmp_path / "db", [one], context=context(mapreduce_job_reduces="2"))
    assert stored(tmp_path / "db") == {"http://b/": [("http://a/", "x")]}
    counters = invertlinks.invertlinks(
        tmp_path / "none", [one], context=context(linkdb_max_inlinks="0")
    )
    assert stored(tmp_path / "none") == {}
    assert counters["inlinks written"] == 0


@pytest.mark.parametrize(
    ("parts", "flags", "shuffled", "rejected"),
    [("2", ["-noNormalize"], 2, 2), ("2", [], 4, 2), ("3", ["-noNormalize", "-noFilter"], 6, 0)],
    ids=["the same parts", "normalized", "other parts"],
)
def test_only_new_links_are_shuffled_where_they_can_be(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parts: str,
    flags: list[str],
    shuffled: int,
    rejected: int,
) -> None:
    """Two links are new, four are stored; two of these the filters reject."""
    plugins = {"plugin_includes": "urlfilter-regex|urlnormalizer-basic"}
    pages: list[Pages] = [
        {
            "http://a/": [("http://b/", "b"), ("http://c/x.gif", "x")],
            "http://d/": [("http://b/", ""), ("ftp://e/", "")],
        },
        {"http://f/": [("http://b/", "f"), ("http://a/", "f")]},
    ]
    segments = [segment(tmp_path / f"segment{number}", some) for number, some in enumerate(pages)]
    stored_links = [str(tmp_path / "db"), str(segments[0]), "-noNormalize", "-noFilter"]
    assert invertlinks_command.run(stored_links, context(mapreduce_job_reduces="2")) == 0
    seen: list[int] = []
    add = Shuffle.add

    def counted(self: Shuffle, frame: pl.DataFrame) -> None:
        seen.append(len(frame))
        add(self, frame)

    monkeypatch.setattr(Shuffle, "add", counted)
    job = context(mapreduce_job_reduces=parts, **plugins)
    assert invertlinks_command.run([str(tmp_path / "db"), str(segments[1]), *flags], job) == 0
    assert sum(seen) == shuffled
    assert job.reports["LinkDb"].get(REJECTED, 0) == rejected
    assert len(stored(tmp_path / "db")["http://b/"]) == 3
    assert len(LinkDb(tmp_path / "db").parts()) == int(parts)
