"""The mark `_SUCCESS` in finished folders (mapreduce.fileoutputcommitter.marksuccessfuljobs)."""

from __future__ import annotations

from pathlib import Path

from minutch.cycle.segment.store import segments_in
from minutch.work.tables.install import PROPERTY, SUCCESS
from tests.cycle.linkdb.test_jobs import ONE, segment
from tests.support.commands import (
    fsck,
    generate,
    inject,
    invertlinks,
    mergedb,
    mergesegs,
    readdb,
    readlinkdb,
    updatedb,
)
from tests.support.crawldbs import context, printed


def marked(folder: Path) -> set[str]:
    return {str(path.parent.relative_to(folder)) for path in folder.rglob(SUCCESS)}


def run_all(folder: Path, value: str) -> None:
    """Jobs that leave marks, those that go on with what they left, and those that leave none."""
    job = {PROPERTY: value}
    (folder / "urls").mkdir(parents=True)
    (folder / "urls" / "seeds.txt").write_text("http://a.example/\nhttp://b.example/\n")
    db, segments = str(folder / "crawldb"), folder / "segments"
    assert inject.run([db, str(folder / "urls")], context(job)) == 0
    assert generate.run([db, str(segments)], context(job)) == 0
    (made,) = segments_in(segments)
    assert made.has("crawl_generate")
    parsed = segment(folder / "parsed" / "20260101000000", ONE)
    links, words = str(folder / "linkdb"), ["-noFilter", "-noNormalize"]
    for _ in range(2):
        assert invertlinks.run([links, str(parsed), *words], context(job)) == 0
        assert mergedb.run([str(folder / "merged"), db], context(job)) == 0
    assert readlinkdb.run([links, "-dump", str(folder / "links")], context(job)) == 0
    assert readdb.run([str(folder / "merged"), "-dump", str(folder / "dump")], context(job)) == 0
    assert readdb.run([db, "-topN", "1", str(folder / "top")], context(job)) == 0
    assert mergesegs.run([str(folder / "segs"), str(parsed)], context(job)) == 0
    assert updatedb.run([db, "-dir", str(folder / "parsed")], context(job)) == 0


def test_where_nutch_leaves_a_mark(tmp_path: Path) -> None:
    run_all(tmp_path / "on", "true")
    found = marked(tmp_path / "on")
    (generated,) = (tmp_path / "on" / "segments").iterdir()
    assert found == {
        f"segments/{generated.name}/crawl_generate",
        "linkdb/current", "merged/current", "merged/old", "links", "dump", "top", "segs",
    }  # fmt: skip
    assert (tmp_path / "on" / "dump" / SUCCESS).read_bytes() == b""
    assert (tmp_path / "on" / "dump" / f".{SUCCESS}.crc").is_file()
    run_all(tmp_path / "off", "false")
    assert marked(tmp_path / "off") == set()


def test_marks_are_no_fault_of_a_crawl(tmp_path: Path) -> None:
    run_all(tmp_path, "true")
    job = context()
    assert fsck.run([str(tmp_path)], job) == 1
    assert "generated, but not fetched" in printed(job)
    assert SUCCESS not in printed(job)
