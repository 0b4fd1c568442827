"""URLs that stand in plain text: the links of documents without markup.

A scheme of 2 to 121 characters, a colon, then 2 to 334 characters that URLs consist of, at most 1000 more after a `#`.
Matched: org.apache.nutch.parse.OutlinkExtractor.
"""

from __future__ import annotations

import re
from typing import Final

from minutch.records.links import Outlink

_URL: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]{1,120}:[A-Za-z0-9/](?:[A-Za-z0-9$_.+!*,;/?:@&~=-]|%[A-Fa-f0-9]{2}){1,333}"
    r"(?:#[a-zA-Z0-9][a-zA-Z0-9$_.+!*,;/?:@&~=%-]{0,1000})?"
)
_CANDIDATE: Final = re.compile(r"[A-Za-z0-9+.-]{2,}:[A-Za-z0-9/]")


def text_outlinks(text: str, anchor: str = "") -> list[Outlink]:
    """The URLs in a text, in order, each with `anchor`; their schemes are not looked at here."""
    links = []
    at = 0
    while candidate := _CANDIDATE.search(text, at):
        # A run of scheme characters may be longer than a scheme: look at its last 121 only.
        start = max(candidate.start(), candidate.end() - 123)
        match = _URL.search(text, start, candidate.end() + 400 * 3 + 1100)
        at = match.end() if match and match.start() < candidate.end() else candidate.end()
        if match and match.start() < candidate.end():
            links.append(Outlink(match[0], anchor))
    return links
