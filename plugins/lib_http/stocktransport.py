"""httpx's own transport, for machines without pycurl (`http.transport=httpx`): much slower,
otherwise the same answers.

Addresses are checked before httpx connects: the host is looked up here and the request goes to the
address found, with the host's name in the Host header and in TLS.
"""

from __future__ import annotations

import asyncio
import socket
from importlib.util import find_spec

import httpx

from .addressrules import AddressRules
from .failures import ForbiddenAddress, UnknownHost
from .resolver import ResolverCache
from .settings import HttpSettings


class StockTransport(httpx.AsyncBaseTransport):
    """Wraps httpx.AsyncHTTPTransport."""

    def __init__(
        self, settings: HttpSettings, addresses: AddressRules, names: ResolverCache | None = None
    ) -> None:
        """Without `names` the system looks hosts up."""
        self._addresses = addresses
        self._names = names
        self._proxy = settings.proxy
        kept, seconds = settings.pool or (200, 118)
        limits = httpx.Limits(
            max_connections=1000, max_keepalive_connections=kept, keepalive_expiry=seconds
        )
        self._direct = self._make(settings, limits, None)
        self._proxied = (
            self._make(settings, limits, settings.proxy.url) if settings.proxy.url else self._direct
        )

    @staticmethod
    def _make(
        settings: HttpSettings, limits: httpx.Limits, proxy: str | None
    ) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=settings.tls.context(
                verify=settings.check_certificates, ca_file=settings.ca_file
            ),
            http2=settings.http_version == "2" and find_spec("h2") is not None,
            limits=limits,
            proxy=proxy,
            trust_env=False,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Look up, check, connect."""
        if request.extensions.get("proxy"):
            return await self._proxied.handle_async_request(request)
        host = request.url.raw_host.decode("ascii")  # as it is written: no Punycode is decoded
        request.extensions = {**request.extensions, "sni_hostname": host}
        failure: httpx.ConnectError = UnknownHost(host)
        for address in await self._look_up(host, request.url.port):
            if not self._addresses.accepts(address):
                failure = ForbiddenAddress(address)
                continue
            request.url = request.url.copy_with(host=address)
            try:
                response = await self._direct.handle_async_request(request)
            except httpx.ConnectError as exc:
                failure = exc
                continue
            response.extensions = {
                **response.extensions,
                "address": (address, request.url.port or 0),
            }
            return response
        raise failure

    async def _look_up(self, host: str, port: int | None) -> list[str]:
        """The addresses of a host, one at least."""
        known = [] if self._names is None else self._names.known(host)
        if known is None and self._names is not None:
            known = await self._names.find(host)
        if known:
            return known
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError) as exc:
            raise UnknownHost(host) from exc
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def aclose(self) -> None:
        await self._direct.aclose()
        if self._proxied is not self._direct:
            await self._proxied.aclose()
