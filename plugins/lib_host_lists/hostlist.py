"""Reads a list of hosts, domains, public suffixes, one a line, lower-cased; `#`: a comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minutch.errors import UrlError
from minutch.plugin.columns import host_column, keep, map_distinct
from minutch.urls.domains import domain_of, suffix_of
from minutch.urls.parts import parse
from minutch.urls.rules import rule_lines

if TYPE_CHECKING:
    import polars as pl


class HostList:
    """The names of a rule file (readConfiguration of Nutch's DomainURLFilter and
    DomainDenylistURLFilter).

    `names` has the number of each one's line.
    """

    def __init__(self, text: str) -> None:
        self.names: dict[str, int] = {}
        for number, line in enumerate(rule_lines(text), 1):
            # As readConfiguration: a comment begins at the first column.
            if line.strip() and line[0] != "#":
                # The first line of a name is the one that messages show.
                self.names.setdefault(line.strip().lower(), number)

    def __bool__(self) -> bool:
        return bool(self.names)

    def has(self, url: str) -> bool | None:
        """Returns True if the list has the URL's suffix, domain or host; None if it is no URL."""
        try:
            return self.has_host(parse(url).host)
        except UrlError:
            return None

    def has_host(self, host: str) -> bool:
        """Returns the same for a host as written in the URL (suffixes are case-sensitive)."""
        return self.name_of(host) is not None

    def name_of(self, host: str) -> str | None:
        """Returns the name on the list that a host goes by: itself, its domain or its suffix."""
        # DomainURLFilter asks in the order suffix, domain, host; any of them decides.
        names = (host.lower(), domain_of(host), suffix_of(host))
        return next((name for name in names if name in self.names), None)

    def explain(self, url: str, source: str) -> str:
        """Returns the line of the list (of file `source`) that the URL is on, for messages."""
        try:
            name = self.name_of(parse(url).host)
        except UrlError as exc:
            return str(exc)
        return f"{source}: not listed" if name is None else f"{source}:{self.names[name]}: {name}"

    def choose(self, urls: pl.Series, listed: bool) -> pl.Series:
        """Returns the URLs on the list (or not on it); null for others and malformed ones."""
        hosts = host_column(urls)
        chosen = map_distinct(hosts, lambda host: "" if self.has_host(host) is listed else None)
        return keep(urls, chosen.is_not_null())
