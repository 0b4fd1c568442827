"""urlnormalizer-host: replaces host names by others (host-urlnormalizer.txt).

Lines `host target`; the host may be `*.domain`, which stands for every host below it, not for the
domain itself. The host as such is looked up first, then the domains above it, the shortest (of two
labels) first. Properties: urlnormalizer.hosts.rules (inline), urlnormalizer.hosts.file.

Source: org.apache.nutch.net.urlnormalizer.host.HostURLNormalizer. Its quirk: what is replaced is
the first place where the host's name stands in the URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.columns import host_column, map_distinct, rewrite
from minutch.plugin.points import URLNormalizer
from minutch.urls.parts import parse, split_labels
from minutch.urls.rules import rule_lines, rule_place, rules_text

if TYPE_CHECKING:
    import polars as pl


class HostURLNormalizer(URLNormalizer):
    """Replaces hosts."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        text = rules_text(conf, "urlnormalizer.hosts.rules", "urlnormalizer.hosts.file", parameters)
        self.targets: dict[str, str] = {}
        for number, line in enumerate(rule_lines(text or ""), 1):
            if line.strip() and line[0] != "#":
                host, blank, target = line.strip().partition(" ")
                if not blank:
                    where = rule_place(conf, "urlnormalizer.hosts", parameters)
                    raise ConfigError(
                        f"{where}, line {number}: expected a host, a blank and its target, found"
                        f" {line!r}"
                    )
                self.targets[host] = target.strip()  # columns may be aligned by several blanks

    def normalize(self, url: str, scope: str) -> str | None:
        host = parse(url).host
        target = self.target(host)
        return url if target is None else url.replace(host, target, 1)

    def target(self, host: str) -> str | None:
        """Returns the host to use instead; None if it stays."""
        if host in self.targets:
            return self.targets[host]
        labels = split_labels(host)
        # From `*.example.org` down to the host's own parent, as HostURLNormalizer.
        for at in range(len(labels) - 2, 0, -1):
            target = self.targets.get("*." + ".".join(labels[at:]))
            if target is not None:
                return target
        return None

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        """Calls the row method if the host has a target, or the URL no host."""
        hosts = host_column(urls)
        where = map_distinct(hosts, self.target).is_not_null() | hosts.is_null()
        return rewrite(urls, where, lambda url: self.normalize(url, scope))
