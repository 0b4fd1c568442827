"""invertlinks, mergelinkdb and readlinkdb as commands: flags, exit codes, layouts, what they
say.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from minutch import job
from minutch.conf import Configuration
from minutch.cycle.linkdb import invertlinks
from minutch.cycle.linkdb.store import LinkDb
from minutch.errors import ConfigError, FormatError, LockedError, StoreError, UsageError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.writables import Text
from minutch.job import JobContext
from minutch.records.links import LAYOUT_METADATA, LAYOUT_PLAIN, Outlink
from minutch.records.parsedata import ParseData, ParseStatus
from tests.support.commands import invertlinks as invertlinks_command
from tests.support.commands import mergelinkdb, readlinkdb

PLUGINS = "urlfilter-regex|urlnormalizer-(pass|regex|basic)"
Pages = dict[str, list[tuple[str, str]]]

ONE: Pages = {
    "http://a/": [("http://b/", "to b"), ("http://c/", "to c")],
    "http://d/": [("http://b/", "b too")],
}
TWO: Pages = {"http://e/": [("http://b/", "b again"), ("http://f/x.gif", "f")]}


def segment(path: Path, pages: Pages, parts: int = 1) -> Path:
    """A segment with nothing but the parse_data of `pages`, which are dealt out to its parts."""
    for part in range(parts):
        folder = path / f"parse_data/part-r-{part:05}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        with MapFileWriter(
            folder, Text.class_name, ParseData.class_name, compression="RECORD"
        ) as writer:
            for url in sorted(pages)[part::parts]:
                data = ParseData(ParseStatus(1, 0), "", [Outlink(*link) for link in pages[url]])
                writer.append(Text(url), data)
    return path


def context(**properties: str) -> JobContext:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    conf = Configuration.load([], overrides={"plugin.includes": PLUGINS, **named})
    return JobContext(conf, out=io.StringIO())


def links(db: Path) -> dict[str, set[str]]:
    """Returns the inlinks of each page."""
    store = LinkDb(db)
    tables = [table for part in range(len(store.parts())) for table in store.scan_part(part)]
    rows = [row for table in tables for row in table.select("key", "from_url").iter_rows()]
    found: dict[str, set[str]] = {}
    for key, url in rows:
        found.setdefault(key.decode(), set()).add(url.decode())
    return found


@pytest.fixture
def segments(tmp_path: Path) -> Path:
    segment(tmp_path / "segments/20200101000000", ONE)
    segment(tmp_path / "segments/20200101000001", TWO)
    return tmp_path / "segments"


def test_directory_or_list_of_segments(segments: Path, tmp_path: Path) -> None:
    assert (
        invertlinks_command.run(
            [str(tmp_path / "db1"), "-dir", str(segments), "-NOFILTER"], context()
        )
        == 0
    )
    both = [str(path) for path in sorted(segments.iterdir())]
    assert (
        invertlinks_command.run(
            [str(tmp_path / "db2"), *both, "-noFilter", "-noNormalize"], context()
        )
        == 0
    )
    expected = {
        "http://b/": {"http://a/", "http://d/", "http://e/"},
        "http://c/": {"http://a/"},
        "http://f/x.gif": {"http://e/"},
    }
    assert links(tmp_path / "db1") == links(tmp_path / "db2") == expected
    assert not (tmp_path / "db1/.locked").exists()
    assert not (tmp_path / "db1/old").exists()


def test_several_directories(segments: Path, tmp_path: Path) -> None:
    segment(tmp_path / "more/20200101000002", {"http://g/": [("http://b/", "from g")]})
    arguments = [
        "-noFilter",
        str(tmp_path / "db"),
        "-dir",
        str(segments),
        "-dir",
        str(tmp_path / "more"),
    ]
    assert invertlinks_command.run(arguments, context()) == 0
    assert links(tmp_path / "db")["http://b/"] == {
        "http://a/",
        "http://d/",
        "http://e/",
        "http://g/",
    }


def test_filters_apply_to_new_links_and_stored_ones(segments: Path, tmp_path: Path) -> None:
    db = tmp_path / "db"
    first, second = sorted(segments.iterdir())
    assert invertlinks_command.run([str(db), str(second), "-noFilter"], context()) == 0
    assert "http://f/x.gif" in links(db)
    assert invertlinks_command.run([str(db), str(first)], context()) == 0
    assert set(links(db)) == {"http://b/", "http://c/"}


def test_records_are_compressed_one_by_one(segments: Path, tmp_path: Path) -> None:
    invertlinks_command.run(
        [str(tmp_path / "db"), "-dir", str(segments)], context(mapreduce_job_reduces="2")
    )
    parts = sorted((tmp_path / "db/current").iterdir())
    assert [part.name for part in parts] == ["part-r-00000", "part-r-00001"]
    with SequenceFileReader(parts[0] / "data") as reader:
        assert reader.compression == "RECORD"


def test_progress_knows_how_much_is_to_come(
    segments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int | None]] = []

    class Watched(job.Progress):
        def advance(self, count: int = 1) -> None:
            super().advance(count)
            seen.append((self.done, self.total))

    monkeypatch.setattr(job, "Progress", Watched)
    counters = invertlinks.invertlinks(
        tmp_path / "db", sorted(segments.iterdir()), context=context(mapreduce_job_reduces="1")
    )
    assert seen[-1][0] == len(ONE | TWO) + counters["inlinks written"]
    assert all(total is not None and total >= done for done, total in seen)


def test_ignoring_everything_leaves_the_linkdb_alone(
    segments: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = context(linkdb_ignore_external_links="true")
    assert invertlinks_command.run([str(tmp_path / "db"), "-dir", str(segments)], both) == 0
    assert "nothing to do" in caplog.text
    assert not (tmp_path / "db").exists()


def test_errors_leave_the_linkdb_as_it_was(segments: Path, tmp_path: Path) -> None:
    db = tmp_path / "db"
    invertlinks_command.run([str(db), "-dir", str(segments)], context())
    before = links(db)
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"folder of segments .* -dir"):
        invertlinks_command.run([str(db), str(segments)], context())
    with pytest.raises(StoreError, match="parse_data"):
        invertlinks_command.run([str(db), str(tmp_path / "empty")], context())
    with pytest.raises(StoreError, match="no segments"):
        invertlinks_command.run([str(db), "-dir", str(tmp_path / "empty")], context())
    (db / ".locked").touch()
    with pytest.raises(LockedError):
        invertlinks_command.run([str(db), "-dir", str(segments)], context())
    assert links(db) == before
    assert invertlinks_command.run([str(db), "-dir", str(segments), "-FORCE"], context()) == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "Usage: LinkDb <linkdb>"),
        (["db"], "too few arguments: no <segments>\nUsage: LinkDb <linkdb>"),
        (["db", "-force"], "no <segments>"),
        (["db", "seg", "-nofilters"], "unknown option -nofilters"),
        (["db", "-dir"], "-dir needs a value: <segments_dir>"),
    ],
)
def test_wrong_arguments(arguments: list[str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        invertlinks_command.run(arguments, context())
    assert caught.value.exit_code == 255


def test_layout_as_asked_or_as_it_was(segments: Path, tmp_path: Path) -> None:
    db = tmp_path / "db"
    arguments = [str(db), "-dir", str(segments)]
    invertlinks_command.run(arguments, context())
    assert LinkDb(db).layout == LAYOUT_METADATA
    invertlinks_command.run(arguments, context(linkdb_inlink_layout="1.20"))
    assert LinkDb(db).layout == LAYOUT_PLAIN
    invertlinks_command.run(arguments, context(linkdb_inlink_layout="auto"))
    assert LinkDb(db).layout == LAYOUT_PLAIN
    invertlinks_command.run(arguments, context(linkdb_inlink_layout="1.21"))
    assert LinkDb(db).layout == LAYOUT_METADATA
    with pytest.raises(ConfigError, match=r"expected auto, 1\.21 or 1\.20, found '1\.19'"):
        invertlinks_command.run(arguments, context(linkdb_inlink_layout="1.19"))


def test_merging_two_layouts_gives_the_newer(segments: Path, tmp_path: Path) -> None:
    first, second = map(str, sorted(segments.iterdir()))
    invertlinks_command.run([str(tmp_path / "one"), first], context(linkdb_inlink_layout="1.20"))
    invertlinks_command.run([str(tmp_path / "two"), second, "-noFilter"], context())
    sources = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert mergelinkdb.run([str(tmp_path / "both"), *sources], context()) == 0
    assert LinkDb(tmp_path / "both").layout == LAYOUT_METADATA
    assert links(tmp_path / "both")["http://b/"] == {"http://a/", "http://d/", "http://e/"}
    assert mergelinkdb.run([str(tmp_path / "filtered"), *sources, "-filter"], context()) == 0
    assert "http://f/x.gif" not in links(tmp_path / "filtered")
    assert mergelinkdb.run([str(tmp_path / "old"), sources[0]], context()) == 0
    assert LinkDb(tmp_path / "old").layout == LAYOUT_PLAIN


def test_merging_refuses_what_is_there(segments: Path, tmp_path: Path) -> None:
    db = str(tmp_path / "db")
    invertlinks_command.run([db, "-dir", str(segments)], context())
    with pytest.raises(StoreError, match="already exists"):
        mergelinkdb.run([db, db], context())
    with pytest.raises(StoreError, match="does not exist"):
        mergelinkdb.run([str(tmp_path / "new"), str(tmp_path / "nowhere")], context())
    with pytest.raises(UsageError, match="Usage: LinkDbMerger"):
        mergelinkdb.run([db], context())


def test_reading(segments: Path, tmp_path: Path) -> None:
    db = str(tmp_path / "db")
    invertlinks_command.run([db, "-dir", str(segments)], context())
    reading = context()
    assert readlinkdb.run([db, "-url", "http://c/"], reading) == 0
    assert readlinkdb.run([db, "-url", "http://nowhere/"], reading) == 0
    printed = "fromUrl: http://a/ anchor: to c metadata: \n\n\n - no link information.\n\n"
    assert reading.out.getvalue() == printed  # type: ignore[attr-defined]
    assert readlinkdb.run([db, "-dump", str(tmp_path / "dump"), "-regex", ".*c/"], context()) == 0
    text = (tmp_path / "dump/part-r-00000").read_text(encoding="utf-8")
    assert text == "http://c/\tInlinks:\n fromUrl: http://a/ anchor: to c metadata: \n\n"
    assert (tmp_path / "dump/.part-r-00000.crc").exists()


def test_reading_wrongly(segments: Path, tmp_path: Path) -> None:
    db = str(tmp_path / "db")
    with pytest.raises(StoreError, match="does not exist"):
        readlinkdb.run([db, "-url", "http://c/"], context())
    with pytest.raises(StoreError, match="does not exist"):
        readlinkdb.run([db, "-dump", str(tmp_path / "dump")], context())
    assert not (tmp_path / "dump").exists()
    invertlinks_command.run([db, "-dir", str(segments)], context())
    with pytest.raises(UsageError, match="-regex"):
        readlinkdb.run([db, "-dump", str(tmp_path / "dump"), "-regex", "["], context())
    (tmp_path / "dump").mkdir()
    with pytest.raises(StoreError, match="already exists"):
        readlinkdb.run([db, "-dump", str(tmp_path / "dump")], context())
    for wrong in ([], [db], [db, "-list"]):
        with pytest.raises(UsageError, match="Usage: LinkDbReader"):
            readlinkdb.run(wrong, context())


def test_damage_is_named(segments: Path, tmp_path: Path) -> None:
    db = tmp_path / "db"
    invertlinks_command.run([str(db), "-dir", str(segments)], context())
    data = db / "current/part-r-00000/data"
    content = bytearray(data.read_bytes())
    content[-20] ^= 0x55
    data.write_bytes(content)
    with pytest.raises(FormatError, match="part-r-00000"):
        invertlinks_command.run([str(db), "-dir", str(segments)], context())


def test_another_kind_of_database_is_named(tmp_path: Path) -> None:
    """Its records are no links: the error says of which folder."""
    with MapFileWriter(
        tmp_path / "db/current/part-r-00000", Text.class_name, Text.class_name
    ) as writer:
        writer.append(Text("http://a/"), Text("no links"))
    with pytest.raises(FormatError, match=re.escape(str(tmp_path / "db"))):
        readlinkdb.run([str(tmp_path / "db"), "-url", "http://a/"], context())
