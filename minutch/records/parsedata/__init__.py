"""ParseData: what a parse found in a page, but for its text."""

from minutch.records.parsedata.data import VERSION, ParseData, ParseImpl

__all__ = ["VERSION", "ParseData", "ParseImpl"]
