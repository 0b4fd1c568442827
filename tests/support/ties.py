"""Names each tie: where Nutch leaves open which of several equals wins, and what may differ for
that reason.

Nutch's results then depend on the order in which Hadoop's sort hands on equal keys. minutch goes by
the order of the input, in generate by a hash of the URL. Tests compare everything exactly but for
these:

    repeated seeds        inject keeps the last line of a URL                     `in_any_order`
    equally new entries   mergedb keeps the first, and fills metadata in order    `in_any_order`
    undecided pages       dedup: pages equal to one another, worse than the best  `undecided`
    equal scores          readdb -topN: their order, and which are cut off        `same_top`
    sums of scores        readdb -stats: 32-bit sums, rounded after each addition `same_sum`
    quantiles of scores   readdb -stats: a t-digest merges scores as they come    `quantile_range`
    equal sort values     generate: which pages get the last places               `tied_selection`
    links of a page       the LinkDb: their order, Nutch's is that of a HashSet   `inlinks_as_sets`,
                          `dump_as_sets`
    too many links        linkdb.max.inlinks: which remain                        `assert_cut`

No test data has several fetches of a URL at the same time, so updatedb is compared without
exception.

A tie is proven, not assumed: the functions find it in the input, by the deciding fields, or by
minutch's own results for another order of the same input.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from minutch.cycle.crawldb.duplicates import decoded_length
from minutch.cycle.linkdb.store import LinkDb
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED, CrawlDatum
from minutch.records.links import Inlinks

Records = Mapping[str, str]  # URL -> record in hex

Link = tuple[str, str, bytes]
"""URL, anchor, serialized metadata."""
Database = dict[str, list[tuple[str, frozenset[Link]]]]
"""Part -> its URLs, in order, each with the links to it."""

SUM_TOLERANCE = 2e-6
"""Relative. Nutch's own averages of one CrawlDb of 233 entries, in 1 and 2 parts, lie up to 7e-7
apart.
"""
_COMPRESSION = 100  # of Nutch's digests
_ROUNDS = 2  # a digest per map task, and one of these


def in_any_order(results: Iterable[Records]) -> dict[str, set[str]]:
    """URL -> the records that it got when the same input came in different orders.

    Where nothing is tied there is one record, whatever the order.
    """
    found: dict[str, set[str]] = {}
    for records in results:
        for url, record in records.items():
            found.setdefault(url, set()).add(record)
    return found


def undecided(entries: Mapping[str, CrawlDatum], order: Sequence[str]) -> set[str]:
    """The pages of a CrawlDb that equal another of their signature by all numeric criteria, and
    have a better one.

    Nutch marks them as duplicates if the better page comes before them or becomes the page to
    compare with after them, but not where another equal page was compared with that one in their
    place. minutch always marks them.
    """
    signs = {"score": 1, "fetchTime": 1, "urlLength": -1}
    groups: dict[bytes, list[tuple[tuple[float, ...], str]]] = {}
    for url, entry in entries.items():
        if (
            entry.status in (STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED)
            and entry.signature is not None
        ):
            fields = {
                "score": entry.score,
                "fetchTime": entry.fetch_time,
                "urlLength": decoded_length(url),
            }
            rank = tuple(signs[name] * fields[name] for name in order if name in signs)
            groups.setdefault(entry.signature, []).append((rank, url))
    found = set()
    for pages in groups.values():
        ranks = Counter(rank for rank, _ in pages)
        found |= {url for rank, url in pages if ranks[rank] > 1 and rank < max(ranks)}
    return found


def same_top(ours: Sequence[str], nutch: Sequence[str], entries: Mapping[str, str]) -> bool:
    """Returns whether two lists of `score TAB URL` agree but for the order of equal scores, and for
    which of the last are cut off.

    `entries` is URL -> score as printed, of the whole CrawlDb.
    """

    def blocks(lines: Sequence[str]) -> list[tuple[str, set[str]]]:
        pairs = [line.split("\t", 1) for line in lines]
        return [
            (score, {url for _, url in block})
            for score, block in groupby(pairs, key=lambda pair: pair[0])
        ]

    mine, theirs = blocks(ours), blocks(nutch)
    if len(ours) != len(nutch) or mine[:-1] != theirs[:-1]:
        return False
    if not mine:
        return True
    (score, urls), (other_score, others) = mine[-1], theirs[-1]
    return (
        score == other_score
        and len(urls) == len(others)
        and {entries[url] for url in urls | others} == {score}
    )


def same_sum(ours: float, nutch: float) -> bool:
    """Returns whether two sums of 32-bit scores, or their averages, agree but for rounding."""
    return math.isclose(ours, nutch, rel_tol=SUM_TOLERANCE)


def quantile_range(scores: Sequence[float], q: float) -> tuple[float, float]:
    """The lowest and highest value that a digest of `scores` (ascending) may give for quantile `q`.

    A centroid at q has at most the fraction q * (1 - q) / normalizer of the scores (MergingDigest,
    scale function K_2), and a quantile lies between the means of two neighbours.
    """
    count = len(scores)
    normalizer = _COMPRESSION / (4 * math.log(count / _COMPRESSION) + 24)
    reach = _ROUNDS * count * q * (1 - q) / normalizer + 1
    low, high = math.floor(q * count - reach), math.ceil(q * count + reach)
    return scores[max(0, low)], scores[min(count - 1, high)]


def score(url: str, page: CrawlDatum) -> object:
    """Returns the value that pages are sorted by with scoring-opic."""
    return page.score


def tied_selection(
    found: Iterable[tuple[str, CrawlDatum]],
    expected: Iterable[tuple[str, CrawlDatum]],
    criterion: Callable[[str, CrawlDatum], object] = score,
) -> set[str]:
    """Tie: which of the pages with equal sort values get the last places of a fetch list, of a
    reducer or of a host.

    Nutch takes those that its sort happens to deliver first, minutch goes by a hash of the URL.
    `criterion` gives what tied pages have in common. Returns the URLs that only one of two fetch
    lists has; AssertionError unless each has as many of them with the same criterion.
    """
    ours, theirs = dict(found), dict(expected)
    only_ours = Counter(criterion(url, page) for url, page in ours.items() if url not in theirs)
    only_theirs = Counter(criterion(url, page) for url, page in theirs.items() if url not in ours)
    assert only_ours == only_theirs
    return ours.keys() ^ theirs.keys()


def inlinks_as_sets(linkdb: Path) -> Database:
    """Tie: the order of the links of a page. Nutch's is that of a HashSet, minutch's that of the
    input.

    Returns the records of each part of a LinkDb, in order, their links as sets; AssertionError if
    one comes twice.
    """
    db = LinkDb(linkdb)
    found = {}
    for part in db.require_parts():
        with SequenceFileReader(part / "data") as reader:
            found[part.name] = [
                (DataInput(key).read_text(), links_as_set(value, db.layout))
                for key, value in reader
            ]
    return found


def links_as_set(value: bytes, layout: str) -> frozenset[Link]:
    """The links of a serialized Inlinks; AssertionError if one comes twice."""
    links = Inlinks.read(DataInput(value), layout)
    assert len(links) == int.from_bytes(value[:4], "big")
    return frozenset(
        (link.from_url, link.anchor, link.metadata.to_bytes() if link.metadata else b"")
        for link in links
    )


def dump_as_sets(text: str) -> list[tuple[str, list[str]]]:
    """The same tie in the text of a LinkDb: for each page what stands before its links, and the
    links, sorted.
    """
    pages = (page.split("\n fromUrl: ") for page in text.split("\n\n"))
    return [(head, sorted(links)) for head, *links in pages]


def assert_cut(found: Database, expected: Database, uncut: Database, limit: int) -> None:
    """Tie: which links remain where linkdb.max.inlinks cuts: as many as may be, of those that there
    are without it.

    `uncut` is what comes out without a limit; pages with no more links than that have the same in
    all three.
    """
    assert found.keys() == expected.keys()
    for part, pages in found.items():
        every = dict(uncut[part])
        assert [url for url, _ in pages] == [url for url, _ in expected[part]]
        for (url, ours), (_, theirs) in zip(pages, expected[part], strict=True):
            assert ours <= every[url] and theirs <= every[url]
            assert len(theirs) == len(ours) == min(limit, len(every[url]))
