"""Rows of kernels over columns of strings and numbers."""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from minutch.cycle.crawldb.matching import by_score, match
from minutch.cycle.crawldb.seeds import SeedText, seeds_in
from minutch.cycle.fetchlist.select import url_hashes
from minutch.cycle.linkdb.rules import _compared
from minutch.hadoop.formats.batch import own_column, places, string_column
from minutch.kernels import inlinks, maps, sequencefile
from minutch.kernels import keycolumns as matching
from minutch.kernels.arrow import from_series
from minutch.plugin.chains import SCOPE_OUTLINK, URLFilters, URLNormalizers
from minutch.plugin.columns import by_distinct, numbered
from minutch.plugin.urlrules import UrlShortcut
from minutch.records import metadata_columns as metadata
from minutch.urls.hostcolumns import hosts_of, lack_host
from minutch.urls.patterns import form_hashes, patterns
from minutch.work.tables.frame import has_repeats, sort_by_key
from minutch.work.tables.shuffle import Shuffle, partition_of
from plugins.urlfilter_regex.regex_filter import SegmentLoop
from tests.benchmarks.kernels.made import Made
from tests.benchmarks.kernels.rows import Row, Ways, rows_of
from tests.benchmarks.kernels.vectors import gathered, java_hashes, joined, strings_at

ROWS: list[Row] = []
row = rows_of(ROWS)

_HOST = r"^(?i:https?)://([A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:[/?#]|$)"
_LOOP = re.compile(r"(/[^/]+)/[^/]+\1/[^/]+\1/")
_PARTS = 16


@row("sort.sort_entries", "sort.pack_entries", by="Polars: sort(maintain_order=True)")
def sort_rows_by_key(made: Made) -> Ways:
    mixed = made.numbered.sample(fraction=1.0, shuffle=True, seed=1)
    return Ways(
        lambda: sort_by_key(mixed),
        lambda: mixed.sort("key", maintain_order=True),
    )


@row("sort.pack", by="Polars and Arrow: to_arrow, from_arrow")
def copy_strings_of_a_column(made: Made) -> Ways:
    column, oldest = made.ordered, pl.CompatLevel.oldest()
    return Ways(
        lambda: own_column(column),
        lambda: pl.Series(pl.from_arrow(column.to_arrow(compat_level=oldest))),
    )


def _places(column: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    bounds = joined(column)[1]
    return bounds[:-1].astype(np.int64), np.diff(bounds).astype(np.int32)


@row(
    "keycolumns.group_by",
    "keycolumns.add_sizes",
    "keycolumns.held_bytes",
    "keycolumns.take_strings",
    "keycolumns.take_numbers",
    by="Polars: sort by partition and key, partition_by",
)
def shuffle_rows(made: Made) -> Ways:
    mixed = made.numbered.sample(fraction=1.0, shuffle=True, seed=1)

    def shuffled() -> list[pl.DataFrame]:
        with Shuffle(_PARTS, mixed.schema, budget=1 << 40, spill=made.folder) as shuffle:
            for piece in mixed.iter_slices(made.count // 4 + 1):
                shuffle.add(piece)
            return [pl.concat(shuffle.sorted(part)) for part in range(_PARTS)]

    def by_polars() -> list[pl.DataFrame]:
        parts = mixed.with_columns(partition_of(mixed["key"], _PARTS))
        parts = parts.sort("part", "key", maintain_order=True)
        return parts.partition_by("part", maintain_order=True, include_key=False)

    return Ways(shuffled, by_polars)


@row("keycolumns.meet", by="Polars: rle_id, search_sorted")
def look_keys_up_in_a_table(made: Made) -> Ways:
    some, ordered = made.some, made.ordered

    def by_polars() -> tuple[pl.Series, pl.Series, pl.Series]:
        before = ordered.search_sorted(some, "left").cast(pl.Int64)
        found = ordered.gather(before.clip(0, len(ordered) - 1)) == some
        return (
            some.rle_id(),
            pl.select(pl.when(found).then(before).otherwise(-1)).to_series(),
            before,
        )

    return Ways(lambda: tuple(match(some, ordered)), by_polars)


@row("keycolumns.repeats", by="Polars: shift, any")
def find_repeats_in_a_sorted_column(made: Made) -> Ways:
    ordered = made.ordered
    return Ways(lambda: has_repeats(ordered), lambda: bool((ordered == ordered.shift()).any()))


@row("keycolumns.sort_runs_in", by="NumPy: lexsort")
def order_links_by_score(made: Made) -> Ways:
    random = np.random.default_rng(1)
    group = np.sort(random.integers(0, made.count // 8 + 1, made.count))
    scores, order = random.random(made.count, np.float32), np.empty(made.count, np.int64)

    def by_kernel() -> np.ndarray:
        matching.sort_runs(group, scores, order)
        return order

    assert len(by_score(np.arange(made.count), group, scores, made.count)) == made.count
    return Ways(by_kernel, lambda: np.lexsort((-scores, group)))


@row("keycolumns.rows_led_to", by="NumPy: take, compress")
def choose_links_of_pages(made: Made) -> Ways:
    random = np.random.default_rng(2)
    group = np.sort(random.integers(0, made.count // 8 + 1, made.count))
    row_of = random.integers(-1, 9, made.count // 8 + 1)
    rows = np.flatnonzero(random.random(made.count) < 0.9)

    def by_kernel() -> tuple[np.ndarray, np.ndarray]:
        chosen, led_to = np.empty(len(rows), np.int64), np.empty(len(rows), np.uint32)
        count = matching.rows_led_to(group, rows, row_of, chosen, led_to)
        return chosen[:count], led_to[:count]

    def by_numpy() -> tuple[np.ndarray, np.ndarray]:
        led_to = row_of[group[rows]]
        return rows[led_to >= 0], led_to[led_to >= 0].astype(np.uint32)

    return Ways(by_kernel, by_numpy)


@row("keycolumns.number", by="Polars: first().over(), rank")
def number_distinct_strings(made: Made) -> Ways:
    twice = pl.concat([made.keys, made.keys.reverse()], rechunk=True)

    def by_polars() -> tuple[pl.Series, pl.Series]:
        table = twice.to_frame("key").with_row_index("row")
        first = table.select(pl.col("row").first().over("key")).to_series()
        return first.unique(maintain_order=True), first.rank("dense") - 1

    return Ways(lambda: numbered(twice), by_polars)


@row("urls.find_hosts", by="Polars: str.extract")
def find_hosts(made: Made) -> Ways:
    urls = made.urls
    return Ways(lambda: hosts_of(urls), lambda: urls.str.extract(_HOST))


@row("patterns.unsure_of_host", by="Polars: str.contains")
def look_for_missing_hosts(made: Made) -> Ways:
    urls = made.urls
    return Ways(
        lambda: lack_host(urls),
        lambda: ~urls.str.contains("^https?://[0-9A-Za-z][^/@]*(/|$)"),
    )


@row("patterns.url_patterns", by="Polars: str.extract, str.replace_all")
def find_patterns(made: Made) -> Ways:
    urls = made.urls
    return Ways(
        lambda: patterns(urls),
        lambda: urls.str.extract(r"^[a-z]+://([^?#]*)").str.replace_all(r"[0-9]+", "{n}"),
        lambda found: found.str.extract("/(.*)"),  # a host's numbers are its name
    )


@row("patterns.url_forms", by="Polars: str.replace_all, hash")
def hash_forms(made: Made) -> Ways:
    urls = made.urls

    def by_polars() -> pl.Series:
        forms = urls.str.replace_all(r"[0-9A-Za-z]{16,}", "{x}")
        return forms.hash().zip_with(forms != urls, pl.Series([0], dtype=pl.UInt64))

    return Ways(lambda: pl.Series(form_hashes(urls, 3)), by_polars, lambda found: found > 0)


@row("hash.partitions", by="NumPy: byte by byte, all strings at once")
def partition_keys(made: Made) -> Ways:
    keys = made.keys
    return Ways(
        lambda: partition_of(keys, _PARTS),
        lambda: (java_hashes(keys) & 0x7FFF_FFFF) % _PARTS,
    )


@row("hash.url_hashes", by="NumPy: byte by byte, all strings at once")
def hash_urls(made: Made) -> Ways:
    keys = made.keys
    return Ways(
        lambda: url_hashes(keys),
        lambda: java_hashes(keys, backwards=True).view(np.uint32) ^ np.uint32(1 << 31),
    )


@row("sequencefile.string_places", by="NumPy: the arithmetic of views")
def find_strings_of_a_column(made: Made) -> Ways:
    strings = from_series(made.keys)

    def by_numpy() -> tuple[np.ndarray, np.ndarray]:
        views = strings.views
        inside = views.ctypes.data + 4 + 16 * np.arange(len(views))
        buffers = strings.addresses.view(np.int64)[np.where(views[:, 0] > 12, views[:, 2], 0)]
        outside = buffers + views[:, 3].view(np.uint32)
        return np.where(views[:, 0] > 12, outside, inside), views[:, 0]

    return Ways(lambda: places(strings), by_numpy)


@row("sequencefile.extent", "sequencefile.fill_views", by="NumPy: views made of gathered bytes")
def make_a_column_of_places(made: Made) -> Ways:
    data = joined(made.keys)[0]
    at, length = _places(made.keys)
    return Ways(
        lambda: string_column("key", data, at, length),
        lambda: strings_at("key", data, at, length),
    )


@row("sequencefile.running_sum", by="NumPy: cumsum")
def add_up_lengths(made: Made) -> Ways:
    lengths = made.batch.value_len
    out = np.empty(len(lengths), np.int64)

    def by_kernel() -> tuple[int, np.ndarray]:
        return sequencefile.running_sum(lengths, out), out

    def by_numpy() -> tuple[int, np.ndarray]:
        ends = np.cumsum(lengths, dtype=np.int64)
        return int(ends[-1]), ends - lengths

    return Ways(by_kernel, by_numpy)


@row("sieve.sift_column", by="Polars: normalizers and filters, column by column")
def normalize_and_filter_urls(made: Made) -> Ways:
    normalizers, filters = URLNormalizers(made.conf, SCOPE_OUTLINK), URLFilters(made.conf)
    urls = made.urls

    def judged(some: pl.Series) -> pl.Series:
        return filters.filter_column(normalizers.normalize_column(some))

    shortcut = UrlShortcut(normalizers, filters)
    return Ways(
        lambda: shortcut.settle(urls, lambda asked: by_distinct(asked, judged))[0],
        lambda: judged(urls),
    )


@row("sieve.find_loops", by="Python: re, URL by URL")
def find_loops_of_segments(made: Made) -> Ways:
    urls, loops = made.urls, SegmentLoop(_LOOP.pattern)
    return Ways(
        lambda: loops.search_column(urls),
        lambda: [_LOOP.search(url) is not None for url in urls],
    )


@row("urls.find_seeds", by="Polars: str.split, str.find, str.slice")
def read_seeds(made: Made) -> Ways:
    lines = made.urls + "\tnutch.score=2.5"
    text = SeedText(1, "".join(f"{line}\n" for line in lines).encode())

    def by_polars() -> pl.DataFrame:
        found = pl.Series("url", [text.data.decode()]).str.split("\n").explode().to_frame()
        found = found.with_row_index("line", 1).filter(pl.col("url") != "")
        parts = pl.col("url").str.splitn("\t", 2).struct
        url, extra = parts.field("field_0"), parts.field("field_1")
        return found.select("line", url=url.str.strip_chars(), extra=extra)

    return Ways(lambda: seeds_in(text), by_polars)


@row("maps.find_entries", by="Python: map by map")
def find_metadata_by_name(made: Made) -> Ways:
    column, keys = made.rows["metadata"], made.keys
    return Ways(
        lambda: metadata.entries(column, keys, ["_rs_"]),
        lambda: pl.DataFrame(
            [
                (number, *entry)
                for number, data in enumerate(column)
                if data is not None
                for entry in metadata._slowly(data, b"", [b"_rs_"])
            ],
            schema=metadata.SCHEMA,
            orient="row",
        ),
    )


@row("maps.gather", by="NumPy: an index for each byte")
def gather_strings(made: Made) -> Ways:
    batch = made.batch
    address = batch.key_at + batch.keys.ctypes.data
    out = np.empty(int(batch.key_len.sum()), np.uint8)
    out_at = np.empty(batch.size, np.int64)

    def by_kernel() -> tuple[np.ndarray, np.ndarray]:
        maps.gather(address, batch.key_len, out, out_at)
        return out, out_at

    return Ways(by_kernel, lambda: gathered(batch.keys, batch.key_at, batch.key_len))


@row("inlinks.compare_hosts", by="Polars: str.extract, str.to_lowercase")
def compare_hosts_of_links(made: Made) -> Ways:
    pages, targets = made.links["from_url"], made.links["key"]

    def by_polars() -> pl.Series:
        hosts = [
            urls.cast(pl.String).str.extract(_HOST).str.to_lowercase() for urls in (pages, targets)
        ]
        codes = {True: inlinks.SAME, False: inlinks.DIFFERENT}
        return (hosts[0] == hosts[1]).replace_strict(codes, return_dtype=pl.Int8)

    return Ways(lambda: _compared(pages, targets), by_polars)
