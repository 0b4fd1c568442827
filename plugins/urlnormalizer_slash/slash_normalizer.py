"""urlnormalizer-slash: adds or removes the slash at the end of paths, by host (slashes.txt).

Lines `host sign`, a blank or a tab between them: `+` adds the slash (unless the path ends like a
file name), anything else removes it. The path `/` stays. Properties: urlnormalizer.slashes.rules
(inline), urlnormalizer.slashes.file.

Source: org.apache.nutch.net.urlnormalizer.slash.SlashURLNormalizer, which loses port, user info and
fragment of a URL that it changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.columns import host_column, rewrite
from minutch.plugin.points import URLNormalizer
from minutch.urls.parts import Url, parse
from minutch.urls.rules import rule_lines, rule_place, rules_text

if TYPE_CHECKING:
    import polars as pl


class SlashURLNormalizer(URLNormalizer):
    """Adds and removes the last slash."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        text = rules_text(
            conf, "urlnormalizer.slashes.rules", "urlnormalizer.slashes.file", parameters
        )
        self.hosts: dict[str, bool] = {}
        for number, line in enumerate(rule_lines(text or ""), 1):
            if line.strip() and line[0] != "#":
                text = line.strip()
                host, delimiter, sign = text.partition(" " if " " in text else "\t")
                if not delimiter:
                    where = rule_place(conf, "urlnormalizer.slashes", parameters)
                    raise ConfigError(
                        f"{where}, line {number}: expected a host, a blank and + or -, found"
                        f" {line!r}"
                    )
                self.hosts[host] = sign.strip() == "+"

    def normalize(self, url: str, scope: str) -> str | None:
        parsed = parse(url)
        wanted = self.hosts.get(parsed.host)
        # The root has its slash for good.
        if wanted is None or len(parsed.path) < 2:
            return url
        has_slash = parsed.path.endswith("/")
        if wanted and not has_slash and not _is_file(parsed.path):
            return _with_path(parsed, parsed.path + "/")
        if not wanted and has_slash:
            return _with_path(parsed, parsed.path[:-1])
        return url

    def normalize_column(self, urls: pl.Series, scope: str) -> pl.Series:
        """Calls the row method if the host has a rule, or the URL no host."""
        hosts = host_column(urls)
        where = hosts.is_in(list(self.hosts)) | hosts.is_null()
        return rewrite(urls, where, lambda url: self.normalize(url, scope))


def _is_file(path: str) -> bool:
    """Returns True if there is a dot among the last six characters of a path of six or more."""
    return len(path) >= 6 and path.rfind(".") >= max(len(path) - 6, 0)


def _with_path(url: Url, path: str) -> str:
    query = "" if url.query is None else f"?{url.query}"
    return f"{url.protocol}://{url.host}{path}{query}"
