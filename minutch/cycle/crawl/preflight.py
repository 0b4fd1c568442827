"""What comes before the first job of a crawl: checks, so that one which can't work ends at once and
says why; wishes of a site, as properties; what the crawl's folder remembers; the scheme of seeds.

the crawler has a name · there are seeds, and lines with URLs in them ·
all filters, normalizers and scoring filters can read their rule files ·
no stored page is lost to rules that have changed, unless that is said ·
a protocol plugin takes the seeds · there is a parser
"""

from __future__ import annotations

import logging
import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

import polars as pl

from minutch import eventloops, strictjson
from minutch.conf import Configuration
from minutch.conf.configuration import COMMAND_LINE
from minutch.conf.properties import shown
from minutch.conf.sources import CONF, PROFILE, SITE, names_code
from minutch.cycle.crawl.steps import LOCAL_ONLY, CrawlOptions
from minutch.cycle.crawldb.partitions import EntryFilter
from minutch.cycle.crawldb.seeds import read_seeds, seed_files
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.decisions import http_code, reason
from minutch.errors import ConfigError, MinutchError, ProtocolError, StoreError, UrlError
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, JobContext
from minutch.paths import is_local
from minutch.plugin.chains import SCOPE_INJECT, ScoringFilters, URLFilters, URLNormalizers
from minutch.plugin.points import Parser, Protocol
from minutch.plugin.protocolfactory import ProtocolFactory, output_of
from minutch.plugin.repository import PluginRepository
from minutch.plugin.urlrules import UrlTally, rule_sources
from minutch.processwide import command_line
from minutch.records import protocol as codes
from minutch.records.crawldatum import STATUS_DB_GONE, STATUS_DB_UNFETCHED, STORED, CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import ProtocolStatus
from minutch.terminal import counted
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import parse
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.install import WholeFile
from minutch.work.tables.recordfiles import scan

log = logging.getLogger(__name__)

_SAMPLE: Final = 1000
"""Seeds that are looked at."""
_NAMED: Final = 5
"""Rules that are named in a warning."""


def check_place(directory: Path, options: CrawlOptions, steps: Sequence[str]) -> None:
    """Raises ConfigError where a step that is wished can't work in the crawl's folder."""
    has_sitemaps = options.sitemaps is not None or options.sitemaps_from_hostdb != "never"
    wished = [*steps, *(["sitemap"] if has_sitemaps else [])]
    other = next((step for step in wished if step in LOCAL_ONLY), None)
    if other is not None and not is_local(directory):
        raise ConfigError(f"{other} works with local files only, not with {directory}")


def check(conf: Configuration, seeds: Path | None) -> None:
    """Raises MinutchError for a crawl that can't work; warns of what may be wrong."""
    if not (conf.get_trimmed("http.agent.name") or ""):
        where = conf.file_to_edit("nutch-site.xml")
        raise ConfigError(
            "http.agent.name is not set, and site owners should know who is calling",
            hint=f"give your crawler a name in {where}, or by -D http.agent.name=my-crawler",
        )
    sample = [] if seeds is None else list(islice(_urls(seeds), _SAMPLE))
    if seeds is not None and not sample:
        raise MinutchError(
            f"{seeds} has no URL", hint="one per line, such as https://www.example.org/"
        )
    factory, point = ProtocolFactory(conf), Protocol.point_id
    untaken = [url for url in sample if not _is_taken(factory, url)]
    problem, needed = "", "protocol-http"
    if not PluginRepository.of(conf).extensions(point):
        problem = "no protocol plugin is active"
    elif sample and len(untaken) == len(sample):
        problem = f"no active plugin takes URLs such as {untaken[0]}"
        needed = _plugin_for(untaken[0].partition(":")[0].lower(), conf)
    if problem:
        includes = conf.source("plugin.includes")
        raise ConfigError(
            f"nothing can be fetched: {problem}",
            hint=f"plugin.includes ({includes}) needs {needed}",
        )
    if not PluginRepository.of(conf).extensions(Parser.point_id):
        raise ConfigError(
            "nothing can be parsed: no parser plugin is active",
            hint=f"plugin.includes ({conf.source('plugin.includes')}) needs parse-html",
        )
    if untaken:
        log.warning(
            "no active protocol plugin takes %d of the seeds, such as %s", len(untaken), untaken[0]
        )
    URLFilters(conf)
    URLNormalizers(conf, SCOPE_INJECT)
    ScoringFilters(conf)


def check_rejected(conf: Configuration, counts: Mapping[str, int]) -> None:
    """Raises MinutchError where inject has left no seed: a crawl without seeds is none."""
    if counts.get("seeds") and counts.get("seeds") == counts.get("seeds rejected"):
        where = conf.file_to_edit("regex-urlfilter.txt")
        raise MinutchError(
            "all seeds were rejected",
            hint=f"the lines above say why; {where} has the rules of urlfilter-regex",
        )


def _plugin_for(scheme: str, conf: Configuration) -> str:
    """Returns the id of a plugin for a scheme, and what else it needs."""
    if scheme in ("http", "https"):
        return "protocol-http"
    for manifest in PluginRepository.of(conf).available.values():
        if any(
            scheme in re.split("[, ]", one.parameters.get("protocolName", ""))
            for one in manifest.implementations
        ):
            rules = conf.get_text("urlfilter.regex.file")
            return f"{manifest.id}, and {rules} has to let {scheme}: pass"
    return f"a plugin for {scheme}:, and none is installed"


def _urls(seeds: Path) -> Iterator[str]:
    if not seeds.exists():
        raise MinutchError(
            f"no seeds: {seeds} does not exist",
            hint="a file with a URL per line, or a folder of such files",
        )
    for path in seed_files(seeds):
        for frame in read_seeds(path):
            yield from frame["url"]


def _is_taken(factory: ProtocolFactory, url: str) -> bool:
    """Tells whether a plugin takes the URL; also true for no URL: the filters report that."""
    try:
        factory.get_protocol(url)
    except ProtocolError:
        return "://" not in url
    return True


# -- wishes ----------------------------------------------------------------------------------------
#
# What people wish of a crawl of a site, in the words of wget and Scrapy, is turned into Nutch's
# properties.
#
#   depth            scoring.depth.max, with scoring-depth in plugin.includes
#   include, exclude urlfilter.regex.rules: before, or in place of, what regex-urlfilter.txt accepts
#   delay            fetcher.server.delay
#   agent            http.agent.name


@dataclass(frozen=True, slots=True)
class Wishes:
    """What is wished of a crawl of `urls`."""

    urls: Sequence[str]
    """They may lack their schemes until it is known which one is answered."""
    depth: int | None = None
    """Links from a seed to a page, at most."""
    include: Sequence[str] = ()
    """Regular expressions of which a URL has to match one; the seeds need not."""
    exclude: Sequence[str] = ()
    """Regular expressions of which a URL may match none."""
    delay: float | None = None
    """Seconds between two requests to a host."""
    agent: str | None = None
    """The crawler's name."""

    @property
    def folder(self) -> str:
        """The name of the crawl's folder: the first host. Raises UrlError."""
        first = self.urls[0]
        host = parse(first if "://" in first else f"https://{first}").host
        if not host:
            raise UrlError(f"{self.urls[0]}: no host")
        return canonical_host(host).strip("[]").replace(":", "-")

    def properties(self, conf: Configuration) -> dict[str, str]:
        """Returns the properties to set."""
        found: dict[str, str] = {}
        if self.delay is not None:
            found["fetcher.server.delay"] = f"{self.delay:g}"
        if self.agent is not None:
            found["http.agent.name"] = self.agent
        if self.depth is not None:
            found["scoring.depth.max"] = str(self.depth + 1)  # a seed's is 1
            found["crawl.sitemaps"] = "false"  # what they list is at no depth
            found["plugin.includes"] = f"{conf.get('plugin.includes') or ''}|scoring-depth"
        if self.include or self.exclude:
            found["urlfilter.regex.rules"] = "\n".join(self._rules(conf))
        return found

    def _rules(self, conf: Configuration) -> Iterator[str]:
        for pattern in self.exclude:
            yield f"-{pattern}"
        if self.include:
            yield from (f"+^{re.escape(url)}$" for url in self.urls)
        known = conf.get("urlfilter.regex.rules")
        if known is None:
            known = conf.read_resource(conf.get_text("urlfilter.regex.file"))
        for line in known.splitlines():
            if not (self.include and line.startswith("+")):
                yield line
        for pattern in self.include:
            yield f"+{pattern}"


# -- seeds -----------------------------------------------------------------------------------------
#
# Which scheme the hosts of a crawl of URLs answer, and which seeds failed:
#
#   www.example.org    https://www.example.org/ if that is answered, whatever the answer, else http
#
# What the CrawlDb has already is not asked again.

_SCHEMES: Final = ("https", "http")


def with_schemes(crawl: Path, urls: Sequence[str], context: JobContext) -> list[str]:
    """Returns the URLs, those without a scheme with one; robots.txt is asked for to find out."""
    return [url if "://" in url else _with_scheme(crawl, url, context) for url in urls]


def _with_scheme(crawl: Path, url: str, context: JobContext) -> str:
    known = _Entries(crawl, context.conf)
    forms = [f"{scheme}://{url}" for scheme in _SCHEMES]
    found = next((form for form in forms if known.of(form) is not None), None)
    if found is not None or not context.conf.get_trimmed("http.agent.name"):
        return found or forms[0]
    return forms[0] if _is_answered(forms[0], context.conf) else forms[1]


def _is_answered(url: str, conf: Configuration) -> bool:
    """Tells whether a server answers at all; robots.txt is what the crawl would ask for first."""
    try:
        parts = parse(url)
        robots = f"{parts.protocol}://{parts.authority}/robots.txt"
        datum = CrawlDatum()
        protocol = ProtocolFactory(conf).get_protocol(robots)
        output = eventloops.run(output_of(protocol, robots, datum, 1.0))
    except MinutchError:
        return False
    return bool(http_code(datum)) or output.status.is_success


def failed_seeds(crawl: Path, urls: Sequence[str], conf: Configuration) -> dict[str, str]:
    """Returns the seeds that were asked for and could not be had, or lead by redirects to what
    could not, with the reason. Raises FormatError, StoreError.
    """
    known = _Entries(crawl, conf)
    found = {url: _failure(url, known, conf.get_trimmed("http.proxy.host") or "") for url in urls}
    return {url: why for url, why in found.items() if why}


def _failure(url: str, known: _Entries, proxy: str) -> str:
    way, why = [url], ""
    while (datum := known.of(way[-1])) is not None and not why:
        ended = datum.metadata.get(Text(PROTO_STATUS_KEY))
        is_retried = datum.status == STATUS_DB_UNFETCHED and datum.retries
        if isinstance(ended, ProtocolStatus) and ended.code in (codes.MOVED, codes.TEMP_MOVED):
            target = ended.message or ""
            why = "redirects to itself" if target in way else ""
            way.append(target)
        elif datum.status == STATUS_DB_GONE or is_retried:
            why = (
                reason(ended, http_code(datum), proxy)
                if isinstance(ended, ProtocolStatus)
                else datum.status_name
            )
        else:
            return ""
    if not why and len(way) == 1:
        return "the URL filters leave it out"
    why = why or "on another site, or left out by the URL filters"
    return why if len(way) == 1 else f"redirects to {way[-1]}: {why}"


class _Entries:
    """The CrawlDb's entries of seeds, as `inject` has normalized them."""

    def __init__(self, crawl: Path, conf: Configuration) -> None:
        self._db = CrawlDb(crawl / "crawldb")
        self._normalizers = URLNormalizers(conf, SCOPE_INJECT)

    def of(self, url: str) -> CrawlDatum | None:
        """Returns the entry of a seed."""
        try:
            normalized = self._normalizers.normalize(url)
        except UrlError:
            return None
        return self._db.get(normalized) if normalized and self._db.exists() else None


# -- what the folder remembers ---------------------------------------------------------------------
#
# What a crawl was first told is written into its folder, where every later command on it finds it.
#
#     <crawl>/conf/nutch-site.xml    profile, agent, delay, scope, and each -D of the first crawl
#
# A secret (`minutch.conf.properties`) and what names code are not written, but said to be
# missing. What reads the file is `minutch.conf.sources`.

ALWAYS: Final = (
    PROFILE,
    "http.agent.name",
    "fetcher.server.delay",
    "db.ignore.external.links",
    "db.ignore.external.links.mode",
)
"""Properties that are written whatever their values come from."""

_HEAD: Final = """<?xml version="1.0" encoding="UTF-8"?>
<!--
  The settings of this crawl, as it was begun; every command on this folder uses them. They may be
  changed, and more be added. They win over the profile and the nutch-site.xml of other folders,
  -D name=value on a command line wins over them. `minutch showproperties CRAWL` says where each
  value comes from.
-->
<configuration>
"""
_PROPERTY: Final = """
  <property>
    <name>{name}</name>
    <value>{value}</value>
  </property>
"""
_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def remember(crawl: Path, conf: Configuration, told: Collection[str] = ()) -> None:
    """Writes the file unless the folder `crawl` has one, with the values of `told` besides those of
    the command line. Raises StoreError.
    """
    path = crawl / CONF / SITE
    if not is_local(crawl) or path.exists():
        return
    given = {name for name in conf if conf.source(name) == COMMAND_LINE} | set(told)
    is_new = not path.parent.exists()
    try:
        with WholeFile(path, sums=False) as stream:
            stream.write("".join(_lines(conf, sorted(given - set(ALWAYS)))).encode())
        path.chmod(0o644)  # others' write permission would make the next command refuse it
        if is_new:
            path.parent.chmod(0o755)
    except OSError as exc:
        raise StoreError(f"{path}: can't be written: {exc.strerror}") from exc


def _lines(conf: Configuration, names: list[str]) -> Iterator[str]:
    yield _HEAD
    for name in (*ALWAYS, *names):
        value = conf.raw(name)
        if reason := unwritten(name, value or ""):
            yield f"\n  <!-- {name.replace('--', '- -')} {reason} -->\n"
        elif value:
            yield _PROPERTY.format(name=escape(name), value=escape(value, {"\r": "&#13;"}))
    yield "\n</configuration>\n"


def unwritten(name: str, value: str) -> str:
    """Returns why a property is not written; empty if it is."""
    if shown(name, value) != value:
        return "is secret: it is not kept here, and has to be given again by -D"
    if names_code(name):
        return "names code: it is not kept here, and has to be given again by -D"
    if _NO_XML.search(name + value):
        return "has characters that XML lacks, and has to be given again by -D"
    return ""


# -- rules that have changed -----------------------------------------------------------------------
#
# What decides about URLs (`plugin.urlrules.rule_sources`) is remembered once a round has worked
# with it, in <crawl>/.rules (JSON: name -> value or digest). Where it has changed since, or nothing
# is remembered of a crawl, the CrawlDb is gone through for stored pages that no longer pass: before
# the first step, so that nobody loses pages unawares. Otherwise it costs a millisecond.

RULES: Final = ".rules"


def remembered_rules(crawl: Path) -> Mapping[str, str]:
    """Returns what decided about URLs in the last round; nothing where that is not known."""
    try:
        found = strictjson.loads((crawl / RULES).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember_rules(crawl: Path, rules: Mapping[str, str]) -> None:
    """Writes that down, unless it is there already. Raises StoreError."""
    if not is_local(crawl) or remembered_rules(crawl) == rules:
        return
    try:
        with WholeFile(crawl / RULES, sums=False) as stream:
            stream.write(strictjson.dumps(dict(rules), indent=1).encode())
    except OSError as exc:
        raise StoreError(f"{crawl / RULES}: can't be written: {exc.strerror}") from exc


def warn_of_losses(crawl: Path, conf: Configuration) -> dict[str, str]:
    """Returns what decides about URLs now. Where that is not what it was, warns of stored pages
    that it leaves out: how many, by which rules, such as which. Raises FormatError.
    """
    rules, before = rule_sources(conf), remembered_rules(crawl) if is_local(crawl) else {}
    db = CrawlDb(crawl / "crawldb")
    if rules == before or not is_local(crawl) or not db.exists():
        return rules
    lost, renamed, stored = UrlTally(), UrlTally(), 0
    removing = EntryFilter.from_conf(conf)
    asked = removing if removing.filters else EntryFilter.from_conf(conf, filtering=True)
    for table in (table for part in db.parts() for table in scan(part)):
        pages = table.filter(pl.col("status").is_in(STORED)).select("key", "status")
        pages, stored = pages.with_row_index("row"), stored + len(pages)
        kept = asked.apply(pages, Counters())
        gone = pages.join(kept, on="row", how="anti")
        lost.add(decode_keys(gone["key"]), asked.reasons(gone))
        moved = kept.filter(kept["key"] != pages["key"].gather(kept["row"]))
        renamed.add(decode_keys(moved["key"]), "normalizers")
    changed = [name for name in {*rules, *before} if rules.get(name) != before.get(name)]
    changed.sort(key=lambda name: (name not in rules or name not in before, name))
    why = (
        f"{', '.join(changed[:_NAMED])} changed since the last round"
        if before
        else "it is not known by which rules the last round worked"
    )
    fate = "they stay and are fetched again, but no new link to them is kept"
    if conf.get_boolean("fetcher.filter.urls"):
        fate = "they are not asked for any more (fetcher.filter.urls)"
    if removing.filters:
        fate = "the next updatedb removes them from the CrawlDb (crawldb.url.filters)"
    of = f"of {counted(stored, 'stored pages')}"
    if lost.count:
        log.warning("%s; %s %s do not pass: %s", why, f"{lost.count:,}", of, fate)
        for rule, count, _, examples in lost.by("reason")[:_NAMED]:
            log.warning("  %s by %s: %s", f"{count:,}", rule, " ".join(examples))
    if renamed.count:
        fate = "get other URLs from updatedb (crawldb.url.normalizers), such as"
        log.warning("%s; %s %s %s %s", why, f"{renamed.count:,}", of, fate, *renamed.examples()[:1])
    if lost.count or renamed.count:
        command = command_line(f"whatif {shlex.quote(str(crawl))}")
        log.warning("`%s` tells what else comes of it", command)
    return rules
