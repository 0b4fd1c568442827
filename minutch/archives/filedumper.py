"""Writes the content of each fetched page to a file of its own, as Nutch's `dump` does.

    <out>/ab/cd/<md5 of the URL>_<name>.<suffix>     two levels of folders keep them small
    <out>/<md5 of the URL>_<name>.<suffix>           -flatdir
    <out>/com/example/www/<SHA-256 of the URL>       -reverseUrlDirs
    <out>/<segment>_filenameToUrl.json               file → URL, one for each segment

A page that is in several segments, or already in <out>, is written once: the first one stays.

Different from Nutch on purpose: without -flatdir there are folders, as its usage says (since 1.12
it makes none); -reverseUrlDirs works; -segment takes several segments and folders of segments; no
URL results in a file outside of <out> or in the file of another page; a run that fails leaves <out>
unchanged.

Source: org.apache.nutch.tools.FileDumper.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from minutch.archives.captures import find_segments, pages
from minutch.archives.pagefiles import (
    MediaTypeCounts,
    PageFiles,
    page_files,
    page_name,
    reversed_name,
    two_levels,
)
from minutch.cycle.parse.mime import MimeUtil
from minutch.cycle.segment.store import Segment
from minutch.job import Counters, JobContext
from minutch.warc.jsontext import string

log = logging.getLogger(__name__)
WRITTEN: Final = "pages written"
SEEN: Final = "pages written before"
LEFT_OUT: Final = "pages of other types"
NESTED: Final = "nested"
FLAT: Final = "flat"
REVERSED: Final = "reversed"


def _nested_name(url: str) -> str:
    name = page_name(url)
    return f"{two_levels(name)}/{name}"


_NAMINGS: Final[dict[str, Callable[[str], str]]] = {
    NESTED: _nested_name,
    FLAT: page_name,
    REVERSED: reversed_name,
}


@dataclass(frozen=True, slots=True)
class FileDumpOptions:
    """Options of dump."""

    media_types: frozenset[str] | None = None
    """Media types of the pages to write; None: all."""
    naming: str = NESTED
    """Names of files: NESTED, FLAT or REVERSED."""


def dump(
    paths: Sequence[Path],
    out: Path,
    options: FileDumpOptions = FileDumpOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Writes the pages of the segments at `paths` to files below `out`.

    Raises StoreError if there are no segments or a file can't be written, FormatError for damage.
    """
    segments = find_segments(paths)
    types = MediaTypeCounts(MimeUtil(context.conf), options.media_types)
    naming = _NAMINGS[options.naming]
    counters = Counters({WRITTEN: 0, SEEN: 0, LEFT_OUT: 0})
    with page_files(out) as files, context.progress("dump", unit="pages") as progress:
        for segment in segments:
            log.info("Processing segment: [%s]", segment.path.absolute())
            with _index(files, segment) as add_to_index:
                for url, content in pages(segment):
                    progress.advance()
                    if not types.add(content.content):
                        counters.add(LEFT_OUT)
                        continue
                    file = files.add(naming(url), url, content.content)
                    path = out.absolute() / file.name
                    add_to_index(path, url)
                    if file.is_new:
                        log.debug("Writing: [%s]", path)
                    else:
                        log.debug("Skipping writing: [%s]: file already exists", path)
                    counters.add(WRITTEN if file.is_new else SEEN)
    for line in f"Dumper File Stats: {types.text()}".splitlines():
        log.info("%s", line)
    return counters


def count_media_types(
    paths: Sequence[Path], options: FileDumpOptions = FileDumpOptions(), *, context: JobContext
) -> MediaTypeCounts:
    """Counts the pages of the segments at `paths` by media type."""
    types = MediaTypeCounts(MimeUtil(context.conf), options.media_types)
    with context.progress("dump -mimeStats", unit="pages") as progress:
        for segment in find_segments(paths):
            log.info("Processing segment: [%s]", segment.path.absolute())
            for _, content in pages(segment):
                types.add(content.content)
                progress.advance()
    return types


@contextmanager
def _index(files: PageFiles, segment: Segment) -> Iterator[Callable[[Path, str], None]]:
    """Opens the segment's JSON object of files; yields a function that adds a file and its URL."""
    name = files.claim(f"{segment.name}_filenameToUrl.json", str(segment.path.absolute())).name
    with files.path(name).open("w", encoding="utf-8") as file:
        file.write("{")
        yield _adder(file)
        file.write("}")


def _adder(file: TextIO) -> Callable[[Path, str], None]:
    comma = ""

    def add(path: Path, url: str) -> None:
        nonlocal comma
        file.write(f"{comma}{string(str(path))}:{string(url)}")
        comma = ","

    return add
