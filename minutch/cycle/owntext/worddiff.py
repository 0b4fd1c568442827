"""Decides which lines and words of a page differ between two visits. Pure.

Lines are read with what they are compared by (`read`); of those before and after each turn from a
visit to the next, it is told which the other side lacks (`sides`). Where it is shown, what was
removed and added is paired by the words that both have, and compared word by word (difflib,
Ratcliff and Obershelp).

What would take long is bounded: a line is looked for among those _NEAR it, long lines are compared
whole but for what they begin and end with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

import polars as pl

SAME: Final = " "
REMOVED: Final = "-"
ADDED: Final = "+"
CONTEXT: Final = 6
"""Words that are shown on either side of a change."""
_NEAR: Final = 24
_ALIKE: Final = 0.5
_MOST: Final = 1500
"""Words of a line that are compared one by one."""
_PAIRS: Final = 20_000
"""Pairs of equal words among them."""
_LIST: Final = re.compile(r"\s*[:,;|/·•]\s*")
SLOTS: Final = 8
"""Lines of a place that are counted from above, and from below."""
EVER: Final = 2**32 - 1
"""The segment of counts of pages, each of them once."""
_DATES: Final = (
    r"(?i)^\W*(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|[ap]\.?m\.?|utc|gmt)\W*$"
)
_AGO: Final = (
    r"(?i)\b(?:just now|moments? ago|yesterday|today|(?:\d+|an?|one|two|a few|few)"
    r" (?:sec|second|min|minute|hour|hr|day|week|month|year)s? ago)\b"
)
_MONEY: Final = r"\p{Sc}|\b(?:EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|CAD|AUD|Euro?s?)\b"
"""An amount is no counter, though that of all goods changes at once."""
_INVISIBLE: Final = r"[\x{ad}\x{200b}-\x{200f}\x{2060}\x{feff}]"
Piece = tuple[str, str]
"""SAME, REMOVED or ADDED, and words."""


def read(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns lines that are compared, with what they are compared by: `row` in the visit, `hash`,
    `mask` (but for numbers) and if it `has_number`, `unit` (words after numbers), `still` (but for
    relative times); `after` and `ahead`, the masks of the lines around it.

    `lines` are those of whole pages, in order: `site`, `page`, `visit` (from 0), its `segment`,
    `place`, `chance`, `own`, `line`.
    """
    # Soft hyphens and the like come and go without anybody seeing it.
    plain = pl.col("line").str.replace_all(_INVISIBLE, "").str.replace_all(r"[\s\p{Z}]+", " ")
    lines = lines.with_columns(line=plain.str.strip_chars()).filter(pl.col("line") != "")
    # Each distinct line once: pages of a site share most of theirs.
    words = lines.select(pl.col("line").unique()).with_columns(words=pl.col("line").str.split(" "))
    is_number = pl.element().str.contains(r"\d") | pl.element().str.contains(_DATES)
    masked = pl.col("words").list.eval(pl.when(is_number).then(pl.lit("#")).otherwise(pl.element()))
    masked = masked.list.join(" ").str.replace_all(r"#(?: #)+", "#")
    words = words.select(
        "line",
        pl.col("line").hash().alias("hash"),
        masked.hash().alias("mask"),
        masked.str.extract_all(r"#(?: \S+)?").list.join(" ").hash().alias("unit"),
        pl.col("line").str.replace_all(_AGO, "#").hash().alias("still"),
        has_number=masked.str.contains("#", literal=True),
        has_money=pl.col("line").str.contains(_MONEY),
    )
    return lines.join(words, on="line", how="left", maintain_order="left").with_columns(
        row=pl.int_range(pl.len()).over("page", "visit"),
        nth=pl.int_range(pl.len(), dtype=pl.UInt32).over("page", "visit", "place"),
        left=pl.int_range(pl.len(), dtype=pl.UInt32).reverse().over("page", "visit", "place"),
        after=pl.col("mask").shift().over("page", "visit").fill_null(0),
        ahead=pl.col("mask").shift(-1).over("page", "visit").fill_null(0),
    )


def sides(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of visits (`read`), those before and after each turn from a visit to the
    next: with `turn`, the later visit, whose `segment` they have; `side`, 0 before and 1 after it;
    `gone`, if the other side lacks it; `number`, if that has it but for numbers, `ago`, but for
    relative times, `moved`, in another box.
    """
    visits = lines.select("page", turn="visit", of="segment").unique()
    old = lines.select(pl.exclude("visit"), turn=pl.col("visit") + 1, side=pl.lit(0, pl.Int8))
    new = lines.filter(pl.col("visit") > 0)
    new = new.select(pl.exclude("visit"), turn="visit", side=pl.lit(1, pl.Int8))
    found = pl.concat([old.select(new.columns), new]).drop("segment")
    found = found.join(visits, on=["page", "turn"], maintain_order="left").rename({"of": "segment"})
    found = without_other(found, ["place", "hash"], "gone", pl.lit(value=True))
    # Then, of what is gone: from all of the page, all but its numbers, but for a relative time.
    found = without_other(found, ["hash"], "lost", pl.col("gone"))
    found = without_other(found, ["mask"], "word", pl.col("gone") & pl.col("has_number"))
    has_ago = pl.col("gone") & (pl.col("still") != pl.col("hash"))
    found = without_other(found, ["still"], "lasting", has_ago)
    found = found.with_columns(
        number=pl.col("gone") & pl.col("has_number") & ~pl.col("word"),
        ago=has_ago & ~pl.col("lasting"),
        moved=pl.col("gone") & ~pl.col("lost"),
    ).drop("lost", "word", "lasting")
    return _with_swaps(found)


def _with_swaps(found: pl.DataFrame) -> pl.DataFrame:
    """Tells of lines whose wording is gone, if another one has their place, counted from above or
    below, as `first` and `last`: by which words they differ, as a hash.
    """
    words = found.with_row_index("at").filter(pl.col("gone") & ~pl.col("number"))
    words = words.with_columns(words=pl.col("line").str.split(" ").list.unique())
    for name, nth in (("first", "nth"), ("last", "left")):
        slot = ["page", "turn", "place", nth]
        mine = words.filter(pl.col(nth) < SLOTS).select("at", "side", "words", *slot)
        pairs = mine.filter(side=0).join(mine.filter(side=1), on=slot, suffix="_of")
        less, more = (
            pl.col(one).list.set_difference(other).list.sort().list.join(" ")
            for one, other in (("words", "words_of"), ("words_of", "words"))
        )
        edit = pl.concat_str(less, more, separator="\n").hash() % EVER
        pairs = pairs.select("at", "at_of", edit.alias(name))
        others = pairs.select(pl.col("at_of").alias("at"), name)
        both = pl.concat([pairs.select("at", name), others])
        rows = found.select(at=pl.int_range(pl.len(), dtype=pl.UInt32))
        rows = rows.join(both, on="at", how="left", maintain_order="left")
        found = found.with_columns(rows[name].cast(pl.UInt32))
    return found


def without_other(
    found: pl.DataFrame, by: Sequence[str], name: str, where: pl.Expr
) -> pl.DataFrame:
    """Tells of the lines `where` which the other side does not have, as often, by some columns."""
    key = ["page", "turn", *by]
    mine = found.with_row_index("at").filter(where)
    # As often: the second of two equal lines needs a second one on the other side.
    mine = mine.with_columns(nth=pl.int_range(pl.len()).over(*key, "side"))
    both = mine.group_by(*key, "nth").agg(alone=pl.len() == 1)
    alone = mine.join(both, on=[*key, "nth"]).select("at", pl.col("alone").alias(name))
    found = found.with_row_index("at").join(alone, on="at", how="left", maintain_order="left")
    return found.drop("at").with_columns(pl.col(name).fill_null(value=False))


class ChangedBlock(NamedTuple):
    """A block as it was and is, one of them "" where there is none; and its pieces."""

    removed: str
    added: str
    pieces: list[Piece]

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of words that were added and removed."""
        added, removed = (
            sum(len(words.split()) for op, words in self.pieces if op == kind)
            for kind in (ADDED, REMOVED)
        )
        return added, removed


def says_the_same(removed: Sequence[str], added: Sequence[str]) -> bool:
    """Tells whether lines have the same words in the same order, or one list the same items."""
    if " ".join(removed).split() == " ".join(added).split():
        return True
    return len(removed) == len(added) == 1 and _is_shuffled(removed[0], added[0])


def _is_shuffled(removed: str, added: str) -> bool:
    """Tells whether lines have the same items, three at least, between commas and the like."""
    items = _LIST.split(removed.removesuffix("."))
    return len(items) > 2 and sorted(items) == sorted(_LIST.split(added.removesuffix(".")))


def blocks(removed: Sequence[str], added: Sequence[str]) -> Iterator[ChangedBlock]:
    """Yields what has become of lines: what is gone, then what is new or another in its place."""
    found = []
    left = [(line, Counter(line.split())) for line in removed]
    for line in added:
        best, least = -1, _ALIKE
        words = Counter(line.split())
        for at, (_, others) in enumerate(left[:_NEAR]):
            alike = 2 * (words & others).total() / (words.total() + others.total())
            if alike > least or (alike == least and best < 0):
                best, least = at, alike
        if best < 0:
            found.append(ChangedBlock("", line, [(ADDED, line)]))
        else:
            before, _ = left.pop(best)
            if before != line and not _is_shuffled(before, line):
                pieces = list(_compared(before.split(), line.split()))
                found.append(ChangedBlock(before, line, pieces))
    for line, _ in left:
        yield ChangedBlock(line, "", [(REMOVED, line)])
    yield from found


def _compared(old: list[str], new: list[str]) -> Iterator[Piece]:
    """Yields the pieces of a line, of which words that stay are cut."""
    first = 0
    while first < min(len(old), len(new)) and old[first] == new[first]:
        first += 1
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    yield from _same(old[:first], is_first=True)
    old, tail = old[first : len(old) - last], old[len(old) - last :]
    new = new[first : len(new) - last]
    counts = Counter(old)
    pairs = sum(counts[word] for word in new)
    # SequenceMatcher is quadratic in pairs of equal words.
    if max(len(old), len(new)) > _MOST or pairs > _PAIRS:
        codes = [("replace", 0, len(old), 0, len(new))]
    else:
        # autojunk would leave frequent words out of lines with 200 words or more.
        codes = list(SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
    for op, a, b, c, d in codes:
        if op == "equal":
            yield from _same(old[a:b])
        if op in ("delete", "replace") and b > a:
            yield REMOVED, " ".join(old[a:b])
        if op in ("insert", "replace") and d > c:
            yield ADDED, " ".join(new[c:d])
    yield from _same(tail, is_last=True)


def _same(words: list[str], *, is_first: bool = False, is_last: bool = False) -> Iterator[Piece]:
    """Yields words that stay, those near a change; `…` stands for others."""
    if not words:
        return
    ends = int(not is_first) + int(not is_last)
    if len(words) > CONTEXT * ends + 1:
        head = [] if is_first else words[:CONTEXT]
        tail = [] if is_last else words[-CONTEXT:]
        words = [*head, "…", *tail]
    yield SAME, " ".join(words)


def as_lines(pieces: Sequence[Piece]) -> list[str]:
    """Returns pieces as one line of what was, `- …`, and one of what is, `+ …`."""
    found = []
    for kind in (REMOVED, ADDED):
        if any(op == kind for op, _ in pieces):
            words = " ".join(words for op, words in pieces if op in (SAME, kind))
            found.append(f"{kind} {words}")
    return found
