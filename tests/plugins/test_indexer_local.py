"""indexer-local: what the index holds after jobs that add, update, delete or fail, or find another
version.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.errors import ConfigError, IndexWriterError, LockedError, StoreError
from minutch.inspect.search.localindex import LocalIndex
from minutch.inspect.search.results import SearchOptions
from minutch.inspect.search.searcher import Searcher
from minutch.plugin.documents import Documents
from minutch.plugin.parameters import Parameters
from minutch.plugin.points import Action
from minutch.records import crawldatum as status
from minutch.records.document import Date, Long, NutchDocument
from plugins.indexer_local.writer import LocalIndexWriter
from tests.support.golden import PROJECT
from tests.support.indexedcrawl import IndexedCrawl, Page

URLS = [f"http://a.org/{n}" for n in range(5)]


def writer_of(folder: Path, rebuild: bool = False, **parameters: str) -> LocalIndexWriter:
    values = {"minutch.index.local.rebuild": str(rebuild).lower()}
    writer = LocalIndexWriter(Configuration.load([], overrides=values).freeze(), {})
    writer.configure(Parameters({"path": str(folder), "memory": "32", **parameters}, "test"))
    return writer


def test_the_index_of_a_crawl_on_a_store_needs_a_place_here(tmp_path: Path) -> None:
    conf = Configuration.load([], overrides={"minutch.index.crawl": "hdfs://name/crawl"}).freeze()
    writer = LocalIndexWriter(conf, {})
    with pytest.raises(
        ConfigError, match=r"expected the whole path .* as the crawl is in hdfs://name/crawl, found"
    ):
        writer.configure(Parameters({"path": "index"}, "test"))
    writer.configure(Parameters({"path": str(tmp_path / "index")}, "test"))
    assert writer.path == tmp_path / "index"


def document(**fields: object) -> NutchDocument:
    made = NutchDocument()
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            made.add(name, value)
    return made


def written(writer: LocalIndexWriter, *documents: NutchDocument) -> None:
    writer.open()
    assert (
        writer.write([Action(str(doc.first("id")), writer.encode(doc)) for doc in documents]) == []
    )
    writer.commit()
    writer.close()


def urls(folder: Path, query: str = "*") -> list[str]:
    return sorted(hit.url for hit in Searcher(folder).search(query, SearchOptions(limit=100)).hits)


def pages(word: str, chosen: list[str] = URLS) -> list[Page]:
    return [Page(url, f"title {word}", f"text {word}") for url in chosen]


# -- jobs ------------------------------------------------------------------------------------------


def test_a_recrawl_updates_and_deletes(tmp_path: Path) -> None:
    crawl = IndexedCrawl(tmp_path)
    crawl.segment("20240101000000", pages("old"))
    crawl.crawldb(dict.fromkeys(URLS, status.STATUS_DB_FETCHED))
    crawl.index(str(tmp_path / "crawldb"), *crawl.all_segments)
    assert urls(crawl.index_folder, "old") == URLS
    gone = Page(URLS[3], status=status.STATUS_FETCH_GONE)
    segment = crawl.segment("20240102000000", [*pages("new", URLS[:2]), gone])
    crawl.crawldb(dict.fromkeys(URLS, status.STATUS_DB_FETCHED) | {URLS[3]: status.STATUS_DB_GONE})
    counters = crawl.index(str(tmp_path / "crawldb"), str(segment), "-deleteGone")
    assert counters["indexed_total"] == 2
    assert urls(crawl.index_folder, "new") == URLS[:2]
    assert urls(crawl.index_folder, "old") == [URLS[2], URLS[4]]
    crawl.crawldb(
        dict.fromkeys(URLS, status.STATUS_DB_FETCHED) | {URLS[4]: status.STATUS_DB_DUPLICATE}
    )
    crawl.clean()
    assert urls(crawl.index_folder) == URLS[:3]


def test_the_same_job_again_changes_nothing_and_no_commit_is_one_all_the_same(
    tmp_path: Path,
) -> None:
    crawl = IndexedCrawl(tmp_path)
    crawl.segment("20240101000000", pages("one"))
    crawl.index("-nocrawldb", *crawl.all_segments, "-noCommit")
    assert urls(crawl.index_folder) == URLS
    crawl.index()
    assert urls(crawl.index_folder) == URLS


def test_an_index_is_made_anew_from_the_segments(tmp_path: Path) -> None:
    crawl = IndexedCrawl(tmp_path)
    crawl.segment("20240101000000", pages("one"))
    crawl.index()
    written(writer_of(crawl.index_folder), document(id="http://other.org/", content="stays out"))
    stamp = crawl.index_folder / "current" / "minutch.json"
    stamp.write_text(json.dumps({"format": 0, "tantivy": "0.1"}))
    with pytest.raises(StoreError, match="another version") as failure:
        Searcher(crawl.index_folder)
    assert (
        f"minutch index -D minutch.index.local.rebuild=true {tmp_path}/crawldb"
        in failure.value.hint
    )
    with pytest.raises(IndexWriterError, match="another version"):
        crawl.index()
    crawl.index(minutch__index__local__rebuild="true")
    assert urls(crawl.index_folder) == URLS


def test_mapping_applies(tmp_path: Path) -> None:
    crawl = IndexedCrawl(tmp_path)
    (tmp_path / "writers.xml").write_text(
        '<writers><writer id="l" class="minutch.LocalIndexWriter"><parameters><param name="path"'
        ' value="elsewhere"/></parameters><mapping><copy><field source="title"'
        ' dest="heading"/></copy><rename><field source="host"'
        ' dest="server"/></rename><remove><field'
        ' source="content"/></remove></mapping></writer></writers>'
    )
    crawl.segment("20240101000000", pages("one"))
    crawl.index(indexer__indexwriters__file=str(tmp_path / "writers.xml"))
    index = tmp_path / "elsewhere"
    assert urls(index, "text") == []
    assert urls(index, "heading:one server:a.org") == URLS


# -- the writer ------------------------------------------------------------------------------------


def test_every_kind_of_value_is_kept_and_found(tmp_path: Path) -> None:
    doc = document(
        id="http://a.org/",
        title=["one", "two"],
        host="A.org",
        tstamp=Date(1_700_000_000_123),
        date=[Date(0), Date(86_400_000)],
        lastModified=Date(-(1 << 61)),
        number=7,
        big=Long(1 << 40),
        truth=True,
        ratio=0.5,
        mixed=["x", 3],
        binaryContent="\x00ÿ",
        **{"metatag.keywords": ["red boats", "sails"]},
    )
    written(writer_of(tmp_path), doc)
    (hit,) = (
        Searcher(tmp_path)
        .search("metatag.keywords:boats number:7 truth:true host:a.org title:two date:1970")
        .hits
    )
    assert hit.fields == {
        "id": ["http://a.org/"],
        "title": ["one\ntwo"],
        "host": ["A.org"],
        "tstamp": ["2023-11-14T22:13:20.123Z"],
        "date": ["1970-01-01T00:00:00.000Z", "1970-01-02T00:00:00.000Z"],
        "number": [7],
        "big": [1 << 40],
        "truth": [True],
        "ratio": ["0.5"],
        "mixed": ["x", "3"],
        "binaryContent": ["\x00ÿ"],
        "metatag.keywords": ["red boats", "sails"],
    }


def test_documents_with_other_fields_stand_beside_each_other(tmp_path: Path) -> None:
    documents = Documents(pl.Series(["a", "b", "c"]))
    documents.add("title", pl.Series(["x", None, "z"]))
    documents.add("lang", pl.Series(["en", "en", None]))
    documents.add("content", pl.Series(["running", "dogs", "搜索引擎"]))
    documents.add("tags", pl.Series([["p", "s"], None, ["q", "r"]]))
    writer = writer_of(tmp_path)
    columns = [json.loads(line) for line in writer.encode_columns(documents)]
    assert columns == [
        {
            "key": "a",
            "title_en": "x",
            "lang": "en",
            "content_en": "running",
            "other": {"tags": ["p", "s"]},
            "has": ["content", "lang", "tags", "title"],
        },
        {"key": "b", "lang": "en", "content_en": "dogs", "has": ["content", "lang"]},
        {
            "key": "c",
            "title": "z",
            "content": "搜索\u2060索引\u2060引擎",
            "other": {"tags": ["q", "r"]},
            "has": ["content", "tags", "title"],
        },
    ]
    for row, found in zip(documents.rows(), columns, strict=True):
        row.add("id", found["key"])
        with_id = found | {"id": found["key"], "has": sorted([*found["has"], "id"])}
        assert json.loads(writer.encode(row)) == with_id


def test_the_last_of_several_documents_with_a_url_stays(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    one, two = (document(id="u", content=word) for word in ("first", "second"))
    written(writer, one, two)
    assert (urls(tmp_path, "first"), urls(tmp_path, "second")) == ([], ["u"])


def test_what_the_index_does_not_take_is_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    writer = writer_of(tmp_path)
    writer.open()
    good = writer.encode(document(id="good"))
    refused = writer.write(
        [Action("bad", b'{"key": 5}'), Action("worse", b"no json"), Action("good", good)]
    )
    writer.close()
    assert [one.key for one in refused] == ["bad", "worse"]
    assert "key" in refused[0].reason
    assert urls(tmp_path) == ["good"]


def test_an_error_leaves_the_last_commit(tmp_path: Path) -> None:
    written(writer_of(tmp_path), document(id="kept"))
    for rebuild in (False, True):
        writer = writer_of(tmp_path, rebuild)
        writer.open()
        writer.write([Action("lost", writer.encode(document(id="lost"))), Action("kept", None)])
        writer.abort()
        assert urls(tmp_path) == ["kept"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["current"]


def test_what_was_not_committed_when_it_was_killed_is_lost(tmp_path: Path) -> None:
    """As the folder is then, which is copied, but for what tantivy is about to rename."""
    place, copy = tmp_path / "index", tmp_path / "killed"
    written(writer_of(place), document(id="kept"))
    writer = writer_of(place)
    writer.open()
    writer.write([Action("lost", writer.encode(document(id="lost"))), Action("kept", None)])
    shutil.copytree(place, copy, ignore=shutil.ignore_patterns(".tmp*"))
    writer.abort()
    assert urls(copy) == ["kept"]
    written(writer_of(copy), document(id="next"))
    assert urls(copy) == ["kept", "next"]


def test_a_file_that_cant_grow_ends_the_job_and_leaves_the_last_commit(tmp_path: Path) -> None:
    written(writer_of(tmp_path), document(id="kept"))
    text = " ".join(f"word{n}" for n in range(20_000))
    writer = writer_of(tmp_path, memory="16")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(IndexWriterError, match="can't be written: "):
            writer.open()
            writer.write([Action("k", writer.encode(document(id="k", content=text)))])
            writer.commit()
        writer.abort()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert urls(tmp_path) == ["kept"]
    written(writer_of(tmp_path), document(id="next"))
    assert urls(tmp_path) == ["kept", "next"]


KILLED = """
import sys, os, signal
from pathlib import Path
from tests.plugins.test_indexer_local import *
writer = writer_of(Path(sys.argv[1]))
writer.open()
writer.write([Action(f"k{n}", writer.encode(document(id=f"k{n}", content="word " * 500))) for n \
in range(300)])
writer.write([Action("kept", None)])
print("now", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow  # a process
def test_a_killed_job_leaves_the_last_commit_and_no_lock(tmp_path: Path) -> None:
    written(writer_of(tmp_path), document(id="kept"))
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        cwd=PROJECT,
        env={**os.environ},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"now\n"), ended.stderr
    assert urls(tmp_path) == ["kept"]
    written(writer_of(tmp_path), document(id="next"))
    assert urls(tmp_path) == ["kept", "next"]


def test_a_job_killed_in_its_commit_is_not_in_the_way_of_the_next(tmp_path: Path) -> None:
    """Deletions are written to a file that is named after their number: the next job makes the same
    one.
    """
    written(writer_of(tmp_path), *(document(id=f"k{n}") for n in range(5)))
    current, before = tmp_path / "current", tmp_path / "before"
    shutil.copytree(current, before)
    written(writer_of(tmp_path), document(id="k1"))
    assert list(current.glob("*.del"))
    shutil.copytree(
        before, current, ignore=lambda *_: [".managed.json"], dirs_exist_ok=True
    )  # as before the commit
    (current / ".tmpAbCdEf").write_text("half")
    written(writer_of(tmp_path), document(id="k1"))
    assert urls(tmp_path) == [f"k{n}" for n in range(5)]
    assert not list(current.glob(".tmp*"))


FULL = """
import resource, sys
from pathlib import Path
from tests.plugins.test_indexer_local import *
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
writer = writer_of(Path(sys.argv[1]), memory="16")
try:
    writer.open()
    for n in range(40):
        text = " ".join(f"word{n}x{m}" for m in range(20_000))
        writer.write([Action(f"k{n}", writer.encode(document(id=f"k{n}", content=text)))])
    writer.commit()
except IndexWriterError as error:
    writer.abort()
    print(error)
"""


@pytest.mark.slow  # a process
def test_a_full_disk_ends_the_job_and_leaves_the_last_commit(tmp_path: Path) -> None:
    written(writer_of(tmp_path), document(id="kept"))
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    ended = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ended.stdout.startswith(f"{tmp_path}: can't be written: "), ended.stderr
    assert urls(tmp_path) == ["kept"]
    written(writer_of(tmp_path), document(id="next"))
    assert urls(tmp_path) == ["kept", "next"]


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    first = writer_of(tmp_path)
    first.open()
    with pytest.raises(
        IndexWriterError, match=r"another job writes to the index: .*process"
    ) as failure:
        writer_of(tmp_path).open()
    assert isinstance(failure.value.__cause__, LockedError)
    first.abort()
    written(writer_of(tmp_path), document(id="a"))


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear all")
    with pytest.raises(IndexWriterError, match=r"is no index: letters\.txt is in it"):
        writer_of(tmp_path).open()
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


@pytest.mark.parametrize(("name", "value"), [("memory", "3"), ("memory", "x"), ("threads", "-1")])
def test_parameters_that_make_no_sense(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        writer_of(tmp_path, **{name: value})


def test_the_stamp_names_the_library(tmp_path: Path) -> None:
    written(writer_of(tmp_path), document(id="a"))
    stamp = json.loads((LocalIndex(tmp_path).current / "minutch.json").read_text())
    assert stamp["format"] == 3
    assert stamp["tantivy"].count(".") == 2
