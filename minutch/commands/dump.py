"""dump: writes the content of each fetched page to a file of its own
(`minutch/archives/filedumper.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.archives.filedumper import (
    FLAT,
    NESTED,
    REVERSED,
    FileDumpOptions,
    count_media_types,
    dump,
)
from minutch.commands.arguments import Flag, fail, parse
from minutch.job import JobContext

USAGE: Final = """FileDumper [-flatdir] [-h] [-mimeStats] [-mimetype <mimetype>...] \
-outputDir <outputDir> [-reverseUrlDirs] -segment <segment>...
 -flatdir                 all files in the output directory itself
 -h,--help                show this help message
 -mimeStats               only count the pages by media type; write no files
 -mimetype <mimetype>     only pages of these media types
 -outputDir <outputDir>   the folder of the files; created if missing
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
    """Runs the command; returns 0. Without arguments, it prints the usage."""
    if not args:
        context.print(f"usage: {USAGE}")
        return 0
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    for name in ("-outputDir", "-segment"):
        if arguments[name] is None:
            fail(f"{name} is missing", USAGE)
    paths = [Path(word) for word in arguments["-segment"]]
    wanted = arguments["-mimetype"]
    options = FileDumpOptions(
        media_types=None if wanted is None else frozenset(wanted),
        naming=REVERSED
        if arguments["-reverseUrlDirs"]
        else FLAT
        if arguments["-flatdir"]
        else NESTED,
    )
    if arguments["-mimeStats"]:
        types = count_media_types(paths, options, context=context)
        context.print(f"Dumper File Stats: {types.text()}")
        return 0
    counters = dump(paths, Path(arguments["-outputDir"]), options, context=context)
    context.report("FileDumper", counters)
    return 0
