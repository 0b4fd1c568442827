"""Finds links in the headers that came with a page: Link, Refresh and Content-Location.

They are relative to the page's URL, whatever its base element says. Sources: RFC 8288 section 3.2,
RFC 9110 section 8.7, HTML standard ("shared declarative refresh steps").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from minutch.records.links import Outlink
from minutch.records.metadata import Metadata

from .elements import is_hint, is_nofollow
from .linkvalues import in_link_header
from .metatags import read_refresh

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
