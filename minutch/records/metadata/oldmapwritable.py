"""org.apache.nutch.crawl.MapWritable: the metadata of CrawlDatum versions 4 to 6, until Nutch took
Hadoop's.

    int size; if it is not 0: byte count of further classes, (byte id, text class name)*,
    then per entry: byte key class id, byte value class id, key, value

Unlike Hadoop's, entries keep the order in which they were put, and both class ids stand before the
key.
"""

from __future__ import annotations

from typing import Final, Self

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import MapWritable, Writable, lookup

_CLASSES: Final = {
    -127: "org.apache.hadoop.io.NullWritable",
    -126: "org.apache.hadoop.io.LongWritable",
    -125: "org.apache.hadoop.io.Text",
    -124: "org.apache.hadoop.io.MD5Hash",
    -122: "org.apache.nutch.protocol.Content",
    -121: "org.apache.nutch.parse.ParseText",
    -120: "org.apache.nutch.parse.ParseData",
    -119: "org.apache.nutch.crawl.MapWritable",
    -118: "org.apache.hadoop.io.BytesWritable",
    -117: "org.apache.hadoop.io.FloatWritable",
    -116: "org.apache.hadoop.io.IntWritable",
    -115: "org.apache.hadoop.io.ObjectWritable",
    -114: "org.apache.nutch.protocol.ProtocolStatus",
}
_FIRST_NEW_ID: Final = -113
"""Nutch began at -114, which is ProtocolStatus's, so that it could not read such maps back."""
_IDS: Final = {name: class_id for class_id, name in _CLASSES.items()}


class OldMapWritable(dict[Writable, Writable], Writable):
    """A map of Writables in insertion order."""

    __slots__ = ()
    class_name = "org.apache.nutch.crawl.MapWritable"

    @classmethod
    def read(cls, data: DataInput) -> Self:
        result = cls()
        start = data.pos
        size = data.read_int()
        if not 0 <= size <= data.remaining:
            raise FormatError("impossible size of a MapWritable", offset=start, found=size)
        if not size:
            return result
        names = dict(_CLASSES)
        for _ in range(data.read_byte()):
            class_id = data.read_byte()
            names[class_id] = data.read_text()
        for _ in range(size):
            start = data.pos
            ids = data.read_byte(), data.read_byte()
            unknown = [i for i in ids if i not in names]
            if unknown:
                raise FormatError(
                    "class id that the MapWritable's table lacks", offset=start, found=unknown[0]
                )
            key = lookup(names[ids[0]], start).read(data)
            result[key] = lookup(names[ids[1]], start).read(data)
        return result

    def write(self, out: DataOutput) -> None:
        out.write_int(len(self))
        if not self:
            return
        ids = dict(_IDS)
        for entry in self.items():
            for value in entry:
                ids.setdefault(value.class_name, _FIRST_NEW_ID + len(ids) - len(_IDS))
        new = list(ids.items())[len(_IDS) :]
        out.write_byte(len(new))
        for name, class_id in new:
            out.write_byte(class_id)
            out.write_text(name)
        for key, value in self.items():
            out.write_byte(ids[key.class_name])
            out.write_byte(ids[value.class_name])
            key.write(out)
            value.write(out)

    def to_map_writable(self) -> MapWritable:
        """Returns the same entries in Hadoop's map, which CrawlDatum version 7 holds."""
        return MapWritable(self)

    def __hash__(self) -> int:  # type: ignore[override]
        return len(self)

    def __str__(self) -> str:
        return "".join(f"{key}:{value} " for key, value in self.items())
