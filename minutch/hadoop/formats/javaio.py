"""java.io.DataInput and DataOutput over bytes in memory: big-endian numbers, VInt, VLong, strings.

    byte, short, int, long     two's complement, big-endian, 1 2 4 8 bytes
    float, double              IEEE 754, big-endian
    boolean                    one byte, any non-zero is true on reading, 1 on writing
    VInt, VLong                WritableUtils: one byte for -112..127; else a first byte -113..-120
                               (positive) or -121..-128 (negative, value complemented) that counts
                               1..8 big-endian bytes after it
    text                       VInt length in bytes, then UTF-8
                               (org.apache.hadoop.io.Text)
    utf8                       unsigned short length in bytes, then modified UTF-8  (Hadoop UTF8,
                               writeUTF)
    string, string array       WritableUtils: int length or count, -1 for null; also gzip'd

Strings that hold invalid UTF-8 are kept byte for byte: they are decoded with `surrogateescape`.
Every read error is a FormatError with the offset in the buffer.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from collections.abc import Callable, Sequence

from minutch.errors import FormatError, TruncatedError

_SHORT = struct.Struct(">h")
_USHORT = struct.Struct(">H")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_FLOAT = struct.Struct(">f")
_DOUBLE = struct.Struct(">d")
_SUPPLEMENTARY = re.compile("[\U00010000-\U0010ffff]")
_FOUR_BYTES = tuple(bytes((lead,)) for lead in range(0xF0, 0xF5))
"""What the UTF-8 of supplementary characters begins with."""


def decode_text(data: bytes | bytearray | memoryview) -> str:
    """UTF-8 to str; bytes that are not UTF-8 survive as lone surrogates (`surrogateescape`)."""
    return str(data, "utf-8", "surrogateescape")


def java_string(text: str) -> str:
    """Returns what Text.toString makes of it: bytes that are not UTF-8 become U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def encode_text(value: str) -> bytes:
    """str to UTF-8, the inverse of `decode_text`; other unpaired surrogates become `?` as
    Text.encode makes them.
    """
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        # Surrogates that make a pair become the character that they stand for.
        paired = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        # U+DC80 to U+DCFF stand for bytes that were no UTF-8 (surrogateescape).
        return b"".join(
            bytes((ord(c) - 0xDC00,)) if "\udc80" <= c <= "\udcff" else c.encode("utf-8", "replace")
            for c in paired
        )


def encode_modified_utf8(value: str | bytes) -> bytes:
    """str, or UTF-8, to Java's modified UTF-8: NUL in two bytes, supplementary characters as
    surrogates.
    """
    data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
    if data.isascii():
        return data.replace(b"\0", b"\xc0\x80")
    # Looked for in C: few strings have any.
    if any(lead in data for lead in _FOUR_BYTES):
        text = data.decode("utf-8", "surrogatepass")
        data = _SUPPLEMENTARY.sub(_in_surrogates, text).encode("utf-8", "surrogatepass")
    return data.replace(b"\0", b"\xc0\x80")


def _in_surrogates(match: re.Match[str]) -> str:
    code = ord(match[0]) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))


def decode_modified_utf8(data: bytes) -> str:
    """Java's modified UTF-8 to str; raises FormatError on a malformed sequence."""
    if data.isascii():
        return data.decode("ascii")
    units = bytearray()
    i, n = 0, len(data)
    while i < n:
        b = data[i]
        # 0xxxxxxx, 110xxxxx, 1110xxxx: modified UTF-8 has no four bytes.
        size = 1 if b < 0x80 else 2 if b >> 5 == 6 else 3 if b >> 4 == 14 else 0
        if not size or i + size > n or any(c >> 6 != 2 for c in data[i + 1 : i + size]):
            raise FormatError("malformed modified UTF-8", offset=i, found=f"byte {b:#04x}")
        if size == 1:
            unit = b
        elif size == 2:
            unit = (b & 0x1F) << 6 | data[i + 1] & 0x3F
        else:
            unit = (b & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | data[i + 2] & 0x3F
        units += unit.to_bytes(2, "big")
        i += size
    # Surrogates that stood for themselves make pairs here.
    return units.decode("utf-16-be", "surrogatepass")


def encode_vlong(value: int) -> bytes:
    """WritableUtils.writeVLong."""
    if -112 <= value <= 127:
        return bytes((value & 0xFF,))
    magnitude = value if value >= 0 else ~value
    size = (magnitude.bit_length() + 7) // 8
    return bytes(((-112 if value >= 0 else -120) - size & 0xFF,)) + magnitude.to_bytes(size, "big")


class DataInput:
    """Reads Java's primitives from `buf[pos:end]`; `pos` moves on with each read."""

    __slots__ = ("buf", "end", "pos")

    def __init__(
        self, buf: bytes | bytearray | memoryview, pos: int = 0, end: int | None = None
    ) -> None:
        # Slices of it are no copies.
        self.buf = memoryview(buf)
        self.pos = pos
        self.end = len(self.buf) if end is None else end

    @property
    def remaining(self) -> int:
        """Bytes that are left."""
        return self.end - self.pos

    def skip(self, size: int) -> int:
        """Passes `size` bytes; returns where they start. TruncatedError if they are not there."""
        pos = self.pos
        if size < 0:
            raise FormatError("negative length", offset=pos, expected="0 or more", found=size)
        if pos + size > self.end:
            raise TruncatedError(
                "data ends inside a value",
                offset=pos,
                expected=f"{size} bytes",
                found=f"{self.end - pos}",
            )
        self.pos = pos + size
        return pos

    def read_bytes(self, size: int) -> bytes:
        """Returns the next `size` bytes, copied."""
        pos = self.skip(size)
        return bytes(self.buf[pos : pos + size])

    def read_byte(self) -> int:
        """Returns a signed byte."""
        b = self.buf[self.skip(1)]
        return b - 256 if b > 127 else b

    def read_unsigned_byte(self) -> int:
        return self.buf[self.skip(1)]

    def read_boolean(self) -> bool:
        return self.buf[self.skip(1)] != 0

    def read_short(self) -> int:
        return int(_SHORT.unpack_from(self.buf, self.skip(2))[0])

    def read_unsigned_short(self) -> int:
        return int(_USHORT.unpack_from(self.buf, self.skip(2))[0])

    def read_int(self) -> int:
        return int(_INT.unpack_from(self.buf, self.skip(4))[0])

    def read_long(self) -> int:
        return int(_LONG.unpack_from(self.buf, self.skip(8))[0])

    def read_float(self) -> float:
        """Returns a 32-bit float, widened without loss."""
        return float(_FLOAT.unpack_from(self.buf, self.skip(4))[0])

    def read_double(self) -> float:
        return float(_DOUBLE.unpack_from(self.buf, self.skip(8))[0])

    def read_vlong(self) -> int:
        """WritableUtils.readVLong."""
        first = self.read_byte()
        if first >= -112:
            return first
        negative = first < -120
        size = -120 - first if negative else -112 - first
        pos = self.skip(size)
        value = int.from_bytes(self.buf[pos : pos + size], "big")
        if value > 0x7FFF_FFFF_FFFF_FFFF:  # eight bytes, Java's long wraps
            value -= 1 << 64
        return ~value if negative else value

    def read_vint(self) -> int:
        """WritableUtils.readVInt: a VLong that must fit into 32 bits."""
        pos = self.pos
        value = self.read_vlong()
        if not -0x8000_0000 <= value <= 0x7FFF_FFFF:
            raise FormatError(
                "value too long to fit in integer",
                offset=pos,
                expected="a 32-bit VInt",
                found=value,
            )
        return value

    def read_text_bytes(self) -> bytes:
        """Returns the bytes of a Text."""
        return self.read_bytes(self.read_vint())

    def read_text(self) -> str:
        """Returns a Text (VInt length, UTF-8)."""
        pos = self.pos
        # A length of one byte, without a VInt's three calls.
        if pos < self.end and pos + 1 + (size := self.buf[pos]) <= self.end and size < 128:
            self.pos = pos + 1 + size
            return str(self.buf[pos + 1 : self.pos], "utf-8", "surrogateescape")
        size = self.read_vint()
        pos = self.skip(size)
        return decode_text(self.buf[pos : pos + size])

    def read_utf8(self) -> str:
        """DataInput.readUTF and the old UTF8 (two-byte length, modified UTF-8)."""
        size = self.read_unsigned_short()
        start = self.pos
        data = self.read_bytes(size)
        try:
            return decode_modified_utf8(data)
        except FormatError as exc:
            exc.offset = start + (exc.offset or 0)
            raise


class DataOutput:
    """Writes Java's primitives to a growing buffer, `buf`."""

    __slots__ = ("buf",)

    def __init__(self) -> None:
        self.buf = bytearray()

    def __len__(self) -> int:
        return len(self.buf)

    def getvalue(self) -> bytes:
        """Returns the bytes written so far."""
        return bytes(self.buf)

    def write_bytes(self, data: bytes | bytearray | memoryview) -> None:
        self.buf += data

    def write_byte(self, value: int) -> None:
        self.buf.append(value & 0xFF)

    def write_boolean(self, value: bool) -> None:
        self.buf.append(1 if value else 0)

    def write_short(self, value: int) -> None:
        self.buf += (value & 0xFFFF).to_bytes(2, "big")

    def write_int(self, value: int) -> None:
        self.buf += _INT.pack(value)

    def write_long(self, value: int) -> None:
        self.buf += _LONG.pack(value)

    def write_float(self, value: float) -> None:
        try:
            self.buf += _FLOAT.pack(value)
        except OverflowError:  # Java's narrowing gives an infinity
            self.buf += _FLOAT.pack(math.copysign(math.inf, value))

    def write_double(self, value: float) -> None:
        self.buf += _DOUBLE.pack(value)

    def write_vlong(self, value: int) -> None:
        if -112 <= value <= 127:
            self.buf.append(value & 0xFF)
        else:
            self.buf += encode_vlong(value)

    write_vint = write_vlong

    def write_text(self, value: str) -> None:
        data = value.encode() if value.isascii() else encode_text(value)
        size = len(data)
        buf = self.buf
        if size < 128:
            # Up to 127 a VInt is the byte itself.
            buf.append(size)
        else:
            buf += encode_vlong(size)
        buf += data

    def write_text_bytes(self, data: bytes) -> None:
        self.write_vlong(len(data))
        self.buf += data

    def write_utf8(self, value: str) -> None:
        """DataOutput.writeUTF; FormatError beyond 65,535 bytes (UTFDataFormatException)."""
        data = encode_modified_utf8(value)
        if len(data) > 0xFFFF:
            raise FormatError(
                "string too long for writeUTF", expected="at most 65535 bytes", found=len(data)
            )
        self.buf += len(data).to_bytes(2, "big") + data


_MAX_INFLATED = 1 << 30
"""Bytes that one compressed string may inflate to."""


def read_string(data: DataInput) -> str | None:
    """WritableUtils.readString."""
    size = data.read_int()
    return None if size == -1 else decode_text(data.read_bytes(size))


def write_string(out: DataOutput, value: str | None) -> None:
    """WritableUtils.writeString."""
    if value is None:
        out.write_int(-1)
    else:
        raw = encode_text(value)
        out.write_int(len(raw))
        out.write_bytes(raw)


def read_compressed_string(data: DataInput) -> str | None:
    """WritableUtils.readCompressedString: an int length, then gzip."""
    start = data.pos
    size = data.read_int()
    return None if size == -1 else decode_text(inflate(data.read_bytes(size), start, wbits=31))


def inflate(compressed: bytes, offset: int, wbits: int = 15) -> bytes:
    """One zlib (`wbits` 15) or gzip (31) stream that must be whole; FormatError otherwise."""
    decoder = zlib.decompressobj(wbits)
    try:
        # Deflate packs up to 1,032 to 1: a string of megabytes could unpack to gigabytes.
        result = decoder.decompress(compressed, _MAX_INFLATED)
    except zlib.error as exc:
        raise FormatError("damaged compressed string", offset=offset, found=str(exc)) from exc
    if not decoder.eof:  # cut off, or beyond the limit
        raise FormatError(
            "compressed string without its end", offset=offset, found=f"{len(compressed)} bytes"
        )
    return result


def read_string_array(
    data: DataInput, read: Callable[[DataInput], str | None] = read_string
) -> list[str | None] | None:
    """WritableUtils.readStringArray, or readCompressedStringArray (`read_string`); null is None."""
    count = data.read_int()
    return None if count == -1 else [read(data) for _ in range(count)]


def write_string_array(out: DataOutput, values: Sequence[str | None] | None) -> None:
    """WritableUtils.writeStringArray."""
    if values is None:
        out.write_int(-1)
        return
    out.write_int(len(values))
    for value in values:
        write_string(out, value)


def args_to_string(args: Sequence[str | None] | None) -> str:
    """Formats arguments as ProtocolStatus and ParseStatus do."""
    if args is None:
        return ""
    if len(args) == 1:
        return f": {'null' if args[0] is None else args[0]}"
    return "".join(f", args[{i}]={arg}" for i, arg in enumerate(args) if arg is not None)
