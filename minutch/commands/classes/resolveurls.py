"""ResolveUrls: looks up the hosts of a list of URLs, and prints the time that each look-up takes.

The command ends after the last look-up; Nutch's never did.
Source: org.apache.nutch.tools.ResolveUrls.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from minutch.commands.arguments import Flag, parse
from minutch.job import JobContext
from minutch.urls.hostname import look_up_hosts

USAGE: Final = """ResolveUrls -urls <urls> [-numThreads <threads>]
 -urls <urls>            a file with a URL in each line
 -numThreads <threads>   the number of parallel look-ups (100)"""
FLAGS: Final = (Flag("-urls", value="urls"), Flag("-numThreads", value="numThreads", convert=int))


def run(args: list[str], context: JobContext) -> int:
    """Runs the command; returns 0. Without -urls, it prints the usage."""
    arguments = parse(args, FLAGS, usage=USAGE, most=0)
    if arguments["-urls"] is None:
        context.print(f"usage: {USAGE}")
        return 0
    threads = max(1, arguments.get("-numThreads", 100))
    total = found = time = 0
    with Path(arguments["-urls"]).open(encoding="utf-8", errors="replace") as file:
        for lookup in look_up_hosts((line.rstrip("\r\n") for line in file), threads):
            total += 1
            found += lookup.found
            time += lookup.ms
            result = "Resolved" if lookup.found else "Error Resolving"
            context.print(f"{result}: {lookup.host or 'null'}, {lookup.ms} millis")
    average = time // total if total else 0
    context.print(
        f"Total: {total}, Resolved: {found}, Errored: {total - found}, Average Time: {average}"
    )
    return 0
