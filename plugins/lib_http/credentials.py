"""Reads httpclient-auth.xml and chooses the name and password for a server that asks for them.

    <credentials username= password=>   (<authscope host= port= realm= scheme=/> | <default realm=
                                        scheme=/>)*
    <credentials authMethod="formAuth" …>   a login form, see loginform.py

    http.auth.basic.REALM.user, .password      the same for basic authentication in a realm, as
                                               properties

What a scope leaves out matches everything. `<default>` is for servers that no scope names. Nothing
is sent before a server asks (401), and to nobody else; then each further request to it carries what
worked. Schemes: basic and digest. NTLM, which Nutch's protocol-httpclient speaks, is not among
them: it rests on MD4 and DES, ties a login to one connection, and libcurl comes without it by now.
A server that asks for nothing else is named in the log; with http.auth.verbose=true, so is each
server that gets credentials, with the realm and the user.

Source: Http of protocol-httpclient (setCredentials, resolveCredentials).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import httpx

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.urls.parts import Url

from .loginform import LoginForm, read_form

log = logging.getLogger(__name__)

_CHALLENGE: Final = re.compile(r"(?:^|,)\s*([A-Za-z][\w-]*)(?:\s+|$)")
_REALM: Final = re.compile(r"realm\s*=\s*(?:\"([^\"]*)\"|([^\s,]+))", re.IGNORECASE)
_BASIC: Final = "http.auth.basic."
SCHEMES: Final = ("digest", "basic")
"""The supported schemes, best first."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """One way in that a server names: scheme in lower case, realm, and the challenge as it came."""

    scheme: str
    realm: str
    text: str


@dataclass(frozen=True, slots=True)
class Scope:
    """The servers that a name and password are for; None matches everything."""

    username: str
    password: str
    host: str | None = None
    port: int | None = None
    realm: str | None = None
    scheme: str | None = None
    is_default: bool = False

    def names(self, url: Url) -> bool:
        """Returns True if this scope names the server of `url`."""
        port = url.default_port if url.port == -1 else url.port
        return (
            not self.is_default
            and self.host in (None, url.host.lower())
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
        for match, after in zip(starts, [*starts[1:], None], strict=True):
            text = header[match.start(1) : after.start() if after else None]
            realm = _REALM.search(text)
            found.append(
                Challenge(match[1].lower(), (realm[1] or realm[2] or "") if realm else "", text)
            )
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
        path = conf.resource(conf.get("http.auth.file", "httpclient-auth.xml"))
        scopes, forms = ([], []) if path is None else read_credentials(path)
        return cls(
            [*scopes, *_scopes_of_realms(conf)],
            forms,
            verbose=conf.get_boolean("http.auth.verbose", False),
        )

    def known(self, url: Url) -> httpx.Auth | None:
        """Returns the credentials that this server accepted before."""
        return self._known.get(_server(url)) if self._known else None

    def answer(self, url: Url, headers: Iterable[str]) -> tuple[httpx.Auth, Challenge] | None:
        """Chooses a challenge of a server and the credentials for it, None if there are none."""
        asked = challenges(headers)
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
            wanted = ", ".join(c.scheme for c in asked) or "nothing that is known"
            spoken = ", ".join(SCHEMES)
            log.info(
                "%s asks for %s, which no credentials answer (spoken: %s)", url.host, wanted, spoken
            )
        return None

    def forget(self, url: Url) -> None:
        """Forgets the credentials that this server no longer accepts."""
        self._known.pop(_server(url), None)


def authorized(
    auth: httpx.Auth, request: httpx.Request, challenge: Challenge | None
) -> Generator[httpx.Request, httpx.Response, None]:
    """Yields the requests to send, one after the other, with the answers sent in; `challenge` came
    with an earlier 401.
    """
    flow = auth.auth_flow(request)
    following = next(flow)
    if challenge is not None and "Authorization" not in following.headers:
        try:
            following = flow.send(
                httpx.Response(401, headers={"WWW-Authenticate": challenge.text}, request=request)
            )
        except StopIteration:
            return
    while True:
        response = yield following
        try:
            following = flow.send(response)
        except StopIteration:
            return


def _server(url: Url) -> tuple[str, str, int]:
    return url.protocol, url.host.lower(), url.port


def _scopes_of_realms(conf: Configuration) -> list[Scope]:
    """Returns the scopes of http.auth.basic.REALM.user and .password (HttpBasicAuthentication)."""
    found = []
    for name in conf:
        realm = name.removeprefix(_BASIC).removesuffix(".user")
        if len(realm) == len(name) - len(_BASIC) - len(".user"):
            password = conf.get(f"{_BASIC}{realm}.password", "")
            found.append(Scope(conf.get(name, ""), password, realm=realm, scheme="basic"))
    return found


def read_credentials(path: Path) -> tuple[list[Scope], list[LoginForm]]:
    """Reads the file. Raises ConfigError that names it."""
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError) as exc:
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
        yield Scope(
            element.get("username", ""),
            element.get("password", ""),
            (child.get("host") or "").lower() or None,
            int(port) if port and int(port) >= 0 else None,
            child.get("realm") or None,
            (child.get("scheme") or "").lower() or None,
            child.tag == "default",
        )
