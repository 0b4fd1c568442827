"""HTML made of elements: all text and all attributes are escaped, so that no page can be more than
text. Pure.
"""

from __future__ import annotations

import html
import re
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
    """Pieces side by side."""
    return Markup(
        "".join(child if isinstance(child, Markup) else text(child) for child in children if child)
    )
