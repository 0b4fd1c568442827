"""Help: every command with its purpose, usage by name, options and an example, in 80 columns."""

from __future__ import annotations

import re

import pytest

from minutch.commands import flow, pages
from minutch.commands import help as texts
from minutch.commands.arguments import Flag
from minutch.commands.formats import FORMATS

WIDE = list(flow.commands().values())


def test_the_overview_has_every_command_in_80_columns() -> None:
    lines = texts.overview().splitlines()
    assert all(len(line) <= 80 for line in lines)
    for command in WIDE:
        assert any(line.startswith(f"  {command.name} ") for line in lines)
    for name in pages.names():
        assert any(line.startswith(f"  {name} ") for line in lines)


@pytest.mark.parametrize("command", [*WIDE, *flow.CLASSES], ids=lambda command: command.name)
def test_help_of_each_command(command: flow.Command) -> None:
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


@pytest.mark.parametrize("command", [*WIDE, *flow.CLASSES], ids=lambda command: command.name)
def test_every_flag_has_a_line(command: flow.Command) -> None:
    module = __import__(command.module, fromlist=["FLAGS"])
    lines = texts.describe(command).splitlines()
    for flag in getattr(module, "FLAGS", ()):
        assert isinstance(flag, Flag)
        spelled = re.compile(rf"\s+\S*.*?{re.escape(flag.name)}\b")
        assert any(spelled.match(line) for line in lines), flag.name


@pytest.mark.parametrize(
    ("name", "file_format"), [(name, each) for name, known in FORMATS.items() for each in known]
)
def test_help_of_each_format(name: str, file_format: str) -> None:
    command = flow.commands()[name]
    text = texts.describe(command, file_format)
    lines = text.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert lines[0].startswith(f"minutch {name} {file_format}: ")
    assert f"\nUsage: minutch {name} " in text and "\t" not in text
    module = __import__(FORMATS[name][file_format].module, fromlist=["FLAGS"])
    for flag in module.FLAGS:
        assert any(re.match(rf"\s+{re.escape(flag.name)}\b", line) for line in lines), flag.name
    assert lines[-1].startswith("More:    minutch help ")


def test_a_usage_becomes_a_table() -> None:
    usage = (
        "Job <db> [-force] [-dump <out>]\n\t<db>\tthe database\n\t-dump <out>\twrite\n"
        "\t\t[-sort]\tin order\n\nAll of it is read."
    )
    assert texts._usage_lines(usage, "job") == [
        "Usage: minutch job <db> [-force] [-dump <out>]",
        "",
        "  <db>         the database",
        "  -dump <out>  write",
        "    [-sort]    in order",
        "",
        "All of it is read.",
    ]
