"""Which of several pages with the same signature are duplicates: the one home of that decision.

Pages of a group are gone through in order, each compared with the one kept so far, by the criteria in their order:

    score           the higher score stays
    fetchTime       the later fetch time stays
    httpsOverHttp   of two URLs that differ in that only, https stays
    urlLength       the shorter URL (percent-decoded) stays

Where no criterion decides, both stay what they are and the earlier one goes on being compared: Nutch leaves it open,
so whether such a page becomes a duplicate of a better one depends on whether that came before.
Matched: org.apache.nutch.crawl.DeduplicationJob.DedupReducer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
import polars as pl

from minutch.tables.frame import decode_keys

SCORE: Final = "score"
FETCH_TIME: Final = "fetchTime"
HTTPS: Final = "httpsOverHttp"
URL_LENGTH: Final = "urlLength"
REQUIRED: Final = (SCORE, FETCH_TIME, URL_LENGTH)
DEFAULT_ORDER: Final = ",".join(REQUIRED)

_NUMERIC: Final = {
    SCORE: pl.col("score"),
    FETCH_TIME: pl.col("fetch_time"),
    URL_LENGTH: -pl.col("url_length"),
}
"""Criterion -> what is to be high in the page that stays."""


def find(pages: pl.DataFrame, order: Sequence[str]) -> pl.Series:
    """The mask of the rows of `pages` that are duplicates.

    `pages` has the columns `group` (rows of one group lie together, in their order), `key`, `score` and `fetch_time`.
    Unknown criteria in `order` are passed over, as in Nutch.
    """
    pages = pages.with_columns(url_length=_url_lengths(pages["key"]) if URL_LENGTH in order else pl.lit(0, pl.Int64))
    if HTTPS in order:
        return pl.Series(np.concatenate([*_one_by_one(pages, order), np.zeros(0, np.bool_)]))
    return _by_rank(pages, order)


def has_ties(pages: pl.DataFrame, order: Sequence[str]) -> bool:
    """Whether the criteria leave pages of a group undecided, so that the order of the pages matters."""
    names = [name for name in (SCORE, FETCH_TIME) if name in order]
    columns = [pl.col("group"), *(_NUMERIC[name].alias(name) for name in names)]
    return bool(pages.select(pl.struct(columns).is_duplicated().any()).item()) if len(pages) else False


def _by_rank(pages: pl.DataFrame, order: Sequence[str]) -> pl.Series:
    """All criteria are numbers, so pages have ranks; one is kept or passed over where it equals the best before it.

    Ranks go on from group to group, so that the best page before the first of a group is less than any in it.
    """
    if pages.is_empty():
        return pl.Series(dtype=pl.Boolean)
    new_group = (pl.col("group") != pl.col("group").shift()).fill_null(True)
    names = [name for name in dict.fromkeys(order) if name in _NUMERIC]
    columns = pages.select(new_group.cum_sum().alias("group"), *(_NUMERIC[name].alias(name) for name in names))
    at = columns.select(pl.arg_sort_by("group", *names, maintain_order=True)).to_series().to_numpy()
    changed = pl.any_horizontal([(pl.col(name) != pl.col(name).shift()).fill_null(True) for name in ["group", *names]])
    rank = np.empty(len(pages), np.int64)
    rank[at] = columns[at].select(changed.cum_sum()).to_series().to_numpy()
    starts = pages.select(new_group.arg_true()).to_series().to_numpy()
    best = np.repeat(np.maximum.reduceat(rank, starts), np.diff(starts, append=len(rank)))
    before = np.concatenate(([0], np.maximum.accumulate(rank)[:-1]))
    return pl.Series(np.where(rank > before, rank < best, rank < before))


def _one_by_one(pages: pl.DataFrame, order: Sequence[str]) -> Iterator[np.ndarray[Any, Any]]:
    """The masks of the groups, page by page."""
    rows = pages.select("group", "key", "score", "fetch_time", "url_length").iter_rows()
    group, kept, kept_at = None, None, 0
    marks: list[bool] = []
    for row in rows:
        if kept is None or row[0] != group:
            yield np.array(marks, np.bool_)
            group, kept, kept_at, marks = row[0], row, 0, [False]
            continue
        verdict = _compare(kept, row, order)
        marks.append(verdict < 0)
        if verdict > 0:
            marks[kept_at] = True
            kept, kept_at = row, len(marks) - 1
    yield np.array(marks, np.bool_)


def _compare(kept: tuple[Any, ...], new: tuple[Any, ...], order: Sequence[str]) -> int:
    """Above 0 if `new` is the one to stay, below if `kept` is, 0 if nothing decides."""
    for name in order:
        if name == HTTPS:
            verdict = _is_https_of(new[1], kept[1]) - _is_https_of(kept[1], new[1])
        elif name in _PLACES:
            place, sign = _PLACES[name]
            verdict = sign * ((new[place] > kept[place]) - (new[place] < kept[place]))
        else:
            continue
        if verdict:
            return verdict
    return 0


_PLACES: Final = {SCORE: (2, 1), FETCH_TIME: (3, 1), URL_LENGTH: (4, -1)}


def _is_https_of(first: bytes, second: bytes) -> bool:
    return first.startswith(b"https://") and second.startswith(b"http://") and first[8:] == second[7:]


def _url_lengths(keys: pl.Series) -> pl.Series:
    """The length of each URL in UTF-16 units after percent-decoding."""
    lengths = keys.bin.size().cast(pl.Int64)
    urls = decode_keys(keys)
    special = urls.str.contains("%", literal=True) | (urls.str.len_chars().cast(pl.Int64) != lengths)
    at = special.arg_true()
    if at.is_empty():
        return lengths
    decoded = [decoded_length(url) for url in urls.gather(at)]
    return lengths.scatter(at, pl.Series(decoded, dtype=pl.Int64))


def decoded_length(url: str) -> int:
    """The length in UTF-16 units of what java.net.URLDecoder makes of `url`; of itself, if an escape is damaged."""
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
    """The byte of an escape's two characters, read as Integer.parseInt does (which takes a sign)."""
    if len(digits) < 2 or "_" in digits or digits.strip() != digits:
        raise ValueError(digits)
    value = int(digits, 16)
    if value < 0:
        raise ValueError(digits)
    return value
