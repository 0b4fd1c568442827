"""index-geoip: databases made in the test, and MaxMind's web service as a local stand-in."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from minutch.conf import Configuration
from minutch.errors import ConfigError
from tests.support.documents import Fields, Made, documents_of

pytest.importorskip("geoip2", reason="the extra `geoip` is not installed")
mmdb_writer = pytest.importorskip(
    "mmdb_writer", reason="mmdb_writer, which makes databases, is not installed"
)

PLACE: dict[str, Any] = {
    "city": {"geoname_id": 2950159, "confidence": 60, "names": {"en": "Berlin", "de": "Berlin"}},
    "continent": {"code": "EU", "geoname_id": 6255148, "names": {"en": "Europe"}},
    "registered_country": {
        "iso_code": "DE",
        "geoname_id": 2921044,
        "names": {"en": "Germany"},
        "is_in_european_union": True,
    },
    "represented_country": {"type": "military"},
    "location": {
        "latitude": 52.5,
        "longitude": 13.25,
        "accuracy_radius": 10,
        "time_zone": "Europe/Berlin",
    },
    "postal": {"code": "10115", "confidence": 40},
    "subdivisions": [
        {"iso_code": "BE", "geoname_id": 1, "names": {"en": "State"}, "confidence": 70},
        {"iso_code": "MI", "geoname_id": 2, "names": {"en": "Mitte"}},
    ],
    "traits": {"is_anycast": True, "user_type": "hosting"},
}
SHOWN: Fields = {
    "accuracyRadius": [10],
    "cityConfidence": [60],
    "cityGeoNameId": [2950159],
    "cityName": ["Berlin"],
    "continentCode": ["EU"],
    "continentGeoNameId": [6255148],
    "continentName": ["Europe"],
    "countryGeoNameId": [2921044],
    "countryInEuropeanUnion": [True],
    "countryIsoCode": ["DE"],
    "countryName": ["Germany"],
    "countryType": ["military"],
    "ip": ["203.0.113.5"],
    "isAnonymous": [False],
    "isAnonymousVpn": [False],
    "isAnycast": [True],
    "isHostingProvider": [False],
    "isLegitimateProxy": [False],
    "isPublicProxy": [False],
    "isResidentialProxy": [False],
    "isTorExitNode": [False],
    "latLon": ["52.5,13.25"],
    "leastSpecificSubDivConfidence": [70],
    "leastSpecificSubDivGeoNameId": [1],
    "leastSpecificSubDivIsoCode": ["BE"],
    "leastSpecificSubDivName": ["State"],
    "mostSpecificSubDivGeoNameId": [2],
    "mostSpecificSubDivIsoCode": ["MI"],
    "mostSpecificSubDivName": ["Mitte"],
    "postalCode": ["10115"],
    "postalConfidence": [40],
    "timeZone": ["Europe/Berlin"],
    "userType": ["hosting"],
}
KINDS: dict[str, tuple[str, dict[str, Any], Fields]] = {
    "anonymous": (
        "GeoIP2-Anonymous-IP",
        {"is_anonymous": True, "is_hosting_provider": True},
        {
            "anonymousNetworkAddress": ["203.0.113.0/24"],
            "isAnonymous": [True],
            "isAnonymousVpn": [False],
            "isHostingProxy": [True],
            "isPublicProxy": [False],
            "isResidentialProxy": [False],
            "isTorExitNode": [False],
        },
    ),
    "asn": (
        "GeoLite2-ASN",
        {"autonomous_system_number": 64500, "autonomous_system_organization": "Example"},
        {
            "asnNetworkAddress": ["203.0.113.0/24"],
            "autonomousSystemNumber": [64500],
            "autonomousSystemOrganization": ["Example"],
        },
    ),
    "city": ("GeoLite2-City", PLACE, SHOWN | {"cityNetworkAddress": ["203.0.113.0/24"]}),
    "connection": (
        "GeoIP2-Connection-Type",
        {"connection_type": "Cable/DSL"},
        {"connectionNetworkAddress": ["203.0.113.0/24"], "connectionType": ["Cable/DSL"]},
    ),
    "country": (
        "GeoLite2-Country",
        {
            name: PLACE[name]
            for name in ("continent", "registered_country", "represented_country", "traits")
        },
        {"countryNetworkAddress": ["203.0.113.0/24"]}
        | {
            name: values
            for name, values in SHOWN.items()
            if name.startswith(("continent", "country"))
            or (name.startswith("is") and name not in ("isHostingProvider", "isLegitimateProxy"))
        },
    ),
    "domain": (
        "GeoIP2-Domain",
        {"domain": "example.org"},
        {"domain": ["example.org"], "domainNetworkAddress": ["203.0.113.0/24"]},
    ),
    "isp": (
        "GeoIP2-ISP",
        {"autonomous_system_number": 64500, "isp": "Provider", "organization": "Owner"},
        {"autonSystemNum": [64500], "isp": ["Provider"], "org": ["Owner"]},
    ),
}
"""Kind of database: its type, what it has of 203.0.113.0/24, and the fields of that."""


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of each kind."""
    from netaddr import IPSet

    folder = tmp_path_factory.mktemp("geoip")
    for kind, (name, known, _) in KINDS.items():
        writer = mmdb_writer.MMDBWriter(4, name, languages=["en"])
        writer.insert_network(IPSet(["203.0.113.0/24"]), known)
        writer.to_db_file(str(folder / f"{kind}.mmdb"))
    (folder / "damaged.mmdb").write_bytes(b"no database" * 100)
    return folder


def conf_for(folder: Path, **files: str) -> Configuration:
    values = {"plugin.includes": "index-geoip", "store.ip.address": "true"}
    return Configuration.load(
        [folder],
        overrides=values | {f"index.geoip.db.{kind}": file for kind, file in files.items()},
    )


def page(address: str) -> Made:
    return Made(content={"_ip_": address})


@pytest.mark.parametrize("kind", KINDS)
def test_each_database(kind: str, databases: Path) -> None:
    conf = conf_for(databases, **{kind: f"{kind}.mmdb"})
    known = KINDS[kind][2] | {"ip": ["203.0.113.5"]}
    unknown = {"ip": ["198.51.100.1"]} if kind == "city" else {}
    found = documents_of(
        conf, page("203.0.113.5"), Made(), page("198.51.100.1"), page(""), page("203.0.113.5")
    )
    assert found == [known, {}, unknown, {}, known]


def test_several_databases_add_what_they_agree_on_once(databases: Path) -> None:
    conf = conf_for(databases, city="city.mmdb", country="country.mmdb", asn="asn.mmdb")
    (found,) = documents_of(conf, page("203.0.113.5"))
    assert found == KINDS["city"][2] | KINDS["country"][2] | KINDS["asn"][2] | {
        "ip": ["203.0.113.5"]
    }


def test_fields_that_are_there(databases: Path) -> None:
    conf = conf_for(databases, domain="domain.mmdb")
    begin: list[Fields] = [{"domain": ["example.org"]}, {"domain": ["other.org"]}]
    first, second = documents_of(conf, page("203.0.113.5"), page("203.0.113.5"), begin=begin)
    assert first is not None
    assert second is not None
    assert (first["domain"], second["domain"]) == (["example.org"], ["other.org", "example.org"])


def test_no_address(databases: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert documents_of(conf_for(databases, asn="asn.mmdb"), page("\x1b[31m<b>")) == [{}]
    assert "Error querying asn for IP" in caplog.text


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("gone.mmdb", r"index\.geoip\.db\.city: no such file: gone\.mmdb"),
        (
            "damaged.mmdb",
            r"index\.geoip\.db\.city: .*damaged\.mmdb is no database in MaxMind's format",
        ),
        (
            "asn.mmdb",
            r"index\.geoip\.db\.city: .*asn\.mmdb is a database of another kind: GeoLite2-ASN",
        ),
    ],
)
def test_files_that_are_no_such_database(file: str, reason: str, databases: Path) -> None:
    with pytest.raises(ConfigError, match=reason):
        documents_of(conf_for(databases, city=file))


def test_what_is_missing_is_said(databases: Path, caplog: pytest.LogCaptureFixture) -> None:
    conf = Configuration.load([databases], overrides={"plugin.includes": "index-geoip"})
    assert documents_of(conf, page("203.0.113.5")) == [{}]
    assert "set store.ip.address to true" in caplog.text
    assert "index-geoip has nothing to ask" in caplog.text


class Service(BaseHTTPRequestHandler):
    """MaxMind's web service, with fixed answers."""

    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        type(self).asked.append((self.path, self.headers["Authorization"]))
        known = PLACE | {
            "traits": PLACE["traits"] | {"ip_address": "203.0.113.5", "network": "203.0.113.0/25"}
        }
        body = json.dumps(known).encode()
        self.send_response(200)
        self.send_header(
            "Content-Type", "application/vnd.maxmind.com-insights+json; charset=UTF-8; version=2.1"
        )
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The host of the stand-in."""
    import trustme

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    Service.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_the_web_service(service: str) -> None:
    values = {
        "plugin.includes": "index-geoip",
        "index.geoip.insights.userid": "42",
        "index.geoip.insights.licensekey": "key",
        "index.geoip.insights.host": service,
    }
    found = documents_of(
        Configuration.load([], overrides=values), page("203.0.113.5"), page("203.0.113.5")
    )
    assert found == [SHOWN | {"insightsNetworkAddress": ["203.0.113.0/25"]}] * 2
    assert set(Service.asked) == {("/geoip/v2.1/insights/203.0.113.5", "Basic NDI6a2V5")}
    assert len(Service.asked) <= 2  # once for each filter


def test_an_account_that_is_no_number() -> None:
    values = {
        "plugin.includes": "index-geoip",
        "index.geoip.insights.userid": "me",
        "index.geoip.insights.licensekey": "k",
    }
    with pytest.raises(
        ConfigError, match=r"index\.geoip\.insights\.userid.*expected a 32-bit number"
    ):
        documents_of(Configuration.load([], overrides=values))
