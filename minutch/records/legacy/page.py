"""net.nutch.db.Page and Link: what the web database of Nutch until 0.7 knew about a page, and about
a link.

    Page    byte version (4)
            string URL (the primary key)
            16 bytes MD5 of the content
            long when to fetch again (ms)
            byte failed attempts
            byte fetch interval (days)
            int  number of outlinks             from version 3
            float score                         from version 2
            float next score                    from version 4
    Link    byte version (5)
            16 bytes MD5 of the page it is on
            string URL
            long domain ID                      from version 5
            string anchor
            boolean the target has outlinks     from version 4

The page on Nutch's formats leaves the number of outlinks out; Nutch's source of March 2005 says
that it came with version 3, so it is in every Page of version 4. `read_page` takes both, see
`fetchlistentry`. Link, and the layouts of older versions, are that source's alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from minutch.hadoop.formats.javahash import date_to_string, float_to_string
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.legacy.fields import read_up_to, write_string

NO_MD5: Final = bytes(16)
PAGE_VERSION: Final = 4
LINK_VERSION: Final = 5


@dataclass(slots=True)
class Page(Writable):
    """A page. `outlinks` is None where the number of outlinks is not in the bytes."""

    class_name = "net.nutch.db.Page"
    url: str = ""
    md5: bytes = NO_MD5
    next_fetch: int = 0
    retries: int = 0
    interval: int = 30
    outlinks: int | None = 0
    score: float = 1.0
    next_score: float = 1.0

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls.read_page(data, True)

    @classmethod
    def read_page(cls, data: DataInput, counted: bool) -> Self:
        """With the number of outlinks, or as the page on Nutch's formats has it."""
        version = read_up_to(data, "Page", PAGE_VERSION)
        return cls(
            data.read_utf8(),
            data.read_bytes(16),
            data.read_long(),
            data.read_byte(),
            data.read_byte(),
            data.read_int() if version > 2 and counted else 0 if counted else None,
            data.read_float() if version > 1 else 1.0,
            data.read_float() if version > 3 else 1.0,
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(PAGE_VERSION)
        write_string(out, self.url)
        out.write_bytes(self.md5)
        out.write_long(self.next_fetch)
        out.write_byte(self.retries)
        out.write_byte(self.interval)
        if self.outlinks is not None:
            out.write_int(self.outlinks)
        out.write_float(self.score)
        out.write_float(self.next_score)

    def __str__(self) -> str:
        return (
            f"Version: {PAGE_VERSION}\nURL: {self.url}\nID: {self.md5.hex()}\n"
            f"Next fetch: {date_to_string(self.next_fetch)}\nRetries since fetch: {self.retries}\n"
            f"Retry interval: {self.interval} days\nNum outlinks: {self.outlinks or 0}\n"
            f"Score: {float_to_string(self.score)}\nNextScore: {float_to_string(self.next_score)}\n"
        )


@dataclass(slots=True)
class Link(Writable):
    """A link between two pages."""

    class_name = "net.nutch.db.Link"
    from_id: bytes = NO_MD5
    url: str = ""
    domain_id: int = 0
    anchor: str = ""
    target_has_outlink: bool = False

    @classmethod
    def read(cls, data: DataInput) -> Self:
        version = read_up_to(data, "Link", LINK_VERSION)
        return cls(
            data.read_bytes(16),
            data.read_utf8(),
            data.read_long() if version > 4 else 0,
            data.read_utf8(),
            data.read_boolean() if version > 3 else False,
        )

    def write(self, out: DataOutput) -> None:
        out.write_byte(LINK_VERSION)
        out.write_bytes(self.from_id)
        write_string(out, self.url)
        out.write_long(self.domain_id)
        write_string(out, self.anchor)
        out.write_boolean(self.target_has_outlink)

    def __str__(self) -> str:
        return (
            f"Version: {LINK_VERSION}\nID: {self.from_id.hex()}\nDomainID: {self.domain_id}\nURL:"
            f" {self.url}\nAnchorText: {self.anchor}\ntargetHasOutlink:"
            f" {str(self.target_has_outlink).lower()}\n"
        )
