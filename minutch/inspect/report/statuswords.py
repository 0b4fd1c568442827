"""Says statuses and answers in words: those of Nutch's records, and those of HTTP. Pure."""

from __future__ import annotations

from typing import Final

from minutch.web import cells
from minutch.web.frame import Markup, element

e = element

STATUS_WORDS: Final = {
    "db_unfetched": "not yet fetched",
    "db_fetched": "fetched",
    "db_gone": "gone",
    "db_redir_temp": "redirects for now",
    "db_redir_perm": "moved for good",
    "db_notmodified": "fetched again, unchanged",
    "db_duplicate": "a duplicate of another page",
    "db_orphan": "no page links to it any more",
    "db_parse_failed": "fetched, not parsed",
    "fetch_success": "fetched",
    "fetch_retry": "failed, to be tried again",
    "fetch_redir_temp": "redirected for now",
    "fetch_redir_perm": "moved for good",
    "fetch_gone": "gone",
    "fetch_notmodified": "not modified since",
    "linked": "found by a redirect or a link",
    "injected": "injected",
}
CODE_WORDS: Final = {
    "200": "OK",
    "301": "Moved Permanently",
    "302": "Found",
    "303": "See Other",
    "304": "Not Modified",
    "307": "Temporary Redirect",
    "308": "Permanent Redirect",
    "400": "Bad Request",
    "401": "Unauthorized",
    "403": "Forbidden",
    "404": "Not Found",
    "410": "Gone",
    "429": "Too Many Requests",
    "500": "Internal Server Error",
    "502": "Bad Gateway",
    "503": "Service Unavailable",
    "504": "Gateway Timeout",
}
"""Names of status codes (RFC 9110, section 15; 429: RFC 6585) that crawlers see often."""

ENDING_WORDS: Final = {
    "exception": "no answer, or an error",
    "robots denied": "refused by robots.txt",
    "redir exceeded": "too many redirects",
    "proto not found": "no plugin for its protocol",
    "notfetching": "not asked for",
    "notmodified": "not modified",
    "notfound": "not found",
    "moved": "moved for good",
    "temp moved": "moved for now",
    "retry": "to be tried again",
    "wouldblock": "the host is busy",
    "blocked": "the host is blocked",
}
"""What Nutch's protocol statuses mean where there is no HTTP status; others say it themselves."""


def status(name: str) -> Markup:
    """Shows a status of Nutch's."""
    return cells.words(STATUS_WORDS.get(name, name))


def code(name: str) -> Markup:
    """Shows the answer to a request: an HTTP status, or Nutch's word where there was none."""
    if name in CODE_WORDS:
        return e("bdi", e("strong", name), f" {CODE_WORDS[name]}")
    return cells.words(ENDING_WORDS.get(name, name))
