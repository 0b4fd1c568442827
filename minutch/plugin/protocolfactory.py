"""Chooses the protocol plugin that fetches a URL: by host, by the configured scheme, or by what the
plugins declare; and asks it once more where it says that it needs a second request (WOULDBLOCK),
after a rest, for those who have no queue to do that.

host-protocol-mapping.txt, a tab between the two columns, `#` starts a comment line:

    www.example.com   org.apache.nutch.protocol.okhttp.OkHttp     a host, or a domain
    protocol:https    org.apache.nutch.protocol.http.Http         a scheme

The second column is an extension's id, or one of those that its `standsFor` parameter names; one
that is not active is skipped. Without a line the first plugin whose `protocolName` parameter (a
list) has the scheme is used. Source: org.apache.nutch.protocol.ProtocolFactory.
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass, field
from typing import Final

from minutch.conf import Configuration
from minutch.errors import ProtocolError, UrlError
from minutch.plugin.points import Protocol, ProtocolOutput
from minutch.plugin.repository import Extension, PluginRepository, instance_of
from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import PROTO_NOT_FOUND, WOULDBLOCK, Content
from minutch.urls import parts
from minutch.urls.domains import domain_of
from minutch.urls.robots import RobotRules

log = logging.getLogger(__name__)

MAPPING_FILE = "host-protocol-mapping.txt"


@dataclass
class ProtocolMapping:
    """The content of host-protocol-mapping.txt: extension ids by host or domain, and by scheme."""

    hosts: dict[str, str] = field(default_factory=dict)
    schemes: dict[str, str] = field(default_factory=dict)


def read_mapping(text: str) -> ProtocolMapping:
    """Reads the lines of host-protocol-mapping.txt; a malformed one is logged and skipped."""
    mapping = ProtocolMapping()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        columns = [column.strip() for column in line.strip().split("\t")]
        if len(columns) != 2:
            log.warning(
                "%s, line %d: expected <host or protocol:scheme> <tab> <id>: %s",
                MAPPING_FILE,
                number,
                line,
            )
        elif ":" in columns[0]:
            mapping.schemes[columns[0].split(":")[1].strip()] = columns[1]
        else:
            mapping.hosts[columns[0]] = columns[1]
    return mapping


class ProtocolFactory:
    """The protocols that are active, by URL."""

    def __init__(self, conf: Configuration) -> None:
        self.extensions = PluginRepository.of(conf).extensions(Protocol.point_id)
        has_file = conf.resource(MAPPING_FILE) is not None
        self.mapping = (
            read_mapping(conf.read_resource(MAPPING_FILE)) if has_file else ProtocolMapping()
        )

    def get_protocol(self, url: str) -> Protocol:
        """Returns the protocol's object. Raises ProtocolError (PROTO_NOT_FOUND) if no active plugin
        handles the URL.
        """
        try:
            parsed = parts.parse(url)
        except UrlError as exc:
            raise ProtocolError(f"no protocol for {url}: {exc}", PROTO_NOT_FOUND) from exc
        # In Nutch's order: host, scheme by the file, scheme by the plugins.
        extension = (
            self._by_host(parsed.host)
            or self._by_id(self.mapping.schemes.get(parsed.protocol))
            or self._by_scheme(parsed.protocol)
        )
        if extension is None:
            raise ProtocolError(f"no protocol for {url}", PROTO_NOT_FOUND)
        return instance_of(extension, Protocol)

    async def close(self) -> None:
        """Closes every protocol that was used."""
        for extension in self.extensions:
            # Those that were never asked for would be made to be closed.
            if extension.is_instantiated:
                await instance_of(extension, Protocol).close()

    def _by_host(self, host: str) -> Extension | None:
        if not self.mapping.hosts:
            return None
        # ProtocolFactory: the host itself, then its domain.
        name = host if host in self.mapping.hosts else domain_of(host)
        return self._by_id(self.mapping.hosts.get(name))

    def _by_id(self, name: str | None) -> Extension | None:
        if name is None:
            return None
        return next(
            (
                e
                for e in self.extensions
                if name in (e.id, *e.parameters.get("standsFor", "").split())
            ),
            None,
        )

    def _by_scheme(self, scheme: str) -> Extension | None:
        return next(
            (
                e
                for e in self.extensions
                if scheme in re.split("[, ]", e.parameters.get("protocolName", ""))
            ),
            None,
        )


MOST: Final = 3
"""Requests for one page."""


async def output_of(protocol: Protocol, url: str, datum: CrawlDatum, rest: float) -> ProtocolOutput:
    """Returns the page at a URL; `rest` in seconds."""
    for _ in range(MOST - 1):
        output = await protocol.get_protocol_output(url, datum)
        if output.status.code != WOULDBLOCK:
            return output
        await asyncio.sleep(rest)
    return await protocol.get_protocol_output(url, datum)


async def rules_of(
    protocol: Protocol, url: str, datum: CrawlDatum, contents: list[Content] | None, rest: float
) -> RobotRules:
    """Returns the robots.txt rules for a URL, as `get_robot_rules` does; `rest` in seconds."""
    for _ in range(MOST - 1):
        rules = await protocol.get_robot_rules(url, datum, contents)
        if rules.failure is None or rules.failure.code != WOULDBLOCK:
            return rules
        await asyncio.sleep(rest)
    return await protocol.get_robot_rules(url, datum, contents)
