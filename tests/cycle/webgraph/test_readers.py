"""LinkDumper and its reader, NodeReader, LoopReader: what they write and print."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from minutch.cycle.webgraph import dumpers
from minutch.errors import StoreError, UsageError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.writables import Text
from minutch.records.webgraph import LinkNodes, LoopSet
from tests.support.commands import linkdumper as linkdumper_command
from tests.support.commands import linkdumperreader, loopreader, nodereader
from tests.support.graphs import context, graph_of

ODD = "http://a.com/\U0001f600"
WEB = {
    ODD: ["http://b.com/", "http://c.com/"],
    "http://b.com/": ["http://c.com/"],
    "http://c.com/": ["http://b.com/"],
}


@pytest.mark.parametrize("parts", ["1", "2"])
@pytest.mark.parametrize("memory", ["", "64"])
def test_link_dumper(tmp_path: Path, parts: str, memory: str) -> None:
    graph = graph_of(tmp_path, WEB)
    for _ in range(2):
        given = context(mapreduce__job__reduces=parts, minutch__engine__memory=memory)
        assert linkdumper_command.run(["-webgraphdb", str(graph.path)], given) == 0
        assert given.reports["LinkDumper"][dumpers.LINKS_WRITTEN] == 4
    found = {}
    for part in graph.linkdump.parts():
        with SequenceFileReader(part / "data") as reader:
            for url, value in reader.records():
                assert isinstance(value, LinkNodes)
                found[str(url)] = [
                    (link.url, link.node.num_inlinks, link.node.num_outlinks)
                    for link in value.links
                ]
    assert found == {
        "http://b.com/": [(ODD, 0, 2), ("http://c.com/", 2, 1)],
        "http://c.com/": [(ODD, 0, 2), ("http://b.com/", 2, 1)],
    }
    assert sorted(path.name for path in graph.path.iterdir()) == [
        "inlinks",
        "linkdump",
        "nodes",
        "outlinks",
    ]


def printed(reader, *words: str) -> str:  # type: ignore[no-untyped-def]
    given = context()
    assert reader.run(list(words), given) == 0
    assert isinstance(given.out, io.StringIO)
    return given.out.getvalue()


def test_what_readers_print(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, WEB)
    linkdumper_command.run(["-webgraphdb", str(graph.path)], context())
    assert printed(linkdumperreader, str(graph.path), "http://b.com/").splitlines() == [
        "http://b.com/:",
        (
            f"  {ODD} - num inlinks: 0, num outlinks: 2, inlink score: 0.0, outlink score: 0.0,"
            " metadata: "
        ),
        (
            "  http://c.com/ - num inlinks: 2, num outlinks: 1, inlink score: 0.0, outlink score:"
            " 0.0, metadata: "
        ),
    ]
    assert printed(linkdumperreader, str(graph.path), "http://nosuch/") == "http://nosuch/:\n"
    assert printed(
        nodereader, "-webgraphdb", str(graph.path), "-url", "http://b.com/"
    ).splitlines() == [
        "http://b.com/:",
        "  inlink score: 0.0",
        "  outlink score: 0.0",
        "  num inlinks: 2",
        "  num outlinks: 1",
    ]


def test_loops_of_older_nutch(tmp_path: Path) -> None:
    loops = {"http://a/": ["http://b/", "http://c/"], "http://b/": ["http://a/"]}
    with MapFileWriter(
        tmp_path / "loops/part-00000", Text.class_name, LoopSet.class_name
    ) as writer:
        for url, others in loops.items():
            writer.append(Text(url), LoopSet(dict.fromkeys(others)))
    assert (
        printed(loopreader, "-webgraphdb", str(tmp_path), "-url", "http://b/")
        == "http://b/:\n  http://a/\n"
    )
    both = printed(loopreader, "-webgraphdb", str(tmp_path), "-url", "http://a/").splitlines()
    assert both[0] == "http://a/:" and sorted(both[1:]) == ["  http://b/", "  http://c/"]
    assert printed(loopreader, "-webgraphdb", str(tmp_path), "-url", "http://c/") == "http://c/:\n"


@pytest.mark.parametrize("module", [linkdumper_command, linkdumperreader, nodereader, loopreader])
def test_wrong_arguments(module, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    for words in ([], ["-url", "x"], ["-nosuch"]):
        with pytest.raises(UsageError):
            module.run(words, context())
    words = (
        [str(tmp_path), "http://a/"]
        if module is linkdumperreader
        else ["-webgraphdb", str(tmp_path)]
    )
    with pytest.raises(StoreError):
        module.run(
            [*words, "-url", "x"] if module in (nodereader, loopreader) else words, context()
        )
