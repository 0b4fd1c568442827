"""Looks up addresses in the databases or the web service of MaxMind, and makes fields of a
document.

Names and values are Nutch's: the country is that of registration, `latLon` has a comma, and all
that is not known is left out. Source: org.apache.nutch.indexer.geoip.GeoIPDocumentCreator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from minutch.hadoop.formats.javahash import double_to_string
from minutch.records.document import FieldValue, Long

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
_COUNTRY_TRAITS: Final = {
    name: field
    for name, field in _TRAITS.items()
    if name not in ("isHostingProvider", "isLegitimateProxy")
}


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
