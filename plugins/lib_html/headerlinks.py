"""Finds links in the headers that came with a page: Link, Refresh and Content-Location.

They are relative to the page's URL, whatever its base element says. Sources: RFC 8288 section 3.2,
RFC 9110 section 8.7, HTML standard ("shared declarative refresh steps").
"""

from __future__ import annotations

from collections.abc import Iterator

from minutch.records.links import Outlink
from minutch.records.metadata import Metadata

from .elements import is_nofollow
from .linkvalues import in_link_header
from .metatags import read_refresh


def header_links(metadata: Metadata) -> list[Outlink]:
    """Returns the links, not resolved, each target once."""
    return [Outlink(target) for target in dict.fromkeys(_targets(metadata)) if target]


def _targets(metadata: Metadata) -> Iterator[str]:
    for name, values in metadata.items():
        match name.lower():
            case "link":
                for value in values:
                    yield from (
                        target for target, rest in in_link_header(value) if not is_nofollow(rest)
                    )
            case "refresh":
                yield from (found[1] for value in values if (found := read_refresh(value)))
            case "content-location":
                yield from (value.strip() for value in values)
