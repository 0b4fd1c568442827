"""Commands that show more of what an answer counts, as one types them into a shell. Pure: no I/O"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9 .,:;'=_()*<>/?&%+~@-]*")
"""What stands between double quotes as it is."""


class Commands:
    """Commands about the crawl in a folder; `arguments` are those of generate."""

    def __init__(self, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._folder = folder
        self._arguments = " ".join(map(quote, arguments))

    def _path(self, *names: str) -> str:
        return quote(str(self._folder.joinpath(*names)))

    def generate(self) -> str:
        """Make the next fetch list."""
        return f"minutch generate {self._path('crawldb')} {self._path('segments')} {self._arguments}".rstrip()  # noqa: E501

    def explain(self, url: str) -> str:
        """Ask about one URL."""
        return f"minutch explain {quote(url)} {self._path()} {self._arguments}".rstrip()

    def on_segment(self, command: str, segment: str) -> str:
        """Go on with a segment: fetch, parse, readseg -list."""
        return f"minutch {command} {self._path('segments', segment)}"

    def update(self, segment: str) -> str:
        """Bring a segment into the CrawlDb."""
        return f"minutch updatedb {self._path('crawldb')} {self._path('segments', segment)}"

    def stats(self) -> str:
        """Count the entries of the CrawlDb by status and host."""
        return f"minutch readdb {self._path('crawldb')} -stats -sort"

    def sql(self, query: str, **values: str) -> str:
        """Ask the tables; `values` are put in as SQL's strings."""
        made = query.format(
            **{name: "'" + value.replace("'", "''") + "'" for name, value in values.items()}
        )
        return f"minutch sql {self._path()} " + (
            f'"{made}"' if _PLAIN.fullmatch(made) else quote(made)
        )

    def entries(self, status: str) -> str:
        """The entries of a status."""
        return self.sql(
            "select url, fetch_time from crawldb where status = {status}", status=status
        )

    def host(self, host: str) -> str:
        """The entries of a host, by status."""
        return self.sql(
            "select status, count(*) from crawldb where host = {host} group by 1", host=host
        )
