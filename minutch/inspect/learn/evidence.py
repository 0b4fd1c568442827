"""Reads what a crawl's pages say, as numbers by which they are compared.

    content   the words of a page's own text, in whatever order: a sorted list is the list. Of a
              page that says hardly anything itself, of its whole text and title. Pages whose whole
              texts are equal have one content, too. 0: not known. Of what was not parsed, the
              signature
    shape     the same without the page's own address and with all digits equal
    is_gone   the page says that it is not there, whatever its status: by its words, or as its
              host's answer to a URL that cannot exist (PROBE)

A URL is a sum of the hashes of its parts: authority, each segment of the path by its place, each
parameter without place. So the sum of a URL that has a part more, less, or another is known without
writing it, and twins are found by joining numbers. The scheme does not count.

A URL takes some 60 bytes of memory; texts and URLs are read a stretch at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.inspect.query.crawl import CRAWLDB, CrawlFolder
from minutch.inspect.query.table import Request
from minutch.job import Counters
from minutch.plugin.chains import SCOPE_CRAWLDB
from minutch.plugin.urlrules import UrlRules
from minutch.urls.patterns import patterns

PROBE: Final = "minutch-cannot-exist"
UNKNOWN, FETCHED, FAILED = 0, 1, 2
"""States of URLs. FAILED: gone, or leads elsewhere."""
_STATES: Final = {
    **dict.fromkeys(("db_fetched", "db_notmodified", "db_duplicate"), FETCHED),
    **dict.fromkeys(("db_gone", "db_redir_temp", "db_redir_perm"), FAILED),
}
_THIN: Final = 6
"""Words of its own: a page of fewer is judged by all that it says."""
SAID: Final = 5
UNLIKE: Final = 3
"""URLs of a host that say the same, and patterns of them, before that is taken for its answer to
what is not there."""
_NOT: Final = (
    r"not found|no longer (?:exists?|available)|(?:n['’]t|not) exist|could ?n['’o]t be found"
    r"|introuvable|n['’]existe pas|nicht gefunden|existiert nicht|no encontrad|no existe"
    r"|non trovat|não encontrad|não existe|niet gevonden|bestaat niet|ikke fundet|ikke funnet"
    r"|hittades inte|ei löydy|nie znaleziono|nie istnieje|nenalezen|не найден|не существует"
    r"|не знайдено|見つかりません|找不到|不存在|찾을 수 없"
)
_PAGE: Final = (
    r"page|url|file|document|address|resource|seite|página|pagina|sida|side|sivu|stron|stránk"
    r"|страниц|сторінк|ページ|页|頁|페이지"
)
_GONE_TITLE: Final = rf"(?i)\b404\b|{_NOT}"
_GONE: Final = (
    rf"(?i)\b(?:error|http)\W{{0,3}}404\b|^\W*404\W*(?:$|error|{_NOT})"
    rf"|(?:{_PAGE}).{{0,80}}(?:{_NOT})|(?:{_NOT}).{{0,20}}(?:{_PAGE})"
)
"""What a page says that is not there; a title says it without saying what."""
_ROWS: Final = 1 << 17
_MOST: Final = 24
"""Segments and parameters of a URL; those of more are not looked at."""
_ODD: Final = np.random.Generator(np.random.PCG64(7)).integers(0, 1 << 63, 64, np.uint64) * 2 + 1
Numbers = np.ndarray[Any, np.dtype[np.uint64]]
_NO_NUMBERS: Final[Numbers] = np.zeros(0, np.uint64)
_TEXTS: Final = pl.Schema(
    {"id": pl.UInt64, "own": pl.UInt64, "all": pl.UInt64, "shape": pl.UInt64, "is_gone": pl.Boolean}
)


class Parts(NamedTuple):
    """URLs in parts. `row` is the place among them."""

    urls: pl.DataFrame
    """`row`, `scheme`, `host` (in lower case, with its port), `sum` of all, `tail` without host."""
    segments: pl.DataFrame
    """`row`, `place`, `segment`, `share` of the sum, `before` and `after` those of the others,
    `pulled` that of those after if one less was before them; `is_last`."""
    items: pl.DataFrame
    """`row`, `place`, `name`, `value`, `share`."""


def parts_of(urls: pl.Series) -> Parts:
    """Takes URLs of http and https apart; those that are too long have no segments or items."""
    url = pl.col("url")
    table = pl.DataFrame({"url": urls}).select(
        row=pl.int_range(pl.len(), dtype=pl.UInt32),
        scheme=url.str.extract("^([a-zA-Z]+):").str.to_lowercase(),
        host=url.str.extract(r"^[^/]*://([^/?#]*)").str.to_lowercase().fill_null(""),
        path=url.str.extract(r"^[^/]*://[^/?#]*/([^?#]*)").fill_null(""),
        query=url.str.extract(r"^[^#?]*\?([^#]*)"),
    )
    lists = table.select(
        "row",
        segment=pl.col("path").str.split("/"),
        item=pl.when(pl.col("query") != "").then(pl.col("query").str.split("&")),
    )
    # The parts of a URL of thousands of segments would be thousands of rows.
    lists = lists.filter(
        pl.col("segment").list.len() <= _MOST, pl.col("item").list.len().fill_null(0) <= _MOST
    )
    place = pl.int_range(pl.len(), dtype=pl.UInt32).over("row").alias("place")
    segments = lists.select("row", "segment").explode("segment").with_columns(place)
    items = lists.select("row", "item").drop_nulls().explode("item").with_columns(place)
    items = items.with_columns(
        name=pl.col("item").str.extract("^([^=]*)"),
        value=pl.col("item").str.extract("^[^=]*=(.*)$"),
    )
    shares = segment_share(segments["segment"], segments["place"].to_numpy())
    row, count = segments["row"].to_numpy(), len(urls)
    pulled = segment_share(segments["segment"], np.maximum(segments["place"].to_numpy(), 1) - 1)
    total, pulled_total = _added(row, shares, count), _added(row, pulled, count)
    upto, pulled_upto = _within(row, shares), _within(row, pulled)
    segments = segments.with_columns(
        share=pl.Series(shares),
        before=pl.Series(upto - shares),
        after=pl.Series(total[row] - upto),
        pulled=pl.Series(pulled_total[row] - pulled_upto),
        is_last=pl.col("place") == pl.col("place").max().over("row"),
    )
    of_items = items["item"].hash(3).to_numpy() if len(items) else _NO_NUMBERS
    items = items.with_columns(share=pl.Series(of_items, dtype=pl.UInt64))
    tail = total + _added(items["row"].to_numpy(), of_items, count)
    short = np.zeros(count, np.bool_)
    short[lists["row"].to_numpy()] = True
    tail = np.where(short, tail, urls.hash(5).to_numpy())
    urls_ = table.select("row", "scheme", "host").with_columns(
        tail=pl.Series(tail), sum=pl.Series(tail + host_share(table["host"]))
    )
    return Parts(urls_, segments, items)


def segment_share(segments: pl.Series, places: np.ndarray[Any, Any]) -> Numbers:
    """Returns what segments at places of a path add to the sum of a URL."""
    return np.asarray(segments.hash(1).to_numpy() * _ODD[places.astype(np.int64) % 64])


def host_share(hosts: pl.Series) -> Numbers:
    """Returns what hosts add to it."""
    return np.asarray(hosts.hash(2).to_numpy())


def _added(row: np.ndarray[Any, Any], values: Numbers, count: int) -> Numbers:
    total = np.zeros(count, np.uint64)
    np.add.at(total, row, values)
    return total


def _within(row: np.ndarray[Any, Any], values: Numbers) -> Numbers:
    """Returns sums of the values up to each, in their row; rows are in order."""
    sums = np.cumsum(values, dtype=np.uint64)
    if not len(row):
        return sums
    first = np.flatnonzero(np.diff(row, prepend=row[:1] + 1))
    starts = sums[first] - values[first]
    return np.asarray(sums - np.repeat(starts, np.diff(first, append=len(row))))


@dataclass(frozen=True, slots=True)
class KnownPages:
    """The URLs of a crawl that its rules take as they are. Arrays have one value for each."""

    files: Sequence[Path]
    """Of some of them each: `url`, `host`, `pattern`."""
    starts: Sequence[int]
    table: pl.DataFrame
    """`id`, `sum`, `content`, `shape`, `state`, `is_gone`."""

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yields the URLs with all that is known of them, and their number `at`, some at a time."""
        for start, file in zip(self.starts, self.files, strict=True):
            some = pl.read_parquet(file)
            found = self.table.slice(start, len(some))
            number = pl.int_range(start, start + len(some), dtype=pl.UInt32, eager=True).alias("at")
            yield pl.concat([some, found, number.to_frame()], how="horizontal")


def read_pages(crawl: CrawlFolder, conf: Configuration, work: Path) -> KnownPages:
    """Reads them; what the normalizers and filters of `conf` would change or reject already is left
    out. `work` takes the URLs. Raises FormatError.
    """
    texts = _texts(crawl)
    rules = UrlRules(conf, normalize=True, filtering=True, scope=SCOPE_CRAWLDB, keep_on_error=True)
    files: list[Path] = []
    starts, tables, total = [], [], 0
    for entries in _entries(crawl):
        rows = _untouched(entries, rules)
        parts = parts_of(rows["url"]).urls
        rows = rows.with_columns(parts["host"], parts["sum"], id=pl.col("url").hash())
        rows = rows.join(texts, on="id", how="left", maintain_order="left")
        signed = pl.when(pl.col("state") == FETCHED).then(pl.col("signature").hash(4))
        content = pl.coalesce(pl.when(pl.col("state") != FAILED).then("content"), signed)
        rows = rows.with_columns(content=content.fill_null(0), pattern=patterns(rows["url"]))
        rows = rows.with_columns(
            shape=pl.coalesce("shape", "content"), is_gone=pl.col("is_gone").fill_null(False)
        )
        file = work / f"urls-{len(files):05}.parquet"
        rows.select("url", "host", "pattern").write_parquet(file)
        # URLs go to disk: 60 bytes of numbers a URL are held, which are compared.
        files.append(file)
        starts.append(total)
        total += len(rows)
        tables.append(
            rows.select(
                *_OF_URL,
                is_home=pl.col("url").str.contains(r"^https?://[^/?#]*/?$"),
                is_probe=pl.col("url").str.contains(PROBE, literal=True) & (pl.col("content") > 0),
                of_host=pl.col("host").hash(),
                of_pattern=pl.col("pattern").hash(),
            )
        )
    table = pl.concat(tables) if tables else pl.DataFrame(schema=_NONE)
    asked = table.filter(pl.col("content") > 0)
    same = asked.group_by("of_host", "shape").agg(
        unlike=(pl.len() >= SAID) & (pl.col("of_pattern").n_unique() >= UNLIKE),
        # what is not there is its first page, or is said to be what cannot exist
        is_answer=pl.col("is_home").any() & (pl.col("content").n_unique() == 1),
        is_probed=pl.col("is_probe").any(),
    )
    table = table.join(same, on=["of_host", "shape"], how="left", maintain_order="left")
    is_gone = pl.col("unlike") & (pl.col("is_gone") | pl.col("is_answer")) | pl.col("is_probed")
    table = table.with_columns(is_gone=((pl.col("content") > 0) & is_gone).fill_null(False))
    one = pl.struct("of_host", "shape", pl.lit("gone")).hash()
    table = table.with_columns(content=pl.when("is_gone").then(one).otherwise("content"))
    return KnownPages(files, starts, table.select(_OF_URL))


def _untouched(entries: pl.DataFrame, rules: UrlRules) -> pl.DataFrame:
    found = entries.filter(pl.col("url").str.contains("^(?i:https?)://"))
    return found.filter(rules.apply(found["url"], Counters()).eq_missing(found["url"]))


_OF_URL: Final = ("id", "sum", "content", "shape", "state", "is_gone")
_NONE: Final = pl.Schema(
    dict.fromkeys(("id", "sum", "content", "shape", "of_host", "of_pattern"), pl.UInt64)
    | dict.fromkeys(("is_gone", "is_home", "is_probe"), pl.Boolean)
    | {"state": pl.UInt8}
)


def _entries(crawl: CrawlFolder) -> Iterator[pl.DataFrame]:
    """Yields `url`, `state` and `signature` of the URLs that are known."""
    if CrawlDb(crawl.path / CRAWLDB).exists():
        for frame in crawl.crawldb.frames(Request(("url", "status", "signature"))):
            state = (
                pl.col("status")
                .cast(pl.String)
                .replace_strict(_STATES, default=UNKNOWN, return_dtype=pl.UInt8)
            )
            for some in frame.with_columns(state=state).iter_slices(_ROWS):
                yield some.drop("status")
        return
    urls = crawl.segments.parses.scan().select("url").unique(maintain_order=True).collect()
    nothing = pl.lit(None, pl.String)
    for some in urls.with_columns(state=pl.lit(FETCHED, pl.UInt8), signature=nothing).iter_slices(
        _ROWS
    ):
        yield some


def _texts(crawl: CrawlFolder) -> pl.DataFrame:
    """Returns `id`, `content`, `shape`, `is_gone` of the newest parse of each page."""
    found = [pl.DataFrame(schema=_TEXTS)]
    wanted = ("url", "status", "title", "text", "own_text")
    for frame in crawl.segments.parses.frames(Request(wanted, pl.col("status") == "success")):
        url, own, text = frame["url"], frame["own_text"].fill_null(""), frame["text"].fill_null("")
        title = frame["title"].fill_null("")
        # Another seed than that of words: a title is no word of the text.
        whole = _bag(text) + title.hash(6).to_numpy()
        words = own.str.count_matches(r"\S+").to_numpy()
        is_titled = title.str.contains(_GONE_TITLE)
        start = own.str.head(400)
        said = own.zip_with(pl.Series(words >= _THIN), title + " " + text)
        shapes, is_named = _shapes(url, title.zip_with(is_titled, said))
        is_gone = is_titled | start.str.contains(_GONE)
        is_gone |= is_named & start.str.contains(f"(?i){_NOT}")
        found.append(
            pl.DataFrame(
                {
                    "id": url.hash(),
                    "own": np.where(words < _THIN, whole, _bag(own)),
                    "all": whole,
                    "shape": shapes,
                    "is_gone": is_gone,
                },
                schema=_TEXTS,
            )
        )
    texts = pl.concat(found).unique("id", keep="last", maintain_order=True)
    texts = texts.with_columns(content=pl.col("own").min().over("all"))
    return texts.select("id", pl.col("content").min().over("own").clip(1), "shape", "is_gone")


def _bag(texts: pl.Series) -> Numbers:
    """Returns a number of the words of each text, in whatever order."""
    words = texts.str.extract_all(r"\S+")
    rows = np.repeat(np.arange(len(texts)), words.list.len().to_numpy())
    hashes = words.explode().drop_nulls().hash(7).to_numpy() if len(rows) else _NO_NUMBERS
    return _added(rows, hashes, len(texts))


def _shapes(urls: pl.Series, texts: pl.Series) -> tuple[Numbers, pl.Series]:
    """Returns the same of texts without what stands in their addresses, digits as 0; and the mask
    of those that name their address.
    """
    table = pl.DataFrame({"url": urls, "text": texts}).with_columns(
        target=pl.col("url").str.extract(r"://[^/?#]*(/[^#]*)"),
        path=pl.col("url").str.extract(r"://[^/?#]*(/[^?#]*)"),
        last=pl.col("url").str.extract(r"/([^/?#]{3,})[/]?(?:[?#].*)?$"),
        is_cut=pl.lit(value=False),
    )
    for name in ("url", "target", "path", "last"):  # the first that is there: "page" may be a word
        named = pl.when(pl.col(name).str.len_bytes() > 2).then(name).otherwise(pl.lit("\0"))
        cut = pl.col("text").str.split(named.fill_null("\0"))
        is_first = ~pl.col("is_cut") & (cut.list.len() > 1)
        table = table.with_columns(
            text=pl.when(is_first).then(cut.list.join("")).otherwise("text"),
            is_cut=pl.col("is_cut") | is_first,
        )
    return _bag(table["text"].str.replace_all("[0-9]+", "0")), table["is_cut"]
