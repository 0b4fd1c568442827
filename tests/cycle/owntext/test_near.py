"""Near-duplicates by own text: `dedup -near`, `readdb -duplicates -near`, SQL; and their cache."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minutch
from minutch.cycle.crawldb.dedup import DedupOptions, dedup
from minutch.cycle.owntext import near
from minutch.cycle.owntext.frames import FRAMES
from minutch.cycle.owntext.near import KEYS, NearTexts, band_keys, near_texts
from minutch.cycle.segment.store import segments_in
from minutch.errors import FormatError
from minutch.records import crawldatum as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseText
from tests.cycle.owntext.test_texts import html, prose, site, write
from tests.support.commands import readdb
from tests.support.crawldbs import context, printed, read_db, write_db
from tests.support.examples import examples


def framed(number: int, frame: str, own: str = "") -> str:
    """A page of a hundred words, or of `own`, in a frame of three hundred."""
    links = "".join(f"<li><a href=/{n}>{frame} {prose(1000 + n, 1)[:20]}</a>" for n in range(70))
    return (
        f"<title>Page</title><nav><ul>{links}</ul></nav><div class=text>"
        f"<p>{own or prose(number)}</p></div><footer>{frame}</footer>"
    )


def fetched(crawl: Path, urls: list[str]) -> None:
    """A CrawlDb with these pages, the first ones better."""
    entries = [
        (url, CrawlDatum(codes.STATUS_DB_FETCHED, 60, 9.0 - at / 9, 5, signature=at.to_bytes(16)))
        for at, url in enumerate(urls)
    ]
    write_db(crawl / "crawldb", entries)


def marked(crawl: Path) -> set[str]:
    found = read_db(crawl / "crawldb").items()
    return {url for url, datum in found if datum.status == codes.STATUS_DB_DUPLICATE}


A, B = "http://sea.example", "http://mirror.example"


def test_frames_make_no_page_like_another_and_hide_none(tmp_path: Path) -> None:
    """Pages of one site that have the frame in common are not near; one of another site with
    another frame is, though most of its words are the frame's.
    """
    pages: dict[str, str | ParseText] = {f"{A}/{n}": framed(n, "Sea") for n in range(8)}
    pages |= {f"{B}/{n}": framed(100 + n, "Copies of all") for n in range(7)}
    pages[f"{B}/copy"] = framed(0, "Copies of all", prose(3))
    write(tmp_path, "20240101000000", pages)
    fetched(tmp_path, sorted(pages, reverse=True))
    job = context()
    assert readdb.run([str(tmp_path / "crawldb"), "-duplicates", "-near"], job) == 0
    assert printed(job) == f"2\t{A}/3\n\t0\tdb_fetched\t{B}/copy\n"
    asked = "select url, stays, distance, group_size from near_duplicates"
    found = minutch.open(tmp_path).sql(asked).rows()
    assert found == [(f"{A}/3", f"{A}/3", 0, 2), (f"{B}/copy", f"{A}/3", 0, 2)]
    dedup(tmp_path / "crawldb", DedupOptions(near=-1), context=context())
    assert marked(tmp_path) == {f"{B}/copy"}
    again = context()
    assert readdb.run([str(tmp_path / "crawldb"), "-duplicates", "-near"], again) == 0
    assert printed(again) == printed(job).replace("db_fetched", "db_duplicate")


def test_small_changes_pages_without_text_and_equal_signatures(tmp_path: Path) -> None:
    words = [prose(n, 1) for n in range(30)]
    texts = {
        "1": " ".join(words),
        "2": " ".join([*words[:20], "Other words.", *words[20:]]),
        "3": " ".join(words[:10]),
        "4": "",
        "5": "",
    }
    write(tmp_path, "20240101000000", {f"{A}/{name}": ParseText(t) for name, t in texts.items()})
    fetched(tmp_path, [f"{A}/{n}" for n in "123456"])
    dedup(tmp_path / "crawldb", DedupOptions(near=-1), context=context())
    assert marked(tmp_path) == {f"{A}/2"}
    found = minutch.open(tmp_path).sql("select distance from near_duplicates where url <> stays")
    assert 0 < found.item() < len(KEYS)
    entries = [
        (f"{A}/{n}", CrawlDatum(codes.STATUS_DB_FETCHED, 60, 9.0 - n, 5, signature=b"same" * 4))
        for n in (3, 4, 7)
    ]
    write_db(tmp_path / "other/crawldb", entries)
    shutil.copytree(tmp_path / "segments", tmp_path / "other/segments")
    dedup(tmp_path / "other/crawldb", DedupOptions(near=-1, group="host"), context=context())
    assert marked(tmp_path / "other") == {f"{A}/4", f"{A}/7"}


def offer(number: int, date: str = "") -> str:
    """A text that many pages have, with numbers of one of them."""
    words = " ".join(prose(n, 1).rstrip("0123456789.") for n in range(8))
    return (
        f"Model {100 + number}. {words} Weight {number + 3}.5 kg, {number + 40} by {number + 60}"
        f" cm. In stock: {7 * number}. Price {number + 20}.99 {date}"
    )


def test_numbers_count(tmp_path: Path) -> None:
    """Offers and lists that differ in numbers alone are other pages, a page printed at another time
    is the same.
    """
    words = [prose(n, 1).rstrip("0123456789.") for n in range(30, 60)]
    texts = {f"offer/{n}": offer(n, "Printed on 3 March 2024") for n in range(1, 6)} | {
        f"list/{n}": " ".join(f"{row} {30 * n + at}.{at:02}" for at, row in enumerate(words))
        for n in range(4)
    }
    texts["print/2"] = offer(2, "Printed on 17 March 2024")
    write(tmp_path, "20240101000000", {f"{A}/{name}": ParseText(t) for name, t in texts.items()})
    fetched(tmp_path, [f"{A}/{name}" for name in texts])
    dedup(tmp_path / "crawldb", DedupOptions(near=-1), context=context())
    assert marked(tmp_path) == {f"{A}/print/2"}


def keys_of(crawl: Path, urls: list[str]) -> list[list[int]]:
    found = near_texts(crawl)
    assert found is not None
    rows = found.rows(pl.Series([url.encode() for url in urls]))
    return [found.keys(band, rows).tolist() for band in KEYS]


@settings(max_examples=examples(5), deadline=None)
@given(
    st.lists(
        st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), st.integers(0, 9)),
        min_size=2,
        max_size=4,
    )
)
def test_keys_kept_over_rounds_are_those_of_one_pass(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[dict[tuple[str, int], int]]
) -> None:
    stepwise, whole = tmp_path_factory.mktemp("steps"), tmp_path_factory.mktemp("whole")
    urls = [f"http://{host}.example/{page}" for host in "ab" for page in range(6)]
    for day, some in enumerate(rounds):
        pages: dict[str, str | ParseText] = {
            f"http://{host}.example/{page}": html(number) for (host, page), number in some.items()
        }
        for crawl in (stepwise, whole):
            write(crawl, f"2024010{day}000000", pages)
        keys_of(stepwise, urls)
    assert keys_of(stepwise, urls) == keys_of(whole, urls)


def test_only_pages_of_hosts_that_have_changed_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "20240101000000", site(range(6)) | site(range(6), "other.example"))
    urls = [*site(range(9)), *site(range(9), "other.example")]
    keys_of(tmp_path, urls)
    read, parses = [], near.parses

    def noted(segment: object, only: pl.Series | None = None) -> object:
        read.append(None if only is None else sorted(only))
        return parses(segment, only)  # type: ignore[arg-type]

    monkeypatch.setattr(near, "parses", noted)
    keys_of(tmp_path, urls)
    assert read == []
    write(tmp_path, "20240102000000", site([8], "other.example"))
    keys_of(tmp_path, urls)
    assert read == [sorted(url.encode() for url in site(range(6), "other.example")), None]
    [kept] = (tmp_path / FRAMES).glob("near-*")
    assert {path.name.partition("-")[0] for path in kept.iterdir()} == {
        "20240101000000",
        "20240102000000",
    }


def test_keys_of_another_notion_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = list(site(range(3)))
    write(tmp_path, "20240101000000", site(range(3)))
    expected = keys_of(tmp_path, urls)
    with monkeypatch.context() as before:
        before.setattr(near, "NOTION", "numbers as 0")
        before.setattr(
            near, "band_keys", lambda texts: band_keys(texts.str.replace_all("[0-9]", "0"))
        )
        assert keys_of(tmp_path, urls) != expected
    assert keys_of(tmp_path, urls) == expected


def test_the_newest_text_of_a_page_counts(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", {f"{A}/1": ParseText("a b c"), f"{A}/2": ParseText("d e")})
    write(tmp_path, "20240102000000", {f"{A}/1": ParseText("d e")})
    found = NearTexts(tmp_path, segments_in(tmp_path / "segments"))
    rows = found.rows(pl.Series([f"{A}/1".encode(), f"{A}/2".encode(), b"none"]))
    keys = found.keys(KEYS[0], rows)
    assert keys[0] == keys[1] != keys[2]
    assert len(np.unique(found.keys(KEYS[0], np.full(9, -1)))) == 9


def test_damage_names_the_folder_that_may_be_deleted(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site(range(3)))
    expected = keys_of(tmp_path, list(site(range(3))))
    for path in (tmp_path / FRAMES).glob("near-*/*"):
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"frames.*delete the folder"):
        keys_of(tmp_path, list(site(range(3))))
    shutil.rmtree(tmp_path / FRAMES)
    assert keys_of(tmp_path, list(site(range(3)))) == expected


def test_no_segments_no_texts(tmp_path: Path) -> None:
    assert near_texts(tmp_path) is None
    (tmp_path / "segments/20240101000000").mkdir(parents=True)
    assert near_texts(tmp_path) is None
