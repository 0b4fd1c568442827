"""index-geoip: adds the location of a page's server, by its address (store.ip.address must be
true).

    index.geoip.db.KIND              database files in MaxMind's format, in a configuration folder;
                                     KIND is anonymous, asn, city, connection, country, domain or
                                     isp
    index.geoip.insights.userid      account and key for MaxMind's web service, which is asked once
                                     for each address;
    index.geoip.insights.licensekey  index.geoip.insights.host is its host

Fields are added once, whichever databases know them; the table DATABASES has their names. Needs
geoip2: `minutch[geoip]`. Source: org.apache.nutch.indexer.geoip.GeoIPIndexingFilter. A database
that is not there or is of another kind is an error here, where Nutch goes on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import polars as pl

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.hadoop.formats.javahash import double_to_string
from minutch.plugin.documents import Documents, Pages, column_of
from minutch.plugin.points import IndexingFilter, Parse
from minutch.records.crawldatum import CrawlDatum
from minutch.records.document import FieldValue, Long, NutchDocument
from minutch.records.links import Inlinks
from minutch.records.metadata import IP_ADDRESS_KEY

# Looks up addresses in the databases or the web service of MaxMind, and makes fields of a
# document.
#
# Names and values are Nutch's: the country is that of registration, `latLon` has a comma, and all
# that is not known is left out. Source: org.apache.nutch.indexer.geoip.GeoIPDocumentCreator.

Field = tuple[str, FieldValue | None]

_TRAITS: Final = {
    "isAnonymous": "is_anonymous",
    "isAnonymousVpn": "is_anonymous_vpn",
    "isAnycast": "is_anycast",
    "isHostingProvider": "is_hosting_provider",
    "isLegitimateProxy": "is_legitimate_proxy",
    "isPublicProxy": "is_public_proxy",
    "isResidentialProxy": "is_residential_proxy",
    "isTorExitNode": "is_tor_exit_node",
}
# GeoIPDocumentCreator.createDocFromCountryDb adds no others.
_COUNTRY_TRAITS: Final = {
    name: field
    for name, field in _TRAITS.items()
    if name not in ("isHostingProvider", "isLegitimateProxy")
}
log = logging.getLogger(__name__)

_Source = Callable[[str], Iterator[Field]]


def anonymous(found: Any) -> Iterator[Field]:
    """Yields the fields from the database of anonymous networks."""
    yield "anonymousNetworkAddress", _text(found.network)
    yield "isAnonymous", found.is_anonymous
    yield "isAnonymousVpn", found.is_anonymous_vpn
    yield "isHostingProxy", found.is_hosting_provider
    yield "isPublicProxy", found.is_public_proxy
    yield "isResidentialProxy", found.is_residential_proxy
    yield "isTorExitNode", found.is_tor_exit_node


def asn(found: Any) -> Iterator[Field]:
    """Yields the fields from the database of autonomous systems."""
    yield "asnNetworkAddress", _text(found.network)
    yield "autonomousSystemNumber", _long(found.autonomous_system_number)
    yield "autonomousSystemOrganization", found.autonomous_system_organization


def connection(found: Any) -> Iterator[Field]:
    """Yields the fields from the database of connection types."""
    yield "connectionType", found.connection_type
    yield "connectionNetworkAddress", _text(found.network)


def domain(found: Any) -> Iterator[Field]:
    """Yields the fields from the database of domains."""
    yield "domain", found.domain
    yield "domainNetworkAddress", _text(found.network)


def isp(found: Any) -> Iterator[Field]:
    """Yields the fields from the database of providers."""
    yield "autonSystemNum", _long(found.autonomous_system_number)
    yield "autonSystemOrg", found.autonomous_system_organization
    yield "isp", found.isp
    yield "org", found.organization


def country(found: Any) -> Iterator[Field]:
    """Yields the fields from the database of countries."""
    yield from _continent_and_country(found)
    yield "countryType", found.represented_country.type
    yield "countryNetworkAddress", _text(found.traits.network)
    yield from _traits(found, _COUNTRY_TRAITS)


def city(found: Any) -> Iterator[Field]:
    """Returns the database of cities."""
    return _place(found, "cityNetworkAddress")


def insights(found: Any) -> Iterator[Field]:
    """Returns the web service."""
    return _place(found, "insightsNetworkAddress")


def _place(found: Any, network: str) -> Iterator[Field]:
    yield "cityName", found.city.name
    yield "cityConfidence", found.city.confidence
    yield "cityGeoNameId", _long(found.city.geoname_id)
    yield from _continent_and_country(found)
    place = found.location
    if place.latitude is not None and place.longitude is not None:
        yield "latLon", f"{double_to_string(place.latitude)},{double_to_string(place.longitude)}"
    yield "accuracyRadius", place.accuracy_radius
    yield "timeZone", place.time_zone
    yield "populationDensity", place.population_density
    yield "postalCode", found.postal.code
    yield "postalConfidence", found.postal.confidence
    yield "countryType", found.represented_country.type
    divisions = found.subdivisions
    for name, division in (
        ("most", divisions.most_specific),
        ("least", next(iter(divisions), None)),
    ):
        if division is not None:
            yield f"{name}SpecificSubDivName", division.name
            yield f"{name}SpecificSubDivIsoCode", division.iso_code
            yield f"{name}SpecificSubDivConfidence", division.confidence
            yield f"{name}SpecificSubDivGeoNameId", _long(division.geoname_id)
    traits = found.traits
    yield "autonomousSystemNumber", _long(traits.autonomous_system_number)
    yield "autonomousSystemOrganization", traits.autonomous_system_organization
    yield "connectionType", traits.connection_type
    yield "domain", traits.domain
    yield "isp", traits.isp
    yield "mobileCountryCode", traits.mobile_country_code
    yield "mobileNetworkCode", traits.mobile_network_code
    yield network, _text(traits.network)
    yield "organization", traits.organization
    yield "staticIpScore", None if traits.static_ip_score is None else float(traits.static_ip_score)
    yield "userCount", traits.user_count
    yield "userType", traits.user_type
    yield from _traits(found, _TRAITS)


def _continent_and_country(found: Any) -> Iterator[Field]:
    yield "continentCode", found.continent.code
    yield "continentGeoNameId", _long(found.continent.geoname_id)
    yield "continentName", found.continent.name
    registered = found.registered_country
    yield "countryIsoCode", registered.iso_code
    yield "countryName", registered.name
    yield "countryConfidence", registered.confidence
    yield "countryGeoNameId", _long(registered.geoname_id)
    yield "countryInEuropeanUnion", registered.is_in_european_union


def _traits(found: Any, names: dict[str, str]) -> Iterator[Field]:
    for name, field in names.items():
        yield name, getattr(found.traits, field)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _long(value: int | None) -> Long | None:
    return None if value is None else Long(value)


DATABASES: Final[dict[str, tuple[str, Callable[[Any], Iterator[Field]]]]] = {
    "anonymous": ("anonymous_ip", anonymous),
    "asn": ("asn", asn),
    "city": ("city", city),
    "connection": ("connection_type", connection),
    "country": ("country", country),
    "domain": ("domain", domain),
    "isp": ("isp", isp),
}
"""Kind of a database (the last word of its property): the method of geoip2's reader, and the fields
of its answer.
"""


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
            client = _library("geoip2.webservice").Client(
                conf.get_int("index.geoip.insights.userid", 0),
                conf.get("index.geoip.insights.licensekey", ""),
                host=conf.get_text("index.geoip.insights.host"),
            )
            self.sources["insights"] = lambda address: insights(client.insights(address))
        if not self.sources:
            log.warning(
                "index-geoip has nothing to ask: set index.geoip.db.KIND or"
                " index.geoip.insights.userid"
            )
        # Pages of a server are many, and the web service is paid by the question.
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
        # A filter before this one has such a field: values are compared one by one.
        if any(documents.column(name) is not None for name in names):
            return super().filter_columns(documents, pages)
        for name in names:
            table = pl.DataFrame(
                [distinct.alias("ip"), column_of("value", [fields.get(name) for fields in known])]
            )
            documents.add(
                name,
                addresses.to_frame("ip").join(table, on="ip", how="left", maintain_order="left")[
                    "value"
                ],
            )
        return None


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
        # The reader of geoip2 tells the kind of a file by its first answer alone.
        source("127.0.0.1")
    except TypeError as exc:
        raise ConfigError(
            f"{name}: {path} is a database of another kind: {reader.metadata().database_type}"
        ) from exc
    return source


def _library(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as exc:
        raise ConfigError(
            f"index-geoip needs the package geoip2 (pip install minutch[geoip]): {exc}"
        ) from exc
