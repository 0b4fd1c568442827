"""invertlinks, mergelinkdb and readlinkdb give what Nutch gives: records and dumps, but for the
order of links.
"""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from minutch.conf import Configuration
from minutch.cycle.linkdb.invertlinks import MAX_INLINKS_PROPERTY
from minutch.cycle.linkdb.store import LAYOUT_PROPERTY, LinkDb
from minutch.errors import FormatError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.writables import Text
from minutch.job import JobContext
from minutch.records.links import LAYOUT_METADATA, LAYOUT_PLAIN, Outlink
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData, ParseStatus
from tests.support.commands import invertlinks, mergelinkdb, readlinkdb
from tests.support.examples import tabled
from tests.support.golden import GOLDEN, needs_golden
from tests.support.replay import Job, Step, context, copied, jobs, steps
from tests.support.ties import Database, assert_cut, dump_as_sets, inlinks_as_sets

pytestmark = needs_golden

NO_LIMIT = {MAX_INLINKS_PROPERTY: "1000000"}
COMMANDS = {
    "invertlinks": invertlinks.run,
    "mergelinkdb": mergelinkdb.run,
    "readlinkdb": readlinkdb.run,
}


def segment_of(spec: Path, path: Path) -> Path:
    """A segment with the parse_data that `spec` describes."""
    with gzip.open(spec, "rt", encoding="utf-8") as lines:
        pages: list[dict[str, Any]] = [json.loads(line) for line in lines]
    folder = path / "parse_data/part-r-00000"
    folder.parent.mkdir(parents=True)
    with MapFileWriter(
        folder, Text.class_name, ParseData.class_name, compression="RECORD"
    ) as writer:
        for page in sorted(pages, key=lambda page: page["url"].encode()):
            links = [Outlink(url, anchor) for url, anchor in page["outlinks"]]
            metadata = Metadata.of(page["contentMeta"]), Metadata.of(page["parseMeta"])
            writer.append(
                Text(page["url"]), ParseData(ParseStatus(1, 0), page["title"], links, *metadata)
            )
    return path


@pytest.mark.parametrize("job", jobs("linkdb"), ids=str)
def test_job_table(job: Job, tmp_path: Path) -> None:
    segments = {
        "seg": segment_of(job.table / "spec/parse_data.jsonl.gz", tmp_path / "segment"),
        "seg2": segment_of(job.table / "spec/parse_data2.jsonl.gz", tmp_path / "segment2"),
    }

    def replay(out: Path, **more: str) -> Database:
        conf = job.configuration(**{"mapreduce.job.reduces": "1"} | job.properties | more)
        for command, *arguments in job.arguments(out=out, **segments):
            assert COMMANDS[command](arguments, context(conf)) == 0
        return inlinks_as_sets(out / "linkdb")

    found, expected = replay(tmp_path), inlinks_as_sets(job.output / "linkdb")
    limit = job.properties.get(MAX_INLINKS_PROPERTY)
    if limit is None:
        assert found == expected
    else:
        assert_cut(found, expected, replay(tmp_path / "uncut", **NO_LIMIT), int(limit))
    for part in sorted(job.output.glob("dump/part-*")):
        assert same_dump(tmp_path / "dump" / part.name, part)
    for part in sorted(job.output.glob("dump-regex/part-*")):
        # Nutch's LinkDbReader forgets -regex; here it counts
        wanted = [
            record for record in dump_as_sets(text_of(part)) if "t1" in record[0].partition("\t")[0]
        ]
        assert dump_as_sets(text_of(tmp_path / "dump-regex" / part.name)) == [*wanted, ("", [])]


def text_of(path: Path) -> str:
    return path.read_bytes().decode()


def same_dump(found: Path, expected: Path) -> bool:
    return dump_as_sets(text_of(found)) == dump_as_sets(text_of(expected))


@pytest.mark.parametrize("step", steps("invertlinks"), ids=str)
def test_crawl(step: Step, tmp_path: Path) -> None:
    segments = [
        str(step.run.folder / word) for word in step.arguments[1:] if not word.startswith("-")
    ]
    flags = [word for word in step.arguments[1:] if word.startswith("-")]
    layout = LAYOUT_PLAIN if step.run.name == "nutch-1.20" else LAYOUT_METADATA
    conf = step.configuration(**{LAYOUT_PROPERTY: layout})

    def replay(out: Path, conf: Configuration) -> Database:
        linkdb = copied(step.before("linkdb"), out)
        assert invertlinks.run([str(linkdb), *segments, *flags], context(conf)) == 0
        return inlinks_as_sets(linkdb)

    found, uncut = (
        replay(tmp_path / "linkdb", conf),
        replay(tmp_path / "uncut", conf.with_values(NO_LIMIT)),
    )
    assert_cut(
        found,
        inlinks_as_sets(step.after("linkdb")),
        uncut,
        conf.get_int(MAX_INLINKS_PROPERTY, 10_000),
    )


@needs_golden("nutch-1.20/crawl/segments")
def test_trunk_on_segments_of_1_20(tmp_path: Path) -> None:
    crawl = GOLDEN / "nutch-1.20/crawl"
    overrides = {"mapreduce.job.reduces": "2", "linkdb.ignore.internal.links": "false"}
    conf = Configuration.load([GOLDEN / "nutch-1.20/conf"], overrides=overrides)
    for segment in sorted((crawl / "segments").iterdir()):
        arguments = [str(tmp_path / "linkdb"), str(segment), "-noNormalize", "-noFilter"]
        assert invertlinks.run(arguments, context(conf)) == 0
    assert inlinks_as_sets(tmp_path / "linkdb") == inlinks_as_sets(
        GOLDEN / "nutch-1.20/trunk-linkdb"
    )


@needs_golden("nutch-1.20/crawl/segments")
def test_the_layout_of_the_database_is_kept(tmp_path: Path) -> None:
    step = [step for step in steps("invertlinks") if step.run.name == "nutch-1.20"][-1]
    linkdb = copied(step.before("linkdb"), tmp_path / "linkdb")
    segment = step.run.folder / step.arguments[1]
    assert (
        invertlinks.run(
            [str(linkdb), str(segment), "-noNormalize", "-nofilter"], context(step.configuration())
        )
        == 0
    )
    assert LinkDb(linkdb).layout == LAYOUT_PLAIN
    assert inlinks_as_sets(linkdb) == inlinks_as_sets(step.after("linkdb"))


@needs_golden("{linkdb}", "{dump}")
@pytest.mark.parametrize(
    ("linkdb", "dump"),
    [
        ("nutch-1.20/crawl/linkdb", "nutch-1.20/dumps/linkdb"),
        ("nutch-1.20/edge-linkdb", "nutch-1.20/dumps/edge-linkdb"),
        # fits both layouts; in the newer one all links come from what looks like a URL
        ("nutch-1.20/edge-linkdb-ambiguous", "nutch-1.20/cross/trunk-dump-ambiguous"),
        ("nutch-trunk-edge-linkdb/metadata", "nutch-trunk-edge-linkdb/dumps/metadata"),
        ("nutch-trunk-edge-linkdb/no-metadata", "nutch-trunk-edge-linkdb/dumps/no-metadata"),
        ("crawl-small/run-default-r1/crawl/linkdb", "crawl-small/run-default-r1/dumps/linkdb"),
        ("crawl-small/run-default-r2/crawl/linkdb", "crawl-small/run-default-r2/dumps/linkdb"),
        ("crawl-small/run-rich-r2/crawl/linkdb", "crawl-small/run-rich-r2/dumps/linkdb"),
        ("crawl-small-adaptive/run-r2/crawl/linkdb", "crawl-small-adaptive/run-r2/dumps/linkdb"),
    ],
)
def test_dump(linkdb: str, dump: str, tmp_path: Path) -> None:
    parts = sorted((GOLDEN / dump).glob("part-*"))
    conf = Configuration.load([], overrides={"mapreduce.job.reduces": str(len(parts))})
    assert (
        readlinkdb.run([str(GOLDEN / linkdb), "-dump", str(tmp_path / "out")], context(conf)) == 0
    )
    for part in parts:
        assert same_dump(tmp_path / "out" / part.name, part)


def consoles() -> list[Path]:
    return sorted(GOLDEN.glob("**/console/dumps/readlinkdb-url*.txt"))


@tabled("console", consoles())
def test_single_page(console: Path) -> None:
    first, _, text = console.read_text(encoding="utf-8").partition("\n")
    linkdb, _, url = first.split()[3:6]
    out = io.StringIO()
    arguments = [str(console.parents[2] / linkdb), "-url", url]
    assert readlinkdb.run(arguments, JobContext(Configuration.load([]), out=out)) == 0
    assert out.getvalue() + "[exit 0]\n" == text


@needs_golden("nutch-1.20/edge-linkdb", "nutch-trunk-edge-linkdb/metadata")
def test_a_mixture_of_layouts_is_refused(tmp_path: Path) -> None:
    copied(GOLDEN / "nutch-1.20/edge-linkdb", tmp_path / "mixed")
    copied(
        GOLDEN / "nutch-trunk-edge-linkdb/metadata/current/part-r-00000",
        tmp_path / "mixed/current/part-r-00001",
    )
    conf = Configuration.load([])
    with pytest.raises(FormatError, match="two layouts"):
        readlinkdb.run([str(tmp_path / "mixed"), "-dump", str(tmp_path / "out")], context(conf))
    with pytest.raises(FormatError, match="two layouts"):
        mergelinkdb.run([str(tmp_path / "new"), str(tmp_path / "mixed")], context(conf))
    assert not (tmp_path / "new/current").exists()
