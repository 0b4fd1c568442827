"""TextProfileSignature: prints the signature of each text file in a folder.

    <file> TAB <signature>

Files are in the order of their names; Nutch ended after the first one.
Source: org.apache.nutch.crawl.TextProfileSignature.main.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.parse.signature import TextProfileSignature
from minutch.errors import StoreError
from minutch.job import JobContext
from minutch.records.protocol import Content

USAGE: Final = "TextProfileSignature <folder>"
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    folder = Path(parse(args, FLAGS, usage=USAGE, least=1, most=1).positional[0])
    if not folder.is_dir():
        raise StoreError(f"{folder} is no folder")
    signature = TextProfileSignature(context.conf)
    for path in sorted(entry for entry in folder.iterdir() if entry.is_file()):
        data = path.read_bytes()
        text = "\n".join(data.decode("utf-8", "replace").splitlines())
        context.print(f"{path}\t{signature.calculate(Content(content=data), text).hex()}")
    return 0
