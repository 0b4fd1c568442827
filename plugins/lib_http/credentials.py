"""Reads httpclient-auth.xml and chooses the name and password for a server that asks for them.

    <credentials username= password=>   (<authscope host= port= realm= scheme=/> | <default realm=
                                        scheme=/>)*
    <credentials authMethod="formAuth" …>   a login form, see loginform.py

    http.auth.basic.REALM.user, .password      the same for basic authentication in a realm of
                             .host             hosts, as properties

What a scope leaves out matches everything, but for the host: whoever crawls the web meets servers
that ask for a password in any realm's name. `<default>`, and `*` for a host, are for all servers
that no scope names, as Nutch has it for every scope without a host; the log says so. Nothing is
sent before a server asks (401), and to nobody else; then each further request to it carries what
worked. Schemes: basic and digest, the better one that the server asks for in a way that can be
answered (RFC 7616, 3.3). NTLM, which Nutch's protocol-httpclient speaks, is not among
them: it rests on MD4 and DES, ties a login to one connection, and libcurl comes without it by now.
A server that asks for nothing else is named in the log; with http.auth.verbose=true, so is each
server that gets credentials, with the realm and the user.

Source: Http of protocol-httpclient (setCredentials, resolveCredentials).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field, replace
from http.cookies import CookieError, SimpleCookie
from itertools import zip_longest
from pathlib import Path
from typing import Final
from urllib.parse import urlencode
from xml.etree import ElementTree

import httpx

from minutch.conf import Configuration
from minutch.errors import ConfigError, UrlError
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import Url, parse

from .exchange import Order, Reply, field_values, unfold
from .messages import request_of

# Logs in by a web form, as httpclient-auth.xml describes it, and keeps the session's cookies.
#
#     <credentials authMethod="formAuth" loginUrl= loginFormId= loginRedirect="true|false">
#       <loginPostData><field name= value=/>*</loginPostData>
#       <additionalPostHeaders>…  <removedFormFields>…
#
# The form's own fields are sent too, with the values of loginPostData in their places. Source:
# HttpFormAuthentication of protocol-httpclient.

MAX_REDIRECTS: Final = 5
_REDIRECTS: Final = (301, 302, 303)
Send = Callable[[str, Url, Mapping[str, str], bytes], Awaitable[Reply]]
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
            reply = await self._ask("GET", form.url, {}, b"")
            action, fields = form_fields(reply.body, form)
            url = parse(action, form.url) if action else form.url
            headers = {"Content-Type": "application/x-www-form-urlencoded", **form.headers}
            reply = await self._ask("POST", url, headers, urlencode(fields).encode())
            for _ in range(MAX_REDIRECTS):
                locations = field_values(reply.head, "location")
                if not form.redirects or reply.code not in _REDIRECTS or not locations:
                    break
                url = parse(locations[0], url)
                reply = await self._ask("GET", url, {}, b"")
            log.info(
                "logged in at %s: status %d, cookies: %d", form.url, reply.code, len(self._cookies)
            )
        except (httpx.TransportError, UrlError) as exc:
            log.warning("can't log in at %s: %s", form.url, exc)

    async def _ask(
        self, method: str, url: Url, headers: Mapping[str, str], content: bytes
    ) -> Reply:
        reply = await self._send(method, url, headers, content)
        jar = self._cookies.setdefault(canonical_host(url.host), {})
        for line in field_values(reply.head, "set-cookie"):
            try:
                parsed = SimpleCookie(line)
            except CookieError:
                continue
            jar.update({name: morsel.value for name, morsel in parsed.items()})
        return reply


log = logging.getLogger(__name__)

_CHALLENGE: Final = re.compile(r"(?:^|,)\s*([A-Za-z][\w-]*)(?:\s+|$)")
# A name is tried at its beginning alone: 64 KB of letters took 100 s where each was one.
_PARAMETER: Final = re.compile(
    r"(?<![A-Za-z-])([A-Za-z-]++)\s*+=\s*(?:\"((?:[^\"\\\x00-\x1f]|\\[^\x00-\x1f])*)\"|([^\s,\"\\\x00-\x1f]+))"
)
_ALGORITHMS: Final = ("md5", "sha", "sha-256", "sha-512")
"""Of digests, each also with -sess (RFC 7616, 3.3, and what httpx has more)."""
_BASIC: Final = "http.auth.basic."
ANY_HOST: Final = "*"
SCHEMES: Final = ("digest", "basic")
"""The supported schemes, best first."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """One way in that a server names: scheme and names of parameters in lower case."""

    scheme: str
    parameters: Mapping[str, str]

    @property
    def realm(self) -> str:
        """Empty if the server names none."""
        return self.parameters.get("realm", "")

    @property
    def text(self) -> str:
        """The header, as every parser reads it."""
        return f"{self.scheme} " + ", ".join(f'{n}="{v}"' for n, v in self.parameters.items())

    @property
    def is_answerable(self) -> bool:
        """False for a digest by an unknown algorithm, of the content (auth-int), in other letters
        than ASCII's, or malformed.
        """
        if self.scheme != "digest":
            return self.scheme == "basic"
        given = self.parameters
        ways = [way.strip().lower() for way in given.get("qop", "auth").split(",")]
        algorithm = given.get("algorithm", "MD5").lower().removesuffix("-sess")
        is_whole = "realm" in given and "nonce" in given and self.text.isascii()
        return is_whole and "auth" in ways and algorithm in _ALGORITHMS


@dataclass(frozen=True, slots=True)
class Scope:
    """The servers that a name and password are for; None matches everything."""

    username: str
    password: str
    host: str = ANY_HOST
    port: int | None = None
    realm: str | None = None
    scheme: str | None = None
    is_default: bool = False

    def names(self, url: Url) -> bool:
        """Returns True if this scope names the server of `url`."""
        port = url.default_port if url.port == -1 else url.port
        return (
            not self.is_default
            and self.host in (ANY_HOST, canonical_host(url.host))
            and self.port in (None, port)
        )

    def takes(self, challenge: Challenge) -> bool:
        """Returns True if it belongs to this challenge."""
        return self.scheme in (None, challenge.scheme) and self.realm in (None, challenge.realm)


def challenges(headers: Iterable[str]) -> list[Challenge]:
    """Returns each challenge in WWW-Authenticate headers; one header may hold several."""
    found = []
    for header in headers:
        starts = [match for match in _CHALLENGE.finditer(header) if "=" not in match[0]]
        for match, after in zip_longest(starts, starts[1:]):
            text = header[match.start(1) : after.start() if after else None]
            given: dict[str, str] = {}
            for name, quoted, token in _PARAMETER.findall(text):
                given.setdefault(name.lower(), quoted or token)
            found.append(Challenge(match[1].lower(), given))
    return found


class Credentials:
    """The file's content, and what has worked so far."""

    def __init__(
        self,
        scopes: Iterable[Scope] = (),
        forms: Iterable[LoginForm] = (),
        *,
        verbose: bool = False,
    ) -> None:
        self.verbose = verbose
        self.scopes = tuple(scopes)
        self.forms = tuple(forms)
        self._known: dict[tuple[str, str, int], httpx.Auth] = {}

    @classmethod
    def from_conf(cls, conf: Configuration) -> Credentials:
        """Returns the file that http.auth.file names, if it is there, and http.auth.basic.*. Raises
        ConfigError.
        """
        path = conf.resource(conf.get_text("http.auth.file"))
        scopes, forms = ([], []) if path is None else read_credentials(path)
        scopes += _scopes_of_realms(conf)
        for scope in scopes:
            if scope.is_default or scope.host == ANY_HOST:
                log.warning("the password of %s goes to any server that asks", scope.username)
        return cls(scopes, forms, verbose=conf.get_boolean("http.auth.verbose", False))

    def known(self, url: Url) -> httpx.Auth | None:
        """Returns the credentials that this server accepted before."""
        return self._known.get(_server(url)) if self._known else None

    def answer(self, url: Url, headers: Iterable[str]) -> tuple[httpx.Auth, Challenge] | None:
        """Chooses a challenge of a server and the credentials for it, None if there are none."""
        asked = [challenge for challenge in challenges(headers) if challenge.is_answerable]
        named = [scope for scope in self.scopes if scope.names(url)]
        scopes = named or [scope for scope in self.scopes if scope.is_default]
        for scheme in SCHEMES:
            for challenge in asked:
                scope = next(
                    (s for s in scopes if challenge.scheme == scheme and s.takes(challenge)), None
                )
                if scope is not None:
                    if self.verbose:
                        log.info(
                            "%s, realm %r: %s as %s",
                            url.host,
                            challenge.realm,
                            scheme,
                            scope.username,
                        )
                    kind = httpx.DigestAuth if scheme == "digest" else httpx.BasicAuth
                    auth = self._known[_server(url)] = kind(scope.username, scope.password)
                    return auth, challenge
        if scopes:
            wanted = ", ".join(c.scheme for c in challenges(headers)) or "nothing that is known"
            spoken = ", ".join(SCHEMES)
            log.info(
                "%s asks for %s, which no credentials answer (spoken: %s)", url.host, wanted, spoken
            )
        return None

    def forget(self, url: Url) -> None:
        """Forgets the credentials that this server no longer accepts."""
        self._known.pop(_server(url), None)


class _SentUrl(httpx.URL):
    """A URL with the request target that is sent, which a digest is made of (RFC 7616, 3.4)."""

    def __init__(self, url: httpx.URL, target: bytes) -> None:
        super().__init__(url)
        self._target = target

    @property
    def raw_path(self) -> bytes:
        return self._target


def authorized(
    auth: httpx.Auth, order: Order, challenge: Challenge | None
) -> Generator[Order, Reply, None]:
    """Yields the orders to send, one after the other, with the replies sent in; `challenge` came
    with an earlier 401.
    """
    request = request_of(order)
    request.url = _SentUrl(request.url, order.target)
    flow = auth.auth_flow(request)
    following = next(flow)
    if challenge is not None and "Authorization" not in following.headers:
        following = flow.send(
            httpx.Response(
                401, headers={b"WWW-Authenticate": challenge.text.encode()}, request=request
            )
        )
    while True:
        reply = yield replace(order, headers=following.headers.raw)
        fields = [line.encode("latin-1").partition(b":") for line in unfold(reply.head[1:])]
        headers = [(name.strip(), value.strip()) for name, _, value in fields if name.strip()]
        answered = httpx.Response(reply.code, headers=headers, request=following)
        try:
            following = flow.send(answered)
        except StopIteration:
            return
        except (httpx.ProtocolError, KeyError, ValueError, NotImplementedError):
            return  # a next challenge that httpx can't read: what it came with stands


def _server(url: Url) -> tuple[str, str, int]:
    return url.protocol, canonical_host(url.host), url.port


def _scopes_of_realms(conf: Configuration) -> list[Scope]:
    """Returns the scopes of http.auth.basic.REALM.user and .password (HttpBasicAuthentication)."""
    found: list[Scope] = []
    for name in conf:
        realm = name.removeprefix(_BASIC).removesuffix(".user")
        if len(realm) == len(name) - len(_BASIC) - len(".user"):
            user, password = conf.get(name, ""), conf.get(f"{_BASIC}{realm}.password", "")
            names = conf.get(f"{_BASIC}{realm}.host", "").replace(",", " ").split()
            hosts = list(map(canonical_host, names))
            if not hosts:
                log.warning(
                    "the password of %s is sent to nobody: %s%s.host has to name the host, or be"
                    " * for any that claims the realm, as in Nutch",
                    *(user, _BASIC, realm),
                )
            found += (Scope(user, password, host, realm=realm, scheme="basic") for host in hosts)
    return found


def read_credentials(path: Path) -> tuple[list[Scope], list[LoginForm]]:
    """Reads the file. Raises ConfigError that names it."""
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError, LookupError, ValueError) as exc:
        raise ConfigError(f"{path}: {exc}") from exc
    scopes: list[Scope] = []
    forms: list[LoginForm] = []
    for element in root.iter("credentials"):
        method = element.get("authMethod", "").strip()
        if method == "formAuth":
            forms.append(read_form(element, path))
        elif method:
            raise ConfigError(f"{path}: authMethod: expected formAuth, found {method}")
        else:
            scopes += _read_scopes(element, path)
    return scopes, forms


def _read_scopes(element: ElementTree.Element, path: Path) -> Iterable[Scope]:
    for child in element:
        if child.tag not in ("default", "authscope"):
            log.warning("%s: expected <authscope> or <default>, found <%s>", path, child.tag)
            continue
        port = child.get("port") or ""
        if port and not port.lstrip("-").isdecimal():
            raise ConfigError(f"{path}: port: expected a number, found {port}")
        host = canonical_host(child.get("host") or "")
        if not host and child.tag == "authscope":
            log.warning(
                "%s: the password of %s is sent to nobody: <authscope> has to name the host, or"
                ' host="*" for any that asks, as in Nutch',
                *(path, element.get("username", "")),
            )
            continue
        yield Scope(
            element.get("username", ""),
            element.get("password", ""),
            host or ANY_HOST,
            int(port) if port and int(port) >= 0 else None,
            child.get("realm") or None,
            (child.get("scheme") or "").lower() or None,
            child.tag == "default",
        )
