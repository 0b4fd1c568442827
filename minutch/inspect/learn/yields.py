"""Finds what brings nothing new: patterns of URLs by what they have yielded, loops, and pages that
say that they are not there, whatever their status.

A page is new if no other URL that stays has its content. Rules of filters are made for what has
brought nothing new at all; one URL of a pattern stays where all of its pages are one page. What
brings little is a matter of budgets, which decide how much is asked for, not whether.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from minutch.inspect.learn.evidence import PROBE, KnownPages
from minutch.inspect.learn.rules import LearnedRule, path_of, quoted

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
    return rf"{found[1:]}\?(?:{one}(?:&|$)){{{len(each)}}}$"


def _repeats(urls: pl.Series) -> pl.Series:
    """Returns how often the commonest segment of each path is in it."""
    segments = urls.str.extract(r"://[^/?#]*([^?#]*)").str.split("/")
    rows = pl.DataFrame({"segment": segments}).with_row_index("row").explode("segment")
    counts = rows.filter(pl.col("segment") != "").group_by("row", "segment").agg(n=pl.len())
    most = counts.group_by("row").agg(pl.col("n").max())
    every = pl.DataFrame({"row": range(len(urls))}, schema={"row": pl.UInt32})
    return every.join(most, on="row", how="left", maintain_order="left")["n"].fill_null(0)
