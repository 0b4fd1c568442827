"""Logs in by a web form, as httpclient-auth.xml describes it, and keeps the session's cookies.

    <credentials authMethod="formAuth" loginUrl= loginFormId= loginRedirect="true|false">
      <loginPostData><field name= value=/>*</loginPostData>
      <additionalPostHeaders>…  <removedFormFields>…

The form's own fields are sent too, with the values of loginPostData in their places. Source:
HttpFormAuthentication of protocol-httpclient.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Final
from urllib.parse import urlencode
from xml.etree import ElementTree

import httpx

from minutch.errors import ConfigError, UrlError
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import Url, parse

log = logging.getLogger(__name__)

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = (301, 302, 303)
Send = Callable[[str, Url, Mapping[str, str], bytes], Awaitable[httpx.Response]]
"""Method, URL, more headers, content."""


@dataclass(frozen=True, slots=True)
class LoginForm:
    """One login."""

    url: Url
    form_id: str
    redirects: bool = False
    fields: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()


def read_form(element: ElementTree.Element, path: Path) -> LoginForm:
    """Returns the form of a `<credentials authMethod="formAuth">`. Raises ConfigError."""
    try:
        url = parse(element.get("loginUrl", ""))
    except UrlError as exc:
        raise ConfigError(f"{path}: loginUrl: {exc}") from exc

    def pairs(name: str) -> dict[str, str]:
        return {f.get("name", ""): f.get("value", "") for f in element.iterfind(f"{name}/field")}

    return LoginForm(
        url,
        element.get("loginFormId", ""),
        element.get("loginRedirect", "").lower() == "true",
        pairs("loginPostData"),
        pairs("additionalPostHeaders"),
        frozenset(pairs("removedFormFields")),
    )


def form_fields(html: bytes, form: LoginForm) -> tuple[str, dict[str, str]]:
    """Returns action and fields of the form with that id (or name) in a page; only our fields if it
    is not found.
    """
    from selectolax.lexbor import LexborHTMLParser

    page = LexborHTMLParser(html)
    found = next(
        (
            f
            for f in page.css("form")
            if form.form_id in (f.attributes.get("id"), f.attributes.get("name"))
        ),
        None,
    )
    if found is None:
        log.warning("%s: no form %s", form.url, form.form_id)
        return "", dict(form.fields)
    fields = {}
    for node in found.css("input[name]"):
        name = node.attributes.get("name") or ""
        if name not in form.removed:
            fields[name] = node.attributes.get("value") or ""
    return found.attributes.get("action") or "", fields | dict(form.fields)


class Sessions:
    """Cookies of the hosts that were logged in to; each form is sent once, before the first page of
    its host.
    """

    def __init__(self, forms: tuple[LoginForm, ...], send: Send) -> None:
        self._waiting = {canonical_host(form.url.host): form for form in forms}
        self._send = send
        self._cookies: dict[str, dict[str, str]] = {}

    def cookie(self, host: str) -> str | None:
        """Returns the Cookie header for a host."""
        cookies = self._cookies.get(canonical_host(host))
        return "; ".join(f"{name}={value}" for name, value in cookies.items()) if cookies else None

    async def enter(self, host: str) -> None:
        """Logs in if there is a form for this host."""
        form = self._waiting.pop(canonical_host(host), None) if self._waiting else None
        if form is None:
            return
        try:
            await self._login(form)
        except (httpx.TransportError, UrlError) as exc:
            log.warning("can't log in at %s: %s", form.url, exc)

    async def _login(self, form: LoginForm) -> None:
        response = await self._ask("GET", form.url, {}, b"")
        action, fields = form_fields(await response.aread(), form)
        url = parse(action, form.url) if action else form.url
        headers = {"Content-Type": "application/x-www-form-urlencoded", **form.headers}
        response = await self._ask("POST", url, headers, urlencode(fields).encode())
        for _ in range(MAX_REDIRECTS):
            location = response.headers.get("location")
            if not form.redirects or response.status_code not in _REDIRECTS or not location:
                break
            url = parse(location, url)
            response = await self._ask("GET", url, {}, b"")
        log.info(
            "logged in at %s: status %d, cookies: %d",
            form.url,
            response.status_code,
            len(self._cookies),
        )

    async def _ask(
        self, method: str, url: Url, headers: Mapping[str, str], content: bytes
    ) -> httpx.Response:
        response = await self._send(method, url, headers, content)
        jar = self._cookies.setdefault(canonical_host(url.host), {})
        for line in response.headers.get_list("set-cookie"):
            try:
                parsed = SimpleCookie(line)
            except CookieError:
                continue
            jar.update({name: morsel.value for name, morsel in parsed.items()})
        return response
