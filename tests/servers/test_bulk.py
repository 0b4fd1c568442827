"""indexer-elastic and indexer-opensearch-1x, and real nodes: the story, refusals, a node that dies
in a request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from minutch.errors import IndexWriterError
from tests.servers import recipes
from tests.servers.conftest import Start
from tests.servers.processes import Server
from tests.servers.proxy import Proxy
from tests.servers.story import ANCHORS, NEW_WORDS, TAGGED, Indexing, Pages, Story, pages

pytestmark = pytest.mark.servers

INDEX = "crawl"


@dataclass
class Node:
    """A node, and the plugin that writes to it."""

    server: Server
    plugin: str
    name: str

    def request(self, method: str, path: str, body: Any = None) -> Any:
        answer = httpx.request(
            method, f"http://127.0.0.1:{self.server.port}{path}", json=body, timeout=60
        )
        assert answer.status_code < 300, answer.text
        return answer.json()

    def search(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        """The documents that match; none that is not visible yet."""
        found = self.request("POST", f"/{INDEX}/_search", {"query": query, "size": 1000})
        return list(found["hits"]["hits"])

    def pages(self) -> Pages:
        found = ((hit["_id"], hit["_source"]) for hit in self.search({"match_all": {}}))
        return {
            url: (doc.get("title", "").strip(), doc.get("content", "").strip())
            for url, doc in found
        }

    def indexing(self, folder: Path, **parameters: object) -> Indexing:
        values = {"host": "127.0.0.1", "port": self.server.port, "scheme": "http", "index": INDEX}
        given = {name.replace("__", "."): value for name, value in parameters.items()}
        return Indexing(folder, self.plugin, self.name, {**values, **given})

    def empty(self) -> None:
        httpx.delete(f"http://127.0.0.1:{self.server.port}/{INDEX}", timeout=60)


ELASTIC = ("indexer-elastic", "elastic.ElasticIndexWriter")
OPENSEARCH = ("indexer-opensearch-1x", "opensearch1x.OpenSearch1xIndexWriter")


@pytest.fixture(scope="module", params=["elasticsearch", *recipes.OPENSEARCH])
def node(request: pytest.FixtureRequest, start: Start) -> Iterator[Node]:
    if request.param == "elasticsearch":
        found = Node(start(recipes.elasticsearch), *ELASTIC)
    else:
        found = Node(start(lambda folder: recipes.opensearch(request.param, folder)), *OPENSEARCH)
    yield found
    found.server.stop()


def test_the_story(node: Node, story: Story, tmp_path: Path) -> None:
    node.empty()
    indexing = node.indexing(tmp_path, max__bulk__docs=7)
    counts = indexing.index(story.first)
    assert node.pages() == pages(story.first, duplicates=True)
    assert counts["indexed_total"] == len(node.pages())
    hits = node.search({"match_phrase": {"title": "reading the tides"}})
    assert [hit["_id"] for hit in hits] == [
        url for url in node.pages() if url.endswith("tides.html")
    ]
    indexing.clean(story.first)
    assert node.pages() == pages(story.first)
    assert story.duplicate not in node.pages()

    indexing.index(story.second, "-deleteGone", *story.segments())
    assert node.pages() == pages(story.second)
    assert NEW_WORDS in node.pages()[story.changed][1]
    assert story.gone not in node.pages()
    indexing.index(story.second, "-deleteGone", "-dir", story.second / "segments")
    assert node.pages() == pages(story.second)


def test_fields(node: Node, story: Story, tmp_path: Path) -> None:
    node.empty()
    node.indexing(tmp_path).index(story.first)
    fields = node.request("GET", f"/{INDEX}/_mapping")[INDEX]["mappings"]["properties"]
    assert {name: value["type"] for name, value in fields.items()} == dict.fromkeys(
        ("anchor", "boost", "content", "digest", "host", "id", "title", "url"), "text"
    ) | {"tstamp": "date"}
    anchors = {hit["_source"].get("anchor") for hit in node.search({"exists": {"field": "anchor"}})}
    assert anchors == ANCHORS


def test_refused_documents_are_counted_and_the_others_taken(
    node: Node, story: Story, tmp_path: Path
) -> None:
    """The index takes numbers only in a field that has words in some documents."""
    node.empty()
    node.request("PUT", f"/{INDEX}", {"mappings": {"properties": {"tags": {"type": "integer"}}}})
    indexing = node.indexing(tmp_path)
    indexing.mapping = TAGGED
    counts = indexing.index(story.first)
    wanted = pages(story.first, duplicates=True)
    assert counts["refused_total"] == len(wanted) - len(node.pages()) == len(ANCHORS)
    assert counts["indexed_total"] == len(node.pages())
    assert node.pages().items() <= wanted.items()


def test_a_node_that_dies_in_a_request(node: Node, story: Story, tmp_path: Path) -> None:
    """The job waits for it; nothing is lost, and nothing is there twice."""
    node.empty()

    def accident() -> None:
        node.server.kill()
        node.server.start()

    with Proxy(node.server.port, b"/_bulk", 2, accident) as proxy:
        indexing = node.indexing(tmp_path, port=proxy.port, max__bulk__docs=4)
        counts = indexing.index(story.first)
        assert proxy.happened
    assert node.pages() == pages(story.first, duplicates=True)
    assert counts["indexed_total"] == len(node.pages())


def test_a_node_that_stays_away(node: Node, story: Story, tmp_path: Path) -> None:
    """The job ends with the reason; run again when the node is back, it leaves the same index."""
    node.empty()
    with Proxy(node.server.port, b"/_bulk", 2, node.server.kill) as proxy:
        indexing = node.indexing(
            tmp_path, port=proxy.port, max__bulk__docs=4, exponential__backoff__retries=1
        )
        with pytest.raises(IndexWriterError, match=r"index writer w: http://127\.0\.0\.1"):
            indexing.index(story.first)
    with pytest.raises(IndexWriterError, match=r"index writer w: .*: no connection: "):
        node.indexing(tmp_path).index(story.first)
    node.server.start()
    node.indexing(tmp_path).index(story.first)
    assert node.pages() == pages(story.first, duplicates=True)
