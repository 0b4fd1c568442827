"""What is secret is hidden by one list, wherever a configuration or a request is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minutch.conf import Configuration
from minutch.conf.properties import HIDDEN, shown, shown_request
from minutch.cycle.index.writers import WriterChain
from minutch.plugin.parameters import Parameters
from tests.support.examples import tabled
from tests.support.golden import PROJECT


@tabled(
    "name",
    [
        "http.proxy.password",
        "http.auth.basic.my realm.user",
        "fs.s3a.secret.key",
        "fs.s3a.access.key",
        "fs.s3a.session.token",
        "minutch.rest.token",
        "indexer.apiKey",
        "kafka.sasl.jaas.config",
        "javax.net.ssl.keyStorePassword",
        "index.geoip.licensekey",
        "my.cookie",
    ],
)
def test_secret_by_name(name: str) -> None:
    assert shown(name, "swordfish") == HIDDEN
    assert shown(name, "") == ""


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("amqp://guest:guest@localhost:5672/", f"amqp://{HIDDEN}@localhost:5672/"),
        ("https://me@a.example/x@y, http://u:p%40@b/", f"https://{HIDDEN}@a.example/x@y, http://{HIDDEN}@b/"),
        ("http://a.example/?mail=me@b.example", "http://a.example/?mail=me@b.example"),
        ("me@a.example", "me@a.example"),
    ],
)  # fmt: skip
def test_secret_within_a_url(value: str, expected: str) -> None:
    assert shown("some.property", value) == expected


def test_of_the_defaults_only_secrets_are_hidden() -> None:
    conf = Configuration.load([])
    hidden = {name for name in conf if shown(name, conf.raw(name) or "") != (conf.raw(name) or "")}
    assert hidden == {"ftp.password", "rabbitmq.publisher.server.uri"}


def test_a_request_is_handed_on_without_cookies_and_credentials() -> None:
    head = (
        "GET /cookie: HTTP/1.1\r\nHost: a\r\nCookie: id=swordfish;\r\n more=swordfish\r\n"
        "AUTHORIZATION : Basic swordfish\r\nproxy-authorization: x\r\nX-Cookie: kept\r\n\r\n"
    )
    assert shown_request(head) == (
        f"GET /cookie: HTTP/1.1\r\nHost: a\r\nCookie: {HIDDEN}\r\n"
        f"AUTHORIZATION : {HIDDEN}\r\nproxy-authorization: {HIDDEN}\r\nX-Cookie: kept\r\n\r\n"
    )


@pytest.mark.parametrize("plugin", ["solr", "opensearch-1x", "elastic"])
def test_writers_are_described_without_passwords(plugin: str, tmp_path: Path) -> None:
    """By name, and within the address of a server; the log has the description."""
    known = (PROJECT / "conf/index-writers.xml").read_text(encoding="utf-8")
    known = re.sub(r'(name="password" value=")[^"]*', r"\1swordfish", known)
    known = re.sub(r'(name="(?:url|host)" value=")[^"]*', r"\1http://u:swordfish@a.example/", known)
    assert known.count("swordfish") >= 6
    (tmp_path / "index-writers.xml").write_text(known, encoding="utf-8")
    values = {"plugin.includes": f"indexer-{plugin}"}
    described = WriterChain.from_conf(
        Configuration.load([tmp_path], overrides=values).freeze()
    ).describe()
    assert "a.example" in described and "swordfish" not in described


def test_errors_show_no_password() -> None:
    conf = Configuration.load([])
    wrong = (
        conf.wrong("some.token", "a number", "swordfish"),
        Parameters({"server.uri": "http://u:swordfish@a/"}).wrong("server.uri", "amqp://"),
        Parameters({"password": "swordfish"}).wrong("password", "letters"),
    )
    assert all("swordfish" not in str(error) and HIDDEN in str(error) for error in wrong)
