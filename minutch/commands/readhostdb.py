"""readhostdb: the record of one host, or all of a HostDb as text.

    hostname TAB unfetched TAB fetched TAB gone TAB redirTemp TAB redirPerm TAB notModified TAB
    numRecords TAB dnsFail
    TAB cnxFail TAB sumFail TAB score TAB lastCheck TAB homepage TAB (key ":" value "|||")* LF

A dump has a file for each part of the HostDb, in its order, with a head line unless
hostdb.dump.field.header is false. -dumpHomepages and -dumpHostnames write these alone, a tab after
each. Unlike in Nutch, which asks the opposite of what it means, -dumpHomepages has the hosts that
have a home page.

Source: org.apache.nutch.hostdb.ReadHostDb, HostDatum.toString.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, fail, parse
from minutch.cycle.hostdb.dump import Dump, write
from minutch.cycle.hostdb.store import HostDb
from minutch.errors import UrlError, UsageError
from minutch.job import JobContext
from minutch.urls import parts

log = logging.getLogger(__name__)

USAGE: Final = """ReadHostDb <hostdb> [-get <url>] [<output> [-dumpHomepages | -dumpHostnames | -expr <expr.>]]
\t-get <url>\tprint the record of a host, given by its name or a URL
\t<output>\twrite all records as text to this new folder
\t-dumpHomepages\tonly the home pages, of hosts that have one
\t-dumpHostnames\tonly the names of the hosts
\t-expr <expr.>\tonly hosts for which the JEXL expression is true, such as "unfetched > 100 && gone == 0\""""  # noqa: E501

FLAGS: Final = (
    Flag("-get", value="url"),
    Flag("-dumpHomepages"),
    Flag("-dumpHostnames"),
    Flag("-expr", value="expr."),
)


def run(args: list[str], context: JobContext) -> int:
    """The command: exit code 0, or 255 and an error. A host that is not there is no error."""
    given = parse(args, FLAGS, usage=USAGE, least=1, most=2)
    db, rest = HostDb(Path(given.positional[0])), given.positional[1:]
    if given["-get"] is not None:
        datum = db.get(_host(given["-get"]))
        if datum is not None:
            context.print(datum)
        return 0
    if not rest:
        fail("say what to read: -get, or a folder to write to" if len(args) > 1 else "", USAGE)
    dump = Dump.from_conf(
        context.conf,
        homepages=given["-dumpHomepages"],
        hostnames=given["-dumpHostnames"],
        expression=given["-expr"],
    )
    context.report("ReadHostDb", write(db, Path(rest[0]), dump, context))
    return 0


def _host(word: str) -> str:
    """The host that is asked for, which may be given by a URL."""
    try:
        return parts.parse(word).host.lower() if "://" in word else word
    except UrlError as exc:
        raise UsageError(f"-get: {exc}", USAGE) from exc
