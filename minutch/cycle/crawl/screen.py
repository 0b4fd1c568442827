"""Shows a crawl: a live line while a step runs, a row when it has ended, and a summary at the end.

    Round 1 of 3
      generate     0.1 s  15 pages to fetch, 14 left for later rounds
      fetch        1.4 s  9 pages, 2 redirects, 1 error, 2 gone
    round 1 of 3, parse: 4 of 9 pages, 20/s, 0:01 left                        live

Titles, rows and the summary are the command's output (stdout), the live line goes to stderr, as log
lines do. Whoever watches the crawl gets the same. Pages are counted by what lies in a fetched
segment (`outcomes_of`), why they did not come is said in the words of `fetch/decisions.py`.
"""

from __future__ import annotations

import re
import shlex
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.conf.configuration import COMMAND_LINE
from minutch.conf.properties import shown
from minutch.conf.sources import CONF, SITE, is_remembering, read_properties
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.fetch.decisions import fate, http_code, reason
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, CRAWL_GENERATE, CRAWL_PARSE
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, JobContext, live_line, time_text
from minutch.processwide import command_line
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import ProtocolStatus
from minutch.terminal import BOLD, YELLOW, counted, folded, folded_command, width_of
from minutch.work.tables.database import part_paths
from minutch.work.tables.recordfiles import scan

WIDTH = 80
_EXAMPLES = 5
"""URLs that are named for each reason with -v."""


# -- the pages of a segment ------------------------------------------------------------------------
#
# New, changed and failed pages, and why they failed:
#
#   crawl_generate   a page that had been fetched before is fetched again; with its old signature
#   crawl_fetch      the status of every page, and of failures the protocol status, `_pst_`
#   crawl_parse      the signatures of what was fetched: equal ones are pages that did not change

FETCHED: Final = (status.STATUS_FETCH_SUCCESS, status.STATUS_FETCH_NOTMODIFIED)
_REDIRECTED: Final = (status.STATUS_FETCH_REDIR_TEMP, status.STATUS_FETCH_REDIR_PERM)
_SEEN: Final = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE)
"""Statuses of pages whose content was had before."""
_GONE: Final = ("gone", "denied")

_PROTO_STATUS: Final = Text(PROTO_STATUS_KEY)


@dataclass
class Outcomes:
    """Counts of pages. `reasons` counts (what becomes of it, why), `examples` has URLs."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    redirected: int = 0
    gone: int = 0
    errors: int = 0
    bytes: int = 0
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    @property
    def fetched(self) -> int:
        """Pages whose content is there."""
        return self.new + self.changed + self.unchanged

    def add(self, other: Outcomes) -> None:
        """Adds another round's."""
        for name in ("new", "changed", "unchanged", "redirected", "gone", "errors", "bytes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reasons.update(other.reasons)

    def lines(self) -> Iterator[str]:
        """Yields the reasons by what becomes of the pages, most frequent first."""
        groups: dict[str, Counter[str]] = {}
        for (becomes, why), count in self.reasons.items():
            groups.setdefault(becomes, Counter())[why] += count
        for becomes, whys in sorted(groups.items(), key=lambda item: -item[1].total()):
            listed = ", ".join(f"{count:,} × {why}" for why, count in whys.most_common())
            yield f"{becomes} {whys.total():,}: {listed}"


def outcomes_of(segment: Path, proxy: str = "") -> Outcomes:
    """Summarizes a finished round's segment; `proxy` is http.proxy.host. Raises FormatError."""
    result = Outcomes(bytes=sum(path.stat().st_size for path in (segment / CONTENT).glob("*/data")))
    before = _column(segment / CRAWL_GENERATE, _SEEN)
    successes = []
    for frame in _frames(segment / CRAWL_FETCH):
        successes.append(frame.filter(pl.col("status").is_in(FETCHED)).select("key", "status"))
        result.redirected += int(frame["status"].is_in(_REDIRECTED).sum())
        failed = frame.filter(~pl.col("status").is_in((*FETCHED, *_REDIRECTED)))
        for url, datum in crawldatum_columns.records(failed):
            _count_failure(result, url, datum, proxy)
    _count_successes(result, successes, before, segment)
    return result


def _count_successes(
    result: Outcomes, found: list[pl.DataFrame], before: pl.DataFrame, segment: Path
) -> None:
    if not found:
        return
    pages = pl.concat(found).unique("key")
    again = pages.join(before, on="key")
    result.new = len(pages) - len(again)
    if again.is_empty():  # the signatures stand among all links that were found
        return
    signatures = _column(segment / CRAWL_PARSE, (status.STATUS_SIGNATURE,))
    again = again.join(signatures, on="key", how="left", suffix="_now")
    same = (again["status"] == status.STATUS_FETCH_NOTMODIFIED) | again["signature"].eq_missing(
        again["signature_now"]
    )
    result.unchanged = int(same.sum())
    result.changed = len(again) - result.unchanged


def _column(folder: Path, statuses: tuple[int, ...]) -> pl.DataFrame:
    """Key and signature of the entries of these statuses."""
    empty = pl.DataFrame(schema={"key": pl.Binary, "signature": pl.Binary})
    frames = [
        frame.filter(pl.col("status").is_in(statuses)).select("key", "signature")
        for frame in _frames(folder)
    ]
    return pl.concat([empty, *frames]).unique("key")


def _frames(folder: Path) -> Iterator[pl.DataFrame]:
    if folder.is_dir():
        for path in part_paths(folder):
            yield from scan(path)


def _count_failure(result: Outcomes, url: str, datum: CrawlDatum, proxy: str) -> None:
    """Counts a page that did not come; links that redirects found are none, nor pages that the next
    round is to fetch.
    """
    protocol = datum.metadata.get(_PROTO_STATUS)
    known = protocol if isinstance(protocol, ProtocolStatus) else ProtocolStatus(codes.FAILED)
    if datum.status == status.STATUS_LINKED and known.code != codes.NOTFETCHING:
        return
    key = fate(datum.status, known), reason(known, http_code(datum), proxy)
    if key[1] == Outcome.SKIPPED_TAIL.reason:
        return
    result.reasons[key] += 1
    result.examples.setdefault(key, []).append(url)
    if key[0] in _GONE:
        result.gone += 1
    elif known.code != codes.NOTFETCHING:
        result.errors += 1


# -- what is shown ---------------------------------------------------------------------------------


@dataclass
class CrawlTotals:
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

    def summary(self, totals: CrawlTotals, seconds: float, next_commands: Sequence[str]) -> None:
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


# -- the counters of steps in plain words, and what may be done after a crawl ----------------------

Counts = Mapping[str, int]

# For each step: its counters in the order of the sentence, and what they are called. `{}` is the
# number; a word in the plural loses its s at one. Counters that are 0 are left out.
_WORDS: Final[dict[str, dict[str, str]]] = {
    "inject": {
        "seeds": "{} seeds",
        "seeds new": "{} new",
        "seeds already in the CrawlDb": "{} known",
        "seeds rejected": "{} rejected",
        "seeds given more than once": "{} given twice",
    },
    "sitemap": {
        "sitemaps read": "{} sitemaps",
        "new URLs": "{} new URLs",
        "URLs that the crawldb has": "{} known",
        "URLs rejected by filters": "{} rejected",
        "failed sitemap fetches": "{} not fetched",
        "sitemaps that can't be read": "{} unreadable",
        "sitemaps that robots.txt forbids": "{} denied by robots.txt",
    },
    "generate": {
        "selected_total": "{} pages to fetch",
        "not_in_top_n_total": "{} left for later rounds",
        "urls_skipped_per_host_overflow_total": "{} over the limit of their host",
        "urls_skipped_per_pattern_total": "{} of patterns that give little",
        "url_filters_rejected_total": "{} rejected by filters",
        "wait_for_update_total": "{} in another fetch list",
        "malformed_urls_skipped_total": "{} malformed",
    },
    "fetch": {
        "fetched": "{} pages",
        "not modified": "{} not modified",
        "redirected": "{} redirects",
        "retry": "{} errors",
        "gone": "{} gone",
        "denied": "{} denied by robots.txt",
        "deferred": "{} deferred",
        "left to the next round": "{} left to the next round",
    },
    "parse": {
        "success": "{} documents",
        "failed": "{} failed",
        "skipped_no_parser": "{} without a parser",
        "skipped_truncated": "{} cut off",
        "documents_with_links_cut": "{} with links cut",
        "documents_with_external_links_left_out": "{} with external links left out",
        "documents_with_noindex_or_nofollow": "{} saying noindex or nofollow",
    },
    "updatedb": {
        "db_unfetched": "{} to fetch",
        "db_fetched": "{} fetched",
        "db_notmodified": "{} unchanged",
        "db_duplicate": "{} duplicates",
        "db_gone": "{} gone",
        "redirects": "{} redirects",
    },
    "updatehostdb": {
        "total_hosts_total": "{} hosts",
        "new_known_host_total": "{} found",
        "rediscovered_host_total": "{} found again",
        "new_unknown_host_total": "{} without an address",
        "existing_unknown_host_total": "{} still without an address",
        "purged_unknown_host_total": "{} dropped",
    },
    "invertlinks": {"inlinks written": "{} links", "pages with inlinks": "to {} pages"},
    "dedup": {
        "documents marked as duplicates": "{} duplicates",
        "documents marked as twins by their canonical links": "{} twins by canonical links",
    },
    "index": {
        "indexed_total": "{} documents",
        "refused_total": "{} refused",
        "deleted_gone_total": "{} gone",
        "deleted_redirects_total": "{} redirects",
        "deleted_duplicates_total": "{} duplicates",
        "skipped_by_indexing_filter_total": "{} left out by filters",
        "errors_indexing_total": "{} errors",
    },
    "clean": {"deleted_documents_total": "{} gone or duplicates"},
}
_NOTHING: Final = {
    "dedup": "no duplicates",
    "invertlinks": "no links between sites",
    "generate": "nothing is due",
    "clean": "nothing is gone",
}


def result_of(step: str, counters: Counts) -> str:
    """Says in a sentence what a step has done."""
    counts = dict(counters)
    if step == "updatedb":
        total = sum(count for name, count in counts.items() if name.startswith("db_"))
        counts["redirects"] = counts.get("db_redir_temp", 0) + counts.get("db_redir_perm", 0)
        return ", ".join([f"{counted(total, 'URLs')} known", *_said(step, counts)])
    if step == "fetch":
        skipped = sum(count for name, count in counts.items() if name.startswith("skipped"))
        return (
            ", ".join([*_said(step, counts), *([f"{skipped:,} not asked for"] if skipped else [])])
            or "nothing"
        )
    return ", ".join(_said(step, counts)) or _NOTHING.get(step, "nothing")


def counters_of(counters: Counts) -> str:
    """Shows all counters by their own names, zeros left out."""
    return ", ".join(f"{name} {count:,}" for name, count in counters.items() if count) or "nothing"


def _said(step: str, counts: Counts) -> list[str]:
    return [
        _phrase(text, counts[name])
        for name, text in _WORDS.get(step, {}).items()
        if counts.get(name)
    ]


def _phrase(text: str, count: int) -> str:
    before, _, after = text.partition("{} ")
    word, blank, rest = after.partition(" ")
    return f"{before}{counted(count, word)}{blank}{rest}"


def size(count: int) -> str:
    """Bytes as people read them: `312 KB`."""
    amount, units = float(count), ["bytes", "KB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return (
        f"{amount:,.0f} {units[0]}"
        if amount >= 10 or units[0] == "bytes"
        else f"{amount:.1f} {units[0]}"
    )


def next_commands(directory: Path, options: CrawlOptions, conf: Configuration) -> list[str]:
    """Returns commands to go on with a crawl, or to look at its results."""
    place = shlex.quote(options.shown_as or str(directory))
    again = options.again or f"{place} {max(1, options.rounds)}"
    commands = [
        command_line(" ".join(("crawl", *_given_again(directory, conf), again))),
        command_line(f"report {place}"),
        command_line(f"explain {place}"),
    ]
    has_index = (directory / "index" / "current").is_dir()
    return [*commands, command_line(f"serve {place}")] if has_index else commands


def _given_again(directory: Path, conf: Configuration) -> Iterator[str]:
    """Yields the -D of the command line that the crawl's folder does not remember; secrets as shell
    variables.
    """
    kept = {}
    if is_remembering(directory):
        kept = {item.name: item.value for item in read_properties(directory / CONF / SITE)}
    for name in conf:
        value = conf.raw(name) or ""
        if conf.source(name) == COMMAND_LINE and kept.get(name) != value:
            is_secret = shown(name, value) != value
            variable = re.sub(r"\W", "_", name).upper()
            yield "-D"
            yield f'{name}="${variable}"' if is_secret else shlex.quote(f"{name}={value}")
