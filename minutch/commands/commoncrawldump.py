"""commoncrawldump: writes a CBOR document of each fetched page, or WARC files of all pages
(`minutch/archives/commoncrawldumper.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.archives.commoncrawldumper import CommonCrawlDumpOptions, commoncrawldump
from minutch.commands.arguments import Arguments, Flag, fail, parse
from minutch.job import JobContext

USAGE: Final = """org.apache.nutch.tools.CommonCrawlDataDumper [-epochFilename] \
[-extension <extension>] [-gzip] [-h] [-jsonArray] [-keyPrefix <keyPrefix>] [-linkdb <linkdb>] \
[-mimetype <mimetype>...] -outputDir <outputDir> [-reverseKey] -segment <segment>... \
[-SimpleDateFormat] [-warc] [-warcSize <warcSize>]
 -epochFilename           name files after host, URL and time
 -extension <extension>   the suffix of the files; by default that of the URL
 -gzip                    all files in one .tar.gz; with -warc, compressed records
 -h,--help                show this help message
 -jsonArray               headers as lists of names and values
 -keyPrefix <keyPrefix>   the prefix of `key`
 -linkdb <linkdb>         a LinkDb, to include the inlinks of each page
 -mimetype <mimetype>     only pages of these media types
 -outputDir <outputDir>   the folder of the files; created if missing
 -reverseKey              `key` is reversed host, SHA-1 of the URL, and time
 -segment <segment>       segments, or folders of segments
 -SimpleDateFormat        dates in milliseconds since 1970
 -warc                    WARC files
 -warcSize <warcSize>     the size in bytes at which the next WARC file begins"""

FLAGS: Final = (
    Flag("-outputDir", value="outputDir"),
    Flag("-segment", value="segment", many=True),
    Flag("-mimetype", value="mimetype", many=True),
    Flag("-gzip"),
    Flag("-keyPrefix", value="keyPrefix"),
    Flag("-SimpleDateFormat"),
    Flag("-epochFilename"),
    Flag("-jsonArray"),
    Flag("-reverseKey"),
    Flag("-extension", value="extension"),
    Flag("-linkdb", value="linkdb"),
    Flag("-warc"),
    Flag("-warcSize", value="warcSize", convert=int),
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
    out, options = Path(arguments["-outputDir"]), _options(arguments)
    counters = commoncrawldump(paths, out, options, context=context)
    context.report("CommonCrawlDataDumper", counters)
    return 0


def _options(arguments: Arguments) -> CommonCrawlDumpOptions:
    wanted, linkdb = arguments["-mimetype"], arguments["-linkdb"]
    return CommonCrawlDumpOptions(
        media_types=None if wanted is None else frozenset(wanted),
        warc=arguments["-warc"],
        gzip=arguments["-gzip"],
        warc_size=arguments.get("-warcSize", 0),
        linkdb=None if linkdb is None else Path(linkdb),
        extension=arguments.get("-extension", ""),
        epoch_filename=arguments["-epochFilename"],
        key_prefix=arguments.get("-keyPrefix", ""),
        epoch_dates=arguments["-SimpleDateFormat"],
        arrays=arguments["-jsonArray"],
        reverse_key=arguments["-reverseKey"],
    )
