"""URLs that stand in plain text: the links of documents without markup.

A scheme of 2 to 121 characters, a colon, then 2 to 334 characters that URLs consist of, at most
1000 more after a `#`. Source: org.apache.nutch.parse.OutlinkExtractor.
"""

from __future__ import annotations

import re
from typing import Final

from minutch.records.links import Outlink

_SCHEME: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+.-"
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
        before = text[max(end, colon - _LONGEST_SCHEME) : colon]
        start = _LETTER.search(before, len(before.rstrip(_SCHEME)))
        rest = _REST.match(text, colon) if start and start.start() < len(before) - 1 else None
        if rest and start:
            end = rest.end()
            links.append(Outlink(before[start.start() :] + rest[0], anchor))
        colon = text.find(":", max(end, colon + 1))
    return links
