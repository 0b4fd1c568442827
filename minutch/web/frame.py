"""Makes HTML of elements, and frames every page that minutch shows: one head, one style, one
policy. Pure.

All text and all attributes are escaped, so that no page of a crawl can be more than text.
Style and script stand in the page, and the policy (Content-Security-Policy) allows them by their
hashes and nothing else: a page loads nothing, and no text of a crawl can run.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

_VOID: Final = frozenset(("meta", "link", "input", "br"))
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


class Markup(str):
    """A piece of HTML."""

    __slots__ = ()


Child = str | Markup | None


def text(value: str) -> Markup:
    """Text as HTML."""
    return Markup(html.escape(_CONTROLS.sub("\ufffd", value)))


def element(tag: str, *children: Child, **attributes: str | bool | None) -> Markup:
    """Returns an element; names of attributes may end in an underscore, others stand for dashes.
    None and False leave out.
    """
    written = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{text(value)}"')
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    opened = f"<{tag}{written}>"
    return Markup(opened if tag in _VOID else f"{opened}{joined(*children)}</{tag}>")


def joined(*children: Child) -> Markup:
    """Joins pieces side by side."""
    return Markup(
        "".join(child if isinstance(child, Markup) else text(child) for child in children if child)
    )


e = element

DOCTYPE: Final = "<!DOCTYPE html>\n"


def resource(name: str, package: str = __package__) -> str:
    """Returns a style or a script of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


STYLE: Final = resource("style.css")


def policy(script: str = "", *more: str) -> str:
    """Returns the policy of a page with this script; `more` are directives of its own."""
    # Hashes, not 'unsafe-inline': style and script that a page of the crawl brought would not run.
    allowed = [f"style-src {_hash(STYLE)}", *([f"script-src {_hash(script)}"] if script else [])]
    return "; ".join(["default-src 'none'", *allowed, "img-src data:", "base-uri 'none'", *more])


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def page(
    title: str,
    header: Sequence[Child],
    content: Sequence[Child],
    footer: Child = None,
    *,
    head: Child = None,
    script: str = "",
    data: Child = None,
    doctype: str = DOCTYPE,
) -> str:
    """Returns a page. `head` is what its head has besides; `data` stands before the script."""
    top = e(
        "head",
        e("meta", charset="utf-8"),
        head,
        e("meta", name="viewport", content="width=device-width, initial-scale=1"),
        e("meta", name="color-scheme", content="light dark"),
        e("title", title),
        e("link", rel="icon", href="data:,"),  # else browsers ask for /favicon.ico
        # Markup: it has no text from outside, and escaped it would have another hash.
        e("style", Markup(STYLE)),
    )
    body = e(
        "body",
        e("a", "Skip to content", class_="skip", href="#main"),
        e("header", *header),
        e("main", *content, id="main", tabindex="-1"),
        e("footer", footer) if footer else None,
        data,
        e("script", Markup(script)) if script else None,
    )
    return f"{doctype}{e('html', top, body, lang='en')}\n"


def section(name: str, title: Child, *content: Child) -> Markup:
    """Makes a section that can be linked to, named by its heading."""
    heading = e("h2", title, id=f"{name}-title")
    return e("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def tiles(figures: Sequence[tuple[str, Child]]) -> Markup | None:
    """Shows figures: the name of each, and its value."""
    shown = [e("div", e("dt", name), e("dd", value)) for name, value in figures]
    return e("dl", *shown, class_="tiles") if shown else None


def navigation(label: str, links: Sequence[Markup]) -> Markup:
    """Lists links side by side."""
    return e("nav", e("ul", *(e("li", joined(link)) for link in links)), aria_label=label)
