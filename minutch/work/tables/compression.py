"""How output is compressed: what the properties of Hadoop's output formats say. What compresses the
values is a module of its own, `zlibvalues`: its kernels cost the start of a look-up.

    mapreduce.output.fileoutputformat.compress        whether; the LinkDb and segments always are
    mapreduce.output.fileoutputformat.compress.type   NONE, RECORD (the default) or BLOCK
    mapreduce.output.fileoutputformat.compress.codec  Java's class of the codec; DefaultCodec (zlib)
                                                      if none is given

Databases and fetch lists obey all three, text files the first and the last: they end as the codec
says (`.gz`, …). The other folders of a segment obey the type alone, as in Nutch, which writes them
itself.

Source: org.apache.hadoop.mapreduce.lib.output.FileOutputFormat, SequenceFileOutputFormat,
MapFileOutputFormat, TextOutputFormat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from minutch.conf import Configuration
from minutch.errors import ConfigError, FormatError
from minutch.hadoop.formats.compress import DEFAULT_CODEC, PACKAGE, Codec, codec
from minutch.hadoop.formats.sequencewriter import COMPRESSIONS, NONE, RECORD

COMPRESS_PROPERTY: Final = "mapreduce.output.fileoutputformat.compress"
TYPE_PROPERTY: Final = "mapreduce.output.fileoutputformat.compress.type"
CODEC_PROPERTY: Final = "mapreduce.output.fileoutputformat.compress.codec"


@dataclass(frozen=True, slots=True)
class Compression:
    """The compression of a SequenceFile: NONE, RECORD or BLOCK, and the codec."""

    kind: str = NONE
    codec: str = DEFAULT_CODEC

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of a writer."""
        return {"compression": self.kind, "codec": self.codec}


PLAIN: Final = Compression()
DEFLATED: Final = Compression(RECORD)


def is_compressed(conf: Configuration) -> bool:
    """Tells whether output that is plain by default is to be compressed."""
    return bool(conf.get_boolean(COMPRESS_PROPERTY, False))


def output_compression(conf: Configuration, *, always: bool = False) -> Compression:
    """Returns the compression of a database or list; `always` if Nutch insists. ConfigError."""
    if not always and not is_compressed(conf):
        return PLAIN
    kind = compression_type(conf)
    return PLAIN if kind == NONE else Compression(kind, _codec_name(conf))


def compression_type(conf: Configuration) -> str:
    """NONE, RECORD or BLOCK. Raises ConfigError for other values."""
    # SequenceFileOutputFormat.getOutputCompressionType: RECORD unless set.
    value = (conf.get(TYPE_PROPERTY) or RECORD).strip()
    if value not in COMPRESSIONS:
        raise ConfigError(f"{TYPE_PROPERTY}: expected NONE, RECORD or BLOCK, found {value!r}")
    return value


def text_codec(conf: Configuration) -> Codec | None:
    """Returns the codec of text files; None if they are not compressed. Raises ConfigError."""
    return codec(_codec_name(conf)) if is_compressed(conf) else None


def _codec_name(conf: Configuration) -> str:
    name = (conf.get(CODEC_PROPERTY) or DEFAULT_CODEC).strip()
    try:
        return codec(name).name
    except FormatError as error:
        raise ConfigError(
            f"{CODEC_PROPERTY}: expected a codec as {PACKAGE}GzipCodec, found {name!r}"
        ) from error
