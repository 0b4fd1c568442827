"""The fetch lists of Nutch until 0.7, and how a fetch ended: net.nutch.pagedb.FetchListEntry and
net.nutch.fetcher.FetcherOutput.

    FetchListEntry    byte version (2)
                      byte flag (1: the page is to be fetched; 0: it is known to be unchanged)
                      Page
                      int number of anchors, string anchor*       from version 2; before, there are
                                                                  none

    FetcherOutput
    version 3 (Nutch 0.4)                      version 4 (Nutch 0.5)        version 5 (Nutch 0.7)
    byte version                               byte version                 byte version
    FetchListEntry                             FetchListEntry               FetchListEntry
    16 bytes MD5 of the content                16 bytes MD5                 16 bytes MD5
    byte status                                byte status                  ProtocolStatus
    string title                               long fetch date (ms)         long fetch date (ms)
    int number of outlinks, Outlink*
    long fetch date (ms)

Nothing says whether the Page in a record has its number of outlinks (`legacy`). A record has the
layout by which it is used up exactly; that of Nutch's source is tried first. What is read in the
other layout is written in it, too.

Versions 1 and 2 of FetcherOutput are those of Nutch's source of March 2005: as version 3, in
version 1 without the date. Version 5, and what became of the codes, is Nutch 0.7's. The codes
were named by that source: 0 retry, 1 success, 2 not found, 4 can't parse; 0.7 takes 3 for a
failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from minutch.errors import FormatError
from minutch.hadoop.formats.javahash import date_to_string
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records import protocol
from minutch.records.legacy import (
    NO_MD5,
    OldOutlink,
    OldPage,
    outlinks_to_string,
    read_list,
    read_outlinks,
    read_up_to,
    write_outlinks,
    write_string,
)
from minutch.records.protocol import ProtocolStatus

VERSION: Final = 2
WITH_PARSE: Final = 3
WITHOUT_PARSE: Final = 4
WITH_STATUS: Final = 5

RETRY: Final = 0
SUCCESS: Final = 1
NOT_FOUND: Final = 2
FAILED: Final = 3
CANT_PARSE: Final = 4
PROTOCOL_STATUS: Final = {
    RETRY: protocol.RETRY,
    SUCCESS: protocol.SUCCESS,
    NOT_FOUND: protocol.NOTFOUND,
    FAILED: protocol.FAILED,
    CANT_PARSE: protocol.SUCCESS,
}
"""Code → what it is today. What can't be parsed was fetched; 0.7 takes it for a retry."""


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
            if source.remaining:  # neither fits: the error of the first
                raise
            return value


@dataclass(slots=True)
class FetchListEntry(HoldsPage):
    """A page that is, or is not, to be fetched, with the anchors of the links to it."""

    class_name = "net.nutch.pagedb.FetchListEntry"
    fetch: bool = True
    page: OldPage = field(default_factory=OldPage)
    anchors: list[str] = field(default_factory=list)

    @classmethod
    def read_fields(cls, data: DataInput, counted: bool) -> Self:
        version = read_up_to(data, "FetchListEntry", VERSION)
        fetch, page = data.read_boolean(), OldPage.read_page(data, counted)
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


@dataclass(slots=True)
class FetcherOutput(HoldsPage):
    """The outcome. `title`, `outlinks` are those of version 3, `protocol_status` of version 5."""

    class_name = "net.nutch.fetcher.FetcherOutput"
    entry: FetchListEntry = field(default_factory=FetchListEntry)
    md5: bytes = NO_MD5
    status: int = SUCCESS
    fetch_date: int = 0
    title: str = ""
    outlinks: list[OldOutlink] = field(default_factory=list)
    version: int = WITHOUT_PARSE
    protocol_status: ProtocolStatus | None = None

    @classmethod
    def read_fields(cls, data: DataInput, counted: bool) -> Self:
        version = read_up_to(data, "FetcherOutput", WITH_STATUS)
        value = cls(
            FetchListEntry.read_fields(data, counted),
            data.read_bytes(16),
            version=max(version, WITH_PARSE),  # what is older is written as version 3
        )
        if version == WITH_STATUS:
            value.protocol_status = ProtocolStatus.read(data)
        else:
            value.status = data.read_byte()
        if version <= WITH_PARSE:
            value.title, value.outlinks = data.read_utf8(), read_outlinks(data)
        value.fetch_date = data.read_long() if version > 1 else 0
        return value

    @property
    def outcome(self) -> ProtocolStatus:
        """Returns the status as today's Nutch writes it."""
        return self.protocol_status or ProtocolStatus.of(
            PROTOCOL_STATUS.get(self.status, protocol.FAILED)
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(self.version)
        self.entry.write(out)
        out.write_bytes(self.md5)
        if self.version == WITH_STATUS:
            self.outcome.write(out)
        else:
            out.write_byte(self.status)
        if self.version == WITH_PARSE:
            write_string(out, self.title)
            write_outlinks(out, self.outlinks)
        out.write_long(self.fetch_date)

    def __str__(self) -> str:
        parse = (
            f"Title: {self.title}\n{outlinks_to_string(self.outlinks)}"
            if self.version == WITH_PARSE
            else ""
        )
        status = self.protocol_status or self.status
        return (
            f"FetchListEntry: {self.entry}Fetch Result:\nMD5Hash: {self.md5.hex()}\nStatus:"
            f" {status}\n{parse}FetchDate: {date_to_string(self.fetch_date)}\n"
        )
