"""Shows a crawl: a live line while a step runs, a row when it has ended, and a summary at the end.

    Round 1 of 3
      generate     0.1 s  15 pages to fetch, 14 left for later rounds
      fetch        1.4 s  9 pages, 2 redirects, 1 error, 2 gone
    round 1 of 3, parse: 4 of 9 pages, 20/s, 0:01 left                        live

Titles, rows and the summary are the command's output (stdout), the live line goes to stderr, as log
lines do. Whoever watches the crawl gets the same.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import zip_longest

from minutch.cycle.crawl.summaries import counters_of, result_of, size
from minutch.cycle.fetch.outcomes import Outcomes
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.job import Counters, JobContext, live_line, time_text
from minutch.terminal import BOLD, YELLOW, counted, folded, folded_command, width_of

WIDTH = 80
_EXAMPLES = 5
"""URLs that are named for each reason with -v."""


@dataclass
class Totals:
    """The figures of all rounds of this run, for the summary."""

    rounds: int = 0
    outcomes: Outcomes = field(default_factory=Outcomes)
    statuses: Mapping[str, int] = field(default_factory=dict)
    """The CrawlDb's, after the last updatedb."""


@dataclass
class Screen:
    """Shows one crawl."""

    context: JobContext
    place: str = ""
    """Where the crawl is, such as `round 1 of 3`."""

    def title(self, text: str) -> None:
        """Begins a round."""
        if self.context.watch is not None:
            self.context.watch.begin(text)
        self._say(folded(text, WIDTH), BOLD)

    @contextmanager
    def running(self, step: str) -> Iterator[str]:
        """While a step runs: what its progress begins with."""
        label = f"{self.place}, {step}" if self.place else step
        live_line(self.context.err, f"{label} …")
        watch = self.context.watch
        try:
            with nullcontext() if watch is None else watch.running(step, self.place):
                yield label
        finally:
            live_line(self.context.err, "")

    def row(self, step: str, seconds: float, counters: Counters, more: str = "") -> None:
        """A step has ended."""
        result = counters_of(counters) if self.context.verbose else result_of(step, counters)
        if self.context.watch is not None:
            self.context.watch.row(step, seconds, result)
        text = f"  {step:<12}{seconds:>6.1f} s  {', '.join(filter(None, (result, more)))}".rstrip()
        for line in textwrap.wrap(text, WIDTH, subsequent_indent=" " * 23, break_on_hyphens=False):
            self._say(line)

    def reasons(self, outcomes: Outcomes) -> None:
        """Why pages of a round did not come."""
        for line in outcomes.lines():
            for part in textwrap.wrap(
                line, WIDTH - 2, subsequent_indent="  ", break_on_hyphens=False
            ):
                self._say(f"  {part}", YELLOW)
        if self.context.verbose:
            for (fate, why), urls in outcomes.examples.items():
                for url in urls[:_EXAMPLES]:
                    self._say(f"    {fate}, {why}: {url}")
                if len(urls) > _EXAMPLES:
                    self._say(f"    … and {len(urls) - _EXAMPLES:,} more")

    def complaints(self, kinds: Mapping[str, int], log_file: object) -> None:
        """Shows the log's complaints about single pages, by kind."""
        for kind, count in sorted(kinds.items(), key=lambda item: -item[1]):
            lines = textwrap.wrap(
                f"{count:,} × {kind}", WIDTH - 2, subsequent_indent="  ", break_on_hyphens=False
            )
            for line in lines:
                self._say(f"  {line}")
        if kinds:
            self._say(f"  (each with its URL in {log_file})")

    def nothing_due(self, reasons: Sequence[str], next_due: int | None) -> None:
        """Why generate has found nothing, and when there is something again (ms)."""
        lines = list(reasons)
        if next_due is not None:
            lines.append(f"the next page is due at {date_time_to_string(next_due)} UTC")
        for line in textwrap.wrap("; ".join(lines), WIDTH - 2, break_on_hyphens=False):
            self._say(f"  {line}")

    def note(self, text: str) -> None:
        """A line of its own."""
        self._say(text)

    def summary(self, totals: Totals, seconds: float, next_commands: Sequence[str]) -> None:
        """The last words."""
        found, known = totals.outcomes, sum(totals.statuses.values())
        self._say("")
        self._say(f"{counted(totals.rounds, 'rounds')} in {time_text(seconds)}", BOLD)
        parts = [f"{counted(found.fetched, 'pages')}: {found.new:,} new, {found.changed:,} changed"]
        parts += [
            f"{found.unchanged:,} unchanged",
            f"{found.gone:,} gone",
            counted(found.errors, "errors"),
        ]
        parts += [f"{size(found.bytes)} stored"]
        for line in textwrap.wrap(", ".join(parts), WIDTH - 2, subsequent_indent="  "):
            self._say(f"  {line}")
        if known:
            left = totals.statuses.get("db_unfetched", 0)
            self._say(
                f"  {counted(known, 'URLs')} known, "
                + (f"{left:,} still to fetch" if left else "all fetched")
            )
        width = width_of(self.context.out)
        for title, command in zip_longest(("Go on:", "Look:"), next_commands, fillvalue=""):
            self._say(f"  {title:<7}{folded_command(command, width, 9)}")

    def _say(self, text: str, style: str = "") -> None:
        self.context.print(text, style=style if self.context.colour else "")
        self.context.out.flush()
