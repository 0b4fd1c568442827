"""commoncrawldump: every fetched page as a document of its own, in CBOR; or all of them in WARC
files.

    <out>/<md5 of the URL>_<name>.<suffix>
    <out>/com/example/www/<sha1 of the URL>/<ms since 1970>.<suffix>     -epochFilename
    <out>/yyyyMMddHHmm.tar.gz                                            -gzip: the same files in
    one archive
    <out>/WEB-<yyyyMMddHHmmssSSS>-NNNNN.warc[.gz]                        -warc

Different from Nutch on purpose: parts are found under all their names, not only `part-NNNNN`; -warc
writes records with the page itself, not the text of Nutch's record of it, many into a file, and
obeys -mimetype; a page without a Date is dated by its fetch, not by the clock; in an archive, too,
-epochFilename names files; the archive's hour has 24 hours, and an archive that is there is not
overwritten. A page that is there already is written once, as with `dump`.

Source: org.apache.nutch.tools.CommonCrawlDataDumper, CommonCrawlFormatWARC.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.archives.captures import find_segments
from minutch.archives.commoncrawldumper import (
    SEEN,
    WRITTEN,
    CommonCrawlDumpOptions,
    all_pages,
    writer_of,
)
from minutch.archives.mediatypes import MediaTypes
from minutch.archives.pagefiles import page_files
from minutch.commands.arguments import Arguments, Flag, fail, parse
from minutch.job import Counters, JobContext

log = logging.getLogger(__name__)

USAGE: Final = """org.apache.nutch.tools.CommonCrawlDataDumper [-epochFilename]
       [-extension <extension>] [-gzip] [-h] [-jsonArray] [-keyPrefix
       <keyPrefix>] [-linkdb <linkdb>] [-mimetype <mimetype>...] -outputDir
       <outputDir> [-reverseKey] -segment <segment>... [-SimpleDateFormat]
       [-warc] [-warcSize <warcSize>]
 -epochFilename           files named after host, URL and time
 -extension <extension>   the suffix of the files; without it that of the URL
 -gzip                    all files in one .tar.gz; with -warc, compressed
                          records
 -h,--help                show this help message
 -jsonArray               headers as lists of names and values
 -keyPrefix <keyPrefix>   what `key` begins with
 -linkdb <linkdb>         a LinkDb, for the pages that link to the page
 -mimetype <mimetype>     only pages of these media types
 -outputDir <outputDir>   where the files go; made if it is not there
 -reverseKey              `key` of reversed host, URL's SHA-1 and time
 -segment <segment>       segments, or folders of segments
 -SimpleDateFormat        dates in milliseconds since 1970
 -warc                    WARC files
 -warcSize <warcSize>     bytes after which the next WARC file begins"""

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
LEFT_OUT: Final = "pages of other types"


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
    counters = Counters({WRITTEN: 0, SEEN: 0, LEFT_OUT: 0})
    with (
        page_files(Path(given["-outputDir"])) as files,
        writer_of(_options(given), files, context) as writer,
        context.progress("commoncrawldump", unit="pages") as progress,
    ):
        for url, content in all_pages(segments):
            counters.add(writer.write(url, content) if types.chooses(content.content) else LEFT_OUT)
            progress.advance()
    stats = types.text(with_chosen=given["-mimetype"] is not None)
    for line in f"CommonsCrawlDataDumper File Stats: {stats}".splitlines():
        log.info("%s", line)
    context.report("CommonCrawlDataDumper", counters)
    return 0


def _options(given: Arguments) -> CommonCrawlDumpOptions:
    return CommonCrawlDumpOptions(
        warc=given["-warc"],
        gzip=given["-gzip"],
        warc_size=given.get("-warcSize", 0),
        linkdb=None if given["-linkdb"] is None else Path(given["-linkdb"]),
        extension=given.get("-extension", ""),
        epoch_filename=given["-epochFilename"],
        key_prefix=given.get("-keyPrefix", ""),
        epoch_dates=given["-SimpleDateFormat"],
        arrays=given["-jsonArray"],
        reverse_key=given["-reverseKey"],
    )
