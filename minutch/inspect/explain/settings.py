"""Settings of `explain`, those of the jobs that it repeats; a URL's forms, a crawl's stores."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Final

from minutch.conf import Configuration, Settings, made_by, prop
from minutch.conf.properties import shown
from minutch.conf.sources import NUTCH, PROFILE
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.crawldb.transitions import UpdateSettings
from minutch.cycle.fetch.frontier.hostmemory import state_folder
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetchlist.select import NO_LIMIT
from minutch.cycle.fetchlist.selector import GenerateOptions
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import Segment
from minutch.errors import ConfigError, UrlError
from minutch.inspect.explain.facts import FilterAnswer, NormalForm, Setting
from minutch.inspect.query.crawl import CRAWLDB, HOSTDB, LINKDB, SEGMENTS, open_crawl
from minutch.plugin import chains
from minutch.plugin.chains import URLFilters, URLNormalizers
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.processwide import command_line
from minutch.urls.parts import parse
from minutch.urls.robots import agent_names

# Asks each normalizer and filter about a URL, in the chains that all jobs run.

SCOPES: Final = (
    chains.SCOPE_INJECT,
    chains.SCOPE_OUTLINK,
    chains.SCOPE_CRAWLDB,
    chains.SCOPE_FETCHER,
    chains.SCOPE_LINKDB,
    chains.SCOPE_GENERATE_HOST_COUNT,
    chains.SCOPE_PARTITION,
    chains.SCOPE_INDEXER,
    chains.SCOPE_DEFAULT,
)
"""Scopes in the order in which a URL meets them; the first one decides the name of a seed."""


def normal_forms(normalizers: Mapping[str, URLNormalizers], url: str) -> tuple[NormalForm, ...]:
    """Returns the normal form in each scope; scopes with the same outcome share one."""
    found: dict[tuple[str | None, str, tuple[str, ...]], list[str]] = {}
    for scope, chain in normalizers.items():
        found.setdefault(_form(chain, url), []).append(scope)
    return tuple(NormalForm(tuple(scopes), *form) for form, scopes in found.items())


def _form(normalizers: URLNormalizers, url: str) -> tuple[str | None, str, tuple[str, ...]]:
    result: str | None = url
    changed: list[str] = []
    try:
        parse(url)
        for normalizer, normal in normalizers.steps(url):
            if normal != result and result is not None:
                rules = normalizer.explain(result, normalizers.scope)
                changed.append(type(normalizer).__name__ + (f": {rules}" if rules else ""))
            result = normal
    except UrlError as exc:
        return None, str(exc), tuple(changed)
    return result, "", tuple(dict.fromkeys(changed))


def seed_form(forms: Iterable[NormalForm]) -> NormalForm:
    """Returns the form that `inject` makes."""
    return next(form for form in forms if chains.SCOPE_INJECT in form.scopes)


def filter_answers(filters: URLFilters, url: str) -> tuple[FilterAnswer, ...]:
    """Returns the answers of the filters, up to the one that rejects the URL."""
    result = []
    before = url
    for url_filter, passed in filters.steps(url):
        result.append(
            FilterAnswer(type(url_filter).__name__, passed is not None, url_filter.explain(before))
        )
        before = before if passed is None else passed
    return tuple(result)


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


def _agents(conf: Configuration) -> tuple[str, ...]:
    try:
        return tuple(agent_names(conf))
    except ConfigError:
        return ()  # it has no name: the protocol plugin will say so


def proxy_of(conf: Configuration) -> str:
    """Returns the host of the proxy, or an empty text."""
    return conf.get_trimmed("http.proxy.host") or ""


def _normalizers(conf: Configuration) -> Mapping[str, URLNormalizers]:
    return {scope: URLNormalizers(conf, scope) for scope in SCOPES}


@dataclass(frozen=True, slots=True)
class ExplainSettings(Settings):
    """Settings and plugins of the jobs that a URL passes through."""

    fetch: FetchSettings
    normalizers: Mapping[str, URLNormalizers] = made_by(_normalizers)
    """Normalizers by scope."""
    filters: URLFilters = made_by(URLFilters)
    update: UpdateSettings = made_by(UpdateSettings.from_conf)
    protocols: ProtocolFactory = made_by(ProtocolFactory)
    agents: tuple[str, ...] = made_by(_agents)
    """Names by which robots.txt may address the crawler."""
    max_count: int = prop("generate.max.count")
    proxy: str = made_by(proxy_of)
    conf: Configuration = made_by(lambda conf: conf)


def settings_of(conf: Configuration) -> Iterator[Setting]:
    """Yields what is set beyond the defaults, by property; of a profile only its name."""
    for name in sorted(conf):
        is_profile = name == PROFILE and conf.get(name) != NUTCH
        if conf.is_set(name) or is_profile:
            value = shown(name, conf.get(name) or "")
            yield Setting(name, value, conf.source(name) or "")


# Opens the databases and segments of a crawl that `explain` looks URLs up in.


class CrawlStores:
    """The databases and segments of a crawl. Raises StoreError without crawl or CrawlDb."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.segments: list[Segment] = [*open_crawl(folder).segments]
        self.crawldb, self.linkdb = CrawlDb(folder / CRAWLDB), LinkDb(folder / LINKDB)
        self.hostdb = HostDb(folder / HOSTDB)
        self.crawldb.require_parts()

    @property
    def state(self) -> Path:
        """The folder in which fetches keep what they remember of hosts."""
        return state_folder(self.folder / SEGMENTS / "any")


# Builds the shell commands that show more of what an answer counts. Pure: no I/O

_PLAIN: Final = re.compile(r"[A-Za-z0-9 .,:;'=_()*<>/?&%+~@-]*")
"""Text that needs no escapes between double quotes."""


def generate_arguments(options: GenerateOptions) -> list[str]:
    """Returns the arguments that give generate these options."""
    words: list[str] = []
    if options.top_n != NO_LIMIT:
        words += ["-topN", str(options.top_n)]
    if options.add_days:
        words += ["-adddays", str(options.add_days)]
    if options.expression is not None:
        words += ["-expr", options.expression]
    if options.hostdb is not None:
        words += ["-hostdb", str(options.hostdb)]
    if options.max_segments != 1:
        words += ["-maxNumSegments", str(options.max_segments)]
    words += [] if options.filtering else ["-noFilter"]
    return words + ([] if options.normalize else ["-noNorm"])


class CommandLines:
    """Shell commands about the crawl in a folder; `arguments` are those of generate."""

    def __init__(self, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._folder = folder
        self._arguments = " ".join(map(quote, arguments))

    def _path(self, *names: str) -> str:
        return quote(str(self._folder.joinpath(*names)))

    def generate(self) -> str:
        """Returns the command that makes the next fetch list."""
        folders = f"{self._path('crawldb')} {self._path('segments')}"
        return command_line(f"generate {folders} {self._arguments}").rstrip()

    def explain(self, url: str) -> str:
        """Returns the command that explains one URL."""
        return command_line(f"explain {quote(url)} {self._path()} {self._arguments}").rstrip()

    def on_segment(self, command: str, segment: str) -> str:
        """Returns a command on a segment: fetch, parse, readseg -list."""
        return command_line(f"{command} {self._path('segments', segment)}")

    def update(self, segment: str) -> str:
        """Returns the command that merges a segment into the CrawlDb."""
        return self.on_segment(f"updatedb {self._path('crawldb')}", segment)

    def stats(self) -> str:
        """Returns the command that counts the entries of the CrawlDb by status and host."""
        return command_line(f"readdb {self._path('crawldb')} -stats -sort")

    def sql(self, query: str, **values: str) -> str:
        """Returns a query of the tables; `values` become SQL strings."""
        made = query.format(
            **{name: "'" + value.replace("'", "''") + "'" for name, value in values.items()}
        )
        said = f'"{made}"' if _PLAIN.fullmatch(made) else quote(made)
        return command_line(f"sql {self._path()} {said}")

    def entries(self, status: str) -> str:
        """Returns a query of the entries with a status."""
        return self.sql(
            "select url, fetch_time from crawldb where status = {status}", status=status
        )

    def host(self, host: str) -> str:
        """Returns a query that counts the entries of a host by status."""
        return self.sql(
            "select status, count(*) from crawldb where host = {host} group by 1", host=host
        )
