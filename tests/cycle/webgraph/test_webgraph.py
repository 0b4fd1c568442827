"""webgraph: which links it keeps, of which version of a page; both ends and nodes; what goes
wrong.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from minutch.cycle.linkdb.rules import READ
from minutch.cycle.webgraph.build import PAGES, WRITTEN, webgraph
from minutch.cycle.webgraph.rules import GONE, INTERNAL, LIMITED, MALFORMED, OLDER, REPEATED
from minutch.cycle.webgraph.store import WebGraph
from minutch.errors import FormatError, LockedError, StoreError, UsageError
from minutch.job import Counters
from minutch.records import crawldatum as status
from minutch.work.tables.lock import lock
from tests.support.commands import command
from tests.support.graphs import ALL_LINKS, NOW, context, graph_of, links, nodes, segment

run = command("webgraph").run

EVERYTHING = {name.replace(".", "__"): value for name, value in ALL_LINKS.items()}
WEB = {
    "http://a.example.com/": [
        "http://b.example.com/",
        "http://a.example.com/2",
        "http://c.org/p?q=2",
        "http://c.org/p?q=1",
        "http://d.c.org/",
        "http://e.net/",
        "http://c.org/p?q=2",
    ],
    "http://e.net/": ["http://a.example.com/"],
}


def made(path: Path, pages: dict[str, list[str]], **properties: str) -> tuple[WebGraph, Counters]:
    graph = WebGraph(path / "webgraphdb")
    return graph, webgraph(
        graph.path, [segment(path / "segment", pages)], context=context(**properties)
    )


@pytest.mark.smoke
def test_both_ends_and_nodes(tmp_path: Path) -> None:
    graph, counters = made(tmp_path, WEB, **EVERYTHING)
    kept = [(page, target) for page, targets in WEB.items() for target in dict.fromkeys(targets)]
    assert links(graph.outlinks) == kept
    assert links(graph.inlinks) == sorted((target, page) for page, target in kept)
    found = nodes(graph)
    assert found["http://a.example.com/"] == (1, 6, 0.0)
    assert found["http://e.net/"] == (1, 1, 0.0)
    assert found["http://d.c.org/"] == (1, 0, 0.0)
    assert len(found) == 7 == counters[PAGES]
    assert (counters[READ], counters[REPEATED], counters[WRITTEN]) == (8, 1, 7)


FIRST, PAGE, HOST, DOMAIN = "b.example.com", "c.org/p?q=2", "c.org/p?q=1", "d.c.org"


@pytest.mark.parametrize(
    ("properties", "internal", "limited"),
    [
        ({}, 2, 2),
        ({"link.ignore.internal.domain": "false"}, 1, 2),
        ({"link.ignore.internal.host": "false"}, 2, 2),
        ({"link.ignore.internal.host": "false", "link.ignore.internal.domain": "false"}, 0, 3),
        ({"link.ignore.limit.domain": "false"}, 2, 1),
        ({"link.ignore.limit.domain": "false", "link.ignore.limit.page": "false"}, 2, 0),
        ({"link.ignore.limit.page": "false"}, 2, 2),
    ],
)
def test_which_links_count(
    tmp_path: Path, properties: dict[str, str], internal: int, limited: int
) -> None:
    graph, counters = made(
        tmp_path, WEB, **{name.replace(".", "__"): value for name, value in properties.items()}
    )
    assert (counters.get(INTERNAL, 0), counters[LIMITED]) == (internal, limited)
    outcomes = (REPEATED, INTERNAL, LIMITED, MALFORMED, OLDER, GONE, WRITTEN)
    assert sum(counters.get(name, 0) for name in outcomes) == counters[READ] == 8
    assert len(links(graph.outlinks)) == counters[WRITTEN]
    assert ("http://a.example.com/", "http://c.org/p?q=2") in links(
        graph.outlinks
    )  # the first of its page and domain


def test_the_partitions_and_the_disk_make_no_difference(tmp_path: Path) -> None:
    rng = random.Random(5)
    urls = [f"http://h{i % 13}.example.{'com' if i % 3 else 'org'}/{i}?{i % 4}" for i in range(300)]
    pages = {url: [rng.choice(urls) for _ in range(rng.randrange(12))] for url in urls[:200]}
    results = []
    for number, more in enumerate(({}, {"mapreduce.job.reduces": "3", "minutch.memory": "64"})):
        graph, counters = made(
            tmp_path / str(number), pages, **{k.replace(".", "__"): v for k, v in more.items()}
        )
        assert len(graph.nodes.parts()) == (3 if more else 1)
        results.append((links(graph.outlinks), links(graph.inlinks), nodes(graph), dict(counters)))
    assert results[0] == results[1]
    assert len(results[0][0]) > 100


def test_the_newest_version_of_a_page_counts(tmp_path: Path) -> None:
    a, b, c = "http://a.com/", "http://b.com/", "http://c.com/"
    old = segment(tmp_path / "1", {a: [b], b: [a]}, time=1000)
    new = segment(tmp_path / "2", {a: [c]}, time=2000)
    graph = WebGraph(tmp_path / "w")
    counters = webgraph(graph.path, [new, old], context=context())
    assert links(graph.outlinks) == [(a, c), (b, a)]
    assert counters[OLDER] == 1
    older = segment(tmp_path / "3", {a: [b], c: [a]}, time=1500)  # added later, fetched before
    webgraph(graph.path, [older], context=context())
    assert links(graph.outlinks) == [(a, c), (b, a), (c, a)]


def test_without_the_time_of_the_fetch_what_is_added_later_counts(tmp_path: Path) -> None:
    a, b, c = "http://a.com/", "http://b.com/", "http://c.com/"
    first, second = segment(tmp_path / "1", {a: [b]}), segment(tmp_path / "2", {a: [c]})
    graph = WebGraph(tmp_path / "w")
    webgraph(graph.path, [first, second], context=context())
    assert links(graph.outlinks) == [(a, c)]
    webgraph(graph.path, [first], context=context(NOW + 1))
    assert links(graph.outlinks) == [(a, b)]


def test_a_segment_that_is_added_twice_counts_once(tmp_path: Path) -> None:
    one = segment(tmp_path / "1", WEB, time=1000)
    graph = WebGraph(tmp_path / "w")
    for _ in range(2):
        webgraph(graph.path, [one, one], context=context(**EVERYTHING))
    assert len(links(graph.outlinks)) == 7
    assert nodes(graph)["http://a.example.com/"][:2] == (1, 6)


def test_gone_pages(tmp_path: Path) -> None:
    a, b, c, d = (f"http://{name}.com/" for name in "abcd")
    first = segment(tmp_path / "1", {a: [b], b: [a], c: [a], d: [a]})
    codes = {
        a: status.STATUS_FETCH_GONE,
        b: status.STATUS_FETCH_REDIR_PERM,
        c: status.STATUS_FETCH_NOTMODIFIED,
    }
    second = segment(tmp_path / "2", {}, gone=codes | {d: status.STATUS_FETCH_REDIR_TEMP})
    third = segment(tmp_path / "3", {b: [c]})
    outcomes = {}
    for value in ("false", "true"):
        graph = WebGraph(tmp_path / value)
        webgraph(graph.path, [first], context=context())
        counters = webgraph(
            graph.path, [second], context=context(NOW + 1, link__delete__gone=value)
        )
        outcomes[value] = links(graph.outlinks), counters[GONE]
    assert outcomes["false"] == ([(a, b), (b, a), (c, a), (d, a)], 0)
    assert outcomes["true"] == ([(c, a)], 3)
    graph = WebGraph(tmp_path / "back")
    webgraph(graph.path, [first, second, third], context=context(link__delete__gone="true"))
    assert links(graph.outlinks) == [(b, c), (c, a)]


def test_normalizers_and_filters_see_old_links_too(tmp_path: Path) -> None:
    pages = {
        "http://A.com/x/../y": ["http://B.com:80/", "http://c.com/pic.gif"],
        "http://d.com/d.gif": ["http://b.com/"],
    }
    arguments = [
        "-webgraphdb",
        str(tmp_path / "w"),
        "-segment",
        str(segment(tmp_path / "1", pages)),
    ]
    assert run(arguments, context()) == 0
    graph = WebGraph(tmp_path / "w")
    assert len(links(graph.outlinks)) == 3
    empty = str(segment(tmp_path / "2", {}))
    assert run([*arguments[:3], empty, "--normalize", "-f"], context()) == 0
    assert links(graph.outlinks) == [("http://a.com/y", "http://b.com/")]


def test_what_is_no_url_is_left_out(tmp_path: Path) -> None:
    graph, counters = made(
        tmp_path, {"http://a.com/": ["no url", "http://b.com/"], "nonsense": ["http://c.com/"]}
    )
    assert links(graph.outlinks) == [("http://a.com/", "http://b.com/")]
    assert counters[MALFORMED] == 2


def test_the_backup(tmp_path: Path) -> None:
    one = segment(tmp_path / "1", WEB)
    for keep in ("true", "false"):
        graph = WebGraph(tmp_path / keep)
        for _ in range(2):
            webgraph(graph.path, [one], context=context(db__preserve__backup=keep))
        assert (graph.outlinks.path / "old").exists() == (keep == "true")
        assert sorted(path.name for path in graph.path.iterdir()) == [
            "inlinks",
            "nodes",
            "outlinks",
        ]


def test_folders_of_segments(tmp_path: Path) -> None:
    for number in (1, 2):
        segment(
            tmp_path / f"segments/2026010100000{number}",
            {f"http://{number}.com/": ["http://x.com/"]},
        )
    assert (
        run(
            ["-webgraphdb", str(tmp_path / "w"), "-segmentDir", str(tmp_path / "segments")],
            context(),
        )
        == 0
    )
    assert len(links(WebGraph(tmp_path / "w").outlinks)) == 2


def test_segments_that_are_not_parsed_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, bare = (
        segment(tmp_path / "1", WEB),
        segment(tmp_path / "2", {}, gone={"http://e.net/": 37}),
    )
    shutil.rmtree(bare / "parse_data")
    graph = WebGraph(tmp_path / "w")
    with pytest.raises(StoreError, match="no segments"):
        webgraph(graph.path, [bare], context=context())
    webgraph(graph.path, [good, bare], context=context(**EVERYTHING, link__delete__gone="true"))
    assert f"{bare} is not parsed" in caplog.text
    assert {page for page, _ in links(graph.outlinks)} == {"http://a.example.com/"}


@pytest.mark.parametrize(
    "words",
    [[], ["-webgraphdb", "w"], ["-segment", "s"], ["-webgraphdb", "w", "-segment"], ["w", "s"]],
)
def test_wrong_arguments(words: list[str]) -> None:
    with pytest.raises(UsageError):
        run(words, context())


def test_what_goes_wrong_leaves_the_graph_as_it_was(tmp_path: Path) -> None:
    graph = graph_of(tmp_path, WEB)
    before = sorted((path, path.read_bytes()) for path in graph.path.rglob("*") if path.is_file())
    good = segment(tmp_path / "good", {"http://new.com/": ["http://a.com/"]})
    damaged = segment(tmp_path / "damaged", WEB)
    data = damaged / "parse_data/part-r-00000/data"
    data.write_bytes(data.read_bytes()[:-5])
    (tmp_path / "empty").mkdir()
    for segments, error in (
        ([], StoreError),
        ([tmp_path / "nosuch"], StoreError),
        ([good, tmp_path / "empty"], StoreError),
        ([good, damaged], FormatError),
    ):
        with pytest.raises(error):
            webgraph(graph.path, segments, context=context())
    with lock(graph.path), pytest.raises(LockedError):
        webgraph(graph.path, [good], context=context())
    assert (
        sorted((path, path.read_bytes()) for path in graph.path.rglob("*") if path.is_file())
        == before
    )
    (tmp_path / "crawldb/current").mkdir(parents=True)
    with pytest.raises(StoreError, match="another kind"):
        webgraph(tmp_path / "crawldb", [good], context=context())


def test_a_first_graph_that_fails_leaves_nothing(tmp_path: Path) -> None:
    one = segment(tmp_path / "one", {"http://a.example/": ["http://b.example/"]})
    part = one / "parse_data/part-r-00000/data"
    part.write_bytes(part.read_bytes()[:-3])
    with pytest.raises(FormatError, match="parse_data"):
        webgraph(tmp_path / "webgraphdb", [one], context=context())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one"]
