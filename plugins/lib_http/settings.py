"""Reads the `http.*` and `store.*` properties of all HTTP protocol plugins (HttpBase.setConf).

Defaults are Nutch's, except that certificates are checked (`http.tls.certificates.check`) and that
no page takes longer than a minute where `http.time.limit` sets nothing.
"""

from __future__ import annotations

import logging
import random
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.conf.settings import trimmed
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
# `h` and `4a`: the proxy looks the names up, which libcurl would do itself without them.
_PROXY_SCHEMES: Final = {
    "HTTP": "http", "HTTPS": "https", "SOCKS": "socks5h", "SOCKS4": "socks4a", "SOCKS5": "socks5h",
}  # fmt: skip


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


def _proxy(conf: Configuration) -> str:
    host, user = conf.get("http.proxy.host"), conf.get("http.proxy.username")
    if not host:
        return ""
    kind, port = conf.get_word("http.proxy.type").upper(), conf.get_int("http.proxy.port", 8080)
    login = ""
    if user:
        from urllib.parse import quote

        # Or a colon or `@` in a password would end it.
        login = f"{quote(user, safe='')}:{quote(conf.get('http.proxy.password', ''), safe='')}@"
    return f"{_PROXY_SCHEMES[kind]}://{login}{host}:{port}"


def _hosts(conf: Configuration, name: str) -> tuple[str, ...]:
    return tuple(host.lower() for host in conf.get_strings(name) if host.strip())


@dataclass(frozen=True, slots=True)
class ProxySettings(Settings):
    """http.proxy.*: where requests go through, and the hosts that they don't for."""

    url: str = made_by(_proxy)
    exceptions: tuple[str, ...] = prop("http.proxy.exception.list", _hosts)

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


def _pool(conf: Configuration, name: str) -> tuple[int, int] | None:
    """Reads http.connection.pool.okhttp (pools, connections in each, seconds); returns the size of
    one pool as large as all of them, and the seconds.
    """
    values = conf.get_trimmed_strings(name)
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


def _page_codes(conf: Configuration, name: str) -> frozenset[int]:
    """Raises ConfigError for what is no code of success."""
    codes = conf.get_trimmed_strings(name) or ["200"]
    wrong = [code for code in codes if re.fullmatch("2[0-9][0-9]", code) is None]
    if wrong:
        raise conf.wrong(name, "codes from 200 to 299", wrong[0])
    return frozenset(map(int, codes))


def _authorities(conf: Configuration, name: str) -> str:
    """The file that is named, or certifi's, which comes with httpx; `""` leaves it to libcurl."""
    if named := trimmed(conf, name):
        return named
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


def _host_cookies(conf: Configuration, property_: str) -> dict[str, str]:
    """Lines of `host <tab> cookie`; a `#` anywhere makes a line a comment."""
    name = conf.get_text(property_)
    if not conf.get_boolean("http.enable.cookie.header") or conf.resource(name) is None:
        return {}
    cookies = {}
    for number, line in enumerate(conf.read_resource(name).splitlines(), 1):
        # HttpBase: `word.indexOf("#") == -1`.
        if not line.strip() or "#" in line:
            continue
        fields = line.split("\t")
        if len(fields) == 2:
            cookies[canonical_host(fields[0])] = fields[1]
        else:
            log.warning("%s, line %d: expected <host> <tab> <cookie>: %s", name, number, line)
    return cookies


def _time_limit(conf: Configuration, name: str) -> int:
    seconds, timeout = conf.get_int(name), conf.get_int("http.timeout")
    if 0 <= seconds * 1000 < timeout:
        log.warning(
            "http.time.limit=%d s ends a page before http.timeout=%d ms ends a read",
            seconds,
            timeout,
        )
    return (LONGEST_PAGE if seconds < 0 else seconds) * 1000


def _http_version(conf: Configuration) -> str:
    if conf.get_boolean("http.useHttp2"):
        return "2"
    return "1.1" if conf.get_boolean("http.useHttp11") else "1.0"


@dataclass(slots=True)
class HttpSettings(Settings):
    """Everything that shapes a request or what is kept of the answer. Times in ms."""

    user_agents: list[str] = made_by(_user_agents)
    accept: str = prop("http.accept", trimmed)
    accept_language: str = prop("http.accept.language", trimmed)
    accept_charset: str = prop("http.accept.charset", trimmed)
    accept_encoding: str = prop("http.accept.encoding", trimmed)
    timeout: int = prop("http.timeout")
    content_limit: int = prop("http.content.limit")
    time_limit: int = prop("http.time.limit", _time_limit)
    partial_as_truncated: bool = prop("http.partial.truncated")
    http_version: str = made_by(_http_version)
    head: bool = prop("http.head")
    page_codes: frozenset[int] = prop("http.page.codes", _page_codes)
    """Status codes of answers that are pages."""
    check_certificates: bool = prop("http.tls.certificates.check")
    store_response_time: bool = prop("http.store.responsetime")
    store_address: bool = prop("store.ip.address")
    store_request: bool = prop("store.http.request")
    store_headers: bool = prop("store.http.headers")
    store_versions: bool = prop("store.protocol.versions")
    store_etag: bool = prop("http.store.etag")
    if_modified_since: bool = prop("http.enable.if.modified.since.header")
    send_cookies: bool = prop("http.enable.cookie.header")
    cookies: dict[str, str] = prop("http.agent.host.cookie.file", _host_cookies)
    proxy: ProxySettings = made_by(ProxySettings.from_conf)
    names: ResolverSettings = made_by(ResolverSettings.from_conf)
    tls: TlsSettings = made_by(TlsSettings.from_conf)
    pool: tuple[int, int] | None = prop("http.connection.pool.okhttp", _pool)
    """Idle connections that are kept at most, and for how many seconds; None: the transport's own
    choice.
    """
    ca_file: str = prop("http.tls.ca.file", _authorities)
    suppressed: frozenset[str] = prop("http.log.exceptions.suppress.stack")
    """Java names of exceptions that are logged without a traceback."""

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
