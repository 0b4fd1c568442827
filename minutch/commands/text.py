"""`minutch text PATH... [-json]`: prints SequenceFiles, MapFiles and whole folders of them.

Folders, JSON and both layouts of Inlinks go beyond the command of Hadoop's that does the same for
single files.

Source: `hadoop fs -text`.
"""

from __future__ import annotations

import logging
from pathlib import Path

from minutch.commands.arguments import Flag, parse
from minutch.errors import FormatError
from minutch.hadoop.formats import text
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.job import JobContext
from minutch.records.links import LAYOUT_METADATA, Inlinks
from minutch.records.links_columns import layout_of

log = logging.getLogger(__name__)

USAGE = """text <path> ... [-json]
\t<path> ...\tfiles, or folders with files
\t-json\tone JSON object per record"""
FLAGS = (Flag("-json"),)


def run(args: list[str], context: JobContext) -> int:
    """Prints all paths. Exit code 0, 1 if some could not be read: errors are logged, the other
    files are still printed.
    """
    arguments = parse(args, FLAGS, usage=USAGE, least=1)
    failed = 0
    for word in arguments.positional:
        for path in text.files_below(Path(word)):
            try:
                _print(path, context, as_json=arguments["-json"])
            except (FormatError, OSError) as exc:
                log.error("%s", exc)
                failed += 1
    return 1 if failed else 0


def _print(path: Path, context: JobContext, *, as_json: bool) -> None:
    make = text.as_json if as_json else text.as_text
    for piece in make(path, _decoders(path)):
        context.out.write(piece)


def _decoders(path: Path) -> text.Decoders:
    """Returns a decoder for Inlinks that prints them in the layout of their file."""
    if not text.is_sequence_file(path):
        return {}
    with SequenceFileReader(path) as reader:
        if reader.value_class != Inlinks.class_name:
            return {}
        layout = layout_of(value for _, value in reader)
    return {} if layout == LAYOUT_METADATA else {Inlinks.class_name: _inlinks_decoder(layout)}


def _inlinks_decoder(layout: str) -> text.Decoder:
    class InlinksOfLayout(Inlinks):
        """Inlinks that are printed as the Nutch that wrote them prints them."""

        __slots__ = ()

        def __str__(self) -> str:
            return self.to_string(layout)

    return lambda data: InlinksOfLayout.read(DataInput(data), layout)
