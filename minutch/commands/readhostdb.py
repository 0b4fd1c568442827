"""`minutch readhostdb`: prints the record of a host, or dumps a HostDb (Nutch: ReadHostDb)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, database, fail, parse
from minutch.cycle.hostdb.dump import ReadHostDbOptions, readhostdb
from minutch.cycle.hostdb.store import HostDb
from minutch.errors import UrlError, UsageError
from minutch.job import JobContext
from minutch.urls import parts

USAGE: Final = """ReadHostDb <hostdb> [-get <url>] [<output> [-dumpHomepages | -dumpHostnames | \
-expr <expr.>]]
\t-get <url>\tprint the record of a host, named by itself or by a URL
\t<output>\twrite all records as text to this new folder
\t-dumpHomepages\tonly the home pages, of hosts that have one
\t-dumpHostnames\tonly the names of the hosts
\t-expr <expr.>\tonly hosts for which the JEXL expression is true, such as \
"unfetched > 100 && gone == 0\""""

FLAGS: Final = (
    Flag("-get", value="url"),
    Flag("-dumpHomepages"),
    Flag("-dumpHostnames"),
    Flag("-expr", value="expr."),
)


def run(args: list[str], context: JobContext) -> int:
    """Prints a record, nothing for an unknown host; or runs the job and reports its counters."""
    arguments = parse(args, FLAGS, usage=USAGE, least=1, most=2)
    hostdb, rest = database(arguments.positional[0], "hostdb"), arguments.positional[1:]
    if arguments["-get"] is not None:
        datum = HostDb(hostdb).get(_host(arguments["-get"]))
        if datum is not None:
            context.print(datum)
        return 0
    if not rest:
        fail("say what to read: -get, or a folder to write to", USAGE)
    options = ReadHostDbOptions(
        homepages=arguments["-dumpHomepages"],
        hostnames=arguments["-dumpHostnames"],
        expression=arguments["-expr"],
    )
    context.report("ReadHostDb", readhostdb(hostdb, Path(rest[0]), options, context=context))
    return 0


def _host(word: str) -> str:
    """Returns the host that `-get` names, by itself or by a URL."""
    try:
        return parts.parse(word).host.lower() if "://" in word else word
    except UrlError as exc:
        raise UsageError(f"-get: {exc}", USAGE) from exc
