"""The http.* properties of Nutch's that shape a request, each by what a server is sent; and that
none is forgotten.
"""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from minutch.records.crawldatum import CrawlDatum
from plugins.protocol_http.http import Http
from tests.support.misbehaving import MisbehavingServer
from tests.support.segments import conf_for


async def sent(url: str = "http://a.example/", **values: str) -> httpx.Headers:
    """The headers of a request."""
    seen: list[httpx.Headers] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers)
        return httpx.Response(200)

    protocol = Http(conf_for(**values), {}, httpx.MockTransport(handler))
    assert (await protocol.get_protocol_output(url, CrawlDatum())).status.is_success
    return seen[0]


@pytest.mark.parametrize(
    ("values", "agent"),
    [
        ({"http__agent__version": "2"}, "me/2"),
        (
            {"http__agent__version": "2", "http__agent__description": "a crawler"},
            "me/2 (a crawler)",
        ),
        (
            {"http__agent__version": "2", "http__agent__url": "http://me.example/"},
            "me/2 (http://me.example/)",
        ),
        (
            {"http__agent__version": "2", "http__agent__email": "me@me.example"},
            "me/2 (me@me.example)",
        ),
        (
            {
                "http__agent__version": "",
                "http__agent__description": "a crawler",
                "http__agent__url": "http://me.example/",
                "http__agent__email": "me@me.example",
            },
            "me (a crawler; http://me.example/; me@me.example)",
        ),
    ],
)
async def test_the_agent_string(values: dict[str, str], agent: str) -> None:
    empty = dict.fromkeys(
        ("http__agent__description", "http__agent__url", "http__agent__email"), ""
    )
    found = (await sent(**{"http__agent__name": "me"} | empty | values))["user-agent"]
    assert found.replace("; )", ")").replace("(; ", "(") == agent


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("http.accept", "accept"),
        ("http.accept.language", "accept-language"),
        ("http.accept.charset", "accept-charset"),
    ],
)
async def test_accept_headers(name: str, header: str) -> None:
    assert (await sent(**{name.replace(".", "__"): "this, that;q=0.1"}))[
        header
    ] == "this, that;q=0.1"
    assert header not in await sent(**{name.replace(".", "__"): ""})


async def test_the_cookie_file(tmp_path: Path) -> None:
    (tmp_path / "jar.txt").write_text("# host, cookie\na.example\tk=v; x=y\nb.example\tother=1\n")
    jar = str(tmp_path / "jar.txt")
    assert (await sent(http__agent__host__cookie__file=jar))["cookie"] == "k=v; x=y"
    assert "cookie" not in await sent("http://c.example/", http__agent__host__cookie__file=jar)
    off = await sent(http__agent__host__cookie__file=jar, http__enable__cookie__header="false")
    assert "cookie" not in off


async def test_the_file_of_credentials(tmp_path: Path) -> None:
    (tmp_path / "auth.xml").write_text(
        "<a><credentials username='u' password='p'><authscope host='a.example'/></credentials></a>"
    )

    def handler(request: httpx.Request) -> httpx.Response:
        known = request.headers.get("Authorization") == "Basic dTpw"
        return httpx.Response(
            200 if known else 401, headers={"WWW-Authenticate": 'Basic realm="r"'}
        )

    for name, status in (
        (str(tmp_path / "auth.xml"), "success"),
        (str(tmp_path / "none.xml"), "access_denied"),
    ):
        protocol = Http(conf_for(http__auth__file=name), {}, httpx.MockTransport(handler))
        output = await protocol.get_protocol_output("http://a.example/", CrawlDatum())
        assert output.status.name == status


async def test_the_version_of_requests() -> None:
    with MisbehavingServer() as server:
        for value, version in (("true", "1.1"), ("false", "1.0")):
            protocol = Http(conf_for(http__useHttp11=value, store__http__request="true"), {})
            try:
                output = await protocol.get_protocol_output(server.url("ok"), CrawlDatum())
            finally:
                await protocol.close()
            assert output.content is not None
            assert output.content.metadata["_request_"][0].startswith(f"GET /ok HTTP/{version}\r\n")
