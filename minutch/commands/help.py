"""Builds help texts from `flow` and the usages of the commands, in 80 columns.

A usage is written as Nutch writes it: the class and its arguments, then a line for each, its name
and what it means between tabs or two blanks. Here the class becomes the command, and the lines a
table.
"""

from __future__ import annotations

import importlib
import re
import textwrap

from minutch.commands import flow, formats, pages
from minutch.processwide import command_line

WIDTH = 80
_TERM = 26
"""Widest name that still has its meaning beside it."""
_ENTRY = re.compile(r"\s*(\S.*?)(?:\t+|\s{2,})(\S.*)")
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
    for group, title in flow.GROUPS.items():
        lines.append(f"{title}:")
        for command in flow.COMMANDS[group]:
            lines += _entry(f"  {command.name}", command.help, width)
        lines.append("")
    lines.append("Pages to read:")
    for topic, name in zip(pages.TOPICS, pages.names(), strict=True):
        lines += _entry(f"  {name}", pages.purpose(topic), width)
    lines += ["", f"`{command_line('help NAME')}` explains a command or shows a page."]
    lines.append("A first crawl:")
    lines.append(
        f"  {command_line('init')}, then fill in conf/nutch-site.xml and seeds/seeds.txt, then"
    )
    lines.append(f"  {command_line('crawl seeds/ crawl/ 3')}")
    return "\n".join(lines)


def describe(command: flow.Command, format_name: str = "") -> str:
    """Returns purpose, usage, options and an example of a command, or of a format of it."""
    file_format = formats.FORMATS.get(command.name, {}).get(format_name)
    name, text, module = command.name, command.help, command.module
    if file_format is not None:
        name, text, module = f"{name} {format_name}", file_format.help, file_format.module
    usage = _usage(module, name)
    lines = [
        *textwrap.wrap(f"minutch {name}: {text}", WIDTH),
        "",
        *_usage_lines(usage, command.name),
    ]
    lines += ["", "For every command:", *_table(list(GENERAL)), ""]
    if file_format is not None:
        return "\n".join([*lines, f"More:    {command_line(f'help {pages.about(name)}')}"])
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


def usage_of(command: flow.Command) -> str:
    """Returns the usage in the command's module."""
    return _usage(command.module, command.name)


def _usage(module: str, name: str) -> str:
    return str(getattr(importlib.import_module(module), "USAGE", name))


def _usage_lines(usage: str, name: str) -> list[str]:
    java = usage.split(maxsplit=1)[0]
    lines: list[str] = []
    entries: list[tuple[str, str]] = []
    for line in usage.splitlines():
        text = line.strip()
        if text.startswith(java) or (not line.strip(" ") and not entries and not lines):
            lines += _synopsis(text, java, name, first=not lines)
        elif entries and not _ENTRY.fullmatch(line) and re.match(r"\s{8,}|\s*\t", line):
            between = "\n" if re.match(r"\s*\t\s", line) or text.endswith(":") else " "
            entries[-1] = (entries[-1][0], f"{entries[-1][1]}{between}{text}".strip())
        elif match := _ENTRY.fullmatch(line):
            entries.append((f"  {match[1]}" if line.startswith("\t\t") else match[1], match[2]))
        elif text.startswith("-"):
            entries.append((text, ""))
        else:
            lines += _block(lines, entries)
            entries.clear()
            indent = "  " if line[:1].isspace() else ""
            lines += textwrap.wrap(
                text, WIDTH, initial_indent=indent, subsequent_indent=indent
            ) or [""]
    return lines + _block(lines, entries)


def _block(lines: list[str], entries: list[tuple[str, str]]) -> list[str]:
    """Returns a table, with an empty line before it."""
    return [
        *([""] if entries and lines and lines[-1] and not lines[-1].endswith(":") else []),
        *_table(entries),
    ]


def _synopsis(text: str, java: str, name: str, *, first: bool) -> list[str]:
    start = f"{'Usage: ' if first else '       '}{command_line(name)}"
    arguments = text.removeprefix(java).strip()
    return textwrap.wrap(
        f"{start} {arguments}", WIDTH, subsequent_indent=" " * 11, break_on_hyphens=False
    )


def _table(entries: list[tuple[str, str]]) -> list[str]:
    width = 2 + max((len(term) for term, _ in entries if len(term) <= _TERM), default=20) + 2
    return [line for term, text in entries for line in _entry(f"  {term}", text, width)]


def _entry(term: str, text: str, width: int) -> list[str]:
    """Returns a name and its meaning, from column `width` on, or below a name that is too long."""
    lines = [
        line
        for part in text.split("\n")
        for line in textwrap.wrap(
            part, WIDTH - width, break_on_hyphens=False, break_long_words=False
        )
    ]
    if len(term) + 2 > width:
        return [term, *(" " * width + line for line in lines)]
    return [
        f"{term:<{width}}{lines[0] if lines else ''}".rstrip(),
        *(" " * width + line for line in lines[1:]),
    ]
