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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from minutch.archives.captures import find_segments, pages
from minutch.archives.filedumper import dump
from minutch.archives.mediatypes import MediaTypes
from minutch.archives.pagenames import page_name, reversed_name, two_levels
from minutch.commands.arguments import Arguments, Flag, fail, parse
from minutch.cycle.segment.store import Segment
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE: Final = """FileDumper [-flatdir] [-h] [-mimeStats] [-mimetype <mimetype>...]
       -outputDir <outputDir> [-reverseUrlDirs] -segment <segment>...
 -flatdir                 all files in the output directory itself
 -h,--help                show this help message
 -mimeStats               only count the pages by media type; write no files
 -mimetype <mimetype>     only pages of these media types
 -outputDir <outputDir>   where the files go; made if it is not there
 -reverseUrlDirs          folders named after the hosts: org/example/www
 -segment <segment>       segments, or folders of segments"""

FLAGS: Final = (
    Flag("-outputDir", value="outputDir"),
    Flag("-segment", value="segment", many=True),
    Flag("-mimetype", value="mimetype", many=True),
    Flag("-mimeStats"),
    Flag("-flatdir"),
    Flag("-reverseUrlDirs"),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: 0, also for the usage, which is what no arguments at all ask for."""
    if not args:
        context.print(f"usage: {USAGE}")
        return 0
    given = parse(args, FLAGS, usage=USAGE, most=0)
    for name in ("-outputDir", "-segment"):
        if given[name] is None:
            fail(f"{name} is missing", USAGE)
    segments = find_segments(map(Path, given["-segment"]))
    types = MediaTypes(context.conf, given["-mimetype"])
    if given["-mimeStats"]:
        _count(segments, types, context)
        context.print(f"Dumper File Stats: {types.text()}")
        return 0
    counters = dump(segments, Path(given["-outputDir"]), types, _naming(given), context)
    for line in f"Dumper File Stats: {types.text()}".splitlines():
        log.info("%s", line)
    context.report("FileDumper", counters)
    return 0


def _naming(given: Arguments) -> Callable[[str], str]:
    """How a page's file is named."""
    if given["-reverseUrlDirs"]:
        return reversed_name
    if given["-flatdir"]:
        return page_name
    return _nested_name


def _nested_name(url: str) -> str:
    name = page_name(url)
    return f"{two_levels(name)}/{name}"


def _count(segments: Iterable[Segment], types: MediaTypes, context: JobContext) -> None:
    with context.progress("dump -mimeStats", unit="pages") as progress:
        for segment in segments:
            log.info("Processing segment: [%s]", segment.path.absolute())
            for _, content in pages(segment):
                types.chooses(content.content)
                progress.advance()
