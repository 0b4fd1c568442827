"""Links of parsed pages: by the kernel that takes them out of zlib streams as in the plain way."""

from __future__ import annotations

from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from minutch.conf import Configuration
from minutch.cycle.linkdb import invertlinks
from minutch.cycle.linkdb.rules import LinkRules, UrlChain
from minutch.errors import FormatError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.writables import (
    FloatWritable,
    LongWritable,
    MapWritable,
    NullWritable,
    Text,
)
from minutch.job import Counters
from minutch.records.links import Outlink
from minutch.records.parsedata import ParseData
from minutch.work.tables.recordfiles import scan_outlinks
from minutch.work.tables.spans import CombineFileSplit

URLS = (
    *(
        "http://a.b/1",
        "https://A.b/",
        "http://c/",
        "http://c/" + "x" * 300,
        "http://a.b:80/",
        "http://u@c/",
        "mailto:x",
    ),
    *("", "http://[::1]/", "http://ä/ö", "ftp://a.b/"),
)
ANCHORS = ("", "short", "twelve bytes", "longer than twelve bytes", "ä" * 150, "x" * 99)


def page(random: Random, links: int, usual: bool = True) -> ParseData:
    """A parsed page with so many links, some of them with metadata."""
    made = []
    for _ in range(links):
        metadata = MapWritable(
            {Text("a"): random.choice((Text("b"), LongWritable(1), FloatWritable(1)))}
        )
        if not usual:
            metadata = MapWritable({Text("a"): NullWritable()})
        own = metadata if random.random() < 0.2 or not usual else MapWritable()
        made.append(Outlink(random.choice(URLS), random.choice(ANCHORS), own))
    return ParseData(title="title", outlinks=made)


def written(path: Path, pages: list[ParseData], compression: str = "RECORD") -> Path:
    with MapFileWriter(
        path, "org.apache.hadoop.io.Text", ParseData.class_name, compression=compression
    ) as file:
        for number, data in enumerate(pages):
            key = f"http://{'ac'[number > 150]}.b/{number:05}".encode()
            file.append_raw(bytes((len(key),)) + key, data.to_bytes())
    return path


def rules_for(**properties: str) -> LinkRules:
    conf = Configuration.load(
        [], overrides={"plugin.includes": "urlfilter-regex|urlnormalizer-basic"}
    )
    conf = conf.with_values({name.replace("_", "."): value for name, value in properties.items()})
    return LinkRules.from_conf(
        conf, chain=UrlChain.from_conf(conf, normalize=False, filtering=False)
    )


def both_ways(path: Path, rules: LinkRules) -> list[tuple[pl.DataFrame, Counters]]:
    ways = []
    for kernel in (True, False):
        counters, tables = Counters(), []
        if kernel:
            for found in invertlinks.scan_links(path, rules):
                counters.merge(found.counters)
                tables.append(found.links)
        else:
            tables = [rules.apply(table, counters) for table in scan_outlinks(path)]
        ways.append((pl.concat(tables), counters))
    return ways


@pytest.mark.parametrize("compression", ["RECORD", "BLOCK", "NONE"])
@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"linkdb_ignore_internal_links": "false"},
        {"linkdb_ignore_internal_links": "false", "linkdb_ignore_external_links": "true"},
    ],
)
def test_links_are_those_of_the_plain_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str, properties: dict[str, str]
) -> None:
    random = Random(len(properties))
    path = written(
        tmp_path / "data", [page(random, random.choice((0, 1, 7))) for _ in range(300)], compression
    )
    if compression == "RECORD":
        monkeypatch.setattr(LinkRules, "apply", None)  # every page is one that the kernel knows
    fast, counted = invertlinks.scan_links(path, rules_for(**properties)), Counters()
    tables = []
    for found in fast:
        tables.append(found.links)
        counted.merge(found.counters)
    monkeypatch.undo()
    expected, counters = both_ways(path, rules_for(**properties))[1]
    assert pl.concat(tables).equals(expected)
    assert counted == counters


def test_links_of_small_parts_come_together(tmp_path: Path) -> None:
    """In the order of the parts, however each of them is compressed."""
    random, paths = Random(3), []
    for number, compression in enumerate(("RECORD", "RECORD", "BLOCK", "NONE", "RECORD")):
        pages = [page(random, 4, usual=number != 4) for _ in range(9 * (number != 1))]
        paths.append(written(tmp_path / str(number), pages, compression))
    rules = rules_for()
    for some in (paths, paths[:2]):
        found = [*invertlinks.scan_links(CombineFileSplit(tuple(some)), rules)]
        expected = [each for path in some for each in invertlinks.scan_links(path, rules)]
        assert pl.concat(one.links for one in found).equals(
            pl.concat(one.links for one in expected)
        )
        assert sum(one.pages for one in found) == sum(one.pages for one in expected)
    assert len(found) == 1


def test_room_grows_with_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(invertlinks, "_RECORD_ROOM", 64)
    monkeypatch.setattr(invertlinks, "_TYPICAL_RATIO", 1)
    monkeypatch.setattr(invertlinks, "_LINK", 1000)
    random = Random(1)
    path = written(tmp_path / "data", [page(random, 200) for _ in range(30)])
    (fast, counted), (plain, counters) = both_ways(path, rules_for())
    assert fast.equals(plain)
    assert counted == counters


def test_what_the_kernel_does_not_know_is_read_in_the_plain_way(tmp_path: Path) -> None:
    random = Random(2)
    path = written(
        tmp_path / "data", [page(random, 3), page(random, 3, usual=False), page(random, 3)]
    )
    (fast, counted), (plain, counters) = both_ways(path, rules_for())
    assert fast.equals(plain)
    assert counted == counters


def test_damage_is_named(tmp_path: Path) -> None:
    random = Random(3)
    path = written(tmp_path / "data", [page(random, 50) for _ in range(20)]) / "data"
    path.with_name(".data.crc").unlink()
    data = np.fromfile(path, np.uint8)
    data[len(data) // 2 :][:64] = 255
    data.tofile(path)
    with pytest.raises(FormatError, match="data"):
        list(invertlinks.scan_links(path.parent, rules_for()))
