"""httpx's own transport, for machines without pycurl (`http.transport=httpx`): much slower, otherwise the same answers.

Addresses are checked before httpx connects: the host is looked up here and the request goes to the address found, with
the host's name in the Host header and in TLS.
"""

from __future__ import annotations

import asyncio
import socket

import httpx

from .addresses import AddressRules
from .failures import ForbiddenAddress, UnknownHost
from .names import Names
from .settings import HttpSettings


class StockTransport(httpx.AsyncBaseTransport):
    """Wraps httpx.AsyncHTTPTransport."""

    def __init__(self, settings: HttpSettings, addresses: AddressRules, names: Names | None = None) -> None:
        """Without `names` the system looks hosts up."""
        self._addresses = addresses
        self._names = names
        self._proxy = settings.proxy
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=200)
        self._direct = self._make(settings, limits, None)
        self._proxied = self._make(settings, limits, settings.proxy.url) if settings.proxy.url else self._direct

    @staticmethod
    def _make(settings: HttpSettings, limits: httpx.Limits, proxy: str | None) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=settings.check_certificates,
            http2=settings.http_version == "2",
            limits=limits,
            proxy=proxy,
            trust_env=False,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Look up, check, connect."""
        if request.extensions.get("proxy"):
            return await self._proxied.handle_async_request(request)
        host = request.url.host
        address = await self._look_up(host, request.url.port)
        if not self._addresses.accepts(address):
            raise ForbiddenAddress(address)
        request.extensions = {**request.extensions, "sni_hostname": host}
        request.url = request.url.copy_with(host=address)
        response = await self._direct.handle_async_request(request)
        response.extensions = {**response.extensions, "address": (address, request.url.port or 0)}
        return response

    async def _look_up(self, host: str, port: int | None) -> str:
        known = [] if self._names is None else self._names.known(host)
        if known is None and self._names is not None:
            known = await self._names.find(host)
        if known:
            return known[0]
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as exc:
            raise UnknownHost(host) from exc
        return str(found[0][4][0])

    async def aclose(self) -> None:
        await self._direct.aclose()
        if self._proxied is not self._direct:
            await self._proxied.aclose()
