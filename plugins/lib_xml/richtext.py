"""Turns the markup of titles and descriptions into text."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

_INVISIBLE = ["script", "style", "template", "noscript"]
_INLINE = re.findall(
    r"\w+",
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q s samp"
    " small span strike strong sub sup time tt u var wbr",
)


def plain_text(markup: str) -> str:
    """Returns the text of markup, blanks folded: characters for their names, a blank between
    blocks.
    """
    if "<" not in markup and "&" not in markup:
        return " ".join(markup.split())
    tree = LexborHTMLParser(markup)
    body = tree.body
    if body is None:
        return ""
    tree.strip_tags(_INVISIBLE)
    tree.unwrap_tags(_INLINE)
    body.merge_text_nodes()
    return " ".join(body.text(separator=" ").split())
