"""Finds protocol-archive, which turns archived answers into pages as if they came now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from minutch.conf import Configuration
from minutch.errors import PluginError
from minutch.plugin import points
from minutch.plugin.repository import PluginRepository
from minutch.records.crawldatum import CrawlDatum
from minutch.warc.reading.visits import Visit

PLUGIN: Final = "protocol-archive"
LIMIT_PROPERTY: Final = "archive.content.limit"


@runtime_checkable
class Replays(Protocol):
    """The method that protocol-archive offers beside the extension point."""

    def replayed(self, url: str, datum: CrawlDatum, visit: Visit) -> points.ProtocolOutput:
        """Turns a visit into the protocol output for the page at `url`."""
        ...


def content_limit(conf: Configuration) -> int:
    """Returns the limit of a page's content in bytes; below 0: none."""
    return conf.get_int(LIMIT_PROPERTY)


def as_archived(conf: Configuration, files: Iterable[Path]) -> Configuration:
    """Returns a configuration that keeps archived answers as they came, whatever fetches keep."""
    return conf.with_values(
        {
            "archive.files": ",".join(map(str, files)),
            "plugin.includes": f"{conf.get('plugin.includes', '')}|{PLUGIN}",
            "http.content.limit": str(content_limit(conf)),
            "http.agent.name": conf.get_text("http.agent.name").strip() or "minutch",
            "store.http.headers": "true",
            "store.http.request": "true",
            "store.ip.address": "true",
        }
    )


def replays(conf: Configuration) -> Replays:
    """Returns the plugin that says what answers mean. PluginError if it is not there."""
    for extension in PluginRepository.of(conf).extensions(points.Protocol.point_id):
        if extension.plugin.id == PLUGIN:
            plugin = extension.instance()
            if isinstance(plugin, Replays):
                return plugin
    raise PluginError(f"plugin {PLUGIN} is not there, or excluded by plugin.excludes")
