"""Reads the arguments that exports of segments share: segments or archives, and the names, sizes
and digests of files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.archives.web.webarchivejobs import WebArchiveOptions
from minutch.commands.arguments import Arguments, Flag, fail
from minutch.warc.warcfile import DEFAULT_LIMIT, DIGESTS, SHA1

SEGMENTS: Final = """\t<segment>\ta segment, a folder of segments, or the folder of a crawl
\t-dir <segments>\tall segments in a folder"""
OPTIONS: Final = f"""{SEGMENTS}
\t-prefix <name>\tthe beginning of the files' names
\t-size <bytes>\tthe size at which the next file begins (1000000000)
\t-digest sha1|sha256\tthe hash of digests (sha1)"""
DIR: Final = Flag("-dir", value="segments", repeats=True)
FLAGS: Final = (
    DIR,
    Flag("-prefix", value="name"),
    Flag("-size", value="bytes", convert=int),
    Flag("-digest", value="digest", choices=tuple(DIGESTS)),
)


def paths_and_output(arguments: Arguments, usage: str) -> tuple[list[Path], Path]:
    """Returns the paths of segments and the output of `<segment>... [-dir <segments>] <out>`.

    Raises UsageError.
    """
    if not arguments.positional:
        fail("no output", usage)
    *words, out = arguments.positional
    paths = [Path(word) for word in (*words, *arguments.get(DIR.name, []))]
    if not paths:
        fail("no segments", usage)
    return paths, Path(out)


def archive_options(arguments: Arguments, usage: str) -> WebArchiveOptions:
    """Returns the options of a command line. Raises UsageError."""
    limit = arguments.get("-size", DEFAULT_LIMIT)
    if limit <= 0:
        fail(f"-size {limit}: expected a number of bytes", usage)
    prefix = arguments["-prefix"]
    if prefix is not None and (
        not prefix or "/" in prefix or not prefix.isprintable() or prefix.startswith(".")
    ):
        fail(f"-prefix {prefix}: expected the beginning of a file's name", usage)
    return WebArchiveOptions(prefix or "", limit, arguments.get("-digest", SHA1))
