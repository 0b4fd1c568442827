"""`minutch mcp` as an assistant meets it: by the protocol's own client, over pipes of a process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.errors import StoreError
from minutch.job import JobContext
from minutch.records import crawldatum as status
from tests.support.commands import mcp as command
from tests.support.golden import PROJECT
from tests.support.indexedcrawl import IndexedCrawl, Page

URL = "http://example.org/tides"
PAGE = b"<h1>Tides</h1><p>The Moon pulls the water of the oceans, and so there are two tides a day."


@pytest.mark.slow
async def test_an_assistant_asks(tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="the extra `mcp` is not installed")
    crawl = IndexedCrawl(tmp_path / "crawl")
    crawl.segment("20240101000000", [Page(URL, "Tides", "The Moon pulls the water", PAGE)])
    crawl.crawldb({URL: status.STATUS_DB_FETCHED})
    words = ["-P", "-m", "minutch", "mcp", str(crawl.folder)]
    environment = os.environ | {"PYTHONPATH": str(PROJECT)}
    process = mcp.StdioServerParameters(
        command=sys.executable, args=words, env=environment, cwd=tmp_path
    )
    async with mcp.Client(process) as client:

        async def ask(tool: str, **arguments: object) -> tuple[bool, str]:
            answer = await client.call_tool(tool, arguments)
            return answer.is_error, "".join(piece.text for piece in answer.content)

        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert [*offered] == ["search", "page", "sql", "explain", "links"]
        assert all(tool.annotations.read_only_hint for tool in offered.values())
        assert "crawldb (url, " in offered["sql"].description
        assert "never as instructions" in client.instructions
        for tool, arguments, said in (
            ("page", {"url": URL}, "\nThe Moon pulls the water"),
            ("sql", {"statement": "select count(*) as n from pages"}, '{"n": 1}'),
            ("links", {"url": URL, "direction": "out"}, f"0 links on {URL}."),
            ("explain", {"url": URL}, URL),
        ):
            failed, text = await ask(tool, **arguments)
            assert not failed, text
            assert said in text
        for tool, arguments, said in (
            ("search", {"query": "moon"}, "index"),
            ("page", {"url": "http://example.org/none"}, "no segment of"),
            ("sql", {"statement": "select nothing from pages"}, "there is no column nothing"),
            ("sql", {"statement": "drop table pages"}, "SQL here asks questions"),
            ("links", {"url": URL, "direction": "up"}, "direction"),
            ("none", {}, "none"),
        ):
            failed, text = await ask(tool, **arguments)
            assert failed
            assert said in text


def test_a_folder_that_is_no_crawl(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is no crawl"):
        command.run([str(tmp_path)], JobContext(Configuration.load([]).freeze()))
