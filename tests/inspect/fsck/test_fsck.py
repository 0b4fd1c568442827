"""fsck: a whole crawl has no problems, each kind of damage is named with its place, and repairs
lose nothing.
"""

from __future__ import annotations

import os
import shutil
import socket
from dataclasses import replace
from io import StringIO
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from minutch.cycle.crawl.rounds import Round
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.hostdb.store import HostDb
from minutch.errors import StoreError, UsageError
from minutch.hadoop.formats.checksum import crc_path
from minutch.hadoop.formats.javaio import encode_text, encode_vlong
from minutch.hadoop.formats.mapfile import rebuild_index
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_UNFETCHED,
    STATUS_FETCH_SUCCESS,
    CrawlDatum,
)
from minutch.records.hostdatum import HostDatum
from minutch.work.tables.lock import lock
from minutch.work.tables.recordfiles import CrawlDataWriter
from tests.cycle.hostdb.test_updatehostdb import write_hostdb
from tests.support import graphs
from tests.support.commands import command
from tests.support.crawldbs import context, printed, read_db, write_db, write_segment
from tests.support.examples import few

explain = command("explain").run
run = command("fsck").run

URLS = [f"http://host{n % 7}.example/page{n}" for n in range(400)]
GONE_PID = 2**22 + 1


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A crawl of one round, whole."""
    write_db(
        tmp_path / "crawldb",
        [(url, CrawlDatum(STATUS_DB_FETCHED, 100, 1.0)) for url in URLS],
        parts=2,
    )
    segment = tmp_path / "segments/20260101000000"
    fetched = [(url, CrawlDatum(STATUS_FETCH_SUCCESS, 100, 1.0)) for url in URLS[:50]]
    write_segment(segment, fetched, fetched)
    generated(segment, fetched)
    for folder in ("parse_data", "parse_text"):
        (segment / folder).mkdir()
    return tmp_path


def generated(segment: Path, entries: list[tuple[str, CrawlDatum]]) -> None:
    (segment / "crawl_generate").mkdir(parents=True)
    with CrawlDataWriter(segment / "crawl_generate/part-r-00000", mapfile=False) as writer:
        writer.write(crawldatum_columns.to_frame(entries))


def fsck(crawl: Path, *options: str) -> tuple[int, list[str]]:
    """Exit code, and what is printed."""
    job = context()
    code = run([str(crawl), *options], job)
    return code, printed(job).splitlines()


def part(crawl: Path, number: int = 0) -> Path:
    return crawl / f"crawldb/current/part-r-{number:05d}"


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def write_raw(crawl: Path, number: int, records: list[tuple[bytes, bytes]]) -> None:
    """A part with records in any order, checksums right."""
    data = part(crawl, number) / "data"
    shutil.rmtree(data.parent)
    data.parent.mkdir()
    with SequenceFileWriter(data, TEXT, CrawlDatum.class_name) as writer:
        for key, value in records:
            writer.append_raw(key, value)


def raw(crawl: Path, number: int) -> list[tuple[bytes, bytes]]:
    with SequenceFileReader(part(crawl, number) / "data") as reader:
        return list(reader)


def key(url: str) -> bytes:
    text = encode_text(url)
    return encode_vlong(len(text)) + text


def test_a_whole_crawl(crawl: Path) -> None:
    assert fsck(crawl) == (0, [])
    assert fsck(crawl, "-repair", "-drop") == (0, [])


def test_no_crawl(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no crawl"):
        fsck(tmp_path)
    with pytest.raises(UsageError, match="-drop is for -repair"):
        fsck(tmp_path, "-drop")


def test_checksums(crawl: Path) -> None:
    before = read_db(crawl / "crawldb")
    flip(crc_path(part(crawl) / "data"), 9)
    crc_path(part(crawl, 1) / "data").unlink()
    code, lines = fsck(crawl)
    assert code == 1
    assert lines[0].startswith(f"{part(crawl)}/data at offset 0: checksum error: expected CRC ")
    assert lines[1] == f"{part(crawl, 1)}/data: no checksums"
    assert fsck(crawl, "-repair")[0] == 0
    assert fsck(crawl) == (0, []) and read_db(crawl / "crawldb") == before


def test_a_repair_that_is_stopped_leaves_nothing_that_is_read(
    crawl: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second file beside a part would be a part, for Nutch, too."""
    file = crawl / "segments/20260101000000/crawl_generate/part-r-00000"
    flip(crc_path(file), 9)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            fsck(crawl, "-repair")
    assert {path.name for path in file.parent.iterdir()} <= {file.name, crc_path(file).name}
    (file.parent / f".{file.name}-{GONE_PID}").mkdir()  # of a repair that was killed
    assert fsck(crawl, "-repair")[0] == 0 and fsck(crawl) == (0, [])
    assert {path.name for path in file.parent.iterdir()} == {file.name, crc_path(file).name}


@pytest.mark.parametrize("how", ["missing", "damaged", "of another file"])
def test_index(crawl: Path, how: str) -> None:
    index = part(crawl) / "index"
    if how == "missing":
        index.unlink()
        crc_path(index).unlink()
    elif how == "damaged":
        flip(index, index.stat().st_size - 3)
    else:
        for path in (index, crc_path(index)):
            shutil.copy(part(crawl, 1) / path.name, path)
    code, (line, *others) = fsck(crawl)
    assert code == 1 and line.startswith(str(index)) and not others
    assert fsck(crawl, "-repair")[0] == 0
    assert fsck(crawl) == (0, [])
    assert all(CrawlDb(crawl / "crawldb").get(url) is not None for url in URLS)


def test_order_and_partition(crawl: Path) -> None:
    before, first, second = read_db(crawl / "crawldb"), raw(crawl, 0), raw(crawl, 1)
    write_raw(crawl, 0, [*first[5:], *first[:5]])
    write_raw(crawl, 1, second)
    rebuild_index(part(crawl, 1))
    code, lines = fsck(crawl)
    assert code == 1 and len(lines) == 1
    assert lines[0] == f"{part(crawl)}: keys out of order (key {first[0][0][1:].decode()})"
    assert fsck(crawl, "-repair")[0] == 0
    assert raw(crawl, 0) == first and raw(crawl, 1) == second

    write_raw(crawl, 0, sorted([*first, second[0]], key=lambda record: record[0][1:]))
    rebuild_index(part(crawl))
    write_raw(crawl, 1, second[1:])
    rebuild_index(part(crawl, 1))
    assert fsck(crawl)[1] == [
        f"{part(crawl)}: 1 key belongs to other parts than 0 of 2 (key {second[0][0][1:].decode()})"
    ]
    assert fsck(crawl, "-repair")[0] == 0
    assert fsck(crawl) == (0, []) and read_db(crawl / "crawldb") == before
    assert raw(crawl, 0) == first and raw(crawl, 1) == second


def test_repeated_keys_are_kept_until_asked_otherwise(crawl: Path) -> None:
    first = raw(crawl, 0)
    older = CrawlDatum(STATUS_DB_UNFETCHED, 7, 0.5).to_bytes()
    write_raw(crawl, 0, [first[0], (first[1][0], older), *first[1:]])
    rebuild_index(part(crawl))
    assert fsck(crawl)[1] == [
        f"{part(crawl)}: 1 key comes twice, only the last one counts (key"
        f" {first[1][0][1:].decode()})"
    ]
    assert fsck(crawl, "-repair")[0] == 1
    assert len(raw(crawl, 0)) == len(first) + 1
    code, lines = fsck(crawl, "-repair", "-drop")
    assert code == 0 and f"dropped: an older entry of {first[1][0][1:].decode()}" in lines
    assert raw(crawl, 0) == first


def test_what_cant_be_read_is_dropped_only_when_asked(tmp_path: Path) -> None:
    many = [f"http://example/{n}" for n in range(800)]
    write_db(
        tmp_path / "crawldb",
        [(url, CrawlDatum(STATUS_DB_FETCHED, n, 1.0)) for n, url in enumerate(many)],
    )
    before, data = read_db(tmp_path / "crawldb"), part(tmp_path) / "data"
    whole = data.read_bytes()
    middle = whole.index(b"http://example/", len(whole) // 2)
    data.write_bytes(whole[: middle - 9] + b"\x7f" * 9 + whole[middle:])
    code, (line,) = fsck(tmp_path)
    assert code == 1 and line.startswith(f"{data} at offset ") and "records can't be read" in line
    damaged = data.read_bytes()
    code, _ = fsck(tmp_path, "-repair")
    assert code == 1 and data.read_bytes() == damaged
    code, lines = fsck(tmp_path, "-repair", "-drop")
    assert code == 0 and sum(line.startswith(f"dropped: {data}: bytes ") for line in lines) == 1
    after = read_db(tmp_path / "crawldb")
    assert 0 < len(before) - len(after) < 500 and all(before[url] == after[url] for url in after)
    assert fsck(tmp_path) == (0, [])


@pytest.mark.parametrize(("parts", "left"), few([(3, 2), (2, 1), (4, 2), (7, 3)], 2))
def test_the_last_parts_are_missing(crawl: Path, parts: int, left: int) -> None:
    """What is left is numbered as a database of fewer parts; the keys tell."""
    shutil.rmtree(crawl / "crawldb")
    entries = [(url, CrawlDatum(STATUS_DB_FETCHED, 100, 1.0)) for url in URLS]
    write_db(crawl / "crawldb", entries, parts=parts)
    assert fsck(crawl) == (0, [])
    for number in range(left, parts):
        shutil.rmtree(crawl / f"crawldb/current/part-r-{number:05}")
    _, lines = fsck(crawl)
    assert any(f"parts are missing: found {left} of {parts}, by the keys" in line for line in lines)


@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_healthy_database_of_regular_names(crawl: Path, parts: int) -> None:
    """Hosts and pages that count alike: hashes whose distances have a common divisor."""
    shutil.rmtree(crawl / "crawldb")
    shutil.rmtree(crawl / "segments")
    urls = [f"http://h{n}/{n}" for n in range(1000, 1500)]
    entries = [(url, CrawlDatum(STATUS_DB_FETCHED, 100, 1.0)) for url in urls]
    write_db(crawl / "crawldb", entries, parts=parts)
    generated(crawl / "segments" / "20260101000000", entries[:300])
    _, lines = fsck(crawl)
    assert not [line for line in lines if "parts are missing" in line]


def test_what_a_crawl_works_on_is_no_damage(crawl: Path) -> None:
    """A segment that is being fetched, and one whose round has come to updatedb."""
    entries = [(f"http://new.example/{n}", CrawlDatum(1, 100, 1.0)) for n in range(3)]
    fetching, updating = (crawl / "segments" / f"2027010100000{n}" for n in (1, 2))
    for segment in (fetching, updating):
        generated(segment, entries)
    Round(updating.name, ["generate", "fetch"], [fetching.name]).save(crawl)
    with lock(crawl), lock(fetching / "_fetch"):
        _, lines = fsck(crawl)
        me = f"process {os.getpid()} on"
        overview = StringIO()
        explain([str(crawl)], replace(context(), out=overview))
        said = " ".join(overview.getvalue().split())
        assert f"pages of segment {fetching.name} are being fetched by {me}" in said
        assert "minutch fetch" not in said
        assert any(line.startswith(f"{fetching}: being fetched by {me}") for line in lines)
        assert any(
            line.startswith(f"{updating}: in a round of a crawl that runs") for line in lines
        )
        assert not [line for line in lines if "generated, but not fetched" in line]
        assert not [line for line in lines if "a round is not finished" in line]
    _, lines = fsck(crawl)
    assert sum("generated, but not fetched" in line for line in lines) == 2


def test_a_part_that_is_missing(crawl: Path) -> None:
    shutil.rmtree(part(crawl))
    assert fsck(crawl, "-repair") == (
        1,
        [f"{crawl}/crawldb/current: parts are missing: found part-r-00001"],
    )


def test_leftovers_and_locks(crawl: Path) -> None:
    segment = crawl / "segments/20260101000000"
    folders = [
        crawl / f"crawldb/.spill-{GONE_PID}",
        crawl / f"crawldb/.new-{GONE_PID}",
        crawl / "crawldb/.next",
    ]
    folders += [
        segment / f".new-{GONE_PID}",
        crawl / f"segments/.new-{GONE_PID}",
        crawl / "segments/20260101000001",
    ]
    folders += [segment / "_fetch-done"]
    for folder in folders:
        folder.mkdir()
    files = [
        crawl / ".round.new",
        crawl / "crawldb/current/part-r-00000/.other.crc",
        crawl / f".locked.{GONE_PID}-1",
    ]
    for file in files:
        file.touch()
    (crawl / "crawldb/.locked").write_text(f"{GONE_PID} {socket.gethostname()} 5\n")
    (crawl / ".locked").touch()
    (crawl / ".round").write_text("{}")
    code, lines = fsck(crawl)
    assert code == 1
    for path in [*folders, *files, crawl / "crawldb/.locked", crawl / ".locked", crawl / ".round"]:
        assert sum(line.startswith(f"{path}: ") for line in lines) == 1, path
    assert len(lines) == len(folders) + len(files) + 3
    assert fsck(crawl, "-repair")[0] == 1
    code, lines = fsck(crawl)
    assert [line.partition(": ")[0] for line in lines] == [f"{crawl}/.locked", f"{crawl}/.round"]


def test_segments_that_are_not_in_their_places(crawl: Path) -> None:
    folder = crawl / f"segments/.import-{GONE_PID}-1-{socket.gethostname()}.0"
    write_segment(
        folder / "20260101000001",
        [("http://a.example/", CrawlDatum(STATUS_FETCH_SUCCESS, 100, 1.0))],
    )
    (folder / "import.json").write_text('{"job": "x", "counters": {}}')
    said = f"{folder}: whole segments of a job that was killed before all were in their places"
    assert said in fsck(crawl)[1]
    lines = fsck(crawl, "-repair")[1]
    assert f"repaired: {folder}: put them in their places" in lines
    assert {path.name for path in (crawl / "segments").iterdir()} == {
        "20260101000000",
        "20260101000001",
    }
    assert said not in fsck(crawl)[1]


def test_segments_against_each_other_and_the_crawldb(crawl: Path) -> None:
    one = crawl / "segments/20260101000001"
    new = [("http://new.example/", CrawlDatum(STATUS_FETCH_SUCCESS, 100, 1.0))]
    write_segment(one, new)
    (one / "content").mkdir()
    (one / "crawl_generate").mkdir()
    with CrawlDataWriter(one / "crawl_generate/part-r-00000", mapfile=False) as writer:
        writer.write(crawldatum_columns.to_frame([*new, ("http://lost.example/", CrawlDatum())]))
    two = crawl / "segments/20260101000002"
    (two / "crawl_generate").mkdir(parents=True)
    assert fsck(crawl) == (
        1,
        [
            f"{one}: fetched, but not parsed: `minutch parse`",
            (
                f"{one}: 1 of 2 URLs were generated, and are not in crawl_fetch (key"
                " http://lost.example/)"
            ),
            f"{two}: generated, but not fetched: `minutch fetch`, or remove the segment",
            (
                f"{one}: 1 of 1 page was fetched and is not in the CrawlDb: has updatedb been"
                " run? (key http://new.example/)"
            ),
        ],
    )


def test_pages_that_updatedb_has_not_seen(crawl: Path) -> None:
    write_db(
        crawl / "crawldb",
        [(url, CrawlDatum(STATUS_DB_UNFETCHED, 100, 1.0)) for url in URLS],
        parts=2,
    )
    code, (line,) = fsck(crawl)
    assert (
        code == 1 and "50 of 50 pages were fetched and are still unfetched in the CrawlDb" in line
    )


def test_a_hostdb(crawl: Path) -> None:
    hosts = {f"host{n:03}.example": HostDatum(fetched=n) for n in range(300)}
    write_hostdb(crawl / "hostdb", hosts)
    assert fsck(crawl) == (0, [])
    (crawl / f"hostdb/.new-{GONE_PID}").mkdir()
    [data] = (crawl / "hostdb/current").glob("part-*")
    crc_path(data).unlink()
    code, lines = fsck(crawl)
    assert code == 1 and lines == [
        f"{crawl}/hostdb/.new-{GONE_PID}: the work folder of a process that no longer runs",
        f"{data}: no checksums",
    ]
    assert fsck(crawl, "-repair")[0] == 0
    assert fsck(crawl) == (0, []) and dict(HostDb(crawl / "hostdb").items()) == hosts
    whole = data.read_bytes()
    data.write_bytes(whole[: whole.index(b"host150.example") + 20])
    code, lines = fsck(crawl, "-repair", "-drop")
    assert code == 0 and any(line.startswith(f"dropped: {data}: bytes ") for line in lines)
    left = dict(HostDb(crawl / "hostdb").items())
    assert 0 < len(left) < 300 and all(hosts[host] == left[host] for host in left)


def test_a_webgraph(crawl: Path) -> None:
    pages = {
        f"http://a{n}.example/": [f"http://a{n + k}.example/" for k in range(1, 4)]
        for n in range(50)
    }
    graph = graphs.graph_of(crawl, pages, mapreduce__job__reduces="2")
    assert fsck(crawl) == (0, [])
    nodes, links = ([*database.in_order()] for database in (graph.nodes, graph.inlinks))
    index, data = (
        graph.outlinks.current / "part-r-00000/index",
        graph.nodes.current / "part-r-00001/data",
    )
    flip(crc_path(data), 9)
    index.unlink()
    (graph.path / ".next-nodes").mkdir()
    (graph.inlinks.current / "part-r-00000").rename(graph.path / "part")
    (graph.inlinks.current / "part-r-00001").rename(graph.inlinks.current / "part-r-00000")
    (graph.path / "part").rename(graph.inlinks.current / "part-r-00001")
    code, lines = fsck(crawl)
    assert code == 1 and [
        line.partition(": ")[0].removesuffix(" at offset 0") for line in lines
    ] == [
        f"{crc_path(index).parent}/.index.crc",
        f"{graph.path}/.next-nodes",
        str(index),
        f"{graph.inlinks.current}/part-r-00000",
        f"{graph.inlinks.current}/part-r-00001",
        str(data),
    ]
    assert fsck(crawl, "-repair")[0] == 0
    assert fsck(crawl) == (0, [])
    for database, tables in ((graph.nodes, nodes), (graph.inlinks, links)):
        assert_frame_equal(pl.concat(database.in_order()), pl.concat(tables))
