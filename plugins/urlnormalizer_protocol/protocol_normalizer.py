"""urlnormalizer-protocol: sets the scheme of URLs by host (protocols.txt).

Lines `host scheme`, a blank or a tab between them; the host may be `*.domain`, which stands for the
domain and every host below it. A URL with a port stays. Properties: urlnormalizer.protocols.rules
(inline), urlnormalizer.protocols.file.

Followed: org.apache.nutch.net.urlnormalizer.protocol.ProtocolURLNormalizer.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.plugin.columns import host_column, map_distinct, rewrite
from minutch.plugin.points import URLNormalizer
from minutch.urls.parts import compose, parse
from minutch.urls.rules import rule_lines, rule_place, rules_text

if TYPE_CHECKING:
    import polars as pl

log = logging.getLogger(__name__)

_SCHEME = re.compile(r"[a-z](?:[a-z0-9$\-_@.&!*\"'(),]|%[0-9a-f]{2})*", re.IGNORECASE | re.ASCII)


class ProtocolURLNormalizer(URLNormalizer):
    """Changes schemes."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        rules = ("urlnormalizer.protocols.rules", "urlnormalizer.protocols.file")
        text = rules_text(conf, *rules, parameters, empty_counts=False)
        self._place = rule_place(conf, "urlnormalizer.protocols", parameters)
        self.hosts: dict[str, str] = {}
        self.domains: dict[str, str] = {}
        for number, line in enumerate(rule_lines(text or ""), 1):
            if line.strip() and not line.strip().startswith("#"):
                self._add(line.strip(), number)

    def _add(self, line: str, number: int) -> None:
        host, delimiter, protocol = line.partition(" " if " " in line else "\t")
        protocol = protocol.strip()
        if not delimiter or _SCHEME.fullmatch(protocol) is None:
            log.warning(
                "%s, line %d left out, not a host and a scheme: %s", self._place, number, line
            )
        elif host.startswith("*."):
            self.domains[host[1:]] = protocol
            # `*.example.org` is example.org, too.
            self.hosts[host[2:]] = protocol
        else:
            self.hosts[host] = protocol

    def normalize(self, url: str, scope: str) -> str | None:
        parsed = parse(url)
        # Another scheme at the same port is mostly no server.
        wanted = None if parsed.port != -1 else self.protocol(parsed.host)
        if wanted is None or wanted == parsed.protocol:
            return url
        return str(compose(wanted, parsed.host, -1, parsed.file))

    def protocol(self, host: str) -> str | None:
        """Returns the scheme for a host: its own or its longest suffix's; None to keep it."""
        if host in self.hosts:
            return self.hosts[host]
        if not self.domains:
            return None
        dots = (at for at, char in enumerate(host) if char == ".")
        return next((self.domains[host[at:]] for at in dots if host[at:] in self.domains), None)

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        """Calls the row method if the host has a scheme, or the URL no host."""
        hosts = host_column(urls)
        where = map_distinct(hosts, self.protocol).is_not_null() | hosts.is_null()
        return rewrite(urls, where, lambda url: self.normalize(url, scope))
