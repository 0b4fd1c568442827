"""dedup with db.canonical: twins are marked whatever the order, and come back; over rounds."""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minutch.cycle.crawldb import canonical, dedup, twins
from minutch.cycle.crawldb.dedup import DedupOptions
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.owntext import claims
from minutch.cycle.owntext.frames import FRAMES
from minutch.cycle.segment.store import PARSE_DATA, PARSE_TEXT, part_writer
from minutch.errors import FormatError
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records import crawldatum as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import CANONICAL_KEY, HREFLANG_KEY, TWIN_KEY, VERSIONS_KEY, Metadata
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus, ParseText
from tests.cycle.crawldb.test_canonical import walked
from tests.support.commands import readdb
from tests.support.crawldbs import context, printed, read_db, write_db
from tests.support.examples import examples

ROOT = "http://sea.org"
FETCHED, MARKED = codes.STATUS_DB_FETCHED, codes.STATUS_DB_DUPLICATE
CONF = {"db.canonical": "domain"}
WORDS = [f"{a}{b}" for a in ("ka", "lo", "mi", "ru", "te") for b in ("ra", "ndo", "shi", "pel")]


def prose(seed: int, more: str = "") -> str:
    return " ".join([*random.Random(seed).choices(WORDS, k=120), more])


class Page(NamedTuple):
    """A text, and what the page says of itself."""

    text: str
    says: str | None = None
    own: str = ""
    versions: str = ""


@dataclass
class Crawl:
    """A crawl whose rounds are written by hand."""

    path: Path
    rounds: int = 0

    def fetch(self, pages: dict[str, Page], scores: dict[str, float] | None = None) -> None:
        """One round's segment, and its pages in the CrawlDb, as updatedb leaves them."""
        self.rounds += 1
        segment = self.path / f"segments/202401{self.rounds:02}000000"
        db = self.path / "crawldb"
        entries = read_db(db) if db.exists() else {}
        with (
            part_writer(segment, PARSE_DATA, 0) as put_data,
            part_writer(segment, PARSE_TEXT, 0) as put_text,
        ):
            for name, page in sorted(pages.items()):
                url = f"{ROOT}/{name}"
                said = {
                    CANONICAL_KEY: page.says and f"{ROOT}/{page.says}",
                    HREFLANG_KEY: page.own,
                    VERSIONS_KEY: page.versions,
                }
                meta = Metadata()
                for key, value in said.items():
                    if value:
                        meta.set(key, value)
                put_data(url, ParseData(status=ParseStatus(SUCCESS), parse_meta=meta))
                put_text(url, ParseText(page.text))
                before = entries.get(url)
                score = (scores or {}).get(name, 1.0)
                datum = CrawlDatum(FETCHED, 60, score, 5, signature=_signature(page.text))
                datum.metadata = (
                    MapWritable({Text("a"): Text("b")}) if before is None else before.metadata
                )
                entries[url] = datum
        self._write(entries)

    def gone(self, name: str) -> None:
        entries = read_db(self.path / "crawldb")
        entries[f"{ROOT}/{name}"].status = codes.STATUS_DB_GONE
        self._write(entries)

    def _write(self, entries: dict[str, CrawlDatum]) -> None:
        write_db(self.path / "crawldb", sorted(entries.items()), parts=2)

    def dedup(self, **conf: str) -> dict[str, int]:
        job = context({"mapreduce.job.reduces": "2", **CONF, **conf})
        counters = dedup.dedup(self.path / "crawldb", DedupOptions(), context=job)
        assert sum(counters.values()) == len(read_db(self.path / "crawldb"))
        return dict(counters)

    def state(self) -> dict[str, tuple[int, str | None]]:
        """Of each page the status, and its original's name."""
        found = {}
        for url, datum in read_db(self.path / "crawldb").items():
            assert datum.metadata is not None
            assert datum.metadata.get_text("a") == "b", "others' metadata stays"
            original = datum.metadata.get_text(TWIN_KEY)
            name = None if original is None else original.removeprefix(f"{ROOT}/")
            found[url.removeprefix(f"{ROOT}/")] = datum.status, name
        return found


def _signature(text: str) -> bytes:
    return text.encode().ljust(16)[:16] if len(text) < 16 else random.Random(text).randbytes(16)


def test_the_original_stays_whatever_the_order(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.fetch(
        {
            "original": Page(prose(1)),
            "x": Page(prose(1), "original"),
            "print": Page(prose(1, "Printed on 3 May"), "original"),
            "other": Page(prose(2), "original"),
        },
        {"x": 9.0},
    )
    counters = crawl.dedup()
    twin = MARKED, "original"
    expected = {"original": (FETCHED, None), "x": twin, "print": twin, "other": (FETCHED, None)}
    assert crawl.state() == expected
    assert counters[dedup.TWINS] == 2
    before = read_db(tmp_path / "crawldb")
    crawl.dedup()
    assert read_db(tmp_path / "crawldb") == before
    job = context()
    readdb.run([str(tmp_path / "crawldb"), "-duplicates"], job)
    assert printed(job).splitlines()[0] == f"3\t{ROOT}/original"
    job = context()
    readdb.run([str(tmp_path / "crawldb"), "-url", f"{ROOT}/print"], job)
    assert f"{TWIN_KEY}={ROOT}/original" in printed(job)


def test_off_by_default_the_better_page_stays(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.fetch({"original": Page(prose(1)), "x": Page(prose(1), "original")}, {"x": 9.0})
    crawl.dedup(**{"db.canonical": "none"})
    assert crawl.state() == {"original": (MARKED, None), "x": (FETCHED, None)}
    assert not (tmp_path / FRAMES).exists()
    crawl.dedup()
    assert crawl.state() == {"original": (FETCHED, None), "x": (MARKED, "original")}


def test_twins_come_back(tmp_path: Path) -> None:
    """When the page drops its link or changes, and when the original changes or is gone."""
    crawl = Crawl(tmp_path)
    seeds = {"original": 1, "going": 11, "changing": 12}
    names = {"drops": "original", "changes": "original", "stays": "original"} | {
        "left": "going",
        "moved": "changing",
    }
    pages = {name: Page(prose(seeds[original]), original) for name, original in names.items()}
    crawl.fetch(pages | {name: Page(prose(seed)) for name, seed in seeds.items()})
    crawl.dedup()
    assert {crawl.state()[name][0] for name in names} == {MARKED}
    crawl.fetch(
        {
            "drops": Page(prose(1, "dropped its link")),
            "changes": Page(prose(3), "original"),
            "changing": Page(prose(4)),
        }
    )
    crawl.gone("going")
    crawl.dedup()
    found = crawl.state()
    assert {name: found[name] for name in names} == {
        "drops": (FETCHED, None),
        "changes": (FETCHED, None),
        "stays": (MARKED, "original"),
        "left": (FETCHED, None),
        "moved": (FETCHED, None),
    }


def test_what_is_not_parsed_here_stays_as_it_was(tmp_path: Path) -> None:
    """Segments may be deleted: then a twin is one as long as its original is there."""
    crawl = Crawl(tmp_path)
    crawl.fetch({"x": Page(prose(1), "original"), "y": Page(prose(2), "other")})
    crawl.fetch({"original": Page(prose(1)), "other": Page(prose(2))})
    crawl.dedup()
    shutil.rmtree(tmp_path / "segments/20240101000000")
    crawl.gone("other")
    crawl.dedup()
    assert crawl.state()["x"] == (MARKED, "original")
    assert crawl.state()["y"] == (FETCHED, None)


def test_versions_and_rules_are_heard(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    pages = {
        "us": Page(prose(1), "uk", "en-us", "en-gb"),
        "uk": Page(prose(1), None, "en-gb"),
        "at": Page(prose(2), "de", "de-at"),
        "de": Page(prose(2), None, "de"),
        "x": Page(prose(3), "original#top"),
        "original": Page(prose(3)),
    }
    crawl.fetch(pages, {"x": 9.0})
    found = twins.CanonicalTwins(CrawlDb(tmp_path / "crawldb"), context(CONF).conf)
    assert found.why(f"{ROOT}/us")["why"].to_list() == [canonical.VERSIONS]
    assert found.why(f"{ROOT}/at")["why"].to_list() == [canonical.VERSIONS]
    assert found.why(f"{ROOT}/x")["why"].to_list() == [canonical.UNKNOWN]
    assert found.why(f"{ROOT}/uk").is_empty()
    crawl.dedup(**{"plugin.includes": "urlnormalizer-basic"})
    assert crawl.state()["x"] == (MARKED, "original")


def test_memory_and_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In many parts, which domains are in by hash, the same is found; damage is named."""
    crawl = Crawl(tmp_path)
    crawl.fetch(
        {f"x{n}": Page(prose(n), f"o{n}") for n in range(9)}
        | {f"o{n}": Page(prose(n)) for n in range(9)}
    )
    db = CrawlDb(tmp_path / "crawldb")

    def all_changes() -> list[tuple[bytes, bytes]]:
        tables = list(twins.CanonicalTwins(db, context(CONF).conf).changes())
        return sorted(row for table in tables for row in table.iter_rows())

    whole = all_changes()
    assert len(whole) == 9
    monkeypatch.setattr(claims.PageClaims, "parts", lambda *_: 7)
    assert all_changes() == whole
    for path in (tmp_path / FRAMES).glob("claims-*/*"):
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FormatError, match=r"frames.*delete the folder"):
        all_changes()


pages_ = st.dictionaries(
    st.integers(0, 5), st.tuples(st.integers(0, 2), st.none() | st.integers(0, 5)), min_size=1
)


@settings(max_examples=examples(8), deadline=None)
@given(st.lists(pages_, min_size=1, max_size=4))
def test_over_rounds_twins_are_those_of_the_newest_parses(
    tmp_path_factory: pytest.TempPathFactory,
    rounds: list[dict[int, tuple[int, int | None]]],
) -> None:
    """What was marked before does not matter: after each dedup, pages with an original are those
    that all newest parses show, an original is no twin, and of each text that was just fetched one
    page stays. Of others, too, but where a page that stayed says something else now: as in Nutch,
    those that were marked for it wait for their next visit.
    """
    crawl, newest = Crawl(tmp_path_factory.mktemp("crawl")), dict[str, Page]()
    for some in rounds:
        pages = {
            f"p{number}": Page(prose(text), None if says is None else f"p{says}")
            for number, (text, says) in some.items()
        }
        newest |= pages
        crawl.fetch(pages, {f"p{number}": 1.0 + number for number in some})
        crawl.dedup()
        found = crawl.state()
        links = {name: page.says for name, page in newest.items() if page.says}
        texts = {name: page.text for name, page in newest.items()}
        expected = walked(links, texts)
        assert {name: original for name, (_, original) in found.items()} == {
            name: expected.get(name) for name in newest
        }
        for status, original in found.values():
            if original is not None:
                assert status == MARKED
                assert found[original][1] is None
        kept = [texts[name] for name, (status, _) in found.items() if status == FETCHED]
        assert len(kept) == len({*kept})
        assert {*kept} >= {page.text for page in pages.values()}


def test_a_damaged_segment_ends_dedup_and_leaves_nothing_behind(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path)
    crawl.fetch({"original": Page(prose(1)), "x": Page(prose(1, "and more"), "original")})
    before = read_db(tmp_path / "crawldb")
    [file] = tmp_path.glob("segments/*/parse_text/*/data")
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(FormatError, match="parse_text"):
        crawl.dedup()
    assert not list((tmp_path / FRAMES).glob(".use-*"))
    assert read_db(tmp_path / "crawldb") == before
