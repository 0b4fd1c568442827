"""Decides which links of a page are kept, and in which form. The one home of that decision.

In this order: a link to the page itself goes; with db.ignore.external.links or
db.ignore.internal.links what leaves, or stays on, the host (db.ignore.external.links.mode =
byDomain: the domain) goes, unless it is exempted; the link is normalized (scope `outlink`) and
filtered. Source: org.apache.nutch.parse.ParseOutputFormat.filterNormalize.

Normalizing and filtering don't depend on the page, so their verdicts are kept for the links of
other pages. Links that come as a run are judged together, those of many pages at once.

The links of documents without markup are the URLs that stand in their text: a scheme of 2 to 121
characters, a colon, then 2 to 334 characters that URLs consist of, at most 1000 more after a `#`.
Source: org.apache.nutch.parse.OutlinkExtractor.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from minutch.conf import Configuration
from minutch.errors import MinutchError, UrlError
from minutch.plugin.chains import SCOPE_OUTLINK, URLExemptionFilters, URLFilters, URLNormalizers
from minutch.records.links import Outlink, OutlinkRun
from minutch.urls.domains import domain_name
from minutch.urls.parts import parse

if TYPE_CHECKING:
    import polars as pl

    from minutch.cycle.parse.linkverdicts import LinkVerdicts, SiteVerdicts
    from minutch.urls.plainautomaton import PlainUrlAutomaton


log = logging.getLogger(__name__)

_REMEMBERED: Final = 200_000
"""Links whose verdicts are kept; when there are more, all are forgotten."""


class KeptLinks(NamedTuple):
    """The links kept of a page, the number of those that were not looked at, since as many were
    kept as may be, and of those that db.ignore.external.links left out.
    """

    links: Sequence[Outlink]
    unread: int = 0
    external: int = 0


class OutlinkRules:
    """The configured rules for one process; remembers verdicts."""

    def __init__(self, conf: Configuration) -> None:
        self._conf = conf
        filters = conf.get_boolean("parse.filter.urls")
        self._filters = URLFilters(conf) if filters else None
        # ParseOutputFormat asks both only where links are filtered.
        self._exemptions = URLExemptionFilters(conf) if filters else None
        self._normalizes = conf.get_boolean("parse.normalize.urls")
        self._normalizers: dict[str, URLNormalizers] = {}
        self._ignores_internal = conf.get_boolean("db.ignore.internal.links")
        self._ignores_external = conf.get_boolean("db.ignore.external.links")
        self._by_domain = conf.get_text("db.ignore.external.links.mode").lower() == "bydomain"
        self._exempts = (
            self._ignores_external
            and not self._by_domain
            and self._exemptions is not None
            and bool(self._exemptions.filters)
        )
        """Whether a link to another site may stay; exemptions are asked only about hosts."""
        self._verdicts: dict[str, dict[str, str | None]] = {}
        self._external = 0
        """Links left out so far since they leave their site."""

    def origin(self, url: str) -> str | None:
        """Returns the host or domain of a page, with which those of its links are compared; None if
        no rule needs it.

        A page whose key is no URL has none: all its links leave it.
        """
        if not (self._ignores_external or self._ignores_internal):
            return None
        try:
            return self._place(url)
        except UrlError:
            return ""

    def accept(
        self, from_url: str, to_url: str, origin: str | None, scope: str = SCOPE_OUTLINK
    ) -> str | None:
        """Returns the link as it is to be stored; None if it is dropped."""
        # Before it is normalized, as in filterNormalize: a link that becomes the page's URL stays.
        if from_url == to_url or (
            origin is not None and not self._is_wanted(from_url, to_url, origin)
        ):
            return None
        verdicts = self._verdicts.setdefault(scope, {})
        try:
            return verdicts[to_url]
        except KeyError:
            if len(verdicts) >= _REMEMBERED:
                # All at once: an order of use would have to be kept at each look-up.
                verdicts.clear()
            verdict = verdicts[to_url] = self._normalize_and_filter(to_url, scope)
            return verdict

    def keep(
        self, pages: Sequence[tuple[str, OutlinkRun]], most: int, longest: int
    ) -> list[KeptLinks]:
        """Returns the links kept of many pages (URL and links), by kernels unless links to other
        sites may be exempted.

        Of each page at most `most`, none of more than `longest` characters.
        """
        # An exemption may look at both URLs, which a table of single ones can't answer.
        if self._exempts:
            return [self.keep_each(url, links, most, longest) for url, links in pages]
        return [KeptLinks(*kept) for kept in self._table.keep(pages, most, longest)]

    def keep_each(self, url: str, links: Sequence[Outlink], most: int, longest: int) -> KeptLinks:
        """Returns the same for one page, link by link."""
        origin, before = self.origin(url), self._external
        kept: list[Outlink] = []
        unread = 0
        for number, link in enumerate(links):
            if len(kept) >= most:
                unread = len(links) - number
                break
            target = self.accept(url, link.to_url, origin) if len(link.to_url) <= longest else None
            if target is not None:
                kept.append(Outlink(target, link.anchor, link.metadata))
        return KeptLinks(kept, unread, self._external - before)

    @property
    def scope(self) -> str:
        """The property that leaves links out by their hosts; empty if none does."""
        if not self._ignores_external:
            return "db.ignore.internal.links" if self._ignores_internal else ""
        return f"db.ignore.external.links ({'byDomain' if self._by_domain else 'byHost'})"

    def in_scope(self, pages: pl.Series, links: pl.Series) -> pl.Series:
        """Returns the mask of the links (String) of pages that the scope lets pass, each row
        like `accept`.
        """
        import polars as pl

        from minutch.urls.hostcolumns import domains_of, host_names

        if not self.scope:
            return pl.repeat(True, len(links), dtype=pl.Boolean, eager=True)
        here, there = host_names(pages), host_names(links)
        if self._by_domain:
            here, there = domains_of(here), domains_of(there)
        # Null is no URL: such a page has no origin (`origin`), such a link does not pass.
        stays = (here.fill_null("") == there).fill_null(False)
        passes = there.is_not_null()
        if self._ignores_internal:
            passes &= ~stays
        if self._ignores_external:
            leaving = (passes & ~stays).arg_true() if self._exempts else ()
            exempt = [row for row in leaving if self._is_exempted(pages[row], links[row])]
            passes = (passes & stays).scatter(exempt, True)
        return passes

    @cached_property
    def _table(self) -> LinkVerdicts:
        from minutch.cycle.parse.linkverdicts import LinkVerdicts

        judge_one = partial(self._normalize_and_filter, scope=SCOPE_OUTLINK)
        return LinkVerdicts(
            self._judge_column, judge_one, self._plain_automaton, self._site_table()
        )

    def _site_table(self) -> SiteVerdicts | None:
        """Returns the table of sites, None if no rule is about them."""
        from minutch.cycle.parse.linkverdicts import SiteVerdicts
        from minutch.kernels.outlinks import IGNORES_EXTERNAL, IGNORES_INTERNAL

        ignored = (
            self._ignores_external * IGNORES_EXTERNAL | self._ignores_internal * IGNORES_INTERNAL
        )
        return SiteVerdicts(ignored, self._place) if ignored else None

    def _plain_automaton(self) -> PlainUrlAutomaton | None:
        """Combines the verdicts of all normalizers and filters on plain links; None if one of them
        can't give any.
        """
        from minutch.urls.plainautomaton import PlainUrlAutomaton

        normalizers = self._normalizers_of(SCOPE_OUTLINK).untouched() if self._normalizes else []
        filters = [] if self._filters is None else self._filters.verdicts()
        return (
            None
            if normalizers is None or filters is None
            else PlainUrlAutomaton.of(normalizers, filters)
        )

    def _judge_column(self, urls: pl.Series) -> pl.Series:
        """Returns a column of distinct links as they are to be stored, null where they are not."""
        import polars as pl

        try:
            if self._normalizes:
                urls = self._normalizers_of(SCOPE_OUTLINK).normalize_column(urls, distinct=True)
            return (
                urls if self._filters is None else self._filters.filter_column(urls, distinct=True)
            )
        except MinutchError as error:
            # One link may be to blame: then it alone is rejected.
            log.warning("links are filtered one by one: %s", error)
            verdicts = [
                None if url is None else self._normalize_and_filter(url, SCOPE_OUTLINK)
                for url in urls
            ]
            return pl.Series(urls.name, verdicts, dtype=pl.String)

    def _normalizers_of(self, scope: str) -> URLNormalizers:
        if scope not in self._normalizers:
            self._normalizers[scope] = URLNormalizers(self._conf, scope)
        return self._normalizers[scope]

    def _place(self, url: str) -> str:
        parts = parse(url)
        return domain_name(parts) if self._by_domain else parts.host.lower()

    def _is_wanted(self, from_url: str, to_url: str, origin: str) -> bool:
        try:
            place = self._place(to_url)
        except UrlError:
            return False
        if (
            self._ignores_external
            and place != origin
            and not (self._exempts and self._is_exempted(from_url, to_url))
        ):
            self._external += 1
            return False
        return not (self._ignores_internal and place == origin)

    def _is_exempted(self, from_url: str, to_url: str) -> bool:
        return self._exemptions is not None and self._exemptions.is_exempted(from_url, to_url)

    def _normalize_and_filter(self, url: str, scope: str) -> str | None:
        """Normalizes and filters a link; an error of a normalizer or filter rejects it, as in
        Nutch.
        """
        result: str | None = url
        try:
            if self._normalizes:
                result = self._normalizers_of(scope).normalize(url)
            if self._filters is not None:
                result = self._filters.filter(result)
        except MinutchError:
            return None
        return result


_SCHEME: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-"
# OutlinkExtractor.URL_PATTERN: a letter and 1 to 120 others.
_LONGEST_SCHEME: Final = 121
_LETTER: Final = re.compile(r"[A-Za-z]")
_REST: Final = re.compile(
    r":[A-Za-z0-9/](?:[A-Za-z0-9$_.+!*,;/?:@&~=-]|%[A-Fa-f0-9]{2}){1,333}"
    r"(?:#[a-zA-Z0-9][a-zA-Z0-9$_.+!*,;/?:@&~=%-]{0,1000})?"
)


def text_outlinks(text: str, anchor: str = "") -> list[Outlink]:
    """Returns the URLs in a text, in order, each with `anchor`; their schemes are not checked here.

    Goes from colon to colon and back to where the scheme begins, so that long runs of its
    characters cost nothing.
    """
    links = []
    end = 0
    colon = text.find(":")
    while colon >= 0:
        # Never behind the end of the link before: links don't overlap.
        before = text[max(end, colon - _LONGEST_SCHEME) : colon]
        # A scheme begins with a letter, the first one in the run before the colon.
        start = _LETTER.search(before, len(before.rstrip(_SCHEME)))
        # A scheme has two characters at least, by that pattern.
        rest = _REST.match(text, colon) if start and start.start() < len(before) - 1 else None
        if rest and start:
            end = rest.end()
            links.append(Outlink(before[start.start() :] + rest[0], anchor))
        colon = text.find(":", max(end, colon + 1))
    return links
