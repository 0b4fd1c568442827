"""Reads the arguments of `minutch readseg`, and prints what `cycle.segment.readseg` finds.

Different from Nutch on purpose: -list sorts by name and shows `?` for folders that do not exist
instead of ending in an error; -get does not wait five seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from minutch.commands.arguments import Arguments, Flag, fail, parse
from minutch.cycle.segment.readseg import (
    ReadsegOptions,
    SegmentCounts,
    readseg_dump,
    readseg_get,
    readseg_list,
)
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
    PARSE_TEXT,
    segments_at,
)
from minutch.hadoop.formats.javahash import date_time_to_string
from minutch.hadoop.stores import as_path
from minutch.job import JobContext

log = logging.getLogger(__name__)

USAGE = """SegmentReader (-dump ... | -list ... | -get ...) [general options]

General options, all to leave something out or to decode:
\t-nocontent -nofetch -nogenerate -noparse -noparsedata -noparsetext\twithout this folder of the \
segment
\t-recode\tdecode each page in its own charset, as parsing found it, not in UTF-8

SegmentReader -dump <segment_dir> <output> [general options]
\twrites the segment as text into the file `dump` in <output>

SegmentReader -list (<segment_dir1> ... | -dir <segments>) [general options]
\tprints a line of counts for each segment, or for each one in the folder <segments>

SegmentReader -get <segment_dir> <keyValue> [general options]
\tprints what the segment holds of the URL <keyValue>"""

_SWITCHES = {
    "-nocontent": CONTENT,
    "-nofetch": CRAWL_FETCH,
    "-nogenerate": CRAWL_GENERATE,
    "-noparse": CRAWL_PARSE,
    "-noparsedata": PARSE_DATA,
    "-noparsetext": PARSE_TEXT,
}
FLAGS = (*map(Flag, _SWITCHES), Flag("-recode"), Flag("-dir", value="segments", repeats=True))


def run(args: list[str], context: JobContext) -> int:
    """0 if done; UsageError with exit code 255 for a wrong command line."""
    mode = _MODES.get(args[0]) if args else None
    if mode is None:
        fail(f"say first what to do: {', '.join(_MODES)}; found {args[0]}" if args else "", USAGE)
    arguments = parse(args[1:], FLAGS, usage=USAGE)
    folders = [folder for switch, folder in _SWITCHES.items() if not arguments[switch]]
    mode(arguments, ReadsegOptions(folders, recode=arguments["-recode"] or None), context)
    return 0


def _require(arguments: Arguments, *names: str) -> list[str]:
    for position, name in enumerate(names):
        if len(arguments.positional) <= position:
            fail(f"Missing required argument: <{name}>", USAGE)
    return arguments.positional


# -dump


def _run_dump(arguments: Arguments, options: ReadsegOptions, context: JobContext) -> None:
    segment, output = _require(arguments, "segment_dir", "output")[:2]
    readseg_dump(as_path(segment), as_path(output), options, context=context)


def _run_list(arguments: Arguments, options: ReadsegOptions, context: JobContext) -> None:
    paths, folders = arguments.positional, arguments.get("-dir", [])
    segments = segments_at(map(as_path, paths), map(as_path, folders))
    context.print("NAME\t\tGENERATED\tFETCHER START\t\tFETCHER END\t\tFETCHED\tPARSED")
    for segment in segments:
        context.print(_list_line(segment.name, readseg_list(segment.path, options)))


def _list_line(name: str, stats: SegmentCounts) -> str:
    start = "?\t" if stats.start is None else _time(stats.start)
    end = "?" if stats.end is None else _time(stats.end)
    return (
        f"{name}\t{_count(stats.generated)}\t\t{start}\t{end}\t{_count(stats.fetched)}\t"
        f"{_count(stats.parsed)}"
    )


def _count(value: int | None) -> str:
    return "?" if value is None else str(value)


def _time(ms: int) -> str:
    """yyyy-MM-ddTHH:mm:ss, in UTC like all dates that minutch prints."""
    return date_time_to_string(ms, "T")


# -get


def _run_get(arguments: Arguments, options: ReadsegOptions, context: JobContext) -> None:
    segment, url = _require(arguments, "segment_dir", "keyValue")[:2]
    for text in readseg_get(as_path(segment), url, options, context=context):
        context.print(text)


_MODES: dict[str, Callable[[Arguments, ReadsegOptions, JobContext], None]] = {
    "-dump": _run_dump,
    "-list": _run_list,
    "-get": _run_get,
}
