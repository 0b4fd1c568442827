"""Rebuilds a stored page of tags that make no browser connect anywhere. Pure.

A policy (CSP) has no say in `<link rel=preconnect>` and `dns-prefetch`, in names that Chromium
looks up for links, or in what browsers will think of next. So nothing is taken out of the page: it
is written anew, from lists of what may stay. Each `<` of the output begins one of our own tags, so
that no reading of it, by whatever rules, finds another element. Links lead to the top of the page,
and say where they led; pictures are kept if they are in the page itself.

Tags are told apart as in the HTML standard (13.2.5), but no tree is made: deep trees take the
square of their size, and the browser mends the nesting as it would have mended the original's.
"""

from __future__ import annotations

import html
import re
from typing import Final

KEPT: Final = frozenset(
    re.findall(
        r"\w+",
        """
    html head title style body main article section nav aside header footer hgroup address
    h1 h2 h3 h4 h5 h6 p hr pre blockquote ol ul menu li dl dt dd figure figcaption div
    center a em strong small s cite q dfn abbr ruby rt rp data time code var samp kbd sub
    sup i b u mark bdi bdo span br wbr ins del img table caption colgroup col tbody thead
    tfoot tr td th details summary fieldset legend label form button font big tt strike nobr
    dir
    """,
    )
)
"""Elements whose tags stay. Of all others, what is between their tags does."""
ATTRIBUTES: Final = frozenset(
    re.findall(
        r"\w+",
        """
    id class style lang dir title alt width height align valign bgcolor color face size
    border cellpadding cellspacing colspan rowspan span start value type reversed datetime
    headers scope nowrap open hidden
    """,
    )
)
_RAW: Final = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in (
        *("title", "style", "script", "textarea", "iframe", "noembed", "noframes", "xmp"),
        "template",
    )
}
"""Elements whose content is no markup, and what ends it. It stays in a title and in a style."""
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_NAME: Final = re.compile(r"[\s/]*([^\s/>][^\s/>=]*)?\s*(=?)\s*")
_BARE: Final = re.compile(r"[^\s>]*")
_PICTURE: Final = re.compile(r"data:image/(?:png|jpeg|gif|webp|bmp|avif)[;,]", re.IGNORECASE)
_LT: Final = str.maketrans({"<": "&lt;"})
_LT_IN_CSS: Final = str.maketrans({"<": "\\3c "})


def still(page: bytes) -> bytes:
    """Returns an HTML page, UTF-8 both, that a browser shows without a connection to any host."""
    text = page.decode("utf-8", "replace")
    pieces = ["<!DOCTYPE html>" if "<!doctype html" in text[:4096].lower() else ""]
    at = 0
    while (start := text.find("<", at)) >= 0:
        pieces.append(text[at:start])
        tag = _TAG.match(text, start)
        if tag is None:
            at = _after_comment(text, start)
            if at == start + 1:
                pieces.append("&lt;")
            continue
        attributes, at = _attributes(text, tag.end())
        name = tag[2].lower()
        if name in KEPT:
            written = "" if tag[1] else _written(name, attributes)
            pieces.append(f"<{tag[1]}{name}{written}>")
        if not tag[1] and name in _RAW:
            end = _RAW[name].search(text, at)
            content, at = text[at : end.start() if end else None], end.start() if end else len(text)
            if name in KEPT:
                pieces.append(content.translate(_LT_IN_CSS if name == "style" else _LT))
    pieces.append(text[at:])
    return "".join(pieces).encode("utf-8", "replace")


def _after_comment(text: str, start: int) -> int:
    """Returns where a comment or the like ends; the place after `<` if that is text."""
    if text.startswith(("<!-->", "<!--->"), start):
        return text.index(">", start) + 1
    if text.startswith("<!--", start):
        end = text.find("-->", start + 4)
        return end + 3 if end >= 0 else len(text)
    if text.startswith(("<!", "<?", "</"), start):
        end = text.find(">", start)
        return end + 1 if end >= 0 else len(text)
    return start + 1


def _attributes(text: str, at: int) -> tuple[dict[str, str], int]:
    """Reads a tag's attributes; returns them and where the tag ends. One without an end takes the
    rest of the page, as in a browser.
    """
    found: dict[str, str] = {}
    while True:
        name = _NAME.match(text, at)
        assert name is not None  # it matches the empty string
        at = name.end()
        if name[1] is None:
            end = text.find(">", at)
            return found, end + 1 if end >= 0 else len(text)
        value = ""
        if name[2] and text[at : at + 1] in ("'", '"'):
            end = text.find(text[at], at + 1)
            if end < 0:
                return found, len(text)
            value, at = text[at + 1 : end], end + 1
        elif name[2]:
            bare = _BARE.match(text, at)
            assert bare is not None
            value, at = bare[0], bare.end()
        found.setdefault(name[1].lower(), html.unescape(value))


def _written(tag: str, attributes: dict[str, str]) -> str:
    kept = {name: value for name, value in attributes.items() if name in ATTRIBUTES}
    source, target = attributes.get("src", ""), attributes.get("href")
    if tag == "img" and _PICTURE.match(source):
        kept["src"] = source
    if tag == "a" and target is not None:
        kept["href"] = target if target.startswith("#") else "#"
        if kept["href"] != target:
            kept.setdefault("title", target)
    return "".join(f' {name}="{html.escape(value)}"' for name, value in kept.items())
