"""Makes of the changes in a crawl a page of `serve`, and an Atom feed (RFC 4287). Pure: events in,
HTML and XML out.

An entry of the feed has the URL and the time of its visit for an id, so it is the same entry
whenever the feed is made, also when a compaction has given its segment another name. Its content is
escaped HTML (`type="html"`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

import polars as pl

from minutch.cycle.owntext.worddiff import ADDED, REMOVED
from minutch.inspect.search.pages import history_of, page
from minutch.terminal import counted, visible_line
from minutch.web import cells, frame
from minutch.web.frame import Child, Markup, element, joined, text

MOST: Final = 200
"""Changes on the page, and entries of the feed: the newest."""
_MOST_BLOCKS: Final = 20
"""Blocks of a change."""
_WORDS: Final = {
    "new": "new", "changed": "changed", "gone": "gone", "moved": "moved", "back": "back again",
}  # fmt: skip
_NOT_XML: Final = re.compile("[\ufffe\uffff]")
"""What `frame.text` leaves that no document of XML may have (section 2.2)."""

e = element


def changes(crawl: str, events: pl.DataFrame, quiet: int) -> str:
    """Returns the page of the newest of some changes; `quiet` visits found what is muted alone."""
    shown = events.sort("time", "url", descending=[True, False], maintain_order=True).head(MOST)
    figures = [
        (name, cells.count(events.filter(kind=kind).height)) for kind, name in _WORDS.items()
    ]
    if quiet:
        figures.append(("visits with nothing but what always changes", cells.count(quiet)))
    said = (
        f"The newest {MOST} of {counted(len(events), 'changes')}." if len(events) > MOST else None
    )
    items = [e("li", *_item(event)) for event in shown.iter_rows(named=True)]
    none = e("p", "No page was fetched twice, or nothing has changed.")
    return page(
        f"Changes: {crawl}",
        frame.tiles(figures),
        frame.section(
            "changes",
            "Newest changes",
            e("p", said, class_="quiet") if said else None,
            e("ol", *items, class_="hits") if items else none,
            e("p", e("a", "As a feed", href="changes.atom")),
        ),
    )


def _item(event: Mapping[str, Any]) -> tuple[Child, ...]:
    """Returns what the page says of a change."""
    url = event["url"]
    more = [
        e("span", "fetched ", cells.moment(event["time"])),
        e("span", f"segment {event['segment']}"),
        e(
            "a",
            "history",
            e("span", f" of {visible_line(url)}", class_="hidden"),
            href=history_of(url),
        ),
    ]
    to = e("p", "→ ", cells.address(event["to"]), class_="url") if event["to"] else None
    return (
        e("h3", f"{_WORDS[event['kind']].capitalize()}: ", cells.address(url)),
        to,
        _diff(event),
        e("p", *more, class_="more"),
    )


def _diff(event: Mapping[str, Any]) -> Markup:
    """Returns what has changed in the text, a paragraph for each block."""
    mine = [block for block in event["blocks"] if not block["muted"]]
    shown = [
        e("p", *map(_piece, block["pieces"]), class_="snippet", dir="auto")
        for block in mine[:_MOST_BLOCKS]
    ]
    if len(mine) > _MOST_BLOCKS:
        shown.append(
            e("p", f"and {counted(len(mine) - _MOST_BLOCKS, 'blocks')} more", class_="quiet")
        )
    return joined(*shown)


def _piece(piece: Mapping[str, str]) -> Markup:
    op, words = piece["op"], piece["words"]
    if op == REMOVED:
        return joined(e("del", words), " ")
    return joined(e("ins", words) if op == ADDED else words, " ")


def feed(crawl: str, events: pl.DataFrame, _: int = 0) -> str:
    """Returns the newest of some changes as an Atom feed."""
    shown = events.sort("time", "url", descending=[True, False], maintain_order=True).head(MOST)
    time = shown["time"][0] if len(shown) else datetime(1970, 1, 1, tzinfo=UTC)
    entries = [_entry(event) for event in shown.iter_rows(named=True)]
    inside = joined(
        e("id", _id(f"changes {crawl}")),
        e("title", f"Changes: {crawl}"),
        e("updated", _stamp(time)),
        e("author", e("name", "minutch")),
        e("generator", "minutch"),
        *entries,
    )
    whole = f'<feed xmlns="http://www.w3.org/2005/Atom">{inside}</feed>\n'
    return '<?xml version="1.0" encoding="utf-8"?>\n' + _NOT_XML.sub("\ufffd", whole)


def _entry(event: Mapping[str, Any]) -> Markup:
    url, kind, time = event["url"], event["kind"], event["time"]
    to = e("p", "→ ", cells.address(event["to"])) if event["to"] else None
    content = joined(e("p", f"{_WORDS[kind]}: ", cells.address(url)), to, _diff(event))
    link = f'<link rel="alternate" href="{text(url)}"/>' if _is_address(url) else ""
    category = f'<category term="{kind}"/>'
    return e(
        "entry",
        e("id", _id(f"{url} {_stamp(time)}")),
        e("title", f"{_WORDS[kind]}: {visible_line(url)}"),
        e("updated", _stamp(time)),
        Markup(link + category),
        e("content", str(content), type="html"),
    )


def _id(name: str) -> str:
    return uuid5(NAMESPACE_URL, name.encode("utf-8", "replace").decode()).urn


def _stamp(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%SZ}"


def _is_address(url: str) -> bool:
    """Tells whether a URL can be the href of a link: an IRI reference (RFC 3987) of the web."""
    if not url.isprintable() or any(letter in url for letter in ' <>"{}|\\^`'):
        return False
    try:
        return urlsplit(url).scheme in ("http", "https", "ftp")
    except ValueError:
        return False
