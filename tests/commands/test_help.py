"""Help: every command with its purpose, usage by name, options and an example, in 80 columns."""

from __future__ import annotations

import re

import pytest

from minutch.commands import flow, pages
from minutch.commands import help as texts
from minutch.commands.declaration import (
    Argument,
    Command,
    Option,
    segment,
    segments_in,
    switch,
)
from minutch.commands.help import usage
from tests.support.examples import tabled

WIDE = list(flow.commands().values())
FORMATS = [one for command in WIDE for one in command.formats]
ALL = [*WIDE, *FORMATS, *flow.classes()]


def test_the_overview_has_every_command_in_80_columns() -> None:
    lines = texts.overview().splitlines()
    assert all(len(line) <= 80 for line in lines)
    for command in WIDE:
        assert any(line.startswith(f"  {command.name} ") for line in lines)
    for name in pages.names():
        assert any(line.startswith(f"  {name} ") for line in lines)


@tabled("command", [*WIDE, *flow.classes()])
def test_help_of_each_command(command: Command) -> None:
    text = texts.describe(command)
    lines = text.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert lines[0].startswith(f"minutch {command.name}: ")
    assert f"\nUsage: minutch {command.name}" in text
    assert lines[-1].startswith("Example: ")
    assert f"minutch {command.name}" in lines[-1].replace("'", "")
    assert "\t" not in text
    java = command.nutch_class.rpartition(".")[2]
    assert not java or java in command.name or not re.search(rf"Usage: .*\b{java}\b", text)


@pytest.mark.parametrize("command", ALL, ids=lambda command: command.name)
def test_every_option_has_a_line(command: Command) -> None:
    lines = usage(command).splitlines()
    for option in command.options:
        spelled = re.compile(rf"\s+\S*.*?{re.escape(option.name)}\b")
        assert option.help and any(spelled.match(line) for line in lines), option.name


@tabled("command", FORMATS)
def test_help_of_each_format(command: Command) -> None:
    name, _, file_format = command.name.partition(" ")
    text = texts.describe(flow.commands()[name], file_format)
    lines = text.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert lines[0].startswith(f"minutch {command.name}: ")
    assert f"\nUsage: minutch {name} " in text and "\t" not in text
    assert lines[-1].startswith("More:    minutch help ")


def test_a_usage_has_a_synopsis_and_a_table() -> None:
    command = Command(
        "job",
        java="crawl.Job",
        arguments=(
            Argument("db", "the database"),
            Argument("segments", "to read", segment, many=True),
        ),
        options=(
            Option("-dir", "folder", segments_in, "all segments in it", field="segments"),
            switch("--force", "go on", aliases=("-f",)),
            Option("-out", "file", help="write", required=True),
            switch("-sort", "in order", of="-out"),
            Option("-near", "[bits]", int, "near ones", group="More:"),
        ),
        note="All of it is read.",
    )
    assert usage(command, "minutch job").splitlines()[:2] == [
        "minutch job <db> (<segments> ... | -dir <folder>) [--force] -out <file>",
        "           [-near [<bits>]]",
    ]
    assert usage(command).startswith("Job <db> ")
    assert usage(command).splitlines()[2:] == [
        "",
        "  <db>           the database",
        "  <segments>     to read",
        "  -dir <folder>  all segments in it",
        "  -f, --force    go on",
        "  -out <file>    write",
        "    -sort        in order",
        "",
        "More:",
        "  -near [<bits>]  near ones",
        "",
        "All of it is read.",
    ]
