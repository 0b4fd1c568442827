"""The counters of a crawl's steps in plain words, and what may be done after it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.conf.confidential import shown
from minutch.conf.configuration import COMMAND_LINE
from minutch.conf.crawlfolder import CONF, SITE, is_remembering
from minutch.conf.xml import read_properties
from minutch.cycle.crawl.options import CrawlOptions
from minutch.processwide import command_line
from minutch.terminal import counted

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
        "urls_skipped_per_pattern_total": "{} over the limit of their pattern",
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
    "invertlinks": {
        "inlinks written": "{} links",
        "pages with inlinks": "to {} pages",
    },
    "dedup": {"documents marked as duplicates": "{} duplicates"},
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
