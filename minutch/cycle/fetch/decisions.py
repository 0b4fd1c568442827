"""Decides what robots.txt, a busy server, an answer or a redirect lead to, and says in plain words
why a page was not fetched. Pure: no I/O.

Source: org.apache.nutch.fetcher.FetcherThread (what run does with robots.txt's rules and with each
ProtocolStatus, handleRedirect, createRedirDatum). Where the rules could not be had because the host
failed no page is asked for (RFC 9309, 2.3.1.4). Nutch does not obey `Retry-After` (RFC 9110,
10.2.3).
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from minutch.clock import http_time
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.settings import RedirectSettings, RobotsSettings
from minutch.errors import UrlError
from minutch.hadoop.formats.writables import Text
from minutch.records import crawldatum as status
from minutch.records import protocol as codes
from minutch.records import validators
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import CAPTURE, PROTO_STATUS_KEY, REPR_URL_KEY, RESPONSE_CODE_KEY
from minutch.records.protocol import ProtocolStatus
from minutch.urls.domains import domain_name
from minutch.urls.hostname import canonical_host
from minutch.urls.parts import parse

PERMANENT_REFRESH_SECONDS: Final = 5
"""A meta refresh that waits this long or longer counts as a permanent redirect
(Fetcher.PERM_REFRESH_TIME).
"""
REPR_KEY: Final = Text(REPR_URL_KEY)
CAPTURE_KEY: Final = Text(CAPTURE)
COOKIE: Final = Text("Cookie")
"""The cookie that a record brings to its own host (protocol-http)."""
LOCAL: Final = "file"


@dataclass(frozen=True, slots=True)
class Ending:
    """The fetch status and outcome that a ProtocolStatus code leads to."""

    fetch_status: int
    outcome: Outcome
    keeps_content: bool = False
    failed: bool = False
    """Counts as an exception of its queue."""


_GONE: Final = Ending(status.STATUS_FETCH_GONE, Outcome.GONE)
_RETRY: Final = Ending(status.STATUS_FETCH_RETRY, Outcome.RETRY)
_ENDINGS: Final = {
    codes.SUCCESS: Ending(status.STATUS_FETCH_SUCCESS, Outcome.FETCHED, keeps_content=True),
    codes.MOVED: Ending(status.STATUS_FETCH_REDIR_PERM, Outcome.REDIRECTED, keeps_content=True),
    codes.TEMP_MOVED: Ending(
        status.STATUS_FETCH_REDIR_TEMP, Outcome.REDIRECTED, keeps_content=True
    ),
    codes.EXCEPTION: Ending(status.STATUS_FETCH_RETRY, Outcome.RETRY, failed=True),
    codes.RETRY: _RETRY,
    codes.GONE: _GONE,
    codes.NOTFOUND: _GONE,
    codes.ACCESS_DENIED: _GONE,
    codes.ROBOTS_DENIED: Ending(status.STATUS_FETCH_GONE, Outcome.DENIED),
    codes.NOTMODIFIED: Ending(status.STATUS_FETCH_NOTMODIFIED, Outcome.NOTMODIFIED),
}


def ending(code: int) -> Ending:
    """Returns how a page with this ProtocolStatus code ends; one whose code has no rule is tried
    again.
    """
    return _ENDINGS.get(code, _RETRY)


_HTTP_CODE: Final = re.compile(r"Http code=(\d+)")
_OF_THE_HOST: Final = (408, 429)
"""Answers from 400 to 499 that speak of the host, not of the page (RFC 9110, 15.5.9; RFC 6585)."""


def host_failed(answer: ProtocolStatus, *, in_row: bool, too_slow: bool = False) -> bool | None:
    """Returns True if an answer says that the host fails, False if it serves, None if neither.

    A host fails where there is no answer, or one that did not end in time (`too_slow`), and by 408,
    429 and 5xx; a page that is forbidden says nothing of it. Without `in_row` all that Nutch takes
    for an exception is a failure.
    """
    if not ending(answer.code).failed:
        return too_slow and in_row
    found = _HTTP_CODE.match(answer.message or "")
    if not in_row or found is None:
        return True
    code = int(found[1])
    # None: neither ends a row of failures, nor goes on with it.
    return code in _OF_THE_HOST or code >= 500 or None


def is_unmodified(answer: ProtocolStatus) -> bool:
    """Tells whether an answer is a failure because its "not modified" is about another copy than
    the one held.
    """
    found = _HTTP_CODE.match(answer.message or "")
    return answer.code == codes.EXCEPTION and found is not None and int(found[1]) == 304


def skipped_status(reason: str) -> ProtocolStatus:
    """Returns the status of a URL that was never asked for."""
    return ProtocolStatus(codes.NOTFETCHING, [reason])


class RedirectMemory:
    """Remembers recent redirect targets (fetcher.redirect.dedupcache.*): one that is met again
    within the time is skipped.
    """

    def __init__(self, settings: RedirectSettings) -> None:
        self._life = settings.dedup_seconds * 1000
        self._size = settings.dedup_size if settings.dedup_seconds > 0 else 0
        self._seen: OrderedDict[str, int] = OrderedDict()

    def met(self, url: str, now: int) -> bool:
        """Returns True if `url` was met within the time; remembers it otherwise. Always False if
        switched off.
        """
        if self._size <= 0:
            return False
        written = self._seen.get(url)
        if written is not None and now - written < self._life:
            self._seen.move_to_end(url)
            return True
        self._seen[url] = now
        self._seen.move_to_end(url)
        if len(self._seen) > self._size:
            # The one that was met longest ago.
            self._seen.popitem(last=False)
        return False


class RedirectRules:
    """The normalizers, filters and rules about internal and external links that redirects go
    through.
    """

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
        """Returns the URL to fetch or record instead; None if the redirect ends here."""
        # Before the normalizers, whose patterns a URL of megabytes would keep busy.
        if len(location) > self._settings.max_length:
            return None
        try:
            normal = self._normalize(location)
            new = None if normal is None else self._keep(normal)
            if new is None or new == url or self._ignored(url, new) or leads_in(url, new):
                return None
        except UrlError:
            return None
        return new

    def leads_nowhere(self, url: str, location: str) -> bool:
        """Tells whether a page redirects to itself."""
        try:
            return self._normalize(location) == url
        except UrlError:
            return False

    def _ignored(self, url: str, new: str) -> bool:
        settings = self._settings
        if not (settings.ignore_external or settings.ignore_internal):
            return False
        old_host, new_host = parse(url).host.lower(), parse(new).host.lower()
        if settings.ignore_external:
            same = (
                domain_name(url).lower() == domain_name(new).lower()
                if settings.by_domain
                else old_host == new_host
            )
            # An internal link by domain may still lead to another host, which is looked at below.
            if not same:
                return True
        return settings.ignore_internal and old_host == new_host


def leads_in(url: str, new: str) -> bool:
    """Tells whether a redirect, sitemap or robots.txt at `url` on the web leads to a file on this
    machine. Nutch goes there if the filters accept it. Raises UrlError.
    """
    return parse(new).protocol == LOCAL != parse(url).protocol


def redirect_datum(
    origin: CrawlDatum, fetch_status: int, representative: str | None, url: str, target: str
) -> CrawlDatum:
    """Returns the datum of a redirect's target: interval, score and metadata of where it comes
    from.

    A cookie goes along to the same host only, and not from https to http. Nutch takes it
    everywhere. Validators stay behind, and what is known of captures.
    """
    datum = CrawlDatum(fetch_status, origin.fetch_interval, origin.score)
    datum.metadata = origin.metadata.copy()
    # A 304 of the target would speak of a copy that nobody has.
    datum.metadata.pop(validators.VALIDATORS_KEY, None)
    datum.metadata.pop(CAPTURE_KEY, None)
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
    # RFC 6265, 8.3: by plain http anybody on the way would read it.
    return canonical_host(origin.host) == canonical_host(new.host) and not is_weaker


_MAX_DIGITS: Final = 12


class Verdict(Enum):
    """What is to be done with a URL."""

    FETCH = auto()
    DENIED = auto()
    DELAY_TOO_LONG = auto()
    DEFER = auto()
    UNREACHABLE = auto()


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and, if robots.txt names one, the delay in ms: the queue takes it over, or it is
    too long.
    """

    verdict: Verdict
    crawl_delay: int | None = None


_FETCH: Final = Decision(Verdict.FETCH)


def decide(
    allowed: bool, crawl_delay: float, *, defer: bool, unreachable: bool, settings: RobotsSettings
) -> Decision:
    """Returns the verdict on one URL. `crawl_delay` in ms, not positive if robots.txt names
    none.
    """
    # FetcherThread.run asks in this order: deferred, then denied, then the delay.
    if defer:
        return Decision(Verdict.DEFER)
    if unreachable:
        return Decision(Verdict.UNREACHABLE)
    if not allowed:
        return Decision(Verdict.DENIED)
    if crawl_delay <= 0:
        return _FETCH
    # -1 takes any delay.
    if 0 <= settings.max_crawl_delay < crawl_delay:
        return Decision(Verdict.DELAY_TOO_LONG, int(crawl_delay))
    # fetcher.min.crawl.delay: no robots.txt makes the crawl ruder than that.
    return Decision(Verdict.FETCH, max(int(crawl_delay), settings.min_crawl_delay))


def retry_after(value: str | None, now: int, longest: int) -> int | None:
    """Returns the time of a Retry-After header (seconds or a date) in ms since the epoch; None for
    nonsense.

    More than `longest` ms are taken as `longest`; with 0 the header counts for nothing.
    """
    if value is None or longest <= 0:
        return None
    text = value.strip()
    # isdigit alone takes superscripts and other scripts, which int() refuses.
    if text.isascii() and text.isdigit():
        # int() refuses more than 4,300 digits.
        wait = int(text) * 1000 if len(text) <= _MAX_DIGITS else longest
    else:
        date = http_time(text)
        wait = 0 if date is None else date - now
    return now + min(wait, longest) if wait > 0 else None


# -- in plain words --------------------------------------------------------------------------------
#
# The words of a protocol status are Nutch's, many of them Java's; `reason` says the same for
# people.

_CODE: Final = Text(RESPONSE_CODE_KEY)
_PROTO_STATUS: Final = Text(PROTO_STATUS_KEY)
ANSWERED: Final = (
    *(codes.SUCCESS, codes.NOTMODIFIED, codes.MOVED, codes.TEMP_MOVED),
    *(codes.GONE, codes.NOTFOUND, codes.ACCESS_DENIED),
)
"""Protocol statuses that only a server's answer leads to."""
ANSWER: Final = "Http code="
"""How the message of an `exception` begins that is an answer with another code."""

_CHECK: Final = "(http.tls.certificates.check)"
_GUARD: Final = "address not allowed (http.filter.ipaddress.include)"
_TIMEOUT: Final = "timeout while connecting (http.timeout)"
_MESSAGES: Final = (
    (r"Forbidden connection to IP address (127\.|::1|localhost)", f"this machine's own {_GUARD}"),
    (
        r"Forbidden connection to IP address (10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|f[cd])",
        f"private {_GUARD}",
    ),
    (r"Forbidden connection to IP address ", _GUARD),
    (r"HTTP (\d+) of the proxy", r"HTTP \1 of the proxy (http.proxy.host)"),
    (r"CONNECT tunnel failed, response (\d+)", r"HTTP \1 of the proxy (http.proxy.host)"),
    (r"self.signed certificate", f"certificate: self-signed {_CHECK}"),
    (r"certificate has expired", f"certificate: expired {_CHECK}"),
    (
        r"(no alternative certificate|subject name|hostname mismatch)",
        f"certificate: of another host {_CHECK}",
    ),
    (r"unable to get local issuer certificate", f"certificate: unknown issuer {_CHECK}"),
    (r"(certificate|SSL connect|TLS)", "TLS failed"),
    (r"UnknownHostException", "no such host"),
    (r"NoRouteToHostException", "no route to the host"),
    (r"connection refused", "connection refused"),
    (r"connection reset", "connection reset"),
    (r"Network is unreachable", "network unreachable"),
    (r"Connect(ion)? timed out", _TIMEOUT),
    (r"timed out", "timeout (http.timeout)"),
    (r"MalformedURLException", "redirects to what is no URL"),
)
"""What a message looks like, and what it means; the first one counts."""
_UNREACHED: Final = (
    "no such host", "no route to the host", "connection refused", "network unreachable", _TIMEOUT,
)  # fmt: skip
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+")


def http_code(datum: CrawlDatum) -> str:
    """Returns the HTTP code of the answer; empty if there was none, so that an earlier round's code
    is not taken for it.
    """
    value, ended = datum.metadata.get(_CODE), datum.metadata.get(_PROTO_STATUS)
    return str(value) if value is not None and (ended is None or answered(ended)) else ""


def answered(ended: object) -> bool:
    """Tells whether a server's answer led to this protocol status."""
    if not isinstance(ended, ProtocolStatus):
        return False
    return ended.code in ANSWERED or (
        ended.code == codes.EXCEPTION and (ended.message or "").startswith(ANSWER)
    )


def fate(fetch_status: int, protocol: ProtocolStatus) -> str:
    """Returns what becomes of the page, in a word or two."""
    if protocol.code == codes.NOTFETCHING:
        return "not asked for"
    if protocol.code == codes.ROBOTS_DENIED:
        return "denied"
    return "retry" if fetch_status == status.STATUS_FETCH_RETRY else "gone"


def reason(protocol: ProtocolStatus, http_code: str = "", proxy: str = "") -> str:
    """Returns why a page could not be fetched, in plain words. Behind a proxy, it is the proxy that
    can't be reached.
    """
    message = _URL.sub("…", protocol.message or "")
    if protocol.code == codes.NOTFETCHING:
        return message or "not asked for"
    if protocol.code == codes.ROBOTS_DENIED:
        return f"robots.txt ({message.removeprefix('robots.txt: ')})" if message else "robots.txt"
    if http_code and http_code != "200":
        return f"HTTP {http_code}"
    # The special ones come first: any TLS failure has "SSL connect" in it.
    for pattern, text in _MESSAGES:
        match = re.search(pattern, message, re.IGNORECASE)
        if match:
            found = match.expand(text)
            by_proxy = bool(proxy) and found in _UNREACHED
            return f"proxy {proxy}: {found} (http.proxy.host)" if by_proxy else found
    if protocol.code == codes.FAILED and not message:
        return "no protocol plugin for its scheme (plugin.includes)"
    return message.rpartition("Exception: ")[2] or (
        protocol.name or f"protocol status {protocol.code}"
    ).replace("_", " ")
