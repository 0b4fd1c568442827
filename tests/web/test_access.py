"""The door of all servers: names, sites, tokens in headers and cookies; headers on every answer."""

from __future__ import annotations

import base64

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from minutch.web.access import LOCAL, PRIVATE, Access, RequestChecks, headers_of, host_of, is_local
from tests.support.examples import tabled

TOKEN = "0123456789abcdef"
ACCESS = Access(
    TOKEN, LOCAL, frozenset({"/free"}), cookie="minutch-1", hosts_property="some.property"
)


def judged(path: str = "/", **headers: str) -> int:
    """200, or the status of the refusal."""
    named = {"host": "localhost:8080"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    denied = ACCESS.judge(path, named)
    return 200 if denied is None else denied.status


def basic(password: str) -> str:
    return f"Basic {base64.b64encode(f'me:{password}'.encode()).decode()}"


@tabled(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"bearer  {TOKEN} "}, 200),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": "Bearer é"}, 401),
        ({"authorization": basic(TOKEN)}, 200),
        ({"authorization": basic("")}, 401),
        ({"authorization": "Basic !"}, 401),
        ({"authorization": f"Digest {TOKEN}"}, 401),
        ({"cookie": f"a=b; minutch-1={TOKEN}"}, 200),
        ({"cookie": f"minutch-2={TOKEN}; minutch-1=; xminutch-1={TOKEN}"}, 401),
        ({"cookie": "minutch-1"}, 401),
        ({"cookie": f"minutch-1={TOKEN}", "origin": "http://evil.example"}, 403),
        ({"cookie": f"minutch-1={TOKEN}", "origin": "http://localhost:8080"}, 200),
        ({"cookie": f"minutch-1={TOKEN}", "origin": "http://localhost:9090"}, 403),
        ({"cookie": f"minutch-1={TOKEN}", "sec_fetch_site": "same-site"}, 403),
        ({"cookie": f"minutch-1={TOKEN}", "sec_fetch_site": "same-origin"}, 200),
        ({"authorization": f"Bearer {TOKEN}", "host": "evil.example"}, 421),
    ],
)
def test_who_comes_in(headers: dict[str, str], status: int) -> None:
    assert judged(**headers) == status


def test_free_paths_and_no_token() -> None:
    assert judged("/free") == 200 and judged("/free", host="evil.example") == 421
    assert Access(None, LOCAL).judge("/", {"host": "127.0.0.1"}) is None
    assert not Access(None, LOCAL).is_token("")
    refusal = ACCESS.judge("/", {"host": "x"})
    assert refusal is not None and refusal.text.endswith("(some.property)")


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("A.Example:80", "a.example"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("[::1", ""),
        ("", ""),
        ("a", "a"),
    ],
)
def test_hosts_of_headers(header: str, host: str) -> None:
    assert host_of(header) == host


def test_answers_have_their_headers_and_their_own_come_first() -> None:
    async def app(scope: object, receive: object, send: object) -> None:
        await PlainTextResponse("hello", headers={"Referrer-Policy": "origin"})(
            scope, receive, send
        )  # type: ignore[arg-type]

    client = TestClient(RequestChecks(app, ACCESS.judge, PRIVATE), base_url="http://localhost")
    answer = client.get("/free")
    assert (
        answer.headers["Referrer-Policy"] == "origin"
        and answer.headers["X-Content-Type-Options"] == "nosniff"
    )
    refused = client.get("/")
    assert (refused.status_code, refused.headers["Referrer-Policy"]) == (401, "no-referrer")
    assert headers_of({"headers": [(b"Host", b"a"), (b"host", b"b")]}) is None
    assert headers_of({"headers": [(b"Host", b"a"), (b"X", b"b")]}) == {"host": "a", "x": "b"}


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("LOCALHOST", True),
        ("[::1]", True),
        ("127.9.9.9", True),
        ("0.0.0.0", False),
        ("a.example", False),
    ],
)
def test_what_is_local(host: str, local: bool) -> None:
    assert is_local(host) == local
