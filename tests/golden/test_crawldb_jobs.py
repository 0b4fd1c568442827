"""updatedb, dedup, inject and mergedb on synthetic CrawlDbs: the result is Nutch's, byte for byte.

Where Nutch takes a time from its clock (entries that are new), the record has to be Nutch's in all
else and its time that of the test's clock. Ties are those of `tests/support/ties.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from minutch.job import JobContext
from minutch.records.crawldatum import STATUS_DB_DUPLICATE, CrawlDatum
from tests.support import ties
from tests.support.commands import dedup, inject, mergedb, updatedb
from tests.support.crawldb_golden import (
    NOW,
    Case,
    cases,
    context,
    copy_db,
    parts,
    records,
    with_fetch_time,
)
from tests.support.golden import needs_golden

pytestmark = needs_golden

RUN: dict[str, Callable[[list[str], JobContext], int]] = {
    "updatedb": updatedb.run,
    "dedup": dedup.run,
    "inject": inject.run,
    "mergedb": mergedb.run,
}


def replay(case: Case, tmp_path: Path) -> Path:
    """Run the case; returns the CrawlDb that it wrote."""
    places = {
        "db": str(copy_db(case.folder / "in/crawldb", tmp_path / "crawldb")),
        "seg": str(case.folder / "in/segment"),
        "db2": str(case.folder / "in/crawldb2"),
        "case": str(case.folder),
        "out": str(tmp_path),
    }
    words = [word.format(**places) for word in case.words]
    settings = {
        "plugin.includes": "urlfilter-regex|scoring-opic|urlnormalizer-(pass|regex|basic)"
    } | case.settings
    assert RUN[case.job](words, context(settings)) == 0
    return Path(words[0])


def compare(case: Case, db: Path, new: frozenset[str] = frozenset()) -> None:
    """The CrawlDb is the expected one, part by part; entries in `new` have the clock's time."""
    expected = case.expected()
    found = parts(db)
    assert len(found) == len(expected)
    for mine, wanted in zip(found, expected.values(), strict=True):
        now = [
            (key, with_fetch_time(record, NOW) if key in new else record) for key, record in wanted
        ]
        assert [key for key, _ in mine] == [key for key, _ in wanted]
        differing = [pair for pair in zip(mine, now, strict=True) if pair[0] != pair[1]]
        assert not differing


def kept(case: Case) -> set[str]:
    """The URLs of the CrawlDb that the case does not purge."""
    purged = {
        status
        for name, status in (("db.update.purge.404", "03"), ("db.update.purge.orphans", "08"))
        if case.settings.get(name) == "true"
    }
    return {
        key
        for key, record in records(case.folder / "in/crawldb").items()
        if record[2:4] not in purged
    }


@pytest.mark.parametrize("case", cases("updatedb"), ids=lambda case: case.name)
def test_updatedb(case: Case, tmp_path: Path) -> None:
    fetched = {key for key, _ in _part(case, "crawl_fetch")}
    new = known_after(case) - kept(case) - fetched
    compare(case, replay(case, tmp_path), frozenset(new))


def known_after(case: Case) -> set[str]:
    return {key for records in case.expected().values() for key, _ in records}


def _part(case: Case, name: str) -> list[tuple[str, str]]:
    from tests.support.crawldb_golden import part_records

    return part_records(case.folder / "in/segment" / name / "part-r-00000")


@pytest.mark.parametrize("case", cases("dedup"), ids=lambda case: case.name)
def test_dedup(case: Case, tmp_path: Path) -> None:
    order = case.words[-1] if "-compareOrder" in case.words else "score,fetchTime,urlLength"
    entries = {
        url: CrawlDatum.from_bytes(bytes.fromhex(r))
        for url, r in records(case.folder / "in/crawldb").items()
    }
    tied = ties.undecided(entries, order.split(","))
    for mine, nutch in zip(parts(replay(case, tmp_path)), case.expected().values(), strict=True):
        assert [key for key, _ in mine] == [key for key, _ in nutch]
        for (key, record), (_, wanted) in zip(mine, nutch, strict=True):
            as_it_was = entries[key].to_bytes().hex()
            assert record == wanted or (
                key in tied and record == as_duplicate(as_it_was) and wanted == as_it_was
            )


def as_duplicate(record: str) -> str:
    """A record in hex with the status db_duplicate."""
    return f"{record[:2]}{STATUS_DB_DUPLICATE:02x}{record[4:]}"


@pytest.mark.parametrize("case", cases("mergedb"), ids=lambda case: case.name)
def test_mergedb(case: Case, tmp_path: Path) -> None:
    merged = replay(case, tmp_path / "forward")
    output, *words = case.words
    dbs = [word for word in words if word.startswith("{")]
    options = [word for word in words if not word.startswith("{")]
    other_way = replace(case, words=[output, *reversed(dbs), *options])
    both = ties.in_any_order([records(merged), records(replay(other_way, tmp_path / "backward"))])
    for mine, nutch in zip(parts(merged), case.expected().values(), strict=True):
        assert [key for key, _ in mine] == [key for key, _ in nutch]
        assert all(record in both[key] for key, record in nutch)


@pytest.mark.parametrize("case", cases("inject"), ids=lambda case: case.name)
def test_inject(case: Case, tmp_path: Path) -> None:
    before = dict(record for part in parts(case.folder / "in/crawldb") for record in part)
    injected_time = _time_of_new(case, before)
    new = {
        key
        for part in case.expected().values()
        for key, record in part
        if record[4:20] == injected_time
    }
    compare(case, replay(case, tmp_path), frozenset(new))


def _time_of_new(case: Case, before: dict[str, str]) -> str:
    """The one time, in hex, of the entries that Nutch injected."""
    times = {
        record[4:20]
        for part in case.expected().values()
        for key, record in part
        if key not in before
    }
    assert len(times) == 1
    return times.pop()
