"""TextProfileSignature by class name: the signature of each text file of a folder.

    <file> TAB <signature>

Files come in the order of their names; Nutch's ended at the first one.
Source: org.apache.nutch.crawl.TextProfileSignature.main.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import parse
from minutch.cycle.parse.signature import TextProfileSignature
from minutch.errors import StoreError
from minutch.job import JobContext
from minutch.records.content import Content

USAGE: Final = "TextProfileSignature <folder>"


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done, 255 for a wrong command line."""
    folder = Path(parse(args, (), usage=USAGE, least=1, most=1).positional[0])
    if not folder.is_dir():
        raise StoreError(f"{folder} is no folder")
    signature = TextProfileSignature(context.conf)
    for path in sorted(entry for entry in folder.iterdir() if entry.is_file()):
        data = path.read_bytes()
        text = "\n".join(data.decode("utf-8", "replace").splitlines())
        context.print(f"{path}\t{signature.calculate(Content(content=data), text).hex()}")
    return 0
