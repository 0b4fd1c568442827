"""org.apache.nutch.parse.Outlink, org.apache.nutch.crawl.Inlink and Inlinks: links out of a page
and into one.

    Outlink    text URL, text anchor, boolean has metadata, [MapWritable]
    Inlink     the same in Nutch from 1.21 (NUTCH-3101); text URL, text anchor alone until 1.20
    Inlinks    int count, Inlink*

Nothing in a file tells which of the two Inlink layouts it has, and either Nutch fails on the
other's or misreads it. A record has a layout if it is used up exactly. So the layout is decided for
a whole database, from its records: `layouts_of` says which readings fit one record; the store
combines them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from minutch.errors import FormatError, UrlError
from minutch.hadoop.formats.javaio import DataInput, DataOutput, encode_text
from minutch.hadoop.formats.writables import MapWritable, Writable
from minutch.urls.parts import parse

LAYOUT_PLAIN: Final = "1.20"
"""Inlinks of URL and anchor, as Nutch up to 1.20 writes them."""
LAYOUT_METADATA: Final = "1.21"
"""Inlinks with a metadata flag, as Nutch from 1.21 writes them."""
LAYOUTS: Final = (LAYOUT_METADATA, LAYOUT_PLAIN)


def _metadata_to_string(metadata: MapWritable | None) -> str:
    return "".join(f" {key}: {value}" for key, value in metadata.java_items()) if metadata else ""


def _write_metadata(out: DataOutput, metadata: MapWritable | None) -> None:
    out.write_boolean(bool(metadata))
    if metadata:
        metadata.write(out)


@dataclass(slots=True)
class Outlink(Writable):
    """A link found on a page: an absolute URL and its anchor text."""

    class_name = "org.apache.nutch.parse.Outlink"
    to_url: str
    anchor: str = ""
    metadata: MapWritable | None = None

    @classmethod
    def read(cls, data: DataInput) -> Self:
        url, anchor = data.read_text(), data.read_text()
        return cls(url, anchor, MapWritable.read(data) if data.read_boolean() else None)

    def write(self, out: DataOutput) -> None:
        url, anchor = encode_text(self.to_url), encode_text(self.anchor)
        if (
            not self.metadata and len(url) < 128 and len(anchor) < 128
        ):  # nearly all: lengths and flag of a byte each
            out.buf += b"%c%b%c%b\0" % (len(url), url, len(anchor), anchor)
            return
        out.write_text_bytes(url)
        out.write_text_bytes(anchor)
        _write_metadata(out, self.metadata)

    def __hash__(self) -> int:
        return hash((self.to_url, self.anchor))

    def __str__(self) -> str:
        return f"toUrl: {self.to_url} anchor: {self.anchor}{_metadata_to_string(self.metadata)}"


@dataclass(slots=True)
class Inlink(Writable):
    """A link to a page. Two are equal if URL and anchor are, whatever their metadata."""

    class_name = "org.apache.nutch.crawl.Inlink"
    from_url: str
    anchor: str = ""
    metadata: MapWritable | None = None

    @classmethod
    def read(cls, data: DataInput, layout: str = LAYOUT_METADATA) -> Self:
        url, anchor = data.read_text(), data.read_text()
        flag = layout == LAYOUT_METADATA and data.read_boolean()
        return cls(url, anchor, MapWritable.read(data) if flag else None)

    def write(self, out: DataOutput, layout: str = LAYOUT_METADATA) -> None:
        out.write_text(self.from_url)
        out.write_text(self.anchor)
        if layout == LAYOUT_METADATA:
            _write_metadata(out, self.metadata)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inlink) and (self.from_url, self.anchor) == (
            other.from_url,
            other.anchor,
        )

    def __hash__(self) -> int:
        return hash((self.from_url, self.anchor))

    def __str__(self) -> str:
        return self.to_string(LAYOUT_METADATA)

    def to_string(self, layout: str) -> str:
        """Inlink.toString of the Nutch that writes `layout`."""
        text = f"fromUrl: {self.from_url} anchor: {self.anchor}"
        return (
            f"{text} metadata: {_metadata_to_string(self.metadata)}"
            if layout == LAYOUT_METADATA
            else text
        )


class Inlinks(Writable):
    """The links to one page, each once, in the order in which they were added or read. (Nutch has a
    HashSet.)
    """

    __slots__ = ("_links",)
    class_name = "org.apache.nutch.crawl.Inlinks"

    def __init__(self, links: Iterable[Inlink] = ()) -> None:
        self._links: dict[Inlink, None] = dict.fromkeys(links)

    def add(self, link: Inlink) -> None:
        """Adds a link unless an equal one is there."""
        self._links.setdefault(link)

    def __len__(self) -> int:
        return len(self._links)

    def __iter__(self) -> Iterator[Inlink]:
        """Returns the links in the order in which they were added (or read)."""
        return iter(self._links)

    def anchors(self) -> list[str]:
        """Returns the texts of the links that have one, each once for each host that uses it
        (Inlinks.getAnchors).
        """
        seen = dict.fromkeys(
            (_host(link.from_url), link.anchor) for link in self._links if link.anchor
        )
        return [anchor for _, anchor in seen]

    @classmethod
    def read(cls, data: DataInput, layout: str = LAYOUT_METADATA) -> Self:
        start = data.pos
        count = data.read_int()
        if not 0 <= count <= data.remaining:
            raise FormatError("impossible number of inlinks", offset=start, found=count)
        return cls(Inlink.read(data, layout) for _ in range(count))

    def write(self, out: DataOutput, layout: str = LAYOUT_METADATA) -> None:
        out.write_int(len(self._links))
        for link in self._links:
            link.write(out, layout)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inlinks) and self._links.keys() == other._links.keys()

    def __hash__(self) -> int:
        return len(self._links)

    def __str__(self) -> str:
        return self.to_string(LAYOUT_METADATA)

    def to_string(self, layout: str) -> str:
        """Inlinks.toString of the Nutch that writes `layout`."""
        return "Inlinks:\n" + "".join(f" {link.to_string(layout)}\n" for link in self._links)


def _host(url: str) -> str | None:
    """Returns the host of a URL; None if it is none."""
    try:
        return parse(url).host
    except UrlError:
        return None


def layouts_of(record: bytes) -> frozenset[str]:
    """Returns the layouts under which the bytes of one Inlinks record are used up exactly; none if
    it is damaged.
    """
    return frozenset(layout for layout in LAYOUTS if fits(record, layout))


def fits(record: bytes, layout: str) -> bool:
    """Returns whether `layout` uses up the bytes of an Inlinks record exactly."""
    data = DataInput(record)
    try:
        Inlinks.read(data, layout)
    except FormatError:
        return False
    return not data.remaining
