"""Looks at the seeds of a crawl of URLs: which scheme their hosts answer, and which of them failed.

    www.example.org    https://www.example.org/ if that is answered, whatever the answer, else http

What the CrawlDb has already is not asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minutch import eventloops
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.reasons import http_code, reason
from minutch.errors import MinutchError, UrlError
from minutch.hadoop.formats.writables import Text
from minutch.job import JobContext
from minutch.plugin.chains import SCOPE_INJECT, URLNormalizers
from minutch.plugin.protocolfactory import ProtocolFactory
from minutch.plugin.repeats import output_of
from minutch.records import protocol as codes
from minutch.records.crawldatum import STATUS_DB_GONE, STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import ProtocolStatus
from minutch.urls.parts import parse

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
