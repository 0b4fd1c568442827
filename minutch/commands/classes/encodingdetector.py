"""EncodingDetector: detects the charset of an HTML file.

Nutch used the detector of ICU only if `encodingdetector.charset.min.confidence` allowed it, and
otherwise printed the default; here the charset of the file is detected like that of a page without
a header. Source: org.apache.nutch.util.EncodingDetector.main.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.cycle.parse.charset import CharsetDetector
from minutch.job import JobContext

USAGE: Final = "EncodingDetector <file>"
FLAGS: Final[tuple[Flag, ...]] = ()


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0."""
    path = Path(parse(args, FLAGS, usage=USAGE, least=1, most=1).positional[0])
    found = CharsetDetector(context.conf).detect(path.read_bytes(), media_type="text/html")
    context.print(f"Guessed encoding: {found.name.lower()}")
    return 0
