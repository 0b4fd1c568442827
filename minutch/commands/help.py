"""Builds help texts from the declarations of the commands, in 80 columns."""

from __future__ import annotations

import textwrap

from minutch.commands import flow, pages
from minutch.commands.declaration import Command
from minutch.commands.usage import WIDTH, entry, table, usage
from minutch.processwide import command_line

GENERAL = (
    ("-D name=value", "set a property, anywhere on the line"),
    ("-conf FILE", "one more configuration file; before other arguments"),
    ("-v", "before or after the command: debug log, tracebacks"),
    ("-h, --help", "this text"),
)


def overview() -> str:
    """Returns a line for every command and every page of the docs."""
    lines = [f"Usage: {command_line('COMMAND [-D name=value]... [arguments]')}", ""]
    width = max(map(len, flow.commands())) + 4
    for title, where in flow.GROUPS.items():
        lines.append(f"{title}:")
        for command in flow.group(where):
            lines += entry(f"  {command.name}", command.help, width)
        lines.append("")
    lines.append("Pages to read:")
    for topic, name in zip(pages.TOPICS, pages.names(), strict=True):
        lines += entry(f"  {name}", pages.purpose(topic), width)
    lines += ["", f"`{command_line('help NAME')}` explains a command or shows a page."]
    lines.append("A first crawl:")
    lines.append(
        f"  {command_line('init')}, then fill in conf/nutch-site.xml and seeds/seeds.txt, then"
    )
    lines.append(f"  {command_line('crawl seeds/ crawl/ 3')}")
    return "\n".join(lines)


def describe(command: Command, format_name: str = "") -> str:
    """Returns purpose, usage, options and an example of a command, or of a format of it."""
    shown = command.format(format_name) or command
    lines = [
        *textwrap.wrap(f"minutch {shown.name}: {shown.help}", WIDTH),
        "",
        f"Usage: {usage(shown, command_line(shown.name))}",
        *("", "For every command:", *table(GENERAL), ""),
    ]
    if shown is not command:
        return "\n".join([*lines, f"More:    {command_line(f'help {pages.about(shown.name)}')}"])
    for title, what in (
        ("Reads", command.reads),
        ("Writes", command.writes),
        ("Class", command.nutch_class),
    ):
        if what:
            lines.append(f"{title + ':':<8} {what}")
    if page := pages.about(command.name):
        lines.append(f"More:    {command_line(f'help {page}')}")
    lines.append(
        f"Example: {command.example.replace(f'minutch {command.name}', command_line(command.name))}"
    )
    return "\n".join(lines)
