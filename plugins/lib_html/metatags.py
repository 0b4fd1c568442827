"""What the meta and base elements of a head say: robots, refresh, base, and everything by name.

Source: org.apache.nutch.parse.html.HTMLMetaProcessor, quirks included: directives are found anywhere in the value
(`noindexed` counts), a refresh's URL keeps its quotes, and a refresh whose time is not a whole number is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from minutch.errors import UrlError
from minutch.plugin.points import HTMLMetaTags
from minutch.urls.parts import Url, parse

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_AGENT: Final = re.compile(r"\s*([A-Za-z_-]+)\s*:")
_WITH_VALUE: Final = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))
_MAX_INT: Final = (1 << 31) - 1


def read_metatags(metas: Iterable[Mapping[str, str]], bases: Iterable[Mapping[str, str]], context: Url) -> HTMLMetaTags:
    """The tags of a page from the attributes of its meta and base elements; `context` is the page's base URL."""
    tags = HTMLMetaTags()
    for attributes in metas:
        if "content" not in attributes:
            continue
        content = attributes["content"]
        if "name" in attributes:
            _named(tags, attributes["name"].lower(), content)
        if "http-equiv" in attributes:
            _equivalent(tags, attributes["http-equiv"].lower(), content, context)
    for attributes in bases:
        if "href" in attributes:
            tags.base_href = _resolved(context, attributes["href"]) or tags.base_href
    return tags


def _named(tags: HTMLMetaTags, name: str, content: str) -> None:
    tags.general_tags.add(name, content)
    if name == "robots":
        apply_robots(tags, content)


def apply_robots_header(tags: HTMLMetaTags, value: str, agent: str) -> None:
    """Follow an X-Robots-Tag header (Nutch does not); one that begins with another agent's name is ignored."""
    match = _AGENT.match(value)
    if match and match[1].lower() not in _WITH_VALUE:
        if match[1].lower() != agent:
            return
        value = value[match.end() :]
    apply_robots(tags, value)


def apply_robots(tags: HTMLMetaTags, value: str) -> None:
    """Follow the directives in the value of a robots meta element."""
    value = value.lower()
    tags.no_index |= "none" in value or "noindex" in value
    tags.no_follow |= "none" in value or "nofollow" in value
    tags.no_cache |= "noarchive" in value


def _equivalent(tags: HTMLMetaTags, name: str, content: str, context: Url) -> None:
    tags.http_equiv_tags[name] = content
    if name == "pragma":
        tags.no_cache |= "no-cache" in content.lower()
    elif name == "refresh":
        _refresh(tags, content, context)


def _refresh(tags: HTMLMetaTags, content: str, context: Url) -> None:
    time, semicolon, rest = content.partition(";")
    if _INTEGER.fullmatch(time) and -_MAX_INT - 1 <= int(time) <= _MAX_INT:
        tags.refresh_time = int(time)
        tags.refresh = True
    if not tags.refresh:
        return
    target = None
    if semicolon:
        at = content.lower().find("url=")
        target = _resolved(context, rest if at < 0 else content[at + 4 :])
    tags.refresh_href = target or str(context)


def _resolved(context: Url, target: str) -> str | None:
    """As an absolute URL, else relative to the page; None if it is neither."""
    for base in (None, context):
        try:
            return str(parse(target, base))
        except UrlError:
            continue
    return None
