"""Decides which blocks of pages have changed from visit to visit, and which of these changes say
nothing, since such a block changes at each visit. Pure.

Blocks are lines of a page's text, compared as sets: one that moves, or is spaced otherwise, has not
changed. A change is muted, with its reason, if

    NOT_OWN     the line is the site's or no main text, by its page (`own`)
    FRAME       half of the site's pages (three at least) got or lost the same line at once
    RELATIVE    "3 hours ago" is "5 hours ago" now, and nothing else differs
    HABIT       what stands there does not stay: see below
    ELSEWHERE   the line is in other boxes of the page now

A change of numbers leaves the line but for words with digits and names of months and days (`mask`);
any other is one of wording. Each kind is judged by its own history, so a wording that changes in a
line whose number always does is told. What a line stands for is asked in several ways:

    place       what is in these boxes of the site
    mask        at this place, the same words around numbers ("Viewed # times")
    after       at this place, what follows the same line ("Related")
    line        the line itself, as one of a few that take turns

Of those that stood there, at one visit, the next visit tells which stayed. It is a habit of a site
if MOVING of them went, on three of its pages, and at most of its visits: what changed once for all,
as prices in a sale, is none. It is a habit of a page if they went at nearly all of its visits, and
chance would do that in one of a hundred pages at most, if the rest of the site is a measure.

Two visits say nothing of habits: then only numbers are muted, if they changed on nearly all pages.

Which words a block has lost and got is decided here, too: lines that were removed and added are
paired by the words that they share, and compared word by word (difflib, Ratcliff and Obershelp).
What would take long is bounded: a line is looked for among those _NEAR it, long lines are compared
whole but for what they begin and end with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from math import comb
from typing import Final, NamedTuple

import polars as pl

NOT_OWN: Final = "not own text"
FRAME: Final = "frame of the site"
RELATIVE: Final = "relative time"
HABIT: Final = "changes at each visit"
ELSEWHERE: Final = "elsewhere on the page"
LEAST_CHANCE: Final = 10
"""63rds of probability: a line that no more is likely to be main text has to be own by its site."""
MOVING: Final = 0.4
_PAGES: Final = 3
_FEW_VISITS: Final = (5, 0.9)
"""Pages, and which part of their numbers, where there were two visits only."""
_HALF: Final = 0.5
_RARE: Final = 0.01
_OFTEN: Final = 0.75
_WEIGHT: Final = 10
_USUAL: Final = {"words": 0.12, "numbers": 0.05}
"""What is taken for usual at a place before anything is known, with the weight of _WEIGHT lines."""
_DATES: Final = (
    r"(?i)^\W*(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|[ap]\.?m\.?|utc|gmt)\W*$"
)
_AGO: Final = (
    r"(?i)\b(?:just now|moments? ago|yesterday|today|(?:\d+|an?|one|two|a few|few)"
    r" (?:sec|second|min|minute|hour|hr|day|week|month|year)s? ago)\b"
)
_INVISIBLE: Final = r"[\x{ad}\x{200b}-\x{200f}\x{2060}\x{feff}]"

COUNTS: Final = pl.Schema(
    {
        "site": pl.UInt64(),
        "kind": pl.String(),
        "key": pl.UInt64(),
        "place": pl.UInt32(),
        "segment": pl.UInt32(),
        "lines": pl.Int64(),
        "words": pl.Int64(),
        "numbers": pl.Int64(),
        "pages": pl.Int64(),
    }
)
"""How many lines of a site's pages there were at visits, and of how many the wording or numbers
were others at the next, that of `segment`. `place` is that of "line"; 0 of the others."""
_EVER: Final = 2**32 - 1
"""The segment of counts of pages, each of them once."""


def read(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns lines that are compared, with what they are compared by: `row` in the visit, `hash`,
    `mask` and if it `has_number`, `still` (but for relative times), `after`.

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
        pl.col("line").str.replace_all(_AGO, "#").hash().alias("still"),
        has_number=masked.str.contains("#", literal=True),
    )
    return lines.join(words, on="line", how="left", maintain_order="left").with_columns(
        row=pl.int_range(pl.len()).over("page", "visit"),
        after=pl.col("hash").shift().over("page", "visit").fill_null(0),
    )


def sides(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of visits (`read`), those before and after each turn from a visit to the
    next: with `turn`, the later visit, whose `segment` they have; `side`, 0 before and 1 after it;
    `gone`, if the other side lacks it; `number`, if that has it but for numbers, `ago`, but for
    relative times.
    """
    visits = lines.select("page", turn="visit", of="segment").unique()
    old = lines.select(pl.exclude("visit"), turn=pl.col("visit") + 1, side=pl.lit(0, pl.Int8))
    new = lines.filter(pl.col("visit") > 0)
    new = new.select(pl.exclude("visit"), turn="visit", side=pl.lit(1, pl.Int8))
    found = pl.concat([old.select(new.columns), new]).drop("segment")
    found = found.join(visits, on=["page", "turn"], maintain_order="left").rename({"of": "segment"})
    # Then, of what is gone: all but its numbers, all but a relative time.
    found = _without_other(found, ["place", "hash"], "gone", pl.lit(value=True))
    found = _without_other(found, ["mask"], "word", pl.col("gone") & pl.col("has_number"))
    has_ago = pl.col("gone") & (pl.col("still") != pl.col("hash"))
    found = _without_other(found, ["still"], "lasting", has_ago)
    return found.with_columns(
        number=pl.col("gone") & pl.col("has_number") & ~pl.col("word"),
        ago=has_ago & ~pl.col("lasting"),
    ).drop("word", "lasting")


def _without_other(
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


def _kinds(found: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Returns what lines stand for, by kind, as `key`."""
    place = pl.col("place")
    keys = {
        "place": place.hash(),
        "mask": pl.struct(place, "mask").hash(),
        "after": pl.struct(place, "after").hash(),
        "line": pl.col("hash"),
    }
    kinds = {kind: found.with_columns(key=key) for kind, key in keys.items()}
    kinds["mask"] = kinds["mask"].filter("has_number")
    return kinds


def counted(found: pl.DataFrame) -> pl.DataFrame:
    """Returns what the `sides` of some pages come to, with COUNTS."""
    numbers, words = pl.col("number"), pl.col("gone") & ~pl.col("number")
    tables = []
    for kind, rows in _kinds(found.filter(pl.col("side") == 0)).items():
        at = pl.col("place") if kind == "line" else pl.lit(0).alias("place")
        counts = rows.group_by("site", "key", at, "segment").agg(
            lines=pl.len(), words=words.sum(), numbers=numbers.sum()
        )
        tables.append(counts.with_columns(kind=pl.lit(kind)))
        pages = rows.group_by("site", "key", at).agg(pages=pl.col("page").n_unique())
        tables.append(pages.with_columns(kind=pl.lit(kind), segment=pl.lit(_EVER)))
    shared = found.filter("gone").group_by("site", "side", "place", "hash", "segment")
    counts = shared.agg(pages=pl.col("page").n_unique()).with_columns(
        key=pl.struct("side", "place", "hash").hash(), kind=pl.lit("shared")
    )
    pages = found.group_by("site", "segment").agg(pages=pl.col("page").n_unique())
    every = found.group_by("site").agg(pages=pl.col("page").n_unique())
    every = every.with_columns(segment=pl.lit(_EVER))
    for table in (pages, every):
        tables.append(table.with_columns(kind=pl.lit("pages"), key=pl.lit(0)))
    tables.append(counts)
    zeros = ("place", "lines", "words", "numbers", "pages")
    return pl.concat(
        table.with_columns(
            pl.lit(0).alias(name) for name in zeros if name not in table.columns
        ).select(pl.col(name).cast(kind) for name, kind in COUNTS.items())
        for table in tables
    )


def added(counts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Adds up counts of different pages."""
    keys = ("site", "kind", "key", "place", "segment")
    return pl.concat([pl.DataFrame(schema=COUNTS), *counts]).group_by(keys).sum()


HABITS: Final = pl.Schema(
    {
        "site": pl.UInt64(),
        "kind": pl.String(),
        "key": pl.UInt64(),
        "lines": pl.Int64(),
        "words": pl.Int64(),
        "numbers": pl.Int64(),
        "pages": pl.Int64(),
        "moving_words": pl.Boolean(),
        "moving_numbers": pl.Boolean(),
    }
)


def habits(counts: pl.DataFrame) -> pl.DataFrame:
    """Returns what sites' habits are, by all their counts, with HABITS: what is moving, and of all
    places how often lines changed there.
    """
    kind = pl.col("kind")
    found = _moving(counts.filter(~kind.is_in(["line", "shared", "pages"])))
    # Lines at places that move anyway tell nothing more.
    moving = found.filter("moving_words", kind == "place").select("site", "key")
    lines = counts.filter(kind == "line").with_columns(at=pl.col("place").hash())
    lines = lines.join(moving, left_on=["site", "at"], right_on=["site", "key"], how="anti")
    # a few pages may have a line there that takes turns elsewhere
    rest, whole = _moving(lines), _moving(counts.filter(kind == "line")).filter("moving_words")
    some = rest.filter(pl.col("pages") > 1, pl.col("words") >= MOVING * pl.col("lines"))
    some = some.join(whole, on=["site", "key"], how="semi").with_columns(moving_words=True)
    found = pl.concat([found, rest, some])
    found = found.filter(pl.col("moving_words") | pl.col("moving_numbers") | (kind == "place"))
    pages = counts.filter(pl.col("kind") == "pages").select("site", "segment", of="pages")
    shared = counts.filter(pl.col("kind") == "shared").select("site", "key", "segment", "pages")
    over_all = shared.group_by("site", "key").agg(pages=pl.col("pages").sum())
    over_all = over_all.with_columns(segment=pl.lit(_EVER, pl.UInt32)).select(shared.columns)
    shared = pl.concat([shared, over_all]).join(pages, on=["site", "segment"])
    shared = shared.filter(pl.col("pages") >= _PAGES, pl.col("pages") >= _HALF * pl.col("of"))
    frame = shared.select("site", "key").unique()
    frame = frame.with_columns(
        *(pl.lit(0, pl.Int64).alias(name) for name in ("lines", "words", "numbers", "pages")),
        kind=pl.lit("shared"),
        moving_words=pl.lit(value=True),
        moving_numbers=pl.lit(value=False),
    )
    return pl.concat([found, frame.select(HABITS.names())])


def standing(lines: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Returns those of the lines (`read`) that are own, and by no site's habits do not stay."""
    own = lines.filter("own").with_row_index("at")
    moving = known.filter(pl.col("moving_words") | pl.col("moving_numbers"))
    for kind, rows in _kinds(own).items():
        habit = rows.join(moving.filter(pl.col("kind") == kind), on="key", how="semi")
        own = own.join(habit.select("at"), on="at", how="anti", maintain_order="left")
    return own.drop("at")


def _moving(counts: pl.DataFrame) -> pl.DataFrame:
    """Returns which keys are habits, by their counts, with HABITS."""
    of_key = ("site", "kind", "key")
    counts = counts.group_by(*of_key, "segment").agg(
        pl.col("lines", "words", "numbers", "pages").sum()
    )
    is_turn = pl.col("segment") != _EVER
    turns = is_turn.sum()
    judged = []
    for what in ("words", "numbers"):
        often = pl.col(what).sum() / pl.col("lines").sum()
        busy = (is_turn & (pl.col(what) >= MOVING / 2 * pl.col("lines"))).sum()
        is_habit = (turns > 1) & (often >= MOVING) & (busy >= 2) & (busy >= 0.6 * turns)
        if what == "numbers":
            pages, share = _FEW_VISITS
            is_habit |= (
                (turns == 1)
                & (pl.col("kind").first() == "mask")
                & (often >= share)
                & (pl.col("pages").max() >= pages)
            )
        judged.append((is_habit & (pl.col("pages").max() >= _PAGES)).alias(f"moving_{what}"))
    found = counts.group_by(of_key).agg(pl.col("lines", "words", "numbers", "pages").sum(), *judged)
    return found.select(HABITS.names())


def judged(found: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Returns those of the `sides` of pages that are gone on the other side, with `muted`, why they
    say nothing; null if they do. `known` are the habits of their sites.
    """
    rows = found.with_row_index("at")
    gone = rows.filter("gone")
    places = known.filter(pl.col("kind") == "place").select(
        "site", "key", "lines", "words", "numbers"
    )
    moving = [pl.DataFrame(schema={"at": pl.UInt32})]
    kinds = _kinds(rows)
    for kind, mine in kinds.items():
        of_kind = known.filter(pl.col("kind") == kind)
        of_site = mine.filter("gone").join(of_kind, on=["site", "key"])
        is_moving = pl.when("number").then("moving_numbers").otherwise("moving_words")
        moving.append(of_site.filter(is_moving).select("at"))
        if kind != "line":
            moving.append(_own_habits(mine, places, numbers=kind == "mask"))
    frame = gone.with_columns(key=pl.struct("side", "place", "hash").hash())
    shared = known.filter(pl.col("kind") == "shared")
    frame = frame.join(shared, on=["site", "key"], how="semi").select("at")
    habit = pl.concat(moving)["at"].unique()
    # what has taken the place of such a line is another one, though it is seen for the first time
    slot = ["page", "turn", "place", "after"]
    taken = (
        gone.filter(pl.col("at").is_in(habit.implode()), ~pl.col("number")).select(slot).unique()
    )
    others = gone.filter(~pl.col("number")).join(taken, on=slot, how="semi")["at"]
    habit = pl.concat([habit, others]).unique()
    is_own = pl.col("own") | (pl.col("chance") >= LEAST_CHANCE)
    reason = (
        pl.when(pl.col("at").is_in(frame["at"].implode())).then(pl.lit(FRAME))
        .when(~is_own).then(pl.lit(NOT_OWN))
        .when("ago").then(pl.lit(RELATIVE))
        .when(pl.col("at").is_in(habit.implode())).then(pl.lit(HABIT))
    )  # fmt: skip
    gone = gone.with_columns(muted=reason).drop("at")
    # where it stands now may be what changes all the time, so this comes last
    mine = _without_other(gone, ["hash"], "alone", pl.col("muted").is_null())
    moved = pl.col("muted").is_null() & ~pl.col("alone")
    muted = pl.when(moved).then(pl.lit(ELSEWHERE)).otherwise("muted")
    return mine.with_columns(muted=muted).drop("alone")


def _own_habits(mine: pl.DataFrame, places: pl.DataFrame, *, numbers: bool) -> pl.DataFrame:
    """Returns which lines, `at`, change by a habit of their own page."""
    what = "numbers" if numbers else "words"
    changed = pl.col("number") if numbers else pl.col("gone") & ~pl.col("number")
    before = mine.filter(pl.col("side") == 0)
    turns = before.group_by("site", "page", "place", "key", "turn").agg(
        n=pl.len(), went=changed.sum()
    )
    pages = turns.group_by("site", "page", "place", "key").agg(
        pl.col("n").sum(),
        pl.col("went").sum(),
        turns=pl.len(),
        times=(pl.col("went") >= _HALF * pl.col("n")).sum(),
    )
    pages = pages.filter(pl.col("times") >= 2, pl.col("times") >= _OFTEN * pl.col("turns"))
    rest = pages.join(
        places.select("site", of_place="key", all_lines="lines", all_went=what),
        left_on=["site", pl.col("place").hash()],
        right_on=["site", "of_place"],
        how="left",
    ).with_columns(pl.col("all_lines", "all_went").fill_null(0))
    others = (pl.col("all_lines") - pl.col("n")).clip(0)
    went = pl.min_horizontal((pl.col("all_went") - pl.col("went")).clip(0), others)
    # where other pages have the habit, they are no measure of what is usual without it
    counts = pl.when(went < MOVING * others)
    went, others = counts.then(went).otherwise(0), counts.then(others).otherwise(0)
    # A prior of _WEIGHT lines: one other page that changed once is no rate of 1.
    rest = rest.with_columns(rate=(went + _USUAL[what] * _WEIGHT) / (others + _WEIGHT))
    rare = [
        _tail(times, turns, rate) <= _RARE
        for times, turns, rate in rest.select("times", "turns", "rate").iter_rows()
    ]
    rest = rest.filter(pl.Series(rare, dtype=pl.Boolean)).select("page", "place", "key")
    return mine.filter(changed).join(rest, on=["page", "place", "key"], how="semi").select("at")


def _tail(times: int, turns: int, rate: float) -> float:
    """Returns how probable it is that at least so many of some turns are changes."""
    turns, times = min(turns, 64), min(times, 64)
    return sum(
        comb(turns, n) * rate**n * (1 - rate) ** (turns - n) for n in range(times, turns + 1)
    )


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
Piece = tuple[str, str]
"""SAME, REMOVED or ADDED, and words."""


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
