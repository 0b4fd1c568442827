"""Rows of kernels that read or write records: CrawlDatum, ParseData, links, WebGraph."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from isal import isal_zlib

from minutch.cycle.linkdb.invertlinks import inflated_links, merged
from minutch.cycle.webgraph import dumpers
from minutch.hadoop.formats.batch import Batch, Places
from minutch.hadoop.formats.javaio import DataInput, encode_text
from minutch.inspect.query.parselinks import LinkCollector, UrlPlaces
from minutch.kernels import inlinks as inlinks_kernels
from minutch.records import crawldatum_columns as crawldata
from minutch.records import parsedata_columns as parsedata
from minutch.records import webgraph
from minutch.records.links import LAYOUT_METADATA, Inlinks
from minutch.records.links_columns import InlinksEncoder, LinkSets, decode_inlinks, decode_outlinks
from minutch.records.metadata import FETCH_TIME_KEY
from minutch.records.parsedata import ParseData
from minutch.records.parsedata_columns import with_content_meta
from minutch.records.webgraph import LinkDatum
from minutch.work.tables.frame import key_order, sort_by_key
from tests.benchmarks.kernels.made import Made
from tests.benchmarks.kernels.rows import Row, Ways, plain, rows_of
from tests.benchmarks.kernels.vectors import big_endian, crawl_data, encoded_crawl_data, text

ROWS: list[Row] = []
row = rows_of(ROWS)

_MOST_INLINKS = 5
_TYPE = "Content-Type"
_PACKED = ("status", "fetch_time", "score")


def _values(found: Any) -> list[bytes]:
    """Returns the values of records, however they come."""
    if isinstance(found, pl.Series):
        return found.to_list()
    if isinstance(found, Batch):
        return [found.value(at) for at in range(found.size)]
    pieces = [found] if isinstance(found, Places) else found
    return [value for piece in pieces for _, value in plain(piece)]


@row("crawldatum.decode", by="NumPy: fields of gathered bytes")
def decode_crawl_data(made: Made) -> Ways:
    batch = made.batch
    return Ways(lambda: crawldata.decode(batch), lambda: crawl_data(batch))


@row("crawldatum.plain", by="NumPy: fields of gathered bytes")
def decode_some_fields_of_crawl_data(made: Made) -> Ways:
    batch = made.batch
    return Ways(
        lambda: crawldata.decode_packed(batch),
        lambda: crawl_data(batch, _PACKED, whole=False),
    )


@row("crawldatum.encode", by="Polars: byte strings added")
def encode_crawl_data(made: Made) -> Ways:
    rows = made.rows

    def seen(found: Any) -> list[bytes]:
        if isinstance(found, pl.Series):
            return found.to_list()
        data, at, length = found
        return [data[a : a + n].tobytes() for a, n in zip(at, length, strict=True)]

    return Ways(lambda: crawldata.encode(rows), lambda: encoded_crawl_data(rows), seen)


@row("parsedata.split", "parsedata.first_values", by="Python: record by record")
def find_titles_and_types_of_pages(made: Made) -> Ways:
    batch = made.parse_data

    def by_kernel() -> tuple[pl.Series, pl.Series]:
        table = parsedata.decode(batch)
        return table.titles(), table.first_values(_TYPE, "content")

    def by_python() -> tuple[list[bytes], list[bytes]]:
        pages = [ParseData.from_bytes(batch.value(at)) for at in range(batch.size)]
        titles = [encode_text(page.title) for page in pages]
        return titles, [encode_text(page.content_meta.get(_TYPE) or "") for page in pages]

    return Ways(by_kernel, by_python)


@row("parsedata.count_values", "parsedata.place_values", by="Python: record by record")
def find_all_values_of_metadata(made: Made) -> Ways:
    table = parsedata.decode(made.parse_data)
    starts = table.places["content_at"].to_list()
    data = table.buffer.tobytes()

    def by_python() -> pl.DataFrame:
        found = []
        for number, start in enumerate(starts):
            source = DataInput(data, start)
            for _ in range(source.read_int()):
                name = source.read_text()
                values = [source.read_text_bytes() for _ in range(source.read_int())]
                if name == _TYPE:
                    found += [(number, value) for value in values]
        return pl.DataFrame(found, schema={"row": pl.Int64, "value": pl.Binary}, orient="row")

    return Ways(lambda: table.all_values(_TYPE, "content"), by_python)


@row("parsedata.find_value", "parsedata.replace", by="Python: record by record")
def set_metadata_of_pages(made: Made) -> Ways:
    batch = made.parse_data

    def by_python() -> list[bytes]:
        found = []
        for number in range(batch.size):
            page = ParseData.from_bytes(batch.value(number))
            page.content_meta.set(_TYPE, "text/plain")
            found.append(page.to_bytes())
        return found

    def seen(found: Batch | list[bytes]) -> list[bytes]:
        return found if isinstance(found, list) else _values(found)

    return Ways(lambda: with_content_meta(batch, _TYPE, "text/plain"), by_python, seen)


def _outlinks(records: Batch | list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes, bytes]]:
    """Returns the links of ParseData, record by record."""
    pairs = plain(records) if isinstance(records, Batch) else records
    return [
        (key, encode_text(link.to_url), encode_text(link.anchor))
        for key, value in pairs
        for link in ParseData.from_bytes(value).outlinks
    ]


@row("links.count_links", "links.read_links", by="Python: record by record")
def read_outlinks_of_pages(made: Made) -> Ways:
    batch = made.parse_data
    schema = dict.fromkeys(("key", "to_url", "anchor"), pl.Binary)
    return Ways(
        lambda: decode_outlinks(batch),
        lambda: pl.DataFrame(_outlinks(batch), schema=schema, orient="row"),
    )


@row("links.put_urls", "links.find_links", by="Polars: columns of links, hashes, a join")
def find_links_to_known_urls(made: Made) -> Ways:
    table = parsedata.decode(made.parse_data)
    known = table.outlinks()["to_url"].unique(maintain_order=True).gather_every(2)
    told = np.zeros(len(known), np.bool_)

    def by_kernel() -> list[int]:
        collector = LinkCollector(UrlPlaces(known), told)
        collector.add(table)
        return [to for _, places in collector.of(np.ones(len(table), np.bool_)) for to in places]

    def by_polars() -> list[int]:
        places = pl.DataFrame({"id": known.hash()}).with_row_index("to")
        links = table.outlinks().select(id=pl.col("to_url").hash())
        return links.join(places, on="id", how="inner", maintain_order="left")["to"].to_list()

    return Ways(by_kernel, by_polars)


@row("links.find_urls", by="Polars: hashes, a join")
def find_known_urls(made: Made) -> Ways:
    urls = parsedata.decode(made.parse_data).outlinks()["to_url"].unique(maintain_order=True)
    known = urls.gather_every(2)
    places = UrlPlaces(known)

    def by_polars() -> pl.Series:
        places = pl.DataFrame({"url": known}).with_row_index("to")
        found = pl.DataFrame({"url": urls}).join(places, on="url", how="left")
        return found["to"].cast(pl.Int32).fill_null(-1)

    return Ways(lambda: places.of(urls), by_polars, list)


@row("inlinks.spread", by="ISA-L, and Python: record by record")
def read_external_links_of_stored_pages(made: Made) -> Ways:
    batch = made.stored_parse_data

    def by_kernel() -> pl.DataFrame:
        links = inflated_links(batch, inlinks_kernels.SAME)
        assert links is not None, "records that the kernel knows"
        return links.table

    def by_python() -> pl.DataFrame:
        pairs = [(key, isal_zlib.decompress(value)) for key, value in plain(batch)]
        schema = dict.fromkeys(("from_url", "key", "anchor"), pl.Binary)
        links = pl.DataFrame(_outlinks(pairs), schema=schema, orient="row")
        hosts = [
            pl.col(name).cast(pl.String).str.extract("^https?://([^/?#]+)").str.to_lowercase()
            for name in ("from_url", "key")
        ]
        return links.filter(hosts[0] != hosts[1]).select("key", "from_url", "anchor")

    return Ways(by_kernel, by_python)


@row("inlinks.merge_in", by="Polars: sort, unique, cum_count")
def merge_links_to_records(made: Made) -> Ways:
    links = made.links

    def by_kernel() -> pl.DataFrame:
        every = np.arange(len(links), dtype=np.uint32)
        return merged(links, key_order(links, every), _MOST_INLINKS).table().drop("metadata")

    def by_polars() -> pl.DataFrame:
        table = links.sort("key", maintain_order=True).unique(maintain_order=True)
        return table.filter(pl.col("from_url").cum_count().over("key") <= _MOST_INLINKS)

    return Ways(by_kernel, by_polars)


def _inlinks(made: Made) -> pl.DataFrame:
    return sort_by_key(made.links).with_columns(metadata=pl.lit(None, pl.Binary))


def _encoded_inlinks(links: pl.DataFrame) -> list[bytes]:
    """Returns the Inlinks of each key, serialized."""
    table = links.select("key", link=text(pl.col("from_url")) + text(pl.col("anchor")) + b"\0")
    groups = table.group_by("key", maintain_order=True).agg("link")["link"]
    return [len(some).to_bytes(4, "big") + b"".join(some) for some in groups.to_list()]


@row("links.count_links", "links.read_links", by="Python: record by record")
def read_inlinks(made: Made) -> Ways:
    links = _inlinks(made)
    keys = links["key"].unique(maintain_order=True).to_list()
    batch = Batch.of(keys, _encoded_inlinks(links))

    def by_python() -> pl.DataFrame:
        found = [
            (key, encode_text(link.from_url), encode_text(link.anchor), None)
            for key, value in plain(batch)
            for link in Inlinks.read(DataInput(value), LAYOUT_METADATA)
        ]
        names = ("key", "from_url", "anchor", "metadata")
        return pl.DataFrame(found, schema=dict.fromkeys(names, pl.Binary), orient="row")

    return Ways(lambda: decode_inlinks(batch, LAYOUT_METADATA), by_python)


@row("links.take_links", "links.write_inlinks", by="Polars: byte strings added, by key; ISA-L")
def write_inlinks(made: Made) -> Ways:
    links = _inlinks(made)
    sets = LinkSets.of(links)

    def by_kernel() -> list[bytes]:
        return [piece.value(at) for piece in _encoder().records(sets) for at in range(piece.size)]

    def by_polars() -> list[bytes]:
        return [isal_zlib.compress(value, 1) for value in _encoded_inlinks(links)]

    return Ways(by_kernel, by_polars, lambda found: [*map(isal_zlib.decompress, found)])


def _encoder() -> InlinksEncoder:
    return InlinksEncoder(LAYOUT_METADATA)


def _graph_links(made: Made) -> pl.DataFrame:
    links = made.links
    numbers = np.arange(len(links))
    return links.select("key", url="from_url", anchor="anchor").with_columns(
        score=pl.Series(numbers.astype(np.float32)),
        timestamp=pl.Series(numbers.astype(np.int64) << 20),
        link_type=pl.Series((numbers % 2 + 1).astype(np.int8)),
    )


def _encoded_graph_links(links: pl.DataFrame) -> pl.Series:
    """Returns the LinkDatum of each row, serialized."""
    tail = [big_endian(links[name]) for name in ("score", "timestamp", "link_type")]
    strings = text(pl.col("url")) + text(pl.col("anchor"))
    return links.select(strings + tail[0] + tail[1] + tail[2]).to_series()


@row("webgraph.read_link_data", by="Python: record by record")
def read_links_of_a_graph(made: Made) -> Ways:
    links = _graph_links(made)
    batch = Batch.of(links["key"].to_list(), _encoded_graph_links(links).to_list())

    def by_python() -> pl.DataFrame:
        found = []
        for key, value in plain(batch):
            link = LinkDatum.from_bytes(value)
            strings = key, encode_text(link.url), encode_text(link.anchor)
            found.append((*strings, link.score, link.timestamp, link.link_type))
        return pl.DataFrame(found, schema=links.schema, orient="row")

    return Ways(lambda: webgraph.decode_link_data(batch), by_python)


@row("webgraph.measure_link_data", "webgraph.write_link_data", by="Polars: byte strings added")
def write_links_of_a_graph(made: Made) -> Ways:
    links = _graph_links(made)
    return Ways(
        lambda: [*webgraph.link_data_records(links)],
        lambda: _encoded_graph_links(links),
        _values,
    )


@row("webgraph.content_times", by="Python: record by record")
def read_outlinks_with_times(made: Made) -> Ways:
    batch = with_content_meta(made.parse_data, FETCH_TIME_KEY, "1763700000000")

    def by_python() -> list[int]:
        found = []
        for number in range(batch.size):
            page = ParseData.from_bytes(batch.value(number))
            found += [int(page.content_meta.get(FETCH_TIME_KEY) or 0)] * len(page.outlinks)
        return found

    return Ways(
        lambda: webgraph.decode_dated_outlinks(batch)["timestamp"],
        by_python,
    )


@row("webgraph.join_runs", by="Polars: group_by; Python: join")
def join_pieces_by_key(made: Made) -> Ways:
    links = made.links.sort("key").select("key", node=pl.col("from_url") + pl.col("anchor"))

    def by_polars() -> list[bytes]:
        groups = links.group_by("key", maintain_order=True).agg("node")["node"]
        return [len(some).to_bytes(4, "big") + b"".join(some) for some in groups.to_list()]

    def seen(found: list[Places] | list[bytes]) -> list[bytes]:
        return found if isinstance(found[0], bytes) else _values(found)

    return Ways(lambda: [*dumpers._link_records(links)], by_polars, seen)
