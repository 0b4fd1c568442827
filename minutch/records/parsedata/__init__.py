"""ParseData: what a parse found in a page, but for its text.

Begin with data, whose docstring has the layout.

    `data`           the record
    `columns`        takes records apart in bulk
    `contentmeta`    replaces one value of the content metadata in bulk
"""

from minutch.records.parsedata.data import VERSION, ParseData, ParseImpl

__all__ = ["VERSION", "ParseData", "ParseImpl"]
