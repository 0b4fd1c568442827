"""Reads the meta and base elements of a head: robots, refresh, base, and everything by name.

Source: org.apache.nutch.parse.html.HTMLMetaProcessor; but directives are whole words
(`robotsdirectives`), and a refresh is read as the HTML standard says (Nutch leaves quotes in its
URL).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from minutch.cycle.parse.robotsdirectives import Directives, words_for
from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags
from minutch.records.links import Outlink
from minutch.records.metadata import ROBOTS_KEY, Metadata
from minutch.urls.resolve import Resolver, WhatwgResolver, resolved_page

from .elements import in_link_header, is_hint, is_nofollow

_REFRESH: Final = re.compile(
    r"[ \t\n\f\r]*(?=[0-9.])(?P<seconds>[0-9]*)[0-9.]*"
    r"(?P<separator>[ \t\n\f\r]*[;,]|[ \t\n\f\r]+|)[ \t\n\f\r]*(?P<rest>.*)",
    re.DOTALL,
)
_REFRESH_URL: Final = re.compile(
    r"url[ \t\n\f\r]*=[ \t\n\f\r]*(?P<url>.*)", re.IGNORECASE | re.DOTALL
)
_MAX_INT: Final = (1 << 31) - 1
_MOST_DIGITS: Final = 11
_QUOTES: Final = ("'", '"')


def read_metatags(
    metas: Iterable[Mapping[str, str]],
    page: str,
    resolver: Resolver | WhatwgResolver,
    agents: frozenset[str],
    now: int,
) -> HTMLMetaTags:
    """Returns the tags of a page from the attributes of its meta elements; `resolver` knows its
    base URL. Directives for one of the `agents` hold like those for all robots, at the time `now`.
    """
    tags = HTMLMetaTags()
    for attributes in metas:
        if "content" not in attributes:
            continue
        content = attributes["content"]
        if "name" in attributes:
            _named(tags, attributes["name"].lower(), content, agents, now)
        if "http-equiv" in attributes:
            _equivalent(tags, attributes["http-equiv"].lower(), content, page, resolver)
    return tags


def _named(tags: HTMLMetaTags, name: str, content: str, agents: frozenset[str], now: int) -> None:
    tags.general_tags.add(name, content)
    if name == ROBOTS_KEY or name in agents:
        forbidden = Directives.of(words_for(content, agents), now)
        tags.no_index |= forbidden.no_index
        tags.no_follow |= forbidden.no_follow
        tags.no_cache |= forbidden.no_cache
        if name != ROBOTS_KEY and forbidden.noted:
            tags.general_tags.setdefault(ROBOTS_KEY, [])[:0] = forbidden.noted


def _equivalent(
    tags: HTMLMetaTags, name: str, content: str, page: str, resolver: Resolver | WhatwgResolver
) -> None:
    tags.http_equiv_tags[name] = content
    if name == "pragma":
        tags.no_cache |= "no-cache" in content.lower()
    elif name == "refresh":
        _refresh(tags, content, page, resolver)


def read_refreshes_below(
    contents: Iterable[str], tags: HTMLMetaTags, page: str, resolver: Resolver | WhatwgResolver
) -> None:
    """Takes a refresh from the contents of refresh elements in the body, where browsers look, too,
    and Nutch does not.
    """
    for content in contents:
        _refresh(tags, content, page, resolver)


def _refresh(
    tags: HTMLMetaTags, content: str, page: str, resolver: Resolver | WhatwgResolver
) -> None:
    """Takes a refresh. In browsers the first one counts, and none to what is no page's URL; in
    Nutch the last one does, which is one of the page itself then.
    """
    found, is_browsers = read_refresh(content), isinstance(resolver, WhatwgResolver)
    if found is None or (is_browsers and tags.refresh):
        return
    seconds, target = found
    try:
        href = resolved_page(resolver, target) if target else page
    except UrlError:
        if is_browsers:
            return
        href = page
    tags.refresh, tags.refresh_time, tags.refresh_href = True, seconds, href


def read_refresh(value: str) -> tuple[int, str] | None:
    """Seconds and target (empty for the page itself) of a refresh, in an element or a header; None
    if it is none.

    Source: HTML standard, "shared declarative refresh steps".
    """
    match = _REFRESH.fullmatch(value)
    if match is None or (match["rest"] and not match["separator"]):
        return None
    target = match["rest"]
    named = _REFRESH_URL.match(target)
    target = named["url"] if named else target
    if target[:1] in _QUOTES:
        target = target[1:].partition(target[0])[0]
    seconds = match["seconds"].lstrip("0")[:_MOST_DIGITS] or "0"
    return min(int(seconds), _MAX_INT), target.strip()


# Finds links in the headers that came with a page: Link, Refresh and Content-Location.
#
# They are relative to the page's URL, whatever its base element says. Sources: RFC 8288 section
# 3.2, RFC 9110 section 8.7, HTML standard ("shared declarative refresh steps").

_RELATION: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)


def header_links(metadata: Metadata) -> list[Outlink]:
    """Returns the links, not resolved, each target once."""
    return [Outlink(target) for target in dict.fromkeys(_targets(metadata)) if target]


def _targets(metadata: Metadata) -> Iterator[str]:
    for value in metadata.field_values("Link"):
        for target, rest in in_link_header(value):
            relation = _RELATION.search(rest)
            is_none = relation is not None and is_hint(relation[1] or relation[2] or "")
            if not is_none and not is_nofollow(rest):
                yield target
    for value in metadata.field_values("Refresh"):
        if (found := read_refresh(value)) is not None:
            yield found[1]
    yield from map(str.strip, metadata.field_values("Content-Location"))
