"""learn: finds rules by which a crawl would have asked for less and known as much.

What the crawl's rules change or reject already is not looked at, so what was written once is not
found again. Rules are made one after the other, as the files have them, on all URLs that are known:

    touches   URLs that a rule changes or rejects
    lost      pages whose content no URL gives any more: neither one that stays, nor one that others
              become. What URLs become that were never asked for counts as giving it only where all
              that become it say the same

A rule that would lose a page is never offered, alone or together with others. Asks no host.

Filters get rules for what has brought nothing new at all: patterns of URLs, loops, pages that say
that they are not there, whatever their status. A page is new if no other URL that stays has its
content; one URL of a pattern stays where all of its pages are one page. What brings little is a
matter of budgets, which decide how much is asked for, not whether.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

import polars as pl

from minutch import scratch
from minutch.inspect.learn.evidence import PROBE, SAID, UNKNOWN, UNLIKE, KnownPages, read_pages
from minutch.inspect.learn.rules import EXAMPLES, LearnedRule, path_of, quoted, shorten
from minutch.inspect.learn.twins import Twins
from minutch.inspect.query.crawl import CrawlFolder
from minutch.job import JobContext

MANY: Final = 20
"""Pages of a pattern that say enough about the next ones."""
_LOOPS: Final = 6
"""The same of URLs whose segments come back."""
_LOW: Final = 0.1
"""New pages by pages: a pattern that yields less is named as one for a budget."""
_LISTED: Final = 50
"""URLs that are listed one by one in a rule."""
_AGAIN: Final = {
    2: r"(/[^/?#]+)(?:/[^/?#]+)*?\1(?:[/?#]|$)",
    3: r"(/[^/?#]+)(?:/[^/?#]+)*?\1(?:/[^/?#]+)*?\1(?:[/?#]|$)",
}
"""How often a segment is in a path -> a regular expression for that."""


def filters(pages: KnownPages, stays: pl.Series) -> Iterator[LearnedRule]:
    """Yields rules for the URLs that normalizers leave as they are, `stays` by their number."""
    pieces = [
        piece.filter(stays.gather(piece["at"])).with_columns(
            again=_repeats(piece["url"]).filter(stays.gather(piece["at"]))
        )
        for piece in pages.pieces()
    ]
    rows = pl.concat(pieces) if pieces else None
    if rows is None:
        return
    good = rows.filter(pl.col("content") > 0)
    yield from _gone(good)
    yield from _loops(good)
    yield from _patterns(good.filter(~pl.col("is_gone")))


def _gone(good: pl.DataFrame) -> Iterator[LearnedRule]:
    """Yields a rule for each host's answer to what is not there: patterns that had no other, and
    the rest one by one.
    """
    alone = good.group_by("pattern").agg(all=pl.col("is_gone").all(), n=pl.len())
    rows = (
        good.filter("is_gone", ~pl.col("url").str.contains(PROBE))
        .join(alone, on="pattern")
        .sort(pl.col("url").str.len_bytes(), "url")
    )
    for (host,), mine in rows.group_by("host", maintain_order=True):
        whole = mine.filter(pl.col("all") & (pl.col("n") >= 5))
        patterns = [one for one in whole["pattern"].unique().sort() if "{" in one or "?" in one]
        said = [_regex(one) for one in patterns]
        single = mine.filter(
            ~pl.col("pattern").is_in([p for p, r in zip(patterns, said, strict=True) if r])
        )
        listed = [
            quoted(url.partition("://")[2].partition("/")[2]) + "$"
            # A line of a thousand URLs is read by nobody, and tried for each URL.
            for url in single["url"].head(_LISTED)
        ]
        found = [one for one in said if one is not None] + listed
        if not found:
            continue
        pattern = f"^https?://{quoted(str(host))}/(?:{'|'.join(found)})"
        says = "unlike URLs have one answer, that of what is not there, with status 200"
        rule = LearnedRule("soft-404", str(host), says, pattern)
        rule.keeps = mine.unique("content", keep="first", maintain_order=True)["url"].to_list()
        rule.evidence = f"{len(mine)} pages of {mine['pattern'].n_unique()} patterns say the same"
        yield rule


def _loops(good: pl.DataFrame) -> Iterator[LearnedRule]:
    for least, regex in _AGAIN.items():
        found = _new(good.with_columns(group=pl.when(pl.col("again") >= least).then("host")))
        for one in found.filter(pl.col("n") >= _LOOPS, pl.col("new") == 0).iter_rows(named=True):
            host = one["group"]
            rule = LearnedRule(
                "loop",
                host,
                "segments that come back in a path bring nothing new",
                f"^https?://{quoted(host)}(?:/[^/?#]*)*?{regex}",
            )
            rule.evidence = f"{one['n']} pages, none of them new"
            yield rule


def _patterns(good: pl.DataFrame) -> Iterator[LearnedRule]:
    for one in (
        _new(good.with_columns(group="pattern")).filter(pl.col("n") >= MANY).iter_rows(named=True)
    ):
        host, name = one["group"].partition("/")[0], one["group"]
        regex, share = _regex(name), one["new"] / one["n"]
        evidence = f"{one['n']} pages, {one['new']} of them new"
        if one["new"] <= 1 and regex is not None:
            rule = LearnedRule(
                "pattern", host, f"{name} brings nothing new", f"^https?://{quoted(host)}/{regex}"
            )
            mine = good.filter(pl.col("pattern") == name)
            rule.keeps = (
                # The shortest one holds what all of them say.
                [mine.sort(pl.col("url").str.len_bytes(), "url")["url"][0]] if one["new"] else []
            )
        elif share < _LOW or one["shapes"] < _LOW * one["n"]:
            rule = LearnedRule("budget", host, f"{name} brings little", "", is_advice=True)
            evidence += f", {one['shapes']} if numbers don't count"
        else:
            continue
        rule.evidence = evidence
        yield rule


def _new(rows: pl.DataFrame) -> pl.DataFrame:
    """Counts the pages of each `group`, those that are new by it, and their shapes. A page is not
    new if a shorter URL of none or another group has it: of two groups with the same pages, one is
    the original.
    """
    rows = rows.with_columns(length=pl.col("url").str.len_bytes())
    first = rows.group_by("content", "group").agg(pl.col("length").min())
    first = first.with_columns(is_new=pl.col("length") == pl.col("length").min().over("content"))
    new = first.drop_nulls("group").group_by("group").agg(new=pl.col("is_new").sum())
    counts = (
        rows.drop_nulls("group")
        .group_by("group")
        .agg(n=pl.len(), shapes=pl.col("shape").n_unique(), pages=pl.col("content").n_unique())
    )
    return counts.join(new, on="group").sort("group")


def _regex(pattern: str) -> str | None:
    """Returns a regular expression for the URLs of a pattern, behind the slash after the host."""
    path, mark, names = pattern.partition("?")
    found = path_of(path)
    if found is None:
        return None
    if not mark:
        return f"{found[1:]}$"
    each = names.split("&")
    if len(each) == 1:
        return rf"{found[1:]}\?{quoted(names)}(?:=[^&#]*)?$"
    one = "(?:" + "|".join(map(quoted, each)) + ")(?:=[^&#]*)?"
    # So many of these names, in any order.
    return rf"{found[1:]}\?(?:{one}(?:&|$)){{{len(each)}}}$"


def _repeats(urls: pl.Series) -> pl.Series:
    """Returns how often the commonest segment of each path is in it."""
    segments = urls.str.extract(r"://[^/?#]*([^?#]*)").str.split("/")
    rows = pl.DataFrame({"segment": segments}).with_row_index("row").explode("segment")
    counts = rows.filter(pl.col("segment") != "").group_by("row", "segment").agg(n=pl.len())
    most = counts.group_by("row").agg(pl.col("n").max())
    every = pl.DataFrame({"row": range(len(urls))}, schema={"row": pl.UInt32})
    return every.join(most, on="row", how="left", maintain_order="left")["n"].fill_null(0)


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
        # Filters after normalizers, as the jobs apply them: they are learned of what those leave.
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
    # Each turn leaves out one rule at least; alone, a rule may lose what another one gives.
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
