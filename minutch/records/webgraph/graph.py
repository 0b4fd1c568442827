"""The WebGraph's records (org.apache.nutch.scoring.webgraph).

LinkDatum    text URL, text anchor, float score, long timestamp (ms), byte type (1 inlink, 2
outlink) Node         int inlinks, int outlinks, float inlink score, Metadata LinkNode     utf8 URL,
Node LinkNodes    int count, LinkNode*; no bytes at all for no nodes Route        text outlink URL,
text URL looked for, boolean found       (Loops, until Nutch 1.11) LoopSet      int count, text URL*
(Loops, until Nutch 1.11)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Self

from minutch.errors import FormatError
from minutch.hadoop.formats import javahash
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.metadata import Metadata

INLINK: Final = 1
OUTLINK: Final = 2
_LINK_TYPES: Final = {INLINK: "inlink", OUTLINK: "outlink"}


@dataclass(slots=True)
class LinkDatum(Writable):
    """A link of the graph, seen from one of its ends."""

    class_name = "org.apache.nutch.scoring.webgraph.LinkDatum"
    url: str
    anchor: str = ""
    score: float = 0.0
    timestamp: int = 0
    link_type: int = 0

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(
            data.read_text(),
            data.read_text(),
            data.read_float(),
            data.read_long(),
            data.read_byte(),
        )

    def write(self, out: DataOutput) -> None:
        out.write_text(self.url)
        out.write_text(self.anchor)
        out.write_float(self.score)
        out.write_long(self.timestamp)
        out.write_byte(self.link_type)

    def __str__(self) -> str:
        kind = _LINK_TYPES.get(self.link_type, "unknown")
        score = javahash.float_to_string(self.score)
        return (
            f"url: {self.url}, anchor: {self.anchor}, score: {score}, timestamp: {self.timestamp},"
            f" link type: {kind}"
        )


@dataclass(slots=True)
class Node(Writable):
    """Link counts and score of one page."""

    class_name = "org.apache.nutch.scoring.webgraph.Node"
    num_inlinks: int = 0
    num_outlinks: int = 0
    inlink_score: float = 1.0
    metadata: Metadata = field(default_factory=Metadata)

    @property
    def outlink_score(self) -> float:
        """The score that each outlink gets, in 32-bit arithmetic."""
        if self.num_outlinks <= 0:
            return self.inlink_score
        return javahash.float32(self.inlink_score / javahash.float32(self.num_outlinks))

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_int(), data.read_int(), data.read_float(), Metadata.read(data))

    def write(self, out: DataOutput) -> None:
        out.write_int(self.num_inlinks)
        out.write_int(self.num_outlinks)
        out.write_float(self.inlink_score)
        self.metadata.write(out)

    def __str__(self) -> str:
        scores = [
            javahash.float_to_string(score) for score in (self.inlink_score, self.outlink_score)
        ]
        return (
            f"num inlinks: {self.num_inlinks}, num outlinks: {self.num_outlinks}, inlink score:"
            f" {scores[0]}, outlink score: {scores[1]}, metadata: {self.metadata}"
        )


@dataclass(slots=True)
class LinkNode(Writable):
    """A node with its URL (LinkDumper)."""

    class_name = "org.apache.nutch.scoring.webgraph.LinkDumper$LinkNode"
    url: str
    node: Node = field(default_factory=Node)

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_utf8(), Node.read(data))

    def write(self, out: DataOutput) -> None:
        out.write_utf8(self.url)
        self.node.write(out)


@dataclass(slots=True)
class LinkNodes(Writable):
    """The nodes that link to a page (LinkDumper)."""

    class_name = "org.apache.nutch.scoring.webgraph.LinkDumper$LinkNodes"
    links: list[LinkNode] = field(default_factory=list)

    @classmethod
    def read(cls, data: DataInput) -> Self:
        if not data.remaining:
            return cls()
        start = data.pos
        count = data.read_int()
        if not 0 <= count <= data.remaining:
            raise FormatError("impossible number of nodes", offset=start, found=count)
        return cls([LinkNode.read(data) for _ in range(count)])

    def write(self, out: DataOutput) -> None:
        if self.links:
            out.write_int(len(self.links))
            for link in self.links:
                link.write(out)


@dataclass(slots=True)
class Route(Writable):
    """A path being followed in search of a loop (Loops)."""

    class_name = "org.apache.nutch.scoring.webgraph.Loops$Route"
    outlink_url: str
    looking_for: str
    found: bool = False

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_text(), data.read_text(), data.read_boolean())

    def write(self, out: DataOutput) -> None:
        out.write_text(self.outlink_url)
        out.write_text(self.looking_for)
        out.write_boolean(self.found)


@dataclass(slots=True)
class LoopSet(Writable):
    """The URLs of one loop (Loops), each once; written in the order of Java's HashSet."""

    class_name = "org.apache.nutch.scoring.webgraph.Loops$LoopSet"
    urls: dict[str, None] = field(default_factory=dict)

    def java_order(self) -> list[str]:
        """Returns the URLs as Java's HashSet iterates over them."""
        urls = list(self.urls)
        return [
            urls[i] for i in javahash.hash_map_order([javahash.string_hash(url) for url in urls])
        ]

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(dict.fromkeys(data.read_text() for _ in range(data.read_int())))

    def write(self, out: DataOutput) -> None:
        out.write_int(len(self.urls))
        for url in self.java_order():
            out.write_text(url)

    def __str__(self) -> str:
        return ",".join(self.java_order())
