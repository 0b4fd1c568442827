"""Decides which of several pages with the same signature are duplicates.

    score           the higher score stays
    fetchTime       the later fetch time stays
    httpsOverHttp   of two URLs that differ in that only, https stays
    urlLength       the shorter URL (percent-decoded) stays

The pages of a group are compared one after the other with the one kept so far, by the criteria in
their order; the loser is a duplicate. Where no criterion decides between two pages, neither is a
duplicate of the other. Nutch takes the pages as its sort leaves them, and that then decides what
becomes of pages which equal one another but not the best. Here the order is fixed: best first by
the numeric criteria, equal ones by URL. So every page that is worse than the best of its group is a
duplicate. Source: org.apache.nutch.crawl.DeduplicationJob.DedupReducer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.work.tables.frame import decode_keys

SCORE: Final = "score"
FETCH_TIME: Final = "fetchTime"
HTTPS: Final = "httpsOverHttp"
URL_LENGTH: Final = "urlLength"
REQUIRED: Final = (SCORE, FETCH_TIME, URL_LENGTH)
DEFAULT_ORDER: Final = ",".join(REQUIRED)
DEFAULT_CRITERIA: Final = tuple(DEFAULT_ORDER.split(","))

_NUMERIC: Final = {SCORE: "score", FETCH_TIME: "fetch_time", URL_LENGTH: "shortness"}
"""Criterion -> column; the page with the higher number stays."""


def find(pages: pl.DataFrame, order: Sequence[str]) -> pl.Series:
    """Returns the URLs of the duplicates in `pages`, which has the columns `key` (the group's),
    `url`, `score`, `fetch_time`.

    All pages of a group are in the table. Unknown criteria in `order` are ignored, as in Nutch.
    """
    pages = pages.filter(may_repeat(pages["key"]))
    pages = pages.with_columns(shortness=-url_lengths(pages["url"]))
    criteria = [_NUMERIC[name] for name in dict.fromkeys(order) if name in _NUMERIC]
    if HTTPS in order:
        descending = [False, *[True] * len(criteria), False]
        return _one_by_one(pages.sort("key", *criteria, "url", descending=descending), order)
    best = pages.with_row_index("row")
    for column in criteria:
        best = best.filter(pl.col(column) == pl.col(column).max().over("key"))
    worse = np.ones(len(pages), np.bool_)
    worse[best["row"].to_numpy()] = False
    return pages["url"].filter(pl.Series(worse))


def may_repeat(groups: pl.Series) -> pl.Series:
    """Returns the mask of the rows whose group has several rows, or shares its hash with another
    group.

    A cheap first cut: numbers compare faster than strings.
    """
    return groups.hash().is_duplicated()


def _one_by_one(pages: pl.DataFrame, order: Sequence[str]) -> pl.Series:
    """Returns the URLs of the duplicates. `pages` is sorted by group, each group in the order of
    comparison.
    """
    found: list[bytes] = []
    kept: tuple[Any, ...] | None = None
    for page in pages.select("key", "url", *_NUMERIC.values()).iter_rows():
        if kept is None or page[0] != kept[0]:
            kept = page
            continue
        verdict = _compare(kept, page, order)
        if verdict:
            found.append(kept[1] if verdict > 0 else page[1])
            kept = page if verdict > 0 else kept
    return pl.Series("url", found, dtype=pl.Binary)


def _compare(kept: tuple[Any, ...], new: tuple[Any, ...], order: Sequence[str]) -> int:
    """Positive if `new` stays, negative if `kept` stays, 0 if no criterion decides."""
    for name in order:
        if name == HTTPS:
            verdict = _is_https_of(new[1], kept[1]) - _is_https_of(kept[1], new[1])
        elif name in _PLACES:
            place = _PLACES[name]
            verdict = (new[place] > kept[place]) - (new[place] < kept[place])
        else:
            continue
        if verdict:
            return verdict
    return 0


_PLACES: Final = {name: place for place, name in enumerate(_NUMERIC, 2)}
"""Criterion -> position in a row of `_one_by_one`."""


def _is_https_of(first: bytes, second: bytes) -> bool:
    return (
        first.startswith(b"https://") and second.startswith(b"http://") and first[8:] == second[7:]
    )


def url_lengths(keys: pl.Series) -> pl.Series:
    """Returns the length of each URL in UTF-16 units after percent-decoding."""
    lengths = keys.bin.size().cast(pl.Int64)
    urls = decode_keys(keys)
    special = urls.str.contains("%", literal=True) | (
        urls.str.len_chars().cast(pl.Int64) != lengths
    )
    at = special.arg_true()
    if at.is_empty():
        return lengths
    decoded = [decoded_length(url) for url in urls.gather(at)]
    return lengths.scatter(at, pl.Series(decoded, dtype=pl.Int64))


def decoded_length(url: str) -> int:
    """Returns the length in UTF-16 units of `url` as java.net.URLDecoder decodes it; undecoded, if
    an escape is invalid.
    """
    with suppress(ValueError):
        url = _decode(url)
    return len(url.encode("utf-16-le", "surrogatepass")) // 2


def _decode(url: str) -> str:
    """URLDecoder.decode in UTF-8. Raises ValueError."""
    parts, at = [], 0
    while (start := url.find("%", at)) >= 0:
        parts.append(url[at:start])
        data = bytearray()
        at = start
        while at < len(url) and url[at] == "%":
            data.append(_escape(url[at + 1 : at + 3]))
            at += 3
        parts.append(data.decode("utf-8", "replace"))
    return "".join(parts) + url[at:]


def _escape(digits: str) -> int:
    """Returns the byte of an escape, from its two characters, as Integer.parseInt reads them (it
    accepts a sign).
    """
    if len(digits) < 2 or "_" in digits or digits.strip() != digits:
        raise ValueError(digits)
    value = int(digits, 16)
    if value < 0:
        raise ValueError(digits)
    return value
