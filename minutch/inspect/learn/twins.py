"""Finds parts of URLs that do not change a page, by URLs that differ in nothing else.

A change of URLs (a parameter less, another host …) is judged by host, and a parameter by the paths
that have it, too:

    verified      pages that were fetched in both forms, and say the same
    several       pages that were fetched in several forms, which the change makes one, and say the
                  same
    unproven      pages that were fetched in one form
    contradicted  pages that say something else in the other form, or are not there in it

Enough is LEAST pages of different content: pages that all say the same prove nothing. None may be
contradicted, and the verified ones have to be a good part of all (PART); more for what puts
something in the place of something else (LARGE_PART): /en/ and /de/ are equal where nobody has
translated yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from minutch.inspect.learn.evidence import FAILED, KnownPages, host_share, parts_of, segment_share
from minutch.inspect.learn.rules import LearnedRule, literal, path_of, quoted
from minutch.terminal import counted

LEAST: Final = 3
PART, LARGE_PART = 0.2, 0.5
_SECOND_BEST: Final = r"(?i)print|\bamp\b|mobile|\bm\b|\bpda\b|\bwap\b|copy|mirror|^www\d"
_TOKEN: Final = "[A-Za-z]*[0-9][0-9A-Za-z]*"
_SHORTEST: Final = 6
"""Characters of a segment that may be a session's."""
_MOST_WORDS: Final = 50
"""Rules for words of a host that are spelled in several cases."""
_KEYS: Final = ["host", "what"]
_COLUMNS: Final = ["host", "scope", "what", "value", "target", "content", "at"]
_GOOD, _LOW, _HIGH = pl.col("content") > 0, pl.col("low"), pl.col("high")
Row = dict[str, Any]


class _Kind(NamedTuple):
    """A kind of change: whose candidates, what is enough, and the rule that it becomes."""

    candidates: str
    counts: str
    """Which pages prove it: `verified`, `several`."""
    values: int
    """How many values have to be among them."""
    part: float
    make: Callable[[str, str, str, str], LearnedRule]
    """Makes the rule of a host, the name of what changes, a pattern of paths, and a value."""
    is_scoped: bool = False


class Twins:
    """The candidates of a crawl, in files of a folder, and what is judged of them."""

    def __init__(self, pages: KnownPages, work: Path) -> None:
        self._work, self._number = work, 0
        self._known = (
            pages.table.lazy()
            .group_by(target="sum")
            .agg(
                known_low=pl.col("content").filter(_GOOD).min(),
                known_high=pl.col("content").filter(_GOOD).max(),
                failed=(pl.col("state") == FAILED).all(),
            )
        )
        for piece in pages.pieces():
            self._add(piece)

    def rules(self) -> Iterator[LearnedRule]:
        """Yields rules in the order in which they are to be applied."""
        yield from self._hosts()
        yield from self._schemes()
        for kind in _KINDS:
            yield from self._of_kind(kind)
        yield from self._cases()
        yield from self._swaps()
        yield from self._of_kind(_WORD)
        less = [*self._of_kind(_SLASH_LESS)]
        yield from less
        done = {rule.host for rule in less}
        yield from (rule for rule in self._of_kind(_SLASH_MORE) if rule.host not in done)
        yield from self._orders()

    # -- candidates --------------------------------------------------------------------------------

    def _add(self, piece: pl.DataFrame) -> None:
        """Writes the candidates of some URLs: what would change, and the sum of what would come."""
        parts = parts_of(piece["url"])
        scope = piece["pattern"].str.replace(r"\?.*$", "").alias("scope")
        rows = parts.urls.with_columns(piece["content"], piece["at"], scope)
        of_row = rows.drop("scheme", "tail")
        sum_, share, segment = pl.col("sum"), pl.col("share"), pl.col("segment")
        items = parts.items.join(of_row, on="row", maintain_order="left")
        items = items.with_columns(target=sum_ - share)
        self._write("parameter", items.with_columns(what="name"))
        self._write("value", items.with_columns(what="item"))

        segments = parts.segments.join(of_row, on="row", maintain_order="left")
        gone = sum_ - share - pl.col("after") + pl.col("pulled")
        segments = segments.with_columns(target=gone, what=segment, value=segment)
        named = segments.filter(segment != "")
        # where a word comes back, as in /a/a/, leaving it out says nothing of URLs with one
        self._write("word", named.filter(~pl.struct("row", "segment").is_duplicated()))
        prior = pl.when(pl.col("place") > 0).then(segment.shift()).fill_null("")
        prior = pl.when(~prior.str.contains("[0-9]")).then(prior).otherwise(pl.lit("{x}"))
        tokens = segments.with_columns(what=prior + "/" + segment.str.replace_all(_TOKEN, "{x}"))
        is_token = segment.str.contains("[0-9]") & (segment.str.len_bytes() >= _SHORTEST)
        self._write("token", tokens.filter(is_token))
        found = named.filter(segment.str.contains(";", literal=True))
        found = found.with_columns(part=segment.str.extract_all(";[^;]+")).explode("part")
        found = found.drop_nulls("part").with_columns(
            what=pl.col("part").str.extract("^;([^=]*)"),
            value=pl.col("part").str.extract("=(.*)$"),
            left=segment.str.split(pl.col("part")).list.join(""),
        )
        self._write(
            "path-parameter", found.with_columns(target=sum_ - share + _share(found, "left"))
        )
        ends = segments.filter("is_last")
        self._write("slash-less", ends.filter((segment == "") & (pl.col("place") > 0)))
        open_ = ends.filter((segment != "") & ~segment.str.contains(".", literal=True))
        open_ = open_.with_columns(pl.col("place") + 1, nothing=pl.lit(""), what=pl.lit(""))
        self._write("slash-more", open_.with_columns(target=sum_ + _share(open_, "nothing")))

        forms = segments.with_columns(star=pl.lit("*"), small=segment.str.to_lowercase())
        segments = segments.with_columns(_share(forms, "star"), _share(forms, "small"))
        self._write("swap", segments.filter(_GOOD), wild=sum_ - share + pl.col("star"))
        small = segments.group_by("row").agg(change=(pl.col("small") - share).sum())
        orders = items.group_by("row").agg(
            order=(share * (2 * pl.col("place").cast(pl.UInt64) + 1)).sum(), names=pl.col("name")
        )
        rows = rows.join(small, on="row", how="left").join(orders, on="row", how="left")
        self._write("url", rows, small=sum_ + pl.col("change").fill_null(0))

    def _write(self, kind: str, frame: pl.DataFrame, **more: pl.Expr) -> None:
        if len(frame):
            frame = frame.with_columns(**more) if more else frame.select(_COLUMNS)
            frame.write_parquet(self._work / f"{kind}-{self._number:05}.parquet")
            self._number += 1

    def _read(self, kind: str) -> pl.LazyFrame:
        files = sorted(self._work.glob(f"{kind}-[0-9]*.parquet"))
        return pl.scan_parquet(files) if files else pl.LazyFrame(schema=_SCHEMA)

    # -- judging -----------------------------------------------------------------------------------

    def _judge(self, candidates: pl.LazyFrame, keys: list[str]) -> pl.DataFrame:
        """Returns for each of the keys the counts of pages, and of values in those that agree."""
        groups = (
            candidates.filter(_GOOD)
            .group_by([*keys, "target"])
            .agg(
                low=pl.col("content").min(),
                high=pl.col("content").max(),
                forms=pl.col("value").n_unique(),
                value=pl.col("value").unique(),
            )
        )
        groups = groups.join(self._known, on="target", how="left")
        bad = (_LOW != _HIGH) | (
            pl.col("failed") | (pl.col("known_low") != _LOW) | (pl.col("known_high") != _LOW)
        ).fill_null(False)
        is_known = pl.col("known_low").is_not_null()
        groups = groups.with_columns(
            bad=bad, verified=~bad & is_known, several=~bad & (pl.col("forms") > 1)
        )
        agree = pl.col("verified") | pl.col("several")
        found = groups.group_by(keys).agg(
            bad=pl.col("bad").sum(),
            verified=_LOW.filter("verified").n_unique(),
            several=_LOW.filter("several").n_unique(),
            unproven=_LOW.filter(~agree & ~pl.col("bad")).n_unique(),
            values=pl.col("value").filter(agree).explode().n_unique(),
        )
        return found.collect(engine="streaming")

    def _of_kind(self, kind: _Kind) -> Iterator[LearnedRule]:
        rows = self._read(kind.candidates)
        every = self._judge(rows, _KEYS)
        wide = _enough(every, kind).with_columns(scope=pl.lit(None, pl.String))
        if kind.is_scoped:
            # What is true of one part of a site need not be so of others; where each page is a
            # part of its own, half of them say enough.
            scoped = self._judge(rows, [*_KEYS, "scope"])
            narrow = _enough(scoped, kind)
            is_wide = (pl.col("enough") > 1) | (pl.col("of") == 1)
            is_wide |= pl.col("some") >= pl.max_horizontal(LEAST, LARGE_PART * pl.col("of"))
            found = scoped.join(narrow, on=[*_KEYS, "scope"], how="left")
            in_ = found.group_by(_KEYS).agg(
                of=pl.len(),
                some=(pl.col(kind.counts) > 0).sum(),
                enough=pl.col("bad_right").count(),
            )
            in_ = in_.filter(is_wide)
            wide = wide.join(in_, on=_KEYS, how="semi")
            narrow = narrow.join(wide, on=_KEYS, how="anti")
            wide = pl.concat([wide, narrow.select(wide.columns)])
        for one in wide.sort(*_KEYS, "scope").iter_rows(named=True):
            scope = None if one["scope"] is None else path_of(one["scope"])
            if one["scope"] is not None and scope is None:
                continue
            mine = rows.filter(pl.col("host") == one["host"], pl.col("what") == one["what"], _GOOD)
            if one["scope"] is not None:
                mine = mine.filter(pl.col("scope") == one["scope"])
            values = (
                mine.group_by("value")
                .agg(pl.col("content").n_unique())
                .sort("content", "value", descending=[True, False])
            )
            value = values.head(1).collect()["value"].item()
            yield _proved(kind.make(one["host"], one["what"], scope or "", value or ""), one)

    # -- what takes the place of something else ----------------------------------------------------

    def _pairs(self, rows: pl.LazyFrame, by: str, names: str) -> pl.DataFrame:
        """Returns `host`, `a` and `b`: names that equal pages have in the same place, LEAST times;
        b is the better one.
        """
        counts = rows.group_by("host", names).agg(pl.len()).rename({names: "b", "len": "count"})
        first = [pl.col("b").str.contains(_SECOND_BEST), -pl.col("count").cast(pl.Int64), "b"]
        groups = rows.select("host", by, "content", b=names).unique()
        groups = groups.filter(pl.len().over(by, "content") > 1).join(counts, on=["host", "b"])
        groups = groups.with_columns(best=pl.col("b").sort_by(first).first().over(by, "content"))
        groups = groups.filter(pl.col("b") != pl.col("best"))
        found = groups.group_by("host", a="b", b="best").agg(pl.col("content").n_unique())
        found = found.filter(pl.col("content") >= LEAST).drop("content")
        return found.collect(engine="streaming").sort("host", "a", "b")

    def _swaps(self) -> Iterator[LearnedRule]:
        rows = self._read("swap")
        pairs = self._pairs(rows, "wild", "segment")
        table = rows.join(
            pairs.lazy(), left_on=["host", "segment"], right_on=["host", "a"]
        ).collect()
        table = table.with_columns(
            target=pl.col("sum") - pl.col("share") + _share(table, "b"),
            what=pl.col("segment") + "/" + pl.col("b"),
            value=pl.col("segment"),
        )
        judged = _enough(self._judge(table.lazy(), _KEYS), _SWAP)
        for one in judged.sort(_KEYS).iter_rows(named=True):
            a, _, b = one["what"].partition("/")
            end = "([?#].*)?$" if not b else "([/?#].*)?$"
            pattern = f"^({_host(one['host'])}(?:/[^/?#]*)*?/){quoted(a)}{end}"
            says = f"{a} is {b}" if b else f"{a} is the page of its folder"
            kind = "index-file" if not b else "segment"
            yield _proved(LearnedRule(kind, one["host"], says, pattern, f"$1{literal(b)}$2"), one)

    def _hosts(self) -> Iterator[LearnedRule]:
        rows = self._read("url")
        pairs = self._pairs(
            rows.filter(_GOOD).with_columns(name="host", host=pl.lit("")), "tail", "name"
        )
        table = rows.join(pairs.lazy().drop("host"), left_on="host", right_on="a").collect()
        target = pl.Series("target", host_share(table["b"]), pl.UInt64)
        table = table.with_columns(
            target=pl.col("tail") + target, what=pl.col("host") + "/" + pl.col("b"), value="host"
        )
        judged = _enough(self._judge(table.lazy(), _KEYS), _SWAP)
        for one in judged.sort("verified", "what", descending=[True, False]).iter_rows(named=True):
            host, _, to = one["what"].partition("/")
            counts = rows.filter(pl.col("host").is_in([host, to])).group_by("host", "scheme")
            schemes = counts.agg(pl.len()).sort("len", "scheme").collect()
            scheme = schemes.filter(pl.col("host") == to)["scheme"][-1]
            rule = LearnedRule(
                "mirror",
                host,
                f"{host} has the pages of {to}",
                f"^{_host(host)}(/|[?#]|$)",
                f"{scheme}://{literal(to)}$1",
                to_host=to,
            )
            if ":" not in host + to and schemes["scheme"].n_unique() == 1:
                rule.short = ("host-urlnormalizer.txt", f"{host} {to}")
            yield _proved(rule, one)

    # -- twins of whole URLs -----------------------------------------------------------------------

    def _twins(self, by: str, of: str) -> pl.DataFrame:
        """Returns for each host how many pages were fetched with the same `by` and another `of`."""
        rows = self._read("url").filter(_GOOD)
        groups = rows.group_by("host", by).agg(
            low=pl.col("content").min(), high=pl.col("content").max(), forms=pl.col(of).n_unique()
        )
        several = pl.col("forms") > 1
        bad = several & (_LOW != _HIGH)
        found = groups.group_by("host").agg(
            bad=bad.sum(),
            verified=_LOW.filter(several & ~bad).n_unique(),
            unproven=_LOW.filter(~several).n_unique(),
        )
        found = found.filter(pl.col("bad") == 0, pl.col("verified") >= LEAST)
        return found.collect(engine="streaming").sort("host")

    def _schemes(self) -> Iterator[LearnedRule]:
        for one in self._twins("sum", "scheme").iter_rows(named=True):
            host = one["host"]
            rule = LearnedRule(
                "scheme",
                host,
                "http and https have the same pages",
                f"^http://{quoted(host)}(/|[?#]|$)",
                f"https://{literal(host)}$1",
            )
            if ":" not in host:
                rule.short = ("protocols.txt", f"{host} https")
            yield _proved(rule, one)

    def _cases(self) -> Iterator[LearnedRule]:
        for one in self._twins("small", "sum").iter_rows(named=True):
            words = (
                self._read("swap")
                .filter(pl.col("host") == one["host"])
                .group_by("segment")
                .agg(pl.len())
            )
            words = words.with_columns(low=pl.col("segment").str.to_lowercase()).sort(
                "len", "segment"
            )
            words = words.group_by("low").agg(
                pl.col("segment").last(), pl.col("len").sum(), forms=pl.len()
            )
            words = words.filter(pl.col("forms") > 1).sort("len", "low", descending=[True, False])
            for word in words.head(_MOST_WORDS).collect()["segment"]:
                pattern = f"^({_host(one['host'])}(?:/[^/?#]*)*?/)(?i:{quoted(word)})([/?#].*)?$"
                says = f"{word} is the same word in capitals and small letters"
                yield _proved(
                    LearnedRule("case", one["host"], says, pattern, f"$1{literal(word)}$2"), one
                )

    def _orders(self) -> Iterator[LearnedRule]:
        for one in self._twins("sum", "order").iter_rows(named=True):
            rows = self._read("url").filter(pl.col("host") == one["host"], _GOOD)
            several = rows.filter(pl.col("order").n_unique().over("sum") > 1)
            names = several.select(pl.col("names").explode().unique().sort()).collect()["names"]
            for name in reversed(names[:-1]):
                pattern = (
                    rf"^({_host(one['host'])}[^?#]*\?)([^#]*?)&({quoted(name)}(?:=[^&#]*)?)(&|#|$)"
                )
                says = f"the order of parameters does not change a page: {name} comes first"
                yield _proved(LearnedRule("order", one["host"], says, pattern, "$1$3&$2$4"), one)


def _share(frame: pl.DataFrame, name: str) -> pl.Series:
    """Returns what the texts of a column add to sums at the places of their rows."""
    return pl.Series(name, segment_share(frame[name], frame["place"].to_numpy()), pl.UInt64)


def _enough(judged: pl.DataFrame, kind: _Kind) -> pl.DataFrame:
    proved = pl.col(kind.counts)
    part = proved >= kind.part * (proved + pl.col("unproven"))
    return judged.filter(pl.col("bad") == 0, proved >= LEAST, pl.col("values") >= kind.values, part)


def _proved(rule: LearnedRule, one: Row) -> LearnedRule:
    """Returns a rule with what proves it, in words."""
    agree = max(one["verified"], one.get("several", 0))
    rule.evidence = f"{counted(agree, 'pages')} were fetched in both forms and say the same"
    if one["unproven"]:
        rule.evidence += f", {one['unproven']:,} in one"
    return rule


def _host(host: str) -> str:
    return f"https?://{quoted(host)}"


def _scoped(host: str, scope: str) -> str:
    """Returns a pattern for the URLs of a host up to the query, or those of some paths."""
    return _host(host) + (scope or "[^?#]*")


def _about(name: str, scope: str) -> str:
    return f"{name} does not change a page" + (f" of {scope}" if scope else "")


def _parameter(
    host: str, name: str, scope: str, _: str, value: str = "(?:=[^&#]*)?"
) -> LearnedRule:
    one = quoted(name) + value
    pattern = rf"^({_scoped(host, scope)})(?:\?{one}(#|$)|(\?){one}&|(\?[^#]*?)&{one}(&|#|$))"
    return LearnedRule("parameter", host, _about(name, scope), pattern, "$1$2$3$4$5")


def _fixed_parameter(host: str, name: str, scope: str, value: str) -> LearnedRule:
    pattern = rf"^({_scoped(host, scope)}\?(?:[^#]*&)?{quoted(name)}=)[^&#]*"
    says = f"{_about(name, scope)}; no page is known without it, so all get one value"
    return LearnedRule("parameter", host, says, pattern, f"$1{literal(value)}")


def _value(host: str, item: str, scope: str, _: str) -> LearnedRule:
    return _parameter(host, item, scope, "", "")


def _path_parameter(host: str, name: str, scope: str, _: str) -> LearnedRule:
    pattern = rf"^({_host(host)}/[^?#]*?);{quoted(name)}(?:=[^/?#;]*)?([/?#;].*)?$"
    return LearnedRule("path-parameter", host, _about(f";{name}", ""), pattern, "$1$2")


def _fixed_path_parameter(host: str, name: str, scope: str, value: str) -> LearnedRule:
    says = f"{_about(f';{name}', '')}; no page is known without it, so all get one value"
    pattern = rf"^({_host(host)}/[^?#]*?;{quoted(name)}=)[^/?#;]*"
    return LearnedRule("path-parameter", host, says, pattern, f"$1{literal(value)}")


def _token(host: str, shape: str, scope: str, value: str) -> LearnedRule:
    says = f"segments like {value} do not change a page"
    return LearnedRule("path-token", host, says, _of_token(host, shape), "$1$2")


def _fixed_token(host: str, shape: str, scope: str, value: str) -> LearnedRule:
    says = (
        f"segments like {value} do not change a page; none is known without, so all get one value"
    )
    return LearnedRule("path-token", host, says, _of_token(host, shape), f"$1/{literal(value)}$2")


def _of_token(host: str, shape: str) -> str:
    prior, _, token = shape.partition("/")
    before = f"(?:/[^/?#]*)*?/{_TOKEN.join(map(quoted, prior.split('{x}')))}" if prior else ""
    token = _TOKEN.join(map(quoted, token.split("{x}")))
    return rf"^({_host(host)}{before})/(?=[^/?#]{{{_SHORTEST}}}){token}([/?#].*)?$"


def _word(host: str, word: str, scope: str, _: str) -> LearnedRule:
    pattern = rf"^({_host(host)}(?:/[^/?#]*)*?)/{quoted(word)}([/?#].*)?$"
    return LearnedRule("segment", host, _about(f"/{word}", ""), pattern, "$1$2")


def _slash_less(host: str, what: str, scope: str, _: str) -> LearnedRule:
    pattern = rf"^({_host(host)}/[^?#]*[^/?#])/+([?#].*)?$"
    return LearnedRule("slash", host, "a slash at the end does not change a page", pattern, "$1$2")


def _slash_more(host: str, what: str, scope: str, _: str) -> LearnedRule:
    pattern = rf"^({_host(host)}/(?:[^?#]*/)?[^/?#.]+)([?#].*)?$"
    return LearnedRule("slash", host, "a slash at the end does not change a page", pattern, "$1/$2")


_KINDS: Final = (
    _Kind("path-parameter", "verified", 3, PART, _path_parameter),
    _Kind("path-parameter", "several", 3, PART, _fixed_path_parameter),
    _Kind("parameter", "verified", 3, PART, _parameter, is_scoped=True),
    _Kind("parameter", "several", 3, PART, _fixed_parameter, is_scoped=True),
    _Kind("value", "verified", 1, PART, _value),
    _Kind("token", "verified", 3, PART, _token),
    _Kind("token", "several", 3, PART, _fixed_token),
)
_WORD: Final = _Kind("word", "verified", 1, LARGE_PART, _word)
_SLASH_LESS: Final = _Kind("slash-less", "verified", 1, LARGE_PART, _slash_less)
_SLASH_MORE: Final = _Kind("slash-more", "verified", 1, LARGE_PART, _slash_more)
_SWAP: Final = _Kind("", "verified", 1, LARGE_PART, _word)
_SCHEMA: Final = pl.Schema(
    dict.fromkeys(("host", "scope", "what", "value", "scheme", "segment"), pl.String)
    | dict.fromkeys(("target", "content", "sum", "tail", "small", "order", "wild"), pl.UInt64)
    | {"at": pl.UInt32, "place": pl.UInt32, "share": pl.UInt64, "names": pl.List(pl.String)}
)
"""What an empty table of candidates has."""
