"""The LinkDb: the layout of its records is found out, kept apart from the other, and written either
way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import polars as pl
import pytest

from minutch.cycle.linkdb.store import LinkDb
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records import links_columns
from minutch.records.links import LAYOUT_METADATA, LAYOUT_PLAIN, LAYOUTS, Inlink, Inlinks
from minutch.records.links_columns import INLINKS_SCHEMA, LinkSets
from minutch.work.tables.recordfiles import InlinksWriter, scan_inlinks
from tests.support.examples import few
from tests.support.golden import GOLDEN, HAS_ALL, needs_golden
from tests.support.tables import write_records

INLINKS = "org.apache.nutch.crawl.Inlinks"
OLD = ("crawl/linkdb", "steps/06-linkdb", "steps/12-linkdb", "edge-linkdb")
LINKDBS = sorted(
    (
        path.parent
        for path in GOLDEN.rglob("current")
        if (data := next(path.glob("part*/data"), None))
        and INLINKS.encode() in data.read_bytes()[:120]
    ),
    key=lambda path: sum(file.stat().st_size for file in path.glob("current/*/data")),
)
"""The smallest first."""


def expected_layout(path: Path) -> str:
    """The layout of a golden LinkDb: Nutch 1.20's own are the older one."""
    by_1_20 = (
        path.is_relative_to(GOLDEN / "nutch-1.20")
        and str(path.relative_to(GOLDEN / "nutch-1.20")) in OLD
    )
    return LAYOUT_PLAIN if by_1_20 else LAYOUT_METADATA


@needs_golden
def test_there_are_golden_linkdbs_of_both_layouts() -> None:
    assert {expected_layout(path) for path in LINKDBS} == set(LAYOUTS) and len(LINKDBS) > (
        20 if HAS_ALL else 5
    )


@pytest.mark.parametrize("path", few(LINKDBS, 8), ids=lambda path: str(path.relative_to(GOLDEN)))
def test_golden_linkdbs(path: Path, tmp_path: Path) -> None:
    db = LinkDb(path)
    assert db.layout == expected_layout(path)
    for number, part in enumerate(db.parts()):
        with SequenceFileReader(part / "data") as reader:
            records = [(DataInput(key).read_text(), value) for key, value in reader]
        expected = {url: Inlinks.read(DataInput(value), db.layout) for url, value in records}
        frame = pl.concat(list(db.scan_part(number)))
        with without_kernels():
            assert frame.equals(pl.concat(list(db.scan_part(number))))
        assert frame.schema == INLINKS_SCHEMA
        for url, links in expected.items():
            assert db.get(url) == links
        with InlinksWriter(tmp_path / str(number), db.layout) as writer:
            writer.write(LinkSets.of(frame))
        with SequenceFileReader(tmp_path / str(number) / "data") as reader:
            found = [(DataInput(key).read_text(), value) for key, value in reader]
        if "ambiguous" in path.name:  # forged: empty maps, which are written as none
            assert {
                url: Inlinks.read(DataInput(value), db.layout) for url, value in found
            } == expected
        else:
            assert found == records


@contextmanager
def without_kernels() -> Iterator[None]:
    """Inside, links are found by the dataclasses."""
    with mock.patch.object(links_columns, "_decode", lambda *_, **__: None):
        yield


def links(count: int) -> Inlinks:
    """Some links."""
    return Inlinks(Inlink(f"http://from{i}.example/", f"anchor {i}") for i in range(count))


def record(value: Inlinks, layout: str) -> bytes:
    """Its bytes in a layout."""
    from minutch.hadoop.formats.javaio import DataOutput

    out = DataOutput()
    value.write(out, layout)
    return out.getvalue()


def linkdb(path: Path, *values: bytes) -> LinkDb:
    """A LinkDb of one part with these records."""
    part = path / "current" / "part-r-00000"
    part.mkdir(parents=True)
    write_records(
        part / "data",
        [(b"http://%d/" % i, value) for i, value in enumerate(values)],
        "RECORD",
        INLINKS,
    )
    return LinkDb(path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_records_without_links_do_not_decide(tmp_path: Path, layout: str) -> None:
    db = linkdb(tmp_path, bytes(4), bytes(4), record(links(2), layout), bytes(4))
    assert db.layout == layout
    frame = pl.concat(list(db.scan_part(0)))
    assert frame["from_url"].is_null().to_list() == [True, True, False, False, True]


def test_nothing_decides(tmp_path: Path) -> None:
    assert linkdb(tmp_path, bytes(4)).layout == LAYOUT_METADATA
    assert LinkDb(tmp_path / "none").layout == LAYOUT_METADATA


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_mixture_is_refused(tmp_path: Path, layout: str) -> None:
    other = LAYOUTS[1 - LAYOUTS.index(layout)]
    db = linkdb(tmp_path, record(links(2), layout), record(links(3), other))
    assert db.layout == layout
    with pytest.raises(FormatError, match="two layouts") as caught:
        list(db.scan_part(0))
    assert "http://1/" in str(caught.value) and "part-r-00000" in str(caught.value)


def test_a_record_of_neither_layout_is_damage(tmp_path: Path) -> None:
    db = linkdb(tmp_path, record(links(2), LAYOUT_METADATA), b"\0\0\0\1\5http")
    with pytest.raises(FormatError) as caught:
        list(db.scan_part(0))
    assert "two layouts" not in str(caught.value) and "http://1/" in str(caught.value)
    with pytest.raises(FormatError, match="neither"):
        _ = linkdb(tmp_path / "other", b"\0\0\0\1\5http").layout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_either_layout_can_be_written(tmp_path: Path, layout: str) -> None:
    frame = pl.DataFrame(
        [
            (b"http://a/", b"http://x/", b"one", None),
            (b"http://a/", b"http://y/", b"\xff" * 300, None),
            (b"http://b/", None, None, None),
            (b"http://c/", b"http://" + b"z" * 200, b"", None),
        ],
        schema=INLINKS_SCHEMA,
        orient="row",
    )
    with InlinksWriter(tmp_path / "part", layout) as writer:
        writer.write(LinkSets.of(frame))
    assert pl.concat(list(scan_inlinks(tmp_path / "part", layout))).equals(frame)
    with without_kernels():
        assert pl.concat(list(scan_inlinks(tmp_path / "part", layout))).equals(frame)
