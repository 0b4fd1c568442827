"""EncodingDetector by class name: the charset of an HTML file.

Nutch's main asked the detector of ICU only where `encodingdetector.charset.min.confidence` allowed
it, and else printed the default; here the file is looked at as a page is that comes without a
header. Source: org.apache.nutch.util.EncodingDetector.main.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import parse
from minutch.cycle.parse.charset import CharsetDetector
from minutch.job import JobContext

USAGE: Final = "EncodingDetector <file>"


def run(args: list[str], context: JobContext) -> int:
    """The command: 0 if done, 1 for a wrong command line."""
    path = Path(parse(args, (), usage=USAGE, least=1, most=1).positional[0])
    found = CharsetDetector(context.conf).detect(path.read_bytes(), media_type="text/html")
    context.print(f"Guessed encoding: {found.name.lower()}")
    return 0
