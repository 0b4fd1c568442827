"""Reads the `http.*` and `store.*` properties of all HTTP protocol plugins (HttpBase.setConf).

Defaults are Nutch's, except that certificates are checked (`http.tls.certificates.check`) and that
no page takes longer than a minute where `http.time.limit` sets nothing.
"""

from __future__ import annotations

import logging
import random
import re
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.errors import ConfigError
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import Url

from .curlslot import CurlSettings
from .resolver import ResolverSettings
from .tls import TlsSettings

log = logging.getLogger(__name__)

LONGEST_PAGE: Final = 60
"""Seconds for one page where http.time.limit is not set. One that drips held a place for five
minutes, and counted as a success of its host.
"""
_PROXY_SCHEMES: Final = {
    "HTTP": "http",
    "HTTPS": "https",
    "SOCKS": "socks5h",
    "SOCKS4": "socks4a",
    "SOCKS5": "socks5h",
}


def agent_string(
    name: str | None,
    version: str | None,
    description: str | None,
    url: str | None,
    email: str | None,
) -> str:
    """Returns the User-Agent header: `name/version (description; url; email)`; a separator follows
    by Nutch's rule.

    The rule: `; ` comes before a property that is set, even to nothing.
    """
    text = name or ""
    if version is not None and version.strip():
        text += f"/{version}"
    if not (description or url or email):
        return text
    inner = ""
    if description:
        inner += description + ("; " if url is not None or email is not None else "")
    if url:
        inner += url + ("; " if email is not None else "")
    return f"{text} ({inner}{email or ''})"


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """http.proxy.*: where requests go through, and the hosts that they don't for."""

    url: str = ""
    exceptions: tuple[str, ...] = ()

    @classmethod
    def from_conf(cls, conf: Configuration) -> ProxySettings:
        host = conf.get("http.proxy.host")
        if not host:
            return cls()
        kind = conf.get_word("http.proxy.type").upper()
        user = conf.get("http.proxy.username")
        login = ""
        if user:
            from urllib.parse import quote

            login = f"{quote(user, safe='')}:{quote(conf.get('http.proxy.password', ''), safe='')}@"
        url = f"{_PROXY_SCHEMES[kind]}://{login}{host}:{conf.get_int('http.proxy.port', 8080)}"
        exceptions = tuple(
            name.lower() for name in conf.get_strings("http.proxy.exception.list") if name.strip()
        )
        return cls(url, exceptions)

    def proxy_for(self, host: str) -> str:
        """Returns the proxy's URL, `""` if requests to `host` go straight. Exceptions may start or
        end with `*`.
        """
        if not self.url or any(_matches(pattern, host) for pattern in self.exceptions):
            return ""
        return self.url


def _matches(pattern: str, host: str) -> bool:
    return (
        pattern == host
        or (pattern.endswith("*") and host.startswith(pattern[:-1]))
        or (pattern.startswith("*") and host.endswith(pattern[1:]))
    )


@dataclass(slots=True)
class HttpSettings:
    """Everything that shapes a request or what is kept of the answer. Times in ms."""

    user_agents: list[str]
    accept: str = ""
    accept_language: str = ""
    accept_charset: str = ""
    accept_encoding: str = "x-gzip, gzip, deflate"
    timeout: int = 10_000
    content_limit: int = 1_048_576
    time_limit: int = LONGEST_PAGE * 1000
    partial_as_truncated: bool = False
    http_version: str = "1.1"
    head: bool = False
    page_codes: frozenset[int] = frozenset({200})
    """Status codes of answers that are pages."""
    check_certificates: bool = True
    store_response_time: bool = True
    store_address: bool = False
    store_request: bool = False
    store_headers: bool = False
    store_versions: bool = False
    store_etag: bool = True
    if_modified_since: bool = True
    send_cookies: bool = True
    cookies: dict[str, str] = field(default_factory=dict)
    proxy: ProxySettings = ProxySettings()
    names: ResolverSettings = field(default_factory=ResolverSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    pool: tuple[int, int] | None = None
    """Idle connections that are kept at most, and for how many seconds; None: the transport's own
    choice.
    """
    ca_file: str = ""
    suppressed: frozenset[str] = frozenset()
    """Java names of exceptions that are logged without a traceback."""

    @classmethod
    def from_conf(cls, conf: Configuration) -> HttpSettings:
        """Reads the properties (HttpBase.setConf)."""
        seconds = conf.get_int("http.time.limit")
        timeout = conf.get_int("http.timeout")
        if 0 <= seconds * 1000 < timeout:
            log.warning(
                "http.time.limit=%d s ends a page before http.timeout=%d ms ends a read",
                seconds,
                timeout,
            )
        version = "1.1" if conf.get_boolean("http.useHttp11") else "1.0"
        send_cookies = conf.get_boolean("http.enable.cookie.header")
        return cls(
            user_agents=_user_agents(conf),
            accept=conf.get_text("http.accept").strip(),
            accept_language=conf.get_text("http.accept.language").strip(),
            accept_charset=conf.get_text("http.accept.charset").strip(),
            accept_encoding=conf.get_text("http.accept.encoding").strip(),
            timeout=timeout,
            content_limit=conf.get_int("http.content.limit"),
            time_limit=(LONGEST_PAGE if seconds < 0 else seconds) * 1000,
            partial_as_truncated=conf.get_boolean("http.partial.truncated"),
            http_version="2" if conf.get_boolean("http.useHttp2") else version,
            head=conf.get_boolean("http.head"),
            page_codes=_page_codes(conf),
            check_certificates=conf.get_boolean("http.tls.certificates.check"),
            store_response_time=conf.get_boolean("http.store.responsetime"),
            store_address=conf.get_boolean("store.ip.address"),
            store_request=conf.get_boolean("store.http.request"),
            store_headers=conf.get_boolean("store.http.headers"),
            store_versions=conf.get_boolean("store.protocol.versions"),
            store_etag=conf.get_boolean("http.store.etag"),
            if_modified_since=conf.get_boolean("http.enable.if.modified.since.header"),
            send_cookies=send_cookies,
            cookies=_host_cookies(conf) if send_cookies else {},
            proxy=ProxySettings.from_conf(conf),
            names=ResolverSettings.from_conf(conf),
            tls=TlsSettings.from_conf(conf),
            pool=_pool(conf),
            ca_file=conf.get("http.tls.ca.file", "").strip() or _bundled_authorities(),
            suppressed=frozenset(conf.get_trimmed_strings("http.log.exceptions.suppress.stack")),
        )

    def user_agent(self) -> str:
        """Returns the agent string, one at random where they rotate."""
        agents = self.user_agents
        return agents[0] if len(agents) == 1 else random.choice(agents)

    def cookie_for(self, url: Url) -> str | None:
        """Returns the cookie of the file for this host."""
        return self.cookies.get(canonical_host(url.host))

    def curl(self) -> CurlSettings:
        """Returns the part that the transport needs."""
        pool = (
            {}
            if self.pool is None
            else {"max_connections": self.pool[0], "max_idle_seconds": self.pool[1]}
        )
        return CurlSettings(
            connect_timeout=self.timeout,
            read_timeout=self.timeout,
            total_timeout=self.time_limit,
            verify=self.check_certificates,
            http_version=self.http_version,
            dns_cache_seconds=(
                round(self.names.lifetimes.longest) if self.names.resolver == "system" else 2
            ),
            record_tls=self.store_versions,
            tls=self.tls,
            ca_file=self.ca_file,
            **pool,
        )


def _pool(conf: Configuration) -> tuple[int, int] | None:
    """Reads http.connection.pool.okhttp (pools, connections in each, seconds); returns the size of
    one pool as large as all of them, and the seconds.
    """
    values = conf.get_trimmed_strings("http.connection.pool.okhttp")
    if not values:
        return None
    if len(values) != 3 or not all(part.isdecimal() and int(part) for part in values):
        log.warning(
            "http.connection.pool.okhttp: expected pools, size and seconds, found %s: ignored",
            ",".join(values),
        )
        return None
    pools, size, seconds = map(int, values)
    return pools * size, seconds


def _page_codes(conf: Configuration) -> frozenset[int]:
    """Raises ConfigError for what is no code of success."""
    names = conf.get_trimmed_strings("http.page.codes") or ["200"]
    wrong = [name for name in names if re.fullmatch("2[0-9][0-9]", name) is None]
    if wrong:
        raise conf.wrong("http.page.codes", "codes from 200 to 299", wrong[0])
    return frozenset(map(int, names))


def _bundled_authorities() -> str:
    """certifi's file, which comes with httpx; `""` leaves it to libcurl."""
    spec = find_spec("certifi")
    path = (
        None if spec is None or spec.origin is None else Path(spec.origin).with_name("cacert.pem")
    )
    return str(path) if path is not None and path.is_file() else ""


def _user_agents(conf: Configuration) -> list[str]:
    own = agent_string(
        *(
            conf.get(f"http.agent.{part}")
            for part in ("name", "version", "description", "url", "email")
        )
    )
    if not conf.get_boolean("http.agent.rotate"):
        return [own]
    name = conf.get_text("http.agent.rotate.file")
    try:
        agents = [line.strip() for line in conf.read_resource(name).splitlines() if line.strip()]
    except ConfigError as exc:
        log.warning("http.agent.rotate.file: %s; the agent stays %s", exc, own)
        return [own]
    if not agents:
        log.warning("http.agent.rotate.file: no agent in %s; the agent stays %s", name, own)
    return agents or [own]


def _host_cookies(conf: Configuration) -> dict[str, str]:
    """http.agent.host.cookie.file: `host <tab> cookie` lines; a `#` anywhere makes a line a
    comment.
    """
    name = conf.get_text("http.agent.host.cookie.file")
    if conf.resource(name) is None:
        return {}
    cookies = {}
    for number, line in enumerate(conf.read_resource(name).splitlines(), 1):
        if not line.strip() or "#" in line:
            continue
        fields = line.split("\t")
        if len(fields) == 2:
            cookies[canonical_host(fields[0])] = fields[1]
        else:
            log.warning("%s, line %d: expected <host> <tab> <cookie>: %s", name, number, line)
    return cookies
