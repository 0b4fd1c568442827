"""cycle.owntext: what of a page is its own, with more and more pages of its site."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import minutch
from minutch import processwide
from minutch.cycle.owntext import frames
from minutch.cycle.owntext.frames import FRAMES, MOST, PARTS, SiteFrames, count
from minutch.cycle.owntext.texts import own_text, own_texts
from minutch.cycle.parse.dispatch import ParserFactory, ParseUtil
from minutch.cycle.segment.store import PARSE_DATA, PARSE_TEXT, Segment, part_writer, segments_in
from minutch.errors import FormatError
from minutch.inspect.corpus import rows as corpus_rows
from minutch.inspect.search.searcher import search
from minutch.records.parsedata import SUCCESS, ParseData, ParseStatus, ParseText
from minutch.records.textblocks import BLOCKS_KEY
from minutch.work.tables.lock import Owner
from tests.support.crawldbs import context
from tests.support.examples import examples
from tests.support.indexedcrawl import IndexedCrawl, Page
from tests.support.pages import configuration, content

WORDS = ["tide", "moon", "water", "coast", "harbour", "sailor", "wave", "wind", "stone", "boat"]
NOTE = (
    "<p>We write about the sea for sailors who would like to know more of it, and you may write "
    "with us if you have been there.</p>"
)
CONF = configuration(**{"parser.html.text": "blocks"})
PARSER = ParseUtil(CONF)
PARSERS = ParserFactory(CONF)


def prose(number: int, sentences: int = 3) -> str:
    rng = random.Random(number)
    return " ".join(
        " ".join(rng.choices(WORDS, k=12)).capitalize() + f" {number}." for _ in range(sentences)
    )


def html(number: int, note: str = NOTE) -> str:
    """A page with three paragraphs of its own, and a note that reads like one."""
    own = "".join(f"<p>{prose(10 * number + part)}</p>" for part in range(3))
    return (
        f"<title>Page</title><nav><a href=/>Home</a></nav><div class=text><h1>Page {number}</h1>"
        f"{own}</div><div class=promo>{note}</div><footer>Imprint</footer>"
    )


def write(crawl: Path, name: str, pages: Mapping[str, str | ParseText]) -> Segment:
    """A segment with these pages, parsed; a ParseText is one that somebody else has made."""
    segment = crawl / "segments" / name
    with (
        part_writer(segment, PARSE_DATA, 0) as put_data,
        part_writer(segment, PARSE_TEXT, 0) as put_text,
    ):
        for url, page in sorted(pages.items()):
            data, text = ParseData(status=ParseStatus(SUCCESS)), page
            if isinstance(page, str):
                parse = PARSER.parse(content(page, url=url))[url]
                data, text = parse.data, ParseText(parse.text)
            put_data(url, data)
            put_text(url, text)
    return Segment(segment)


def site(numbers: range | list[int], host: str = "sea.example") -> dict[str, str | ParseText]:
    return {f"http://{host}/{number:03}": html(number) for number in numbers}


def texts(crawl: Path, segments: list[Segment] | None = None) -> pl.DataFrame:
    found = segments_in(crawl / "segments") if segments is None else segments
    return pl.concat(own_texts(crawl, found))


def test_a_first_page_is_read_alone_and_more_pages_show_the_frame(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site([1]))
    [alone] = texts(tmp_path)["text"]
    assert all(prose(10 + part) in alone for part in range(3))
    assert "Home" not in alone
    assert "for sailors" in alone  # as probable as the rest, by this page
    write(tmp_path, "20240102000000", site(range(2, 30)))
    found = texts(tmp_path)
    assert found["url"].to_list() == sorted(site(range(1, 30)))
    assert found["segment"].unique().sort().to_list() == ["20240101000000", "20240102000000"]
    for number, text in zip(range(1, 30), found["text"], strict=True):
        assert text.split("\n") == [
            f"Page {number}",
            *(prose(10 * number + part) for part in range(3)),
        ]


def test_kept_has_the_numbers_of_the_own_lines(tmp_path: Path) -> None:
    segment = write(tmp_path, "20240101000000", site(range(20)))
    for url, text, kept in texts(tmp_path).select("url", "text", "kept").rows():
        [stored] = segment.get(PARSE_TEXT, url)
        lines = stored.text.split("\n")
        assert "\n".join(lines[number] for number in kept) == text
        page = content(html(int(url[-3:])), url=url)
        markdown = PARSERS.parsers(page.content_type)[0].markdown(page, kept=kept)
        assert markdown is not None
        assert markdown.startswith("# Page")
        assert "sailors" not in markdown


def test_one_page_is_as_among_all(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site(range(9)))
    write(tmp_path, "20240102000000", site([4, 12]))
    every, segments = texts(tmp_path), segments_in(tmp_path / "segments")
    url = "http://sea.example/004"
    one = own_text(tmp_path, segments, url)
    assert one.rows() == every.filter(url=url).rows()
    assert len(one) == 2
    assert not len(own_text(tmp_path, segments, "http://sea.example/none"))


def test_sql_has_own_texts(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site(range(20)))
    write(tmp_path, "20240102000000", {"http://plain.example/": ParseText("a b\nc")})
    asked = "select segment, url, own_text, own_words from parses order by segment, url"
    found = minutch.open(tmp_path).sql(asked)
    expected = texts(tmp_path)
    assert found["own_text"].to_list() == expected["text"].to_list()
    assert found["own_words"].to_list() == [len(text.split()) for text in expected["text"]]


def test_a_data_set_has_own_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl's frames are looked up once, not with each of its pieces."""
    write(tmp_path / "crawl", "20240101000000", site(range(20)))
    made, make = [], SiteFrames.__init__
    monkeypatch.setattr(corpus_rows, "ROWS", 5)
    monkeypatch.setattr(SiteFrames, "__init__", lambda *args: made.append(make(*args)))
    minutch.export_corpus(tmp_path / "crawl", tmp_path / "out", context=context())
    assert len(made) == 1
    monkeypatch.undo()
    found = pl.read_parquet(tmp_path / "out/parquet/*.parquet")
    assert found["text"].to_list() == texts(tmp_path / "crawl")["text"].to_list()
    assert found["cluster_size"].to_list() == [1] * 20  # the note alone would make them alike


def test_an_index_has_own_texts_and_takes_the_frame_for_little(tmp_path: Path) -> None:
    crawl, pages = IndexedCrawl(tmp_path), []
    about, *_ = urls = [*site(range(20))]
    for url in urls:
        page = html(int(url[-3:]))
        if url == about:
            page = page.replace("</h1><p>", f"</h1><p>{'Waves are high. ' * 99} Sailors sing. ")
        parse = PARSER.parse(content(page, url=url))[url]
        marks = {BLOCKS_KEY: parse.data.parse_meta.get(BLOCKS_KEY) or ""}
        pages.append(Page(url, text=parse.text, meta=marks))
    crawl.segment("20240101000000", pages)
    hits = {}
    for text in ("page", "own", "both"):
        crawl.index(indexer__text=text, **{"minutch.index.local.rebuild": "true"})
        found = {words: search(crawl.index_folder, words) for words in ("sailors", "imprint")}
        hits[text] = [one.count for one in found.values()]
        assert (found["sailors"].hits[0].url == about) == (text != "page")
        shown = "".join(piece for hit in found["sailors"].hits for piece, _ in hit.snippet)
        assert "write with us" not in shown
    assert hits == {"page": [20, 20], "own": [1, 0], "both": [20, 20]}
    counts = {'"sailors who would"': 20, "frame:sailors": 20, "content:sailors": 1}
    assert {words: search(crawl.index_folder, words).count for words in counts} == counts


def test_where_no_text_has_marks_nothing_is_counted(tmp_path: Path) -> None:
    write(tmp_path, "20240102000000", {"http://plain.example/": ParseText("a b\nc")})
    assert texts(tmp_path)["text"].to_list() == ["a b\nc"]
    assert not (tmp_path / FRAMES).exists()


def test_texts_that_others_have_made_are_left_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site(range(9)) | {"http://a.example/": ParseText("a\nb")})
    segment = write(tmp_path, "20240102000000", {"http://sea.example/999": html(999)})
    [stored] = segment.get(PARSE_DATA, "http://sea.example/999")
    assert stored.parse_meta.get(BLOCKS_KEY)
    with part_writer(tmp_path / "segments/20240103000000", PARSE_DATA, 0) as put:
        put("http://sea.example/x", stored)
    with part_writer(tmp_path / "segments/20240103000000", PARSE_TEXT, 0) as put:
        put("http://sea.example/x", ParseText("Home of another parser"))
    found = {url: (text, kept) for _, url, text, kept in texts(tmp_path).rows()}
    assert found["http://a.example/"] == ("a\nb", None)
    assert found["http://sea.example/x"] == ("Home of another parser", None)
    assert found["http://sea.example/999"][1] is not None


def test_hosts_are_apart(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site(range(20)) | site([1], "other.example"))
    found = dict(texts(tmp_path).select("url", "text").rows())
    assert "sailors" not in found["http://sea.example/001"]
    assert "sailors" in found["http://other.example/001"]


def test_a_page_that_is_fetched_again_counts_in_its_new_version(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site(range(20)))
    assert "sailors" not in texts(tmp_path)["text"].str.join("").item()
    other = {url: html(int(url[-3:]), "<p>Nothing.</p>") for url in site(range(1, 20))}
    write(tmp_path, "20240102000000", other)
    first = texts(tmp_path).filter(segment="20240101000000")
    assert "sailors" in first["text"][0]  # it stands on one page of twenty now


def test_what_is_counted_is_a_cache(tmp_path: Path) -> None:
    for day in range(1, 4):
        write(tmp_path, f"2024010{day}000000", site(range(day * 7, day * 7 + 12)))
    expected = texts(tmp_path)
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / FRAMES).rglob("*.parquet")}
    assert made
    assert texts(tmp_path).equals(expected)
    assert made == {path: path.stat().st_mtime_ns for path in made}
    shutil.rmtree(tmp_path / FRAMES)
    assert texts(tmp_path).equals(expected)
    shutil.rmtree(tmp_path / "segments/20240102000000")
    texts(tmp_path)
    left = {path.name.partition("-")[0] for path in (tmp_path / FRAMES).glob("[!.]*")}
    assert left == {"20240101000000", "20240103000000", "counts"}


@pytest.mark.parametrize("kind", ["counts-*/places", "counts-*/lines", "2024*/"])
def test_damage_names_the_folder_that_may_be_deleted(tmp_path: Path, kind: str) -> None:
    write(tmp_path, "20240101000000", site(range(3)))
    expected = texts(tmp_path)
    for path in (tmp_path / FRAMES).glob(f"{kind}*.parquet"):
        path.write_bytes(path.read_bytes()[:-20])
    if kind.startswith("2024"):
        for path in (tmp_path / FRAMES).glob("counts-*"):
            shutil.rmtree(path)
    with pytest.raises(FormatError, match=r"frames.*delete the folder"):
        texts(tmp_path)
    shutil.rmtree(tmp_path / FRAMES)
    assert texts(tmp_path).equals(expected)


def test_a_crawl_that_may_not_be_written_is_read(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", site(range(20)))
    expected = texts(tmp_path)
    shutil.rmtree(tmp_path / FRAMES)
    (tmp_path / FRAMES).write_text("a file in its place")
    assert texts(tmp_path).equals(expected)
    assert texts(tmp_path / "none", segments_in(tmp_path / "segments")).equals(expected)


def test_the_least_hashes_of_a_host_are_counted_in_whatever_rounds() -> None:
    rows = [
        ("h", page, 1, page % 3, 1, 60, [5], age) for page in range(MOST + 50) for age in (0, 1)
    ]
    names = ["host", "page", "place", "line", "times", "chance", "words", "age"]
    places, lines = count(pl.DataFrame(rows, schema=names, orient="row"))
    assert places["of"].to_list() == [MOST]
    assert lines["at"].sum() == MOST


def test_memory_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {}
    for host in range(20):
        pages |= site(range(4), f"host{host}.example")
    write(tmp_path, "20240101000000", pages)
    write(tmp_path, "20240102000000", site(range(2), "host3.example"))
    expected = texts(tmp_path)
    shutil.rmtree(tmp_path / FRAMES)
    monkeypatch.setattr(frames, "_KEYS", 10)
    processwide.change(memory=4000)
    assert texts(tmp_path).equals(expected)
    assert len([*(tmp_path / FRAMES).glob("counts-*/lines-*")]) > PARTS


def test_what_another_process_replaces_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a [crawl]", "20240101000000", site(range(9)))
    crawl = tmp_path / "a [crawl]"
    expected = texts(crawl)
    shutil.rmtree(crawl / FRAMES)
    times, counted = [], frames._counted

    def gone(folder: Path, samples: list[Path]) -> Path:
        place = counted(folder, samples)
        times.append(place)
        if len(times) < 3:
            shutil.rmtree(place)
        return place

    monkeypatch.setattr(frames, "_counted", gone)
    assert texts(crawl).equals(expected)
    assert len(times) == 3
    times.clear()
    monkeypatch.setattr(frames, "_TRIES", 2)
    (crawl / FRAMES / ".new-999999999-1-nowhere.1").mkdir()
    left = Owner(999_999_999, Owner.current().host, 1)
    (crawl / FRAMES / f".new-{left.pid}-{left.started}-{left.host}.1").mkdir()
    with pytest.raises(FileNotFoundError):
        texts(crawl)
    monkeypatch.setattr(frames, "_counted", counted)
    assert texts(crawl).equals(expected)
    names = {path.name.partition("-")[0] for path in (crawl / FRAMES).iterdir()}
    assert names - {".use"} == {"20240101000000", "counts", ".new"}  # of another host: it stays
    assert len([*(crawl / FRAMES).glob(".new-*")]) == 1


COUNT = """
import sys, polars as pl
from pathlib import Path
from minutch.cycle.owntext.near import near_texts
from minutch.cycle.owntext.texts import own_texts
from minutch.cycle.segment.store import segments_in
crawl = Path(sys.argv[1])
found = pl.concat(own_texts(crawl, segments_in(crawl / "segments")))
near_texts(crawl)
print(found["text"].str.join("|").hash().item())
"""


@pytest.mark.slow
def test_processes_at_once_and_killed_ones(tmp_path: Path) -> None:
    """Eight processes count the same crawl while it grows; some are killed at any moment."""
    write(tmp_path, "20240101000000", site(range(60)))
    rng = random.Random(7)
    for day in range(2, 5):
        running = [
            subprocess.Popen(
                [sys.executable, "-c", COUNT, str(tmp_path)], stdout=subprocess.PIPE, text=True
            )
            for _ in range(4)
        ]
        for one in running[:2]:
            with suppress(subprocess.TimeoutExpired):
                one.wait(rng.uniform(0.5, 3))
            one.kill()
            one.wait()  # nobody takes a process for dead that is not waited for
        said = {one.communicate(timeout=120)[0] for one in running[2:]}
        assert said == {f"{texts(tmp_path)['text'].str.join('|').hash().item()}\n"}
        assert [one.returncode for one in running[2:]] == [0, 0]
        write(tmp_path, f"2024010{day}000000", site(range(day, day * 20)))
    expected = texts(tmp_path)
    assert not [*(tmp_path / FRAMES).glob(".new-*")]
    shutil.rmtree(tmp_path / FRAMES)
    assert texts(tmp_path).equals(expected)


@settings(max_examples=examples(6), deadline=None)
@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=6), min_size=1, max_size=4))
def test_rounds_leave_what_one_pass_finds(
    tmp_path_factory: pytest.TempPathFactory, rounds: list[list[int]]
) -> None:
    stepwise, whole = tmp_path_factory.mktemp("steps"), tmp_path_factory.mktemp("whole")
    for day, numbers in enumerate(rounds):
        for crawl in (stepwise, whole):
            write(crawl, f"2024010{day}000000", site(numbers))
        texts(stepwise)
    assert texts(stepwise).equals(texts(whole))


def test_nothing_parsed_is_nothing(tmp_path: Path) -> None:
    write(tmp_path, "20240101000000", {})
    assert not len(texts(tmp_path))
    write(tmp_path, "20240102000000", {"http://a.example/": ParseText("")})
    assert texts(tmp_path)["text"].to_list() == [""]
