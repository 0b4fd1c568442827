"""Damage to the files of an index is found before tantivy reads them, by every command."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from minutch.errors import FormatError, IndexWriterError
from minutch.inspect.search.localindex import KINDS, MANAGED, META, LocalIndex, check
from minutch.inspect.search.searcher import Searcher
from minutch.records import crawldatum as status
from tests.inspect.search.test_app import client_of
from tests.support.commands import fsck
from tests.support.indexedcrawl import IndexedCrawl, Page

URLS = [f"http://a.org/{n}" for n in range(8)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl whose index has two segments, one of them with deletions."""
    crawl = IndexedCrawl(tmp_path_factory.mktemp("whole"))
    crawl.crawldb(dict.fromkeys(URLS, status.STATUS_DB_FETCHED))
    crawl.segment("20240101000000", [Page(url, "title", "words of old") for url in URLS])
    crawl.index()
    second = crawl.segment("20240102000000", [Page(url, text="new") for url in URLS[:3]])
    crawl.index("-nocrawldb", str(second))
    return crawl.folder


@pytest.fixture
def crawl(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "crawl")
    return tmp_path / "crawl"


def files(folder: Path) -> list[Path]:
    """The files of the segments."""
    return sorted(path for path in folder.iterdir() if len(path.name.partition(".")[0]) == 32)


def test_each_kind_of_file_is_there(whole: Path) -> None:
    kinds = {path.suffix[1:] for path in files(whole / "index/current")}
    assert kinds == {*KINDS, "del"}


def test_bytes_changed_cut_off_or_added(crawl: Path) -> None:
    folder = crawl / "index/current"
    missed = []
    for path in files(folder):
        data = path.read_bytes()
        body = data.rindex(b'{"version"')
        places = random.Random(path.name).choices(range(body), k=6)
        changes = [data[:at] + bytes([data[at] ^ 64]) + data[at + 1 :] for at in places]
        changes += [data[:at] for at in (0, 7, *places, body, len(data) - 1)] + [data + b"\0"]
        changes += [data[:at] + b"\0" + data[at:] for at in places]
        for changed in changes:
            path.write_bytes(changed)
            try:
                check(folder, {})
            except FormatError as exc:
                assert exc.path == str(path)
            else:
                missed.append(path)
        path.write_bytes(data)
    assert not missed
    check(folder, {})


def _remove(name: str) -> Callable[[dict[str, object]], object]:
    return lambda segment: segment.pop(name)


@pytest.mark.parametrize(
    "change",
    [
        _remove("segment_id"),
        _remove("max_doc"),
        _remove("deletes"),
        lambda segment: segment.update(segment_id="../../x"),
        lambda segment: segment.update(max_doc=2**31 - 1),
        lambda segment: segment.update(max_doc=-1),
        lambda segment: segment.update(max_doc=True),
        lambda segment: segment.update(deletes={"num_deleted_docs": 2**30, "opstamp": 1}),
        lambda segment: segment.update(deletes={"num_deleted_docs": 1, "opstamp": "1/../x"}),
        lambda segment: segment.update(deletes=[1]),
    ],
)
def test_segments_that_can_not_be(
    crawl: Path, change: Callable[[dict[str, object]], object]
) -> None:
    meta = crawl / "index/current" / META
    found = json.loads(meta.read_bytes())
    change(found["segments"][0])
    meta.write_text(json.dumps(found))
    with pytest.raises(FormatError, match=r"segments that can't be|a damaged file"):
        check(meta.parent, {})


def test_the_number_of_deletions_is_that_of_the_bits(crawl: Path) -> None:
    meta = crawl / "index/current" / META
    found = json.loads(meta.read_bytes())
    deletes = next(one["deletes"] for one in found["segments"] if one["deletes"])
    deletes["num_deleted_docs"] += 1
    meta.write_text(json.dumps(found))
    with pytest.raises(FormatError, match=r"\.del: a damaged file of an index: expected \(8, 4\)"):
        check(meta.parent, {})


@pytest.mark.parametrize("text", ["", "[", "{}", "[" * 100_000, '{"segments": 1}', "\xff"])
def test_no_json(crawl: Path, text: str) -> None:
    for name in (META, MANAGED):
        path = crawl / "index/current" / name
        before = path.read_bytes()
        path.write_text(text, encoding="latin-1")
        with pytest.raises(FormatError, match=rf"index/current/{name}: "):
            check(path.parent, {})
        path.write_bytes(before)


def test_files_elsewhere_are_not_deleted(crawl: Path) -> None:
    """tantivy deletes what its list has and no segment, wherever that is."""
    letter = crawl / "letter.txt"
    letter.write_text("dear all")
    managed = crawl / "index/current" / MANAGED
    managed.write_text(json.dumps([*json.loads(managed.read_bytes()), "../../letter.txt"]))
    with pytest.raises(IndexWriterError, match="not all of an index"):
        IndexedCrawl(crawl).index()
    assert letter.read_text() == "dear all"


def test_what_is_as_remembered_is_not_read(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = LocalIndex(crawl / "index")
    known = check(index.current, {})
    read: list[bytes] = []
    monkeypatch.setattr("minutch.inspect.search.localindex.zlib.crc32", lambda *a: read.append(a))
    assert check(index.current, known) == known
    assert not read
    copied = files(index.current)[0]
    shutil.copy2(copied, crawl / "copy")
    (crawl / "copy").replace(copied)
    with pytest.raises(FormatError):
        check(index.current, known)
    assert len(read) == 1


def test_the_writer_remembers_what_it_has_written(crawl: Path) -> None:
    IndexedCrawl(crawl).index()
    stamp = json.loads((crawl / "index/current/minutch.json").read_text())
    assert stamp["files"] == check(crawl / "index/current", {})


@pytest.mark.parametrize("kind", ["store", "del", "lost", META])
def test_every_command_says_what_to_do(crawl: Path, kind: str) -> None:
    index = crawl / "index"
    client = client_of(crawl)
    assert client.get("/?q=words").status_code == 200
    path = next(
        (path for path in files(index / "current") if path.suffix == f".{kind}"),
        index / "current" / META,
    )
    if kind == "lost":
        next(iter(files(index / "current"))).unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + b"\1")
    again = f"minutch index -D minutch.index.local.rebuild=true {crawl}/crawldb"
    with pytest.raises(FormatError, match=str(index)) as failure:
        Searcher(index)
    assert again in failure.value.hint
    (index / "current" / META).touch()  # as a commit: `serve` opens it anew
    answer = client.get("/?q=words")
    assert answer.status_code == 500
    assert str(index) in answer.text
    with pytest.raises(IndexWriterError, match=str(index)) as stopped:
        IndexedCrawl(crawl).index()
    assert again in stopped.value.hint
    context = IndexedCrawl(crawl).context()
    assert fsck.run([str(crawl)], context) == 1
    printed = context.out.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert str(index) in printed and again in printed
    IndexedCrawl(crawl).index(minutch__index__local__rebuild="true")
    assert Searcher(index).count == len(URLS)
