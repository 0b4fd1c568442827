"""dedup: which pages are duplicates, and the job."""

from pathlib import Path
from random import Random
from urllib.parse import unquote

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minutch.cycle.crawldb.dedup import MARKED, DedupOptions, dedup
from minutch.cycle.crawldb.duplicates import decoded_length, find
from minutch.errors import LockedError, StoreError, UsageError
from minutch.records import crawldatum as codes
from minutch.records.crawldatum import CrawlDatum
from tests.support.commands import command
from tests.support.crawldbs import context, read_db, write_db
from tests.support.examples import tabled

run = command("dedup").run

Page = tuple[bytes, str, float, int]  # group, URL, score, fetch time

# -- the decision, page by page --------------------------------------------------------------------


def reference(pages: list[Page], order: list[str]) -> set[str]:
    """The URLs of the duplicates: each page against the one kept so far, best first."""
    found: set[str] = set()
    kept: dict[bytes, Page] = {}
    for page in sorted(
        pages, key=lambda page: (*[-number(page, name) for name in order], page[1].encode())
    ):
        group = page[0]
        if group not in kept:
            kept[group] = page
            continue
        verdict = better(page, kept[group], order)
        if verdict:
            found.add((kept[group] if verdict > 0 else page)[1])
        if verdict > 0:
            kept[group] = page
    return found


def number(page: Page, name: str) -> float:
    """Returns the criterion that is higher in the page that stays."""
    return {"score": page[2], "fetchTime": page[3], "urlLength": -len(unquote(page[1]))}.get(
        name, 0
    )


def better(new: Page, kept: Page, order: list[str]) -> int:
    """1 if `new` is better than `kept`, -1 if it is worse, 0 if nothing decides."""
    for name in order:
        if name == "score" and new[2] != kept[2]:
            return 1 if new[2] > kept[2] else -1
        if name == "fetchTime" and new[3] != kept[3]:
            return 1 if new[3] > kept[3] else -1
        if name == "urlLength" and len(unquote(new[1])) != len(unquote(kept[1])):
            return 1 if len(unquote(new[1])) < len(unquote(kept[1])) else -1
        if name == "httpsOverHttp":
            if new[1].startswith("https:") and kept[1] == new[1].replace("https:", "http:", 1):
                return 1
            if kept[1].startswith("https:") and new[1] == kept[1].replace("https:", "http:", 1):
                return -1
    return 0


urls = st.sampled_from(
    ["http://a/", "https://a/", "http://a/bc", "http://a/%41c", "http://a/é", "https://a/bc"]
)
pages = st.lists(
    st.tuples(st.sampled_from([b"1", b"2"]), urls, st.sampled_from([1.0, 2.0]), st.integers(1, 2)),
    max_size=6,
    unique_by=lambda page: page[1],
)
orders = st.permutations(["score", "fetchTime", "urlLength", "httpsOverHttp", "unknown"])


def duplicates(pages: list[Page], order: list[str]) -> set[str]:
    table = pl.DataFrame(
        [(group, url.encode(), score, time) for group, url, score, time in pages],
        schema={"key": pl.Binary, "url": pl.Binary, "score": pl.Float32, "fetch_time": pl.Int64},
        orient="row",
    )
    return {url.decode() for url in find(table, order)}


@given(pages, orders, st.booleans(), st.randoms())
def test_as_page_by_page(
    some: list[Page], order: list[str], with_https: bool, random: Random
) -> None:
    order = order if with_https else [name for name in order if name != "httpsOverHttp"]
    expected = reference(some, order)
    assert duplicates(some, order) == expected
    random.shuffle(some)
    assert duplicates(some, order) == expected


@given(pages, orders)
def test_of_each_group_some_page_stays(some: list[Page], order: list[str]) -> None:
    found = duplicates(some, order)
    assert {page[0] for page in some if page[1] not in found} == {page[0] for page in some}


def test_pages_that_equal_one_another_but_not_the_best_are_duplicates() -> None:
    group = [(b"g", f"http://a/{i}", score, 1) for i, score in enumerate((1.0, 2.0, 1.0, 2.0))]
    assert duplicates(group, ["score", "fetchTime", "urlLength"]) == {"http://a/0", "http://a/2"}


@tabled(
    ("url", "length"),
    [
        ("abc", 3),
        ("%41%42", 2),
        ("%C3%A9", 1),
        ("%C3x", 2),
        ("%F0%9F%98%80", 2),
        ("a+b", 3),
        ("%4", 2),
        ("%zz", 3),
        ("%-1", 3),
        ("%+1", 1),
        ("😀", 2),
    ],
)
def test_lengths_as_java_counts_them(url: str, length: int) -> None:
    assert decoded_length(url) == length


# -- the job ---------------------------------------------------------------------------------------


def page(
    score: float, status: int = codes.STATUS_DB_FETCHED, signature: bytes | None = b"same"
) -> CrawlDatum:
    return CrawlDatum(status, 60, score, 5, signature=signature)


ENTRIES = [
    ("http://a.org/1", page(1.0)),
    ("http://a.org/2", page(2.0)),
    ("http://b.org/3", page(3.0, codes.STATUS_DB_NOTMODIFIED)),
    ("http://b.org/4", page(9.0, codes.STATUS_DB_GONE)),
    ("http://b.org/5", page(0.5, signature=None)),
    ("http://b.org/6", page(0.5, signature=b"other")),
    ("http://sub.a.org/7", page(0.25)),
]


def marked(path: Path) -> set[str]:
    return {
        url[-1] for url, datum in read_db(path).items() if datum.status == codes.STATUS_DB_DUPLICATE
    }


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize(
    ("group", "expected"), [("none", {"1", "2", "7"}), ("host", {"1"}), ("domain", {"1", "7"})]
)
def test_groups(tmp_path: Path, parts: int, group: str, expected: set[str]) -> None:
    write_db(tmp_path / "db", ENTRIES, parts=parts)
    job = context({"mapreduce.job.reduces": str(parts)})
    counters = dedup(tmp_path / "db", DedupOptions(group=group), context=job)
    assert marked(tmp_path / "db") == expected
    assert counters == {MARKED: len(expected), "other entries": len(ENTRIES) - len(expected)}


def test_with_little_memory(tmp_path: Path) -> None:
    entries = [(f"http://a.org/{i}", page(float(i), signature=bytes([i % 5]))) for i in range(40)]
    write_db(tmp_path / "db", entries, parts=2)
    job = context({"minutch.memory": "100", "mapreduce.job.reduces": "2"})
    counters = dedup(tmp_path / "db", context=job)
    assert counters[MARKED] == 35
    kept = {
        url
        for url, datum in read_db(tmp_path / "db").items()
        if datum.status == codes.STATUS_DB_FETCHED
    }
    assert kept == {f"http://a.org/{i}" for i in range(35, 40)}
    assert sorted(path.name for path in (tmp_path / "db").iterdir()) == ["current", "old"]


def test_groups_that_share_a_hash_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "minutch.cycle.crawldb.duplicates.may_repeat", lambda groups: groups.is_not_null()
    )
    write_db(tmp_path / "db", ENTRIES)
    assert dedup(tmp_path / "db", context=context())[MARKED] == 3
    assert marked(tmp_path / "db") == {"1", "2", "7"}


def test_only_the_status_changes(tmp_path: Path) -> None:
    write_db(tmp_path / "db", ENTRIES)
    dedup(tmp_path / "db", context=context())
    before, after = dict(ENTRIES), read_db(tmp_path / "db")
    assert after.keys() == before.keys()
    assert all(after[url] == before[url] or url[-1] in {"1", "2", "7"} for url in after)
    assert after["http://a.org/1"].signature == b"same"


def test_purging_as_in_nutch(tmp_path: Path) -> None:
    write_db(tmp_path / "db", ENTRIES)
    dedup(tmp_path / "db", context=context({"db.update.purge.404": "true"}))
    assert "http://b.org/4" not in read_db(tmp_path / "db")


def test_the_command(tmp_path: Path) -> None:
    write_db(tmp_path / "db", ENTRIES)
    assert (
        run(
            [str(tmp_path / "db"), "-group", "host", "-compareOrder", "urlLength,fetchTime,score"],
            context(),
        )
        == 0
    )
    assert marked(tmp_path / "db") == {"1"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Usage"),
        (["db", "-group", "page"], "none, host or domain"),
        (["db", "-compareOrder", "score"], "among others"),
        (["db", "-what"], "unknown option"),
    ],
)
def test_wrong_command_lines(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(words, context())


def test_no_db_and_a_locked_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        dedup(tmp_path / "db", context=context())
    assert not (tmp_path / "db").exists()
    write_db(tmp_path / "db", ENTRIES)
    (tmp_path / "db/.locked").touch()
    with pytest.raises(LockedError):
        dedup(tmp_path / "db", context=context())
