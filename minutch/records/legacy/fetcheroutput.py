"""net.nutch.fetcher.FetcherOutput: how a fetch of Nutch until 0.7 ended.

    version 3 (Nutch 0.4)                      version 4 (Nutch 0.5)        version 5 (Nutch 0.7)
    byte version                               byte version                 byte version
    FetchListEntry                             FetchListEntry               FetchListEntry
    16 bytes MD5 of the content                16 bytes MD5                 16 bytes MD5
    byte status                                byte status                  ProtocolStatus
    string title                               long fetch date (ms)         long fetch date (ms)
    int number of outlinks, Outlink*
    long fetch date (ms)

Versions 1 and 2 are those of Nutch's source of March 2005: as version 3, in version 1 without the
date. Version 5, and what became of the codes, is Nutch 0.7's. The codes were named by that source:
0 retry, 1 success, 2 not found, 4 can't parse; 0.7 takes 3 for a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from minutch.hadoop.formats.javahash import date_to_string
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.records import protocolstatus
from minutch.records.legacy.fetchlistentry import FetchListEntry, HoldsPage
from minutch.records.legacy.fields import (
    Outlink,
    outlinks_to_string,
    read_outlinks,
    read_up_to,
    write_outlinks,
    write_string,
)
from minutch.records.legacy.page import NO_MD5
from minutch.records.protocolstatus import ProtocolStatus

WITH_PARSE: Final = 3
WITHOUT_PARSE: Final = 4
WITH_STATUS: Final = 5

RETRY: Final = 0
SUCCESS: Final = 1
NOT_FOUND: Final = 2
FAILED: Final = 3
CANT_PARSE: Final = 4
PROTOCOL_STATUS: Final = {
    RETRY: protocolstatus.RETRY,
    SUCCESS: protocolstatus.SUCCESS,
    NOT_FOUND: protocolstatus.NOTFOUND,
    FAILED: protocolstatus.FAILED,
    CANT_PARSE: protocolstatus.SUCCESS,
}
"""Code → what it is today. What can't be parsed was fetched; 0.7 takes it for something to try
again.
"""


@dataclass(slots=True)
class FetcherOutput(HoldsPage):
    """The outcome. `title` and `outlinks` are those of version 3, `protocol_status` that of version
    5.
    """

    class_name = "net.nutch.fetcher.FetcherOutput"
    entry: FetchListEntry = field(default_factory=FetchListEntry)
    md5: bytes = NO_MD5
    status: int = SUCCESS
    fetch_date: int = 0
    title: str = ""
    outlinks: list[Outlink] = field(default_factory=list)
    version: int = WITHOUT_PARSE
    protocol_status: ProtocolStatus | None = None

    @classmethod
    def read_fields(cls, data: DataInput, counted: bool) -> Self:
        version = read_up_to(data, "FetcherOutput", WITH_STATUS)
        value = cls(
            FetchListEntry.read_fields(data, counted),
            data.read_bytes(16),
            version=max(version, WITH_PARSE),
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
            PROTOCOL_STATUS.get(self.status, protocolstatus.FAILED)
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
