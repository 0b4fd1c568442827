"""dump: every fetched page as a file of its own, as it came (org.apache.nutch.tools.FileDumper).

    <out>/ab/cd/<md5 of the URL>_<name>.<suffix>     two levels of folders, so that none gets too
                                                     full
    <out>/<md5 of the URL>_<name>.<suffix>           -flatdir
    <out>/com/example/www/<SHA-256 of the URL>       -reverseUrlDirs
    <out>/<segment>_filenameToUrl.json               file -> URL, one for each segment

A page that is in several segments, or in <out> already, is written once: the first one stays.

Different from Nutch on purpose: without -flatdir there are folders, as its usage says (since 1.12
it makes none); -reverseUrlDirs works; -segment takes segments as well as folders of segments, and
several; nothing that a URL holds makes a name that is not a file's below <out>, or another page's;
a run that fails leaves <out> as it was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from minutch.archives.captures import pages
from minutch.archives.mediatypes import MediaTypes
from minutch.archives.pagefiles import PageFiles, page_files
from minutch.cycle.segment.store import Segment
from minutch.job import Counters, JobContext
from minutch.warc.jsontext import string

log = logging.getLogger(__name__)
WRITTEN: Final = "pages written"
SEEN: Final = "pages written before"
LEFT_OUT: Final = "pages of other types"


def dump(
    segments: Iterable[Segment],
    out: Path,
    types: MediaTypes,
    naming: Callable[[str], str],
    context: JobContext,
) -> Counters:
    """Write the pages of `segments` that `types` chooses to files below `out`. StoreError,
    FormatError for damage.
    """
    counters = Counters({WRITTEN: 0, SEEN: 0, LEFT_OUT: 0})
    with page_files(out) as files, context.progress("dump", unit="pages") as progress:
        for segment in segments:
            log.info("Processing segment: [%s]", segment.path.absolute())
            with _index(files, segment) as note:
                for url, content in pages(segment):
                    progress.advance()
                    if not types.chooses(content.content):
                        counters.add(LEFT_OUT)
                        continue
                    counters.add(_write(files, naming(url), url, content.content, note))
    return counters


def _write(
    files: PageFiles, name: str, url: str, page: bytes, note: Callable[[Path, str], None]
) -> str:
    """One page into its file, unless it has one; returns what is counted."""
    place = files.add(name, url, page)
    path = files.out.absolute() / place.name
    note(path, url)
    log.debug(
        "Writing: [%s]" if place.is_new else "Skipping writing: [%s]: file already exists", path
    )
    return WRITTEN if place.is_new else SEEN


@contextmanager
def _index(files: PageFiles, segment: Segment) -> Iterator[Callable[[Path, str], None]]:
    """A function that puts (file, URL) into the segment's JSON object of them."""
    name = files.claim(f"{segment.name}_filenameToUrl.json", str(segment.path.absolute())).name
    with files.path(name).open("w", encoding="utf-8") as file:
        file.write("{")
        yield _noting(file)
        file.write("}")


def _noting(file: TextIO) -> Callable[[Path, str], None]:
    comma = ""

    def note(path: Path, url: str) -> None:
        nonlocal comma
        file.write(f"{comma}{string(str(path))}:{string(url)}")
        comma = ","

    return note
