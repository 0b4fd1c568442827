"""Commands by name, for tests: `inject.run(["crawldb", "seeds"], context)`."""

from __future__ import annotations

from minutch.commands import arguments, flow
from minutch.commands.declaration import Command


def command(name: str) -> Command:
    """The declaration of a command."""
    first, _, format_name = name.partition(" ")
    found = flow.find(first)
    if found is not None and format_name:
        found = found.format(format_name)
    assert found is not None, name
    return found


def parsed(name: str, *words: str) -> arguments.Arguments:
    """The command line of a command, parsed."""
    return arguments.parse(command(name), words)


def __getattr__(name: str) -> Command:
    """`from tests.support.commands import inject`; formats as `export_arc`, classes by the last
    part of their names.
    """
    named = (*flow.commands().values(), *flow.classes())
    for one in (*named, *(each for command in named for each in command.formats)):
        last = one.name.rpartition(".")[2].replace("$", "").lower()
        if name.removesuffix("_") == last.replace("-", "_").replace(" ", "_"):
            return one
    raise AttributeError(name)
