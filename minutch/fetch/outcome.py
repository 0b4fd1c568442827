"""What a ProtocolStatus means for the segment and for the ledger; which redirects lead where. Pure.

Matches the switch in org.apache.nutch.fetcher.FetcherThread.run, its handleRedirect and createRedirDatum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from minutch.errors import UrlError
from minutch.fetch.ledger import Outcome
from minutch.fetch.settings import RedirectSettings
from minutch.formats.writables import Text
from minutch.records import crawldatum as status
from minutch.records import entitytag
from minutch.records import protocolstatus as protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import REPR_URL_KEY
from minutch.records.protocolstatus import ProtocolStatus
from minutch.urls.domains import domain_name
from minutch.urls.parts import parse

PERMANENT_REFRESH_SECONDS: Final = 5
"""A meta refresh that waits this long or longer counts as a permanent redirect (Fetcher.PERM_REFRESH_TIME)."""
REPR_KEY: Final = Text(REPR_URL_KEY)
COOKIE: Final = Text("Cookie")
"""The cookie that a record brings to its own host (protocol-http)."""
LOCAL: Final = "file"


@dataclass(frozen=True, slots=True)
class Ending:
    """What one ProtocolStatus code leads to."""

    fetch_status: int
    outcome: Outcome
    keeps_content: bool = False
    failed: bool = False
    """Counts as an exception of its queue."""


_GONE: Final = Ending(status.STATUS_FETCH_GONE, Outcome.GONE)
_RETRY: Final = Ending(status.STATUS_FETCH_RETRY, Outcome.RETRY)
_ENDINGS: Final = {
    protocol.SUCCESS: Ending(status.STATUS_FETCH_SUCCESS, Outcome.FETCHED, keeps_content=True),
    protocol.MOVED: Ending(status.STATUS_FETCH_REDIR_PERM, Outcome.REDIRECTED, keeps_content=True),
    protocol.TEMP_MOVED: Ending(status.STATUS_FETCH_REDIR_TEMP, Outcome.REDIRECTED, keeps_content=True),
    protocol.EXCEPTION: Ending(status.STATUS_FETCH_RETRY, Outcome.RETRY, failed=True),
    protocol.RETRY: _RETRY,
    protocol.GONE: _GONE,
    protocol.NOTFOUND: _GONE,
    protocol.ACCESS_DENIED: _GONE,
    protocol.ROBOTS_DENIED: Ending(status.STATUS_FETCH_GONE, Outcome.DENIED),
    protocol.NOTMODIFIED: Ending(status.STATUS_FETCH_NOTMODIFIED, Outcome.NOTMODIFIED),
}


def ending(code: int) -> Ending:
    """What becomes of a page with this ProtocolStatus code; a code that has no rule is tried again."""
    return _ENDINGS.get(code, _RETRY)


def skipped_status(reason: str) -> ProtocolStatus:
    """The status of a URL that was never asked for."""
    return ProtocolStatus(protocol.NOTFETCHING, [reason])


class RedirectRules:
    """Where a redirect leads, after normalizers, filters and the rules about links within and between sites."""

    def __init__(
        self,
        settings: RedirectSettings,
        normalize: Callable[[str], str | None],
        keep: Callable[[str], str | None],
    ) -> None:
        self._settings = settings
        self._normalize = normalize
        self._keep = keep

    def target(self, url: str, location: str) -> str | None:
        """The URL to fetch or write down instead, None if the redirect ends here."""
        if len(location) > self._settings.max_length:
            return None
        try:
            normal = self._normalize(location)
            new = None if normal is None else self._keep(normal)
            if new is None or new == url or self._ignored(url, new) or _leads_in(url, new):
                return None
        except UrlError:
            return None
        return new

    def _ignored(self, url: str, new: str) -> bool:
        settings = self._settings
        if not (settings.ignore_external or settings.ignore_internal):
            return False
        old_host, new_host = parse(url).host.lower(), parse(new).host.lower()
        if settings.ignore_external:
            same = domain_name(url).lower() == domain_name(new).lower() if settings.by_domain else old_host == new_host
            if not same:
                return True
        return settings.ignore_internal and old_host == new_host


def _leads_in(url: str, new: str) -> bool:
    """Whether a page of the web leads to a file of this machine. Nutch follows it if a filter lets it pass."""
    return parse(new).protocol == LOCAL != parse(url).protocol


def redirect_datum(
    origin: CrawlDatum, fetch_status: int, representative: str | None, url: str, target: str
) -> CrawlDatum:
    """The datum of a redirect's target: interval, score and metadata of where it comes from.

    A cookie goes along to the same host only, and not from https to http. Nutch takes it everywhere. An entity tag
    stays behind.
    """
    datum = CrawlDatum(fetch_status, origin.fetch_interval, origin.score)
    datum.metadata = origin.metadata.copy()
    datum.metadata.pop(entitytag.KEY, None)
    if COOKIE in datum.metadata and not _may_see_cookie(url, target):
        del datum.metadata[COOKIE]
    if representative is not None:
        datum.metadata[REPR_KEY] = Text(representative)
    return datum


def _may_see_cookie(url: str, target: str) -> bool:
    try:
        origin, new = parse(url), parse(target)
    except UrlError:
        return False
    is_weaker = origin.protocol == "https" and new.protocol != "https"
    return origin.host.lower() == new.host.lower() and not is_weaker
