"""Decides which pages that are gone have moved to which that are new. Pure.

A page has moved to one that says the same, but for what changes at each visit (`revisions`); or to
the one that says most of what only these two pages of their host say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from minutch.cycle.owntext import revisions
from minutch.work.tables.frame import decode_keys

_LEAST_WORDS: Final = 8
"""Of a text by which a page is found at another URL."""
_FEW: Final = 2
"""Pages that have a line which says what a page is: itself, where it was and where it is."""
_NAMED: Final = 0.5
_UNNAMED: Final = 0.8
"""Which part of the words in such lines pages have in common if one has moved to the other, by
whether their titles are equal. Goods of a series share their descriptions, and have other names."""


def standing(lines: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Returns what stays of each text: `url`, `of`, a hash of it, `said`, its `size` in words; the
    page's `title`; and of lines that few pages have, `rare`, hashes and words.
    """
    own = revisions.standing(lines, known).sort("key", "segment", "row")
    words = pl.col("line").str.count_matches(" ") + 1
    is_rare = pl.col("anywhere") <= _FEW
    found = own.group_by("key", "segment", maintain_order=True).agg(
        pl.col("title").first(),
        said=pl.col("still").implode().hash(),
        size=words.sum(),
        rare=pl.struct("still", words=words).filter(is_rare).unique(maintain_order=True),
    )
    url = decode_keys(found["key"]).alias("url")
    return found.select(url, "segment", "said", "size", "title", "rare")


def _near(lost: pl.DataFrame, fresh: pl.DataFrame, is_since: pl.Expr) -> pl.DataFrame:
    """Returns pages that are gone with those that are new on their host and say most of what only
    these two say, where either has no other that is nearly as good.
    """
    sides = []
    for rows, visit in ((lost, "at"), (fresh, "segment")):
        rare = rows.explode("rare").unnest("rare").drop_nulls("still")
        rare = rare.with_columns(total=pl.sum("words").over("url", "segment"))
        # Of a site with more pages than were counted, a series of products may seem rare.
        sides.append(rare.filter(pl.len().over("host", "still", visit) == 1))
    both = sides[0].join(sides[1], on=["host", "still"], suffix="_of")
    both = both.filter(is_since)
    both = both.group_by("url", "at", "url_of", "segment_of", "host", "before", "born").agg(
        common=pl.sum("words"),
        total=pl.max_horizontal("total", "total_of").first(),
        is_named=(pl.col("title") == pl.col("title_of")).first(),
    )
    share = pl.col("common") / pl.col("total")
    both = both.with_columns(share=share, host_of="host")
    is_near = share >= pl.when("is_named").then(_NAMED).otherwise(_UNNAMED)
    for side in (["url", "at"], ["url_of"]):
        second = pl.col("share").sort(descending=True).get(1, null_on_oob=True).over(side)
        is_best = pl.col("share") == pl.col("share").max().over(side)
        is_near &= is_best & (second.fill_null(0) <= pl.col("share") / 2)
    return both.filter(is_near, pl.col("common") >= _LEAST_WORDS)


def with_moves(
    events: pl.DataFrame, texts: pl.DataFrame | None, names: Sequence[str]
) -> pl.DataFrame:
    """Returns events in which pages that are gone have moved to those that say the same since, and
    pages to which others have moved are not new.
    """
    is_new, of_visit = pl.col("kind") == "new", ["url", "segment"]
    fresh = events.filter(is_new).select("url", "host", "segment")
    pairs = pl.DataFrame(schema={"url": pl.String, "at": pl.String, "url_of": pl.String})
    pairs = pairs.with_columns(segment_of="at")
    if texts is not None and len(texts):
        name = pl.Series(names, dtype=pl.String).gather(texts["segment"])
        texts = texts.with_columns(name.alias("segment")).filter(pl.col("size") >= _LEAST_WORDS)
        # Who leads elsewhere for now has said where.
        lost = events.filter(pl.col("kind") == "gone", pl.col("to").is_null())
        lost = lost.select("url", "host", "before", at="segment").join(texts, on="url")
        lost = lost.filter(pl.col("segment") < pl.col("at")).sort("segment")
        # The newest text before it was gone.
        lost = lost.unique(["url", "at"], keep="last")
        lost = lost.join(fresh.select("url", born="segment"), on="url", how="left")
        born = fresh.join(texts, on=of_visit)
        is_since = pl.col("segment_of") >= pl.col("before")
        is_since &= pl.col("segment_of") > pl.col("born").fill_null("")
        found = lost.join(born, on="said", suffix="_of").filter(is_since)
        # What has moved with all it says is not to be found near others.
        rest = lost.join(found, on=["url", "at"], how="anti")
        other = born.join(found, left_on="url", right_on="url_of", how="anti")
        names_of = ["url", "at", "before", "born", "host", "url_of", "segment_of", "host_of"]
        found = pl.concat([one.select(names_of) for one in (found, _near(rest, other, is_since))])
        back = events.filter(pl.col("kind") == "back").select("url", back="segment")
        back = found.select("url", "at").unique().join(back, on="url")
        back = back.filter(pl.col("back") > pl.col("at")).group_by("url", "at").agg(pl.min("back"))
        found = found.join(back, on=["url", "at"], how="left")
        # A page that came back had not moved to what is found after that.
        found = found.filter((pl.col("segment_of") < pl.col("back")).fill_null(value=True))
        # Forms of a page, with a parameter more, end with it: none of them is where it went.
        ends = events.filter(pl.col("kind").is_in(["gone", "moved", "back"]))
        ends = ends.select(url_of="url", ended="segment", is_over=pl.col("kind") != "back")
        ends = found.select("url_of", "at").unique().join(ends, on="url_of")
        ends = ends.filter(pl.col("ended") <= pl.col("at")).sort("ended")
        ends = ends.unique(["url_of", "at"], keep="last").filter("is_over")
        found = found.join(ends, on=["url_of", "at"], how="anti")
        is_far, length = pl.col("host") != pl.col("host_of"), pl.col("url_of").str.len_bytes()
        # The same host first, then the shortest URL: not a form of it with parameters.
        found = found.sort(is_far, length, "url_of").unique(["url", "at"], keep="first")
        pairs = found.select(pairs.columns)
    to = pairs.select("url", segment="at", same="url_of")
    events = events.join(to, on=of_visit, how="left", maintain_order="left")
    kind = pl.when(pl.col("same").is_not_null()).then(pl.lit("moved")).otherwise("kind")
    events = events.with_columns(kind.alias("kind"), to=pl.coalesce("to", "same")).drop("same")
    moves = events.filter(pl.col("kind") == "moved").select("before", url="to")
    there = fresh.join(moves, on="url").filter(pl.col("segment") > pl.col("before"))
    there = pl.concat([there.select(of_visit), pairs.select(url="url_of", segment="segment_of")])
    known = events.filter(is_new).join(there, on=of_visit, how="anti")
    return pl.concat([events.filter(~is_new), known]).sort("segment", "url")
