"""Outlink, Inlink and Inlinks: the links out of a page, and those into it.

Begin with link, whose docstring has the layouts.

    `link`                      the records
    `table`, `columns`          the columns of tables of links; decoded and encoded in bulk
    `linksets`                  Inlinks that stay packed while they are sorted and merged
    `outlinkrun`, `absolute`    the links of a page as one run of bytes, made absolute
"""

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
