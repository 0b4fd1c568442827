"""Reads which elements of a page count: those with links, those that end a line, those that are
skipped.

Properties: parser.html.form.use_action, parser.html.outlinks.ignore_tags,
parser.html.line.separators, parser.html.outlinks.htmlnode_metadata_name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from minutch.conf import Configuration

from .tree import RENAMED

LINK_ATTRIBUTES: Final[Mapping[str, str]] = {
    "a": "href",
    "area": "href",
    "form": "action",
    "frame": "src",
    "iframe": "src",
    "script": "src",
    "link": "href",
    "img": "src",
    "source": "src",
}
"""Element → attribute that holds a link (LinkParams)."""
NEEDS_CONTENT: Final = frozenset(("a", "form"))
"""Elements whose link counts only if there is something inside."""
SILENT: Final = frozenset(("script", "style"))
"""Elements whose text is not the page's."""
NAME, CONTENT = "name", "content"
HEAD_ATTRIBUTES: Final = (NAME, CONTENT, "http-equiv", "href")
"""The attributes of meta and base elements that are read."""
_HINTS: Final = {"dns-prefetch", "preconnect"}
_NOFOLLOW: Final = re.compile(r"\bnofollow\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements that count, as configured."""

    link_attributes: Mapping[str, str]
    separators: frozenset[str]
    interesting: frozenset[str]
    """All elements that are treated in a special way."""
    element_key: str
    """The key under which a link's metadata names its element; empty for none."""

    @classmethod
    def of(cls, conf: Configuration) -> Elements:
        """Reads the elements of a configuration."""
        attributes = link_attributes(conf)
        separators = frozenset(conf.get_trimmed_strings("parser.html.line.separators"))
        names = {"base", "body", "meta", "title", *SILENT, *attributes}
        element_key = conf.get_text("parser.html.outlinks.htmlnode_metadata_name")
        return cls(attributes, separators, frozenset(names | separators), element_key)


def link_attributes(conf: Configuration) -> dict[str, str]:
    """Returns the elements whose links count: parser.html.form.use_action,
    parser.html.outlinks.ignore_tags.
    """
    attributes = dict(LINK_ATTRIBUTES)
    use_action = conf.get_boolean("parser.html.form.use_action")
    forced = use_action and conf.get("parser.html.form.use_action") is not None
    if not use_action:
        del attributes["form"]
    for name in conf.get_strings("parser.html.outlinks.ignore_tags"):
        if not (forced and name == "form"):
            attributes.pop(name, None)
    return attributes | {RENAMED[name]: attributes[name] for name in RENAMED if name in attributes}


def is_hint(relation: str) -> bool:
    """Returns True for the `rel` of what a browser only connects to: a host, no page (HTML
    Standard, 4.6.7.3 and 4.6.7.17).
    """
    return bool(found := set(relation.lower().split())) and found <= _HINTS


def is_nofollow(relation: str) -> bool:
    """Returns True if a link with this `rel` must not be followed."""
    return _NOFOLLOW.search(relation) is not None
