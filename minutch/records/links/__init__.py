"""Outlink, Inlink and Inlinks: the links out of a page, and those into it."""

from minutch.records.links.link import (
    LAYOUT_METADATA,
    LAYOUT_PLAIN,
    LAYOUTS,
    Inlink,
    Inlinks,
    Outlink,
    fits,
    layouts_of,
)

__all__ = [
    "LAYOUTS",
    "LAYOUT_METADATA",
    "LAYOUT_PLAIN",
    "Inlink",
    "Inlinks",
    "Outlink",
    "fits",
    "layouts_of",
]
