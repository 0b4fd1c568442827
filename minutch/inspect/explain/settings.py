"""Settings of `explain`: those of the jobs whose decisions it repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from minutch.conf import Configuration
from minutch.conf.properties import shown
from minutch.conf.sources import NUTCH, PROFILE
from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.errors import ConfigError
from minutch.inspect.explain.facts import Setting
from minutch.inspect.explain.urlforms import SCOPES
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.urls.robots import agent_names

Resolve = Callable[[str], Sequence[str]]
"""Returns the addresses of a host."""


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """Options of explain."""

    generate: GenerateOptions = field(default_factory=GenerateOptions)
    """Options of generate."""
    quick: bool = False
    """Leaves out what has no index: referring segments, redirects, pages of the same content."""
    resolve: Resolve | None = None
    """Looks up addresses of hosts, for the address guard; None: nothing is looked up."""


@dataclass(frozen=True, slots=True)
class ExplainSettings:
    """Settings and plugins of the jobs that a URL passes through."""

    normalizers: Mapping[str, URLNormalizers]
    """Normalizers by scope."""
    filters: URLFilters
    update: UpdateSettings
    fetch: FetchSettings
    protocols: ProtocolFactory
    agents: tuple[str, ...]
    """Names by which robots.txt may address the crawler."""
    max_count: int
    """generate.max.count."""
    proxy: str

    @classmethod
    def from_conf(cls, conf: Configuration, now: int) -> Self:
        """Reads the settings; `now` (ms) is the time of the explanation."""
        return cls(
            {scope: URLNormalizers(conf, scope) for scope in SCOPES},
            URLFilters(conf),
            UpdateSettings.from_conf(conf),
            FetchSettings.from_conf(conf, now),
            ProtocolFactory(conf),
            _agents(conf),
            conf.get_int("generate.max.count"),
            proxy_of(conf),
        )


def _agents(conf: Configuration) -> tuple[str, ...]:
    try:
        return tuple(agent_names(conf))
    except ConfigError:
        return ()  # it has no name: the protocol plugin will say so


def proxy_of(conf: Configuration) -> str:
    """Returns the host of the proxy, or an empty text."""
    return conf.get_trimmed("http.proxy.host") or ""


def settings_of(conf: Configuration) -> Iterator[Setting]:
    """Yields what is set beyond the defaults, by property; of a profile only its name."""
    for name in sorted(conf):
        is_profile = name == PROFILE and conf.get(name) != NUTCH
        if conf.is_set(name) or is_profile:
            value = shown(name, conf.get(name) or "")
            yield Setting(name, value, conf.source(name) or "")
