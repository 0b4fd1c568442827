"""index-geoip: adds the location of a page's server, by its address (store.ip.address must be
true).

    index.geoip.db.KIND              database files in MaxMind's format, in a configuration folder;
                                     KIND is anonymous, asn, city, connection, country, domain or
                                     isp
    index.geoip.insights.userid      account and key for MaxMind's web service, which is asked once
                                     for each address;
    index.geoip.insights.licensekey  index.geoip.insights.host is its host

Fields are added once, whichever databases know them; `lookups` has their names. Needs geoip2:
`minutch[geoip]`. Source: org.apache.nutch.indexer.geoip.GeoIPIndexingFilter. A database that is not
there or is of another kind is an error here, where Nutch goes on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import polars as pl

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.plugin.documents import Documents, Pages, column_of
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import FieldValue, NutchDocument
from minutch.records.links import Inlinks
from minutch.records.metadata import IP_ADDRESS_KEY

from .lookups import DATABASES, Field, insights

log = logging.getLogger(__name__)

_Source = Callable[[str], Iterator[Field]]


class GeoIPIndexingFilter(IndexingFilter):
    """Adds places."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters)
        if not conf.get_boolean("store.ip.address"):
            log.warning(
                "index-geoip is active but addresses are not stored: set store.ip.address to true"
            )
        self.sources = {
            kind: _database(conf, kind) for kind in DATABASES if conf.get(f"index.geoip.db.{kind}")
        }
        if conf.get("index.geoip.insights.userid") and conf.get("index.geoip.insights.licensekey"):
            self.sources["insights"] = _service(conf)
        if not self.sources:
            log.warning(
                "index-geoip has nothing to ask: set index.geoip.db.KIND or"
                " index.geoip.insights.userid"
            )
        self.fields = lru_cache(maxsize=65536)(self._fields)

    def _fields(self, address: str) -> dict[str, list[FieldValue]]:
        """Looks up an address; returns field → values."""
        found: dict[str, list[FieldValue]] = {}
        for kind, source in self.sources.items():
            try:
                known = [field for field in source(address) if field[1] is not None]
            except Exception as error:  # noqa: BLE001 - whatever a damaged database raises
                log.error(
                    "Error querying %s for IP %s: %s: %s",
                    kind,
                    address,
                    type(error).__name__,
                    error,
                )
                continue
            for name, value in (
                [("ip", address), *known] if known or kind in ("city", "insights") else []
            ):
                if value is not None and value not in found.setdefault(name, []):
                    found[name].append(value)
        return found

    def filter(
        self, doc: NutchDocument, parse: Parse, url: str, datum: CrawlDatum, inlinks: Inlinks | None
    ) -> NutchDocument | None:
        address = parse.data.content_meta.get(IP_ADDRESS_KEY)
        for name, values in self.fields(address).items() if address else ():
            for value in values:
                if name not in doc.fields or value not in doc.fields[name].values:
                    doc.add(name, value)
        return doc

    def filter_columns(self, documents: Documents, pages: Pages) -> pl.Series | None:
        addresses = pages.content_meta(IP_ADDRESS_KEY)
        distinct = addresses.filter(addresses.str.len_bytes() > 0).unique()
        known = [self.fields(address) for address in distinct]
        names = list(dict.fromkeys(name for fields in known for name in fields))
        if any(documents.column(name) is not None for name in names):
            return super().filter_columns(documents, pages)
        for name in names:
            _add(documents, name, addresses, distinct, [fields.get(name) for fields in known])
        return None


def _add(
    documents: Documents,
    name: str,
    addresses: pl.Series,
    distinct: pl.Series,
    known: list[list[FieldValue] | None],
) -> None:
    """Adds a field by the addresses of the documents."""
    table = pl.DataFrame([distinct.alias("ip"), column_of("value", known)])
    documents.add(
        name,
        addresses.to_frame("ip").join(table, on="ip", how="left", maintain_order="left")["value"],
    )


def _database(conf: Configuration, kind: str) -> _Source:
    """Returns a database file. Raises ConfigError."""
    name, path = f"index.geoip.db.{kind}", conf.resource(conf.get(f"index.geoip.db.{kind}", ""))
    if path is None:
        raise ConfigError(f"{name}: no such file: {conf.get(name)}")
    method, fields = DATABASES[kind]
    errors = _library("geoip2.errors")
    try:
        reader = _library("geoip2.database").Reader(path)
    except (OSError, ValueError, _library("maxminddb").InvalidDatabaseError) as exc:
        raise ConfigError(f"{name}: {path} is no database in MaxMind's format: {exc}") from exc
    look_up = getattr(reader, method)

    def source(address: str) -> Iterator[Field]:
        try:
            return fields(look_up(address))
        except errors.AddressNotFoundError:
            return iter(())

    try:
        source("127.0.0.1")
    except TypeError as exc:
        raise ConfigError(
            f"{name}: {path} is a database of another kind: {reader.metadata().database_type}"
        ) from exc
    return source


def _service(conf: Configuration) -> _Source:
    """MaxMind's web service."""
    client = _library("geoip2.webservice").Client(
        conf.get_int("index.geoip.insights.userid", 0),
        conf.get("index.geoip.insights.licensekey", ""),
        host=conf.get_text("index.geoip.insights.host"),
    )
    return lambda address: insights(client.insights(address))


def _library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as exc:
        raise ConfigError(
            f"index-geoip needs the package geoip2 (pip install minutch[geoip]): {exc}"
        ) from exc
