"""Builds the shell commands that show more of what an answer counts. Pure: no I/O"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Final

from minutch.cycle.fetchlist.select import NO_LIMIT
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.processwide import command_line

_PLAIN: Final = re.compile(r"[A-Za-z0-9 .,:;'=_()*<>/?&%+~@-]*")
"""Text that needs no escapes between double quotes."""


def generate_arguments(options: GenerateOptions) -> list[str]:
    """Returns the arguments that give generate these options."""
    words: list[str] = []
    if options.top_n != NO_LIMIT:
        words += ["-topN", str(options.top_n)]
    if options.add_days:
        words += ["-adddays", str(options.add_days)]
    if options.expression is not None:
        words += ["-expr", options.expression]
    if options.hostdb is not None:
        words += ["-hostdb", str(options.hostdb)]
    if options.max_segments != 1:
        words += ["-maxNumSegments", str(options.max_segments)]
    words += [] if options.filtering else ["-noFilter"]
    return words + ([] if options.normalize else ["-noNorm"])


class CommandLines:
    """Shell commands about the crawl in a folder; `arguments` are those of generate."""

    def __init__(self, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._folder = folder
        self._arguments = " ".join(map(quote, arguments))

    def _path(self, *names: str) -> str:
        return quote(str(self._folder.joinpath(*names)))

    def generate(self) -> str:
        """Returns the command that makes the next fetch list."""
        folders = f"{self._path('crawldb')} {self._path('segments')}"
        return command_line(f"generate {folders} {self._arguments}").rstrip()

    def explain(self, url: str) -> str:
        """Returns the command that explains one URL."""
        return command_line(f"explain {quote(url)} {self._path()} {self._arguments}").rstrip()

    def on_segment(self, command: str, segment: str) -> str:
        """Returns a command on a segment: fetch, parse, readseg -list."""
        return command_line(f"{command} {self._path('segments', segment)}")

    def update(self, segment: str) -> str:
        """Returns the command that merges a segment into the CrawlDb."""
        return self.on_segment(f"updatedb {self._path('crawldb')}", segment)

    def stats(self) -> str:
        """Returns the command that counts the entries of the CrawlDb by status and host."""
        return command_line(f"readdb {self._path('crawldb')} -stats -sort")

    def sql(self, query: str, **values: str) -> str:
        """Returns a query of the tables; `values` become SQL strings."""
        made = query.format(
            **{name: "'" + value.replace("'", "''") + "'" for name, value in values.items()}
        )
        said = f'"{made}"' if _PLAIN.fullmatch(made) else quote(made)
        return command_line(f"sql {self._path()} {said}")

    def entries(self, status: str) -> str:
        """Returns a query of the entries with a status."""
        return self.sql(
            "select url, fetch_time from crawldb where status = {status}", status=status
        )

    def host(self, host: str) -> str:
        """Returns a query that counts the entries of a host by status."""
        return self.sql(
            "select status, count(*) from crawldb where host = {host} group by 1", host=host
        )
