"""Fetches folder://NAME/PATH: files below the folder that the property $id.root names."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from minutch.conf import Configuration
from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content, ProtocolStatus
from minutch.urls.robots import ALLOW_ALL, RobotRules


class FolderProtocol(Protocol):
    """The protocol of the schemes that `protocolName` in plugin.xml and `schemes` name."""

    schemes = ("folder",)

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        self.root = Path(conf.get("$id.root") or ".").resolve()

    async def get_protocol_output(self, url: str, datum: CrawlDatum) -> ProtocolOutput:
        """Fetches a page; whatever goes wrong with it is a status, not an exception.

        Many pages are fetched at once: what waits is awaited, what blocks runs in a thread.
        """
        path = (self.root / unquote(urlsplit(url).path).lstrip("/")).resolve()
        if not path.is_relative_to(self.root):
            return ProtocolOutput(None, ProtocolStatus.of(protocol.ACCESS_DENIED, url))
        try:
            body = await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError:
            return ProtocolOutput(None, ProtocolStatus.of(protocol.NOTFOUND, url))
        except OSError as exc:
            return ProtocolOutput(None, ProtocolStatus.of(protocol.EXCEPTION, exc.strerror))
        kind = "text/html" if path.suffix in (".html", ".htm") else ""  # empty: the content says it
        content = Content(url, url, body, kind)
        return ProtocolOutput(content, ProtocolStatus(protocol.SUCCESS))

    async def get_robot_rules(
        self, url: str, datum: CrawlDatum, robots_content: list[Content] | None
    ) -> RobotRules:
        """Returns what may be fetched: files have no robots.txt."""
        return ALLOW_ALL
