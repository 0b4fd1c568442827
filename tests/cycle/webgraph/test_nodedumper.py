"""nodedumper: order, groups, -topn, formats."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.cycle.webgraph.dumpers import LEFT_OUT, NODES, PER_VALUE_PROPERTY, WRITTEN
from minutch.cycle.webgraph.linkrank import linkrank
from minutch.cycle.webgraph.store import WebGraph
from minutch.errors import StoreError, UsageError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from tests.support.commands import command
from tests.support.graphs import context, graph_of, nodes

run = command("nodedumper").run

WEB = {
    "http://a.x.com/": ["http://b.x.com/", "http://c.org/", "http://d.net/"],
    "http://b.x.com/": ["http://c.org/", "http://d.net/"],
    "http://c.org/": ["http://d.net/"],
}


@pytest.fixture
def graph(tmp_path: Path) -> WebGraph:
    return graph_of(tmp_path, WEB, mapreduce__job__reduces="2")


def dumped(graph: WebGraph, *words: str, per_value: bool = False, memory: str = "") -> list[str]:
    out = graph.path.parent / "-".join(["out", str(per_value), memory, *words])
    given = context(
        minutch__engine__memory=memory,
        **{PER_VALUE_PROPERTY.replace(".", "__"): str(per_value).lower()},
    )
    assert run(["-webgraphdb", str(graph.path), "-output", str(out), *words], given) == 0
    text = (out / "part-r-00000").read_text(encoding="utf-8")
    assert sorted(path.name for path in out.iterdir()) == [".part-r-00000.crc", "part-r-00000"]
    counters = given.reports["NodeDumper"]
    assert counters[NODES] == 4 and counters[WRITTEN] == len(text.splitlines())
    return text.splitlines()


A, B, C, D = "http://a.x.com/", "http://b.x.com/", "http://c.org/", "http://d.net/"


@pytest.mark.parametrize("memory", ["", "64"])
def test_highest_first(graph: WebGraph, memory: str) -> None:
    assert dumped(graph, "-inlinks", memory=memory) == [
        f"{D}\t3.0",
        f"{C}\t2.0",
        f"{B}\t1.0",
        f"{A}\t0.0",
    ]
    assert dumped(graph, "-outlinks", memory=memory) == [
        f"{A}\t3.0",
        f"{B}\t2.0",
        f"{C}\t1.0",
        f"{D}\t0.0",
    ]
    assert dumped(graph, memory=memory) == [f"{url}\t0.0" for url in (A, B, C, D)]


def test_scores_as_java_prints_them(graph: WebGraph) -> None:
    linkrank(graph.path, context=context(link__ignore__limit__domain="false"))
    scores = {url: score for url, (_, _, score) in nodes(graph).items()}
    lines = [line.split("\t") for line in dumped(graph, "-scores", "-topn", "4")]
    assert [url for url, _ in lines] == sorted(scores, key=lambda url: -scores[url])
    assert all(abs(float(text) - scores[url]) < 1e-6 for url, text in lines)


@pytest.mark.parametrize("memory", ["", "64"])
def test_groups(graph: WebGraph, memory: str) -> None:
    assert dumped(graph, "-inlinks", "-group", "host", "sum", memory=memory) == [
        "a.x.com\t0.0",
        "b.x.com\t1.0",
        "c.org\t2.0",
        "d.net\t3.0",
    ]
    assert dumped(graph, "-outlinks", "-group", "domain", "sum", memory=memory) == [
        "c.org\t1.0",
        "d.net\t0.0",
        "x.com\t5.0",
    ]
    assert dumped(graph, "-outlinks", "-group", "domain", "max", memory=memory) == [
        "c.org\t1.0",
        "d.net\t0.0",
        "x.com\t3.0",
    ]


def test_topn(graph: WebGraph) -> None:
    assert dumped(graph, "-inlinks", "-topn", "2") == [f"{D}\t3.0", f"{C}\t2.0"]
    assert dumped(graph, "-topn", "1") == [f"{A}\t0.0"]
    assert dumped(graph, "-outlinks", "-group", "domain", "sum", "-topn", "2") == [
        "x.com\t5.0",
        "c.org\t1.0",
    ]
    assert dumped(graph, "-topn", "0") == []


def test_topn_as_nutch_has_it(graph: WebGraph) -> None:
    """nodedumper.topn.per.value: so many pages of each number, or that count in each group."""
    assert dumped(graph, "-inlinks", "-topn", "1", per_value=True) == dumped(graph, "-inlinks")
    assert dumped(graph, "-topn", "1", per_value=True) == [f"{A}\t0.0"]
    assert dumped(graph, "-outlinks", "-group", "domain", "sum", "-topn", "1", per_value=True) == [
        "c.org\t1.0",
        "d.net\t0.0",
        "x.com\t3.0",
    ]


def test_formats(graph: WebGraph, tmp_path: Path) -> None:
    assert dumped(graph, "-inlinks", "-asEff", "-topn", "1") == [f"{D}=3.0"]
    words = [
        "-webgraphdb",
        str(graph.path),
        "-output",
        str(tmp_path / "seq"),
        "-inlinks",
        "-asSequenceFile",
    ]
    given = context()
    assert run(words, given) == 0
    assert given.reports["NodeDumper"][LEFT_OUT] == 0
    with SequenceFileReader(tmp_path / "seq/part-r-00000") as reader:
        assert [(str(url), str(number)) for url, number in reader.records()] == [
            (D, "3.0"),
            (C, "2.0"),
            (B, "1.0"),
            (A, "0.0"),
        ]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["-webgraphdb", "w"],
        ["-output", "o"],
        ["-webgraphdb", "w", "-output", "o", "-group", "host", "min"],
        ["-webgraphdb", "w", "-output", "o", "-group", "tld", "sum"],
        ["-webgraphdb", "w", "-output", "o", "-topn", "many"],
        ["-webgraphdb", "w", "-output", "o", "-topn", "-1"],
    ],
)
def test_wrong_arguments(words: list[str]) -> None:
    with pytest.raises(UsageError):
        run(words, context())


def test_what_goes_wrong_leaves_nothing(graph: WebGraph, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(StoreError, match="does not exist"):
        run(["-webgraphdb", str(tmp_path / "nosuch"), "-output", str(out)], context())
    data = graph.nodes.parts()[0] / "data"
    data.write_bytes(data.read_bytes()[:-3])
    with pytest.raises(Exception, match="data at offset"):
        run(["-webgraphdb", str(graph.path), "-output", str(out)], context())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["segment", "webgraphdb"]
    out.mkdir()
    with pytest.raises(StoreError, match="already exists"):
        run(["-webgraphdb", str(graph.path), "-output", str(out)], context())
