"""Summarizes a fetched segment: new, changed and failed pages, and why they failed.

    crawl_generate   a page that had been fetched before is fetched again; with its old signature
    crawl_fetch      the status of every page, and of failures the protocol status, `_pst_`
    crawl_parse      the signatures of what was fetched: equal ones are pages that did not change

Why a page did not come is said in the words of `fetch/reasons.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.reasons import fate, http_code, reason
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, CRAWL_GENERATE, CRAWL_PARSE
from minutch.hadoop.formats.writables import Text
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import ProtocolStatus
from minutch.work.tables.crawldata import scan
from minutch.work.tables.database import part_paths

FETCHED: Final = (status.STATUS_FETCH_SUCCESS, status.STATUS_FETCH_NOTMODIFIED)
_REDIRECTED: Final = (status.STATUS_FETCH_REDIR_TEMP, status.STATUS_FETCH_REDIR_PERM)
_SEEN: Final = (status.STATUS_DB_FETCHED, status.STATUS_DB_NOTMODIFIED, status.STATUS_DB_DUPLICATE)
"""Statuses of pages whose content was had before."""
_GONE: Final = ("gone", "denied")

_PROTO_STATUS: Final = Text(PROTO_STATUS_KEY)


@dataclass
class Outcomes:
    """Counts of pages. `reasons` counts (what becomes of the page, why), `examples` has URLs for
    each.
    """

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
    """Summarizes the segment of a finished round; `proxy` is http.proxy.host. Raises FormatError
    (damage).
    """
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
    signatures = _column(segment / CRAWL_PARSE, (status.STATUS_SIGNATURE,))
    again = again.join(signatures, on="key", how="left", suffix="_now")
    same = (again["status"] == status.STATUS_FETCH_NOTMODIFIED) | again["signature"].eq_missing(
        again["signature_now"]
    )
    result.unchanged = int(same.sum())
    result.changed = len(again) - result.unchanged
    result.new = len(pages) - len(again)


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
