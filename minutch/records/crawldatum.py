"""CrawlDatum: what the CrawlDb knows about one URL and a segment says about it; and what else is
written of org.apache.nutch.crawl.

    CrawlDatum       byte version (7)
                     byte status
                     long fetch time (ms since the epoch; when to fetch next, in a segment when it
                          was fetched)
                     byte retries since fetch
                     int  fetch interval (s)                 versions 1 to 5: float, in seconds
                     float score
                     long modified time (ms)                 from version 3
                     byte length of the signature, signature from version 3
                     boolean has metadata, [MapWritable]     from version 4; before version 7
                                                             usually Nutch's own map

    MapWritable      int size; if it is not 0: byte count of further classes, (byte id, text class
    (before 0.9)     name)*, then per entry: byte key class id, byte value class id, key, value

    SelectorEntry    text URL, CrawlDatum, int segment number: between generate's two jobs
    NutchWritable    any of Nutch's values behind one byte that tells its class

Versions before 5 have other status codes, which are mapped. minutch writes version 7. Unlike
Hadoop's, entries of Nutch's own map keep the order in which they were put, and both class ids stand
before the key.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Final, Self

from minutch.errors import FormatError
from minutch.hadoop.formats import javahash
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.registry import GenericWritable
from minutch.hadoop.formats.writables import (
    FloatWritable,
    IntWritable,
    MapWritable,
    Text,
    Writable,
    lookup,
)
from minutch.records.metadata import read_version
from minutch.records.protocol import ProtocolStatus

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
CUR_VERSION: Final = 7
MAX_SIGNATURE: Final = 127
"""Bytes that a signature may have: its length is one signed byte."""

STATUS_DB_UNFETCHED: Final = 0x01
STATUS_DB_FETCHED: Final = 0x02
STATUS_DB_GONE: Final = 0x03
STATUS_DB_REDIR_TEMP: Final = 0x04
STATUS_DB_REDIR_PERM: Final = 0x05
STATUS_DB_NOTMODIFIED: Final = 0x06
STATUS_DB_DUPLICATE: Final = 0x07
STATUS_DB_ORPHAN: Final = 0x08
STATUS_DB_PARSE_FAILED: Final = 0x09
STATUS_DB_MAX: Final = 0x1F
STORED: Final = (STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED, STATUS_DB_DUPLICATE)
"""Statuses of entries of whose page a crawl has a copy."""
STATUS_FETCH_SUCCESS: Final = 0x21
STATUS_FETCH_RETRY: Final = 0x22
STATUS_FETCH_REDIR_TEMP: Final = 0x23
STATUS_FETCH_REDIR_PERM: Final = 0x24
STATUS_FETCH_GONE: Final = 0x25
STATUS_FETCH_NOTMODIFIED: Final = 0x26
STATUS_FETCH_MAX: Final = 0x3F
STATUS_SIGNATURE: Final = 0x41
STATUS_INJECTED: Final = 0x42
STATUS_LINKED: Final = 0x43
STATUS_PARSE_META: Final = 0x44
STATUS_PARSE_FAILED: Final = 0x45

STATUS_NAMES: Final = {
    STATUS_DB_UNFETCHED: "db_unfetched",
    STATUS_DB_FETCHED: "db_fetched",
    STATUS_DB_GONE: "db_gone",
    STATUS_DB_REDIR_TEMP: "db_redir_temp",
    STATUS_DB_REDIR_PERM: "db_redir_perm",
    STATUS_DB_NOTMODIFIED: "db_notmodified",
    STATUS_DB_DUPLICATE: "db_duplicate",
    STATUS_DB_ORPHAN: "db_orphan",
    STATUS_DB_PARSE_FAILED: "db_parse_failed",
    STATUS_FETCH_SUCCESS: "fetch_success",
    STATUS_FETCH_RETRY: "fetch_retry",
    STATUS_FETCH_REDIR_TEMP: "fetch_redir_temp",
    STATUS_FETCH_REDIR_PERM: "fetch_redir_perm",
    STATUS_FETCH_GONE: "fetch_gone",
    STATUS_FETCH_NOTMODIFIED: "fetch_notmodified",
    STATUS_SIGNATURE: "signature",
    STATUS_INJECTED: "injected",
    STATUS_LINKED: "linked",
    STATUS_PARSE_META: "parse_metadata",
    STATUS_PARSE_FAILED: "parse_failed",
}
_STATUS_BY_NAME: Final = {name: status for status, name in STATUS_NAMES.items()}

OLD_STATUS: Final = {
    0: STATUS_SIGNATURE, 1: STATUS_DB_UNFETCHED, 2: STATUS_DB_FETCHED, 3: STATUS_DB_GONE,
    4: STATUS_LINKED, 5: STATUS_FETCH_SUCCESS, 6: STATUS_FETCH_RETRY, 7: STATUS_FETCH_GONE,
}  # fmt: skip
"""Status codes of versions 1 to 4; any other code became db_unfetched."""

_FIXED: Final = struct.Struct(">bqbifqb")
"""Version 6 and 7 from the status to the signature's length."""
_BEFORE_SCORE: Final = struct.Struct(">BBqBi")
_BEHIND_SCORE: Final = struct.Struct(">qB")
SECONDS_PER_DAY: Final = 86400
_HADOOP = (
    "NullWritable BooleanWritable LongWritable ByteWritable BytesWritable FloatWritable IntWritable"
    " MapWritable Text"
)
_NUTCH = (
    "crawl.CrawlDatum crawl.Inlink crawl.Inlinks indexer.NutchIndexAction metadata.Metadata"
    " parse.Outlink parse.ParseText parse.ParseData parse.ParseImpl parse.ParseStatus"
    " protocol.Content protocol.ProtocolStatus scoring.webgraph.LinkDatum hostdb.HostDatum"
)


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
            ids = data.read_byte(), data.read_byte()  # both before the key
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

    def __hash__(self) -> int:  # type: ignore[override]
        return len(self)  # equal maps have one, whatever the order

    def __str__(self) -> str:
        return "".join(f"{key}:{value} " for key, value in self.items())


def status_name(status: int) -> str:
    """Nutch's name of a status code, `unknown` for others."""
    return STATUS_NAMES.get(status, "unknown")


def status_by_name(name: str) -> int:
    """Returns the status code of a name in any case; -1 if there is none."""
    return _STATUS_BY_NAME.get(name.lower(), -1)


@dataclass(slots=True)
class CrawlDatum(Writable):
    """One URL's state. Times in ms since the epoch, the interval in s, the score a 32-bit float."""

    class_name = "org.apache.nutch.crawl.CrawlDatum"
    status: int = 0
    fetch_interval: int = 0
    score: float = 0.0
    fetch_time: int = 0
    modified_time: int = 0
    retries: int = 0
    signature: bytes | None = None
    metadata: MapWritable = field(default_factory=MapWritable)

    def has_fetch_status(self) -> bool:
        """CrawlDatum.hasFetchStatus: the entry comes from a fetch (or a failed parse)."""
        return STATUS_DB_MAX < self.status <= STATUS_FETCH_MAX or self.status == STATUS_PARSE_FAILED

    @property
    def status_name(self) -> str:
        """Nutch's name of the status."""
        return status_name(self.status)

    def copy(self) -> CrawlDatum:
        """Returns a deep copy, as CrawlDatum.set makes it."""
        return CrawlDatum(
            self.status,
            self.fetch_interval,
            self.score,
            self.fetch_time,
            self.modified_time,
            self.retries,
            self.signature,
            self.metadata.copy(),
        )

    @classmethod
    def read(cls, data: DataInput) -> Self:
        start = data.pos
        version = data.read_byte()
        if version in (CUR_VERSION, 6):
            status, fetch_time, retries, interval, score, modified_time, size = _FIXED.unpack_from(
                data.buf, data.skip(_FIXED.size)
            )
            datum = cls(status, interval, score, fetch_time, modified_time, retries)
            if size > 0:
                datum.signature = data.read_bytes(size)
            if data.read_boolean():
                datum.metadata = (
                    MapWritable.read(data) if version == CUR_VERSION else _read_old_metadata(data)
                )
            return datum
        data.pos = start
        return cls._read_old(data)

    @classmethod
    def _read_old(cls, data: DataInput) -> Self:
        version = read_version(data, "CrawlDatum", tuple(range(1, CUR_VERSION + 1)))
        datum = cls(data.read_byte())
        datum.fetch_time = data.read_long()
        datum.retries = data.read_byte()
        datum.fetch_interval = java_round(data.read_float())  # CrawlDatum.readFields: Math.round
        datum.score = data.read_float()
        if version > 2:
            datum.modified_time = data.read_long()
            size = data.read_byte()
            # A signed byte: CrawlDatum.readFields takes one below 0 as no signature.
            if size > 0:
                datum.signature = data.read_bytes(size)
        if version > 3 and data.read_boolean():
            datum.metadata = _read_old_metadata(data)
        if version < 5:
            datum.status = OLD_STATUS.get(datum.status, STATUS_DB_UNFETCHED)
        return datum

    def write(self, out: DataOutput) -> None:
        signature = self.signature or b""
        if len(signature) > MAX_SIGNATURE:
            raise FormatError(
                "signature too long",
                expected=f"at most {MAX_SIGNATURE} bytes",
                found=len(signature),
            )
        out.buf += _BEFORE_SCORE.pack(
            CUR_VERSION,
            self.status & 0xFF,
            self.fetch_time,
            self.retries & 0xFF,
            self.fetch_interval,
        )
        # Apart: struct refuses a double beyond the floats, of which Java makes an infinity.
        out.write_float(self.score)
        out.buf += _BEHIND_SCORE.pack(self.modified_time, len(signature))
        out.write_bytes(signature)
        out.write_boolean(bool(self.metadata))
        if self.metadata:
            self.metadata.write(out)

    def variables(self, url: str) -> dict[str, object]:
        """Returns the variables of filter expressions (CrawlDatum.execute): the fields and the
        metadata, with `-` in names as `_`.
        """
        result: dict[str, object] = {
            "url": url,
            "status": self.status_name,
            "fetchTime": self.fetch_time,
            "modifiedTime": self.modified_time,
            "retries": self.retries,
            "interval": self.fetch_interval,
            "score": self.score,
            "signature": None if self.signature is None else self.signature.hex(),
        }
        for key, value in self.metadata.items():
            # Others are left out, as in CrawlDatum.execute.
            if isinstance(value, FloatWritable | IntWritable):
                result[str(key)] = value.value
            # CrawlDatum.execute replaces `-` in these names alone: JEXL would subtract.
            elif isinstance(value, Text | ProtocolStatus):
                result[str(key).replace("-", "_")] = str(value)
        return result

    def __str__(self) -> str:
        days = int(self.fetch_interval / SECONDS_PER_DAY)
        signature = "null" if self.signature is None else self.signature.hex()
        return (
            f"Version: {CUR_VERSION}\n"
            f"Status: {self.status} ({self.status_name})\n"
            f"Fetch time: {javahash.date_to_string(self.fetch_time)}\n"
            f"Modified time: {javahash.date_to_string(self.modified_time)}\n"
            f"Retries since fetch: {self.retries}\n"
            f"Retry interval: {self.fetch_interval} seconds ({days} days)\n"
            f"Score: {javahash.float_to_string(self.score)}\n"
            f"Signature: {signature}\n"
            "Metadata: \n "
            + "".join(f"\t{key}={value}\n" for key, value in self.metadata.java_items())
        )


def java_round(value: float) -> int:
    """Math.round of a 32-bit float: half up, NaN is 0, cut to 32 bits."""
    if math.isnan(value):
        return 0
    if math.isinf(value):
        return 0x7FFF_FFFF if value > 0 else -0x8000_0000
    return max(-0x8000_0000, min(0x7FFF_FFFF, math.floor(value + 0.5)))  # Java's cast saturates


def _read_old_metadata(data: DataInput) -> MapWritable:
    """Metadata before version 7: Nutch's own map; but Nutch from 1.11 reads Hadoop's there, so take
    what fits.

    The two start alike for no non-empty map: Nutch's first byte is the high byte of a small int, so
    0, as is the count of new classes of most Hadoop maps. The reading that leaves the record
    exactly used up is the right one.
    """
    start = data.pos
    readings: list[tuple[OldMapWritable | MapWritable, int]] = []
    failures: list[FormatError] = []
    for kind in (OldMapWritable, MapWritable):
        data.pos = start
        try:
            result = kind.read(data)
        except FormatError as exc:
            failures.append(exc)
            continue
        if not data.remaining:
            return MapWritable(result)
        readings.append((result, data.pos))
    if not readings:
        raise failures[0]
    result, data.pos = readings[0]
    return MapWritable(result)


@dataclass(slots=True)
class SelectorEntry(Writable):
    """A URL selected for the segment with number `seg_num`, counted from 1."""

    class_name = "org.apache.nutch.crawl.Generator$SelectorEntry"
    url: str
    datum: CrawlDatum
    seg_num: int = 0

    @classmethod
    def read(cls, data: DataInput) -> Self:
        return cls(data.read_text(), CrawlDatum.read(data), data.read_int())

    def write(self, out: DataOutput) -> None:
        out.write_text(self.url)
        self.datum.write(out)
        out.write_int(self.seg_num)

    def __str__(self) -> str:
        return f"url={self.url}, datum={self.datum}, segnum={self.seg_num}"


class NutchWritable(GenericWritable):
    """One value of the classes in `types`, in Nutch's order."""

    __slots__ = ()
    class_name = "org.apache.nutch.crawl.NutchWritable"
    types = (
        *(f"org.apache.hadoop.io.{name}" for name in f"{_HADOOP} MD5Hash".split()),
        *(f"org.apache.nutch.{name}" for name in _NUTCH.split()),
    )
