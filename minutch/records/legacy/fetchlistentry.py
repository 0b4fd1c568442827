"""net.nutch.pagedb.FetchListEntry: an entry of the fetch list of Nutch until 0.7.

    byte version (2)
    byte flag (1: the page is to be fetched; 0: it is known to be unchanged)
    Page
    int number of anchors, string anchor*       from version 2; before, there are none

Nothing says whether the Page in a record has its number of outlinks (`page`). A record has the
layout by which it is used up exactly; that of Nutch's source is tried first. What is read in the
other layout is written in it, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.legacy.fields import read_list, read_up_to, write_string
from minutch.records.legacy.page import Page

VERSION: Final = 2


class HoldsPage(Writable):
    """A record with a Page in it."""

    __slots__ = ()

    @classmethod
    def read_fields(cls, data: DataInput, counted: bool) -> Self:
        """Returns the record, whose Page has its number of outlinks if it is `counted`."""
        raise NotImplementedError

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls.read_fields(data, True)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Returns the record that takes up exactly `data`, in one of the two layouts; FormatError
        of the first if in none.
        """
        try:
            return super().from_bytes(data)
        except FormatError as first:
            source = DataInput(data)
            try:
                value = cls.read_fields(source, False)
            except FormatError:
                raise first from None
            if source.remaining:
                raise
            return value


@dataclass(slots=True)
class FetchListEntry(HoldsPage):
    """A page that is, or is not, to be fetched, with the anchors of the links to it."""

    class_name = "net.nutch.pagedb.FetchListEntry"
    fetch: bool = True
    page: Page = field(default_factory=Page)
    anchors: list[str] = field(default_factory=list)

    @classmethod
    def read_fields(cls, data: DataInput, counted: bool) -> Self:
        version = read_up_to(data, "FetchListEntry", VERSION)
        fetch, page = data.read_boolean(), Page.read_page(data, counted)
        return cls(
            fetch, page, read_list(data, "anchors", 2, DataInput.read_utf8) if version > 1 else []
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(VERSION)
        out.write_boolean(self.fetch)
        self.page.write(out)
        out.write_int(len(self.anchors))
        for anchor in self.anchors:
            write_string(out, anchor)

    def __str__(self) -> str:
        anchors = "".join(f"  anchor: {anchor}\n" for anchor in self.anchors)
        return (
            f"version: {VERSION}\nfetch: {str(self.fetch).lower()}\npage: {self.page}\n"
            f"anchors: {len(self.anchors)}\n{anchors}"
        )
