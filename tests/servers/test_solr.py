"""indexer-solr and real Solr: the story, query parameters, refusals, a server that dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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

WRITER = "solr.SolrIndexWriter"
CREATE = {
    "action": "CREATE",
    "name": recipes.COLLECTION,
    "numShards": 2,
    "maxShardsPerNode": 2,
    "replicationFactor": 1,
}
SET = {"collection.configName": recipes.COLLECTION}


@dataclass
class Solr:
    """A Solr, and how the writer is set up for it."""

    server: Server
    parameters: dict[str, object]

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.server.port}/solr"

    def ask(self, query: str, **more: Any) -> list[dict[str, Any]]:
        """The documents that match."""
        params = {"q": query, "rows": 1000, "wt": "json"} | more
        answer = httpx.get(f"{self.root}/{recipes.COLLECTION}/select", params=params, timeout=60)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["response"]["docs"])

    def pages(self) -> Pages:
        return {
            doc["id"]: (doc.get("title", "").strip(), doc.get("content", "").strip())
            for doc in self.ask("*:*")
        }

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait for what Solr does in its own time."""
        deadline = time.monotonic() + 120
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.2)

    def indexing(self, folder: Path, **parameters: object) -> Indexing:
        return Indexing(folder, "indexer-solr", WRITER, self.parameters | parameters)

    def empty(self) -> None:
        """Delete all documents, as soon as Solr has come up."""
        self.wait_for(
            lambda: self.update({"delete": {"query": "*:*"}, "commit": {}}) and self.pages() == {}
        )
        assert self.pages() == {}

    def commit(self) -> bool:
        return self.update({"commit": {}})

    def update(self, body: dict[str, Any]) -> bool:
        """Tells whether Solr accepted the update."""
        return httpx.post(
            f"{self.root}/{recipes.COLLECTION}/update", json=body, timeout=60
        ).is_success


@pytest.fixture(scope="module", params=["8.11.4", "9.10.1", "8.11.4 cloud"])
def solr(request: pytest.FixtureRequest, start: Start) -> Iterator[Solr]:
    version, _, cloud = request.param.partition(" ")
    server = start(lambda folder: recipes.solr(version, folder, cloud=bool(cloud)))
    found = Solr(
        server, {"type": "http", "url": f"http://127.0.0.1:{server.port}/solr/{recipes.COLLECTION}"}
    )
    if cloud:
        found.parameters = {
            "type": "cloud",
            "url": f"http://127.0.0.1:1,{found.root}",
            "collection": recipes.COLLECTION,
        }
        httpx.get(
            f"{found.root}/admin/collections", params=CREATE | SET, timeout=120
        ).raise_for_status()
    yield found
    server.stop()


def test_the_story(solr: Solr, story: Story, tmp_path: Path) -> None:
    solr.empty()
    indexing = solr.indexing(tmp_path, commitSize=7)
    counts = indexing.index(story.first)
    assert solr.pages() == pages(story.first, duplicates=True)
    assert counts["indexed_total"] == len(solr.pages())
    assert [doc["id"] for doc in solr.ask("content:lighthouse AND title:lighthouse")] == [
        url for url in solr.pages() if "lighthouse.html" in url
    ]
    assert indexing.clean(story.first)["deleted_documents_total"] > 0
    assert solr.pages() == pages(story.first)
    assert story.duplicate not in solr.pages()

    indexing.index(story.second, "-deleteGone", *story.segments())
    assert solr.pages() == pages(story.second)
    assert NEW_WORDS in solr.pages()[story.changed][1]
    assert story.gone not in solr.pages()
    again = indexing.index(story.second, "-deleteGone", "-dir", story.second / "segments")
    assert solr.pages() == pages(story.second), again


def test_fields(solr: Solr, story: Story, tmp_path: Path) -> None:
    """Each type of value arrives as such; several values are several."""
    solr.empty()
    solr.indexing(tmp_path, **{"weight.field": "weight"}).index(story.first)
    documents = {doc["id"]: doc for doc in solr.ask("*:*")}
    page = documents[story.changed]
    assert page["url"] == story.changed
    assert page["host"] == "127.0.0.1"
    assert page["weight"] == pytest.approx(float(page["boost"]))
    assert page["tstamp"].endswith("Z")
    assert {tuple(doc["anchor"]) for doc in documents.values() if "anchor" in doc} == {
        (anchor,) for anchor in ANCHORS
    }


def test_without_a_commit_nothing_shows(solr: Solr, story: Story, tmp_path: Path) -> None:
    solr.empty()
    solr.indexing(tmp_path).index(story.first, "-noCommit", "-dir", story.first / "segments")
    assert solr.pages() == {}
    solr.indexing(tmp_path).index(
        story.first, "-noCommit", "-params", "commit=true", "-dir", story.first / "segments"
    )
    assert solr.pages() == pages(story.first, duplicates=True)


def test_refused_documents_are_counted_and_the_others_taken(
    solr: Solr, story: Story, tmp_path: Path
) -> None:
    """The schema knows no field `tags`, which some pages have."""
    solr.empty()
    indexing = solr.indexing(tmp_path)
    indexing.mapping = TAGGED
    counts = indexing.index(story.first)
    wanted = pages(story.first, duplicates=True)
    assert counts["refused_total"] == len(wanted) - len(solr.pages()) == len(ANCHORS)
    assert counts["indexed_total"] == len(solr.pages())
    assert solr.pages().items() <= wanted.items()


def test_no_such_collection(solr: Solr, story: Story, tmp_path: Path) -> None:
    wrong = (
        {"url": f"{solr.root}/nosuch"}
        if solr.parameters["type"] == "http"
        else {"collection": "nosuch"}
    )
    with pytest.raises(IndexWriterError, match=r"index writer w: .*nosuch.*: 40[04]"):
        solr.indexing(tmp_path, **wrong).index(story.first)


def test_a_server_that_dies_in_a_request(solr: Solr, story: Story, tmp_path: Path) -> None:
    """The job waits for it; the server finds what it had taken in its log, and the batch goes out
    again.
    """
    solr.empty()

    def accident() -> None:
        solr.server.kill()
        solr.server.start()

    with Proxy(solr.server.port, b"POST /solr/nutch/update", 3, accident) as proxy:
        here = {"url": str(solr.parameters["url"]).replace(str(solr.server.port), str(proxy.port))}
        counts = solr.indexing(tmp_path, commitSize=4, **here).index(story.first)
        assert proxy.happened
    wanted = pages(story.first, duplicates=True)
    solr.wait_for(
        lambda: solr.commit() and solr.pages() == wanted
    )  # while it reads its log Solr ignores commits
    assert solr.pages() == wanted
    assert counts["indexed_total"] == len(solr.pages())


def test_a_server_that_is_not_there(solr: Solr, story: Story, tmp_path: Path) -> None:
    solr.empty()
    solr.server.stop()
    with pytest.raises(IndexWriterError, match=r"index writer w: .*: no connection: "):
        solr.indexing(tmp_path).index(story.first)
    solr.server.start()
