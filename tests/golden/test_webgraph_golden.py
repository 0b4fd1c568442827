"""The webgraph's commands give what Nutch gives: databases record for record, texts line for line.

What differs, and why:

    order of a page's links       that of Hadoop's sort in Nutch; here that of the page
    timestamps                    those of the run
    limits                        which link to or from a page or domain is the first depends on
                                  that order: the same pages and domains are linked, and scores lie
                                  between what any order gives
    sums of scores                32-bit sums in that order in Nutch
    equal numbers                 come in that order in Nutch's dumps; here in the order of the URLs
"""

from __future__ import annotations

import io
import math
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from minutch.commands.help import usage
from minutch.conf import Configuration
from minutch.cycle.webgraph.rules import LinkLimits
from minutch.cycle.webgraph.store import OutlinkDb, WebGraph
from minutch.errors import UsageError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.job import JobContext
from minutch.work.tables.frame import decode_keys
from tests.support.commands import (
    linkdumper,
    linkdumperreader,
    linkrank,
    nodedumper,
    nodereader,
    scoreupdater,
    webgraph,
)
from tests.support.examples import few
from tests.support.golden import GOLDEN, needs_golden
from tests.support.replay import copied, database_records

COMMANDS = GOLDEN / "commands"
pytestmark = needs_golden("commands/webgraph")


@dataclass(frozen=True)
class Case:
    """One run of Nutch's: its folder, arguments, configuration, what it printed."""

    folder: Path
    words: list[str]
    conf: list[Path]
    properties: dict[str, str]
    text: str

    def __str__(self) -> str:
        return self.folder.name

    def configuration(self, **more: str) -> Configuration:
        named = {name.replace("__", "."): value for name, value in more.items()}
        return Configuration.load(
            self.conf, overrides={"mapreduce.job.reduces": "1", **self.properties, **named}
        )

    def run(self, out: Path, run: Callable[[list[str], JobContext], int], **more: str) -> str:
        """Run the command below `out`; what it prints."""
        written = ("webgraphdb", "out", "crawldb")
        words = [str(out / word) if word in written else word for word in self.words]
        context = JobContext(
            self.configuration(**more).freeze(), out=io.StringIO(), err=io.StringIO()
        )
        assert run(words, context) == 0
        assert isinstance(context.out, io.StringIO)
        return context.out.getvalue()


def case(folder: Path) -> Case:
    first, second, text = (folder / "console.txt").read_text(encoding="utf-8").split("\n", 2)
    _, _, folders = second.partition(": ")
    words = [_placed(word) for word in shlex.split(first.replace("$Reader", "\\$Reader"))[3:]]
    properties = dict(
        word.removeprefix("-D").split("=", 1) for word in words if word.startswith("-D")
    )
    conf = [Path(_placed(name)) for name in folders.split(":") if "NUTCH_HOME" not in name]
    return Case(
        folder, [word for word in words if not word.startswith("-D")], conf, properties, text
    )


def _placed(word: str) -> str:
    return word.replace("$GOLDEN", str(GOLDEN)).replace("$OUT", str(COMMANDS))


def cases(command: str) -> list[Case]:
    return [case(folder) for folder in sorted((COMMANDS / command).glob("*"))]


def graph_of(name: str) -> WebGraph:
    return WebGraph(COMMANDS / name / "webgraphdb")


def rows(database: OutlinkDb) -> list[tuple[object, ...]]:
    """The links of a database, in one order; without their times."""
    return sorted(pl.concat(list(database.in_order())).drop("timestamp").rows())


def node_table(graph: WebGraph) -> pl.DataFrame:
    return pl.concat(list(graph.nodes.in_order()))


BEFORE = {"tables-incremental": "tables-one", "rich-incremental": "rich-filter-normalize"}
"""Case -> the one that made the webgraph which it adds to."""


@pytest.mark.parametrize("golden", cases("webgraph"), ids=str)
def test_webgraph(golden: Case, tmp_path: Path) -> None:
    if golden.folder.name in BEFORE:
        copied(
            COMMANDS / "webgraph" / BEFORE[golden.folder.name] / "webgraphdb",
            tmp_path / "webgraphdb",
        )
    golden.run(tmp_path, webgraph.run)
    found, expected = WebGraph(tmp_path / "webgraphdb"), WebGraph(golden.folder / "webgraphdb")
    assert (found.outlinks.path / "old").exists() == (expected.outlinks.path / "old").exists()
    limits = LinkLimits.from_conf(golden.configuration())
    if rows(found.outlinks) != rows(expected.outlinks):
        assert limits.any
    if limits.any:
        assert places(found.outlinks, limits) == places(expected.outlinks, limits)
        assert flipped(found.outlinks) == ends(found.inlinks)
        assert flipped(expected.outlinks) == ends(expected.inlinks)
    else:
        assert rows(found.inlinks) == rows(expected.inlinks)
        assert node_table(found).equals(node_table(expected))
    assert dict(counted(found)) == {row[0]: row[1:3] for row in node_table(found).rows()}


def places(links: OutlinkDb, limits: LinkLimits) -> list[tuple[bytes, str]]:
    """Returns the targets of each page's links, as far as they don't depend on the order of its
    links: domains, or pages.
    """
    table = pl.concat(list(links.in_order()))
    return sorted(zip(table["key"], limits.groups(decode_keys(table["url"])), strict=True))


def ends(links: OutlinkDb) -> list[tuple[bytes, bytes, bytes]]:
    table = pl.concat(list(links.in_order()))
    return sorted(table.select("key", "url", "anchor").rows())


def flipped(links: OutlinkDb) -> list[tuple[bytes, bytes, bytes]]:
    return sorted((url, key, anchor) for key, url, anchor in ends(links))


def counted(graph: WebGraph) -> Iterable[tuple[bytes, tuple[int, int]]]:
    """Counts the links of each page."""
    inlinks, outlinks = (
        [key for key, _, _ in ends(links)] for links in (graph.inlinks, graph.outlinks)
    )
    for url in {*inlinks, *outlinks}:
        yield url, (inlinks.count(url), outlinks.count(url))


@pytest.mark.parametrize("golden", cases("linkrank"), ids=str)
@pytest.mark.parametrize("parts", few(["3", "1"]))
def test_linkrank(golden: Case, parts: str, tmp_path: Path) -> None:
    copied(golden.folder / "webgraphdb", tmp_path / "webgraphdb")
    golden.run(tmp_path, linkrank.run, mapreduce__job__reduces=parts)
    found, expected = (
        node_table(WebGraph(path / "webgraphdb")) for path in (tmp_path, golden.folder)
    )
    assert found.drop("inlink_score").equals(expected.drop("inlink_score"))
    low, high = bounds(WebGraph(golden.folder / "webgraphdb"), golden.configuration())
    decided = 0
    for url, ours, nutch in zip(
        expected["key"], found["inlink_score"], expected["inlink_score"], strict=True
    ):
        assert low[url] * (1 - 1e-6) <= nutch <= high[url] * (1 + 1e-6)
        if math.isclose(low[url], high[url], rel_tol=1e-9):
            assert math.isclose(ours, nutch, rel_tol=1e-6), url
            decided += 1
    assert decided == len(found) or LinkLimits.from_conf(golden.configuration()).any
    assert (
        decided > len(found) / 2 or golden.folder.name == "rich-few"
    )  # where most pages are of one domain
    assert f"Number of links: {len(found)}\n" in golden.text


def bounds(graph: WebGraph, conf: Configuration) -> tuple[dict[bytes, float], dict[bytes, float]]:
    """The lowest and highest scores that any order of links gives, where one of a page or domain
    counts.
    """
    limits, damping = (
        LinkLimits.from_conf(conf),
        conf.get_float("link.analyze.damping.factor", 0.85),
    )
    table = node_table(graph)
    out = {row[0]: max(row[2], 1) for row in table.rows()}
    links: dict[bytes, dict[object, list[bytes]]] = {}
    for page, target, _ in ends(graph.outlinks):
        place = limits.groups(decode_keys(pl.Series([page])))[0] if limits.any else page
        links.setdefault(target, {}).setdefault(place, []).append(page)

    def scores(choose: Callable[[Iterable[float]], float]) -> dict[bytes, float]:
        now = dict.fromkeys(out, conf.get_float("link.analyze.initial.score", 1.0))
        for _ in range(conf.get_int("link.analyze.num.iterations", 10)):
            shares = {url: score / out[url] for url, score in now.items()}
            now = {
                url: 1
                - damping
                + damping
                * (1 / len(out) + sum(choose(map(shares.__getitem__, pages)) for pages in at))
                for url in out
                for at in [links.get(url, {}).values()]
            }
        return now

    return scores(min), scores(max)


CRAWLDBS = {
    "default": "crawl-small/run-default-r2/crawl/crawldb",
    "rich": "crawl-small/run-rich-r2/crawl/crawldb",
}


@pytest.mark.parametrize("golden", cases("scoreupdater"), ids=str)
def test_scoreupdater(golden: Case, tmp_path: Path) -> None:
    before = CRAWLDBS.get(golden.folder.name.partition("-")[0], "tables/jobs/dedup/in/crawldb")
    copied(GOLDEN / before, tmp_path / "crawldb")
    golden.run(tmp_path, scoreupdater.run)
    for name in ("current", "old"):
        assert database_records(tmp_path / "crawldb" / name) == database_records(
            golden.folder / "crawldb" / name
        )


@pytest.mark.parametrize("golden", cases("nodedumper"), ids=str)
def test_nodedumper(golden: Case, tmp_path: Path) -> None:
    golden.run(tmp_path, nodedumper.run, nodedumper__topn__per__value="true")
    found, expected = (path / "out/part-r-00000" for path in (tmp_path, golden.folder))
    if "-asSequenceFile" in golden.words:
        with SequenceFileReader(found) as ours, SequenceFileReader(expected) as nutch:
            assert same_dump([*map(line, ours.records())], [*map(line, nutch.records())])
        return
    ours, nutch = (path.read_text(encoding="utf-8").splitlines() for path in (found, expected))
    if "-group" in golden.words:
        assert same_groups(ours, nutch, cut="-topn" in golden.words)
    else:
        assert same_dump(ours, nutch, cut="-topn" in golden.words)


def line(record: tuple[object, object]) -> str:
    return f"{record[0]}\t{record[1]}"


def same_dump(ours: list[str], nutch: list[str], *, cut: bool = False) -> bool:
    """Returns whether two dumps agree but for the order of equal numbers and, with `cut`, for which
    of these are there.
    """

    def blocks(lines: list[str]) -> list[tuple[str, set[str]]]:
        pairs = [re.split("[\t=](?=[^\t=]*$)", text) for text in lines]
        return [
            (number, {url for url, _ in block})
            for number, block in groupby(pairs, key=lambda pair: pair[1])
        ]

    mine, theirs = blocks(ours), blocks(nutch)
    same = [(number, len(urls) if cut else urls) for number, urls in mine]
    return same == [(number, len(urls) if cut else urls) for number, urls in theirs] and len(
        ours
    ) == len(nutch)


def same_groups(ours: list[str], nutch: list[str], *, cut: bool) -> bool:
    """Returns whether the groups agree, sums but for rounding; with `cut` the pages that count are
    those of any order.
    """
    mine, theirs = ([text.split("\t") for text in lines] for lines in (ours, nutch))
    assert [name for name, _ in mine] == [name for name, _ in theirs]
    pairs = [
        (np.float32(one), np.float32(other))
        for (_, one), (_, other) in zip(mine, theirs, strict=True)
    ]
    return cut or all(math.isclose(one, other, rel_tol=2e-6) for one, other in pairs)


@pytest.mark.parametrize("golden", [g for g in cases("nodedumper") if "-topn" in g.words], ids=str)
def test_nodedumper_writes_so_many_lines(golden: Case, tmp_path: Path) -> None:
    """Unlike Nutch's: -topn says how many lines there are."""
    golden.run(tmp_path, nodedumper.run)
    ours, nutch = (
        (path / "out/part-r-00000").read_text().splitlines() for path in (tmp_path, golden.folder)
    )
    top = int(golden.words[golden.words.index("-topn") + 1])
    assert len(ours) == top
    if "-group" not in golden.words:
        assert [text.split("\t")[1] for text in ours[:3]] == [
            text.split("\t")[1] for text in nutch[:3]
        ]


@pytest.mark.parametrize("golden", cases("nodereader"), ids=str)
def test_nodereader(golden: Case, tmp_path: Path) -> None:
    assert golden.run(tmp_path, nodereader.run) + "[exit 0]\n" == golden.text


@pytest.mark.parametrize("golden", cases("linkdumper"), ids=str)
def test_linkdumper(golden: Case, tmp_path: Path) -> None:
    if golden.folder.name.endswith("-reader"):
        assert golden.run(tmp_path, linkdumperreader.run) + "[exit 0]\n" == golden.text
        return
    copied(graph_of(f"linkrank/{golden.folder.name}-all").path, tmp_path / "webgraphdb")
    golden.run(tmp_path, linkdumper.run)
    found, expected = (
        link_nodes(WebGraph(path / "webgraphdb")) for path in (tmp_path, golden.folder)
    )
    assert found == expected
    assert len(found) > 90


def link_nodes(graph: WebGraph) -> list[tuple[str, list[str]]]:
    """The records of a link dump, the nodes of each in one order."""
    found = []
    for part in graph.linkdump.parts():
        with SequenceFileReader(part / "data") as reader:
            for url, value in reader.records():
                found.append((str(url), sorted(f"{link.url} {link.node}" for link in value.links)))  # type: ignore[attr-defined]
    return found


USAGES = {
    "webgraph": webgraph,
    "linkrank": linkrank,
    "scoreupdater": scoreupdater,
    "nodedumper": nodedumper,
    "nodereader": nodereader,
    "linkdumper": linkdumper,
    "linkdumper-reader": linkdumperreader,
}


@pytest.mark.parametrize("name", USAGES)
def test_usage(name: str) -> None:
    """The options that Nutch's usage names, and its exit code; the words around them are our
    own.
    """
    text = (COMMANDS / "usage" / name / "console.txt").read_text(encoding="utf-8")
    options = set(re.findall(r"^ (-\w+)|--(\w+)", text, re.MULTILINE))
    command = USAGES[name]
    wanted = {short or f"-{long}" for short, long in options} - {"-help", "-h"}
    assert wanted <= set(re.findall(r"-\w+", usage(command)))
    with pytest.raises(UsageError) as error:
        command.run([], JobContext(Configuration.load([])))
    assert f"[exit {command.usage_exit}]" in text
    assert error.value.message == "" or name == "linkdumper-reader"
