"""Reads what the exports of segments have in common on the command line: segments, archives, names
and sizes of files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from minutch.archives.web.existingarchives import is_archive
from minutch.archives.web.webarchivejobs import WebArchiveOptions
from minutch.commands.arguments import Arguments, Flag, fail
from minutch.warc.warcfile import DEFAULT_LIMIT, DIGESTS, SHA1

DIR: Final = Flag("-dir", value="segments", repeats=True)
OPTIONS: Final = """\t<segment>\ta segment, a folder of segments, or the folder of a crawl
\t-dir <segments>\tall segments in a folder
\t-prefix <name>\twhat the names of the files begin with
\t-size <bytes>\tafter how many bytes the next file begins (1000000000)
\t-digest sha1|sha256\thow digests are made (sha1)"""
FLAGS: Final = (
    DIR,
    Flag("-prefix", value="name"),
    Flag("-size", value="bytes", convert=int),
    Flag("-digest", value="digest", choices=tuple(DIGESTS)),
)


def given_segments(given: Arguments, usage: str) -> tuple[list[Path], Path]:
    """Of a command line `<segment>... [-dir <segments>] <out>` the places of segments, and the
    output. UsageError.
    """
    if not given.positional:
        fail("no output", usage)
    *words, out = given.positional
    paths = [Path(word) for word in (*words, *given.get(DIR.name, []))]
    if not paths:
        fail("no segments", usage)
    return paths, Path(out)


def archives_among(paths: Sequence[Path], usage: str) -> list[Path]:
    """`paths`, if they are archives or folders of archives; empty if they are segments. UsageError
    for both at once.
    """
    found = [path for path in paths if is_archive(path)]
    if found and len(found) < len(paths):
        fail(
            f"archives and segments at once: {found[0]},"
            f" {next(path for path in paths if path not in found)}",
            usage,
        )
    return found


def archive_options(given: Arguments, usage: str) -> WebArchiveOptions:
    """Returns the options that a command line asks for. UsageError."""
    limit = given.get("-size", DEFAULT_LIMIT)
    if limit <= 0:
        fail(f"-size {limit}: expected a number of bytes", usage)
    prefix = given["-prefix"]
    if prefix is not None and (
        not prefix or "/" in prefix or not prefix.isprintable() or prefix.startswith(".")
    ):
        fail(f"-prefix {prefix}: expected the beginning of a file's name", usage)
    return WebArchiveOptions(prefix or "", limit, given.get("-digest", SHA1))
