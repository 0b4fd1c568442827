"""Checks a crawl before it writes anything, so that one which can't work ends at once and says why.

the crawler has a name · there are seeds, and lines with URLs in them ·
all filters, normalizers and scoring filters can read their rule files ·
a protocol plugin takes the seeds · there is a parser
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.cycle.crawl.options import CrawlOptions
from minutch.cycle.crawl.steps import LOCAL_ONLY
from minutch.cycle.crawldb.seeds import read_seeds, seed_files
from minutch.errors import ConfigError, MinutchError, ProtocolError
from minutch.hadoop.stores import is_local
from minutch.plugin.chains import SCOPE_INJECT, ScoringFilters, URLFilters, URLNormalizers
from minutch.plugin.points import Parser, Protocol
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.plugin.repository import PluginRepository

log = logging.getLogger(__name__)

_SAMPLE: Final = 1000
"""Seeds that are looked at."""


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
            "http.agent.name is not set, and site owners shall know who calls",
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
    """Tells whether a plugin takes the URL; also true for what is no URL, as the filters report
    that.
    """
    try:
        factory.get_protocol(url)
    except ProtocolError:
        return "://" not in url
    return True
