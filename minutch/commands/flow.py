"""Lists all commands, as they are declared, in the order of a crawl.

    seed list → inject → crawldb → generate → crawl_generate → fetch → content → parse → parse_data
                            ↑                                                               │
                            └──────────────────── updatedb ←───────────────────────────────┤
                                                                 linkdb ← invertlinks ←─────┘

`declared` has the declarations. Exit codes of all commands are here, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module

from minutch.commands.declaration import Command

UNKNOWN = 1
"""Exit code of an unknown command."""
INTERRUPTED = 130
"""Exit code after Ctrl-C (128 + SIGINT)."""
BROKEN_PIPE = 141
"""Exit code if the reader of the output has closed it (128 + SIGPIPE)."""

GROUPS = {
    "The whole crawl": "cycle.WHOLE",
    "The crawl cycle, in order": "cycle.CYCLE",
    "Databases": "databases.DATABASES",
    "Scores from links, in order": "scores.SCORES",
    "The index": "scores.INDEX",
    "Segments and files": "segments.SEGMENTS",
    "Pages for other programs": "segments.EXPORT",
    "Checks and explanations": "checks.CHECKS",
    "The installation": "checks.SHELL",
}
"""The groups of commands by their titles, each a tuple in a module of `declared`, which is imported
when something is looked for in it: those of a crawl first, since they are run most.
"""
_CLASSES = "classes.CLASSES"

REMOTE_PREFIXES = (
    "hdfs://", "viewfs://", "webhdfs://", "s3a://", "abfs://", "abfss://", "gs://", "ofs://",
    "o3fs://",
)  # fmt: skip
"""Prefixes of paths on Hadoop's file systems (`minutch.paths`)."""

REPLACED = {"solrindex": "index", "solrdedup": "dedup", "solrclean": "clean"}
"""Commands that Nutch has removed, too, and their successors."""

ENDED = {"tools.DmozParser": "the directory closed in 2017; `inject` takes any list of URLs"}
"""Classes that have no purpose any more, and alternatives."""

MISSING = {
    "junit": ("org.junit.runner.JUnitCore", "there is no Java here; `bin/test` runs the tests")
}
"""Commands of Nutch that this version lacks: their classes, and alternatives."""


def group(where: str) -> tuple[Command, ...]:
    """Returns the commands of a group."""
    module, _, name = where.partition(".")
    found: tuple[Command, ...] = getattr(import_module(f"minutch.commands.declared.{module}"), name)
    return found


def commands() -> dict[str, Command]:
    """Returns all commands by name."""
    return {command.name: command for where in GROUPS.values() for command in group(where)}


def classes() -> tuple[Command, ...]:
    """Returns the commands that Nutch runs by class name only."""
    return group(_CLASSES)


def find(name: str) -> Command | None:
    """Returns the command of a name, or of a class of Nutch, with or without its package."""
    java = name.removeprefix("org.apache.nutch.")
    return next((one for one in _all() if name == one.name or one.java == java != ""), None)


def _all() -> Iterator[Command]:
    for where in (*GROUPS.values(), _CLASSES):
        yield from group(where)


def missing(name: str) -> tuple[str, str] | None:
    """Returns name and alternative of a command of Nutch's that is not here, by name or class."""
    for command, (java, instead) in MISSING.items():
        if name.removeprefix("org.apache.nutch.") in (command, java):
            return command, instead
    return None


def ended(name: str) -> str | None:
    """Returns the alternative to a class that has no purpose any more; None for other names."""
    return ENDED.get(name.removeprefix("org.apache.nutch."))


def suggestions(name: str, others: Sequence[str] = ()) -> list[str]:
    """Returns commands, and names among `others`, that are similar to `name`."""
    from difflib import get_close_matches

    return get_close_matches(name.lower(), [*commands(), *others])
