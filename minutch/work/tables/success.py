"""The empty file `_SUCCESS` that Hadoop's jobs leave in a finished output folder, for programs that
wait for one.

Off unless `mapreduce.fileoutputcommitter.marksuccessfuljobs` is true, and then only where Nutch
does not switch it off itself, which it does for most databases: inject, updatedb, dedup,
mergelinkdb, webgraph, linkrank, HostDb, sitemap and the statistics have no mark.

Source: org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.conf import Configuration
from minutch.hadoop.formats.checksum import ChecksumWriter

PROPERTY: Final = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
SUCCESS: Final = "_SUCCESS"


def mark_success(conf: Configuration, folder: Path) -> None:
    """Writes the mark into `folder`, which is complete, if the configuration asks for it."""
    if conf.get_boolean(PROPERTY):
        with ChecksumWriter(folder / SUCCESS):
            pass
