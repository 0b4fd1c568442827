"""Declares what is done with segments and files, and the formats of other programs."""

from __future__ import annotations

import re

from minutch.commands.declaration import Argument, Command, Option, path, segment, switch, words
from minutch.commands.declared.cycle import DIR, RULES
from minutch.commands.declared.databases import CRAWL

CHUNK_SIZES = (
    Option("--tokens", "n", int, "the most tokens of a piece (512)", least=16, of="--chunks"),
    Option(
        "--overlap",
        "n",
        int,
        "of these, that a section's piece before has, too (64)",
        least=0,
        of="--chunks",
    ),
)
"""How Markdown is cut into pieces."""

# fmt: off
_EXPORTED = Argument(
    "segment", "a segment, a folder of segments, or the folder of a crawl", path, many=True,
)
ARC_TO_SEGMENT = (
    Argument("arcFiles", "an ARC file, or a folder of such files", path),
    Argument("segmentsOutDir", "the folder in which segments are created", path),
)
_HOSTS = switch("-hosts", "between hosts, with the numbers of links", field="by_host")


def _prefix(word: str) -> str:
    if not word or "/" in word or not word.isprintable() or word.startswith("."):
        raise ValueError("expected the beginning of a file's name")
    return word


_ARCHIVES = (
    DIR,
    Option("-prefix", "name", _prefix, "the beginning of the files' names"),
    Option("-size", "bytes", int, "the size at which the next file begins (1000000000)",
           field="limit", least=1),
    Option("-digest", "sha1|sha256", help="the hash of digests (sha1)", choices=("sha1", "sha256")),
)


def _out(help: str) -> Argument:
    return Argument("out", help, path)


def _archive(
    name: str, about: str, out: str, *more: Option, synopsis: tuple[str, ...] = (), note: str = ""
) -> Command:
    """Returns an export of segments as a web archive, or of what belongs to one."""
    return Command(
        f'export {name}',
        help=about,
        arguments=(_EXPORTED, _out(out)),
        options=(*_ARCHIVES, *more),
        synopsis=synopsis,
        note=note,
        job=f'minutch.archives.web.webarchivejobs:export_{name}', settings="WebArchiveOptions",
    )


EXPORTS = (
    Command(
        "export arc",
        help="ARC files of version 1, as in the Common Crawl data set of 2012",
        arguments=(_EXPORTED, _out("the new folder of the ARC files")),
        options=(
            DIR,
            Option("-layout", "name",
                   help="parse-output: segment/<millis>/ (default), or crawl-001:"
                        " yyyy/MM/dd/<number>/", choices=("parse-output", "crawl-001")),
            Option("-size", "bytes", int, "the size at which the next file begins (100000000)",
                   field="limit"),
        ),
        job="minutch.archives.exporters:export_arc", settings="ArcExportOptions",
    ),
    _archive(
        "cdxj", "the index of a web archive",
        "the new file; it names archives by their paths below its folder, others by their names",
        synopsis=("<segment> ... [-dir <segments>] <out> [options]", "<archive> ... <out>"),
        note="An archive is a WARC or ARC file, or a folder of such files. For segments, this is"
             " the index of the files that `export warc` writes with the same options.",
    ),
    Command(
        "export commoncrawl",
        help="texts and metadata as in Common Crawl's data set of 2012",
        arguments=(
            _EXPORTED,
            _out("the folder of the data set; <out>/segment/<millis> must not exist"),
        ),
        options=(
            DIR,
            Option("-urls", "n", int, "the number of URLs in a file (25000)", least=1),
            Option("-arcs", "folder", path,
                   "the ARC files of the segment, <millis>_<n>.arc.gz: metadata then have the"
                   " positions of pages in them; once for each segment", repeats=True),
        ),
        job="minutch.annexes.dataset.datasetexport:export_commoncrawl", settings="DatasetOptions",
        report="Common Crawl data set",
    ),
    Command(
        "export corpus",
        help="the pages' texts as a data set: JSON Lines and Parquet, with signals of quality",
        arguments=(
            CRAWL,
            _out("the folder of the data set; after a kill, the same command goes on in it"),
        ),
        options=(
            Option("--for", "training|input|search|any",
                   help="leave out the pages for which this use is refused (see `minutch help"
                        " rights`); any: for which one of them is",
                   field="purpose", choices=("training", "input", "search", "any")),
            Option("--quality", "none|gopher|c4|fineweb",
                   help="leave out the pages that these filters do (none)",
                   choices=("none", "gopher", "c4", "fineweb")),
            Option("--where", "condition",
                   help="only rows for which this is true, in SQL:"
                        " \"language = 'en' and is_first\""),
            Option("--formats", "names", words, "jsonl, parquet, or both with a comma (both)"),
            switch("--plain", "without the pages' Markdown, which takes most of the time"),
            switch("--chunks", "also the pages' Markdown, in pieces for retrieval"),
            *CHUNK_SIZES,
            Option("--rows", "n", int, "rows of a shard, at most (100000)", least=1),
            Option("--size", "bytes", int, "bytes of text in a shard, at most (134217728)",
                   least=1),
        ),
        job="minutch.inspect.corpus.export:export_corpus", settings="CorpusOptions",
        report="CorpusExport",
    ),
    Command(
        "export edges",
        help="the links between pages or hosts as CSV, for Gephi and networkx",
        arguments=(
            CRAWL,
            Argument("file", "a new CSV file: Source, Target and Label, the anchor text", path),
        ),
        options=(_HOSTS,),
        job="minutch.inspect.query.exports:export_edges", settings="GraphOptions",
        report="EdgesExport",
    ),
    Command(
        "export graphml",
        help="the links between pages or hosts as GraphML",
        arguments=(
            CRAWL,
            Argument("file", "a new GraphML file: pages, and their links with anchor texts", path),
        ),
        options=(_HOSTS,),
        job="minutch.inspect.query.exports:export_graphml", settings="GraphOptions",
        report="GraphmlExport",
    ),
    Command(
        "export legacy",
        help="segments in the formats of Nutch 0.4 and 0.5",
        arguments=(_EXPORTED, _out("the new folder, in which each segment gets a folder")),
        options=(
            DIR,
            Option("-version", "0.4|0.5", help="the version of Nutch whose format is written (0.5)",
                   choices=("0.4", "0.5")),
        ),
        job="minutch.annexes.legacy.legacyjobs:export_legacy", settings="LegacyExportOptions",
        report="Export of old segments",
    ),
    Command(
        "export parquet",
        help="the tables of a crawl, for DuckDB, Spark and pandas",
        arguments=(
            CRAWL,
            _out("a new folder, with a folder for each table, a file for each partition or"
                 " segment"),
        ),
        options=(
            Option("-tables", "names", words,
                   "the tables, separated by commas (all that exist): crawldb, linkdb, links,"
                   " pages, parses, hosts, duplicates"),
        ),
        job="minutch.inspect.query.exports:export_parquet", settings="ParquetOptions",
        report="ParquetExport",
    ),
    _archive(
        "wacz", "a web archive with its index and page list in one file, for replay",
        "the new file, whose name should end in .wacz",
        Option("-title", "title", help="the title of the archive"),
        switch("-text",
               "include the text of pages, for full-text search; that of archives, if they"
               " contain it", field="with_text"),
        synopsis=(
            "<segment> ... [-dir <segments>] <out> [options]",
            "<archive> ... <out> [-title <title>] [-text]",
        ),
        note="An archive is a WARC file, or a folder of such files, taken unchanged.",
    ),
    _archive(
        "warc", "a web archive: requests, responses, revisits, texts",
        "the new folder of the WARC files",
        switch("-cdxj", "also write an index of the files, index.cdxj", field="index"),
        note="In contrast to Nutch's exporter (`warc`), it writes WARC 1.1, a warcinfo record"
             " about the crawler, requests, metadata of fetches, and texts; and a page that did"
             " not change between rounds only once.",
    ),
    _archive(
        "wat", "metadata of each record of a web archive as JSON (Common Crawl)",
        "the new folder of the WAT files",
    ),
    _archive(
        "wet", "the text of pages (Common Crawl)", "the new folder of the WET files",
    ),
)


def _status(word: str) -> str:
    if len(word) != 3 or not set(word) <= set("0123456789xX"):
        raise ValueError("expected three digits, as 200 or 3xx")
    return word.lower()


def _time(word: str) -> int:
    """Returns the first millisecond of the period that a time names. Raises ValueError."""
    from minutch.warc.reading.visits import arc_time

    digits = _digits(word)
    time = arc_time(digits)
    if not time and not digits.startswith("1970"):
        raise ValueError(word)
    return time


def _end(word: str) -> int:
    """Returns the last millisecond of the period that a time names. Raises ValueError."""
    from minutch.warc.reading.visits import arc_time

    digits = _digits(word)
    _time(word)
    last = digits + "99991231235959"[len(digits) :]
    if len(digits) <= 6:
        month = int(last[4:6])
        following = f"{int(digits[:4]) + month // 12:04}{month % 12 + 1:02}"
        return arc_time(following) - 1
    return arc_time(last) + 999


def _digits(word: str) -> str:
    digits = re.sub(r"[-:TZtz ]", "", word.partition(".")[0])
    if not re.fullmatch(r"[0-9]{4}(?:[0-9]{2}){0,5}", digits):
        raise ValueError(word)
    return digits


def _replayed(name: str, about: str) -> Command:
    return Command(
        f'import {name}',
        help=about,
        arguments=(
            Argument("file", "a WARC, ARC, WACZ or CDXJ file, or a folder of such files", path,
                     many=True),
            Argument("segments", "the folder in which segments are created", path),
        ),
        options=(
            Option("-archives", "folder", path,
                   "the folder of the archives that a CDXJ file names, if not its own",
                   field="folders", repeats=True, collect=tuple),
            Option("-host", "host", str.lower,
                   "only visits to this host; `*.example.org` includes all hosts below",
                   field="hosts", repeats=True, collect=tuple),
            Option("-mime", "type", str.lower,
                   "only responses of this media type; `text/*` includes all text types",
                   field="types", repeats=True, collect=tuple),
            Option("-status", "status", _status,
                   "only responses with this status; `3xx` includes all redirects",
                   field="statuses", repeats=True, collect=tuple),
            Option("-from", "time", _time,
                   "only visits from this time on: 2012, 2012-01-31, 20120131120000",
                   field="first"),
            Option("-to", "time", _end, "only visits until the end of this time", field="last"),
            switch("-normalize", "apply URL normalizers"),
            switch("-filter", "apply URL filters"),
        ),
        job="minutch.archives.replay.archiveimport:import_archives", settings="ImportOptions",
        code="minutch.commands.jobcommands:import_archives", report="import",
    )


IMPORTS = (
    _replayed(
        "warc", "WARC files, plain or compressed: pages, redirects, revisits",
    ),
    _replayed(
        "arc", "ARC files, the format of the Internet Archive and Common Crawl until 2012",
    ),
    _replayed(
        "wacz", "WACZ files: the WARC files in them",
    ),
    _replayed(
        "cdxj", "CDXJ or CDX files: the records that they refer to",
    ),
    Command(
        "import legacy",
        help="segments of Nutch 0.4 to 0.7; also makes a CrawlDb",
        arguments=(
            Argument("segment",
                     "segments of Nutch 0.4 to 0.7: folders with fetchlist, fetcher and so on",
                     path, many=True),
            Argument("segments", "the folder for the new segments", path),
        ),
        options=(
            Option("-crawldb", "crawldb", path,
                   "the CrawlDb to update, created if missing (crawldb, beside <segments>)"),
        ),
        job="minutch.annexes.legacy.legacyjobs:import_legacy", settings="LegacyImportOptions",
        report="Import of old segments",
    ),
)

SEGMENTS = (
    Command(
        "readseg", java="segment.SegmentReader",
        reads="segments", writes="stdout or a folder",
        help="list segments, dump one, or show one page of it",
        example="minutch readseg -list -dir crawl/segments",
        synopsis=(
            "-dump <segment_dir> <output> [general options]",
            "-list (<segment_dir> ... | -dir <segments>) [general options]",
            "-get <segment_dir> <keyValue> [general options]",
        ),
        arguments=(Argument("word", type=str, many=True, is_optional=True),),
        options=(
            switch("-dump", "write the segment as text into the file `dump` in <output>"),
            switch("-list", "print a line of counts for each segment"),
            switch("-get", "print what the segment holds of the URL <keyValue>"),
            DIR,
            switch("-nocontent", "without this folder of the segment", group="General options:"),
            switch("-nofetch", "without crawl_fetch"),
            switch("-nogenerate", "without crawl_generate"),
            switch("-noparse", "without crawl_parse"),
            switch("-noparsedata", "without parse_data"),
            switch("-noparsetext", "without parse_text"),
            switch("-recode",
                   "decode each page in its own charset, as parsing found it, not in UTF-8"),
        ),
        code="minutch.commands.readers:readseg", remote=True,
    ),
    Command(
        "mergesegs", java="segment.SegmentMerger",
        reads="segments", writes="segments",
        help="merge segments into one or several, with the newest version of each page",
        example="minutch mergesegs crawl/merged -dir crawl/segments",
        synopsis=(
            "<output_dir> (-dir <segments> | <segment> ...) [-filter] [-normalize] [-slice <NNNN>]",
            "--tiers <segments> [<crawldb>]",
        ),
        arguments=(
            Argument("output_dir",
                     "the directory in which the merged segment, or its slices, are made; it may"
                     " not exist yet", path, is_optional=True),
            Argument("segment", "the segments to merge", segment, many=True, is_optional=True),
        ),
        options=(
            DIR,
            *RULES,
            Option("-slice", "NNNN", int, "make several segments, each with NNNN URLs",
                   field="slice_size"),
            Option("--tiers", "segments", path,
                   "in place, also beside a running crawl: merge what is worth it, without what"
                   " the crawldb (by default the one beside it) has had as gone for"
                   " crawl.compact.retention"),
        ),
        job="minutch.cycle.segment.mergesegs:mergesegs", settings="MergesegsOptions",
        code="minutch.commands.jobcommands:mergesegs", remote=True,
    ),
)

_MEDIA = Option(
    "-mimetype", "mimetype", help="only pages of these media types", many=True,
    field="media_types", collect=frozenset, rest="mimetypes",
)
_DUMPED = (
    Option("-segment", "segment", path, "segments, or folders of segments", many=True,
           required=True, rest=""),
    Option("-outputDir", "outputDir", path, "the folder of the files; created if missing",
           required=True, rest=""),
    _MEDIA,
)

EXPORT = (
    Command(
        "dump", java="tools.FileDumper",
        reads="segments: content", writes="a folder",
        help="write the content of each page to a file of its own",
        example="minutch dump -outputDir pages/ -segment crawl/segments",
        options=(
            *_DUMPED,
            switch("-mimeStats", "only count the pages by media type; write no files"),
            switch("-flatdir", "all files in the output directory itself", field="naming",
                   gives="flat"),
            switch("-reverseUrlDirs", "folders named after the hosts: org/example/www",
                   field="naming", gives="reversed"),
        ),
        job="minutch.archives.filedumper:dump", settings="FileDumpOptions",
        code="minutch.commands.jobcommands:dump", shows_usage=True,
    ),
    Command(
        "commoncrawldump", java="tools.CommonCrawlDataDumper",
        reads="segments: content; linkdb", writes="a folder",
        help="write each page with its headers as CBOR, or all pages as WARC",
        example="minutch commoncrawldump -outputDir pages/ -segment crawl/segments",
        options=(
            *_DUMPED,
            switch("-gzip", "all files in one .tar.gz; with -warc, compressed records"),
            Option("-keyPrefix", "keyPrefix", help="the prefix of `key`"),
            switch("-SimpleDateFormat", "dates in milliseconds since 1970", field="epoch_dates",
                   rest="simpleDateFormat"),
            switch("-epochFilename", "name files after host, URL and time"),
            switch("-jsonArray", "headers as lists of names and values", field="arrays"),
            switch("-reverseKey", "`key` is reversed host, SHA-1 of the URL, and time"),
            Option("-extension", "extension", help="the suffix of the files; or that of the URL"),
            Option("-linkdb", "linkdb", path, "a LinkDb, to include the inlinks of each page"),
            switch("-warc", "WARC files"),
            Option("-warcSize", "warcSize", int,
                   "the size in bytes at which the next WARC file begins"),
        ),
        job="minutch.archives.commoncrawldumper:commoncrawldump", settings="CommonCrawlDumpOptions",
        shows_usage=True,
    ),
    Command(
        "warc", java="tools.warc.WARCExporter",
        reads="segments: content, crawl_fetch", writes="WARC files",
        help="write the pages of segments as a web archive, as Nutch does",
        example="minutch warc archive/ -dir crawl/segments -includeParseText",
        arguments=(
            Argument("output", "the new folder of the WARC files", path),
            Argument("segment", "the segments", segment, many=True),
        ),
        options=(
            DIR,
            switch("-onlySuccessfulResponses", "only pages that were fetched, or had not changed",
                   field="only_successful"),
            switch("-includeParseData", "also write a metadata record for each parsed page",
                   field="parse_data"),
            switch("-includeParseText",
                   "also write the text of each parsed page, as a conversion record",
                   field="parse_text"),
        ),
        job="minutch.archives.exporters:export_nutch_warc", settings="NutchWarcOptions",
        code="minutch.commands.jobcommands:warc",
    ),
    Command(
        "export",
        reads="segments", writes="files of another format",
        help="write segments, or the tables of a crawl, in another format",
        example="minutch export warc crawl/segments/* archive/",
        synopsis=("<format> <crawl or segments>... <out>",),
        note="`help export <format>` shows the options of a format.", formats=EXPORTS,
    ),
    Command(
        "import",
        reads="files of another format", writes="segments",
        help="make segments of an archive, as if its pages had been fetched",
        example="minutch import warc archive/*.warc.gz crawl/segments",
        synopsis=("<format> <file>... <segments>",),
        note="`help import <format>` shows the options of a format.", formats=IMPORTS,
    ),
    Command(
        "arc2segment",
        reads="ARC files", writes="segments: content, crawl_fetch",
        help="make segments of the pages in ARC files",
        example="minutch arc2segment arcs/ crawl/segments",
        arguments=ARC_TO_SEGMENT,
        job="minutch.archives.replay.archiveimport:arc2segment", report="ArcSegmentCreator",
    ),
)
