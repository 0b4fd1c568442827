"""Look-ups: so many at a time, by the resolver that requests use."""

from __future__ import annotations

import asyncio

import pytest

from minutch.conf import Configuration
from minutch.cycle.hostdb.update import Lookups
from minutch.errors import ProtocolError
from tests.support.nameserver import NameServer


def conf(**settings: str) -> Configuration:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return Configuration.load(
        [], overrides={"plugin.includes": "protocol-http", "http.agent.name": "x", **named}
    )


def test_as_many_at_a_time_as_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, most = 0, 0

    async def slowly(host: str) -> list[str]:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.005)
        waiting -= 1
        return [host] if host != "h7" else []

    with Lookups.from_conf(conf(hostdb__num__resolvers__threads="3")) as lookups:
        monkeypatch.setattr(lookups._protocol, "addresses_of", slowly)
        found = lookups.resolve([f"h{number}" for number in range(20)])
        assert lookups.resolve([]) == []
    assert most == 3
    assert [number for number, known in enumerate(found) if not known] == [7]


@pytest.mark.parametrize("resolver", ["cares", "system"])
def test_names_and_addresses(resolver: str) -> None:
    with (
        NameServer({"a.example": (60, ["192.0.2.1"])}) as server,
        Lookups.from_conf(
            conf(http__dns__servers=server.address, http__dns__resolver=resolver)
        ) as lookups,
    ):
        assert lookups.resolve(["127.0.0.1", "localhost", "", "[::1]", "x\ud800"]) == [
            True,
            True,
            True,
            True,
            False,
        ]
        if resolver == "cares":
            assert lookups.resolve(["a.example", "b.example", "a" * 300, "nosuch.invalid"]) == [
                True,
                False,
                False,
                False,
            ]


def test_without_a_plugin_for_http() -> None:
    with pytest.raises(ProtocolError, match="no protocol"):
        Lookups.from_conf(conf(plugin__includes="protocol-file"))
