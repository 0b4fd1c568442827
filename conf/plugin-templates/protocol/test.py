"""The plugin, found and made as a crawl does it."""

import asyncio
from pathlib import Path

from minutch.conf import Configuration
from minutch.plugin.points import ProtocolOutput
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.records.crawldatum import CrawlDatum


def fetched(root: Path, url: str) -> ProtocolOutput:
    values = {"plugin.includes": "$id", "$id.root": str(root)}
    protocol = ProtocolFactory(Configuration.load([]).with_values(values)).get_protocol(url)
    return asyncio.run(protocol.get_protocol_output(url, CrawlDatum()))


def test_a_file_a_missing_one_and_one_outside(tmp_path: Path) -> None:
    (tmp_path / "outside.html").write_text("no")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "page.html").write_text("<p>hello")
    page = fetched(tmp_path / "root", "folder://mine/page.html")
    assert page.status.name == "success"
    assert page.content is not None
    assert page.content.content == b"<p>hello"
    assert fetched(tmp_path / "root", "folder://mine/gone.html").status.name == "notfound"
    outside = fetched(tmp_path / "root", "folder://mine/%2e%2e/outside.html")
    assert outside.status.name == "access_denied"
