"""learn: finds rules by which a crawl would have asked for less and known as much.

What the crawl's rules change or reject already is not looked at, so what was written once is not
found again. Rules are made one after the other, as the files have them, on all URLs that are known:

    touches   URLs that a rule changes or rejects
    lost      pages whose content no URL gives any more: neither one that stays, nor one that others
              become. What URLs become that were never asked for counts as giving it only where all
              that become it say the same

A rule that would lose a page is never offered, alone or together with others. Asks no host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import polars as pl

from minutch import scratch
from minutch.inspect.learn.evidence import PROBE, SAID, UNKNOWN, UNLIKE, KnownPages, read_pages
from minutch.inspect.learn.rules import EXAMPLES, LearnedRule, shorten
from minutch.inspect.learn.twins import Twins
from minutch.inspect.learn.yields import filters
from minutch.inspect.query.crawl import CrawlFolder
from minutch.job import JobContext

_FEW: Final = 2
"""URLs: a rule that touches fewer is not worth its lines."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What a crawl has taught."""

    rules: Sequence[LearnedRule]
    """In the order in which they are to be applied."""
    urls: int
    pages: int
    """URLs that are known, and different pages among them."""
    probes: Sequence[str]
    """URLs that cannot exist, for hosts with pages that may be soft 404s: seeds, if one likes."""

    @property
    def offered(self) -> list[LearnedRule]:
        """The rules that --apply writes."""
        return [rule for rule in self.rules if rule.is_offered]


def learn(crawl: CrawlFolder, *, context: JobContext) -> Learned:
    """Learns rules from what a crawl has stored. Raises FormatError."""
    with scratch.scratch("learn") as work:
        pages = read_pages(crawl, context.conf, work)
        rules, outcome = _measured([*Twins(pages, work).rules()], pages)
        more, _ = _measured([*filters(pages, outcome.stays)], pages, rules)
        rules += more
        shorten(rules, context.conf)
        content = pages.table["content"]
        return Learned(rules, len(content), content.filter(content > 0).n_unique(), _probes(pages))


def _measured(
    new: Sequence[LearnedRule], pages: KnownPages, before: Sequence[LearnedRule] = ()
) -> tuple[list[LearnedRule], _Outcome]:
    """Returns the new rules that touch something, measured, and what becomes of URLs by all: those
    that lose something are told apart, until the others together lose nothing.
    """
    rules = [rule for rule in (*before, *new) if rule.is_offered]
    while blamed := (outcome := _Outcome(pages, rules)).blamed():
        for number, lost in blamed.items():
            rules[number].lost = lost
        rules = [rule for rule in rules if not rule.lost]
    return [rule for rule in new if rule.is_advice or rule.touches >= _FEW], outcome


class _Outcome:
    """What becomes of all URLs by rules, one after the other."""

    def __init__(self, pages: KnownPages, rules: Sequence[LearnedRule]) -> None:
        self._table, self._rules = pages.table, rules
        by_host: dict[str, list[int]] = {}
        for number, rule in enumerate(rules):
            rule.touches, rule.examples = 0, []
            by_host.setdefault(rule.host, []).append(number)
        for rule in rules:
            if rule.to_host:  # its URLs become those of another host, with that one's rules
                by_host[rule.host] = sorted({*by_host[rule.host], *by_host.get(rule.to_host, [])})
        finals, self._touched = [pl.Series([], dtype=pl.UInt64)], [pl.DataFrame(schema=_TOUCHED)]
        for piece in pages.pieces():
            urls = piece["url"]
            for (host,), mine in piece.select("url", "host", row=pl.int_range(pl.len())).group_by(
                "host"
            ):
                if numbers := by_host.get(str(host)):
                    at = piece["at"].gather(mine["row"])
                    urls = urls.scatter(mine["row"], self._changed(mine["url"], at, numbers))
            finals.append(pl.select(pl.when(urls.is_not_null()).then(urls.hash())).to_series())
        self._final = pl.concat(finals)

    def _changed(self, urls: pl.Series, at: pl.Series, numbers: Sequence[int]) -> pl.Series:
        for number in numbers:
            rule = self._rules[number]
            changed = rule.apply(urls)
            rows = changed.ne_missing(urls).arg_true()
            rule.touches += len(rows)
            wanted = rows.head(EXAMPLES - len(rule.examples))
            rule.examples += zip(urls.gather(wanted), changed.gather(wanted), strict=True)
            touched = at.gather(rows).alias("at").to_frame()
            self._touched.append(touched.with_columns(rule=pl.lit(number, pl.UInt32)))
            urls = changed
        return urls

    @property
    def stays(self) -> pl.Series:
        """The mask of the URLs that are as they were."""
        return self._final.eq_missing(self._table["id"])

    def blamed(self) -> dict[int, int]:
        """Returns the numbers of rules that have changed URLs of pages that are lost, with how many
        such pages.
        """
        rows = self._table.select(
            "id", "content", "state", final=self._final, at=pl.int_range(pl.len(), dtype=pl.UInt32)
        )
        good = rows.filter(pl.col("content") > 0)
        stay = pl.col("final") == pl.col("id")
        given = [good.filter(stay)["content"]]
        ends = rows.select(final="id", state_there="state", stays=stay.fill_null(False))
        moved = good.filter(~stay).join(ends, on="final", how="left")
        unasked = (pl.col("state_there") == UNKNOWN) & pl.col("stays")
        same = pl.col("content").n_unique().over("final") == 1
        given.append(moved.filter(unasked.fill_null(True) & same)["content"])
        lost = good.filter(~pl.col("content").is_in(pl.concat(given).unique().implode()))
        blamed = (
            pl.concat(self._touched)
            .join(lost, on="at")
            .group_by("rule")
            .agg(pl.col("content").n_unique())
        )
        return dict(blamed.iter_rows())


def _probes(pages: KnownPages) -> list[str]:
    """Returns URLs that cannot exist, of the hosts where unlike URLs have one page."""
    pieces = [
        piece.filter((pl.col("content") > 0) & ~pl.col("is_gone")).select(
            "url", "host", "pattern", "content"
        )
        for piece in pages.pieces()
    ]
    rows = (
        pl.concat(pieces)
        if pieces
        else pl.DataFrame(schema=dict.fromkeys(("url", "host", "pattern", "content"), pl.String))
    )
    found = rows.group_by("host", "content").agg(
        pl.col("pattern").n_unique(), pl.len(), pl.col("url").min()
    )
    found = (
        found.filter(pl.col("pattern") >= UNLIKE, pl.col("len") >= SAID).unique("host").sort("host")
    )
    return [
        f"{url.partition(':')[0]}://{host}/{PROBE}-{crc32(host.encode()):08x}"
        for host, url in found.select("host", "url").iter_rows()
    ]


_TOUCHED: Final = pl.Schema({"at": pl.UInt32, "rule": pl.UInt32})
