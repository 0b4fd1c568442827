"""Compressed output (mapreduce.output.fileoutputformat.compress, its type and codec): databases,
fetch lists, texts.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import CRAWL_GENERATE, segments_in
from minutch.cycle.webgraph.store import WebGraph
from minutch.errors import ConfigError
from minutch.hadoop.formats.checksum import verify_file
from minutch.hadoop.formats.compress import BLOCK, CODECS, DEFAULT_CODEC, PACKAGE, Codec, packer
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, CrawlDatum
from minutch.work.tables.compression import (
    CODEC_PROPERTY,
    COMPRESS_PROPERTY,
    TYPE_PROPERTY,
    output_compression,
)
from tests.cycle.linkdb.test_jobs import ONE, links, segment
from tests.support.commands import (
    crawlcomplete,
    dedup,
    domainstats,
    freegen,
    generate,
    inject,
    invertlinks,
    linkdumper,
    linkrank,
    mergelinkdb,
    nodedumper,
    protocolstats,
    readdb,
    readhostdb,
    readlinkdb,
    updatedb,
    updatehostdb,
    webgraph,
)
from tests.support.crawldbs import context, read_db, write_segment
from tests.support.examples import few

GZIP, SNAPPY = f"{PACKAGE}GzipCodec", f"{PACKAGE}SnappyCodec"
WAYS = [("RECORD", ""), ("BLOCK", ""), ("NONE", ""), ("RECORD", GZIP), ("BLOCK", SNAPPY)]
URLS = [f"http://h{number % 5}.example/{number}" for number in range(200)]


def settings(kind: str, codec: str, **more: str) -> dict[str, str]:
    values = {COMPRESS_PROPERTY: "true", TYPE_PROPERTY: kind, "mapreduce.job.reduces": "2"}
    return {**values, **({CODEC_PROPERTY: codec} if codec else {}), **more}


def how(path: Path) -> tuple[str, str | None]:
    """Returns the compression of a file."""
    with SequenceFileReader(path / "data" if path.is_dir() else path) as reader:
        return reader.compression, reader.codec


def expected(kind: str, codec: str) -> tuple[str, str | None]:
    return kind, None if kind == "NONE" else codec or DEFAULT_CODEC


@pytest.mark.parametrize(("kind", "codec"), few(WAYS))
def test_a_crawldb_and_its_fetch_lists(kind: str, codec: str, tmp_path: Path) -> None:
    """Every job that writes them reads what the one before has left; the records are those of a
    plain one.
    """
    (tmp_path / "seeds.txt").write_text("\n".join(URLS))
    found = {}
    for name, own in (("plain", {"mapreduce.job.reduces": "2"}), ("packed", settings(kind, codec))):
        db, lists = tmp_path / name / "db", tmp_path / name / "segments"
        assert inject.run([str(db), str(tmp_path / "seeds.txt")], context(own)) == 0
        marking = {**own, "generate.update.crawldb": "true", "partition.url.seed": "1"}
        assert generate.run([str(db), str(lists), "-topN", "50"], context(marking)) == 0
        fetched = [
            (url, CrawlDatum(STATUS_FETCH_SUCCESS, 3600, signature=b"s")) for url in URLS[:20]
        ]
        write_segment(tmp_path / name / "fetched", fetched, parsed=[])
        assert updatedb.run([str(db), str(tmp_path / name / "fetched")], context(own)) == 0
        assert dedup.run([str(db)], context(own)) == 0
        assert (
            readdb.run(
                [str(db), "-dump", str(tmp_path / name / "dump"), "-format", "crawldb"],
                context(own),
            )
            == 0
        )
        (made,) = segments_in(lists)
        parts = [
            *CrawlDb(db).parts(),
            *made.parts(CRAWL_GENERATE),
            *(tmp_path / name / "dump").glob("part-*"),
        ]
        assert len(parts) == 5
        ways = {how(part) for part in parts}
        assert ways == ({("NONE", None)} if name == "plain" else {expected(kind, codec)})
        found[name] = read_db(db), sorted(made.records(CRAWL_GENERATE), key=str)
    assert len(found["packed"][0]) == len(URLS)
    assert found["packed"] == found["plain"]


@pytest.mark.parametrize(("kind", "codec"), WAYS)
def test_a_linkdb(kind: str, codec: str, tmp_path: Path) -> None:
    """Nutch always asks for its compression; type and codec hold."""
    made = segment(tmp_path / "20260101000000", ONE)
    own = settings(kind, codec, **{COMPRESS_PROPERTY: "false"})
    words = ["-noNormalize", "-noFilter"]
    assert invertlinks.run([str(tmp_path / "plain"), str(made), *words], context({})) == 0
    assert invertlinks.run([str(tmp_path / "one"), str(made), *words], context(own)) == 0
    assert mergelinkdb.run([str(tmp_path / "two"), str(tmp_path / "one")], context(own)) == 0
    for name in ("one", "two"):
        assert {how(part) for part in LinkDb(tmp_path / name).parts()} == {expected(kind, codec)}
        assert links(tmp_path / name) == links(tmp_path / "plain")
    assert {how(part) for part in LinkDb(tmp_path / "plain").parts()} == {("RECORD", DEFAULT_CODEC)}


def test_a_list_without_a_crawldb(tmp_path: Path) -> None:
    (tmp_path / "urls").mkdir()
    (tmp_path / "urls" / "list").write_text("http://a.example/\n")
    assert (
        freegen.run(
            [str(tmp_path / "urls"), str(tmp_path / "segments")], context(settings("BLOCK", ""))
        )
        == 0
    )
    (made,) = segments_in(tmp_path / "segments")
    assert {how(part) for part in made.parts(CRAWL_GENERATE)} == {expected("BLOCK", "")}


@pytest.mark.parametrize(
    ("name", "value"), [(TYPE_PROPERTY, "ZIP"), (CODEC_PROPERTY, "com.example.Codec")]
)
def test_what_can_not_be_says_so(name: str, value: str, tmp_path: Path) -> None:
    conf = Configuration.load([], overrides={COMPRESS_PROPERTY: "true", name: value})
    with pytest.raises(ConfigError, match=f"{name}: expected .*, found '{value}'"):
        output_compression(conf)
    (tmp_path / "seeds.txt").write_text("http://a.example/\n")
    with pytest.raises(ConfigError):
        inject.run(
            [str(tmp_path / "db"), str(tmp_path / "seeds.txt")],
            context({COMPRESS_PROPERTY: "true", name: value}),
        )
    assert not CrawlDb(tmp_path / "db").exists()
    assert output_compression(conf.with_values({COMPRESS_PROPERTY: "false"})) == output_compression(
        Configuration()
    )


@pytest.mark.parametrize(("kind", "codec"), few(WAYS))
def test_a_webgraph_and_a_hostdb(kind: str, codec: str, tmp_path: Path) -> None:
    """Every job that writes them leaves the records of plain ones."""
    made = segment(
        tmp_path / "20260101000000", {"http://a/": [("http://b/", "b"), ("http://c/", "c")]}
    )
    (tmp_path / "seeds.txt").write_text("\n".join(URLS))
    found = []
    for name, own in (("plain", {"mapreduce.job.reduces": "2"}), ("packed", settings(kind, codec))):
        graph, db, out = (str(tmp_path / name / folder) for folder in ("graph", "db", "out"))
        assert webgraph.run(["-webgraphdb", graph, "-segment", str(made)], context(own)) == 0
        assert linkrank.run(["-webgraphdb", graph], context(own)) == 0
        assert linkdumper.run(["-webgraphdb", graph], context(own)) == 0
        words = ["-scores", "-asSequenceFile", "-webgraphdb", graph, "-output", out]
        assert nodedumper.run(words, context(own)) == 0
        assert inject.run([db, str(tmp_path / "seeds.txt")], context(own)) == 0
        hosts = HostDb(tmp_path / name / "hosts")
        assert updatehostdb.run(["-hostdb", str(hosts.path), "-crawldb", db], context(own)) == 0
        parts = [part for part in Path(graph).rglob("part-r-*") if "old" not in part.parts]
        parts += [Path(out) / "part-r-00000", *hosts.parts()]
        assert len(parts) == 4 * 2 + 1 + 2
        ways = {how(part) for part in parts}
        assert ways == ({("NONE", None)} if name == "plain" else {expected(kind, codec)})
        store = WebGraph(Path(graph))
        nodes = [row for table in store.nodes.in_order() for row in table.iter_rows()]
        found.append((nodes, dict(hosts.items()), str(store.linkdump.get("http://b/"))))
    assert len(found[0][0]) == 3
    assert found[0] == found[1]


# -- texts -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CrawlDb, a LinkDb, a HostDb and a WebGraph."""
    folder = tmp_path_factory.mktemp("databases")
    own = {"mapreduce.job.reduces": "2"}
    made = segment(
        folder / "20260101000000", {"http://a/": [("http://b/", "b"), ("http://c/", "c")]}
    )
    (folder / "seeds.txt").write_text("\n".join(URLS))
    db, graph = str(folder / "db"), str(folder / "graph")
    assert inject.run([db, str(folder / "seeds.txt")], context(own)) == 0
    assert (
        invertlinks.run(
            [str(folder / "links"), str(made), "-noNormalize", "-noFilter"], context(own)
        )
        == 0
    )
    assert updatehostdb.run(["-hostdb", str(folder / "hosts"), "-crawldb", db], context(own)) == 0
    assert webgraph.run(["-webgraphdb", graph, "-segment", str(made)], context(own)) == 0
    assert linkrank.run(["-webgraphdb", graph], context(own)) == 0
    return folder


DUMPS: dict[str, tuple[ModuleType, str]] = {
    "readdb -dump": (readdb, "{0}/db -dump {1}"),
    "readdb -topN": (readdb, "{0}/db -topN 7 {1}"),
    "readlinkdb -dump": (readlinkdb, "{0}/links -dump {1}"),
    "readhostdb": (readhostdb, "{0}/hosts {1}"),
    "nodedumper": (nodedumper, "-scores -webgraphdb {0}/graph -output {1}"),
    "domainstats": (domainstats, "{0}/db {1} host"),
    "crawlcomplete": (crawlcomplete, "-inputDirs {0}/db -outputDir {1} -mode host"),
    "protocolstats": (protocolstats, "{0}/db {1}"),
}


@pytest.mark.parametrize(
    ("name", "codec"), [*((name, GZIP) for name in DUMPS), ("readdb -dump", SNAPPY)]
)
def test_texts(name: str, codec: str, databases: Path, tmp_path: Path) -> None:
    """Files end as the codec says, and unpacked they are the plain ones."""
    job, words = DUMPS[name]
    for folder, own in (
        ("plain", {"mapreduce.job.reduces": "2"}),
        ("packed", settings("NONE", codec)),
    ):
        assert job.run(words.format(databases, tmp_path / folder).split(), context(own)) == 0
    plain = {path.name: path.read_bytes() for path in (tmp_path / "plain").glob("part-*")}
    assert any(plain.values())
    ending = CODECS[codec].extension
    packed = {path.name: path for path in (tmp_path / "packed").glob("part-*")}
    assert {
        name.removesuffix(ending): CODECS[codec].decompress(path.read_bytes())
        for name, path in packed.items()
    } == plain
    assert all(name.endswith(ending) for name in packed)
    for path in packed.values():
        verify_file(path)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_csv_and_json_are_plain_as_in_nutch(form: str, databases: Path, tmp_path: Path) -> None:
    words = [f"{databases}/db", "-dump", str(tmp_path / "out"), "-format", form]
    assert readdb.run(words, context(settings("BLOCK", GZIP))) == 0
    assert {path.name for path in (tmp_path / "out").glob("part-*")} == {
        "part-r-00000",
        "part-r-00001",
    }


@pytest.mark.parametrize("codec", CODECS.values(), ids=lambda codec: codec.extension)
def test_streams_are_what_the_codec_reads(codec: Codec) -> None:
    for pieces in ([], [b""], [b"one", b"", b"two"], [b"x" * (3 * BLOCK + 5), bytes(BLOCK)]):
        stream = packer(codec)
        packed = b"".join([*(stream.compress(piece) for piece in pieces), stream.flush()])
        assert (codec.decompress(packed) if packed else b"") == b"".join(pieces)


def test_a_codec_that_is_none_leaves_nothing(databases: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=CODEC_PROPERTY):
        readdb.run(
            [f"{databases}/db", "-dump", str(tmp_path / "out")],
            context(settings("BLOCK", "com.example.Codec")),
        )
    assert not list(tmp_path.iterdir())
