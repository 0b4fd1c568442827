"""The base of all Writables, and how a Java class name leads to one.

`register` adds a class by its `class_name` (importing `writables` adds Hadoop's own). `REGISTRY` names the modules that
hold the others, so that nothing is imported before it is met in a file.
"""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar, Self, TypeVar

from minutch.errors import FormatError
from minutch.formats.javaio import DataInput, DataOutput


class Writable:
    """Base of everything that a SequenceFile can hold."""

    __slots__ = ()
    class_name: ClassVar[str] = ""

    @classmethod
    def read(cls, data: DataInput) -> Self:
        """The value at `data.pos`; raises FormatError."""
        raise FormatError("this class cannot be read by itself", found=cls.class_name or cls.__name__)

    def write(self, out: DataOutput) -> None:
        """Append the value's bytes to `out`."""
        raise FormatError("this class cannot be written by itself", found=self.class_name or type(self).__name__)

    def java_hash(self) -> int:
        """Java's hashCode, a signed 32-bit number."""
        return 0

    def to_bytes(self) -> bytes:
        """The value's bytes."""
        out = DataOutput()
        self.write(out)
        return bytes(out.buf)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """The value that takes up exactly `data`; raises FormatError for left-over bytes too."""
        source = DataInput(data)
        value = cls.read(source)
        if source.remaining:
            raise FormatError(
                f"bytes left over after {cls.class_name.rpartition('.')[2]}",
                offset=source.pos,
                expected=f"{source.pos} bytes",
                found=source.end,
            )
        return value


W = TypeVar("W", bound=type[Writable])

REGISTRY: dict[str, str | type[Writable]] = {
    f"org.apache.nutch.{java}": f"minutch.records.{python}"
    for java, python in {
        "crawl.CrawlDatum": "crawldatum:CrawlDatum",
        "crawl.Inlink": "links:Inlink",
        "crawl.Inlinks": "links:Inlinks",
        "crawl.MapWritable": "oldmapwritable:OldMapWritable",
        "crawl.NutchWritable": "nutchwritable:NutchWritable",
        "crawl.Generator$SelectorEntry": "selectorentry:SelectorEntry",
        "hostdb.HostDatum": "hostdatum:HostDatum",
        "indexer.NutchDocument": "document:NutchDocument",
        "indexer.NutchField": "document:NutchField",
        "indexer.NutchIndexAction": "document:NutchIndexAction",
        "metadata.Metadata": "metadata:Metadata",
        "metadata.MetaWrapper": "metadata:MetaWrapper",
        "parse.Outlink": "links:Outlink",
        "parse.ParseData": "parsedata:ParseData",
        "parse.ParseImpl": "parsedata:ParseImpl",
        "parse.ParseStatus": "parsestatus:ParseStatus",
        "parse.ParseText": "parsetext:ParseText",
        "protocol.Content": "content:Content",
        "protocol.ProtocolStatus": "protocolstatus:ProtocolStatus",
        "scoring.webgraph.LinkDatum": "webgraph:LinkDatum",
        "scoring.webgraph.Node": "webgraph:Node",
        "scoring.webgraph.LinkDumper$LinkNode": "webgraph:LinkNode",
        "scoring.webgraph.LinkDumper$LinkNodes": "webgraph:LinkNodes",
        "scoring.webgraph.Loops$Route": "webgraph:Route",
        "scoring.webgraph.Loops$LoopSet": "webgraph:LoopSet",
    }.items()
}
"""Java class name -> class, or `module:class` that is imported when it is first looked up."""


_SHORT_NAMES = {
    name: f"org.apache.hadoop.io.{java}"
    for name, java in {"null": "NullWritable", "long": "LongWritable", "UTF8": "UTF8", "MD5Hash": "MD5Hash"}.items()
}
"""What stands for some classes in the oldest files (WritableName)."""


def register(cls: W) -> W:
    """Class decorator: make `cls` known by its `class_name`."""
    REGISTRY[cls.class_name] = cls
    return cls


def lookup(class_name: str, offset: int | None = None) -> type[Writable]:
    """The class of a Java class name; FormatError (at `offset`, where the name stood) if minutch has none."""
    class_name = _SHORT_NAMES.get(class_name, class_name)
    found = REGISTRY.get(class_name)
    if found is None:
        raise FormatError("unknown Writable class", offset=offset, found=class_name)
    if isinstance(found, str):
        module, _, name = found.partition(":")
        found = REGISTRY[class_name] = getattr(import_module(module), name)
        assert not isinstance(found, str)
    return found
