"""linkrank: scores as the formula has them, whatever the partitions; its properties; what goes
wrong.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from minutch.cycle.webgraph.build import webgraph
from minutch.cycle.webgraph.linkrank import COUNTED, REPEATED, linkrank
from minutch.cycle.webgraph.store import WebGraph
from minutch.errors import ConfigError, FormatError, LockedError, StoreError, UsageError
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.writables import Text
from minutch.records.metadata import Metadata
from minutch.records.webgraph import Node
from minutch.work.tables.lock import lock
from tests.support.commands import command
from tests.support.graphs import ALL_LINKS, context, graph_of, nodes, segment

run = command("linkrank").run

EVERYTHING = {name.replace(".", "__"): value for name, value in ALL_LINKS.items()}


def random_web(seed: int = 3) -> dict[str, list[str]]:
    rng = random.Random(seed)
    urls = [f"http://h{i % 11}.example.{'com' if i % 3 else 'org'}/{i}?{i % 4}" for i in range(200)]
    return {url: rng.sample(urls, rng.randrange(9)) for url in urls[:150]}


def expected(
    pages: Mapping[str, Sequence[str]],
    rounds: int = 10,
    damping: float = 0.85,
    initial: float = 1.0,
):  # type: ignore[no-untyped-def]
    """The scores by the formula, link by link."""
    urls = {*pages, *(target for targets in pages.values() for target in targets)}
    urls -= {
        page
        for page, targets in pages.items()
        if not targets and not any(page in t for t in pages.values())
    }
    f = np.float32
    scores = dict.fromkeys(urls, f(initial))
    for _ in range(rounds):
        sums = dict.fromkeys(urls, np.float64(f(1) / f(len(urls))))
        for page, targets in pages.items():
            for target in targets:
                sums[target] += np.float64(scores[page] / f(len(targets)))
        scores = {url: (f(1) - f(damping)) + f(damping) * f(total) for url, total in sums.items()}
    return scores


@pytest.mark.smoke
def test_the_formula(tmp_path: Path) -> None:
    pages = random_web()
    graph = graph_of(tmp_path, pages)
    counters = linkrank(graph.path, context=context(**EVERYTHING))
    found = {url: score for url, (_, _, score) in nodes(graph).items()}
    wanted = expected(pages)
    assert found.keys() == wanted.keys()
    assert max(abs(found[url] - wanted[url]) / wanted[url] for url in wanted) < 1e-6
    assert counters[COUNTED] == sum(map(len, pages.values()))


@pytest.mark.parametrize(
    ("name", "value", "argument"),
    [
        ("link.analyze.num.iterations", "3", {"rounds": 3}),
        ("link.analyze.num.iterations", "0", {"rounds": 0}),
        ("link.analyze.damping.factor", "0.5f", {"damping": 0.5}),
        ("link.analyze.initial.score", "2", {"initial": 2.0, "rounds": 10}),
    ],
)
def test_properties(tmp_path: Path, name: str, value: str, argument: dict[str, float]) -> None:
    pages = random_web()
    graph = graph_of(tmp_path, pages)
    linkrank(graph.path, context=context(**EVERYTHING, **{name.replace(".", "__"): value}))
    found = {url: score for url, (_, _, score) in nodes(graph).items()}
    wanted, default = expected(pages, **argument), expected(pages)  # type: ignore[arg-type]
    assert max(abs(found[url] - wanted[url]) / wanted[url] for url in wanted) < 1e-6
    assert any(abs(found[url] - default[url]) > 1e-6 for url in wanted)


def test_limits_count_one_link_from_a_page_or_domain(tmp_path: Path) -> None:
    target = "http://target.org/"
    pages = {
        "http://a.x.com/1?a": [target],
        "http://a.x.com/1?b": [target, "http://other.org/"],
        "http://b.x.com/": [target],
        "http://y.com/": [target],
    }
    counted = {}
    for page, domain in (
        ("false", "false"),
        ("true", "false"),
        ("true", "true"),
        ("false", "true"),
    ):
        graph = graph_of(tmp_path / (page + domain), pages)
        limits = {"link__ignore__limit__page": page, "link__ignore__limit__domain": domain}
        counters = linkrank(graph.path, context=context(**limits))
        counted[page, domain] = counters[REPEATED]
        kept = {
            url: [] if url.endswith("1?b") and page == "true" else targets
            for url, targets in pages.items()
        }
        if domain == "true":
            kept["http://a.x.com/1?b"] = kept["http://b.x.com/"] = []
        shares = sum(
            nodes(graph)[url][1] and 1 for url, targets in kept.items() if target in targets
        )
        assert counters[COUNTED] + counters[REPEATED] == 5
        assert nodes(graph)[target][2] > 0.15 * shares
    assert counted == {
        ("false", "false"): 0,
        ("true", "false"): 1,
        ("true", "true"): 2,
        ("false", "true"): 2,
    }


def test_the_partitions_and_the_disk_make_no_difference(tmp_path: Path) -> None:
    pages = random_web(4)
    results = []
    for number, (made_in, ranked_in, memory) in enumerate(
        (("1", "1", ""), ("3", "2", "64"), ("2", "3", "1m"))
    ):
        graph = graph_of(tmp_path / str(number), pages, mapreduce__job__reduces=made_in)
        linkrank(
            graph.path,
            context=context(mapreduce__job__reduces=ranked_in, minutch__engine__memory=memory),
        )
        assert len(graph.nodes.parts()) == int(ranked_in)
        results.append(nodes(graph))
    assert results[0] == results[1] == results[2]


def test_metadata_of_nodes_stays(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, {"http://a.com/": ["http://b.com/"]})
    extra = Metadata.of({"grün": ["ü", ""], "k": "v"})
    with MapFileWriter(graph.nodes.parts()[0], Text.class_name, Node.class_name) as writer:
        writer.append(Text("http://a.com/"), Node(0, 1, 0.0, extra))
        writer.append(Text("http://b.com/"), Node(1, 0, 0.0))
    linkrank(graph.path, context=context())
    node = graph.nodes.get("http://a.com/")
    assert node is not None and node.metadata == extra and node.inlink_score != 0
    assert graph.nodes.get("http://b.com/").metadata == Metadata()  # type: ignore[union-attr]


def test_links_of_another_graph(tmp_path: Path) -> None:
    one = graph_of(tmp_path / "1", {"http://a.com/": ["http://b.com/"]})
    two = graph_of(tmp_path / "2", {"http://c.com/": ["http://b.com/"]})
    shutil.rmtree(one.nodes.current)
    two.nodes.current.rename(one.nodes.current)
    with pytest.raises(StoreError, match=r"no node for http://a\.com/"):
        linkrank(one.path, context=context())


def test_what_goes_wrong_leaves_the_graph_as_it_was(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, random_web())
    before = nodes(graph)
    with pytest.raises(LockedError), lock(graph.path):
        linkrank(graph.path, context=context())
    for name, value in (
        ("damping.factor", "much"),
        ("damping.factor", "1.5"),
        ("num.iterations", "-1"),
    ):
        with pytest.raises(ConfigError, match=rf"link\.analyze\.{name}.*{value}"):
            linkrank(
                graph.path, context=context(**{f"link.analyze.{name}".replace(".", "__"): value})
            )
    assert nodes(graph) == before
    assert sorted(path.name for path in graph.path.iterdir()) == ["inlinks", "nodes", "outlinks"]
    data = graph.outlinks.parts()[0] / "data"
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    with pytest.raises(FormatError, match="outlinks/current/part-r-00000/data at offset"):
        linkrank(graph.path, context=context())
    assert nodes(graph) == before


def test_no_graph(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "nosuch"):
        with pytest.raises(StoreError):
            run(["-webgraphdb", str(tmp_path / name)], context())
    assert not (tmp_path / "nosuch").exists()
    with pytest.raises(UsageError):
        run([], context())
    bare = WebGraph(tmp_path / "bare")
    webgraph(bare.path, [segment(tmp_path / "segment", {"http://a.com/": []})], context=context())
    with pytest.raises(StoreError, match="is the webgraph empty"):
        linkrank(bare.path, context=context())
