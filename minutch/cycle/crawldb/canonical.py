"""Decides which pages are twins of another one, which their canonical links name. Pure: no I/O.

A canonical link (RFC 6596) is what a page says of itself; many say it wrongly, and some to be found
in another's place. It is believed if all of this holds, in this order:

    rules      normalizers and filters let the URL pass that it names
    near by    that is of the same host or registered domain (`db.canonical`)
    known      the CrawlDb has it, fetched
    no version neither page says by hreflang that they are versions in different languages
    alike      signatures are equal, or own texts are near each other (`owntext.near`)
    not misused  of the pages that name it, no more are unlike it than like it
    no loop    links that lead from page to page come to an end
    original   and the page there is like the first one, too: it is the original of all on the way

So an original is never a twin. What leads into a loop, but is not of it, has its first page in the
loop for its original. Source: RFC 6596, section 3 and 5; none in Nutch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl

from minutch.kernels.native import I64
from minutch.urls.hostcolumns import domains_of, host_names

NONE, HOST, DOMAIN = "none", "host", "domain"
MODES: Final = (NONE, HOST, DOMAIN)
"""Of db.canonical: whose canonical links are followed."""

TWIN: Final = ""
REJECTED: Final = "URL filters or normalizers reject what it names"
ELSEWHERE: Final = "it names a page of another {mode}"
UNKNOWN: Final = "the CrawlDb does not know the page that it names"
UNFETCHED: Final = "the page that it names is not fetched"
VERSIONS: Final = "hreflang says that they are versions in different languages"
UNLIKE: Final = "the pages have different texts"
MISUSED: Final = "more unlike pages than like ones name the same page"
LOOP: Final = "the pages name each other"
CHAIN: Final = "the page that it leads to in the end has another text"
Agree = Callable[[pl.Series, pl.Series], pl.Series]
"""URLs (Binary) of pages, and of others: whether their own texts are near each other."""


def decide(claims: pl.DataFrame, entries: pl.DataFrame, mode: str, near: Agree) -> pl.DataFrame:
    """Returns of each fetched page that names another one `url`, `says`, `original` (null if it is
    no twin), `why` (TWIN, or why not), by URL.

    claims    url, says (Binary; null if rules reject it), versions (the languages, with blanks
              between, that it says the other page is in)
    entries   key, is_page (fetched), signature, own (the languages that it says it is in itself):
              of these pages, and of those that they name
    """
    mine = entries.filter("is_page").drop("is_page")
    others = entries.select(says="key", is_fetched="is_page", other="signature", other_own="own")
    table = (
        claims.join(mine, left_on="url", right_on="key")
        .filter(pl.col("says").ne_missing(pl.col("url")))
        .join(others, on="says", how="left")
        .sort("url")
    )
    near_by = (_places(table["url"], mode) == _places(table["says"], mode)).fill_null(value=False)
    # The first condition that fails is the reason.
    why = (
        pl.when(pl.col("says").is_null())
        .then(pl.lit(REJECTED))
        .when(~near_by)
        .then(pl.lit(ELSEWHERE.format(mode=mode)))
        .when(pl.col("is_fetched").is_null())
        .then(pl.lit(UNKNOWN))
        .when(~pl.col("is_fetched"))
        .then(pl.lit(UNFETCHED))
        .when(_differ("own", "versions") | _differ("own", "other_own"))
        .then(pl.lit(VERSIONS))
        .otherwise(pl.lit(TWIN))
    )
    table = table.with_columns(why=why)
    # Texts are compared last: it is what costs.
    table = _set(table, ~_alike(table, near), UNLIKE)
    # By all that name one page: a template's mistake names the front page.
    unlike = (pl.col("why") == UNLIKE).sum() > (pl.col("why") == TWIN).sum()
    table = _set(table, table.select(unlike.over("says")).to_series(), MISUSED)
    # A link to a link leads to where that leads.
    originals, loops = _followed(table)
    table = _set(table, loops, LOOP).with_columns(originals)
    # Likeness is not transitive: the first page and the last are compared as well.
    ends = table.filter(pl.col("original") != pl.col("says")).select(
        "url", "own", "signature", "original", "why"
    )
    ends = ends.rename({"original": "says"}).join(others, on="says", how="left").sort("url")
    ends = _set(ends, ends.select(_differ("own", "other_own")).to_series(), CHAIN)
    ends = _set(ends, ~_alike(ends, near), CHAIN)
    broken = ends["url"].filter(ends["why"] == CHAIN)
    table = _set(table, table["url"].is_in(broken.implode()), CHAIN)
    original = pl.when(pl.col("why") == TWIN).then("original")
    return table.select("url", "says", original.alias("original"), "why")


def _differ(some: str, others: str) -> pl.Expr:
    """Returns whether both say languages, none of which is the same."""
    one, other = (pl.col(name).str.split(" ") for name in (some, others))
    return (one.list.set_intersection(other).list.len() == 0).fill_null(value=False)


def _places(urls: pl.Series, mode: str) -> pl.Series:
    hosts = host_names(urls.cast(pl.String, strict=False))
    return hosts if mode == HOST else domains_of(hosts)


def _set(table: pl.DataFrame, mask: pl.Series, why: str) -> pl.DataFrame:
    """Returns the table with this answer for those of the mask that were believed so far."""
    said = pl.when((pl.col("why") == TWIN) & mask).then(pl.lit(why)).otherwise("why")
    return table.with_columns(why=said)


def _alike(table: pl.DataFrame, near: Agree) -> pl.Series:
    """Returns whether pages are like those that they name; texts are asked for where it matters."""
    alike = (table["signature"] == table["other"]).fill_null(False)
    asked = ((table["why"] == TWIN) & ~alike).arg_true()
    if not len(asked):
        return alike
    some = table.select("url", "says").select(pl.all().gather(asked))
    return alike.scatter(asked, near(some["url"], some["says"]))


def _followed(table: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Returns where believed links lead in the end (null for those that are not), and which of
    them are parts of a loop.
    """
    names = pl.concat([table["url"], table["says"].drop_nulls()]).unique().sort()
    number = pl.DataFrame({"name": names}).with_row_index("number")

    def numbers(urls: pl.Series) -> I64:
        found = pl.DataFrame({"name": urls}).join(
            number, on="name", how="left", maintain_order="left"
        )
        return found["number"].fill_null(0).to_numpy().astype(np.int64)

    pages, targets = numbers(table["url"]), numbers(table["says"])
    is_link = (table["why"] == TWIN).to_numpy()
    to = np.arange(len(names))  # each leads to itself, or on by its link
    to[pages[is_link]] = targets[is_link]
    ends = _ends(to)
    in_loop = np.zeros(len(names), np.bool_)
    in_loop[ends[to[ends] != ends]] = True  # what still moves after all steps goes round
    to[in_loop] = np.flatnonzero(in_loop)  # cut, so that what leads there comes to an end
    ends = _ends(to)
    rows = np.where(is_link, ends[pages], 0)
    original = names.gather(rows)
    original = pl.select(pl.when(pl.Series(is_link)).then(original)).to_series()
    return original.alias("original"), pl.Series(in_loop[pages] & is_link)


def _ends(to: I64) -> I64:
    """Returns where each one leads after as many steps as there are: an end, or a loop."""
    for _ in range(max(len(to), 1).bit_length()):  # steps double: 1, 2, 4 …
        to = to[to]
    return to
